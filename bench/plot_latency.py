#!/usr/bin/env python3
"""Plots the output of the benchmark `latency`: how late timers and posts run, by load. Of several runs it shows medians.

Usage: (build/bench/latency; sh bench/peers/latency.sh) | bench/plot_latency.py > bench/latency.svg
"""
import json
import math
import statistics
import sys

WIDTH, HEIGHT, LEFT, TOP, GAP = 420, 300, 70, 50, 80
COLOURS = {"bide-loop": "#1f77b4", "bide-pool": "#9467bd", "go": "#d62728", "tokio": "#2ca02c"}
LOADS = ["idle", "ready", "turns", "yielders"]
TITLES = {"timer": "a timer", "post": "a post from another thread"}


def read(lines):
    values = {}
    for line in lines:
        line = json.loads(line)
        if line["bench"] == "latency":
            p = line["params"]
            values.setdefault((p["of"], line["subject"], p["load"], p["at"]), []).append(line["value"])
    return {key: statistics.median(found) for key, found in values.items()}


def time(value):
    for unit, factor in (("s", 1e6), ("ms", 1e3)):
        if value >= factor:
            return f"{value / factor:g} {unit}"
    return f"{value:g} µs"


def panel(left, of, values, low, high):
    y = lambda value: TOP + HEIGHT * (1 - (math.log10(value) - low) / (high - low))
    out = [f'<text x="{left}" y="{TOP - 20}" class="title">{TITLES[of]}</text>']
    for exponent in range(low, high + 1):
        at = y(10.0**exponent)
        out.append(f'<line x1="{left}" y1="{at:.1f}" x2="{left + WIDTH}" y2="{at:.1f}" class="grid"/>')
        out.append(f'<text x="{left - 6}" y="{at + 4:.1f}" class="end">{time(10.0**exponent)}</text>')
    subjects = [name for name in COLOURS if any(key[1] == name for key in values)]
    for i, load in enumerate(LOADS):
        middle = left + WIDTH * (i + 0.5) / len(LOADS)
        out.append(f'<text x="{middle:.1f}" y="{TOP + HEIGHT + 18}" class="middle">{load}</text>')
        for j, subject in enumerate(subjects):
            if (of, subject, load, "p50") not in values:
                continue
            x = middle + 18 * (j - (len(subjects) - 1) / 2)
            p50, p99, most = (y(values[of, subject, load, at]) for at in ("p50", "p99", "max"))
            colour = COLOURS[subject]
            out.append(f'<line x1="{x:.1f}" y1="{p50:.1f}" x2="{x:.1f}" y2="{most:.1f}" stroke="{colour}"/>')
            out.append(f'<circle cx="{x:.1f}" cy="{p50:.1f}" r="4" fill="{colour}"/>')
            for at in (p99, most):
                out.append(f'<line x1="{x - 5:.1f}" y1="{at:.1f}" x2="{x + 5:.1f}" y2="{at:.1f}" stroke="{colour}"/>')
    for j, subject in enumerate(subjects):
        at = left + 100 * j
        out.append(f'<circle cx="{at + 6}" cy="{TOP + HEIGHT + 40}" r="4" fill="{COLOURS[subject]}"/>')
        out.append(f'<text x="{at + 16}" y="{TOP + HEIGHT + 44}">{subject}</text>')
    return out


def main():
    values = read(line for line in sys.stdin if line.startswith("{"))
    low = math.floor(math.log10(min(values.values())))
    high = math.ceil(math.log10(max(values.values())))
    width, height = LEFT + len(TITLES) * (WIDTH + GAP), TOP + HEIGHT + 80
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">')
    print("<style>text { font: 12px sans-serif } .title { font-weight: bold; font-size: 14px } "
          ".end { text-anchor: end } .middle { text-anchor: middle } .grid { stroke: #ddd } "
          "line { stroke-width: 1.5 }</style>")
    print('<rect width="100%" height="100%" fill="white"/>')
    for i, of in enumerate(TITLES):
        print("\n".join(panel(LEFT + i * (WIDTH + GAP), of, values, low, high)))
    print(f'<text x="{LEFT}" y="{TOP + HEIGHT + 66}">median (dot), 99th percentile and maximum (bars), logarithmic</text>')
    print("</svg>")


main()
