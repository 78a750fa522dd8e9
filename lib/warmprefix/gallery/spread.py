"""The figures of the spread: over channels and laws, lengths, tokenizers, and against the closed form."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from warmprefix import spread
from warmprefix.figures import Drawing, Style, label_ends, name_axes
from warmprefix.gallery.simulation import IDS
from warmprefix.spread import PUBLISHED_LAW
from warmprefix.studies import STABLE

LAW_LOOKS = {PUBLISHED_LAW: "watermark", "meeting": "meeting", "forum": "forum", "community": "community"}


def spread_figure(placed: pd.DataFrame, channels: int) -> Drawing:
    """`97-spread`: the published figures in the distribution of each law's channels, from `spread.placed`."""
    data = placed[["law", "figure", "p10", "p50", "p90", "published"]].copy()
    laws = list(dict.fromkeys(data["law"]))
    inside = placed.groupby("law", sort=False)["inside"].sum()
    said = ", ".join(f"{inside[law]} under {_named(law)}" for law in laws)
    return Drawing(
        "97-spread",
        _draw_spread,
        data=data,
        alt=f"Bands of {data['figure'].nunique()} figures as multiples of the published ones, one for each of "
        f"{len(laws)} laws of bursts.",
        caption=f"Each published figure and what {channels} channels a law give for it, as multiples: median and "
        f"10-90 %. Of {data['figure'].nunique()} figures the band holds {said}. "
        f"{IDS}; unshown: rows that no turn shows.",
        parameters={"channels": channels, "laws": laws},
        seeds=list(range(channels)),
        height=150 + 34 * data["figure"].nunique() + 20 * len(laws),
    )


def _named(law: str) -> str:
    return "the published law" if law == PUBLISHED_LAW else f"the law of a {law}"


