/*
 * Threads that wait for a lock or sleep: each order in which they can take turns is explored once.
 */
#include "testing.h"

#include "bide/check.h"
#include "bide/check_pthread.h"
#include "bide/platform.h"

#include <string.h>

typedef struct state {
    pthread_mutex_t lock;
    pthread_cond_t condition;
    unsigned count;
    char order[16];
    bide_atomic(uint32_t) word;
    bide_atomic(uint32_t) words[3];
} state;

static void take_turn(void *p)
{
    state *s = p;
    pthread_mutex_lock(&s->lock);
    s->order[s->count++] = (char)('0' + bide_check_thread());
    pthread_mutex_unlock(&s->lock);
}

static void take_two_turns(void *p)
{
    take_turn(p);
    take_turn(p);
}

static void note_order(void *p)
{
    bide_check_note("%s", ((state *)p)->order);
}

/*
 * Explores, and expects no finding and the given number of executions, each with another order of
 * turns.
 */
static void expect_orders(bide_check_scenario scenario, unsigned orders)
{
    bide_check_result result;
    scenario.size = sizeof(state);
    scenario.finish = note_order;
    assert_int_equal(bide_check_explore(&scenario, &result), BIDE_CHECK_NOTHING);
    assert_int_equal(result.executions, orders);
    assert_int_equal(result.outcomes_count, orders);
    bide_check_result_free(&result);
}

static void each_order_of_taking_a_lock_is_run_once(void **unused)
{
    (void)unused;
    expect_orders((bide_check_scenario){.threads = {take_turn, take_turn, take_turn}}, 6);
    expect_orders((bide_check_scenario){.threads = {take_turn, take_turn, take_turn, take_turn}},
                  24);
    /* 5! / (2! 2!), and 6! / (2! 2! 2!) */
    expect_orders((bide_check_scenario){.threads = {take_two_turns, take_two_turns, take_turn}},
                  30);
    expect_orders(
        (bide_check_scenario){.threads = {take_two_turns, take_two_turns, take_two_turns}}, 90);
}

static bide_check_finding found(bide_check_scenario scenario)
{
    bide_check_result result;
    scenario.size = sizeof(state);
    bide_check_finding finding = bide_check_explore(&scenario, &result);
    bide_check_result_free(&result);
    return finding;
}

/* ---- Words ---- */

static void sleep_until_set(void *p)
{
    state *s = p;
    while (bide_atomic_load(&s->word, acquire) == 0)
        bide_platform.wait(&s->word, 0, BIDE_FOREVER);
    bide_check_assert(s->count == 1);
}

static void set_and_wake(void *p, uint32_t sleepers)
{
    state *s = p;
    s->count = 1;
    bide_atomic_store(&s->word, 1, release);
    bide_platform.wake(&s->word, sleepers);
}

static void set_and_wake_one(void *p)
{
    set_and_wake(p, 1);
}

static void set_and_wake_two(void *p)
{
    set_and_wake(p, 2);
}

static void a_wake_wakes_no_more_than_it_is_told_to(void **unused)
{
    (void)unused;
    assert_int_equal(found((bide_check_scenario){.threads = {sleep_until_set, set_and_wake_one}}),
                     BIDE_CHECK_NOTHING);
    assert_int_equal(found((bide_check_scenario){
                         .threads = {sleep_until_set, sleep_until_set, set_and_wake_two}}),
                     BIDE_CHECK_NOTHING);
    assert_int_equal(found((bide_check_scenario){
                         .threads = {sleep_until_set, sleep_until_set, set_and_wake_one}}),
                     BIDE_CHECK_DEADLOCK);
}

/* Sleeping orders nothing: a woken thread must still acquire. */
static void sleep_and_trust(void *p)
{
    state *s = p;
    while (bide_atomic_load(&s->word, relaxed) == 0)
        bide_platform.wait(&s->word, 0, BIDE_FOREVER);
    bide_check_assert(s->count == 1);
}

static void a_sleep_orders_nothing(void **unused)
{
    (void)unused;
    assert_int_equal(found((bide_check_scenario){.threads = {sleep_and_trust, set_and_wake_one}}),
                     BIDE_CHECK_RACE);
}

