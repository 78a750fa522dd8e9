"""What a request costs, by a price library's records at a stated date."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal

import genai_prices

from warmprefix.caches import Usage
from warmprefix.caches.facts import fact
from warmprefix.errors import InputError

PRICE_DATE = date(2026, 11, 1)

_LIBRARY = {"bedrock": "aws", "vertex": "google", "gemini": "google"}  # where the library's name is another one


@dataclass(frozen=True, slots=True)
class Price:
    """A model's prices in USD per million tokens.

    >>> Price(input=2, cache_read=0.2, cache_write_5m=2.5).cost(Usage(uncached=10, cache_read=90))
    Decimal('0.000038')

    A price that is not given is the input's.
    """

    input: float
    cache_read: float | None = None
    cache_write_5m: float | None = None
    cache_write_1h: float | None = None
    output: float = 0.0

    def cost(self, usage: Usage) -> Decimal:
        """The cost of a request in USD."""
        priced = (
            (usage.uncached, self.input),
            (usage.cache_read, self.cache_read),
            (usage.cache_write_5m, self.cache_write_5m),
            (usage.cache_write_1h, self.cache_write_1h),
            (usage.output, self.output),
        )
        return (
            sum((tokens * Decimal(str(self.input if price is None else price)) for tokens, price in priced), Decimal(0))
            / 1_000_000
        )


def cost(usage: Usage, model: str, provider: str, on: date = PRICE_DATE, price: Price | None = None) -> Decimal:
    """The cost of one request in USD by the prices of a date, or by a price that is given.

    >>> cost(Usage(cache_write_1h=1000), "claude-sonnet-4-5", "anthropic")
    Decimal('0.006')

    Prices have tiers by the length of a request, so sums of requests are not priced: price each, then add. Storage of
    cached objects is not in it (`storage_cost`). Raises `InputError` for a model that the library does not know.
    """
    if price is not None:
        return price.cost(usage)
    moment = datetime.combine(on, time(), UTC)  # without one the library prices at the present moment
    try:
        found = genai_prices.calc_price(
            genai_prices.Usage(
                input_tokens=usage.total,  # the total, of which the following are parts
                cache_read_tokens=usage.cache_read,
                cache_write_tokens=usage.cache_write_5m + usage.cache_write_1h,
                cache_write_1h_tokens=usage.cache_write_1h,  # a part of the writes
                output_tokens=usage.output,
            ),
            model,
            provider_id=_LIBRARY.get(provider, provider),
            genai_request_timestamp=moment,
        )
    except LookupError:
        raise InputError(
            "",
            f"model {model!r}",
            f"has no price of {provider} in {stamp(on)}",
            "give it: price=Price(input=…, cache_read=…, cache_write_5m=…, output=…) in USD per million tokens",
        ) from None
    return found.total_price


def storage_cost(token_hours: float, model: str) -> Decimal:
    """The cost in USD of storing a cached object of Gemini's, by a price that `data/providers.toml` dates.

    Raises `InputError` for a model without a storage price there.
    """
    return Decimal(str(token_hours)) * Decimal(str(fact("gemini", "storage price", model))) / 1_000_000


def stamp(on: date = PRICE_DATE) -> str:
    """Which prices these are, to print beside every sum of money.

    >>> stamp()
    'genai-prices 0.2.3 on 2026-11-01'
    """
    return f"genai-prices {genai_prices.__version__} on {on}"
