#!/bin/sh
# Every public header compiles alone, in C and in C++20, without a warning: headers_test.sh INCLUDE-FOLDER.
set -u
include=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
ran=0

compile() { # COMPILER STANDARD LANGUAGE HEADER
    command -v "$1" >/dev/null || return 0
    ran=$((ran + 1))
    # Twice: a header may be included again.
    printf '#include "%s"\n#include "%s"\n' "$4" "$4" >"$folder/header.c"
    if ! "$1" -std="$2" -x "$3" -Wall -Wextra -Wpedantic -Werror -I"$include" -fsyntax-only \
        "$folder/header.c" 2>"$folder/errors"; then
        echo "# FAILED: $1 -std=$2: $4"
        cat "$folder/errors"
        failed=1
    fi
}

cd "$include" || exit 1
for header in bide/*.h; do
    compile gcc c11 c "$header"
    compile clang c11 c "$header"
    compile g++ c++20 c++ "$header"
    compile clang++ c++20 c++ "$header"
done

if [ "$ran" -eq 0 ]; then
    echo "no compiler was found"
    exit 77
fi
echo "# compiled $ran times"
exit $failed
