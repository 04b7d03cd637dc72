/*
 * Equal threads: of the executions that differ in which of them did what, one is explored where threads store in turn,
 * and nothing is lost. Random programs are explored with and without `symmetric`: the outcomes are the same if what
 * equal threads have done is put in order.
 */
#include "testing.h"

#include "ticket_lock.h"

#include "bide/check.h"
#include "bide/check_pthread.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#if !defined __clang__ && __GNUC__ >= 11
#pragma GCC diagnostic ignored "-Wtsan" /* the checker supports fences */
#endif

enum { SLOTS = BIDE_CHECK_THREADS + 1, LOCATIONS = 3, STEPS = 4 };

typedef struct node {
    _Atomic(struct node *) next;
    int value;
} node;

typedef struct state {
    ticket_lock ticket;
    atomic_int objects[LOCATIONS];
    _Atomic(node *) top;
    int plain;
    pthread_mutex_t mutex;
    atomic_int results[SLOTS];
} state;

/* ---- One execution for each way in which threads differ ---- */

static void take_mutex(void *p)
{
    state *s = p;
    pthread_mutex_lock(&s->mutex);
    order_is(s);
    pthread_mutex_unlock(&s->mutex);
}

/* Each node is initialised in the thread's own heap, before it is shared. */
static void push(void *p)
{
    state *s = p;
    node *mine = bide_check_alloc(sizeof *mine);
    mine->value = 1;
    node *top = atomic_load_explicit(&s->top, memory_order_relaxed);
    for (;;) {
        atomic_store_explicit(&mine->next, top, memory_order_relaxed);
        if (atomic_compare_exchange_strong_explicit(&s->top, &top, mine, memory_order_release,
                                                    memory_order_relaxed))
            return;
        bide_atomic_retry();
    }
}

static void free_nodes(void *p)
{
    node *top = ((state *)p)->top;
    int count = 0;
    while (top != NULL) {
        node *next = top->next;
        count += top->value;
        bide_check_free(top);
        top = next;
    }
    bide_check_note("%d", count);
}

static void make_mutex(void *p)
{
    pthread_mutex_init(&((state *)p)->mutex, NULL);
}

static void end_mutex(void *p)
{
    pthread_mutex_destroy(&((state *)p)->mutex);
}

static const struct {
    const char *name;
    void (*function)(void *);
    void (*setup)(void *);
    void (*finish)(void *);
    unsigned threads;
    uint64_t all, symmetric; /* executions */
} counted[] = {
    {"ticket lock", take_ticket_lock, NULL, note_order, 3, 6, 1},
    {"ticket lock", take_ticket_lock, NULL, note_order, 4, 24, 1},
    {"ticket lock twice", take_ticket_lock_twice, NULL, note_order, 3, 90, 15},
    {"ticket lock twice", take_ticket_lock_twice, NULL, note_order, 4, 2520, 105},
    {"mutex", take_mutex, make_mutex, end_mutex, 4, 24, 1},
    {"push", push, NULL, free_nodes, 4, 0, 1},
};

static bide_check_scenario scenario_of(void (*function)(void *), unsigned threads)
{
    bide_check_scenario s = {.name = "equal threads", .size = sizeof(state)};
    for (unsigned t = 0; t < threads; t++)
        s.threads[t] = function;
    return s;
}

static void threads_that_store_in_turn_do_so_in_one_order(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
        bide_check_scenario s = scenario_of(counted[i].function, counted[i].threads);
        bide_check_result all, some;
        s.setup = counted[i].setup;
        s.finish = counted[i].finish;
        bide_check_explore(&s, &all);
        s.symmetric = true;
        bide_check_explore(&s, &some);
        printf("# %s, %u: %" PRIu64 " executions and %" PRIu64 " given up, symmetric %" PRIu64
               " and %" PRIu64 "\n",
               counted[i].name, counted[i].threads, all.executions, all.blocked, some.executions,
               some.blocked);
        assert_int_equal(all.finding, BIDE_CHECK_NOTHING);
        assert_int_equal(some.finding, BIDE_CHECK_NOTHING);
        if (__asan_init == NULL && counted[i].all != 0)
            assert_int_equal(all.executions, counted[i].all);
        if (__asan_init == NULL)
            assert_int_equal(some.executions, counted[i].symmetric);
        assert_true(some.executions <= all.executions);
        bide_check_result_free(&all);
        bide_check_result_free(&some);
    }
}

/* ---- Faults are found ---- */

static void take_broken_lock(void *p)
{
    state *s = p;
    while (atomic_load_explicit(&s->ticket.owner, memory_order_acquire) != 0)
        bide_cpu_relax();
    atomic_store_explicit(&s->ticket.owner, 1, memory_order_relaxed);
    order_is(s);
    atomic_store_explicit(&s->ticket.owner, 0, memory_order_release);
}

