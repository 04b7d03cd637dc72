/*
 * Operations that are raced against others: one that has ended, and loses, gives back what it had, whether its result was
 * taken or not. contract_test.c shows it for every primitive of its table; here are those that need more than that:
 * ticks, tokens, a condition and its mutex, claims, and an operation that became ready while it looked.
 */
#include "sync/by_hand.h"

#include "bide/auto_event.h"
#include "bide/blocking.h"
#include "bide/condition.h"
#include "bide/cyclic_barrier.h"
#include "bide/deadline.h"
#include "bide/handle.h"
#include "bide/interval.h"
#include "bide/multi_producer_sequencer.h"
#include "bide/mutex.h"
#include "bide/rw_lock.h"
#include "bide/semaphore.h"
#include "bide/shared_task.h"
#include "bide/single_producer_sequencer.h"
#include "bide/token_bucket.h"
#include "bide/extend/choice.h"
#include "bide/extend/wrapper.h"

/* ---- A scheduler by hand with timers, and a clock that the test sets ---- */

typedef struct timed {
    by_hand by_hand;
    bide_environment environment;
    bide_timer_heap timers;
    uint64_t now;
    void (*when_idle)(void); /* called once, when a coroutine looks whether it need suspend */
} timed;

static timed the;

static int timed_set(bide_scheduler *scheduler, bide_timer *timer)
{
    (void)scheduler;
    bide_timer_heap_insert(&the.timers, timer);
    return 0;
}

static bool timed_clear(bide_scheduler *scheduler, bide_timer *timer)
{
    (void)scheduler;
    return bide_timer_heap_remove(&the.timers, timer);
}

static uint64_t timed_now(bide_scheduler *scheduler)
{
    (void)scheduler;
    return the.now;
}

static bool timed_idle(bide_scheduler *scheduler)
{
    (void)scheduler;
    if (the.when_idle == NULL)
        return false;
    the.when_idle();
    the.when_idle = NULL;
    return true;
}

static void advance(uint64_t now)
{
    bide_awaiter_chain due = {NULL, NULL};
    the.now = now;
    bide_timer_heap_take_due(&the.timers, now, &due);
    if (due.first != NULL)
        by_hand_post(&the.by_hand.scheduler, due.first, due.last);
}

static int setup(void **state)
{
    (void)state;
    memset(&the, 0, sizeof the);
    by_hand_init(&the.by_hand);
    bide_timer_heap_init(&the.timers);
    the.environment.now = timed_now;
    the.by_hand.scheduler.environment = &the.environment;
    the.by_hand.scheduler.set_timer = timed_set;
    the.by_hand.scheduler.clear_timer = timed_clear;
    the.by_hand.scheduler.idle = timed_idle;
    bide_atomic_store(&the.by_hand.scheduler.patience, 8, relaxed);
    return 0;
}

/* ---- A racer: a coroutine that awaits one operation as a branch does ---- */

enum { WAITS = 1 };

typedef struct racer {
    bide_task task;
    bide_stop_source stop;
    bide_context context;
    bide_forward forward;
    bide_awaiter *operation;
    int status;
} racer;

static int racer_resume(bide_awaiter *awaiter)
{
    return bide_forward_take((bide_forward *)(void *)awaiter);
}

static bide_awaiter *racer_forward(racer *self)
{
    static const bide_wrapper_ops ops = BIDE_FORWARD_OPS(racer_resume, "race");
    return bide_forward_init(&self->forward, &ops, self->operation);
}

bide_coroutine(racer_body)
{
    bide_begin(racer_body, racer * self);
    bide_await_status(self->status, racer_forward(self));
    bide_end();
}

static void race(racer *self, bide_awaiter *operation)
{
    memset(self, 0, sizeof *self);
    self->operation = operation;
    self->status = WAITS;
    bide_stop_source_init(&self->stop);
    self->context = the.by_hand.context;
    self->context.stop = &self->stop;
    bide_start(&self->task.frame, &racer_body, &self->context);
    bide_resume(&self->task.frame);
}

/* It has ended with 0. Its result is taken, and then another is chosen; or it is destroyed before. */
static void lose(racer *self, bool taken)
{
    if (taken) {
        by_hand_run(&the.by_hand);
        assert_int_equal(self->status, 0);
        bide_wrapper_release(&self->forward.inner);
    } else {
        assert_int_equal(self->status, WAITS);
        bide_destroy(&self->task.frame);
    }
}

