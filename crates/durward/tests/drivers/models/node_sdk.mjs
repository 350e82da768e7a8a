// Drives the official TypeScript libraries, unchanged, against a base URL: one line for each thing that holds.
//
// Usage: node node_sdk.mjs PACKAGES openai|anthropic|ai-sdk BASE_URL KEY

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [packages, library, base, key] = process.argv.slice(2);
const require = createRequire(`${packages}/x.js`);
const load = async (name) => import(pathToFileURL(require.resolve(name)).href);

const SENTENCE = "This is a MOCK response for load testing.";
const ASK = [{ role: "user", content: "hello" }];
const SCHEMA = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false };

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** A `fetch` that counts what it sends. */
const counting = () => {
  const own = (...args) => {
    own.count += 1;
    return fetch(...args);
  };
  own.count = 0;
  return own;
};

const holds = (is, what) => {
  if (!is) throw new Error(what ?? "does not hold");
};

/** The error that a promise ends with. */
const failure = async (promise) => {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("it was answered");
};

async function openai() {
  const { default: OpenAI, toFile } = await load("openai");
  const client = new OpenAI({ baseURL: base, apiKey: key });
  const tool = { type: "function", function: { name: "weather", parameters: SCHEMA } };
  return {
    async whole() {
      const reply = await client.chat.completions.create({ model: "smart", messages: ASK });
      holds(reply.choices[0].message.content === SENTENCE && reply.usage.completion_tokens === 8);
    },
    async stream() {
      let text = "";
      for await (const chunk of await client.chat.completions.create({ model: "smart", messages: ASK, stream: true })) {
        text += chunk.choices[0].delta.content ?? "";
      }
      holds(text === SENTENCE, text);
    },
    async stream_helper() {
      const stream = client.chat.completions.stream({ model: "smart", messages: ASK, stream_options: { include_usage: true } });
      const final = await stream.finalChatCompletion();
      holds(final.choices[0].message.content === SENTENCE && final.usage.completion_tokens === 8);
    },
    async tools() {
      const stream = client.chat.completions.stream({ model: "smart", messages: ASK, tools: [tool] });
      const final = await stream.finalChatCompletion();
      const call = final.choices[0].message.tool_calls[0];
      holds(call.function.name === "weather" && JSON.parse(call.function.arguments).city === "mock");
    },
    async parallel_tools() {
      const second = { type: "function", function: { name: "time", parameters: SCHEMA } };
      const ask = { model: "local/parallel-tools", messages: ASK, tools: [tool, second] };
      const final = await client.chat.completions.stream(ask).finalChatCompletion();
      const names = final.choices[0].message.tool_calls.map((call) => call.function.name);
      holds(names.join() === "weather,time", names.join());
    },
    async structured_output() {
      const response_format = { type: "json_schema", json_schema: { name: "city", schema: SCHEMA, strict: true } };
      const reply = await client.chat.completions.create({ model: "smart", messages: ASK, response_format });
      holds(JSON.parse(reply.choices[0].message.content).city === "mock");
    },
    async images_shown() {
      const content = [{ type: "text", text: "what is it?" }, { type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}` } }];
      const reply = await client.chat.completions.create({ model: "smart", messages: [{ role: "user", content }] });
      holds(reply.choices[0].message.content === SENTENCE);
    },
    async retries() {
      const counted = counting();
      const own = new OpenAI({ baseURL: base, apiKey: key, maxRetries: 5, fetch: counted });
      const error = await failure(own.chat.completions.create({ model: "local/fault-500", messages: ASK }));
      holds(error instanceof OpenAI.InternalServerError && counted.count === 1, `${counted.count} requests`);
    },
    async unknown_model() {
      const error = await failure(client.chat.completions.create({ model: "nope", messages: ASK }));
      holds(error instanceof OpenAI.NotFoundError && error.code === "model_not_found" && error.requestID);
    },
    async wrong_key() {
      const error = await failure(new OpenAI({ baseURL: base, apiKey: "wrong" }).models.list());
      holds(error instanceof OpenAI.AuthenticationError);
    },
    async cut_stream() {
      const error = await failure(
        client.chat.completions.stream({ model: "local/fault-cut", messages: ASK }).finalChatCompletion(),
      );
      holds(error instanceof OpenAI.APIError, `${error}`);
    },
    async cancel() {
      const stream = await client.chat.completions.create({ model: "slow/echo-nothing", messages: ASK, stream: true });
      for await (const _ of stream) break;
    },
    async embeddings() {
      const reply = await client.embeddings.create({ model: "smart", input: ["a"], dimensions: 4 });
      holds(reply.data[0].embedding.length === 4);
    },
    async responses() {
      const stream = client.responses.stream({ model: "smart", input: "hello" });
      const final = await stream.finalResponse();
      holds(final.output_text === SENTENCE && final.usage.output_tokens === 8);
    },
    async images() {
      const file = await toFile(Buffer.from("one"), "a.png", { type: "image/png" });
      holds((await client.images.generate({ model: "smart", prompt: "a cat" })).data[0].b64_json);
      for (const image of [file, [file, file]]) {
        holds((await client.images.edit({ model: "smart", prompt: "a dog", image })).data[0].b64_json);
      }
    },
    async audio() {
      const speech = await client.audio.speech.create({ model: "smart", voice: "alloy", input: "hello" });
      holds(Buffer.from(await speech.arrayBuffer()).subarray(0, 4).toString() === "RIFF");
      const file = await toFile(Buffer.from("RIFF"), "a \"b\".wav", { type: "audio/wav" });
      holds((await client.audio.transcriptions.create({ model: "smart", file })).text === SENTENCE);
      holds((await client.audio.translations.create({ model: "smart", file })).text === SENTENCE);
    },
    async models() {
      const names = [];
      for await (const model of client.models.list()) names.push(model.id);
      holds(names.includes("smart"));
    },
  };
}

async function anthropic() {
  const { default: Anthropic } = await load("@anthropic-ai/sdk");
  const client = new Anthropic({ baseURL: base, apiKey: key });
  const ask = { model: "smart", max_tokens: 100, messages: ASK };
  const tool = { name: "weather", input_schema: SCHEMA };
  return {
    async whole() {
      const reply = await client.messages.create(ask);
      holds(reply.content[0].text === SENTENCE && reply.usage.output_tokens === 8);
    },
    async stream() {
      const final = await client.messages.stream(ask).finalMessage();
      holds(final.content[0].text === SENTENCE && final.usage.output_tokens === 8);
    },
    async tools() {
      const final = await client.messages.stream({ ...ask, tools: [tool] }).finalMessage();
      holds(final.content[0].input.city === "mock");
    },
    async parallel_tools() {
      const reply = await client.messages.create({ ...ask, model: "local/parallel-tools", tools: [tool, { ...tool, name: "time" }] });
      const names = reply.content.map((block) => block.name);
      holds(names.join() === "weather,time", names.join());
    },
    async structured_output() {
      const output_config = { format: { type: "json_schema", schema: SCHEMA } };
      const reply = await client.messages.create({ ...ask, output_config });
      holds(JSON.parse(reply.content[0].text).city === "mock");
    },
    async images() {
      const source = { type: "base64", media_type: "image/png", data: PIXEL };
      const reply = await client.messages.create({ ...ask, messages: [{ role: "user", content: [{ type: "image", source }] }] });
      holds(reply.content[0].text === SENTENCE);
    },
    async retries() {
      const counted = counting();
      const own = new Anthropic({ baseURL: base, apiKey: key, maxRetries: 5, fetch: counted });
      const error = await failure(own.messages.create({ ...ask, model: "local/fault-500" }));
      holds(error instanceof Anthropic.InternalServerError && counted.count === 1, `${counted.count} requests`);
    },
    async count_tokens() {
      holds((await client.messages.countTokens({ model: "smart", messages: ASK })).input_tokens > 0);
    },
    async unknown_model() {
      const error = await failure(client.messages.create({ ...ask, model: "nope" }));
      holds(error instanceof Anthropic.NotFoundError && error.error.error.type === "not_found_error");
    },
    async cut_stream() {
      const error = await failure(client.messages.stream({ ...ask, model: "local/fault-cut" }).finalMessage());
      holds(error instanceof Anthropic.APIError, `${error}`);
    },
    async cancel() {
      const stream = await client.messages.create({ ...ask, model: "slow/echo-nothing", stream: true });
      for await (const _ of stream) break;
    },
    async models() {
      const names = [];
      for await (const model of client.models.list()) names.push(model.id);
      holds(names.includes("smart"));
    },
  };
}

async function aiSdk() {
  const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
  const { generateText, streamText, generateObject, embed, tool, jsonSchema } = await load("ai");
  const provider = createOpenAICompatible({ name: "durward", baseURL: base, apiKey: key, supportsStructuredOutputs: true });
  const model = provider("smart");
  const tools = { weather: tool({ inputSchema: jsonSchema(SCHEMA) }) };
  return {
    async whole() {
      const reply = await generateText({ model, prompt: "hello" });
      holds(reply.text === SENTENCE && reply.usage.outputTokens === 8);
    },
    async stream() {
      const result = streamText({ model, prompt: "hello" });
      let text = "";
      for await (const part of result.textStream) text += part;
      holds(text === SENTENCE && (await result.finishReason) === "stop", text);
    },
    async tools() {
      const reply = await generateText({ model, prompt: "hello", tools });
      holds(reply.toolCalls[0].toolName === "weather" && reply.toolCalls[0].input.city === "mock");
      const result = streamText({ model, prompt: "hello", tools });
      for await (const _ of result.fullStream);
      holds((await result.toolCalls)[0].input.city === "mock");
    },
    async parallel_tools() {
      const both = { ...tools, time: tool({ inputSchema: jsonSchema(SCHEMA) }) };
      const reply = await generateText({ model: provider("local/parallel-tools"), prompt: "hello", tools: both });
      holds(reply.toolCalls.map((call) => call.toolName).join() === "weather,time");
    },
    async images() {
      const content = [{ type: "text", text: "what is it?" }, { type: "image", image: PIXEL, mediaType: "image/png" }];
      holds((await generateText({ model, messages: [{ role: "user", content }] })).text === SENTENCE);
    },
    async cancel() {
      const gone = new AbortController();
      const result = streamText({ model: provider("slow/echo-nothing"), prompt: "hello", abortSignal: gone.signal, onError: () => {} });
      for await (const part of result.fullStream) {
        if (part.type === "start-step" || part.type === "start") gone.abort();
      }
    },
    async structured_output() {
      const reply = await generateObject({ model, prompt: "hello", schema: jsonSchema(SCHEMA) });
      holds(reply.object.city === "mock");
    },
    async unknown_model() {
      const error = await failure(generateText({ model: provider("nope"), prompt: "hello", maxRetries: 0 }));
      holds(error.statusCode === 404 && error.message.includes("nope"), `${error}`);
    },
    async cut_stream() {
      const errors = [];
      const result = streamText({ model: provider("local/fault-cut"), prompt: "hello", onError: ({ error }) => errors.push(error) });
      for await (const _ of result.fullStream);
      holds(errors.length > 0, "a cut stream looked whole");
    },
    async embeddings() {
      const reply = await embed({ model: provider.textEmbeddingModel("smart"), value: "a" });
      holds(reply.embedding.length === 8);
    },
  };
}

const checks = await { openai, anthropic, "ai-sdk": aiSdk }[library]();
for (const [name, run] of Object.entries(checks)) {
  try {
    await run();
    console.log(`ok ${name}`);
  } catch (error) {
    console.log(`failed ${name}: ${error?.stack ?? error}`);
  }
}
process.exit(0);
