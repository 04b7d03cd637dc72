/*
 * The stack stays bounded whatever is awaited and woken: everything here runs on a thread with a stack of 64 KiB (or
 * of the system's minimum, if that is more). Built at -O0 and at -O3, with labels as values and in standard C, the
 * library likewise.
 */
#define _GNU_SOURCE
#include "small_stack.h"

#include "bide/async_generator.h"
#include "bide/event.h"
#include "bide/generator.h"
#include "bide/recursive_generator.h"
#include "bide/sequence_barrier.h"
#include "bide/sync_wait.h"
#include "bide/task.h"

enum {
    MILLION = 1000000,
};

/* The results of the functions on the small stack. */
static uint64_t found;

/* The number of awaits in a loop: a million, and ten million in the long tests (a sanitizer takes longer). */
static int awaits;

/* BIDE_ROUNDS of the environment, or 1: multiplies transfers and awaits. */
static uint64_t rounds(void)
{
    const char *times = getenv("BIDE_ROUNDS");
    uint64_t number = times != NULL ? strtoull(times, NULL, 10) : 1;
    return number != 0 ? number : 1;
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (memory == NULL)
        abort();
    return memory;
}

struct at_once {
    bide_task task;
    uint64_t number;
};

bide_coroutine(at_once_body)
{
    bide_begin(at_once_body, struct at_once * self);
    self->number++;
    bide_end();
}

struct looping {
    bide_task task;
    int i;
    struct at_once child;
};

bide_coroutine(looping_body)
{
    bide_begin(looping_body, struct looping * self);
    for (self->i = 0; self->i < awaits; self->i++)
        bide_await(bide_task_init(&self->child.task, &at_once_body));
    bide_end();
}

static void *await_in_a_loop(void *unused)
{
    struct looping looping = {.child.number = 0};
    (void)unused;
    bide_sync_wait(bide_task_init(&looping.task, &looping_body));
    found = looping.child.number;
    return NULL;
}

static void millions_of_awaits_of_children_that_complete_at_once(void **state)
{
    (void)state;
    on_a_small_stack(await_in_a_loop, NULL);
    assert_int_equal(found, (uint64_t)awaits);
}

/* An awaiter whose suspend returns the other coroutine: symmetric transfer, and nothing else. */
struct transfer {
    bide_awaiter awaiter;
    bide_frame *other;
};

static bide_frame *transfer_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    (void)frame;
    return bide_container_of(awaiter, struct transfer, awaiter)->other;
}

static int transfer_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

static bide_awaiter *transfer_to(struct transfer *transfer, bide_frame *other)
{
    static const bide_awaiter_ops ops = {
        .suspend = transfer_suspend,
        .resume = transfer_resume,
        .name = "transfer",
    };
    transfer->awaiter.ops = &ops;
    transfer->other = other;
    return &transfer->awaiter;
}

struct player {
    bide_task task;
    bide_frame *other;
    uint64_t *left; /* transfers, of both */
    uint64_t count; /* its own */
    struct transfer transfer;
};

/* The two are alike, but two functions, so that each calls the other. */
bide_coroutine(ping_body)
{
    bide_begin(ping_body, struct player * self);
    while (*self->left != 0) {
        --*self->left;
        self->count++;
        bide_await(transfer_to(&self->transfer, self->other));
    }
    bide_end();
}

bide_coroutine(pong_body)
{
    bide_begin(pong_body, struct player * self);
    while (*self->left != 0) {
        --*self->left;
        self->count++;
        bide_await(transfer_to(&self->transfer, self->other));
    }
    bide_end();
}

static void start(bide_task *task, const bide_point *body)
{
    bide_await_later(bide_task_init(task, body));
    task->frame.context = &bide_default_context;
    task->frame.awaiter.frame = NULL;
}

static uint64_t counts[2];

static void *ping_pong(void *unused)
{
    uint64_t left = (uint64_t)awaits * rounds();
    struct player ping = {.left = &left};
    struct player pong = {.left = &left};
    (void)unused;
    ping.other = &pong.task.frame;
    pong.other = &ping.task.frame;
    start(&ping.task, &ping_body);
    start(&pong.task, &pong_body);
    bide_resume(&ping.task.frame);
    counts[0] = ping.count;
    counts[1] = pong.count;
    /* The number is even: ping ends, and pong is suspended at its transfer. */
    found = bide_done(&ping.task.frame) && !bide_done(&pong.task.frame);
    return NULL;
}

