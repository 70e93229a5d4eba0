"""Random tables of every type that the writer takes, and predicates on their columns."""

import dataclasses
import datetime
import decimal
import math
import string
import uuid

import pyarrow as pa

ALPHABET = list(string.ascii_lowercase) + ["é", "ß", "\ud7ff", "\uffff", "\U0001f41f", "\U0010ffff"]
PREFIX = "https://lake.example/a/rather/long/path/that/every/value/begins/with/"


@dataclasses.dataclass
class Column:
    name: str
    kind: pa.DataType
    make: object              # rng -> one value that is not null
    bloom: bool = True
    # Predicates on it: None, or (column path, how its literals are written)
    literal: str = ""


def text(rng):
    size = rng.choice([0, 1, 3, 8, 70, 200])
    body = "".join(rng.choice(ALPHABET) for _ in range(rng.randint(0, size)))
    return (PREFIX if rng.random() < 0.4 else "") + body


def ascii_text(rng):
    return rng.choice(["", "a", "b" * 70]) + "".join(rng.choice("abcxyz") for _ in range(3))


def number(bits, signed=True):
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)

    def make(rng):
        if rng.random() < 0.1:
            return rng.choice([low, high, 0])
        return rng.randint(max(low, -500), min(high, 500))
    return make


def real(rng):
    if rng.random() < 0.15:
        return rng.choice([0.0, -0.0, math.nan, math.inf, -math.inf])
    return rng.randint(-1000, 1000) / 8


def digits(precision, scale):
    def make(rng):
        size = rng.randint(1, precision)
        value = rng.randint(-(10 ** size) + 1, 10 ** size - 1)
        return decimal.Decimal(value).scaleb(-scale, decimal.Context(prec=100))
    return make


def moment(rng):
    since = datetime.timedelta(milliseconds=rng.randint(-10**11, 10**11))
    return datetime.datetime(2026, 1, 1) + since


def day(rng):
    return datetime.date(2026, 1, 1) + datetime.timedelta(days=rng.randint(-40000, 40000))


def octets(size):
    def make(rng):
        length = size if size is not None else rng.choice([0, 1, 5, 100])
        return bytes(rng.choice([0, 1, 127, 128, 255]) for _ in range(length))
    return make


def flat_columns():
    return [
        Column("i8", pa.int8(), number(8), literal="number"),
        Column("i16", pa.int16(), number(16), literal="number"),
        Column("i32", pa.int32(), number(32), literal="number"),
        Column("i64", pa.int64(), number(64), literal="number"),
        Column("u8", pa.uint8(), number(8, False), literal="number"),
        Column("u16", pa.uint16(), number(16, False), literal="number"),
        Column("u32", pa.uint32(), number(32, False), literal="number"),
        Column("u64", pa.uint64(), number(64, False), literal="number"),
        Column("f32", pa.float32(), real, literal="real"),
        Column("f64", pa.float64(), real, literal="real"),
        Column("f16", pa.float16(), real),
        Column("b", pa.bool_(), lambda rng: rng.random() < 0.5, bloom=False, literal="bool"),
        Column("s", pa.string(), text, literal="text"),
        Column("ascii", pa.string(), ascii_text, literal="text"),
        Column("large_s", pa.large_string(), text, literal="text"),
        Column("view_s", pa.string_view(), ascii_text, literal="text"),
        Column("dict_s", pa.dictionary(pa.int32(), pa.string()), ascii_text, literal="text"),
        Column("bin", pa.binary(), octets(None), literal="bytes"),
        Column("fixed", pa.binary(6), octets(6)),
        Column("uuid", pa.uuid(), lambda rng: uuid.UUID(int=rng.getrandbits(128)).bytes),
        Column("dec9", pa.decimal128(9, 2), digits(9, 2), literal="decimal"),
        Column("dec18", pa.decimal128(18, 4), digits(18, 4), literal="decimal"),
        Column("dec38", pa.decimal128(38, 10), digits(38, 10), literal="decimal"),
        Column("dec76", pa.decimal256(76, 20), digits(76, 20)),
        Column("date", pa.date32(), day, literal="date"),
        Column("time", pa.time64("us"), lambda rng: rng.randint(0, 86_399_999_999)),
        Column("ts_ms", pa.timestamp("ms"), moment, literal="time"),
        Column("ts_us", pa.timestamp("us"), moment, literal="time"),
        Column("ts_ns", pa.timestamp("ns"), moment, literal="time"),
        Column("ts_utc", pa.timestamp("us", tz="UTC"), moment),
        Column("nothing", pa.null(), lambda rng: None, bloom=False),
    ]


