"""The formula language of SimModel files, read a second time: nothing here is taken from the engine.

A formula becomes closures. What is known before a run (numbers of the text, constants of the file) is folded from the inside
out; truth and not-a-number then follow other rules than in a run, and products stop where they are 0.
"""

import math
import re

INF, NAN = math.inf, math.nan
ONE = {"ACOS", "ASIN", "ATAN", "COS", "COSH", "EXP", "LN", "LOG", "LOG10", "SIN", "SINH", "SQRT", "TAN", "TANH"}
COMPARISONS = {"EQ": "=", "GT": ">", "GEQ": ">=", "LT": "<", "LEQ": "<=", "NEQ": "<>"}
TWO = {"MIN", "MAX", "POW"} | COMPARISONS.keys()
CONSTANTS = {"PI": math.pi, "E": math.e, "NAN": NAN, "INF": INF, "INFINITY": INF}
NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
SIGN = re.compile(r"<=|>=|<>|!=|[-+*/^()<>=;?:]")
NAME = re.compile(r"[^-+*/^()<>=;?:&|!\1\2\3]+")
# Words of logic, as characters that no file holds: blanks are removed after them.
LOGIC = {"AND": "\1", "OR": "\2", "NOT": "\3"}


class Refused(Exception):
    """The text is no formula."""


def tokens(text):
    text = re.sub(r"(?i)n\. ?def\.", "NaN", text.replace(",", "."))
    word = r"(?i)(?<![A-Za-z0-9_])(AND|OR|NOT)(?![A-Za-z0-9_])"
    text = re.sub(r"\s", "", re.sub(word, lambda m: LOGIC[m[1].upper()], text))
    words = {sign: word for word, sign in LOGIC.items()} | {"&": "AND", "|": "OR"}
    found, i = [], 0
    while i < len(text):
        if text[i] in words:
            found.append(("op", words[text[i]]))
            i += 1
            continue
        sign, number = SIGN.match(text, i), NUMBER.match(text, i)
        if sign:
            found.append(("op", sign[0]))
            i = sign.end()
        elif number and not re.match(r"[A-Za-z_]", text[number.end() : number.end() + 1] or " "):
            found.append(("number", float(number[0])))
            i = number.end()
        else:
            name = NAME.match(text, i)
            if not name:
                raise Refused(f"unexpected '{text[i]}'")
            found.append(("name", name[0]))
            i = name.end()
    return found


class Parser:
    """Trees of tuples: ("number", value), ("name", alias), (operator, operands...)."""

    def __init__(self, text):
        self.tokens, self.at = tokens(text), 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")

    def take(self, *signs):
        kind, value = self.peek()
        if kind == "op" and value in signs:
            self.at += 1
            return value
        return None

    def whole(self):
        tree = self.conditional()
        if self.peek()[0] != "end":
            raise Refused("something follows")
        return tree

    def conditional(self):
        condition = self.either()
        if not self.take("?"):
            return condition
        first = self.either()
        if not self.take(":"):
            raise Refused("no ':'")
        return ("if", condition, first, self.either())

    def either(self):
        left = self.both()
        while self.take("OR"):
            left = ("or", left, self.both())
        return left

    def both(self):
        left = self.negation()
        while self.take("AND"):
            left = ("and", left, self.negation())
        return left

    def negation(self):
        return ("not", self.negation()) if self.take("NOT") else self.comparison()

    def comparison(self):
        left = self.sum()
        sign = self.take("<", "<=", ">", ">=", "=", "<>", "!=")
        return ("compare", "<>" if sign == "!=" else sign, left, self.sum()) if sign else left

    def sum(self):
        left = ("-", ("number", 0.0), self.product()) if self.take("-") else self.product()
        while sign := self.take("+", "-"):
            left = (sign, left, self.product())
        return left

    def product(self):
        factors = [self.quotient()]
        while self.take("*"):
            factors.append(self.quotient())
        return factors[0] if len(factors) == 1 else ("*", factors)

    def quotient(self):
        left = self.power()
        while self.take("/"):
            left = ("/", left, self.power())
        return left

    def power(self):
        base = self.operand()
        return ("^", base, self.power()) if self.take("^") else base

    def operand(self):
        kind, value = self.peek()
        if kind == "number":
            self.at += 1
            return ("number", value)
        if kind == "name":
            self.at += 1
            return self.call(value) if self.take("(") else self.word(value)
        if self.take("("):
            inner = self.conditional()
            self.close()
            return inner
        raise Refused(f"unexpected {value!r}")

    def close(self):
        if not self.take(")"):
            raise Refused("no ')'")

    def word(self, name):
        constant = CONSTANTS.get(name.upper())
        return ("name", name) if constant is None else ("number", constant)

    def call(self, name):
        operands = [self.conditional()]
        while self.take(";"):
            operands.append(self.conditional())
        self.close()
        name = name.upper()
        if not (name in ONE and len(operands) == 1 or name in TWO and len(operands) == 2):
            raise Refused(f"no function {name} of {len(operands)}")
        return ("compare", COMPARISONS[name], *operands) if name in COMPARISONS else ("call", name, operands)


