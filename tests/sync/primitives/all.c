/* The table, and the memory of objects and waiters. */
#include "rows.h"

#include "bide/sync_wait.h"

#include <stdlib.h>
#include <string.h>

#if defined __SANITIZE_ADDRESS__
#define ASAN 1
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define ASAN 1
#endif
#endif
#ifdef ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(memory, size)   ((void)(memory), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(memory, size) ((void)(memory), (void)(size))
#endif

const primitive *const primitives[] = {
    &primitive_event,
    &primitive_single_consumer_event,
    &primitive_single_consumer_auto_reset_event,
    &primitive_mutex,
    &primitive_semaphore,
    &primitive_semaphore_of_two,
    &primitive_sequence_barrier8,
    &primitive_sequence_barrier,
    &primitive_sequence_group,
    &primitive_claim,
    &primitive_multi_claim,
    &primitive_multi_reader,
    &primitive_shared_task,
    &primitive_rw_lock_write,
    &primitive_rw_lock_read,
    &primitive_rw_lock_upgradable,
    &primitive_barging_mutex,
    &primitive_once,
    &primitive_once_in_vain,
    &primitive_condition,
    &primitive_auto_event,
    &primitive_notify_one,
    &primitive_notify_all,
    &primitive_latch,
    &primitive_wait_group,
    &primitive_cyclic_barrier,
    &primitive_oneshot,
    &primitive_watch,
    &primitive_watch_shared,
    &primitive_watch_predicate,
    &primitive_broadcast,
    &primitive_broadcast_shared,
    &primitive_event_count,
    &primitive_channel_receive,
    &primitive_channel_send,
    &primitive_channel_receive_many,
    &primitive_channel_reserve,
    &primitive_channel_reserve_many,
};
const size_t primitives_count = sizeof primitives / sizeof primitives[0];

int primitive_wait_blocking(const primitive *p, void *waiter, void *object, uint64_t deadline)
{
    if (p->wait_blocking != NULL)
        return p->wait_blocking(waiter, object, deadline);
    return bide_sync_wait_until(p->begin(waiter, object), deadline);
}

static void *must(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

void *primitive_new_object(const primitive *p)
{
    size_t lines = (p->object_size + BIDE_CACHE_LINE - 1) / BIDE_CACHE_LINE;
    void *object = must(aligned_alloc(BIDE_CACHE_LINE, lines * BIDE_CACHE_LINE));
    p->init(object);
    return object;
}

void primitive_free_object(const primitive *p, void *object)
{
    p->destroy(object);
    free(object);
}

/* Neither a pointer nor any valid state. */
enum { RETIRED = 0xA5 };

void *primitive_new_waiter(const primitive *p)
{
    return must(malloc(p->waiter_size));
}

void primitive_retire_waiter(const primitive *p, void *waiter)
{
    memset(waiter, RETIRED, p->waiter_size);
    ASAN_POISON_MEMORY_REGION(waiter, p->waiter_size);
}

bool primitive_reuse_waiter(const primitive *p, void *waiter)
{
    const unsigned char *bytes = waiter;
    ASAN_UNPOISON_MEMORY_REGION(waiter, p->waiter_size);
    for (size_t i = 0; i < p->waiter_size; i++) {
        if (bytes[i] != RETIRED)
            return false;
    }
    return true;
}

bool primitive_free_waiter(const primitive *p, void *waiter)
{
    bool intact = primitive_reuse_waiter(p, waiter);
    free(waiter);
    return intact;
}
