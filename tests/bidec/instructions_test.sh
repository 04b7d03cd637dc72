#!/bin/sh
# Counts the instructions of the benchmark `language`: an async function executes at most 5 % more instructions than the
# handwritten body that does the same. instructions_test.sh BIDEC ROOT LIBRARY
set -eu
bidec=$1
root=$2
library=$3
command -v valgrind >/dev/null || {
    echo "skipped: valgrind is not installed"
    exit 77
}
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
failed=0

counted() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$directory/language" "$@" 2>&1 | sed -n 's/.*Collected : //p'
}

# The instructions of one operation, in tenths.
each() {
    few=$(counted "$1" "$2" 1024)
    many=$(counted "$1" "$2" 4096)
    echo $(((many - few) * 10 / 3072))
}

for cc in gcc clang; do
    command -v "$cc" >/dev/null || continue
    options="-std=gnu11 -O2 -DNDEBUG -I$root/include -I$root/bench"
    # shellcheck disable=SC2086 # lists of words
    "$bidec" $cc $options -c "$root/bench/language_async.c" -o "$directory/async.o"
    # (linked with the library of a release)
    # shellcheck disable=SC2086
    $cc $options "$root/bench/language.c" "$root/bench/bench.c" "$directory/async.o" "$library" $BIDE_LIBS -o "$directory/language"
    for of in child nested ready waits between generator tree; do
        translated=$(each translated $of)
        by_hand=$(each by-hand $of)
        echo "$cc: $of: translated $translated, by hand $by_hand tenths of an instruction"
        if [ "$by_hand" -eq 0 ] || [ $((translated * 100)) -gt $((by_hand * 105)) ]; then
            echo "$cc: $of: too many"
            failed=1
        fi
    done
done
exit $failed
