#!/bin/sh
# The compiler's warnings in async functions are those of the same functions as plain C, at the same lines and columns; what
# is right has none; several errors are told at once: warnings_test.sh BIDEC ROOT. BIDE_COMPILERS names the compilers.
set -u
bidec=$(realpath "$1")
root=$2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory" || exit 1
failed=0
warnings='-Wall -Wextra -Wshadow'

fail() {
    echo "$1"
    head -20 said
    failed=1
}

# As plain C the await is one call, so that both have the same lines; only columns behind it differ, and are not compared.
cat >wrong.c <<'END'
#ifdef PLAIN
#include <stdio.h>
#define async
#define await
#define PAUSE pause_for(1)
int pause_for(int n);
#else
#include <bide/async.h>
#include <bide/sleep.h>
#include <stdio.h>
#define PAUSE await bide_sleep_for(1)
#endif
async int unused_variable(int p)
{
    int x; int never;
    PAUSE;
    return p;
}
async int unused_parameter(int p)
{
    PAUSE;
    return 0;
}
async int uninitialised(int p)
{
    int y;
    PAUSE;
    return y + p;
}
async int no_return(void)
{
    PAUSE;
}
async int set_and_unused(int p)
{
    int z;
    z = p;
    PAUSE;
    return 0;
}
async int format(int p)
{
    PAUSE;
    printf("%s\n", p);
    return 0;
}
async int condition(int p)
{
    int q = 0;
    if (q = p)
        PAUSE;
    return q;
}
async int sign(unsigned p)
{
    int q = -1;
    PAUSE;
    return q < p;
}
async int bounds(int p)
{
    int a[3];
    a[0] = p;
    PAUSE;
    return a[5];
}
async int *address(int p)
{
    int a = p;
    PAUSE;
    return &a;
}
async int shadow(int p)
{
    {
        int p = 3;
        PAUSE;
        (void)p;
    }
    return p;
}
async int no_effect(int p)
{
    p == 3;
    PAUSE;
    return p;
}
END

cat >deferred.c <<'END'
#include <bide/async.h>
#include <bide/sleep.h>
#include <stdio.h>
async int deferred(char *p, unsigned n, int m)
{
    defer printf("%d\n", p);
    defer {
        if (n > m)
            puts("");
    }
    await bide_sleep_for(1);
    return 0;
}
END

cat >block.c <<'END'
#include <bide/async.h>
#include <bide/sleep.h>
async int block(bide_scope *scope, int n, unsigned u)
{
    spawn(scope, async_block({
        async_capture int number = n, unused = n;
        async_capture unsigned other = u;
        int never, sum = number + never;
        if (number < other)
            return sum;
        try await bide_sleep_for(1);
    }));
    return await async_block({
        async_capture char *text = &u;
        return text != 0;
    });
}
END

cat >errors.c <<'END'
#include <bide/async.h>
#include <bide/sleep.h>
async int two(int a, int b)
{
    return a + b;
}
async int wrong(int p)
{
    struct point { int x; } point = {p};
    await bide_sleep_for(1);
    p = point.y;
    p += unknown;
    return await two(p, point);
}
END

