"""Numbers, sizes, lists of columns and names of commands, as the command line takes them."""

import json
import os
import pathlib
import subprocess
import tempfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from common import grebe_cli

NAMES = ['q"t', 'a,b', 'c"', '"d"', "plain", 'x:y', '"']


def grebe(*args):
    return subprocess.run([grebe_cli.GREBE, *map(str, args)], capture_output=True, text=True,
                          timeout=60)


@pytest.fixture
def table(tmp_path):
    folder = tmp_path / "t"
    folder.mkdir()
    pq.write_table(pa.table({name: [10 * i, 10 * i + 1] for i, name in enumerate(NAMES)}),
                   folder / "a.parquet")
    return folder


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def test_every_list_of_columns_takes_quoted_names(table, tmp_path):
    for i, name in enumerate(NAMES):
        both = f"plain,{quoted(name)}" if name != "plain" else "plain"
        rows = grebe_cli.run(["scan", table, "--columns", both, "--format", "jsonl"])
        assert json.loads(rows.splitlines()[1])[name] == 10 * i + 1
        root = tmp_path / f"index{i}"
        grebe_cli.run(["index", "create", table, "--key", quoted(name), "--covering", both,
                       "--index-root", root])
        keys = tmp_path / "keys.jsonl"
        keys.write_text(json.dumps({name: 10 * i + 1}))
        rows = grebe_cli.run(["get", table, "--keys-from", keys, "--columns", both, "--index-root",
                              root, "--format", "jsonl"])
        assert json.loads(rows)[name] == 10 * i + 1
        report = json.loads(grebe_cli.run(["layout", "report", table, "--columns", quoted(name),
                                           "--format", "json"]))
        assert name in json.dumps(report, ensure_ascii=False).replace('\\"', '"')
        grebe_cli.run(["layout", "plan", table, "--by", quoted(name), "--format", "json"])
        out = tmp_path / f"out{i}"
        grebe_cli.run(["layout", "rewrite", table, "--by", f"sort({quoted(name)})", "--bloom", both,
                       "--index", "i", "--key", quoted(name), "--to", out])
        file = pq.ParquetFile(next(out.glob("*.parquet"))).metadata
        assert file.row_group(0).column(i).path_in_schema == name


def test_an_unclosed_quote_is_refused(table):
    for args in (["scan", table, "--columns"], ["index", "create", table, "--key"],
                 ["layout", "plan", table, "--by"]):
        done = grebe(*args, 'plain,"q')
        assert done.returncode == 2 and "unclosed quote" in done.stderr, done.stderr


def test_buckets_of_a_quoted_name_are_pruned(tmp_path):
    folder, out = tmp_path / "t", tmp_path / "out"
    folder.mkdir()
    pq.write_table(pa.table({'q"t': list(range(4000)), "v": list(range(4000))}),
                   folder / "a.parquet")
    grebe_cli.run(["layout", "rewrite", folder, "--by", 'bucket(8,"q""t")', "--to", out])
    assert len(list(out.glob("*.parquet"))) == 8
    done = grebe("scan", out, "--where", '"q""t" = 77', "--format", "jsonl")
    assert json.loads(done.stdout) == {'q"t': 77, "v": 77}
    explain = json.loads(grebe_cli.run(["scan", out, "--where", '"q""t" = 77', "--explain",
                                        "--format", "json"]))
    assert explain["files_read"] == 1, explain


SIZES = [
    ["index", "create", "T", "--key", "plain", "--index-root", "OUT", "--memory", "128MB"],
    ["layout", "rewrite", "T", "--by", "sort(plain)", "--to", "OUT", "--memory", "256mb"],
    ["layout", "rewrite", "T", "--by", "sort(plain)", "--to", "OUT", "--target-file-size", "1GB"],
    ["layout", "rewrite", "T", "--by", "sort(plain)", "--to", "OUT", "--page-size", "64 KiB"],
    ["layout", "plan", "T", "--by", "plain", "--budget", "1TB"],
    ["layout", "advise", "T", "--queries", "LOG", "--target-file-size", "1m"],
    ["bench", "lookup", "T", "--keys-from", "KEYS", "--block-cache", "16MB", "--dictionary-cache",
     "1MB", "--page-cache", "-1"],
]


