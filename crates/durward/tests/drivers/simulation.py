"""Walks a whole session of the simulation server: simulation.py mcp-stdio|mcp-http|rest GOLDEN ADDRESS...

Every answer is held against the golden shapes. mcp-stdio takes the command; mcp-http the URL; rest the base URL and the key of an
administrator.
"""

import asyncio
import base64
import hashlib
import json
import os
import re
import subprocess
import sys

TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
WEIGHT = "Example|Organism|Weight"
CURVE = "Example|Organism|Central|Drug|Concentration"
COHORT = {
    "size": 250,
    "seed": 7,
    "covariates": [{"path": WEIGHT, "unit": "kg", "distribution": "normal", "mean": 70, "sd": 10}],
}


def fits(shape, value, at):
    """Fails where the value is not of the shape: exactly its members, each of its type."""
    if isinstance(shape, str):
        if shape.endswith("?"):
            if value is None:
                return
            shape = shape[:-1]
        ok = {
            "s": lambda: isinstance(value, str),
            "t": lambda: isinstance(value, str) and TIME.match(value),
            "i": lambda: isinstance(value, int) and not isinstance(value, bool),
            "f": lambda: isinstance(value, (int, float)) and not isinstance(value, bool),
            "b": lambda: isinstance(value, bool),
            "o": lambda: isinstance(value, dict),
            "null": lambda: value is None,
        }[shape]()
        assert ok, f"{at}: {value!r} is not {shape}"
    elif isinstance(shape, list):
        assert isinstance(value, list), f"{at}: {value!r} is no list"
        for number, member in enumerate(value):
            fits(shape[0], member, f"{at}[{number}]")
    elif set(shape) == {"?"}:
        if value is not None:
            fits(shape["?"], value, at)
    elif set(shape) == {"*"}:
        assert isinstance(value, dict) and value, f"{at}: {value!r} is no map"
        for name, member in value.items():
            fits(shape["*"], member, f"{at}.{name}")
    else:
        assert isinstance(value, dict), f"{at}: {value!r} is no object"
        # A name after ~ may be left out.
        maybe = {name[1:] for name in shape if name.startswith("~")}
        names = {name.removeprefix("~"): member for name, member in shape.items()}
        assert set(names) - maybe <= set(value) <= set(names), f"{at}: {sorted(set(value) ^ set(names))}"
        for name in value:
            fits(names[name], value[name], f"{at}.{name}")


class Mcp:
    """The official way in: FastMCP's client."""

    def __init__(self, golden, client):
        self.golden, self.client, self.held = golden, client, set()

    async def call(self, tool, **arguments):
        result = await self.client.call_tool(tool, arguments, raise_on_error=False)
        if result.is_error:
            failure = (result.meta or {}).get("durward/failure", {})
            return failure.get("code", result.content[0].text), failure
        told = result.structured_content
        fits(self.golden[tool], told, tool)
        self.held.add(tool)
        # A picture is shown as one, with a sentence.
        assert tool == "plot_results" or json.loads(result.content[0].text) == told
        return "ok", told


