"""What a scan answers and what it leaves out, case by case."""

import json
import math
import pathlib

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from common import grebe_cli

GOLDEN = json.loads((pathlib.Path(__file__).parent / "golden_zorder_16_rows.json").read_text())
ROWS = [tuple(row) for row in GOLDEN["arrival_order_rows"]]
ORDERS = {
    "arrival": ROWS,
    "sort(a,b)": sorted(ROWS),
    "zorder(a,b)": sorted(ROWS, key=lambda row: GOLDEN["z"][f"{row[0]},{row[1]}"]),
}


@pytest.mark.parametrize("order", ORDERS)
def test_sixteen_rows_in_four_files(lake, order):
    """The files and the files read of the worked example, through real files."""
    for i in range(4):
        part = ORDERS[order][4 * i:4 * i + 4]
        bounds = GOLDEN["files"][order][i]
        for at, column in enumerate("ab"):
            values = [row[at] for row in part]
            assert [min(values), max(values)] == bounds[column]
        lake.write(pa.table({"a": [row[0] for row in part], "b": [row[1] for row in part]}),
                   f"{i}.parquet")
    for where, files in GOLDEN["files_read"][order].items():
        explain = lake.explain(where)
        assert explain["files_read"] == files, (order, where)
        assert explain["files_total"] == 4
        assert explain["rows"] == 4
        column, value = where.split(" = ")
        rows = lake.scan(where)
        at = "ab".index(column)
        expected = [row for row in ORDERS[order] if row[at] == int(value)]
        assert list(zip(rows["a"].to_pylist(), rows["b"].to_pylist())) == expected


def test_nulls_are_unknown_as_in_sql(lake):
    lake.write(pa.table({"x": [1, None, 3], "n": [0, 1, 2]}))
    assert lake.values("x = 1", "n") == [0]
    assert lake.values("x != 1", "n") == [2]
    assert lake.values("NOT x = 1", "n") == [2]
    assert lake.values("x = 1 OR x != 1", "n") == [0, 2]
    assert lake.values("x IS NULL", "n") == [1]
    assert lake.values("NOT x IS NULL", "n") == [0, 2]
    assert lake.values("x = NULL", "n") == []
    assert lake.values("NOT x = NULL", "n") == []
    assert lake.values("x IN (1, NULL)", "n") == [0]
    assert lake.values("x NOT IN (1, NULL)", "n") == []
    assert lake.values("x NOT IN (1)", "n") == [2]
    assert lake.values("x < 2 OR x IS NULL", "n") == [0, 1]
    assert lake.values("NOT (x < 2 AND n >= 0)", "n") == [2]
    assert lake.values("x BETWEEN 2 AND 3 OR n = 1", "n") == [1, 2]


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
def test_nan_is_on_neither_side(lake, kind):
    """As IEEE 754 and pyarrow.compute have it; no pruning loses a NaN."""
    import numpy as np
    column = pa.array(np.array([1, math.nan, 3, -0.0], kind.to_pandas_dtype()), kind)
    lake.write(pa.table({"x": column, "n": range(4)}))
    wide = column.cast(pa.float64())
    for text, value in (("1", 1.0), ("3", 3.0), ("5", 5.0), ("0", 0.0), ("-0.0", -0.0)):
        for op, function in (("=", pc.equal), ("!=", pc.not_equal), ("<", pc.less),
                             ("<=", pc.less_equal), (">", pc.greater), (">=", pc.greater_equal)):
            mask = function(wide, pa.scalar(value))
            rows = [i for i, hit in enumerate(mask.to_pylist()) if hit]
            assert lake.values(f"x {op} {text}", "n") == rows, (op, text)
            others = [i for i in range(4) if i not in rows]
            assert lake.values(f"NOT x {op} {text}", "n") == others, (op, text)
    assert lake.values("x IS NAN", "n") == [1]
    assert lake.values("x IS NOT NAN", "n") == [0, 2, 3]
    assert lake.values("x = 'nan'", "n") == []
    assert lake.values("x != 'nan'", "n") == [0, 1, 2, 3]
    assert lake.values("x IN (0, 'nan')", "n") == [3]
    assert lake.values("x NOT IN (1, 3)", "n") == [1, 3]
    assert lake.values("x NOT BETWEEN 0 AND 2", "n") == [1, 2]


