"""What the simulated session sends, turn by turn, under each knob."""

from dataclasses import replace
from itertools import pairwise

import pytest
from drawn import TINY

from warmprefix.brief import Binding
from warmprefix.channel import Channel, Message
from warmprefix.delivery import Limits
from warmprefix.simulate import Setting, forever_unshown, simulate, status_line, tool_schemas
from warmprefix.strategies import PLACES, PUBLISHED, STRATEGIES, Strategy
from warmprefix.tokens import is_segment
from warmprefix.watermark import STRICT

CHANNEL = Channel.of("ch", [Message(f"m{i}", "ann", f"text {i}", 60.0 * i) for i in range(40)])
ASKING = (4, 9, 30, 31)
SETTING = replace(TINY, status=lambda at: f"status {at:.0f}\n")


def run(blocks, name="watermark", mentions=ASKING, channel=CHANNEL, **how):
    knobs = {key: how.pop(key) for key in ("status", "cursor", "limits", "ask_every", "order") if key in how}
    return list(simulate(channel, mentions, replace(STRATEGIES[name], **knobs), blocks, SETTING, **how))


def shown(steps):
    return [[message.position for message in step.shown] for step in steps]


def kinds(step, start=0):
    return [block.kind for block in step.request.blocks][start:]


def text(blocks, step):
    return "".join(map(blocks.text, step.request.blocks))


def test_the_requests_order(blocks):
    first, second = run(blocks)[:2]
    turn = ["opening", "payload", "separator", "brief", "header"]
    assert kinds(first) == ["system", "tools", *turn, *["row"] * 4]
    assert kinds(second) == [*kinds(first), "reply", *turn, *["row"] * 5]
    assert [block.tier for block in second.request.blocks] == ["system", "tools", *["messages"] * 20]


def test_each_request_begins_with_the_one_before(blocks):
    steps = run(blocks)
    for before, after in pairwise(steps):
        assert text(blocks, after).startswith(text(blocks, before))


def test_a_warm_turn_sends_neither_prompt_nor_transcript_nor_seen_rows(blocks):
    steps = run(blocks)
    assert shown(steps) == [[0, 1, 2, 3], [4, 5, 6, 7, 8], list(range(18, 30)), [30]]
    assert [[p.kind for p in step.parts].count("opening") for step in steps] == [1, 1, 1, 1]
    assert blocks.text(steps[0].parts[0]).startswith("User: ") and not blocks.text(steps[1].parts[0]).startswith("User")
    assert [step.cold for step in steps] == [True, False, False, False]


def test_the_window_shows_the_newest_twelve_every_time(blocks):
    steps = run(blocks, "window")
    assert shown(steps) == [[0, 1, 2, 3], list(range(9)), list(range(18, 30)), list(range(19, 31))]
    assert [sorted(step.repeated) for step in steps] == [[], [0, 1, 2, 3], [], list(range(19, 30))]


def test_an_unstable_status_is_the_very_first_block_and_changes(blocks):
    steps = run(blocks, "unstable")
    assert [kinds(step)[:3] for step in steps] == [["status", "system", "tools"]] * 4
    assert [blocks.text(step.request.blocks[0]) for step in steps] == [f"status {60 * i}\n" for i in ASKING]


@pytest.mark.parametrize(
    ("status", "order", "start"),
    [
        ("before system", ("system", "tools"), ["status", "system", "tools", "opening"]),
        ("after system", ("system", "tools"), ["system", "status", "tools", "opening"]),
        ("before tools", ("system", "tools"), ["system", "status", "tools", "opening"]),
        ("before tools", ("tools", "system"), ["status", "tools", "system", "opening"]),
        ("before system", ("tools", "system"), ["tools", "status", "system", "opening"]),
        ("after system", ("tools", "system"), ["tools", "system", "status", "opening"]),
        ("turn start", ("system", "tools"), ["system", "tools", "status", "opening"]),
        (None, ("tools", "system"), ["tools", "system", "opening", "payload"]),
    ],
)
def test_where_the_status_stands(blocks, status, order, start):
    assert kinds(run(blocks, status=status, order=order)[1])[: len(start)] == start


@pytest.mark.parametrize("order", [("system", "tools"), ("tools", "system")])
@pytest.mark.parametrize("status", PLACES)
def test_every_place_has_its_status_once_a_turn_and_changes_nothing_else(blocks, status, order):
    steps, plain = run(blocks, status=status, order=order, ask_every=1), run(blocks, order=order)
    kept = {"turn start", "turn end", "tool"}  # in the conversation, where earlier ones stay
    for turn, (step, bare) in enumerate(zip(steps, plain, strict=True), start=1):
        lines = [block for block in step.request.blocks if block.kind in ("status", "tool result")]
        times = [f"status {60 * i}\n" for i in ASKING[:turn]]
        times = times[:-1] if status == "tool" else times if status in kept else times[-1:] if status else []
        assert [blocks.text(line) for line in lines] == times
        rest = [b for b in step.request.blocks if b.kind not in ("status", "tool call", "tool result")]
        assert rest == list(bare.request.blocks)


