#!/bin/sh
# Each program in refusals/ is refused, by the translator or by the compiler behind it, at the line that ends with HERE and
# in the words of its comment: refusals_test.sh BIDEC ROOT. By the compilers that BIDE_COMPILERS names, or all.
set -u
bidec=$1
root=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

for cc in ${BIDE_COMPILERS:-gcc clang}; do
    command -v "$cc" >/dev/null || continue
    for program in "$root"/tests/bidec/refusals/*.c; do
        says=$(sed -n 's/^ \* says: //p' "$program")
        line=$(grep -n 'HERE \*/' "$program" | cut -d: -f1)
        if "$bidec" "$cc" -std=gnu11 -O1 -Werror=incompatible-pointer-types -I"$root/include" -c "$program" \
            -o "$folder/o" 2>"$folder/said"; then
            echo "$program: $cc: was not refused"
            failed=1
        elif ! grep -E "error: .*($says)" "$folder/said" | grep -q ":$line:"; then
            echo "$program: $cc: should say at line $line: $says"
            cat "$folder/said"
            failed=1
        fi
    done
done
exit $failed