static void two_coroutines_transfer_to_each_other(void **state)
{
    (void)state;
    on_a_small_stack(ping_pong, NULL);
    assert_true(found);
    assert_int_equal(counts[0], (uint64_t)awaits * rounds() / 2);
    assert_int_equal(counts[1], (uint64_t)awaits * rounds() / 2);
}

struct link {
    bide_task task;
    struct link *next;
    uint64_t length;
};

bide_coroutine(link_body)
{
    bide_begin(link_body, struct link * self);
    if (self->next != NULL) {
        bide_await(bide_task_init(&self->next->task, &link_body));
        self->length = self->next->length + 1;
    } else {
        self->length = 1;
    }
    bide_end();
}

/* As many as make the awaits of ten million in a loop, when there are rounds; else one. */
static uint64_t chains(void)
{
    return rounds() == 1 ? 1 : rounds() * (uint64_t)awaits / MILLION;
}

static void *await_a_chain(void *unused)
{
    struct link *links = allocate(MILLION, sizeof *links);
    (void)unused;
    for (int i = 0; i + 1 < MILLION; i++)
        links[i].next = &links[i + 1];
    found = 0;
    for (uint64_t i = 0; i < chains(); i++) {
        bide_sync_wait(bide_task_init(&links[0].task, &link_body));
        found += links[0].length;
        links[0].length = 0;
    }
    free(links);
    return NULL;
}

static void a_chain_of_a_million_tasks_each_awaiting_the_next(void **state)
{
    (void)state;
    on_a_small_stack(await_a_chain, NULL);
    assert_int_equal(found, chains() * MILLION);
}

/* The same chain, but the last one suspends, so that all of it ends from inside a wake. */
struct suspended_link {
    bide_task task;
    struct suspended_link *next;
    bide_event *event;
    uint64_t length;
    bide_event_waiter wait;
};

bide_coroutine(suspended_link_body)
{
    bide_begin(suspended_link_body, struct suspended_link * self);
    if (self->next != NULL) {
        bide_await(bide_task_init(&self->next->task, &suspended_link_body));
        self->length = self->next->length + 1;
    } else {
        bide_await(bide_event_wait(&self->wait, self->event));
        self->length = 1;
    }
    bide_end();
}

static void *end_a_suspended_chain(void *unused)
{
    struct suspended_link *links = allocate(MILLION, sizeof *links);
    bide_event event;
    (void)unused;
    bide_event_init(&event, false);
    for (int i = 0; i < MILLION; i++) {
        links[i].next = i + 1 < MILLION ? &links[i + 1] : NULL;
        links[i].event = &event;
    }
    bide_await_later(bide_task_init(&links[0].task, &suspended_link_body));
    links[0].task.frame.context = &bide_default_context;
    links[0].task.frame.awaiter.frame = NULL;
    bide_resume(&links[0].task.frame);
    found = links[0].length; /* 0: it is suspended */
    bide_event_set(&event);
    found += links[0].length;
    free(links);
    return NULL;
}

static void a_suspended_chain_of_a_million_ends_from_one_wake(void **state)
{
    (void)state;
    on_a_small_stack(end_a_suspended_chain, NULL);
    assert_int_equal(found, MILLION);
}

struct waiter {
    bide_task task;
    bide_event *event;
    bide_event *sets; /* or NULL */
    bide_event_waiter wait;
};

bide_coroutine(waiter_body)
{
    bide_begin(waiter_body, struct waiter * self);
    bide_await(bide_event_wait(&self->wait, self->event));
    found++;
    if (self->sets != NULL)
        bide_event_set(self->sets);
    bide_end();
}

static void begin(bide_task *task, const bide_point *body)
{
    start(task, body);
    bide_resume(&task->frame);
}

