"""Blocks of raw request bodies, each distinct piece counted and hashed once."""

import hashlib
import json
import marshal
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from warmprefix.request import Block
from warmprefix.tokens import encoding

IMAGE = 1_600  # tokens: a full-size image by Anthropic's rule of thumb; its bytes are no text that could be counted


class BlockMaker:
    """Makes blocks of texts and of JSON values, and knows the token ids behind a key where it shall keep them.

    Tokens are counted per block and added: a text is its text, other JSON its text as sent. `pictured` holds the keys
    of the blocks with an image in them.
    """

    def __init__(self, name: str = "cl100k_base", keep_ids: bool = True) -> None:
        self._encode = encoding(name).encode_ordinary
        self._made: dict[tuple[str, str, str | bytes], Block] = {}
        self._ids: dict[str, array[int]] = {}
        self.pictured: set[str] = set()
        self.compact = True
        self._keep_ids = keep_ids

    def text(self, tier: str, role: str, text: str) -> Block:
        """The block of a text said in a role."""
        made = self._made.get((tier, role, text))
        if made is None:
            made = self._made[tier, role, text] = self._make(tier, role, "text", text, [text])
        return made

    def json(
        self, tier: str, role: str, kind: str, value: Any, counted: str | Callable[[Any], Iterable[str]] | None = None
    ) -> Block:
        """The block of a JSON value; `counted` is what of it is counted, by default all of it as sent."""
        same = marshal.dumps(value, 2)  # the cheapest exact identity of a JSON value, order of the keys included
        made = self._made.get((tier, role, same))
        if made is None:
            texts = counted(value) if callable(counted) else [self.dump(value) if counted is None else counted]
            made = self._make(tier, role, kind, json.dumps(value, ensure_ascii=False), texts)
            self._made[tier, role, same] = made
        return made

    def dump(self, value: Any) -> str:
        """A value as the line being read has it, with or without spaces."""
        return json.dumps(value, ensure_ascii=False, separators=(",", ":") if self.compact else None)

    def ids(self, block: Block) -> Sequence[int]:
        """The token ids of a block of this maker."""
        return self._ids[block.key]

    def _make(self, tier: str, role: str, kind: str, whole: str, texts: Iterable[str]) -> Block:
        key = hashlib.sha256(f"{role}\0{kind}\0{whole}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
        ids: list[int] = []
        for text in texts:
            if text is PICTURE:
                self.pictured.add(key)
                ids += [-int(key[:7], 16) - 1] * IMAGE  # ids that no other content has
            else:
                ids += self._encode(text)
        if self._keep_ids:
            self._ids[key] = array("q", ids)
        return Block(tier, kind, key, len(ids))


PICTURE = "\0image"  # stands among counted texts for an image