/* ---- Ticks ---- */

static void a_tick_that_is_lost_is_still_to_come(void **state)
{
    static const bide_missed_ticks policies[] = {BIDE_MISSED_BURST, BIDE_MISSED_DELAY,
                                                 BIDE_MISSED_SKIP};
    (void)state;
    for (size_t policy = 0; policy < 3; policy++) {
        for (int way = 0; way < 4; way++) { /* taken, destroyed, asked to stop first, or after */
            bide_interval interval;
            racer one;
            setup(NULL);
            bide_interval_init(&interval, 10, 10, policies[policy]);
            race(&one, bide_interval_tick(&interval));
            if (way == 2)
                bide_stop_request(&one.stop);
            advance(10);
            if (way == 3)
                bide_stop_request(&one.stop);
            if (way < 2)
                lose(&one, way == 0);
            else
                by_hand_run(&the.by_hand);
            if (way == 2)
                assert_int_equal(one.status, -ECANCELED);
            if (way == 3) {
                assert_int_equal(one.status, 0);
                assert_int_equal(interval.next, 20);
                continue;
            }
            assert_int_equal(interval.next, 10);
            race(&one, bide_interval_tick(&interval));
            advance(12);
            by_hand_run(&the.by_hand);
            assert_int_equal(one.status, 0);
            assert_int_equal(interval.next, 20);
        }
    }
}

/* Each tick is delivered once, whatever happens to the waits for it. */
static void no_tick_is_lost_or_doubled_in_any_order(void **state)
{
    enum { TICKS = 500, PERIOD = 7 };
    uint64_t random = testing_seed();
    bide_interval interval;
    racer one;
    uint64_t delivered = 0;
    (void)state;
    bide_interval_init(&interval, PERIOD, PERIOD, BIDE_MISSED_BURST);
    while (delivered < TICKS) {
        uint64_t what = testing_random(&random) % 6;
        race(&one, bide_interval_tick(&interval));
        if (what == 0) {
            bide_stop_request(&one.stop);
            by_hand_run(&the.by_hand);
            assert_int_equal(one.status, -ECANCELED);
            continue;
        }
        if (what == 1) {
            bide_destroy(&one.task.frame);
            continue;
        }
        uint64_t due = (delivered + 1) * PERIOD;
        assert_int_equal(interval.next, due);
        advance(the.now > due ? the.now : due + testing_random(&random) % (3 * PERIOD));
        if (what == 2 || what == 3) {
            lose(&one, what == 2);
            continue;
        }
        by_hand_run(&the.by_hand);
        assert_int_equal(one.status, 0);
        delivered++;
    }
    assert_int_equal(interval.next, (TICKS + 1) * PERIOD);
}

/* The deadline passes before the tick, or in the same turn: then one of the two has it. */
static void a_tick_under_a_deadline_comes_or_is_still_to_come(void **state)
{
    (void)state;
    for (uint64_t time = 9; time <= 11; time++) {
        bide_interval interval;
        bide_with_deadline_operation limited;
        racer one;
        setup(NULL);
        bide_interval_init(&interval, 10, 10, BIDE_MISSED_BURST);
        race(&one, bide_with_deadline(&limited, time, bide_interval_tick(&interval)));
        advance(time < 10 ? time : 10);
        by_hand_run(&the.by_hand);
        assert_int_equal(one.status, time < 10 ? -ETIMEDOUT : 0);
        assert_int_equal(interval.next, one.status == 0 ? 20 : 10);
        race(&one, bide_interval_tick(&interval));
        advance(20);
        by_hand_run(&the.by_hand);
        assert_int_equal(one.status, 0);
    }
}

static void a_sleep_may_be_withdrawn_after_its_end_whatever_its_frame_is_by_then(void **state)
{
    bide_sleep sleep;
    racer one;
    (void)state;
    race(&one, bide_sleep_until(&sleep, 5));
    advance(5);
    by_hand_run(&the.by_hand);
    memset(&one.task, 0x5a, sizeof one.task);
    lose(&one, true);
}

/* ---- Tokens ---- */

