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
