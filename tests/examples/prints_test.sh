#!/bin/sh
# Checks that a program exits with 0 and prints exactly the file: prints_test.sh PROGRAM FILE [ARGUMENT...].
set -u
program=$1 expected=$2
shift 2
out=$(mktemp)
trap 'rm -f "$out"' EXIT
"$program" "$@" >"$out"
status=$?
diff "$expected" "$out" || exit 1
exit $status
