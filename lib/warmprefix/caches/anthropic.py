"""Anthropic's rules: what a request marks is written, and what an earlier request wrote is looked for from each marker.

The facts and how sure they are stand in `data/providers.toml`. Bedrock counts raw blocks: `collapse_runs=False`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from warmprefix.caches import Usage
from warmprefix.caches.entries import Entries, Refused, readable_from
from warmprefix.caches.facts import fact
from warmprefix.caches.prefixes import Path, Prefixes
from warmprefix.request import Block, Request

FIVE_MINUTES, ONE_HOUR = "5m", "1h"
_RUNS = ("tool_use", "tool_result")
_UNMARKABLE = ("thinking", "redacted_thinking")


@dataclass
class Anthropic:
    """Entries at markers, found by looking back from markers.

    Markers are `FIVE_MINUTES` or `ONE_HOUR` (`Request.marked`). `minimum` is in tokens, by the model where it is None;
    `lookback` counts positions from the marked block on; `collapse_runs` makes a run of `tool_use` blocks one position
    and a run of `tool_result` blocks too; `refresh` and `dies` are those of `entries.Entries`, `readable` that of
    `entries.readable_from`.
    """

    minimum: int | None = None
    lookback: int = field(default_factory=lambda: fact("anthropic", "lookback"))
    collapse_runs: bool = field(default_factory=lambda: fact("anthropic", "collapse runs"))
    refresh: str = field(default_factory=lambda: fact("anthropic", "refresh"))
    readable: str = field(default_factory=lambda: fact("anthropic", "readable"))
    dies: Callable[[float], bool] | None = None
    _prefixes: Prefixes = field(default_factory=Prefixes)

    def __post_init__(self) -> None:
        self._entries = Entries(self.refresh, self.dies)
        self._lifetimes = {
            marker: float(fact("anthropic", f"lifetime {marker}")) for marker in (FIVE_MINUTES, ONE_HOUR)
        }

    def charge(self, request: Request) -> Usage:
        """The usage of the next request, in the order of sending.

        Raises `Refused` for markers that the provider refuses and `InputError` for a model without a known minimum.
        """
        check(request.marked)
        for i, _ in request.marked:
            if not _markable(request.blocks[i]):
                raise Refused(f"{_named(request.blocks[i])} cannot carry a cache marker")
        least = fact("anthropic", "minimum prefix", request.model) if self.minimum is None else self.minimum
        path, at = self._prefixes.path(request), request.at
        markers = [(i, marker) for i, marker in request.marked if path.tokens(i) >= least]
        hit = max((self._look_back(request.blocks, path, i, at) for i, _ in markers), default=-1)
        if hit >= 0:
            self._entries.read(path, hit, at)
        for i, marker in markers:
            if i <= hit:
                self._entries.prolong(path, i, at, self._lifetimes[marker])
            else:
                self._entries.write(path, i, at, self._lifetimes[marker], readable_from(request, self.readable))
        hour = max((i for i, marker in markers if marker == ONE_HOUR and i > hit), default=hit)
        end = markers[-1][0] if markers else hit
        read, to_hour, written = path.tokens(hit), path.tokens(hour), path.tokens(max(end, hit))
        return Usage(
            uncached=path.tokens(len(path) - 1) - written,
            cache_read=read,
            cache_write_5m=written - to_hour,
            cache_write_1h=to_hour - read,
            output=request.output,
        )

    def _look_back(self, blocks: Sequence[Block], path: Path, i: int, at: float) -> int:
        """The last block of the longest entry that a marker at block `i` finds; -1 where it finds none."""
        position = 1
        while not self._entries.readable(path, i, at):
            if i == 0:
                return -1
            if not (self.collapse_runs and blocks[i].kind in _RUNS and blocks[i].kind == blocks[i - 1].kind):
                position += 1
                if position > self.lookback:
                    return -1
            i -= 1
        return i


def check(markers: Sequence[tuple[int, str]]) -> None:
    """Raise `Refused` for more markers than a request may have, and for a longer lifetime behind a shorter one."""
    most = fact("anthropic", "markers")
    if len(markers) > most:
        raise Refused(f"{len(markers)} cache markers: at most {most} are allowed")
    lifetimes = [marker for _, marker in markers]
    for marker in lifetimes:
        if marker not in (FIVE_MINUTES, ONE_HOUR):
            raise Refused(f"cache lifetime {marker!r}: use {FIVE_MINUTES} or {ONE_HOUR}")
    if lifetimes != sorted(lifetimes):  # "1h" sorts before "5m"
        raise Refused("a 1h cache marker comes after a 5m one: longer lifetimes come first")


def _markable(block: Block) -> bool:
    return block.kind not in _UNMARKABLE and (block.kind != "text" or block.tokens > 0)


def _named(block: Block) -> str:
    return "an empty text block" if block.kind == "text" else f"a {block.kind} block"


def automatic(request: Request, lifetime: str = FIVE_MINUTES) -> Request:
    """The request with the automatic marker set, on the last block that can carry one.

    Raises `Refused` where four blocks are marked already, and where that block has the other lifetime. A marker that
    is there already is left as it is.
    """
    marked = request.marked
    if len(marked) >= fact("anthropic", "markers"):
        raise Refused(f"the automatic cache marker is one more than the {len(marked)} that are allowed")
    last = len(request.blocks) - 1
    while last >= 0 and not _markable(request.blocks[last]):
        last -= 1
    if last < 0:
        return request
    there = dict(marked).get(last)
    if there not in (None, lifetime):
        raise Refused(f"the last block is marked {there} and the automatic cache marker {lifetime}")
    return replace(request, markers=tuple(sorted({**dict(marked), last: lifetime}.items())))
