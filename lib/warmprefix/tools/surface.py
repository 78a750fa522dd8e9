"""What a run may use and what of it is sent: the mode's filter first, then deferral."""

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from warmprefix.errors import InputError
from warmprefix.tools.catalogue import Tool, qualified

SWITCH = "CC_SERVER_TOOL_DEFERRAL"
INDEX_OPENING = (
    "More tools are at hand whose definitions are not loaded. Call one by its name, "
    "or describe what you need to search_tools.\n"
)


@dataclass(frozen=True, slots=True)
class Mode:
    """A way of working: the result it must deliver, and under which headings it may change something.

    Without `writes` every tool is admitted, except those that deliver another mode's result.
    """

    name: str
    writes: frozenset[str] | None = None

    def admits(self, tool: Tool) -> bool:
        """Whether a run in this mode may use the tool at all."""
        if tool.delivers:
            return tool.delivers == self.name
        return self.writes is None or tool.read_only or tool.heading in self.writes


BUILD = Mode("build")
PLAN = Mode("plan", frozenset({"Run and people"}))
REVIEW = Mode("review", frozenset({"Run and people", "Reviews"}))
ANSWER = Mode("answer", frozenset({"Run and people", "Channels and messages"}))
MODES = {mode.name: mode for mode in (BUILD, PLAN, REVIEW, ANSWER)}


@dataclass(frozen=True, slots=True)
class Surface:
    """The tools of one run: those whose schemas are in every request, and those that are only named."""

    resident: tuple[Tool, ...]
    deferred: tuple[Tool, ...] = ()

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All tools of the run; nothing else can be called or loaded."""
        return self.resident + self.deferred

    def find(self, name: str) -> Tool | None:
        """The tool of that name, or None when it is outside the surface."""
        return next((tool for tool in self.tools if tool.name == name), None)

    def index(self) -> str:
        """The name index of the system prompt: the deferred tools under their headings; empty when there are none.

        >>> print(Surface((), (Tool("b", heading="Mail"), Tool("a", heading="Mail"))).index().splitlines()[-1])
        Mail: a, b
        """
        if not self.deferred:
            return ""
        groups: dict[str, list[str]] = {}
        for tool in sorted(self.deferred, key=lambda tool: tool.name):
            groups.setdefault(_heading(tool), []).append(tool.name)
        return INDEX_OPENING + "".join(f"{heading}: {', '.join(groups[heading])}\n" for heading in sorted(groups))


def headings(tools: Sequence[Tool]) -> list[str]:
    """What tools are grouped under: a heading of their own, else the name of their server.

    >>> headings([Tool("send", heading="Mail"), Tool("browse", server="web"), Tool("now")])
    ['Mail', 'Other', 'web']
    """
    return sorted({_heading(tool) for tool in tools})


def _heading(tool: Tool) -> str:
    return " ".join((tool.heading or tool.server or "Other").split())


def surface(
    catalogue: Sequence[Tool],
    mode: Mode | None = BUILD,
    resident: Collection[str] | None = None,
    *,
    deferral: bool = True,
) -> Surface:
    """The tools that a mode admits, split into resident and deferred ones; without deferral all are resident.

    `resident` names the resident tools (by default the catalogue's own choice); the tool that delivers the mode's
    result is resident in any case. `mode=None` admits everything. Deferral comes after the filter: it can hide a
    schema, never bring back a tool. Raises `InputError` for a resident name that the catalogue does not hold.
    """
    tools = qualified(catalogue)
    if resident is not None:
        for name in resident:
            _known(name, tools)
    admitted = [tool for tool in tools if mode is None or mode.admits(tool)]
    if not deferral:
        return Surface(tuple(admitted))

    def stays(tool: Tool) -> bool:
        chosen = tool.resident if resident is None else tool.name in resident
        return chosen or (mode is not None and tool.delivers == mode.name)

    return Surface(tuple(tool for tool in admitted if stays(tool)), tuple(tool for tool in admitted if not stays(tool)))


def _known(name: str, tools: Sequence[Tool]) -> None:
    names = [tool.name for tool in tools]
    if name not in names:
        near = difflib.get_close_matches(name, names, 1)
        remedy = f"did you mean {near[0]!r}?" if near else "name tools of the catalogue"
        raise InputError("", f"resident tool {name!r}", "is not in the catalogue", remedy)


def deferral_wanted(option: str | None, environ: Mapping[str, str]) -> bool:
    """Whether tools are deferred: the command line's `--tool-deferral` decides, then the environment, else yes.

    >>> deferral_wanted(None, {SWITCH: "off"}), deferral_wanted("on", {SWITCH: "off"}), deferral_wanted(None, {})
    (False, True, True)

    Raises `InputError` for anything but `on` and `off`.
    """
    place, value = ("--tool-deferral", option) if option is not None else (SWITCH, environ.get(SWITCH, "on"))
    if value not in ("on", "off"):
        raise InputError("", place, f"is {value!r}", "use on or off")
    return value == "on"
