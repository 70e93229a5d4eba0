#!/usr/bin/env python3
"""Rewrites random tables in random layouts and compares with pyarrow: the same rows, in the right
order, in the right folders, with the same schema; found by the index written on the way; cogrouped
and taken apart again they are what they were.

usage: run.py [--tables N] [--table N] [--seed N] [--keep]
"""

import collections
import json
import pathlib
import random
import shutil
import sys
import tempfile
import traceback

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from common import arguments, compare, grebe_cli, oracle, predicates   # noqa: E402
from differential import tables                # noqa: E402

# Every type of a key but INT96 (files get timestamps in its place) and the widest decimals (pyarrow
# cannot make arrays of both few and many digits).
KINDS = [kind for kind in tables.key_kinds() if kind.name not in ("int96", "decimal76")]


def column_items(kind, rng, rows):
    pool = tables.values_pool(kind, rng, rng.choice([1, 3, 40, 400]))
    nulls = rng.choice([0, 0, 0.1, 0.9])
    return [None if rng.random() < nulls else rng.choice(pool) for _ in range(rows)]


class Case:
    """A random table: files of some rows, `v_row` numbers them in the order of path, then row."""

    def __init__(self, folder, rng):
        self.folder = folder
        self.kinds = {"a": rng.choice(KINDS), "b": rng.choice(KINDS)}
        self.days = rng.choice([0, 0, 1, 3])
        files = rng.choice([1, 2, 5, 12])
        self.nested = rng.random() < 0.5
        rows = rng.choice([1, 30, 500, 3000 if not self.nested else 800])
        names = []
        for number in range(files):
            day = f"day=2026-0{1 + number % max(1, self.days)}-0{1 + number % 7}/"
            names.append((day if self.days else "") + f"f{number:03d}.parquet")
        names.sort()
        parts, first = [], 0
        self.metadata = {b"owner": b"us"} if rng.random() < 0.5 else None
        for name in names:
            count = rng.randrange(0 if len(names) > 1 else 1, rows + 1)
            table = self.make_rows(rng, count, first)
            first += count
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, path, row_group_size=rng.choice([50, 1000, 10**6]),
                           compression=rng.choice(["zstd", "snappy", "none"]),
                           use_dictionary=rng.random() < 0.5,
                           write_page_index=rng.random() < 0.5)
            read = pq.ParquetFile(path).read()
            if self.days:
                day = name[4:14]
                read = read.append_column("day", pa.array(
                    np.full(count, np.datetime64(day)), pa.date32()))
            parts.append(read)
        self.rows = pa.concat_tables(parts, promote_options="none")
        self.names = names

    def make_rows(self, rng, count, first):
        columns = {name: tables.array_of(column_items(kind.kind, rng, count), kind.kind)
                   for name, kind in self.kinds.items()}
        columns.update(tables.flat_columns(rng, count, 0.2, first))
        if self.nested:
            columns.update(tables.nested_columns(rng, count, 0.2))
        fields = []
        for number, (name, array) in enumerate(columns.items()):
            meta = {b"PARQUET:field_id": str(100 + number).encode()} if rng_ids(first) else None
            fields.append(pa.field(name, array.type, metadata=meta))
        return pa.Table.from_arrays(list(columns.values()),
                                    schema=pa.schema(fields, metadata=self.metadata))


def rng_ids(_):
    return True


def sort_keys(column, kind):
    """Numbers that order as the values do: nulls first, -0.0 = 0.0, NaN last."""
    array = compare.one_array(column)
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    t = pa.types
    if t.is_timestamp(array.type) or t.is_time64(array.type) or t.is_date64(array.type):
        array = array.view(pa.int64())
    elif t.is_time32(array.type) or t.is_date32(array.type):
        array = array.view(pa.int32())
    keys = []
    for value in array.to_pylist():
        if value is None:
            keys.append((0,))
        elif isinstance(value, float) or isinstance(value, np.floating):
            value = float(value)
            keys.append((2,) if value != value else (1, value + 0.0))
        elif isinstance(value, str):
            keys.append((1, value.encode()))
        else:
            keys.append((1, value))
    return keys


