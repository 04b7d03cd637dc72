#!/bin/sh
# The programs in C++ compile without a warning and run, with each compiler of C++ that is here, over the library
# in C: programs_test.sh INCLUDE-DIRECTORY LIBRARY PROGRAM... (A library with a sanitizer: its flags come with CFLAGS.)
# Those of bodies, in each C++ since C++11 and in both variants; the others in C++20.
set -u
include=$1 library=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

ran=0 failed=0
# shellcheck disable=SC2086 # a list of words
run() { # COMPILER STANDARD PROGRAM [OPTION]
    ran=$((ran + 1))
    if ! $1 -std=$2 ${4-} -O1 -Wall -Wextra -Wpedantic -Wshadow -Werror ${CFLAGS-} -I"$include" \
        "$3" "$library" -pthread ${LIBRARIES-} -o "$folder/program"; then
        echo "# FAILED: $1 -std=$2 ${4-} does not compile ${3##*/}"
        failed=1
    elif ! "$folder/program"; then
        echo "# FAILED: ${3##*/} by $1 -std=$2 ${4-}"
        failed=1
    fi
}

for compiler in g++ clang++-14 clang++-19 clang++; do
    command -v $compiler >/dev/null || continue
    for program in "$@"; do
        case $program in
        */bodies*)
            for standard in c++11 c++14 c++17 c++20 c++2b; do
                run $compiler $standard "$program"
            done
            run $compiler c++11 "$program" -DBIDE_STANDARD_C=0
            ;;
        *) run $compiler c++20 "$program" ;;
        esac
    done
done
if [ "$ran" -eq 0 ]; then
    echo "no compiler of C++ was found"
    exit 77
fi
echo "# $ran programs were run"
exit $failed
