/*
 * Every primitive (primitives.h) as a case of a select, beside an event: both complete in one turn, in any order. What
 * the select has not chosen the next waiter has. Also if the select is destroyed in between, or asked to stop.
 */
#include "sync/by_hand.h"
#include "sync/primitives.h"

#include "bide/event.h"
#include "bide/handle.h"
#include "bide/select.h"
#include "bide/stop.h"
#include "bide/extend/wrapper.h"

enum { WAITS = 1, OTHERS = 2, SEEDS = 16 };

/* Waits for the primitive, in a select or by itself. */
typedef struct waiter {
    bide_task task;
    const primitive *primitive;
    void *object;
    void *memory;
    bide_event *event; /* NULL: it waits by itself */
    bide_context context;
    bide_stop_source stop;
    bide_select select;
    bide_select_case cases[2];
    bide_event_waiter wait;
    uint64_t random;
    int status;
    size_t winner;
} waiter;

static bide_awaiter *select_both(waiter *self)
{
    bide_select_case_init(&self->cases[0], self->primitive->begin(self->memory, self->object));
    bide_select_case_init(&self->cases[1], bide_event_wait(&self->wait, self->event));
    return bide_select_any(&self->select, self->cases, 2, &self->random);
}

bide_coroutine(waiter_body)
{
    bide_begin(waiter_body, waiter * self);
    if (self->event != NULL) {
        bide_await_status(self->status, select_both(self));
        self->winner = bide_select_winner(&self->select);
    } else {
        bide_await_status(self->status, self->primitive->begin(self->memory, self->object));
        self->winner = 0;
    }
    bide_end();
}

typedef struct fixture {
    const primitive *primitive;
    void *object;
    by_hand by_hand;
    bide_event event;
    waiter selecting;
    waiter others[OTHERS];
} fixture;

static void begin(fixture *f, waiter *self, bide_event *event, uint64_t seed)
{
    memset(self, 0, sizeof *self);
    self->primitive = f->primitive;
    self->object = f->object;
    self->memory = primitive_new_waiter(f->primitive);
    self->event = event;
    self->random = seed;
    self->status = WAITS;
    bide_stop_source_init(&self->stop);
    self->context = f->by_hand.context;
    self->context.stop = &self->stop;
    bide_start(&self->task.frame, &waiter_body, &self->context);
    bide_resume(&self->task.frame);
}

static void fixture_init(fixture *f, const primitive *p)
{
    memset(f, 0, sizeof *f);
    f->primitive = p;
    f->object = primitive_new_object(p);
    by_hand_init(&f->by_hand);
    bide_event_init(&f->event, false);
}

/* It ended with 0, or not: what it has is handed on, and its memory is not used any more. */
static void end_waiter(fixture *f, waiter *self)
{
    const primitive *p = f->primitive;
    if (p->hand_on != NULL && self->status == 0 && self->winner == 0)
        p->hand_on(f->object, self->memory);
    by_hand_run(&f->by_hand);
    primitive_retire_waiter(p, self->memory);
    assert_true(primitive_free_waiter(p, self->memory));
}

static void fixture_end(fixture *f)
{
    assert_null(f->by_hand.queue.first);
    assert_true(f->primitive->is_idle(f->object));
    primitive_free_object(f->primitive, f->object);
}

/* The next waits now, or begins: it has what there is. */
static void next_has_it(fixture *f, waiter *next)
{
    if (next->memory == NULL)
        begin(f, next, NULL, 0);
    by_hand_run(&f->by_hand);
    assert_int_equal(next->status, 0);
    end_waiter(f, next);
}

static bool can_wait_together(const primitive *p)
{
    return p->max_waiting != 1;
}

static void both_complete_in_one_turn(void **state)
{
    unsigned won[2] = {0, 0};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        for (int order = 0; order < 4; order++) {
            fixture f;
            fixture_init(&f, *state);
            begin(&f, &f.selecting, &f.event, seed);
            by_hand_run(&f.by_hand); /* the other case begins to wait */
            if ((order & 2) != 0 && can_wait_together(f.primitive))
                begin(&f, &f.others[0], NULL, 0);
            assert_int_equal(f.selecting.status, WAITS);
            if ((order & 1) != 0)
                bide_event_set(&f.event);
            f.primitive->wake(f.object);
            bide_event_set(&f.event);
            by_hand_run(&f.by_hand);
            assert_int_equal(f.selecting.status, 0);
            won[f.selecting.winner]++;
            end_waiter(&f, &f.selecting);
            next_has_it(&f, &f.others[0]);
            fixture_end(&f);
        }
    }
    assert_true(won[0] > 0 && won[1] > 0);
}

