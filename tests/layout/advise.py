#!/usr/bin/env python3
"""grebe layout advise: what it promises for a layout is held against that layout, written with
pyarrow and measured by grebe layout report; and each warning has its cause.

  tests/layout/advise.py [--seed N]
"""

import decimal
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from common import arguments  # noqa: E402

GREBE = os.environ.get("GREBE_BIN", "build/release/grebe")
FILES = 32


def grebe(*words):
    done = subprocess.run([GREBE, "layout", *map(str, words), "--format", "json"], text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def write(table, folder, **options):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    each = len(table) // FILES
    for number in range(FILES):
        pq.write_table(table.slice(number * each, each), folder / f"f{number:02}.parquet",
                       **options)


def make_rows(rng, count):
    a = [rng.randint(0, 1000000) for _ in range(count)]
    return pa.table({
        "a": a,
        "b": [rng.paretovariate(1.2) for _ in range(count)],
        "few": [rng.choice(["de", "at", "ch"]) for _ in range(count)],
        "url": [f"https://example.org/{rng.randint(0, 9999):04}" for _ in range(count)],
        "like_a": [value * 3 + rng.randint(0, 2) for value in a],
        "c": [rng.random() for _ in range(count)],
        "price": pa.array([decimal.Decimal(rng.randint(0, 99999)) / 100 for _ in range(count)],
                          pa.decimal128(9, 2)),
        "d": [rng.random() if rng.random() < 0.3 else None for _ in range(count)],
    })


def bytes_per_query(folder, log):
    queries = grebe("report", folder, "--queries", log, "--no-pages")["queries"]
    weight = sum(query["weight"] for query in queries)
    return sum(q["weight"] * q["files"]["bytes_read"] for q in queries) / weight


def check_promises(rng, rows, folder):
    """Sorts: the bytes that advise foresees are those that the sorted table's own report gives."""
    plain = folder / "plain"
    write(rows, plain)
    log = folder / "log"
    log.write_text(draw_log(rng, 12))
    advice = grebe("advise", plain, "--queries", log)
    by = {(c["by"], c["mode"]): c["bytes_read"] for c in advice["candidates"]}
    assert abs(by[("", "")] - bytes_per_query(plain, log)) < 1, by
    for column in "ab":
        ordered = folder / f"by_{column}"
        write(rows.sort_by(column), ordered)
        seen, real = by[(f"sort({column})", "rank")], bytes_per_query(ordered, log)
        assert abs(seen - real) < 0.15 * real, (column, seen, real)
    best = advice["candidates"][0]
    command = best["by"].replace("LOG", str(log))
    assert f"--by '{command}'" in advice["command"], advice["command"]
    assert "b" not in best["by"] or "a" in best["by"], best
    assert best["bytes_read"] <= 1.03 * min(by.values())
    most = advice["columns"][0]
    assert most["column"] == "a" and abs(most["weight"] - 5 / 6) < 0.01, most
    # On a table that lies as advised there is nothing to do.
    log.write_text("a < 20000\n")
    ordered = grebe("advise", folder / "by_a", "--queries", log)
    assert ordered["command"] == "" and any("leave it" in w for w in ordered["warnings"]), ordered
    assert abs(ordered["columns"][0]["order_correlation"] - 1) < 0.01


def draw_log(rng, count):
    lines = []
    for _ in range(count):
        low = rng.randint(0, 900000)
        lines.append(f"5 a BETWEEN {low} AND {low + 20000}")
        lines.append(f"b >= {1 + rng.random():.3f} AND b < {2 + rng.random():.3f}")
    return "\n".join(lines)


def check_tree(rng, rows, folder):
    """The share of the bytes that advise foresees of a tree is the one that other queries like
    the log's read (the rewrite's files are smaller than pyarrow's)."""
    plain, log, others = folder / "plain", folder / "log", folder / "others"
    write(rows, plain)
    log.write_text(draw_log(rng, 100))
    others.write_text(draw_log(rng, 100))
    seen = {c["by"]: c["bytes_read"] for c in grebe("advise", plain, "--queries", log)["candidates"]
            if c["mode"] == "rank"}["tree(LOG)"]
    subprocess.run([GREBE, "layout", "rewrite", plain, "--by", f"tree({log})", "--to",
                    folder / "by_log", "--target-file-rows", str(len(rows) // FILES)], check=True,
                   stdout=subprocess.DEVNULL)
    real = bytes_per_query(folder / "by_log", others) / size_of(folder / "by_log")
    seen /= size_of(plain)
    assert abs(seen - real) < 0.2 * real, (seen, real)


def check_few_bits(rng, rows, folder):
    """A column that is asked for less gets fewer bits of a curve, and reads what was foreseen."""
    plain, log = folder / "plain", folder / "log"
    write(rows, plain)
    log.write_text(draw_log(rng, 30))
    seen = grebe_candidates(folder, plain, log.read_text())
    few = [by for by in seen if by.startswith("zorder(a,b:")]
    assert len(few) == 1 and seen[few[0]] < 0.97 * seen["zorder(a,b)"], seen
    subprocess.run([GREBE, "layout", "rewrite", plain, "--by", few[0], "--to", folder / "few",
                    "--target-file-rows", str(len(rows) // FILES)], check=True,
                   stdout=subprocess.DEVNULL)
    real = bytes_per_query(folder / "few", log) / size_of(folder / "few")
    foreseen = seen[few[0]] / size_of(plain)
    assert abs(foreseen - real) < 0.2 * real, (few, foreseen, real)


def size_of(folder):
    return sum(path.stat().st_size for path in folder.glob("*.parquet"))


def warnings_of(folder, log_text, table):
    log = folder / "log"
    log.write_text(log_text)
    return grebe("advise", table, "--queries", log)["warnings"]


def check_warnings(rows, folder):
    plain, bare = folder / "plain", folder / "bare"
    write(rows, plain)
    write(rows, bare, write_statistics=False)
    cases = [
        ("few = 'de'\na < 1000\n", plain, "few: only 3 values: partition"),
        ("url = 'https://example.org/0042'\n", plain, "url: "),
        ("a < 10\nlike_a < 10\n", plain, "like_a: follows a"),
        ("a < 1\nb < 2\nc < 0.1\nd < 0.1\nurl = 'x'\n", plain, "the queries filter 5 columns"),
        ("d < 0.1\n", plain, " % of its rows are null"),
        ("a < 1000\n", bare, "a: some files have no statistics"),
    ]
    for log, table, expected in cases:
        got = warnings_of(folder, log, table)
        assert any(w.startswith(expected) or expected in w for w in got), (expected, got)
    assert any("raw mode" in w for w in warnings_of(folder, cases[1][0], plain))
    assert not any("statistics" in w or "raw mode" in w
                   for w in warnings_of(folder, "a < 1000\n", plain))
    for log in ("price > 990.25\n", "price = 12.5\n", "price IN (1, 2.25)\n"):
        seen = grebe_candidates(folder, plain, log)
        assert seen["sort(price)"] < 0.15 * size_of(plain), (log, seen)
    equal = grebe_candidates(folder, plain, "url = 'https://example.org/0042'\n")
    assert equal["bucket(32,url)"] == min(equal.values()), equal


def grebe_candidates(folder, table, log_text):
    (folder / "log").write_text(log_text)
    advice = grebe("advise", table, "--queries", folder / "log")
    return {c["by"]: c["bytes_read"] for c in advice["candidates"] if c["mode"] == "rank"}


def main():
    args = arguments.parse(arguments.parser(__doc__))
    rng = random.Random(args.seed)
    rows = make_rows(rng, FILES * 600)
    with tempfile.TemporaryDirectory() as folder:
        check_promises(rng, rows, pathlib.Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        check_tree(rng, rows, pathlib.Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        check_few_bits(rng, rows, pathlib.Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        check_warnings(rows, pathlib.Path(folder))
    print("promises kept, warnings given")
    return 0


if __name__ == "__main__":
    sys.exit(main())
