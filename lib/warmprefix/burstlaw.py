"""How public channels burst, as numbers: gaps that follow gaps, pauses, lengths and authors (`data/bursts.json`)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from warmprefix.datafiles import read_data
from warmprefix.errors import InputError

FILE = "bursts.json"
GRID = np.array([*np.linspace(0, 0.95, 39).round(3), 0.97, 0.98, 0.99, 0.995, 1.0])
ROWS = 200  # of a window of the public logs
LIMIT = 12  # rows of a block


@dataclass(frozen=True)
class Agent:
    """Where the agents' rows of a law stand, by the class of the gap: `only` is the share of gaps (over 1) whose rows
    between the mentions are all agents'; in the others `behind` is the chance that the first of them is and `further`
    that a later one is. `chars` are their lengths on `GRID`."""

    only: np.ndarray
    behind: np.ndarray
    further: np.ndarray
    chars: np.ndarray


@dataclass(frozen=True)
class Law:
    """A burst law: a Markov chain over classes of gaps, and what goes with each class.

    A gap is the distance of two mentions in the log, 1 being the very next message. Class k holds the gaps from
    `classes[k]` up to below the next; `follows[k]` is the distribution of the class of the gap after it. `gaps[k]` are
    its gaps and `pauses[k]` its seconds between mentions, both quantiles on `GRID`. `split` is the weight of the
    Dirichlet distribution that divides a pause over the rows of its gap: the smaller, the more of it lies in one place.
    `lengths` are (share, characters) pairs of bodies. A row repeats its predecessor's author with the chance `again`;
    otherwise it has a new one the more likely, the larger `variety`. `clock` is the resolution of the stamps in
    seconds; `agent` is None where the one addressed is a person. `real` holds the statistics of the public log and
    `windows` how many windows of 200 rows they rest on.
    """

    name: str
    source: str
    windows: int
    clock: float
    classes: np.ndarray
    follows: np.ndarray
    gaps: np.ndarray
    pauses: np.ndarray
    split: float
    lengths: np.ndarray
    again: float
    variety: float
    agent: Agent | None
    real: Mapping[str, float]


def law(name: str) -> Law:
    """One of the three laws: `meeting` (minute stamps), `forum` or `community`.

    >>> law("community").classes.tolist()
    [1.0, 3.0, 5.0, 13.0, 22.0]

    Source: public logs, measured 2026-11; each law names repository and commit. Raises `InputError` for another name.
    """
    laws = _document()["laws"]
    if name not in laws:
        raise InputError("", f"law={name!r}", "there is no such burst law", f"take one of {', '.join(laws)}")
    values: dict[str, Any] = {
        key: np.array(value, float) if isinstance(value, list) else value for key, value in laws[name].items()
    }
    if values["agent"]:
        values["agent"] = Agent(**{key: np.array(value, float) for key, value in values["agent"].items()})
    return Law(name=name, **values)


def names() -> tuple[str, ...]:
    """The laws there are.

    >>> names()
    ('meeting', 'forum', 'community')
    """
    return tuple(_document()["laws"])


@cache
def _document() -> dict[str, Any]:
    return json.loads(read_data(FILE))


@dataclass(frozen=True)
class Window:
    """What is counted in one stretch of a channel: the gaps between mentions, the same with agents' rows left out, the
    seconds between mentions, the characters of people's bodies, and the number of authors."""

    gaps: np.ndarray
    without: np.ndarray
    seconds: np.ndarray
    chars: np.ndarray
    authors: int


def statistics(windows: Sequence[Window]) -> dict[str, float]:
    """The facts of several windows taken together; shares are of all their gaps, pauses or bodies.

    `never shown` is the share of the rows from the first to the last mention that a limit of 12 rows never shows. NaN
    stands where nothing was counted.
    """
    gaps, without, seconds, chars = (
        np.concatenate([getattr(w, name) for w in windows]) for name in ("gaps", "without", "seconds", "chars")
    )
    return {
        "mentions per channel, median": float(np.median([len(w.gaps) + 1 for w in windows])),
        "gap, median": _median(gaps),
        "gap, longest": float(gaps.max(initial=0)),
        "gaps of 1": _share(gaps == 1),
        "gaps of 1 without agents' rows": _share(without == 1),
        "gaps over 12": _share(gaps > LIMIT),
        "gaps over 21": _share(gaps > 21),
        "never shown with a limit of 12": float(np.maximum(gaps - 1 - LIMIT, 0).sum() / max(gaps.sum(), 1)),
        "gap after gap, correlation of logs": _lag([w.gaps for w in windows], 1),
        "gap after next, correlation of logs": _lag([w.gaps for w in windows], 2),
        "pause, median seconds": _median(seconds),
        "pauses over 5 min": _share(seconds > 300),
        "pauses over 1 h": _share(seconds > 3600),
        "bodies over 600 characters": _share(chars > 600),
        "body, median characters": _median(chars),
        "authors, median": float(np.median([w.authors for w in windows])),
    }


