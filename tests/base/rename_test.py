#!/usr/bin/env python3
"""scripts/rename-0.1 makes a program of the previous names compile: rename_test.py ROOT CC...

In TAP. The program is rename/before.c. It must not compile before (or it would not use what was renamed), must compile
afterwards without a warning, in C and by each name that it used, and a second run must change nothing.
"""
import os
import subprocess
import sys
import tempfile

root, cc = sys.argv[1], sys.argv[2:]
script = os.path.join(root, "scripts", "rename-0.1")
sample = os.path.join(root, "tests", "base", "rename", "before.c")


def compiles(path):
    run = subprocess.run(cc + ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I",
                               os.path.join(root, "include"), path], capture_output=True, text=True)
    return run.returncode == 0, run.stderr


failed = 0
cases = []
with tempfile.TemporaryDirectory() as scratch:
    after = os.path.join(scratch, "after.c")
    with open(sample) as file, open(after, "w") as copy:
        copy.write(file.read())
    before, _ = compiles(sample)
    cases.append(("the_sample_does_not_compile_with_new_headers", not before, ""))
    listed = subprocess.run([sys.executable, script, "--check", after], capture_output=True, text=True)
    cases.append(("check_lists_what_would_change", listed.returncode == 1 and after in listed.stdout, listed.stderr))
    run = subprocess.run([sys.executable, script, after], capture_output=True, text=True)
    cases.append(("the_script_runs", run.returncode == 0, run.stderr))
    good, errors = compiles(after)
    cases.append(("the_sample_compiles_afterwards", good, errors))
    text = open(after).read()
    kept = "options->most" in text and "site->options.most" in text and "size_t most, first, input, threads;" in text
    cases.append(("members_of_its_own_structs_stay", kept, ""))
    again = subprocess.run([sys.executable, script, "--check", after], capture_output=True, text=True)
    cases.append(("a_second_run_changes_nothing", again.returncode == 0, again.stdout))

print("1..%d" % len(cases))
for n, (name, good, why) in enumerate(cases, 1):
    print("%s %d - %s" % ("ok" if good else "not ok", n, name))
    if not good:
        failed += 1
        for line in why.split("\n"):
            print("# " + line)
sys.exit(failed != 0)
