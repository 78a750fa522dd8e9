"""Which tool fits a wish in everyday words: BM25 over what tools say about themselves and what people call it."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from typing import Any

import bm25s
import numpy as np
import Stemmer

from warmprefix.datafiles import read_data
from warmprefix.tools.catalogue import Tool

# Chosen on the three sets of data/tool_queries.json and on a public benchmark; flat around these values.
K1, B = 1.2, 0.6
NAME_WEIGHT, WISH_WEIGHT = 3, 3
PAIRS = 0.3
CONCEPTS_IN_NAME, CONCEPTS_IN_TEXT = 0.5, 0.4
SHORT_WISH = 6  # words; in a longer one its own words say more than their synonyms do

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[\u3400-\u9fff]+|[^\W\d_A-Za-z\u3400-\u9fff]+")
_POSSESSIVE = re.compile(r"['’]s\b")
_SENTENCE_END = re.compile(r"[.;:!?]\s|\n")
# What a wish says by its spelling alone.
_SIGNS = (
    (re.compile(r"\bhttps?://\S+"), "url"),
    (re.compile(r"\b[\w.+-]+@\w[\w-]*\.\w+"), "mail"),
    (re.compile(r"(?<!\S)#[^\W\d][\w-]*"), "channel"),
    (re.compile(r"(?<!\S)#\d+\b"), "ticket"),
)
_ARTICLES = frozenset(("a", "an", "the", "of", "to", "it", "is"))
_STOP_WORDS = (
    "a about after all also am an and any are as at be because been before being both but by can could did do does "
    "down during each few for from give had has have he help her here him his how i if in into is it its just let "
    "like make me more most my need no nor not of off on once only or other our out over own please same shall she "
    "should show so some such tell than that the their them then there these they this those through to too under "
    "until up us very want was we were what when where which while who whom why will with would you your get "
    "don doesn didn isn ve ll re"  # what splitting leaves of contractions
)


@cache
def _stem(word: str) -> str:
    stemmer: Any = Stemmer.Stemmer("english")
    return str(stemmer.stemWord(word))


def split_words(text: str) -> list[str]:
    """The words of a text, also of a name, lower-case and stemmed; Chinese in pairs of characters.

    >>> split_words("getUserTickets by_label: 必应搜索")
    ['get', 'user', 'ticket', 'by', 'label', '必应', '应搜', '搜索']
    """
    found: list[str] = []
    for word in _WORD.findall(_POSSESSIVE.sub(" ", text)):
        if "\u3400" <= word[0] <= "\u9fff":
            found += [word[i : i + 2] for i in range(max(1, len(word) - 1))]
        elif len(word) > 1 or word.isdigit():
            found.append(_stem(word.lower()))
    return found


@cache
def _stop_stems() -> frozenset[str]:
    return frozenset(map(_stem, _STOP_WORDS.split()))


def _content(text: str) -> list[str]:
    return [word for word in split_words(text) if word not in _stop_stems()]


def _without_articles(text: str) -> list[str]:
    return [word for word in split_words(text) if word not in _ARTICLES]


def word_pairs(text: str) -> list[str]:
    """The pairs of neighbours in a text, of which one may be a word that says nothing alone.

    >>> word_pairs("Turn it off. Who is on call?")
    ['turn off', 'on call']
    """
    parts = map(_without_articles, _SENTENCE_END.split(text))
    pairs = (pair for words in parts for pair in pairwise(words))
    return [" ".join(pair) for pair in pairs if not _stop_stems().issuperset(pair)]


def spell_out(wish: str) -> str:
    """The wish with a word before everything that only its spelling explains.

    >>> spell_out("post #412 in #design")
    'post ticket #412 in channel #design'
    """
    for sign, word in _SIGNS:
        wish = sign.sub(rf"{word} \g<0>", wish)
    return wish


@cache
def _phrases() -> Mapping[tuple[str, ...], tuple[str, ...]]:
    """Which concepts every word or phrase of `data/everyday_words.json` belongs to."""
    phrases: dict[tuple[str, ...], tuple[str, ...]] = {}
    for concept, wordings in json.loads(read_data("everyday_words.json")).items():
        for wording in wordings:
            key = tuple(_without_articles(wording))
            if key and concept not in phrases.get(key, ()):
                phrases[key] = (*phrases.get(key, ()), concept)
    return phrases


def concepts(text: str) -> list[str]:
    """The concepts that the words and phrases of a text belong to, the longest phrase first.

    >>> concepts("pull request")
    ['review']
    """
    phrases = _phrases()
    longest = max(map(len, phrases))
    words = _without_articles(text)
    found: list[str] = []
    i = 0
    while i < len(words):
        size = next((n for n in range(longest, 0, -1) if tuple(words[i : i + n]) in phrases), 0)
        found += phrases.get(tuple(words[i : i + size]), ())
        i += max(size, 1)
    return found


@dataclass(frozen=True, slots=True)
class Hit:
    """A tool and how well it fits."""

    tool: Tool
    score: float


class Index:
    """One index over names, descriptions, arguments and everyday words, whoever asks it.

    >>> tools = [Tool("send_mail", "Send a mail."), Tool("query_database", "Run a statement.")]
    >>> [hit.tool.name for hit in Index(tools).rank("write an email to Ben")]
    ['send_mail']
    """

    def __init__(self, tools: Sequence[Tool]) -> None:
        self.tools = tuple(tools)
        self._words = _bm25([_words_of(tool) for tool in tools])
        self._pairs = _bm25([[*chain(*map(word_pairs, (tool.name, tool.description, tool.wishes)))] for tool in tools])
        self._named = _bm25([concepts(tool.name) for tool in tools])
        self._told = _bm25([concepts(tool.description) + concepts(tool.wishes) for tool in tools])

    def scores(self, query: str) -> np.ndarray:
        """How well each tool fits, 0 where nothing does; every word of the query counts once."""
        wish = spell_out(query)
        words, meant = _content(wish), concepts(wish)
        share = min(1.0, SHORT_WISH / max(len(set(words)), 1))
        return (
            self._score(self._words, words)
            + PAIRS * self._score(self._pairs, word_pairs(wish))
            + CONCEPTS_IN_NAME * share * self._score(self._named, meant)
            + CONCEPTS_IN_TEXT * share * self._score(self._told, meant)
        )

    def _score(self, model: Any, words: Sequence[str]) -> np.ndarray:
        known = sorted(set(words).intersection(model.vocab_dict))
        return np.asarray(model.get_scores(known), dtype=float) if known else np.zeros(len(self.tools))

    def rank(self, query: str, top: int | None = 10) -> tuple[Hit, ...]:
        """The tools that fit, best first, equal ones by name; `None` for all."""
        return ranked(self.tools, self.scores(query), top)


def ranked(tools: Sequence[Tool], scores: np.ndarray, top: int | None) -> tuple[Hit, ...]:
    """The tools with a score above 0, best first, equal ones by name."""
    order = sorted(np.flatnonzero(scores > 0).tolist(), key=lambda i: (-scores[i], tools[i].name, tools[i].server))
    return tuple(Hit(tools[i], float(scores[i])) for i in order[:top])


def _words_of(tool: Tool) -> list[str]:
    arguments = tool.schema.get("properties")
    return list(
        chain(
            _content(tool.name) * NAME_WEIGHT,
            _content(tool.description),
            *map(_content, arguments if isinstance(arguments, Mapping) else ()),
            _content(tool.wishes) * WISH_WEIGHT,
        )
    )


def _bm25(documents: Sequence[Sequence[str]]) -> Any:
    model = bm25s.BM25(k1=K1, b=B)
    model.index([list(document) or [""] for document in documents], show_progress=False)
    return model


def no_hit(query: str, headings: Sequence[str]) -> str:
    """What an empty search answers, lest it be read as "there is no such tool".

    >>> no_hit("xyzzy", ["Mail"])[:52]
    'No tool was found for "xyzzy". That does not mean th'
    """
    return (
        f"No tool was found for {json.dumps(query, ensure_ascii=False)}. That does not mean that there is none: say it "
        f"in other words, or ask for something broader. Tools are grouped under: {', '.join(headings)}."
    )
