"""Notebooks run as a batch: strict about parameters, resumable, one row a run, and no process left behind."""

import hashlib
import json
import os
import re
import shutil
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from warmprefix import atomic, cases, kernels
from warmprefix.errors import InputError
from warmprefix.executors import Cluster
from warmprefix.parameters import Parameter, cells, checked, parameters, suggestion, tags
from warmprefix.results import KEY, WRITTEN, about, results

__all__ = [
    "NOTEBOOKS",
    "Parameter",
    "Run",
    "exit_code",
    "load_grid",
    "load_set",
    "notebooks",
    "parameters",
    "results",
    "run",
]

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"

_INJECTED = "injected-parameters"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one notebook; `status` is `done`, `cached` or `failed` (`planned` until it was tried).

    `parameters` holds every parameter, defaults among them; `path` is the executed notebook; `error` is one line.
    """

    notebook: str
    set: str
    parameters: dict[str, Any]
    status: str
    path: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class _Job:
    source: Path
    run: Run
    changed: dict[str, Any]  # the parameters that are not at their defaults


def notebooks(names: Sequence[str | Path] = (), folder: Path = NOTEBOOKS) -> list[Path]:
    """The notebook files that `names` mean: `30`, `30_strategies` or a path each; all of `folder` for none.

    Raises `InputError` for a name that means none or several.
    """
    known = {path.stem: path for path in sorted(folder.glob("*.ipynb"))}
    if not names and not known:
        raise InputError(folder, "", "holds no notebook", "name one by its path")
    return list(dict.fromkeys(_notebook(str(name), known, folder) for name in names or known))


def _notebook(name: str, known: Mapping[str, Path], folder: Path) -> Path:
    if name in known:
        return known[name]
    if name.endswith(".ipynb") and Path(name).is_file():
        return Path(name).resolve()
    found = [path for stem, path in known.items() if stem.split("_")[0] == name]
    if len(found) != 1:
        problem = f"means {len(found)} notebooks" if found else "no such notebook"
        raise InputError(folder, f"notebook {name}", problem, suggestion(name, [p.stem for p in found] or known))
    return found[0]


def load_set(name: str, folder: Path = NOTEBOOKS) -> dict[str, dict[str, Any]]:
    """The named set of `params.yaml` in `folder`, which is `{set: {notebook: {parameter: value}}}`.

    Raises `InputError` for an unknown set or another layout.
    """
    path = folder / "params.yaml"
    sets = _mapping(path, _yaml(path), "")
    if name not in sets:
        raise InputError(path, f"set {name}", "unknown", suggestion(name, sets))
    chosen = _mapping(path, sets[name], f"set {name}")
    return {stem: _mapping(path, values or {}, f"set {name}, {stem}") for stem, values in chosen.items()}


def load_grid(path: str | Path) -> dict[str, list[Any]]:
    """The grid in a YAML file, which is `{parameter: [value, ...]}`; a batch runs every combination.

    Raises `InputError` for another layout.
    """
    grid = _mapping(path, _yaml(Path(path)) or {}, "")
    if not grid:
        raise InputError(path, "", "the grid is empty", "write `name: [first, second]` lines")
    for name, values in grid.items():
        if not isinstance(values, list) or not values:
            raise InputError(path, f"parameter {name}", "not a list of values", "write [first, second]")
    return grid


class _Loader(yaml.SafeLoader):
    """YAML whose mappings name nothing twice: of two lists for one parameter the first would be lost unsaid."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key for key, _ in node.value] if isinstance(node, yaml.MappingNode) else []
        for i, key in enumerate(keys):
            if any(key.value == before.value for before in keys[:i]):
                raise yaml.constructor.ConstructorError(None, None, f"{key.value} stands there twice", key.start_mark)
        return super().construct_mapping(node, deep)


def _yaml(path: Path) -> Any:
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except OSError as error:
        raise InputError(path, "", error.strerror or "cannot be read", "name a file that exists") from None
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError) as error:  # dates, tags, depth
        raise InputError(path, "", f"not YAML: {error}", "check names, values and indentation") from None


