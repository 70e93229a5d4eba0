"""Starts the peers, asks them in turns, and checks that they all give the same answers."""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


class Rival:
    """What is known of a peer before it runs. needs: the Python module, or None for a program of
    ours; copies: it reads a copy of its own; local_only: it cannot read object stores; settings:
    more entries of its configuration."""

    def __init__(self, name, title, needs=None, program=None, copies=False, local_only=False,
                 settings=None):
        self.name, self.title, self.needs, self.program = name, title, needs, program
        self.copies, self.local_only, self.settings = copies, local_only, settings or {}

    def command(self, bin_dir):
        if self.program:
            return [os.path.join(bin_dir, self.program)]
        return [sys.executable, os.path.join(HERE, "peers", f"{self.name}_peer.py")]

    def missing(self, bin_dir):
        """Why it cannot run here, or None."""
        if self.program:
            path = os.path.join(bin_dir, self.program)
            return None if os.path.exists(path) else f"not built: {path}"
        if importlib.util.find_spec(self.needs) is None:
            return f"not installed: {self.needs}"
        return None


RIVALS = [
    Rival("grebe", "Grebe", program="grebe_peer"),
    # The same with other cache budgets, to tell what caches give from what reading costs.
    Rival("grebe-dictionaries", "Grebe, all dictionaries cached, pages not", program="grebe_peer",
          settings={"dictionary_bytes_max": 4 << 30, "page_bytes_max": 0}),
    Rival("grebe-cold", "Grebe, nothing cached", program="grebe_peer",
          settings={"dictionary_bytes_max": 0, "page_bytes_max": 0}),
    Rival("duckdb", "DuckDB", needs="duckdb"),
    Rival("polars", "Polars", needs="polars"),
    Rival("datafusion", "DataFusion", needs="datafusion"),
    Rival("dataset", "pyarrow.dataset", needs="pyarrow"),
    Rival("lance", "Lance, B-tree", needs="lance", copies=True),
    Rival("rocksdb", "RocksDB", program="rocksdb_peer", copies=True, local_only=True),
]


def run_measured(command, env=None):
    """Runs a program to its end: (stdout, seconds, peak_rss_bytes, cpu_seconds).
    Raises when it fails."""
    with tempfile.TemporaryFile("w+") as errors:
        started = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True,
                                   env=env)
        out = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - started
        process.stdout.close()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            errors.seek(0)
            raise RuntimeError(f"failed: {' '.join(command)[:200]} ...: {errors.read()[-600:]}")
    return out, seconds, usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime


class Peer:
    """A running peer."""

    def __init__(self, title, command, config, env=None, log_path=None):
        self.title = title
        self.log = open(log_path, "w") if log_path else None
        self.process = subprocess.Popen(command + ["serve", json.dumps(config)], text=True, env=env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log, bufsize=1)
        ready = self._line()
        self.version, self.open_seconds = ready["version"], ready["open_seconds"]
        self.lookups = []
        self.explains = []
        self.peak_rss_bytes = 0

    def _line(self):
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            raise RuntimeError(f"peer ended: {self.title}, see {self.log and self.log.name}")
        return json.loads(line)

    def ask(self, keys, check=False):
        self.process.stdin.write(json.dumps({"keys": keys, "check": check}) + "\n")
        answer = self._line()
        self.peak_rss_bytes = answer["peak_rss_bytes"]
        return answer

    def ask_within(self, keys, seconds, count_min=3):
        """As many of the keys as fit into the time, at least a few: for slow peers. The first key's
        time sets the size of the batch, so that asking costs nothing between the others."""
        first = self.ask(keys[:1])
        took = (first["lookups"][0][1] - first["lookups"][0][0]) / 1e9
        count = int(max(count_min, min(len(keys) - 1, seconds / max(took, 1e-6))))
        rest = self.ask(keys[1:1 + count])
        if "explain" in rest:
            self.explains.append(rest["explain"])
        return first["lookups"] + rest["lookups"]

    def stop(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.log:
            self.log.close()


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def check_answers(peers, keys, absent, key_rows):
    """All peers give the true number of rows for each key, none for absent keys, and the same rows.
    Raises when not: nobody measures a wrong answer."""
    sums = {}
    for peer in peers:
        answer = peer.ask(keys, check=True)
        got = [rows for _, _, rows in answer["lookups"]]
        if got != [key_rows[k] for k in keys]:
            raise RuntimeError(f"wrong number of rows: peer={peer.title}")
        sums[peer.title] = answer["checksum"]
        if any(rows for _, _, rows in peer.ask(absent)["lookups"]):
            raise RuntimeError(f"rows for an absent key: peer={peer.title}")
    if len(set(sums.values())) != 1:
        raise RuntimeError(f"different rows: {sums}")
    return next(iter(sums.values()))


def warm_up(peers, keys, seconds):
    """Lookups that are not measured, as many of them as fit into the time, for each peer."""
    for peer in peers:
        peer.ask_within(keys, seconds)
        peer.explains.clear()


def measure(peers, keys, key_rows, rounds, per_round, seconds):
    """Interleaved rounds: each peer in turn gets the same fresh keys: none was asked before, so no
    peer answers from a cache of rows."""
    for at in range(0, rounds * per_round, per_round):
        batch = keys[at:at + per_round]
        for peer in peers:
            lookups = peer.ask_within(batch, seconds)
            for (_, _, rows), key in zip(lookups, batch):
                if rows != key_rows[key]:
                    raise RuntimeError(f"wrong number of rows: peer={peer.title} key={key}")
            peer.lookups.extend(lookups)
