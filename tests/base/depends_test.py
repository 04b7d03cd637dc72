#!/usr/bin/env python3
"""Each test is rebuilt with what it runs: depends_test.py BUILD-DIRECTORY

A configuration that runs a part of the tests builds only what these tests depend on. So a test whose arguments or
environment name a file that is built here must depend on it, also if the name is a part of an argument (NAME=FILE).
"""
import json
import os
import re
import sys


def main():
    directory = os.path.abspath(sys.argv[1])

    def read(name):
        with open(os.path.join(directory, "meson-info", name), encoding="utf-8") as file:
            return json.load(file)

    files = {target["id"]: target["filename"] for target in read("intro-targets.json")}
    built = {name for names in files.values() for name in names}
    mentions, missing = 0, set()
    for test in read("intro-tests.json"):
        depends = {name for target in test["depends"] for name in files[target]}
        for text in test["cmd"] + list(test["env"].values()):
            for name in {text, *re.split("[=:, ]", text)} & built:
                mentions += 1
                if name not in depends:
                    missing.add(f"{test['name']} does not depend on {os.path.relpath(name, directory)}")
    print("1..2")
    print("ok 1 - files are named by tests" if mentions > 100 else f"not ok 1 - only {mentions} files are named")
    for line in sorted(missing):
        print(f"# {line}")
    print("not ok 2" if missing else "ok 2", "- tests depend on the files that they name")
    sys.exit(bool(missing) or mentions <= 100)


main()
