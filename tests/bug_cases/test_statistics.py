"""Bug cases about statistics, page indexes, orders and Bloom filters, by scans:
B02, B06, B07, B09, B11, B12, B13, B15, B16, B18, B20, B21; and statistics that lie."""

import decimal
import math
import random
import struct
import uuid

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from common import grebe_cli, thrift
from scan import real_files as scan_real_files
from scan import variants


def scan(path, where, column):
    return grebe_cli.scan(path, where, columns=[column])[column].to_pylist()


def explain(path, where):
    return grebe_cli.explain_scan(path, where)


def check_every_column(path, per_column=12):
    report = scan_real_files.check_file(path, random.Random(7), per_column)
    assert report["problems"] == []
    assert report["agreed"] > 0


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.float64(), pa.date32()])
@pytest.mark.parametrize("all_null", [True, False])
def test_b02_empty_bounds_of_a_page_that_is_not_called_null(lake, kind, all_null):
    """Seven pages, six of nulls alone, called pages of values, with bounds of no bytes."""
    items = [None] * 700 if all_null else [None] * 680 + list(range(20))
    path = lake.write(pa.table({"c": pa.array(items, pa.int32()).cast(kind),
                                "n": range(700)}), write_page_index=True,
                      max_rows_per_page=100, write_batch_size=100, use_dictionary=False)
    file = variants.File(path)
    changed = 0
    for leaf, chunk, index in file.column_indexes():
        if leaf.path != "c":
            continue
        for page, null in enumerate(index.at(1).items):
            changed += null
            index.at(1).items[page] = False
            if null:
                index.at(2).items[page] = index.at(3).items[page] = b""
        file.put_column_index(chunk, index)
    file.save()
    assert changed >= 6
    nulls = [n for n, item in enumerate(items) if item is None]
    text = "'1970-01-03'" if kind == pa.date32() else "2"
    assert scan(path, f"c < {text} OR c IS NULL", "n") == nulls + ([] if all_null else [680, 681])
    assert scan(path, "c IS NULL", "n") == nulls
    assert scan(path, f"c = {text}", "n") == ([] if all_null else [682])


def test_b06_deprecated_bounds_of_strings_are_in_signed_order(lake, real_files):
    path = lake.write(pa.table({"s": ["a\u00e9", "az", "b"]}))
    file = variants.File(path)
    file.footer.set(variants.COLUMN_ORDERS, None)
    for _, _, statistics in file.statistics():
        for field in (variants.MIN_VALUE, variants.MAX_VALUE):
            statistics.set(field, None)
        statistics.set(variants.MIN, "a\u00e9".encode(), thrift.BINARY)
        statistics.set(variants.MAX, b"b", thrift.BINARY)
    file.save()
    assert scan(path, "s = 'az'", "s") == ["az"]
    assert scan(path, "s > 'a' AND s < 'b'", "s") == ["a\u00e9", "az"]
    check_every_column(real_files / "impala/testdata/data/deprecated_statistics.parquet")


def test_b06_deprecated_bounds_of_signed_numbers_are_used(lake):
    path = lake.write(pa.table({"i": pa.array([-5, 5], pa.int32())}))
    file = variants.File(path)
    variants.signed_order(file, random.Random(1))
    file.save()
    assert explain(path, "i > 5")["pages_read"] == 0
    assert scan(path, "i >= -5", "i") == [-5, 5]


def test_b07_an_order_that_is_not_known(lake, real_files):
    path = real_files / "duckdb/data/parquet-testing/arrow/column_orders.parquet"
    check_every_column(path)
    own = lake.write(pa.table({"x": range(100)}), row_group_size=10, write_page_index=True)
    file = variants.File(own)
    variants.unknown_order(file, random.Random(1))
    file.save()
    for x in range(100):
        assert scan(own, f"x = {x}", "x") == [x]


