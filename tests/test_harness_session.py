"""A scripted run without a model: what goes out, byte for byte, and what became of every call."""

import hashlib
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from warmprefix.harness.context import context_view
from warmprefix.harness.fan_out import Child, fan_out
from warmprefix.harness.session import Activation, Call, Miss, Reply, Session
from warmprefix.harness.trimming import Policy
from warmprefix.harness.wire import PLACEMENTS
from warmprefix.tools.catalogue import Tool, own_catalogue
from warmprefix.tools.handlers import Sandbox
from warmprefix.tools.surface import BUILD, PLAN, Mode, surface

INSTRUCTIONS = "You are the resident coding agent of one project.\n"


def no_deployments(tool: Tool, arguments: Any) -> bool:
    return tool.heading != "Deployments"


def session(folder: Path, mode: Mode = BUILD, **options: Any) -> Session:
    box = Sandbox(folder)
    for number in range(3):
        (box.root / f"notes{number}.md").write_text("a line\n" * 200, encoding="utf-8")
    return Session(surface(own_catalogue(), mode), box, INSTRUCTIONS, no_deployments, **options)


def scripted(folder: Path, mode: Mode = BUILD, **options: Any) -> Session:
    """Read files, search a tool, call a deferred one, meet a refusal of each kind, and start eight subagents."""
    run = session(folder, mode, **options)
    read = tuple(Call("read_file", {"path": f"notes{number}.md"}) for number in range(3))
    run.run("Look at the notes.", [Reply("I read them.", read), Reply("They are alike.")])
    run.run(
        "Give the login bug to Ann and ship it.",
        [
            Reply("", (Call("search_tools", {"query": "give a bug to somebody", "top": 2}),)),
            Reply("", (Call("create_ticket", {"title": "Login loops"}), Call("no_such_tool"))),
            Reply("", (Call("assign_ticket", {"ticket": "tickets-1", "assignee": "ann"}),)),
            Reply("", (Call("deploy_version", {"service": "web", "version": "2", "environment": "production"}),)),
            Reply("", (Call("submit_plan", {"title": "x", "steps": []}), Call("search_tools", {"query": "qwxyz"}))),
            Reply("Ann has it; shipping was not approved."),
        ],
    )
    tasks = [f"Check notes{number % 3}.md" for number in range(8)]
    run.run("Have it checked.", [Reply("", (Call("delegate_work", {"instructions": tasks}),)), Reply("Checked.")])
    return run


def test_every_call_ends_as_the_rules_say(tmp_path: Path) -> None:
    run = scripted(tmp_path)
    assert [(outcome.name, outcome.status) for outcome in run.outcomes] == [
        ("read_file", "ran"),
        ("read_file", "ran"),
        ("read_file", "ran"),
        ("search_tools", "ran"),
        ("create_ticket", "ran"),
        ("no_such_tool", "outside"),
        ("assign_ticket", "ran"),
        ("deploy_version", "refused"),
        ("submit_plan", "outside"),
        ("search_tools", "ran"),
        ("delegate_work", "ran"),
    ]
    assert run.outcomes[7].text == "deploy_version was not approved"
    assert "That does not mean that there is none" in run.outcomes[9].text


def test_activations_are_recorded_with_their_trigger_and_an_empty_search_as_a_miss(tmp_path: Path) -> None:
    run = scripted(tmp_path)
    assert run.activations[0] == Activation("assign_ticket", 2, "search", "give a bug to somebody")
    assert [(a.tool, a.request, a.trigger) for a in run.activations[2:]] == [
        ("create_ticket", 3, "call"),
        ("deploy_version", 5, "call"),
    ]
    assert run.misses == [Miss("qwxyz", 6)]
    assert [tool.name for tool in run.loaded] == [activation.tool for activation in run.activations]


def test_a_mode_refuses_what_no_deferral_can_bring_back(tmp_path: Path) -> None:
    run = scripted(tmp_path, PLAN)
    status = {outcome.name: outcome.status for outcome in run.outcomes}
    assert status["create_ticket"] == status["deploy_version"] == status["assign_ticket"] == "outside"
    assert status["submit_plan"] == "ran"
    assert all(tool.read_only for tool in run.loaded), "a search offers only what the mode admits"


