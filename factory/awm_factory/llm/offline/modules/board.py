"""Project board: tasks that move over the columns of a project, a few at a time.

Past 300 lines and one file: tables, tools and start rows of a module are read together.
"""

from datetime import timedelta

from awm_factory.llm.offline.columns import choice, created, day, flag, moment, number, ref, text
from awm_factory.llm.offline.ir import Param, Show
from awm_factory.llm.offline.kit import Kit
from awm_factory.llm.offline.seeding import Seeding
from awm_factory.llm.offline.steps import Change, Field, Load, Require, ReturnTable
from awm_factory.llm.offline.values import Row

FEATURES = ("labels", "milestones", "checklists", "time_sheets", "blockers", "clients")

_PRIORITIES = ("low", "normal", "high")


def build(m: Kit) -> None:
    m.policy = {"wip_limit": 4} | m.policy
    m.rule("Nobody has more than {policy.wip_limit} <tasks> that are {state.doing} at a time.")
    m.rule("<A task> becomes {state.done} from {state.review} only.")
    _entities(m)
    _projects(m)
    _tasks(m)
    if m.has("milestones"):
        _milestones(m)
    if m.has("checklists"):
        _checklists(m)
    if m.has("time_sheets"):
        _time_sheets(m)
    if m.has("blockers"):
        _blockers(m)
    parts = {"checklists": "check", "time_sheets": "time_entry", "blockers": "blocker"}
    m.get("task", children=[part for feature, part in parts.items() if m.has(feature)])
    m.report(
        "report_<project>_progress",
        "project",
        ReturnTable(
            "project",
            "project",
            (
                Field("project_id", "int", "project.id", "Id of the <project>"),
                Field("project_name", "text", "project.name", "The <project>"),
                Field("open", "int", "count('task', project_id=project.id, status__ne=state.done)", "<Tasks> that are not done"),
                Field("done", "int", "count('task', project_id=project.id, status=state.done)", "<Tasks> that are"),
                Field(
                    "effort_left",
                    "int",
                    "total('task', 'effort', project_id=project.id, status__ne=state.done)",
                    "Effort of those that are not, in hours",
                ),
            ),
            order=("-effort_left", "project_name"),
        ),
        path="/reports/<project>-progress",
        summary="Count open and done <tasks> of each <project>",
        description="One row for each <project>, with the effort that is left, the most first.",
    )


def _entities(m: Kit) -> None:
    m.entity(
        "project",
        [
            text("name", "Name", unique=True),
            ref("lead_id", "user", "Who leads it", name="lead_id"),
            ref("party_id", "party", "<Party> that it is for", null=True) if m.has("clients") else None,
            day("begins_on", "First day"),
            day("ends_on", "Last day"),
            flag("is_closed", "Whether it is over"),
        ],
        label="name",
        checks=["ends_on >= begins_on"],
        shows=[Show("lead_name", "text", "self.lead.name", "Who leads it")],
    )
    if m.has("milestones"):
        m.entity(
            "milestone",
            [
                ref("project_id", "project", owned=True),
                text("title", "Title"),
                day("due_on", "Day by which it is to be reached"),
                flag("is_reached", "Whether it has been"),
            ],
            label="project_id title",
            uniques=["project_id title"],
        )
    m.entity(
        "task",
        [
            ref("project_id", "project", owned=True),
            text("title", "Title"),
            ref("assignee_id", "user", "Who does it", null=True, name="assignee_id"),
            ref("milestone_id", "milestone", null=True) if m.has("milestones") else None,
            choice("label", m.part.values.get("labels", ["task", "bug"]), "Label", null=True) if m.has("labels") else None,
            choice("priority", _PRIORITIES, "Priority", default="normal"),
            number("effort", "Effort in hours", low=1, high=400),
            m.status("todo", "doing", "review", "done"),
            day("due_on", "Day by which it should be done", null=True),
            created(),
            moment("finished_at", "When it was done", null=True, server=True),
        ],
        label="project_id title",
        uniques=["project_id title"],
        shows=[Show("assignee_name", "text", "self.assignee.name if self.assignee_id is not None else None", "Who does it")],
    )
    m.invariant("task", "(self.status == state.done) == (self.finished_at is not None)", "only what is done has a time of it")


