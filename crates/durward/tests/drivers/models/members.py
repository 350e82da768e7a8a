"""Makes requests, replies and events of streams with every member that OpenAI's and Anthropic's own Python libraries know, one member at a time.

Usage: members.py SEED

Prints a line of JSON for each: `of` (what it is), `member` (its path, with [] for an element of a list), `value` (what the member
has), `with` (all of it) and `without` (the same without the member; null where the member is required). What stands beside the
member is the least that the types ask for. Texts and numbers are drawn anew for each, so that they can be found again.
"""

import json
import random
import sys

from anthropic.types import Message, RawMessageStreamEvent, message_create_params
from openai.types.chat import ChatCompletion, ChatCompletionChunk, completion_create_params
from openai.types.responses import response_create_params
from pydantic import TypeAdapter

# Deeper members than this belong to what has been refused above them.
DEPTH_MAX = 9
# What else than any text a member has to be.
TEXTS = {
    "arguments": lambda drawn: json.dumps({"k": drawn}),
    "file_data": lambda drawn: f"data:application/pdf;base64,{drawn}",
}
HELLO = {"role": "user", "content": "hello"}
TOOLS = {
    "chat": {"type": "function", "function": {"name": "f"}},
    "messages": {"name": "f", "input_schema": {"type": "object"}},
    "responses": {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False},
}
# Lists that need not have an element.
EMPTY = ("annotations", "citations", "logprobs")
draw = random.Random(int(sys.argv[1]))


def text(name):
    drawn = "".join(draw.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(12))
    return TEXTS.get(name, lambda own: own)(drawn)


class Shape:
    """A type as JSON Schema."""

    def __init__(self, of, mode):
        self.root = TypeAdapter(of).json_schema(mode=mode)

    def branches(self, schema):
        """The schemas that a value may have, without null."""
        if "$ref" in schema:
            return self.branches(self.root["$defs"][schema["$ref"].rsplit("/", 1)[-1]])
        several = schema.get("anyOf") or schema.get("oneOf")
        if several:
            return [own for one in several for own in self.branches(one)]
        return [] if schema.get("type") == "null" else [schema]

    def leaves(self, schema, name):
        if "const" in schema:
            return [schema["const"]]
        if "enum" in schema:
            return schema["enum"]
        match schema.get("type"):
            case "string":
                return [text(name)]
            case "integer":
                return [draw.randrange(10_000, 99_999)]
            case "number":
                return [draw.randrange(1_000, 9_999) / 10_000]
            case "boolean":
                return [True, False]
            case _:
                return [{text(name): text(name)}]

    def least(self, schema, name):
        own = self.branches(schema)[0]
        if "properties" in own:
            return {each: self.least(own["properties"][each], each) for each in own.get("required", [])}
        if own.get("type") == "array":
            if name in EMPTY:
                return []
            return [self.least(own.get("items", {"type": "string"}), name)]
        return self.leaves(own, name)[0]

    def probes(self, schema, name, path, depth=0):
        """The path of each member below, its value, and all of it with and without the member."""
        for own in self.branches(schema):
            if depth > DEPTH_MAX:
                return
            if "properties" in own:
                members, required = own["properties"], own.get("required", [])
                for each, inner in members.items():
                    base = {one: self.least(members[one], one) for one in required}
                    for found, value, held, lacking in self.probes(inner, each, f"{path}.{each}", depth + 1):
                        whole = {**base, each: held}
                        if lacking is not None:
                            yield found, value, whole, {**base, each: lacking}
                        else:
                            yield found, value, whole, None if each in required else base
            elif own.get("type") == "array":
                for found, value, held, lacking in self.probes(own.get("items", {"type": "string"}), name, f"{path}[]", depth + 1):
                    yield found, value, [held], None if lacking is None else [lacking]
            else:
                for value in self.leaves(own, name):
                    yield path, value, value, None


def say(of, member, value, held, lacking):
    print(json.dumps({"of": of, "member": member, "value": value, "with": held, "without": lacking}))


def requests(of, kind, said, usual):
    """`said` is the member that holds the conversation; `usual` is a request."""
    shape = Shape(kind, "validation")
    for name, schema in shape.root["properties"].items():
        if name in ("model", "stream"):
            # The gate writes these itself.
            continue
        # These say something of tools alone.
        beside = {**usual, "tools": [TOOLS[of]]} if name in ("tool_choice", "parallel_tool_calls") else usual
        for found, value, held, lacking in shape.probes(schema, name, name):
            if lacking is None and name not in shape.root.get("required", []):
                without = beside
            else:
                without = None if lacking is None else {**beside, name: lacking}
            whole = {**beside, name: held}
            for own in (whole, without):
                # A dialect goes on with what the assistant said last, so somebody else speaks behind it.
                if name == said and own and isinstance(own[name], list):
                    own[name] = [*own[name], HELLO]
            say(of, found, value, whole, without)


def replies(of, kind, usual):
    shape = Shape(kind, "serialization")
    for found, value, held, lacking in shape.probes(shape.root, "", ""):
        say(of, found.removeprefix("."), value, {**usual, **held}, None if lacking is None else {**usual, **lacking})


requests("chat", completion_create_params.CompletionCreateParamsNonStreaming, "messages", {"model": "m", "messages": [HELLO]})
requests("messages", message_create_params.MessageCreateParamsNonStreaming, "messages", {"model": "m", "max_tokens": 7, "messages": [HELLO]})
requests("responses", response_create_params.ResponseCreateParamsNonStreaming, "input", {"model": "m", "input": "hello"})
replies("chat reply", ChatCompletion, {})
replies("messages reply", Message, {"stop_reason": "end_turn"})
replies("chat event", ChatCompletionChunk, {})
replies("messages event", RawMessageStreamEvent, {})
