"""Double-entry books: accounts, and entries whose two sides agree, drafted, posted and reversed.

Past 300 lines and one file: tables, tools and start rows of a module are read together.
"""

from datetime import timedelta

from awm_factory.llm.offline.columns import cents, choice, created, day, flag, moment, ref, text
from awm_factory.llm.offline.ir import Param
from awm_factory.llm.offline.kit import Kit
from awm_factory.llm.offline.seeding import Seeding
from awm_factory.llm.offline.steps import Change, Field, Find, Load, Require, ReturnTable

FEATURES = ("parties", "periods", "budgets", "attachments", "cost_places", "approvals")

_KINDS = ("asset", "liability", "income", "expense", "equity")
_ACCOUNTS = (
    *("Bank:asset", "Cash:asset", "Receivables:asset", "Payables:liability", "Sales:income", "Rent:expense", "Supplies:expense"),
    "Capital:equity",
)


def build(m: Kit) -> None:
    m.policy = {"approve_over": 500} | m.policy
    m.rule("A balance is changed by nothing but posting <a entry> or taking one back.")
    if m.has("approvals"):
        m.rule("<A entry> over {policy.approve_over}.00 is approved before it is posted.")
    _entities(m)
    _accounts(m)
    _entries(m)
    if m.has("periods"):
        _periods(m)
    if m.has("budgets"):
        _budgets(m)
    if m.has("attachments"):
        _attachments(m)
    m.get("entry", children=["voucher"] if m.has("attachments") else [])


def _entities(m: Kit) -> None:
    m.entity(
        "account",
        [
            text("name", "Name", unique=True),
            choice("kind", _KINDS, "Kind"),
            cents("balance_cents", "Balance, in cents: debits less credits", low=None, server=True, default=0),
            flag("is_open", "Whether it is posted to", default=True),
        ],
        label="name",
    )
    if m.has("periods"):
        m.entity(
            "period",
            [
                text("name", "Name", unique=True),
                day("starts_on", "First day"),
                day("ends_on", "Last day"),
                flag("is_closed", "Whether it is closed"),
            ],
            noun=("<account> period", "<account> periods"),
            label="name",
            checks=["ends_on > starts_on"],
        )
    m.entity(
        "entry",
        [
            text("reference", "Reference", unique=True, server=True),
            text("memo", "What it is for", high=200),
            ref("debit_account_id", "account", "<Account> that is debited"),
            ref("credit_account_id", "account", "<Account> that is credited"),
            cents("amount_cents", "How much, in cents", low=1),
            day("dated_on", "Day it belongs to"),
            m.status("draft", "posted", "reversed"),
            ref("party_id", "party", null=True) if m.has("parties") else None,
            ref("place_id", "place", null=True) if m.has("cost_places") else None,
            ref("approver_id", "user", "Who approved it", null=True, server=True) if m.has("approvals") else None,
            created(),
            moment("posted_at", "When it was posted", null=True, server=True),
        ],
        label="reference",
        checks=["debit_account_id != credit_account_id"],
    )
    m.invariant("entry", "(self.status == state.draft) == (self.posted_at is None)", "what left the drafts was posted")
    m.invariant(
        "account",
        "self.balance_cents == total('entry', 'amount_cents', debit_account_id=self.id, status=state.posted)"
        " - total('entry', 'amount_cents', credit_account_id=self.id, status=state.posted)",
        "a balance is what was posted to it",
    )


def _accounts(m: Kit) -> None:
    m.listing("account", search="name", filters="kind is_open balance_cents", order="name")
    m.get("account")
    m.create("account", "name kind", verb="open", action="opened")
    m.act(
        "close",
        "account",
        [
            Require("account.is_open", 409, "{account.name} is closed already.", "account_open"),
            Require(
                "account.balance_cents == 0",
                409,
                "{account.name} holds {money(account.balance_cents)}; bring it to 0 first.",
                "account_empty",
            ),
            Change("account", {"is_open": "False"}),
        ],
        action="closed",
        summary="Close <a account>",
        description="Refused while its balance is not 0.",
    )
    m.report(
        "trial_balance",
        "account",
        ReturnTable(
            "account",
            "account",
            (
                Field("account_id", "int", "account.id", "Id of the <account>"),
                Field("name", "text", "account.name", "Name of the <account>"),
                Field("kind", "text", "account.kind", "Kind of the <account>"),
                Field(
                    "debits_cents",
                    "money",
                    "total('entry', 'amount_cents', debit_account_id=account.id, status=state.posted)",
                    "Posted debits",
                ),
                Field(
                    "credits_cents",
                    "money",
                    "total('entry', 'amount_cents', credit_account_id=account.id, status=state.posted)",
                    "Posted credits",
                ),
            ),
            order=("name",),
        ),
        path="/reports/trial-balance",
        summary="Show the debits and credits of every <account>",
        description="Posted <entries> only, in cents; all debits and all credits come to the same.",
    )


