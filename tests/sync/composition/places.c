/* The schedulers; see places.h. */
#include "places.h"

#include "../src/coroutine/internal.h"

#include "bide/run_loop.h"
#include "bide/sim_loop.h"
#include "bide/thread_pool.h"
#include "bide/extend/timer.h"

#include <pthread.h>
#include <stdlib.h>

static BIDE_THREAD_LOCAL const place *here;

/* ---- The driver's own coroutine ---- */

typedef struct driver {
    bide_frame frame;
    bide_awaiter awaiter; /* to post it by */
    place_function *function;
    void *argument;
} driver;

static bide_next driver_step(bide_frame *frame, unsigned depth)
{
    driver *self = bide_container_of(frame, driver, frame);
    (void)depth;
    self->function(self->argument);
    return bide_next_none();
}

static const bide_coroutine_code driver_code = {driver_step, "(driver)", __FILE__, NULL, NULL};
static const bide_point driver_point = BIDE_POINT_START(&driver_code);

static void driver_init(driver *self, place_function *function, void *argument)
{
    self->frame.awaiter.ops = &driver_point.ops;
    self->frame.awaiter.link = NULL;
    self->frame.context = &bide_default_context;
    self->awaiter.ops = &driver_point.ops;
    self->awaiter.link = NULL;
    self->awaiter.frame = &self->frame;
    self->function = function;
    self->argument = argument;
}

/* ---- By hand ---- */

typedef struct hand {
    bide_scheduler scheduler;
    pthread_mutex_t lock; /* of the queue: a blocking call's thread posts there */
    bide_awaiter_chain queue;
    bide_timers timers;
} hand;

static uint64_t hand_time;

static void hand_post(bide_scheduler *scheduler, bide_awaiter *first, bide_awaiter *last)
{
    hand *self = bide_container_of(scheduler, hand, scheduler);
    pthread_mutex_lock(&self->lock);
    bide_awaiter_chain_append(&self->queue, first, last);
    pthread_mutex_unlock(&self->lock);
}

static bool hand_take_back(bide_scheduler *scheduler, bide_awaiter *awaiter)
{
    hand *self = bide_container_of(scheduler, hand, scheduler);
    pthread_mutex_lock(&self->lock);
    bool found = bide_awaiter_chain_remove(&self->queue, awaiter);
    pthread_mutex_unlock(&self->lock);
    return found;
}

static int hand_set_timer(bide_scheduler *scheduler, bide_timer *timer)
{
    bide_timers_insert(&bide_container_of(scheduler, hand, scheduler)->timers, timer);
    return 0;
}

static bool hand_clear_timer(bide_scheduler *scheduler, bide_timer *timer)
{
    return bide_timers_remove(&bide_container_of(scheduler, hand, scheduler)->timers, timer);
}

static void hand_open(place *p, hand *self)
{
    self->scheduler.post = hand_post;
    self->scheduler.one_thread = p == &place_hand;
    self->scheduler.take_back = hand_take_back;
    self->scheduler.set_timer = hand_set_timer;
    self->scheduler.clear_timer = hand_clear_timer;
    pthread_mutex_init(&self->lock, NULL);
    self->queue.first = NULL;
    bide_timers_init(&self->timers);
    p->scheduler = &self->scheduler;
}

static bide_sim_loop tests[2];

static bool test_step(place *p)
{
    bide_sim_loop *loop = p->implementation;
    const place *before = here;
    here = p;
    bool stepped = bide_sim_loop_step(loop);
    here = before;
    return stepped;
}

bool place_step(place *p)
{
    if (p->kind == PLACE_TEST)
        return test_step(p);
    hand *self = p->implementation;
    const place *before = here;
    pthread_mutex_lock(&self->lock);
    bide_timers_take_due(&self->timers, hand_time, &self->queue);
    bide_awaiter *awaiter = bide_awaiter_chain_take(&self->queue);
    pthread_mutex_unlock(&self->lock);
    if (awaiter == NULL)
        return false;
    here = p;
    bide_resume(awaiter->frame);
    here = before;
    return true;
}

void places_let_time_be(uint64_t time)
{
    hand_time = time;
    tests[0].now = time;
    tests[1].now = time;
}

/* ---- Pools ---- */

