"""The user turn of a mention: its order, its payload in one line, its brief that never changes."""

import hashlib
import json

from drawn import BIDI, CONTROLS, hostile
from hypothesis import assume, given

from warmprefix import brief as brief_module
from warmprefix.brief import OPENING, SEPARATOR, Binding, brief, mention_turn, payload
from warmprefix.channel import Message, clean
from warmprefix.delivery import Block, render
from warmprefix.tokens import Tokenizer, is_segment

ASKED = Message("m026", "ann", "@claude look", 2.0, position=1)
ROWS = (Message("m025", "bob", "red again", 1.0), ASKED)


def test_the_payload_of_the_published_example():
    assert payload(ASKED, "run-02") == (
        '{"channel_id":"ch-backend","message_id":"m026","run_id":"run-02","binding_id":"b-claude",'
        '"runtime":"cli:claude:agent","supervised":true,"resident":true,"thread_root_id":null,'
        '"channel_agents":[{"handle":"@claude","reachable":true}],"max_recipients":3,"text":"@claude look"}\n'
    )


@given(hostile.map(clean), hostile.map(clean), hostile.map(clean))
def test_a_payload_is_one_line_and_comes_back_whole(id, text, channel):
    line = payload(Message(id, "ann", text, 0.0, thread_root_id=text or None), id, Binding(channel_id=channel))
    assert line.splitlines() == [line[:-1]] and line.endswith("}\n")
    assert not any(char in line for char in CONTROLS + BIDI + ["\U000e0041", "\u2028", "\x85"])
    fields = json.loads(line)
    assert (fields["message_id"], fields["run_id"], fields["text"]) == (id, id, text)
    assert (fields["channel_id"], fields["thread_root_id"], fields["max_recipients"]) == (channel, text or None, 3)
    assert is_segment(line)


@given(hostile)
def test_a_lone_surrogate_is_escaped_and_comes_back(text):
    assume("\udbff\udfff" not in text and "\ud800\udfff" not in text)  # JSON reads these pairs as one character
    line = payload(Message("1", "ann", text, 0.0), "run-01")
    line.encode("utf-8")
    assert json.loads(line)["text"] == text


def test_the_turns_order():
    block = render(ROWS, ASKED)
    parts = mention_turn(ASKED, "run-02", block).parts
    assert [part.kind for part in parts] == ["opening", "payload", "separator", "brief", "header", "row"]
    assert [part.text for part in parts[:4]] == [OPENING, payload(ASKED, "run-02"), SEPARATOR, brief()]
    assert "".join(part.text for part in parts[4:]) == block.text
    assert mention_turn(ASKED, "run-02", block).role == "user"


def test_without_a_block_the_turn_ends_with_the_brief():
    assert [part.kind for part in mention_turn(ASKED, "run-02", Block()).parts][-1] == "brief"


def test_the_brief_has_the_published_size_and_is_the_same_bytes_every_time():
    assert Tokenizer().count(brief()) == 466
    first = hashlib.sha256(brief().encode()).digest()
    brief_module.brief.cache_clear()
    assert hashlib.sha256(brief().encode()).digest() == first
    turns = [mention_turn(m, f"run-{i}", render(ROWS, m)) for i, m in enumerate(ROWS)]
    assert len({part.text for turn in turns for part in turn.parts if part.kind == "brief"}) == 1


def test_the_brief_says_what_a_newcomer_needs():
    for word in ("untrusted data", "`to`", "Threads.", "`channel_history`", "Refusing.", "Worktree.", "Command line"):
        assert word in brief()
