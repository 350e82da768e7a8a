"""What a measurement of simulations is held against: bounds, and an earlier measurement."""

import itertools
import json
import math
import pathlib
import sys

# p95 in ms, what is aimed at on two quiet cores: over HTTP, the server's own paths.
LIMITS = {
    "load_simulation_4mb": 50.0,
    "load_simulation_10mb": 100.0,
    "get_parameter_value": 1.0,
    "set_parameter_value": 2.0,
    "submission_to_running": 5.0,
    "run_to_results": 10.0,
    "whole_body_run_to_results": 10.0,
    "cancelled_to_rest": 50.0,
    "timed_out_to_rest": 50.0,
}
# Of a model that is not generated, and is measured where somebody has one.
WHERE_GIVEN = ("whole_body_run_to_results",)
# The plan's own bounds, p95 in ms.
PLAN = {
    "load_simulation_10mb": 2500.0,
    "get_parameter_value": 150.0,
    "set_parameter_value": 200.0,
    "submission_to_running": 1000.0,
    "run_to_results": 30000.0,
}
# Cold loads: above the first a warning, above the second a failure, in ms.
COLD_WARN_MS, COLD_FAIL_MS = 3500.0, 5000.0
# Seconds for 10,000 individuals, and MB/s of chunks: what is aimed at, and the plan's 12 minutes with 10 per cent on them.
POPULATION = {"limits": (6.0, 500.0), "plan": (12 * 60 * 1.1, 50.0)}
INDIVIDUALS = 10_000
# The wait for a worker that clients are told and the one in the journal differ by no more, in ms.
QUEUE_WAIT_OFF_MS = 1.0


def refuse(why):
    print(f"error: {why}", file=sys.stderr)
    sys.exit(2)


def lacking(artefact):
    """What an artefact does not say of what was solved; empty where it says all."""
    for path, fits in {
        "engine.name": lambda value: value == "native",
        "engine.binarySha256": lambda value: len(str(value)) == 64,
        "model.sha256": lambda value: len(str(value)) == 64,
        "model.states": lambda value: value >= 100,
        "solver.stepsOfOneRun": lambda value: value > 0,
        "solver.stepsOfPopulation": lambda value: value > 0,
        "steps.run_to_results.p95": lambda value: value > 0,
        "population.seconds": lambda value: value > 0,
        "journal.jobs": lambda value: value > 0,
        "journal.queueWaitOffMs": lambda value: value <= QUEUE_WAIT_OFF_MS,
    }.items():
        value = artefact
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value is None or not fits(value):
            return f"{path} is {value!r}: the artefact does not say what was solved"
    return ""


def usable(name):
    """Reads an artefact; refuses one that does not say what was solved."""
    try:
        artefact = json.loads(pathlib.Path(name).read_text())
    except (OSError, ValueError) as error:
        refuse(f"{name} cannot be read: {error}")
    if why := lacking(artefact):
        refuse(f"{name}: {why}")
    return artefact


def grain(step):
    """How exact the times of a step are, in ms: those of the server's records are whole, and workers are looked at now and then."""
    return 1.0 if step.removeprefix("whole_body_").startswith(("queue_wait", "execution")) else 5.0 if step.endswith("_to_rest") else 0.0


def bounds(artefact, limits, of_all):
    """A row for each bound: whether it is met, what it is of, what was found, and the bound."""
    steps, rows = artefact["steps"], []
    for step, limit in limits.items():
        found = steps.get(step)
        if found is None and step in WHERE_GIVEN:
            continue
        rows.append((found is not None and found["p95"] <= limit, step, f"p95 {found['p95']} ms" if found else "was not measured", f"<= {limit:g} ms"))
    for step, found in steps.items():
        if step.startswith("cold_"):
            rows.append((found["max"] <= COLD_FAIL_MS, step, f"{found['max']} ms", f"<= {COLD_FAIL_MS:g} ms"))
    seconds_max, mb_s_min = of_all
    population, chunks = artefact["population"], artefact["chunks"]
    if population["individuals"] >= INDIVIDUALS:
        most = seconds_max * population["individuals"] / INDIVIDUALS
        rows.append((population["seconds"] <= most, f"population of {population['individuals']}", f"{population['seconds']} s", f"<= {most:g} s"))
    if chunks["form"] == "columns":
        rows.append((chunks["mbPerSecond"] >= mb_s_min, "chunks", f"{chunks['mbPerSecond']} MB/s of {chunks['bytes'] / 1e6:.0f} MB", f">= {mb_s_min:g} MB/s"))
    return rows