def nested_columns():
    pair = pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.string())])

    def make_pair(rng):
        return {"x": maybe(rng, number(32)), "y": maybe(rng, ascii_text)}

    def listed(make):
        return lambda rng: [maybe(rng, make) for _ in range(rng.choice([0, 0, 1, 2, 7]))]

    def mapped(make):
        return lambda rng: [(f"k{i}", maybe(rng, make)) for i in range(rng.choice([0, 1, 3]))]

    deep = pa.struct([pa.field("p", pair), pa.field("l", pa.list_(pa.list_(pa.int64())))])
    return [
        Column("st", pair, make_pair),
        Column("l_i", pa.list_(pa.int64()), listed(number(64))),
        Column("l_s", pa.list_(pa.string()), listed(ascii_text)),
        Column("ll_i", pa.list_(pa.list_(pa.int32())), listed(listed(number(32)))),
        Column("l_st", pa.list_(pair), listed(make_pair)),
        Column("m", pa.map_(pa.string(), pa.int64()), mapped(number(64))),
        Column("m_st", pa.map_(pa.string(), pair), mapped(make_pair)),
        Column("deep", deep, lambda rng: {"p": maybe(rng, make_pair),
                                          "l": maybe(rng, listed(listed(number(64))))}),
        Column("l_dec", pa.list_(pa.decimal128(12, 3)), listed(digits(12, 3))),
    ]


def maybe(rng, make, chance=0.2):
    return None if rng.random() < chance else make(rng)


def array_of(column, values):
    if isinstance(column.kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(
            column.kind, pa.array(values, column.kind.storage_type))
    if pa.types.is_dictionary(column.kind):
        return pa.array(values, column.kind.value_type).dictionary_encode()
    return pa.array(values, column.kind)


def sort_key(value):
    if isinstance(value, float) and math.isnan(value):
        return (1, 0)
    return (0, value)


def make(rng, rows):
    """A table: `row`, and some columns of every kind, some of them sorted. Returns it and its
    columns."""
    flat, nested = flat_columns(), nested_columns()
    if rng.random() < 0.8:      # Arrow's own filters do not know views
        flat = [column for column in flat if column.name != "view_s"]
    columns = rng.sample(flat, rng.randint(6, 14)) + rng.sample(nested, rng.randint(1, 5))
    data = {"row": pa.array(range(rows), pa.int64())}
    for column in columns:
        nulls = rng.choice([0, 0, 0.1, 0.6, 1])
        pool = None
        if rng.random() < 0.4:      # values that repeat
            pool = [column.make(rng) for _ in range(rng.choice([1, 5, 40]))]
        values = [rng.choice(pool) if pool else column.make(rng) for _ in range(rows)]
        if column in flat and column.name != "nothing" and rng.random() < 0.5:
            values.sort(key=sort_key, reverse=rng.random() < 0.2)
        if column.literal == "real" and rng.random() < 0.7:   # zeros of one sign only
            zero = rng.choice([0.0, -0.0])
            values = [zero if value == 0 else value for value in values]
        values = [None if rng.random() < nulls else value for value in values]
        data[column.name] = array_of(column, values)
    return pa.table(data), columns
