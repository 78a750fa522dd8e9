"""Caches without markers: every request is kept, and the longest common prefix of whole pages is read."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from warmprefix.caches import Usage
from warmprefix.caches.entries import FIRST_TOKEN, Entry, readable_from
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
    _entries: dict[tuple[int, int], Entry] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._pages = Pages(self.step, self.ids)

    def least(self, request: Request) -> int:
        """The tokens from which on a prefix of this request is read."""
        return self.minimum

    def charge(self, request: Request) -> Usage:
        """The usage of the next request, in the order of sending."""
        pages, at, machine = self._pages.of(request), request.at, 0
        if self.overflow is not None and pages:
            machine = self.overflow.machine(pages[: -(-256 // self.step)][-1], at)  # routed by the first 256 tokens
        read, reading = 0, True
        lifetime = self.extended if request.settings == "24h" else self.lifetime
        readable = readable_from(request, self.readable)
        for page in pages:
            entry = self._entries.get((machine, page))
            if entry is None or at - entry.used > entry.lifetime:
                reading = False
                self._entries[machine, page] = Entry(at, lifetime, readable)
                continue
            reading = reading and entry.readable <= at
            read += self.step * reading
            entry.used, entry.lifetime = at, max(entry.lifetime, lifetime)
            entry.readable = min(entry.readable, readable)
        read = read if read >= self.least(request) else 0
        return Usage(uncached=request.tokens - read, cache_read=read, output=request.output)
