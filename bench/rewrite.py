#!/usr/bin/env python3
"""Rewrites one lake by grebe, DuckDB's sort and delta-rs's z_order, one after another in a round,
and prints time, processor time, peak resident memory, spilled bytes and file size of each.

  bench/rewrite.py --lake DIR [--grebe PATH] [--rounds 3] [--memory 1GB 256MB] [--no-delta]

The lake is made by bench/make_lake.py. Ratios within a round are what counts: the machine may be
shared. delta-rs is left out where it is not installed.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent

DUCKDB = """
import duckdb, sys
c = duckdb.connect()
c.execute("SET threads = 2")
c.execute(f"SET temp_directory = '{sys.argv[2]}.tmp'")
if sys.argv[3]:
    c.execute(f"SET memory_limit = '{sys.argv[3]}'")
c.execute(f"COPY (SELECT * FROM read_parquet('{sys.argv[1]}/**/*.parquet') ORDER BY user_id, ts) "
          f"TO '{sys.argv[2]}' (FORMAT parquet, COMPRESSION zstd)")
"""

DELTA = """
import sys, deltalake, pyarrow.dataset as ds
table = deltalake.DeltaTable(sys.argv[1])
table.optimize.z_order(["user_id", "ts"])
"""

DELTA_COPY = """
import sys, deltalake, pyarrow.dataset as ds
source = ds.dataset(sys.argv[1], format="parquet")
deltalake.write_deltalake(sys.argv[2], source.scanner(batch_size=1 << 17).to_reader())
"""


def measured(args):
    """(summary text, wall seconds, processor seconds, peak bytes) of a process."""
    start = time.monotonic()
    process = subprocess.Popen([str(a) for a in args], stdout=subprocess.PIPE)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"failed: {' '.join(map(str, args))}")
    return out, time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def size_of(path):
    path = pathlib.Path(path)
    if path.is_file():
        return path.stat().st_size
    return sum(p.stat().st_size for p in path.rglob("*.parquet"))


def contenders(args, scratch):
    def grebe(by, memory):
        return [args.grebe, "layout", "rewrite", args.lake, "--by", by, "--partitions", "none",
                "--memory", memory, "--to", scratch / "out", "--spill-folder", scratch]
    out = {}
    for memory in args.memory:
        out[f"grebe zorder(user_id,ts), {memory}"] = grebe("zorder(user_id,ts)", memory)
    out[f"grebe hilbert(user_id,ts), {args.memory[0]}"] = grebe("hilbert(user_id,ts)",
                                                               args.memory[0])
    out[f"grebe sort(user_id,ts), {args.memory[0]}"] = grebe("sort(user_id,ts)", args.memory[0])
    out["DuckDB ORDER BY user_id, ts"] = [sys.executable, "-c", DUCKDB, args.lake, scratch / "out",
                                          ""]
    return out


def delta_run(lake, scratch):
    copy = scratch / "delta"
    subprocess.run([sys.executable, "-c", DELTA_COPY, str(lake), str(copy)], check=True)
    before = size_of(copy)
    result = measured([sys.executable, "-c", DELTA, copy])
    size = size_of(copy) - before
    shutil.rmtree(copy)
    return result, size


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lake", required=True, type=pathlib.Path)
    parser.add_argument("--grebe", default=ROOT / "build" / "release" / "grebe")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", nargs="+", default=["1GB", "256MB"])
    parser.add_argument("--no-delta", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    rows = {}
    for number in range(args.rounds):
        scratch = pathlib.Path(tempfile.mkdtemp(prefix="grebe-bench-rewrite-"))
        for name, command in contenders(args, scratch).items():
            out, wall, cpu, peak = measured(command)
            spilled = json.loads(out).get("spilled_bytes", 0) if out.startswith(b"{") else None
            rows.setdefault(name, []).append((wall, cpu, peak, spilled, size_of(scratch / "out")))
            path = scratch / "out"
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if not args.no_delta:
            (_, wall, cpu, peak), size = delta_run(args.lake, scratch)
            rows.setdefault("delta-rs z_order(user_id, ts)", []).append(
                (wall, cpu, peak, None, size))
        shutil.rmtree(scratch)
    print("| | wall s | / DuckDB | processor s | peak MB | spilled MB | files MB |")
    print("|---|---|---|---|---|---|---|")
    duck = [run[0] for run in rows["DuckDB ORDER BY user_id, ts"]]
    for name, runs in rows.items():
        ratio = statistics.median(run[0] / base for run, base in zip(runs, duck))
        wall, cpu, peak = (statistics.median(run[i] for run in runs) for i in range(3))
        spilled = "" if runs[0][3] is None else f"{max(run[3] for run in runs) / 1e6:.0f}"
        print(f"| {name} | {wall:.1f} | {ratio:.2f} | {cpu:.1f} | {peak / 1e6:.0f} | {spilled} | "
              f"{runs[0][4] / 1e6:.0f} |")
    if args.json:
        args.json.write_text(json.dumps(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