def read_files(folder):
    """(relative path, table) of every data file, in order; schemas must be one."""
    out = []
    for path in sorted(folder.rglob("*.parquet")):
        relative = path.relative_to(folder).as_posix()
        if relative.startswith("_"):
            continue
        out.append((relative, pq.ParquetFile(path).read()))
    return out


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def same_rows(expected, got, what):
    """Every column, bit for bit; got's rows in the order of v_row."""
    order = np.argsort(compare.one_array(got["v_row"]).to_numpy(), kind="stable")
    got = oracle.take(got, order.tolist())
    check(got.num_rows == expected.num_rows, f"{what}: {got.num_rows} rows of {expected.num_rows}")
    check(got.column_names == expected.column_names,
          f"{what}: columns {got.column_names}, not {expected.column_names}")
    for name in expected.column_names:
        a, b = compare.one_array(expected[name]), compare.one_array(got[name])
        check(compare.same(a, b), f"{what}: column {name} ({a.type}, {b.type}) differs")


def expected_schema_fields(case, across):
    fields = [f for f in case.rows.schema if across or f.name != "day"]
    return [(f.name, f.type, (f.metadata or {}).get(b"PARQUET:field_id")) for f in fields]


def check_layout(case, out, rng, spec):
    files = read_files(out)
    across = spec["partitions"] == "none" or not case.days
    parts = []
    for path, table in files:
        got = [(f.name, f.type, (f.metadata or {}).get(b"PARQUET:field_id")) for f in table.schema]
        if not (case.days and across):
            check(got == expected_schema_fields(case, across), f"schema of {path}: {got}")
        meta = pq.read_metadata(out / path).metadata or {}
        # A curve through one column is a sort.
        kind = "sort" if spec["by"] == "zorder(b)" else spec["by"].split("(")[0]
        if kind == "tree" and case.rows.num_rows > 0:   # else there is nothing to learn one from
            leaf = json.loads(meta[b"grebe.layout"])["leaf"]
            check(f"leaf-{leaf:05d}-" in path, f"{path} says that it is of leaf {leaf}")
        check(json.loads(meta[b"grebe.layout"])["by"].startswith(kind), "grebe.layout")
        if case.metadata:
            check(meta.get(b"owner") == b"us", "key-value metadata is lost")
        if case.days and not across:
            check(path.startswith("day="), f"{path} is not in its partition")
            table = table.append_column("day", pa.array(
                np.full(table.num_rows, np.datetime64(path[4:14])), pa.date32()))
        parts.append((path, table))
    if case.rows.num_rows == 0:
        check(len(parts) == 1 and parts[0][1].num_rows == 0, "one file keeps the schema")
        return
    whole = pa.concat_tables([table for _, table in parts])
    same_rows(case.rows, whole, "rewritten")
    if spec["by"].startswith("tree"):
        check_tree(case, out, parts, spec)
    folders = collections.defaultdict(list)
    for path, table in parts:
        folders[path.rpartition("/")[0]].append((path, table))
    for folder, tables_in in folders.items():
        check_order(case, tables_in, spec)


def check_tree(case, out, parts, spec):
    """At every cut what lies in the leaves below is less than what lies in those above."""
    tree = json.loads((out / "_grebe_layout.json").read_text())
    check(not spec["sorted_by"] or tree["then"] == spec["then"], "the order within leaves")
    leaves = collections.defaultdict(list)
    for path, table in parts:
        leaves[int(path.rpartition("/")[2].split("-")[1])].append(table)

    def leaves_under(number):
        node = tree["nodes"][number]
        if "leaf" in node:
            return [node["leaf"]]
        below, above = leaves_under(node["below"]), leaves_under(node["above"])

        def ends(which, of):
            keys = [key for leaf in which for table in leaves[leaf]
                    for key in sort_keys(table[node["column"]], None)]
            return [of(keys)] if keys else []
        for low in ends(below, max):
            for high in ends(above, min):
                check(low < high, f"cut {number}: {low} is below, {high} is not")
        return below + above
    used = sorted(leaves_under(0))
    check(used == list(range(len(used))), f"leaves: {used}")


