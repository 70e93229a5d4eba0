#!/usr/bin/env python3
"""Layouts on real files: what range predicates read, by how the rows lie.

  bench/layouts.py            1,000,000 rows in 256 files, every data set (some minutes)
  bench/layouts.py --tiny     seconds; what ctest runs so that this cannot rot

Nine workloads: ranges on the first column, on the second, on all; each of 0.1, 1 and 10 % of a
column's rows; half of them are the log that tree(LOG) learns from, the other half is measured.
Read are the files (and row groups) whose bounds, as their footers give them, meet the predicate; a
sample of the predicates is put to `grebe scan --explain`, which must read exactly those files. The
lower bound is the fewest full files that could hold the matching rows. Layouts come from
`grebe layout rewrite`, DuckDB's sort and delta-rs's z_order, all of about the same file size.
Results: OUT/layouts.md, OUT/layouts.json and OUT/layouts.svg.
"""
import argparse
import decimal
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import layouts_plot
import report

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
SHARES = (0.001, 0.01, 0.1)


# The data: a table, and its columns by which it is laid out.

def uniform(rows, columns, rng):
    return [rng.integers(0, 1 << 40, rows) for _ in range(columns)]


def pareto(rows, columns, rng):
    return [np.floor(1e5 * (1 - rng.random(rows)) ** (-1 / 1.2)).astype(np.int64)
            for _ in range(columns)]


def zipf_ids(rows, rng, exponent=1.3):
    return np.minimum(rng.zipf(exponent, rows), 10_000_000)


def table_of(columns, rng):
    names = "abc"[:len(columns)]
    data = dict(zip(names, columns))
    data["payload"] = rng.random(len(columns[0]))
    return pa.table(data), list(names)


