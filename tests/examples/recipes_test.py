#!/usr/bin/env python3
"""The recipes compile without warnings and print what is beside them: recipes_test.py ROOT BIDEC LIBRARIES COMPILER...

    pairs       each recipe is there in both ways, with its output, and has at most 40 lines
    index       README.md has a row for each, and no other
    NAME        the program compiles, succeeds and prints NAME.txt
"""
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

root, bidec, libraries = sys.argv[1:4]
compiler = sys.argv[4:]
folder = os.path.join(root, "docs", "recipes")
failures = 0


def check(name, ok, *text):
    global failures
    check.count += 1
    failures += not ok
    print(f"{'' if ok else 'not '}ok {check.count} - {name}", flush=True)
    for line in [] if ok else text[:30]:
        print("#", line)


check.count = 0


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def run(name, way, scratch):
    """Returns whether it prints its text, and what there is to say if not."""
    source = os.path.join(folder, f"{name}-{way}.c")
    program = os.path.join(scratch, f"{name}-{way}")
    standard = ["-std=gnu11"] if way == "async" else ["-std=c11", "-Wpedantic"]
    built = subprocess.run([*([bidec] if way == "async" else []), *compiler, *standard, "-O0", "-Wall", "-Wextra", "-Werror",
                            "-I" + os.path.join(root, "include"), source, *libraries.split(), "-pthread", "-o", program],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if built.returncode != 0:
        return False, built.stdout.splitlines()
    done = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    expected = read(os.path.join(folder, name + ".txt"))
    return done.returncode == 0 and done.stdout == expected, [f"status {done.returncode}", *done.stdout.splitlines(),
                                                              *done.stderr.splitlines()]


names = sorted({re.sub(r"-(body|async)\.c$|\.txt$", "", name) for name in os.listdir(folder) if name != "README.md"})
faults = [f"{name}{end} is missing" for name in names for end in ("-body.c", "-async.c", ".txt")
          if not os.path.isfile(os.path.join(folder, name + end))]
faults += [f"{name} has more than 40 lines" for name in os.listdir(folder)
           if name.endswith(".c") and len(read(os.path.join(folder, name)).splitlines()) > 40]
check(f"pairs: {len(names)} recipes", len(names) > 25 and not faults, *faults)
rows = re.findall(r"^\| .* \| \[(\S+)-body\.c\]\(\1-body\.c\) \| \[\1-async\.c\]\(\1-async\.c\) \| \[\1\.txt\]\(\1\.txt\) \|$",
                  read(os.path.join(folder, "README.md")), re.M)
check("index", sorted(rows) == names, *sorted(set(rows) ^ set(names)))
if failures == 0:
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = [(name, way, pool.submit(run, name, way, scratch)) for name in names for way in ("body", "async")]
        for name, way, result in runs:
            ok, text = result.result()
            check(f"{name}: {way}", ok, *text)
print(f"1..{check.count}")
sys.exit(failures != 0)
