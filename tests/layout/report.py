#!/usr/bin/env python3
"""grebe layout report against brute force: depths from the footers that pyarrow reads, rows from
DuckDB, files read from the footers' bounds; and the page it draws, in a browser if there is one.

  tests/layout/report.py [--seed N] [--tables N]
"""

import html.parser
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from common import arguments  # noqa: E402

GREBE = os.environ.get("GREBE_BIN", "build/release/grebe")


def grebe(*words, ok=True):
    done = subprocess.run([GREBE, *map(str, words)], text=True, capture_output=True)
    assert (done.returncode == 0) == ok, done.stderr
    return json.loads(done.stdout) if ok else done.stderr


def make_table(rng, folder):
    """Files with overlapping ranges; some with nulls, some without statistics."""
    paths, layout = [], rng.choice(["spread", "sorted", "runs"])
    for number in range(rng.randint(1, 12)):
        rows = rng.randint(1, 120)
        low = {"spread": 0, "sorted": number * 100, "runs": number % 3 * 150}[layout]
        columns = {
            "a": [low + rng.randint(0, 110) for _ in range(rows)],
            "b": [None if rng.random() < 0.1 else round(rng.uniform(0, 50), 2)
                  for _ in range(rows)],
            "s": [f"k{rng.randint(0, 30):02}" for _ in range(rows)],
        }
        if rng.random() < 0.1:
            columns["b"] = [None] * rows
        table = pa.table(columns, schema=pa.schema(
            [("a", pa.int64()), ("b", pa.float64()), ("s", pa.string())]))
        path = folder / f"f{number:02}.parquet"
        pq.write_table(table, path, row_group_size=rng.choice([25, 1000]),
                       write_page_index=rng.random() < 0.5,
                       write_statistics=rng.random() > 0.15)
        paths.append(path)
    return paths


def bounds_of(path, column):
    """(least, greatest) by the footer; "all" without bounds; None for nulls alone."""
    metadata = pq.ParquetFile(path).metadata
    index = metadata.schema.to_arrow_schema().get_field_index(column)
    lows, highs = [], []
    for group in range(metadata.num_row_groups):
        chunk = metadata.row_group(group).column(index)
        statistics = chunk.statistics
        if statistics is None:
            return "all"
        if not statistics.has_min_max:
            if statistics.null_count == chunk.num_values:
                continue
            return "all"
        lows.append(statistics.min)
        highs.append(statistics.max)
    return (min(lows), max(highs)) if lows else None


def meets(x, y):
    return x is not None and y is not None and (
        x == "all" or y == "all" or (x[0] <= y[1] and y[0] <= x[1]))


def covers(x, point):
    return x == "all" or x[0] <= point <= x[1]


def brute_depths(boxes):
    """The depths of the boxes that have a point: the most boxes at any corner of low bounds."""
    boxes = [box for box in boxes if None not in box]
    depths = [1] * len(boxes)
    corners = []
    for column in range(len(boxes[0]) if boxes else 0):
        lows = {box[column][0] for box in boxes if box[column] != "all"}
        corners.append(sorted(lows) or ["nowhere"])
    for point in itertools.product(*corners):
        here = [i for i, box in enumerate(boxes)
                if all(side == "all" or (at != "nowhere" and covers(side, at))
                       for side, at in zip(box, point))]
        for i in here:
            depths[i] = max(depths[i], len(here))
    return depths


def check_depth(figures, boxes, what):
    depths = brute_depths(boxes)
    solid = [box for box in boxes if None not in box]
    assert figures["pieces"] == len(solid), what
    assert figures["without_values"] == len(boxes) - len(solid), what
    assert figures["max_depth"] == max(depths, default=0), (what, figures, depths)
    histogram = {}
    for depth in depths:
        histogram[str(depth)] = histogram.get(str(depth), 0) + 1
    assert figures["histogram"] == histogram, (what, figures, histogram)
    overlaps = sum(all(map(meets, x, y)) for x, y in itertools.permutations(solid, 2))
    if solid:
        assert abs(figures["average_overlaps"] - overlaps / len(solid)) < 1e-9, what
    assert figures["unknown"] == sum("all" in box for box in solid), what


def check_queries(rng, folder, paths):
    low, width, top = rng.randint(0, 400), rng.randint(0, 200), round(rng.uniform(0, 55), 2)
    text = f"k{rng.randint(0, 31):02}"
    queries = {
        f"a BETWEEN {low} AND {low + width}": lambda a, b, s: meets(a, (low, low + width)),
        f"b < {top}": lambda a, b, s: b == "all" or (b is not None and b[0] < top),
        f"a >= {low} AND s = '{text}'":
            lambda a, b, s: (a == "all" or a[1] >= low) and meets(s, (text, text)),
        f"a = {low} OR b = {top}": lambda a, b, s: meets(a, (low, low)) or meets(b, (top, top)),
    }
    log = folder / "log.txt"
    log.write_text("# a comment\n\n" + "\n".join(f"3 {query}" for query in queries))
    report = grebe("layout", "report", folder, "--queries", log, "--format", "json")
    sizes = [path.stat().st_size for path in paths]
    rows = [pq.ParquetFile(path).metadata.num_rows for path in paths]
    for got, (query, may_match) in zip(report["queries"], queries.items()):
        count = f"SELECT count(*) FROM '{folder}/*.parquet' WHERE {query}"
        wanted = duckdb.sql(count).fetchall()[0][0]
        assert got["predicate"] == query and got["weight"] == 3 and got["rows"] == wanted, got
        read = [i for i, path in enumerate(paths)
                if may_match(*(bounds_of(path, column) for column in "abs"))]
        assert got["files"]["read"] == len(read), (query, got)
        assert got["files"]["bytes_read"] == sum(sizes[i] for i in read), (query, got)
        fewest = 0
        while sum(sorted(rows, reverse=True)[:fewest]) < wanted:
            fewest += 1
        assert got["files"]["fewest"] == fewest, (query, got)
        # The least of any subset that could hold the rows is never below the bound.
        if len(paths) <= 10:
            least = min((sum(sizes[i] for i in chosen) for k in range(len(paths) + 1)
                         for chosen in itertools.combinations(range(len(paths)), k)
                         if sum(rows[i] for i in chosen) >= wanted), default=0)
            assert got["files"]["bytes_fewest"] <= least, (query, got, least)
        for level in ("row_groups", "pages"):
            share = got[level]
            assert share["fewest"] <= share["read"] <= share["total"], (query, got)
            assert share["bytes_fewest"] <= share["bytes_read"], (query, got)
            assert share["bytes_read"] <= share["bytes_total"], (query, got)
    sampled = grebe("layout", "report", folder, "--queries", log, "--format", "json",
                    "--sample", "100000000")
    assert [q["rows"] for q in sampled["queries"]] == [q["rows"] for q in report["queries"]]


