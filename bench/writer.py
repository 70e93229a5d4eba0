#!/usr/bin/env python3
"""Encoding: the page-exact writer beside pyarrow's own, one thread each, the same codec and level.

  bench/writer.py --lake DIR      the first million rows of the lake, plain and sorted by the key
  bench/writer.py --tiny          seconds; what ctest runs so that this cannot rot

For each column, and for all together: CPU seconds of the fastest of several runs (other jobs on the
machine do not show in them), in turns. Then what small and aligned pages cost. Prints Markdown.
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

import report

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
ROW_GROUP_ROWS = 1 << 17
PAGES = [("pages by size (the default)", {}),
         ("aligned, 8,192 rows", {"aligned": True, "page_rows_max": 8192}),
         ("aligned, 1,024 rows", {"aligned": True, "page_rows_max": 1024}),
         ("aligned, 512 rows", {"aligned": True, "page_rows_max": 512}),
         ("aligned, 128 rows", {"aligned": True, "page_rows_max": 128}),
         ("the preset serving", {"preset": "serving"})]


def theirs(table):
    """pyarrow: page index and checksums as we always write them."""
    sink = pa.BufferOutputStream()
    begin = time.process_time()
    pq.write_table(table, sink, compression="zstd", compression_level=1, write_page_index=True,
                   write_page_checksum=True, row_group_size=ROW_GROUP_ROWS)
    return time.process_time() - begin, sink.getvalue().size


class Bench:
    def __init__(self, tool, folder, repeats):
        self.tool, self.folder, self.repeats = tool, folder, repeats

    def ours(self, path, options):
        out = os.path.join(self.folder, "out.parquet")
        options = {"row_group_rows": ROW_GROUP_ROWS} | options
        if "preset" in options:
            del options["row_group_rows"]
        facts = json.loads(subprocess.run([self.tool, path, out, json.dumps(options)], check=True,
                                          stdout=subprocess.PIPE).stdout)
        return facts["cpu_s"], facts["size_bytes"]

    def save(self, table):
        path = os.path.join(self.folder, "in.arrow")
        with ipc.new_file(path, table.schema) as out:
            out.write_table(table)
        return path

    def compare(self, table):
        path = self.save(table)
        pairs = [(theirs(table), self.ours(path, {})) for _ in range(self.repeats)]
        return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)

    def columns(self, table):
        rows = []
        for name in [None, *table.column_names]:
            part = table if name is None else table.select([name])
            (their_s, their_bytes), (our_s, our_bytes) = self.compare(part)
            rows.append([name or "all", f"{their_s:.3f}", f"{our_s:.3f}",
                         f"{our_s / their_s:.2f}", report.mb(their_bytes), report.mb(our_bytes),
                         f"{table.num_rows / our_s / 1e6:.1f}", f"{part.nbytes / our_s / 1e6:.0f}"])
        return report.table(["column", "pyarrow, CPU s", "ours, CPU s", "ratio", "pyarrow, MB",
                             "ours, MB", "million rows/s", "MB/s in"], rows)

    def pages(self, table):
        path, rows, base = self.save(table), [], None
        for title, options in PAGES:
            seconds, size = min(self.ours(path, options) for _ in range(self.repeats))
            base = base or (seconds, size)
            rows.append([title, f"{seconds:.3f}", f"{seconds / base[0]:.2f}x", report.mb(size),
                         f"{size / base[1]:.2f}x"])
        return report.table(["pages", "CPU s", "", "MB", ""], rows)


def read(lake, kind, rows):
    tables, count = [], 0
    for path in sorted(glob.glob(os.path.join(lake, kind, "**", "*.parquet"), recursive=True)):
        tables.append(pq.ParquetFile(path).read())
        count += tables[-1].num_rows
        if count >= rows:
            break
    return pa.concat_tables(tables).slice(0, rows).combine_chunks()


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--lake", default=os.path.join(HERE, "lake"))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tool", default=os.path.join(ROOT, "build", "release", "tests", "writer",
                                                       "write_file_tool"))
    parser.add_argument("--tiny", action="store_true")
    args = parser.parse_args(argv)
    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory(prefix="grebe-bench-") as folder:
        if args.tiny:
            args.lake, args.rows, args.repeats = os.path.join(folder, "lake"), 5000, 1
            subprocess.run([sys.executable, os.path.join(HERE, "make_lake.py"), "--out", args.lake,
                            "--tiny"], check=True, stdout=subprocess.DEVNULL)
        bench = Bench(args.tool, folder, args.repeats)
        m = report.machine()
        print(f"Machine: {m['cpu']}, {m['cores']} cores, {m['date']}, load {m['load']}. "
              f"Command: `bench/writer.py {' '.join(argv)}`.\n")
        for kind, title in (("plain", "Rows as they came"), ("prepared", "Rows sorted by the key")):
            table = read(args.lake, kind, args.rows)
            print(f"### {title}, {table.num_rows:,} of them\n")
            print("\n".join(bench.columns(table)))
        print("### What pages cost, rows sorted by the key\n")
        print("\n".join(bench.pages(table)))


if __name__ == "__main__":
    main(sys.argv[1:])
