"""What a provider sees: a request as a sequence of blocks, the one type that every cache model reads."""

import hashlib
from array import array
from collections.abc import Callable, Iterator, MutableSequence, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import overload

from warmprefix.prompt import Segment
from warmprefix.tokens import Tokenizer


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a request: its tier (tools, system or messages), its kind, and a key that identifies its bytes."""

    tier: str
    kind: str
    key: str
    tokens: int
    marker: str | None = None


class Log:
    """An append-only run of blocks with its token sums, shared by every request that reads a part of it."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.sums: MutableSequence[int] = array("q", [0])  # a long conversation's would weigh more as a list

    def extend(self, blocks: Sequence[Block]) -> None:
        """Put blocks behind the last one."""
        for block in blocks:
            self.blocks.append(block)
            self.sums.append(self.sums[-1] + block.tokens)

    def first(self, stop: int) -> "Log":
        """A log of its own with the first `stop` blocks; requests that read this one keep what they read."""
        log = Log()
        log.extend(self.blocks[:stop])
        return log


@dataclass(frozen=True, slots=True, eq=False)
class Wire(Sequence[Block]):
    """The blocks of one request: a head of its own, then the first `stop` blocks of a conversation's log.

    Two requests of one conversation share the log, so they are compared and added up without walking through it.
    """

    head: tuple[Block, ...]
    log: Log
    stop: int

    def __len__(self) -> int:
        return len(self.head) + self.stop

    @overload
    def __getitem__(self, index: int) -> Block: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Block, ...]: ...
    def __getitem__(self, index: int | slice) -> Block | tuple[Block, ...]:
        if isinstance(index, slice):
            return tuple(self)[index]
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self.head[index] if index < len(self.head) else self.log.blocks[index - len(self.head)]

    def __iter__(self) -> Iterator[Block]:
        yield from self.head
        for i in range(self.stop):
            yield self.log.blocks[i]

    @property
    def tokens(self) -> int:
        """The tokens of all blocks."""
        return sum(block.tokens for block in self.head) + self.log.sums[self.stop]


@dataclass(frozen=True, slots=True)
class Request:
    """One request: its blocks in wire order, when it was sent and began to answer (seconds), and what it is part of.

    `scope` names what shares a cache: for the ideal prefix the session's process, for a provider the account.
    `output` counts the answer's tokens; `answer` holds its blocks where they are known, for engines that cache them.
    `settings` are options outside the blocks that a cached conversation depends on, such as the tool choice.
    `markers` are the cache markers as (position of the block, marker) in rising order; `None`: the blocks' own.
    """

    blocks: Sequence[Block]
    at: float = 0.0
    first_token_at: float | None = None
    model: str = ""
    scope: str = ""
    output: int = 0
    answer: tuple[Block, ...] = ()
    completed_at: float | None = None
    settings: str = ""
    markers: tuple[tuple[int, str], ...] | None = None

    @property
    def tokens(self) -> int:
        """The tokens of the whole input."""
        return self.blocks.tokens if isinstance(self.blocks, Wire) else sum(block.tokens for block in self.blocks)

    @property
    def marked(self) -> tuple[tuple[int, str], ...]:
        """The marked positions in rising order, each with its marker."""
        if self.markers is not None:
            return self.markers
        return tuple((i, block.marker) for i, block in enumerate(self.blocks) if block.marker is not None)


@dataclass
class Blocks:
    """Makes blocks of segments, each text counted and hashed once, and knows the token ids behind a key.

    With `keep`, only about that many texts are remembered, those asked for last, so that a conversation of any length
    can be made; one that was let go is counted and hashed again when it comes again.
    """

    tokenizer: Tokenizer
    keep: int | None = None
    _made: dict[tuple[str, Segment], Block] = field(default_factory=dict, repr=False)
    _texts: dict[str, str] = field(default_factory=dict, repr=False)
    _older: tuple[dict[tuple[str, Segment], Block], dict[str, str]] = field(
        default_factory=lambda: ({}, {}), repr=False
    )

    def of(self, tier: str, segment: Segment) -> Block:
        """The block of a segment."""
        made = self._made.get((tier, segment))
        if made is None:
            made = self._older[0].get((tier, segment)) or self._new(tier, segment)
            if self.keep is not None and len(self._made) >= self.keep:
                self._older, self._made, self._texts = (self._made, self._texts), {}, {}
            self._made[tier, segment] = made
            self._texts[made.key] = segment.text
        return made

    def _new(self, tier: str, segment: Segment) -> Block:
        key = hashlib.sha256(segment.text.encode()).hexdigest()[:32]
        count = self.tokenizer.count if self.keep is None else self.tokenizer.count_once
        return Block(tier, segment.kind, key, count(segment.text))

    def text(self, block: Block) -> str:
        """The text that a block of this maker stands for; raises `KeyError` when it was let go (see `keep`)."""
        return self._texts[block.key] if block.key in self._texts else self._older[1][block.key]

    def ids(self, block: Block) -> list[int]:
        """The token ids of a block of this maker; raises `KeyError` when its text was let go."""
        return self.tokenizer.ids(self.text(block))


def common_prefix(a: Sequence[Block], b: Sequence[Block], ids: Callable[[Block], Sequence[int]]) -> int:
    """The length in tokens of the longest common prefix: equal blocks by their counts, then token by token.

    `ids` gives the token ids of a block; it is asked only from the first unequal pair of blocks on.
    """
    equal, start = 0, 0
    if isinstance(a, Wire) and isinstance(b, Wire) and a.log is b.log and _same(a.head, b.head):
        start = len(a.head) + min(a.stop, b.stop)
        equal = sum(block.tokens for block in a.head) + a.log.sums[min(a.stop, b.stop)]
    while start < min(len(a), len(b)) and a[start].key == b[start].key:
        equal += a[start].tokens
        start += 1
    if start == len(a) or start == len(b):
        return equal
    left = chain.from_iterable(ids(a[i]) for i in range(start, len(a)))
    right = chain.from_iterable(ids(b[i]) for i in range(start, len(b)))
    for x, y in zip_longest(left, right):
        if x != y or x is None:
            break
        equal += 1
    return equal


def _same(a: Sequence[Block], b: Sequence[Block]) -> bool:
    return a is b or [block.key for block in a] == [block.key for block in b]
