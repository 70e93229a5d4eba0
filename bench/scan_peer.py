#!/usr/bin/env python3
"""Full scans of folders of Parquet files by other engines: every column is decoded and folded.

  scan_peer.py ENGINE SECONDS FOLDER [FOLDER ...]

Scans the folders in turns until the time is over, three times at least. Prints JSON: for each
folder the fastest scan in seconds, and the folded values (equal data must fold alike).
"""
import json
import sys
import time

COLUMNS = ["user_id", "ts", "track_uri", "session", "ms_played", "country", "volume", "skipped"]


def duckdb_scan(folder):
    import duckdb
    connection = duckdb.connect(config={"threads": 2})
    query = ("SELECT max(user_id), max(ts), max(track_uri || ''), max(session || ''), "
             "sum(ms_played), max(country || ''), sum(volume), sum(skipped::int) "
             f"FROM read_parquet('{folder}/**/*.parquet', hive_partitioning = false)")
    return lambda: connection.sql(query).fetchall()[0]


def polars_scan(folder):
    import polars as pl
    frame = pl.scan_parquet(f"{folder}/**/*.parquet", hive_partitioning=False).select(
        pl.col("user_id").max(), pl.col("ts").max(), pl.col("track_uri").max(),
        pl.col("session").max(), pl.col("ms_played").cast(pl.Int64).sum(), pl.col("country").max(),
        pl.col("volume").sum(), pl.col("skipped").cast(pl.Int64).sum())
    return lambda: frame.collect().row(0)


def datafusion_scan(folder):
    import datafusion
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(2))
    context.sql("SET datafusion.runtime.metadata_cache_limit = '2G'").collect()
    context.register_listing_table("lake", folder.rstrip("/") + "/")
    # Concatenation: the least and greatest of bare columns come from statistics, unread.
    query = ("SELECT max(user_id + 0), sum(arrow_cast(ts, 'Int64') % 1000003), "
             "max(track_uri || ''), max(session || ''), sum(ms_played), max(country || ''), "
             "sum(volume), sum(CAST(skipped AS INT)) FROM lake")
    return lambda: tuple(context.sql(query).to_arrow_table().to_pylist()[0].values())


ENGINES = {"duckdb": duckdb_scan, "polars": polars_scan, "datafusion": datafusion_scan}


def main(argv):
    engine, seconds, folders = argv[0], float(argv[1]), argv[2:]
    scans = {folder: ENGINES[engine](folder) for folder in folders}
    best, folded = {}, {}
    end = time.monotonic() + seconds
    rounds = 0
    while rounds < 3 or time.monotonic() < end:
        for folder, scan in scans.items():
            start = time.monotonic()
            values = scan()
            took = time.monotonic() - start
            best[folder] = min(best.get(folder, took), took)
            # Sums of doubles depend on the order of the rows.
            folded[folder] = [round(v, 3) if isinstance(v, float) else str(v) for v in values]
        rounds += 1
    print(json.dumps({"seconds": best, "folded": folded, "rounds": rounds}))


if __name__ == "__main__":
    main(sys.argv[1:])
