/* Awaitable operations that are no primitives, as rows like theirs. */
#include "channels.h"
#include "composition.h"
#include "taking.h"

#include "../primitives/rows.h"

#include "bide/blocking.h"
#include "bide/channel.h"
#include "bide/errors.h"
#include "bide/interval.h"
#include "bide/select.h"
#include "bide/sleep.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

bide_scheduler *row_target;
place *row_place;

static void no_destroy(void *object)
{
    (void)object;
}

static bool always_idle(void *object)
{
    (void)object;
    return true;
}

static void no_wake(void *object)
{
    (void)object;
}

static void no_init(void *object)
{
    (void)object;
}

/* ---- Over an event: tasks that wait for it ---- */

static void event_init(void *object)
{
    bide_event_init(object, false);
}

static void event_wake(void *object)
{
    bide_event_set(object);
}

static void event_close(void *object)
{
    bide_event_close(object);
}

static bool event_is_idle(void *object)
{
    PRIMITIVE_OBJECT(bide_event, event);
    return bide_waiter_list_word_is_idle(bide_atomic_load(&event->waiters.word, relaxed));
}

static void event_destroy(void *object)
{
    bide_event_destroy((bide_event *)object);
}

#define OVER_AN_EVENT                                                          \
    .object_size = sizeof(bide_event), .init = event_init, .wake = event_wake, \
    .close = event_close, .is_idle = event_is_idle, .destroy = event_destroy,  \
    .traits = IN_ORDER | HANDED | STAYS_HAD

struct waiting_task {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
    int status;
};

bide_coroutine(waiting_task_body)
{
    bide_begin(waiting_task_body, struct waiting_task * self);
    bide_await_status(self->status, bide_event_wait(&self->wait, self->event));
    bide_return(self->status);
    bide_end();
}

static bide_awaiter *task_begin(void *waiter, void *object)
{
    PRIMITIVE_WAITER(struct waiting_task, self);
    self->event = object;
    return bide_task_init(&self->task, &waiting_task_body);
}

static const primitive task_row = {
    .name = "a task",
    .waiter_size = sizeof(struct waiting_task),
    .begin = task_begin,
    OVER_AN_EVENT,
};

static bide_awaiter *created_begin(void *waiter, void *object)
{
    struct waiting_task *self = bide_create(sizeof *self, &waiting_task_body, &counting_allocator);
    (void)waiter;
    if (self != NULL)
        self->event = object;
    return bide_owned(self, &waiting_task_body);
}

static const primitive created_row = {
    .name = "a created task",
    .waiter_size = 1,
    .begin = created_begin,
    OVER_AN_EVENT,
};

struct waiting_generator {
    bide_async_generator generator;
    bide_async_generator_next_operation next;
    bide_event *event;
    bide_event_waiter wait;
};

bide_async_generator_coroutine(waiting_generator_body)
{
    bide_begin(waiting_generator_body, struct waiting_generator * self);
    bide_try(bide_event_wait(&self->wait, self->event));
    bide_yield(self->event);
    bide_end();
}

static bide_awaiter *generator_begin(void *waiter, void *object)
{
    PRIMITIVE_WAITER(struct waiting_generator, self);
    self->event = object;
    return bide_async_generator_next(
        &self->next, bide_async_generator_init(&self->generator, &waiting_generator_body));
}

static void generator_end(void *object, void *waiter)
{
    (void)object;
    bide_async_generator_destroy(&((struct waiting_generator *)waiter)->generator);
}

static const primitive generator_row = {
    .name = "a generator's next",
    .waiter_size = sizeof(struct waiting_generator),
    .begin = generator_begin,
    .hand_on = generator_end,
    OVER_AN_EVENT,
};

struct event_resume_on {
    bide_resume_on_operation operation;
    bide_event_waiter wait;
};

static bide_awaiter *resume_on_begin(void *waiter, void *object)
{
    PRIMITIVE_WAITER(struct event_resume_on, self);
    return bide_resume_on(&self->operation, row_target,
                          bide_event_wait(&self->wait, (bide_event *)object));
}