def function(name, x):
    try:
        if name in ("LN", "LOG", "LOG10"):
            log = math.log10 if name == "LOG10" else math.log
            return log(x) if x > 0 else (-INF if x == 0 else NAN)
        return getattr(math, name.lower())(x)
    except OverflowError:
        return -INF if name == "SINH" and x < 0 else INF
    except ValueError:
        return NAN


def divided(a, b):
    if b == 0:
        return NAN if a == 0 or a != a else math.copysign(INF, a) * math.copysign(1, b)
    return a / b


def power(a, b):
    try:
        return a**b if not isinstance(a**b, complex) else NAN
    except ZeroDivisionError:
        return INF
    except OverflowError:
        return INF if a > 0 or b % 2 == 0 else -INF


def compared(sign, a, b):
    results = {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "=": a == b, "<>": a != b}
    return float(results[sign])


def product(functions):
    """From left to right, until it is 0."""
    value = None
    for one in functions:
        value = one() if value is None else value * one()
        if value == 0:
            return 0.0
    return value


class Formula:
    """A formula; `constant(alias)` is the number of a constant of the file or None, `live(alias)` the value in a run."""

    def __init__(self, text, constant, live):
        self.tree = Parser(text).whole()
        self.constant, self.live = constant, live
        self.value, self.known = self.compiled(self.tree, True)

    def compiled(self, tree, whole=False):
        """A closure, and the number where it is known; `whole` where the formula is this product as a whole."""
        make = getattr(self, "_" + {"+": "add", "-": "add", "*": "times", "/": "over", "^": "raised"}.get(tree[0], tree[0]))
        value, known = make(tree, whole)
        return (value, None) if known is None else ((lambda: known), known)

    def pair(self, a, b, folded, live):
        (f, x), (g, y) = self.compiled(a), self.compiled(b)
        if x is not None and y is not None:
            return None, folded(x, y)
        return (lambda: live(f(), g())), None

    def _number(self, tree, _):
        return None, tree[1]

    def _name(self, tree, _):
        alias = tree[1]
        return (lambda: self.live(alias)), self.constant(alias)

    def _add(self, tree, _):
        add = (lambda a, b: a + b) if tree[0] == "+" else (lambda a, b: a - b)
        return self.pair(tree[1], tree[2], add, add)

    def _raised(self, tree, _):
        return self.pair(tree[1], tree[2], power, power)

    def _times(self, tree, whole):
        # The numbers of the text are multiplied first and stand where the first of them stood.
        parts, number, place = [], None, 0
        for factor in tree[1]:
            if factor[0] == "number":
                place = len(parts) if number is None else place
                number = factor[1] if number is None else number * factor[1]
            else:
                parts.append(self.compiled(factor, whole))
        if number is not None and not (number == 1 and parts):
            parts.insert(place, ((lambda: number), number))
        known = [value for _, value in parts if value is not None]
        if whole and 0 in known:
            return None, 0.0
        functions = [one for one, _ in parts]
        if len(known) == len(parts):
            return None, product(functions)
        return (lambda: product(functions)), None

    def _over(self, tree, whole):
        (f, a), (g, b) = self.compiled(tree[1], whole), self.compiled(tree[2])
        if a == 0 and whole:
            return None, 0.0
        if b is None:
            return (lambda: divided(f(), g())), None
        if a is not None:
            zero = a == 0 and b == 0 and tree[2][0] != "number"
            return None, 0.0 if zero else divided(a, b)
        # The product with the reciprocal.
        reciprocal = divided(1.0, b)
        return (lambda: product([f, lambda: reciprocal])), None

    def _compare(self, tree, _):
        def folded(a, b):
            return 0.0 if a != a or b != b else compared(tree[1], a, b)

        def live(a, b):
            return NAN if a != a or b != b else compared(tree[1], a, b)

        return self.pair(tree[2], tree[3], folded, live)

    def logic(self, tree, combine):
        def live(a, b):
            return NAN if a != a or b != b else float(combine(a != 0, b != 0))

        return self.pair(tree[1], tree[2], lambda a, b: float(combine(a == 1, b == 1)), live)

    def _and(self, tree, _):
        return self.logic(tree, lambda a, b: a and b)

    def _or(self, tree, _):
        return self.logic(tree, lambda a, b: a or b)

    def _not(self, tree, _):
        f, a = self.compiled(tree[1])

        def live(x):
            return NAN if x != x else float(x == 0)

        if a is None:
            return (lambda: live(f())), None
        alone = tree is self.tree and tree[1][0] == "name"
        return None, live(a) if alone else float(a != 1)

    def _if(self, tree, _):
        (f, a), (g, b), (h, c) = (self.compiled(part) for part in tree[1:])
        if a is not None and (a == a or b is not None and c is not None):
            return (g, b) if a == 1 else (h, c)

        def live():
            condition = f()
            if condition != condition:
                return NAN
            return g() if condition == 1 else h()

        return live, None

    def _call(self, tree, _):
        name, operands = tree[1], tree[2]
        if name in ONE:
            f, a = self.compiled(operands[0])
            return (lambda: function(name, f())), None if a is None else function(name, a)
        if name == "POW":
            return self.pair(*operands, power, power)
        least = name == "MIN"

        def folded(a, b):
            return a if (a < b if least else a > b) else b

        def live(a, b):
            return NAN if a != a or b != b else folded(a, b)

        return self.pair(*operands, folded, live)
