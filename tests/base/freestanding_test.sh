#!/bin/sh
# The core needs a compiler and six functions of a platform table, nothing else: freestanding_test.sh ROOT.
#
#   1. Its sources compile without a hosted C library, by each compiler that is here, in both variants of
#      the bodies, without a warning. (With BIDE_COMPILERS by those only, as far as their syntax, and where no body
#      is in one variant.)
#   2. All objects together leave nothing undefined but the platform table and what every compiler may
#      call in freestanding code. (With BIDE_COMPILERS those of BIDE_LIBRARY,
#      which is hosted and may be hardened, and measures a string.)
#      No function takes more than 1 KB of stack.
#   3. Its sources and headers include no header of an operating system, and none of a higher floor.

set -u
root=$1
cd "$root" || exit 1

# Undefined symbols that the program has to define.
allowed='bide_platform memcpy memmove memset memcmp _GLOBAL_OFFSET_TABLE_'
# Allowed includes: a freestanding compiler's own headers, and errno.h for its numbers. <atomic> is
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

# The sources that have bodies, or include a header of src/ that has some.
bodies='bide_begin\(|BIDE_STANDARD_C'
for header in $(grep -lE "$bodies" src/*/*.h); do
    bodies="$bodies|\"(.*/)?${header##*/}\""
done
# shellcheck disable=SC2086 # a list of files
with_bodies=$(grep -lE "$bodies" $sources)

# 1 for one compiler and one variant.
check_syntax() { # COMPILER BIDE_STANDARD_C
    [ "$2" -eq 0 ] && compiled=$sources || compiled=$with_bodies
    # shellcheck disable=SC2086 # a list of files
    "$1" -std=c11 -ffreestanding -Iinclude -Wall -Wextra -Werror -DBIDE_STANDARD_C="$2" -fsyntax-only \
        $compiled || fail "$1, variant $2"
}

# 1 and 2 for one compiler and one variant.
build_and_link_nothing() { # COMPILER BIDE_STANDARD_C
    rm -f "$objects"/*
    for source in $sources; do
        "$1" -std=c11 -O2 -ffreestanding -nostdlib -Iinclude -Wall -Wextra -Werror \
            -DBIDE_STANDARD_C="$2" -fstack-usage -c "$source" \
            -o "$objects/$(echo "$source" | tr / _).o" || fail "$1, variant $2: $source"
    done
    link_nothing "$1, variant $2"
    large=$(cat "$objects"/*.su | awk -F '\t' '{ seen++ } $2 > 1024 { print $1 " takes " $2 " bytes of stack" } END { if (!seen) print "no stacks were measured" }')
    [ -z "$large" ] || fail "$1, variant $2: $large"
}

# 2, of what is in $objects.
link_nothing() { # WHOSE
    nm -g "$objects"/*.o >"$objects/symbols" || fail "$1: nm"
    # NAME, or what comes before it: an address and a letter, or U alone.
    for symbol in $(awk '
            NF == 2 && $1 ~ /^[Uuvw]$/ { wanted[$2] = 1 }
            NF == 3 { defined[$3] = 1 }
            END { for (name in wanted) if (!(name in defined)) print name }' \
        "$objects/symbols"); do
        is_in "$symbol" "$allowed" || fail "$1: the core needs $symbol"
    done
}

compilers=0
for compiler in ${BIDE_COMPILERS:-gcc clang}; do
    command -v "$compiler" >/dev/null || continue
    compilers=$((compilers + 1))
    for variant in 0 1; do
        if [ -n "${BIDE_COMPILERS-}" ]; then
            check_syntax "$compiler" $variant
        else
            build_and_link_nothing "$compiler" $variant
        fi
    done
done
if [ -n "${BIDE_COMPILERS-}" ]; then
    (cd "$objects" && ar x "$BIDE_LIBRARY" && rm -f src_schedule_* src_system_* src_inspect_* src_io_* src_net_* src_monitor_* src_simulation_*)
    [ "$(ls "$objects" | wc -l)" -eq "$(echo $sources | wc -w)" ] || fail "$BIDE_LIBRARY has other objects"
    allowed="$allowed strlen __stack_chk_fail"
    link_nothing "$BIDE_LIBRARY"
fi

# 3. A header names its floor; headers in detail/ are parts of others, on their floor.
is_core_header() {
    case $1 in
    include/bide/detail/editor.h | include/bide/detail/async_macros.h | include/bide/detail/system_types.h) return 1 ;;
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
        # (the model checker belongs to no floor, and is included only where it runs the library)
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
