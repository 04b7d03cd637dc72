/*
 * The scenes of steps.h: a queue in some state, a victim with an operation, others with theirs. Included after
 * everything that is stepped through.
 */
#ifndef BIDE_TESTS_STEPS_SCENES_H
#define BIDE_TESTS_STEPS_SCENES_H

#include "queue/queues.h"
#include "queue/steps.h"

typedef enum act { PUSH, POP, PUSH_MANY, POP_MANY, CLOSE, ACTS } act;

enum { BATCH = 3, OTHERS = 2, STEPS_ELEMENTS = 8000 /* at most in an unbounded one */ };

/* The threads besides the victim. A closing thread closes in the middle, and is alone. */
typedef enum crew { ONE, ONE_WHO_CLOSES, TWO, CREWS } crew;

typedef struct scene scene;

/* A thread. */
typedef struct actor {
    scene *scene;
    stepper stepper;
    void *seat;
    uint64_t random, value;
    fifo_log log;
    uint64_t began, ended;
    uint64_t finished; /* the end of a pop that returned -EPIPE; UINT64_MAX: never */
    act act;           /* which operation it does */
    uint64_t values[BATCH];
    ptrdiff_t answer;
    bool wrong;
    pthread_t id;
} actor;

/* The state of the queue before the victim's operation, and the operations of the others. */
typedef struct setting {
    size_t capacity; /* of a bounded queue */
    size_t elements; /* in it, fewer if it is bounded */
    uint32_t work;   /* operations of each other thread */
} setting;

struct scene {
    const queue_kind *kind;
    const setting *setting;
    void *queue;
    fifo_clock clock;
    bool may_push, may_pop; /* others, while the victim is in its operation */
    bool closes;            /* one of the threads closes it */
    crew crew;
    actor victim;
    actor others[OTHERS]; /* the first is the main thread */
};

/* ---- What threads do ---- */

static void do_act(void *argument)
{
    actor *self = argument;
    const queue_kind *kind = self->scene->kind;
    void *queue = self->scene->queue;
    if (self->act == PUSH)
        self->answer = kind->push(queue, self->seat, self->values);
    else if (self->act == POP)
        self->answer = kind->pop(queue, self->seat, self->values);
    else if (self->act == PUSH_MANY)
        self->answer = kind->push_many(queue, self->seat, self->values, BATCH);
    else if (self->act == POP_MANY)
        self->answer = kind->pop_many(queue, self->seat, self->values, BATCH);
    else
        kind->close(queue);
}

/* The pushed value, if any; values are never pushed again. */
static void note_push(actor *self)
{
    const queue_kind *kind = self->scene->kind;
    if (self->answer > 0 && self->answer <= BATCH) {
        fifo_log_add(&self->log, FIFO_PUSH, self->values, (size_t)self->answer, self->began,
                     self->ended);
        self->value += (uint64_t)self->answer;
    } else if (self->answer == -EPIPE) {
        self->wrong = self->wrong || !self->scene->closes;
    } else {
        self->wrong = self->wrong || !queue_is(kind, QUEUE_BOUNDED) || self->answer != -ENOBUFS;
    }
}

static void note_pop(actor *self)
{
    if (self->answer > 0 && self->answer <= BATCH)
        fifo_log_add(&self->log, FIFO_POP, self->values, (size_t)self->answer, self->began,
                     self->ended);
    else if (self->answer == -EPIPE ||
             (self->answer == -EAGAIN && queue_is(self->scene->kind, QUEUE_EXACT_EMPTY)))
        fifo_log_add(&self->log, FIFO_EMPTY, NULL, 1, self->began, self->ended);
    if (self->answer == -EPIPE && self->finished == UINT64_MAX)
        self->finished = self->ended;
    self->wrong = self->wrong || self->answer > BATCH ||
                  (self->answer <= 0 && self->answer != -EAGAIN &&
                   (self->answer != -EPIPE || !self->scene->closes));
}

