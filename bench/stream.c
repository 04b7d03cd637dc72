/*
 * Messages of 100 bytes through a message log, published one at a time and in batches of 100: how many a
 * second, and how long a batch takes, in microseconds ("of": "p50", "p99").
 *
 *   bide-ring         a producer and a consumer on one run loop
 *   ring              likewise, over a bare ring (bide/ring.h) with the same window
 *   bide-shm          a producer and a consumer in two processes
 *   shared-ring       likewise, over a bare ring in memory that they share; both poll
 *   bide-file         a producer at the level synced; nobody reads
 *   write+fdatasync   a loop that writes as many bytes to a file, and syncs it after each batch
 *
 * The time of a batch is from before its publish until the consumer has the last message, and without a
 * consumer until the publish has ended. The next batch is published after that. Files are in TMPDIR, or
 * in /var/tmp.
 */
#define _GNU_SOURCE
#include "bench.h"
#include "loops.h"

#include "bide/bide.h"
#include "bide/message_log.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SIZE = 100,
    WINDOW = 1024,
    BATCH_MAX = 100,
    RECORD = 140, /* bytes of such a message in a file of bide */
    TIMED = 500,  /* batches that are timed in a round */
    ROUNDS = 5,
    SPINS = 100
};

struct item {
    uint64_t number;
    uint64_t time; /* before its publish */
    char rest[SIZE - 16];
};

struct setting {
    uint32_t batch;
    uint64_t items;
};

/* One run, in memory that processes share. */
static struct run {
    uint64_t items;
    uint32_t batch;
    bool is_timed; /* a batch is published when the one before has been read */
    bide_atomic(uint32_t) is_ready;
    double times[TIMED]; /* microseconds, of each batch */

    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_atomic(uint64_t) seen; /* messages that were read */
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_atomic(uint64_t) sent; /* of shared-ring */
    struct item ring[WINDOW];
} * run;

static void begin_run(const struct setting *setting, bool is_timed)
{
    run->batch = setting->batch;
    run->is_timed = is_timed;
    run->items = is_timed ? TIMED * (uint64_t)setting->batch : setting->items;
    bide_atomic_store(&run->is_ready, 0, relaxed);
    bide_atomic_store(&run->seen, 0, relaxed);
    bide_atomic_store(&run->sent, 0, relaxed);
}

static void check_status(int status)
{
    if (status < 0)
        bench_fail("stream", strerror(-status));
}

static uint32_t next_count(uint64_t sent)
{
    uint64_t left = run->items - sent;
    return left < run->batch ? (uint32_t)left : run->batch;
}

/* When a batch begins. */
static uint64_t begin_time(void)
{
    return run->is_timed ? bide_platform.now() : 0;
}

static void fill_item(struct item *item, uint64_t number, uint64_t time)
{
    item->number = number;
    item->time = time;
    memset(item->rest, (int)number, sizeof item->rest);
}

/* The batch that ends before the message `end` is done. */
static void note_time(uint64_t end, uint64_t time)
{
    if (run->is_timed && end % run->batch == 0)
        run->times[end / run->batch - 1] = (double)(bide_platform.now() - time) / 1e3;
}

static void note_item(const struct item *item, uint64_t number)
{
    if (item->number != number)
        bench_fail("stream", "a message is not the next one");
    note_time(number + 1, item->time);
}

/* ---- Two processes ---- */

/* A producer would wait for ever for a consumer that failed. */
static void on_child(int number, siginfo_t *info, void *context)
{
    static const char failed[] = "stream: the consumer failed\n";
    (void)number;
    (void)context;
    if (info->si_code == CLD_EXITED && info->si_status == 0)
        return;
    if (write(STDERR_FILENO, failed, sizeof failed - 1) < 0)
        _exit(2);
    _exit(1);
}

/*
 * Runs the producer here, when the consumer in a child is ready. If one of the two ends before it is
 * done, so does the other.
 */
static void run_processes(void (*produce)(void), void (*consume)(void))
{
    const struct sigaction watch = {.sa_sigaction = on_child,
                                    .sa_flags = SA_SIGINFO | SA_RESTART | SA_NOCLDSTOP};
    int status;
    pid_t parent = getpid();
    if (sigaction(SIGCHLD, &watch, NULL) < 0)
        bench_fail("stream", "sigaction");
    pid_t child = fork();
    if (child < 0)
        bench_fail("stream", "fork");
    if (child == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
            _exit(1);
        bench_place_thread(1);
        consume();
        _exit(0);
    }
    bench_place_thread(0);
    produce();
    if (waitpid(child, &status, 0) != child || status != 0)
        bench_fail("stream", "the consumer failed");
}

