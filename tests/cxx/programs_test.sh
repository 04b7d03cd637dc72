#!/bin/sh
# The programs in C++20 compile without a warning and run, with each compiler of C++ that is here, over the library
# in C: programs_test.sh INCLUDE-FOLDER LIBRARY PROGRAM... (A library with a sanitizer: its flags come with CFLAGS.)
set -u
include=$1 library=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

ran=0 failed=0
for compiler in g++ clang++; do
    command -v $compiler >/dev/null || continue
    for program in "$@"; do
        ran=$((ran + 1))
        # shellcheck disable=SC2086 # a list of words
        if ! $compiler -std=c++20 -O1 -Wall -Wextra -Wpedantic -Wshadow -Werror ${CFLAGS-} -I"$include" \
            "$program" "$library" -pthread -o "$folder/program"; then
            echo "# FAILED: $compiler does not compile ${program##*/}"
            failed=1
        elif ! "$folder/program"; then
            echo "# FAILED: ${program##*/} by $compiler"
            failed=1
        fi
    done
done
if [ "$ran" -eq 0 ]; then
    echo "no compiler of C++ was found"
    exit 77
fi
echo "# $ran programs were run"
exit $failed
