"""The server over stdio, asked by the protocol's own client."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import mcp
import pytest

from warmprefix.errors import InputError
from warmprefix.tools.catalogue import from_answer, own_catalogue
from warmprefix.tools.handlers import Sandbox
from warmprefix.tools.search import Index
from warmprefix.tools.server import answer, main, make_server


def started(folder: Path) -> mcp.StdioServerParameters:
    return mcp.StdioServerParameters(
        command=sys.executable,
        args=["-W", "error", "-m", "warmprefix.tools.server", str(folder)],
        env={"PYTHONPATH": ":".join(sys.path)},
    )


def test_a_client_lists_everything_searches_and_calls(tmp_path: Path) -> None:
    async def talk() -> None:
        async with mcp.Client(mcp.stdio_client(started(tmp_path / "box"))) as client:
            listed = (await client.list_tools()).tools
            assert [tool.name for tool in listed] == [*(tool.name for tool in own_catalogue()), "search_tool_bm25"]
            for sent, tool in zip(listed, own_catalogue(), strict=False):
                assert (sent.description, sent.input_schema) == (tool.description, tool.schema)

            async def said(name: str, **arguments: object) -> tuple[bool, str]:
                result = await client.call_tool(name, arguments)
                return result.is_error, result.content[0].text

            failed, hits = await said("search_tool_bm25", query="give this bug to Ann", top=1)
            assert not failed and '"assign_ticket"' in hits and "schema" not in hits.lower()
            assert "does not mean" in (await said("search_tool_bm25", query="qwxyz"))[1]
            assert '"tickets-1"' in (await said("create_ticket", title="Login loops"))[1]
            assert "Login loops" in (await said("read_ticket", ticket="tickets-1"))[1]
            assert await said("create_ticket") == (True, "'title' is a required property")
            assert (await said("read_file", path="../x"))[0]
            assert (await said("no_such_tool"))[1].startswith("there is no tool 'no_such_tool'")
            assert [tool.name for tool in (await client.list_tools()).tools] == [tool.name for tool in listed]

    anyio.run(talk)


def test_another_catalogue_is_listed_whole_though_nothing_of_it_runs(tmp_path: Path) -> None:
    tools = from_answer([{"name": "b"}, {"name": "a", "server": "x"}])

    async def talk() -> None:
        async with mcp.Client(make_server(tools, Sandbox(tmp_path))) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["a", "b", "search_tool_bm25"]
            assert "no handler" in (await client.call_tool("a", {})).content[0].text

    anyio.run(talk)


def test_no_odd_schema_keeps_the_others_from_being_listed(tmp_path: Path) -> None:
    odd: list[dict[str, Any]] = [{}, {"type": "string"}, {"type": ["object", "null"]}, {"$ref": "#"}]
    bad = [{"properties": ["a"]}, {"properties": {"a": 1}}, {"required": "a"}, {"$schema": 5}, {"properties": None}]
    sent = [{**schema, "type": "object"} for schema in odd] + [{"type": "object"}] * len(bad)
    tools = from_answer([{"name": f"tool {i}", "inputSchema": schema} for i, schema in enumerate(odd + bad)])

    async def talk() -> None:
        async with mcp.Client(make_server(tools, Sandbox(tmp_path))) as client:
            listed = (await client.list_tools()).tools
            assert [tool.name for tool in listed[:-1]] == [tool.name for tool in tools]
            assert [tool.input_schema for tool in listed[:-1]] == sent
            for tool in listed[:-1]:
                assert (await client.call_tool(tool.name, {})).is_error, "nothing of it runs here"

    anyio.run(talk)


def test_a_tool_that_is_called_as_the_search_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="tool 'search_tool_bm25': is the name of two tools"):
        make_server(from_answer([{"name": "search_tool_bm25", "description": "Mine."}]), Sandbox(tmp_path))


def test_a_search_without_hits_names_headings_or_servers(tmp_path: Path) -> None:
    tools = from_answer([{"name": "b"}, {"name": "a", "server": "x"}])
    said = answer(tools, Index(tools), Sandbox(tmp_path), "search_tool_bm25", {"query": "\ud800", "top": 3.0})
    assert said.endswith("Tools are grouped under: Other, x.") and "\ufffd" in said


def ended(arguments: Sequence[object], capsys: pytest.CaptureFixture[str]) -> str:
    """What the server says that does not start."""
    assert main([*map(str, arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1
    return err


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_bad_catalogue_is_one_line(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.json"
    path.write_text(text, encoding="utf-8")
    assert str(path) in ended([tmp_path / "box", "--catalogue", path], capsys)


def test_a_folder_that_cannot_be_used_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, kept = tmp_path / "file", tmp_path / ".records.json"
    file.touch()
    assert f"{file}: File exists; check the path" in ended([file], capsys)
    for text in ("[", "[]", '{"tickets": []}', '{"tickets": {"tickets-1": 1}}', "\xff"):
        kept.write_text(text, encoding="latin-1")
        assert f"{kept}: holds no records of tools" in ended([tmp_path], capsys)
    assert "required: folder" in ended([], capsys)


def test_an_interrupt_ends_it_quietly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(anyio, "run", interrupted)
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("package", ["anyio", "mcp_types", "mcp.server"])
def test_without_the_extra_it_says_what_to_install(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert f"the package {package} is missing; pip install 'warmprefix[mcp]'" in ended([tmp_path], capsys)


def test_importing_it_needs_no_extra() -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['anyio', 'mcp', 'mcp_types'])); import warmprefix.tools.server"
    )
    subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}, check=True)