def _entries(m: Kit) -> None:
    own = (" party_id" if m.has("parties") else "") + (" place_id" if m.has("cost_places") else "")
    m.listing(
        "entry",
        search="reference memo",
        filters=f"debit_account_id credit_account_id status dated_on amount_cents{own}",
        sorts="dated_on amount_cents",
        order="-dated_on",
    )
    before = [
        Require("debit_account_id != credit_account_id", 422, "Name two different <accounts>.", ""),
        Require("debit_account.is_open", 409, "{debit_account.name} is closed.", "accounts_open"),
        Require("credit_account.is_open", 409, "{credit_account.name} is closed.", "accounts_open"),
    ]
    m.create(
        "entry",
        f"memo debit_account_id credit_account_id amount_cents dated_on{own}",
        values={"reference": "serial('entry', 'J')", "created_at": "now"},
        before=before,
        verb="draft",
        action="drafted",
        summary="Draft <a entry>",
        description="Changes no balance until it is posted.",
    )
    draft = Require("entry.status == state.draft", 409, "<Entry> {entry.reference} is {entry.status}.", "entry_draft")
    m.update("entry", f"memo amount_cents dated_on{own}", before=[draft])
    m.act(
        "post",
        "entry",
        [draft, *_may_post(m), *_sides("+"), Change("entry", {"status": "state.posted", "posted_at": "now"})],
        action="posted",
        summary="Post <a entry>",
        description=_post_description(m),
    )
    m.act(
        "reverse",
        "entry",
        [
            Require("entry.status == state.posted", 409, "<Entry> {entry.reference} is {entry.status}.", "entry_posted"),
            *_period_open(m),
            *_sides("-"),
            Change("entry", {"status": "state.reversed"}),
        ],
        action="reversed",
        summary="Take back <a entry> that was posted",
        description="Both balances become what they would be without it.",
    )
    m.delete("entry", before=[draft], verb="discard", summary="Discard <a entry> that is {state.draft}")
    if m.has("approvals"):
        m.act(
            "approve",
            "entry",
            [
                draft,
                Load("approver", "user", "approver_id"),
                Require("approver.is_active", 409, "{approver.name} does not work here at present.", "approver_active"),
                Require("entry.approver_id is None", 409, "{entry.approver.name} approved it already.", "approved_once"),
                Change("entry", {"approver_id": "approver.id"}),
            ],
            params=[Param("approver_id", "ref", ref="user", name="approver_id", about="Who approved it")],
            action="approved",
            summary="Note who approved <a entry>",
            description="Needed before one over {policy.approve_over}.00 is posted.",
        )


def _post_description(m: Kit) -> str:
    approved = "One over {policy.approve_over}.00 needs an approver. " if m.has("approvals") else ""
    return f"{approved}Both balances change; it can't be changed after that, only reversed."


def _sides(sign: str) -> list[Change | Find]:
    other = "-" if sign == "+" else "+"
    return [
        Find("debited", "account", {"id": "entry.debit_account_id"}),
        Find("credited", "account", {"id": "entry.credit_account_id"}),
        Change("debited", {"balance_cents": f"debited.balance_cents {sign} entry.amount_cents"}),
        Change("credited", {"balance_cents": f"credited.balance_cents {other} entry.amount_cents"}),
    ]


def _may_post(m: Kit) -> list[Require]:
    steps = list(_period_open(m))
    if m.has("approvals"):
        steps.append(
            Require(
                "entry.amount_cents <= policy.approve_over * 100 or entry.approver_id is not None",
                409,
                "<Entry> {entry.reference} is over {money(policy.approve_over * 100)} and needs an approver first.",
                "approve_over",
            )
        )
    return steps


def _period_open(m: Kit) -> list[Require]:
    if not m.has("periods"):
        return []
    condition = "not exists('period', starts_on__le=entry.dated_on, ends_on__ge=entry.dated_on, is_closed=True)"
    return [Require(condition, 409, "The period of {entry.dated_on} is closed.", "period_open")]


def _periods(m: Kit) -> None:
    m.listing("period", search="name", filters="is_closed", order="starts_on")
    m.act(
        "close",
        "period",
        [
            Require("not period.is_closed", 409, "{period.name} is closed already.", "period_not_closed"),
            Require(
                "not exists('entry', dated_on__ge=period.starts_on, dated_on__le=period.ends_on, status=state.draft)",
                409,
                "{period.name} holds <entries> that are {state.draft}; post or discard them first.",
                "period_settled",
            ),
            Change("period", {"is_closed": "True"}),
        ],
        action="closed",
        summary="Close a period of the books",
        description="Nothing of it is posted or reversed after that.",
    )


