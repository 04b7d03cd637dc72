/*
 * The checker itself: the executions that it explores and counts, its messages, and the exact
 * replay of each finding. seeded_check tests that it finds bugs.
 */
#define _GNU_SOURCE
#include "seeded.h"

#include "bide/check_pthread.h"
#include "bide/coroutine.h"
#include "bide/event.h"
#include "bide/platform.h"
#include "bide/task.h"

#include "testing.h"

#include "../../src/check/junit.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct state {
    bide_atomic(uint32_t) x, y;
    bide_event event;
    uint32_t read[2], seen[3];
    void *block;
} state;

#define SCENARIO(id, ...) \
    static const bide_check_scenario id = {.name = #id, .size = sizeof(state), __VA_ARGS__}

/* ---- Replaying ---- */

/* Each line of `folded`, but those that stand for others, is in `all`, in the same order. */
static void assert_lines_are_in(const char *folded, const char *all)
{
    for (const char *line = folded, *end; *line != '\0'; line = end + 1) {
        end = strchr(line, '\n');
        assert_non_null(end);
        if (strncmp(line, "      (steps ", 13) == 0)
            continue;
        size_t length = (size_t)(end - line) + 1;
        while (*all != '\0' && strncmp(all, line, length) != 0)
            all = strchr(all, '\n') + 1;
        assert_true(*all != '\0');
    }
}

static unsigned lines_in(const char *text)
{
    unsigned count = 0;
    for (; (text = strchr(text, '\n')) != NULL; text++)
        count++;
    return count;
}

/* `b` is a replay of `a`. */
static void assert_same(const bide_check_result *a, const bide_check_result *b)
{
    assert_int_equal(a->finding, b->finding);
    assert_string_equal(a->message, b->message);
    assert_lines_are_in(a->trace, b->trace);
    assert_string_equal(a->replay, b->replay);
    if (strstr(a->trace, "      (steps ") == NULL)
        assert_string_equal(a->trace, b->trace);
}

static void every_finding_is_found_again_by_its_text(void **unused)
{
    (void)unused;
    const bide_check_scenario *all[MAX_SEEDED];
    seeded_all(all);
    unsigned replayed = 0;
    for (size_t i = 0; all[i] != NULL; i++) {
        bide_check_result found, again;
        assert_int_equal(bide_check_explore(all[i], &found), all[i]->expected);
        if (found.finding == BIDE_CHECK_NOTHING) {
            assert_null(found.message);
            assert_null(found.trace);
            assert_null(found.replay);
        } else if (found.finding != BIDE_CHECK_BAD_SCENARIO) { /* that cannot be repeated */
            print_message("%s: %s\n", all[i]->name, found.replay);
            bide_check_replay(all[i], found.replay, &again);
            assert_same(&found, &again);
            bide_check_result_free(&again);
            replayed++;
        }
        bide_check_result_free(&found);
    }
    assert_true(replayed > 20);
}

static void every_finding_is_found_with_one_preemption_and_found_again(void **unused)
{
    (void)unused;
    const bide_check_scenario *all[MAX_SEEDED];
    seeded_all(all);
    for (size_t i = 0; all[i] != NULL; i++) {
        for (unsigned preemptions = 1; preemptions <= 2; preemptions++) {
            bide_check_scenario s = *all[i];
            s.preemptions = preemptions;
            bide_check_result found, again;
            assert_int_equal(bide_check_explore(&s, &found), s.expected);
            if (found.replay != NULL && found.finding != BIDE_CHECK_BAD_SCENARIO) {
                bide_check_replay(&s, found.replay, &again);
                assert_same(&found, &again);
                bide_check_result_free(&again);
            }
            bide_check_result_free(&found);
        }
    }
}

/* The plain accesses of threads without steps keep their order. */
static void write_block(void *p)
{
    ((state *)p)->block = p;
}

static void load_and_write_block(void *p)
{
    (void)bide_atomic_load(&((state *)p)->x, relaxed);
    ((state *)p)->block = NULL;
}

static void a_race_of_threads_without_steps_is_found_again(void **unused)
{
    (void)unused;
    SCENARIO(no_steps, .threads = {write_block, write_block});
    SCENARIO(no_steps_and_one, .threads = {write_block, load_and_write_block});
    const bide_check_scenario *all[] = {&no_steps, &no_steps_and_one};
    for (size_t i = 0; i < 2; i++) {
        bide_check_result found, again;
        assert_int_equal(bide_check_explore(all[i], &found), BIDE_CHECK_RACE);
        bide_check_replay(all[i], found.replay, &again);
        assert_same(&found, &again);
        bide_check_result_free(&found);
        bide_check_result_free(&again);
    }
}

/* With locks, conditions and created threads too. */
typedef struct locked {
    pthread_mutex_t first, second;
    pthread_cond_t condition;
    int number;
} locked;

static void lock_in_order(void *p)
{
    locked *l = p;
    pthread_mutex_lock(&l->first);
    pthread_mutex_lock(&l->second);
    pthread_mutex_unlock(&l->second);
    pthread_mutex_unlock(&l->first);
}

static void lock_crosswise(void *p)
{
    locked *l = p;
    pthread_mutex_lock(&l->second);
    pthread_mutex_lock(&l->first);
    pthread_mutex_unlock(&l->first);
    pthread_mutex_unlock(&l->second);
}

static void signal_once(void *p)
{
    pthread_cond_signal(&((locked *)p)->condition);
}

static void wait_once(void *p)
{
    locked *l = p;
    pthread_mutex_lock(&l->first);
    pthread_cond_wait(&l->condition, &l->first);
    pthread_mutex_unlock(&l->first);
}

static void *write_number(void *p)
{
    ((locked *)p)->number = 1;
    return p;
}

static void write_beside_another(void *p)
{
    locked *l = p;
    pthread_t thread;
    bide_check_assert(pthread_create(&thread, NULL, write_number, l) == 0);
    l->number = 2;
    pthread_join(thread, NULL);
}

static void locks_conditions_and_threads_are_found_again(void **unused)
{
    (void)unused;
    static const struct {
        bide_check_scenario scenario;
        bide_check_finding finding;
    } all[] = {
        {{.name = "crosswise", .threads = {lock_in_order, lock_crosswise}}, BIDE_CHECK_DEADLOCK},
        {{.name = "signal_lost", .threads = {signal_once, wait_once}}, BIDE_CHECK_DEADLOCK},
        {{.name = "created", .threads = {write_beside_another}}, BIDE_CHECK_RACE},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bide_check_scenario s = all[i].scenario;
        s.size = sizeof(locked);
        bide_check_result found, again;
        assert_int_equal(bide_check_explore(&s, &found), all[i].finding);
        print_message("%s: %s\n", s.name, found.replay);
        bide_check_replay(&s, found.replay, &again);
        assert_same(&found, &again);
        bide_check_result_free(&found);
        bide_check_result_free(&again);
    }
}

/*
 * Thread 1 waits for the lock while thread 2 holds it, and does not continue. The finding is thread
 * 2's, after its unlock. In a run along the graph, thread 1 does not get its turn before that.
 */
typedef struct passing {
    pthread_mutex_t lock;
    bide_atomic(uint32_t) x;
    int taken;
} passing;

static void take_lock(void *p)
{
    passing *s = p;
    pthread_mutex_lock(&s->lock);
    s->taken = 1;
    pthread_mutex_unlock(&s->lock);
}

static void be_first_and_load_x(void *p)
{
    passing *s = p;
    pthread_mutex_lock(&s->lock);
    bool is_first = s->taken == 0;
    pthread_mutex_unlock(&s->lock);
    if (is_first)
        bide_check_assert(bide_atomic_load(&s->x, relaxed) == 0);
}

static void store_x(void *p)
{
    bide_atomic_store(&((passing *)p)->x, 1, relaxed);
}

static void who_waits_for_what_has_come_is_left_there_again(void **unused)
{
    (void)unused;
    static const bide_check_scenario left_waiting = {
        .name = "left_waiting",
        .size = sizeof(passing),
        .threads = {take_lock, be_first_and_load_x, store_x}};
    bide_check_result found, again;
    assert_int_equal(bide_check_explore(&left_waiting, &found), BIDE_CHECK_ASSERTION);
    print_message("%s\n", found.replay);
    assert_non_null(strstr(found.trace, "it waits for another value"));
    bide_check_replay(&left_waiting, found.replay, &again);
    assert_same(&found, &again);
    bide_check_result_free(&found);
    bide_check_result_free(&again);
}

/* ---- Invalid texts ---- */

static void store_x_load_y(void *p)
{
    state *s = p;
    bide_atomic_store(&s->x, 1, relaxed);
    s->read[0] = bide_atomic_load(&s->y, relaxed);
}

static void store_y_load_x(void *p)
{
    state *s = p;
    bide_atomic_store(&s->y, 1, relaxed);
    s->read[1] = bide_atomic_load(&s->x, relaxed);
}

static void note_both(void *p)
{
    state *s = p;
    bide_check_note("%u%u", s->read[0], s->read[1]);
}

SCENARIO(store_buffering, .threads = {store_x_load_y, store_y_load_x}, .finish = note_both);

static void fence_and_choose(void *p)
{
    bide_atomic_fence(seq_cst);
    (void)bide_check_choose(2);
    (void)bide_atomic_load(&((state *)p)->x, relaxed);
}

SCENARIO(fence_choice_load, .setup = fence_and_choose, .threads = {fence_and_choose});

static bide_check_finding replay(const bide_check_scenario *scenario, const char *text)
{
    bide_check_result r;
    bide_check_finding finding = bide_check_replay(scenario, text, &r);
    assert_true((finding == BIDE_CHECK_NOTHING) == (r.message == NULL));
    bide_check_result_free(&r);
    return finding;
}

static void a_text_that_is_none_is_a_bad_scenario(void **unused)
{
    (void)unused;
    static const char *const texts[] = {
        "x",           "1,2",   "1<",      "1<1",  "1<1.",      "1<.1",      "1>",
        "1=",          "1=x",   "1x",      "1xx",  "8",         "-1",        "1<8.0",
        "1!!",         "1<--",  "1 2 3 .", "1<-2", "1<1.65535", "1<1.65536", "1<99999999999.0",
        "99999999999", "1x1x1", "<-",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        print_message("%s\n", texts[i]);
        assert_int_equal(replay(&store_buffering, texts[i]), BIDE_CHECK_BAD_SCENARIO);
    }
}

static void a_text_that_does_not_fit_is_a_bad_scenario(void **unused)
{
    (void)unused;
    static const struct {
        const bide_check_scenario *scenario;
        const char *text;
    } bad[] = {
        {&store_buffering, "3"},         /* there is no such thread */
        {&store_buffering, "0"},         /* there is no set-up either */
        {&store_buffering, "7"},         /* not before the others have ended */
        {&store_buffering, "1x3"},       /* it has two steps */
        {&store_buffering, "1x2 2x2 1"}, /* it has ended */
        {&store_buffering, "1x2 2x2 7"}, /* the final check has no steps */
        {&store_buffering, "1x0 2x4"},   /* it has steps */
        {&store_buffering, "1 1<2.0"},   /* that store has not been run */
        {&store_buffering, "1 1<1.0"},   /* that store is to another object */
        {&store_buffering, "1 1<1.1"},   /* that is not a store */
        {&store_buffering, "1 1>-"},     /* a load has no position */
        {&store_buffering, "1<- 1"},     /* a store reads nothing */
        {&store_buffering, "1 1!"},      /* a load does not fail */
        {&store_buffering, "1 1=0"},     /* nor chooses */
        {&store_buffering, "1 1=1"},     /* nor chooses */
        {&store_buffering, "1>2.0"},     /* there is no such store */
        {&store_buffering, "1x4000000000"},
        {&fence_choice_load, "1"}, /* the set-up comes first */
        {&fence_choice_load, "7 0x3 1x3"},
        {&fence_choice_load, "0 1 0x2 1x2"},
        {&fence_choice_load, "0<- 0x2 1x3"}, /* a fence reads nothing */
        {&fence_choice_load, "0! 0x2 1x3"},  /* nor fails */
        {&fence_choice_load, "0 0=2 0 1x3"}, /* the choice is of two */
        {&fence_choice_load, "0 0<- 0 1x3"},
        {&fence_choice_load, "0x3 1x3 7"}, /* there is no final check */
        {&fence_choice_load, "0x3 1x3 0"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        print_message("%s: %s\n", bad[i].scenario->name, bad[i].text);
        assert_int_equal(replay(bad[i].scenario, bad[i].text), BIDE_CHECK_BAD_SCENARIO);
    }
    assert_int_equal(replay(&fence_choice_load, "0 0=1 0 1 1=1 1"), BIDE_CHECK_NOTHING);
    assert_int_equal(replay(&store_buffering, "1 2 1<- 2<-"), BIDE_CHECK_NOTHING);
}

static void the_beginning_of_a_text_is_gone_on_from(void **unused)
{
    (void)unused;
    bide_check_result r;
    bide_check_replay(&store_buffering, "1 2 2<-", &r);
    assert_int_equal(r.finding, BIDE_CHECK_NOTHING);
    assert_int_equal(r.executions, 1);
    assert_string_equal(r.outcomes[0], "10");
    bide_check_result_free(&r);
    bide_check_replay(&store_buffering, "", &r);
    assert_int_equal(r.executions, 1);
    bide_check_result_free(&r);
}

/* Replaces one sign of each text in turn. Each replay must terminate, whatever it finds. */
static void no_text_hangs_or_crashes(void **unused)
{
    (void)unused;
    static const char signs[] = "0123467x.<>=!- ";
    const bide_check_scenario *all[MAX_SEEDED];
    seeded_all(all);
    for (size_t i = 0; all[i] != NULL; i++) {
        bide_check_scenario s = *all[i];
        s.max_steps = 200;
        if (s.expected == BIDE_CHECK_NOTHING || s.expected == BIDE_CHECK_BAD_SCENARIO)
            continue;
        bide_check_result found;
        bide_check_explore(&s, &found);
        if (found.replay == NULL || strlen(found.replay) > 200) {
            bide_check_result_free(&found);
            continue;
        }
        for (char *c = found.replay; *c != '\0'; c++) {
            char kept = *c;
            *c = signs[(size_t)(c - found.replay + kept) % (sizeof signs - 1)];
            replay(&s, found.replay);
            *c = kept;
        }
        bide_check_result_free(&found);
    }
}

/* ---- Counts ---- */

static void assert_outcome(const bide_check_result *r, size_t i, const char *text, uint64_t count)
{
    assert_true(i < r->outcomes_count);
    assert_string_equal(r->outcomes[i], text);
    assert_int_equal(r->counts[i], count);
}

static void outcomes_are_sorted_and_counted(void **unused)
{
    (void)unused;
    bide_check_result r;
    assert_int_equal(bide_check_explore(&store_buffering, &r), BIDE_CHECK_NOTHING);
    assert_int_equal(r.executions, 4);
    assert_int_equal(r.blocked, 0);
    assert_int_equal(r.outcomes_count, 4);
    assert_outcome(&r, 0, "00", 1);
    assert_outcome(&r, 1, "01", 1);
    assert_outcome(&r, 2, "10", 1);
    assert_outcome(&r, 3, "11", 1);
    bide_check_result_free(&r);
}

static void choose_two_numbers(void *p)
{
    (void)p;
    unsigned a = bide_check_choose(3), b = bide_check_choose(2);
    bide_check_note("%u", a);
    bide_check_note("%u", b);
    bide_check_assert(bide_check_choose(1) == 0);
}

static void each_choice_is_explored_once(void **unused)
{
    (void)unused;
    SCENARIO(chooses, .threads = {choose_two_numbers});
    bide_check_result r;
    assert_int_equal(bide_check_explore(&chooses, &r), BIDE_CHECK_NOTHING);
    assert_int_equal(r.executions, 6);
    assert_int_equal(r.outcomes_count, 6);
    static const char *const expected[] = {"0 0", "0 1", "1 0", "1 1", "2 0", "2 1"};
    for (size_t i = 0; i < 6; i++)
        assert_outcome(&r, i, expected[i], 1);
    bide_check_result_free(&r);
}

/* In the set-up and the final check too. */
static void choose_x(void *p)
{
    bide_atomic_store(&((state *)p)->x, bide_check_choose(2), relaxed);
}

static void note_x_and_choose(void *p)
{
    bide_check_note("%u%u", bide_atomic_load(&((state *)p)->x, relaxed), bide_check_choose(2));
}

static void choices_are_explored_before_and_after_the_threads(void **unused)
{
    (void)unused;
    SCENARIO(chooses_outside, .setup = choose_x, .finish = note_x_and_choose);
    bide_check_result r;
    assert_int_equal(bide_check_explore(&chooses_outside, &r), BIDE_CHECK_NOTHING);
    assert_int_equal(r.outcomes_count, 4);
    assert_int_equal(r.executions, 4);
    bide_check_result_free(&r);
}

static void note_thread(void *p)
{
    (void)p;
    bide_check_note("%u", bide_check_thread());
}

static void setup_and_finish_are_thread_0(void **unused)
{
    (void)unused;
    SCENARIO(around, .setup = note_thread, .finish = note_thread);
    SCENARIO(within, .threads = {note_thread});
    bide_check_result r;
    assert_int_equal(bide_check_explore(&around, &r), BIDE_CHECK_NOTHING);
    assert_string_equal(r.outcomes[0], "0 0");
    bide_check_result_free(&r);
    assert_int_equal(bide_check_explore(&within, &r), BIDE_CHECK_NOTHING);
    assert_string_equal(r.outcomes[0], "1");
    bide_check_result_free(&r);
}

static void allocate(void *p)
{
    ((state *)p)->block = bide_check_alloc(24);
}

static void a_leak_is_told_with_its_size(void **unused)
{
    (void)unused;
    SCENARIO(leaks, .threads = {allocate});
    bide_check_result r;
    assert_int_equal(bide_check_explore(&leaks, &r), BIDE_CHECK_LEAK);
    assert_string_equal(r.message, "24 bytes in 1 blocks are never freed");
    assert_int_equal(r.executions, 0);
    bide_check_result_free(&r);
}

static void a_result_may_be_freed_twice(void **unused)
{
    (void)unused;
    bide_check_result r, zero;
    memset(&zero, 0, sizeof zero);
    bide_check_explore(&store_buffering, &r);
    assert_int_equal(r.outcomes_count, 4);
    bide_check_result_free(&r);
    assert_memory_equal(&r, &zero, sizeof r);
    bide_check_result_free(&r);
}

static void findings_have_names(void **unused)
{
    (void)unused;
    for (int a = BIDE_CHECK_NOTHING; a <= BIDE_CHECK_BAD_SCENARIO; a++) {
        for (int b = BIDE_CHECK_NOTHING; b < a; b++)
            assert_string_not_equal(bide_check_finding_name((bide_check_finding)a),
                                    bide_check_finding_name((bide_check_finding)b));
    }
}

/* ---- Features of scenarios ---- */

typedef struct waiter {
    bide_task task;
    state *s;
    bide_event_waiter wait;
} waiter;

bide_coroutine(waiter_body)
{
    bide_begin(waiter_body, struct waiter * self);
    bide_await(bide_event_wait(&self->wait, &self->s->event));
    bide_check_note("resumed by %u", bide_check_thread());
    bide_return(-5);
    bide_end();
}

static void await_waiter(void *p)
{
    waiter w = {.s = p};
    bide_check_assert(bide_check_await(bide_task_init(&w.task, &waiter_body)) == -5);
    bide_check_assert(bide_check_thread() == 1);
}

static void set_event(void *p)
{
    bide_event_set(&((state *)p)->event);
}

static void init_event(void *p)
{
    bide_event_init(&((state *)p)->event, false);
}

static void init_set_event(void *p)
{
    bide_event_init(&((state *)p)->event, true);
}

static void set_and_await(void *p)
{
    set_event(p);
    await_waiter(p);
}

static void an_await_ends_at_once_later_or_in_another_thread(void **unused)
{
    (void)unused;
    SCENARIO(at_once, .setup = init_set_event, .threads = {await_waiter});
    SCENARIO(own, .setup = init_event, .threads = {set_and_await});
    SCENARIO(later, .setup = init_event, .threads = {await_waiter, set_event});
    bide_check_result r;
    assert_int_equal(bide_check_explore(&at_once, &r), BIDE_CHECK_NOTHING);
    assert_int_equal(r.outcomes_count, 1);
    assert_outcome(&r, 0, "resumed by 1", r.executions);
    bide_check_result_free(&r);
    assert_int_equal(bide_check_explore(&own, &r), BIDE_CHECK_NOTHING);
    assert_int_equal(r.outcomes_count, 1);
    bide_check_result_free(&r);
    assert_int_equal(bide_check_explore(&later, &r), BIDE_CHECK_NOTHING);
    assert_int_equal(r.outcomes_count, 2);
    assert_string_equal(r.outcomes[0], "resumed by 1");
    assert_string_equal(r.outcomes[1], "resumed by 2");
    bide_check_result_free(&r);
}

static BIDE_THREAD_LOCAL unsigned mine = 5;

static void change_mine(void *p)
{
    state *s = p;
    bide_check_assert(mine == 5);
    for (unsigned i = 0; i < 2; i++) {
        mine += bide_check_thread();
        bide_atomic_fetch_add(&s->x, 1, relaxed);
        bide_check_assert(mine == 5 + (i + 1) * bide_check_thread());
    }
    mine = 1000;
}

static void mine_is_fresh(void *p)
{
    (void)p;
    bide_check_assert(mine == 5);
}

static void thread_locals_are_each_threads_own_and_fresh_in_each_execution(void **unused)
{
    (void)unused;
    SCENARIO(locals, .setup = change_mine, .threads = {change_mine, change_mine},
             .finish = mine_is_fresh);
    bide_check_result r;
    mine = 5;
    assert_int_equal(bide_check_explore(&locals, &r), BIDE_CHECK_NOTHING);
    assert_true(r.executions > 1);
    bide_check_result_free(&r);
    assert_int_equal(mine, 5);
}

/* The load of x is stale or not; it is never stale for ever. */
static void spin_on_x(void *p)
{
    while (bide_atomic_load(&((state *)p)->x, relaxed) == 0)
        bide_cpu_relax();
}

static void set_x(void *p)
{
    bide_atomic_store(&((state *)p)->x, 1, relaxed);
}

static void who_waits_with_an_old_value_is_not_stuck(void **unused)
{
    (void)unused;
    SCENARIO(spins, .threads = {set_x, spin_on_x});
    bide_check_result r;
    assert_int_equal(bide_check_explore(&spins, &r), BIDE_CHECK_NOTHING);
    assert_true(r.blocked > 0);
    assert_true(r.executions > 0);
    bide_check_result_free(&r);
}

static void sleep_on_x(void *p)
{
    while (bide_atomic_load(&((state *)p)->x, relaxed) == 0)
        bide_platform.wait(&((state *)p)->x, 0, BIDE_FOREVER);
}

static void sleep_on_x_until(void *p)
{
    if (bide_atomic_load(&((state *)p)->x, relaxed) == 0)
        bide_platform.wait(&((state *)p)->x, 0, 1);
}

static void set_ups_and_final_checks_may_be_stuck(void **unused)
{
    (void)unused;
    SCENARIO(stuck_setup, .setup = sleep_on_x, .threads = {set_x});
    SCENARIO(stuck_finish, .threads = {mine_is_fresh}, .finish = sleep_on_x);
    SCENARIO(spinning_finish, .threads = {mine_is_fresh}, .finish = spin_on_x);
    SCENARIO(late_setup, .setup = sleep_on_x_until, .threads = {set_x}, .finish = sleep_on_x);
    SCENARIO(late_finish, .threads = {mine_is_fresh}, .finish = sleep_on_x_until);
    static const struct {
        const bide_check_scenario *scenario;
        bide_check_finding finding;
    } all[] = {{&stuck_setup, BIDE_CHECK_DEADLOCK},
               {&stuck_finish, BIDE_CHECK_DEADLOCK},
               {&spinning_finish, BIDE_CHECK_LIVELOCK},
               {&late_setup, BIDE_CHECK_NOTHING},
               {&late_finish, BIDE_CHECK_NOTHING}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bide_check_result r;
        print_message("%s\n", all[i].scenario->name);
        assert_int_equal(bide_check_explore(all[i].scenario, &r), all[i].finding);
        if (r.replay != NULL) {
            bide_check_result again;
            bide_check_replay(all[i].scenario, r.replay, &again);
            assert_same(&r, &again);
            bide_check_result_free(&again);
        }
        bide_check_result_free(&r);
    }
}

/*
 * Both ways in which a sleep ends without a wake, in both orders; each sleep ends spuriously at
 * most once.
 */
static void sleep_twice(void *p)
{
    for (int i = 0; i < 2; i++)
        bide_check_note("%s", bide_platform.wait(&((state *)p)->x, 0, 1) == 0 ? "early" : "late");
}

static void a_deadline_is_no_sleep_that_ends_for_no_reason(void **unused)
{
    (void)unused;
    SCENARIO(sleeps_twice, .threads = {sleep_twice});
    bide_check_result r;
    assert_int_equal(bide_check_explore(&sleeps_twice, &r), BIDE_CHECK_NOTHING);
    assert_int_equal(r.outcomes_count, 3);
    assert_outcome(&r, 0, "early late", 1);
    assert_outcome(&r, 1, "late early", 1);
    assert_outcome(&r, 2, "late late", 1);
    bide_check_result_free(&r);
}

/* ---- Plain memory ---- */

/* The bytes of one word, each accessed in its own way. */
typedef struct bytes {
    union {
        unsigned char byte[8];
        uint64_t all;
    };
    bide_atomic(uint32_t) passed;
} bytes;

static void read_byte_0(void *p)
{
    (void)*(volatile unsigned char *)&((bytes *)p)->byte[0];
}

static void read_other_bytes(void *p)
{
    for (int i = 1; i < 8; i++)
        (void)*(volatile unsigned char *)&((bytes *)p)->byte[i];
}

static void read_other_bytes_singly(void *p)
{
    bytes *b = p;
    for (int i = 1; i < 8; i++) {
        (void)*(volatile unsigned char *)&b->byte[i];
        bide_atomic_fetch_add(&b->passed, 1, relaxed);
    }
}

static void read_others_and_write_byte_0(void *p)
{
    read_other_bytes(p);
    ((bytes *)p)->byte[0] = 1;
}

static void a_race_is_found_however_many_have_used_the_word(void **unused)
{
    (void)unused;
    static const bide_check_scenario many = {
        .name = "many",
        .size = sizeof(bytes),
        .threads = {read_byte_0, read_other_bytes, read_others_and_write_byte_0}};
    static const bide_check_scenario singly = {
        .name = "singly",
        .size = sizeof(bytes),
        .threads = {read_byte_0, read_other_bytes_singly, read_others_and_write_byte_0}};
    bide_check_result r;
    assert_int_equal(bide_check_explore(&many, &r), BIDE_CHECK_RACE);
    assert_non_null(strstr(r.message, "thread 3 writes byte 0 of the state"));
    assert_non_null(strstr(r.message, "while thread 1 reads it"));
    bide_check_result_free(&r);
    assert_int_equal(bide_check_explore(&singly, &r), BIDE_CHECK_RACE);
    bide_check_result_free(&r);
}

/* Each access is at another step, so that none is the same as another. */
static void write_byte_0_at_last(void *p)
{
    bide_atomic_fetch_add(&((bytes *)p)->passed, 1, relaxed);
    ((bytes *)p)->byte[0] = 1;
}

static void no_use_of_a_word_is_forgotten(void **unused)
{
    (void)unused;
    static const bide_check_scenario readers = {
        .name = "readers",
        .size = sizeof(bytes),
        .threads = {read_other_bytes_singly, read_other_bytes_singly, read_other_bytes_singly}};
    static const bide_check_scenario readers_and_writer = {
        .name = "readers_and_writer",
        .size = sizeof(bytes),
        .threads = {read_byte_0, read_other_bytes_singly, read_other_bytes_singly,
                    write_byte_0_at_last}};
    bide_check_scenario some = readers;
    some.preemptions = 1;
    bide_check_result r;
    assert_int_equal(bide_check_explore(&some, &r), BIDE_CHECK_NOTHING);
    bide_check_result_free(&r);
    assert_int_equal(bide_check_explore(&readers_and_writer, &r), BIDE_CHECK_RACE);
    assert_non_null(strstr(r.message, "while thread 1 reads it"));
    bide_check_result_free(&r);
}

static void write_all(void *p)
{
    ((bytes *)p)->all = 1;
}

static void read_byte_5(void *p)
{
    (void)*(volatile unsigned char *)&((bytes *)p)->byte[5];
}

static void a_race_is_told_with_the_byte_that_both_use(void **unused)
{
    (void)unused;
    static const bide_check_scenario overlap = {
        .name = "overlap", .size = sizeof(bytes), .threads = {read_byte_5, write_all}};
    bide_check_result r;
    assert_int_equal(bide_check_explore(&overlap, &r), BIDE_CHECK_RACE);
    assert_non_null(strstr(r.message, "byte 5 of the state"));
    bide_check_result_free(&r);
}

/* Memory that was freed before the threads run is freed. */
static void allocate_and_free(void *p)
{
    allocate(p);
    bide_check_free(((state *)p)->block);
}

static void read_block(void *p)
{
    (void)*(volatile char *)((state *)p)->block;
}

static void read_free_and_read(void *p)
{
    state *s = p;
    allocate(p);
    volatile char *block = s->block;
    block[0] = block[5] = 1;
    (void)block[0];
    (void)block[5];
    bide_check_free(s->block);
    (void)block[5];
}

static void free_twice(void *p)
{
    allocate_and_free(p);
    bide_check_free(((state *)p)->block);
}

static void one_thread_may_not_use_what_it_has_freed(void **unused)
{
    (void)unused;
    SCENARIO(uses, .threads = {read_free_and_read});
    SCENARIO(frees, .threads = {free_twice});
    bide_check_result r;
    assert_int_equal(bide_check_explore(&uses, &r), BIDE_CHECK_USE_AFTER_FREE);
    bide_check_result_free(&r);
    assert_int_equal(bide_check_explore(&frees, &r), BIDE_CHECK_DOUBLE_FREE);
    bide_check_result_free(&r);
}

static void what_is_set_up_and_freed_is_not_to_be_used(void **unused)
{
    (void)unused;
    SCENARIO(freed, .setup = allocate_and_free, .threads = {read_block});
    SCENARIO(freed_last, .setup = allocate, .threads = {allocate_and_free}, .finish = read_block);
    bide_check_result r;
    assert_int_equal(bide_check_explore(&freed, &r), BIDE_CHECK_USE_AFTER_FREE);
    bide_check_result_free(&r);
    assert_int_equal(bide_check_explore(&freed_last, &r), BIDE_CHECK_USE_AFTER_FREE);
    bide_check_result_free(&r);
}

/* One line for the compiler. */
#define STORE_TWICE(object) \
    (bide_atomic_store(object, 1, relaxed), bide_atomic_store(object, 2, release))

static void store_twice_and_fail(void *p)
{
    STORE_TWICE(&((state *)p)->x);
    bide_check_assert(false);
}

static void operations_on_one_line_keep_their_orders(void **unused)
{
    (void)unused;
    SCENARIO(twice, .threads = {store_twice_and_fail});
    bide_check_result r;
    bide_check_explore(&twice, &r);
    assert_non_null(strstr(r.trace, "= 1 (relaxed)"));
    assert_non_null(strstr(r.trace, "= 2 (release)"));
    bide_check_result_free(&r);
}

static void outside_a_scenario_all_is_plain(void **unused)
{
    (void)unused;
    state s = {0};
    bide_atomic_init(&s.x, 3);
    assert_int_equal(bide_atomic_fetch_add(&s.x, 2, relaxed), 3);
    assert_int_equal(bide_atomic_fetch_sub(&s.x, 1, relaxed), 5);
    assert_int_equal(bide_atomic_fetch_or(&s.x, 3, relaxed), 4);
    assert_int_equal(bide_atomic_fetch_and(&s.x, 6, relaxed), 7);
    assert_int_equal(bide_atomic_exchange(&s.x, 9, relaxed), 6);
    uint32_t expected = 8;
    assert_false(bide_atomic_compare_exchange(&s.x, &expected, 1, relaxed, relaxed));
    assert_int_equal(expected, 9);
    assert_true(bide_atomic_compare_exchange(&s.x, &expected, 1, relaxed, relaxed));
    assert_int_equal(bide_atomic_load(&s.x, relaxed), 1);
    bide_atomic_fence(seq_cst);
    bide_cpu_relax();
    assert_int_equal(bide_check_choose(3), 0);
    assert_int_equal(bide_check_thread(), 0);
    bide_check_note("nobody hears it");
    bide_check_free(bide_check_alloc(8));
}

/* ---- The command line ---- */

/* Runs bide_check_main with its output in files, and returns its status. */
static char said[1 << 16];

static int run(const bide_check_suite *suite, const char *const *arguments)
{
    char *argv[20] = {"program"};
    int argc = 1;
    while (arguments[argc - 1] != NULL) {
        argv[argc] = (char *)(uintptr_t)arguments[argc - 1];
        argc++;
    }
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    fflush(stderr);
    int out = dup(1), error = dup(2);
    dup2(fileno(file), 1);
    dup2(fileno(file), 2);
    int status = bide_check_main(argc, argv, suite);
    fflush(stdout);
    fflush(stderr);
    dup2(out, 1);
    dup2(error, 2);
    close(out);
    close(error);
    assert_int_equal(fseek(file, 0, SEEK_SET), 0);
    said[fread(said, 1, sizeof said - 1, file)] = '\0';
    fclose(file);
    return status;
}

#define RUN(suite, ...) run(suite, (const char *const[]){__VA_ARGS__, NULL})

static void assert_said(const char *text)
{
    if (strstr(said, text) == NULL)
        print_message("%s\n", said);
    assert_non_null(strstr(said, text));
}

static void need_x(void *p)
{
    bide_check_assert(bide_atomic_load(&((state *)p)->x, relaxed) == 1);
}

SCENARIO(fails_as_expected, .threads = {need_x}, .expected = BIDE_CHECK_ASSERTION);
SCENARIO(fails, .threads = {need_x});

static const bide_check_suite good_suite = {
    .scenarios = (const bide_check_scenario *const[]){&store_buffering, &fails_as_expected, NULL}};
static const bide_check_suite bad_suite = {
    .scenarios = (const bide_check_scenario *const[]){&store_buffering, &fails, NULL}};

static void the_status_is_0_if_all_is_as_expected(void **unused)
{
    (void)unused;
    assert_int_equal(run(&good_suite, (const char *const[]){NULL}), 0);
    assert_said("store_buffering ");
    assert_said("nothing: 4 executions, complete, ");
    assert_said("fails_as_expected ");
    assert_null(strstr(said, "thread 1"));
}

static void the_status_is_1_if_not(void **unused)
{
    (void)unused;
    assert_int_equal(run(&bad_suite, (const char *const[]){NULL}), 1);
    assert_said("failed assertion (not nothing)");
    assert_said("assertion failed: ");
    assert_said("--replay '1' fails");
    assert_int_equal(RUN(&bad_suite, "store_buffering"), 0);
    assert_int_equal(RUN(&bad_suite, "fails"), 1);
    assert_null(strstr(said, "store_buffering"));
}

static void the_status_is_2_for_a_wrong_command_line(void **unused)
{
    (void)unused;
    assert_int_equal(RUN(&good_suite, "--unknown"), 2);
    assert_said("usage: ");
    assert_int_equal(RUN(&good_suite, "unknown"), 2);
    assert_said("there is no scenario unknown");
    assert_int_equal(RUN(&good_suite, "unknown", "store_buffering"), 2);
    assert_int_equal(RUN(&good_suite, "--replay", "1"), 2);
    assert_int_equal(RUN(&good_suite, "--replay"), 2);
    assert_int_equal(RUN(&good_suite, "--replay", "1", "fails_as_expected", "store_buffering"), 2);
    assert_int_equal(RUN(&good_suite, "--preemptions"), 2);
    assert_int_equal(RUN(&good_suite, "--preemptions", "0"), 2);
    assert_int_equal(RUN(&good_suite, "--preemptions", "x"), 2);
}

/* It would take more than a minute. */
static void store_six(void *p)
{
    for (unsigned i = 0; i < 6; i++)
        bide_atomic_store(&((state *)p)->x, i, relaxed);
}

SCENARIO(endless, .threads = {store_six, store_six, store_six});

static void the_status_is_3_if_it_is_not_finished(void **unused)
{
    (void)unused;
    const bide_check_suite suite = {
        .scenarios = (const bide_check_scenario *const[]){&store_buffering, &endless, NULL}};
    const bide_check_suite worse = {
        .scenarios = (const bide_check_scenario *const[]){&endless, &fails, NULL}};
    assert_int_equal(RUN(&suite, "--executions", "100"), 3);
    assert_said("nothing: 4 executions");
    assert_said("not finished: 100 explored");
    assert_int_equal(RUN(&suite, "--time", "1", "endless"), 3);
    assert_said("not finished: ");
    assert_int_equal(RUN(&worse, "--executions", "5"), 1);
    assert_said("not finished: 5 explored");
    assert_said("failed assertion (not nothing)");
    /* The limit is the number of executions: it is finished. */
    assert_int_equal(RUN(&suite, "--executions", "4", "store_buffering"), 0);
    assert_int_equal(RUN(&suite, "--executions", "3", "store_buffering"), 3);
    assert_int_equal(RUN(&suite, "--executions", "0"), 2);
    assert_int_equal(RUN(&suite, "--time"), 2);
    assert_int_equal(RUN(&suite, "--time", "soon"), 2);
    assert_int_equal(RUN(&suite, "--time", "0"), 2);
    assert_int_equal(RUN(&suite, "--time", "0.0"), 2);
    assert_int_equal(RUN(&suite, "--time", "1.2.3"), 2);
    assert_int_equal(RUN(&suite, "--time", "0.25", "endless"), 3);
}

/* The values that thread 1 gets are 0, 2 and 4 if the threads take turns. */
static void add_three(void *p)
{
    state *s = p;
    for (unsigned i = 0; i < 3; i++)
        s->seen[i] = bide_atomic_fetch_add(&s->x, 1, relaxed);
}

static void add_three_too(void *p)
{
    for (unsigned i = 0; i < 3; i++)
        bide_atomic_fetch_add(&((state *)p)->x, 1, relaxed);
}

static void see_no_turns(void *p)
{
    const uint32_t *seen = ((state *)p)->seen;
    bide_check_assert(seen[0] != 0 || seen[1] != 2 || seen[2] != 4);
}

SCENARIO(takes_turns, .threads = {add_three, add_three_too}, .finish = see_no_turns);

static void the_status_is_4_if_a_bound_left_something_out(void **unused)
{
    (void)unused;
    bide_check_scenario bounded = takes_turns;
    bounded.preemptions = 2;
    const bide_check_suite suite = {
        .scenarios = (const bide_check_scenario *const[]){&store_buffering, &takes_turns, NULL}};
    const bide_check_suite by_itself = {
        .scenarios = (const bide_check_scenario *const[]){&bounded, &fails_as_expected, NULL}};
    const bide_check_suite worse = {
        .scenarios = (const bide_check_scenario *const[]){&bounded, &endless, NULL}};
    assert_int_equal(RUN(&suite, "takes_turns"), 1);
    assert_int_equal(RUN(&suite, "--preemptions", "1", "takes_turns"), 4);
    assert_said(" executions, bounded: at most 1 preemption, ");
    assert_null(strstr(said, "complete"));
    assert_int_equal(run(&by_itself, (const char *const[]){NULL}), 4);
    assert_said(" executions, bounded: at most 2 preemptions, ");
    assert_int_equal(RUN(&worse, "--executions", "50"), 3);
    assert_said(" executions, bounded: at most 2 preemptions, ");
    assert_said("not finished: 50 explored");
    /* The bound is wide enough to find it, or leaves out nothing. */
    assert_int_equal(RUN(&suite, "--preemptions", "9", "takes_turns"), 1);
    assert_int_equal(RUN(&suite, "--preemptions", "9", "store_buffering"), 0);
    assert_said("nothing: 4 executions, complete, ");
    bide_check_result r;
    assert_int_equal(bide_check_explore(&bounded, &r), BIDE_CHECK_NOTHING);
    assert_true(r.is_bounded);
    assert_false(r.is_unfinished);
    bide_check_result_free(&r);
}

static void tap_has_a_line_for_each(void **unused)
{
    (void)unused;
    const bide_check_suite suite = {.scenarios = (const bide_check_scenario *const[]){
                                        &store_buffering, &endless, &fails_as_expected, NULL}};
    assert_int_equal(RUN(&suite, "--tap", "--executions", "5"), 0);
    assert_string_equal(said, "ok 1 - store_buffering: nothing: 4 executions, complete\n"
                              "ok 2 - # SKIP endless: not finished: 5 explored\n"
                              "ok 3 - fails_as_expected: failed assertion: 0 executions\n"
                              "1..3\n"
                              "# scenarios: 2 complete, 1 unfinished\n");
    assert_int_equal(RUN(&bad_suite, "--tap"), 1);
    assert_said("not ok 2 - fails: failed assertion (not nothing): ");
}

static void kill_its_process(void *p)
{
    (void)p;
    kill(getpid(), SIGKILL);
}

SCENARIO(killed, .threads = {kill_its_process});

static void several_processes_say_the_same_in_the_same_order(void **unused)
{
    (void)unused;
    const bide_check_suite suite = {
        .scenarios = (const bide_check_scenario *const[]){&endless, &store_buffering, &fails,
                                                          &fails_as_expected, &takes_turns, NULL}};
    static char alone[sizeof said];
    static const char *const jobs[] = {"2", "3", "100"};
    assert_int_equal(RUN(&suite, "--tap", "--executions", "500"), 1);
    memcpy(alone, said, sizeof said);
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        assert_int_equal(RUN(&suite, "--tap", "--executions", "500", "--jobs", jobs[i]), 1);
        assert_string_equal(said, alone);
    }
    assert_int_equal(RUN(&suite, "--executions", "500", "--jobs", "2", "endless"), 3);
    assert_int_equal(RUN(&good_suite, "--jobs", "2"), 0);
    assert_int_equal(RUN(&good_suite, "--jobs", "0"), 2);
    assert_int_equal(RUN(&good_suite, "--jobs"), 2);

    const bide_check_suite lost = {
        .scenarios = (const bide_check_scenario *const[]){&killed, &store_buffering, NULL}};
    assert_int_equal(RUN(&lost, "--tap", "--jobs", "2"), 1);
    assert_said("bide_check: a process was ended by signal 9");
    assert_said("not ok 1 - killed: its process was lost\n"
                "ok 2 - store_buffering: nothing: 4 executions, complete\n1..2\n"
                "# scenarios: 1 complete, 1 wrong\n");
}

/* Runs it with a terminal as stderr, and keeps the output there. */
static void how_far_it_has_come_is_shown_on_a_terminal(void **unused)
{
    (void)unused;
    const bide_check_suite suite = {.scenarios =
                                        (const bide_check_scenario *const[]){&endless, NULL}};
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0);
    assert_int_equal(grantpt(terminal), 0);
    assert_int_equal(unlockpt(terminal), 0);
    int other = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    assert_true(other >= 0);
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char name[] = "program", time[] = "--time", one[] = "1", *argv[] = {name, time, one, NULL};
        dup2(other, 2);
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, 1);
        _exit(bide_check_main(3, argv, &suite));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 3);
    ssize_t n = read(terminal, said, sizeof said - 1);
    assert_true(n > 0);
    said[n] = '\0';
    close(other);
    close(terminal);
    assert_said("\rendless: ");
    assert_said(" executions, ");
    assert_said(" a second, depth ");
    assert_said(" % done");
}