static void take_relaxed_ticket(void *p)
{
    state *s = p;
    int ticket = atomic_fetch_add_explicit(&s->ticket.next, 1, memory_order_relaxed);
    while (atomic_load_explicit(&s->ticket.owner, memory_order_relaxed) != ticket) {
    }
    order_is(s);
    atomic_store_explicit(&s->ticket.owner, ticket + 1, memory_order_release);
}

/* Only the thread that comes last has this. */
static void one_has_seen_two(void *p)
{
    int before = atomic_fetch_add_explicit(&((state *)p)->ticket.next, 1, memory_order_relaxed);
    bide_check_assert(before != 2);
}

/* Threads whose compare-exchange has failed, and which store nothing: one of them waits for ever. */
static void try_and_wait(void *p)
{
    state *s = p;
    int zero = 0;
    if (atomic_compare_exchange_strong_explicit(&s->ticket.next, &zero, 1, memory_order_relaxed,
                                                memory_order_relaxed))
        return;
    while (atomic_load_explicit(&s->ticket.owner, memory_order_relaxed) == 0) {
    }
}

/* The same without a thread that succeeds. */
static void fail_and_wait(void *p)
{
    state *s = p;
    int two = 2;
    atomic_compare_exchange_strong_explicit(&s->ticket.next, &two, 1, memory_order_relaxed,
                                            memory_order_relaxed);
    while (atomic_load_explicit(&s->ticket.owner, memory_order_relaxed) == 0) {
    }
}

/* Two that have failed write, and nothing orders them. */
static void fail_and_write(void *p)
{
    state *s = p;
    int two = 2;
    atomic_compare_exchange_strong_explicit(&s->ticket.next, &two, 1, memory_order_relaxed,
                                            memory_order_relaxed);
    s->plain++;
}

static void lock_and_keep(void *p)
{
    pthread_mutex_lock(&((state *)p)->mutex);
    ((state *)p)->plain = 1;
    pthread_mutex_unlock(&((state *)p)->mutex);
}

static void keep(void *p)
{
    state *s = p;
    if (atomic_fetch_add_explicit(&s->ticket.next, 1, memory_order_relaxed) == 2)
        pthread_mutex_unlock(&s->mutex);
    lock_and_keep(s);
}

static const struct {
    const char *name;
    void (*function)(void *);
    void (*setup)(void *);
    bide_check_finding finding;
} faults[] = {
    {"a lock that is no lock", take_broken_lock, NULL, BIDE_CHECK_RACE},
    {"a relaxed ticket lock", take_relaxed_ticket, NULL, BIDE_CHECK_RACE},
    {"the last of three", one_has_seen_two, NULL, BIDE_CHECK_ASSERTION},
    {"all wait but one", try_and_wait, NULL, BIDE_CHECK_LIVELOCK},
    {"all wait", fail_and_wait, NULL, BIDE_CHECK_LIVELOCK},
    {"none has stored", fail_and_write, NULL, BIDE_CHECK_RACE},
    {"the last unlocks what it does not hold", keep, make_mutex, BIDE_CHECK_MISUSE},
};

static void faults_are_found_and_replayed(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        bide_check_scenario s = scenario_of(faults[i].function, 3);
        bide_check_result all, r, replayed;
        s.setup = faults[i].setup;
        bide_check_explore(&s, &all);
        s.symmetric = true;
        bide_check_explore(&s, &r);
        printf("# %s: %s\n", faults[i].name, r.message);
        assert_int_equal(all.finding, faults[i].finding);
        assert_int_equal(r.finding, faults[i].finding);
        bide_check_replay(&s, r.replay, &replayed);
        if (replayed.finding != r.finding)
            printf("# replay %s: %s\n%s", r.replay, replayed.message, r.trace);
        assert_int_equal(replayed.finding, faults[i].finding);
        assert_string_equal(replayed.message, r.message);
        bide_check_result_free(&all);
        bide_check_result_free(&r);
        bide_check_result_free(&replayed);
    }
}

static void *do_nothing(void *p)
{
    return p;
}

static void start_another(void *p)
{
    pthread_t thread;
    (void)p;
    if (pthread_create(&thread, NULL, do_nothing, NULL) == 0)
        pthread_join(thread, NULL);
}

static void an_equal_thread_that_starts_another_is_refused(void **unused)
{
    (void)unused;
    bide_check_scenario s = scenario_of(start_another, 2);
    bide_check_result r;
    s.symmetric = true;
    bide_check_explore(&s, &r);
    assert_int_equal(r.finding, BIDE_CHECK_BAD_SCENARIO);
    assert_string_equal(r.message, "a thread that has an equal one starts another");
    bide_check_result_free(&r);
    /* without an equal one it may */
    s.threads[1] = one_has_seen_two;
    bide_check_explore(&s, &r);
    assert_int_equal(r.finding, BIDE_CHECK_NOTHING);
    bide_check_result_free(&r);
}