def _projects(m: Kit) -> None:
    client = " party_id" if m.has("clients") else ""
    m.listing("project", search="name", filters="lead_id is_closed" + client, sorts="ends_on name", order="name")
    m.create(
        "project",
        "name lead_id begins_on ends_on" + client,
        before=[
            Require("lead.is_active", 409, "{lead.name} does not work here at present.", "lead_active"),
            Require("ends_on >= begins_on", 422, "The last day is not before the first.", "project_order"),
        ],
        verb="begin",
        action="begun",
    )
    m.update(
        "project",
        "lead_id ends_on",
        before=[
            _running("project"),
            Require(
                "ends_on is None or ends_on >= project.begins_on",
                422,
                "{project.name} began on {project.begins_on}.",
                "project_order",
            ),
        ],
    )
    m.act(
        "close",
        "project",
        [
            _running("project"),
            Require(
                "not exists('task', project_id=project.id, status__in=(state.doing, state.review))",
                409,
                "{project.name} has <tasks> that are under way; finish or put them back first.",
                "nothing_under_way",
            ),
            Change("project", {"is_closed": "True"}),
        ],
        description="Refused while any of its <tasks> is under way.",
    )


def _running(project: str) -> Require:
    return Require(f"not {project}.is_closed", 409, f"{{{project}.name}} is closed.", "project_running")


def _tasks(m: Kit) -> None:
    more = (" label" if m.has("labels") else "") + (" milestone_id" if m.has("milestones") else "")
    m.listing(
        "task",
        search="title",
        filters="project_id assignee_id status priority due_on effort" + more,
        sorts="due_on effort created_at",
        order="id",
    )
    same_project = (
        [
            Require(
                "milestone_id is None or exists('milestone', id=milestone_id, project_id=project.id)",
                409,
                "That <milestone> is none of {project.name}.",
                "own_milestone",
            )
        ]
        if m.has("milestones")
        else []
    )
    m.create(
        "task",
        "project_id title effort priority due_on" + more,
        values={"created_at": "now"},
        before=[
            _running("project"),
            *same_project,
            Require(
                "not exists('task', project_id=project.id, title=title)",
                409,
                "{project.name} has <a task> of that title already.",
                "title_unique",
            ),
        ],
        verb="add",
        action="added",
        description="It is {state.todo}, and nobody's yet. Titles are unique in <a project>.",
    )
    m.update("task", "effort priority due_on" + (" label" if m.has("labels") else ""), before=[_not_done()])
    m.act(
        "assign",
        "task",
        [
            _not_done(),
            Load("assignee", "user", "assignee_id"),
            Require("assignee.is_active", 409, "{assignee.name} does not work here at present.", "assignee_active"),
            Require(
                "task.status != state.doing or "
                "count('task', assignee_id=assignee.id, status=state.doing, id__ne=task.id) < policy.wip_limit",
                409,
                "{assignee.name} has {policy.wip_limit} <tasks> under way, which is the most.",
                "wip_limit",
            ),
            Change("task", {"assignee_id": "assignee.id"}),
        ],
        params=[Param("assignee_id", "ref", ref="user", name="assignee_id", about="Who is to do it")],
        method="PUT",
        path="/<<one>>/assignee",
        action="assigned",
        description="Refused for one who has {policy.wip_limit} under way, where it is under way itself.",
    )
    m.act(
        "start",
        "task",
        [
            Require("task.status == state.todo", 409, "<Task> {task.title} is {task.status}.", "is_todo"),
            Require("task.assignee_id is not None", 409, "Nobody does it yet; assign somebody first.", "has_assignee"),
            *_unblocked(m),
            Require(
                "count('task', assignee_id=task.assignee_id, status=state.doing) < policy.wip_limit",
                409,
                "{task.assignee.name} has {policy.wip_limit} <tasks> under way, which is the most.",
                "wip_limit",
            ),
            Change("task", {"status": "state.doing"}),
        ],
        action="started",
        description="It becomes {state.doing}. Whoever does it may have {policy.wip_limit} at a time.",
    )
    m.act(
        "hand_in",
        "task",
        [
            Require("task.status == state.doing", 409, "<Task> {task.title} is {task.status}.", "is_doing"),
            Change("task", {"status": "state.review"}),
        ],
        action="handed in",
        summary="Hand in <a task> for review",
        description="It becomes {state.review}.",
    )
    m.act(
        "finish",
        "task",
        [
            Require("task.status == state.review", 409, "<Task> {task.title} is {task.status}.", "is_in_review"),
            Change("task", {"status": "state.done", "finished_at": "now"}),
        ],
        action="finished",
        description="After its review; it becomes {state.done}.",
    )
    m.act(
        "put_back",
        "task",
        [
            Require("task.status in (state.doing, state.review)", 409, "<Task> {task.title} is {task.status}.", "under_way"),
            Change("task", {"status": "state.todo"}),
        ],
        action="put back",
        summary="Put <a task> back to the beginning",
        description="It becomes {state.todo} and stays with whoever does it.",
    )


