#!/bin/sh
# The programs in examples/async print what they should; so do those in Go beside them, where Go is installed; and in C they
# take at most six lines for five in Go, without comments and empty lines. What is emitted of them is compiled without the
# translator, and prints the same. programs_test.sh BIDEC ROOT LIBRARY
set -eu
bidec=$1
root=$2
library=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

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
        -o "$folder/$name" "$library" $BIDE_LIBS
    timeout 60 "$folder/$name" | cmp - "$expected" || fail "$name prints something else"
    # shellcheck disable=SC2086
    "$bidec" --emit ${BIDE_CC:-gcc} -std=gnu11 -I"$root/include" "$program" >"$folder/emitted.c"
    grep -q '^# [0-9]' "$folder/emitted.c" && fail "$name is emitted preprocessed"
    # shellcheck disable=SC2086
    ${BIDE_CC:-gcc} -std=gnu11 ${BIDE_LEVEL:--O1} -Wall -Werror ${BIDE_FLAGS:-} -I"$root/include" "$folder/emitted.c" \
        -o "$folder/emitted" "$library" $BIDE_LIBS
    timeout 60 "$folder/emitted" | cmp - "$expected" || fail "what is emitted of $name prints something else"
    if command -v go >/dev/null && [ -z "${BIDE_FLAGS:-}" ]; then
        GOCACHE=$folder/cache GO111MODULE=off timeout 300 go run "${program%.c}.go" | cmp - "$expected" ||
            fail "$name in Go prints something else"
    fi
    c=$(lines "$program")
    go=$(lines "${program%.c}.go")
    echo "$name: $c lines, in Go $go"
    [ $((c * 5)) -le $((go * 6)) ] || fail "$name is too long"
done
exit $failed
