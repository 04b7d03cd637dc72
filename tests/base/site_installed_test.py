#!/usr/bin/env python3
"""The site of the documents is installed if Meson's option asks for it: site_installed_test.py ROOT

    made         ninja makes it, after the manual pages, and again when one of its documents has changed
    installed    `meson install --tags doc` installs it, and nothing else
    listed       debian/bide-doc.install has its place, and debian/bide-doc.doc-base its first page

In TAP.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

root = sys.argv[1]
count = failures = 0


def check(name, wrong):
    global count, failures
    count += 1
    failures += bool(wrong)
    print(f"{'not ' if wrong else ''}ok {count} - {name}")
    for line in wrong[:20]:
        print("#", line)


def run(*command):
    """What a command says if it fails, in lines."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout.splitlines()[-20:] if done.returncode else []


def text(*path):
    with open(os.path.join(root, *path), encoding="utf-8") as file:
        return file.read()


def files_of(folder):
    return sorted(os.path.relpath(os.path.join(place, name), folder) for place, _, names in os.walk(folder) for name in names)


def main():
    for tool in ("meson", "ninja", "mandoc"):
        if shutil.which(tool) is None:
            print(f"1..0 # SKIP {tool} is not installed")
            return
    if all(subprocess.run([python, "-c", "import markdown, pygments"], stderr=subprocess.DEVNULL).returncode
           for python in ("python3", "/usr/bin/python3") if shutil.which(python)):
        print("1..0 # SKIP python3-markdown or python3-pygments is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        build, out = os.path.join(folder, "build"), os.path.join(folder, "out")
        wrong = run("meson", "setup", build, root, "--prefix=/usr", "-Dsite=enabled", "-Dprograms=disabled")
        wrong = wrong or run("ninja", "-C", build, "docs/html")
        made = files_of(os.path.join(build, "docs", "html"))
        if not wrong:
            known = subprocess.run(["ninja", "-C", build, "-t", "deps", "docs/html"], stdout=subprocess.PIPE, text=True).stdout
            wrong = [f"it is not made again with {name}" for name in ("README.md", "docs/guide/README.md", "docs/site/site.css",
                                                                      "docs/recipes/lock-body.c", "scripts/site")
                     if name + "\n" not in known]
            wrong += [f"{name} is missing" for name in ("index.html", "site.css", "reference/index.html") if name not in made]
        check(f"made: {len(made)} files", wrong)
        wrong = wrong or run("meson", "install", "-C", build, "--no-rebuild", "--tags", "doc", "--destdir", out)
        installed = files_of(out)
        check("installed: the site, and nothing else",
              wrong or sorted(set(installed) ^ {os.path.join("usr/share/doc/bide/html", name) for name in made}))
        if os.path.isdir(os.path.join(root, "debian")):
            with open(os.path.join(build, "meson-info", "intro-installed.json"), encoding="utf-8") as file:
                place = json.load(file).get(os.path.join(build, "docs", "html"), "nowhere")
            wrong = [] if place[1:] in text("debian", "bide-doc.install").split() else [f"{place} is not in bide-doc.install"]
            check("listed: in debian/", wrong + ([] if f"Index: {place}/index.html" in text("debian", "bide-doc.doc-base")
                                                 else ["the first page is another in bide-doc.doc-base"]))
    print(f"1..{count}")
    sys.exit(failures != 0)


main()
