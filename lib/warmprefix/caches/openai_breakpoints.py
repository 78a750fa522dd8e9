"""OpenAI from GPT-5.6 on: entries are written at breakpoints alone, for a price, and found only there.

The facts and how sure they are stand in `data/providers.toml`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from warmprefix.caches import Usage
from warmprefix.caches.entries import FIRST_TOKEN, PATH, Entries, readable_from
from warmprefix.caches.facts import fact
from warmprefix.caches.longest import Overflow
from warmprefix.caches.prefixes import Prefixes
from warmprefix.prompt import SYSTEM
from warmprefix.request import Request

ENDING, EXPLICIT, BOTH = "ending", "explicit", "explicit ending"


@dataclass
class OpenAIBreakpoints:
    """The implicit breakpoint at the last message ending, and the explicit ones.

    Markers (`Request.marked`) are `ENDING` where an eligible message ends, `EXPLICIT` at an explicit breakpoint, `BOTH`
    where both fall together; without an ending there is no implicit breakpoint. `lookback` counts the earlier endings
    that are looked up. Written tokens stand in `cache_write_5m`, which has their price, 1.25 times the input's.
    """

    minimum: int = field(default_factory=lambda: fact("openai", "minimum prefix"))
    lookback: int = field(default_factory=lambda: fact("openai", "lookback"))
    writes: int = field(default_factory=lambda: fact("openai", "writes"))
    lifetime: float = field(default_factory=lambda: fact("openai", "lifetime breakpoints"))
    refresh: str = PATH
    readable: str = FIRST_TOKEN
    overflow: Overflow | None = None
    _prefixes: Prefixes = field(default_factory=Prefixes)

    def __post_init__(self) -> None:
        self._entries = Entries(self.refresh)

    def charge(self, request: Request) -> Usage:
        """The usage of the next request, in the order of sending."""
        at = request.at
        machine = self.overflow.machine(self._routed_by(request), at) if self.overflow is not None else 0
        path = self._prefixes.path(request, machine)
        endings = [i for i, marker in request.marked if marker in (ENDING, BOTH)]
        explicit = [i for i, marker in request.marked if marker in (EXPLICIT, BOTH)]
        opening = [i for i in endings if request.blocks[i].tier == SYSTEM][-1:]
        looked_up = {*endings[-1 - self.lookback :], *explicit, *opening}
        hit = max((i for i in looked_up if self._entries.readable(path, i, at)), default=-1)
        if hit >= 0:
            self._entries.read(path, hit, at)
        chosen = [i for i in breakpoints(endings, explicit, self.writes) if path.tokens(i) >= self.minimum]
        for i in chosen:
            if i > hit:
                self._entries.write(path, i, at, self.lifetime, readable_from(request, self.readable))
        read, end = path.tokens(hit), path.tokens(max([hit, *chosen]))
        return Usage(
            uncached=path.tokens(len(path) - 1) - end, cache_read=read, cache_write_5m=end - read, output=request.output
        )

    def _routed_by(self, request: Request) -> int:
        """The first prefix of 256 tokens, which a request is routed by."""
        path = self._prefixes.path(request)
        return next((path[i] for i in range(len(path)) if path.tokens(i) >= 256), path.last)


def breakpoints(endings: Sequence[int], explicit: Sequence[int], most: int) -> list[int]:
    """The blocks whose prefixes a request may write: the last ending, and the latest explicit breakpoints."""
    implicit = list(endings[-1:])
    others = [i for i in explicit if i not in implicit]
    room = most - len(implicit)
    return sorted([*implicit, *(others[-room:] if room else [])])


def endings(roles: Sequence[str], ends: Sequence[bool]) -> list[int]:
    """The blocks that end an eligible message, given each block's role and whether its message ends with it.

    Eligible are a user's message, the last tool response of a consecutive group, and the last developer message of the
    group that the request begins with. A block that belongs to no message has no role.

    >>> endings(["", "developer", "user", "user", "assistant", "tool", "tool"], [False, True, False, True, *[True] * 3])
    [1, 3, 6]
    """
    found, opening = [], True
    for i, (role, end) in enumerate(zip(roles, ends, strict=True)):
        opening = opening and role in ("developer", "")
        last_of_group = end and (i + 1 == len(roles) or roles[i + 1] != role)
        if (end and role == "user") or (last_of_group and (role == "tool" or (role == "developer" and opening))):
            found.append(i)
    return found
