"""Pretty printers of bide's types. Imported by bide.py."""

import gdb

from bide_layout import AT_AWAIT, STATES, Bad, Frame, Layout, offset


def member(value, *names):
    """Returns a nested member as a number."""
    for name in names:
        value = value[name]
    return int(value)


def location_of(frame):
    text = frame.name
    if frame.file:
        text += " at %s:%d" % (frame.file, frame.line)
    return text


def waiter_of(layout, awaiter):
    """Returns the name and location of the coroutine that awaits an operation."""
    frame = layout.pointer(awaiter + layout.outer)
    return location_of(Frame(layout, frame)) if frame else "nobody"


def linked(layout, awaiter, tags=0):
    """Yields the addresses of linked operations, as far as they can be read, without their tag bits."""
    seen = set()
    while awaiter > LARGEST_TAG and awaiter not in seen and len(seen) < MAX_SHOWN:
        seen.add(awaiter)
        yield awaiter
        awaiter = layout.pointer(awaiter + layout.link) & ~tags


LARGEST_TAG = 64  # in a word that holds an address or a tag, larger values are addresses
MAX_SHOWN = 200
MAX_ELEMENTS = 4  # of a queue that are shown
MAX_COUNTED = 100000
CELL_FULL, CELL_CONSUMERS = 1, 2  # as in segment_queue.h
LIST_TAGS, LIST_SIFTING = 7, 2  # as BIDE_LIST_... in extend/waiter_list.h
QUEUE_CLOSED, QUEUE_ONE = 16, 32  # as BIDE_QUEUE_... in extend/waiter_queue.h


def waiting_in_list(layout, value):
    word = member(value, "word")
    if word & LIST_SIFTING:
        return []  # the thread that sweeps the list holds the waiters
    return list(linked(layout, word & ~LIST_TAGS, LIST_TAGS))[::-1]


def waiting_in_queue(layout, value):
    arrivals = list(linked(layout, member(value, "arrivals")))
    return list(linked(layout, member(value, "line"))) + arrivals[::-1]


def waiting_for_count(layout, value):
    place = list(linked(layout, member(value, "place") & ~LIST_TAGS))[:1]
    return place + waiting_in_queue(layout, value["line"])


class Printer:
    """Prints a primitive as a line, and its waiters as its children, the oldest first."""

    def __init__(self, value):
        self.value, self.layout = value, Layout()
        self.summary, self.waiting = "", []
        try:
            self.look(value)
        except (gdb.error, Bad, KeyError) as error:
            self.summary = "%s (%s)" % (self.summary or "unknown", error)

    def to_string(self):
        crowd = "%d waiting" % len(self.waiting)
        if len(self.waiting) >= MAX_SHOWN:
            crowd += " or more"
        return ", ".join(part for part in (self.summary, crowd if self.waiting else "") if part)

    def children(self):
        for number, awaiter in enumerate(self.waiting):
            try:
                text = waiter_of(self.layout, awaiter)
            except Bad as bad:
                text = str(bad)
            yield "[%d]" % number, text


class PrintedFrame(Printer):
    def look(self, value):
        frame = Frame(self.layout, int(value.address)) if value.address is not None else None
        if frame is None:
            self.summary = "a copy of a frame"
            return
        self.summary = location_of(frame)
        if frame.runs:
            self.summary += ", running"
        elif frame.state == AT_AWAIT:
            self.summary += ", waiting for " + frame.operation(self.layout)
        else:
            self.summary += ", " + STATES[frame.state]


class PrintedList(Printer):
    def look(self, value):
        word = member(value, "word")
        self.summary = "being swept" if word & LIST_SIFTING else "shut" if word & 1 else "open"
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
        # The key is a member of the holder, and need not name the holder's frame.
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
        self.summary = "" if self.waiting else "no waiters"


def ring_step(layout):
    """From slot to slot in the words of a bounded ring: BIDE_RING_STEP_ (detail/ring_position.h)."""
    return 1 << (13 if layout.word > 4 else 5)


