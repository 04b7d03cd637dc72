/*
 * The reader-writer lock: readers together, writers alone, first come, first served; downgrading, upgrading; waits that
 * are cancelled; a crowd in line; and random runs with threads.
 */
#define _GNU_SOURCE
#include "misuse.h"
#include "sync/by_hand.h"

#include "bide/handle.h"
#include "bide/rw_lock.h"
#include "bide/stop.h"

#if TESTING_HOSTED
#define STORM_OBJECT bide_rw_lock
#define STORM_WAITER bide_rw_lock_waiter
#include "small_stack.h"
#include "sync/storm.h"
#endif

/*
 * A coroutine with a stop source of its own that locks to read (a name in small letters), to write, or to read as the
 * one that may upgrade (a digit), and notes its name.
 */
struct user {
    bide_task task;
    by_hand *by_hand;
    bide_rw_lock *rw;
    bide_rw_lock_waiter lock;
    bide_context context;
    bide_stop_source stop;
    char name;
    int status;
};

bide_coroutine(user_body)
{
    bide_begin(user_body, struct user * self);
    if (self->name >= 'a')
        bide_await_status(self->status, bide_rw_lock_read(&self->lock, self->rw));
    else if (self->name >= 'A')
        bide_await_status(self->status, bide_rw_lock_write(&self->lock, self->rw));
    else
        bide_await_status(self->status, bide_rw_lock_upgradable_read(&self->lock, self->rw));
    by_hand_note(self->by_hand, self->name);
    bide_end();
}

static void begin(struct user *self, by_hand *by_hand, bide_rw_lock *rw, char name)
{
    self->by_hand = by_hand;
    self->rw = rw;
    self->name = name;
    self->status = 1;
    bide_stop_source_init(&self->stop);
    self->context = by_hand->context;
    self->context.stop = &self->stop;
    bide_start(&self->task.frame, &user_body, &self->context);
    bide_resume(&self->task.frame);
}

struct fixture {
    by_hand by_hand;
    bide_rw_lock rw;
    struct user users[8];
};

/* Starts one for each letter. */
static void fixture_init(struct fixture *self, const char *names)
{
    by_hand_init(&self->by_hand);
    bide_rw_lock_init(&self->rw);
    for (int i = 0; names[i] != '\0'; i++)
        begin(&self->users[i], &self->by_hand, &self->rw, names[i]);
}

static void unlock(struct fixture *self, int index)
{
    bide_rw_lock_unlock(&self->users[index].lock);
    by_hand_run(&self->by_hand);
}

static void many_read_and_one_writes(void **state)
{
    (void)state;
    bide_rw_lock rw;
    bide_rw_lock_waiter one, two, three;
    bide_rw_lock_init(&rw);
    assert_true(bide_rw_lock_try_read(&one, &rw));
    assert_true(bide_rw_lock_try_read(&two, &rw));
    assert_false(bide_rw_lock_try_write(&three, &rw));
    bide_rw_lock_unlock(&one);
    assert_false(bide_rw_lock_try_write(&three, &rw));
    bide_rw_lock_unlock(&two);
    assert_true(bide_rw_lock_try_write(&three, &rw));
    assert_false(bide_rw_lock_try_write(&one, &rw));
    assert_false(bide_rw_lock_try_read(&one, &rw));
    assert_true(bide_rw_lock_is_locked(&rw));
    bide_rw_lock_unlock(&three);
    assert_false(bide_rw_lock_is_locked(&rw));
    bide_rw_lock_destroy(&rw);
}

static void a_writer_that_waits_holds_off_later_readers(void **state)
{
    (void)state;
    struct fixture f;
    bide_rw_lock_waiter other;
    fixture_init(&f, "abCd");
    by_hand_assert_trace(&f.by_hand, "ab");
    assert_false(bide_rw_lock_try_read(&other, &f.rw));
    unlock(&f, 0);
    by_hand_assert_trace(&f.by_hand, "");
    unlock(&f, 1);
    by_hand_assert_trace(&f.by_hand, "C");
    unlock(&f, 2);
    by_hand_assert_trace(&f.by_hand, "d");
    unlock(&f, 3);
    bide_rw_lock_destroy(&f.rw);
}

