#!/bin/sh
# The compiler rejects awaits that a body in standard C cannot have: misuse_test.sh INCLUDE-DIRECTORY. Code that is
# valid in either variant compiles without a warning. By the compilers that BIDE_COMPILERS names, or all; with the
# library BIDE_LIBRARY, or its sources.
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
    for cc in ${BIDE_COMPILERS:-gcc clang}; do
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
    expect no $variant 'return 0 in a body' "if (self->i) return 0; $one"
    expect no $variant 'return NULL in a body' "if (self->i) return (void *)0; $one"
    expect no $variant 'return of an error in a body' "if (self->i < 0) return self->i; $one"
done


# Operations that a type forbids: the compiler rejects them with optimisation; otherwise they are detected at run time.
prelude='#include "bide/generator.h"
#include "bide/task.h"
struct x { bide_generator generator; int i; bide_awaiter *a; };
extern const bide_point *body_of_x;
bide_generator_coroutine(body) { bide_begin(body, struct x *self);'
for variant in 0 1; do
    expect yes $variant 'a yield in a generator' "bide_yield(self);"
    expect no $variant 'an await in a generator' "bide_yield(self); bide_await(self->a);"
    expect no $variant 'a yield in a switch' "switch (self->i) { case 1: bide_yield(self); break; default: break; }"
done
expect yes 0 'two yields on a line' "bide_yield(self); bide_yield(&self->i);"
expect no 1 'two yields on a line' "bide_yield(self); bide_yield(&self->i);"
prelude='#include "bide/task.h"
struct x { bide_task task; int i; bide_awaiter *a; };
extern const bide_point *body_of_x;
bide_coroutine(body) { bide_begin(body, struct x *self);'
for variant in 0 1; do
    expect no $variant 'a yield in a task' "bide_await(self->a); bide_yield(self);"
done

# expect_caught STANDARD-C LINE-OF-THE-MISUSE WHAT-IS-SAID <PROGRAM
library=${BIDE_LIBRARY:-$(echo "$include"/../src/coroutine/*.c "$include"/../src/base/*.c)}
expect_caught() {
    cat >"$folder/y.c"
    for cc in ${BIDE_COMPILERS:-gcc clang}; do
        command -v "$cc" >/dev/null || continue
        ran=$((ran + 1))
        # shellcheck disable=SC2086 # a list of words
        if ! "$cc" -std=c11 -O0 -DBIDE_STANDARD_C="$1" -I"$include" "$folder/y.c" \
            $library -o "$folder/y" 2>"$folder/errors"; then
            echo "# FAILED: $cc, standard C $1: does not compile: $3"
            cat "$folder/errors"
            failed=1
        elif [ "$("$folder/y")" = "$3, body, y.c:$2" ]; then
            echo "# ok: $cc, standard C $1: caught: $3"
        else
            echo "# FAILED: $cc, standard C $1: expected \"$3, body, y.c:$2\", not \"$("$folder/y")\""
            failed=1
        fi
    done
}

# (a platform that reports the misuse, and exits)
platform='#include "bide/generator.h"
#include "bide/task.h"
#include "bide/sync_wait.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void misuse(const char *what, const char *who, const char *file, unsigned line)
{
    printf("%s, %s, %s:%u\n", what, who, strrchr(file, 47) + 1, line);
    exit(0);
}
const bide_platform_table bide_platform = {.misuse = misuse};'
for variant in 0 1; do
    expect_caught $variant 18 'this kind of coroutine may not await' <<END
$platform
struct x { bide_generator generator; bide_awaiter *a; };
bide_generator_coroutine(body)
{
    bide_begin(body, struct x *self);
    bide_yield(self);
    bide_await(self->a);
    bide_end();
}
int main(void)
{
    struct x x;
    bide_for(void *, value, bide_generator_init(&x.generator, &body))
        ;
}
END
    expect_caught $variant 17 'this kind of coroutine does not yield' <<END
$platform
struct x { bide_task task; };
bide_coroutine(body)
{
    bide_begin(body, struct x *self);
    bide_yield(self);
    bide_end();
}
int main(void)
{
    struct x x;
    bide_sync_wait(bide_task_init(&x.task, &body));
}
END
done

if [ "$ran" -eq 0 ]; then
    echo "neither gcc nor clang is there"
    exit 77
fi
exit $failed
