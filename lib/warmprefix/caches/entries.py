"""Entries of a provider's cache: each covers one prefix, lives from use to use, and is readable from some moment on."""

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


@dataclass
class Entries:
    """The live entries by the number of their prefix.

    `refresh` says whether reading an entry refreshes the shorter ones below it (`PATH`) or only itself (`EXACT`);
    `dies` may end an entry early, given the seconds for which it was idle.
    """

    refresh: str = PATH
    dies: Callable[[float], bool] | None = None
    _entries: dict[int, Entry] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.refresh not in (PATH, EXACT):
            raise ValueError(f"refresh must be {PATH!r} or {EXACT!r}; it is {self.refresh!r}")

    def readable(self, prefix: int, at: float) -> bool:
        """Whether a request sent at this time reads the entry of a prefix."""
        entry = self._entries.get(prefix)
        if entry is None or not entry.live(at) or entry.readable > at:
            return False
        if self.dies is not None and self.dies(at - entry.used):
            del self._entries[prefix]
            return False
        return True

    def read(self, path: Path, i: int, at: float) -> None:
        """Refresh the entry that ends with block `i`, and those below it where the rule says so."""
        for prefix in path.upto(i) if self.refresh == PATH else (path[i],):
            entry = self._entries.get(prefix)
            if entry is not None and entry.live(at):
                entry.used = at

    def prolong(self, prefix: int, at: float, lifetime: float) -> None:
        """Refresh a live entry under a marker, which may give it a longer lifetime; a dead one stays dead."""
        entry = self._entries.get(prefix)
        if entry is not None and entry.live(at):
            entry.used, entry.lifetime = at, max(entry.lifetime, lifetime)

    def write(self, prefix: int, at: float, lifetime: float, readable: float) -> None:
        """Put an entry; where an earlier request is still writing the same one, the earlier moment counts."""
        entry = self._entries.get(prefix)
        if entry is None or not entry.live(at):
            self._entries[prefix] = Entry(at, lifetime, readable)
        else:
            entry.used, entry.lifetime = at, max(entry.lifetime, lifetime)
            entry.readable = min(entry.readable, readable)


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
