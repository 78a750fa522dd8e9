"""A batch on a Dask cluster: the same bytes, one line where it is out of reach, every run though a worker dies."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from small_notebooks import gone, until, write

from warmprefix import batch, cli
from warmprefix.errors import InputError
from warmprefix.executors import Cluster

IN_PROC = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
RUNS = 24
DECLARED = "number: int = 0  # of the run\npause: float = 0.0  # seconds"
NOTEBOOK = """\
import os, pathlib, time
pathlib.Path(f"{number}-{os.getpid()}-{os.getppid()}.pid").touch()
time.sleep(pause)
from warmprefix.results import report
report({"square": number**2})"""


def unanswered() -> str:
    """An address on which nobody listens."""
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        (unanswered(), "no Dask scheduler answers"),
        ("nowhere", "missing port number"),
        ("gopher://127.0.0.1:70", "unknown address scheme"),
        ("tls://127.0.0.1:70", "TLS expects"),
    ],
    ids=["unanswered", "no port", "unknown scheme", "no certificate"],
)
def test_a_scheduler_out_of_reach_is_one_clear_line(
    address: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(batch, "Cluster", partial(Cluster, patience=0.5))
    kept = tmp_path / "out" / "10_a-0.ipynb"
    kept.parent.mkdir()
    kept.touch()
    path = write(tmp_path, "10_a", DECLARED, NOTEBOOK)
    assert cli.main(["run", str(path), "--scheduler", address, "--out", str(kept.parent)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"warmprefix: scheduler {address}: {problem}") and error.count("\n") == 1
    assert list(kept.parent.iterdir()) == [kept]


def test_another_service_at_that_port_is_no_scheduler() -> None:
    import socket

    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        with pytest.raises(InputError, match="no Dask scheduler answers"):
            Cluster(f"127.0.0.1:{mute.getsockname()[1]}", patience=0.5)


def test_a_bad_grid_is_told_before_the_scheduler_is_asked(tmp_path: Path) -> None:
    write(tmp_path, "10_a", DECLARED, NOTEBOOK)
    with pytest.raises(InputError, match="did you mean `number`"):
        batch.run(out=tmp_path / "out", folder=tmp_path, grid={"numbr": [1]}, scheduler=unanswered())


def start(folder: Path, what: str, *arguments: str) -> "subprocess.Popen[bytes]":
    """A scheduler or a worker as a process of its own; it logs to a file."""
    with open(folder / f"{what}.log", "ab") as log:
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", *arguments, "--no-dashboard"]
        return subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[tuple[str, list["subprocess.Popen[bytes]"]]]:
    """The address of a scheduler of its own process, and that many workers of theirs, one run at a time each."""
    scheduler = start(folder, "scheduler", "--host", "127.0.0.1", "--port", "0")
    started = []
    try:
        log = folder / "scheduler.log"
        assert until(lambda: "Scheduler at:" in log.read_text(), 30), log.read_text()
        address = re.search(r"Scheduler at: +(\S+)", log.read_text()).group(1)  # type: ignore[union-attr]
        started = [start(folder, "worker", address, "--no-nanny", "--nthreads", "1") for _ in range(workers)]
        yield address, started
    finally:
        for process in (*started, scheduler):
            process.kill()  # asked to end, a worker whose scheduler ends as well may wait for it for ever
            process.wait()


def test_a_cluster_does_the_same_and_when_it_is_gone_that_is_one_line(tmp_path: Path) -> None:
    write(tmp_path, "10_a", DECLARED, NOTEBOOK)
    (here,) = batch.run(out=tmp_path / "here", folder=tmp_path)
    with cluster(tmp_path, workers=1) as (address, (worker,)):
        (there,) = batch.run(out=tmp_path / "there", folder=tmp_path, scheduler=address)
        assert (there.status, there.error) == ("done", "")
        assert Path(there.path).read_bytes() == Path(here.path).read_bytes()
        with Cluster(address, patience=0.5) as executor:
            os.kill(worker.pid, signal.SIGKILL)
            with pytest.raises(InputError, match="has no worker left"):
                list(executor.completed([executor.submit(pow, 2, 3)]))
        with pytest.raises(InputError, match=f"has no worker; start one: dask worker {address}"):
            Cluster(address, patience=0.5)


def grid(folder: Path) -> list[str]:
    """The command of a batch of 24 runs."""
    notebook = write(folder, "10_a", DECLARED, NOTEBOOK)
    (folder / "grid.yaml").write_text(f"number: {list(range(RUNS))}\n")
    return ["run", str(notebook), "--grid", str(folder / "grid.yaml"), "--out", str(folder / "out")]


def finished(folder: Path) -> set[str]:
    return {path.name for path in (folder / "out").glob("10_a-*.ipynb")}


def kernels(folder: Path, parent: int | None = None) -> list[int]:
    """The process ids of all kernels, or of those that this parent started."""
    pids = [path.stem.split("-")[1:] for path in folder.glob("*.pid")]
    return [int(pid) for pid, started_by in pids if parent in (None, int(started_by))]


@IN_PROC
@pytest.mark.slow
def test_a_batch_killed_half_way_resumes_with_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [*grid(tmp_path), "--workers", "2", "--json"]
    child = subprocess.Popen([sys.executable, "-m", "warmprefix", *command], stdout=subprocess.DEVNULL)
    assert until(lambda: len(finished(tmp_path)) >= RUNS // 2, 240)
    child.kill()
    child.wait()
    kept = finished(tmp_path)
    assert RUNS // 2 <= len(kept) < RUNS
    assert until(lambda: all(map(gone, kernels(tmp_path))), 10), "kernels of a killed batch end by themselves"
    assert cli.main(command) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {Path(row["path"]).name for row in rows if row["status"] == "cached"} == kept
    assert [row["results"]["square"] for row in rows] == [number**2 for number in range(RUNS)]
    assert until(lambda: all(map(gone, kernels(tmp_path))), 10)
    table = batch.results(tmp_path / "out")
    assert table["number"].tolist() == list(range(RUNS)) and (table["square"] == table["number"] ** 2).all()


@IN_PROC
@pytest.mark.slow
def test_of_two_workers_one_is_killed_and_all_runs_arrive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with cluster(tmp_path, workers=2) as (address, (first, _)):
        arguments = [*grid(tmp_path), "-p", "pause=0.7", "--scheduler", address, "--json"]
        command = [sys.executable, "-m", "warmprefix", *arguments]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert until(lambda: len(finished(tmp_path)) >= 4, 240)
        assert until(lambda: not all(map(gone, kernels(tmp_path, first.pid))), 60), "it is amid a run"
        os.kill(first.pid, signal.SIGKILL)
        rows = json.loads(child.communicate(timeout=400)[0])
    assert child.returncode == 0
    assert [row["status"] for row in rows] == ["done"] * RUNS
    assert [row["results"]["square"] for row in rows] == [number**2 for number in range(RUNS)]
    assert len(kernels(tmp_path)) > RUNS, "the run of the killed worker was tried again"
    assert until(lambda: all(map(gone, kernels(tmp_path))), 10)
