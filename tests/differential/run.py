#!/usr/bin/env python3
"""Random lookups over random tables, each answer compared row for row with pyarrow's, and the
number of rows of each key with DuckDB's.

  tests/differential/run.py [--seed N] [--tables N] [--lookups N] [--jobs N] [--table N] [--keep]

Prints the seed; the same seed makes the same tables and lookups. Fails on the first difference of
a table (the other tables go on), with the command that shows it again. Without a seed, one is
drawn; GREBE_TEST_SEED sets it too.
"""

import concurrent.futures
import json
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import duckdb

from common import arguments, compare, grebe_cli, oracle, values
from differential import tables


class Mismatch(Exception):
    pass


class Refused(Exception):
    """Neither the oracle nor Grebe reads the table, and Grebe says so."""


class TableCheck:
    """The lookups of one table."""

    def __init__(self, number, seed, lookups, folder):
        self.rng = random.Random(f"{seed}/{number}")
        self.folder = pathlib.Path(folder)
        self.lookups = lookups
        self.done = 0
        self.table = tables.make(self.folder / "data", number, self.rng)
        self.path = self.table.folder
        self.root = self.folder / "index"
        self.oracle = oracle.Oracle(self.read_oracle(), self.table.key)
        self.kinds = self.oracle.kinds

    def read_oracle(self):
        """The table as pyarrow reads it. A file that it cannot decode must be refused by us too:
        DuckDB, for one, writes differences of int32 that take more than 32 bits."""
        try:
            return oracle.read(self.path)
        except OSError as error:
            try:
                grebe_cli.create(self.path, self.table.key, self.root)
            except grebe_cli.GrebeError as refusal:
                if refusal.typed:
                    raise Refused(f"{error} | {refusal}") from None
            raise

    def run(self):
        extra = []
        if self.rng.random() < 0.2:
            extra = ["--covering", "v_row,v_str"]
            self.table.spec["covering"] = True
        rows = self.build(extra)
        if rows != self.oracle.table.num_rows:
            raise Mismatch(f"{rows} rows indexed of {self.oracle.table.num_rows}")
        if self.rng.random() < 0.3:
            self.check_duckdb()
        for _ in range(4):
            self.check_one()
        while self.done < self.lookups:
            self.check_many(min(self.lookups - self.done, self.rng.choice([200, 600, 1200])))

    def build(self, extra):
        """Builds the index at once, or in steps: files come and go between refreshes, fragments
        are merged. Returns the rows it holds."""
        self.extra = extra
        files = oracle.data_files(self.path)
        if len(files) < 2 or self.rng.random() < 0.5:
            return grebe_cli.create(self.path, self.table.key, self.root,
                                    extra=extra)["rows_added"]
        steps = self.table.spec["steps"] = []
        later = self.rng.sample(files, self.rng.randint(1, len(files) - 1))
        aside = self.folder / "aside"
        for name in later:
            (aside / name).parent.mkdir(parents=True, exist_ok=True)
            os.rename(self.path / name, aside / name)
        grebe_cli.create(self.path, self.table.key, self.root, extra=extra)
        if self.rng.random() < 0.4:   # a file that vanishes again, of the same schema
            shutil.copy(self.path / [f for f in files if f not in later][0],
                        self.path / "gone.parquet")
            if not self.table.spec["hive"]:
                self.maintain("refresh")
                steps.append("copy")
            os.remove(self.path / "gone.parquet")
        for name in later:
            os.rename(aside / name, self.path / name)
            if self.rng.random() < 0.6:
                self.maintain("refresh")
                steps.append("refresh")
            if self.rng.random() < 0.3:
                self.maintain("compact", *self.rng.choice([[], ["--all"]]))
                steps.append("compact")
        self.maintain("refresh")
        if self.rng.random() < 0.3:
            self.maintain("compact", "--all")
            steps.append("compact all")
        shown = json.loads(grebe_cli.run(["index", "show", self.path, "--name", "i",
                                          "--index-root", self.root, "--json-errors"]))
        return shown["rows"]

    def maintain(self, what, *extra):
        command = ["index", what, self.path, "--name", "i", "--index-root", self.root,
                   "--json-errors"]
        try:
            grebe_cli.run([*command, *extra])
        except grebe_cli.GrebeError as error:
            # A file whose keys need a wider type than the index has: refused, and said so.
            if not (self.table.spec.get("mixed") and "wider type" in str(error)):
                raise
            self.table.spec["steps"].append("create again")
            grebe_cli.run(["index", "drop", *command[2:]])
            grebe_cli.create(self.path, self.table.key, self.root, extra=self.extra)

    def pick_key(self):
        """A present key mostly; or an absent one, an extreme one, one with nulls."""
        present = list(self.oracle.rows)
        choice = self.rng.random()
        if present and choice < 0.75:
            return self.rng.choice(present)
        parts = []
        base = self.rng.choice(present) if present else [None] * len(self.kinds)
        for kind, old in zip(self.kinds, base):
            if self.rng.random() < 0.3:
                parts.append(old)
            elif self.rng.random() < 0.1:
                parts.append(None)
            else:
                parts.append(self.other_value(kind))
        return tuple(parts)

    def other_value(self, kind):
        pick = tables.extremes if self.rng.random() < 0.3 else tables.draw
        item = (self.rng.choice(pick(kind)) if pick is tables.extremes
                else pick(kind, self.rng))
        return values.identities(tables.array_of([item], kind))[0]

    def texts(self, key):
        return [values.text_of(part, kind, self.rng) for part, kind in zip(key, self.kinds)]

    def options(self):
        """Projection, limit and offset: often none."""
        out = {}
        if self.rng.random() < 0.5:
            names = [n for n in self.oracle.table.schema.names]
            columns = self.rng.sample(names, self.rng.randint(1, min(4, len(names))))
            if "v_struct" in names and self.rng.random() < 0.5:
                columns = [c for c in columns if c != "v_struct"] + [
                    self.rng.choice(["v_struct.b", "v_struct.c.d"])]
            out["columns"] = columns
        if self.rng.random() < 0.3:
            out["limit"] = self.rng.choice([0, 1, 2, 5, 100])
        if self.rng.random() < 0.3:
            out["offset"] = self.rng.choice([1, 2, 7])
        return out

    def check_many(self, count):
        keys = [self.pick_key() for _ in range(count)]
        texts = [self.texts(key) for key in keys]
        names = self.table.key
        if self.rng.random() < 0.5:
            keys_text = "".join(values.json_line(names, t, self.kinds) for t in texts)
        else:
            keys_text = values.csv_text(names, texts)
        options = self.options()
        got = grebe_cli.get(self.path, [], self.root, keys_text=keys_text, **options)
        self.compare(keys, got, options)
        if self.rng.random() < 0.2:
            counts = grebe_cli.count(self.path, [], self.root, keys_text=keys_text)
            expected = [len(self.oracle.rows.get(key, [])) for key in keys]
            if counts != expected:
                at = next(i for i in range(count) if counts[i] != expected[i])
                raise Mismatch(f"count of {keys[at]!r}: {counts[at]}, expected {expected[at]}")
        self.done += count

    def check_one(self):
        key = self.pick_key()
        texts = self.texts(key)
        conditions = [(n, t) for n, t in zip(self.table.key, texts) if t is not None]
        nulls = [n for n, t in zip(self.table.key, texts) if t is None]
        options = self.options()
        got = grebe_cli.get(self.path, conditions, self.root, nulls=nulls, **options)
        self.compare([key], got, options)
        if self.rng.random() < 0.3:
            count = grebe_cli.count(self.path, conditions, self.root, nulls=nulls)
            if count != len(self.oracle.rows.get(key, [])):
                raise Mismatch(f"count of {key!r}: {count}")
        self.done += 1

    def compare(self, keys, got, options):
        expected = self.oracle.expected(keys, options.get("offset", 0), options.get("limit"),
                                        options.get("columns"))
        problem = compare.difference(expected, got)
        if problem is None:
            return
        for key in keys if len(keys) > 1 else []:   # which key it is, when that shows alone
            texts = self.texts(key)
            conditions = [(n, t) for n, t in zip(self.table.key, texts) if t is not None]
            nulls = [n for n, t in zip(self.table.key, texts) if t is None]
            try:
                alone = grebe_cli.get(self.path, conditions, self.root, nulls=nulls, **options)
            except grebe_cli.GrebeError as error:
                raise Mismatch(f"{problem}; key {texts!r} {options}: {error}") from None
            one = compare.difference(self.oracle.expected(
                [key], options.get("offset", 0), options.get("limit"), options.get("columns")),
                alone)
            if one is not None:
                raise Mismatch(f"key {texts!r} {options}: {one}")
        raise Mismatch(f"{len(keys)} keys {options}: {problem}")

    def check_duckdb(self):
        """The rows of each key, counted by DuckDB from the files."""
        if len(self.table.key) > 1 or self.table.spec["hive"] or self.table.spec.get("mixed"):
            return
        column = self.table.key[0]
        spelled = '"s"."k"' if column == "s.k" else f'"{column}"'
        files = [str(self.path / f) for f in oracle.data_files(self.path)]
        try:
            counted = duckdb.sql(f"SELECT count(*) AS n FROM read_parquet({files!r}) "
                                 f"GROUP BY {spelled} ORDER BY n").fetchall()
        except duckdb.Error as error:
            self.table.spec["duckdb"] = f"cannot read it: {error}"[:120]
            return
        expected = sorted(len(rows) for rows in self.oracle.rows.values())
        if [row[0] for row in counted] != expected:
            raise Mismatch(f"the oracles disagree: DuckDB finds {len(counted)} keys, "
                           f"pyarrow {len(expected)}")


