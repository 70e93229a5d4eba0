#!/usr/bin/env python3
"""Recomputes the arithmetic of docs/concepts: what stands between backquotes as
`EXPRESSION = NUMBER`, the tables of worked cases, and the pictures.

  tests/concepts_test.py [--grebe PATH]
"""

import argparse
import itertools
import json
import math
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONCEPTS = ROOT / "docs" / "concepts"
NAMES = {"ceil": math.ceil, "sqrt": math.sqrt, "log2": math.log2, "log": math.log, "round": round,
         "len": len}
# The least number of sums a page must have, so that none goes unread.
PAGES = {"skipping.md": 8, "curves.md": 8, "depth.md": 5, "upkeep.md": 6, "choosing-columns.md": 8}

sys.path.insert(0, str(CONCEPTS))
import make_pictures  # noqa: E402  (beside the pages)


def check_sums(name, least):
    text = (CONCEPTS / name).read_text(encoding="utf-8")
    count = 0
    for span in re.findall(r"`([^`\n]+)`", text):
        match = re.fullmatch(r"(.*[-+*/(].*) = (-?[\d.]+)", span)
        if not match or not re.fullmatch(r"[\d\s.,()+*/\-a-z0-9':]+", match.group(1)):
            continue
        got = eval(match.group(1), {"__builtins__": {}}, NAMES)
        digits = len(match.group(2).partition(".")[2])
        assert abs(got - float(match.group(2))) <= 0.5 * 10 ** -digits + 1e-9, (name, span, got)
        count += 1
    assert count >= least, (name, count, least)
    return count


def rows_of(name, heading):
    """The rows of the page's table whose first heading is this."""
    text = (CONCEPTS / name).read_text(encoding="utf-8")
    match = re.search(rf"^\| {heading} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    return [[cell.strip() for cell in row.strip("|").split("|")]
            for row in match.group(1).strip().split("\n")]


def files_read(order, column):
    files = [order[at:at + 4] for at in range(0, 16, 4)]
    return sum(min(c[column] for c in f) <= 1 <= max(c[column] for c in f) for f in files)


def check_sixteen_rows():
    arrival = [(row % 4, (row % 4 + row // 4) % 4) for row in range(16)]
    orders = {name.replace(" ", ""): cells for name, cells in make_pictures.orders()}
    orders["arrival"] = arrival
    for layout, a, b in rows_of("skipping.md", "layout"):
        assert sorted(orders[layout]) == sorted(arrival), layout
        assert [files_read(orders[layout], c) for c in (0, 1)] == [int(a), int(b)], layout


def check_depths():
    for ranges, depths, depth, overlaps in rows_of("depth.md", "files"):
        files = [tuple(map(int, r.split("-"))) for r in ranges.split(", ")]
        got = [max(sum(low <= point <= high for low, high in files)
                   for point in range(own[0], own[1] + 1)) for own in files]
        assert got == [int(d) for d in depths.split(", ")], (ranges, got)
        assert abs(sum(got) / len(got) - float(depth)) < 1e-9, ranges
        meet = sum(x[0] <= y[1] and y[0] <= x[1] for x, y in itertools.permutations(files, 2))
        assert abs(meet / len(files) - float(overlaps)) < 1e-9, ranges


def check_curves():
    steps = {name: [abs(x[0] - y[0]) + abs(x[1] - y[1]) for x, y in itertools.pairwise(cells)]
             for name, cells in make_pictures.orders()}
    assert sum(steps["zorder(a, b)"]) == 24 and steps["hilbert(a, b)"] == [1] * 15, steps
    assert all(sorted(cells) == sorted(itertools.product(range(4), repeat=2))
               for _, cells in make_pictures.orders())


def frontier(points, depth):
    """The least amplification at this depth of the points and all mixtures of two."""
    least = min((c for d, c in points if d <= depth), default=math.inf)
    for (d1, c1), (d2, c2) in itertools.permutations(points, 2):
        if d1 <= depth < d2:
            least = min(least, c1 + (depth - d1) / (d2 - d1) * (c2 - c1))
    return least


def check_upkeep(grebe):
    figures = json.loads((CONCEPTS / "upkeep.json").read_text())

    def point(row):
        return row["average_depth"], row["write_amplification"]

    for upkeep, depth, cost in rows_of("upkeep.md", "upkeep"):
        name, value = upkeep.split()
        kept = point(figures[name][value])
        assert abs(kept[0] - float(depth)) <= 0.005001, (upkeep, kept)
        assert abs(kept[1] - float(cost)) <= 0.005001, (upkeep, kept)
    others = [point(row) for name in ("tiered", "levelled") for row in figures[name].values()]
    assert len(others) == 30
    for value, row in figures["plan"].items():
        depth, cost = point(row)
        assert cost <= frontier(others, depth), (value, depth, cost)
        assert row["second_plan_rows"] == 0, value
    depth, cost = point(figures["plan"]["3"])
    assert depth <= 8 and cost <= 5
    depth, cost = point(figures["time"]["3"])
    assert depth <= 2 and cost <= 2
    subprocess.run([sys.executable, CONCEPTS / "make_pictures.py", "--check", "--grebe", grebe],
                   check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--grebe", default=os.environ.get("GREBE_BIN",
                                                          ROOT / "build/release/grebe"))
    args = parser.parse_args()
    for name, least in PAGES.items():
        print(f"{name}: {check_sums(name, least)} sums")
    assert {p.name for p in CONCEPTS.glob("*.md")} == set(PAGES)
    check_sixteen_rows()
    check_depths()
    check_curves()
    check_upkeep(args.grebe)
    return 0


if __name__ == "__main__":
    sys.exit(main())
