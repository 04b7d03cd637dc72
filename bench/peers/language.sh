#!/bin/bash
# Measures the object file of a program of 1,000 lines with 168 awaits: bytes of its text (code, constants and tables
# of frames, as `size` counts them), and the processor time that its compilation takes, the least of five. Subjects: async
# functions through bidec, plain functions, and coroutines of C++20. JSON lines on stdout, the rest on stderr.
# Usage: bench/peers/language.sh
set -eu

cd "$(dirname "$0")/../.."
if ! [ -x build/tools/bidec ] || ! command -v python3 size >/dev/null; then
    echo "language.sh: skipped: python3, size and build/tools/bidec are needed" >&2
    exit 0
fi
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
for form in async plain cxx; do
    suffix=c
    [ $form != cxx ] || suffix=cpp
    python3 bench/peers/language_program.py $form 740 1 >"$directory/$form.$suffix"
done

# compile COMMAND...: prints the least processor time, in milliseconds.
compile() {
    local least=
    for _ in 1 2 3 4 5; do
        local used
        used=$({ TIMEFORMAT='%U %S' && time "$@" -o "$directory/out.o" >&2; } 2>&1 | tail -1)
        used=$(echo "$used" | awk '{ print int(($1 + $2) * 1000 + 0.5) }')
        [ -n "$least" ] && [ "$least" -le "$used" ] || least=$used
    done
    echo "$least"
}

# figures SUBJECT COMPILER LEVEL COMMAND...
figures() {
    local subject=$1 params="{\"of\": \"1000 lines\", \"compiler\": \"$2\", \"level\": \"$3\"}" milliseconds
    shift 3
    milliseconds=$(compile "$@")
    echo "{\"bench\": \"language\", \"subject\": \"$subject\", \"value\": $milliseconds, \"unit\": \"ms\", \"params\": $params}"
    echo "{\"bench\": \"language\", \"subject\": \"$subject\", \"value\": $(size "$directory/out.o" | awk 'NR == 2 { print $1 }'), \"unit\": \"bytes\", \"params\": $params}"
}

for cc in gcc clang-14 clang-19; do
    cxx=${cc/clang/clang++}
    cxx=${cxx/gcc/g++}
    for level in -O0 -O2; do
        if command -v $cc >/dev/null; then
            figures translated $cc $level build/tools/bidec $cc -std=gnu11 $level -DNDEBUG -Iinclude -c "$directory/async.c"
            figures plain $cc $level $cc -std=gnu11 $level -c "$directory/plain.c"
        fi
        if command -v "$cxx" >/dev/null; then
            figures c++20 "$cxx" $level "$cxx" -std=c++20 $level -DNDEBUG -Ibench/peers -c "$directory/cxx.cpp"
        fi
    done
done
