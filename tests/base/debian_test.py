#!/usr/bin/env python3
"""debian/ agrees with what is built: debian_test.py ROOT BUILD-DIRECTORY VERSION MAP=LIBRARY...

    installed  each installed file is in one package
    listed     each line of a list of files names an installed file, if all parts are built
    control    each list belongs to a package of debian/control, and each package for some architecture has one
    arch       builds of the packages for one architecture (dpkg-buildpackage -B) make no documents and need nothing for them
    version    the changelog, the packages of libraries and their files have the version of the project
    symbols    the symbols file of a library has the names that the library exports, with their version

In TAP.
"""
import fnmatch
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

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


def configured_for(packages):
    """The options that debian/rules configures with, if debhelper builds these packages."""
    with tempfile.TemporaryDirectory() as folder:
        stub = os.path.join(folder, "dh_listpackages")
        with open(stub, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nprintf '%s\\n' " + " ".join(packages) + "\n")
        os.chmod(stub, 0o755)
        done = subprocess.run(["make", "-n", "-f", "debian/rules", "override_dh_auto_configure"], cwd=root, check=True,
                              stdout=subprocess.PIPE, text=True, env={**os.environ, "PATH": folder + ":" + os.environ["PATH"]})
        return dict(re.findall(r"-D(\w+)=(\w+)", done.stdout))


def wrong_for_arch(packages):
    """What is wrong with builds of the packages for one architecture alone."""
    control = text(os.path.join(debian, "control"))
    fields = {field: set(re.findall(r"^ ([\w-]+)", lines, re.M))
              for field, lines in re.findall(r"^(Build-Depends(?:-Indep)?):\n((?: .*\n)+)", control, re.M)}
    needed = {"mandoc", "python3-markdown", "python3-pygments"}
    wrong = [f"Build-Depends: {name}" for name in sorted(needed & fields["Build-Depends"])]
    wrong += [f"not in Build-Depends-Indep: {name}" for name in sorted(needed - fields.get("Build-Depends-Indep", set()))]
    for options, expected in ((configured_for(packages - {"bide-doc"}), "disabled"), (configured_for({"bide-doc"}), "enabled"),
                              (configured_for(packages), "enabled")):
        wrong += [f"-D{name}={options.get(name)} in place of {expected}" for name in ("man", "site") if options.get(name) != expected]
    return wrong


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

    lacks = [name for name in ("make", "dpkg-architecture") if shutil.which(name) is None]
    check("arch: without documents", [] if lacks else wrong_for_arch(packages), f"not installed: {' '.join(lacks)}" if lacks else "")

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
