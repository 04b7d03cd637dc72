#!/usr/bin/env python3
"""The rules of mutations.py make the changes that they should: mutants_test.py ROOT.

In TAP: a case for each rule, and one for each list in tests/check/mutations, whose reasons name changes that are made.
mutations_test.py runs the scenarios with the changes; that takes long, and this does not.
"""
import glob
import os
import sys

sys.dont_write_bytecode = True
import mutations  # noqa: E402 (in this directory)
import mutations_test  # noqa: E402

# A function's body, and the changed bodies by rule, with spaces as they are.
CASES = [
    ("weaken", "bide_atomic_exchange(&a, 0, acq_rel); bide_fence(seq_cst); /* acquire */ puts(\"(release)\");",
     ["bide_atomic_exchange(&a, 0, acquire); bide_fence(seq_cst); /* acquire */ puts(\"(release)\");",
      "bide_atomic_exchange(&a, 0, release); bide_fence(seq_cst); /* acquire */ puts(\"(release)\");",
      "bide_atomic_exchange(&a, 0, acq_rel); bide_fence(acq_rel); /* acquire */ puts(\"(release)\");"]),
    ("drop", "int x = 0; x++; if (x) return x; if (x) { x = 2; } bide_assert(x); (void)x; return;",
     ["int x = 0; ; if (x) return x; if (x) { x = 2; } bide_assert(x); (void)x; return;",
      "int x = 0; x++; ; if (x) { x = 2; } bide_assert(x); (void)x; return;",
      "int x = 0; x++; if (x) return x; if (x) { ; } bide_assert(x); (void)x; return;",
      "int x = 0; x++; if (x) return x; if (x) { x = 2; } bide_assert(x); (void)x; ;"]),
    ("guard", "while (a) if (b(c)) d(); else e();", ["while (a) if (1) d(); else e();"]),
    ("swap", "a(); b->c = 1; d->e = 2; int f = 3; g(); h();",
     ["b->c = 1; a(); d->e = 2; int f = 3; g(); h();", "a(); b->c = 1; d->e = 2; int f = 3; h(); g();"]),
    ("move", "a(); b->c = 1; unlock(l); d(); e();",
     ["; b->c = 1; unlock(l); a(); d(); e();", "a(); b->c = 1; e(); unlock(l); d(); ;"]),
    ("hoist", "int x; while (a) x = b->c; x = d->e; if (f) { x = 1; x = g->h; }",
     ["int x; x = b->c; while (a) ; x = d->e; if (f) { x = 1; x = g->h; }",
      "int x; x = d->e; while (a) x = b->c; ; if (f) { x = 1; x = g->h; }"]),
    ("operand", "if (a && !b(c | d) || e) f(g + 1, -2);",
     ["if ( !b(c | d) || e) f(g + 1, -2);", "if (a  || e) f(g + 1, -2);", "if (a && !b( d) || e) f(g + 1, -2);",
      "if (a && !b(c ) || e) f(g + 1, -2);", "if ( e) f(g + 1, -2);", "if (a && !b(c | d) ) f(g + 1, -2);",
      "if (a && !b(c | d) || e) f(g , -2);"]),
]
BEGIN, END = "struct s { int a; };\nint n[] = {1};\n#define F(x) { x }\nvoid f(int z)\n{\n    ", "\n}\n"


def wrong_of_rule(rule, body, expected):
    made = [m for m in mutations.mutants(BEGIN + body + END) if m.rule == rule]
    wanted = sorted(BEGIN + text + END for text in expected)
    if sorted(m.text for m in made) != wanted:
        return [f"made: {m.text[len(BEGIN):-len(END)]}" for m in made] + [f"not: {text}" for text in expected]
    return [m.title for m in made if m.function != "f" or not m.text]


def wrong_of_list(root, path):
    wrong = []
    for source in mutations_test.read_list(path):
        with open(os.path.join(root, source.file), encoding="utf-8") as text:
            made = mutations.mutants(text.read())
        for title, why in source.reasons:
            if not why:
                wrong.append(f"{title}: there is no reason")
            if not any(mutations_test.reason_for(source, m.title)[0] == title for m in made
                       if mutations_test.reason_for(source, m.title) is not None):
                wrong.append(f"{title}: there is no such change of {source.file}")
    return wrong


def main():
    root = sys.argv[1]
    results = [(f"the rule {rule}", wrong_of_rule(rule, body, expected)) for rule, body, expected in CASES]
    many = "void g(void)\n{\n    a(\n        1);\n    b();\n}\n"
    results.append(("a change keeps the number of lines",
                    [m.title for m in mutations.mutants(many) if m.text.count("\n") != many.count("\n")]))
    results.append(("each function has a trap",
                    [] if mutations.traps(many) == [("g", many.replace("{", "{ __builtin_trap();"))] else ["no"]))
    lists = sorted(glob.glob(os.path.join(root, "tests", "check", "mutations", "*.txt")))
    results += [(os.path.basename(path), wrong_of_list(root, path)) for path in lists]
    failed = 0
    print(f"1..{len(results)}")
    for number, (name, wrong) in enumerate(results, 1):
        failed += bool(wrong)
        print(f"{'not ' if wrong else ''}ok {number} - {name}")
        for line in wrong:
            print("#", line)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
