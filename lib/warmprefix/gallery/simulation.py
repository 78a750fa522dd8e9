"""The figures of the simulation, notebooks 00 to 30: claims, channel, one mention, strategies, eviction, ablation."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from itertools import pairwise

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from warmprefix import calibrate, claims
from warmprefix.anatomy import LOOKS, anatomy
from warmprefix.calibrate import Sample
from warmprefix.delivery import Limits
from warmprefix.errors import InputError
from warmprefix.figures import Drawing, Style, from_zero, label_ends, name_axes
from warmprefix.ledger import ledger
from warmprefix.request import Blocks
from warmprefix.simulate import Step
from warmprefix.strategies import PUBLISHED, STRATEGIES
from warmprefix.watermark import FAITHFUL

SEEDS = [calibrate.SEED]
# The ids of claims stand at the figures' bars; whoever sees the picture alone has to know what they mean.
IDS = (
    "New: what no cache holds of a warm turn (excess: the window's over the watermark's); share: the cached share of "
    f"all input; total: all input; evict15: the same with an eviction before mention {claims.EVICTED}"
)


def runs(sample: Sample, blocks: Blocks) -> dict[str, pd.DataFrame]:
    """The published strategies' tables over a sample."""
    return {
        name: ledger(sample.channel, sample.mentions, STRATEGIES[name], blocks, sample.setting) for name in PUBLISHED
    }


def claims_figure(
    measured: Mapping[str, claims.Value],
    spread: list[dict[str, claims.Value]],
) -> Drawing:
    """`00-claims`: each predicted figure and its band, as a multiple of the published value."""
    rows, holds = [], claims.verdicts(measured, spread).set_index("id")["ok"]
    for claim in claims.claims():
        if claim.banded and claim.published not in (0, 1) and not claim.assumed:
            values = np.array([sample[claim.id] for sample in spread], float) / claim.published
            low, middle, high = np.percentile(values, [5, 50, 95])
            ours = measured[claim.id] / claim.published  # type: ignore[operator]
            rows.append({"claim": claim.id, "low": low, "median": middle, "high": high, "calibrated": ours})
    data = pd.DataFrame(rows)
    inside = int(((data["low"] <= 1) & (data["high"] >= 1)).sum())
    within = int(holds[data["claim"]].sum()) - inside
    widest = float((data["calibrated"] - 1).abs().max())
    return Drawing(
        "00-claims",
        _draw_claims,
        data=data,
        alt=f"Bands of {len(data)} predicted figures around the published value; {inside} contain it before rounding.",
        caption="The predicted figures that are neither 0 nor 1, as multiples of the published ones: 5-95 % band and "
        f"median over {len(spread)} channels that meet the same inputs, and the calibrated channel, which is at most "
        f"{widest:.0%} off. "
        f"{inside} of {len(data)} bands contain the published value as it stands, {within} more within its rounding. "
        f"{IDS}.",
        parameters={"channels": len(spread)},
        seeds=SEEDS,
        height=340,
    )


