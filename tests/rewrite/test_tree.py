"""grebe layout rewrite --by 'tree(LOG)': what is read afterwards, the tree that is kept, new rows
in its leaves, and what is refused."""

import json
import os
import random
import re
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from common import grebe_cli

ROWS = 20000


def make_rows(seed, rows=ROWS):
    rng = np.random.default_rng(seed)
    return pa.table({"a": rng.integers(0, 1_000_000, rows), "b": rng.normal(size=rows),
                     "row": np.arange(rows)})


def write(table, folder, files=4):
    folder.mkdir(parents=True)
    for i in range(files):
        begin, end = i * table.num_rows // files, (i + 1) * table.num_rows // files
        pq.write_table(table.slice(begin, end - begin), folder / f"f{i}.parquet")


@pytest.fixture
def place(tmp_path):
    """A table and a log of ranges, four of five on a."""
    rows = make_rows(1)
    write(rows, tmp_path / "table")
    draw = random.Random(2)
    lines = []
    for i in range(200):
        low, middle = draw.randrange(990_000), draw.gauss(0, 1)
        lines.append(f"b >= {middle:.3f} AND b < {middle + 0.01:.3f}" if i % 5 == 4
                     else f"a BETWEEN {low} AND {low + 5000}")
    (tmp_path / "log").write_text("\n".join(lines) + "\n")
    return tmp_path


def rewrite(place, by, to="out", *more, table="table"):
    return json.loads(grebe_cli.run(["layout", "rewrite", place / table, "--by", by, "--to",
                                     place / to, *more, "--json-errors"]))


def explain(folder, where):
    return json.loads(grebe_cli.run(["scan", folder, "--where", where, "--explain", "--format",
                                     "json"]))


def leaf_of(path):
    return int(path.name.split("-")[1])


def test_a_scan_reads_few_of_the_leaves(place):
    rows = make_rows(1)
    rewrite(place, f"tree({place}/log)", "out", "--target-file-rows", 500)
    rewrite(place, "zorder(a,b)", "curve", "--target-file-rows", 500)
    draw = random.Random(3)
    read = {"out": 0, "curve": 0}
    for _ in range(20):
        low = draw.randrange(990_000)
        where = f"a >= {low} AND a < {low + 3000}"
        for folder in read:
            facts = explain(place / folder, where)
            a = rows["a"].to_numpy()
            assert facts["rows"] == int(((a >= low) & (a < low + 3000)).sum())
            read[folder] += facts["rows_filtered"]
    # Four of five logged queries filter a: it gets more cuts than a curve gives it.
    assert read["out"] < 0.85 * read["curve"], read


def test_a_query_that_is_logged_is_cut_out_exactly(place):
    (place / "log").write_text("1000 a >= 300000 AND a < 400000\n")
    rewrite(place, f"tree({place}/log)", "out", "--target-file-rows", 500)
    facts = explain(place / "out", "a >= 300000 AND a < 400000")
    a = make_rows(1)["a"].to_numpy()
    wanted = int(((a >= 300000) & (a < 400000)).sum())
    files = [pq.read_metadata(p).num_rows for p in (place / "out").glob("*.parquet")
             if explain(p.parent, "a >= 0")]
    assert facts["rows"] == wanted and sum(files) == ROWS
    inside = 0
    for path in (place / "out").glob("*.parquet"):
        values = pq.read_table(path, columns=["a"])["a"].to_numpy()
        hit = (values >= 300000) & (values < 400000)
        assert hit.all() or not hit.any(), f"{path.name} holds wanted rows and others"
        inside += hit.any()
    assert facts["files_read"] == inside


def test_readers_do_not_take_the_tree_for_data(place):
    rewrite(place, f"tree({place}/log)", "out", "--target-file-rows", 2000)
    assert (place / "out" / "_grebe_layout.json").exists()
    assert ds.dataset(place / "out", format="parquet").count_rows() == ROWS
    assert explain(place / "out", "a >= 0")["rows"] == ROWS
    # A table of which a tree is a part can be laid out again, and indexed.
    again = rewrite(place, "sort(a)", "again", table="out")
    assert again["rows_out"] == ROWS and again["files_in"] == len(
        list((place / "out").glob("*.parquet")))
    grebe_cli.run(["index", "create", place / "out", "--key", "row"])
    assert json.loads(grebe_cli.run(["count", place / "out", "row=77"]))["count"] == 1


