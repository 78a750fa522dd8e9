"""A run of the harness under every cache model: what each provider reads and processes anew, and what it bills."""

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import pandas as pd

from warmprefix.caches.anthropic import Anthropic
from warmprefix.caches.deepseek import DeepSeek
from warmprefix.caches.gemini import GeminiExplicit, GeminiImplicit
from warmprefix.caches.llamacpp import LlamaCpp
from warmprefix.caches.openai import OpenAI
from warmprefix.caches.openai_breakpoints import ENDING, OpenAIBreakpoints, endings
from warmprefix.caches.sglang import SGLang
from warmprefix.caches.vllm import VLLM
from warmprefix.errors import InputError
from warmprefix.harness.session import Sent
from warmprefix.harness.transcript import Piece
from warmprefix.prices import cost, storage_cost
from warmprefix.prompt import SYSTEM, TOOLS
from warmprefix.request import Block, Request
from warmprefix.tokens import encoding

Ids = Callable[[Block], Sequence[int]]
Marks = Callable[[Sent], dict[int, str]]


def _own_marks(sent: Sent) -> dict[int, str]:
    """The harness's markers as they are."""
    return dict(sent.markers)


def _endings(sent: Sent) -> dict[int, str]:
    """Every eligible message ending; each piece is a message of its own, as a chat request has them."""
    roles = [_role(piece) for piece in sent.pieces]
    return dict.fromkeys(endings(roles, [True] * len(roles)), ENDING)


def _role(piece: Piece) -> str:
    if piece.tier in (SYSTEM, TOOLS):
        return "developer" if piece.tier == SYSTEM else ""
    return "tool" if piece.kind == "tool_result" else piece.role


def _constant_part(sent: Sent) -> dict[int, str]:
    """The end of tools and system prompt: what a cached object is made of."""
    ends = [i for i, piece in enumerate(sent.pieces) if piece.tier in (SYSTEM, TOOLS)]
    return {ends[-1]: "object"} if ends else {}


@dataclass(frozen=True, slots=True)
class Provider:
    """A rule set, the markers it is given, and the model whose minimum and price count.

    `prices` names the provider in the price library, "" where nothing is billed by the token.
    """

    name: str
    cache: Callable[[Ids], Any]
    model: str = ""
    prices: str = ""
    marks: Marks = _own_marks


ANTHROPIC = Provider("Anthropic", lambda ids: Anthropic(), "claude-sonnet-4-5", "anthropic")
BEDROCK = Provider(
    "Bedrock",
    lambda ids: Anthropic(collapse_runs=False),
    "anthropic.claude-sonnet-4-5-20250929-v1:0",
    "bedrock",
)
PROVIDERS = (
    ANTHROPIC,
    BEDROCK,
    Provider("OpenAI, GPT-5.5", lambda ids: OpenAI(ids), "gpt-5.5", "openai"),
    Provider("OpenAI, GPT-5.6", lambda ids: OpenAIBreakpoints(), "gpt-5.6", "openai", _endings),
    Provider("Gemini, implicit", lambda ids: GeminiImplicit(ids), "gemini-2.5-pro", "gemini"),
    Provider("Gemini, explicit", lambda ids: GeminiExplicit(), "gemini-2.5-pro", "gemini", _constant_part),
    Provider("DeepSeek", lambda ids: DeepSeek(ids), "deepseek-chat", "deepseek"),
    Provider("vLLM", lambda ids: VLLM(ids)),
    Provider("SGLang", lambda ids: SGLang(ids)),
    Provider("llama.cpp", lambda ids: LlamaCpp(ids)),
)


def named(name: str) -> Provider:
    """The provider of that name; raises `InputError` for no such provider."""
    for provider in PROVIDERS:
        if provider.name == name:
            return provider
    raise InputError("", f"provider {name!r}", "is unknown", f"use one of: {', '.join(p.name for p in PROVIDERS)}")


def charged(sent: Sequence[Sent], provider: Provider = ANTHROPIC) -> pd.DataFrame:
    """One row a request: `total` input tokens, `read` from the cache, `fresh` (the rest, written or not), `usd`.

    A cached object of Gemini's is made of tools and system prompt; making it counts as fresh, and it is stored, and
    billed, for its whole lifetime. `usd` is missing where nothing is billed by the token.
    """
    texts: dict[str, str] = {}
    cache = provider.cache(lambda block: _ids(texts[block.key]))
    rows = []
    for each in sent:
        request = _request(each, provider)
        texts |= {block.key: piece.text for block, piece in zip(request.blocks, each.pieces, strict=True)}
        made = getattr(cache, "created", 0)
        usage = cache.charge(request)
        made = getattr(cache, "created", 0) - made
        rows.append(
            {
                "total": usage.total,
                "read": usage.cache_read,
                "fresh": usage.total - usage.cache_read + made,
                "usd": _bill(usage, made, provider, cache),
            }
        )
    return pd.DataFrame(rows)


def _request(sent: Sent, provider: Provider) -> Request:
    request = sent.request(provider.model)
    return replace(request, markers=tuple(sorted(provider.marks(sent).items())))


def _bill(usage: Any, made: int, provider: Provider, cache: Any) -> float:
    if not provider.prices:
        return float("nan")
    usd = cost(usage, provider.model, provider.prices)
    if made:
        usd += cost(replace(usage, uncached=made, cache_read=0), provider.model, provider.prices)
        usd += storage_cost(made * cache.lifetime / 3600, provider.model)
    return float(usd)


@lru_cache(maxsize=100_000)
def _ids(text: str) -> "array[int]":
    return array("q", encoding().encode_ordinary(text))
