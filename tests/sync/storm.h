/*
 * A storm over one primitive, with four threads: two start coroutines that each wait for it once, one cancels some of
 * them, one waits itself until a deadline, and closes it now and then. Each round has an object of its own; at its end
 * each wait must have ended once, and the object must be free. The test defines STORM_OBJECT and STORM_WAITER, and the
 * rest in a storm_kind.
 */
#ifndef BIDE_TESTS_STORM_H
#define BIDE_TESTS_STORM_H

#include "sync/meeting.h"

#include "bide/handle.h"
#include "bide/stop.h"
#include "bide/task.h"

enum { STORM_USERS = 8 };

typedef struct storm storm;

typedef struct storm_user {
    bide_task task;
    storm *storm;
    bide_context context;
    bide_stop_source stop;
    STORM_WAITER waiter;
    uint32_t kind;    /* at random */
    uint32_t section; /* how long it takes, at random */
    int status;       /* what the wait ended with */
    int found;        /* for the body */
} storm_user;

typedef struct storm_kind {
    const bide_point *body; /* of a task at the head of a storm_user; ends with storm_ended */
    void (*init)(storm *storm);
    void (*close)(storm *storm);
    bool (*is_good)(storm *storm); /* after a round */

    /*
     * A thread waits until `deadline`, and does the same as the coroutines; returns the status of its wait. NULL: none.
     */
    int (*block)(storm *storm, uint64_t deadline);

    /* When all threads are done: checks the result, and then ends the remaining waits. NULL: there are none. */
    bool (*settles)(storm *storm);
} storm_kind;

struct storm {
    const storm_kind *kind;
    meeting meeting;
    uint32_t rounds;
    uint64_t seed;
    STORM_OBJECT object;
    int data[2];                  /* of an exclusive holder: equal otherwise */
    int blocked;                  /* what `block` returned in this round */
    bide_atomic(uint32_t) inside; /* exclusive holders */
    bide_atomic(uint32_t) wrong;
    bide_atomic(uint32_t) ended;
    storm_user users[STORM_USERS];
};

static inline void storm_assert(storm *storm, bool good)
{
    if (!good)
        bide_atomic_fetch_add(&storm->wrong, 1, relaxed);
}

static inline void storm_ended(storm *storm)
{
    bide_atomic_fetch_add(&storm->ended, 1, release);
}

static inline void storm_pass(uint32_t time)
{
    for (uint32_t i = 0; i < time; i++)
        bide_cpu_relax();
}

/* The action of an exclusive holder. */
static inline void storm_write(storm *storm, uint32_t section)
{
    storm_assert(storm, bide_atomic_fetch_add(&storm->inside, 1, relaxed) == 0);
    storm->data[0]++;
    storm_pass(section);
    storm->data[1]++;
    bide_atomic_fetch_sub(&storm->inside, 1, relaxed);
}

/* The number of coroutines that ended with `status`. */
static inline int storm_count(const storm *storm, int status)
{
    int count = 0;
    for (int i = 0; i < STORM_USERS; i++)
        count += storm->users[i].status == status;
    return count;
}

static inline void storm_begin(storm *storm, uint64_t *random, int first)
{
    for (int i = first; i < STORM_USERS; i += 2) {
        storm_user *user = &storm->users[i];
        random_moment(random, 50);
        bide_start(&user->task.frame, storm->kind->body, &user->context);
        bide_resume(&user->task.frame);
    }
}

static inline void *storm_begin_others(void *argument)
{
    storm *storm = argument;
    uint64_t random = storm->seed + 1;
    for (uint32_t round = 0; round < storm->rounds; round++) {
        meet(&storm->meeting);
        storm_begin(storm, &random, 1);
        meet(&storm->meeting);
    }
    return NULL;
}

static inline void *storm_cancel(void *argument)
{
    storm *storm = argument;
    uint64_t random = storm->seed + 2;
    for (uint32_t round = 0; round < storm->rounds; round++) {
        meet(&storm->meeting);
        random_moment(&random, 300);
        for (int i = 0; i < 2; i++)
            bide_stop_request_with(&storm->users[testing_random(&random) % STORM_USERS].stop,
                                   -ETIMEDOUT);
        meet(&storm->meeting);
    }
    return NULL;
}

static inline void *storm_close(void *argument)
{
    storm *storm = argument;
    uint64_t random = storm->seed + 3;
    for (uint32_t round = 0; round < storm->rounds; round++) {
        meet(&storm->meeting);
        random_moment(&random, 120);
        if (storm->kind->block != NULL)
            storm->blocked =
                storm->kind->block(storm, bide_platform.now() + testing_random(&random) % 20000);
        if (testing_random(&random) % 4 == 0)
            storm->kind->close(storm);
        meet(&storm->meeting);
    }
    return NULL;
}

static inline bool storm_round_is_good(storm *storm)
{
    bool good = storm->kind->settles == NULL || storm->kind->settles(storm);
    good = bide_atomic_load(&storm->ended, acquire) == STORM_USERS && good;
    for (int i = 0; i < STORM_USERS; i++) {
        const int status = storm->users[i].status;
        good = good && (status == 0 || status == -EPIPE ||
                        (status == -ETIMEDOUT && bide_stop_requested(&storm->users[i].stop)));
    }
    return good && storm->data[0] == storm->data[1] && storm->kind->is_good(storm);
}

static inline void storm_run(const storm_kind *kind)
{
    static void *(*const threads[3])(void *) = {storm_begin_others, storm_cancel, storm_close};
    storm storm = {.kind = kind, .rounds = rounds_of(4000), .seed = testing_seed()};
    uint64_t random = storm.seed;
    uint32_t wrong = 0, cut = 0, closed = 0;
    pthread_t ids[3];
    meeting_init(&storm.meeting, 4);
    bide_atomic_init(&storm.inside, 0);
    bide_atomic_init(&storm.wrong, 0);
    for (int i = 0; i < 3; i++)
        start_thread(&ids[i], threads[i], &storm);
    for (uint32_t round = 0; round < storm.rounds; round++) {
        bide_atomic_init(&storm.ended, 0);
        kind->init(&storm);
        for (int i = 0; i < STORM_USERS; i++) {
            storm_user *user = &storm.users[i];
            user->storm = &storm;
            user->kind = (uint32_t)testing_random(&random);
            user->section = (uint32_t)testing_random(&random) % 60;
            user->context = (bide_context){&bide_inline_scheduler, &user->stop, NULL, NULL, NULL};
            bide_stop_source_init(&user->stop);
        }
        meet(&storm.meeting);
        storm_begin(&storm, &random, 0);
        meet(&storm.meeting);
        wrong += !storm_round_is_good(&storm);
        cut += (uint32_t)storm_count(&storm, -ETIMEDOUT);
        closed += (uint32_t)storm_count(&storm, -EPIPE);
    }
    for (int i = 0; i < 3; i++)
        join_thread(ids[i]);
    printf("# of %u waits %u were cut short, %u closed\n", storm.rounds * STORM_USERS, cut, closed);
    assert_int_equal(wrong + bide_atomic_load(&storm.wrong, relaxed), 0);
}

#endif
