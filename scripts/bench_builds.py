#!/usr/bin/env python3
"""Whether a build of Durward is as fast as another one: both as variants that take turns in one measurement.

    scripts/bench_builds.py --old FILE --new FILE [--launches 20] [--runs 2000] [--within 1.05] [--row NAME] [--out FILE.md]

Rows: a call of echo over stdio, read_file with 50 rules over stdio, a call over HTTP to a server over stdio, and one over HTTP to a
server over HTTP. A row fails where the whole interval of the ratio (new to old) lies above --within, for the time of a call or for
what Durward adds to a direct one. Client, servers and mocks are those of --new. Exit code 1 means that a row fails. Needs Python
3.11 and nothing else; the machine has to be quiet.
"""

import argparse
import json
import pathlib
import random
import shlex
import statistics
import subprocess
import sys
import tempfile

RAISED = ["--limit-requests", "1000000/s", "--limit-burst", "1000000", "--limit-tool-calls", "1000000", "--limit-concurrency", "1024"]
# name, the server, what is in front of Durward and behind it, the tool that is called
ROWS = [
    ("stdio, echo", "echo", ("stdio", "stdio"), "echo"),
    ("stdio, read_file, 50 rules", "files", ("stdio", "stdio"), "read_file"),
    ("HTTP to stdio", "echo", ("http", "stdio"), "echo"),
    ("HTTP to HTTP", "echo", ("http", "http"), "echo"),
]
RESAMPLES = 4_000


def policy(tool, count):
    """The first rule allows the call, none of the others matches it."""
    first = {"id": "allow-the-measured", "effect": "allow", "conditions": {"tool_name": tool}}
    if tool == "read_file":
        first["conditions"]["path_pattern"] = "/tmp/**"
    others = [
        lambda n: {"effect": "allow", "conditions": {"tool_name": ["read_file", "list_files"], "path_pattern": f"/srv/area-{n}/**"}},
        lambda n: {"effect": "deny", "conditions": {"extension": [".key", ".pem", f".secret{n}"]}},
        lambda n: {"effect": "hitl", "conditions": {"operations": ["write", "delete"], "path_pattern": f"/srv/area-{n}/**"}},
        lambda n: {"effect": "deny", "conditions": {"tool_name": f"other_tool_{n}"}},
    ]
    rules = [first] + [{"id": f"rule-{n}", **others[n % 4](n)} for n in range(2, count + 1)]
    return {"version": "1", "default_action": "deny", "rules": rules}


class Row:
    """One measurement: a direct variant, and the same server behind each of the two builds."""

    def __init__(self, arguments, row, folder):
        self.name, server, (front, self.behind), self.tool = row
        self.front, self.arguments, self.folder = front, arguments, folder
        readable = folder / "readable.txt"
        readable.write_text("one\ntwo\nthree\nfour\nfive\n")
        self.tool_args = {"path": str(readable)} if self.tool == "read_file" else {"text": "hello"}
        self.mock = [arguments.new, "lab", "mock", server, *(["--root", str(folder)] if server == "files" else [])]
        self.policy = folder / "policy.json"
        self.policy.write_text(json.dumps(policy(self.tool, 50)))

    def direct(self):
        if self.front == "stdio":
            return shlex.join(self.mock)
        return shlex.join([*self.mock, "--http", "127.0.0.1:0", "--bare"])

    def variant(self, name, build):
        common = [build, "--no-config", "--state-dir", str(self.folder / f"state-{name}")]
        if self.front == "stdio":
            return shlex.join([*common, "run", "--policy", str(self.policy), *RAISED, "--", *self.mock])
        server = "{direct}" if self.behind == "http" else shlex.join(self.mock)
        words = [*common, "serve", "--listen", "127.0.0.1:{port}", "--policy", str(self.policy), *RAISED, "--server", f"mock={server}"]
        return "http://127.0.0.1:{port}/mcp/mock -- " + shlex.join(words)

    def measured(self):
        options = self.arguments
        command = [options.new, "lab", "overhead", "--transport", self.front, "--direct", self.direct()]
        for name in ("old", "new"):
            command += ["--variant", f"{name}={self.variant(name, getattr(options, name))}"]
        command += ["--tool", self.tool, "--tool-args", json.dumps(self.tool_args), "--launches", str(options.launches)]
        command += ["--runs", str(options.runs), "--warmup", str(options.runs // 10), "--quiet", "--json"]
        if options.pin is not None:
            command += ["--pin", str(options.pin)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
        if done.returncode != 0:
            sys.exit(f"{self.name}: {done.stderr.strip() or done.stdout.strip()}")
        arms = {arm["name"]: [launch["p50_us"] for launch in arm["per_launch"]] for arm in json.loads(done.stdout)["arms"]}
        return arms["direct"], arms["old"], arms["new"]


def interval(ratios, seed=1):
    """The mean of the ratios of the launches and its 95 % interval, by a bootstrap over launches."""
    draw = random.Random(seed)
    means = sorted(statistics.fmean(draw.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES))
    return statistics.fmean(ratios), means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES)]


def judged(row, within):
    """The line of a row, and whether it fails."""
    direct, old, new = row.measured()
    whole = interval([n / o for o, n in zip(old, new)])
    added = interval([(n - d) / (o - d) for d, o, n in zip(direct, old, new)])
    fails = whole[1] > within or added[1] > within
    means = [statistics.fmean(arm) for arm in (direct, old, new)]
    told = "{:.3f} [{:.3f}, {:.3f}]".format
    cells = [row.name, *(f"{mean:.1f}" for mean in means), told(*whole), told(*added), "SHORT" if fails else "PASS"]
    return "| " + " | ".join(cells) + " |", fails


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--old", required=True, type=lambda text: str(pathlib.Path(text).resolve()))
    parser.add_argument("--new", required=True, type=lambda text: str(pathlib.Path(text).resolve()))
    parser.add_argument("--launches", type=int, default=20)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--within", type=float, default=1.05, help="largest ratio that is no loss")
    parser.add_argument("--row", action="append", help="only rows whose name has this in it; repeatable")
    parser.add_argument("--pin", type=int, help="keep all processes on this core")
    parser.add_argument("--out", type=pathlib.Path, help="write the table to this file as well")
    arguments = parser.parse_args()
    lines = ["| row | direct p50, µs | old | new | new / old | added, new / old | |", "|---|--:|--:|--:|--:|--:|---|"]
    print("\n".join(lines), flush=True)
    failed = False
    for row in ROWS:
        if arguments.row and not any(part in row[0] for part in arguments.row):
            continue
        with tempfile.TemporaryDirectory(prefix="durward-builds-", dir="/tmp") as folder:
            line, fails = judged(Row(arguments, row, pathlib.Path(folder)), arguments.within)
        print(line, flush=True)
        lines.append(line)
        failed |= fails
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
