"""What the README shows is what the project does: its commands run, its six turns are the simulation's."""

import hashlib
import re
import shlex
from pathlib import Path

import pytest
from test_six_turns import CHANNEL, EVICT_AT, SETTING, SHOWN, STRICT_WATERMARK, WATERMARK, WINDOW

from warmprefix import batch, cli
from warmprefix.channel import mentions
from warmprefix.figures import picture
from warmprefix.request import Blocks
from warmprefix.simulate import simulate
from warmprefix.tokens import Tokenizer

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, re.DOTALL)
COMMANDS = [
    line.split("#")[0].strip().removeprefix(".venv/bin/warmprefix ")
    for kind, text in BLOCKS
    if kind == "sh"
    for line in text.splitlines()
    if line.startswith(".venv/bin/warmprefix")
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_runs(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    assert cli.main(shlex.split(command)) == 0
    assert len(capsys.readouterr().out.splitlines()) > 5


def test_there_are_commands_to_run() -> None:
    assert len(COMMANDS) >= 4


@pytest.mark.parametrize("code", [text for kind, text in BLOCKS if kind == "python"])
def test_the_code_runs(
    code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    assert "- [user] ann: the build is red" in capsys.readouterr().out
    assert (tmp_path / "build/channel-watermarks.json").is_file()


def test_the_six_turns_are_those_of_the_simulation() -> None:
    (table,) = re.findall(r"<!-- six turns.*?-->\n((?:\|.*\n)+)", README)
    told = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in table.splitlines()[2:]]
    where = mentions(CHANNEL, ["@agent"])
    columns = []
    for strategy in (WINDOW, WATERMARK, STRICT_WATERMARK):
        steps = list(simulate(CHANNEL, where, strategy, Blocks(Tokenizer()), SETTING, evict_at=EVICT_AT))
        columns.append([" ".join(str(m.position) for m in step.shown) or "nothing" for step in steps])
    turns = [f"{step.turn}, cold" if step.cold else str(step.turn) for step in steps]
    assert told == [list(row) for row in zip(turns, map(str, where), *columns, strict=True)]
    assert columns == [[" ".join(map(str, rows)) or "nothing" for rows in SHOWN[name]] for name in SHOWN]


def test_the_notebooks_are_listed() -> None:
    assert re.findall(r"\]\(notebooks/(\w+)\.ipynb\)", README) == [path.stem for path in batch.notebooks()]


def test_the_pictures_are_pasted_as_they_are_offered() -> None:
    slugs = re.findall(r'src="figures/([\w-]+)\.light\.svg"', README)
    assert len(slugs) >= 4
    for slug in slugs:
        assert picture(slug, ROOT / "figures").replace(str(ROOT) + "/", "") in README


def test_the_data_are_what_their_table_says() -> None:
    listed = re.findall(
        r"^\| `([\w.]+)` \|.*\| `([0-9a-f]{64})` \|$", (ROOT / "data/README.md").read_text(), re.MULTILINE
    )
    files = {path.name for path in (ROOT / "data").iterdir()} - {"README.md"}
    assert {name for name, _ in listed} == files
    for name, digest in listed:
        assert hashlib.sha256((ROOT / "data" / name).read_bytes()).hexdigest() == digest, name
