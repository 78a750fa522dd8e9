"""Published figures that follow from providers' rules: a guide's status line, a fan-out, padding, a study's savings.

What each takes for granted stands beside it in `data/claims.toml` (`assumed`). Runs whose size was not published are
drawn: any run that meets the published inputs, a seed each; the predictions are what the rules make of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache

import numpy as np

from warmprefix.caches import Usage
from warmprefix.caches.anthropic import FIVE_MINUTES, Anthropic
from warmprefix.caches.openai_breakpoints import ENDING, OpenAIBreakpoints
from warmprefix.prices import Price, cost
from warmprefix.prompt import MESSAGES, SYSTEM, TOOLS
from warmprefix.request import Block, Log, Request, Wire

SEED = 60  # of the run that stands for the measured one
STUDIED = date(2026, 1, 9)  # arXiv 2601.06007
STUDY = {
    "sonnet-4-5": ("claude-sonnet-4-5", "anthropic"),
    "gpt-5-2": ("gpt-5.2", "openai"),
    "gpt-4o": ("gpt-4o", "openai"),
    "gemini-2-5-pro": ("gemini-2.5-pro", "gemini"),
}
SONNET_5 = Price(input=2, cache_read=0.2, cache_write_5m=2.5, output=10)  # as the guide states it
CACHED, SAVED = 0.59, (0.825, 0.835)  # USD a run, and the saving that rounds to 83 %


def measured() -> dict[str, float]:
    """What the rules give for every claim of this module."""
    return {**_fan_out(), "padding.tokens": _padding(), **drawn(SEED)}


@lru_cache(256)
def drawn(seed: int) -> dict[str, float]:
    """What one drawn run of the guide and one of the study give."""
    rng = np.random.default_rng(seed)
    return {**_guide(rng), **_study(rng)}


def _fan_out(children: int = 8, prefix: int = 40_000) -> dict[str, float]:
    """The cost of children on one prefix: all at once, without a cache, and the first one first."""
    price = Price(input=2, cache_read=0.2, cache_write_5m=2.5)
    block = (Block(SYSTEM, "system", "prefix", prefix, FIVE_MINUTES),)
    cache, waiting = Anthropic(minimum=1024), Anthropic(minimum=1024)
    together = [cache.charge(Request(block, 0.0, 2.0)) for _ in range(children)]
    first = [waiting.charge(Request(block, 0.0 if i == 0 else 2.0, 2.0 + 2.0 * (i > 0))) for i in range(children)]
    return {
        "fan-out.together": _usd(together, price),
        "fan-out.off": _usd([Usage(uncached=prefix)] * children, price),
        "fan-out.first": _usd(first, price),
    }


def _padding(requests: int = 10, minimum: int = 1024) -> int:
    """The shortest prefix for which padding it to the minimum is cheaper, found by charging both."""
    price = Price(input=1, cache_read=0.1, cache_write_5m=1.25)

    def charged(tokens: int) -> float:
        block, cache = (Block(SYSTEM, "system", str(tokens), tokens),), OpenAIBreakpoints(minimum=minimum)
        return _usd([cache.charge(Request(block, 60.0 * i, markers=((0, ENDING),))) for i in range(requests)], price)

    padded = charged(minimum)
    low, high = 1, minimum
    while low < high:  # the longer the prefix, the dearer it is unpadded
        middle = (low + high) // 2
        low, high = (low, middle) if charged(middle) > padded else (middle + 1, high)
    return low


@dataclass(frozen=True, slots=True)
class Run:
    """An agent's run: requests on a system prompt, each longer by one step, with an answer each; all in tokens."""

    requests: int
    prompt: int
    step: float
    output: int
    tools: int = 300

    def sent(self, status: int = 0) -> list[Request]:
        """The requests, 20 s apart, with markers on the system prompt and the two newest turns.

        With `status` a line of so many tokens, another one each time, stands before the system prompt.
        """
        log, found = Log(), []
        for i in range(self.requests):
            log.extend([Block(MESSAGES, "turn", f"turn {i}", round((i + 1) * self.step) - round(i * self.step))])
            head = [Block(TOOLS, "tools", "tools", self.tools), Block(SYSTEM, "system", "system", self.prompt)]
            if status:
                head.insert(1, Block(SYSTEM, "status", f"status {i}", status))
            spots = [len(head) - 1, *(len(head) + j for j in (i - 1, i) if j >= 0)]
            found.append(
                Request(
                    Wire(tuple(head), log, i + 1),
                    20.0 * i,
                    output=self.output,
                    markers=tuple((spot, FIVE_MINUTES) for spot in spots),
                )
            )
        return found


