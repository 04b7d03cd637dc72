/*
 * Threads that spin: a round of a loop that changes nothing is one execution's only round, and no behaviour is lost by
 * that. Each kind of loop is compared with the same loop that also counts its rounds, which the checker cannot reduce.
 */
#include "testing.h"

#include "ticket_lock.h"

#include "bide/check.h"

#include <inttypes.h>
#include <stdatomic.h>

enum { MAX_NODES = 5 };

typedef struct node {
    _Atomic(struct node *) next;
    atomic_int is_locked;
} node;

typedef struct state {
    ticket_lock ticket;
    atomic_int word;
    _Atomic(node *) tail;
    node nodes[MAX_NODES];
    node *own[MAX_NODES];
    atomic_uint sequence;
    atomic_int data[2];
    atomic_int flag[2], turn;
    atomic_int level[4], last[4];        /* of the filter lock */
    atomic_int pairs[2][2], pair_turn[2]; /* of tournaments */
    atomic_int results[MAX_NODES];
    bool left_alone[MAX_NODES]; /* MCS: the thread has found no successor */
} state;

/*
 * The numbers are exact with GCC. Clang compiles the first round of a loop separately, so an execution or two more may be
 * run before the loop is found, and fewer if a round in which a compare-exchange failed is found to be unneeded (MCS with
 * 3 threads: 24 instead of 66; see 3 below). With AddressSanitizer in the checker, rounds are compared by their states alone: there
 * may be more executions (CLH with clang: 24 instead of 6), but the orders are the same.
 */
#ifdef __clang__
enum { IS_EXACT = false, MORE = 8 };
#else
enum { IS_EXACT = true, MORE = 0 };
#endif

/* ---- Locks ---- */

static void take_test_and_set(void *p)
{
    state *s = p;
    while (atomic_exchange_explicit(&s->word, 1, memory_order_acquire) != 0)
        bide_cpu_relax();
    order_is(s);
    atomic_store_explicit(&s->word, 0, memory_order_release);
}

static void take_test_and_set_twice(void *p)
{
    take_test_and_set(p);
    take_test_and_set(p);
}

static void take_set_then_test(void *p)
{
    state *s = p;
    while (atomic_exchange_explicit(&s->word, 1, memory_order_acquire) != 0) {
        while (atomic_load_explicit(&s->word, memory_order_relaxed) != 0) {
        }
    }
    order_is(s);
    atomic_store_explicit(&s->word, 0, memory_order_release);
}

static void take_by_compare_exchange(void *p)
{
    state *s = p;
    int zero = 0;
    while (!atomic_compare_exchange_strong_explicit(&s->word, &zero, 1, memory_order_acquire,
                                                    memory_order_relaxed))
        zero = 0;
    order_is(s);
    atomic_store_explicit(&s->word, 0, memory_order_release);
}

/* Of the queue lock by Mellor-Crummey and Scott. */
static void take_mcs_lock(void *p)
{
    state *s = p;
    node *me = &s->nodes[bide_check_thread()], *expected = me, *after;
    atomic_store_explicit(&me->is_locked, 1, memory_order_relaxed);
    node *before = atomic_exchange_explicit(&s->tail, me, memory_order_acq_rel);
    if (before != NULL) {
        atomic_store_explicit(&before->next, me, memory_order_release);
        while (atomic_load_explicit(&me->is_locked, memory_order_acquire) != 0)
            bide_cpu_relax();
    }
    order_is(s);
    after = atomic_load_explicit(&me->next, memory_order_acquire);
    if (after == NULL) {
        if (atomic_compare_exchange_strong_explicit(&s->tail, &expected, NULL, memory_order_acq_rel,
                                                    memory_order_relaxed)) {
            s->left_alone[bide_check_thread()] = true;
            return;
        }
        while ((after = atomic_load_explicit(&me->next, memory_order_acquire)) == NULL)
            bide_cpu_relax();
    }
    atomic_store_explicit(&after->is_locked, 0, memory_order_release);
}

static void make_clh_lock(void *p)
{
    state *s = p;
    atomic_store_explicit(&s->tail, &s->nodes[0], memory_order_relaxed);
    for (int i = 1; i < MAX_NODES; i++)
        s->own[i] = &s->nodes[i];
}