def test_nothing_sent_is_ever_rewritten(tmp_path: Path) -> None:
    run = scripted(tmp_path)
    assert len(run.sent) == 10
    for earlier, later in pairwise(run.sent):
        for tier in ("tools", "system", "messages"):
            old = [piece.body for piece in earlier.pieces if piece.tier == tier]
            new = [piece.body for piece in later.pieces if piece.tier == tier]
            assert new[: len(old)] == old
    system = [[piece.body for piece in sent.pieces if piece.tier == "system"] for sent in run.sent]
    assert all(each == system[0] for each in system), "the index stays as it is, whatever has been loaded"


def test_activated_schemas_stand_behind_the_block_in_the_order_of_activation(tmp_path: Path) -> None:
    run = scripted(tmp_path)
    resident = [tool.name for tool in run.surface.resident]
    assert list(context_view(run).tools) == resident + [tool.name for tool in run.loaded]


def test_a_rewrite_is_a_trim_that_says_so(tmp_path: Path) -> None:
    run = scripted(tmp_path, trim=Policy(threshold=1_000, keep=1))
    assert [(trim.request, trim.pieces) for trim in run.transcript.trims] == [(2, 3)]
    messages = [[piece.body for piece in sent.pieces if piece.tier == "messages"] for sent in run.sent]
    rewritten = [n for n in range(1, len(messages)) if messages[n][: len(messages[n - 1])] != messages[n - 1]]
    assert rewritten == [2]
    first = run.transcript.trims[0].first
    assert messages[2][:first] == messages[1][:first] and messages[2][first] != messages[1][first]


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_what_an_activation_leaves_of_the_tool_block(tmp_path: Path, placement: str) -> None:
    run = scripted(tmp_path, placement=placement)
    blocks = [[piece.body for piece in sent.pieces if piece.tier == "tools"] for sent in run.sent]
    kept = [new[: len(old)] == old for old, new in pairwise(blocks)]
    assert all(kept) == (placement != "insert")
    assert (blocks[-1] == blocks[0]) == (placement == "inline")
    references = [piece for piece in run.sent[-1].pieces if piece.kind == "tool_reference"]
    assert len(references) == (len(run.loaded) if placement == "inline" else 0)


def test_a_call_with_unfit_arguments_loads_the_schema_that_tells_why(tmp_path: Path) -> None:
    run = session(tmp_path)
    run.run("x", [Reply("", (Call("assign_ticket", {}),)), Reply("", (Call("read_file", {"path": "../x"}),))])
    assert [outcome.status for outcome in run.outcomes] == ["refused", "refused"]
    assert [tool.name for tool in run.loaded] == ["assign_ticket"]


def test_what_a_model_writes_is_sent_and_run_whatever_it_writes(tmp_path: Path) -> None:
    run = session(tmp_path)
    wish, lines = {"query": "qwxyz\ud800", "top": 2.0}, {"path": "notes0.md", "last_line": 2.0}
    calls = (Call("search_tools", wish), Call("read_file", lines), Call("\ud800"))
    run.run("hi \ud800", [Reply("\udfff", calls), Reply("done")])
    assert [outcome.status for outcome in run.outcomes] == ["ran", "ran", "outside"]
    assert run.outcomes[1].text == "1: a line\n2: a line"
    assert run.sent[-1].request().tokens and run.sent[-1].body().encode()


def test_a_child_may_call_no_more_than_who_starts_it_and_lives_by_the_same_rules(tmp_path: Path) -> None:
    run = session(tmp_path, trim=Policy(5, 1), pace=3.0)
    child = run.child(frozenset({"read_file"}))
    assert (child.trim, child.pace, child.now) == (run.trim, 3.0, run.now)
    assert child.child().may_call == {"read_file"}
    assert child.child(frozenset({"read_file", "bash"})).may_call == {"read_file"}
    assert run.child().may_call is None


def test_without_deferral_nothing_is_loaded_because_everything_is_there(tmp_path: Path) -> None:
    run = session(tmp_path)
    run.surface = surface(own_catalogue(), BUILD, deferral=False)
    run.run("x", [Reply("", (Call("search_tools", {"query": "give a bug to somebody"}), Call("list_alerts")))])
    assert run.loaded == [] and [outcome.status for outcome in run.outcomes] == ["ran", "ran"]
    assert context_view(run).index == 0 and context_view(run).withheld == {}