@pytest.mark.parametrize("where, rows", [
    ("i < 7.5", [0, 1]), ("i > 7.5", [2]), ("i = 7.5", []), ("i != 7.5", [0, 1, 2]),
    ("i <= 1e30", [0, 1, 2]), ("i > 1e30", []), ("i < -1e30", []),
    ("i >= -99999999999999999999", [0, 1, 2]),
    ("i IN (7, 7.5, 1e30)", [1]), ("i NOT IN (7.5)", [0, 1, 2]), ("7 = i", [1]), ("7 < i", [2]),
    ("i = '7'", [1]), ("d = 1.50", [0]), ("d < 1.505", [0]), ("d >= 1.505", [1, 2]),
    ("d = 2", [1]), ("t = 'b'", [1]), ("t LIKE 'a%'", [0]), ("t LIKE '%''s'", [2]),
    ("t LIKE '_'", [0, 1]), ("NOT t LIKE 'a%'", [1, 2]), ("t LIKE 'b'", [1]),
    ("t LIKE '%\\%'", []), ("day >= '2026-01-02'", [1, 2]), ("day = DATE '2026-01-03'", [2]),
    ("day BETWEEN '2026-01-01' AND '2026-01-02'", [0, 1]),
    ("at < '2026-01-01T00:00:01.0005'", [0, 1]), ("at = '2026-01-01 00:00:01Z'", [1]),
    ("f", [0]), ("NOT f", [1]), ("f IS NULL", [2]), ("f = true", [0]), ("f != TRUE", [1]),
    ("b = 0x00ff", [0]), ("b = X'00FF'", [0]), ("b > 'base64:AP8='", [1]),
    ("s.k = 5", [0]), ("s.k IS NULL", [1, 2]), ('"odd name" = 1', [0]), ('"q""x" = 2', [1]),
    ("u = 18446744073709551615", [1]), ("u > 9223372036854775807", [1]),
    ("not (i = 5 or i = 7)", [2]), ("i == 5 AND (t = 'a' OR t = 'zz')", [0]),
    ("i <> 5", [1, 2]),
])
def test_predicates(lake, where, rows):
    import datetime
    import decimal
    lake.write(pa.table({
        "n": [0, 1, 2],
        "i": pa.array([5, 7, 9], pa.int32()),
        "u": pa.array([1, 2**64 - 1, 3], pa.uint64()),
        "d": pa.array([decimal.Decimal("1.50"), decimal.Decimal("2.00"), decimal.Decimal("9.00")],
                      pa.decimal128(9, 2)),
        "t": ["a", "b", "c's"],
        "day": [datetime.date(2026, 1, d) for d in (1, 2, 3)],
        "at": pa.array([1767225600000, 1767225601000, 1767225602000],
                       pa.int64()).view(pa.timestamp("ms", "UTC")),
        "f": [True, False, None],
        "b": pa.array([b"\x00\xff", b"\xff", None]),
        "s": [{"k": 5}, {"k": None}, None],
        "odd name": [1, 2, 3],
        'q"x': [1, 2, 3],
    }))
    assert lake.values(where, "n") == rows


