/*
 * Nothing in the core allocates: the linker wraps the allocation functions, and a call while the core
 * works is a failure.
 */
#include "testing.h"

#include "bide/async_generator.h"
#include "bide/channel.h"
#include "bide/create.h"
#include "bide/deadline.h"
#include "bide/event.h"
#include "bide/generator.h"
#include "bide/run_loop.h"
#include "bide/schedule.h"
#include "bide/scope.h"
#include "bide/sequence_group.h"
#include "bide/shared_task.h"
#include "bide/single_producer_sequencer.h"
#include "bide/sleep.h"
#include "bide/spawn.h"
#include "bide/stop.h"
#include "bide/sync_wait.h"
#include "bide/task.h"
#include "bide/then.h"
#include "bide/when.h"

#include <errno.h>

/* Volatile: the compiler assumes that malloc does not read them. */
static volatile bool forbidden;
static volatile int allocations;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_malloc(size_t size)
{
    allocations += forbidden;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    allocations += forbidden;
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    allocations += forbidden;
    return __real_realloc(memory, size);
}

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    allocations += forbidden;
    return __real_aligned_alloc(alignment, size);
}

struct child {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
};

bide_coroutine(child_body)
{
    bide_begin(child_body, struct child * self);
    bide_await(bide_event_wait(&self->wait, self->event));
    bide_end();
}

struct parent {
    bide_task task;
    int i;
    bide_event event;
    struct child child;
    bide_sequence_barrier published, consumed;
    bide_sequence_barrier *members[2];
    bide_sequence_group gate;
    bide_single_producer_sequencer sequencer;
    bide_claim claim;
};

bide_coroutine(parent_body)
{
    bide_begin(parent_body, struct parent * self);
    for (self->i = 0; self->i < 1000; self->i++) {
        bide_event_init(&self->event, self->i % 2 == 0);
        self->child.event = &self->event;
        if (self->i % 2 == 0)
            bide_await(bide_task_init(&self->child.task, &child_body));
        bide_try(bide_single_producer_sequencer_claim_one(&self->claim, &self->sequencer));
        bide_single_producer_sequencer_publish(&self->sequencer, self->claim.first);
        bide_sequence_barrier_publish(&self->consumed, self->claim.first);
    }
    bide_end();
}

/* Seen by nobody else, but the compiler does not know. */
static void *volatile kept;

static void the_test_sees_an_allocation(void **state)
{
    (void)state;
    allocations = 0;
    forbidden = true;
    kept = malloc(1);
    forbidden = false;
    free(kept);
    assert_int_equal(allocations, 1);
}

static void awaiting_waking_claiming_and_publishing_allocate_nothing(void **state)
{
    (void)state;
    struct parent self;
    allocations = 0;
    forbidden = true;
    bide_sequence_barrier_init(&self.published, bide_sequence_initial());
    bide_sequence_barrier_init(&self.consumed, bide_sequence_initial());
    self.members[0] = &self.published;
    self.members[1] = &self.consumed;
    bide_sequence_group_init(&self.gate, self.members, 2);
    bide_single_producer_sequencer_init(&self.sequencer, &self.published, &self.gate, 4);
    int status = bide_sync_wait(bide_task_init(&self.task, &parent_body));

    bide_event event;
    struct child waiting = {.event = &event};
    bide_event_init(&event, false);
    bide_await_later(bide_task_init(&waiting.task, &child_body));
    waiting.task.frame.context = &bide_default_context;
    waiting.task.frame.awaiter.frame = NULL;
    bide_resume(&waiting.task.frame);
    bide_event_set(&event);
    forbidden = false;
    assert_true(bide_done(&waiting.task.frame));
    assert_int_equal(status, 0);
    assert_int_equal(allocations, 0);
}

/* ---- Created frames, moves, then ---- */

enum { TIMES = 100 };

struct created {
    bide_task task;
    bide_allocator *allocator;
    int deeper;
};

static bide_awaiter *created(bide_allocator *allocator, int deeper);

