"""What stands between a call and its tool, the same for resident and for newly loaded ones."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from warmprefix.tools.arguments import misfit
from warmprefix.tools.catalogue import Tool

Approve = Callable[[Tool, Mapping[str, Any]], bool]
Guard = Callable[[Tool, Mapping[str, Any]], str | None]


def approve_all(tool: Tool, arguments: Mapping[str, Any]) -> bool:
    """Approval of everything, for runs that have been told to go on without asking."""
    return True


def stays_inside(tool: Tool, arguments: Mapping[str, Any]) -> str | None:
    """A guard: the path that leads out of the worktree, if the arguments hold one.

    >>> stays_inside(Tool("read_file"), {"path": "../keys"})
    "the path '../keys' leads out of the worktree"
    """
    for key in ("path", "output"):
        value = arguments.get(key)
        if isinstance(value, str) and (value.startswith(("/", "~")) or ".." in PurePosixPath(value).parts):
            return f"the path {value!r} leads out of the worktree"
    return None


def refusal(tool: Tool, arguments: Mapping[str, Any], approve: Approve, guards: Sequence[Guard]) -> str | None:
    """Why a call does not run, or None: unfit arguments first, then the guards, then the prompt for approval.

    >>> refusal(Tool("drop_table"), {}, lambda tool, arguments: False, ())
    'drop_table was not approved'
    """
    problem = misfit(tool, arguments)
    if problem:
        return f"{tool.name} cannot run so: {problem}"
    for guard in guards:
        objection = guard(tool, arguments)
        if objection:
            return f"{tool.name} was stopped: {objection}"
    if tool.asks and not approve(tool, arguments):
        return f"{tool.name} was not approved"
    return None
