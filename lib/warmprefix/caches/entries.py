"""Entries of a provider's cache: each covers one prefix, lives from use to use, and is readable from some moment on."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from warmprefix.caches.facts import fact
from warmprefix.caches.prefixes import Path
from warmprefix.request import Request

PATH, EXACT = "path", "exact"
FIRST_TOKEN, COMPLETE = "first token", "complete"


class Refused(ValueError):
    """A request that the provider answers with an error: nothing is read, nothing written, nothing billed."""


@dataclass(slots=True)
class Entry:
    """When an entry was last used, for how many seconds that keeps it, and from when on others can read it."""

    used: float
    lifetime: float
    readable: float

    def live(self, at: float) -> bool:
        """Whether no more than its lifetime has passed since the last use."""
        return at - self.used <= self.lifetime


@dataclass(slots=True)
class _Reads:
    """Reads along one conversation as it grows: up to which block each went, and when."""

    path: Path
    upto: list[int]
    times: list[float]

    def precede(self, path: Path, i: int) -> bool:
        """Whether a read up to block `i` of a path goes on from these."""
        return self.upto[-1] <= i and path[self.upto[-1]] == self.path[self.upto[-1]]

    def refresh(self, path: Path, i: int, entry: Entry) -> bool:
        """Let these reads refresh an entry that lies below them, one after the other; False where one finds it dead."""
        if i > self.upto[-1] or self.path[i] != path[i]:
            return True
        for j in range(max(bisect_left(self.upto, i), bisect_right(self.times, entry.used)), len(self.times)):
            if not entry.live(self.times[j]):
                return False
            entry.used = self.times[j]
        return True


@dataclass
class Entries:
    """The entries by the number of their prefix.

    `refresh` says whether reading an entry refreshes the shorter ones below it (`PATH`) or only itself (`EXACT`);
    `dies` may end an entry early, given the seconds for which it was idle.

    What lies below a read is refreshed when it is looked at next, so a read costs the same however long the
    conversation is.
    """

    refresh: str = PATH
    dies: Callable[[float], bool] | None = None
    _entries: dict[int, Entry] = field(default_factory=dict)
    _reads: list[_Reads] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.refresh not in (PATH, EXACT):
            raise ValueError(f"refresh must be {PATH!r} or {EXACT!r}; it is {self.refresh!r}")

    def readable(self, path: Path, i: int, at: float) -> bool:
        """Whether a request sent at this time reads the entry that ends with block `i`."""
        entry = self._live(path, i, at)
        if entry is None or entry.readable > at:
            return False
        if self.dies is not None and self.dies(at - entry.used):
            del self._entries[path[i]]
            return False
        return True

    def read(self, path: Path, i: int, at: float) -> None:
        """Refresh the entry that ends with block `i`, and those below it where the rule says so."""
        if self.refresh == EXACT:
            self.prolong(path, i, at, 0.0)
            return
        reads = next((reads for reads in self._reads if reads.precede(path, i)), None)
        if reads is None:
            reads = _Reads(path, [], [])
            self._reads.append(reads)
        reads.path = path
        reads.upto.append(i)
        reads.times.append(at)
        if len(self._reads) > MANY:
            self._forget(self._reads[0])

    def prolong(self, path: Path, i: int, at: float, lifetime: float) -> None:
        """Refresh a live entry under a marker, which may give it a longer lifetime; a dead one stays dead."""
        entry = self._live(path, i, at)
        if entry is not None:
            entry.used, entry.lifetime = at, max(entry.lifetime, lifetime)

    def write(self, path: Path, i: int, at: float, lifetime: float, readable: float) -> None:
        """Put an entry; where an earlier request is still writing the same one, the earlier moment counts."""
        entry = self._live(path, i, at)
        if entry is None:
            self._entries[path[i]] = Entry(at, lifetime, readable)
        else:
            entry.used, entry.lifetime = at, max(entry.lifetime, lifetime)
            entry.readable = min(entry.readable, readable)

    def _live(self, path: Path, i: int, at: float) -> Entry | None:
        entry = self._entries.get(path[i])
        if entry is None:
            return None
        if not entry.live(at) or self.dies is not None:
            self._settle(path, i, entry)
        return entry if entry.live(at) else None

    def _settle(self, path: Path, i: int, entry: Entry) -> None:
        """Bring an entry's last use up to date."""
        used = None
        while used != entry.used:  # one conversation's reads may bridge the pause of another's
            used = entry.used
            for reads in self._reads:
                reads.refresh(path, i, entry)

    def _forget(self, reads: _Reads) -> None:
        """Bring whatever lies below these reads up to date, so that they need not be remembered."""
        for i, prefix in enumerate(reads.path.upto(reads.upto[-1])):
            entry = self._entries.get(prefix)
            if entry is not None and not reads.refresh(reads.path, i, entry):
                self._settle(reads.path, i, entry)
        self._reads.remove(reads)


MANY = 32  # conversations whose reads are remembered at a time


def readable_from(request: Request, rule: str) -> float:
    """When the entries that a request writes become readable: with its first token, or when it is complete.

    A moment that is not known is the one before it, and in the end the moment of sending.
    """
    if rule not in (FIRST_TOKEN, COMPLETE):
        raise ValueError(f"readable must be {FIRST_TOKEN!r} or {COMPLETE!r}; it is {rule!r}")
    begun = request.at if request.first_token_at is None else request.first_token_at
    return begun if rule == FIRST_TOKEN or request.completed_at is None else request.completed_at


def early_eviction(rng: np.random.Generator) -> Callable[[float], bool]:
    """Ends an entry of one hour before its time, as often as bills say for the seconds that it was idle.

    The shares are `early eviction` in `data/providers.toml`; they are second-hand.
    """
    steps = fact("anthropic", "early eviction")

    def dies(idle: float) -> bool:
        share = max((share for since, share in steps if idle >= since), default=0.0)
        return share > 0 and rng.random() < share

    return dies