/* Of the queue lock by Craig, and Landin and Hagersten. */
static void take_clh_lock(void *p)
{
    state *s = p;
    node *me = s->own[bide_check_thread()];
    atomic_store_explicit(&me->is_locked, 1, memory_order_relaxed);
    node *before = atomic_exchange_explicit(&s->tail, me, memory_order_acq_rel);
    while (atomic_load_explicit(&before->is_locked, memory_order_acquire) != 0)
        bide_cpu_relax();
    order_is(s);
    atomic_store_explicit(&me->is_locked, 0, memory_order_release);
    s->own[bide_check_thread()] = before;
}

static void take_peterson_lock(void *p)
{
    state *s = p;
    int self = (int)bide_check_thread() - 1, other = 1 - self;
    atomic_store(&s->flag[self], 1);
    atomic_store(&s->turn, other);
    while (atomic_load(&s->flag[other]) != 0 && atomic_load(&s->turn) == other)
        bide_cpu_relax();
    order_is(s);
    atomic_store(&s->flag[self], 0);
}

static void take_dekker_lock(void *p)
{
    state *s = p;
    int self = (int)bide_check_thread() - 1, other = 1 - self;
    atomic_store(&s->flag[self], 1);
    while (atomic_load(&s->flag[other]) != 0) {
        if (atomic_load(&s->turn) == self)
            continue;
        atomic_store(&s->flag[self], 0);
        while (atomic_load(&s->turn) != self) {
        }
        atomic_store(&s->flag[self], 1);
    }
    order_is(s);
    atomic_store(&s->turn, other);
    atomic_store(&s->flag[self], 0);
}

/* Peterson's lock for n threads: a level for each thread but one, and one thread stays behind at each. */
static void take_filter_lock(void *p, int threads)
{
    state *s = p;
    int self = (int)bide_check_thread() - 1;
    for (int level = 1; level < threads; level++) {
        atomic_store(&s->level[self], level);
        atomic_store(&s->last[level], self);
        for (int other = 0; other < threads; other++) {
            while (other != self && atomic_load(&s->level[other]) >= level &&
                   atomic_load(&s->last[level]) == self)
                bide_cpu_relax();
        }
    }
    order_is(s);
    atomic_store(&s->level[self], 0);
}

static void take_filter_lock_2(void *p)
{
    take_filter_lock(p, 2);
}

static void take_filter_lock_3(void *p)
{
    take_filter_lock(p, 3);
}

/* A lock for two threads, of a tournament: at a pair's table, and at that of the winners. */
typedef struct table {
    atomic_int *flag, *turn;
} table;

static void enter_peterson(table t, int self)
{
    atomic_store(&t.flag[self], 1);
    atomic_store(t.turn, 1 - self);
    while (atomic_load(&t.flag[1 - self]) != 0 && atomic_load(t.turn) == 1 - self)
        bide_cpu_relax();
}

static void leave_peterson(table t, int self)
{
    atomic_store(&t.flag[self], 0);
}

static void enter_dekker(table t, int self)
{
    atomic_store(&t.flag[self], 1);
    while (atomic_load(&t.flag[1 - self]) != 0) {
        if (atomic_load(t.turn) == self)
            continue;
        atomic_store(&t.flag[self], 0);
        while (atomic_load(t.turn) != self) {
        }
        atomic_store(&t.flag[self], 1);
    }
}

static void leave_dekker(table t, int self)
{
    atomic_store(t.turn, 1 - self);
    atomic_store(&t.flag[self], 0);
}

static void take_tournament(void *p, void (*enter)(table, int), void (*leave)(table, int))
{
    state *s = p;
    int self = (int)bide_check_thread() - 1, pair = self / 2;
    table own = {s->pairs[pair], &s->pair_turn[pair]}, top = {s->flag, &s->turn};
    enter(own, self % 2);
    enter(top, pair);
    order_is(s);
    leave(top, pair);
    leave(own, self % 2);
}

static void take_peterson_tournament(void *p)
{
    take_tournament(p, enter_peterson, leave_peterson);
}

static void take_dekker_tournament(void *p)
{
    take_tournament(p, enter_dekker, leave_dekker);
}

static void take_test_then_set(void *p)
{
    state *s = p;
    do {
        while (atomic_load_explicit(&s->word, memory_order_relaxed) != 0)
            bide_cpu_relax();
    } while (atomic_exchange_explicit(&s->word, 1, memory_order_acquire) != 0);
    order_is(s);
    atomic_store_explicit(&s->word, 0, memory_order_release);
}

