"""Fan-outs of any size, prefix, patience and bound: what they cost, when they end, what a rate limit lets through."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from warmprefix.caches import Usage
from warmprefix.caches.anthropic import FIVE_MINUTES, Anthropic
from warmprefix.harness.fan_out import Child, Start, fan_out, input_cost, requests_per_minute, usages
from warmprefix.prompt import MESSAGES, SYSTEM
from warmprefix.request import Block, Request

FIRST, TOGETHER, UNCACHED = "first child first", "all at once", "no cache"
WAYS = (TOGETHER, UNCACHED, FIRST)


def by_size(
    sizes: Sequence[int],
    prefixes: Sequence[int],
    first_tokens: Sequence[float],
    *,
    bound: float = 30.0,
    own: int = 0,
    answer: float = 20.0,
    usd_per_million: float = 2.0,
    read: float = 0.1,
    write: float = 1.25,
) -> pd.DataFrame:
    """What a fan-out costs and when its last child ends, a row a size, prefix, time to first token and way.

    `prefix` and `own` are tokens: what the children share and what each has for itself; `first_token`, `answer` (from
    the first token to the end) and `bound` are seconds; `read` and `write` multiples of a fresh token's price.
    """
    rows = []
    for size in sizes:
        for first_token in first_tokens:
            group = [Child(first_token, first_token + answer)] * size
            for way in WAYS:
                starts = fan_out(group, bound, lead=way == FIRST)
                for prefix in prefixes:
                    used = usages(starts, prefix, own)
                    if way == UNCACHED:
                        used = (Usage(uncached=prefix + own),) * size
                    rows.append(
                        {
                            "children": size,
                            "prefix": prefix,
                            "first_token": first_token,
                            "way": way,
                            "usd": input_cost(used, usd_per_million, read, write),
                            "ended": max(start.ended for start in starts),
                        }
                    )
    return pd.DataFrame(rows)


def by_bound(
    bounds: Sequence[float],
    rng: np.random.Generator,
    *,
    children: int = 8,
    prefix: int = 40_000,
    own: int = 0,
    median_first_token: float = 3.0,
    spread: float = 1.0,
    failing: float = 0.0,
    answer: float = 20.0,
    draws: int = 200,
    usd_per_million: float = 2.0,
    read: float = 0.1,
    write: float = 1.25,
) -> pd.DataFrame:
    """What a bound on the wait is worth when first tokens come early and late: means over the same draws.

    Times to first token are log-normal with that median (seconds) and `spread` (of their logarithm); a share `failing`
    of the children fails before it answers. `hits` is the mean share of the siblings that read the prefix, `latest` the
    latest that any was sent, `ended` the mean end in seconds, `late` how much later that is than all at once.
    """
    groups = [_children(rng, children, median_first_token, spread, failing, answer) for _ in range(draws)]
    together = np.array([_ends(fan_out(group, 0.0, lead=False)) for group in groups])
    rows = []
    for bound in bounds:
        runs = [fan_out(group, bound) for group in groups]
        used = [usages(run, prefix, own) for run in runs]
        ended = np.array([_ends(run) for run in runs])
        rows.append(
            {
                "bound": bound,
                "usd": float(np.mean([input_cost(each, usd_per_million, read, write) for each in used])),
                "hits": float(np.mean([sum(usage.cache_read > 0 for usage in each) / (children - 1) for each in used])),
                "latest": max(start.sent for run in runs for start in run),
                "ended": float(ended.mean()),
                "late": float((ended - together).mean()),
            }
        )
    return pd.DataFrame(rows)


def _children(
    rng: np.random.Generator, count: int, median: float, spread: float, failing: float, answer: float
) -> list[Child]:
    first = rng.lognormal(np.log(median), spread, count)
    fails = rng.random(count) < failing
    return [
        Child(float(at), float(at) + answer, float(at) / 2 if bad else None)
        for at, bad in zip(first, fails, strict=True)
    ]


def _ends(starts: Sequence[Start]) -> float:
    return max(start.ended for start in starts)


def by_rules(starts: Sequence[Start], prefix: int, own: int = 0) -> tuple[Usage, ...]:
    """What the children read and write by the rules of a provider with markers, as a check of `fan_out.usages`."""
    shared = Block(SYSTEM, "text", "shared", prefix, FIVE_MINUTES)
    cache = Anthropic(minimum=0)
    used = {}
    for start in sorted(starts, key=lambda start: (start.sent, start.child)):
        if start.first_token is None:
            used[start.child] = Usage()
            continue
        blocks = (shared, Block(MESSAGES, "text", f"task {start.child}", own))
        used[start.child] = replace(cache.charge(Request(blocks, start.sent, start.first_token)), output=0)
    return tuple(used[start.child] for start in starts)


def throughput(prefixes: Sequence[int], limits: Sequence[int], own: int = 2_000) -> pd.DataFrame:
    """The requests a minute that a limit of input tokens a minute allows, with hits on the prefix and without."""
    return pd.DataFrame(
        {
            "prefix": prefix,
            "limit": limit,
            "own": own,
            "cold": requests_per_minute(limit, Usage(uncached=prefix + own)),
            "warm": requests_per_minute(limit, Usage(uncached=own, cache_read=prefix)),
        }
        for limit in limits
        for prefix in prefixes
    )
