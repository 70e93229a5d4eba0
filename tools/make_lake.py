#!/usr/bin/env python3
"""Makes a small lake of play events for the demo and the documents' examples.

  tools/make_lake.py FOLDER [--rows N] [--files N] [--by-day] [--first-file N] [--seed N]

Columns: user_id int64 (about ten rows a user: 0 .. rows/10), event_id string (unique, 32 hex
digits), ts timestamp, track struct<title, artist>, seconds int32, country string, price decimal.
With --by-day the files lie in Hive folders day=2026-01-01 and so on. The same arguments give the
same files. Needs pyarrow alone. The benchmarks' lake is another one: bench/make_lake.py.
"""

import argparse
import datetime
import hashlib
import pathlib
import random

import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = pa.schema([
    ("user_id", pa.int64()),
    ("event_id", pa.string()),
    ("ts", pa.timestamp("us", tz="UTC")),
    ("track", pa.struct([("title", pa.string()), ("artist", pa.string())])),
    ("seconds", pa.int32()),
    ("country", pa.string()),
    ("price", pa.decimal128(9, 2)),
])
COUNTRIES = ("BR", "CA", "DE", "FR", "GB", "IN", "JP", "MX", "SE", "US")
FIRST_MOMENT = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
DAY_SECONDS = 86400


def make_table(rng, file, rows, users):
    start_us = int(FIRST_MOMENT.timestamp()) * 1_000_000 + file * DAY_SECONDS * 1_000_000
    step_us = DAY_SECONDS * 1_000_000 // max(rows, 1)
    songs = [rng.randrange(5000) for _ in range(rows)]
    track = pa.StructArray.from_arrays(
        [pa.array([f"song {s}" for s in songs]), pa.array([f"artist {s % 700}" for s in songs])],
        names=["title", "artist"])
    prices = pa.array([rng.randrange(20, 200) for _ in range(rows)], pa.int32())
    columns = [
        pa.array([rng.randrange(users) for _ in range(rows)], pa.int64()),
        pa.array([f"{rng.getrandbits(128):032x}" for _ in range(rows)]),
        pa.array(range(start_us, start_us + step_us * rows, step_us)).cast(SCHEMA.field("ts").type),
        track,
        pa.array([rng.randrange(10, 600) for _ in range(rows)], pa.int32()),
        pa.array(rng.choices(COUNTRIES, k=rows)),
        # Cents; as a decimal of scale 2.
        pa.Array.from_buffers(pa.decimal128(9, 2), rows,
                              [None, prices.cast(pa.decimal128(11, 0)).buffers()[1]]),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=100_000, help="rows in all")
    parser.add_argument("--files", type=int, default=10)
    parser.add_argument("--first-file", type=int, default=0, help="number of the first file")
    parser.add_argument("--by-day", action="store_true", help="Hive folders, one a file")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    rows = args.rows // args.files
    users = max(args.rows // 10, 1)
    for file in range(args.first_file, args.first_file + args.files):
        # A stream of its own for each file: a later call adds files as if made at once.
        seed = hashlib.sha256(f"{args.seed} {file}".encode()).digest()
        table = make_table(random.Random(seed), file, rows, users)
        folder = args.folder
        if args.by_day:
            day = (FIRST_MOMENT + datetime.timedelta(days=file)).date()
            folder = folder / f"day={day.isoformat()}"
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, folder / f"part-{file:05}.parquet", compression="zstd",
                       write_page_index=True)
    print(f"{args.folder}: {rows * args.files} rows in {args.files} files")


if __name__ == "__main__":
    main()
