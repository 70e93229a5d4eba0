"""Bug cases about pages, dictionaries and codecs: B21, B23, B25, B29, B30."""

import gzip
import os
import random
import struct
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from common import grebe_cli, oracle, thrift


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("page_index", [True, False])
@pytest.mark.parametrize("kind", [pa.string(), pa.int64(), pa.decimal128(12, 2)])
def test_b21_a_dictionary_that_gives_up_half_way(lake, version, page_index, kind):
    """Keys of the dictionary's pages and keys of the plain pages after them are all found."""
    numbers = [i % 50 for i in range(1000)] + list(range(1000, 4000))
    column = pa.array([str(n) for n in numbers]).cast(kind)
    path = lake.write(pa.table({"k": column, "n": pa.array(range(4000))}),
                      dictionary_pagesize_limit=300, data_page_size=512,
                      write_batch_size=64, data_page_version=version, write_page_index=page_index)
    encodings = pq.ParquetFile(path).metadata.row_group(0).column(0).encodings
    assert "PLAIN" in encodings and "RLE_DICTIONARY" in encodings
    assert lake.check_all_keys("k") == 3050


@pytest.mark.parametrize("offset", [None, 0])
@pytest.mark.parametrize("page_index", [True, False])
def test_b23_dictionary_page_offset_missing_or_zero(lake, offset, page_index):
    """The dictionary is there all the same: where the chunk starts."""
    table = pa.table({"k": pa.array([f"key{i % 30}" for i in range(2000)]),
                      "v": pa.array([f"value{i % 7}" for i in range(2000)])})
    path = lake.write(table, write_page_index=page_index, data_page_size=256, write_batch_size=64,
                      row_group_size=700)
    data, footer = thrift.split(path)
    for group in range(len(thrift.row_groups(footer))):
        for column in (0, 1):
            meta = thrift.column_meta(footer, group, column)
            assert meta.at(11)
            # Writers that leave the offset out let data_page_offset tell where the chunk starts.
            meta.set(9, meta.at(11))
            meta.set(11, offset)
    thrift.join(path, data, footer)
    assert lake.check_all_keys("k", truth=table) == 30


def rewrite_only_page(path, payload_of, codec):
    """Replaces the payload of a file's only data page: payload_of(plain bytes) -> bytes."""
    data, footer = thrift.split(path)
    meta = thrift.column_meta(footer)
    start = meta.at(9)
    header, header_size = thrift.page_header(data, start)
    size = header.at(3)
    assert start + header_size + size == len(data), "more than one page"
    payload = payload_of(data[start + header_size:])
    header.set(3, len(payload))
    header.set(4, None)    # crc
    body = thrift.encode(header) + payload
    meta.set(4, codec)
    meta.set(7, len(body))
    thrift.row_groups(footer)[0].set(6, None)
    thrift.join(path, data[:start] + body, footer)


@pytest.mark.parametrize("page_version", ["1.0"])
def test_b25_concatenated_gzip_members(lake, page_version):
    """A page of three gzip members: all are decompressed, not only the first."""
    table = pa.table({"n": pa.array(range(1, 514), pa.int64())})
    path = lake.write(table, use_dictionary=False, data_page_version=page_version,
                      write_page_index=False)
    rewrite_only_page(path, lambda plain: b"".join(
        gzip.compress(part) for part in (plain[:100], plain[100:101], plain[101:])), codec=2)
    assert pq.read_table(path).equals(table)
    assert lake.check_all_keys("n", truth=table) == 513


def test_b25_hadoop_lz4_of_several_frames(lake):
    """Codec LZ4 as Hadoop wrote it: frames of big-endian sizes, several in one page."""
    table = pa.table({"n": pa.array([i * 7919 for i in range(10000)], pa.int64())})
    path = lake.write(table, use_dictionary=False, write_page_index=False)
    lz4 = pa.Codec("lz4_raw")

    def frames(plain):
        out = b""
        for at in range(0, len(plain), 30000):
            part = plain[at:at + 30000]
            packed = lz4.compress(part, asbytes=True)
            out += struct.pack(">II", len(part), len(packed)) + packed
        return out

    rewrite_only_page(path, frames, codec=5)
    assert lake.check_all_keys("n", truth=table) == 10000


def test_b25_real_files(lake, real_files):
    for name, rows in [("concatenated_gzip_members.parquet", 513),
                       ("hadoop_lz4_compressed_larger.parquet", 10000),
                       ("non_hadoop_lz4_compressed.parquet", 4)]:
        source = real_files / "parquet-testing" / "data" / name
        if not source.exists():
            pytest.skip(f"{name} is not there")
        lake.file.write_bytes(source.read_bytes())
        key = pq.ParquetFile(lake.file).schema_arrow.names[0]
        summary = lake.create(key, name=name)
        assert summary["rows_added"] == rows


UUIDS = [uuid.UUID(int=random.Random(29).getrandbits(128) + i).bytes for i in range(500)]


def uuid_table():
    return pa.table({"u": pa.array(UUIDS, pa.binary(16)), "n": pa.array(range(500), pa.int32())})


