#!/usr/bin/env python3
"""What the option `hardening` promises is in the ELF files: hardening_test.py WANTED FILE...

WANTED are words with commas between them: stack (functions with arrays check their stack), fortified (calls of the C library
check sizes): the libraries beside bide may have no such function. For every file: its place is random (a PIE or a shared library), no segment is writable and executable, the
stack is not executable, and everything that is relocated is read-only before main. Prints TAP.
"""

import os
import struct
import sys

LOAD, DYNAMIC, NOTE, STACK, RELRO = 1, 2, 4, 0x6474E551, 0x6474E552
EXECUTABLE, WRITABLE = 1, 2
SHARED = 3  # the type of PIEs and of shared libraries
DT_STRTAB, DT_SYMTAB, DT_TEXTREL, DT_BIND_NOW, DT_FLAGS, DT_STRSZ, DT_FLAGS_1 = 5, 6, 22, 24, 30, 10, 0x6FFFFFFB
FLAG_TEXTREL, FLAG_BIND_NOW, FLAG_1_NOW = 4, 8, 1


class Elf:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        if self.data[:4] != b"\x7fELF":
            raise ValueError(f"{path} is no ELF file")
        self.wide = self.data[4] == 2
        self.order = "<" if self.data[5] == 1 else ">"
        word = "Q" if self.wide else "I"
        self.type, = self.unpack("H", 16)
        begin, = self.unpack(word, 32 if self.wide else 28)
        size, count = self.unpack("HH", 54 if self.wide else 42)
        self.segments = [self.segment(begin + i * size) for i in range(count)]
        self.dynamic = dict(self.entries())

    def unpack(self, layout, offset):
        return struct.unpack_from(self.order + layout, self.data, offset)

    def segment(self, at):
        """(type, flags, offset, address, size in the file)"""
        if self.wide:
            kind, flags, offset, address, _, size = self.unpack("IIQQQQ", at)
        else:
            kind, offset, address, _, size, _, flags = self.unpack("IIIIIII", at)
        return kind, flags, offset, address, size

    def entries(self):
        """The dynamic section; of tags that repeat, any."""
        step, layout = (16, "qQ") if self.wide else (8, "iI")
        for kind, _, offset, _, size in self.segments:
            if kind == DYNAMIC:
                for at in range(offset, offset + size, step):
                    yield self.unpack(layout, at)

    def strings(self):
        """The names of its dynamic symbols, among others."""
        address, size = self.dynamic[DT_STRTAB], self.dynamic[DT_STRSZ]
        for kind, _, offset, start, length in self.segments:
            if kind == LOAD and start <= address < start + length:
                at = offset + address - start
                return set(self.data[at:at + size].decode("latin-1").split("\0"))
        return set()


def faults(path, wanted):
    elf = Elf(path)
    flags, flags_1 = elf.dynamic.get(DT_FLAGS, 0), elf.dynamic.get(DT_FLAGS_1, 0)
    names = elf.strings()
    if elf.type != SHARED:
        yield "it is always at the same place"
    if any(kind == LOAD and of & WRITABLE and of & EXECUTABLE for kind, of, *_ in elf.segments):
        yield "a segment is writable and executable"
    if not any(kind == STACK and not of & EXECUTABLE for kind, of, *_ in elf.segments):
        yield "its stack is executable"
    if not any(kind == RELRO for kind, *_ in elf.segments):
        yield "what is relocated stays writable"
    if not (flags & FLAG_BIND_NOW or flags_1 & FLAG_1_NOW or DT_BIND_NOW in elf.dynamic):
        yield "functions are bound late, so the table of their addresses stays writable"
    if flags & FLAG_TEXTREL or DT_TEXTREL in elf.dynamic:
        yield "its code is relocated"
    if "stack" in wanted and not names & {"__stack_chk_fail", "__stack_chk_guard"}:
        yield "no function checks its stack"
    if "fortified" in wanted and not any(name.startswith("__") and name.endswith("_chk") for name in names):
        yield "no call of the C library is fortified"


def main():
    wanted, files = sys.argv[1].split(","), sys.argv[2:]
    print(f"1..{len(files)}")
    failed = 0
    for number, path in enumerate(files, 1):
        found = list(faults(path, [] if os.path.basename(path).startswith("libbide-") else wanted))
        failed += bool(found)
        print(f"{'not ' if found else ''}ok {number} - {os.path.basename(path)}")
        for fault in found:
            print("#", fault)
    sys.exit(failed != 0)


main()