def _mapping(path: str | Path, value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise InputError(path, place, "not a mapping of names", "write `name: value` lines")
    return value


def run(
    names: Sequence[str | Path] = (),
    *,
    out: str | Path,
    folder: Path = NOTEBOOKS,
    set_name: str = "",
    values: Mapping[str, Any] | None = None,
    texts: Sequence[str] = (),
    grid: Mapping[str, Sequence[Any]] | None = None,
    workers: int = 1,
    scheduler: str = "",
    executor: Executor | None = None,
) -> list[Run]:
    """Execute notebooks into the folder `out`; one `Run` for each notebook and grid point, in that order.

    A set's values give way to `values`, those to `texts` (`name=value` as typed on a command line), those to the
    point of the `grid`. What `out` already holds is not run again; a failing run keeps its notebook as
    `*.failed.ipynb`, is tried again next time, and does not stop the others. Runs go through `executor`, by default
    `workers` threads (each kernel is its own process), or the workers of the Dask cluster at the address `scheduler`,
    which see the same files as we do. Raises `InputError` before anything runs, or when the cluster goes away.
    """
    if workers < 1:
        raise InputError("", f"workers {workers}", "nobody would work", "ask for 1 or more")
    jobs = _plan(notebooks(names, folder), Path(out).resolve(), folder, set_name, values or {}, texts, grid or {})
    try:
        done = all(Path(job.run.path).is_file() for job in jobs)
        Path(out).mkdir(parents=True, exist_ok=True)
        if not done:
            tempfile.TemporaryFile(dir=out).close()  # said now, and not after hours of work
    except OSError as error:
        raise InputError(out, "", error.strerror or "no folder", "name a folder that can be written to") from None
    if executor is not None:
        return _collect(jobs, executor)
    if scheduler:
        with Cluster(scheduler) as cluster:
            return _collect(jobs, cluster)
    if not done:
        kernels.papermill()  # once, before the threads want it
    with ThreadPoolExecutor(workers) as threads:
        return _collect(jobs, threads)


def exit_code(runs: Sequence[Run]) -> int:
    """0 when every run has its notebook, 1 when one failed."""
    return int(any(each.status == "failed" for each in runs))


def _plan(
    paths: Sequence[Path],
    out: Path,
    folder: Path,
    set_name: str,
    values: Mapping[str, Any],
    texts: Sequence[str],
    grid: Mapping[str, Sequence[Any]],
) -> list[_Job]:
    if empty := [name for name, options in grid.items() if not options]:
        raise InputError("", f"grid, parameter {empty[0]}", "has no values", "give it some, or leave it out")
    preset = load_set(set_name, folder) if set_name else {path.stem: {} for path in paths}
    library = _digest_of(Path(__file__).parent)
    jobs = []
    for path in paths:
        if path.stem not in preset:
            raise InputError(
                folder / "params.yaml", f"set {set_name}", f"has no {path.stem}", "add it, with {} or values"
            )
        known = parameters(path)
        for point in product(*grid.values()):
            given = checked(path, known, {**preset[path.stem], **values}, texts)
            given |= checked(path, known, dict(zip(grid, point, strict=True)))
            full = {name: given.get(name, parameter.value) for name, parameter in known.items()}
            # Through repr, since 1 == 1.0 == True and each makes another notebook.
            changed = {name: value for name, value in full.items() if repr(value) != repr(known[name].value)}
            target = out / f"{path.stem}-{_digest(path, full, library)}.ipynb"
            if WRITTEN in known and (grid or texts) and not _names_figures(values, texts, grid):
                full[WRITTEN] = changed[WRITTEN] = os.path.relpath(target.with_suffix(""), folder)
            jobs.append(_Job(path, Run(path.stem, set_name, full, "planned", str(target)), changed))
    return list({job.run.path: job for job in jobs}.values())


def _names_figures(values: Mapping[str, Any], texts: Sequence[str], grid: Mapping[str, Sequence[Any]]) -> bool:
    """Whether the caller says where figures go; else those of a turned knob would be drawn over the published ones."""
    return WRITTEN in {*values, *grid, *(text.partition("=")[0].strip() for text in texts)}


def _digest(path: Path, values: Mapping[str, Any], library: str) -> str:
    """What a run depends on: what its cells say, its parameters and the files they name, the library, and the data.

    The folder for its figures is no input: were its files counted, no batch that draws would ever be found finished.
    """
    said = [(cell.get("cell_type"), cell["source"], tags(cell)) for cell in cells(path)]
    read = [value for name, value in values.items() if name != WRITTEN and isinstance(value, str)]
    named = [file for value in read if value.strip("./") for file in _named(path.parent / value)]
    files = [_digest_of(each) for each in [*named, path.parent.parent / "data"]]
    text = json.dumps([said, sorted((k, repr(v)) for k, v in values.items()), files, library], ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _named(path: Path) -> list[Path]:
    """The file or folder at a path and, where it is a list of logs, the logs."""
    try:
        return [path, *(case.source for case in cases.listed(path))] if path.suffix == ".toml" else [path]
    except InputError:
        return [path]  # the run says what is wrong with it


def _digest_of(path: Path) -> str:
    """The hash of a file, or of every file of a folder, by name and bytes; of nothing where there is none."""
    if os.path.isdir(path):  # not `path.is_dir`, which raises for a text that no path can be
        found = sorted(p for p in path.rglob("*") if p.is_file())
    else:
        found = [path] if os.path.isfile(path) else []
    total = hashlib.sha256()
    for each in found:
        if each.suffix != ".pyc":
            total.update(f"{each.relative_to(path.parent).as_posix()}\0".encode())
            total.update(hashlib.sha256(each.read_bytes()).digest())
    return total.hexdigest()


def _collect(jobs: Sequence[_Job], executor: Executor) -> list[Run]:
    from tqdm import tqdm

    futures = [executor.submit(_execute, job) for job in jobs]
    completed = executor.completed if isinstance(executor, Cluster) else as_completed
    try:
        for _ in tqdm(completed(futures), "notebooks", len(jobs), disable=not sys.stderr.isatty()):
            pass
    except BaseException:
        for future in futures:
            future.cancel()
        while isinstance(executor, ThreadPoolExecutor) and wait(futures, timeout=0.1).not_done:
            kernels.kill()  # again and again: one may just be starting
        raise
    return [_result(job, future) for job, future in zip(jobs, futures, strict=True)]


def _result(job: _Job, future: "Future[Run]") -> Run:
    try:
        run: Run = future.result()
    except (Exception, CancelledError) as error:  # a lost worker, or what no notebook can cause
        return replace(job.run, status="failed", path="", error=kernels.line(error))
    if run.status in ("done", "cached") and not Path(run.path).is_file():
        return replace(run, status="failed", error="its worker wrote it where we cannot see it: share the folder")
    return run


def _execute(job: _Job) -> Run:
    """Run one notebook unless its result is there; runs wherever the executor likes, so it takes and returns data."""
    target = Path(job.run.path)
    failed = target.with_suffix(".failed.ipynb")
    if target.is_file():
        return replace(job.run, status="cached")
    # A socket's path may have about 100 characters, and a cluster's temporary folders are deep.
    folder = Path("/tmp" if len(tempfile.gettempdir()) > 60 else tempfile.gettempdir())
    _tidy(folder)
    scratch = Path(tempfile.mkdtemp(prefix=f"{_scratch()}{os.getpid()}-", dir=folder))
    try:
        error = kernels.execute(_prepared(job), job.source.parent, scratch)
        executed = scratch / "out.ipynb"
        if executed.is_file():
            atomic.write_text(failed if error else target, kernels.settled(executed))
        if error:
            return replace(job.run, status="failed", path=str(failed) if executed.is_file() else "", error=error)
        failed.unlink(missing_ok=True)
        return replace(job.run, status="done")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _scratch() -> str:
    """How the names of scratch folders begin here: workers of several machines may share a temporary folder."""
    return f"wp-{hashlib.sha256(socket.gethostname().encode()).hexdigest()[:6]}-"


def _tidy(folder: Path) -> None:
    """Remove what killed processes of this machine left in the folder: their names say whose they were."""
    for left in folder.glob(f"{_scratch()}*-*"):
        try:
            os.kill(int(left.name.split("-")[2]), 0)
        except ProcessLookupError:
            shutil.rmtree(left, ignore_errors=True)
        except (ValueError, OverflowError, OSError):
            continue  # not one of ours


def _prepared(job: _Job) -> Any:
    """The notebook with the changed parameters in a cell of its own, as papermill injects them.

    papermill's own injection gives the cell a random id, turns tuples into strings and warns of every type that its
    expression for type comments cannot read.
    """
    import nbformat

    notebook = nbformat.read(job.source, as_version=4)
    notebook.metadata[KEY] = about(job.run.notebook, job.run.parameters)
    at = [i for i, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", [])]
    if job.changed:
        text = "\n".join(["# Parameters", *(f"{name} = {_literal(value)}" for name, value in job.changed.items())])
        cell = nbformat.v4.new_code_cell(text, id=_INJECTED, metadata={"tags": [_INJECTED]})
        notebook.cells.insert(at[0] + 1, cell)
    return notebook


def _literal(value: Any) -> str:
    return re.sub(r"(?<![\w'\"])(-?)(inf|nan)(?![\w'\"])", r'float("\1\2")', repr(value))
