"""Reviews: what parties say about items, looked at before it is shown, and answered.

Past 300 lines and one file: tables, tools and start rows of a module are read together.
"""

from datetime import timedelta

from awm_factory.llm.offline.columns import choice, created, flag, moment, number, ref, text
from awm_factory.llm.offline.ir import Param, Show
from awm_factory.llm.offline.kit import NOT_BLOCKED, Kit
from awm_factory.llm.offline.seeding import Seeding
from awm_factory.llm.offline.steps import Change, Field, Require, ReturnTable

FEATURES = ("aspects", "votes", "reports", "places", "questions", "highlights")

_REASONS = ("insulting", "off_topic", "advertising", "wrong_item")


def build(m: Kit) -> None:
    m.policy = {"edit_days": 7} | m.policy
    m.rule("<A party> writes one <review> about <a item>, and may change it for {policy.edit_days} days.")
    m.rule("<A review> is shown once it is {state.published}; one that is {state.hidden} stays on file.")
    m.entity(
        "review",
        [
            ref("party_id", "party"),
            ref("item_id", "item"),
            ref("place_id", "place", "<Place> that it is about", null=True) if m.has("places") else None,
            number("rating", "From 1, poor, to 5, very good", low=1, high=5),
            number("service_rating", "The same for the service", low=1, high=5, null=True) if m.has("aspects") else None,
            number("value_rating", "The same for value for money", low=1, high=5, null=True) if m.has("aspects") else None,
            text("comment", "What they say"),
            m.status("pending", "published", "hidden"),
            flag("is_highlighted", "Whether it is shown first") if m.has("highlights") else None,
            created(),
            moment("published_at", "When it was first shown", null=True, server=True),
        ],
        label="party_id item_id",
        uniques=["party_id item_id"],
    )
    m.entity(
        "reply",
        [
            ref("review_id", "review", owned=True),
            ref("user_id", "user", "Who wrote it", name="author_id"),
            text("body", "What it says"),
            created("replied_at", "When it was written"),
        ],
        label="review_id",
        uniques=["review_id"],
        shows=[Show("author_name", "text", "self.user.name", "Who wrote it")],
    )
    m.invariant(
        "review",
        "self.status != state.published or self.published_at is not None",
        "what is shown has a time since when",
    )
    _reviews(m)
    _replies(m)
    if m.has("votes"):
        _votes(m)
    if m.has("reports"):
        _reports(m)
    children = ["reply", *(["vote"] if m.has("votes") else []), *(["complaint"] if m.has("reports") else [])]
    m.get("review", children=children)
    if m.has("questions"):
        _questions(m)


def _reviews(m: Kit) -> None:
    more = (" place_id" if m.has("places") else "") + (" service_rating value_rating" if m.has("aspects") else "")
    m.listing(
        "review",
        search="comment",
        filters="party_id item_id rating status created_at"
        + (" place_id" if m.has("places") else "")
        + (" is_highlighted" if m.has("highlights") else ""),
        sorts="rating created_at",
        order="-id",
    )
    m.create(
        "review",
        f"party_id item_id{more} rating comment",
        values={"created_at": "now"},
        before=[
            NOT_BLOCKED,
            Require(
                "not exists('review', party_id=party.id, item_id=item.id)",
                409,
                "{party.name} has said something about {item.name} already; change that.",
                "reviewed_once",
            ),
        ],
        verb="write",
        action="written",
        description="It is {state.pending} until somebody has looked at it.",
    )
    m.update(
        "review",
        "rating comment" + (" service_rating value_rating" if m.has("aspects") else ""),
        before=[
            Require(
                "review.created_at >= now - days(policy.edit_days)",
                409,
                "It was written at {review.created_at} and could be changed for {policy.edit_days} days.",
                "edit_in_time",
            )
        ],
        description="Possible for {policy.edit_days} days. What is left out stays as it is.",
    )
    m.act(
        "publish",
        "review",
        [
            Require("review.status != state.published", 409, "It is {review.status} already.", "not_published"),
            Change(
                "review",
                {"status": "state.published", "published_at": "now if review.published_at is None else review.published_at"},
            ),
        ],
        action="published",
        summary="Show <a review>",
        description="Also one that was hidden before.",
    )
    m.act(
        "hide",
        "review",
        [
            Require("review.status != state.hidden", 409, "It is {review.status} already.", "not_hidden"),
            Change("review", {"status": "state.hidden"} | ({"is_highlighted": "False"} if m.has("highlights") else {})),
        ],
        action="hidden",
        summary="Hide <a review>",
        description="It stays on file.",
    )
    if m.has("highlights"):
        m.act(
            "highlight",
            "review",
            [
                Require(
                    "review.status == state.published",
                    409,
                    "Only what is shown can be highlighted; it is {review.status}.",
                    "shown",
                ),
                Require("review.rating >= 4", 409, "Its rating is {review.rating}; 4 or better is highlighted.", "good_rating"),
                Require(
                    "not exists('review', item_id=review.item_id, is_highlighted=True)",
                    409,
                    "{review.item.name} has one that is highlighted.",
                    "one_highlight",
                ),
                Change("review", {"is_highlighted": "True"}),
            ],
            summary="Show <a review> first",
            description="One a <item>, of 4 or better.",
        )
    _ratings(m)


