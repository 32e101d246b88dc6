"""Catalogue: how items are presented: listings with texts and states, bundles, tags and prices for a time.

Past 300 lines and one file: tables, tools and start rows of a module are read together.
"""

from datetime import timedelta

from awm_factory.llm.offline.columns import cents, created, day, number, ref, text
from awm_factory.llm.offline.ir import Show
from awm_factory.llm.offline.kit import Kit
from awm_factory.llm.offline.seeding import Seeding
from awm_factory.llm.offline.steps import Change, Field, Require, ReturnTable
from awm_factory.llm.offline.values import Row

FEATURES = ("bundles", "specials", "suggestions", "places", "translations", "stock_notes")

_LANGUAGES = ("de", "fr", "es", "it")


def build(m: Kit) -> None:
    m.rule("<A item> is shown once its entry is {state.listed}; one that is {state.retired} is never shown again.")
    m.entity("tag", [text("name", "Name", unique=True)], noun=("<item> tag", "<item> tags"), label="name")
    m.entity(
        "entry",
        [
            ref("item_id", "item", unique=True),
            text("headline", "Headline"),
            text("body", "Description"),
            number("rank", "Its place in lists", low=1, default=100),
            ref("place_id", "place", "<Place> where it can be seen", null=True) if m.has("places") else None,
            text("stock_note", "What is said of how soon it is to be had", null=True) if m.has("stock_notes") else None,
            m.status("draft", "listed", "retired"),
            created(),
        ],
        noun=("<item> entry", "<item> entries"),
        label="item_id",
    )
    m.entity(
        "tagging",
        [ref("entry_id", "entry", owned=True), ref("tag_id", "tag")],
        noun=("<item> tagging", "<item> taggings"),
        label="entry_id tag_id",
        uniques=["entry_id tag_id"],
        shows=[Show("tag_name", "text", "self.tag.name", "Name of the tag")],
    )
    _entries(m)
    _tags(m)
    if m.has("bundles"):
        _bundles(m)
    if m.has("specials"):
        _specials(m)
    if m.has("suggestions"):
        _suggestions(m)
    if m.has("translations"):
        _translations(m)
    parts = {"specials": "special", "translations": "translation"}
    m.get("entry", children=["tagging", *(part for feature, part in parts.items() if m.has(feature))])
    m.report(
        "report_<category>_entries",
        "entry",
        ReturnTable(
            "category",
            "category",
            (
                Field("category_id", "int", "category.id", "Id of the <category>"),
                Field("category_name", "text", "category.name", "The <category>"),
                Field("items", "int", "count('item', category_id=category.id)", "<Items> of it"),
                Field("listed", "int", "count('entry', item__category_id=category.id, status=state.listed)", "Of these, shown"),
                Field("drafts", "int", "count('entry', item__category_id=category.id, status=state.draft)", "Of these, in draft"),
            ),
            order=("-listed", "category_name"),
        ),
        path="/reports/<category>-entries",
        summary="Count what is shown of each <category>",
        description="One row for each <category>, the one with most entries that are {state.listed} first.",
    )


def _not_retired(entry: str = "entry") -> Require:
    return Require(
        f"{entry}.status != state.retired", 409, f"The entry of {{{entry}.item.name}} is {{{entry}.status}}.", "not_retired"
    )


def _entries(m: Kit) -> None:
    more = (" place_id" if m.has("places") else "") + (" stock_note" if m.has("stock_notes") else "")
    m.listing(
        "entry",
        search="headline body",
        filters="item_id status rank" + (" place_id" if m.has("places") else ""),
        sorts="rank",
        order="rank",
    )
    m.create(
        "entry",
        "item_id headline body rank" + more,
        values={"created_at": "now"},
        before=[Require("item.is_active", 409, "{item.name} is not offered at present.", "item_offered")],
        verb="draft",
        action="drafted",
        description="One for each <item>; it is {state.draft} at first.",
    )
    m.update("entry", "headline body rank" + more, before=[_not_retired()])
    m.act(
        "show",
        "entry",
        [
            Require("entry.status == state.draft", 409, "The entry of {entry.item.name} is {entry.status}.", "is_draft"),
            Require("entry.item.is_active", 409, "{entry.item.name} is not offered at present.", "item_offered"),
            Require("exists('tagging', entry_id=entry.id)", 409, "It has no tag yet; add one, so that it is found.", "has_tag"),
            Change("entry", {"status": "state.listed"}),
        ],
        action="shown",
        summary="Show an entry",
        description="Once it has a tag, and while its <item> is offered.",
    )
    m.act(
        "hide",
        "entry",
        [
            Require("entry.status == state.listed", 409, "The entry of {entry.item.name} is {entry.status}.", "is_listed"),
            Change("entry", {"status": "state.draft"}),
        ],
        action="hidden",
        summary="Take an entry back into draft",
    )
    m.act(
        "retire",
        "entry",
        [_not_retired(), Change("entry", {"status": "state.retired"})],
        action="retired",
        summary="Retire an entry for good",
    )


