#!/usr/bin/env python3
"""Plots the picture of the README: an await, a hand-over, and the memory of a waiting task, compared with other libraries.

Usage: for b in await event memory; do make -s bench BENCH=$b; done | bench/plot_beside.py > bench/beside.svg
"""
import json
import sys

WIDTH, BAR, GAP, LEFT, TOP, RIGHT = 760, 20, 34, 170, 30, 90
COLOURS = {"bide": "#1f77b4"}
OTHERS = "#b0b7bf"

PANELS = [
    ("await a child that completes at once, ns", "await", {}, [
        ("bide", "bide", {"init": "inline"}),
        ("Rust async fn", "rust-async-fn", {}),
        ("C++20 task, g++", "cxx20-task", {}),
    ]),
    ("two tasks wake each other in turn, on one thread, ns a round", "event", {}, [
        ("bide", "bide", {"threads": 1, "by": "auto"}),
        ("C++20 on a loop, g++", "cxx20-loop-g++", {"threads": 1}),
        ("tokio", "tokio-notify", {"threads": 1}),
        ("Go", "go-channel", {"threads": 1}),
    ]),
    ("memory of a task that waits for an event, bytes", "memory", {"of": "task"}, [
        ("bide, in an array", "bide", {}),
        ("C++20 task, g++", "cxx20-task-g++", {}),
        ("bide, created", "bide-created", {}),
        ("tokio", "tokio-task", {}),
        ("Go", "go-goroutine", {"threads": 1}),
    ]),
]


def find(lines, bench, subject, params):
    for line in lines:
        if line["bench"] == bench and line["subject"] == subject and \
                all(line["params"].get(k) == v for k, v in params.items()):
            return line["value"]
    return None


def panel(out, y, title, bars):
    longest = max(value for _, value in bars)
    out.append(f'<text x="0" y="{y}" font-weight="bold">{title}</text>')
    for name, value in bars:
        y += BAR + 4
        width = max(2, (WIDTH - LEFT - RIGHT) * value / longest)
        colour = COLOURS.get(name.split(",")[0], OTHERS)
        out.append(f'<text x="{LEFT - 8}" y="{y}" text-anchor="end">{name}</text>')
        out.append(f'<rect x="{LEFT}" y="{y - BAR + 6}" width="{width:.1f}" height="{BAR - 2}" fill="{colour}"/>')
        shown = f"{value:.1f}" if value < 100 and value != int(value) else f"{value:.0f}"
        out.append(f'<text x="{LEFT + width + 6:.1f}" y="{y}">{shown}</text>')
    return y + GAP


def main():
    lines = [json.loads(line) for line in sys.stdin if line.startswith("{")]
    out, y = [], TOP
    for title, bench, common, subjects in PANELS:
        bars = [(name, find(lines, bench, subject, {**common, **params})) for name, subject, params in subjects]
        missing = [name for name, value in bars if value is None]
        if missing:
            sys.exit(f"plot_beside.py: {bench} says nothing of {', '.join(missing)}")
        y = panel(out, y, title, bars)
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-16 0 {WIDTH} {y - GAP + 14}" width="{WIDTH}" '
          f'font-family="sans-serif" font-size="13">')
    print('<rect x="-16" width="100%" height="100%" fill="white"/>')
    print("\n".join(out))
    print("</svg>")


if __name__ == "__main__":
    main()
