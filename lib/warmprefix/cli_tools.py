"""The verbs `tools` and `search`: what a catalogue costs in every request, and which of its tools fits a wish."""

import argparse
import os
from collections.abc import Callable
from typing import Any

from tabulate import tabulate

from warmprefix.cli_print import FINE, path, print_json
from warmprefix.errors import InputError
from warmprefix.tools.surface import SWITCH, deferral_wanted

LABELS = {
    "count": "tools",
    "tokens_full": "tokens of all definitions",
    "tokens_resident": "tokens of the resident definitions",
    "tokens_index": "tokens of the index that names the others",
    "tokens_deferred": "tokens sent with deferral: resident and index",
    "reduction": "smaller by",
}
_TOLD = 72  # characters of a description


def add_verbs(verb: Callable[..., argparse.ArgumentParser]) -> None:
    """Add both verbs to a command line; `verb(name, do, help)` makes one and returns its parser."""
    catalogue: dict[str, Any] = {"metavar": "CATALOGUE", "type": path, "help": "a file with an answer to tools/list"}
    resident: dict[str, Any] = {"metavar": "NAME", "nargs": "+", "action": "extend"}
    sub = verb("tools", tools, "what a catalogue of tools costs in every request, whole and deferred")
    sub.add_argument("catalogue", **catalogue)
    sub.add_argument(
        "--resident", help="tools that stay in every request; the catalogue's own marks decide", **resident
    )
    sub.add_argument("--tool-deferral", metavar="on/off", help=f"off makes all tools resident, as {SWITCH}=off does")
    sub = verb("search", search, "rank the deferred tools of a catalogue by a wish in everyday words")
    sub.add_argument("catalogue", **catalogue)
    sub.add_argument("query", metavar="QUERY", help="what is to be done")
    sub.add_argument("--top", metavar="K", type=int, default=10, help="at most so many hits")


def tools(options: argparse.Namespace) -> int:
    """`warmprefix tools`: tokens of the whole catalogue, of what stays resident, and of the index of the rest."""
    from warmprefix.tools.catalogue import read  # here, since the search libraries would delay every other verb
    from warmprefix.tools.report import tools_report

    deferral = deferral_wanted(options.tool_deferral, os.environ)
    report = tools_report(read(options.catalogue), options.resident, deferral=deferral)
    if options.json:
        return print_json(report)
    rows = [
        (label, f"{report[key]:.1%}" if key == "reduction" else f"{report[key]:,}") for key, label in LABELS.items()
    ]
    print(tabulate(rows, tablefmt="plain", disable_numparse=True, colalign=("left", "right")))
    if not report["tokens_resident"]:
        print("\nNo tool is resident: name with --resident those that a run cannot do without.")
    return FINE


def search(options: argparse.Namespace) -> int:
    """`warmprefix search`: the hits with their scores, and for people the beginning of what each tool does."""
    from warmprefix.tools.catalogue import qualified, read
    from warmprefix.tools.report import search_report

    if not options.query.strip():
        raise InputError("", "QUERY", "is empty", "say in your own words what is to be done")
    catalogue = read(options.catalogue)
    hits = search_report(catalogue, options.query, options.top)
    if options.json:
        return print_json(hits)
    if not hits:
        print("No deferred tool fits these words. Say it in other words, or ask for something broader.")
        return FINE
    told = {tool.name: _one_line(tool.description) for tool in qualified(catalogue)}
    rows = [(str(hit["name"]), f"{hit['score']:.2f}", told[str(hit["name"])]) for hit in hits]
    headers = ("tool", "score", "description")
    print(tabulate(rows, headers=headers, disable_numparse=True, colalign=("left", "right", "left")))
    return FINE


def _one_line(text: str) -> str:
    """The beginning of a text that any terminal can print."""
    line = "".join(sign if sign.isprintable() else " " for sign in text)
    line = " ".join(line.split())
    return line if len(line) <= _TOLD else line[: _TOLD - 1] + "…"
