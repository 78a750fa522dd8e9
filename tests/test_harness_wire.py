"""Requests as they go out: wire order, the off switch, where activated schemas stand."""

import json

import pytest

from warmprefix.harness.transcript import result_piece, system_piece, text_piece, tool_piece, use_piece
from warmprefix.harness.wire import APPEND, INLINE, INSERT, assemble, body, request
from warmprefix.tools.catalogue import Tool, own_catalogue, token_count
from warmprefix.tools.surface import MODES, Mode, surface

SPLIT = surface([Tool("b", resident=True), Tool("d", resident=True), Tool("a"), Tool("c")])
SAID = [text_piece("user", "hi"), use_piece("1", "a", {"x": 1}), result_piece("1", "done")]


@pytest.mark.parametrize("mode", MODES.values(), ids=list(MODES))
def test_the_off_switch_gives_the_bytes_of_a_harness_without_the_feature(mode: Mode) -> None:
    def without_the_feature() -> str:
        """A harness that never heard of deferral, surfaces or indexes."""
        tools = []
        for tool in sorted(own_catalogue(), key=lambda tool: tool.name):
            admitted = mode.writes is None or tool.read_only or tool.heading in mode.writes
            if tool.delivers == mode.name or (admitted and not tool.delivers):
                tools.append({"name": tool.name, "description": tool.description, "input_schema": tool.schema})
        system = [{"type": "text", "text": "Be brief."}]
        messages = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
        whole = {"tools": tools, "system": system, "messages": messages}
        return json.dumps(whole, ensure_ascii=False, separators=(",", ":"))

    off = surface(own_catalogue(), mode, deferral=False)
    assert body(assemble(off, [], "Be brief.", SAID[:1]), {}) == without_the_feature()
    on = surface(own_catalogue(), mode)
    assert body(assemble(on, [], "Be brief.", SAID[:1]), {}) != without_the_feature()


def test_tools_come_before_system_and_system_before_messages() -> None:
    pieces = assemble(SPLIT, [], "Be brief.", SAID)
    assert [(piece.tier, piece.kind) for piece in pieces] == [
        ("tools", "tool"),
        ("tools", "tool"),
        ("system", "text"),
        ("system", "text"),
        ("messages", "text"),
        ("messages", "tool_use"),
        ("messages", "tool_result"),
    ]
    assert [message["role"] for message in json.loads(body(pieces, {}))["messages"]] == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    ("placement", "names"),
    [(APPEND, ["b", "d", "c", "a"]), (INSERT, ["a", "b", "c", "d"]), (INLINE, ["b", "d"])],
)
def test_an_activated_schema_stands_where_the_placement_says(placement: str, names: list[str]) -> None:
    loaded = [tool for name in "ca" for tool in SPLIT.deferred if tool.name == name]
    pieces = assemble(SPLIT, loaded, "Be brief.", SAID, placement)
    assert [json.loads(piece.body)["name"] for piece in pieces if piece.tier == "tools"] == names
    assert [piece for piece in pieces if piece.tier == "system"] == [
        system_piece("Be brief."),
        system_piece(SPLIT.index()),
    ]


def test_a_marker_is_in_the_bytes_and_in_the_block_but_not_in_the_key() -> None:
    pieces = assemble(SPLIT, [], "Be brief.", SAID)
    bare, marked = request(pieces, {}), request(pieces, {1: "1h", 6: "5m"})
    assert [block.key for block in bare.blocks] == [block.key for block in marked.blocks]
    assert [i for i, block in enumerate(marked.blocks) if block.marker] == [1, 6]
    assert body(pieces, {1: "1h"}).count('"cache_control":{"type":"ephemeral","ttl":"1h"}') == 1


def test_equal_bytes_have_equal_keys_and_other_bytes_other_keys() -> None:
    pieces = [text_piece("user", "hi"), text_piece("assistant", "hi"), system_piece("hi"), text_piece("user", "hi")]
    keys = [block.key for block in request(pieces, {}).blocks]
    assert keys[0] == keys[3] and len(set(keys)) == 3


def test_tokens_are_those_of_the_text_and_of_the_json_as_sent() -> None:
    pieces = [tool_piece(SPLIT.resident[0]), *SAID]
    counted = [block.tokens for block in request(pieces, {}).blocks]
    assert counted == [token_count(text) for text in (pieces[0].body, "hi", '{"x":1}', "done")]
