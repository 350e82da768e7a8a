"""SimModel files read and run a second time, for small models: quantities, tables, events, and a solver of another family.

Rates are integrated by LSODA at far tighter tolerances than the engine's, from one time at which anything can change to the
next. Rows hold the values before the events of their time.
"""

import math
import re
import xml.etree.ElementTree as ElementTree

import numpy
from scipy.integrate import solve_ivp

from formulas import NAN, Formula

RELATIVE, ABSOLUTE = 1e-11, 1e-14
# Rates are never evaluated at the ends of a piece, where they may jump.
INSIDE = 1e-12


class Unsolved(Exception):
    """The solver gave up."""


def number(text):
    text = text.strip().replace(",", ".")
    words = {"NAN": NAN, "N. DEF.": NAN, "INF": math.inf, "-INF": -math.inf}
    return words.get(text.upper()) if text.upper() in words else float(text)


def children(element, name):
    found = element.find(name)
    return [] if found is None else list(found)


def flag(element, name):
    return element.get(name) in ("1", "true")


class Table:
    def __init__(self, element):
        self.slope = element.get("useDerivedValues") not in ("0", "false")
        points = element.find("PointList")
        self.x = [number(p.get("x")) for p in points]
        self.y = [number(p.get("y")) for p in points]
        self.flagged = [number(p.get("x")) for p in points if flag(p, "restartSolver")]

    def slopes(self):
        return [(self.y[i + 1] - self.y[i]) / (self.x[i + 1] - self.x[i]) for i in range(len(self.x) - 1)]

    def at(self, t):
        if t < self.x[0] or t >= self.x[-1]:
            return 0.0 if self.slope else self.y[0 if t < self.x[0] else -1]
        i = max(j for j, x in enumerate(self.x) if x <= t)
        slope = self.slopes()[i]
        return slope if self.slope else self.y[i] + slope * (t - self.x[i])

    def restarts(self):
        times = {self.x[0], *self.flagged}
        if self.slope:
            slopes = self.slopes()
            times |= {self.x[i] for i in range(1, len(slopes)) if slopes[i - 1] == 0 and slopes[i] != 0}
        return times