static void readers_side_by_side_go_on_together_and_writers_one_by_one(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, "AbcDEfg");
    by_hand_assert_trace(&f.by_hand, "A");
    unlock(&f, 0);
    by_hand_assert_trace(&f.by_hand, "bc");
    unlock(&f, 2);
    by_hand_assert_trace(&f.by_hand, "");
    unlock(&f, 1);
    by_hand_assert_trace(&f.by_hand, "D");
    unlock(&f, 3);
    by_hand_assert_trace(&f.by_hand, "E");
    unlock(&f, 4);
    by_hand_assert_trace(&f.by_hand, "fg");
    unlock(&f, 5);
    unlock(&f, 6);
    bide_rw_lock_destroy(&f.rw);
}

static void a_downgraded_writer_reads_on_with_the_next_readers_and_no_writer_between(void **state)
{
    (void)state;
    struct fixture f;
    bide_rw_lock_waiter other;
    fixture_init(&f, "AbCd");
    by_hand_assert_trace(&f.by_hand, "A");
    bide_rw_lock_downgrade(&f.users[0].lock);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "b");
    unlock(&f, 1);
    by_hand_assert_trace(&f.by_hand, "");
    unlock(&f, 0);
    by_hand_assert_trace(&f.by_hand, "C");
    unlock(&f, 2);
    unlock(&f, 3);

    /* The same without waiters. */
    assert_true(bide_rw_lock_try_write(&f.users[0].lock, &f.rw));
    bide_rw_lock_downgrade(&f.users[0].lock);
    assert_true(bide_rw_lock_try_read(&other, &f.rw));
    bide_rw_lock_unlock(&other);
    bide_rw_lock_unlock(&f.users[0].lock);
    bide_rw_lock_destroy(&f.rw);
}

static void a_writer_that_gives_up_lets_the_readers_behind_it_pass(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, "aBcDe");
    by_hand_assert_trace(&f.by_hand, "a");
    bide_stop_request_with(&f.users[1].stop, -ETIMEDOUT);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "Bc");
    assert_int_equal(f.users[1].status, -ETIMEDOUT);
    assert_int_equal(f.users[2].status, 0);
    bide_destroy(&f.users[3].task.frame);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "e");
    unlock(&f, 0);
    unlock(&f, 2);
    unlock(&f, 4);
    bide_rw_lock_destroy(&f.rw);
}

static void what_was_handed_over_to_a_destroyed_coroutine_goes_to_the_next(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, "ABcD");
    bide_rw_lock_unlock(&f.users[0].lock); /* B holds it, and has not run */
    bide_destroy(&f.users[1].task.frame);
    bide_destroy(&f.users[2].task.frame); /* c took it over from B */
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "AD");
    unlock(&f, 3);
    bide_rw_lock_destroy(&f.rw);
}

static void what_was_handed_over_is_not_lost_to_a_request(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, "Ab");
    bide_rw_lock_unlock(&f.users[0].lock);
    bide_stop_request(&f.users[1].stop);
    by_hand_run(&f.by_hand);
    assert_int_equal(f.users[1].status, 0);
    unlock(&f, 1);
    bide_rw_lock_destroy(&f.rw);
}

/* ---- Upgrading ---- */

/* A coroutine that upgrades what a user has locked. */
struct upgrader {
    bide_task task;
    struct user *user;
    bide_context context;
    bide_stop_source stop;
    int status;
};

bide_coroutine(upgrader_body)
{
    bide_begin(upgrader_body, struct upgrader * self);
    bide_await_status(self->status, bide_rw_lock_upgrade(&self->user->lock));
    by_hand_note(self->user->by_hand, '!');
    bide_end();
}

