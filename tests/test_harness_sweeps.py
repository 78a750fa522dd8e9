"""What the notebooks sweep: markers and their lookback, trim thresholds, fan-outs."""

import numpy as np
import pandas as pd
import pytest

from warmprefix.harness.billing import BEDROCK
from warmprefix.harness.fan_out import Child, fan_out, usages
from warmprefix.harness.lookback import (
    CONSTANT,
    RAW,
    RUNS,
    after_a_pause,
    after_a_turn,
    marker_costs,
    placed,
    positions,
)
from warmprefix.harness.subagents import FIRST, TOGETHER, UNCACHED, by_bound, by_rules, by_size, throughput
from warmprefix.harness.thresholds import by_threshold, first_ahead, requests_to_pay
from warmprefix.harness.workloads import alternating_calls, conversation, parallel_calls, texts, tool_turns
from warmprefix.tools.catalogue import own_catalogue
from warmprefix.tools.surface import surface

SPLIT = surface(own_catalogue())


@pytest.fixture(scope="module")
def turns() -> pd.DataFrame:
    return after_a_turn(SPLIT, "Be brief.", [1, 2, 6, 18, 19, 20, 21, 30, 60], history=5_000)


def test_a_single_end_marker_sees_twenty_positions_with_its_own(turns: pd.DataFrame) -> None:
    single = turns[turns["marker"] == "single"]
    assert ((single["paid_again"] == 0) == (single["positions"] < 20)).all()
    lost = single[single["paid_again"] > 0]
    assert len(lost) and (lost["read"] == lost["head"]).all(), "tools and system prompt have markers of their own"


def test_the_pair_always_hits(turns: pd.DataFrame) -> None:
    assert (turns[turns["marker"] == "pair"]["paid_again"] == 0).all()


def test_parallel_calls_are_two_positions_where_runs_count_once(turns: pd.DataFrame) -> None:
    runs = turns[(turns["shape"] == "parallel tool calls") & (turns["marker"] == "single")]
    assert runs[runs["rule"] == RUNS]["positions"].unique().tolist() == [2]
    assert (runs[runs["rule"] == RUNS]["paid_again"] == 0).all()
    assert (runs[(runs["rule"] == RAW) & (runs["blocks"] > 20)]["paid_again"] > 0).all()


def test_positions_are_counted_by_either_rule() -> None:
    assert positions(texts(0, 7), True) == positions(texts(0, 7), False) == 7
    assert (positions(alternating_calls(0, 4), False), positions(alternating_calls(0, 4), True)) == (12, 9)
    assert positions((), True) == 0
    mixed = (*parallel_calls(0, 3), *parallel_calls(1, 3))
    assert positions(mixed, True) == 4


def test_the_four_markers_are_shown() -> None:
    sent, _ = conversation(SPLIT, "Be brief.", [texts(0, 2), texts(1, 2)])
    shown = placed(sent[1])
    assert shown["tier"].tolist() == ["tools", "system", "messages", "messages"]
    assert shown["lifetime"].tolist() == ["1h", "1h", "5m", "5m"]
    assert shown["tokens up to it"].iloc[-1] == sent[1].request().tokens


def test_more_markers_never_read_less() -> None:
    runs = {"short": tool_turns([500] * 4), "long": [texts(n, 25) for n in range(4)]}
    share = marker_costs(SPLIT, "Be brief.", runs, BEDROCK).pivot(index="run", columns="markers", values="share")
    assert (share["none"] == 0).all() and (share[CONSTANT] > 0).all()
    assert share.loc["short", "single"] == share.loc["short", "pair"] > share.loc["short", CONSTANT]
    assert share.loc["long", "single"] == share.loc["long", CONSTANT] < share.loc["long", "pair"]


def test_a_pause_ends_the_conversations_entry_before_the_heads() -> None:
    table = after_a_pause(SPLIT, "Be brief.", [300, 301, 3_600, 3_601], [texts(n, 1) for n in range(3)])
    read = table.pivot(index="pause", columns="constant", values="read")
    assert read.loc[300, "5m"] == read.loc[300, "1h"] > read.loc[301, "1h"] == read.loc[3_600, "1h"] > 4_000
    assert read.loc[301, "5m"] == read.loc[3_601, "1h"] == 0


def test_thresholds_trade_input_against_fresh_tokens() -> None:
    table, runs = by_threshold(SPLIT, "Be brief.", tool_turns([1_000] * 10), [0, 3_000, None])
    assert table["threshold"].tolist() == [0, 3_000, None]
    assert table["cuts"].tolist() == [8, 2, 0]
    assert table["input"].is_monotonic_increasing and table["fresh"].is_monotonic_decreasing
    assert table["longest"].is_monotonic_increasing
    for threshold, row in zip(runs, table.itertuples(), strict=True):
        assert runs[threshold]["total"].sum() == row.input and runs[threshold]["removed"].sum() == row.removed
    dearer = runs[0]["usd"].sum() > runs[None]["usd"].sum()
    assert dearer, "in a short run the steady cut loses"


def test_a_cut_pays_after_the_requests_that_the_arithmetic_says() -> None:
    assert requests_to_pay(20_000, 10_000) == pytest.approx(10_000 * 1.15 / 2_000)
    assert requests_to_pay(1_000, 0) == 0


def test_first_ahead_is_for_good() -> None:
    def run(*usd: float) -> pd.DataFrame:
        return pd.DataFrame({"usd": usd})

    assert first_ahead(run(1, 1), run(2, 2)) == 1
    assert first_ahead(run(1, 5, 0, 0), run(2, 2, 2, 2)) == 4
    assert first_ahead(run(2, 2), run(2, 1)) is None


def test_the_published_fan_out() -> None:
    table = by_size([8], [40_000], [2.0]).set_index("way")
    assert table.loc[TOGETHER, "usd"] == pytest.approx(0.80)
    assert table.loc[UNCACHED, "usd"] == pytest.approx(0.64)
    assert table.loc[FIRST, "usd"] == pytest.approx(0.156)
    assert table.loc[FIRST, "ended"] - table.loc[TOGETHER, "ended"] == 2.0


@pytest.mark.parametrize("lead", [True, False])
def test_usages_are_those_of_the_providers_rules(lead: bool) -> None:
    groups = [
        [Child(2.0, 9.0)] * 5,
        [Child(60.0, 70.0), *[Child(1.0, 9.0)] * 3],
        [Child(2.0, 9.0, fails_after=1.0), *[Child(2.0, 9.0)] * 3],
        [Child(0.5 + i, 20.0) for i in range(6)],
    ]
    for group in groups:
        starts = fan_out(group, 5.0, lead=lead)
        assert by_rules(starts, 4_000, own=70) == usages(starts, 4_000, own=70)


def test_a_longer_bound_buys_hits_with_time() -> None:
    table = by_bound([0.0, 3.0, 30.0], np.random.default_rng(3), draws=40, failing=0.05)
    assert table["hits"].is_monotonic_increasing and table["usd"].is_monotonic_decreasing
    assert (table["latest"] <= table["bound"]).all() and table["late"].iloc[0] == 0
    assert (table["late"] <= table["bound"]).all()
    again = by_bound([0.0, 3.0, 30.0], np.random.default_rng(3), draws=40, failing=0.05)
    pd.testing.assert_frame_equal(table, again)


def test_reads_leave_room_under_a_limit() -> None:
    table = throughput([10_000, 40_000], [420_000], own=2_000)
    assert table["cold"].tolist() == [35.0, 10.0] and table["warm"].tolist() == [210.0, 210.0]