enum { MAX_THREADS = 2 };

/* A coroutine on each thread of a pool, all at the same time: the first one runs the function. */
typedef struct pool {
    bide_thread_pool *threads;
    bide_scheduler own; /* the functions of the pool's scheduler, which now go through these here */
    place *place;
    bide_atomic(uint32_t) posted; /* how often */
    bide_atomic(uint32_t) timed;  /* was a timer set? */
    uint32_t drained;             /* the driver's: what `posted` was when nothing was left */
    bool held;                    /* the driver's */
    bool
        was_told; /* the driver's: what the first of the gang has woken inline runs when it has gone */
    driver gang[MAX_THREADS];
    bide_atomic(uint32_t) arrived;
    bide_atomic(uint32_t) left;
    bide_atomic(uint32_t) free;
    bide_atomic(uint32_t) told; /* counts orders to the first */
    bide_atomic(uint32_t) done;
    place_function *function; /* NULL: go */
    void *argument;
} pool;

static pool pools[4];

static void wait_for(bide_atomic(uint32_t) * word, uint32_t number)
{
    uint32_t spins = 0;
    while (bide_atomic_load(word, acquire) != number)
        wait_a_moment(&spins);
}

static void gang_leads(pool *self)
{
    for (uint32_t order = 1;; order++) {
        wait_for(&self->told, order);
        if (self->function == NULL)
            return;
        self->function(self->argument);
        bide_atomic_store(&self->done, order, release);
    }
}

static void gang_member(void *argument)
{
    pool *self = argument;
    if (self->place->under == NULL) /* those of a strand are known to be its pool's */
        here = self->place;
    bide_budget_ = bide_budget_full_;
    if (bide_atomic_fetch_add(&self->arrived, 1, acq_rel) == 0) {
        gang_leads(self);
        bide_atomic_store(&self->free, 1, release);
    }
    wait_for(&self->free, 1);
    bide_atomic_fetch_add(&self->left, 1, release);
}

static void gang_tell(pool *self, place_function *function, void *argument)
{
    uint32_t order = bide_atomic_load(&self->told, relaxed) + 1;
    self->function = function;
    self->argument = argument;
    bide_atomic_store(&self->told, order, release);
    if (function != NULL)
        wait_for(&self->done, order);
    else
        wait_for(&self->left, self->place->threads);
}

static void pool_hold(pool *self)
{
    bide_atomic_store(&self->arrived, 0, relaxed);
    bide_atomic_store(&self->left, 0, relaxed);
    bide_atomic_store(&self->free, 0, relaxed);
    bide_atomic_store(&self->told, 0, relaxed);
    bide_atomic_store(&self->done, 0, relaxed);
    for (unsigned i = 0; i < self->place->threads; i++) {
        driver_init(&self->gang[i], gang_member, self);
        self->own.post(self->place->scheduler, &self->gang[i].awaiter, &self->gang[i].awaiter);
    }
    wait_for(&self->arrived, self->place->threads);
    self->held = true;
}

static void pool_release(pool *self)
{
    self->held = false;
    gang_tell(self, NULL, NULL);
}

static pool *pool_of(bide_scheduler *scheduler)
{
    return place_of(scheduler)->implementation;
}

static void pool_post(bide_scheduler *scheduler, bide_awaiter *first, bide_awaiter *last)
{
    pool *self = pool_of(scheduler);
    bide_atomic_fetch_add(&self->posted, 1, relaxed);
    self->own.post(scheduler, first, last);
}

static void pool_post_last(bide_scheduler *scheduler, bide_awaiter *awaiter)
{
    pool *self = pool_of(scheduler);
    bide_atomic_fetch_add(&self->posted, 1, relaxed);
    self->own.post_last(scheduler, awaiter);
}

static int pool_set_timer(bide_scheduler *scheduler, bide_timer *timer)
{
    pool *self = pool_of(scheduler);
    bide_atomic_store(&self->timed, 1, relaxed);
    return self->own.set_timer(scheduler, timer);
}

