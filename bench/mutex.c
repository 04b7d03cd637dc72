/*
 * A mutex, locked and unlocked by one party ("uncontended"), and by four parties on two threads
 * ("contended"), each of which does a number of steps between two locks ("outside"). The figures
 * are the locks per second, and the hand-overs per second: locks by another party than the previous
 * holder.
 *
 *   bide              coroutines, on a run loop for each thread
 *   bide-barging      the same with the mutex without hand-over
 *   bide-try          uncontended: try_lock instead of lock
 *   pthread           threads, one each; uncontended, there is a second thread, so that the C library
 *                     does not leave out its locked instructions
 *   std-mutex-..      uncontended: std::mutex, in code of g++ and of clang
 *   cxx20-mutex-..    C++20 coroutines, a mutex like cppcoro's. Contended: "resumed": "inline": the
 *                     next holder continues on the unlocking thread, so that soon one thread does
 *                     everything; or on the event "loop" of its own thread
 *
 * (peers/mutex.sh adds Go's.)
 */
#define _GNU_SOURCE
#include "bench.h"
#include "loops.h"
#include "mutex_contest.h"

#include "bide/barging_mutex.h"
#include "bide/coroutine.h"
#include "bide/mutex.h"
#include "bide/task.h"

#include "peers/mutex.h"

#include <semaphore.h>
#include <stdio.h>
#include <time.h>

enum { TIMES = 5000000, ROUNDS = 11 };

/* ---- Uncontended ---- */

struct locker {
    bide_task task;
    bide_mutex mutex;
    bide_mutex_waiter lock;
    bide_barging_mutex barging;
    bide_barging_mutex_waiter barging_lock;
    uint64_t left;
    uint64_t count;
};

bide_coroutine(locker_body)
{
    bide_begin(locker_body, struct locker * self);
    for (; self->left != 0; self->left--) {
        bide_try(bide_mutex_lock(&self->lock, &self->mutex));
        self->count++;
        bide_mutex_unlock(&self->lock);
    }
    bide_end();
}

bide_coroutine(barging_locker_body)
{
    bide_begin(barging_locker_body, struct locker * self);
    for (; self->left != 0; self->left--) {
        bide_try(bide_barging_mutex_lock(&self->barging_lock, &self->barging));
        self->count++;
        bide_barging_mutex_unlock(&self->barging_lock);
    }
    bide_end();
}

bide_coroutine(trier_body)
{
    bide_begin(trier_body, struct locker * self);
    for (; self->left != 0; self->left--) {
        if (!bide_mutex_try_lock(&self->lock, &self->mutex))
            break;
        self->count++;
        bide_mutex_unlock(&self->lock);
    }
    bide_end();
}

static uint64_t check_count(uint64_t count)
{
    if (count != TIMES)
        bench_fail("mutex", "it was not locked as often as it should");
    return count;
}

static uint64_t run_bide(const void *body)
{
    struct locker locker = {.left = TIMES};
    bide_mutex_init(&locker.mutex);
    bide_barging_mutex_init(&locker.barging);
    bide_sync_wait(bide_task_init(&locker.task, body));
    return check_count(locker.count);
}

static uint64_t run_pthread(const void *unused)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    uint64_t count = 0;
    (void)unused;
    for (uint64_t i = 0; i < TIMES; i++) {
        pthread_mutex_lock(&mutex);
        count++;
        __asm__ volatile("" ::: "memory");
        pthread_mutex_unlock(&mutex);
    }
    return check_count(count);
}

#if BENCH_GXX || BENCH_CLANG
static uint64_t run_cxx(const void *peer)
{
    return check_count(((const struct peer_mutex *)peer)->coroutine(TIMES));
}

static uint64_t run_std(const void *peer)
{
    return check_count(((const struct peer_mutex *)peer)->std_mutex(TIMES));
}
#endif

#define UNCONTENDED "{\"of\": \"uncontended\"}"

static void uncontended(void)
{
    const bench_subject subjects[] = {
        {"bide", run_bide, &locker_body, UNCONTENDED},
        {"bide-barging", run_bide, &barging_locker_body, UNCONTENDED},
        {"bide-try", run_bide, &trier_body, UNCONTENDED},
        {"pthread", run_pthread, NULL, UNCONTENDED},
#if BENCH_GXX
        {"std-mutex-g++", run_std, &peer_mutex_gxx, UNCONTENDED},
        {"cxx20-mutex-g++", run_cxx, &peer_mutex_gxx, UNCONTENDED},
#endif
#if BENCH_CLANG
        {"std-mutex-clang", run_std, &peer_mutex_clang, UNCONTENDED},
        {"cxx20-mutex-clang", run_cxx, &peer_mutex_clang, UNCONTENDED},
#endif
    };
    bench_run("mutex", BENCH_NANOSECONDS_EACH, subjects, sizeof subjects / sizeof subjects[0],
              ROUNDS);
}

/* ---- Contended ---- */

struct contender {
    bide_task task;
    bide_mutex *mutex;
    bide_mutex_waiter lock;
    bide_barging_mutex *barging;
    bide_barging_mutex_waiter barging_lock;
    struct mutex_contest *contest;
    unsigned who;
};

bide_coroutine(contender_body)
{
    bide_begin(contender_body, struct contender * self);
    while (mutex_contest_goes_on(self->contest)) {
        bide_try(bide_mutex_lock(&self->lock, self->mutex));
        mutex_contest_inside(self->contest, self->who);
        bide_mutex_unlock(&self->lock);
        mutex_contest_outside(self->contest);
    }
    bide_end();
}

