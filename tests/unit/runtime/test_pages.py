from hypothesis import given
from hypothesis import strategies as st

from awm_runtime import pages

SEED = bytes(range(256)) * 16 * 40  # forty blocks, which are compared sixteen at a time


@given(st.binary(max_size=3 * 4096), st.integers(0, 42 * 4096))
def test_a_delta_brings_back_what_it_was_made_of(extra: bytes, cut: int) -> None:
    for content in (SEED + extra, SEED[:cut], SEED[:cut] + extra, extra):
        assert pages.apply(SEED, pages.delta(SEED, content)) == content


def test_no_delta_is_the_seed_and_one_changed_block_is_one_block() -> None:
    assert pages.apply(SEED, None) == SEED
    changed = SEED[:5000] + b"x" + SEED[5001:]
    assert len(pages.delta(SEED, changed)) == 8 + 4 + 4096
    assert len(pages.delta(SEED, SEED)) == 8


@given(st.binary(min_size=1, max_size=100), st.binary(max_size=5000), st.integers(100, 42 * 4096))
def test_a_header_stands_in_the_place_of_the_first_bytes(header: bytes, extra: bytes, cut: int) -> None:
    content = SEED[:cut] + extra
    assert pages.apply(SEED, pages.delta(SEED, content, header)) == header + content[len(header) :]
    assert len(pages.delta(SEED, b"y" + SEED[1:], SEED[:1])) == 8
