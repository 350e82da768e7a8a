#!/usr/bin/env python3
"""Times one run of two models here and in libroadrunner, side by side, and writes a Markdown section.

    scripts/bench_pbpk.py DATA_FOLDER [--out FILE] [--rounds N]

Both read the same model: ours from its SimModel file, libroadrunner from our SBML export of it. Same output
times, same outputs, same tolerances. Rounds alternate between the two; the least time of each counts. Before
timing, both results are compared, so that nobody is quick by being wrong. Two large generated models (dense, and a
chain) and the loading of a 4 MB pkml are timed alone. Needs a Rust toolchain and, for the first run, PyPI (a virtual
environment is kept under .cache/).
"""

import argparse
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENV = ROOT / ".cache" / "roadrunner"
PINNED = ["libroadrunner==2.10.0"]
RUN_MS_AIM = 0.8
LOAD_MS_MAX = 30.0
LARGE_S_MAX = 2.0
# name, file, relative and absolute tolerance, largest accepted distance of the two results relative to a
# column's peak, least ratio, time in ms that is aimed at
MODELS = [
    ("whole body, 150 states", "ref/pksim_simple_simulation.simmodel.xml", 1e-5, 1e-10, 1e-3, 15.0, RUN_MS_AIM),
    ("platelet cascade, 70 states", "simmodel/BCM_Platelet6Lit.xml", 1e-5, 1e-8, 5e-3, 6.0, None),
]
LOADED = "pkml/pksim_simple_simulation.pkml"
# Derivatives of all outputs of that model by the parameters of this population, at the tolerances of the row.
DERIVED_BY, DERIVED_RTOL, DERIVED_ATOL, DERIVED_MS_MAX = "csv/ospr_pop.csv", 1e-6, 1e-11, 130.0
# A population made of that file's rows, each value up to this much larger or smaller, and one parameter of the drug.
PEOPLE, PEOPLE_SPREAD, PEOPLE_ALSO = 10_000, 0.02, ("C1|Fraction unbound (plasma)", 0.11)
PEOPLE_OUTPUTS = ["Organism|PeripheralVenousBlood|C1|Blood Cells", "Organism|PeripheralVenousBlood|C1|Plasma (Peripheral Venous Blood)"]
PEOPLE_S_MAX, PEOPLE_MIB_MAX, PEOPLE_THREADS = 4.0, 100, 2
# Both over 10 min with 11 output times, relative tolerance 1e-5, absolute 1e-9.
LARGE_SPAN_MIN, LARGE_TIMES, LARGE_RTOL, LARGE_ATOL = 10, 11, 1e-5, 1e-9


def inside_environment():
    """Starts again inside the virtual environment, made on first use."""
    python = VENV / "bin" / "python"
    if pathlib.Path(sys.prefix).resolve() == VENV.resolve():
        return
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    if subprocess.run([python, "-c", "import roadrunner"], capture_output=True).returncode:
        subprocess.run([python, "-m", "pip", "install", "-q", *PINNED], check=True)
    os.execv(python, [str(python), __file__, *sys.argv[1:]])


def build():
    """Builds command and examples optimised and returns the folder of the examples."""
    subprocess.run(
        ["cargo", "build", "-q", "--release", "-p", "pbpk", "--features", "cli", "--bins", "--examples"],
        check=True,
        cwd=ROOT,
    )
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "release" / "examples"


def ours(programs, file, rtol, atol, runs):
    """Least time in ms of so many runs, and the solver's counts."""
    done = subprocess.run(
        [programs / "speed", file, str(runs), str(rtol), str(atol)], check=True, capture_output=True, text=True
    )
    least, counts = done.stdout.splitlines()
    return float(least), counts


def our_table(programs, file, rtol, atol):
    """Output paths, and rows of numbers with the time first."""
    import csv

    done = subprocess.run(
        [programs / "speed", file, "1", str(rtol), str(atol), "--csv"], check=True, capture_output=True, text=True
    )
    rows = list(csv.reader(done.stdout.splitlines()))
    # A title is the path, and the unit in brackets where one is known.
    paths = [re.sub(r" \[[^\[\]]*\]$", "", title) for title in rows[0][1:]]
    return paths, [[float(x) for x in row] for row in rows[1:]]


