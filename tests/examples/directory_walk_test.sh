#!/bin/sh
# The walk counts what is there, however deep, and says what it could not read: directory_walk_test.sh PROGRAM.
set -u
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

for i in 1 2 3 4 5 6 7 8; do
    mkdir -p "$folder/$i/a/b/c/d"
    printf '%s' 12345 >"$folder/$i/file"
    printf '%s' 123 >"$folder/$i/a/b/c/d/file"
    ln -s .. "$folder/$i/a/up"
    touch "$folder/$i/a/empty"
done
# (a link is its own length)
expected="32 files, 40 directories, 80 bytes"
found=$("$program" "$folder") || exit 1
if [ "$found" != "$expected" ]; then
    echo "expected '$expected', got '$found'"
    exit 1
fi

if "$program" "$folder/none" >/dev/null 2>"$folder/error"; then
    echo "a directory that is not there was walked"
    exit 1
fi
grep -q "none: No such file or directory" "$folder/error"