static void what_is_not_finished_finds_nothing_of_a_weaker_order(void **unused)
{
    (void)unused;
    bide_check_scenario max = endless;
    max.max_executions = 10;
    bide_check_result r;
    assert_int_equal(bide_check_explore(&max, &r), BIDE_CHECK_NOTHING);
    assert_true(r.is_unfinished);
    assert_int_equal(r.executions, 10);
    bide_check_result_free(&r);
    const bide_check_suite suite = {.scenarios =
                                        (const bide_check_scenario *const[]){&endless, NULL}};
    assert_int_equal(RUN(&suite, "--weaken", "--executions", "10"), 1);
    assert_said("endless fails with the orders of the source: NOT FINISHED");
    const bide_check_suite limited = {.scenarios = (const bide_check_scenario *const[]){&max, NULL},
                                      .files = (const char *const[]){"another.c", NULL}};
    assert_int_equal(RUN(&limited, "--weaken", "--executions", "9"), 1);
    assert_said("endless fails with the orders of the source: NOT FINISHED");
    assert_int_equal(RUN(&limited, "--weaken"), 0); /* at its own limit */
    assert_said("0 orders made weaker");
}

static void list_prints_the_names_only(void **unused)
{
    (void)unused;
    assert_int_equal(RUN(&bad_suite, "--list"), 0);
    assert_string_equal(said, "store_buffering\nfails\n");
    assert_int_equal(RUN(&bad_suite, "--list", "fails"), 0);
    assert_string_equal(said, "fails\n");
}

