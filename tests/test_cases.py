"""Lists of logs whose addressee is known, and what becomes of their rows."""

import json
from pathlib import Path

import pytest

from warmprefix import cases
from warmprefix.delivery import Limits
from warmprefix.errors import InputError
from warmprefix.request import Blocks

SAMPLES = Path(__file__).parent / "samples" / "cases.toml"
PUBLIC = Path(__file__).resolve().parents[2] / "shared" / "data" / "channels"


def test_every_sample_is_listed_with_its_mentions(blocks: Blocks) -> None:
    table = cases.side_by_side(cases.listed(SAMPLES), blocks)
    files = {path.name for path in SAMPLES.parent.iterdir()} - {"README.md", "cases.toml", "requests.jsonl"}
    assert set(table["case"]) == files
    assert (table["mentions"] == 7).all()
    assert table.set_index("case")["cursor"].to_dict()["import.log"] > 0, "an IRC log has minutes only"


def test_without_a_limit_every_row_is_shown_once(blocks: Blocks) -> None:
    table = cases.side_by_side(cases.listed(SAMPLES), blocks, Limits(rows=None, fetch=None))
    assert (table["shown"] == table["rows"]).all() and (table["limit"] == 0).all()


def test_public_cases_say_who_is_addressed(blocks: Blocks) -> None:
    if not PUBLIC.is_dir():
        pytest.skip(f"the public channel logs are not at {PUBLIC}")
    table = cases.side_by_side(cases.public(PUBLIC), blocks).set_index("case")
    for name, row in table.iterrows():
        right = json.loads((PUBLIC / str(name) / "expected.json").read_text())
        runs = right["replay"]
        strict, faithful = (runs[f"watermark_{cursor}_limit12_fetch30"] for cursor in ("strict", "faithful"))
        assert (row["messages"], row["mentions"]) == (right["messages"], right["mentions"])
        assert (row["shown"], row["limit"]) == (strict["distinct"], strict["unshown"])
        assert row["cursor"] == faithful["unshown"] - strict["unshown"]
        assert row["repeated"] == runs["window_limit12_fetch30"]["duplicated"]
    assert table.loc["irc_w3c_css_20131111", ["limit", "cursor"]].tolist() == [29, 60], "89 of 196 against 29"


def test_an_absent_folder_holds_no_case(tmp_path: Path) -> None:
    assert cases.public(tmp_path / "nowhere") == []


def test_one_text_stands_for_a_list_of_one(tmp_path: Path) -> None:
    path = tmp_path / "cases.toml"
    path.write_text("[[case]]\nsource = 'x'\nmention = 'scout'\nmention_id = '501'\nagent = ['scout', 'bo']\n")
    assert cases.listed(path) == [cases.Case("x", tmp_path / "x", None, None, ("scout",), ("501",), ("scout", "bo"))]


NONE = [
    "",
    "[[case]]\n",
    "[[case]]\nsource = 'x'\nmentoin = 'y'\n",
    "not toml",
    "case = []",
    "case = 'x'",
    "[case]\nsource = 'x'",
    "[[case]]\nsource = 'x'\nmention = [5]",
    "[[case]]\nsource = 'x'\nformat = ['irc']",
    "# \ud800",
]


@pytest.mark.parametrize("text", NONE)
def test_a_list_that_is_none_is_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "cases.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(InputError, match=r"cases\.toml"):
        cases.listed(path)


def test_a_log_in_which_nobody_is_addressed_is_refused(blocks: Blocks) -> None:
    (case, *_) = cases.listed(SAMPLES)
    with pytest.raises(InputError, match="import-team"):
        cases.side_by_side([cases.Case(case.name, case.source, mention=("@nobody",))], blocks)
