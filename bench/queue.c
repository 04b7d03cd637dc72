/*
 * 64-bit numbers through a queue, from producers to consumers, a thread each: one at a time, or in batches of 16.
 *
 * Each thread tries until it succeeds; in between it pauses the processor 16 times, then gives way to others, and so on.
 * A run is over when consumers have taken all that was to be pushed, and the sums are checked. The first run of each case
 * also finds how many elements make a run long enough; thread starts and the queue's making and end are in the figure.
 *
 * The threads are kept on their processors, whether or not BENCH_PIN is in the environment: two that the system puts on
 * one processor hand over a full ring at a turn, and nothing goes from cache to cache.
 *
 *     "placement"    "apart"   the producer on one processor, the consumer on the other
 *                    "dealt"   to two processors in turn, the producers from the first on, the consumers from the second
 *     "class"                  how many may push and pop (s: one, m: many); bounded, "capacity", or unbounded
 *
 * bide-...            queue_bide.c
 * vyukov, mutex+ring  peers/queue_plain.c
 * mutex+deque         std::deque under std::mutex
 * boost...            Boost.Lockfree: for one and one; for many, of fixed size or growing
 * ck-...              Concurrency Kit's ring
 * moodycamel...       ConcurrentQueue, without and with tokens; readerwriterqueue is its author's for one and one
 * tbb...              oneTBB
 * urcu-...            userspace RCU; malloc gives the nodes
 *
 * Those that have no batches are asked 16 times.
 *
 *     queue [sweep] [NAME]    1 to 1 and 2 to 2; or each of 1, 2, 4 and 8 to each. NAME: only of subjects whose names
 *                             begin so
 *
 * bench/plot_queue.py makes a picture of what `sweep` prints.
 */
#define _GNU_SOURCE
#include "bench.h"
#include "queue_subject.h"

#include <stdio.h>
#include <string.h>

enum { MOST_PARTIES = 8, MOST_SUBJECTS = 64, ROUNDS = 9, SWEEP_ROUNDS = 3 };

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
    double duration;    /* of a run, about, in nanoseconds */
    uint64_t *elements; /* of a run; 0: not known yet */
};

struct party {
    const struct queue_subject *subject;
    struct queue_run *run;
    pthread_barrier_t *start;
    unsigned place;
    uint64_t first; /* a producer's */
    uint64_t count;
    uint64_t sum; /* a consumer's */
};

static void *run_producer(void *argument)
{
    struct party *self = argument;
    bench_place_thread(self->place);
    pthread_barrier_wait(self->start);
    self->subject->produce(self->run, self->first, self->count);
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

static void run_elements(const struct cell *cell, uint64_t elements)
{
    struct queue_run run = {.batch = cell->batch, .elements = elements};
    struct party parties[2 * MOST_PARTIES];
    pthread_t threads[2 * MOST_PARTIES];
    pthread_barrier_t start;
    unsigned count = cell->producers + cell->consumers;
    uint64_t sent = 0, sum = 0;

    run.queue = cell->subject->create(cell->producers, cell->consumers);
    if (run.queue == NULL || pthread_barrier_init(&start, NULL, count) != 0)
        bench_fail("queue", "no memory");
    for (unsigned i = 0; i < count; i++) {
        bool produces = i < cell->producers;
        unsigned place = produces ? i : i - cell->producers + 1;
        parties[i] = (struct party){cell->subject, &run, &start, place, sent, 0, 0};
        if (produces)
            parties[i].count = (elements - sent) / (cell->producers - i);
        sent += parties[i].count;
        threads[i] = bench_start_thread(produces ? run_producer : run_consumer, &parties[i]);
    }
    for (unsigned i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        sum += parties[i].sum;
    }
    pthread_barrier_destroy(&start);
    cell->subject->destroy(run.queue);
    if (sum != elements * (elements - 1) / 2)
        bench_fail("queue", cell->subject->name);
}

/* How many elements take about as long as a run should. */
static uint64_t find_elements(const struct cell *cell)
{
    const uint64_t least = UINT64_C(1) << 14, most = UINT64_C(1) << 25;
    for (uint64_t elements = least;; elements *= 4) {
        double begun = bench_now();
        run_elements(cell, elements);
        double took = bench_now() - begun;
        if (took < cell->duration / 4 && elements < most)
            continue;
        double wanted = (double)elements * cell->duration / took;
        return wanted > (double)most ? most : (uint64_t)wanted + 1;
    }
}

static uint64_t run_cell(const void *argument)
{
    const struct cell *cell = argument;
    if (*cell->elements == 0)
        *cell->elements = find_elements(cell);
    run_elements(cell, *cell->elements);
    return *cell->elements;
}

/* ---- All of them ---- */

static bool allows(const struct queue_subject *subject, unsigned producers, unsigned consumers)
{
    unsigned most_producers = kinds[subject->kind].producers;
    unsigned most_consumers = kinds[subject->kind].consumers;
    return (most_producers == 0 || producers <= most_producers) &&
           (most_consumers == 0 || consumers <= most_consumers);
}

struct choice {
    const char *name; /* how the subjects' names begin */
    int rounds;
    double duration;
};

static void run_cells(const struct choice *choice, unsigned producers, unsigned consumers,
                      size_t batch)
{
    static struct cell cells[MOST_SUBJECTS];
    static bench_subject subjects[MOST_SUBJECTS];
    static char params[MOST_SUBJECTS][200];
    static uint64_t elements[MOST_SUBJECTS];
    size_t count = 0;

    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        for (const struct queue_subject *subject = groups[i]; subject->name != NULL; subject++) {
            if (!allows(subject, producers, consumers) ||
                strncmp(subject->name, choice->name, strlen(choice->name)) != 0)
                continue;
            if (count == MOST_SUBJECTS)
                bench_fail("queue", "there are too many subjects");
            char capacity[40] = "";
            if (kinds[subject->kind].bounded)
                snprintf(capacity, sizeof capacity, ", \"capacity\": %d", QUEUE_CAPACITY);
            snprintf(params[count], sizeof params[count],
                     "{\"producers\": %u, \"consumers\": %u, \"batch\": %zu, \"class\": \"%s\", "
                     "\"placement\": \"%s\"%s}",
                     producers, consumers, batch, kinds[subject->kind].name,
                     producers + consumers == 2 ? "apart" : "dealt", capacity);
            elements[count] = 0;
            cells[count] = (struct cell){subject, producers,        consumers,
                                         batch,   choice->duration, &elements[count]};
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
        const struct choice choice = {name, SWEEP_ROUNDS, 40e6};
        for (size_t batch = 1; batch <= QUEUE_MOST_BATCH; batch *= QUEUE_MOST_BATCH)
            for (unsigned producers = 1; producers <= MOST_PARTIES; producers *= 2)
                for (unsigned consumers = 1; consumers <= MOST_PARTIES; consumers *= 2)
                    run_cells(&choice, producers, consumers, batch);
    } else {
        const struct choice choice = {name, ROUNDS, 100e6};
        for (unsigned parties = 1; parties <= 2; parties++)
            for (size_t batch = 1; batch <= QUEUE_MOST_BATCH; batch *= QUEUE_MOST_BATCH)
                run_cells(&choice, parties, parties, batch);
    }
    return 0;
}
