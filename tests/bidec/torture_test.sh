#!/bin/sh
# Programs whose functions await before each statement, in each condition and in some operands, beside what they are
# without: torture_test.sh BIDEC TORTURE ROOT LIBRARY
#
# BIDE_TORTURE=long: GCC's own torture tests too, where its sources are installed (/usr/src/gcc-*), and programs of
# csmith, with a printed seed. Of GCC's it takes one in BIDE_TORTURE_SHARE, 1 for all. A program that means something about its stack or its text is refused, or left out here.
set -u
bidec=$1
torture=$2
root=$3
library=$4
cc=${BIDE_CC:-gcc}
flags=${BIDE_FLAGS:-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
passed=0
refused=0
skipped=0

# What these are about is lost: the addresses of locals, the names of functions, overflow as one compiler sees it.
left_out=' 20001011-1 return-addr 980608-1 bcp-1 fprintf-2 printf-2 '

try() { # PROGRAM SEED OPTIONS
    name=$(basename "$1" .c)
    rm -f "$folder"/*
    # shellcheck disable=SC2086
    if ! $cc -std=gnu17 -w $3 $flags "$1" -o "$folder/plain" -lm 2>/dev/null; then
        skipped=$((skipped + 1))
        return
    fi
    timeout 60 "$folder/plain" >"$folder/expected" 2>/dev/null
    status=$?
    if [ $status -ge 124 ]; then
        skipped=$((skipped + 1))
        return
    fi
    # shellcheck disable=SC2086
    $cc -std=gnu17 -w -E -D__BIDEC__ $flags -I"$root/include" -I"$root/tests/bidec" -include torture.h "$1" \
        >"$folder/in.i" 2>/dev/null || { skipped=$((skipped + 1)); return; }
    if ! "$torture" "$2" <"$folder/in.i" >"$folder/tortured.i" 2>"$folder/said" ||
        ! "$bidec" <"$folder/tortured.i" >"$folder/out.i" 2>"$folder/said"; then
        if grep -q ': error: ' "$folder/said"; then
            refused=$((refused + 1))
            [ -z "${4:-}" ] || { echo "$1: refused:"; cat "$folder/said"; failed=$((failed + 1)); }
        else
            echo "$1: seed $2: the translator ended badly:"
            cat "$folder/said"
            failed=$((failed + 1))
        fi
        return
    fi
    # shellcheck disable=SC2086
    if ! $cc -std=gnu17 -w $3 $flags "$folder/out.i" -o "$folder/tortured" "$library" $BIDE_LIBS -lm 2>"$folder/said"; then
        # (of others' programs some are about what a struct cannot have as a member)
        refused=$((refused + 1))
        [ -z "${4:-}" ] || { echo "$1: seed $2: does not compile:"; head -5 "$folder/said"; failed=$((failed + 1)); }
        return
    fi
    timeout 60 "$folder/tortured" >"$folder/seen" 2>/dev/null
    got=$?
    if [ $got != $status ] || ! cmp -s "$folder/expected" "$folder/seen"; then
        echo "$1: seed $2 $3: ends with $got, not $status, or prints something else"
        diff "$folder/expected" "$folder/seen" | head -5
        failed=$((failed + 1))
        return
    fi
    passed=$((passed + 1))
}

for program in "$root"/tests/bidec/programs/*.c; do
    for seed in 1 2; do
        try "$program" $seed "${BIDE_LEVEL:--O1}" own
    done
done

if [ "${BIDE_TORTURE:-}" = long ]; then
    for program in "$root"/tests/bidec/programs/*.c; do
        for seed in 3 4 5 6 7 8; do
            for level in -O0 -O2; do
                try "$program" $seed $level own
            done
        done
    done
    if command -v csmith >/dev/null; then
        seed=${BIDE_SEED:-$(date +%s)}
        echo "BIDE_SEED=$seed"
        made=$(mktemp -d)
        for n in $(seq 1 "${BIDE_CSMITH:-10}"); do
            csmith --seed $((seed + n)) --no-packed-struct --max-funcs 4 --max-block-depth 3 >"$made/csmith.c"
            C_INCLUDE_PATH=$(dirname "$(find /usr/include -name csmith.h 2>/dev/null | head -1)") \
                try "$made/csmith.c" $((seed + n)) -O1
        done
        rm -rf "$made"
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
                [ $((number % ${BIDE_TORTURE_SHARE:-20})) -eq 0 ] && try "$program" 1 -O1
            fi
        done
        rm -rf "$sources"
    fi
fi
echo "$passed passed, $failed failed, $refused refused, $skipped not run"
[ $failed -eq 0 ]