# Nothing is wrong here: none of the compilers says anything.
cat >right.c <<'END'
#include <bide/async.h>
#include <bide/deadline.h>
#include <bide/event.h>
#include <bide/scope.h>
#include <bide/sleep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __clang__ /* as in the headers of macOS */
#pragma clang diagnostic ignored "-Wnullability-extension"
int (*_Nullable exchange_handler(int, int (*_Nullable)(char *_Nonnull)))(char *_Nonnull);
#endif
static async int once(int n)
{
    return n;
}
async void nothing(void)
{
    await bide_sleep_for(1);
}
async_generator(long) int counted(long n)
{
    for (long i = 0; i < n; i++)
        yield i;
    return 0;
}
static int three(int a, int b, int c)
{
    return a + b + c;
}
static bide_awaiter *own(bide_sleep *waiter, uint64_t time)
{
    return bide_sleep_for(waiter, time);
}
async int leaves_early(FILE *file, int n)
{
    int status = await once(n);
    if (status < 0)
        return status;
    defer fclose(file);
    if (n > 3)
        return 3;
    defer rewind(file);
    for (int i = 0; i < n; i++) {
        status += await once(i);
        defer rewind(file);
        if (i == 2)
            break;
    }
    return status;
}
static void give_back(char **to)
{
    free(*to);
}
async int cleaned(int n)
{
    char *first = malloc(1);
    defer free(first);
    __attribute__((cleanup(give_back))) char *second = malloc(1);
    if (n > 3)
        return first == NULL;
    await once(n);
    return second == NULL;
}
async_sized(4096) int all_forms(bide_event *event, int n)
{
    char *memory = malloc(16);
    defer free(memory);
    long sum = 0;
    unsigned which;
    int status, i = 0;
    bide_scope scope;
    bide_scope_init(&scope, bide_this_frame());
    spawn(&scope, once(n));
    spawn(&scope, async_block({
        async_capture const char *const text = memory;
        async_capture int n = i++, m = i++, *to = &status;
        int length = 0;
        defer *to += length;
        if (text == NULL)
            return 5;
        try await once(m);
        for (length = n; length < 3; length++)
            await once(length);
    }));
    n += await async_block({ return 2; });
    await bide_scope_join(&scope);
    bide_sleep timer;
    await bide_sleep_for(&timer, 1);
    await nothing();
    await own(1);
    status = await all(nothing(), once(1), bide_sleep_for(&timer, 1), bide_event_wait(event));
    await any(nothing(), once(2));
    status += await select_any(&which, bide_event_wait(event), bide_sleep_for(1));
    status += await bide_with_deadline(5, bide_event_wait(event));
    async_for (long v, counted(n), status)
        sum += v;
    async_for (long v, counted(n))
        sum += v;
    sum += three(i++, await once(i++), i++);
    if (memory != NULL)
        strcpy(memory, "text");
    if (await once(1) && (await once(2), await once(3)))
        return (int)sum + (int)which + (int)sizeof(await once(1));
    return status;
}
END
for cc in ${BIDE_COMPILERS:-gcc clang clang-19}; do
    command -v "$cc" >/dev/null || continue
    # shellcheck disable=SC2086
    {
        "$cc" -std=gnu11 -O2 $warnings -DPLAIN -c wrong.c -o plain.o >plain 2>&1
        "$bidec" "$cc" -std=gnu11 -O2 $warnings "-I$root/include" -c wrong.c -o wrong.o >said 2>&1 || fail "$cc: warnings are errors"
        for text in plain said; do
            # (a place in a string is not known in preprocessed text)
            sed -n '/^wrong.c:[0-9:]* warning: /{s/:[0-9]*: warning: format/:0: warning: format/;p;}' $text | sort -u >$text.lines
        done
        cmp -s plain.lines said.lines || { diff plain.lines said.lines; fail "$cc: other warnings than in plain C"; }
        grep -qF '    int x; int never;' said || fail "$cc: does not show the line"
        grep -qE '^( +\|)? {15,16}\^(~~~~)?$' said || fail "$cc: does not point at the variable"
        "$bidec" "$cc" -std=gnu11 -O2 $warnings -Werror "-I$root/include" -c wrong.c -o wrong.o >said 2>&1 && fail "$cc: -Werror"
        "$bidec" "$cc" -std=gnu11 -w "-I$root/include" -c wrong.c -o wrong.o >said 2>&1 && [ ! -s said ] || fail "$cc: -w"

        "$bidec" "$cc" -std=gnu11 $warnings "-I$root/include" -c deferred.c -o deferred.o >said 2>&1 || fail "$cc: in defer"
        grep -q '^deferred.c:6:[0-9]*: warning.*format' said || fail "$cc: no warning in a deferred statement"
        grep -q '^deferred.c:8:15: warning' said || fail "$cc: no warning in a deferred block"

        "$bidec" "$cc" -std=gnu11 -O1 $warnings -Wno-error "-I$root/include" -c block.c -o block.o >said 2>&1
        for place in 6:[0-9]* 8:[0-9]* 9:20; do
            grep -qE "^block.c:$place: warning: .*(unused|sign|uninitialized)" said || fail "$cc: no warning in a block at $place"
        done
        grep -qE '^block.c:14:[0-9]*: (warning|error): .*pointer' said || fail "$cc: no warning of a capture"
        [ "$(grep -cE ' (warning|error): ' said)" = 4 ] || fail "$cc: other warnings of blocks"

        "$bidec" "$cc" -std=gnu11 "-I$root/include" -c errors.c -o errors.o >said 2>&1 && fail "$cc: errors are none"
        for place in 11:1 12:10 13:25; do
            grep -q "^errors.c:$place[0-9]*: error" said || fail "$cc: no error at $place"
        done

        "$bidec" "$cc" -std=gnu11 -O2 $warnings -Werror "-I$root/include" -c right.c -o right.o >said 2>&1 && [ ! -s said ] ||
            fail "$cc: warns of what is right"
        "$bidec" "$cc" -std=c11 $warnings -Wpedantic -Werror "-I$root/include" -c right.c -o right.o >said 2>&1 &&
            [ ! -s said ] || fail "$cc: -Wpedantic warns of what is right"
    }
done
exit $failed
