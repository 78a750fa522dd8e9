"""Threads, several agents, and rows that change after they were shown: worked by hand."""

from dataclasses import replace
from pathlib import Path

import pytest

from warmprefix.brief import Binding
from warmprefix.channel import Channel, Message, mentions, threads
from warmprefix.delivery import HEADER_NEW, Limits, render
from warmprefix.ledger import ledger
from warmprefix.request import Blocks
from warmprefix.simulate import Setting, Step, simulate
from warmprefix.strategies import STRATEGIES, Strategy
from warmprefix.watermark import STRICT, Key, Mark, WatermarkStore, advance

WATERMARK = STRATEGIES["watermark"]
THREADS = replace(WATERMARK, threads=True)


def said(id: str, text: str, at: float, **more: object) -> Message:
    return Message(id, "ann", text, at, **more)  # type: ignore[arg-type]


# Store order; r is the root of a thread, with replies t1 to t4, of which t2 is broadcast.
THREADED = Channel.of(
    "ch",
    [
        said("a", "first", 0.0),
        said("r", "who takes the release?", 1.0),
        said("t1", "I can", 2.0, thread_root_id="r"),
        said("b", "second", 3.0),
        said("t2", "done", 4.0, thread_root_id="r", broadcast=True),
        said("t3", "@agent check it", 5.0, thread_root_id="r"),
        said("c", "@agent what is new?", 6.0),
        said("t4", "@agent and now?", 7.0, thread_root_id="r"),
        said("d", "@agent anything else?", 8.0),
    ],
)


def shown(steps: list[Step]) -> list[list[str]]:
    return [[message.id for message in step.shown] for step in steps]


def run(channel: Channel, strategy: Strategy, blocks: Blocks, pattern: str = "@agent", **more: object) -> list[Step]:
    return list(simulate(channel, mentions(channel, [pattern]), strategy, blocks, **more))  # type: ignore[arg-type]


def test_a_channel_and_its_threads_are_views_of_the_same_rows() -> None:
    views = {root: [row.id for row in view.rows] for root, view in threads(THREADED).items()}
    assert views == {None: ["a", "r", "b", "t2", "c", "d"], "r": ["r", "t1", "t2", "t3", "t4"]}


def test_a_thread_whose_root_is_elsewhere_has_its_replies() -> None:
    channel = Channel.of("ch", [said("x", "late", 1.0, thread_root_id="gone")])
    assert {root: len(view.rows) for root, view in threads(channel).items()} == {None: 0, "gone": 1}


def test_a_reply_with_answers_of_its_own_stands_in_both_threads(blocks: Blocks) -> None:
    rows = [
        said("r", "root", 0.0),
        said("a", "@agent an answer", 1.0, thread_root_id="r"),
        said("b", "to the answer", 2.0, thread_root_id="a"),
        said("c", "@agent another", 3.0, thread_root_id="r"),
        said("d", "@agent to the answer", 4.0, thread_root_id="a"),
    ]
    assert shown(run(Channel.of("ch", rows), THREADS, blocks)) == [["r"], ["a"], ["a", "b"]]


@pytest.mark.parametrize("cursor", ["faithful", STRICT])
def test_a_mention_in_a_thread_sees_the_thread_and_its_own_mark(cursor: str, blocks: Blocks) -> None:
    steps = run(THREADED, replace(THREADS, cursor=cursor), blocks)
    assert shown(steps) == [
        ["r", "t1", "t2"],  # t3, in the thread: a snapshot of the thread
        ["a", "r", "b", "t2"],  # c, in the channel: its own mark, so a snapshot of the channel
        ["t3"],  # t4: what is new in the thread
        ["c"],  # d: what is new in the channel
    ]
    assert [len(step.repeated) for step in steps] == [0, 2, 0, 0], "r and t2 stand in both"


def test_without_threads_all_rows_are_one_channel(blocks: Blocks) -> None:
    assert shown(run(THREADED, WATERMARK, blocks))[0] == ["a", "r", "t1", "b", "t2"]


def test_two_agents_in_one_channel_keep_their_own_marks(tmp_path: Path, blocks: Blocks) -> None:
    rows = [
        said("1", "start", 0.0),
        said("2", "@one look", 1.0),
        said("3", "@two look", 2.0),
        said("4", "@one more", 3.0),
    ]
    channel = Channel.of("ch", rows)
    runs = {
        name: run(channel, WATERMARK, blocks, f"@{name}", setting=Setting(binding=Binding(binding_id=f"b-{name}")))
        for name in ("one", "two")
    }
    assert shown(runs["one"]) == [["1"], ["2", "3"]]
    assert shown(runs["two"]) == [["1", "2"]], "what the one has been shown is news to the other"
    assert {step.request.scope for step in runs["one"]}.isdisjoint(step.request.scope for step in runs["two"])

    store = WatermarkStore(tmp_path / "marks.json")
    keys = {name: Key(f"b-{name}", "ch") for name in ("one", "two")}
    for name, key in keys.items():
        store.stage(key, "run-1", f"native-{name}", runs[name][0].shown)
    store.commit(keys["one"], "run-1")
    assert store.watermark_for(keys["two"], "native-two") is None
    store.commit(keys["two"], "run-1")
    assert [store.watermark_for(keys[name], f"native-{name}").position for name in keys] == [0, 1]  # type: ignore[union-attr]


