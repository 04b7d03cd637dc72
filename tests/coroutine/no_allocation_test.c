/*
 * Nothing in the core allocates: the allocation functions are wrapped by the linker, and to call one while
 * the core works is a failure.
 */
#include "testing.h"

#include "bide/event.h"
#include "bide/sequence_group.h"
#include "bide/single_producer_sequencer.h"
#include "bide/sync_wait.h"
#include "bide/task.h"

/* Volatile: the compiler takes it that malloc does not look at them. */
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
    bide_sequence_barrier8 published, consumed;
    bide_sequence_barrier8 *members[2];
    bide_sequence_group8 gate;
    bide_single_producer_sequencer8 sequencer;
    bide_claim8 claim;
};

bide_coroutine(parent_body)
{
    bide_begin(parent_body, struct parent * self);
    for (self->i = 0; self->i < 1000; self->i++) {
        bide_event_init(&self->event, self->i % 2 == 0);
        self->child.event = &self->event;
        if (self->i % 2 == 0)
            bide_await(bide_task_init(&self->child.task, &child_body));
        bide_try(bide_single_producer_sequencer8_claim_one(&self->claim, &self->sequencer));
        bide_single_producer_sequencer8_publish(&self->sequencer, self->claim.first);
        bide_sequence_barrier8_publish(&self->consumed, self->claim.first);
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
    bide_sequence_barrier8_init(&self.published, bide_sequence8_initial());
    bide_sequence_barrier8_init(&self.consumed, bide_sequence8_initial());
    self.members[0] = &self.published;
    self.members[1] = &self.consumed;
    bide_sequence_group8_init(&self.gate, self.members, 2);
    bide_single_producer_sequencer8_init(&self.sequencer, &self.published, &self.gate, 4);
    int status = bide_sync_wait(bide_task_init(&self.task, &parent_body));

    bide_event event;
    struct child waiting = {.event = &event};
    bide_event_init(&event, false);
    bide_task_init(&waiting.task, &child_body);
    waiting.task.frame.context = &bide_default_context;
    waiting.task.frame.awaiter.frame = NULL;
    bide_resume(&waiting.task.frame);
    bide_event_set(&event);
    forbidden = false;
    assert_true(bide_done(&waiting.task.frame));
    assert_int_equal(status, 0);
    assert_int_equal(allocations, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_test_sees_an_allocation),
        cmocka_unit_test(awaiting_waking_claiming_and_publishing_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
