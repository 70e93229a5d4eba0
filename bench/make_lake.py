#!/usr/bin/env python3
"""Makes the benchmark lake: play events, eight columns, about ten rows a user.

Two forms of the same rows:

  plain     N files in day folders (day=2026-01-01/part-00000.parquet ...), in order of arrival, as
            a streaming job writes them: zstd, page index, one row group per flush, otherwise
            pyarrow's defaults (dictionaries everywhere, v1 pages of at most 20,000 rows).
  prepared  the rows sorted by user_id into 16 files with 8 KiB pages and a dictionary on the
            low-cardinality column only.

The same arguments give the same bytes: every file has a random stream of its own, (seed, file).
Memory is bounded by one file's rows (and one of the 16 partitions, for prepared): rows go through
16 spill files partitioned by user_id, never through one big table.

Beside them: keys.jsonl (users that are present, in random order, none twice), absent.jsonl (users
that are not, between and beyond those that are) and lake.json (what was made, and the true number
of rows of every key in keys.jsonl).
"""
import argparse
import datetime
import json
import os
import shutil
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

FIRST_DAY = datetime.date(2026, 1, 1)
FIRST_USER = 1_000_000
COLUMNS = ["user_id", "ts", "track_uri", "session", "ms_played", "country", "volume", "skipped"]
COUNTRIES = ["US", "BR", "MX", "GB", "DE", "IN", "FR", "ES", "PH", "ID", "IT", "CA", "TR", "PL",
             "AU", "AR", "NL", "CL", "CO", "SE", "PE", "JP", "MY", "NO", "FI", "DK", "CH", "BE",
             "AT", "PT", "NZ", "IE", "CZ", "GR", "HU", "RO", "ZA", "SG", "TH", "VN"]
SCHEMA = pa.schema([
    ("user_id", pa.int64()), ("ts", pa.timestamp("us")), ("track_uri", pa.string()),
    ("session", pa.string()), ("ms_played", pa.int32()), ("country", pa.string()),
    ("volume", pa.float64()), ("skipped", pa.bool_())])
HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)