def against(artefact, before, tolerance):
    """As `bounds`, against an earlier artefact."""
    if before["model"] != artefact["model"] or before["config"] != artefact["config"]:
        refuse("the two artefacts are not of the same model and configuration")
    factor, rows = 1 + tolerance / 100, []
    for step, found in before["steps"].items():
        now, most = artefact["steps"].get(step), found["p95"] * factor + grain(step)
        if now is None:
            rows.append((False, step, "is missing", f"<= {most:.3f} ms"))
        elif not step.startswith("cold_"):
            rows.append((now["p95"] <= most, step, f"p95 {now['p95']} ms", f"<= {most:.3f} ms ({found['p95']} ms before)"))
    now, was = artefact["population"]["seconds"], before["population"]["seconds"]
    rows.append((now <= was * factor, "population", f"{now} s", f"<= {was * factor:.3f} s ({was} s before)"))
    return rows


# How often a check of pairs may fail where nothing is slower, over all steps.
FALSE_ALARMS = 0.05
# Most pairs: all ways to set their signs are counted.
PAIRS_MAX = 16


def chance(logs):
    """How often ratios whose signs are as likely one as the other have a mean that is as great as this one: each way to set the signs is counted."""
    found = sum(logs) - 1e-12
    ways = itertools.product(*((value, -value) for value in logs))
    return sum(sum(way) >= found for way in ways) / 2 ** len(logs)


def paired(artefacts, befores, tolerance):
    """As `against`, for artefacts that were measured in turn: what else the machine does is in both of a pair.

    A step is too slow where the mean of its ratios is above the tolerance and chance hardly gives such a mean.
    """
    if any(one["model"] != befores[0]["model"] or one["config"] != befores[0]["config"] for one in [*artefacts, *befores]):
        refuse("the artefacts are not of the same model and configuration")
    steps = {step for before in befores for step in before["steps"] if not step.startswith("cold_")}
    # What the workers had of the processors is the engine's alone: other work on the machine delays it and hardly adds to it.
    of_all = {"population": "seconds", "population, CPU": "workerCpuSeconds"}
    level = FALSE_ALARMS / (len(steps) + len(of_all))
    if len(artefacts) > PAIRS_MAX:
        refuse(f"{len(artefacts)} pairs are more than {PAIRS_MAX}")
    if 2 ** -len(artefacts) > level:
        refuse(f"{len(artefacts)} pairs cannot tell a slower one from chance in {len(steps) + len(of_all)} steps: {math.ceil(-math.log2(level))} can")
    rows = []
    for step in [*sorted(steps), *of_all]:
        try:
            of = lambda one: one["population"][of_all[step]] * 1000 if step in of_all else one["steps"][step]["p95"]
            logs = [math.log((of(now) + grain(step) + 1e-6) / (of(was) + grain(step) + 1e-6)) for now, was in zip(artefacts, befores)]
        except KeyError:
            rows.append((False, step, "is missing", f"<= {1 + tolerance / 100:g}"))
            continue
        ratio, luck = math.exp(sum(logs) / len(logs)), chance(logs)
        rows.append((ratio <= 1 + tolerance / 100 or luck > level, step, f"ratio {ratio:.3f}, chance {luck:.4f}", f"<= {1 + tolerance / 100:g}, or chance > {level:.4f}"))
    return rows


def check(args):
    """Prints a row for each bound; gives the exit code."""
    if len(args.artefact) > 1:
        if args.limits or args.plan or len(args.baseline or []) != len(args.artefact):
            refuse("several artefacts are compared with as many of --baseline, in pairs, and with nothing else")
        return told(paired([usable(name) for name in args.artefact], [usable(name) for name in args.baseline], args.tolerance))
    if len(args.baseline or []) > 1:
        refuse("one artefact is compared with one of --baseline")
    artefact = usable(args.artefact[0])
    rows = []
    if args.limits:
        rows += bounds(artefact, LIMITS, POPULATION["limits"])
    if args.plan:
        rows += bounds(artefact, PLAN, POPULATION["plan"])
    if args.baseline:
        rows += against(artefact, usable(args.baseline[0]), args.tolerance)
    for step, found in artefact["steps"].items():
        if step.startswith("cold_") and COLD_WARN_MS < found["max"] <= COLD_FAIL_MS:
            print(f"warning: {step}: {found['max']} ms is above {COLD_WARN_MS:g} ms")
    if not rows:
        refuse("nothing to hold the artefact against: say --limits, --plan or --baseline FILE")
    return told(rows)


def told(rows):
    """Prints the rows; gives the exit code."""
    wide, wider = (max(len(row[at]) for row in rows) for at in (1, 2))
    for met, step, found, bound in rows:
        print(f"{'pass ' if met else 'short'}  {step:{wide}}  {found:{wider}}  {bound}")
    short = sum(not row[0] for row in rows)
    print(f"{'passed' if not short else 'failed'}: {len(rows) - short} of {len(rows)}")
    return 1 if short else 0
