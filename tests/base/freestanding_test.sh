#!/bin/sh
# The core needs a compiler and six functions of a platform table, nothing else: freestanding_test.sh ROOT.
#
#   1. Its sources compile without a hosted C library, by each compiler that is here, in both variants of
#      the bodies, without a warning. (With BIDE_COMPILERS by those only, at -O0, and where no body is in one variant.)
#   2. All objects together leave nothing undefined but the platform table and what every compiler may
#      call in freestanding code.
#   3. Its sources and headers include no header of an operating system, and none of a higher floor.

set -u
root=$1
cd "$root" || exit 1

# What may be left for the program to bring.
allowed='bide_platform memcpy memmove memset memcmp _GLOBAL_OFFSET_TABLE_'
# What may be included: a freestanding compiler's own headers, and errno.h for its numbers. <atomic> is
# what C++ calls stdatomic.h.
system_headers='limits.h stdatomic.h stdbool.h stddef.h stdint.h errno.h atomic'

if ! command -v nm >/dev/null; then
    echo "skipped: nm is not installed"
    exit 77
fi

sources=
for source in src/base/*.c src/coroutine/*.c src/sync/*.c src/queue/*.c; do
    [ -f "$source" ] && sources="$sources $source"
done
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT
failures=0

fail() {
    echo "$*"
    failures=$((failures + 1))
}

is_in() { # WORD LIST
    case " $2 " in
    *" $1 "*) return 0 ;;
    esac
    return 1
}

# Those that hold bodies, or include a header of src/ that does.
bodies='bide_begin\(|BIDE_STANDARD_C'
for header in $(grep -lE "$bodies" src/*/*.h); do
    bodies="$bodies|\"(.*/)?${header##*/}\""
done
# shellcheck disable=SC2086 # a list of files
with_bodies=$(grep -lE "$bodies" $sources)

level=-O2
[ -z "${BIDE_COMPILERS-}" ] || level=-O0

# 1 and 2 for one compiler and one variant.
build_and_link_nothing() { # COMPILER BIDE_STANDARD_C
    if [ -n "${BIDE_COMPILERS-}" ] && [ "$2" -eq 1 ]; then
        compiled=$with_bodies # (the others' objects are there)
    else
        compiled=$sources
        rm -f "$objects"/*
    fi
    for source in $compiled; do
        "$1" -std=c11 $level -ffreestanding -nostdlib -Iinclude -Wall -Wextra -Werror \
            -DBIDE_STANDARD_C="$2" -c "$source" \
            -o "$objects/$(echo "$source" | tr / _).o" || fail "$1, variant $2: $source"
    done
    nm -g "$objects"/*.o >"$objects/symbols" || fail "$1, variant $2: nm"
    # NAME, or what comes before it: an address and a letter, or U alone.
    for symbol in $(awk '
            NF == 2 && $1 ~ /^[Uuvw]$/ { wanted[$2] = 1 }
            NF == 3 { defined[$3] = 1 }
            END { for (name in wanted) if (!(name in defined)) print name }' \
        "$objects/symbols"); do
        is_in "$symbol" "$allowed" || fail "$1, variant $2: the core needs $symbol"
    done
}

compilers=0
for compiler in ${BIDE_COMPILERS:-gcc clang}; do
    command -v "$compiler" >/dev/null || continue
    compilers=$((compilers + 1))
    build_and_link_nothing "$compiler" 0
    build_and_link_nothing "$compiler" 1
done

# 3. A header says on which floor it stands; those in detail/ are parts of others, on their floor.
is_core_header() {
    case $1 in
    include/bide/detail/*) return 0 ;;
    esac
    grep -Eq 'Floor: (base|coroutine|sync|queue)\.' "$1"
}

headers=0
for file in include/bide/*.h include/bide/extend/*.h include/bide/detail/*.h $sources src/base/*.h src/coroutine/*.h \
    src/sync/*.h src/queue/*.h; do
    [ -f "$file" ] || continue
    case $file in
    include/*)
        is_core_header "$file" || continue
        headers=$((headers + 1))
        ;;
    esac
    for header in $(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*<\([^>]*\)>.*/\1/p' "$file"); do
        is_in "$header" "$system_headers" || fail "$file includes <$header>"
    done
    for header in $(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\(bide\/[^"]*\)".*/\1/p' \
        "$file"); do
        # (the model checker stands beside the floors, and is included only where it runs the library)
        [ "$header" = bide/check_pthread.h ] || is_core_header "include/$header" || fail "$file includes $header, which stands on a higher floor"
    done
done
[ "$headers" -ge 10 ] || fail "only $headers headers say that they belong to the core"

if [ "$failures" -ne 0 ]; then
    echo "$failures failures"
    exit 1
fi
if [ "$compilers" -eq 0 ]; then
    echo "skipped: neither gcc nor clang is installed"
    exit 77
fi
echo "$(echo $sources | wc -w) sources, $headers headers, $compilers compilers, 2 variants"