@pytest.mark.parametrize("command", SIZES, ids=lambda command: " ".join(command[-2:]))
def test_sizes_take_units(table, tmp_path, command):
    (tmp_path / "log").write_text("plain = 40\n")
    (tmp_path / "keys").write_text('{"plain": 40}\n')
    if command[0] == "bench":
        grebe_cli.run(["index", "create", table, "--key", "plain"])
    names = {"T": table, "OUT": tmp_path / "out", "LOG": tmp_path / "log",
             "KEYS": tmp_path / "keys"}
    grebe_cli.run([names.get(word, word) for word in command])
    bad = [names.get(word, word) for word in command]
    for value in ("12parsecs", "-5", "MBB", "99999999999999999999", "9000000000GB"):
        bad[-1] = value
        done = grebe(*bad)
        assert done.returncode == 2, (value, done.stderr)
        assert done.stderr.startswith(f"grebe: {command[-2]}: "), (value, done.stderr)
        assert len(done.stderr) < 700, (value, done.stderr)


@pytest.mark.parametrize("words, message", [
    (["layout", "plan", "T", "--by", "plain", "--weight", "0"], "--weight: 0 is too small: it must "
                                                                "be more than 0"),
    (["scan", "T", "--offset", "-1"], "--offset: -1 is too small: it must be at least 0"),
    (["scan", "T", "--limit", "x"], "--limit: 'x' is not a number"),
    (["layout", "simulate", "--appends", "0"], "--appends: 0 is too small: it must be at least 1"),
    (["index", "create", "T", "--key", "plain", "--memory", "1KB"],
     "--memory: 1KB is too small: it must be at least 1048576"),
    (["index", "create", "T", "--key", "plain", "--memory", "2TB"],
     "--memory: 2TB is too large: it must be at most 1099511627776"),
    (["scna", "T"], "there is no command 'scna'"),
    (["index", "creat", "T", "--key", "plain"], "there is no command 'index creat'"),
    (["index"], "A subcommand is required"),
    ([], "A subcommand is required"),
    (["scan"], "TABLE is required"),
])
def test_what_is_wrong_is_said(table, words, message):
    done = grebe(*[table if word == "T" else word for word in words])
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == f"grebe: {message}"
    done = grebe(*[table if word == "T" else word for word in words], "--json-errors")
    assert json.loads(done.stderr) == {"error": "InvalidArgument", "message": message,
                                       "exit_code": 2}


@pytest.fixture
def open_folder():
    """A folder that other users get at: pytest's own are closed to them."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield pathlib.Path(folder)


@pytest.mark.parametrize("command", [
    ["scan", "T", "--columns", "k"], ["layout", "report", "T"],
    ["layout", "plan", "T", "--by", "k"],
    ["layout", "rewrite", "T", "--by", "sort(k)", "--to", "OUT"],
    ["index", "create", "T", "--key", "k", "--index-root", "OUT"],
], ids=lambda command: " ".join(command[:2]))
def test_damage_is_skipped_and_missing_permission_is_not(open_folder, command):
    table = open_folder / "t"
    table.mkdir()
    for name in ("a", "b", "c"):
        pq.write_table(pa.table({"k": [1, 2]}), table / f"{name}.parquet")
    (table / "c.parquet").write_bytes(b"PAR1 and no more")
    names = {"T": str(table), "OUT": str(open_folder / "out")}
    words = [grebe_cli.GREBE, *[names.get(word, word) for word in command], "--skip-bad-files"]
    # Root may read everything: another user is asked for then.
    other = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
    (table / "b.parquet").chmod(0)
    try:
        done = subprocess.run(words, capture_output=True, text=True, **other)
    except PermissionError:
        pytest.skip("another user may not run the command here")
    assert done.returncode == 5 and "grebe: Permission: " in done.stderr, done.stderr
    assert "b.parquet" in done.stderr.splitlines()[-1]
    (table / "b.parquet").chmod(0o644)
    done = subprocess.run(words, capture_output=True, text=True, **other)
    assert done.returncode == 0 and "c.parquet" in done.stdout + done.stderr, done.stderr
