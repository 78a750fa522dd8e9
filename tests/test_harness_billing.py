"""A run under every cache model: bills by each provider's rules, and what an activation leaves of the prefix."""

import pandas as pd
import pytest

from warmprefix.errors import InputError
from warmprefix.harness.activation import break_even, one_activation, run_costs, spread
from warmprefix.harness.billing import ANTHROPIC, PROVIDERS, charged, named
from warmprefix.harness.wire import APPEND, INLINE, INSERT
from warmprefix.harness.workloads import conversation, tool_turns
from warmprefix.tools.catalogue import own_catalogue
from warmprefix.tools.surface import surface

SPLIT = surface(own_catalogue())
TURNS = tool_turns([1_000] * 5)


@pytest.fixture(scope="module")
def activated() -> pd.DataFrame:
    return one_activation(SPLIT, "Be brief.", TURNS, SPLIT.deferred[:2]).set_index(["provider", "placement"])


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_a_growing_conversation_is_read_again(provider) -> None:  # type: ignore[no-untyped-def]
    sent, _ = conversation(SPLIT, "Be brief.", TURNS)
    table = charged(sent, provider)
    assert (table["total"] == [each.request().tokens for each in sent]).all()
    assert table["read"].iloc[-1] > 4_000 and (table["fresh"] >= table["total"] - table["read"]).all()
    assert table["usd"].notna().all() == bool(provider.prices)
    if provider.name != "Gemini, explicit":
        assert table["read"].iloc[0] == 0 and table["read"].iloc[-1] >= table["total"].iloc[-2] - 128


def test_a_cached_object_is_paid_for_when_it_is_made_and_stored_for_its_lifetime() -> None:
    sent, _ = conversation(SPLIT, "Be brief.", TURNS[:2])
    table = charged(sent, named("Gemini, explicit"))
    head = sum(block.tokens for block in sent[0].request().blocks if block.tier != "messages")
    own = table["total"] - head
    assert table["fresh"].tolist() == [own[0] + head, own[1]]
    usd = [(1.25 * own[0] + 0.125 * head + 1.25 * head + 4.5 * head) / 1e6, (1.25 * own[1] + 0.125 * head) / 1e6]
    assert table["usd"].tolist() == pytest.approx(usd)


@pytest.mark.parametrize("name", [provider.name for provider in PROVIDERS])
def test_inline_an_activation_costs_its_schemas_and_nothing_else(name: str, activated: pd.DataFrame) -> None:
    row = activated.loc[(name, INLINE)]
    assert row["extra"] == row["schemas"] or name in ("OpenAI, GPT-5.5", "DeepSeek", "vLLM")
    assert abs(row["extra"] - row["schemas"]) <= 128, "up to a page"


@pytest.mark.parametrize("name", ["Anthropic", "Bedrock"])
def test_appended_it_keeps_the_tool_block_and_loses_what_follows(name: str, activated: pd.DataFrame) -> None:
    row = activated.loc[(name, APPEND)]
    assert (row["block_kept"], row["rest_kept"]) == (1.0, 0.0)
    assert row["extra"] == row["before"] - row["block"] + row["schemas"]
    assert activated.loc[(name, INSERT), "read"] == 0


def test_where_entries_stand_at_message_endings_alone_appending_loses_all(activated: pd.DataFrame) -> None:
    assert activated.loc[("OpenAI, GPT-5.6", APPEND), "read"] == 0


def test_costs_rise_with_activations_only_where_the_prefix_breaks() -> None:
    costs = run_costs(SPLIT, "Be brief.", TURNS, [0, 1, 2])
    wide = costs.pivot(index="activations", columns="placement", values="usd")
    assert wide.loc[0, [APPEND, INLINE, INSERT]].nunique() == 1 and wide["off"].nunique() == 1
    assert wide.loc[2, INLINE] < wide.loc[2, APPEND] < wide.loc[2, INSERT]
    warm = run_costs(SPLIT, "Be brief.", TURNS, [0], warm=True).set_index("placement")["usd"]
    assert warm["off"] < wide.loc[0, "off"] and warm[APPEND] < wide.loc[0, APPEND]


def test_break_even_is_the_first_loss() -> None:
    table = pd.DataFrame(
        {
            "activations": [0, 0, 0, 1, 1, 1],
            "placement": ["off", INSERT, INLINE] * 2,
            "usd": [2.0, 1.0, 1.0, 2.0, 2.0, 1.5],
        }
    )
    assert break_even(table) == {INSERT: 1, INLINE: None}


def test_activations_are_spread_and_none_is_lost() -> None:
    for count in (0, 1, 3, 7):
        loaded = spread(SPLIT.deferred, 10, count, each=2)
        assert [tool for tools in loaded for tool in tools] == list(SPLIT.deferred[: 2 * count])
        assert not loaded[-1], "behind the last request nothing would be sent"


def test_an_unknown_provider_is_one_line() -> None:
    assert named("Anthropic") is ANTHROPIC
    with pytest.raises(InputError, match="use one of: Anthropic"):
        named("anthropic")