/* ---- Conditions ---- */

static void wait_under_the_lock(void *p)
{
    state *s = p;
    pthread_mutex_lock(&s->lock);
    while (s->count == 0)
        pthread_cond_wait(&s->condition, &s->lock);
    s->count--;
    pthread_mutex_unlock(&s->lock);
}

static void wait_without_looking_again(void *p)
{
    state *s = p;
    pthread_mutex_lock(&s->lock);
    if (s->count == 0)
        pthread_cond_wait(&s->condition, &s->lock);
    bide_check_assert(s->count != 0);
    pthread_mutex_unlock(&s->lock);
}

static void add_and_signal(state *s, unsigned count)
{
    pthread_mutex_lock(&s->lock);
    s->count += count;
    pthread_cond_signal(&s->condition);
    pthread_mutex_unlock(&s->lock);
}

static void add_one_and_signal(void *p)
{
    add_and_signal(p, 1);
}

/* One signal for two waiters. */
static void add_two_and_signal(void *p)
{
    add_and_signal(p, 2);
}

static void add_two_and_broadcast(void *p)
{
    state *s = p;
    pthread_mutex_lock(&s->lock);
    s->count += 2;
    pthread_mutex_unlock(&s->lock);
    pthread_cond_broadcast(&s->condition);
}

static void take_turn_under_the_lock(void *p)
{
    state *s = p;
    pthread_mutex_lock(&s->lock);
    pthread_mutex_unlock(&s->lock);
}

static void a_condition_wakes_whom_it_is_told_to(void **unused)
{
    (void)unused;
    assert_int_equal(
        found((bide_check_scenario){.threads = {wait_under_the_lock, add_one_and_signal}}),
        BIDE_CHECK_NOTHING);
    assert_int_equal(
        found((bide_check_scenario){
            .threads = {wait_under_the_lock, wait_under_the_lock, add_two_and_broadcast},
            .never_spurious = true}),
        BIDE_CHECK_NOTHING);
    assert_int_equal(found((bide_check_scenario){
                         .threads = {wait_under_the_lock, wait_under_the_lock, add_two_and_signal},
                         .never_spurious = true}),
                     BIDE_CHECK_DEADLOCK);
}

static void a_wait_for_a_condition_may_end_for_no_reason(void **unused)
{
    bide_check_scenario scenario = {.threads = {wait_without_looking_again, add_one_and_signal}};
    (void)unused;
    assert_int_equal(found(scenario), BIDE_CHECK_ASSERTION);
    scenario.never_spurious = true;
    assert_int_equal(found(scenario), BIDE_CHECK_NOTHING);
}

/* ---- Threads that a scenario starts ---- */

static void *add_one(void *p)
{
    ((state *)p)->count++;
    return p;
}

static void start_and_join(void *p)
{
    state *s = p;
    pthread_t thread;
    void *result;
    s->count = 1;
    bide_check_assert(pthread_create(&thread, NULL, add_one, s) == 0);
    bide_check_assert(pthread_join(thread, &result) == 0 && result == s);
    bide_check_assert(s->count == 2);
}

static void start_and_go_on(void *p)
{
    pthread_t thread;
    bide_check_assert(pthread_create(&thread, NULL, add_one, p) == 0);
    ((state *)p)->count++;
}

static void *take_turn_of_thread(void *p)
{
    take_turn(p);
    return p;
}

static void starting_and_joining_order_what_threads_do(void **unused)
{
    (void)unused;
    assert_int_equal(found((bide_check_scenario){.threads = {start_and_join}}), BIDE_CHECK_NOTHING);
    assert_int_equal(found((bide_check_scenario){.threads = {start_and_go_on}}), BIDE_CHECK_RACE);
}

static void start_two_and_join(void *p)
{
    pthread_t threads[2];
    for (unsigned i = 0; i < 2; i++)
        bide_check_assert(pthread_create(&threads[i], NULL, take_turn_of_thread, p) == 0);
    for (unsigned i = 0; i < 2; i++)
        bide_check_assert(pthread_join(threads[i], NULL) == 0);
    bide_check_assert(((state *)p)->count == 2);
}

