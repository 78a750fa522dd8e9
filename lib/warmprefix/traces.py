"""Agent traces that state their prompts as hashes of blocks, as requests."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from warmprefix.chatlogs.documents import parse
from warmprefix.chatlogs.records import Record
from warmprefix.errors import InputError
from warmprefix.prompt import MESSAGES
from warmprefix.request import Block, Request


def read(path: str | os.PathLike[str]) -> tuple[Request, ...]:
    """The requests of one trace, each hash a block of the trace's `block_size` tokens; a partial last block is absent.

    The format is that of https://github.com/callanjfox/kv-cache-tester: `block_size`, and `requests` with `t`
    (seconds), `out` (tokens), `model` and `hash_ids`, which are local to the trace. Raises `InputError`.
    """
    label = os.fspath(path)
    try:
        trace = parse(Path(path).read_text(encoding="utf-8"), label, "the trace")
    except OSError as error:
        raise InputError(label, "", f"unreadable: {error.strerror}", "name a trace") from None
    if not isinstance(trace, dict):
        raise InputError(label, "", "is no JSON object", "is this a trace?")
    size = trace.get("block_size")
    if not isinstance(size, int) or size < 1:
        raise Record(label, "the trace", trace).fault("block_size", "must be a number of tokens")
    made: dict[int, Block] = {}
    return tuple(_request(row, size, made) for row in Record(label, "the trace", trace).items("requests"))


def _request(row: Record, size: int, made: dict[int, Block]) -> Request:
    hashes: list[Any] = row.values("hash_ids")
    for name in hashes:
        if not isinstance(name, int):
            raise row.fault("hash_ids", "must hold whole numbers")
        if name not in made:
            made[name] = Block(MESSAGES, "block", str(name), size)
    at, output = row.fields.get("t", 0.0), row.fields.get("out", 0)
    return Request(tuple(made[name] for name in hashes), at, model=row.text("model", ""), output=output)


def ids(block: Block) -> Sequence[int]:
    """Token ids for a block of a trace: its number, as often as it has tokens, since no trace says more."""
    return [int(block.key)] * block.tokens