def check_order(case, files, spec):
    columns = spec["sorted_by"]
    if spec["by"].startswith(("bucket", "tree")):
        groups = collections.defaultdict(list)
        for path, table in files:
            groups[path.rpartition("/")[2].rpartition("-")[0]].append(table)
        seen = {}
        for bucket, parts in groups.items() if spec["by"].startswith("bucket") else ():
            table = pa.concat_tables(parts)
            for key in set(sort_keys(table["a"], case.kinds["a"])):
                check(seen.setdefault(key, bucket) == bucket, "a key is in two buckets")
        sequences = [pa.concat_tables(parts) for parts in groups.values()]
    else:
        sequences = [pa.concat_tables([table for _, table in files])]
    if not columns:
        return
    for table in sequences:
        keys = list(zip(*(sort_keys(table[c], None) for c in columns), table["v_row"].to_pylist()))
        for before, after in zip(keys, keys[1:]):
            check(before < after, f"out of order: {before} before {after}")


def write_log(case, rng, path):
    """Random predicates on a, b and v_row that Python and the log's reader both take."""
    columns = [predicates.Column(name, compare.one_array(case.rows[name]))
               for name in ("a", "b", "v_row")]
    maker = predicates.Maker(columns, rng)
    lines = [maker.tree().text for _ in range(rng.choice([1, 5, 40]))
             if case.rows.num_rows > 0]
    # A line break would end a line. The last line is one that surely helps.
    lines = [line for line in lines if "\n" not in line and "\r" not in line]
    path.write_text("\n".join(lines + ["v_row < 100"]) + "\n", errors="surrogateescape")


def draw_spec(case, rng, log):
    layout = rng.choice(["sort(a)", "sort(a,b)", "sort(b,v_str,a)", "zorder(a,b)", "hilbert(a,b)",
                         "hilbert(b,a,v_row)", "zorder(b)", "bucket(4,a)", "sort(v_struct.a,b)",
                         f"tree({log})", f"tree({log})"])
    if "v_struct" in layout and not case.nested:
        layout = "sort(b,v_str)"
    spec = {"by": layout, "partitions": rng.choice(["keep", "none"]), "sorted_by": []}
    if layout.startswith("sort") and "." not in layout:
        spec["sorted_by"] = layout[5:-1].split(",")
    if layout == "zorder(b)":
        spec["sorted_by"] = ["b"]
    args = ["--by", layout, "--partitions", spec["partitions"],
            "--target-file-rows",
            rng.choice([1 if case.rows.num_rows < 300 else 40, 1000, 10**6]),
            "--row-group-rows", rng.choice([1, 16, 300, 10**5]),
            "--threads", rng.choice([1, 2, 3]), "--memory", rng.choice(["128MB", "1GB"])]
    if layout.startswith("tree"):
        write_log(case, rng, log)
        if rng.random() < 0.5:
            spec["then"] = "sort(b,a)"
            spec["sorted_by"] = ["b", "a"]
            args += ["--then", "sort(b,a)"]
    if layout.startswith("bucket"):
        spec["sorted_by"] = ["a"]
        if rng.random() < 0.5:
            args += ["--then", "sort(b,a)"]
            spec["sorted_by"] = ["b", "a"]
    if layout.startswith("zorder") or layout.startswith("hilbert"):
        args += ["--mode", rng.choice(["rank", "raw"])]
    pages = rng.choice(["aligned", "free", None, "per-key" if spec["sorted_by"] else None])
    if pages:
        args += ["--pages", pages]
    args += ["--preset", rng.choice(["analytics", "serving"])]
    spec["args"] = args
    return spec


def check_index(case, out, rng):
    users = compare.one_array(case.rows["v_row"]).to_pylist()
    for row in rng.sample(users, min(3, len(users))):
        got = json.loads(grebe_cli.run(["get", out, f"v_row={row}", "--columns", "v_row",
                                        "--format", "json"]))
        check([r["v_row"] for r in got] == [row], f"index: v_row={row} gives {got}")


