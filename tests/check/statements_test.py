#!/usr/bin/env python3
"""Each statement is needed: statements_test.py BUILD NAME DOCUMENT [--update] [--only WORDS]

Changes the library's sources as listed in tests/check/statements/NAME.txt, one change at a time, and runs the scenarios of
NAME_check with each change: there must be a finding, or the list must give a reason. Compares the table with the one in
DOCUMENT between the lines <!-- NAME statements --> and <!-- end -->; --update writes the new table to the document.

A list of changes consists of these lines:

    file PATH           the file that the next changes are applied to
    with PATH...        the sources that include the file, beside NAME_check.c: they are compiled too, in place of the file
                        if it is not a header
    * TEXT              a change, in words
    - TEXT              the text that is replaced, over any number of lines; spaces do not count
    at N                the N-th such text; without this line there must be only one
    + TEXT              the new text, if any
    also NAME...        the scenarios of NAME_check, which run if the others find nothing
    preemptions N       a bound on the preemptions, if there are too many executions otherwise
    kept: TEXT          the reason why there is no finding; lines that begin with two spaces continue it
"""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

EXECUTIONS = 2000000  # of each scenario: more than any has without a change


class NotBuilt(Exception):
    """A change does not compile or link: the source, and what the compiler says."""


class Change:
    def __init__(self, file, units, title):
        self.file, self.units, self.title = file, units, title
        self.old, self.new, self.place, self.reason, self.bound = [], [], None, None, None
        self.also = []


def read_changes(path):
    changes, file, units = [], None, []
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            line = line.rstrip("\n")
            change = changes[-1] if changes else None
            if not line or line.startswith("#"):
                continue
            if line.startswith("file "):
                file, units = line[5:].strip(), []
            elif line.startswith("with "):
                units = line[5:].split()
            elif line.startswith("* "):
                changes.append(Change(file, units, line[2:]))
            elif line == "-" or line.startswith("- "):
                change.old.append(line[2:])
            elif line == "+" or line.startswith("+ "):
                change.new.append(line[2:])
            elif line.startswith("at "):
                change.place = int(line[3:])
            elif line.startswith("also "):
                change.also = line[5:].split()
            elif line.startswith("preemptions "):
                change.bound = line[12:].strip()
            elif line.startswith("kept: "):
                change.reason = line[6:]
            elif line.startswith("  ") and change and change.reason:
                change.reason += " " + line.strip()
            else:
                sys.exit(f"{path}:{number}: what is that?")
    return changes


def changed_text(root, change):
    """Returns the text of the file with the change."""
    with open(os.path.join(root, change.file), encoding="utf-8") as source:
        text = source.read()
    words = " ".join(change.old).split()
    places = list(re.finditer(r"\s+".join(map(re.escape, words)), text))
    if len(places) != 1 and change.place is None:
        sys.exit(f"'{change.title}': stands in {change.file} {len(places)} times")
    if change.place is not None and change.place > len(places):
        sys.exit(f"'{change.title}': stands in {change.file} only {len(places)} times")
    place = places[(change.place or 1) - 1]
    return text[:place.start()] + "\n".join(change.new) + text[place.end():]


def run_compiler(command, directory, unit):
    process = subprocess.run(command, cwd=directory, stderr=subprocess.PIPE, text=True)
    if process.returncode != 0:
        raise NotBuilt(unit, process.stderr)


