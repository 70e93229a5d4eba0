#!/usr/bin/env python3
"""The memory limit of `grebe layout rewrite`: the process keeps to it, on a table of many times the
limit in memory; a limit that is too small is refused; a cogroup's key that does not fit is named.

usage: limits.py [--seed N]
"""

import json
import pathlib
import random
import sys
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from common import arguments, grebe_cli   # noqa: E402

MIB = 1 << 20


def rewrite(table, to, memory, *args):
    grebe_cli.peak_bytes_max = 0
    out = json.loads(grebe_cli.run(["layout", "rewrite", table, "--to", to, "--memory", memory,
                                    "--json-errors", *args], timeout=300))
    return out, grebe_cli.peak_bytes_max


def refused(kind, words, *args):
    try:
        rewrite(*args)
    except grebe_cli.GrebeError as error:
        assert error.typed and error.error["error"] == kind, error
        assert words in error.error["message"], (words, error)
        return error.error["message"]
    raise AssertionError(f"not refused: {args}")


def write(folder, table, files):
    folder.mkdir()
    rows = table.num_rows
    for i in range(files):
        begin, end = rows * i // files, rows * (i + 1) // files
        pq.write_table(table.slice(begin, end - begin), folder / f"f{i}.parquet")


def texts(rng, rows, words):
    return [" ".join(f"{n:016x}" for n in line) for line in rng.integers(0, 1 << 62, (rows, words))]


def rows_of(folder):
    rows = pa.concat_tables(pq.read_table(p) for p in sorted(folder.glob("*.parquet")))
    return rows.sort_by([("x", "ascending"), ("k", "ascending")]).combine_chunks()


def check_peak(rng, scratch):
    """Rows of 400 MB in memory."""
    rows, table = 2_000_000, scratch / "plain"
    some = texts(rng, 100_000, 8)
    write(table, pa.table({"k": rng.integers(0, rows, rows), "ts": rng.integers(0, 10**9, rows),
                           "text": [some[i] for i in rng.integers(0, len(some), rows)],
                           "x": rng.normal(size=rows)}), 6)
    for number, (memory, args) in enumerate((
            ("128MB", ["--by", "sort(k,ts)"]),
            ("128MB", ["--by", "zorder(k,ts)", "--threads", "8"]),
            ("128MB", ["--by", "hilbert(k,ts)", "--preset", "serving", "--index", "i", "--key",
                       "k"]),
            ("256MB", ["--by", "zorder(k,ts)"]))):
        summary, peak = rewrite(table, scratch / f"out{number}", memory, *args)
        limit = int(memory[:-2]) * MIB
        print(f"{memory} {' '.join(args)}: peak {peak / MIB:.0f} MiB, spilled "
              f"{summary['spilled_bytes'] / MIB:.0f} MiB", flush=True)
        assert summary["rows_out"] == rows and summary["spilled_bytes"] > 0
        assert peak <= 1.2 * limit, (peak, limit)
        assert rows_of(scratch / f"out{number}").equals(rows_of(table)), "other rows"
    message = refused("InvalidArgument", "smallest=134217728", table, scratch / "small", "127MB",
                      "--by", "sort(k)")
    assert "memory_bytes_max=133169152" in message, message


def check_foreseen(rng, scratch):
    """A key of a fifth of the rows, seen in the sample."""
    rows, table = 500_000, scratch / "keys"
    keys = np.where(rng.random(rows) < 0.2, 7, rng.integers(100, 100_000, rows))
    write(table, pa.table({"k": keys, "row": np.arange(rows), "text": texts(rng, rows, 8)}), 3)
    args = ["--by", "sort(k,row)", "--cogroup", "k"]
    message = refused("LimitExceeded", "key=7 ", table, scratch / "there", "128MB", *args)
    given = dict(pair.split("=") for pair in message.split() if "=" in pair)
    real = int((keys == 7).sum())
    assert 0.9 * real < int(given["rows"]) < 1.1 * real, message
    assert 100 * real < int(given["key_bytes"]) < 250 * real, message
    assert not (scratch / "there").exists() or not list((scratch / "there").rglob("*.parquet"))
    refused("LimitExceeded", "key=7 ", table, scratch / "there", "128MB", *args, "--dry-run")
    summary, peak = rewrite(table, scratch / "there", "512MB", *args)
    print(f"key of {int(given['key_bytes']) / MIB:.0f} MiB at 512MB: peak {peak / MIB:.0f} MiB")
    assert peak <= 1.2 * 512 * MIB, peak
    got = pa.concat_tables(pq.read_table(p) for p in sorted((scratch / "there").glob("*.parquet")))
    assert got.num_rows == summary["rows_out"] == len(set(keys.tolist()))
    lengths = got["rows"].combine_chunks().value_lengths()
    lists = dict(zip(got["k"].to_pylist(), lengths.to_pylist()))
    assert lists[7] == real and sum(lists.values()) == rows


def check_unforeseen(rng, scratch):
    """Wide rows at the ends of the files, where the width of rows is not measured."""
    table, wide = scratch / "wide", 10_000
    table.mkdir()
    for i in range(2):
        narrow = 50_000
        keys = np.concatenate([rng.integers(100, 100_000, narrow), np.full(wide, 7)])
        lines = ["x"] * narrow + [line * 5 for line in texts(rng, wide, 50)]
        pq.write_table(pa.table({"k": keys, "text": lines}), table / f"f{i}.parquet")
    message = refused("LimitExceeded", "one key", table, scratch / "narrow", "128MB", "--by",
                      "sort(k)", "--cogroup", "k")
    given = dict(pair.split("=") for pair in message.split() if "=" in pair)
    assert int(given["key_bytes"]) > 2 * wide * 4000, message
    # Sorted, the same rows need not stay together.
    summary, peak = rewrite(table, scratch / "sorted", "128MB", "--by", "sort(k)")
    assert summary["rows_out"] == 2 * (50_000 + wide)


def check_wide_order(rng, scratch):
    """Ordered by texts of 5,000 characters: the sample of them keeps to the limit too."""
    rows, table = 20_000, scratch / "wide"
    letters = rng.integers(97, 123, (rows, 5000), dtype="u1")
    write(table, pa.table({"k": rng.integers(0, rows, rows),
                           "v": [line.tobytes().decode() for line in letters]}), 1)
    for number, by in enumerate(("sort(v)", "zorder(v,k)")):
        out = scratch / f"out{number}"
        summary, peak = rewrite(table, out, "128MB", "--by", by, "--target-file-rows", "5000")
        print(f"128MB {by}, texts of 5,000: peak {peak / MIB:.0f} MiB", flush=True)
        assert summary["files_out"] > 1 and peak <= 1.2 * 128 * MIB, (summary, peak)
        got = pa.concat_tables(pq.read_table(path) for path in sorted(out.glob("*.parquet")))
        ordered = [("v", "ascending"), ("k", "ascending")]
        source = pq.read_table(table / "f0.parquet").sort_by(ordered)
        assert got.sort_by(ordered).to_pydict() == source.to_pydict(), "other rows"
        if by == "sort(v)":
            assert got["v"].to_pylist() == source["v"].to_pylist(), "not in order"


def main():
    args = arguments.parse(arguments.parser(__doc__))
    rng = np.random.default_rng(args.seed)
    for check in (check_wide_order, check_unforeseen, check_foreseen, check_peak):
        with tempfile.TemporaryDirectory(prefix="grebe-limits-") as scratch:
            check(rng, pathlib.Path(scratch))
    print("0 failures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
