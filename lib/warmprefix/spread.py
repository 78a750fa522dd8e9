"""Many channels of several laws: how far the results move with the channel, its sizes, and the tokenizer."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import pairwise
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from warmprefix import burstlaw, calibrate, claims
from warmprefix.brief import brief
from warmprefix.bursts import draw
from warmprefix.calibrate import PUBLISHED, Sample
from warmprefix.channel import Channel, mentions
from warmprefix.errors import InputError
from warmprefix.generate import HANDLE, Plan, generate, replies
from warmprefix.ledger import records
from warmprefix.simulate import simulate
from warmprefix.strategies import named
from warmprefix.sweep import measure, memo, ran

PUBLISHED_LAW = "published"
LEAD = PUBLISHED.lead  # rows before the first mention
FIGURES = (
    "share.window",
    "share.watermark",
    "new.window",
    "new.excess",
    "new.unstable",
    "total.window",
    "total.watermark",
    "evict15.window",
    "evict15.watermark",
    "unshown",
)


def laws() -> tuple[str, ...]:
    """The published law and the burst laws of public logs.

    >>> laws()
    ('published', 'meeting', 'forum', 'community')
    """
    return PUBLISHED_LAW, *burstlaw.names()


@lru_cache(maxsize=1024)
def drawn(law: str, seed: int, turns: int = 30) -> Sample:
    """The channel of a law and a seed: calibrated to the published inputs, or as public logs burst.

    A channel of a burst law has twelve rows before its first mention and ends with its last of `turns`; its replies are
    as long as the published ones. Raises `InputError` for a law that there is not.
    """
    if law not in laws():
        raise InputError("", f"law {law!r}", "there is no such law here", f"take one of {', '.join(laws())}")
    if turns < 1:
        raise InputError("", f"turns={turns}", "are none", "take 1 or more")
    if law == PUBLISHED_LAW:
        return calibrate.sample(seed, memo())
    rng, rows = np.random.default_rng([seed, turns]), 10 * turns
    where: tuple[int, ...] = ()
    while len(where) < turns:
        rows *= 2
        channel = draw(burstlaw.law(law), rows, rng, agent_rows=False)
        where = tuple(position for position in mentions(channel, [HANDLE]) if position >= LEAD)[:turns]
    first = where[0] - LEAD
    kept = Channel.of(channel.id, channel.messages[first : where[-1] + 1])
    return Sample(kept, tuple(position - first for position in where), replies(turns, _reply_chars(), rng))


@cache
def _reply_chars() -> float:
    """The mean length of the published channel's replies, in characters."""
    return fmean(len(reply) for reply in calibrate.published().replies)


def channel(law: str, seed: int) -> dict[str, Any]:
    """What one channel of a law gives for the figures that the published simulation reports."""
    measured = claims.measure(drawn(law, seed), memo())
    return {name: measured[name] for name in FIGURES}


def placed(table: pd.DataFrame) -> pd.DataFrame:
    """The published figures in the distribution of each law's channels, from a sweep of `channel`.

    One row a law and figure: the 10, 50 and 90 % points, the published value, the share of channels below it
    (`rank`), and whether it lies in that band at the precision with which it was published (`inside`).
    """
    rows = []
    for law, group in table.groupby("law", sort=False):
        for name in FIGURES:
            claim, values = claims.claim(name), group[name].to_numpy(float)
            low, middle, high = np.percentile(values, [10, 50, 90])
            inside = claim.rounded(float(low)) <= claim.published <= claim.rounded(float(high))  # type: ignore[operator]
            rank = float(((values < claim.published).mean() + (values <= claim.published).mean()) / 2)
            rows.append((law, name, low, middle, high, claim.published, rank, inside))
    columns = ["law", "figure", "p10", "p50", "p90", "published", "rank", "inside"]
    return pd.DataFrame(rows, columns=columns)


def bands(table: pd.DataFrame, by: Sequence[str], values: Sequence[str]) -> pd.DataFrame:
    """The 10, 50 and 90 % points of `values` over whatever `by` does not tell apart: columns `value p10` and so on."""
    quantiles = table.groupby(list(by), sort=False)[list(values)].quantile([0.1, 0.5, 0.9]).unstack()
    quantiles.columns = [f"{name} p{round(100 * share)}" for name, share in quantiles.columns]
    return quantiles.reset_index()


def scaled(what: str, factor: float, seed: int) -> dict[str, Any]:
    """Window against watermark in a channel whose `reply`, `row` or `brief` is `factor` times as long.

    The channel has the published counts; its lengths are the plan's, not fitted. Gives `ratio` (the window's total
    over the watermark's), `share` (the watermark's), `total` and `new` (the watermark's, per warm turn).
    """
    if what not in ("reply", "row", "brief"):
        raise InputError("", f"sensitivity to {what!r}", "unknown", "take one of reply, row, brief")
    if not 0 < factor < math.inf:
        raise InputError("", f"{what} {factor} times as long", "is no length", "take a multiple above 0")
    generated = _generated(factor if what == "row" else 1.0, seed)
    where = mentions(generated, [HANDLE])
    chars = _reply_chars() * (factor if what == "reply" else 1.0)
    sample = Sample(generated, where, replies(len(where), chars, np.random.default_rng([seed, 98])))
    setting = replace(sample.setting, rules=_rules(factor) if what == "brief" else None)
    window, watermark = (ran(sample, setting, name) for name in ("window", "watermark"))
    return {
        "ratio": window["total"] / watermark["total"],
        "share": watermark["cache_share"],
        "total": watermark["total"],
        "new": watermark["new_per_warm_turn"],
    }


