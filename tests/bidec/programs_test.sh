#!/bin/sh
# The programs in examples/async print the expected output, and so do their Go versions, if Go is installed. The C programs
# have at most six lines for five lines of Go, without comments and empty lines. The emitted sources are compiled without
# the translator, and print the same: programs_test.sh BIDEC ROOT LIBRARY
set -eu
bidec=$1
root=$2
library=$3
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
failed=0

# (What is emitted is the text that was compiled before: where rounds are few, which is under the sanitizers of make check,
# it is not compiled once more.)
emits=yes
[ $((8 * ${BIDE_ROUNDS:-1})) -gt 0 ] || emits=no

fail() {
    echo "$@"
    failed=1
}

lines() {
    grep -v '^[[:space:]]*$' "$1" | grep -cvE '^[[:space:]]*(//|/\*.*\*/$)'
}

for program in "$root"/examples/async/*.c; do
    name=$(basename "$program" .c)
    expected=$root/tests/bidec/printed/$name.txt
    # shellcheck disable=SC2086 # lists of words
    "$bidec" ${BIDE_CC:-gcc} -std=gnu11 ${BIDE_LEVEL:--O1} -g -Wall -Wextra -Werror ${BIDE_FLAGS:-} -I"$root/include" "$program" \
        -o "$directory/$name" "$library" $BIDE_LIBS
    timeout 60 "$directory/$name" | cmp - "$expected" || fail "$name prints something else"
    if [ "$emits" = yes ]; then
        # shellcheck disable=SC2086
        "$bidec" --emit ${BIDE_CC:-gcc} -std=gnu11 -I"$root/include" "$program" >"$directory/emitted.c"
        grep -q '^# [0-9]' "$directory/emitted.c" && fail "$name is emitted preprocessed"
        # shellcheck disable=SC2086
        ${BIDE_CC:-gcc} -std=gnu11 ${BIDE_LEVEL:--O1} -Wall -Werror ${BIDE_FLAGS:-} -I"$root/include" "$directory/emitted.c" \
            -o "$directory/emitted" "$library" $BIDE_LIBS
        timeout 60 "$directory/emitted" | cmp - "$expected" || fail "what is emitted of $name prints something else"
    fi
    if command -v go >/dev/null && [ -z "${BIDE_FLAGS:-}" ]; then
        GOCACHE=$directory/cache GO111MODULE=off timeout 300 go run "${program%.c}.go" | cmp - "$expected" ||
            fail "$name in Go prints something else"
    fi
    c=$(lines "$program")
    go=$(lines "${program%.c}.go")
    echo "$name: $c lines, in Go $go"
    [ $((c * 5)) -le $((go * 6)) ] || fail "$name is too long"
done
exit $failed
