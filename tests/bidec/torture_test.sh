#!/bin/sh
# Programs whose functions await before each statement, in each condition and in some operands. They must behave as the
# same programs without awaits: torture_test.sh BIDEC TORTURE ROOT LIBRARY
#
# Each program is tried in two ways: with the awaits in parentheses and braces of their own, and bare: half of the literals
# are an await, each function is created, each call is awaited, and nothing protects them.
#
# BIDE_TORTURE=long adds GCC's torture tests, if its sources are installed (/usr/src/gcc-*), and BIDE_CSMITH programs from
# csmith, with a printed seed, at -O0 and -O2, by clang 19 as well if it is installed. Of GCC's tests it takes one in
# BIDE_TORTURE_SHARE; 1 takes all. A program that depends on its stack or on its text is rejected, or left out here. The
# programs in gcc_torture.txt have passed bare, and must not be rejected again: the list only grows.
# BIDE_TORTURE_PASSED=FILE writes the names of those that pass bare.
set -u
bidec=$1
torture=$2
root=$3
library=$4
cc=${BIDE_CC:-gcc}
flags=${BIDE_FLAGS:-}
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
failed=0
passed=0
refused=0
skipped=0
bare=
# foreign programs are tried bare by gcc only: clang rejects many of their conversions
foreign=
case "$cc$flags" in *gcc | *gcc-[0-9]*) foreign=--bare ;; esac

# These depend on the addresses of locals, on the names of functions, or on how one compiler treats overflow.
left_out=' 20001011-1 return-addr 980608-1 bcp-1 fprintf-2 printf-2 '

