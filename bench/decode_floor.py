"""Prints the seconds that decoding one column of Parquet files takes pyarrow on one thread (best
of three): decode_floor.py COLUMN FILE...

`seconds` is CPU time: with the files in the page cache it is what the clock shows on a machine that
does nothing else, and it cannot flatter an index build by what others do meanwhile."""
import json
import sys
import time

import pyarrow.parquet as pq


def main(column, files):
    best = wall = float("inf")
    for _ in range(3):
        started, cpu_started = time.monotonic(), time.process_time()
        for path in files:
            with pq.ParquetFile(path) as file:
                file.read(columns=[column], use_threads=False)
        best = min(best, time.process_time() - cpu_started)
        wall = min(wall, time.monotonic() - started)
    print(json.dumps({"seconds": best, "wall_seconds": wall}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
