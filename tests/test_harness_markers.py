"""The four markers, and what the lookback makes of them."""

from hypothesis import given
from hypothesis import strategies as st

from warmprefix.harness.markers import LONG, NONE, PAIR, SHORT, SINGLE, place
from warmprefix.harness.transcript import system_piece, text_piece, tool_piece
from warmprefix.tools.catalogue import Tool

HEAD = [tool_piece(Tool("a")), tool_piece(Tool("b")), tool_piece(Tool("loaded")), system_piece("x"), system_piece("y")]
TALK = [text_piece("user", str(i)) for i in range(6)]


def test_four_markers_tools_system_last_request_and_this_one() -> None:
    assert place([*HEAD, *TALK], 2, 3) == {1: LONG, 4: LONG, 7: SHORT, 10: SHORT}


def test_a_first_request_has_no_previous_one_and_a_single_marker_needs_none() -> None:
    assert place([*HEAD, *TALK], 2, None) == {1: LONG, 4: LONG, 10: SHORT}
    assert place([*HEAD, *TALK], 2, 3, SINGLE) == {1: LONG, 4: LONG, 10: SHORT}
    assert place([*HEAD, *TALK], 2, 3, NONE) == {}


def test_what_is_not_there_is_not_marked() -> None:
    assert place([], 0, None) == {}
    assert place(TALK, 0, 6) == {5: SHORT}
    assert place(HEAD, 2, None) == {1: LONG, 4: LONG}


@given(blocks=st.integers(0, 40), previous=st.none() | st.integers(0, 40), style=st.sampled_from([PAIR, SINGLE]))
def test_every_provider_would_take_them(blocks: int, previous: int | None, style: str) -> None:
    previous = None if previous is None else min(previous, blocks)
    placed = place([*HEAD, *(text_piece("user", str(i)) for i in range(blocks))], 2, previous, style)
    lifetimes = [placed[i] for i in sorted(placed)]
    assert len(placed) <= 4 and lifetimes == sorted(lifetimes), "at most four, longer lifetimes first"
