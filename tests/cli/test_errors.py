"""What the command line cannot read or write is an error of the kind to act on; a reader that goes
away is none."""

import json
import os
import resource
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from common import grebe_cli

ROWS = 1_000_000
LIMIT = ("LimitExceeded", 5)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Six files whose rows do not fit in 128 MB together, and do not compress."""
    folder = tmp_path_factory.mktemp("cli") / "t"
    folder.mkdir()
    rng = np.random.default_rng(5)
    for i in range(6):
        words = [rng.integers(0, 1 << 62, ROWS // 6) for _ in range(6)]
        pq.write_table(pa.table({name: column for name, column in zip("kabcde", words)}),
                       folder / f"{i}.parquet", compression="none")
    return folder


def fails(args, **options):
    """(kind, exit code, message) of a command that must fail, with nothing on stdout."""
    done = subprocess.run([grebe_cli.GREBE, *map(str, args), "--json-errors"],
                          stderr=subprocess.PIPE, text=True, timeout=120,
                          **{"stdout": subprocess.PIPE, **options})
    assert done.returncode != 0, args
    error = json.loads(done.stderr.strip().splitlines()[-1])
    assert error["exit_code"] == done.returncode
    return error["error"], done.returncode, error["message"]


def test_outputs_that_cannot_be_made(table, tmp_path):
    some = ["scan", table, "--limit", "3"]
    missing = tmp_path / "nope" / "x.csv"
    kind, code, message = fails([*some, "-o", missing])
    assert (kind, code) == ("NotFound", 2)
    assert f"path={missing} " in message          # the file's own name, not the temporary one's
    report = ["layout", "report", table, "--no-pages"]
    assert fails([*report, "--html", missing])[:2] == ("NotFound", 2)
    assert fails([*some, "-o", tmp_path])[:2] == ("InvalidArgument", 2)
    (tmp_path / "file").write_text("")
    assert fails([*some, "-o", tmp_path / "file" / "x"])[:2] == ("InvalidArgument", 2)


def test_an_output_without_permission():
    # Root may write everywhere: another user is asked for then.
    other = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
    simulate = ["layout", "simulate", "--appends", "3", "-o", "/etc/grebe-test"]
    try:
        assert fails(simulate, **other)[:2] == ("Permission", 5)
    except PermissionError:
        pytest.skip("another user may not run the command here")


def test_a_full_disk(table):
    assert fails(["scan", table, "--limit", "3", "-o", "/dev/full"])[:2] == LIMIT
    with open("/dev/full", "wb") as full:
        for columns in ("k", "k,a,b"):
            assert fails(["scan", table, "--columns", columns],
                         stdout=full)[:2] == LIMIT


def test_spill_folders(table, tmp_path):
    (tmp_path / "file").write_text("")
    for folder, kind in ((tmp_path / "nope", "NotFound"), (tmp_path / "file", "InvalidArgument")):
        got, code, message = fails(
            ["layout", "rewrite", table, "--by", "sort(k)", "--partitions", "none", "--to",
             tmp_path / "out", "--memory", "128MB", "--spill-folder", folder])
        assert (got, code) == (kind, 2)
        assert f"path={folder} " in message
        got, code, message = fails(["index", "create", table, "--key", "k", "--index-root",
                                    tmp_path / "index", "--memory", 1 << 20, "--spill-folder",
                                    folder])
        assert (got, code) == (kind, 2)
        assert f"path={folder} " in message


@pytest.mark.parametrize("command", [
    ["layout", "report", "TABLE", "--queries"],
    ["layout", "advise", "TABLE", "--queries"],
    ["layout", "rewrite", "TABLE", "--by", "sort(k)", "--to", "OUT", "--files"],
    ["get", "TABLE", "--keys-from"],
    ["bench", "lookup", "TABLE", "--keys-from"],
])
def test_inputs_that_cannot_be_read(table, tmp_path, command):
    if command[0] == "bench":
        grebe_cli.run(["index", "create", table, "--key", "k"])
    names = {"TABLE": table, "OUT": tmp_path / "out"}
    args = [names.get(arg, arg) for arg in command]
    assert fails([*args, tmp_path / "nope"])[:2] == ("NotFound", 2)
    assert fails([*args, tmp_path])[:2] == ("InvalidArgument", 2)   # a folder


@pytest.mark.parametrize("form", ["jsonl", "csv", "arrow", "parquet", "table"])
def test_a_reader_that_went_away_is_no_error(table, form):
    scan = subprocess.Popen([grebe_cli.GREBE, "scan", table, "--format", form],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert scan.stdout.read(4)
    scan.stdout.close()
    assert scan.stderr.read() == b""
    assert scan.wait(60) == 141


def test_a_size_limit_of_files_is_an_error_and_no_death(table, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    for spilling in (["--memory", "128MB"], []):
        assert fails(["layout", "rewrite", table, "--by", "sort(k)", "--partitions", "none", "--to",
                      tmp_path / "out", *spilling], preexec_fn=limit)[:2] == LIMIT
    scan = ["scan", table, "-o", tmp_path / "x"]
    assert fails(scan, preexec_fn=limit)[:2] == LIMIT
    assert not (tmp_path / "x").exists()


def test_a_spill_folder_at_fault_is_not_taken_for_bad_files(table, tmp_path):
    for folder, kind in ((tmp_path / "nope", "NotFound"), ("/proc/self", None)):
        skip = ["--skip-bad-files", "--spill-folder", folder]
        got = fails(["layout", "rewrite", table, "--by", "sort(k)", "--partitions", "none", "--to",
                     tmp_path / "out", "--memory", "128MB", *skip])
        assert kind is None or got[0] == kind
        assert not list((tmp_path / "out").glob("*.parquet"))
        got = fails(["index", "create", table, "--key", "k", "--index-root", tmp_path / "index",
                     "--memory", 1 << 20, *skip])
        assert kind is None or got[0] == kind


def test_a_full_disk_is_not_taken_for_bad_files(table, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    for command in (["index", "create", table, "--key", "k", "--index-root", tmp_path / "index",
                     "--memory", "1MB"],
                    ["layout", "rewrite", table, "--by", "sort(k)", "--partitions", "none", "--to",
                     tmp_path / "out", "--memory", "128MB"]):
        kind, code, message = fails([*command, "--skip-bad-files"], preexec_fn=limit)
        assert (kind, code) == LIMIT
        assert "spill file" in message   # and not what is written of the files that are left
    assert not list((tmp_path / "out").glob("*.parquet"))
