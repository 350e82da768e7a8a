#!/usr/bin/env python3
"""What a gateway of models adds to a call: Durward beside vllm-router, LiteLLM and Portkey, before one provider, in one run.

    scripts/bench_gateways.py --durward FILE [--out FILE.md] [--quick]

The provider is nginx with one fixed reply, so that it costs next to nothing; `durward lab load http` is the client. All arms take turns in every
round, and one call of each is checked by its content. scripts/setup-peers installs the peers; one that is missing, or that fails, is named
with its reason. Needs nginx (scripts/setup-tests).
"""

import argparse
import asyncio
import http.client
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import bench_clients  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEERS = ROOT / ".cache/peers"
LITELLM = ROOT / ".cache/litellm-venv/bin"
CONNECTIONS = 64
TOKENS = 200
RULES = 50
KEY = "sk-bench"
REPLY = "a reply of the fixed provider"
# What the design promises: microseconds, requests a second, MiB.
P50_US, P99_US, GOVERNED_P99_US, PER_SECOND, GOVERNED_SHARE, TTFT_P99_US, TOKEN_US, IDLE_MIB, REGISTER_MS = 60, 100, 150, 30_000, 0.8, 250, 5, 15, 1
WAIT_S = 60


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Missing(Exception):
    """Why an arm cannot be measured."""


class Process:
    """A program that listens, with its log; it is stopped by the id of its own group."""

    def __init__(self, place, name, words, port, environment=None):
        self.port, self.place, self.log = port, place, place / f"{name}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                words, cwd=place, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **(environment or {})}, start_new_session=True
            )
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.05)
        self.stop()
        raise Missing(f"it did not start: {self.log.read_text(errors='replace').strip()[-300:]}")

    def stop(self):
        try:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(10)
        except ProcessLookupError:
            pass
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)

    def resident_mib(self):
        """Resident memory of the process and of all below it, in MiB."""
        parents, resident = {}, {}
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            try:
                told = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
            except OSError:
                continue
            parents[int(told["Pid"])] = int(told["PPid"])
            resident[int(told["Pid"])] = int(told.get("VmRSS", "0 kB").split()[0])
        below = {self.process.pid}
        while more := {pid for pid, parent in parents.items() if parent in below} - below:
            below |= more
        return sum(resident.get(pid, 0) for pid in below) / 1024


def chunk(delta, finish=None):
    told = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return f"data: {json.dumps(told)}\n\n"


def provider(place):
    """nginx with a whole reply on one port and a stream on another."""
    program = shutil.which("nginx", path=f"/usr/sbin:{ROOT / '.cache/nginx/usr/sbin'}")
    if not program:
        raise SystemExit("error: there is no nginx; run scripts/setup-tests")
    message = {"index": 0, "message": {"role": "assistant", "content": REPLY}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 9, "completion_tokens": TOKENS, "total_tokens": 9 + TOKENS}
    whole = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [message], "usage": usage}
    words = [chunk({"content": f"t{number} "}) for number in range(TOKENS)]
    last = f"data: {json.dumps({'id': 'chatcmpl-1', 'object': 'chat.completion.chunk', 'created': 1, 'model': 'm', 'choices': [], 'usage': usage})}\n\n"
    stream = "".join([chunk({"role": "assistant", "content": ""}), *words, chunk({}, "stop"), last, "data: [DONE]\n\n"])
    (place / "whole").write_text(json.dumps(whole))
    (place / "stream").write_text(stream)
    ports = free_port(), free_port()
    models = json.dumps({"object": "list", "data": [{"id": "m", "object": "model"}]})

    def server(port, file, media):
        # A file answers GET alone: a page of an error is got, whatever was asked.
        return f"""server {{ listen 127.0.0.1:{port}; keepalive_requests 1000000000; keepalive_timeout 3600; client_max_body_size 16m;
          location = /v1/chat/completions {{ error_page 405 =200 /reply; return 405; }}
          location = /reply {{ internal; alias {place / file}; types {{ }} default_type {media}; }}
          location = /v1/models {{ default_type application/json; return 200 '{models}'; }}
          location / {{ return 200 'ok'; }} }}"""

    (place / "nginx.conf").write_text(
        f"worker_processes 1; daemon off; pid {place}/nginx.pid; error_log {place}/nginx.err; events {{ worker_connections 4096; }}\n"
        f"http {{ access_log off; open_file_cache max=10; client_body_temp_path {place}/body; proxy_temp_path {place}/proxy; fastcgi_temp_path {place}/fcgi; uwsgi_temp_path {place}/uwsgi; scgi_temp_path {place}/scgi;\n"
        f"{server(ports[0], 'whole', 'application/json')}\n{server(ports[1], 'stream', 'text/event-stream')} }}\n"
    )
    # As root its workers are somebody else, who has to reach the files.
    place.chmod(0o755)
    return Process(place, "nginx", [program, "-p", str(place), "-c", str(place / "nginx.conf"), "-e", str(place / "nginx.err")], ports[0]), ports