@lru_cache(maxsize=64)
def _generated(rows: float, seed: int) -> Channel:
    plan = replace(PUBLISHED, body_median=PUBLISHED.body_median * rows)
    return generate(plan, np.random.default_rng([seed, 97]))


def _rules(factor: float) -> str:
    """The brief, so many times as long: whole copies, then as many of its lines."""
    lines = brief().splitlines(keepends=True)
    whole, part = divmod(factor, 1.0)
    return "".join(lines * int(whole) + lines[: max(round(part * len(lines)), int(whole < 1))])


def tokenized(encoding: str, law: str, seed: int) -> dict[str, Any]:
    """The ratios that are the result, counted with another tokenizer."""
    sample = drawn(law, seed)
    runs = {
        (name, evicted): measure(sample, strategy=name, evict_at=evicted, encoding=encoding)
        for name in ("window", "watermark")
        for evicted in ((), (claims.EVICTED,))
    }
    window, watermark = runs["window", ()], runs["watermark", ()]
    return {
        "total": watermark["total"],
        "window : watermark, total": window["total"] / watermark["total"],
        "window : watermark, new": window["new_per_warm_turn"] / watermark["new_per_warm_turn"],
        "cached share, watermark": watermark["cache_share"],
        "evicted : kept, watermark": runs["watermark", (claims.EVICTED,)]["total"] / watermark["total"],
    }


@dataclass(frozen=True)
class ClosedForm:
    """The input of a session that grows by the same each turn: prefix·n + growth·n(n+1)/2 tokens after n turns."""

    prefix: float
    growth: float

    def total(self, turns: int, evict_at: Sequence[int] = ()) -> float:
        """All input after so many turns; each eviction begins a session anew.

        >>> ClosedForm(100, 10).total(3), ClosedForm(100, 10).total(3, evict_at=[3])
        (360.0, 340.0)
        """
        edges = [1, *sorted({turn for turn in evict_at if 1 < turn <= turns}), turns + 1]
        lengths = [b - a for a, b in pairwise(edges)]
        return float(sum(self.prefix * n + self.growth * n * (n + 1) / 2 for n in lengths))


def fitted(totals: Sequence[int], prefix: float) -> ClosedForm:
    """The closed form whose growth fits the cumulative input of these turns best (least squares); `prefix` is known.

    >>> fitted([110, 120, 130], 100.0)
    ClosedForm(prefix=100.0, growth=10.0)
    """
    n = np.arange(1, len(totals) + 1)
    shape, rest = n * (n + 1) / 2, np.cumsum(totals) - prefix * n
    return ClosedForm(prefix, float((shape * rest).sum() / (shape * shape).sum()))


def departure(law: str, seed: int, strategy: str) -> dict[str, Any]:
    """How far the closed form, fitted to a kept session, is from the simulation: by turn, and with an eviction at 15.

    Gives `growth`, `mean_growth` (all that a turn adds, on average, without a fit), `turn_1` … (measured over fitted
    cumulative input, minus 1) and `evicted` (the same for the total with the eviction, nothing fitted again).
    """
    sample, blocks, point = drawn(law, seed), memo(), named(strategy)
    run: dict[tuple[int, ...], list[int]] = {}
    for evicted in ((), (claims.EVICTED,)):
        steps = list(simulate(sample.channel, sample.mentions, point, blocks, sample.setting, evict_at=evicted))
        run[evicted] = [turn["total"] for turn in records(steps, sample.channel, sample.mentions, point, blocks)]
    prefix = sum(block.tokens for block in steps[0].request.blocks[: -len(steps[0].parts)])
    kept, cold = run[()], run[claims.EVICTED,]
    form = fitted(kept, prefix)
    by_turn = {f"turn_{n}": sum(kept[:n]) / form.total(n) - 1 for n in range(1, len(kept) + 1)}
    evicted_total = form.total(len(cold), [claims.EVICTED])
    return {
        "growth": form.growth,
        "mean_growth": (kept[-1] - prefix) / len(kept),
        "evicted": sum(cold) / evicted_total - 1,
        **by_turn,
    }


def long_sample(seed: int, turns: int) -> Sample:
    """A channel of the published density with so many mentions; nothing is fitted."""
    rng = np.random.default_rng([seed, turns])
    plan = Plan(
        messages=turns * 20 // 3,
        mentions=turns,
        long=turns * 8 // 30,
        beyond=None,
        gap_max=None,
        gap_median=None,
    )
    generated = generate(plan, rng)
    return Sample(generated, mentions(generated, [HANDLE]), replies(turns, _reply_chars(), rng))
