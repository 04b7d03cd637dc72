#!/usr/bin/env python3
"""Prints gcovr's CSV output as a table: a line for each file, and one for all of them."""

import csv
import sys


def share(covered, total):
    percent = f"{100 * covered / total:5.1f} %" if total else "      -"
    return f"{percent} {covered:6}/{total:<6}"


def main():
    total = [0, 0, 0, 0]
    print(f"   {'':58} {'lines':22}branches")
    with open(sys.argv[1], encoding="utf-8") as table:
        for row in csv.DictReader(table):
            counts = [
                int(row[column])
                for column in ("line_covered", "line_total", "branch_covered", "branch_total")
            ]
            total = [a + b for a, b in zip(total, counts)]
            print(f"   {row['filename']:58} {share(*counts[:2])} {share(*counts[2:])}".rstrip())
    print(f"   {'total':58} {share(*total[:2])} {share(*total[2:])}".rstrip())


if __name__ == "__main__":
    main()
