#!/usr/bin/env python3
"""Plots the output of the benchmark `crowd`: the cost of an operation against the number of waiters.

Usage: make -s bench BENCH=crowd | bench/plot_crowd.py > bench/crowd.svg
"""
import json
import math
import sys

WIDTH, HEIGHT, LEFT, TOP, GAP = 260, 300, 70, 50, 80
COLOURS = {"bide": "#1f77b4", "go": "#d62728", "tokio": "#2ca02c", "bide, before": "#9467bd"}
DASHES = {"event": "", "semaphore": "6,3"}
TITLES = {
    "cancelled": "a wait that is cut short",
    "select": "a message to a select",
    "timeout": "a wait whose time has come",
    "publish": "a publish",
}


def read(lines):
    series = {}
    for line in lines:
        line = json.loads(line)
        if line["bench"] == "crowd":
            p = line["params"]
            key = (p["of"], line["subject"], p["on"])
            series.setdefault(key, []).append((p["waiters"], line["value"]))
    return {key: sorted(points) for key, points in series.items()}


def time(value):
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if value >= factor:
            return f"{value / factor:g} {unit}"
    return f"{value:g} ns"


def panel(left, of, series, low, high):
    x = lambda waiters: left + WIDTH * (math.log10(waiters) - 1) / 4
    y = lambda value: TOP + HEIGHT * (1 - (math.log10(value) - low) / (high - low))
    out = [f'<text x="{left}" y="{TOP - 20}" class="title">{TITLES[of]}</text>']
    for exponent in range(low, high + 1):
        at = y(10.0**exponent)
        out.append(f'<line x1="{left}" y1="{at:.1f}" x2="{left + WIDTH}" y2="{at:.1f}" class="grid"/>')
        out.append(f'<text x="{left - 6}" y="{at + 4:.1f}" class="end">{time(10.0**exponent)}</text>')
    lines = [(key, points) for key, points in series.items() if key[0] == of]
    for waiters in sorted({n for _, points in lines for n, _ in points}):
        out.append(f'<text x="{x(waiters):.1f}" y="{TOP + HEIGHT + 18}" class="middle">{waiters}</text>')
    out.append(f'<text x="{left + WIDTH / 2}" y="{TOP + HEIGHT + 36}" class="middle">waiters</text>')
    for i, ((_, subject, on), points) in enumerate(lines):
        style = f'stroke="{COLOURS[subject]}" stroke-dasharray="{DASHES[on]}"'
        path = " ".join(f"{x(n):.1f},{y(value):.1f}" for n, value in points)
        at = TOP + HEIGHT + 58 + 17 * i
        name = subject + (f", {on}" if of in ("cancelled", "timeout") else "")
        out.append(f'<polyline points="{path}" fill="none" {style}/>')
        out.append(f'<line x1="{left}" y1="{at - 4}" x2="{left + 30}" y2="{at - 4}" {style}/>')
        out.append(f'<text x="{left + 38}" y="{at}">{name}</text>')
    return out


def main():
    series = read(line for line in sys.stdin if line.startswith("{"))
    values = [value for points in series.values() for _, value in points]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    most = max(sum(key[0] == of for key in series) for of in TITLES)
    width, height = LEFT + len(TITLES) * (WIDTH + GAP), TOP + HEIGHT + 60 + 17 * most
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">')
    print("<style>text { font: 12px sans-serif } .title { font-weight: bold; font-size: 14px } "
          ".end { text-anchor: end } .middle { text-anchor: middle } .grid { stroke: #ddd } "
          "polyline, line { stroke-width: 1.5 }</style>")
    print('<rect width="100%" height="100%" fill="white"/>')
    for i, of in enumerate(TITLES):
        print("\n".join(panel(LEFT + i * (WIDTH + GAP), of, series, low, high)))
    print("</svg>")


main()
