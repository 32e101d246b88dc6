"""The frame of every scenario: who works here, whom it serves, where it happens and what it is about.

Past 300 lines and one file: tables, tools and start rows of a module are read together.
"""

from typing import Any

from awm_factory.llm.offline import people
from awm_factory.llm.offline.columns import cents, choice, created, day, flag, number, ref, text
from awm_factory.llm.offline.ir import Param
from awm_factory.llm.offline.kit import Kit
from awm_factory.llm.offline.seeding import Seeding, graded, price
from awm_factory.llm.offline.steps import Change, Insert, Require
from awm_factory.llm.offline.words import snake

FEATURES = ("activity", "notes", "addresses", "hours", "price_history")

_ADDRESS_KINDS = ("home", "work", "billing")


def build(m: Kit) -> None:
    pack = m.scenario.pack
    m.nouns |= {
        "user": pack.staff.noun,
        "party": pack.party.noun,
        "place": pack.place.noun,
        "item": pack.item.noun,
        "category": pack.item.category_noun,
    }
    m.scenario.nouns |= m.nouns
    _place(m)
    _user(m)
    _category_and_item(m)
    _party(m)
    if m.has("activity"):
        m.entity(
            "activity",
            [
                ref("user_id", "user", "Who did it"),
                text("action", "What was done"),
                text("subject", "What kind of record it was done to"),
                number("subject_id", "Id of that record", low=1),
                text("detail", "More about it", null=True),
                created(about="When it was done"),
            ],
            noun=("activity", "activity_log"),
            label="id",
        )
        m.listing(
            "activity",
            filters="subject subject_id",
            order="-id",
            name="list_activity",
            path="/activity",
            summary="List what was done lately",
            description="The activity log, latest entries first: who did what to which record.",
        )


def _place(m: Kit) -> None:
    m.entity(
        "place",
        [
            text("name", "Name", unique=True),
            text("address", "Address"),
            text("phone", "Telephone number"),
            flag("is_open", "Whether it is in use", default=True),
        ],
        label="name",
    )
    m.listing("place", search="name address", filters="is_open", order="name", summary="List <places>")
    if m.has("hours"):
        m.entity(
            "hours",
            [
                ref("place_id", "place", owned=True),
                number("weekday_mon0", "Day of the week, 0 is Monday", high=6),
                text("opens", "Opening time, HH:MM"),
                text("closes", "Closing time, HH:MM"),
            ],
            noun=("opening time", "opening times"),
            label=("place_id", "weekday_mon0"),
            uniques=("place_id weekday_mon0",),
        )
        m.get("place", children=("hours",), summary="Show one <place> with its opening times")


def _user(m: Kit) -> None:
    m.entity(
        "user",
        [
            text("name", "Full name", unique=True, name="full_name"),
            text("email", "E-mail address", unique=True),
            choice("role", [snake(role) for role in m.scenario.pack.staff.roles], "Role"),
            ref("place_id", "place", "<Place> where they work", null=True),
            flag("is_active", "Whether they work here at present", default=True),
        ],
        label="name",
    )
    m.listing(
        "user",
        search="name email",
        filters="role place_id is_active",
        order="name",
        summary="List <users>",
        name="list_" + snake(m.nouns["user"][1]),
    )


def _category_and_item(m: Kit) -> None:
    item = m.scenario.pack.item
    m.entity("category", [text("name", "Name", unique=True), number("position", "Place in lists", low=1)], label="name")
    m.listing("category", search="name", order="position")
    attributes = [
        choice(snake(attribute.name), attribute.values, attribute.name.replace("_", " ").capitalize())
        if attribute.values
        else number(snake(attribute.name), attribute.name.replace("_", " ").capitalize())
        for attribute in item.attributes
    ]
    priced = f"{snake(item.price_noun)}_cents"
    m.entity(
        "item",
        [
            text("name", "Name", unique=True),
            ref("category_id", "category"),
            *attributes,
            cents("price_cents", f"{item.price_noun.capitalize()} of one {item.unit}, in cents", name=priced),
            flag("is_active", "Whether it is offered at present", default=True),
            created(),
        ],
        label="name",
    )
    chosen = [column.key for column in attributes]
    m.listing(
        "item",
        search="name",
        filters=["category_id", *chosen, "price_cents", "is_active"],
        sorts="name price_cents",
        order="name",
    )
    m.get("item")
    m.create(
        "item", ["name", "category_id", *chosen, "price_cents"], values={"created_at": "now"}, phrases="add the <item> {name}"
    )
    if m.has("price_history"):
        m.entity(
            "price_change",
            [
                ref("item_id", "item", owned=True),
                cents("old_cents", "Before, in cents"),
                cents("new_cents", "After, in cents"),
                ref("user_id", "user", "Who changed it", name="changed_by_id"),
                created("changed_at", "When it was changed"),
            ],
            noun=(f"{item.price_noun} change", f"{item.price_noun} changes"),
            label=("item_id", "changed_at"),
        )
        _reprice(m)
    m.update("item", ["name", "category_id", *chosen, "is_active"] + ([] if m.has("price_history") else ["price_cents"]))


