#!/usr/bin/env python3
"""Each public operation has a row: follows_test.py SOURCE

An operation is a function or macro of include/bide/*.h that returns what must be awaited. It has a row in
tests/sync/follows/*.c, which shows that it follows the stop source of its coroutine, or a line in
tests/sync/follows/elsewhere.txt, which says why not. No row or line is of anything else.
"""
import os
import re
import sys

MARKED = re.compile(r"BIDE_MUST_AWAIT\s+(?:BIDE_\w+\s+)*bide_awaiter \*\s*(\w+)\(")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
ROW = re.compile(r"\bROW\w*\(\s*(bide_\w+)")


def read(path):
    with open(path, encoding="utf-8") as source:
        return source.read()


def files(directory, suffix):
    return [os.path.join(directory, name) for name in sorted(os.listdir(directory)) if name.endswith(suffix)]


def operations(root):
    """The public names; an internal function counts as the macro that calls it, if there is one."""
    text = "\n".join(COMMENT.sub("", read(path)) for path in files(os.path.join(root, "include/bide"), ".h"))
    found = set()
    for name in MARKED.findall(text):
        public = re.sub(r"(_checked|_begin|_start)?_$", "", name)
        if not name.endswith("_"):
            found.add(name)
        elif re.search(rf"#define {public}\(", text):
            found.add(public)
    return (found | {"bide_fork", "bide_fork_call", "bide_fork_join"}) - {"bide_frame_init"}


def main():
    root = sys.argv[1]
    directory = os.path.join(root, "tests/sync/follows")
    rows = {name for path in files(directory, ".c") for name in ROW.findall(read(path))}
    lines = [line for line in read(os.path.join(directory, "elsewhere.txt")).splitlines()
             if line and not line.startswith("#")]
    elsewhere = {line.split(":")[0] for line in lines if ": " in line}
    public = operations(root)
    # a row of a name that has no such function in the tier of users is one of bide/extend/
    extend = "\n".join(read(path) for path in files(os.path.join(root, "include/bide/extend"), ".h"))
    problems = [f"{name} has no row in tests/sync/follows" for name in sorted(public - rows - elsewhere)]
    problems += [f"{name} has a row, and a line in elsewhere.txt" for name in sorted(rows & elsewhere)]
    problems += [f"{name} has a row, and is no operation"
                 for name in sorted((rows | elsewhere) - public) if f" *{name}(" not in extend]
    for line in lines:
        for path in re.findall(r"tests/[\w./]+", line):
            if not os.path.exists(os.path.join(root, path)):
                problems.append(f"elsewhere.txt: there is no {path}")
    for problem in problems:
        print("#", problem)
    print(f"{'not ok' if problems else 'ok'} 1 - {len(public)} operations, {len(rows)} rows, "
          f"{len(elsewhere)} elsewhere")
    print("1..1")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
