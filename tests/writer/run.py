#!/usr/bin/env python3
"""Files of the page-exact writer, read by pyarrow, DuckDB, Polars and DataFusion.

  tests/writer/run.py [--seed N] [--tables N] [--predicates N] [--table N] [--keep]

Random nested tables of every type are written through FileWriter with random options: page ends,
row groups, dictionaries, Bloom filters, codecs. Each reader must see the same rows in them as in a
file that pyarrow wrote, of the same types; and each random predicate must give it the same rows as
in a file without statistics, page index or Bloom filter, where it has nothing to skip by (pyarrow:
as in memory). So a wrong bound or a missing Bloom bit is a difference. Prints its seed, and how
often each reader was asked.
"""

import collections
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import datafusion
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from common import arguments, compare
from writer import tables

OPERATORS = ["=", "<", "<=", ">", ">=", "<>"]


class Mismatch(Exception):
    pass


def literal(column, value, dialect):
    """A value as SQL text."""
    if column.literal == "number":
        return str(value)
    if column.literal == "real":
        kind = "REAL" if pa.types.is_float32(column.kind) else "DOUBLE"
        if dialect == "datafusion":
            return f"arrow_cast('{value!r}', '{'Float32' if kind == 'REAL' else 'Float64'}')"
        return f"CAST('{value!r}' AS {kind})"
    if column.literal == "bool":
        return "true" if value else "false"
    if column.literal == "text":
        return "'" + value.replace("'", "''") + "'"
    if column.literal == "bytes":
        if dialect == "datafusion":
            return f"X'{value.hex()}'"
        return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
    if column.literal == "decimal":
        return f"CAST('{value:f}' AS DECIMAL({column.kind.precision}, {column.kind.scale}))"
    if column.literal == "date":
        return f"DATE '{value.isoformat()}'"
    if column.literal == "time":
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    raise AssertionError(column.literal)


class Predicate:
    """`column OP value`, BETWEEN, IN or IS NULL, for each reader in its own words."""

    def __init__(self, column, values, rng):
        self.column = column
        self.form = rng.choice(["compare"] * 6 + ["between", "in", "null", "not null"])
        draw = lambda: rng.choice(values) if values and rng.random() < 0.7 else column.make(rng)
        self.operator = rng.choice(OPERATORS)
        if self.form in ("between", "in") and column.literal == "bool":
            self.form = "compare"
        count = {"compare": 1, "between": 2, "in": 3}.get(self.form, 0)
        self.values = [draw() for _ in range(count)]
        if column.literal == "real" and rng.random() < 0.3:
            self.form, self.operator, self.values = "compare", "=", [rng.choice([0.0, -0.0])]
        if self.form == "between":
            self.values.sort(key=tables.sort_key)

    def sql(self, dialect):
        name = f'"{self.column.name}"'
        values = [literal(self.column, value, dialect) for value in self.values]
        if self.form == "compare":
            return f"{name} {self.operator} {values[0]}"
        if self.form == "between":
            return f"{name} BETWEEN {values[0]} AND {values[1]}"
        if self.form == "in":
            return f"{name} IN ({', '.join(values)})"
        return f"{name} IS NULL" if self.form == "null" else f"{name} IS NOT NULL"

    def arrow(self):
        field = pc.field(self.column.name)
        kind = self.column.kind
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        values = [pa.scalar(value, kind) for value in self.values]
        return self.expression(field, values, field.is_valid())

    def polars(self, dtype):
        field = pl.col(self.column.name)
        values = [pl.lit(value, dtype=dtype) for value in self.values]
        return self.expression(field, values, field.is_not_null())

    def expression(self, field, values, not_null):
        """pyarrow's and Polars' expressions have the same operators."""
        if self.form == "between":
            return (field >= values[0]) & (field <= values[1])
        if self.form == "in":
            return (field == values[0]) | (field == values[1]) | (field == values[2])
        if self.form == "null":
            return field.is_null()
        if self.form == "not null":
            return not_null
        return {"=": field == values[0], "<": field < values[0], "<=": field <= values[0],
                ">": field > values[0], ">=": field >= values[0],
                "<>": field != values[0]}[self.operator]

    def __str__(self):
        return self.sql("duckdb")


class Arrow:
    def whole(self, path):
        return pq.read_table(path, page_checksum_verification=True)

    def rows(self, path, predicate):
        if any(pa.types.is_string_view(kind) for kind in ds.dataset(path).schema.types):
            raise NotImplementedError("Arrow has no filter for views")
        got = ds.dataset(path).to_table(columns=["row"], filter=predicate.arrow())
        return sorted(got["row"].to_pylist())


