/*
 * The condition: which waiters are notified; the mutex is held however the wait ends; waits that are cancelled; a
 * crowd in line; and random runs with threads.
 */
#define _GNU_SOURCE
#include "misuse.h"
#include "sync/by_hand.h"

#include "bide/condition.h"
#include "bide/handle.h"
#include "bide/stop.h"

#if TESTING_HOSTED
struct pair {
    bide_mutex mutex;
    bide_condition condition;
    int tokens;
    int taken;
};
struct pair_waiter {
    bide_mutex_waiter lock;
    bide_condition_waiter wait;
};
#define STORM_OBJECT struct pair
#define STORM_WAITER struct pair_waiter
#include "small_stack.h"
#include "sync/storm.h"
#endif

/* A coroutine with a stop source of its own that locks, waits, notes its name, and unlocks. */
struct user {
    bide_task task;
    by_hand *by_hand;
    bide_mutex *mutex;
    bide_condition *condition;
    bide_mutex_waiter lock;
    bide_condition_waiter wait;
    bide_context context;
    bide_stop_source stop;
    char name;
    int status;
    bool is_locked; /* at the end of the wait */
};

bide_coroutine(user_body)
{
    bide_begin(user_body, struct user * self);
    bide_try(bide_mutex_lock(&self->lock, self->mutex));
    self->wait.is_locked = true;
    bide_await_status(self->status, bide_condition_wait(&self->wait, self->condition, &self->lock));
    by_hand_note(self->by_hand, self->name);
    self->is_locked = self->wait.is_locked && bide_mutex_is_locked(self->mutex) &&
                      self->mutex->holder == &self->lock;
    bide_finally();
    if (self->wait.is_locked)
        bide_mutex_unlock(&self->lock);
    bide_end();
}

struct fixture {
    by_hand by_hand;
    bide_mutex mutex;
    bide_condition condition;
    struct user users[6]; /* 'a' and so on */
};

static void begin(struct fixture *self, int index)
{
    struct user *user = &self->users[index];
    user->by_hand = &self->by_hand;
    user->mutex = &self->mutex;
    user->condition = &self->condition;
    user->name = (char)('a' + index);
    user->status = 1;
    user->is_locked = false;
    bide_stop_source_init(&user->stop);
    user->context = self->by_hand.context;
    user->context.stop = &user->stop;
    bide_start(&user->task.frame, &user_body, &user->context);
    bide_resume(&user->task.frame);
}

static void fixture_init(struct fixture *self, int users)
{
    by_hand_init(&self->by_hand);
    bide_mutex_init(&self->mutex);
    bide_condition_init(&self->condition);
    for (int i = 0; i < users; i++)
        begin(self, i);
    by_hand_assert_trace(&self->by_hand, "");
    assert_false(bide_mutex_is_locked(&self->mutex));
}

/* The users with a name in `names` have ended, in this order, with `status`, and held the mutex. */
static void assert_ended(struct fixture *self, const char *names, int status)
{
    by_hand_run(&self->by_hand);
    by_hand_assert_trace(&self->by_hand, names);
    for (; *names != '\0'; names++) {
        assert_int_equal(self->users[*names - 'a'].status, status);
        assert_true(self->users[*names - 'a'].is_locked);
    }
    assert_false(bide_mutex_is_locked(&self->mutex));
}

static void fixture_end(struct fixture *self)
{
    bide_condition_notify_all(&self->condition);
    by_hand_run(&self->by_hand);
    bide_condition_destroy(&self->condition);
    bide_mutex_destroy(&self->mutex);
}

static void notify_one_wakes_the_longest_waiting(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 4);
    bide_condition_notify_one(&f.condition);
    assert_ended(&f, "a", 0);
    bide_condition_notify_one(&f.condition);
    bide_condition_notify_one(&f.condition);
    assert_ended(&f, "bc", 0);
    fixture_end(&f);
}

static void notify_all_wakes_waiters_in_order(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 4);
    bide_condition_notify_all(&f.condition);
    begin(&f, 4); /* came later */
    assert_ended(&f, "abcd", 0);
    fixture_end(&f);
    by_hand_assert_trace(&f.by_hand, "e");
}

