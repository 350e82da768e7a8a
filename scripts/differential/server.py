"""A server on the official Python SDK that writes down what it executes.

Over standard streams, or with the argument "http" over Streamable HTTP: then its first line is its address.
"""

import json
import os
import socket
import sys

import uvicorn
from mcp.server.mcpserver import MCPServer
from pydantic import BaseModel

server = MCPServer("differential")


class Below(BaseModel):
    path: str | None = None
    deep: bool | None = None


def executed(tool: str, opened: list[str | None], /, **arguments: object) -> str:
    given = {name: value for name, value in arguments.items() if value is not None}
    line = {"tool": tool, "paths": [path for path in opened if path is not None], "arguments": given}
    with open(os.environ["DIFFERENTIAL_LOG"], "a", encoding="utf-8") as book:
        book.write(json.dumps(line) + "\n")
    return "done"


@server.tool()
def read_note(path: str, text: str | None = None, count: float | None = None) -> str:
    return executed("read_note", [path], path=path, text=text, count=count)


@server.tool()
def delete_note(path: str, text: str | None = None, count: float | None = None) -> str:
    return executed("delete_note", [path], path=path, text=text, count=count)


@server.tool()
def read_notes(
    paths: list[str],
    below: Below | None = None,
    lines: int | None = None,
    flags: list[bool] | None = None,
) -> str:
    parts = below.model_dump(exclude_none=True) if below else None
    every = [*paths, below.path if below else None]
    return executed("read_notes", every, paths=paths, below=parts, lines=lines, flags=flags)


if sys.argv[1:] == ["http"]:
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="critical")
    uvicorn.Server(config).run(sockets=[listener])
else:
    server.run("stdio")
