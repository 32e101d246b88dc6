"""Which images of ours are superfluous."""

from typing import Any

from awm_factory.images.prune import superfluous

OLD, NEW, BASE = "0" * 16, "1" * 16, "2" * 16


def image(created: int, *tags: str, base: str = "") -> dict[str, Any]:
    return {"Id": f"sha256:{created}", "Created": created, "RepoTags": list(tags), "Labels": {"awm.base": base} if base else None}


IMAGES = [
    image(1, f"awm/base:{OLD}"),
    image(2, f"awm/base:{BASE}"),
    image(3, f"awm/base:{NEW}"),
    image(4, f"awm/kiosk:{OLD}", base=f"awm/base:{OLD}"),
    image(5, f"awm/kiosk:{NEW}", "awm/kiosk:latest", base=f"awm/base:{BASE}"),
    image(6, f"awm/gone:{NEW}", "awm/gone:latest", base=f"awm/base:{OLD}"),
    image(7, "awm/os:debian-efad4391d8a3b253-amd64"),
    image(8, "awm/kiosk:mine"),
    image(9, f"acme/kiosk:{OLD}"),
    {"Id": "sha256:10", "Created": 10, "RepoTags": None, "Labels": None},
]


def test_old_tags_go_and_what_the_catalogue_names_stays_with_its_base() -> None:
    assert superfluous(IMAGES, {f"awm/kiosk:{NEW}"}) == [
        f"awm/base:{OLD}",
        f"awm/gone:{NEW}",
        "awm/gone:latest",
        f"awm/kiosk:{OLD}",
    ]


def test_with_an_empty_catalogue_the_newest_base_stays() -> None:
    left = {tag for image in IMAGES for tag in image["RepoTags"] or ()} - set(superfluous(IMAGES, set()))
    assert left == {f"awm/base:{NEW}", "awm/os:debian-efad4391d8a3b253-amd64", "awm/kiosk:mine", f"acme/kiosk:{OLD}"}
