#!/usr/bin/env python3
"""Every Parquet file that nobody of this project wrote: read it as pyarrow does, or say why not.

  tests/real_files/run.py [--jobs N] [--list] [FILE-PART...]

Looks under GREBE_REAL_FILES, or ../shared/real-files; skips with a notice when there is neither.
Each file is indexed by every column that can be a key (not inside a list or map); every distinct
key, up to 20 a column, is looked up, and all columns of all its rows are compared with pyarrow's,
type for type and bit for bit, and with the JSON beside hyparquet's files. A file that cannot be
read must give a typed error. A crash, a command of more than 10 s, more than 1 GB of memory, or a
difference fails. Prints how many files agreed, were refused and why.

Files are distinct by content: copies are read once. Each file is checked in a process of its own,
since pyarrow itself ends the process on some of them.
"""

import argparse
import collections
import hashlib
import json
import os
import pathlib
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import pyarrow as pa
import pyarrow.parquet as pq

from common import compare, grebe_cli, oracle, values
from real_files import json_rows

COMMAND_SECONDS = 10
MEMORY_BYTES = 1 << 30
KEYS_MAX = 20
# Files that claim more than this are not read by the oracle (it would need the memory).
ORACLE_BYTES_MAX = 1 << 30


def find_root():
    given = os.environ.get("GREBE_REAL_FILES")
    for folder in [given, grebe_cli.ROOT.parent / "shared" / "real-files"]:
        if folder and pathlib.Path(folder).is_dir():
            return pathlib.Path(folder)
    return None


def parquet_files(root):
    """Files that are Parquet by name or by magic, one of each content."""
    seen = {}
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        named = path.suffix in (".parquet", ".parq", ".pq", ".encrypted")
        if not named:
            with open(path, "rb") as f:
                if f.read(4) not in (b"PAR1", b"PARE"):
                    continue
        seen.setdefault(hashlib.sha256(path.read_bytes()).digest(), path)
    return sorted(seen.values())


def key_paths(schema):
    """Dotted paths of the columns that can be keys, with the indexes that lead to each."""
    found = []

    def walk(field, path, where):
        kind = field.type
        if values.is_key_type(kind):
            found.append((path, where))
        elif pa.types.is_struct(values.storage_type(kind)):
            kind = values.storage_type(kind)
            for i in range(kind.num_fields):
                walk(kind.field(i), f"{path}.{kind.field(i).name}", where + [i])

    for i, field in enumerate(schema):
        walk(field, field.name, [i])
    spelled = collections.Counter(path for path, _ in found)
    tops = collections.Counter(schema.names)
    return [(path, where) for path, where in found
            if spelled[path] == 1 and tops[path.split(".")[0]] <= 1 or tops[path] == 1]


def column_at(table, where):
    column = table.column(where[0])
    for index in where[1:]:
        column = compare.one_array(column)
        column = values.storage(column)
        column = column.flatten()[index]
    return values.storage(column)