static void wait_for_consumer(void)
{
    while (bide_atomic_load(&run->is_ready, acquire) == 0)
        sched_yield();
}

/* ---- Logs ---- */

static struct log_party {
    bide_task task;
    bide_log *log;
    bide_log_consumer consumer;
    bide_log_operation operation;
    bide_schedule_operation yield;
    bide_log_message messages[BATCH_MAX];
    struct item items[BATCH_MAX];
    uint64_t done;
} producer, consumer;

static void open_log(struct log_party *party, const char *url)
{
    party->done = 0;
    if (bide_sync_wait(bide_log_open(&party->operation, &party->log, url)) < 0)
        bench_fail("stream", party->operation.problem);
}

static uint32_t fill_messages(struct log_party *party)
{
    uint32_t count = next_count(party->done);
    uint64_t time = begin_time();
    for (uint32_t i = 0; i < count; i++) {
        fill_item(&party->items[i], party->done + i, time);
        party->messages[i] = (bide_log_message){.data = &party->items[i], .size = SIZE};
    }
    return count;
}

bide_coroutine(log_producer_body)
{
    bide_begin(log_producer_body, struct log_party * self);
    while (self->done < run->items) {
        bide_try(
            bide_log_publish(&self->operation, self->log, self->messages, fill_messages(self)));
        self->done += self->operation.count;
        while (run->is_timed && bide_atomic_load(&run->seen, acquire) < self->done)
            bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
    }
    bide_end();
}

bide_coroutine(log_consumer_body)
{
    bide_begin(log_consumer_body, struct log_party * self);
    while (self->done < run->items) {
        bide_try(bide_log_read(&self->operation, &self->consumer, self->messages, BATCH_MAX));
        for (uint32_t i = 0; i < self->operation.count; i++) {
            struct item item;
            memcpy(&item, self->messages[i].data, sizeof item);
            note_item(&item, self->done++);
        }
        bide_try(bide_log_acknowledge(&self->operation, &self->consumer, self->messages,
                                      self->operation.count));
        bide_atomic_store(&run->seen, self->done, release);
    }
    bide_end();
}

static void subscribe(void)
{
    check_status(bide_sync_wait(
        bide_log_subscribe(&consumer.operation, &consumer.consumer, consumer.log, NULL)));
}

static void run_ring(void)
{
    bench_party parties[] = {{.awaiter = bide_task_init(&producer.task, &log_producer_body)},
                             {.awaiter = bide_task_init(&consumer.task, &log_consumer_body)}};
    open_log(&producer, "ring:stream?window=1024&size=128");
    open_log(&consumer, "ring:stream");
    subscribe();
    bench_loops_run(parties, 2, BENCH_LOOKS);
    bide_log_unsubscribe(&consumer.consumer);
    bide_log_destroy(consumer.log);
    bide_log_destroy(producer.log);
}

static char shm_name[64], shm_url[96];

static void run_party(struct log_party *party, const bide_point *body)
{
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    check_status(bide_run_loop_wait(&loop, bide_task_init(&party->task, body)));
    bide_run_loop_destroy(&loop);
}

static void consume_shm(void)
{
    open_log(&consumer, shm_url);
    subscribe();
    bide_atomic_store(&run->is_ready, 1, release);
    run_party(&consumer, &log_consumer_body);
    bide_log_unsubscribe(&consumer.consumer);
    bide_log_destroy(consumer.log);
}

static void produce_shm(void)
{
    open_log(&producer, shm_url);
    wait_for_consumer();
    run_party(&producer, &log_producer_body);
    bide_log_destroy(producer.log);
}

static void run_shm(void)
{
    run_processes(produce_shm, consume_shm);
    shm_unlink(shm_name);
}

/* ---- Bare rings ---- */

typedef bide_ring(struct item) item_ring;

static struct {
    item_ring ring;
    bide_single_producer_sequencer sequencer;
    bide_sequence_barrier cursor, consumed;
    bide_sequence_barrier *members[1];
    bide_sequence_group gate;
} bare;

