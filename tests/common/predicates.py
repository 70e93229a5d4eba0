"""Random predicates over a table's columns, and which rows they want: by Python's own numbers.

A predicate is a tree of ("and"|"or", [trees]), ("not", tree) and atoms; each says its own text and
its rows. Rows are judged as SQL does (three values), NaN as IEEE 754 does.
"""

import bisect
import decimal
import math
import re

import numpy as np
import pyarrow as pa

from common import values


def number_of(text, kind):
    """The value a text means to a float column: the nearest, be it an infinite one."""
    with np.errstate(over="ignore"):
        return float(np.array(float(text)).astype(kind.to_pandas_dtype()))


class Column:
    """One column of plain values: codes by rank, so that a comparison is one of integers."""

    def __init__(self, name, array):
        self.name = name
        array = values.storage(array)
        self.kind = array.type
        self.items = values.identities(array)
        self.is_float = pa.types.is_floating(self.kind)
        kinds = {v for v in self.items if v is not None and v != values.NAN}
        self.sorted = sorted(kinds)
        rank = {v: i for i, v in enumerate(self.sorted)}
        codes = [-1 if v is None else -2 if v == values.NAN else rank[v] for v in self.items]
        self.codes = np.array(codes, np.int64)
        self.null = self.codes == -1
        self.nan = self.codes == -2
        self.value = self.codes >= 0

    @property
    def is_text(self):
        t = pa.types
        return t.is_string(self.kind) or t.is_large_string(self.kind) or t.is_string_view(
            self.kind)

    def path(self):
        return ".".join('"' + part.replace('"', '""') + '"' for part in self.name.split("."))

    def place(self, identity):
        """The ranks [low, high) of values equal to this one: empty between two of them."""
        return bisect.bisect_left(self.sorted, identity), bisect.bisect_right(self.sorted,
                                                                              identity)

    def compare(self, op, identity):
        """The rows for which it holds; those of null aside, the others are false."""
        if identity == values.NAN:
            return ~self.null if op == "!=" else np.zeros(len(self.codes), bool)
        low, high = self.place(identity)
        is_equal = self.value & (self.codes >= low) & (self.codes < high)
        if op == "=":
            return is_equal
        if op == "!=":
            return ~self.null & ~is_equal
        if op == "<":
            return self.value & (self.codes < low)
        if op == "<=":
            return self.value & (self.codes < high)
        if op == ">":
            return self.value & (self.codes >= high)
        return self.value & (self.codes >= low)


class Atom:
    def __init__(self, text, true, null):
        self.text, self.true, self.null = text, true, null


