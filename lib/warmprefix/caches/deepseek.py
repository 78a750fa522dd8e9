"""DeepSeek: only whole persisted units are read, and the answers are persisted too."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from warmprefix.caches import Usage
from warmprefix.caches.facts import fact
from warmprefix.caches.prefixes import Pages
from warmprefix.request import Block, Request


@dataclass
class DeepSeek:
    """Units end where a request's input ended, where its answer did, and where two earlier requests parted.

    `unit` is what units are a multiple of, in tokens; `interval` adds a unit every so many tokens of each request
    (none by default). `ids` gives the token ids of a block. An answer is persisted where the request states its blocks.
    Entries live for hours to days, so here they do not die.
    """

    ids: Callable[[Block], Sequence[int]]
    unit: int = field(default_factory=lambda: fact("deepseek", "unit"))
    interval: int | None = None
    _seen: set[int] = field(default_factory=set)
    _units: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._pages = Pages(self.unit, self.ids)

    def charge(self, request: Request) -> Usage:
        """The usage of the next request, in the order of sending."""
        pages = self._pages.of(request)
        read = next((i for i in range(len(pages), 0, -1) if pages[i - 1] in self._units), 0) * self.unit
        common = next((i for i, page in enumerate(pages) if page not in self._seen), len(pages))
        answered = self._pages.of(request, answered=True)
        ends = {common, len(pages), len(answered)}
        if self.interval is not None:
            ends.update(
                tokens // self.unit for tokens in range(self.interval, len(answered) * self.unit, self.interval)
            )
        self._units.update(answered[end - 1] for end in ends if end)
        self._seen.update(answered)
        return Usage(uncached=request.tokens - read, cache_read=read, output=request.output)