/* One operation, recorded. False: it was held up. */
static bool perform(actor *self, act act)
{
    self->act = act;
    for (size_t i = 0; i < BATCH; i++)
        self->values[i] = self->value + i;
    self->began = fifo_stamp(&self->scene->clock);
    if (!stepper_try(&self->stepper, do_act, self))
        return false;
    self->ended = fifo_stamp(&self->scene->clock);
    if ((act == PUSH || act == POP) && self->answer == 0)
        self->answer = 1;
    if (act == PUSH || act == PUSH_MANY)
        note_push(self);
    else if (act == POP || act == POP_MANY)
        note_pop(self);
    return true;
}

static void *victim_runs(void *argument)
{
    actor *self = argument;
    self->seat = self->scene->kind->enter(self->scene->queue);
    perform(self, self->act);
    self->scene->kind->leave(self->scene->queue, self->seat);
    sem_post(&self->stepper.parked); /* if it was not parked */
    return NULL;
}

/* Pushes and pops, as far as it may. The main thread has a seat already, and keeps it. */
static void work(actor *self)
{
    const scene *scene = self->scene;
    for (uint32_t i = 0; i < scene->setting->work; i++) {
        if (scene->crew == ONE_WHO_CLOSES && i == scene->setting->work / 2 && !perform(self, CLOSE))
            return;
        uint64_t number = testing_random(&self->random);
        bool push = scene->may_push && (!scene->may_pop || number / 2 % 2 == 0);
        if (!push && !scene->may_pop)
            return;
        act act = number % 2 == 0 ? (push ? PUSH : POP) : (push ? PUSH_MANY : POP_MANY);
        if (!perform(self, act))
            return;
    }
}

static void *other_runs(void *argument)
{
    actor *self = argument;
    self->seat = self->scene->kind->enter(self->scene->queue);
    work(self);
    if (!self->stepper.held_up)
        self->scene->kind->leave(self->scene->queue, self->seat);
    return NULL;
}

/* ---- A scene ---- */

static void actor_init(actor *self, scene *scene, unsigned number, uint32_t park_at)
{
    self->scene = scene;
    self->value = (uint64_t)(number + 1) << 32;
    self->random = number;
    self->wrong = false;
    self->finished = UINT64_MAX;
    self->log.count = 0;
    if (self->log.operations == NULL) {
        self->log.max = 40000;
        self->log.operations = calloc(self->log.max, sizeof *self->log.operations);
        assert_non_null(self->log.operations);
    }
    stepper_init(&self->stepper, park_at);
}

static void fill(scene *s)
{
    actor *first = &s->others[0];
    first->seat = s->kind->enter(s->queue);
    for (int i = 0; i < 5; i++) {
        assert_true(perform(first, PUSH));
        assert_true(perform(first, POP));
    }
    for (size_t i = 0; i < s->setting->elements; i++)
        assert_true(perform(first, PUSH));
}

/* All threads have ended. Whether the history is that of a queue, and nothing is left. Of a bag: in any order. */
static bool ends_well(scene *s)
{
    static fifo_operation all[120000];
    actor *actors[] = {&s->victim, &s->others[0], &s->others[1]};
    actor *first = &s->others[0];
    size_t count = 0, pushed = 0, popped = 0;
    uint64_t finished = UINT64_MAX;
    do
        expect(perform(first, POP_MANY));
    while (first->answer > 0);
    for (int i = 0; i < 3; i++) {
        expect(!actors[i]->wrong);
        finished = actors[i]->finished < finished ? actors[i]->finished : finished;
        memcpy(&all[count], actors[i]->log.operations, actors[i]->log.count * sizeof *all);
        count += actors[i]->log.count;
    }
    for (size_t i = 0; i < count; i++) {
        expect(all[i].kind != FIFO_POP || all[i].began < finished);
        pushed += all[i].kind == FIFO_PUSH;
        popped += all[i].kind == FIFO_POP;
    }
    fifo_verdict verdict = fifo_history_check(all, count);
    if (queue_is(s->kind, QUEUE_ANY_ORDER) && verdict.fault == FIFO_OUT_OF_ORDER)
        verdict.fault = FIFO_GOOD;
    fifo_verdict_print(&verdict);
    expect(verdict.fault == FIFO_GOOD);
    expect(pushed == popped);
    return true;
}

typedef enum outcome { ENDED, PARKED, HELD_UP, WRONG } outcome;

