"""The installed wheel against the numbers of other paths: closed forms, differences, the command's tables."""

import csv
import math
import os
import pathlib
import re
import signal
import tempfile
import threading
import unittest

import numpy as np
import pbpk

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "crates" / "pbpk" / "examples"
MODEL = EXAMPLES / "two_compartment.xml"
OUTPUT = "Organism|Central|Drug|Concentration"
SHARED = pathlib.Path(os.environ.get("PBPK_SHARED", ROOT.parent / "shared" / "pbpk"))
WHOLE_BODY = SHARED / "data" / "pkml" / "pksim_simple_simulation.pkml"
POPULATION = SHARED / "data" / "csv" / "ospr_pop.csv"


def people(folder, count=10):
    """A small population of the example."""
    file = pathlib.Path(folder) / "people.csv"
    with open(file, "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["IndividualId", "Organism|Weight [kg]", "Organism|Clearance [ml/min]"])
        for i in range(count):
            writer.writerow([i, 55 + 4 * i, 100 + 7 * i])
    return file


class Tables(unittest.TestCase):
    def test_population_files_may_have_covariates_empty_cells_and_decimal_commas(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "people.csv"
            file.write_text(
                "IndividualId;Gender;Population;Example|Organism|Weight [kg]\n0;MALE;European_ICRP_2002;70,5\n1;FEMALE;Other;\n"
            )
            population = pbpk.load_population(file)
            self.assertEqual(population.all_parameter_paths, ["Example|Organism|Weight"])
            self.assertEqual(population.all_covariate_names, ["Gender", "Population"])
            self.assertEqual(population.get_covariate_values("Gender"), ["MALE", "FEMALE"])
            simulation = pbpk.load_simulation(MODEL, outputs=[OUTPUT])
            results = pbpk.run_population(simulation, population)
            self.assertEqual((results.ids, results.failures), ([0, 1], []))
            self.assertEqual(results.warnings, ["numbers with a decimal comma were read"])
            # The second individual has the value of the model.
            self.assertEqual(results.values[1].tolist(), simulation.run().values.tolist())

    def test_a_column_that_occurs_twice_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "people.csv"
            file.write_text("IndividualId,Example|Organism|Weight [kg],Example|Organism|Weight [kg]\n0,70,80\n")
            with self.assertRaisesRegex(pbpk.PbpkError, "occurs twice"):
                pbpk.load_population(file)


class Single(unittest.TestCase):
    def test_values_are_set_by_path_with_units_and_reset(self):
        simulation = pbpk.load_simulation(MODEL)
        before = simulation.get_parameter_value("Organism|Weight")
        self.assertEqual(before[1], "kg")
        simulation.set_parameter_values_by_path(["Organism|Weight"], [85000], ["g"])
        self.assertEqual(simulation.get_parameter_value("Organism|Weight"), (85.0, "kg"))
        simulation.set_outputs([OUTPUT])
        self.assertEqual(simulation.get_parameter_value("Organism|Weight"), (85.0, "kg"))
        simulation.reset()
        self.assertEqual(simulation.get_parameter_value("Organism|Weight"), before)
        self.assertIn("Example|Organism|Clearance", simulation.get_all_parameter_paths("**|Clearance"))

    def test_results_are_arrays_that_share_no_copy(self):
        simulation = pbpk.load_simulation(MODEL, outputs=[OUTPUT])
        results = simulation.run(times=[0, 10, 20, 30], rtol=1e-9, atol=1e-12)
        self.assertEqual(results.times.tolist(), [0, 10, 20, 30])
        self.assertEqual(results.values.shape, (4, 1))
        # A view of the memory that the run wrote: reshaped, not copied.
        self.assertIsNotNone(results.values.base)
        self.assertIs(results.values, results.values)
        column = results.get_output_values(OUTPUT)
        self.assertTrue(np.shares_memory(column, results.values))

    def test_doses_of_a_regimen_add_up(self):
        times = [60.0 * i for i in range(1, 30)]
        curve = lambda regimen: pbpk.load_simulation(MODEL, [OUTPUT], regimen=[regimen]).run(times, 1e-10, 1e-13).values[:, 0]
        once, twice = curve("300 µmol"), curve("300 µmol,interval=10 h,number=2")
        # 10 h are 10 rows.
        shifted = np.concatenate([np.zeros(10), once[:-10]])
        np.testing.assert_allclose(twice, once + shifted, rtol=1e-7, atol=1e-9)
        with self.assertRaisesRegex(pbpk.PbpkError, "did you mean interval"):
            pbpk.load_simulation(MODEL, regimen=["300 µmol,intervall=10 h"])

    def test_a_fit_by_likelihood_has_criteria(self):
        simulation = pbpk.load_simulation(MODEL, [OUTPUT])
        times = np.linspace(10, 600, 24)
        values = simulation.run(times.tolist()).values[:, 0] * np.where(np.arange(24) % 2, 1.05, 0.95)
        clearance = "Example|Organism|Clearance"
        fit = pbpk.fit(simulation, {OUTPUT: (times, values)}, {clearance: (0.01, 1)}, error="proportional", starts=2)
        (estimate,) = fit
        self.assertTrue(estimate.low < 0.1 < estimate.high)
        self.assertAlmostEqual(fit.aic, fit.objective + 4)
        self.assertAlmostEqual(fit.sigmas[0][2], 0.05, delta=0.005)
        self.assertEqual(len(fit.starts), 2)
        self.assertIsNone(pbpk.fit(simulation, {OUTPUT: (times, values)}, {clearance: (0.01, 1)}).aic)

    def test_results_name_the_release_and_have_the_warnings_of_the_run(self):
        text = MODEL.read_text()
        start = text.index("<OutputSchema")
        late = (
            "<OutputSchema><OutputIntervalList><OutputInterval><StartTime>60</StartTime><EndTime>120</EndTime>"
            "<NumberOfTimePoints>2</NumberOfTimePoints></OutputInterval></OutputIntervalList></OutputSchema></Simulation>"
        )
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "late.xml"
            file.write_text(text[:start] + late)
            simulation = pbpk.load_simulation(file, outputs=[OUTPUT])
            results = simulation.run()
            self.assertEqual((results.osp_version, results.times.tolist()), ("12.4.3", [0, 60, 120]))
            results = simulation.run(osp_version="13-dev")
            self.assertEqual((results.osp_version, results.times.tolist()), ("13-dev", [60, 120]))
            self.assertEqual(results.warnings, [])
            with self.assertRaisesRegex(pbpk.PbpkError, "12.4.3 or 13-dev"):
                simulation.run(osp_version="11")
            population = pbpk.load_population(people(folder, 3))
            many = pbpk.run_population(simulation, population, osp_version="13-dev")
            self.assertEqual((many.osp_version, many.times.tolist()), ("13-dev", [60, 120]))

    def test_derivatives_are_those_of_differences(self):
        simulation = pbpk.load_simulation(MODEL, outputs=[OUTPUT])
        path = "Example|Organism|Clearance"
        value = simulation.get_parameter_value(path)[0]
        exact = simulation.run(rtol=1e-9, atol=1e-12, sensitivity_to=[path]).derivatives[:, 0, 0]
        step = 1e-4 * value
        sides = []
        for changed in (value + step, value - step):
            simulation.set_parameter_values_by_path([path], [changed])
            sides.append(simulation.run(rtol=1e-11, atol=1e-14).values[:, 0])
        difference = (sides[0] - sides[1]) / (2 * step)
        self.assertLess(np.abs(exact - difference).max(), 1e-4 * np.abs(difference).max())

    def test_a_fit_finds_the_values_of_the_data(self):
        simulation = pbpk.load_simulation(MODEL, outputs=[OUTPUT])
        path = "Example|Organism|Clearance"
        truth = 1.3 * simulation.get_parameter_value(path)[0]
        simulation.set_parameter_values_by_path([path], [truth])
        results = simulation.run(rtol=1e-9, atol=1e-12)
        simulation.reset()
        data = {OUTPUT: (results.times[1:], results.values[1:, 0])}
        (estimate,) = pbpk.fit(simulation, data, {path: None})
        self.assertLess(abs(estimate.value - truth), 1e-4 * truth)
        self.assertTrue(estimate.low <= estimate.value <= estimate.high)

    def test_mistakes_are_exceptions_with_the_message(self):
        with self.assertRaisesRegex(pbpk.PbpkError, "no-such-file"):
            pbpk.load_simulation("no-such-file.pkml")
        simulation = pbpk.load_simulation(MODEL)
        before = simulation.get_parameter_value("Organism|Weight")
        for paths, values, units, part in [
            (["Organism|Wight"], [1], None, "Organism|Weight"),
            (["Organism|Weight"], [1], ["l"], "unit"),
            (["Organism|Weight"], [math.nan], None, "number"),
            (["Organism|Weight"], [1, 2], None, "equally many"),
            (["Organism|Weight", "nothing"], [1, 2], None, "nothing"),
        ]:
            with self.assertRaisesRegex(pbpk.PbpkError, re.escape(part)):
                simulation.set_parameter_values_by_path(paths, values, units)
            self.assertEqual(simulation.get_parameter_value("Organism|Weight"), before)
        with self.assertRaisesRegex(pbpk.PbpkError, "no output"):
            simulation.run().get_output_values("x")
        with self.assertRaisesRegex(pbpk.PbpkError, "one of log, absolute, additive"):
            pbpk.fit(simulation, {}, {}, error="x")

    def test_a_run_lets_other_threads_go_on(self):
        """While the lock is free, a second thread counts; holding it would keep the count where it is."""
        simulation = pbpk.load_simulation(MODEL, outputs=[OUTPUT])
        times = np.linspace(0, 1e6, 400_001).tolist()
        counted, over = [0], threading.Event()

        def count():
            while not over.is_set():
                counted[0] += 1
                over.wait(1e-4)

        counter = threading.Thread(target=count)
        counter.start()
        while counted[0] == 0:
            pass
        # Taking the list apart holds the lock; the run itself, which is longer, does not.
        advanced = 0
        for _ in range(20):
            before = counted[0]
            simulation.run(times=times)
            advanced += counted[0] - before
            if advanced > 100:
                break
        over.set()
        counter.join()
        self.assertGreater(advanced, 100)


class Ended(Exception):
    """What the handler of a signal raises."""


class Signals(unittest.TestCase):
    """A handler that raises at its third call: signals that wait for the end of a call are told once, however many came."""

    def setUp(self):
        self.told = 0
        before = signal.signal(signal.SIGALRM, self.tell)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)

    def tell(self, *_):
        self.told += 1
        if self.told == 3:
            raise Ended

    def test_a_run_is_ended(self):
        simulation = pbpk.load_simulation(MODEL, [OUTPUT])
        times = np.linspace(0, 1440, 3_000_000).tolist()
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        with self.assertRaises(Ended):
            simulation.run(times=times)

    def test_a_population_is_ended(self):
        simulation = pbpk.load_simulation(MODEL, [OUTPUT])
        with tempfile.TemporaryDirectory() as folder:
            population = pbpk.load_population(people(folder, 30_000))
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        with self.assertRaises(Ended):
            pbpk.run_population(simulation, population, threads=2)


class Populations(unittest.TestCase):
    def test_threads_and_chunks_give_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            file = people(folder, 50)
            simulation = pbpk.load_simulation(MODEL)
            population = pbpk.load_population(file)
            self.assertEqual(len(population), 50)
            one, eight = (pbpk.run_population(simulation, population, threads=n) for n in (1, 8))
            self.assertEqual(one.values.tobytes(), eight.values.tobytes())
            self.assertEqual(one.ids, list(range(50)))
            parts = [pbpk.run_chunk(MODEL, file, at, min(at + 7, 50)) for at in range(0, 50, 7)]
            self.assertEqual(np.concatenate([p[1] for p in parts]).tobytes(), one.values.tobytes())
            for i in (0, 17, 49):
                simulation.set_parameter_values_by_path(
                    ["Organism|Weight", "Organism|Clearance"], [55 + 4 * i, 100 + 7 * i], ["kg", "ml/min"]
                )
                self.assertEqual(simulation.run().values.tobytes(), one.values[i].tobytes())
                simulation.reset()
            with self.assertRaisesRegex(pbpk.PbpkError, "rows 40 to 60 of 50"):
                pbpk.run_chunk(MODEL, file, 40, 60)

    @unittest.skipUnless(WHOLE_BODY.exists(), "the reference data are not here")
    def test_the_suites_population_runs_and_tells_what_it_does_not_match(self):
        simulation = pbpk.load_simulation(WHOLE_BODY, outputs=["Organism|VenousBlood|Plasma|C1"])
        people = pbpk.run_population(simulation, pbpk.load_population(POPULATION))
        self.assertEqual(people.values.shape, (10, 129, 1))
        self.assertEqual((len(people.unmatched), people.failures), (7, []))


class Guide(unittest.TestCase):
    def test_the_code_of_the_guide_runs(self):
        text = (ROOT / "crates" / "pbpk-py" / "README.md").read_text(encoding="utf-8")
        blocks = re.findall(r"```python\n(.*?)```", text, re.S)
        self.assertGreaterEqual(len(blocks), 5)
        here = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / MODEL.name).write_bytes(MODEL.read_bytes())
            people(folder)
            os.chdir(folder)
            try:
                names = {}
                for block in blocks:
                    exec(compile(block, "README.md", "exec"), names)
            finally:
                os.chdir(here)


if __name__ == "__main__":
    unittest.main()