def test_a_status_at_the_tail_is_in_every_turn_and_stays_in_the_history(blocks):
    steps = run(blocks, "status-tail")
    assert [kinds(step)[-1] for step in steps] == ["status"] * 4
    assert [kinds(step).count("status") for step in steps] == [1, 2, 3, 4]
    assert shown(steps) == shown(run(blocks)) and [len(s.rows) for s in steps] == [len(s.shown) for s in steps]


def test_a_status_behind_a_tool_is_asked_for_now_and_then(blocks):
    steps = run(blocks, "status-tool", mentions=range(1, 40, 3), ask_every=5)
    calls = [kinds(step).count("tool call") for step in steps]
    assert calls == [0] * 5 + [1] * 5 + [2] * 3
    assert calls == [kinds(step).count("tool result") for step in steps]
    behind = kinds(steps[5])
    at = behind.index("tool call")
    assert behind[at - 1 : at + 4] == ["row", "tool call", "tool result", "reply", "opening"]
    assert "status" not in behind


def test_a_repeated_system_prompt(blocks):
    steps = run(blocks, "repeat-system")
    assert [kinds(step).count("system") for step in steps] == [1, 2, 3, 4]
    assert [step.parts[0].kind for step in steps] == ["opening", "system", "system", "system"]
    assert shown(steps) == shown(run(blocks))