def damage(path, at, size=64):
    """XORs bytes in place; the file looks untouched: size, times and inode stay."""
    before = os.stat(path)
    with open(path, "r+b") as file:
        file.seek(at)
        old = file.read(size)
        file.seek(at)
        file.write(bytes(b ^ 0x5A for b in old))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("crc", [True, False])
def test_b29_damaged_keys_are_never_another_row(lake, crc):
    """64 bytes of the key column XORed after the index was built: each lookup gives its own row or
    an error; no key is answered with the row of another, or with a row that has another key."""
    path = lake.write(uuid_table(), use_dictionary=False, write_page_checksum=crc,
                      data_page_size=1024, write_batch_size=32, write_page_index=True)
    lake.create("u")
    start = thrift.column_meta(thrift.split(path)[1]).at(9)
    damage(path, start + 2000)
    errors = wrong = 0
    for number, key in enumerate(UUIDS[:300:5] + UUIDS[100:150]):
        try:
            rows = lake.get(("u", "0x" + key.hex()))
        except grebe_cli.GrebeError as error:
            assert error.code in (3, 4), error
            errors += 1
            continue
        assert rows["u"].to_pylist() == [key]
        assert rows["n"].to_pylist() == [UUIDS.index(key)]
    assert errors > 0


def test_b29_a_damaged_page_with_a_checksum_is_not_indexed(lake):
    path = lake.write(uuid_table(), use_dictionary=False, write_page_checksum=True)
    damage(path, thrift.column_meta(thrift.split(path)[1]).at(9) + 2000)
    with pytest.raises(grebe_cli.GrebeError) as error:
        lake.create("u")
    assert error.value.code == 3


def test_b29_damaged_values_with_a_checksum_are_an_error(lake):
    path = lake.write(uuid_table(), use_dictionary=False, write_page_checksum=True)
    lake.create("u")
    damage(path, thrift.column_meta(thrift.split(path)[1], column=1).at(9) + 100)
    with pytest.raises(grebe_cli.GrebeError) as error:
        lake.get(("u", "0x" + UUIDS[7].hex()))
    assert error.value.code == 3


def test_b29_checksums_in_real_files(lake, real_files):
    data = real_files / "parquet-testing" / "data"
    for name in ("datapage_v1-corrupt-checksum.parquet",
                 "rle-dict-uncompressed-corrupt-checksum.parquet"):
        if not (data / name).exists():
            pytest.skip(f"{name} is not there")
        lake.file.write_bytes((data / name).read_bytes())
        with pytest.raises(grebe_cli.GrebeError) as error:
            key = pq.ParquetFile(lake.file).schema_arrow.names[0]
            lake.create(key, name=name)
            key2 = pq.ParquetFile(lake.file).schema_arrow.names[1]
            lake.create(key2, name=name + "2")
        assert error.value.code == 3, name


def test_b29_overwritten_in_place_with_the_same_size_is_stale(lake):
    path = lake.write(uuid_table(), use_dictionary=False)
    lake.create("u")
    other = pa.table({"u": pa.array(UUIDS[::-1], pa.binary(16)),
                      "n": pa.array(range(500), pa.int32())})
    size = path.stat().st_size
    pq.write_table(other, path, use_dictionary=False, compression="NONE")
    assert path.stat().st_size == size
    with pytest.raises(grebe_cli.GrebeError) as error:
        lake.get(("u", "0x" + UUIDS[7].hex()))
    assert error.value.code == 4


@pytest.mark.parametrize("with_dictionary_offset", [True, False])
def test_b30_old_writers_leave_the_dictionary_header_out_of_the_chunk_size(
        lake, with_dictionary_offset):
    """parquet-mr 1.2.8 and older: total_compressed_size is short by the dictionary page's header;
    the last data page ends past the stated end."""
    table = pa.table({"k": pa.array([f"key{i % 40}" for i in range(3000)]),
                      "v": pa.array([i % 11 for i in range(3000)], pa.int64())})
    path = lake.write(table, write_page_index=False, data_page_size=400, write_batch_size=64,
                      row_group_size=1000)
    data, footer = thrift.split(path)
    footer.set(6, b"parquet-mr version 1.2.5 (build 1234567)")
    for group in range(3):
        for column in (0, 1):
            meta = thrift.column_meta(footer, group, column)
            _, header_size = thrift.page_header(data, meta.at(11))
            meta.set(7, meta.at(7) - header_size)
            if not with_dictionary_offset:
                meta.set(9, meta.at(11))
                meta.set(11, None)
    thrift.join(path, data, footer)
    assert pq.read_table(path).to_pydict() == table.to_pydict()
    assert lake.check_all_keys("k", truth=table) == 40


def test_b30_real_files(lake, real_files):
    for name in ("multiple_rowgroups.parquet", "repeated_values.parquet"):
        source = real_files / "impala" / "testdata" / "data" / name
        if not source.exists():
            pytest.skip(f"{name} is not there")
        lake.file.write_bytes(source.read_bytes())
        table = oracle.read(lake.file)
        summary = lake.create(table.schema.names[0], name=name)
        assert summary["rows_added"] == table.num_rows