def one_table(number, rng, scratch):
    case = Case(scratch / "table", rng)
    spec = draw_spec(case, rng, scratch / "log")
    case.spec = {"kinds": {k: v.name for k, v in case.kinds.items()}, "files": len(case.names),
                 "rows": case.rows.num_rows, "days": case.days, **spec}
    out = scratch / "out"
    args = list(spec["args"])
    with_index = rng.random() < 0.4 and case.rows.num_rows > 0
    if with_index:
        args += ["--index", "rows", "--key", "v_row"]
    try:
        summary = json.loads(grebe_cli.run(["layout", "rewrite", case.folder, "--to", out, *args,
                                            "--json-errors"]))
    except grebe_cli.GrebeError as error:
        # Iceberg's bucket transform has no hash for some types.
        refused = "bucket" in spec["by"] and "bucket transform" in str(error)
        check(refused and error.typed, str(error))
        check(not out.exists() or not list(out.rglob("*")), "a refused rewrite leaves something")
        return case, "refused"
    check(summary["rows_out"] == case.rows.num_rows, f"summary: {summary}")
    check(not (out / "_grebe_rewrite").exists(), "the marks of a rewrite are left")
    check_layout(case, out, rng, spec)
    if spec["by"].startswith("tree") and case.rows.num_rows > 0:
        check_again(case, out, scratch, spec)
    if with_index:
        check_index(case, out, rng)
    if rng.random() < 0.5 and case.rows.num_rows > 0:
        check_cogroup(case, rng, scratch)
    return case, "rewritten"


def check_again(case, out, scratch, spec):
    """With the tree that was kept, and no log, the same files are made."""
    again = scratch / "again"
    args = ["--by", f"tree({out}/_grebe_layout.json)"] + spec["args"][2:]
    grebe_cli.run(["layout", "rewrite", case.folder, "--to", again, *args])
    files = {p.relative_to(out): p for p in out.rglob("*") if p.is_file()
             and "_index" not in p.parts}
    check({p.relative_to(again) for p in again.rglob("*") if p.is_file()} == set(files),
          "the kept tree makes other files")
    for name, path in files.items():
        check((again / name).read_bytes() == path.read_bytes(), f"the kept tree makes {name} anew")


def check_cogroup(case, rng, scratch):
    """There and back: the same rows, in the order of the key."""
    there, back = scratch / "there", scratch / "back"
    # -0.0 and 0.0 are one key, of which one form is kept: not what comes back bit for bit.
    name = "v_str" if pa.types.is_floating(case.kinds["a"].kind) else "a"
    grebe_cli.run(["layout", "rewrite", case.folder, "--to", there, "--by", f"sort({name})",
                   "--cogroup", name, "--partitions", "none",
                   "--target-file-rows", rng.choice([10, 1000]), "--row-group-rows",
                   rng.choice([1, 50, 10**5])])
    keys = [key for path in sorted(there.glob("*.parquet"))
            for key in sort_keys(pq.read_table(path, columns=[name])[name], None)]
    check(len(keys) == len(set(keys)) and keys == sorted(keys), "one row a key, in order")
    grebe_cli.run(["layout", "rewrite", there, "--to", back, "--by", "sort(v_row)", "--ungroup",
                   "rows"])
    same_rows(case.rows, pa.concat_tables([table for _, table in read_files(back)]),
              "cogrouped and back")


def main():
    args = arguments.parse(arguments.parser(__doc__, tables=300, keep=True))
    counts = collections.Counter()
    for number in args.numbers:
        rng = random.Random(f"{args.seed}/{number}")
        scratch = pathlib.Path(tempfile.mkdtemp(prefix="grebe-rewrite-"))
        try:
            _, outcome = one_table(number, rng, scratch)
            counts[outcome] += 1
        except Exception as error:     # noqa: BLE001: one table must not hide the others
            counts["failed"] += 1
            print(f"FAILED table {number}: {error}")
            if not isinstance(error, AssertionError):
                traceback.print_exc()
            if args.keep:
                print(f"  kept: {scratch}")
                continue
        shutil.rmtree(scratch)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
    return 1 if counts["failed"] or not counts["rewritten"] else 0


if __name__ == "__main__":
    sys.exit(main())
