#!/bin/sh
# A program with pointers at async functions prints the same as plain C (BIDE_SYNCHRONOUS, without bidec), as an async
# program, and as what is emitted of that: synchronous_test.sh BIDEC ROOT LIBRARY
set -eu
bidec=$1
root=$2
library=$3
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
program=$root/tests/bidec/synchronous.c
cc=${BIDE_CC:-gcc}
flags="-std=gnu11 ${BIDE_LEVEL:--O1} -g -Wall -Wextra -Werror ${BIDE_FLAGS:-} -I$root/include"
failed=0

# shellcheck disable=SC2086 # lists of words
{
    $cc $flags -DBIDE_SYNCHRONOUS "$program" -o "$directory/plain" "$library" $BIDE_LIBS
    "$bidec" $cc $flags "$program" -o "$directory/async" "$library" $BIDE_LIBS
    "$bidec" $cc $flags -DNDEBUG "$program" -o "$directory/release" "$library" $BIDE_LIBS
    "$bidec" --emit $cc $flags "$program" >"$directory/emitted.c"
    $cc $flags -w "$directory/emitted.c" -o "$directory/emitted" "$library" $BIDE_LIBS
}
timeout 60 "$directory/plain" >"$directory/expected"
for name in async release emitted; do
    timeout 60 "$directory/$name" | cmp - "$directory/expected" || {
        echo "$name prints something else"
        failed=1
    }
done
exit $failed
