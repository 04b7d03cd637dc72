#!/bin/sh
# Each program in mistakes/ makes one mistake, which is reported: mistakes_test.sh INCLUDE-DIRECTORY [NAME...].
#
# A program begins with a comment that says what the mistake is, and then, each on a line of its own:
#
#     told: error | warning | run    the report: a compiler's error or warning, or at run time
#     says: REGULAR EXPRESSION       matches the message; if there are several lines, each matches
#     with: OPTIONS                  additional options of the compiler
#     lists: operations              it makes the mistake with each function marked BIDE_MUST_AWAIT
#     only: COMPILER | VARIANT ...   gcc, clang; 0: labels as values, 1: standard C. Otherwise all of them
#
# The compiler rejects the same mistakes in C++ as in C, with the same words. A program *.cpp is in C++ alone. A program
# *.async.c is in async C: it is compiled by the translator BIDEC, if given, and is left out otherwise. A mistake in several
# languages is a program of one name in each.
#
# The message names the line that ends with "HERE", if there is one. In a macro call of several lines, __LINE__ is the
# first line for gcc and the last one for clang: that line ends with "HERE by clang". A report at run time names the body,
# and never the function that the body becomes. With BIDE_COMPILERS only those compilers are used, at -O2, and C programs are not
# compiled as C++. The library is then BIDE_LIBRARY, if given, and one variant suffices if both report the mistake.
set -u
include=$1
shift
root=${include%/include}
mistakes=$root/tests/coroutine/mistakes
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
ran=0

compilers=
for cc in ${BIDE_COMPILERS:-gcc clang-14 clang-19}; do
    command -v "$cc" >/dev/null && compilers="$compilers $cc"
done
[ -n "$compilers" ] || compilers=$(command -v gcc clang | sed 's|.*/||')
if [ -z "$compilers" ]; then
    echo "neither gcc nor clang is there"
    exit 77
fi

field() { # NAME FILE
    sed -n "s/^ \* $1: //p;/^ \*\/$/q" "$2"
}

# (with the compiler's own words, whatever the user's language)
export LC_ALL=C
options="-Wall -Wextra -Wpedantic -fno-diagnostics-color -I$include -I$mistakes"
c_options="-std=c11 $options"
# (which needs no library of C++)
cxx_options="-x c++ -std=c++20 -fno-threadsafe-statics -fno-exceptions -Wno-missing-field-initializers $options"

library() { # COMPILER
    mkdir "$folder/$1"
    if [ -n "${BIDE_LIBRARY-}" ]; then
        ln -s "$BIDE_LIBRARY" "$folder/$1/library.a"
        return
    fi
    (cd "$folder/$1" && printf '%s\n' "$root"/src/base/*.c "$root"/src/coroutine/*.c "$root"/src/sync/*.c \
        "$root"/src/queue/*.c "$root"/src/schedule/spawn.c "$root"/src/system/heap.c |
        xargs -P 2 -n 8 "$1" -std=c11 -O1 -I"$include" -c && ar rc library.a ./*.o)
}

# Writes the report of a mistake to the file `told` in $folder.
tell() { # COMPILER OPTIMISATION FILE HOW OPTION...
    cc=$1 optimised=$2 file=$3 how=$4 translator=
    shift 4
    # shellcheck disable=SC2086 # lists of words
    if [ "$how" = run ]; then
        [ -d "$folder/$cc" ] || library "$cc" || exit 1
        case $file in
        *.cpp) language=$cxx_options ;;
        *.async.c) language="-std=gnu11 $options" && translator=$BIDEC ;;
        *) language=$c_options ;;
        esac
        $translator "$cc" $language "$optimised" "$@" "$file" -x none "$folder/$cc/library.a" -pthread -o "$folder/program" \
            >"$folder/told" 2>&1 || return 1
        [ ! -s "$folder/told" ] || return 1
        # (a program without a report may run for ever)
        timeout 20 "$folder/program" >"$folder/told" 2>&1
        [ $? -eq 3 ]
    else
        [ "$optimised" != c++ ] || { optimised=-O0 && set -- -x c++ -std=c++20 "$@"; }
        "$cc" $c_options "$optimised" "$@" -c "$file" -o "$folder/x.o" >"$folder/told" 2>&1
        if [ $? -eq 0 ]; then [ "$how" = warning ]; else [ "$how" = error ]; fi
    fi
}

[ $# -gt 0 ] || set -- "$mistakes"/*.c "$mistakes"/*.cpp
for file in "$@"; do
    how=$(field told "$file")
    only=$(field only "$file")
    here_by_gcc=$(grep -n 'HERE \*/$\|// HERE$' "$file" | cut -d : -f 1)
    here_by_clang=$(grep -n '// HERE by clang$' "$file" | cut -d : -f 1)
    [ -n "$how" ] || { echo "# FAILED: $file does not say what is told" && failed=1; }
    case $file in *.async.c) [ -n "${BIDEC-}" ] || continue ;; esac
    for cc in $compilers; do
        case " $only " in *" gcc "* | *" clang "*)
            case " $only " in *" ${cc%%-*} "*) ;; *) continue ;; esac ;;
        esac
        case $cc in
        clang*) here=${here_by_clang:-$here_by_gcc} ;;
        *) here=$here_by_gcc ;;
        esac
        variants='0 1'
        case $file in
        *.async.c) variants=0 ;; # its functions have one variant
        *.cpp) [ "$how" != run ] || "$cc" -x c++ -fsyntax-only /dev/null 2>/dev/null || continue ;;
        esac
        [ -z "${BIDE_COMPILERS-}" ] || [ -n "$only" ] || variants=0
        for variant in $variants; do
            case " $only " in *" 0 "* | *" 1 "*)
                case " $only " in *" $variant "*) ;; *) continue ;; esac ;;
            esac
            levels="${BIDE_COMPILERS:+-O2}"
            levels=${levels:--O0 -O2}
            if [ "$how" = error ]; then
                levels=-O0
                ! "$cc" -x c++ -fsyntax-only /dev/null 2>/dev/null || levels="-O0 c++"
                case $file in
                *.cpp) levels=${levels#-O0} ;;
                *) [ -z "${BIDE_COMPILERS-}" ] || levels=-O0 ;;
                esac
            fi
            for optimised in $levels; do
                ran=$((ran + 1))
                name="$(basename "$file" .c), $cc $optimised, standard C $variant"
                # shellcheck disable=SC2046 # a list of words
                if ! tell "$cc" "$optimised" "$file" "$how" "-DBIDE_STANDARD_C=$variant" $(field with "$file"); then
                    echo "# FAILED: $name: not told by: $how"
                    head -n 12 "$folder/told"
                    failed=1
                    continue
                fi
                field says "$file" >"$folder/says"
                while IFS= read -r says; do
                    grep -Eqe "$says" "$folder/told" && continue
                    echo "# FAILED: $name: it does not say: $says"
                    head -n 12 "$folder/told"
                    failed=1
                done <"$folder/says"
                grep -o "$(basename "$file"):[0-9]*" "$folder/told" | cut -d : -f 2 | sort -u >"$folder/lines"
                for line in $(printf '%s\n' $here | sort | comm -23 - "$folder/lines"); do
                    echo "# FAILED: $name: it does not name line $line"
                    head -n 12 "$folder/told"
                    failed=1
                done
                if [ "$how" = run ] && grep '_step_' "$folder/told"; then
                    echo "# FAILED: $name: it names a function that the user has not written"
                    failed=1
                fi
            done
        done
    done
