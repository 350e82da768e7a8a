// A server on the official TypeScript SDK, v1, that writes down what it executes.
// Its folder of packages is the first argument.
import { appendFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(pathToFileURL(process.argv[2] + '/'));
const load = async name => import(pathToFileURL(require.resolve(name)));
const { McpServer } = await load('@modelcontextprotocol/sdk/server/mcp.js');
const { StdioServerTransport } = await load('@modelcontextprotocol/sdk/server/stdio.js');
const { z } = await load('zod');

const server = new McpServer({ name: 'differential', version: '1' });
const inputSchema = { path: z.string(), text: z.string().optional(), count: z.number().optional() };
for (const tool of ['read_note', 'delete_note']) {
	server.registerTool(tool, { inputSchema }, async ({ path }) => {
		appendFileSync(process.env.DIFFERENTIAL_LOG, JSON.stringify({ tool, path }) + '\n');
		return { content: [{ type: 'text', text: 'done' }] };
	});
}
await server.connect(new StdioServerTransport());
