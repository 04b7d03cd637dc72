"""
Commands for gdb that show bide's coroutines, in a program that runs or in a core file:

    (gdb) source /usr/share/bide/gdb/bide.py        (where it is installed: DATADIR/bide/gdb)
    (gdb) bide tasks                  every task that lives, with the coroutines that await each other
    (gdb) bide bt                     from the coroutine that runs on this thread to who awaits it, and so on
    (gdb) bide bt &self->child.task   ... from any coroutine: an expression for a pointer to its frame
    (gdb) print event                 frames, events, mutexes, semaphores, channels and run loops say how they stand,
                                      and which coroutines wait for them; queues what they hold; in `print`, `info locals` and `bt full`
    (gdb) print /r event              as gdb would print it otherwise
    (gdb) bide help

A line in ~/.gdbinit sources it for good. The tasks are found from the list of live roots (roots.h), the rest
from what every frame holds (frame.h). Types of the program are used where it has them; without debug information
the layout is known from here. Memory that cannot be read, or holds nonsense, ends a chain with a remark.
"""

import gdb

# As bide_state in frame.h.
AT_START, AT_AWAIT, AT_YIELD, AT_END = range(4)
STATES = ("not started", "", "yielded", "ended")

MOST_FRAMES = 200  # of a chain are printed
MOST_DEEP = 1000000  # are followed
MOST_ROOTS = 1000000
LISTS_MOST = 64


class Bad(Exception):
    """What is there is not what it should be."""


def offset(type_name, path, otherwise):
    """The offset of a member in bytes, from the program's type or else as it is known."""
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
    """Where things are. All words are pointers, but for a point's 64-bit number, line and state."""

    def __init__(self):
        word = self.word = gdb.lookup_type("char").pointer().sizeof
        number = (9 * word + 7) // 8 * 8  # behind seven words of ops, code and label, aligned
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
        # (an awaiter, type, argument and size, to the next 16 bytes)
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
    """The address of a function or a variable of the library, or None."""
    for expression in ("(char *)&'%s'" % name, "(char *)&%s" % name):
        try:
            return int(gdb.parse_and_eval(expression))
        except gdb.error:
            pass
    return None


class Frame:
    """A coroutine as it stands."""

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
        """The coroutine that it awaits, or None."""
        if self.state != AT_AWAIT or self.runs or self.link == 0:
            return None
        return child_of(layout, self.link)

    def operation(self, layout):
        """The name of what it waits for."""
        child = self.child(layout)
        return child.name if child else operation_name(layout, self.link)


def child_of(layout, awaiter):
    """The coroutine that is awaited by way of an awaiter: itself, or the one that it owns; or None."""
    ops = layout.pointer(awaiter)
    if layout.pointer(ops + layout.withdraw) == layout.frame_withdraw:
        return Frame(layout, awaiter)
    if ops == layout.owned_ops:
        return Frame(layout, awaiter + layout.owner_size)
    return None


def operation_name(layout, awaiter):
    name = layout.pointer(layout.pointer(awaiter) + layout.ops_name)
    return layout.text(name) if name else "an operation"


def print_line(number, frame, rest):
    where = " at %s:%d" % (frame.file, frame.line) if frame.file else ""
    gdb.write("  #%d %s%s%s\n" % (number, frame.name, where, " " + rest if rest else ""))


# ---- From a coroutine outwards ----


def step_on_stack(layout):
    """The innermost coroutine that runs on the selected thread, standing at the line where it does; None if no
    coroutine runs there. Where the optimiser has lost it, it is found from one further out that awaits it."""
    try:
        c_frame = gdb.newest_frame()
    except gdb.error:
        return None
    body = line = None
    for _ in range(10000):
        if c_frame is None:
            break
        function = step_function(c_frame)
        if function is not None:
            if body is None:
                body, line = function, c_frame.find_sal().line
            frame = step_argument(layout, c_frame, function)
            inner = innermost(layout, frame, body) if frame is not None else None
            if inner is not None:
                inner.line = line or inner.line
                return inner
        c_frame = c_frame.older()
    if body is not None:
        raise Bad("%s runs on this thread, but the optimiser has lost where its frame is" % body)
    return None


