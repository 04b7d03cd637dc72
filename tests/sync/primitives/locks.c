/* Locks with special waiters, and objects that are built on a mutex. */
#include "rows.h"

#include "bide/barging_mutex.h"
#include "bide/condition.h"
#include "bide/once.h"
#include "bide/rw_lock.h"
#include "bide/task.h"

/* ---- A reader-writer lock: at first the object's own waiter writes ---- */

typedef struct written {
    bide_rw_lock lock;
    bide_rw_lock_waiter first;
} written;

static void rw_init(void *object)
{
    PRIMITIVE_OBJECT(written, written);
    bide_rw_lock_init(&written->lock);
    if (!bide_rw_lock_try_write(&written->first, &written->lock))
        abort();
}

static bide_awaiter *write_begin(void *waiter, void *object)
{
    return bide_rw_lock_write(waiter, &((written *)object)->lock);
}

static bide_awaiter *read_begin(void *waiter, void *object)
{
    return bide_rw_lock_read(waiter, &((written *)object)->lock);
}

static bide_awaiter *upgradable_begin(void *waiter, void *object)
{
    return bide_rw_lock_upgradable_read(waiter, &((written *)object)->lock);
}

static int upgradable_blocking(void *waiter, void *object, uint64_t deadline)
{
    return bide_rw_lock_upgradable_read_blocking(waiter, &((written *)object)->lock, deadline);
}

static int write_blocking(void *waiter, void *object, uint64_t deadline)
{
    return bide_rw_lock_write_blocking(waiter, &((written *)object)->lock, deadline);
}

static int read_blocking(void *waiter, void *object, uint64_t deadline)
{
    return bide_rw_lock_read_blocking(waiter, &((written *)object)->lock, deadline);
}

static void rw_wake(void *object)
{
    bide_rw_lock_unlock(&((written *)object)->first);
}

static void write_hand_on(void *object, void *waiter)
{
    (void)object;
    bide_rw_lock_unlock((bide_rw_lock_waiter *)waiter);
}

static void rw_close(void *object)
{
    bide_rw_lock_close(&((written *)object)->lock);
}

static bool rw_is_idle(void *object)
{
    return bide_waiter_queue_is_idle(&((written *)object)->lock.queue);
}

static unsigned rw_free_tokens(void *object)
{
    return bide_rw_lock_is_locked(&((written *)object)->lock) ? 0 : 1;
}

static void rw_destroy(void *object)
{
    PRIMITIVE_OBJECT(written, written);
    if (written->first.holds != BIDE_RW_LOCK_NONE_)
        bide_rw_lock_unlock(&written->first); /* it was never woken */
    bide_rw_lock_destroy(&written->lock);
}

/* Readers hold it until here: the lock does not know them individually. */
static void read_destroy(void *object)
{
    PRIMITIVE_OBJECT(written, written);
    while (written->first.holds == BIDE_RW_LOCK_NONE_ && bide_rw_lock_is_locked(&written->lock)) {
        bide_rw_lock_waiter reader = {.waiter.queue = &written->lock.queue,
                                      .holds = BIDE_RW_LOCK_READS_};
        bide_rw_lock_unlock(&reader);
    }
    rw_destroy(object);
}

const primitive primitive_rw_lock_write = {
    .name = "reader-writer lock, to write",
    .object_size = sizeof(written),
    .waiter_size = sizeof(bide_rw_lock_waiter),
    .traits = IN_ORDER | HANDED | HAS_KEY | COUNTS_WHEN_CLOSED,
    .tokens = 1,
    .init = rw_init,
    .begin = write_begin,
    .wait_blocking = write_blocking,
    .wake = rw_wake,
    .hand_on = write_hand_on,
    .close = rw_close,
    .is_idle = rw_is_idle,
    .free_tokens = rw_free_tokens,
    .destroy = rw_destroy,
};

const primitive primitive_rw_lock_upgradable = {
    .name = "reader-writer lock, to read and perhaps upgrade",
    .object_size = sizeof(written),
    .waiter_size = sizeof(bide_rw_lock_waiter),
    .traits = IN_ORDER | HANDED | HAS_KEY | COUNTS_WHEN_CLOSED,
    .tokens = 1,
    .init = rw_init,
    .begin = upgradable_begin,
    .wait_blocking = upgradable_blocking,
    .wake = rw_wake,
    .hand_on = write_hand_on,
    .close = rw_close,
    .is_idle = rw_is_idle,
    .free_tokens = rw_free_tokens,
    .destroy = rw_destroy,
};