def _share(of: np.ndarray) -> float:
    return float(of.mean()) if len(of) else float("nan")


def _median(of: np.ndarray) -> float:
    return float(np.median(of)) if len(of) else float("nan")


def _lag(runs: Sequence[np.ndarray], lag: int) -> float:
    first, second = (np.log(np.concatenate(side)) for side in zip(*((r[:-lag], r[lag:]) for r in runs), strict=True))
    varied = len(first) > 2 and first.std() > 0 and second.std() > 0
    return float(np.corrcoef(first, second)[0, 1]) if varied else float("nan")


# From here on: how `data/bursts.json` was made from the public windows.

# `split` brings the largest part of a pause near that of the whole logs: its median in gaps of 3-4, 5-12, 13-21 and
# more rows is 0.73, 0.49, 0.32, 0.23 in the community (public log: 0.65, 0.47, 0.31, 0.23).
_SOURCES: dict[str, dict[str, Any]] = {
    "meeting": {"gaps": "w3c_irc", "lengths": "irc_w3c_people", "logs": "*w3c*", "clock": 60.0, "split": 0.3},
    "forum": {
        "gaps": "zulip_lean_loogle_topics",
        "lengths": "zulip_Is-there-code-for-X%3F",
        "logs": "zulip*",
        "clock": 1.0,
        "split": 0.1,
    },
    "community": {"gaps": "discord_nous", "lengths": "discord_nous", "logs": "discord*", "clock": 0.001, "split": 0.3},
}
_CLASSES = (1, 3, 5, 13, 22)


def derive(folder: Path) -> dict[str, Any]:
    """The content of `data/bursts.json`, from a folder with `calibration.json` and `skeletons/`.

    A gap of g rows is seen whole in 200 - g of the 200 places where it may start in a window, so it counts with the
    weight 1 / (200 - g), and a pair of gaps likewise; otherwise channels drawn of 200 rows would lose long gaps twice.
    """
    public = json.loads((folder / "calibration.json").read_text(encoding="utf-8"))
    laws = {name: _derived(folder, public, source) for name, source in _SOURCES.items()}
    about = "derived from public logs: shares and quantiles, no wording, no rows; see data/README.md"
    return {"about": about, "measured": "2026-11", "laws": laws}


def _derived(folder: Path, public: Mapping[str, Any], source: Mapping[str, Any]) -> dict[str, Any]:
    counted, lengths = public["gaps"][source["gaps"]], public["lengths"][source["lengths"]]
    logs = [pd.read_csv(path) for path in sorted((folder / "skeletons").glob(source["logs"] + ".csv"))]
    runs = [np.array(run) for run in counted["gap_runs"]]
    seconds = [np.array(run, dtype=float) for run in counted["second_runs"]]
    # A class of the tail with a handful of gaps says nothing about what follows it.
    classes = np.array([low for low in _CLASSES if low < 22 or sum((run >= low).sum() for run in runs) >= 12])
    people = [log[log["is_bot"] == 0] for log in logs]
    agent = _agent(logs, classes)
    authors = float(np.mean(counted["authors_per_200"])) - (agent is not None)
    repeats = float(np.mean([(log["author"] == log["author"].shift()).mean() for log in people]))
    again, variety = _authorship(authors, repeats, float(np.mean([len(log) for log in people])))
    windows = [
        Window(run, np.array([]), pauses, np.array([]), number)
        for run, pauses, number in zip(runs, seconds, counted["authors_per_200"], strict=True)
    ]
    without = np.concatenate([np.diff(np.flatnonzero(log["mention"])) for log in people])
    facts = statistics(windows)
    real = facts | {
        "gaps of 1 without agents' rows": _share(without == 1) if agent else facts["gaps of 1"],
        "bodies over 600 characters": lengths["over_600"],
        "body, median characters": lengths["quantiles"]["50"],
    }
    return {
        "source": counted["source"],
        "windows": len(runs),
        "clock": source["clock"],
        **_chain(runs, seconds, classes),
        "split": source["split"],
        "lengths": _lengths(lengths),
        "again": _short(again),
        "variety": _short(variety),
        "agent": agent,
        "real": {key: _short(value) for key, value in real.items()},
    }


