"""Grids and executors, and that a sweep is what single runs say."""

import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from warmprefix import calibrate, spread, status, studies
from warmprefix.claims import claim
from warmprefix.errors import InputError
from warmprefix.ledger import ledger, summary
from warmprefix.parameters import parameters
from warmprefix.request import Blocks
from warmprefix.simulate import forever_unshown, simulate
from warmprefix.strategies import STRATEGIES
from warmprefix.sweep import COLUMNS, Serial, grid, measure, sweep, workers

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def sample() -> calibrate.Sample:
    return calibrate.published()


def double(rows: int, strategy: str = "window") -> dict[str, int]:
    return {"double": 2 * rows}


def test_a_sweep_keeps_the_order_of_its_points_whoever_works() -> None:
    points = grid(rows=range(100))
    with ThreadPoolExecutor(3) as threads:
        for executor in (None, Serial(), threads):
            assert sweep(double, points, executor)["double"].tolist() == list(range(0, 200, 2))


def test_processes_say_the_same_as_this_one(sample: calibrate.Sample) -> None:
    points = grid(strategy=["watermark"], rows=(4, 12))
    with workers(2) as executor:
        there = sweep(partial(measure, sample), points, executor)
    assert there.equals(sweep(partial(measure, sample), points))


@pytest.mark.parametrize(
    ("points", "told"),
    [
        ([], "grid: has no points"),
        (grid(rows=[]), "grid: has no points"),
        (grid(row=[1]), "did you mean `rows`?"),
        ([{"rows": 1}, {"color": 2}], "knob color: unknown"),
    ],
)
def test_a_grid_that_cannot_be_swept_is_refused_at_once(points: list[dict[str, int]], told: str) -> None:
    with pytest.raises(InputError) as error:
        sweep(double, points)
    assert told in str(error.value) and "\n" not in str(error.value)


def test_a_result_must_not_overwrite_a_knob() -> None:
    with pytest.raises(InputError, match="both a knob and a result"):
        sweep(lambda double: {"double": 1}, grid(double=[2]))


