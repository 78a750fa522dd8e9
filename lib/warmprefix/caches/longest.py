"""Caches without markers: every request is kept, and the longest common prefix of whole pages is read."""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from warmprefix.caches import Usage
from warmprefix.caches.entries import FIRST_TOKEN, Entries, readable_from
from warmprefix.caches.prefixes import Pages
from warmprefix.request import Block, Request


@dataclass
class Overflow:
    """Sends some requests to another machine: those above `limit` a minute on one prefix, with an empty cache at first.

    A request beyond the limit goes to any of as many machines as the limit needs for the last minute's requests.
    """

    rng: np.random.Generator
    limit: int
    _times: dict[object, deque[float]] = field(default_factory=dict)

    def machine(self, prefix: object, at: float) -> int:
        """The machine that the next request on this prefix lands on, from 0."""
        times = self._times.setdefault(prefix, deque())
        while times and at - times[0] > 60:
            times.popleft()
        times.append(at)
        return 0 if len(times) <= self.limit else int(self.rng.integers(-(-len(times) // self.limit)))


@dataclass
class LongestPrefix:
    """Reads the longest prefix of whole pages of `step` tokens that a live request had, from `minimum` tokens on.

    `ids` gives the token ids of a block; `lifetime` counts idle seconds, `extended` those of a request whose `settings`
    say "24h"; nothing is charged for writing. `overflow` is off where it is None.
    """

    ids: Callable[[Block], Sequence[int]]
    step: int
    minimum: int
    lifetime: float
    extended: float = 86_400.0
    readable: str = FIRST_TOKEN
    overflow: Overflow | None = None
    _entries: dict[int, Entries] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._pages = Pages(self.step, self.ids)

    def least(self, request: Request) -> int:
        """The tokens from which on a prefix of this request is read."""
        return self.minimum

    def charge(self, request: Request) -> Usage:
        """The usage of the next request, in the order of sending."""
        path, at, machine = self._pages.path(request), request.at, 0
        if self.overflow is not None and len(path):
            routed_by = path[min(len(path), -(-256 // self.step)) - 1]  # the first 256 tokens
            machine = self.overflow.machine(routed_by, at)
        entries = self._entries.setdefault(machine, Entries())
        # What covers a prefix lives and is readable no shorter than what covers a longer one, hence the bisection.
        found = bisect_left(range(len(path)), True, key=lambda i: not entries.readable(path, i, at))
        if found:
            entries.read(path, found - 1, at)
        extended = request.settings == "24h"
        for i in range(0 if extended else found, len(path)):
            lifetime = self.extended if extended else self.lifetime
            entries.write(path, i, at, lifetime, readable_from(request, self.readable))
        read = found * self.step
        read = read if read >= self.least(request) else 0
        return Usage(uncached=request.tokens - read, cache_read=read, output=request.output)
