/*
 * Where a chain of awaits begins: a root awaits one operation without a coroutine, in a context
 * that is given to it, and calls a function when it has ended. sync_wait and spawn are made of it.
 * Floor: coroutine.
 *
 *     static void ended(bide_root *root) { ... root->status ... }
 *     bide_root_start(&job->root, &context, bide_sleep_for(&job->sleep, 1000), ended);
 *
 *     begun --posted--> its scheduler starts the operation --> waits --> ended(root)
 *
 * Any thread may begin one. It costs a post, and no allocation: the memory is the caller's.
 *
 * Why it is correct: src/coroutine/root.c.
 */
#ifndef BIDE_EXTEND_ROOT_H
#define BIDE_EXTEND_ROOT_H

#include "bide/stop.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_root bide_root;

/* Neighbours among the live roots, or branches of scopes (bide_dump). Of the library. */
typedef struct bide_root_links_ {
    struct bide_root_links_ *next;
    struct bide_root_links_ **place; /* what leads here */
} bide_root_links_;

struct bide_root {
    bide_frame frame;
    bide_root_links_ links;
    bide_awaiter *awaited;
    int status; /* what `awaited` ended with; for `ended` and after it */
    void (*ended)(bide_root *root);

    bide_context context; /* a copy of the one given to it, but for the source; constant */

    /* if that has a stop source, or the root was prepared as stoppable: what is awaited has a
     * source of its own, attached to that of the context, if there is one */
    bide_stop_source stop;
};

/*
 * Posts `root` to the scheduler of `context`, where it awaits `awaited`; when that has ended, calls
 * `ended` there, wherever it ended. `root` and `awaited` must stay until then. The root is then
 * marked as ended, and nothing of it is touched after `ended` is called, which may free it.
 * `context` is copied. If it has a stop source, `awaited` runs with a source of its own that is
 * attached to it.
 * Threads: any. Suspends: never. Progress: blocks for a moment at most, for the list of live roots,
 * and as bide_stop_source_attach does if the context has a stop source; then that of posting to the
 * scheduler.
 */
void bide_root_start(bide_root *root, const bide_context *context, bide_awaiter *awaited,
                     void (*ended)(bide_root *root));

/*
 * The first part of that. Then either bide_root_post, or bide_resume(&root->frame): then `awaited`
 * is started by that call, on this thread, whatever runs on it, and the call returns when there is
 * nothing left to run here. That is for contexts of the inline scheduler.
 *
 * `is_stoppable`: with a source, root->stop, whatever the context has. That may be asked to stop,
 * and so `awaited` alone, from now on and while the root stays: before it is started, while it
 * runs, and, to no effect, when it has ended.
 * Threads: any. Suspends: never. Progress: blocks as bide_root_start does.
 */
void bide_root_prepare(bide_root *root, const bide_context *context, bide_awaiter *awaited,
                       void (*ended)(bide_root *root), bool is_stoppable);

/*
 * Posts what was prepared. As bide_root_start otherwise.
 * Threads: any. Suspends: never. Progress: that of posting to the scheduler.
 */
void bide_root_post(bide_root *root);

BIDE_EXTERN_C_END

#endif
