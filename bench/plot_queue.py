#!/usr/bin/env python3
"""Plots the output of `queue sweep`: a row each for bounded and for unbounded queues, in ones and in batches.

On the left, one producer and one consumer: a bar for each queue, which also shows its colour. On the right, the queues
that allow more threads; a line that ends at the bottom continues below it.

Usage: build/bench/queue sweep | bench/plot_queue.py > bench/queue.svg
"""
import json
import math
import sys

WIDTH, HEIGHT, TOP, BELOW = 250, 225, 74, 80
BARS, NAMES, GAP = 170, 150, 62
OURS = ["#d62728", "#8c1d18", "#ff7f0e"]
OTHERS = ["#1f77b4", "#2ca02c", "#9467bd", "#17becf", "#7f7f7f", "#bcbd22", "#e377c2", "#8c564b", "#3f4f9f"]
ONE_ONLY = "#c4c4c4"
THREADS = [1, 2, 4, 8]
LEAST = 0.1

# The growing dimension: its title, its subtitle, and (producers, consumers) for n threads.
WAYS = [
    ("n to n", "producers, and as many consumers", lambda n: (n, n)),
    ("1 to n", "consumers of one producer", lambda n: (1, n)),
    ("n to 1", "producers for one consumer", lambda n: (n, 1)),
]


def read(lines):
    """{(bounded, batch): {subject: {(producers, consumers): value}}}"""
    figures = {}
    for line in lines:
        line = json.loads(line)
        if line["bench"] == "queue":
            p = line["params"]
            row = figures.setdefault(("unbounded" not in p["class"], p["batch"]), {})
            row.setdefault(line["subject"], {})[p["producers"], p["consumers"]] = line["value"] / 1e6
    return figures


def colours(figures):
    """{subject: (colour, width)}. A queue for one producer and one consumer has no lines; queues of other libraries are grey."""
    chosen = {}
    for bounded in (True, False):
        ours, others = iter(OURS), iter(OTHERS)
        for (kind, _), row in figures.items():
            for subject, points in row.items():
                if kind != bounded or subject in chosen:
                    continue
                if subject.startswith("bide"):
                    chosen[subject] = (next(ours, OURS[0]), 3)
                else:
                    chosen[subject] = (next(others, ONE_ONLY) if len(points) > 1 else ONE_ONLY, 1.5)
    return chosen


def text(x, y, words, kind=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{words}</text>'


def show(value):
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def bars(left, top, row, styles):
    """One to one, the fastest first."""
    ranked = sorted(((points[1, 1], subject) for subject, points in row.items() if (1, 1) in points), reverse=True)
    step = HEIGHT / max(len(ranked), 8)
    out = []
    for i, (value, subject) in enumerate(ranked):
        y = top + i * step
        colour, width = styles[subject]
        length = BARS * value / ranked[0][0]
        kind = "end ours" if width > 2 else "end"
        out.append(text(left + NAMES - 6, y + step / 2 + 4, subject, kind))
        out.append(f'<rect x="{left + NAMES}" y="{y + 2:.1f}" width="{length:.1f}" height="{step - 4:.1f}" '
                   f'fill="{colour}"/>')
        out.append(text(left + NAMES + length + 4, y + step / 2 + 4, show(value)))
    return out


def ticks(low, high):
    """1, 3, 10, 30 and so on, from the last below `low`, but LEAST at least, to the first above `high`."""
    values = [LEAST * 10**e * f for e in range(6) for f in (1, 3)]
    first = max([i for i, v in enumerate(values) if v <= low], default=0)
    last = min([i for i, v in enumerate(values) if v >= high], default=len(values) - 1)
    return values[first:last + 1]


def lines(left, top, row, styles, way, scale):
    def x(n):
        return left + WIDTH * THREADS.index(n) / (len(THREADS) - 1)

    def y(value):
        return top + HEIGHT * (1 - math.log(max(value / scale[0], 1)) / math.log(scale[-1] / scale[0]))

    out = []
    for value in scale:
        out.append(f'<line x1="{left}" y1="{y(value):.1f}" x2="{left + WIDTH}" y2="{y(value):.1f}" class="grid"/>')
        out.append(text(left - 6, y(value) + 4, f"{value:g}", "end"))
    for n in THREADS:
        out.append(text(x(n), top + HEIGHT + 16, n, "middle"))
    out.append(text(left + WIDTH / 2, top + HEIGHT + 33, way[1], "middle"))
    # (bide's come last, so on top)
    for subject in sorted(row, key=lambda name: styles[name][1]):
        colour, width = styles[subject]
        points = [(x(n), y(row[subject][way[2](n)])) for n in THREADS if way[2](n) in row[subject]]
        if len(points) > 1:
            path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
            out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}">'
                       f"<title>{subject}</title></polyline>")
            out += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{width + 0.5}" fill="{colour}"/>'
                    for a, b in points if b < top + HEIGHT]
    return out


def main():
    figures = read(line for line in sys.stdin if line.startswith("{"))
    styles = colours(figures)
    rows = sorted(figures, key=lambda key: (not key[0], key[1]))
    lefts = [NAMES + BARS + 40 + GAP + i * (WIDTH + GAP) for i in range(len(WAYS))]
    width, height = lefts[-1] + WIDTH + 20, TOP + len(rows) * (HEIGHT + BELOW) - 20
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">')
    print("<style>text { font: 12px sans-serif } .title { font-weight: bold; font-size: 14px } "
          ".end { text-anchor: end } .middle { text-anchor: middle } .ours { font-weight: bold } "
          ".grid { stroke: #ddd }</style>")
    print('<rect width="100%" height="100%" fill="white"/>')
    print(text(20, 24, "Million numbers a second through a queue. A thread each, on two processors; "
               "bide in bold; grey: for one and one only", "title"))
    for left, way in zip(lefts, WAYS):
        print(text(left + WIDTH / 2, 48, way[0], "title middle"))
    for i, key in enumerate(rows):
        top = TOP + i * (HEIGHT + BELOW)
        kind = "bounded" if key[0] else "unbounded"
        batch = "in ones" if key[1] == 1 else f"in batches of {key[1]}"
        print(text(20, top - 8, f"{kind}, {batch}: 1 to 1", "title"))
        print("\n".join(bars(0, top, figures[key], styles)))
        values = [points[way[2](n)] for points in figures[key].values() if len(points) > 1
                  for way in WAYS for n in THREADS if way[2](n) in points]
        if values:
            scale = ticks(min(values), max(values))
            for left, way in zip(lefts, WAYS):
                print("\n".join(lines(left, top, figures[key], styles, way, scale)))
    print("</svg>")


main()
