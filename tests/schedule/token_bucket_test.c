/*
 * The token bucket in virtual time: the times of takes, to the nanosecond; the order of takers; the content after each
 * end of a wait; numbers at their limits.
 */
#include "testing.h"

#include <bide/bide.h>

#include <errno.h>

#define SECOND UINT64_C(1000000000)

/* ---- One taker after the other ---- */

struct taker {
    bide_task task;
    bide_token_bucket *bucket;
    uint64_t tokens;
    bide_token_take_operation taking;
    bide_with_deadline_operation limited;
    uint64_t deadline; /* or 0 */
    int status;
    uint64_t had; /* when it had its tokens */
    unsigned *next_place;
    unsigned place; /* among the takers that ended with 0, from 1 */
};

bide_coroutine(taker_body)
{
    bide_begin(taker_body, struct taker * self);
    if (self->deadline != 0)
        bide_await_status(
            self->status,
            bide_with_deadline(&self->limited, self->deadline,
                               bide_token_bucket_take(&self->taking, self->bucket, self->tokens)));
    else
        bide_await_status(self->status,
                          bide_token_bucket_take(&self->taking, self->bucket, self->tokens));
    self->had = bide_now(bide_this_context());
    if (self->status == 0 && self->next_place != NULL)
        self->place = ++*self->next_place;
    bide_end();
}

static bide_awaiter *taker_init(struct taker *self, bide_token_bucket *bucket, uint64_t tokens)
{
    self->bucket = bucket;
    self->tokens = tokens;
    self->deadline = 0;
    self->status = 1;
    self->next_place = NULL;
    self->place = 0;
    return bide_task_init(&self->task, &taker_body);
}

/* Takes the tokens; returns the time at which it had them. */
static uint64_t take(bide_sim_loop *loop, bide_token_bucket *bucket, uint64_t tokens)
{
    struct taker taker;
    assert_int_equal(bide_sim_loop_wait(loop, taker_init(&taker, bucket, tokens)), 0);
    assert_int_equal(taker.status, 0);
    return taker.had;
}

static void it_is_full_at_first_and_fills_at_its_rate(void **state)
{
    (void)state;
    bide_sim_loop loop;
    bide_token_bucket bucket;
    bide_sim_loop_init(&loop, 1);
    assert_int_equal(bide_token_bucket_init(&bucket, 100, SECOND, 20), 0);
    uint64_t begin = bide_now(&loop.context);
    for (int i = 0; i < 20; i++)
        assert_int_equal(take(&loop, &bucket, 1), begin);
    assert_int_equal(take(&loop, &bucket, 1), begin + SECOND / 100);
    assert_int_equal(take(&loop, &bucket, 20), begin + SECOND / 100 * 21);
    bide_sim_loop_run_until(&loop, begin + 10 * SECOND);
    assert_int_equal(bide_token_bucket_available(&bucket, &loop.context), 20);
    bide_token_bucket_destroy(&bucket);
    bide_sim_loop_destroy(&loop);
}

/* A third of a second is no whole number of nanoseconds. */
static void thousands_of_tokens_later_no_nanosecond_is_lost(void **state)
{
    (void)state;
    bide_sim_loop loop;
    bide_token_bucket bucket;
    bide_sim_loop_init(&loop, 1);
    assert_int_equal(bide_token_bucket_init(&bucket, 3, SECOND, 1), 0);
    uint64_t begin = take(&loop, &bucket, 1);
    for (uint64_t i = 1; i <= 3000; i++)
        assert_int_equal(take(&loop, &bucket, 1) - begin, (i * SECOND + 2) / 3);

    /* seven in three nanoseconds: two and a third arrive in the first */
    assert_int_equal(bide_token_bucket_init(&bucket, 7, 3, 2), 0);
    begin = take(&loop, &bucket, 2);
    for (uint64_t i = 1; i <= 3000; i++)
        assert_int_equal(take(&loop, &bucket, 1) - begin, (i * 3 + 6) / 7);
    bide_sim_loop_destroy(&loop);
}

