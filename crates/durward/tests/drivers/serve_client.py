"""Drives a Python client against a server with the conformance fixtures: `serve_client.py CLIENT URL MODE`.

CLIENT is `sdk` (the MCP Python SDK) or `fastmcp`; MODE is `legacy`, `auto` or a revision. Prints one JSON
object: what was seen, by the name of each step. Nothing in it depends on where the server is.
"""

import asyncio
import json
import sys

import fastmcp
import mcp
import mcp_types as types
from fastmcp.exceptions import ToolError

SEEN = {"progress": [], "logs": [], "asked": []}
PERSON = {"username": "ada", "email": "ada@example.test"}
WORDS = "a model's words"


async def progress(done, total, _message):
    SEEN["progress"].append([done, total])


async def log(message):
    SEEN["logs"].append(message.data)


def sdk(url, mode):
    async def elicit(_context, params):
        SEEN["asked"].append(params.message)
        return types.ElicitResult(action="accept", content=PERSON)

    async def sample(_context, _params):
        SEEN["asked"].append("model")
        content = types.TextContent(type="text", text=WORDS)
        return types.CreateMessageResult(role="assistant", content=content, model="m")

    return mcp.Client(url, mode=mode, logging_callback=log, elicitation_callback=elicit, sampling_callback=sample,
                      log_level="debug", read_timeout_seconds=60), "progress_callback"


def fast(url, mode):
    async def elicit(message, _type, _params, _context):
        SEEN["asked"].append(message)
        return PERSON

    async def sample(_messages, _params, _context):
        SEEN["asked"].append("model")
        return WORDS

    return fastmcp.Client(url, mode=mode, log_handler=log, elicitation_handler=elicit, sampling_handler=sample,
                          timeout=60), "progress_handler"


def text(result):
    return result.content[0].text


def listed(result, member):
    """What the SDK wraps in a result, FastMCP hands over as it is."""
    return getattr(result, member, result)


async def code_of(awaitable):
    try:
        await awaitable
    except mcp.MCPError as error:
        return error.error.code
    return None


async def failure_of(awaitable):
    """A failed tool is a result to the SDK and an exception to FastMCP."""
    try:
        result = await awaitable
    except ToolError as error:
        return str(error)
    return text(result) if result.is_error else None


async def steps(client, progress_member):
    SEEN["version"] = client.protocol_version
    SEEN["tools"] = [tool.name for tool in listed(await client.list_tools(), "tools")]
    SEEN["plain"] = text(await client.call_tool("test_simple_text", {}))
    SEEN["failed"] = await failure_of(client.call_tool("test_error_handling", {}))
    SEEN["stepped"] = text(await client.call_tool("test_tool_with_progress", {}, **{progress_member: progress}))
    await client.call_tool("test_tool_with_logging", {})
    SEEN["elicited"] = text(await client.call_tool("test_elicitation", {"message": "who"}))
    SEEN["sampled"] = text(await client.call_tool("test_sampling", {"prompt": "say"}))
    for uri in ("test://static-text", "test://template/7/data"):
        SEEN[uri] = listed(await client.read_resource(uri), "contents")[0].text
    SEEN["resources"] = [str(one.uri) for one in listed(await client.list_resources(), "resources")]
    SEEN["prompts"] = [prompt.name for prompt in listed(await client.list_prompts(), "prompts")]
    prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
    SEEN["prompt"] = prompt.messages[0].content.text
    SEEN["missing_resource"] = await code_of(client.read_resource("test://none"))
    SEEN["missing_prompt"] = await code_of(client.get_prompt("none", {}))
    calls = [client.call_tool("test_header_parameter", {"region": f"r{n}"}) for n in range(20)]
    SEEN["at_once"] = [text(result) for result in await asyncio.gather(*calls)]


async def main(kind, url, mode):
    client, progress_member = {"sdk": sdk, "fastmcp": fast}[kind](url, mode)
    async with client:
        await steps(client, progress_member)
    print(json.dumps(SEEN))


asyncio.run(main(*sys.argv[1:]))
