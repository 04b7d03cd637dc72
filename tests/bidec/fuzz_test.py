#!/usr/bin/env python3
"""Randomly corrupted async functions: the translator rejects them with the number of a line, or translates them. It never
dies by a signal, and never hangs: fuzz_test.py BIDEC LANGUAGE-TEST [COUNT]. BIDE_SEED repeats a run."""
import os
import random
import re
import subprocess
import sys
import time

bidec, source = sys.argv[1:3]
count = int(sys.argv[3]) if len(sys.argv) > 3 else 400
seed = int(os.environ.get("BIDE_SEED", time.time_ns() % 1000000007))
print(f"# BIDE_SEED={seed}")

PRELUDE = """
typedef struct bide_awaiter bide_awaiter; typedef struct bide_allocator bide_allocator; typedef unsigned long size_t;
typedef long numbers_type; typedef int numbers[3]; typedef struct { int x; } bide_event, bide_event_waiter;
typedef struct counting_allocator counting_allocator; typedef struct bide_stop_source bide_stop_source;
typedef struct bide_auto_event_waiter bide_auto_event_waiter; typedef int uintptr_t;
bide_awaiter *bide_auto_event_wait(bide_auto_event_waiter *waiter, bide_event *event);
bide_awaiter *bide_with_deadline(bide_event_waiter *w, unsigned long time, bide_awaiter *inner);
bide_awaiter *bide_with_stop(bide_event_waiter *w, bide_stop_source *stop, bide_awaiter *inner);
"""


def tokens(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"^\s*#.*(?:\\\n.*)*$", "", text, flags=re.M)
    return re.findall(r'"(?:\\.|[^"\\])*"|\w+|->|\+\+|--|&&|\|\||[-+*/%<>=!&|^]=|\.\.\.|\S', text)


with open(source, encoding="utf-8") as file:
    text = file.read()
# only the async functions: the rest of the file needs headers
functions = re.findall(r"^(?:static |inline )*(?:async|generator|recursive)[^;{]*\n\{\n.*?^\}\n", text, re.S | re.M)
if len(functions) < 10:
    sys.exit("the test's program has too few async functions")
spoilt = [tokens(f) for f in functions]
words = sorted({word for f in spoilt for word in f} | {"await", "async", "defer", "yield", "try", "yield_from", "generator",
                                                        "async_for", "async_block", "async_capture", "(", ")", "{", "}", "({", "})",
                                                        "static", "typedef", "struct", "goto", "case", "default", "[", "]"})


def run(program):
    try:
        result = subprocess.run([bidec], input=program.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    except subprocess.TimeoutExpired:
        return "takes more than 60 s"
    if result.returncode < 0:
        return f"ended by signal {-result.returncode}"
    said = result.stderr.decode(errors="replace")
    if b"runtime error" in result.stderr or b"Sanitizer" in result.stderr:
        return said
    if result.returncode != 0 and not re.search(r"^<stdin>:\d+:\d+: error: ", said, re.M):
        return f"ended with {result.returncode}, and no line: {said}"
    return None


refused = 0
for number in range(count):
    draw = random.Random(seed * 1000003 + number)
    chosen = list(draw.choice(spoilt))
    for _ in range(draw.choice([1, 1, 1, 2, 3, 8])):
        where = draw.randrange(len(chosen))
        kind = draw.randrange(6)
        if kind == 0:
            del chosen[where]
        elif kind == 1:
            chosen.insert(where, draw.choice(words))
        elif kind == 2:
            chosen[where] = draw.choice(words)
        elif kind == 3:
            other = draw.randrange(len(chosen))
            chosen[where], chosen[other] = chosen[other], chosen[where]
        elif kind == 4:
            end = min(len(chosen), where + draw.randrange(1, 12))
            chosen[where:where] = chosen[where:end]
        else:
            del chosen[where:]
        if not chosen:
            break
    program = PRELUDE + "async int later(int value) { return value; }\n" + " ".join(chosen) + "\n"
    wrong = run(program)
    if wrong:
        print(f"not ok - {number} of seed {seed}: {wrong}")
        print(program)
        sys.exit(1)
print(f"ok - {count} programs")
