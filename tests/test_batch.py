"""The strict runner: what it refuses, what it writes, how it resumes, and that it leaves no process behind."""

import errno
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_notebooks import gone, until, write

from warmprefix import batch, kernels
from warmprefix.errors import InputError
from warmprefix.parameters import checked, parameters

DECLARED = """\
limit: int | None = 12  # rows
share: float = 0.5  # of the input
names: tuple[str, ...] = ("window", "watermark")
side: Literal["a", "b"] = "a"
unread: int = 1"""
USED = "print(limit, share, names, side)"


def printed(path: str | Path) -> str:
    outputs = [output for cell in json.loads(Path(path).read_text())["cells"] for output in cell.get("outputs", [])]
    return "".join("".join(output.get("text", "")) for output in outputs)


def test_parameters_are_typed_literals_with_comments(tmp_path: Path) -> None:
    found = parameters(write(tmp_path, "10_a", DECLARED, "%matplotlib inline\n" + USED))
    assert [(p.name, p.value, p.comment, p.read) for p in found.values()] == [
        ("limit", 12, "rows", True),
        ("share", 0.5, "of the input", True),
        ("names", ("window", "watermark"), "", True),
        ("side", "a", "", True),
        ("unread", 1, "", False),
    ]
    assert found["limit"].type == "int | None"


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ("limit = 12", "line 1: not a typed literal"),
        ("a: int = 1\nb: int = a + 1", "line 2: malformed node"),
        ("limit: int = 'x'", "'x' is not `int`"),
        ("limit: int = True", "True is not `int`"),
        ("limit: int", "not a typed literal"),
        ("limit: int = ", "line 1: invalid syntax"),
        ("names: set[str] = {[]}", "line 1: unhashable type"),
    ],
)
def test_a_cell_that_is_no_list_of_typed_literals_is_refused(tmp_path: Path, declared: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        parameters(write(tmp_path, "10_a", declared))
    assert problem in str(caught.value)
    assert "10_a.ipynb" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("limit=none", None),
        ("limit=7", 7),
        ("share=1", 1.0),
        ("names=window", ("window",)),
        ("names=window, unstable", ("window", "unstable")),
        ("names=['a,b']", ("a,b",)),
        ("side=b", "b"),
    ],
)
def test_text_from_a_command_line_gets_the_declared_type(tmp_path: Path, text: str, value: Any) -> None:
    path = write(tmp_path, "10_a", DECLARED, USED)
    (got,) = checked(path, parameters(path), {}, [text]).values()
    assert (got, type(got)) == (value, type(value))


def test_text_that_is_nested_beyond_all_bounds_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "10_a", DECLARED, USED)
    with pytest.raises(InputError, match=r"is not `int \| None`"):
        checked(path, parameters(path), {}, ["limit=" + "-" * 3_000 + "1"])


def test_text_parameters_stay_text(tmp_path: Path) -> None:
    path = write(tmp_path, "10_a", "source: str = ''", "source")
    for text in ("12", "true", "none", "a = b, c", "#general"):
        assert checked(path, parameters(path), {}, [f"source={text}"]) == {"source": text}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"limt": 3}, "parameter limt: unknown; did you mean `limit`?"),
        ({"zzz": 3}, "parameter zzz: unknown; choose from: limit, share, names, side, unread"),
        ({"limit": "many"}, "parameter limit: 'many' is not `int | None`; the default is 12"),
        ({"limit": 2.0}, "parameter limit: 2.0 is not `int | None`"),
        ({"side": "c"}, "parameter side: 'c' is not `Literal['a', 'b']`"),
        ({"names": ["a", 1]}, "1 is not `str`"),
        ({"unread": 2}, "parameter unread: no cell reads it"),
    ],
)
def test_strict_about_values(tmp_path: Path, values: dict[str, Any], message: str) -> None:
    write(tmp_path, "10_a", DECLARED, USED)
    with pytest.raises(InputError) as caught:
        batch.run(["10"], out=tmp_path / "out", folder=tmp_path, values=values)
    assert message in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_names_of_notebooks(tmp_path: Path) -> None:
    a, b, c = (write(tmp_path, stem, "") for stem in ("10_a", "20_b", "20_c"))
    assert batch.notebooks([], tmp_path) == [a, b, c]
    assert batch.notebooks(["20_c", "10", str(a)], tmp_path) == [c, a]
    for wrong, message in [("20", "means 2 notebooks"), ("10_aa", "did you mean `10_a`?"), ("99", "no such notebook")]:
        with pytest.raises(InputError) as caught:
            batch.notebooks([wrong], tmp_path)
        assert message in str(caught.value)


