"""Other writers' files: footers and page indexes changed so that what they say is missing,
shortened, wide, contradictory or in another order; the rows stay as they were. Each change is one
that a reader must bear: it either is legal, or contradicts something that can be seen.
"""

import struct

import pyarrow as pa
import pyarrow.parquet as pq

from common import thrift

# Field numbers of parquet.thrift.
STATISTICS = 12
MAX, MIN, NULL_COUNT, DISTINCT, MAX_VALUE, MIN_VALUE, MAX_EXACT, MIN_EXACT = range(1, 9)
COLUMN_ORDERS = 7
FIXED_BYTES = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}


class File:
    """A file taken apart; changes are kept by save()."""

    def __init__(self, path):
        self.path = path
        self.schema = pq.ParquetFile(path).schema
        self.data, self.footer = thrift.split(path)
        self.data = bytearray(self.data)

    def chunks(self):
        """(leaf's schema, ColumnChunk) of every chunk."""
        for group in thrift.row_groups(self.footer):
            for leaf, chunk in enumerate(group.at(1).items):
                yield self.schema.column(leaf), chunk

    def statistics(self):
        for leaf, chunk in self.chunks():
            statistics = chunk.at(3).at(STATISTICS)
            if statistics is not None:
                yield leaf, chunk, statistics

    def column_indexes(self):
        """(leaf's schema, ColumnChunk, ColumnIndex)."""
        for leaf, chunk in self.chunks():
            if chunk.at(6) is None or chunk.at(4) is None:
                continue
            try:
                index = thrift.Reader(bytes(self.data), chunk.at(6)).struct()
            except ValueError:   # another change has it point elsewhere
                continue
            yield leaf, chunk, index

    def put_column_index(self, chunk, index):
        body = thrift.encode(index)
        chunk.set(6, len(self.data), thrift.I64)
        chunk.set(7, len(body), thrift.I32)
        self.data += body

    def save(self):
        thrift.join(self.path, bytes(self.data), self.footer)


def swap_bounds(file, rng):
    for _, _, statistics in file.statistics():
        low, high = statistics.at(MIN_VALUE), statistics.at(MAX_VALUE)
        if low is not None and high is not None and low != high:
            statistics.set(MIN_VALUE, high)
            statistics.set(MAX_VALUE, low)


def nan_bounds(file, rng):
    for leaf, _, statistics in file.statistics():
        nan = {"FLOAT": struct.pack("<f", float("nan")),
               "DOUBLE": struct.pack("<d", float("nan"))}.get(leaf.physical_type)
        if nan is None and leaf.logical_type.type == "FLOAT16":
            nan = b"\x00\x7e"
        if nan is None or statistics.at(MIN_VALUE) is None:
            continue
        for field in rng.choice([(MIN_VALUE,), (MAX_VALUE,), (MIN_VALUE, MAX_VALUE)]):
            statistics.set(field, nan)


def drop_null_counts(file, rng):
    for _, _, statistics in file.statistics():
        statistics.set(NULL_COUNT, None)


def impossible_null_counts(file, rng):
    for _, _, statistics in file.statistics():
        if statistics.at(NULL_COUNT) is not None:
            statistics.set(NULL_COUNT, rng.choice([-1, 2**40]))


def drop_one_bound(file, rng):
    for _, _, statistics in file.statistics():
        drop = rng.choice([MIN_VALUE, MAX_VALUE])
        statistics.set(drop, None)
        statistics.set(drop - 4, None)   # the deprecated twin


def drop_bounds(file, rng):
    for _, _, statistics in file.statistics():
        for field in (MIN, MAX, MIN_VALUE, MAX_VALUE):
            statistics.set(field, None)


def short_bounds(file, rng):
    """Byte strings cut short, as the format allows: min downwards, max upwards."""
    for leaf, _, statistics in file.statistics():
        if leaf.physical_type != "BYTE_ARRAY" or leaf.logical_type.type == "DECIMAL":
            continue
        low, high = statistics.at(MIN_VALUE), statistics.at(MAX_VALUE)
        if low is not None and len(low) > 1:
            statistics.set(MIN_VALUE, low[:rng.randint(0, len(low) - 1)])
            statistics.set(MIN_EXACT, False, thrift.BOOL_FALSE)
        if high is not None and len(high) > 1:
            cut = bytearray(high[:rng.randint(1, len(high) - 1)])
            while cut and cut[-1] == 0xFF:
                cut.pop()
            if cut:
                cut[-1] += 1
                statistics.set(MAX_VALUE, bytes(cut))
                statistics.set(MAX_EXACT, False, thrift.BOOL_FALSE)


def odd_bounds(file, rng):
    """Bytes that are no value of the type: they say nothing."""
    for leaf, _, statistics in file.statistics():
        if leaf.physical_type in FIXED_BYTES and statistics.at(MIN_VALUE) is not None:
            statistics.set(rng.choice([MIN_VALUE, MAX_VALUE]), rng.choice([b"", b"\x07\x07"]))


