"""Published against measured: the inputs hold everywhere, the verdicts follow their rule, nothing is fitted."""

import json
from dataclasses import replace

import pandas as pd
import pytest

from warmprefix import calibrate, claims, cli
from warmprefix.request import Blocks
from warmprefix.tokens import Tokenizer


@pytest.fixture(scope="module")
def blocks() -> Blocks:
    return Blocks(Tokenizer())


def test_the_command_prints_a_row_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    code = cli.main(["claims", "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) >= 24 and len({row["id"] for row in rows}) == len(rows)
    assert all(set(row) == {"id", "kind", "published", "low", "high", "measured", "role", "ok"} for row in rows)
    assert {row["role"] for row in rows} == {"input", "predicted", "reported"}
    assert code == int(any(row["ok"] is False for row in rows))
    for row in rows:
        if row["role"] == "input":
            values = row["measured"] if isinstance(row["measured"], list) else [row["measured"]]
            assert row["ok"] and all(row["low"] <= value <= row["high"] for value in values), row
        elif row["role"] == "predicted":
            judged = row["published"] if claims.claim(row["id"]).banded else row["measured"]
            assert row["ok"] == (row["low"] <= judged <= row["high"]), row
            assert row["low"] <= row["published"] <= row["high"], row
            assert row["ok"], row
        else:
            assert row["ok"] is None


def test_every_seed_meets_the_inputs(blocks: Blocks) -> None:
    spread = claims.spread(range(100, 140), blocks)
    for measured in spread:
        inputs = claims.verdicts(measured, spread).query("role == 'input'")
        assert inputs["ok"].all(), inputs[~inputs["ok"].astype(bool)]


def test_the_committed_channel_is_its_seed(blocks: Blocks) -> None:
    assert calibrate.sample(calibrate.SEED, blocks) == calibrate.published()


@pytest.mark.slow
def test_the_committed_seed_is_nearest_to_the_inputs(blocks: Blocks) -> None:
    def miss(measured: dict[str, claims.Value]) -> float:
        tuned = {"new.watermark": measured["new.watermark"], "block.window": measured["block.window"]}
        return sum(abs(value / claims.claim(id).published - 1) for id, value in tuned.items())  # type: ignore[operator]

    spread = claims.spread(range(100), blocks)
    assert min(range(100), key=lambda seed: miss(spread[seed])) == calibrate.SEED


def test_a_claim_that_does_not_hold_is_said_so(blocks: Blocks, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = calibrate.published()
    measured = claims.measure(sample, blocks)
    spread = [measured, {**measured, "total.window": 400_000.0}]
    table = claims.verdicts({**measured, "channel.long": 9}, spread).set_index("id")
    assert not table.loc["channel.long", "ok"], "an input is judged by what is measured"
    assert not table.loc["new.window", "ok"], "a band of one value does not contain another"
    assert "MISSES" in claims.readable(table.reset_index())["verdict"].tolist()
    monkeypatch.setattr(claims, "spread", lambda seeds, blocks: spread)
    assert cli.main(["claims"]) == 1


def test_a_prediction_without_a_spread_is_judged_by_what_is_measured(blocks: Blocks) -> None:
    measured = claims.measure(calibrate.published(), blocks)
    table = claims.verdicts({**measured, "fanout": 0.25, "lookback.pair": 0.99}, [measured]).set_index("id")
    assert not table.loc["fanout", "ok"] and not table.loc["lookback.pair", "ok"]
    assert table.loc["fanout", ["low", "high"]].tolist() == pytest.approx([0.1945, 0.1955])
    assert table.loc["read.price", "ok"] and not claims.claim("fanout").banded and claims.claim("new.window").banded


def test_the_tools_are_claimed_as_published() -> None:
    roles = {claim.id: claim.role for claim in claims.claims()}
    assert {id for id, role in roles.items() if id.startswith("tools.") and role == claims.INPUT} == {
        f"tools.{name}" for name in ("count", "full", "resident", "index", "deferred", "reduction")
    }
    for id in ("read.price", "off.identical", "lookback.single", "lookback.pair", "activation.prefix", "fanout"):
        assert roles[id] == claims.PREDICTED


def test_measured_values_follow_the_channel(blocks: Blocks) -> None:
    sample = calibrate.published()
    rows = list(sample.channel.messages)
    rows[-1] = replace(rows[-1], text="x" * 601)
    channel = replace(sample.channel, messages=tuple(rows))
    before, after = (claims.measure(each, blocks) for each in (sample, replace(sample, channel=channel)))
    assert after["channel.long"] == before["channel.long"] + 1  # type: ignore[operator]


def test_a_table_for_people_writes_ranges_and_shares(blocks: Blocks) -> None:
    measured = claims.measure(calibrate.published(), blocks)
    table = claims.readable(claims.verdicts(measured, [measured])).set_index("claim")
    assert table.loc["block.window.read", "published"] == "420 to 440"
    assert table.loc["share.window", "published"] == "0.94"
    assert table.loc["total.window", "published"] == "516,000"
    assert isinstance(table, pd.DataFrame)