def _not_done() -> Require:
    return Require("task.status != state.done", 409, "<Task> {task.title} is {task.status}.", "not_done")


def _unblocked(m: Kit) -> list[Require]:
    if not m.has("blockers"):
        return []
    return [
        Require(
            "not exists('blocker', task_id=task.id, is_lifted=False)",
            409,
            "Something holds it up; lift that first.",
            "not_blocked",
        )
    ]


def _milestones(m: Kit) -> None:
    m.listing("milestone", search="title", filters="project_id is_reached due_on", order="due_on")
    m.create(
        "milestone",
        "project_id title due_on",
        before=[
            _running("project"),
            Require("due_on >= project.begins_on", 422, "{project.name} begins on {project.begins_on}.", "within_project"),
            Require(
                "not exists('milestone', project_id=project.id, title=title)",
                409,
                "{project.name} has it already.",
                "milestone_once",
            ),
        ],
        verb="set",
        action="set",
    )
    m.act(
        "reach",
        "milestone",
        [
            Require("not milestone.is_reached", 409, "{milestone.title} is reached already.", "not_reached"),
            Require(
                "not exists('task', milestone_id=milestone.id, status__ne=state.done)",
                409,
                "{milestone.title} has <tasks> that are not {state.done}.",
                "all_done",
            ),
            Change("milestone", {"is_reached": "True"}),
        ],
        action="reached",
        summary="Note that <a milestone> is reached",
        description="Once all its <tasks> are {state.done}.",
    )


def _checklists(m: Kit) -> None:
    m.entity(
        "check",
        [ref("task_id", "task", owned=True), text("title", "What is to be done"), flag("is_ticked", "Whether it is done")],
        noun=("<task> check", "<task> checks"),
        label="task_id title",
        uniques=["task_id title"],
    )
    m.create(
        "check",
        "task_id title",
        before=[
            _not_done(),
            Require("not exists('check', task_id=task.id, title=title)", 409, "That is on its list already.", "check_once"),
        ],
        verb="add",
    )
    m.act(
        "tick",
        "check",
        [Require("not check.is_ticked", 409, "It is ticked already.", "not_ticked"), Change("check", {"is_ticked": "True"})],
        action="ticked",
        summary="Tick an entry of a list",
    )
    m.delete("check", verb="drop")


def _time_sheets(m: Kit) -> None:
    m.entity(
        "time_entry",
        [
            ref("task_id", "task", owned=True),
            ref("user_id", "user", "Who worked"),
            day("worked_on", "Day"),
            number("minutes", "Minutes", low=5, high=720),
        ],
        noun=("time entry", "time entries"),
        label="task_id worked_on",
    )
    m.listing("time_entry", filters="task_id user_id worked_on", order="-worked_on")
    m.create(
        "time_entry",
        "task_id user_id worked_on minutes",
        before=[
            Require("worked_on <= today", 422, "Today is {today}; work is noted once it is done.", "not_ahead"),
            Require(
                "total('time_entry', 'minutes', user_id=user.id, worked_on=worked_on) + minutes <= 720",
                409,
                "{user.name} has {total('time_entry', 'minutes', user_id=user.id, worked_on=worked_on)} minutes on that day; "
                "720 is the most.",
                "twelve_hours",
            ),
        ],
        verb="log",
        action="logged",
        summary="Note time spent on <a task>",
        description="At most 720 minutes a person and day.",
    )


