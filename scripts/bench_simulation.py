#!/usr/bin/env python3
"""Measures the simulation server through the gate, with the journal on, as a client sees it over HTTP.

    scripts/bench_simulation.py run --durward FILE --scenario smoke|baseline|stress|extreme [--out FOLDER] [--markdown FILE]
    scripts/bench_simulation.py check ARTEFACT [--baseline ARTEFACT] [--tolerance 10] [--limits]

`run` generates its models, starts `durward serve`, and writes one JSON artefact. `check` holds an artefact against another one
and against the limits of the plan; an artefact that does not say which engine solved which model in how many steps is refused.
Exit code 1 means that something is too slow, 2 that an artefact cannot be used. Needs Python 3.11 and nothing else.
"""

import argparse
import datetime
import hashlib
import http.client
import json
import os
import pathlib
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True

from bench_models import ROOT, model

WORKLOAD = ROOT / "workloads" / "population_1k.json"
MIB = 1 << 20
WAIT_S = 600
# iterations, sizes of models to load in MB, clients at a time, individuals, replicates
SCENARIOS = {
    "smoke": (5, [0.1], [1], 20, 1),
    "baseline": (40, [4, 10], [1], 100, 1),
    "stress": (40, [4, 10], [1, 4, 8], 1000, 10),
    "extreme": (40, [4, 10, 25], [1, 4, 8], 10000, 10),
}
# p95 in ms, totals in s, throughput in MB/s: what is aimed at on two quiet cores
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
# Runs that are cancelled, and as many that run out of time.
STOPS = 5
# How long workers that rest have computed nothing, in seconds.
QUIET_S = 0.1
# Cold loads: above the first a warning, above the second a failure, in ms.
COLD_WARN_MS, COLD_FAIL_MS = 3500.0, 5000.0
POPULATION_S_MAX, CHUNKS_MB_S_MIN = 6.0, 500.0
# Columns that are read for the throughput of chunks, at least, where the scenario is no smoke.
CHUNK_BYTES_MIN = 256 * MIB


