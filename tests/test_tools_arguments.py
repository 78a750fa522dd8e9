"""Whether arguments fit a schema, also a broken one."""

import pytest

from warmprefix.tools.arguments import misfit
from warmprefix.tools.catalogue import Tool, own_catalogue


def test_all_our_schemas_are_valid_and_closed() -> None:
    for tool in own_catalogue():
        problem = misfit(Tool(tool.name, schema=tool.schema | {"required": []}), {"zzz": 1})
        assert problem is not None and problem.startswith("Additional properties"), tool.name


@pytest.mark.parametrize(
    ("schema", "arguments", "said"),
    [
        ({"type": "object", "required": ["a"]}, {}, "'a' is a required property"),
        ({"properties": {"a": {"type": "integer"}}}, {"a": "1"}, "a: '1' is not of type 'integer'"),
        ({"type": "nonsense"}, {}, "own schema is not valid"),
        ({"$ref": "https://example.org/schema.json"}, {}, "refers to"),
        ({"$ref": "#/$defs/absent"}, {}, "refers to"),
        ({"type": "object"}, {"a": 1}, None),
    ],
)
def test_the_first_problem_is_named(schema: dict[str, object], arguments: dict[str, object], said: str | None) -> None:
    problem = misfit(Tool("x", schema=schema), arguments)
    assert problem is None if said is None else said in (problem or "")
