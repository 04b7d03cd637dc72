/* What the two back ends of a loop have in common. */
#ifndef BIDE_IO_LOOP_H
#define BIDE_IO_LOOP_H

#include "operation.h"

#include "bide/loop.h"

#include "../schedule/registry.h"
#include "../schedule/run_loop_events.h"

#include <pthread.h>

/*
 * So much of what has come is taken before what it woke runs: that finds its memory in the cache, and
 * the first of many does not wait for the calls of the last.
 */
enum { LOOP_TURN = 16 };

#if defined __SANITIZE_THREAD__
#define LOOP_HANDLERS_MAY_WAIT 1
#elif defined __has_feature
#if __has_feature(thread_sanitizer)
#define LOOP_HANDLERS_MAY_WAIT 1
#endif
#endif
#ifndef LOOP_HANDLERS_MAY_WAIT
#define LOOP_HANDLERS_MAY_WAIT 0
#endif

/*
 * When a loop that sleeps until `deadline` is to look up. ThreadSanitizer puts the handler of a signal
 * off until the thread makes a call that it knows, and now and then one that comes right before
 * epoll_wait, which it knows, until the end of that. So under it a loop looks up ten times a second,
 * and asks for the time.
 */
BIDE_INLINE uint64_t loop_look_up_at(uint64_t deadline)
{
    uint64_t soon = LOOP_HANDLERS_MAY_WAIT ? bide_platform.now() + 100000000 : BIDE_FOREVER;
    return deadline < soon ? deadline : soon;
}

struct bide_loop {
    bide_run_loop run; /* at the head: aligned */
    bide_io io;
    bide_loop_back_end back_end;
    bide_loop_stats counts;
    bool has_run;
    pthread_t thread; /* that it runs on */

    /* for the monitor, which has the kernel read them */
    bide_live_ live;
    int thread_number;
    bool is_run;    /* its thread is in it */
    bool is_asleep; /* in the kernel */

    bide_blocking *files;
    bool owns_files;
    struct loop_epoll *epoll; /* one of these two */
    struct loop_uring *uring;
};

BIDE_INLINE bide_loop *loop_of(bide_io *io)
{
    return bide_container_of(io, bide_loop, io);
}

/* Its thread begins to run it: the first one, or the same again; otherwise that is told as misuse. */
void bide_loop_begin_on_thread_(bide_loop *loop);

/* Makes the back end; 0 or a negative errno. */
int bide_loop_epoll_create_(bide_loop *loop);
int bide_loop_uring_create_(bide_loop *loop, unsigned entries);

/* Frees it. `is_own`: in the process that made it; in another nothing is touched that both have. */
void bide_loop_epoll_destroy_(bide_loop *loop, bool is_own);
void bide_loop_uring_destroy_(bide_loop *loop, bool is_own);

/* Has a thread for blocking calls do the operation, as `begin` of a table. */
bide_frame *bide_loop_offload_(bide_loop *loop, bide_io_operation *operation, bide_frame *frame);

/* Is it there, or about to be? Then a request to stop, or the end of its coroutine, goes here. */
bool bide_loop_is_offloaded_(const bide_io_operation *operation);
void bide_loop_cancel_offloaded_(bide_loop *loop, bide_io_operation *operation);
void bide_loop_discard_offloaded_(bide_loop *loop, bide_io_operation *operation);

/* Does the operation at once, if it never waits. True: it did. */
bool bide_loop_do_at_once_(bide_io_operation *operation);

/* A loop, as it is seen while it runs. */
typedef struct loop_seen {
    uint32_t number;
    int thread;    /* 0: none yet */
    char name[64]; /* of its context; or empty */
    const char *back_end;
    bool is_run;
    bool is_asleep;
    bide_loop_stats counts;
} loop_seen;

/* On any thread, which holds the live ones (live.h) and may peek. False: it cannot be read. */
bool bide_loop_note_events_(const bide_live_ *live, loop_seen *seen);

#endif