def check_table(rng, folder):
    paths = make_table(rng, folder)
    report = grebe("layout", "report", folder, "--columns", "a,b,s", "--format", "json")
    assert report["files"] == len(paths)
    for figures in report["columns"]:
        boxes = [tuple(bounds_of(path, column) for column in figures["columns"]) for path in paths]
        check_depth(figures["files"], boxes, (figures["columns"], boxes))
        missing = {path.name for path, box in zip(paths, boxes) if "all" in box}
        assert missing == set(figures["files_without_bounds"]), figures
    check_queries(rng, folder, paths)


class PageCheck(html.parser.HTMLParser):
    """Every element is closed in order, names no outside resource, and runs nothing."""

    VOID = {"meta", "br"}
    KNOWN = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "div", "span", "b",
             "figure", "figcaption", "svg", "desc", "rect", "g", "path", "text", "tspan", "table",
             "caption", "thead", "tbody", "tr", "th", "td", "code", "bdi", "i", "br"}

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.texts = [], set(), []

    def handle_starttag(self, tag, attributes):
        assert tag in self.KNOWN, tag
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names)), names
        for name, value in attributes:
            assert name not in ("src", "href", "srcset", "action") and not name.startswith("on")
            assert "url(" not in (value or "")
            if name == "id":
                assert value not in self.ids, value
                self.ids.add(value)
        if tag == "svg":
            labels = dict(attributes)
            assert labels.get("role") == "img" and labels.get("aria-labelledby")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (self.open, tag)
        self.open.pop()

    def handle_data(self, data):
        self.texts.append(data)


def check_page(folder):
    """A page of a table with a hostile name and hostile values, beside another table."""
    hostile = "<script>alert(1)</script>\u202e'\"&"
    before, after = folder / hostile.replace("/", "_"), folder / "after"
    for target, spread in ((before, 1000), (after, 60)):
        target.mkdir()
        for number in range(16):
            rows = [number * 60 % 1000 + i * spread // 50 for i in range(50)]
            table = pa.table({hostile: rows, "b": [f"<b>{row:04}" for row in rows], "c": rows})
            pq.write_table(table, target / f"</td>{number:02}.parquet".replace("/", "_"))
    log = folder / "log"
    log.write_text("b = '<b>0100</b>'\n9 c < 100\n")
    page = folder / "page.html"
    grebe("layout", "report", before, "--columns", "c,b", "--queries", log, "--html", page,
          "--compare", after, "--format", "json")
    text = page.read_text(encoding="utf-8")
    check = PageCheck()
    check.feed(text)
    check.close()
    assert not check.open, check.open
    assert "\u202e" not in text and "<script" not in text and "&lt;script&gt;" in text
    labels = set(re.findall(r'aria-labelledby="([^"]+)"', text))
    assert all(name in check.ids for label in labels for name in label.split()), labels
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        print("no chromium here: the page was not drawn")
        return
    dumped = subprocess.run(
        [browser, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/c",
         "--dump-dom", page.as_uri()], text=True, capture_output=True, timeout=120)
    shown = PageCheck()
    shown.feed(dumped.stdout)
    # The browser saw the same elements: nothing had to be mended, nothing became markup.
    for tag in ("<rect", "<tr", "<figure", "<svg", "<h2"):
        assert dumped.stdout.count(tag) == text.count(tag) > 0, tag
    shot = folder / "shot.png"
    subprocess.run([browser, "--headless=new", "--no-sandbox", "--disable-gpu",
                    f"--user-data-dir={folder}/c", "--hide-scrollbars", "--window-size=1100,1600",
                    f"--screenshot={shot}", page.as_uri()], capture_output=True, timeout=120)
    assert shot.stat().st_size > 20000, "the picture is empty"


def main():
    args = arguments.parse(arguments.parser(__doc__, tables=40))
    rng = random.Random(args.seed)
    for _ in args.numbers:
        with tempfile.TemporaryDirectory() as folder:
            check_table(rng, pathlib.Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        check_page(pathlib.Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        assert "NotFound" in grebe("layout", "report", folder, ok=False)
        make_table(rng, pathlib.Path(folder))
        assert "InvalidArgument" in grebe("layout", "report", folder, "--columns", "nope", ok=False)
    print(f"{args.tables} tables agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
