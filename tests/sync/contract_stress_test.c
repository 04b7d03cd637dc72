/*
 * The contract that all waits share (contract_test.c) at random, with four threads, for each primitive (primitives.h): two
 * wait, with coroutines on a run loop and inline and by blocking, with and without deadlines; one wakes; one asks to
 * stop; one of the two closes. Each wait ends once, and for a reason; tokens are neither lost nor doubled; nothing
 * refers to a waiter after its wait; nobody is left in any list. A test that hangs has found one who is left waiting.
 * BIDE_ROUNDS times as many rounds.
 */
#define _GNU_SOURCE
#include "sync/meeting.h"
#include "sync/primitives.h"

#include "bide/deadline.h"
#include "bide/handle.h"
#include "bide/run_loop.h"
#include "bide/stop.h"
#include "bide/task.h"

enum { ROUNDS = 1000, WAITS = 6, TURNS = 3, WAITING_THREADS = 2 };

/* With what a wait ended. */
enum { ENDED_WELL, ENDED_CANCELED, ENDED_LATE, ENDED_CLOSED, WAYS };

/* Who closes the object in a round. */
enum { NOBODY, THE_WAKER, THE_ASKER };

/* A coroutine in a source of its own that waits a few times. */
struct wait {
    bide_task task;
    struct storm *storm;
    struct waiting_thread *thread; /* on whose loop it is; NULL: inline */
    bide_context context;
    bide_stop_source stop;
    uint32_t why; /* plain: the round in which it was asked; who is cut short sees it */
    uint64_t random;
    unsigned turns, turn; /* how often it waits */
    bool limited;
    uint64_t deadline;
    bide_with_deadline_operation operation;
    void *waiters[TURNS];
    int status;
    bide_atomic(uint32_t) ends;
};

struct storm {
    const primitive *primitive;
    meeting meeting;
    uint32_t rounds, round;
    uint64_t seed;

    /* of one round; the plain ones are written before what they announce, and read by whom that has ended */
    void *object;
    bide_stop_source stop; /* above all waits' */
    unsigned closer;
    bool wakes;
    uint32_t woken, closed;
    struct wait waits[WAITS];
    unsigned count;
    bide_atomic(
        uint32_t) begun; /* coroutines; or more, if a thread blocks for as long as it takes */
    bide_atomic(uint32_t) over;
    bide_atomic(uint32_t) holding;
    uint32_t held; /* plain; of who has the token, where there is one */