static void end_if_first(void *p)
{
    if (bide_check_thread() == 1)
        return;
    atomic_fetch_add(&((state *)p)->ticket.next, 1);
    bide_check_assert(false);
}

static void threads_that_are_not_equal_are_refused(void **unused)
{
    (void)unused;
    bide_check_scenario s = scenario_of(end_if_first, 2);
    bide_check_result r;
    s.symmetric = true;
    bide_check_explore(&s, &r);
    assert_int_equal(r.finding, BIDE_CHECK_BAD_SCENARIO);
    assert_string_equal(r.message, "the threads are not equal");
    bide_check_result_free(&r);
    s.symmetric = false;
    bide_check_explore(&s, &r);
    assert_int_equal(r.finding, BIDE_CHECK_ASSERTION);
    bide_check_result_free(&r);
}

/* ---- Random programs ---- */

typedef enum kind {
    LOADS,
    STORES,
    ADDS,
    EXCHANGES,
    TRIES,  /* to set it, once */
    CLAIMS, /* until it is set */
    AWAITS,
    FENCES,
    SKIPS, /* the rest, if it has a value */
    LOCKS, /* and writes */
    WRITES,
    KINDS
} kind;

typedef struct step {
    kind kind;
    int location, value;
    memory_order order; /* of a load, of a read-modify-write; stores have the releasing part */
} step;

/* That of the equal threads, and that of the others. */
static struct {
    step steps[2][STEPS];
    unsigned lengths[2];
} program;

static int take_step(state *s, const step *step, bool *ends)
{
    atomic_int *object = &s->objects[step->location];
    memory_order load = step->order == memory_order_acq_rel   ? memory_order_acquire
                        : step->order == memory_order_release ? memory_order_relaxed
                                                              : step->order;
    memory_order store = step->order == memory_order_acq_rel   ? memory_order_release
                         : step->order == memory_order_acquire ? memory_order_relaxed
                                                               : step->order;
    int seen = 0;
    switch (step->kind) {
    case LOADS:
        return atomic_load_explicit(object, load);
    case STORES:
        atomic_store_explicit(object, step->value, store);
        return 0;
    case ADDS:
        return atomic_fetch_add_explicit(object, step->value, step->order);
    case EXCHANGES:
        return atomic_exchange_explicit(object, step->value, step->order);
    case TRIES:
        atomic_compare_exchange_strong_explicit(object, &seen, 1 + step->value, step->order, load);
        return seen;
    case CLAIMS:
        while (!atomic_compare_exchange_strong_explicit(object, &seen, 1, step->order, load))
            seen = 0;
        return 0;
    case AWAITS:
        while (atomic_load_explicit(object, load) != step->value) {
        }
        return 0;
    case FENCES:
        atomic_thread_fence(step->order);
        return 0;
    case SKIPS:
        *ends = atomic_load_explicit(object, load) == step->value;
        return *ends;
    case LOCKS:
        take_mutex(s);
        return 0;
    default:
        s->plain = 1;
        return 0;
    }
}

static void run_program(state *s, unsigned which)
{
    int sum = 0;
    bool ends = false;
    for (unsigned i = 0; i < program.lengths[which] && !ends; i++)
        sum = sum * 5 + take_step(s, &program.steps[which][i], &ends);
    atomic_store_explicit(&s->results[bide_check_thread()], sum, memory_order_relaxed);
}

static void run_equal(void *p)
{
    run_program(p, 0);
}

static void run_other(void *p)
{
    run_program(p, 1);
}

static unsigned equal_count, other_first;

/* Notes the outcome without the numbers of equal threads: their results in order. */
static void note_outcome(void *p)
{
    state *s = p;
    int results[SLOTS];
    unsigned count = 0;
    for (unsigned i = 0; i < equal_count; i++) {
        int result = s->results[1 + other_first + i];
        unsigned k = count++;
        for (; k > 0 && results[k - 1] > result; k--)
            results[k] = results[k - 1];
        results[k] = result;
    }
    for (unsigned i = 0; i < count; i++)
        bide_check_note("%d", results[i]);
    for (unsigned i = 0; i < LOCATIONS; i++)
        bide_check_note("%d", s->objects[i]);
    bide_check_note("%d", s->results[other_first ? 1 : 1 + equal_count]);
    pthread_mutex_destroy(&s->mutex);
}

static unsigned below(uint64_t *random, unsigned count)
{
    return (unsigned)(testing_random(random) % count);
}

