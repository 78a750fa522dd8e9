"""What else happens to a conversation: pages that the agent reads, and a summary in place of all that came before."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from warmprefix.channel import Channel, Message
from warmprefix.delivery import HEADER_FIRST, HISTORY_MOST, UNTRUSTED, history, row
from warmprefix.errors import InputError
from warmprefix.prompt import MESSAGES, Segment
from warmprefix.request import Block, Blocks, Log, Wire
from warmprefix.simulate import Step

PAGE, COMPACTION = "page", "compaction"
ASK = Segment("opening", "Summarise this conversation; your summary replaces it.\n")


@dataclass(frozen=True, slots=True)
class Paging:
    """How an agent reads back: the share `rate` of what it missed, at most `limit` rows a page."""

    rate: float
    limit: int = 30

    def __post_init__(self) -> None:
        if not 0 <= self.rate <= 1:
            raise InputError("", f"paging {self.rate}", "is no share", "give a number from 0 to 1")
        if not 1 <= self.limit <= HISTORY_MOST:
            raise InputError(
                "", f"page {self.limit}", f"channel_history gives 1 to {HISTORY_MOST} rows", "ask for one of those"
            )


@dataclass
class _Talk:
    """A session's conversation, laid anew from its steps."""

    session: str = ""
    log: Log = field(default_factory=Log)
    taken: int = 0

    def follow(self, step: Step) -> None:
        """Take over what the session has said since its last step, up to what this one adds."""
        wire = step.request.blocks
        assert isinstance(wire, Wire)
        if step.session != self.session:
            self.session, self.log, self.taken = step.session, Log(), 0
        added = wire.stop - len(step.parts)
        self.log.extend(wire.log.blocks[self.taken : added])
        self.taken = wire.stop  # a failed turn has no reply, so nothing lies between it and the next

    def sent(self, step: Step, parts: Sequence[Block], output: int) -> Step:
        """The step as it is sent in this conversation."""
        wire = step.request.blocks
        assert isinstance(wire, Wire)
        kept = len(self.log.blocks)
        self.log.extend(parts)
        blocks = Wire(wire.head, self.log, len(self.log.blocks))
        if step.failed:
            self.log = self.log.first(kept)
        return replace(step, parts=tuple(parts), request=replace(step.request, blocks=blocks, output=output))


def compacted(steps: Iterable[Step], context_limit: int, tokens: int, blocks: Blocks) -> Iterator[Step]:
    """The steps of sessions whose history a summary replaces when a request and its answer would pass a limit.

    The model: the turn that would pass `context_limit` is put off; one request more (kind `compaction`) reads the
    history so far and answers with a summary of `tokens`; the conversation goes on from prefix and summary alone. The
    process is the same and so is its native id: its mark stays, and no row is sent again. Whatever was cached behind
    the prefix is lost. Both numbers are tokens. Raises `InputError` for a limit that prefix, summary and one turn pass.
    """
    talk, made = _Talk(), 0
    for step in steps:
        talk.follow(step)
        head = step.request.tokens - talk_tokens(step)
        new = sum(part.tokens for part in step.parts)
        if talk.log.blocks and head + talk.log.sums[-1] + new + step.request.output > context_limit:
            made += 1
            ask = _bare(step, COMPACTION)
            summary = blocks.of(MESSAGES, summary_of(tokens, made, blocks))
            yield talk.sent(ask, (blocks.of(MESSAGES, ASK),), summary.tokens)
            talk.log = Log()
            talk.log.extend([summary])
        if (least := head + talk.log.sums[-1] + new + step.request.output) > context_limit:
            problem = f"turn {step.turn} takes {least:,} tokens with no more than a summary before it"
            raise InputError("", f"context limit {context_limit:,}", problem, "ask for more")
        yield talk.sent(step, step.parts, step.request.output)


def talk_tokens(step: Step) -> int:
    """The tokens of a request behind its prefix."""
    wire = step.request.blocks
    assert isinstance(wire, Wire)
    return wire.log.sums[wire.stop]