async def mcp(golden, client):
    tools = {tool.name for tool in await client.list_tools()}
    assert set(golden) == tools, set(golden) ^ tools
    walk = Mcp(golden, client)
    call = walk.call

    async def good(tool, **arguments):
        code, told = await call(tool, **arguments)
        assert code == "ok", (tool, code, told)
        return told

    async def bad(expect, tool, **arguments):
        code, told = await call(tool, **arguments)
        assert code == expect, (tool, code, told)
        return told

    found = await good("discover_models")
    assert [item["modelId"] for item in found["items"]] == ["empty", "two_compartment"], found
    await bad("ConfirmationRequired", "load_simulation", filePath="two_compartment.xml")
    await bad("InvalidInput", "load_simulation", filePath="../outside.xml", confirm=True)
    await bad("InvalidInput", "load_simulation", filePath="/etc/hostname.xml", confirm=True)
    await bad("UnsupportedModel", "load_simulation", filePath="empty.xml", confirm=True)
    loaded = await good("load_simulation", filePath="two_compartment.xml", confirm=True)
    assert loaded["simulationId"] == "two_compartment" and loaded["backend"] == "native"
    await bad("Conflict", "load_simulation", filePath="two_compartment.xml", confirm=True)
    sim = "two_compartment"
    paths = (await good("list_parameters", simulationId=sim, searchPattern="*Weight*"))["parameters"]
    assert paths == [WEIGHT], paths
    value = (await good("get_parameter_value", simulationId=sim, parameterPath=WEIGHT))["parameter"]
    assert (value["value"], value["unit"], value["source"]) == (70, "kg", "file"), value
    near = await bad("NotFound", "get_parameter_value", simulationId=sim, parameterPath="Example|Organism|Wight")
    assert WEIGHT in near["details"][0]["hint"], near
    await bad("NotFound", "get_parameter_value", simulationId="other", parameterPath=WEIGHT)

    async def run(**more):
        job = await good("run_simulation", simulationId=sim, confirm=True, **more)
        done = await good("get_job_status", jobId=job["jobId"], waitSeconds=60)
        assert done["status"] == "succeeded", done
        return job, done["resultId"]

    job, first = await run(idempotencyKey="one")
    again = await good("run_simulation", simulationId=sim, confirm=True, idempotencyKey="one")
    assert again["jobId"] == job["jobId"]
    await bad("Conflict", "run_simulation", simulationId=sim, confirm=True, idempotencyKey="one", runId="x")
    results = await good("get_results", resultsId=first)
    assert {series["parameter"] for series in results["series"]} >= {CURVE}
    pk = (await good("calculate_pk_parameters", resultsId=first, outputPath=CURVE))["metrics"]
    assert len(pk) == 1 and pk[0]["cmax"] > 0
    # Twice the dose is twice the concentration, in a linear model; what is relative is added.
    dose = "Example|Applications|Infusion|DrugMass"
    given = (await good("get_parameter_value", simulationId=sim, parameterPath=dose))["parameter"]["value"]
    await good("set_parameter_value", simulationId=sim, parameterPath=dose, value=given, updateMode="relative", confirm=True)
    _, doubled = await run(runId="doubled")
    assert doubled == "doubled"
    twice = (await good("calculate_pk_parameters", resultsId="doubled", outputPath=CURVE))["metrics"]
    assert abs(twice[0]["cmax"] / pk[0]["cmax"] - 2) < 1e-3, (twice, pk)
    wrong = await bad("InvalidInput", "set_parameter_value", simulationId=sim, parameterPath=WEIGHT, value=1, unit="h", confirm=True)
    assert wrong["details"][0]["field"] == "unit", wrong
    grams = await good("set_parameter_value", simulationId=sim, parameterPath=WEIGHT, value=71000, unit="g", confirm=True)
    assert abs(grams["parameter"]["value"] - 71) < 1e-9, grams

    deltas = [{"path": "Example|Organism|Clearance", "deltas": [-0.1, 0.1]}]
    sens = await good("run_sensitivity_analysis", modelPath="two_compartment.xml", simulationId=sim, parameters=deltas, confirm=True)
    ids = [scenario["scenario_id"] for scenario in sens["report"]["scenarios"]]
    assert ids == ["baseline", "Example_Organism_Clearance_-100", "Example_Organism_Clearance_100"], ids
    less, more = (scenario["delta_percent"][CURVE]["auc"] for scenario in sens["report"]["scenarios"][1:])
    assert less > 1 and more < -1, (less, more)
    lines = base64.b64decode(sens["csv"]["data"]).decode().splitlines()
    assert lines[0].startswith("scenario_id,parameter_path,percent_change") and len(lines) > 6
    clearance = (await good("get_parameter_value", simulationId=sim, parameterPath="Example|Organism|Clearance"))["parameter"]
    assert clearance["source"] == "file", "a sensitivity analysis leaves nothing behind"
    await bad("InvalidInput", "run_sensitivity_analysis", modelPath="two_compartment.xml", simulationId=sim, parameters=deltas,
              includeBaseline=False, confirm=True)

    population = await good("run_population_simulation", simulationId=sim, cohort=COHORT, confirm=True,
                            outputs={"timeSeries": [{"path": CURVE}], "aggregates": ["meanCmax", "sdCmax"]})
    heard = []

    async def progress(done, total, message):
        heard.append((done, total, message))

    waits = {"jobId": population["jobId"], "waitSeconds": 120}
    done = (await client.call_tool("get_job_status", waits, progress_handler=progress)).structured_content
    assert done["status"] == "succeeded", done
    assert heard and heard == sorted(heard), heard
    told = await good("get_population_results", resultsId=done["resultId"])
    assert told["cohort"]["size"] == 250 and len(told["chunks"]) == 3, told["chunks"]
    large = await good("run_population_simulation", simulationId=sim, cohort={"size": 500000}, confirm=True)
    while (await good("get_job_status", jobId=large["jobId"]))["status"] == "queued":
        await asyncio.sleep(0.01)
    assert (await good("cancel_job", jobId=large["jobId"]))["status"] == "cancelled"
    assert (await good("get_job_status", jobId=large["jobId"]))["status"] == "cancelled"
    valid = await good("validate_simulation_request", simulationId=sim)
    assert valid["validation"]["decision"] == "accept", valid
    checked = await good("run_verification_checks", simulationId=sim, includePopulationSmoke=True, populationCohort=COHORT)
    assert checked["verification"]["status"] == "passed", checked["verification"]
    assert checked["operatorReviewSignoff"]["status"] == "not-recorded"
    report = (await good("export_oecd_report", simulationId=sim, parameterPattern="*Weight*"))["report"]
    assert [row["path"] for row in report["parameterTable"]] == [WEIGHT], report["parameterTable"]
    manifest = (await good("validate_model_manifest", filePath="two_compartment.xml"))["manifest"]
    assert manifest["status"] == "valid", manifest
    empty = (await good("validate_model_manifest", filePath="empty.xml"))["manifest"]
    assert empty["status"] == "invalid" and "nothing to simulate" in empty["checks"][0]["violations"][0], empty
    assert (await good("run_parameter_consistency_check", simulationId=sim))["ok"]
    external = await good("ingest_external_pbpk_bundle", sourcePlatform="Elsewhere", runId="r1")
    assert external["externalRun"]["runId"] == "r1" and len(external["warnings"]) == 7, external
    await bad("InvalidInput", "load_simulation", filePath="", confirm=True)
    await resources(client, good, first, done["resultId"])
    await bad("NotFound", "get_job_status", jobId="job_none")
    await bad("NotFound", "get_results", resultsId="none")
    await bad("InvalidInput", "calculate_pk_parameters", resultsId="none")
    await beside(good, sim, first, told)
    # Every tool was called, and every result held against its shape.
    assert walk.held == tools, tools - walk.held


