"""Calls `echo` through Durward with FastMCP, which finds the issuer and signs in by itself: fastmcp_oauth.py URL USER PORT.

The browser is scripted; everything else is FastMCP's own: metadata, code, PKCE, resource, token.
"""

import asyncio
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
url, user, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
sys.argv = ["keycloak.py", "none"]
import keycloak  # noqa: E402
from fastmcp import Client  # noqa: E402
from fastmcp.client.auth import OAuth  # noqa: E402


class ScriptedBrowser(OAuth):
    async def redirect_handler(self, authorization_url):
        page = asyncio.get_running_loop().run_in_executor(
            None, keycloak.sign_in, authorization_url, user
        )
        self.page = page


async def main():
    auth = ScriptedBrowser(
        scopes="openid mcp:read", client_id="durward", callback_port=port, callback_host="127.0.0.1"
    )
    async with Client(url, auth=auth) as client:
        tools = await client.list_tools()
        answer = await client.call_tool("echo", {"text": "hello"})
        print(len(tools), answer.content[0].text)


asyncio.run(main())
