"""The mark advances by what was shown; the store keeps the one before or the one after, whatever stops it."""

import io
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from drawn import hostile
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from warmprefix.channel import Message
from warmprefix.errors import InputError
from warmprefix.watermark import FAITHFUL, KEEP_IDS, STRICT, Key, Mark, WatermarkStore, advance, covers

KEY = Key("s", "ch")


def said(i: int, at: float | None = None) -> Message:
    return Message(f"m{i}", "ann", "x", float(i if at is None else at), position=i)


# The mark


def test_a_first_mark_holds_what_was_shown():
    assert advance(None, [said(2, 9.0), said(1, 30.0)], "n") == Mark("n", 30.0, ("m1", "m2"), 2)


def test_a_mark_goes_on_from_the_same_process_only():
    mark = advance(None, [said(1)], "n")
    assert advance(mark, [said(2)], "n") == Mark("n", 2.0, ("m1", "m2"), 2)
    assert advance(mark, [said(2)], "other") == Mark("other", 2.0, ("m2",), 2)


def test_a_mark_never_moves_back():
    mark = advance(None, [said(5, 50.0)], "n")
    assert advance(mark, [said(3, 30.0)], "n") == Mark("n", 50.0, ("m5", "m3"), 5)


def test_the_newest_200_ids_stay():
    mark = None
    for i in range(0, 300, 3):
        mark = advance(mark, [said(i), said(i + 1), said(i + 2)], "n")
    assert mark.ids == tuple(f"m{i}" for i in range(100, 300))
    assert len(advance(None, [said(i) for i in range(300)], "n").ids) == KEEP_IDS == 200
    assert advance(mark, [said(299)], "n") == mark


def test_nothing_shown_is_nothing_to_advance_by():
    with pytest.raises(ValueError, match="nothing was shown"):
        advance(None, [], "n")


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from([0.0, 1.0, 1.0, 5.0])), min_size=1, max_size=8))
def test_a_mark_covers_whatever_it_was_advanced_by(rows):
    shown = [said(i, at) for i, at in rows]
    mark = advance(None, shown, "n")
    assert all(covers(mark, message, cursor) for message in shown for cursor in (FAITHFUL, STRICT))
    later = said(10, mark.last_at + 1)
    assert not covers(mark, later, FAITHFUL) and not covers(mark, later, STRICT)


# The store


@pytest.fixture
def store(tmp_path):
    return WatermarkStore(tmp_path / "deep" / "channel-watermarks.json")


def delivered(store, shown, key=KEY, run="run-01", native="n"):
    store.stage(key, run, native, shown)
    return store.commit(key, run)


def test_a_staged_run_shows_only_once_it_is_committed(store):
    store.stage(KEY, "run-01", "n", [said(1)])
    assert store.watermark_for(KEY, "n") is None
    mark = store.commit(KEY, "run-01")
    assert store.watermark_for(KEY, "n") == WatermarkStore(store.path).watermark_for(KEY, "n") == mark
    assert mark == Mark("n", 1.0, ("m1",), 1)
    assert store.commit(KEY, "run-01") is None  # it has been committed


def test_a_failed_run_leaves_no_trace(store):
    before = delivered(store, [said(1)])
    store.stage(KEY, "run-02", "n", [said(2)])
    store.discard(KEY, "run-02")
    assert store.commit(KEY, "run-02") is None
    assert store.watermark_for(KEY, "n") == before


def test_only_the_process_that_answers_now_has_a_mark(store):
    delivered(store, [said(1)])
    assert store.watermark_for(KEY, "fresh") is None
    assert delivered(store, [said(9)], native="fresh").ids == ("m9",)
    assert store.watermark_for(KEY, "n") is None


def test_a_run_that_showed_nothing_changes_nothing(store):
    assert delivered(store, []) is None
    assert not store.path.exists()
    before = delivered(store, [said(1)])
    assert delivered(store, []) is None
    assert store.watermark_for(KEY, "n") == before


def test_two_runs_in_one_channel_do_not_commit_each_other(store):
    store.stage(KEY, "run-01", "n", [said(1)])
    store.stage(KEY, "run-02", "n", [said(2)])
    store.discard(KEY, "run-01")
    assert store.commit(KEY, "run-02").ids == ("m2",)
    store.stage(KEY, "run-03", "n", [said(3)])
    store.stage(KEY, "run-04", "n", [said(4)])
    assert store.commit(KEY, "run-04").ids == ("m2", "m4")
    assert store.commit(KEY, "run-03") == Mark("n", 4.0, ("m2", "m4", "m3"), 4)