class Peer:
    """A model in libroadrunner."""

    def __init__(self, sbml, paths, times, rtol, atol):
        import xml.etree.ElementTree

        import roadrunner

        roadrunner.Logger.setLevel(roadrunner.Logger.LOG_ERROR)
        # The other backend takes a minute to load a model of this size and runs it some 5 % faster.
        roadrunner.Config.setValue(roadrunner.Config.LLVM_BACKEND, roadrunner.Config.LLJIT)
        core = "{http://www.sbml.org/sbml/level3/version2/core}"
        tree = xml.etree.ElementTree.fromstring(sbml)
        ids = {p.get("name"): p.get("id") for p in tree.iter(core + "parameter") if p.get("name")}
        started = time.perf_counter()
        self.model = roadrunner.RoadRunner(sbml)
        self.load_s = time.perf_counter() - started
        self.selections = ["time"] + [ids[path] for path in paths]
        self.times = times
        self.tolerances = (rtol, atol)
        self.version = roadrunner.__version__

    def run(self):
        """Time in ms and result; everything but the simulation itself stays outside the clock."""
        self.model.resetToOrigin()
        self.model.integrator.relative_tolerance, self.model.integrator.absolute_tolerance = self.tolerances
        self.model.timeCourseSelections = self.selections
        started = time.perf_counter()
        result = self.model.simulate(times=self.times)
        return (time.perf_counter() - started) * 1e3, result


def distance(paths, table, result, atol):
    """Largest distance of the two results relative to a column's peak, from the second row on: at the start
    one stores the value before, the other after events."""
    worst, where = 0.0, ""
    for column, path in enumerate(paths, start=1):
        a = [row[column] for row in table[1:]]
        b = [float(row[column]) for row in result[1:]]
        peak = max((abs(x) for x in a if x == x), default=0.0)
        if peak < 100 * atol:
            continue
        gap = max((abs(x - y) for x, y in zip(a, b) if x == x), default=0.0) / peak
        if not gap <= worst:
            worst, where = gap, path
    return worst, where


def measure(programs, data, model, rounds):
    name, file, rtol, atol, allowed, least_ratio, aim = model
    path = data / file
    paths, table = our_table(programs, path, rtol, atol)
    sbml = subprocess.run([programs / "export", "sbml-numbers", path], check=True, capture_output=True, text=True).stdout
    peer = Peer(sbml, paths, [row[0] for row in table], rtol, atol)
    _, result = peer.run()
    gap, where = distance(paths, table, result, atol)
    if not gap <= allowed:
        sys.exit(f"{name}: the two results differ by {gap:.1e} of the peak of {where}; allowed {allowed:.0e}")
    mine, theirs = [], []
    for _ in range(rounds):
        least, counts = ours(programs, path, rtol, atol, 50)
        mine.append(least)
        theirs.append(min(peer.run()[0] for _ in range(20)))
    a, b = min(mine), min(theirs)
    ratio = b / a
    good = ratio >= least_ratio
    goal = f"≥ {least_ratio:g}x" + (f" (aim {aim:g} ms)" if aim else "")
    row = f"| {name} | {len(table)} × {len(paths)} | {a:.2f} ms | {b:.2f} ms | {ratio:.1f}x | {goal} | {'PASS' if good else 'SHORT'} | {gap:.0e} |"
    return row, f"{name}: {counts}; libroadrunner loads it in {peer.load_s:.1f} s", peer.version


def document(variables, formulas, parameters):
    """A SimModel file of these items, with solver settings and an output interval."""
    settings = {
        "H0": 1e-10, "HMin": 0, "HMax": 0, "AbsTol": LARGE_ATOL, "RelTol": LARGE_RTOL, "MxStep": 100000, "UseJacobian": 1,
    }
    ids = {name: 9_000_000 + i for i, name in enumerate(settings)}
    parameters = parameters + [f'<P id="{ids[n]}" name="{n}" path="S|{n}" value="{v}"/>' for n, v in settings.items()]
    return (
        '<Simulation version="4" objectPathDelimiter="|">'
        + "<FormulaList>" + "".join(formulas) + "</FormulaList>"
        + "<VariableList>" + "".join(variables) + "</VariableList>"
        + "<ParameterList>" + "".join(parameters) + "</ParameterList>"
        + "<Solver>" + "".join(f'<{n} id="{i}"/>' for n, i in ids.items()) + "</Solver>"
        + "<OutputSchema><OutputIntervalList><OutputInterval><StartTime>0</StartTime>"
        + f"<EndTime>{LARGE_SPAN_MIN}</EndTime><NumberOfTimePoints>{LARGE_TIMES}</NumberOfTimePoints>"
        + "</OutputInterval></OutputIntervalList></OutputSchema></Simulation>"
    )


