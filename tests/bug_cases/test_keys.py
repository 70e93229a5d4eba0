"""Bug cases about the values of keys: B12, B13, B15, B16, B20."""

import decimal
import uuid

import pyarrow as pa
import pytest

from common import grebe_cli, thrift

FOURTEEN_BLOBS = [b"\x41", b"\xff", b"\x00", b"\x00\x01", b"\xff\xfe", b"AB", b"\x80", b"\x7f",
                  b"\\xFF", b"0x41", b"\n", b"", b"\xc3\xa9", b"\xc3"]


@pytest.mark.parametrize("dictionary", [True, False])
def test_b20_blobs_are_found_by_their_bytes(lake, dictionary):
    """Not by their escaped text: printable and other bytes alike, 500 rows each."""
    lake.write(pa.table({"b": pa.array(FOURTEEN_BLOBS * 500, pa.binary()),
                         "n": pa.array(range(7000))}), use_dictionary=dictionary)
    lake.create("b")
    for number, blob in enumerate(FOURTEEN_BLOBS):
        assert lake.count(("b", "0x" + blob.hex())) == 500, blob
        rows = lake.get(("b", "0x" + blob.hex()))
        assert rows["n"].to_pylist() == list(range(number, 7000, 14)), blob
    counts = lake.count(keys_text="".join(
        '{"b": "0x%s"}\n' % blob.hex().upper() for blob in FOURTEEN_BLOBS))
    assert counts == [500] * 14


def test_b20_blobs_as_base64_and_csv(lake):
    lake.write(pa.table({"b": pa.array(FOURTEEN_BLOBS, pa.binary())}))
    lake.create("b")
    import base64
    text = "b\n" + "".join(f'"base64:{base64.b64encode(b).decode()}"\n' for b in FOURTEEN_BLOBS)
    assert lake.get(keys_text=text)["b"].to_pylist() == FOURTEEN_BLOBS


@pytest.mark.parametrize("text", ["A", "\\xFF", "xFF", "0xF", "base64:*"])
def test_b20_text_is_refused_as_a_blob(lake, text):
    """Rather than taken for the wrong bytes."""
    lake.write(pa.table({"b": pa.array(FOURTEEN_BLOBS, pa.binary())}))
    lake.create("b")
    with pytest.raises(grebe_cli.GrebeError) as error:
        lake.get(("b", text))
    assert error.value.code == 2


def as_decimal(path, precision, scale):
    """Turns the file's only binary column into a DECIMAL of the same bytes."""
    data, footer = thrift.split(path)
    element = footer.at(2).items[1]
    element.set(6, 5, thrift.I32)           # converted_type DECIMAL
    element.set(7, scale, thrift.I32)
    element.set(8, precision, thrift.I32)
    element.set(10, None)                   # logicalType
    thrift.join(path, data, footer)


NUMBERS = [0, -1, 1, 7, -7, 127, 128, -128, -129, 255, 256, 9999, -9999]


@pytest.mark.parametrize("width", [2, 3, 10, 16])
def test_b12_padded_fixed_decimals_are_signed(lake, width):
    """0xFF is -1, not 255; the width need not be the least, nor 16."""
    blobs = [n.to_bytes(width, "big", signed=True) for n in NUMBERS]
    path = lake.write(pa.table({"d": pa.array(blobs * 3, pa.binary(width))}), store_schema=False)
    as_decimal(path, 4, 2)
    assert lake.check_all_keys("d") == len(NUMBERS)
    for number in NUMBERS:
        assert lake.count(("d", str(decimal.Decimal(number).scaleb(-2)))) == 3


def test_b12_byte_array_decimals_of_any_width_are_equal(lake):
    """The same number in 1, 2 and 9 bytes is one key."""
    blobs = [n.to_bytes(width, "big", signed=True) for n in (0, -1, 5, -128, 127)
             for width in (1, 2, 9)]
    path = lake.write(pa.table({"d": pa.array(blobs, pa.binary())}), store_schema=False)
    as_decimal(path, 30, 1)
    assert lake.check_all_keys("d") == 5
    assert lake.count(("d", "-0.1")) == 3
    assert lake.count(("d", "25.5")) == 0    # what 0xFF would be without its sign


