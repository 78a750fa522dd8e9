"""What runs report is one table: parameters and numbers, failures among them, the newest of two equal runs."""

import json
import math
import os
import shutil
from pathlib import Path

import pandas as pd
import pytest
from small_notebooks import write

from warmprefix import batch, cli
from warmprefix.errors import InputError
from warmprefix.results import MIME, report, reported

DECLARED = """\
limit: int | None = 12  # rows
share: float = 0.5  # of the input
names: tuple[str, ...] = ("window",)
figures: str = "drawn"  # folder for the figures"""
CODE = """\
from warmprefix.results import report
assert limit != 3, "three is\\ntoo few"
report({"window": {"turns": 10 * (limit or 100)}, "share": share})"""


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("batch")
    write(folder, "10_a", DECLARED, CODE, "report({'other': [1, len(names)]})", "figures")
    grid = {"limit": [20, 3, None], "share": [math.inf], "names": [["x", "y"]]}
    runs = batch.run(out=folder / "out", folder=folder, grid=grid, workers=2)
    assert [each.status for each in runs] == ["done", "failed", "done"]
    assert reported(runs[0].path) == {"window": {"turns": 200}, "share": None, "other": [1, 2]}
    return folder / "out"


def test_a_batch_is_one_table(out: Path) -> None:
    table = batch.results(out)
    assert list(table) == [
        *("notebook", "status", "figures", "limit", "names", "share"),
        *("reported.share", "window.turns", "other", "path", "error"),
    ]
    by_limit = table.set_index("limit")
    assert list(by_limit.index)[:2] == [3, 20], "in the order of the parameters, not of the hashes"
    assert by_limit.loc[20, "window.turns"] == 200 and table["window.turns"].dtype == "Int64"
    assert by_limit.loc[3, "status"] == "failed" and "AssertionError: three is" in by_limit.loc[3, "error"]
    assert set(table["share"]) == {math.inf} and set(table["names"]) == {("x", "y")}
    assert table["status"].value_counts().to_dict() == {"done": 2, "failed": 1}


def test_the_command_line_prints_the_same(out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["results", str(out), "--json", "--csv", str(tmp_path / "table.csv")]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["window.turns"] for row in rows] == [None, 200, 1000]
    assert (
        (tmp_path / "table.csv")
        .read_text()
        .splitlines()[0]
        .startswith("notebook,status,figures,limit,names,share,reported.share,window.turns")
    )
    assert cli.main(["results", str(out)]) == 0
    shown = capsys.readouterr().out
    assert (
        "1,000" in shown
        and "figures" not in shown
        and "share" not in shown.splitlines()[0].replace("reported.share", "")
    ), "what differs"


def test_each_notebook_is_a_table_of_its_own(out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(out, tmp_path, dirs_exist_ok=True)
    write(tmp_path, "20_b", "size: int = 1", "from warmprefix.results import report\nreport({'tokens': size / 3})")
    assert [each.status for each in batch.run(["20_b"], out=tmp_path, folder=tmp_path)] == ["done"]
    (tmp_path / "20_b.ipynb").unlink()
    assert cli.main(["results", str(tmp_path)]) == 0
    many, single = capsys.readouterr().out.split("\n\n")
    assert "window.turns" in many and not {"tokens", "size"} & set(many.split())
    assert "tokens    0.333333\n" in single and "window.turns" not in single


def test_of_equal_runs_the_newest_counts(out: Path, tmp_path: Path) -> None:
    path = next(path for path in out.iterdir() if reported(path).get("window") == {"turns": 200})
    text = path.read_text()
    for name, turns, second in [("10_a-old", 1, 10), ("10_a-new", 2, 20), ("10_a-also-old", 3, 15)]:
        copy = tmp_path / f"{name}.ipynb"
        copy.write_text(
            text.replace('"turns": 200', f'"turns": {turns}').replace('"figures": "', f'"figures": "{name}')
        )
        os.utime(copy, (second, second))
    assert batch.results(tmp_path)["window.turns"].tolist() == [2]


def test_what_is_no_run_is_left_out_or_named(out: Path, tmp_path: Path) -> None:
    write(tmp_path, "10_a", DECLARED)
    assert batch.results(tmp_path).empty
    for text in (
        "{",
        '{"cells": []}',
        '{"cells": [], "metadata": null}',
        '{"cells": [], "metadata": {"warmprefix": {}}}',
        '{"cells": ["x"], "metadata": {"warmprefix": {"notebook": "10_a", "parameters": {}}}}',
    ):
        (tmp_path / "broken.ipynb").write_text(text)
        with pytest.raises(InputError, match=r"broken\.ipynb: not a notebook"):
            batch.results(tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        batch.results(tmp_path / "none")


def test_a_report_is_a_table_for_people() -> None:
    shown = report({"window": {"turns": 30, "share": 0.25}, "watermark": {"turns": 1234}})._repr_mimebundle_()
    assert shown["text/plain"].split() == ["window", "watermark", "turns", "30", "1,234", "share", "0.25", "nan"]
    assert shown[MIME]["watermark"] == {"turns": 1234}
    table = pd.DataFrame({"way": ["a way that takes some more words than fifty characters"], "usd": [1.0]})
    for styled in (table, table.style.hide().format({"usd": "{:.2f}"})):
        shown = report({"usd": 1.0}, styled)._repr_mimebundle_()
        assert table["way"][0] in shown["text/html"] and shown[MIME] == {"usd": 1.0}
