#!/usr/bin/env python3
"""Checks the check of measurements: a build against itself has to pass, and figures of a slower engine have to fail.

    scripts/bench_selftest.py --durward FILE [--rounds 15]

Each round measures the build three times, in an order that turns from round to round; a third is added to the times of the workers in one of
the three, and the check compares them pair by pair: what else the machine does
is in both of a pair, and no median or minimum of one of them hides it.
Exit code 1 means that the check does not tell. Needs Python 3.11 and nothing else.
"""

import argparse
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

HERE = pathlib.Path(__file__).parent / "bench_simulation.py"
SIZE = ["--scenario", "smoke", "--load-mb", "0.1", "--iterations", "20", "--subjects", "400", "--replicates", "4"]
# What the engine decides alone: a check that fails for other steps only has not told.
OF_ENGINE = "population, CPU"


def measured(durward, folder):
    run = subprocess.run([sys.executable, HERE, "run", "--durward", durward, "--out", folder, *SIZE], stdout=subprocess.PIPE, text=True, check=True)
    return run.stdout.strip()


def slowed(name):
    """Adds a third to the times of an artefact that the engine alone decides."""
    path = pathlib.Path(name)
    artefact = json.loads(path.read_text())
    for figure in ("seconds", "workerCpuSeconds"):
        artefact["population"][figure] *= 4 / 3
    path.write_text(json.dumps(artefact))
    return name


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--durward", required=True)
    parser.add_argument("--rounds", type=int, default=15, help="measurements of each, 8 to 16 [default: 15]")
    args = parser.parse_args()
    names = ("base", "same", "slow")
    orders = itertools.cycle(itertools.permutations(names))
    with tempfile.TemporaryDirectory(prefix="durward-selftest-") as place:
        found = {name: [] for name in names}
        for number, order in zip(range(args.rounds), orders):
            for name in order:
                artefact = measured(args.durward, pathlib.Path(place) / f"{name}-{number}")
                found[name].append(slowed(artefact) if name == "slow" else artefact)
        wrong = False
        for name, wanted in (("same", 0), ("slow", 1)):
            print(f"{name} against base:")
            sys.stdout.flush()
            check = subprocess.run([sys.executable, HERE, "check", *found[name], "--baseline", *found["base"]], stdout=subprocess.PIPE, text=True)
            print(check.stdout, end="", flush=True)
            if check.returncode != wanted:
                wrong = True
                print(f"error: exit code {check.returncode} where {wanted} was expected", file=sys.stderr)
            elif wanted and not any(line.startswith(f"short  {OF_ENGINE} ") for line in check.stdout.splitlines()):
                wrong = True
                print(f"error: it fails, and not because of {OF_ENGINE}", file=sys.stderr)
    print("the check does not tell" if wrong else "the check tells")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
