#!/usr/bin/env python3
"""Each statement is needed: statements_test.py BUILD NAME DOCUMENT [--update] [--only WORDS]

Changes the library's sources as tests/check/statements/NAME.txt says, one change at a time, and runs the scenarios of
NAME_check with each: something must be found, or a reason must be given. Compares the table with the one in DOCUMENT
between the lines <!-- NAME statements --> and <!-- end -->; with --update the document gets the new table.

A list of changes is made of these lines:

    file PATH           the changes below are of this file
    with PATH...        what includes it, beside NAME_check.c: compiled anew too, in place of it if it is no header
    * TEXT              a change, in words
    - TEXT              what stands there, over any number of lines; spaces do not count
    at N                the N-th such place; without it there must be but one
    + TEXT              what stands there instead, if anything
    also NAME...        the scenarios of NAME_check are run too, if those of the first find nothing
    preemptions N       only executions with so few are looked at: there would be too many
    kept: TEXT          nothing is found; why that is right. May go on with lines that begin with two spaces
"""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

EXECUTIONS = 2000000  # of each scenario: more than any has as it is


class NotBuilt(Exception):
    """A change does not compile, or is not linked."""


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
    """The file with the change made."""
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


def run_compiler(command, folder, unit):
    process = subprocess.run(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    if process.returncode != 0:
        sys.stderr.write(process.stderr)
        raise NotBuilt(unit)


class Build:
    def __init__(self, folder, name, kept):
        self.folder, self.name = folder, name
        self.kept = kept  # a folder for the objects that no change is in
        with open(os.path.join(folder, "compile_commands.json"), encoding="utf-8") as commands:
            self.commands = json.load(commands)
        here = os.path.dirname(os.path.abspath(__file__))
        self.root = os.path.dirname(os.path.dirname(here))

    def command_for(self, unit, name):
        """How a unit is compiled to be checked."""
        path = os.path.join(self.root, unit)
        for entry in self.commands:
            if "libbide-checked" not in entry["output"] and f"/{name}_check.p/" not in entry["output"]:
                continue
            if os.path.normpath(os.path.join(entry["directory"], entry["file"])) == path:
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
        run_compiler(command, self.folder, unit)

    def program(self, change, name, folder):
        """A program of scenarios with the change made."""
        is_header = change.file.endswith(".h")
        overlay = os.path.join(folder, "include")  # from there a header in src/ is "../src/..."
        changed = os.path.join(folder, change.file)
        for needed in (overlay, os.path.dirname(changed)):
            os.makedirs(needed, exist_ok=True)
        with open(changed, "w", encoding="utf-8") as out:
            out.write(changed_text(self.root, change))
        scenarios = f"tests/check/{name}_check.c"
        units = [scenarios] + (change.units if is_header or change.units else [change.file])
        objects = []
        for unit in units:
            untouched = not is_header and unit == scenarios
            output = os.path.join(self.kept if untouched else folder, unit.replace("/", "_") + ".o")
            objects.append(output)
            if untouched and os.path.exists(output):
                continue
            source = changed if unit == change.file else os.path.join(self.root, unit)
            includes = ["-I" + overlay, "-I" + os.path.dirname(os.path.join(self.root, unit))]
            self.compile(unit, name, source, [] if untouched else includes, output)
        command = self.command_for(scenarios, name)
        compiler = command[:command.index(next(word for word in command if word.startswith("-")))]
        program = os.path.join(folder, "program")
        run_compiler(compiler + objects + ["-o", program, "src/check/libbide-check.a", "-pthread"],
                     self.folder, scenarios)
        return program


def found_by(program, bound):
    """What the first scenario that fails finds, or None; and whether all were finished."""
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
    if found is None and status not in (0, 3):
        found = f"status {status}"
    return found, finished


def main():
    with tempfile.TemporaryDirectory() as kept:
        return compare(kept)


def compare(kept):
    folder, name, document = sys.argv[1:4]
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else ""
    build = Build(os.path.abspath(folder), name, kept)
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
            found = f"DOES NOT COMPILE: {not_built}"
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


sys.exit(main())