const primitive primitive_rw_lock_read = {
    .name = "reader-writer lock, to read",
    .object_size = sizeof(written),
    .waiter_size = sizeof(bide_rw_lock_waiter),
    .traits = IN_ORDER | HANDED,
    .init = rw_init,
    .begin = read_begin,
    .wait_blocking = read_blocking,
    .wake = rw_wake,
    .close = rw_close,
    .is_idle = rw_is_idle,
    .destroy = read_destroy,
};

/* ---- A mutex that is not handed over ---- */

typedef struct locked_barging {
    bide_barging_mutex mutex;
    bide_barging_mutex_waiter first;
    bool woken;
} locked_barging;

static void barging_init(void *object)
{
    PRIMITIVE_OBJECT(locked_barging, locked);
    bide_barging_mutex_init(&locked->mutex);
    locked->woken = false;
    if (!bide_barging_mutex_try_lock(&locked->first, &locked->mutex))
        abort();
}

static bide_awaiter *barging_begin(void *waiter, void *object)
{
    return bide_barging_mutex_lock(waiter, &((locked_barging *)object)->mutex);
}

static int barging_blocking(void *waiter, void *object, uint64_t deadline)
{
    return bide_barging_mutex_lock_blocking(waiter, &((locked_barging *)object)->mutex, deadline);
}

static void barging_wake(void *object)
{
    PRIMITIVE_OBJECT(locked_barging, locked);
    locked->woken = true;
    bide_barging_mutex_unlock(&locked->first);
}

static void barging_hand_on(void *object, void *waiter)
{
    (void)object;
    bide_barging_mutex_unlock((bide_barging_mutex_waiter *)waiter);
}

static void barging_close(void *object)
{
    bide_barging_mutex_close(&((locked_barging *)object)->mutex);
}

static bool barging_is_idle(void *object)
{
    return bide_waiter_queue_is_idle(&((locked_barging *)object)->mutex.queue);
}

static unsigned barging_free_tokens(void *object)
{
    return bide_barging_mutex_is_locked(&((locked_barging *)object)->mutex) ? 0 : 1;
}

static void barging_destroy(void *object)
{
    PRIMITIVE_OBJECT(locked_barging, locked);
    if (!locked->woken)
        barging_wake(object);
    bide_barging_mutex_destroy(&locked->mutex);
}

const primitive primitive_barging_mutex = {
    .name = "barging mutex",
    .object_size = sizeof(locked_barging),
    .waiter_size = sizeof(bide_barging_mutex_waiter),
    .traits = HAS_KEY | COUNTS_WHEN_CLOSED,
    .tokens = 1,
    .init = barging_init,
    .begin = barging_begin,
    .wait_blocking = barging_blocking,
    .wake = barging_wake,
    .hand_on = barging_hand_on,
    .close = barging_close,
    .is_idle = barging_is_idle,
    .free_tokens = barging_free_tokens,
    .destroy = barging_destroy,
};

/*
 * ---- Once: at first the object's own waiter runs it; then it completes, or, in the second row, never ----
 */

typedef struct run_once {
    bide_once once;
    bide_once_waiter first;
} run_once;

static void once_init(void *object)
{
    PRIMITIVE_OBJECT(run_once, run);
    bide_once_init(&run->once);
    if (bide_once_start_blocking(&run->first, &run->once, BIDE_FOREVER) != 0 || !run->first.runs)
        abort();
}

static bide_awaiter *once_begin(void *waiter, void *object)
{
    return bide_once_start(waiter, &((run_once *)object)->once);
}

static int once_blocking(void *waiter, void *object, uint64_t deadline)
{
    return bide_once_start_blocking(waiter, &((run_once *)object)->once, deadline);
}

static void once_wake(void *object)
{
    bide_once_finish(&((run_once *)object)->first, true);
}

static void once_wake_in_vain(void *object)
{
    bide_once_finish(&((run_once *)object)->first, false);
}

static void once_hand_on(void *object, void *waiter)
{
    (void)object;
    bide_once_finish((bide_once_waiter *)waiter, false);
}

static void once_close(void *object)
{
    bide_once_close(&((run_once *)object)->once);
}

static bool once_is_idle(void *object)
{
    return bide_waiter_queue_is_idle(&((run_once *)object)->once.queue);
}

static unsigned once_free_tokens(void *object)
{
    PRIMITIVE_OBJECT(run_once, run);
    return (bide_atomic_load(&run->once.queue.state, relaxed) & BIDE_ONCE_RUNS_) == 0;
}

