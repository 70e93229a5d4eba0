"""Random predicates over every Parquet file under GREBE_REAL_FILES (other projects' files, sound
and hostile): for each column that can be compared, the rows that `grebe scan` gives are those that
the predicate wants among the rows that pyarrow reads; or the file is refused with a typed error.
Files that pyarrow does not read are scanned too: no crash, and no more memory than a limit.
"""

import collections
import concurrent.futures
import pathlib
import random
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

from common import arguments, grebe_cli, oracle, predicates, values  # noqa: E402
from real_files import run as real_files  # noqa: E402

MEMORY_BYTES = 2 << 30
COMMAND_SECONDS = 120
VALUES_MAX = 200_000
ARGUMENT_BYTES_MAX = 100_000   # longer ones the system does not pass to a command


def quoted_path(name):
    return '"' + name.replace('"', '""') + '"'


def check_file(path, rng, per_column, columns_max=40, with_oracle=True):
    """What was wrong, what was refused, and how many predicates agreed."""
    report = {"path": str(path), "agreed": 0, "refused": [], "problems": []}
    table = read_oracle(path) if with_oracle else None
    if table is None:   # nothing to compare with
        ask(report, path, None, None)
        report["unread"] = True
        return report
    paths = real_files.key_paths(table.schema)
    rng.shuffle(paths)
    for name, where in paths[:columns_max]:
        array = real_files.column_at(table, where)
        if len(array) > VALUES_MAX:
            continue
        column = predicates.Column(name, array)
        if name in table.schema.names and "." in name:
            column.path = lambda name=name: quoted_path(name)
        check_column(report, path, table, column, rng, per_column)
    return report


def read_oracle(path):
    """The file's rows; None: pyarrow does not read it, or it claims more than memory holds."""
    try:
        metadata = pq.ParquetFile(path).metadata
        size = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
        if size > real_files.ORACLE_BYTES_MAX or metadata.num_rows > 10**8:
            return None
        return oracle.read_file(path)
    except Exception:
        return None


def ask(report, path, where, columns):
    try:
        return grebe_cli.scan(path, where, columns=columns, timeout=COMMAND_SECONDS)
    except grebe_cli.GrebeError as error:
        if not error.typed or not isinstance(error.error, dict):
            report["problems"].append(f"--where {where!r}: {error}")
        else:
            report["refused"].append(f"{error.error.get('error')}: {error.error.get('message')}")
        return None


def fits_an_argument(text):
    try:
        return len(text.encode()) <= ARGUMENT_BYTES_MAX and "\0" not in text
    except UnicodeEncodeError:   # a string column that holds no text
        return False


def check_column(report, path, table, column, rng, per_column):
    maker = predicates.Maker([column], rng)
    if not maker.columns:   # no rows
        maker.columns = [column]
    for _ in range(per_column):
        predicate = maker.tree()
        if not fits_an_argument(predicate.text):
            continue
        got = ask(report, path, predicate.text, [column.name])
        if got is None:
            return
        rows = pa.array([i for i, hit in enumerate(predicate.true) if hit], pa.int64())
        expected = oracle.take(oracle.project(table, [column.name]), rows)
        if got.num_rows != len(rows):
            report["problems"].append(f"{got.num_rows} rows, expected {len(rows)}: --where "
                                      f"{predicate.text!r}")
            return
        if not len(rows):   # pyarrow cannot join no chunks of some extension types
            report["agreed"] += 1
            continue
        found = values.identities(oracle.key_column(got, column.name))
        if found != values.identities(oracle.key_column(expected, column.name)):
            report["problems"].append(f"other rows: --where {predicate.text!r}")
            return
        report["agreed"] += 1


def run_file(path, seed, per_column, with_oracle=True):
    try:
        report = check_file(path, random.Random(f"{seed} {path.name}"), per_column,
                            with_oracle=with_oracle)
    except Exception:   # an error of the test itself must not pass for agreement
        report = {"path": str(path), "agreed": 0, "refused": [],
                  "problems": ["the test failed: " + traceback.format_exc()]}
    report["peak"] = grebe_cli.peak_bytes_max
    if grebe_cli.peak_bytes_max > MEMORY_BYTES:
        report["problems"].append(f"a command took {grebe_cli.peak_bytes_max >> 20} MB")
        grebe_cli.peak_bytes_max = 0
    return report


def run_files(paths, seed, per_column, jobs):
    """A report for each; a file whose reading ends pyarrow's process is scanned without it."""
    reports = {}
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        futures = {pool.submit(run_file, path, seed, per_column): path for path in paths}
        for future in concurrent.futures.as_completed(futures):
            try:
                reports[futures[future]] = future.result()
            except concurrent.futures.process.BrokenProcessPool:
                pass
    for path in paths:
        if path in reports:
            continue
        for with_oracle in (True, False):
            with concurrent.futures.ProcessPoolExecutor(1) as pool:
                try:
                    reports[path] = pool.submit(run_file, path, seed, per_column,
                                                with_oracle).result()
                    break
                except concurrent.futures.process.BrokenProcessPool:
                    continue
    return [reports[path] for path in paths]


def main():
    parser = arguments.parser(__doc__, jobs=True)
    parser.add_argument("--per-column", type=int, default=3)
    parser.add_argument("--only", help="files whose path contains this")
    options = arguments.parse(parser)
    root = real_files.find_root()
    if root is None:
        print("skipped: no real files (GREBE_REAL_FILES)")
        return 0
    paths = [p for p in real_files.parquet_files(root)
             if not options.only or options.only in str(p)]
    print(f"{len(paths)} files, {options.per_column} predicates a column", flush=True)
    started = time.monotonic()
    reports = run_files(paths, options.seed, options.per_column, options.jobs)
    for report in reports:
        for problem in report["problems"][:3]:
            print(f"{report['path']}: {problem[:800]}", flush=True)
    failed = sum(bool(r["problems"]) for r in reports)
    refused = collections.Counter(r["refused"][0].split(":")[0] for r in reports if r["refused"])
    print(f"{sum(r['agreed'] for r in reports)} predicates agree over "
          f"{sum(r['agreed'] > 0 for r in reports)} files; {sum(refused.values())} files refused "
          f"at least once {dict(refused)}; {sum('unread' in r for r in reports)} that pyarrow does "
          f"not read; {failed} files disagree; peak memory "
          f"{max(r['peak'] for r in reports) >> 20} MB ({time.monotonic() - started:.0f} s)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