async def beside(good, sim, run, population):
    """The tools for which the bridge has paths only, or nothing."""
    chunk = await good("get_population_chunk", resultsId=population["resultsId"], chunkId=population["chunks"][0]["chunkId"], subjects=[0])
    assert [curve["subjectId"] for curve in chunk["series"]] == [0] and chunk["totalSubjects"] == 250, chunk
    plot = await good("plot_results", resultsId=run, outputs=[CURVE])
    assert plot["outputs"] == [CURVE] and plot["svg"].startswith("<svg"), plot["outputs"]
    kept = (await good("snapshot_simulation", simulationId=sim))["snapshot"]
    assert re.match(r"^\d{8}T\d{12}Z$", kept["snapshotId"]) and re.match(r"^[0-9a-f]{64}$", kept["hash"]), kept
    weight = {"simulationId": sim, "parameterPath": WEIGHT}
    reset = await good("reset_parameter_value", **weight, confirm=True)
    assert (reset["parameter"]["value"], reset["parameter"]["source"]) == (70, "file"), reset
    assert (await good("get_simulation_snapshot", simulationId=sim))["latestSnapshot"] == kept
    assert (await good("restore_simulation", simulationId=sim))["snapshot"] == kept
    again = (await good("get_parameter_value", **weight))["parameter"]["value"]
    assert abs(again - 71) < 1e-9, again
    points = (await good("get_results", resultsId=run, outputs=[CURVE]))["series"][0]
    some = [point for point in points["values"] if point["value"] > 0][10:200:10]
    observed = {"output": CURVE, "unit": points["unit"], "times": [point["time"] for point in some], "values": [point["value"] for point in some]}
    fit = await good("fit_parameters", simulationId=sim, parameters=[{"path": "Example|Organism|Clearance"}], observations=[observed], confirm=True)
    assert fit["applied"] is False and fit["observations"] == len(some), fit
    signed = {"simulationId": sim, "scope": "run_verification_checks"}
    noted = {**signed, "rationale": "The curves were looked at.", "confirm": True}
    assert (await good("get_review_signoff", **signed))["operatorReviewSignoff"]["status"] == "not-recorded"
    recorded = await good("record_review_signoff", **noted, disposition="acknowledged")
    assert recorded["operatorReviewSignoff"]["status"] == "recorded", recorded
    assert (await good("revoke_review_signoff", **noted))["operatorReviewSignoff"]["status"] == "revoked"
    history = (await good("get_review_signoff_history", **signed))["operatorReviewSignoffHistory"]
    assert [entry["action"] for entry in history["entries"]] == ["revoked", "recorded"], history
    [loaded] = (await good("list_simulations"))["items"]
    assert (loaded["simulationId"], loaded["parametersSet"]) == (sim, 2), loaded
    assert (await good("unload_simulation", simulationId=sim, confirm=True))["simulationId"] == sim


