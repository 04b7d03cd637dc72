/*
 * Cancelled waits: each ends exactly once, with 0 or the reason; its neighbours are not disturbed; the list is empty
 * afterwards.
 */
#include "sync/by_hand.h"
#include "sync/meeting.h"

#include "bide/event.h"
#include "bide/handle.h"
#include "bide/sequence_barrier.h"
#include "bide/stop.h"

/* A coroutine with a stop source of its own that waits for an event or, if there is one, for a sequence number. */
struct waiter {
    bide_task task;
    by_hand *by_hand;
    bide_event *event;
    bide_sequence_barrier *barrier;
    char name;
    bide_event_waiter wait;
    bide_sequence_waiter barrier_wait;
    bide_context context;
    bide_stop_source stop;
    int status;
};

bide_coroutine(waiter_body)
{
    bide_begin(waiter_body, struct waiter * self);
    if (self->barrier != NULL)
        bide_await_status(self->status, bide_sequence_barrier_wait_until_published(
                                            &self->barrier_wait, self->barrier, 1));
    else
        bide_await_status(self->status, bide_event_wait(&self->wait, self->event));
    by_hand_note(self->by_hand, self->name);
    bide_end();
}

static void begin(struct waiter *self, by_hand *by_hand, bide_event *event,
                  bide_sequence_barrier *barrier, char name, bide_stop_source *parent)
{
    self->by_hand = by_hand;
    self->event = event;
    self->barrier = barrier;
    self->name = name;
    self->status = 1;
    self->context = by_hand->context;
    self->context.stop = &self->stop;
    bide_stop_source_init(&self->stop);
    if (parent != NULL)
        bide_stop_source_attach(&self->stop, parent);
    bide_start(&self->task.frame, &waiter_body, &self->context);
    bide_resume(&self->task.frame);
}

/* The same on an event and on a barrier. */
struct fixture {
    by_hand by_hand;
    bide_event event;
    bide_sequence_barrier barrier;
    bide_stop_source stop;
    struct waiter waiters[5]; /* 'a' to 'e' */
};

static void fixture_init(struct fixture *self, bool on_barrier)
{
    by_hand_init(&self->by_hand);
    bide_event_init(&self->event, false);
    bide_sequence_barrier_init(&self->barrier, 0);
    bide_stop_source_init(&self->stop);
    for (int i = 0; i < 5; i++)
        begin(&self->waiters[i], &self->by_hand, &self->event, on_barrier ? &self->barrier : NULL,
              (char)('a' + i), &self->stop);
}

static void fixture_end_all(struct fixture *self, bool on_barrier)
{
    if (on_barrier)
        bide_sequence_barrier_publish(&self->barrier, 1);
    else
        bide_event_set(&self->event);
}

static void fixture_assert_empty(struct fixture *self)
{
    uintptr_t event = bide_atomic_load(&self->event.waiters.word, relaxed);
    assert_true(event == BIDE_LIST_EMPTY || event == BIDE_LIST_SHUT);
    assert_true(bide_atomic_load(&self->barrier.waiters.list.word, relaxed) <= BIDE_LIST_WATCHED_);
}

static void a_cancelled_wait_ends_and_the_others_keep_their_order(void **state)
{
    (void)state;
    for (int on_barrier = 0; on_barrier < 2; on_barrier++) {
        for (int which = 0; which < 5; which++) {
            struct fixture f;
            fixture_init(&f, on_barrier);
            bide_stop_request(&f.waiters[which].stop);
            assert_int_equal(f.by_hand.posted, 1);
            by_hand_run(&f.by_hand);
            assert_int_equal(f.waiters[which].status, -ECANCELED);
            fixture_end_all(&f, on_barrier);
            by_hand_run(&f.by_hand);
            char expected[6] = {(char)('a' + which)};
            for (int i = 0, n = 1; i < 5; i++) {
                if (i != which)
                    expected[n++] = (char)('a' + i);
                assert_int_equal(f.waiters[i].status, i == which ? -ECANCELED : 0);
            }
            by_hand_assert_trace(&f.by_hand, expected);
            fixture_assert_empty(&f);
        }
    }
}

static void a_request_on_the_parent_ends_all_in_order_of_arrival(void **state)
{
    (void)state;
    for (int on_barrier = 0; on_barrier < 2; on_barrier++) {
        struct fixture f;
        fixture_init(&f, on_barrier);
        bide_stop_request_with(&f.stop, -ETIMEDOUT);
        by_hand_run(&f.by_hand);
        for (int i = 0; i < 5; i++) {
            assert_int_equal(f.waiters[i].status, -ETIMEDOUT);
            assert_int_equal(bide_stop_reason(&f.waiters[i].stop), -ETIMEDOUT);
        }
        assert_int_equal(strlen(f.by_hand.trace), 5);
        fixture_assert_empty(&f);
        fixture_end_all(&f, on_barrier);
        assert_int_equal(by_hand_run(&f.by_hand), 0);
    }
}

