#!/usr/bin/env python3
"""The list of scenarios that need not be finished: its lines are "PROGRAM: NAME", sorted, each once, and of programs that
exist. That the names are scenarios of theirs is found by the programs.

usage: unfinished_test.py ROOT"""
import os
import re
import sys

folder = os.path.join(sys.argv[1], "tests", "check")
with open(os.path.join(folder, "unfinished.txt")) as file:
    lines = [line.rstrip("\n") for line in file if not line.startswith("#")]

wrong = [line for line in lines if not re.fullmatch(r"[a-z0-9_]+: [a-z0-9_]+", line)]
unsorted = [line for before, line in zip(lines, lines[1:]) if before >= line]
unknown = [line for line in lines if not os.path.exists(os.path.join(folder, line.split(":")[0] + ".c"))]

print("1..3")
for number, (name, found) in enumerate((("each_line_is_a_program_and_a_name", wrong),
                                        ("the_lines_are_sorted_and_different", unsorted),
                                        ("each_program_exists", unknown)), 1):
    for line in found:
        print("#", line)
    print("ok" if not found else "not ok", number, "-", name)
sys.exit(bool(wrong or unsorted or unknown))