def test_one_run_id_in_two_channels_and_threads(store):
    keys = [KEY, replace(KEY, channel="other"), replace(KEY, thread="t"), replace(KEY, session="t")]
    for i, key in enumerate(keys):
        store.stage(key, "run-01", "n", [said(i)])
    store.discard(keys[1], "run-01")
    assert [store.commit(key, "run-01") and store.watermark_for(key, "n").ids for key in keys] == [
        ("m0",),
        None,
        ("m2",),
        ("m3",),
    ]


@given(st.lists(st.builds(Key, hostile, hostile, st.none() | hostile), min_size=2, max_size=2, unique=True), hostile)
def test_any_name_makes_a_key_of_its_own_and_any_id_can_be_stored(tmp_path_factory, keys, id):
    store = WatermarkStore(tmp_path_factory.mktemp("marks") / "w.json")
    for i, key in enumerate(keys):
        delivered(store, [Message(id, "ann", "x", float(i))], key)
    marks = [WatermarkStore(store.path).watermark_for(key, "n") for key in keys]
    assert marks == [Mark("n", float(i), (id,), 0) for i in range(2)]


def test_names_that_read_the_same_when_joined_are_not_the_same_key():
    names = [("a", "bc"), ("ab", "c"), ("a", "b", "c"), ("a", "b", "None"), ("a", "b"), ("a", "b", ""), ('a", "b', "c")]
    assert len({str(Key(*name)) for name in names}) == len(names)