def _blockers(m: Kit) -> None:
    m.entity(
        "blocker",
        [
            ref("task_id", "task", owned=True),
            text("reason", "What holds it up"),
            flag("is_lifted", "Whether that is over"),
            created("raised_at", "Since when"),
        ],
        noun=("<task> blocker", "<task> blockers"),
        label="task_id reason",
    )
    m.listing("blocker", search="reason", filters="task_id is_lifted", order="-id")
    m.create("blocker", "task_id reason", values={"raised_at": "now"}, before=[_not_done()], verb="raise", action="raised")
    m.act(
        "lift",
        "blocker",
        [Require("not blocker.is_lifted", 409, "It is lifted already.", "not_lifted"), Change("blocker", {"is_lifted": "True"})],
        action="lifted",
    )


def seed(s: Seeding) -> None:
    users, parties = s.rows("user", is_active=True), s.rows("party", is_blocked=False)
    for turn, name in enumerate(s.values("project_names", "Relaunch", "Moving house", "Yearly review", "Open day")[:6]):
        begins = s.at(-s.between(30, 120)).date()
        project = s.insert(
            "project",
            name=name,
            lead_id=users[turn % len(users)]["id"],
            party_id=s.pick(parties)["id"] if s.chance(60) else None,
            begins_on=begins,
            ends_on=begins + timedelta(days=s.between(60, 240)),
            is_closed=turn == 3,
        )
        if s.has("milestones"):
            for place, title in enumerate(("Plan agreed", "Half way", "Hand over")):
                due = begins + timedelta(days=25 * (place + 1))
                s.insert("milestone", project_id=project["id"], title=title, due_on=due, is_reached=False)
    _seed_tasks(s, users)


def _seed_tasks(s: Seeding, users: list[Row]) -> None:
    titles = s.values("task_titles", "Write the offer", "Call the supplier", "Check the list", "Order the material")
    doing: dict[int, int] = {}
    drawn = []
    for place, project in enumerate(s.rows("project")):
        own = [titles[(place * 5 + turn) % len(titles)] for turn in range(min(7, len(titles)))]
        drawn += [(s.past(2, 28), project, title) for title in own]
    for made, project, title in sorted(drawn, key=lambda draw: draw[0]):
        state = s.weighted(todo=5, doing=4, review=2, done=4)
        assignee = s.pick(users)
        if project["is_closed"] and state in ("doing", "review"):
            state = "done"
        if state == "doing" and doing.get(assignee["id"], 0) >= s.policy["wip_limit"]:
            state = "review"
        doing[assignee["id"]] = doing.get(assignee["id"], 0) + (state == "doing")
        milestones = s.rows("milestone", project_id=project["id"]) if s.has("milestones") else []
        task = s.insert(
            "task",
            project_id=project["id"],
            title=title,
            assignee_id=None if state == "todo" and s.chance(50) else assignee["id"],
            milestone_id=s.pick(milestones)["id"] if milestones and s.chance(70) else None,
            label=s.pick(s.values("labels", "task", "bug")) if s.chance(80) else None,
            priority=s.pick(_PRIORITIES),
            effort=s.number("effort", 1, 16),
            status=s.state[state],
            due_on=(made + timedelta(days=s.between(10, 60))).date() if s.chance(70) else None,
            created_at=made,
            finished_at=made + timedelta(hours=s.between(4, 40)) if state == "done" else None,
        )
        _seed_parts(s, task, assignee, state)
    if s.has("milestones"):
        for milestone in s.rows("milestone"):
            part = s.rows("task", milestone_id=milestone["id"])
            if part and all(task["status"] == s.state["done"] for task in part):
                s.change("milestone", milestone, is_reached=True)


def _seed_parts(s: Seeding, task: Row, assignee: Row, state: str) -> None:
    if s.has("checklists") and s.chance(45):
        for title in s.some(("Ask for prices", "Take photographs", "Tell the others", "Tidy up"), s.between(1, 3)):
            s.insert("check", task_id=task["id"], title=title, is_ticked=state == "done" or s.chance(30))
    if s.has("time_sheets") and state != "todo":
        day_ = task["created_at"].date()
        s.insert("time_entry", task_id=task["id"], user_id=assignee["id"], worked_on=day_, minutes=5 * s.between(3, 18))
    if s.has("blockers") and state in ("todo", "doing") and s.chance(20):
        s.insert(
            "blocker",
            task_id=task["id"],
            reason=s.pick(("Waits for an answer", "Material is late", "Nobody has the key")),
            is_lifted=state == "doing",
            raised_at=task["created_at"] + timedelta(hours=1),
        )