async def resources(client, good, run, population):
    """What the tools give of results is given as resources too."""
    from mcp.shared.exceptions import MCPError

    templates = {template.uriTemplate: template.mimeType for template in await client.list_resource_templates()}
    assert templates["sim://results/{resultsId}/plot{?outputs*}"] == "image/png" and len(templates) == 4, templates
    listed = [str(resource.uri) for resource in await client.list_resources()]
    assert listed.index(f"sim://results/{population}") < listed.index(f"sim://results/{run}"), "the newest first"

    async def read(uri):
        [contents] = await client.read_resource(uri)
        return json.loads(contents.text) if contents.mimeType == "application/json" else base64.b64decode(contents.blob)

    whole = await good("get_results", resultsId=run)
    series, page = [], f"sim://results/{run}?page=1&limit=2"
    while page:
        part = await read(page)
        assert part["total"] == len(whole["series"]) and len(part["series"]) <= 2, part
        series, page = series + part["series"], part.get("next")
    assert series == whole["series"]
    assert (await read(f"sim://results/{run}"))["series"] == series
    assert (await read(f"sim://results/{run}/pk"))["metrics"] == (await good("calculate_pk_parameters", resultsId=run))["metrics"]
    assert (await read(f"sim://results/{run}/plot")).startswith(b"\x89PNG")
    figures = await read(f"sim://results/{population}")
    assert figures == await good("get_population_results", resultsId=population)
    chunk = figures["chunks"][0]["chunkId"]
    part = await read(f"sim://results/{population}/chunks/{chunk}?subjects=0&subjects=3")
    assert [curve["subjectId"] for curve in part["series"]] == [0, 3], part
    for uri, said in [
        ("sim://results/none", "there are no results 'none'"),
        (f"sim://results/{run}/curves", "no such part"),
        (f"sim://results/{run}?page=0&limit=2", "page"),
        (f"sim://results/{population}?page=1", "chunk by chunk"),
        (f"sim://results/{population}/pk", "population"),
        (f"sim://results/{population}/chunks/none", "no chunk 'none'"),
    ]:
        try:
            await read(uri)
        except MCPError as error:
            assert said in str(error), (uri, error)
        else:
            raise AssertionError(f"{uri} was read")


class Curl:
    """The REST paths, as a shell would use them."""

    def __init__(self, golden, base, key):
        self.golden, self.base, self.key = golden, base, key
        self.document, self.held = None, set()

    def ask(self, method, path, body=None, headers=(), raw=False):
        words = ["curl", "-sS", "-i", "--max-time", "120", "-X", method, self.base + path]
        for header in (f"Authorization: Bearer {self.key}", *headers):
            words += ["-H", header]
        if body is not None:
            words += ["-H", "Content-Type: application/json", "--data-binary", body if isinstance(body, str) else json.dumps(body)]
        out = subprocess.run(words, capture_output=True, check=True).stdout
        head, _, rest = out.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        status = int(lines[0].split()[1])
        fields = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines[1:])}
        return status, fields, rest if raw else (json.loads(rest) if rest else None)

    def good(self, method, path, body=None, at=None, **more):
        """`at` is the path with its parts that vary by name."""
        at = at or path.split("?")[0]
        key = f"{method} {at}"
        status, fields, told = self.ask(method, path, body, **more)
        assert status == self.golden[key]["status"], (path, status, told)
        assert fields["x-correlation-id"], fields
        fits(self.golden[key]["body"], told, key)
        self.stated(method, at, status, told)
        return told

    def stated(self, method, path, status, told):
        """Holds an answer against the server's own OpenAPI document."""
        from jsonschema import Draft202012Validator

        if not self.document:
            self.document = self.ask("GET", "/openapi.json")[2]
        operation = self.document["paths"][path][method.lower()]
        schema = operation["responses"][str(status)]["content"]["application/json"]["schema"]
        Draft202012Validator(schema).validate(told)
        self.held.add(f"{method} {path}")

    def bad(self, status, code, method, path, body=None, **more):
        found, fields, told = self.ask(method, path, body, headers=["X-Correlation-Id: mine"], **more)
        assert (found, told["error"]["code"]) == (status, code), (path, found, told)
        assert told["error"]["correlationId"] == fields["x-correlation-id"] == "mine"
        fits(self.golden["error"]["body"], told, "error")
        return told["error"]


