"""What the right answer is, by pyarrow: the rows of a table by key, in order of file and row."""

import os
import pathlib
import re
import urllib.parse

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from common import values

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"


def data_files(folder):
    """Relative paths of a table's files, in the order of the answer's rows."""
    folder = pathlib.Path(folder)
    if folder.is_file():
        return [folder.name]
    found = []
    for path in folder.rglob("*"):
        relative = path.relative_to(folder)
        hidden = any((p.startswith("_") and "=" not in p) or p.startswith(".")
                     for p in relative.parts)
        if path.is_file() and path.suffix in (".parquet", ".parq", ".pq") and not hidden:
            found.append(relative.as_posix())
    return sorted(found, key=os.fsencode)


def partitions(path):
    out = {}
    for part in path.split("/")[:-1]:
        if "=" in part:
            name, _, text = part.partition("=")
            value = urllib.parse.unquote(text)
            out[urllib.parse.unquote(name)] = None if text == DEFAULT_PARTITION else value
    return out


def partition_type(texts):
    present = [t for t in texts if t is not None]
    if present and all(re.fullmatch(r"-?[0-9]{1,18}", t) for t in present):
        return pa.int64()
    if present and all(re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", t) for t in present):
        return pa.date32()
    return pa.string()


def read(folder):
    """The whole table, in order; partition columns last."""
    folder = pathlib.Path(folder)
    base = folder.parent if folder.is_file() else folder
    files = data_files(folder)
    tables = [read_file(base / f) for f in files]
    parts = [partitions(f) for f in files]
    names = list(dict.fromkeys(name for p in parts for name in p))
    tables = [t.drop_columns([n for n in names if n in t.schema.names]) for t in tables]
    schema = tables[0].schema
    if any(not t.schema.equals(schema, check_metadata=False) for t in tables):
        schema = pa.unify_schemas([t.schema for t in tables], promote_options="permissive")
    schema = schema.remove_metadata()
    tables = [conform(t, schema) for t in tables]
    for name in names:
        kind = partition_type([p.get(name) for p in parts])
        tables = [t.append_column(name, partition_column(p.get(name), kind, t.num_rows))
                  for t, p in zip(tables, parts)]
    return pa.concat_tables(tables).combine_chunks()


def read_file(path):
    """One file, by row groups: pyarrow cannot join the chunks of some nested columns."""
    file = pq.ParquetFile(path)
    groups = range(file.metadata.num_row_groups)
    return pa.concat_tables([file.read_row_group(g) for g in groups]) if groups else file.read()


def conform(table, schema):
    columns = []
    for field in schema:
        if field.name in table.schema.names:
            column = table[field.name]
            columns.append(column if column.type == field.type else column.cast(field.type))
        else:
            columns.append(pa.nulls(table.num_rows, field.type))
    return pa.table(columns, schema=schema)


def partition_column(text, kind, count):
    if text is None:
        return pa.nulls(count, kind)
    value = pa.scalar(text).cast(kind) if kind != pa.string() else pa.scalar(text)
    return pa.array([value.as_py()] * count, kind)


def key_column(table, path):
    """The column a dotted path names, nulls of its parents included."""
    if path in table.schema.names:
        return values.storage(table[path])
    head, _, rest = path.partition(".")
    column = values.storage(table[head])
    for name in rest.split("."):
        column = pc.struct_field(column, name)
    return values.storage(column)


class Oracle:
    """The rows of each key of a table."""

    def __init__(self, table, key):
        self.table = table
        self.key = key
        columns = [key_column(table, path) for path in key]
        self.kinds = [c.type for c in columns]
        self.rows = {}
        for row, identity in enumerate(zip(*(values.identities(c) for c in columns))):
            self.rows.setdefault(identity, []).append(row)

    def expected(self, keys, offset=0, limit=None, columns=None):
        """The rows of the keys, in the order asked."""
        rows = []
        for key in keys:
            found = self.rows.get(key, [])[offset:]
            rows += found if limit is None else found[:limit]
        table = self.table if columns is None else project(self.table, columns)
        return take(table, pa.array(rows, pa.int64()))


def take(table, rows):
    """table.take, also for views, which pyarrow does not take, and of no rows."""
    rows = pa.array(rows, pa.int64())
    columns = []
    for column in table.columns:
        kind = column.type
        if pa.types.is_string_view(kind):
            columns.append(column.cast(pa.string()).take(rows).cast(kind))
        elif pa.types.is_binary_view(kind):
            columns.append(column.cast(pa.binary()).take(rows).cast(kind))
        else:
            columns.append(column.take(rows))
    return pa.table(columns, schema=table.schema)


def project(table, columns):
    """Top-level columns, and members of structs by dotted path (pruned structs), as asked."""
    out = {}
    for path in columns:
        if path in table.schema.names:
            out[path] = table[path]
            continue
        head, _, rest = path.partition(".")
        out[head] = prune(values.storage(table[head]), rest.split("."))
    return pa.table(list(out.values()), names=list(out.keys()))


def prune(array, path):
    """A struct with only one member (of a member ...)."""
    child = pc.struct_field(array, path[0])
    nullable = array.type.field(path[0]).nullable
    if len(path) > 1:
        child = prune(values.storage(child), path[1:])
    field = pa.field(path[0], child.type, nullable=nullable)
    return pa.StructArray.from_arrays([child], fields=[field], mask=array.is_null())
