/*
 * The contract that all waits share (contract_test.c) in random runs with four threads, for each primitive
 * (primitives.h). Two threads wait: with coroutines on a run loop and inline, and by blocking, with and without
 * deadlines. One wakes, one requests stops, and one of these two closes. Each wait ends once, and for a reason; tokens
 * are neither lost nor doubled; nothing refers to a waiter after its wait; all lists are empty at the end. If the test
 * hangs, a waiter was forgotten. BIDE_ROUNDS multiplies the rounds.
 */
#define _GNU_SOURCE
#include "sync/meeting.h"
#include "sync/primitives.h"

#include "bide/deadline.h"
#include "bide/handle.h"
#include "bide/run_loop.h"
#include "bide/stop.h"
#include "bide/task.h"

enum { ROUNDS = 250, STEPS = 8, WAITS = 6, REPEATS = 3, WAITING_THREADS = 2 };

/* How a wait ended. */
enum { ENDED_WELL, ENDED_CANCELLED, ENDED_LATE, ENDED_CLOSED, WAYS };

/* The threads that close an object. */
enum { NOBODY, THE_WAKER, THE_ASKER };

/*
 * A round has a number of steps, and each step an object. Coroutines wait for one object after the other. The plain
 * members are written before the operation that announces them, and read after a wait has ended.
 */
struct step {
    void *object;
    bide_stop_source stop; /* above all waits' */
    unsigned closer;
    bool wakes;
    uint32_t woken, closed;      /* plain: the round in which it happened */
    bide_atomic(uint32_t) begun; /* the waits; more if a thread blocks for long */
    bide_atomic(uint32_t) holding;
    uint32_t held; /* plain: by the holder of the token, if there are tokens */
};

/* A coroutine that waits, with a stop source of its own in each step. */
struct wait {
    bide_task task;
    struct storm *storm;
    struct waiting_thread *thread; /* the owner of its loop; NULL: inline */
    bide_context context;
    bide_stop_source stops[STEPS];
    uint32_t why[STEPS]; /* plain: the round in which a stop was requested */
    uint64_t random;
    unsigned repeats, repeat; /* how often it waits in each step */
    unsigned step;
    bool limited;
    uint64_t deadline;
    bide_with_deadline_operation operation;
    void *waiters[STEPS];
    int status;
    bide_atomic(uint32_t) ends;
};

struct storm {
    const primitive *primitive;
    meeting meeting;
    uint32_t rounds, round;
    bool is_last;
    uint64_t seed;
    struct step steps[STEPS];
    struct wait waits[WAITS];
    unsigned count;
    bide_atomic(uint32_t) over; /* coroutines */
    bide_atomic(uint32_t) wrong;
    bide_atomic(uint32_t) ended[WAYS];
};

/* A thread that waits. */
struct waiting_thread {
    bide_run_loop loop;
    struct storm *storm;
    unsigned number;
    uint64_t random;
    unsigned left; /* coroutines on the loop that have not ended */
    bool runs;
    pthread_t id;
};

/* Threads do not assert: they note the line of a mistake, and the first one is printed. */
#define expect(s, condition) expect_at(s, condition, __LINE__)

static void expect_at(struct storm *s, bool condition, unsigned line)
{
    if (!condition && bide_atomic_fetch_add(&s->wrong, 1, relaxed) == 0)
        printf("# not so in round %u: line %u\n", s->round, line);
}

/* ---- Waiting ---- */

/* The wait has ended with 0: it is the only holder, and sees all writes before the wake. Hands the token on. */
static void use_and_hand_on(struct storm *s, struct step *step, void *waiter, uint64_t *random)
{
    const primitive *p = s->primitive;
    expect(s, step->woken == s->round);
    if (p->hand_on == NULL)
        return;
    expect(s, bide_atomic_fetch_add(&step->holding, 1, relaxed) < p->tokens);
    if (p->tokens == 1)
        step->held++;
    random_moment(random, 20);
    bide_atomic_fetch_sub(&step->holding, 1, relaxed);
    p->hand_on(step->object, waiter);
}

/* `cut`: whether it may have been cancelled with `status`. Counts it. */
static void count_end(struct storm *s, struct step *step, int status, bool cut)
{
    int way = status == -ECANCELED   ? ENDED_CANCELLED
              : status == -ETIMEDOUT ? ENDED_LATE
              : status == -EPIPE     ? ENDED_CLOSED
                                     : ENDED_WELL;
    bide_atomic_fetch_add(&s->ended[way], 1, relaxed);
    if (way == ENDED_CLOSED)
        expect(s, step->closed == s->round);
    else if (way == ENDED_WELL)
        expect(s, status == 0);
    else
        expect(s, cut);
}