static void both_are_ready_at_once(void **state)
{
    unsigned won[2] = {0, 0};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        fixture f;
        fixture_init(&f, *state);
        f.primitive->wake(f.object);
        bide_event_set(&f.event);
        begin(&f, &f.selecting, &f.event, seed);
        assert_int_equal(f.selecting.status, 0);
        won[f.selecting.winner]++;
        end_waiter(&f, &f.selecting);
        next_has_it(&f, &f.others[0]);
        fixture_end(&f);
    }
    assert_true(won[0] > 0 && won[1] > 0);
}

/* `steps` coroutines are resumed before. */
static void destroyed_when_both_have_completed(void **state)
{
    for (int steps = 0; steps < 8; steps++) {
        fixture f;
        fixture_init(&f, *state);
        begin(&f, &f.selecting, &f.event, (uint64_t)steps);
        by_hand_run(&f.by_hand);
        f.primitive->wake(f.object);
        bide_event_set(&f.event);
        bide_awaiter *awaiter;
        for (int i = 0; i < steps; i++) {
            if ((awaiter = bide_awaiter_chain_take(&f.by_hand.queue)) != NULL)
                bide_resume(awaiter->frame);
        }
        if (f.selecting.status == WAITS)
            bide_destroy(&f.selecting.task.frame);
        if (f.selecting.status == WAITS &&
            (f.primitive->traits & (LEAVES_A_GAP | KEEPS_WHAT_IT_HAD)) == KEEPS_WHAT_IT_HAD)
            f.primitive->hand_on(f.object, f.selecting.memory);
        end_waiter(&f, &f.selecting);
        next_has_it(&f, &f.others[0]);
        fixture_end(&f);
    }
}

static void asked_to_stop_when_it_is_woken_it_has_it_or_the_next_has(void **state)
{
    for (int order = 0; order < 2; order++) {
        fixture f;
        fixture_init(&f, *state);
        begin(&f, &f.selecting, &f.event, (uint64_t)order);
        by_hand_run(&f.by_hand);
        if (order == 0)
            bide_stop_request(&f.selecting.stop);
        f.primitive->wake(f.object);
        if (order == 1)
            bide_stop_request(&f.selecting.stop);
        by_hand_run(&f.by_hand);
        assert_true(f.selecting.status == 0 || f.selecting.status == -ECANCELED);
        end_waiter(&f, &f.selecting);
        next_has_it(&f, &f.others[0]);
        fixture_end(&f);
    }
}

static const struct {
    const char *name;
    CMUnitTestFunction function;
} cases[] = {
#define CASE(function)      \
    {                       \
#function, function \
    }
    CASE(both_complete_in_one_turn),
    CASE(both_are_ready_at_once),
    CASE(destroyed_when_both_have_completed),
    CASE(asked_to_stop_when_it_is_woken_it_has_it_or_the_next_has),
#undef CASE
};

enum { CASES = sizeof cases / sizeof cases[0] };

/* Not a coroutine of the test's own. */
static bool can_be_a_case(const primitive *p)
{
    void *object = primitive_new_object(p);
    void *memory = primitive_new_waiter(p);
    bide_awaiter *operation = p->begin(memory, object);
    bool can = operation->ops->attempt != NULL || operation->ops->undo == BIDE_UNDO_WITHDRAW;
    bide_wrapper_abandon(&operation);
    primitive_retire_waiter(p, memory);
    primitive_free_waiter(p, memory);
    primitive_free_object(p, object);
    return can;
}

int main(void)
{
    struct CMUnitTest *tests = calloc(primitives_count * CASES, sizeof *tests);
    char(*names)[160] = calloc(primitives_count * CASES, sizeof *names);
    size_t count = 0;
    int failed = 1;
    for (size_t i = 0; tests != NULL && names != NULL && i < primitives_count; i++) {
        for (size_t j = 0; j < CASES && can_be_a_case(primitives[i]); j++) {
            snprintf(names[count], sizeof names[count], "%s: %s", primitives[i]->name,
                     cases[j].name);
            tests[count] = (struct CMUnitTest)cmocka_unit_test_prestate(
                cases[j].function, (void *)(uintptr_t)primitives[i]);
            tests[count].name = names[count];
            count++;
        }
    }
    if (count != 0)
        failed = _cmocka_run_group_tests("select_race", tests, count, NULL, NULL);
    free(tests);
    free(names);
    return failed;
}
