// Calls `echo` of a server with the TypeScript SDK's client: `refused.mjs PACKAGES VERSION COMMAND...`.
//
// Lists the tools first, so that the client knows the tool's output schema, and prints the schema's type and what
// the call came to.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [packages, version, command, ...args] = process.argv.slice(2);
const require = createRequire(pathToFileURL(packages + '/'));
const sdk =
	version === '1'
		? { ...require('@modelcontextprotocol/sdk/client/index.js'), ...require('@modelcontextprotocol/sdk/client/stdio.js') }
		: { ...require('@modelcontextprotocol/client'), ...require('@modelcontextprotocol/client/stdio') };

const client = new sdk.Client({ name: 'driver', version: '1' });
await client.connect(new sdk.StdioClientTransport({ command, args, env: process.env, stderr: 'ignore' }));
const { tools } = await client.listTools();
const echo = tools.find(tool => tool.name === 'echo');
const result = await client.callTool({ name: 'echo', arguments: { text: 'x' } });
console.log(JSON.stringify({ schema: echo?.outputSchema?.type ?? null, result }));
await client.close();