static void pool_open(place *p, pool *self)
{
    self->place = p;
    if (p->strand != NULL) {
        place_open(p->under);
        bide_strand_init(p->strand, p->under->scheduler);
        p->scheduler = &p->strand->scheduler;
    } else {
        if (bide_thread_pool_create(&self->threads, p->threads) != 0)
            abort();
        p->scheduler = bide_thread_pool_scheduler(self->threads);
    }
    self->own.post = p->scheduler->post;
    self->own.post_last = p->scheduler->post_last;
    self->own.set_timer = p->scheduler->set_timer;
    p->scheduler->post = pool_post;
    if (self->own.post_last != NULL)
        p->scheduler->post_last = pool_post_last;
    p->scheduler->set_timer = pool_set_timer;
}

/* ---- Inline ---- */

/*
 * The driver is in no wait, so a thread of the library keeps the time. `until` is the time at which all near timers
 * have expired: once a timer that is set after them has expired, and another after that one, everything that they made
 * ready inline has run.
 */
static struct {
    bide_scheduler own; /* the functions of the scheduler, which now go through this here */
    pthread_mutex_t lock;
    uint64_t until; /* 0: none is near */
} inlined = {.lock = PTHREAD_MUTEX_INITIALIZER};

typedef struct bell {
    bide_timer timer;
    bide_frame frame;
    bide_atomic(uint32_t) rung;
} bell;

static bide_next bell_step(bide_frame *frame, unsigned depth)
{
    (void)depth;
    bide_atomic_store(&bide_container_of(frame, bell, frame)->rung, 1, release);
    return bide_next_none();
}

static const bide_coroutine_code bell_code = {bell_step, "(bell)", __FILE__, NULL, NULL};
static const bide_point bell_point = BIDE_POINT_START(&bell_code);

static int inline_set_timer(bide_scheduler *scheduler, bide_timer *timer)
{
    static const uint64_t second = UINT64_C(1000000000);
    pthread_mutex_lock(&inlined.lock);
    if (timer->time > inlined.until && timer->time < bide_platform.now() + second)
        inlined.until = timer->time;
    pthread_mutex_unlock(&inlined.lock);
    return inlined.own.set_timer(scheduler, timer);
}

static void inline_open(place *p)
{
    if (inlined.own.set_timer != NULL)
        return;
    inlined.own.set_timer = p->scheduler->set_timer;
    p->scheduler->set_timer = inline_set_timer;
}

static void await_bell(void)
{
    bell self;
    uint32_t spins = 0;
    bide_timer_init(&self.timer, 0);
    self.timer.time = bide_platform.now();
    self.timer.awaiter.ops = NULL;
    self.timer.awaiter.frame = &self.frame;
    self.frame.awaiter.ops = &bell_point.ops;
    self.frame.context = &bide_default_context;
    bide_atomic_init(&self.rung, 0);
    if (inlined.own.set_timer(&bide_inline_scheduler, &self.timer) != 0)
        abort();
    while (bide_atomic_load(&self.rung, acquire) == 0)
        wait_a_moment(&spins);
}

static bool drain_inline(void)
{
    pthread_mutex_lock(&inlined.lock);
    uint64_t until = inlined.until;
    bool all = until != 0 && bide_platform.now() >= until;
    if (all)
        inlined.until = 0;
    pthread_mutex_unlock(&inlined.lock);
    if (all) {
        await_bell();
        await_bell();
    }
    return all;
}

/* ---- A thread that belongs to nobody ---- */

static struct {
    bool begun;
    pthread_t thread;
    place_function *function;
    void *argument;
    bide_atomic(uint32_t) asked;
    bide_atomic(uint32_t) done;
} elsewhere;

static void *elsewhere_run(void *argument)
{
    (void)argument;
    for (uint32_t order = 1;; order++) {
        while (bide_atomic_load(&elsewhere.asked, acquire) != order)
            bide_platform.wait(&elsewhere.asked, order - 1, BIDE_FOREVER);
        elsewhere.function(elsewhere.argument);
        bide_atomic_store(&elsewhere.done, order, release);
    }
    return NULL;
}

void place_call_elsewhere(place_function *function, void *argument)
{
    if (!elsewhere.begun) {
        elsewhere.begun = true;
        if (pthread_create(&elsewhere.thread, NULL, elsewhere_run, NULL) != 0)
            abort();
    }
    uint32_t order = bide_atomic_load(&elsewhere.asked, relaxed) + 1;
    elsewhere.function = function;
    elsewhere.argument = argument;
    bide_atomic_store(&elsewhere.asked, order, release);
    bide_platform.wake(&elsewhere.asked, 1);
    wait_for(&elsewhere.done, order);
}