def _draw_claims(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    axes = canvas.subplots()
    for place, row in enumerate(data.itertuples()):
        axes.plot([row.low, row.high], [place, place], color=look.colour("band"), linewidth=6, solid_capstyle="butt")
        axes.plot([row.median], [place], "|", color=look.ink, markersize=12)
        axes.plot([row.calibrated], [place], "o", color=look.colour("measured"), markersize=6)
    axes.axvline(1.0, color=look.colour("window"), linestyle="--")
    axes.set_yticks(range(len(data)), data["claim"])
    axes.invert_yaxis()
    axes.grid(axis="x")
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("measured (multiple of the published value)")
    keys = [
        Line2D([], [], color=look.colour("window"), linestyle="--", label="published"),
        Line2D([], [], color=look.colour("measured"), marker="o", linestyle="", label="calibrated channel"),
        Line2D([], [], color=look.colour("band"), linewidth=6, label="5-95 % of the channels"),
        Line2D([], [], color=look.ink, marker="|", markersize=12, linestyle="", label="their median"),
    ]
    canvas.legend(handles=keys, loc="outside lower center", ncols=4)


def channel_figure(sample: Sample) -> Drawing:
    """`10-channel`: the length of every message in store order, mentions marked."""
    rows = sample.channel.messages
    mentions = set(sample.mentions)
    data = pd.DataFrame(
        {
            "position": range(len(rows)),
            "characters": [len(row.text) for row in rows],
            "mention": [position in mentions for position in range(len(rows))],
        }
    )
    gaps = [b - a - 1 for a, b in pairwise(sample.mentions)]
    long = int((data["characters"] > 600).sum())
    return Drawing(
        "10-channel",
        _draw_channel,
        data=data,
        alt=f"{len(rows)} messages as bars of their length on a log scale; {len(mentions)} mentions in bursts.",
        caption=f"The calibrated channel: {len(rows)} messages, {long} of them over 600 characters, {len(mentions)} "
        f"mentions with {min(gaps)} to {max(gaps)} messages between two. Generated; no real conversation.",
        parameters={},
        seeds=SEEDS,
        height=300,
    )


def _draw_channel(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    axes = canvas.subplots()
    mention = data["mention"].to_numpy(bool)
    axes.bar(data["position"][~mention], data["characters"][~mention], width=0.8, color=look.colour("other"))
    axes.bar(data["position"][mention], data["characters"][mention], width=1.2, color=look.colour("watermark"))
    axes.plot(
        data["position"][mention], np.full(mention.sum(), 4500.0), "v", color=look.colour("watermark"), markersize=4
    )
    axes.axhline(600, color=look.colour("window"), linestyle="--", linewidth=1)
    axes.text(len(data) + 1, 600, "cut at 600", color=look.colour("window"), va="center")
    axes.text(len(data) + 1, 4500.0, "mention", color=look.colour("watermark"), va="center")
    axes.set_yscale("log")
    axes.set_ylim(2, 7000)
    axes.set_xlim(-1, len(data))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    name_axes(axes, ("place in the channel", "messages"), ("length", "characters, log scale"))


def mention_figure(steps: list[Step], cold: int = 1, warm: int = 2, limits: Limits = Limits()) -> Drawing:
    """`20-one-mention`: what a cold and a warm turn are made of, of steps under these limits."""
    data = anatomy(steps, (cold, warm))
    sent = data[data["sent"]].groupby("turn", sort=False)["tokens"].sum()
    return Drawing(
        "20-one-mention",
        _draw_mention,
        data=data,
        alt=f"Two stacked bars: the cold turn sends {sent.iloc[0]:,} tokens, the warm turn {sent.iloc[1]:,}.",
        caption=f"What one mention sends. The cold process gets everything, {sent.iloc[0]:,} tokens; the warm one "
        f"{sent.iloc[1]:,}: no system prompt, no replay, no row twice. Hatched: in the request, but not sent "
        "again: the process holds it from the request before and its own reply.",
        parameters={"cold": cold, "warm": warm, "limits": asdict(limits)},
        seeds=SEEDS,
        height=290,
    )


def _draw_mention(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    axes = canvas.subplots()
    turns = list(dict.fromkeys(data["turn"]))
    sent = data[data["sent"]].set_index(["segment", "turn"])["tokens"]
    for place, turn in enumerate(turns):
        left = 0
        for part in data[data["turn"] == turn].itertuples():
            fill = look.fill(LOOKS[part.segment]) | {"label": None, "hatch": None if part.sent else "////"}
            axes.barh(place, part.tokens, left=left, height=0.6, alpha=1 if part.sent else 0.55, **fill)
            if part.tokens > 120:
                middle = left + part.tokens / 2
                axes.text(middle, place - 0.32, f"{part.tokens:,}", ha="center", va="bottom", color=look.ink)
            left += part.tokens
    keys = []
    for segment in [segment for segment in LOOKS if segment in set(data["segment"])]:
        counts = " / ".join(f"{sent.get((segment, turn), 0):,}" for turn in turns)
        keys.append(Patch(**look.fill(LOOKS[segment]) | {"label": f"{segment}: {counts}"}))
    axes.set_yticks(range(len(turns)), turns)
    axes.set_ylim(len(turns) - 0.5, -0.75)
    axes.grid(axis="x")
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("input of the request (tokens)")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    canvas.legend(handles=keys, loc="outside lower center", ncols=3, title="segment: tokens sent cold / warm")


def cumulative_figure(tables: Mapping[str, pd.DataFrame], limits: Limits = Limits(), cursor: str = FAITHFUL) -> Drawing:
    """`30-cumulative-input`: input tokens so far under these knobs, all of them and those that no cache held."""
    data = cumulative(tables)
    last = data.iloc[-1]
    return Drawing(
        "30-cumulative-input",
        draw_cumulative,
        data=data,
        alt="Cumulative input and cumulative uncached input by mention for "
        + ", ".join(
            f"{name} ({last[f'{name} input']:,.0f} and {last[f'{name} uncached']:,.0f} tokens)" for name in tables
        )
        + ".",
        caption=f"Input tokens after {len(data)} mentions. Left, all input: the window carries its repeats along and "
        f"ends at {last['window input']:,.0f}, the watermark at {last['watermark input']:,.0f}. Right, what the ideal "
        f"prefix does not hold: one volatile line in front raises {last['watermark uncached']:,.0f} to "
        f"{last['unstable uncached']:,.0f}.",
        parameters={"strategies": list(tables), "limits": asdict(limits), "cursor": cursor},
        seeds=SEEDS,
        height=340,
    )


def cumulative(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """By mention, each table's columns `NAME input` and `NAME uncached`: tokens so far."""
    data = pd.DataFrame({"mention": next(iter(tables.values()))["turn"]})
    for name, table in tables.items():
        data[f"{name} input"] = table["total"].cumsum()
        data[f"{name} uncached"] = table["new"].cumsum()
    return data


def draw_cumulative(canvas: Canvas, data: pd.DataFrame, look: Style, one_scale: bool = True) -> None:
    """Draw the table of `cumulative`: all input on the left, uncached input on the right, on one scale or on two."""
    panels = canvas.subplots(1, 2, sharey=one_scale)
    for axes, what in zip(panels, ("input", "uncached"), strict=True):
        ends = {}
        for column in [column for column in data if column.endswith(what)]:
            name = column.removesuffix(f" {what}")
            axes.plot(data["mention"], data[column], **look.line(name) | {"markevery": (4, 5)})
            ends[name] = float(data[column].iloc[-1])
        axes.set_xlim(0, len(data))
        from_zero(axes)
        name_axes(
            axes, ("mention", "count"), ("all input so far" if what == "input" else "uncached input so far", "tokens")
        )
        axes.tick_params(labelleft=True)
        label_ends(axes, ends, look)


def eviction_figure(
    sample: Sample, blocks: Blocks, evict_at: int, limits: Limits = Limits(), cursor: str = FAITHFUL
) -> Drawing:
    """`30-eviction`: the input of each turn with and without an eviction.

    Raises `InputError` where the sample has no such mention.
    """
    if not 1 <= evict_at <= len(sample.mentions):
        raise InputError("", f"evict_at={evict_at}", f"there are {len(sample.mentions)} mentions", "count from 1")
    data = pd.DataFrame({"mention": range(1, len(sample.mentions) + 1)})
    sums, resent = {}, 0
    for name in ("window", "watermark"):
        for label, evicted in (("", ()), (" evicted", (evict_at,))):
            strategy = replace(STRATEGIES[name], limits=limits, cursor=cursor)
            table = ledger(sample.channel, sample.mentions, strategy, blocks, sample.setting, evict_at=evicted)
            data[name + label] = table["total"]
            sums[name + label] = int(table["total"].sum())
            resent = int(table["resent_tokens"].sum())  # the watermark's, evicted, is the last
    return Drawing(
        "30-eviction",
        _draw_eviction,
        data=data,
        alt=f"Input per turn, rising to mention {evict_at}, where the evicted runs fall back and start again.",
        caption=f"Input of each turn when the process is evicted before mention {evict_at}: the history restarts, so "
        f"the totals fall from {sums['window']:,} to {sums['window evicted']:,} tokens (window) and from "
        f"{sums['watermark']:,} to {sums['watermark evicted']:,} (watermark). The new process gets a snapshot; "
        f"{resent} of its row tokens the old one had seen.",
        parameters={"evict_at": evict_at, "limits": asdict(limits), "cursor": cursor},
        seeds=SEEDS,
        height=340,
    )


def _draw_eviction(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    axes = canvas.subplots()
    for name in data.columns[1:]:
        base = name.removesuffix(" evicted")
        line = look.line(base)
        if name == base:
            line |= {"alpha": 0.45, "marker": None}
        axes.plot(data["mention"], data[name], **line | {"label": name, "markevery": 3})
    cold = int((data["watermark"] != data["watermark evicted"]).idxmax()) + 1
    axes.axvline(cold, color=look.ink, linewidth=0.8)
    axes.set_xlim(1, len(data))
    from_zero(axes)
    axes.text(cold - 0.3, axes.get_ylim()[1], "evicted before this mention", ha="right", va="top", color=look.ink)
    name_axes(axes, ("mention", "count"), ("input of the turn", "tokens"))
    ends = {name: float(data[name].iloc[-1]) for name in ("window", "watermark")}
    texts = {name: f"{name}, kept" for name in ends}
    label_ends(axes, ends, look, texts)
    label_ends(
        axes, {name: float(data[f"{name} evicted"].iloc[-1]) for name in ends}, look, {n: f"{n}, evicted" for n in ends}
    )


ABLATION = (
    "watermark",
    "window",
    "repeat-system",
    "replay-transcript",
    "status-tail",
    "status-tool",
    "unstable",
    "memoryless",
)


def ablation(
    sample: Sample,
    blocks: Blocks,
    limits: Limits = Limits(),
    cursor: str = FAITHFUL,
    context_limit: int = 200_000,
) -> pd.DataFrame:
    """The sums of every named strategy: what each omission saves, and what each place of a status line costs."""
    rows = []
    for name in ABLATION:
        strategy = replace(STRATEGIES[name], limits=limits, cursor=cursor)
        table = ledger(sample.channel, sample.mentions, strategy, blocks, sample.setting, context_limit=context_limit)
        total, cached = int(table["total"].sum()), int(table["cached"].sum())
        left = int(table["turns_left"].iloc[-1])
        rows.append(
            {"strategy": name, "total": total, "uncached": total - cached, "cached": cached, "turns_left": left}
        )
    return pd.DataFrame(rows)


def ablation_figure(
    data: pd.DataFrame, limits: Limits = Limits(), cursor: str = FAITHFUL, context_limit: int = 200_000
) -> Drawing:
    """`30-ablation`: what each omission of a warm turn is worth, from the table of `ablation` under these knobs."""
    worst = data.set_index("strategy")[["total", "uncached"]]
    worst = worst.div(worst.loc["watermark"])
    beyond = data[data["turns_left"] == 0]["strategy"].tolist()
    limit = f" ({', '.join(beyond)} passes the context limit on the way)" if beyond else ""
    return Drawing(
        "30-ablation",
        _draw_ablation,
        data=data,
        alt=f"Two panels of bars, uncached and all input, for {len(data)} ways of feeding the same channel.",
        caption="The price of each omission over the same mentions. Against the watermark, repeated rows multiply the "
        f"uncached input by {worst['uncached']['window']:.2f}, a repeated system prompt by "
        f"{worst['uncached']['repeat-system']:.2f}, a replayed transcript by "
        f"{worst['uncached']['replay-transcript']:.1f}{limit}. A status line in front adds "
        f"{worst['total']['unstable'] - 1:.1%} of input and leaves nothing cached: {worst['uncached']['unstable']:.1f} "
        f"times as much uncached. A process without memory sends the least in all, all of it uncached "
        f"({worst['uncached']['memoryless']:.1f} times as much), and knows nothing of its earlier turns.",
        parameters={"limits": asdict(limits), "cursor": cursor, "context_limit": context_limit},
        seeds=SEEDS,
        height=340,
    )


def _draw_ablation(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    left, right = canvas.subplots(1, 2, sharey=True)
    places = range(len(data))
    # One bar would dwarf the others: it leaves the panel, and its number says how far it goes.
    reach = 1.25 * data["total"].sort_values().iloc[-2]
    for axes, column, series, end in (
        (left, "uncached", "uncached", data["uncached"].max()),
        (right, "total", "cached", reach),
    ):
        axes.barh(places, data[column].clip(upper=1.3 * end), **look.fill(series) | {"label": None})
        for place, value in zip(places, data[column], strict=True):
            inside = value > 0.7 * end
            colour = look.ground if inside else look.ink
            where = min(value, end) - 0.02 * end if inside else value + 0.02 * end
            text = f"{value:,} →" if value > end else f"{value:,}"
            axes.text(where, place, text, va="center", ha="right" if inside else "left", color=colour)
        axes.set_xlim(0, end)
        axes.grid(visible=False)
        axes.xaxis.set_major_locator(MaxNLocator(3))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.set_xlabel(f"{'uncached' if column == 'uncached' else 'all'} input over all mentions (tokens)")
    left.set_yticks(places, data["strategy"])
    left.invert_yaxis()
