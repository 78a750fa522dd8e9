"""One index for everyday wording."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmprefix.tools.catalogue import Tool, from_answer, own_catalogue
from warmprefix.tools.search import Index, concepts, no_hit, split_words


@pytest.fixture(scope="module")
def index() -> Index:
    return Index(own_catalogue())


def first(index: Index, query: str) -> str:
    return index.rank(query, 1)[0].tool.name


@pytest.mark.parametrize(
    ("query", "tool"),
    [
        ("assign a ticket to someone", "assign_ticket"),
        ("ASSIGN A TICKET TO SOMEONE!!!", "assign_ticket"),
        ("assign_ticket", "assign_ticket"),
        ("assignTicket", "assign_ticket"),
        ("give the bug to Ann", "assign_ticket"),
        ("make a pull request", "open_review"),
        ("who's on duty tonight?", "who_is_on_call"),
        ("the site is down", "open_incident"),
        ("what is on the page https://example.com/a?b=c", "fetch_page"),
        ("write bob@example.com that it works", "send_mail"),
        ("what did she say in #design", "channel_history"),
    ],
)
def test_the_right_tool_comes_first(index: Index, query: str, tool: str) -> None:
    assert first(index, query) == tool


def test_each_field_is_searched() -> None:
    tools = from_answer(
        [
            {"name": "zebra_feed", "description": "One."},
            {"name": "b", "description": "Mentions a giraffe."},
            {"name": "c", "inputSchema": {"type": "object", "properties": {"ostrichId": {"type": "string"}}}},
            {"name": "d", "_meta": {"wishes": "call the penguin"}},
            {"name": "e", "description": "列出所有企鹅的名字"},
        ]
    )
    index = Index(tools)
    for query, name in [
        ("zebras", "zebra_feed"),
        ("giraffes", "b"),
        ("ostrich", "c"),
        ("penguins", "d"),
        ("企鹅", "e"),
    ]:
        assert first(index, query) == name


@pytest.mark.parametrize("query", ["", " ", "the of a", "qwxyz", "do we have a qwxyz for it", "🦓", "?!", "\ud800"])
def test_nothing_is_found_for_nothing(index: Index, query: str) -> None:
    assert index.rank(query) == ()


@given(query=st.text(max_size=60))
def test_any_text_can_be_asked(query: str) -> None:
    hits = Index(own_catalogue()[:5]).rank(query)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(hit.score > 0 for hit in hits)


def test_repeating_a_word_changes_nothing(index: Index) -> None:
    assert np.array_equal(index.scores("mail mail mail to Ben"), index.scores("mail to Ben"))


def test_of_the_same_words_those_that_stand_together_count_more() -> None:
    tools = [Tool("a", "Off the road they turn."), Tool("b", "They turn the road off.")]
    assert [hit.tool.name for hit in Index(tools).rank("turn off")] == ["a", "b"]
    assert first(Index([tools[0], Tool("b", "On the road they turn off.")]), "turn off") == "b"


def test_equal_scores_are_ordered_by_name() -> None:
    tools = [Tool("b", "Feed it."), Tool("a", "Feed it."), Tool("c", "Feed it.")]
    assert [hit.tool.name for hit in Index(tools).rank("feed")] == ["a", "b", "c"]


def test_schemas_of_odd_shape_are_searched_all_the_same() -> None:
    odd = [
        {"properties": []},
        {"properties": {"x": True}},
        {"properties": {"x": {"description": 5}}},
        {"properties": 3},
    ]
    tools = from_answer(
        [{"name": f"t{i}", "description": "feed", "inputSchema": schema} for i, schema in enumerate(odd)]
    )
    assert len(Index(tools).rank("feed")) == 4


def test_ten_thousand_tools_are_searched() -> None:
    tools = [Tool(f"tool_{i}", f"Do thing number {i}.") for i in range(10_000)]
    assert first(Index(tools), "do 4711") == "tool_4711"


def test_the_longest_phrase_gives_the_concept() -> None:
    assert concepts("pull request") == ["review"]
    assert "ticket" in concepts("a request")


def test_words_are_split_where_names_are_joined() -> None:
    assert split_words("listHTTPServers2 by-user") == ["list", "http", "server", "2", "by", "user"]


def test_an_empty_answer_says_what_to_do_next() -> None:
    said = no_hit('tea "pot"', ["Mail", "Reviews"])
    assert '"tea \\"pot\\""' in said and "other words" in said and "broader" in said and "Mail, Reviews" in said


def test_another_process_ranks_the_same() -> None:
    code = (
        "from warmprefix.tools.search import Index\nfrom warmprefix.tools.catalogue import own_catalogue\n"
        "print([(h.tool.name, h.score) for h in Index(own_catalogue()).rank('tell the team about the outage', None)])"
    )
    seeds = ["0", "1"]
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in seeds
    }
    assert len(said) == 1 and b"incident" in said.pop()