static void verbose_prints_traces_and_outcomes(void **unused)
{
    (void)unused;
    assert_int_equal(RUN(&good_suite, "--verbose"), 0);
    assert_said("    00: 1\n    01: 1\n    10: 1\n    11: 1\n");
    assert_said("   1  thread 1  load ");
}

static void count_rounds(void *p)
{
    for (unsigned i = 0; i < 100000 && bide_atomic_load(&((state *)p)->x, relaxed) == 0; i++) {
        bide_atomic_store(&((state *)p)->y, 1, relaxed);
        bide_atomic_fence(seq_cst);
    }
}

static void count_in_memory(void *p)
{
    while (bide_atomic_fetch_add(&((state *)p)->x, 1, relaxed) < 1000000)
        ;
}

SCENARIO(counts_rounds, .threads = {count_rounds}, .max_steps = 3000);
SCENARIO(counts_in_memory, .threads = {count_in_memory}, .max_steps = 3000);

static void rounds_of_a_loop_are_folded_in_a_trace(void **unused)
{
    (void)unused;
    bide_check_result r, again;
    assert_int_equal(bide_check_explore(&counts_rounds, &r), BIDE_CHECK_LIVELOCK);
    assert_int_equal(lines_in(r.trace), 4);
    assert_non_null(strstr(r.trace, "   3  thread 1  fence"));
    assert_non_null(strstr(r.trace, "      (steps 4 to 3000: these steps again, 999 times)\n"));
    assert_int_equal(bide_check_replay(&counts_rounds, r.replay, &again), BIDE_CHECK_LIVELOCK);
    assert_int_equal(lines_in(again.trace), 3000);
    assert_lines_are_in(r.trace, again.trace);
    bide_check_result_free(&again);
    bide_check_result_free(&r);

    assert_int_equal(bide_check_explore(&counts_in_memory, &r), BIDE_CHECK_LIVELOCK);
    assert_int_equal(lines_in(r.trace), 5);
    assert_non_null(strstr(
        r.trace, "      (steps 3 to 2998: these steps again, 1498 times, with other values)\n"));
    assert_non_null(strstr(r.trace, "\n3000  thread 1  fetch_add "));
    bide_check_result_free(&r);
}

