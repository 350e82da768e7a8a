#!/usr/bin/env python3
"""FastMCP's own proxy over stdio, as a peer to measure against.

usage: fastmcp_proxy.py default|shared COMMAND [ARG...]
       fastmcp_proxy.py default|shared URL

default: what create_proxy makes of a command or a URL. shared: one client, connected once and used for every call.
"""

import asyncio
import logging
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from fastmcp.server import create_proxy


async def serve(kind: str, command: str, args: list[str]) -> None:
    if command.startswith("http"):
        transport = StreamableHttpTransport(command)
    else:
        transport = StdioTransport(command=command, args=args)
    if kind == "shared":
        async with Client(transport) as client:
            await create_proxy(client).run_async(transport="stdio", show_banner=False)
    else:
        proxy = create_proxy(transport, mode="auto")
        await proxy.run_async(transport="stdio", show_banner=False)


def main() -> None:
    if len(sys.argv) < 3 or sys.argv[1] not in ("default", "shared"):
        sys.exit(__doc__)
    logging.disable(logging.WARNING)
    asyncio.run(serve(sys.argv[1], sys.argv[2], sys.argv[3:]))


if __name__ == "__main__":
    main()