static void *set_from_a_resumed_waiter(void *unused)
{
    struct waiter *waiters = allocate(MILLION + 1, sizeof *waiters);
    bide_event first, all;
    (void)unused;
    bide_event_init(&first, false);
    bide_event_init(&all, false);
    waiters[0].event = &first;
    waiters[0].sets = &all;
    for (int i = 1; i <= MILLION; i++)
        waiters[i].event = &all;
    for (int i = 0; i <= MILLION; i++)
        begin(&waiters[i].task, &waiter_body);
    found = 0;
    bide_event_set(&first);
    free(waiters);
    return NULL;
}

static void a_million_waiters_on_one_event_set_by_a_resumed_waiter(void **state)
{
    (void)state;
    on_a_small_stack(set_from_a_resumed_waiter, NULL);
    assert_int_equal(found, MILLION + 1);
}

static void *set_the_next_event_each(void *unused)
{
    struct waiter *waiters = allocate(MILLION, sizeof *waiters);
    bide_event *events = allocate(MILLION, sizeof *events);
    (void)unused;
    for (int i = 0; i < MILLION; i++)
        bide_event_init(&events[i], false);
    for (int i = 0; i < MILLION; i++) {
        waiters[i].event = &events[i];
        waiters[i].sets = i + 1 < MILLION ? &events[i + 1] : NULL;
        begin(&waiters[i].task, &waiter_body);
    }
    found = 0;
    bide_event_set(&events[0]);
    free(events);
    free(waiters);
    return NULL;
}

static void a_chain_of_a_million_events_each_set_by_the_waiter_before(void **state)
{
    (void)state;
    on_a_small_stack(set_the_next_event_each, NULL);
    assert_int_equal(found, MILLION);
}

struct subscriber {
    bide_task task;
    bide_sequence_barrier *barrier;
    uint32_t target;
    bide_sequence_barrier *publishes; /* or NULL */
    bide_sequence_waiter wait;
};

bide_coroutine(subscriber_body)
{
    bide_begin(subscriber_body, struct subscriber * self);
    bide_await(
        bide_sequence_barrier_wait_until_published(&self->wait, self->barrier, self->target));
    found++;
    if (self->publishes != NULL)
        bide_sequence_barrier_publish(self->publishes, MILLION);
    bide_end();
}

static void *publish_from_a_resumed_waiter(void *unused)
{
    struct subscriber *subscribers = allocate(MILLION + 1, sizeof *subscribers);
    bide_sequence_barrier first, all;
    (void)unused;
    bide_sequence_barrier_init(&first, bide_sequence_initial());
    bide_sequence_barrier_init(&all, bide_sequence_initial());
    subscribers[0].barrier = &first;
    subscribers[0].publishes = &all;
    for (int i = 1; i <= MILLION; i++) {
        subscribers[i].barrier = &all;
        subscribers[i].target = (uint32_t)i;
    }
    for (int i = 0; i <= MILLION; i++)
        begin(&subscribers[i].task, &subscriber_body);
    found = 0;
    bide_sequence_barrier_publish(&first, 0);
    free(subscribers);
    return NULL;
}

static void a_million_waiters_on_one_barrier_published_by_a_resumed_waiter(void **state)
{
    (void)state;
    on_a_small_stack(publish_from_a_resumed_waiter, NULL);
    assert_int_equal(found, MILLION + 1);
}

struct number {
    bide_generator generator;
    uint64_t i;
};

bide_generator_coroutine(number_body)
{
    bide_begin(number_body, struct number * self);
    for (self->i = 0; self->i < (uint64_t)awaits; self->i++)
        bide_yield(&self->i);
    bide_end();
}

static void *take_from_a_generator(void *unused)
{
    struct number number;
    (void)unused;
    found = 0;
    bide_for (uint64_t *, n, bide_generator_init(&number.generator, &number_body))
        found += *n == found;
    return NULL;
}

static void millions_of_values_of_a_generator(void **state)
{
    (void)state;
    on_a_small_stack(take_from_a_generator, NULL);
    assert_int_equal(found, (uint64_t)awaits);
}

struct asynchronous {
    bide_async_generator generator;
    uint64_t i;
    struct at_once child;
};

bide_async_generator_coroutine(asynchronous_body)
{
    bide_begin(asynchronous_body, struct asynchronous * self);
    for (self->i = 0; self->i < (uint64_t)awaits; self->i++) {
        bide_await(bide_task_init(&self->child.task, &at_once_body));
        bide_yield(&self->i);
    }
    bide_end();
}