static const primitive resume_on_row = {
    .name = "resume_on",
    .waiter_size = sizeof(struct event_resume_on),
    .begin = resume_on_begin,
    OVER_AN_EVENT,
};

/* ---- Select: an event; and a channel or an event that never comes ---- */

struct selecting {
    bide_select select;
    bide_select_case cases[2];
    bide_event_waiter wait;
    bide_event_waiter wait_too;
    bide_channel_waiter receive;
    uint64_t random;
    uint64_t word;
};

static bide_awaiter *select_event_begin(void *waiter, void *object)
{
    PRIMITIVE_WAITER(struct selecting, self);
    self->random = (uintptr_t)object;
    bide_select_case_init(&self->cases[0], bide_event_wait(&self->wait, (bide_event *)object));
    bide_select_case_init(&self->cases[1], bide_event_wait(&self->wait_too, (bide_event *)object));
    return bide_select_any(&self->select, self->cases, 2, &self->random);
}

static const primitive select_event_row = {
    .name = "select of events",
    .waiter_size = sizeof(struct selecting),
    .begin = select_event_begin,
    OVER_AN_EVENT,
};

typedef bide_channel(uint64_t) word_channel;

typedef struct selected {
    word_channel channel;
    bide_channel_slot(uint64_t) memory[3];
    bide_event never;
} selected;

static void selected_init(void *object)
{
    PRIMITIVE_OBJECT(selected, selected);
    bide_channel_init(&selected->channel, selected->memory, 3);
    bide_event_init(&selected->never, false);
}

static bide_awaiter *select_begin(void *waiter, void *object)
{
    PRIMITIVE_OBJECT(selected, selected);
    PRIMITIVE_WAITER(struct selecting, self);
    self->random = (uintptr_t)object;
    bide_select_case_init(&self->cases[0],
                          bide_channel_recv(&self->receive, &selected->channel, &self->word));
    bide_select_case_init(&self->cases[1], bide_event_wait(&self->wait, &selected->never));
    return bide_select_any(&self->select, self->cases, 2, &self->random);
}

static void selected_wake(void *object)
{
    const uint64_t word = 7;
    if (bide_channel_try_send(&((selected *)object)->channel, &word) != 0)
        abort();
}

static void selected_hand_on(void *object, void *waiter)
{
    (void)waiter;
    selected_wake(object);
}

static void selected_close(void *object)
{
    bide_channel_close(&((selected *)object)->channel);
}

static bool selected_is_idle(void *object)
{
    PRIMITIVE_OBJECT(selected, selected);
    return bide_channel_is_idle_(&selected->channel.channel) && event_is_idle(&selected->never);
}

static unsigned selected_tokens(void *object)
{
    return (unsigned)bide_channel_count(&((selected *)object)->channel);
}

static void selected_destroy(void *object)
{
    PRIMITIVE_OBJECT(selected, selected);
    bide_channel_destroy(&selected->channel);
    bide_event_destroy(&selected->never);
}

static const primitive select_row = {
    .name = "select of a channel and an event",
    .object_size = sizeof(selected),
    .waiter_size = sizeof(struct selecting),
    .traits = 0,
    .tokens = 3,
    .init = selected_init,
    .begin = select_begin,
    .wake = selected_wake,
    .hand_on = selected_hand_on,
    .close = selected_close,
    .is_idle = selected_is_idle,
    .free_tokens = selected_tokens,
    .destroy = selected_destroy,
};

/* ---- Schedule, and sleep ---- */

static bide_awaiter *schedule_begin(void *waiter, void *object)
{
    (void)object;
    return bide_schedule(waiter, row_target);
}

static const primitive schedule_row = {
    .name = "schedule",
    .object_size = 1,
    .waiter_size = sizeof(bide_schedule_operation),
    .init = no_init,
    .begin = schedule_begin,
    .wake = no_wake,
    .is_idle = always_idle,
    .destroy = no_destroy,
};