class Arm:
    """Where a call goes: the ports and model names for a whole reply and for a stream, and headers."""

    def __init__(self, name, processes, ports, models=("m", "m"), headers=None):
        self.name, self.processes, self.ports, self.models = name, processes, ports, models
        self.headers = headers if isinstance(headers, list) else [headers or {}, headers or {}]

    def body(self, streams):
        told = {"model": self.models[streams], "messages": [{"role": "user", "content": "hello"}], "max_tokens": TOKENS}
        return json.dumps({**told, "stream": True} if streams else told)

    def checked(self):
        """One call of each kind, held against what the provider says."""
        for streams in (False, True):
            connection = http.client.HTTPConnection("127.0.0.1", self.ports[streams], timeout=WAIT_S)
            connection.request("POST", "/v1/chat/completions", self.body(streams), {"Content-Type": "application/json", **self.headers[streams]})
            answer = connection.getresponse()
            told = answer.read().decode()
            connection.close()
            if answer.status != 200:
                raise Missing(f"{answer.status} {told[:200]}")
            if streams:
                events = [json.loads(line[6:]) for line in told.splitlines() if line.startswith("data: {")]
                said = "".join(choice["delta"].get("content") or "" for event in events for choice in event["choices"])
                wanted = "".join(f"t{number} " for number in range(TOKENS))
            else:
                said, wanted = json.loads(told)["choices"][0]["message"]["content"], REPLY
            if said != wanted:
                raise Missing(f"its reply is another one: {said[:100]!r}")

    def load(self, durward, streams, workers, duration):
        words = [durward, "lab", "load", "http", "--target", f"http://127.0.0.1:{self.ports[streams]}/v1/chat/completions", "--body", self.body(streams)]
        for name, value in {"Content-Type": "application/json", **self.headers[streams]}.items():
            words += ["--header", f"{name}: {value}"]
        words += ["--answers", "any", "--workers", str(workers), "--duration", duration, "--json"]
        told = subprocess.run(words, capture_output=True, text=True, check=False)
        try:
            phase = json.loads(told.stdout)["phases"][-1]
        except (ValueError, LookupError):
            raise Missing(f"no figures: {(told.stderr or told.stdout).strip()[-200:]}") from None
        if phase["failures"] or not phase["ok"]:
            raise Missing(f"calls failed: {phase['failures']}")
        return phase

    def stop(self):
        for process in self.processes:
            process.stop()


