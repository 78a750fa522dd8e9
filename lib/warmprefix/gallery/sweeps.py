"""The figures of the sweeps over evictions, a shared pool, and compaction."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure as Canvas

from warmprefix import calibrate, claims
from warmprefix.claims import EVICTED
from warmprefix.clock import IDLE, PRESSURE
from warmprefix.figures import Drawing, Style, from_zero, label_ends, name_axes
from warmprefix.studies import STABLE

SEEDS = [calibrate.SEED]


def points_figure(table: pd.DataFrame) -> Drawing:
    """`40-eviction-points`: all input and uncached input by the mention evicted before, from `studies.evictions`."""
    single = table[(table["second"] == 0) & (table["first"] > 0)]
    kept = table[table["first"] == 0].set_index("strategy")
    data = pd.DataFrame({"mention": single["first"].unique()})
    for name in STABLE:
        of = single[single["strategy"] == name]
        data[f"{name} total"], data[f"{name} uncached"] = of["total"].to_numpy(), of["uncached"].to_numpy()
    data["published"] = [""] * len(data)
    data.loc[data["mention"] == EVICTED, "published"] = "mention 15"
    least = {name: int(data.loc[data[f"{name} total"].idxmin(), "mention"]) for name in STABLE}
    worst = single.set_index("strategy")["uncached"] - kept["uncached"]
    at = data[data["mention"] == EVICTED].iloc[0]
    return Drawing(
        "40-eviction-points",
        _draw_points,
        data=data,
        alt="Two panels by the mention evicted before. All input falls to its least near mention "
        f"{least['watermark']}; uncached input rises by a snapshot and a prefix wherever the eviction comes.",
        caption=f"One eviction, before each mention in turn. Left: the history restarts, so all input falls, most "
        f"before mention {least['window']} (window) and {least['watermark']} (watermark); before the published mention "
        f"{EVICTED} it is {at['window total']:,} and {at['watermark total']:,} tokens (published: "
        f"{claims.claim('evict15.window').published:,} and {claims.claim('evict15.watermark').published:,}). "
        f"Right: what no cache holds rises by up to {worst.max():,} tokens, the prefix and the rows of the cold turn.",
        parameters={"evicted": len(data)},
        seeds=SEEDS,
        height=340,
    )


def _draw_points(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    for axes, what in zip(canvas.subplots(1, 2), ("total", "uncached"), strict=True):
        for name in STABLE:
            axes.plot(data["mention"], data[f"{name} {what}"], **look.line(name) | {"markevery": 4})
        axes.axvline(EVICTED, color=look.colour("published"), linewidth=0.8)
        axes.set_xlim(1, len(data))
        with_room(axes)
        name_axes(
            axes,
            ("evicted before mention", "count"),
            ("all input" if what == "total" else "uncached input", "tokens over the run"),
        )
        if what == "total":
            for name in STABLE:
                value = claims.claim(f"evict15.{name}").published
                axes.plot([EVICTED], [value], "X", color=look.colour("published"), markersize=7, zorder=5)
            axes.annotate(
                "published, mention 15",
                (EVICTED, claims.claim("evict15.watermark").published),
                xytext=(0, -14),
                textcoords="offset points",
                ha="center",
                va="top",
                color=look.colour("published"),
                backgroundcolor=look.ground,
            )
        label_ends(axes, {name: float(data[f"{name} {what}"].iloc[-1]) for name in STABLE}, look)


def pairs_figure(table: pd.DataFrame) -> Drawing:
    """`40-eviction-pairs`: all input of every pair of evictions as a share of the kept session's."""
    kept = table[table["first"] == 0].set_index("strategy")["total"]
    pairs = table[table["second"] > 0]
    data = pairs[["strategy", "first", "second"]].assign(share=pairs["total"] / pairs["strategy"].map(kept))
    best = {name: data.loc[data[data["strategy"] == name]["share"].idxmin()] for name in STABLE}
    said = " and ".join(
        f"{best[name]['first']} and {best[name]['second']} ({best[name]['share']:.0%}, {name})" for name in STABLE
    )
    return Drawing(
        "40-eviction-pairs",
        _draw_pairs,
        data=data,
        alt="A square of every pair of evictions: the watermark above the diagonal, the window below, deepest in "
        "colour where the run is cut into thirds.",
        caption=f"Two evictions, all {len(data) // 2} pairs: the run's whole input as a share of the kept session's, "
        "watermark above the diagonal, window below. It is least when the run is cut into thirds: before mentions "
        f"{said}.",
        parameters={},
        seeds=SEEDS,
        height=460,
    )