def wait(curl, job):
    status, _, stream = curl.ask("GET", f"/jobs/{job}/events", raw=True)
    key = "GET /jobs/{jobId}/events"
    shape = curl.golden[key]
    assert status == shape["status"]
    curl.held.add(key)
    states, done = [], []
    for block in stream.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if not fields:
            continue
        event = json.loads(fields["data"])
        if fields.get("event") == "progress":
            fits({**shape["event"], "progress": shape["progress"]}, event, key)
            done.append(event["progress"]["done"])
        else:
            fits(shape["event"], event, key)
            states.append(event)
    assert states[-1]["status"] == "succeeded", states
    assert done == sorted(done), done
    return states[-1]["resultId"], done


def rest(golden, base, key):
    curl = Curl(golden, base, key)
    good, bad = curl.good, curl.bad
    status, _, told = curl.ask("GET", "/health")
    fits(golden["GET /health"]["body"], told, "GET /health")
    assert (status, told["status"]) == (200, "ok"), told
    health = good("GET", "/mcp/capabilities")
    assert health["adapter"]["health"]["environment"]["available"] is True
    tools = {tool["name"]: tool for tool in good("GET", "/mcp/list_tools")["tools"]}
    assert "get_population_chunk" not in tools and tools["load_simulation"]["annotations"]["critical"]
    bad(428, "ConfirmationRequired", "POST", "/load_simulation", {"filePath": "two_compartment.xml"})
    for blank in ("", " "):
        error = bad(400, "InvalidInput", "POST", "/load_simulation", {"filePath": blank, "confirm": True})
        assert error["details"][0]["field"] == "filePath", error
    error = bad(400, "InvalidInput", "POST", "/load_simulation", {"filePath": "/etc/passwd.xml", "confirm": True})
    assert error["details"][0]["field"] == "filePath"
    bad(400, "InvalidInput", "POST", "/load_simulation", "not json")
    bad(400, "InvalidInput", "POST", "/load_simulation", {"filePath": "two_compartment.xml", "simulationId": "x" * 65, "confirm": True})
    bad(400, "UnsupportedModel", "POST", "/load_simulation", {"filePath": "empty.xml", "confirm": "yes"})
    good("POST", "/load_simulation", {"filePath": "two_compartment.xml", "confirm": True})
    bad(409, "Conflict", "POST", "/load_simulation", {"filePath": "two_compartment.xml", "confirm": True})
    sim = {"simulationId": "two_compartment"}
    assert good("POST", "/list_parameters", {**sim, "searchPattern": "*Weight"})["parameters"] == [WEIGHT]
    good("POST", "/get_parameter_value", {**sim, "parameterPath": WEIGHT})
    error = bad(404, "NotFound", "POST", "/get_parameter_value", {**sim, "parameterPath": "Example|Organism|Wight"})
    assert WEIGHT in error["details"][0]["hint"]
    error = bad(400, "InvalidInput", "POST", "/get_parameter_value", sim)
    assert error["details"] == [{"issue": "is required", "field": "parameterPath", "code": "missing"}], error
    # Without a word of confirmation that is what is missing first, whatever the arguments are.
    bad(428, "ConfirmationRequired", "POST", "/set_parameter_value", sim)
    kept = good("POST", "/snapshot_simulation", sim)["snapshot"]
    status, _, told = curl.ask("POST", "/set_parameter_value", {**sim, "parameterPath": WEIGHT, "value": 90, "unit": "kg"}, headers=["X-MCP-Confirm: yes"])
    assert status == 200 and told["parameter"]["value"] == 90, told
    good("POST", "/set_parameter_value", {**sim, "parameterPath": WEIGHT, "value": 80, "confirm": True})
    listed = good("GET", "/get_simulation_snapshot?simulationId=two_compartment")
    assert listed["latestSnapshot"] == kept
    assert good("GET", "/get_simulation_snapshot?simulationId=none")["snapshots"] == []
    good("POST", "/restore_simulation", sim)
    assert good("POST", "/get_parameter_value", {**sim, "parameterPath": WEIGHT})["parameter"]["value"] == 70
    job = good("POST", "/run_simulation", {**sim, "confirm": True})
    results, _ = wait(curl, job["jobId"])
    good("POST", "/get_job_status", {"jobId": job["jobId"]})
    good("POST", "/get_simulation_results", {"resultsId": results})
    good("POST", "/calculate_pk_parameters", {"resultsId": results})
    good("POST", "/cancel_job", {"jobId": job["jobId"]})
    bad(404, "NotFound", "GET", "/jobs/job_none/events")
    bad(404, "NotFound", "POST", "/get_simulation_results", {"resultsId": "none"})
    bad(400, "InvalidInput", "POST", "/calculate_pk_parameters", {"resultsId": "none"})
    job = good("POST", "/run_population_simulation", {**sim, "cohort": COHORT, "modelPath": "two_compartment.xml", "confirm": True,
                                                     "outputs": {"timeSeries": [{"path": CURVE}], "aggregates": ["meanCmax"]}})
    results, _ = wait(curl, job["jobId"])
    told = good("POST", "/get_population_results", {"resultsId": results})
    chunks(curl, results, told)
    bad(404, "NotFound", "GET", f"/population_results/{results}/chunks/none")
    bad(400, "InvalidInput", "GET", f"/population_results/{results}/chunks/{'x' * 200}")
    facade(curl)
    reviewed(curl, sim)
    resources_over_rest(curl)
    audited(curl)
    # Every path was answered as the shapes and the document have it.
    known = {f"{method.upper()} {path}" for path, methods in curl.document["paths"].items() for method in methods}
    assert known == curl.held, known ^ curl.held


