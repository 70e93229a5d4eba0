"""Random predicates over random tables: the rows that `grebe scan` gives are the rows that the
predicate wants, whatever the files' statistics, Bloom filters and page indexes say or leave out.

Two judges: the rows as pyarrow reads them, compared as Python's own numbers (common/predicates.py);
and, where its types and its NaN allow, DuckDB on the same text. Prints its seed.
"""

import collections
import concurrent.futures
import pathlib
import random
import re
import shutil
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import duckdb  # noqa: E402
import pyarrow as pa  # noqa: E402

from common import arguments, compare, grebe_cli, oracle, predicates  # noqa: E402
from differential import tables  # noqa: E402
from scan import variants  # noqa: E402


class Mismatch(Exception):
    pass


class Refused(Exception):
    """Files whose types do not go together: neither the oracle nor Grebe reads the table."""


def duckdb_kind(kind):
    t = pa.types
    return (t.is_integer(kind) or t.is_string(kind) or t.is_date32(kind) or t.is_boolean(kind)
            or (t.is_timestamp(kind) and kind.tz is None and kind.unit in ("ms", "us"))
            or (t.is_decimal128(kind)))


class TableCheck:
    def __init__(self, number, seed, count, folder):
        self.rng = random.Random(f"scan {seed} {number}")
        self.count = count
        self.table = tables.make(folder / "data", number, self.rng)
        self.path = self.table.folder
        self.truth = self.read_truth()
        self.variants = []
        self.done = 0
        self.judged_by_duckdb = 0
        self.totals = collections.Counter()
        self.change_files()
        names = list(self.table.key) + ["v_row", "v_str", "v_real", "v_dec", "v_ts", "v_bool",
                                        "v_dict", "v_none"]
        names += [n for n in self.truth.schema.names if n == "part" and n not in names]
        self.columns = [predicates.Column(n, oracle.key_column(self.truth, n)) for n in names]
        self.rows = self.truth["v_row"].to_pylist()

    def read_truth(self):
        try:
            return oracle.read(self.path)
        except pa.ArrowTypeError as error:
            try:
                grebe_cli.scan(self.path)
            except grebe_cli.GrebeError as refusal:
                if refusal.typed:
                    raise Refused(f"{error} | {refusal}") from None
            raise

    def change_files(self):
        chosen = self.rng.sample(variants.VARIANTS, self.rng.choice([0, 1, 1, 1, 2]))
        # Others would hide what tells a reader that these are not to be believed.
        for lie in (variants.index_with_false_null_pages, variants.unknown_order):
            if lie in chosen:
                chosen = [lie]
        for variant in chosen:
            self.variants.append(variant.__name__)
            for file in oracle.data_files(self.path):
                if self.rng.random() < 0.8:
                    variants.apply(self.path / file, variant, self.rng)

    def run(self):
        self.connect()
        keys = [c for c in self.columns if c.name in self.table.key]
        makers = [predicates.Maker(keys, self.rng), predicates.Maker(self.columns, self.rng)]
        while self.done < self.count:
            self.check(self.rng.choice(makers).tree())
            self.done += 1

    def connect(self):
        self.connection = None
        plain = [c for c in self.columns if "." not in c.name and duckdb_kind(c.kind)]
        self.duckdb_columns = {c.path() for c in plain}
        table = pa.table({c.name: oracle.key_column(self.truth, c.name) for c in plain})
        self.connection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'UTC'")
        self.connection.register("t", table)

    def check(self, predicate):
        expected = [row for row, hit in zip(self.rows, predicate.true) if hit]
        self.ask_duckdb(predicate, expected)
        whole = self.rng.random() < 0.05
        try:
            got = grebe_cli.scan(self.path, predicate.text, columns=None if whole else ["v_row"])
        except grebe_cli.GrebeError as error:
            raise Mismatch(f"{error}; --where {predicate.text!r}") from None
        if got["v_row"].to_pylist() != expected:
            lost = sorted(set(expected) - set(got["v_row"].to_pylist()))
            extra = sorted(set(got["v_row"].to_pylist()) - set(expected))
            raise Mismatch(f"{got.num_rows} rows, expected {len(expected)}; lost {lost[:5]}, "
                           f"extra {extra[:5]}; --where {predicate.text!r}")
        if whole:
            rows = [i for i, hit in enumerate(predicate.true) if hit]
            difference = compare.difference(oracle.take(self.truth, pa.array(rows, pa.int64())),
                                            got)
            if difference is not None:
                raise Mismatch(f"{difference}; --where {predicate.text!r}")
        if self.rng.random() < 0.05:
            self.totals.update({name: value for name, value in grebe_cli.explain_scan(
                self.path, predicate.text, columns=["v_row"]).items() if name != "stage_us"})
            self.totals["explained"] += 1

    def ask_duckdb(self, predicate, expected):
        """The same text, where DuckDB means the same by it."""
        used = [c for c in self.columns if c.path() in predicate.text]
        if not used or any(c.path() not in self.duckdb_columns for c in used) or (
                "LIKE" in predicate.text or "-" in "".join(c.name for c in used)):
            return
        try:
            rows = self.connection.execute(
                f"SELECT v_row FROM t WHERE {predicate.text} ORDER BY v_row").fetchall()
        except duckdb.Error:
            return   # a literal that DuckDB cannot cast
        if [row[0] for row in rows] != sorted(expected):
            # Literals that a type cannot hold exactly are rounded there, and compared here.
            self.totals["duckdb_rounds"] += 1
            if not self.rounds(predicate.text):
                raise Mismatch(f"the judges disagree: DuckDB {len(rows)}, Python {len(expected)}; "
                               f"{predicate.text!r}")
            return
        self.judged_by_duckdb += 1

    @staticmethod
    def rounds(text):
        return re.search(r"\.[0-9]{4,}|T[0-9:]*\.|e[-+]?[0-9]", text) is not None


