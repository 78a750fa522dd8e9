"""What holds for every channel: the slow oracle, a plain model of delivery, and the rules said as sentences."""

from dataclasses import replace
from itertools import pairwise

import pytest
from drawn import TINY, cases, hostile
from hypothesis import given, settings
from hypothesis import strategies as st

from warmprefix.delivery import Limits, row
from warmprefix.ledger import ledger, summary
from warmprefix.request import Blocks
from warmprefix.simulate import forever_unshown, simulate
from warmprefix.strategies import OMISSIONS, PLACES, STRATEGIES
from warmprefix.tokens import Tokenizer
from warmprefix.watermark import FAITHFUL, STRICT

APPENDING = [name for name in STRATEGIES if name != "unstable"]
NONE = Limits(rows=None, fetch=None)
LIMITS = st.sampled_from([Limits(), Limits(rows=3), Limits(rows=2, fetch=4), Limits(fetch=3), NONE, Limits(rows=0)])
CURSORS = st.sampled_from([FAITHFUL, STRICT])


def steps(case, strategy, blocks, **how):
    how = {"evict_at": case.evict_at, "fail_at": case.fail_at, **how}
    return list(simulate(case.channel, case.mentions, strategy, blocks, TINY, **how))


def table(case, strategy, blocks, **how):
    how = {"evict_at": case.evict_at, "fail_at": case.fail_at, **how}
    return ledger(case.channel, case.mentions, strategy, blocks, TINY, **how)


# The slow oracle: encode every request whole, compare token lists


def slow(case, strategy, blocks):
    """Total and cached of every turn, without a memo, a cut or a shared log."""
    encode, previous, found = blocks.tokenizer.ids, {}, []
    for step in steps(case, strategy, blocks):
        tokens = encode("".join(blocks.text(block) for block in step.request.blocks))
        before = previous.get(step.session, [])
        shared = 0
        while shared < min(len(tokens), len(before)) and tokens[shared] == before[shared]:
            shared += 1
        previous[step.session] = tokens
        found.append((len(tokens), shared))
    return found


@pytest.mark.parametrize("name", STRATEGIES)
@given(case=cases(hostile), cursor=CURSORS, limits=LIMITS)
def test_the_ledger_equals_the_slow_oracle(blocks, name, case, cursor, limits):
    strategy = replace(STRATEGIES[name], cursor=cursor, limits=limits)
    found = table(case, strategy, blocks)
    assert list(zip(found["total"], found["cached"], strict=True)) == slow(case, strategy, blocks)


@pytest.mark.parametrize("order", [("system", "tools"), ("tools", "system")])
@given(case=cases(hostile), status=st.sampled_from(PLACES), omits=st.frozensets(st.sampled_from(OMISSIONS)))
def test_any_point_of_the_space_equals_the_slow_oracle(blocks, order, case, status, omits):
    strategy = replace(STRATEGIES["watermark"], status=status, order=order, omits=omits, ask_every=2)
    found = table(case, strategy, blocks)
    assert list(zip(found["total"], found["cached"], strict=True)) == slow(case, strategy, blocks)


@pytest.fixture(scope="module")
def o200k():
    return Blocks(Tokenizer("o200k_base"))


@given(case=cases(hostile), name=st.sampled_from(sorted(STRATEGIES)))
def test_the_ledger_equals_the_slow_oracle_in_the_other_encoding(o200k, case, name):
    found = table(case, STRATEGIES[name], o200k)
    assert list(zip(found["total"], found["cached"], strict=True)) == slow(case, STRATEGIES[name], o200k)


# A plain model of delivery


