"""Runs Redis 7.0's own tests against the key-value server: redis_suite_test.py PROGRAM [UNIT...].

The tests of redis_suite.txt must pass; that list only grows. Others are counted, by the reason for which they fail. The source
is that of Debian's package: in the directory REDIS_SOURCE if that is set, and fetched by apt-get otherwise. Nothing of it is kept.
Without it, or without tclsh, the test is skipped. With REDIS_SUITE_REPORT=1, all results are printed.
"""
import collections
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

from client import Server

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "redis_suite.txt")
UNITS = "bitfield bitops expire hash incr introspection keyspace list multi other protocol pubsub quit scan set sort string zset".split()
# (tests that are not for a server that already runs are left out by the suite itself)
OPTIONS = ("--singledb", "--durable", "--ignore-encoding", "--ignore-digest", "--tags",
           "-needs:debug -needs:repl -needs:save -needs:config-maxmemory -slow")


def skip(reason):
    print("skipped:", reason)
    sys.exit(77)


def find_source(directory):
    source = os.environ.get("REDIS_SOURCE")
    if source is None:
        try:
            done = subprocess.run(["apt-get", "source", "--download-only", "redis"], cwd=directory, capture_output=True, timeout=120)
        except (OSError, subprocess.TimeoutExpired):
            skip("apt-get cannot fetch the source")
        archives = glob.glob(os.path.join(directory, "redis_7.0*.orig.tar.*"))
        if done.returncode != 0 or not archives:
            skip("apt-get has no source of redis 7.0; REDIS_SOURCE may name its directory")
        subprocess.run(["tar", "xf", archives[0]], cwd=directory, check=True)
        source = glob.glob(os.path.join(directory, "redis-7.0*/"))[0]
    return source


def rewrite(path, pattern, replacement):
    with open(path, encoding="latin-1") as file:
        text = file.read()
    with open(path, "w", encoding="latin-1") as file:
        file.write(re.sub(pattern, replacement, text, flags=re.M))


def copy_suite(source, directory):
    """A copy in which settings and functions that the server lacks are no errors, and no test leaves a transaction open."""
    suite = os.path.join(directory, "suite")
    shutil.copytree(os.path.join(source, "tests"), os.path.join(suite, "tests"), symlinks=True)
    settings = r"^( *)(r config set (?:list|hash|set|zset|proto|client|slave|repl|appendonly|save|\$)[^\]\n;}]*)$"
    rewrite(os.path.join(suite, "tests/support/server.tcl"), r"^( *)(r function flush|r config set \$param \$val)$", r"\1catch {\2}")
    rewrite(os.path.join(suite, "tests/support/test.tcl"), r"^( *)incr ::num_tests$", r"\1catch {r discard}\n\1incr ::num_tests")
    rewrite(os.path.join(suite, "tests/support/util.tcl"), r"^proc memory_usage .*$", r"\g<0>\n    return 1")
    for path in glob.glob(os.path.join(suite, "tests/unit/**/*.tcl"), recursive=True):
        rewrite(path, settings, r"\1catch {\2}")
    return suite


def path_of(suite, unit):
    return "unit/type/" + unit if os.path.exists(os.path.join(suite, "tests/unit/type", unit + ".tcl")) else "unit/" + unit


def run_unit(suite, unit, port):
    """The names of tests that pass, and those that fail with the reasons. None if the machine is too slow to judge it."""
    command = ["tclsh", "tests/test_helper.tcl", "--host", "127.0.0.1", "--port", str(port), "--single", path_of(suite, unit), *OPTIONS]
    try:
        output = subprocess.run(command, cwd=suite, capture_output=True, timeout=300).stdout
    except subprocess.TimeoutExpired:
        return None
    lines = re.sub(r"\x1b\[[0-9;]*m", "", output.decode("latin-1")).split("\n")
    passed, failed = set(), {}
    for i, line in enumerate(lines):
        if found := re.match(r"\[ok\]: (.*) \([0-9]+ ms\)$", line):
            passed.add(f"{unit}: {found[1]}")
        elif found := re.match(r"\*\*\* \[err\]: (.*) in tests/", line):
            failed[f"{unit}: {found[1]}"] = lines[i + 1] if i + 1 < len(lines) else ""
    return passed, failed


def reason_of(text):
    if found := re.search(r"command '(\w+)", text):
        return f"command {found[1].upper()} is missing"
    if "CONFIG RESETSTAT" in text or "ONFIG GET" in text:
        return "CONFIG SET is missing"
    return text[:100]


def main():
    Server.program, Server.io = os.path.abspath(sys.argv[1]), "epoll"
    if not shutil.which("tclsh"):
        skip("tclsh is missing")
    with open(LIST, encoding="utf-8") as file:
        wanted = {line.rstrip("\n") for line in file if line.strip() and not line.startswith("#")}
    directory = tempfile.mkdtemp(dir=os.environ.get("BIDE_FOLDER"))
    units = sys.argv[2:] or UNITS
    passed, failed, judged = set(), {}, []
    try:
        suite = copy_suite(find_source(directory), directory)
        for unit in units:
            with Server("--append-only", os.path.join(directory, unit), says=True) as server:
                results = run_unit(suite, unit, server.port)
            if results is None:
                print(f"{unit}: not complete after five minutes, so it is left out", flush=True)
                continue
            judged.append(unit)
            good, bad = results
            print(f"{unit}: {len(good)} passed, {len(bad)} failed", flush=True)
            passed |= good
            failed.update(bad)
    finally:
        shutil.rmtree(directory)
    missing = sorted(name for name in wanted - passed if name.split(":")[0] in judged)
    reasons = collections.Counter(reason_of(text) for text in failed.values())
    for reason, count in reasons.most_common(None if "REDIS_SUITE_REPORT" in os.environ else 12):
        print(f"    {count} failed: {reason}")
    if "REDIS_SUITE_REPORT" in os.environ:
        for name in sorted(passed):
            print("passed", name)
        for name in sorted(failed):
            print("failed", name, failed[name])
    for name in missing:
        print("FAILED", name, failed.get(name, "(it has not run)"))
    print(f"{len(passed)} passed, {len(failed)} failed; {len(wanted)} are in the list, {len(missing)} of these did not pass")
    sys.exit(len(missing) > 0)


main()