def test_sets_and_grids(tmp_path: Path) -> None:
    write(tmp_path, "10_a", DECLARED, USED)
    (tmp_path / "params.yaml").write_text("smoke: {10_a: {limit: 2, names: [x]}}\npublish: {20_b: }\n")
    assert batch.load_set("smoke", tmp_path) == {"10_a": {"limit": 2, "names": ["x"]}}
    assert batch.load_set("publish", tmp_path) == {"20_b": {}}
    for text, message in [("{}", "is empty"), ("", "is empty"), ("limit: []", "not a list of values")]:
        (tmp_path / "grid.yaml").write_text(text)
        with pytest.raises(InputError, match=message):
            batch.load_grid(tmp_path / "grid.yaml")
    with pytest.raises(InputError, match="grid, parameter limit: has no values"):
        batch.run(out=tmp_path / "out", folder=tmp_path, grid={"limit": []})
    with pytest.raises(InputError, match="set smok: unknown; did you mean `smoke`"):
        batch.load_set("smok", tmp_path)
    with pytest.raises(InputError, match="set publish: has no 10_a"):
        batch.run(["10"], out=tmp_path / "out", folder=tmp_path, set_name="publish")
    (tmp_path / "grid.yaml").write_text("limit: 3")
    with pytest.raises(InputError, match="parameter limit: not a list of values"):
        batch.load_grid(tmp_path / "grid.yaml")
    for broken in (
        "limit: [3",
        "- limit",
        "limit: [3]\nlimit: [4]",
        "limit: [2026-13-45]",  # no day of any calendar
        "limit: [!!int x]",
        "limit: [!!bool x]",
        "limit: [!!timestamp x]",
        "limit: " + "[" * 3_000,
        "!!map limit",
    ):
        (tmp_path / "grid.yaml").write_text(broken)
        with pytest.raises(InputError, match=r"grid\.yaml: not "):
            batch.load_grid(tmp_path / "grid.yaml")
    (tmp_path / "grid.yaml").write_text("limit: [3]\nside: [a]\nlimit: [4]\n")
    with pytest.raises(InputError, match=r"limit stands there twice .* line 3,"):
        batch.load_grid(tmp_path / "grid.yaml")


