#!/bin/sh
# The compiler rejects programs that the checker cannot check: refused_test.sh INCLUDE COMPILER...

set -u
include=$1
shift
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
failed=0

# Compiles its input with the flags $3. The compiler must reject it with the words $2, or accept it if there are none.
expect() {
    name=$1 words=$2 flags=$3
    { echo '#include <bide/check.h>'; cat; } >"$directory/source.c"
    # shellcheck disable=SC2086 # both are several words
    if $compiler -std=gnu11 -I"$include" -DBIDE_CHECK=1 $flags -fsyntax-only "$directory/source.c" 2>"$directory/said"; then
        said=""
    else
        said=$(cat "$directory/said")
    fi
    case $words in
    '') [ -z "$said" ] ;;
    *) case $said in *"$words"*) true ;; *) false ;; esac ;;
    esac || {
        echo "$name: not as expected: $said"
        failed=1
        return
    }
    echo "$name"
}

compiler=$*
watched=-fsanitize=thread

expect "an atomic of eight bytes" "" "$watched" <<END
void f(bide_atomic(double) *x) { bide_atomic_store(x, 0.5, relaxed); }
END
expect "an atomic of sixteen" "at most 8 bytes" "$watched" <<END
void f(bide_atomic(__int128) *x) { bide_atomic_store(x, 1, relaxed); }
END
expect "a long double" "at most 8 bytes" "$watched" <<END
long double f(bide_atomic(long double) *x) { return bide_atomic_load(x, relaxed); }
END
expect "arithmetic on a double" "no atomic arithmetic" "$watched" <<END
void f(bide_atomic(double) *x) { bide_atomic_fetch_add(x, 1, relaxed); }
END
expect "a file that is not instrumented" "compile with -fsanitize=thread" "" <<END
END
expect "one that says so" "" "-DBIDE_CHECK_UNWATCHED=1" <<END
END
exit $failed
