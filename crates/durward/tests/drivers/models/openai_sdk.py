"""Drives OpenAI's own Python library, unchanged, against a base URL: one line for each thing that holds.

Usage: openai_sdk.py BASE_URL KEY
"""

import asyncio
import sys

import openai
from pydantic import BaseModel

SENTENCE = "This is a MOCK response for load testing."
ASK = [{"role": "user", "content": "hello"}]
PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def tool(name):
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "parameters": schema, "strict": True}}


class City(BaseModel):
    name: str
    size: int


base, key = sys.argv[1:3]
client = openai.OpenAI(base_url=base, api_key=key)
CHECKS = []


def check(run):
    CHECKS.append(run)
    return run


@check
def whole():
    reply = client.chat.completions.with_raw_response.create(model="smart", messages=ASK)
    assert reply.headers["x-request-id"] and reply.headers["x-durward-target"] == "local/plain"
    reply = reply.parse()
    assert reply.choices[0].message.content == SENTENCE
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage.completion_tokens == 8 and reply.usage.prompt_tokens > 0


@check
def stream():
    chunks = list(client.chat.completions.create(model="smart", messages=ASK, stream=True))
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == SENTENCE
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert all(c.usage is None and c.choices for c in chunks), "nobody asked for usage"


@check
def usage_in_the_stream():
    options = {"include_usage": True}
    chunks = list(client.chat.completions.create(model="smart", messages=ASK, stream=True, stream_options=options))
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == 8


@check
def stream_helper():
    with client.chat.completions.stream(model="smart", messages=ASK) as events:
        kinds = [event.type for event in events]
        assert events.get_final_completion().choices[0].message.content == SENTENCE
    assert kinds.count("content.delta") >= 8 and "content.done" in kinds


@check
def tools():
    ask = {"model": "smart", "messages": ASK, "tools": [tool("weather")]}
    message = client.chat.completions.create(**ask).choices[0].message
    assert message.tool_calls[0].function.name == "weather"
    turns = ASK + [message, {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "sunny"}]
    reply = client.chat.completions.create(**{**ask, "messages": turns})
    assert reply.choices[0].message.content == "The tool said: sunny"
    with client.chat.completions.stream(**ask) as events:
        for _ in events:
            pass
        call = events.get_final_completion().choices[0].message.tool_calls[0]
    assert call.function.name == "weather" and call.function.arguments == '{"city":"mock"}'


@check
def parallel_tools():
    ask = {"model": "local/parallel-tools", "messages": ASK, "tools": [tool("weather"), tool("time")]}
    names = [call.function.name for call in client.chat.completions.create(**ask).choices[0].message.tool_calls]
    assert names == ["weather", "time"]
    with client.chat.completions.stream(**ask) as events:
        for _ in events:
            pass
        calls = events.get_final_completion().choices[0].message.tool_calls
    assert [call.function.name for call in calls] == ["weather", "time"] and calls[0].id != calls[1].id


@check
def structured_output():
    reply = client.chat.completions.parse(model="smart", messages=ASK, response_format=City)
    assert reply.choices[0].message.parsed == City(name="mock", size=7)


@check
def images():
    parts = [{"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": PIXEL}}]
    reply = client.chat.completions.create(model="smart", messages=[{"role": "user", "content": parts}])
    assert reply.choices[0].message.content == SENTENCE


@check
def unknown_model():
    try:
        client.chat.completions.create(model="nope", messages=ASK)
    except openai.NotFoundError as error:
        assert error.code == "model_not_found" and error.param == "model" and error.request_id
    else:
        raise AssertionError("there is no such model")


@check
def bad_request():
    try:
        client.chat.completions.create(model="smart", messages=ASK, extra_body={"Stream": True})
    except openai.BadRequestError as error:
        assert error.code == "request_unreadable" and "Stream" in error.message
    else:
        raise AssertionError("a name that is like another was taken")


@check
def wrong_key():
    try:
        openai.OpenAI(base_url=base, api_key="wrong").models.list()
    except openai.AuthenticationError as error:
        assert error.status_code == 401 and error.type == "authentication_error"
    else:
        raise AssertionError("a wrong key was taken")


@check
def provider_errors():
    before = client.with_options(max_retries=5)
    for model, kind, code in [
        ("local/fault-429", openai.RateLimitError, "provider_rate_limited"),
        ("local/fault-500", openai.InternalServerError, "provider_error"),
        ("local/fault-401", openai.InternalServerError, "provider_credentials"),
    ]:
        for streams in (False, True):
            try:
                before.chat.completions.create(model=model, messages=ASK, stream=streams)
            except kind as error:
                # Another gateway that stands between words it in its own way.
                assert error.code in (code, "provider_error"), error
                assert error.response.headers["x-should-retry"] == "false"
                assert error.request.headers["x-stainless-retry-count"] == "0", "what was repeated here is not repeated"
            else:
                raise AssertionError(model)


