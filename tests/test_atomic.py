"""A file is written whole or not at all."""

import errno
import os
import threading
from pathlib import Path

import pytest

from warmprefix import atomic


def test_text_keeps_its_bytes_and_makes_folders(tmp_path: Path) -> None:
    path = atomic.write_text(tmp_path / "a" / "b.txt", "é\r\n…\n")
    assert path.read_bytes() == "é\r\n…\n".encode()
    assert os.listdir(path.parent) == ["b.txt"]


def test_a_failing_block_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    path = atomic.write_text(tmp_path / "kept", "old")
    with pytest.raises(RuntimeError, match="half-way"), atomic.replacing(path) as draft:
        draft.write_text("new but ha")
        raise RuntimeError("half-way")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["kept"]


def test_text_that_cannot_be_encoded_leaves_the_old_file(tmp_path: Path) -> None:
    path = atomic.write_text(tmp_path / "kept", "old")
    with pytest.raises(UnicodeEncodeError):
        atomic.write_text(path, "new \ud800")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["kept"]


def test_a_failing_rename_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / "taken" / "full").mkdir(parents=True)
    with pytest.raises(OSError):
        atomic.write_bytes(tmp_path / "taken", b"x")
    assert os.listdir(tmp_path) == ["taken"]


def test_a_full_device_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError) as caught:
        atomic.write_bytes(tmp_path / "written", b"x")
    assert caught.value.filename == str(tmp_path / "written")
    assert os.listdir(tmp_path) == []


def test_what_is_no_file_is_neither_replaced_nor_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="is no file") as caught:
        atomic.write_bytes(tmp_path / "pipe", b"x")
    assert caught.value.filename == str(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo() and os.listdir(tmp_path) == ["pipe"]


def test_a_link_stays_and_leads_to_the_new_file(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to("kept/file")
    for text in ("first", "second"):
        atomic.write_text(tmp_path / "link", text)
        assert (tmp_path / "link").is_symlink() and (tmp_path / "kept" / "file").read_text() == text
    assert os.listdir(tmp_path / "kept") == ["file"]


def test_a_folder_that_takes_no_file_is_told_by_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path, **_: bool) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "touch", refused)
    with pytest.raises(PermissionError) as caught:
        atomic.write_bytes(tmp_path / "written", b"x")
    assert caught.value.filename == str(tmp_path / "written")


def test_the_file_gets_the_usual_mode(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.touch()
    assert atomic.write_bytes(tmp_path / "written", b"x").stat().st_mode == plain.stat().st_mode


def test_readers_never_see_a_part(tmp_path: Path) -> None:
    path = atomic.write_bytes(tmp_path / "shared", b"0" * 100_000)
    done = threading.Event()

    def write() -> None:
        for digit in b"123456789" * 3:
            atomic.write_bytes(path, bytes([digit]) * 100_000)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = set()
    while not done.is_set():
        data = path.read_bytes()
        assert len(data) == 100_000
        seen.add(len(set(data)))
    writer.join()
    assert seen <= {1}
