#!/usr/bin/env python3
"""The models that simulations are measured on: made here, so that nothing has to be fetched, and checked before they are used.

    scripts/bench_models.py make [--folder var/models/standard]
    scripts/bench_models.py verify --durward FILE [--folder var/models/standard]

`make` writes the models of workloads/models.json and holds each against its SHA-256. `verify` runs each through `durward serve` and
holds the curves against the expected figures, which follow from the solution in closed form. Exit code 1 means that something is not
as it has to be. Needs Python 3.11 and nothing else.
"""

import argparse
import hashlib
import json
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MANIFEST = ROOT / "workloads" / "models.json"
STATES = 120
START, RATE, SPAN, TIMES = 100.0, 0.05, 1440.0, 241
# A file below this is a placeholder and no model of this size.
BYTES_MIN = 100_000
FIGURES = ("cmax", "tmax", "auc")
sys.dont_write_bytecode = True


def model(seed, padding_bytes=0):
    """A chain of compartments with exchange, as a SimModel file; the padding is parameters that nothing uses."""
    parameter = '<P id="{0}" entityId="p{0}" name="{1}" path="Bench|{1}" unit="{2}" value="{3}" persistable="0"/>'.format
    fixed = {"AbsTol": "1E-10", "RelTol": "1E-6", "H0": "1E-10", "HMin": "0", "HMax": "60", "MxStep": "100000", "UseJacobian": "1"}
    parameters = [parameter(1, "Weight", "kg", 70), parameter(2, "Rate", "", RATE + seed * 1e-9)]
    for number, (name, value) in enumerate(fixed.items()):
        parameters.append(f'<P id="{10 + number}" entityId="{name}" name="{name}" path="{name}" value="{value}" persistable="0"/>')
    size, number = 0, 100_000
    while size < padding_bytes:
        parameters.append(parameter(number, f"Unused|Organ {number % 97}|P{number}", "l", (number + seed) * 1e-6))
        size += len(parameters[-1]) + 1
        number += 1
    variables, formulas = [], []
    for at in range(STATES):
        start = int(START) if at == 0 else 0
        variables.append(
            f'<V id="{1000 + at}" entityId="v{at}" name="A{at}" path="Bench|Chain|A{at}" unit="µmol" value="{start}" persistable="1" '
            f'negativeValuesAllowed="0"><ScaleFactor>1</ScaleFactor><RHSFormulaList><RHSFormula id="{5000 + at}"/></RHSFormulaList></V>'
        )
        before, after = max(at - 1, 0), min(at + 1, STATES - 1)
        references = {"k": 2, "W": 1, "a": 1000 + before, "b": 1000 + at, "c": 1000 + after}
        listed = "".join(f'<R alias="{alias}" id="{id}"/>' for alias, id in references.items())
        formulas.append(f'<ExplicitFormula id="{5000 + at}"><Equation>k*W/70*(a-2*b+c)</Equation><ReferenceList>{listed}</ReferenceList></ExplicitFormula>')
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<Simulation version="4" objectPathDelimiter="|" xmlns="http://www.systems-biology.com">\n'
        f"<ParameterList>{chr(10).join(parameters)}</ParameterList>\n<VariableList>{chr(10).join(variables)}</VariableList>\n"
        f"<FormulaList>{chr(10).join(formulas)}</FormulaList>\n"
        f'<OutputSchema><OutputIntervalList><OutputInterval distribution="Uniform"><StartTime>0</StartTime><EndTime>{SPAN:.0f}</EndTime>'
        f"<NumberOfTimePoints>{TIMES}</NumberOfTimePoints></OutputInterval></OutputIntervalList></OutputSchema>\n</Simulation>\n"
    )


def exact(at, seed=0):
    """Cmax, tmax and AUC of one compartment at the model's times.

    The exchange of a chain with closed ends has the eigenvalues 2 - 2 cos(pi j / n), and the cosines as eigenvectors.
    """
    rate, times = RATE + seed * 1e-9, [SPAN * number / (TIMES - 1) for number in range(TIMES)]

    def amount(time):
        total = 1 / STATES
        for j in range(1, STATES):
            angle = math.pi * j / STATES
            shape = math.cos(angle * (at + 0.5)) * math.cos(angle * 0.5)
            total += 2 / STATES * shape * math.exp(-rate * (2 - 2 * math.cos(angle)) * time)
        return START * total

    values = [amount(time) for time in times]
    cmax = max(values)
    area = sum((b - a) * (x + y) / 2 for a, b, x, y in zip(times, times[1:], values, values[1:]))
    return {"cmax": cmax, "tmax": times[values.index(cmax)], "auc": area}


