"""Gemini: a prefix cache of its own accord, and cached objects that are created, stored and paid for by the hour."""

from dataclasses import dataclass, field

from warmprefix.caches import Usage
from warmprefix.caches.facts import fact
from warmprefix.caches.longest import LongestPrefix
from warmprefix.caches.prefixes import Prefixes
from warmprefix.request import Request


@dataclass
class GeminiImplicit(LongestPrefix):
    """The longest common prefix from the model's minimum on, written free of charge.

    The lifetime is not documented, nor is any rounding: both are parameters. `minimum` is in tokens, by the model where
    it is 0.
    """

    step: int = 1
    minimum: int = 0
    lifetime: float = field(default_factory=lambda: fact("gemini", "lifetime implicit"))

    def least(self, request: Request) -> int:
        """The tokens from which on a prefix of this request is read; raises `InputError` for an unknown model."""
        return self.minimum or fact("gemini", "minimum prefix", request.model)


@dataclass
class GeminiExplicit:
    """A cached object for the blocks up to the last marker, made when no live one covers them.

    `lifetime` counts seconds from the object's creation; use does not prolong it. Creation and storage are absent from
    a request's usage: `created` holds the tokens that were sent to make objects, at the input price, and `token_hours`
    what the storage price applies to. `minimum` is in tokens, by the model where it is 0.
    """

    minimum: int = 0
    lifetime: float = field(default_factory=lambda: fact("gemini", "lifetime explicit"))
    created: int = 0
    _objects: dict[int, list[tuple[float, int]]] = field(default_factory=dict)
    _prefixes: Prefixes = field(default_factory=Prefixes)

    def charge(self, request: Request) -> Usage:
        """The usage of the next request, in the order of sending; its object is created first where there is none."""
        path, marked = self._prefixes.path(request), request.marked
        read = path.tokens(marked[-1][0]) if marked else 0
        if read < (self.minimum or fact("gemini", "minimum prefix", request.model)):
            read = 0
        if read:
            made = self._objects.setdefault(path[marked[-1][0]], [])
            if not made or request.at - made[-1][0] > self.lifetime:
                made.append((request.at, read))
                self.created += read
        return Usage(uncached=path.tokens(len(path) - 1) - read, cache_read=read, output=request.output)

    def token_hours(self, until: float) -> float:
        """The tokens stored times the hours for which they were, up to a time in seconds."""
        return sum(
            tokens * min(self.lifetime, max(0.0, until - at)) / 3600
            for made in self._objects.values()
            for at, tokens in made
        )