def durward_arm(durward, place, ports, governed):
    """Durward, with its journal: behind one rule, or behind 50 rules, a key and three nested budgets."""
    name = "governed" if governed else "plain"
    folder = place / name
    folder.mkdir()
    providers = {key: {"kind": "openai", "base_url": f"http://127.0.0.1:{port}/v1", "api_key": "x", "models": [model]} for key, port, model in zip("ps", ports, ("m", "s"))}
    models = {"providers": providers}
    if governed:
        most = {"tokens": 10**15, "window": "24h"}
        models["budgets"] = {"own": {**most, "per": "caller"}, "team": {**most, "per": "group", "groups": ["dev"]}, "whole": {**most, "per": "all"}}
    (folder / "durward.yaml").write_text(json.dumps({"models": models, "policy": "policy.json"}) + "\n")
    rules = [{"id": f"no-{number}", "effect": "deny", "conditions": {"resource_type": "model", "model": f"forbidden-{number}"}} for number in range(RULES - 1 if governed else 0)]
    rules.append({"id": "models", "effect": "allow", "conditions": {"resource_type": "model"}})
    (folder / "policy.json").write_text(json.dumps({"version": "1", "default_action": "deny", "rules": rules}))
    common = [str(durward), "--config", "durward.yaml", "--state-dir", "state"]
    headers = {}
    environment = {"XDG_RUNTIME_DIR": str(folder / "runtime")}
    if governed:
        made = subprocess.run([*common, "keys", "create", "bench", "--group", "dev"], cwd=folder, capture_output=True, text=True, env={**os.environ, **environment}, check=False)
        key = next((word for word in made.stdout.split() if len(word) > 20), None)
        if not key:
            raise SystemExit(f"error: no key was made: {made.stdout}{made.stderr}")
        headers = {"Authorization": f"Bearer {key}"}
    port = free_port()
    limits = ["--limit-requests", "1000000/s", "--limit-burst", "1000000", "--limit-concurrency", "1000", "--limit-tool-calls", "1000000"]
    process = Process(folder, name, [*common, "serve", "--listen", f"127.0.0.1:{port}", *limits], port, environment)
    return Arm(f"Durward, {name}", [process], (port, port), ("p/m", "s/s"), headers)


def installed(path):
    if not path.exists():
        raise Missing("not installed; run scripts/setup-peers and scripts/setup-tests")
    return str(path)


def litellm_arm(place, ports):
    program = installed(LITELLM / "litellm")
    listed = [{"model_name": model, "litellm_params": {"model": "openai/m", "api_base": f"http://127.0.0.1:{port}/v1", "api_key": "x"}} for model, port in zip("ms", ports)]
    (place / "litellm.yaml").write_text(json.dumps({"model_list": listed, "general_settings": {"master_key": KEY}}))
    port = free_port()
    environment = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR", "PATH": f"{LITELLM}:{os.environ['PATH']}"}
    process = Process(place, "litellm", [program, "--config", "litellm.yaml", "--host", "127.0.0.1", "--port", str(port)], port, environment)
    return Arm("LiteLLM", [process], (port, port), ("m", "s"), {"Authorization": f"Bearer {KEY}"})


def router_arm(place, ports):
    program = installed(PEERS / "vllm-router/bin/vllm-router")
    processes, own = [], []
    try:
        for number, upstream in enumerate(ports):
            port, metrics = free_port(), free_port()
            words = [program, "--host", "127.0.0.1", "--port", str(port), "--prometheus-port", str(metrics), "--worker-urls", f"http://127.0.0.1:{upstream}", "--policy", "round_robin"]
            processes.append(Process(place, f"vllm-router-{number}", words, port))
            own.append(port)
    except Missing:
        for process in processes:
            process.stop()
        raise
    return Arm("vllm-router", processes, tuple(own))


def portkey_arm(place, ports):
    script = installed(PEERS / "portkey/node_modules/@portkey-ai/gateway/build/start-server.js")
    port = free_port()
    process = Process(place, "portkey", ["node", script, f"--port={port}", "--headless"], port, {"NODE_ENV": "production"})
    headers = [{"Authorization": "Bearer x", "x-portkey-provider": "openai", "x-portkey-custom-host": f"http://127.0.0.1:{upstream}/v1"} for upstream in ports]
    return Arm("Portkey", [process], (port, port), headers=headers)


def arms(durward, place, ports, absent):
    """All that can be measured; the others are noted with their reason."""
    found = [Arm("direct", [], ports)]
    made = {
        "Durward, plain": lambda: durward_arm(durward, place, ports, False),
        "Durward, governed": lambda: durward_arm(durward, place, ports, True),
        "vllm-router": lambda: router_arm(place, ports),
        "LiteLLM": lambda: litellm_arm(place, ports),
        "Portkey": lambda: portkey_arm(place, ports),
    }
    for name, make in made.items():
        arm = None
        try:
            arm = make()
            arm.checked()
            found.append(arm)
        except (Missing, OSError, ValueError, LookupError) as error:
            if arm:
                arm.stop()
            if name.startswith("Durward"):
                raise SystemExit(f"error: {name}: {error}") from None
            absent.append((name, str(error)))
    return found


def middle(interval):
    """The figure of an interval; none where too few calls were made for it."""
    return None if interval is None else interval["point"]


