"""The event log of a fan-out, and what it costs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmprefix.caches import Usage
from warmprefix.errors import InputError
from warmprefix.harness.fan_out import Child, fan_out, input_cost, requests_per_minute, usages

USUAL = Child(first_token=2.0, duration=9.0)


def sent(children: list[Child], bound: float, lead: bool = True) -> list[float]:
    return [start.sent for start in fan_out(children, bound, lead=lead)]


def test_the_published_prices() -> None:
    together = usages(fan_out([USUAL] * 8, 5.0, lead=False), 40_000)
    first = usages(fan_out([USUAL] * 8, 5.0), 40_000)
    uncached = [Usage(uncached=40_000)] * 8
    assert input_cost(together, 2.0) == pytest.approx(0.80)
    assert input_cost(uncached, 2.0) == pytest.approx(0.64)
    assert input_cost(first, 2.0) == pytest.approx(0.156)


def test_siblings_are_released_at_the_first_token() -> None:
    assert sent([USUAL] * 4, 5.0) == [0.0, 2.0, 2.0, 2.0]
    assert sent([USUAL] * 4, 5.0, lead=False) == [0.0] * 4


def test_a_slow_first_child_costs_a_hit_and_not_the_fan_out() -> None:
    starts = fan_out([Child(60.0, 70.0), USUAL, USUAL], 5.0)
    assert [start.sent for start in starts] == [0.0, 5.0, 5.0]
    assert [usage.cache_read for usage in usages(starts, 100)] == [0, 0, 0]


def test_when_the_first_child_fails_the_next_one_leads() -> None:
    starts = fan_out([Child(2.0, 9.0, fails_after=1.0), USUAL, USUAL], 5.0)
    assert [(start.sent, start.failed) for start in starts] == [(0.0, True), (1.0, False), (3.0, False)]
    assert [(usage.total, usage.cache_read) for usage in usages(starts, 100)] == [(0, 0), (100, 0), (100, 100)]


def test_failures_in_a_row_share_one_bound() -> None:
    bad = Child(9.0, 9.0, fails_after=2.0)
    assert sent([bad] * 5, 5.0) == [0.0, 2.0, 4.0, 5.0, 5.0]


def test_a_child_that_fails_after_its_first_token_has_warmed_the_prefix() -> None:
    starts = fan_out([Child(2.0, 9.0, fails_after=3.0), USUAL], 5.0)
    assert (starts[0].failed, starts[0].first_token, starts[0].ended) == (True, 2.0, 3.0)
    assert usages(starts, 100, own=7)[1] == Usage(uncached=7, cache_read=100)


def test_children_sent_at_once_do_not_read_from_one_another() -> None:
    starts = fan_out([Child(0.0, 1.0)] * 3, 5.0, lead=False)
    assert [usage.cache_read for usage in usages(starts, 100)] == [0, 100, 100]


def test_edges() -> None:
    assert fan_out([], 5.0) == ()
    assert sent([USUAL], 5.0) == [0.0]
    assert sent([USUAL] * 3, 0.0) == [0.0] * 3
    with pytest.raises(InputError, match="0 seconds or more"):
        fan_out([USUAL], -1.0)


children = st.lists(
    st.builds(
        Child,
        first_token=st.floats(0.0, 30.0),
        duration=st.floats(30.0, 60.0),
        fails_after=st.none() | st.floats(0.0, 60.0),
    ),
    max_size=8,
)


@given(group=children, bound=st.floats(0.0, 20.0))
def test_never_later_than_the_bound_and_never_dearer(group: list[Child], bound: float) -> None:
    led, together = fan_out(group, bound), fan_out(group, bound, lead=False)
    assert [start.child for start in led] == list(range(len(group)))
    for ours, theirs in zip(led, together, strict=True):
        assert ours.sent <= bound and ours.ended <= theirs.ended + bound + 1e-9
    assert input_cost(usages(led, 1000), 2.0) <= input_cost(usages(together, 1000), 2.0) + 1e-9


def test_reads_do_not_count_against_the_limit() -> None:
    assert requests_per_minute(80_000, Usage(uncached=40_000)) == 2
    assert requests_per_minute(80_000, Usage(uncached=1_000, cache_write_5m=1_000, cache_read=38_000)) == 40
    assert requests_per_minute(80_000, Usage(cache_read=40_000)) == float("inf")