def step_function(c_frame):
    """The name of the body, or async function, that a function on the stack, inlined or not, is a step of; or None."""
    name = c_frame.name() or ""
    for before, behind in ("", "_step_"), ("async_", "_step"):
        if name.startswith(before) and name.endswith(behind):
            return name[len(before) : -len(behind)]
    return None


def step_argument(layout, c_frame, body):
    """The coroutine of which a function on the stack is a step. Its argument has its own name, bide_in_NAME; where
    the optimiser has lost that, the body's constant bide_frame_ may be there, or its pointer to its frame."""
    try:
        block = c_frame.block()
        while block is not None and block.function is None:
            block = block.superblock
    except (gdb.error, RuntimeError):
        return None
    for variable in block or ():
        if not (variable.is_argument or variable.is_variable):
            continue
        if variable.type.strip_typedefs().code != gdb.TYPE_CODE_PTR:
            continue
        try:
            value = variable.value(c_frame)
            if value.is_optimized_out:
                continue
            frame = Frame(layout, int(value))
            if frame.name == body:
                return frame
        except (gdb.error, Bad):
            pass
    return None


def innermost(layout, frame, body):
    """The coroutine of `body` that `frame` is or, by way of others, awaits; or None."""
    try:
        for _ in range(MOST_DEEP):
            if frame is None or frame.name == body:
                return frame
            frame = frame.child(layout)
    except Bad:
        pass
    return None


def print_outwards(layout, frame, runs):
    """From a coroutine to who awaits it, and so on: see inspect.c."""
    seen = {frame.address}
    for number in range(MOST_FRAMES):
        rest = STATES[frame.state]
        if number == 0 and (runs or frame.runs):
            rest = "(running)"
        elif number == 0 and frame.state == AT_AWAIT:
            rest = "waiting for " + frame.operation(layout)
        print_line(number, frame, rest)
        awaited = frame.state == AT_AWAIT or (number == 0 and (runs or frame.runs))
        if not awaited or frame.outer in (0, frame.address):
            return
        if frame.outer in seen:
            raise Bad("they await each other in a circle")
        seen.add(frame.outer)
        frame = Frame(layout, frame.outer)
    gdb.write("  ... and more\n")


# ---- From the roots inwards ----


def roots(layout):
    """The addresses of all live roots."""
    lists = symbol("bide_roots_")
    if lists is None:
        raise Bad("the program has no list of its tasks (bide_roots_)")
    try:
        variable = gdb.parse_and_eval("bide_roots_")
        count, size = variable.type.range()[1] + 1, variable.type.target().sizeof
    except (gdb.error, RuntimeError):
        count, size = 16, 64
    for i in range(min(count, LISTS_MOST)):
        at = lists + i * size
        links = layout.pointer(at + layout.list_first)
        for _ in range(MOST_ROOTS):
            if links == 0:
                break
            if links != at + layout.list_cursor:
                yield links - layout.links
            links = layout.pointer(links)


def chain(layout, frame):
    """The coroutines that await each other from `frame` inwards, and what the last does; an ended one is not awaited
    any more, and one that is awaited but does not wait runs."""
    frames = []
    seen = set()
    doing = "running"
    try:
        while frame is not None and frame.address not in seen and len(frames) < MOST_DEEP:
            if frame.state == AT_END:
                break
            frames.append(frame)
            seen.add(frame.address)
            if frame.state != AT_AWAIT or frame.runs:
                break
            inner = frame.child(layout)
            if inner is None:
                doing = "waiting for " + operation_name(layout, frame.link)
            frame = inner
    except Bad as bad:
        doing = "running (%s)" % bad
    return frames, doing


