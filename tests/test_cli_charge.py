"""`warmprefix charge`: the right values of real logs, error rows among charged ones, prices, exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest

from warmprefix import cli

REQUESTS = Path(__file__).resolve().parents[2] / "shared" / "data" / "requests"
NAMES = ["A1", "A2", "A3", "A4a", "A4c", "A5", "A8", "A10", "O1", "O2", "G1", "G2"]
MARK = {"cache_control": {"type": "ephemeral"}}
HOUR = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


def body(*marks: dict[str, Any], model: str = "claude-sonnet-4-5") -> dict[str, Any]:
    parts = [{"type": "text", "text": " the" * 1200, **mark} for mark in marks]
    return {"model": model, "max_tokens": 8, "messages": [{"role": "user", "content": parts}]}


def written(path: Path, *lines: Any) -> str:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n")
    return str(path)


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    assert cli.main(["charge", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", NAMES)
def test_the_command_gives_the_right_values(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    if not REQUESTS.is_dir():
        pytest.skip(f"the request logs are not in {REQUESTS}")
    (log,) = REQUESTS.glob(f"{name}_*.jsonl")
    right = json.loads((REQUESTS / "expected.json").read_text())[log.stem]
    got = said(capsys, str(log))
    for i, row in enumerate(right.get("requests", [])):
        assert {key: got["requests"][i][key] for key in row} == row
    assert "hit" not in right or [row["read"] > 0 for row in got["requests"]] == right["hit"]
    totals = {("total" if key == "cumulative_input" else key): n for key, n in right.get("totals", {}).items()}
    assert {key: got["totals"][key] for key in totals} == totals
    assert got["totals"]["usd"] == pytest.approx(sum(row["usd"] for row in got["requests"]))


def test_rows_that_fail_are_told_and_the_others_are_charged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = written(
        tmp_path / "log.jsonl",
        body(MARK),
        body(*[MARK] * 5),
        body(MARK, HOUR),
        body(MARK, model="x-1"),
        "{",
        body(MARK),
    )
    got = said(capsys, log, code=1)
    assert [bool(row["error"]) for row in got["requests"]] == [False, True, True, True, True, False]
    assert [row["read"] for row in got["requests"]] == [0, 0, 0, 0, 0, 1200]
    for row, told in zip(got["requests"][1:5], ("5 cache markers", "1h", "provider", "JSON"), strict=True):
        assert told in row["error"] and "\n" not in row["error"] and row["usd"] is None
    assert got["totals"]["usd"] == pytest.approx(1200 * (3.75 + 0.3) / 1e6)
    assert cli.main(["charge", log]) == 1
    shown = capsys.readouterr().out
    assert shown.count("log.jsonl: line") == 4 and "genai-prices" in shown and "2026-11-01" in shown


def test_a_given_price_is_the_price(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = written(tmp_path / "log.jsonl", body(MARK), body(MARK))
    got = said(capsys, log, "--price", "input=10,cache_write_5m=20,cache_read=1")
    assert [row["usd"] for row in got["requests"]] == [0.024, 0.0012]
    assert got["prices"] == "as given"


def test_a_model_without_a_price_is_charged_all_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = written(tmp_path / "log.jsonl", body(MARK, model="claude-opus-5-99"))
    got = said(capsys, log)
    assert got["requests"][0]["write"] == 1200 and got["requests"][0]["usd"] is None and got["totals"]["usd"] is None
    assert cli.main(["charge", log]) == 0
    assert "no price is known for claude-opus-5-99; give it with --price" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["no/such.jsonl"], "no/such.jsonl"),
        (["empty.jsonl"], "empty.jsonl"),
        (["log.jsonl", "--provider", "nobody"], "nobody"),
        (["log.jsonl", "--price", "cheap"], "cheap"),
        (["log.jsonl", "--price", "output=3,input=1"], "output"),
        (["log.jsonl", "--price", "cache_read=3"], "input is missing"),
        (["log.jsonl", "--price", "input=nan"], "0 or more"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    arguments: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "log.jsonl", body(MARK))
    (tmp_path / "empty.jsonl").touch()
    assert cli.main(["charge", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1 and told in printed.err