static void start_one_and_join(void *p)
{
    pthread_t thread;
    bide_check_assert(pthread_create(&thread, NULL, take_turn_of_thread, p) == 0);
    bide_check_assert(pthread_join(thread, NULL) == 0);
}

static void *start_another(void *p)
{
    start_one_and_join(p);
    return p;
}

static void start_one_that_starts_another(void *p)
{
    pthread_t thread;
    bide_check_assert(pthread_create(&thread, NULL, start_another, p) == 0);
    take_turn(p);
    bide_check_assert(pthread_join(thread, NULL) == 0);
}

static uint64_t executions(bide_check_scenario scenario)
{
    bide_check_result result;
    scenario.size = sizeof(state);
    assert_int_equal(bide_check_explore(&scenario, &result), BIDE_CHECK_NOTHING);
    uint64_t count = result.executions;
    bide_check_result_free(&result);
    return count;
}

static void each_started_thread_is_one_of_its_own(void **unused)
{
    (void)unused;
    assert_int_equal(executions((bide_check_scenario){.threads = {start_two_and_join}}), 2);
    assert_int_equal(executions((bide_check_scenario){
                         .threads = {start_one_and_join, start_one_and_join, start_one_and_join}}),
                     6);
    assert_int_equal(executions((bide_check_scenario){.threads = {start_one_that_starts_another}}),
                     2);
}

/*
 * They run with the scenario's threads, so a thread cannot be started after these, nor joined
 * before them.
 */
static void a_thread_runs_only_beside_those_of_the_scenario(void **unused)
{
    (void)unused;
    assert_int_equal(
        found((bide_check_scenario){.threads = {take_turn}, .finish = start_one_and_join}),
        BIDE_CHECK_BAD_SCENARIO);
    assert_int_equal(
        found((bide_check_scenario){.threads = {take_turn}, .setup = start_one_and_join}),
        BIDE_CHECK_BAD_SCENARIO);
}

/* ---- The order in which a scenario names its threads ---- */

static void wake_one(void *p)
{
    bide_platform.wake(&((state *)p)->word, 1);
}

static void sleep_until_the_deadline(void *p)
{
    bide_platform.wait(&((state *)p)->word, 0, 5);
}

static void store_the_same(void *p)
{
    bide_atomic_store(&((state *)p)->word, 0, relaxed);
}

static void store_another(void *p)
{
    bide_atomic_store(&((state *)p)->word, 1, relaxed);
}

/* Every order of three threads must have the same number of executions. */
static void expect_the_same_in_every_order(void (*a)(void *), void (*b)(void *), void (*c)(void *))
{
    void (*const orders[][3])(void *) = {{a, b, c}, {a, c, b}, {b, a, c},
                                         {b, c, a}, {c, a, b}, {c, b, a}};
    uint64_t first = 0;
    for (unsigned i = 0; i < 6; i++) {
        uint64_t count = executions((bide_check_scenario){
            .threads = {orders[i][0], orders[i][1], orders[i][2]}, .never_spurious = true});
        if (i == 0)
            first = count;
        assert_int_equal(count, first);
    }
}

static void the_order_of_threads_changes_nothing(void **unused)
{
    (void)unused;
    expect_the_same_in_every_order(wake_one, sleep_until_the_deadline, store_the_same);
    expect_the_same_in_every_order(wake_one, sleep_until_the_deadline, store_another);
    expect_the_same_in_every_order(wake_one, sleep_until_the_deadline, sleep_until_the_deadline);
    expect_the_same_in_every_order(wait_under_the_lock, add_one_and_signal,
                                   take_turn_under_the_lock);
    expect_the_same_in_every_order(start_one_and_join, take_turn, take_turn);
}

/* ---- Spins ---- */

static void spin_with_two_hints(void *p)
{
    while (bide_atomic_load(&((state *)p)->word, relaxed) == 0) {
        bide_cpu_relax();
        bide_cpu_relax();
    }
}

