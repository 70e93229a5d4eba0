#!/usr/bin/env python3
"""The upkeep of a table, end to end: drift, plan, rewrite the files that the plan names, put the
new ones in their places. DuckDB says that the rows stay the same, and the second plan is empty.

usage: upkeep.py [--tables N] [--seed N]
"""

import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from common import arguments, grebe_cli   # noqa: E402


def write(folder, name, keys, first):
    table = pa.table({"k": keys, "t": [f"{key:09}" for key in keys],
                      "row": list(range(first, first + len(keys)))})
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / name)
    return first + len(keys)


def make_table(folder, rng, hive):
    """Appends: some in the order of the key, some all over a stretch of it."""
    rows = 0
    for append in range(rng.randint(3, 25)):
        low = rng.choice([0, 0, rng.randint(0, 90000)])
        top = rng.randint(low + 1, 100000)
        part = f"p={rng.randint(0, 1)}/" if hive else ""
        keys = [rng.randint(low, top) for _ in range(rng.randint(20, 300))]
        rows = write(folder, f"{part}part-{append:05}.parquet", keys, rows)


def plan(folder, column):
    return json.loads(grebe_cli.run(["layout", "plan", folder, "--by", column, "--format",
                                     "json"]))


def rows_of(folder):
    return duckdb.sql(f"SELECT * FROM read_parquet('{folder}/**/*.parquet', "
                      "hive_partitioning = true) ORDER BY row").fetchall()


def digests(folder):
    return {p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in folder.rglob("*.parquet")}


def rewrite(folder, plan_path, column, to, *more):
    return json.loads(grebe_cli.run(
        ["layout", "rewrite", folder, "--files", plan_path, "--by", f"sort({column})", "--to", to,
         "--target-file-rows", 200, "--json-errors", *more]))


def swap(folder, named, new):
    """As docs/guide/layout-report.md has it: links to all, less the old files, and the new."""
    following = folder.with_name("next")
    subprocess.run(["cp", "-al", folder, following], check=True)
    for name in named:
        (following / name).unlink()
    before = len(digests(following))
    subprocess.run(["cp", "-al", f"{new}/.", following], check=True)
    names = before + len(digests(new))
    assert len(digests(following)) == names, "a new file has an old one's name"
    return following


def killed_and_taken_up(folder, plan_path, column, to, rng):
    """A file that comes in between does not keep a killed rewrite from going on."""
    args = ["layout", "rewrite", folder, "--files", plan_path, "--by", f"sort({column})", "--to",
            to, "--target-file-rows", 200]
    died = subprocess.run([grebe_cli.GREBE, *map(str, args)], capture_output=True,
                          env={**os.environ, "GREBE_FAILPOINTS": "rewrite.after_done=kill"})
    assert died.returncode == -9, died.stderr
    parent = pathlib.PurePath(next(iter(digests(folder)))).parent
    write(folder, f"{parent}/zzz.parquet", [rng.randint(0, 100000)], 10**6)


def check_table(rng, scratch):
    hive = rng.random() < 0.4
    folder, new = scratch / "table", scratch / "new"
    make_table(folder, rng, hive)
    column = rng.choice(["k", "t"])
    got = plan(folder, column)
    plan_path = scratch / "plan.json"
    plan_path.write_text(json.dumps(got))
    if not got["groups"]:
        refused(folder, plan_path, new, "InvalidArgument", "nothing to rewrite")
        return False
    resumed = rng.random() < 0.5
    if resumed:
        killed_and_taken_up(folder, plan_path, column, new, rng)
    before, files = rows_of(folder), digests(folder)
    summary = rewrite(folder, plan_path, column, new)
    named = [name for group in got["groups"] for name in group["files"]]
    assert summary["files_in"] == len(named) == got["files"], summary
    assert summary["rows_in"] == summary["rows_out"] == got["rows"], summary
    assert summary["files_resumed"] == (1 if resumed else 0), summary
    assert digests(folder) == files, "the table changed"
    following = swap(folder, named, new)
    assert rows_of(following) == before, "other rows than before"
    kept = set(files) - set(named)
    assert all(digests(following)[name] == files[name] for name in kept), "another file changed"
    again = plan(following, column)
    assert again["groups"] == [] and again["bytes"] == 0, again
    return True