class Model:
    """A file, and a run of it. `sets` are pairs of path and value, as a user gives them."""

    def __init__(self, text, sets=()):
        self.root = ElementTree.fromstring(text)
        for element in self.root.iter():
            element.tag = element.tag.split("}")[-1]
        self.formulas = {int(e.get("id")): self.formula_of(e) for e in self.list("FormulaList")}
        self.events = [self.event_of(e) for e in self.list("EventList")]
        self.targets = {target for _, _, assignments in self.events for target, _, _ in assignments}
        self.path, self.number, self.by_formula, self.outputs = {}, {}, {}, []
        self.rates, self.start, self.frozen = {}, {}, set()
        for element in self.list("ParameterList"):
            self.quantity(element, flag(element, "persistable"))
        for element in self.list("VariableList"):
            self.variable(element)
        for element in self.list("ObserverList"):
            self.quantity(element, element.get("persistable") != "0")
        places = {path: q for q, path in self.path.items()}
        self.set = {places[path]: value for path, value in sets}
        self.times = self.output_times()
        tolerance = self.root.find("Solver").find("AbsTol").get("id")
        self.absolute = self.number[int(tolerance)]
        self.time, self.states, self.replaced, self.at_start = 0.0, {}, {}, {}
        self.compiled, self.constants = {}, {}

    def list(self, name):
        return children(self.root, name)

    def formula_of(self, e):
        ids = lambda *names: tuple(int(e.find(n).get("id")) for n in names)
        if e.tag == "TableFormula":
            return ("table", Table(e))
        if e.tag == "TableFormulaWithOffset":
            return ("offset", *ids("Table", "Offset"))
        if e.tag == "TableFormulaWithXArgument":
            return ("argument", *ids("Table", "XArgument"))
        references = {r.get("alias"): int(r.get("id")) for r in children(e, "ReferenceList")}
        return ("text", e.find("Equation").text, references)

    def event_of(self, e):
        assignments = [
            (int(a.get("objectId")), int(a.get("newFormulaId")), flag(a, "useAsValue"))
            for a in e.find("AssignmentList")
        ]
        return int(e.get("conditionFormulaId")), flag(e, "oneTime"), assignments

    def quantity(self, e, is_output):
        q = int(e.get("id"))
        self.path[q] = e.get("path")
        if e.get("formulaId"):
            self.by_formula[q] = int(e.get("formulaId"))
        else:
            self.number[q] = number(e.get("value"))
        if is_output:
            self.outputs.append(q)

    def variable(self, e):
        q = int(e.get("id"))
        self.path[q] = e.get("path")
        formula = e.get("initialValueFormulaId")
        self.start[q] = ("formula", int(formula)) if formula else ("number", number(e.get("value")))
        rates = [int(r.get("id")) for r in children(e, "RHSFormulaList")]
        if rates or q in self.targets:
            self.rates[q] = rates
        else:
            self.frozen.add(q)
        if e.get("persistable") != "0":
            self.outputs.append(q)

    def output_times(self):
        schema, times = self.root.find("OutputSchema"), []
        for interval in children(schema, "OutputIntervalList"):
            start, end, points = (number(interval.find(n).text) for n in ("StartTime", "EndTime", "NumberOfTimePoints"))
            times += [start + (end - start) * k / (points - 1) for k in range(int(points))]
        times += [number(t.text) for t in children(schema, "OutputTimeList")]
        kept = []
        for time in sorted(t for t in times if t >= 0):
            if not kept or numpy.float32(time) != numpy.float32(kept[-1]):
                kept.append(time)
        return kept

    # Constants of the file: neither time nor state, and nothing that the user or an event changes.
    def constant(self, q):
        if q not in self.constants:
            self.constants[q] = None
            self.constants[q] = self.found_constant(q)
        return self.constants[q]

    def found_constant(self, q):
        if q == 0 or q in self.rates or q in self.frozen or q in self.set or q in self.targets:
            return None
        if q in self.number:
            return self.number[q]
        formula = self.formulas[self.by_formula[q]]
        if formula[0] != "text":
            return None
        names = set(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", formula[1]))
        used = [r for alias, r in formula[2].items() if alias in names]
        known = all(self.constant(r) is not None for r in used)
        return self.formula(self.by_formula[q]).known if known else None

    def formula(self, f):
        if f not in self.compiled:
            _, text, references = self.formulas[f]
            self.compiled[f] = Formula(
                text, lambda alias: self.constant(references[alias]), lambda alias: self.value(references[alias])
            )
        return self.compiled[f]

    def value(self, q):
        if q == 0:
            return self.time
        if q in self.states:
            return self.states[q]
        if q in self.replaced:
            kind, what = self.replaced[q]
            return what if kind == "number" else self.evaluated(what)
        for known in (self.set, self.number, self.at_start):
            if q in known:
                return known[q]
        if q in self.by_formula:
            return self.evaluated(self.by_formula[q])
        kind, what = self.start[q]
        return what if kind == "number" else self.evaluated(what)

    def evaluated(self, f):
        kind, *rest = self.formulas[f]
        if kind == "text":
            return self.formula(f).value()
        if kind == "table":
            return rest[0].at(self.time)
        table, other = rest
        if kind == "argument":
            # What an event makes of the table's parameter does not matter.
            return self.set[table] if table in self.set else self.own_table(table).at(self.value(other))
        changed = self.replaced.get(table)
        if changed and (changed[0] == "number" or self.formulas[changed[1]][0] != "table"):
            return self.value(table)
        if table in self.set and not changed:
            return self.set[table]
        own = self.formulas[changed[1]][1] if changed else self.own_table(table)
        return own.at(self.time - self.value(other))

    def own_table(self, q):
        return self.formulas[self.by_formula[q]][1]

    def follows_state(self, q):
        if q in self.rates:
            return True
        if q in self.set or q not in self.by_formula:
            return False
        kind, *rest = self.formulas[self.by_formula[q]]
        used = rest[1].values() if kind == "text" else rest[1:]
        return any(self.follows_state(u) for u in used)

    def switch_times(self, f):
        """Values that the bare time is compared with, reached through logic alone."""
        if self.formulas[f][0] != "text":
            return set()
        formula, references, times = self.formula(f), self.formulas[f][2], set()

        def names(tree):
            if isinstance(tree, tuple) and tree[0] == "name":
                yield references[tree[1]]
            elif isinstance(tree, (tuple, list)):
                for part in tree:
                    yield from names(part)

        def walk(tree):
            if tree[0] in ("and", "or", "not"):
                for part in tree[1:]:
                    walk(part)
            elif tree[0] == "compare":
                for time, other in (tree[2:4], tree[3:1:-1]):
                    if time[0] == "name" and references[time[1]] == 0 and not any(map(self.follows_state, names(other))):
                        times.add(formula.compiled(other)[0]())

        walk(formula.tree)
        return times

    def table_times(self):
        """Times at which events are tested because of tables, and all kinks."""
        restarts, kinks = set(), set()
        for kind, *rest in self.formulas.values():
            if kind == "table":
                restarts |= rest[0].restarts()
                kinks |= set(rest[0].x)
            if kind == "offset" and rest[0] not in self.set:
                known = self.constant(rest[1]) is not None or rest[1] in self.set and rest[1] not in self.targets
                shift = self.value(rest[1]) if known else 0.0
                restarts |= {x + shift for x in self.own_table(rest[0]).restarts()}
                kinks |= {x + self.value(rest[1]) for x in self.own_table(rest[0]).x}
        return restarts, kinks

    def run(self):
        """Rows of the time and the outputs."""
        start = {q: self.set.get(q, self.value(q)) for q in self.rates}
        self.at_start = {q: self.set.get(q, self.value(q)) for q in self.frozen}
        self.states = start
        switches = set().union(*(self.switch_times(c) for c, _, _ in self.events))
        restarts, kinks = self.table_times()
        for kind, *rest in self.formulas.values():
            if kind == "text":
                # Every number of a text may be a time at which something jumps.
                kinks |= {float(n) for n in re.findall(r"\d+\.?\d*", rest[0].replace(",", "."))}
        rows, fired, end = [], set(), self.times[-1]
        if 0 in self.times:
            rows.append(self.row())
        self.test(fired)
        if 0 in switches | restarts:
            self.test(fired)
        tests = {t for t in switches | restarts | set(self.times) if 0 < t <= end}
        for stop in sorted(tests | {k for k in kinks if 0 < k < end}):
            self.integrate(stop)
            if stop in self.times:
                rows.append(self.row())
            if stop in tests:
                self.test(fired)
        return rows

    def row(self):
        def shown(q):
            value = self.value(q)
            return 0.0 if q in self.rates and -self.absolute < value < 0 else value

        return [self.time, *map(shown, self.outputs)]

    def test(self, fired):
        for i, (condition, once, assignments) in enumerate(self.events):
            if once and i in fired or self.evaluated(condition) != 1:
                continue
            fired.add(i)
            for target, f, as_value in assignments:
                if target in self.states:
                    self.states[target] = self.evaluated(f)
                elif as_value:
                    self.replaced[target] = ("number", self.evaluated(f))
                else:
                    self.replaced[target] = ("formula", f)

    def integrate(self, end):
        begin, moving = self.time, [q for q, rates in self.rates.items() if rates]
        margin = INSIDE * (end - begin)

        def rates(t, y):
            self.time = min(max(t, begin + margin), end - margin)
            self.states.update(zip(moving, y))
            return [sum(self.evaluated(f) for f in self.rates[q]) for q in moving]

        if moving:
            y = [self.states[q] for q in moving]
            floor = ABSOLUTE * max(1.0, *map(abs, y))
            solved = solve_ivp(rates, (begin, end), y, method="LSODA", rtol=RELATIVE, atol=floor)
            if not solved.success or not numpy.all(numpy.isfinite(solved.y[:, -1])):
                raise Unsolved(solved.message)
            self.states.update(zip(moving, map(float, solved.y[:, -1])))
        self.time = end