static void a_spin_may_give_several_hints_in_a_round(void **unused)
{
    (void)unused;
    assert_int_equal(found((bide_check_scenario){.threads = {spin_with_two_hints, store_another}}),
                     BIDE_CHECK_NOTHING);
    assert_int_equal(found((bide_check_scenario){.threads = {spin_with_two_hints, store_the_same}}),
                     BIDE_CHECK_LIVELOCK);
}

static void spin_with_an_acquire_fence(void *p)
{
    while (bide_atomic_load(&((state *)p)->word, relaxed) == 0) {
        bide_atomic_fence(acquire);
        bide_cpu_relax();
    }
}

static void spin_with_a_seq_cst_fence(void *p)
{
    do {
        bide_cpu_relax();
        bide_atomic_fence(seq_cst);
    } while (bide_atomic_load(&((state *)p)->word, relaxed) == 0);
}

static void spin_on_fences(void *unused)
{
    (void)unused;
    for (;;) {
        bide_atomic_fence(seq_cst);
        bide_cpu_relax();
    }
}

static void a_spin_may_hold_a_fence(void **unused)
{
    (void)unused;
    void (*const spins[])(void *) = {spin_with_an_acquire_fence, spin_with_a_seq_cst_fence};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(found((bide_check_scenario){.threads = {spins[i], store_another}}),
                         BIDE_CHECK_NOTHING);
        assert_int_equal(found((bide_check_scenario){.threads = {store_another, spins[i]}}),
                         BIDE_CHECK_NOTHING);
        assert_int_equal(found((bide_check_scenario){.threads = {spins[i], store_the_same}}),
                         BIDE_CHECK_LIVELOCK);
    }
    assert_int_equal(found((bide_check_scenario){.threads = {spin_on_fences, store_another}}),
                     BIDE_CHECK_LIVELOCK);
}

/* Reads several words, one after the other. */
static void spin_on_words(state *s, unsigned count)
{
    for (unsigned i = 0; bide_atomic_load(&s->words[i % count], relaxed) == 0; i++)
        bide_cpu_relax();
}

static void spin_on_two_words(void *p)
{
    spin_on_words(p, 2);
}

static void spin_on_three_words(void *p)
{
    spin_on_words(p, 3);
}

static void set_word_0(void *p)
{
    bide_atomic_store(&((state *)p)->words[0], 1, relaxed);
}

static void set_word_1(void *p)
{
    bide_atomic_store(&((state *)p)->words[1], 1, relaxed);
}

static void set_word_2(void *p)
{
    bide_atomic_store(&((state *)p)->words[2], 1, relaxed);
}

static void a_spin_may_look_at_several_words_by_turns(void **unused)
{
    (void)unused;
    void (*const sets[])(void *) = {set_word_0, set_word_1, set_word_2};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(found((bide_check_scenario){.threads = {spin_on_two_words, sets[i]}}),
                         i < 2 ? BIDE_CHECK_NOTHING : BIDE_CHECK_LIVELOCK);
        assert_int_equal(found((bide_check_scenario){.threads = {sets[i], spin_on_three_words}}),
                         BIDE_CHECK_NOTHING);
    }
    assert_int_equal(
        found((bide_check_scenario){.threads = {spin_on_two_words, set_word_0, set_word_1}}),
        BIDE_CHECK_NOTHING);
    assert_int_equal(found((bide_check_scenario){.threads = {spin_on_three_words}}),
                     BIDE_CHECK_LIVELOCK);
}

/* Gives up, which is no livelock, but no execution would show its further actions. */
static void spin_for_a_while(void *p)
{
    for (unsigned i = 0; i < 100; i++) {
        if (bide_atomic_load(&((state *)p)->word, relaxed) != 0)
            return;
        bide_cpu_relax();
    }
    bide_check_assert(false);
}

static void spin_for_a_while_and_end(void *p)
{
    for (unsigned i = 0; i < 3 && bide_atomic_load(&((state *)p)->word, relaxed) == 0; i++)
        bide_cpu_relax();
}

