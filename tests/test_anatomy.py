"""One turn taken apart: every token of the request has a segment, and what is left out is what the process has."""

import re
from dataclasses import replace
from html import unescape

import pytest
from drawn import TINY

from warmprefix.anatomy import EARLIER, LOOKS, SEGMENTS, anatomy, left_out, page
from warmprefix.channel import Channel, Message
from warmprefix.simulate import simulate
from warmprefix.strategies import PLACES, STRATEGIES

CHANNEL = Channel.of("ch", [Message(f"m{i}", "ann", f"<b>text</b> {i}", 60.0 * i) for i in range(12)])
ASKING = (3, 6, 8)


@pytest.fixture(scope="module")
def steps(blocks):
    return list(simulate(CHANNEL, ASKING, STRATEGIES["watermark"], blocks, TINY))


def sent(data, turn):
    rows = data[data["turn"] == turn]
    return dict(zip(rows["segment"], rows["sent"], strict=True))


def test_the_segments_add_up_to_the_request(steps):
    data = anatomy(steps, (1, 2, 3))
    assert list(data.groupby("turn", sort=False)["tokens"].sum()) == [step.request.tokens for step in steps]
    assert list(data[data["sent"]].groupby("turn", sort=False)["tokens"].sum()) == [
        steps[0].request.tokens,
        *(sum(part.tokens for part in step.parts) for step in steps[1:]),
    ]


def test_a_cold_turn_sends_all_and_a_warm_one_only_itself(steps):
    data = anatomy(steps, (1, 2))
    turn = {name: True for name in ("opening and payload", "brief", "block header", "rows")}
    assert sent(data, "turn 1, cold") == {"system prompt": True, "20 tools": True, **turn}
    assert sent(data, "turn 2, warm") == {"system prompt": False, "20 tools": False, EARLIER: False, **turn}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", STRATEGIES)
def test_every_kind_of_block_has_a_name_and_a_look(blocks, name, place):
    strategy = replace(STRATEGIES[name], status=place, ask_every=1)
    taken = anatomy(list(simulate(CHANNEL, ASKING, strategy, blocks, TINY)), (1, 2, 3))
    assert set(taken["segment"]) <= {*SEGMENTS.values(), EARLIER} == set(LOOKS)


def test_a_status_in_front_is_sent_in_every_turn(blocks):
    steps = list(simulate(CHANNEL, ASKING, STRATEGIES["unstable"], blocks, TINY))
    assert sent(anatomy(steps, (2,)), "turn 2, warm")["status line"]
    assert "status line, " in page(steps[1], blocks)


def test_what_a_warm_turn_leaves_out(blocks, steps):
    row = blocks.tokenizer.count("- [user] ann: <b>text</b> 1\n")
    first = sum(part.tokens for part in steps[0].parts) + steps[0].request.output
    # Turn 2 addresses 6: of the newest twelve it has had 0, 1 and 2, of the newest four only 2.
    assert list(left_out(steps, 2)["tokens"]) == [3, first, 3 * row]
    assert list(left_out(steps, 2, 4)["tokens"]) == [3, first, row]
    assert list(left_out(steps, 3, None)["tokens"])[2] == 6 * row
    assert list(left_out(steps, 2)["left out"])[2] == "rows among the newest 12 that it has had"
    assert list(left_out(steps, 2, None)["left out"])[2] == "rows that it has had"


def test_a_new_process_has_had_no_row(blocks):
    steps = list(simulate(CHANNEL, ASKING, STRATEGIES["watermark"], blocks, TINY, evict_at={2}))
    assert list(left_out(steps, 2)["tokens"])[2] == 0


def test_the_page_shows_each_piece_once_with_its_tokens(blocks, steps):
    html = page(steps[1], blocks, "dark")
    counts = [int(n) for n in re.findall(r"([\d,]+) tokens</span>", html)]
    assert sum(counts) == sum(part.tokens for part in steps[1].parts)
    assert html.count(">rows, ") == len(steps[1].shown) == 3
    assert "<b>text</b>" not in html and "- [user] ann: <b>text</b> 4" in unescape(html)
