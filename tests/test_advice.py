"""Advice: numbers that are the ledger's, a front that nothing beats, and no recommendation that chance would give."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from drawn import TINY

from warmprefix import advice, calibrate
from warmprefix.advice import Gain, advise, fetch_price, front, measure, resampled, resampled_gain, settings
from warmprefix.channel import Channel, Message
from warmprefix.delivery import Limits
from warmprefix.figures import save
from warmprefix.frontier import front_figure
from warmprefix.ledger import ledger, summary
from warmprefix.strategies import STRATEGIES
from warmprefix.watermark import STRICT

WATERMARK = STRATEGIES["watermark"]


def bursty(gaps: list[int], long: int = 0, apart: float = 7.0) -> tuple[Channel, tuple[int, ...]]:
    """A channel with that many rows before each mention; every `long`-th row has 2,000 characters."""
    rows, where = [], []
    for gap in gaps:
        for asks in [False] * gap + [True]:
            i = len(rows)
            text = "@agent look" if asks else "words " * 350 if long and i % long == 0 else f"row {i} of it"
            where += [i] if asks else []
            rows.append(Message(f"m{i}", "ann", text, apart * i))
    return Channel.of("ch", rows), tuple(where)


def given(gaps, blocks, seed=0, **how):
    channel, where = bursty(gaps, how.pop("long", 0))
    return advise(channel, where, blocks, np.random.default_rng(seed), TINY, resamples=60, **how)


LONG_GAPS = [3, 40, 5, 40, 2, 40, 1, 40, 3, 40, 4, 40]


def test_the_numbers_are_those_of_the_ledger(blocks):
    sample = calibrate.published()
    for strategy in (WATERMARK, STRATEGIES["window"], replace(WATERMARK, cursor=STRICT, limits=Limits(body=200))):
        outcome = measure(sample.channel, sample.mentions, strategy, blocks, sample.setting)
        sums = summary(table := ledger(sample.channel, sample.mentions, strategy, blocks, sample.setting))
        assert (outcome.tokens, outcome.new) == (sums["total_input"], sums["new_per_warm_turn"])
        assert outcome.missed == sums["unshown"] - table["unshown"][0]
        assert (outcome.cut, outcome.cut_chars) == (table["cut"].sum(), table["cut_chars"].sum())


def test_a_cut_row_is_counted_once_however_often_it_is_shown(blocks):
    channel = Channel.of("ch", [Message(f"m{i}", "ann", "x" * 10 * i, float(i)) for i in range(7)])
    for name in ("watermark", "window"):
        strategy = replace(STRATEGIES[name], limits=Limits(body=25))
        outcome = measure(channel, (4, 5, 6), strategy, blocks, TINY)
        assert (outcome.cut, outcome.cut_chars) == (3, 5 + 15 + 25), name  # 3; then 4 and 5, which were addressed


def test_rows_from_before_anybody_asked_are_not_missed(blocks):
    channel, where = bursty([50, 20, 1])
    assert measure(channel, where, WATERMARK, blocks, TINY).missed == 20 - 12


def test_a_process_answers_so_many_mentions(blocks):
    channel, where = bursty([1] * 7)
    outcome = measure(channel, where, WATERMARK, blocks, TINY, session=3)
    table = ledger(channel, where, WATERMARK, blocks, TINY, evict_at={4, 7})
    assert outcome.tokens == table["total"].sum() and list(table["cold"]) == [True, False, False] * 2 + [True]


def test_what_shown_rows_take_is_summed_over_the_requests_that_carry_them(blocks):
    channel, where = bursty([2, 3])
    table = ledger(channel, where, WATERMARK, blocks, TINY)
    outcome = measure(channel, where, WATERMARK, blocks, TINY)
    assert outcome.carried == 2 * table["row_tokens"][0] + table["row_tokens"][1]
    assert fetch_price(outcome) == outcome.tokens / 2 / 30 + outcome.carried / (2 + 4)


def test_nothing_beats_the_front_and_every_setting_is_beaten_by_it(blocks):
    channel, where = bursty(LONG_GAPS, long=9)
    tried = [measure(channel, where, each, blocks, TINY) for each in settings(WATERMARK, channel)]
    kept = front(tried)
    assert len(kept) > 4
    for outcome in tried:
        assert any(each.tokens <= outcome.tokens and each.behind <= outcome.behind for each in kept)
    for each in kept:
        assert not [o for o in tried if (o.tokens < each.tokens and o.behind <= each.behind)]
        assert not [o for o in tried if (o.tokens <= each.tokens and o.behind < each.behind)]


def test_settings_left_out_do_what_another_does(blocks):
    channel, where = bursty([3, 40, 0, 70, 31], long=8)
    few = settings(WATERMARK, channel)
    late = replace(channel.messages[30], created_at=0.0)
    all_of_them = settings(WATERMARK, replace(channel, messages=(*channel.messages, late)))
    assert few[0] == all_of_them[0] == WATERMARK and len(few) < len(all_of_them) < 300
    measured = {(o := measure(channel, where, each, blocks, TINY)).tokens: o for each in few}
    for strategy in all_of_them[::7]:
        outcome = measure(channel, where, strategy, blocks, TINY)
        assert outcome.behind == measured[outcome.tokens].behind


def test_long_gaps_are_worth_a_higher_limit(blocks):
    found = given(LONG_GAPS, blocks)
    assert found.recommended == found.best and found.gain and found.gain.low > 0
    assert found.published.missed > 150 and found.recommended.missed < 10
    assert found.why.startswith("Take ") and str(found.published.missed) in found.why
    assert found.published.strategy == WATERMARK and found.window.tokens > found.published.tokens


def test_pasted_logs_are_worth_a_lower_body_limit(blocks):
    found = given([5] * 14, blocks, long=3)
    assert found.recommended and found.recommended.strategy.limits.body == 200


def test_nothing_to_gain_is_said(blocks):
    found = given([0, 3, 1, 2, 5, 4, 2, 1, 3, 2], blocks, price=5_000.0)
    assert found.recommended is None and found.gain == Gain(0.0, 0.0, 0.0)
    assert "nothing to gain" in found.why


def test_few_mentions_give_a_front_and_no_gain(blocks):
    for count in (1, 2, 7):
        found = given([40] * count, blocks)
        assert (found.recommended, found.gain) == (None, None) and "too few" in found.why and found.front
    assert given([40] * 8, blocks).gain
    with pytest.raises(ValueError, match="nobody is addressed"):
        given([], blocks)


def test_a_gain_that_one_burst_alone_makes_is_no_recommendation(blocks):
    found = given([2, 3, 1, 4, 2, 3, 40, 2, 1, 3, 4, 2, 1, 2], blocks)
    assert found.best.missed < found.published.missed and found.gain
    assert found.gain.low <= 0 and found.recommended is None
    assert "chance" in found.why


def test_the_best_is_the_best_between_its_prices_and_not_outside(blocks):
    found = given(LONG_GAPS, blocks, long=9)
    low, high = found.prices
    assert low <= found.price <= high
    for price, same in ((low + 1, True), (low - 1, False), (min(high, 1e9) - 1, True), (high + 1, False)):
        if 0 <= price < float("inf"):
            best = min(found.front, key=lambda each: each.cost(price))
            assert (best.cost(price) == found.best.cost(price)) is same


def test_a_low_price_hides_and_a_high_one_shows(blocks):
    cheap, dear = given(LONG_GAPS, blocks, price=0.0), given(LONG_GAPS, blocks, price=1e6)
    assert cheap.best.behind == max(each.behind for each in cheap.front)
    assert dear.best.behind == min(each.behind for each in dear.front)


def test_a_request_that_does_not_fit_is_not_recommended(blocks, monkeypatch):
    sent = given(LONG_GAPS, blocks)
    monkeypatch.setattr(advice, "CONTEXT", sent.best.largest - 1)
    found = given(LONG_GAPS, blocks)
    assert found.best.largest < sent.best.largest and all(each.largest < sent.best.largest for each in found.front)


def test_the_same_seed_gives_the_same_advice(blocks):
    assert given(LONG_GAPS, blocks) == given(LONG_GAPS, blocks)
    assert given(LONG_GAPS, blocks).gain != given(LONG_GAPS, blocks, seed=1).gain


def test_a_resampled_channel_is_made_of_windows_of_the_channel():
    channel, where = bursty([4, *range(1, 27)])
    for seed in range(20):
        drawn, asked = resampled(channel, where, np.random.default_rng(seed))
        assert len(asked) == len(where) and asked[0] == 4
        assert all(drawn.messages[at].text == "@agent look" for at in asked)
        assert len({row.id for row in drawn.messages}) == len(drawn.messages)
        gaps = np.diff(asked) - 1
        assert set(gaps) <= set(range(1, 27)) and (np.diff(gaps) == 1).sum() >= len(gaps) * 2 // 3 - 1
        assert set(np.diff([row.created_at for row in drawn.messages])) == {7.0}


def test_every_stretch_between_mentions_can_be_drawn():
    channel, where = bursty([0, *range(1, 13)])
    drawn = [np.diff(resampled(channel, where, np.random.default_rng(seed))[1]) - 1 for seed in range(60)]
    assert set(np.concatenate(drawn)) == set(range(1, 13))


def test_a_long_channel_is_resampled_in_part():
    channel, where = bursty([1] * 400)
    assert len(resampled(channel, where, np.random.default_rng(0))[1]) == advice.LONGEST


def test_a_copy_keeps_its_thread_and_its_changes():
    rows = [Message("r", "ann", "@agent go", 0.0), Message("a", "bob", "ok", 5.0, thread_root_id="r", edited_at=6.0)]
    rows += [Message("b", "ann", "@agent more", 9.0, thread_root_id="r")]
    drawn, _ = resampled(Channel.of("ch", rows), (0, 2), np.random.default_rng(0))
    assert [(row.id, row.thread_root_id, row.edited_at) for row in drawn.messages] == [
        ("r", None, None),
        ("a", "r", 6.0),
        ("b", "r", None),
    ]
    days = [(row, 10 * k) for k in range(9) for row in rows]
    moved = [
        replace(row, id=f"{row.id}{at}", created_at=row.created_at + at, edited_at=row.edited_at and row.edited_at + at)
        for row, at in days
    ]
    many = Channel.of("ch", moved)
    drawn, _ = resampled(many, tuple(i for i in range(27) if i % 3 != 1), np.random.default_rng(1))
    copies = [row for row in drawn.messages if "~" in row.id]
    assert copies and {row.thread_root_id for row in copies if row.id[0] == "a"} <= {f"r~{k}" for k in range(1, 9)}
    assert all(row.edited_at == row.created_at + 1 for row in copies if row.id[0] == "a")


def test_both_settings_meet_the_same_resampled_channels(blocks):
    channel, where = bursty(LONG_GAPS)
    published = measure(channel, where, WATERMARK, blocks, TINY)
    twin = replace(published, strategy=replace(WATERMARK, limits=Limits(fetch=31)))
    gain = resampled_gain(
        channel, where, twin, published, blocks, np.random.default_rng(0), TINY, price=500.0, resamples=20
    )
    assert gain == Gain(0.0, 0.0, 0.0) and not gain.sure


def test_the_figure_shows_what_the_advice_says(blocks, tmp_path: Path):
    for found in (given(LONG_GAPS, blocks), given([0, 3, 1, 2, 5, 4, 2, 1, 3, 2], blocks)):
        drawing = front_figure(found, "my.log", seed=0)
        marked = drawing.data[drawing.data["what"] != "front"].set_index("what")
        assert list(marked.index) == ["published", "window"] + ["recommended"] * bool(found.recommended)
        assert marked.loc["published", "tokens"] == found.published.tokens
        assert (drawing.data["what"] == "front").sum() == len(found.front)
        saved = save(drawing, tmp_path, png=False)
        about = json.loads(saved.path("json").read_text())
        assert "my.log" in about["caption"] and f"{found.published.tokens:,}" in about["alt"]