static bide_awaiter *sleep_begin(void *waiter, void *object)
{
    (void)object;
    return bide_sleep_until(waiter, LATE);
}

static void sleep_wake(void *object)
{
    (void)object;
    places_let_time_be(LATE);
}

static const primitive sleep_row = {
    .name = "sleep",
    .object_size = 1,
    .waiter_size = sizeof(bide_sleep),
    .init = no_init,
    .begin = sleep_begin,
    .wake = sleep_wake,
    .is_idle = always_idle,
    .destroy = no_destroy,
};

static bide_awaiter *interval_begin(void *waiter, void *object)
{
    (void)object;
    bide_interval_init(waiter, LATE, 1, BIDE_MISSED_BURST);
    return bide_interval_tick(waiter);
}

static const primitive interval_row = {
    .name = "interval",
    .object_size = 1,
    .waiter_size = sizeof(bide_interval),
    .init = no_init,
    .begin = interval_begin,
    .wake = sleep_wake,
    .is_idle = always_idle,
    .destroy = no_destroy,
};

/* ---- A blocking call, behind another ---- */

/*
 * Pools of one thread each: the usual one; another, for calls that run while a call blocks the usual one; and one for
 * interruptible calls.
 */
enum { USUAL, ANOTHER, INTERRUPTING, BLOCKING_POOLS };

static bide_blocking *blocking[BLOCKING_POOLS];

typedef struct calls {
    unsigned pool; /* in `blocking` */
    bide_blocking_call first;
    probe probe;
    bide_blocking_call held_up; /* in the usual pool, while calls of another run */
    probe held_up_probe;
    bide_atomic(uint32_t) free; /* the first returns */
    bide_atomic(uint32_t) over; /* ... and the coroutine that holds the usual pool */
    uint32_t made;
    int fd; /* the descriptor that an interruptible call reads */
} calls;

static void open_blocking(unsigned pool)
{
    bide_blocking_options options = {.max_threads = 1, .min_threads = 1};
    if (pool == INTERRUPTING)
        options.interrupt_signal = SIGURG;
    if (blocking[pool] == NULL && bide_blocking_create_with(&blocking[pool], &options) != 0)
        abort();
}

static void wait_until_set(bide_atomic(uint32_t) * word)
{
    uint32_t spins = 0;
    while (bide_atomic_load(word, acquire) == 0)
        wait_a_moment(&spins);
}

static void first_call(void *argument)
{
    wait_until_set(&((calls *)argument)->free);
}

static void long_call(void *argument)
{
    wait_until_set(&((calls *)argument)->over);
}

static void other_call(void *argument)
{
    ((calls *)argument)->made++;
}

static void calls_init_in(calls *calls, unsigned pool)
{
    open_blocking(pool);
    calls->pool = pool;
    calls->made = 0;
    bide_atomic_init(&calls->free, 0);
    bide_atomic_init(&calls->over, 0);
    probe_init(&calls->probe);
    probe_await(&calls->probe, bide_blocking_run(&calls->first, blocking[pool], first_call, calls));
}

static void calls_init(void *object)
{
    PRIMITIVE_OBJECT(calls, calls);
    calls_init_in(calls, USUAL);
}

static void calls_of_another_init(void *object)
{
    PRIMITIVE_OBJECT(calls, calls);
    calls_init_in(calls, ANOTHER);
    open_blocking(USUAL);
    probe_init(&calls->held_up_probe);
    probe_await(&calls->held_up_probe,
                bide_blocking_run(&calls->held_up, blocking[USUAL], long_call, calls));
}

/* A call is under way that ends without a wake: 1 + its pool. 0: none. */
static bide_atomic(uint32_t) calls_pending;

static bide_awaiter *calls_begin(void *waiter, void *object)
{
    PRIMITIVE_OBJECT(calls, calls);
    if (bide_atomic_load(&calls->free, relaxed) != 0)
        bide_atomic_store(&calls_pending, 1 + calls->pool, release);
    return bide_blocking_run(waiter, blocking[calls->pool], other_call, object);
}

