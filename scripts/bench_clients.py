"""Clients of built-in servers for measurements: over REST paths, over MCP by HTTP, and over MCP by standard streams.

Each starts, or reaches, a Durward with a journal; each answer is checked, because what failed is no fast answer.
"""

import datetime
import http.client
import json
import os
import pathlib
import socket
import subprocess
import tempfile
import time

WAIT_S = 600
# A connection that was idle for longer is opened anew: the server ends such.
IDLE_S = 60
# How often a client of MCP looks whether its job has begun, in seconds.
LOOK_S = 0.0005
PROTOCOL = "2025-06-18"
# REST paths that are not called as their tool.
TOOLS = {"/get_simulation_results": "get_results"}


def moment(time_told):
    """ISO 8601, or seconds, as seconds since 1970."""
    if isinstance(time_told, (int, float)):
        return time_told
    return datetime.datetime.fromisoformat(time_told).timestamp()


class Place:
    """A folder with a configuration of one server, by default with models to simulate, and rules that let all pass but what is refused."""

    def __init__(self, durward, folder, models=None, server=None, refused=()):
        self.durward, self.place = str(pathlib.Path(durward).resolve()), folder
        models = models or folder / "models"
        models.mkdir(exist_ok=True)
        server = server or {"builtin": "simulation", "models": [str(models)], "results_bytes": "64GiB", "simulations_max": 1000}
        self.name = {"simulation": "pbpk"}.get(server["builtin"], server["builtin"])
        # What is JSON is YAML too.
        (folder / "durward.yaml").write_text(json.dumps({"servers": {self.name: server}}) + "\n")
        rules = [{"id": f"refused-{number}", "effect": "deny", "conditions": one} for number, one in enumerate(refused)]
        rules += [{"id": "all", "effect": "allow", "conditions": {"mcp_method": "*"}}, {"id": "tools", "effect": "allow", "conditions": {"tool_name": "*"}}]
        (folder / "policy.json").write_text(json.dumps({"rules": rules}))

    def start(self, *words, **streams):
        """Starts the program with its state in this folder."""
        limits = ["--limit-requests", "1000000/s", "--limit-burst", "1000000", "--limit-tool-calls", "1000000", "--limit-concurrency", "1000"]
        words = [self.durward, "--config", "durward.yaml", "--state-dir", "state", words[0], "--policy", "policy.json", *limits, *words[1:]]
        environment = {**os.environ, "XDG_RUNTIME_DIR": str(self.place / "runtime")}
        return subprocess.Popen(words, cwd=self.place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **streams)


class Server(Place):
    """A `durward serve` of its own."""

    def __init__(self, durward, place, models=None, transport="rest", **more):
        super().__init__(durward, place, models, **more)
        self.transport = transport
        self.process = self.start("serve", "--listen", "127.0.0.1:0")
        line = self.process.stdout.readline().strip()
        if not line:
            raise SystemExit("error: durward serve did not start")
        self.host, port = line.rsplit("/", 1)[1].rsplit(":", 1)
        self.port = int(port)

    def client(self):
        return {"rest": Rest, "mcp-http": McpHttp}[self.transport](self)

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


class Streams(Place):
    """Clients that each start a `durward run` of their own, as over standard streams it is."""

    def __init__(self, durward, place, models=None, **more):
        super().__init__(durward, place, models, **more)
        self.clients = []
        # The first one's process is the one whose CPU and memory are told.
        self.process = self.client().process

    def client(self):
        self.clients.append(McpStdio(self))
        return self.clients[-1]

    def stop(self):
        for client in self.clients:
            client.close()


