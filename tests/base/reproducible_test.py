#!/usr/bin/env python3
"""Two builds in two folders give the same bytes: reproducible_test.py ROOT COMPILER...

    built         a library of each kind and a program of each kind, from two copies of the sources, in a folder below each
    same          each file has the same bytes in both builds
    no paths      no file has the name of a folder of the sources or of the build
    subproject    the same for the libraries and bidec of a subproject, whose compilers run in the superproject's build

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
SUBPROJECT_TARGETS = TARGETS - {"stream"}
OPTIONS = ["-Ddebug=true", "-Doptimization=0"]
SUPERPROJECT = """project('super', 'c', meson_version: '>=1.0')
subproject('bide', default_options: ['reproducible=enabled', 'man=disabled'])
"""
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


def build(folder, setup, targets):
    """Builds the targets: (what is wrong, the bytes of each file by its name)."""
    files = []
    for command in (setup, None):
        if command is None:
            with open(os.path.join(folder, "meson-info", "intro-targets.json"), encoding="utf-8") as file:
                found = [target for target in json.load(file) if target["name"] in targets]
            files = [os.path.relpath(name, folder) for target in found for name in target["filename"]]
            command = ["ninja", "-C", folder, *files]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            return done.stdout.splitlines()[-20:], {}
    result = {}
    for name in files:
        with open(os.path.join(folder, name), "rb") as file:
            result[name] = file.read()
    return [] if len(result) >= len(targets) else [f"only {', '.join(result)}"], result


def alone(place):
    """bide itself, in a folder of its own."""
    shutil.copytree(root, place, ignore=shutil.ignore_patterns("build*", ".git"))
    folder = os.path.join(place, "build")
    return build(folder, ["meson", "setup", folder, place, *OPTIONS, "-Dreproducible=enabled", "-Dman=disabled",
                          "-Dprograms=enabled"], TARGETS)


def below(place):
    """bide as the subproject of another project."""
    shutil.copytree(root, os.path.join(place, "subprojects", "bide"), ignore=shutil.ignore_patterns("build*", ".git"))
    with open(os.path.join(place, "meson.build"), "w", encoding="utf-8") as file:
        file.write(SUPERPROJECT)
    folder = os.path.join(place, "build")
    return build(folder, ["meson", "setup", folder, place, *OPTIONS], SUBPROJECT_TARGETS)


def compare(of, folder, make):
    """Makes two builds in two folders and compares their files."""
    wrong, first = make(os.path.join(folder, "one"))
    if not wrong:
        wrong, second = make(os.path.join(folder, "a", "deeper", "two"))
    check(f"{of}built: {', '.join(first)}", wrong)
    if not wrong:
        check(f"{of}same: in both folders", [name for name in sorted({*first, *second}) if first.get(name) != second.get(name)])
        place = os.path.basename(folder).encode()
        check(f"{of}no paths", [name for name in first if place in first[name] or place in second[name]])


def main():
    for tool in ("meson", "ninja"):
        if shutil.which(tool) is None:
            print(f"1..0 # SKIP {tool} is not installed")
            return
    for of, make in (("", alone), ("subproject: ", below)):
        with tempfile.TemporaryDirectory(prefix="bide-reproducible-") as folder:
            compare(of, folder, make)
    print(f"1..{count}")
    sys.exit(failures != 0)


main()
