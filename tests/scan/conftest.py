"""A table folder for each test."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import pyarrow.parquet as pq  # noqa: E402

from common import grebe_cli  # noqa: E402


class Lake:
    def __init__(self, folder):
        self.data = folder

    def write(self, table, name="f.parquet", **options):
        path = self.data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path, **options)
        return path

    def scan(self, where=None, **options):
        return grebe_cli.scan(self.data, where, **options)

    def explain(self, where=None, **options):
        return grebe_cli.explain_scan(self.data, where, **options)

    def values(self, where, column):
        return self.scan(where, columns=[column])[column].to_pylist()


@pytest.fixture
def lake(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    return Lake(folder)
