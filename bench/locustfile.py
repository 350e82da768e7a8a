"""Users of an AI gateway for Locust, the same as `durward lab users` has.

    locust -f bench/locustfile.py --headless -u 20 -r 5 --run-time 20s --host http://127.0.0.1:8765
    locust -f bench/locustfile.py --headless -u 10 -r 2 --run-time 15s --host ... --tags agent_reasoning

Every reply is checked word by word: a wrong, cut or refused one is a failure, whatever its status. The names of
requests end in `net` where the tokens of the scripted model are taken off (TOKEN_MS, 10 ms each).

Environment: GATEWAY_KEY is the key that all show; without it every user registers first. TOKEN_MS: the time that the
model takes for a token.
"""

import json
import os
import time
import uuid

from locust import HttpUser, between, constant, events, tag, task
from locust.exception import StopUser

SENTENCE = "This is a MOCK response for load testing."
OBSERVATION = "three results were found"
TOKEN_MS = float(os.environ.get("TOKEN_MS", "10"))
KEY = os.environ.get("GATEWAY_KEY")
TOOL = {
    "type": "function",
    "function": {
        "name": "smart_search",
        "description": "Search for a text.",
        "parameters": {
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
        },
    },
}


@events.init.add_listener
def leave_out_idle(environment, **_):
    """With --tags, leaves out users that have no task with such a tag: Locust would start them, and each would raise an error."""
    tags = set(getattr(environment.parsed_options, "tags", None) or [])
    if not tags:
        return

    def has_task(user):
        return any(tags & getattr(task, "locust_tag_set", set()) for task in user.tasks)

    environment.user_classes = [user for user in environment.user_classes if has_task(user)]


class Wrong(Exception):
    """A reply that is not what it has to be."""


def read(lines):
    """Joins a streamed reply; raises Wrong where it is not whole."""
    content, calls, finish, tokens, over = "", [], None, 0, False
    for line in lines:
        if not line or line.startswith(b":"):
            continue
        if over:
            raise Wrong("something stands behind [DONE]")
        if not line.startswith(b"data: "):
            raise Wrong(f"a line of the stream is no data: {line[:80]!r}")
        data = line[6:]
        if data == b"[DONE]":
            over = True
            continue
        chunk = json.loads(data)
        if "error" in chunk:
            raise Wrong(f"the stream ends with an error: {chunk['error']}")
        for choice in chunk.get("choices", []):
            if choice.get("finish_reason"):
                if finish:
                    raise Wrong("the stream has two finish reasons")
                finish = choice["finish_reason"]
            delta = choice["delta"]
            if delta.get("content"):
                content += delta["content"]
                tokens += 1
            for call in delta.get("tool_calls") or []:
                function = call.get("function", {})
                if function.get("name"):
                    calls.append({"id": call["id"], "name": function["name"], "arguments": ""})
                    tokens += 1
                calls[-1]["arguments"] += function.get("arguments") or ""
    if not over:
        raise Wrong("the stream has no [DONE]")
    if not finish:
        raise Wrong("the stream has no finish_reason")
    return content, calls, finish, tokens


class Gateway(HttpUser):
    """What all users do: register, ask, check."""

    abstract = True
    model = ""
    message = ""

    def on_start(self):
        self.key = KEY
        if self.key is None:
            self.register()

    def register(self):
        body = {"username": f"locust-{uuid.uuid4().hex[:16]}"}
        with self.client.post("/v1/auth/register", json=body, catch_response=True) as answer:
            if answer.status_code != 200 or not answer.json().get("token"):
                answer.failure(f"HTTP {answer.status_code}")
                raise StopUser
            self.key = answer.json()["token"]

    def ask(self, name, messages, tools=None):
        """Asks, and gives what `read` gives; None where the reply was wrong, which is then a failure."""
        body = {"model": self.model, "messages": messages, "stream": True}
        if tools:
            body["tools"] = tools
        headers = {"authorization": f"Bearer {self.key}"} if self.key else {}
        began = time.perf_counter()
        with self.client.post(
            "/v1/chat/completions", json=body, headers=headers, stream=True, catch_response=True, name=name
        ) as answer:
            if answer.status_code != 200:
                answer.failure(f"HTTP {answer.status_code}")
                return None
            try:
                said = read(answer.iter_lines())
            except (Wrong, ValueError, KeyError, IndexError) as wrong:
                answer.failure(str(wrong))
                return None
            took_ms = (time.perf_counter() - began) * 1000
            answer.request_meta["response_time"] = took_ms
            wrong = self.check(said)
            if wrong:
                answer.failure(wrong)
                return None
        events.request.fire(
            request_type="NET",
            name=f"{name} net",
            response_time=took_ms - said[3] * TOKEN_MS,
            response_length=0,
            exception=None,
            context={},
        )
        return said

    def check(self, said):
        """What is wrong with a reply; None where nothing is."""
        content, _, finish, _ = said
        if content != SENTENCE:
            return f"the reply says {content[:80]!r}"
        return None if finish == "stop" else f"the reply ends with {finish!r}"

    def turns(self):
        return [{"role": "user", "content": self.message}]


class StressUser(Gateway):
    wait_time = constant(0.5)
    model = "mock_agent"
    message = "Stress test payload " * 5

    @tag("stress")
    @task
    def stress(self):
        self.ask("StressUser", self.turns())


class SwitchoverUser(Gateway):
    wait_time = between(1, 3)
    model = "coding_agent"
    message = "Simple rotation test."

    @tag("rotation")
    @task
    def rotate(self):
        self.ask("SwitchoverUser", self.turns())


class ReActUser(Gateway):
    """Not an agent yet: the user itself runs the tool that the model asks for."""

    wait_time = between(2, 5)
    model = "standard_agent"
    message = "Analyze this complexity."

    def check(self, said):
        content, calls, finish, _ = said
        if self.asked is None:
            if len(calls) != 1 or calls[0]["name"] != "smart_search" or finish != "tool_calls":
                return f"the reply asks for {calls!r}"
            return None if "query" in json.loads(calls[0]["arguments"]) else "the tool has no query"
        if content != f"The tool said: {OBSERVATION}" or finish != "stop":
            return f"the reply says {content[:80]!r}"
        return None

    @tag("agent_reasoning")
    @task
    def react(self):
        turns = self.turns()
        self.asked = None
        said = self.ask("ReActUser asks", turns, [TOOL])
        if said is None:
            return
        self.asked = said[1][0]
        call = {"id": self.asked["id"], "type": "function"}
        call["function"] = {"name": self.asked["name"], "arguments": self.asked["arguments"]}
        turns.append({"role": "assistant", "content": None, "tool_calls": [call]})
        turns.append({"role": "tool", "tool_call_id": call["id"], "content": OBSERVATION})
        self.ask("ReActUser answers", turns, [TOOL])


class AuthenticatedUser(StressUser):
    """Registers, and then does what StressUser does. One user: the others register as well where there is no key."""

    fixed_count = 1
    abstract = KEY is not None

    @tag("auth")
    @task
    def stress(self):
        self.ask("AuthenticatedUser", self.turns())