static void spin_for_a_while_and_sleep(void *p)
{
    state *s = p;
    for (unsigned i = 0; bide_atomic_load(&s->word, relaxed) == 0; i++) {
        if (i < 10)
            bide_cpu_relax();
        else
            bide_platform.wait(&s->word, 0, BIDE_FOREVER);
    }
}

static void spin_until_a_time(void *p)
{
    while (bide_atomic_load(&((state *)p)->word, relaxed) == 0 && bide_platform.now() < 1000)
        bide_cpu_relax();
}

static void look_once(void *p)
{
    if (bide_atomic_load(&((state *)p)->word, relaxed) == 0)
        bide_cpu_relax();
}

static void a_spin_that_gives_up_is_told(void **unused)
{
    (void)unused;
    void (*const spins[])(void *) = {spin_for_a_while, spin_for_a_while_and_end,
                                     spin_for_a_while_and_sleep, spin_until_a_time};
    for (size_t i = 0; i < sizeof spins / sizeof *spins; i++) {
        assert_int_equal(found((bide_check_scenario){.threads = {spins[i], set_and_wake_one}}),
                         BIDE_CHECK_BAD_SCENARIO);
        assert_int_equal(found((bide_check_scenario){.threads = {set_and_wake_one, spins[i]}}),
                         BIDE_CHECK_BAD_SCENARIO);
    }
    assert_int_equal(found((bide_check_scenario){.threads = {look_once, set_and_wake_one}}),
                     BIDE_CHECK_NOTHING);
}

/* The message contains the place and the number of rounds. */
static void what_a_spin_that_gives_up_looked_at_is_told(void **unused)
{
    (void)unused;
    bide_check_scenario scenario = {
        .name = "bounded", .size = sizeof(state), .threads = {spin_for_a_while, store_another}};
    bide_check_result r;
    assert_int_equal(bide_check_explore(&scenario, &r), BIDE_CHECK_BAD_SCENARIO);
    assert_non_null(strstr(r.message, "thread 1 gives up a loop after 98 more rounds that read the "
                                      "same, at "));
    bide_check_result_free(&r);
}

/* ---- A bound of preemptions ---- */

static void add_one_and_two(void *p)
{
    state *s = p;
    uint32_t first = bide_atomic_fetch_add(&s->word, 1, relaxed);
    uint32_t second = bide_atomic_fetch_add(&s->word, 2, relaxed);
    bide_check_note("a=%u b=%u", first, second);
}

static void add_four_and_eight(void *p)
{
    state *s = p;
    uint32_t first = bide_atomic_fetch_add(&s->word, 4, relaxed);
    uint32_t second = bide_atomic_fetch_add(&s->word, 8, relaxed);
    bide_check_note("c=%u d=%u", first, second);
}

static void store_64(void *p)
{
    bide_atomic_store(&((state *)p)->word, 64, relaxed);
}

static void note_word(void *p)
{
    bide_check_note("x=%u", bide_atomic_load(&((state *)p)->word, relaxed));
}

static bool has_values(const char *outcome)
{
    return strstr(outcome, "a=0 b=5") != NULL && strstr(outcome, "c=1 d=64") != NULL &&
           strstr(outcome, "x=72") != NULL;
}

/* A schedule: the store; a; preempted, c; b; then d. */
static void what_needs_one_preemption_is_found_with_one(void **unused)
{
    bide_check_scenario scenario = {.size = sizeof(state),
                                    .threads = {add_one_and_two, add_four_and_eight, store_64},
                                    .finish = note_word,
                                    .preemptions = 1};
    bide_check_result result;
    bool is_found = false;
    (void)unused;
    assert_int_equal(bide_check_explore(&scenario, &result), BIDE_CHECK_NOTHING);
    for (size_t i = 0; i < result.outcomes_count; i++)
        is_found = is_found || has_values(result.outcomes[i]);
    bide_check_result_free(&result);
    assert_true(is_found);
}

/* ---- Memory that is initialised again ---- */

typedef struct counter {
    bide_atomic(uint32_t) word;
} counter;

