"""Drawn sessions, their sums, and the search over markers: small samples, each rule able to fail."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from warmprefix.burstlaw import law, names
from warmprefix.cases import Case
from warmprefix.errors import InputError
from warmprefix.lifetimes import (
    FATES,
    alive,
    bills,
    break_even,
    fates,
    month,
    month_of,
    own,
    search,
    session,
    sessions,
    settings,
    sums,
)
from warmprefix.request import Blocks


@pytest.fixture(scope="module")
def drawn():
    return sessions([law(name) for name in names()], 1, 8, 5)


@pytest.fixture(scope="module")
def table(drawn, blocks: Blocks) -> pd.DataFrame:
    return bills(drawn, settings(keep_alive=[600.0]), ["watermark", "unstable"], blocks)


def test_sessions_have_their_mentions_and_come_again_from_the_seed(drawn) -> None:
    assert [each.law for each in drawn] == list(names())
    for each in drawn:
        assert len(each.mentions) == 8 and each.mentions[-1] == len(each.channel.messages) - 1
        assert not any(row.agent for row in each.channel.messages)
    again = sessions([law(name) for name in names()], 1, 8, 5)
    assert [each.channel for each in again] == [each.channel for each in drawn]
    assert session(law("forum"), 1, np.random.default_rng(0)).mentions == (
        len(session(law("forum"), 1, np.random.default_rng(0)).channel.messages) - 1,
    )


def test_sums_are_of_all_rows(table: pd.DataFrame) -> None:
    summed = sums(table, ["law", "strategy", "provider"])
    assert summed["turns"].sum() == len(table)
    assert summed["usd"].sum() == pytest.approx(table["usd"].sum())
    one = table[(table["law"] == "forum") & (table["strategy"] == "unstable") & (table["provider"] == "1h")]
    row = summed.set_index(["law", "strategy", "provider"]).loc["forum", "unstable", "1h"]
    assert row["cost"] == pytest.approx(one["usd"].sum() / one["usd_off"].sum())
    assert row["low"] == pytest.approx(row["high"]) == pytest.approx(row["cost"])  # one session has no spread
    assert row["read"] == pytest.approx(one["read"].sum() / one["total"].sum())
    assert 0 < row["written"] == pytest.approx(one["write_1h"].sum() / one["total"].sum())


def test_fates_are_shares_of_the_turns(table: pd.DataFrame) -> None:
    shares = fates(table)
    assert shares[list(FATES)].sum(axis=1).tolist() == pytest.approx([1.0] * len(shares))
    one = table[(table["law"] == "community") & (table["provider"] == "5m")]
    lost = (~one["cold"] & (one["read"] == 0)).mean()
    assert shares.set_index(["law", "provider"]).loc[("community", "5m"), FATES[1]] == pytest.approx(lost)


def test_below_the_break_even_a_cache_costs_more_than_none(table: pd.DataFrame) -> None:
    for lifetime, seconds, write in (("5m", 300, 1.25), ("1h", 3600, 2.0)):
        rows = table[(table["provider"] == lifetime) & (table["strategy"] == "watermark")]
        live, paid = alive(rows, seconds), sums(rows, ["law"]).set_index("law")["cost"]
        for name in names():
            if abs(live[name] - break_even(0.1, write)) > 0.2:  # the answers, and the growth of requests, are left out
                assert (live[name] > break_even(0.1, write)) == (paid[name] < 1), (lifetime, name)


def test_the_search_finds_what_no_named_placement_beats(drawn, blocks: Blocks) -> None:
    found = search(drawn[:1], blocks)
    assert len(found) == 48 and found["cost"].is_monotonic_increasing
    plain = sums(bills(drawn[:1], settings(), ["watermark"], blocks), ["provider"]).set_index("provider")["cost"]
    cost = found.set_index("provider")["cost"]
    assert cost["no marker"] == pytest.approx(1.0)
    assert cost["tools 5m, system 5m, previous 5m, turn 5m"] == pytest.approx(plain["5m"])
    assert found["cost"][0] <= plain.min()


def test_the_idle_limit_reaches_the_search_and_the_month(drawn, blocks: Blocks) -> None:
    forum, ways = drawn[1:2], settings()
    never, soon = (search(forum, blocks, idle=idle).set_index("provider") for idle in (float("inf"), 60.0))
    spot = "tools 5m, system 5m, previous 5m, turn 5m"
    assert never.loc[spot, "usd"] > soon.loc[spot, "usd"], "a process that goes soon carries less history"
    for costs in (
        [month(law("forum"), 8, 1, 5, ways, ["watermark"], blocks, idle) for idle in (float("inf"), 60.0)],
        [month_of(forum[0], 1, ways, ["watermark"], blocks, idle) for idle in (float("inf"), 60.0)],
    ):
        assert costs[0]["usd_off"].iloc[0] > costs[1]["usd_off"].iloc[0]


def test_a_month_is_its_days(blocks: Blocks) -> None:
    costs = month(law("meeting"), 3, 2, 1, settings("gpt-5.6", "openai"), ["window", "memoryless"], blocks)
    assert costs["turns"].tolist() == [6, 6] and set(costs["provider"]) == {"OpenAI from 5.6"}
    assert costs.set_index("strategy")["usd"]["memoryless"] > 0


def test_a_month_of_a_log_of_ones_own_is_so_many_of_its_days(blocks: Blocks, tmp_path: Path) -> None:
    log = tmp_path / "own.log"
    days = ("2026-11-02", "2026-11-02", "2026-11-05")
    log.write_text("".join(f"[{day} 09:0{i}:00] <ann> scout: look {i}\n" for i, day in enumerate(days)), "utf-8")
    mine = own(Case("mine", log, mention=("^scout:",)))
    bill, of_month = (
        sums(bills([mine], settings(), ["window"], blocks), ["strategy", "provider"]),
        month_of(mine, 10, settings(), ["window"], blocks),
    )
    assert set(of_month["turns"]) == {15.0}, "two days with a mention have three, so ten have fifteen"
    assert of_month["usd"].tolist() == pytest.approx((5 * bill["usd"]).tolist())
    assert of_month["cost"].tolist() == bill["cost"].tolist()
    with pytest.raises(InputError, match="nobody addresses the agent"):
        own(Case("mine", log, mention=("^nobody:",)))


def test_settings_by_vendor() -> None:
    assert [each.name for each in settings("gpt-4o", "openai")] == ["OpenAI to 5.5"]
    assert {each.model for each in settings("gemini-2.5-pro", "gemini")} == {"gemini-2.5-pro"}
    assert len(settings(keep_alive=[60.0, 120.0])) == 5
    with pytest.raises(InputError, match="claude-none"):
        settings("claude-none")