def _chain(runs: Sequence[np.ndarray], seconds: Sequence[np.ndarray], classes: np.ndarray) -> dict[str, Any]:
    gaps, pauses = np.concatenate(runs), np.concatenate(seconds)
    weights, kinds = 1 / (ROWS - gaps), np.searchsorted(classes, gaps, "right") - 1
    follows = np.zeros((len(classes), len(classes)))
    for run in runs:
        kind = np.searchsorted(classes, run, "right") - 1
        np.add.at(follows, (kind[:-1], kind[1:]), 1 / (ROWS - run[:-1] - run[1:]))

    def quantiles(of: np.ndarray) -> list[list[float]]:
        each = [(of[kinds == k], weights[kinds == k]) for k in range(len(classes))]
        return [_all_short(np.quantile(x, GRID, weights=w, method="inverted_cdf")) for x, w in each]

    return {
        "classes": classes.tolist(),
        "follows": [_all_short(row / row.sum()) for row in follows],
        "gaps": quantiles(gaps),
        "pauses": quantiles(pauses),
    }


def _agent(logs: Sequence[pd.DataFrame], classes: np.ndarray) -> dict[str, Any] | None:
    """Where agents' rows stand in whole logs (see `Agent`); None without a marked agent."""
    if not any(log["is_bot"].any() for log in logs):
        return None
    only: list[list[bool]] = [[] for _ in classes]
    further: list[list[int]] = [[] for _ in classes]
    behind: list[int] = []
    for log in logs:
        bot, where = log["is_bot"].tolist(), np.flatnonzero(log["mention"])
        kinds = np.searchsorted(classes, np.diff(where), "right") - 1
        for kind, a, b in zip(kinds.tolist(), where[:-1].tolist(), where[1:].tolist(), strict=True):
            between = bot[a + 1 : b]
            only[kind] += [all(between)] * bool(between)
            if not all(between):
                behind.append(between[0])
                further[kind] += between[1:]
    chars = np.concatenate([log["chars"][log["is_bot"] == 1] for log in logs])
    return {
        "only": [_short(float(np.mean(each))) if each else 0.0 for each in only],
        "behind": _short(float(np.mean(behind))),
        "further": [_short(float(np.mean(each))) if each else 0.0 for each in further],
        "chars": _all_short(np.quantile(chars, GRID, method="inverted_cdf")),
    }


def _lengths(lengths: Mapping[str, Any]) -> list[list[float]]:
    knots = {float(percent) / 100: float(chars) for percent, chars in lengths["quantiles"].items()}
    if lengths["over_600"]:
        knots[1 - lengths["over_600"]] = 600.0
    return [[_short(share, 6), chars] for share, chars in sorted(knots.items())]


def _authorship(authors: float, repeats: float, rows: float) -> tuple[float, float]:
    """`again` and `variety` with which so many rows have so many authors and repeat the one before so often.

    Writers are drawn by a Chinese restaurant process, which by itself repeats one with the chance 1 / (1 + variety).
    """
    again, variety = repeats, 1.0
    for _ in range(20):
        low, high = 0.01, 10_000.0
        for _ in range(60):
            variety = (low * high) ** 0.5
            many = (variety / (variety + np.arange(round((1 - again) * rows)))).sum() > authors
            low, high = (low, variety) if many else (variety, high)
        by_chance = 1 / (1 + variety)
        again = max((repeats - by_chance) / (1 - by_chance), 0.0)
    return again, variety


def _short(value: float, digits: int = 4) -> float:
    return float(f"{value:.{digits}g}")


def _all_short(values: np.ndarray) -> list[float]:
    return [_short(value) for value in values.tolist()]


def text(document: Mapping[str, Any]) -> str:
    """A document as committed: one line a key of a law, whole numbers without a fraction."""

    def plain(value: Any) -> Any:
        if isinstance(value, float) and value.is_integer():
            return int(value)
        return [plain(each) for each in value] if isinstance(value, list) else value

    def line(value: Any) -> str:
        value = {key: plain(each) for key, each in value.items()} if isinstance(value, dict) else plain(value)
        return json.dumps(value, separators=(",", ":"))

    laws = [
        f'  "{name}": {{\n' + ",\n".join(f'    "{key}": {line(value)}' for key, value in law.items()) + "\n  }"
        for name, law in document["laws"].items()
    ]
    head = "".join(f'"{key}": {line(value)},\n' for key, value in document.items() if key != "laws")
    return "{\n" + head + '"laws": {\n' + ",\n".join(laws) + "\n}}\n"
