"""Calls the command line `grebe` (GREBE_BIN, or build/release/grebe) and reads what it prints."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import pyarrow as pa

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GREBE = os.environ.get("GREBE_BIN", str(ROOT / "build" / "release" / "grebe"))

# Exit codes that come with a typed error (docs/reference/errors.md).
TYPED_ERRORS = (1, 2, 3, 4, 5)


class GrebeError(Exception):
    """The command ended with a code other than 0; `error` is its JSON error, when it gave one."""

    def __init__(self, args, code, stderr):
        self.code = code
        self.stderr = stderr
        self.error = None
        for line in reversed(stderr.strip().splitlines()):
            try:
                self.error = json.loads(line)
                break
            except ValueError:
                continue
        text = self.error.get("message", stderr) if isinstance(self.error, dict) else stderr
        super().__init__(f"exit {code}: {text.strip()[:600]} (grebe {' '.join(map(str, args))})")

    @property
    def typed(self):
        return self.code in TYPED_ERRORS


# The largest resident set of any command so far, in bytes.
peak_bytes_max = 0

_launchers = {}   # by process id: a forked process starts one of its own


def _launcher():
    if os.getpid() not in _launchers:
        _launchers[os.getpid()] = subprocess.Popen(
            [sys.executable, "-S", "-E", str(pathlib.Path(__file__).parent / "launcher.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return _launchers[os.getpid()]


def run(args, timeout=60):
    """Runs one command and returns what it wrote to stdout. Raises GrebeError."""
    global peak_bytes_max
    with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
        launcher = _launcher()
        job = {"args": [GREBE, *map(str, args)], "out": out.name, "err": err.name,
               "timeout": timeout}
        launcher.stdin.write(json.dumps(job) + "\n")
        launcher.stdin.flush()
        done = json.loads(launcher.stdout.readline())
        peak_bytes_max = max(peak_bytes_max, done["peak_bytes"])
        if done["code"] is None:
            raise GrebeError(args, "timeout", f"still running after {timeout} s")
        if done["code"] != 0:
            raise GrebeError(args, done["code"], err.read().decode("utf-8", "replace"))
        return out.read()


def create(table, key, root, name="i", extra=(), **limits):
    """Builds an index in a folder of its own; returns the summary."""
    out = run(["index", "create", table, "--key", quoted(key), "--name", name, "--index-root",
               root, "--json-errors", *extra], **limits)
    return json.loads(out)


def quoted(columns):
    """Column names as --key and --columns take them: those with commas in double quotes."""
    names = [columns] if isinstance(columns, str) else columns
    return ",".join(f'"{name}"' if "," in name else name for name in names)


def read_stream(out):
    return pa.ipc.open_stream(pa.BufferReader(out)).read_all()


def get(table, conditions, root, name="i", columns=None, limit=None, offset=None, nulls=(),
        keys_text=None, extra=(), **limits):
    """The rows of one key ([(column, text)], and null columns), or of many (keys_text)."""
    args = ["get", table, "--name", name, "--index-root", root, "--format", "arrow",
            "--json-errors"]
    if columns is not None:
        args += ["--columns", quoted(columns)]
    if limit is not None:
        args += ["--limit", limit]
    if offset is not None:
        args += ["--offset", offset]
    return _ask(args + list(extra), conditions, nulls, keys_text, limits)


def _ask(args, conditions, nulls, keys_text, limits):
    for null in nulls:
        args += ["--null", null]
    if keys_text is None:
        return read_stream(run(args + [f"{c}={v}" for c, v in conditions], **limits))
    with tempfile.NamedTemporaryFile("wb", suffix=".keys") as keys:
        keys.write(keys_text.encode("utf-8"))
        keys.flush()
        return read_stream(run(args + ["--keys-from", keys.name], **limits))


def count(table, conditions, root, name="i", nulls=(), keys_text=None, **limits):
    """The row counts: one number for one key, a list for many."""
    args = ["count", table, "--name", name, "--index-root", root, "--format", "arrow",
            "--json-errors"]
    counts = _ask(args, conditions, nulls, keys_text, limits)["count"].to_pylist()
    return counts[0] if keys_text is None else counts


def scan(table, where=None, columns=None, limit=None, offset=None, extra=(), **limits):
    """The rows a predicate wants."""
    args = ["scan", table, "--format", "arrow", "--json-errors", *extra]
    if where is not None:
        args += ["--where", where]
    if columns is not None:
        args += ["--columns", quoted(columns)]
    if limit is not None:
        args += ["--limit", limit]
    if offset is not None:
        args += ["--offset", offset]
    return read_stream(run(args, **limits))


def explain_scan(table, where=None, columns=None, extra=(), **limits):
    """What a scan read."""
    args = ["scan", table, "--explain", "--format", "json", "--json-errors", *extra]
    if where is not None:
        args += ["--where", where]
    if columns is not None:
        args += ["--columns", quoted(columns)]
    return json.loads(run(args, **limits))