bide_coroutine(created_body)
{
    bide_begin(created_body, struct created * self);
    if (self->deeper > 0)
        bide_try(created(self->allocator, self->deeper - 1));
    bide_end();
}

static bide_awaiter *created(bide_allocator *allocator, int deeper)
{
    struct created *self = bide_create(sizeof *self, &created_body, allocator);
    if (self != NULL) {
        self->allocator = allocator;
        self->deeper = deeper;
    }
    return bide_owned(self, &created_body);
}

static int same(void *unused, int status)
{
    (void)unused;
    return status;
}

struct traveller {
    bide_task task;
    bide_allocator *allocator;
    bide_scheduler *here, *there;
    bide_schedule_operation to, fro;
    bide_resume_on_operation resume_on;
    bide_schedule_on_operation schedule_on;
    bide_then_operation then;
    int i;
};

bide_coroutine(traveller_body)
{
    bide_begin(traveller_body, struct traveller * self);
    for (self->i = 0; self->i < TIMES; self->i++) {
        bide_try(bide_schedule(&self->to, self->there));
        bide_try(bide_schedule(&self->fro, self->here));
        bide_try(bide_resume_on(&self->resume_on, self->there, created(self->allocator, 3)));
        bide_try(bide_schedule_on(&self->schedule_on, self->here, created(self->allocator, 3)));
        bide_try(bide_then(&self->then, created(self->allocator, 3), same, NULL));
    }
    bide_end();
}

static void creating_in_the_users_memory_and_going_elsewhere_allocate_nothing(void **state)
{
    (void)state;
    static _Alignas(BIDE_ALLOCATOR_ALIGN) unsigned char memory[4096];
    for (int which = 0; which < 2; which++) {
        bide_run_loop here, there;
        bide_arena arena;
        bide_pool pool;
        bide_spawned spawned;
        struct traveller self;
        allocations = 0;
        forbidden = true;
        bide_run_loop_init(&here);
        bide_run_loop_init(&there);
        bide_arena_init(&arena, memory, sizeof memory);
        bide_pool_init(&pool, sizeof(struct created) + sizeof(bide_owner), memory, sizeof memory);
        self.allocator = which == 0 ? &arena.allocator : &pool.allocator;
        self.here = &here.scheduler;
        self.there = &there.scheduler;
        bide_spawn(&spawned, &here.context, bide_task_init(&self.task, &traveller_body));
        while (bide_run_loop_run_ready(&here) + bide_run_loop_run_ready(&there) != 0)
            ;
        forbidden = false;
        assert_true(bide_done(&self.task.frame));
        assert_int_equal(spawned.root.status, 0);
        assert_int_equal(self.i, TIMES);
        assert_int_equal(allocations, 0);
    }
}

/* ---- A channel ---- */

typedef bide_channel_slot(int) int_slot;
typedef bide_channel(int) int_channel;

struct passing {
    bide_task task;
    int_channel *channel;
    bide_channel_waiter waiter;
    bide_context context;
    bide_stop_source stop;
    bool sends;
    int i, value, status;
};

/* Sends TIMES, or receives as long as there is something. */
bide_coroutine(passing_body)
{
    bide_begin(passing_body, struct passing * self);
    for (self->i = 0; self->status == 0 && !(self->sends && self->i == TIMES); self->i++) {
        if (self->sends)
            bide_await_status(self->status,
                              bide_channel_send(&self->waiter, self->channel, &self->value));
        else
            bide_await_status(self->status,
                              bide_channel_recv(&self->waiter, self->channel, &self->value));
    }
    bide_end();
}

static void begin_passing(struct passing *self, int_channel *channel, bool sends)
{
    self->channel = channel;
    self->sends = sends;
    self->value = self->status = 0;
    bide_stop_source_init(&self->stop);
    self->context = bide_default_context;
    self->context.stop = &self->stop;
    bide_start(&self->task.frame, &passing_body, &self->context);
    bide_resume(&self->task.frame);
}

