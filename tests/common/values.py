"""Values of key columns: compared by value, and written as text the way a user writes them.

Independent of the engine: everything goes through Python's own integers, Decimal and floats.
"""

import base64
import decimal
import json
import math
import uuid

import numpy as np
import pyarrow as pa

decimal.getcontext().prec = 100

NAN = "nan"
UNIT_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def storage(array):
    """The array without dictionary and extension."""
    if isinstance(array, pa.ChunkedArray) and array.num_chunks == 0:
        array = pa.nulls(0, array.type)   # pyarrow cannot join no chunks of some extension types
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    while True:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        elif pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        else:
            return array


def storage_type(kind):
    while True:
        if isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        elif pa.types.is_dictionary(kind):
            kind = kind.value_type
        else:
            return kind


def is_key_type(kind):
    kind = storage_type(kind)
    t = pa.types
    return (t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) or t.is_boolean(kind)
            or t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind)
            or t.is_binary(kind) or t.is_large_binary(kind) or t.is_binary_view(kind)
            or t.is_fixed_size_binary(kind) or t.is_date(kind) or t.is_time(kind)
            or t.is_timestamp(kind) or t.is_duration(kind))


def identities(array):
    """One hashable per row; equal for equal keys, across physical forms. None is null."""
    array = storage(array)
    kind = array.type
    t = pa.types
    if t.is_floating(kind):
        wide = array.cast(pa.float64()).to_pylist()
        return [v if v is None else NAN if math.isnan(v) else v + 0.0 for v in wide]
    if t.is_timestamp(kind):
        scale = UNIT_NS[kind.unit]
        return [None if v is None else v * scale for v in array.view(pa.int64()).to_pylist()]
    if t.is_time(kind):
        scale = UNIT_NS[kind.unit]
        raw = array.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist()
        return [None if v is None else v * scale for v in raw]
    if t.is_date32(kind):
        return array.view(pa.int32()).to_pylist()
    if t.is_date64(kind):
        return [None if v is None else v // 86400000 for v in array.view(pa.int64()).to_pylist()]
    if t.is_duration(kind):
        return array.view(pa.int64()).to_pylist()
    if t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind):
        return array.cast(pa.large_binary()).to_pylist()
    return array.to_pylist()


def civil(days):
    """(year, month, day) of days since 1970-01-01, for any year."""
    days += 719468
    era, day_of_era = divmod(days, 146097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524
                   - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + era * 400 + (month <= 2), month, day


def date_text(days):
    year, month, day = civil(days)
    sign = "-" if year < 0 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"


def time_text(ns):
    seconds, ns = divmod(ns, 10**9)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return text + (f".{ns:09d}" if ns else "")


def timestamp_text(ns, utc):
    days, rest = divmod(ns, 86400 * 10**9)
    return date_text(days) + "T" + time_text(rest) + ("Z" if utc else "")


def text_of(identity, kind, rng=None):
    """The text a user writes for a value; None for null."""
    kind = storage_type(kind)
    t = pa.types
    if identity is None:
        return None
    if t.is_boolean(kind):
        return "true" if identity else "false"
    if t.is_floating(kind):
        if identity == NAN:
            return "nan"
        if math.isinf(identity):
            return "inf" if identity > 0 else "-inf"
        if t.is_float32(kind):
            return str(np.float32(identity))
        return repr(identity)
    if t.is_decimal(kind):
        return format(identity, "f")
    if t.is_date(kind):
        return date_text(identity)
    if t.is_time(kind):
        return time_text(identity)
    if t.is_timestamp(kind):
        return timestamp_text(identity, kind.tz is not None)
    if isinstance(identity, bytes):
        if t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind):
            return identity.decode("utf-8", "surrogateescape")
        if t.is_fixed_size_binary(kind) and kind.byte_width == 16 and (rng is None
                                                                       or rng.random() < 0.5):
            return str(uuid.UUID(bytes=identity))
        if rng is not None and rng.random() < 0.3:
            return "base64:" + base64.b64encode(identity).decode()
        return "0x" + identity.hex()
    return str(identity)


def json_line(names, texts, kinds):
    """One key as a JSON object; numbers and booleans bare."""
    parts = []
    for name, text, kind in zip(names, texts, kinds):
        kind = storage_type(kind)
        bare = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or (
            pa.types.is_floating(kind) and text not in (None, "nan", "inf", "-inf"))
        value = "null" if text is None else text if bare else json.dumps(text)
        parts.append(json.dumps(name) + ": " + value)
    return "{" + ", ".join(parts) + "}\n"


def csv_text(names, rows):
    """Keys as CSV with a header; null is an empty unquoted field."""
    def field(text):
        return "" if text is None else '"' + text.replace('"', '""') + '"'
    lines = [",".join(field(name) for name in names)]
    lines += [",".join(field(text) for text in row) for row in rows]
    return "\n".join(lines) + "\n"