DAMAGE = {
    "empty": b"",
    "truncated": b'{"[\\"s\\", \\"ch\\", null]": {"native": "n", "last_at": 1',
    "text": b"hello",
    "binary": bytes(range(256)),
    "utf-16": '{"a": 1}'.encode("utf-16"),
    "list": b"[]",
    "number": b"1",
    "null": b"null",
    "deep": b"[" * 100_000,
    "deep object": b'{"a":' * 100_000,
    "mark is a list": b'{"k": []}',
    "mark is null": b'{"k": null}',
    "field missing": b'{"k": {"native": "n", "last_at": 1.0, "ids": []}}',
    "field unknown": b'{"k": {"native": "n", "last_at": 1.0, "ids": [], "position": 1, "more": 2}}',
    "native": b'{"k": {"native": 5, "last_at": 1.0, "ids": [], "position": 1}}',
    "last_at": b'{"k": {"native": "n", "last_at": "1", "ids": [], "position": 1}}',
    "endless": b'{"k": {"native": "n", "last_at": Infinity, "ids": [], "position": 1}}',
    "told for good": b'{"k": {"native": "n", "last_at": 1.0, "ids": [], "position": 1, "told_at": Infinity}}',
    "no number": b'{"k": {"native": "n", "last_at": NaN, "ids": [], "position": 1}}',
    "long number": b'{"k": {"native": "n", "last_at": ' + b"9" * 9999 + b', "ids": [], "position": 1}}',
    "ids": b'{"k": {"native": "n", "last_at": 1.0, "ids": "m1", "position": 1}}',
    "an id": b'{"k": {"native": "n", "last_at": 1.0, "ids": [1], "position": 1}}',
    "position": b'{"k": {"native": "n", "last_at": 1.0, "ids": [], "position": 1.5}}',
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_kept_aside_and_reported(store, caplog, damage):
    store.path.write_bytes(damage)
    assert store.watermark_for(KEY, "n") is None
    assert store.damaged.read_bytes() == damage
    assert store.damaged.parent == store.path.parent and not store.path.exists()
    (record,) = caplog.records
    assert store.path.name in record.getMessage() and store.damaged.name in record.getMessage()
    assert "\n" not in record.getMessage()
    assert delivered(store, [said(1)]) == store.watermark_for(KEY, "n")


def test_a_second_damaged_file_does_not_replace_the_first(store):
    kept = []
    for damage in (b"one", b"two", b"three"):
        store.path.write_bytes(damage)
        delivered(store, [said(1)])
        kept.append(store.damaged)
    assert [path.read_bytes() for path in kept] == [b"one", b"two", b"three"]


def test_a_file_that_cannot_be_read_stays_where_it_is(store):
    store.path.mkdir()
    with pytest.raises(InputError, match=r"channel-watermarks\.json: unreadable: \w"):
        store.watermark_for(KEY, "n")
    with pytest.raises(InputError):
        delivered(store, [said(1)])
    assert store.path.is_dir() and store.damaged is None


# Stopped in the middle


class Stop(BaseException):
    """What no handler expects."""


def stops(monkeypatch, budget):
    """Let `budget` calls that touch files through, then stop before the next one, or half-way through a write."""
    left = [budget]

    def stopping(call, half=None):
        def wrapped(*args, **more):
            if left[0] == 0:
                left[0] -= 1  # only once: what cleans up behind the fault gets through
                if half:
                    half(*args)
                raise Stop
            left[0] -= 1
            return call(*args, **more)

        return wrapped

    def half_written(path, data):
        with io.open(path, "wb") as stream:  # noqa: UP020  (the builtin is patched)
            stream.write(data[: len(data) // 2])

    for name in ("replace", "fsync", "rename", "unlink", "open", "mkdir"):
        monkeypatch.setattr(os, name, stopping(getattr(os, name)))
    for name in ("write_bytes", "write_text"):
        monkeypatch.setattr(Path, name, stopping(getattr(Path, name), half_written))
    for name in ("mkdir", "touch", "unlink", "read_text", "read_bytes", "replace", "open"):
        monkeypatch.setattr(Path, name, stopping(getattr(Path, name)))
    monkeypatch.setattr("builtins.open", stopping(open))


@pytest.mark.parametrize("existing", [False, True])
def test_stopped_at_any_call_the_mark_is_the_one_before_or_the_one_after(tmp_path, monkeypatch, existing):
    found = []
    for budget in range(100):
        path = tmp_path / str(budget) / "w.json"
        store = WatermarkStore(path)
        before = delivered(store, [said(1)]) if existing else None
        after = advance(before, [said(2)], "n")
        with monkeypatch.context() as patched:
            stops(patched, budget)
            try:
                finished = delivered(store, [said(2)], run="run-02")
            except Stop:
                finished = None
        found.append(WatermarkStore(path).watermark_for(KEY, "n"))
        assert found[-1] in (before, after)
        assert not list(path.parent.glob("*.damaged*"))
        if finished:
            break
        assert store.commit(KEY, "run-02") == after  # whoever survives the fault may try again
    assert finished == found[-1] == after
    assert budget > 5 and before in found


KILLED = """
import os, shutil, sys
import warmprefix
from warmprefix.channel import Message
from warmprefix.watermark import Key, WatermarkStore, advance

folder, existing = sys.argv[1], sys.argv[2] == "True"
OURS = os.path.dirname(warmprefix.__file__)
TOUCHING = {"open", "write", "close", "__exit__", "fsync", "replace", "rename", "unlink", "remove", "flock", "mkdir"}
KEY = Key("s", "ch")
said = lambda i: Message(f"m{i}", "ann", "x", float(i), position=i)
os.chdir(folder)
before = None
if existing:
    store = WatermarkStore("start.json")
    store.stage(KEY, "run-01", "n", [said(1)])
    before = store.commit(KEY, "run-01")
after = advance(before, [said(2)], "n")
seen = []
for point in range(1, 5000):
    if existing:
        shutil.copy("start.json", "w.json")
    elif os.path.exists("w.json"):
        os.remove("w.json")
    child = os.fork()
    if child == 0:
        left = point

        def strike():
            global left
            left -= 1
            if left == 0:
                os._exit(9)

        def line(frame, event, arg):  # at every line of the library
            if frame.f_code.co_filename.startswith(OURS):
                strike()
                return line

        def call(frame, event, arg):  # before and after every call that touches files, whoever makes it
            if event in ("c_call", "c_return") and arg.__name__ in TOUCHING:
                strike()

        store = WatermarkStore("w.json")
        sys.settrace(line)
        sys.setprofile(call)
        store.stage(KEY, "run-02", "n", [said(2)])
        store.commit(KEY, "run-02")
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    mark = WatermarkStore("w.json").watermark_for(KEY, "n")
    assert mark in (before, after), (point, mark)
    seen.append(mark == after)
    if code == 0:
        break
assert seen == sorted(seen), "the mark went back"
assert not [name for name in os.listdir() if "damaged" in name]
print(len(seen), seen.index(True))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.parametrize("existing", [False, True])
def test_killed_at_any_step_the_mark_is_the_one_before_or_the_one_after(tmp_path, existing):
    run = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), str(existing)], capture_output=True, text=True, timeout=120
    )
    assert (run.returncode, run.stderr) == (0, "")
    points, first_after = map(int, run.stdout.split())
    assert points > 100 and 0 < first_after < points - 1  # killed on both sides of the one step that counts


COMMITTING = """
import sys
from warmprefix.channel import Message
from warmprefix.watermark import Key, WatermarkStore

path, me = sys.argv[1:]
store = WatermarkStore(path)
print("ready", flush=True)
sys.stdin.readline()
for i in range(40):
    row = [Message(f"{me}-{i}", "ann", "x", float(i), position=i)]
    for key in (Key("s", "shared"), Key("s", f"{me}-{i}")):
        store.stage(key, "run", "n", row)
        store.commit(key, "run")
"""


def test_two_processes_that_commit_at_once_lose_nothing(store):
    runs = [
        subprocess.Popen([sys.executable, "-c", COMMITTING, str(store.path), me], stdin=-1, stdout=-1, text=True)
        for me in "ab"
    ]
    for run in runs:
        assert run.stdout.readline() == "ready\n"
    for run in runs:
        run.stdin.write("go\n")
        run.stdin.flush()
    for run in runs:
        run.communicate(timeout=60)
        assert run.returncode == 0
    wanted = {f"{me}-{i}" for me in "ab" for i in range(40)}
    assert set(store.watermark_for(Key("s", "shared"), "n").ids) == wanted
    assert all(store.watermark_for(Key("s", name), "n").ids == (name,) for name in wanted)
    assert sorted(path.name for path in store.path.parent.iterdir()) == [store.path.name, store.path.name + ".lock"]
    assert len(json.loads(store.path.read_text())) == 81


# Against a plain model

KEYS = st.sampled_from([KEY, Key("s", "ch", "thread"), Key("t", "ch")])
RUNS = st.sampled_from(["run-01", "run-02", "run-03"])
NATIVES = st.sampled_from(["n", "o"])
SHOWN = st.lists(st.builds(said, st.integers(0, 20), st.sampled_from([0.0, 5.0, 5.0, 9.0])), max_size=3)


class Stored(RuleBasedStateMachine):
    """The store against what a diary of deliveries says."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "w.json"
        self.store, self.staged, self.diary = WatermarkStore(self.path), {}, {}

    def teardown(self):
        self.folder.cleanup()

    @rule(key=KEYS, run=RUNS, native=NATIVES, shown=SHOWN)
    def stage(self, key, run, native, shown):
        self.store.stage(key, run, native, shown)
        self.staged[key, run] = native, shown

    @rule(key=KEYS, run=RUNS)
    def commit(self, key, run):
        self.store.commit(key, run)
        native, shown = self.staged.pop((key, run), (None, []))
        if shown:
            owner, rows = self.diary.get(key, (None, []))
            self.diary[key] = native, (rows if owner == native else []) + sorted(shown, key=lambda m: m.position)

    @rule(key=KEYS, run=RUNS)
    def discard(self, key, run):
        self.store.discard(key, run)
        self.staged.pop((key, run), None)

    @rule()
    def restart(self):
        self.store, self.staged = WatermarkStore(self.path), {}

    @rule(damage=st.sampled_from([b"{", b"[]", b"\xff"]))
    def damage(self, damage):
        self.path.write_bytes(damage)
        self.diary = {}

    @invariant()
    def every_mark_is_what_the_diary_says(self):
        for key in (KEY, Key("s", "ch", "thread"), Key("t", "ch")):
            owner, rows = self.diary.get(key, (None, []))
            for native in ("n", "o"):
                mark = self.store.watermark_for(key, native)
                if native != owner:
                    assert mark is None
                    continue
                assert mark.native == native
                assert mark.last_at == max(m.created_at for m in rows)
                assert mark.position == max(m.position for m in rows)
                assert mark.ids == tuple(dict.fromkeys(m.id for m in rows))


TestStored = Stored.TestCase
TestStored.settings = settings(max_examples=25, stateful_step_count=25)