static void write_both(void *p)
{
    state *s = p;
    unsigned sequence = atomic_load_explicit(&s->sequence, memory_order_relaxed);
    atomic_store_explicit(&s->sequence, sequence + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&s->data[0], 1, memory_order_relaxed);
    atomic_store_explicit(&s->data[1], 1, memory_order_relaxed);
    atomic_store_explicit(&s->sequence, sequence + 2, memory_order_release);
}

static void read_both(void *p)
{
    state *s = p;
    unsigned before, after;
    int a, b;
    do {
        do
            before = atomic_load_explicit(&s->sequence, memory_order_acquire);
        while (before % 2 != 0);
        a = atomic_load_explicit(&s->data[0], memory_order_relaxed);
        b = atomic_load_explicit(&s->data[1], memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        after = atomic_load_explicit(&s->sequence, memory_order_relaxed);
    } while (before != after);
    bide_check_assert(a == b);
}

#define TIMES2(f) \
    {             \
        f, f      \
    }
#define TIMES3(f) \
    {             \
        f, f, f   \
    }
#define TIMES4(f)  \
    {              \
        f, f, f, f \
    }

/*
 * The executions of n threads, if only the round that ends a wait counts. One more is a round, or an execution, that is
 * run twice. One less is a behaviour that is lost.
 *
 * 1. Ticket, test and set, set then test, compare-exchange, CLH: the order of the threads determines each value that the
 *    last rounds read. That is n!, and (2n)! / 2^n if each thread takes the lock twice.
 * 2. Test, then set: the last test of the thread that is k-th reads 0 from the setup or from one of the k - 1 stores of
 *    those before it. That is k ways in each order: n! * n!.
 * 3. MCS: each holder but the last finds its successor's link, or replaces the tail before the successor comes, or
 *    neither. In that last case its compare-exchange reads the tail that any later thread of the same queue has left,
 *    and no earlier one than its predecessor's has read. For each order that is 1 + 2 * 2 + 6 = 11 with three threads,
 *    and 1 + 3 * 2 + (6 + 4 + 6) + 22 = 45 with four. A holder whose compare-exchange fails then reads the link, and
 *    continues as if it had found the link at once. Without these rounds 2^(n - 1) remain for each order, and these are
 *    the outcomes: the order, and which holders leave alone.
 * 4. Peterson, Dekker: the first thread reads the other's flag before or after it is set. That is 2 in each order.
 * 5. Sequence lock: each reader reads before or after the writer, independently of the other readers: 2^n.
 *
 * The filter and the tournaments read on the way what others have left at each level, for which there is no simple
 * formula. Their numbers are those that have been observed.
 */
static const struct {
    const char *name;
    void (*threads[BIDE_CHECK_THREADS])(void *);
    void (*setup)(void *);
    unsigned outcomes; /* the orders in which the lock can be taken; MCS: see 3 */
    unsigned executions;
} locks[] = {
    {"ticket, 3", TIMES3(take_ticket_lock), NULL, 6, 6},
    {"ticket, 4", TIMES4(take_ticket_lock), NULL, 24, 24},
    {"ticket twice, 3", TIMES3(take_ticket_lock_twice), NULL, 90, 90},
    {"ticket twice, 4", TIMES4(take_ticket_lock_twice), NULL, 2520, 2520},
    {"test and set, 3", TIMES3(take_test_and_set), NULL, 6, 6},
    {"test and set, 4", TIMES4(take_test_and_set), NULL, 24, 24},
    {"test and set twice, 3", TIMES3(take_test_and_set_twice), NULL, 90, 90},
    {"test and set twice, 4", TIMES4(take_test_and_set_twice), NULL, 2520, 2520},
    {"set, then test, 3", TIMES3(take_set_then_test), NULL, 6, 6},
    {"set, then test, 4", TIMES4(take_set_then_test), NULL, 24, 24},
    {"test, then set, 3", TIMES3(take_test_then_set), NULL, 6, 36},
    {"test, then set, 4", TIMES4(take_test_then_set), NULL, 24, 576},
    {"compare-exchange, 3", TIMES3(take_by_compare_exchange), NULL, 6, 6},
    {"compare-exchange, 4", TIMES4(take_by_compare_exchange), NULL, 24, 24},
    {"MCS, 3", TIMES3(take_mcs_lock), NULL, 6 * 4, 66},
    {"MCS, 4", TIMES4(take_mcs_lock), NULL, 24 * 8, 1080},
    {"CLH, 3", TIMES3(take_clh_lock), make_clh_lock, 6, 6},
    {"CLH, 4", TIMES4(take_clh_lock), make_clh_lock, 24, 24},
    {"Peterson", TIMES2(take_peterson_lock), NULL, 2, 4},
    {"Dekker", TIMES2(take_dekker_lock), NULL, 2, 4},
    {"filter, 2", TIMES2(take_filter_lock_2), NULL, 2, 4},
    {"filter, 3", TIMES3(take_filter_lock_3), NULL, 6, 663},
    {"tournament of Peterson's, 3", TIMES3(take_peterson_tournament), NULL, 6, 40},
    {"tournament of Peterson's, 4", TIMES4(take_peterson_tournament), NULL, 24, 768},
    {"tournament of Dekker's, 3", TIMES3(take_dekker_tournament), NULL, 6, 64},
    {"tournament of Dekker's, 4", TIMES4(take_dekker_tournament), NULL, 24, 1136},
    {"sequence lock, 2 readers", {write_both, read_both, read_both}, NULL, 1, 4},
    {"sequence lock, 3 readers", {write_both, read_both, read_both, read_both}, NULL, 1, 8},
};

static void note_outcome(void *p)
{
    note_order(p);
    for (int i = 1; i < MAX_NODES; i++) {
        if (((state *)p)->left_alone[i])
            bide_check_note("%d leaves alone", i);
    }
}

static void each_lock_is_taken_in_each_order_once(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof locks / sizeof *locks; i++) {
        if (__asan_init != NULL && locks[i].threads[0] == write_both)
            continue;
        bide_check_scenario scenario = {.name = locks[i].name,
                                        .size = sizeof(state),
                                        .setup = locks[i].setup,
                                        .finish = note_outcome};
        memcpy(scenario.threads, locks[i].threads, sizeof scenario.threads);
        bide_check_result r;
        clock_t begun = clock();
        bide_check_explore(&scenario, &r);
        printf("# %s: %" PRIu64 " executions and %" PRIu64 " given up, %.2f s\n", locks[i].name,
               r.executions, r.blocked, (double)(clock() - begun) / CLOCKS_PER_SEC);
        assert_int_equal(r.finding, BIDE_CHECK_NOTHING);
        assert_int_equal(r.outcomes_count, locks[i].outcomes);
        assert_true(r.executions >= (IS_EXACT ? locks[i].executions : locks[i].outcomes));
        if (__asan_init == NULL)
            assert_true(r.executions <= locks[i].executions + MORE);
        assert_false(r.is_unfinished);
        bide_check_result_free(&r);
    }
}

