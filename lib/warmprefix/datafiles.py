"""Where the project's data files lie: the folder `data/` of the clone that is installed."""

from pathlib import Path

from warmprefix.errors import InputError

DATA = Path(__file__).resolve().parents[2] / "data"


def read_data(name: str) -> str:
    """The text of one file of `data/`.

    Raises `InputError` when it is not there, as after an installation without the clone.
    """
    try:
        return (DATA / name).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(DATA / name, "", f"unreadable: {error.strerror}", "install from a clone: `make`") from None