def mix(x):
    """SplitMix64's finalizer: an id's digits look random, yet need no table."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def hex_strings(prefix, numbers, digits):
    """Strings of one width: the prefix and the low `digits` hex digits of each number."""
    count = len(numbers)
    width = len(prefix) + digits
    out = np.empty((count, width), dtype=np.uint8)
    out[:, :len(prefix)] = np.frombuffer(prefix, dtype=np.uint8)
    for i in range(digits):
        out[:, len(prefix) + i] = HEX[(numbers >> np.uint64(4 * i)) & np.uint64(15)]
    offsets = np.arange(0, count + 1, dtype=np.int32) * width
    return pa.Array.from_buffers(pa.string(), count,
                                 [None, pa.py_buffer(offsets), pa.py_buffer(out)])


def day_start_us(day_index):
    day = FIRST_DAY + datetime.timedelta(days=day_index)
    return int(datetime.datetime(day.year, day.month, day.day,
                                 tzinfo=datetime.timezone.utc).timestamp()) * 1_000_000


def file_rows(args, file_index):
    """The row count of one file, and the part of which day it covers: (rows, day, begin, end)."""
    rows = args.rows // args.files + (1 if file_index < args.rows % args.files else 0)
    per_day = -(-args.files // args.days)
    day = file_index // per_day
    files_of_day = min(per_day, args.files - day * per_day)
    slot = file_index - day * per_day
    return rows, day, slot / files_of_day, (slot + 1) / files_of_day


def make_file(args, file_index):
    rows, day, begin, end = file_rows(args, file_index)
    rng = np.random.Generator(np.random.PCG64([args.seed, file_index]))
    users = max(1, args.rows // args.rows_per_user)
    # Odd numbers are absent users, which lie between present ones.
    user = FIRST_USER + 2 * rng.integers(0, users, rows)
    day_us = 86_400_000_000
    ts = np.sort(rng.integers(int(begin * day_us), int(end * day_us), rows)) + day_start_us(day)
    track = (400_000 * rng.random(rows) ** 2).astype(np.uint64)
    session = rng.integers(0, 1 << 40, rows).astype(np.uint64)
    country = np.minimum(len(COUNTRIES) - 1, (len(COUNTRIES) * rng.random(rows) ** 3)).astype(int)
    return pa.table([
        pa.array(user), pa.array(ts, type=pa.timestamp("us")),
        hex_strings(b"https://m.example.org/t/", mix(track + np.uint64(7)), 14),
        hex_strings(b"app/android/session/2-", mix(session + np.uint64(99)), 15),
        pa.array(rng.integers(0, 300_000, rows).astype(np.int32)),
        pc.take(pa.array(COUNTRIES), pa.array(country)),
        pa.array(rng.normal(-14, 4, rows)),
        pa.array(rng.random(rows) < 0.3)], schema=SCHEMA)


def plain_path(args, file_index):
    _, day, _, _ = file_rows(args, file_index)
    folder = FIRST_DAY + datetime.timedelta(days=day)
    return os.path.join(args.out, "plain", f"day={folder}", f"part-{file_index:05d}.parquet")


class Spill:
    """The rows of every file, cut into ranges of user_id: one Arrow file per range."""

    def __init__(self, args):
        self.folder = os.path.join(args.out, "spill")
        self.parts = args.prepared_files
        users = max(1, args.rows // args.rows_per_user)
        self.bounds = FIRST_USER + 2 * (np.arange(1, self.parts) * users // self.parts)
        os.makedirs(self.folder, exist_ok=True)
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        self.writers = [pa.ipc.new_file(self._path(i), SCHEMA, options=options)
                        for i in range(self.parts)]

    def _path(self, part):
        return os.path.join(self.folder, f"{part}.arrow")

    def add(self, table):
        part = np.searchsorted(self.bounds, table["user_id"].to_numpy(), side="right")
        order = np.argsort(part, kind="stable")
        ends = np.searchsorted(part[order], np.arange(self.parts + 1))
        for i, writer in enumerate(self.writers):
            writer.write_table(table.take(pa.array(order[ends[i]:ends[i + 1]])))

    def finish(self, args):
        os.makedirs(os.path.join(args.out, "prepared"), exist_ok=True)
        for writer in self.writers:
            writer.close()
        for i in range(self.parts):
            table = pa.ipc.open_file(pa.memory_map(self._path(i))).read_all()
            order = np.argsort(table["user_id"].to_numpy(), kind="stable")
            table = table.take(pa.array(order)).combine_chunks()
            # The writer looks at a page's size once a batch: small batches, or the pages grow to
            # five times of what was asked for.
            pq.write_table(table, os.path.join(args.out, "prepared", f"part-{i:02d}.parquet"),
                           compression="zstd", write_page_index=True, data_page_size=8192,
                           write_batch_size=256, use_dictionary=["country"],
                           sorting_columns=[pq.SortingColumn(0)])
            del table
            os.remove(self._path(i))
        shutil.rmtree(self.folder)


def choose_keys(args, rng):
    users = max(1, args.rows // args.rows_per_user)
    count = min(args.keys, users)
    chosen = rng.choice(users, size=count, replace=False)
    absent = rng.choice(users, size=max(1, count // 10), replace=False)
    return FIRST_USER + 2 * chosen.astype(np.int64), FIRST_USER + 2 * absent.astype(np.int64) + 1


def write_keys(args, counts, seconds):
    """keys.jsonl holds only users that have rows: the few of the sample that drew none are left
    out, so that every key has an answer."""
    present = [int(k) for k in args.present if counts[int(k)]]
    with open(os.path.join(args.out, "keys.jsonl"), "w") as out:
        out.writelines(f'{{"user_id": {k}}}\n' for k in present)
    # Not -2**63: Lance cannot read that number in a filter.
    beyond = [FIRST_USER - 1, -1, 0, 2**63 - 1, -2**63 + 1]
    with open(os.path.join(args.out, "absent.jsonl"), "w") as out:
        out.writelines(f'{{"user_id": {k}}}\n' for k in [int(a) for a in args.absent] + beyond)

    def size(kind):
        return sum(os.path.getsize(os.path.join(base, name))
                   for base, _, names in os.walk(os.path.join(args.out, kind)) for name in names)

    facts = {"rows": args.rows, "files": args.files, "days": args.days, "seed": args.seed,
             "row_group_rows": args.row_group_rows, "columns": COLUMNS, "key": "user_id",
             "plain_bytes": size("plain"), "prepared_bytes": size("prepared"),
             "key_rows": {str(k): int(counts[k]) for k in present}}
    with open(os.path.join(args.out, "lake.json"), "w") as out:
        json.dump(facts, out)
    del facts["key_rows"]
    print(json.dumps(facts | {"seconds": round(seconds, 1)}))


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", required=True, help="folder to make; it must not exist")
    parser.add_argument("--rows", type=int, default=16_000_000)
    parser.add_argument("--files", type=int, default=160)
    parser.add_argument("--days", type=int, default=10)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--keys", type=int, default=2_000)
    parser.add_argument("--rows-per-user", type=int, default=10)
    parser.add_argument("--row-group-rows", type=int, default=25_000,
                        help="rows of one flush of the plain writer; 0 = one row group a file")
    parser.add_argument("--prepared-files", type=int, default=16)
    parser.add_argument("--no-prepared", action="store_true")
    parser.add_argument("--tiny", action="store_true", help="20,000 rows in 8 files of 4 days")
    args = parser.parse_args(argv)
    if args.tiny:
        args.rows, args.files, args.days, args.keys = 20_000, 8, 4, 60
        args.row_group_rows, args.prepared_files = 1_000, 4
    return args


def main(argv):
    args = arguments(argv)
    if os.path.exists(args.out):
        sys.exit(f"there is something already: path={args.out}")
    started = time.monotonic()
    os.makedirs(args.out)
    # A stream of its own, so that the keys do not depend on the number of files.
    rng = np.random.Generator(np.random.PCG64([args.seed, 1 << 32]))
    args.present, args.absent = choose_keys(args, rng)
    ordered = np.sort(args.present)
    totals = np.zeros(len(ordered), dtype=np.int64)
    spill = None if args.no_prepared else Spill(args)
    for file_index in range(args.files):
        table = make_file(args, file_index)
        path = plain_path(args, file_index)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        pq.write_table(table, path, compression="zstd", write_page_index=True,
                       row_group_size=args.row_group_rows or None)
        user = table["user_id"].to_numpy()
        at = np.minimum(np.searchsorted(ordered, user), len(ordered) - 1)
        np.add.at(totals, at[ordered[at] == user], 1)
        if spill:
            spill.add(table)
        if sys.stderr.isatty():
            print(f"\r{file_index + 1}/{args.files} files", end="", file=sys.stderr, flush=True)
    if spill:
        spill.finish(args)
    write_keys(args, dict(zip(ordered.tolist(), totals.tolist())), time.monotonic() - started)


if __name__ == "__main__":
    main(sys.argv[1:])
