"""One request per mention: a channel, a strategy and a resident process, run turn by turn on simulated time."""

import json
from array import array
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from itertools import islice

from warmprefix.brief import Binding, mention_turn
from warmprefix.channel import Channel, Message, View, threads
from warmprefix.datafiles import read_data
from warmprefix.delivery import render
from warmprefix.prompt import MESSAGES, SYSTEM, TOOLS, Segment, Turn, compose
from warmprefix.request import Block, Blocks, Log, Request, Wire
from warmprefix.residency import Pool
from warmprefix.strategies import SYSTEM_PROMPT, TRANSCRIPT, Strategy
from warmprefix.watermark import STRICT, Mark, advance

MENTION = "mention"
DEFAULT_REPLY = "Done. The change is on my branch and its tests pass; the diff is small, so have a look when you can.\n"


@cache
def tool_schemas() -> tuple[str, ...]:
    """The 20 tool definitions that stand for a CLI's, one line of compact JSON each (`data/prefix_tools.json`)."""
    tools = json.loads(read_data("prefix_tools.json"))
    return tuple(json.dumps(tool, ensure_ascii=False, separators=(",", ":")) + "\n" for tool in tools)


def status_line(at: float, channel: str = "backend", online: int = 6, branch: str = "main") -> str:
    """The volatile line of the published run.

    >>> status_line(0.0)
    'Channel #backend · 6 online · branch main · turn at 1970-01-01 00:00:00 UTC\\n'
    """
    moment = datetime.fromtimestamp(at, UTC)
    return f"Channel #{channel} · {online} online · branch {branch} · turn at {moment:%Y-%m-%d %H:%M:%S} UTC\n"


