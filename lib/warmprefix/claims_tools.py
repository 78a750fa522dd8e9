"""What the tool surface and the harness give for the published figures of tool-context.md §9."""

from collections.abc import Iterator
from functools import cache

from warmprefix.caches import Usage
from warmprefix.datafiles import read_data
from warmprefix.harness import markers as marking
from warmprefix.harness import thresholds
from warmprefix.harness.activation import one_activation
from warmprefix.harness.billing import ANTHROPIC
from warmprefix.harness.fan_out import Child, fan_out
from warmprefix.harness.lookback import RUNS, after_a_turn
from warmprefix.harness.subagents import FIRST, TOGETHER, by_size
from warmprefix.harness.transcript import Piece, system_piece, tool_piece
from warmprefix.harness.trimming import Policy
from warmprefix.harness.wire import APPEND, INLINE, assemble, body
from warmprefix.harness.workloads import texts, tool_turns
from warmprefix.prices import cost
from warmprefix.prompt import TOOLS
from warmprefix.tools.catalogue import own_catalogue, token_count
from warmprefix.tools.report import tools_report
from warmprefix.tools.surface import MODES, SWITCH, Mode, deferral_wanted, surface

Value = float | tuple[float, float]

LONG_TURNS = (24, 30, 42, 60)  # blocks, all of them more than 20 positions where a run does not count once
TRIMMED_RUNS = tuple((turns, output) for turns in (20, 40) for output in (500, 2_000, 8_000))
THRESHOLDS = (thresholds.STEADY, 10_000, 20_000)


@cache
def measure() -> dict[str, Value]:
    """The value of every claim about tools; none of them depends on a channel."""
    return {
        **_of_the_surface(),
        "read.price": float(_usd(Usage(cache_read=100_000)) / _usd(Usage(uncached=100_000))),
        "off.identical": sum(off_is_identical(mode) for mode in MODES.values()) / len(MODES),
        **_of_the_lookback(),
        **_of_an_activation(),
        **_of_a_fan_out(),
        **_of_trimming(),
    }


def _usd(usage: Usage) -> float:
    return float(cost(usage, ANTHROPIC.model, ANTHROPIC.prices))


def _of_the_surface() -> dict[str, Value]:
    report = tools_report(own_catalogue())
    indexes = [token_count(surface(own_catalogue(), mode).index()) for mode in (None, *MODES.values())]
    return {
        "tools.count": report["count"],
        "tools.full": report["tokens_full"],
        "tools.resident": len(surface(own_catalogue(), None).resident),
        "tools.index": (min(indexes), max(indexes)),
        "tools.deferred": report["tokens_deferred"],
        "tools.reduction": report["reduction"],
    }


def off_is_identical(mode: Mode) -> bool:
    """Whether a run with deferral switched off, in either way, sends the bytes of a harness that has no deferral."""
    instructions, said = read_data("framing.md"), texts(0, 3)
    plain = tuple(_without_the_feature(mode, instructions, said))
    wanted = body(plain, _marked(plain))
    for option, environ in (("off", {}), (None, {SWITCH: "off"})):
        split = surface(own_catalogue(), mode, deferral=deferral_wanted(option, environ))
        pieces = assemble(split, (), instructions, said)
        if body(pieces, _marked(pieces)) != wanted:
            return False
    return True


def _without_the_feature(mode: Mode, instructions: str, said: tuple[Piece, ...]) -> Iterator[Piece]:
    """The request written down without a surface: every admitted tool by name, the system prompt, the messages."""
    yield from (tool_piece(tool) for tool in sorted(own_catalogue(), key=lambda tool: tool.name) if mode.admits(tool))
    yield system_piece(instructions)
    yield from said


def _marked(pieces: tuple[Piece, ...]) -> dict[int, str]:
    return marking.place(pieces, sum(piece.tier == TOOLS for piece in pieces), None)


def _of_the_lookback() -> dict[str, Value]:
    table = after_a_turn(surface(own_catalogue()), read_data("framing.md"), LONG_TURNS)
    kept = (table["read"] - table["head"]) / (table["before"] - table["head"])
    runs = (table["shape"] == "parallel tool calls") & (table["rule"] == RUNS)
    single = table["marker"] == marking.SINGLE
    return {
        "lookback.single": float(kept[single & ~runs & (table["positions"] > 20)].max()),
        "lookback.pair": float(kept[~single].min()),
        "lookback.runs": float(kept[single & runs].min()),
    }


def _of_an_activation() -> dict[str, Value]:
    split = surface(own_catalogue())
    turns = tool_turns([2_000] * 8)
    table = one_activation(split, read_data("framing.md"), turns, split.deferred[:1], [ANTHROPIC])
    row = table.set_index("placement").T
    return {
        "activation.prefix": float(row[APPEND]["block_kept"]),
        "activation.wire": float(row[APPEND]["rest_kept"]),
        "activation.inline": float(row[INLINE]["rest_kept"]),
        "activation.schemas": int(row[INLINE]["extra"]) / int(row[INLINE]["schemas"]),
    }


def _of_a_fan_out() -> dict[str, Value]:
    usd = by_size([8], [40_000], [2.0]).set_index("way")["usd"]
    late = 0.0
    for bound in (0.0, 2.0, 5.0, 30.0):
        for first_token in (0.0, 2.0, 60.0):
            for fails_after in (None, 1.0):
                group = [Child(first_token, first_token + 20.0, fails_after)] * 8
                late = max(late, *(start.sent - bound for start in fan_out(group, bound)))
    return {"fanout": usd[FIRST] / usd[TOGETHER], "fanout.late": late}


def _of_trimming() -> dict[str, Value]:
    cheapest, fewer = [], []
    for turns, output in TRIMMED_RUNS:
        table, _ = thresholds.by_threshold(
            surface(own_catalogue()), read_data("framing.md"), tool_turns([output] * turns), THRESHOLDS
        )
        sums = table.set_index("threshold")
        cheapest.append(sums["usd"].astype(float).idxmin() != thresholds.STEADY)
        fewer.append(sums.loc[Policy().threshold, "fresh"] < sums.loc[thresholds.STEADY, "fresh"])
    return {"trim.threshold": sum(cheapest) / len(cheapest), "trim.fresh": sum(fewer) / len(fewer)}
