#!/usr/bin/env python3
"""Does the check of measurements tell a slower engine? One build against itself has to pass, a slowed one against it has to fail.

    scripts/bench_selftest.py --durward FILE --slowed FILE

SLOWED is the same program built with `--features slowed`: its workers compute a third longer. The two are measured in turn, and of
each step the best of its measurements counts, so that what else the machine does is not taken for the program.
Exit code 1 means that the check does not tell. Needs Python 3.11 and nothing else.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

HERE = pathlib.Path(__file__).parent / "bench_simulation.py"
# Measurements of each.
ROUNDS = 5
SIZE = ["--scenario", "smoke", "--load-mb", "0.1", "--iterations", "60", "--subjects", "100", "--replicates", "4"]


def measured(durward, folder):
    run = subprocess.run([sys.executable, HERE, "run", "--durward", durward, "--out", folder, *SIZE], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(pathlib.Path(run.stdout.strip()).read_text())


def best(artefacts):
    """One artefact with the least p95 of each step, and the fastest population."""
    of = artefacts[0]
    for other in artefacts[1:]:
        for step, found in other["steps"].items():
            of["steps"][step] = min(of["steps"][step], found, key=lambda one: one["p95"])
        of["population"] = min(of["population"], other["population"], key=lambda one: one["seconds"])
    return of


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--durward", required=True)
    parser.add_argument("--slowed", required=True, help="built with --features slowed")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="durward-selftest-") as place:
        place, found = pathlib.Path(place), {"base": [], "same": [], "slow": []}
        for number in range(ROUNDS):
            for name, program in (("base", args.durward), ("same", args.durward), ("slow", args.slowed)):
                found[name].append(measured(program, place / f"{name}-{number}"))
        for name, artefacts in found.items():
            (place / f"{name}.json").write_text(json.dumps(best(artefacts)))
        wrong = False
        for name, wanted in (("same", 0), ("slow", 1)):
            print(f"{name} against base:")
            sys.stdout.flush()
            code = subprocess.run([sys.executable, HERE, "check", place / f"{name}.json", "--baseline", place / "base.json"]).returncode
            if code != wanted:
                wrong = True
                print(f"error: exit code {code} where {wanted} was expected", file=sys.stderr)
    print("the check does not tell" if wrong else "the check tells")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