static void make_program(uint64_t *random, unsigned threads)
{
    static const memory_order orders[] = {
        memory_order_relaxed, memory_order_relaxed, memory_order_acq_rel, memory_order_acq_rel,
        memory_order_acquire, memory_order_release, memory_order_seq_cst};
    unsigned locations = 1 + below(random, LOCATIONS);
    for (unsigned which = 0; which < 2; which++) {
        program.lengths[which] = 1 + below(random, threads == 2 ? STEPS : STEPS - 1);
        for (unsigned i = 0; i < program.lengths[which]; i++) {
            unsigned k = below(random, 40);
            program.steps[which][i] = (step){
                .kind = k == 0  ? WRITES
                        : k < 3 ? LOCKS
                                : (kind)below(random, LOCKS),
                .location = (int)below(random, locations),
                .value = (int)below(random, 3),
                .order = orders[below(random, sizeof orders / sizeof *orders)],
            };
        }
    }
}

static void print_program(unsigned round, const bide_check_result *all,
                          const bide_check_result *some)
{
    printf("# program %u, %u equal threads, other first: %u\n", round, equal_count, other_first);
    for (unsigned which = 0; which < 2; which++) {
        for (unsigned i = 0; i < program.lengths[which]; i++) {
            const step *s = &program.steps[which][i];
            printf("#   %u: kind %d, location %d, value %d, order %d\n", which, s->kind,
                   s->location, s->value, s->order);
        }
    }
    printf("# %s, %zu outcomes; symmetric %s, %zu\n", bide_check_finding_name(all->finding),
           all->outcomes_count, bide_check_finding_name(some->finding), some->outcomes_count);
    for (size_t i = 0; i < all->outcomes_count; i++)
        printf("#   %s\n", all->outcomes[i]);
    for (size_t i = 0; i < some->outcomes_count; i++)
        printf("#   symmetric %s\n", some->outcomes[i]);
}

/*
 * A symmetric exploration ends before the whole one, has its outcomes, and finds a fault if that does. The whole one may
 * come to a fault early, while the symmetric one reaches its limit before: then they are not compared.
 */
static bool agree(const bide_check_result *all, const bide_check_result *some)
{
    bool found = all->finding != BIDE_CHECK_NOTHING;
    if (found && some->is_unfinished)
        return true;
    if (some->is_unfinished || found != (some->finding != BIDE_CHECK_NOTHING))
        return false;
    if (found)
        return true;
    if (some->executions > all->executions || some->outcomes_count != all->outcomes_count)
        return false;
    for (size_t i = 0; i < all->outcomes_count; i++) {
        if (strcmp(all->outcomes[i], some->outcomes[i]) != 0)
            return false;
    }
    return true;
}

static void nothing_is_lost_in_random_programs(void **unused)
{
    (void)unused;
    uint64_t random = testing_seed(), before = 0, after = 0;
    unsigned compared = 0, found = 0, rounds = rounds_of(__asan_init == NULL ? 1200 : 100);
    for (unsigned i = 0; i < rounds; i++) {
        equal_count = 2 + below(&random, 2);
        other_first = below(&random, 2);
        bool has_other = below(&random, 2) != 0;
        make_program(&random, equal_count + has_other);
        bide_check_scenario s = {.name = "random",
                                 .size = sizeof(state),
                                 .setup = make_mutex,
                                 .finish = note_outcome,
                                 .max_executions = 20000};
        other_first = has_other && other_first;
        for (unsigned t = 0; t < equal_count + has_other; t++)
            s.threads[t] = t - other_first < equal_count ? run_equal : run_other;
        bide_check_result all, some;
        bide_check_explore(&s, &all);
        s.symmetric = true;
        s.max_executions = 40000;
        bide_check_explore(&s, &some);
        if (!all.is_unfinished) {
            compared++;
            found += all.finding != BIDE_CHECK_NOTHING;
            before += all.finding == BIDE_CHECK_NOTHING ? all.executions : 0;
            after += all.finding == BIDE_CHECK_NOTHING ? some.executions : 0;
            if (!agree(&all, &some)) {
                print_program(i, &all, &some);
                fail();
            }
        }
        bide_check_result_free(&all);
        bide_check_result_free(&some);
    }
    printf("# %u of %u programs compared, %u with a fault; %" PRIu64
           " executions of the others, %" PRIu64 " if equal threads are\n",
           compared, rounds, found, before, after);
    assert_true(compared != 0);
    assert_true(after <= before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_that_store_in_turn_do_so_in_one_order),
        cmocka_unit_test(faults_are_found_and_replayed),
        cmocka_unit_test(an_equal_thread_that_starts_another_is_refused),
        cmocka_unit_test(threads_that_are_not_equal_are_refused),
        cmocka_unit_test(nothing_is_lost_in_random_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
