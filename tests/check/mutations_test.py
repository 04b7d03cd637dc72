#!/usr/bin/env python3
"""Changes that a rule makes are found: mutations_test.py BUILD NAME DOCUMENT [--update] [--only WORDS] [--jobs N]

Makes the changes of mutations.py to the sources that tests/check/mutations/NAME.txt lists, one at a time, and runs the
scenarios of NAME_check with each: there must be a finding, or the list must give a reason. Compares the tables with those in
DOCUMENT between the lines <!-- NAME mutations --> and <!-- end -->; --update writes the new ones. --only runs the changes
whose titles have these words, and compares nothing. --jobs runs so many changes at once.

    file PATH          a source
    with PATH...       the sources that include the file, as in statements_test.py
    also NAME...       the scenarios of NAME_check, which run if the others find nothing
    executions N       the limit of each scenario
    unfinished         that limit may be reached with a change that is kept; the table says so
    kept: TITLE        a change without a finding; the lines after it, which begin with two spaces, are the reason. TITLE
                       may end with "*": all titles that begin so

What becomes of a change:

    not built    it does not compile
    not run      no scenario runs the statement, which a trap in its place shows
    found        a scenario finds something
    kept         nothing is found, all is explored unless the list has `unfinished`, and it has a reason
    UNFINISHED   nothing is found, but a scenario was not finished
    SURVIVES     nothing is found, and there is no reason
"""
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import mutations  # noqa: E402 (in this directory)
import statements_test  # noqa: E402

FEW = "50"  # executions of each scenario, which find most changes; only the others run up to the limit
SECONDS = "900"  # for what never returns: it is a livelock then. All else ends by the number of executions


class Source:
    def __init__(self, path):
        self.file, self.units, self.also, self.executions, self.reasons = path, [], [], "2000", []
        self.may_be_unfinished = False


def read_list(path):
    sources, titles = [], []
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            line = line.rstrip("\n")
            if not line or line.startswith("#"):
                continue
            if line.startswith("  ") and titles:
                for reason in titles:
                    reason[1] = (reason[1] + " " + line.strip()).strip()
                continue
            if titles and titles[-1][1]:
                titles = []
            word, _, rest = line.partition(" ")
            if word == "file":
                sources.append(Source(rest.strip()))
            elif word == "with":
                sources[-1].units = rest.split()
            elif word == "also":
                sources[-1].also = rest.split()
            elif word == "executions":
                sources[-1].executions = rest.strip()
            elif word == "unfinished":
                sources[-1].may_be_unfinished = True
            elif word == "kept:":
                titles.append([rest.strip(), ""])
                sources[-1].reasons.append(titles[-1])
            else:
                sys.exit(f"{path}:{number}: what is that?")
    return sources


def reason_for(source, title):
    for reason in source.reasons:
        if reason[0] == title or (reason[0].endswith("*") and title.startswith(reason[0][:-1])):
            return reason
    return None


def found_by(program, executions):
    """As statements_test.found_by, with a limit."""
    command = [program, "--executions", executions, "--time", SECONDS]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    found, finished = None, True
    for line in process.stdout:
        match = re.match(r"(\S+) +(.*) \(not .*\): ", line)
        if match:
            found = f"{match[2]}, in `{match[1]}`"
            process.kill()
            break
        finished = finished and " not finished: " not in line
    process.stdout.close()
    status = process.wait()
    if found is None and status not in (0, 3, 4):
        found = f"status {status}"
    return found, finished