class Registration:
    """How long a registration takes, beside what it can never be less than: one write and one sync of the same disk, taken in turns with it."""

    # A gateway takes 60 in a minute, whoever asks.
    COUNT = 50
    BYTES = 400

    def __init__(self, durward, place):
        folder = place / "accounts"
        folder.mkdir()
        models = {"providers": {"local": {"kind": "mock", "models": ["m"]}}, "accounts": {"register": "open"}}
        (folder / "durward.yaml").write_text(json.dumps({"models": models}) + "\n")
        port = free_port()
        words = [str(durward), "--config", "durward.yaml", "--state-dir", "state", "serve", "--listen", f"127.0.0.1:{port}"]
        process = Process(folder, "accounts", words, port, {"XDG_RUNTIME_DIR": str(folder / "runtime")})
        disk = os.open(folder / "floor", os.O_RDWR | os.O_CREAT, 0o600)
        # What is written over is what is measured, and no file that grows.
        os.write(disk, bytes(self.COUNT * self.BYTES))
        os.fsync(disk)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
        register, refuse, floor = [], [], []
        try:
            for number in range(self.COUNT):
                register.append(self.took(lambda number=number: self.ask(connection, number, 200)))
                refuse.append(self.took(lambda: self.ask(connection, "a b", 400)) if number < 5 else None)
                floor.append(self.took(lambda number=number: self.sync(disk, number)))
        finally:
            connection.close()
            os.close(disk)
            process.stop()
        self.register, self.floor = statistics.median(register), statistics.median(floor)
        self.refuse = statistics.median(one for one in refuse if one is not None)

    @staticmethod
    def took(act):
        """Milliseconds."""
        began = time.perf_counter()
        act()
        return (time.perf_counter() - began) * 1_000

    def sync(self, disk, number):
        os.pwrite(disk, b"x" * self.BYTES, number * self.BYTES)
        os.fdatasync(disk)

    @staticmethod
    def ask(connection, name, wanted):
        connection.request("POST", "/v1/auth/register", json.dumps({"username": f"bench-{name}"}), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        told = answer.read()
        if answer.status != wanted:
            raise Missing(f"{answer.status} {told[:200]}")

    def row(self):
        held = "PASS" if self.register <= REGISTER_MS else "SHORT"
        return (
            f"| register p50, ms (one bare write and sync of that disk: {self.floor:.2f}; a request that is refused, by the same client: {self.refuse:.2f})"
            f" | {self.register:.2f} | ≤ {REGISTER_MS} | {held} |"
        )


class Paced:
    """Many streams at once through Durward, each from a scripted provider that waits before every token: is there a frame that does not come?"""

    STREAMS, SAID, TOKEN_MS = 1_000, "0123456789abcdef" * 4, 20

    def __init__(self, durward, place, quick):
        self.streams = 50 if quick else self.STREAMS
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65_536)), hard))
        behind, front = free_port(), free_port()
        scripted = {"local": {"kind": "mock", "latency": f"{self.TOKEN_MS}ms"}}
        before = {"far": {"kind": "openai", "base_url": f"http://127.0.0.1:{behind}/v1", "api_key": "x"}}
        processes = []
        try:
            for name, port, providers in (("behind", behind, scripted), ("front", front, before)):
                processes.append(self.serve(durward, place / f"paced-{name}", port, providers))
            self.whole = asyncio.run(self.all(front))
        finally:
            for process in processes:
                process.stop()

    def serve(self, durward, folder, port, providers):
        folder.mkdir()
        (folder / "durward.yaml").write_text(json.dumps({"models": {"providers": providers}, "policy": "policy.json"}) + "\n")
        rule = {"id": "models", "effect": "allow", "conditions": {"resource_type": "model"}}
        (folder / "policy.json").write_text(json.dumps({"version": "1", "default_action": "deny", "rules": [rule]}))
        words = [str(durward), "--config", "durward.yaml", "--state-dir", "state", "serve", "--listen", f"127.0.0.1:{port}"]
        limits = ["--limit-requests", "1000000/s", "--limit-burst", "1000000", "--limit-concurrency", "1024", "--limit-tool-calls", "1000000"]
        return Process(folder, "durward", [*words, *limits], port, {"XDG_RUNTIME_DIR": str(folder / "runtime")})

    async def all(self, port):
        """How many streams came whole."""
        told = await asyncio.gather(*[self.one(port) for _ in range(self.streams)], return_exceptions=True)
        for fault in {str(one) for one in told if one is not None}:
            print(f"a stream that is not whole: {fault}", file=sys.stderr)
        return sum(one is None for one in told)

    async def one(self, port):
        body = json.dumps({"model": "far/local/spell", "messages": [{"role": "user", "content": self.SAID}], "stream": True})
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        try:
            writer.write((head + body).encode())
            told = (await asyncio.wait_for(reader.read(-1), 4 * WAIT_S)).decode()
        finally:
            writer.close()
        events = [line[6:] for line in told.splitlines() if line.startswith("data: ")]
        choices = [choice for event in events if event != "[DONE]" for choice in json.loads(event).get("choices", [])]
        deltas = [choice["delta"].get("content") for choice in choices]
        if [delta for delta in deltas if delta] != list(self.SAID):
            raise Missing(f"{told.splitlines()[:1]} {''.join(filter(None, deltas))!r}")
        if not events or events[-1] != "[DONE]":
            raise Missing("the end mark is missing")

    def row(self):
        held = "PASS" if self.whole == self.streams == self.STREAMS else "SHORT"
        return f"| streams at once, each of {len(self.SAID)} tokens at {self.TOKEN_MS} ms, that came without a lost frame | {self.whole:,} | {self.STREAMS:,} | {held} |"


