"""Counts are exact and add up; the vocabulary is unpacked whole, offline, and mended when damaged."""

import hashlib
import inspect
import os
import re
import subprocess
import sys

import pytest
import tiktoken_ext.openai_public
from drawn import hostile
from hypothesis import example, given, settings
from hypothesis import strategies as st

from warmprefix import tokens
from warmprefix.channel import clean
from warmprefix.errors import InputError
from warmprefix.tokens import Tokenizer, encoding, is_cut, is_segment

NAMES = ("cl100k_base", "o200k_base")
TEXT = st.lists(
    st.one_of(
        hostile.map(clean),
        st.sampled_from(
            [" ", "\t", "\n", "\r", "\r\n", "\n\n", "  \n", "/", "//", "!", "?/", "'s", "'LL", "x", "Ab", "7"]
        ),
        st.text("aZ9é日\u0301 \t\n\r/'.!_\u00a0\x85\u2028\x1c", max_size=6),
    ),
    max_size=8,
).map("".join)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=200)
@given(text=TEXT)
@example(text="a \n \r/\n\tb")
@example(text="!/\n/x\n'll\n\u0301a")
def test_tokens_add_up_at_every_cut(name, text):
    encode = encoding(name).encode_ordinary
    whole = encode(text)
    for i in range(len(text) + 1):
        if is_cut(text, i):
            assert encode(text[:i]) + encode(text[i:]) == whole, (text, i)


@pytest.mark.parametrize(
    ("name", "text", "i"),
    [
        (name, text, i)
        for name in NAMES
        for text, i in [
            ("hello", 3),
            ("one two", 4),
            ("a\n\nb", 2),
            ("a   b", 2),
            ("\n \nb", 1),
            ("!\n", 1),
        ]
    ]
    + [("o200k_base", "a!\n/b", 3), ("o200k_base", "日本", 1)],
)
def test_elsewhere_they_need_not(name, text, i):
    encode = encoding(name).encode_ordinary
    assert encode(text[:i]) + encode(text[i:]) != encode(text)
    assert not is_cut(text, i)


def test_both_ends_are_cuts():
    assert is_cut("ab", 0) and is_cut("ab", 2) and is_cut("", 0)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=100)
@given(pieces=st.lists(TEXT.map(lambda text: text + "\n").filter(is_segment), max_size=6))
def test_segments_add_up(name, pieces):
    tokenizer = Tokenizer(name)
    assert sum(map(tokenizer.count, pieces)) == len(tokenizer.ids("".join(pieces)))
    assert sum(map(tokenizer.count, pieces)) == sum(len(tokenizer.ids(piece)) for piece in pieces)


@pytest.mark.parametrize("text", ["", "\n", " a\n", "/a\n", "a", "a\n ", "\u2028a\n", "a\r"])
def test_what_is_no_segment_is_not_counted(text):
    with pytest.raises(ValueError, match="not a segment"):
        Tokenizer().count(text)


def test_a_special_token_in_a_text_is_text():
    assert Tokenizer().count("<|endoftext|>\n") > 2
    assert encoding().decode(Tokenizer().ids("<|endoftext|>")) == "<|endoftext|>"


def test_each_segment_is_counted_once(monkeypatch):
    tokenizer, encoded = Tokenizer(), []
    monkeypatch.setattr(tokenizer, "_encode", lambda text: encoded.append(text) or [1])
    assert [tokenizer.count(text) for text in ("a\n", "b\n", "a\n")] == [1, 1, 1]
    assert encoded == ["a\n", "b\n"]


def test_an_unknown_encoding_is_one_line():
    with pytest.raises(InputError, match=r"^encoding 'gpt2': unknown; use one of cl100k_base, o200k_base$"):
        encoding("gpt2")


@pytest.mark.parametrize("name", NAMES)
def test_names_and_hashes_are_tiktokens_own(name):
    source = inspect.getsource(getattr(tiktoken_ext.openai_public, name))
    (address,) = re.findall(r'"(https://[^"]+\.tiktoken)"', source)
    (sha256,) = re.findall(r'expected_hash="([0-9a-f]{64})"', source)
    assert hashlib.sha1(address.encode()).hexdigest() == tokens._CACHED_AS[name]
    assert sha256 == tokens._SHA256[name]


OFFLINE = """
import socket
def refuse(*args, **more):
    raise AssertionError("a name was looked up")
socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
from warmprefix.tokens import Tokenizer
print(Tokenizer("o200k_base").ids("warm prefix"), Tokenizer().ids("warm prefix"))
"""


@pytest.mark.parametrize(
    "settings",
    [
        {"TIKTOKEN_CACHE_DIR": "{}"},
        {"DATA_GYM_CACHE_DIR": "{}"},
        {"TIKTOKEN_CACHE_DIR": "", "DATA_GYM_CACHE_DIR": "{}"},  # to tiktoken an empty setting means "always download"
        {"TMPDIR": "{}"},
    ],
    ids=lambda settings: " ".join(settings),
)
def test_a_fresh_cache_is_filled_without_a_network(tmp_path, settings):
    env = {key: value for key, value in os.environ.items() if key not in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")}
    env |= {key: value.format(tmp_path) for key, value in settings.items()}
    run = subprocess.run([sys.executable, "-c", OFFLINE], env=env, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == f"{Tokenizer('o200k_base').ids('warm prefix')} [83697, 9436]\n"
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {tokens._CACHED_AS[name]: tokens._SHA256[name] for name in NAMES}


@pytest.mark.parametrize("damage", [b"", b"not a vocabulary", None])
def test_a_damaged_vocabulary_is_mended(tmp_path, damage):
    target = tmp_path / "vocabulary"
    tokens._unpack("cl100k_base", target)
    whole = target.read_bytes()
    target.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    tokens._unpack("cl100k_base", target)
    assert target.read_bytes() == whole
    assert [path.name for path in tmp_path.iterdir()] == ["vocabulary"]


def test_a_sound_vocabulary_is_left_alone(tmp_path):
    target = tmp_path / "vocabulary"
    tokens._unpack("cl100k_base", target)
    before = target.stat()
    tokens._unpack("cl100k_base", target)
    assert target.stat().st_mtime_ns == before.st_mtime_ns and target.stat().st_ino == before.st_ino


def test_a_vocabulary_is_there_whole_or_not_at_all(tmp_path, monkeypatch):
    def stop(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        tokens._unpack("cl100k_base", tmp_path / "deep" / "vocabulary")
    assert list((tmp_path / "deep").iterdir()) == []


def test_without_its_carrier_tiktoken_is_left_to_itself(tmp_path, monkeypatch):
    def absent(package):
        raise ModuleNotFoundError(package)

    monkeypatch.setattr(tokens.resources, "files", absent)
    tokens._unpack("cl100k_base", tmp_path / "vocabulary")
    assert list(tmp_path.iterdir()) == []


def test_no_place_for_a_vocabulary_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(InputError, match=r"^\S+: no place for a vocabulary: \w[\w ]+; set TIKTOKEN_CACHE_DIR"):
        encoding.__wrapped__("cl100k_base")