class Build:
    def __init__(self, directory, name, kept):
        self.directory, self.name = directory, name
        self.kept = kept  # a directory for the objects that no change is in
        with open(os.path.join(directory, "compile_commands.json"), encoding="utf-8") as commands:
            self.commands = json.load(commands)
        here = os.path.dirname(os.path.abspath(__file__))
        self.root = os.path.dirname(os.path.dirname(here))

    def command_for(self, unit, name):
        """Returns the command that compiles a unit for the checker: for these scenarios, if they have their own."""
        path = os.path.join(self.root, unit)
        for place in (f"/{name}_check.p/", "libbide-checked"):
            for entry in self.commands:
                if place in entry["output"] and \
                        os.path.normpath(os.path.join(entry["directory"], entry["file"])) == path:
                    return shlex.split(entry["command"])
        sys.exit(f"{unit} is not compiled to be checked")

    def compile(self, unit, name, source, includes, output):
        command = self.command_for(unit, name)
        compiler = command.index(next(word for word in command if word.startswith("-")))
        arguments = [word for word in command[compiler:] if word not in ("-MD",)]
        for flag in ("-MQ", "-MF", "-o", "-c"):
            at = arguments.index(flag)
            del arguments[at:at + 2]
        command = command[:compiler] + includes + arguments + ["-w", "-c", source, "-o", output]
        run_compiler(command, self.directory, unit)

    def program(self, change, name, directory, text=None):
        """Builds a program of scenarios with the change, or with this text of the changed file."""
        is_header = change.file.endswith(".h")
        overlay = os.path.join(directory, "include")  # from there a header in src/ is "../src/..."
        changed = os.path.join(directory, change.file)
        for needed in (overlay, os.path.dirname(changed)):
            os.makedirs(needed, exist_ok=True)
        with open(changed, "w", encoding="utf-8") as out:
            out.write(changed_text(self.root, change) if text is None else text)
        scenarios = f"tests/check/{name}_check.c"
        units = [scenarios] + (change.units if is_header or change.units else [change.file])
        objects = []
        for unit in units:
            untouched = not is_header and unit == scenarios
            output = os.path.join(self.kept if untouched else directory, unit.replace("/", "_") + ".o")
            objects.append(output)
            if untouched and os.path.exists(output):
                continue
            source = changed if unit == change.file else os.path.join(self.root, unit)
            includes = ["-I" + overlay, "-I" + os.path.dirname(os.path.join(self.root, unit))]
            self.compile(unit, name, source, [] if untouched else includes, output)
        command = self.command_for(scenarios, name)
        compiler = command[:command.index(next(word for word in command if word.startswith("-")))]
        program = os.path.join(directory, "program")
        run_compiler(compiler + objects + ["-o", program, "src/check/libbide-check.a", "-pthread"],
                     self.directory, scenarios)
        return program


def found_by(program, bound):
    """Returns the finding of the first scenario that fails, or None; and whether all were finished."""
    command = [program, "--executions", str(EXECUTIONS)] + (["--preemptions", bound] if bound else [])
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               text=True)
    found, finished = None, True
    for line in process.stdout:
        match = re.match(r"(\S+) +(.*) \(not .*\): ", line)
        if match:
            found = f"{match[2]}, in `{match[1]}`"
            process.kill()
            break
        if " not finished: " in line:
            finished = False
    process.stdout.close()
    status = process.wait()
    if found is None and status not in (0, 3, 4):
        found = f"status {status}"
    return found, finished


def main():
    with tempfile.TemporaryDirectory() as kept:
        return compare(kept)


def compare(kept):
    directory, name, document = sys.argv[1:4]
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else ""
    build = Build(os.path.abspath(directory), name, kept)
    changes = read_changes(os.path.join(build.root, "tests/check/statements", name + ".txt"))
    rows, bad = ["| file | change | found |", "| --- | --- | --- |"], 0
    for change in changes:
        if only not in change.title:
            continue
        found, finished, not_built = None, True, None
        for scenarios in [name] + change.also:
            if found is None and not_built is None:
                try:
                    with tempfile.TemporaryDirectory() as temporary:
                        found, ended = found_by(build.program(change, scenarios, temporary), change.bound)
                    finished = finished and ended
                except NotBuilt as error:
                    not_built = error
        if not_built is not None:
            sys.stderr.write(not_built.args[1])
            found = f"DOES NOT COMPILE: {not_built.args[0]}"
            bad += 1
        elif found is None and not finished:
            found = "NOT FINISHED"
            bad += 1
        elif found is None and change.reason is None:
            found = "NOTHING IS FOUND, NO REASON IS GIVEN"
            bad += 1
        elif found is None:
            found = "kept: " + change.reason
        elif change.reason is not None:
            print(f"{change.title}: a reason is given, but {found} is found", file=sys.stderr)
            bad += 1
        rows.append(f"| {os.path.basename(change.file)} | {change.title} | {found} |")
        print(rows[-1], flush=True)
    if bad or only:
        return bad != 0
    begin, end, table = f"<!-- {name} statements -->\n", "<!-- end -->\n", "\n".join(rows) + "\n"
    with open(document, encoding="utf-8") as source:
        text = source.read()
    if begin not in text:
        if "--update" not in sys.argv:
            print(f"{document} has no table of the statements of {name}: run this with --update")
            return 1
        text += f"\n## {name.replace('_', ' ').capitalize()}\n\n{begin}{end}"
    before, rest = text.split(begin, 1)
    old, after = rest.split(end, 1)
    if "--update" in sys.argv:
        with open(document, "w", encoding="utf-8") as out:
            out.write(before + begin + table + end + after)
    elif old != table:
        print(f"The table in {document} is not what was found: run this with --update.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
