#!/usr/bin/env python3
"""Prints the files that tests need: test-targets.py DIRECTORY [--suite NAME | --no-suite NAME]...

The output is a value for meson compile's --ninja-args: the files in the configured directory that are needed by the
tests which meson test would run with these options."""

import json
import os
import sys


def suites_of(arguments, option):
    return {value for name, value in zip(arguments, arguments[1:]) if name == option}


def main():
    directory, arguments = sys.argv[1], sys.argv[2:]
    wanted, unwanted = suites_of(arguments, "--suite"), suites_of(arguments, "--no-suite")

    def read(name):
        with open(os.path.join(directory, "meson-info", name), encoding="utf-8") as file:
            return json.load(file)

    files = {target["id"]: target["filename"] for target in read("intro-targets.json")}
    needed = set()
    for test in read("intro-tests.json"):
        suites = {suite.rpartition(":")[2] for suite in test["suite"]}
        if not suites & unwanted and (not wanted or suites & wanted):
            for target in test["depends"]:
                needed.update(os.path.relpath(name, directory) for name in files[target])
    print(sorted(needed))


main()
