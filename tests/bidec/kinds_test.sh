#!/bin/sh
# The kinds of coroutine in examples/kinds, in async C, print what the same kinds print with bodies by hand
# (tests/examples), and so do their emitted sources: kinds_test.sh BIDEC ROOT LIBRARY
set -eu
bidec=$1
root=$2
library=$3
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
failed=0

fail() {
    echo "$@"
    failed=1
}

for program in "$root"/examples/kinds/*.c; do
    name=$(basename "$program" .c)
    # a body by hand is called name_body
    sed 's/_body failed/ failed/' "$root/tests/examples/$(echo "$name" | tr _ -).txt" >"$directory/expected"
    # shellcheck disable=SC2086 # lists of words
    "$bidec" ${BIDE_CC:-gcc} -std=gnu11 ${BIDE_LEVEL:--O1} -g -Wall -Wextra -Werror ${BIDE_FLAGS:-} -I"$root/include" "$program" \
        -o "$directory/$name" "$library" $BIDE_LIBS
    timeout 60 "$directory/$name" | cmp - "$directory/expected" || fail "$name prints something else"
    "$bidec" --emit ${BIDE_CC:-gcc} -std=gnu11 -I"$root/include" "$program" >"$directory/emitted.c"
    grep -q '^# [0-9]' "$directory/emitted.c" && fail "$name is emitted preprocessed"
    # shellcheck disable=SC2086
    ${BIDE_CC:-gcc} -std=gnu11 ${BIDE_LEVEL:--O1} -Wall -Werror ${BIDE_FLAGS:-} -I"$root/include" "$directory/emitted.c" \
        -o "$directory/emitted" "$library" $BIDE_LIBS
    timeout 60 "$directory/emitted" | cmp - "$directory/expected" || fail "what is emitted of $name prints something else"
done
exit $failed
