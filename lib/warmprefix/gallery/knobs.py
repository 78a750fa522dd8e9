"""The figures of the sweeps over limits, pages and status lines."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Canvas

from warmprefix.figures import Drawing, Style, label_ends, name_axes
from warmprefix.gallery.sweeps import SEEDS, with_room
from warmprefix.status import EACH_TURN, MEMBERS, RATES
from warmprefix.studies import break_even

PUBLISHED_LIMITS = (12.0, 600.0, 30.0)
ROWS = ("few rows", "some rows", "12 rows", "many rows", "all rows")  # the looks of row limits, ascending


def limits_figure(table: pd.DataFrame, samples: int = 1, strategy: str = "watermark") -> Drawing:
    """`45-limits`: all input against rows never shown and characters never delivered, from `studies.limits`."""
    data = table[["rows", "body", "fetch", "total", "unshown", "lost_chars", "front_rows", "front_chars"]].copy()
    data["published"] = [tuple(row) == PUBLISHED_LIMITS for row in data[["rows", "body", "fetch"]].to_numpy()]
    ours = data[data["published"]].iloc[0]
    alike = data[data["lost_chars"] <= ours["lost_chars"]]["total"].min()
    every_row = data[(data["unshown"] == 0) & (data["body"] == ours["body"])]["total"].min()
    whole = data[data["lost_chars"] == 0]["total"].min()
    return Drawing(
        "45-limits",
        _draw_limits,
        data=data,
        alt=f"Two clouds of {len(data)} settings with their lower left edges: tokens against rows never shown, and "
        "against characters never delivered; the published setting is marked.",
        caption=f"{len(data)} settings of row limit, body limit and rows fetched ({strategy}, {samples} "
        f"channel{'s' if samples > 1 else ''}), with the front of each panel. The published 12 / 600 / 30 takes "
        f"{ours['total']:,} tokens; losing no more characters takes at least {alike:,}. To show every row as well "
        f"costs {every_row / ours['total'] - 1:+.1%}, to deliver every character {whole / ours['total'] - 1:+.1%}.",
        parameters={"strategy": strategy, "samples": samples},
        seeds=SEEDS if samples == 1 else list(range(samples)),
        height=360,
    )


def _draw_limits(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    ours = data[data["published"]].iloc[0]
    panels = (("unshown", "never shown", "rows"), ("lost_chars", "never delivered", "characters"))
    for axes, (what, name, unit) in zip(canvas.subplots(1, 2), panels, strict=True):
        axes.plot(data["total"], data[what], "o", color=look.colour("other"), alpha=0.35, markersize=3)
        edge = data[data[f"front_{'rows' if what == 'unshown' else 'chars'}"]].sort_values("total")
        axes.step(edge["total"], edge[what], where="post", **look.line("watermark") | {"linestyle": "solid"})
        axes.plot([ours["total"]], [ours[what]], "X", color=look.colour("window"), markersize=9, zorder=5)
        axes.annotate(
            "published\n12 / 600 / 30",
            (ours["total"], ours[what]),
            xytext=(10, 10),
            textcoords="offset points",
            color=look.colour("window"),
            bbox={"facecolor": look.ground, "edgecolor": "none", "alpha": 0.8, "pad": 1},
        )
        middle = edge.iloc[len(edge) // 3]
        axes.annotate(
            "front",
            (middle["total"], middle[what]),
            xytext=(-8, -8),
            textcoords="offset points",
            ha="right",
            va="top",
            color=look.colour("watermark"),
        )
        with_room(axes)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:,.0f}k")
        name_axes(axes, ("all input", "tokens over the run"), (name, unit))


def paging_figure(table: pd.DataFrame, page: int, samples: int = 1, strategy: str = "watermark") -> Drawing:
    """`45-paging`: what it costs to read back what a block left out, from `studies.paging`."""
    table = table.assign(name=["no limit" if np.isnan(rows) else f"{rows:.0f} rows" for rows in table["rows"]])
    names = list(dict.fromkeys(table["name"]))
    data = pd.DataFrame({"rate": table["paging"].unique()})
    for name in names:
        of = table[table["name"] == name]
        for column, values in (("total", of["total"]), ("lost", of["lost_chars"])):
            data[f"{name} {column}"] = values.to_numpy()
    least, most = names[0], names[-1]
    crossing = data.loc[data[f"{least} total"] > data[f"{most} total"].iloc[0], "rate"]
    said = f"from a rate of {crossing.iloc[0]:g} on" if len(crossing) else "at no rate"
    return Drawing(
        "45-paging",
        _draw_paging,
        data=data,
        alt=f"All input rises with the rate at which the agent reads back, steepest with {least}.",
        caption=f"The agent asks channel_history (pages of {page} rows) for a share of what its blocks left out or "
        f"cut, over {samples} channel{'s' if samples > 1 else ''} ({strategy}); calls, results and the extra requests "
        f"are priced in. A limit of {least} costs more than {most} without reading back {said}; reading back all "
        f"takes {data[f'{least} total'].iloc[-1]:,} tokens with {least} and {data[f'{most} total'].iloc[-1]:,} with "
        f"{most}.",
        parameters={"page": page, "strategy": strategy, "samples": samples},
        seeds=SEEDS if samples == 1 else list(range(samples)),
        height=340,
    )


def _draw_paging(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    names = [column.removesuffix(" total") for column in data if column.endswith(" total")]
    looks = dict(zip(names, _row_looks(names), strict=True))
    panels = (("total", ("all input", "tokens over the run")), ("lost", ("never delivered", "characters")))
    for axes, (what, title) in zip(canvas.subplots(1, 2), panels, strict=True):
        for name in names:
            axes.plot(data["rate"], data[f"{name} {what}"], **look.line(looks[name]))
        axes.set_xlim(0, float(data["rate"].max()))
        with_room(axes)
        name_axes(axes, ("looked up", "share of what was missed"), title)
        if what == "total":
            ends = {looks[name]: float(data[f"{name} {what}"].iloc[-1]) for name in names}
            label_ends(axes, ends, look, {looks[name]: name for name in names})


def _row_looks(names: list[str]) -> list[str]:
    """A look for each row limit; the published twelve keep the watermark's hue."""
    spare = [name for name in ROWS if name != "12 rows"]
    return ["12 rows" if name == "12 rows" else spare.pop(0) for name in names]