static void a_wait_that_has_ended_is_not_cancelled(void **state)
{
    (void)state;
    for (int on_barrier = 0; on_barrier < 2; on_barrier++) {
        struct fixture f;
        fixture_init(&f, on_barrier);
        fixture_end_all(&f, on_barrier); /* queued, not run */
        bide_stop_request(&f.stop);
        by_hand_run(&f.by_hand);
        for (int i = 0; i < 5; i++)
            assert_int_equal(f.waiters[i].status, 0);
        by_hand_assert_trace(&f.by_hand, "abcde");
    }
}

static void a_wait_after_the_request_ends_at_once_unless_it_is_ready(void **state)
{
    (void)state;
    for (int on_barrier = 0; on_barrier < 2; on_barrier++) {
        struct fixture f;
        fixture_init(&f, on_barrier);
        bide_stop_request(&f.stop);
        by_hand_run(&f.by_hand);
        struct waiter late;
        begin(&late, &f.by_hand, &f.event, on_barrier ? &f.barrier : NULL, 'x', &f.stop);
        assert_true(bide_done(&late.task.frame));
        assert_int_equal(late.status, -ECANCELED);
        fixture_end_all(&f, on_barrier);
        begin(&late, &f.by_hand, &f.event, on_barrier ? &f.barrier : NULL, 'y', &f.stop);
        assert_true(bide_done(&late.task.frame));
        assert_int_equal(late.status, 0);
    }
}

static void a_destroyed_coroutine_leaves_the_list_and_its_source(void **state)
{
    (void)state;
    for (int on_barrier = 0; on_barrier < 2; on_barrier++) {
        for (int which = 0; which < 5; which++) {
            for (int ended = 0; ended < 3; ended++) {
                struct fixture f;
                fixture_init(&f, on_barrier);
                if (ended == 1)
                    fixture_end_all(&f, on_barrier);
                if (ended == 2)
                    bide_stop_request(&f.waiters[which].stop);
                bide_destroy(&f.waiters[which].task.frame);
                assert_int_equal(f.waiters[which].status, 1);
                /* The source may be used for another wait. */
                uint32_t word = bide_atomic_load(&f.waiters[which].stop.word, relaxed);
                assert_int_equal(word, ended == 2 ? BIDE_STOP_REQUESTED_ : 0);
                bide_stop_request(&f.waiters[which].stop);
                fixture_end_all(&f, on_barrier);
                by_hand_run(&f.by_hand);
                for (int i = 0; i < 5; i++)
                    assert_int_equal(f.waiters[i].status, i == which ? 1 : 0);
                assert_int_equal(strlen(f.by_hand.trace), 4);
                fixture_assert_empty(&f);
            }
        }
    }
}

#if TESTING_HOSTED
#include "small_stack.h"

/* ---- Many ---- */

/* So many that a quadratic algorithm would never finish. Sanitizers find their bugs with a few. */
enum { MANY = SANITIZED ? 20 * 1000 : 1000 * 1000 };

struct small {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
    bide_stop_source stop;
    bide_context context;
    int status;
};

bide_coroutine(small_body)
{
    bide_begin(small_body, struct small * self);
    bide_await_status(self->status, bide_event_wait(&self->wait, self->event));
    bide_end();
}

/* One request cancels every second one: searching the list for each would take weeks. */
static void many_waits_are_cut_short_in_linear_time(void **state)
{
    (void)state;
    struct small *all = calloc(MANY, sizeof *all);
    bide_stop_source stop;
    bide_event event;
    assert_non_null(all);
    bide_stop_source_init(&stop);
    bide_event_init(&event, false);
    for (size_t i = 0; i < MANY; i++) {
        struct small *s = &all[i];
        s->event = &event;
        s->status = 1;
        s->context = (bide_context){&bide_inline_scheduler, &s->stop, NULL, NULL, NULL};
        bide_stop_source_init(&s->stop);
        if (i % 2 == 0)
            bide_stop_source_attach(&s->stop, &stop);
        bide_start(&s->task.frame, &small_body, &s->context);
        bide_resume(&s->task.frame);
    }
    bide_stop_request(&stop);
    size_t wrong = 0;
    for (size_t i = 0; i < MANY; i++)
        wrong += all[i].status != (i % 2 == 0 ? -ECANCELED : 1);
    bide_event_set(&event);
    for (size_t i = 0; i < MANY; i++)
        wrong += all[i].status != (i % 2 == 0 ? -ECANCELED : 0);
    assert_int_equal(wrong, 0);
    free(all);
}

/* ---- At random, with threads ---- */

enum { WAITERS = 6 };

/* One thread starts the waits, one sets or publishes, two cancel some of the waiters. */
struct storm {
    meeting meeting;
    uint32_t rounds;
    bool is_last;
    uint64_t seed;
    bool on_barrier;
    bide_event event;
    bide_sequence_barrier barrier;
    bide_stop_source stop;
    struct storm_waiter {
        bide_task task;
        struct storm *storm;
        bide_event_waiter wait;
        bide_sequence_waiter barrier_wait;
        bide_context context;
        bide_stop_source stop;
        bide_atomic(uint32_t) ends;
        int status;
    } waiters[WAITERS];
};

