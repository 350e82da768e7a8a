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


def chat(**more):
    return ChatOpenAI(base_url=base, api_key=key, model="smart", **more)


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


def agent(kind, tools):
    client = openai.AsyncOpenAI(base_url=base, api_key=key)
    return Agent(name="a", instructions="be brief", model=kind(model="smart", openai_client=client), tools=tools)


@check
def agents_run_a_tool_on_both_apis():
    for kind in (OpenAIChatCompletionsModel, OpenAIResponsesModel):
        result = asyncio.run(Runner.run(agent(kind, [look]), "hello", run_config=RunConfig(tracing_disabled=True)))
        assert result.final_output == "The tool said: sunny in mock", (kind, result.final_output)


@check
def agents_stream_on_both_apis():
    async def run(kind):
        result = Runner.run_streamed(agent(kind, []), "hello")
        async for _ in result.stream_events():
            pass
        return result.final_output

    for kind in (OpenAIChatCompletionsModel, OpenAIResponsesModel):
        assert asyncio.run(run(kind)) == SENTENCE, kind


for run in CHECKS:
    try:
        run()
    except Exception as error:  # each is told by its name
        print(f"failed {run.__name__}: {type(error).__name__}: {error}")
    else:
        print(f"ok {run.__name__}")