def test_new_rows_go_into_the_leaves_of_the_kept_tree(place):
    rewrite(place, f"tree({place}/log)", "out", "--target-file-rows", 1000)
    old = {}
    for path in (place / "out").glob("*.parquet"):
        a = pq.read_table(path, columns=["a", "b"])
        old.setdefault(leaf_of(path), []).append(a)
    tree = json.loads((place / "out" / "_grebe_layout.json").read_text())

    def find(a, b):
        node = tree["nodes"][0]
        while "leaf" not in node:
            value = a if node["column"] == "a" else b
            below = value is None or value < float(node["value"])
            node = tree["nodes"][node["below" if below else "above"]]
        return node["leaf"]

    for leaf, tables in old.items():
        table = pa.concat_tables(tables)
        for a, b in zip(table["a"].to_pylist()[:50], table["b"].to_pylist()[:50]):
            assert find(a, b) == leaf
    # The new rows' a is a double with nulls, and most of them lie beyond what the sample had.
    rng = np.random.default_rng(9)
    a = rng.normal(0, 2_000_000, 5000)
    new = pa.table({"a": pa.array(a, mask=rng.random(5000) < 0.1), "b": rng.normal(size=5000),
                    "row": np.arange(5000)})
    write(new, place / "new")
    rewrite(place, f"tree({place}/out/_grebe_layout.json)", "more", "--target-file-rows", 1000,
            table="new")
    assert json.loads((place / "more" / "_grebe_layout.json").read_text()) == tree
    count = 0
    for path in (place / "more").glob("*.parquet"):
        table = pq.read_table(path)
        for a, b in zip(table["a"].to_pylist(), table["b"].to_pylist()):
            assert find(a, b) == leaf_of(path)
            count += 1
    assert count == 5000


@pytest.mark.parametrize("partitions", ["keep", "none"])
def test_partitions_share_one_tree(place, partitions):
    rows = make_rows(4)
    for day, begin in (("2026-01-01", 0), ("2026-01-02", 8000), ("2026-02-01", 16000)):
        write(rows.slice(begin, 8000 if begin < 16000 else 4000), place / "days" / f"day={day}", 2)
    with open(place / "log", "a") as log:
        log.write("day = '2026-01-02'\na < 1000 AND day > '2026-01-01'\n" * 50)
    rewrite(place, f"tree({place}/log)", "out", "--target-file-rows", 800, "--partitions",
            partitions, table="days")
    files = list((place / "out").rglob("*.parquet"))
    tree = json.loads((place / "out" / "_grebe_layout.json").read_text())
    leaves = sum("leaf" in node for node in tree["nodes"])
    sizes = [pq.read_metadata(p).num_rows for p in files]
    assert sum(sizes) == ROWS
    if partitions == "keep":
        assert tree["columns"] == ["a", "b"]
        # Sized for the group that an average row is in, of 7,200 rows: 800 rows a leaf there.
        assert 9 <= leaves <= 14, leaves
        assert all(p.parent.name.startswith("day=") for p in files)
    else:
        assert "day" in tree["columns"]
        assert 25 <= leaves <= 37, leaves


def fails(place, by, *more):
    with pytest.raises(grebe_cli.GrebeError) as caught:
        rewrite(place, by, "out", *more)
    assert caught.value.typed, str(caught.value)
    assert not (place / "out").exists() or not list((place / "out").rglob("*")), "files are left"
    return caught.value


