"""Old output goes when it pays, and leaves a trace."""

import json

from warmprefix.harness.transcript import Transcript, result_piece, text_piece, use_piece
from warmprefix.harness.trimming import Policy, plan
from warmprefix.tools.catalogue import token_count


def talk(*sizes: int) -> Transcript:
    said = Transcript()
    for turn, size in enumerate(sizes):
        said.append(text_piece("user", f"turn {turn}"), use_piece(f"c{turn}", "read_file", {"path": "a"}))
        said.append(result_piece(f"c{turn}", "log" + " log" * (size - 1)))
    return said


def test_only_output_of_old_turns_goes_and_its_call_stays() -> None:
    said = talk(500, 500, 500)
    changes, reclaimed = plan(said.pieces, Policy(threshold=0, keep=2))
    assert list(changes) == [2]
    stub = json.loads(changes[2].body)
    assert stub["tool_use_id"] == "c0" and "500 tokens" in stub["content"] and changes[2].text == stub["content"]
    assert reclaimed == 500 - token_count(changes[2].text)


def test_below_the_threshold_nothing_goes() -> None:
    pieces = talk(500, 500, 500, 500).pieces
    _, reclaimed = plan(pieces, Policy(threshold=0, keep=2))
    assert plan(pieces, Policy(threshold=reclaimed, keep=2))[1] == reclaimed
    assert plan(pieces, Policy(threshold=reclaimed + 1, keep=2)) == ({}, 0)


def test_what_was_cut_and_what_is_short_is_left_alone() -> None:
    said = talk(500, 5, 500)
    changes, reclaimed = plan(said.pieces, Policy(threshold=0, keep=1))
    assert list(changes) == [2]
    said.rewrite(changes, reclaimed, 3)
    assert plan(said.pieces, Policy(threshold=0, keep=1)) == ({}, 0)
    (trim,) = said.trims
    assert (trim.request, trim.first, trim.pieces, trim.reclaimed) == (3, 2, 1, reclaimed)


def test_keep_counts_turns_the_present_one_among_them() -> None:
    pieces = talk(500, 500, 500).pieces
    found = [sorted(plan(pieces, Policy(0, keep))[0]) for keep in (0, 1, 2, 3, 9)]
    assert found == [[2, 5, 8], [2, 5], [2], [], []]
    assert plan((), Policy(0, 0)) == ({}, 0)