static void sending_and_receiving_allocate_nothing(void **state)
{
    (void)state;
    int_channel channel;
    int_slot memory[2];
    struct passing sender, receiver, cancelled, destroyed;
    int value;
    allocations = 0;
    forbidden = true;
    bide_channel_init(&channel, memory, 2);
    begin_passing(&cancelled, &channel, false);
    bide_stop_request(&cancelled.stop);
    begin_passing(&sender, &channel, true);
    begin_passing(&receiver, &channel, false);
    begin_passing(&destroyed, &channel, false);
    int late = bide_channel_recv_blocking(&channel, &value, 0);
    bide_destroy(&destroyed.task.frame);
    bide_channel_close(&channel);
    forbidden = false;
    assert_int_equal(cancelled.status, -ECANCELED);
    assert_int_equal(late, -ETIMEDOUT);
    assert_int_equal(sender.status, 0);
    assert_int_equal(sender.i, TIMES);
    assert_int_equal(receiver.status, -EPIPE);
    assert_int_equal(receiver.i, TIMES + 1);
    assert_int_equal(allocations, 0);
}

/* ---- Handles ---- */

static void starting_resuming_and_destroying_allocate_nothing(void **state)
{
    (void)state;
    int destroyed = 0;
    allocations = 0;
    forbidden = true;
    for (int i = 0; i < TIMES; i++) {
        static _Alignas(BIDE_ALLOCATOR_ALIGN) unsigned char memory[1024];
        bide_arena arena;
        bide_run_loop loop;
        struct traveller self;
        bide_run_loop_init(&loop);
        bide_arena_init(&arena, memory, sizeof memory);
        self.allocator = &arena.allocator;
        self.here = &bide_inline_scheduler;
        self.there = &loop.scheduler;
        bide_start(&self.task.frame, &traveller_body, &bide_default_context);
        if (i % 2 == 0)
            bide_resume(&self.task.frame);
        bide_destroy(&self.task.frame);
        destroyed += bide_done(&self.task.frame);
    }
    forbidden = false;
    assert_int_equal(destroyed, TIMES);
    assert_int_equal(allocations, 0);
}

/* ---- Generators ---- */

struct counter {
    bide_generator generator;
    int i, n;
};

bide_generator_coroutine(counter_body)
{
    bide_begin(counter_body, struct counter * self);
    for (self->i = 0; self->i < self->n; self->i++)
        bide_yield(&self->i);
    bide_end();
}

static void generating_allocates_nothing(void **state)
{
    (void)state;
    struct counter self = {.n = TIMES};
    int sum = 0;
    allocations = 0;
    forbidden = true;
    bide_for (int *, number, bide_generator_init(&self.generator, &counter_body))
        sum += *number;
    bide_generator_init(&self.generator, &counter_body);
    bool more = bide_generator_next(&self.generator) != NULL;
    bide_generator_destroy(&self.generator);
    forbidden = false;
    assert_true(more);
    assert_int_equal(sum, TIMES * (TIMES - 1) / 2);
    assert_int_equal(allocations, 0);
}

/* ---- Stopping ---- */

static void asking_to_stop_allocates_nothing(void **state)
{
    (void)state;
    bide_stop_source parent, source;
    bide_event event;
    bide_spawned spawned;
    bide_event_waiter wait;
    allocations = 0;
    forbidden = true;
    bide_stop_source_init(&parent);
    bide_stop_source_init(&source);
    bide_stop_source_attach(&source, &parent);
    bide_event_init(&event, false);
    bide_context context = bide_default_context;
    context.stop = &source;
    bide_spawn(&spawned, &context, bide_event_wait(&wait, &event));
    bool waits = !bide_event_is_set(&spawned.ended);
    bide_stop_request(&parent);
    bool ended = bide_event_is_set(&spawned.ended);
    bide_stop_source_detach(&source);
    forbidden = false;
    assert_true(waits && ended);
    assert_int_equal(spawned.root.status, -ECANCELED);
    assert_int_equal(allocations, 0);
}

/* ---- Several at once, shared, and at a time ---- */

struct sleeper {
    bide_task task;
    bide_sleep sleep;
};