static void numbers_that_mean_nothing_are_refused(void **state)
{
    (void)state;
    bide_sim_loop loop;
    bide_token_bucket bucket;
    struct taker taker;
    bide_sim_loop_init(&loop, 1);
    assert_int_equal(bide_token_bucket_init(&bucket, 0, 1, 1), -EINVAL);
    assert_int_equal(bide_token_bucket_init(&bucket, 1, 0, 1), -EINVAL);
    assert_int_equal(bide_token_bucket_init(&bucket, 1, 1, 0), -EINVAL);
    assert_int_equal(bide_token_bucket_init(&bucket, 1, 1, 5), 0);
    assert_int_equal(bide_sim_loop_wait(&loop, taker_init(&taker, &bucket, 6)), 0);
    assert_int_equal(taker.status, -EINVAL);
    assert_false(bide_token_bucket_try_take(&bucket, &loop.context, 6));
    assert_true(bide_token_bucket_try_take(&bucket, &loop.context, 5));
    assert_false(bide_token_bucket_try_take(&bucket, &loop.context, 1));
    bide_sim_loop_destroy(&loop);
}

/* ---- Several ---- */

enum { TAKERS = 4 };

struct line {
    bide_sim_loop loop;
    bide_token_bucket bucket;
    struct taker takers[TAKERS];
    bide_spawned spawned[TAKERS];
    bide_stop_source stops[TAKERS];
    bide_context contexts[TAKERS];
    unsigned next_place;
    uint64_t begin;
};

/* An empty bucket that receives one token a second; and takers in line. */
static void line_begin(struct line *line, const uint64_t *tokens, unsigned count)
{
    memset(line, 0, sizeof *line);
    bide_sim_loop_init(&line->loop, 1);
    bide_token_bucket_init(&line->bucket, 1, SECOND, 10);
    line->begin = take(&line->loop, &line->bucket, 10);
    for (unsigned i = 0; i < count; i++) {
        bide_stop_source_init(&line->stops[i]);
        line->contexts[i] = line->loop.context;
        line->contexts[i].stop = &line->stops[i];
        bide_awaiter *awaiter = taker_init(&line->takers[i], &line->bucket, tokens[i]);
        line->takers[i].next_place = &line->next_place;
        bide_spawn(&line->spawned[i], &line->contexts[i], awaiter);
        bide_sim_loop_run_until(&line->loop, line->begin);
    }
}

static void line_end(struct line *line)
{
    assert_true(bide_sim_loop_is_empty(&line->loop));
    bide_token_bucket_destroy(&line->bucket);
    bide_sim_loop_destroy(&line->loop);
}

static void a_taker_of_many_is_not_starved_by_those_of_few(void **state)
{
    (void)state;
    static struct line line;
    line_begin(&line, (uint64_t[]){8, 1, 1}, 3);
    assert_false(bide_token_bucket_try_take(&line.bucket, &line.loop.context, 1));
    bide_sim_loop_run_until(&line.loop, line.begin + 20 * SECOND);
    assert_int_equal(line.takers[0].had - line.begin, 8 * SECOND);
    assert_int_equal(line.takers[1].had - line.begin, 9 * SECOND);
    assert_int_equal(line.takers[2].had - line.begin, 10 * SECOND);
    line_end(&line);
}

static void one_that_is_cancelled_gives_its_place_to_the_next(void **state)
{
    (void)state;
    static struct line line;
    line_begin(&line, (uint64_t[]){8, 1, 2, 1}, 4);
    bide_sim_loop_run_until(&line.loop, line.begin + 3 * SECOND + SECOND / 2);
    bide_stop_request(&line.stops[0]); /* three tokens are available */
    bide_stop_request(&line.stops[2]);
    bide_sim_loop_run_until(&line.loop, line.begin + 3 * SECOND + SECOND / 2);
    assert_int_equal(line.takers[0].status, -ECANCELED);
    assert_int_equal(line.takers[2].status, -ECANCELED);
    assert_int_equal(line.takers[1].had - line.begin, 3 * SECOND + SECOND / 2);
    assert_int_equal(line.takers[3].had - line.begin, 3 * SECOND + SECOND / 2);
    assert_int_equal(bide_token_bucket_available(&line.bucket, &line.loop.context), 1);
    line_end(&line);
}

