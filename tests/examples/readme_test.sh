#!/bin/sh
# Checks that the programs in the documents compile without warnings and print the documented output: each C block is a
# program, and the text block after it is its output. A program that includes bide/check.h is compiled for the model
# checker, under the name in its first line; it may report a bug if that is shown; times may differ. A program that
# includes bide/async.h is compiled by BIDEC. A block that follows the name of a file is that file, and is skipped. A
# header's sketches are the indented blocks of its first comment: sketches/HEADER.c is a program in which the line
# "// sketch N" stands for the Nth of them.
# LIBRARIES are the libraries that the library itself needs.
# readme_test.sh CC SOURCE-ROOT LIBRARY CHECK-LIBRARY DOCUMENT...
set -u
cc=$1 root=$2 library=$(realpath "$3") check_library=${4:+$(realpath "$4")}
shift 4
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
failed=0

# shellcheck disable=SC2086 # lists of words
compile() { # NAME: NAME.c to NAME.program
    # (the library may be built with a sanitizer: its flags come with CFLAGS)
    flags="-std=c11 -O1 -Wall -Wextra -Wpedantic -Werror ${CFLAGS-} -I$root/include"
    if grep -q 'bide/check.h' "$1.c"; then
        source=$(sed -n '1s|^/\* \([a-z_]*\.c\):.*|\1|p' "$1.c")
        [ "$1.c" = "${source:=$1.c}" ] || cp "$1.c" "$source"
        $cc $flags -g -DBIDE_CHECK=1 -fsanitize=thread -c "$source" -o "$1.o" &&
            $cc ${CFLAGS-} "$1.o" "$check_library" -o "$1.program"
    elif grep -q 'bide/async.h' "$1.c"; then
        "$BIDEC" $cc -std=gnu11 -O1 -Wall -Wextra -Werror ${CFLAGS-} "-I$root/include" "$1.c" "$library" -pthread \
            ${LIBRARIES-} -o "$1.program"
    else
        $cc $flags "$1.c" "$library" -pthread ${LIBRARIES-} -o "$1.program"
    fi
}

# Runs NAME.program, with its output in NAME.printed.
run() { # NAME
    status=0
    ./"$1.program" >"$1.printed" || status=$?
    if grep -q 'bide/check.h' "$1.c"; then
        for text in "$1.printed" "$1.text"; do
            [ ! -e "$text" ] || sed -i 's/[0-9]*\.[0-9]* s$/T s/' "$text"
        done
        [ "$status" -ne 1 ] || [ ! -e "$1.text" ] || status=0
    fi
    return "$status"
}

here=$(cd "$(dirname "$0")" && pwd)

cd "$directory" || exit 1
for document in "$@"; do
    case $document in
    *.h)
        awk -v header="$root/$document" '
            BEGIN {
                while ((getline line < header) > 0 && line !~ /^ \*\/$/) {
                    if (line ~ /^ \*     /) {
                        if (!inside)
                            n++
                        inside = 1
                        sketch[n] = sketch[n] substr(line, 3) "\n"
                    } else
                        inside = 0
                }
            }
            /^ *\/\/ sketch [0-9]+$/ { printf "%s", sketch[$3]; next }
            { print }' "$here/sketches/$(basename "$document" .h).c" >1.c
        ;;
    esac
    # Numbers the blocks: 1.c and 1.text, 2.c and so on.
    awk -v directory="$directory" '
        /^`[^`]*`:$/ { named = 1; next }
        /^```c$/ && named { named = 0; next }
        /^```c$/ { n++; out = directory "/" n ".c"; next }
        /^```text$/ { out = directory "/" n ".text"; next }
        /^```/ { out = ""; next }
        out != "" { print > out }' "$root/$document"
    programs=0
    for program in [0-9]*.c; do
        [ -e "$program" ] || continue
        programs=$((programs + 1))
        name=${program%.c}
        if ! compile "$name" 2>errors; then
            echo "# FAILED: $document: a program does not compile"
            cat errors
            failed=1
        elif ! run "$name"; then
            echo "# FAILED: $document: a program fails"
            failed=1
        elif [ -e "$name.text" ] && ! diff "$name.text" "$name.printed"; then
            echo "# FAILED: $document: a program prints something else"
            failed=1
        fi
    done
    echo "# $document: $programs programs"
    rm -f "$directory"/*
done
exit $failed