def chunks(curl, results, told):
    """The mean is that of the curves in the chunks, whole, in parts and as JSON."""
    highest = []
    for chunk in told["chunks"]:
        path = f"/population_results/{results}/chunks/{chunk['chunkId']}"
        as_json = curl.good("GET", path, at="/population_results/{resultsId}/chunks/{chunkId}")
        assert as_json["totalSubjects"] == 250
        highest += [max(series["concentration"]) for series in as_json["series"]]
        status, fields, whole = curl.ask("GET", path + "?format=columns", raw=True)
        assert status == 200 and len(whole) == chunk["sizeBytes"] == int(fields["content-length"])
        assert hashlib.sha256(whole).hexdigest() == fields["x-content-sha256"]
        status, fields, part = curl.ask("GET", path, headers=["Accept: application/octet-stream", "Range: bytes=100-299"], raw=True)
        assert status == 206 and part == whole[100:300] and fields["content-range"] == f"bytes 100-299/{len(whole)}"
        status, fields, _ = curl.ask("GET", path + "?format=columns", headers=["Range: bytes=99999999-"], raw=True)
        assert status == 416
        status, _, text = curl.ask("GET", path + "?format=csv", raw=True)
        assert status == 200 and len(text.splitlines()) > len(as_json["series"])
    assert len(highest) == 250
    assert abs(sum(highest) / 250 - told["aggregates"]["meanCmax"]) < 1e-9