done

# Every operation is marked, and every one is in the list. (A macro's function has one more underscore at its end.
# Functions that are not for bodies, or return no operation, are not marked.)
headers="$include/bide/*.h $include/bide/extend/*.h $include/bide/detail/*.h"
# shellcheck disable=SC2086 # a list of files
cat $headers | awk '
    /^(BIDE_[A-Z_]+ )*BIDE_MUST_AWAIT$/ { marked = 1; next }
    /^(BIDE_INLINE )?bide_awaiter \*/ {
        if ($0 ~ /\*$/) { held = 1; next }
        name = $0; sub(/^(BIDE_INLINE )?bide_awaiter \*/, "", name); print marked + 0, name
    }
    held { print marked + 0, $0; held = 0 }
    { marked = 0 }' | sed 's/(.*//; s/ \*/ /' | sort -u >"$folder/operations"
not_operations='bide_async_transform_ bide_await_forbidden bide_awaiter_chain_take bide_awaiter_next_leaving_ bide_awaiter_reverse
    bide_recursive_generator_transform_ bide_forward_inner_
    bide_waiter_list_cut_ bide_waiter_list_link_ bide_waiter_list_shut bide_waiter_list_shut_for_good
    bide_waiter_list_shut_judged_ bide_yield_point_init_'
parts='bide_channel_make_ bide_sleep_for_checked_ bide_with_timeout_checked_ bide_mutex_lock_checked_ bide_barging_mutex_lock_checked_ bide_rw_lock_read_checked_
    bide_rw_lock_write_checked_ bide_rw_lock_upgradable_read_checked_ bide_then_checked_ bide_blocking_run_checked_ bide_blocking_run_interruptible_checked_
    bide_condition_wait_checked_ bide_fork_task_begin_ bide_fork_task_begin_call_
    bide_fork_task_begin_join_ bide_event_count_own_waiter_init_ bide_event_count_waiter_init_
    bide_rw_lock_start_ bide_rw_lock_upgrade_checked_ bide_scope_join_checked_ bide_sequence_group_leave_checked_ bide_sequence_barrier_follow_ bide_sequence_group_follow_ bide_single_consumer_wait_'
list=$(grep -l '^ \* lists: operations$' "$mistakes"/*.c)
operations=0
while read -r marked name; do
    operations=$((operations + 1))
    case " $(echo $not_operations) " in *" $name "*) continue ;; esac
    if [ "$marked" -eq 0 ]; then
        echo "# FAILED: BIDE_MUST_AWAIT does not stand before $name"
        failed=1
    fi
    case " $(echo $parts) " in *" $name "*) continue ;; esac
    if ! grep -q "${name%_}(.*HERE$" "$list"; then
        echo "# FAILED: $name is not in $(basename "$list")"
        failed=1
    fi
done <"$folder/operations"
if [ "$operations" -lt 60 ]; then
    echo "# FAILED: the headers have only $operations operations"
    failed=1
fi

echo "# $ran mistakes made, $operations operations"
exit $failed
