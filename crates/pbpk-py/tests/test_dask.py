"""Chunks spread by Dask over processes, one of which is killed on the way: the bytes of a run on one machine."""

import os
import pathlib
import signal
import tempfile
import time
import unittest

import numpy as np
import pbpk
from distributed import Client, LocalCluster, get_worker

from test_pbpk import MODEL, people

COUNT = 60
CHUNK = 3


def chunk(model, file, start, stop, folder):
    """Runs one chunk; the worker that has the first of all waits to be killed, once."""
    mark = pathlib.Path(folder) / "begun"
    if start == 0 and not mark.exists():
        beside = mark.with_suffix(".tmp")
        beside.write_text(str(os.getpid()))
        beside.rename(mark)
        time.sleep(600)
    return get_worker().name, pbpk.run_chunk(model, file, start, stop)


class Dask(unittest.TestCase):
    def test_a_killed_worker_changes_no_byte(self):
        with tempfile.TemporaryDirectory() as folder:
            file = people(folder, COUNT)
            whole = pbpk.run_population(pbpk.load_simulation(MODEL), pbpk.load_population(file))
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
                starts = range(0, COUNT, CHUNK)
                futures = [
                    client.submit(chunk, str(MODEL), str(file), at, min(at + CHUNK, COUNT), folder, pure=False)
                    for at in starts
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
            self.assertEqual(values.tobytes(), whole.values.tobytes())


if __name__ == "__main__":
    unittest.main()
