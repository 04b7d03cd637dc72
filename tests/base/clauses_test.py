#!/usr/bin/env python3
"""Each public function says in what way it may be used: clauses_test.py INCLUDE-FOLDER

The comment above a function of include/bide/*.h, or above a group of functions, ends with clauses. Their
forms are in CONTRIBUTING.md; manual pages are made from them. Here each clause that a function needs is looked for, and
that it has one of its forms:

    Threads         every function, and every macro that is written like one, but for the names of types
    Errors          what returns an int, and what is awaited
    Suspends, Cancel-safe, Progress     what is awaited
"""
import os
import re
import sys

# Headers whose comments have no clauses yet. A header that has them all is to be taken off.
NOT_YET = """
""".split()

FORMS = {
    "Threads": r"any\b|one at a time\b|before it is shared\b|the [\w ]+'s\b|as bide_\w+",
    "Errors": r"none\b|-E[A-Z0-9]+\b|those of\b|as bide_\w+",
    "Suspends": r"never\b|always\b|if\b|unless\b|as bide_\w+",
    "Cancel-safe": r"yes\b|no\b|as bide_\w+|as its inner operation is\b",
    "Progress": r"wait-free\b|lock-free\b|blocks\b|as bide_\w+|that of\b",
}
WORDS = list(FORMS)
CLAUSE = re.compile(r"(?:^|(?<=[\s.]))(" + "|".join(WORDS) + r"): (.+?)\.(?=\s|$)", re.S)
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/', re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)|"
                       r"\b(?:BIDE_[A-Z_]+|bide_atomic|_Pragma)\s*\([^()]*\)")
NAME = re.compile(r"\b(bide_\w*[^\W_])\s*\(")


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def blank_match(match):
    return blank(match.group())


class Item:
    """Something at the outermost level of a header: a function, a macro, or anything else (name is None)."""

    def __init__(self, at, name=None, needs=()):
        self.at, self.name, self.needs = at, name, needs


def items_and_comments(text):
    comments = []

    def note(match):
        if not match.group().startswith("/*"):
            return match.group()
        if match.start() == 0 or text[match.start() - 1] == "\n":
            comments.append((match.start(), match.end()))
        return blank(match.group())

    text = COMMENT.sub(note, text)
    items = []

    def macro(match):
        define = re.match(r"\s*#\s*define\s+(\w+)(\((?!type\))|)", match.group())
        if define:
            public = re.fullmatch(r"bide_\w*[^\W_]", define[1]) and define[2]
            items.append(Item(match.start(), define[1] if public else None, ("Threads",)))
        return blank(match.group())

    text = re.sub(r"\bBIDE_EXTERN_C_\w+|\bBIDE_KEY_SCOPED\s*\([^()]*\)\s*;", blank_match, DIRECTIVE.sub(macro, text))
    start = depth = 0
    for token in re.finditer(r"[{}();]", text):
        depth += (token.group() in "{(") - (token.group() in "})")
        head = text[start:token.end()]
        if depth == 0 and (token.group() == ";" or (token.group() == "}" and is_whole(head))):
            items.append(declared(start, head))
            start = token.end()
    return sorted(items, key=lambda item: item.at), comments


def is_whole(head):
    """Does the item end with this brace, as a function's body does, and a type's does not?"""
    return re.match(r"\s*(typedef|struct|union|enum)\b[^()]*{", head) is None


def declared(start, head):
    at = start + len(head) - len(head.lstrip())
    words = ATTRIBUTE.sub(" ", head)
    name = NAME.search(words)
    if re.match(r"\s*typedef\b", words) or not name or "(" in words[:name.start()] or "{" in words[:name.start()]:
        return Item(at)
    before = re.sub(r"\b(BIDE_\w+|static|inline|extern|const|__extension__)\b", " ", words[:name.start()]).split()
    needs = ["Threads"]
    if "BIDE_MUST_AWAIT" in words[:name.start()]:
        needs = WORDS
    elif before == ["int"]:
        needs = ["Threads", "Errors"]
    return Item(at, name[1], needs)


def documentation(text, item, items, comments):
    """The nearest comment above, if nothing stands between but what it serves too."""
    above = [comment for comment in comments if comment[1] <= item.at]
    if not above:
        return ""
    start, end = above[-1]
    if any(other.name is None and end <= other.at < item.at for other in items):
        return ""
    return re.sub(r"\s+", " ", re.sub(r"^\s*\*( |/|$)|^/\*|\*/$", " ", text[start:end], flags=re.M))


def faults(name, needs, comment):
    clauses = CLAUSE.findall(comment)
    there = [word for word, _ in clauses]
    for word in needs:
        if word not in there:
            yield f"{name}: {word}"
    for word, value in clauses:
        if not re.match(FORMS[word], value):
            yield f"{name}: '{word}: {value}' has none of the forms"
    if there != sorted(set(there), key=WORDS.index):
        yield f"{name}: clauses twice, or in another order"


def header_faults(path):
    with open(path, encoding="utf-8") as header:
        text = header.read()
    items, comments = items_and_comments(text)
    seen, found = set(), []
    for item in items:
        if item.name and item.name not in seen:
            seen.add(item.name)
            found += faults(item.name, item.needs, documentation(text, item, items, comments))
    return len(seen), found


def self_test():
    """What is looked for is found."""
    text = """/* One. */

BIDE_EXTERN_C_BEGIN

/*
 * Waits. Threads: any. Errors: -EPIPE (closed). Suspends: if it must. Cancel-safe: yes.
 * Progress: lock-free.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_a(int (*f)(void))
{
    return f();
}
BIDE_MUST_AWAIT bide_awaiter *bide_b(void);
void bide_inner_(void);
int bide_c(void);

/* Threads: any. */
#define bide_d(x) \\
    bide_e(x)
#define bide_a_type(type) struct { type x; }
int bide_e(int x);
"""
    items, comments = items_and_comments(text)
    got = [fault for item in items if item.name
           for fault in faults(item.name, item.needs, documentation(text, item, items, comments))]
    return got == ["bide_c: Threads", "bide_c: Errors", "bide_e: Threads", "bide_e: Errors"]


def main():
    folder = sys.argv[1]
    print("1..2")
    ok = self_test()
    print(f"{'' if ok else 'not '}ok 1 - what is missing is found")
    count, found, left = 0, [], 0
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".h"):
            continue
        functions, missing = header_faults(os.path.join(folder, name))
        count += functions
        if name in NOT_YET:
            left += len({text.split(":")[0] for text in missing})
            if not missing:
                print(f"# {name} has all its clauses: take it off the list")
        else:
            found += [f"{name}: {text}" for text in missing]
        if "--all" in sys.argv:
            for text in missing:
                print(f"# {name}: {text}")
    print(f"{'not ' if found else ''}ok 2 - each function says its clauses")
    for text in found:
        print("#", text)
    print(f"# {count} functions; {left} in {len(NOT_YET)} headers that have no clauses yet")
    sys.exit(bool(found) or not ok)


main()