/* ---- All of them ---- */

static hand hands[2];
static bide_run_loop loops[3];
static bide_strand strands[2];

place place_hand = {"hand", PLACE_HAND, 1, NULL, &hands[0], NULL, NULL};
place place_hand_too = {"hand 2", PLACE_HAND, 1, NULL, &hands[1], NULL, NULL};
place place_test = {"test", PLACE_TEST, 1, NULL, &tests[0], NULL, NULL};
place place_test_too = {"test 2", PLACE_TEST, 1, NULL, &tests[1], NULL, NULL};
place place_inline = {"inline", PLACE_INLINE, 1, &bide_inline_scheduler, NULL, NULL, NULL};
place place_loop = {"loop", PLACE_LOOP, 1, NULL, &loops[0], NULL, NULL};
place place_loop_too = {"loop 2", PLACE_LOOP, 1, NULL, &loops[1], NULL, NULL};
place place_pool = {"pool", PLACE_POOL, MAX_THREADS, NULL, &pools[0], NULL, NULL};
place place_pool_too = {"pool 2", PLACE_POOL, 1, NULL, &pools[1], NULL, NULL};

static place pool_of_strand = {
    "pool of the strand", PLACE_POOL, MAX_THREADS, NULL, &pools[3], NULL, NULL};
place place_strand = {"strand on a pool", PLACE_POOL,     1, NULL, &pools[2],
                      &strands[0],        &pool_of_strand};
place place_strand_on_loop = {"strand on a loop", PLACE_LOOP,  1,   NULL,
                              &loops[2],          &strands[1], NULL};

static place *const all[] = {&place_hand,     &place_hand_too, &place_test,
                             &place_test_too, &place_inline,   &place_loop,
                             &place_loop_too, &place_pool,     &place_pool_too,
                             &pool_of_strand, &place_strand,   &place_strand_on_loop};

void place_open(place *p)
{
    if (p->kind == PLACE_INLINE)
        inline_open(p);
    if (p->scheduler != NULL)
        return;
    if (p->kind == PLACE_HAND) {
        hand_open(p, p->implementation);
    } else if (p->kind == PLACE_TEST) {
        bide_sim_loop_init(p->implementation, 1);
        p->scheduler = &((bide_sim_loop *)p->implementation)->scheduler;
    } else if (p->kind == PLACE_LOOP) {
        bide_run_loop_init(p->implementation);
        p->scheduler = &((bide_run_loop *)p->implementation)->scheduler;
        if (p->strand != NULL) {
            bide_strand_init(p->strand, p->scheduler);
            p->scheduler = &p->strand->scheduler;
        }
    } else {
        pool_open(p, p->implementation);
        place_hold(p);
        place_release(p); /* its threads record their place */
    }
}

place *place_of(const bide_scheduler *scheduler)
{
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i]->scheduler == scheduler)
            return all[i];
    }
    return NULL;
}

bool place_is_here(const place *p)
{
    const place *driven = p->under != NULL ? p->under : p;
    return p->kind == PLACE_INLINE ||
           (here == driven && (p->strand == NULL || p->scheduler->runs_here_only(p->scheduler)));
}

bool place_is_by_hand(const place *p)
{
    return p->kind == PLACE_HAND || p->kind == PLACE_TEST;
}

void place_hold(place *p)
{
    if (p->kind == PLACE_POOL && !((pool *)p->implementation)->held)
        pool_hold(p->implementation);
}

void place_release(place *p)
{
    if (p->kind == PLACE_POOL && ((pool *)p->implementation)->held)
        pool_release(p->implementation);
}

/* The thread runs `p` meanwhile. */
static void call_as(place *p, place_function *function, void *argument)
{
    const place *before = here;
    bide_sim_loop *running = bide_sim_loop_running_;
    here = p;
    if (p->kind == PLACE_TEST)
        bide_sim_loop_running_ = p->implementation;
    function(argument);
    bide_sim_loop_running_ = running;
    here = before;
}