static void upgrade(struct upgrader *self, struct user *user)
{
    self->user = user;
    self->status = 1;
    bide_stop_source_init(&self->stop);
    self->context = user->by_hand->context;
    self->context.stop = &self->stop;
    bide_start(&self->task.frame, &upgrader_body, &self->context);
    bide_resume(&self->task.frame);
}

static void one_may_upgrade_beside_readers_and_writers_and_the_next_such_wait(void **state)
{
    (void)state;
    struct fixture f;
    bide_rw_lock_waiter other;
    fixture_init(&f, "a1b2cD");
    by_hand_assert_trace(&f.by_hand, "a1b");
    assert_false(bide_rw_lock_try_upgradable_read(&other, &f.rw));
    assert_false(bide_rw_lock_try_upgrade(&f.users[1].lock));
    unlock(&f, 0);
    unlock(&f, 2);
    by_hand_assert_trace(&f.by_hand, "");
    unlock(&f, 1);
    by_hand_assert_trace(&f.by_hand, "2c");
    unlock(&f, 3);
    unlock(&f, 4);
    by_hand_assert_trace(&f.by_hand, "D");
    assert_false(bide_rw_lock_try_upgradable_read(&other, &f.rw));
    unlock(&f, 5);
    assert_true(bide_rw_lock_try_upgradable_read(&other, &f.rw));
    assert_true(bide_rw_lock_try_read(&f.users[0].lock, &f.rw));
    bide_rw_lock_unlock(&other);
    bide_rw_lock_unlock(&f.users[0].lock);
    bide_rw_lock_destroy(&f.rw);
}

static void an_upgrade_waits_for_readers_and_stands_before_all_that_wait(void **state)
{
    (void)state;
    for (int line = 0; line < 2; line++) { /* with one before it or not */
        struct fixture f;
        struct upgrader up;
        bide_rw_lock_waiter other;
        fixture_init(&f, line ? "1aBc2" : "1a");
        by_hand_assert_trace(&f.by_hand, "1a");
        upgrade(&up, &f.users[0]);
        assert_int_equal(up.status, 1);
        assert_false(bide_rw_lock_try_read(&other, &f.rw)); /* it holds off later readers */
        unlock(&f, 1);
        by_hand_assert_trace(&f.by_hand, "!");
        assert_int_equal(up.status, 0);
        assert_false(bide_rw_lock_try_read(&other, &f.rw));
        unlock(&f, 0);
        if (line) {
            by_hand_assert_trace(&f.by_hand, "B");
            unlock(&f, 2);
            by_hand_assert_trace(&f.by_hand, "c2");
            unlock(&f, 3);
            unlock(&f, 4);
        }
        assert_false(bide_rw_lock_is_locked(&f.rw));
        bide_rw_lock_destroy(&f.rw);
    }
}

static void without_readers_an_upgrade_passes_a_line_at_once(void **state)
{
    (void)state;
    for (int tries = 0; tries < 2; tries++) {
        struct fixture f;
        struct upgrader up;
        fixture_init(&f, "1Ab");
        by_hand_assert_trace(&f.by_hand, "1");
        if (tries) {
            assert_true(bide_rw_lock_try_upgrade(&f.users[0].lock));
        } else {
            upgrade(&up, &f.users[0]);
            assert_int_equal(up.status, 0);
            by_hand_assert_trace(&f.by_hand, "!");
        }
        unlock(&f, 0);
        by_hand_assert_trace(&f.by_hand, "A");
        unlock(&f, 1);
        by_hand_assert_trace(&f.by_hand, "b");
        unlock(&f, 2);
        bide_rw_lock_destroy(&f.rw);
    }
}