def _reprice(m: Kit) -> None:
    m.act(
        "reprice",
        "item",
        [
            Require(
                "new_cents != item.price_cents", 409, "<Item> {item.name} costs {money(new_cents)} already.", "price_differs"
            ),
            Insert(
                "change",
                "price_change",
                {
                    "item_id": "item.id",
                    "old_cents": "item.price_cents",
                    "new_cents": "new_cents",
                    "user_id": "1",
                    "changed_at": "now",
                },
            ),
            Change("item", {"price_cents": "new_cents"}),
        ],
        params=[Param("new_cents", "money", low=0, about="New price in cents")],
        method="PUT",
        path="/<<one>>/price",
        action="repriced",
        summary="Set another price for <a item>",
        description="Keeps the old one in the history. Answers the <item>.",
    )
    m.listing("price_change", filters="item_id changed_at", order="-changed_at")


def _party(m: Kit) -> None:
    party = m.scenario.pack.party
    person = party.kind == "person"
    m.entity(
        "party",
        [
            text("name", "Full name" if person else "Name", unique=True, name="full_name" if person else "name"),
            None if person else text("contact_name", "Whom to speak with there"),
            text("email", "E-mail address", unique=True),
            text("phone", "Telephone number", null=True),
            choice(
                "group",
                [snake(group) for group in party.groups],
                party.group_noun.replace("_", " ").capitalize(),
                name=snake(party.group_noun),
            ),
            text("town", "Town", null=True),
            day("joined_on", "Since when they are known here", server=True),
            flag("is_blocked", "Whether nothing new may be entered for them"),
        ],
        label="name",
    )
    fields = ["name", *(() if person else ("contact_name",)), "email", "phone", "group", "town"]
    m.listing("party", search="name email", filters="group town is_blocked joined_on", sorts="name joined_on", order="name")
    children = [child for child in ("addresses", "notes") if m.has(child)]
    if m.has("addresses"):
        m.entity(
            "address",
            [
                ref("party_id", "party", owned=True),
                choice("kind", _ADDRESS_KINDS, "What it is used for"),
                text("street", "Street and number"),
                text("town", "Town"),
                text("postcode", "Postcode"),
            ],
            noun=("address", "addresses"),
            label=("party_id", "kind"),
            uniques=("party_id kind",),
        )
    if m.has("notes"):
        m.entity(
            "note",
            [
                ref("party_id", "party", owned=True),
                ref("user_id", "user", "Who wrote it", name="author_id"),
                text("body", "What it says"),
                flag("is_pinned", "Whether it is shown first"),
                created(),
            ],
            noun=("<party> note", "<party> notes"),
            label=("party_id", "body"),
        )
    m.get("party", children=[{"addresses": "address", "notes": "note"}[child] for child in children])
    m.create("party", fields, values={"joined_on": "today"}, verb="register", action="registered")
    m.update("party", [*fields, "is_blocked"])
    if m.has("addresses"):
        m.create(
            "address",
            "party_id kind street town postcode",
            before=[
                Require(
                    "not exists('frame.address', party_id=party.id, kind=kind)",
                    409,
                    "{party.name} has {kind} as an address already; change that one.",
                    "one_address_of_a_kind",
                )
            ],
            verb="add",
            name="add_address",
        )
        m.update("address", "street town postcode")
    if m.has("notes"):
        m.create("note", "party_id body is_pinned", values={"user_id": "1", "created_at": "now"}, verb="add")
        m.delete("note")


