#!/usr/bin/env python3
"""Whether one connection that sends as fast as it can keeps others waiting at `durward serve`.

    scripts/bench_fairness.py [--durward target/dist/durward] [--rounds 7] [--seconds 5] [--to stdio|http] [--bare]

31 connections call a tool every few milliseconds, in turns alone and beside one that sends its calls without waiting for answers
(64 at a time). Each has a session of its own. What is compared is the 99th percentile of the 31, round by round; the median of the
ratios must be 2 at most. Exit code 1 means that it is more. --bare measures a relay that judges nothing in the same way: what the
flood's own work costs the others on this machine, whoever stands between. Needs Python 3.11 and nothing else; the machine has to be quiet.
"""

import argparse
import json
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent
OTHERS, THINK_MS, AT_ONCE, RATIO_MAX = 31, 5, 64, 2.0
RAISED = ["--limit-requests", "1000000/s", "--limit-burst", "1000000", "--limit-tool-calls", "1000000", "--limit-concurrency", "1024"]
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "flood", "version": "1"}}


def request(address, message, session=None):
    """The bytes of one message to the server."""
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    named = f"mcp-session-id: {session}\r\n" if session else ""
    head = (
        f"POST /mcp/mock HTTP/1.1\r\nhost: {address[0]}:{address[1]}\r\ncontent-type: application/json\r\n"
        f"accept: application/json, text/event-stream\r\n{named}content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def answered(stream):
    """One answer: its head and its body."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = stream.readline()
        if not line:
            raise EOFError("the connection was closed")
        head += line
    length = re.search(rb"content-length: (\d+)", head)
    return head, stream.read(int(length[1])) if length else b""


class Flood(threading.Thread):
    """One connection that does not wait for its answers."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.address, self.over, self.calls = address, threading.Event(), 0

    def run(self):
        with socket.create_connection(self.address) as connection, connection.makefile("rb") as stream:
            connection.sendall(request(self.address, {"id": 0, "method": "initialize", "params": INITIALIZE}))
            named = re.search(rb"mcp-session-id: (\S+)", answered(stream)[0])
            session = named and named[1].decode()
            connection.sendall(request(self.address, {"method": "notifications/initialized"}, session))
            answered(stream)
            call = {"id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "flood"}}}
            batch = request(self.address, call, session) * AT_ONCE
            connection.sendall(batch)
            while not self.over.is_set():
                # As many again before these are answered.
                connection.sendall(batch)
                for _ in range(AT_ONCE):
                    _, body = answered(stream)
                    if b'"flood"' not in body:
                        raise ValueError(f"not an answer: {body!r}")
                self.calls += AT_ONCE


def p99_us(durward, address, seconds):
    """The 99th percentile of the 31."""
    words = [durward, "lab", "load", "tool", "--target", f"http://{address[0]}:{address[1]}/mcp/mock", "--json"]
    paced = ["--workers", str(OTHERS), "--think-ms", str(THINK_MS), "--duration", f"{seconds}s"]
    told = json.loads(subprocess.run([*words, *paced], check=True, capture_output=True).stdout)
    phase = told["phases"][0]
    if phase["ok"] != phase["calls"]:
        raise ValueError(f"{phase['calls'] - phase['ok']} calls failed")
    return phase["service"]["p99_us"]["point"]


def free():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()


def rules(count=50):
    """The first allows the call; the others do not match it."""
    first = {"id": "allow-the-measured", "effect": "allow", "conditions": {"tool_name": "echo"}}
    others = [
        {"id": f"allow-area-{number}", "effect": "allow", "conditions": {"tool_name": "read_file", "path_pattern": f"/srv/area-{number}/**"}}
        for number in range(2, count + 1)
    ]
    return {"version": "1", "default_action": "deny", "rules": [first, *others]}


def wait_for(address):
    while True:
        try:
            return socket.create_connection(address).close()
        except ConnectionRefusedError:
            threading.Event().wait(0.05)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--durward", default=str(ROOT / "target" / "dist" / "durward"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--to", choices=["stdio", "http"], default="stdio")
    parser.add_argument("--bare", action="store_true", help="a relay that judges nothing, in the place of the program")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="durward-fairness-") as place:
        return measure(asked, pathlib.Path(place))


def measure(asked, place):
    durward, address, running = asked.durward, free(), []
    (place / "policy.json").write_text(json.dumps(rules()))
    behind = f"'{durward}' lab mock echo"
    if asked.to == "http":
        at = free()
        running.append(subprocess.Popen([durward, "lab", "mock", "echo", "--http", f"{at[0]}:{at[1]}", "--bare"], stdout=subprocess.DEVNULL))
        wait_for(at)
        behind = f"http://{at[0]}:{at[1]}/mcp"
    if asked.bare:
        words = [durward, "lab", "mock", "relay", "--http", f"{address[0]}:{address[1]}"]
        words += ["--url", behind] if asked.to == "http" else ["--", durward, "lab", "mock", "echo"]
    else:
        words = [durward, "--no-config", "--state-dir", str(place / "state"), "serve", "--listen", f"{address[0]}:{address[1]}"]
        words += ["--policy", str(place / "policy.json"), *RAISED, "--server", f"mock={behind}"]
    running.append(subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    try:
        wait_for(address)
        ratios = []
        for number in range(asked.rounds):
            alone = p99_us(durward, address, asked.seconds)
            flood = Flood(address)
            flood.start()
            beside = p99_us(durward, address, asked.seconds)
            if not flood.is_alive():
                raise RuntimeError("the flood has ended")
            flood.over.set()
            flood.join()
            ratios.append(beside / alone)
            print(f"round {number + 1}: p99 of {OTHERS} alone {alone:.0f} µs, beside a flood of {flood.calls} calls {beside:.0f} µs, ratio {ratios[-1]:.2f}")
    finally:
        for process in reversed(running):
            process.send_signal(signal.SIGTERM)
            process.wait()
    median = statistics.median(ratios)
    verdict = "PASS" if median <= RATIO_MAX else "SHORT"
    who = "bare relay, " if asked.bare else ""
    print(f"fairness, {who}HTTP to {asked.to}: median ratio {median:.2f} of {len(ratios)} rounds (at most {RATIO_MAX:.0f}): {verdict}")
    return int(median > RATIO_MAX)


if __name__ == "__main__":
    sys.exit(main())
