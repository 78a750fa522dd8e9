"""Published figures against measured ones."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from warmprefix import calibrate, claims_providers
from warmprefix.calibrate import BURST, PUBLISHED, Sample
from warmprefix.channel import gaps
from warmprefix.datafiles import read_data
from warmprefix.delivery import HEADER_NEW, UNTRUSTED
from warmprefix.ledger import ledger, summary
from warmprefix.request import Blocks
from warmprefix.strategies import STRATEGIES

INPUT, PREDICTED, REPORTED = "input", "predicted", "reported"
EVICTED = 15
Value = float | tuple[float, float]


@dataclass(frozen=True, slots=True)
class Claim:
    """One published number: see `data/claims.toml` for what the fields mean."""

    id: str
    what: str
    kind: str
    published: Value
    role: str
    within: float = 0.0
    margin: float | None = None
    step: float | None = None
    assumed: str = ""

    @property
    def banded(self) -> bool:
        """Whether it is a prediction that is judged by its spread over channels."""
        return self.role == PREDICTED and self.margin is None

    def rounded(self, value: float) -> float:
        """A value at the precision of the published one.

        >>> Claim("x", "", "tokens", 516000, "predicted", step=1000).rounded(515_512.3)
        516000
        """
        return value if self.step is None else type(self.step)(round(round(value / self.step) * self.step, 9))


@cache
def claims() -> tuple[Claim, ...]:
    """The published figures, those of the channel simulation first."""
    found: list[Claim] = []

    def walk(table: Mapping[str, Any], path: str) -> None:
        if "kind" in table:
            fields = {name: value for name, value in table.items() if not isinstance(value, dict)}
            published = fields.pop("published")
            found.append(
                Claim(path, published=tuple(published) if isinstance(published, list) else published, **fields)
            )
        for name, value in table.items():
            if isinstance(value, dict):
                walk(value, f"{path}.{name}" if path else name)

    walk(tomllib.loads(read_data("claims.toml")), "")
    return tuple(found)


def claim(id: str) -> Claim:
    """The claim of that id; raises `KeyError` for no such claim."""
    return {each.id: each for each in claims()}[id]


def measure(sample: Sample, blocks: Blocks) -> dict[str, Value]:
    """What one channel gives for every claim; a range claim gets its least and its greatest value."""
    from warmprefix import claims_tools  # here, since other verbs should not wait a second for the harness's libraries

    channel, where, setting = sample.channel, sample.mentions, sample.setting
    runs = {
        (name, evicted): ledger(channel, where, STRATEGIES[name], blocks, setting, evict_at=evicted)
        for name, evicted in (
            ("window", ()),
            ("watermark", ()),
            ("unstable", ()),
            ("window", (EVICTED,)),
            ("watermark", (EVICTED,)),
        )
    }
    window, watermark = (runs[name, ()] for name in ("window", "watermark"))
    cold_window, cold_watermark = (runs[name, (EVICTED,)] for name in ("window", "watermark"))
    sums = {name: summary(runs[name, ()]) for name in ("window", "watermark", "unstable")}
    early, early_marked = (table[table["turn"].isin(BURST)] for table in (window, watermark))
    return {
        **claims_tools.measure(),
        **claims_providers.measured(),
        **_of_the_channel(sample),
        **_of_the_texts(sample, blocks),
        "block.window": float(early["row_tokens"].mean()),
        "block.window.read": _span(early["duplicated_tokens"]),
        "block.watermark": _span(early_marked["row_tokens"]),
        "evict15.resent": int(cold_watermark["resent_tokens"].sum()),
        "evict15.window": int(cold_window["total"].sum()),
        "evict15.watermark": int(cold_watermark["total"].sum()),
        "evict15.cached": int(cold_watermark["cached"][EVICTED - 1]),
        "unshown": max(int(table["unshown"].sum()) for table in (window, watermark)),
        "unshown.added": int(watermark["unshown"].sum() - window["unshown"].sum()),
        "unshown.bursts": _share_in_bursts(watermark),
        "finding.share": float(sums["watermark"]["cache_share"] or 0) - float(sums["window"]["cache_share"] or 0),
        "finding.distance": float(((window["total"] - watermark["total"]).iloc[1:] > 0).mean()),
        "new.excess": float(sums["window"]["new_per_warm_turn"] or 0)
        / float(sums["watermark"]["new_per_warm_turn"] or 1)
        - 1,
        **{f"share.{name}": float(sums[name]["cache_share"] or 0) for name in sums},
        **{f"new.{name}": float(sums[name]["new_per_warm_turn"] or 0) for name in sums},
        **{f"total.{name}": int(sums[name]["total_input"] or 0) for name in sums},
    }


def spread(seeds: Iterable[int], blocks: Blocks) -> list[dict[str, Value]]:
    """What the channels of these seeds give, each of them meeting the published inputs."""
    return [{**measure(calibrate.sample(seed, blocks), blocks), **claims_providers.drawn(seed)} for seed in seeds]


def _of_the_channel(sample: Sample) -> dict[str, Value]:
    rows, between = sample.channel.messages, gaps(sample.mentions)
    return {
        "channel.messages": len(rows),
        "channel.people": len({row.author for row in rows if not row.agent}),
        "channel.agents": len({handle for i in sample.mentions for handle in re.findall(r"@\w+", rows[i].text)}),
        "channel.mentions": len(sample.mentions),
        "channel.long": sum(len(row.text) > PUBLISHED.long_over for row in rows),
        **{f"channel.gap.{name}": between[name] or 0 for name in ("min", "median", "max")},
    }


def _of_the_texts(sample: Sample, blocks: Blocks) -> dict[str, Value]:
    count, setting = blocks.tokenizer.count, sample.setting
    return {
        "prefix.tokens": count(setting.framing.rstrip() + "\n\n") + sum(count(schema) for schema in setting.tools),
        "brief.tokens": count(read_data("brief.md")),
        "status.tokens": count(setting.status(sample.channel.messages[sample.mentions[0]].created_at)),
        "untrusted.tokens": count(HEADER_NEW + UNTRUSTED),
    }


def _share_in_bursts(table: pd.DataFrame) -> float:
    """The share of the unshown rows that lie in a gap of more than 12 between two mentions."""
    wide = table["position"].diff() - 1 > PUBLISHED.row_limit
    return float(table["unshown"][wide].sum() / table["unshown"].sum()) if table["unshown"].any() else 1.0


def _span(values: "pd.Series[float]") -> tuple[float, float]:
    return float(values.min()), float(values.max())


def verdicts(measured: Mapping[str, Value], channels: Sequence[Mapping[str, Value]]) -> pd.DataFrame:
    """One row a claim: published, low, high, measured, role, ok.

    For an input `low` and `high` are its tolerance, and it holds when the measured value lies inside. For a prediction
    they are the 5-95 % band of `channels`, one entry a channel that meets the same inputs, and it holds when the
    published value lies inside; one that no channel bears on has a tolerance (`margin`) and is judged as an input is.
    All are compared at the published precision. What is only reported has neither.
    """
    rows = []
    for claim in claims():
        low, high = _bounds(claim, channels)
        value = measured.get(claim.id)
        if isinstance(value, tuple):
            ok = low <= value[0] and value[1] <= high
        elif claim.role == INPUT or (claim.role == PREDICTED and not claim.banded):
            ok = value is not None and low <= claim.rounded(value) <= high
        else:
            ok = low <= claim.published <= high if claim.role == PREDICTED else None
        rows.append(
            {
                "id": claim.id,
                "kind": claim.kind,
                "published": claim.published,
                "low": low,
                "high": high,
                "measured": value,
                "role": claim.role,
                "ok": ok,
            }
        )
    return pd.DataFrame(rows, dtype=object)


def _bounds(claim: Claim, channels: Sequence[Mapping[str, Value]]) -> Any:
    if claim.role == REPORTED:
        return None, None
    if isinstance(claim.published, tuple):
        return claim.published
    if claim.margin is not None:
        return claim.published - claim.margin, claim.published + claim.margin
    if claim.role == INPUT:
        return claim.published * (1 - claim.within), claim.published * (1 + claim.within)
    values: Iterable[Any] = (channel[claim.id] for channel in channels)
    low, high = np.percentile(np.fromiter(values, float), [5, 95])
    return claim.rounded(float(low)), claim.rounded(float(high))


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """The table of `verdicts` as a person reads it, with what each claim is about."""
    what = {claim.id: claim for claim in claims()}
    shown = pd.DataFrame({"claim": table["id"]})
    for column in ("published", "measured", "low", "high"):
        shown[column] = [_written(what[id], value) for id, value in zip(table["id"], table[column], strict=True)]
    shown["role"] = table["role"]
    shown["verdict"] = [{True: "holds", False: "MISSES", None: "not judged"}[ok] for ok in table["ok"]]
    shown["what"] = [what[id].what for id in table["id"]]
    return shown


def _written(claim: Claim, value: Value | None) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple):
        return " to ".join(_written(claim, each) for each in value)
    if claim.kind == "usd":
        return f"{value:.3g}"
    if claim.kind in ("share", "seconds"):
        return f"{round(value, 2) + 0.0:.2f}"  # no minus before a zero
    return f"{value:,.0f}" if abs(value) >= 100 or float(value).is_integer() else f"{value:.1f}"