static void a_deadline_ends_the_wait_and_nothing_was_taken(void **state)
{
    (void)state;
    static struct line line;
    struct taker taker;
    line_begin(&line, NULL, 0);
    bide_awaiter *awaiter = taker_init(&taker, &line.bucket, 5);
    taker.deadline = line.begin + 4 * SECOND;
    assert_int_equal(bide_sim_loop_wait(&line.loop, awaiter), 0);
    assert_int_equal(taker.status, -ETIMEDOUT);
    assert_int_equal(taker.had, line.begin + 4 * SECOND);
    assert_int_equal(bide_token_bucket_available(&line.bucket, &line.loop.context), 4);
    line_end(&line);
}

static void one_that_is_destroyed_in_its_wait_lets_go_of_its_turn(void **state)
{
    (void)state;
    static struct line line;
    line_begin(&line, (uint64_t[]){1}, 1);
    struct taker taker;
    bide_awaiter *awaiter = taker_init(&taker, &line.bucket, 5);
    bide_await_later(awaiter);
    bide_start(&taker.task.frame, &taker_body, &line.loop.context);
    bide_resume(&taker.task.frame);
    bide_sim_loop_run_until(&line.loop, line.begin + 2 * SECOND); /* it is the first */
    bide_destroy(&taker.task.frame);
    assert_int_equal(bide_token_bucket_available(&line.bucket, &line.loop.context), 1);
    assert_int_equal(take(&line.loop, &line.bucket, 3), line.begin + 4 * SECOND);
    line_end(&line);
}

/* The taker has ended, inside a deadline whose owner does not know yet. */
static void one_that_is_destroyed_before_it_was_told_gives_its_tokens_back(void **state)
{
    (void)state;
    static struct line line;
    struct taker taker;
    line_begin(&line, NULL, 0);
    bide_awaiter *awaiter = taker_init(&taker, &line.bucket, 2);
    bide_await_later(awaiter);
    taker.deadline = line.begin + 100 * SECOND;
    bide_start(&taker.task.frame, &taker_body, &line.loop.context);
    bide_resume(&taker.task.frame);
    bool was_taken = false;
    bide_sim_loop_run_until(&line.loop, line.begin + 2 * SECOND - 1);
    line.loop.now = line.begin + 2 * SECOND;
    while (taker.status == 1) {
        was_taken = bide_token_bucket_available(&line.bucket, &line.loop.context) == 0;
        if (was_taken)
            break;
        assert_true(bide_sim_loop_step(&line.loop));
    }
    if (taker.status == 1)
        bide_destroy(&taker.task.frame);
    else
        was_taken = false;
    assert_int_equal(bide_token_bucket_available(&line.bucket, &line.loop.context),
                     was_taken ? 2 : 0);
    line_end(&line);
}

static void after_closing_waits_end_but_that_of_the_first(void **state)
{
    (void)state;
    static struct line line;
    struct taker late;
    line_begin(&line, (uint64_t[]){3, 1}, 2);
    bide_token_bucket_close(&line.bucket);
    bide_sim_loop_run_until(&line.loop, line.begin);
    assert_int_equal(line.takers[1].status, -EPIPE);
    assert_int_equal(bide_sim_loop_wait(&line.loop, taker_init(&late, &line.bucket, 1)), 0);
    assert_int_equal(late.status, -EPIPE);
    bide_sim_loop_run_until(&line.loop, line.begin + 3 * SECOND);
    assert_int_equal(line.takers[0].status, 0);
    line_end(&line);
}

/* ---- Numbers ---- */