def unknown_order(file, rng):
    """An order that no reader of today knows: field 9 of the union."""
    orders = file.footer.at(COLUMN_ORDERS)
    if orders is None:
        return
    for i in range(len(orders.items)):
        orders.items[i] = thrift.Struct([thrift.Field(9, thrift.STRUCT, thrift.Struct())])
    for _, _, statistics in file.statistics():   # and so these may be anything
        low, high = statistics.at(MIN_VALUE), statistics.at(MAX_VALUE)
        if low is not None and high is not None:
            statistics.set(MIN_VALUE, high)
            statistics.set(MAX_VALUE, high)


def signed_order(file, rng):
    """An old writer: no column order, deprecated fields, bytes compared as signed ones."""
    file.footer.set(COLUMN_ORDERS, None)
    for leaf, chunk, statistics in file.statistics():
        low, high = statistics.at(MIN_VALUE), statistics.at(MAX_VALUE)
        statistics.set(MIN_VALUE, None)
        statistics.set(MAX_VALUE, None)
        statistics.set(MIN, None)
        statistics.set(MAX, None)
        if low is None or high is None:
            continue
        # Two of the values, as some other order may choose them: wrong for a reader that trusts
        # them. Signed numbers were right then too.
        is_bytes = leaf.physical_type in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
        unsigned = "signed=false" in str(leaf.logical_type).lower()
        if is_bytes or unsigned:
            low, high = (low, low) if rng.random() < 0.5 else (high, high)
        statistics.set(MIN, low, thrift.BINARY)
        statistics.set(MAX, high, thrift.BINARY)
        chunk.set(6, None)   # such writers had no page index
        chunk.set(7, None)


def index_of_other_length(file, rng):
    for _, chunk, index in file.column_indexes():
        for field in (1, 2, 3, 5):
            if index.at(field) is not None and index.at(field).items:
                index.at(field).items.pop()
        file.put_column_index(chunk, index)


def index_that_claims_an_order(file, rng):
    """Ascending, of pages that are not: the bounds are turned round."""
    for _, chunk, index in file.column_indexes():
        lows, highs = index.at(2).items, index.at(3).items
        if len(set(lows)) < 2 or index.at(4) != 1:
            continue
        lows.reverse()
        highs.reverse()
        index.at(1).items.reverse()
        index.set(5, None)
        file.put_column_index(chunk, index)


def index_with_false_null_pages(file, rng):
    """Pages of values called pages of nulls; the statistics or the null counts know better."""
    for leaf, chunk, index in file.column_indexes():
        statistics = chunk.at(3).at(STATISTICS)
        known = (statistics is not None and statistics.at(NULL_COUNT) == 0
                 and leaf.max_definition_level <= 1)
        pages = [i for i, null in enumerate(index.at(1).items) if not null]
        if not pages or not (known or index.at(5) is not None):
            continue
        for page in rng.sample(pages, rng.randint(1, len(pages))):
            index.at(1).items[page] = True
            index.at(2).items[page] = index.at(3).items[page] = b""
        if known and rng.random() < 0.5:
            index.set(5, None)
        file.put_column_index(chunk, index)


def index_with_empty_bounds(file, rng):
    """Pages not called null whose bounds are empty: of a fixed width, that is no value."""
    for leaf, chunk, index in file.column_indexes():
        if leaf.physical_type not in FIXED_BYTES:
            continue
        for page in range(len(index.at(1).items)):
            if index.at(1).items[page] or rng.random() < 0.3:
                index.at(1).items[page] = False
                index.at(2).items[page] = index.at(3).items[page] = b""
        index.set(4, 0)
        file.put_column_index(chunk, index)


def index_inverted(file, rng):
    for _, chunk, index in file.column_indexes():
        lows, highs = index.at(2).items, index.at(3).items
        if all(low == high for low, high in zip(lows, highs)):
            continue
        index.at(2).items, index.at(3).items = highs, lows
        index.set(4, 0)
        file.put_column_index(chunk, index)


def index_of_another_column(file, rng):
    """Offsets that lead to the bytes of something else."""
    for _, chunk, _ in list(file.column_indexes()):
        chunk.set(6, chunk.at(6) + rng.choice([1, 3, 11]))


VARIANTS = [swap_bounds, nan_bounds, drop_null_counts, impossible_null_counts, drop_one_bound,
            drop_bounds, short_bounds, odd_bounds, unknown_order, signed_order,
            index_of_other_length, index_that_claims_an_order, index_with_false_null_pages,
            index_with_empty_bounds, index_inverted, index_of_another_column]


def apply(path, variant, rng):
    file = File(path)
    variant(file, rng)
    file.save()
