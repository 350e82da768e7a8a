// Walks a whole session of the simulation server with the TypeScript SDK's client:
// `simulation.mjs PACKAGES VERSION GOLDEN WAY`.
//
// VERSION is `1` or `2`. GOLDEN is the file of shapes, against which every result is held. WAY is JSON: a list of words is
// a command, a string is an address. Prints `walked` at the end.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [packages, version, goldenFile, way] = process.argv.slice(2);
const require = createRequire(pathToFileURL(packages + '/'));
const sdk =
	version === '1'
		? {
				...require('@modelcontextprotocol/sdk/client/index.js'),
				...require('@modelcontextprotocol/sdk/client/stdio.js'),
				...require('@modelcontextprotocol/sdk/client/streamableHttp.js'),
			}
		: { ...require('@modelcontextprotocol/client'), ...require('@modelcontextprotocol/client/stdio') };
const golden = JSON.parse(readFileSync(goldenFile, 'utf8'));

const WEIGHT = 'Example|Organism|Weight';
const CURVE = 'Example|Organism|Central|Drug|Concentration';
const DOSE = 'Example|Applications|Infusion|DrugMass';
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

const isObject = value => typeof value === 'object' && value !== null && !Array.isArray(value);
const KINDS = {
	s: value => typeof value === 'string',
	t: value => typeof value === 'string' && TIME.test(value),
	i: Number.isInteger,
	f: value => typeof value === 'number',
	b: value => typeof value === 'boolean',
	o: isObject,
	null: value => value === null,
};

// Fails where the value is not of the shape: exactly its members, each of its type.
function fits(shape, value, at) {
	if (typeof shape === 'string') {
		if (shape.endsWith('?') && value === null) return;
		const kind = shape.replace('?', '');
		assert(KINDS[kind](value), `${at}: ${JSON.stringify(value)} is not ${kind}`);
	} else if (Array.isArray(shape)) {
		assert(Array.isArray(value), `${at} is no list`);
		value.forEach((member, n) => fits(shape[0], member, `${at}[${n}]`));
	} else if ('?' in shape) {
		if (value !== null) fits(shape['?'], value, at);
	} else if ('*' in shape) {
		assert(isObject(value) && Object.keys(value).length > 0, `${at} is no map`);
		for (const [name, member] of Object.entries(value)) fits(shape['*'], member, `${at}.${name}`);
	} else {
		assert(isObject(value), `${at} is no object`);
		for (const [name, member] of Object.entries(shape)) {
			const plain = name.replace(/^~/, '');
			if (plain in value) fits(member, value[plain], `${at}.${plain}`);
			else assert(name.startsWith('~'), `${at} lacks ${plain}`);
		}
		for (const name of Object.keys(value)) assert(name in shape || `~${name}` in shape, `${at}.${name} is too much`);
	}
}

