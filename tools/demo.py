#!/usr/bin/env python3
"""The demo: makes a lake of Parquet files, indexes it, looks one key up, and checks the answer.

  make demo        or, with another size:  make demo DEMO_ARGS="--rows 5000000 --files 200"

Leaves the lake in build/demo/lake. Exits 1 if the answer needed more than one wave, or differs from
what a full scan with pyarrow finds.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import time

import pyarrow.dataset as ds

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(command, show=True):
    """Runs a command as a person would, says how long it took, and returns what it printed."""
    print("$ " + " ".join(str(c) for c in command), flush=True)
    began = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    seconds = time.perf_counter() - began
    if show:
        print(done.stdout, end="")
    print(f"  ({seconds:.2f} s)\n", flush=True)
    if done.returncode != 0:
        sys.exit(f"demo: exit code {done.returncode}")
    return done.stdout


def scan(lake, user):
    """The same rows as JSON values, by reading every file."""
    table = ds.dataset(lake).to_table(filter=ds.field("user_id") == user, columns=["event_id"])
    return sorted(table.column("event_id").to_pylist())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--grebe", type=pathlib.Path, default=ROOT / "build/release/grebe")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/demo")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--user", type=int, default=4242)
    args = parser.parse_args()

    def short(path):
        path = path.resolve()
        return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path

    grebe, lake = short(args.grebe), short(args.folder) / "lake"
    shutil.rmtree(ROOT / lake, ignore_errors=True)
    run([".venv/bin/python", "tools/make_lake.py", lake, "--rows", str(args.rows),
         "--files", str(args.files)])
    run([grebe, "index", "create", lake, "--key", "user_id"])
    key = f"user_id={args.user}"
    run([grebe, "get", lake, key, "--format", "table"])
    explain = json.loads(run([grebe, "get", lake, key, "--explain", "--format", "json"]))
    rows = run([grebe, "get", lake, key, "--columns", "event_id", "--format", "jsonl"], show=False)
    found = sorted(json.loads(line)["event_id"] for line in rows.splitlines())

    began = time.perf_counter()
    expected = scan(ROOT / lake, args.user)
    seconds = time.perf_counter() - began
    if found != expected or explain["rows"] != len(expected):
        sys.exit(f"demo: FAILED: {len(found)} rows found, a full scan finds {len(expected)}")
    if explain["waves"] != 1:
        sys.exit(f"demo: FAILED: waves {explain['waves']}, not 1")
    print(f"demo: {len(found)} rows in 1 wave, {explain['bytes_read']} bytes in "
          f"{explain['requests']} requests; a full scan finds the same ({seconds:.2f} s)")


if __name__ == "__main__":
    main()
