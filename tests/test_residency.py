"""Four processes, half an hour, a lease a turn, and a queue for those who come fifth."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from warmprefix.residency import Pool


def turn(pool, key, at, until=None, **how):
    lease = pool.acquire(key, at)
    assert lease is not None
    assert pool.release(lease, at if until is None else until, **how) == []
    return lease


def test_the_first_turn_is_cold_and_the_next_is_not():
    pool = Pool()
    first, second = turn(pool, "a", 0.0), turn(pool, "a", 5.0)
    assert (first.cold, second.cold, first.native) == (True, False, second.native)


@pytest.mark.parametrize(("later", "cold"), [(1800.0, False), (1800.5, True)])
def test_half_an_hour_counts_from_the_end_of_the_last_lease(later, cold):
    pool = Pool()
    first = turn(pool, "a", 0.0, until=100.0)
    second = turn(pool, "a", 100.0 + later)
    assert second.cold is cold
    assert (second.native != first.native) is cold


def test_a_long_run_is_not_idle():
    pool = Pool()
    lease = pool.acquire("a", 0.0)
    pool.expire(10_000.0)
    pool.release(lease, 10_000.0)
    assert not turn(pool, "a", 10_001.0).cold


def test_the_fifth_ends_the_least_recently_used_idle_one():
    pool = Pool()
    for at, key in enumerate("abcd"):
        turn(pool, key, float(at))
    held = pool.acquire("a", 4.0)  # the oldest by start, and now both leased and newest by use
    assert turn(pool, "e", 5.0).cold  # ends b
    assert [turn(pool, key, 6.0).cold for key in "cde"] == [False, False, False]
    assert pool.release(held, 7.0) == []
    assert not turn(pool, "a", 8.0).cold
    assert turn(pool, "b", 9.0).cold  # ends c, the least recently used by now
    assert turn(pool, "c", 10.0).cold


def test_use_ends_with_the_lease():
    pool = Pool(size=2)
    first, second = pool.acquire("a", 0.0), pool.acquire("b", 1.0)
    pool.release(second, 2.0)
    pool.release(first, 3.0)
    turn(pool, "c", 4.0)  # ends b, which was started later and used longer ago
    assert not turn(pool, "a", 5.0).cold


def test_the_fifth_waits_while_four_are_leased_and_newcomers_are_served_in_order():
    pool = Pool()
    leases = {key: pool.acquire(key, 0.0) for key in "abcd"}
    assert pool.acquire("e", 1.0) is None
    assert pool.acquire("f", 2.0) is None
    (e,) = pool.release(leases["c"], 3.0)
    assert (e.key, e.cold) == ("e", True)
    (f,) = pool.release(leases["a"], 4.0)
    assert (f.key, f.cold) == ("f", True)
    assert pool.release(f, 5.0) == pool.release(e, 5.0) == []
    assert turn(pool, "a", 6.0).cold  # it had to make room


def test_one_process_serves_one_turn_at_a_time():
    pool = Pool()
    first = pool.acquire("a", 0.0)
    assert pool.acquire("a", 1.0) is None
    assert pool.acquire("a", 2.0) is None
    (second,) = pool.release(first, 3.0)
    assert (second.native, second.cold) == (first.native, False)
    (third,) = pool.release(second, 4.0)
    assert pool.release(third, 5.0) == []


def test_an_evicted_process_is_gone_even_while_it_is_leased():
    pool = Pool()
    old = pool.acquire("a", 0.0)
    pool.evict("a")
    new = pool.acquire("a", 1.0)
    assert new.cold and new.native != old.native
    assert pool.release(old, 2.0) == []  # the old turn's end frees nothing
    assert pool.acquire("a", 3.0) is None
    pool.evict("never seen")


def test_a_lease_released_twice_frees_nothing_the_second_time():
    pool = Pool()
    first = turn(pool, "a", 0.0)
    pool.acquire("a", 1.0)
    pool.release(first, 2.0)
    assert pool.acquire("a", 3.0) is None


def test_a_process_whose_first_run_failed_has_heard_nothing():
    pool = Pool()
    first, second = turn(pool, "a", 0.0, failed=True), turn(pool, "a", 1.0)
    third, fourth = turn(pool, "a", 2.0, failed=True), turn(pool, "a", 3.0)
    assert [lease.cold for lease in (first, second, third, fourth)] == [True, True, False, False]
    assert len({lease.native for lease in (first, second, third, fourth)}) == 1


class Pooled(RuleBasedStateMachine):
    """The pool against the rules said as sentences."""

    def __init__(self):
        super().__init__()
        self.pool, self.now, self.held, self.waiting, self.natives = Pool(size=2, idle=10.0), 0.0, [], [], set()

    def take(self, lease):
        assert lease.cold == (lease.native not in self.natives)
        self.natives.add(lease.native)
        self.held.append(lease)

    @rule(key=st.sampled_from("abc"), wait=st.sampled_from([0.0, 1.0, 11.0]))
    def acquire(self, key, wait):
        self.now += wait
        lease = self.pool.acquire(key, self.now)
        busy = {held.key for held in self.held}
        assert (lease is None) == (key in busy or len(busy) == 2)
        if lease:
            self.take(lease)
        else:
            self.waiting.append(key)

    @rule(data=st.data(), wait=st.sampled_from([0.0, 1.0, 11.0]))
    def release(self, data, wait):
        if self.held:
            self.now += wait
            lease = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
            for granted in self.pool.release(lease, self.now):
                first = next(k for k in self.waiting if k not in {held.key for held in self.held})
                assert granted.key == first
                self.waiting.remove(granted.key)
                self.take(granted)

    @invariant()
    def nobody_shares_and_nobody_waits_in_vain(self):
        busy = [held.key for held in self.held]
        assert len(set(busy)) == len(busy) <= 2
        assert all(key in busy or len(busy) == 2 for key in self.waiting)


TestPooled = Pooled.TestCase
TestPooled.settings = settings(max_examples=60, stateful_step_count=30)