static void tokens_that_are_lost_are_in_the_bucket_again(void **state)
{
    (void)state;
    for (int slept = 0; slept < 2; slept++) {
        for (int taken = 0; taken < 2; taken++) {
            bide_token_bucket bucket;
            bide_token_take_operation taking, next;
            racer one, other;
            setup(NULL);
            the.now = 1;
            assert_int_equal(bide_token_bucket_init(&bucket, 1, 10, 4), 0);
            if (slept)
                assert_true(bide_token_bucket_try_take(&bucket, &the.by_hand.context, 4));
            race(&one, bide_token_bucket_take(&taking, &bucket, 3));
            assert_int_equal(one.status, slept ? WAITS : 0);
            if (!slept && !taken)
                continue; /* it was never suspended */
            if (slept)
                advance(31);
            if (slept && !taken) {
                assert_int_equal(one.status, WAITS); /* its sleep has ended: nothing is taken */
                bide_destroy(&one.task.frame);
            } else {
                lose(&one, true);
            }
            assert_int_equal(bide_token_bucket_available(&bucket, &the.by_hand.context),
                             slept ? 3 : 4);
            race(&other, bide_token_bucket_take(&next, &bucket, 3));
            assert_int_equal(other.status, 0);
            bide_token_bucket_destroy(&bucket);
        }
    }
}

/* ---- A condition, and its mutex ---- */

static void a_notification_that_is_lost_is_the_next_waiters_and_the_mutex_is_free(void **state)
{
    (void)state;
    for (int taken = 0; taken < 2; taken++) {
        bide_mutex mutex;
        bide_condition condition;
        bide_mutex_waiter locks[2];
        bide_condition_waiter waits[2];
        racer racers[2];
        setup(NULL);
        bide_mutex_init(&mutex);
        bide_condition_init(&condition);
        for (int i = 0; i < 2; i++) {
            assert_true(bide_mutex_try_lock(&locks[i], &mutex));
            race(&racers[i], bide_condition_wait(&waits[i], &condition, &locks[i]));
        }
        bide_condition_notify_one(&condition);
        lose(&racers[0], taken);
        assert_false(waits[0].is_locked);
        by_hand_run(&the.by_hand);
        assert_int_equal(racers[1].status, 0);
        assert_true(waits[1].is_locked);
        bide_mutex_unlock(&locks[1]);
        assert_false(bide_mutex_is_locked(&mutex));
        bide_condition_destroy(&condition);
        bide_mutex_destroy(&mutex);
    }
}

static void a_condition_that_was_cut_short_says_that_it_holds_its_mutex(void **state)
{
    bide_mutex mutex;
    bide_condition condition;
    bide_mutex_waiter lock;
    bide_condition_waiter wait;
    racer one;
    (void)state;
    bide_mutex_init(&mutex);
    bide_condition_init(&condition);
    assert_true(bide_mutex_try_lock(&lock, &mutex));
    race(&one, bide_condition_wait(&wait, &condition, &lock));
    assert_false(bide_mutex_is_locked(&mutex));
    bide_stop_request(&one.stop);
    by_hand_run(&the.by_hand);
    assert_int_equal(one.status, -ECANCELED);
    assert_true(wait.is_locked);
    bide_mutex_unlock(&lock);
    bide_condition_destroy(&condition);
}

/* ---- Locks ---- */

static void a_lock_that_was_given_back_is_held_by_nobody(void **state)
{
    bide_rw_lock lock;
    bide_rw_lock_waiter holder, other;
    racer one;
    (void)state;
    bide_rw_lock_init(&lock);
    race(&one, bide_rw_lock_write(&holder, &lock));
    lose(&one, true);
    assert_int_equal(holder.holds, BIDE_RW_LOCK_NONE_);
    race(&one, bide_rw_lock_read(&holder, &lock));
    assert_true(bide_rw_lock_try_read(&other, &lock));
    lose(&one, true);
    bide_rw_lock_unlock(&other);
    assert_false(bide_rw_lock_is_locked(&lock));
}

static bide_mutex spun_mutex;
static bide_mutex_waiter spun_holder, spun_waiter;
static bide_sequence_barrier spun_barrier;
static bide_sequence_waiter spun_reader;

static void unlock_spun(void)
{
    bide_mutex_unlock(&spun_holder);
}