struct taking {
    bide_task task;
    uint64_t count;
    struct asynchronous asynchronous;
    bide_async_generator_next_operation next;
};

bide_coroutine(taking_body)
{
    bide_begin(taking_body, struct taking * self);
    bide_for_await (&self->next,
                    bide_async_generator_init(&self->asynchronous.generator, &asynchronous_body))
        self->count++;
    bide_end();
}

/* Whether each hands over to the other by a direct call, or by the resume loop. */
static void *take_from_an_asynchronous_generator(void *unused)
{
    struct taking taking = {.count = 0};
    (void)unused;
    bide_sync_wait(bide_task_init(&taking.task, &taking_body));
    found = taking.count;
    bide_frame *frame = &taking.task.frame;
    bide_await_later(bide_task_init(&taking.task, &taking_body));
    frame->context = &bide_default_context;
    frame->awaiter.frame = NULL;
    while (frame != NULL)
        frame = bide_frame_step(frame, 0);
    found += taking.count;
    return NULL;
}

static void millions_of_values_of_an_asynchronous_generator(void **state)
{
    (void)state;
    on_a_small_stack(take_from_an_asynchronous_generator, NULL);
    assert_int_equal(found, 3 * (uint64_t)awaits);
}

struct nested {
    bide_recursive_generator generator;
    struct nested *next; /* or NULL: the innermost, which yields ten more values */
    int i;
};

bide_recursive_generator_coroutine(nested_body)
{
    bide_begin(nested_body, struct nested * self);
    bide_yield(&self->i);
    if (self->next != NULL) {
        bide_yield_from(&self->next->generator);
    } else {
        for (self->i = 0; self->i < 10; self->i++)
            bide_yield(&self->i);
    }
    bide_yield(&self->i);
    bide_finally();
    self->i = 77;
    bide_end();
}

/* To the end, or destroyed at the innermost's last value. */
static void *walk_a_deep_nest(bool to_the_end)
{
    struct nested *all = allocate(MILLION, sizeof *all);
    uint64_t values = 0;
    for (int i = 0; i < MILLION; i++) {
        all[i].next = i + 1 < MILLION ? &all[i + 1] : NULL;
        bide_recursive_generator_init(&all[i].generator, &nested_body);
    }
    bide_for_recursive (int *, number, &all[0].generator) {
        values++;
        if (*number == 9 && !to_the_end)
            break;
    }
    found = values;
    for (int i = 0; i < MILLION; i++)
        found += all[i].i == 77;
    free(all);
    return NULL;
}

static void *walk_to_the_end(void *unused)
{
    (void)unused;
    return walk_a_deep_nest(true);
}

static void *walk_and_destroy(void *unused)
{
    (void)unused;
    return walk_a_deep_nest(false);
}

static void a_million_nested_generators(void **state)
{
    (void)state;
    on_a_small_stack(walk_to_the_end, NULL);
    assert_int_equal(found, 3 * (uint64_t)MILLION + 10);
}

static void a_million_nested_generators_are_destroyed(void **state)
{
    (void)state;
    on_a_small_stack(walk_and_destroy, NULL);
    assert_int_equal(found, 2 * (uint64_t)MILLION + 10);
}

int main(void)
{
    awaits = rounds() == 1 || SANITIZED ? MILLION : 10 * MILLION;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(millions_of_awaits_of_children_that_complete_at_once),
        cmocka_unit_test(two_coroutines_transfer_to_each_other),
        cmocka_unit_test(a_chain_of_a_million_tasks_each_awaiting_the_next),
        cmocka_unit_test(a_suspended_chain_of_a_million_ends_from_one_wake),
        cmocka_unit_test(a_million_waiters_on_one_event_set_by_a_resumed_waiter),
        cmocka_unit_test(a_chain_of_a_million_events_each_set_by_the_waiter_before),
        cmocka_unit_test(a_million_waiters_on_one_barrier_published_by_a_resumed_waiter),
        cmocka_unit_test(millions_of_values_of_a_generator),
        cmocka_unit_test(millions_of_values_of_an_asynchronous_generator),
        cmocka_unit_test(a_million_nested_generators),
        cmocka_unit_test(a_million_nested_generators_are_destroyed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