def print_task(layout, address):
    root = Frame(layout, address)
    awaited = layout.pointer(address + layout.awaited)
    first = child_of(layout, awaited)
    name = first.name if first else operation_name(layout, awaited)
    context_name = layout.pointer(root.context + layout.context_name)
    where = " in " + layout.text(context_name) if context_name else ""
    frames = []
    if root.state == AT_START:
        doing = "not started"
    elif first is None:
        doing = "waiting for " + name
    else:
        frames, doing = chain(layout, first)
    gdb.write("task 0x%x %s%s: %s\n" % (address, name, where, doing))
    waits = doing.startswith("waiting")
    for number, frame in enumerate(reversed(frames)):
        if number == MOST_FRAMES:
            gdb.write("  ... and %d more\n" % (len(frames) - number))
            break
        print_line(number, frame, "" if number else doing if waits else "(%s)" % doing)


# ---- What is printed of values ----


def member(value, *names):
    """A member of a member, as a number."""
    for name in names:
        value = value[name]
    return int(value)


def where_it_stands(frame):
    text = frame.name
    if frame.file:
        text += " at %s:%d" % (frame.file, frame.line)
    return text


def who_waits(layout, awaiter):
    """The coroutine that awaits an operation, in words."""
    frame = layout.pointer(awaiter + layout.outer)
    return where_it_stands(Frame(layout, frame)) if frame else "nobody"


def linked(layout, awaiter, tags=0):
    """The addresses of operations that are linked, as far as they can be read; tags are not of an address."""
    seen = set()
    while awaiter > LARGEST_TAG and awaiter not in seen and len(seen) < MOST_SHOWN:
        seen.add(awaiter)
        yield awaiter
        awaiter = layout.pointer(awaiter + layout.link) & ~tags


LARGEST_TAG = 64  # of words that hold an address or something else
MOST_SHOWN = 200
MOST_ELEMENTS = 4  # of a queue are shown
MOST_COUNTED = 100000
CELL_FULL, CELL_CONSUMERS = 1, 2  # as in segment_queue.h
LIST_TAGS, LIST_SIFTING = 7, 2  # as BIDE_LIST_... in extend/waiter_list.h
QUEUE_CLOSED, QUEUE_ONE = 16, 32  # as BIDE_QUEUE_... in extend/waiter_queue.h


def waiting_in_list(layout, value):
    word = member(value, "word")
    if word & LIST_SIFTING:
        return []  # whoever looks through it holds them
    return list(linked(layout, word & ~LIST_TAGS, LIST_TAGS))[::-1]


def waiting_in_queue(layout, value):
    arrivals = list(linked(layout, member(value, "arrivals")))
    return list(linked(layout, member(value, "line"))) + arrivals[::-1]


def waiting_for_count(layout, value):
    place = list(linked(layout, member(value, "place") & ~LIST_TAGS))[:1]
    return place + waiting_in_queue(layout, value["line"])


class Printer:
    """Prints a primitive as a line, and whoever waits for it as its children, the oldest first."""

    def __init__(self, value):
        self.value, self.layout = value, Layout()
        self.summary, self.waiting = "", []
        try:
            self.look(value)
        except (gdb.error, Bad, KeyError) as error:
            self.summary = "%s (%s)" % (self.summary or "unknown", error)

    def to_string(self):
        crowd = "%d waiting" % len(self.waiting)
        if len(self.waiting) >= MOST_SHOWN:
            crowd += " or more"
        return ", ".join(part for part in (self.summary, crowd if self.waiting else "") if part)

    def children(self):
        for number, awaiter in enumerate(self.waiting):
            try:
                text = who_waits(self.layout, awaiter)
            except Bad as bad:
                text = str(bad)
            yield "[%d]" % number, text