static void publish_spun(void)
{
    bide_sequence_barrier_publish(&spun_barrier, 0);
}

/* It has ended in its suspend, and was never in line: whatever its memory was before. */
static void lost_after_it_became_ready_while_it_looked(void **state)
{
    bide_mutex_waiter first, second;
    bide_sequence_waiter reader;
    racer one, other;
    (void)state;
    bide_mutex_init(&spun_mutex);
    assert_true(bide_mutex_try_lock(&spun_holder, &spun_mutex));
    memset(&spun_waiter, 0x5a, sizeof spun_waiter);
    the.when_idle = unlock_spun;
    race(&one, bide_mutex_lock(&spun_waiter, &spun_mutex));
    assert_int_equal(one.status, 0);
    race(&other, bide_mutex_lock(&first, &spun_mutex)); /* there is a line */
    lose(&one, true);
    by_hand_run(&the.by_hand);
    assert_int_equal(other.status, 0);
    assert_false(bide_mutex_try_lock(&second, &spun_mutex));
    bide_mutex_unlock(&first);
    bide_mutex_destroy(&spun_mutex);

    bide_sequence_barrier_init(&spun_barrier, bide_sequence_initial());
    memset(&spun_reader, 0x5a, sizeof spun_reader);
    the.when_idle = publish_spun;
    race(&one, bide_sequence_barrier_wait_until_published(&spun_reader, &spun_barrier, 0));
    assert_int_equal(one.status, 0);
    race(&other, bide_sequence_barrier_wait_until_published(&reader, &spun_barrier, 1));
    lose(&one, true);
    bide_sequence_barrier_publish(&spun_barrier, 1);
    by_hand_run(&the.by_hand);
    assert_int_equal(other.status, 0);
}

/* ---- Claims ---- */

typedef struct ring {
    bide_sequence_barrier cursor, consumed;
    bide_sequence_barrier *members[1];
    bide_sequence_group gate;
    bide_single_producer_sequencer single;
    bide_multi_producer_sequencer multi;
    bide_sequence_slot slots[4];
} ring;

static ring the_ring;

static void ring_init(void)
{
    bide_sequence_barrier_init(&the_ring.cursor, bide_sequence_initial());
    bide_sequence_barrier_init(&the_ring.consumed, bide_sequence_initial());
    the_ring.members[0] = &the_ring.consumed;
    bide_sequence_group_init(&the_ring.gate, the_ring.members, 1);
    assert_int_equal(
        bide_single_producer_sequencer_init(&the_ring.single, &the_ring.cursor, &the_ring.gate, 4),
        0);
    assert_int_equal(bide_multi_producer_sequencer_init(&the_ring.multi, the_ring.slots, 4,
                                                        &the_ring.gate, bide_sequence_initial()),
                     0);
}

static void slots_that_the_one_producer_loses_are_the_next_that_it_claims(void **state)
{
    bide_claim claim;
    bide_sequence first = 0;
    racer one;
    (void)state;
    ring_init();
    race(&one, bide_single_producer_sequencer_claim_up_to(&claim, &the_ring.single, 3));
    assert_int_equal(claim.count, 3);
    lose(&one, true);
    assert_int_equal(bide_single_producer_sequencer_try_claim(&the_ring.single, 4, &first), 4);
    assert_int_equal(first, 0);
    bide_single_producer_sequencer_publish_range(&the_ring.single, 0, 4);

    race(&one, bide_single_producer_sequencer_claim_up_to(&claim, &the_ring.single, 2));
    bide_sequence_barrier_publish(&the_ring.consumed, 3);
    lose(&one, true);
    race(&one, bide_single_producer_sequencer_claim_one(&claim, &the_ring.single));
    assert_int_equal(claim.first, 4);
    bide_single_producer_sequencer_close(&the_ring.single);
    lose(&one, true);
    assert_int_equal(bide_single_producer_sequencer_try_claim(&the_ring.single, 1, &first), 0);
}

/* As a select does: attempts, awaits the wait, and attempts again, or not. */
static int attempt(bide_multi_producer_claim *claim, const bide_awaiter_ops *ops,
                   bide_choice *choice)
{
    bide_choice_init(choice);
    choice->number = 1;
    return ops->attempt(&claim->frame.awaiter, choice);
}

