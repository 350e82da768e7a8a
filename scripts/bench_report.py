#!/usr/bin/env python3
"""Writes a page of the measurements of simulations: the newest of each scenario, and how it went from one to the next.

    scripts/bench_report.py [--folder var/benchmarks] [--out bench/reports/latest.md]
    scripts/bench_report.py --summary extreme [--out bench/reports/extreme.md]

With --summary the page is that of one scenario's newest artefact alone, without its course: small, and to be committed.
Takes the artefacts that scripts/bench_simulation.py has written. One that does not say what was solved is left out and named.
Exit code 1 means that there is nothing to report. Needs Python 3.11 and nothing else.
"""

import argparse
import json
import pathlib
import sys

sys.dont_write_bytecode = True

from bench_check import LIMITS, PLAN, POPULATION, bounds, lacking
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


def newest_of(scenario, name, artefact):
    """What was measured, and with what."""
    engine, process, machine = artefact["engine"], artefact["processMetrics"], artefact["machine"]
    return [
        markdown(artefact).replace("## Simulations", f"## {scenario}: simulations", 1),
        f"From {name}: engine {engine['name']}, program {engine['binarySha256'][:12]}, model {artefact['model']['sha256'][:12]}; the server's own "
        f"process had {process['cpuSeconds']:.1f} s of CPU and at most {process['rssBytesPeak'] / 1e6:.0f} MB; load average {machine['load']:.1f} at the "
        f"end. The journal has the wait of {artefact['journal']['jobs']} jobs for a worker as clients were told it, to {artefact['journal']['queueWaitOffMs']:g} ms.",
        "",
    ]


def summary(scenario, artefacts):
    """One artefact as a page: what was measured, and each of the plan's bounds."""
    name, newest = artefacts[-1]
    lines = [f"# Simulations: the newest {scenario} run", "", *newest_of(scenario, name, newest), "| bound of the plan | found | |", "|---|--:|---|"]
    rows = bounds(newest, PLAN, POPULATION["plan"])
    return "\n".join(lines + [f"| {step} {most} | {seen} | {'met' if met else 'short'} |" for met, step, seen, most in rows] + [""])


def page(found, wrong):
    lines = ["# Measurements of simulations", ""]
    for scenario, artefacts in found.items():
        if not artefacts:
            continue
        name, newest = artefacts[-1]
        lines += newest_of(scenario, name, newest)
        for title, names in newest["phases"].items():
            lines += phase(title, newest, names)
        lines += course(artefacts)
    if wrong:
        lines += ["## Left out", "", *(f"- {line}" for line in wrong), ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("var/benchmarks"), help="of artefacts [default: var/benchmarks]")
    parser.add_argument("--summary", choices=SCENARIOS, help="of this scenario alone, as a page to be committed")
    parser.add_argument("--out", type=pathlib.Path, help="[default: bench/reports/latest.md, or the scenario's name]")
    args = parser.parse_args()
    found, wrong = read(args.folder)
    for line in wrong:
        print(f"warning: {line}", file=sys.stderr)
    if not (found[args.summary] if args.summary else any(found.values())):
        of = f" of {args.summary}" if args.summary else ""
        print(f"error: {args.folder} has no artefact{of} that can be used; run make benchmark first", file=sys.stderr)
        sys.exit(1)
    out = args.out or pathlib.Path("bench/reports") / f"{args.summary or 'latest'}.md"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(summary(args.summary, found[args.summary]) if args.summary else page(found, wrong))
    print(out)


if __name__ == "__main__":
    main()
