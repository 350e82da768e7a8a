#!/usr/bin/env python3
"""Runs models drawn by lot here and by a second reading of the format, and compares every value.

    scripts/independent/compare.py [--seed N] [--models N] [--corpus FOLDER]

With --corpus, the second reading itself is first compared with the numbers of the genuine solver: the formulas of that folder
and every COUNT-th generated model. Needs a Rust toolchain and, for the first run, PyPI (a virtual environment is kept
under .cache/). A model that LSODA does not solve in time is counted and passed over.
"""

import argparse
import array
import csv
import gzip
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
VENV = ROOT / ".cache" / "independent"
PINNED = ["numpy==2.4.6", "scipy==1.17.1"]
# Both solve far more tightly than this part of a column's peak, or this value.
ALLOWED, NOTHING = 2e-6, 1e-10
TIGHT = ["--rtol", "1e-11", "--atol", "1e-15"]
SECONDS = 30
# Of the generated models every so many is compared with the genuine numbers.
COUNT = 10
# Formulas of the corpus that are not a number by rules that nothing written down decides.
UNDECIDED = {"f0385", "f0461"}
# At most this part of the models may be passed over.
PASSED_OVER = 0.05


class Slow(Exception):
    """The second reading took too long."""


def inside_environment():
    """Starts again inside the virtual environment, made on first use."""
    python = VENV / "bin" / "python"
    if pathlib.Path(sys.prefix).resolve() == VENV.resolve():
        return
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    if subprocess.run([python, "-c", "import scipy"], capture_output=True).returncode:
        subprocess.run([python, "-m", "pip", "install", "-q", *PINNED], check=True)
    os.execv(python, [str(python), "-W", "ignore", __file__, *sys.argv[1:]])


def build():
    """Builds the command optimised."""
    command = ["cargo", "build", "--release", "--quiet", "--package", "pbpk", "--features", "cli"]
    subprocess.run(command, cwd=ROOT, check=True)
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "pbpk"


def in_time(work):
    """What the work gives, or nothing where it takes too long or cannot be solved."""
    from reading import Unsolved

    def over(*_):
        raise Slow

    signal.signal(signal.SIGALRM, over)
    signal.alarm(SECONDS)
    try:
        return work()
    except (Slow, Unsolved, OverflowError, RecursionError):
        return None
    finally:
        signal.alarm(0)


def ours(program, text, sets, folder):
    """The table of the command: columns by path without the simulation's name."""
    model, table = folder / "model.xml", folder / "table.csv"
    model.write_text(text, encoding="utf-8")
    values = [f"--param={path}={value!r}" for path, value in sets]
    command = [program, "run", model, "--all", "--csv", table, *TIGHT, *values]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip()
    with open(table, encoding="utf-8-sig", newline="") as file:
        head, *rows = csv.reader(file)
    names = [re.sub(r" \[[^\]]*\]$", "", name).split("|", 1)[-1] for name in head]
    return dict(zip(names, zip(*([float(v) for v in row] for row in rows))))


def same(a, b, peak, allowed):
    if not (math.isfinite(a) and math.isfinite(b)):
        return a == b or a != a and b != b
    return abs(a - b) <= max(NOTHING, allowed * peak)


def difference(table, rows, paths):
    """The first value that differs, in words."""
    times = [row[0] for row in rows]
    found = table.get("Time", ())
    if len(found) != len(times) or any(abs(a - b) > 1e-9 * max(1e-9, b) for a, b in zip(found, times)):
        return f"times {found} instead of {times}"
    for i, path in enumerate(paths):
        expected = [row[i + 1] for row in rows]
        column = table.get(path.split("|", 1)[-1])
        if column is None:
            return f"no column {path}"
        peak = max((abs(v) for v in expected if math.isfinite(v)), default=0.0)
        for time, a, b in zip(times, column, expected):
            if not same(a, b, peak, ALLOWED):
                return f"{path} at {time}: {a} instead of {b}"
    return None


