/*
 * A program of coroutines that is independent of its loop: two sleep in turns, and a thread wakes
 * one. libuv.c, glib.c and libevent.c run it, each in that library's loop.
 */
#ifndef EXAMPLES_FOREIGN_LOOPS_PROGRAM_H
#define EXAMPLES_FOREIGN_LOOPS_PROGRAM_H

#include <bide/bide.h>
#include <pthread.h>

struct sleeper {
    bide_task task;
    bide_spawned spawned;
    const char *name;
    unsigned milliseconds;
    int naps;
    bide_sleep sleep;
};

struct listener {
    bide_task task;
    bide_spawned spawned;
    bide_event asked;
    bide_event_waiter wait;
    bide_event answered;
};

struct main_task {
    bide_task task;
    bide_spawned spawned;
    struct sleeper sleepers[2];
    struct listener listener;
    pthread_t thread;
    bide_event_waiter wait;
    int i;
    bool ended;
};

/* Starts the program in `context`. `ended` is set when it finishes. */
void program_begin(struct main_task *self, const bide_context *context);

#endif
