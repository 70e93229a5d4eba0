"""Prints the seconds that decoding one column of Parquet files takes pyarrow on one thread (best
of three): decode_floor.py COLUMN FILE..."""
import json
import sys
import time

import pyarrow.parquet as pq


def main(column, files):
    best = float("inf")
    for _ in range(3):
        started = time.monotonic()
        for path in files:
            with pq.ParquetFile(path) as file:
                file.read(columns=[column], use_threads=False)
        best = min(best, time.monotonic() - started)
    print(json.dumps({"seconds": best}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