class PrintedFrame(Printer):
    def look(self, value):
        frame = Frame(self.layout, int(value.address)) if value.address is not None else None
        if frame is None:
            self.summary = "a copy of a frame"
            return
        self.summary = where_it_stands(frame)
        if frame.runs:
            self.summary += ", running"
        elif frame.state == AT_AWAIT:
            self.summary += ", waiting for " + frame.operation(self.layout)
        else:
            self.summary += ", " + STATES[frame.state]


class PrintedList(Printer):
    def look(self, value):
        word = member(value, "word")
        self.summary = "being looked through" if word & LIST_SIFTING else "shut" if word & 1 else "open"
        self.waiting = waiting_in_list(self.layout, value)


class PrintedEvent(Printer):
    def look(self, value):
        word = member(value, "waiters", "word")
        closed = word & LIST_TAGS == 1 and word > 1
        was_set = word & LIST_TAGS == 1 and word & 8 == 0 or word == 16 | LIST_SIFTING
        self.summary = ("set" if was_set else "not set") + (", closed" if closed else "")
        self.waiting = waiting_in_list(self.layout, value["waiters"])


class PrintedQueue(Printer):
    def look(self, value):
        state = member(value, "state")
        self.summary = "value %d" % (state // QUEUE_ONE) + (", closed" if state & QUEUE_CLOSED else "")
        self.waiting = waiting_in_queue(self.layout, value)


class PrintedMutex(Printer):
    def look(self, value):
        # (the key stands in what holds it; whose frame that is need not be written in it)
        locked = member(value, "queue", "state") // QUEUE_ONE != 0
        self.summary = "locked with the key at 0x%x" % member(value, "holder") if locked else "free"
        self.waiting = waiting_in_queue(self.layout, value["queue"])


class PrintedSemaphore(Printer):
    def look(self, value):
        permits = member(value, "queue", "state") // QUEUE_ONE
        self.summary = "%d permit%s" % (permits, "" if permits == 1 else "s")
        self.waiting = waiting_in_queue(self.layout, value["queue"])


class PrintedCount(Printer):
    def look(self, value):
        self.waiting = waiting_for_count(self.layout, value)
        self.summary = "" if self.waiting else "nobody waits"


class PrintedChannel(Printer):
    def look(self, value):
        lap, end = member(value, "ring", "shape", "lap"), member(value, "ring", "shape", "end")
        head, tail = member(value, "ends", "head"), member(value, "ends", "tail")
        places = [(word & (lap - 1)) // 2 + word // lap * (end // 2) for word in (head, tail)]
        count = max(0, min(places[1] - places[0], end // 2))
        self.summary = "%d of %d" % (count, end // 2)
        if member(value, "closed"):
            self.summary += ", closed"
        self.waiting = waiting_for_count(self.layout, value["not_empty"])
        self.waiting += waiting_for_count(self.layout, value["not_full"])


class PrintedElements(Printer):
    """A queue: how many elements it holds, of how many, and the next few as its children."""

    def to_string(self):
        return self.summary

    def children(self):
        for number, element in enumerate(self.waiting):
            yield "[%d]" % number, element

    def holds(self, count, capacity, closed):
        self.summary = "%d" % count if capacity is None else "%d of %d" % (count, capacity)
        if count >= MOST_COUNTED:
            self.summary += " or more"
        self.summary += ", closed" if closed else ""


class PrintedSpscRing(PrintedElements):
    def look(self, value):
        capacity = member(value, "capacity")
        head, tail = member(value, "ends", "head"), member(value, "ends", "tail")
        words = 1 << 8 * self.layout.word
        count = min((tail - head) % words // 2, capacity)
        self.holds(count, capacity, tail & 1)
        place = member(value, "ends", "head_place")
        self.waiting = [
            value["slots"][(place + i) % capacity] for i in range(min(count, MOST_ELEMENTS))
        ]


class PrintedMpmcRing(PrintedElements):
    def look(self, value):
        lap, end = member(value, "shape", "lap"), member(value, "shape", "end")
        head, tail = member(value, "ends", "head"), member(value, "ends", "tail")
        capacity = end // 2
        head_place, tail_place = ((word & (lap - 1)) // 2 + word // lap * capacity for word in (head, tail))
        count = max(0, min(tail_place - head_place, capacity))
        self.holds(count, capacity, member(value, "closed"))
        self.waiting = [
            value["slots"][(head_place + i) % capacity]["value"] for i in range(min(count, MOST_ELEMENTS))
        ]


class PrintedSegmentQueue(PrintedElements):
    def look(self, value):
        queue, count, closed = value["queue"], 0, False
        cells = member(queue, "cells")
        closed_flag = 1 << 8 * self.layout.word - 1
        segment_type = gdb.lookup_type("bide_segment_")
        at, seen = member(queue, "head"), set()
        while at != 0 and at not in seen and count < MOST_COUNTED:
            seen.add(at)
            segment = gdb.Value(at).cast(segment_type.pointer()).dereference()
            pushed = member(segment, "pushed")
            closed = pushed & closed_flag != 0
            popped = min(member(segment, "popped"), cells)
            end = max(popped, min(pushed & ~closed_flag, cells))
            first = gdb.Value(at + segment_type.sizeof).cast(value["typed_"].type)
            for i in range(popped, min(end, popped + MOST_ELEMENTS - len(self.waiting))):
                if member(first[i], "state_") == CELL_FULL and member(first[i], "claim_") != CELL_CONSUMERS:
                    self.waiting.append(first[i]["element_"])
            count += end - popped
            at = 0 if closed else member(segment, "next")  # (behind the closed one stands none)
        self.holds(count, None, closed)


class PrintedNodes(PrintedElements):
    """A queue of nodes from a pool, which lead to each other by index."""

    def node(self, queue, index):
        pool = queue["pool"].dereference()
        shift = member(pool, "shift")
        nodes = member(pool["chunks"][index >> shift], "nodes")
        return nodes + (index & ((1 << shift) - 1)) * member(pool, "node_size")

    def element(self, value, node):
        return gdb.Value(node + int(gdb.parse_and_eval(self.ELEMENT))).cast(value["typed_"].type).dereference()


class PrintedCountedQueue(PrintedNodes):
    ELEMENT = "BIDE_COUNTED_ELEMENT_"

    def look(self, value):
        queue, count, closed = value["queue"], 0, False
        behind = offset("bide_counted_node_", "next", 8)  # (a program need not know that type)
        node = self.node(queue, member(queue, "head") & 0xFFFFFFFF)
        while count < MOST_COUNTED:
            index = self.layout.read(node + behind, 4)
            closed = index == 0xFFFFFFFF
            if index == 0 or closed:
                break
            node = self.node(queue, index)  # (the first of all holds no element any more)
            if count < MOST_ELEMENTS:
                self.waiting.append(self.element(value, node))
            count += 1
        self.holds(count, None, closed)


class PrintedLinkedQueue(PrintedNodes):
    ELEMENT = "BIDE_LINKED_ELEMENT_"

    def look(self, value):
        queue, count = value["queue"], 0
        index, tail = member(queue, "head"), member(queue, "tail")
        while index not in (0, tail) and count < MOST_COUNTED:
            node = self.node(queue, index)
            if count < MOST_ELEMENTS:
                self.waiting.append(self.element(value, node))
            index = self.layout.read(node, 4)
            count += 1
        self.holds(count, None, member(queue, "closed"))


class PrintedLoop(Printer):
    def look(self, value):
        ready = list(linked(self.layout, member(value, "ready", "first")))
        posted = list(linked(self.layout, member(value, "posted")))
        self.summary = "%d ready" % (len(ready) + len(posted))
        self.summary += ", its thread sleeps" if member(value, "posted") == 1 else ""


PRINTERS = {
    "bide_frame": PrintedFrame,
    "bide_waiter_list": PrintedList,
    "bide_waiter_queue": PrintedQueue,
    "bide_event_count": PrintedCount,
    "bide_event": PrintedEvent,
    "bide_mutex": PrintedMutex,
    "bide_semaphore": PrintedSemaphore,
    "bide_channel_": PrintedChannel,
    "bide_run_loop": PrintedLoop,
}


# Types that are declared where they are used are known by a member of theirs and its type.
MEMBERS = {
    ("ends", "bide_spsc_ring_ends_"): PrintedSpscRing,
    ("ends", "bide_mpmc_ring_ends_"): PrintedMpmcRing,
    ("queue", "bide_segment_queue_"): PrintedSegmentQueue,
    ("queue", "bide_counted_queue_"): PrintedCountedQueue,
    ("queue", "bide_linked_queue_"): PrintedLinkedQueue,
}
MARKS = {"bide_spsc_ring_ends_": "slots", "bide_mpmc_ring_ends_": "slots"}  # a member beside it; or `typed_`


def printer_by_members(kind):
    kind = kind.strip_typedefs()
    if kind.code != gdb.TYPE_CODE_STRUCT:
        return None
    fields = {field.name: field.type for field in kind.fields()}
    for (name, type_name), printer in MEMBERS.items():
        if name in fields and fields[name].unqualified().name == type_name:
            return printer if MARKS.get(type_name, "typed_") in fields else None
    return None


def printer_of(value):
    """The printer for a value of one of bide's types, or None."""
    kind = value.type.unqualified()
    while kind.name not in PRINTERS and kind.code == gdb.TYPE_CODE_TYPEDEF:
        kind = kind.target().unqualified()
    printer = PRINTERS.get(kind.name or "") or printer_by_members(value.type)
    return printer(value) if printer else None


printer_of.__name__ = "bide"


# ---- The commands ----


def frame_address(expression):
    """A pointer to a frame, or to what begins with one; or such a thing itself."""
    value = gdb.parse_and_eval(expression)
    if value.type.strip_typedefs().code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
        value = value.address
    return int(value)


class Bide(gdb.Command):
    """bide's coroutines. `bide help` tells the commands."""

    def __init__(self):
        super().__init__("bide", gdb.COMMAND_STACK, prefix=True)

    def invoke(self, argument, from_tty):
        gdb.write(__doc__.strip() + "\n")


class BideHelp(gdb.Command):
    """bide help: tells bide's commands."""

    def __init__(self):
        super().__init__("bide help", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        gdb.write(__doc__.strip() + "\n")


class BideBacktrace(gdb.Command):
    """bide bt [FRAME]: from a coroutine to who awaits it, and so on, innermost first.
FRAME is an expression for a pointer to its frame; without it, the one that runs on the selected thread."""

    def __init__(self):
        super().__init__("bide bt", gdb.COMMAND_STACK, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        try:
            layout = Layout()
            if argument.strip():
                print_outwards(layout, Frame(layout, frame_address(argument)), False)
                return
            frame = step_on_stack(layout)
            if frame is None:
                raise Bad(
                    "no coroutine is seen to run on this thread; give its frame: bide bt &self->task"
                )
            print_outwards(layout, frame, True)
        except Bad as bad:
            raise gdb.GdbError("bide: %s" % bad) from None


class BideTasks(gdb.Command):
    """bide tasks: every task that lives, with the coroutines that await each other, innermost first."""

    def __init__(self):
        super().__init__("bide tasks", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        count = 0
        try:
            layout = Layout()
            for address in roots(layout):
                count += 1
                try:
                    print_task(layout, address)
                except Bad as bad:
                    gdb.write("task 0x%x: %s\n" % (address, bad))
        except Bad as bad:
            raise gdb.GdbError("bide: %s" % bad) from None
        gdb.write("%d task%s\n" % (count, "" if count == 1 else "s"))


Bide()
BideHelp()
BideBacktrace()
BideTasks()
if printer_of not in gdb.pretty_printers:
    gdb.pretty_printers.append(printer_of)
