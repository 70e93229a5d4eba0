#!/usr/bin/env python3
"""What `grebe layout rewrite --dry-run` says beside what the same rewrite then does: all but spill
and memory exact when the table is small; of larger tables, bytes within 1.5 times, spilled bytes
within 1.3 times and the memory of rows within twice.

usage: dry_run.py [--tables N] [--seed N]
"""

import json
import pathlib
import random
import sys
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from common import arguments, grebe_cli   # noqa: E402

BYTES_FACTOR, SPILL_FACTOR, MEMORY_FACTOR = 1.5, 1.3, 2.0


def make_table(folder, rng, rows, files, days):
    draw = np.random.default_rng(rng.randrange(1 << 32))
    columns = {
        "k": draw.integers(0, max(2, rows // rng.choice([2, 10, 100])), rows),
        "ts": np.sort(draw.integers(0, 10**9, rows)),
        "name": [f"name of {n}" for n in draw.zipf(1.3, rows) % 50000],
        "x": draw.normal(size=rows),
        "few": [["red", "green", "blue"][i] for i in draw.integers(0, 3, rows)],
    }
    if rng.random() < 0.5:
        columns["id"] = [f"{a:016x}" for a in draw.integers(0, 1 << 62, rows)]
    if rng.random() < 0.3:
        columns["list"] = [list(range(n)) for n in draw.integers(0, 4, rows)]
    table = pa.table(columns)
    for number in range(files):
        part = table.slice(rows * number // files, rows * (number + 1) // files -
                           rows * number // files)
        path = folder / (f"day=2026-01-{1 + number % days:02}/" if days else "")
        path.mkdir(parents=True, exist_ok=True)
        pq.write_table(part, path / f"f{number:03}.parquet",
                       compression=rng.choice(["zstd", "snappy", "none"]))


def run(folder, to, *args):
    return json.loads(grebe_cli.run(["layout", "rewrite", folder, "--to", to, *args], timeout=300))


def draw_args(rng, large):
    by = rng.choice(["sort(k,ts)", "sort(ts)", "zorder(k,ts)", "hilbert(k,ts)", "bucket(8,k)"])
    args = ["--by", by, "--preset", rng.choice(["analytics", "serving"]), "--partitions",
            rng.choice(["keep", "none"]), "--memory", rng.choice(["128MB", "160MB"]),
            "--target-file-rows",
            rng.choice([50000, 10**6] if large else [20, 500, 10**6])]
    if by == "sort(k,ts)" and rng.random() < 0.3:
        args += ["--cogroup", "k"]
    return args


def within(estimate, real, factor):
    return real / factor <= estimate <= real * factor


def check(rng, scratch, large):
    rows = rng.randrange(600000, 1200000) if large else rng.randrange(1, 5000)
    folder = scratch / "table"
    make_table(folder, rng, rows, rng.choice([1, 3, 20]), 0 if large else rng.choice([0, 2]))
    args = draw_args(rng, large)
    before = run(folder, scratch / "out", *args, "--dry-run")
    assert not (scratch / "out").exists(), "a dry run writes something"
    after = run(folder, scratch / "out", *args)
    names = ["files_in", "rows_in", "bytes_in", "partitions", "row_bytes_memory"]
    names += [] if large else ["files_out", "rows_out", "bytes_out"]
    assert before["dry_run"] and not after["dry_run"]
    for name in names:
        assert before[name] == after[name], (name, before, after, args)
    assert within(before["files_out"], after["files_out"], 1.1), (before, after, args)
    assert within(before["rows_out"], after["rows_out"], 1.5), (before, after, args)
    assert within(before["bytes_out"], after["bytes_out"], BYTES_FACTOR), (before, after, args)
    if large:
        assert within(before["memory_bytes"], after["memory_bytes"], MEMORY_FACTOR), (before, after)
        assert within(before["spilled_bytes"] + 1e6, after["spilled_bytes"] + 1e6,
                      SPILL_FACTOR), (before, after, args)
    return {name: before[name] / max(1, after[name])
            for name in ("bytes_out", "spilled_bytes", "memory_bytes", "rows_out")}


def main():
    parser = arguments.parser(__doc__)
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--large", type=int, default=3)
    args = arguments.parse(parser)
    for number in range(args.tables + args.large):
        large = number >= args.tables
        with tempfile.TemporaryDirectory(prefix="grebe-dry-run-") as folder:
            ratios = check(random.Random(f"{args.seed}/{number}"), pathlib.Path(folder), large)
        if large:
            print("estimate over real:",
                  ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items()), flush=True)
    print("0 failures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