def _budgets(m: Kit) -> None:
    m.entity(
        "budget",
        [
            ref("account_id", "account", owned=True),
            day("month", "First day of the month"),
            cents("limit_cents", "How much may be debited in it, in cents"),
        ],
        noun=("<account> budget", "<account> budgets"),
        label="account_id month",
        uniques=["account_id month"],
    )
    m.listing("budget", filters="account_id month limit_cents", order="month")
    m.act(
        "set",
        "budget",
        [
            Require("limit_cents != budget.limit_cents", 409, "The limit is {money(limit_cents)} already."),
            Change("budget", {"limit_cents": "limit_cents"}),
        ],
        params=[Param("limit_cents", "money", low=0, about="How much may be debited in its month, in cents")],
        method="PUT",
        path="/<<one>>/limit",
        action="set",
        summary="Set the limit of <a budget>",
        description="Nothing is refused past it; it only tells.",
    )


def _attachments(m: Kit) -> None:
    m.entity(
        "voucher",
        [ref("entry_id", "entry", owned=True), text("title", "What it is"), created("filed_at", "When it was filed")],
        noun=("<entry> voucher", "<entry> vouchers"),
        label="entry_id title",
        uniques=["entry_id title"],
    )
    m.listing("voucher", search="title", filters="entry_id filed_at", order="-filed_at")
    m.create(
        "voucher",
        "entry_id title",
        values={"filed_at": "now"},
        before=[
            Require(
                "not exists('voucher', entry_id=entry.id, title=title)", 409, "{title} is filed with it already.", "voucher_once"
            )
        ],
        verb="file",
        action="filed",
        summary="File a voucher with <a entry>",
        description="Each title once.",
    )
    m.delete("voucher", verb="remove")


def seed(s: Seeding) -> None:
    for named in s.values("accounts", *_ACCOUNTS):
        name, _, kind = named.partition(":")
        s.insert("account", name=name, kind=kind if kind in _KINDS else "asset", balance_cents=0, is_open=True)
    accounts = s.rows("account")
    if s.has("periods"):
        for number, (name, start, end) in enumerate(
            (("October", -92, -62), ("November", -61, -32), ("December", -31, -1), ("January", 0, 30))
        ):
            s.insert(
                "period",
                name=f"{name} {s.at(start).year}",
                starts_on=s.at(start).date(),
                ends_on=s.at(end).date(),
                is_closed=number < 2,
            )
    for created_at in sorted(s.past(1, 58) for _ in range(36)):
        debit, credit = s.some(s.shuffled(accounts), 2)
        young = (s.now - created_at).days < 25
        state = s.weighted(draft=3, posted=5, reversed=1) if young else s.weighted(posted=8, reversed=1)
        amount = s.cents("amount", 10, 800)
        entry = s.insert(
            "entry",
            reference=f"J-{1001 + s.world.count('ledger.entry')}",
            memo=s.pick(s.values("memos", "Monthly rent", "Office supplies", "Bank charges", "Cash count")),
            debit_account_id=debit["id"],
            credit_account_id=credit["id"],
            amount_cents=amount,
            dated_on=created_at.date(),
            status=s.state[state],
            party_id=s.pick(s.rows("party"))["id"] if s.chance(60) else None,
            place_id=s.pick(s.rows("place"))["id"] if s.chance(70) else None,
            approver_id=s.pick(s.rows("user", is_active=True))["id"]
            if state != "draft" and amount > s.policy["approve_over"] * 100
            else None,
            created_at=created_at,
            posted_at=created_at + timedelta(hours=s.between(1, 6)) if state != "draft" else None,
        )
        if state == "posted":
            for account_id, change in ((debit["id"], amount), (credit["id"], -amount)):
                account = s.row("account", account_id)
                s.change("account", account, balance_cents=account["balance_cents"] + change)
        if s.has("attachments") and s.chance(35):
            s.insert(
                "voucher",
                entry_id=entry["id"],
                title=s.pick(("Receipt", "Delivery note", "Contract", "Bank statement")),
                filed_at=created_at + timedelta(minutes=10),
            )
    s.insert(
        "account",
        name="Suspense" if all(row["name"] != "Suspense" for row in accounts) else "Clearing",
        kind="asset",
        balance_cents=0,
        is_open=True,
    )
    if s.has("budgets"):
        month = s.today.replace(day=1)
        for account in s.rows("account", kind="expense"):
            s.insert("budget", account_id=account["id"], month=month, limit_cents=s.between(4, 60) * 5000)
