#!/usr/bin/env python3
"""The shared libraries export what public headers need, and nothing else: exports_test.py LIBRARY=MAP,...
INCLUDE-DIRECTORY VERSION COMPILER...

    listed      each exports the names in its list
    declared    each of these is declared in a public header
    complete    whatever the headers' own functions call is there: all of them are compiled, and linked with it
    version     the headers, the library, its soname and the list say the same version
"""
import os
import re
import subprocess
import sys
import tempfile

pairs = [pair.split("=") for pair in sys.argv[1].split(",")]
libraries = [library for library, _ in pairs]
include, version = sys.argv[2:4]
compiler = sys.argv[4:]
# (async.h is compiled by the translator, or as plain C)
flags = ["-std=c11", "-I" + include, "-D_GNU_SOURCE", "-DBIDE_SYNCHRONOUS"]
failures = 0


def check(name, ok, *text):
    global failures
    check.count += 1
    failures += not ok
    print(f"{'' if ok else 'not '}ok {check.count} - {name}")
    for line in [] if ok else text:
        print("#", line)


check.count = 0


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


listed, texts_of = [], {}
for library, exports in pairs:
    with open(exports, encoding="utf-8") as file:
        texts_of[library] = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    names = re.findall(r"^    (\w+);$", texts_of[library], re.M)
    exported = {line.split()[2].split("@")[0] for line in output("nm", "-D", "--defined-only", library).splitlines()
                if line.split()[1] != "A"}
    base = os.path.basename(library)
    check(f"listed: {base}, in order, each once", names == sorted(set(names)))
    check(f"listed: {base} exports the list", exported == set(names),
          *sorted(exported - set(names)), *[name + " is not there" for name in sorted(set(names) - exported)])
    listed += names

# (these need bide-tls and bide-http2, which have no list here)
elsewhere = ("http_agent_tls.h", "http_agent_http2.h")
headers = sorted(f"{tier}/{name}" for tier in ("bide", "bide/extend") for name in os.listdir(os.path.join(include, tier))
                 if name.endswith(".h") and not name.startswith("check") and name not in elsewhere)
with tempfile.TemporaryDirectory() as folder:
    source = os.path.join(folder, "all.c")
    with open(source, "w", encoding="utf-8") as file:
        file.writelines(f'#include "{name}"\n' for name in headers)
        file.write("int main(void)\n{\n    return bide_version() != BIDE_VERSION;\n}\n")
    compiled = output(*compiler, *flags, "-E", "-P", source)
    words = set(re.findall(r"\w+", compiled))
    macros = set(re.findall(r"\w+", output(*compiler, *flags, "-E", "-dM", source)))
    check("declared: in a public header", set(listed) <= words | macros, *sorted(set(listed) - words - macros))

    # (an inline function is kept by its address)
    program = os.path.join(folder, "all")
    inline = sorted(set(re.findall(r"\b(bide_\w+)\([^;{}]*\)\s*\{", compiled)))
    with open(source, "a", encoding="utf-8") as file:
        file.write("void (*volatile kept[])(void) = {\n")
        file.writelines(f"    (void (*)(void)){name},\n" for name in inline)
        file.write("};\n")
    linked = subprocess.run([*compiler, *flags, "-O0", "-w", source, *reversed(libraries),
                             *["-Wl,-rpath," + os.path.dirname(os.path.abspath(library)) for library in libraries],
                             "-pthread", "-o", program], stderr=subprocess.PIPE, text=True)
    check(f"complete: {len(inline)} functions of headers are linked with it", linked.returncode == 0 and len(inline) > 500,
          *linked.stderr.splitlines()[:20])
    ran = linked.returncode == 0 and subprocess.run([program]).returncode == 0
    check("version: headers and library", ran)
    with open(os.path.join(include, "bide/version.h"), encoding="utf-8") as file:
        header = file.read()
    texts = re.findall(r'# *define BIDE_VERSION_TEXT "(.*)"', header)
    numbers = re.findall(r"# *define BIDE_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header)
    check("version: the project's", texts == [version] and ".".join(numbers) == version, *texts, *numbers)
    minor = ".".join(numbers[:2])
    for library, text in texts_of.items():
        name = os.path.basename(library).split(".so")[0]
        soname = re.findall(r"SONAME.*\[(.*)\]", output("readelf", "-d", library))
        node = name[3:].upper().replace("-", "_")
        check(f"version: soname and list of {name}", soname == [f"{name}.so.{minor}"] and f"{node}_{minor} {{" in text, *soname)

print(f"1..{check.count}")
sys.exit(failures != 0)
