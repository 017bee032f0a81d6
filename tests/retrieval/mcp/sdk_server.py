"""A server of tests by the SDK's own API: ``sdk_server.py stdio``, or ``PORT [KEY]`` for streamable HTTP."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp_types import ToolAnnotations

READ_ONLY = ToolAnnotations(read_only_hint=True)
server = MCPServer("passages")


@server.tool(annotations=READ_ONLY, structured_output=False)
async def search(query: str, limit: int = 3, tenant: str = "") -> list[Any]:
    """Search the passages."""
    pixel = Image(data=b"\x89PNG", format="png")
    return [f"{tenant}: {query} {number}" for number in range(limit)] + [pixel, " "]


@server.tool(annotations=READ_ONLY)
async def structured(query: str) -> dict[str, Any]:
    """Search for records."""
    if query == "nothing":
        return {"results": []}
    return {
        "results": [
            {"id": "a1", "title": "First", "text": f"about {query}", "score": 0.5},
            {"title": "Second", "content": "more", "url": "https://example.test/2"},
        ]
    }


@server.tool(annotations=READ_ONLY)
async def fail(query: str) -> str:
    """Report an error."""
    raise ValueError("secret-of-the-server")


@server.tool(annotations=READ_ONLY)
async def wait(query: str) -> str:
    """Answer after long, or at once for the query `now`."""
    if query != "now":
        await asyncio.sleep(60)
    return "waited"


@server.tool()
async def write(query: str) -> str:
    """Change something."""
    return "written"


@server.tool(annotations=READ_ONLY, structured_output=False)
async def environment(query: str) -> list[str]:
    """Tell the names of the variables, and the process."""
    return [*sorted(os.environ), f"pid={os.getpid()}"]


@server.tool(annotations=READ_ONLY)
async def change(query: str, context: Context[Any, Any]) -> str:
    """Describe the tool `search` in other words from now on."""
    server.remove_tool("search")
    server.add_tool(search, description=query, annotations=READ_ONLY, structured_output=False)
    await context.notify_tools_changed()
    await context.session.send_tool_list_changed()
    return "changed"


def _guarded(app: Any, key: str) -> Any:
    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and (b"authorization", f"Bearer {key}".encode()) not in scope["headers"]:
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b"secret-of-the-server"})
            return
        await app(scope, receive, send)

    return guarded


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        app: Any = server.streamable_http_app()
        app = _guarded(app, sys.argv[2]) if len(sys.argv) > 2 else app
        uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="critical")
