"""The catalogue as a server of the Model Context Protocol over stdio: `python -m warmprefix.tools.server FOLDER`.

Clients check names against their own cached list and reject the rest unasked, so the whole catalogue is listed always;
they find their way with `search_tool_bm25`, which describes tools and loads none. Needs the extra `mcp`.
"""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warmprefix import __version__
from warmprefix.cli_print import BAD_INPUT, FINE, Parser, denied
from warmprefix.errors import InputError
from warmprefix.tools.arguments import broken, misfit, settled
from warmprefix.tools.catalogue import Tool, compact, own_catalogue, qualified, read
from warmprefix.tools.handlers import Sandbox, ToolError, run
from warmprefix.tools.search import Index, no_hit
from warmprefix.tools.surface import headings

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.server import Server

SEARCH = Tool(
    "search_tool_bm25",
    "Rank the tools of this server by how well they fit a wish in everyday words. Answers names and descriptions, best "
    "first; their schemas are in the list of tools already.",
    {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What you want to do."},
            "top": {"type": "integer", "minimum": 1, "maximum": 50, "description": "Most hits; 10 when absent."},
        },
        "required": ["query"],
        "additionalProperties": False,
    },
    heading="Discovery and web",
    read_only=True,
    asks=False,
)


def answer(tools: Sequence[Tool], index: Index, sandbox: Sandbox, name: str, arguments: dict[str, Any]) -> str:
    """What a call of the server returns; raises `ToolError` for an unknown tool, unfit arguments or a failed run."""
    tool = next((tool for tool in (*tools, SEARCH) if tool.name == name), None)
    if tool is None:
        raise ToolError(f"there is no tool {name!r}; {SEARCH.name} finds one")
    arguments = settled(arguments)
    problem = misfit(tool, arguments)
    if problem:
        raise ToolError(problem)
    if tool is SEARCH or tool.does.get("action") == "search_tools":
        hits = index.rank(arguments["query"], arguments.get("top", 10))
        lines = [compact({"name": hit.tool.name, "description": hit.tool.description}) for hit in hits]
        return "\n".join(lines) or no_hit(arguments["query"], headings(tools))
    return run(sandbox, tool, arguments)


def make_server(catalogue: Sequence[Tool], sandbox: Sandbox) -> "Server[Any]":
    """A server that lists the whole catalogue and the search, and runs both; raises `InputError`."""
    import mcp_types as types
    from mcp.server import Server, ServerRequestContext

    tools = tuple(tool for tool in qualified((*catalogue, SEARCH)) if tool.name != SEARCH.name)
    index = Index(tools)

    async def on_list_tools(
        context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in (*tools, SEARCH)])

    async def on_call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        try:
            text, failed = answer(tools, index, sandbox, params.name, params.arguments or {}), False
        except ToolError as error:
            text, failed = str(error), True
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=failed)

    return Server("warmprefix", version=__version__, on_list_tools=on_list_tools, on_call_tool=on_call_tool)


def _described(tool: Tool) -> "types.Tool":
    import mcp_types as types

    # The protocol knows valid schemas of objects only, and refuses a whole list for the sake of one other.
    schema = {**({} if broken(tool.schema) else tool.schema), "type": "object"}
    hints = types.ToolAnnotations(read_only_hint=tool.read_only, destructive_hint=tool.asks)
    return types.Tool(name=tool.name, description=tool.description, input_schema=schema, annotations=hints)


async def serve(server: "Server[Any]") -> None:
    """Serve one client on standard input and output until it hangs up."""
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and serve; returns the exit code."""
    parser = Parser(prog="python -m warmprefix.tools.server", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder that the tools work in; made when missing")
    parser.add_argument("--catalogue", type=Path, help="another catalogue than the project's own")
    try:
        given = parser.parse_args(arguments)
        catalogue = read(given.catalogue) if given.catalogue else own_catalogue()
        import anyio

        server = make_server(catalogue, Sandbox(given.folder))
    except InputError as error:
        print(f"warmprefix: {error}", file=sys.stderr)
        return BAD_INPUT
    except ModuleNotFoundError as error:
        print(f"warmprefix: the package {error.name} is missing; pip install 'warmprefix[mcp]'", file=sys.stderr)
        return BAD_INPUT
    except OSError as error:
        print(f"warmprefix: {denied(error)}", file=sys.stderr)
        return BAD_INPUT
    with suppress(KeyboardInterrupt):  # how a person ends it, a client hangs up
        anyio.run(serve, server)
    return FINE


if __name__ == "__main__":
    sys.exit(main())