def check_table(number, seed, lookups, keep, check_type=TableCheck):
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"grebe-diff-{number}-"))
    started = time.monotonic()
    check = None
    problem = refused = None
    try:
        check = check_type(number, seed, lookups, folder)
        check.run()
    except Refused as error:
        refused = str(error)
    except (Mismatch, grebe_cli.GrebeError) as error:
        problem = str(error)
    except Exception:   # an error of the test itself must not pass for agreement
        problem = "the test failed: " + traceback.format_exc()
    if problem is None or not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return {"table": number, "lookups": check.done if check else 0, "problem": problem,
            "refused": refused, "spec": check.table.spec if check else {}, "folder": str(folder),
            "rows": check.oracle.table.num_rows if check else 0,
            "seconds": round(time.monotonic() - started, 2)}


def main(check_type=TableCheck, program="tests/differential/run.py"):
    parser = arguments.parser(__doc__, tables=80, keep=True, jobs=True)
    parser.add_argument("--lookups", type=int, default=100000, help="in all")
    options = arguments.parse(parser)
    seed, numbers = options.seed, options.numbers
    each = -(-options.lookups // max(1, options.tables))
    print(f"{len(numbers)} tables, {each} lookups each", flush=True)
    started = time.monotonic()
    failed, refused, lookups, key_kinds = [], [], 0, set()
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(check_table, n, seed, each, options.keep, check_type) for n in numbers]
        for job in concurrent.futures.as_completed(jobs):
            result = job.result()
            lookups += result["lookups"]
            key_kinds.add(result["spec"].get("key"))
            if result["refused"]:
                refused.append(result)
                print(f"refused table {result['table']}: {result['refused']}", flush=True)
            if result["problem"]:
                failed.append(result)
                print(f"FAILED table {result['table']}: {result['problem']}\n"
                      f"  {json.dumps(result['spec'])}\n"
                      f"  again: {program} --seed {seed} --tables {options.tables} "
                      f"--lookups {options.lookups} --table {result['table']} --keep", flush=True)
                if options.keep:
                    print(f"  kept: {result['folder']}")
    print(f"{lookups} lookups over {len(numbers)} tables ({len(key_kinds)} key types) in "
          f"{time.monotonic() - started:.0f} s: {len(failed)} tables disagree, {len(refused)} "
          "refused that pyarrow cannot read either")
    # So few that they hide nothing.
    if len(numbers) > 10 and len(refused) * 10 > len(numbers):
        print("too many refused")
        return 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
