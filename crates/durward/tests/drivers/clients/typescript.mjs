// Drives the TypeScript SDK's client: `typescript.mjs PACKAGES VERSION WAYS`.
//
// VERSION is `1` or `2`. WAYS is a JSON object of ways to the everything server: a list of words is a command, a
// string is an address. Prints what was seen on each way. Nothing in it depends on what stands on the way.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [packages, version, ways] = process.argv.slice(2);
const require = createRequire(pathToFileURL(packages + '/'));

async function load() {
	if (version === '1') {
		const types = require('@modelcontextprotocol/sdk/types.js');
		return {
			...require('@modelcontextprotocol/sdk/client/index.js'),
			...require('@modelcontextprotocol/sdk/client/stdio.js'),
			...require('@modelcontextprotocol/sdk/client/streamableHttp.js'),
			elicitation: types.ElicitRequestSchema,
			changed: types.ToolListChangedNotificationSchema,
		};
	}
	return {
		...require('@modelcontextprotocol/client'),
		...require('@modelcontextprotocol/client/stdio'),
		elicitation: 'elicitation/create',
		changed: 'notifications/tools/list_changed',
	};
}

const sdk = await load();

const text = result => result.content.map(part => part.text ?? '').join('\n');

async function steps(way) {
	const seen = { progress: [], asked: 0 };
	const client = new sdk.Client({ name: 'driver', version: '1' }, { capabilities: { elicitation: {} } });
	client.setRequestHandler(sdk.elicitation, async () => {
		seen.asked += 1;
		return { action: 'accept', content: { name: 'Ada' } };
	});
	let changes = 0;
	client.setNotificationHandler(sdk.changed, async () => {
		changes += 1;
	});
	const transport = Array.isArray(way)
		? new sdk.StdioClientTransport({ command: way[0], args: way.slice(1), stderr: 'ignore' })
		: new sdk.StreamableHTTPClientTransport(new URL(way));
	await client.connect(transport);
	// The first call goes out at once: the server's word on `initialized` arrives beside it.
	const call = (name, arguments_, options) =>
		version === '1'
			? client.callTool({ name, arguments: arguments_ }, undefined, options)
			: client.callTool({ name, arguments: arguments_ }, options);
	seen.echo = text(await call('echo', { message: 'x' }));
	for (let n = 0; n < 100 && changes === 0; n += 1) await new Promise(done => setTimeout(done, 10));
	seen.told = changes > 0;
	seen.tools = (await client.listTools()).tools.map(tool => tool.name).sort();
	const onprogress = ({ progress, total }) => seen.progress.push([progress, total]);
	seen.stepped = text(await call('trigger-long-running-operation', { duration: 0.2, steps: 2 }, { onprogress }));
	seen.elicited = text(await call('trigger-elicitation-request', {})).includes('Ada');
	const abort = new AbortController();
	setTimeout(() => abort.abort(), 200);
	const long = { duration: 3, steps: 1 };
	seen.cancelled = await call('trigger-long-running-operation', long, { signal: abort.signal }).then(
		() => false,
		() => true,
	);
	seen.refused = await call('echo', { message: '/forbidden/x' }).then(
		result => (result.isError ? text(result) : null),
		error => String(error.message),
	);
	seen.after = text(await call('echo', { message: 'y' }));
	if (!Array.isArray(way)) await transport.terminateSession();
	await client.close();
	return seen;
}

const seen = {};
for (const [name, way] of Object.entries(JSON.parse(ways))) seen[name] = await steps(way);
console.log(JSON.stringify(seen));