def test_b09_nan_among_the_bounds(real_files):
    path = real_files / "impala/testdata/data/min_max_is_nan.parquet"
    assert scan(path, "val > 41", "val") == [42.0]
    assert scan(path, "val = 42", "val") == [42.0]
    assert math.isnan(scan(path, "val IS NAN", "val")[0])
    assert len(scan(path, "val != 42", "val")) == 1
    assert len(scan(path, "NOT val > 41", "val")) == 1
    path = real_files / "parquet-testing/data/nan_in_stats.parquet"
    assert scan(path, "x <= 1", "x") == [1.0]
    assert len(scan(path, "x IS NAN OR x > 1", "x")) == 1


def test_b11_a_null_count_that_is_not_set(lake):
    path = lake.write(pa.table({"x": [1, None, 3], "n": range(3)}))
    file = variants.File(path)
    variants.drop_null_counts(file, random.Random(1))
    file.save()
    assert scan(path, "x IS NULL", "n") == [1]
    assert scan(path, "x IN (1, NULL)", "n") == [0]
    assert scan(path, "x IN (1, NULL) OR x IS NULL", "n") == [0, 1]
    assert scan(path, "NOT x IN (7)", "n") == [0, 2]


@pytest.mark.parametrize("name", [
    "impala/testdata/data/decimal_padded_fixed_len_byte_array2.parquet",
    "duckdb/data/parquet-testing/bug10148-wide-decimal-stats.parquet"])
def test_b12_decimals_in_bytes(real_files, name):
    check_every_column(real_files / name)


def test_b12_decimals_of_seventeen_bytes(real_files):
    """pyarrow does not read this file; DuckDB judges."""
    path = real_files / "impala/testdata/data/decimal_padded_fixed_len_byte_array.parquet"
    columns = [f"d{i}" for i in range(1, 7)]
    rows = duckdb.sql(f"SELECT {', '.join(columns)} FROM '{path}'").fetchall()
    for at, column in enumerate(columns):
        values = [row[at] for row in rows]
        for value in values:
            for op, holds in (("=", lambda v: v == value), ("<", lambda v: v < value),
                              (">=", lambda v: v >= value)):
                assert scan(path, f"{column} {op} {value:f}", column) == [
                    v for v in values if holds(v)]


def test_b12_bounds_of_negative_decimals(lake):
    """Compared as bytes without a sign: min 0, max -1. And -1 alone, which is not 255."""
    values = [decimal.Decimal(-1), decimal.Decimal(0)]
    path = lake.write(pa.table({"d": pa.array(values, pa.decimal128(4, 0))}))
    meta = pq.ParquetFile(path).metadata.row_group(0).column(0)
    assert meta.physical_type == "FIXED_LEN_BYTE_ARRAY"
    for swap in (False, True):
        if swap:
            file = variants.File(path)
            variants.swap_bounds(file, random.Random(1))
            file.save()
        assert scan(path, "d = -1", "d") == values[:1]
        assert scan(path, "d < 0", "d") == values[:1]
        assert scan(path, "d > -1", "d") == values[1:]
    path = lake.write(pa.table({"d": pa.array(values[:1], pa.decimal128(4, 0))}))
    assert scan(path, "d < 0", "d") == values[:1]
    assert explain(path, "d > 0")["pages_read"] == 0


def test_b13_unsigned_integers(lake, real_files):
    path = lake.write(pa.table({"u": pa.array([0, 4_000_000_000, 7], pa.uint32())}))
    assert scan(path, "u = 4000000000", "u") == [4_000_000_000]
    assert scan(path, "u > 7", "u") == [4_000_000_000]
    assert scan(path, "u < 8", "u") == [0, 7]
    for name in ("unsigned.parquet", "unsigned_stats.parquet"):
        check_every_column(real_files / "duckdb/data/parquet-testing" / name)


