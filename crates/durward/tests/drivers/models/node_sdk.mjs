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
  const { default: OpenAI } = await load("openai");
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
