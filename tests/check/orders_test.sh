#!/bin/sh
# Each memory order is needed: orders_test.sh PROGRAM NAME DOCUMENT [--update].
#
# Runs the scenarios of PROGRAM with each order made weaker in turn, each of which must be found, and compares the
# table with the one in DOCUMENT between the lines <!-- NAME --> and <!-- end -->. With --update the
# document gets the new table.

set -u
program=$1 name=$2 document=$3 update=${4-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$program" --weaken >"$folder/new"
status=$?
cat "$folder/new"
[ "$status" -eq 0 ] || exit 1

if [ "$update" = --update ]; then
    awk -v name="<!-- $name -->" -v table="$folder/new" '
        $0 == "<!-- end -->" { skipping = 0 }
        !skipping { print }
        $0 == name { skipping = 1; while ((getline line < table) > 0) print line }' \
        "$document" >"$folder/document" && cp "$folder/document" "$document"
    exit
fi
sed -n "/^<!-- $name -->\$/,/^<!-- end -->\$/p" "$document" | sed '1d;$d' >"$folder/old"
if ! diff "$folder/old" "$folder/new"; then
    echo "The table in $document is not what was found: run this with --update."
    exit 1
fi
