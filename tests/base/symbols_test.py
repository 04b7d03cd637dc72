#!/usr/bin/env python3
"""Every global name that a static library defines begins with bide_: symbols_test.py ARCHIVE...

A program may call its own functions whatever it likes; only this prefix is bide's. In TAP, a case for each archive.
"""
import os
import subprocess
import sys

print(f"1..{len(sys.argv) - 1}")
failed = 0
for number, archive in enumerate(sys.argv[1:], 1):
    lines = subprocess.run(["nm", "-g", "--defined-only", archive], check=True, stdout=subprocess.PIPE, text=True).stdout
    names = {line.split()[2] for line in lines.splitlines() if len(line.split()) == 3}
    wrong = sorted(name for name in names if not name.startswith("bide_"))
    good = len(names) > 2 and not wrong
    failed += not good
    print(f"{'' if good else 'not '}ok {number} - {os.path.basename(archive)}: {len(names)} names have the prefix")
    for name in wrong:
        print("#", name)
sys.exit(failed != 0)
