#!/usr/bin/env python3
"""The steps of the tutorial compile without warnings and print what its page shows:
tutorial_test.py ROOT BIDEC LIBRARIES TLS-LIBRARIES COMPILER...

    steps   docs/tutorial.md has ten steps, and docs/tutorial a program and an output for each, and nothing else
    NN      the page's text is the output; each block of code is a part of the program, and links to it
    NN-NAME the program compiles, succeeds and prints NN-NAME.txt

TLS-LIBRARIES: "" if there is no TLS. Programs with it are skipped then, and where the command openssl is missing.
"""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

root, bidec, libraries, tls_libraries = sys.argv[1:5]
compiler = sys.argv[5:]
folder = os.path.join(root, "docs", "tutorial")
failures = 0


def check(name, faults, skipped=""):
    global failures
    check.count += 1
    failures += bool(faults)
    print(f"{'not ' if faults else ''}ok {check.count} - {name}{' # SKIP ' * bool(skipped)}{skipped}", flush=True)
    for line in faults[:30]:
        print("#", line)


check.count = 0


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def faults_of_step(name, text):
    """What of a step's part of the page is not in its files."""
    program = read(os.path.join(folder, name + ".c"))
    code = re.findall(r"^```c\n(.*?)^```$", text, re.M | re.S)
    # (between the functions of a block others may be left out)
    parts = [part for block in code for part in re.split(r"(?<=^\}\n)\n", block, flags=re.M)]
    faults = [f"is not in {name}.c: {line}" for part in parts if part not in program for line in part.splitlines()]
    if not code or f"(tutorial/{name}.c)" not in text:
        faults.append(f"{name}.c is not shown, or has no link")
    if re.findall(r"^```text\n(.*?)^```$", text, re.M | re.S) != [read(os.path.join(folder, name + ".txt"))]:
        faults.append(f"does not show {name}.txt")
    return faults


def run(name, scratch):
    """Returns what is wrong with the program."""
    source, program = os.path.join(folder, name + ".c"), os.path.join(scratch, name)
    all_libraries = (tls_libraries if "bide/tls.h" in read(source) else libraries).split()
    built = subprocess.run([bidec, *compiler, "-std=gnu11", "-O0", "-Wall", "-Wextra", "-Werror",
                            "-I" + os.path.join(root, "include"), source, *all_libraries, "-pthread", "-o", program],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if built.returncode != 0:
        return [f"does not compile: {built.returncode}", *built.stdout.splitlines()]
    done = subprocess.run([program], cwd=scratch, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    if done.returncode == 0 and done.stdout == read(os.path.join(folder, name + ".txt")):
        return []
    return [f"status {done.returncode}", *done.stdout.splitlines(), *done.stderr.splitlines()]


page = read(os.path.join(root, "docs", "tutorial.md"))
texts = {int(number): text for number, text in re.findall(r"^## (\d+)\. [^\n]*\n(.*?)(?=^## |\Z)", page, re.M | re.S)}
names = sorted(name[:-2] for name in os.listdir(folder) if name.endswith(".c"))
wrong = [f"steps {list(texts)}"] if list(texts) != list(range(1, 11)) else []
wrong += [f"programs {names}"] if [name[:3] for name in names] != [f"{number:02}-" for number in range(1, 11)] else []
wrong += [f"{name} is of no step" for name in os.listdir(folder) if os.path.splitext(name)[0] not in names]
check("steps", wrong)
if failures == 0:
    for step, step_text in texts.items():
        check(f"{step:02}", faults_of_step(names[step - 1], step_text))
    with tempfile.TemporaryDirectory() as scratch_folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = {}
        for one in names:
            if "bide/tls.h" in read(os.path.join(folder, one + ".c")) and not (tls_libraries and shutil.which("openssl")):
                check(one, [], "built without TLS, or the command openssl is missing")
            else:
                runs[one] = pool.submit(run, one, scratch_folder)
        for one, result in runs.items():
            check(one, result.result())
print(f"1..{check.count}")
sys.exit(failures != 0)
