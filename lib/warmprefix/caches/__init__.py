"""One module a rule set: what a cache reads and writes for a request, as one record, `Usage`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """Input tokens by how they were billed, and output tokens; the input fields never overlap.

    >>> Usage(uncached=10, cache_read=90).total
    100
    """

    uncached: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    output: int = 0

    @property
    def total(self) -> int:
        """All input tokens."""
        return self.uncached + self.cache_read + self.cache_write_5m + self.cache_write_1h