CHANGES = (EACH_TURN, *RATES, MEMBERS)


def places_figure(table: pd.DataFrame) -> Drawing:
    """`50-status-places`: uncached input by the place of a line and how often it changes, from `studies.statuses`."""
    base = table[table["place"] == "none"].iloc[0]
    size = table.loc[table["place"] != "none", "size"].min()
    lines = table[table["size"] == size]
    data = lines[["place", "change", "size", "total", "uncached", "cache_share"]].reset_index(drop=True)
    data["none"] = base["uncached"]
    worst = data.loc[data["uncached"].idxmax()]
    behind = data[data["place"].isin(["turn start", "turn end", "tool"])]
    return Drawing(
        "50-status-places",
        _draw_places,
        data=data,
        alt="Dots on a log scale: in front of the conversation the uncached input grows with the rate of change, "
        "behind it every rate costs the same.",
        caption=f"A status line of {size} tokens, by place and by how often it changes; the line marks the run without "
        f"one, {base['uncached']:,} uncached tokens. In front, {worst['place']}, a change each turn leaves "
        f"{worst['cache_share']:.0%} cached and costs {worst['uncached'] / base['uncached']:.1f} times as much; in the "
        f"turn or behind a tool the rate makes no difference and the line adds at most "
        f"{behind['uncached'].max() / base['uncached'] - 1:.1%}.",
        parameters={"size": int(size)},
        seeds=SEEDS,
        height=440,
    )