static void a_claim_that_a_select_does_not_choose_takes_no_number(void **state)
{
    (void)state;
    for (int chosen = 0; chosen < 2; chosen++) {
        bide_multi_producer_claim claim, next;
        bide_choice choice;
        racer one, other;
        setup(NULL);
        ring_init();
        bide_sequence first = 0;
        assert_int_equal(bide_multi_producer_sequencer_try_claim(&the_ring.multi, 4, &first), 4);
        bide_multi_producer_sequencer_publish_range(&the_ring.multi, first, 4);
        bide_await_later(bide_multi_producer_sequencer_claim_up_to(&claim, &the_ring.multi, 2));
        const bide_awaiter_ops *ops = claim.frame.awaiter.ops;
        assert_int_equal(attempt(&claim, ops, &choice), -EAGAIN);
        race(&one, choice.wait);
        race(&other, bide_multi_producer_sequencer_claim_up_to(&next, &the_ring.multi, 2));
        assert_int_equal(one.status, WAITS);
        bide_sequence_barrier_publish(&the_ring.consumed, 1);
        by_hand_run(&the.by_hand);
        assert_int_equal(one.status, 0);
        assert_int_equal(other.status, WAITS); /* the select has the turn until it decides */
        assert_int_equal(bide_multi_producer_sequencer_try_claim(&the_ring.multi, 1, &first), 0);
        if (chosen) {
            assert_int_equal(attempt(&claim, ops, &choice), 0);
            assert_int_equal(claim.first, 4);
            assert_int_equal(claim.count, 2);
            bide_wrapper_release(&one.forward.inner); /* of the wait, not of the claim */
            assert_false(bide_multi_producer_sequencer_is_published(&the_ring.multi, 4));
            by_hand_run(&the.by_hand);
            assert_int_equal(other.status, WAITS);
            bide_multi_producer_sequencer_publish_range(&the_ring.multi, claim.first, claim.count);
            bide_sequence_barrier_publish(&the_ring.consumed, 3);
        } else {
            bide_wrapper_release(&one.forward.inner);
        }
        by_hand_run(&the.by_hand);
        assert_int_equal(other.status, 0);
        assert_int_equal(next.first, chosen ? 6 : 4);
        assert_int_equal(next.count, 2);
        bide_multi_producer_sequencer_publish_range(&the_ring.multi, next.first, next.count);
        bide_multi_producer_sequencer_destroy(&the_ring.multi);
    }
}

static void a_claim_whose_select_waits_for_ever_ends_when_the_consumer_has_closed(void **state)
{
    bide_multi_producer_claim claim;
    bide_choice choice;
    racer one;
    (void)state;
    ring_init();
    bide_sequence first = 0;
    assert_int_equal(bide_multi_producer_sequencer_try_claim(&the_ring.multi, 4, &first), 4);
    bide_await_later(bide_multi_producer_sequencer_claim_one(&claim, &the_ring.multi));
    const bide_awaiter_ops *ops = claim.frame.awaiter.ops;
    assert_int_equal(attempt(&claim, ops, &choice), -EAGAIN);
    race(&one, choice.wait);
    bide_sequence_barrier_close(&the_ring.consumed);
    by_hand_run(&the.by_hand);
    assert_int_equal(one.status, -EPIPE);
    assert_int_equal(attempt(&claim, ops, &choice), -EPIPE);
}

static void a_lost_claim_of_many_producers_is_a_gap_that_consumers_skip(void **state)
{
    bide_multi_producer_claim claim;
    bide_sequence first = 0;
    racer one;
    (void)state;
    ring_init();
    race(&one, bide_multi_producer_sequencer_claim_up_to(&claim, &the_ring.multi, 2));
    lose(&one, true);
    assert_int_equal(bide_multi_producer_sequencer_try_claim(&the_ring.multi, 1, &first), 1);
    bide_multi_producer_sequencer_publish(&the_ring.multi, first);
    assert_int_equal(bide_multi_producer_sequencer_last_published_after(&the_ring.multi,
                                                                        bide_sequence_initial()),
                     2);
    assert_true(bide_multi_producer_sequencer_is_abandoned(&the_ring.multi, 0));
    assert_true(bide_multi_producer_sequencer_is_abandoned(&the_ring.multi, 1));
    assert_false(bide_multi_producer_sequencer_is_abandoned(&the_ring.multi, 2));
}

