#!/bin/sh
# The programs in the documents are C++20 too, where the model checker is not shown: they compile without a warning, with
# each compiler of C++ that is here: samples_test.sh SOURCE-ROOT DOCUMENT...
set -u
root=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

for document in "$@"; do
    awk -v folder="$folder" -v name="$(basename "$document" .md)" '
        /^```c$/ { n++; out = folder "/" name "." n ".cc"; next }
        /^```/ { out = ""; next }
        out != "" { print > out }' "$root/$document"
done

ran=0 failed=0
for compiler in g++ clang++-14 clang++-19; do
    command -v $compiler >/dev/null || continue
    for program in "$folder"/*.cc; do
        ran=$((ran + 1))
        # (what is not named in an initialiser is zero)
        $compiler -std=c++20 -Wall -Wextra -Wpedantic -Wno-missing-field-initializers -Werror \
            -I"$root/include" -fsyntax-only "$program" && continue
        echo "# FAILED: $compiler does not compile ${program##*/}"
        failed=1
    done
done
if [ "$ran" -eq 0 ]; then
    echo "no compiler of C++ was found"
    exit 77
fi
echo "# $ran programs"
exit $failed