class Run:
    def __init__(self, build, name, source):
        self.build, self.name, self.source = build, name, source
        with open(os.path.join(build.root, source.file), encoding="utf-8") as text:
            self.text = text.read()
        self.run_functions = {}
        found = self.find(self.text)[0]  # compiles the scenarios, once for all changes
        if found is not None:
            sys.exit(f"{source.file} without a change: {found}")

    def find(self, text):
        finished = True
        for scenarios in [self.name] + self.source.also:
            with tempfile.TemporaryDirectory() as temporary:
                program = self.build.program(self.source, scenarios, temporary, text)
                found, ended = found_by(program, FEW)
                if found is None and not ended:
                    found, ended = found_by(program, self.source.executions)
            finished = finished and ended
            if found is not None:
                return found, True
        return None, finished

    def is_run(self, mutant):
        """True if a scenario runs the statement."""
        if mutant.function not in self.run_functions:
            trapping = dict(mutations.traps(self.text))[mutant.function]
            self.run_functions[mutant.function] = self.find(trapping)[0] is not None
        return self.run_functions[mutant.function]

    def result(self, mutant):
        """Returns one of the words above, and the finding or the reason."""
        if not self.is_run(mutant):
            return "not run", ""
        try:
            found, finished = self.find(mutant.text)
        except statements_test.NotBuilt:
            return "not built", ""
        if found is not None:
            return "found", found
        try:
            if self.find(mutations.trap_before(self.text, mutant.place))[0] is None:
                return "not run", ""
        except statements_test.NotBuilt:
            pass
        reason = reason_for(self.source, mutant.title)
        if not finished and not self.source.may_be_unfinished:
            return "UNFINISHED", ""
        return ("SURVIVES", "") if reason is None else ("kept", reason[1])


def tables(results):
    """results: a source, and its mutants with their results."""
    words = ["not built", "not run", "found", "kept"]
    rows = ["| file | changes | " + " | ".join(words) + " | found of those that are run |",
            "| --- | --- |" + " --- |" * 5]
    for source, of_file in results:
        count = {word: sum(result[0] == word for _, result in of_file) for word in words}
        run = count["found"] + count["kept"]
        share = f"{100 * count['found'] // run} %" if run else ""
        rows.append(f"| {os.path.basename(source.file)} | {len(of_file)} | "
                    + " | ".join(str(count[word]) for word in words) + f" | {share} |")
    for source, _ in results:
        if source.may_be_unfinished:
            rows += ["", f"{os.path.basename(source.file)}: each scenario ends after {source.executions} executions, and some"
                     " are unfinished then."]
    rows += ["", "| file | kept, although nothing is found | why |", "| --- | --- | --- |"]
    for source, of_file in results:
        rows += [f"| {os.path.basename(source.file)} | {mutant.title.replace('|', chr(92) + '|')} | {why} |"
                 for mutant, (word, why) in of_file if word == "kept"]
    return "\n".join(rows) + "\n"


def compare(document, name, table, update):
    begin, end = f"<!-- {name} mutations -->\n", "<!-- end -->\n"
    with open(document, encoding="utf-8") as source:
        text = source.read()
    if begin not in text:
        if not update:
            print(f"{document} has no table of the mutations of {name}: run this with --update")
            return 1
        text += f"\n## {name.replace('_', ' ').capitalize()}\n\n{begin}{end}"
    before, rest = text.split(begin, 1)
    old, after = rest.split(end, 1)
    if update:
        with open(document, "w", encoding="utf-8") as out:
            out.write(before + begin + table + end + after)
    elif old != table:
        print(f"The table in {document} is not what was found: run this with --update.")
        return 1
    return 0


def main():
    directory, name, document = sys.argv[1:4]
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else ""
    jobs = int(sys.argv[sys.argv.index("--jobs") + 1]) if "--jobs" in sys.argv else 1
    bad, results, used = 0, [], []
    with tempfile.TemporaryDirectory() as kept, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        build = statements_test.Build(os.path.abspath(directory), name, kept)
        for source in read_list(os.path.join(build.root, "tests/check/mutations", name + ".txt")):
            run, of_file = Run(build, name, source), []
            mutants = [m for m in mutations.mutants(run.text) if only in m.title]
            for mutant, result in zip(mutants, pool.map(run.result, mutants)):
                used.append(reason_for(source, mutant.title))
                if result[0] != "kept" and used[-1] is not None and not used[-1][0].endswith("*"):
                    print(f"{mutant.title}: a reason is given, but: {result[0]}", file=sys.stderr)
                    bad += 1
                bad += result[0].isupper()
                of_file.append((mutant, result))
                print(f"{result[0]}: {mutant.title}{': ' if result[1] else ''}{result[1]}", flush=True)
            for reason in source.reasons:
                if not only and all(reason is not other for other in used):
                    print(f"{reason[0]}: there is no such change", file=sys.stderr)
                    bad += 1
            results.append((source, of_file))
    table = tables(results)
    print(table)
    return 1 if bad else 0 if only else compare(document, name, table, "--update" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
