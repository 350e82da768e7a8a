"""Plays a plan through FastMCP's own client and prints what it saw, one JSON object a line.

The plan (a JSON file, the only argument) holds: command, args, env, cwd, mode (`auto` or `legacy`) and
calls, a list of {tool, arguments}. With answers (a list of {action, answer}) the client declares elicitation
and gives them in order. The first line names the negotiated revision and the listed tools; each further line
is one call, in order: {"result": ...} or {"error": {code, message, data}}, and with answers also asked, the
questions of the server during the call: {message, choices}.
"""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.client.elicitation import ElicitResult
from mcp import MCPError
from mcp.client import session

# On a busy machine a start may take longer than the ten seconds after which the client takes a server for an old one.
PATIENCE_S = 120
session.DISCOVER_TIMEOUT_SECONDS = PATIENCE_S


def show(value):
    sys.stdout.write(json.dumps(value) + "\n")


async def play(client, call):
    try:
        result = await client.call_tool_mcp(call["tool"], call["arguments"])
    except MCPError as refused:
        error = refused.error
        return {"error": {"code": error.code, "message": error.message, "data": error.data}}
    return {"result": result.model_dump(mode="json", by_alias=True, exclude_none=True)}


def person(plan, asked):
    """Whoever answers elicitations: None where the plan has no answers."""
    if "answers" not in plan:
        return None
    answers = iter(plan["answers"])

    async def answer(message, response_type, params, context):
        field = params.requested_schema["properties"]["answer"]
        asked.append({"message": message, "choices": field["enum"]})
        given = next(answers)
        content = {"answer": given["answer"]} if given["action"] == "accept" else None
        return ElicitResult(action=given["action"], content=content)

    return answer


async def main(plan):
    asked = []
    transport = StdioTransport(
        plan["command"], plan["args"], env=plan["env"], cwd=plan["cwd"], keep_alive=False
    )
    async with Client(
        transport, mode=plan["mode"], timeout=PATIENCE_S, elicitation_handler=person(plan, asked)
    ) as client:
        tools = [tool.name for tool in await client.list_tools()]
        show({"revision": client.protocol_version, "tools": tools})
        for call in plan["calls"]:
            seen = await play(client, call)
            if "answers" in plan:
                seen["asked"], asked[:] = list(asked), []
            show(seen)


with open(sys.argv[1], encoding="utf-8") as file:
    asyncio.run(main(json.load(file)))
