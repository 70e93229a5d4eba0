"""Random tables: key type x encoding x codec x page version x page index x nesting x nulls.

make(folder, number, rng) writes one table and returns what it is. The key types take turns, so
that every one occurs; everything else is drawn.
"""

import dataclasses
import decimal
import math
import pathlib
import urllib.parse

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DICT = "RLE_DICTIONARY"
INTS = ["PLAIN", DICT, "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"]
NARROW = ["PLAIN", DICT, "DELTA_BINARY_PACKED"]
REALS = ["PLAIN", DICT, "BYTE_STREAM_SPLIT"]
BYTES = ["PLAIN", DICT, "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]
FIXED = ["PLAIN", DICT, "BYTE_STREAM_SPLIT", "DELTA_BYTE_ARRAY"]
CODECS = ["NONE", "SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4"]


@dataclasses.dataclass
class KeyKind:
    name: str
    kind: pa.DataType
    encodings: list
    write: dict = dataclasses.field(default_factory=dict)
    # Other physical forms that files of the same table may use for the same key.
    siblings: list = dataclasses.field(default_factory=list)


def key_kinds():
    ts = pa.timestamp
    return [
        KeyKind("int8", pa.int8(), INTS, siblings=[pa.int64()]),
        KeyKind("int16", pa.int16(), INTS),
        KeyKind("int32", pa.int32(), INTS, siblings=[pa.int64()]),
        KeyKind("int64", pa.int64(), INTS),
        KeyKind("uint8", pa.uint8(), INTS),
        KeyKind("uint16", pa.uint16(), INTS),
        KeyKind("uint32", pa.uint32(), INTS, siblings=[pa.int64()]),
        KeyKind("uint64", pa.uint64(), INTS),
        KeyKind("decimal9", pa.decimal128(9, 2), FIXED),
        KeyKind("decimal9_int", pa.decimal128(9, 2), NARROW, {"store_decimal_as_integer": True}),
        KeyKind("decimal18_int", pa.decimal128(18, 4), NARROW,
                {"store_decimal_as_integer": True}),
        KeyKind("decimal18_whole", pa.decimal128(18, 0), FIXED),
        KeyKind("decimal38", pa.decimal128(38, 10), FIXED),
        KeyKind("decimal76", pa.decimal256(76, 20), FIXED),
        KeyKind("string", pa.string(), BYTES),
        KeyKind("large_string", pa.large_string(), BYTES),
        KeyKind("string_view", pa.string_view(), BYTES),
        KeyKind("binary", pa.binary(), BYTES),
        KeyKind("fixed5", pa.binary(5), FIXED),
        KeyKind("fixed16", pa.binary(16), FIXED),
        KeyKind("uuid", pa.uuid(), FIXED),
        KeyKind("dictionary", pa.dictionary(pa.int32(), pa.string()), [DICT]),
        KeyKind("date32", pa.date32(), INTS),
        KeyKind("date64", pa.date64(), INTS),
        KeyKind("time_ms", pa.time32("ms"), INTS),
        KeyKind("time_us", pa.time64("us"), INTS),
        KeyKind("time_ns", pa.time64("ns"), INTS),
        KeyKind("ts_ms", ts("ms"), INTS, siblings=[ts("us")]),
        KeyKind("ts_us", ts("us"), INTS, siblings=[ts("ns")]),
        KeyKind("ts_ns", ts("ns"), INTS),
        KeyKind("ts_us_utc", ts("us", "UTC"), INTS),
        KeyKind("ts_ns_zone", ts("ns", "Asia/Tokyo"), INTS),
        KeyKind("int96", ts("ns"), ["PLAIN", DICT], {"use_deprecated_int96_timestamps": True}),
        KeyKind("bool", pa.bool_(), ["PLAIN", "RLE"]),
        KeyKind("float16", pa.float16(), REALS),
        KeyKind("float32", pa.float32(), REALS, siblings=[pa.float64()]),
        KeyKind("float64", pa.float64(), REALS),
    ]


def integer_bounds(kind):
    bits = kind.bit_width
    if pa.types.is_unsigned_integer(kind):
        return 0, 2**bits - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def extremes(kind):
    """Values at the edges of a type, as Python values or raw integers."""
    t = pa.types
    if t.is_dictionary(kind):
        return ["", "\U0001f41f", "a" * 300]
    if t.is_integer(kind):
        low, high = integer_bounds(kind)
        return [low, high, 0, low + 1, high - 1]
    if t.is_decimal(kind):
        top = decimal.Decimal(10**kind.precision - 1).scaleb(-kind.scale)
        return [top, -top, decimal.Decimal(0), decimal.Decimal(1).scaleb(-kind.scale)]
    if t.is_floating(kind):
        info = np.finfo(kind.to_pandas_dtype())
        return [0.0, -0.0, math.nan, math.inf, -math.inf, float(info.max), float(info.min),
                float(info.smallest_subnormal)]
    if t.is_boolean(kind):
        return [True, False]
    if t.is_date64(kind):
        return [-719162 * 86400000, 2932896 * 86400000, 0]
    if t.is_date32(kind):
        return [-(2**31), 2**31 - 1, 0, -1]
    if t.is_time(kind):
        per_day = 86400 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        return [0, per_day - 1]
    if t.is_timestamp(kind):
        edge = {"ms": 253402300799999, "us": 253402300799999999, "ns": 2**63 - 1}[kind.unit]
        low = {"ms": -62135596800000, "us": -62135596800000000, "ns": -(2**63) + 1}[kind.unit]
        return [0, -1, edge, low]
    if t.is_fixed_size_binary(kind) or isinstance(kind, pa.UuidType):
        width = 16 if isinstance(kind, pa.UuidType) else kind.byte_width
        return [b"\x00" * width, b"\xff" * width, b"A" * width]
    if t.is_binary(kind):
        return [b"", b"\x00", b"\xff", b"\\xFF", b"0x41", b"\x00" * 40]
    return ["", " ", "\u00e9", "\U0001f41f", "null", "a" * 300, "it's \"q\", \\ and \n"]


def draw(kind, rng):
    """One random value, mostly from a small range so that keys repeat."""
    t = pa.types
    if t.is_dictionary(kind):
        return f"d{rng.randrange(60)}"
    if t.is_integer(kind):
        low, high = integer_bounds(kind)
        return rng.randint(max(low, -50), min(high, 150)) if rng.random() < 0.5 else rng.randint(
            low, high)
    if t.is_decimal(kind):
        digits = rng.choice([2, 5, kind.precision])
        unscaled = rng.randint(-(10**digits) + 1, 10**digits - 1)
        return decimal.Decimal(unscaled).scaleb(-kind.scale)
    if t.is_floating(kind):
        value = rng.choice([rng.gauss(0, 1), float(rng.randint(-20, 20)), rng.random() * 1e4])
        return float(np.array(value).astype(kind.to_pandas_dtype()))
    if t.is_boolean(kind):
        return rng.random() < 0.3
    if t.is_date64(kind):
        return rng.randint(-1000, 20000) * 86400000
    if t.is_date32(kind):
        return rng.randint(-1000, 20000)
    if t.is_time(kind):
        per_day = 86400 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        return rng.randrange(per_day) if rng.random() < 0.5 else rng.randrange(24) * per_day // 24
    if t.is_timestamp(kind):
        per_second = {"ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        seconds = rng.randint(-(10**9), 2 * 10**9)
        return seconds * per_second + (rng.randrange(per_second) if rng.random() < 0.4 else 0)
    if t.is_fixed_size_binary(kind) or isinstance(kind, pa.UuidType):
        return rng.randbytes(16 if isinstance(kind, pa.UuidType) else kind.byte_width)
    if t.is_binary(kind):
        return rng.randbytes(rng.choice([1, 2, 8, 20, 40]))
    return rng.choice(["user-", "https://example.org/", "\u043a", ""]) + str(rng.randrange(5000))


def array_of(items, kind):
    """An array of the type; dates and times are given as raw integers."""
    t = pa.types
    if isinstance(kind, pa.UuidType):
        return pa.ExtensionArray.from_storage(kind, pa.array(items, pa.binary(16)))
    if t.is_dictionary(kind):
        return pa.array(items, pa.string()).dictionary_encode().cast(kind)
    if t.is_date32(kind) or (t.is_time(kind) and kind.bit_width == 32):
        return pa.array(items, pa.int32()).view(kind)
    if t.is_date64(kind) or t.is_time(kind) or t.is_timestamp(kind):
        return pa.array(items, pa.int64()).view(kind)
    if t.is_float16(kind):
        return pa.array([None if v is None else np.float16(v) for v in items], kind)
    return pa.array(items, kind)


def values_pool(kind, rng, size):
    pool = list(extremes(kind)) if rng.random() < 0.7 else []
    pool += [draw(kind, rng) for _ in range(size)]
    return pool


def key_items(kind, rng, rows, null_density, order):
    """The key column's values: repeated, in runs, or sorted."""
    pool = values_pool(kind, rng, max(1, rows // rng.choice([1, 2, 8, 40])))
    if order == "runs":
        items = []
        while len(items) < rows:
            items += [rng.choice(pool)] * rng.randint(1, 60)
        items = items[:rows]
    else:
        items = [rng.choice(pool) for _ in range(rows)]
    if order == "sorted":
        items.sort(key=lambda v: (str(type(v)), v) if v == v else ("", 0))
    return [None if rng.random() < null_density else v for v in items]


def nested_columns(rng, rows, null_density):
    """Columns of lists, structs, maps, lists of structs; some rows of hundreds of elements."""
    def maybe(value):
        return None if rng.random() < null_density else value

    def length():
        return rng.choice([0, 1, 2, 3, 7]) if rng.random() < 0.97 else rng.randint(100, 600)

    ints = [maybe([maybe(rng.randint(-9, 999)) for _ in range(length())]) for _ in range(rows)]
    structs = [maybe({"a": maybe(rng.randint(0, 9)), "b": maybe("x" * rng.randint(0, 9)),
                      "c": maybe({"d": maybe(rng.random())})}) for _ in range(rows)]
    items = [maybe([maybe({"n": rng.randint(0, 99), "t": maybe(f"t{rng.randrange(40)}"),
                           "l": maybe([maybe(rng.randint(0, 5))
                                       for _ in range(rng.randint(0, 3))])})
                    for _ in range(length())]) for _ in range(rows)]
    maps = [maybe([(f"k{i}", maybe(rng.random())) for i in range(length() % 50)])
            for _ in range(rows)]
    item = pa.struct([("n", pa.int32()), ("t", pa.string()), ("l", pa.list_(pa.int16()))])
    return {
        "v_list": pa.array(ints, pa.list_(pa.int32())),
        "v_struct": pa.array(structs, pa.struct([("a", pa.int8()), ("b", pa.string()),
                                                 ("c", pa.struct([("d", pa.float64())]))])),
        "v_items": pa.array(items, pa.list_(item)),
        "v_map": pa.array(maps, pa.map_(pa.string(), pa.float64())),
    }


def flat_columns(rng, rows, null_density, first_row):
    def maybe(value):
        return None if rng.random() < null_density else value
    strings = [maybe("s" * rng.choice([0, 1, 30, 200]) + str(rng.randrange(300)))
               for _ in range(rows)]
    return {
        "v_row": pa.array(range(first_row, first_row + rows), pa.int64()),
        "v_str": pa.array(strings, pa.string()),
        "v_real": pa.array([maybe(rng.choice([rng.random(), math.nan, -0.0])) for _ in range(rows)],
                           pa.float64()),
        "v_dec": pa.array([maybe(decimal.Decimal(rng.randint(-999, 999)).scaleb(-2))
                           for _ in range(rows)], pa.decimal128(20, 2)),
        "v_ts": pa.array([maybe(rng.randint(0, 10**15)) for _ in range(rows)],
                         pa.int64()).view(pa.timestamp("us", "UTC")),
        "v_bool": pa.array([maybe(rng.random() < 0.5) for _ in range(rows)], pa.bool_()),
        "v_dict": pa.array([maybe(f"c{rng.randrange(20)}") for _ in range(rows)],
                           pa.string()).dictionary_encode(),
        "v_none": pa.nulls(rows, pa.int32()),
    }


@dataclasses.dataclass
class Table:
    folder: pathlib.Path
    key: list            # dotted paths
    spec: dict           # for people: how it was made


def writer_options(rng, kind, key_leaf, spec):
    encoding = rng.choice(kind.encodings)
    spec["encoding"] = encoding
    spec["codec"] = rng.choice(CODECS)
    spec["page_version"] = rng.choice(["1.0", "2.0"])
    spec["page_index"] = rng.random() < 0.5
    spec["page_bytes"] = rng.choice([64, 256, 1024, 8192, 1 << 20])
    spec["crc"] = rng.random() < 0.3
    spec["fallback"] = encoding == DICT and rng.random() < 0.4
    spec["statistics"] = rng.random() < 0.7
    spec["store_schema"] = rng.random() < 0.8
    options = {
        "compression": spec["codec"], "data_page_version": spec["page_version"],
        "write_page_index": spec["page_index"], "data_page_size": spec["page_bytes"],
        "write_page_checksum": spec["crc"], "write_statistics": spec["statistics"],
        "store_schema": spec["store_schema"],
        "write_batch_size": rng.choice([1, 7, 50, 1024]), **kind.write}
    if rng.random() < 0.5:
        spec["page_rows"] = options["max_rows_per_page"] = rng.choice([1, 10, 100])
    if spec["fallback"]:
        options["dictionary_pagesize_limit"] = rng.choice([32, 200, 2000])
    if encoding == DICT:
        options["use_dictionary"] = True
    else:
        options["use_dictionary"] = ["v_str", "v_ts"]
        options["column_encoding"] = {key_leaf: encoding}
    return options


def make(folder, number, rng):
    kinds = key_kinds()
    kind = kinds[number % len(kinds)]
    null_density = rng.choice([0, 0, 0.1, 0.6, 1.0 if rng.random() < 0.2 else 0.02])
    spec = {"table": number, "key": kind.name, "nulls": null_density,
            "nested": rng.random() < 0.5, "shape": rng.choice(["top", "top", "struct", "pair"]),
            "order": rng.choice(["random", "runs", "sorted"]), "hive": rng.random() < 0.25,
            "files": rng.choice([1, 1, 2, 3, 6]), "writer": "pyarrow"}
    if kind.siblings and rng.random() < 0.5:
        spec["files"] = max(2, spec["files"])
        spec["mixed"] = True
    if spec["shape"] == "struct":
        spec["shape_key"] = "s.k"
    key = {"top": ["k"], "struct": ["s.k"], "pair": ["k", "k2"]}[spec["shape"]]
    if spec["hive"] and spec["shape"] == "top" and rng.random() < 0.4:
        key = ["part", "k"]
    options = writer_options(rng, kind, key[-1] if spec["shape"] == "struct" else "k", spec)
    if (spec["shape"] == "top" and not spec["nested"] and not spec.get("mixed")
            and not kind.write and kind.name in ("int32", "int64", "string", "float64", "ts_us",
                                                 "decimal18_int", "date32", "uint64", "bool",
                                                 "int8", "float32", "ts_us_utc")
            and rng.random() < 0.4):
        spec["writer"] = "duckdb"
    rows_total = rng.choice([60, 400, 1500, 3000])
    write_files(pathlib.Path(folder), kind, rng, spec, options, rows_total)
    return Table(pathlib.Path(folder), key, spec)


def file_folder(rng, spec, number):
    """The Hive folder of a file, or nothing."""
    if not spec["hive"]:
        return ""
    spec.setdefault("partition_style", rng.choice(["int", "date", "text"]))
    text = {"int": str(number % 3), "date": f"2026-01-0{1 + number % 3}",
            "text": ["a b", "x=1&%/y", "\u00e9"][number % 3]}[spec["partition_style"]]
    if number % 5 == 4:
        return "part=__HIVE_DEFAULT_PARTITION__"
    return "part=" + urllib.parse.quote(text, safe="")


def write_files(folder, kind, rng, spec, options, rows_total):
    row = 0
    for number in range(spec["files"]):
        rows = rows_total // spec["files"] + rng.randint(0, 20)
        if number > 0 and rng.random() < 0.1:
            rows = 0
        own = kind.kind
        if spec.get("mixed") and number % 2 == 1:
            own = rng.choice(kind.siblings)
        items = key_items(kind.kind, rng, rows, spec["nulls"], spec["order"])
        if spec.get("mixed") and pa.types.is_timestamp(own):
            # The rows' common unit is the finer one: only values that it holds.
            limit = (2**63 - 1) // 1000
            factor = 1 if own is kind.kind else 1000
            items = [None if v is None or abs(v) > limit else v * factor for v in items]
        keys = array_of(items, own)
        columns = {}
        if spec["shape"] == "struct":
            mask = pa.array([rng.random() < spec["nulls"] / 2 for _ in range(rows)], pa.bool_())
            extra = pa.array([rng.randint(0, 99) for _ in range(rows)], pa.int32())
            columns["s"] = pa.StructArray.from_arrays(
                [keys, extra], fields=[pa.field("k", own), pa.field("other", pa.int32())],
                mask=mask)
        else:
            columns["k"] = keys
        if spec["shape"] == "pair":
            texts = ["", "a", "b\u00e9"]
            columns["k2"] = pa.array([None if rng.random() < 0.1 else rng.choice(texts)
                                      for _ in range(rows)], pa.string())
        columns.update(flat_columns(rng, rows, min(spec["nulls"], 0.7), row))
        if spec["nested"]:
            columns.update(nested_columns(rng, rows, min(spec["nulls"], 0.5)))
        table = pa.table(columns)
        where = folder / file_folder(rng, spec, number)
        where.mkdir(parents=True, exist_ok=True)
        path = where / f"f{number}.parquet"
        group_rows = rng.choice([rows + 1, max(1, rows // 3), 97])
        if spec["writer"] == "duckdb":
            write_duckdb(table, path, spec, max(group_rows, 1))
        else:
            try:
                write_pyarrow(table, path, options, group_rows, rng)
            except pa.ArrowNotImplementedError:   # pyarrow cannot cut some views into pages
                write_pyarrow(without_views(table), path, options, group_rows, rng)
        row += rows


def without_views(table):
    def plain(kind):
        if pa.types.is_struct(kind):
            return pa.struct([field.with_type(plain(field.type)) for field in kind])
        return {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(kind, kind)

    return table.cast(pa.schema([field.with_type(plain(field.type)) for field in table.schema]))


def write_pyarrow(table, path, options, group_rows, rng):
    options = dict(options)
    flat = set(table.schema.names)
    if isinstance(options.get("use_dictionary"), list):
        options["use_dictionary"] = [c for c in options["use_dictionary"] if c in flat]
    with pq.ParquetWriter(path, table.schema, **options) as writer:
        if rng.random() < 0.1:
            writer.write_table(table.slice(0, 0), row_group_size=1)   # an empty row group
        writer.write_table(table, row_group_size=group_rows)


def write_duckdb(table, path, spec, group_rows):
    spec["codec"] = "ZSTD"
    spec["encoding"] = "duckdb"
    version = "V2" if spec["page_version"] == "2.0" else "V1"
    connection = duckdb.connect()
    plain = table.set_column(table.schema.names.index("v_dict"), "v_dict",
                             table["v_dict"].cast(pa.string()))
    connection.register("t", plain)
    connection.execute(f"COPY t TO '{path}' (FORMAT parquet, COMPRESSION zstd, "
                       f"PARQUET_VERSION {version}, ROW_GROUP_SIZE {group_rows})")
