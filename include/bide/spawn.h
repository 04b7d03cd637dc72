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
#include "bide/root.h"

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

BIDE_EXTERN_C_END

#endif
