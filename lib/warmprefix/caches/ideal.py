"""The best case: everything up to the first token that differs from the scope's previous request is read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from warmprefix.caches import Usage
from warmprefix.request import Block, Request, common_prefix


@dataclass
class IdealPrefix:
    """Reads the longest common token prefix with the previous request of the same scope, at any length and any age.

    `ids` gives the token ids of a block (`request.Blocks.ids`). Everything not read counts as uncached: the ideal
    cache charges nothing for writing.
    """

    ids: Callable[[Block], Sequence[int]]
    _previous: dict[str, Sequence[Block]] = field(default_factory=dict, repr=False)

    def charge(self, request: Request) -> Usage:
        """The usage of the next request, in the order of sending."""
        previous = self._previous.get(request.scope, ())
        read = common_prefix(previous, request.blocks, self.ids)
        self._previous[request.scope] = request.blocks
        return Usage(uncached=request.tokens - read, cache_read=read, output=request.output)
