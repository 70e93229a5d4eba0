"""Statistics that an index keeps: a scan of known files asks nothing of those it leaves out, and
reads no footer of the others; the answers never change."""

import json
import os
import time

import pyarrow as pa
import pytest

from common import grebe_cli


@pytest.fixture
def table(lake):
    for i in range(8):
        lake.write(pa.table({"k": pa.array([i * 100 + r for r in range(100)], pa.int64()),
                             "t": [f"t{r % 7}" for r in range(100)]}), f"{i}.parquet",
                   row_group_size=25)
    return lake


def index(table, *args):
    return json.loads(grebe_cli.run(["index", *args[:1], table.data, *args[1:]]))


def stats_objects(table):
    folder = table.data / "_index" / "t" / "fragment"
    return sorted(folder.glob("*.gst")) if folder.exists() else []


def check(table, footers):
    for where, files in (("k = 350", 1), ("k >= 150 AND k < 450 AND t = 't1'", 4), ("k < 0", 0),
                         ("k >= 0", 8), ("t = 'none'", 0)):
        expected = [k for k in range(800) if table.filters[where](k)]
        rows = len(expected)
        explain = table.explain(where, columns=["k"])
        assert (explain["rows"], explain["files_read"]) == (rows, files), where
        assert explain["footers_read"] == footers, where
        if rows == 0 and footers == 0:
            assert (explain["waves"], explain["requests"], explain["bytes_read"]) == (0, 0, 0)
        assert table.values(where, "k") == expected


@pytest.fixture
def filters(table):
    table.filters = {
        "k = 350": lambda k: k == 350,
        "k >= 150 AND k < 450 AND t = 't1'": lambda k: 150 <= k < 450 and k % 100 % 7 == 1,
        "k < 0": lambda k: False, "k >= 0": lambda k: True, "t = 'none'": lambda k: False}
    return table


def test_known_files_cost_no_footer(filters):
    check(filters, 8)
    index(filters, "create", "--key", "t")
    assert len(stats_objects(filters)) == 1
    check(filters, 0)
    # An index of another key says the same of the files, from anywhere.
    explain = filters.explain("k = 350")
    assert explain["waves"] <= 2 and explain["pages_read"] == 2


def test_new_and_replaced_files_are_read_anew(filters):
    index(filters, "create", "--key", "t")
    path = filters.data / "3.parquet"
    before = path.stat().st_mtime_ns
    filters.write(pa.table({"k": pa.array([350, 9000], pa.int64()), "t": ["t0", "t1"]}),
                  "3.parquet")
    os.utime(path, ns=(before + 10**9, before + 10**9))
    explain = filters.explain("k = 9000")
    assert (explain["rows"], explain["footers_read"]) == (1, 1)
    index(filters, "refresh")
    explain = filters.explain("k = 9000")
    assert (explain["rows"], explain["footers_read"]) == (1, 0)
    assert len(stats_objects(filters)) == 2


def test_compacting_and_dropping_take_them_along(filters):
    index(filters, "create", "--key", "t")
    for i in range(8, 12):
        filters.write(pa.table({"k": pa.array([10_000 + i], pa.int64()), "t": ["z"]}),
                      f"{i:02d}.parquet")
        index(filters, "refresh")
    assert len(stats_objects(filters)) == 5
    index(filters, "compact", "--all")
    explain = filters.explain("k = 10009")
    assert (explain["rows"], explain["footers_read"], explain["files_read"]) == (1, 0, 1)
    report = index(filters, "verify")
    assert report["corrupt"] == [] and report["orphans"] == []   # young ones are kept
    time.sleep(1.1)
    fragments = filters.data / "_index" / "t" / "fragment"
    grebe_cli.run(["index", "verify", filters.data, "--clean", "--orphan-age", "0"])
    assert {p.stem for p in stats_objects(filters)} == {p.stem for p in fragments.glob("*.gfx")}
    grebe_cli.run(["index", "drop", filters.data])
    assert stats_objects(filters) == []
    assert filters.explain("k = 10009")["footers_read"] == 12


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "gone"])
def test_damage_costs_footers_and_nothing_else(filters, damage):
    index(filters, "create", "--key", "t")
    path = stats_objects(filters)[0]
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[len(data) // 2] ^= 0x10
    elif damage == "cut":
        data = data[:-5]
    elif damage == "empty":
        data = b""
    path.write_bytes(data)
    if damage == "gone":
        path.unlink()
    check(filters, 8)
    if damage != "gone":
        with_report = grebe_cli.run(["index", "list", filters.data])
        assert with_report
        try:
            report = index(filters, "verify")
        except grebe_cli.GrebeError as error:
            assert error.code == 3
        else:
            assert any(".gst" in text for text in report["corrupt"])


def rewrite(table, to, *args):
    grebe_cli.run(["layout", "rewrite", table.data, "--by", "sort(k)", "--to", to,
                   "--index", "t", "--key", "t", *args])
    out = type(table)(to)
    out.filters = table.filters
    return out


def test_a_rewrite_with_an_index_writes_them_too(filters, tmp_path):
    out = rewrite(filters, tmp_path / "out", "--target-file-rows", 100)
    assert len(stats_objects(out)) == 1 and len(list(out.data.glob("*.parquet"))) > 4
    for where, matches in filters.filters.items():
        expected = [k for k in range(800) if matches(k)]
        explain = out.explain(where, columns=["k"])
        assert (explain["rows"], explain["footers_read"]) == (len(expected), 0), where
        if not expected:
            assert (explain["waves"], explain["requests"], explain["bytes_read"]) == (0, 0, 0)
        assert sorted(out.values(where, "k")) == expected
    assert out.explain("k = 350", columns=["k"])["files_read"] == 1
    report = index(out, "verify")
    assert report["corrupt"] == [] and report["orphans"] == []


def test_those_of_a_rewrite_are_those_of_a_build(filters, tmp_path):
    out = rewrite(filters, tmp_path / "out")
    written = stats_objects(out)[0].read_bytes()
    grebe_cli.run(["index", "drop", out.data])
    index(out, "create", "--key", "t")
    assert stats_objects(out)[0].read_bytes() == written