static void no_call(void *argument)
{
    (void)argument;
}

/* (the calls that were queued before it have completed) */
static void flush_calls(unsigned pool)
{
    bide_blocking_call call;
    probe probe;
    uint32_t spins = 0;
    probe_init(&probe);
    probe_await(&probe, bide_blocking_run(&call, blocking[pool], no_call, NULL));
    while (probe_ended(&probe) == 0)
        wait_a_moment(&spins);
}

/* (when it returns, the waiting call has completed and its awaiter was posted) */
static void calls_wake(void *object)
{
    PRIMITIVE_OBJECT(calls, calls);
    bide_atomic_store(&calls->free, 1, release);
    flush_calls(calls->pool);
}

/* An interruptible call was queued: it must start before anything else happens. */
static bide_atomic(uint32_t) interruptible_queued;

static bool interruptible_begins(void)
{
    bide_blocking_stats counts;
    uint32_t spins = 0;
    if (bide_atomic_exchange(&interruptible_queued, 0, acquire) == 0)
        return false;
    for (;;) {
        bide_blocking_get_stats(blocking[INTERRUPTING], &counts);
        if (counts.queued == 0)
            return true;
        wait_a_moment(&spins);
    }
}

bool row_calls_settle(void)
{
    bool began = interruptible_begins();
    uint32_t pending = bide_atomic_exchange(&calls_pending, 0, acquire);
    if (pending != 0)
        flush_calls(pending - 1);
    return began || pending != 0;
}

static void calls_destroy(void *object)
{
    PRIMITIVE_OBJECT(calls, calls);
    bide_atomic_store(&calls->free, 1, release);
    bide_atomic_store(&calls->over, 1, release);
    flush_calls(calls->pool);
    if (calls->pool == ANOTHER)
        flush_calls(USUAL);
}

static const primitive calls_row = {
    .name = "a blocking call",
    .object_size = sizeof(calls),
    .waiter_size = sizeof(bide_blocking_call),
    .init = calls_init,
    .begin = calls_begin,
    .wake = calls_wake,
    .is_idle = always_idle,
    .destroy = calls_destroy,
};

static const primitive calls_of_another_row = {
    .name = "a blocking call of another pool",
    .object_size = sizeof(calls),
    .waiter_size = sizeof(bide_blocking_call),
    .init = calls_of_another_init,
    .begin = calls_begin,
    .wake = calls_wake,
    .is_idle = always_idle,
    .destroy = calls_destroy,
};

/* ---- An interruptible blocking call, under way ---- */

static void interruptible_init(void *object)
{
    PRIMITIVE_OBJECT(calls, calls);
    open_blocking(INTERRUPTING);
    calls->pool = INTERRUPTING;
    bide_atomic_init(&calls->free, 0);
    calls->fd = eventfd(0, EFD_CLOEXEC);
    if (calls->fd < 0)
        abort();
}

static int interruptible_call(void *argument)
{
    uint64_t count;
    return read(((calls *)argument)->fd, &count, sizeof count) < 0 ? -errno : 0;
}

static bide_awaiter *interruptible_begin(void *waiter, void *object)
{
    PRIMITIVE_OBJECT(calls, calls);
    if (bide_atomic_load(&calls->free, relaxed) != 0)
        bide_atomic_store(&calls_pending, 1 + INTERRUPTING, release);
    bide_atomic_store(&interruptible_queued, 1, release);
    return bide_blocking_run_interruptible(waiter, blocking[INTERRUPTING], interruptible_call,
                                           object);
}

static void interruptible_wake(void *object)
{
    PRIMITIVE_OBJECT(calls, calls);
    const uint64_t one = 1;
    bide_atomic_store(&calls->free, 1, release);
    if (write(calls->fd, &one, sizeof one) != (ssize_t)sizeof one)
        abort();
    flush_calls(INTERRUPTING);
}

