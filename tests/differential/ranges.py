#!/usr/bin/env python3
"""Random ranges of keys over random tables with sorted indexes: each answer compared row for row,
in key order, with what Python's own comparisons take from pyarrow's table; some with DuckDB.

  tests/differential/ranges.py [--seed N] [--tables N] [--lookups N] [--jobs N] [--table N] [--keep]

Tables, steps of refreshing and compacting, and the printed seed are those of run.py.
"""

import decimal
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import duckdb
import pyarrow as pa

from common import compare, grebe_cli, oracle, values
from differential import run


def order(identity):
    """Nulls first, NaN last."""
    if identity is None:
        return (0, 0)
    return (2, 0) if identity == values.NAN else (1, identity)


def holds(identity, bound, comparison):
    if identity is None or identity == values.NAN or bound == values.NAN:
        return False
    if isinstance(bound, decimal.Decimal) and isinstance(identity, int):
        identity = decimal.Decimal(identity)
    return {"<": identity < bound, "<=": identity <= bound, ">": identity > bound,
            ">=": identity >= bound}[comparison]


def cast_of(bound, kind):
    """The DuckDB type to compare a column of a type with a bound in."""
    return "DECIMAL(38,1)" if isinstance(bound, decimal.Decimal) and "INT" in kind else kind


class RangeCheck(run.TableCheck):
    def run(self):
        extra = ["--sorted"]
        if self.rng.random() < 0.2:
            extra += ["--covering", "v_row,v_str"]
        rows = self.build(extra)
        if rows != self.oracle.table.num_rows:
            raise run.Mismatch(f"{rows} rows indexed of {self.oracle.table.num_rows}")
        self.keys = sorted(self.oracle.rows, key=lambda key: tuple(order(part) for part in key))
        verified = grebe_cli.run(["index", "verify", self.path, "--name", "i", "--index-root",
                                  self.root, "--json-errors"])
        self.table.spec["verified"] = len(verified) > 0
        while self.done < self.lookups:
            self.check_range()
            self.done += 1

    def bound_of(self, column):
        """A value of a column and its text: present, drawn, or between two integers."""
        kind = values.storage_type(self.kinds[column])
        present = [key[column] for key in self.keys if key[column] is not None]
        value = (self.rng.choice(present) if present and self.rng.random() < 0.7
                 else self.other_value(self.kinds[column]))
        if pa.types.is_integer(kind) and self.rng.random() < 0.2:
            value = decimal.Decimal(value) + decimal.Decimal("0.5")
            return value, str(value)
        return value, values.text_of(value, kind, self.rng)

    def draw_range(self):
        """Columns fixed to values of some key, conditions on the next one."""
        columns = len(self.kinds)
        base = self.rng.choice(self.keys) if self.keys else (None,) * columns
        bounded = self.rng.random() < 0.85
        fixed = self.rng.randint(0, columns - 1) if bounded else self.rng.randint(1, columns)
        conditions = []
        if bounded:
            sides = self.rng.choice([["<"], [">"], ["<", ">"], ["<", ">"]])
            for side in sides:
                conditions.append((side + self.rng.choice(["", "="]), *self.bound_of(fixed)))
        return base[:fixed], conditions

    def arguments(self, fixed, conditions):
        texts = [values.text_of(part, kind, self.rng) for part, kind in zip(fixed, self.kinds)]
        given = [f"{n}={t}" for n, t in zip(self.table.key, texts) if t is not None]
        nulls = [n for n, t in zip(self.table.key, texts) if t is None]
        column = self.table.key[len(fixed)] if conditions else None
        given += [f"{column}{comparison}{text}" for comparison, _, text in conditions]
        self.rng.shuffle(given)
        return given, nulls

    def expected_rows(self, fixed, conditions):
        rows = []
        for key in self.keys:
            if key[:len(fixed)] != fixed:
                continue
            if all(holds(key[len(fixed)], bound, c) for c, bound, _ in conditions):
                rows += self.oracle.rows[key]
        return rows

    def check_range(self):
        fixed, conditions = self.draw_range()
        given, nulls = self.arguments(fixed, conditions)
        expected = self.expected_rows(fixed, conditions)
        if len(fixed) == len(self.kinds):   # a point, which is not in key order but one key
            return
        options = self.options()
        args = [self.path, "--name", "i", "--index-root", self.root, "--format", "arrow",
                "--json-errors", *given]
        for null in nulls:
            args += ["--null", null]
        counted = grebe_cli.read_stream(grebe_cli.run(["count", *args]))["count"].to_pylist()
        if counted != [len(expected)]:
            raise run.Mismatch(f"count of {given} null {nulls}: {counted}, {len(expected)}")
        self.check_duckdb_count(given, fixed, conditions, len(expected))
        window = expected[options.get("offset", 0):]
        window = window if options.get("limit") is None else window[:options["limit"]]
        if "columns" in options:
            args += ["--columns", grebe_cli.quoted(options["columns"])]
        for name in ("limit", "offset"):
            if name in options:
                args += ["--" + name, options[name]]
        got = grebe_cli.read_stream(grebe_cli.run(["get", *args]))
        table = self.oracle.table
        if "columns" in options:
            table = oracle.project(table, options["columns"])
        problem = compare.difference(oracle.take(table, pa.array(window, pa.int64())), got)
        if problem is not None:
            raise run.Mismatch(f"{given} null {nulls} {options}: {problem}")

    def check_duckdb_count(self, given, fixed, conditions, expected):
        """The same count by DuckDB, where it has the type and the same order."""
        plain = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                 "string", "decimal9_int", "decimal18_int", "date32", "ts_us")
        spec = self.table.spec
        if (fixed or self.rng.random() < 0.5 or self.table.key != ["k"] or spec.get("mixed")
                or spec["hive"] or spec["key"] not in plain or not conditions):
            return
        files = [str(self.path / f) for f in oracle.data_files(self.path)]
        connection = duckdb.connect()
        try:
            kind = connection.execute("SELECT typeof(k) FROM read_parquet(?) LIMIT 1",
                                      [files]).fetchone()
            kind = kind[0] if kind else "INTEGER"
            where = " AND ".join(
                f"k {c} CAST(? AS {cast_of(b, kind)})"
                for c, b, _ in conditions)
            found = connection.execute(f"SELECT count(*) FROM read_parquet(?) WHERE {where}",
                                       [files, *(text for _, _, text in conditions)]).fetchone()[0]
        except duckdb.Error as error:
            spec["duckdb"] = f"cannot: {error}"[:120]
            return
        spec["duckdb_counts"] = spec.get("duckdb_counts", 0) + 1
        if found != expected:
            raise run.Mismatch(f"the oracles disagree on {given}: DuckDB {found}, {expected}")


if __name__ == "__main__":
    sys.exit(run.main(RangeCheck, "tests/differential/ranges.py"))
