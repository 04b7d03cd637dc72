#!/usr/bin/env python3
"""scripts/release --check accepts a commit that can be released, and says what is wrong with another: release_test.py ROOT

In TAP. The commits are those of a scratch repository with the files that the script reads.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

root = os.path.abspath(sys.argv[1])
MAPS = ["src/exports.map"] + [f"src/{name}/exports.map" for name in ("http", "http2", "log", "tls")]
FILES = ["scripts/release", "meson.build", "include/bide/version.h", "debian/changelog", "CHANGELOG.md", *MAPS]
count = 0
failed = False
environment = {**{k: v for k, v in os.environ.items() if not k.startswith("GIT_")}, "GIT_CONFIG_GLOBAL": os.devnull,
               "GIT_CONFIG_SYSTEM": os.devnull}


def git(repository, *arguments):
    subprocess.run(["git", "-C", repository, "-c", "user.name=test", "-c", "user.email=test@example.org", *arguments], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)


def change(repository, path, pattern, by):
    with open(os.path.join(repository, path), encoding="utf-8") as file:
        text = file.read()
    text, times = re.subn(pattern, by, text, count=1, flags=re.M)
    assert times == 1, (path, pattern)
    with open(os.path.join(repository, path), "w", encoding="utf-8") as file:
        file.write(text)


def path_of(folder, *names):
    """A folder with these tools alone, for PATH. abidiff is not called by --check: any program stands for it."""
    os.mkdir(folder)
    for name in names:
        os.symlink(shutil.which("true" if name == "abidiff" else name), os.path.join(folder, name))
    return folder


def check(name, repository, *says, path=None):
    """The script accepts the commit; or it refuses it and says these, each on a line, and nothing else."""
    global count, failed
    made = subprocess.run(["sh", "scripts/release", "--check"], cwd=repository, capture_output=True, text=True, check=False,
                          env={**environment, "PATH": path or environment["PATH"]})
    lines = made.stderr.splitlines()
    good = made.returncode == (1 if says else 0) and len(lines) == len(says) and all(
        line.startswith("release: ") and words in line for line, words in zip(lines, says))
    count += 1
    failed |= not good
    print("ok" if good else "not ok", count, "-", name)
    if not good:
        print("#", made.returncode, lines, made.stdout)


if shutil.which("git") is None:
    print("1..0 # SKIP git is not installed")
    sys.exit(0)

with open(os.path.join(root, "meson.build"), encoding="utf-8") as source:
    version = re.search(r"^  version: '([^']+)'", source.read(), re.M).group(1)

with tempfile.TemporaryDirectory() as scratch:
    released = os.path.join(scratch, "released")
    for path in FILES:
        os.makedirs(os.path.dirname(os.path.join(released, path)), exist_ok=True)
        shutil.copy(os.path.join(root, path), os.path.join(released, path))
    change(released, "CHANGELOG.md", r"^## .*$", f"## {version}, 2030-01-31")
    git(scratch, "init", "released")
    git(released, "add", ".")
    git(released, "commit", "-m", "released")

    def other(path, pattern, by):
        """The same repository, with a commit that changes a file."""
        folder = tempfile.mkdtemp(dir=scratch)
        git(scratch, "clone", released, folder)
        change(folder, path, pattern, by)
        git(folder, "commit", "-a", "-m", "changed")
        return folder

    check("a commit that can be released", released)
    check("the changelog has no date", other("CHANGELOG.md", r"^## .*$", f"## {version}, not yet released"),
          f"CHANGELOG.md begins with '{version}, not yet released'")
    check("the changelog is of another version", other("CHANGELOG.md", r"^## .*$", "## 77.1.2, 2030-01-31"),
          "CHANGELOG.md begins with '77.1.2, 2030-01-31'")
    check("the header has another text", other("include/bide/version.h", r'(BIDE_VERSION_TEXT) ".*"', r'\1 "77.1.2"'),
          f"include/bide/version.h has the version 77.1.2, meson.build has {version}")
    check("the header has another number", other("include/bide/version.h", r"(BIDE_VERSION_PATCH) \d+", r"\1 77"),
          "include/bide/version.h has the numbers ")
    check("Debian's changelog is of another version", other("debian/changelog", r"^bide \([^-]*", "bide (77.1.2"),
          f"debian/changelog has the version 77.1.2, meson.build has {version}")
    for path in MAPS:
        check(f"{path} is of another version", other(path, r"^(BIDE\w*_)\d+\.\d+ \{", r"\g<1>77.1 {"),
              f"{path} has no node of version ")
    # (all that is wrong is said at once)
    check("the project has another version", other("meson.build", r"^  version: '[^']*'", "  version: '77.1.2'"),
          "include/bide/version.h has the version ", "include/bide/version.h has the numbers ", "debian/changelog has the version ",
          *(f"{path} has no node of version 77.1" for path in MAPS), "CHANGELOG.md begins with ")
    dirty = other("CHANGELOG.md", r"\Z", "one line\n")
    check("a line of a later section is no matter", dirty)
    with open(os.path.join(dirty, "new.c"), "w", encoding="utf-8"):
        pass
    check("a file is not committed", dirty, "the worktree has changes that are not committed")
    tools = ["sh", "dirname", "git", "head", "paste", "sed"]
    bare = path_of(os.path.join(scratch, "bare"), *tools)
    whole = path_of(os.path.join(scratch, "whole"), *tools, "abidiff")
    check("the first release needs no abidiff", released, path=bare)
    git(released, "tag", "v0.0.1")
    check("a later one does", released, "abidiff is not installed", path=bare)
    check("a later one, with abidiff", released, path=whole)
    git(released, "tag", "--delete", "v0.0.1")
    git(released, "tag", f"v{version}")
    check("the version has a tag", released, f"the tag v{version} is there already", path=whole)

print(f"1..{count}")
sys.exit(failed)