/* The victim is parked before step `park_at`. ENDED: it had no such step. */
static outcome play(const queue_kind *kind, const setting *setting, act act, uint32_t park_at,
                    crew crew)
{
    static scene s;
    actor *victim = &s.victim, *first = &s.others[0], *other = &s.others[1];
    bool pushes = act == PUSH || act == PUSH_MANY || act == CLOSE;
    s.kind = kind;
    s.setting = setting;
    s.closes = act == CLOSE || crew == ONE_WHO_CLOSES;
    s.crew = crew;
    s.may_push = !pushes || !queue_is(kind, QUEUE_ONE_PRODUCER);
    s.may_pop = (act != POP && act != POP_MANY) || !queue_is(kind, QUEUE_ONE_CONSUMER);
    s.queue = kind->create(queue_is(kind, QUEUE_BOUNDED) ? setting->capacity : STEPS_ELEMENTS);
    fifo_clock_init(&s.clock);
    actor_init(victim, &s, 0, park_at);
    actor_init(first, &s, 1, UINT32_MAX);
    actor_init(other, &s, 2, UINT32_MAX);
    fill(&s);
    victim->act = act;
    start_thread(&victim->id, victim_runs, victim);
    stepper_wait(&victim->stepper.parked);
    if (crew == TWO)
        start_thread(&other->id, other_runs, other);
    work(first);
    if (crew == TWO)
        join_thread(other->id);
    sem_post(&victim->stepper.go);
    join_thread(victim->id);
    bool parked = victim->stepper.steps > park_at;
    bool held_up = victim->stepper.held_up || first->stepper.held_up || other->stepper.held_up;
    outcome outcome = held_up ? HELD_UP : !ends_well(&s) ? WRONG : parked ? PARKED : ENDED;
    if (!held_up)
        kind->leave(s.queue, first->seat);
    kind->destroy(s.queue);
    stepper_destroy(&victim->stepper);
    stepper_destroy(&first->stepper);
    stepper_destroy(&other->stepper);
    return outcome;
}

static const setting settings[] = {{2, 0, 100}, {1, 1, 100}, {5, 3, 100}, {50, 40, 600}};
static const char *const act_names[ACTS] = {"push", "pop", "push many", "pop many", "close"};

static bool can_play(const queue_kind *kind, act act, crew crew)
{
    bool pushes = act != POP && act != POP_MANY;
    if ((act == CLOSE || crew == ONE_WHO_CLOSES) && kind->close == NULL)
        return false;
    if (crew == ONE_WHO_CLOSES) /* only the producer may be allowed to close */
        return !pushes || !queue_is(kind, QUEUE_ONE_PRODUCER);
    return crew == ONE || (kind->traits & (QUEUE_ONE_PRODUCER | QUEUE_ONE_CONSUMER)) == 0;
}

/* Every operation, and every step of it. Stops at the first HELD_UP or WRONG. */
static inline outcome play_all(const queue_kind *kind)
{
    uint32_t parked = 0, steps[ACTS] = {0};
    for (size_t i = 0; i < (size_t)ACTS * (sizeof settings / sizeof settings[0]) * CREWS; i++) {
        act act = (enum act)(i % ACTS);
        const setting *setting = &settings[i / ACTS / CREWS];
        crew crew = (enum crew)(i / ACTS % CREWS);
        if (!can_play(kind, act, crew))
            continue;
        for (uint32_t n = 0;; n++) {
            outcome outcome = play(kind, setting, act, n, crew);
            if (outcome == HELD_UP || outcome == WRONG) {
                printf("# %s: %s, parked before step %u: %s\n", kind->name, act_names[act], n,
                       outcome == HELD_UP ? "another is held up" : "not as it should be");
                return outcome;
            }
            if (outcome == ENDED)
                break;
            parked++;
            steps[act] = n + 1 > steps[act] ? n + 1 : steps[act];
        }
    }
    printf(
        "# %s: parked %u times; at most %u steps to push, %u to pop, %u and %u many, %u to close\n",
        kind->name, parked, steps[PUSH], steps[POP], steps[PUSH_MANY], steps[POP_MANY],
        steps[CLOSE]);
    return parked != 0 ? PARKED : ENDED;
}

#endif
