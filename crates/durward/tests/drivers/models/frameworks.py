"""Drives LangChain and the OpenAI Agents SDK, unchanged, against a base URL: one line for each thing that holds.

Usage: frameworks.py BASE_URL KEY
"""

import asyncio
import sys

import openai
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, RunConfig, Runner, function_tool, set_tracing_disabled
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel

SENTENCE = "This is a MOCK response for load testing."
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
base, key = sys.argv[1:3]
set_tracing_disabled(True)
CHECKS = []


def check(run):
    CHECKS.append(run)
    return run


class City(BaseModel):
    name: str
    size: int


@tool
def weather(city: str) -> str:
    """Says the weather."""
    return f"sunny in {city}"


@tool
def clock(city: str) -> str:
    """Says the time."""
    return f"noon in {city}"


def chat(**more):
    return ChatOpenAI(**({"base_url": base, "api_key": key, "model": "smart"} | more))


@check
def langchain_whole():
    reply = chat().invoke([HumanMessage("hello")])
    assert reply.content == SENTENCE and reply.usage_metadata["output_tokens"] == 8


@check
def langchain_stream():
    parts = list(chat(stream_usage=True).stream("hello"))
    assert "".join(part.content for part in parts) == SENTENCE
    assert any(part.usage_metadata and part.usage_metadata["output_tokens"] == 8 for part in parts)


@check
def langchain_tools():
    reply = chat().bind_tools([weather]).invoke("hello")
    assert reply.tool_calls[0]["name"] == "weather" and reply.tool_calls[0]["args"] == {"city": "mock"}


@check
def langchain_parallel_tools():
    reply = chat(model="local/parallel-tools").bind_tools([weather, clock]).invoke("hello")
    assert [call["name"] for call in reply.tool_calls] == ["weather", "clock"]


@check
def langchain_images():
    parts = [{"type": "text", "text": "what is it?"}, {"type": "image", "base64": PIXEL, "mime_type": "image/png"}]
    assert chat().invoke([HumanMessage(parts)]).content == SENTENCE


@check
def langchain_cancel_and_retries():
    events = chat(model="slow/echo-nothing").stream("hello")
    next(events)
    events.close()
    try:
        chat(model="local/fault-500", max_retries=5).invoke("hello")
    except openai.InternalServerError as error:
        assert error.request.headers["x-stainless-retry-count"] == "0", "what was repeated here is not repeated"
    else:
        raise AssertionError("a failure was taken for an answer")


@check
def langchain_structured():
    assert chat().with_structured_output(City, method="json_schema").invoke("hello") == City(name="mock", size=7)


@check
def langchain_responses():
    reply = chat(use_responses_api=True).invoke("hello")
    assert reply.text == SENTENCE, reply


@check
def langchain_embeddings():
    own = OpenAIEmbeddings(base_url=base, api_key=key, model="smart", dimensions=4, check_embedding_ctx_length=False)
    assert len(own.embed_query("a")) == 4


@check
def langchain_errors():
    try:
        ChatOpenAI(base_url=base, api_key=key, model="nope").invoke("hello")
    except openai.NotFoundError as error:
        assert error.code == "model_not_found"
    else:
        raise AssertionError("there is no such model")


@function_tool
def look(city: str) -> str:
    """Looks at the weather."""
    return f"sunny in {city}"


@function_tool
def listen(city: str) -> str:
    """Listens."""
    return f"quiet in {city}"


BOTH = (OpenAIChatCompletionsModel, OpenAIResponsesModel)


def agent(kind, tools, model="smart", **more):
    client = openai.AsyncOpenAI(base_url=base, api_key=key)
    return Agent(name="a", instructions="be brief", model=kind(model=model, openai_client=client), tools=tools, **more)


def run_agent(own, said="hello"):
    return asyncio.run(Runner.run(own, said, run_config=RunConfig(tracing_disabled=True)))


@check
def agents_run_a_tool_on_both_apis():
    for kind in BOTH:
        result = run_agent(agent(kind, [look]))
        assert result.final_output == "The tool said: sunny in mock", (kind, result.final_output)


@check
def agents_run_parallel_tools_and_tell_usage():
    for kind in BOTH:
        result = run_agent(agent(kind, [look, listen], model="local/parallel-tools"))
        calls = [item.raw_item.name for item in result.new_items if item.type == "tool_call_item"]
        assert calls == ["look", "listen"], (kind, calls)
        usage = result.context_wrapper.usage
        assert usage.requests == 2 and usage.output_tokens > 0, (kind, usage)


@check
def agents_structured_output():
    for kind in BOTH:
        assert run_agent(agent(kind, [], output_type=City)).final_output == City(name="mock", size=7), kind


@check
def agents_images():
    image = {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{PIXEL}"}
    said = [{"role": "user", "content": [{"type": "input_text", "text": "what is it?"}, image]}]
    for kind in BOTH:
        assert run_agent(agent(kind, []), said).final_output == SENTENCE, kind


@check
def agents_errors_are_told_once():
    for kind in BOTH:
        try:
            run_agent(agent(kind, [], model="local/fault-500"))
        except openai.InternalServerError as error:
            assert error.request.headers["x-stainless-retry-count"] == "0", kind
        else:
            raise AssertionError("a failure was taken for an answer")


@check
def agents_cancel():
    async def run(kind):
        result = Runner.run_streamed(agent(kind, [], model="slow/echo-nothing"), "hello")
        async for _ in result.stream_events():
            result.cancel()
        return result.is_complete

    for kind in BOTH:
        assert asyncio.run(run(kind)), kind


@check
def agents_stream_on_both_apis():
    async def run(kind):
        result = Runner.run_streamed(agent(kind, []), "hello")
        async for _ in result.stream_events():
            pass
        return result.final_output

    for kind in BOTH:
        assert asyncio.run(run(kind)) == SENTENCE, kind


for run in CHECKS:
    try:
        run()
    except Exception as error:  # each is told by its name
        print(f"failed {run.__name__}: {type(error).__name__}: {error}")
    else:
        print(f"ok {run.__name__}")
