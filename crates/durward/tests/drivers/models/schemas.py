"""Holds what a base URL answers against the types of OpenAI's and Anthropic's own Python libraries, as JSON Schema.

The bytes are read with the standard library alone, so that no library mends what it reads. Every whole reply, every
event of every stream and every error of each endpoint is validated; what the libraries' types do not say, such as the
order of events, their own helpers check in openai_sdk.py and anthropic_sdk.py.

Usage: schemas.py (BASE_URL KEY PROVIDER CHECKS_TO_LEAVE_OUT)...   (the checks parted by commas, or -)
"""

import json
import sys
import urllib.error
import urllib.request

import anthropic.types as an
import anthropic.types.shared as shared
import openai.types as oa
import openai.types.audio as audio
import openai.types.chat as chat
import openai.types.responses as responses
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}
NAMES = ["weather", "time"]
VALIDATORS = {}


def holds(value, kind, where):
    """Fails where a value is not of the type."""
    if kind not in VALIDATORS:
        schema = TypeAdapter(kind).json_schema(mode="serialization")
        Draft202012Validator.check_schema(schema)
        VALIDATORS[kind] = Draft202012Validator(schema)
    faults = sorted(VALIDATORS[kind].iter_errors(value), key=lambda fault: list(map(str, fault.absolute_path)))
    for fault in faults[:3]:
        place = "/".join(map(str, fault.absolute_path))
        inner = "; ".join(f"{one.json_path}: {one.message}"[:200] for one in (fault.context or [])[:3])
        raise AssertionError(f"{where} at /{place}: {fault.message[:300]} {inner} in {json.dumps(value)[:400]}")


