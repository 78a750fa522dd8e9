"""Money: real bills to the last digit, a pinned date, and no price that is guessed."""

from datetime import date
from decimal import Decimal

import genai_prices
import pytest

from warmprefix.caches import Usage
from warmprefix.errors import InputError
from warmprefix.prices import PRICE_DATE, Price, cost, stamp, storage_cost


@pytest.mark.parametrize(
    ("model", "usage", "usd"),
    [
        ("claude-sonnet-4-5-20250929", Usage(6, 42_853, 8_982, 0, 583), "0.0553014"),
        ("claude-opus-4-5-20251101", Usage(4, 22_959, 0, 0, 224), "0.0170995"),
        ("claude-haiku-4-5-20251001", Usage(2, 14_934, 0, 0, 125), "0.0021204"),
    ],
)
def test_real_bills(model, usage, usd):
    assert cost(usage, model, "anthropic") == Decimal(usd)


def test_a_one_hour_write_costs_twice_the_input():
    inputs = cost(Usage(uncached=1000), "claude-sonnet-4-5", "anthropic")
    assert cost(Usage(cache_write_1h=1000), "claude-sonnet-4-5", "anthropic") == 2 * inputs
    both = Usage(cache_write_5m=1000, cache_write_1h=1000)
    assert cost(both, "claude-sonnet-4-5", "anthropic") == Decimal("3.25") * inputs


def test_cached_tokens_are_a_part_of_the_total():
    assert Usage(uncached=10, cache_read=90).total == 100
    assert cost(Usage(uncached=10, cache_read=90), "gpt-4o", "openai") == Decimal("0.0001375")


def test_tiers_go_by_the_request():
    one = cost(Usage(uncached=150_000), "claude-sonnet-4-5", "anthropic")
    assert cost(Usage(uncached=300_000), "claude-sonnet-4-5", "anthropic") > 2 * one


def test_writes_of_the_newer_regime_cost_a_quarter_more():
    inputs = cost(Usage(uncached=1000), "gpt-5.6", "openai")
    assert cost(Usage(cache_write_5m=1000), "gpt-5.6", "openai") == inputs * Decimal("1.25")


def test_an_unknown_model_says_how_to_give_its_price():
    with pytest.raises(
        InputError, match=r"model 'new-9': has no price of openai in genai-prices .* give it: price=Price"
    ):
        cost(Usage(uncached=1), "new-9", "openai")
    given = Price(input=2, cache_read=0.5, cache_write_5m=2.5, cache_write_1h=4, output=8)
    assert cost(Usage(1, 2, 4, 8, 16), "new-9", "openai", price=given) == Decimal("0.000173")
    assert Price(input=2).cost(Usage(1, 1, 1, 1)) == Decimal("0.000008")


def test_the_date_is_pinned_and_printed():
    assert stamp() == f"genai-prices {genai_prices.__version__} on {PRICE_DATE}"
    old, new = (cost(Usage(uncached=1000), "deepseek-chat", "deepseek", on=date(y, 6, 1)) for y in (2025, 2026))
    assert old > 0 and new > 0


def test_storage_is_priced_apart():
    assert storage_cost(1_000_000, "gemini-2.5-pro") == Decimal("4.5")
    with pytest.raises(InputError, match="no storage price of gemini"):
        storage_cost(1.0, "gemini-9")


def test_providers_by_our_names():
    for provider, model in (("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"), ("gemini", "gemini-2.5-pro")):
        assert cost(Usage(uncached=1000), model, provider) > 0
