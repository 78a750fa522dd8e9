"""The arguments of a call: as Python takes them, and whether they fit the tool's schema."""

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from warmprefix.channel import clean
from warmprefix.tools.catalogue import Tool

# An empty registry: the validator's own would fetch what a schema refers to from the network.
_CLOSED: Registry = Registry()


def settled(value: Any) -> Any:
    """What a model wrote, as a handler can use it: whole numbers are integers, and every text can be encoded.

    >>> settled({"top": 5.0, "query": "a\\ud800"})
    {'top': 5, 'query': 'a\ufffd'}
    """
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float) and value.is_integer():  # JSON Schema takes 5.0 for an integer, a slice does not
        return int(value)
    if isinstance(value, Mapping):
        return {clean(key): settled(item) for key, item in value.items()}
    return [settled(item) for item in value] if isinstance(value, list | tuple) else value


def broken(schema: Mapping[str, Any]) -> str | None:
    """What makes a schema none, by the dialect that it names, or None.

    >>> broken({"type": "object", "required": "zone"})
    "'zone' is not of type 'array'"
    """
    try:
        _dialect(schema).check_schema(schema)
    except SchemaError as error:
        return error.message
    return None


def _dialect(schema: Mapping[str, Any]) -> Any:
    named = isinstance(schema.get("$schema"), str)
    return validator_for(schema, default=Draft202012Validator) if named else Draft202012Validator


def misfit(tool: Tool, arguments: Mapping[str, Any]) -> str | None:
    """What is wrong with the arguments of a call, or None.

    >>> misfit(Tool("now", schema={"type": "object", "required": ["zone"]}), {})
    "'zone' is a required property"
    """
    fault = broken(tool.schema)
    if fault:
        return f"the tool's own schema is not valid: {fault}"
    try:
        error = best_match(_dialect(tool.schema)(tool.schema, registry=_CLOSED).iter_errors(arguments))
    except Unresolvable as unknown:
        return f"the tool's own schema refers to {unknown.ref!r}, which it does not hold"
    except RecursionError:
        return "the tool's own schema refers to itself without end"
    if error is None:
        return None
    place = "/".join(map(str, error.path))
    return f"{place}: {error.message}" if place else error.message