static void an_upgrade_that_fails_still_reads_and_those_that_it_held_off_go_on(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) { /* asked to stop, destroyed, closed */
        struct fixture f;
        struct upgrader up;
        fixture_init(&f, "1a");
        upgrade(&up, &f.users[0]);
        begin(&f.users[2], &f.by_hand, &f.rw, 'b');
        by_hand_assert_trace(&f.by_hand, "1a");
        if (way == 0)
            bide_stop_request(&up.stop);
        else if (way == 1)
            bide_destroy(&up.task.frame);
        else
            bide_rw_lock_close(&f.rw);
        by_hand_run(&f.by_hand);
        assert_int_equal(up.status, way == 0 ? -ECANCELED : way == 1 ? 1 : -EPIPE);
        assert_int_equal(f.users[2].status, way == 2 ? -EPIPE : 0);
        assert_int_equal(f.users[0].lock.holds, BIDE_RW_LOCK_MAY_UPGRADE_);
        unlock(&f, 1);
        if (way != 2) {
            unlock(&f, 2);
            assert_true(bide_rw_lock_try_upgrade(&f.users[0].lock)); /* again */
        } else {
            assert_false(bide_rw_lock_try_upgrade(&f.users[0].lock));
            upgrade(&up, &f.users[0]);
            assert_int_equal(up.status, -EPIPE);
        }
        unlock(&f, 0);
        assert_false(bide_rw_lock_is_locked(&f.rw));
        bide_rw_lock_destroy(&f.rw);
    }
}

static void an_upgrade_whose_coroutine_is_destroyed_before_it_knows_is_taken_back(void **state)
{
    (void)state;
    struct fixture f;
    struct upgrader up;
    fixture_init(&f, "1abC");
    upgrade(&up, &f.users[0]);
    unlock(&f, 1);
    bide_rw_lock_unlock(&f.users[2].lock); /* the upgrade is admitted, and has not run */
    bide_destroy(&up.task.frame);
    assert_int_equal(f.users[0].lock.holds, BIDE_RW_LOCK_MAY_UPGRADE_);
    assert_int_equal(up.status, 1);
    begin(&f.users[4], &f.by_hand, &f.rw, 'd');
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "1ab");
    unlock(&f, 0);
    by_hand_assert_trace(&f.by_hand, "C");
    unlock(&f, 3);
    by_hand_assert_trace(&f.by_hand, "d");
    unlock(&f, 4);
    bide_rw_lock_destroy(&f.rw);
}

static void it_is_downgraded_step_by_step_and_no_writer_comes_between(void **state)
{
    (void)state;
    struct fixture f;
    bide_rw_lock_waiter other;
    fixture_init(&f, "1");
    assert_true(bide_rw_lock_try_upgrade(&f.users[0].lock));
    begin(&f.users[1], &f.by_hand, &f.rw, 'a');
    begin(&f.users[2], &f.by_hand, &f.rw, '2');
    begin(&f.users[3], &f.by_hand, &f.rw, 'B');
    by_hand_assert_trace(&f.by_hand, "1");
    bide_rw_lock_downgrade_to_upgradable(&f.users[0].lock);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "a");
    assert_false(bide_rw_lock_try_upgrade(&f.users[0].lock));
    bide_rw_lock_downgrade(&f.users[0].lock);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "2");
    unlock(&f, 1);
    assert_false(bide_rw_lock_try_upgrade(&f.users[2].lock)); /* the first still reads */
    unlock(&f, 0);
    assert_true(bide_rw_lock_try_upgrade(&f.users[2].lock));
    bide_rw_lock_downgrade(&f.users[2].lock);
    by_hand_assert_trace(&f.by_hand, "");
    unlock(&f, 2);
    by_hand_assert_trace(&f.by_hand, "B");
    unlock(&f, 3);

    /* The same without waiters. */
    assert_true(bide_rw_lock_try_write(&f.users[0].lock, &f.rw));
    bide_rw_lock_downgrade_to_upgradable(&f.users[0].lock);
    assert_true(bide_rw_lock_try_read(&other, &f.rw));
    bide_rw_lock_unlock(&other);
    assert_true(bide_rw_lock_try_upgrade(&f.users[0].lock));
    unlock(&f, 0);
    bide_rw_lock_destroy(&f.rw);
}