# The program without awaits: its status in $status, its output in `expected`, and its text in `in.i`. Once for all
# consecutive seeds.
prepared=
patience=60 # seconds
prepare() { # PROGRAM OPTIONS
    prepared=
    rm -f "$directory"/*
    # shellcheck disable=SC2086
    $cc -std=gnu17 -w $2 $flags "$1" -o "$directory/plain" -lm 2>/dev/null || return 1
    timeout "$patience" "$directory/plain" >"$directory/expected" 2>/dev/null
    status=$?
    # shellcheck disable=SC2086
    [ $status -lt 124 ] &&
        $cc -std=gnu17 -w -E -D__BIDEC__ $flags -I"$root/include" -I"$root/tests/bidec" -include torture.h "$1" \
            >"$directory/in.i" 2>/dev/null
}

try() { # PROGRAM SEED OPTIONS OWN
    if [ "$prepared" != "$1 $3" ]; then
        prepare "$1" "$3" || { skipped=$((skipped + 1)); return; }
        prepared="$1 $3"
    fi
    # shellcheck disable=SC2086
    if ! "$torture" $bare "$2" <"$directory/in.i" >"$directory/tortured.i" 2>"$directory/said" ||
        ! "$bidec" <"$directory/tortured.i" >"$directory/out.i" 2>"$directory/said"; then
        if grep -q ': error: ' "$directory/said"; then
            refused=$((refused + 1))
            [ -z "${4:-}" ] || { echo "$1: refused:"; cat "$directory/said"; failed=$((failed + 1)); }
        else
            echo "$1: seed $2: the translator failed without an error message:"
            cat "$directory/said"
            failed=$((failed + 1))
        fi
        return
    fi
    # (A foreign function with thousands of awaits may take the compiler minutes.)
    limit=
    [ -n "${4:-}" ] || limit='timeout 60'
    # shellcheck disable=SC2086
    $limit $cc -std=gnu17 -w $3 $flags "$directory/out.i" -o "$directory/tortured" "$library" $BIDE_LIBS -lm 2>"$directory/said"
    compiled=$?
    if [ $compiled -eq 124 ]; then
        skipped=$((skipped + 1))
        return
    fi
    if [ $compiled -ne 0 ]; then
        # Some foreign programs have variables that cannot be members of a struct.
        refused=$((refused + 1))
        [ -z "${4:-}" ] || { echo "$1: seed $2: does not compile:"; head -5 "$directory/said"; failed=$((failed + 1)); }
        return
    fi
    timeout 60 "$directory/tortured" >"$directory/seen" 2>/dev/null
    got=$?
    # (A foreign program may run for a minute: its awaits take a hundred times as long as its literals.)
    if [ $got -eq 124 ] && [ -z "${4:-}" ]; then
        skipped=$((skipped + 1))
        return
    fi
    if [ $got != "$status" ] || ! cmp -s "$directory/expected" "$directory/seen"; then
        echo "$1: $bare seed $2 $3: ends with $got, not $status, or prints something else"
        diff "$directory/expected" "$directory/seen" | head -5
        failed=$((failed + 1))
        return
    fi
    passed=$((passed + 1))
}

# (one of them where rounds are few, which is under the sanitizers of make check)
seeds='1 2'
[ $((8 * ${BIDE_ROUNDS:-1})) -gt 0 ] || seeds=1
for program in "$root"/tests/bidec/programs/*.c; do
    for seed in $seeds; do
        try "$program" $seed "${BIDE_LEVEL:--O1}" own
    done
    bare=--bare
    try "$program" 1 "${BIDE_LEVEL:--O1}" own
    bare=
done

if [ "${BIDE_TORTURE:-}" = long ]; then
    for program in "$root"/tests/bidec/programs/*.c; do
        for level in -O0 -O2; do
            for seed in 3 4 5 6 7 8; do
                bare=
                try "$program" $seed $level own
                bare=--bare
                try "$program" $seed $level own
            done
        done
    done
    # (clang 19 takes the programs of csmith bare)
    compiled_by=$cc
    compilers=$cc
    [ -z "$foreign" ] || ! command -v clang-19 >/dev/null || compilers="$cc clang-19"
    if command -v csmith >/dev/null; then
        seed=${BIDE_SEED:-$(date +%s)}
        echo "BIDE_SEED=$seed"
        made=$(mktemp -d)
        patience=5 # (some of them never end)
        for n in $(seq 1 "${BIDE_CSMITH:-10}"); do
            csmith --seed $((seed + n)) --no-packed-struct --max-funcs 4 --max-block-depth 3 >"$made/csmith.c"
            C_INCLUDE_PATH=$(dirname "$(find /usr/include -name csmith.h 2>/dev/null | head -1)")
            export C_INCLUDE_PATH
            for compiler in $compilers; do
                prepared=
                cc=$compiler
                for bare in '' $foreign; do
                    try "$made/csmith.c" $((seed + n)) "$([ $((n % 2)) -eq 0 ] && echo -O0 || echo -O2)"
                done
            done
            cc=$compiled_by
        done
        rm -rf "$made"
        patience=60
    fi
    archive=$(ls /usr/src/gcc-*/gcc-*.tar.xz 2>/dev/null | head -1)
    if [ -n "$archive" ]; then
        sources=$(mktemp -d)
        tar xf "$archive" -C "$sources" --wildcards '*/gcc.c-torture/execute/*.c' --strip-components=5
        # shellcheck disable=SC2044
        for program in $(find "$sources" -name '*.c' | sort); do
            name=$(basename "$program" .c)
            case "$left_out" in *" $name "*) continue ;; esac
            # one of so many
            if [ -f "$program" ]; then
                number=$((${number:-0} + 1))
                [ $((number % ${BIDE_TORTURE_SHARE:-20})) -eq 0 ] || continue
                bare=
                try "$program" 1 -O1
                [ -n "$foreign" ] || continue
                bare=$foreign
                own=
                grep -qx "$name" "$root/tests/bidec/gcc_torture.txt" && own=own
                before=$passed
                try "$program" 1 -O1 $own
                [ -z "${BIDE_TORTURE_PASSED:-}" ] || [ $passed = "$before" ] || echo "$name" >>"$BIDE_TORTURE_PASSED"
            fi
        done
        rm -rf "$sources"
    fi
fi
echo "$passed passed, $failed failed, $refused refused, $skipped not run"
[ $failed -eq 0 ]
