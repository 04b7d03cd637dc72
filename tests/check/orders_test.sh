#!/bin/sh
# Each memory order is needed: orders_test.sh PROGRAM NAME DOCUMENT [--update].
#
# Runs the scenarios of PROGRAM with each memory order weakened in turn. Each weakening must have a finding or a reason. Compares the
# table with the one in DOCUMENT between the lines <!-- NAME --> and <!-- end -->. --update writes the
# new table to the document.

set -u
program=$1 name=$2 document=$3 update=${4-}
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

"$program" --weaken >"$directory/new"
status=$?
cat "$directory/new"
[ "$status" -eq 0 ] || exit 1

if [ "$update" = --update ]; then
    awk -v name="<!-- $name -->" -v table="$directory/new" '
        $0 == "<!-- end -->" { skipping = 0 }
        !skipping { print }
        $0 == name { skipping = 1; while ((getline line < table) > 0) print line }' \
        "$document" >"$directory/document" && cp "$directory/document" "$document"
    exit
fi
sed -n "/^<!-- $name -->\$/,/^<!-- end -->\$/p" "$document" | sed '1d;$d' >"$directory/old"
if ! diff "$directory/old" "$directory/new"; then
    echo "The table in $document is not what was found: run this with --update."
    exit 1
fi