def send(method, path, body=None, kind="application/json", **headers):
    """The status, the kind and the bytes of an answer."""
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    headers = {"content-type": kind, "authorization": f"Bearer {key}"} | {k.replace("_", "-"): v for k, v in headers.items()}
    request = urllib.request.Request(base + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, reply.headers["content-type"], reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["content-type"], error.read()


def whole(path, body, of, **more):
    status, told, data = send("POST", path, body, **more)
    assert status == 200 and told.startswith("application/json"), (path, status, told, data[:300])
    reply = json.loads(data)
    holds(reply, of, path)
    return reply


def events(path, body, kind, named):
    """Validates each event of a stream. `named` tells whether events have to say their type in `event:` too."""
    status, told, data = send("POST", path, body | {"stream": True})
    assert status == 200 and told.startswith("text/event-stream"), (path, status, told, data[:300])
    seen = []
    for block in data.decode().strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
        if not fields or fields["data"] == "[DONE]":
            continue
        event = json.loads(fields["data"])
        assert not named or fields["event"] == event["type"], fields
        # Anthropic's own library reads pings and has no type for them.
        if event.get("type") != "ping":
            holds(event, kind, f"{path} streamed, event {len(seen)}")
        seen.append(event)
    return seen


def error(path, body, kind, status):
    got, _, data = send("POST", path, body)
    reply = json.loads(data)
    assert got == status, (path, got, reply)
    if kind is shared.ErrorResponse:
        holds(reply, kind, f"{path} error")
    else:
        holds(reply["error"], kind, f"{path} error")


CHECKS = []


def check(run):
    CHECKS.append(run)
    return run


def chat_bodies():
    turns = [{"role": "user", "content": "hello"}]
    tool = lambda own: {"type": "function", "function": {"name": own, "parameters": CITY}}
    yield "plain", {"messages": turns}
    yield "parallel-tools", {"messages": turns, "tools": [tool(own) for own in NAMES]}
    yield "plain", {"messages": turns, "max_tokens": 3}
    schema = {"type": "json_schema", "json_schema": {"name": "city", "schema": CITY, "strict": True}}
    yield "plain", {"messages": turns, "response_format": schema}


@check
def chat_completions():
    for own, body in chat_bodies():
        body = {"model": f"{provider}/{own}"} | body
        whole("/v1/chat/completions", body, chat.ChatCompletion)
        for options in ({}, {"stream_options": {"include_usage": True}}):
            seen = events("/v1/chat/completions", body | options, chat.ChatCompletionChunk, False)
            assert (seen[-1]["choices"] == []) == bool(options), seen[-1]
    for own, status in (("fault-429", 429), ("fault-500", 502)):
        error("/v1/chat/completions", body | {"model": f"{provider}/{own}"}, oa.ErrorObject, status)


@check
def messages():
    turns = [{"role": "user", "content": "hello"}]
    for own, more in (
        ("plain", {}),
        ("plain", {"max_tokens": 3}),
        ("parallel-tools", {"tools": [{"name": own, "input_schema": CITY} for own in NAMES]}),
    ):
        body = {"model": f"{provider}/{own}", "max_tokens": 100, "messages": turns} | more
        whole("/v1/messages", body, an.Message)
        seen = events("/v1/messages", body, an.RawMessageStreamEvent, True)
        assert seen[0]["type"] == "message_start" and seen[-1]["type"] == "message_stop"
    for own, status in (("fault-429", 429), ("fault-500", 502)):
        error("/v1/messages", body | {"model": f"{provider}/{own}"}, shared.ErrorResponse, status)


@check
def count_tokens():
    body = {"model": f"{provider}/plain", "messages": [{"role": "user", "content": "hello"}]}
    whole("/v1/messages/count_tokens", body, an.MessageTokensCount)


@check
def responses_():
    flat = [{"type": "function", "name": own, "parameters": CITY, "strict": True} for own in NAMES]
    for own, more in (("plain", {}), ("plain", {"max_output_tokens": 3}), ("parallel-tools", {"tools": flat})):
        body = {"model": f"{provider}/{own}", "input": "hello"} | more
        reply = whole("/v1/responses", body, responses.Response)
        seen = events("/v1/responses", body, responses.ResponseStreamEvent, True)
        assert [event["sequence_number"] for event in seen] == list(range(len(seen))), "numbers have gaps"
        last = seen[-1]["response"]
        assert last["status"] == reply["status"] and len(last["output"]) == len(reply["output"]), (last, reply)
        done = [event["item"] for event in seen if event["type"] == "response.output_item.done"]
        assert done == last["output"], "the last event repeats what was streamed"
    error("/v1/responses", body | {"model": f"{provider}/fault-429"}, oa.ErrorObject, 429)


@check
def embeddings():
    # In base64, which the libraries ask for, they replace the text before they hold it against the type.
    body = {"model": f"{provider}/plain", "input": ["a", "b"], "encoding_format": "float"}
    assert len(whole("/v1/embeddings", body, oa.CreateEmbeddingResponse)["data"]) == 2


@check
def images():
    body = {"model": f"{provider}/plain", "prompt": "a cat"}
    whole("/v1/images/generations", body, oa.ImagesResponse)


@check
def audio_():
    mark = "xx"
    part = lambda head, text: f'--{mark}\r\nContent-Disposition: form-data; {head}\r\n\r\n{text}\r\n'
    form = part('name="file"; filename="a.wav"', "RIFF") + part('name="model"', f"{provider}/plain") + f"--{mark}--\r\n"
    whole("/v1/audio/transcriptions", form.encode(), audio.Transcription, kind=f"multipart/form-data; boundary={mark}")


@check
def models():
    for headers, kind in (({}, oa.Model), ({"anthropic_version": "2023-06-01"}, an.ModelInfo)):
        status, _, data = send("GET", "/v1/models", **headers)
        listed = json.loads(data)
        assert status == 200 and listed["data"], listed
        for one in listed["data"]:
            holds(one, kind, "/v1/models")


for place in range(1, len(sys.argv), 4):
    base, key, provider, left_out = sys.argv[place : place + 4]
    for run in CHECKS:
        if run.__name__.strip("_") in left_out.split(","):
            continue
        try:
            run()
        except Exception as fault:  # each is told by its name
            print(f"failed {run.__name__} {place}: {type(fault).__name__}: {fault}")
        else:
            print(f"ok {run.__name__} {place}")
