#!/bin/sh
# A program ends with 0 and prints just what it should: prints_test.sh PROGRAM FILE.
set -u
out=$(mktemp)
trap 'rm -f "$out"' EXIT
"$1" >"$out"
status=$?
diff "$2" "$out" || exit 1
exit $status
