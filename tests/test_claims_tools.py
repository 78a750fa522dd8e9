"""What the tool context is claimed to do is measured, not assumed: a broken rule shows."""

import pytest

from warmprefix import claims_tools
from warmprefix.claims import claims
from warmprefix.tools.surface import BUILD, PLAN, Surface, surface


def test_an_appended_schema_keeps_the_tool_block_alone_and_an_inline_one_everything() -> None:
    measured = claims_tools._of_an_activation()
    assert measured == {
        "activation.prefix": 1.0,
        "activation.wire": 0.0,
        "activation.inline": 1.0,
        "activation.schemas": 1.0,
    }


def test_the_off_switch_is_compared_byte_for_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    assert claims_tools.off_is_identical(BUILD) and claims_tools.off_is_identical(PLAN)

    def still_deferring(*arguments: object, deferral: bool = True) -> Surface:
        return surface(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(claims_tools, "surface", still_deferring)
    assert not claims_tools.off_is_identical(BUILD)


def test_every_claim_about_tools_is_measured() -> None:
    prefixes = ("tools.", "read.", "off.", "lookback.", "activation.", "fanout", "trim.")
    assert {claim.id for claim in claims() if claim.id.startswith(prefixes)} == set(claims_tools.measure())
