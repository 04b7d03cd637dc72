#!/usr/bin/env python3
"""Count the test cases in meson's testlog.json: prints "PASSED FAILED SKIPPED", and on
stderr a line for each that was skipped.

A program that prints TAP counts each of its cases, any other test counts as one.
A case that was planned but never reported counts as failed, and so does at least
one case of a program that ended badly. A test that was running when the run was
interrupted counts as nothing.
"""

import json
import re
import sys

PLAN = re.compile(r"^1\.\.(\d+)", re.M)
CASE = re.compile(r"^(not ok|ok)\b(.*)$", re.M)
SKIP = re.compile(r"#\s*(skip|todo)\b", re.I)

GOOD = {"OK", "EXPECTEDFAIL", "IGNORED"}


def note_skip(test, why):
    why = SKIP.sub("", why).strip(" -\t0123456789.") or "no reason given"
    print(f"   skipped: {test['name']}: {why}", file=sys.stderr)


def count_one(test):
    """The cases passed, failed and skipped of one test, a line of the log."""
    result = test["result"]
    output = test.get("stdout", "")

    if result == "INTERRUPT":
        return 0, 0, 0

    plans = PLAN.findall(output)
    if not plans or result in ("EXPECTEDFAIL", "UNEXPECTEDPASS"):
        if result == "SKIP":
            # A script says why in the last line that it writes.
            lines = (test.get("stderr", "") + output).strip().split("\n")
            note_skip(test, lines[-1])
            return 0, 0, 1
        return (1, 0, 0) if result in GOOD else (0, 1, 0)

    passed = failed = skipped = 0
    for verdict, rest in CASE.findall(output):
        if SKIP.search(rest):
            skipped += 1  # cmocka 1.1 writes "not ok 3 # SKIP name"
            note_skip(test, rest)
        elif verdict == "ok":
            passed += 1
        else:
            failed += 1

    planned = sum(map(int, plans))
    failed += max(0, planned - passed - failed - skipped)
    if planned == 0 and skipped == 0:
        skipped = 1  # "1..0": the program as a whole was skipped
        note_skip(test, output)

    # Meson takes cmocka's skip for a failure when it parses the TAP itself.
    only_skips = result == "FAIL" and test.get("returncode") == 0 and skipped > 0
    if failed == 0 and result not in GOOD and result != "SKIP" and not only_skips:
        failed = 1
    return passed, failed, skipped


def main():
    total = [0, 0, 0]
    with open(sys.argv[1], encoding="utf-8", errors="replace") as log:
        for line in log:
            try:
                test = json.loads(line)
            except json.JSONDecodeError:
                continue  # blank, or cut off when the run was killed
            total = [a + b for a, b in zip(total, count_one(test))]
    print(*total)


if __name__ == "__main__":
    main()
