"""Drives Anthropic's own Python library, unchanged, against a base URL: one line for each thing that holds.

Usage: anthropic_sdk.py BASE_URL KEY
"""

import json
import sys

import anthropic

SENTENCE = "This is a MOCK response for load testing."
ASK = {"model": "smart", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]}
TOOL = {"name": "weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

base, key = sys.argv[1:3]
client = anthropic.Anthropic(base_url=base, api_key=key)
CHECKS = []


def check(run):
    CHECKS.append(run)
    return run


@check
def whole():
    reply = client.messages.create(**ASK)
    assert reply.content[0].text == SENTENCE and reply.stop_reason == "end_turn"
    assert reply.usage.output_tokens == 8 and reply._request_id


@check
def auth_token():
    own = anthropic.Anthropic(base_url=base, auth_token=key, api_key=None)
    assert own.messages.create(**ASK).content[0].text == SENTENCE


@check
def stream():
    with client.messages.stream(**ASK) as events:
        text = "".join(events.text_stream)
        final = events.get_final_message()
    assert text == SENTENCE and final.usage.output_tokens == 8 and final.usage.input_tokens > 0


@check
def plain_stream():
    kinds = [event.type for event in client.messages.create(**ASK, stream=True)]
    assert kinds[0] == "message_start" and kinds[-1] == "message_stop"


@check
def cut_short():
    reply = client.messages.create(**{**ASK, "max_tokens": 3})
    assert reply.stop_reason == "max_tokens" and reply.content[0].text == "This is a"


@check
def tools():
    reply = client.messages.create(**ASK, tools=[TOOL])
    call = reply.content[0]
    assert call.type == "tool_use" and call.input == {"city": "mock"}
    turns = ASK["messages"] + [
        {"role": "assistant", "content": reply.content},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}]},
    ]
    reply = client.messages.create(**{**ASK, "messages": turns}, tools=[TOOL])
    assert reply.content[0].text == "The tool said: sunny"
    with client.messages.stream(**ASK, tools=[TOOL]) as events:
        assert events.get_final_message().content[0].input == {"city": "mock"}


@check
def parallel_tools():
    second = {**TOOL, "name": "time"}
    reply = client.messages.create(**{**ASK, "model": "local/parallel-tools"}, tools=[TOOL, second])
    assert [block.name for block in reply.content] == ["weather", "time"]


@check
def structured_output():
    schema = {**TOOL["input_schema"], "required": ["city"], "additionalProperties": False}
    reply = client.messages.create(**ASK, output_config={"format": {"type": "json_schema", "schema": schema}})
    assert json.loads(reply.content[0].text) == {"city": "mock"}


@check
def images():
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    turns = [{"role": "user", "content": [{"type": "image", "source": source}]}]
    assert client.messages.create(**{**ASK, "messages": turns}).content[0].text == SENTENCE


@check
def count_tokens():
    counted = client.messages.count_tokens(model="smart", messages=ASK["messages"])
    assert counted.input_tokens > 0


@check
def unknown_model():
    try:
        client.messages.create(**{**ASK, "model": "nope"})
    except anthropic.NotFoundError as error:
        assert error.body["error"]["type"] == "not_found_error" and error.request_id
    else:
        raise AssertionError("there is no such model")


@check
def wrong_key():
    try:
        anthropic.Anthropic(base_url=base, api_key="wrong").messages.create(**ASK)
    except anthropic.AuthenticationError as error:
        assert error.body["error"]["type"] == "authentication_error"
    else:
        raise AssertionError("a wrong key was taken")


@check
def provider_errors():
    for model, kind, code in [
        ("local/fault-429", anthropic.RateLimitError, "provider_rate_limited"),
        ("local/fault-500", anthropic.InternalServerError, "provider_error"),
    ]:
        for streams in (False, True):
            try:
                client.messages.create(**{**ASK, "model": model}, stream=streams)
            except kind as error:
                assert error.body["error"]["details"]["error_code"] in (code, "provider_error")
                assert error.request.headers["x-stainless-retry-count"] == "0", "what was repeated here is not repeated"
            else:
                raise AssertionError(model)


@check
def cut_stream():
    try:
        with client.messages.stream(**{**ASK, "model": "local/fault-cut"}) as events:
            for _ in events:
                pass
    except anthropic.APIStatusError as error:
        assert "ended before its end" in str(error)
    else:
        raise AssertionError("a cut stream looked whole")


@check
def cancel():
    events = client.messages.create(**{**ASK, "model": "slow/echo-nothing"}, stream=True)
    next(iter(events))
    events.close()


@check
def models():
    names = [model.id for model in client.models.list()]
    assert "smart" in names and "local/plain" in names


for run in CHECKS:
    try:
        run()
    except Exception as error:  # each is told by its name
        print(f"failed {run.__name__}: {type(error).__name__}: {error}")
    else:
        print(f"ok {run.__name__}")