/* ---- Files ---- */

static char *read_file(const char *path)
{
    static char text[1 << 16];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* An empty file, which the caller removes. */
static char *made_file(void)
{
    static char path[32];
    strcpy(path, "/tmp/check_test.XXXXXX");
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    return path;
}

static void store_x_and_y(void *p)
{
    bide_atomic_store(&((state *)p)->x, 1, relaxed);
    bide_atomic_store(&((state *)p)->y, 1, release);
}

static void load_y_and_need_x(void *p)
{
    if (bide_atomic_load(&((state *)p)->y, acquire) == 2)
        bide_check_assert(bide_atomic_load(&((state *)p)->x, relaxed) == 7);
}

static void store_x_after_y(void *p)
{
    if (bide_atomic_load(&((state *)p)->y, relaxed) == 1) {
        bide_atomic_store(&((state *)p)->x, 2, relaxed);
        bide_atomic_store(&((state *)p)->y, 2, release);
    }
}

SCENARIO(drawn, .threads = {store_x_and_y, load_y_and_need_x, store_x_after_y});

static void a_graph_has_the_steps_and_their_orders(void **unused)
{
    (void)unused;
    const bide_check_suite suite = {
        .scenarios = (const bide_check_scenario *const[]){&drawn, &store_buffering, NULL}};
    const char *path = made_file();
    assert_int_equal(RUN(&suite, "--dot", path, "drawn"), 1);
    const char *graph = read_file(path);
    assert_memory_equal(graph, "digraph execution {\n", 20);
    assert_non_null(strstr(graph, "label=\"drawn\\nfailed assertion\\nassertion failed: "));
    assert_non_null(strstr(graph, "  subgraph cluster_1 {\n    label=\"thread 1\";\n"));
    assert_non_null(strstr(graph, "->y = 1\\nrelease\\n"));
    assert_non_null(strstr(graph, "->y: read 2\\nacquire\\n"));
    assert_null(strstr(graph, "cluster_4"));
    /* The acquiring load synchronizes with its store, and the relaxed one does not. */
    assert_non_null(strstr(graph, "[label=rf, color=darkgreen, fontcolor=darkgreen];\n"));
    assert_non_null(
        strstr(graph, "[label=rf, color=darkgreen, fontcolor=darkgreen, style=dashed];\n"));
    assert_non_null(strstr(graph, "[label=mo, color=brown, fontcolor=brown, constraint=false];\n"));
    unsigned opened = 0, closed = 0;
    for (const char *c = graph; *c != '\0'; c++) {
        opened += *c == '{';
        closed += *c == '}';
    }
    assert_int_equal(opened, closed);

    /* A replay has one although nothing is found, and an exploration has none. */
    assert_int_equal(RUN(&suite, "--dot", path, "--replay", "1 2 1<- 2<-", "store_buffering"), 0);
    graph = read_file(path);
    assert_non_null(strstr(graph, "label=\"store_buffering\\nnothing\"];"));
    assert_non_null(strstr(graph, ": read 0, initial\\n"));
    assert_int_equal(RUN(&suite, "--dot", path, "store_buffering"), 0);
    assert_said("is not written: nothing was found");
    remove(path);

    assert_int_equal(RUN(&suite, "--dot", "/nowhere/graph", "drawn"), 1);
    assert_said("bide_check: /nowhere/graph: No such file or directory");
    assert_int_equal(RUN(&suite, "--dot", path), 2);
    assert_int_equal(RUN(&suite, "--dot", path, "--weaken", "drawn"), 2);
}

/* In all results alike. */
static void a_graph_that_cannot_be_written_is_wrong(void **unused)
{
    (void)unused;
    const bide_check_suite suite = {
        .scenarios = (const bide_check_scenario *const[]){&store_buffering, NULL}};
    const char *path = made_file();
    assert_int_equal(RUN(&suite, "--tap", "--junit", path, "--dot", "/nowhere/graph", "--replay",
                         "1 2 1<- 2<-", "store_buffering"),
                     1);
    assert_said(
        "not ok 1 - store_buffering: nothing: 1 executions, its graph could not be written\n");
    assert_said("# scenarios: 1 wrong\n");
    const char *xml = read_file(path);
    assert_non_null(strstr(xml, " tests=\"1\" failures=\"1\""));
    assert_non_null(
        strstr(xml, "<failure message=\"nothing: 1 executions, its graph could not be written\">"));
    remove(path);
}

static void need_x_with_marks(void *p)
{
    bide_check_assert("<&\1\"" != NULL && bide_atomic_load(&((state *)p)->x, relaxed) == 1);
}

SCENARIO(marks, .threads = {need_x_with_marks});

/* Replaces each time. */
static void cut_times(char *text)
{
    for (char *at = text; (at = strstr(at, " time=\"")) != NULL; at += 2) {
        char *end = strchr(at + 7, '"');
        assert_non_null(end);
        memmove(at + 1, end + 1, strlen(end + 1) + 1);
    }
}

static void junit_has_a_case_for_each(void **unused)
{
    (void)unused;
    const bide_check_suite suite = {
        .scenarios = (const bide_check_scenario *const[]){&store_buffering, &endless, &marks,
                                                          &takes_turns, &killed, NULL}};
    const char *path = made_file();
    static const char *const jobs[] = {"1", "2", "5"};
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        assert_int_equal(RUN(&suite, "--executions", "50", "--preemptions", "1", "--jobs", jobs[i],
                             "--junit", path, "store_buffering", "endless", "marks", "takes_turns"),
                         1);
        char *text = read_file(path);
        cut_times(text);
        static const char begins[] =
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
            "<testsuite name=\"program\" tests=\"4\" failures=\"1\" skipped=\"1\" >\n"
            "<properties><property name=\"complete\" value=\"1\"/>"
            "<property name=\"bounded\" value=\"1\"/><property name=\"sampled\" value=\"0\"/>"
            "<property name=\"unfinished\" value=\"1\"/><property name=\"wrong\" value=\"1\"/>"
            "</properties>\n"
            "<testcase name=\"store_buffering\" ><properties><property name=\"verdict\" "
            "value=\"complete\"/></properties><system-out>nothing: 4 executions, "
            "complete</system-out></testcase>\n"
            "<testcase name=\"endless\" ><properties><property name=\"verdict\" "
            "value=\"unfinished\"/></properties><skipped message=\"not finished: 50 "
            "explored\"></skipped>"
            "</testcase>\n"
            "<testcase name=\"marks\" ><properties><property name=\"verdict\" "
            "value=\"wrong\"/></properties><failure message=\"failed assertion (not nothing): 0 "
            "executions\">\n    assertion failed: &quot;&lt;&amp;";
        assert_memory_equal(text, begins, sizeof begins - 1);
        assert_non_null(strstr(text, "   1  thread 1  load "));
        assert_non_null(strstr(text, "--replay '1' marks\n</failure></testcase>\n"));
        assert_non_null(strstr(text, ", bounded: at most 1 preemption</system-out></testcase>\n"));
        assert_string_equal(text + strlen(text) - 27, "</testsuite>\n</testsuites>\n");
    }
    assert_int_equal(RUN(&suite, "--jobs", "2", "--junit", path, "killed", "store_buffering"), 1);
    assert_non_null(strstr(read_file(path), "<failure message=\"its process was lost\">"));
    remove(path);

    assert_int_equal(RUN(&suite, "--junit", "/nowhere/file", "store_buffering"), 2);
    assert_said("bide_check: /nowhere/file: No such file or directory");
    assert_int_equal(RUN(&suite, "--junit", "/dev/full", "store_buffering"), 1);
    assert_said("bide_check: /dev/full: No space left on device");
    assert_int_equal(RUN(&suite, "--junit"), 2);
    assert_int_equal(RUN(&suite, "--junit", path, "--weaken"), 2);
}

