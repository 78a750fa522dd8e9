"""The figures about deferred tools: tokens, activations, break-even, recall, and the company that tools keep."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from warmprefix.figures import Drawing, Style, from_zero, label_ends, name_axes
from warmprefix.harness.activation import OFF, break_even
from warmprefix.harness.wire import APPEND, INLINE, INSERT
from warmprefix.tools.study import FITTED, HELD_OUT, OURS, PLAIN, PUBLIC

# The series whose look each one has, and what it is called in a picture.
PLACES = {INSERT: "window", APPEND: "deferred", INLINE: "watermark", OFF: "other"}
CALLED = {INSERT: "inserted", APPEND: "appended", INLINE: "inline", OFF: "all resident"}
SETS = {FITTED: "read", HELD_OUT: "resident", PUBLIC: "deferred"}
CATALOGUES = ("read", "deferred", "prefix")
ASKED_FOR = 0.9  # of recall among five, on queries of one's own


def tokens_figure(modes: pd.DataFrame) -> Drawing:
    """`70-tokens`: what the tools of each mode cost in every request, whole and deferred, from `study.by_mode`."""
    sent = modes["resident_tokens"] + modes["index_tokens"]
    whole = modes["resident_tokens"] + modes["withheld_tokens"]
    first = modes.index[0]
    smaller = 1 - sent / whole
    return Drawing(
        "70-tokens",
        _draw_tokens,
        data=modes,
        alt=f"A bar a mode: a {modes['mode'][first]} run sends {sent[first]:,} of {whole[first]:,} tokens of tools.",
        caption=f"Tool tokens in every request. A {modes['mode'][first]} run may use {modes['admitted'][first]} tools; "
        f"{modes['resident'][first]} resident definitions and the index of the rest are {sent[first]:,} tokens instead "
        f"of {whole[first]:,}. Over the modes deferral makes the tools {smaller.min():.0%} to {smaller.max():.0%} "
        "smaller. Hatched: withheld until it is called or found.",
        parameters={},
        seeds=[],
        height=280,
    )


def _draw_tokens(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    axes = canvas.subplots()
    left = pd.Series(0, data.index)
    for column, name, hatch, alpha in (
        ("resident_tokens", "resident", None, 1.0),
        ("index_tokens", "index of names", None, 1.0),
        ("withheld_tokens", "withheld", "////", 0.55),
    ):
        fill = look.fill({"index of names": "read", "withheld": "deferred"}.get(name, name)) | {"label": name}
        axes.barh(data["mode"], data[column], left=left, height=0.62, hatch=hatch, alpha=alpha, **fill)
        left = left + data[column]
    for place, row in enumerate(data.itertuples()):
        sent, whole = row.resident_tokens + row.index_tokens, row.resident_tokens + row.withheld_tokens
        axes.text(left[place], place, f" {sent:,} instead of {whole:,}", va="center", color=look.ink)
    axes.invert_yaxis()
    axes.grid(axis="x")
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, left.max() * 1.3)
    axes.set_xlabel("tools in every request (tokens)")
    axes.set_ylabel("mode")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    canvas.legend(loc="outside lower center", ncols=3)


def activation_figure(data: pd.DataFrame) -> Drawing:
    """`70-activation`: what one activation makes a provider process anew, by placement, from `one_activation`."""
    provider = data["provider"].iloc[0]
    marked = data[data["provider"] == provider].set_index("placement")
    extra = data.pivot(index="provider", columns="placement", values="extra")
    near = int((extra[INLINE] <= data["schemas"].iloc[0] + 128).sum())
    lost = extra[APPEND] > data["schemas"].iloc[0] + 128
    return Drawing(
        "70-activation",
        _draw_activation,
        data=data,
        alt=f"Three dots for each of {len(extra)} cache models; median extra tokens: {extra[INSERT].median():,.0f} "
        f"inserted, {extra[APPEND].median():,.0f} appended, {extra[INLINE].median():,.0f} inline.",
        caption=f"Tokens that a request of {marked['total'].iloc[0]:,} processes anew because a tool was loaded before "
        f"it; the schema itself has {marked['schemas'].iloc[0]:,}. {provider}: inserted into the tool block "
        f"{marked.loc[INSERT, 'extra']:,}, appended behind it {marked.loc[APPEND, 'extra']:,} (read again: "
        f"{marked.loc[APPEND, 'block_kept']:.0%} of the block, {marked.loc[APPEND, 'rest_kept']:.0%} of what follows), "
        f"inline {marked.loc[INLINE, 'extra']:,}. Appended, more than the schema is paid under {int(lost.sum())} of "
        f"{len(extra)} models; inline, the schema alone (and at most a page) under {near}.",
        parameters={},
        seeds=[],
        height=390,
    )


def _draw_activation(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    axes = canvas.subplots()
    order = list(dict.fromkeys(data["provider"]))
    shift = {INSERT: -0.22, APPEND: 0.0, INLINE: 0.22}
    for placement, off in shift.items():
        rows = data[data["placement"] == placement]
        places = [order.index(name) + off for name in rows["provider"]]
        line = look.line(PLACES[placement]) | {"linestyle": "none", "markersize": 6, "clip_on": False}
        axes.hlines(places, 0, rows["extra"], color=look.colour(PLACES[placement]), linewidth=1.2)
        axes.plot(rows["extra"], places, **line | {"label": CALLED[placement]})
    axes.set_yticks(range(len(order)), order)
    axes.set_ylim(len(order) - 0.5, -0.6)
    axes.grid(axis="x")
    axes.grid(visible=False, axis="y")
    axes.set_xlim(left=0)
    axes.set_xlabel("processed anew because of one activation (tokens)")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    canvas.legend(loc="outside lower center", ncols=3, title="where the schema goes")


def break_even_figure(alone: pd.DataFrame, shared: pd.DataFrame, provider: str) -> Drawing:
    """`70-break-even`: the bill of a run by its activations, alone and beside another run, from `run_costs`."""
    data = pd.concat([alone.assign(start="alone"), shared.assign(start="prefix already warm")], ignore_index=True)
    points = {start: break_even(table) for start, table in data.groupby("start", sort=False)}
    most = int(data["activations"].max())
    said = "; ".join(
        f"{start}: "
        + ", ".join(f"{CALLED[place]} {'never' if k is None else f'from {k} on'}" for place, k in found.items())
        for start, found in points.items()
    )
    return Drawing(
        "70-break-even",
        _draw_break_even,
        data=data,
        alt=f"The cost of a run by activations, a line a placement, against the run with all tools resident. {said}.",
        caption=f"Input cost of one run under {provider}, by how many tools it loads, {most} at most. Deferral stops "
        f"saving money, {said}. All resident: every definition in every request, nothing to load.",
        parameters={"provider": provider},
        seeds=[],
        height=330,
    )


def _draw_break_even(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    panels = canvas.subplots(1, 2, sharey=True)
    for axes, (start, table) in zip(panels, data.groupby("start", sort=False), strict=True):
        ends = {}
        for placement, rows in table.groupby("placement", sort=False):
            name = PLACES[str(placement)]
            axes.plot(rows["activations"], rows["usd"], **look.line(name))
            ends[name] = float(rows["usd"].iloc[-1])
        most = table["activations"].max()
        axes.set_xlim(-0.03 * most, 1.03 * most)
        axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
        from_zero(axes)
        name_axes(axes, ("activations", "count"), ("input of the run", "USD"))
        panel(axes, str(start))
        label_ends(axes, ends, look, {PLACES[place]: text for place, text in CALLED.items()})
    panels[1].set_ylabel("")


def recall_figure(table: pd.DataFrame) -> Drawing:
    """`70-recall`: how often the right tool is among the first 1, 5 and 10 hits, from `study.recall_table`."""
    at = table.set_index(["index", "set"])
    held_out = at.loc[(OURS, HELD_OUT)]
    public = ""
    if (OURS, PUBLIC) in at.index:
        ours, plain = (at.loc[(index, PUBLIC), "@5"] for index in (OURS, PLAIN))
        public = (
            f" On {int(at.loc[(OURS, PUBLIC), 'queries'])} public tasks it finds {ours:.0%}, white space {plain:.0%}."
        )
    verdict = "reaches" if held_out["@5"] >= ASKED_FOR else "misses"
    return Drawing(
        "70-recall",
        _draw_recall,
        data=table,
        alt=f"Recall by rank for {len(table) // 2} query sets and two indexes; the held-out sets go from "
        f"{held_out['@1']:.0%} at one hit to {held_out['@10']:.0%} at ten.",
        caption=f"Macro recall. The index was fitted to sets 1 to 3, so their {at.loc[(OURS, FITTED), '@5']:.0%} among "
        f"five say how well it fits. Of {int(held_out['queries'])} held-out queries it finds {held_out['@5']:.0%}, "
        f"which {verdict} the {ASKED_FOR:.0%} asked for; words split at white space find "
        f"{at.loc[(PLAIN, HELD_OUT), '@5']:.0%}.{public}",
        parameters={},
        seeds=[],
        height=330,
    )


def _draw_recall(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    panels = canvas.subplots(1, 2, sharey=True)
    columns = [column for column in data if column.startswith("@")]
    for axes, index in zip(panels, (OURS, PLAIN), strict=True):
        ends = {}
        for row in data[data["index"] == index].to_dict("records"):
            name = SETS[row["set"]]
            axes.plot(range(len(columns)), [row[column] for column in columns], **look.line(name))
            ends[name] = row[columns[-1]]
        axes.axhline(ASKED_FOR, color=look.ink, linewidth=0.8, linestyle=(0, (4, 3)))
        axes.set_xticks(range(len(columns)), [column.removeprefix("@") for column in columns])
        axes.set_xlim(-0.15, len(columns) - 0.9)
        axes.set_ylim(0, 1.04)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        name_axes(axes, ("among the first", "hits"), ("right tools found", "share"))
        panel(axes, f"index: {index}")
        label_ends(axes, ends, look, {look_of: name for name, look_of in SETS.items()})
    panels[1].text(-0.1, ASKED_FOR - 0.02, f"asked for among five: {ASKED_FOR:.0%}", va="top", color=look.ink)
    panels[1].set_ylabel("")


def company_figure(near: pd.DataFrame, sizes: pd.DataFrame, cut_off: int, seed: int) -> Drawing:
    """`70-company`: how alike descriptions are, and recall as the catalogue grows, from `overlaps`, `recall_sizes`."""
    data = pd.concat([near.assign(panel="overlap"), sizes.assign(panel="recall")], ignore_index=True)
    alike = near.groupby("catalogue", sort=False)["nearest"].agg(["mean", lambda values: (values >= 0.8).mean()])
    told = "; ".join(
        f"{name}: {row.iloc[0]:.2f} on average, {row.iloc[1]:.0%} at 0.8 or more" for name, row in alike.iterrows()
    )
    falls = "; ".join(
        f"{name} {rows['recall'].iloc[0]:.0%} among {rows['tools'].iloc[0]} tools, {rows['recall'].iloc[-1]:.0%} among "
        f"{rows['tools'].iloc[-1]}"
        for name, rows in sizes.groupby("set", sort=False)
    )
    return Drawing(
        "70-company",
        _draw_company,
        data=data,
        alt=f"Left, similarity to the nearest description by share of tools; right, recall falls with size: {falls}.",
        caption=f"Left: how alike each description is to its nearest other one (TF-IDF cosine). {told}. Right: recall "
        f"among {cut_off} hits when the right tools stand among random others: {falls}.",
        parameters={"cut_off": cut_off},
        seeds=[seed],
        height=330,
    )


def _draw_company(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    left, right = canvas.subplots(1, 2)
    near, sizes = data[data["panel"] == "overlap"], data[data["panel"] == "recall"]
    for place, (name, (catalogue, rows)) in enumerate(
        zip(CATALOGUES, near.groupby("catalogue", sort=False), strict=False)
    ):
        left.plot(rows["share"], rows["nearest"], **look.line(name) | {"marker": None})
        left.text(0.98, 0.98 - place * 0.07, catalogue, ha="right", va="top", color=look.colour(name))
    left.set_xlim(0, 1)
    left.set_ylim(0, 1.04)
    left.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    name_axes(left, ("tools, the most alike first", "share"), ("nearest description", "cosine"))
    _draw_sizes(right, sizes, look)


def panel(axes: Axes, text: str) -> None:
    """Say what a panel of several is about, above it."""
    axes.set_title(text, loc="left", fontsize="medium")


def _draw_sizes(axes: Axes, sizes: pd.DataFrame, look: Style) -> None:
    ends = {}
    for suite, rows in sizes.groupby("set", sort=False):
        name = SETS[str(suite)]
        axes.plot(rows["tools"], rows["recall"], **look.line(name))
        ends[name] = float(rows["recall"].iloc[-1])
    axes.set_xscale("log")
    ticks = [size for size in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000) if size in set(sizes["tools"])]
    axes.set_xticks(ticks, [str(tick) for tick in ticks], fontsize=8)
    axes.minorticks_off()
    axes.set_ylim(0, 1.04)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    name_axes(axes, ("catalogue", "tools, log scale"), ("right tools found", "share"))
    label_ends(axes, ends, look, {look_of: name for name, look_of in SETS.items()})
