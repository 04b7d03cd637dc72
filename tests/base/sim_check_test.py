#!/usr/bin/env python3
"""scripts/sim-check finds calls that a test loop cannot repeat: sim_check_test.py ROOT CC...

In TAP. Objects are compiled here, and made by hand for both sizes of words and both orders of bytes.
"""
import os
import struct
import subprocess
import sys
import tempfile

root, cc = sys.argv[1], sys.argv[2:]
script = os.path.join(root, "scripts", "sim-check")

ASKS = """
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int asks(void);
int asks(void) { return rand() + (int)time(NULL) + getpid(); }
"""
DRAWS = """
unsigned long long bide_test_now(void), bide_test_random(void);
unsigned long long draws(void);
unsigned long long draws(void) { return bide_test_now() + bide_test_random(); }
"""
# A function of the program's own that has such a name.
OWN = """
long random(void);
long random(void) { return 4; }
"""
USES_OWN = """
long random(void);
long uses_own(void);
long uses_own(void) { return random(); }
"""


def run(*arguments):
    made = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True)
    return made.returncode, made.stdout, made.stderr


def elf(wide, big, undefined, slim=False):
    """An object file with these undefined symbols; `slim`: as GCC makes them with -flto."""
    order = ">" if big else "<"
    names = b"\0" + b"".join(name.encode() + b"\0" for name in undefined) + b"__gnu_lto_slim\0"
    entries = [(names.index(b"\0" + name.encode() + b"\0") + 1, 0) for name in undefined]
    if slim:
        entries.append((names.index(b"__gnu_lto_slim"), 0xfff2))

    def symbol(name, index):
        return struct.pack(order + "IBBHQQ", name, 0x10, 0, index, 0, 0) if wide else \
            struct.pack(order + "IIIBBH", name, 0, 0, 0x10, 0, index)

    def section(kind, offset, size, link):
        return struct.pack(order + ("IIQQQQIIQQ" if wide else "IIIIIIIIII"), 0, kind, 0, 0, offset, size, link, 0, 0, 0)

    table = symbol(0, 0) + b"".join(symbol(*entry) for entry in entries)
    header = 64 if wide else 52
    at = header + len(table) + len(names)
    rest = struct.pack(order + ("HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH"), 1, 62, 1, 0, 0, at, 0, header, 0, 0,
                       64 if wide else 40, 3, 2)
    sections = section(0, 0, 0, 0) + section(2, header, len(table), 2) + section(3, header + len(table), len(names), 0)
    return b"\x7fELF" + bytes([2 if wide else 1, 2 if big else 1, 1]) + bytes(9) + rest + table + names + sections


cases = []
with tempfile.TemporaryDirectory() as scratch:
    def path_of(name):
        return os.path.join(scratch, name)

    def write(name, data):
        with open(path_of(name), "wb") as file:
            file.write(data)
        return path_of(name)

    objects = {}
    for name, text in (("asks", ASKS), ("draws", DRAWS), ("own", OWN), ("uses_own", USES_OWN)):
        source = write(name + ".c", text.encode())
        objects[name] = path_of(name + ".o")
        subprocess.run(cc + ["-fno-builtin", "-c", source, "-o", objects[name]], check=True)

    status, out, err = run(objects["asks"])
    cases.append(("what_asks_the_system_is_found_with_its_reason",
                  status == 1 and "rand: random numbers: bide_test_random\n" in out and ": the time: bide_test_now\n" in out
                  and "getpid: a number of the process\n" in out and out.count("\n") == 3, out + err))
    status, out, err = run(objects["draws"])
    cases.append(("what_asks_the_test_loop_is_not", status == 0 and out == "" and err == "", out + err))
    status, out, err = run("--allow", "rand", "--allow", "getpid", objects["asks"])
    cases.append(("names_may_be_allowed", status == 1 and "rand:" not in out and out.count("\n") == 1, out + err))
    cases.append(("functions_of_its_own_are_no_calls", run(objects["uses_own"])[0] == 1 and
                  run(objects["own"], objects["uses_own"])[0] == 0, ""))
    for kind in ("rc", "rcT"):
        archive = path_of(f"lib{kind}.a")
        subprocess.run(["ar", kind, archive, objects["draws"], objects["asks"]], check=True)
        status, out, err = run(archive)
        cases.append((f"archives_are_read_{kind}", status == 1 and "asks.o" in out and out.count("\n") == 3, out + err))
    for wide in (False, True):
        for big in (False, True):
            made = write("made.o", elf(wide, big, ["memcpy", "__clock_gettime64", "pthread_create"]))
            status, out, err = run(made)
            cases.append((f"{64 if wide else 32}_bits_{'big' if big else 'little'}_endian_are_read",
                          status == 1 and "__clock_gettime64: the time" in out and "pthread_create: a thread" in out
                          and out.count("\n") == 2, out + err))
    good = elf(True, False, ["time"])
    unreadable = [("a_slim_object", elf(True, False, [], slim=True)), ("bitcode", b"BC\xc0\xde1234"), ("a_text", b"int i;\n"),
                  ("half_a_file", good[:len(good) - 70]), ("nothing", b"")]
    for name, data in unreadable:
        status, out, err = run(write(name, data), objects["asks"])
        cases.append((f"{name}_is_an_error_and_the_rest_is_read",
                      status == 2 and f"{name}: " in err and "rand:" in out and "Traceback" not in err, out + err))
    status, out, err = run(path_of("missing.o"))
    cases.append(("a_missing_file_is_an_error", status == 2 and "missing.o: " in err, out + err))
    cases.append(("no_file_is_an_error", run()[0] == 2 and run("--alow", "rand")[0] == 2, ""))

print(f"1..{len(cases)}")
for number, (name, good, text) in enumerate(cases, 1):
    print(f"{'' if good else 'not '}ok {number} - {name}")
    if not good:
        print("# " + text.replace("\n", "\n# "))
sys.exit(not all(good for _, good, _ in cases))
