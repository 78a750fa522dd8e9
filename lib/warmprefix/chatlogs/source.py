"""Where an export lies: a file, a folder or a zip, read as pieces of text; every fault says in which member."""

import codecs
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from tqdm import tqdm

from warmprefix.errors import InputError

PIECE = 1 << 18  # bytes read at a time
MEMBERS = 200_000  # files in one folder or zip
RATIO = 200  # how much a zip member may grow; chat exports grow 5 to 40 times
RATIO_FREE = 1 << 20  # bytes below which the ratio says nothing
TOTAL = 16 << 30  # bytes of all members of a zip, unpacked

_WIDE = {
    codecs.BOM_UTF32_LE: "utf-32",  # before utf-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_DRIVE = re.compile(r"[A-Za-z]:")
_PACKED = {
    b"PK\x03\x04": "a damaged zip",  # a sound one was recognised before
    b"\x1f\x8b": "a gzip archive",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"(\xb5/\xfd": "a zstandard archive",
    b"7z\xbc\xaf": "a 7z archive",
}


@dataclass(frozen=True)
class Member:
    """One file of an export: what messages call it, its path inside the export, and its size in bytes."""

    label: str
    name: PurePosixPath
    size: int
    open: Callable[[], IO[bytes]]


@dataclass(frozen=True)
class Export:
    """An opened export: its members in path order, the encoding asked for, and the bar that counts the bytes read."""

    label: str
    members: tuple[Member, ...]
    encoding: str | None
    whole: bool  # a folder or a zip, not one file
    bar: Any

    @property
    def stem(self) -> str:
        """The export's own name without its folder and suffix."""
        return Path(os.path.abspath(self.label)).stem

    def only(self) -> Member:
        """The one file, where a format is a file; raises `InputError` for a folder or a zip."""
        if self.whole:
            raise InputError(self.label, "", "is a zip or a folder", "name the file itself")
        return self.members[0]

    def text(self, member: Member) -> Iterator[str]:
        """The member's text in pieces; raises `InputError` naming the line of the first byte that does not decode."""
        with _faults(member.label), member.open() as stream:
            raw = stream.read(PIECE)
            decoder = codecs.getincrementaldecoder(self.encoding or _utf8(raw, member.label))()
            line = 1
            while True:
                try:
                    piece = decoder.decode(raw, final=not raw)
                except UnicodeDecodeError as error:
                    place = f"line {line + error.object[: error.start].count(10)}"
                    raise InputError(member.label, place, *_undecodable(error)) from None
                except UnicodeError as error:  # utf-16 without its mark, and codecs of another kind
                    raise InputError(member.label, f"line {line}", str(error), "name another --encoding") from None
                line += piece.count("\n")
                if piece:
                    yield piece
                if not raw:
                    return
                self.bar.update(len(raw))
                raw = stream.read(PIECE)


@contextmanager
def opened(path: str | os.PathLike[str], encoding: str | None = None) -> Iterator[Export]:
    """Open a file, folder or zip for reading.

    Raises `InputError` where there is nothing to read, for an encoding that does not exist, and for a zip that is
    damaged, leads out of itself or unpacks to more than it should.
    """
    label, place = os.fspath(path), Path(path)
    if not label.strip():  # an unset variable of the shell; as a path it would be the folder we are in
        raise InputError("", f"source {label!r}", "names nothing", "name a file or folder")
    if encoding is not None:
        _check_encoding(encoding)
    with _faults(label):
        mode = place.stat().st_mode
        if stat.S_ISDIR(mode):
            members, archive = _folder(place, label), None
        elif not stat.S_ISREG(mode):
            raise InputError(label, "", "is neither a file nor a folder", "name an export")
        elif zipfile.is_zipfile(place):
            archive = zipfile.ZipFile(place)
            members = _zip(archive, label)
        else:
            _refuse_packed(place, label)
            members, archive = (_file(place, label, PurePosixPath(place.name)),), None
    if not members:
        raise InputError(label, "", "holds no file", "name a folder that holds an export")
    total = sum(member.size for member in members)
    bar = tqdm(total=total, unit="B", unit_scale=True, desc=place.name, leave=False, delay=1, disable=None)
    try:
        yield Export(label, members, encoding, archive is not None or stat.S_ISDIR(mode), bar)
    finally:
        bar.close()
        if archive is not None:
            archive.close()


def _file(path: Path, label: str, name: PurePosixPath) -> Member:
    return Member(label, name, path.stat().st_size, lambda: path.open("rb"))


def _refuse_packed(path: Path, label: str) -> None:
    with path.open("rb") as stream:
        head = stream.read(8)
    for magic, kind in _PACKED.items():
        if head.startswith(magic):
            raise InputError(label, "", f"is {kind}", "unpack it and name the folder, or export it again")


def _folder(root: Path, label: str) -> tuple[Member, ...]:
    found: list[PurePosixPath] = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        inside = PurePosixPath(Path(folder).relative_to(root).as_posix())
        found += [inside / name for name in files if not name.startswith(".") and (Path(folder) / name).is_file()]
        if len(found) > MEMBERS:
            raise InputError(label, "", f"holds more than {MEMBERS:,} files", "name the export's own folder")
    return tuple(_file(root / name, f"{label.rstrip('/')}/{name}", name) for name in sorted(found))


def _zip(archive: zipfile.ZipFile, label: str) -> tuple[Member, ...]:
    infos = [info for info in archive.infolist() if not info.is_dir()]
    if len(infos) > MEMBERS:
        raise InputError(label, "", f"holds more than {MEMBERS:,} files", "unpack what you need into a folder")
    total = 0
    members = []
    for info in infos:
        name = PurePosixPath(info.filename.replace("\\", "/"))
        if not name.parts or name.is_absolute() or ".." in name.parts or _DRIVE.match(info.filename):
            raise InputError(label, f"member {info.filename!r}", "leads out of the archive", "do not trust this file")
        total += info.file_size
        if info.file_size > max(RATIO_FREE, RATIO * info.compress_size) or total > TOTAL:
            raise InputError(
                label,
                f"member {info.filename!r}",
                f"unpacks from {info.compress_size:,} to {info.file_size:,} bytes, more than a chat does",
                "unpack it yourself and name the folder if you trust it",
            )
        if not any(part.startswith((".", "__MACOSX")) for part in name.parts):
            members.append(_packed(archive, info, f"{label}/{name}", name))
    return tuple(sorted(members, key=lambda member: member.name))


def _packed(archive: zipfile.ZipFile, info: zipfile.ZipInfo, label: str, name: PurePosixPath) -> Member:
    return Member(label, name, info.file_size, lambda: archive.open(info))


@contextmanager
def _faults(label: str) -> Iterator[None]:
    """Say as one line what the file system or the archive refuses."""
    try:
        yield
    except OSError as error:
        raise InputError(label, "", f"cannot be read: {error.strerror or error}", "check the path") from None
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise InputError(label, "", f"is a damaged zip: {_brief(error)}", "export or copy it again") from None
    except (NotImplementedError, RuntimeError) as error:  # a method or a password that zipfile does not know
        if type(error) not in (NotImplementedError, RuntimeError):
            raise
        raise InputError(
            label, "", f"cannot be unpacked: {_brief(error)}", "unpack it yourself and name the folder"
        ) from None


def _brief(error: Exception) -> str:
    """What an error says, without the pages of bytes that it may quote."""
    text = str(error)
    return text if len(text) <= 120 else text[:119] + "…"


def _check_encoding(encoding: str) -> None:
    try:
        known = "x".encode(encoding).decode(encoding) == "x"
    except (LookupError, ValueError):
        known = False
    if not known:
        raise InputError("", f"--encoding {encoding}", "is no text encoding", "try utf-8, latin-1 or cp1252")


def _utf8(head: bytes, label: str) -> str:
    for mark, name in _WIDE.items():
        if head.startswith(mark):
            raise InputError(label, "line 1", f"is {name}, not utf-8", f"add --encoding {name}")
    return "utf-8-sig"


def _undecodable(error: UnicodeDecodeError) -> tuple[str, str]:
    byte = error.object[error.start]
    other = "cp1252" if 0x80 <= byte < 0xA0 else "latin-1"
    if error.encoding.startswith("utf-8"):
        return f"byte 0x{byte:02x} is not utf-8", f"add --encoding {other} if that is what it is"
    return f"byte 0x{byte:02x} is not {error.encoding}", "check --encoding"