def drawn_models(program, seeds):
    """Compares the models of these seeds; gives the seeds that differ, and how many were passed over."""
    from models import drawn
    from reading import Model

    differing, passed_over = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            text, sets = drawn(seed)
            model = Model(text, sets)
            rows = in_time(model.run)
            if rows is None:
                passed_over += 1
                continue
            table = ours(program, text, sets, pathlib.Path(folder))
            paths = [model.path[q] for q in model.outputs]
            why = table if isinstance(table, str) else difference(table, rows, paths)
            if why:
                differing.append(seed)
                print(f"seed {seed}: {why}\n  set: {sets}\n  {text}")
    return differing, passed_over


def genuine_formulas(corpus):
    """Formulas whose genuine values the second reading does not give."""
    from formulas import Formula

    with gzip.open(corpus / "formulas.jsonl.gz", "rt", encoding="utf-8") as file:
        first, *lines = map(json.loads, file)
    environment, wrong = first["environment"], []
    numbers = {name: float(value) for name, value in environment["constants"].items()} | {"PF": 2.5}
    for line in lines:
        if "values" not in line or line["id"] in UNDECIDED:
            continue
        now = {"PT": 2.5}
        formula = Formula(line["formula"], numbers.get, now.get)
        for time, expected in enumerate(line["values"]):
            now.update(Time=float(time), M=environment["M"][time])
            a, b = formula.value(), float(expected)
            if not (same(a, b, 0.0, 0.0) or abs(a - b) <= 1e-7 * max(abs(a), abs(b)) + 1e-12):
                wrong.append(line["id"])
                print(f"{line['id']}: '{line['formula']}' at {time}: {a} instead of {b}")
                break
    return wrong


def genuine_models(corpus):
    """Generated models whose genuine numbers the second reading does not give."""
    from reading import Model

    wrong, numbers = [], gzip.open(corpus / "generated.bin.gz").read()
    with gzip.open(corpus / "generated.jsonl.gz", "rt", encoding="utf-8") as file:
        cases = [json.loads(line) for line in file][::COUNT]
    for case in (c for c in cases if c["outcome"] == "runs"):
        model = Model(case["xml"], case.get("sets", ()))
        rows = in_time(model.run)
        if rows is None:
            continue
        places = {model.path[q]: i + 1 for i, q in enumerate(model.outputs)}
        bound, band, at = max(10 * case["rtol"], 3 * case["E"], 1e-6), 100 * case["atol"], case["offset"]
        picks = case.get("rows") or range(case["rows_total"])
        good = len(rows) == case["rows_total"]
        for name in case["columns"] if good else ():
            peak = array.array("d", numbers[at : at + 8])[0]
            ratios = array.array("f", numbers[at + 8 : at + 8 + 4 * len(picks)])
            at += 8 + 4 * len(picks)
            for row, ratio in zip(picks, ratios):
                a, b = rows[row][places[name]], ratio * peak
                near = math.isfinite(a) and math.isfinite(b) and abs(a - b) <= max(band if peak < band else 0, (bound + 2e-7) * peak)
                good &= near or same(a, b if math.isfinite(ratio) else ratio, 0.0, 0.0)
        if not good:
            wrong.append(case["id"])
            print(f"{case['id']} ({', '.join(case['classes'])}) differs from the genuine solver")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1_000_000)
    parser.add_argument("--models", type=int, default=300)
    parser.add_argument("--corpus", type=pathlib.Path)
    parser.add_argument("--program", type=pathlib.Path, help="a built pbpk; by default it is built")
    given = parser.parse_args()
    failed = []
    if given.corpus:
        failed += genuine_formulas(given.corpus) + genuine_models(given.corpus)
        print(f"second reading against the genuine solver: {len(failed)} differ")
    program = given.program or build()
    seeds = range(given.seed, given.seed + given.models)
    differing, passed_over = drawn_models(program, seeds)
    print(f"{len(seeds)} models from seed {given.seed}: {len(differing)} differ, {passed_over} passed over")
    return 1 if failed or differing or passed_over > PASSED_OVER * len(seeds) else 0


if __name__ == "__main__":
    inside_environment()
    sys.exit(main())
