#!/bin/sh
# shellcheck disable=SC2015 # fail() ends nothing
# bidec's own warnings: each line that ends with HELD is warned of by -Wasync-lock-held, and no other one; frames that are
# too large by -Wasync-frame-larger-than=: lint_test.sh BIDEC ROOT
# shellcheck source=tests/bidec/opening.sh
. "$(dirname "$0")/opening.sh"

fail() {
    echo "$1"
    cat said
    failed=1
}

cat >locks.c <<'END_OF_FILE'
#include <bide/async.h>
#include <bide/event.h>
#include <bide/sleep.h>
#include <pthread.h>
#include <stdio.h>
#include <threads.h>

struct store { pthread_mutex_t lock; pthread_rwlock_t rows; mtx_t mutex; int count; };

async int held(struct store *s)
{
    pthread_mutex_lock(&s->lock);
    await bide_sleep_for(1); /* HELD */
    pthread_mutex_unlock(&s->lock);
    await bide_sleep_for(1);
    return 0;
}
async int deferred(struct store *s)
{
    await bide_sleep_for(1);
    {
        pthread_mutex_lock(&s->lock);
        defer pthread_mutex_unlock(&s->lock);
        s->count += await held(s); /* HELD */
    }
    return await held(s);
}
async int branches(struct store *s, int n)
{
    if (mtx_lock(&s->mutex) != thrd_success)
        return -1;
    if (n == 0) {
        mtx_unlock(&s->mutex);
        return await held(s);
    }
    if (n == 1)
        await held(s); /* HELD */
    else
        s->count++;
    mtx_unlock(&s->mutex);
    try await held(s);
    switch (n) {
    case 2:
        pthread_rwlock_rdlock(&s->rows);
        break;
    case 3:
        await held(s);
        break;
    case 4:
        pthread_rwlock_wrlock(&s->rows);
        await held(s); /* HELD */
        pthread_rwlock_unlock(&s->rows);
    }
    return await held(s);
}
async int loops(struct store *s, int n)
{
    for (int i = 0; i < n; i++) {
        pthread_mutex_lock(&s->lock);
        if (s->count == i) {
            pthread_mutex_unlock(&s->lock);
            continue;
        }
        s->count++;
        pthread_mutex_unlock(&s->lock);
        await bide_sleep_for(1);
    }
    while (n-- > 0) {
        flockfile(stdout);
        await bide_sleep_for(1); /* HELD */
        funlockfile(stdout);
    }
    do
        await bide_sleep_for(1);
    while (n++ < 0);
    goto out;
out:
    return await held(s);
}
async int two(struct store *s, struct store *t)
{
    pthread_mutex_lock(&s->lock);
    pthread_mutex_lock(&t->lock);
    pthread_mutex_unlock(&s->lock);
    await bide_sleep_for(1); /* HELD */
    pthread_mutex_unlock(&t->lock);
    await bide_sleep_for(1);
    return 0;
}
async_generator(int) void values(struct store *s)
{
    pthread_mutex_lock(&s->lock);
    yield s->count; /* HELD */
    pthread_mutex_unlock(&s->lock);
    yield s->count;
}
async int consumer(struct store *s, bide_event *event)
{
    int status, sum = 0;
    pthread_mutex_lock(&s->lock);
    async_for (int one, values(s)) /* HELD */
        sum += one;
    async_select (status) { /* HELD */
        when (bide_event_wait(event)) {
            pthread_mutex_unlock(&s->lock);
            await bide_sleep_for(1);
            return sum;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}
END_OF_FILE

cat >frames.c <<'END_OF_FILE'
#include <bide/async.h>
#include <bide/sleep.h>
#include <string.h>
async int large(void)
{
    char text[5000];
    memset(text, 0, sizeof text);
    await bide_sleep_for(1);
    return text[7];
}
async int small(void)
{
    await bide_sleep_for(1);
    return 0;
}
END_OF_FILE

for cc in ${BIDE_COMPILERS:-gcc clang}; do
    command -v "$cc" >/dev/null || continue
    compile="$bidec $cc -std=gnu11 -I$root/include -c"

    # shellcheck disable=SC2086 # a list of words
    $compile -Wasync-lock-held locks.c -o locks.o 2>said || fail "$cc: locks.c does not compile"
    grep -n 'HELD \*/' locks.c | cut -d: -f1 >wanted
    sed -n 's/^locks.c:\([0-9]*\):[0-9]*: warning: this may suspend while .*\[-Wasync-lock-held\]$/\1/p' said | sort -n >seen
    diff wanted seen || fail "$cc: other lines are warned of"
    grep -q 'locks.c:85:5: .* the lock of line 83 is held, pthread_mutex_lock(&t->lock): ' said || fail "$cc: the lock is not named"
    $compile locks.c -o locks.o 2>said && [ ! -s said ] || fail "$cc: a warning without the option"
    $compile -Wasync-lock-held -Wno-async-lock-held locks.c -o locks.o 2>said && [ ! -s said ] || fail "$cc: not switched off"
    rm -f locks.o
    ! $compile -Werror -Wasync-lock-held locks.c -o locks.o 2>said || fail "$cc: -Werror has no effect"
    [ ! -e locks.o ] || fail "$cc: an object in spite of an error"

    $compile -Wasync-frame-larger-than=1000 frames.c -o frames.o 2>said || fail "$cc: frames.c does not compile"
    grep -q '^frames.c:4: warning: the frame of large has 5[0-9]* bytes, more than 1000 \[-Wasync-frame-larger-than=\]$' said &&
        [ "$(wc -l <said)" -eq 1 ] || fail "$cc: not the frame of large alone"
    $compile -Wasync-frame-larger-than=6000 frames.c -o frames.o 2>said && [ ! -s said ] || fail "$cc: no frame is so large"
    rm -f frames.o
    ! $compile -Werror -Wasync-frame-larger-than=1000 frames.c -o frames.o 2>said || fail "$cc: -Werror has no effect"
    [ ! -e frames.o ] || fail "$cc: an object in spite of an error"

    # without a source, and without an async function
    echo 'int main(void) { return 0; }' >plain.c
    $compile -Wasync-lock-held -Wasync-frame-larger-than=1 plain.c -o plain.o 2>said && [ ! -s said ] ||
        fail "$cc: a plain file"
    "$bidec" "$cc" -Wasync-lock-held plain.o -o plain 2>said && ./plain || fail "$cc: linking"
done
exit $failed