static void a_later_waiter_is_not_woken_by_an_earlier_notification(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 0);
    bide_condition_notify_one(&f.condition);
    bide_condition_notify_all(&f.condition);
    begin(&f, 0);
    bide_condition_notify_one(&f.condition);
    bide_condition_notify_one(&f.condition); /* one too many */
    begin(&f, 1);
    assert_ended(&f, "a", 0);
    fixture_end(&f);
    by_hand_assert_trace(&f.by_hand, "b");
}

static void it_is_notified_with_the_mutex_too_and_goes_on_when_that_is_free(void **state)
{
    (void)state;
    struct fixture f;
    bide_mutex_waiter lock;
    fixture_init(&f, 2);
    assert_true(bide_mutex_try_lock(&lock, &f.mutex));
    bide_condition_notify_all(&f.condition);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "");
    bide_mutex_unlock(&lock);
    assert_ended(&f, "ab", 0);
    fixture_end(&f);
}

static void a_wait_that_is_cut_short_has_the_mutex_and_no_notification(void **state)
{
    (void)state;
    static const int reasons[] = {-ECANCELED, -ETIMEDOUT};
    for (int i = 0; i < 2; i++) {
        struct fixture f;
        fixture_init(&f, 3);
        bide_stop_request_with(&f.users[0].stop, reasons[i]);
        bide_condition_notify_one(&f.condition);
        by_hand_run(&f.by_hand);
        by_hand_assert_trace(&f.by_hand, "ab");
        assert_int_equal(f.users[0].status, reasons[i]);
        assert_int_equal(f.users[1].status, 0);
        assert_true(f.users[0].is_locked && f.users[1].is_locked);
        fixture_end(&f);
    }
}

static void locking_again_is_not_cut_short(void **state)
{
    (void)state;
    struct fixture f;
    bide_mutex_waiter lock;
    fixture_init(&f, 1);
    assert_true(bide_mutex_try_lock(&lock, &f.mutex));
    bide_condition_notify_one(&f.condition);
    by_hand_run(&f.by_hand); /* it is in the mutex's line */
    bide_stop_request(&f.users[0].stop);
    assert_int_equal(by_hand_run(&f.by_hand), 0);
    bide_mutex_unlock(&lock);
    assert_ended(&f, "a", 0);
    fixture_end(&f);
}

static void a_waiter_asked_to_stop_before_keeps_the_mutex(void **state)
{
    (void)state;
    struct fixture f;
    bide_mutex_waiter lock;
    fixture_init(&f, 0);
    assert_true(bide_mutex_try_lock(&lock, &f.mutex));
    begin(&f, 0); /* waits for the mutex */
    bide_mutex_unlock(&lock);
    bide_stop_request(&f.users[0].stop); /* it was handed the mutex */
    assert_ended(&f, "a", -ECANCELED);
    fixture_end(&f);
}

static void closing_ends_waits_now_and_later_with_the_mutex(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    bide_condition_notify_one(&f.condition);
    bide_condition_close(&f.condition);
    bide_condition_close(&f.condition);
    by_hand_run(&f.by_hand);
    begin(&f, 3);
    by_hand_assert_trace(&f.by_hand, "abcd");
    for (int i = 0; i < 4; i++) {
        assert_int_equal(f.users[i].status, i == 0 ? 0 : -EPIPE);
        assert_true(f.users[i].is_locked);
    }
    fixture_end(&f);
}

static void if_the_mutex_is_closed_it_says_that_it_is_not_locked(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    bide_mutex_close(&f.mutex);
    bide_condition_notify_one(&f.condition);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "a");
    assert_int_equal(f.users[0].status, -EPIPE);
    assert_false(f.users[0].is_locked);
    fixture_end(&f);
}

/* In each of its states: in line, notified, in the mutex's line, and handed the mutex. */
static void a_destroyed_coroutine_passes_on_what_it_was_given(void **state)
{
    (void)state;
    for (int stop = 0; stop < 4; stop++) {
        struct fixture f;
        bide_mutex_waiter lock;
        fixture_init(&f, 2);
        assert_true(bide_mutex_try_lock(&lock, &f.mutex));
        if (stop >= 1)
            bide_condition_notify_one(&f.condition);
        if (stop >= 2)
            by_hand_run(&f.by_hand);
        if (stop == 3)
            bide_mutex_unlock(&lock);
        bide_destroy(&f.users[0].task.frame);
        assert_false(f.users[0].wait.is_locked);
        if (stop != 3)
            bide_mutex_unlock(&lock);
        assert_ended(&f, stop != 0 ? "b" : "", 0);
        fixture_end(&f);
    }
}

