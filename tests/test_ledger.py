"""One row a turn, sums that mean what they say, and the right values of a real log."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pandas as pd
import pytest
from drawn import TINY

from warmprefix import chatlogs
from warmprefix.channel import Channel, Message, gaps, mentions
from warmprefix.delivery import Limits
from warmprefix.ledger import COLUMNS, ledger, summary
from warmprefix.request import Blocks
from warmprefix.strategies import STRATEGIES
from warmprefix.tokens import Tokenizer
from warmprefix.watermark import STRICT

CHANNEL = Channel.of("ch", [Message(f"m{i}", "ann", "x" * i, 60.0 * i) for i in range(40)])
ASKING = (4, 9, 30, 31)


def run(blocks, name="watermark", asking=ASKING, **how):
    return ledger(CHANNEL, asking, STRATEGIES[name], blocks, TINY, **how)


def test_every_column_is_there_and_documented(blocks):
    table = run(blocks)
    assert list(table.columns) == list(COLUMNS)
    assert all(COLUMNS.values())
    assert list(table["position"]) == list(ASKING) and list(table["message_id"]) == ["m4", "m9", "m30", "m31"]
    assert list(table["at"]) == [240.0, 540.0, 1800.0, 1860.0] and set(table["strategy"]) == {"watermark"}


def test_the_columns_are_numbers_and_truths(blocks):
    kinds = run(blocks).dtypes
    assert {kinds[name].kind for name in ("cold", "failed")} == {"b"}
    texts = {"strategy", "message_id", "session", "cold", "failed", "at"}
    assert {kinds[name].kind for name in COLUMNS if name not in texts} == {"i"}
    assert kinds["at"].kind == "f"


def test_unshown_rows_belong_to_the_turn_that_might_have_shown_them(blocks):
    assert list(run(blocks)["unshown"]) == [0, 0, 8, 0]  # 10 to 17; 9 was addressed
    assert list(run(blocks, asking=(20,))["unshown"]) == [8]


def test_shown_characters_are_those_of_the_bodies_as_cut(blocks):
    assert list(run(blocks)["shown_chars"])[:2] == [0 + 1 + 2 + 3, 4 + 5 + 6 + 7 + 8]
    short = replace(STRATEGIES["watermark"], limits=Limits(body=5))
    assert list(ledger(CHANNEL, ASKING, short, blocks, TINY)["shown_chars"])[:2] == [6, 4 + 5 * 4]


def test_a_row_is_distinct_once_however_often_it_is_sent(blocks):
    for name in ("window", "watermark", "memoryless"):
        for how in ({}, {"evict_at": {2, 4}}, {"fail_at": {1, 3}}, {"evict_at": {2}, "fail_at": {2, 3}}):
            found = summary(run(blocks, name, **how))
            lost = {1, 3} if how.get("fail_at") == {1, 3} else how.get("fail_at", set())
            asked = [p for turn, p in enumerate(ASKING, 1) if turn not in lost]
            reached = {p for at in asked for p in ([q for q in range(at)][-12:])}
            assert found["distinct"] == len(reached), (name, how)
            assert found["unshown"] == len(set(range(31)) - reached - set(ASKING)), (name, how)


def test_a_session_that_nobody_asks(blocks):
    table = ledger(CHANNEL, (), STRATEGIES["watermark"], blocks, TINY)
    assert list(table.columns) == list(COLUMNS) and len(table) == 0
    found = summary(table)
    assert found["cache_share"] is None and found["new_per_warm_turn"] is None
    assert {value for value in found.values() if value is not None} == {0}


def test_one_cold_turn_has_no_warm_mean(blocks):
    found = summary(run(blocks, asking=(4,)))
    assert (found["turns"], found["cache_share"], found["new_per_warm_turn"]) == (1, 0.0, None)


def test_the_volatile_first_line_costs_the_whole_cache(blocks):
    table = run(blocks, "unstable")
    status = blocks.tokenizer.count(TINY.status(0.0))
    assert (table["cached"] < status).all()
    assert (run(blocks, "status-tail")["cached"][1:] > table["cached"][1:]).all()


def test_a_failed_turn_was_sent_but_is_no_part_of_what_follows(blocks):
    sound, failed = run(blocks), run(blocks, fail_at={2})
    assert list(failed["total"])[:2] == list(sound["total"])[:2]
    assert failed["total"][2] < sound["total"][2] and failed["cached"][2] < failed["total"][1]
    assert list(failed["output"])[1] == 0


def test_a_replay_that_remembers_few_texts_gives_the_same_table(blocks):
    few = Blocks(Tokenizer(), keep=40)
    for strategy in STRATEGIES.values():
        for limits in (Limits(), Limits(None, 5, None)):
            knobs = replace(strategy, limits=limits)
            how = {"evict_at": {4, 9}, "fail_at": {1, 3, 6}}
            tables = [ledger(CHANNEL, range(1, 40, 3), knobs, maker, TINY, **how) for maker in (few, blocks)]
            pd.testing.assert_frame_equal(*tables)


def test_cut_rows_are_counted_where_they_are_new(blocks):
    short = replace(STRATEGIES["window"], limits=Limits(body=5))
    table = ledger(CHANNEL, ASKING, short, blocks, TINY)
    assert list(table["cut"])[:2] == [0, 9 - 6] and list(table["cut_chars"])[:2] == [0, 1 + 2 + 3]
    assert set(run(blocks, "window")["cut"]) == {0}


def test_the_summary_can_be_written_as_json(blocks):
    assert json.loads(json.dumps(summary(run(blocks)))) == summary(run(blocks))


# The right values of a real log

RUNS = {
    "window_limit12_fetch30": STRATEGIES["window"],
    "watermark_strict_limit_none_fetch_none": replace(
        STRATEGIES["watermark"], cursor=STRICT, limits=Limits(rows=None, fetch=None)
    ),
    "watermark_strict_limit12_fetch30": replace(STRATEGIES["watermark"], cursor=STRICT),
    "watermark_faithful_limit12_fetch30": STRATEGIES["watermark"],
}


@pytest.fixture(scope="module")
def irc(shared_data):
    folder = shared_data / "channels" / "irc_w3c_css_20131111"
    channel = chatlogs.read(folder / "channel.log", "irc").with_agents(["relay", "recorder", "issuebot"])
    return channel, json.loads((folder / "expected.json").read_text(encoding="utf-8"))


PATTERN = r"^\s*(?i:relay|recorder|issuebot)\s*[,:]"


def test_a_real_logs_mentions(irc):
    channel, expected = irc
    found = mentions(channel, patterns=[PATTERN])
    assert list(found) == expected["mention_index"] and len(found) == expected["mentions"] == 30
    assert len(channel.messages) == expected["messages"]
    assert len({message.author for message in channel.messages}) == expected["authors"]
    assert {key: round(value, 3) for key, value in gaps(found).items()} == expected["gaps"]


@pytest.mark.parametrize("own_rows", ["replay", "replay_without_bot_messages"])
@pytest.mark.parametrize("name", RUNS)
def test_a_real_log_under_four_runs(irc, blocks, own_rows, name):
    channel, expected = irc
    channel = channel if own_rows == "replay" else channel.without_agents()
    found = summary(ledger(channel, mentions(channel, patterns=[PATTERN]), RUNS[name], blocks, TINY))
    wanted = expected[own_rows][name]
    keys = ("turns", "shown", "distinct", "duplicated", "unshown")
    assert {key: found[key] for key in keys} == {key: wanted[key] for key in keys}


# The same bytes

TABLES = """
import sys
from warmprefix.channel import Channel, Message
from warmprefix.ledger import ledger
from warmprefix.request import Blocks
from warmprefix.strategies import STRATEGIES
from warmprefix.tokens import Tokenizer

rows = [Message(f"m{i}", "ann", f"wörd {i}\\n" * (i % 7), 7.0 * (i // 2)) for i in range(60)]
blocks, channel = Blocks(Tokenizer()), Channel.of("ch", rows)
for strategy in STRATEGIES.values():
    table = ledger(channel, range(3, 60, 6), strategy, blocks, evict_at={4, 7}, fail_at={2, 8})
    sys.stdout.write(table.to_csv(index=False))
"""


def test_two_processes_give_the_same_bytes():
    tables = [
        subprocess.run(
            [sys.executable, "-c", TABLES], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "4242")
    ]
    assert tables[0] == tables[1]
    assert tables[0].count(b"\n") == len(STRATEGIES) * 11