def _guide(rng: np.random.Generator) -> dict[str, float]:
    """A run of the guide's triage agent that costs what it says, and saves what it says, with caching."""
    while True:
        requests, output = int(rng.integers(40, 81)), int(rng.integers(20, 400))
        run = _fitted(Run(requests, int(rng.integers(1_500, 8_000)), 0.0, output))
        saved = 1 - CACHED / _usd([_off(request) for request in run.sent()], SONNET_5) if run.step >= 50 else 0.0
        if SAVED[0] <= saved < SAVED[1]:
            break
    off, front = [_off(request) for request in run.sent()], _charged(run.sent(status=25))
    cached = _usd(_charged(run.sent()), SONNET_5)
    return {
        "guide.cached": cached,
        "guide.saved": 1 - cached / _usd(off, SONNET_5),
        "guide.status": _usd(front, SONNET_5),
        "guide.worse": float(_usd(front, SONNET_5) > _usd(off, SONNET_5)),
    }


def _fitted(run: Run) -> Run:
    """The run with the step that makes it cost what the guide says when every turn reads the one before."""
    n, write, read = run.requests, SONNET_5.cache_write_5m or 0.0, SONNET_5.cache_read or 0.0
    fixed = (run.tools + run.prompt) * (write + (n - 1) * read) + n * run.output * SONNET_5.output
    return replace(run, step=(CACHED * 1e6 - fixed) / (n * write + n * (n - 1) / 2 * read))


def _study(rng: np.random.Generator, prompt: int = 10_000, tuned: float = 0.785) -> dict[str, float]:
    """Savings of sessions on a long system prompt that add as much as one model's saving tells.

    Each model had sessions of its own, so the tuned saving is held within 3 %, as inputs are.
    """
    while True:
        requests, output = int(rng.integers(4, 51)), int(rng.integers(20, 200))
        target = tuned * float(rng.uniform(0.97, 1.03))
        (gain, more), (off, longer) = _terms(requests, prompt, output, "sonnet-4-5")
        step = (gain - target * off) / (target * longer - more)
        if 0 < step < prompt:
            break
    found = {}
    for key in STUDY:
        (gain, more), (off, longer) = _terms(requests, prompt, output, key)
        found[f"study.{key}"] = (gain + more * step) / (off + longer * step)
    return found


Terms = tuple[float, float]


def _terms(requests: int, prompt: int, output: int, key: str) -> tuple[Terms, Terms]:
    """What caching saves of a session, and what the session costs without: each a fixed part and one per step's token.

    In millionths of a USD. Every request reads all of the one before: by the rules no mode saves more.
    """
    model, vendor = STUDY[key]
    unit = _unit(model, vendor)
    less, extra = unit.input - (unit.cache_read or unit.input), (unit.cache_write_5m or unit.input) - unit.input
    hit = prompt // 128 * 128 if vendor == "openai" else prompt
    earlier = requests * (requests - 1) / 2
    gain = hit * ((requests - 1) * less - extra), earlier * less - requests * extra
    off = requests * (prompt * unit.input + output * unit.output), (earlier + requests) * unit.input
    return gain, off


@lru_cache
def _unit(model: str, vendor: str) -> Price:
    """A model's prices on the study's day, each read off a request of a thousand tokens."""
    names = {"uncached": "input"} | {name: name for name in ("cache_read", "cache_write_5m", "output")}
    found = {
        price: float(cost(Usage(**{field: 1_000}), model, vendor, STUDIED)) * 1_000 for field, price in names.items()
    }
    return Price(**found)


def _charged(requests: Sequence[Request]) -> list[Usage]:
    cache = Anthropic(minimum=1024)
    return [cache.charge(request) for request in requests]


def _off(request: Request) -> Usage:
    return Usage(uncached=request.tokens, output=request.output)


def _usd(usages: Sequence[Usage], price: Price) -> float:
    names = ("uncached", "cache_read", "cache_write_5m", "cache_write_1h", "output")
    added = Usage(**{name: sum(getattr(usage, name) for usage in usages) for name in names})
    return float(price.cost(added))  # a stated price has no tiers