def _draw_pairs(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    axes = canvas.subplots()
    last = int(data["second"].max())
    square = np.full((last, last), np.nan)
    for name, first, second, share in data.itertuples(index=False):
        x, y = (first, second) if name == "watermark" else (second, first)
        square[y - 1, x - 1] = share
    ramp = LinearSegmentedColormap.from_list("ramp", [look.colour("watermark"), look.ground])
    image = axes.imshow(square, origin="lower", extent=(0.5, last + 0.5, 0.5, last + 0.5), cmap=ramp, vmax=1.0)
    for name in STABLE:
        best = data.loc[data[data["strategy"] == name]["share"].idxmin()]
        x, y = (best["first"], best["second"]) if name == "watermark" else (best["second"], best["first"])
        axes.plot([x], [y], "X", color=look.ground, markersize=7)
        text = f"{name}: least, {best['share']:.0%}"
        axes.annotate(text, (x, y), xytext=(0, 9), textcoords="offset points", ha="center", color=look.ground)
    axes.grid(visible=False)
    axes.text(0.02, 0.97, "watermark", transform=axes.transAxes, va="top", color=look.ink)
    axes.text(0.98, 0.03, "window", transform=axes.transAxes, ha="right", color=look.ink)
    name_axes(axes, ("one eviction before mention", "count"), ("the other before mention", "count"))
    bar = canvas.colorbar(image, ax=axes, shrink=0.8)
    bar.set_label("all input (share of the kept session's)")
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")


PARTS = {"prefix": "prefix", "turn": "watermark", "snapshot": "snapshot", "resent": "duplicated"}
PART_NAMES = {
    "prefix": "prefix",
    "turn": "payload, brief, header",
    "snapshot": "rows that nobody had been shown",
    "resent": "rows sent again",
}


def cold_figure(data: pd.DataFrame) -> Drawing:
    """`40-cold-turn`: what the cold turn at each mention sends, from `studies.cold_turns`."""
    cold = data[list(PARTS)].sum(axis=1)
    later = data["mention"] > 1
    extra = (cold - data["warm"])[later]
    at = data[data["mention"] == EVICTED].iloc[0]
    return Drawing(
        "40-cold-turn",
        _draw_cold,
        data=data,
        alt=f"Stacked bars of the cold turn at each of {len(data)} mentions, mostly prefix; the warm turn as a line.",
        caption=f"What a cold turn sends at each mention, the watermark's snapshot of twelve rows. It costs "
        f"{extra.min():,} to {extra.max():,} uncached tokens more than the same turn kept warm (line; it includes the "
        f"reply before it), {data['prefix'].iloc[0]:,} of them prefix. Rows sent again are "
        f"{data['resent'][later].min()} to {data['resent'].max()} tokens, {at['resent']} before the published mention "
        f"{EVICTED}.",
        parameters={"strategy": "watermark"},
        seeds=SEEDS,
        height=360,
    )


def _draw_cold(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    axes = canvas.subplots()
    below = np.zeros(len(data))
    for part, name in PARTS.items():
        hatch = "////" if part == "resent" else None
        fill = look.fill(name) | {"label": PART_NAMES[part], "hatch": hatch}
        axes.bar(data["mention"], data[part], bottom=below, width=0.85, **fill)
        below += data[part].to_numpy()
    later = data["mention"] > 1
    axes.plot(data["mention"][later], data["warm"][later], color=look.ink, marker=".", label="the turn kept warm")
    axes.axvline(EVICTED, color=look.colour("published"), linewidth=0.8, linestyle=":", zorder=0)
    axes.annotate(
        "published: 15",
        (EVICTED, float(below.max()) * 1.02),
        ha="center",
        va="bottom",
        color=look.colour("published"),
    )
    axes.set_xlim(0.3, len(data) + 0.7)
    with_room(axes)
    name_axes(axes, ("evicted before mention", "count"), ("sent by the cold turn", "tokens"))
    canvas.legend(loc="outside lower center", ncols=3)


_ADDED = ["turns", f"cold_{IDLE}", f"cold_{PRESSURE}", "uncached", "kept_uncached"]


def pool_figure(table: pd.DataFrame, idle: float) -> Drawing:
    """`40-shared-pool`: why turns are cold, and what that costs, by the number of channels on a pool of four."""
    chosen = table[table["idle"] == idle]
    summed = chosen.groupby(["channels", "strategy"])[_ADDED].sum()
    data = pd.DataFrame({"channels": sorted(chosen["channels"].unique())})
    one = summed.xs(STABLE[0], level="strategy")
    for why in (IDLE, PRESSURE):
        data[why] = (one[f"cold_{why}"] / one["turns"]).to_numpy()
    for name in STABLE:
        of = summed.xs(name, level="strategy")
        data[name] = (of["uncached"] / of["turns"]).to_numpy()
        data[f"{name} kept"] = (of["kept_uncached"] / of["turns"]).to_numpy()
    last = data.iloc[-1]
    return Drawing(
        "40-shared-pool",
        _draw_pool,
        data=data,
        alt="Stacked bars of the share of cold turns by cause, which grows with the channels, and lines of the "
        "uncached input a turn.",
        caption=f"Channels that share a pool of four processes, each ended after {idle / 60:,.0f} min idle. "
        f"{_first_pressure(data)}; with {last['channels']:.0f}, pressure makes {last[PRESSURE]:.0%} of all "
        f"turns cold and idleness {last[IDLE]:.0%}, and a turn costs {last['watermark']:,.0f} uncached tokens with the "
        f"watermark instead of {last['watermark kept']:,.0f} with a process for every channel. First turns not counted "
        "on the left.",
        parameters={"idle": idle, "seeds": int(chosen["seed"].nunique())},
        seeds=sorted(int(seed) for seed in chosen["seed"].unique()),
        height=340,
    )


def _first_pressure(data: pd.DataFrame) -> str:
    pressed = data.loc[data[PRESSURE] > 0, "channels"]
    return f"Pressure begins at {pressed.iloc[0]} channels" if len(pressed) else "There is no pressure"


def _draw_pool(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    left, right = canvas.subplots(1, 2)
    places = range(len(data))
    left.bar(places, data[IDLE], **look.fill(IDLE) | {"label": "idle too long"})
    pressure = look.fill(PRESSURE) | {"label": "ended for another channel", "hatch": "////"}
    left.bar(places, data[PRESSURE], bottom=data[IDLE], **pressure)
    left.set_xticks(places, [str(count) for count in data["channels"]])
    left.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    left.set_ylim(top=1.3 * float((data[IDLE] + data[PRESSURE]).max() or 1))
    left.legend(loc="upper left")
    name_axes(left, ("sharing the pool", "channels"), ("cold", "share of turns"))
    for name in STABLE:
        right.plot(places, data[name], **look.line(name))
        right.plot(places, data[f"{name} kept"], **look.line(name) | {"alpha": 0.45, "marker": None})
    right.set_xticks(places, [str(count) for count in data["channels"]])
    with_room(right)
    name_axes(right, ("sharing the pool", "channels"), ("uncached input", "tokens a turn"))
    label_ends(right, {name: float(data[name].iloc[-1]) for name in STABLE}, look)
    label_ends(
        right,
        {name: float(data[f"{name} kept"].iloc[-1]) for name in STABLE},
        look,
        {name: f"{name}, kept" for name in STABLE},
    )


def compaction_figure(runs: dict[str, pd.DataFrame], costs: pd.DataFrame, context_limit: int) -> Drawing:
    """`40-compaction`: requests under one context limit, and what compaction costs by the limit."""
    mentions = {name: run[run["kind"] == "mention"].set_index("turn")["total"] for name, run in runs.items()}
    sizes = pd.DataFrame(mentions).rename_axis("mention").reset_index()
    sizes.insert(0, "panel", "request")
    by_limit = costs.pivot(index="context_limit", columns="strategy", values="uncached")[list(STABLE)]
    by_limit = by_limit.div(len(sizes)).rename_axis("mention").reset_index()
    by_limit.insert(0, "panel", "uncached")
    data = pd.concat([sizes, by_limit], ignore_index=True).rename(columns={"mention": "x"})
    first = costs[costs["context_limit"] == context_limit].set_index("strategy")["first"]
    low, high = by_limit.iloc[0], by_limit.iloc[-1]
    said = {name: "never" if np.isnan(first[name]) else f"at mention {first[name]:.0f}" for name in STABLE}
    return Drawing(
        "40-compaction",
        _draw_compaction,
        data=data,
        alt="Left, the size of each request rises to the context limit and falls back, the window's sooner. Right, the "
        "uncached input of a mention by context limit.",
        caption=f"Compaction over {len(sizes)} mentions. Left: at {context_limit:,} tokens a summary takes the place "
        f"of the history, with the window first {said['window']}, with the watermark {said['watermark']}. Right: each "
        f"compaction reads the summary anew and writes it; a mention costs {low['watermark']:,.0f} uncached tokens "
        f"under the smallest limit and {high['watermark']:,.0f} under the largest (watermark).",
        parameters={"context_limit": context_limit, "summary": int(costs["summary"].iloc[0])},
        seeds=[int(costs["seed"].iloc[0])],
        height=340,
    )


def _draw_compaction(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    left, right = canvas.subplots(1, 2)
    sizes, by_limit = data[data["panel"] == "request"], data[data["panel"] == "uncached"]
    for axes, part in ((left, sizes), (right, by_limit)):
        for name in STABLE:
            line = look.line(name) | ({"marker": None, "linewidth": 1.3} if axes is left else {})
            axes.plot(part["x"], part[name], **line)
        with_room(axes)
    left.set_xlim(1, len(sizes))
    name_axes(left, ("mention", "count"), ("request", "tokens"))
    right.set_xscale("log")
    right.set_xticks(by_limit["x"], [_thousands(limit) for limit in by_limit["x"]])
    right.set_xticks([], minor=True)
    name_axes(right, ("context limit", "tokens"), ("uncached input", "tokens a mention"))
    label_ends(left, {name: float(sizes[name].iloc[-1]) for name in STABLE}, look)
    label_ends(right, {name: float(by_limit[name].iloc[-1]) for name in STABLE}, look)


def with_room(axes: Axes) -> None:
    """Start the y axis at zero and leave some room above the highest value."""
    from_zero(axes)
    axes.set_ylim(top=1.07 * max(axes.dataLim.y1, 1e-9))


def _thousands(value: float) -> str:
    return f"{value / 1000:,.0f}k"