@dataclass(frozen=True)
class Setting:
    """What surrounds the channel: the system prompt, the tools, the binding, the agent's replies, the status line.

    `reply` gives the agent's answer to the n-th mention, `status` the status line at a time in seconds; `rules` stands
    in for the brief. All of them are segments (`tokens.is_segment`).
    """

    framing: str = field(default_factory=lambda: read_data("framing.md"))
    tools: tuple[str, ...] = field(default_factory=tool_schemas)
    binding: Binding = Binding()
    reply: Callable[[int], str] = lambda turn: DEFAULT_REPLY
    status: Callable[[float], str] = status_line
    rules: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One turn as it was sent: the request, and what its context block showed.

    `turn` counts mentions from 1; `session` is the native id of the process that answered; `parts` are the blocks that
    the turn added to the conversation, `rows` and `notices` those of its context block, and `shown` the rows' messages;
    `repeated` holds the positions of the shown rows that this process had been shown before, and `resent` of those that
    only an earlier process had. `kind` is `mention`, or what followed from one (`history`): `page`, `compaction`.
    """

    turn: int
    mention: Message
    session: str
    cold: bool
    failed: bool
    request: Request
    parts: tuple[Block, ...]
    rows: tuple[Block, ...]
    notices: tuple[Block, ...]
    shown: tuple[Message, ...]
    repeated: frozenset[int]
    resent: frozenset[int]
    kind: str = MENTION


@dataclass
class _Process:
    """What a process carries from turn to turn, and its mark in the channel and in each thread."""

    log: Log = field(default_factory=Log)
    conversation: list[Turn] = field(default_factory=list)
    marks: dict[str | None, Mark] = field(default_factory=dict)


def simulate(
    channel: Channel,
    mentions: Sequence[int],
    strategy: Strategy,
    blocks: Blocks,
    setting: Setting | None = None,
    *,
    evict_at: Collection[int] = (),
    fail_at: Collection[int] = (),
) -> Iterator[Step]:
    """The requests of one session over a channel, one a mention, oldest first.

    A binding that keeps no session gets a snapshot every time, whatever the strategy remembers.
    `evict_at` names the mentions (from 1) before which the process is ended, so that their turn is cold; `fail_at`
    those whose run fails: what they showed is not committed, and the process keeps nothing of them.
    """
    setting = setting or Setting()
    remembers = strategy.remembers and setting.binding.keeps_session
    pool, process, number = Pool(idle=float("inf")), _Process(), 0
    shown_to = array("q", bytes(8 * len(channel.messages)))  # for each row the last process that was shown it, from 1
    whole, changes = View.of(channel.messages), _changes(channel)
    head = _head(strategy, setting, blocks)
    views = threads(channel) if strategy.threads else {}
    key = f"{channel.id}/{setting.binding.binding_id}"
    for turn, position in enumerate(mentions, start=1):
        addressed, at = channel.messages[position], whole.newest[position]  # a log's clock may run back; ours does not
        if turn in evict_at or not strategy.resident:
            pool.evict(key)
        lease = pool.acquire(key, at)
        assert lease is not None, "one channel has one process, and the last turn's lease has been returned"
        if lease.cold:
            process, number = _Process(), number + 1

        thread = addressed.thread_root_id if strategy.threads else None
        mark = process.marks.get(thread) if remembers else None
        rows = _rows(views.get(thread, whole), addressed, mark, strategy, at if changes else None)
        changed = _between(changes, mark.told_at, at) if mark and changes else ()
        block = render(rows, addressed, mark, strategy.limits, strategy.cursor, changed)
        user = mention_turn(addressed, f"run-{turn:02d}", block, setting.binding, setting.rules)
        shown = [message.position for message in block.shown]

        kept = len(process.log.blocks)
        process.conversation.append(user)
        pieces = _pieces(strategy, setting, process, lease.cold, at)
        parts = tuple([blocks.of(MESSAGES, piece) for piece in pieces])
        process.log.extend(parts)
        reply = Segment("reply", setting.reply(turn))
        wire = Wire(head(at), process.log, len(process.log.blocks))
        failed = turn in fail_at
        output = 0 if failed else blocks.of(MESSAGES, reply).tokens
        yield Step(
            turn,
            addressed,
            lease.native,
            lease.cold,
            failed,
            Request(wire, at, at, scope=f"{key}/{lease.native}", output=output),
            parts,
            _newest(parts, "row", len(block.rows)),
            _newest(parts, "notice", len(block.notices)),
            block.shown,
            frozenset(position for position in shown if shown_to[position] == number),
            frozenset(position for position in shown if shown_to[position] not in (0, number)),
        )
        if failed:
            process.conversation.pop()
            process.log = process.log.first(kept)
        else:
            if remembers and (shown or block.notices):
                process.marks[thread] = advance(process.marks.get(thread), block.shown, lease.native, at)
            for position in shown:
                shown_to[position] = number
            process.conversation.append(Turn("assistant", (reply,)))
            if TRANSCRIPT in strategy.omits:
                process.conversation.clear()  # no turn will ask for it
            answer = [*_tool_call(strategy, setting, turn, at), reply]
            process.log.extend([blocks.of(MESSAGES, piece) for piece in answer])
        pool.release(lease, at, failed)


def _newest(parts: Sequence[Block], kind: str, count: int) -> tuple[Block, ...]:
    """The last blocks of a kind: a turn that repeats the transcript has those of earlier turns before its own."""
    found = [part for part in parts if part.kind == kind] if count else []
    return tuple(found[len(found) - count :])


def _rows(view: View, addressed: Message, mark: Mark | None, strategy: Strategy, at: float | None) -> Sequence[Message]:
    """What of the view the turn can show: earlier rows need not be looked at, however long the channel is.

    Rows deleted by the time `at` are left out; `None` is for a channel in which no row is ever changed.
    """
    limits, here, first = strategy.limits, view.index(addressed), 0
    if mark is not None and strategy.cursor == STRICT:
        first = bisect_right(view.rows, mark.position, key=lambda row: row.position)
    elif mark is not None:
        first = bisect_right(view.newest, mark.last_at)
    enough = here + 1 if limits.fetch is None else min(limits.fetch, here + 1)
    if mark is None and limits.rows is not None:
        enough = min(enough, limits.rows + 1)
    first = min(first, here)
    if at is None:
        return view.rows[max(first, here + 1 - enough) : here + 1]
    back = (view.rows[i] for i in range(here, first - 1, -1))
    there = (row for row in back if row is addressed or not _gone(row, at))
    return list(islice(there, enough))[::-1]


def _changes(channel: Channel) -> list[tuple[float, Message]]:
    """Every edit and deletion of a stored row, in the order of time."""
    changes = ((row.deleted_at or row.edited_at, row) for row in channel.messages)
    return sorted(
        ((at, row) for at, row in changes if at is not None), key=lambda change: (change[0], change[1].position)
    )


def _between(changes: Sequence[tuple[float, Message]], after: float, until: float) -> list[Message]:
    first, last = (bisect_right(changes, at, key=lambda change: change[0]) for at in (after, until))
    return [row for _, row in changes[first:last]]


def _gone(row: Message, at: float) -> bool:
    return row.deleted_at is not None and row.deleted_at <= at


def _head(strategy: Strategy, setting: Setting, blocks: Blocks) -> Callable[[float], tuple[Block, ...]]:
    """The blocks before the conversation at a time: the prefix, made once, and the status line when it stands there."""
    front: list[Block] = []
    behind: list[Block] | None = None  # what follows the status line's place, and that place's tier
    tier_of_status = ""
    for tier in strategy.order:
        if strategy.status == f"before {tier}":
            behind, tier_of_status = [], tier
        pieces = (
            compose((), setting.framing, cold=True) if tier == SYSTEM else (Segment(TOOLS, t) for t in setting.tools)
        )
        (front if behind is None else behind).extend(blocks.of(tier, piece) for piece in pieces)
        if strategy.status == f"after {tier}":
            behind, tier_of_status = [], tier
    before, after = tuple(front), tuple(behind or ())
    if behind is None:
        return lambda at: before
    return lambda at: (*before, blocks.of(tier_of_status, Segment("status", setting.status(at))), *after)


def _pieces(strategy: Strategy, setting: Setting, process: _Process, cold: bool, at: float) -> tuple[Segment, ...]:
    """What this turn adds to the conversation; a warm turn repeats whatever the strategy does not omit."""
    transcript, system = TRANSCRIPT not in strategy.omits, SYSTEM_PROMPT not in strategy.omits
    pieces = compose(process.conversation, setting.framing, cold=cold or transcript, restored=system and not transcript)
    if pieces[0].kind == SYSTEM and (cold or not system):
        pieces = pieces[1:]  # it stands at the head of the request already
    if strategy.status not in ("turn start", "turn end"):
        return pieces
    status = (Segment("status", setting.status(at)),)
    return status + pieces if strategy.status == "turn start" else pieces + status


def _tool_call(strategy: Strategy, setting: Setting, turn: int, at: float) -> tuple[Segment, ...]:
    """The agent's look at the roster, when the status stands behind that tool and this is a turn to look."""
    if strategy.status != "tool" or turn % strategy.ask_every:
        return ()
    call = json.dumps({"name": "channel_roster", "input": {}}, separators=(",", ":"))
    return Segment("tool call", call + "\n"), Segment("tool result", setting.status(at))


def forever_unshown(channel: Channel, mentions: Sequence[int], steps: Iterable[Step]) -> list[int]:
    """The positions of the rows before the last mention that were neither shown in any turn nor addressed."""
    known, last = bytearray(len(channel.messages)), 0.0
    for position in mentions:
        known[position] = True
    for step in steps:
        last = step.request.at
        for message in () if step.failed else step.shown:
            known[message.position] = True
    before = channel.messages[: mentions[-1]] if mentions else ()
    return [row.position for row in before if not known[row.position] and not _gone(row, last)]