static void at_the_limits_nothing_overflows(void **state)
{
    (void)state;
    bide_sim_loop loop;
    bide_token_bucket bucket;
    struct taker taker;
    bide_sim_loop_init(&loop, 1);

    /* one token in 584 years: a wait that never ends, cancelled by its deadline */
    bide_token_bucket_init(&bucket, 1, UINT64_MAX, 1);
    uint64_t begin = take(&loop, &bucket, 1);
    bide_awaiter *awaiter = taker_init(&taker, &bucket, 1);
    taker.deadline = begin + SECOND;
    assert_int_equal(bide_sim_loop_wait(&loop, awaiter), 0);
    assert_int_equal(taker.status, -ETIMEDOUT);
    assert_int_equal(bide_token_bucket_available(&bucket, &loop.context), 0);
    assert_int_equal(bucket.parts, SECOND);

    /* the maximum number of tokens in a nanosecond */
    bide_token_bucket_init(&bucket, UINT64_MAX, 1, UINT64_MAX);
    begin = take(&loop, &bucket, UINT64_MAX);
    assert_int_equal(take(&loop, &bucket, 1), begin + 1);
    assert_int_equal(bide_token_bucket_available(&bucket, &loop.context), UINT64_MAX - 1);
    bide_sim_loop_run_until(&loop, begin + 1000000 * SECOND);
    assert_int_equal(bide_token_bucket_available(&bucket, &loop.context), UINT64_MAX);

    /* a token a nanosecond, except one in 584 years */
    bide_token_bucket_init(&bucket, UINT64_MAX - 1, UINT64_MAX, UINT64_MAX);
    begin = take(&loop, &bucket, UINT64_MAX);
    assert_int_equal(take(&loop, &bucket, 1), begin + 2);
    assert_int_equal(bucket.parts, UINT64_MAX - 2);
    assert_int_equal(take(&loop, &bucket, 1000000007), begin + 1000000009);
    bide_sim_loop_destroy(&loop);
}

#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 exact;

/* For random rates, periods and times, the level matches a model with wide enough numbers. */
static void the_level_is_always_what_exact_arithmetic_says(void **state)
{
    (void)state;
    uint64_t seed = testing_seed();
    for (uint32_t round = 0; round < rounds_of(2000); round++) {
        bide_sim_loop loop;
        bide_token_bucket bucket;
        bide_sim_loop_init(&loop, 1);
        uint64_t rate = (testing_random(&seed) >> (testing_random(&seed) % 64)) | 1;
        uint64_t period = (testing_random(&seed) >> (testing_random(&seed) % 64)) | 1;
        uint64_t burst = (testing_random(&seed) >> (testing_random(&seed) % 64)) | 1;
        assert_int_equal(bide_token_bucket_init(&bucket, rate, period, burst), 0);
        assert_true(bide_token_bucket_try_take(&bucket, &loop.context, burst));
        exact level = 0, parts = 0;
        uint64_t now = bide_now(&loop.context);
        for (int i = 0; i < 20; i++) {
            uint64_t later = now + (testing_random(&seed) >> (5 + testing_random(&seed) % 59));
            if (later < now)
                break;
            bide_sim_loop_run_until(&loop, later);
            parts += (exact)(later - now) * rate;
            now = later;
            level += parts / period;
            parts %= period;
            if (level >= burst) {
                level = burst;
                parts = 0;
            }
            assert_int_equal(bide_token_bucket_available(&bucket, &loop.context), level);
            uint64_t some = testing_random(&seed) % burst;
            bool is_there = some <= level;
            assert_int_equal(bide_token_bucket_try_take(&bucket, &loop.context, some), is_there);
            if (is_there)
                level -= some;
        }
        bide_sim_loop_destroy(&loop);
    }
}
#endif

/* ---- Under all orders, and with threads ---- */

