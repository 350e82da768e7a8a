#!/usr/bin/env python3
"""Does the check of measurements tell a slower engine? One build against itself has to pass, a slowed one against it has to fail.

    scripts/bench_selftest.py --durward FILE --slowed FILE [--rounds 15]

SLOWED is the same program built with `--features slowed`: its workers compute a third longer. Each round measures the build, the build
again and the slowed one, in an order that turns from round to round, and the check compares them pair by pair: what else the machine does
is in both of a pair, and no median or minimum of one of them hides it.
Exit code 1 means that the check does not tell. Needs Python 3.11 and nothing else.
"""

import argparse
import itertools
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--durward", required=True)
    parser.add_argument("--slowed", required=True, help="built with --features slowed")
    parser.add_argument("--rounds", type=int, default=15, help="measurements of each, 8 to 16 [default: 15]")
    args = parser.parse_args()
    programs = {"base": args.durward, "same": args.durward, "slow": args.slowed}
    orders = itertools.cycle(itertools.permutations(programs))
    with tempfile.TemporaryDirectory(prefix="durward-selftest-") as place:
        found = {name: [] for name in programs}
        for number, order in zip(range(args.rounds), orders):
            for name in order:
                found[name].append(measured(programs[name], pathlib.Path(place) / f"{name}-{number}"))
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
