"""Spots of markers, the layout of turns as content blocks, and every placement that the provider accepts."""

from warmprefix import calibrate
from warmprefix.caches.anthropic import check
from warmprefix.placement import PREVIOUS, SPOTS, SYSTEM, TOOLS, TURN, Layouts, endings, everywhere, markers, placements
from warmprefix.providers import steps_of
from warmprefix.request import Blocks
from warmprefix.strategies import STRATEGIES

ORDER = (TOOLS, SYSTEM)


def laid(blocks: Blocks, strategy: str = "watermark", rows: bool = False, evict_at: tuple[int, ...] = ()):
    sample = calibrate.published()
    steps = steps_of(sample.channel, sample.mentions, STRATEGIES[strategy], ORDER, blocks, sample.setting, evict_at)
    layouts = Layouts(rows)
    return [(step, layouts.of(step)) for step in steps]


def test_a_turn_is_one_block_and_no_token_is_lost(blocks: Blocks) -> None:
    for strategy in ("watermark", "replay-transcript", "status-tool", "memoryless", "unstable"):
        for step, layout in laid(blocks, strategy, evict_at=(9,)):
            assert layout.wire.tokens == step.request.tokens
            assert layout.turns[-1] == len(layout.wire) - 1
            assert all(layout.wire[i].kind == "turn" for i in layout.turns)
    (_, whole), (_, pieces) = laid(blocks)[5], laid(blocks, rows=True)[5]
    assert len(pieces.wire) > len(whole.wire) and pieces.wire.tokens == whole.wire.tokens


def test_every_spot_stands_behind_what_it_is_named_after(blocks: Blocks) -> None:
    turns = laid(blocks, "unstable")
    first, third = turns[0][1], turns[2][1]
    assert [first.wire[first.spot(spot)].tier for spot in (TOOLS, SYSTEM, TURN)] == ["tools", "system", "messages"]
    assert first.spot(PREVIOUS) is None
    assert third.wire[third.spot(PREVIOUS)] == turns[1][1].wire[turns[1][1].spot(TURN)]
    assert first.wire[first.spot(SYSTEM)].kind == "system"  # the status line before it is no prefix worth a marker
    assert [i for i, _ in markers(third, everywhere("5m"))] == sorted(third.spot(spot) for spot in SPOTS)
    assert len(markers(first, everywhere("5m"))) == 3


def test_a_new_process_starts_a_new_conversation(blocks: Blocks) -> None:
    turns = laid(blocks, evict_at=(9,))
    assert [len(layout.turns) for _, layout in turns[6:10]] == [7, 8, 1, 2]


def test_the_provider_accepts_every_placement(blocks: Blocks) -> None:
    layout = laid(blocks)[4][1]
    for placement in placements():
        check(markers(layout, placement))
    assert len(set(placements())) == len(list(placements()))


def test_endings_are_the_system_prompt_and_every_turn(blocks: Blocks) -> None:
    layout = laid(blocks)[4][1]
    assert [i for i, _ in endings(layout)] == [layout.spot(SYSTEM), *layout.turns]