def _tags(m: Kit) -> None:
    m.listing("tag", search="name", order="name")
    m.create("tag", "name", verb="add", action="added")
    m.create(
        "tagging",
        "entry_id tag_id",
        before=[
            _not_retired(),
            Require(
                "not exists('tagging', entry_id=entry.id, tag_id=tag.id)", 409, "It has the tag {tag.name} already.", "tag_once"
            ),
        ],
        verb="add",
        path="/<<all>>",
        summary="Put a tag on an entry",
    )
    m.delete("tagging", verb="remove", summary="Take a tag off an entry")
    m.listing("tagging", filters="entry_id tag_id")


def _bundles(m: Kit) -> None:
    m.entity(
        "bundle",
        [text("name", "Name", unique=True), cents("price_cents", "Price of all together, in cents", low=1), created()],
        noun=m.nouns.get("bundle", ("<item> bundle", "<item> bundles")),
        label="name",
    )
    m.entity(
        "part",
        [ref("bundle_id", "bundle", owned=True), ref("item_id", "item"), number("quantity", "How many", low=1, default=1)],
        noun=("<bundle> part", "<bundle> parts"),
        label="bundle_id item_id",
        uniques=["bundle_id item_id"],
    )
    m.listing("bundle", search="name", filters="price_cents", sorts="price_cents name", order="name")
    m.get("bundle", children=["part"])
    m.create("bundle", "name price_cents", values={"created_at": "now"}, verb="compose", action="composed")
    m.create(
        "part",
        "bundle_id item_id quantity",
        before=[
            Require("item.is_active", 409, "{item.name} is not offered at present.", "item_offered"),
            Require(
                "not exists('part', bundle_id=bundle.id, item_id=item.id)", 409, "{item.name} is in it already.", "part_once"
            ),
            Require("count('part', bundle_id=bundle.id) < 6", 409, "{bundle.name} has 6 parts, which is the most.", "six_parts"),
        ],
        verb="add",
        summary="Put <a item> into <a bundle>",
        description="At most 6 different ones.",
    )
    m.delete("part", verb="remove", summary="Take <a item> out of <a bundle>")


def _specials(m: Kit) -> None:
    m.entity(
        "special",
        [
            ref("entry_id", "entry", owned=True),
            cents("price_cents", "Price in these days, in cents", low=1),
            day("from_on", "First day"),
            day("until_on", "Last day"),
        ],
        noun=("<item> special", "<item> specials"),
        label="entry_id from_on",
        checks=["until_on >= from_on"],
    )
    m.listing("special", filters="entry_id from_on price_cents", sorts="from_on", order="from_on")
    m.create(
        "special",
        "entry_id price_cents from_on until_on",
        before=[
            _not_retired(),
            Require(
                "from_on >= today and until_on >= from_on", 422, "It begins today or later and ends after that.", "days_to_come"
            ),
            Require(
                "price_cents < entry.item.price_cents",
                422,
                "{entry.item.name} costs {money(entry.item.price_cents)} as it is.",
                "cheaper",
            ),
            Require(
                "not exists('special', entry_id=entry.id, from_on__le=until_on, until_on__ge=from_on)",
                409,
                "There is one for {entry.item.name} in these days already.",
                "one_special",
            ),
        ],
        verb="set",
        action="set",
        summary="Set another price of <a item> for some days",
        description="Lower than the usual one, and one at a time.",
    )
    m.delete(
        "special",
        verb="drop",
        before=[Require("special.from_on > today", 409, "It has begun on {special.from_on}.", "not_begun")],
        description="Before it begins. Answers the id of what is gone.",
    )


