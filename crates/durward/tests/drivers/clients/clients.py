"""Drives a Python client against the everything server: `clients.py CLIENT WAYS`.

CLIENT is `sdk` (the MCP Python SDK 2), `agents` (openai-agents) or `langchain` (langchain-mcp-adapters). WAYS is a JSON
object of ways to the server: a list of words is a command, a string is an address. Prints what was seen on each way.
Nothing in it depends on what stands on the way.
"""

import asyncio
import json
import sys
from contextlib import asynccontextmanager

LONG = "trigger-long-running-operation"
STEPS = {"duration": 0.2, "steps": 2}
LATE = {"duration": 3, "steps": 1}


def text(result):
    return "\n".join(part.text for part in result.content if part.type == "text")


class Sdk:
    """The MCP Python SDK 2."""

    @asynccontextmanager
    async def open(self, way, seen):
        import mcp
        import mcp_types as types
        from mcp.client.stdio import StdioServerParameters, stdio_client

        async def elicit(_context, _params):
            seen["asked"] += 1
            return types.ElicitResult(action="accept", content={"name": "Ada"})

        async def heard(message):
            if isinstance(message, types.ToolListChangedNotification):
                seen["told"] = True

        async def progress(done, total, _message):
            seen["progress"].append([done, total])

        self.progress = progress
        server = way if isinstance(way, str) else stdio_client(StdioServerParameters(command=way[0], args=way[1:]))
        async with mcp.Client(server, elicitation_callback=elicit, message_handler=heard) as client:
            self.client = client
            yield

    async def tools(self):
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, name, arguments, watched=False):
        more = {"progress_callback": self.progress} if watched else {}
        result = await self.client.call_tool(name, arguments, **more)
        if result.is_error:
            raise RuntimeError(text(result))
        return text(result)


class Agents:
    """openai-agents: no elicitation, no progress."""

    @asynccontextmanager
    async def open(self, way, seen):
        from agents.mcp import MCPServerStdio, MCPServerStreamableHttp

        async def heard(message):
            if "tools/list_changed" in str(message):
                seen["told"] = True

        if isinstance(way, str):
            server = MCPServerStreamableHttp(params={"url": way}, message_handler=heard)
        else:
            server = MCPServerStdio(params={"command": way[0], "args": way[1:]}, message_handler=heard)
        async with server:
            self.server = server
            yield

    async def tools(self):
        return [tool.name for tool in await self.server.list_tools()]

    async def call(self, name, arguments, watched=False):
        result = await self.server.call_tool(name, arguments)
        if result.isError:
            raise RuntimeError(text(result))
        return text(result)


class LangChain:
    """langchain-mcp-adapters, as an agent holds its tools: within one session."""

    @asynccontextmanager
    async def open(self, way, seen):
        from langchain_mcp_adapters.callbacks import Callbacks
        from langchain_mcp_adapters.client import MultiServerMCPClient
        from langchain_mcp_adapters.tools import load_mcp_tools
        from mcp.types import ElicitResult

        async def elicit(_mcp, _params, _context):
            seen["asked"] += 1
            return ElicitResult(action="accept", content={"name": "Ada"})

        async def progress(done, total, _message, _context):
            seen["progress"].append([done, total])

        if isinstance(way, str):
            reach = {"transport": "streamable_http", "url": way}
        else:
            reach = {"transport": "stdio", "command": way[0], "args": way[1:]}
        callbacks = Callbacks(on_elicitation=elicit, on_progress=progress)
        client = MultiServerMCPClient({"everything": reach}, callbacks=callbacks)
        async with client.session("everything") as session:
            # The tools that stand on the client's capabilities are registered once it has said that it is ready.
            await asyncio.sleep(0.3)
            loaded = await load_mcp_tools(session, callbacks=callbacks, server_name="everything")
            self.loaded = {tool.name: tool for tool in loaded}
            yield

    async def tools(self):
        return list(self.loaded)

    async def call(self, name, arguments, watched=False):
        result = await self.loaded[name].ainvoke(arguments)
        return "\n".join(part["text"] for part in result if part["type"] == "text")


async def steps(kind, way):
    seen = {"progress": [], "asked": 0, "told": False}
    client = kind()
    async with client.open(way, seen):
        seen["echo"] = await client.call("echo", {"message": "x"})
        seen["tools"] = sorted(await client.tools())
        seen["stepped"] = await client.call(LONG, STEPS, watched=True)
        if "trigger-elicitation-request" in seen["tools"]:
            seen["elicited"] = "Ada" in await client.call("trigger-elicitation-request", {})
        call = asyncio.create_task(client.call(LONG, LATE))
        await asyncio.sleep(0.3)
        call.cancel()
        try:
            await call
            seen["cancelled"] = False
        except asyncio.CancelledError:
            seen["cancelled"] = True
        try:
            said = await client.call("echo", {"message": "/forbidden/x"})
            # LangChain hands a failed tool's text to the model instead of raising.
            seen["refused"] = said if said.startswith("refused") else None
        except Exception as error:
            seen["refused"] = str(error)
        seen["after"] = await client.call("echo", {"message": "y"})
    return seen


async def main(client, ways):
    kind = {"sdk": Sdk, "agents": Agents, "langchain": LangChain}[client]
    print(json.dumps({name: await steps(kind, way) for name, way in json.loads(ways).items()}))


asyncio.run(main(*sys.argv[1:]))