static void what_must_be_finished_is_wrong_if_it_is_not(void **unused)
{
    (void)unused;
    bide_check_scenario max = endless;
    max.max_executions = 10;
    max.must_finish = true;
    const bide_check_suite declared = {
        .scenarios = (const bide_check_scenario *const[]){&store_buffering, &max, NULL}};
    assert_int_equal(run(&declared, (const char *const[]){NULL}), 1);
    assert_said("not finished (it must be): 10 explored");
    assert_said("scenarios: 1 complete, 1 wrong\n");
    assert_int_equal(RUN(&declared, "--tap"), 1);
    assert_said("not ok 2 - endless: not finished (it must be): 10 explored\n");

    /* Those that a file names need not be. */
    const bide_check_suite suite = {
        .scenarios = (const bide_check_scenario *const[]){&store_buffering, &endless, NULL}};
    const char *path = made_file();
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("# endless is in this line\n\nstore_buffering\nendles: endless\n", file);
    fclose(file);
    assert_int_equal(RUN(&suite, "--tap", "--executions", "10", "--unfinished", path), 1);
    assert_said("not ok 2 - endless: not finished (it must be): 10 explored\n");
    file = fopen(path, "a");
    assert_non_null(file);
    fputs("program: endless", file);
    fclose(file);
    assert_int_equal(RUN(&suite, "--tap", "--executions", "10", "--unfinished", path), 0);
    assert_said("ok 2 - # SKIP endless: not finished: 10 explored\n");
    assert_said("# scenarios: 1 complete, 1 unfinished\n");
    assert_int_equal(RUN(&suite, "--executions", "10", "--unfinished", path), 3);
    assert_int_equal(RUN(&suite, "--executions", "10", "--unfinished", "/dev/null"), 1);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("endless", file);
    fclose(file);
    assert_int_equal(RUN(&suite, "--executions", "10", "--unfinished", path), 3);

    /* A name without a scenario is an error in its program. */
    static const char *const stale[] = {"endless\nendless_\n", "other: no\nprogram: endles",
                                        "endles"};
    static const char *const names[] = {"endless_", "endles", "endles"};
    for (size_t i = 0; i < sizeof stale / sizeof *stale; i++) {
        char expected[512];
        file = fopen(path, "w");
        assert_non_null(file);
        fputs(stale[i], file);
        fclose(file);
        assert_int_equal(RUN(&suite, "--unfinished", path, "store_buffering"), 2);
        snprintf(expected, sizeof expected, "bide_check: %s: there is no scenario %s\n", path,
                 names[i]);
        assert_said(expected);
    }
    max.must_finish = false;
    assert_int_equal(RUN(&declared, "--unfinished", "/dev/null"), 3);
    assert_int_equal(RUN(&suite, "--unfinished", "/nowhere/file"), 2);
    assert_said("bide_check: /nowhere/file: No such file or directory");
    assert_int_equal(RUN(&suite, "--unfinished"), 2);
    remove(path);
}