def model(case, strategy):
    """The positions that each turn shows: the rules of delivery over the whole channel, with nothing left out early."""
    last_at, ids, newest, seen_any = None, set(), -1, False
    found = []
    for turn, at in enumerate(case.mentions, start=1):
        if turn in case.evict_at or not strategy.resident:
            last_at, ids, newest, seen_any = None, set(), -1, False
        rows = list(case.channel.messages[: at + 1])
        if strategy.limits.fetch is not None:
            rows = rows[-strategy.limits.fetch :]
        rows = [message for message in rows if message.position != at]
        if strategy.remembers and seen_any and strategy.cursor == STRICT:
            rows = [message for message in rows if message.position > newest]
        elif strategy.remembers and seen_any:
            rows = [message for message in rows if message.id not in ids and message.created_at > last_at]
        if strategy.limits.rows is not None:
            rows = rows[len(rows) - min(len(rows), strategy.limits.rows) :]
        found.append([message.position for message in rows])
        if rows and turn not in case.fail_at:
            times = [message.created_at for message in rows]
            last_at = max(times) if last_at is None else max(last_at, *times)
            ids |= {message.id for message in rows}
            newest, seen_any = max(newest, rows[-1].position), True
    return found


@pytest.mark.parametrize("cursor", [FAITHFUL, STRICT])
@settings(max_examples=150)
@given(case=cases(), limits=LIMITS, name=st.sampled_from(["watermark", "window", "memoryless"]))
def test_each_turn_shows_what_the_plain_model_shows(blocks, cursor, case, limits, name):
    strategy = replace(STRATEGIES[name], cursor=cursor, limits=limits)
    found = steps(case, strategy, blocks)
    assert [[message.position for message in step.shown] for step in found] == model(case, strategy)
    assert [[blocks.text(part) for part in step.rows] for step in found] == [
        [row(message, limits.body) for message in step.shown] for step in found
    ]


# The rules


@given(case=cases(), name=st.sampled_from(sorted(STRATEGIES)), limits=LIMITS)
def test_usage_adds_up(blocks, case, name, limits):
    found = table(case, replace(STRATEGIES[name], limits=limits), blocks)
    assert (found["cached"] + found["new"] == found["total"]).all()
    assert (found["cached"] >= 0).all() and (found["new"] > 0).all()
    assert (found["shown"] >= found["duplicated"] + found["resent"]).all()
    assert (found["row_tokens"] >= found["duplicated_tokens"] + found["resent_tokens"]).all()
    assert (found["row_tokens"] < found["new"]).all()
    sums = summary(found)
    assert sums["distinct"] + sums["duplicated"] <= sums["shown"]
    assert sums["total_input"] == found["cached"].sum() + found["new"].sum()


@given(case=cases(), name=st.sampled_from(APPENDING))
def test_appending_never_lowers_what_is_read(blocks, case, name):
    found = table(case, STRATEGIES[name], blocks, fail_at=())
    for _, session in found.groupby("session"):
        assert list(session["cached"])[1:] == list(session["total"])[:-1]  # all of it, and it only grows
        assert session["cached"].is_monotonic_increasing


@given(case=cases(), name=st.sampled_from(sorted(STRATEGIES)))
def test_a_restart_resets(blocks, case, name):
    found = table(case, STRATEGIES[name], blocks)
    first = ~found["session"].duplicated()
    assert (found.loc[first, "cached"] == 0).all() and found.loc[first, "cold"].all()
    assert (found.loc[first, "duplicated"] == 0).all()
    restarts = {1, *case.evict_at} if STRATEGIES[name].resident else set(range(1, len(case.mentions) + 1))
    assert set(found.loc[first, "turn"]) == (restarts if case.mentions else set())
    assert (found.loc[~first, "cached"] > 0).all() or name == "unstable"


@given(case=cases(), cursor=CURSORS, limits=LIMITS)
def test_a_failed_run_hides_nothing(blocks, case, cursor, limits):
    """What is shown after a failed run is what would have been shown had the mention never been made."""
    strategy = replace(STRATEGIES["watermark"], cursor=cursor, limits=limits)
    kept = [at for turn, at in enumerate(case.mentions, start=1) if turn not in case.fail_at]
    with_failures = [step.shown for step in steps(case, strategy, blocks, evict_at=()) if not step.failed]
    without = [step.shown for step in simulate(case.channel, kept, strategy, blocks, TINY)]
    assert with_failures == without