def _ratings(m: Kit) -> None:
    shown = "item_id=item.id, status=state.published"
    m.report(
        "report_<item>_ratings",
        "review",
        ReturnTable(
            "item",
            "item",
            (
                Field("item_id", "int", "item.id", "Id of the <item>"),
                Field("item_name", "text", "item.name", "The <item>"),
                Field("shown", "int", f"count('review', {shown})", "<Reviews> that are shown"),
                Field("good", "int", f"count('review', {shown}, rating__ge=4)", "Of these, with 4 or 5"),
                Field("poor", "int", f"count('review', {shown}, rating__le=2)", "Of these, with 1 or 2"),
            ),
            when=f"exists('review', {shown})",
            order=("-shown", "item_name"),
        ),
        path="/reports/<item>-ratings",
        summary="Count good and poor <reviews> of each <item>",
        description="Those that are shown, by <item>; the one with most first.",
    )


def _replies(m: Kit) -> None:
    m.create(
        "reply",
        "review_id body",
        values={"user_id": "1", "replied_at": "now"},
        before=[
            Require("review.status != state.hidden", 409, "It is {review.status}; there is nothing to answer.", "not_hidden"),
            Require("not exists('reply', review_id=review.id)", 409, "There is an answer to it already.", "replied_once"),
        ],
        verb="write",
        summary="Answer <a review>",
        action="written",
        description="In the name of the one signed in; one answer each.",
    )
    m.update("reply", "body")
    m.delete("reply")


def _votes(m: Kit) -> None:
    m.entity(
        "vote",
        [
            ref("review_id", "review", owned=True),
            ref("party_id", "party"),
            flag("is_helpful", "Whether it helped them"),
            created(),
        ],
        noun=("<review> vote", "<review> votes"),
        label="review_id party_id",
        uniques=["review_id party_id"],
    )
    m.create(
        "vote",
        "review_id party_id is_helpful",
        values={"created_at": "now"},
        before=[
            Require("review.status == state.published", 409, "It is {review.status}, and not shown.", "shown"),
            Require("review.party_id != party.id", 409, "{party.name} wrote it themselves.", "not_own"),
            Require(
                "not exists('vote', review_id=review.id, party_id=party.id)",
                409,
                "{party.name} has voted on it already.",
                "vote_once",
            ),
        ],
        verb="cast",
        action="cast",
        summary="Note whether <a review> helped a <party>",
        description="One vote each, and none on one's own.",
    )
    m.listing("vote", filters="review_id party_id is_helpful")


def _reports(m: Kit) -> None:
    m.entity(
        "complaint",
        [
            ref("review_id", "review", owned=True),
            choice("reason", _REASONS, "What is wrong with it"),
            flag("is_settled", "Whether somebody has dealt with it"),
            created(),
        ],
        noun=("<review> objection", "<review> objections"),
        label="review_id reason",
        uniques=["review_id reason"],
    )
    m.listing("complaint", filters="review_id reason is_settled", order="-id")
    m.create(
        "complaint",
        "review_id reason",
        values={"created_at": "now"},
        before=[
            Require(
                "not exists('complaint', review_id=review.id, reason=reason)",
                409,
                "That objection to it is on file already.",
                "objected_once",
            )
        ],
        verb="file",
        summary="Object to <a review>",
        action="filed",
    )
    m.act(
        "settle",
        "complaint",
        [
            Require("not complaint.is_settled", 409, "It is settled already.", "not_settled"),
            Change("complaint", {"is_settled": "True"}),
        ],
        description="Nothing happens to the <review>; hide it for that.",
    )


