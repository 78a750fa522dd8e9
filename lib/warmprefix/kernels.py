"""One notebook in a kernel of its own: run by papermill, ended on demand, its file the same bytes at every run."""

import os
import re
import signal
import sys
from functools import cache
from pathlib import Path
from typing import Any

# What differs between two runs of the same cells: the kernel's process id in warnings and tracebacks, where an object
# lay in memory, and a styled table's random name.
_CELL_FILE = re.compile(r"(?<=/ipykernel)_\d+(?=/)")
_MEMORY = re.compile(r" at 0x[0-9a-f]+(?=>)")
_STYLED = re.compile(r'<table id=\\"(T_[0-9a-f]{5})\\"')
_alive: set[Any] = set()  # the kernels of this process, for an interrupt to end


def execute(notebook: Any, folder: Path, scratch: Path) -> str:
    """Execute a notebook in `folder`, to `out.ipynb` in `scratch`; the error in one line, empty for none."""
    from traitlets.config import Config

    config = Config()
    config.KernelManager.transport = "ipc"
    config.KernelManager.ip = str(scratch / "k")
    config.KernelManager.connection_file = str(scratch / "kernel.json")
    try:
        papermill().execute_notebook(
            notebook,
            scratch / "out.ipynb",
            kernel_name="python3",
            progress_bar=False,
            config=config,
            kernel_manager_class=_manager_class(),
            resources={"metadata": {"path": str(folder)}},
            extra_arguments=["--log-level=50", f"--ipython-dir={scratch}", "--HistoryManager.enabled=False"],
            record_timing=False,
            coalesce_streams=True,
        )
    except Exception as error:
        return line(error)
    finally:
        _close_loop()
    return ""


def _close_loop() -> None:
    """Close the event loop that the notebook client opened for this thread and forgets with its sockets open."""
    from jupyter_core.utils import ensure_event_loop

    loop = ensure_event_loop()
    if not loop.is_running():
        loop.close()


def kill() -> None:
    """End every kernel that this process has started, and what it started."""
    for manager in tuple(_alive):
        pid = getattr(manager.provisioner, "pid", None)
        if pid:
            try:
                os.killpg(pid, signal.SIGKILL)  # a kernel leads its own group: what it started ends with it
            except OSError:
                _alive.discard(manager)


def settled(path: Path) -> str:
    """The executed notebook without what differs between two runs: times, durations, random ids, memory addresses."""
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    notebook.metadata.pop("papermill", None)
    for index, cell in enumerate(notebook.cells):
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
        if any(tag.startswith("papermill-") for tag in cell.metadata.get("tags", [])):
            cell.id = f"error-{index}"
    text = _MEMORY.sub("", _CELL_FILE.sub("", nbformat.writes(notebook))) + "\n"
    for number, name in enumerate(dict.fromkeys(_STYLED.findall(text))):
        text = text.replace(name, f"T_{number:05d}")
    return text


def line(error: BaseException) -> str:
    """An error in one line, with the cell that raised it."""
    count, kind = getattr(error, "exec_count", None), getattr(error, "ename", type(error).__name__)
    where = f"cell [{count}]: " if count else ""
    return re.sub(r"\x1b\[[\d;]*m", "", " ".join(f"{where}{kind}: {getattr(error, 'evalue', error)}".split()))


@cache
def papermill() -> Any:
    """The package, set up before it is imported, which takes a second the first time."""
    os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")  # the kernel of this environment, not the user's
    # One second of grammar compilation, for a format checker that no notebook needs.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    import papermill

    return papermill


@cache
def _manager_class() -> type:
    from jupyter_client.manager import AsyncKernelManager

    class Manager(AsyncKernelManager):
        """A kernel manager that `kill` can find."""

        async def start_kernel(self, **options: Any) -> None:  # type: ignore[override]
            _alive.add(self)
            await super().start_kernel(**options)

        async def cleanup_resources(self, restart: bool = False) -> None:  # type: ignore[override]
            await super().cleanup_resources(restart)
            _alive.discard(self)

    return Manager