bide_coroutine(barging_contender_body)
{
    bide_begin(barging_contender_body, struct contender * self);
    while (mutex_contest_goes_on(self->contest)) {
        bide_try(bide_barging_mutex_lock(&self->barging_lock, self->barging));
        mutex_contest_inside(self->contest, self->who);
        bide_barging_mutex_unlock(&self->barging_lock);
        mutex_contest_outside(self->contest);
    }
    bide_end();
}

static void contend(struct mutex_contest *contest, const bide_point *body)
{
    static struct contender contenders[MUTEX_PARTIES];
    static bench_party parties[MUTEX_PARTIES];
    static bide_mutex mutex;
    static bide_barging_mutex barging;
    bide_mutex_init(&mutex);
    bide_barging_mutex_init(&barging);
    for (unsigned i = 0; i < MUTEX_PARTIES; i++) {
        struct contender *contender = &contenders[i];
        contender->mutex = &mutex;
        contender->barging = &barging;
        contender->contest = contest;
        contender->who = i;
        parties[i].awaiter = bide_task_init(&contender->task, body);
        parties[i].loop = i % BENCH_LOOPS;
    }
    bench_loops_run(parties, MUTEX_PARTIES, BENCH_LOOKS);
}

static void contend_bide(struct mutex_contest *contest)
{
    contend(contest, &contender_body);
}

static void contend_barging(struct mutex_contest *contest)
{
    contend(contest, &barging_contender_body);
}

struct thread {
    struct mutex_contest *contest;
    pthread_mutex_t *mutex;
    unsigned who;
};

static void *run_thread(void *argument)
{
    struct thread *self = argument;
    bench_place_thread(self->who);
    while (mutex_contest_goes_on(self->contest)) {
        pthread_mutex_lock(self->mutex);
        mutex_contest_inside(self->contest, self->who);
        pthread_mutex_unlock(self->mutex);
        mutex_contest_outside(self->contest);
    }
    return NULL;
}

static void contend_pthread(struct mutex_contest *contest)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    struct thread threads[MUTEX_PARTIES];
    pthread_t ids[MUTEX_PARTIES];
    for (unsigned i = 0; i < MUTEX_PARTIES; i++) {
        threads[i] = (struct thread){contest, &mutex, i};
        ids[i] = bench_start_thread(run_thread, &threads[i]);
    }
    for (unsigned i = 0; i < MUTEX_PARTIES; i++)
        pthread_join(ids[i], NULL);
}

struct contended_subject {
    const char *name;
    const char *params; /* further parameters, or "" */
    void (*const *run)(struct mutex_contest *contest);
};

struct figures {
    double locks[ROUNDS];
    double handovers[ROUNDS];
};

static void *end_contest(void *argument)
{
    const struct timespec duration = {.tv_nsec = 100000000};
    struct mutex_contest *contest = argument;
    nanosleep(&duration, NULL);
    __atomic_store_n(&contest->over, 1, __ATOMIC_RELAXED);
    return NULL;
}

/* Runs for a tenth of a second. */
static void run_contest(const struct contended_subject *subject, unsigned outside,
                        struct figures *figures, int round)
{
    struct mutex_contest contest = {.outside = outside};
    double begun = bench_now();
    pthread_t ender = bench_start_thread(end_contest, &contest);
    (*subject->run)(&contest);
    double seconds = (bench_now() - begun) / 1e9;
    pthread_join(ender, NULL);
    if (round < 0)
        return;
    figures->locks[round] = (double)contest.locks / seconds;
    figures->handovers[round] = (double)contest.handovers / seconds;
}

static void contended(unsigned outside)
{
    enum { MAX_SUBJECTS = 8 };
    static struct figures figures[MAX_SUBJECTS];
    static void (*const run_bide_contest)(struct mutex_contest *) = contend_bide;
    static void (*const run_barging_contest)(struct mutex_contest *) = contend_barging;
    static void (*const run_pthread_contest)(struct mutex_contest *) = contend_pthread;
    static const struct contended_subject subjects[] = {
        {"bide", "", &run_bide_contest},
        {"bide-barging", "", &run_barging_contest},
        {"pthread", "", &run_pthread_contest},
#if BENCH_GXX
        {"cxx20-mutex-g++", ", \"resumed\": \"inline\"", &peer_mutex_gxx.contend_inline},
        {"cxx20-mutex-g++", ", \"resumed\": \"loop\"", &peer_mutex_gxx.contend_on_loops},
#endif
#if BENCH_CLANG
        {"cxx20-mutex-clang", ", \"resumed\": \"inline\"", &peer_mutex_clang.contend_inline},
        {"cxx20-mutex-clang", ", \"resumed\": \"loop\"", &peer_mutex_clang.contend_on_loops},
#endif
    };
    const size_t count = sizeof subjects / sizeof subjects[0];
    for (int round = -1; round < ROUNDS; round++) {
        for (size_t i = 0; i < count; i++)
            run_contest(&subjects[i], outside, &figures[i], round);
    }
    for (size_t i = 0; i < count; i++) {
        char params[150];
        snprintf(params, sizeof params,
                 "{\"of\": \"contended\", \"parties\": %d, \"threads\": 2, \"outside\": %u%s}",
                 MUTEX_PARTIES, outside, subjects[i].params);
        bench_print("mutex", subjects[i].name, bench_median(figures[i].locks, ROUNDS), "locks/s",
                    params);
        bench_print("mutex", subjects[i].name, bench_median(figures[i].handovers, ROUNDS),
                    "handovers/s", params);
    }
}

static sem_t over;

static void *wait_until_over(void *unused)
{
    (void)unused;
    sem_wait(&over);
    return NULL;
}

int main(void)
{
    sem_init(&over, 0, 0);
    pthread_t other = bench_start_thread(wait_until_over, NULL);
    uncontended();
    contended(0);
    contended(50);
    sem_post(&over);
    pthread_join(other, NULL);
    return 0;
}
