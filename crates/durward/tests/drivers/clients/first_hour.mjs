// An agent's first hour behind `durward wrap`: `first_hour.mjs PACKAGES CONFIGURATION FOLDER`.
//
// Connects to every server of an MCP client's configuration with the TypeScript SDK, then writes two files. Prints one
// JSON object a line: the tools of each server, the progress and the standard error that come while a write waits, and
// what becomes of it. Nothing in it knows that there is a proxy.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [packages, configuration, folder] = process.argv.slice(2);
const require = createRequire(pathToFileURL(packages + '/'));
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');

const print = value => console.log(JSON.stringify(value));
const text = result => result.content.map(part => part.text ?? '').join('\n');

async function connect(name, entry) {
	const transport = new StdioClientTransport({ command: entry.command, args: entry.args, env: entry.env, stderr: 'pipe' });
	const client = new Client({ name: 'first-hour', version: '1' });
	transport.stderr.on('data', data => print({ stderr: String(data), server: name }));
	await client.connect(transport);
	print({ server: name, tools: (await client.listTools()).tools.map(tool => tool.name).sort() });
	return client;
}

const { mcpServers } = JSON.parse(readFileSync(configuration, 'utf8'));
const started = Object.entries(mcpServers).map(async ([name, entry]) => [name, await connect(name, entry)]);
const clients = Object.fromEntries(await Promise.all(started));

async function write(name) {
	const params = { name: 'write_file', arguments: { path: `${folder}/${name}`, content: `${name}\n` } };
	// Progress keeps the call alive, as common clients do it.
	const options = { onprogress: progress => print({ progress: progress.message }), resetTimeoutOnProgress: true };
	const result = await clients.files.callTool(params, undefined, options);
	print({ wrote: name, error: result.isError === true, text: text(result) });
}

await write('first.txt');
await write('second.txt');
await Promise.all(Object.values(clients).map(client => client.close()));