static bool was_cut(struct wait *self)
{
    int reason = bide_stop_reason(&self->stops[self->step]);
    if (reason == self->status)
        return self->why[self->step] == self->storm->round;
    return self->limited && self->status == -ETIMEDOUT && bide_platform.now() >= self->deadline;
}

static void wait_ended(struct wait *self)
{
    struct step *step = &self->storm->steps[self->step];
    void *waiter = self->waiters[self->step];
    bool cut = self->status != 0 && self->status != -EPIPE && was_cut(self);
    count_end(self->storm, step, self->status, cut);
    if (self->status == 0)
        use_and_hand_on(self->storm, step, waiter, &self->random);
    primitive_retire_waiter(self->storm->primitive, waiter);
    bide_atomic_fetch_add(&self->ends, 1, relaxed);
}

/* The next wait begins. */
static bide_awaiter *begin_wait(struct wait *self)
{
    const primitive *p = self->storm->primitive;
    struct step *step = &self->storm->steps[self->step];
    void *waiter = self->waiters[self->step];
    uint64_t number = testing_random(&self->random);
    if (self->repeat != 0)
        expect(self->storm, primitive_reuse_waiter(p, waiter));
    else
        bide_atomic_fetch_add(&step->begun, 1, relaxed);
    self->context.stop = &self->stops[self->step];
    self->limited = self->thread != NULL && number % 4 == 0; /* inline there are no timers */
    if (!self->limited)
        return p->begin(waiter, step->object);
    self->deadline = number / 4 % 2 == 0 ? 0 : bide_platform.now() + number / 8 % 30000;
    return bide_with_deadline(&self->operation, self->deadline, p->begin(waiter, step->object));
}

static void wait_over(struct wait *self)
{
    struct waiting_thread *thread = self->thread;
    bide_atomic_fetch_add(&self->storm->over, 1, release);
    if (thread != NULL && --thread->left == 0 && thread->runs)
        bide_run_loop_stop(&thread->loop);
}

bide_coroutine(wait_body)
{
    bide_begin(wait_body, struct wait * self);
    for (self->step = 0; self->step < STEPS; self->step++) {
        for (self->repeat = 0; self->repeat < self->repeats; self->repeat++) {
            bide_await_status(self->status, begin_wait(self));
            wait_ended(self);
        }
    }
    wait_over(self);
    bide_end();
}

/* The thread itself waits, without a stop source. */
static void wait_blocking(struct waiting_thread *self, struct step *step, bool may_be_forever)
{
    struct storm *s = self->storm;
    const primitive *p = s->primitive;
    void *waiter = primitive_new_waiter(p);
    uint64_t number = testing_random(&self->random);
    uint64_t deadline = bide_platform.now() + number / 8 % 30000;
    if (number % 4 == 0)
        deadline = may_be_forever ? BIDE_FOREVER : 0;
    if (deadline == BIDE_FOREVER)
        bide_atomic_fetch_add(&step->begun, WAITS, relaxed);
    int status = primitive_wait_blocking(p, waiter, step->object, deadline);
    count_end(s, step, status, status == -ETIMEDOUT && bide_platform.now() >= deadline);
    if (status == 0)
        use_and_hand_on(s, step, waiter, &self->random);
    primitive_retire_waiter(p, waiter);
    expect(s, primitive_free_waiter(p, waiter));
}

/* Starts the coroutines of this thread, and runs its loop until those on it have ended. */
static void wait_in_coroutines(struct waiting_thread *self)
{
    struct storm *s = self->storm;
    for (unsigned i = 0; i < s->count; i++) {
        struct wait *wait = &s->waits[i];
        if ((i + s->round) % WAITING_THREADS != self->number)
            continue;
        bool is_inline = testing_random(&self->random) % 3 == 0;
        wait->thread = is_inline ? NULL : self;
        wait->context.scheduler = is_inline ? &bide_inline_scheduler : &self->loop.scheduler;
        self->left += !is_inline;
        random_moment(&self->random, 40);
        bide_start(&wait->task.frame, &wait_body, &wait->context);
        bide_resume(&wait->task.frame);
    }
    if (s->count > 1 && testing_random(&self->random) % 4 == 0)
        wait_blocking(self, &s->steps[testing_random(&self->random) % STEPS], false);
    self->runs = true;
    if (self->left != 0)
        bide_run_loop_run(&self->loop);
    self->runs = false;
}

/* One round of a waiting thread. If only one may wait, it is a coroutine, or a thread. */
static void wait_for_a_round(struct waiting_thread *self)
{
    struct storm *s = self->storm;
    uint32_t spins = 0;
    if (s->count > 1 && testing_random(&self->random) % 8 == 0)
        wait_blocking(self, &s->steps[0], true);
    if (s->count == 0 && s->round % WAITING_THREADS == self->number) {
        for (unsigned i = 0; i < STEPS; i++)
            wait_blocking(self, &s->steps[i], true);
    }
    wait_in_coroutines(self);
    while (bide_atomic_load(&s->over, acquire) != s->count)
        wait_a_moment(&spins);
}

