/*
 * Starting a coroutine beside others, in a context of the caller's choice, and waiting for its end.
 * Floor: schedule.
 *
 *     bide_spawn(&self->reader, context, reader_run(&self->reader_frame, ...));
 *     ...
 *     bide_await(bide_event_wait(&self->wait, &self->reader.ended));
 *     use(self->reader.root.status);
 *
 * Any thread may spawn, and any number of coroutines and threads may wait for the end. Spawning costs
 * a post to the scheduler and no allocation: the memory is the caller's. Use a scope (scope.h) if all
 * coroutines must end before the function that started them; a scope also passes errors on.
 *
 * Why it is correct: it is a root and an event; extend/root.h and event.h have the arguments.
 */
#ifndef BIDE_SPAWN_H
#define BIDE_SPAWN_H

#include "bide/event.h"
#include "bide/extend/root.h"

BIDE_EXTERN_C_BEGIN

/*
 * One started coroutine. The caller's until `ended` is set; then root.status is 0 or a negative
 * errno.
 */
typedef struct bide_spawned {
    bide_root root;
    bide_event ended;
} bide_spawned;

/*
 * Starts `awaiter` on the scheduler of `context`, which is copied: if the spawning coroutine passes
 * its own and moves later, what it has spawned stays. `spawned` and what is awaited must stay where
 * they are until `spawned->ended` is set, and may go right after that; the scheduler and the
 * context's stop source and its values too (bide_context_without_values is for what may outlive
 * them). Cannot fail. Where BIDE_DEBUG is 1, to use `spawned` again before what
 * it runs has ended is caught as misuse.
 * Threads: any. Suspends: never. Progress: as bide_root_start.
 */
void bide_spawn(bide_spawned *spawned, const bide_context *context, bide_awaiter *awaiter);

/*
 * The same where BIDE_DEBUG is 1: says so if what was started with `spawned` before has not ended
 * yet, or `awaiter` was never initialised.
 * Threads: as bide_spawn.
 */
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
