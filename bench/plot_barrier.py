#!/usr/bin/env python3
"""Plots the output of the benchmark `barrier`.

Usage: make -s bench BENCH=barrier | bench/plot_barrier.py > bench/barrier.svg
"""
import json
import math
import sys

WIDTH, HEIGHT, LEFT, TOP, GAP = 360, 300, 70, 50, 90
COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b"]
DASHES = {"median": "", "p99": "6,3", "p99.9": "2,3", "rate": ""}


def read(lines):
    figures = {}
    for line in lines:
        line = json.loads(line)
        if line["bench"] == "barrier":
            p = line["params"]
            key = (p["of"], p["target"], p["threads"], p["loop"], p["waiters"])
            figures[key] = line["value"]
    return figures


def series(figures, of, target, threads, loop):
    """Its points, (waiters, value). The figure without waiters belongs to every series of rates."""
    points = {k[4]: v for k, v in figures.items() if k[:4] == (of, target, threads, loop)}
    none = figures.get(("rate", "next", threads, loop, 0))
    if of == "rate" and none is not None:
        points[0] = none
    return sorted(points.items())


def time(value):
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if value >= factor:
            return f"{value / factor:g} {unit}"
    return f"{value:g} ns"


def rate(value):
    for unit, factor in (("M/s", 1e6), ("k/s", 1e3)):
        if value >= factor:
            return f"{value / factor:g} {unit}"
    return f"{value:g} /s"


class Panel:
    def __init__(self, left, title, show, lines):
        self.left, self.title, self.show = left, title, show
        self.lines = [line for line in lines if line[2]]
        values = [value for _, _, points in self.lines for _, value in points]
        self.low = math.floor(math.log10(min(values)))
        self.high = math.ceil(math.log10(max(values)))
        self.waiters = sorted({n for _, _, points in self.lines for n, _ in points})

    def x(self, waiters):
        return self.left + WIDTH * self.waiters.index(waiters) / max(1, len(self.waiters) - 1)

    def y(self, value):
        part = (math.log10(value) - self.low) / max(1, self.high - self.low)
        return TOP + HEIGHT * (1 - part)

    def draw(self):
        out = [f'<text x="{self.left}" y="{TOP - 20}" class="title">{self.title}</text>']
        for exponent in range(self.low, self.high + 1):
            y = self.y(10.0**exponent)
            out.append(f'<line x1="{self.left}" y1="{y:.1f}" x2="{self.left + WIDTH}" y2="{y:.1f}" class="grid"/>')
            out.append(f'<text x="{self.left - 6}" y="{y + 4:.1f}" class="end">{self.show(10.0**exponent)}</text>')
        for n in self.waiters:
            out.append(f'<text x="{self.x(n):.1f}" y="{TOP + HEIGHT + 18}" class="middle">{n}</text>')
        out.append(f'<text x="{self.left + WIDTH / 2}" y="{TOP + HEIGHT + 36}" class="middle">waiters</text>')
        for i, (name, (colour, dash), points) in enumerate(self.lines):
            style = f'stroke="{colour}" stroke-dasharray="{dash}"'
            path = " ".join(f"{self.x(n):.1f},{self.y(value):.1f}" for n, value in points)
            y = TOP + HEIGHT + 58 + 17 * i
            out.append(f'<polyline points="{path}" fill="none" {style}/>')
            out.append(f'<line x1="{self.left}" y1="{y - 4}" x2="{self.left + 30}" y2="{y - 4}" {style}/>')
            out.append(f'<text x="{self.left + 38}" y="{y}">{name}</text>')
        return out


def main():
    figures = read(line for line in sys.stdin if line.startswith("{"))
    targets = {"far": "for a number far ahead", "next": "for each next number"}

    def wakes(threads, cases):
        return [(f"{part}, {name}", (COLOURS[i], DASHES[part]), series(figures, part, target, threads, loop))
                for i, (target, loop, name) in enumerate(cases) for part in ("median", "p99", "p99.9")]

    rates = [(f"{targets[target]}, {threads} thread{'s' if threads > 1 else ''}", (COLOURS[i], ""),
              series(figures, "rate", target, threads, "looks"))
             for i, (target, threads) in enumerate((t, n) for t in targets for n in (1, 2))]
    panels = [
        ("publishes a second", rate, rates),
        ("publish until awake, same thread", time,
         wakes(1, [("far", "looks", "one of others far ahead"), ("next", "looks", "of all")])),
        ("publish until awake, another thread", time,
         wakes(2, [("far", "looks", "one of others far ahead"), ("next", "looks", "of all"),
                   ("next", "sleeps", "of all, thread asleep")])),
    ]
    drawn = [Panel(LEFT + i * (WIDTH + GAP), *panel) for i, panel in enumerate(panels)]
    height = TOP + HEIGHT + 60 + 17 * max(len(panel.lines) for panel in drawn)
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + len(drawn) * (WIDTH + GAP)}" height="{height}">')
    print("<style>text { font: 12px sans-serif } .title { font-weight: bold; font-size: 14px } "
          ".end { text-anchor: end } .middle { text-anchor: middle } .grid { stroke: #ddd } "
          "polyline, line { stroke-width: 1.5 }</style>")
    print('<rect width="100%" height="100%" fill="white"/>')
    for panel in drawn:
        print("\n".join(panel.draw()))
    print("</svg>")


main()