def seed(s: Seeding) -> None:
    pack = s.kit.scenario.pack
    site = f"{snake(pack.name).replace('_', '')[:20]}.example"
    addresses = people.streets(s.rng, len(pack.place.names))
    for name, address in zip(pack.place.names, addresses, strict=True):
        s.insert("place", name=name, address=f"{address}, {people.town(s.rng)}", phone=people.phone(s.rng), is_open=True)
    places = s.rows("place")
    everybody = people.people(s.rng, 40)
    roles = [snake(role) for role in pack.staff.roles]
    for index, person in enumerate(everybody[:8]):
        s.insert(
            "user",
            name=person.name,
            email=person.email(site),
            role=roles[index % len(roles)],
            place_id=places[index % len(places)]["id"] if index % 5 != 4 else None,
            is_active=index not in (5,),
        )
    _seed_items(s)
    _seed_parties(s, everybody[8:])
    if s.has("hours"):
        for place in places:
            early, late = s.pick(("07:30", "08:00", "09:00")), s.pick(("17:30", "18:00", "19:00"))
            for weekday in range(6):
                s.insert(
                    "hours", place_id=place["id"], weekday_mon0=weekday, opens=early, closes="13:00" if weekday == 5 else late
                )


def _seed_items(s: Seeding) -> None:
    item = s.kit.scenario.pack.item
    for position, title in enumerate(item.names, start=1):
        s.insert("category", name=title, position=position)
    for category in s.rows("category"):
        low, high = item.prices.get(category["name"], item.price)
        rows: list[dict[str, Any]] = []
        for name in item.names[category["name"]]:
            drawn = {
                snake(attribute.name): s.pick(attribute.values)
                if attribute.values
                else s.rng.randint(*(round(bound) for bound in attribute.range or (1, 10)))
                for attribute in item.attributes
            }
            rows.append(drawn | {"price_cents": price(s.rng, low, high), "is_active": not s.chance(8)})
            rows[-1] |= {"name": name, "category_id": category["id"], "created_at": s.past(150, 400)}
        prices = graded([row["name"] for row in rows], [row["price_cents"] for row in rows])
        for one, price_cents in zip(rows, prices, strict=True):
            s.insert("item", **(one | {"price_cents": price_cents}))
    if s.has("price_history"):
        for row in s.some(s.rows("item"), 8):
            old = max(10, row["price_cents"] * s.between(80, 95) // 1000 * 10)
            s.insert(
                "price_change",
                item_id=row["id"],
                old_cents=old,
                new_cents=row["price_cents"],
                user_id=s.between(1, 4),
                changed_at=s.past(5, 90),
            )


def _seed_parties(s: Seeding, persons: list[people.Person]) -> None:
    party = s.kit.scenario.pack.party
    groups = [snake(group) for group in party.groups]
    names = [person.name for person in persons[:26]] if party.kind == "person" else party.names
    for index, name in enumerate(names):
        person = persons[index % len(persons)]
        site = s.pick(("postbox.example", "mailhaven.example", "inbox.example"))
        s.insert(
            "party",
            name=name,
            contact_name=person.name,
            email=person.email(site)
            if party.kind == "person"
            else f"office@{snake(name).replace('_', '-')[:30].strip('-')}.example",
            phone=people.phone(s.rng) if not s.chance(15) else None,
            group=s.pick(groups),
            town=people.town(s.rng),
            joined_on=s.past(130, 1500).date(),
            is_blocked=index % 11 == 7,
        )
    if s.has("addresses"):
        for member in s.rows("party"):
            for kind in _ADDRESS_KINDS[: s.between(0, 2)]:
                s.insert(
                    "address",
                    party_id=member["id"],
                    kind=kind,
                    street=people.street(s.rng),
                    town=people.town(s.rng),
                    postcode=f"{s.between(10, 99)}{s.between(100, 999)}",
                )
    if s.has("notes"):
        bodies = (
            "Prefers to be called before noon.",
            "Asked for invoices by post.",
            "Speaks Spanish and English.",
            "Pays on the last day of the month.",
            "Has moved lately; check the address.",
        )
        for member in s.some(s.rows("party"), 10):
            s.insert(
                "note",
                party_id=member["id"],
                user_id=s.between(1, 4),
                body=s.pick(bodies),
                is_pinned=s.chance(25),
                created_at=s.past(),
            )
