#!/bin/sh
# The walk counts everything at any depth, and reports unreadable directories: directory_walk_test.sh PROGRAM.
set -u
program=$1
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

for i in 1 2 3 4 5 6 7 8; do
    mkdir -p "$directory/$i/a/b/c/d"
    printf '%s' 12345 >"$directory/$i/file"
    printf '%s' 123 >"$directory/$i/a/b/c/d/file"
    ln -s .. "$directory/$i/a/up"
    touch "$directory/$i/a/empty"
done
# (the size of a link is its length)
expected="32 files, 40 directories, 80 bytes"
found=$("$program" "$directory") || exit 1
if [ "$found" != "$expected" ]; then
    echo "expected '$expected', got '$found'"
    exit 1
fi

if "$program" "$directory/none" >/dev/null 2>"$directory/error"; then
    echo "a directory that is not there was walked"
    exit 1
fi
grep -q "none: No such file or directory" "$directory/error"
