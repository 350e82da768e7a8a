"""A server on the official Python SDK that writes down what it executes."""

import json
import os

from mcp.server.mcpserver import MCPServer

server = MCPServer("differential")


def executed(tool: str, path: str) -> str:
    with open(os.environ["DIFFERENTIAL_LOG"], "a", encoding="utf-8") as book:
        book.write(json.dumps({"tool": tool, "path": path}) + "\n")
    return "done"


@server.tool()
def read_note(path: str, text: str = "", count: float = 0) -> str:
    return executed("read_note", path)


@server.tool()
def delete_note(path: str, text: str = "", count: float = 0) -> str:
    return executed("delete_note", path)


server.run("stdio")
