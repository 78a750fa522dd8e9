"""Sessions under providers' caches: usage adds up, clocks, prices and keep-alive requests by hand."""

import math
from dataclasses import replace

import pandas as pd
import pytest

from warmprefix import calibrate
from warmprefix.caches import Usage
from warmprefix.channel import Channel, Message
from warmprefix.ledger import ledger
from warmprefix.placement import everywhere
from warmprefix.prices import cost
from warmprefix.providers import COLUMNS, PROVIDERS, Latency, Provider, anthropic, bill, idle_evictions, steps_of
from warmprefix.request import Blocks
from warmprefix.simulate import Setting
from warmprefix.strategies import STRATEGIES

BY_NAME = {provider.name: provider for provider in PROVIDERS}


def billed(provider: Provider, blocks: Blocks, strategy: str = "watermark", evict_at: tuple[int, ...] = ()):
    sample = calibrate.published()
    steps = steps_of(
        sample.channel, sample.mentions, STRATEGIES[strategy], provider.order, blocks, sample.setting, evict_at
    )
    return bill(steps, strategy, provider, blocks, sample.setting)


def at(*times: float, provider: Provider, blocks: Blocks, strategy: str = "watermark") -> pd.DataFrame:
    """The bill of mentions at these times and nothing else."""
    channel = Channel.of("ch", [Message(f"m{i}", "ann", "@agent look", time) for i, time in enumerate(times)])
    steps = steps_of(channel, range(len(times)), STRATEGIES[strategy], provider.order, blocks, Setting())
    return bill(steps, strategy, provider, blocks, Setting())


@pytest.mark.parametrize("name", BY_NAME)
def test_every_token_is_billed_once(name: str, blocks: Blocks) -> None:
    for strategy in ("watermark", "unstable", "memoryless"):
        table = billed(BY_NAME[name], blocks, strategy)
        assert list(table.columns) == list(COLUMNS)
        assert (table[["read", "write_5m", "write_1h", "uncached"]].sum(axis=1) == table["total"]).all()
        assert table["read"].iloc[0] == 0 or name == "Gemini explicit"  # an object is made before the first request
        priced = BY_NAME[name].vendor != ""
        assert table["usd"].notna().all() == priced and (table["first_token"] <= table["first_token_off"]).all()
    assert billed(BY_NAME[name], blocks, "watermark")["read"].sum() > 0


def test_the_ideal_prefix_is_the_ledgers(blocks: Blocks) -> None:
    sample = calibrate.published()
    table = billed(BY_NAME["ideal prefix"], blocks, evict_at=(15,))
    same = ledger(sample.channel, sample.mentions, STRATEGIES["watermark"], blocks, sample.setting, evict_at=(15,))
    assert table["read"].tolist() == same["cached"].tolist() and table["total"].tolist() == same["total"].tolist()


def test_lifetimes_run_on_the_clock(blocks: Blocks) -> None:
    five, hour = BY_NAME["Anthropic 5m"], BY_NAME["Anthropic 1h"]
    times = (0.0, 300.0, 601.0, 4201.0, 7802.0)
    assert (at(*times, provider=five, blocks=blocks)["read"] > 0).tolist() == [False, True, False, False, False]
    assert (at(*times, provider=hour, blocks=blocks)["read"] > 0).tolist() == [False, True, True, True, False]
    assert at(*times, provider=hour, blocks=blocks)["write_5m"].sum() == 0


def test_a_session_answers_one_after_the_other(blocks: Blocks) -> None:
    table = at(0.0, 0.0, 0.0, 60.0, provider=BY_NAME["Anthropic 5m"], blocks=blocks)
    latency = Latency()
    for i in (1, 2):
        before = table.iloc[i - 1]
        assert table["at"][i] == before["at"] + before["first_token"] + before["output"] / latency.decode
        assert table["read"][i] == before["total"]
    assert table["at"][3] == 60.0 and table["pause"][3] == 60.0 - table["at"][2] and math.isnan(table["pause"][0])


def test_a_cold_process_reads_what_another_one_wrote(blocks: Blocks) -> None:
    """The published simulation finds nothing cached after an eviction; a provider's cache belongs to the account."""
    ideal, hour = (billed(BY_NAME[name], blocks, evict_at=(15,)) for name in ("ideal prefix", "Anthropic 1h"))
    assert ideal["read"][14] == 0
    assert hour["read"][14] == 2120 == hour["read"].loc[1:][hour["cold"]].iloc[0]


def test_what_is_cached_of_a_status_line_in_front_is_the_tools(blocks: Blocks) -> None:
    table = billed(BY_NAME["Anthropic 1h"], blocks, "unstable")
    assert table["read"].iloc[1:].nunique() == 1 and 1024 < table["read"][1] < 2120
    assert table["usd"].sum() > table["usd_off"].sum()


def test_money_is_that_of_the_price_library(blocks: Blocks) -> None:
    table = billed(BY_NAME["Anthropic 5m"], blocks)
    row = table.iloc[7]
    usage = Usage(*(int(row[name]) for name in ("uncached", "read", "write_5m", "write_1h", "output")))
    assert row["usd"] == pytest.approx(float(cost(usage, "claude-sonnet-4-5", "anthropic")))
    off = Usage(uncached=usage.total, output=usage.output)
    assert row["usd_off"] == pytest.approx(float(cost(off, "claude-sonnet-4-5", "anthropic")))


def test_requests_keep_a_cache_warm_and_cost_their_reads(blocks: Blocks) -> None:
    warm = anthropic("warm", everywhere("5m"), keep_alive=900.0)
    table = at(0.0, 800.0, 3000.0, provider=warm, blocks=blocks)
    assert table["pings"].tolist() == [3, 3, 3]  # at 240, 480 and 720 s, until the mention or for 900 s
    assert (table["read"] > 0).tolist() == [False, True, False]
    plain = at(0.0, provider=replace(warm, keep_alive=0.0), blocks=blocks)
    ping = Usage(cache_read=int(table["total"][0]))
    assert table["usd"][0] == pytest.approx(
        plain["usd"][0] + 3 * float(cost(ping, "claude-sonnet-4-5", "anthropic")), rel=1e-9
    )


def test_cached_objects_are_paid_for_when_made_and_while_stored(blocks: Blocks) -> None:
    explicit = BY_NAME["Gemini explicit"]
    one, two = (at(*times, provider=explicit, blocks=blocks) for times in ((0.0, 60.0), (0.0, 3700.0)))
    assert (one["read"] == 2120).all() and (two["read"] == 2120).all()  # made first, then read by the same request
    made = float(cost(Usage(uncached=2120), explicit.model, "gemini"))
    assert two["usd"].sum() - one["usd"].sum() > made  # another object, and an hour of storage more
    assert (one["pings"] == 0).all()


def test_idle_processes_end() -> None:
    channel = Channel.of("ch", [Message(f"m{i}", "ann", "@agent", t) for i, t in enumerate((0.0, 1800.0, 3601.0))])
    assert idle_evictions(channel, range(3)) == [3]
    assert idle_evictions(channel, range(3), 60.0) == [2, 3]
