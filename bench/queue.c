/*
 * 64-bit numbers through a queue, from producers to consumers, a thread each: one at a time, or in
 * batches of 16.
 *
 * Each thread retries until it succeeds. Between two tries it pauses the processor 16 times, then
 * yields to other threads, and so on. After a tenth of a second the producers stop, and the
 * consumers stop when everything is consumed; the sums are checked. (The time is fixed rather than
 * the count: with more threads than processors, some queues are a thousand times slower.) The
 * figure includes starting the threads and creating and destroying the queue.
 *
 * The threads are pinned, whether or not BENCH_PIN is in the environment: two threads on one
 * processor would pass a full ring at a time, and nothing would move between caches.
 *
 *     "placement"    "apart"   the producer on one processor, the consumer on the other
 *                    "dealt"   dealt to the processors, producers from the first on, consumers from
 *                              the second on
 *     "class"                  how many may push and pop (s: one, m: many); bounded, "capacity", or
 *                              unbounded
 *
 *   bide-...            queue_bide.c
 *   vyukov, mutex+ring  peers/queue_plain.c
 *   mutex+deque         std::deque under std::mutex
 *   boost...            Boost.Lockfree: for one and one; for many, of fixed size or growing
 *   ck-...              Concurrency Kit's ring
 *   moodycamel...       ConcurrentQueue, without and with tokens; readerwriterqueue is by the same
 *                       author, for one and one
 *   tbb...              oneTBB
 *   urcu-...            userspace RCU; nodes from malloc
 *
 * Queues without batches are called 16 times.
 *
 *     queue [sweep] [NAME]    1 to 1 and 2 to 2; or each of 1, 2, 4 and 8 to each. NAME: only subjects
 *                             with this prefix
 *
 * bench/plot_queue.py plots the output of `sweep`.
 */
#define _GNU_SOURCE
#include "bench.h"
#include "queue_subject.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MAX_PARTIES = 8, MAX_SUBJECTS = 64, ROUNDS = 9, SWEEP_ROUNDS = 3 };

static const struct queue_subject *const groups[] = {
    queues_bide,         queues_plain,
#if BENCH_CK
    queues_ck,
#endif
#if BENCH_URCU
    queues_urcu,
#endif
#if BENCH_CXX
    queues_std,
#endif
#if BENCH_BOOST
    queues_boost,
#endif
#if BENCH_MOODYCAMEL
    queues_moodycamel,
#endif
#if BENCH_READERWRITER
    queues_readerwriter,
#endif
#if BENCH_TBB
    queues_tbb,
#endif
};

static const struct {
    const char *name;
    unsigned producers, consumers; /* at most; 0: any number */
    bool bounded;
} kinds[] = {
    [QUEUE_SPSC_BOUNDED] = {"spsc-bounded", 1, 1, true},
    [QUEUE_MPSC_BOUNDED] = {"mpsc-bounded", 0, 1, true},
    [QUEUE_MPMC_BOUNDED] = {"mpmc-bounded", 0, 0, true},
    [QUEUE_SPSC_UNBOUNDED] = {"spsc-unbounded", 1, 1, false},
    [QUEUE_MPSC_UNBOUNDED] = {"mpsc-unbounded", 0, 1, false},
    [QUEUE_MPMC_UNBOUNDED] = {"mpmc-unbounded", 0, 0, false},
};

/* ---- A run ---- */

struct cell {
    const struct queue_subject *subject;
    unsigned producers;
    unsigned consumers;
    size_t batch;
    long duration; /* nanoseconds of producing */
};

struct party {
    const struct queue_subject *subject;
    struct queue_run *run;
    pthread_barrier_t *start;
    unsigned place;
    uint64_t first; /* a producer's */
    uint64_t count;
    uint64_t sum; /* of the elements that it pushed or popped */
};

static void *run_producer(void *argument)
{
    struct party *self = argument;
    bench_place_thread(self->place);
    pthread_barrier_wait(self->start);
    self->count = self->subject->produce(self->run, self->first);
    self->sum = self->first * self->count + self->count * (self->count - 1) / 2;
    queue_end_producer(self->run, self->count);
    return NULL;
}

static void *run_consumer(void *argument)
{
    struct party *self = argument;
    bench_place_thread(self->place);
    pthread_barrier_wait(self->start);
    self->sum = self->subject->consume(self->run);
    return NULL;
}