/* ---- Ending waits ---- */

/* Pauses for a random time; or until so many waits have started, however threads are scheduled. */
static void let_some_begin(struct storm *s, struct step *step, uint64_t *random)
{
    uint64_t number = testing_random(random);
    uint32_t spins = 0;
    while (number % 2 == 0 && bide_atomic_load(&step->begun, relaxed) < number / 2 % (s->count + 1))
        wait_a_moment(&spins);
    random_moment(random, 100);
}

static void close_object(struct storm *s, struct step *step)
{
    step->closed = s->round;
    s->primitive->close(step->object);
}

/* Wakes, once for each token; closes before, between or after, if it is the closer. */
static void wake_step(struct storm *s, struct step *step, uint64_t *random)
{
    const primitive *p = s->primitive;
    unsigned wakes = p->tokens != 0 ? p->tokens : 1;
    uint64_t close_at = testing_random(random) % (wakes + 1);
    if (step->wakes)
        step->woken = s->round;
    for (unsigned i = 0; i <= wakes; i++) {
        if (step->closer == THE_WAKER && i == close_at)
            close_object(s, step);
        if (step->wakes && i < wakes)
            p->wake(step->object);
        if (i != wakes)
            random_moment(random, 40);
    }
}

static void *waker(void *argument)
{
    struct storm *s = argument;
    uint64_t random = s->seed + 1;
    for (bool over = false; !over;) {
        meet(&s->meeting);
        over = s->is_last;
        for (unsigned i = 0; i < STEPS; i++) {
            let_some_begin(s, &s->steps[i], &random);
            wake_step(s, &s->steps[i], &random);
        }
        meet(&s->meeting);
    }
    return NULL;
}

/* Requests a stop of one wait in a step, if none was requested; or of all. */
static void ask(struct storm *s, unsigned step, bool *asked, uint64_t number)
{
    int reason = number % 3 == 0 ? -ETIMEDOUT : -ECANCELED;
    bool all = number / 3 % 6 == 0;
    unsigned which = (unsigned)(number / 18 % WAITS);
    for (unsigned i = 0; i < WAITS; i++) {
        if (!asked[i] && (all || i == which)) {
            s->waits[i].why[step] = s->round;
            asked[i] = true;
        }
    }
    bide_stop_request_with(all ? &s->steps[step].stop : &s->waits[which].stops[step], reason);
}

static void *asker(void *argument)
{
    struct storm *s = argument;
    uint64_t random = s->seed + 2;
    for (bool over = false; !over;) {
        meet(&s->meeting);
        over = s->is_last;
        for (unsigned i = 0; i < STEPS; i++) {
            bool asked[WAITS] = {false};
            let_some_begin(s, &s->steps[i], &random);
            for (uint64_t times = testing_random(&random) % 4; times != 0; times--) {
                ask(s, i, asked, testing_random(&random));
                random_moment(&random, 40);
            }
            if (s->steps[i].closer == THE_ASKER)
                close_object(s, &s->steps[i]);
        }
        meet(&s->meeting);
    }
    return NULL;
}

/* ---- Rounds ---- */

static void begin_step(struct storm *s, struct step *step, uint64_t number)
{
    const primitive *p = s->primitive;
    step->object = primitive_new_object(p);
    step->closer = p->close != NULL ? number % 8 : NOBODY; /* 3 to 7: nobody */
    step->wakes = (step->closer != THE_WAKER && step->closer != THE_ASKER) || number / 8 % 4 != 0;
    bide_stop_source_init(&step->stop);
    bide_atomic_init(&step->begun, 0);
    bide_atomic_init(&step->holding, 0);
}

static void end_step(struct storm *s, struct step *step)
{
    const primitive *p = s->primitive;
    bool closed = step->closed == s->round;
    expect(s, p->is_idle(step->object));
    if (p->free_tokens != NULL && (!closed || (p->traits & COUNTS_WHEN_CLOSED) != 0))
        expect(s, p->free_tokens(step->object) == (step->wakes ? p->tokens : 0));
    primitive_free_object(p, step->object);
}