class PrintedChannel(Printer):
    def look(self, value):
        step = ring_step(self.layout)
        lap, end = member(value, "ring", "shape", "lap"), member(value, "ring", "shape", "end")
        head, tail = member(value, "ends", "head"), member(value, "ends", "tail")
        capacity = end // step
        places = [(word & (lap - 1)) // step + word // lap * capacity for word in (head, tail)]
        count = max(0, min(places[1] - places[0], capacity))
        self.summary = "%d of %d" % (count, capacity)
        if member(value, "closed"):
            self.summary += ", closed"
        self.waiting = waiting_for_count(self.layout, value["not_empty"])
        self.waiting += waiting_for_count(self.layout, value["not_full"])


class PrintedElements(Printer):
    """Prints a queue's count of elements and its capacity, and the next few elements as its children."""

    def to_string(self):
        return self.summary

    def children(self):
        for number, element in enumerate(self.waiting):
            yield "[%d]" % number, element

    def holds(self, count, capacity, closed):
        self.summary = "%d" % count if capacity is None else "%d of %d" % (count, capacity)
        if count >= MAX_COUNTED:
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
            value["slots"][(place + i) % capacity] for i in range(min(count, MAX_ELEMENTS))
        ]


class PrintedMpmcRing(PrintedElements):
    def look(self, value):
        lap, end = member(value, "shape", "lap"), member(value, "shape", "end")
        head, tail = member(value, "ends", "head"), member(value, "ends", "tail")
        step = ring_step(self.layout)
        capacity = end // step
        head_place, tail_place = ((word & (lap - 1)) // step + word // lap * capacity for word in (head, tail))
        count = max(0, min(tail_place - head_place, capacity))
        self.holds(count, capacity, member(value, "closed"))
        self.waiting = [
            value["slots"][(head_place + i) % capacity]["value"] for i in range(min(count, MAX_ELEMENTS))
        ]


class PrintedSegmentQueue(PrintedElements):
    def look(self, value):
        queue, count, closed = value["queue"], 0, False
        cells = member(queue, "cells")
        closed_flag = 1 << 8 * self.layout.word - 1
        segment_type = gdb.lookup_type("bide_segment_")
        at, seen = member(queue, "head"), set()
        while at != 0 and at not in seen and count < MAX_COUNTED:
            seen.add(at)
            segment = gdb.Value(at).cast(segment_type.pointer()).dereference()
            pushed = member(segment, "pushed")
            closed = pushed & closed_flag != 0
            popped = min(member(segment, "popped"), cells)
            end = max(popped, min(pushed & ~closed_flag, cells))
            first = gdb.Value(at + segment_type.sizeof).cast(value["typed_"].type)
            for i in range(popped, min(end, popped + MAX_ELEMENTS - len(self.waiting))):
                if member(first[i], "state_") == CELL_FULL and member(first[i], "claim_") != CELL_CONSUMERS:
                    self.waiting.append(first[i]["element_"])
            count += end - popped
            at = 0 if closed else member(segment, "next")  # the closed segment is the last one
        self.holds(count, None, closed)


class PrintedNodes(PrintedElements):
    """A queue of nodes from a pool, linked by index."""

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
        link = offset("bide_counted_node_", "next", 8)  # the program may not have that type
        node = self.node(queue, member(queue, "head") & 0xFFFFFFFF)
        while count < MAX_COUNTED:
            index = self.layout.read(node + link, 4)
            closed = index == 0xFFFFFFFF
            if index == 0 or closed:
                break
            node = self.node(queue, index)  # the first node's element has been popped
            if count < MAX_ELEMENTS:
                self.waiting.append(self.element(value, node))
            count += 1
        self.holds(count, None, closed)


class PrintedLinkedQueue(PrintedNodes):
    ELEMENT = "BIDE_LINKED_ELEMENT_"

    def look(self, value):
        queue, count = value["queue"], 0
        index, tail = member(queue, "head"), member(queue, "tail")
        while index not in (0, tail) and count < MAX_COUNTED:
            node = self.node(queue, index)
            if count < MAX_ELEMENTS:
                self.waiting.append(self.element(value, node))
            index = self.layout.read(node, 4)
            count += 1
        self.holds(count, None, member(queue, "closed"))


class PrintedLoop(Printer):
    def look(self, value):
        ready = list(linked(self.layout, member(value, "ready", "first")))
        posted = list(linked(self.layout, member(value, "posted")))
        self.summary = "%d ready" % (len(ready) + len(posted))
        self.summary += ", thread asleep" if member(value, "posted") == 1 else ""


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


# Types that are declared by the user with a macro are recognised by a member and its type.
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
    """Returns the printer for a value of one of bide's types, or None."""
    kind = value.type.unqualified()
    while kind.name not in PRINTERS and kind.code == gdb.TYPE_CODE_TYPEDEF:
        kind = kind.target().unqualified()
    printer = PRINTERS.get(kind.name or "") or printer_by_members(value.type)
    return printer(value) if printer else None


printer_of.__name__ = "bide"
