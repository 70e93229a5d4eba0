"""Files that say which hash bucket they hold ("grebe.layout") are left out by it."""

import datetime
import json
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


def murmur3(data):
    """MurmurHash3 x86 32, seed 0, written from its description; not the engine's code."""
    def rotate(x, r):
        return ((x << r) | (x >> (32 - r))) & 0xFFFFFFFF

    def mix(k):
        return rotate(k * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF

    h = 0
    whole = len(data) // 4 * 4
    for (k,) in struct.iter_unpack("<I", data[:whole]):
        h = (rotate(h ^ mix(k), 13) * 5 + 0xE6546B64) & 0xFFFFFFFF
    if data[whole:]:
        h ^= mix(int.from_bytes(data[whole:], "little"))
    h ^= len(data)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = (h ^ (h >> shift)) * factor & 0xFFFFFFFF
    return h ^ (h >> 16)


def bucket(value, count):
    if isinstance(value, datetime.datetime):
        value = int((value - datetime.datetime(1970, 1, 1)) / datetime.timedelta(microseconds=1))
    if isinstance(value, datetime.date):
        value = (value - datetime.date(1970, 1, 1)).days
    data = struct.pack("<q", value) if isinstance(value, int) else value.encode()
    return (murmur3(data) & 0x7FFFFFFF) % count


def test_the_hash_is_icebergs():
    assert murmur3(struct.pack("<q", 34)) == 2017239379
    assert murmur3(b"iceberg") == 1210000089


KINDS = {
    "int32": (pa.int32(), lambda i: i * 37 - 500, str),
    "int64": (pa.int64(), lambda i: i * 10**12, str),
    "text": (pa.string(), lambda i: f"key {i}", lambda v: f"'{v}'"),
    "date": (pa.date32(), lambda i: datetime.date(2020, 1, 1) + datetime.timedelta(i),
             lambda v: f"'{v}'"),
    "timestamp": (pa.timestamp("us"), lambda i: datetime.datetime(2020, 1, 1, 0, 0, i % 60, i),
                  lambda v: f"'{v.isoformat()}'"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_one_bucket_is_read(lake, kind):
    arrow_type, value_of, text_of = KINDS[kind]
    values = [value_of(i) for i in range(400)]
    for number in [*range(8), None]:
        own = [v for v in values if bucket(v, 8) == number] if number is not None else [None] * 5
        # Bounds would leave out some files too: these say nothing.
        table = pa.table({"k": pa.array(own, arrow_type), "n": range(len(own))})
        layout = json.dumps({"by": "bucket(8,k)", "bucket": number})
        lake.write(table.replace_schema_metadata({"grebe.layout": layout}), f"{number}.parquet",
                   write_statistics=False)
    for value in values[::23]:
        explain = lake.explain(f"k = {text_of(value)}")
        assert (explain["files_read"], explain["rows"]) == (1, 1)
    some = [values[i] for i in (3, 77, 200)]
    wanted = {bucket(v, 8) for v in some}
    where = f"k IN ({', '.join(map(text_of, some))})"
    assert lake.explain(where)["files_read"] == len(wanted)
    assert sorted(lake.values(where, "k")) == sorted(some)
    explain = lake.explain("k IS NULL")
    assert (explain["files_read"], explain["rows"]) == (1, 5)
    assert lake.explain(f"k != {text_of(values[0])}")["rows"] == 399
    assert lake.explain(f"k = {text_of(values[0])} OR n = 0")["rows"] == 8 + 1 + (
        0 if lake.values(f"k = {text_of(values[0])}", "n") == [0] else 1)


@pytest.mark.parametrize("layout", ["", "{}", "not json", '{"by": "bucket(8,k)"}',
                                    '{"by": "bucket(0,k)", "bucket": 1}',
                                    '{"by": "bucket(8,k,l)", "bucket": 1}',
                                    '{"by": "bucket(8,k)", "bucket": "1"}',
                                    '{"by": "sort(k)", "bucket": 1}', "[]",
                                    '{"by": 5, "bucket": 1}'])
def test_a_layout_that_says_nothing_prunes_nothing(lake, layout):
    table = pa.table({"k": range(20)}).replace_schema_metadata({"grebe.layout": layout})
    lake.write(table)
    for k in range(20):
        assert lake.values(f"k = {k}", "k") == [k]
