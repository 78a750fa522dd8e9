"""Small notebooks for the tests of the runner, and what has become of the processes that ran them."""

import json
import time
from collections.abc import Callable
from pathlib import Path


def write(folder: Path, stem: str, declared: str, *code: str) -> Path:
    """A notebook with a `parameters` cell and the given code cells."""
    tagged = {"id": "parameters", "metadata": {"tags": ["parameters"]}, "source": declared}
    plain = [{"id": f"cell-{i}", "metadata": {}, "source": text} for i, text in enumerate(code)]
    cells = [{"cell_type": "code", "execution_count": None, "outputs": [], **cell} for cell in (tagged, *plain)]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path = folder / f"{stem}.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}))
    return path


def until(condition: Callable[[], bool], seconds: float) -> bool:
    for _ in range(int(seconds / 0.05)):
        if condition():
            return True
        time.sleep(0.05)
    return False


def gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return True
    return state == "Z"
