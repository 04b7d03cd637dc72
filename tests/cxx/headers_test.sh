#!/bin/sh
# Every public header compiles alone, without a warning, and may be included twice: in C11 and in C++20 (*.hpp in C++20
# alone), and in C as the model checker has it, by each installed compiler. All together compile in each C since C11: headers_test.sh
# INCLUDE-DIRECTORY. With BIDE_COMPILERS only the named compilers are used, and C++ and the model checker's C only for
# all headers together.
set -u
include=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/out"

headers=0
for header in "$include"/bide/*.h "$include"/bide/extend/*.h; do
    header=${header#"$include"/}
    headers=$((headers + 1))
    printf '#include "%s"\n#include "%s"\n' "$header" "$header" >"$folder/$(echo "${header#bide/}" | tr / _).c"
done

for header in "$include"/bide/*.hpp; do
    header=${header#"$include"/}
    headers=$((headers + 1))
    printf '#include "%s"\n#include "%s"\n' "$header" "$header" >"$folder/${header#bide/}.cc"
done

# One run of a compiler takes all headers, each as a program of its own: that is quicker than a run for each.
compile() { # COMPILER STANDARD LANGUAGE [OPTION]
    command -v "$1" >/dev/null || return 0
    echo "$1 -std=$2 ${4-}" >>"$folder/out/ran.$1"
    "$1" -std="$2" -x "$3" ${4-} -Wall -Wextra -Wpedantic -Wshadow -Wundef -Wconversion -Werror \
        -I"$include" -fsyntax-only "$folder"/$sources >"$folder/out/errors.$1.$2${4-}" 2>&1 ||
        echo "# FAILED: $1 -std=$2 ${4-}" >>"$folder/out/failed.$1"
}

# The two families side by side: most of the time goes by in C++'s own headers.
for family in 'gcc g++' 'clang clang++'; do
    case " ${BIDE_COMPILERS-${family% *}} " in *" ${family% *} "*) ;; *) continue ;; esac
    (
        sources='*.c'
        compile "${family% *}" c11 c
        [ -z "${BIDE_COMPILERS-}" ] || sources=bide.h.c
        compile "${family% *}" c11 c "-DBIDE_CHECK=1 -fsanitize=thread"
        compile "${family#* }" c++20 c++
        sources='*.cc'
        compile "${family#* }" c++20 c++ -DBIDE_DEBUG=0
        compile "${family#* }" c++20 c++ -DBIDE_DEBUG=1
        sources=bide.h.c
        compile "${family% *}" c17 c
        compile "${family% *}" c2x c
    ) &
done
wait

ran=$(cat "$folder"/out/ran.* 2>/dev/null | wc -l)
if [ "$ran" -eq 0 ]; then
    echo "no compiler was found"
    exit 77
fi
cat "$folder"/out/errors.*
echo "# $headers headers, $ran compilers and standards"
! cat "$folder"/out/failed.* 2>/dev/null
