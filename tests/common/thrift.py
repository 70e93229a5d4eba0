"""Thrift's compact protocol, just enough to take a Parquet footer or page header apart, change it
and put it together again. A struct is a list of Field, in order; values are ints, bytes, floats,
bools, lists (List) and structs.

    data, footer = split(path)          # bytes before the footer, the footer's struct
    column = footer.at(4).items[0].at(1).items[0].at(3)      # ColumnMetaData
    column.set(11, None)                # drop dictionary_page_offset
    join(path, data, footer)
"""

import dataclasses
import struct

BOOL_TRUE, BOOL_FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)


@dataclasses.dataclass
class Field:
    id: int
    kind: int
    value: object


@dataclasses.dataclass
class List:
    kind: int
    items: list


class Struct:
    def __init__(self, fields=()):
        self.fields = list(fields)

    def at(self, field_id, default=None):
        for field in self.fields:
            if field.id == field_id:
                return field.value
        return default

    def set(self, field_id, value, kind=None):
        """Changes, adds (kind needed) or, with None, drops a field."""
        for field in list(self.fields):
            if field.id == field_id:
                if value is None:
                    self.fields.remove(field)
                else:
                    field.value = value
                    if field.kind in (BOOL_TRUE, BOOL_FALSE):
                        field.kind = BOOL_TRUE if value else BOOL_FALSE
                return
        if value is not None:
            self.fields.append(Field(field_id, kind, value))
            self.fields.sort(key=lambda f: f.id)

    def copy(self):
        return Reader(encode(self)).struct()


class Reader:
    def __init__(self, data, at=0):
        self.data = data
        self.at = at

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def zigzag(self):
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def value(self, kind):
        if kind in (BOOL_TRUE, BOOL_FALSE):
            return kind == BOOL_TRUE
        if kind == BYTE:
            return self.byte()
        if kind in (I16, I32, I64):
            return self.zigzag()
        if kind == DOUBLE:
            self.at += 8
            return struct.unpack("<d", self.data[self.at - 8:self.at])[0]
        if kind == BINARY:
            size = self.varint()
            self.at += size
            return self.data[self.at - size:self.at]
        if kind in (LIST, SET):
            head = self.byte()
            size, item = head >> 4, head & 15
            if size == 15:
                size = self.varint()
            if item in (BOOL_TRUE, BOOL_FALSE):
                return List(item, [self.byte() == 1 for _ in range(size)])
            return List(item, [self.value(item) for _ in range(size)])
        if kind == STRUCT:
            return self.struct()
        raise ValueError(f"thrift type {kind}")

    def struct(self):
        out, last = Struct(), 0
        while True:
            head = self.byte()
            if head == 0:
                return out
            last = last + (head >> 4) if head >> 4 else self.zigzag()
            out.fields.append(Field(last, head & 15, self.value(head & 15)))


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(value):
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def encode_value(kind, value):
    if kind == BYTE:
        return bytes([value])
    if kind in (I16, I32, I64):
        return zigzag(value)
    if kind == DOUBLE:
        return struct.pack("<d", value)
    if kind == BINARY:
        return varint(len(value)) + value
    if kind in (LIST, SET):
        size = len(value.items)
        head = bytes([size << 4 | value.kind]) if size < 15 else bytes(
            [0xF0 | value.kind]) + varint(size)
        if value.kind in (BOOL_TRUE, BOOL_FALSE):
            return head + bytes(1 if item else 2 for item in value.items)
        return head + b"".join(encode_value(value.kind, item) for item in value.items)
    if kind == STRUCT:
        return encode(value)
    raise ValueError(f"thrift type {kind}")


def encode(value):
    out, last = bytearray(), 0
    for field in value.fields:
        delta = field.id - last
        if 0 < delta < 16:
            out.append(delta << 4 | field.kind)
        else:
            out.append(field.kind)
            out += zigzag(field.id)
        last = field.id
        if field.kind not in (BOOL_TRUE, BOOL_FALSE):
            out += encode_value(field.kind, field.value)
    return bytes(out) + b"\x00"


def split(path):
    """The bytes of a Parquet file before its footer, and the footer."""
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<I", data[-8:-4])[0]
    return data[:-8 - size], Reader(data[-8 - size:-8]).struct()


def join(path, data, footer):
    body = encode(footer)
    with open(path, "wb") as file:
        file.write(data + body + struct.pack("<I", len(body)) + b"PAR1")


def row_groups(footer):
    return footer.at(4).items


def column_meta(footer, row_group=0, column=0):
    return row_groups(footer)[row_group].at(1).items[column].at(3)


def page_header(data, offset):
    """(header, its size in bytes) of the page at an offset."""
    reader = Reader(data, offset)
    header = reader.struct()
    return header, reader.at - offset