static void closing_ends_those_in_line_and_those_that_come(void **state)
{
    (void)state;
    struct fixture f;
    bide_rw_lock_waiter other;
    fixture_init(&f, "aBc");
    bide_rw_lock_close(&f.rw);
    bide_rw_lock_close(&f.rw);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "aBc");
    begin(&f.users[3], &f.by_hand, &f.rw, 'd');
    begin(&f.users[4], &f.by_hand, &f.rw, 'E');
    for (int i = 0; i < 5; i++)
        assert_int_equal(f.users[i].status, i == 0 ? 0 : -EPIPE);
    unlock(&f, 0);
    assert_false(bide_rw_lock_try_read(&other, &f.rw));
    assert_false(bide_rw_lock_try_write(&other, &f.rw));
    bide_rw_lock_destroy(&f.rw);
}

#if TESTING_HOSTED
static void a_thread_locks_it_until_a_deadline(void **state)
{
    (void)state;
    bide_rw_lock rw;
    bide_rw_lock_waiter one, two;
    bide_rw_lock_init(&rw);
    assert_int_equal(bide_rw_lock_read_blocking(&one, &rw, BIDE_FOREVER), 0);
    assert_int_equal(bide_rw_lock_read_blocking(&two, &rw, 0), 0);
    bide_rw_lock_unlock(&two);
    assert_int_equal(bide_rw_lock_write_blocking(&two, &rw, bide_platform.now() + 1000000),
                     -ETIMEDOUT);
    assert_int_equal(bide_rw_lock_write_blocking(&two, &rw, 0), -ETIMEDOUT);
    bide_rw_lock_unlock(&one);
    assert_int_equal(bide_rw_lock_write_blocking(&two, &rw, BIDE_FOREVER), 0);
    bide_rw_lock_unlock(&two);
    assert_int_equal(bide_rw_lock_upgradable_read_blocking(&one, &rw, 0), 0);
    assert_int_equal(bide_rw_lock_upgradable_read_blocking(&two, &rw, 0), -ETIMEDOUT);
    assert_int_equal(bide_rw_lock_read_blocking(&two, &rw, 0), 0);
    assert_int_equal(bide_rw_lock_upgrade_blocking(&one, 0), -ETIMEDOUT);
    bide_rw_lock_unlock(&two);
    assert_int_equal(bide_rw_lock_upgrade_blocking(&one, BIDE_FOREVER), 0);
    assert_int_equal(bide_rw_lock_read_blocking(&two, &rw, 0), -ETIMEDOUT);
    bide_rw_lock_unlock(&one);
    bide_rw_lock_destroy(&rw);
}
#endif

#if BIDE_DEBUG && TESTING_HOSTED
static void unlock_twice(void)
{
    bide_rw_lock rw;
    bide_rw_lock_waiter one, two;
    bide_rw_lock_init(&rw);
    bide_rw_lock_try_read(&one, &rw);
    bide_rw_lock_try_read(&two, &rw);
    bide_rw_lock_unlock(&one);
    bide_rw_lock_unlock(&one);
}

static void downgrade_what_is_read(void)
{
    bide_rw_lock rw;
    bide_rw_lock_waiter one;
    bide_rw_lock_init(&rw);
    bide_rw_lock_try_read(&one, &rw);
    bide_rw_lock_downgrade(&one);
}

static void upgrade_what_is_read(void)
{
    bide_rw_lock rw;
    bide_rw_lock_waiter one;
    bide_rw_lock_init(&rw);
    bide_rw_lock_try_read(&one, &rw);
    bide_await_later(bide_rw_lock_upgrade(&one));
}

static void try_to_upgrade_what_is_written(void)
{
    bide_rw_lock rw;
    bide_rw_lock_waiter one;
    bide_rw_lock_init(&rw);
    bide_rw_lock_try_write(&one, &rw);
    (void)bide_rw_lock_try_upgrade(&one);
}

