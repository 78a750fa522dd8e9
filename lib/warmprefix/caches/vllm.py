"""vLLM: full blocks in a hash chain, kept in a pool until the least recently used one is needed.

The rules are those of `KVCacheManager` in vLLM 0.11.0 (https://github.com/vllm-project/vllm, Apache-2.0), which
`tests/referees` runs beside this model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from warmprefix.caches import Usage
from warmprefix.caches.prefixes import Pages
from warmprefix.request import Block, Request


@dataclass
class VLLM:
    """Reads the leading full blocks that are still in the pool, but always computes the last token of a prompt.

    `block_size` is in tokens; `pool` counts usable blocks, without end where it is None. A request holds its blocks
    until `completed_at`; its answer is kept but for the last token, which is never computed. `ids` gives the token ids
    of a block.
    """

    ids: Callable[[Block], Sequence[int]]
    block_size: int = 16
    pool: int | None = None
    _hashes: dict[int, int] = field(default_factory=dict)
    _blocks: dict[int, dict[int, None]] = field(default_factory=dict)
    _held: dict[int, int] = field(default_factory=dict)
    _running: list[tuple[float, int, list[int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._pages = Pages(self.block_size, self.ids)
        self._free: dict[int, None] = {} if self.pool is None else dict.fromkeys(range(1, self.pool + 1))
        self._names = count(1 if self.pool is None else self.pool + 1)
        self._requests = count()

    def charge(self, request: Request) -> Usage:
        """The usage of the next request, in the order of sending.

        Raises `ValueError` for a request that the pool has no room for.
        """
        self._finish(request.at)
        known = request.tokens + max(0, sum(block.tokens for block in request.answer) - 1)
        hashes = self._pages.of(request, answered=True)[: known // self.block_size]
        found = self._match(hashes[: max(0, request.tokens - 1) // self.block_size])
        blocks = [*found, *self._allocate(found, -(-known // self.block_size) - len(found))]
        for block, page in list(zip(blocks, hashes, strict=False))[len(found) :]:
            self._hashes[block] = page
            self._blocks.setdefault(page, {})[block] = None
        ends = request.at if request.completed_at is None else request.completed_at
        heappush(self._running, (ends, next(self._requests), blocks))
        self._finish(request.at)
        read = len(found) * self.block_size
        return Usage(uncached=request.tokens - read, cache_read=read, output=request.output)

    def _match(self, hashes: Sequence[int]) -> list[int]:
        found = []
        for page in hashes:
            blocks = self._blocks.get(page)
            if not blocks:
                break
            found.append(next(iter(blocks)))
        return found

    def _allocate(self, found: Sequence[int], more: int) -> list[int]:
        """Hold the blocks that were found, and take others from the front of the free queue."""
        room = len(self._free) - sum(block in self._free for block in found)
        if self.pool is not None and more > room:
            raise ValueError(f"the pool of {self.pool} blocks has {room} free, and the request needs {more}")
        for block in found:
            self._free.pop(block, None)
            self._held[block] = self._held.get(block, 0) + 1
        taken = []
        for _ in range(more):
            block = next(self._names) if self.pool is None else next(iter(self._free))
            self._free.pop(block, None)
            self._forget(block)
            self._held[block] = 1
            taken.append(block)
        return taken

    def _forget(self, block: int) -> None:
        page = self._hashes.pop(block, None)
        if page is not None:
            del self._blocks[page][block]

    def _finish(self, at: float) -> None:
        """Give back the blocks of the requests that have ended, each one's last block first, to be evicted first."""
        while self._running and self._running[0][0] <= at:
            for block in reversed(heappop(self._running)[2]):
                self._held[block] -= 1
                if not self._held[block]:
                    del self._held[block]
                    if self.pool is not None:
                        self._free[block] = None