def _suggestions(m: Kit) -> None:
    m.entity(
        "suggestion",
        [ref("entry_id", "entry", owned=True), ref("item_id", "item", "<Item> that goes with it")],
        noun=("<item> suggestion", "<item> suggestions"),
        label="entry_id item_id",
        uniques=["entry_id item_id"],
    )
    m.listing("suggestion", filters="entry_id item_id")
    m.create(
        "suggestion",
        "entry_id item_id",
        before=[
            Require("entry.item_id != item.id", 422, "It is the very same <item>.", "other_item"),
            Require(
                "not exists('suggestion', entry_id=entry.id, item_id=item.id)", 409, "{item.name} is suggested.", "suggested_once"
            ),
            Require(
                "count('suggestion', entry_id=entry.id) < 4", 409, "It has 4 suggestions, which is the most.", "four_suggestions"
            ),
        ],
        verb="add",
        summary="Suggest another <item> beside one",
        description="At most 4 for each entry.",
    )
    m.delete("suggestion", verb="remove")


def _translations(m: Kit) -> None:
    m.entity(
        "translation",
        [
            ref("entry_id", "entry", owned=True),
            text("language", "Language, two letters"),
            text("headline", "Headline in it"),
        ],
        noun=("<item> translation", "<item> translations"),
        label="entry_id language",
        uniques=["entry_id language"],
    )
    m.listing("translation", search="headline", filters="entry_id language")
    m.create(
        "translation",
        "entry_id language headline",
        before=[
            Require("len(language) == 2", 422, "A language has two letters, such as de.", "two_letters"),
            Require(
                "not exists('translation', entry_id=entry.id, language=language)", 409, "There is one already.", "one_translation"
            ),
        ],
        verb="add",
    )
    m.update("translation", "headline")


def seed(s: Seeding) -> None:
    for name in s.values("tags", "new", "popular", "last chance", "gift", "for beginners")[:8]:
        s.insert("tag", name=name)
    tags, places = s.rows("tag"), s.rows("place")
    items = s.some(s.rows("item", is_active=True), 16)
    for turn, (made, item) in enumerate(zip(sorted(s.past(5, 200) for _ in items), items, strict=True)):
        state = s.weighted(draft=3, listed=8, retired=1)
        entry = s.insert(
            "entry",
            item_id=item["id"],
            headline=s.pick(("A favourite of ours: {}", "New here: {}", "{}, as it should be", "{} for every day")).format(
                item["name"]
            ),
            body=s.pick(("Chosen with care.", "Ask us about it.", "Tried by all of us.", "Only while it is there.")),
            rank=10 * (turn + 1),
            place_id=s.pick(places)["id"] if s.chance(60) else None,
            stock_note=s.pick(("at once", "within a week", "on order")) if s.chance(70) else None,
            status=s.state[state],
            created_at=made,
        )
        for tag in s.some(tags, s.between(1 if state == "listed" else 0, 3)):
            s.insert("tagging", entry_id=entry["id"], tag_id=tag["id"])
        _seed_parts(s, entry, item)
    if s.has("bundles"):
        for name in ("Starter set", "Family set", "Weekend set", "Gift set"):
            chosen = s.some(s.rows("item", is_active=True), s.between(2, 4))
            price = max(100, sum(item["price_cents"] for item in chosen) * 9 // 1000 * 100)
            bundle = s.insert("bundle", name=name, price_cents=price, created_at=s.past(10, 150))
            for item in chosen:
                s.insert("part", bundle_id=bundle["id"], item_id=item["id"], quantity=s.between(1, 2))


def _seed_parts(s: Seeding, entry: Row, item: Row) -> None:
    if s.has("specials") and item["price_cents"] >= 200 and s.chance(40):
        begins = s.at(s.pick((-40, -20, 3, 9))).date()
        price = max(1, item["price_cents"] * s.between(70, 90) // 1000 * 10)
        s.insert(
            "special", entry_id=entry["id"], price_cents=price, from_on=begins, until_on=begins + timedelta(days=s.between(4, 12))
        )
    if s.has("suggestions"):
        for other in s.some([other for other in s.rows("item", is_active=True) if other["id"] != item["id"]], s.between(0, 2)):
            s.insert("suggestion", entry_id=entry["id"], item_id=other["id"])
    if s.has("translations"):
        for language in _LANGUAGES[: s.between(0, 2)]:
            s.insert("translation", entry_id=entry["id"], language=language, headline=f"{item['name']} ({language})")
