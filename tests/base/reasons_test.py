#!/usr/bin/env python3
"""A test that expects a failure looks at its reason: reasons_test.py ROOT

    detects     each rule finds its examples, and nothing in their mended forms
    python      no test asserts only that a program's status is not 0, or that any exception was raised
    shell       no test asserts only that a command fails
    exceptions  each is of a file that exists

A program that cannot start, or fails for another reason, would pass such a test. EXCEPTIONS lists places that need no
more, with the reason. In TAP.
"""

import ast
import os
import re
import subprocess
import sys

# path: {a part of the line: why it needs no more}. An exception of nothing is reported.
EXCEPTIONS = {
    "tests/examples/check_your_own_test.sh": {'! printed "$1"': "the line is absent from what was printed"},
    "tests/programs/fetch_test.py": {
        "assert done.returncode == 1 and done.stderr": "the text is that of whichever call was made to fail"},
    "tests/programs/kv/kv_failures_test.py": {
        "any(status == 1 and calls ==": "which call is made to fail is the reason, and part of the condition"},
    "tests/programs/proxy/failures_test.py": {"why.status == 1 and why.errors": "the text is that of whichever call was made to fail"},
    "tests/top/top_test.py": {
        "number in (signal.SIGSEGV, signal.SIGABRT) and status != 0": "a sanitizer exits in its own way",
        "assert status != 0": "its terminal is gone: there is no place for a text"},
}

# What programs exit with for any failure.
ANY_FAILURE = (1, 2)
BROAD = {"Exception", "BaseException", "OSError", "EnvironmentError", "CalledProcessError", "SubprocessError"}
STATUS = re.compile(r"(^|[._])(returncode|status|code|poll\(\)|wait\(.*\)|exit_status)$")


# ---- Python ----


def is_status(node):
    return isinstance(node, (ast.Attribute, ast.Name, ast.Call)) and STATUS.search(ast.unparse(node)) is not None


def is_one_of(node, *values):
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value in values


def is_failure(operator, node):
    """`!= 0`, `> 0`, or `== 1`, which is the status of any failure."""
    return isinstance(operator, (ast.NotEq, ast.Gt)) and is_one_of(node, 0) or \
        isinstance(operator, ast.Eq) and is_one_of(node, *ANY_FAILURE)


def fails(node):
    """The status of a program that has failed, in a condition: its expression."""
    for part in ast.walk(node):
        if isinstance(part, ast.Compare) and len(part.ops) == 1 and is_status(part.left) and \
                is_failure(part.ops[0], part.comparators[0]):
            return part.left
    return None


def calls(node, *names):
    return isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", None)) in names


def asserted_failure(node):
    """The status that a statement asserts to be no 0, and nothing more of it."""
    if isinstance(node, ast.Assert):
        return fails(node.test)
    if not isinstance(node, ast.Expr):
        return None
    if calls(node.value, "check", "assertTrue", "expect") and node.value.args:
        return fails(node.value.args[0])
    if calls(node.value, "assertNotEqual", "equal", "assertEqual") and len(node.value.args) >= 2:
        first, second = node.value.args[:2]
        wanted = (0,) if calls(node.value, "assertNotEqual") else ANY_FAILURE
        return first if is_status(first) and is_one_of(second, *wanted) else None
    return None


