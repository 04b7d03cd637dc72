"""
Commands for gdb that show bide's coroutines, in a running program or in a core file:

    (gdb) source /usr/share/bide/gdb/bide.py        (installed in DATADIR/bide/gdb)
    (gdb) bide tasks                  every live task, with the coroutines that await each other
    (gdb) bide bt                     the chain of awaits, outwards from the coroutine that runs on this thread
    (gdb) bide bt &self->child.task   the chain of awaits, outwards from a given frame
    (gdb) print event                 frames, events, mutexes, semaphores, channels and run loops show their state and
                                      their waiters, queues show their elements; also in `info locals` and `bt full`
    (gdb) print /r event              gdb's own format
    (gdb) bide help

To load the commands in every session, add the `source` line to ~/.gdbinit. Tasks are found through the list of live
roots (roots.h), and coroutines through their frames (frame.h). The layout of these structs is taken from the program's
debug information, or from bide_layout.py if there is none. If memory cannot be read or holds no valid object, the
chain ends with a remark. bide_printers.py holds the pretty printers.
"""

import importlib
import os
import sys

import gdb

# The modules are loaded from this file's directory, again each time that this file is sourced.
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import bide_layout
import bide_printers

importlib.reload(bide_layout)
importlib.reload(bide_printers)
sys.path.pop(0)

from bide_layout import AT_AWAIT, AT_END, AT_START, STATES, Bad, Frame, Layout, child_of, operation_name, symbol
from bide_printers import printer_of

MAX_PRINTED = 200  # coroutines of a chain that are printed
MAX_DEPTH = 1000000  # coroutines of a chain that are followed
MAX_ROOTS = 1000000
MAX_LISTS = 64



def print_line(number, frame, rest):
    where = " at %s:%d" % (frame.file, frame.line) if frame.file else ""
    gdb.write("  #%d %s%s%s\n" % (number, frame.name, where, " " + rest if rest else ""))


# ---- From a coroutine outwards ----


def step_on_stack(layout):
    """Returns the innermost coroutine that runs on the selected thread, with its current line; None if no coroutine
    runs there. If the optimiser has removed its frame pointer, it is found through an outer coroutine that awaits it."""
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
        raise Bad("%s runs on this thread, but the optimiser has removed the pointer to its frame" % body)
    return None


def step_function(c_frame):
    """Returns the name of the body or async function whose step function is on the stack, inlined or not; or None."""
    name = c_frame.name() or ""
    for before, behind in ("bide_async_", "_step_"), ("", "_step_"):
        if name.startswith(before) and name.endswith(behind):
            return name[len(before) : -len(behind)]
    return None


def step_argument(layout, c_frame, body):
    """Returns the coroutine whose step function is on the stack. The step function's argument points at its frame. If
    the optimiser has removed the argument, another variable of the function may still point at the frame."""
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
    """Returns the coroutine of `body` that `frame` is or awaits, directly or through others; or None."""
    try:
        for _ in range(MAX_DEPTH):
            if frame is None or frame.name == body:
                return frame
            frame = frame.child(layout)
    except Bad:
        pass
    return None


def print_outwards(layout, frame, runs):
    """Prints a coroutine, the coroutine that awaits it, and so on outwards, as inspect.c does."""
    seen = {frame.address}
    for number in range(MAX_PRINTED):
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
            raise Bad("the chain of awaits is circular")
        seen.add(frame.outer)
        frame = Frame(layout, frame.outer)
    gdb.write("  ... and more\n")


# ---- From the roots inwards ----


def roots(layout):
    """Yields the addresses of all live roots."""
    lists = symbol("bide_roots_")
    if lists is None:
        raise Bad("the program has no list of its tasks (bide_roots_)")
    try:
        variable = gdb.parse_and_eval("bide_roots_")
        count, size = variable.type.range()[1] + 1, variable.type.target().sizeof
    except (gdb.error, RuntimeError):
        count, size = 16, 64
    for i in range(min(count, MAX_LISTS)):
        at = lists + i * size
        links = layout.pointer(at + layout.list_first)
        for _ in range(MAX_ROOTS):
            if links == 0:
                break
            if links != at + layout.list_cursor:
                yield links - layout.links
            links = layout.pointer(links)


def chain(layout, frame):
    """Returns the chain of awaits from `frame` inwards, and the state of its last coroutine. A coroutine that has ended
    is no longer awaited; an awaited coroutine that does not wait is running."""
    frames = []
    seen = set()
    doing = "running"
    try:
        while frame is not None and frame.address not in seen and len(frames) < MAX_DEPTH:
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
        if number == MAX_PRINTED:
            gdb.write("  ... and %d more\n" % (len(frames) - number))
            break
        print_line(number, frame, "" if number else doing if waits else "(%s)" % doing)


# ---- The commands ----


def frame_address(expression):
    """Returns the address that an expression gives: a pointer to a frame, or to an object that begins with one, or
    such an object itself."""
    value = gdb.parse_and_eval(expression)
    if value.type.strip_typedefs().code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
        value = value.address
    return int(value)


class Bide(gdb.Command):
    """Shows bide's coroutines. `bide help` lists the commands."""

    def __init__(self):
        super().__init__("bide", gdb.COMMAND_STACK, prefix=True)

    def invoke(self, argument, from_tty):
        gdb.write(__doc__.strip() + "\n")


class BideHelp(gdb.Command):
    """bide help: lists bide's commands."""

    def __init__(self):
        super().__init__("bide help", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        gdb.write(__doc__.strip() + "\n")


class BideBacktrace(gdb.Command):
    """bide bt [FRAME]: prints the chain of awaits of a coroutine, innermost first.
FRAME is an expression for a pointer to its frame; the default is the coroutine that runs on the selected thread."""

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
                    "no coroutine was found on this thread; name its frame: bide bt &self->task"
                )
            print_outwards(layout, frame, True)
        except Bad as bad:
            raise gdb.GdbError("bide: %s" % bad) from None


class BideTasks(gdb.Command):
    """bide tasks: prints every live task, with its chain of awaits, innermost first."""

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
gdb.pretty_printers[:] = [p for p in gdb.pretty_printers if getattr(p, "__name__", "") != printer_of.__name__]
gdb.pretty_printers.append(printer_of)
