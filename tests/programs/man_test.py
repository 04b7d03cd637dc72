#!/usr/bin/env python3
"""Checks that a man page has exactly the options of --help: man_test.py NAME PAGE PROGRAM..."""

import re
import shutil
import subprocess
import sys


def options_of_help(program):
    text = subprocess.run([program, "--help"], stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout
    lines = [line.strip() for line in text.splitlines() if re.match(r" +-", line)]
    return {option for line in lines for option in re.findall(r"(?:^|(?<=, ))--?[a-zA-Z][\w-]*", line)}


def options_of_page(text):
    section = re.search(r"^\.SH OPTIONS\n(.*?)^\.SH ", text, re.M | re.S).group(1)
    plain = re.sub(r"\\f.", "", section).replace("\\-", "-")
    tags = re.findall(r"^\.TP.*\n(.*)", plain, re.M)
    return {option for tag in tags for option in re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", tag)}


def main():
    name, page, program = sys.argv[1:]
    with open(page, encoding="utf-8") as file:
        text = file.read()
    results = [("it has the options of --help", options_of_page(text), options_of_help(program)),
               ("its name is that which is installed", re.search(r"^\.SH NAME\n(\S+)", text, re.M).group(1).replace("\\-", "-"), name)]
    if shutil.which("man"):
        warnings = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True, timeout=60)
        results.append(("man has nothing to say against it", (warnings.returncode, warnings.stderr), (0, "")))
    print(f"1..{max(len(results), 3)}")
    failed = 0
    for number, (what, found, wanted) in enumerate(results, 1):
        failed += found != wanted
        print(f"{'ok' if found == wanted else 'not ok'} {number} {what}")
        if found != wanted:
            print(f"# {found!r} is not {wanted!r}")
    if len(results) < 3:
        print("ok 3 man has nothing to say against it # SKIP man is not installed")
    sys.exit(failed != 0)


main()
