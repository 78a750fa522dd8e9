"""The answers of `tools` and `search`."""

from pathlib import Path

import pytest

from warmprefix.errors import InputError
from warmprefix.tools.catalogue import Tool, listed, own_catalogue, read, token_count
from warmprefix.tools.report import search_report, tools_report


def test_our_own_catalogue_meets_the_claims() -> None:
    report = tools_report(own_catalogue())
    assert report["count"] == 126
    assert report["tokens_full"] == pytest.approx(23_100, rel=0.03)
    assert report["tokens_deferred"] == report["tokens_resident"] + report["tokens_index"]
    assert report["tokens_deferred"] == pytest.approx(5_000, rel=0.05)
    assert report["reduction"] == pytest.approx(0.78, abs=0.01)
    assert 200 <= report["tokens_index"] <= 900


def test_resident_names_are_counted_and_the_rest_is_named() -> None:
    tools = [Tool("a", "Alpha."), Tool("b", "Beta."), Tool("c", "Gamma.")]
    report = tools_report(tools, ["b"])
    assert report["tokens_resident"] == token_count(listed(tools[1]))
    assert report["tokens_full"] == sum(token_count(listed(tool)) for tool in tools)
    everything = tools_report(tools, ["a", "b", "c"])
    assert (everything["tokens_index"], everything["reduction"]) == (0, 0.0)


def test_a_public_catalogue(shared_data: Path) -> None:
    tools = read(shared_data / "tools" / "catalogue_126_github_memory.json")
    report = tools_report(tools, ["issue_read", "search_code"])
    assert (report["count"], report["tokens_full"]) == (126, 24_865)
    assert 0 < report["tokens_index"] < 1_000 and 0.9 < report["reduction"] < 1


def test_two_servers_may_share_a_name(shared_data: Path) -> None:
    tools = read(shared_data / "tools" / "livemcpbench_527.json")
    assert tools_report(tools)["tokens_full"] == 85_802
    assert search_report(tools, "list the files of a folder", 3)


def test_only_deferred_tools_are_ranked() -> None:
    hits = search_report(own_catalogue(), "read a file", 50)
    resident = {tool.name for tool in own_catalogue() if tool.resident}
    assert hits and not resident.intersection(hit["name"] for hit in hits)
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    assert len(search_report(own_catalogue(), "read a file", 3)) == 3


def test_nothing_fits_or_nothing_is_deferred() -> None:
    assert search_report(own_catalogue(), "qwxyz") == []
    assert search_report([Tool("a")], "a", resident=["a"]) == []


def test_bad_requests_are_one_line() -> None:
    with pytest.raises(InputError, match="at least one hit"):
        search_report(own_catalogue(), "x", 0)
    with pytest.raises(InputError, match="did you mean 'read_file'"):
        tools_report(own_catalogue(), ["raed_file"])


def test_ten_thousand_tools_are_reported() -> None:
    report = tools_report([Tool(f"tool_{i}", "Do it.") for i in range(10_000)])
    assert report["count"] == 10_000