def test_b12_decimals_of_every_physical_form_are_one_key(lake):
    kind = pa.decimal128(9, 2)
    items = [decimal.Decimal(n).scaleb(-2) for n in NUMBERS]
    table = pa.table({"d": pa.array(items, kind)})
    lake.write(table, "a.parquet")
    lake.write(table, "b.parquet", store_decimal_as_integer=True)
    lake.write(table.cast(pa.schema([("d", pa.decimal128(38, 2))])), "c.parquet")
    lake.create("d")
    for item in items:
        assert lake.count(("d", str(item))) == 3, item


def test_b13_unsigned_integers_beyond_the_signed_half(lake):
    lake.write(pa.table({"u": pa.array([0, 4000000000, 7], pa.uint32())}))
    assert lake.check_all_keys("u") == 3
    assert lake.get(("u", "4000000000"))["u"].to_pylist() == [4000000000]
    assert lake.count(("u", "-294967296")) == 0    # the same 32 bits, read as signed


def test_b13_unsigned_64_bits(lake):
    lake.write(pa.table({"w": pa.array([0, 2**64 - 1, 2**63, 2**63 - 1], pa.uint64())}))
    assert lake.check_all_keys("w") == 4
    assert lake.count(("w", str(2**64 - 1))) == 1
    assert lake.count(("w", "-1")) == 0


@pytest.mark.parametrize("kind", [pa.uuid(), pa.binary(16)])
def test_b15_uuids_are_compared_as_sixteen_raw_bytes(lake, kind):
    ids = [uuid.UUID(int=i) for i in (0, 1, 2**127, 2**128 - 1, 0x00FF << 112, 0xFF00 << 112)]
    storage = pa.array([i.bytes for i in ids], pa.binary(16))
    column = pa.ExtensionArray.from_storage(kind, storage) if kind == pa.uuid() else storage
    lake.write(pa.table({"u": column, "n": pa.array(range(len(ids)))}))
    lake.create("u")
    for number, item in enumerate(ids):
        for text in (str(item), item.hex, str(item).upper(), "0x" + item.hex):
            assert lake.get(("u", text), columns=["n"])["n"].to_pylist() == [number], text


def test_b16_old_dates_are_the_stored_days(lake):
    """No Julian rebase: 0001-01-01 is day -719162 of the proleptic Gregorian calendar."""
    days = [-719162, -719164, -719163, -141428, -141427, 0, -1, -(2**31), 2**31 - 1]
    lake.write(pa.table({"d": pa.array(days, pa.int32()).view(pa.date32())}))
    assert lake.check_all_keys("d") == len(days)
    for text, day in [("0001-01-01", -719162), ("0000-12-30", -719164), ("1582-10-15", -141427),
                      ("1582-10-14", -141428)]:
        rows = lake.get(("d", text))["d"].combine_chunks().view(pa.int32()).to_pylist()
        assert rows == [day], text


def test_b16_instants_around_a_clock_change(lake):
    """Found by the stored UTC instant, whatever zone the text or the file names."""
    from datetime import datetime
    stamps = [datetime(2017, 10, 29, 0, 45), datetime(2017, 10, 29, 1, 0),
              datetime(2017, 10, 29, 1, 10)]
    lake.write(pa.table({"t": pa.array(stamps, pa.timestamp("us", "UTC")),
                         "n": pa.array([0, 1, 2])}))
    lake.create("t")
    for text, number in [("2017-10-29T00:45:00Z", 0), ("2017-10-29T02:45:00+02:00", 0),
                         ("2017-10-29T02:00:00+01:00", 1), ("2017-10-29 02:10:00+0100", 2)]:
        assert lake.get(("t", text))["n"].to_pylist() == [number], text
    assert lake.count(("t", "2017-10-29T02:45:00Z")) == 0