/* ---- Which can be cases of a select ---- */

static bool can_lose(bide_awaiter *operation)
{
    return operation->ops->attempt != NULL || operation->ops->undo == BIDE_UNDO_WITHDRAW;
}

static void nothing(void *argument)
{
    (void)argument;
}

static void those_that_cannot_be_undone_say_so(void **state)
{
    bide_cyclic_barrier barrier;
    bide_cyclic_barrier_waiter arrival;
    bide_blocking_call call;
    (void)state;
    bide_cyclic_barrier_init(&barrier, 2);
    assert_false(can_lose(bide_cyclic_barrier_arrive_and_wait(&arrival, &barrier)));
    assert_true(can_lose(
        bide_cyclic_barrier_wait(&arrival, &barrier, bide_cyclic_barrier_arrive(&barrier))));
    assert_false(can_lose(bide_blocking_run(&call, NULL, nothing, NULL)));
}

bide_shared_coroutine(shared_body)
{
    bide_begin(shared_body, bide_shared_task * self);
    (void)self;
    bide_end();
}

static void the_others_can_be_cases_of_a_select(void **state)
{
    (void)state;
    ring_init();
    bide_interval interval;
    bide_interval_init(&interval, 1, 1, BIDE_MISSED_SKIP);
    assert_true(can_lose(bide_interval_tick(&interval)));
    bide_sleep sleep;
    assert_true(can_lose(bide_sleep_for(&sleep, 1)));
    bide_token_bucket bucket;
    bide_token_take_operation taking;
    assert_int_equal(bide_token_bucket_init(&bucket, 1, 1, 1), 0);
    assert_true(can_lose(bide_token_bucket_take(&taking, &bucket, 1)));
    bide_mutex mutex;
    bide_mutex_waiter lock;
    bide_condition condition;
    bide_condition_waiter wait;
    bide_mutex_init(&mutex);
    bide_condition_init(&condition);
    assert_true(can_lose(bide_mutex_lock(&lock, &mutex)));
    assert_true(bide_mutex_try_lock(&lock, &mutex));
    assert_true(can_lose(bide_condition_wait(&wait, &condition, &lock)));
    bide_multi_producer_claim claim;
    assert_true(can_lose(bide_multi_producer_sequencer_claim_one(&claim, &the_ring.multi)));
    bide_sequence_group_waiter drain;
    assert_true(can_lose(bide_multi_producer_sequencer_drain(&drain, &the_ring.multi)));
    bide_claim own;
    assert_true(can_lose(bide_single_producer_sequencer_claim_one(&own, &the_ring.single)));
    bide_auto_event event;
    bide_auto_event_waiter set;
    bide_auto_event_init(&event, false);
    assert_true(can_lose(bide_auto_event_wait(&set, &event)));
    bide_shared_task shared;
    bide_shared_task_waiter join;
    bide_shared_task_init(&shared, &shared_body, &bide_default_context);
    assert_true(can_lose(bide_shared_task_wait(&join, &shared)));
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup(function, setup)
    const struct CMUnitTest tests[] = {
        TEST(a_tick_that_is_lost_is_still_to_come),
        TEST(no_tick_is_lost_or_doubled_in_any_order),
        TEST(a_tick_under_a_deadline_comes_or_is_still_to_come),
        TEST(a_sleep_may_be_withdrawn_after_its_end_whatever_its_frame_is_by_then),
        TEST(tokens_that_are_lost_are_in_the_bucket_again),
        TEST(a_notification_that_is_lost_is_the_next_waiters_and_the_mutex_is_free),
        TEST(a_condition_that_was_cut_short_says_that_it_holds_its_mutex),
        TEST(a_lock_that_was_given_back_is_held_by_nobody),
        TEST(lost_after_it_became_ready_while_it_looked),
        TEST(slots_that_the_one_producer_loses_are_the_next_that_it_claims),
        TEST(a_claim_that_a_select_does_not_choose_takes_no_number),
        TEST(a_claim_whose_select_waits_for_ever_ends_when_the_consumer_has_closed),
        TEST(a_lost_claim_of_many_producers_is_a_gap_that_consumers_skip),
        TEST(those_that_cannot_be_undone_say_so),
        TEST(the_others_can_be_cases_of_a_select),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