/* ---- Rounds that leave something behind are not left out ---- */

static void set_word(void *p)
{
    atomic_store_explicit(&((state *)p)->word, 1, memory_order_release);
}

static void wait_and_remember(void *p)
{
    state *s = p;
    int waited = 0;
    while (atomic_load_explicit(&s->word, memory_order_acquire) == 0) {
        waited = 1;
        bide_cpu_relax();
    }
    atomic_store_explicit(&s->results[1], waited, memory_order_relaxed);
}

static void wait_and_write(void *p)
{
    state *s = p;
    while (atomic_load_explicit(&s->word, memory_order_acquire) == 0) {
        s->ticket.order = 1;
        bide_cpu_relax();
    }
    atomic_store_explicit(&s->results[1], s->ticket.order, memory_order_relaxed);
}

static void wait_and_note(void *p)
{
    state *s = p;
    while (atomic_load_explicit(&s->word, memory_order_acquire) == 0) {
        bide_check_note("waited");
        bide_cpu_relax();
    }
}

static void wait_and_look_elsewhere(void *p)
{
    state *s = p;
    int seen = 0;
    do {
        seen = atomic_load_explicit(&s->data[0], memory_order_relaxed);
        bide_cpu_relax();
    } while (atomic_load_explicit(&s->word, memory_order_acquire) == 0);
    atomic_store_explicit(&s->results[1], seen == 0, memory_order_relaxed);
}

static void wait_and_count_in_the_frame(void *p)
{
    state *s = p;
    volatile int rounds = 0;
    while (atomic_load_explicit(&s->word, memory_order_acquire) == 0) {
        if (rounds == 0)
            rounds = 1;
        bide_cpu_relax();
    }
    atomic_store_explicit(&s->results[1], rounds, memory_order_relaxed);
}

static void set_data_and_word(void *p)
{
    atomic_store_explicit(&((state *)p)->data[0], 1, memory_order_relaxed);
    set_word(p);
}

static void note_result(void *p)
{
    bide_check_note("%d", atomic_load(&((state *)p)->results[1]));
}

