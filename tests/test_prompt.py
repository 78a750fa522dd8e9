"""Cold, warm or restored is decided in one place; a warm process never reads its own words again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmprefix.prompt import Segment, Turn, compose, full_prompt, warm_prompt

FRAMING = "Be brief.\n"
TALK = (
    Turn.of("system", "rules\n"),
    Turn.of("user", "first\n"),
    Turn.of("assistant", "done\n"),
    Turn.of("user", "second\n"),
)
SILENT = (Turn.of("assistant", "done\n"), Turn.of("tool", "result\n"))
BLANK = (Turn.of("user", "first\n"), Turn.of("user", " \n\t"))
HEAD = "Be brief.\n\n"
FULL = "User: first\nAssistant: done\nUser: second\n"


def text(segments):
    return "".join(segment.text for segment in segments)


@pytest.mark.parametrize(
    ("talk", "cold", "restored", "sent"),
    [
        # The whole table: the state of the process, and whether there is a warm prompt.
        (TALK, False, False, "second\n"),
        (TALK, True, False, HEAD + FULL),
        (TALK, False, True, HEAD + "second\n"),
        (TALK, True, True, HEAD + "second\n"),
        (SILENT, False, False, HEAD + "Assistant: done\n"),
        (SILENT, True, False, HEAD + "Assistant: done\n"),
        (SILENT, False, True, HEAD + "Assistant: done\n"),
        (SILENT, True, True, HEAD + "Assistant: done\n"),
        (BLANK, False, False, HEAD + "User: first\nUser:  \n\t"),
        (BLANK, True, True, HEAD + "User: first\nUser:  \n\t"),
        ((), True, False, HEAD),
        ((), False, False, HEAD),
        ((), False, True, HEAD),
    ],
)
def test_what_is_sent(talk, cold, restored, sent):
    assert text(compose(talk, FRAMING, cold=cold, restored=restored)) == sent


def test_the_warm_prompt_is_the_newest_turn_of_a_person():
    after = (Turn.of("assistant", "a\n"), Turn.of("tool", "t\n"), Turn.of("system", "s\n"))
    assert text(warm_prompt(TALK + after)) == "second\n"
    assert warm_prompt(SILENT) == warm_prompt(()) == ()


def test_a_blank_newest_turn_is_no_warm_prompt_and_hides_none_before_it():
    assert warm_prompt(BLANK) == ()


def test_labels_stand_once_a_turn_and_pieces_keep_their_kinds():
    turn = Turn("user", (Segment("opening", "hello\n"), Segment("brief", "rules\n")))
    assert full_prompt((turn, Turn("user", ()))) == (Segment("opening", "User: hello\n"), Segment("brief", "rules\n"))


@given(st.lists(st.sampled_from(["user", "assistant", "tool", "system"]), max_size=8), st.integers(0, 8))
def test_a_warm_turn_holds_no_word_of_the_agent_or_the_framing(roles, at):
    roles.insert(at, "user")
    talk = [Turn.of(role, f"{role} {i}\n") for i, role in enumerate(roles)]
    last = max(i for i, role in enumerate(roles) if role == "user")
    assert text(compose(talk, FRAMING, cold=False)) == f"user {last}\n"
