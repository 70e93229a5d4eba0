"""Compares tables column for column, bit for bit: types, nulls, NaN, the sign of zero."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def one_array(column):
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks == 0:
            return pa.nulls(0, column.type)   # pa.array makes no extension types inside others
        combined = column.combine_chunks()
        return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined
    return column


def bits(array):
    """A float array's valid values as integers."""
    width = {16: (np.float16, np.uint16), 32: (np.float32, np.uint32), 64: (np.float64, np.uint64)}
    as_float, as_int = width[array.type.bit_width]
    values = array.drop_null().to_numpy(zero_copy_only=False).astype(as_float, copy=False)
    return values.view(as_int)


def same(a, b):
    """Whether two arrays hold the same values of the same type."""
    if a.type != b.type or len(a) != len(b):
        return False
    if len(a) == 0:
        return True
    t, kind = pa.types, a.type
    if isinstance(kind, pa.BaseExtensionType):
        return same(a.storage, b.storage)
    if t.is_dictionary(kind):
        return same(a.dictionary_decode(), b.dictionary_decode())
    if t.is_floating(kind):
        return a.is_null().equals(b.is_null()) and np.array_equal(bits(a), bits(b))
    if not (t.is_nested(kind)):
        return a.equals(b)
    if not a.is_null().equals(b.is_null()):
        return False
    if t.is_struct(kind):
        return all(same(x, y) for x, y in zip(a.flatten(), b.flatten()))
    if t.is_map(kind):
        a, b = as_list(a), as_list(b)
    if not pc.list_value_length(a).equals(pc.list_value_length(b)):
        return False
    return same(a.flatten(), b.flatten())


def as_list(array):
    """A map as the list of structs it is stored as."""
    kind = pa.list_(pa.struct([pa.field("key", array.type.key_type, nullable=False),
                               pa.field("value", array.type.item_type)]))
    return array.cast(kind)


def difference(expected, got):
    """None when the tables are the same, else what differs (short)."""
    if expected.schema.names != got.schema.names:
        return f"columns {got.schema.names}, expected {expected.schema.names}"
    for i, field in enumerate(expected.schema):
        if got.schema.field(i).type != field.type:
            return f"column {field.name}: type {got.schema.field(i).type}, expected {field.type}"
    if expected.num_rows != got.num_rows:
        return f"{got.num_rows} rows, expected {expected.num_rows}"
    for i, name in enumerate(expected.schema.names):
        a, b = one_array(expected.column(i)), one_array(got.column(i))
        if not same(a, b):
            return f"column {name}: " + first_difference(a, b)
    return None


def first_difference(a, b):
    for row in range(len(a)):
        if not same(a.slice(row, 1), b.slice(row, 1)):
            return (f"row {row}: {str(b[row])[:200]!s}, expected {str(a[row])[:200]!s}")
    return "differ"