static void downgrade_to_what_it_is(void)
{
    bide_rw_lock rw;
    bide_rw_lock_waiter one;
    bide_rw_lock_init(&rw);
    bide_rw_lock_try_upgradable_read(&one, &rw);
    bide_rw_lock_downgrade_to_upgradable(&one);
}

static void destroy_what_is_read(void)
{
    bide_rw_lock rw;
    bide_rw_lock_waiter one;
    bide_rw_lock_init(&rw);
    bide_rw_lock_try_read(&one, &rw);
    bide_rw_lock_destroy(&rw);
}

static void misuse_is_told_with_object_and_caller(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(
        unlock_twice, "a reader-writer lock is unlocked by a waiter that has not locked it: &one",
        "unlock_twice"));
    assert_true(misuse_aborts_naming(downgrade_what_is_read, "&one", "downgrade_what_is_read"));
    assert_true(misuse_aborts_naming(
        upgrade_what_is_read,
        "a reader-writer lock is upgraded by a waiter that has not locked it to do so: &one",
        "upgrade_what_is_read"));
    assert_true(misuse_aborts_naming(try_to_upgrade_what_is_written, "&one",
                                     "try_to_upgrade_what_is_written"));
    assert_true(misuse_aborts_naming(downgrade_to_what_it_is, "&one", "downgrade_to_what_it_is"));
    assert_true(misuse_aborts_naming(destroy_what_is_read,
                                     "a reader-writer lock is destroyed while it is in use: &rw",
                                     "destroy_what_is_read"));
}
#endif

/* ---- A crowd in line, on a small stack ---- */

#if TESTING_HOSTED
static uint32_t locked;

struct link {
    bide_task task;
    bide_rw_lock *rw;
    bool writes;
    bide_rw_lock_waiter lock;
};

bide_coroutine(link_body)
{
    bide_begin(link_body, struct link * self);
    if (self->writes)
        bide_try(bide_rw_lock_write(&self->lock, self->rw));
    else
        bide_try(bide_rw_lock_read(&self->lock, self->rw));
    locked++;
    bide_rw_lock_unlock(&self->lock);
    bide_end();
}

static void *wake_a_chain(void *argument)
{
    struct link *links = argument;
    bide_rw_lock rw;
    bide_rw_lock_waiter first;
    bide_rw_lock_init(&rw);
    bide_rw_lock_try_write(&first, &rw);
    for (uint32_t i = 0; i < crowd_of_waiters(); i++) {
        links[i].rw = &rw;
        links[i].writes = i % 4 == 0;
        bide_start(&links[i].task.frame, &link_body, &bide_default_context);
        bide_resume(&links[i].task.frame);
    }
    bide_rw_lock_unlock(&first);
    return NULL;
}

static void those_of_a_crowd_wake_each_other_on_a_small_stack(void **state)
{
    (void)state;
    struct link *links = calloc(crowd_of_waiters(), sizeof *links);
    assert_non_null(links);
    locked = 0;
    on_a_small_stack(wake_a_chain, links);
    assert_int_equal(locked, crowd_of_waiters());
    free(links);
}

/* ---- At random, with threads ---- */

static void read_it(storm *storm, uint32_t section)
{
    int first = storm->data[0];
    storm_pass(section);
    storm_assert(storm, storm->data[1] == first);
}

#define UPGRADED (UINT32_C(1) << 31) /* in `section` */

static bool storm_writes(const storm_user *user)
{
    return user->kind % 5 < 2 || (user->section & UPGRADED) != 0;
}