def manifest(file, only):
    """What the models have to be; all, or those of these files."""
    told = json.loads(file.read_text())
    unknown = set(only or []) - {one["file"] for one in told["models"]}
    if unknown:
        raise SystemExit(f"error: {file} has no {', '.join(sorted(unknown))}")
    if only:
        told["models"] = [one for one in told["models"] if one["file"] in only]
    return told


def make(folder, told):
    """Writes each model that is not there, and checks all; gives what is wrong."""
    wrong, total = [], 0
    folder.mkdir(parents=True, exist_ok=True)
    for one in told["models"]:
        file = folder / one["file"]
        if not file.exists():
            file.write_text(model(one["seed"], one["paddingBytes"]), encoding="utf-8")
        data = file.read_bytes()
        total += len(data)
        digest = hashlib.sha256(data).hexdigest()
        if len(data) < BYTES_MIN:
            wrong.append(f"{file}: {len(data)} bytes are a placeholder and no model; remove it and make it again")
        elif digest != one["sha256"]:
            wrong.append(f"{file}: its SHA-256 is {digest}, and {one['sha256']} is expected; remove it and make it again")
        else:
            print(f"{file}  {len(data) / 1e6:.1f} MB  {digest}")
    if total > told["storageBytesMax"]:
        wrong.append(f"{folder}: {total} bytes are more than {told['storageBytesMax']}")
    return wrong


def verify(folder, told, durward):
    """Runs each model as a client does; gives what is wrong."""
    import tempfile

    from bench_clients import Rest, Server

    wrong = make(folder, told)
    if wrong:
        return wrong
    with tempfile.TemporaryDirectory(prefix="durward-models-") as place:
        server = Server(str(durward.resolve()), pathlib.Path(place), folder.resolve())
        try:
            client = Rest(server)
            for one in told["models"]:
                wrong += held(client, one)
        finally:
            server.stop()
    return wrong


def held(client, one):
    """Holds one model against its expected figures."""
    client.post("/load_simulation", filePath=one["file"], simulationId=one["file"], confirm=True)
    job = client.post("/run_simulation", simulationId=one["file"], confirm=True)[1]["jobId"]
    _, last = client.follow(job, 0.0)
    wrong, worst = [], 0.0
    for output, expected in one["expected"].items():
        metrics = client.post("/calculate_pk_parameters", resultsId=last["resultId"], outputPath=output)[1]["metrics"]
        for figure in FIGURES:
            found, wanted = metrics[0][figure], expected[figure]
            if figure == "tmax":
                # A flat top may be highest at the next of the times.
                if abs(found - wanted) > SPAN / (TIMES - 1) + 1e-9:
                    wrong.append(f"{one['file']}: tmax of {output} is {found} min, and {wanted} is expected")
                continue
            apart = abs(found - wanted) / abs(wanted) * 100
            worst = max(worst, apart)
            if apart > one["tolerancePercent"]:
                wrong.append(f"{one['file']}: {figure} of {output} is {found}, and {wanted} is expected")
    print(f"{one['file']}: {len(one['expected'])} outputs, at most {worst:.2g} % apart")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("make", help="write the models and check them")
    held_ = commands.add_parser("verify", help="run them and hold their curves against the expected figures")
    held_.add_argument("--durward", required=True, type=pathlib.Path, help="the program")
    for one in (made, held_):
        one.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("var/models/standard"), help="[default: var/models/standard]")
        one.add_argument("--manifest", type=pathlib.Path, default=MANIFEST, help="what the models have to be [default: workloads/models.json]")
        one.add_argument("--only", nargs="+", metavar="FILE", help="some of the models")
    args = parser.parse_args()
    told = manifest(args.manifest, args.only)
    wrong = make(args.folder, told) if args.command == "make" else verify(args.folder, told, args.durward)
    for line in wrong:
        print(f"error: {line}", file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