def summary_of(tokens: int, number: int, blocks: Blocks) -> Segment:
    """The text that stands for the n-th summary: so many tokens by count, and unlike another from its first token on.

    Raises `InputError` for fewer tokens than such a text has.
    """
    words = tokens
    for _ in range(8):
        text = f"{number}" + " so" * words + "\n"
        over = blocks.tokenizer.count(text) - tokens
        if not over:
            return Segment("reply", text)
        words -= over
        if words < 0:
            break
    raise InputError("", f"summary of {tokens} tokens", "no such text", "ask for at least 3")


def _bare(step: Step, kind: str) -> Step:
    """A request beside the step's own that shows nothing."""
    none = frozenset[int]()
    changes = {"rows": (), "notices": (), "shown": (), "repeated": none, "resent": none}
    return replace(step, kind=kind, cold=False, failed=False, parts=(), **changes)  # type: ignore[arg-type]


def paged(
    steps: Iterable[Step], channel: Channel, mentions: Sequence[int], paging: Paging, body: int | None, blocks: Blocks
) -> Iterator[Step]:
    """The steps of an agent that asks `channel_history` for what its block left out or cut.

    The model: of the turns that left out rows since the mention before, and of the rows whose body was cut at `body`
    characters, every 1/`rate`-th one is looked up. A turn with look-ups answers with the calls; one request more (kind
    `page`) carries calls and results, and its answer is the turn's reply. Calls and results stay in the history. Left
    out rows are read by one page of the rows before the oldest shown one, seen or not, bodies whole; a cut one by a
    page of itself.
    """
    talk, due = _Talk(), 0.0
    seen: set[int] = set()
    by_any: set[int] = set()
    for step in steps:
        if step.session != talk.session:
            seen = set()
        talk.follow(step)
        step = _counted(step, seen, by_any)
        pages = []
        for page in _wanted(step, channel, mentions, paging.limit, body) if not step.failed else ():
            due += paging.rate
            if due >= 1 - 1e-9:
                due -= 1
                pages.append(page)
        calls, results, shown = _read(pages, channel, blocks)
        answer = sum(call.tokens for call in calls) or step.request.output
        yield talk.sent(step, step.parts, answer)
        if pages:
            page_step = replace(
                _bare(step, PAGE), rows=tuple(b for b in results if b.kind == "row"), shown=tuple(shown)
            )
            page_step = _counted(page_step, seen, by_any)
            yield talk.sent(page_step, (*calls, *results), step.request.output)


def _counted(step: Step, seen: set[int], by_any: set[int]) -> Step:
    shown = {row.position for row in step.shown}
    counted = replace(step, repeated=frozenset(seen & shown), resent=frozenset((by_any & shown) - seen))
    if not step.failed:
        seen |= shown
        by_any |= shown
    return counted


def _wanted(
    step: Step, channel: Channel, mentions: Sequence[int], limit: int, body: int | None
) -> Iterator[tuple[Message, ...]]:
    """The pages that would show what the step did not: rows left out, then each row cut for the first time."""
    here, before = step.mention.position, mentions[step.turn - 2] if step.turn > 1 else -1
    shown = {message.position for message in step.shown}
    oldest = min(shown, default=here)
    if oldest and any(position not in shown for position in range(before + 1, here)):
        yield history(channel.messages[:oldest], limit=limit)
    for message in step.shown:
        if body is not None and len(message.text) > body and message.position not in step.repeated:
            yield (message,)


def _read(
    pages: Sequence[Sequence[Message]], channel: Channel, blocks: Blocks
) -> tuple[list[Block], list[Block], list[Message]]:
    calls: list[Block] = []
    results: list[Block] = []
    for page in pages:
        behind = page[-1].position + 1  # a mention stands behind every page, so there is such a row
        question = {"before": channel.messages[behind].id, "limit": len(page)}
        call = json.dumps({"name": "channel_history", "input": question}, ensure_ascii=False, separators=(",", ":"))
        calls.append(blocks.of(MESSAGES, Segment("tool call", call + "\n")))
        results.append(blocks.of(MESSAGES, Segment("tool result", HEADER_FIRST + UNTRUSTED)))
        results += [blocks.of(MESSAGES, Segment("row", row(message, None))) for message in page]
    return calls, results, [message for page in pages for message in page]