static void what_a_round_leaves_behind_is_seen(void **unused)
{
    (void)unused;
    static const struct {
        void (*waits)(void *), (*sets)(void *);
    } all[] = {
        {wait_and_remember, set_word},
        {wait_and_write, set_word},
        {wait_and_note, set_word},
        {wait_and_look_elsewhere, set_data_and_word},
        {wait_and_count_in_the_frame, set_word},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bide_check_scenario scenario = {.name = "leaves",
                                        .size = sizeof(state),
                                        .threads = {all[i].waits, all[i].sets},
                                        .finish = note_result};
        bide_check_result r;
        bide_check_explore(&scenario, &r);
        printf("# %zu: %s, %zu outcomes\n", i, bide_check_finding_name(r.finding),
               r.outcomes_count);
        assert_int_equal(r.finding, BIDE_CHECK_NOTHING);
        assert_in_range(r.outcomes_count, 2, 3); /* a note may be made twice */
        bide_check_result_free(&r);
    }
}

/* Another thread writes to this one's frame while it spins. */
typedef struct request {
    atomic_int is_done;
    int value;
} request;

static void ask(void *p)
{
    state *s = p;
    request r = {0};
    atomic_store_explicit(&s->tail, (node *)&r, memory_order_release);
    while (atomic_load_explicit(&r.is_done, memory_order_acquire) == 0)
        bide_cpu_relax();
    bide_check_assert(r.value == 7);
}

static void answer(void *p)
{
    state *s = p;
    request *r;
    while ((r = (request *)atomic_load_explicit(&s->tail, memory_order_acquire)) == NULL) {
    }
    r->value = 7;
    atomic_store_explicit(&r->is_done, 1, memory_order_release);
}

static void answer_too_early(void *p)
{
    state *s = p;
    request *r;
    while ((r = (request *)atomic_load_explicit(&s->tail, memory_order_relaxed)) == NULL) {
    }
    atomic_store_explicit(&r->is_done, 1, memory_order_relaxed);
    r->value = 7;
}

static bide_check_finding found(void (*a)(void *), void (*b)(void *))
{
    bide_check_scenario scenario = {.name = "two", .size = sizeof(state), .threads = {a, b}};
    bide_check_result r, again;
    bide_check_finding finding = bide_check_explore(&scenario, &r);
    if (r.replay != NULL) {
        assert_int_equal(bide_check_replay(&scenario, r.replay, &again), finding);
        assert_string_equal(again.message, r.message);
        bide_check_result_free(&again);
    }
    bide_check_result_free(&r);
    return finding;
}

static void another_thread_may_write_to_the_frame(void **unused)
{
    (void)unused;
    assert_int_equal(found(ask, answer), BIDE_CHECK_NOTHING);
    assert_int_equal(found(ask, answer_too_early), BIDE_CHECK_RACE);
}

/* ---- Waits that never end ---- */

static void take_and_keep(void *p)
{
    while (atomic_exchange(&((state *)p)->word, 1) != 0) {
    }
}

static void take_twice(void *p)
{
    take_ticket_lock(p);
    atomic_fetch_add(&((state *)p)->ticket.next, 1);
}

static void wait_for_two(void *p)
{
    while (atomic_load(&((state *)p)->word) != 2) {
    }
}

static void wait_for_both(void *p)
{
    state *s = p;
    while (atomic_load(&s->word) == 0 || atomic_load(&s->turn) == 0)
        bide_cpu_relax();
}

static void a_wait_that_never_ends_is_found(void **unused)
{
    (void)unused;
    assert_int_equal(found(take_and_keep, take_and_keep), BIDE_CHECK_LIVELOCK);
    assert_int_equal(found(take_ticket_lock, take_twice), BIDE_CHECK_LIVELOCK);
    assert_int_equal(found(wait_for_two, set_word), BIDE_CHECK_LIVELOCK);
    assert_int_equal(found(wait_for_both, set_word), BIDE_CHECK_LIVELOCK);
    assert_int_equal(found(take_by_compare_exchange, take_and_keep), BIDE_CHECK_LIVELOCK);
}

/* ---- Rounds that store the value that they have read ---- */

static void set_for_ever(void *p)
{
    state *s = p;
    atomic_fetch_add(&s->word, 1);
    while (atomic_exchange(&s->word, 1) == 1)
        bide_cpu_relax();
}

static void set_for_ever_without_a_hint(void *p)
{
    state *s = p;
    atomic_fetch_add(&s->word, 1);
    while (atomic_exchange(&s->word, 1) == 1) {
    }
}

