#!/usr/bin/env python3
"""Random async programs behave as the same text does as plain C.

    random_test.py BIDEC ROOT LIBRARY COUNT [SEED]     compares COUNT programs; BIDE_SEED overrides the seed
    random_test.py --print SEED                        prints one

The plain reading (async, await and async_created are nothing) is compiled by gcc, which prints what the async program
must print. Awaits stand in operands without parentheses or braces around them. The environment gives BIDE_CC, BIDE_FLAGS,
BIDE_LIBS and BIDE_OPTIONS, a list of options separated by commas that the programs take turns with. A program that fails
is kept (its path is printed) for reduce.py. BIDE_FUNCTIONS is the number of functions in a program, 8.
"""
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

COMMA, ASSIGN, CONDITION, OR, AND, BIT_OR, XOR, BIT_AND, EQUAL, LESS, SHIFT, ADD, MULTIPLY, UNARY, POSTFIX = range(15)


class Function:
    def __init__(self, name, weight, created):
        self.name, self.weight, self.created = name, weight, created


class Program:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.serial = 0
        self.pointed = 0
        self.functions = []
        self.out = []

    def chance(self, percent):
        return self.r.randrange(100) < percent

    def name(self, stem):
        self.serial += 1
        return f"{stem}{self.serial}"

    # ---- Expressions: (text, precedence), of an unsigned value or one that converts to it ----

    def paren(self, e, least):
        return e[0] if e[1] >= least else f"({e[0]})"

    def literal(self):
        n = self.r.choice([0, 1, 2, 3, 5, 7, 100, 255])
        if self.chance(50):
            return (f"await k({n})", UNARY)
        return (f"{n}u", POSTFIX)

    def place(self):
        """A variable that may be written, which the rest of the full expression does not name; or None."""
        free = [v for v in self.scope if v not in self.locked and v not in self.read]
        if not free:
            return None
        v = self.r.choice(free)
        self.locked.add(v)
        return v

    def variable(self):
        free = [v for v in self.scope if v not in self.locked]
        if not free:
            return ("4u", POSTFIX)
        v = self.r.choice(free)
        self.read.add(v)
        if v.startswith("arr"):
            return (f"{v}[{self.index()}]", POSTFIX)
        if v.startswith("ptr"):
            return (f"*{v}", UNARY) if self.chance(50) else (f"{v}[0]", POSTFIX)
        if v.startswith("pair"):
            return self.r.choice([(f"{v}.a", POSTFIX), (f"{v}.b[{self.index()}]", POSTFIX)])
        if v.startswith("wire"):
            return (f"{v}.{self.r.choice(['kind', 'length', 'low', 'high'])}", POSTFIX)
        if v.startswith("wide"):
            return (f"{v}.{self.r.choice('xy')}", POSTFIX)
        if v.startswith("vec"):
            return (f"{v}[{self.index()}]", POSTFIX)
        return (v, POSTFIX)

    def index(self):
        if self.chance(40):
            return str(self.r.randrange(4))
        if self.chance(30):
            return f"await k({self.r.randrange(4)})"
        return f"{self.paren(self.e(1), BIT_AND)} & 3"

    def target(self, v):
        """The place to write, of the variable v."""
        if v.startswith("arr") or v.startswith("vec"):
            return f"{v}[{self.index()}]"
        if v.startswith("ptr"):
            return self.r.choice([f"*{v}", f"{v}[0]"])
        if v.startswith("pair"):
            return self.r.choice([f"{v}.a", f"{v}.b[{self.index()}]"])
        if v.startswith("wire"):
            return f"{v}.{self.r.choice(['kind', 'length'])}"
        if v.startswith("wide"):
            return f"{v}.{self.r.choice('xy')}"
        return self.r.choice([v, v, v, f"_Generic({v}, unsigned: {v}, default: {v})", f"__builtin_choose_expr(1, {v}, 0)",
                              f"*&{v}"])

    def call(self):
        fits = [f for f in self.functions if self.weight + f.weight * self.loops <= 200]
        if not fits or self.calls == 0:
            return self.literal()
        f = self.r.choice(fits)
        self.calls -= 1
        self.weight += f.weight * self.loops
        arguments = f"{self.paren(self.e(1), ASSIGN)}, {self.paren(self.e(1), ASSIGN)}"
        if not f.created:
            return (f"await {f.name}({arguments})", UNARY)
        # by its name, or by a pointer: in turn, so that the other draws stay what they are
        self.pointed += 1
        pointer = ["", f"async_pointer_to({f.name})", f"table_{f.name}.call", f"table_{f.name}.more[1]",
                   f"pick_{f.name}(await k({self.pointed}))"][self.pointed % 5]
        return (f"await async_call({pointer}, {arguments})" if pointer else f"await {f.name}({arguments})", UNARY)

    def e(self, depth):
        if depth <= 0:
            return self.variable() if self.chance(55) else self.literal()
        pick = self.r.choice
        binary = lambda sign, level: (f"{self.paren(self.e(depth - 1), level)} {sign} "
                                      f"{self.paren(self.e(depth - 1), level + 1)}", level)
        kind = self.r.randrange(30)
        if kind < 3:
            return binary(*pick([("+", ADD), ("-", ADD), ("*", MULTIPLY)]))
        if kind < 5:
            return binary(*pick([("==", EQUAL), ("!=", EQUAL), ("<", LESS), (">=", LESS), ("|", BIT_OR), ("^", XOR),
                                 ("&", BIT_AND)]))
        if kind < 7:
            return binary(*pick([("&&", AND), ("||", OR)]))
        if kind == 7:
            return (f"{self.paren(self.e(depth - 1), ADD)} << ({self.paren(self.e(depth - 1), BIT_AND)} & 7)", SHIFT)
        if kind == 8:
            return (f"{self.paren(self.e(depth - 1), MULTIPLY)} / ({self.paren(self.e(depth - 1), BIT_OR)} | 1u)", MULTIPLY)
        if kind < 12:
            middle = self.e(depth - 1) if self.chance(60) else (f"{self.paren(self.e(depth - 1), ASSIGN)}, "
                                                                f"{self.paren(self.e(depth - 1), ASSIGN)}", COMMA)
            return (f"{self.paren(self.e(depth - 1), OR)} ? {middle[0]} : {self.paren(self.e(depth - 1), CONDITION)}",
                    CONDITION)
        if kind < 14:
            return (f"{self.paren(self.e(depth - 1), COMMA)}, {self.paren(self.e(depth - 1), ASSIGN)}", COMMA)
        if kind == 14:
            return (pick("-~!") + " " + self.paren(self.e(depth - 1), UNARY), UNARY)
        if kind == 15:
            return (f"({pick(['unsigned', 'unsigned char', 'unsigned short', 'long long'])})"
                    f"{self.paren(self.e(depth - 1), UNARY)}", UNARY)
        if kind == 16:
            return (f"{self.paren(self.e(depth - 1), OR)} ?: {self.paren(self.e(depth - 1), CONDITION)}", CONDITION)
        if kind < 19:
            return self.statement_expression(depth)
        if kind == 19:
            v = self.variable()[0]
            return (f"_Generic(0u, int: 9, unsigned: {'3u' if 'await' in v or 'PAUSE' in v else v})", POSTFIX)
        if kind == 20:
            return (f"(struct pair){{{self.paren(self.e(depth - 1), ASSIGN)}, .b = {{{self.paren(self.e(1), ASSIGN)}, [2] = "
                    f"{self.paren(self.e(1), ASSIGN)}}}}}.b[{self.index()}]", POSTFIX)
        if kind == 21:
            return (f"(unsigned[]){{{self.paren(self.e(1), ASSIGN)}, {self.paren(self.e(1), ASSIGN)}, 8, 9}}[{self.index()}]",
                    POSTFIX)
        if kind == 22:
            return (f"(await make_async({self.paren(self.e(1), ASSIGN)})).b[{self.index()}]", POSTFIX)
        if kind == 23:
            return (f"make({self.paren(self.e(1), ASSIGN)}).b[{self.index()}]", POSTFIX)
        if kind == 24:
            which = pick(["(await make_async({})).b", "make({}).b"]).format(self.paren(self.e(1), ASSIGN))
            return (f"sum({which}, {self.paren(self.e(1), ASSIGN)})", POSTFIX)
        if kind == 25:
            v = self.place()
            if v is None:
                return self.literal()
            return (f"{self.target(v)} {pick(['=', '+=', '^='])} {self.paren(self.e(depth - 1), ASSIGN)}", ASSIGN)
        if kind == 26:
            v = self.place()
            if v is None or v.startswith("wire"):
                return self.literal()
            place = self.target(v)
            return (f"--{place}", UNARY) if "*" in place or self.chance(50) else (f"{place}++", POSTFIX)
        return self.call() if self.chance(50) else self.literal()

    def statement_expression(self, depth):
        outer_scope = list(self.scope)
        v = self.name("v")
        first = self.paren(self.e(depth - 1), ASSIGN)
        pick = self.r.choice
        text = f"({{ {pick(['unsigned', '__typeof__(0u)', 'unsigned long', '__auto_type'])} {v} = 0u + ({first}); "
        if self.chance(40):
            text += "PAUSE; "
        if self.chance(30):
            text += f"if ({v} > 3) {v} {pick(['+=', '^='])} {self.paren(self.e(1), ASSIGN)}; "
        self.scope = outer_scope + [v]
        text += f"{self.e(depth - 1)[0]}; }})"
        self.scope = outer_scope
        self.read.discard(v)
        return (text, POSTFIX)

    def full(self, depth=None):
        """A full expression."""
        self.locked, self.read, self.calls = set(), set(), 1
        return self.more(depth)

    def more(self, depth=None):
        """An expression that is not sequenced with the one before it."""
        return self.e(depth if depth is not None else self.r.choice([1, 2, 2, 3]))

    # ---- Statements ----

    def emit(self, text):
        self.out.append("    " * self.depth + text)

    def declaration(self):
        kind = self.r.randrange(14)
        self.calls = 1
        value = lambda: self.paren(self.full(), ASSIGN)
        more = lambda: self.paren(self.more(), ASSIGN)
        add = []
        if kind < 3:
            a, p = self.name("v"), self.name("ptr")
            first = value()
            self.emit(f"unsigned {a} = {first}, *{p} = &{a};")
            add = [p]
        elif kind < 5:
            a, b = self.name("v"), self.name("v")
            first = value()
            self.emit(f"unsigned {a} = {first}, ({b}) = {value()};")
            add = [a, b]
        elif kind == 5:
            a, q = self.name("arr"), self.name("arr")
            first, second = value(), more()
            self.emit(f"unsigned {a}[4] = {{{first}, [2] = {second}, 6}}, (*{q}q)[4] = &{a};")
            add = [a]
        elif kind == 6:
            a = self.name("arr")
            first, second = value(), more()
            self.emit(f"unsigned {a}[] = {{{first}, 1, {second}, 6}};")
            add = [a]
        elif kind == 7:
            a = self.name("pair")
            self.emit(f"struct pair {a} = " + self.r.choice([
                f"{{{value()}, {{{more()}, 2, {more()}}}}};", f"await make_async({value()});", f"make({value()});"]))
            add = [a]
        elif kind == 8:
            a = self.name("wire")
            self.emit(f"struct wire {a} = {{.kind = (unsigned char)({self.full()[0]}), {more()}, .low = 3, .high = "
                      f"({self.more()[0]}) & 31}};")
            add = [a]
        elif kind == 9:
            a = self.name("wide")
            self.emit(f"struct wide {a} = {{{value()}, {more()}}};")
            add = [a]
        elif kind == 10:
            t, a = self.name("t"), self.name("v")
            self.emit(self.r.choice([
                f"struct {t} {{ char c; unsigned d; }} __attribute__((packed));",
                f"struct __attribute__((packed, aligned(2))) {t} {{ char c; unsigned long d; }};",
                f"struct {t} {{ char c; }} __attribute__((aligned(32)));",
                f"typedef struct {{ char c; unsigned d; }} __attribute__((packed)) {t}_; struct {t} {{ {t}_ e; short f; }};",
                f"union __attribute__((aligned(16))) {t}_ {{ char c; }}; struct {t} {{ union {t}_ e; }};",
                f"struct {t} {{ unsigned c : 3; unsigned d : 7; enum {{ A{t} = 4, B{t} }} e; }};",
                f"struct {t} {{ struct {t} *next; struct {t}_ {{ char c[3]; }} d[2]; }};"]))
            self.emit(f"unsigned {a} = sizeof(struct {t}) * 8 + _Alignof(struct {t}) + ({self.full()[0]});")
            add = [a]
        elif kind == 11:
            a = self.name("v")
            self.emit(f"enum {{ e{a} = 3, f{a} = e{a} + 2 }};")
            self.emit(f"static unsigned {a} = e{a}; {a} += f{a};")
            add = [a]
        elif kind == 12:
            a = self.name("vec")
            self.emit(f"unsigned {a} __attribute__((vector_size(16))) = {{{value()}, {more()}, 1, 2}};")
            add = [a]
        else:
            a = self.name("v")
            first = value()
            self.emit(f"volatile unsigned {a} = {first};")
            add = [a]
        self.scope = self.scope + add

    def block(self, count, depth, jumps):
        """Statements and declarations without their braces."""
        outer = self.scope
        for _ in range(count):
            self.statement(depth, jumps)
        self.scope = outer

    def braced(self, depth, jumps, count=None):
        self.emit("{")
        self.depth += 1
        self.block(count if count is not None else self.r.randrange(1, 5), depth, jumps)
        self.depth -= 1
        self.emit("}")

    def body(self, depth, jumps):
        """The statement of an if or a loop: mostly without braces."""
        if self.chance(50):
            return self.braced(depth, jumps)
        self.depth += 1
        self.simple(jumps)
        self.depth -= 1

    def simple(self, jumps):
        """One statement that is no declaration."""
        kind = self.r.randrange(10)
        if jumps and kind == 0 and self.chance(50):
            # out of an expression, whose other operands do nothing (their order is open in C)
            v, outer = self.name("v"), self.scope
            first = self.paren(self.full(), ASSIGN)
            self.scope = self.scope + [v]
            self.emit(f"note({self.r.choice(['', 'await k(2) + ', '3u - '])}({{ unsigned {v} = {first}; "
                      f"{self.r.choice(['', 'PAUSE; '])}if (({v} & 7) == {self.r.randrange(8)}) {self.r.choice(jumps)}; "
                      f"{self.paren(self.full(), ASSIGN)}; }}){self.r.choice(['', ' + await k(1)'])});")
            self.scope = outer
        elif jumps and kind < 2:
            self.emit(self.r.choice(jumps) + ";")
        elif kind == 2 and self.result:
            self.emit(f"return {self.full()[0]};")
        elif kind == 3:
            self.emit("PAUSE;")
        elif kind < 6:
            self.emit(f"note({self.paren(self.full(), ASSIGN)});")
        elif kind == 6:
            self.emit(f"if ({self.full()[0]})")
            self.depth += 1
            self.emit(f"note({self.paren(self.full(), ASSIGN)});")
            self.depth -= 1
            if self.chance(50):
                self.emit("else")
                self.depth += 1
                self.simple(jumps)
                self.depth -= 1
        else:
            self.locked, self.read, self.calls = set(), set(), 1
            v = self.place()
            if v is None:
                return self.emit("PAUSE;")
            place = self.target(v)
            self.emit(f"{place} {self.r.choice(['=', '+=', '*=', '|='])} {self.paren(self.e(2), ASSIGN)};")

    def statement(self, depth, jumps):
        kind = self.r.randrange(46)
        if depth == 0 or kind < 10:
            return self.simple(jumps)
        if kind < 18:
            return self.declaration()
        if kind < 20:
            self.emit(f"if ({self.full()[0]})")
            self.body(depth - 1, jumps)
            if self.chance(40):
                self.emit("else")
                self.body(depth - 1, jumps)
            return None
        if kind < 26:
            return self.loop(depth, jumps)
        if kind < 28:
            return self.switch(depth, jumps)
        if kind < 30:
            return self.braced(depth - 1, jumps)
        if kind == 30:
            # back before a declaration, and over it
            label, v, n = self.name("back"), self.name("v"), self.name("v")
            self.emit(f"unsigned {n} = 0;")
            self.emit("{")
            self.depth += 1
            self.emit(f"{label}: if ({n}) {{ PAUSE; scrub(); goto {label}_over; }}")
            self.emit(f"unsigned {v} = {self.paren(self.full(), ASSIGN)};")
            self.emit(f"{label}_over: note({v});")
            self.emit(f"if ({n}++ < 1) goto {label};")
            self.depth -= 1
            self.emit("}")
            return None
        if kind == 31:
            label = self.name("out")
            self.emit("{")
            self.depth += 1
            self.block(self.r.randrange(1, 4), depth - 1, jumps + [f"goto {label}"])
            self.depth -= 1
            self.emit("}")
            return self.emit(f"{label}: note({self.paren(self.full(), ASSIGN)});")
        if kind < 35:
            return self.cleanup(depth, jumps)
        if kind in (40, 41, 42):
            return self.states(depth, jumps)
        if kind == 43:
            return self.entered_switch(depth, jumps)
        if kind == 44:
            a, b = self.name("v"), self.name("v")
            self.emit(f"__auto_type {a} = 1u + ({self.full()[0]});")
            self.emit(f"__typeof__({a}) {b}; __asm__(\"\" : \"=r\"({b}), \"+r\"({a}) : \"0\"({a}));")
            self.scope = self.scope + [a, b]
            return None
        if kind == 45:
            # a struct with arrays and bit-fields, as a value and through pointers
            t, a, p = self.name("t"), self.name("v"), self.name("v")
            self.emit(f"struct {t} {{ unsigned c : 5, : 3, d : 9; struct {{ unsigned char e[3]; unsigned f[2][2]; }} g[2]; }} "
                      f"{a} = {{.d = ({self.paren(self.full(), BIT_AND)}) & 63, .g[1] = {{.e = {{1, 2}}, .f[1] = "
                      f"{{{self.paren(self.more(), ASSIGN)}}}}}}}, *{p} = &{a};")
            value = self.paren(self.full(), ASSIGN)
            self.emit(f"{p}->g[await k(1)].f[{self.index()} & 1][1] += {value};")
            self.emit(f"struct {t} {a}b = *{p}, {a}c = {self.paren(self.full(1), OR)} ? {a}b : {a};")
            self.emit(f"note({a}c.d + {a}c.g[{self.index()} & 1].f[1][await k(1)] + {p}->g[1].e[1]);")
            return None
        if kind == 35:
            v = self.name("v")
            self.emit(f"unsigned {v} = 4; __asm__(\"\" : \"+r\"(({v})));")
            self.scope = self.scope + [v]
            return None
        if kind == 36:
            # a tag and a name that hide outer ones
            self.emit("{")
            self.depth += 1
            self.emit("struct pair; struct holder { struct pair *at; }; struct pair { char c[3]; };")
            self.emit("PAUSE;")
            self.emit("struct pair inner; struct holder holder = {&inner};")
            self.emit("note(sizeof inner + sizeof *holder.at);")
            self.depth -= 1
            self.emit("}")
            return None
        if kind == 37:
            v = self.name("v")
            self.emit(f"if (sizeof(enum {{ other = 77 }}) && ({self.full()[0]})) note(other);")
            self.emit(f"while (sizeof(enum {{ other = 77 }}) * 0) note(other);")
            self.emit("note(other);")
            return None
        if kind == 38:
            v = self.name("v")
            self.emit(f"unsigned {v} = sizeof(struct {{ char c; int i; }} __attribute__((packed)));")
            self.emit(f"note({v});")
            return None
        v = self.name("v")
        self.emit(f"for (struct {{ unsigned i, j; }} {v} = {{0, {self.paren(self.full(1), ASSIGN)}}}; {v}.i < 2; {v}.i++) "
                  f"note({v}.j);")
        return None

    def states(self, depth, jumps):
        """Labels that lead to each other, with locals that some of them write and others read."""
        label, count, n = self.name("state"), self.name("v"), self.r.randrange(2, 5)
        a, b = self.name("v"), self.name("v")
        self.emit(f"unsigned {count} = 0;")
        self.emit("{")
        self.depth += 1
        goes = [f"goto {label}_{i}" for i in range(n)]
        self.emit(f"unsigned {a} = {self.paren(self.full(), ASSIGN)}, {b} = 1;")
        outer, self.scope = self.scope, self.scope + [a, b]
        loops, self.loops = self.loops, self.loops * 5
        if self.chance(50):
            self.emit(f"if ({self.full()[0]}) {self.r.choice(goes)};")
        for i in range(n):
            self.emit(f"{label}_{i}: if ({count}++ > 3) goto {label}_end;")
            self.emit(f"unsigned {a}{i} = {self.r.choice([a, b])};")
            for _ in range(self.r.randrange(1, 4)):
                # (a jump to another label of these may go over a declaration, whose local is not read there)
                self.simple(jumps + goes + [f"goto {label}_end"])
            self.emit(self.r.choice(["PAUSE;", f"note({a}{i});", f"{a} = {self.paren(self.full(), ASSIGN)};",
                                     f"{b} = {a} + 1;", f"note({a} + await k(1));"]))
            if self.chance(60):
                self.emit(f"if ({self.full()[0]}) {self.r.choice(goes)};")
        self.loops = loops
        self.emit(f"{label}_end: note({a} + {b});")
        self.scope = outer
        self.depth -= 1
        self.emit("}")

    def entered_switch(self, depth, jumps):
        """A switch with a declaration in front of its cases, one of which is in a loop."""
        v, i = self.name("v"), self.name("v")
        self.emit(f"switch ({self.paren(self.full(), BIT_AND)} & 3) {{")
        self.depth += 1
        self.emit(f"unsigned {v}, {i};")
        self.emit(f"case 0: {v} = {self.paren(self.full(), ASSIGN)};")
        outer, self.scope = self.scope, self.scope + [v]
        self.emit("PAUSE;")
        self.emit(f"for ({i} = 0; {i} < 2; {i}++) {{")
        loops, self.loops = self.loops, self.loops * 3
        self.emit(f"if (0) {{ case 1: {v} = {i} = 1; }}")
        for _ in range(self.r.randrange(1, 3)):
            self.simple([j for j in jumps if j.startswith("goto")] + ["break", "continue"])
        self.emit(f"note({v});")
        self.emit("}")
        self.loops = loops
        if self.chance(50):
            self.emit("break;")
        self.emit(f"case 2: {v} = await k(2); {self.r.choice(['', 'PAUSE; '])}note({v});")
        self.scope = outer
        self.depth -= 1
        self.emit("}")

    def loop(self, depth, jumps):
        v = self.name("v")
        n = self.r.randrange(1, 4)
        loops, self.loops = self.loops, self.loops * n
        inner = ["break", "continue"]
        inner += [j for j in jumps if j.startswith("goto")]
        limit = f"await k({n})" if self.chance(50) else f"{n}u"
        kind = self.r.randrange(4)
        if kind < 2:
            step = self.r.choice([f"{v}++", f"{v} += await k(1)", f"PAUSE, {v}++", f"note({self.paren(self.full(1), ASSIGN)}), {v}++"])
            self.emit(f"for (unsigned {v} = {self.r.choice(['0', 'await k(0)'])}; {v} < {limit}; {step})")
            self.body(depth - 1, inner)
        elif kind == 2:
            self.emit(f"unsigned {v} = 0;")
            self.emit(f"while ({v}++ < {limit})")
            self.body(depth - 1, inner)
        else:
            self.emit(f"unsigned {v} = 0;")
            self.emit("do")
            self.body(depth - 1, inner)
            self.emit(f"while ({self.r.choice(['', 'PAUSE, '])}++{v} < {limit});")
        self.loops = loops

    def switch(self, depth, jumps):
        inner = [j for j in jumps if j != "break"] + ["break", "break"]
        self.emit(f"switch ({self.paren(self.full(), BIT_AND)} & 3) {{")
        self.depth += 1
        outer = self.scope
        for n in range(self.r.randrange(1, 4)):
            self.emit(f"case {n}:" if n or self.chance(80) else f"case {n} ... {n}:")
            self.depth += 1
            for _ in range(self.r.randrange(1, 3)):
                if self.chance(30):
                    self.braced(depth - 1, inner)
                else:
                    self.simple(inner)
            self.depth -= 1
        if self.chance(50):
            self.emit("default:")
            self.simple(inner)
        self.scope = outer
        self.depth -= 1
        self.emit("}")

    def cleanup(self, depth, jumps):
        self.emit("{")
        self.depth += 1
        outer = self.scope
        kind = self.r.randrange(3)
        v = self.name("v")
        first = self.paren(self.full(), ASSIGN)
        if kind == 0:
            self.emit(f"__attribute__((cleanup(note_it))) unsigned {v} = {first};")
        elif kind == 1:
            self.emit(f"unsigned {v} = {first};")
            self.emit(f"defer {{ static unsigned times; note({v} + ++times); {self.r.choice(['', 'global++; '])}}}")
        else:
            self.emit(f"unsigned {v} __attribute__((cleanup(note_it))) = {first};")
            self.emit(f"defer {{ note(global++); }}")
        self.scope = outer + [v]
        if jumps and self.chance(60):
            # a block without an await, whose names hide those of the deferred statement
            self.emit(f"if ({self.full()[0]}) {{ unsigned global = 40; __attribute__((cleanup(note_it))) unsigned z{v} = "
                      f"global; {self.r.choice(jumps)}; }}")
        if self.chance(70):
            self.emit("PAUSE;")
        self.block(self.r.randrange(0, 4), depth - 1, jumps)
        self.scope = outer
        self.depth -= 1
        self.emit("}")

    # ---- Functions and the program ----

    def function(self, number):
        name = f"f{number}"
        self.depth, self.loops, self.weight, self.result = 0, 1, 1, True
        kind = self.r.choice(["async", "async_created", "static async"])
        kind = {"static async": "async static"}.get(kind, kind)
        if kind != "async_created" and number % 4 != 0: # not drawn, so that the other draws stay what they are
            kind = kind.replace("async", ["", "async_kind(steady)", "async", "async_kind(quiet)"][number % 4])
        second = self.r.choice(["unsigned b", "unsigned b", "unsigned (b)", "const unsigned b"])
        self.emit(f"{kind} unsigned {name}(unsigned a, {second})")
        self.emit("{")
        self.depth = 1
        self.scope = ["a"] if "const" in second else ["a", "b"]
        for _ in range(self.r.randrange(3, 9)):
            self.statement(3, [])
        self.emit(f"return {self.full()[0]};")
        self.depth = 0
        self.emit("}")
        self.emit("")
        if kind == "async_created":
            self.emit(f"static const struct table table_{name} = {{1, async_pointer_to({name}), "
                      f"{{0, async_pointer_to({name})}}}};")
            self.emit(f"static operation pick_{name}(unsigned n) {{ return n ? table_{name}.call : 0; }}")
            self.emit("")
        self.functions.append(Function(name, self.weight + 1, kind == "async_created"))

    def text(self):
        count = int(os.environ.get("BIDE_FUNCTIONS", "8"))
        self.out = ['#include "random.h"', ""]
        for number in range(count):
            self.function(number)
        self.out += ["async int run(void)", "{"]
        for number in range(count):
            self.out.append(f"    note(await f{number}({number}, 7));")
            self.out.append(f'    printf("f{number} %u\\n", hash);')
        self.out += ["    return 0;", "}", "", "int main(void)", "{", "#ifdef PLAIN", "    run();", "#else",
                     "    static async_frame(run) frame;", "    bide_sync_wait(async_run(&frame));", "#endif", "    return 0;",
                     "}", ""]
        return "\n".join(self.out)