struct bare_party {
    bide_task task;
    bide_claim claim;
    bide_sequence_waiter wait;
    bide_schedule_operation yield;
    size_t next; /* sequence of a consumer */
    uint64_t done;
};

static void fill_claim(struct bare_party *party)
{
    uint64_t time = begin_time();
    for (size_t i = 0; i < party->claim.count; i++)
        fill_item(bide_ring_at(&bare.ring, party->claim.first + i), party->done + i, time);
    party->done += party->claim.count;
}

bide_coroutine(bare_producer_body)
{
    bide_begin(bare_producer_body, struct bare_party * self);
    while (self->done < run->items) {
        bide_try(bide_single_producer_sequencer_claim_up_to(&self->claim, &bare.sequencer,
                                                            next_count(self->done)));
        fill_claim(self);
        bide_single_producer_sequencer_publish_range(&bare.sequencer, self->claim.first,
                                                     self->claim.count);
        while (run->is_timed && bide_atomic_load(&run->seen, acquire) < self->done)
            bide_await(bide_schedule(&self->yield, bide_this_context()->scheduler));
    }
    bide_end();
}

bide_coroutine(bare_consumer_body)
{
    bide_begin(bare_consumer_body, struct bare_party * self);
    while (self->done < run->items) {
        bide_try(bide_sequence_barrier_wait_until_published(&self->wait, &bare.cursor, self->next));
        for (; self->next != self->wait.published + 1; self->next++) {
            struct item item = *bide_ring_at(&bare.ring, self->next);
            note_item(&item, self->done++);
        }
        bide_sequence_barrier_publish(&bare.consumed, self->wait.published);
        bide_atomic_store(&run->seen, self->done, release);
    }
    bide_end();
}

static void run_bare(void)
{
    static struct bare_party from, to;
    from.done = to.done = to.next = 0;
    bench_party parties[] = {{.awaiter = bide_task_init(&from.task, &bare_producer_body)},
                             {.awaiter = bide_task_init(&to.task, &bare_consumer_body)}};
    bide_ring_init(&bare.ring, run->ring, WINDOW);
    bide_sequence_barrier_init(&bare.cursor, bide_sequence_initial());
    bide_sequence_barrier_init(&bare.consumed, bide_sequence_initial());
    bare.members[0] = &bare.consumed;
    bide_sequence_group_init(&bare.gate, bare.members, 1);
    bide_single_producer_sequencer_init(&bare.sequencer, &bare.cursor, &bare.gate, WINDOW);
    bench_loops_run(parties, 2, BENCH_LOOKS);
}

/* Waits until a counter of the other process has reached `count`. */
static uint64_t poll_counter(bide_atomic(uint64_t) * counter, uint64_t count)
{
    uint64_t found;
    /* acquire: partner is the release of the other process; the items are before it. */
    for (unsigned spins = 0; (found = bide_atomic_load(counter, acquire)) < count; spins++) {
        if (spins >= SPINS)
            sched_yield();
    }
    return found;
}

static void produce_shared(void)
{
    for (uint64_t sent = 0; sent < run->items;) {
        uint32_t count = next_count(sent);
        uint64_t time = begin_time(), end = sent + count;
        poll_counter(&run->seen, end > WINDOW ? end - WINDOW : 0);
        for (; sent < end; sent++)
            fill_item(&run->ring[sent % WINDOW], sent, time);
        bide_atomic_store(&run->sent, end, release);
        if (run->is_timed)
            poll_counter(&run->seen, end);
    }
}

static void consume_shared(void)
{
    for (uint64_t seen = 0; seen < run->items;) {
        uint64_t end = poll_counter(&run->sent, seen + 1);
        for (; seen < end; seen++) {
            struct item item = run->ring[seen % WINDOW];
            note_item(&item, seen);
        }
        bide_atomic_store(&run->seen, end, release);
    }
}

static void run_shared(void)
{
    run_processes(produce_shared, consume_shared);
}

/* ---- Files ---- */

static char folder[4096], file_url[4160], file_path[4160];

static void remove_files(const char *path)
{
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;)
        (void)unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory != NULL)
        closedir(directory);
}

static void run_file(void)
{
    open_log(&producer, file_url);
    while (producer.done < run->items) {
        uint64_t time = begin_time();
        check_status(bide_sync_wait(bide_log_publish(&producer.operation, producer.log,
                                                     producer.messages, fill_messages(&producer))));
        producer.done += producer.operation.count;
        note_time(producer.done, time);
    }
    bide_log_destroy(producer.log);
    remove_files(folder);
}