def check_table(number, seed, count, keep):
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"grebe-scan-{number}-"))
    started = time.monotonic()
    check = None
    problem = refused = None
    try:
        check = TableCheck(number, seed, count, folder)
        check.run()
    except Refused as error:
        refused = str(error)
    except (Mismatch, grebe_cli.GrebeError) as error:
        problem = str(error)
    except Exception:   # an error of the test itself must not pass for agreement
        problem = "the test failed: " + traceback.format_exc()
    if problem is None or not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return {"table": number, "done": check.done if check else 0, "problem": problem,
            "refused": refused,
            "spec": check.table.spec if check else {}, "folder": str(folder),
            "variants": check.variants if check else [],
            "duckdb": check.judged_by_duckdb if check else 0,
            "totals": check.totals if check else collections.Counter(),
            "seconds": round(time.monotonic() - started, 2)}


def main():
    parser = arguments.parser(__doc__, tables=111, keep=True, jobs=True)
    parser.add_argument("--predicates", type=int, default=20000, help="in all")
    options = arguments.parse(parser)
    each = -(-options.predicates // max(1, options.tables))
    print(f"{len(options.numbers)} tables, {each} predicates each", flush=True)
    started = time.monotonic()
    results = []
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(check_table, n, options.seed, each, options.keep)
                for n in options.numbers]
        for job in concurrent.futures.as_completed(jobs):
            results.append(job.result())
            if results[-1]["problem"]:
                print(f"table {results[-1]['table']} {results[-1]['variants']} "
                      f"{results[-1]['spec']} {results[-1]['folder']}: "
                      f"{results[-1]['problem'][:1500]}", flush=True)
    failed = [r for r in results if r["problem"]]
    refused = [r for r in results if r["refused"]]
    for result in refused:
        print(f"refused table {result['table']}: {result['refused'][:300]}", flush=True)
    totals = sum((r["totals"] for r in results), collections.Counter())
    used = collections.Counter(v for r in results for v in r["variants"])
    print(f"{sum(r['done'] for r in results)} predicates over {len(results)} tables, "
          f"{sum(r['duckdb'] for r in results)} also judged by DuckDB: {len(failed)} tables "
          f"disagree, {len(refused)} refused that pyarrow cannot read either "
          f"({time.monotonic() - started:.0f} s)")
    print(f"changed files: {dict(sorted(used.items()))}; unchanged tables: "
          f"{sum(not r['variants'] for r in results)}")
    print(f"of {totals['explained']} explained: row groups {totals['row_groups_read']} of "
          f"{totals['row_groups_total']}, pages {totals['pages_read']} of "
          f"{totals['pages_total']}, files {totals['files_read']} of {totals['files_total']}")
    # So few that they hide nothing.
    return 1 if failed or not results or len(refused) * 10 > len(results) + 10 else 0


if __name__ == "__main__":
    sys.exit(main())