def reviewed(curl, sim):
    """What a reviewer looks at, signs off, and takes back."""
    good, bad, scope = curl.good, curl.bad, "run_verification_checks"
    checked = good("POST", "/run_parameter_consistency_check", sim)
    assert checked["ok"] and checked["violationCount"] == 0 and "parameters-within-bounds" in checked["checkedRules"], checked
    path = f"/review_signoff?simulationId=two_compartment&scope={scope}"
    assert good("GET", path)["operatorReviewSignoff"]["status"] == "not-recorded"
    asked = {**sim, "scope": scope, "disposition": "approved-for-bounded-use", "rationale": "The curves were looked at.",
             "limitationsAccepted": ["one compound"], "reviewFocus": ["units"]}
    bad(428, "ConfirmationRequired", "POST", "/review_signoff", asked)
    asked["confirm"] = True
    for wrong in ({"rationale": "too short"}, {"rationale": "x" * 4001}, {"rationale": " " * 20}, {"disposition": "liked"}, {"scope": "all"}):
        bad(400, "InvalidInput", "POST", "/review_signoff", {**asked, **wrong})
    bad(404, "NotFound", "POST", "/review_signoff", {**asked, "simulationId": "none"})
    bad(409, "Conflict", "POST", "/review_signoff/revoke", {**sim, "scope": scope, "rationale": "Nothing is signed.", "confirm": True})
    signed = good("POST", "/review_signoff", asked)["operatorReviewSignoff"]
    assert (signed["status"], signed["disposition"]) == ("recorded", "approved-for-bounded-use"), signed
    assert (signed["recordedBy"]["subject"], signed["recordedBy"]["roles"]) == ("key:walker", ["admin"]), signed
    assert signed["limitationsAccepted"] == ["one compound"] and "what is loaded now is what was signed off" in signed["plainLanguageSummary"]
    # Another value is another model than the one that was signed off.
    good("POST", "/set_parameter_value", {**sim, "parameterPath": WEIGHT, "value": 91, "confirm": True})
    assert "is not what was signed off" in good("GET", path)["operatorReviewSignoff"]["plainLanguageSummary"]
    told = good("POST", "/mcp/call_tool", {"tool": scope, "arguments": sim})
    assert told["structuredContent"]["operatorReviewSignoff"]["status"] == "recorded", told
    revoked = good("POST", "/review_signoff/revoke", {**sim, "scope": scope, "rationale": "The weight was changed.", "confirm": True})["operatorReviewSignoff"]
    assert (revoked["status"], revoked["disposition"], revoked["revocationRationale"]) == ("revoked", None, "The weight was changed."), revoked
    history = good("GET", f"/review_signoff/history?simulationId=two_compartment&scope={scope}&limit=1")["operatorReviewSignoffHistory"]
    assert (history["returnedEntryCount"], history["totalEntryCount"], history["truncated"]) == (1, 2, True), history
    assert history["readableAuditHistory"] and history["entries"][0]["action"] == "revoked", history
    assert history["entries"][0]["traceability"]["previousHash"] == signed["traceability"]["sourceEventHash"]
    bad(400, "InvalidInput", "GET", f"/review_signoff/history?simulationId=two_compartment&scope={scope}&limit=many")
    status, fields, _ = curl.ask("DELETE", "/review_signoff")
    assert status == 405 and fields["allow"] == "GET, HEAD, POST", (status, fields)
    run = good("POST", "/ingest_external_pbpk_bundle", {"sourcePlatform": "Elsewhere", "rawArtifacts": [{"type": "report", "path": "report.pdf"}], "pod": {"value": 3}})
    assert run["externalRun"]["runId"].startswith("external-") and run["ngraObjects"]["pointOfDepartureReference"] == {"value": 3}, run
    assert any(warning.startswith("report.pdf: it is not in the allowed folders") for warning in run["warnings"]), run
    error = bad(400, "InvalidInput", "POST", "/ingest_external_pbpk_bundle", {"sourcePlatform": "Elsewhere", "rawArtifacts": [{"type": "model", "path": "two_compartment.xml", "checksum": "0" * 64}]})
    assert error["details"][0]["field"] == "rawArtifacts[0].checksum" and "two_compartment.xml: its SHA-256 is" in error["message"], error