bide_coroutine(sleeper_body)
{
    bide_begin(sleeper_body, struct sleeper * self);
    bide_try(bide_sleep_until(&self->sleep, 0)); /* a time that has passed */
    bide_end();
}

struct shared {
    bide_shared_task shared;
    struct sleeper sleeper;
};

bide_shared_coroutine(shared_body)
{
    bide_begin(shared_body, struct shared * self);
    bide_try(bide_task_init(&self->sleeper.task, &sleeper_body));
    bide_end();
}

struct async_counter {
    bide_async_generator generator;
    struct sleeper sleeper;
    int i;
};

bide_async_generator_coroutine(async_counter_body)
{
    bide_begin(async_counter_body, struct async_counter * self);
    for (self->i = 0; self->i < 3; self->i++) {
        bide_try(bide_task_init(&self->sleeper.task, &sleeper_body));
        bide_yield(&self->i);
    }
    bide_end();
}

enum { PARTS = 3 };

struct together {
    bide_task task;
    struct shared shared;
    bide_shared_task_waiter shared_waiters[PARTS];
    struct sleeper sleepers[PARTS];
    bide_branch branches[PARTS];
    bide_when when;
    bide_scope scope;
    struct async_counter counter;
    bide_async_generator_next_operation next;
    bide_with_deadline_operation with_deadline;
    bide_event never;
    bide_event_waiter wait;
    int status;
    int sum;
};

static bide_awaiter *sleeper(struct together *self, int i)
{
    return bide_task_init(&self->sleepers[i].task, &sleeper_body);
}

bide_coroutine(together_body)
{
    bide_begin(together_body, struct together * self);
    bide_shared_task_init(&self->shared.shared, &shared_body, bide_this_context());
    for (int i = 0; i < PARTS; i++)
        bide_branch_init(&self->branches[i],
                         bide_shared_task_wait(&self->shared_waiters[i], &self->shared.shared));
    bide_try(bide_when_all(&self->when, self->branches, PARTS));

    for (int i = 0; i < PARTS; i++)
        bide_branch_init(&self->branches[i], sleeper(self, i));
    bide_await(bide_when_any(&self->when, self->branches, PARTS));

    bide_scope_init(&self->scope, &self->task.frame);
    for (int i = 0; i < PARTS; i++)
        bide_scope_spawn(&self->scope, &self->branches[i], sleeper(self, i));
    bide_try(bide_scope_join(&self->scope));

    bide_async_generator_init(&self->counter.generator, &async_counter_body);
    bide_for_await (&self->next, &self->counter.generator) {
        self->sum += *(int *)self->next.value;
    }

    bide_event_init(&self->never, false);
    bide_await_status(self->status, bide_with_deadline(&self->with_deadline, 0,
                                                       bide_event_wait(&self->wait, &self->never)));
    bide_end();
}

static void several_at_once_shared_and_at_a_time_allocate_nothing(void **state)
{
    (void)state;
    bide_run_loop loop;
    struct together self = {.sum = 0};
    allocations = 0;
    forbidden = true;
    bide_run_loop_init(&loop);
    int status = bide_run_loop_wait(&loop, bide_task_init(&self.task, &together_body));
    forbidden = false;
    assert_int_equal(status, 0);
    assert_int_equal(self.sum, 0 + 1 + 2);
    assert_int_equal(self.status, -ETIMEDOUT);
    assert_int_equal(allocations, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_test_sees_an_allocation),
        cmocka_unit_test(awaiting_waking_claiming_and_publishing_allocate_nothing),
        cmocka_unit_test(creating_in_the_users_memory_and_going_elsewhere_allocate_nothing),
        cmocka_unit_test(sending_and_receiving_allocate_nothing),
        cmocka_unit_test(starting_resuming_and_destroying_allocate_nothing),
        cmocka_unit_test(generating_allocates_nothing),
        cmocka_unit_test(asking_to_stop_allocates_nothing),
        cmocka_unit_test(several_at_once_shared_and_at_a_time_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