class FileCheck:
    """All checks of one file; `report` says how it went."""

    def __init__(self, path, folder, columns_max):
        self.path = path
        self.folder = folder
        self.columns_max = columns_max
        self.report = {"agreed": 0, "lookups": 0, "refused": [], "problems": [], "notes": []}

    def problem(self, text):
        self.report["problems"].append(text)

    def call(self, what, function, *args, **kwargs):
        """A command's answer; None when it was refused with a typed error."""
        try:
            return function(*args, timeout=COMMAND_SECONDS, **kwargs)
        except grebe_cli.GrebeError as error:
            if not error.typed or not isinstance(error.error, dict):
                self.problem(f"{what}: {error}")
            else:
                self.report["refused"].append([what, str(error.error.get("error")), str(error)])
            return None

    def run(self, with_oracle):
        inspected = self.call("inspect", grebe_cli.run,
                              ["inspect", self.path, "--format", "json", "--json-errors"])
        table = self.read_oracle() if with_oracle else None
        if table is not None:
            self.check_json(table)
            paths = key_paths(table.schema)
            self.report["key_columns"] = len(paths)
            for number, (path, where) in enumerate(paths[:self.columns_max]):
                self.check_column(table, path, where, number)
        elif inspected is not None:
            self.check_unread(json.loads(inspected))
        self.report["peak"] = grebe_cli.peak_bytes_max
        if grebe_cli.peak_bytes_max > MEMORY_BYTES:
            self.problem(f"a command took {grebe_cli.peak_bytes_max >> 20} MB")

    def check_json(self, table):
        """The judge's own reading, against the JSON another reader wrote."""
        rows = json_rows.load(self.path)
        if rows is None:
            return
        difference = json_rows.difference(table, rows)
        if difference is None:
            self.report["json"] = True
        else:
            self.problem(f"pyarrow's rows are not those of the JSON beside: {difference}")

    def read_oracle(self):
        try:
            file = pq.ParquetFile(self.path)
            size = sum(file.metadata.row_group(i).total_byte_size
                       for i in range(file.metadata.num_row_groups))
            if size > ORACLE_BYTES_MAX or file.metadata.num_rows > 10**8:
                self.report["notes"].append(f"pyarrow not tried: {size} bytes, "
                                            f"{file.metadata.num_rows} rows claimed")
                return None
            table = file.read()
            self.report["rows"] = table.num_rows
            return pa.table(table.columns, schema=table.schema.remove_metadata())
        except Exception as error:
            self.report["notes"].append(f"pyarrow: {type(error).__name__}: {error}"[:200])
            return None

    def check_column(self, table, path, where, number):
        column = column_at(table, where)
        kind = column.type
        rows = {}
        for row, identity in enumerate(values.identities(column)):
            rows.setdefault(identity, []).append(row)
        root = self.folder / f"i{number}"
        summary = self.call(f"create {path}", grebe_cli.create, self.path, path, root)
        if summary is None:
            return
        if summary["rows_added"] != table.num_rows:
            self.problem(f"{path}: {summary['rows_added']} rows indexed of {table.num_rows}")
        keys, lines = [], []
        for key in list(rows)[:KEYS_MAX]:
            text = values.text_of(key, kind)
            try:
                (path + (text or "")).encode("utf-8")
            except UnicodeEncodeError:   # a string column that holds no text
                self.report["notes"].append(f"{path}: a key is not UTF-8")
                continue
            lines.append(values.json_line([path], [text], [kind]))
            keys.append(key)
        if not keys:
            return
        got = self.call(f"get {path}", grebe_cli.get, self.path, [], root,
                        keys_text="".join(lines))
        if got is None:
            return
        wanted = [row for key in keys for row in rows[key]]
        expected = oracle.take(table, pa.array(wanted, pa.int64()))
        difference = compare.difference(expected, got)
        if difference is not None:
            self.problem(f"key {path}: {difference}")
        else:
            self.report["agreed"] += 1
            self.report["lookups"] += len(keys)
        shutil.rmtree(root, ignore_errors=True)

    def check_unread(self, inspected):
        """What pyarrow does not read: an index of a few columns is built, or refused."""
        for number, path in enumerate(leaf_paths(inspected)[:4]):
            root = self.folder / f"i{number}"
            if self.call(f"create {path}", grebe_cli.create, self.path, path, root) is None:
                continue
            got = self.call(f"get {path}", grebe_cli.get, self.path, [], root, nulls=[path])
            if got is not None:
                self.report["read_without_oracle"] = True


def leaf_paths(inspected):
    """Dotted paths of leaf columns, wherever the inspection lists them."""
    for field in ("columns", "leaves"):
        for item in inspected.get(field, []) or inspected.get("schema", {}).get(field, []):
            if isinstance(item, dict):
                yield_name = item.get("path") or item.get("name")
                if yield_name:
                    return [i.get("path") or i.get("name") for i in inspected.get(field, [])
                            or inspected["schema"][field]]
    return []


def check_file(path, with_oracle, columns_max):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="grebe-real-"))
    check = FileCheck(path, folder, columns_max)
    started = time.monotonic()
    try:
        check.run(with_oracle)
    except Exception:
        check.problem("the test failed: " + traceback.format_exc())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    check.report["seconds"] = round(time.monotonic() - started, 2)
    return check.report


