#!/usr/bin/env python3
"""debian/ agrees with what is built: debian_test.py ROOT BUILD-DIRECTORY VERSION MAP=LIBRARY...

    installed  each installed file is in one package
    listed     each line of a list of files names an installed file, if all parts are built
    control    each list belongs to a package of debian/control, and each package for some architecture has one
    version    the changelog, the packages of libraries and their files have the version of the project
    symbols    the symbols file of a library has the names that the library exports, with their version

In TAP.
"""
import fnmatch
import glob
import json
import os
import re
import subprocess
import sys

root, build, version, *pairs = sys.argv[1:]
debian = os.path.join(root, "debian")
minor = ".".join(version.split(".")[:2])
SITE = "usr/share/doc/bide/html"
count = failures = 0


def check(name, wrong, skip=""):
    global count, failures
    count += 1
    failures += bool(wrong)
    print(f"{'not ' if wrong else ''}ok {count} - {name}{' # SKIP ' + skip if skip else ''}")
    for line in wrong:
        print("#", line)


def text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def info(name):
    return json.loads(text(os.path.join(build, "meson-info", name)))


def installed_files():
    """As debhelper sees them: the prefix is /usr, and libraries are in a directory of their architecture."""
    options = {option["name"]: option["value"] for option in info("intro-buildoptions.json")}
    places = [(os.path.join(options["prefix"], options["libdir"]), "usr/lib/TRIPLET"),
              (os.path.join(options["prefix"], options["mandir"]), "usr/share/man"),
              (options["prefix"], "usr")]
    for path in info("intro-installed.json").values():
        for place, name in places:
            if path.startswith(place + "/"):
                yield name + path[len(place):]
                break
        else:
            yield path


def matches(pattern, path):
    # (a pattern may name a directory)
    return fnmatch.fnmatchcase(path, pattern) or fnmatch.fnmatchcase(path, pattern + "/*")


def symbols_of(exports, library):
    """What is wrong with a library's symbols file."""
    name = re.fullmatch(r"lib(.*)\.so.*", os.path.basename(library)).group(1)
    package = f"lib{name}{'-' if name[-1].isdigit() else ''}{minor}"
    made = subprocess.run([sys.executable, os.path.join(root, "scripts", "debian-symbols"), exports, name, package],
                          check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    soname = re.search(r"SONAME.*\[(.*)\]", subprocess.run(["readelf", "-d", library], check=True, stdout=subprocess.PIPE,
                                                         text=True, env={**os.environ, "LC_ALL": "C"}).stdout).group(1)
    lines = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", library], check=True,
                           stdout=subprocess.PIPE, text=True).stdout.splitlines()
    # (a version node is a symbol itself, without a version in what older nm prints)
    exported = {line.split()[2].replace("@@", "@") for line in lines}
    exported = {symbol if "@" in symbol else f"{symbol}@{symbol}" for symbol in exported}
    listed = {line.split()[0] for line in made[2:]}
    wrong = [] if made[0] == f"{soname} {package} #MINVER#" else [f"first line: {made[0]}"]
    wrong += [f"first seen in another version: {line}" for line in made[2:] if line.split()[1] != f"{minor}.0"]
    wrong += [f"not exported: {symbol}" for symbol in sorted(listed - exported)]
    wrong += [f"not listed: {symbol}" for symbol in sorted(exported - listed)]
    if not os.path.exists(os.path.join(debian, package + ".install")):
        wrong.append(f"debian/{package}.install is missing")
    return wrong + ([] if len(listed) > 5 else [f"only {len(listed)} symbols"])


def main():
    lists = {os.path.basename(path)[:-len(".install")]: text(path).split()
             for path in glob.glob(os.path.join(debian, "*.install"))}
    owners = {path: [package for package, patterns in lists.items() for pattern in patterns if matches(pattern, path)]
              for path in installed_files()}
    check(f"installed: {len(owners)} files are in one package each",
          [f"{path}: {', '.join(found) or 'in no package'}" for path, found in owners.items() if len(found) != 1]
          + ([] if len(owners) > 10 else ["too few files"]))

    left_out = [name for name in ("bide-tls.pc", "bide-http2.pc", "bide-check.pc", "bide-kv", "bide-chat", "man3")
                if not any(os.path.basename(path) == name for path in owners)]
    # (the site is made on request: site_installed_test.py)
    check("listed: each line names an installed file",
          [] if left_out else [f"{package}.install: {pattern}" for package, patterns in lists.items() for pattern in patterns
                               if pattern != SITE and not any(matches(pattern, path) for path in owners)],
          f"not built here: {' '.join(left_out)}" if left_out else "")

    packages = set(re.findall(r"^Package: (\S+)$", text(os.path.join(debian, "control")), re.M))
    check("control: each package has its list of files",
          [f"{name}: in control or as a list only" for name in sorted(packages ^ set(lists))])

    first = text(os.path.join(debian, "changelog")).splitlines()[0]
    of_libraries = [name for name in packages if re.match(r"lib.*\d$", name)]
    check("version: that of the project",
          [] + ([] if first.startswith(f"bide ({version}-") else [first])
          + [name for name in of_libraries if not name.endswith(minor)]
          + [f"{name}: {pattern}" for name in of_libraries for pattern in lists.get(name, [])
             if not pattern.endswith((f".so.{minor}", f".so.{version}"))])

    for pair in pairs:
        exports, library = pair.split("=")
        check(f"symbols: {os.path.basename(library)}", symbols_of(exports, library))
    print(f"1..{count}")
    sys.exit(bool(failures))


main()
