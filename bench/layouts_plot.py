"""The plot of bench/layouts.py: a group of bars for each data set, on a logarithmic scale."""
import html
import math

COLOURS = {"arrival order": "#9a9a9a", "sort": "#c8a165", "DuckDB's sort": "#e0c48f",
           "delta-rs z_order": "#d2691e", "zorder, raw": "#9fb8d8", "zorder, rank": "#4878b0",
           "hilbert, rank": "#1f4e79", "tree(LOG)": "#2e8b57"}
WIDTH, BAR, GAP, LEFT, TOP = 860, 13, 16, 190, 30
TICKS = (1, 2, 4, 8, 16, 32, 64)


def svg(results):
    """Shorter is better: rows read over the lower bound."""
    values = [r["rows"] for of in results.values() for r in of.values() if "rows" in r]
    top = max(2.0, *values)
    x = lambda value: LEFT + (WIDTH - LEFT - 60) * math.log(max(value, 1)) / math.log(top * 1.1)
    body, y = [], TOP
    for name, of in results.items():
        body.append(f'<text x="8" y="{y + 10}" font-weight="bold">{html.escape(name)}</text>')
        y += 18
        for title, facts in of.items():
            if "rows" not in facts:
                continue
            body.append(f'<text x="{LEFT - 6}" y="{y + BAR - 3}" text-anchor="end">'
                        f'{html.escape(title)}</text>')
            body.append(f'<rect x="{LEFT}" y="{y}" width="{max(x(facts["rows"]) - LEFT, 1):.1f}" '
                        f'height="{BAR - 2}" fill="{COLOURS.get(title, "#555")}"/>')
            body.append(f'<text x="{x(facts["rows"]) + 4:.1f}" y="{y + BAR - 3}">'
                        f'{facts["rows"]:.2f}</text>')
            y += BAR
        y += GAP
    lines = []
    for tick in TICKS:
        if tick <= top * 1.1:
            lines.append(f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{TOP - 6}" y2="{y}" '
                         'stroke="#ddd"/>')
            lines.append(f'<text x="{x(tick):.1f}" y="{TOP - 10}" text-anchor="middle" '
                         f'fill="#666">{tick}</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 10}" '
            'font-family="sans-serif" font-size="11">\n'
            f'<rect width="{WIDTH}" height="{y + 10}" fill="white"/>\n'
            + "\n".join(lines + body) + "\n</svg>\n")