class DuckDb:
    def __init__(self):
        self.connection = duckdb.connect()
        self.connection.execute("SET threads = 1")

    def whole(self, path):
        return self.connection.sql(f"FROM read_parquet('{path}')").to_arrow_table()

    def rows(self, path, predicate):
        query = f"SELECT row FROM read_parquet('{path}') WHERE {predicate.sql('duckdb')}"
        return sorted(row for row, in self.connection.sql(query).fetchall())


    def extremes(self, path, column):
        query = f'SELECT min("{column}"), max("{column}") FROM read_parquet(\'{path}\')'
        return self.connection.sql(query).fetchall()


class Polars:
    def whole(self, path):
        schema = pq.read_schema(path)
        # It has no decimals beyond 38 digits.
        columns = [field.name for field in schema if not pa.types.is_decimal256(field.type)]
        return pl.read_parquet(path, columns=columns)

    def rows(self, path, predicate):
        frame = pl.scan_parquet(path)
        dtype = frame.collect_schema()[predicate.column.name]
        got = frame.filter(predicate.polars(dtype)).select("row").collect()
        return sorted(got["row"].to_list())


class DataFusion:
    """Skips by row group statistics, Bloom filters and the page index."""

    def __init__(self):
        config = datafusion.SessionConfig({
            "datafusion.execution.parquet.pushdown_filters": "true",
            "datafusion.execution.parquet.reorder_filters": "true",
            "datafusion.execution.parquet.enable_page_index": "true",
            "datafusion.execution.parquet.bloom_filter_on_read": "true",
            "datafusion.execution.target_partitions": "1"})
        self.context = datafusion.SessionContext(config)
        self.tables = {}

    def name(self, path):
        if path not in self.tables:
            name = f"t{len(self.tables)}"
            self.context.register_parquet(name, path)
            self.tables[path] = name
        return self.tables[path]

    def whole(self, path):
        return self.context.sql(f"SELECT * FROM {self.name(path)}").to_arrow_table()

    def extremes(self, path, column):
        query = f'SELECT min("{column}") a, max("{column}") b FROM {self.name(path)}'
        return self.context.sql(query).to_arrow_table().to_pylist()

    def rows(self, path, predicate):
        query = f"SELECT row FROM {self.name(path)} WHERE {predicate.sql('datafusion')}"
        return sorted(self.context.sql(query).to_arrow_table()["row"].to_pylist())


def options_of(rng, table, columns):
    rows = table.num_rows
    options = {
        "row_group_rows": rng.randint(1, max(rows, 2)) if rng.random() < 0.7 else rows or 1,
        "page_rows_max": rng.choice([1, 7, 50, 400, 20000]),
        "page_bytes_max": rng.choice([1, 100, 2000, 1 << 20]),
        "codec": rng.choice(["zstd", "zstd", "snappy", "none", "gzip", "lz4"]),
        "codec_level": rng.randint(1, 6),
        "dictionary": rng.choice(["auto", "auto", "on", "off"]),
        "dictionary_bytes_max": rng.choice([10, 1000, 1 << 20]),
        "bound_bytes_max": rng.choice([1, 4, 16, 64, 1000]),
        "threads": rng.randint(1, 3),
        "bloom_columns": [c.name for c in columns
                          if c.bloom and not pa.types.is_nested(c.kind) and rng.random() < 0.6],
        "bloom_false_share_max": rng.choice([0.001, 0.01, 0.2]),
    }
    if rng.random() < 0.5:
        options["aligned"] = True
        if rng.random() < 0.5 and rows > 2:
            options["boundaries"] = sorted(rng.sample(range(1, rows), rng.randint(1, rows - 2)))
    return options


