"""The figures about the harness: markers and lookback, trim thresholds, fan-outs, rate limits."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure as Canvas

from warmprefix.figures import Drawing, Style, from_zero, label_ends, name_axes
from warmprefix.gallery.tools import panel
from warmprefix.harness import markers as marking
from warmprefix.harness.lookback import CONSTANT, RAW, RUNS
from warmprefix.harness.subagents import FIRST, TOGETHER, UNCACHED
from warmprefix.harness.thresholds import STEADY, first_ahead

END_MARKERS = {(marking.SINGLE, RAW): "window", (marking.SINGLE, RUNS): "deferred", (marking.PAIR, RAW): "watermark"}
END_CALLED = {"window": f"single, {RAW}", "deferred": f"single, {RUNS}", "watermark": "pair, either way"}
MARKERS = {marking.NONE: "other", CONSTANT: "prefix", marking.SINGLE: "window", marking.PAIR: "watermark"}
WAYS = {TOGETHER: "window", UNCACHED: "other", FIRST: "watermark"}
LIFETIMES = {marking.SHORT: ("window", "5 minutes"), marking.LONG: ("watermark", "1 hour")}


def lookback_figure(data: pd.DataFrame) -> Drawing:
    """`80-lookback`: what is paid again after a turn of so many blocks, by end marker and rule, from `after_a_turn`."""
    lost = data[data["paid_again"] > 0]
    single = lost[lost["marker"] == marking.SINGLE]
    pair = int((lost["marker"] == marking.PAIR).sum())
    first = single.groupby(["shape", "rule"], sort=False)["blocks"].min()
    shapes = list(dict.fromkeys(data["shape"]))
    told = "; ".join(
        f"{shape} {first.get((shape, RAW), 'never')} ({RAW}), {first.get((shape, RUNS), 'never')} ({RUNS})"
        for shape in shapes
    )
    paid = int((data["before"] - data["head"]).max())
    most = int(data[(data["marker"] == marking.SINGLE) & (data["paid_again"] == 0)]["positions"].max())
    return Drawing(
        "80-lookback",
        _draw_lookback,
        data=data,
        alt=f"Tokens paid again after a turn, one panel a shape. A single end marker loses the history from so many "
        f"blocks on: {told}. The pair loses it in {pair} turns.",
        caption=f"What one turn makes of a history of {paid:,} tokens. A single end marker finds it while the turn "
        f"adds at most {most} positions; all is paid again from so many blocks on: {told}. The rolling pair loses it "
        f"in {pair} of {int((data['marker'] == marking.PAIR).sum())} turns under either rule.",
        parameters={},
        seeds=[],
        height=320,
    )


def _draw_lookback(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    panels = canvas.subplots(1, data["shape"].nunique(), sharey=True)
    for axes, (shape, rows) in zip(panels, data.groupby("shape", sort=False), strict=True):
        for (marker, rule), name in END_MARKERS.items():
            line = rows[(rows["marker"] == marker) & (rows["rule"] == rule)].sort_values("blocks")
            width = 3.5 if name == "deferred" else 1.8  # it may run beneath the pair's
            label = {"label": END_CALLED[name], "markevery": 6, "drawstyle": "steps-mid", "linewidth": width}
            axes.plot(line["blocks"], line["paid_again"], **look.line(name) | label)
        panel(axes, str(shape))
        axes.set_xlim(0, data["blocks"].max())
        from_zero(axes)
        name_axes(axes, ("one turn adds", "blocks"), ("history paid again", "tokens"))
    for axes in panels[1:]:
        axes.set_ylabel("")
    handles, labels = panels[0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=3, title="end marker, and how blocks are counted")


def markers_figure(data: pd.DataFrame, provider: str) -> Drawing:
    """`80-markers`: the bill of runs with no, some and all markers, from `marker_costs`."""
    usd = data.pivot(index="run", columns="markers", values="usd").loc[list(dict.fromkeys(data["run"]))]
    told = "; ".join(
        f"{run}: {row[marking.NONE]:.2f} without, {row[CONSTANT]:.2f} with {CONSTANT}, {row[marking.SINGLE]:.2f} with "
        f"a single end marker, {row[marking.PAIR]:.2f} with the pair"
        for run, row in usd.iterrows()
    )
    return Drawing(
        "80-markers",
        _draw_markers,
        data=data,
        alt=f"Bars of the input cost in USD by markers set. {told}.",
        caption=f"Input cost of a run in USD under {provider} by the markers it sets. {told}.",
        parameters={"provider": provider},
        seeds=[],
        height=320,
    )


def _draw_markers(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    runs = list(dict.fromkeys(data["run"]))
    panels = canvas.subplots(1, len(runs), sharey=True, squeeze=False)[0]
    names = {marking.NONE: "none", CONSTANT: "tools, system", marking.SINGLE: "+ single end", marking.PAIR: "+ pair"}
    for axes, run in zip(panels, runs, strict=True):
        rows = data[data["run"] == run]
        for place, row in enumerate(rows.itertuples()):
            axes.barh(place, row.usd, height=0.6, **look.fill(MARKERS[row.markers]))
            axes.text(row.usd, place, f" ${row.usd:.2f}, {row.share:.0%} read", va="center", color=look.ink)
        axes.set_yticks(range(len(rows)), [names[marker] for marker in rows["markers"]])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlim(0, data["usd"].max() * 1.55)
        axes.grid(axis="x")
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("input of the run (USD)")
        panel(axes, run)


def pauses_figure(data: pd.DataFrame, provider: str) -> Drawing:
    """`80-pauses`: what is read after a pause by the lifetime of the head's markers, from `after_a_pause`."""
    wide = data.pivot(index="pause", columns="constant", values="read")
    saved = wide[wide[marking.LONG] > wide[marking.SHORT]]
    told = (
        f"between {saved.index.min() / 60:.0f} and {saved.index.max() / 60:.0f} minutes of silence the hour keeps "
        f"{int(saved[marking.LONG].max()):,} tokens that five minutes lose"
        if len(saved)
        else "no pause tells the lifetimes apart"
    )
    return Drawing(
        "80-pauses",
        _draw_pauses,
        data=data,
        alt=f"Tokens read by the length of a pause, stepping down at each lifetime: {told}.",
        caption=f"What a request reads after a pause under {provider}, by the lifetime of the markers on tools and "
        f"system prompt (the end of the conversation has five minutes): {told}.",
        parameters={"provider": provider},
        seeds=[],
        height=290,
    )


