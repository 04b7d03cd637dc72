#!/usr/bin/env python3
"""What one looks for is found by its name: names_test.py INCLUDE-FOLDER COMPILER...

    literal     each function that bide/bide.h and bide/extend/ declare stands in a header under its own name
    tagged      ctags leads from each function of the sequence family to its one declaration
    renamed     what sequence_names.inc begins sequence_names_end.inc ends
    asked for   without sequence8.h and its like nothing is declared for another width
    wide        they declare each type and function of the family for their width, once
    plain       after them the plain names are what they were before
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

include = os.path.abspath(sys.argv[1])
compiler = sys.argv[2:]
flags = ["-std=c11", "-I" + include, "-D_GNU_SOURCE"]
family = ["sequence", "sequence_barrier", "sequence_group", "single_producer_sequencer", "multi_producer_sequencer"]
failures = 0


def check(name, ok, *text):
    global failures
    check.count += 1
    failures += not ok
    print(f"{'' if ok else 'not '}ok {check.count} - {name}")
    for line in [] if ok else text[:20]:
        print("#", line)


check.count = 0


def read(name):
    with open(os.path.join(include, name), encoding="utf-8") as file:
        return file.read()


def preprocessed(folder, *headers, option="-P"):
    source = os.path.join(folder, "x.c")
    with open(source, "w", encoding="utf-8") as file:
        file.writelines(f'#include "{header}"\n' for header in headers)
    return subprocess.run([*compiler, *flags, "-E", option, source], check=True, stdout=subprocess.PIPE, text=True).stdout


# Functions declared or defined at the outermost level: a name before a parenthesis.
def functions(text):
    outer, depth = [], 0
    for character in text:
        depth -= character == "}"
        if depth == 0:
            outer.append(character)
        depth += character == "{"
    return set(re.findall(r"\b(bide_\w+)\s*\((?!\*)", "".join(outer)))


extend = sorted("bide/extend/" + name for name in os.listdir(os.path.join(include, "bide/extend")))
with tempfile.TemporaryDirectory() as folder:
    declared = functions(preprocessed(folder, "bide/bide.h", *extend))
    written = set()
    for path, _, names in os.walk(os.path.join(include, "bide")):
        for name in names:
            if name.endswith(".h"):
                text = re.sub(r"/\*.*?\*/", "", read(os.path.join(path, name)), flags=re.S)
                written |= set(re.findall(r"\b(bide_\w+)\s*\(", text))
    public = {name for name in declared if not name.endswith("_")}
    check(f"literal: {len(public)} functions", len(public) > 300 and public <= written, *sorted(public - written))

    of_family = set()
    for name in family:
        of_family |= set(re.findall(r"\b(bide_\w+)\(", read(f"bide/{name}.h")))
    members = sorted(name for name in declared & of_family
                     if re.match(r"bide_(sequence|claim|single_producer|multi_producer)", name))
    ctags = shutil.which("ctags")
    if ctags is None or "Universal" not in subprocess.run([ctags, "--version"], stdout=subprocess.PIPE, text=True).stdout:
        check("tagged # SKIP there is no Universal Ctags", True)
    else:
        tags = subprocess.run([ctags, "-x", "--kinds-C++=+p", "--exclude=editor.h", "-R", os.path.join(include, "bide")], check=True,
                              stdout=subprocess.PIPE, text=True).stdout.splitlines()
        found = [line.split()[0] for line in tags]
        check(f"tagged: {len(members)} functions of the family", len(members) > 90 and
              all(found.count(name) == 1 for name in members), *[name for name in members if found.count(name) != 1])

    names = dict(re.findall(r"#define (\w+) (?:\\\n +)?BIDE_SEQUENCE_NAME_\((\w+, \w*)\)", read("bide/detail/sequence_names.inc")))
    ended = re.findall(r"#undef (bide_\w+)", read("bide/detail/sequence_names_end.inc"))
    check(f"renamed: {len(names)} names, and back", len(names) > 100 and list(names) == ended,
          *sorted(set(names) ^ set(ended)))
    check("renamed: each from its own parts", all("".join(parts.split(", ")) == name for name, parts in names.items()))
    check("renamed: each function of the family", set(members) <= set(names), *sorted(set(members) - set(names)))

    widths = (8, 16, 32, 64)
    unasked = {str(bits).join(parts.split(", ")) for parts in names.values() for bits in widths}
    unasked &= set(re.findall(r"\w+", preprocessed(folder, "bide/bide.h", *extend)))
    check("asked for: bide.h alone", not unasked, *sorted(unasked))
    for bits in widths:
        wide = preprocessed(folder, f"bide/sequence{bits}.h")
        made = {str(bits).join(parts.split(", ")) for parts in names.values()}
        words = set(re.findall(r"\w+", wide))
        check(f"wide: {bits} bits", made <= words, *sorted(made - words))
        left = set(re.findall(r"#define (bide_\w+)", preprocessed(folder, f"bide/sequence{bits}.h", option="-dM"))) & set(names)
        check(f"plain: after {bits} bits", not left, *sorted(left))

print(f"1..{check.count}")
sys.exit(failures != 0)
