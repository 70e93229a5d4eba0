"""Kills `grebe index create | refresh | compact | drop` with SIGKILL at every failpoint, many times
each, and checks that nothing is lost: the data files are untouched, a lookup gives the answer of
the version before or after (never another one), the same command run again succeeds, verify finds
nothing wrong, and verify --clean leaves no orphan.

usage: kill.py [--repeats N] [--seed N]     (20 repeats are what TESTING.md promises)
"""

import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from common import arguments  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GREBE = os.environ.get("GREBE_BIN", str(ROOT / "build" / "release" / "grebe"))
USERS = 40


def failpoints():
    """Every failpoint name in the sources: a new one is covered without a change here.

    Those of a rewrite are passed by rewrite_faults.py.
    """
    names = set()
    for path in (ROOT / "src").rglob("*.cc"):
        names |= set(re.findall(r'GREBE_FAILPOINT\("([^"]+)"\)', path.read_text()))
    return sorted(name for name in names if not name.startswith("rewrite."))


def run(args, failpoint=None, check=True):
    env = dict(os.environ)
    env.pop("GREBE_FAILPOINTS", None)
    if failpoint:
        env["GREBE_FAILPOINTS"] = failpoint
    done = subprocess.run([GREBE, *args], capture_output=True, env=env, timeout=120)
    if check and done.returncode != 0:
        raise AssertionError(f"grebe {' '.join(args)}: exit {done.returncode}: "
                             f"{done.stderr.decode()[:500]}")
    return done


def write_file(folder, number, seed):
    draw = random.Random(seed * 1000 + number)
    rows = 400
    pq.write_table(pa.table({
        "user_id": pa.array([draw.randrange(USERS) for _ in range(rows)], pa.int64()),
        "n": pa.array([number * 1000 + i for i in range(rows)], pa.int64()),
        "text": [f"text {draw.randrange(10 ** 9)}" for _ in range(rows)],
    }), folder / f"part-{number:03d}.parquet", write_page_index=True, data_page_size=1024)


def digest(folder):
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest()
            for p in sorted(folder.glob("*.parquet"))}


def expected(folder, names):
    """user -> rows, in the order of file, then row."""
    out = {}
    for name in sorted(names):
        for row in pq.read_table(folder / name).to_pylist():
            out.setdefault(row["user_id"], []).append(row)
    return out


def ranges(table):
    """The same through a range of all keys, which must come in key order; None likewise."""
    done = subprocess.run([GREBE, "get", str(table), "--name", "user_id", "user_id>=0",
                           "--format", "jsonl"], capture_output=True, timeout=120)
    if done.returncode == 2 and b"NotFound" in done.stderr:
        return None
    if done.returncode != 0:
        raise AssertionError(f"get of a range: exit {done.returncode}: "
                             f"{done.stderr.decode()[:500]}")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows == sorted(rows, key=lambda row: row["user_id"]), "not in key order"
    out = {}
    for row in rows:
        out.setdefault(row["user_id"], []).append(row)
    return out


def answers(table):
    """All users' rows through the index; None when there is no index."""
    keys = "".join(json.dumps({"user_id": user}) + "\n" for user in range(USERS + 2))
    done = subprocess.run([GREBE, "get", str(table), "--name", "user_id", "--keys-from", "-",
                           "--format", "jsonl"], input=keys.encode(), capture_output=True,
                          timeout=120)
    if done.returncode == 2 and b"NotFound" in done.stderr:
        return None
    if done.returncode != 0:
        raise AssertionError(f"get: exit {done.returncode}: {done.stderr.decode()[:500]}")
    out = {}
    for line in done.stdout.splitlines():
        row = json.loads(line)
        out.setdefault(row["user_id"], []).append(row)
    assert ranges(table) == out, "the range of all keys is not what the keys give"
    return out


class Trial:
    """A table prepared for one command, and the answers that are right before and after it."""

    def __init__(self, command, folder, seed):
        self.command, self.table = command, folder
        first = 3
        for number in range(first):
            write_file(folder, number, seed)
        if command != "create":
            run(["index", "create", str(folder), "--key", "user_id", "--sorted"])
        if command == "compact":
            for number in range(first, first + 4):
                write_file(folder, number, seed)
                run(["index", "refresh", str(folder)])
        names = [p.name for p in folder.glob("*.parquet")]
        self.before = None if command == "create" else expected(folder, names)
        if command == "refresh":
            write_file(folder, first, seed)
            names.append(f"part-{first:03d}.parquet")
        self.after = None if command == "drop" else expected(folder, names)
        self.digest = digest(folder)

    def args(self):
        args = ["index", self.command, str(self.table)]
        if self.command == "create":
            args += ["--key", "user_id", "--sorted"]
        if self.command == "compact":
            args += ["--all"]
        if self.command == "drop":
            args += ["--name", "user_id"]
        return args

    def check_after_kill(self):
        assert digest(self.table) == self.digest, "a data file changed"
        got = answers(self.table)
        assert got in (self.before, self.after), "neither the answer before nor the one after"
        again = run(self.args(), check=False)
        if again.returncode != 0:
            # The killed run had already committed: create says it exists, drop finds nothing.
            assert got == self.after and again.returncode == 2, again.stderr.decode()[:300]
        assert answers(self.table) == self.after, "wrong after the command was run again"
        if self.command != "drop":
            report = json.loads(run(["index", "verify", str(self.table), "--name", "user_id",
                                     "--clean", "--orphan-age", "0"]).stdout)
            assert report["ok"], report
            report = json.loads(run(["index", "verify", str(self.table), "--name", "user_id",
                                     "--orphan-age", "0"]).stdout)
            assert not report["orphans"], report
            leftovers = [str(p) for p in self.table.rglob("*") if "tmp" in p.name]
            assert not leftovers, leftovers
            assert answers(self.table) == self.after, "wrong after cleaning"
        assert digest(self.table) == self.digest, "a data file changed"


def main():
    parser = arguments.parser(__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    args = arguments.parse(parser)
    print(f"{args.repeats} repeats", flush=True)
    draw = random.Random(args.seed)
    hits = {name: 0 for name in failpoints()}
    failures = 0
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="grebe-kill-"))
    try:
        for command in ("create", "refresh", "compact", "drop"):
            prepared = scratch / f"{command}-prepared"
            prepared.mkdir()
            trial = Trial(command, prepared, args.seed)
            for name in hits:
                for repeat in range(args.repeats):
                    # Which passing of the failpoint kills: early ones most often.
                    nth = 1 if repeat % 2 == 0 else 1 + draw.randrange(4)
                    work = scratch / "work"
                    # Hard links: a copied data file would be another file, and Stale.
                    subprocess.run(["cp", "-al", str(prepared), str(work)], check=True)
                    trial.table = work
                    died = run(trial.args(), failpoint=f"{name}=kill@{nth}", check=False)
                    killed = died.returncode == -signal.SIGKILL
                    if nth == 1 and not killed:
                        shutil.rmtree(work)
                        break   # not on this command's path
                    hits[name] += killed
                    try:
                        trial.check_after_kill()
                    except AssertionError as error:
                        failures += 1
                        print(f"FAILED {command} at {name}@{nth}: {error}")
                    shutil.rmtree(work)
    finally:
        shutil.rmtree(scratch)
    for name, count in hits.items():
        print(f"{name}: killed {count} times")
    missed = [name for name, count in hits.items() if count == 0]
    if missed:
        print(f"FAILED: never reached: {missed}")
    print(f"{sum(hits.values())} kills, {failures} failures")
    return 1 if failures or missed else 0


if __name__ == "__main__":
    sys.exit(main())