class _Planned(batch.Executor):
    """An executor that runs nothing, for tests of the plan; it is what a cluster's client offers."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "batch.Future[Any]":
        future: batch.Future[Any] = batch.Future()
        future.set_result(args[0].run)
        return future


def plan(folder: Path, **options: Any) -> list[batch.Run]:
    return batch.run(["10"], out=folder / "out", folder=folder, executor=_Planned(), **options)


def test_what_cannot_hold_the_runs_is_refused_before_any(tmp_path: Path) -> None:
    write(tmp_path, "10_a", DECLARED, USED)
    (tmp_path / "file").write_text("kept")
    for out in ("file", "file/deeper"):
        with pytest.raises(InputError, match=rf"{out}: .*; name a folder that can be written to"):
            batch.run(["10"], out=tmp_path / out, folder=tmp_path, executor=_Planned())
    assert (tmp_path / "file").read_text() == "kept"


def test_a_folder_that_takes_no_file_is_refused_unless_all_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(**_: Any) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    write(tmp_path, "10_a", DECLARED, USED)
    monkeypatch.setattr(batch.tempfile, "TemporaryFile", refused)
    with pytest.raises(InputError, match="out: Permission denied; name a folder that can be written to"):
        plan(tmp_path)
    monkeypatch.undo()
    (planned,) = plan(tmp_path)
    Path(planned.path).touch()
    monkeypatch.setattr(batch.tempfile, "TemporaryFile", refused)
    assert plan(tmp_path) == [planned]


def test_a_text_that_no_path_can_be_names_no_file(tmp_path: Path) -> None:
    write(tmp_path, "10_a", 'text: str = "a"', "print(text)")
    assert len({plan(tmp_path, texts=[f"text={text}"])[0].path for text in ("(" * 300, "a\0b", "x" * 5_000)}) == 3


def test_values_give_way_in_order(tmp_path: Path) -> None:
    write(tmp_path, "10_a", DECLARED, USED)
    (tmp_path / "params.yaml").write_text("smoke: {10_a: {limit: 1, share: 0.1, side: b}}")
    grid = {"names": [["x"], ["y", "z"]]}
    first, second = plan(tmp_path, set_name="smoke", values={"limit": 2, "share": 0.2}, texts=["limit=3"], grid=grid)
    assert first.parameters == {"limit": 3, "share": 0.2, "names": ("x",), "side": "b", "unread": 1}
    assert second.parameters["names"] == ("y", "z")
    assert (first.set, first.status) == ("smoke", "planned")


def test_the_name_of_a_result_is_what_it_depends_on(tmp_path: Path) -> None:
    def name(**options: Any) -> str:
        (row,) = plan(tmp_path, **options)
        return row.path

    write(tmp_path, "10_a", "limit: float = 1.0\nsource: str = 'rows.txt'", "print(limit, source)")
    plain = name()
    assert name(values={"limit": 1}) == plain, "a default given by hand is the same run"
    assert name(values={"limit": 2}) != plain
    (tmp_path / "rows.txt").write_text("one")
    with_file = name()
    (tmp_path / "rows.txt").write_text("two")
    assert len({plain, with_file, name()}) == 3, "a file that a parameter names is part of the run"
    before = name()
    write(tmp_path, "10_a", "limit: float = 1.0\nsource: str = 'rows.txt'", "print(limit, source, 1)")
    assert name() != before


def test_another_log_in_a_list_of_logs_is_another_run(tmp_path: Path) -> None:
    write(tmp_path, "10_a", "logs: str = 'list.toml'", "print(logs)")
    (tmp_path / "list.toml").write_text("[[case]]\nsource = 'own.log'\n")
    (tmp_path / "own.log").write_text("before")
    (before,) = plan(tmp_path)
    assert plan(tmp_path)[0].path == before.path
    (tmp_path / "own.log").write_text("after")
    assert plan(tmp_path)[0].path != before.path
    (tmp_path / "list.toml").write_text("no list")
    assert plan(tmp_path)[0].path != before.path


def test_what_a_run_draws_does_not_make_it_another_run(tmp_path: Path) -> None:
    write(tmp_path, "10_a", "figures: str = 'drawn'", "print(figures)")
    (before,) = plan(tmp_path)
    (tmp_path / "drawn").mkdir()
    (tmp_path / "drawn" / "10-a.csv").write_text("1")
    assert [each.path for each in plan(tmp_path)] == [before.path], "else no batch that draws could be resumed"
    assert plan(tmp_path, values={"figures": "elsewhere"})[0].path != before.path


@pytest.fixture(scope="module")
def batches(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[batch.Run], list[batch.Run]]:
    """The same batch of a good and a failing notebook, run twice: first one by one, then two at a time."""
    folder = tmp_path_factory.mktemp("note books")  # a space in the path, as users have
    good = ("import os, sys, warnings", "warnings.warn('look')\nprint(os.getcwd(), file=sys.stderr)", "limit, share")
    styled = """\
name = f"T_{os.urandom(3).hex()[:5]}"
display({"text/html": f'<table id="{name}"><td id="{name}_row0">', "text/plain": repr(object())}, raw=True)"""
    write(folder, "10_good", "limit: int | None = 12\nshare: float = 0.5", *good, "print('{!r}'.format(share))", styled)
    write(folder, "20_bad", "limit: int | None = 12", "print('before')", "raise LookupError(f'no\\n{limit}')")
    options: dict[str, Any] = {"folder": folder, "texts": ["limit=none"]}
    first = batch.run(out=folder / "one", **options)
    second = batch.run(out=folder / "two", workers=2, **options)
    return folder, first, second


class _Elsewhere(batch.Executor):
    """An executor that sends each job through pickle, as a cluster does, and runs it in the calling thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "batch.Future[Any]":
        function, arguments = pickle.loads(pickle.dumps((fn, args)))
        future: batch.Future[Any] = batch.Future()
        try:
            future.set_result(pickle.loads(pickle.dumps(function(*arguments))))
        except Exception as error:
            future.set_exception(error)
        return future


class _Broken(batch.Executor):
    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "batch.Future[Any]":
        future: batch.Future[Any] = batch.Future()
        future.set_exception(RuntimeError("the worker\ndied"))
        return future


Batches = tuple[Path, list[batch.Run], list[batch.Run]]


def test_a_failing_run_keeps_its_notebook_and_the_batch_goes_on(batches: Batches) -> None:
    _, (good, bad), _ = batches
    assert (good.status, good.error, bad.status) == ("done", "", "failed")
    assert bad.error == "cell [4]: LookupError: no None"
    assert bad.path.endswith(".failed.ipynb") and "before" in printed(bad.path)
    assert batch.exit_code([good, bad]) == 1 and batch.exit_code([good]) == 0


def test_kernels_run_in_the_folder_of_the_notebook_and_keep_their_warnings(batches: Batches) -> None:
    folder, (good, _), _ = batches
    assert "UserWarning: look" in printed(good.path)
    assert str(folder) in printed(good.path)
    assert "0.5" in printed(good.path)


