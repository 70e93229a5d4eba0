"""-o FILE: a file appears whole, a link stays a link, and what is no regular file is written to."""

import os
import stat
import subprocess
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from common import grebe_cli


@pytest.fixture
def table(tmp_path):
    folder = tmp_path / "t"
    folder.mkdir()
    pq.write_table(pa.table({"k": [1, 2, 2], "n": [10, 20, 21]}), folder / "a.parquet")
    grebe_cli.run(["index", "create", str(folder), "--key", "k"])
    return folder


def get(table, output):
    grebe_cli.run(["get", str(table), "k=2", "--columns", "n", "--format", "csv", "-o",
                   str(output)])


def test_a_file_appears_and_is_replaced(table, tmp_path):
    output = tmp_path / "out.csv"
    output.write_text("old")
    get(table, output)
    assert output.read_text() == "n\n20\n21\n"
    assert [p.name for p in tmp_path.iterdir() if "tmp" in p.name] == []


def test_a_link_stays_a_link(table, tmp_path):
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_text("old")
    link.symlink_to(target)
    get(table, link)
    assert link.is_symlink()
    assert target.read_text() == "n\n20\n21\n"


def test_a_pipe_is_written_to_and_not_replaced(table, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    get(table, pipe)
    reader.join(10)
    assert read == ["n\n20\n21\n"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_full_device_is_a_typed_error(table):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    done = subprocess.run([grebe_cli.GREBE, "get", str(table), "k=2", "-o", "/dev/full"],
                          capture_output=True)
    assert done.returncode == 5, done.stderr
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)