def test_b15_uuids_compare_as_sixteen_bytes(lake, real_files):
    rng = random.Random(3)
    ids = [uuid.UUID(bytes=rng.randbytes(16)) for _ in range(200)]
    kind = pa.uuid()
    column = pa.ExtensionArray.from_storage(kind, pa.array([u.bytes for u in ids], pa.binary(16)))
    path = lake.write(pa.table({"u": column, "n": range(200)}), row_group_size=20,
                      write_page_index=True)
    for n, u in enumerate(ids):
        assert scan(path, f"u = '{u}'", "n") == [n]
    middle = sorted(u.bytes for u in ids)[100]
    below = [n for n, u in enumerate(ids) if u.bytes < middle]
    assert scan(path, f"u < '{uuid.UUID(bytes=middle)}'", "n") == below
    check_every_column(real_files / "hyparquet/test/files/uuid.parquet")


@pytest.mark.parametrize("name", ["int64_timestamps_at_dst_changes.parquet",
                                  "hive2_pre_gregorian.parquet"])
def test_b16_times_prune_by_the_stored_integer(real_files, name):
    check_every_column(real_files / "impala/testdata/data" / name)


def test_b18_bloom_filters_that_lie_about_their_length(lake, real_files):
    path = real_files / "duckdb/data/parquet-testing/bloom_filter_bad_length_range.parquet"
    check_every_column(path, per_column=6)
    own = lake.data / "own.parquet"
    duckdb.sql(f"""COPY (SELECT i * 3 % 1009 AS k, i FROM range(50000) r(i))
                   TO '{own}' (FORMAT parquet, ROW_GROUP_SIZE 10000)""")
    assert explain(own, "k = 1009")["rows"] == 0
    for length in (1, 40, 10**9, None):
        file = variants.File(own)
        for _, chunk in file.chunks():
            if chunk.at(3).at(14) is not None:
                chunk.at(3).set(15, length)
        file.save()
        for k in (0, 500, 1008):
            assert explain(own, f"k = {k}")["rows"] > 40, (length, k)


