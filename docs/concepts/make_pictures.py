#!/usr/bin/env python3
"""Makes the pictures of docs/concepts: the 4x4 grid in three orders, and the curves of upkeep.

The upkeep curves come from `grebe layout simulate`, and their figures are kept in upkeep.json.

  docs/concepts/make_pictures.py [--grebe PATH] [--check] [--grid-only]
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
STYLE = """<style>
svg { color-scheme: light dark; } text { font: 12px sans-serif; fill: #1d2320; }
.frame, .cell { fill: none; stroke: #9aa39d; } .soft { fill: #5c6660; }
.path { fill: none; stroke: #2f6fb3; stroke-width: 2; } .dot { fill: #2f6fb3; }
.plan { fill: #c2570c; stroke: #c2570c; } .tiered { fill: #2f6fb3; stroke: #2f6fb3; }
.levelled { fill: #1b7f4d; stroke: #1b7f4d; } .line { fill: none; stroke-width: 1.5; }
@media (prefers-color-scheme: dark) { text { fill: #e8ece9; } .soft { fill: #a3ada7; }
.path { stroke: #7db4ee; } .dot { fill: #7db4ee; } .plan { fill: #f0a05a; stroke: #f0a05a; }
.tiered { fill: #7db4ee; stroke: #7db4ee; } .levelled { fill: #62c993; stroke: #62c993; }
.line { fill: none; } }
</style>"""


def z_key(a, b):
    """Two bits of each, in turn; a first."""
    return (a >> 1) << 3 | (b >> 1) << 2 | (a & 1) << 1 | (b & 1)


def hilbert_cells():
    """The 4x4 curve, from four copies of the 2x2 one, turned so that their ends meet."""
    cells = [(0, 0)]
    for side in (1, 2):
        down = [(y, x) for x, y in cells]
        up = [(side - 1 - y, side - 1 - x) for x, y in cells]
        cells = (down + [(x, y + side) for x, y in cells]
                 + [(x + side, y + side) for x, y in cells] + [(x + side, y) for x, y in up])
    return cells


def orders():
    grid = [(a, b) for a in range(4) for b in range(4)]
    return [("sort(a, b)", grid), ("zorder(a, b)", sorted(grid, key=lambda c: z_key(*c))),
            ("hilbert(a, b)", hilbert_cells())]


def grid_svg():
    side, gap, out = 40, 48, []
    width = 3 * 4 * side + 4 * gap
    out.append(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 232" role="img">')
    out.append("<title>A grid of 4 by 4 cells in three orders</title>")
    out.append("<desc>The path through all 16 cells by a plain sort, along the Z-order curve and "
               "along the Hilbert curve; the number in a cell is its place.</desc>" + STYLE)
    for number, (name, cells) in enumerate(orders()):
        left, top = gap + number * (4 * side + gap), 24

        def place(cell, left=left, top=top):
            return left + cell[0] * side + side / 2, top + (3 - cell[1]) * side + side / 2

        for cell in cells:
            x, y = place(cell)
            out.append(f'<rect class="cell" x="{x - side / 2:g}" y="{y - side / 2:g}" '
                       f'width="{side}" height="{side}"/>')
        points = " ".join(f"{x:g},{y:g}" for x, y in map(place, cells))
        out.append(f'<polyline class="path" points="{points}"/>')
        for at, cell in enumerate(cells):
            x, y = place(cell)
            out.append(f'<circle class="dot" cx="{x:g}" cy="{y:g}" r="3"/>'
                       f'<text class="soft" x="{x - 17:g}" y="{y - 7:g}">{at}</text>')
        out.append(f'<text x="{left}" y="14">{name}</text>'
                   f'<text class="soft" x="{left}" y="{top + 4 * side + 18}">a to the right, '
                   f'b upwards</text>')
    return "\n".join(out + ["</svg>", ""])


def simulate(grebe, *words):
    done = subprocess.run([grebe, "layout", "simulate", "--format", "json", *map(str, words)],
                          text=True, capture_output=True, check=True)
    got = json.loads(done.stdout)
    return {key: round(got[key], 3) for key in ("average_depth", "write_amplification",
                                                "second_plan_rows")}


def measure(grebe):
    jobs = {}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for weight in (1.5, 2, 2.5, 3, 3.5, 4, 5, 6):
            jobs["plan", weight] = pool.submit(simulate, grebe, "--weight", weight)
        for runs in range(2, 17):
            for upkeep in ("tiered", "levelled"):
                jobs[upkeep, runs] = pool.submit(simulate, grebe, "--upkeep", upkeep, "--runs", runs)
        for arrival in ("time", "late"):
            jobs[arrival, 3] = pool.submit(simulate, grebe, "--arrival", arrival)
    figures = {}
    for (name, value), job in jobs.items():
        figures.setdefault(name, {})[str(value)] = job.result()
    return figures


def upkeep_svg(figures):
    width, height, left, top = 560, 360, 56, 20
    depth_max, cost_max = 17, 21

    def place(point):
        return (left + point["average_depth"] / depth_max * (width - left - 20),
                top + (1 - point["write_amplification"] / cost_max) * (height - top - 50))

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
           "<title>Depth against write amplification over 1,000 appends</title>",
           "<desc>Three curves: Grebe's plan lies below size-tiered and levelled merging.</desc>",
           STYLE]
    for depth in range(0, depth_max + 1, 2):
        x, y = place({"average_depth": depth, "write_amplification": 0})
        out.append(f'<text class="soft" x="{x:.1f}" y="{y + 16:.1f}" text-anchor="middle">{depth}'
                   f'</text><path class="cell" d="M{x:.1f} {y:.1f}v-4"/>')
    for cost in range(0, cost_max, 5):
        x, y = place({"average_depth": 0, "write_amplification": cost})
        out.append(f'<text class="soft" x="{x - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{cost}'
                   f'</text><path class="cell" d="M{x:.1f} {y:.1f}h{width - left - 20}" '
                   f'stroke-opacity=".3"/>')
    out.append(f'<text x="{left}" y="{height - 6}">average depth</text>'
               f'<text x="4" y="12">write amplification</text>')
    for row, name in enumerate(("plan", "tiered", "levelled")):
        points = sorted(figures[name].values(), key=lambda p: p["average_depth"])
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, points))
        out.append(f'<polyline class="line {name}" points="{path}" style="fill:none"/>')
        out += [f'<circle class="{name}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
                for x, y in map(place, points)]
        out.append(f'<circle class="{name}" cx="{width - 150}" cy="{top + 14 + 20 * row}" r="4"/>'
                   f'<text x="{width - 140}" y="{top + 18 + 20 * row}">{name}</text>')
    return "\n".join(out + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--grebe", default=os.environ.get("GREBE_BIN", "build/release/grebe"))
    parser.add_argument("--check", action="store_true", help="only say what is out of date")
    parser.add_argument("--grid-only", action="store_true")
    args = parser.parse_args()
    wanted = {"grid.svg": grid_svg()}
    kept = HERE / "upkeep.json"
    if args.check:
        # A few points are run again; the picture is drawn from what is kept.
        figures = json.loads(kept.read_text())
        for name, value, words in (("plan", "3", ["--weight", 3]),
                                   ("tiered", "4", ["--upkeep", "tiered", "--runs", 4]),
                                   ("levelled", "4", ["--upkeep", "levelled", "--runs", 4]),
                                   ("time", "3", ["--arrival", "time"])):
            got = simulate(args.grebe, *words)
            if got != figures[name][value]:
                sys.exit(f"{kept.name} is out of date: {name} {value}: {got}, kept "
                         f"{figures[name][value]}: run docs/concepts/make_pictures.py")
    elif not args.grid_only:
        kept.write_text(json.dumps(measure(args.grebe), indent=1) + "\n")
    if kept.exists():
        wanted["upkeep.svg"] = upkeep_svg(json.loads(kept.read_text()))
    for name, text in wanted.items():
        path = HERE / name
        if args.check:
            if not path.exists() or path.read_text() != text:
                sys.exit(f"{name} is out of date: run docs/concepts/make_pictures.py")
        else:
            path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
