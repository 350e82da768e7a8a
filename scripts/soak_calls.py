#!/usr/bin/env python3
"""Whether `durward serve` grows while it makes millions of calls.

    scripts/soak_calls.py [--durward target/dist/durward] [--rate 6500] [--minutes 50] [--retain 8GiB] [--out DIR]

32 clients call a tool over HTTP at a steady rate, through 50 rules and with the journal on, and `lab soak` looks at what was watched
meanwhile: memory and descriptors of the program, and the median time of a call. At the end the journal is verified. The exit code is
that of `lab soak` (99: something leaks), or 1 where a call failed or the journal is not sound. A run has at most 20 million calls, takes
about 200 bytes of disk for each and, with its defaults, 8 GiB for the journal. Needs Python 3.11 and a quiet machine.
"""

import argparse
import json
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

from bench_fairness import RAISED, ROOT, free, rules, wait_for

CLIENTS, CALLS_MAX = 32, 20_000_000


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--durward", default=str(ROOT / "target" / "dist" / "durward"))
    parser.add_argument("--rate", type=int, default=6500, help="calls a second")
    parser.add_argument("--minutes", type=int, default=50)
    parser.add_argument("--retain", default="8GiB", help="journal.retain")
    parser.add_argument("--out", help="where the run is kept")
    asked = parser.parse_args()
    if asked.rate * asked.minutes * 60 > CALLS_MAX:
        parser.error(f"at most {CALLS_MAX} calls: lower --rate or --minutes")
    with tempfile.TemporaryDirectory(prefix="durward-soak-") as place:
        return soak(asked, pathlib.Path(place))


def soak(asked, place):
    mock, address = free(), free()
    (place / "policy.json").write_text(json.dumps(rules()))
    (place / "durward.yaml").write_text(
        f"journal: {{ retain: {asked.retain} }}\nlisten: {address[0]}:{address[1]}\npolicy: policy.json\n"
        f"mcpServers:\n  mock: {{ url: 'http://{mock[0]}:{mock[1]}/mcp' }}\n"
    )
    own = [asked.durward, "--config", str(place / "durward.yaml"), "--state-dir", str(place / "state")]
    quiet = {"stdout": subprocess.DEVNULL}
    server = subprocess.Popen([asked.durward, "lab", "mock", "echo", "--http", f"{mock[0]}:{mock[1]}", "--bare"], **quiet)
    running = [server]
    try:
        wait_for(mock)
        serve = subprocess.Popen([*own, "serve", *RAISED], **quiet)
        running.append(serve)
        wait_for(address)
        failed, run = load(asked, address, serve.pid, pathlib.Path(asked.out or place / "runs"))
        serve.send_signal(signal.SIGTERM)
        failed |= serve.wait(60) != 0
    finally:
        for process in running:
            process.kill()
            process.wait()
    failed |= subprocess.run([*own, "audit", "verify"], check=False).returncode != 0
    code = subprocess.run([asked.durward, "lab", "soak", run], check=False).returncode
    return code or int(failed)


def load(asked, address, pid, out):
    """Whether a call failed, and where the run is stored."""
    words = [asked.durward, "lab", "load", "tool", "--target", f"http://{address[0]}:{address[1]}/mcp/mock", "--json"]
    words += ["--workers", str(CLIENTS), "--rate", f"{asked.rate}/s", "--duration", f"{asked.minutes}m"]
    words += ["--watch", f"serve={pid}", "--out", str(out)]
    before = set(out.glob("*"))
    told = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)
    phase = told["phases"][0]
    print(f"{phase['calls']} calls, {phase['ok']} of them good", flush=True)
    (run,) = set(out.glob("*")) - before
    return phase["calls"] != phase["ok"], run


if __name__ == "__main__":
    sys.exit(main())