async function walk(client) {
	const call = (name, arguments_, options) =>
		version === '1'
			? client.callTool({ name, arguments: arguments_ }, undefined, options)
			: client.callTool({ name, arguments: arguments_ }, options);
	const good = async (tool, arguments_, options) => {
		const result = await call(tool, arguments_, options);
		assert(!result.isError, `${tool}: ${JSON.stringify(result)}`);
		if (golden[tool]) fits(golden[tool], result.structuredContent, tool);
		return result.structuredContent;
	};
	const bad = async (code, tool, arguments_) => {
		const result = await call(tool, arguments_);
		assert.equal(result.isError, true, `${tool}: ${JSON.stringify(result)}`);
		assert.equal(result._meta['durward/failure'].code, code, `${tool}: ${JSON.stringify(result)}`);
		return result._meta['durward/failure'];
	};
	const ended = async (job, options) => {
		const told = await good('get_job_status', { jobId: job.jobId, waitSeconds: 60 }, options);
		assert.equal(told.status, 'succeeded', JSON.stringify(told));
		return told.resultId;
	};
	const sim = { simulationId: 'ts' };
	const listed = (await client.listTools()).tools.map(tool => tool.name);
	for (const tool of Object.keys(golden)) assert(listed.includes(tool), tool);

	// Load, inspect, set.
	await bad('ConfirmationRequired', 'load_simulation', { filePath: 'two_compartment.xml', ...sim });
	await bad('InvalidInput', 'load_simulation', { filePath: '../outside.xml', ...sim, confirm: true });
	await good('load_simulation', { filePath: 'two_compartment.xml', ...sim, confirm: true });
	assert.deepEqual((await good('list_parameters', { ...sim, searchPattern: '*Weight' })).parameters, [WEIGHT]);
	assert.equal((await good('get_parameter_value', { ...sim, parameterPath: WEIGHT })).parameter.value, 70);
	const near = await bad('NotFound', 'get_parameter_value', { ...sim, parameterPath: 'Example|Organism|Wieght' });
	assert(near.details[0].hint.includes(WEIGHT), JSON.stringify(near));
	const set = { ...sim, parameterPath: WEIGHT, value: 80000, unit: 'g', confirm: true };
	assert(Math.abs((await good('set_parameter_value', set)).parameter.value - 80) < 1e-9);

	// Run, wait, results, PK.
	const first = await ended(await good('run_simulation', { ...sim, confirm: true }));
	const curve = (await good('get_results', { resultsId: first, outputs: [CURVE] })).series[0];
	const highest = Math.max(...curve.values.map(point => point.value));
	const pk = await good('calculate_pk_parameters', { resultsId: first, outputPath: CURVE });
	assert(Math.abs(pk.metrics[0].cmax / highest - 1) < 1e-9, `${pk.metrics[0].cmax} ${highest}`);

	// Population, with progress, and its chunks.
	const cohort = {
		size: 250,
		seed: 7,
		covariates: [{ path: WEIGHT, unit: 'kg', distribution: 'normal', mean: 70, sd: 10 }],
	};
	const outputs = { timeSeries: [{ path: CURVE }], aggregates: ['meanCmax'] };
	const heard = [];
	const population = await good('run_population_simulation', { ...sim, cohort, outputs, confirm: true });
	const name = await ended(population, { onprogress: news => heard.push(news) });
	assert(heard.length > 0 && heard.every((news, n) => n === 0 || news.progress > heard[n - 1].progress), JSON.stringify(heard));
	assert.equal(heard.at(-1).total, 250);
	const told = await good('get_population_results', { resultsId: name });
	const peaks = [];
	for (const { chunkId } of told.chunks) {
		const chunk = await good('get_population_chunk', { resultsId: name, chunkId });
		peaks.push(...chunk.series.map(series => Math.max(...series.concentration)));
	}
	assert.equal(peaks.length, 250);
	const mean = peaks.reduce((sum, peak) => sum + peak, 0) / peaks.length;
	assert(Math.abs(mean / told.aggregates.meanCmax - 1) < 1e-9, `${mean} ${told.aggregates.meanCmax}`);

	// Sensitivity: 10 per cent less of the dose is 10 per cent less everywhere.
	const { report } = await good('run_sensitivity_analysis', {
		...sim,
		modelPath: 'two_compartment.xml',
		parameters: [{ path: DOSE, deltas: [-0.1] }],
		confirm: true,
	});
	assert(Math.abs(report.scenarios[1].delta_percent[CURVE].auc + 10) < 0.01, JSON.stringify(report.scenarios[1]));

	// Plot, cancel.
	const plot = await good('plot_results', { resultsId: first, outputs: [CURVE], title: 'Central' });
	assert(plot.svg.startsWith('<svg') && plot.svg.includes('Central'));

	// The same as resources.
	const uri = `sim://results/${first}`;
	assert((await client.listResources()).resources.some(resource => resource.uri === uri));
	const read = await client.readResource({ uri });
	assert.deepEqual(JSON.parse(read.contents[0].text).series.find(one => one.parameter === CURVE), curve);
	const picture = await client.readResource({ uri: `${uri}/plot` });
	assert(picture.contents[0].mimeType === 'image/png' && picture.contents[0].blob.length > 1000);
	await assert.rejects(client.readResource({ uri: 'sim://results/none' }), /there are no results/);

	const long = await good('run_population_simulation', { ...sim, cohort: { size: 500000 }, confirm: true });
	assert.equal((await good('cancel_job', { jobId: long.jobId })).status, 'cancelled');
	assert.equal((await good('get_job_status', { jobId: long.jobId })).status, 'cancelled');
	await bad('NotFound', 'get_results', { resultsId: 'none' });
}

const client = new sdk.Client({ name: 'simulation walk', version: '1' });
const to = JSON.parse(way);
const transport = Array.isArray(to)
	? new sdk.StdioClientTransport({ command: to[0], args: to.slice(1), stderr: 'inherit', env: process.env })
	: new sdk.StreamableHTTPClientTransport(new URL(to));
await client.connect(transport);
await walk(client);
await client.close();
console.log('walked');