def _draw_spread(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    axes = canvas.subplots()
    figures, laws = list(dict.fromkeys(data["figure"])), list(dict.fromkeys(data["law"]))
    for number, law in enumerate(laws):
        of = data[data["law"] == law]
        heights = [figures.index(name) + (number - (len(laws) - 1) / 2) * 0.8 / len(laws) for name in of["figure"]]
        low, middle, high = (of[name] / of["published"] for name in ("p10", "p50", "p90"))
        _ranges(axes, heights, low, middle, high, look, LAW_LOOKS[law], law)
    axes.axvline(1.0, color=look.ink, linewidth=0.8)
    axes.set_yticks(range(len(figures)), figures)
    axes.set_ylim(len(figures) - 0.4, -0.6)
    axes.grid(visible=True, axis="x")
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("channels' value (multiple of the published one)")
    canvas.legend(loc="outside lower center", ncols=len(laws), title="law of the channel's bursts")


def _ranges(
    axes: Axes,
    heights: list[float],
    low: "pd.Series[float]",
    middle: "pd.Series[float]",
    high: "pd.Series[float]",
    look: Style,
    name: str,
    label: str,
) -> None:
    axes.hlines(heights, low, high, color=look.colour(name), linewidth=2.5)
    axes.plot(middle, heights, **look.line(name) | {"linestyle": "none", "markersize": 5, "label": label})


def sensitivity_figure(table: pd.DataFrame) -> Drawing:
    """`97-sensitivity`: window over watermark as replies, rows or the brief grow, from a sweep of `spread.scaled`."""
    data = spread.bands(table, ["what", "factor"], ["ratio", "share"])
    middle = data.set_index(["what", "factor"])["ratio p50"]
    reach = {what: (middle[what].min(), middle[what].max()) for what in data["what"].unique()}
    widest = max(reach, key=lambda what: reach[what][1] - reach[what][0])
    said = "; ".join(
        f"{LENGTHS[str(what)]} {of.iloc[0]:.2f} to {of.iloc[-1]:.2f}"
        for what, of in middle.sort_index().groupby(level="what", sort=False)
    )
    shares = data["share p50"]
    return Drawing(
        "97-sensitivity",
        _draw_sensitivity,
        data=data,
        alt=f"A panel a length, the ratio of window to watermark from the least to the greatest multiple: {said}.",
        caption="How much more the window sends in all, as one length is varied and the others stay; median and "
        f"10-90 % over {table['seed'].nunique()} channels. It depends most on the {widest}: {reach[widest][0]:.2f} to "
        f"{reach[widest][1]:.2f}. The watermark's cached share stays between {shares.min():.3f} and "
        f"{shares.max():.3f}.",
        parameters={},
        seeds=sorted(int(seed) for seed in table["seed"].unique()),
        height=310,
    )


LENGTHS = {"reply": "replies", "row": "rows", "brief": "the brief"}


def _draw_sensitivity(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    whats = list(dict.fromkeys(data["what"]))
    low, high = min(1.0, float(data["ratio p10"].min())), float(data["ratio p90"].max())
    for axes, what in zip(canvas.subplots(1, len(whats), sharey=True, squeeze=False)[0], whats, strict=True):
        of = data[data["what"] == what]
        _band(axes, of["factor"], of["ratio p10"], of["ratio p90"], look, "watermark")
        axes.plot(of["factor"], of["ratio p50"], **look.line("watermark"))
        axes.axhline(1.0, color=look.ink, linewidth=0.8)
        axes.set_xscale("log", base=2)
        axes.set_xticks(of["factor"], [f"{factor:g}" for factor in of["factor"]])
        axes.set_ylim(low - 0.02, high + 0.02)
        axes.set_xlabel(f"length of {LENGTHS[what]} (multiple)")
        if what == whats[0]:
            axes.set_ylabel("all input (window : watermark)")


def _band(
    axes: Axes,
    x: "pd.Series[float]",
    low: "pd.Series[float]",
    high: "pd.Series[float]",
    look: Style,
    name: str,
) -> None:
    axes.fill_between(x, low, high, color=look.colour(name), alpha=0.22, linewidth=0)


def tokenizer_figure(table: pd.DataFrame) -> Drawing:
    """`97-tokenizers`: the ratios under other tokenizers, from a sweep of `spread.tokenized`."""
    ratios = [name for name in table if name not in ("encoding", "law", "seed", "total")]
    data = spread.bands(table, ["encoding"], ratios)
    first = data.iloc[0]
    off = max(abs(data[f"{name} p50"] / first[f"{name} p50"] - 1).max() for name in ratios)
    totals = table.groupby("encoding", sort=False)["total"].median()
    return Drawing(
        "97-tokenizers",
        _draw_tokenizers,
        data=data,
        alt=f"Four ratios under {len(data)} tokenizers; within each panel they nearly coincide.",
        caption=f"The results under {len(data)} tokenizers; median and 10-90 % over {table['seed'].nunique()} "
        f"channels. Absolute totals differ by up to {totals.max() / totals.min() - 1:.1%}, no median ratio by more "
        f"than {off:.1%} from {first['encoding']}'s.",
        parameters={"encodings": data["encoding"].tolist()},
        seeds=sorted(int(seed) for seed in table["seed"].unique()),
        height=330,
    )


def _draw_tokenizers(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    ratios = [column.removesuffix(" p50") for column in data if column.endswith(" p50")]
    places = [float(place) for place in range(len(data))]
    for axes, name in zip(canvas.subplots(2, 2, sharey=True).flat, ratios, strict=True):
        low, middle, high = (data[f"{name} p{share}"] for share in (10, 50, 90))
        _ranges(axes, places, low, middle, high, look, "watermark", "median")
        room = max(0.02 * float(middle.max()), 0.6 * float(high.max() - low.min()))
        axes.set_xlim(float(low.min()) - room, float(high.max()) + room)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.set_yticks(places, data["encoding"])
        axes.set_ylim(len(data) - 0.5, -0.5)
        axes.grid(visible=True, axis="x")
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(f"{name} (ratio)")


def closed_form_figure(table: pd.DataFrame) -> Drawing:
    """`97-closed-form`: how far the simulation departs from prefix·n + growth·n(n+1)/2, from `spread.departure`."""
    turns = [name for name in table if name.startswith("turn_")]
    data = pd.DataFrame({"mention": range(1, len(turns) + 1)})
    for name in STABLE:
        of = table[table["strategy"] == name]
        for share in (10, 50, 90):
            data[f"{name} p{share}"] = of[turns].quantile(share / 100).to_numpy()
    early = data.loc[(data["watermark p50"].abs() > 0.02), "mention"]
    evicted = table.groupby("strategy")["evicted"].median()
    last = int(early.max()) if len(early) else 0
    return Drawing(
        "97-closed-form",
        _draw_closed_form,
        data=data,
        alt="The departure in percent by mention: up to a tenth at the first mentions, then near zero.",
        caption="Cumulative input against prefix·n + growth·n(n+1)/2, the prefix known and the growth fitted to "
        f"each channel; median and 10-90 % over {table['seed'].nunique()} channels. The watermark departs by more than "
        f"2 % up to mention {last}, where the first snapshot of twelve rows weighs. Cut at an eviction before mention "
        f"15 and nothing fitted again, the form is {evicted['window']:+.1%} (window) and {evicted['watermark']:+.1%} "
        "(watermark) off.",
        parameters={},
        seeds=sorted(int(seed) for seed in table["seed"].unique()),
        height=340,
    )


def _draw_closed_form(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    axes = canvas.subplots()
    for name in STABLE:
        _band(axes, data["mention"], data[f"{name} p10"], data[f"{name} p90"], look, name)
        axes.plot(data["mention"], data[f"{name} p50"], **look.line(name) | {"markevery": 4})
    axes.axhline(0.0, color=look.ink, linewidth=0.8)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:+.0%}" if value else "0")
    axes.set_xlim(1, len(data))
    name_axes(axes, ("mention", "count"), ("over the closed form", "% of input so far"))
    label_ends(axes, {name: float(data[f"{name} p50"].iloc[-1]) for name in STABLE}, look)


def ranks(placed: pd.DataFrame) -> pd.DataFrame:
    """Where the published figures stand: one row a figure, one column a law, the share of channels below."""
    table = placed.pivot(index="figure", columns="law", values="rank")
    return table.loc[list(dict.fromkeys(placed["figure"])), list(dict.fromkeys(placed["law"]))].astype(float)


def furthest(placed: pd.DataFrame, law: str) -> tuple[str, float]:
    """The figure whose median under that law is furthest from the published one, and the multiple."""
    of = placed[placed["law"] == law].set_index("figure")
    multiple = of["p50"] / of["published"]
    name = str(np.abs(np.log(multiple.clip(lower=1e-9))).idxmax())
    return name, float(multiple[name])