def test_b16_a_zone_is_part_of_the_type(lake):
    """A timestamp without a zone is not an instant: text with an offset is refused, and files
    that disagree are not indexed together."""
    from datetime import datetime
    stamp = [datetime(2024, 1, 1, 12)]
    lake.write(pa.table({"t": pa.array(stamp, pa.timestamp("us"))}))
    lake.create("t")
    assert lake.count(("t", "2024-01-01T12:00:00")) == 1
    with pytest.raises(grebe_cli.GrebeError) as error:
        lake.get(("t", "2024-01-01T13:00:00+01:00"))
    assert error.value.code == 2
    lake.write(pa.table({"t": pa.array(stamp, pa.timestamp("us", "UTC"))}), "g.parquet")
    with pytest.raises(grebe_cli.GrebeError) as error:
        lake.create("t", name="both")
    assert error.value.typed


def test_b16_int96_and_int64_of_the_same_instant(lake):
    from datetime import datetime
    stamps = pa.array([datetime(2024, 1, 1), datetime(1970, 1, 1), datetime(1700, 6, 1)],
                      pa.timestamp("ns"))
    lake.write(pa.table({"t": stamps}), "a.parquet", use_deprecated_int96_timestamps=True)
    lake.write(pa.table({"t": stamps}), "b.parquet")
    lake.write(pa.table({"t": stamps.cast(pa.timestamp("us"))}), "c.parquet")
    lake.create("t")
    assert lake.count(("t", "2024-01-01")) == 3
    assert lake.count(("t", "1700-06-01T00:00:00")) == 3
    assert lake.count(("t", "9999-12-31")) == 0
    assert lake.count(("t", "2024-01-01T00:00:00.000000001")) == 0


def test_b16_mixed_units_where_no_unit_holds_all_rows(lake):
    """Nanoseconds in one file, the year 9999 in another: found, or an error that says so; the
    other keys are not hurt."""
    from datetime import datetime
    lake.write(pa.table({"t": pa.array([1, 2], pa.int64()).view(pa.timestamp("ns"))}), "a.parquet")
    lake.write(pa.table({"t": pa.array([datetime(9999, 12, 31), datetime(1970, 1, 1)],
                                       pa.timestamp("us"))}), "b.parquet")
    lake.create("t")
    assert lake.count(("t", "1970-01-01T00:00:00.000000001")) == 1
    assert lake.count(("t", "1970-01-01")) == 1
    try:
        assert lake.count(("t", "9999-12-31")) == 1
    except grebe_cli.GrebeError as error:
        assert error.typed, error


def test_numbers_no_row_can_hold_are_absent(lake):
    """Not errors, and not rounded to a neighbour."""
    lake.write(pa.table({"i": pa.array([7, 8, 2**63 - 1], pa.int64())}))
    lake.create("i")
    for text in ("7.5", "9223372036854775808", "1e30", "-9223372036854775809"):
        assert lake.get(("i", text)).num_rows == 0, text
    assert lake.get(("i", "7.0"))["i"].to_pylist() == [7]
    many = lake.count(keys_text='{"i": 7.5}\n{"i": 7}\n{"i": 9223372036854775808}\n{"i": "1e30"}\n')
    assert many == [0, 1, 0, 0]


def test_floats_by_value(lake):
    import math
    column = pa.array([0.0, -0.0, math.nan, -math.nan, 0.1, None, math.inf], pa.float32())
    lake.write(pa.table({"f": column, "n": pa.array(range(7))}))
    lake.create("f")
    for text, rows in [("0", [0, 1]), ("-0.0", [0, 1]), ("nan", [2, 3]), ("0.1", [4]),
                       ("inf", [6]), ("-inf", [])]:
        assert lake.get(("f", text))["n"].to_pylist() == rows, text
    assert lake.get(nulls=["f"])["n"].to_pylist() == [5]