static void the_status_is_5_if_executions_were_drawn(void **unused)
{
    (void)unused;
    const bide_check_suite suite = {
        .scenarios = (const bide_check_scenario *const[]){&store_buffering, &takes_turns, NULL}};
    assert_int_equal(RUN(&suite, "--random", "50", "--seed", "9", "store_buffering"), 5);
    assert_said("nothing: 50 executions, sampled, seed 9, ");
    assert_null(strstr(said, "complete"));
    assert_int_equal(RUN(&suite, "--random", "50", "--tap", "store_buffering"), 0);
    assert_said("# scenarios: 1 sampled\n");
    assert_int_equal(RUN(&suite, "--pct", "2", "--seed", "0", "store_buffering"), 5);
    assert_said("nothing: 1001 executions, sampled, seed 0, ");
    assert_int_equal(RUN(&suite, "--random", "100000", "--time", "0.01", "--seed", "0", "--verbose",
                         "store_buffering"),
                     3);
    assert_said(" sampled, ");

    /* A finding is told with the seed that finds it at once. */
    static const char *const seeds[] = {"1", "18446744073709551615"};
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        assert_int_equal(RUN(&suite, "--random", "100000", "--seed", seeds[i], "takes_turns"), 1);
        assert_said("failed assertion (not nothing): ");
        assert_said("to replay it: --replay '~ ");
        const char *again = strstr(said, "    or: --random 1 --seed ");
        assert_non_null(again);
        char seed[24] = "";
        assert_int_equal(sscanf(again, "    or: --random 1 --seed %23s takes_turns", seed), 1);
        char *before = strdup(strchr(said, '\n'));
        assert_int_equal(RUN(&suite, "--random", "1", "--seed", seed, "takes_turns"), 1);
        assert_said("failed assertion (not nothing): 0 executions, sampled, seed ");
        assert_string_equal(strchr(said, '\n'), before);
        free(before);
    }
    assert_int_equal(RUN(&suite, "--pct", "5", "--random", "100000", "--seed", "1", "takes_turns"),
                     1);
    assert_said("    or: --random 1 --pct 5 --seed ");
    assert_int_equal(RUN(&good_suite, "--random", "3"), 5);
    assert_said("scenarios: 1 complete, 1 sampled\n");
    /* What is expected and not drawn is wrong. */
    bide_check_scenario not_drawn = store_buffering;
    not_drawn.expected = BIDE_CHECK_RACE;
    const bide_check_suite never = {.scenarios =
                                        (const bide_check_scenario *const[]){&not_drawn, NULL}};
    assert_int_equal(RUN(&never, "--random", "3"), 1);
    assert_said("nothing (not race): 3 executions, sampled, seed ");

    static const char *const wrong[][5] = {
        {"--random", "0"},
        {"--random"},
        {"--random", "x"},
        {"--pct", "0"},
        {"--pct", "100"},
        {"--pct", "33"},
        {"--seed", "1"},
        {"--random", "1", "--seed", "-1"},
        {"--random", "1", "--seed", "18446744073709551616"},
        {"--random", "1", "--weaken"},
        {"--random", "1", "--preemptions", "1"},
        {"--random", "1", "--executions", "1"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(run(&suite, wrong[i]), 2);
    assert_int_equal(RUN(&suite, "--random", "1", "--replay", "1", "takes_turns"), 2);
}

/* Without a terminal, in this process and in several. */
static void how_far_it_has_come_is_printed_now_and_then(void **unused)
{
    (void)unused;
    bide_check_scenario other = endless;
    other.name = "another";
    const bide_check_suite suite = {
        .scenarios = (const bide_check_scenario *const[]){&endless, &other, NULL}};
    static const char *const jobs[] = {"1", "2"};
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        assert_int_equal(RUN(&suite, "--time", "0.3", "--progress", "0.001", "--jobs", jobs[i]), 3);
        unsigned lines[2] = {0, 0};
        for (const char *line = said, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            bool is_other = strncmp(line, "another: ", 9) == 0;
            if (!is_other && strncmp(line, "endless: ", 9) != 0)
                continue;
            lines[is_other]++;
            const char *rate = strstr(line, " executions, "), *left = strstr(line, " left\n");
            const char *part = strstr(line, " % done, ");
            assert_true(rate != NULL && part != NULL && left != NULL);
            assert_true(rate < part && part < left && left < end);
        }
        /* Each comes after at least twice the time of the one before. */
        for (size_t j = 0; j < 2; j++)
            assert_in_range(lines[j], 1, 30);
        assert_null(strchr(said, '\r'));
    }
    assert_int_equal(RUN(&suite, "--random", "1000000", "--time", "0.3", "--progress", "0.001"), 3);
    assert_said("endless: ");
    assert_said(" left\n");
    assert_int_equal(RUN(&suite, "--executions", "100"), 3);
    assert_null(strstr(said, " done"));
    assert_int_equal(RUN(&suite, "--progress", "0"), 2);
    assert_int_equal(RUN(&suite, "--progress"), 2);
}

