"""Prefixes as numbers: two requests get the same number for a prefix exactly when it is the same."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from warmprefix.prompt import MESSAGES
from warmprefix.request import Block, Log, Request, Wire


@dataclass(frozen=True, slots=True)
class Path:
    """The prefixes of one request, one a block: their numbers, and their sums of tokens.

    Like `request.Wire` it is a head of its own and the first `stop` of a conversation's, which is shared and not
    walked through again.
    """

    root: int
    head: list[int]
    sums: list[int]
    tail: list[int] = field(default_factory=list)
    tail_sums: Sequence[int] = (0,)
    stop: int = 0

    def __len__(self) -> int:
        return len(self.head) + self.stop

    def __getitem__(self, i: int) -> int:
        return self.head[i] if i < len(self.head) else self.tail[i - len(self.head)]

    def __iter__(self) -> Iterator[int]:
        return self.upto(len(self) - 1)

    def upto(self, i: int) -> Iterator[int]:
        """The prefixes that end with the blocks 0 to i."""
        yield from self.head[: i + 1]
        for j in range(i + 1 - len(self.head)):
            yield self.tail[j]

    @property
    def last(self) -> int:
        """The number of the whole request."""
        return self[len(self) - 1] if len(self) else self.root

    def tokens(self, i: int) -> int:
        """The tokens up to and including block `i`; 0 for -1."""
        i += 1
        return self.sums[i] if i < len(self.sums) else self.sums[-1] + self.tail_sums[i - len(self.head)]


class Prefixes:
    """Numbers the prefixes of requests, each new block once.

    A chain starts at the scope and the model; where the messages begin it depends on the request's settings too.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[object, ...], int] = {}
        self._runs: dict[tuple[int, Log], list[int]] = {}

    def root(self, request: Request, *more: object) -> int:
        """The number of the empty prefix, which `more` can tell apart further."""
        return self._number((request.scope, request.model, *more))

    def path(self, request: Request, *more: object) -> Path:
        """The numbers of all prefixes of a request that end with a block."""
        blocks, settings, numbers = request.blocks, request.settings, self._numbers
        node = root = self.root(request, *more)
        head, sums, total = [], [0], 0
        for block in blocks.head if isinstance(blocks, Wire) else blocks:
            if settings and block.tier == MESSAGES:
                node, settings = self._number((node, settings)), ""
            node = numbers.setdefault((node, block.tier, block.key), len(numbers) + 1)
            head.append(node)
            total += block.tokens
            sums.append(total)
        if not isinstance(blocks, Wire):
            return Path(root, head, sums)
        if settings:
            node = self._number((node, settings))
        run = self._runs.setdefault((node, blocks.log), [])
        if len(run) < blocks.stop:
            run += self.walk(run[-1] if run else node, blocks.log.blocks[len(run) : blocks.stop])
        return Path(root, head, sums, run, blocks.log.sums, blocks.stop)

    def walk(self, node: int, blocks: Iterable[Block]) -> list[int]:
        """The numbers of what blocks behind a prefix make of it."""
        return [node := self._number((node, block.tier, block.key)) for block in blocks]

    def _number(self, key: tuple[object, ...]) -> int:
        return self._numbers.setdefault(key, len(self._numbers) + 1)


class Pages:
    """Numbers prefixes of whole pages of `size` tokens, whatever blocks they came in.

    `ids` gives the token ids of a block (`request.Blocks.ids`); each block is asked once behind each prefix.
    """

    def __init__(self, size: int, ids: Callable[[Block], Sequence[int]]) -> None:
        self.size = size
        self._ids = ids
        self._numbers: dict[tuple[int, bytes], int] = {}
        self._roots: dict[tuple[str, str], int] = {}
        # A state is what stands before a block: the last full page, and the tokens behind it.
        self._states: dict[tuple[int, bytes], int] = {}
        self._contents: list[tuple[int, bytes]] = []
        self._added: dict[tuple[int, str], tuple[list[int], int]] = {}
        self._runs: dict[tuple[int, Log], _Run] = {}

    def path(self, request: Request) -> Path:
        """The numbers of a request's full pages, in order."""
        return self._path(request)[0]

    def of(self, request: Request, answered: bool = False) -> list[int]:
        """The numbers of a request's full pages as a list; with those of its answer where asked for."""
        path, state = self._path(request)
        pages = path.head + path.tail[: path.stop]
        if answered:
            self._walk(state, request.answer, pages)
        return pages

    def _path(self, request: Request) -> tuple[Path, int]:
        blocks, head = request.blocks, list[int]()
        root = -1 - self._roots.setdefault((request.scope, request.model), len(self._roots))
        own = blocks.head if isinstance(blocks, Wire) else blocks
        state = self._walk(self._state(root, b""), own, head)
        if not isinstance(blocks, Wire) or not blocks.stop:
            return Path(root, head, [0]), state
        run = self._runs.setdefault((state, blocks.log), _Run())
        for block in blocks.log.blocks[len(run.states) : blocks.stop]:
            state = self._walk(run.states[-1] if run.states else state, (block,), run.pages)
            run.states.append(state)
            run.counts.append(len(run.pages))
        return Path(root, head, [0], run.pages, stop=run.counts[blocks.stop - 1]), run.states[blocks.stop - 1]

    def _walk(self, state: int, blocks: Iterable[Block], pages: list[int]) -> int:
        """Add the pages that blocks fill, and say what state they leave."""
        for block in blocks:
            found = self._added.get((state, block.key))
            if found is None:
                found = self._added[state, block.key] = self._add(state, block)
            pages += found[0]
            state = found[1]
        return state

    def _add(self, state: int, block: Block) -> tuple[list[int], int]:
        last, rest = self._contents[state]
        ids = array("q", rest)
        ids.extend(self._ids(block))
        whole = len(ids) // self.size * self.size
        pages = []
        for start in range(0, whole, self.size):
            key = (last, ids[start : start + self.size].tobytes())
            last = self._numbers.setdefault(key, len(self._numbers) + 1)
            pages.append(last)
        return pages, self._state(last, ids[whole:].tobytes())

    def _state(self, last: int, rest: bytes) -> int:
        state = self._states.setdefault((last, rest), len(self._contents))
        if state == len(self._contents):
            self._contents.append((last, rest))
        return state


@dataclass(slots=True)
class _Run:
    """A conversation's pages, and after each of its blocks how many there are and what state it leaves."""

    pages: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    states: list[int] = field(default_factory=list)