/* Without bide_atomic_init: a plain write makes a new object too. */
static void use_two_counters_in_one_place(void *p)
{
    (void)p;
    for (unsigned i = 1; i <= 2; i++) {
        counter c = {i * 10};
        bide_check_assert(bide_atomic_load(&c.word, relaxed) == i * 10);
        bide_atomic_store(&c.word, i, relaxed);
        bide_check_assert(bide_atomic_load(&c.word, relaxed) == i);
    }
}

/* Its first value depends on an earlier read. */
static void set_word(void *p)
{
    bide_atomic_store(&((state *)p)->word, 7, relaxed);
}

static void begin_with_what_is_read(void *p)
{
    counter c = {bide_atomic_load(&((state *)p)->word, relaxed)};
    bide_check_note("%u", bide_atomic_load(&c.word, relaxed));
}

static void memory_that_is_written_plainly_is_a_new_object(void **unused)
{
    (void)unused;
    assert_int_equal(found((bide_check_scenario){.threads = {use_two_counters_in_one_place,
                                                             use_two_counters_in_one_place}}),
                     BIDE_CHECK_NOTHING);

    bide_check_scenario scenario = {.size = sizeof(state),
                                    .threads = {set_word, begin_with_what_is_read}};
    bide_check_result result;
    assert_int_equal(bide_check_explore(&scenario, &result), BIDE_CHECK_NOTHING);
    assert_int_equal(result.outcomes_count, 2);
    assert_string_equal(result.outcomes[0], "0");
    assert_string_equal(result.outcomes[1], "7");
    bide_check_result_free(&result);
}

/* ---- Loops of compare-exchanges ---- */

static bool says_retry;

/* Appends the thread's number, in decimal, and notes the previous value. */
static void append(void *p)
{
    state *s = p;
    uint32_t word = bide_atomic_load(&s->word, relaxed);
    while (!bide_atomic_compare_exchange(&s->word, &word, word * 10 + bide_check_thread(), relaxed,
                                         relaxed)) {
        if (says_retry)
            bide_atomic_retry();
    }
}

static void append_twice(void *p)
{
    append(p);
    append(p);
}

static void a_retry_gives_up_executions_but_no_outcome(void **unused)
{
    (void)unused;
    bide_check_scenario scenario = {.size = sizeof(state),
                                    .threads = {append_twice, append_twice, append},
                                    .finish = note_word};
    bide_check_result result;
    says_retry = false;
    assert_int_equal(bide_check_explore(&scenario, &result), BIDE_CHECK_NOTHING);
    assert_int_equal(result.outcomes_count, 30); /* 5! / (2! 2!) */
    assert_true(result.executions > 30);
    bide_check_result_free(&result);
    says_retry = true;
    assert_int_equal(bide_check_explore(&scenario, &result), BIDE_CHECK_NOTHING);
    assert_int_equal(result.outcomes_count, 30);
    assert_int_equal(result.executions, 30);
    bide_check_result_free(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_order_of_taking_a_lock_is_run_once),
        cmocka_unit_test(a_wake_wakes_no_more_than_it_is_told_to),
        cmocka_unit_test(a_sleep_orders_nothing),
        cmocka_unit_test(a_condition_wakes_whom_it_is_told_to),
        cmocka_unit_test(a_wait_for_a_condition_may_end_for_no_reason),
        cmocka_unit_test(starting_and_joining_order_what_threads_do),
        cmocka_unit_test(each_started_thread_is_one_of_its_own),
        cmocka_unit_test(a_thread_runs_only_beside_those_of_the_scenario),
        cmocka_unit_test(the_order_of_threads_changes_nothing),
        cmocka_unit_test(a_spin_may_give_several_hints_in_a_round),
        cmocka_unit_test(a_spin_may_hold_a_fence),
        cmocka_unit_test(a_spin_may_look_at_several_words_by_turns),
        cmocka_unit_test(a_spin_that_gives_up_is_told),
        cmocka_unit_test(what_a_spin_that_gives_up_looked_at_is_told),
        cmocka_unit_test(what_needs_one_preemption_is_found_with_one),
        cmocka_unit_test(memory_that_is_written_plainly_is_a_new_object),
        cmocka_unit_test(a_retry_gives_up_executions_but_no_outcome),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