static void resume_driver(void *argument)
{
    bide_resume(&((driver *)argument)->frame);
}

void place_call(place *p, place_function *function, void *argument)
{
    driver driver;
    const place *before = here;
    driver_init(&driver, function, argument);
    if (p->kind == PLACE_POOL) {
        pool *self = p->implementation;
        bool held = self->held;
        if (!held)
            pool_hold(self);
        gang_tell(self, function, argument);
        self->was_told = true;
        if (!held)
            pool_release(self);
        return;
    }
    if (p->kind != PLACE_LOOP) {
        call_as(p, resume_driver, &driver);
        return;
    }
    here = p;
    p->scheduler->post(p->scheduler, &driver.awaiter, &driver.awaiter);
    bide_run_loop_run_ready(p->implementation);
    here = before;
}

void place_touch(place *p, place_function *function, void *argument)
{
    if (p->kind == PLACE_POOL)
        place_call(p, function, argument);
    else
        call_as(p, function, argument);
}

static bool drain_loop(place *p)
{
    bide_run_loop *loop = p->implementation;
    const place *before = here;
    bool any = false;
    here = p;
    while (bide_run_loop_run_ready(loop) != 0 ||
           bide_platform.now() >= bide_run_loop_next_deadline(loop))
        any = true;
    here = before;
    return any;
}

/* The due time of a timer is not known here, so timers are checked at least once. */
static bool drain_pool(place *p)
{
    pool *self = p->implementation;
    bool any = false;
    if (self->held)
        return false;
    bool look = self->was_told || bide_atomic_load(&self->timed, relaxed) != 0;
    self->was_told = false;
    for (;;) {
        uint32_t posted = bide_atomic_load(&self->posted, relaxed);
        if (posted == self->drained && !look)
            return any;
        any |= posted != self->drained;
        self->drained = posted;
        look = false;
        pool_hold(self);
        pool_release(self);
        if (p->under != NULL) { /* coroutines that a strand wakes inline run after its turn */
            place_hold(p->under);
            place_release(p->under);
        }
    }
}

void place_look_again(place *p)
{
    if (p->kind == PLACE_POOL)
        ((pool *)p->implementation)->was_told = true;
}

bool place_drain(place *p)
{
    bool any = false;
    switch (p->kind) {
    case PLACE_HAND:
    case PLACE_TEST:
        while (place_step(p))
            any = true;
        return any;
    case PLACE_LOOP:
        return drain_loop(p);
    case PLACE_POOL:
        return drain_pool(p);
    case PLACE_INLINE:
        return drain_inline();
    default:
        return false;
    }
}

bool places_settle(place *const *list, size_t count)
{
    for (int rounds = 0; rounds < 100000; rounds++) {
        bool any = false;
        for (size_t i = 0; i < count; i++)
            any |= place_drain(list[i]);
        if (!any)
            return true;
    }
    return false;
}

void place_begin(place *p, uint64_t seed)
{
    if (p->kind == PLACE_TEST)
        bide_sim_loop_init(p->implementation, seed);
    if (p->kind == PLACE_POOL)
        bide_atomic_store(&((pool *)p->implementation)->timed, 0, relaxed);
}

/* (threads of pools read it when they are held) */
void places_set_budget(int32_t budget)
{
    int32_t full = budget != 0 ? budget - 1 : BIDE_BUDGET - 1;
    bide_budget_ = full;
    if (full == bide_budget_full_)
        return;
    bide_budget_full_ = full;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i]->kind == PLACE_POOL && all[i]->scheduler != NULL) {
            place_hold(all[i]);
            place_release(all[i]);
        }
    }
}

bool place_is_empty(place *p)
{
    if (p->kind == PLACE_HAND) {
        hand *self = p->implementation;
        pthread_mutex_lock(&self->lock);
        bool is_idle = self->queue.first == NULL && self->timers.first == NULL;
        pthread_mutex_unlock(&self->lock);
        return is_idle;
    }
    if (p->kind == PLACE_TEST)
        return bide_sim_loop_is_empty(p->implementation);
    if (p->kind == PLACE_LOOP)
        return bide_run_loop_next_deadline(p->implementation) == BIDE_FOREVER;
    return true;
}
