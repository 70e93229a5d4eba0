"""Kills `grebe layout rewrite` with SIGKILL at every failpoint and at random moments, stops it,
fills its disk and breaks its source; after each the table is untouched, and the same command either
goes on and ends with the right rows, or finds the finished folder. Nothing is left of the spill.

usage: rewrite_faults.py [--repeats N] [--seed N]
"""

import hashlib
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from common import arguments  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GREBE = os.environ.get("GREBE_BIN", str(ROOT / "build" / "release" / "grebe"))
ROWS, FILES = 60000, 6


def failpoints():
    """Every failpoint of a rewrite, and those of the store below it."""
    names = set()
    for path in (ROOT / "src").rglob("*.cc"):
        names |= set(re.findall(r'GREBE_FAILPOINT\("([^"]+)"\)', path.read_text()))
    return sorted(n for n in names if n.startswith(("rewrite.", "store.local.")))


def make_table(folder, seed):
    rng = np.random.default_rng(seed)
    for number in range(FILES):
        count = ROWS // FILES
        pq.write_table(pa.table({
            "a": rng.integers(0, 500, count), "b": rng.normal(size=count),
            "row": np.arange(number * count, (number + 1) * count),
            "text": [f"text {i}" for i in rng.integers(0, 10**9, count)],
        }), folder / f"f{number}.parquet")


def digest(folder):
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest()
            for p in sorted(folder.glob("*.parquet"))}


class Trial:
    by = "sort(a,b)"

    def __init__(self, scratch, seed):
        self.table, self.out = scratch / "table", scratch / "out"
        self.spill = scratch / "spill"
        self.table.mkdir()
        self.spill.mkdir()
        make_table(self.table, seed)
        self.digest = digest(self.table)
        self.expected = pa.concat_tables(
            [pq.read_table(p) for p in sorted(self.table.glob("*.parquet"))])

    def args(self, *more):
        return [GREBE, "layout", "rewrite", str(self.table), "--by", self.by, "--to",
                str(self.out), "--target-file-rows", "7000", "--row-group-rows", "2000",
                "--memory", "128MB", "--spill-folder", str(self.spill), "--index", "rows", "--key",
                "row", *more]

    def run(self, *more, failpoint=None, prefix=()):
        env = dict(os.environ)
        env.pop("GREBE_FAILPOINTS", None)
        if failpoint:
            env["GREBE_FAILPOINTS"] = failpoint
        return subprocess.run([*prefix, *self.args(*more)], capture_output=True, env=env,
                              timeout=120)

    def check_source(self):
        assert digest(self.table) == self.digest, "the table changed"

    def check_complete(self):
        """The folder is whole: all rows, in order, once, and an index that finds them."""
        self.check_source()
        assert not (self.out / "_grebe_rewrite").exists(), "the marks of a rewrite are left"
        leftovers = [str(p) for p in self.out.rglob("*") if p.name.endswith(".tmp")]
        assert not leftovers, leftovers
        assert not list(self.spill.iterdir()), "spill files are left"
        got = pa.concat_tables([pq.read_table(p) for p in sorted(self.out.glob("*.parquet"))])
        self.check_order(got)
        assert got.sort_by("row").equals(self.expected), "other rows than the table's"
        done = subprocess.run([GREBE, "count", str(self.out), "row=12345"], capture_output=True)
        assert done.returncode == 0 and b'"count":1' in done.stdout.replace(b" ", b""), done

    def check_order(self, got):
        keys = list(zip(got["a"].to_pylist(), got["b"].to_pylist()))
        assert keys == sorted(keys), "out of order"

    def finish(self):
        """The same command again: goes on, or says that the folder is not empty (it is done)."""
        again = self.run()
        if again.returncode != 0:
            assert again.returncode == 2 and b"not empty" in again.stderr, again.stderr
        self.check_complete()

    def reset(self):
        shutil.rmtree(self.out, ignore_errors=True)


class TreeTrial(Trial):
    """Laid out by a tree, which is there with the files, whole, or not yet."""

    def __init__(self, scratch, seed):
        super().__init__(scratch, seed)
        log = scratch / "log"
        log.write_text("".join(f"a = {a}\nb BETWEEN {a / 100} AND {a / 100 + 0.1}\n"
                               for a in range(0, 200, 5)))
        self.by = f"tree({log})"
        assert self.run().returncode == 0
        self.tree = (self.out / "_grebe_layout.json").read_bytes()
        self.reset()

    def check_order(self, got):
        assert (self.out / "_grebe_layout.json").read_bytes() == self.tree, "another tree"
        names = [p.name for p in self.out.glob("*.parquet")]
        assert all(name.startswith("leaf-") for name in names), names


