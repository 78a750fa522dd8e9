"""The command line: every verb's JSON and table, the real cases, and one clear line for every kind of bad input."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from warmprefix import calibrate, cli
from warmprefix.datafiles import DATA

ROOT = Path(__file__).resolve().parents[1]
CHANNELS = ROOT.parent / "shared" / "data" / "channels"
SAMPLE = str(DATA / "channel.jsonl")

# The exact arguments of each public case; who is addressed stands in its meta.json.
CASES = {
    "irc_w3c_css_20131111": [
        *("channel.log", "--format", "irc", "--mention", r"^\s*(?i:relay|recorder|issuebot)\s*[,:]"),
        *("--agent", "relay", "--agent", "recorder", "--agent", "issuebot"),
    ],
    "slack_houston_general": [".", "--format", "slack", "--mention-id", "U30215248"],
    "discord_nous_200": ["channel.json", "--format", "discord", "--mention-id", "300000000000000001"],
    "zulip_bot_topic_200": [".", "--format", "zulip", "--mention-id", "900001", "--agent", "helper"],
}
RUNS = {
    "window_limit12_fetch30": ["--strategy", "window"],
    "watermark_strict_limit_none_fetch_none": [
        *("--strategy", "watermark", "--cursor", "strict", "--limit", "none", "--fetch", "none"),
    ],
    "watermark_strict_limit12_fetch30": ["--strategy", "watermark", "--cursor", "strict"],
    "watermark_faithful_limit12_fetch30": ["--strategy", "watermark"],
}


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert cli.main([*arguments, "--json"]) in (0, 1)
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("own_rows", ["keep", "drop"])
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("case", CASES)
def test_public_logs_replay_to_their_right_values(
    case: str, run: str, own_rows: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if not CHANNELS.is_dir():
        pytest.skip(f"the public channel logs are not at {CHANNELS}")
    right = json.loads((CHANNELS / case / "expected.json").read_text())
    source, *arguments = CASES[case]
    got = said(capsys, "replay", str(CHANNELS / case / source), *arguments, *RUNS[run], "--own-rows", own_rows)
    (sums,) = got["strategies"].values()
    wanted = right["replay" if own_rows == "keep" else "replay_without_bot_messages"][run]
    assert {name: sums[name] for name in ("turns", "shown", "distinct", "duplicated", "unshown")} == {
        name: wanted[name] for name in ("turns", "shown", "distinct", "duplicated", "unshown")
    }
    if own_rows == "keep":
        facts = got["channel"]
        assert {name: facts[name] for name in ("messages", "authors", "mentions", "mention_index")} == {
            name: right[name] for name in ("messages", "authors", "mentions", "mention_index")
        }
        assert facts["gaps"] == pytest.approx(right["gaps"], abs=5e-4)


def test_replay_says_all_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    got = said(capsys, "replay", SAMPLE, "--mention", "@claude", "--evict-at", "15")
    assert set(got["channel"]) == {"messages", "authors", "mentions", "mention_index", "gaps"}
    assert list(got["strategies"]) == ["window", "watermark", "unstable"]
    fields = "turns shown distinct duplicated unshown shown_chars duplicated_tokens total_input cached cache_share"
    for sums in got["strategies"].values():
        assert set(sums) == {*fields.split(), "new_per_warm_turn"}
        assert 0 < sums["cached"] < sums["total_input"]
        assert sums["cache_share"] == sums["cached"] / sums["total_input"]
    # Evicted at 15, the process is shown again what it had seen: not a duplicate within its own session.
    marked = got["strategies"]["watermark"]
    assert marked["duplicated"] == 0 and marked["shown"] > marked["distinct"]


def test_a_table_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["replay", SAMPLE, "--mention", "@claude", "--strategy", "watermark"]) == 0
    shown = capsys.readouterr().out
    assert "200 messages by 5 authors, 30 mentions" in shown
    assert "min 1, median 4" in shown and "watermark" in shown and "window" not in shown


def test_advice_is_a_table_a_figure_and_words(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["advise", SAMPLE, "--mention", "@claude"]) == 0
    shown = capsys.readouterr().out
    assert "200 messages by 5 authors, 30 mentions" in shown and "published" in shown and "Take " in shown
    figure = Path("build/advice/65-front.light.svg")
    assert shown.rstrip().endswith(str(figure)) and figure.is_file()


def test_advice_for_machines_agrees_with_replay(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    asked = [SAMPLE, "--mention", "@claude"]
    got = said(capsys, "advise", *asked, "--figure", str(tmp_path / "here"))
    sums = said(capsys, "replay", *asked)["strategies"]
    assert got["channel"]["mentions"] == 30
    for name, strategy in (("published", "watermark"), ("window", "window")):
        told = got[name]
        assert (told["limit"], told["body_limit"], told["fetch"], told["cursor"]) == (12, 600, 30, "faithful")
        assert {key: told[key] for key in ("total_input", "new_per_warm_turn")} == {
            key: sums[strategy][key] for key in ("total_input", "new_per_warm_turn")
        }
    assert [each["total_input"] for each in got["front"]] == sorted(each["total_input"] for each in got["front"])
    best = got["recommended"]
    assert best in got["front"] and 0 < got["gain"]["low"] < got["gain"]["median"] < got["gain"]["high"]
    asked += ["--limit", str(best["limit"]), "--body-limit", str(best["body_limit"]), "--fetch", str(best["fetch"])]
    replayed = said(capsys, "replay", *asked, "--strategy", "watermark", "--cursor", best["cursor"])["strategies"]
    assert replayed["watermark"]["total_input"] == best["total_input"]
    assert Path(got["figure"]).parent == tmp_path / "here"


@pytest.mark.skipif(sys.platform == "darwin", reason="its file names are UTF-8")
def test_a_name_that_is_no_utf_8_is_written_with_a_stand_in(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = tmp_path / "caf\udce9.jsonl"
    log.write_text('{"id": "1", "author": "ann", "text": "@claude hi", "created_at": 1}\n')
    said(capsys, "advise", str(log), "--mention", "@claude", "--figure", str(tmp_path))
    assert "caf\ufffd.jsonl" in (tmp_path / "65-front.json").read_text(encoding="utf-8")
    (tmp_path / "caf\udce9").mkdir()
    ran = {"cells": [], "metadata": {"warmprefix": {"notebook": "10_a", "parameters": {}}}}
    (tmp_path / "caf\udce9" / "10_a.ipynb").write_text(json.dumps(ran))
    said(capsys, "results", str(tmp_path / "caf\udce9"), "--csv", str(tmp_path / "runs.csv"))
    assert "caf\ufffd/10_a.ipynb" in (tmp_path / "runs.csv").read_text(encoding="utf-8")


def test_too_few_mentions_are_an_answer_and_no_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = tmp_path / "short.jsonl"
    rows = [{"id": str(i), "author": "ann", "text": "@claude hi" if i % 3 else "ok", "created_at": i} for i in range(6)]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    got = said(capsys, "advise", str(log), "--mention", "@claude", "--figure", str(tmp_path))
    assert got["recommended"] is None and got["gain"] == {"median": None, "low": None, "high": None}
    assert "too few" in got["why"] and got["front"] and got["published"]


BAD: dict[str, tuple[list[str], str]] = {
    "an unknown option": (["replay", SAMPLE, "--mentoin", "x"], "--mentoin"),
    "an unknown verb": (["repaly"], "repaly"),
    "an unknown strategy": (["replay", SAMPLE, "--mention", "@claude", "--strategy", "windwo"], "windwo"),
    "nobody addressed": (["replay", SAMPLE], "--mention"),
    "no match": (["replay", SAMPLE, "--mention", "@nobody"], "@nobody"),
    "no such id": (["replay", SAMPLE, "--mention-id", "U1"], "U1"),
    "an empty pattern": (["replay", SAMPLE, "--mention", ""], "every message"),
    "no pattern": (["replay", SAMPLE, "--mention", "("], "regular expression"),
    "an unknown agent": (["replay", SAMPLE, "--mention", "@claude", "--agent", "zed"], "zed"),
    "agents in one": (["replay", SAMPLE, "--mention", "@claude", "--agent", "ann,bo"], "give --agent once for each"),
    "an empty source": (["replay", "", "--mention", "x"], "names nothing"),
    "an empty log": (["charge", ""], "argument LOG: names nothing"),
    "an empty catalogue": (["tools", " "], "argument CATALOGUE: names nothing"),
    "an empty grid": (["run", "10", "--grid", ""], "argument --grid: names nothing"),
    "an empty folder of runs": (["results", ""], "argument DIR: names nothing"),
    "an empty folder for figures": (["figures", "--out", ""], "argument --out: names nothing"),
    "an empty folder for advice": (["advise", SAMPLE, "--mention", "x", "--figure", ""], "--figure: names nothing"),
    "an eviction past the end": (["replay", SAMPLE, "--mention", "@claude", "--evict-at", "31"], "--evict-at 31"),
    "a limit that is none": (["replay", SAMPLE, "--mention", "@claude", "--limit", "-1"], "--limit"),
    "nothing fetched": (["replay", SAMPLE, "--mention", "@claude", "--fetch", "0"], "fetch"),
    "no such file": (["replay", "no/such/file", "--mention", "x"], "no/such/file"),
    "an unknown notebook": (["run", "31"], "31"),
    "an unknown parameter": (["run", "30", "-p", "evcit_at=3"], "evict_at"),
    "an unknown set": (["run", "30", "--set", "smok"], "smoke"),
    "an unreadable grid": (["run", "30", "--grid", "no-grid.yaml"], "no-grid.yaml"),
    "advice on nobody": (["advise", SAMPLE], "--mention"),
    "a negative price": (["advise", SAMPLE, "--mention", "@claude", "--price", "-1"], "--price"),
    "no price": (["advise", SAMPLE, "--mention", "@claude", "--price", "nan"], "--price"),
    "a process that answers nobody": (["advise", SAMPLE, "--mention", "@claude", "--session", "0"], "--session 0"),
    "too few channels": (["claims", "--channels", "3"], "--channels 3"),
    "a negative seed": (["generate", "--seed", "-1", "--out", "x"], "--seed"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_exit_2(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, named = BAD[name]
    monkeypatch.chdir(tmp_path)
    assert cli.main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1 and printed.err.startswith("warmprefix: ")
    assert named in printed.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b'{"id": "1", "author": "ann", "text": "@claude hi", "created_at": 1}\n{"id": "2", "auth', "line 2"),
        (b"", ""),
        (b"\xff\xfe\xff", ""),
        (b'{"id": "1", "author": "ann", "text": "hi", "created_at": "soon"}\n', "created_at"),
    ],
)
def test_a_broken_log_names_file_and_place(
    content: bytes, place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "broken.jsonl"
    log.write_bytes(content)
    assert cli.main(["replay", str(log), "--mention", "@claude"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "broken.jsonl" in error and place in error


def test_the_module_runs_and_a_closed_pipe_is_no_error() -> None:
    command = f"'{sys.executable}' -m warmprefix replay '{SAMPLE}' --mention @claude --json | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout == "{\n" and done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_device_is_one_line(unbuffered: str) -> None:
    command = [sys.executable, "-m", "warmprefix", "replay", str(SAMPLE), "--mention", "@claude"]
    with open("/dev/full", "w") as full:
        environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment)
    assert done.returncode == 2
    assert done.stderr.startswith("warmprefix: standard output: ") and done.stderr.count("\n") == 1


def test_a_terminal_that_lacks_a_letter_gets_its_number() -> None:
    command = [sys.executable, "-m", "warmprefix", "charge", "--help"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert r"cache_read=0.3,\u2026" in done.stdout and done.stderr == ""


def test_json_stays_json_where_a_terminal_lacks_a_letter(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text('{"tools": [{"name": "café", "inputSchema": {"type": "object"}}]}', "utf-8")
    command = [sys.executable, "-m", "warmprefix", "search", str(tmp_path / "tools.json"), "café", "--json"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert "café" in json.dumps(json.loads(done.stdout), ensure_ascii=False)


@pytest.mark.parametrize("arguments", [["generate", "--out", "taken"], ["results", ".", "--csv", "taken/runs.csv"]])
def test_a_place_that_cannot_be_written_to_is_one_line_with_a_remedy(
    arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("taken").touch()
    assert cli.main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1
    assert printed.err.startswith("warmprefix: taken: ") and "; check the path" in printed.err


def test_generate_writes_the_committed_channel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = said(capsys, "generate", "--out", str(tmp_path))
    assert written["seed"] == calibrate.SEED
    for name in ("channel.jsonl", "replies.txt"):
        assert (tmp_path / name).read_bytes() == (DATA / name).read_bytes()