def _draw_places(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    axes = canvas.subplots()
    places = list(dict.fromkeys(data["place"]))
    step = 0.8 / len(CHANGES)
    for number, change in enumerate(CHANGES):
        of = data[data["change"] == change]
        heights = [places.index(place) + (number - (len(CHANGES) - 1) / 2) * step for place in of["place"]]
        marks = look.line(change) | {"linestyle": "none", "markersize": 6}
        axes.plot(of["uncached"], heights, **marks)
    axes.axvline(data["none"].iloc[0], color=look.ink, linewidth=0.8)
    axes.annotate(
        "no line",
        (data["none"].iloc[0], -0.55),
        xytext=(-4, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        color=look.ink,
    )
    axes.set_xscale("log")
    axes.set_xlim(left=0.7 * data["none"].iloc[0])
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.xaxis.set_minor_formatter(lambda value, _: f"{value:,.0f}" if f"{value:.0e}"[0] in "25" else "")
    axes.set_yticks(range(len(places)), places)
    axes.set_ylim(len(places) - 0.4, -0.8)
    axes.grid(visible=True, axis="x")
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("uncached input (tokens over the run, log scale)")
    canvas.legend(loc="outside lower center", ncols=len(CHANGES), title="the line changes")


def break_even_figure(one: pd.DataFrame, many: pd.DataFrame, text_tokens: int) -> Drawing:
    """`50-break-even`: what changes of a line in front cost, against all channel text.

    `one` is from `studies.one_change`, `many` from `studies.status_changes`.
    """
    base = many.loc[many["changes"] == 0, "uncached"].iloc[0]
    extra = many.assign(extra=many["uncached"] - base).groupby("changes")["extra"]
    band = extra.quantile([0.1, 0.5, 0.9]).unstack().set_axis(["p10", "p50", "p90"], axis=1)
    data = band.rename_axis("x").reset_index()
    data.insert(0, "panel", "changes")
    single = one.rename(columns={"mention": "x", "extra": "p50"}).assign(panel="one change")
    data = pd.concat([single, data[data["x"] > 0]], ignore_index=True).assign(text=text_tokens)
    dearer = one.loc[one["extra"] >= text_tokens, "mention"]
    even, turns = break_even(one, many, text_tokens), int(many["changes"].max()) + 1
    said = f"from mention {dearer.iloc[0]} on" if len(dearer) else "at no mention"
    return Drawing(
        "50-break-even",
        _draw_break_even,
        data=data,
        alt="Left, the cost of one change rises with the mention before which it comes and soon passes that of all "
        "channel text. Right, the cost of more changes on a log scale, far above it.",
        caption=f"A line before the system prompt, against all channel text of the run ({text_tokens:,} tokens). Left: "
        f"one single change costs as much {said}, since everything behind it is read anew. Right: by the number of "
        f"changes, 10-90 % over where they fall. Break-even is at {even:.2f} changes in {turns} mentions, one in "
        f"{turns / even:,.0f}; a change each turn costs {band['p50'].iloc[-1] / text_tokens:,.0f} times the text.",
        parameters={"text_tokens": text_tokens},
        seeds=SEEDS,
        height=340,
    )


def _draw_break_even(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    left, right = canvas.subplots(1, 2)
    one, many = data[data["panel"] == "one change"], data[data["panel"] == "changes"]
    text = float(data["text"].iloc[0])
    left.plot(one["x"], one["p50"], **look.line("unstable") | {"markevery": 4})
    right.fill_between(many["x"], many["p10"], many["p90"], color=look.colour("unstable"), alpha=0.25, linewidth=0)
    right.plot(many["x"], many["p50"], **look.line("unstable") | {"markevery": 4})
    for axes, part in ((left, one), (right, many)):
        axes.axhline(text, color=look.colour("watermark"))
        axes.annotate(
            "all channel text",
            (float(part["x"].iloc[-1]), text),
            xytext=(0, -4),
            textcoords="offset points",
            ha="right",
            va="top",
            color=look.colour("watermark"),
        )
    left.set_xlim(1, float(one["x"].iloc[-1]))
    with_room(left)
    name_axes(left, ("the line changes before mention", "count"), ("extra uncached input", "tokens"))
    right.set_yscale("log")
    right.set_ylim(0.5 * min(text, float(many["p10"].min())), 1.5 * float(many["p90"].max()))
    right.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    right.set_xlim(1, float(many["x"].iloc[-1]))
    name_axes(right, ("changes over the run", "count"), ("extra uncached input", "tokens, log scale"))