def _questions(m: Kit) -> None:
    m.entity(
        "question",
        [
            ref("item_id", "item"),
            ref("party_id", "party"),
            text("body", "What they ask"),
            text("answer", "The answer", null=True),
            ref("answerer_id", "user", "Who answered", null=True, name="answered_by_id"),
            created("asked_at", "When it was asked"),
        ],
        noun=("<item> question", "<item> questions"),
        label="party_id body",
    )
    m.listing("question", search="body", filters="item_id party_id asked_at", order="-id")
    m.create(
        "question",
        "item_id party_id body",
        values={"asked_at": "now"},
        before=[NOT_BLOCKED],
        verb="ask",
        summary="Enter a question about <a item>",
    )
    m.act(
        "answer",
        "question",
        [
            Require("question.answer is None", 409, "It has an answer already.", "not_answered"),
            Change("question", {"answer": "answer", "answerer_id": "1"}),
        ],
        params=[Param("answer", "text", low=1, high=300, about="The answer")],
        description="In the name of the one signed in; once.",
    )


def seed(s: Seeding) -> None:
    parties, items = s.rows("party", is_blocked=False), s.rows("item", is_active=True)
    users, places = s.rows("user", is_active=True), s.rows("place")
    comments = s.values("comments", "Just as described.", "Could be better.")
    replies = s.values("replies", "Thank you for telling us.", "We are sorry about that.")
    pairs = [(party, item) for party in s.some(parties, 16) for item in s.some(items, s.between(1, 3))]
    for created_at, (party, item) in zip(sorted(s.past(1, 150) for _ in pairs), s.shuffled(pairs), strict=True):
        state = s.weighted(pending=3, published=7, hidden=2)
        rating = int(s.weighted(**{"5": 5, "4": 5, "3": 3, "2": 2, "1": 2}))
        shown = created_at + timedelta(hours=s.between(1, 14))
        review = s.insert(
            "review",
            party_id=party["id"],
            item_id=item["id"],
            place_id=s.pick(places)["id"] if s.chance(60) else None,
            rating=rating,
            service_rating=s.between(1, 5) if s.chance(70) else None,
            value_rating=s.between(1, 5) if s.chance(70) else None,
            comment=s.pick(comments),
            status=s.state[state],
            is_highlighted=False,
            created_at=created_at,
            published_at=shown if state == "published" or (state == "hidden" and s.chance(50)) else None,
        )
        if state == "published" and s.chance(45):
            s.insert(
                "reply",
                review_id=review["id"],
                user_id=s.pick(users)["id"],
                body=s.pick(replies),
                replied_at=min(shown + timedelta(hours=5), s.now),
            )
        if s.has("votes") and state == "published":
            for voter in s.some([voter for voter in parties if voter["id"] != party["id"]], s.between(0, 2)):
                s.insert("vote", review_id=review["id"], party_id=voter["id"], is_helpful=s.chance(70), created_at=shown)
        if s.has("reports") and s.chance(20):
            s.insert("complaint", review_id=review["id"], reason=s.pick(_REASONS), is_settled=s.chance(40), created_at=shown)
    if s.has("highlights"):
        chosen: set[int] = set()
        for review in s.rows("review", status=s.state["published"], rating__ge=4)[:5]:
            if review["item_id"] not in chosen:
                chosen.add(review["item_id"])
                s.change("review", review, is_highlighted=True)
    if s.has("questions"):
        bodies = ("Is it available next month?", "How long does it last?", "Who is it suited for?", "Is there a smaller one?")
        for turn, asked_at in enumerate(sorted(s.past(1, 60) for _ in range(9))):
            answered = s.chance(50)
            s.insert(
                "question",
                item_id=s.pick(items)["id"],
                party_id=parties[turn % len(parties)]["id"],
                body=bodies[turn % len(bodies)],
                answer="Yes, please ask at the counter." if answered else None,
                answerer_id=s.pick(users)["id"] if answered else None,
                asked_at=asked_at,
            )