def test_a_replayed_transcript_grows_with_the_square(blocks):
    steps = run(blocks, "replay-transcript", mentions=range(1, 37, 4))
    assert [[p.kind for p in step.parts].count("opening") for step in steps] == list(range(1, 10))
    assert [kinds(step).count("opening") for step in steps] == [n * (n + 1) // 2 for n in range(1, 10)]
    assert [kinds(step).count("system") for step in steps] == [1] * 9
    assert blocks.text(next(p for p in steps[1].parts if p.kind == "reply")) == "Assistant: ok\n"
    assert [step.rows for step in steps] == [step.rows for step in run(blocks, mentions=range(1, 37, 4))]


def test_without_memory_every_turn_is_the_first(blocks):
    steps = run(blocks, "memoryless")
    assert all(step.cold for step in steps) and len({step.session for step in steps}) == 4
    assert shown(steps) == shown(run(blocks, "window"))
    assert [kinds(step).count("opening") for step in steps] == [1, 1, 1, 1]
    assert [sorted(step.resent) for step in steps] == [[], [0, 1, 2, 3], [], list(range(19, 30))]
    assert not any(step.repeated for step in steps)


@pytest.mark.parametrize(
    ("binding", "watermark"),
    [
        (Binding(), True),
        (Binding(supervised=False), False),
        (Binding(resident=False), False),
        (Binding(supervised=False, resident=False, stored=True), True),
    ],
)
def test_only_a_binding_that_keeps_its_session_has_a_watermark(blocks, binding, watermark):
    steps = list(simulate(CHANNEL, ASKING, STRATEGIES["watermark"], blocks, replace(SETTING, binding=binding)))
    assert shown(steps) == shown(run(blocks, "watermark" if watermark else "window"))


def test_an_evicted_session_starts_anew_with_a_snapshot(blocks):
    steps = run(blocks, mentions=(4, 9, 12, 14), evict_at={3})
    assert shown(steps) == [[0, 1, 2, 3], [4, 5, 6, 7, 8], list(range(12)), [12, 13]]
    assert [step.session for step in steps] == ["native-1", "native-1", "native-2", "native-2"]
    assert sorted(steps[2].resent) == list(range(9)) and kinds(steps[2]).count("opening") == 1
    assert "Recent messages" in text(blocks, steps[2])


@pytest.mark.parametrize("evict_at", [(), {1}, {1, 2, 3, 4}, {0, 99}, (2, 2, 4)])
def test_any_set_of_mentions_can_be_evicted(blocks, evict_at):
    steps = run(blocks, evict_at=evict_at)
    assert [step.cold for step in steps] == [turn == 1 or turn in evict_at for turn in (1, 2, 3, 4)]


def test_a_failed_run_is_sent_and_leaves_no_trace(blocks):
    steps = run(blocks, fail_at={2})
    assert [step.failed for step in steps] == [False, True, False, False]
    assert steps[1].request.output == 0 < steps[2].request.output
    assert shown(steps) == [[0, 1, 2, 3], [4, 5, 6, 7, 8], list(range(18, 30)), [30]]
    assert kinds(steps[2]).count("opening") == 2  # the first mention and this one
    assert '"run_id":"run-02"' in text(blocks, steps[1]) and '"run_id":"run-02"' not in text(blocks, steps[2])
    assert forever_unshown(CHANNEL, ASKING, steps) == [5, 6, 7, 8, *range(10, 18)]


def test_a_replayed_transcript_holds_no_failed_turn(blocks):
    steps = run(blocks, "replay-transcript", fail_at={2})
    assert [text(blocks, step).count('"run_id":"run-02"') for step in steps] == [0, 1, 0, 0]
    assert [[p.kind for p in step.parts].count("opening") for step in steps] == [1, 2, 2, 3]


def test_a_failed_first_run_is_followed_by_a_cold_turn_of_the_same_process(blocks):
    steps = run(blocks, mentions=(4, 9, 12), fail_at={1})
    assert [step.cold for step in steps] == [True, True, False]
    assert {step.session for step in steps} == {"native-1"}
    assert shown(steps) == [[0, 1, 2, 3], list(range(9)), [9, 10, 11]]
    assert not any(step.repeated or step.resent for step in steps)


def test_rows_that_only_a_dead_process_saw_are_resent_in_a_warm_turn_too(blocks):
    steps = run(blocks, mentions=(4, 6, 8), evict_at={2}, fail_at={2})
    assert [sorted(step.resent) for step in steps] == [[], [0, 1, 2, 3], [0, 1, 2, 3]]


def test_a_clock_that_runs_backwards_never_turns_time_back(blocks):
    times = [50.0, 10.0, 40.0, 90.0, 20.0, 60.0]
    channel = Channel.of("ch", [Message(f"m{i}", "ann", "x", at) for i, at in enumerate(times)])
    steps = run(blocks, channel=channel, mentions=(1, 3, 5))
    assert [step.request.at for step in steps] == [50.0, 90.0, 90.0]
    assert shown(steps) == [[0], [], [3]]  # faithful: 10, 40 and 20 lie before what was shown
    assert shown(run(blocks, channel=channel, mentions=(1, 3, 5), cursor=STRICT)) == [[0], [1, 2], [3, 4]]


def test_nobody_asks(blocks):
    assert run(blocks, mentions=()) == []
    assert run(blocks, mentions=(), channel=Channel.of("ch", ())) == []
    assert forever_unshown(CHANNEL, (), []) == []


def test_the_first_and_only_row_asks(blocks):
    (step,) = run(blocks, mentions=(0,))
    assert kinds(step) == ["system", "tools", "opening", "payload", "separator", "brief"]
    assert step.rows == step.shown == ()


@pytest.mark.parametrize("limits", [Limits(rows=0), Limits(fetch=1)])
def test_a_limit_of_nothing_shows_nothing_and_marks_nothing(blocks, limits):
    steps = run(blocks, limits=limits)
    assert shown(steps) == [[]] * 4
    assert forever_unshown(CHANNEL, ASKING, steps) == [i for i in range(31) if i not in ASKING]


@pytest.mark.parametrize("name", ["window", "watermark"])
def test_limits_beyond_every_channel_are_none(blocks, name):
    free = shown(run(blocks, name, limits=Limits(rows=None, fetch=None)))
    assert shown(run(blocks, name, limits=Limits(rows=10**20, fetch=10**20))) == free
    assert shown(run(blocks, name, limits=Limits(rows=10**20, fetch=None))) == free


def test_the_default_setting_has_the_published_sizes(blocks):
    (step,) = simulate(CHANNEL, (0,), STRATEGIES["watermark"], blocks)
    prefix = [block.tokens for block in step.request.blocks if block.tier != "messages"]
    assert sum(prefix) == 2120 and len(prefix) == 1 + 20
    assert blocks.tokenizer.count(status_line(1.7e9)) == 28
    assert len(tool_schemas()) == 20
    assert all(map(is_segment, (Setting().reply(1), *Setting().tools, status_line(0.0))))


def test_strategies_are_points_in_one_space():
    assert set(PUBLISHED) <= set(STRATEGIES) and all(name == s.name for name, s in STRATEGIES.items())
    assert {name for name, s in STRATEGIES.items() if not s.remembers} == {"window", "memoryless"}


@pytest.mark.parametrize(
    ("knob", "problem"),
    [
        ({"status": "somewhere"}, "status must be one of .* it is 'somewhere'"),
        ({"ask_every": 0}, "ask_every must be at least 1; it is 0"),
        ({"cursor": "strikt"}, "cursor must be one of .* it is 'strikt'"),
        ({"order": ("tools",)}, "order must be one of"),
        ({"order": ("messages", "tools")}, "order must be one of"),
        ({"omits": frozenset({"seen row"})}, "omits must be among .* 'seen row' is not"),
    ],
)
def test_a_knob_that_has_no_such_place_is_refused(knob, problem):
    with pytest.raises(ValueError, match=problem):
        Strategy("x", **knob)