class Figures:
    """What an arm took, round by round."""

    def __init__(self, idle):
        self.idle, self.rounds, self.per_second = idle, [], []

    def added(self, direct, which):
        """The median over the rounds of what is added to the direct call of the same round."""
        pairs = [(own[which], base[which]) for own, base in zip(self.rounds, direct.rounds)]
        apart = [own - base for own, base in pairs if own is not None and base is not None]
        return statistics.median(apart) if apart else None

    def rate(self):
        return statistics.median(self.per_second) if self.per_second else None


def measure(durward, found, quick, absent):
    time.sleep(1)
    figures = {arm.name: Figures(arm.processes[0].resident_mib() if arm.processes else None) for arm in found}
    duration, rounds = ("300ms", 1) if quick else ("3s", 5)
    for _ in range(rounds):
        for arm in list(found):
            try:
                whole = arm.load(durward, False, 1, duration)
                stream = arm.load(durward, True, 1, duration)
                many = arm.load(durward, False, CONNECTIONS, duration)
            except Missing as error:
                found.remove(arm)
                absent.append((arm.name, str(error)))
                continue
            service, ttft, total = whole["service"], stream["ttft"] or {}, stream["service"]
            figures[arm.name].rounds.append({
                "p50": middle(service["p50_us"]), "p99": middle(service["p99_us"]), "ttft": middle(ttft.get("p50_us")),
                "ttft99": middle(ttft.get("p99_us")), "stream": middle(total["p50_us"]),
            })
            figures[arm.name].per_second.append(many["rps"])
    return {arm.name: figures[arm.name] for arm in found}


def stages(durward, arm):
    """Where the time of a call goes: the mean of what the journal of an arm says of each stage, in microseconds, over one connection."""
    arm.load(durward, False, 1, "2s")
    folder = arm.processes[0].place
    words = [durward, "--config", "durward.yaml", "audit", "--state-dir", "state", "show", "--json", "--limit", "4000"]
    told = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True).stdout
    records = [json.loads(line) for line in told.splitlines()]
    calls = [record for record in records if record["kind"] == "operation"]
    if not calls:
        raise SystemExit(f"error: the journal of {arm.name} has no calls")
    names = ("edge", "identity", "limits", "policy", "journal", "upstream", "unexplained")
    return {name: statistics.fmean(call[f"{name}_us"] for call in calls) for name in names}


def cell(value, digits=1):
    return "–" if value is None else f"{value:,.{digits}f}"


def rows(figures):
    direct, told = figures["direct"], []
    for name, one in figures.items():
        stream = None if name == "direct" else one.added(direct, "stream")
        added = [None if name == "direct" else one.added(direct, which) for which in ("p50", "p99", "ttft", "ttft99")]
        cells = [*map(cell, added), cell(None if stream is None else stream / TOKENS, 2), cell(one.rate(), 0), cell(one.idle)]
        told.append(f"| {name} | {' | '.join(cells)} |")
    return told


