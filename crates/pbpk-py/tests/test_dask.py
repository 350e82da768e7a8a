"""Chunks spread by Dask over processes, one of which is killed on the way: the bytes of a run on one machine.

By default 60 individuals of the example; PBPK_DASK_INDIVIDUALS=10000 takes that many of the whole body instead, made of the
suite's population.
"""

import csv
import os
import pathlib
import random
import signal
import tempfile
import time
import unittest

import numpy as np
import pbpk
from distributed import Client, LocalCluster, get_worker

from test_pbpk import MODEL, POPULATION, WHOLE_BODY, people

COUNT = 60
CHUNK = 3
WHOLE_BODIES = int(os.environ.get("PBPK_DASK_INDIVIDUALS", "0"))
WHOLE_BODY_CHUNK = 250
WHOLE_BODY_OUTPUTS = [
    "Organism|PeripheralVenousBlood|C1|Blood Cells",
    "Organism|PeripheralVenousBlood|C1|Plasma (Peripheral Venous Blood)",
]


def many_people(folder, count):
    """The individuals of the suite's population over and over, each value up to 2 % larger or smaller."""
    lot = random.Random(1)
    with open(POPULATION, encoding="utf-8-sig") as source:
        head, *rows = csv.reader(line for line in source if not line.startswith("#"))
    facts = {"IndividualId", "Gender", "RaceIndex", "Population Name"}
    file = pathlib.Path(folder) / "many.csv"
    with open(file, "w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(head)
        for i in range(count):
            drawn = [
                value if name in facts else repr(float(value) * lot.uniform(0.98, 1.02))
                for name, value in zip(head, rows[i % len(rows)])
            ]
            drawn[head.index("IndividualId")] = i
            writer.writerow(drawn)
    return file


def chunk(model, file, start, stop, outputs, folder):
    """Runs one chunk; the worker that has the first of all waits to be killed, once."""
    mark = pathlib.Path(folder) / "begun"
    if start == 0 and not mark.exists():
        beside = mark.with_suffix(".tmp")
        beside.write_text(str(os.getpid()))
        beside.rename(mark)
        time.sleep(600)
    return get_worker().name, pbpk.run_chunk(model, file, start, stop, outputs)


class Dask(unittest.TestCase):
    def test_a_killed_worker_changes_no_byte(self):
        with tempfile.TemporaryDirectory() as folder:
            if WHOLE_BODIES:
                model, outputs, count, size = WHOLE_BODY, WHOLE_BODY_OUTPUTS, WHOLE_BODIES, WHOLE_BODY_CHUNK
                file = many_people(folder, count)
            else:
                model, outputs, count, size = MODEL, None, COUNT, CHUNK
                file = people(folder, count)
            whole = pbpk.run_population(pbpk.load_simulation(model, outputs=outputs), pbpk.load_population(file))
            self.assertEqual(whole.failures, [])
            with (
                LocalCluster(
                    n_workers=2,
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address=None,
                    local_directory=folder,
                ) as cluster,
                Client(cluster) as client,
            ):
                futures = [
                    client.submit(chunk, str(model), str(file), at, min(at + size, count), outputs, folder, pure=False)
                    for at in range(0, count, size)
                ]
                mark = pathlib.Path(folder) / "begun"
                deadline = time.monotonic() + 300
                while not mark.exists():
                    self.assertLess(time.monotonic(), deadline, "no worker took the first chunk")
                    time.sleep(0.01)
                os.kill(int(mark.read_text()), signal.SIGKILL)
                parts = client.gather(futures)
            values = np.concatenate([part[1][1] for part in parts])
            ids = [number for part in parts for number in part[1][0]]
            self.assertEqual(ids, whole.ids)
            self.assertEqual(len(ids), count)
            self.assertEqual(values.tobytes(), whole.values.tobytes())


if __name__ == "__main__":
    unittest.main()