static void once_destroy(void *object)
{
    PRIMITIVE_OBJECT(run_once, run);
    if (run->first.runs)
        bide_once_finish(&run->first, false); /* it was never woken */
    bide_once_destroy(&run->once);
}

const primitive primitive_once = {
    .name = "once",
    .object_size = sizeof(run_once),
    .waiter_size = sizeof(bide_once_waiter),
    .traits = IN_ORDER | HANDED | STAYS_HAD,
    .init = once_init,
    .begin = once_begin,
    .wait_blocking = once_blocking,
    .wake = once_wake,
    .close = once_close,
    .is_idle = once_is_idle,
    .destroy = once_destroy,
};

const primitive primitive_once_in_vain = {
    .name = "once that does not get done",
    .object_size = sizeof(run_once),
    .waiter_size = sizeof(bide_once_waiter),
    .traits = IN_ORDER | HANDED | HAS_KEY | COUNTS_WHEN_CLOSED,
    .tokens = 1,
    .init = once_init,
    .begin = once_begin,
    .wait_blocking = once_blocking,
    .wake = once_wake_in_vain,
    .hand_on = once_hand_on,
    .close = once_close,
    .is_idle = once_is_idle,
    .free_tokens = once_free_tokens,
    .destroy = once_destroy,
};

/* ---- A monitor: a condition, its mutex, and the awaited state ---- */

typedef struct monitor {
    bide_mutex mutex;
    bide_condition condition;
    bool is_set; /* under the mutex */
} monitor;

typedef struct monitor_wait {
    bide_task task;
    monitor *monitor;
    bide_mutex_waiter lock;
    bide_condition_waiter wait;
    bool holds; /* the mutex */
    int status;
} monitor_wait;

bide_coroutine(monitor_body)
{
    bide_begin(monitor_body, monitor_wait * self);
    bide_try(bide_mutex_lock(&self->lock, &self->monitor->mutex));
    self->holds = true;
    while (self->status == 0 && !self->monitor->is_set) {
        self->holds = false;
        bide_await_status(self->status,
                          bide_condition_wait(&self->wait, &self->monitor->condition, &self->lock));
        self->holds = self->wait.is_locked;
    }
    bide_return(self->status);
    bide_finally();
    if (self->holds)
        bide_mutex_unlock(&self->lock);
    bide_end();
}

static void monitor_init(void *object)
{
    PRIMITIVE_OBJECT(monitor, monitor);
    bide_mutex_init(&monitor->mutex);
    bide_condition_init(&monitor->condition);
    monitor->is_set = false;
}

static bide_awaiter *monitor_begin(void *waiter, void *object)
{
    PRIMITIVE_WAITER(monitor_wait, wait);
    wait->monitor = object;
    wait->holds = false;
    wait->status = 0;
    return bide_task_init(&wait->task, &monitor_body);
}

static void monitor_wake(void *object)
{
    PRIMITIVE_OBJECT(monitor, monitor);
    bide_mutex_waiter lock;
    if (bide_mutex_lock_blocking(&lock, &monitor->mutex, BIDE_FOREVER) != 0)
        abort();
    monitor->is_set = true;
    bide_mutex_unlock(&lock);
    bide_condition_notify_all(&monitor->condition);
}

static void monitor_close(void *object)
{
    bide_condition_close(&((monitor *)object)->condition);
}

static bool monitor_is_idle(void *object)
{
    PRIMITIVE_OBJECT(monitor, monitor);
    return bide_waiter_queue_is_idle(&monitor->condition.queue) &&
           bide_waiter_queue_is_idle(&monitor->mutex.queue) &&
           !bide_mutex_is_locked(&monitor->mutex);
}

static void monitor_destroy(void *object)
{
    PRIMITIVE_OBJECT(monitor, monitor);
    bide_condition_destroy(&monitor->condition);
    bide_mutex_destroy(&monitor->mutex);
}

const primitive primitive_condition = {
    .name = "condition",
    .object_size = sizeof(monitor),
    .waiter_size = sizeof(monitor_wait),
    .max_counted = BIDE_CONDITION_MAX,
    .traits = IN_ORDER | HANDED | STAYS_HAD | WAKE_BLOCKS,
    .init = monitor_init,
    .begin = monitor_begin,
    .wake = monitor_wake,
    .close = monitor_close,
    .is_idle = monitor_is_idle,
    .destroy = monitor_destroy,
};
