#!/usr/bin/env bash
# scripts/amalgamate makes one bide.c and one bide.h that compile without a warning and run: amalgamate_test.sh ROOT.
# In TAP: the whole library and the core, by each of gcc, clang and musl-gcc that is installed.
set -u
root=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
count=0 failures=0

result() { # STATUS NAME [FILE]
    count=$((count + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $count - $2"
    else
        failures=$((failures + 1))
        echo "not ok $count - $2"
        [ $# -lt 3 ] || sed 's/^/# /' "$3" | head -n 30
    fi
}

"$root/scripts/amalgamate" "$scratch/whole" && "$root/scripts/amalgamate" --core "$scratch/core"
result $? 'both are made'

# A program over schedulers and input and output.
cat >"$scratch/whole/main.c" <<'END'
#include "bide.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct echo {
    bide_task task;
    bide_descriptor *from, *to;
    bide_file_operation operation;
    bide_sleep sleep;
    char text[16];
};

bide_coroutine(echo_body)
{
    bide_begin(echo_body, struct echo *self);
    bide_try(bide_sleep_for(&self->sleep, 1000));
    bide_try(bide_write(&self->operation, self->to, "through a pipe", 14));
    bide_try(bide_read(&self->operation, self->from, self->text, sizeof self->text));
    bide_end();
}

/* A function of the program's own may have any name that the library uses inside. */
int client_send(void);
int client_send(void) { return 0; }

int main(void)
{
    int fds[2];
    bide_descriptor from, to;
    bide_loop *loop;
    if (pipe(fds) != 0 || bide_loop_create(&loop, NULL) != 0)
        return 1;
    bide_descriptor_init(&from, fds[0]);
    bide_descriptor_init(&to, fds[1]);
    struct echo echo = {.from = &from, .to = &to};
    int error = bide_loop_wait(loop, bide_task_init(&echo.task, &echo_body));
    bide_close(&from);
    bide_close(&to);
    bide_loop_destroy(loop);
    printf("%.14s\n", echo.text);
    return error != 0 || memcmp(echo.text, "through a pipe", 14) != 0 || client_send() != 0;
}
END

# A program over the core alone, which brings the platform.
cat >"$scratch/core/main.c" <<'END'
#include "bide.h"
#include <stdio.h>
#include <stdlib.h>

static int no_wait(bide_atomic(uint32_t) * word, uint32_t expected, uint64_t deadline)
{
    (void)word, (void)expected, (void)deadline;
    return 0;
}
static void no_wake(bide_atomic(uint32_t) * word, uint32_t count) { (void)word, (void)count; }
static uint64_t now(void) { return 0; }
static void yield(void) {}
static void misuse(const char *what, const char *where, const char *file, unsigned line)
{
    fprintf(stderr, "%s in %s (%s:%u)\n", what, where, file, line);
    abort();
}
const bide_platform_table bide_platform = {no_wait, no_wake, now, yield, misuse, NULL};

struct waiter {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
};

bide_coroutine(waiter_body)
{
    bide_begin(waiter_body, struct waiter *self);
    bide_await(bide_event_wait(&self->wait, self->event));
    bide_end();
}

struct parent {
    bide_task task;
    bide_event event;
    bide_scope scope;
    bide_branch branch;
    struct waiter waiter;
};

bide_coroutine(parent_body)
{
    bide_begin(parent_body, struct parent *self);
    bide_event_init(&self->event, false);
    self->waiter.event = &self->event;
    bide_scope_init(&self->scope, bide_this_frame());
    bide_scope_spawn(&self->scope, &self->branch, bide_task_init(&self->waiter.task, &waiter_body));
    bide_event_set(&self->event);
    bide_try(bide_scope_join(&self->scope));
    bide_end();
}

int main(void)
{
    struct parent parent;
    return bide_sync_wait(bide_task_init(&parent.task, &parent_body)) != 0;
}
END

mkdir "$scratch/kernel"
ln -s /usr/include/linux /usr/include/asm-generic "/usr/include/$(gcc -print-multiarch)/asm" "$scratch/kernel/"

for compiler in gcc clang musl-gcc; do
    command -v "$compiler" >/dev/null || continue
    for part in core whole; do
        flags=
        # (musl's own compiler does not look where the kernel's headers are)
        [ "$compiler" != musl-gcc ] || flags="-idirafter $scratch/kernel"
        # shellcheck disable=SC2086 # $flags is several words or none
        (cd "$scratch/$part" && "$compiler" -std=gnu11 -O1 -Wall -Wextra -Werror $flags main.c bide.c -o program \
            -pthread -lm) >"$scratch/output" 2>&1
        result $? "$compiler compiles the $part" "$scratch/output"
        "$scratch/$part/program" >"$scratch/output" 2>&1
        result $? "the $part runs, by $compiler" "$scratch/output"
    done
done
echo "1..$count"
[ "$failures" -eq 0 ]
