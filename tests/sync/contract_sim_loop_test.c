/*
 * The contract that all waits share (contract_test.c) on a test loop, for each primitive (primitives.h): coroutines
 * that wait, with and without deadlines and stop requests; one that wakes; one that requests stops; one of these two
 * closes. The order in which they run is drawn, also among coroutines that are ready. Each wait ends once, and for a
 * reason; tokens are neither lost nor doubled; all lists are empty at the end. A deadlock means that a waiter was
 * forgotten. BIDE_ROUNDS multiplies the seeds.
 */
#define _GNU_SOURCE
#include "sync/primitives.h"
#include "testing.h"

#include "bide/deadline.h"
#include "bide/event.h"
#include "bide/schedule.h"
#include "bide/spawn.h"
#include "bide/stop.h"
#include "bide/task.h"
#include "bide/sim_loop.h"

enum { SEEDS = 150, WAITS = 5, MOMENT = 1000 };

struct scene {
    const primitive *primitive;
    bide_sim_loop *loop;
    void *object;
    bool closed, woken;
    unsigned holding;
    unsigned wrong; /* the line of the first failed check */
    unsigned count;
    struct wait {
        bide_task task;
        struct scene *scene;
        bide_context context;
        bide_stop_source stop;
        void *waiter;
        bool asked, limited;
        int status;
        unsigned ends;
        bide_with_deadline_operation operation;
        bide_sleep sleep;
        bide_sim_point_operation point;
        bide_spawned spawned;
    } waits[WAITS];
    struct actor {
        bide_task task;
        struct scene *scene;
        unsigned i, times;
        bool closes;
        bide_sleep sleep;
        bide_sim_point_operation point;
        bide_spawned spawned;
    } waker, asker;
};

#define expect(scene, condition)                 \
    do {                                         \
        if (!(condition) && (scene)->wrong == 0) \
            (scene)->wrong = __LINE__;           \
    } while (0)

static uint64_t moment(const struct scene *s)
{
    return bide_sim_loop_draw(s->loop, 4) * MOMENT;
}

static bide_awaiter *wait_begin(struct wait *self)
{
    const primitive *p = self->scene->primitive;
    bide_awaiter *awaiter = p->begin(self->waiter, self->scene->object);
    self->limited = bide_sim_loop_draw(self->scene->loop, 4) == 1;
    if (!self->limited)
        return awaiter;
    return bide_with_deadline(&self->operation,
                              bide_now(&self->scene->loop->context) + moment(self->scene), awaiter);
}

bide_coroutine(wait_body)
{
    bide_begin(wait_body, struct wait * self);
    bide_await(bide_sleep_for(&self->sleep, moment(self->scene)));
    bide_await_status(self->status, wait_begin(self));
    self->ends++;
    if (self->status == 0) {
        expect(self->scene, self->scene->woken);
        if (self->scene->primitive->hand_on != NULL) {
            expect(self->scene, self->scene->holding < self->scene->primitive->tokens);
            self->scene->holding++;
            bide_await(bide_sim_point(&self->point));
            self->scene->holding--;
            self->scene->primitive->hand_on(self->scene->object, self->waiter);
        }
    } else if (self->status == -EPIPE) {
        expect(self->scene, self->scene->closed);
    } else if (self->status == -ECANCELED) {
        expect(self->scene, self->asked);
    } else {
        expect(self->scene, self->status == -ETIMEDOUT && self->limited);
    }
    primitive_retire_waiter(self->scene->primitive, self->waiter);
    bide_end();
}

static void close_object(struct scene *s)
{
    s->closed = true;
    s->primitive->close(s->object);
}

/* Wakes once for each token, and a few times more if there are no tokens. */
bide_coroutine(waker_body)
{
    bide_begin(waker_body, struct actor * self);
    bide_await(bide_sleep_for(&self->sleep, moment(self->scene)));
    self->times = self->scene->primitive->tokens != 0 ? self->scene->primitive->tokens : 1;
    for (self->i = 0; self->i < self->times; self->i++) {
        self->scene->woken = true;
        self->scene->primitive->wake(self->scene->object);
        bide_await(bide_sim_point(&self->point));
    }
    if (self->closes)
        close_object(self->scene);
    bide_end();
}