/* One of five writes, one writes and then reads, one reads and then writes or not, and the others read. */
bide_coroutine(storm_body)
{
    bide_begin(storm_body, storm_user * self);
    self->section &= ~UPGRADED;
    if (self->kind % 5 < 2)
        bide_await_status(self->status, bide_rw_lock_write(&self->waiter, &self->storm->object));
    else if (self->kind % 5 == 2) {
        bide_await_status(self->status,
                          bide_rw_lock_upgradable_read(&self->waiter, &self->storm->object));
        if (self->status == 0) {
            int status;
            self->found = self->storm->data[0];
            bide_await_status(status, bide_rw_lock_upgrade(&self->waiter));
            storm_assert(self->storm, self->storm->data[0] == self->found);
            if (status == 0) {
                storm_write(self->storm, self->section);
                self->section |= UPGRADED;
                if (self->kind % 2 == 0)
                    bide_rw_lock_downgrade_to_upgradable(&self->waiter);
            }
        }
    } else
        bide_await_status(self->status, bide_rw_lock_read(&self->waiter, &self->storm->object));
    if (self->status == 0) {
        if (self->kind % 5 < 2)
            storm_write(self->storm, self->section);
        if (self->kind % 5 == 1)
            bide_rw_lock_downgrade(&self->waiter);
        if (self->kind % 5 == 1 || !storm_writes(self))
            read_it(self->storm, self->section);
        bide_rw_lock_unlock(&self->waiter);
    }
    storm_ended(self->storm);
    bide_end();
}

static int storm_block(storm *storm, uint64_t deadline)
{
    bide_rw_lock_waiter lock;
    int status = bide_rw_lock_write_blocking(&lock, &storm->object, deadline);
    if (status == 0) {
        storm_write(storm, 20);
        bide_rw_lock_unlock(&lock);
    }
    return status;
}

static void storm_init(storm *storm)
{
    bide_rw_lock_init(&storm->object);
    storm->data[0] = storm->data[1] = 0;
}

static void storm_end(storm *storm)
{
    bide_rw_lock_close(&storm->object);
}

static bool storm_is_good(storm *storm)
{
    int written = storm->blocked == 0;
    for (int i = 0; i < STORM_USERS; i++)
        written += storm->users[i].status == 0 && storm_writes(&storm->users[i]);
    return storm->data[0] == written && !bide_rw_lock_is_locked(&storm->object) &&
           bide_waiter_queue_is_idle(&storm->object.queue);
}

static void each_locks_it_or_is_told_why_not(void **state)
{
    static const storm_kind kind = {&storm_body,   storm_init,  storm_end,
                                    storm_is_good, storm_block, NULL};
    (void)state;
    storm_run(&kind);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_read_and_one_writes),
        cmocka_unit_test(a_writer_that_waits_holds_off_later_readers),
        cmocka_unit_test(readers_side_by_side_go_on_together_and_writers_one_by_one),
        cmocka_unit_test(a_downgraded_writer_reads_on_with_the_next_readers_and_no_writer_between),
        cmocka_unit_test(a_writer_that_gives_up_lets_the_readers_behind_it_pass),
        cmocka_unit_test(what_was_handed_over_to_a_destroyed_coroutine_goes_to_the_next),
        cmocka_unit_test(what_was_handed_over_is_not_lost_to_a_request),
        cmocka_unit_test(one_may_upgrade_beside_readers_and_writers_and_the_next_such_wait),
        cmocka_unit_test(an_upgrade_waits_for_readers_and_stands_before_all_that_wait),
        cmocka_unit_test(without_readers_an_upgrade_passes_a_line_at_once),
        cmocka_unit_test(an_upgrade_that_fails_still_reads_and_those_that_it_held_off_go_on),
        cmocka_unit_test(an_upgrade_whose_coroutine_is_destroyed_before_it_knows_is_taken_back),
        cmocka_unit_test(it_is_downgraded_step_by_step_and_no_writer_comes_between),
        cmocka_unit_test(closing_ends_those_in_line_and_those_that_come),
#if BIDE_DEBUG && TESTING_HOSTED
        cmocka_unit_test(misuse_is_told_with_object_and_caller),
#endif
#if TESTING_HOSTED
        cmocka_unit_test(a_thread_locks_it_until_a_deadline),
        cmocka_unit_test(those_of_a_crowd_wake_each_other_on_a_small_stack),
        cmocka_unit_test(each_locks_it_or_is_told_why_not),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