void row_is_interrupted(void)
{
    bide_atomic_store(&calls_pending, 1 + INTERRUPTING, release);
}

static void interruptible_destroy(void *object)
{
    close(((calls *)object)->fd);
}

static const primitive interruptible_row = {
    .name = "a blocking call that is interrupted",
    .object_size = sizeof(calls),
    .waiter_size = sizeof(bide_blocking_call),
    .init = interruptible_init,
    .begin = interruptible_begin,
    .wake = interruptible_wake,
    .is_idle = always_idle,
    .destroy = interruptible_destroy,
};

/* ---- All of them ---- */

static const row others[] = {
    {&task_row, ROW_IS_FRAME},
    {&created_row, ROW_IS_FRAME},
    {&generator_row, ROW_IS_FRAME},
    {&resume_on_row, ROW_MOVES | ROW_IS_FRAME},
    {&select_event_row, ROW_IS_FRAME},
    {&select_row, ROW_IS_FRAME | ROW_TAKES_WHEN_IT_RUNS},
    {&rendezvous_receive_row, 0},
    {&rendezvous_send_row, 0},
    {&spsc_receive_row, 0},
    {&spsc_send_row, 0},
    {&unbounded_receive_row, ROW_TAKES_WHEN_IT_RUNS},
    {&spsc_receive_many_row, 0},
    {&unbounded_receive_many_row, ROW_TAKES_WHEN_IT_RUNS},
    {&seatless_receive_row, ROW_TAKES_WHEN_IT_RUNS},
    {&schedule_row, ROW_MOVES | ROW_BY_ITSELF | ROW_IS_FRAME},
    {&sleep_row, ROW_NEEDS_TIMERS | ROW_ANY_WAITS | ROW_ALONE | ROW_IS_FRAME},
    {&interval_row, ROW_NEEDS_TIMERS | ROW_ANY_WAITS | ROW_ALONE | ROW_IS_FRAME},
    {&calls_row, ROW_ANY_WAITS | ROW_CALLS_BLOCK | ROW_IS_FRAME},
    {&calls_of_another_row, ROW_ANY_WAITS | ROW_CALLS_BLOCK | ROW_IS_FRAME},
    {&interruptible_row, ROW_ANY_WAITS | ROW_CALLS_BLOCK | ROW_IS_FRAME | ROW_ALONE |
                             ROW_NOT_DESTROYED | ROW_IS_INTERRUPTED},
    {&scope_next_row, 0},
    {&bucket_turn_row, ROW_IS_FRAME},
    {&recursive_generator_row, ROW_IS_FRAME},
    /* those of test loops, last */
    {&bucket_time_row, ROW_NEEDS_TIMERS | ROW_ANY_WAITS | ROW_ALONE | ROW_IS_FRAME},
    {&memory_read_row, ROW_ALONE | ROW_ASKED_THERE},
    {&memory_poll_row, ROW_ALONE | ROW_ASKED_THERE},
    {&memory_open_row, ROW_ALONE | ROW_BY_ITSELF | ROW_IS_FRAME},
};

enum { OTHERS = sizeof others / sizeof others[0], OF_TEST_LOOPS = 4 };

size_t rows_count(bool on_test_loop)
{
    return primitives_count + OTHERS - (on_test_loop ? 0 : OF_TEST_LOOPS);
}

/* (some rows of primitives.h are tasks) */
row row_at(size_t number)
{
    if (number >= primitives_count)
        return others[number - primitives_count];
    row row = {primitives[number], 0};
    if (strcmp(row.primitive->name, "condition") == 0 ||
        strcmp(row.primitive->name, "notify, all") == 0)
        row.flags = ROW_IS_FRAME;
    /* (the claimed slots are abandoned, and the next claim waits until a consumer has passed them) */
    if (row.primitive == &primitive_multi_claim)
        row.flags = ROW_TAKES_WHEN_IT_RUNS;
    return row;
}