static uint64_t run_cell(const void *argument)
{
    const struct cell *cell = argument;
    const struct timespec duration = {.tv_nsec = cell->duration};
    struct queue_run run = {.batch = cell->batch, .producing = cell->producers};
    struct party parties[2 * MAX_PARTIES];
    pthread_t threads[2 * MAX_PARTIES];
    pthread_barrier_t start;
    unsigned count = cell->producers + cell->consumers;
    uint64_t pushed = 0, left = 0;

    run.queue = cell->subject->create(cell->producers, cell->consumers);
    if (run.queue == NULL || pthread_barrier_init(&start, NULL, count) != 0)
        bench_fail("queue", "no memory");
    for (unsigned i = 0; i < count; i++) {
        bool produces = i < cell->producers;
        unsigned place = produces ? i : i - cell->producers + 1;
        parties[i] = (struct party){cell->subject, &run, &start, place, (uint64_t)i << 40, 0, 0};
        threads[i] = bench_start_thread(produces ? run_producer : run_consumer, &parties[i]);
    }
    nanosleep(&duration, NULL);
    __atomic_store_n(&run.stops, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        pushed += parties[i].count;
        left += i < cell->producers ? parties[i].sum : -parties[i].sum;
    }
    pthread_barrier_destroy(&start);
    cell->subject->destroy(run.queue);
    if (left != 0 || pushed == 0)
        bench_fail("queue", cell->subject->name);
    return pushed;
}

/* ---- All of them ---- */

static bool allows(const struct queue_subject *subject, unsigned producers, unsigned consumers)
{
    unsigned max_producers = kinds[subject->kind].producers;
    unsigned max_consumers = kinds[subject->kind].consumers;
    return (max_producers == 0 || producers <= max_producers) &&
           (max_consumers == 0 || consumers <= max_consumers);
}

struct choice {
    const char *name; /* prefix of the subjects' names */
    int rounds;
    long duration;
};

static void run_cells(const struct choice *choice, unsigned producers, unsigned consumers,
                      size_t batch)
{
    static struct cell cells[MAX_SUBJECTS];
    static bench_subject subjects[MAX_SUBJECTS];
    static char params[MAX_SUBJECTS][200];
    size_t count = 0;

    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        for (const struct queue_subject *subject = groups[i]; subject->name != NULL; subject++) {
            if (!allows(subject, producers, consumers) ||
                strncmp(subject->name, choice->name, strlen(choice->name)) != 0)
                continue;
            if (count == MAX_SUBJECTS)
                bench_fail("queue", "there are too many subjects");
            char capacity[40] = "";
            if (kinds[subject->kind].bounded)
                snprintf(capacity, sizeof capacity, ", \"capacity\": %d", QUEUE_CAPACITY);
            snprintf(params[count], sizeof params[count],
                     "{\"producers\": %u, \"consumers\": %u, \"batch\": %zu, \"class\": \"%s\", "
                     "\"placement\": \"%s\"%s}",
                     producers, consumers, batch, kinds[subject->kind].name,
                     producers + consumers == 2 ? "apart" : "dealt", capacity);
            cells[count] = (struct cell){subject, producers, consumers, batch, choice->duration};
            subjects[count] =
                (bench_subject){subject->name, run_cell, &cells[count], params[count]};
            count++;
        }
    }
    bench_run("queue", BENCH_ITEMS_PER_SECOND, subjects, count, choice->rounds);
}

static bool is_subject(const char *name)
{
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        for (const struct queue_subject *subject = groups[i]; subject->name != NULL; subject++)
            if (strncmp(subject->name, name, strlen(name)) == 0)
                return true;
    return false;
}

int main(int argc, char **argv)
{
    bool sweeps = argc > 1 && strcmp(argv[1], "sweep") == 0;
    const char *name = argc > 1 + sweeps ? argv[1 + sweeps] : "";
    if (!is_subject(name))
        bench_fail("queue", "there is no such subject");
    setenv("BENCH_PIN", "1", 1);
    if (sweeps) {
        const struct choice choice = {name, SWEEP_ROUNDS, 40000000};
        for (size_t batch = 1; batch <= QUEUE_MOST_BATCH; batch *= QUEUE_MOST_BATCH)
            for (unsigned producers = 1; producers <= MAX_PARTIES; producers *= 2)
                for (unsigned consumers = 1; consumers <= MAX_PARTIES; consumers *= 2)
                    run_cells(&choice, producers, consumers, batch);
    } else {
        const struct choice choice = {name, ROUNDS, 100000000};
        for (unsigned parties = 1; parties <= 2; parties++)
            for (size_t batch = 1; batch <= QUEUE_MOST_BATCH; batch *= QUEUE_MOST_BATCH)
                run_cells(&choice, parties, parties, batch);
    }
    return 0;
}
