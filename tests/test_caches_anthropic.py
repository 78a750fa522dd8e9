"""Anthropic's rules: where entries are written, found, billed, and when they end."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmprefix.caches import Usage
from warmprefix.caches.anthropic import FIVE_MINUTES, ONE_HOUR, Anthropic, automatic
from warmprefix.caches.entries import COMPLETE, EXACT, Refused, early_eviction
from warmprefix.errors import InputError
from warmprefix.request import Block, Log, Request, Wire

MODEL = "claude-sonnet-4-5"


def blocks(count, kind="text", tokens=100, name="b", tier="messages"):
    return tuple(Block(tier, kind, f"{name}{i}", tokens) for i in range(count))


def sent(parts, *markers, at=0.0, **fields):
    """A request with 5-minute markers behind these blocks, counted from 1, or (block, marker)."""
    marked = tuple((m[0] - 1, m[1]) if isinstance(m, tuple) else (m - 1, FIVE_MINUTES) for m in markers)
    return Request(tuple(parts), at, markers=marked, model=MODEL, **fields)


def cache(**settings):
    return Anthropic(minimum=0, **settings)


def test_the_golden_example_of_the_lookback():
    turn = blocks(35)
    found = cache()
    assert found.charge(sent(turn[:10], 10)) == Usage(cache_write_5m=1000)
    assert found.charge(sent(turn[:15], 15)) == Usage(cache_read=1000, cache_write_5m=500)
    with_pair = found.charge(sent(turn, 15, 35))
    assert with_pair == Usage(cache_read=1500, cache_write_5m=2000)

    alone = cache()
    alone.charge(sent(turn[:10], 10))
    alone.charge(sent(turn[:15], 15))
    assert alone.charge(sent(turn, 35)) == Usage(cache_write_5m=3500)  # 35..16 are looked at


@pytest.mark.parametrize(("more", "hit"), [(18, True), (19, True), (20, False), (21, False)])
def test_both_sides_of_the_edge(more, hit):
    turn = blocks(2 + more)
    found = cache()
    found.charge(sent(turn[:2], 2))
    assert (found.charge(sent(turn, len(turn))).cache_read > 0) is hit


@pytest.mark.parametrize(("collapse", "hit"), [(True, True), (False, False)])
def test_a_run_of_parallel_calls_is_one_position(collapse, hit):
    start = blocks(2)
    calls = blocks(25, "tool_use", name="call") + blocks(25, "tool_result", name="result")
    found = cache(collapse_runs=collapse)
    found.charge(sent(start, 2))
    assert (found.charge(sent(start + calls, 52)).cache_read == 200) is hit


@pytest.mark.parametrize(("more", "read"), [(19, 100), (20, 0)])
def test_runs_that_alternate_are_positions_each(more, read):
    calls = [blocks(1, ("tool_use", "tool_result")[i % 2], name=f"c{i}-")[0] for i in range(more)]
    found = cache()
    found.charge(sent(blocks(1), 1))
    assert found.charge(sent([*blocks(1), *calls], 1 + more)).cache_read == read


def test_a_marker_inside_a_run_is_found_from_behind_it():
    calls = blocks(30, "tool_use")
    found = cache()
    found.charge(sent(calls[:5], 5))
    assert found.charge(sent(calls, 30)).cache_read == 500


@pytest.mark.parametrize(("gap", "read"), [(300, 1000), (301, 0)])
def test_an_entry_is_dead_when_more_than_its_lifetime_has_passed(gap, read):
    found = cache()
    found.charge(sent(blocks(10), 10))
    assert found.charge(sent(blocks(10), 10, at=gap)).cache_read == read


def test_a_read_refreshes_from_the_start_of_the_reading_request():
    found = cache()
    for at in (0, 250, 500, 750):
        usage = found.charge(sent(blocks(10), 10, at=at, first_token_at=at + 200))
    assert usage == Usage(cache_read=1000)
    assert found.charge(sent(blocks(10), 10, at=1060)).cache_read == 0


@pytest.mark.parametrize(("refresh", "read"), [("path", 200), (EXACT, 0)])
def test_whether_a_longer_read_refreshes_what_is_below(refresh, read):
    found = cache(refresh=refresh)
    found.charge(sent(blocks(5), 2, 5))
    found.charge(sent(blocks(5), 5, at=200))
    other = blocks(2) + blocks(3, name="other")
    assert found.charge(sent(other, 2, at=400)).cache_read == read


def test_markers_at_or_below_the_hit_are_refreshed_even_by_the_exact_rule():
    found = cache(refresh=EXACT)
    found.charge(sent(blocks(5), 2, 5))
    found.charge(sent(blocks(5), 2, 5, at=200))
    assert found.charge(sent(blocks(2) + blocks(3, name="other"), 2, at=400)).cache_read == 200


def test_mixed_lifetimes_are_billed_by_segment():
    found = cache()
    parts = blocks(10)
    assert found.charge(sent(parts, (4, ONE_HOUR), 8)) == Usage(uncached=200, cache_write_5m=400, cache_write_1h=400)
    more = parts[:8] + blocks(6, name="more")
    usage = found.charge(sent(more, (4, ONE_HOUR), (8, ONE_HOUR), (11, ONE_HOUR), 13, at=60))
    assert usage == Usage(uncached=100, cache_read=800, cache_write_1h=300, cache_write_5m=200)


def test_a_live_short_entry_under_a_long_marker_is_prolonged_free_of_charge():
    found = cache()
    found.charge(sent(blocks(5), 5))
    assert found.charge(sent(blocks(5), (5, ONE_HOUR), at=100)) == Usage(cache_read=500)
    assert found.charge(sent(blocks(5), 5, at=3000)) == Usage(cache_read=500)


def test_a_long_entry_stays_long_under_a_short_marker():
    found = cache()
    found.charge(sent(blocks(5), (5, ONE_HOUR)))
    found.charge(sent(blocks(5), 5, at=100))
    assert found.charge(sent(blocks(5), 5, at=3700)).cache_read == 500
    assert found.charge(sent(blocks(5), 5, at=7301)).cache_read == 0


@pytest.mark.parametrize("markers", [(1, 2, 3, 4, 5), (1, (2, ONE_HOUR)), ((1, "2h"),)])
def test_what_the_provider_refuses_leaves_no_trace(markers):
    found = cache()
    with pytest.raises(Refused):
        found.charge(sent(blocks(5), *markers))
    assert found.charge(sent(blocks(5), 1)).cache_read == 0


def test_below_the_minimum_nothing_is_cached():
    found = Anthropic()
    first = sent(blocks(30), 10, 12)
    assert found.charge(first) == Usage(uncached=1800, cache_write_5m=1200)  # 1,000 tokens are too few, 1,200 are not
    assert found.charge(sent(blocks(30), 10, at=1)) == Usage(uncached=3000)
    assert found.charge(sent(blocks(10), 10, at=2)) == Usage(uncached=1000)


@pytest.mark.parametrize(
    ("model", "least"),
    [
        ("claude-opus-5", 512),
        ("claude-opus-5-5-20260901", 512),
        ("claude-fable-5-1", 512),
        ("claude-sonnet-5", 1024),
        ("claude-opus-4-8", 1024),
        ("claude-opus-4-7", 2048),
        ("claude-opus-4-5", 4096),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", 4096),
    ],
)
def test_the_minimum_goes_by_the_model(model, least):
    for tokens, written in ((least - 1, 0), (least, least)):
        request = replace(sent(blocks(1, tokens=tokens), 1), model=model)
        assert Anthropic().charge(request).cache_write_5m == written


def test_an_unknown_model_says_how_to_mend_it():
    with pytest.raises(InputError, match=r"model 'claude-new-9'.*add a row to data/providers.toml"):
        Anthropic().charge(replace(sent(blocks(1), 1), model="claude-new-9"))
    assert Anthropic(minimum=1).charge(replace(sent(blocks(1), 1), model="claude-new-9")).cache_write_5m == 100


def test_an_entry_is_readable_from_the_first_token_of_its_writer():
    found = cache()
    found.charge(sent(blocks(5), 5, at=0, first_token_at=8, completed_at=30))
    assert found.charge(sent(blocks(5), 5, at=7.9, first_token_at=20)) == Usage(cache_write_5m=500)
    assert found.charge(sent(blocks(5), 5, at=8)) == Usage(cache_read=500)  # the second writer does not delay it
    late = cache(readable=COMPLETE)
    late.charge(sent(blocks(5), 5, at=0, first_token_at=8, completed_at=30))
    assert late.charge(sent(blocks(5), 5, at=29)).cache_read == 0
    assert late.charge(sent(blocks(5), 5, at=30)).cache_read == 500


def test_fan_out():
    """Eight children on 40k tokens at $2 a million: all at once $0.80, uncached $0.64, the first one first $0.156."""

    def dollars(times):
        found, cost = cache(), 0.0
        for at in times:
            usage = found.charge(sent(blocks(1, tokens=40_000), 1, at=at, first_token_at=at + 5))
            cost += 2e-6 * (usage.uncached + 1.25 * usage.cache_write_5m + 0.1 * usage.cache_read)
        return cost

    assert dollars([0.0] * 8) == pytest.approx(0.80)
    assert dollars([0.0] + [5.0] * 7) == pytest.approx(0.156)
    assert pytest.approx(0.64) == 8 * 40_000 * 2e-6


def conversation(**fields):
    parts = blocks(2, "tool", name="t", tier="tools") + blocks(1, name="s", tier="system") + blocks(2, name="m")
    return sent(parts, 2, 3, 5, **fields)


@pytest.mark.parametrize(
    ("change", "read"),
    [
        ({}, 500),
        ({"settings": "any"}, 300),  # the tool choice or an image: the messages alone
        ({"scope": "effort high"}, 0),
        ({"model": "claude-opus-4-5"}, 0),
    ],
)
def test_what_invalidates(change, read):
    found = cache()
    found.charge(conversation())
    assert found.charge(replace(conversation(at=1), **change)).cache_read == read


def test_three_places_for_an_activated_tool():
    found = cache()
    start = conversation()
    found.charge(start)
    new = blocks(1, "tool", name="new", tier="tools")
    tools, system, talk = start.blocks[:2], start.blocks[2:3], start.blocks[3:]
    inserted = sent((*tools[:1], *new, *tools[1:], *system, *talk), 3, 4, 6, at=1)
    appended = sent((*tools, *new, *system, *talk), 2, 4, 6, at=2)
    inline = sent((*tools, *system, *talk, *blocks(1, "tool_reference", name="new")), 2, 3, 5, 6, at=3)
    assert [found.charge(request).cache_read for request in (inserted, appended, inline)] == [0, 200, 500]


def test_sessions_share_a_prefix_and_keep_their_own():
    found = cache()
    shared = blocks(3, name="s", tier="system")
    for at, name in enumerate("abab"):
        usage = found.charge(sent(shared + blocks(2 + at, name=name), 3, 5 + at, at=at))
        assert usage.cache_read == (0, 300, 500, 600)[at]


def test_a_marker_is_no_part_of_the_content():
    found = cache()
    found.charge(
        Request(tuple(replace(b, marker=FIVE_MINUTES) if b.key == "b1" else b for b in blocks(3)), model=MODEL)
    )
    assert found.charge(sent(blocks(3), 3)).cache_read == 200


def test_a_shared_log_is_charged_like_its_blocks():
    log, head, plain, shared = Log(), blocks(2, tier="system", name="s"), cache(), cache()
    for turn in range(1, 40):
        log.extend(blocks(3, name=f"turn{turn}-"))
        wire = Wire(head, log, len(log.blocks))
        markers = ((1, FIVE_MINUTES), (len(wire) - 1, FIVE_MINUTES))
        request = Request(wire, turn * 10.0, model=MODEL, markers=markers, settings="any")
        assert shared.charge(request) == plain.charge(replace(request, blocks=tuple(wire)))
        assert turn == 1 or shared.charge(request).cache_read == request.tokens


def test_the_automatic_marker():
    assert automatic(sent(blocks(3), 1)).markers == ((0, FIVE_MINUTES), (2, FIVE_MINUTES))
    assert automatic(sent(blocks(3), 3)).markers == ((2, FIVE_MINUTES),)
    thinking = (*blocks(2), *blocks(1, "thinking"))
    assert automatic(sent(thinking), ONE_HOUR).markers == ((1, ONE_HOUR),)
    assert automatic(sent(())).markers == ()
    with pytest.raises(Refused, match="one more than the 4"):
        automatic(sent(blocks(6), 1, 2, 3, 4))
    with pytest.raises(Refused, match="the last block is marked 5m"):
        automatic(sent(blocks(3), 3), ONE_HOUR)


def test_early_eviction_is_off_unless_asked_for_and_seeded():
    def reads(seed):
        found = cache() if seed is None else cache(dies=early_eviction(np.random.default_rng(seed)))
        requests = [sent(blocks(5), (5, ONE_HOUR), at=2000.0 * i) for i in range(400)]
        return [found.charge(request).cache_read > 0 for request in requests]

    assert all(reads(None)[1:])
    assert reads(1) == reads(1) != reads(2)
    assert 0.15 < 1 - np.mean(reads(1)) < 0.27  # 21 % between 30 and 45 minutes


def test_settings_that_do_not_exist():
    with pytest.raises(ValueError, match="refresh must be"):
        cache(refresh="all")
    with pytest.raises(ValueError, match="readable must be"):
        cache(readable="sent").charge(sent(blocks(1), 1))


@given(
    st.lists(
        st.tuples(
            st.integers(1, 8),
            st.integers(0, 3),
            st.lists(st.integers(1, 8), max_size=4, unique=True),
            st.integers(0, 4),
            st.floats(0, 400),
        ),
        max_size=12,
    )
)
def test_every_usage_adds_up(rounds):
    found, at = Anthropic(minimum=150), 0.0
    for size, fork, markers, hours, gap in rounds:
        at += gap
        parts = blocks(min(size, fork)) + blocks(max(0, size - fork), name=f"f{fork}")
        marked = sorted(m for m in markers if m <= size)
        request = sent(parts, *((m, ONE_HOUR if i < hours else FIVE_MINUTES) for i, m in enumerate(marked)), at=at)
        usage = found.charge(request)
        assert usage.total == request.tokens
        assert min(usage.uncached, usage.cache_read, usage.cache_write_5m, usage.cache_write_1h) >= 0
        again = found.charge(request)
        assert again.total == request.tokens and again.cache_read >= usage.cache_read
        assert not again.cache_write_5m and not again.cache_write_1h
