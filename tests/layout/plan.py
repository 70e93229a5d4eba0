#!/usr/bin/env python3
"""grebe layout plan on real files: what it plans is rewritten here with pyarrow, and planned again.

  tests/layout/plan.py [--seed N] [--tables N]
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from common import arguments  # noqa: E402

GREBE = os.environ.get("GREBE_BIN", "build/release/grebe")


def plan(folder, *words):
    done = subprocess.run([GREBE, "layout", "plan", folder, "--format", "json", *words], text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def write(folder, name, keys):
    table = pa.table({"k": keys, "t": [f"{key:09}" for key in keys], "v": list(range(len(keys)))})
    (folder / name).parent.mkdir(exist_ok=True)
    pq.write_table(table, folder / name)


def keys_of(path):
    return pq.ParquetFile(path).read(columns=["k"]).column("k").to_pylist()


def rewrite(folder, got, number):
    """Sorts the rows of each group and cuts them into files of 200 rows."""
    for group in got["groups"]:
        keys = []
        for name in group["files"]:
            keys += keys_of(folder / name)
            (folder / name).unlink()
        keys.sort()
        assert len(keys) == group["rows"]
        parent = str(pathlib.PurePath(group["files"][0]).parent)
        for at in range(0, len(keys), 200):
            write(folder, f"{parent}/r{number}_{group['files'][0].split('/')[-1]}_{at:06}.parquet",
                  keys[at:at + 200])


def depth(folder):
    """Files that cover the key of a row, on average."""
    ranges = [(min(keys), max(keys), keys) for keys in map(keys_of, folder.glob("**/*.parquet"))]
    rows = [key for _, _, keys in ranges for key in keys]
    return sum(low <= key <= high for key in rows for low, high, _ in ranges) / len(rows)


def check_table(rng, folder):
    hive = rng.random() < 0.3
    for append in range(rng.randint(3, 25)):
        low = rng.choice([0, 0, rng.randint(0, 90000)])
        top = rng.randint(low + 1, 100000)
        part = f"p={rng.randint(0, 1)}/" if hive else "./"
        write(folder, f"{part}a{append:03}.parquet",
              [rng.randint(low, top) for _ in range(rng.randint(20, 300))])
    column = rng.choice(["k", "t"])
    before = depth(folder)
    got = plan(folder, "--by", column)
    for group in got["groups"]:
        assert len({pathlib.PurePath(name).parent for name in group["files"]}) == 1, group
    if not hive:
        assert abs(got["depth_before"] - before) <= 0.5 * before, (got["depth_before"], before)
    rewrite(folder, got, 0)
    if not hive and got["groups"]:
        assert depth(folder) < before, (depth(folder), before)
    again = plan(folder, "--by", column)
    assert again["bytes"] == 0 and again["groups"] == [], again
    return bool(got["groups"])


def check_budget(folder):
    for number in range(10):
        write(folder, f"a{number}.parquet", list(range(number, 10000, 37)))
    everything = plan(folder, "--by", "k")
    assert everything["files"] == 10 and everything["rewritten_share"] == 1, everything
    assert abs(everything["depth_before"] - 10) < 1.3, everything
    assert abs(everything["depth_after"] - 1) < 1e-6, everything
    nothing = plan(folder, "--by", "k", "--budget", "100")
    assert nothing["bytes"] == 0 and nothing["depth_after"] == nothing["depth_before"], nothing


def main():
    args = arguments.parse(arguments.parser(__doc__, tables=30))
    rng = random.Random(args.seed)
    planned = 0
    for _ in args.numbers:
        with tempfile.TemporaryDirectory() as folder:
            planned += check_table(rng, pathlib.Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        check_budget(pathlib.Path(folder))
    assert planned > args.tables // 5, planned
    print(f"{args.tables} tables, {planned} with a plan; every second plan is empty")
    return 0


if __name__ == "__main__":
    sys.exit(main())
