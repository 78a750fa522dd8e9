"""SGLang: a radix tree over tokens or pages, evicted leaf by leaf.

The rules are those of `RadixCache` in SGLang 0.5.3 (https://github.com/sgl-project/sglang, Apache-2.0), which
`tests/referees` runs beside this model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import count

from warmprefix.caches import Usage
from warmprefix.request import Block, Request


@dataclass(slots=True, eq=False)
class _Node:
    """An edge of the tree with the tokens on it; `used` orders the nodes by their last access."""

    parent: "_Node | None"
    key: tuple[int, ...]
    used: int
    children: dict[tuple[int, ...], "_Node"] = field(default_factory=dict)


@dataclass
class SGLang:
    """Reads the longest prefix in the tree, in whole pages; a prompt's last token is never matched.

    `page_size` and `capacity` are in tokens; without a capacity nothing is evicted. A request is finished before the
    next one; its answer is kept but for the last token. `ids` gives the token ids of a block.
    """

    ids: Callable[[Block], Sequence[int]]
    page_size: int = 1
    capacity: int | None = None
    size: int = 0
    _known: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._clock = count()
        self._roots: dict[tuple[str, str], _Node] = {}

    def charge(self, request: Request) -> Usage:
        """The usage of the next request, in the order of sending."""
        ids = self._tokens(request.blocks)
        root = self._roots.setdefault((request.scope, request.model), _Node(None, (), next(self._clock)))
        read, node = self._match(root, ids[:-1])
        kept = ids + self._tokens(request.answer)[:-1]
        if self.capacity is not None:
            self._evict(len(kept) - read - (self.capacity - self.size), node)
        self._insert(root, kept)
        return Usage(uncached=len(ids) - read, cache_read=read, output=request.output)

    def _tokens(self, blocks: Sequence[Block]) -> tuple[int, ...]:
        found: list[int] = []
        for block in blocks:
            if block.key not in self._known:
                self._known[block.key] = tuple(self.ids(block))
            found += self._known[block.key]
        return tuple(found)

    def _match(self, root: _Node, ids: tuple[int, ...]) -> tuple[int, _Node]:
        """The tokens found, and the node that they end with; a node that matches in part is split there."""
        whole, read, node = len(ids) // self.page_size * self.page_size, 0, root
        root.used = next(self._clock)
        while read < whole and (child := node.children.get(ids[read : read + self.page_size])) is not None:
            child.used = next(self._clock)
            same = self._common(child.key, ids, read, whole)
            read += same
            node = child if same == len(child.key) else self._split(child, same)
            if node is not child:
                break
        return read, node

    def _insert(self, root: _Node, ids: tuple[int, ...]) -> None:
        whole, done, node = len(ids) // self.page_size * self.page_size, 0, root
        root.used = next(self._clock)
        while done < whole and (child := node.children.get(ids[done : done + self.page_size])) is not None:
            child.used = next(self._clock)
            same = self._common(child.key, ids, done, whole)
            done += same
            node = child if same == len(child.key) else self._split(child, same)
        if done < whole:
            node.children[ids[done : done + self.page_size]] = _Node(node, ids[done:whole], next(self._clock))
            self.size += whole - done

    def _common(self, key: tuple[int, ...], ids: tuple[int, ...], start: int, stop: int) -> int:
        """The tokens at the front of `key` that stand in `ids` from `start` on, in whole pages."""
        most = min(len(key), stop - start)
        if key[:most] == ids[start : start + most]:
            return most
        same = next(i for i in range(most) if key[i] != ids[start + i])
        return same // self.page_size * self.page_size

    def _split(self, child: _Node, at: int) -> _Node:
        parent = child.parent
        assert parent is not None, "the root has no key to split"
        front = _Node(parent, child.key[:at], next(self._clock), {child.key[at : at + self.page_size]: child})
        parent.children[child.key[: self.page_size]] = front
        child.parent, child.key = front, child.key[at:]
        return front

    def _evict(self, tokens: int, keep: _Node) -> None:
        """Drop the least recently used leaves until so many tokens are free; `keep` and what it stands on stay."""
        if tokens <= 0:
            return
        locked: set[_Node] = set()
        while keep.parent is not None:
            locked.add(keep)
            keep = keep.parent
        leaves = [(node.used, id(node), node) for root in self._roots.values() for node in _leaves(root)]
        heapify(leaves)
        while tokens > 0 and leaves:
            _, _, leaf = heappop(leaves)
            parent = leaf.parent
            if parent is None or leaf in locked:
                continue
            del parent.children[leaf.key[: self.page_size]]
            self.size -= len(leaf.key)
            tokens -= len(leaf.key)
            if not parent.children:
                heappush(leaves, (parent.used, id(parent), parent))


def _leaves(root: _Node) -> list[_Node]:
    found, stack = [], [root]
    while stack:
        node = stack.pop()
        stack += node.children.values()
        if not node.children:
            found.append(node)
    return found
