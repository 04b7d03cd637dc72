"""The layout of bide's structs in the program's memory, and coroutines read from it. Imported by bide.py."""

import gdb

# As bide_state in frame.h.
AT_START, AT_AWAIT, AT_YIELD, AT_END = range(4)
STATES = ("not started", "", "yielded", "ended")


class Bad(Exception):
    """The memory does not hold what was expected there."""


def offset(type_name, path, otherwise):
    """Returns the offset of a member in bytes: from the program's debug information, or else `otherwise`."""
    try:
        kind = gdb.lookup_type(type_name)
        total = 0
        for name in path.split("."):
            field = next(f for f in kind.strip_typedefs().fields() if f.name == name)
            total += field.bitpos // 8
            kind = field.type
        return total
    except (gdb.error, StopIteration):
        return otherwise


def size_of(type_name, otherwise):
    try:
        return gdb.lookup_type(type_name).sizeof
    except gdb.error:
        return otherwise


class Layout:
    """Offsets and sizes. All members are of pointer size, except for the 64-bit number, the line and the state of a
    point."""

    def __init__(self):
        word = self.word = gdb.lookup_type("char").pointer().sizeof
        number = (9 * word + 7) // 8 * 8  # after seven words of ops, the code and the label, aligned
        self.link = offset("bide_awaiter", "link", word)
        self.outer = offset("bide_awaiter", "frame", 2 * word)
        self.frame_size = size_of("bide_frame", 4 * word)
        self.context_of_frame = self.frame_size - word
        self.withdraw = offset("bide_awaiter_ops", "withdraw", 4 * word)
        self.ops_name = offset("bide_awaiter_ops", "name", 5 * word)
        self.code = offset("bide_point", "code", 7 * word)
        self.line = offset("bide_point", "line", number + 8)
        self.state = offset("bide_point", "state", number + 12)
        self.code_name = offset("bide_coroutine_code", "name", word)
        self.code_file = offset("bide_coroutine_code", "file", 2 * word)
        self.context_name = offset("bide_context", "name", 2 * word)
        # an awaiter, type, argument and size, rounded up to 16 bytes
        self.owner_size = size_of("bide_owner", (6 * word + 15) // 16 * 16)
        self.links = offset("bide_root", "links", self.frame_size)
        self.awaited = offset("bide_root", "awaited", self.frame_size + 2 * word)
        self.list_first = offset("bide_root_list_", "first", word)
        self.list_cursor = offset("bide_root_list_", "cursor", 2 * word)
        self.order = "big" if "big" in gdb.execute("show endian", to_string=True) else "little"
        self.frame_withdraw = symbol("bide_frame_withdraw_")
        self.owned_ops = symbol("bide_owned_ops_")
        self.running = symbol("bide_running_")

    def read(self, address, size):
        try:
            memory = gdb.selected_inferior().read_memory(address, size)
        except (gdb.error, OverflowError, ValueError) as error:
            raise Bad("there is no memory at 0x%x" % address) from error
        return int.from_bytes(bytes(memory), self.order)

    def pointer(self, address):
        return self.read(address, self.word)

    def text(self, address):
        collected = bytearray()
        while len(collected) < 200:
            byte = self.read(address + len(collected), 1)
            if byte == 0:
                break
            if byte < 32 or byte == 127:
                raise Bad("there is no text at 0x%x" % address)
            collected.append(byte)
        return collected.decode("utf-8", "replace")


def symbol(name):
    """Returns the address of a function or variable of the library, or None."""
    for expression in ("(char *)&'%s'" % name, "(char *)&%s" % name):
        try:
            return int(gdb.parse_and_eval(expression))
        except gdb.error:
            pass
    return None


class Frame:
    """The state of a coroutine."""

    def __init__(self, layout, address):
        self.address = address
        point = layout.pointer(address)
        if layout.pointer(point + layout.withdraw) != layout.frame_withdraw:
            raise Bad("there is no coroutine at 0x%x" % address)
        self.state = layout.read(point + layout.state, 4)
        self.line = layout.read(point + layout.line, 4)
        code = layout.pointer(point + layout.code)
        if self.state > AT_END:
            raise Bad("the coroutine at 0x%x is in no known state" % address)
        self.name = layout.text(layout.pointer(code + layout.code_name)) if code else "(ended)"
        self.file = layout.text(layout.pointer(code + layout.code_file)) if code else ""
        self.link = layout.pointer(address + layout.link)
        self.outer = layout.pointer(address + layout.outer)
        self.context = layout.pointer(address + layout.context_of_frame)
        self.runs = self.state != AT_END and self.link == layout.running

    def child(self, layout):
        """Returns the coroutine that this one awaits, or None."""
        if self.state != AT_AWAIT or self.runs or self.link == 0:
            return None
        return child_of(layout, self.link)

    def operation(self, layout):
        """Returns the name of the awaited operation or coroutine."""
        child = self.child(layout)
        return child.name if child else operation_name(layout, self.link)


def child_of(layout, awaiter):
    """Returns the coroutine behind an awaiter: the awaiter itself, or the coroutine that it owns; or None."""
    ops = layout.pointer(awaiter)
    if layout.pointer(ops + layout.withdraw) == layout.frame_withdraw:
        return Frame(layout, awaiter)
    if ops == layout.owned_ops:
        return Frame(layout, awaiter + layout.owner_size)
    return None


def operation_name(layout, awaiter):
    name = layout.pointer(layout.pointer(awaiter) + layout.ops_name)
    return layout.text(name) if name else "an operation"