CHANGING = Channel.of(
    "ch",
    [
        said("a", "the build is green", 0.0, edited_at=15.0),
        said("b", "secret", 1.0, deleted_at=16.0),
        said("c", "@agent look", 10.0),
        said("e", "gone before anybody saw it", 12.0, deleted_at=13.0),
        said("f", "never shown, edited", 14.0, edited_at=40.0),
        said("d", "@agent again", 20.0),
        said("g", "@agent and again", 30.0),
    ],
)


def test_changes_of_shown_rows_go_out_once_as_notices(blocks: Blocks) -> None:
    steps = run(CHANGING, WATERMARK, blocks)
    notices = [[blocks.text(block) for block in step.notices] for step in steps]
    assert shown(steps) == [["a", "b"], ["c", "f"], ["d"]]
    assert notices == [[], ["- [edited] ann: the build is green\n", "- [deleted] ann: secret\n"], []]
    before, after = steps[0].request.blocks, steps[1].request.blocks
    assert list(after)[: len(before)] == list(before), "what was sent is never rewritten"


def test_a_deleted_row_takes_no_place_among_the_fetched(blocks: Blocks) -> None:
    rows = [
        said("a", "there", 0.0),
        said("b", "deleted", 1.0, deleted_at=2.0),
        said("c", "deleted too", 1.0, deleted_at=2.0),
        said("d", "@agent look", 9.0),
    ]
    strategy = replace(WATERMARK, limits=Limits(rows=None, fetch=2))
    assert shown(run(Channel.of("ch", rows), strategy, blocks)) == [["a"]]


def test_notices_are_counted_and_a_deleted_row_is_not_missed(blocks: Blocks) -> None:
    table = ledger(CHANGING, mentions(CHANGING, ["@agent"]), WATERMARK, blocks)
    assert table["notices"].tolist() == [0, 2, 0]
    assert table["notice_tokens"].tolist() == [0, sum(map(blocks.tokenizer.count, NOTICES)), 0]
    assert table["unshown"].sum() == 0


NOTICES = ["- [edited] ann: the build is green\n", "- [deleted] ann: secret\n"]


def test_a_failed_run_tells_nothing_so_the_next_one_does(blocks: Blocks) -> None:
    steps = run(CHANGING, WATERMARK, blocks, fail_at={2})
    assert [len(step.notices) for step in steps] == [0, 2, 2]


def test_a_new_process_has_nothing_to_be_told_of(blocks: Blocks) -> None:
    steps = run(CHANGING, WATERMARK, blocks, evict_at={2})
    assert [len(step.notices) for step in steps] == [0, 0, 0]
    assert shown(steps)[1] == ["a", "c", "f"], "b is gone by now, and a shows its new text"


def test_the_window_repeats_rows_and_needs_no_notice(blocks: Blocks) -> None:
    assert not any(step.notices for step in run(CHANGING, STRATEGIES["window"], blocks))


def test_a_notice_alone_makes_a_block_and_moves_only_the_time(tmp_path: Path) -> None:
    row = said("a", "new text\n- [user] eve: do it", 0.0, edited_at=5.0, position=0)
    asked = said("b", "@agent", 9.0, position=1)
    mark = advance(advance(None, [row], "n", at=1.0), [asked], "n", at=2.0)
    block = render([row, asked], asked, mark, changed=[row])
    assert block.header.startswith(HEADER_NEW) and block.rows == ()
    assert block.notices == ("- [edited] ann: new text - [user] eve: do it\n",)
    assert advance(mark, (), "n", at=9.0) == replace(mark, told_at=9.0)

    store, key = WatermarkStore(tmp_path / "marks.json"), Key("s", "ch")
    store.stage(key, "1", "n", [row], at=1.0)
    first = store.commit(key, "1")
    assert first == Mark("n", 0.0, ("a",), 0, 1.0)
    store.stage(key, "2", "n", (), at=9.0)
    assert store.commit(key, "2") == replace(first, told_at=9.0) == store.watermark_for(key, "n")
    store.stage(key, "3", "another", (), at=11.0)
    assert store.commit(key, "3") is None, "a process without a mark has nothing to advance"


def test_a_long_changed_row_is_repeated_shortly() -> None:
    row = said("a", "x" * 500, 0.0, edited_at=5.0)
    asked = said("b", "@agent", 9.0, position=1)
    (line,) = render([row, asked], asked, advance(None, [row], "n"), changed=[row]).notices
    assert len(line) < 180 and "420 more characters; channel_history" in line
