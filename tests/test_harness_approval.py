"""The same checks for every call."""

from typing import Any

import pytest

from warmprefix.harness.approval import approve_all, refusal, stays_inside
from warmprefix.tools.catalogue import Tool, own_catalogue

ASKING = Tool("deploy", schema={"type": "object", "required": ["to"]})
QUIET = Tool("look", asks=False)


def never(tool: Tool, arguments: Any) -> bool:
    return False


def test_arguments_then_guards_then_the_prompt() -> None:
    asked = []

    def approve(tool: Tool, arguments: Any) -> bool:
        asked.append(tool.name)
        return True

    guard = lambda tool, arguments: "it is Friday" if arguments.get("to") == "live" else None  # noqa: E731
    assert refusal(ASKING, {}, approve, [guard]) == "deploy cannot run so: 'to' is a required property"
    assert refusal(ASKING, {"to": "live"}, approve, [guard]) == "deploy was stopped: it is Friday"
    assert asked == [], "nobody is asked about what will not run"
    assert refusal(ASKING, {"to": "test"}, approve, [guard]) is None and asked == ["deploy"]
    assert refusal(ASKING, {"to": "test"}, never, []) == "deploy was not approved"


def test_what_does_not_ask_runs_unasked() -> None:
    assert refusal(QUIET, {}, never, ()) is None
    assert refusal(QUIET, {}, approve_all, ()) is None


@pytest.mark.parametrize("path", ["/etc/passwd", "~/x", "..", "a/../../b"])
def test_paths_that_lead_out_are_stopped(path: str) -> None:
    assert path in (refusal(QUIET, {"path": path}, approve_all, [stays_inside]) or "")


def test_paths_inside_pass() -> None:
    assert stays_inside(QUIET, {"path": "a/..b/c", "content": "/etc"}) is None


def test_what_reaches_out_or_destroys_asks() -> None:
    asking = {tool.name for tool in own_catalogue() if tool.asks}
    assert {"deploy_version", "send_mail", "bash", "delete_branch"} <= asking
    assert not {"read_file", "search_tools", "create_ticket"} & asking