static void replace_by_the_same(void *p)
{
    state *s = p;
    int one = 1;
    atomic_fetch_add(&s->word, 1);
    while (atomic_compare_exchange_strong(&s->word, &one, 1))
        bide_cpu_relax();
}

static void fail_to_replace(void *p)
{
    state *s = p;
    int zero = 0;
    atomic_fetch_add(&s->word, 1);
    while (!atomic_compare_exchange_strong(&s->word, &zero, 1) && zero == 1) {
        zero = 0;
        bide_cpu_relax();
    }
}

static void set_twice_a_round(void *p)
{
    state *s = p;
    atomic_fetch_add(&s->word, 1);
    while (atomic_fetch_or(&s->word, 0) == 1 && atomic_exchange(&s->word, 1) == 1)
        bide_cpu_relax();
}

static void look_once(void *p)
{
    atomic_load(&((state *)p)->word);
}

static void set_another_word(void *p)
{
    atomic_store(&((state *)p)->turn, 1);
}

/* Stores what it has read, too, once. */
static void add_nothing(void *p)
{
    atomic_fetch_add(&((state *)p)->word, 0);
}

static void add_and_take_back(void *p)
{
    state *s = p;
    atomic_fetch_add(&s->word, 1);
    atomic_fetch_sub(&s->word, 1);
}

/* Waits for a value that is never there. */
static void replace_in_vain(void *p)
{
    int value = 5;
    while (!atomic_compare_exchange_strong(&((state *)p)->word, &value, 6))
        value = 5;
}

static void set_two(void *p)
{
    atomic_store(&((state *)p)->word, 2);
}

static void replace_one_by_two(void *p)
{
    int one = 1;
    while (!atomic_compare_exchange_strong(&((state *)p)->word, &one, 2))
        one = 1;
}

static const struct {
    void (*thread)(void *);
    unsigned set, replaced; /* executions with set_two() and with replace_one_by_two() */
} rewrites[] = {
    {set_for_ever, 2, 1},    {set_for_ever_without_a_hint, 2, 1}, {replace_by_the_same, 2, 1},
    {fail_to_replace, 2, 1}, {set_twice_a_round, 3, 2},
};

enum { REWRITES = sizeof rewrites / sizeof *rewrites };

static void a_round_that_stores_what_it_has_read_may_repeat_for_ever(void **unused)
{
    (void)unused;
    void (*const others[])(void *) = {
        look_once, set_another_word, add_nothing, add_and_take_back, replace_in_vain,
    };
    for (size_t i = 0; i < REWRITES; i++) {
        void (*thread)(void *) = rewrites[i].thread;
        assert_int_equal(found(thread, NULL), BIDE_CHECK_LIVELOCK);
        for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
            printf("# %zu, %zu\n", i, k);
            assert_int_equal(found(thread, others[k]), BIDE_CHECK_LIVELOCK);
            assert_int_equal(found(others[k], thread), BIDE_CHECK_LIVELOCK);
        }
    }
}

static void rounds_that_store_what_they_have_read_end_if_another_thread_changes_it(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < REWRITES; i++) {
        for (size_t k = 0; k < 4; k++) {
            unsigned executions = k < 2 ? rewrites[i].set : rewrites[i].replaced;
            bide_check_scenario scenario = {.name = "changes", .size = sizeof(state)};
            scenario.threads[k % 2] = rewrites[i].thread;
            scenario.threads[1 - k % 2] = k < 2 ? set_two : replace_one_by_two;
            bide_check_result r;
            bide_check_explore(&scenario, &r);
            printf("# %zu, %zu: %s, %" PRIu64 " executions and %" PRIu64 " given up\n", i, k,
                   bide_check_finding_name(r.finding), r.executions, r.blocked);
            assert_int_equal(r.finding, BIDE_CHECK_NOTHING);
            assert_false(r.is_unfinished);
            assert_true(r.executions != 0);
            if (__asan_init == NULL)
                assert_true(r.executions <= executions + MORE);
            bide_check_result_free(&r);
        }
    }
}

/* ---- Random programs ---- */

typedef enum kind {
    STORES,
    LOADS,
    ADDS,
    AWAITS,
    AWAITS_BOTH,
    SETS,
    RESETS,
    CLAIMS,
    SWAPS,
    KINDS
} kind;

typedef struct step {
    kind kind;
    int location;
    int value;
    bool is_strong;
} step;

enum { MAX_LENGTH = 4 };

static struct {
    step steps[3][MAX_LENGTH];
    unsigned lengths[3];
    bool counts;
} program;