static void run_write(void)
{
    static char records[BATCH_MAX * RECORD];
    int file = open(file_path, O_CREAT | O_TRUNC | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0)
        bench_fail("stream", "no file can be made");
    for (uint64_t sent = 0; sent < run->items;) {
        uint64_t time = begin_time();
        uint32_t count = next_count(sent);
        for (uint32_t i = 0; i < count; i++)
            memset(records + (size_t)i * RECORD, (int)(sent + i), RECORD);
        if (write(file, records, (size_t)count * RECORD) != (ssize_t)count * RECORD ||
            fdatasync(file) < 0)
            bench_fail("stream", "a file cannot be written");
        sent += count;
        note_time(sent, time);
    }
    close(file);
    (void)unlink(file_path);
}

/* ---- All ---- */

#define SUBJECT(name, function)                           \
    static uint64_t name(const void *argument)            \
    {                                                     \
        begin_run(argument, false);                       \
        function();                                       \
        return ((const struct setting *)argument)->items; \
    }
SUBJECT(subject_ring, run_ring)
SUBJECT(subject_bare, run_bare)
SUBJECT(subject_shm, run_shm)
SUBJECT(subject_shared, run_shared)
SUBJECT(subject_file, run_file)
SUBJECT(subject_write, run_write)

#define BOTH(name, subject, one, hundred)                                        \
    {name, subject, &(const struct setting){1, one}, "{\"batch\": 1}"},          \
    {                                                                            \
        name, subject, &(const struct setting){100, hundred}, "{\"batch\": 100}" \
    }
static const bench_subject subjects[] = {
    BOTH("bide-ring", subject_ring, 200000, 1000000),
    BOTH("ring", subject_bare, 1000000, 2000000),
    BOTH("bide-shm", subject_shm, 100000, 500000),
    BOTH("shared-ring", subject_shared, 1000000, 2000000),
    BOTH("bide-file", subject_file, 200, 20000),
    BOTH("write+fdatasync", subject_write, 200, 20000),
};

static void time_batches(const char *name, void (*function)(void), uint32_t batch)
{
    static double medians[ROUNDS], tails[ROUNDS];
    const struct setting setting = {.batch = batch};
    char params[64];
    for (int round = -1; round < ROUNDS; round++) {
        begin_run(&setting, true);
        function();
        if (round < 0)
            continue;
        medians[round] = bench_quantile(run->times, TIMED, 0.5);
        tails[round] = bench_quantile(run->times, TIMED, 0.99);
    }
    snprintf(params, sizeof params, "{\"batch\": %u, \"of\": \"p50\"}", (unsigned)batch);
    bench_print("stream", name, bench_median(medians, ROUNDS), "us", params);
    snprintf(params, sizeof params, "{\"batch\": %u, \"of\": \"p99\"}", (unsigned)batch);
    bench_print("stream", name, bench_median(tails, ROUNDS), "us", params);
}

int main(void)
{
    static const struct {
        const char *name;
        void (*function)(void);
    } timed[] = {
        {"bide-ring", run_ring},     {"ring", run_bare},      {"bide-shm", run_shm},
        {"shared-ring", run_shared}, {"bide-file", run_file}, {"write+fdatasync", run_write},
    };
    const char *below = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/bide-stream-XXXXXX", below != NULL ? below : "/var/tmp");
    run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (run == MAP_FAILED || mkdtemp(folder) == NULL)
        bench_fail("stream", "no memory or no folder");
    snprintf(file_url, sizeof file_url, "file://%s?level=synced", folder);
    snprintf(file_path, sizeof file_path, "%s/file", folder);
    snprintf(shm_name, sizeof shm_name, "/bide-bench-stream-%ld", (long)getpid());
    snprintf(shm_url, sizeof shm_url, "shm://%s?window=1024&size=128", shm_name);
    bench_run("stream", BENCH_ITEMS_PER_SECOND, subjects, sizeof subjects / sizeof subjects[0],
              ROUNDS);
    for (size_t i = 0; i < sizeof timed / sizeof timed[0]; i++) {
        time_batches(timed[i].name, timed[i].function, 1);
        time_batches(timed[i].name, timed[i].function, 100);
    }
    (void)rmdir(folder);
    return 0;
}
