"""The verbs `tools` and `search`: their answers, and one clear line for a catalogue that cannot be read."""

import json
from pathlib import Path
from typing import Any

import pytest

from warmprefix import cli
from warmprefix.tools.catalogue import OWN

MAIL = {"name": "send_mail", "description": "Send a mail.\nWith\x1b[31m colour <b>and</b> markup.", "server": "post"}
NOW = {"name": "now", "description": "Tell the time.", "inputSchema": {"type": "object"}}


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    return written(tmp_path, {"tools": [NOW, MAIL, {**MAIL, "description": "Drop a letter.", "server": "letters"}]})


def written(tmp_path: Path, answer: Any) -> Path:
    path = tmp_path / "tools.json"
    path.write_text(answer if isinstance(answer, str) else json.dumps(answer), encoding="utf-8")
    return path


def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    assert cli.main([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_answer_has_the_fields_of_the_design(capsys: pytest.CaptureFixture[str]) -> None:
    report = printed(capsys, "tools", OWN)
    assert set(report) == {"count", "tokens_full", "tokens_resident", "tokens_index", "tokens_deferred", "reduction"}
    assert report["count"] == 126 and report["reduction"] == pytest.approx(0.78, abs=0.01)
    assert report["tokens_deferred"] == report["tokens_resident"] + report["tokens_index"]


def test_the_public_catalogue(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = printed(capsys, "tools", shared_data / "tools" / "catalogue_126_github_memory.json")
    assert (report["count"], report["tokens_full"]) == (126, 24_865)


def test_residents_are_named_together_or_one_by_one(catalogue: Path, capsys: pytest.CaptureFixture[str]) -> None:
    together = printed(capsys, "tools", catalogue, "--resident", "now", "post__send_mail")
    assert together == printed(capsys, "tools", catalogue, "--resident", "now", "--resident", "post__send_mail")
    assert together["tokens_resident"] > printed(capsys, "tools", catalogue, "--resident", "now")["tokens_resident"] > 0
    assert printed(capsys, "tools", catalogue)["tokens_resident"] == 0, "nothing is marked in it"


def test_the_off_switch_leaves_nothing_deferred(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = printed(capsys, "tools", OWN, "--tool-deferral=off")
    assert whole["tokens_deferred"] == whole["tokens_resident"] == whole["tokens_full"]
    assert whole["tokens_index"] == whole["reduction"] == 0
    monkeypatch.setenv("CC_SERVER_TOOL_DEFERRAL", "off")
    assert printed(capsys, "tools", OWN) == whole
    assert printed(capsys, "tools", OWN, "--tool-deferral", "on")["reduction"] > 0.7
    assert printed(capsys, "tools", OWN, "--resident", "bash", "--tool-deferral", "off") == whole


def test_a_name_of_two_servers_costs_the_same_resident_as_in_the_catalogue(
    catalogue: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = printed(capsys, "tools", catalogue, "--tool-deferral=off")
    assert whole["tokens_resident"] == whole["tokens_full"] and whole["reduction"] == 0


def test_people_are_told_that_no_tool_is_resident(catalogue: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tools", str(catalogue)]) == 0
    assert "No tool is resident: name with --resident" in capsys.readouterr().out
    assert cli.main(["tools", str(catalogue), "--resident", "now"]) == 0
    assert "No tool is resident" not in capsys.readouterr().out


def test_people_read_lines(catalogue: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tools", str(OWN)]) == 0
    assert "smaller by" in capsys.readouterr().out
    assert cli.main(["search", str(catalogue), "email"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4, "a header, a rule, and one line a hit, whatever stands in a description"
    assert "\x1b" not in "".join(lines) and "Send a mail. With [31m colour" in "".join(lines)


def test_hits_are_ranked_and_few(capsys: pytest.CaptureFixture[str]) -> None:
    hits = printed(capsys, "search", OWN, "assign a ticket to someone", "--top", 3)
    assert [set(hit) for hit in hits] == [{"name", "score"}] * 3
    assert hits[0]["name"] == "assign_ticket"
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)


def test_no_hit_is_no_error_and_says_what_to_try(catalogue: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "search", catalogue, "xyzzy") == []
    assert cli.main(["search", str(catalogue), "xyzzy"]) == 0
    assert "other words" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("{", "line 1: is not JSON"),
        ({"tools": []}, "holds no tool"),
        ({"tools": "all"}, "holds no list of tools"),
        ({"tools": [NOW, 7]}, "tool 2: is a number"),
        ({"tools": [{**NOW, "name": ["now"]}]}, "tool 1: field `name` is a list"),
        ({"tools": [{**NOW, "inputSchema": "object"}]}, "tool 1 (now): field `inputSchema` is a text"),
        ({"tools": [{**NOW, "description": {"en": "x"}}]}, "tool 1 (now): field `description` is an object"),
        ({"tools": [NOW, {**NOW, "description": "Else."}]}, "stands for two different tools"),
    ],
)
@pytest.mark.parametrize("verb", ["tools", "search"])
def test_a_hostile_catalogue_gets_one_line(
    verb: str, answer: Any, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, answer)
    assert cli.main([verb, str(path), *(["mail"] if verb == "search" else [])]) == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1
    assert str(path) in err and said in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tools", "nowhere.json"], "nowhere.json"),
        (["tools", str(OWN), "--resident", "raed_file"], "did you mean 'read_file'"),
        (["tools", str(OWN), "--tool-deferral", "no"], "--tool-deferral: is 'no'; use on or off"),
        (["search", str(OWN), "mail", "--top", "0"], "--top: is 0"),
        (["search", str(OWN), " "], "QUERY: is empty"),
        (["search", str(OWN)], "QUERY"),
    ],
)
def test_bad_usage_gets_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1 and said in err


def test_ten_thousand_tools_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, [{"name": f"tool_{i}", "description": "Do it."} for i in range(10_000)])
    assert printed(capsys, "tools", path)["count"] == 10_000
