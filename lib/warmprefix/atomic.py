"""Files that are written whole or not at all."""

import errno
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A new empty file beside `path` that takes its place when the block ends well and is removed when it does not.

    Missing folders are made; a link stays, and what it leads to is replaced. Whoever reads `path` finds the old bytes
    or the new ones, never a part. Raises `OSError` that names `path`, also where it is a folder or a device.
    """
    asked, target = Path(path), Path(os.path.realpath(path))
    if asked.exists() and not asked.is_file():
        raise OSError(errno.EINVAL, "is no file", str(asked))
    asked.parent.mkdir(parents=True, exist_ok=True)
    # Not `tempfile`: its files are private (mode 0600), and the replaced file should get the user's usual mode.
    draft = target.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        draft.touch(exist_ok=False)
        yield draft
        with open(draft, "rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(draft, target)
    except BaseException as error:
        with suppress(OSError):
            draft.unlink()
        # A full device does not say whose bytes it refused, and nobody knows the draft.
        if isinstance(error, OSError) and str(error.filename) in ("None", str(draft)):
            error.filename = str(asked)
        raise


def write_bytes(path: str | Path, data: bytes) -> Path:
    """Write `data` to `path` whole or not at all; returns the path."""
    with replacing(path) as draft:
        draft.write_bytes(data)
    return Path(path)


def write_text(path: str | Path, text: str) -> Path:
    """Write `text` to `path` as UTF-8 with its line ends as they are, whole or not at all; returns the path.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_text(f"{folder}/new/note.txt", "näh\\n").read_bytes()
    b'n\\xc3\\xa4h\\n'
    """
    return write_bytes(path, text.encode("utf-8"))