#if TESTING_HOSTED
static void a_thread_waits_until_a_deadline(void **state)
{
    (void)state;
    struct fixture f;
    bide_mutex_waiter lock;
    bide_condition_waiter wait;
    fixture_init(&f, 0);
    assert_int_equal(bide_mutex_lock_blocking(&lock, &f.mutex, BIDE_FOREVER), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(bide_condition_wait_blocking(&wait, &f.condition, &lock,
                                                      i == 0 ? 0 : bide_platform.now() + 1000000),
                         -ETIMEDOUT);
        assert_true(wait.is_locked && f.mutex.holder == &lock);
    }
    bide_condition_close(&f.condition);
    assert_int_equal(bide_condition_wait_blocking(&wait, &f.condition, &lock, BIDE_FOREVER),
                     -EPIPE);
    assert_true(wait.is_locked);
    bide_mutex_unlock(&lock);
    fixture_end(&f);
}
#endif

#if BIDE_DEBUG && TESTING_HOSTED
static void wait_without_the_mutex(void)
{
    bide_mutex mutex;
    bide_condition condition;
    bide_mutex_waiter lock;
    bide_condition_waiter wait;
    bide_mutex_init(&mutex);
    bide_condition_init(&condition);
    bide_mutex_try_lock(&lock, &mutex);
    bide_mutex_unlock(&lock);
    bide_await_later(bide_condition_wait(&wait, &condition, &lock));
}

static void destroy_what_is_waited_for(void)
{
    struct fixture f;
    fixture_init(&f, 1);
    bide_condition_destroy(&f.condition);
}

static void misuse_is_told_with_object_and_caller(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(wait_without_the_mutex,
                                     "a condition is waited for without its mutex: &lock",
                                     "wait_without_the_mutex"));
    assert_true(misuse_aborts_naming(
        destroy_what_is_waited_for, "a condition is destroyed while it is waited for: &f.condition",
        "destroy_what_is_waited_for"));
}
#endif

/* ---- A crowd in line, on a small stack ---- */

#if TESTING_HOSTED
static uint32_t ended;

struct link {
    bide_task task;
    struct pair *pair;
    struct pair_waiter waiter;
};

bide_coroutine(link_body)
{
    bide_begin(link_body, struct link * self);
    bide_try(bide_mutex_lock(&self->waiter.lock, &self->pair->mutex));
    bide_try(bide_condition_wait(&self->waiter.wait, &self->pair->condition, &self->waiter.lock));
    if (++ended < crowd_of_waiters() / 2)
        bide_condition_notify_one(&self->pair->condition);
    else
        bide_condition_notify_all(&self->pair->condition);
    bide_mutex_unlock(&self->waiter.lock);
    bide_end();
}

static void *wake_a_chain(void *argument)
{
    struct link *links = argument;
    struct pair pair;
    bide_mutex_init(&pair.mutex);
    bide_condition_init(&pair.condition);
    for (uint32_t i = 0; i < crowd_of_waiters(); i++) {
        links[i].pair = &pair;
        bide_start(&links[i].task.frame, &link_body, &bide_default_context);
        bide_resume(&links[i].task.frame);
    }
    bide_condition_notify_one(&pair.condition);
    return NULL;
}

static void those_of_a_crowd_wake_each_other_on_a_small_stack(void **state)
{
    (void)state;
    if (BIDE_CONDITION_MAX < crowd_of_waiters())
        skip();
    struct link *links = calloc(crowd_of_waiters(), sizeof *links);
    assert_non_null(links);
    ended = 0;
    on_a_small_stack(wake_a_chain, links);
    assert_int_equal(ended, crowd_of_waiters());
    free(links);
}

/* ---- At random, with threads ---- */

static struct pair *pair_of(storm_user *self)
{
    return &self->storm->object;
}

