#!/usr/bin/env python3
"""What tests need: test-targets.py FOLDER [--suite NAME | --no-suite NAME]... prints, as the value of meson compile's
--ninja-args, the files of a configured folder that the tests need which meson test would choose with these options."""

import json
import os
import sys


def suites_of(arguments, option):
    return {value for name, value in zip(arguments, arguments[1:]) if name == option}


def main():
    folder, arguments = sys.argv[1], sys.argv[2:]
    wanted, unwanted = suites_of(arguments, "--suite"), suites_of(arguments, "--no-suite")

    def read(name):
        with open(os.path.join(folder, "meson-info", name), encoding="utf-8") as file:
            return json.load(file)

    files = {target["id"]: target["filename"] for target in read("intro-targets.json")}
    needed = set()
    for test in read("intro-tests.json"):
        suites = {suite.rpartition(":")[2] for suite in test["suite"]}
        if not suites & unwanted and (not wanted or suites & wanted):
            for target in test["depends"]:
                needed.update(os.path.relpath(name, folder) for name in files[target])
    print(sorted(needed))


main()