class Server:
    """A `durward serve` of its own, with rules that let all pass."""

    def __init__(self, durward, place, models=None):
        self.place = place
        models = models or place / "models"
        models.mkdir(exist_ok=True)
        server = {"builtin": "simulation", "models": [str(models)], "results_bytes": "64GiB", "simulations_max": 1000}
        # What is JSON is YAML too.
        (place / "durward.yaml").write_text(json.dumps({"servers": {"pbpk": server}}) + "\n")
        rules = {"rules": [{"id": "all", "effect": "allow", "conditions": {"mcp_method": "*"}}, {"id": "tools", "effect": "allow", "conditions": {"tool_name": "*"}}]}
        (place / "policy.json").write_text(json.dumps(rules))
        limits = ["--limit-requests", "1000000/s", "--limit-burst", "1000000", "--limit-tool-calls", "1000000", "--limit-concurrency", "1000"]
        words = [durward, "--config", "durward.yaml", "--state-dir", "state", "serve", "--policy", "policy.json", "--listen", "127.0.0.1:0", *limits]
        environment = {**os.environ, "XDG_RUNTIME_DIR": str(place / "runtime")}
        self.process = subprocess.Popen(words, cwd=place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline().strip()
        if not line:
            raise SystemExit("error: durward serve did not start")
        self.host, port = line.rsplit("/", 1)[1].rsplit(":", 1)
        self.port = int(port)

    def cpu_and_memory(self):
        """CPU seconds, and most resident bytes, of the server's own process."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), int(peak.split()[1]) * 1024

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


class Client:
    """One kept connection. Every answer is checked: what failed is no fast answer."""

    def __init__(self, server):
        self.connection = http.client.HTTPConnection(server.host, server.port, timeout=WAIT_S)
        self.connection.connect()
        self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, method, path, body=None):
        """Gives the milliseconds and the body."""
        sent = None if body is None else json.dumps(body)
        began = time.perf_counter()
        self.connection.request(method, path, sent, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        told = answer.read()
        took = (time.perf_counter() - began) * 1000
        if answer.status >= 300:
            raise SystemExit(f"error: {path}: {answer.status} {told[:500]!r}")
        return took, told, answer.headers

    def post(self, path, **body):
        took, told, _ = self.ask("POST", path, body)
        return took, json.loads(told)

    def tool(self, name, **arguments):
        return self.post("/mcp/call_tool", tool=name, arguments=arguments, critical=True)[1]["structuredContent"]

    def follow(self, job, began):
        """Reads a job's events to their end: milliseconds from `began` to the first that is not `queued`, and the last event.

        Fails where the job did not succeed.
        """
        self.connection.request("GET", f"/jobs/{job}/events")
        answer = self.connection.getresponse()
        runs, last = None, None
        for line in answer:
            if line.startswith(b"data: "):
                last = json.loads(line[6:])
                if runs is None and last["status"] != "queued":
                    runs = (time.perf_counter() - began) * 1000
        if last is None or last["status"] != "succeeded":
            raise SystemExit(f"error: the job ended otherwise: {last}")
        return runs, last


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


def moment(text):
    """ISO 8601 as seconds since 1970."""
    return datetime.datetime.fromisoformat(text).timestamp()


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
    steps, client = {}, Client(server)
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


def session(server, iterations, name):
    """Get, set and run, one after another, on a connection of its own."""
    client = Client(server)
    client.post("/load_simulation", filePath="chain.xml", simulationId=name, confirm=True)
    steps = ("get_parameter_value", "set_parameter_value", "submission_to_running", "queue_wait", "execution", "serialisation", "run_to_results")
    times, solver = {step: [] for step in steps}, None
    for iteration in range(iterations + 1):
        path = {"simulationId": name, "parameterPath": "Bench|Weight"}
        got, _ = client.post("/get_parameter_value", **path)
        put, _ = client.post("/set_parameter_value", **path, value=60 + iteration % 20, confirm=True)
        began = time.perf_counter()
        _, job = client.post("/run_simulation", simulationId=name, confirm=True)
        runs, last = client.follow(job["jobId"], began)
        read, _ = client.post("/get_simulation_results", resultsId=last["resultId"], outputs=["Bench|Chain|A0"])
        whole = (time.perf_counter() - began) * 1000
        # As the server's own records have it, in whole milliseconds.
        submitted, started, finished = (moment(last[name]) for name in ("submittedAt", "startedAt", "finishedAt"))
        waited, ran = (started - submitted) * 1000, (finished - started) * 1000
        if iteration > 0:
            for step, took in zip(steps, (got, put, runs, waited, ran, read, whole)):
                times[step].append(took)
        else:
            solver = client.tool("get_results", resultsId=last["resultId"], outputs=["Bench|Chain|A0"])["metadata"]["solver"]
    return times, solver


def population(server, size, replicates):
    """Runs the workload's cohort so often, each with a seed of its own; gives the seconds, the results, and the solver's steps."""
    client, workload = Client(server), json.loads(WORKLOAD.read_text())
    client.post("/load_simulation", filePath="chain.xml", simulationId="cohort", confirm=True)
    outputs = {"timeSeries": workload["outputs"], "aggregates": workload["aggregates"]}
    began, jobs = time.perf_counter(), []
    for replicate in range(replicates):
        cohort = {"size": size, "seed": workload["firstSeed"] + replicate, "covariates": workload["covariates"]}
        asked = {"simulationId": "cohort", "cohort": cohort, "outputs": outputs, "modelPath": "chain.xml", "confirm": True}
        jobs.append(client.post("/run_population_simulation", **asked)[1]["jobId"])
    results = [client.follow(job, began)[1]["resultId"] for job in jobs]
    took = time.perf_counter() - began
    told = [client.tool("get_population_results", resultsId=name) for name in results]
    return took, told, sum(one["metadata"]["solver"]["steps"] for one in told)


def busy_ns(pid):
    """CPU time that the children of a process have had, in nanoseconds."""
    total = 0
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rsplit(") ", 1)[1].split()[1]) == pid:
                total += sum(int(task.read_text().split()[0]) for task in stat.parent.glob("task/*/schedstat"))
        except OSError:
            continue  # ended meanwhile
    return total


def rests(server, since):
    """Waits until the workers compute nothing any more; gives the milliseconds from `since`, a time of `time.time()`, to their last work."""
    deadline, last, seen = time.time() + 30, time.time(), busy_ns(server.process.pid)
    while time.time() < last + QUIET_S:
        if time.time() > deadline:
            raise SystemExit("error: the workers go on after the end of their job")
        time.sleep(0.002)
        now = busy_ns(server.process.pid)
        # A worker that waits wakes up now and then for some microseconds.
        if now > seen + 1_000_000:
            last, seen = time.time(), now
    return max(0.0, (last - since) * 1000)


def stops(server, count):
    """Milliseconds until the solver rests: after the call that cancels a run, and after the time that a run was given."""
    client, steps = Client(server), {"cancelled_to_rest": [], "timed_out_to_rest": []}
    client.post("/load_simulation", filePath="chain.xml", simulationId="stops", confirm=True)
    large = {"simulationId": "stops", "cohort": {"size": 500_000}}
    for _ in range(count):
        job = client.tool("run_population_simulation", **large)["jobId"]
        while client.tool("get_job_status", jobId=job).get("progress", {}).get("done", 0) == 0:
            time.sleep(0.005)
        since = time.time()
        client.post("/cancel_job", jobId=job)
        steps["cancelled_to_rest"].append(rests(server, since))
        job = client.tool("run_population_simulation", **large, timeoutSeconds=1)["jobId"]
        told = client.tool("get_job_status", jobId=job, waitSeconds=60)
        if told["status"] != "timeout":
            raise SystemExit(f"error: the job was not ended at its time: {told}")
        steps["timed_out_to_rest"].append(rests(server, told["startedAt"] + 1))
    return {step: numbers(values) for step, values in steps.items()}


def chunks(server, told, bytes_min):
    """Reads columns until there are enough bytes; gives MB/s of the reading. Each chunk's checksum is held against its bytes."""
    client, paths = Client(server), []
    for one in told:
        paths += [f"/population_results/{one['resultsId']}/chunks/{chunk['chunkId']}?format=columns" for chunk in one["chunks"]]
    size, took, at = 0, 0.0, 0
    while size < bytes_min or at < len(paths):
        ms, body, headers = client.ask("GET", paths[at % len(paths)])
        if hashlib.sha256(body).hexdigest() != headers["x-content-sha256"]:
            raise SystemExit(f"error: the bytes of {paths[at % len(paths)]} are not those of its checksum")
        size, took, at = size + len(body), took + ms / 1000, at + 1
    return {"bytes": size, "requests": at, "mbPerSecond": round(size / took / 1e6, 1)}


def measure(args):
    iterations, sizes, clients, size, replicates = SCENARIOS[args.scenario]
    iterations = args.iterations or iterations
    sizes = args.load_mb or sizes
    size, replicates = args.subjects or size, args.replicates or replicates
    with tempfile.TemporaryDirectory(prefix="durward-bench-") as folder:
        server = Server(str(pathlib.Path(args.durward).resolve()), pathlib.Path(folder))
        try:
            (server.place / "models" / "chain.xml").write_text(model(0), encoding="utf-8")
            began = time.time()
            steps, solver = loads(server, sizes, iterations), None
            for count in clients:
                for times, found in together(count, lambda number: session(server, iterations, f"s-{count}-{number}")):
                    solver = solver or found
                    for step, values in times.items():
                        name = step if count == 1 else f"{step}_{count}_clients"
                        steps.setdefault(name, []).extend(values)
            steps = {name: values if isinstance(values, dict) else numbers(values) for name, values in steps.items()}
            steps |= stops(server, min(iterations, STOPS))
            seconds, told, solved = population(server, size, replicates)
            enough = CHUNK_BYTES_MIN if args.scenario in ("stress", "extreme") and not args.subjects else 0
            read = chunks(server, told, enough)
            cpu, peak = server.cpu_and_memory()
        finally:
            server.stop()
    digest = hashlib.sha256(pathlib.Path(args.durward).read_bytes()).hexdigest()
    return {
        "timestamp": time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(began)),
        "scenario": args.scenario,
        "label": args.label,
        "config": {"iterations": iterations, "loadMb": sizes, "clients": clients, "transport": "http", "subjects": size, "replicates": replicates},
        "engine": {"name": solver["engine"], "binarySha256": digest},
        "model": {"sha256": solver["modelSha256"], "states": solver["states"]},
        "solver": {"stepsOfOneRun": solver["steps"], "stepsOfPopulation": solved},
        "phases": phases(steps),
        "steps": steps,
        "population": {"seconds": round(seconds, 3), "individuals": size * replicates, "workloadSha256": hashlib.sha256(WORKLOAD.read_bytes()).hexdigest()},
        "chunks": read,
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


def check(args):
    """Says what is too slow; gives the exit code."""
    artefact = usable(args.artefact)
    wrong = []
    if args.limits:
        for step, limit in LIMITS.items():
            found = artefact["steps"].get(step)
            if found is None:
                wrong.append(f"{step} was not measured")
            elif found["p95"] > limit:
                wrong.append(f"{step}: p95 {found['p95']} ms is above {limit} ms")
        for step, found in artefact["steps"].items():
            if step.startswith("cold_") and found["max"] > COLD_FAIL_MS:
                wrong.append(f"{step}: {found['max']} ms is above {COLD_FAIL_MS} ms")
            elif step.startswith("cold_") and found["max"] > COLD_WARN_MS:
                print(f"warning: {step}: {found['max']} ms is above {COLD_WARN_MS} ms")
        if artefact["population"]["individuals"] >= 10_000 and artefact["population"]["seconds"] > POPULATION_S_MAX * artefact["population"]["individuals"] / 10_000:
            wrong.append(f"the population took {artefact['population']['seconds']} s")
        if artefact["chunks"]["mbPerSecond"] < CHUNKS_MB_S_MIN:
            wrong.append(f"chunks: {artefact['chunks']['mbPerSecond']} MB/s is below {CHUNKS_MB_S_MIN}")
    if args.baseline:
        before = usable(args.baseline)
        if before["model"] != artefact["model"] or before["config"] != artefact["config"]:
            refuse("the two artefacts are not of the same model and configuration")
        factor = 1 + args.tolerance / 100
        for step, found in before["steps"].items():
            now = artefact["steps"].get(step)
            if now is None:
                wrong.append(f"{step} is missing")
            elif not step.startswith("cold_") and now["p95"] > found["p95"] * factor + grain(step):
                wrong.append(f"{step}: p95 {now['p95']} ms is more than {args.tolerance} % above {found['p95']} ms")
        if artefact["population"]["seconds"] > before["population"]["seconds"] * factor:
            wrong.append(f"the population took {artefact['population']['seconds']} s, and {before['population']['seconds']} s before")
    for line in wrong:
        print(f"too slow: {line}")
    print("passed" if not wrong else "failed")
    return 1 if wrong else 0


def markdown(artefact):
    """The artefact as a section for readers."""
    rows = [f"| {step} | {found['p50']} | {found['p95']} | {LIMITS.get(step, '')} |" for step, found in sorted(artefact["steps"].items())]
    population, read, solver = artefact["population"], artefact["chunks"], artefact["solver"]
    return "\n".join(
        [
            "## Simulations over HTTP, through the gate, the journal on",
            "",
            f"Scenario {artefact['scenario']}, {artefact['config']['iterations']} iterations, {artefact['machine']['cores']} cores; a model of "
            f"{artefact['model']['states']} states, {solver['stepsOfOneRun']} steps a run. Every load is of a file of its own.",
            "",
            "| step | p50 ms | p95 ms | aimed at |",
            "|---|--:|--:|--:|",
            *rows,
            "",
            f"{population['individuals']} individuals took {population['seconds']} s ({solver['stepsOfPopulation']} steps). "
            f"{read['bytes'] / 1e6:.0f} MB of chunks were read at {read['mbPerSecond']} MB/s, each held against its checksum.",
            "",
        ]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="make benchmark-report writes a page of all artefacts.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="measure, and write an artefact")
    run.add_argument("--durward", required=True, help="the program")
    run.add_argument("--scenario", choices=SCENARIOS, default="smoke")
    run.add_argument("--iterations", type=int, help="instead of the scenario's")
    run.add_argument("--load-mb", type=float, nargs="+", help="sizes of the models that are loaded, instead of the scenario's")
    run.add_argument("--subjects", type=int, help="individuals of the population, instead of the scenario's")
    run.add_argument("--replicates", type=int, help="runs of the population, instead of the scenario's")
    run.add_argument("--label", help="a word that is kept with the artefact")
    run.add_argument("--out", default="var/benchmarks", help="folder of artefacts [default: var/benchmarks]")
    run.add_argument("--markdown", help="also write a section for readers there")
    held = commands.add_parser("check", help="hold an artefact against limits or another one")
    held.add_argument("artefact")
    held.add_argument("--baseline")
    held.add_argument("--tolerance", type=float, default=10.0, help="per cent [default: 10]")
    held.add_argument("--limits", action="store_true", help="hold it against what is aimed at on a quiet machine")
    args = parser.parse_args()
    if args.command == "check":
        sys.exit(check(args))
    artefact = measure(args)
    folder = pathlib.Path(args.out)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{artefact['timestamp']}-{args.scenario}.json"
    file.write_text(json.dumps(artefact, indent=1) + "\n")
    if args.markdown:
        pathlib.Path(args.markdown).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(args.markdown).write_text(markdown(artefact))
    print(file)


if __name__ == "__main__":
    main()
