"""What the verbs `tools` and `search` answer."""

from collections.abc import Collection, Sequence

from warmprefix.errors import InputError
from warmprefix.tools.catalogue import Tool, listed, names, token_count
from warmprefix.tools.search import Index
from warmprefix.tools.surface import surface


def tools_report(
    catalogue: Sequence[Tool], resident: Collection[str] | None = None, *, deferral: bool = True
) -> dict[str, int | float]:
    """What a catalogue costs in every request, whole and with all but the resident tools deferred.

    >>> tools_report([Tool("now", "Tell the time."), Tool("later", "Tell it later.")], ["now"])["tokens_resident"]
    22

    `resident` names the resident tools, by default those that the catalogue itself marks; without `deferral` all are.
    Raises `InputError`.
    """
    split = surface(catalogue, None, resident, deferral=deferral)
    full = sum(token_count(listed(tool)) for tool in catalogue)
    kept = {tool.name for tool in split.resident}
    named = zip(catalogue, names(catalogue), strict=True)
    tokens_resident = sum(token_count(listed(tool)) for tool, name in named if name in kept)
    index = token_count(split.index())
    return {
        "count": len(catalogue),
        "tokens_full": full,
        "tokens_resident": tokens_resident,
        "tokens_index": index,
        "tokens_deferred": tokens_resident + index,
        "reduction": 1 - (tokens_resident + index) / full,
    }


def search_report(
    catalogue: Sequence[Tool], query: str, top: int = 10, resident: Collection[str] | None = None
) -> list[dict[str, str | float]]:
    """The deferred tools that fit a wish, best first, with their scores; empty when none does.

    >>> search_report([Tool("send_mail", "Send a mail."), Tool("now", "Tell the time.")], "email")[0]["name"]
    'send_mail'

    Raises `InputError` when `top` is less than 1.
    """
    if top < 1:
        raise InputError("", "--top", f"is {top}", "ask for at least one hit")
    deferred = surface(catalogue, None, resident).deferred
    if not deferred:
        return []
    return [{"name": hit.tool.name, "score": round(hit.score, 4)} for hit in Index(deferred).rank(query, top)]
