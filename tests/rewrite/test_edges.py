"""What `grebe layout rewrite` must not lose, and what it refuses: judged by pyarrow."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from common import grebe_cli


def rewrite(table, to, *args):
    return json.loads(grebe_cli.run(["layout", "rewrite", table, "--to", to, *args,
                                     "--json-errors"]))


def refused(kind, *args):
    with pytest.raises(grebe_cli.GrebeError) as raised:
        rewrite(*args)
    assert raised.value.typed and raised.value.error["error"] == kind, raised.value
    return raised.value.error["message"]


def data_files(folder):
    return sorted(folder.rglob("*.parquet"))


@pytest.mark.parametrize("by", ["sort(k)", "bucket(4,k)"])
def test_pyarrow_sees_the_key_values(tmp_path, by):
    fields = [pa.field("k", pa.int64(), metadata={"PARQUET:field_id": "7", "note": "kept"}),
              pa.field("d", pa.dictionary(pa.int32(), pa.string()))]
    own = {b"pandas": b'{"index_columns": []}', b"geo": b'{"version": "1.1.0"}', b"owner": b"us"}
    rows = pa.Table.from_arrays(
        [pa.array(range(100)), pa.array(["x", "y"] * 50).dictionary_encode()],
        schema=pa.schema(fields, metadata=own))
    (tmp_path / "table").mkdir()
    pq.write_table(rows, tmp_path / "table" / "f.parquet")
    before = pq.read_schema(tmp_path / "table" / "f.parquet")
    rewrite(tmp_path / "table", tmp_path / "new", "--by", by)
    assert data_files(tmp_path / "new")
    for path in data_files(tmp_path / "new"):
        after = pq.read_schema(path)
        assert {key: after.metadata[key] for key in own} == own == before.metadata
        assert after.metadata[b"grebe.layout"] == pq.read_metadata(path).metadata[b"grebe.layout"]
        assert b"ARROW:schema" not in after.metadata
        for field in before:
            assert after.field(field.name).equals(field, check_metadata=True)
    again = pa.concat_tables(pq.read_table(p) for p in data_files(tmp_path / "new"))
    assert again.sort_by("k").to_pylist() == rows.to_pylist()


@pytest.mark.parametrize("lost", [[], None])
def test_ungroup_refuses_a_row_without_items(tmp_path, lost):
    rows = [[{"x": 1}], [{"x": 2}, {"x": 3}]] * 3000 + [lost]
    (tmp_path / "table").mkdir()
    first, second = tmp_path / "table" / "a.parquet", tmp_path / "table" / "b.parquet"
    pq.write_table(pa.table({"k": range(2), "rows": rows[:2]}), first)
    pq.write_table(pa.table({"k": range(len(rows)), "rows": rows}), second)
    args = (tmp_path / "table", tmp_path / "new", "--by", "sort(k)", "--ungroup", "rows")
    for more in ((), ("--dry-run",)):
        message = refused("InvalidArgument", *args, *more)
        assert "empty or null" in message and "column=rows" in message, message
        assert "row=6000" in message and "file=b.parquet" in message, message
    assert not data_files(tmp_path)[2:], "files were written"
    # Without that row nothing is lost.
    pq.write_table(pa.table({"k": range(6000), "rows": rows[:-1]}), second)
    assert rewrite(*args)["rows_out"] == 3 + 9000
    new = pa.concat_tables(pq.read_table(path) for path in data_files(tmp_path / "new"))
    assert sorted(zip(*new.to_pydict().values()))[:6] == [(0, 1), (0, 1), (1, 2), (1, 2), (1, 3),
                                                          (1, 3)]


LAYOUTS = [("sort(k)",), ("zorder(k,v)",), ("hilbert(k,v)",), ("bucket(4,k)", "--then", "sort(v)"),
           ("tree(LOG)",), ("sort(k)", "--cogroup", "k"), ("sort(k)", "--ungroup", "l"),
           ("sort(k)", "--index", "i", "--key", "k"),
           ("sort(k)", "--partitions", "none", "--index", "i", "--key", "d,k")]


@pytest.mark.parametrize("layout", LAYOUTS, ids=" ".join)
@pytest.mark.parametrize("hive", [False, True])
def test_a_table_without_rows_keeps_its_schema(tmp_path, layout, hive):
    if "d,k" in layout and not hive:
        return
    item = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    schema = pa.schema([pa.field("k", pa.int64(), metadata={"PARQUET:field_id": "7"}),
                        ("v", pa.string()), ("l", pa.list_(item))], metadata={"owner": "us"})
    for name in ("d=1/a.parquet", "d=2/b.parquet"):
        path = tmp_path / "table" / (name if hive else name[4:])
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(schema.empty_table(), path)
        schema = pq.read_schema(path)   # its list's items are named otherwise
    (tmp_path / "log").write_text("k > 3\n")
    by = [word.replace("LOG", str(tmp_path / "log")) for word in layout]
    new = tmp_path / "new"
    planned = rewrite(tmp_path / "table", new, "--by", *by, "--dry-run")
    assert (planned["files_out"], planned["rows_out"]) == (1, 0) and not new.exists()
    summary = rewrite(tmp_path / "table", new, "--by", *by)
    assert (summary["files_out"], summary["rows_out"]) == (1, 0)
    [path] = data_files(new)
    in_folder = hive and "none" not in layout
    assert path.parent.name == ("d=1" if in_folder else "new")
    got = pq.ParquetFile(path).schema_arrow
    assert pq.read_metadata(path).num_rows == 0 and got.metadata[b"owner"] == b"us"
    if "--cogroup" in layout:
        assert got.names == ["k", "rows"]
        assert got.field("rows").type.value_type.field("l").type == schema.field("l").type
    elif "--ungroup" in layout:
        assert got.names == ["k", "v", "x"]
    else:
        for field in schema:
            assert got.field(field.name).equals(field, check_metadata=True)
        for order in ("v", "d") if hive else ("v",):
            assert grebe_cli.run(["scan", new, "--columns", f"k,{order}", "--format", "csv"]) == \
                grebe_cli.run(["scan", tmp_path / "table", "--columns", f"k,{order}", "--format",
                               "csv"])
    if "--index" in layout:
        assert grebe_cli.run(["count", new, "k=1", *(["d=1"] if "d,k" in layout else [])])
        grebe_cli.run(["index", "verify", new, "--name", "i"])


def test_an_index_key_in_kept_folders_is_refused(tmp_path):
    for day in (1, 2):
        (tmp_path / "table" / f"d={day}").mkdir(parents=True)
        pq.write_table(pa.table({"k": range(10)}), tmp_path / "table" / f"d={day}" / "f.parquet")
    args = (tmp_path / "table", tmp_path / "new", "--by", "sort(k)", "--index", "i", "--key", "d,k")
    message = refused("InvalidArgument", *args)
    assert "column=d" in message and "grebe index create" in message, message
    assert not (tmp_path / "new").exists() or not data_files(tmp_path / "new")
    assert rewrite(*args, "--partitions", "none")["index"] == "i"
