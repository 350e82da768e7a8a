// A server on the official TypeScript SDK, v1 or v2, that writes down what it executes.
// Arguments: the folder of its packages, "1" or "2", and "http" to listen; then its first line is its address.
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';
import { pathToFileURL } from 'node:url';

const [folder, version, transport] = process.argv.slice(2);
const load = async path => import(pathToFileURL(`${folder}/node_modules/${path}`));
const { z } = await load('zod/index.js');
const v1 = '@modelcontextprotocol/sdk/dist/esm/server';
const v2 = '@modelcontextprotocol/server/dist';
const { McpServer } = await load(version === '1' ? `${v1}/mcp.js` : `${v2}/index.mjs`);

const note = { path: z.string(), text: z.string().optional(), count: z.number().optional() };
const notes = {
	paths: z.array(z.string()),
	below: z.object({ path: z.string().optional(), deep: z.boolean().optional() }).optional(),
	lines: z.number().int().optional(),
	flags: z.array(z.boolean()).optional(),
};
const tools = { read_note: note, delete_note: note, read_notes: notes };

function make() {
	const server = new McpServer({ name: 'differential', version: '1' });
	for (const [tool, shape] of Object.entries(tools)) {
		const inputSchema = version === '1' ? shape : z.object(shape);
		server.registerTool(tool, { inputSchema }, async given => {
			const paths = [given.path, ...(given.paths ?? []), given.below?.path].filter(path => path !== undefined);
			const line = { tool, paths: paths.map(path => path.toWellFormed()), arguments: given };
			appendFileSync(process.env.DIFFERENTIAL_LOG, JSON.stringify(line) + '\n');
			return { content: [{ type: 'text', text: 'done' }] };
		});
	}
	return server;
}

function listen(answer) {
	const http = createServer((request, response) => {
		answer(request, response).catch(error => response.writeHead(500).end(String(error)));
	});
	http.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
}

async function read(request) {
	const parts = [];
	for await (const part of request) parts.push(part);
	return Buffer.concat(parts);
}

async function http1() {
	const { StreamableHTTPServerTransport } = await load(`${v1}/streamableHttp.js`);
	const sessions = new Map();
	listen(async (request, response) => {
		let session = sessions.get(request.headers['mcp-session-id']);
		if (!session) {
			session = new StreamableHTTPServerTransport({
				sessionIdGenerator: randomUUID,
				onsessioninitialized: id => void sessions.set(id, session),
			});
			await make().connect(session);
		}
		await session.handleRequest(request, response);
	});
}

async function http2() {
	const { createMcpHandler, isLegacyRequest, WebStandardStreamableHTTPServerTransport } = await load(`${v2}/index.mjs`);
	const modern = createMcpHandler(make, { legacy: 'reject' });
	const sessions = new Map();
	const legacy = async request => {
		let session = sessions.get(request.headers.get('mcp-session-id'));
		if (!session) {
			session = new WebStandardStreamableHTTPServerTransport({
				sessionIdGenerator: randomUUID,
				onsessioninitialized: id => void sessions.set(id, session),
			});
			await make().connect(session);
		}
		return session.handleRequest(request);
	};
	listen(async (request, response) => {
		const body = request.method === 'POST' ? await read(request) : undefined;
		const headers = new Headers(Object.entries(request.headers));
		const whole = new Request(`http://${request.headers.host}${request.url}`, { method: request.method, headers, body });
		const answer = (await isLegacyRequest(whole.clone())) ? await legacy(whole) : await modern.fetch(whole);
		response.writeHead(answer.status, Object.fromEntries(answer.headers));
		if (answer.body) for await (const part of answer.body) response.write(part);
		response.end();
	});
}

if (transport === 'http') {
	await (version === '1' ? http1() : http2());
} else if (version === '1') {
	const { StdioServerTransport } = await load(`${v1}/stdio.js`);
	await make().connect(new StdioServerTransport());
} else {
	const { serveStdio } = await load(`${v2}/stdio.mjs`);
	serveStdio(make);
}
