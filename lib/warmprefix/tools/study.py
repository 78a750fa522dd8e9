"""Tables about catalogues: what each mode sends, how often search finds, how alike descriptions are."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from warmprefix.errors import InputError
from warmprefix.tools.catalogue import Tool, listed, own_catalogue, read, token_count
from warmprefix.tools.recall import Query, everyday, overlap, own_queries, recall, recall_by_size, whitespace
from warmprefix.tools.surface import MODES, surface

FITTED, HELD_OUT, PUBLIC = "sets 1-3, fitted", "sets 4-6, held out", "public tasks"
OURS, PLAIN = "everyday words", "white space"
_INDEXES = {OURS: everyday, PLAIN: whitespace}
_OWN_SETS = {FITTED: (1, 2, 3), HELD_OUT: (4, 5, 6)}
_PUBLIC_CATALOGUES = {
    "public, 126 tools": "catalogue_126_github_memory.json",
    "public, 527 tools": "livemcpbench_527.json",
}
_PUBLIC_QUERIES = "livemcpbench_queries_95.json"


@dataclass(frozen=True, slots=True)
class Suite:
    """A catalogue and the queries that are asked of it."""

    name: str
    tools: Sequence[Tool]
    queries: Sequence[Query]


def suites(folder: str | Path | None = None) -> list[Suite]:
    """This project's query sets, and the public tasks where the folder holds them; raises `InputError`."""
    found = [Suite(name, own_catalogue(), own_queries(sets)) for name, sets in _OWN_SETS.items()]
    tasks = Path(folder or "") / _PUBLIC_QUERIES
    if folder and tasks.is_file():
        tools = read(tasks.with_name(_PUBLIC_CATALOGUES["public, 527 tools"]))
        found.append(Suite(PUBLIC, tools, _tasks(tasks)))
    return found


def _tasks(path: Path) -> list[Query]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return [Query(row["question"], tuple(row["gold"])) for row in rows]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(path, "", f"holds no tasks: {error!r}", "list objects with `question` and `gold`") from None


def catalogues(folder: str | Path | None = None) -> dict[str, Sequence[Tool]]:
    """This project's catalogue, and the public ones that the folder holds."""
    found: dict[str, Sequence[Tool]] = {"ours, 126 tools": own_catalogue()}
    for name, file in _PUBLIC_CATALOGUES.items():
        if folder and (Path(folder) / file).is_file():
            found[name] = read(Path(folder) / file)
    return found


def by_mode(catalogue: Sequence[Tool]) -> pd.DataFrame:
    """What a run in each mode is sent of the tools: how many, and tokens; `withheld` are only named in the index."""
    rows = []
    for mode in MODES.values():
        split = surface(catalogue, mode)
        resident, withheld = (
            sum(token_count(listed(tool)) for tool in tools) for tools in (split.resident, split.deferred)
        )
        rows.append(
            {
                "mode": mode.name,
                "admitted": len(split.tools),
                "resident": len(split.resident),
                "resident_tokens": resident,
                "index_tokens": token_count(split.index()),
                "withheld_tokens": withheld,
            }
        )
    return pd.DataFrame(rows)


def recall_table(asked: Sequence[Suite], cut_offs: Sequence[int] = (1, 5, 10)) -> pd.DataFrame:
    """Macro recall of each set by both indexes: one column a cut-off, and what was left out."""
    rows = []
    for suite in asked:
        for index, scorer in _INDEXES.items():
            measured = recall(suite.tools, suite.queries, scorer(suite.tools), cut_offs)
            rows.append(
                {
                    "set": suite.name,
                    "index": index,
                    **{f"@{cut_off}": share for cut_off, share in measured.at.items()},
                    "queries": measured.queries,
                    "skipped": measured.skipped,
                    "absent": measured.absent,
                }
            )
    return pd.DataFrame(rows)


def held_out(cut_off: int = 5) -> dict[int, float]:
    """Macro recall of this project's index on each held-out set of its own."""
    tools = own_catalogue()
    scorer = everyday(tools)
    return {
        number: recall(tools, own_queries([number]), scorer, [cut_off]).at[cut_off] for number in _OWN_SETS[HELD_OUT]
    }


def recall_sizes(
    asked: Sequence[Suite], sizes: Sequence[int], rng: np.random.Generator, *, cut_off: int = 5, draws: int = 5
) -> pd.DataFrame:
    """Macro recall of each set among so many tools, the gold ones and random others of its catalogue."""
    rows = []
    for suite in asked:
        fitting = [size for size in sizes if size <= len(suite.tools)]
        found = recall_by_size(
            suite.tools, suite.queries, everyday(suite.tools), fitting, rng, cut_off=cut_off, draws=draws
        )
        rows += [{"set": suite.name, "tools": size, "recall": share} for size, share in found.items()]
    return pd.DataFrame(rows)


def overlaps(found: Mapping[str, Sequence[Tool]]) -> pd.DataFrame:
    """Of each catalogue the similarity of every description to its nearest other one, the most alike first."""
    tables = []
    for name, tools in found.items():
        near = np.sort(overlap(tools))[::-1]
        tables.append(
            pd.DataFrame({"catalogue": name, "share": np.arange(1, len(near) + 1) / len(near), "nearest": near})
        )
    return pd.concat(tables, ignore_index=True)


def overlap_table(table: pd.DataFrame) -> pd.DataFrame:
    """Of each catalogue in the table of `overlaps` the number of tools, the mean and the share at 0.8 or more."""
    nearest = table.groupby("catalogue", sort=False)["nearest"]
    return pd.DataFrame(
        {"tools": nearest.size(), "mean": nearest.mean(), "0.8 or more": nearest.agg(lambda near: (near >= 0.8).mean())}
    ).reset_index()