/* In no span of time is more taken than the burst and the arrivals in it; no taker is left. */
static int takers_that_are_stopped_at_drawn_times(bide_sim_loop *loop, void *argument)
{
    static struct line line;
    (void)argument;
    memset(&line, 0, sizeof line);
    bide_token_bucket_init(&line.bucket, 7, SECOND, 10);
    uint64_t begin = bide_now(&loop->context);
    for (unsigned i = 0; i < TAKERS; i++) {
        bide_stop_source_init(&line.stops[i]);
        line.contexts[i] = loop->context;
        line.contexts[i].stop = &line.stops[i];
        bide_awaiter *awaiter =
            taker_init(&line.takers[i], &line.bucket, 1 + bide_sim_loop_draw(loop, 10));
        bide_spawn(&line.spawned[i], &line.contexts[i], awaiter);
    }
    for (unsigned i = 0; i < TAKERS; i++) {
        bide_sim_loop_run_until(loop, begin + bide_sim_loop_draw(loop, 1000) * 4000000);
        if (bide_sim_loop_draw(loop, 2) != 0)
            bide_stop_request(&line.stops[i]);
    }
    bide_sim_loop_run_until(loop, begin + 100 * SECOND);
    for (unsigned i = 0; i < TAKERS; i++) {
        uint64_t taken = 0;
        if (line.takers[i].status == 1)
            return -EBUSY;
        if (line.takers[i].status != 0)
            continue;
        for (unsigned j = 0; j < TAKERS; j++) {
            if (line.takers[j].status == 0 && line.takers[j].had <= line.takers[i].had)
                taken += line.takers[j].tokens;
        }
        if (taken > 10 && (taken - 10) * SECOND > 7 * (line.takers[i].had - begin))
            return -EOVERFLOW;
    }
    return 0;
}

static void the_bound_holds_whatever_the_order(void **state)
{
    (void)state;
    assert_int_equal(bide_sim_loop_explore(takers_that_are_stopped_at_drawn_times, rounds_of(300)),
                     0);
}

struct thread_taker {
    bide_task task;
    bide_token_bucket *bucket;
    bide_token_take_operation taking;
    unsigned left;
};

bide_coroutine(thread_taker_body)
{
    bide_begin(thread_taker_body, struct thread_taker * self);
    while (self->left != 0) {
        bide_try(bide_token_bucket_take(&self->taking, self->bucket, 1 + self->left % 3));
        self->left--;
    }
    bide_end();
}

static void several_threads_take_of_one(void **state)
{
    enum { THREADS = 3, EACH = 300 };
    (void)state;
    static struct thread_taker takers[THREADS];
    static bide_spawned spawned[THREADS];
    bide_token_bucket bucket;
    bide_thread_pool *pool;
    uint64_t begin = bide_platform.now();
    bide_token_bucket_init(&bucket, 1, 1000, 5); /* a million a second */
    assert_int_equal(bide_thread_pool_create(&pool, THREADS), 0);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    for (int i = 0; i < THREADS; i++)
        bide_spawn(&spawned[i], &context,
                   bide_call(&takers[i], &thread_taker_body, bucket = &bucket, left = EACH));
    for (int i = 0; i < THREADS; i++) {
        bide_event_wait_blocking(&spawned[i].ended, BIDE_FOREVER);
        assert_int_equal(spawned[i].root.status, 0);
    }
    /* exactly as many as were available or have arrived */
    assert_true(bide_platform.now() - begin >= (THREADS * EACH * 2 - 5) * UINT64_C(1000));
    bide_thread_pool_destroy(pool);
    bide_token_bucket_destroy(&bucket);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_full_at_first_and_fills_at_its_rate),
        cmocka_unit_test(thousands_of_tokens_later_no_nanosecond_is_lost),
        cmocka_unit_test(numbers_that_mean_nothing_are_refused),
        cmocka_unit_test(a_taker_of_many_is_not_starved_by_those_of_few),
        cmocka_unit_test(one_that_is_cancelled_gives_its_place_to_the_next),
        cmocka_unit_test(a_deadline_ends_the_wait_and_nothing_was_taken),
        cmocka_unit_test(one_that_is_destroyed_in_its_wait_lets_go_of_its_turn),
        cmocka_unit_test(one_that_is_destroyed_before_it_was_told_gives_its_tokens_back),
        cmocka_unit_test(after_closing_waits_end_but_that_of_the_first),
        cmocka_unit_test(at_the_limits_nothing_overflows),
#ifdef __SIZEOF_INT128__
        cmocka_unit_test(the_level_is_always_what_exact_arithmetic_says),
#endif
        cmocka_unit_test(the_bound_holds_whatever_the_order),
        cmocka_unit_test(several_threads_take_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