bide_coroutine(storm_body)
{
    bide_begin(storm_body, struct storm_waiter * self);
    if (self->storm->on_barrier)
        bide_await_status(self->status, bide_sequence_barrier_wait_until_published(
                                            &self->barrier_wait, &self->storm->barrier, 1));
    else
        bide_await_status(self->status, bide_event_wait(&self->wait, &self->storm->event));
    bide_atomic_fetch_add(&self->ends, 1, release);
    bide_end();
}

static void *storm_end(void *argument)
{
    struct storm *s = argument;
    uint64_t random = s->seed + 1;
    for (bool over = false; !over;) {
        meet(&s->meeting);
        over = s->is_last;
        random_moment(&random, 200);
        if (s->on_barrier) {
            bide_sequence_barrier_publish(&s->barrier, 1);
        } else {
            /* Reset, so that a waiter that is put back meets an event that was set and no longer is. */
            bide_event_set(&s->event);
            bide_event_reset(&s->event);
        }
        meet(&s->meeting);
        bide_event_set(&s->event);
        meet(&s->meeting);
    }
    return NULL;
}

static void storm_ask(struct storm *s, uint64_t seed, bool all)
{
    uint64_t random = seed;
    for (bool over = false; !over;) {
        meet(&s->meeting);
        over = s->is_last;
        random_moment(&random, 200);
        if (all && testing_random(&random) % 2 == 0)
            bide_stop_request(&s->stop);
        else
            bide_stop_request(&s->waiters[testing_random(&random) % WAITERS].stop);
        meet(&s->meeting);
        meet(&s->meeting);
    }
}

static void *storm_ask_one(void *argument)
{
    storm_ask(argument, ((struct storm *)argument)->seed + 2, false);
    return NULL;
}

static void *storm_ask_any(void *argument)
{
    storm_ask(argument, ((struct storm *)argument)->seed + 3, true);
    return NULL;
}

static void storm_begin_waits(struct storm *s, uint64_t *random)
{
    for (int i = 0; i < WAITERS; i++) {
        struct storm_waiter *w = &s->waiters[i];
        random_moment(random, 40);
        bide_start(&w->task.frame, &storm_body, &w->context);
        bide_resume(&w->task.frame);
    }
}

static void each_wait_ends_once_whatever_ends_it(void **state)
{
    (void)state;
    struct storm s = {.rounds = rounds_of(4000), .seed = testing_seed()};
    static void *(*const threads[3])(void *) = {storm_end, storm_ask_one, storm_ask_any};
    pthread_t ids[3];
    uint64_t random = s.seed;
    uint32_t wrong = 0, waits = 0, cancelled = 0;
    meeting_init(&s.meeting, 4);
    for (int i = 0; i < 3; i++)
        start_thread(&ids[i], threads[i], &s);
    for (uint32_t round = 0; !s.is_last; round++) {
        s.is_last = is_last_round(round, s.rounds, cancelled > 0 && cancelled < waits);
        s.on_barrier = round % 2 == 1;
        bide_event_init(&s.event, false);
        bide_sequence_barrier_init(&s.barrier, 0);
        bide_stop_source_init(&s.stop);
        for (int i = 0; i < WAITERS; i++) {
            struct storm_waiter *w = &s.waiters[i];
            w->storm = &s;
            w->context = (bide_context){&bide_inline_scheduler, &w->stop, NULL, NULL, NULL};
            bide_stop_source_init(&w->stop);
            bide_stop_source_attach(&w->stop, &s.stop);
            bide_atomic_init(&w->ends, 0);
        }
        meet(&s.meeting);
        storm_begin_waits(&s, &random);
        meet(&s.meeting);
        /* Another set ends the wait that started after the set and its reset. */
        meet(&s.meeting);
        for (int i = 0; i < WAITERS; i++) {
            struct storm_waiter *w = &s.waiters[i];
            wrong += bide_atomic_load(&w->ends, acquire) != 1 ||
                     (w->status != 0 && !bide_stop_requested(&w->stop));
            cancelled += w->status != 0;
            waits++;
            bide_stop_source_detach(&w->stop);
        }
        wrong += bide_atomic_load(&s.event.waiters.word, relaxed) != BIDE_LIST_SHUT;
        wrong += bide_atomic_load(&s.barrier.waiters.list.word, relaxed) > BIDE_LIST_WATCHED_;
    }
    for (int i = 0; i < 3; i++)
        join_thread(ids[i]);
    printf("# %u of %u waits were cut short\n", cancelled, waits);
    assert_int_equal(wrong, 0);
    assert_true(cancelled > 0 && cancelled < waits);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cancelled_wait_ends_and_the_others_keep_their_order),
        cmocka_unit_test(a_request_on_the_parent_ends_all_in_order_of_arrival),
        cmocka_unit_test(a_wait_that_has_ended_is_not_cancelled),
        cmocka_unit_test(a_wait_after_the_request_ends_at_once_unless_it_is_ready),
        cmocka_unit_test(a_destroyed_coroutine_leaves_the_list_and_its_source),
#if TESTING_HOSTED
        cmocka_unit_test(many_waits_are_cut_short_in_linear_time),
        cmocka_unit_test(each_wait_ends_once_whatever_ends_it),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