def test_the_view_shows_what_would_be_sent(tmp_path: Path) -> None:
    run = scripted(tmp_path)
    view = context_view(run)
    request = run.send().request()
    assert view.total == request.tokens
    assert sum(view.tools.values()) == sum(block.tokens for block in request.blocks if block.tier == "tools")
    assert set(view.tools) | set(view.withheld) == {tool.name for tool in run.surface.tools}
    assert not set(view.tools) & set(view.withheld) and 0 < view.index < view.system


def test_eight_subagents_share_one_prefix_whatever_they_may_call(tmp_path: Path) -> None:
    run = scripted(tmp_path)
    starts = fan_out([Child(2.0, 9.0)] * 8, bound=5.0)
    profiles = [frozenset({"read_file"}), frozenset({"read_file", "create_ticket"})]
    children = []
    for start in starts:
        child = run.child(profiles[start.child % 2])
        child.now = start.sent
        child.run(f"Check number {start.child}.", [Reply("", (Call("create_ticket", {"title": "x"}),))])
        children.append(child)
    heads = {tuple(piece.body for piece in child.sent[0].pieces if piece.tier != "messages") for child in children}
    assert len(heads) == 1
    assert [child.outcomes[0].status for child in children] == ["outside", "ran"] * 4
    assert [child.sent[0].at for child in children] == [0.0] + [2.0] * 7
    fresh = session(tmp_path).send()
    assert heads == {tuple(piece.body for piece in fresh.pieces)}, "and with a run that has loaded nothing"


SMALL = surface(
    [
        Tool("search_tools", "Find tools.", does={"action": "search_tools"}, asks=False, resident=True),
        Tool("read_file", "Read.", does={"action": "read_file"}, asks=False, resident=True),
        *(Tool(f"send_{what}", f"Send a {what}.", heading="Mail") for what in ("mail", "letter", "parcel", "card")),
        Tool("deploy", "Ship it.", heading="Deployments"),
        Tool("submit_plan", delivers="plan"),
    ],
)
calls = st.sampled_from(
    [
        *(Call(name) for name in ("send_mail", "send_letter", "send_card", "deploy", "submit_plan", "nothing")),
        *(Call("search_tools", {"query": query}) for query in ("post a parcel", "a card or a letter", "qwxyz")),
        *(Call("read_file", {"path": path}) for path in ("notes0.md", "absent.md", "../keys")),
    ]
)
turns = st.lists(
    st.lists(st.builds(Reply, st.sampled_from(["", "Well."]), st.lists(calls, max_size=3).map(tuple)), max_size=3),
    max_size=6,
)
policies = st.none() | st.builds(Policy, st.sampled_from([0, 500, 1_500]), st.sampled_from([1, 2]))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(script=turns, trim=policies, placement=st.sampled_from(["append", "inline"]))
def test_whatever_happens_each_request_begins_with_the_one_before(
    script: list[list[Reply]], trim: Policy | None, placement: str, tmp_path: Path
) -> None:
    run = session(tmp_path, trim=trim, placement=placement)
    run.surface = SMALL
    for replies in script:
        run.run("go on", replies)
    trimmed = {trim.request: trim.first for trim in reversed(run.transcript.trims)}  # of several the first and deepest
    for number, (earlier, later) in enumerate(pairwise(run.sent), start=1):
        for tier in ("tools", "system", "messages"):
            old, new = ([piece.body for piece in sent.pieces if piece.tier == tier] for sent in (earlier, later))
            kept = trimmed.get(number, len(old)) if tier == "messages" else len(old)
            assert new[:kept] == old[:kept] and len(new) >= len(old)
    assert [activation.tool for activation in run.activations] == [tool.name for tool in run.loaded]
    assert all(tool in SMALL.deferred for tool in run.loaded)
    assert {o.status for o in run.outcomes if o.name in ("submit_plan", "nothing")} <= {"outside"}
    assert {o.status for o in run.outcomes if o.name == "deploy"} <= {"refused"}


def digest(folder: Path) -> str:
    bodies = "\n".join(sent.body("model") for sent in scripted(folder).sent)
    return hashlib.sha256(bodies.encode()).hexdigest()


def test_another_process_sends_the_same_bytes(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys\nsys.path.insert(0, sys.argv[1])\nimport test_harness_session as t\n"
        "print(t.digest(pathlib.Path(sys.argv[2])), end='')"
    )
    there = subprocess.run(
        [sys.executable, "-c", code, str(Path(__file__).parent), str(tmp_path / "there")],
        env={"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout == digest(tmp_path / "here")