@pytest.mark.parametrize("where, message", [
    ("", None), ("i <", "position=3"), ("i = ", "expected a value"),
    ("i = 5 OR", "expected a column"),
    ("(i = 5", "expected )"), ("i = 5)", "expected AND"), ("nosuch = 5", "nosuch"),
    ("t = 5", "single quotes"), ("i = 'x'", "position=4"), ("i = true", "booleans"),
    ("i LIKE 'a%'", "LIKE is for text"), ("t LIKE 5", "pattern"), ("i IS NAN", "floats"),
    ("i", "boolean column"), ("i = t", "expected a value"), ("i IN ()", "expected a value"),
    ("i IN (1", "expected , or )"), ("i BETWEEN 1", "expected AND"), ("i ? 5", "no meaning"),
    ("t = 'a", "not closed"), ("l = 1", "plain values"), ("s = 1", "plain values"),
    ("i = 5abc", "not a number"), ("i IS 5", "expected NULL"), ("5 = 5", "expected a column"),
    ("(" * 300 + "i = 5" + ")" * 300, "nested too deeply"), ("NOT " * 300 + "i = 5", "deeply"),
])
def test_predicates_that_are_none(lake, where, message):
    lake.write(pa.table({"i": [5], "t": ["a"], "l": [[1]], "s": [{"k": 1}]}))
    if message is None:
        assert lake.scan(where).num_rows == 1
        return
    with pytest.raises(grebe_cli.GrebeError) as caught:
        lake.scan(where)
    assert caught.value.code == 2
    assert message in str(caught.value)


def test_partitions_prune_without_a_read(lake):
    for day in (1, 2, 3):
        lake.write(pa.table({"x": [day, day * 10]}), f"day=2026-01-0{day}/f.parquet")
    lake.write(pa.table({"x": [7]}), "day=__HIVE_DEFAULT_PARTITION__/f.parquet")
    explain = lake.explain("day = '2026-01-02'")
    assert (explain["files_read"], explain["files_total"]) == (1, 4)
    assert explain["footers_read"] == 1
    assert explain["rows"] == 2 and explain["rows_filtered"] == 0
    assert lake.values("day >= '2026-01-02' AND x < 10", "x") == [2, 3]
    assert lake.values("day IS NULL", "x") == [7]
    assert lake.values("NOT day = '2026-01-02'", "x") == [1, 10, 3, 30]
    assert lake.values("day = '2026-01-01' OR x = 7", "x") == [1, 10, 7]
    assert lake.explain("day = '2030-01-01'")["rows"] == 0
    # Only partition columns asked: no page is read.
    explain = lake.explain("day = '2026-01-01'", columns=["day"])
    assert (explain["pages_read"], explain["rows"]) == (0, 2)


def test_only_the_needed_pages_are_read(lake):
    """Pages of the filter column by its ColumnIndex, then those of the rest by row."""
    rows = 100_000
    table = pa.table({"x": pa.array(range(rows), pa.int64()),
                      "y": pa.array([i * 7 % 1000 for i in range(rows)], pa.int32()),
                      "text": [f"text {i}" for i in range(rows)]})
    options = {"row_group_size": 50_000, "data_page_size": 4096, "write_batch_size": 256,
               "write_page_index": True, "use_dictionary": False, "compression": "NONE"}
    path = lake.write(table, **options)
    explain = lake.explain("x = 70123", columns=["text"])
    assert explain["rows"] == 1
    assert (explain["row_groups_read"], explain["row_groups_total"]) == (1, 2)
    assert explain["pages_read"] == 2
    assert explain["pages_total"] > 100
    assert explain["rows_filtered"] <= 1024
    size = path.stat().st_size
    assert explain["bytes_read"] < size / 5
    # Without a page index every page of the filter column must be looked at, the rest not.
    lake.write(table, **{**options, "write_page_index": False})
    blind = lake.explain("x = 70123", columns=["text"])
    assert blind["rows"] == 1 and blind["rows_filtered"] == 50_000
    got = lake.scan("x >= 49990 AND x < 50010 AND y < 500")
    assert got.equals(table.filter((pc.field("x") >= 49990) & (pc.field("x") < 50010)
                                   & (pc.field("y") < 500)))


def test_rows_that_statistics_settle_are_not_filtered(lake):
    lake.write(pa.table({"x": range(1000), "y": range(1000)}), row_group_size=100)
    explain = lake.explain("x >= 300 AND x < 700 AND y >= 0")
    assert explain["rows"] == 400 and explain["rows_filtered"] == 0
    assert explain["row_groups_read"] == 4


