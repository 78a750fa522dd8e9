"""Whether the arguments of a call fit the tool's schema."""

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from referencing import Registry
from referencing.exceptions import Unresolvable

from warmprefix.tools.catalogue import Tool

# An empty registry: the validator's own would fetch what a schema refers to from the network.
_CLOSED: Registry = Registry()


def misfit(tool: Tool, arguments: Mapping[str, Any]) -> str | None:
    """What is wrong with the arguments of a call, or None.

    >>> misfit(Tool("now", schema={"type": "object", "required": ["zone"]}), {})
    "'zone' is a required property"
    """
    try:
        Draft202012Validator.check_schema(tool.schema)
        error = best_match(Draft202012Validator(tool.schema, registry=_CLOSED).iter_errors(arguments))
    except SchemaError as broken:
        return f"the tool's own schema is not valid: {broken.message}"
    except Unresolvable as unknown:
        return f"the tool's own schema refers to {unknown.ref!r}, which it does not hold"
    if error is None:
        return None
    place = "/".join(map(str, error.path))
    return f"{place}: {error.message}" if place else error.message