@given(case=cases())
def test_without_limits_the_strict_cursor_shows_every_row(blocks, case):
    strategy = replace(STRATEGIES["watermark"], cursor=STRICT, limits=NONE)
    sound = replace(case, fail_at=case.fail_at - {len(case.mentions)})
    assert forever_unshown(sound.channel, sound.mentions, steps(sound, strategy, blocks)) == []


@given(case=cases(rising=True))
def test_without_limits_and_equal_seconds_the_faithful_cursor_does_too(blocks, case):
    strategy = replace(STRATEGIES["watermark"], limits=NONE)
    sound = replace(case, fail_at=case.fail_at - {len(case.mentions)})
    assert forever_unshown(sound.channel, sound.mentions, steps(sound, strategy, blocks)) == []


@given(case=cases(rising=True), limits=LIMITS)
def test_on_a_clock_that_only_rises_both_cursors_agree(blocks, case, limits):
    one, other = (
        steps(case, replace(STRATEGIES["watermark"], cursor=cursor, limits=limits), blocks)
        for cursor in (FAITHFUL, STRICT)
    )
    assert [step.shown for step in one] == [step.shown for step in other]


@given(case=cases(), cursor=CURSORS, limits=LIMITS)
def test_nothing_is_shown_twice_to_one_process(blocks, case, cursor, limits):
    strategy = replace(STRATEGIES["watermark"], cursor=cursor, limits=limits)
    had: dict[str, set[int]] = {}
    for step in steps(case, strategy, blocks):
        shown = {message.position for message in step.shown}
        assert step.mention.position not in shown and not step.repeated
        assert not shown & had.setdefault(step.session, set())
        if not step.failed:
            had[step.session] |= shown


@given(case=cases(), limits=LIMITS)
def test_the_strict_watermark_reaches_just_the_rows_that_the_window_reaches(blocks, case, limits):
    reached = [
        {message.position for step in steps(case, strategy, blocks, fail_at=()) for message in step.shown}
        for strategy in (
            replace(STRATEGIES["window"], limits=limits),
            replace(STRATEGIES["watermark"], cursor=STRICT, limits=limits),
            replace(STRATEGIES["memoryless"], limits=limits),
        )
    ]
    assert reached[0] == reached[1] == reached[2]


@given(case=cases(), cursor=CURSORS, limits=LIMITS, name=st.sampled_from(["window", "watermark", "memoryless"]))
def test_every_row_before_the_last_mention_is_accounted_for(blocks, case, cursor, limits, name):
    strategy = replace(STRATEGIES[name], cursor=cursor, limits=limits)
    delivered = {m.position for step in steps(case, strategy, blocks) if not step.failed for m in step.shown}
    before = set(range(case.mentions[-1])) if case.mentions else set()
    found = summary(table(case, strategy, blocks))
    assert found["distinct"] == len(delivered)
    assert found["unshown"] == len(before - delivered - set(case.mentions))


@given(case=cases(), name=st.sampled_from(sorted(STRATEGIES)))
def test_a_run_depends_on_nothing_that_ran_before(blocks, case, name):
    fresh = Blocks(blocks.tokenizer)
    assert table(case, STRATEGIES[name], fresh).equals(table(case, STRATEGIES[name], blocks))


@given(pair=st.data(), case=cases())
def test_later_rows_change_no_earlier_turn(blocks, pair, case):
    stop = pair.draw(st.integers(0, len(case.mentions)))
    longer = steps(case, STRATEGIES["watermark"], blocks)
    shorter = steps(replace(case, mentions=case.mentions[:stop]), STRATEGIES["watermark"], blocks)
    for one, other in zip(shorter, longer[:stop], strict=True):
        assert list(one.request.blocks) == list(other.request.blocks) and one.shown == other.shown
    assert all(one.turn + 1 == other.turn for one, other in pairwise(longer))
