"""Small models drawn by lot: reactions, derived parameters, tables, events, values that a user sets, output times.

The same seed draws the same model, as the text of a SimModel file, and the values to be set.
"""

import random
import re
from xml.sax.saxutils import escape

TIMES = [0.5, 1, 1.5, 2, 2.25, 3, 3.7, 4, 5, 6.1, 7.3, 8, 9.9, 11]
PLACES = [0, 0.5, 1, 2, 2.5, 3, 4, 5, 5.5, 6, 7, 8, 10, 12, 15]
MODES = [' useDerivedValues="0"', ' useDerivedValues="0"', ' useDerivedValues="1"', ""]
SCALES = ["", "<ScaleFactor>1</ScaleFactor>", "<ScaleFactor>50</ScaleFactor>", "<ScaleFactor>0.01</ScaleFactor>"]
NAME = re.compile(r"(?<![A-Za-z0-9_])[A-Z]+[a-z]*[0-9]*(?![A-Za-z0-9_(])")
SETTINGS = {"AbsTol": "1e-12", "RelTol": "1e-8", "H0": "1E-10", "HMin": "0", "HMax": "60", "MxStep": "100000", "UseJacobian": "1"}


class Lot:
    def __init__(self, seed):
        self.lot = random.Random(seed)
        self.any, self.chance = self.lot.choice, lambda p: self.lot.random() < p
        self.ids, self.next = {"Time": 0}, 0
        self.formulas, self.parameters, self.variables, self.observers, self.events = [], [], [], [], []
        self.sets = []

    def number(self, low=0.05, high=2.0):
        return round(self.lot.uniform(low, high), 3)

    def id(self):
        self.next += 1
        return self.next

    # Formulas, with the references that their text uses.
    def formula(self, text):
        used = {n: self.ids[n] for n in NAME.findall(text) if n in self.ids}
        references = "".join(f'<R alias="{n}" id="{i}"/>' for n, i in used.items())
        f = self.id()
        self.formulas.append(
            f'<ExplicitFormula id="{f}"><Equation>{escape(text)}</Equation>'
            + (f"<ReferenceList>{references}</ReferenceList>" if references else "")
            + "</ExplicitFormula>"
        )
        return f

    def parameter(self, name, source):
        self.ids[name] = self.id()
        self.parameters.append((name, source))
        return name

    def expression(self, depth, pool):
        if depth <= 0 or self.chance(0.15):
            return self.any(pool) if self.chance(0.75) else str(self.number())
        inner = lambda: self.expression(depth - 1, pool)
        forms = [
            lambda: f"({inner()}+{inner()})",
            lambda: f"({inner()}-{inner()})",
            lambda: f"{inner()}*{inner()}",
            lambda: f"({inner()})*({inner()})",
            lambda: f"{inner()}/(0.5+({inner()})^2)",
            lambda: f"{self.any(['EXP', 'SIN', 'COS', 'TANH', 'ATAN'])}(-0.3*({inner()}))",
            lambda: f"{self.any(['MIN', 'MAX'])}({inner()};{inner()})",
            lambda: f"(({self.condition(1, pool)}) ? {inner()} : {inner()})",
            lambda: f"({inner()})^{self.any('123')}",
            lambda: f"({self.condition(1, pool)})*{self.number()}",
            lambda: f"SQRT(1+({inner()})^2)",
            lambda: f"{inner()}*{inner()}/{self.number(0.5, 3)}",
        ]
        return self.any(forms)()

    def condition(self, depth, pool):
        if depth <= 0 or self.chance(0.5):
            a, b = self.any(pool), self.any(pool) if self.chance(0.3) else str(self.number(0.1, 3))
            forms = [
                f"{a}{self.any(['<', '>', '<=', '>='])}{b}",
                f"{self.any(['GT', 'LT', 'GEQ', 'LEQ'])}({a};{b})",
                f"{a if self.chance(0.3) else b + '<' + a}",
                f"Time{self.any(['<', '>=', '>', '<='])}{self.any(self.times)}",
            ]
            return self.any(forms)
        inner = lambda: f"({self.condition(depth - 1, pool)})"
        forms = [
            lambda: f"{inner()} {self.any(['AND', 'OR', 'and', 'Or', '&', '|'])} {inner()}",
            lambda: f"NOT{inner()}",
            lambda: f"NOT {inner()} AND {inner()}",
            lambda: f"{inner()} OR {inner()} AND {inner()}",
        ]
        return self.any(forms)()

    # The parts of a model.
    def table(self, name):
        x = sorted(self.lot.sample(PLACES, self.lot.randint(2, 5)))
        if self.chance(0.2):
            x = [place - 2 for place in x]
        y = [self.number(0, 2) for _ in x]
        if self.chance(0.4):
            y[1] = y[0]
        points = "".join(f'<Point x="{a}" y="{b}" restartSolver="{int(self.chance(0.3))}"/>' for a, b in zip(x, y))
        f = self.id()
        self.formulas.append(f'<TableFormula id="{f}"{self.any(MODES)}><PointList>{points}</PointList></TableFormula>')
        return self.parameter(name, f'formulaId="{f}"')

    def read_table(self):
        f, table = self.id(), self.ids[self.any(self.tables)]
        if self.chance(0.6):
            what, other = "Offset", self.any(self.constants)
        else:
            what, other = "XArgument", self.any(self.constants + self.states)
        tag = f"TableFormulaWith{what}"
        self.formulas.append(f'<{tag} id="{f}"><Table id="{table}"/><{what} id="{self.ids[other]}"/></{tag}>')
        return f

    def zero(self, state):
        """A rate with a factor of 0 beside what is no number."""
        if "Z" not in self.ids:
            self.parameter("Z", 'value="0"')
            self.parameter("NEG", 'value="-1"')
        forms = [f"Z*LN(Z)*{state}", f"{state}*LN(Z)*Z", "Time*LN(Time)*0.01", "Z/Time", f"0*LN(NEG)*{state}"]
        return self.any(forms)

    def rate(self, pool):
        if self.chance(0.12):
            return self.zero(self.any(self.states))
        other = self.any(self.states)
        forms = [
            lambda: f"{self.number(0.05, 0.5)}*{other}/(0.5+SQRT({other}^2))",
            lambda: f"{self.number(0.05, 0.3)}*{self.any(pool)}/(1+SQRT(({self.any(pool)})^2))",
            lambda: f"0.1*(({self.condition(2, pool)}))",
            lambda: f"0.2*TANH({self.expression(2, pool)})",
            lambda: f"({self.condition(2, pool)}) ? {self.number(0, 0.3)} : {self.number(0, 0.3)}*TANH({other})",
            lambda: f"{self.number(0.05, 0.3)}*EXP(-0.2*Time)",
        ]
        return self.any(forms)()

    def variable(self, name, rates, start):
        listed = "".join(f'<RHSFormula id="{r}"/>' for r in rates)
        listed = f"<RHSFormulaList>{listed}</RHSFormulaList>" if rates else ""
        self.variables.append(
            f'<V id="{self.ids[name]}" name="{name}" path="S|{name}" persistable="1" {start} negativeValuesAllowed="1">'
            f"{self.any(SCALES)}{listed}</V>"
        )

    def event(self, i):
        time, state, constant = self.any(self.times), self.any(self.states), self.any(self.constants)
        conditions = [
            f"Time>={time}", f"Time={time}", f"{time}<=Time", f"Time>={time} AND Time<{float(time) + 1.5}",
            f"{state}>{self.number(0.3, 2)}", f"Time>0 AND {state}<={self.number(0.3, 2)}", f"EQ(Time;{time})",
            f"GEQ(Time;{constant}+{time})", f"2*Time>={time}", f"Time-{time}>=0", f"(Time>={time}) ? 1 : 0",
            f"Time={self.any(['0', constant, time])}", f"NOT(Time<{time})",
            f"Time>={self.any(['0', constant])} AND NOT({state}>1)", f"Time>={time} OR {state}>{self.number(2, 4)}",
        ]  # fmt: skip
        # None of them uses a derived parameter, so that nothing goes in circles.
        formulas = ["0.37", f"0.2*{state}", f"0.05+0.1*SQRT({state}^2)", "0.1+0.02*Time"]
        values = [f"{state}+1", f"0.5*{state}+0.1", state, f"{constant}*0.5+0.2", *formulas]
        assignments = []
        for _ in range(self.lot.randint(1, 3)):
            target = self.any(self.states * 2 + self.constants + self.derived + self.tables)
            as_value = self.chance(0.6)
            text = self.any(values if as_value or target in self.states else formulas)
            assignments.append(
                f'<Assignment objectId="{self.ids[target]}" newFormulaId="{self.formula(text)}" useAsValue="{int(as_value)}"/>'
            )
        condition, once = self.formula(self.any(conditions)), int(self.chance(0.5))
        self.events.append(
            f'<Event conditionFormulaId="{condition}" id="{self.id()}" oneTime="{once}">'
            f'<AssignmentList>{"".join(assignments)}</AssignmentList></Event>'
        )

    def outputs(self):
        end = self.any([8, 10, 12, 20, 24])
        late = self.chance(0.3)
        begin = self.any([0.5, 1, 2, 3]) if late else 0
        intervals = [(begin, self.any([end, end - 1, begin + 4]), self.any([3, 4, 5, 11, 13, 25]))]
        if self.chance(0.5):
            begin = self.any([begin, 1, 2, 3])
            intervals.append((begin, self.any([end, begin + 4]), self.any([3, 5, 11])))
        times = [self.any([self.number(0.5, end), float(self.any(self.times)), 1 / 3, 2 / 3]) for _ in range(self.any([0, 0, 1, 3]))]
        if times and self.chance(0.3):
            times.append(times[0] * (1 + 1e-9))
        listed = "".join(
            f'<OutputInterval distribution="Uniform"><StartTime>{a}</StartTime><EndTime>{b}</EndTime>'
            f"<NumberOfTimePoints>{n}</NumberOfTimePoints></OutputInterval>"
            for a, b, n in intervals
        )
        single = "".join(f"<OutputTime>{t!r}</OutputTime>" for t in times)
        single = f"<OutputTimeList>{single}</OutputTimeList>" if times else ""
        return f"<OutputSchema><OutputIntervalList>{listed}</OutputIntervalList>{single}</OutputSchema>"

    def model(self):
        self.times = [str(t) for t in self.lot.sample(TIMES, 5)]
        self.states = [f"S{i}" for i in range(self.lot.randint(1, 5))]
        still = ["X0"] if self.chance(0.35) else []
        self.ids.update({name: self.id() for name in self.states + still})
        self.tables = [self.table(f"T{i}") for i in range(self.any([0, 0, 1, 2]))]
        drawn = lambda: self.any([0, 1, -0.7, 2.5]) if self.chance(0.1) else self.number()
        self.constants = [self.parameter(f"P{i}", f'value="{drawn()}"') for i in range(self.lot.randint(2, 7))]
        self.derived = []
        for i in range(self.lot.randint(0, 4)):
            live = [] if self.chance(0.25) else self.states + still + self.tables + ["Time"]
            text = self.expression(2, self.constants + self.derived + live)
            f = self.read_table() if self.tables and self.chance(0.5) else self.formula(text)
            self.derived.append(self.parameter(f"D{i}", f'formulaId="{f}"'))
        pool = self.constants + self.derived + self.states + still + self.tables
        for i, name in enumerate(self.states):
            speed = self.any(self.constants) if self.chance(0.6) else self.number(0.05, 0.6)
            rates = [f"-{speed}*{name}"] + [self.rate(pool) for _ in range(self.lot.randint(0, 3))]
            rates = [] if self.chance(0.15) else [self.formula(text) for text in rates]
            start = f'value="{self.number(0.1, 5)}"'
            if self.chance(0.25):
                before = self.states[:i] or self.constants
                start = f'initialValueFormulaId="{self.formula(self.expression(1, self.constants + before))}"'
            self.variable(name, rates, start)
        for name in still:
            text = self.expression(1, self.constants + self.states)
            start = [f'value="{self.number()}"', f'initialValueFormulaId="{self.formula(text)}"']
            self.variable(name, [], self.any(start))
        for i in range(self.lot.randint(1, 5)):
            pick = self.expression(3, pool + ["Time"]) if self.chance(0.6) else self.condition(2, pool + ["Time"])
            self.observers.append(
                f'<Observer id="{self.id()}" name="O{i}" path="S|O{i}" persistable="1" formulaId="{self.formula(pick)}"/>'
            )
        for i in range(self.any([0, 1, 1, 2, 2, 3, 4])):
            self.event(i)
        if self.chance(0.35):
            chosen = self.lot.sample(self.constants + self.derived + self.states, self.any([1, 1, 2]))
            self.sets = [(f"S|{name}", self.number()) for name in chosen]
        return self.document()

    def document(self):
        parameters = "".join(
            f'<P id="{self.ids[name]}" name="{name}" path="S|{name}" persistable="1" {source}/>'
            for name, source in self.parameters
        )
        solver = ""
        for name, value in SETTINGS.items():
            setting = self.id()
            parameters += f'<P id="{setting}" name="{name}" path="{name}" persistable="0" value="{value}"/>'
            solver += f'<{name} id="{setting}"/>'
        lists = [
            f'<FormulaList>{"".join(self.formulas)}</FormulaList>',
            f'<VariableList>{"".join(self.variables)}</VariableList>',
            f"<ParameterList>{parameters}</ParameterList>",
            f'<ObserverList>{"".join(self.observers)}</ObserverList>',
            f"<Solver>{solver}</Solver>",
            self.outputs(),
        ]
        if self.events:
            lists.append(f'<EventList>{"".join(self.events)}</EventList>')
        self.lot.shuffle(lists)
        return f'<Simulation objectPathDelimiter="|" version="4">{"".join(lists)}</Simulation>'


def drawn(seed):
    """The model of a seed, and what is set."""
    lot = Lot(seed)
    text = lot.model()
    return text, lot.sets
