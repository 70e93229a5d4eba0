"""Bug cases about a file's structure: B26, B27, and counts, codecs and encryption that lie or are
not ours to read."""

import base64
import shutil
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from common import compare, grebe_cli, oracle, thrift


def table_of(rows=300):
    return pa.table({"k": pa.array([i % 40 for i in range(rows)], pa.int64()),
                     "v": pa.array([None if i % 9 == 0 else f"v{i}" for i in range(rows)])})


def empty_copy(group):
    """A row group of no rows, with the columns of another."""
    empty = group.copy()
    empty.set(2, 0)
    empty.set(3, 0)
    empty.set(6, 0)
    for chunk in empty.at(1).items:
        meta = chunk.at(3)
        meta.set(5, 0)     # num_values
        meta.set(6, 0)
        meta.set(7, 0)
        meta.set(12, None)   # statistics
        for field in (4, 5, 6, 7):
            chunk.set(field, None)   # page index places
    return empty


@pytest.mark.parametrize("places", [[0], [1], [3], [0, 0, 1, 3, 3]])
@pytest.mark.parametrize("page_index", [True, False])
def test_b26_row_groups_without_rows(lake, places, page_index):
    """First, in the middle, last, several: no rows from them, all the others intact."""
    table = table_of()
    path = lake.write(table, row_group_size=100, write_page_index=page_index)
    data, footer = thrift.split(path)
    groups = thrift.row_groups(footer)
    for place in sorted(places, reverse=True):
        groups.insert(place, empty_copy(groups[min(place, len(groups) - 1)]))
    thrift.join(path, data, footer)
    assert pq.ParquetFile(path).metadata.num_row_groups == 3 + len(places)
    assert lake.check_all_keys("k", truth=table) == 40


def test_b26_no_row_groups_at_all(lake):
    lake.write(table_of(0))
    summary = lake.create("k")
    assert summary["rows_added"] == 0
    assert lake.get(("k", "1")).num_rows == 0
    assert lake.count(("k", "1")) == 0


def test_b26_an_empty_file_among_others(lake):
    lake.write(table_of(0), "a.parquet")
    lake.write(table_of(), "b.parquet")
    lake.write(table_of(0), "c.parquet")
    assert lake.check_all_keys("k", truth=table_of()) == 40


def test_b26_real_files(lake, real_files):
    checked = 0
    for part, name, rows in [
            ("duckdb/data/parquet-testing/empty-group", "empty_group_test.parquet", None),
            ("impala/testdata/data", "zero_rows_zero_row_groups.parquet", 0)]:
        source = real_files / part / name
        if not source.exists():
            continue
        lake.file.write_bytes(source.read_bytes())
        table = oracle.read(lake.file)
        summary = lake.create(table.schema.names[0], name=name)
        assert summary["rows_added"] == (table.num_rows if rows is None else rows)
        checked += 1
    if checked == 0:
        pytest.skip("none of the files is there")


def test_b27_more_row_groups_than_an_int16_counts(lake):
    rows = 33000
    table = pa.table({"k": pa.array(range(rows), pa.int32())})
    with pq.ParquetWriter(lake.file, table.schema, compression="NONE", write_statistics=False,
                          use_dictionary=False) as writer:
        writer.write_table(table, row_group_size=1)
    assert pq.ParquetFile(lake.file).metadata.num_row_groups == rows
    lake.create("k")
    asked = [0, 1, 32766, 32767, 32768, 32769, 32999]
    got = lake.get(keys_text="".join(f'{{"k": {k}}}\n' for k in asked))
    assert got["k"].to_pylist() == asked


@pytest.mark.parametrize("ordinal", [-1, 0, 32767])
def test_b27_row_group_ordinals_are_not_trusted(lake, ordinal):
    table = table_of()
    path = lake.write(table, row_group_size=100)
    data, footer = thrift.split(path)
    for group in thrift.row_groups(footer):
        group.set(7, ordinal, thrift.I16)
    thrift.join(path, data, footer)
    assert lake.check_all_keys("k", truth=table) == 40