static int load_of(state *s, int location, bool is_strong)
{
    return is_strong ? atomic_load_explicit(&s->data[location], memory_order_acquire)
                     : atomic_load_explicit(&s->data[location], memory_order_relaxed);
}

/* `counts`: the loop counts its rounds, so that each leaves something behind. */
static int take_step(state *s, const step *step, bool counts)
{
    atomic_int *object = &s->data[step->location];
    volatile unsigned rounds = 0;
    int seen = 0;
    switch (step->kind) {
    case STORES:
        if (step->is_strong)
            atomic_store_explicit(object, step->value, memory_order_release);
        else
            atomic_store_explicit(object, step->value, memory_order_relaxed);
        return 0;
    case LOADS:
        return load_of(s, step->location, step->is_strong);
    case ADDS:
        return atomic_fetch_add_explicit(object, 1, memory_order_acq_rel);
    case AWAITS:
        while (load_of(s, step->location, step->is_strong) != step->value) {
            if (counts)
                rounds++;
            bide_cpu_relax();
        }
        return 0;
    case AWAITS_BOTH:
        while (load_of(s, 0, step->is_strong) == 0 || load_of(s, 1, false) == step->value) {
            if (counts)
                rounds++;
            bide_cpu_relax();
        }
        return 0;
    case SETS:
        while (atomic_exchange_explicit(object, 1, memory_order_acquire) == 1) {
            if (counts)
                rounds++;
            if (counts && rounds > 2)
                bide_atomic_retry();
            bide_cpu_relax();
        }
        return 0;
    case RESETS:
        for (;;) {
            int expected = step->value;
            if (!atomic_compare_exchange_strong_explicit(
                    object, &expected, step->value, memory_order_acq_rel, memory_order_relaxed))
                return expected;
            if (counts && ++rounds > 2)
                bide_atomic_retry();
            bide_cpu_relax();
        }
    case CLAIMS:
        for (;;) {
            int expected = step->value;
            if (atomic_compare_exchange_strong_explicit(object, &expected, 3, memory_order_acq_rel,
                                                        memory_order_relaxed))
                return 0;
            if (counts)
                rounds++;
            bide_cpu_relax();
        }
    case SWAPS:
        do {
            seen = load_of(s, step->location, false);
            if (counts)
                rounds++;
            bide_cpu_relax();
        } while (!atomic_compare_exchange_strong_explicit(
            object, &seen, seen + step->value, memory_order_acq_rel, memory_order_relaxed));
        return seen;
    default:
        return 0;
    }
}

static void run_steps(void *p)
{
    state *s = p;
    unsigned self = bide_check_thread();
    int sum = 0;
    for (unsigned i = 0; i < program.lengths[self - 1]; i++)
        sum = sum * 5 + take_step(s, &program.steps[self - 1][i], program.counts);
    atomic_store_explicit(&s->results[self], sum, memory_order_relaxed);
}

static void note_all(void *p)
{
    state *s = p;
    bide_check_note("%d %d %d %d %d", s->results[1], s->results[2], s->results[3], s->data[0],
                    s->data[1]);
}

static void make_program(uint64_t *random, unsigned threads)
{
    for (unsigned t = 0; t < 3; t++) {
        program.lengths[t] =
            t < threads ? 1 + (unsigned)(testing_random(random) % (threads == 2 ? 4 : 3)) : 0;
        for (unsigned i = 0; i < program.lengths[t]; i++) {
            bool waits = testing_random(random) % 3 == 0;
            program.steps[t][i] = (step){
                .kind = waits ? (kind)(AWAITS + testing_random(random) % (KINDS - AWAITS))
                              : (kind)(testing_random(random) % AWAITS),
                .location = (int)(testing_random(random) % 2),
                .value = (int)(testing_random(random) % 3),
                .is_strong = testing_random(random) % 2 != 0,
            };
        }
    }
}

/* Executions of the program that are drawn find nothing, and their outcomes are among those of the exploration. */
static void assert_sampled_within(const bide_check_scenario *scenario, uint64_t seed,
                                  const bide_check_result *explored)
{
    bide_check_sampling sampling = {.runs = 20, .seed = seed, .depth = (unsigned)(seed % 4)};
    bide_check_result r;
    if (bide_check_sample(scenario, &sampling, &r) != BIDE_CHECK_NOTHING)
        printf("# seed %" PRIu64 ": %s\n%s", r.seed, r.message, r.trace);
    assert_int_equal(r.finding, BIDE_CHECK_NOTHING);
    for (size_t i = 0, j = 0; i < r.outcomes_count; i++) {
        while (j < explored->outcomes_count && strcmp(explored->outcomes[j], r.outcomes[i]) != 0)
            j++;
        assert_true(j < explored->outcomes_count);
    }
    bide_check_result_free(&r);
}

