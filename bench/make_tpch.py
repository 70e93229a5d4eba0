#!/usr/bin/env python3
"""TPC-H tables as Parquet, by DuckDB's tpch extension: make_tpch.py FOLDER SCALE

Its wheel is for another DuckDB than the rest: run it with the folder of both in PYTHONPATH.
"""
import os
import sys

import duckdb
import duckdb_extension_tpch


def main(folder, scale):
    connection = duckdb.connect()
    connection.load_extension(os.path.join(
        os.path.dirname(duckdb_extension_tpch.__file__), "extensions", f"v{duckdb.__version__}",
        "tpch.duckdb_extension"))
    connection.execute(f"CALL dbgen(sf = {float(scale)})")
    for name in ("lineitem", "orders"):
        connection.execute(f"COPY {name} TO '{folder}/{name}.parquet' (FORMAT parquet)")


if __name__ == "__main__":
    main(*sys.argv[1:])
