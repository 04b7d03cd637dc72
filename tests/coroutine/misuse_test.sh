#!/bin/sh
# What a body in standard C cannot do is refused by the compiler: misuse_test.sh INCLUDE-FOLDER.
# And what either variant can do compiles without a warning.
set -u
include=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
ran=0

prelude='#include "bide/task.h"
struct x { bide_task task; int i; bide_awaiter *a; };
extern const bide_point *body_of_x;
bide_coroutine(body) { bide_begin(body, struct x *self);'
postlude='bide_end(); }
const bide_point *body_of_x = &body;'

# expect yes|no STANDARD-C DESCRIPTION STATEMENTS
expect() {
    printf '%s\n%s\n%s\n' "$prelude" "$4" "$postlude" >"$folder/x.c"
    for cc in gcc clang; do
        command -v "$cc" >/dev/null || continue
        ran=$((ran + 1))
        if "$cc" -std=c11 -O1 -Wall -Wextra -Wpedantic -DBIDE_STANDARD_C="$2" -I"$include" \
            -c "$folder/x.c" -o "$folder/x.o" 2>"$folder/errors"; then
            answer=yes
            if [ -s "$folder/errors" ]; then answer='with a warning'; fi
        else
            answer=no
        fi
        if [ "$answer" = "$1" ]; then
            echo "# ok: $cc, standard C $2: $3: $answer"
        else
            echo "# FAILED: $cc, standard C $2: $3 compiles: $answer, expected $1"
            cat "$folder/errors"
            failed=1
        fi
    done
}

one='bide_await(self->a);'
expect yes 0 'an await in a switch' "switch (self->i) { case 1: $one break; default: break; }"
expect no 1 'an await in a switch' "switch (self->i) { case 1: $one break; default: break; }"
expect yes 0 'two awaits on a line' "$one $one"
expect no 1 'two awaits on a line' "$one $one"
for variant in 0 1; do
    expect yes $variant 'awaits in loops' "for (;;) { while (self->i) { if (self->i)
        $one
        else
        bide_try(self->a); }
        bide_await_status(self->i, self->a); break; }"
    expect yes $variant 'a switch without awaits' "switch (self->i) { case 1: break; default: break; }
        $one"
    expect yes $variant 'return and finally' "if (self->i) bide_return(-1);
        $one
        bide_finally(); self->i = 0;"
    expect no $variant 'a body named otherwise' "bide_begin(another, struct x *it);"
done

if [ "$ran" -eq 0 ]; then
    echo "neither gcc nor clang is there"
    exit 77
fi
exit $failed