def test_limit_and_offset_stop_early(lake):
    for i in range(20):
        lake.write(pa.table({"x": range(i * 100, i * 100 + 100)}), f"{i:02d}.parquet")
    assert lake.scan("x >= 0", limit=5)["x"].to_pylist() == list(range(5))
    assert lake.scan(limit=3, offset=150)["x"].to_pylist() == [150, 151, 152]
    explain = lake.explain(extra=["--limit", "5"])
    assert explain["files_read"] == 1 and explain["rows"] == 5
    assert lake.scan("x > 1000", limit=0).num_rows == 0
    assert lake.scan("x > 1000", offset=10_000).num_rows == 0


def test_bloom_filters_of_the_file_prune(lake):
    """DuckDB writes them for dictionary-encoded columns."""
    import duckdb
    path = lake.data / "f.parquet"
    duckdb.sql(f"""COPY (SELECT 2 * (i % 1000) AS k, 'v' || (i % 1000) AS t, i
                         FROM range(200000) r(i))
                   TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 20000)""")
    assert pq.ParquetFile(path).metadata.num_row_groups == 10
    for where, rows in (("k = 501", 0), ("k = 500", 200), ("k IN (501, 503)", 0),
                        ("k IN (501, 4)", 200), ("t = 'v5'", 200), ("t = 'v5x'", 0),
                        ("k = 501 OR t = 'v7'", 200), ("k = 500 AND t = 'v5x'", 0)):
        explain = lake.explain(where)
        assert explain["rows"] == rows, where
        if rows == 0:
            assert explain["bloom_filters_read"] > 0 and explain["pages_read"] == 0, where
    assert lake.explain("k != 501")["bloom_filters_read"] == 0


def test_files_of_different_schemas(lake):
    lake.write(pa.table({"x": pa.array([1, 2], pa.int32())}), "0.parquet")
    lake.write(pa.table({"x": pa.array([2, 2**40], pa.int64()), "y": ["a", "b"]}), "1.parquet")
    rows = lake.scan("x >= 2")
    assert rows["x"].to_pylist() == [2, 2, 2**40]
    assert rows["y"].to_pylist() == [None, "a", "b"]
    assert lake.values("y IS NULL", "x") == [1, 2]
    assert lake.values("y = 'b'", "x") == [2**40]
    assert lake.explain("y = 'b'")["files_read"] == 1


def test_bad_files(lake):
    lake.write(pa.table({"x": [1]}), "0.parquet")
    (lake.data / "1.parquet").write_bytes(b"PAR1 this is not one PAR1")
    with pytest.raises(grebe_cli.GrebeError) as caught:
        lake.scan("x = 1")
    assert caught.value.code == 3 and "1.parquet" in str(caught.value)
    assert lake.scan("x = 1", extra=["--skip-bad-files"])["x"].to_pylist() == [1]


def test_every_output_format(lake):
    table = pa.table({"x": range(10), "t": [f"t{i}" for i in range(10)]})
    lake.write(table, row_group_size=3)
    def run(form):
        return grebe_cli.run(["scan", lake.data, "--where", "x >= 2", "--format", form])
    lines = [json.loads(line) for line in run("jsonl").splitlines()]
    assert lines == json.loads(run("json")) == table.slice(2).to_pylist()
    assert run("csv").decode().splitlines() == ["x,t"] + [f"{i},t{i}" for i in range(2, 10)]
    assert len(run("table").splitlines()) == 10
    assert grebe_cli.read_stream(run("arrow")).equals(table.slice(2))
    assert pq.read_table(pa.BufferReader(run("parquet"))).equals(table.slice(2))
    none = grebe_cli.run(["scan", lake.data, "--where", "x > 99", "--format", "csv"])
    assert none == b"x,t\n"


def test_like_over_texts_that_are_no_utf8(lake):
    """The wildcard is any bytes."""
    raw = pa.array([b"a\xffb", b"\xff\xfe", "\u00e9b".encode(), None])
    texts = pa.Array.from_buffers(pa.string(), 4, raw.buffers())
    lake.write(pa.table({"s": texts, "n": range(4)}))
    assert lake.values("s LIKE '%b'", "n") == [0, 2]
    assert lake.values("s LIKE 'a%b'", "n") == [0]
    assert lake.values("s LIKE '_b'", "n") == [2]
    assert lake.values("NOT s LIKE '%b%'", "n") == [1]
