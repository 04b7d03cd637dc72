#!/usr/bin/env python3
"""The lists in tests/check/statements quote the sources as they are: quotes_test.py ROOT.

In TAP, a case for each list: the text that each change replaces is in its file, once or as often as the list says.
statements_test.py runs the changes; that takes long, and this does not.
"""
import glob
import os
import sys

sys.dont_write_bytecode = True
import statements_test  # noqa: E402 (in this directory)

root = sys.argv[1]
lists = sorted(glob.glob(os.path.join(root, "tests", "check", "statements", "*.txt")))
failed = 0
print(f"1..{len(lists)}")
for number, path in enumerate(lists, 1):
    wrong = []
    changes = statements_test.read_changes(path)
    for change in changes:
        try:
            statements_test.changed_text(root, change)
        except (OSError, SystemExit) as error:
            wrong.append(error)
    good = bool(changes) and not wrong
    failed += not good
    print(f"{'' if good else 'not '}ok {number} - {os.path.basename(path)}: {len(changes)} changes")
    for error in wrong:
        print("#", error)
sys.exit(failed != 0)
