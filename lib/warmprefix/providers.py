"""A simulated session under each provider's cache, on clock time: reads, writes, money, time to first token."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache, partial
from itertools import pairwise
from typing import Protocol

import pandas as pd

from warmprefix.caches import Usage
from warmprefix.caches.anthropic import FIVE_MINUTES, ONE_HOUR, Anthropic
from warmprefix.caches.deepseek import DeepSeek
from warmprefix.caches.gemini import GeminiExplicit, GeminiImplicit
from warmprefix.caches.ideal import IdealPrefix
from warmprefix.caches.llamacpp import LlamaCpp
from warmprefix.caches.openai import OpenAI
from warmprefix.caches.openai_breakpoints import OpenAIBreakpoints
from warmprefix.caches.sglang import SGLang
from warmprefix.caches.vllm import VLLM
from warmprefix.channel import Channel
from warmprefix.placement import Layout, Layouts, Markers, Placement, endings, everywhere, markers
from warmprefix.prices import PRICE_DATE, cost, storage_cost
from warmprefix.prompt import MESSAGES, SYSTEM, TOOLS, Segment
from warmprefix.request import Block, Blocks, Request
from warmprefix.simulate import Setting, Step, simulate
from warmprefix.strategies import Strategy

COLUMNS = {
    "strategy": "the strategy's name",
    "provider": "the provider's name",
    "turn": "the mention's number, from 1",
    "at": "seconds at which the request was sent: the mention's, or the end of the turn before",
    "pause": "seconds since the session's request before was sent; NaN at the first",
    "cold": "whether the process had yet to hear anything",
    "total": "input tokens of the request",
    "read": "of them, read from the cache",
    "write_5m": "of them, written for five minutes (or whatever a provider writes at a price)",
    "write_1h": "of them, written for an hour",
    "uncached": "of them, the rest",
    "output": "tokens of the answer",
    "pings": "requests that kept the cache warm until the next mention",
    "usd": "what the turn costs, with its pings and its storage; NaN on one's own hardware",
    "usd_off": "what it costs where nothing is cached",
    "first_token": "seconds to the first token",
    "first_token_off": "the same where nothing is cached",
}

CLAUDE = "claude-sonnet-4-5"
Ids = Callable[[Block], Sequence[int]]


class Cache(Protocol):
    """What every cache model does."""

    def charge(self, request: Request, /) -> Usage:
        """The usage of the next request, in the order of sending."""
        ...


@dataclass(frozen=True, slots=True)
class Latency:
    """Time to first token as a linear model: a fixed part, and every token at the rate of prefill.

    >>> round(Latency().first_token(Usage(uncached=800, cache_read=10_000)), 3)
    0.875

    `fixed` is in seconds, `prefill` and `decode` in tokens a second: assumptions. `cached` is what a cached token costs
    of a computed one, since attention still looks at it: 0.07 on the llama.cpp server, fitted to prompts of 2,000 to
    7,000 tokens on a model 1,024 wide (`tests/referees`); it falls with the width.
    """

    fixed: float = 0.5
    prefill: float = 4_000.0
    cached: float = 0.07
    decode: float = 60.0

    def first_token(self, usage: Usage) -> float:
        """Seconds from sending to the first token."""
        return self.fixed + (usage.total - usage.cache_read + self.cached * usage.cache_read) / self.prefill


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider with a model: its cache, its markers, and the order of what comes before the messages.

    `vendor` is the price library's name of it, empty on one's own hardware. `scoped` keeps a process's cache to itself,
    as the published simulation does. `keep_alive` is for how many seconds after a request it is sent again, with no
    output, every `ping_every` seconds. `rows` makes a content block of every row.
    """

    name: str
    model: str
    vendor: str
    cache: Callable[[Ids], Cache]
    mark: Callable[[Layout], Markers] | None = None
    order: tuple[str, str] = (TOOLS, SYSTEM)
    scoped: bool = False
    keep_alive: float = 0.0
    ping_every: float = 240.0
    rows: bool = False


def anthropic(name: str, placement: Placement, model: str = CLAUDE, keep_alive: float = 0.0) -> Provider:
    """Anthropic with markers on chosen spots."""

    def mark(layout: Layout) -> Markers:
        return markers(layout, placement)

    return Provider(name, model, "anthropic", lambda ids: Anthropic(), mark, keep_alive=keep_alive)


def _head(layout: Layout) -> Markers:
    """The marker of an explicit cached object: behind all that comes before the messages."""
    return ((len(layout.wire.head) - 1, FIVE_MINUTES),)


