"""Published results by providers' rules: the arithmetic, and that drawn runs meet what was published."""

import pytest

from warmprefix import claims, claims_providers
from warmprefix.claims_providers import drawn, measured


def test_the_arithmetic_is_exact() -> None:
    found = measured()
    fan_out = {name: found[f"fan-out.{name}"] for name in ("together", "off", "first")}
    assert fan_out == pytest.approx({"together": 0.8, "off": 0.64, "first": 0.156})
    assert found["padding.tokens"] == 221


def test_every_claim_is_measured_and_says_what_it_assumes() -> None:
    ours = [claim for claim in claims.claims() if claim.assumed]
    assert {claim.id for claim in ours} == set(measured())


@pytest.mark.parametrize("seed", range(4))
def test_a_drawn_run_meets_the_published_inputs(seed: int) -> None:
    run = drawn(seed)
    assert run["guide.cached"] == pytest.approx(0.59, abs=0.005)
    assert round(run["guide.saved"], 2) == 0.83
    off = run["guide.cached"] / (1 - run["guide.saved"])
    assert off < run["guide.status"] <= 1.25 * off * 1.01  # all of it written instead of sent plainly
    assert run["study.sonnet-4-5"] == pytest.approx(0.785, rel=0.0301)
    assert run["study.gpt-4o"] < 0.5 < run["study.gpt-5-2"] < 0.9


def test_a_line_in_front_is_what_makes_it_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    run = claims_providers.Run(50, 4_000, 300.0, 100)
    with_line, without = (claims_providers._charged(run.sent(status)) for status in (25, 0))
    assert sum(usage.cache_read for usage in with_line) == 0
    assert all(usage.cache_read for usage in without[1:])