/* Brings one token and notifies one, or brings two and notifies all. */
static void bring(storm_user *self)
{
    struct pair *pair = pair_of(self);
    bool two = self->kind / 2 % 2 != 0;
    storm_write(self->storm, self->section);
    pair->tokens += two ? 2 : 1;
    if (two)
        bide_condition_notify_all(&pair->condition);
    else
        bide_condition_notify_one(&pair->condition);
}

/* Every second user brings tokens; the others wait for one, and take it. */
bide_coroutine(storm_body)
{
    bide_begin(storm_body, storm_user * self);
    bide_await_status(self->status, bide_mutex_lock(&self->waiter.lock, &pair_of(self)->mutex));
    if (self->status == 0) {
        if (self->kind % 2 == 0)
            bring(self);
        while (self->kind % 2 != 0 && self->status == 0 && pair_of(self)->tokens == 0) {
            bide_await_status(self->status,
                              bide_condition_wait(&self->waiter.wait, &pair_of(self)->condition,
                                                  &self->waiter.lock));
            storm_assert(self->storm, self->waiter.wait.is_locked);
        }
        if (self->kind % 2 != 0 && self->status == 0) {
            storm_write(self->storm, self->section);
            pair_of(self)->tokens--;
            pair_of(self)->taken++;
        }
        bide_mutex_unlock(&self->waiter.lock);
    }
    storm_ended(self->storm);
    bide_end();
}

static void storm_init(storm *storm)
{
    bide_mutex_init(&storm->object.mutex);
    bide_condition_init(&storm->object.condition);
    storm->object.tokens = storm->object.taken = 0;
    storm->data[0] = storm->data[1] = 0;
}

static void storm_end(storm *storm)
{
    bide_condition_close(&storm->object.condition);
}

/* No waiter is forgotten while there is a token; then the others are ended. */
static bool storm_is_good(storm *storm)
{
    struct pair *pair = &storm->object;
    int brought = 0;
    for (int i = 0; i < STORM_USERS; i++) {
        const storm_user *user = &storm->users[i];
        if (user->status == 0 && user->kind % 2 == 0)
            brought += 1 + (int)(user->kind / 2 % 2);
    }
    return brought == pair->tokens + pair->taken && !bide_mutex_is_locked(&pair->mutex) &&
           BIDE_QUEUE_VALUE(bide_atomic_load(&pair->condition.queue.state, relaxed)) == 0 &&
           bide_waiter_queue_is_idle(&pair->condition.queue);
}

static bool storm_settles(storm *storm)
{
    struct pair *pair = &storm->object;
    bool is_good = !bide_mutex_is_locked(&pair->mutex) &&
                   (pair->tokens == 0 || bide_waiter_queue_is_idle(&pair->condition.queue));
    bide_condition_close(&pair->condition);
    return is_good;
}

static void no_notification_is_lost(void **state)
{
    static const storm_kind kind = {&storm_body,   storm_init, storm_end,
                                    storm_is_good, NULL,       storm_settles};
    (void)state;
    storm_run(&kind);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notify_one_wakes_the_longest_waiting),
        cmocka_unit_test(notify_all_wakes_waiters_in_order),
        cmocka_unit_test(a_later_waiter_is_not_woken_by_an_earlier_notification),
        cmocka_unit_test(it_is_notified_with_the_mutex_too_and_goes_on_when_that_is_free),
        cmocka_unit_test(a_wait_that_is_cut_short_has_the_mutex_and_no_notification),
        cmocka_unit_test(locking_again_is_not_cut_short),
        cmocka_unit_test(a_waiter_asked_to_stop_before_keeps_the_mutex),
        cmocka_unit_test(closing_ends_waits_now_and_later_with_the_mutex),
        cmocka_unit_test(if_the_mutex_is_closed_it_says_that_it_is_not_locked),
        cmocka_unit_test(a_destroyed_coroutine_passes_on_what_it_was_given),
#if BIDE_DEBUG && TESTING_HOSTED
        cmocka_unit_test(misuse_is_told_with_object_and_caller),
#endif
#if TESTING_HOSTED
        cmocka_unit_test(a_thread_waits_until_a_deadline),
        cmocka_unit_test(those_of_a_crowd_wake_each_other_on_a_small_stack),
        cmocka_unit_test(no_notification_is_lost),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
