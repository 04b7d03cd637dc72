#!/usr/bin/env python3
"""Prints a program whose text and compile time the benchmark `language` measures: the same functions as async functions,
as plain ones, or as coroutines of C++20 (coroutines.hpp).

language_program.py async|plain|cxx [LINES [SEED]]
"""

import random
import sys

HEADS = {
    "async": """#include "bide/async.h"
#include "bide/event.h"
#include <string.h>
struct world { bide_event *ready; long counts[16]; };
""",
    "plain": """#include <string.h>
struct event;
struct world { struct event *ready; long counts[16]; };
void event_wait(struct event *event);
""",
    "cxx": """#include "coroutines.hpp"
#include <string.h>
struct world { event *ready; long counts[16]; };
""",
}
COMMON = """void note(struct world *w, const char *text, long value);
long look(struct world *w, long value);
"""


class Form:
    """How the three languages write what differs."""

    def __init__(self, name):
        self.name = name

    def head(self, static, number):
        head = f"{'static ' if static else ''}%s f{number}(struct world *w, long a, long b)"
        if self.name == "async":
            return "async " + head % "long"
        return head % ("task<long>" if self.name == "cxx" else "long")

    def call(self, number, *arguments):
        word = {"async": "await ", "plain": "", "cxx": "co_await "}[self.name]
        text = f"{word}f{number}(w, {', '.join(arguments)})"
        return f"({text})" if self.name == "cxx" else text

    def wait(self):
        return {
            "async": "(void)await bide_event_wait(w->ready);",
            "plain": "event_wait(w->ready);",
            "cxx": "co_await *w->ready;",
        }[self.name]

    def give(self, value):
        return f"{'co_return' if self.name == 'cxx' else 'return'} {value};"


def statement(draw, form, callee, serial):
    """Returns lines, and the number of awaits."""
    kind = draw.randrange(10)
    n = draw.randrange(1, 50)
    one, other = callee(), callee()
    if kind == 0:
        return [f"sum += {form.call(one, f'a + {n}', 'b')};"], 1
    if kind == 1:
        return [
            f"for (long i = 0; i < (a & {n}); i++) {{",
            f"    sum += {form.call(one, 'i', 'sum')};",
            f"    w->counts[i & 15] += sum ^ {n};",
            "}",
        ], 1
    if kind == 2:
        return [
            f"long v{serial} = {form.call(one, 'sum', f'b - {n}')};",
            f"if (v{serial} < 0)",
            f"    {form.give(f'v{serial}')}",
            f"sum += v{serial} & {n};",
        ], 1
    if kind == 3:
        return [f'note(w, "waits {n}", sum);', form.wait()], 1
    if kind == 4:
        return [
            f"if ({form.call(one, 'a', str(n))} > {form.call(other, 'b', 'sum')})",
            "    sum -= b;",
            "else",
            f"    sum += a * {n};",
        ], 2
    if kind == 5:
        return [
            f"char buffer{serial}[{n + 16}];",
            f"memset(buffer{serial}, (int)sum, sizeof buffer{serial});",
            f"if (look(w, sum) > {n})",
            f"    sum += {form.call(one, 'b', 'a')};",
            f"sum += buffer{serial}[a & 15];",
        ], 1
    if kind == 6:
        return [
            f"while (look(w, sum + {n}) > 0) {{",
            "    " + form.wait(),
            f'    note(w, "turn {n}", a);',
            f"    w->counts[{n % 16}]++;",
            "}",
        ], 1
    return [f"sum ^= look(w, a + {n});", f"w->counts[{n % 16}] += sum;", f"if (sum > {n * 100})", f"    {form.give('sum')}"], 0


def function(draw, form, number, static):
    lines = [form.head(static, number), "{", "    long sum = a + b;"]
    awaits = 0
    callee = lambda: draw.randrange(max(0, number - 12), number)
    for serial in range(draw.randrange(4, 8)):
        more, count = statement(draw, form, callee, serial)
        lines += ["    " + line for line in more]
        awaits += count
    lines += ["    " + form.give("sum"), "}", ""]
    return lines, awaits


def program(name, length, seed):
    draw = random.Random(seed)
    form = Form(name)
    lines = (HEADS[name] + COMMON).splitlines() + [""]
    lines += [form.head(True, 0), "{", "    w->counts[a & 15]++;", f"    {form.give('look(w, a) + b')}", "}", ""]
    awaits, number = 0, 1
    while len(lines) < length:
        more, count = function(draw, form, number, True)
        lines += more
        awaits += count
        number += 1
    for last in range(number, number + 12):  # (which use all of them)
        more, count = function(draw, form, last, name == "cxx")
        lines += more
        awaits += count
        if name == "cxx":
            lines += [f'extern "C" long run_f{last}(struct world *w, long a, long b)', "{"]
            lines += [f"    task<long> t = f{last}(w, a, b);", "    t.start();", "    return t.result();", "}", ""]
    return lines, awaits


if __name__ == "__main__":
    LINES, AWAITS = program(
        sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1000, int(sys.argv[3]) if len(sys.argv) > 3 else 1
    )
    print("\n".join(LINES))
    print(f"{len(LINES)} lines, {AWAITS} awaits", file=sys.stderr)