@check
def cut_stream():
    seen = []
    try:
        for chunk in client.chat.completions.create(model="local/fault-cut", messages=ASK, stream=True):
            seen.append(chunk)
    except openai.APIError as error:
        # A provider of another dialect has said it in its own words.
        assert error.code in ("provider_cut", "provider_error") and "ended before its end" in error.message and seen
    else:
        raise AssertionError("a cut stream looked whole")


@check
def cancel():
    events = client.chat.completions.create(model="slow/echo-nothing", messages=ASK, stream=True)
    next(iter(events))
    events.close()


@check
def embeddings():
    reply = client.embeddings.create(model="smart", input=["a", "b"], dimensions=4)
    assert len(reply.data) == 2 and len(reply.data[0].embedding) == 4
    plain = client.embeddings.create(model="smart", input=["a"], dimensions=4, encoding_format="float")
    assert plain.data[0].embedding == reply.data[0].embedding


@check
def responses():
    reply = client.responses.create(model="smart", input="hello")
    assert reply.output_text == SENTENCE and reply.usage.output_tokens == 8
    with client.responses.stream(model="smart", input="hello") as events:
        kinds = [event.type for event in events]
        assert events.get_final_response().output_text == SENTENCE
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
    flat = {"type": "function", "name": "weather", **{k: v for k, v in tool("weather")["function"].items() if k != "name"}}
    reply = client.responses.create(model="smart", input="hello", tools=[flat])
    assert reply.output[0].type == "function_call" and reply.output[0].name == "weather"
    try:
        for _ in client.responses.create(model="local/fault-cut", input="hello", stream=True):
            pass
    except openai.APIError as error:
        assert "ended before its end" in str(error)
    else:
        raise AssertionError("a cut stream looked whole")


@check
def models():
    names = [model.id for model in client.models.list()]
    assert "smart" in names and "local/plain" in names
    assert client.models.retrieve("local/plain").id == "local/plain"


@check
def not_served():
    try:
        client.files.list()
    except openai.NotFoundError as error:
        assert error.code == "endpoint_not_served"
    else:
        raise AssertionError("files are not served")


@check
def images_made_and_changed():
    made = client.images.generate(model="smart", prompt="a cat")
    assert made.data[0].b64_json and made.usage.total_tokens == 8
    files = [("a.png", b"one", "image/png"), ("b.png", b"two", "image/png")]
    for image in (files[0], files):
        assert client.images.edit(model="smart", prompt="a dog", image=image).data[0].b64_json
    assert client.images.create_variation(model="smart", image=files[0]).data[0].b64_json


@check
def speech():
    with client.audio.speech.with_streaming_response.create(model="smart", voice="alloy", input="hello") as reply:
        assert reply.headers["content-type"] == "audio/wav" and reply.read().startswith(b"RIFF")


@check
def transcriptions():
    sound = ("a \u00e9.wav", b"RIFF\r\n--not the end\r\n", "audio/wav")
    heard = client.audio.transcriptions.create(model="smart", file=sound, timestamp_granularities=["word", "segment"])
    assert heard.text == SENTENCE and heard.usage.total_tokens == 15
    assert client.audio.transcriptions.create(model="smart", file=sound, response_format="text").strip() == SENTENCE
    assert client.audio.translations.create(model="smart", file=sound).text == SENTENCE
    try:
        client.audio.transcriptions.create(model="nope", file=sound)
    except openai.NotFoundError as error:
        assert error.code == "model_not_found"
    else:
        raise AssertionError("there is no such model")


@check
def rerank():
    body = {"model": "smart", "query": "which?", "documents": ["a", "b"]}
    ranked = client.post("/rerank", body=body, cast_to=dict)
    assert [one["index"] for one in ranked["results"]] == [1, 0]


@check
def asynchronous():
    async def run():
        async with openai.AsyncOpenAI(base_url=base, api_key=key) as own:
            ask = [own.chat.completions.create(model="smart", messages=ASK) for _ in range(8)]
            return await asyncio.gather(*ask)

    assert all(reply.choices[0].message.content == SENTENCE for reply in asyncio.run(run()))


for run in CHECKS:
    try:
        run()
    except Exception as error:  # each is told by its name
        print(f"failed {run.__name__}: {type(error).__name__}: {error}")
    else:
        print(f"ok {run.__name__}")