static void assert_replayed(const bide_check_scenario *scenario, const bide_check_result *explored)
{
    bide_check_result r;
    bide_check_replay(scenario, explored->replay, &r);
    if (r.finding != explored->finding)
        printf("# replay %s: %s\n%s", explored->replay, r.message, explored->trace);
    assert_int_equal(r.finding, explored->finding);
    assert_string_equal(r.message, explored->message);
    bide_check_result_free(&r);
}

static void no_behaviour_is_lost_in_random_programs(void **unused)
{
    (void)unused;
    uint64_t random = testing_seed();
    unsigned compared = 0, stuck = 0, fewer = 0, rounds = rounds_of(__asan_init == NULL ? 1500 : 200);
    for (unsigned i = 0; i < rounds; i++) {
        unsigned threads = 2 + (unsigned)(testing_random(&random) % 2);
        make_program(&random, threads);
        bide_check_scenario scenario = {.name = "random",
                                        .size = sizeof(state),
                                        .threads = {run_steps, run_steps},
                                        .finish = note_all,
                                        .max_executions = 4000};
        if (threads == 3)
            scenario.threads[2] = run_steps;
        bide_check_result plain, counted;
        program.counts = false;
        bide_check_explore(&scenario, &plain);
        program.counts = true;
        bide_check_explore(&scenario, &counted);
        bool gives_up = false;
        for (unsigned t = 0; t < threads; t++) {
            for (unsigned k = 0; k < program.lengths[t]; k++)
                gives_up = gives_up || program.steps[t][k].kind == SETS ||
                           program.steps[t][k].kind == RESETS;
        }
        bool is_whole = !plain.is_unfinished && !counted.is_unfinished;
        if (is_whole) {
            compared++;
            stuck += plain.finding != BIDE_CHECK_NOTHING;
            fewer += plain.executions < counted.executions;
            /* (a loop that counts gives up an exchange for ever, and so does not find that) */
            bool same = plain.finding == counted.finding ||
                        (gives_up && plain.finding != BIDE_CHECK_NOTHING);
            if (plain.finding == BIDE_CHECK_NOTHING)
                same = same && plain.outcomes_count == counted.outcomes_count;
            for (size_t o = 0;
                 same && plain.finding == BIDE_CHECK_NOTHING && o < plain.outcomes_count; o++)
                same = strcmp(plain.outcomes[o], counted.outcomes[o]) == 0;
            if (!same) {
                printf("# program %u: %s and %s, %zu and %zu outcomes, %" PRIu64 " and %" PRIu64
                       " executions\n",
                       i, bide_check_finding_name(plain.finding),
                       bide_check_finding_name(counted.finding), plain.outcomes_count,
                       counted.outcomes_count, plain.executions, counted.executions);
                for (unsigned t = 0; t < threads; t++) {
                    for (unsigned k = 0; k < program.lengths[t]; k++)
                        printf("#   thread %u: kind %d, location %d, value %d, %d\n", t + 1,
                               program.steps[t][k].kind, program.steps[t][k].location,
                               program.steps[t][k].value, program.steps[t][k].is_strong);
                }
            }
            assert_true(same);
            program.counts = false;
            if (plain.finding != BIDE_CHECK_NOTHING)
                assert_replayed(&scenario, &plain);
            else
                assert_sampled_within(&scenario, testing_random(&random), &plain);
        }
        bide_check_result_free(&plain);
        bide_check_result_free(&counted);
    }
    printf("# %u of %u programs compared, %u of them wait for ever, %u have fewer executions\n",
           compared, rounds, stuck, fewer);
    assert_true(compared != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_lock_is_taken_in_each_order_once),
        cmocka_unit_test(what_a_round_leaves_behind_is_seen),
        cmocka_unit_test(another_thread_may_write_to_the_frame),
        cmocka_unit_test(a_wait_that_never_ends_is_found),
        cmocka_unit_test(a_round_that_stores_what_it_has_read_may_repeat_for_ever),
        cmocka_unit_test(rounds_that_store_what_they_have_read_end_if_another_thread_changes_it),
        cmocka_unit_test(no_behaviour_is_lost_in_random_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
