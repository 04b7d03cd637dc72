#!/usr/bin/env python3
"""One word for one thing: retired names do not come back. retired_test.py ROOT

    names    no identifier that scripts/rename-0.1 renames is in the sources, tests, programs or documents
    words    no identifier of the library, its tools or programs has a word that another word replaced

In TAP.
"""
import importlib.machinery
import importlib.util
import os
import re
import subprocess
import sys

root = sys.argv[1]
loader = importlib.machinery.SourceFileLoader("rename", os.path.join(root, "scripts", "rename-0.1"))
sys.dont_write_bytecode = True
rename = importlib.util.module_from_spec(importlib.util.spec_from_loader("rename", loader))
loader.exec_module(rename)

# A word in an identifier, and the word that replaced it.
RETIRED = {
    r"(?:^|_)most(?:_|$)|(?:^|_)MOST(?:_|$)": "max",
    r"(?:^|_)least(?:_|$)": "min",
    r"(?:^|_)lent(?:_|$)": "provided",
    r"(?:^|_)folder(?:_|$)": "directory",
    r"sift(?:ing|_out|_cancelled)|^sift$": "sweep",
    r"turn_watch": "stall_detector",
    r"test_loop": "sim_loop",
    r"give_way|gave_way": "yield_budget",
    r"(?:^|_)errand(?:s|_|$)": "remote_call",
    r"(?:^|_)poke": "kick",
    r"streak": "lifo_polls",
    r"(?:^|_)wish(?:es)?(?:_|$)": "request",
    r"(?:^|_)teller(?:_|$)": "dispatcher",
    r"(?:^|_)forking(?:_|$)": "fork_task",
    r"own_retry|^bide_retry": "event_count_waiter",
    r"(?:^|_)let_go(?:_|$)": "release",
    r"go_on_?$|goes_on_?$": "continue",
    r"look_up(?!_table)": "resolve",
}
# Names with such a word for a reason: terms of the field, and the member at the head of a frame that forks (fork.h).
KEPT = {"forking", "OPTION_LEAST_CONNECTIONS", "least_connections", "BIDE_ASYNC_GOES_ON_"}


def listed(*folders):
    out = subprocess.run(["git", "-C", root, "ls-files", *folders], check=True, stdout=subprocess.PIPE, text=True).stdout
    return [path for path in out.splitlines() if os.path.isfile(os.path.join(root, path))]


def read(path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


failed = 0
print("1..2")


def result(number, name, wrong):
    global failed
    failed += bool(wrong)
    print(f"{'not ' if wrong else ''}ok {number} - {name}")
    for line in sorted(wrong)[:40]:
        print("#", line)


wrong = set()
for path in listed("src", "include", "tools", "programs", "examples", "tests", "bench", "docs", "README.md", "ARCHITECTURE.md",
                   "CONTRIBUTING.md"):
    if not path.startswith(("tests/base/rename/", "tests/base/retired_test.py")):
        for name in set(re.findall(r"\b(?:bide|BIDE)_\w+", read(path))):
            if rename.renamed(name) != name:
                wrong.add(f"{path}: {name} is {rename.renamed(name)} now")
result(1, "names: none that was renamed", wrong)

wrong = set()
for path in listed("src", "include", "tools", "programs", "examples"):
    if path.endswith((".c", ".h", ".inc")):
        for name in set(re.findall(r"\b[A-Za-z_]\w*\b", rename.code_only(read(path)))) - KEPT:
            for word, new in RETIRED.items():
                if re.search(word, name):
                    wrong.add(f"{path}: {name}: the word is {new}")
result(2, "words: none that was replaced", wrong)
sys.exit(failed != 0)
