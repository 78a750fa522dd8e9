"""The llama.cpp server: each slot keeps its last prompt and answer, and a request takes the slot most like it.

The rules are those of the server in llama.cpp (https://github.com/ggml-org/llama.cpp, MIT) without the prompt cache in
main memory and without chunk reuse, which `tests/referees` runs beside this model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from warmprefix.caches import Usage
from warmprefix.request import Block, Request, common_prefix


@dataclass(slots=True)
class _Slot:
    blocks: Sequence[Block] = ()
    answer: tuple[Block, ...] = ()
    used: int = -1


@dataclass
class LlamaCpp:
    """Reads the longest common prefix with a slot, minus one token only where the whole prompt matches.

    A slot is taken when more than `similarity` of the new prompt stands in it already, the most similar first; else
    the one that was used longest ago, and of those never used the last. `ids` gives the token ids of a block. A
    request is finished before the next one.
    """

    ids: Callable[[Block], Sequence[int]]
    slots: int = 1
    similarity: float = 0.1

    def __post_init__(self) -> None:
        self._slots = [_Slot() for _ in range(self.slots)]
        self._requests = 0

    def charge(self, request: Request) -> Usage:
        """The usage of the next request, in the order of sending."""
        total = request.tokens
        common = [self._common(slot, request.blocks) for slot in self._slots]
        best = max(range(self.slots), key=lambda i: (common[i], -i))
        if not common[best] > self.similarity * total:
            best = min(range(self.slots), key=lambda i: (self._slots[i].used, -i))
        self._requests += 1
        self._slots[best] = _Slot(request.blocks, request.answer, self._requests)
        read = min(common[best], max(0, total - 1))
        return Usage(uncached=total - read, cache_read=read, output=request.output)

    def _common(self, slot: _Slot, blocks: Sequence[Block]) -> int:
        """The common prefix of a prompt with what a slot holds: a prompt and its answer without the last token."""
        if not slot.answer:
            return common_prefix(slot.blocks, blocks, self.ids)
        held = sum(block.tokens for block in (*slot.blocks, *slot.answer)) - 1
        return min(held, common_prefix((*slot.blocks, *slot.answer), blocks, self.ids))