/* A process may be lost after it has added its scenario. */
static void junit_has_one_case_for_a_process_that_is_lost_late(void **unused)
{
    (void)unused;
    const char *path = made_file();
    const junit_case second = {.name = "second", .seconds = 2, .summary = "nothing"};
    const junit_case late = {.name = "late", .seconds = 1, .summary = "nothing"};
    const junit_case lost = {.name = "late", .verdict = BAD, .summary = "lost"};
    assert_true(junit_open(path));
    junit_add(2, &second);
    junit_add(1, &late);
    junit_add(3, &second);
    junit_add(1, &lost);
    assert_true(junit_close("program"));
    assert_string_equal(
        read_file(path),
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
        "<testsuite name=\"program\" tests=\"3\" failures=\"1\" skipped=\"0\" time=\"4.000\">\n"
        "<properties><property name=\"complete\" value=\"2\"/><property name=\"bounded\" "
        "value=\"0\"/><property name=\"sampled\" value=\"0\"/><property name=\"unfinished\" "
        "value=\"0\"/><property name=\"wrong\" value=\"1\"/></properties>\n"
        "<testcase name=\"late\" time=\"0.000\"><properties><property name=\"verdict\" "
        "value=\"wrong\"/></properties><failure message=\"lost\"></failure></testcase>\n"
        "<testcase name=\"second\" time=\"2.000\"><properties><property name=\"verdict\" "
        "value=\"complete\"/></properties><system-out>nothing</system-out></testcase>\n"
        "<testcase name=\"second\" time=\"2.000\"><properties><property name=\"verdict\" "
        "value=\"complete\"/></properties><system-out>nothing</system-out></testcase>\n"
        "</testsuite>\n</testsuites>\n");
    remove(path);
}

