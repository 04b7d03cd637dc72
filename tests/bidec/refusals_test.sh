#!/bin/sh
# Each program in refusals/ is rejected, by the translator or by the compiler after it, at the line that ends with HERE, and
# with the message in its comment: refusals_test.sh BIDEC ROOT. BIDE_COMPILERS names the compilers; the default is all.
set -u
bidec=$1
root=$2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
failed=0

for cc in ${BIDE_COMPILERS:-gcc clang}; do
    command -v "$cc" >/dev/null || continue
    for program in "$root"/tests/bidec/refusals/*.c; do
        says=$(sed -n 's/^ \* says: //p' "$program")
        line=$(grep -n 'HERE \*/' "$program" | cut -d: -f1)
        if "$bidec" "$cc" -std=gnu11 -O1 -Werror=incompatible-pointer-types -I"$root/include" -c "$program" \
            -o "$directory/o" 2>"$directory/said"; then
            echo "$program: $cc: was not rejected"
            failed=1
        elif ! grep -E "error: .*($says)" "$directory/said" | grep -q ":$line:"; then
            echo "$program: $cc: should say at line $line: $says"
            cat "$directory/said"
            failed=1
        fi
    done
done
exit $failed
