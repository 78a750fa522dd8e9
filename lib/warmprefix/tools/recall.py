"""How often the right tool is among the first hits, how alike tools sound, and what a larger catalogue does to it."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import bm25s
import numpy as np

from warmprefix.datafiles import read_data
from warmprefix.tools.catalogue import Tool
from warmprefix.tools.search import Index

Scorer = Callable[[str], np.ndarray]


@dataclass(frozen=True, slots=True)
class Query:
    """A wish, the names of the tools that fulfil it, and the set it belongs to."""

    text: str
    gold: tuple[str, ...]
    set: int = 0


@dataclass(frozen=True, slots=True)
class Recall:
    """Macro recall at each cut-off (the mean over queries of the share of gold tools found).

    `queries` were evaluated; `absent` gold tools are not in the catalogue and were left out, and with them the
    `skipped` queries that had no other.
    """

    at: Mapping[int, float]
    queries: int
    skipped: int
    absent: int


def own_queries(sets: Collection[int] | None = None) -> tuple[Query, ...]:
    """This project's queries for its own catalogue (`data/tool_queries*.json`).

    Sets 1 to 3 are what the index and the wishes in the catalogue were made with, so what they say is how well it fits
    them. Sets 4 to 6 are held out: 4 was written from the tools' names before the last wishes were, 5 after them by the
    same author, who had also written those wishes, and 6 last, by somebody who knew the tools' names alone. Before that
    work the index found 93 % of set 4 among five, 75 % of set 5 and 79 % of set 3.
    """
    rows = json.loads(read_data("tool_queries.json")) + json.loads(read_data("tool_queries_held_out.json"))["queries"]
    queries = [Query(row["query"], tuple(row["gold"]), row["set"]) for row in rows]
    return tuple(query for query in queries if sets is None or query.set in sets)


def everyday(tools: Sequence[Tool]) -> Scorer:
    """The scores of this project's index."""
    return Index(tools).scores


def whitespace(tools: Sequence[Tool]) -> Scorer:
    """The baseline: BM25 with its usual parameters over the same texts, split at white space, in lower case."""

    def document(tool: Tool) -> list[str]:
        arguments = tool.schema.get("properties")
        return " ".join((tool.name, tool.description, *(arguments or ()))).lower().split() or [""]

    model = bm25s.BM25(k1=1.5, b=0.75)
    model.index([document(tool) for tool in tools], show_progress=False)

    def scores(query: str) -> np.ndarray:
        known = [word for word in query.lower().split() if word in model.vocab_dict]
        return np.asarray(model.get_scores(known), dtype=float) if known else np.zeros(len(tools))

    return scores


def recall(
    tools: Sequence[Tool], queries: Iterable[Query], scorer: Scorer, cut_offs: Sequence[int] = (1, 5, 10)
) -> Recall:
    """Macro recall over the queries; a name that several servers use counts as one tool, at its best rank.

    >>> tools = [Tool("send_mail", "Send a mail."), Tool("run_query", "Run SQL.")]
    >>> recall(tools, [Query("mail it", ("send_mail", "fax_it"))], everyday(tools)).at[1]
    1.0
    """
    names = [tool.name for tool in tools]
    found: dict[int, list[float]] = {cut_off: [] for cut_off in cut_offs}
    skipped = absent = 0
    for query in queries:
        gold = set(query.gold).intersection(names)
        absent += len(set(query.gold)) - len(gold)
        if not gold:
            skipped += 1
            continue
        hits = _distinct(names, scorer(query.text))
        for cut_off in cut_offs:
            found[cut_off].append(len(gold.intersection(hits[:cut_off])) / len(gold))
    means = {cut_off: float(np.mean(found[cut_off])) if found[cut_off] else 0.0 for cut_off in cut_offs}
    return Recall(means, len(found[cut_offs[0]]), skipped, absent)


def _distinct(names: Sequence[str], scores: np.ndarray) -> list[str]:
    order = sorted(np.flatnonzero(scores > 0).tolist(), key=lambda i: (-scores[i], names[i]))
    return list(dict.fromkeys(names[i] for i in order))


def recall_by_size(
    tools: Sequence[Tool],
    queries: Sequence[Query],
    scorer: Scorer,
    sizes: Sequence[int],
    rng: np.random.Generator,
    *,
    cut_off: int = 5,
    draws: int = 5,
) -> dict[int, float]:
    """Macro recall when each query's gold tools stand among random others, `sizes` tools in all.

    Scores are those of the whole catalogue, so that only the company changes, not the weights of the words.
    """
    names = [tool.name for tool in tools]
    known = [(set(query.gold).intersection(names), scorer(query.text)) for query in queries]
    found: dict[int, list[float]] = {size: [] for size in sizes}
    for gold, scores in known:
        if not gold:
            continue
        is_gold = np.array([name in gold for name in names])
        for _ in range(draws):
            others = rng.permutation(np.flatnonzero(~is_gold))
            for size in sizes:
                company = np.concatenate([np.flatnonzero(is_gold), others[: max(size - len(gold), 0)]])
                visible = np.zeros_like(scores)
                visible[company] = scores[company]
                found[size].append(len(gold.intersection(_distinct(names, visible)[:cut_off])) / len(gold))
    return {size: float(np.mean(found[size])) if found[size] else 0.0 for size in sizes}


def overlap(tools: Sequence[Tool]) -> np.ndarray:
    """For each description its similarity to the nearest other one: the cosine of TF-IDF vectors, 0 to 1.

    >>> overlap([Tool("a", "Send a mail"), Tool("b", "Send a mail"), Tool("c", "Restart now")]).round(2).tolist()
    [1.0, 1.0, 0.0]

    Term counts times `ln((1 + n) / (1 + df)) + 1`, as most libraries have it; words of two letters or more.
    """
    documents = [[word for word in _plain(tool.description) if len(word) > 1] for tool in tools]
    terms = {term: i for i, term in enumerate(sorted(set().union(*documents)))}
    counts = np.zeros((len(documents), len(terms)), dtype=np.float32)
    for row, document in enumerate(documents):
        np.add.at(counts[row], [terms[word] for word in document], 1)
    weighted = counts * (np.log((1 + len(documents)) / (1 + (counts > 0).sum(axis=0))) + 1)
    length = np.linalg.norm(weighted, axis=1, keepdims=True)
    unit = weighted / np.where(length > 0, length, 1)
    nearest = np.zeros(len(documents))
    for start in range(0, len(documents), 1000):
        similar = unit[start : start + 1000] @ unit.T
        similar[np.arange(len(similar)), np.arange(start, start + len(similar))] = 0
        nearest[start : start + 1000] = similar.max(axis=1)
    return nearest


def _plain(text: str) -> list[str]:
    return "".join(character if character.isalnum() else " " for character in text.lower()).split()