class Children:
    """Runs check_file in forked processes, a few at a time."""

    def __init__(self, jobs, columns_max):
        self.jobs = jobs
        self.columns_max = columns_max
        self.running = {}   # read end -> (pid, path, with_oracle, bytes so far)

    def start(self, path, with_oracle):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 2)   # pyarrow's own last words
            report = check_file(path, with_oracle, self.columns_max)
            with os.fdopen(write, "w") as out:
                json.dump(report, out)
            os._exit(0)
        os.close(write)
        self.running[read] = [pid, path, with_oracle, b""]

    def finished(self):
        """Waits until one ends; (path, report), or (path, None) when it must run again."""
        while True:
            ready, _, _ = select.select(list(self.running), [], [])
            for read in ready:
                chunk = os.read(read, 1 << 20)
                entry = self.running[read]
                if chunk:
                    entry[3] += chunk
                    continue
                os.close(read)
                del self.running[read]
                pid, path, with_oracle, data = entry
                _, status = os.waitpid(pid, 0)
                if data:
                    return path, json.loads(data)
                if with_oracle:   # pyarrow ended the process: go on without it
                    self.start(path, False)
                    continue
                return path, {"agreed": 0, "lookups": 0, "refused": [], "notes": [],
                              "problems": [f"the checking process died: status {status}"]}

    def all(self, paths):
        waiting = list(paths)
        while waiting or self.running:
            while waiting and len(self.running) < self.jobs:
                self.start(waiting.pop(0), True)
            yield self.finished()


def reason_of(refusals):
    """A refusal in a few words, for counting."""
    what, kind, text = refusals[0]
    text = text.split(": ", 1)[-1].split(" (grebe ")[0]
    return f"{kind}: " + text.split(" path=")[0][:90]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--columns", type=int, help="at most so many key columns of each file")
    parser.add_argument("--list", action="store_true", help="a line for every file")
    parser.add_argument("--json", help="write every file's report here")
    parser.add_argument("parts", nargs="*", help="only files whose path has one of these in it")
    options = parser.parse_args()
    root = find_root()
    if root is None:
        print("SKIPPED: no real files (set GREBE_REAL_FILES to their folder)")
        return 0
    paths = [p for p in parquet_files(root)
             if not options.parts or any(part in str(p) for part in options.parts)]
    started = time.monotonic()
    reports = {}
    for path, report in Children(options.jobs, options.columns).all(paths):
        name = str(path.relative_to(root))
        reports[name] = report
        for problem in report["problems"]:
            print(f"FAILED {name}: {problem}", flush=True)
        if options.list:
            print(f"{name}: {json.dumps(report)}", flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(reports, indent=1))
    return summarize(reports, time.monotonic() - started)


def summarize(reports, seconds):
    failed = [n for n, r in reports.items() if r["problems"]]
    agreed = [n for n, r in reports.items() if not r["problems"] and not r["refused"]
              and (r["agreed"] or r.get("key_columns") == 0 or "rows" in r)]
    partly = [n for n, r in reports.items()
              if not r["problems"] and r["refused"] and r["agreed"]]
    refused = [n for n, r in reports.items()
               if not r["problems"] and r["refused"] and not r["agreed"]]
    counted = {*failed, *agreed, *partly, *refused}
    unjudged = [n for n in reports if n not in counted]   # read, and no oracle to compare with
    only_us = [n for n, r in reports.items() if r.get("read_without_oracle")]
    print(f"{len(reports)} files in {seconds:.0f} s: {len(agreed)} agree, {len(partly)} agree in "
          f"some columns and are refused in others, {len(refused)} refused, "
          f"{len(unjudged)} read without an oracle, {len(failed)} FAILED")
    print(f"{sum(r['agreed'] for r in reports.values())} key columns, "
          f"{sum(r['lookups'] for r in reports.values())} keys looked up, "
          f"peak memory {max((r.get('peak', 0) for r in reports.values()), default=0) >> 20} MB, "
          f"{len(only_us)} files read that pyarrow does not read, "
          f"{sum(bool(r.get('json')) for r in reports.values())} files agree with the JSON beside")
    for title, names in (("refused", refused), ("refused in some columns", partly)):
        reasons = collections.defaultdict(list)
        for name in names:
            reasons[reason_of(reports[name]["refused"])].append(name)
        print(f"{title}:")
        for reason, of in sorted(reasons.items(), key=lambda item: -len(item[1])):
            readable = sum("rows" in reports[n] for n in of)
            also = f" ({readable} that pyarrow reads: {of[0]})" if readable else f" ({of[0]})"
            print(f"  {len(of):4d} {reason}{also}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
