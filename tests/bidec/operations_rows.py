"""
Each operation that the public headers offer is awaited before a large await in an async function of the tests of
operations, or stands in operations_without_rows.txt with its reason: operations_rows.py ROOT
"""

import pathlib
import re
import sys

TESTS = ["operations", "core_operations", "io_operations", "values", "http_operations", "http2_operations",
         "tls_operations", "log_operations"]


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S).replace("\\\n", " ")


def headers(root):
    include = root / "include" / "bide"
    for path in sorted([*include.glob("*.h"), *include.glob("extend/*.h")]):
        yield path, without_comments(path.read_text())


def operations(root):
    """Names of functions that make an awaiter, and of macros that are such calls."""
    names, internal = set(), set()
    for _, text in headers(root):
        text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
        for declaration in re.findall(r"\bBIDE_MUST_AWAIT\b[^;{}]*?\b(bide_\w+)\s*\(", text):
            (internal if declaration.endswith("_") else names).add(declaration)
    for _, text in headers(root):
        helpers = {}
        for name, body in re.findall(r"^\s*#\s*define (\w+)\([^)]*\)\s+(.*)$", text, flags=re.M):
            helpers[name] = body
        for name, body in helpers.items():
            call = re.match(r"\(?(\w+)\s*\(", body.strip())
            if call is not None and call[1] in helpers and call[1].isupper():
                call = re.match(r"\(?(\w+)\s*\(", helpers[call[1]].strip())
            if call is not None and call[1] in internal and re.fullmatch(r"bide_\w+[^_]", name):
                names.add(name)
    return names


def awaited(root):
    """Names with a row: by its macros, or an await that a large one follows."""
    names = set()
    for test in TESTS:
        text = without_comments((root / "tests" / "bidec" / f"{test}_test.c").read_text())
        names |= set(re.findall(r"\b(?:VALUE\(|OWN\(|(?:NAMED|BOTH)\(\w+,|X\(\w+,\s*\w+,)\s*(bide_\w+)", text))
        for found in re.finditer(r"\bawait\s+(bide_\w+)", text):
            if "await large()" in text[found.end():found.end() + 300]:
                names.add(found[1])
    return names


def main(root):
    root = pathlib.Path(root)
    listed = {}
    for line in (root / "tests" / "bidec" / "operations_without_rows.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, reason = line.split(": ", 1)
            listed[name] = reason
    offered, tested = operations(root), awaited(root)
    failed = 0
    if len(offered) < 180:
        failed += 1
        print(f"only {len(offered)} operations were found")
    for name in sorted(offered - tested - listed.keys()):
        failed += 1
        print(f"{name} has no row in the tests of operations, and no reason in operations_without_rows.txt")
    for name in sorted(listed.keys() - offered):
        failed += 1
        print(f"operations_without_rows.txt: there is no operation {name}")
    for name in sorted(listed.keys() & tested):
        failed += 1
        print(f"operations_without_rows.txt: {name} has a row")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
