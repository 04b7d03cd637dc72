#!/bin/sh
# Each operation whose await gives more than a status has a row in values_test.c, and no operation hides a count: one whose
# struct has a member `count` gives it, or is called with its struct. values_test.sh BIDEC ROOT
set -eu
bidec=$1
root=$2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
"$root"/scripts/editor-header.sh "$bidec" >"$directory/editor.h"
failed=0

# 1. Those with a value.
sed -n 's/^long (\(bide_[a-z0-9_]*\))(.*/\1/p' "$directory/editor.h" >"$directory/values"
[ "$(wc -l <"$directory/values")" -gt 40 ] || { echo "too few operations were found"; failed=1; }
while read -r name; do
    grep -Eq "VALUE\($name,|await $name\(" "$root/tests/bidec/values_test.c" ||
        { echo "$name has no row in values_test.c"; failed=1; }
done <"$directory/values"

# 2. Those without: the struct that the declaration names has no count. (count of a group: how many it waits for)
sed -n 's/^int (\(bide_[a-z0-9_]*\))(.*/\1/p' "$directory/editor.h" >"$directory/statuses"
[ "$(wc -l <"$directory/statuses")" -gt 40 ] || { echo "too few operations were found"; failed=1; }
cat "$root"/include/bide/*.h | tr '\n' ' ' |
    sed 's/} *\(bide_[a-z0-9_]*\);/} \1;\n/g' | sed -n 's/.*typedef struct [a-z0-9_]* {\(.*\)} \(bide_[a-z0-9_]*\);$/\2 \1/p' |
    grep -E '(size_t|uint64_t|unsigned|long) ([a-z_]+, )*count[;,]' | sed 's/ .*//' >"$directory/counting"
grep -q '^bide_copy_operation$' "$directory/counting" || { echo "no struct with a count was found"; failed=1; }
while read -r name; do
    waiter=$(cat "$root"/include/bide/*.h | tr '\n' ' ' | grep -o "bide_awaiter \*$name([a-z0-9_]*" | head -1 | sed 's/.*(//')
    case $name in
    bide_when_*|bide_select_*|bide_connect_any) continue ;; # how many branches, cases or addresses there are
    esac
    if [ -n "$waiter" ] && grep -qx "$waiter" "$directory/counting"; then
        echo "$name gives a status, and its $waiter has a count"
        failed=1
    fi
done <"$directory/statuses"
exit $failed