def refused(folder, plan_path, to, kind, words):
    try:
        rewrite(folder, plan_path, "k", to)
    except grebe_cli.GrebeError as error:
        assert error.typed and error.error["error"] == kind, error
        assert words in error.error["message"], (words, error.error["message"])
        assert not to.exists(), "a refused rewrite leaves something"
        return
    raise AssertionError(f"not refused: {pathlib.Path(plan_path).read_text()}")


def check_errors(scratch):
    folder, to, named = scratch / "table", scratch / "new", scratch / "named"
    for number in range(3):
        write(folder, f"f{number}.parquet", list(range(number, 300, 3)), number * 1000)
    for text, kind, words in (
            ("f0.parquet\nno.parquet\n", "NotFound", "file=no.parquet"),
            ('{"groups": [{"files": ["f0.parquet", "f9.parquet"]}]}', "NotFound",
             "file=f9.parquet"),
            ("", "InvalidArgument", "no files"), ("\n \n", "NotFound", "file= "),
            ('{"groups": []}', "InvalidArgument", "no files"),
            ('{"groups": [{"files": []}]}', "InvalidArgument", "empty"),
            ('{"groups": [{"files": ["f0.parquet"]', "InvalidArgument", "not valid JSON"),
            ('["f0.parquet"]', "InvalidArgument", "'groups'"),
            ('{"files": 3}', "InvalidArgument", "'groups'"),
            ('{"groups": [{"files": [1]}]}', "InvalidArgument", "not a string"),
            ('{"groups": [["f0.parquet"]]}', "InvalidArgument", "'files'"),
            ("f0.parquet\nf0.parquet\n", "InvalidArgument", "file=f0.parquet")):
        named.write_text(text)
        refused(folder, named, to, kind, words)
    # A plain list is one group, whatever ends its lines.
    named.write_text("f2.parquet\r\nf0.parquet")
    summary = rewrite(folder, named, "k", to)
    assert (summary["files_in"], summary["rows_out"]) == (2, 200), summary
    keys = [k for p in sorted(to.glob("*.parquet")) for k in pq.read_table(p)["k"].to_pylist()]
    assert keys == sorted(k for k in range(300) if k % 3 != 1), keys
    # Other files under the same folder's name are another rewrite.
    shutil.rmtree(to)
    died = subprocess.run(
        [grebe_cli.GREBE, "layout", "rewrite", folder, "--files", named, "--by", "sort(k)", "--to",
         to, "--target-file-rows", "200"], capture_output=True,
        env={**os.environ, "GREBE_FAILPOINTS": "rewrite.after_done=kill"})
    assert died.returncode == -9, died.stderr
    named.write_text("f1.parquet\nf0.parquet\n")
    try:
        rewrite(folder, named, "k", to)
        raise AssertionError("taken up with other files")
    except grebe_cli.GrebeError as error:
        assert "something else" in error.error["message"], error
    named.write_text("f2.parquet\nf0.parquet\n")
    assert rewrite(folder, named, "k", to)["files_resumed"] == 1


def main():
    args = arguments.parse(arguments.parser(__doc__, tables=30))
    planned = 0
    for number in args.numbers:
        with tempfile.TemporaryDirectory(prefix="grebe-upkeep-") as folder:
            planned += check_table(random.Random(f"{args.seed}/{number}"), pathlib.Path(folder))
    with tempfile.TemporaryDirectory(prefix="grebe-upkeep-") as folder:
        check_errors(pathlib.Path(folder))
    assert planned > args.tables // 5, planned
    print(f"{args.tables} tables, {planned} with a plan; the rows stay, every second plan is empty")
    return 0


if __name__ == "__main__":
    sys.exit(main())