@pytest.mark.parametrize(
    ("knobs", "told"),
    [
        ({"strategy": "windwo"}, "strategy windwo: unknown; did you mean `window`?"),
        ({"evict_at": (31,)}, "evict_at=31: there are 30 mentions; count from 1"),
        ({"evict_at": (3, 0)}, "evict_at=0: there are 30 mentions"),
        ({"rows": math.nan}, "rows must be a whole number, or None for no limit; it is nan"),
        ({"body": 2.5}, "body must be a whole number"),
        ({"paging": math.nan}, "paging nan: is no share"),
        ({"status": "turn end", "changes": math.nan}, "status line, nan s, 1 copies: is none"),
    ],
)
def test_a_knob_out_of_reach_is_refused(sample: calibrate.Sample, knobs: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        measure(sample, **knobs)


@pytest.mark.parametrize(
    ("study", "told"),
    [
        (lambda sample: studies.evictions(sample, most=3), "most=3: evictions in one run are not swept"),
        (lambda sample: studies.limits([], [12], [600], [30]), "channels: there are none to add up over"),
        (lambda sample: studies.paging([], [12], [0.5]), "channels: there are none"),
        (lambda sample: studies.status_changes(sample, draws=0, seed=1), "draws=0: are none"),
        (lambda sample: studies.statuses(sample, ["tool"], [1], away=-1.0), "away=-1.0: is no time of silence"),
        (lambda sample: studies.pools([0], [1800.0], 1), "channels=0: is too small"),
        (lambda sample: studies.pools([1], [math.nan], 1), "idle=nan: is too small"),
        (lambda sample: studies.pools([1], [1800.0], 1, takes=-1.0), "takes=-1.0: is too small"),
        (lambda sample: studies.compaction(3_000, 2_000, "watermark", 5, 1), "context limit 3,000: turn 2 takes 4,795"),
        (lambda sample: spread.scaled("brief", 0.0, 1), "brief 0.0 times as long: is no length"),
        (lambda sample: spread.drawn("forum", 1, turns=0), "turns=0: are none"),
    ],
)
def test_a_study_of_nothing_is_refused(sample: calibrate.Sample, study: Callable[..., Any], told: str) -> None:
    with pytest.raises(InputError, match=re.escape(told)):
        study(sample)


def test_nobody_is_no_executor() -> None:
    with pytest.raises(InputError, match="workers 0"), workers(0):
        pass


def test_an_error_in_a_point_is_not_swallowed() -> None:
    with pytest.raises(ZeroDivisionError):
        sweep(lambda rows: {"x": 1 // rows}, grid(rows=[1, 0]))


@pytest.mark.skipif(sys.platform == "win32", reason="signals of another kind")
def test_workers_end_with_a_process_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        "import time\n"
        "from pid import pid\n"
        "from warmprefix.sweep import workers\n"
        "if __name__ == '__main__':\n"
        "    with workers(2) as executor:\n"
        "        print(*set(executor.map(pid, range(8))), flush=True)\n"
        "        time.sleep(60)\n"
    )
    (tmp_path / "pid.py").write_text("import os, time\n\ndef pid(_):\n    time.sleep(0.05)\n    return os.getpid()\n")
    path = os.pathsep.join([str(tmp_path), str(ROOT / "lib"), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert pids
        parent.send_signal(signal.SIGKILL)
    for _ in range(100):
        if not any(map(alive, pids)):
            return
        time.sleep(0.1)
    pytest.fail(f"left behind: {[pid for pid in pids if alive(pid)]}")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")  # a zombie that nobody reaps has ended as well
    return not (state.exists() and state.read_text().rsplit(")", 1)[1].split()[0] == "Z")


@pytest.mark.parametrize("strategy", ["window", "watermark", "unstable"])
@pytest.mark.parametrize("evict_at", [(), (15,), (7, 20)])
def test_a_point_is_the_ledger_of_its_run(
    sample: calibrate.Sample, blocks: Blocks, strategy: str, evict_at: tuple[int, ...]
) -> None:
    run = (sample.channel, sample.mentions, STRATEGIES[strategy], blocks, sample.setting)
    table = ledger(*run, evict_at=evict_at)
    told, point = summary(table), measure(sample, strategy=strategy, evict_at=evict_at)
    assert set(point) == set(COLUMNS)
    assert (point["total"], point["cached"]) == (told["total_input"], told["cached"])
    assert point["total"] == point["cached"] + point["uncached"]
    for name in ("row_tokens", "duplicated_tokens", "resent", "resent_tokens", "unshown", "output"):
        assert point[name] == table[name].sum(), name
    assert point["cold_uncached"] == table["new"][table["cold"] & (table["turn"] > 1)].sum()


def test_the_published_eviction_is_a_point_of_the_sweep(sample: calibrate.Sample) -> None:
    table = studies.evictions(sample).set_index(["strategy", "first"])
    assert len(table) == 2 * 31
    for name in studies.STABLE:
        assert table.loc[(name, 1), "total"] == table.loc[(name, 0), "total"], "it had yet to start"
        published = claim(f"evict15.{name}").published
        assert table.loc[(name, 15), "total"] == pytest.approx(published, rel=0.05)
    assert table.loc[("watermark", 15), "resent_tokens"] == claim("evict15.resent").published
    assert table.loc[("watermark", 0), "forgotten"] == 0 < table.loc[("watermark", 30), "forgotten"]


def test_pairs_are_all_pairs(sample: calibrate.Sample) -> None:
    short = replace(sample, mentions=sample.mentions[:5])
    table = studies.evictions(short, most=2)
    assert len(table) == 2 * (1 + 5 + 10)
    assert (table["second"][table["second"] > 0] > table["first"][table["second"] > 0]).all()


def test_a_cold_turn_is_taken_apart_without_a_rest(sample: calibrate.Sample) -> None:
    table = studies.cold_turns(sample)
    cold = studies.evictions(sample).set_index(["strategy", "first"])["cold_uncached"]["watermark"]
    parts = table.set_index("mention")[["prefix", "turn", "snapshot", "resent"]].sum(axis=1)
    assert parts[1:].tolist() == cold[2:].tolist()


def test_limits_and_their_front(sample: calibrate.Sample, blocks: Blocks) -> None:
    table = studies.limits([sample], (4, 12, None), (200, 600, None), (10, 30, None))
    free = table[table[["rows", "body", "fetch"]].isna().all(axis=1)].iloc[0]
    assert (free["unshown"], free["cut_chars"], free["lost_chars"]) == (0, 0, 0)
    ours = table[(table["rows"] == 12) & (table["body"] == 600) & (table["fetch"] == 30)].iloc[0]
    assert ours["unshown"] == claim("unshown").published
    steps = list(simulate(sample.channel, sample.mentions, STRATEGIES["watermark"], blocks, sample.setting))
    never = [sample.channel.messages[i].text for i in forever_unshown(sample.channel, sample.mentions, steps)]
    assert ours["lost_chars"] == ours["cut_chars"] + sum(map(len, never)) > ours["cut_chars"]
    texts = [sample.channel.messages[position].text for position in range(sample.mentions[-1])]
    assert ours["cut_chars"] == sum(max(len(text) - 600, 0) for text in texts), "each long row is shown once"
    for _, point in table[~table["front_rows"]].iterrows():
        better = table[(table["total"] <= point["total"]) & (table["unshown"] <= point["unshown"])]
        assert ((better["total"] < point["total"]) | (better["unshown"] < point["unshown"])).any()


def test_a_place_behind_the_history_does_not_care_how_often_the_line_changes(sample: calibrate.Sample) -> None:
    table = studies.statuses(sample, ("before system", "turn end"), (1, 2))
    assert table.iloc[0]["total"] == measure(sample)["total"]
    of = table.iloc[1:].groupby(["place", "size"])["uncached"].nunique()
    assert of["turn end"].eq(1).all() and of["before system"].gt(3).all()
    assert sorted(table["size"].unique()) == [0, 28, 56]


def test_changes_of_a_line_in_front_cost_what_stands_behind_it(sample: calibrate.Sample, blocks: Blocks) -> None:
    many, one = studies.status_changes(sample, draws=2, seed=1), studies.one_change(sample)
    medians = many.groupby("changes")["uncached"].median()
    assert len(medians) == 30 and medians[0] == medians.min() and medians[29] == medians.max()
    assert one["extra"].is_monotonic_increasing
    # A change before a mention makes the request new but for the tokens that both versions of the line begin with.
    kept = ledger(
        sample.channel,
        sample.mentions,
        replace(STRATEGIES["watermark"], status="before system"),
        blocks,
        replace(sample.setting, status=status.line(())),
    )
    expected = kept["cached"].to_numpy()[1:]
    assert (expected - one["extra"].to_numpy()).max() < 28
    assert studies.break_even(one, many, int(one["extra"].mean())) == pytest.approx(1.0, abs=0.01)
    assert studies.break_even(one, many, 10**9) != studies.break_even(one, many, 10**9), "NaN: never"


def test_a_line_changes_when_it_is_told_to(sample: calibrate.Sample) -> None:
    spans = status.rates(sample.channel)
    assert spans[status.EACH_TURN] is None and spans["each hour"] == 3600.0
    hourly = status.line(3600.0)
    assert hourly(7199.0) == hourly(3600.0) != hourly(7200.0)
    assert status.line(None, 3)(5.0) == status.line(None)(5.0) * 3
    assert len({status.line((10.0, 20.0))(at) for at in (0.0, 10.0, 15.0, 20.0, 99.0)}) == 3
    with pytest.raises(InputError):
        status.line(None, 0)
    with pytest.raises(InputError):
        status.evenly((0.0, 1.0), 2)


def test_the_notebooks_sweep_what_the_gallery_shows() -> None:
    limits = parameters(ROOT / "notebooks" / "45_limits.ipynb")
    assert [limits[name].value for name in ("rows", "body", "fetch")] == [studies.ROWS, studies.BODIES, studies.FETCHED]
    line = parameters(ROOT / "notebooks" / "50_status_line.ipynb")
    assert (line["draws"].value, line["seed"].value) == (studies.DRAWS, studies.DRAWN_FROM)
    spread_of = parameters(ROOT / "notebooks" / "97_robustness.ipynb")
    assert spread_of["channels"].value >= 200 and spread_of["lengths"].value == ("reply", "row", "brief")
    assert spread.laws()[0] == spread.PUBLISHED_LAW
