// A server on the official TypeScript SDK, v1 or v2, of which the tools coerce strings: with JSON.parse before zod, and
// with ajv's coerceTypes. It writes down every string of each value that a tool receives.
// Arguments: the folder of its packages, and "1" or "2".
import { appendFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [folder, version] = process.argv.slice(2);
const load = async path => import(pathToFileURL(`${folder}/node_modules/${path}`));
const { z } = await load('zod/index.js');
const Ajv = createRequire(`${folder}/node_modules/`)('ajv');
const v1 = '@modelcontextprotocol/sdk/dist/esm/server';
const v2 = '@modelcontextprotocol/server/dist';
const { McpServer } = await load(version === '1' ? `${v1}/mcp.js` : `${v2}/index.mjs`);

function strings(value) {
	if (typeof value === 'string') return [value.toWellFormed()];
	if (Array.isArray(value)) return value.flatMap(strings);
	if (value && typeof value === 'object') return Object.entries(value).flatMap(strings);
	return [];
}

function executed(tool, value) {
	// The names of the two arguments are no strings that the call brings.
	const found = Object.values(value).flatMap(strings);
	appendFileSync(process.env.DIFFERENTIAL_LOG, JSON.stringify({ tool, strings: found }) + '\n');
	return { content: [{ type: 'text', text: 'done' }] };
}

function parse(value) {
	if (typeof value !== 'string') return value;
	try {
		return JSON.parse(value);
	} catch {
		return value;
	}
}

const nested = z.object({ path: z.string().optional(), more: z.array(z.any()).optional(), below: z.any().optional() }).passthrough();
const shapes = {
	take_list: z.array(z.any()),
	take_texts: z.array(z.string()),
	take_map: z.record(z.string(), z.any()),
	take_union: z.union([z.array(z.string()), z.record(z.string(), z.any()), z.string()]),
	take_model: nested,
	take_json: z.any(),
};
const ajv = new Ajv({ coerceTypes: 'array', strict: false, logger: false });
const list = { type: 'array', items: { type: 'string' } };
const coerce = ajv.compile({ type: 'object', properties: { paths: list, items: list } });

const server = new McpServer({ name: 'coerced', version: '1' });
const register = (tool, one, answer) => {
	const shape = { paths: one.optional(), items: one.optional() };
	server.registerTool(tool, { inputSchema: version === '1' ? shape : z.object(shape) }, answer);
};
for (const [tool, shape] of Object.entries(shapes)) {
	register(tool, z.preprocess(parse, shape), async given => executed(tool, given));
}
register('take_coerced', z.any(), async given => {
	if (!coerce(given)) return { isError: true, content: [{ type: 'text', text: 'unfit' }] };
	return executed('take_coerced', given);
});

if (version === '1') {
	const { StdioServerTransport } = await load(`${v1}/stdio.js`);
	await server.connect(new StdioServerTransport());
} else {
	const { serveStdio } = await load(`${v2}/stdio.mjs`);
	serveStdio(() => server);
}