def drops_reason(node):
    """A statement that calls a helper with a status that is expected, without a text, and drops the result: the helper."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return None
    words = {word.arg: word.value for word in node.value.keywords}
    return node.value.func if is_one_of(words.get("status"), *ANY_FAILURE) and "said" not in words else None


def is_any_error(node):
    """A reply that is expected to be an error, whichever."""
    return isinstance(node, ast.Tuple) and any(isinstance(part, ast.Name) and part.id == "ERROR" for part in node.elts)


def neighbours(function, statement):
    """The statements of the block that it is in, itself too."""
    for node in ast.walk(function):
        for block in (getattr(node, field, None) for field in ("body", "orelse", "finalbody")):
            if isinstance(block, list) and statement in block:
                return block
    return [statement]


def reads_reason(function, statement):
    """The statement or its neighbours use the output of a program, beside messages of checks."""
    for node in [node for neighbour in neighbours(function, statement) for node in ast.walk(neighbour)]:
        if isinstance(node, (ast.Compare, ast.Call)):
            text = ast.unparse(node)
            parts = [ast.unparse(node.left), *map(ast.unparse, node.comparators)] if isinstance(node, ast.Compare) else []
            if any(re.search(r"\b(stderr|stdout|output|errors?|said|reason|err|out|message|text)\b", part) for part in parts):
                return True
            if re.search(r"\b(search|match|fullmatch|findall|startswith|endswith|expect|assertIn|assertRegex)\(", text):
                return True
    return False


def raises_anything(node):
    """A `with` or a call that asserts that some exception is raised, of whatever kind."""
    asked = [item.context_expr for item in node.items if item.optional_vars is None] if isinstance(node, ast.With) else \
        [node.value] if isinstance(node, ast.Expr) else []
    for call in asked:
        if calls(call, "assertRaises", "raises") and call.args and ast.unparse(call.args[0]).split(".")[-1] in BROAD and \
                not any(word.arg == "match" for word in call.keywords):
            return True
    return False


def expects_any_exception(node):
    """`try: ...; fail()`, `except Exception: pass`."""
    if not isinstance(node, ast.Try) or not node.body:
        return False
    last = node.body[-1]
    demands = isinstance(last, ast.Raise) or isinstance(last, ast.Expr) and (
        calls(last.value, "fail") or calls(last.value, "check") and ast.unparse(last.value.args[0]) == "False")
    return demands and any(
        (handler.type is None or ast.unparse(handler.type).split(".")[-1] in BROAD) and
        all(isinstance(step, ast.Pass) for step in handler.body) for handler in node.handlers)


def python_findings(text):
    """(line, what) of each place."""
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    found = set()
    for function in [tree, *functions]:
        for node in ast.walk(function):
            if not hasattr(node, "lineno"):
                continue
            inner = [other for other in functions if other.lineno <= node.lineno <= other.end_lineno]
            if inner and max(inner, key=lambda other: other.lineno) is not function:
                continue
            status = asserted_failure(node)
            if status is not None and not reads_reason(function, node):
                found.add((node.lineno, f"asserts only that this fails: {ast.unparse(status)}"))
            if drops_reason(node) is not None:
                found.add((node.lineno, f"asserts only that this fails: {ast.unparse(drops_reason(node))}"))
            if is_any_error(node):
                found.add((node.lineno, "expects an error, whichever"))
            if raises_anything(node) or expects_any_exception(node):
                found.add((node.lineno, "asserts only that something is raised"))
    return sorted(found)


# ---- Shell ----

# Commands whose status is their answer.
ANSWERS = re.compile(r"^(\[|\[\[|test|cat|grep|egrep|cmp|diff|command|kill|true|false|wait|read|:|exists|echo .*\| *grep|printf .*\| *grep"
                     r"|type|nm .*\| *grep|ldd .*\| *grep|cat .*\| *grep)\b|^\[|^\(\(|\| *(grep|cmp|diff)\b")
COMPLAINS = re.compile(r"\b(fail|failed|failure|failures|wrong|complain|die|problem|not ok|exit 1|status=1|FAILED|return 1|bad)\b")
LOOKS = re.compile(r"\b(grep|cmp|diff|case|said|printed)\b|\$\(cat |\$\(<|==|\[ \"\$")


def statements(text):
    """(line number, statement): lines, with those that are continued joined, without comments."""
    number, joined = 0, ""
    for at, line in enumerate(text.splitlines(), 1):
        number = number if joined else at
        line = re.sub(r"(^|\s)#.*", r"\1", line) if "'" not in line and '"' not in line else re.sub(r"^\s*#.*", "", line)
        if line.endswith("\\"):
            joined += line[:-1] + " "
            continue
        yield number, (joined + line).strip()
        joined = ""


def expected_failure(statement, following):
    """The command that a statement expects to fail, or None."""
    found = re.match(r"^! (.*?)(\s*\|\|.*|\s*)$", statement)
    if found:
        otherwise = found.group(2).strip()
        return found.group(1) if not otherwise or COMPLAINS.search(otherwise) else None
    found = re.match(r"^if ((?!! ).*?);? *then\b(.*)$", statement)
    if found:
        body = found.group(2) or following
        return found.group(1) if COMPLAINS.search(body) and not re.match(r"^\s*(cat|tail|head)\b", body) else None
    found = re.match(r"^(?!if |! |while )([^|&;]*?) && (.*)$", statement)
    if found and COMPLAINS.search(found.group(2)) and "||" not in found.group(2):
        return found.group(1)
    return None


def shell_findings(text):
    lines = list(statements(text))
    found = []
    for at, (number, statement) in enumerate(lines):
        after = [line for _, line in lines[at + 1:at + 9]]
        command = expected_failure(statement, after[0] if after else "")
        if command is None or ANSWERS.search(command.strip()) or re.match(r"^[A-Za-z_]+=", command):
            continue
        kept = re.search(r"(?:2>|&>|>)\s*(\"?\$?[\w./{}$]+)", command)
        keeps_errors = "2>&1" in command or re.search(r"2>\s*(?!/dev/null)\S", command) or "&>" in command
        if kept and keeps_errors and "/dev/null" not in command.split("2>")[0][-1:] and \
                any(LOOKS.search(line) for line in [statement, *after]):
            continue
        found.append((number, f"asserts only that this fails: {command}"))
    return found


# ---- The examples ----

PYTHON_EXAMPLES = [
    ("def a():\n    done = run()\n    assert done.returncode != 0\n",
     "def a():\n    done = run()\n    assert done.returncode != 0\n    assert 'no such file' in done.stderr\n"),
    ("def a():\n    done = run()\n    check(done.returncode != 0, done.stderr)\n",
     "def a():\n    done = run()\n    equal((done.returncode, done.stderr), (2, 'no such file'))\n"),
    ("def a():\n    check(other().message == 'x')\n    for bad in all:\n        assert run(bad).returncode == 2\n",
     "def a():\n    for bad in all:\n        done = run(bad)\n        equal(done.returncode, 2)\n        check(bad in done.stderr)\n"),
    ("def a():\n    equal(run().returncode, 1)\n", "def a():\n    equal(run().returncode, 18)\n"),
    ("def a(self):\n    self.assertNotEqual(run().returncode, 0)\n", "def a(self):\n    self.assertEqual(run().returncode, 0)\n"),
    ("def a():\n    run('--bad', status=2)\n",
     "def a():\n    assert 'no option' in run('--bad', status=2).stderr\n"),
    ("def a():\n    expect(client, ('GET', ERROR))\n", "def a():\n    expect(client, ('GET', Error('ERR why')))\n"),
    ("def a(self):\n    with self.assertRaises(Exception):\n        run()\n",
     "def a(self):\n    with self.assertRaises(Exception) as caught:\n        run()\n    self.assertIn('x', str(caught))\n"),
    ("def a():\n    try:\n        run()\n        check(False)\n    except OSError:\n        pass\n",
     "def a():\n    try:\n        run()\n        check(False)\n    except ConnectionResetError:\n        pass\n"),
]
SHELL_EXAMPLES = [
    ("! $program --bad 2>/dev/null\n", "! $program --bad 2>errors && grep -q 'no option' errors\n"),
    ("! $program --bad || fail\n", "! grep -q x file || fail\n"),
    ("if $program --bad; then\n    fail 'it has not failed'\nfi\n",
     "if $program --bad 2>errors; then\n    fail 'it has not failed'\nfi\ngrep -q 'no option' errors\n"),
    ("$program --bad 2>/dev/null && fail\n", "[ -e file ] && fail\n"),
]


# ---- The tree ----


def listed(root, suffix):
    out = subprocess.run(["git", "-C", root, "ls-files", "tests"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return [path for path in out.splitlines() if path.endswith(suffix) and os.path.isfile(os.path.join(root, path)) and
            path != "tests/base/reasons_test.py"]


def problems(root, suffix, findings):
    wrong = []
    for path in listed(root, suffix):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        lines = text.splitlines()
        excepted = dict(EXCEPTIONS.get(path, {}))
        for number, what in findings(text):
            reasons = [part for part in excepted if part in lines[number - 1]]
            if not reasons:
                wrong.append(f"{path}:{number}: {what}")
            EXCUSED.update((path, part) for part in reasons)
        wrong += [f"{path}: an exception of nothing: {part}" for part in excepted if (path, part) not in EXCUSED]
    return wrong


EXCUSED = set()


def stale(root):
    """Exceptions of files that no rule looks at."""
    paths = {*listed(root, ".py"), *listed(root, ".sh")}
    return [f"{path}: exceptions of a file that is none" for path in EXCEPTIONS if path not in paths]


def undetected():
    for examples, findings in ((PYTHON_EXAMPLES, python_findings), (SHELL_EXAMPLES, shell_findings)):
        for wrong, mended in examples:
            if len(findings(wrong)) != 1:
                yield f"not found: {wrong!r}"
            for found in findings(mended):
                yield f"found in {mended!r}: {found}"


def main():
    root = sys.argv[1]
    results = [("detects", list(undetected())), ("python", problems(root, ".py", python_findings)),
               ("shell", problems(root, ".sh", shell_findings)), ("exceptions", stale(root))]
    print(f"1..{len(results)}")
    for number, (name, wrong) in enumerate(results, 1):
        print(f"{'not ' if wrong else ''}ok {number} - {name}")
        for line in wrong:
            print("#", line)
    return 1 if any(wrong for _, wrong in results) else 0


if __name__ == "__main__":
    sys.exit(main())