def resources_over_rest(curl):
    good, root = curl.good, "/mcp/resources"
    [loaded] = good("GET", f"{root}/simulations")["items"]
    assert loaded["simulationId"] == "two_compartment" and loaded["parametersSet"] == 1, loaded
    listed = good("GET", f"{root}/parameters?simulationId=two_compartment&limit=3&page=2")
    assert len(listed["items"]) == 3 and listed["total"] > 6 and listed["page"] == 2, listed
    assert [item["modelId"] for item in good("GET", f"{root}/models?search=compartment")["items"]] == ["two_compartment"]
    schemas = good("GET", f"{root}/schemas?limit=500")
    ids = {item["id"] for item in schemas["items"]}
    assert schemas["total"] == 38 and "load_simulation.input" in ids, ids
    one = good("GET", f"{root}/schemas/load_simulation.input", at=f"{root}/schemas/{{id}}")
    assert one["schema"]["required"] == ["filePath"], one
    for name in ("capability-matrix", "contract-manifest", "release-bundle-manifest"):
        good("GET", f"{root}/{name}")
        status, fields, _ = curl.ask("GET", f"{root}/{name}")
        assert fields["etag"].startswith('W/"') and fields["last-modified"].endswith(" GMT"), fields
        status, _, _ = curl.ask("GET", f"{root}/{name}", headers=[f"If-None-Match: {fields['etag']}"])
        assert status == 304, status
    curl.bad(404, "NotFound", "GET", f"{root}/schemas/none")
    curl.bad(404, "NotFound", "GET", f"{root}/parameters?simulationId=none")
    curl.bad(400, "InvalidInput", "GET", f"{root}/schemas?page=0")
    curl.bad(400, "InvalidInput", "GET", f"{root}/parameters")
    curl.bad(404, "NotFound", "GET", f"{root}/nothing")


def audited(curl):
    """What the journal has of the walk, the newest first."""
    good, path = curl.good, "/audit/events"
    events = good("GET", f"{path}?limit=1000")["events"]
    times = [event["timestamp"] for event in events]
    assert times == sorted(times, reverse=True) and len(events) > 60, times
    types = {event["eventType"] for event in events}
    assert types >= {"tool.load_simulation", "tool.run_simulation", "job.simulation.succeeded", "job.population.succeeded"}, types
    others = [event for event in events if event["identity"] != {"subject": "key:walker", "roles": ["admin"]}]
    assert not others, others
    assert len({event["eventId"] for event in events}) == len({event["hash"] for event in events}) == len(events)
    loads = [event for event in events if event["eventType"] == "tool.load_simulation"]
    assert {load["tool"]["status"] for load in loads} == {"success", "error"}, loads
    assert good("GET", f"{path}?limit=1&eventType=tool.load_simulation")["events"] == loads[:1]
    assert len(good("GET", path)["events"]) == min(100, len(events) + 2)
    assert good("GET", f"{path}?eventType=tool.none")["events"] == []
    for wrong, field in (("limit=0", "limit"), ("limit=1001", "limit"), ("limit=many", "limit"), ("eventType=", "eventType"), ("limit=1&limit=2", "limit")):
        error = curl.bad(400, "InvalidInput", "GET", f"{path}?{wrong}")
        assert error["details"][0]["field"] == field, error


def facade(curl):
    def ask(tool, arguments, **more):
        return {"tool": tool, "arguments": arguments, **more}

    path = "/mcp/call_tool"
    curl.good("POST", path, ask("list_parameters", {"simulationId": "two_compartment"}))
    curl.bad(404, "NotFound", "POST", path, ask("no_such_tool", {}))
    curl.bad(428, "ConfirmationRequired", "POST", path, ask("load_simulation", {"filePath": "x.xml", "confirm": True}))
    curl.bad(400, "InvalidInput", "POST", path, ask("load_simulation", {}, critical=True))
    run = ask("run_simulation", {"simulationId": "two_compartment"}, critical=True, idempotencyKey="k")
    status, _, first = curl.ask("POST", path, run)
    assert status == 200 and first["annotations"]["idempotencyKey"] == "k", first
    _, _, second = curl.ask("POST", path, run)
    assert second["structuredContent"]["jobId"] == first["structuredContent"]["jobId"]
    run["arguments"]["runId"] = "other"
    error = curl.bad(409, "Conflict", "POST", path, run)
    assert error["details"][0]["field"] == "Idempotency-Key", error


def main():
    way, golden, *address = sys.argv[1:]
    with open(golden, encoding="utf-8") as file:
        golden = json.load(file)
    if way == "rest":
        rest(golden, *address)
    else:
        from fastmcp import Client
        from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

        async def walk():
            if way == "mcp-stdio":
                transport = StdioTransport(address[0], address[1:], env=dict(os.environ))
            else:
                transport = StreamableHttpTransport(address[0])
            async with Client(transport) as client:
                await mcp(golden, client)

        asyncio.run(walk())
    print("walked")


main()