def test_two_runs_write_the_same_bytes(batches: Batches) -> None:
    _, first, second = batches
    for a, b in zip(first, second, strict=True):
        assert a.path != b.path and Path(a.path).name == Path(b.path).name
        assert Path(a.path).read_bytes() == Path(b.path).read_bytes()


def test_any_executor_does_the_same(batches: Batches) -> None:
    folder, (good, _), _ = batches
    options: dict[str, Any] = {"folder": folder, "texts": ["limit=none"], "executor": _Elsewhere()}
    (same,) = batch.run(["10"], out=folder / "three", **options)
    assert same.status == "done" and Path(same.path).read_bytes() == Path(good.path).read_bytes()
    (again,) = batch.run(["10"], out=folder / "three", **options)
    assert again.status == "cached" and again.path == same.path


def test_a_lost_worker_is_a_failed_run(tmp_path: Path) -> None:
    write(tmp_path, "10_a", "")
    (row,) = batch.run(out=tmp_path / "out", folder=tmp_path, executor=_Broken())
    assert (row.status, row.path, row.error) == ("failed", "", "RuntimeError: the worker died")


def test_only_results_are_left_in_the_folder(batches: Batches) -> None:
    folder, first, _ = batches
    assert sorted(os.listdir(folder / "one")) == sorted(Path(each.path).name for each in first)


def test_no_kernel_is_left(batches: Batches) -> None:
    assert not kernels._alive


SLOW = """\
import os, pathlib, time
pathlib.Path("pid").write_text(str(os.getpid()))
while not pathlib.Path("go").exists():
    time.sleep(0.05)"""
BATCH = """\
from pathlib import Path
from warmprefix import batch, kernels
batch.run(out="out", folder=Path.cwd(), workers=2)"""


def start(folder: Path) -> "subprocess.Popen[str]":
    """A batch of its own process whose second notebook waits for a file; returns when that one has started."""
    pid = folder / "pid"
    pid.unlink(missing_ok=True)
    environment = {**os.environ, "TMPDIR": str(folder)}
    child = subprocess.Popen(
        [sys.executable, "-c", BATCH], cwd=folder, env=environment, text=True, stderr=subprocess.PIPE
    )
    assert until(lambda: pid.exists() and bool(pid.read_text()), 30)
    return child


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_a_killed_or_interrupted_batch_leaves_no_kernel_and_resumes(tmp_path: Path) -> None:
    write(tmp_path, "10_quick", "", "print('quick')")
    write(tmp_path, "20_waits", "", SLOW)
    child = start(tmp_path)
    assert until(lambda: len(list((tmp_path / "out").glob("10_quick-*.ipynb"))) == 1, 30)
    child.kill()
    child.communicate()
    assert until(lambda: gone(int((tmp_path / "pid").read_text())), 5)

    child = start(tmp_path)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=10)
    assert child.returncode and "KeyboardInterrupt" in errors
    assert gone(int((tmp_path / "pid").read_text()))

    (tmp_path / "go").touch()
    assert [each.status for each in batch.run(out=tmp_path / "out", folder=tmp_path)] == ["cached", "done"]
    assert not list((tmp_path / "out").glob("*.failed.ipynb")), "what failed before is there whole now"


def test_what_killed_batches_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left, ours, other = (tmp_path / f"{batch._scratch()}{who}-a" for who in (ended.pid, os.getpid(), "mine"))
    with monkeypatch.context() as there:
        there.setattr(batch.socket, "gethostname", lambda: "elsewhere")
        elsewhere = tmp_path / f"{batch._scratch()}{ended.pid}-b"  # its process may be alive, on its own machine
    for each in (left, ours, other, elsewhere):
        (each / "kernel").mkdir(parents=True)
    batch._tidy(tmp_path)
    assert {*tmp_path.iterdir()} == {ours, other, elsewhere}


def test_the_figures_of_a_turned_knob_go_beside_their_notebook(tmp_path: Path) -> None:
    source = batch.NOTEBOOKS / "30_strategies.ipynb"
    plain, turned, told = (
        batch._plan([source], tmp_path, batch.NOTEBOOKS, "", {}, texts, {})[0].run
        for texts in ([], ["evict_at=7"], ["evict_at=7", "figures=here"])
    )
    assert plain.parameters["figures"] == "../build/figures"
    assert (batch.NOTEBOOKS / turned.parameters["figures"]).resolve() == Path(turned.path).with_suffix("").resolve()
    assert told.parameters["figures"] == "here"
