#!/usr/bin/env python3
"""Makes an async program that does not behave as plain C smaller, as long as it fails in the same way.

    reduce.py BIDEC ROOT LIBRARY SOURCE [OPTION...]     OPTION: the compiler and its options; default: gcc -std=gnu11 -O1

The source is one that random_test.py has kept. Whole functions are removed, then lines, then parts of lines. The result is
printed. creduce makes it smaller still, with this script's condition.
"""
import re
import sys
import tempfile

import random_test


def main():
    bidec, root, library, source = sys.argv[1:5]
    options = sys.argv[5:] or ["gcc", "-std=gnu11", "-O1"]
    directory = tempfile.mkdtemp()
    with open(source, encoding="ascii") as file:
        lines = file.read().splitlines()

    def fails(some):
        path = f"{directory}/part.c"
        with open(path, "w", encoding="ascii") as out:
            out.write("\n".join(some) + "\n")
        # a program that reads what it has not written says nothing
        warnings = ["-Werror=uninitialized", "-Werror=maybe-uninitialized", "-Werror=return-type"]
        code, _ = random_test.run(["gcc", "-std=gnu11", "-O2", "-fwrapv", "-DPLAIN", *warnings, f"-I{root}/tests/bidec", "-c",
                                   path, "-o", f"{directory}/part.o"])
        if code != 0:
            return None
        wrong = random_test.compare(bidec, root, library, path, options, directory)
        return wrong and (wrong[0], wrong[1][:40] if wrong[0] == "translate" and "ssertion" in wrong[1] else "")

    kind = fails(lines)
    if not kind:
        print("it does not fail")
        return 1
    size = len(lines) // 2
    while size >= 1:
        at, removed = 0, False
        while at < len(lines):
            part = lines[:at] + lines[at + size:]
            if fails(part) == kind:
                lines, removed = part, True
            else:
                at += size
        if not removed or size > 1:
            size //= 2
    changed = True
    while changed:
        changed = False
        for n, line in enumerate(lines):
            for match in re.finditer(r"[\w.\->]+(\[[^][]*\])?|\([^()]*\)|\{[^{}]*\}", line):
                for by in ("", "1u"):
                    part = line[:match.start()] + by + line[match.end():]
                    if len(part) < len(line) and fails(lines[:n] + [part] + lines[n + 1:]) == kind:
                        lines[n], changed = part, True
                        break
                if changed:
                    break
            if changed:
                break
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
