#!/usr/bin/env python3
"""Count the test cases in meson's testlog.json: prints "PASSED FAILED SKIPPED", and on
stderr a line for each that was skipped. With a second file, and a name for the run, it
appends to that file what failed and the last lines that each wrote.

A program that prints TAP counts each of its cases, any other test counts as one.
A case that was planned but never reported counts as failed, and so does at least
one case of a program that ended badly. A test that was running when the run was
interrupted counts as nothing.

If programs of the model checker ran, a line on stderr says how many of their scenarios
are complete, bounded, sampled, unfinished and wrong.
"""

import json
import re
import sys

PLAN = re.compile(r"^1\.\.(\d+)", re.M)
CASE = re.compile(r"^(not ok|ok)\b(.*)$", re.M)
SKIP = re.compile(r"#\s*(skip|todo)\b", re.I)

SCENARIOS = re.compile(r"^# scenarios: (.*)$", re.M)
VERDICT = re.compile(r"(\d+) (complete|bounded|sampled|unfinished|wrong)")

LINES_OF_FAILURE = 12

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


def count_scenarios(test, scenarios):
    """Adds the scenarios of one test to those of each verdict."""
    for counts in SCENARIOS.findall(test.get("stdout", "")):
        for count, verdict in VERDICT.findall(counts):
            scenarios[verdict] = scenarios.get(verdict, 0) + int(count)


def tell_failure(file, run, test):
    """Appends which test failed, and the end of what it wrote but for what passed."""
    output = test.get("stdout", "") + test.get("stderr", "")
    lines = [line for line in output.split("\n") if line and not line.startswith("ok ")]
    print(f"== failed: {run}: {test['name']}: {test['result']}", file=file)
    for line in lines[-LINES_OF_FAILURE:]:
        print("   " + line[:200], file=file)


def main():
    total = [0, 0, 0]
    scenarios = {}
    failures = open(sys.argv[2], "a", encoding="utf-8") if len(sys.argv) > 2 else None
    with open(sys.argv[1], encoding="utf-8", errors="replace") as log:
        for line in log:
            try:
                test = json.loads(line)
            except json.JSONDecodeError:
                continue  # blank, or cut off when the run was killed
            counts = count_one(test)
            count_scenarios(test, scenarios)
            total = [a + b for a, b in zip(total, counts)]
            if counts[1] > 0 and failures:
                tell_failure(failures, sys.argv[3], test)
    if scenarios:
        listed = ", ".join(f"{count} {verdict}" for verdict, count in scenarios.items())
        print(f"   scenarios of the model checker: {listed}", file=sys.stderr)
    print(*total)


if __name__ == "__main__":
    main()
