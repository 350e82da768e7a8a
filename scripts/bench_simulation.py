#!/usr/bin/env python3
"""Measures the simulation server through the gate, with the journal on, as a client sees it.

    scripts/bench_simulation.py run --durward FILE --scenario smoke|baseline|stress|extreme [--transport rest|mcp-http|mcp-stdio]
    scripts/bench_simulation.py check ARTEFACT [--baseline ARTEFACT] [--tolerance 10] [--limits] [--plan]
    scripts/bench_simulation.py check ARTEFACT... --baseline ARTEFACT...

`run` generates its models, starts Durward, and writes one JSON artefact. `check` holds an artefact against another one and
against bounds, one row each; an artefact that does not say which engine solved which model in how many steps is refused.
Several artefacts that were measured in turn with as many others are compared pair by pair, which holds on a busy machine.
Exit code 1 means that something is too slow, 2 that an artefact cannot be used. Needs Python 3.11 and nothing else.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True

import bench_clients
from bench_check import LIMITS, check, lacking
from bench_clients import cpu_and_memory, moment, started, temporary
from bench_models import ROOT, model
from bench_profile import Recorder, write

WORKLOAD = ROOT / "workloads" / "population_1k.json"
MIB = 1 << 20
# The model that is run, and what is read and set in it.
CHAIN, PARAMETER, OUTPUT = "chain.xml", "Bench|Weight", "Bench|Chain|A0"
# What is set in a model of a whole body.
WHOLE_BODY_PARAMETER = "Organism|Weight"
# iterations, sizes of models to load in MB, clients at a time, individuals, replicates
SCENARIOS = {
    "smoke": (5, [0.1], [1], 20, 1),
    "baseline": (40, [4, 10], [1], 100, 1),
    "stress": (40, [4, 10], [1, 4, 8], 1000, 10),
    "extreme": (40, [4, 10, 25], [1, 4, 8], 10000, 10),
}
# Runs that are cancelled, and as many that run out of time.
STOPS, STOPS_OF_SMOKE = 20, 5
# How long workers that rest have computed nothing, in seconds, and how much of a look of some milliseconds is nothing.
QUIET_S, LOOK_NS = 0.1, 200_000
# Individuals of a chunk that are read over MCP.
SUBJECTS = 10
# Columns that are read for the throughput of chunks, at least, where the scenario is no smoke.
CHUNK_BYTES_MIN = 256 * MIB


def numbers(values):
    """Count, least, most, mean and percentiles; between two ranks a straight line."""
    values = sorted(values)

    def at(part):
        place = part * (len(values) - 1)
        low = int(place)
        high = min(low + 1, len(values) - 1)
        return values[low] + (values[high] - values[low]) * (place - low)

    figures = {"min": values[0], "max": values[-1], "mean": sum(values) / len(values), "p50": at(0.5), "p90": at(0.9), "p95": at(0.95)}
    return {"count": len(values)} | {name: round(value, 3) for name, value in figures.items()}


def together(count, work):
    """Does the work on so many threads; gives all that they gave."""
    given, wrong = [], []

    def one(number):
        try:
            given.append(work(number))
        except BaseException as error:  # told by whoever waits
            wrong.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]
    return given


def loads(server, sizes, iterations):
    """Loads distinct files of each size: the first one cold, its engine never used before."""
    steps, client = {}, server.client()
    for megabytes in sizes:
        times = []
        for number in range(iterations + 1):
            name = f"load-{megabytes}-{number}.xml"
            (server.place / "models" / name).write_text(model(number + 1, int(megabytes * 1_000_000)), encoding="utf-8")
            took, _ = client.post("/load_simulation", filePath=name, simulationId=name, confirm=True)
            (server.place / "models" / name).unlink()
            times.append(took)
        label = f"{megabytes:g}mb".replace(".", "_")
        steps[f"load_simulation_{label}"] = numbers(times[1:])
        steps[f"cold_load_simulation_{label}"] = numbers(times[:1])
    return steps


def session(server, iterations, name, file, parameter, one_curve=False):
    """Get, set and run, one after another, in a client of its own; of a model that is not generated all curves are read, or the first."""
    client, outputs = server.client(), {"outputs": [OUTPUT]} if file == CHAIN else {}
    client.post("/load_simulation", filePath=file, simulationId=name, confirm=True)
    steps = ("get_parameter_value", "set_parameter_value", "submission_to_running", "queue_wait", "execution", "serialisation", "run_to_results")
    times, solver, waits = {step: [] for step in steps}, None, {}
    path = {"simulationId": name, "parameterPath": parameter}
    at_first = client.post("/get_parameter_value", **path)[1]["parameter"]["value"]
    for iteration in range(iterations + 1):
        got, _ = client.post("/get_parameter_value", **path)
        put, _ = client.post("/set_parameter_value", **path, value=at_first * (1 + iteration % 20 / 100), confirm=True)
        began = time.perf_counter()
        _, job = client.post("/run_simulation", simulationId=name, confirm=True)
        runs, last = client.follow(job["jobId"], began)
        read, _ = client.post("/get_simulation_results", resultsId=last["resultId"], **outputs)
        whole = (time.perf_counter() - began) * 1000
        # As the server's own records have it, in whole milliseconds.
        submitted, running, finished = (moment(last[name]) for name in ("submittedAt", "startedAt", "finishedAt"))
        waited, ran = (running - submitted) * 1000, (finished - running) * 1000
        waits[job["jobId"]] = waited
        if iteration > 0:
            for step, took in zip(steps, (got, put, runs, waited, ran, read, whole)):
                times[step].append(took)
        else:
            told = client.tool("get_results", resultsId=last["resultId"], page=1, limit=1, **outputs)
            solver = told["metadata"]["solver"]
            if one_curve:
                outputs = {"outputs": [told["series"][0]["parameter"]]}
    client.close()
    return times, solver, waits


def served(server, file):
    """The name under which a server can load a copy of a model."""
    shutil.copy(file, server.place / "models" / pathlib.Path(file).name)
    return pathlib.Path(file).name


def journalled(place, waits):
    """What the journal has of the same jobs, once the server has ended, and the greatest difference of their waits for a worker."""
    words = [place.durward, "audit", "--state-dir", "state", "show", "--json", "--limit", "1000000"]
    shown = subprocess.run(words, cwd=place.place, stdout=subprocess.PIPE, text=True, check=True).stdout
    records = (json.loads(line) for line in shown.splitlines() if '"job_ended"' in line)
    kept = {record["job_id"]: record["queue_wait_us"] / 1000 for record in records if record["event"] == "job_ended"}
    if missing := waits.keys() - kept.keys():
        raise SystemExit(f"error: the journal does not have the end of {len(missing)} jobs, such as {min(missing)}")
    return {"jobs": len(waits), "queueWaitOffMs": round(max(abs(kept[job] - waited) for job, waited in waits.items()), 3)}


def population(client, size, replicates):
    """Runs the workload's cohort so often, each with a seed of its own; gives the seconds, the results, and the solver's steps."""
    workload = json.loads(WORKLOAD.read_text())
    client.post("/load_simulation", filePath=CHAIN, simulationId="cohort", confirm=True)
    outputs = {"timeSeries": workload["outputs"], "aggregates": workload["aggregates"]}
    began, jobs = time.perf_counter(), []
    for replicate in range(replicates):
        cohort = {"size": size, "seed": workload["firstSeed"] + replicate, "covariates": workload["covariates"]}
        asked = {"simulationId": "cohort", "cohort": cohort, "outputs": outputs, "modelPath": CHAIN, "confirm": True}
        jobs.append(client.post("/run_population_simulation", **asked)[1]["jobId"])
    results = [client.follow(job, began)[1]["resultId"] for job in jobs]
    took = time.perf_counter() - began
    told = [client.tool("get_population_results", resultsId=name) for name in results]
    return took, told, sum(one["metadata"]["solver"]["steps"] for one in told)


def busy_ns(pid):
    """CPU time that the children of a process have had, in nanoseconds."""
    total = 0
    for children in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in children.read_text().split():
                total += sum(int(task.read_text().split()[0]) for task in pathlib.Path(f"/proc/{child}/task").glob("*/schedstat"))
        except OSError:
            continue  # ended meanwhile
    return total


def rests(pid, ended):
    """The time, as `time.time()` has it, at which the workers of a process last computed something.

    Looks from now until they have computed nothing for a while after `ended()`.
    """
    deadline, last, seen = time.time() + 30, None, busy_ns(pid)
    while not ended() or last is None or time.time() < last + QUIET_S:
        if time.time() > deadline:
            raise SystemExit("error: the workers go on after the end of their job, or were never seen to compute")
        time.sleep(0.002)
        now = busy_ns(pid)
        # One that waits wakes up now and then for some microseconds.
        if now > seen + LOOK_NS:
            last = time.time()
        seen = now
    return last


def stops(server, count):
    """Milliseconds until the solver rests: after the call that cancels a run, and after the time that a run was given.

    The workers are looked at all the while: when the caller is told has no part in it.
    """
    client, steps = server.client(), {"cancelled_to_rest": [], "timed_out_to_rest": []}
    client.post("/load_simulation", filePath=CHAIN, simulationId="stops", confirm=True)
    large = {"simulationId": "stops", "cohort": {"size": 500_000}}

    def begun(**more):
        job = client.tool("run_population_simulation", **large, **more)["jobId"]
        while (told := client.tool("get_job_status", jobId=job)).get("progress", {}).get("done", 0) == 0:
            if told["status"] not in ("queued", "running"):
                raise SystemExit(f"error: the job ended before it had computed anything: {told}")
            time.sleep(0.005)
        return job

    def until(work, *args, **kwargs):
        """Has a thread do the work; gives what that gave, and when the workers rested."""
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            call = thread.submit(work, *args, **kwargs)
            last = rests(client.process.pid, call.done)
            return call.result(), last

    for _ in range(count):
        job, since = begun(), time.time()
        _, last = until(client.post, "/cancel_job", jobId=job)
        steps["cancelled_to_rest"].append(max(0.0, last - since) * 1000)
        job = begun(timeoutSeconds=1)
        told, last = until(client.tool, "get_job_status", jobId=job, waitSeconds=60)
        if told["status"] != "timeout":
            raise SystemExit(f"error: the job was not ended at its time: {told}")
        steps["timed_out_to_rest"].append(max(0.0, last - told["startedAt"] - 1) * 1000)
    return {step: numbers(values) for step, values in steps.items()}


def chunks(client, told, bytes_min):
    """Reads columns until there are enough bytes; gives MB/s of the reading. Each chunk's checksum is held against its bytes.

    Over MCP there are no columns: each chunk is read once, as JSON.
    """
    size, took, at = 0, 0.0, 0
    if not client.has_columns:
        for one in told:
            for chunk in one["chunks"]:
                subjects = list(range(*chunk["subjectRange"]))[:SUBJECTS]
                ms, part = client.post("/get_population_chunk", resultsId=one["resultsId"], chunkId=chunk["chunkId"], subjects=subjects)
                size, took, at = size + len(json.dumps(part)), took + ms / 1000, at + 1
        return {"form": "json", "bytes": size, "requests": at, "mbPerSecond": round(size / took / 1e6, 1)}
    paths = []
    for one in told:
        paths += [f"/population_results/{one['resultsId']}/chunks/{chunk['chunkId']}?format=columns" for chunk in one["chunks"]]
    while size < bytes_min or at < len(paths):
        ms, body, headers = client.ask("GET", paths[at % len(paths)])
        if hashlib.sha256(body).hexdigest() != headers["x-content-sha256"]:
            raise SystemExit(f"error: the bytes of {paths[at % len(paths)]} are not those of its checksum")
        size, took, at = size + len(body), took + ms / 1000, at + 1
    return {"form": "columns", "bytes": size, "requests": at, "mbPerSecond": round(size / took / 1e6, 1)}


def measure(args):
    iterations, sizes, clients, size, replicates = SCENARIOS[args.scenario]
    clients = args.concurrency or clients
    iterations = args.iterations or iterations
    sizes = args.load_mb or sizes
    size, replicates = args.subjects or size, args.replicates or replicates
    with temporary() as folder:
        server, stacks = started(args.durward, pathlib.Path(folder), args.transport), None
        waits = {}
        recorder = Recorder(server.process.pid, pathlib.Path(folder) / "perf.data") if args.profile else None
        try:
            (server.place / "models" / CHAIN).write_text(model(0), encoding="utf-8")
            file = served(server, args.simulation_file) if args.simulation_file else CHAIN
            began = time.time()
            steps, solver = loads(server, sizes, iterations), None
            for count in clients:
                for times, found, waited in together(count, lambda number: session(server, iterations, f"s-{count}-{number}", file, args.parameter_path)):
                    solver, waits = solver or found, waits | waited
                    for step, values in times.items():
                        name = step if count == 1 else f"{step}_{count}_clients"
                        steps.setdefault(name, []).extend(values)
            body = None
            if args.whole_body:
                times, body, waited = session(server, iterations, "whole-body", served(server, args.whole_body), WHOLE_BODY_PARAMETER, one_curve=True)
                waits |= waited
                steps |= {f"whole_body_{step}": times[step] for step in ("execution", "serialisation", "run_to_results")}
            steps = {name: values if isinstance(values, dict) else numbers(values) for name, values in steps.items()}
            steps |= stops(server, min(iterations, STOPS_OF_SMOKE if args.scenario == "smoke" else STOPS))
            # Over standard streams a result is known to the client that made it only.
            client = server.client()
            before = busy_ns(client.process.pid)
            seconds, told, solved = population(client, size, replicates)
            computed = (busy_ns(client.process.pid) - before) / 1e9
            enough = CHUNK_BYTES_MIN if args.scenario in ("stress", "extreme") and not args.subjects else 0
            read = chunks(client, told, enough)
            cpu, peak = cpu_and_memory(server.process.pid)
            stacks = recorder.stop() if recorder else None
        finally:
            server.stop()
        journal = journalled(server, waits)
    digest = hashlib.sha256(pathlib.Path(args.durward).read_bytes()).hexdigest()
    return stacks, {
        "timestamp": time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(began)),
        "scenario": args.scenario,
        "label": args.label,
        "config": {"iterations": iterations, "loadMb": sizes, "clients": clients, "transport": args.transport, "subjects": size, "replicates": replicates},
        "engine": {"name": solver["engine"], "binarySha256": digest},
        "model": {"sha256": solver["modelSha256"], "states": solver["states"]},
        "wholeBody": body and {"sha256": body["modelSha256"], "states": body["states"], "stepsOfOneRun": body["steps"]},
        "solver": {"stepsOfOneRun": solver["steps"], "stepsOfPopulation": solved},
        "phases": phases(steps),
        "steps": steps,
        "population": {"seconds": round(seconds, 3), "workerCpuSeconds": round(computed, 3), "individuals": size * replicates, "workloadSha256": hashlib.sha256(WORKLOAD.read_bytes()).hexdigest()},
        "chunks": read,
        "journal": journal,
        "processMetrics": {"cpuSeconds": cpu, "rssBytesPeak": peak, "clientCpuSeconds": sum(resource.getrusage(resource.RUSAGE_SELF)[:2])},
        "machine": {"cores": os.cpu_count(), "load": os.getloadavg()[0]},
    }


def phases(steps):
    """The steps of each phase: the first use of an engine, one client with what it has used before, several clients."""
    names = {"cold": [], "steady": [], "stress": []}
    for step in sorted(steps):
        phase = "cold" if step.startswith("cold_") else "stress" if step.endswith("_clients") else "steady"
        names[phase].append(step)
    return names


# The transports, as readers call them.
WAYS = {"rest": "HTTP", "mcp-http": "MCP by HTTP", "mcp-stdio": "MCP by standard streams"}


def markdown(artefact):
    """The artefact as a section for readers."""
    rows = [f"| {step} | {found['p50']} | {found['p95']} | {LIMITS.get(step, '')} |" for step, found in sorted(artefact["steps"].items())]
    population, read, solver, body = artefact["population"], artefact["chunks"], artefact["solver"], artefact.get("wholeBody")
    return "\n".join(
        [
            f"## Simulations over {WAYS[artefact['config']['transport']]}, through the gate, the journal on",
            "",
            f"Scenario {artefact['scenario']}, {artefact['config']['iterations']} iterations, {artefact['machine']['cores']} cores; a model of "
            f"{artefact['model']['states']} states, {solver['stepsOfOneRun']} steps a run. Every load is of a file of its own."
            + (f" The whole body has {body['states']} states, {body['stepsOfOneRun']} steps a run." if body else ""),
            "",
            "| step | p50 ms | p95 ms | aimed at |",
            "|---|--:|--:|--:|",
            *rows,
            "",
            f"{population['individuals']} individuals took {population['seconds']} s ({solver['stepsOfPopulation']} steps). "
            f"{read['bytes'] / 1e6:.0f} MB of chunks were read at {read['mbPerSecond']} MB/s"
            + (", each compared with its checksum." if read["form"] == "columns" else ", as JSON."),
            "",
        ]
    )


# Flags of the bridge's benchmark that have no meaning here.
OWN_SERVER = "the server is one of the benchmark's own, so that it is known what is measured, and it has no sign-in"
REFUSED = dict.fromkeys(["--base-url", "--token", "--roles", "--subject", "--dev-secret"], OWN_SERVER) | {
    "--job-timeout": "a job is followed to its end; the server ends one by its job_timeout",
} | dict.fromkeys(
    [f"--celery-{name}" for name in ("broker-url", "result-backend", "task-always-eager", "task-eager-propagates", "inmemory-worker", "worker-concurrency")],
    "jobs run in worker processes of Durward, and not in Celery",
)


class Refused(argparse.Action):
    """A flag that is known and not taken: the reason is in `const`."""

    def __call__(self, parser, namespace, values, option=None):
        parser.error(f"{option}: {self.const}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="make benchmark-report writes a page of all artefacts.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="measure, and write an artefact")
    run.add_argument("--durward", required=True, help="the program")
    run.add_argument("--scenario", choices=SCENARIOS, default="smoke")
    run.add_argument("--iterations", type=int, help="instead of the scenario's")
    run.add_argument("--transport", choices=[*WAYS, "http"], default="rest", help="how the client speaks; http is rest [default: rest]")
    run.add_argument("--concurrency", type=int, nargs="+", help="clients at a time, instead of the scenario's")
    run.add_argument("--load-mb", type=float, nargs="+", help="sizes of the models that are loaded, instead of the scenario's")
    run.add_argument("--subjects", type=int, help="individuals of the population, instead of the scenario's")
    run.add_argument("--replicates", type=int, help="runs of the population, instead of the scenario's")
    run.add_argument("--label", help="a word that is kept with the artefact")
    run.add_argument("--out", "--output-dir", default="var/benchmarks", help="folder of artefacts [default: var/benchmarks]")
    run.add_argument("--simulation-file", help="a model that is loaded and run, instead of a generated one of 120 states")
    run.add_argument("--whole-body", help="a model of a whole body, which is run besides and read by its first curve")
    run.add_argument("--parameter-path", default=PARAMETER, help=f"the parameter that is read and set [default: {PARAMETER}]")
    run.add_argument("--request-timeout", type=float, default=600, help="longest wait for an answer, in seconds [default: 600]")
    run.add_argument("--poll-interval", type=float, default=0.0005, help="how often a client of MCP looks whether its job has begun, in seconds [default: 0.0005]")
    run.add_argument("--profile-output", help="where the flame graph is written [default: beside the artefact]")
    run.add_argument("--profile-top", type=int, default=25, help="functions at the top that the artefact names [default: 25]")
    run.add_argument("--job-backend", choices=["thread"], default="thread", help="jobs run in worker processes of Durward; there is no other back end")
    for flag, why in REFUSED.items():
        run.add_argument(flag, action=Refused, nargs="*", help=argparse.SUPPRESS, const=why)
    run.add_argument("--profile", action="store_true", help="record with perf: a flame graph beside the artefact, and the 25 functions at the top")
    run.add_argument("--markdown", help="also write a section for readers there")
    held = commands.add_parser("check", help="hold an artefact against limits or another one")
    held.add_argument("artefact", nargs="+")
    held.add_argument("--baseline", nargs="+", help="what was measured before; as many as there are artefacts, in the order in which they were measured in turn")
    held.add_argument("--tolerance", type=float, default=10.0, help="per cent [default: 10]")
    held.add_argument("--limits", action="store_true", help="hold it against what is aimed at on a quiet machine")
    held.add_argument("--plan", action="store_true", help="hold it against the plan's own bounds, with 10 per cent on the 12 minutes of the population")
    args = parser.parse_args()
    if args.command == "check":
        sys.exit(check(args))
    args.transport = "rest" if args.transport == "http" else args.transport
    bench_clients.WAIT_S, bench_clients.LOOK_S = args.request_timeout, args.poll_interval
    stacks, artefact = measure(args)
    folder = pathlib.Path(args.out)
    folder.mkdir(parents=True, exist_ok=True)
    way = "" if args.transport == "rest" else f"-{args.transport}"
    file = folder / f"{artefact['timestamp']}-{args.scenario}{way}.json"
    if stacks is not None:
        artefact["profile"] = write(stacks, args.profile_output or file, f"{args.scenario} of {artefact['timestamp']}", args.profile_top)
    file.write_text(json.dumps(artefact, indent=1) + "\n")
    if args.markdown:
        pathlib.Path(args.markdown).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(args.markdown).write_text(markdown(artefact))
    print(file)


if __name__ == "__main__":
    main()
