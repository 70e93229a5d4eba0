"""What every rival's program shares: one warm process that answers lookups over a pipe.

A peer is started as `python x_peer.py MODE CONFIG`, MODE being serve, copy (make the rival's own
copy of the data) or build (its index on the copy), and CONFIG one JSON object:

  table    folder (or s3:// URI) of the Parquet files
  files    the same as a list of paths, for rivals that are faster with it
  columns  the columns to return; key: the key column
  copy     folder (or URI) of the rival's own copy, for those that need one
  s3       null, or {"endpoint": "http://127.0.0.1:1", "access_key": .., "secret_key": ..}

`copy` and `build` print {"seconds", "bytes" (of the copy now), "peak_rss_bytes"}. `serve` prints
one object when it is open, then answers one line per line of stdin:

  {"keys": [..]}                 looks the keys up, one after another
  {"keys": [..], "check": true}  the same, and adds the checksum of all rows
  {"quit": true}

Answer: {"lookups": [[start_ns, end_ns, rows], ..], "checksum": hex or null, "peak_rss_bytes"}.
Times are CLOCK_MONOTONIC, so that the delaying proxy's log can be matched with them. The clock
runs from the key to the rows in memory (Arrow, or tuples where a rival is faster with them); the
checksum is not timed.
"""
import json
import os
import struct
import sys
import time

import pyarrow as pa

FNV_OFFSET = 0xCBF29CE484222325
FNV_PRIME = 0x100000001B3
MASK = (1 << 64) - 1


def fnv1a(data):
    value = FNV_OFFSET
    for byte in data:
        value = ((value ^ byte) * FNV_PRIME) & MASK
    return value


def encode(column):
    """The canonical bytes of each value of a column; grebe_peer.cc and rocksdb_peer.cc agree."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us")).cast(pa.int64())
        kind = column.type
    values = column.to_pylist()
    if pa.types.is_boolean(kind):
        return [b"\x01" if v else b"\x00" for v in values]
    if pa.types.is_integer(kind):
        return [struct.pack("<q", v) for v in values]
    if pa.types.is_floating(kind):
        return [struct.pack("<d", v) for v in values]
    return [struct.pack("<I", len(v.encode())) + v.encode() for v in values]


def checksum(table, columns):
    """Order of rows does not matter: the sum of the rows' FNV-1a hashes."""
    if isinstance(table, list):
        table = pa.table({name: pa.array([row[i] for row in table])
                          for i, name in enumerate(columns)}) if table else None
    if table is None or not table.num_rows:
        return 0
    encoded = [encode(table[name].combine_chunks()) for name in columns]
    return sum(fnv1a(b"".join(row)) for row in zip(*encoded)) & MASK


def peak_rss_bytes():
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def folder_bytes(path):
    return sum(os.path.getsize(os.path.join(base, name))
               for base, _, names in os.walk(path) for name in names)


def answer(lookup, request, columns):
    lookups, total = [], 0
    for key in request["keys"]:
        start = time.monotonic_ns()
        table = lookup(key)
        end = time.monotonic_ns()
        lookups.append([start, end, len(table)])
        if request.get("check"):
            total = (total + checksum(table, columns)) & MASK
    return {"lookups": lookups, "checksum": f"{total:016x}" if request.get("check") else None,
            "peak_rss_bytes": peak_rss_bytes()}


def main(version, open_peer, build=None, copy=None):
    """open_peer(config) -> a function from a key to its rows, as a pyarrow.Table or, where that is
    the rival's faster way, a list of tuples; build and copy take config."""
    mode, config = sys.argv[1], json.loads(sys.argv[2])
    started = time.monotonic()
    if mode in ("build", "copy"):
        (build if mode == "build" else copy)(config)
        print(json.dumps({"seconds": time.monotonic() - started,
                          "bytes": folder_bytes(config["copy"]) if "://" not in config["copy"]
                          else 0, "peak_rss_bytes": peak_rss_bytes()}))
        return
    # Rivals may print; only our lines go to the pipe.
    pipe = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    lookup = open_peer(config)
    pipe.write(json.dumps({"ready": True, "version": version,
                           "open_seconds": time.monotonic() - started}) + "\n")
    for line in sys.stdin:
        request = json.loads(line)
        if request.get("quit"):
            break
        pipe.write(json.dumps(answer(lookup, request, config["columns"])) + "\n")