static void replay_runs_one(void **unused)
{
    (void)unused;
    assert_int_equal(RUN(&good_suite, "--replay", "1", "fails_as_expected"), 0);
    assert_said("   1  thread 1  load ");
    assert_int_equal(RUN(&good_suite, "--replay", "1 2 1<- 2<-", "store_buffering"), 0);
    assert_said("nothing: 1 executions");
    assert_int_equal(RUN(&good_suite, "--replay", "rubbish", "store_buffering"), 1);
    assert_said("bad scenario (not nothing)");
    assert_said("this is not the text of an execution");
    assert_int_equal(RUN(&good_suite, "--replay", "1x9", "store_buffering"), 1);
    assert_said("does not fit");
}

static void hand_over(void *p)
{
    ((state *)p)->block = p;
    bide_atomic_store(&((state *)p)->x, 1, release);
}

static void take(void *p)
{
    if (bide_atomic_load(&((state *)p)->x, acquire) == 1)
        bide_check_assert(((state *)p)->block == p);
}

static void load_y_too_strongly(void *p)
{
    (void)bide_atomic_load(&((state *)p)->y, acquire);
}

SCENARIO(hands_over, .threads = {hand_over, take});
SCENARIO(too_strong, .threads = {load_y_too_strongly});

/* The same without the line of the time that it took, which is the last if nothing else is told. */
static void cut_time(char *text)
{
    char *last = strstr(text, " orders made weaker, ");
    if (last != NULL)
        *last = '\0';
}

extern void __asan_init(void) __attribute__((weak));

/*
 * Runs it in a process of its own, because it weakens all operations that its process has run; and by several, which
 * must say the same. Returns the status.
 */
static int weaken(const bide_check_suite *suite)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static char with_several[sizeof said];
        int other = RUN(suite, "--weaken", "--jobs", "3"), status;
        memcpy(with_several, said, sizeof said);
        status = RUN(suite, "--weaken");
        ssize_t written = write(ends[1], said, strlen(said));
        cut_time(said);
        cut_time(with_several);
        /* (a process under AddressSanitizer says once that it does not know the checker's stacks) */
        bool same = strcmp(said, with_several) == 0 || strstr(said, "a reason is given") != NULL ||
                    __asan_init != NULL;
        _exit(written < 0 || other != status || !same ? 99 : status);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t n; (n = read(ends[0], said + length, sizeof said - 1 - length)) > 0;)
        length += (size_t)n;
    said[length] = '\0';
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void weaken_says_which_orders_are_needed(void **unused)
{
    (void)unused;
    bide_check_suite suite = {
        .scenarios = (const bide_check_scenario *const[]){&hands_over, &fails_as_expected, NULL}};
    assert_int_equal(weaken(&suite), 0);
    assert_said(
        "| `hand_over` | store | `((state *)p)->x` | release | relaxed | race, in `hands_over` |");
    assert_said(
        "| `take` | load | `((state *)p)->x` | acquire | relaxed | race, in `hands_over` |");
    assert_said("2 orders made weaker, 0 of them without a finding");
}

static void weaken_wants_a_reason_for_an_order_that_is_not_needed(void **unused)
{
    (void)unused;
    static const char row[] =
        "| `load_y_too_strongly` | load | `((state *)p)->y` | acquire | relaxed | ";
    bide_check_reason reasons[] = {
        {"load_y_too_strongly", "load", "&((state *)p)->y", "relaxed", "why not"}, {0}};
    bide_check_suite suite = {.scenarios = (const bide_check_scenario *const[]){&too_strong, NULL}};
    assert_int_equal(weaken(&suite), 1);
    assert_said(row);
    assert_said("NOTHING IS FOUND, NO REASON IS GIVEN");
    suite.reasons = reasons;
    assert_int_equal(weaken(&suite), 0);
    assert_said("kept: why not");
}

static void weaken_wants_no_reason_for_one_that_is(void **unused)
{
    (void)unused;
    bide_check_reason reasons[] = {{"take", "load", "&((state *)p)->x", "relaxed", "thought so"},
                                   {0}};
    bide_check_suite suite = {.scenarios = (const bide_check_scenario *const[]){&hands_over, NULL},
                              .reasons = reasons};
    assert_int_equal(weaken(&suite), 1);
    assert_said("a reason is given, but there is a finding");
}

static void weaken_looks_only_at_the_suites_files(void **unused)
{
    (void)unused;
    bide_check_suite suite = {.scenarios = (const bide_check_scenario *const[]){&hands_over, NULL},
                              .files = (const char *const[]){"another.c", NULL}};
    assert_int_equal(weaken(&suite), 0); /* there is no order to weaken */
    assert_said("0 orders made weaker");
    suite.files = (const char *const[]){"another.c", "check_test.c", NULL};
    assert_int_equal(weaken(&suite), 0);
    assert_said("2 orders made weaker");
    suite.scenarios = (const bide_check_scenario *const[]){&fails, NULL};
    assert_int_equal(weaken(&suite), 1);
    assert_said("fails fails with the orders of the source");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weaken_says_which_orders_are_needed),
        cmocka_unit_test(weaken_wants_a_reason_for_an_order_that_is_not_needed),
        cmocka_unit_test(weaken_wants_no_reason_for_one_that_is),
        cmocka_unit_test(weaken_looks_only_at_the_suites_files),
        cmocka_unit_test(every_finding_is_found_again_by_its_text),
        cmocka_unit_test(every_finding_is_found_with_one_preemption_and_found_again),
        cmocka_unit_test(a_race_of_threads_without_steps_is_found_again),
        cmocka_unit_test(locks_conditions_and_threads_are_found_again),
        cmocka_unit_test(who_waits_for_what_has_come_is_left_there_again),
        cmocka_unit_test(a_text_that_is_none_is_a_bad_scenario),
        cmocka_unit_test(a_text_that_does_not_fit_is_a_bad_scenario),
        cmocka_unit_test(the_beginning_of_a_text_is_gone_on_from),
        cmocka_unit_test(no_text_hangs_or_crashes),
        cmocka_unit_test(outcomes_are_sorted_and_counted),
        cmocka_unit_test(each_choice_is_explored_once),
        cmocka_unit_test(choices_are_explored_before_and_after_the_threads),
        cmocka_unit_test(setup_and_finish_are_thread_0),
        cmocka_unit_test(a_leak_is_told_with_its_size),
        cmocka_unit_test(a_result_may_be_freed_twice),
        cmocka_unit_test(findings_have_names),
        cmocka_unit_test(an_await_ends_at_once_later_or_in_another_thread),
        cmocka_unit_test(thread_locals_are_each_threads_own_and_fresh_in_each_execution),
        cmocka_unit_test(who_waits_with_an_old_value_is_not_stuck),
        cmocka_unit_test(set_ups_and_final_checks_may_be_stuck),
        cmocka_unit_test(a_deadline_is_no_sleep_that_ends_for_no_reason),
        cmocka_unit_test(a_race_is_found_however_many_have_used_the_word),
        cmocka_unit_test(no_use_of_a_word_is_forgotten),
        cmocka_unit_test(a_race_is_told_with_the_byte_that_both_use),
        cmocka_unit_test(one_thread_may_not_use_what_it_has_freed),
        cmocka_unit_test(what_is_set_up_and_freed_is_not_to_be_used),
        cmocka_unit_test(operations_on_one_line_keep_their_orders),
        cmocka_unit_test(outside_a_scenario_all_is_plain),
        cmocka_unit_test(the_status_is_0_if_all_is_as_expected),
        cmocka_unit_test(the_status_is_1_if_not),
        cmocka_unit_test(the_status_is_2_for_a_wrong_command_line),
        cmocka_unit_test(the_status_is_3_if_it_is_not_finished),
        cmocka_unit_test(the_status_is_4_if_a_bound_left_something_out),
        cmocka_unit_test(tap_has_a_line_for_each),
        cmocka_unit_test(several_processes_say_the_same_in_the_same_order),
        cmocka_unit_test(how_far_it_has_come_is_shown_on_a_terminal),
        cmocka_unit_test(what_is_not_finished_finds_nothing_of_a_weaker_order),
        cmocka_unit_test(list_prints_the_names_only),
        cmocka_unit_test(verbose_prints_traces_and_outcomes),
        cmocka_unit_test(rounds_of_a_loop_are_folded_in_a_trace),
        cmocka_unit_test(a_graph_has_the_steps_and_their_orders),
        cmocka_unit_test(a_graph_that_cannot_be_written_is_wrong),
        cmocka_unit_test(junit_has_a_case_for_each),
        cmocka_unit_test(what_must_be_finished_is_wrong_if_it_is_not),
        cmocka_unit_test(the_status_is_5_if_executions_were_drawn),
        cmocka_unit_test(how_far_it_has_come_is_printed_now_and_then),
        cmocka_unit_test(junit_has_one_case_for_a_process_that_is_lost_late),
        cmocka_unit_test(replay_runs_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