def test_bad_logs_are_refused(place):
    log = place / "log"
    assert fails(place, f"tree({place}/missing)").error["error"] == "NotFound"
    for text, what in [("", "no predicate"), ("# nothing\n\n", "no predicate"),
                       ("a = 1\n\nb <\n", "line=3"), ("a = 1\nb = 'x\n", "line=2"),
                       ("zzz = 1\n", "zzz"), ("a != 7\n", "no query"), ("a = 'x'\n", "a = 'x'"),
                       ("12 < a\n13 a ! 5\n", "line=2")]:
        log.write_text(text)
        error = fails(place, f"tree({log})")
        assert error.error["error"] == "InvalidArgument" and what in str(error), (text, str(error))
    log.write_text("a = 1\n")
    for more, what in [(["--cogroup", "a"], "cogroup"), (["--pages", "per-key"], "page a key"),
                       (["--then", "bucket(2,a)"], "second time")]:
        assert what in str(fails(place, f"tree({log})", *more))
    assert "path of a query log" in str(fails(place, "tree()"))


def test_a_log_of_kept_partitions_only_is_refused(place):
    write(make_rows(1), place / "days" / "day=2026-01-01")
    (place / "log").write_text("day = '2026-01-01'\n")
    with pytest.raises(grebe_cli.GrebeError, match="nothing but partition columns"):
        rewrite(place, f"tree({place}/log)", table="days")


def test_a_damaged_tree_is_an_error_or_another_tree(place):
    rewrite(place, f"tree({place}/log)", "tree", "--target-file-rows", 4000)
    good = (place / "tree" / "_grebe_layout.json").read_bytes()
    draw = random.Random(8)
    damaged = place / "damaged.json"
    for text in [b"{", b"{}", b'{"by":"tree"}', good[:-3], good.replace(b'"leaf": 1', b'"leaf": 7'),
                 good.replace(b'"format": 1', b'"format": 2'),
                 good.replace(b'"below": 1', b'"below": 0'),
                 good.replace(b'"above"', b'"abuve"', 1),
                 good.replace(b'"a"', b'"nowhere"'), re.sub(b'"value": "[^"]*"', b'"value": "x"',
                                                            good)]:
        damaged.write_bytes(text)
        assert fails(place, f"tree({damaged})").error["error"] in ("Corrupt", "InvalidArgument")
    refused = 0
    for _ in range(120):
        text = bytearray(good)
        for _ in range(draw.choice([1, 1, 3])):
            text[draw.randrange(len(text))] ^= 1 << draw.randrange(8)
        damaged.write_bytes(text)
        try:
            rewrite(place, f"tree({damaged})", "out", "--dry-run")
        except grebe_cli.GrebeError as error:
            assert error.typed and error.error["error"] in ("Corrupt", "InvalidArgument"), error
            refused += 1
    assert refused > 40


def test_a_file_that_cannot_be_read_is_left_out_of_the_tree_too(place):
    path = place / "table" / "f2.parquet"
    data = bytearray(path.read_bytes())
    chunk = pq.read_metadata(path).row_group(0).column(0)
    for i in range(200):
        data[chunk.data_page_offset + 500 + i] ^= 0x5A
    path.write_bytes(data)
    assert fails(place, f"tree({place}/log)").error["error"] == "Corrupt"
    done = rewrite(place, f"tree({place}/log)", "out", "--skip-bad-files", "--target-file-rows",
                   1000)
    assert done["rows_out"] == ROWS - ROWS // 4
    assert [skipped["path"] for skipped in done["skipped"]] == ["f2.parquet"]
    assert (place / "out" / "_grebe_layout.json").exists()


def test_a_log_that_changed_is_not_gone_on_with(place):
    args = ["--target-file-rows", 1000]
    failed = subprocess.run(
        list(map(str, [grebe_cli.GREBE, "layout", "rewrite", place / "table", "--by",
                       f"tree({place}/log)", "--to", place / "out", *args])),
        env=dict(os.environ, GREBE_FAILPOINTS="rewrite.mid_name=error@2"), capture_output=True)
    assert failed.returncode != 0
    log = (place / "log").read_text()
    (place / "log").write_text("b < 0\n" * 20)
    with pytest.raises(grebe_cli.GrebeError, match="unfinished rewrite of something else"):
        rewrite(place, f"tree({place}/log)", "out", *args)
    (place / "log").write_text(log)
    done = rewrite(place, f"tree({place}/log)", "out", *args)
    assert done["files_resumed"] == done["files_out"] > 0 and done["rows_out"] == ROWS
    assert (place / "out" / "_grebe_layout.json").exists()
