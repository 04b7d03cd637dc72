#!/usr/bin/env python3
"""Two builds in two folders give the same bytes: reproducible_test.py ROOT COMPILER...

    built       a library of each kind and a program of each kind, from two copies of the sources, in a folder below each
    same        each file has the same bytes in both builds
    no paths    no file has the name of a folder of the sources or of the build

In TAP.
"""
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

root, compiler = sys.argv[1], sys.argv[2:]
# As Meson calls them: the library, one beside it, one with the sources of llhttp; a tool; a program in async C and plain C.
TARGETS = {"bide", "bide-log", "bide-http", "bidec", "stream"}
count = failures = 0


def check(name, wrong):
    global count, failures
    count += 1
    failures += bool(wrong)
    print(f"{'not ' if wrong else ''}ok {count} - {name}")
    for line in wrong[:20]:
        print("#", line)


# (a cache of objects would give both builds the object of the first)
environment = {**os.environ, "CC": shlex.join(compiler), "CCACHE_DISABLE": "1"}


def build(sources, folder):
    """Builds the targets: (what is wrong, the bytes of each file by its name)."""
    shutil.copytree(root, sources, ignore=shutil.ignore_patterns("build*", ".git"))
    commands = [["meson", "setup", folder, sources, "-Ddebug=true", "-Doptimization=0", "-Dreproducible=enabled",
                 "-Dman=disabled", "-Dprograms=enabled"]]
    files = []
    for command in [*commands, None]:
        if command is None:
            with open(os.path.join(folder, "meson-info", "intro-targets.json"), encoding="utf-8") as file:
                targets = [target for target in json.load(file) if target["name"] in TARGETS]
            files = [os.path.relpath(name, folder) for target in targets for name in target["filename"]]
            command = ["ninja", "-C", folder, *files]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            return done.stdout.splitlines()[-20:], {}
    result = {}
    for name in files:
        with open(os.path.join(folder, name), "rb") as file:
            result[name] = file.read()
    return [], result


def main():
    for tool in ("meson", "ninja"):
        if shutil.which(tool) is None:
            print(f"1..0 # SKIP {tool} is not installed")
            return
    with tempfile.TemporaryDirectory(prefix="bide-reproducible-") as folder:
        one = os.path.join(folder, "one")
        wrong, first = build(one, os.path.join(one, "build"))
        if not wrong:
            two = os.path.join(folder, "a", "deeper", "two")
            wrong, second = build(two, os.path.join(two, "build"))
        if not wrong and len(first) < len(TARGETS):
            wrong = [f"only {', '.join(first)}"]
        check(f"built: {', '.join(first)}", wrong)
        if not wrong:
            check("same: in both folders", [name for name in sorted({*first, *second}) if first.get(name) != second.get(name)])
            place = os.path.basename(folder).encode()
            check("no paths", [name for name in first if place in first[name] or place in second[name]])
    print(f"1..{count}")
    sys.exit(failures != 0)


main()