def urls(rows, rng):
    """Zipf keys, and URLs that share a long beginning."""
    pages = zipf_ids(rows, rng, 1.2)
    scattered = (pages.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
    return pa.table({
        "url": pa.array([f"https://www.example.com/catalogue/item-{p:010d}" for p in scattered]),
        "user_id": zipf_ids(rows, rng), "payload": rng.random(rows)}), ["url", "user_id"]


def tpch(args, name, columns):
    with tempfile.TemporaryDirectory(prefix="grebe-tpch-") as folder:
        subprocess.run([sys.executable, os.path.join(HERE, "make_tpch.py"), folder,
                        str(args.tpch)], check=True,
                       env=dict(os.environ, PYTHONPATH=args.duckdb_s3))
        return pq.read_table(os.path.join(folder, name + ".parquet")), columns


def data_sets(args):
    rows = args.rows
    rng = lambda i: np.random.default_rng([args.seed, i])
    sets = {
        "uniform, 2 columns": lambda: table_of(uniform(rows, 2, rng(1)), rng(9)),
        "skewed (Pareto), 2 columns": lambda: table_of(pareto(rows, 2, rng(2)), rng(9)),
        "uniform, 3 columns": lambda: table_of(uniform(rows, 3, rng(3)), rng(9)),
        "URLs of one site, Zipf users": lambda: urls(rows, rng(4)),
        "uniform, 2 columns, four fifths of the log on the first":
            lambda: table_of(uniform(rows, 2, rng(5)), rng(9)),
        "uniform, 2 columns, four fifths of the log on the first, a fifth on the second":
            lambda: table_of(uniform(rows, 2, rng(6)), rng(9)),
        "uniform, 2 columns, four fifths of the log on the first, a fifth on both":
            lambda: table_of(uniform(rows, 2, rng(7)), rng(9)),
    }
    if args.tpch and not os.path.isdir(args.duckdb_s3):
        print(f"NOTICE: TPC-H is left out: no folder {args.duckdb_s3}", file=sys.stderr)
    elif args.tpch:
        sets["TPC-H lineitem (date, quantity, discount)"] = lambda: tpch(
            args, "lineitem", ["l_shipdate", "l_quantity", "l_discount"])
        sets["TPC-H orders (date, customer)"] = lambda: tpch(
            args, "orders", ["o_orderdate", "o_custkey"])
    return sets


# The predicates: for each column a half-open range [low, high), or None.

class Workload:
    # shares: how many predicates on the first column, the second, all, in multiples of `each`.
    def __init__(self, table, columns, each, shares, rng):
        self.columns = columns
        self.values = [numbers(table[name]).to_numpy(zero_copy_only=False) for name in columns]
        self.sorted = [np.sort(values) for values in self.values]
        self.queries = []     # (columns that it asks for, a range or None for each column)
        for share in SHARES:
            for kind, times in zip((0, 1, len(columns)), shares):   # the first, the second, all
                for _ in range(round(each * times)):
                    self.queries.append((kind, [
                        self.draw(i, share, rng) if kind in (i, len(columns)) else None
                        for i in range(len(columns))]))
        self.log, self.measured = self.queries[0::2], self.queries[1::2]

    def draw(self, column, share, rng):
        values = self.sorted[column]
        width = max(int(share * len(values)), 1)
        begin = int(rng.integers(0, len(values) - width))
        low, high = values[begin], values[begin + width]
        if not low < high:       # one value has more rows than the range
            after = np.searchsorted(values, low, side="right")
            high = values[min(after, len(values) - 1)]
        return (low, high) if low < high else (values[0], low)

    def matching(self, query):
        keep = np.ones(len(self.values[0]), bool)
        for values, bounds in zip(self.values, query):
            if bounds is not None:
                keep &= (values >= bounds[0]) & (values < bounds[1])
        return int(keep.sum())

    def text(self, query):
        parts = []
        for name, bounds in zip(self.columns, query):
            if bounds is not None:
                parts += [f"{name} >= {literal(bounds[0])}", f"{name} < {literal(bounds[1])}"]
        return " AND ".join(parts)


def numbers(column):
    """Decimals as doubles: two digits after the point survive."""
    return column.cast(pa.float64()) if pa.types.is_decimal(column.type) else column


def literal(value):
    if isinstance(value, np.datetime64):
        return f"'{value.astype('datetime64[D]')}'"
    return f"'{value}'" if isinstance(value, str) else str(value)


# The layouts: each writes a folder of Parquet files.

class Layouts:
    def __init__(self, args, table, columns, workload, folder):
        self.args, self.table, self.columns, self.workload = args, table, columns, workload
        self.folder = folder
        self.file_rows = max(table.num_rows // args.files, 1)
        self.source = os.path.join(folder, "source")
        os.makedirs(self.source)
        for i in range(16):
            part = table.slice(i * table.num_rows // 16,
                               (i + 1) * table.num_rows // 16 - i * table.num_rows // 16)
            pq.write_table(part, os.path.join(self.source, f"part-{i:02d}.parquet"),
                           compression="zstd", write_page_index=True)
        self.log = os.path.join(folder, "log.txt")
        with open(self.log, "w") as out:
            out.writelines(workload.text(query) + "\n" for _, query in workload.log)

    def all(self):
        by = ",".join(self.columns)
        yield "arrival order", self.arrival
        yield "sort", lambda to: self.rewrite(f"sort({by})", "rank", to)
        yield "DuckDB's sort", self.duckdb_sort
        yield "delta-rs z_order", self.delta
        yield "zorder, raw", lambda to: self.rewrite(f"zorder({by})", "raw", to)
        yield "zorder, rank", lambda to: self.rewrite(f"zorder({by})", "rank", to)
        # What a column asked for less is given: 8 slices of two columns, 2 of three.
        few = f"{by}:{3 if len(self.columns) == 2 else 1}"
        yield "zorder, rank, few bits of the last", lambda to: self.rewrite(
            f"zorder({few})", "rank", to)
        yield "hilbert, rank", lambda to: self.rewrite(f"hilbert({by})", "rank", to)
        yield "tree(LOG)", lambda to: self.rewrite(f"tree({self.log})", "rank", to)

    def arrival(self, to):
        os.makedirs(to)
        for i, begin in enumerate(range(0, self.table.num_rows, self.file_rows)):
            pq.write_table(self.table.slice(begin, self.file_rows),
                           os.path.join(to, f"part-{i:04d}.parquet"), compression="zstd")

    def rewrite(self, by, mode, to):
        subprocess.run([self.args.grebe, "layout", "rewrite", self.source, "--by", by, "--mode",
                        mode, "--to", to, "--target-file-rows", str(self.file_rows)], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def duckdb_sort(self, to):
        # It writes row groups of whole vectors of 2,048 rows.
        group = max(round(self.file_rows / 2048), 1) * 2048
        connection = duckdb.connect(config={"threads": 1})
        connection.execute(
            f"COPY (SELECT * FROM '{self.source}/*.parquet' ORDER BY {', '.join(self.columns)}) "
            f"TO '{to}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {group}, "
            "ROW_GROUPS_PER_FILE 1)")

    def delta(self, to):
        import deltalake
        size = os.path.getsize(os.path.join(self.folder, "arrival order", "part-0000.parquet"))
        # Its target is of bytes, and it keeps below: try again by what came out.
        for _ in range(3):
            shutil.rmtree(to, ignore_errors=True)
            deltalake.write_deltalake(to, self.table)
            lake = deltalake.DeltaTable(to)
            lake.optimize.z_order(self.columns, target_size=size)
            count = len(lake.file_uris())
            if 0.9 < count / self.args.files < 1.1:
                break
            size = max(int(size * count / self.args.files), 1000)
        live = {os.path.basename(path) for path in lake.file_uris()}
        for base, _, names in os.walk(to):
            for name in names:
                if name.endswith(".parquet") and name not in live:
                    os.remove(os.path.join(base, name))


# What a layout's files say of themselves.

class Boxes:
    """Bounds, rows and bytes of each file, and of each row group."""

    def __init__(self, folder, columns):
        self.files = sorted(os.path.join(base, name) for base, _, names in os.walk(folder)
                            for name in names if name.endswith(".parquet")
                            and "_delta_log" not in base)
        self.of_files = {"low": [], "high": [], "rows": [], "bytes": []}
        self.of_groups = {"low": [], "high": [], "rows": [], "bytes": []}
        for path in self.files:
            footer = pq.read_metadata(path)
            names = {footer.schema.column(i).path: i for i in range(footer.num_columns)}
            groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
            bounds = [[group.column(names[c]).statistics for c in columns] for group in groups]
            for group, stats in zip(groups, bounds):
                add(self.of_groups, [s.min for s in stats], [s.max for s in stats], group.num_rows,
                    sum(group.column(i).total_compressed_size for i in range(group.num_columns)))
            add(self.of_files, [min(s.min for s in column) for column in zip(*bounds)],
                [max(s.max for s in column) for column in zip(*bounds)], footer.num_rows,
                os.path.getsize(path))
        for boxes in (self.of_files, self.of_groups):
            boxes["rows"], boxes["bytes"] = np.array(boxes["rows"]), np.array(boxes["bytes"])

    @staticmethod
    def read(boxes, query):
        """Which of them may hold matching rows."""
        keep = np.ones(len(boxes["rows"]), bool)
        for i, bounds in enumerate(query):
            if bounds is None:
                continue
            low, high = plain(bounds[0]), plain(bounds[1])
            keep &= np.array([box[i] < high for box in boxes["low"]])
            keep &= np.array([box[i] >= low for box in boxes["high"]])
        return keep


def add(boxes, low, high, rows, size):
    boxes["low"].append([plain(v) for v in low])
    boxes["high"].append([plain(v) for v in high])
    boxes["rows"].append(rows)
    boxes["bytes"].append(size)


def plain(value):
    """Values of footers and of arrays, comparable."""
    if isinstance(value, np.datetime64):
        return value.astype("datetime64[D]").item()
    if isinstance(value, decimal.Decimal):
        return float(value)
    return value.item() if isinstance(value, np.generic) else value


def explain(args, folder, where):
    out = subprocess.run([args.grebe, "scan", folder, "--where", where, "--explain", "--format",
                          "json"], check=True, stdout=subprocess.PIPE).stdout
    return json.loads(out)


def measure(args, workload, layouts, folder, name):
    boxes = Boxes(folder, workload.columns)
    rows = sum(boxes.of_files["rows"])
    if rows != len(workload.values[0]):
        sys.exit(f"rows were lost: layout={name} expected={len(workload.values[0])} got={rows}")
    byte_share = sum(boxes.of_files["bytes"]) / rows
    read = dict.fromkeys(("rows", "bytes", "files", "group_rows", "bound_rows", "first_rows",
                          "first_bound_rows"), 0)
    step = max(len(workload.measured) // args.explained, 1)
    for i, (kind, query) in enumerate(workload.measured):
        files = Boxes.read(boxes.of_files, query)
        matching = workload.matching(query)
        read["files"] += int(files.sum())
        read["rows"] += int(boxes.of_files["rows"][files].sum())
        read["bytes"] += int(boxes.of_files["bytes"][files].sum())
        read["group_rows"] += int(
            boxes.of_groups["rows"][Boxes.read(boxes.of_groups, query)].sum())
        bound = math.ceil(matching / layouts.file_rows) * layouts.file_rows
        read["bound_rows"] += bound
        if kind == 0:
            read["first_rows"] += int(boxes.of_files["rows"][files].sum())
            read["first_bound_rows"] += bound
        if i % step == 0 and name != "delta-rs z_order":
            facts = explain(args, folder, workload.text(query))
            if (facts["files_read"], facts["rows"]) != (int(files.sum()), matching):
                sys.exit(f"scan disagrees: layout={name} where={workload.text(query)} "
                         f"files={facts['files_read']} of {int(files.sum())} "
                         f"rows={facts['rows']} of {matching}")
    return {"files": len(boxes.files),
            "files_read_mean": read["files"] / len(workload.measured),
            "rows": float(read["rows"] / read["bound_rows"]),
            "first": float(read["first_rows"] / read["first_bound_rows"]),
            "bytes": float(read["bytes"] / (read["bound_rows"] * byte_share)),
            "group_rows": float(read["group_rows"] / read["bound_rows"])}


def run_set(args, name, make, folder):
    table, columns = make()
    rng = np.random.default_rng([args.seed, 77])
    # Predicates on the first column, on the second, on all.
    shares = ((1, 1, 1) if "four fifths" not in name
              else (2.4, 0.6, 0) if "a fifth on the second" in name
              else (2.4, 0, 0.6) if "a fifth on both" in name else (2.4, 0.3, 0.3))
    workload = Workload(table, columns, args.queries, shares, rng)
    layouts = Layouts(args, table, columns, workload, folder)
    results = {}
    for title, write in layouts.all():
        to = os.path.join(folder, title.replace("'", ""))
        try:
            write(to)
        except ImportError as error:
            results[title] = {"left_out": str(error)}
            continue
        except subprocess.CalledProcessError as error:
            if not title.startswith("tree"):
                sys.exit(f"failed: {error.cmd} {error.stderr.decode()[-500:]}")
            results[title] = {"left_out": f"grebe layout rewrite gave {error.returncode}"}
            continue
        results[title] = measure(args, workload, layouts, to, title)
        print(name, title, results[title], file=sys.stderr, flush=True)
        if title != "arrival order":
            shutil.rmtree(to)
    return results


GOALS = {"uniform, 2 columns": (2.6, 2.3), "skewed (Pareto), 2 columns": (2.4, 2.2),
         "uniform, 3 columns": (4.0, 2.5)}
CURVES = ("zorder, rank", "hilbert, rank")


def goals_table(results):
    rows = []

    def judge(text, value, limit, at_most=True):
        met = value <= limit if at_most else value >= limit
        sign = "at most" if at_most else "at least"
        rows.append([text, f"{value:.2f}", f"{sign} {limit}", "met" if met else "missed"])

    for name, (curve, tree) in GOALS.items():
        if name in results:
            for title in CURVES:
                judge(f"{name}: {title}", results[name][title]["rows"], curve)
            if "rows" in results[name]["tree(LOG)"]:
                judge(f"{name}: tree", results[name]["tree(LOG)"]["rows"], tree)
    for name, of in results.items():
        if "four fifths" in name and "rows" in of["tree(LOG)"]:
            judge(f"{name}: best curve over tree", min(of[c]["rows"] for c in CURVES)
                  / of["tree(LOG)"]["rows"], 1.5, False)
        raw = of["zorder, raw"]["rows"] / of["zorder, rank"]["rows"]
        if "Pareto" in name:
            judge(f"{name}: raw over rank", raw, 1.9, False)
        elif "URLs" in name:
            judge(f"{name}: raw over rank, predicates on the URL alone",
                  of["zorder, raw"]["first"] / of["zorder, rank"]["first"], 3, False)
            judge(f"{name}: raw over rank, all predicates", raw, 3, False)
        elif name.startswith("uniform"):
            judge(f"{name}: rank over raw", 1 / raw, 1.05)
        if "rows" in of["delta-rs z_order"]:
            for title in CURVES:
                judge(f"{name}: {title} over delta-rs", of[title]["rows"]
                      / of["delta-rs z_order"]["rows"], 0.8)
    return report.table(["goal", "measured", "", ""], rows)


def markdown(results, args, argv):
    m = report.machine()
    lines = ["# Layouts: what range predicates read", "",
             f"Machine: {m['cpu']}, {m['cores']} cores, {m['date']}. Command: "
             f"`bench/layouts.py {' '.join(argv)}`. {args.rows:,} rows (TPC-H: scale {args.tpch}), "
             f"{args.files} files, seed {args.seed}.", "",
             "Rows in the files read over rows in the fewest full files that could hold the "
             "matching rows, all predicates together; 1 would be perfect, and no one layout can "
             "reach it for predicates on different columns. The predicates were held out from the "
             "tree's log.", "", "![plot](layouts.svg)", ""]
    if args.rows >= 1_000_000:
        lines += ["## Goals", ""] + goals_table(results)
    for name, of in results.items():
        rows = [[title, r["files"], f"{r['files_read_mean']:.1f}", f"{r['rows']:.2f}",
                 f"{r['bytes']:.2f}", f"{r['group_rows']:.2f}", f"{r['first']:.2f}"]
                if "rows" in r else [title, f"left out: {r['left_out']}", "", "", "", "", ""]
                for title, r in of.items()]
        lines += [f"## {name[0].upper()}{name[1:]}", ""] + report.table(
            ["layout", "files", "files read, mean", "rows over bound", "bytes over bound",
             "rows of row groups over bound", "rows over bound, first column alone"], rows)
    return "\n".join(lines) + "\n"


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=256)
    parser.add_argument("--queries", type=int, default=40, help="of each workload; half measured")
    parser.add_argument("--explained", type=int, default=12, help="predicates put to grebe scan")
    parser.add_argument("--tpch", type=float, default=1, help="scale factor; 0: without TPC-H")
    parser.add_argument("--duckdb-s3", default=os.path.join(ROOT, ".cache", "duckdb-s3"),
                        help="folder with the DuckDB whose tpch extension is a wheel")
    parser.add_argument("--only", help="data sets whose name holds this text")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--out", default=os.path.join(HERE, "out"))
    parser.add_argument("--grebe", default=os.path.join(ROOT, "build", "release", "grebe"))
    parser.add_argument("--tiny", action="store_true")
    args = parser.parse_args(argv)
    if args.tiny:
        args.rows, args.files, args.queries, args.explained, args.tpch = 20_000, 16, 4, 2, 0
    results = {}
    for name, make in data_sets(args).items():
        if args.only and args.only not in name:
            continue
        with tempfile.TemporaryDirectory(prefix="grebe-layouts-") as folder:
            results[name] = run_set(args, name, make, folder)
    os.makedirs(args.out, exist_ok=True)
    with open(os.path.join(args.out, "layouts.svg"), "w") as file:
        file.write(layouts_plot.svg(results))
    report.write_out(args.out, "layouts", results, markdown(results, args, argv))


if __name__ == "__main__":
    main(sys.argv[1:])
