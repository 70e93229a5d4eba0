#!/usr/bin/env python3
"""Line coverage of a build made with the coverage preset, after its tests have run.

  tools/coverage.py build/coverage

Prints, and writes to BUILD/coverage.txt, one line a file of src/ and include/: lines, lines run,
percent; and the lines that never ran to BUILD/uncovered.txt. Uses gcov alone.
"""

import collections
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def read_counts(build):
    """path -> line -> how often it ran, over all objects that hold it."""
    counts = collections.defaultdict(lambda: collections.defaultdict(int))
    data = [str(p.resolve()) for p in sorted(build.rglob("*.gcda"))]
    with tempfile.TemporaryDirectory() as folder:
        for i in range(0, len(data), 20):
            subprocess.run(["gcov", "--json-format", "--object-directory", ".", *data[i:i + 20]],
                           cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           check=True)
            for path in pathlib.Path(folder).glob("*.gcov.json.gz"):
                add_counts(counts, json.loads(gzip.decompress(path.read_bytes())), build)
                path.unlink()
    return counts


def add_counts(counts, report, build):
    folder = pathlib.Path(report.get("current_working_directory", build))
    for file in report["files"]:
        path = (folder / file["file"]).resolve()
        if not path.is_relative_to(ROOT):
            continue
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(("src/", "include/")) and not name.endswith("_test.cc"):
            for line in file["lines"]:
                counts[name][line["line_number"]] += line["count"]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    counts = read_counts(build)
    rows, missed, total, run = [], [], 0, 0
    for name in sorted(counts):
        lines = counts[name]
        ran = sum(1 for count in lines.values() if count)
        rows.append(f"{len(lines):6} {ran:6} {100 * ran / len(lines):5.1f} %  {name}")
        missed += [f"{name}:{line}" for line, count in sorted(lines.items()) if not count]
        total, run = total + len(lines), run + ran
    rows.append(f"{total:6} {run:6} {100 * run / max(total, 1):5.1f} %  in all")
    text = "\n".join(rows) + "\n"
    print(text, end="")
    (build / "coverage.txt").write_text(text)
    (build / "uncovered.txt").write_text("\n".join(missed) + "\n")


if __name__ == "__main__":
    main()
