"""A small MCP server on the official Python SDK, for tests: `stdio`, or `http` and a port of this machine."""

import sys
import time

from mcp.server.mcpserver import MCPServer

server = MCPServer("demo")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def wait(seconds: float) -> str:
    """Waits."""
    time.sleep(seconds)
    return "waited"


@server.tool()
def fail(why: str) -> str:
    """Fails."""
    raise ValueError(why)


@server.tool()
def search(query: str) -> list[dict[str, str]]:
    """Finds a book."""
    return [{"id": "book-1", "title": f"On {query}", "text": f"Of {query}."}]


@server.tool()
def fetch(name: str) -> str:
    """Reads a book."""
    return f"All of {name}."


if sys.argv[1] == "http":
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
else:
    server.run("stdio")
