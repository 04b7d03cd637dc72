/*
 * A program over the whole library, for a C library or a processor that has no cmocka: other_systems_test.sh compiles
 * it. It prints a line of TAP for each claim.
 */
#define _GNU_SOURCE
#include "bide.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned count, failures;

static void claim(bool holds, const char *what)
{
    printf("%s %u - %s\n", holds ? "ok" : "not ok", ++count, what);
    failures += !holds;
}

/* ---- Stacks ---- */

static void use_stack(void *argument)
{
    volatile char room[4 << 20];
    for (size_t i = 0; i < sizeof room; i += 1024)
        room[i] = 1;
    *(int *)argument = room[1024];
}

static void stacks_of_the_librarys_threads_hold_4_mib(void)
{
    bide_thread_pool *pool;
    bide_blocking *blocking;
    bide_blocking_call call;
    int first = 0, second = 0;
    bool holds = bide_thread_pool_create(&pool, 1) == 0;
    if (holds) {
        bide_join_in(pool, use_stack, &first, use_stack, &second);
        bide_thread_pool_destroy(pool);
    }
    claim(holds && first == 1 && second == 1, "a worker of a pool has a stack for 4 MiB");
    holds = bide_blocking_create(&blocking, 1) == 0;
    if (holds) {
        first = 0;
        bide_sync_wait(bide_blocking_run(&call, blocking, use_stack, &first));
        bide_blocking_destroy(blocking);
    }
    claim(holds && first == 1, "so has a thread for blocking calls");
}

/* ---- Forks ---- */

struct waiting {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
};

bide_coroutine(waiting_body)
{
    bide_begin(waiting_body, struct waiting * self);
    bide_await(bide_event_wait(&self->wait, self->event));
    bide_end();
}

/* The number of tasks in a dump, which is in its last line; or -1. */
static int roots_shown(void)
{
    char *text = NULL;
    size_t length = 0;
    int shown = -1;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL)
        return -1;
    int status = bide_dump(out);
    fclose(out);
    if (status == 0 && length != 0) {
        const char *end = text + length - 1;
        while (end > text && end[-1] != '\n')
            end--;
        if (sscanf(end, "%d", &shown) != 1)
            shown = -1;
    }
    free(text);
    return shown;
}

static void what_was_begun_goes_on_in_the_child_of_one_thread(void)
{
    static bide_event event;
    static bide_run_loop loop;
    static struct waiting waiting;
    static bide_spawned spawned;
    int status = -1;
    bide_run_loop_init(&loop);
    bide_event_init(&event, false);
    waiting.event = &event;
    bide_spawn(&spawned, &loop.context, bide_task_init(&waiting.task, &waiting_body));
    bide_run_loop_run_ready(&loop);
    fflush(stdout);
    pid_t child = fork();
    bool is_there = roots_shown() == 1;
    bide_event_set(&event);
    bide_run_loop_run_ready(&loop);
    bool has_ended = bide_event_is_set(&spawned.ended) && roots_shown() == 0;
    if (child == 0)
        _exit(!is_there + 2 * !has_ended);
    waitpid(child, &status, 0);
    claim(is_there && has_ended, "the parent goes on after a fork");
    claim(status == 0, "what was begun goes on in the child");
    bide_run_loop_destroy(&loop);
}

/* ---- A loop ---- */

static void a_loop_sends_receives_and_sleeps(void)
{
    bide_loop *loop;
    bide_loop_options options = {.kind = BIDE_LOOP_EPOLL};
    int fds[2];
    char got[8] = "";
    int status = bide_loop_create(&loop, &options);
    if (status != 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
        claim(false, "a loop over epoll");
        return;
    }
    bide_descriptor ends[2];
    bide_io_operation sent;
    bide_io_operation received;
    bide_descriptor_init(&ends[0], fds[0]);
    bide_descriptor_init(&ends[1], fds[1]);
    status = bide_loop_wait(loop, bide_send(&sent, &ends[0], "musl", 4));
    claim(status == 0 &&
              bide_loop_wait(loop, bide_recv(&received, &ends[1], got, sizeof got)) == 0 &&
              memcmp(got, "musl", 4) == 0,
          "a loop sends and receives");
    bide_sleep sleeping;
    uint64_t began = bide_platform.now();
    status = bide_loop_wait(loop, bide_sleep_for(&sleeping, BIDE_MILLISECONDS(3)));
    claim(status == 0 && bide_platform.now() - began >= BIDE_MILLISECONDS(3),
          "a sleep ends, and not early");
    bide_close(&ends[0]);
    bide_close(&ends[1]);
    bide_loop_destroy(loop);
}

int main(void)
{
    what_was_begun_goes_on_in_the_child_of_one_thread();
    stacks_of_the_librarys_threads_hold_4_mib();
    a_loop_sends_receives_and_sleeps();
    printf("1..%u\n", count);
    return failures != 0;
}
