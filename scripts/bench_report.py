#!/usr/bin/env python3
"""Writes a page of the measurements of simulations: the newest of each scenario, and how it went from one to the next.

    scripts/bench_report.py [--folder var/benchmarks] [--out reports/perf/latest.md]

Takes the artefacts that scripts/bench_simulation.py has written. One that does not say what was solved is left out and named.
Exit code 1 means that there is nothing to report. Needs Python 3.11 and nothing else.
"""

import argparse
import json
import pathlib
import sys

sys.dont_write_bytecode = True

from bench_check import LIMITS, lacking
from bench_simulation import SCENARIOS, markdown

# Artefacts of one scenario that the course shows.
COURSE = 10
BAR = 30


def read(folder):
    """The usable artefacts of each scenario, the oldest first, and what is wrong with others."""
    found, wrong = {name: [] for name in SCENARIOS}, []
    for file in sorted(folder.glob("*.json")):
        try:
            artefact = json.loads(file.read_text())
            why = lacking(artefact) if artefact["scenario"] in found else "its scenario is not known"
        except (ValueError, KeyError, TypeError) as error:
            why = f"it cannot be read: {error!r}"
        if why:
            wrong.append(f"{file.name}: {why}")
        else:
            found[artefact["scenario"]].append((file.name, artefact))
    return found, wrong


def bar(value, most):
    return "█" * max(1, round(BAR * value / most)) if most > 0 else ""


def phase(title, artefact, names):
    """The p95 of a phase's steps as bars."""
    rows = [(name, artefact["steps"][name]["p95"]) for name in names]
    if not rows:
        return []
    most = max(value for _, value in rows)
    lines = [f"**{title}**, p95 in ms", "", "| step | | |", "|---|--:|---|"]
    return lines + [f"| {name} | {value} | {bar(value, most)} |" for name, value in rows] + [""]


def course(artefacts):
    """One row for each artefact, with the p95 of the plan's steps."""
    steps = [step for step in LIMITS if any(step in artefact["steps"] for _, artefact in artefacts)]
    if len(artefacts) < 2:
        return []
    lines = ["**From one to the next**, p95 in ms", "", f"| artefact | {' | '.join(steps)} | population, s |", "|---" + "|--:" * (len(steps) + 1) + "|"]
    for name, artefact in artefacts[-COURSE:]:
        cells = [str(artefact["steps"].get(step, {}).get("p95", "")) for step in steps]
        lines.append(f"| {name} | {' | '.join(cells)} | {artefact['population']['seconds']} |")
    return lines + [""]


def page(found, wrong):
    lines = ["# Measurements of simulations", ""]
    for scenario, artefacts in found.items():
        if not artefacts:
            continue
        name, newest = artefacts[-1]
        engine, process = newest["engine"], newest["processMetrics"]
        lines += [
            markdown(newest).replace("## Simulations", f"## {scenario}: simulations", 1),
            f"From {name}: engine {engine['name']}, program {engine['binarySha256'][:12]}, model {newest['model']['sha256'][:12]}; the server's own "
            f"process had {process['cpuSeconds']:.1f} s of CPU and at most {process['rssBytesPeak'] / 1e6:.0f} MB.",
            "",
        ]
        for title, names in newest["phases"].items():
            lines += phase(title, newest, names)
        lines += course(artefacts)
    if wrong:
        lines += ["## Left out", "", *(f"- {line}" for line in wrong), ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("var/benchmarks"), help="of artefacts [default: var/benchmarks]")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("reports/perf/latest.md"), help="[default: reports/perf/latest.md]")
    args = parser.parse_args()
    found, wrong = read(args.folder)
    for line in wrong:
        print(f"warning: {line}", file=sys.stderr)
    if not any(found.values()):
        print(f"error: {args.folder} has no artefact that can be used; run make benchmark first", file=sys.stderr)
        sys.exit(1)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(page(found, wrong))
    print(args.out)


if __name__ == "__main__":
    main()