def equation(id, text, references):
    listed = "".join(f'<R alias="{alias}" id="{of}"/>' for alias, of in references)
    return f'<ExplicitFormula id="{id}"><Equation>{text}</Equation><ReferenceList>{listed}</ReferenceList></ExplicitFormula>'


def variable(id, start, rate):
    return f'<V id="{id}" name="M{id}" path="S|M{id}" value="{start}"><RHSFormulaList><RHSFormula id="{rate}"/></RHSFormulaList></V>'


def dense(states):
    """Competition of all with all: M_i' = M_i (1 − Σ a_ij M_j), a_ij drawn from 0.1 … 1.9 over the number of states."""
    lot = random.Random(1)
    all_states = range(1, states + 1)
    references = [(f"M{j}", j) for j in all_states]
    formulas, variables = [], []
    for i in all_states:
        terms = "+".join(f"{lot.uniform(0.1, 1.9) / states:.6f}*M{j}" for j in all_states)
        formulas.append(equation(states + i, f"M{i}*(1-({terms}))", references))
        variables.append(variable(i, f"{lot.uniform(0.01, 0.1):.4f}", states + i))
    return document(variables, formulas, [])


def chain(states):
    """A substance that passes from state to state: M_i' = k M_(i−1) − k M_i."""
    k = 3 * states
    formulas, variables = [], []
    for i in range(1, states + 1):
        references = [("k", k), ("A", i)] + ([("P", i - 1)] if i > 1 else [])
        formulas.append(equation(states + i, "k*P-k*A" if i > 1 else "-k*A", references))
        variables.append(variable(i, 1 if i == 1 else 0, states + i))
    return document(variables, formulas, [f'<P id="{k}" name="k" path="S|k" value="1"/>'])


def stages(programs, file, times):
    """Least times in ms to read, to compile and to fold."""
    done = subprocess.run([programs / "loading", file, str(times)], check=True, capture_output=True, text=True)
    words = done.stdout.split()
    return [float(words[words.index(stage) + 1]) for stage in ("read", "compile", "fold")]


def people(data, file):
    """Writes the population."""
    import csv

    lot = random.Random(1)
    with open(data / DERIVED_BY, encoding="utf-8-sig") as source:
        head, *rows = csv.reader(line for line in source if not line.startswith("#"))
    facts = {"IndividualId", "Gender", "RaceIndex", "Population Name"}
    writer = csv.writer(file)
    writer.writerow([*head, PEOPLE_ALSO[0]])
    for i in range(PEOPLE):
        drawn = [
            value if name in facts else repr(float(value) * (1 + PEOPLE_SPREAD * lot.uniform(-1, 1)))
            for name, value in zip(head, rows[i % len(rows)])
        ]
        drawn[head.index("IndividualId")] = i
        writer.writerow([*drawn, repr(PEOPLE_ALSO[1] * (1 + PEOPLE_SPREAD * lot.uniform(-1, 1)))])


def most_mib(process):
    """The most memory that a process had so far; 0 where it is gone."""
    try:
        status = pathlib.Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) / 1024 if found else 0


