#!/usr/bin/env python3
"""Makes the seeds of fuzz/corpus from real objects: small indexes and small Parquet files.

  fuzz/make_seeds.py [--grebe build/release/grebe]

Writes fuzz/corpus/{fragment,manifest,page_header}/seed-*. Needed again only when a format or a
fuzz program's input changes; the seeds are checked in.
"""

import argparse
import json
import pathlib
import struct
import subprocess
import tempfile

import pyarrow as pa
import pyarrow.parquet as pq

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORPUS = ROOT / "fuzz" / "corpus"
TAIL_BYTES = 33     # of a manifest: docs/format/manifest.md
MAGIC_BYTES = 8     # of a fragment
ROOT_BYTES = 24


def write(name, number, data):
    folder = CORPUS / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"seed-{number:02}").write_bytes(data)


def tables():
    """Small tables that make different fragments: table, key, covering (or --sorted)."""
    rows = 300
    numbers = pa.array([i // 3 for i in range(rows)], pa.int64())
    texts = pa.array([None if i % 50 == 0 else f"key {i % 40}" for i in range(rows)])
    table = pa.table({"k": numbers, "s": texts, "v": pa.array(range(rows), pa.int32()),
                      "many": pa.array([7] * rows, pa.int16())})
    yield table, "k", ""
    yield table, "s", "v"
    yield table, "k,s", ""
    yield table, "many", ""
    yield table.slice(0, 1), "k", "s,v"
    yield table.slice(0, 0), "k", ""
    yield table, "k", "--sorted"
    yield table, "s,k", "--sorted"


def index_seeds(grebe, folder):
    manifests = fragments = 0
    for number, (table, key, covering) in enumerate(tables()):
        lake = folder / f"lake{number}"
        lake.mkdir()
        pq.write_table(table, lake / "a.parquet", row_group_size=100)
        command = [grebe, "index", "create", lake, "--key", key, "--name", "i"]
        extra = [] if not covering else ["--sorted"] if covering == "--sorted" else [
            "--covering", covering]
        subprocess.run(command + extra, check=True, stdout=subprocess.DEVNULL)
        if number == 0:  # a dead file and a second fragment
            (lake / "a.parquet").unlink()
            pq.write_table(table.slice(5), lake / "b.parquet")
            subprocess.run([grebe, "index", "refresh", lake, "--name", "i"], check=True,
                           stdout=subprocess.DEVNULL)
        for path in sorted((lake / "_index/i/manifest").glob("0*.json")):
            body = path.read_bytes()[:-TAIL_BYTES].replace(str(lake).encode(), b"/lake")
            write("manifest", manifests, body)
            manifests += 1
        for path in sorted((lake / "_index/i/fragment").glob("*.gfx")):
            data = path.read_bytes()
            head_bytes = struct.unpack_from("<Q", data, len(data) - ROOT_BYTES)[0]
            sections = data[MAGIC_BYTES:len(data) - head_bytes]
            body = data[len(data) - head_bytes:-ROOT_BYTES]
            if len(sections) <= 0xffff:
                write("fragment", fragments, struct.pack("<H", len(sections)) + sections + body)
                fragments += 1
    tombstone = json.loads((CORPUS / "manifest/seed-00").read_bytes() + b"}")
    tombstone.update(dropped=True, fragments=[], version=9)
    lines = ",\n".join(f'"{k}":{json.dumps(v, separators=(",", ":"))}'
                       for k, v in sorted(tombstone.items()))
    write("manifest", manifests, ("{\n" + lines).encode())


def page_header_seeds(folder):
    """The first bytes of chunks, in both page versions, with a place that fits them."""
    number = 0
    table = pa.table({"a": pa.array([i % 9 for i in range(500)]),
                      "l": pa.array([[i, None] for i in range(500)])})
    for version in ("1.0", "2.0"):
        for dictionary in (True, False):
            path = folder / f"p{version}{dictionary}.parquet"
            pq.write_table(table, path, data_page_version=version, use_dictionary=dictionary,
                           compression="zstd", write_page_index=True, write_page_checksum=True)
            data = path.read_bytes()
            group = pq.read_metadata(path).row_group(0)
            for column in range(group.num_columns):
                chunk = group.column(column)
                starts = [chunk.data_page_offset]
                if chunk.has_dictionary_page:
                    starts.append(chunk.dictionary_page_offset)
                for start in starts:
                    write("page_header", number, bytes([255, 12]) + data[start:start + 80])
                    number += 1
            # The page index lies between the data and the footer.
            footer = struct.unpack_from("<I", data, len(data) - 8)[0]
            end = len(data) - 8 - footer
            write("page_header", number, bytes([255, 12]) + data[end - 60:end])
            number += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--grebe", type=pathlib.Path, default=ROOT / "build/release/grebe")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        index_seeds(args.grebe.resolve(), pathlib.Path(folder))
        page_header_seeds(pathlib.Path(folder))


if __name__ == "__main__":
    main()
