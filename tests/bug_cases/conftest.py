"""A table folder and its index for each test; how the bug cases call the command line."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import pyarrow.parquet as pq  # noqa: E402

from common import compare, grebe_cli, oracle, values  # noqa: E402


class Lake:
    """One table under test."""

    def __init__(self, folder):
        self.data = folder / "data"
        self.data.mkdir()
        self.root = folder / "index"
        self.file = self.data / "f.parquet"

    def write(self, table, name="f.parquet", **options):
        options.setdefault("compression", "NONE")
        pq.write_table(table, self.data / name, **options)
        return self.data / name

    def create(self, key, **options):
        return grebe_cli.create(self.data, key, self.root, **options)

    def get(self, *conditions, **options):
        return grebe_cli.get(self.data, list(conditions), self.root, **options)

    def count(self, *conditions, **options):
        return grebe_cli.count(self.data, list(conditions), self.root, **options)

    def check_all_keys(self, key, truth=None, columns=None):
        """Indexes by the key; looks every distinct key up; compares with the truth (default: what
        pyarrow reads of the table). Returns the number of keys."""
        self.create(key)
        truth = oracle.Oracle(truth if truth is not None else oracle.read(self.data), [key])
        keys = list(truth.rows)
        lines = [values.json_line([key], [values.text_of(k[0], truth.kinds[0])], truth.kinds)
                 for k in keys]
        got = self.get(keys_text="".join(lines), columns=columns)
        difference = compare.difference(truth.expected(keys, columns=columns), got)
        assert difference is None, difference
        return len(keys)


@pytest.fixture
def lake(tmp_path):
    return Lake(tmp_path)


@pytest.fixture
def real_files():
    """The folder of real files; skips where it is absent."""
    from real_files import run
    root = run.find_root()
    if root is None:
        pytest.skip("no real files (GREBE_REAL_FILES)")
    return root