def cpu_and_memory(pid):
    """CPU seconds, and most resident bytes, of a process of its own."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), int(peak.split()[1]) * 1024


class Http:
    """One kept connection."""

    def __init__(self, server):
        self.process, self.name = server.process, server.name
        self.connection = http.client.HTTPConnection(server.host, server.port, timeout=WAIT_S)
        self.connect()

    def connect(self):
        self.connection.close()
        self.connection.connect()
        self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.used = time.monotonic()

    def ask(self, method, path, body=None, **headers):
        """Gives the milliseconds, the body and the headers."""
        sent = None if body is None else json.dumps(body)
        if time.monotonic() - self.used > IDLE_S:
            self.connect()
        lines = {"Host": "127.0.0.1", "Content-Type": "application/json", **headers, "Content-Length": len(sent or "")}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        # In one piece: http.client sends a body behind its head, and the server would wake twice.
        whole = f"{method} {path} HTTP/1.1\r\n{head}\r\n{sent or ''}".encode()
        began = time.perf_counter()
        self.connection.sock.sendall(whole)
        answer = http.client.HTTPResponse(self.connection.sock, method=method)
        answer.begin()
        told = answer.read()
        took = (time.perf_counter() - began) * 1000
        self.used = time.monotonic()
        if answer.status >= 300:
            raise SystemExit(f"error: {path}: {answer.status} {told[:500]!r}")
        return took, told, answer.headers

    def close(self):
        self.connection.close()


class Rest(Http):
    """The server's own paths."""

    has_columns = True

    def post(self, path, **body):
        took, told, _ = self.ask("POST", path, body)
        return took, json.loads(told)

    def tool(self, name, **arguments):
        return self.post("/mcp/call_tool", tool=name, arguments=arguments, critical=True)[1]["structuredContent"]

    def follow(self, job, began):
        """Reads a job's events to their end: milliseconds from `began` to the first that is not `queued`, and the last event.

        Fails where the job did not succeed.
        """
        self.connection.request("GET", f"/jobs/{job}/events")
        answer = self.connection.getresponse()
        runs, last = None, None
        for line in answer:
            if line.startswith(b"data: "):
                last = json.loads(line[6:])
                if runs is None and last["status"] != "queued":
                    runs = (time.perf_counter() - began) * 1000
        return runs, succeeded(last)


class Mcp:
    """What both ways of MCP have in common."""

    has_columns = False

    def open(self):
        self.number = 0
        told = self.request("initialize", protocolVersion=PROTOCOL, capabilities={}, clientInfo={"name": "bench", "version": "1"})[1]
        if told["protocolVersion"] != PROTOCOL:
            raise SystemExit(f"error: another revision was agreed: {told}")
        self.notify("notifications/initialized")

    def message(self, method, params):
        self.number += 1
        return {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}

    def request(self, method, **params):
        took, told = self.exchange(self.message(method, params))
        if "result" not in told:
            raise SystemExit(f"error: {method}: {told}")
        return took, told["result"]

    def post(self, path, **arguments):
        name = TOOLS.get(path, path.removeprefix("/"))
        took, told = self.request("tools/call", name=name, arguments=arguments)
        if told.get("isError"):
            raise SystemExit(f"error: {name}: {json.dumps(told)[:500]}")
        return took, told["structuredContent"]

    def tool(self, name, **arguments):
        return self.post(f"/{name}", **arguments, confirm=True)[1]

    def follow(self, job, began):
        """As over REST, by asking again."""
        while True:
            last = self.tool("get_job_status", jobId=job)
            if last["status"] != "queued":
                break
            time.sleep(LOOK_S)
        runs = (time.perf_counter() - began) * 1000
        while last["status"] == "running":
            last = self.tool("get_job_status", jobId=job, waitSeconds=60)
        return runs, succeeded(last)


class McpHttp(Http, Mcp):
    """MCP over HTTP, in a session."""

    def __init__(self, server):
        super().__init__(server)
        self.headers = {"Accept": "application/json, text/event-stream"}
        self.open()

    def exchange(self, message):
        took, body, headers = self.ask("POST", f"/mcp/{self.name}", message, **self.headers)
        if session := headers["mcp-session-id"]:
            self.headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": PROTOCOL}
        if headers["content-type"].startswith("application/json"):
            return took, json.loads(body)
        events = (json.loads(line[6:]) for line in body.split(b"\n") if line.startswith(b"data: {"))
        return took, next(event for event in events if event.get("id") == message["id"])

    def notify(self, method):
        self.ask("POST", f"/mcp/{self.name}", {"jsonrpc": "2.0", "method": method}, **self.headers)


class McpStdio(Mcp):
    """MCP over standard streams: a Durward of this client's own."""

    def __init__(self, place):
        self.process = place.start("run", place.name, stdin=subprocess.PIPE)
        self.open()

    def exchange(self, message):
        sent = json.dumps(message) + "\n"
        began = time.perf_counter()
        self.process.stdin.write(sent)
        self.process.stdin.flush()
        while line := self.process.stdout.readline():
            took = (time.perf_counter() - began) * 1000
            told = json.loads(line)
            if told.get("id") == message["id"] and "method" not in told:
                return took, told
        raise SystemExit("error: durward run has ended")

    def notify(self, method):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method}) + "\n")
        self.process.stdin.flush()

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)


def succeeded(last):
    if last is None or last["status"] != "succeeded":
        raise SystemExit(f"error: the job ended otherwise: {last}")
    return last


def started(durward, folder, transport):
    """A server for clients of this transport."""
    return Streams(durward, folder) if transport == "mcp-stdio" else Server(durward, folder, transport=transport)


def temporary():
    return tempfile.TemporaryDirectory(prefix="durward-bench-")
