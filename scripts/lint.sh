#!/bin/sh
# Runs clang-tidy and cppcheck on the C sources of a build directory: lint.sh [BUILD-DIRECTORY]. The disabled checks, with
# reasons, are in .clang-tidy (here, in tests and in bench) and in .cppcheck-suppressions.

set -u
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1-$root/build}
failed=0

tidies=
for tool in clang-tidy clang-tidy-19; do
    command -v $tool >/dev/null && tidies="$tidies $tool"
done
if [ -z "$tidies" ] || ! command -v cppcheck >/dev/null; then
    echo "skipped: clang-tidy or cppcheck is not installed"
    exit 77
fi

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

# Lists each source once for each variant of the bodies, by its path from the root, whatever it is built into.
python3 - "$root" "$build/compile_commands.json" >"$directory/compile_commands.json" <<'END' || exit 1
import json, os, sys
root, commands = sys.argv[1:]
chosen = {}
for entry in json.load(open(commands)):
    entry["file"] = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
    if entry["file"].endswith(".c") and entry["file"].startswith(root + "/"):
        chosen.setdefault((entry["file"], "BIDE_STANDARD_C=1" in entry["command"]), entry)
json.dump(list(chosen.values()), sys.stdout, indent=1)
END
sed -n 's/.*"file": "\(.*\)",*$/\1/p' "$directory/compile_commands.json" | sort -u >"$directory/sources"

for tool in $tidies; do
    echo "# $tool: $($tool --version | sed -n 's/.*version \([0-9.]*\).*/\1/p')," \
        "$(wc -l <"$directory/sources") sources"
    # One source at a time: clang-tidy 14 carries state over from one source to the next.
    xargs -n 1 -P "$(nproc)" "$tool" -p "$directory" --quiet <"$directory/sources" \
        >"$directory/output" 2>"$directory/errors" || failed=1
    cat "$directory/output"
    grep 'error:' "$directory/errors"
done

echo "# $(cppcheck --version)"
cd "$root" || exit 1
cppcheck --project="$directory/compile_commands.json" --enable=warning,style,performance,portability \
    --std=c11 --quiet --error-exitcode=1 --inline-suppr --suppressions-list=.cppcheck-suppressions \
    --relative-paths="$root" -j "$(nproc)" 2>&1 || failed=1
exit $failed