def goals(figures):
    """What was promised, held against what was measured."""
    direct, plain, governed = figures["direct"], figures["Durward, plain"], figures["Durward, governed"]
    peers = [one for name, one in figures.items() if name != "direct" and not name.startswith("Durward")]

    def least(which):
        return min((value for value in (one.added(direct, which) for one in peers) if value is not None), default=None)

    stream = plain.added(direct, "stream")
    wanted = [
        ("added p50, plain, µs", plain.added(direct, "p50"), P50_US, least("p50")),
        ("added p99, plain, µs", plain.added(direct, "p99"), P99_US, least("p99")),
        ("added p99, governed, µs", governed.added(direct, "p99"), GOVERNED_P99_US, least("p99")),
        ("added TTFT p99, plain, µs", plain.added(direct, "ttft99"), TTFT_P99_US, None),
        ("added to a token, plain, µs", None if stream is None else stream / TOKENS, TOKEN_US, None),
        ("idle, MiB", plain.idle, IDLE_MIB, None),
    ]
    told = []
    for what, value, most, peer in wanted:
        goal = f"≤ {most:,}" + ("" if peer is None else f", and below the least of the peers ({cell(peer)})")
        held = value is not None and value <= most and (peer is None or value < peer)
        told.append((what, cell(value), goal, held))
    rate, share = plain.rate(), governed.rate() / plain.rate()
    told.append((f"requests a second, {CONNECTIONS} connections, plain", cell(rate, 0), f"≥ {PER_SECOND:,}", rate >= PER_SECOND))
    told.append(("governed beside plain, requests a second", cell(share, 2), f"≥ {GOVERNED_SHARE}", share >= GOVERNED_SHARE))
    return [f"| {what} | {value} | {goal} | {'PASS' if held else 'SHORT'} |" for what, value, goal, held in told]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--durward", type=pathlib.Path, required=True, help="the program")
    arguments.add_argument("--out", type=pathlib.Path, help="write the section there instead of to standard output")
    arguments.add_argument("--quick", action="store_true", help="one short round: whether it works, and no figure to quote")
    chosen = arguments.parse_args()
    absent, found, nginx = [], [], None
    durward = str(chosen.durward.resolve())
    with bench_clients.temporary() as folder:
        place = pathlib.Path(folder)
        try:
            nginx, ports = provider(place)
            found = arms(durward, place, ports, absent)
            running = list(found)
            registration = Registration(durward, place)
            ours = [arm for arm in found if arm.name.startswith("Durward")]
            profiles = {arm.name: stages(durward, arm) for arm in ours}
            figures = measure(durward, found, chosen.quick, absent)
            paced = Paced(durward, place, chosen.quick)
        finally:
            for arm in running if found else []:
                arm.stop()
            if nginx:
                nginx.stop()
    text = "\n".join([
        "## Models",
        "",
        f"One provider (nginx with a fixed reply; a stream of {TOKENS} chunks that it sends at once), one client (`durward lab load http`), one kept connection except for requests a second; all in turns in one run."
        f" Added: the difference to the direct call of the same round, median of the rounds. Governed: a key, budgets of caller, group and all, {RULES} rules; the journal is on in both."
        + (" **Quick run: no figure to quote.**" if chosen.quick else ""),
        "",
        f"| | added p50, µs | added p99, µs | added TTFT p50, µs | added TTFT p99, µs | added to a token, µs | requests a second, {CONNECTIONS} connections | idle, MiB |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
        *rows(figures),
        "",
        "| what | measured | goal | |",
        "|---|--:|---|---|",
        *goals(figures),
        registration.row(),
        paced.row(),
        "",
        "Where the time of a call goes, µs, by the journals of our two (mean, one connection): the rest of what a call"
        " takes is waking three processes one after the other on these cores, and what the server does before and after its stages.",
        "",
        "| | edge | identity | limits | policy | journal | upstream | unexplained |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
        *[f"| {name} | {' | '.join(cell(value) for value in told.values())} |" for name, told in profiles.items()],
        "",
        *[f"- **Absent**: {name}: {' '.join(why.split())}" for name, why in absent],
        "",
    ])
    if chosen.out:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        chosen.out.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