bide_coroutine(asker_body)
{
    bide_begin(asker_body, struct actor * self);
    for (self->i = 0; self->i < self->scene->count; self->i++) {
        if (bide_sim_loop_draw(self->scene->loop, 3) != 1)
            continue;
        bide_await(bide_sleep_for(&self->sleep, moment(self->scene)));
        self->scene->waits[self->i].asked = true;
        bide_stop_request(&self->scene->waits[self->i].stop);
    }
    if (self->closes)
        close_object(self->scene);
    bide_end();
}

static void actor_begin(struct actor *self, struct scene *s, const bide_point *body)
{
    self->scene = s;
    bide_spawn(&self->spawned, &s->loop->context, bide_task_init(&self->task, body));
}

static void wait_spawn(struct wait *self, struct scene *s)
{
    self->scene = s;
    self->waiter = primitive_new_waiter(s->primitive);
    bide_stop_source_init(&self->stop);
    self->context = s->loop->context;
    self->context.stop = &self->stop;
    bide_spawn(&self->spawned, &self->context, bide_task_init(&self->task, &wait_body));
}

static int run(bide_sim_loop *loop, void *argument)
{
    const primitive *p = argument;
    static struct scene s;
    memset(&s, 0, sizeof s);
    s.primitive = p;
    s.loop = loop;
    s.object = primitive_new_object(p);
    s.count = p->max_waiting == 0 || p->max_waiting >= WAITS ? WAITS : (unsigned)p->max_waiting;
    unsigned closer = p->close != NULL ? bide_sim_loop_draw(loop, 4) : 0;
    s.waker.closes = closer == 1;
    s.asker.closes = closer == 2;
    for (unsigned i = 0; i < s.count; i++)
        wait_spawn(&s.waits[i], &s);
    actor_begin(&s.waker, &s, &waker_body);
    actor_begin(&s.asker, &s, &asker_body);
    for (unsigned i = 0; i < s.count; i++) {
        bide_event_waiter wait;
        int status = bide_sim_loop_wait(loop, bide_event_wait(&wait, &s.waits[i].spawned.ended));
        if (status < 0)
            return status;
    }
    bide_sim_loop_run_until(loop, bide_now(&loop->context) + 100 * MOMENT);
    for (unsigned i = 0; i < s.count; i++) {
        expect(&s, s.waits[i].ends == 1);
        expect(&s, primitive_free_waiter(p, s.waits[i].waiter));
    }
    expect(&s, p->is_idle(s.object));
    if (p->free_tokens != NULL && (!s.closed || (p->traits & COUNTS_WHEN_CLOSED) != 0))
        expect(&s, p->free_tokens(s.object) == p->tokens);
    primitive_free_object(p, s.object);
    if (s.wrong != 0)
        printf("# %s: not so: line %u\n", p->name, s.wrong);
    return s.wrong != 0 ? -EINVAL : 0;
}

static void waits_end_once_and_for_a_reason_in_any_order(void **state)
{
    bide_sim_result result;
    const primitive *p = *state;
    if ((p->traits & WAKE_BLOCKS) != 0) {
        printf("# skipped: to wake it takes a thread of its own\n");
        skip();
    }
    bide_sim_options options = {.argument = (void *)(uintptr_t)p, .result = &result};
    assert_int_equal(bide_sim_loop_explore_with(run, rounds_of(SEEDS), &options), 0);
}

int main(void)
{
    static struct CMUnitTest tests[256];
    for (size_t i = 0; i < primitives_count; i++) {
        tests[i].name = primitives[i]->name;
        tests[i].test_func = waits_end_once_and_for_a_reason_in_any_order;
        tests[i].initial_state = (void *)(uintptr_t)primitives[i];
    }
    return _cmocka_run_group_tests("contract_sim_loop", tests, primitives_count, NULL, NULL);
}
