#!/bin/sh
# The programs in C++ of a document compile without a warning, by each compiler of C++ that is named, and print what the
# text block behind each says: document_test.sh COMPILERS INCLUDE-DIRECTORY LIBRARY DOCUMENT...
# LIBRARIES are those that the library itself needs; CFLAGS has the flags of a sanitizer.
set -u
compilers=$1 include=$2 library=$3
shift 3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

ran=0 failed=0
for document in "$@"; do
    rm -f "$folder"/*
    awk -v folder="$folder" '
        /^```cpp$/ { n++; out = folder "/" n ".cc"; next }
        /^```text$/ { out = folder "/" n ".text"; next }
        /^```/ { out = ""; next }
        out != "" { print > out }' "$document"
    for compiler in $compilers; do
        command -v "$compiler" >/dev/null || continue
        for program in "$folder"/*.cc; do
            [ -e "$program" ] || continue
            ran=$((ran + 1))
            # shellcheck disable=SC2086 # lists of words
            if ! "$compiler" -std=c++20 -O1 -Wall -Wextra -Wpedantic -Wshadow -Werror ${CFLAGS-} -I"$include" "$program" \
                "$library" -pthread ${LIBRARIES-} -o "$folder/program"; then
                echo "# FAILED: ${document##*/}: $compiler does not compile program $(basename "$program" .cc)"
                failed=1
            elif ! "$folder/program" >"$folder/printed"; then
                echo "# FAILED: ${document##*/}: program $(basename "$program" .cc) fails"
                failed=1
            elif ! diff "${program%.cc}.text" "$folder/printed"; then
                echo "# FAILED: ${document##*/}: program $(basename "$program" .cc) prints something else"
                failed=1
            fi
        done
    done
done
if [ "$ran" -eq 0 ]; then
    echo "no compiler of C++ was found"
    exit 77
fi
echo "# $ran programs were run"
exit $failed
