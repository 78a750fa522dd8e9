"""The server over stdio, asked by the protocol's own client."""

import sys
from pathlib import Path

import anyio
import mcp
import pytest

from warmprefix.tools.catalogue import from_answer, own_catalogue
from warmprefix.tools.handlers import Sandbox
from warmprefix.tools.server import main, make_server


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


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_bad_catalogue_is_one_line(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main([str(tmp_path), "--catalogue", str(path)])
    assert ended.value.code == 2 and "c.json" in capsys.readouterr().err.splitlines()[-1]
