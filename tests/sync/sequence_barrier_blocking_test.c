/*
 * The sequence barrier for plain threads: waits until a deadline; and the end of a barrier.
 */
#include "sync/meeting.h"

#include "bide/errors.h"
#include "bide/sequence8.h"

#include "misuse.h"

enum { SHORT = 1000 * 1000 };

static uint64_t in(uint64_t nanoseconds)
{
    return bide_platform.now() + nanoseconds;
}

static void a_wait_says_how_far_it_has_come(void **state)
{
    (void)state;
    bide_sequence_barrier barrier;
    size_t published = 99;
    bide_sequence_barrier_init(&barrier, bide_sequence_initial());
    bide_sequence_barrier_publish(&barrier, 4);
    assert_int_equal(
        bide_sequence_barrier_wait_until_published_blocking(&barrier, 3, 0, &published), 0);
    assert_int_equal(published, 4);
    published = 99;
    assert_int_equal(
        bide_sequence_barrier_wait_until_published_blocking(&barrier, 5, 0, &published),
        -ETIMEDOUT);
    assert_int_equal(published, 4);
    published = 99;
    assert_int_equal(
        bide_sequence_barrier_wait_until_published_blocking(&barrier, 5, in(SHORT), &published),
        -ETIMEDOUT);
    assert_int_equal(published, 4);
    assert_int_equal(
        bide_sequence_barrier_wait_until_published_blocking(&barrier, 5, in(SHORT), NULL),
        -ETIMEDOUT);
    bide_sequence_barrier_close(&barrier);
    published = 99;
    assert_int_equal(
        bide_sequence_barrier_wait_until_published_blocking(&barrier, 5, BIDE_FOREVER, &published),
        -EPIPE);
    assert_int_equal(published, 4);
    bide_sequence_barrier_destroy(&barrier);
}

#if BIDE_DEBUG
static void destroy_it_while_it_is_awaited(void)
{
    bide_sequence_barrier8 precious;
    bide_sequence_waiter8 waiter;
    probe probe;
    probe_init(&probe);
    bide_sequence_barrier8_init(&precious, bide_sequence8_initial());
    probe_await(&probe, bide_sequence_barrier8_wait_until_published(&waiter, &precious, 0));
    bide_sequence_barrier8_destroy(&precious);
}

static void to_destroy_it_while_it_is_awaited_is_misuse(void **state)
{
    (void)state;
    assert_true(
        misuse_aborts_naming(destroy_it_while_it_is_awaited,
                             "a sequence barrier is destroyed while it is waited for: &precious",
                             "destroy_it_while_it_is_awaited"));
}
#endif

/* Three threads follow a publisher, each giving up repeatedly, over numbers that wrap around again and
 * again. */
enum { FOLLOWERS = 3 };

struct stress {
    bide_sequence_barrier8 barrier;
    uint32_t count;
    uint64_t seed;
    bide_atomic(uint32_t) followed[FOLLOWERS]; /* the numbers seen by each */
};

struct follower {
    struct stress *stress;
    uint32_t number;
    uint32_t late;
    uint32_t wrong;
    pthread_t thread;
};

static void *follow(void *argument)
{
    struct follower *self = argument;
    struct stress *stress = self->stress;
    uint64_t random = stress->seed + 1 + self->number;
    uint32_t next = 0;
    for (;;) {
        uint8_t published = 0;
        uint64_t number = testing_random(&random);
        uint64_t deadline =
            number % 8 == 0 ? 0 : (number % 8 == 1 ? BIDE_FOREVER : in(number / 8 % 10000));
        int status = bide_sequence_barrier8_wait_until_published_blocking(
            &stress->barrier, (uint8_t)next, deadline, &published);
        if (status == 0) {
            uint8_t come = (uint8_t)(published - (uint8_t)next);
            self->wrong += come >= 64;
            next += (uint32_t)come + 1;
            bide_atomic_store(&stress->followed[self->number], next, relaxed);
        } else if (status == -ETIMEDOUT) {
            self->late++;
            self->wrong += (uint8_t)(published - (uint8_t)next) < 64; /* it was published */
        } else {
            self->wrong += status != -EPIPE || next != stress->count;
            return NULL;
        }
    }
}

static void nothing_published_is_missed_by_a_wait_that_gives_up(void **state)
{
    (void)state;
    struct stress stress = {.count = rounds_of(20000), .seed = testing_seed()};
    struct follower followers[FOLLOWERS];
    uint64_t random = stress.seed;
    bide_sequence_barrier8_init(&stress.barrier, bide_sequence8_initial());
    for (uint32_t i = 0; i < FOLLOWERS; i++) {
        bide_atomic_init(&stress.followed[i], 0);
        followers[i] = (struct follower){&stress, i, 0, 0, 0};
        start_thread(&followers[i].thread, follow, &followers[i]);
    }
    for (uint32_t number = 0; number < stress.count; number++) {
        for (uint32_t i = 0; i < FOLLOWERS; i++) {
            uint32_t spins = 0;
            while (number - bide_atomic_load(&stress.followed[i], relaxed) >= 32)
                wait_a_moment(&spins);
        }
        random_moment(&random, 100);
        bide_sequence_barrier8_publish(&stress.barrier, (uint8_t)number);
    }
    bide_sequence_barrier8_close(&stress.barrier);
    uint32_t late = 0;
    for (uint32_t i = 0; i < FOLLOWERS; i++) {
        join_thread(followers[i].thread);
        assert_int_equal(followers[i].wrong, 0);
        late += followers[i].late;
    }
    printf("# %u waits were cut short\n", late);
    bide_sequence_barrier8_destroy(&stress.barrier);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_says_how_far_it_has_come),
#if BIDE_DEBUG
        cmocka_unit_test(to_destroy_it_while_it_is_awaited_is_misuse),
#endif
        cmocka_unit_test(nothing_published_is_missed_by_a_wait_that_gives_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
