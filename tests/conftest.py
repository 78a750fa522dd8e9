"""What all tests share: one hypothesis profile, one token memo, the outside data where it is present."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from warmprefix.request import Blocks
from warmprefix.tokens import Tokenizer

# The same examples at every run: a red test is red for everybody, and none depends on how busy the machine is.
settings.register_profile(
    "warmprefix",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("warmprefix")

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "data"


@pytest.fixture(scope="session")
def blocks() -> Blocks:
    """One memo for the session: a text is counted once, whichever test asks first."""
    return Blocks(Tokenizer())


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real logs beside the project."""
    if not SHARED.is_dir():
        pytest.skip(f"no folder {SHARED.parent.name}/{SHARED.name} beside the project")
    return SHARED
