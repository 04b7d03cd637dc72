/*
 * Blocking a thread until an operation has ended.
 *
 *     word   RUNNING --the end--> ENDED
 *
 * The waiting thread owns the struct, on its stack, and leaves once it has seen ENDED, so:
 *   1. Storing ENDED is the last thing that the other side does to the struct; the wake after it uses
 *      the address alone.
 *   2. The store releases and the waiter's load acquires: the status, and whatever the operation wrote,
 *      is seen by the waiter. Without it the status could be read stale.
 *   3. No sleep is missed: the platform's wait compares the word under the same lock as wake, so either
 *      it finds ENDED or it is woken.
 */
#include "bide/sync_wait.h"

#include "bide/root.h"

enum { RUNNING, ENDED };

typedef struct thread_waiter {
    bide_root root;
    bide_atomic(uint32_t) word;
} thread_waiter;

static void thread_waiter_ended(bide_root *root)
{
    thread_waiter *waiter = bide_container_of(root, thread_waiter, root);
    bide_atomic(uint32_t) *word = &waiter->word;
    bide_atomic_store(word, ENDED, release); /* partner: the load below; see 1 and 2 */
    bide_platform.wake(word, 1);
}

int bide_sync_wait_in(const bide_context *context, bide_awaiter *awaiter)
{
    thread_waiter waiter;
    bide_atomic_init(&waiter.word, RUNNING);
    /* Inside a coroutine, what is posted inline would wait for that one, and it for us: so not posted. */
    if (context->scheduler == &bide_inline_scheduler)
        bide_root_run(&waiter.root, context, awaiter, thread_waiter_ended);
    else
        bide_root_begin(&waiter.root, context, awaiter, thread_waiter_ended);
    while (bide_atomic_load(&waiter.word, acquire) == RUNNING) /* partner: the store above */
        bide_platform.wait(&waiter.word, RUNNING, BIDE_FOREVER);
    return waiter.root.status;
}

int bide_sync_wait(bide_awaiter *awaiter)
{
    return bide_sync_wait_in(&bide_default_context, awaiter);
}
