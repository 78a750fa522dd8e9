"""Channels on one clock: who waits, who finds a new process, and why."""

import pytest

from warmprefix.clock import FIRST, IDLE, PRESSURE, WARM, Served, serve, shared
from warmprefix.residency import Pool
from warmprefix.sweep import measure


def whys(turns: list[Served]) -> dict[tuple[str, int], str]:
    return {(turn.key, turn.turn): turn.why for turn in turns}


def test_a_process_ends_after_the_idle_limit_and_not_at_it() -> None:
    asked = {"a": [0.0, 40.0, 90.0], "b": [0.0]}
    turns = serve(asked, {"a": [10.0, 10.0, 10.0], "b": [10.0]}, Pool(idle=30.0))
    assert whys(turns) == {("a", 1): FIRST, ("a", 2): WARM, ("a", 3): IDLE, ("b", 1): FIRST}


def test_a_fifth_channel_ends_the_least_recently_used() -> None:
    asked = {key: [float(i)] for i, key in enumerate("abcde")}
    asked["a"] = [0.0, 50.0]
    asked["b"] = [1.0, 60.0]
    turns = serve(asked, {key: [0.5] * len(times) for key, times in asked.items()}, Pool(size=4, idle=1000.0))
    assert whys(turns)["a", 2] == PRESSURE, "e took the place of a, the oldest"
    assert whys(turns)["b", 2] == PRESSURE, "then a took that of b"
    assert whys(turns)["e", 1] == FIRST


def test_a_mention_waits_while_every_process_is_at_work_and_first_come_is_first_served() -> None:
    asked = {"a": [0.0], "b": [1.0], "c": [2.0]}
    turns = serve(asked, {"a": [10.0], "b": [5.0], "c": [5.0]}, Pool(size=1))
    assert [(turn.key, turn.started, turn.ended) for turn in turns] == [
        ("a", 0.0, 10.0),
        ("b", 10.0, 15.0),
        ("c", 15.0, 20.0),
    ]


def test_a_channels_own_turn_is_waited_for_and_stays_warm() -> None:
    turns = serve({"a": [0.0, 1.0]}, {"a": [10.0, 1.0]}, Pool())
    assert [(turn.why, turn.started) for turn in turns] == [(FIRST, 0.0), (WARM, 10.0)]


def test_one_channel_on_an_endless_pool_is_the_kept_run() -> None:
    run = shared(channels=1, idle=float("inf"), seed=3)
    assert run["cold_idle"] == run["cold_pressure"] == 0
    assert (run["total"], run["uncached"]) == (run["kept_total"], run["kept_uncached"])


def test_what_the_clock_ends_costs_what_an_eviction_costs() -> None:
    from warmprefix.calibrate import sample
    from warmprefix.sweep import memo

    run = shared(channels=1, idle=300.0, seed=3, takes=1.0)
    assert run["cold_idle"] > 0 and run["uncached"] > run["kept_uncached"] and run["total"] < run["kept_total"]
    assert run["kept_total"] == measure(sample(3, memo()))["total"]


@pytest.mark.parametrize("channels", [2, 6])
def test_pressure_needs_more_channels_than_processes(channels: int) -> None:
    run = shared(channels=channels, seed=1)
    assert run["turns"] == 30 * channels and run["cold_first"] == channels
    assert (run["cold_pressure"] > 0) == (channels > 4)