def kill_at_failpoints(trial, repeats, draw):
    missed = []
    for name in failpoints():
        for repeat in range(repeats):
            nth = 1 if repeat % 2 == 0 else draw.randrange(1, 9)
            died = trial.run(failpoint=f"{name}=kill@{nth}")
            if died.returncode == -signal.SIGKILL:
                trial.check_source()
            elif nth == 1:
                missed.append(name)
            # Killed a second time while it goes on.
            trial.run(failpoint=f"{draw.choice(failpoints())}=kill@{draw.randrange(1, 4)}")
            trial.finish()
            trial.reset()
    assert not missed, f"never reached: {missed}"


def kill_at_any_moment(trial, times, draw):
    start = time.monotonic()
    trial.run()
    whole = time.monotonic() - start
    trial.reset()
    for _ in range(times):
        process = subprocess.Popen(trial.args(), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        try:
            process.wait(timeout=draw.random() * whole)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        trial.finish()
        trial.reset()


def interrupt(trial, times, draw):
    for _ in range(times):
        process = subprocess.Popen(trial.args(), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE)
        # Before it has begun to work it cannot be asked to stop.
        while process.poll() is None and not (trial.out / "_grebe_rewrite").exists():
            pass
        try:
            process.wait(timeout=draw.random() * 0.2)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate()
            assert process.returncode in (0, 130), (process.returncode, stderr)
            if process.returncode == 130:
                assert b"Cancelled" in stderr, stderr
            assert not list(trial.out.rglob("*.tmp")), "half-written files are left"
        trial.finish()
        trial.reset()


def full_disk(trial):
    """A file may grow no further: as on a full disk, the write fails."""
    limited = trial.run(prefix=("bash", "-c", "trap '' XFSZ; ulimit -f 100; exec \"$@\"", "-"))
    assert limited.returncode == 5 and b"grebe:" in limited.stderr, (limited.returncode,
                                                                     limited.stderr)
    trial.check_source()
    trial.finish()
    trial.reset()


def put_back(path, data, times):
    """Other bytes in a file that looks the same: its place, size and time do not change."""
    with open(path, "r+b") as file:
        file.write(data)
    os.utime(path, ns=times)


def readable_again(broken, good):
    """A file that was left out can be read when the rewrite goes on: no mixture comes of it."""
    path = broken.table / "f3.parquet"
    bad, times = path.read_bytes(), (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    died = broken.run("--skip-bad-files", failpoint="rewrite.after_done=kill@1")
    assert died.returncode == -signal.SIGKILL, died.stderr
    put_back(path, good, times)
    refused = broken.run("--skip-bad-files")
    assert refused.returncode == 2 and b"left out other files" in refused.stderr, refused.stderr
    put_back(path, bad, times)


def bad_source(trial, scratch):
    broken = Trial(scratch, 3)
    path = broken.table / "f3.parquet"
    good = path.read_bytes()
    data = bytearray(good)
    meta = pq.read_metadata(path).row_group(0).column(3)
    for i in range(200):
        data[meta.data_page_offset + 2000 + i] ^= 0x5a
    path.write_bytes(data)
    before = digest(broken.table)
    failed = broken.run()
    assert failed.returncode == 3 and b"f3.parquet" in failed.stderr, failed.stderr
    assert not broken.out.exists() or not list(broken.out.rglob("*.parquet")), "files are left"
    broken.reset()
    readable_again(broken, good)
    skipped = broken.run("--skip-bad-files")
    assert skipped.returncode == 0 and b"skipped f3.parquet" in skipped.stderr, skipped.stderr
    rows = sum(pq.read_metadata(p).num_rows for p in broken.out.glob("*.parquet"))
    assert rows == ROWS - ROWS // FILES, f"{rows} rows"
    assert digest(broken.table) == before, "the table changed"


def main():
    parser = arguments.parser(__doc__)
    parser.add_argument("--repeats", type=int, default=6)
    args = arguments.parse(parser)
    print(f"{args.repeats} repeats, {len(failpoints())} failpoints", flush=True)
    draw = random.Random(args.seed)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="grebe-rewrite-faults-"))
    try:
        trial = Trial(scratch, args.seed)
        kill_at_failpoints(trial, args.repeats, draw)
        kill_at_any_moment(trial, 3 * args.repeats, draw)
        interrupt(trial, args.repeats, draw)
        full_disk(trial)
        (scratch / "tree").mkdir()
        tree = TreeTrial(scratch / "tree", args.seed)
        kill_at_failpoints(tree, args.repeats, draw)
        kill_at_any_moment(tree, args.repeats, draw)
        (scratch / "bad").mkdir()
        bad_source(trial, scratch / "bad")
    finally:
        shutil.rmtree(scratch)
    print("0 failures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
