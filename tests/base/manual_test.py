#!/usr/bin/env python3
"""Each public name has a manual page: manual_test.py PAGES INCLUDE-FOLDER LIBRARY,... COMPILER...

    exported    each symbol that a library exports, without those that end in an underscore
    declared    each function, type and enumerator that the compiler sees in the public headers
    macros      each macro that it defines there
    headers     each has a page in section 7
    sections    each page has the sections that its kind needs
    own words   no page is made from a name alone
    stubs       a name that shares a page leads to it, and the page names it
    indexed     whatis finds each page (lexgrog)
    lint        mandoc has nothing to say
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

pages, include = sys.argv[1:3]
libraries = sys.argv[3].split(",")
compiler = sys.argv[4:]
flags = ["-std=c11", "-I" + include, "-D_GNU_SOURCE", "-DBIDE_SYNCHRONOUS"]
failures = 0


def check(name, ok, *text):
    global failures
    check.count += 1
    failures += not ok
    print(f"{'' if ok else 'not '}ok {check.count} - {name}")
    for line in [] if ok else text[:30]:
        print("#", line)


check.count = 0


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def page(name, section):
    path = os.path.join(pages, f"man{section}", f"{name}.{section}")
    if not os.path.isfile(path):
        return None
    with open(path, encoding="utf-8") as file:
        return file.read()


def without_page(names):
    return sorted(name for name in names if page(name, 3) is None)


def public(name):
    return re.fullmatch(r"(bide|BIDE)_\w*[^\W_]", name)


exported = set()
for library in libraries:
    exported |= {line.split()[2].split("@")[0] for line in output("nm", "-D", "--defined-only", library).splitlines()
                 if line.split()[1] != "A"}
named = {name for name in exported if public(name)}
missing = without_page(named)
check(f"exported: {len(named)} symbols", len(named) > 500 and not missing, *missing)
check("exported: a name without a page is found", without_page(named | {"bide_no_such"})[-1:] == ["bide_no_such"]
      or "bide_no_such" in without_page(named | {"bide_no_such"}))

headers = sorted(f"{tier}/{name}" for tier in ("bide", "bide/extend") for name in os.listdir(os.path.join(include, tier))
                 if name.endswith(".h"))
written = set()
for header in headers:
    with open(os.path.join(include, header), encoding="utf-8") as file:
        text = file.read()
    guard = re.search(r"#ifndef (\w+_H)\n#define \1\n", text)
    written |= set(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", text, re.M)) - ({guard[1]} if guard else set())
with tempfile.TemporaryDirectory() as folder:
    source = os.path.join(folder, "all.c")
    with open(source, "w", encoding="utf-8") as file:
        # (the model checker's headers make their own world: check.h alone is declared for everybody)
        file.writelines(f'#include "{name}"\n' for name in headers if name not in ("bide/check_pthread.h",))
    seen = output(*compiler, *flags, "-E", source)
    defined = set(re.findall(r"^#define (\w+)", output(*compiler, *flags, "-E", "-dM", source), re.M))
# What the headers say themselves, without those of detail/ and of the system.
own, kept = True, []
for line in seen.splitlines():
    marker = re.match(r'# \d+ "(.*?)"', line)
    if marker:
        own = os.path.abspath(marker[1]).startswith(os.path.abspath(include)) and "/detail/" not in marker[1]
    elif own:
        kept.append(line)
outer, depth = [], 0
for character in "\n".join(kept):
    depth -= character == "}"
    if depth == 0 or character == "}":
        outer.append(character)
    depth += character == "{"
text = "".join(outer)
functions = {name for name in re.findall(r"\b(bide_\w+)\s*\((?!\*)", re.sub(r"\btypedef\b[^;]*;", "", text)) if public(name)}
missing = without_page(functions)
check(f"declared: {len(functions)} functions", len(functions) > 900 and not missing, *missing)
types = {name for name in re.findall(r"\btypedef\b[^;]*?\b(bide_\w+)\s*(?:\([^;()]*\))?;", text) if public(name)}
missing = without_page(types)
check(f"declared: {len(types)} types", len(types) > 250 and not missing, *missing)
enumerators = {name for body in re.findall(r"\benum\b[^{;]*\{([^}]*)\}", "\n".join(kept))
               for name in re.findall(r"\b(BIDE_\w+)\b(?=\s*(?:[,=]|$))", body) if public(name)}
missing = without_page(enumerators)
check(f"declared: {len(enumerators)} enumerators", len(enumerators) > 100 and not missing, *missing)
macros = {name for name in defined & written if public(name)}
missing = without_page(macros)
check(f"macros: {len(macros)}", len(macros) > 300 and not missing, *missing)
# (words of the language, which a header defines for plain C)
missing = without_page(["async", "await", "defer", "async_select", "async_frame"])
check("macros: words of the language", not missing, *missing)

missing = [header for header in headers
           if f"<{header}>" not in (page(re.sub(r"^bide_bide$", "bide", "bide_" + os.path.basename(header)[:-2]), 7) or "") and
           f"<{header}>" not in (page("bide_extend_" + os.path.basename(header)[:-2], 7) or "")]
check(f"headers: {len(headers)}", len(headers) > 140 and not missing, *missing)

faults, bare, stubs, real, at_all = [], [], [], [], 0
for section in (3, 7):
    folder = os.path.join(pages, f"man{section}")
    for file in sorted(os.listdir(folder)):
        name = file.rsplit(".", 1)[0]
        text = page(name, section)
        at_all += 1
        if text.startswith(".so "):
            target = page(text.split("/")[1].rsplit(".", 1)[0], section)
            if target is None or target.startswith(".so "):
                stubs.append(f"{file}: {text.strip()}")
            continue
        real.append(os.path.join(folder, file))
        there = re.findall(r"^\.SH (.*)", text, re.M)
        needed = ["NAME", "SYNOPSIS", "DESCRIPTION", "SEE ALSO"]
        first = re.search(r"^\.SH NAME\n(.*)", text, re.M)[1]
        if section == 3 and name in functions:
            needed += ["THREADS", "RETURN VALUE"]
            prototype = re.search(r"^\.SH SYNOPSIS\n.*?^(.*\b" + name + r"\(.*)$", text, re.M | re.S)
            if prototype and "(void)" not in prototype[1]:
                needed.append("PARAMETERS")
            if prototype and re.match(r"int\b", prototype[1]):
                needed.append("ERRORS")
            if prototype and prototype[1].startswith("bide_awaiter *" + name):
                needed += ["ERRORS", "CANCELLATION", "PROGRESS"]
        faults += [f"{file}: no {title}" for title in needed if title not in there]
        order = ["NAME", "SYNOPSIS", "DESCRIPTION", "PARAMETERS", "RETURN VALUE", "ERRORS", "THREADS", "CANCELLATION",
                 "PROGRESS", "EXAMPLE", "FUNCTIONS, TYPES AND MACROS", "SEE ALSO"]
        if there != sorted(there, key=order.index):
            faults.append(f"{file}: sections in another order")
        described = re.search(r"^\.SH DESCRIPTION\n((?:(?!\.SH).*\n)*)", text, re.M)
        words = re.sub(r"^\..*$|\\f.", "", described[1], flags=re.M).split() if described else []
        if len(words) < 2 or not re.search(r"\\-\s+\S", text.split(".SH SYNOPSIS")[0]):
            bare.append(file)
check(f"sections: {len(real)} pages", len(real) > 900 and not faults, *faults)
check("own words", not bare, *bare)
check(f"stubs: {at_all - len(real)}", not stubs, *stubs)

if shutil.which("lexgrog") is None:
    check("indexed # SKIP there is no lexgrog (man-db)", True)
else:
    done = subprocess.run(["lexgrog", *real], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    failed = [line for line in done.stdout.splitlines() if "parse failed" in line]
    check("indexed", done.returncode == 0 and not failed, *failed)
if shutil.which("mandoc") is None:
    check("lint # SKIP there is no mandoc", True)
else:
    found = subprocess.run(["mandoc", "-Tlint", *real], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    check("lint", not found, *found.splitlines())
    with tempfile.TemporaryDirectory() as folder:
        broken = os.path.join(folder, "broken.3")
        with open(real[0], encoding="utf-8") as file, open(broken, "w", encoding="utf-8") as copy:
            copy.write(file.read() + ".nosuch request\n")
        said = subprocess.run(["mandoc", "-Tlint", broken], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
        check("lint: a broken page is found", "nosuch" in said, said)

print(f"1..{check.count}")
sys.exit(failures != 0)
