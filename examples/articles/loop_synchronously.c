/*
 * A loop that awaits synchronously completing tasks, ten million times, on a stack of 64 KiB. If an
 * await were a call, each round would leave a call on the stack: one into the task, and one back
 * into the loop. Here both are symmetric transfers: the next frame to run is returned to one loop
 * at the bottom of the stack, so the stack is as deep after the last round as in the first. With an
 * argument, the stack has that many KiB.
 */
#define _GNU_SOURCE
#include <bide/bide.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 10000000 };

struct completes_synchronously {
    bide_task task;
    int *count;
};

bide_coroutine(completes_synchronously_body)
{
    bide_begin(completes_synchronously_body, struct completes_synchronously * self);
    ++*self->count;
    bide_end();
}

struct loop_synchronously {
    bide_task task;
    int i;
    int count;
    struct completes_synchronously child; /* initialized anew in each round */
};

bide_coroutine(loop_synchronously_body)
{
    bide_begin(loop_synchronously_body, struct loop_synchronously * self);
    self->child.count = &self->count;
    for (self->i = 0; self->i < COUNT; self->i++)
        bide_await(bide_task_init(&self->child.task, &completes_synchronously_body));
    bide_end();
}

static void *run(void *count)
{
    struct loop_synchronously loop = {.count = 0};
    bide_sync_wait(bide_task_init(&loop.task, &loop_synchronously_body));
    *(int *)count = loop.count;
    return NULL;
}

int main(int argc, char **argv)
{
    size_t stack = (argc > 1 ? strtoul(argv[1], NULL, 10) : 64) * 1024;
    pthread_attr_t attributes;
    pthread_t thread;
    int count = 0;
    if (stack < (size_t)PTHREAD_STACK_MIN)
        stack = (size_t)PTHREAD_STACK_MIN;
    if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, stack) != 0 ||
        pthread_create(&thread, &attributes, run, &count) != 0)
        return 1;
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    printf("awaited %d times\n", count);
    return count != COUNT;
}