class TableCheck:
    def __init__(self, number, seed, folder, tool, counts):
        self.rng = random.Random(f"{seed}/{number}")
        self.folder = pathlib.Path(folder)
        self.tool = tool
        self.counts = counts
        self.table, self.columns = tables.make(self.rng, self.rng.choice([0, 1, 40, 700, 3000]))
        self.options = options_of(self.rng, self.table, self.columns)
        self.ours = str(self.folder / "ours.parquet")
        self.theirs = str(self.folder / "theirs.parquet")

    def write(self):
        source = self.folder / "table.arrow"
        with ipc.new_file(source, self.table.schema) as out:
            out.write_table(self.table, max_chunksize=self.rng.randint(1, 2000))
        subprocess.run([self.tool, source, self.ours, json.dumps(self.options)], check=True,
                       stdout=subprocess.DEVNULL)
        # No reader can skip anything here.
        pq.write_table(self.table, self.theirs, write_statistics=False, row_group_size=1 << 20,
                       store_decimal_as_integer=True)

    def run(self, predicates):
        self.write()
        self.check_whole("pyarrow", Arrow(), self.same_arrow)
        problem = compare.difference(self.table, pq.read_table(self.ours))
        if problem:
            raise Mismatch(f"pyarrow: against the table written: {problem}")
        readers = {"pyarrow": Arrow(), "duckdb": DuckDb(), "polars": Polars(),
                   "datafusion": DataFusion()}
        self.check_whole("duckdb", readers["duckdb"], self.same_arrow)
        self.check_whole("datafusion", readers["datafusion"], self.same_arrow)
        self.check_whole("polars", readers["polars"], self.same_polars)
        asked = [c for c in self.columns if c.literal]
        for column in asked:     # some readers answer these from the bounds alone
            if column.literal != "real":
                self.check_extremes("duckdb", readers["duckdb"], column.name)
                self.check_extremes("datafusion", readers["datafusion"], column.name)
        for _ in range(predicates if asked else 0):
            column = self.rng.choice(asked)
            values = [v for v in self.table[column.name].to_pylist() if v is not None]
            predicate = Predicate(column, values, self.rng)
            for name, reader in readers.items():
                self.check_predicate(name, reader, predicate)

    def check_whole(self, name, reader, same):
        try:
            expected = reader.whole(self.theirs)
        except BaseException as error:  # Polars panics are not Exceptions
            if isinstance(error, KeyboardInterrupt):
                raise
            self.counts[f"{name}: tables it cannot read from pyarrow either"] += 1
            return
        same(name, expected, reader.whole(self.ours))
        self.counts[f"{name}: tables"] += 1

    @staticmethod
    def same_arrow(name, expected, got):
        if expected.schema.types != got.schema.types or expected.column_names != got.column_names:
            raise Mismatch(f"{name}: {expected.schema} against {got.schema}")
        for column in expected.column_names:
            if not compare.same(compare.one_array(expected[column]),
                                compare.one_array(got[column])):
                raise Mismatch(f"{name}: column {column} differs")

    @staticmethod
    def same_polars(name, expected, got):
        if expected.schema != got.schema:
            raise Mismatch(f"{name}: {expected.schema} against {got.schema}")
        for column in expected.columns:
            if not expected[column].equals(got[column], null_equal=True):
                raise Mismatch(f"{name}: column {column} differs")

    def check_extremes(self, name, reader, column):
        expected, got = (reader.extremes(path, column) for path in (self.theirs, self.ours))
        if expected != got:
            raise Mismatch(f"{name}: least and greatest of {column}: {expected} expected, {got}")
        self.counts[f"{name}: least and greatest values"] += 1

    def rows_in_memory(self, predicate):
        column = self.table[predicate.column.name]
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        rows = pa.table({"row": self.table["row"], predicate.column.name: column})
        return rows.filter(predicate.arrow())["row"].to_pylist()

    def check_predicate(self, name, reader, predicate):
        try:
            expected = reader.rows(self.theirs, predicate)
            if name == "pyarrow":
                expected = self.rows_in_memory(predicate)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            self.counts[f"{name}: predicates it cannot answer"] += 1
            return
        got = reader.rows(self.ours, predicate)
        if got != expected:
            missing = sorted(set(expected) - set(got))
            raise Mismatch(f"{name}: {predicate}: {len(expected)} rows expected, {len(got)} got, "
                           f"missing {missing[:10]}")
        self.counts[f"{name}: predicates"] += 1


def main():
    parser = arguments.parser(__doc__, tables=150, keep=True)
    parser.add_argument("--predicates", type=int, default=25)
    options = arguments.parse(parser)
    tool = os.environ["GREBE_WRITE_FILE_TOOL"]
    counts = collections.Counter()
    failed = 0
    for number in options.numbers:
        folder = tempfile.mkdtemp(prefix="grebe-writer-")
        check = TableCheck(number, options.seed, folder, tool, counts)
        try:
            check.run(options.predicates)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            failed += 1
            print(f"table {number}: {type(error).__name__}: {error}\n  options {check.options}\n"
                  f"  again: tests/writer/run.py --seed {options.seed} --table {number}",
                  flush=True)
        if options.keep:
            print(folder)
        else:
            shutil.rmtree(folder)
    for name in sorted(counts):
        print(f"{name} {counts[name]}")
    print(f"{len(options.numbers)} tables, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