@pytest.mark.parametrize("inflate", [2, 64, 1 << 20])
def test_b18_bloom_filters_that_claim_more_bytes(lake, inflate):
    """The header says more than the filter has: what follows is something else."""
    own = lake.data / "own.parquet"
    duckdb.sql(f"""COPY (SELECT i * 3 % 1009 AS k, i * 7 % 11 AS j FROM range(50000) r(i))
                   TO '{own}' (FORMAT parquet, ROW_GROUP_SIZE 10000)""")
    file = variants.File(own)
    changed = 0
    for _, chunk in file.chunks():
        offset = chunk.at(3).at(14)
        if offset is None:
            continue
        reader = thrift.Reader(bytes(file.data), offset)
        header = reader.struct()
        size = reader.at - offset
        header.set(1, header.at(1) * inflate)
        body = thrift.encode(header)
        # A header of another size goes elsewhere, the filter behind it.
        bits = bytes(file.data[offset + size:offset + size + header.at(1) // inflate])
        chunk.at(3).set(14, len(file.data))
        chunk.at(3).set(15, None)
        file.data += body + bits
        changed += 1
    assert changed > 1
    file.save()
    for k in (0, 3, 501, 1008):
        assert explain(own, f"k = {k}")["rows"] > 40


def test_b20_binary_literals_are_their_bytes(lake):
    blobs = [bytes([i * 17 % 256, i]) for i in range(14)]
    rows = [blob for blob in blobs for _ in range(50)]
    path = lake.write(pa.table({"b": pa.array(rows, pa.binary())}), row_group_size=100,
                      write_page_index=True)
    for blob in blobs:
        assert len(scan(path, f"b = 0x{blob.hex()}", "b")) == 50
        assert len(scan(path, f"b IN (X'{blob.hex()}', 0x)", "b")) == 50
    own = lake.data / "d.parquet"
    duckdb.sql(f"""COPY (SELECT unhex(printf('%02x', i % 14 * 17)) AS b FROM range(7000) r(i))
                   TO '{own}' (FORMAT parquet, ROW_GROUP_SIZE 2048)""")
    for i in range(14):
        assert len(scan(own, f"b = 0x{i * 17:02x}", "b")) == 500
    assert explain(own, "b = 0xfe")["rows"] == 0


def test_b21_a_dictionary_that_gives_up_half_way(lake):
    """No chunk is judged by its dictionary."""
    numbers = [i % 50 for i in range(1000)] + list(range(1000, 4000))
    path = lake.write(pa.table({"k": [str(n) for n in numbers]}), dictionary_pagesize_limit=300,
                      data_page_size=512, write_batch_size=64, write_statistics=False)
    assert scan(path, "k = '3999'", "k") == ["3999"]
    assert scan(path, "k IN ('49', '1000')", "k").count("49") == 20


def test_own_null_counts_of_optional_groups_are_too_low(lake):
    """Found by the random predicates: Arrow's writer forgets a null struct's rows when it counts
    the nulls of a dictionary, or of a required leaf, inside of it."""
    inner = pa.array(["a", "b", None, "a"]).dictionary_encode()
    required = pa.field("r", pa.int32(), nullable=False)
    column = pa.StructArray.from_arrays(
        [inner, pa.array([1, 2, 3, 4], pa.int32())],
        fields=[pa.field("d", inner.type), required],
        mask=pa.array([False, True, False, False]))
    path = lake.write(pa.table({"s": column, "n": range(4)}), data_page_size=1,
                      write_batch_size=1, write_page_index=True)
    assert scan(path, "s.d IS NULL", "n") == [1, 2]
    assert scan(path, "s.r IS NULL", "n") == [1]
    assert scan(path, "s.r != 9", "n") == [0, 2, 3]
    assert scan(path, "s.d != 'z'", "n") == [0, 3]


def test_own_decimals_wider_than_their_precision(real_files):
    """Found by the random predicates: a decimal(36, 17) holds a value of 38 digits."""
    path = real_files / "duckdb/data/parquet-testing/decimal/pandas_decimal.parquet"
    stored = pq.read_table(path)["value4"].to_pylist()
    assert max(len(v.as_tuple().digits) for v in stored) == 38
    for value in set(stored):
        assert scan(path, f"value4 = {value:f}", "value4") == [v for v in stored if v == value]
        assert scan(path, f"value4 < {value:f}", "value4") == [v for v in stored if v < value]
    check_every_column(path)


def test_a_writer_whose_times_are_wrong(real_files):
    """Parquet.Net: the values are 12:00, their bounds 04:00. DuckDB finds nothing at 12:00."""
    path = real_files / "duckdb/data/parquet-testing/corrupt_stats.parquet"
    stored = pq.read_table(path)["A"].to_pylist()
    assert len(stored) == 5
    assert scan(path, "A = '2021-01-01T12:00:00'", "A") == stored
    assert scan(path, "A <= '2021-01-01T04:00:00'", "A") == []
    check_every_column(path, per_column=40)


def change_statistics(path, column, **fields):
    """Sets fields of one column's statistics in every row group."""
    file = variants.File(path)
    for leaf, _, statistics in file.statistics():
        if leaf.path == column:
            for name, value in fields.items():
                statistics.set(getattr(variants, name), value)
    file.save()


@pytest.mark.parametrize("lie", [
    {"MIN_VALUE": struct.pack("<i", 50), "MAX_VALUE": struct.pack("<i", 40)},   # min above max
    {"MIN_VALUE": struct.pack("<q", 50), "MAX_VALUE": struct.pack("<i", 60)},   # not four bytes
    {"MIN_VALUE": struct.pack("<i", 50), "MAX_VALUE": b""},
    {"MIN_VALUE": struct.pack("<i", 50), "MAX_VALUE": struct.pack("<i", 60), "NULL_COUNT": 6},
    {"MIN_VALUE": struct.pack("<i", 50), "MAX_VALUE": struct.pack("<i", 60), "NULL_COUNT": -1},
    {"MIN_VALUE": struct.pack("<i", 50), "MAX_VALUE": struct.pack("<i", 60), "NULL_COUNT": 5}])
def test_statistics_that_contradict_themselves_are_no_statistics(lake, lie):
    path = lake.write(pa.table({"x": pa.array([1, 2, None, 3, 4], pa.int32()), "n": range(5)}))
    change_statistics(path, "x", **lie)
    assert scan(path, "x = 1", "n") == [0]
    assert scan(path, "x < 50", "n") == [0, 1, 3, 4]
    assert scan(path, "x >= 50", "n") == []
    assert scan(path, "x IS NULL", "n") == [2]
    assert scan(path, "x IS NOT NULL", "n") == [0, 1, 3, 4]


def test_one_bound_that_is_no_value_makes_the_other_one_none(lake):
    """As if the writer had put 300 into an INT(8), which is read as 44."""
    path = lake.write(pa.table({"x": pa.array([100, 44], pa.int8()), "n": range(2)}))
    change_statistics(path, "x", MIN_VALUE=struct.pack("<i", 100), MAX_VALUE=struct.pack("<i", 300))
    assert scan(path, "x = 44", "n") == [1]


def test_bounds_longer_than_a_fixed_width_are_none(lake):
    path = lake.write(pa.table({"x": pa.array([b"ab", b"cd"], pa.binary(2)), "n": range(2)}))
    change_statistics(path, "x", MIN_VALUE=b"cdx", MAX_VALUE=b"cdx")
    assert scan(path, "x = 0x6162", "n") == [0]


@pytest.mark.parametrize("field, bound", [(2, b"x"), (3, b"B")])
def test_pages_beyond_their_chunk_are_not_believed(lake, field, bound):
    """Strings may be shortened, so that only pages that do not meet the chunk's bounds are seen."""
    texts = [f"{c}{i}" for c in "kmp" for i in range(10)]
    path = lake.write(pa.table({"s": texts, "n": range(30)}), write_page_index=True,
                      max_rows_per_page=10, write_batch_size=10, use_dictionary=False)
    file = variants.File(path)
    for leaf, chunk, index in file.column_indexes():
        if leaf.path == "s":
            assert len(index.at(2).items) == 3
            index.at(2).items[1] = bound if field == 2 else b"A"
            index.at(3).items[1] = bound if field == 3 else b"y"
            index.set(4, 0)
            file.put_column_index(chunk, index)
    file.save()
    assert scan(path, "s = 'm3'", "n") == [13]


def test_a_page_of_nulls_that_has_bounds_is_not_believed(lake):
    path = lake.write(pa.table({"x": pa.array(range(30), pa.int32())}), write_page_index=True,
                      max_rows_per_page=10, write_batch_size=10, use_dictionary=False,
                      write_statistics=True)
    file = variants.File(path)
    for _, chunk, index in file.column_indexes():
        chunk.at(3).set(variants.STATISTICS, None)
        index.at(5).items[1] = 10
        file.put_column_index(chunk, index)
    file.save()
    assert scan(path, "x = 13", "x") == [13]


def test_a_lie_that_looks_like_the_truth_is_believed(lake):
    """As the guide says, and as DuckDB does: nothing but reading the values would tell."""
    path = lake.write(pa.table({"x": pa.array([1, 2, 3], pa.int32())}))
    change_statistics(path, "x", MIN_VALUE=struct.pack("<i", 50), MAX_VALUE=struct.pack("<i", 50))
    for where, count in (("x = 2", 0), ("x < 50", 0), ("x = 50", 3), ("x >= 50", 3)):
        assert len(scan(path, where, "x")) == count
        assert duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE {where}").fetchall() == [(count,)]
