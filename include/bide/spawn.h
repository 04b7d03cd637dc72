/*
 * Starting a coroutine beside others, in a context of its own, and waiting for its end.
 * Floor: schedule.
 *
 *     bide_spawn(&self->reader, context, reader_run(&self->reader_frame, ...));
 *     ...
 *     bide_await(bide_event_wait(&self->wait, &self->reader.ended));    // then self->reader.root.status
 */
#ifndef BIDE_SPAWN_H
#define BIDE_SPAWN_H

#include "bide/event.h"
#include "bide/extend/root.h"

BIDE_EXTERN_C_BEGIN

/* One started coroutine. The caller's until `ended` is set; then root.status is 0 or a negative errno. */
typedef struct bide_spawned {
    bide_root root;
    bide_event ended;
} bide_spawned;

/*
 * Starts `awaiter` on the scheduler of `context`, which is copied: if the spawning coroutine passes its own and moves
 * later, what it has spawned stays. `spawned` and what is awaited must stay where they are until `spawned->ended` is
 * set, and may go right after that; the scheduler and the context's stop source too. Any thread; does not suspend;
 * cannot fail.
 */
void bide_spawn(bide_spawned *spawned, const bide_context *context, bide_awaiter *awaiter);

/* The same where BIDE_DEBUG is 1: says so if what was started with `spawned` before has not ended yet, or `awaiter` was
 * never initialised. */
void bide_spawn_checked_(bide_spawned *spawned, const bide_context *context, bide_awaiter *awaiter,
                         const char *what, const char *function, const char *file, unsigned line);
#if BIDE_DEBUG
#define bide_spawn(spawned, context, awaiter) \
    bide_spawn_checked_(                      \
        (spawned), (context), (awaiter),      \
        BIDE_MISUSE_("a bide_spawned is used again before what it runs ended", #spawned))
#endif

BIDE_EXTERN_C_END

#endif