# The ideal prefix is priced as if its reads were Anthropic's and writing were free. Gemini documents no rounding:
# its steps of 16 tokens are for speed.
PROVIDERS = (
    Provider("ideal prefix", CLAUDE, "anthropic", IdealPrefix, order=(SYSTEM, TOOLS), scoped=True),
    anthropic("Anthropic 5m", everywhere(FIVE_MINUTES)),
    anthropic("Anthropic 1h", everywhere(ONE_HOUR)),
    Provider("OpenAI to 5.5", "gpt-5.5", "openai", OpenAI),
    Provider("OpenAI from 5.6", "gpt-5.6", "openai", lambda ids: OpenAIBreakpoints(), endings),
    Provider("Gemini implicit", "gemini-2.5-flash", "gemini", partial(GeminiImplicit, step=16)),
    Provider("Gemini explicit", "gemini-2.5-flash", "gemini", lambda ids: GeminiExplicit(), _head),
    Provider("DeepSeek", "deepseek-chat", "deepseek", DeepSeek),
    Provider("vLLM", "own", "", VLLM),
    Provider("SGLang", "own", "", SGLang),
    Provider("llama.cpp", "own", "", LlamaCpp),
)


def idle_evictions(channel: Channel, mentions: Sequence[int], idle: float = 1800.0) -> list[int]:
    """The mentions, from 1, that find their process ended since it was idle for more than so many seconds."""
    at = [channel.messages[i].created_at for i in mentions]
    return [turn for turn, (before, now) in enumerate(pairwise(at), start=2) if now - before > idle]


def steps_of(
    channel: Channel,
    mentions: Sequence[int],
    strategy: Strategy,
    order: tuple[str, str],
    blocks: Blocks,
    setting: Setting,
    evict_at: Sequence[int] = (),
) -> list[Step]:
    """The turns of a strategy with a provider's order of tools and system prompt."""
    return list(simulate(channel, mentions, replace(strategy, order=order), blocks, setting, evict_at=evict_at))


def bill(
    steps: Sequence[Step],
    strategy: str,
    provider: Provider,
    blocks: Blocks,
    setting: Setting,
    latency: Latency = Latency(),
    on: date = PRICE_DATE,
) -> pd.DataFrame:
    """One row a turn of what a provider bills for a session; `COLUMNS` says what each column holds.

    The session answers one mention after the other, so a request is sent when its mention comes or when the turn before
    is done. Raises `InputError` for a model without a price.
    """
    return pd.DataFrame(_rows(steps, strategy, provider, blocks, setting, latency, on), columns=pd.Index(COLUMNS))


def _rows(
    steps: Sequence[Step],
    strategy: str,
    provider: Provider,
    blocks: Blocks,
    setting: Setting,
    latency: Latency,
    on: date,
) -> Iterator[dict[str, object]]:
    cache, layouts, done, last = provider.cache(blocks.ids), Layouts(provider.rows), float("-inf"), None
    made = 0
    for i, step in enumerate(steps):
        at = max(step.request.at, done)
        request = _request(step, at, provider, layouts, blocks, setting)
        usage, stored = cache.charge(request), 0.0
        off = Usage(uncached=usage.total, output=usage.output)
        first = latency.first_token(usage)
        done = at + first + usage.output / latency.decode
        until = steps[i + 1].request.at if i + 1 < len(steps) else float("inf")
        pings = [cache.charge(replace(request, at=t, output=0)) for t in _pings(provider, at, until)]
        if isinstance(cache, GeminiExplicit):
            pings.append(Usage(uncached=cache.created - made))  # absent from the usage, but not from the bill
            made = cache.created
            if i + 1 == len(steps):
                stored = float(storage_cost(cache.token_hours(done), provider.model))
        yield {
            "strategy": strategy,
            "provider": provider.name,
            "turn": step.turn,
            "at": at,
            "pause": float("nan") if last is None else at - last,
            "cold": step.cold,
            "total": usage.total,
            "read": usage.cache_read,
            "write_5m": usage.cache_write_5m,
            "write_1h": usage.cache_write_1h,
            "uncached": usage.uncached,
            "output": usage.output,
            "pings": 0 if isinstance(cache, GeminiExplicit) else len(pings),
            "usd": _usd([usage, *pings], provider, on) + stored,
            "usd_off": _usd([off], provider, on),
            "first_token": first,
            "first_token_off": latency.first_token(off),
        }
        last = at


def _request(step: Step, at: float, provider: Provider, layouts: Layouts, blocks: Blocks, setting: Setting) -> Request:
    """A turn's request as a provider gets it: what its rules look at is markers, or the tokens and the answer."""
    request = replace(step.request, at=at, model=provider.model, scope=step.request.scope if provider.scoped else "")
    if provider.mark is None:
        return replace(request, answer=(blocks.of(MESSAGES, Segment("reply", setting.reply(step.turn))),))
    layout = layouts.of(step)
    return replace(request, blocks=layout.wire, markers=provider.mark(layout))


def _pings(provider: Provider, at: float, until: float) -> Iterator[float]:
    """When a request is sent again to keep its cache warm."""
    ping = at + provider.ping_every
    while ping < min(until, at + provider.keep_alive):
        yield ping
        ping += provider.ping_every


def _usd(usages: Sequence[Usage], provider: Provider, on: date) -> float:
    if not provider.vendor:
        return float("nan")
    return sum(_one_usd(usage, provider.model, provider.vendor, on) for usage in usages)


@lru_cache(1 << 17)
def _one_usd(usage: Usage, model: str, vendor: str, on: date) -> float:
    """The cost of one request; the price library takes longer than the cache, and sweeps ask the same again."""
    return float(cost(usage, model, vendor, on))