@pytest.mark.parametrize("far", [(1 << 31) + 12345, (1 << 32) + 77])
def test_b27_chunks_beyond_four_gigabytes(lake, far):
    """Offsets are 64 bits: the data lies behind a hole of gigabytes (a sparse file)."""
    table = table_of()
    path = lake.write(table, row_group_size=100, write_page_index=False)
    data, footer = thrift.split(path)
    for group in thrift.row_groups(footer):
        if group.at(5):
            group.set(5, group.at(5) + far)
        for chunk in group.at(1).items:
            if chunk.at(2):
                chunk.set(2, chunk.at(2) + far)
            meta = chunk.at(3)
            for field in (9, 11):
                if meta.at(field):
                    meta.set(field, meta.at(field) + far)
    body = thrift.encode(footer)
    with open(path, "wb") as file:
        file.write(b"PAR1")
        file.seek(far)
        file.write(data + body + struct.pack("<I", len(body)) + b"PAR1")
    assert lake.check_all_keys("k", truth=table) == 40


def patch_rows(path, file_rows=None, group_rows=None):
    data, footer = thrift.split(path)
    if file_rows is not None:
        footer.set(3, file_rows)
    if group_rows is not None:
        thrift.row_groups(footer)[0].set(3, group_rows)
    thrift.join(path, data, footer)


@pytest.mark.parametrize("file_rows,group_rows", [
    (4294967294, 4294967294), (2**62, None), (None, 2**62), (0, None), (0, 0), (None, 1),
    (-1, -1)])
def test_footer_counts_that_lie_give_the_rows_or_a_typed_error(lake, file_rows, group_rows):
    """Never a crash, never an allocation by the number claimed, never a wrong row."""
    table = table_of(100)
    path = lake.write(table)
    grebe_cli.peak_bytes_max = 0
    lake.create("k")
    lake.get(("k", "7"))
    honest_peak = grebe_cli.peak_bytes_max   # a sanitizer alone takes hundreds of megabytes
    shutil.rmtree(lake.root)
    patch_rows(path, file_rows, group_rows)
    grebe_cli.peak_bytes_max = 0
    try:
        lake.create("k")
        got = lake.get(("k", "7"))
    except grebe_cli.GrebeError as error:
        assert error.typed, error
    else:
        # The file's rows; or, where it claims fewer, those that pyarrow reads too.
        truths = [table]
        try:
            truths.append(oracle.read(path))
        except (OSError, pa.ArrowInvalid, MemoryError):
            pass
        answers = [oracle.Oracle(truth, ["k"]).expected([(7,)]) for truth in truths]
        assert None in [compare.difference(answer, got) for answer in answers], got
    assert grebe_cli.peak_bytes_max < honest_peak + (64 << 20)


def test_a_codec_that_nobody_knows_is_unsupported(lake):
    """Codec 5000, as impala's bad_codec.parquet: refused by name, not an end of the process."""
    path = lake.write(table_of())
    data, footer = thrift.split(path)
    thrift.column_meta(footer).set(4, 5000)
    thrift.join(path, data, footer)
    with pytest.raises(grebe_cli.GrebeError) as error:
        lake.create("k")
    assert error.value.code == 3, error.value
    assert "f.parquet" in str(error.value)


@pytest.mark.parametrize("plaintext_footer", [True, False])
def test_encrypted_files_are_refused(lake, plaintext_footer):
    import pyarrow.parquet.encryption as pe

    class Kms(pe.KmsClient):
        def __init__(self, _):
            super().__init__()

        def wrap_key(self, key, _):
            return base64.b64encode(key)

        def unwrap_key(self, wrapped, _):
            return base64.b64decode(wrapped)

    config = pe.EncryptionConfiguration(footer_key="f", column_keys={"c": ["k"]},
                                        plaintext_footer=plaintext_footer)
    factory = pe.CryptoFactory(Kms)
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), config)
    lake.write(table_of(), encryption_properties=properties)
    with pytest.raises(grebe_cli.GrebeError) as error:
        lake.create("k")
    assert error.value.code == 3, error.value
    assert "encrypt" in str(error.value).lower()


def test_one_bad_file_among_many_is_named_and_can_be_left_out(lake):
    lake.write(table_of(), "good.parquet")
    (lake.data / "bad.parquet").write_bytes(b"PAR1" + b"\x00" * 50 + b"PAR1")
    with pytest.raises(grebe_cli.GrebeError) as error:
        lake.create("k")
    assert error.value.code == 3 and "bad.parquet" in str(error.value)
    summary = lake.create("k", extra=["--skip-bad-files"])
    assert [s["path"] for s in summary["skipped"]] == ["bad.parquet"]
    assert lake.count(("k", "7")) == oracle.Oracle(table_of(), ["k"]).expected([(7,)]).num_rows