def run(words, limit=300):
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return -1, "timed out"
    return done.returncode, done.stdout.decode(errors="replace")


def compare(bidec, root, library, source, options, directory):
    """Returns None, or what is wrong: 'plain', 'translate', 'crash' or 'differs', with a message."""
    flags = os.environ.get("BIDE_FLAGS", "").split()
    libraries = os.environ.get("BIDE_LIBS", "-luring -lcares -lpthread").split()
    include = ["-w", "-fwrapv", f"-I{root}/include", f"-I{root}/tests/bidec"]
    code, said = run(["gcc", "-std=gnu11", "-O0", "-DPLAIN", *include, source, "-o", f"{directory}/plain"])
    if code != 0:
        return "plain", said
    code, expected = run([f"{directory}/plain"], 30)
    if code != 0:
        return "plain", f"ends with {code}"
    if any("undefined" in word for word in options + flags):
        include.append("-fno-sanitize=shift") # a negative value may be shifted: see -fwrapv
    code, said = run([bidec, *options, *flags, *include, source, "-o", f"{directory}/async", library, *libraries])
    if code != 0:
        errors = [line for line in said.splitlines() if "error" in line or "ssertion" in line]
        return "translate", "\n".join(errors[:3] or said.splitlines()[:3])
    code, got = run([f"{directory}/async"], 60)
    if got != expected or code != 0:
        for one, other in zip(got.splitlines() + [f"ends with {code}"], expected.splitlines() + ["the end"]):
            if one != other:
                return "differs", f"{one}, not {other}"
        return "differs", f"ends with {code}"
    return None