    /* of all rounds */
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

/* Threads do not assert: they note where something was wrong, and the first of these is printed. */
#define expect(s, condition) expect_at(s, condition, __LINE__)

static void expect_at(struct storm *s, bool condition, unsigned line)
{
    if (!condition && bide_atomic_fetch_add(&s->wrong, 1, relaxed) == 0)
        printf("# not so in round %u: line %u\n", s->round, line);
}

/* ---- Waiting ---- */

/* The wait has ended with 0: nobody else has the same, and what came before is seen. Hands it on. */
static void use_and_hand_on(struct storm *s, void *waiter, uint64_t *random)
{
    const primitive *p = s->primitive;
    expect(s, s->woken == s->round);
    if (p->hand_on == NULL)
        return;
    expect(s, bide_atomic_fetch_add(&s->holding, 1, relaxed) < p->tokens);
    if (p->tokens == 1)
        s->held++;
    random_moment(random, 20);
    bide_atomic_fetch_sub(&s->holding, 1, relaxed);
    p->hand_on(s->object, waiter);
}

/* `cut` says whether it may have been cut short with `status`. Counts it. */
static void count_end(struct storm *s, int status, bool cut)
{
    int way = status == -ECANCELED   ? ENDED_CANCELED
              : status == -ETIMEDOUT ? ENDED_LATE
              : status == -EPIPE     ? ENDED_CLOSED
                                     : ENDED_WELL;
    bide_atomic_fetch_add(&s->ended[way], 1, relaxed);
    if (way == ENDED_CLOSED)
        expect(s, s->closed == s->round);
    else if (way == ENDED_WELL)
        expect(s, status == 0);
    else
        expect(s, cut);
}

static bool was_cut(struct wait *self)
{
    int reason = bide_stop_reason(&self->stop);
    if (reason == self->status)
        return self->why == self->storm->round;
    return self->limited && self->status == -ETIMEDOUT && bide_platform.now() >= self->deadline;
}

static void wait_ended(struct wait *self)
{
    void *waiter = self->waiters[self->turn];
    bool cut = self->status != 0 && self->status != -EPIPE && was_cut(self);
    count_end(self->storm, self->status, cut);
    if (self->status == 0)
        use_and_hand_on(self->storm, waiter, &self->random);
    primitive_retire_waiter(self->storm->primitive, waiter);
    bide_atomic_fetch_add(&self->ends, 1, relaxed);
}

/* The next wait begins. */
static bide_awaiter *begin_wait(struct wait *self)
{
    bide_awaiter *awaiter =
        self->storm->primitive->begin(self->waiters[self->turn], self->storm->object);
    uint64_t number = testing_random(&self->random);
    self->limited = self->thread != NULL && number % 3 == 0; /* inline there are no timers */
    if (!self->limited)
        return awaiter;
    self->deadline = number % 2 == 0 ? 0 : bide_platform.now() + number / 8 % 30000;
    return bide_with_deadline(&self->operation, self->deadline, awaiter);
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
    for (; self->turn < self->turns; self->turn++) {
        bide_await_status(self->status, begin_wait(self));
        wait_ended(self);
    }
    wait_over(self);
    bide_end();
}

/* The thread itself waits, without a source. */
static void wait_blocking(struct waiting_thread *self, bool may_be_forever)
{
    struct storm *s = self->storm;
    const primitive *p = s->primitive;
    void *waiter = primitive_new_waiter(p);
    uint64_t number = testing_random(&self->random);
    uint64_t deadline = bide_platform.now() + number / 8 % 30000;
    if (number % 4 == 0)
        deadline = may_be_forever ? BIDE_FOREVER : 0;
    if (deadline == BIDE_FOREVER)
        bide_atomic_fetch_add(&s->begun, WAITS, relaxed);
    int status = primitive_wait_blocking(p, waiter, s->object, deadline);
    count_end(s, status, status == -ETIMEDOUT && bide_platform.now() >= deadline);
    if (status == 0)
        use_and_hand_on(s, waiter, &self->random);
    primitive_retire_waiter(p, waiter);
    expect(s, primitive_free_waiter(p, waiter));
}

/* Begins those waits that are this thread's, and runs its loop until those on it are over. */
static void wait_in_coroutines(struct waiting_thread *self)
{
    struct storm *s = self->storm;
    for (unsigned i = 0; i < s->count; i++) {
        struct wait *wait = &s->waits[i];
        if ((i + s->round) % WAITING_THREADS != self->number)
            continue;
        bool is_inline = testing_random(&self->random) % 3 == 0;
        wait->thread = is_inline ? NULL : self;
        wait->context = (bide_context){is_inline ? &bide_inline_scheduler : &self->loop.scheduler,
                                       &wait->stop, NULL, NULL};
        self->left += !is_inline;
        random_moment(&self->random, 40);
        bide_start(&wait->task.frame, &wait_body, &wait->context);
        bide_resume(&wait->task.frame);
        bide_atomic_fetch_add(&s->begun, 1, relaxed);
    }
    if (s->count > 1 && testing_random(&self->random) % 4 == 0)
        wait_blocking(self, false);
    self->runs = true;
    if (self->left != 0)
        bide_run_loop_run(&self->loop);
    self->runs = false;
}

/* One round of a thread that waits. */
static void wait_for_a_round(struct waiting_thread *self)
{
    struct storm *s = self->storm;
    uint32_t spins = 0;
    bool alone = s->count == 0; /* the only wait is a thread's: this one's? */
    if (alone ? s->round / 2 % WAITING_THREADS == self->number
              : s->count > 1 && testing_random(&self->random) % 8 == 0)
        wait_blocking(self, true);
    wait_in_coroutines(self);
    while (bide_atomic_load(&s->over, acquire) != s->count)
        wait_a_moment(&spins);
}

/* ---- Ending waits ---- */

/* Lets a random moment pass; or so many waits begin, however threads are scheduled. */
static void let_some_begin(struct storm *s, uint64_t *random)
{
    uint64_t number = testing_random(random);
    uint32_t spins = 0;
    while (number % 2 == 0 && bide_atomic_load(&s->begun, relaxed) < number / 2 % (s->count + 1))
        wait_a_moment(&spins);
    random_moment(random, 200);
}

static void close_object(struct storm *s)
{
    s->closed = s->round;
    s->primitive->close(s->object);
}

/* Wakes, once for each token; closes before, between or after, if it is the closer. */
static void *waker(void *argument)
{
    struct storm *s = argument;
    const primitive *p = s->primitive;
    unsigned wakes = p->tokens != 0 ? p->tokens : 1;
    uint64_t random = s->seed + 1;
    for (uint32_t round = 0; round < s->rounds; round++) {
        meet(&s->meeting);
        let_some_begin(s, &random);
        s->woken = s->wakes ? s->round : 0;
        uint64_t close_at = testing_random(&random) % (wakes + 1);
        for (unsigned i = 0; i <= wakes; i++) {
            if (s->closer == THE_WAKER && i == close_at)
                close_object(s);
            if (s->wakes && i < wakes)
                p->wake(s->object);
            random_moment(&random, 100);
        }
        meet(&s->meeting);
    }
    return NULL;
}

/* Asks one to stop; or all. */
static void ask(struct storm *s, bool *asked, uint64_t number)
{
    int reason = number % 3 == 0 ? -ETIMEDOUT : -ECANCELED;
    bool all = number / 3 % 6 == 0;
    unsigned which = (unsigned)(number / 18 % WAITS);
    for (unsigned i = 0; i < WAITS; i++) {
        if (!asked[i] && (all || i == which)) {
            s->waits[i].why = s->round;
            asked[i] = true;
        }
    }
    bide_stop_request_with(all ? &s->stop : &s->waits[which].stop, reason);
}

static void *asker(void *argument)
{
    struct storm *s = argument;
    uint64_t random = s->seed + 2;
    for (uint32_t round = 0; round < s->rounds; round++) {
        bool asked[WAITS] = {false};
        meet(&s->meeting);
        for (uint64_t times = testing_random(&random) % 4; times != 0; times--) {
            let_some_begin(s, &random);
            ask(s, asked, testing_random(&random));
        }
        if (s->closer == THE_ASKER)
            close_object(s);
        meet(&s->meeting);
    }
    return NULL;
}

/* ---- Rounds ---- */

/* Makes what a round is about. Of the first thread. */
static void begin_round(struct storm *s, uint32_t round, uint64_t *random)
{
    const primitive *p = s->primitive;
    uint64_t number = testing_random(random);
    s->round = round + 1;
    s->object = primitive_new_object(p);
    s->closer = p->close != NULL ? number % 4 : NOBODY; /* 3: nobody */
    s->wakes = (s->closer != THE_WAKER && s->closer != THE_ASKER) || number / 4 % 4 != 0;
    s->count = p->most_waiting == 0 ? WAITS : (number / 16 % 3 != 0);
    bide_stop_source_init(&s->stop);
    bide_atomic_init(&s->begun, 0);
    bide_atomic_init(&s->over, 0);
    bide_atomic_init(&s->holding, 0);
    for (unsigned i = 0; i < WAITS; i++) {
        struct wait *wait = &s->waits[i];
        wait->storm = s;
        wait->random = testing_random(random);
        wait->turns = 1 + (unsigned)(wait->random % TURNS);
        wait->turn = 0;
        for (unsigned j = 0; j < wait->turns; j++)
            wait->waiters[j] = primitive_new_waiter(p);
        bide_atomic_init(&wait->ends, 0);
        bide_stop_source_init(&wait->stop);
        bide_stop_source_attach(&wait->stop, &s->stop);
    }
}

/* What is left of it. */
static void end_round(struct storm *s)
{
    const primitive *p = s->primitive;
    for (unsigned i = 0; i < WAITS; i++) {
        struct wait *wait = &s->waits[i];
        bool took_part = i < s->count;
        expect(s, bide_atomic_load(&wait->ends, relaxed) == (took_part ? wait->turns : 0));
        bide_stop_source_detach(&wait->stop);
        for (unsigned j = 0; j < wait->turns; j++) {
            if (!took_part)
                primitive_retire_waiter(p, wait->waiters[j]);
            expect(s, primitive_free_waiter(p, wait->waiters[j]));
        }
    }
    expect(s, p->is_idle(s->object));
    if (p->free_tokens != NULL && (s->closed != s->round || (p->traits & COUNTS_WHEN_CLOSED) != 0))
        expect(s, p->free_tokens(s->object) == (s->wakes ? p->tokens : 0));
    primitive_free_object(p, s->object);
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
    for (uint32_t round = 0; round < self->storm->rounds; round++) {
        meet(&self->storm->meeting);
        wait_for_a_round(self);
        meet(&self->storm->meeting);
    }
    return NULL;
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
    for (uint32_t round = 0; round < s.rounds; round++) {
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
           s.ended[ENDED_WELL], s.ended[ENDED_CANCELED], s.ended[ENDED_LATE],
           s.ended[ENDED_CLOSED]);
    assert_int_equal(s.wrong, 0);
    assert_true(s.ended[ENDED_WELL] > 0 && s.ended[ENDED_CANCELED] > 0 && s.ended[ENDED_LATE] > 0);
    assert_true(s.primitive->close == NULL || s.ended[ENDED_CLOSED] > 0);
}

int main(void)
{
    struct CMUnitTest *tests = calloc(primitives_count, sizeof *tests);
    char(*names)[160] = calloc(primitives_count, sizeof *names);
    if (tests == NULL || names == NULL)
        return 1;
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