def population(programs, data):
    """Row of a whole population through the command: seconds from start to end, and the most memory."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "people.csv"
        with open(file, "w", newline="", encoding="utf-8") as out:
            people(data, out)
        best, memory, told = float("inf"), 0, ""
        for n in range(3):
            to = pathlib.Path(folder) / str(n)
            command = [programs.parent / "pbpk", "population", data / LOADED, file, "--out", to, "--threads", str(PEOPLE_THREADS)]
            for output in PEOPLE_OUTPUTS:
                command += ["--output", output]
            with open(to.with_suffix(".txt"), "w+") as out:
                started = time.perf_counter()
                child = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
                ended = 0
                while not ended:
                    # Not the usage's maximum: that counts the process which started it too.
                    memory = max(memory, most_mib(child.pid))
                    time.sleep(0.01)
                    ended, status, usage = os.wait4(child.pid, os.WNOHANG)
                taken = time.perf_counter() - started
                if status:
                    sys.exit(f"the population ended with status {status}")
                out.seek(0)
                told = out.read().split(";")[0].strip()
            if taken < best:
                best, busy = taken, usage.ru_utime + usage.ru_stime
    good = best <= PEOPLE_S_MAX and memory <= PEOPLE_MIB_MAX
    return (
        f"| population through the command | {best:.2f} s, {memory:.0f} MiB | ≤ {PEOPLE_S_MAX:g} s, ≤ {PEOPLE_MIB_MAX} MiB | {'PASS' if good else 'SHORT'}"
        f" | {told}; {len(PEOPLE_OUTPUTS)} outputs × 129 times, {PEOPLE_THREADS} threads, {busy:.1f} s of processor time |"
    )


def alone(programs, data):
    """Rows of what has no peer: loading, and the large models."""
    load = sum(stages(programs, data / LOADED, 20))
    rows = [f"| load a 4 MB pkml, ready to run | {load:.1f} ms | ≤ {LOAD_MS_MAX:g} ms | {'PASS' if load <= LOAD_MS_MAX else 'SHORT'} | |"]
    done = subprocess.run(
        [programs / "derivatives", data / LOADED, data / DERIVED_BY, "20", str(DERIVED_RTOL), str(DERIVED_ATOL)],
        check=True, capture_output=True, text=True,
    )
    least, shape = done.stdout.strip().split(" ms: ")
    rows.append(f"| whole body with derivatives | {float(least):.1f} ms | ≤ {DERIVED_MS_MAX:g} ms | {'PASS' if float(least) <= DERIVED_MS_MAX else 'SHORT'} | {shape}; relative tolerance {DERIVED_RTOL:g} |")
    rows.append(population(programs, data))
    for name, text in (("dense, 800 states", dense(800)), ("chain, 50,000 states", chain(50_000))):
        with tempfile.NamedTemporaryFile("w", suffix=".xml", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            read, compiled, fold = stages(programs, file.name, 3)
            run, counts = ours(programs, file.name, LARGE_RTOL, LARGE_ATOL, 3)
        total = (read + compiled + fold + run) / 1e3
        profile = f"read {read:.0f}, compile {compiled:.0f}, run {run:.0f} ms; {counts}"
        rows.append(f"| {name}: file to results | {total:.2f} s | ≤ {LARGE_S_MAX:g} s | {'PASS' if total <= LARGE_S_MAX else 'SHORT'} | {profile} |")
    return rows


def main():
    inside_environment()
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("data", type=pathlib.Path, help="folder with the models (ref/, simmodel/)")
    arguments.add_argument("--out", type=pathlib.Path, help="write the section there instead of to standard output")
    arguments.add_argument("--rounds", type=int, default=10, help="alternating rounds (default 10)")
    chosen = arguments.parse_args()
    programs = build()
    measured = [measure(programs, chosen.data, model, chosen.rounds) for model in MODELS]
    version = measured[0][2]
    lines = [
        "## Simulation",
        "",
        f"One run, least of {chosen.rounds} alternating rounds (50 runs here, 20 there), same machine, same minutes, beside libroadrunner {version} (CVODE) on our SBML export; same times, outputs and tolerances.",
        "",
        f"| model | times × outputs | here | libroadrunner | ratio | goal | | distance of results |",
        "|---|--:|--:|--:|--:|---|---|--:|",
        *[row for row, _, _ in measured],
        "",
        *[f"- {note}" for _, note, _ in measured],
        "",
        f"Alone. The large models are generated by `scripts/bench_pbpk.py`: {LARGE_SPAN_MIN} min, {LARGE_TIMES} output times, relative tolerance {LARGE_RTOL:g}, absolute {LARGE_ATOL:g}.",
        "",
        "| what | here | goal | | profile |",
        "|---|--:|---|---|---|",
        *alone(programs, chosen.data),
        "",
    ]
    text = "\n".join(lines)
    if chosen.out:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        chosen.out.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
