"""Runs of a chosen shape."""

import pytest

from warmprefix.harness.markers import PAIR, SINGLE
from warmprefix.harness.trimming import Policy
from warmprefix.harness.wire import PLACEMENTS
from warmprefix.harness.workloads import alternating_calls, conversation, parallel_calls, texts, tool_turns
from warmprefix.tools.catalogue import own_catalogue
from warmprefix.tools.surface import surface

SPLIT = surface(own_catalogue())


def test_shapes_add_the_blocks_that_they_promise() -> None:
    assert [piece.kind for piece in parallel_calls(0, 2)] == ["tool_use"] * 2 + ["tool_result"] * 2
    assert [piece.kind for piece in alternating_calls(0, 2)] == ["text", "tool_use"] * 2 + ["tool_result"] * 2
    assert len(texts(0, 7)) == 7
    assert len({piece.text for turn in range(3) for piece in texts(turn, 3)}) == 9


@pytest.mark.parametrize("style", [PAIR, SINGLE])
def test_the_pair_marks_where_the_request_before_ended(style: str) -> None:
    sent, _ = conversation(SPLIT, "Be brief.", [texts(0, 3), texts(1, 30), texts(2, 3)], style=style)
    marked = [sorted(each.markers) for each in sent]
    ends = [len(each.pieces) - 1 for each in sent]
    for n in (1, 2):
        assert (ends[n - 1] in marked[n]) == (style == PAIR)
        assert marked[n][-1] == ends[n] and len(marked[n]) == (4 if style == PAIR else 3)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_an_activation_changes_the_next_request_and_no_earlier_one(placement: str) -> None:
    new = SPLIT.deferred[:2]
    sent, _ = conversation(SPLIT, "Be brief.", [texts(n, 2) for n in range(4)], activate=[(), new], placement=placement)
    first, second, third, fourth = ([piece.text for piece in each.pieces] for each in sent)
    assert second[: len(first)] == first
    assert len(third) == len(second) + 2 + 2 and len(fourth) == len(third) + 2
    common = (
        next(i for i, (a, b) in enumerate(zip(second, third, strict=False)) if a != b) if placement != "inline" else 0
    )
    assert {"insert": common < 24, "append": common == 24, "inline": third[: len(second)] == second}[placement]


def test_a_steady_trim_rewrites_often_and_a_deep_one_rarely() -> None:
    deltas = tool_turns([2_000] * 12)
    trims = {}
    for threshold in (0, 6_000, 10**9):
        _, transcript = conversation(SPLIT, "Be brief.", deltas, trim=Policy(threshold, keep=2))
        trims[threshold] = [(trim.pieces, trim.reclaimed) for trim in transcript.trims]
    assert len(trims[0]) == 10 and {pieces for pieces, _ in trims[0]} == {1}
    assert len(trims[6_000]) == 2 and all(reclaimed >= 6_000 for _, reclaimed in trims[6_000])
    assert trims[10**9] == []


def test_time_goes_on_evenly() -> None:
    sent, _ = conversation(SPLIT, "Be brief.", [texts(n, 1) for n in range(3)], pace=30.0, first_token=2.0)
    assert [(each.at, each.first_token_at) for each in sent] == [(0.0, 2.0), (30.0, 32.0), (60.0, 62.0)]
