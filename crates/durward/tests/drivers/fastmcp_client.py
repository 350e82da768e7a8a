"""Plays a plan through FastMCP's own client and prints what it saw, one JSON object a line.

The plan (a JSON file, the only argument) holds: command, args, env, cwd, mode (`auto` or `legacy`) and
calls, a list of {tool, arguments}. The first line names the negotiated revision and the listed tools;
each further line is one call, in order: {"result": ...} or {"error": {code, message, data}}.
"""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from mcp import MCPError


def show(value):
    sys.stdout.write(json.dumps(value) + "\n")


async def play(client, call):
    try:
        result = await client.call_tool_mcp(call["tool"], call["arguments"])
    except MCPError as refused:
        error = refused.error
        return {"error": {"code": error.code, "message": error.message, "data": error.data}}
    return {"result": result.model_dump(mode="json", by_alias=True, exclude_none=True)}


async def main(plan):
    transport = StdioTransport(
        plan["command"], plan["args"], env=plan["env"], cwd=plan["cwd"], keep_alive=False
    )
    async with Client(transport, mode=plan["mode"], timeout=30) as client:
        tools = [tool.name for tool in await client.list_tools()]
        show({"revision": client.protocol_version, "tools": tools})
        for call in plan["calls"]:
            show(await play(client, call))


with open(sys.argv[1], encoding="utf-8") as file:
    asyncio.run(main(json.load(file)))