def main():
    if sys.argv[1] == "--print":
        print(Program(int(sys.argv[2])).text(), end="")
        return 0
    bidec, root, library, count = sys.argv[1:5]
    seed = int(os.environ.get("BIDE_SEED", sys.argv[5] if len(sys.argv) > 5 else time.time()))
    print(f"BIDE_SEED={seed}", flush=True)
    if shutil.which("gcc") is None:
        print("skipped: gcc is not installed")
        return 77
    compilers = [c for c in os.environ.get("BIDE_CC", "gcc").split(",") if shutil.which(c.split()[0])]
    variants = [v.split() for v in os.environ.get("BIDE_OPTIONS", "-std=gnu11 -O1").split(",")]
    failed = 0
    for n in range(int(count)):
        directory = tempfile.mkdtemp()
        source = f"{directory}/random.c"
        with open(source, "w", encoding="ascii") as file:
            file.write(Program(seed + n).text())
        options = compilers[n % len(compilers)].split() + variants[n // len(compilers) % len(variants)]
        wrong = compare(bidec, root, library, source, options, directory)
        if wrong is not None:
            failed += 1
            print(f"{source} (seed {seed + n}, {' '.join(options)}): {wrong[0]}: {wrong[1]}", flush=True)
        else:
            subprocess.run(["rm", "-rf", directory], check=False)
    print(f"{int(count) - failed} of {count} behave as plain C")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
