"""What a measurement of simulations is held against: bounds, and an earlier measurement."""

import json
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
    "cancelled_to_rest": 50.0,
    "timed_out_to_rest": 50.0,
}
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
    return 1.0 if step.startswith(("queue_wait", "execution")) else 5.0 if step.endswith("_to_rest") else 0.0


def bounds(artefact, limits, of_all):
    """A row for each bound: whether it is met, what it is of, what was found, and the bound."""
    steps, rows = artefact["steps"], []
    for step, limit in limits.items():
        found = steps.get(step)
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


def check(args):
    """Prints a row for each bound; gives the exit code."""
    artefact = usable(args.artefact)
    rows = []
    if args.limits:
        rows += bounds(artefact, LIMITS, POPULATION["limits"])
    if args.plan:
        rows += bounds(artefact, PLAN, POPULATION["plan"])
    if args.baseline:
        rows += against(artefact, usable(args.baseline), args.tolerance)
    for step, found in artefact["steps"].items():
        if step.startswith("cold_") and COLD_WARN_MS < found["max"] <= COLD_FAIL_MS:
            print(f"warning: {step}: {found['max']} ms is above {COLD_WARN_MS:g} ms")
    if not rows:
        refuse("nothing to hold the artefact against: say --limits, --plan or --baseline FILE")
    wide, wider = (max(len(row[at]) for row in rows) for at in (1, 2))
    for met, step, found, bound in rows:
        print(f"{'pass ' if met else 'short'}  {step:{wide}}  {found:{wider}}  {bound}")
    short = sum(not row[0] for row in rows)
    print(f"{'passed' if not short else 'failed'}: {len(rows) - short} of {len(rows)}")
    return 1 if short else 0