class Maker:
    """Draws predicates over some columns."""

    def __init__(self, columns, rng):
        self.columns = [c for c in columns if len(c.items) > 0]
        self.rng = rng

    def literal(self, column):
        """(text as written, identity); of the column, near a value of it, or anything."""
        rng, kind, t = self.rng, column.kind, pa.types
        if rng.random() < 0.05 and (far := self.far(column)) is not None:
            return far
        if not column.sorted or rng.random() < 0.02:
            pool = {"bool": True, "float": 0.5}
            identity = (pool["bool"] if t.is_boolean(kind) else 0.5 if column.is_float
                        else b"q" if column.is_text else None)
            if identity is None:
                identity = column.sorted[0] if column.sorted else self.zero(kind)
        else:
            identity = rng.choice(column.sorted)
        if column.is_float and rng.random() < 0.05:
            identity = values.NAN
        elif rng.random() < 0.3:
            identity = self.near(identity, column)
        text = values.text_of(identity, kind, rng)
        if column.is_float and identity != values.NAN:
            identity = number_of(text, kind) + 0.0
        bare = (t.is_integer(kind) or t.is_decimal(kind) or column.is_float) and re.fullmatch(
            r"[-+]?[0-9][0-9.]*(e[-+]?[0-9]+)?", text)
        if bare and rng.random() < 0.7 or t.is_boolean(kind) and rng.random() < 0.5:
            return text, identity
        return "'" + text.replace("'", "''") + "'", identity

    def far(self, column):
        """(text, identity) of a number that the type need not hold; None: it holds no numbers."""
        kind, t = column.kind, pa.types
        sign, power = self.rng.choice([1, -1]), self.rng.choice([3, 12, 25, 39, 60, 400])
        text = f"{'-' if sign < 0 else ''}1e{power}"
        identity = sign * 10**power
        if column.is_float:
            nearest = number_of(text, kind)
            return text, identity if math.isinf(nearest) else nearest
        if t.is_decimal(kind):
            return text, decimal.Decimal(identity)
        if t.is_integer(kind):
            return text, identity
        return (f"'{text}'", identity) if t.is_duration(kind) else None

    @staticmethod
    def zero(kind):
        t = pa.types
        if t.is_fixed_size_binary(kind):
            return b"\x00" * kind.byte_width
        if t.is_binary(kind) or t.is_large_binary(kind) or t.is_binary_view(kind):
            return b""
        if t.is_decimal(kind):
            return decimal.Decimal(0)
        return 0

    def near(self, identity, column):
        """A neighbour that the column need not hold (or even have a form for)."""
        rng, kind, t = self.rng, column.kind, pa.types
        if t.is_boolean(kind):
            return not identity
        if column.is_float:
            return identity if math.isinf(identity) else identity + rng.choice([-1, 1, 0.25])
        if isinstance(identity, bytes):
            if t.is_fixed_size_binary(kind):
                return bytes([rng.randrange(256)]) + identity[1:]
            if not column.is_text:
                return rng.choice([identity[:-1], identity + b"\x00", identity + b"z"])
            text = identity.decode("utf-8", "surrogateescape")
            return rng.choice([text[:-1], text + " ", text + "z"]).encode("utf-8",
                                                                          "surrogateescape")
        if t.is_decimal(kind):
            return identity + rng.choice([-1, 1]) * (type(identity)(1).scaleb(-kind.scale))
        if t.is_time(kind):
            return max(0, min(86399999999999, identity + rng.choice([-1, 1, 1000])))
        if t.is_date(kind) or t.is_timestamp(kind):
            return identity + rng.choice([-1, 1])
        if t.is_integer(kind) and rng.random() < 0.2:
            return identity * rng.choice([1, 1000])
        return identity + rng.choice([-1, 1])

    def atom(self):
        rng = self.rng
        column = rng.choice(self.columns)
        draw = rng.random()
        if draw < 0.08:
            word, true = rng.choice([("IS NULL", column.null), ("IS NOT NULL", ~column.null)])
            return Atom(f"{column.path()} {word}", true, np.zeros_like(true))
        if column.is_float and draw < 0.14:
            return Atom(f"{column.path()} IS NAN", column.nan, column.null)
        if draw < 0.25:
            return self.in_list(column)
        if draw < 0.35:
            return self.between(column)
        if column.is_text and draw < 0.6:
            return self.like(column)
        if pa.types.is_boolean(column.kind) and draw < 0.6:
            return Atom(column.path(), column.compare("=", True), column.null)
        op = rng.choice(["=", "=", "!=", "<>", "<", "<=", ">", ">=", "=="])
        text, identity = self.literal(column)
        plain = {"<>": "!=", "==": "="}.get(op, op)
        if rng.random() < 0.1:
            flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(plain, plain)
            return Atom(f"{text} {op} {column.path()}", column.compare(flipped, identity),
                        column.null)
        return Atom(f"{column.path()} {op} {text}", column.compare(plain, identity), column.null)

    def in_list(self, column):
        rng = self.rng
        drawn = [self.literal(column) for _ in range(rng.choice([1, 2, 5, 80]))]
        true = np.zeros(len(column.codes), bool)
        for _, identity in drawn:
            true |= column.compare("=", identity)
        texts = [text for text, _ in drawn]
        null = column.null
        if rng.random() < 0.15:
            texts.insert(rng.randrange(len(texts) + 1), "NULL")
            null = ~true
        word, flip = rng.choice([("IN", False), ("NOT IN", True)])
        hit = (~true & ~null) if flip else true
        return Atom(f"{column.path()} {word} ({', '.join(texts)})", hit, null)

    def between(self, column):
        (low_text, low), (high_text, high) = self.literal(column), self.literal(column)
        true = column.compare(">=", low) & column.compare("<=", high)
        word, flip = self.rng.choice([("BETWEEN", False), ("NOT BETWEEN", True)])
        hit = (~true & ~column.null) if flip else true
        return Atom(f"{column.path()} {word} {low_text} AND {high_text}", hit, column.null)

    def like(self, column):
        rng = self.rng
        base = (rng.choice(column.sorted) if column.sorted else b"q").decode("utf-8",
                                                                             "surrogateescape")
        cut = rng.randint(0, len(base))
        base = base.replace("%", "").replace("_", "")
        pattern = rng.choice([base[:cut] + "%", base, "%" + base[cut:], base[:cut] + "_%",
                              "%" + base[1:cut] + "%", base[:cut] + "_" + base[cut + 1:]])
        regex = re.compile("".join(".*" if c == "%" else "." if c == "_" else re.escape(c)
                                   for c in pattern), re.DOTALL)
        fits = [bool(regex.fullmatch(v.decode("utf-8", "surrogateescape")))
                for v in column.sorted]
        fits = np.array(fits + [False], bool)   # the last: null
        true = column.value & fits[np.where(column.value, column.codes, len(fits) - 1)]
        word, flip = rng.choice([("LIKE", False), ("LIKE", False), ("NOT LIKE", True)])
        hit = (~true & ~column.null) if flip else true
        text = pattern.replace("'", "''")
        return Atom(f"{column.path()} {word} '{text}'", hit, column.null)

    def tree(self, depth=0):
        """A predicate; its text stands by itself inside of any other."""
        rng = self.rng
        draw = rng.random()
        if depth > 2 or draw < 0.45:
            return self.atom()
        if draw < 0.58:
            inner = self.tree(depth + 1)
            return Atom(f"NOT ({inner.text})", ~inner.true & ~inner.null, inner.null)
        parts = [self.tree(depth + 1) for _ in range(rng.choice([2, 2, 3]))]
        if draw < 0.8:
            false = np.zeros_like(parts[0].true)
            true = ~false
            for part in parts:
                false = false | (~part.true & ~part.null)
                true = true & part.true
            return Atom("(" + " AND ".join(p.text for p in parts) + ")", true, ~true & ~false)
        true = np.zeros_like(parts[0].true)
        false = ~true
        for part in parts:
            true = true | part.true
            false = false & ~part.true & ~part.null
        return Atom("(" + " OR ".join(p.text for p in parts) + ")", true, ~true & ~false)
