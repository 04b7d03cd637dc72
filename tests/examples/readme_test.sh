#!/bin/sh
# The programs in the documents compile without a warning and print what the documents say: each block of
# C is one program, and the block of text after it is its output. readme_test.sh CC SOURCE-ROOT LIBRARY
# DOCUMENT...
set -u
cc=$1 root=$2 library=$3
shift 3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

for document in "$@"; do
    # Numbers the blocks: 1.c and 1.text, 2.c and so on.
    awk -v folder="$folder" '
        /^```c$/ { n++; out = folder "/" n ".c"; next }
        /^```text$/ { out = folder "/" n ".text"; next }
        /^```/ { out = ""; next }
        out != "" { print > out }' "$root/$document"
    programs=0
    for program in "$folder"/*.c; do
        [ -e "$program" ] || continue
        programs=$((programs + 1))
        name=${program%.c}
        # (the library may be built with a sanitizer: its flags come with CFLAGS)
        if ! $cc -std=c11 -O1 -Wall -Wextra -Wpedantic -Werror ${CFLAGS-} -I"$root/include" \
            "$program" "$library" -pthread -o "$name.program" 2>"$folder/errors"; then
            echo "# FAILED: $document: a program does not compile"
            cat "$folder/errors"
            failed=1
        elif ! "$name.program" >"$name.printed"; then
            echo "# FAILED: $document: a program fails"
            failed=1
        elif [ -e "$name.text" ] && ! diff "$name.text" "$name.printed"; then
            echo "# FAILED: $document: a program prints something else"
            failed=1
        fi
    done
    echo "# $document: $programs programs"
    rm -f "$folder"/*
done
exit $failed
