/*
 * Spinning before a wait: how often the condition is polled, and that a spinning consumer receives everything.
 */
#include "sync/meeting.h"

#include "bide/adaptive_spin.h"
#include "bide/coroutine.h"
#include "bide/run_loop.h"
#include "bide/sequence_barrier.h"
#include "bide/task.h"

static int looks;

static bool look(bool result)
{
    looks++;
    return result;
}

static void a_condition_that_holds_is_looked_at_once(void **state)
{
    (void)state;
    bide_adaptive_spin spin = {0};
    looks = 0;
    for (int i = 0; i < 100; i++)
        assert_true(bide_spin_until(&spin, look(true)));
    assert_int_equal(looks, 100);
}

static void spinning_in_vain_becomes_ever_rarer(void **state)
{
    (void)state;
    enum { WAITS = 64 * 20 };
    bide_adaptive_spin spin = {0};
    int spins = 0;
    for (int i = 0; i < WAITS; i++) {
        looks = 0;
        assert_false(bide_spin_until(&spin, look(false)));
        assert_in_range(looks, 1, 2);
        spins += looks == 2;
        if (i == 0 || i == 2 || i == 6 || i == 14)
            assert_int_equal(looks, 2);
        else if (i < 14)
            assert_int_equal(looks, 1);
    }
    assert_in_range(spins, WAITS / 64, WAITS / 64 + 6);
}

/* The condition holds at the second poll. */
static bool look_twice(int *left)
{
    return (*left)-- == 0;
}

static void once_it_has_paid_it_is_done_each_time(void **state)
{
    (void)state;
    bide_adaptive_spin spin = {0};
    int left, paid = 0;
    for (int i = 0; i < 1000; i++)
        bide_spin_until(&spin, look(false));
    for (int i = 0; i < 1000; i++) {
        left = 1;
        paid += bide_spin_until(&spin, look_twice(&left));
    }
    assert_in_range(paid, 1000 - 64, 1000);
}

/* A consumer on a run loop, and a publisher on another thread that pauses at random. */
typedef struct consumer {
    bide_task task;
    bide_sequence_waiter wait;
    bide_adaptive_spin spin;
    bide_sequence_barrier barrier;
    size_t known;
    size_t until;
    uint32_t wrong;
    uint64_t random; /* the publisher's */
} consumer;

bide_coroutine(consume)
{
    bide_begin(consume, consumer * self);
    while (self->known != self->until) {
        if (bide_spin_until(&self->spin,
                            bide_sequence_barrier_last_published(&self->barrier) != self->known)) {
            self->known = bide_sequence_barrier_last_published(&self->barrier);
            continue;
        }
        bide_try(bide_sequence_barrier_wait_until_published(&self->wait, &self->barrier,
                                                            self->known + 1));
        self->wrong += bide_sequence_precedes(self->wait.published, self->known + 1);
        self->known = self->wait.published;
    }
    bide_end();
}

static void *publish(void *argument)
{
    consumer *self = argument;
    for (size_t i = 1; i <= self->until; i++) {
        bide_sequence_barrier_publish(&self->barrier, i);
        if (testing_random(&self->random) % 8 == 0)
            random_moment(&self->random, 200);
    }
    return NULL;
}

static void a_consumer_that_spins_misses_nothing(void **state)
{
    (void)state;
    static consumer self;
    bide_run_loop loop;
    pthread_t thread;
    self = (consumer){.until = rounds_of(20000), .random = testing_seed()};
    bide_sequence_barrier_init(&self.barrier, 0);
    bide_run_loop_init(&loop);
    start_thread(&thread, publish, &self);
    assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&self.task, &consume)), 0);
    join_thread(thread);
    assert_int_equal(self.known, self.until);
    assert_int_equal(self.wrong, 0);
    bide_sequence_barrier_destroy(&self.barrier);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_condition_that_holds_is_looked_at_once),
        cmocka_unit_test(spinning_in_vain_becomes_ever_rarer),
        cmocka_unit_test(once_it_has_paid_it_is_done_each_time),
        cmocka_unit_test(a_consumer_that_spins_misses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