def _draw_pauses(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    axes = canvas.subplots()
    for constant, (name, called) in LIFETIMES.items():
        rows = data[data["constant"] == constant]
        axes.plot(
            rows["pause"] / 60, rows["read"], **look.line(name) | {"drawstyle": "steps-pre", "label": f"head: {called}"}
        )
    axes.set_xscale("log")
    ticks = [1, 2, 5, 10, 20, 60, 120]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    from_zero(axes)
    name_axes(axes, ("pause before the request", "minutes, log scale"), ("read from the cache", "tokens"))
    axes.legend(loc="upper right")


def threshold_figure(table: pd.DataFrame, provider: str) -> Drawing:
    """`85-threshold`: money and tokens of one run by the trim threshold, from `by_threshold`."""
    by = table.set_index("threshold")
    best = by.loc[by["usd"].astype(float).idxmin()]
    steady, never = by.loc[STEADY], by.loc[None]
    return Drawing(
        "85-threshold",
        _draw_threshold,
        data=table.assign(threshold=[threshold_name(value) for value in table["threshold"]]),
        alt=f"Cost by threshold: {steady['usd']:.2f} USD cutting at every turn, {best['usd']:.2f} at "
        f"{threshold_name(best.name)}, {never['usd']:.2f} never cutting. Beside it input and fresh tokens.",
        caption=f"One run under {provider} by how many tokens must come back before old tool output is cut. Steady "
        f"small cuts ({steady['cuts']:.0f}) cost ${steady['usd']:.2f}; the cheapest threshold, "
        f"{threshold_name(best.name)} ({best['cuts']:.0f} cuts), ${best['usd']:.2f}; never ${never['usd']:.2f}. In "
        f"tokens, steady against cheapest: {steady['input']:,.0f} against {best['input']:,.0f} sent, "
        f"{steady['fresh']:,.0f} against {best['fresh']:,.0f} of them fresh.",
        parameters={"provider": provider},
        seeds=[],
        height=320,
    )


def threshold_name(value: int | None) -> str:
    """What a threshold is called in a figure: its tokens, every turn or never."""
    if value is None:
        return "never"
    return "every turn" if value == STEADY else f"{value:,}"


def _draw_threshold(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    left, right = canvas.subplots(1, 2)
    places = range(len(data))
    left.plot(places, data["usd"], **look.line("watermark"))
    steep, bills = 0.08 * data["usd"].max(), data["usd"].to_numpy()
    for place, row in zip(places, data.itertuples(), strict=True):
        # Below its point; beside it, on the upper side, where a steep line would run through it.
        rises = place > 0 and bills[place] - bills[place - 1] > steep
        falls = place + 1 < len(bills) and bills[place] - bills[place + 1] > steep
        side = int(falls) - int(rises)
        left.annotate(
            f"{row.cuts} cuts" if row.cuts != 1 else "1 cut",
            (place, row.usd),
            xytext=(5 * side, 5 if side else -13),
            textcoords="offset points",
            ha={1: "left", 0: "center", -1: "right"}[side],
            color=look.ink,
            fontsize=8,
        )
    right.plot(places, data["input"] / 1e6, **look.line("window"))
    right.plot(places, data["fresh"] / 1e6, **look.line("uncached"))
    for axes, what, unit in ((left, "input of the run", "USD"), (right, "input of the run", "million tokens")):
        axes.set_xticks(places, data["threshold"], rotation=35, ha="right", rotation_mode="anchor")
        from_zero(axes)
        name_axes(axes, ("cut when this comes back", "tokens"), (what, unit))
    left.set_xlim(-0.5, len(data) - 0.5)
    label_ends(
        right,
        {"window": float(data["input"].iloc[-1]) / 1e6, "uncached": float(data["fresh"].iloc[-1]) / 1e6},
        look,
        {"window": "all", "uncached": "fresh"},
    )


def trim_pays_figure(runs: Mapping[int | None, pd.DataFrame], rare: int, provider: str) -> Drawing:
    """`85-when-it-pays`: what cutting has saved so far against never cutting, by request, from `by_threshold`."""
    never = runs[None]["usd"].cumsum()
    data = pd.DataFrame(
        {
            "request": range(1, len(never) + 1),
            "steady": (never - runs[STEADY]["usd"].cumsum()),
            "rare": (never - runs[rare]["usd"].cumsum()),
        }
    )
    told = {name: first_ahead(runs[key], runs[None]) for name, key in (("steady", STEADY), ("rare", rare))}
    since = {name: "never in this run" if at is None else f"from request {at} on" for name, at in told.items()}
    worst = data[["steady", "rare"]].min()
    return Drawing(
        "85-when-it-pays",
        _draw_trim_pays,
        data=data,
        alt=f"Money saved so far by request: the steady cut is ahead {since['steady']}, the rare one {since['rare']}.",
        caption=f"Saved against never cutting, under {provider}; below zero it loses. The steady cut is ahead for good "
        f"{since['steady']}, ${-min(worst['steady'], 0.0):.3f} behind at worst; cutting from {rare:,} tokens on "
        f"{since['rare']}, ${-min(worst['rare'], 0.0):.3f} behind at worst. A run that ends while "
        "it is behind has lost.",
        parameters={"rare": rare, "provider": provider},
        seeds=[],
        height=300,
    )


def _draw_trim_pays(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    axes = canvas.subplots()
    names = {"steady": "window", "rare": "watermark"}
    for column, name in names.items():
        axes.plot(data["request"], data[column], **look.line(name) | {"markevery": 6})
    axes.axhline(0, color=look.ink, linewidth=0.8)
    axes.set_xlim(1, len(data))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.10g}")
    name_axes(axes, ("request", "count"), ("saved so far against never cutting", "USD"))
    ends = {name: float(data[column].iloc[-1]) for column, name in names.items()}
    label_ends(axes, ends, look, {"window": "every turn", "watermark": "rare and deep"})


def fan_out_figure(sizes: pd.DataFrame, prefixes: pd.DataFrame) -> Drawing:
    """`90-fan-out`: the cost of a fan-out by its size and by its prefix, from two tables of `by_size`."""
    data = pd.concat([sizes.assign(panel="children"), prefixes.assign(panel="prefix")], ignore_index=True)
    most = sizes[sizes["children"] == sizes["children"].max()].set_index("way")
    largest = int(most["children"].iloc[0])
    later = most.loc[FIRST, "ended"] - most.loc[TOGETHER, "ended"]
    usd = most["usd"]
    return Drawing(
        "90-fan-out",
        _draw_fan_out,
        data=data,
        alt=f"Cost by children and by prefix, a line a way. With {largest} children: {usd[TOGETHER]:.2f} USD all at "
        f"once, {usd[UNCACHED]:.2f} without a cache, {usd[FIRST]:.3f} first child first.",
        caption=f"Input cost of a fan-out. {largest} children on {most['prefix'].iloc[0]:,} tokens cost "
        f"${usd[TOGETHER]:.2f} when all are sent at once, since each writes the prefix, ${usd[UNCACHED]:.2f} without a "
        f"cache, and ${usd[FIRST]:.3f} when the first child goes first; its siblings end {later:g} s later.",
        parameters={},
        seeds=[],
        height=320,
    )


def _draw_fan_out(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    panels = canvas.subplots(1, 2)
    for axes, column, unit in zip(panels, ("children", "prefix"), ("count", "thousand tokens"), strict=True):
        ends = {}
        for way, rows in data[data["panel"] == column].groupby("way", sort=False):
            scale = 1_000 if column == "prefix" else 1
            axes.plot(rows[column] / scale, rows["usd"], **look.line(WAYS[str(way)]) | {"markevery": 2})
            ends[WAYS[str(way)]] = float(rows["usd"].iloc[-1])
        axes.set_xlim(left=0)
        axes.margins(x=0)
        from_zero(axes)
        name_axes(axes, ("shared prefix" if column == "prefix" else "children", unit), ("input", "USD"))
        label_ends(axes, ends, look, {look_of: way for way, look_of in WAYS.items()})


def bound_figure(tables: Mapping[str, pd.DataFrame], seed: int) -> Drawing:
    """`90-bound`: cost and delay by the bound on the wait, a table of `by_bound` for each kind of first child."""
    data = pd.concat([table.assign(kind=kind) for kind, table in tables.items()], ignore_index=True)
    last = data.groupby("kind", sort=False).tail(1).set_index("kind")
    told = "; ".join(
        f"{kind}: a bound of {row['bound']:g} s brings {row['hits']:.0%} hits and an end {row['late']:.1f} s later on "
        "average"
        for kind, row in last.iterrows()
    )
    over = float((data["latest"] - data["bound"]).max())
    return Drawing(
        "90-bound",
        _draw_bound,
        data=data,
        alt=f"Cost against the mean delay, a point a bound, a line a kind of first token. {told}.",
        caption=f"Patience: each point is a bound on the wait for the first child. {told}. A child was sent "
        f"{max(over, 0.0):g} s after its bound at most.",
        parameters={},
        seeds=[seed],
        height=320,
    )


def _draw_bound(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    left, right = canvas.subplots(1, 2, sharey=True)
    names = dict(zip(dict.fromkeys(data["kind"]), ("watermark", "window", "deferred"), strict=False))
    ends = {}
    for kind, rows in data.groupby("kind", sort=False):
        name = names[kind]
        left.plot(rows["bound"], rows["usd"], **look.line(name))
        right.plot(rows["late"], rows["usd"], **look.line(name))
        ends[name] = float(rows["usd"].iloc[-1])
    left.set_xscale("symlog", linthresh=1)
    ticks = [0, 1, 2, 5, 10, 30, 60]
    left.set_xticks(ticks, [str(tick) for tick in ticks])
    left.minorticks_off()
    for axes, what in ((left, "bound on the wait"), (right, "end later than at once, mean")):
        from_zero(axes)
        name_axes(axes, (what, "seconds, log scale" if axes is left else "seconds"), ("input of the fan-out", "USD"))
    right.set_xlim(left=0)
    right.set_ylabel("")
    label_ends(right, ends, look, {name: kind for kind, name in names.items()})


def throughput_figure(data: pd.DataFrame) -> Drawing:
    """`90-throughput`: requests a minute under an input-token limit, with hits and without, from `throughput`."""
    last = data.iloc[-1]
    return Drawing(
        "90-throughput",
        _draw_throughput,
        data=data,
        alt=f"Requests a minute by prefix: {last['warm']:.0f} with hits and {last['cold']:.1f} without at "
        f"{last['prefix']:,.0f} tokens.",
        caption=f"Requests a minute that a limit of {last['limit']:,.0f} input tokens a minute lets through. Cached "
        f"reads do not count, the {last['own']:,.0f} tokens of each request's own do: with hits on a prefix of "
        f"{last['prefix']:,.0f} tokens it is {last['warm']:.0f}, without {last['cold']:.1f}.",
        parameters={},
        seeds=[],
        height=290,
    )


def _draw_throughput(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    axes = canvas.subplots()
    ends = {}
    for column in ("warm", "cold"):
        axes.plot(data["prefix"], data[column], **look.line(column))
        ends[column] = float(data[column].iloc[-1])
    axes.set_xlim(data["prefix"].min() * 0.5, data["prefix"].max() * 1.02)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    from_zero(axes)
    name_axes(axes, ("shared prefix", "tokens"), ("requests under the limit", "a minute"))
    label_ends(axes, ends, look, {"warm": "with hits", "cold": "without"})