/* Makes the objects of a round. Called by the first thread. */
static void begin_round(struct storm *s, uint32_t round, uint64_t *random)
{
    const primitive *p = s->primitive;
    s->round = round + 1;
    s->count = p->max_waiting == 0 ? WAITS : round % 4 != 0;
    bide_atomic_init(&s->over, 0);
    for (unsigned i = 0; i < STEPS; i++)
        begin_step(s, &s->steps[i], testing_random(random));
    for (unsigned i = 0; i < WAITS; i++) {
        struct wait *wait = &s->waits[i];
        wait->storm = s;
        wait->random = testing_random(random);
        wait->repeats = 1 + (unsigned)(wait->random % REPEATS);
        bide_atomic_init(&wait->ends, 0);
        for (unsigned j = 0; j < STEPS; j++) {
            wait->waiters[j] = primitive_new_waiter(p);
            bide_stop_source_init(&wait->stops[j]);
            bide_stop_source_attach(&wait->stops[j], &s->steps[j].stop);
        }
    }
}

/* The tokens that are left. */
static void end_round(struct storm *s)
{
    const primitive *p = s->primitive;
    for (unsigned i = 0; i < WAITS; i++) {
        struct wait *wait = &s->waits[i];
        bool took_part = i < s->count;
        uint32_t expected = took_part ? STEPS * wait->repeats : 0;
        expect(s, bide_atomic_load(&wait->ends, relaxed) == expected);
        for (unsigned j = 0; j < STEPS; j++) {
            bide_stop_source_detach(&wait->stops[j]);
            if (!took_part)
                primitive_retire_waiter(p, wait->waiters[j]);
            expect(s, primitive_free_waiter(p, wait->waiters[j]));
        }
    }
    for (unsigned i = 0; i < STEPS; i++)
        end_step(s, &s->steps[i]);
}

static void waiting_thread_init(struct waiting_thread *self, struct storm *s, unsigned number)
{
    self->storm = s;
    self->number = number;
    self->random = s->seed + 3 + number;
    self->left = 0;
    self->runs = false;
    bide_run_loop_init(&self->loop);
}

static void *second_waits(void *argument)
{
    struct waiting_thread *self = argument;
    for (bool over = false; !over;) {
        meet(&self->storm->meeting);
        over = self->storm->is_last;
        wait_for_a_round(self);
        meet(&self->storm->meeting);
    }
    return NULL;
}

static bool saw_all_ends(struct storm *s)
{
    return s->ended[ENDED_WELL] > 0 && s->ended[ENDED_CANCELLED] > 0 && s->ended[ENDED_LATE] > 0 &&
           (s->primitive->close == NULL || s->ended[ENDED_CLOSED] > 0);
}

static void at_random_each_wait_ends_once_and_nothing_is_lost(void **state)
{
    static struct storm s;
    struct waiting_thread threads[WAITING_THREADS];
    pthread_t others[2];
    memset(&s, 0, sizeof s);
    s.primitive = *state;
    s.seed = testing_seed();
    fflush(stdout); /* if it hangs */
    s.rounds = rounds_of(ROUNDS);
    meeting_init(&s.meeting, 4);
    for (unsigned i = 0; i < WAITING_THREADS; i++)
        waiting_thread_init(&threads[i], &s, i);
    start_thread(&threads[1].id, second_waits, &threads[1]);
    start_thread(&others[0], waker, &s);
    start_thread(&others[1], asker, &s);
    uint64_t random = s.seed;
    for (uint32_t round = 0; !s.is_last; round++) {
        s.is_last = is_last_round(round, s.rounds, saw_all_ends(&s));
        begin_round(&s, round, &random);
        meet(&s.meeting);
        wait_for_a_round(&threads[0]);
        meet(&s.meeting);
        end_round(&s);
    }
    join_thread(threads[1].id);
    join_thread(others[0]);
    join_thread(others[1]);
    printf("# %u had it, %u were asked to stop, %u were late, %u were closed\n",
           s.ended[ENDED_WELL], s.ended[ENDED_CANCELLED], s.ended[ENDED_LATE],
           s.ended[ENDED_CLOSED]);
    assert_int_equal(s.wrong, 0);
    assert_true(saw_all_ends(&s));
}

int main(void)
{
    struct CMUnitTest *tests = calloc(primitives_count, sizeof *tests);
    char(*names)[160] = calloc(primitives_count, sizeof *names);
    if (tests == NULL || names == NULL)
        abort();
    for (size_t i = 0; i < primitives_count; i++) {
        snprintf(names[i], sizeof names[i], "%s: at_random_each_wait_ends_once_and_nothing_is_lost",
                 primitives[i]->name);
        tests[i] = (struct CMUnitTest)cmocka_unit_test_prestate(
            at_random_each_wait_ends_once_and_nothing_is_lost, (void *)(uintptr_t)primitives[i]);
        tests[i].name = names[i];
    }
    int failed = _cmocka_run_group_tests("contract_stress", tests, primitives_count, NULL, NULL);
    free(tests);
    free(names);
    return failed;
}
