/*
 * A cache with a bug in one interleaving of ten thousand, and a test loop that finds it.
 *
 * The cache has one entry. A reader that misses loads the value from a store with a blocking call,
 * and enters it. A writer writes to the store, and then drops the entry. Both hold the mutex while
 * they access the entry. The bug: a load that starts before a write may finish after it, and then
 * the reader enters the old value. From then on, every reader gets the stale value.
 *
 *     reader: miss, load 1 ................................. enter 1
 *     writer:                  store 2, drop the entry
 *
 * This takes a slow load, a quick writer, and a reader late enough to see the result. The fixed
 * cache counts the writes, and enters nothing if there was a write during the load.
 *
 * Usage:
 *     test-loop              explores both
 *     test-loop broken       the broken one, and prints how it fails
 *     test-loop by-chance    how often a random run of the broken one fails
 */
#include <bide/bide.h>

#include <stdlib.h>
#include <string.h>

enum { KEYS = 5, READERS = 3, READS = 4 };

typedef struct cache {
    bool is_fixed;
    unsigned store[KEYS]; /* slow to read */
    bide_mutex mutex;
    bool has_entry;
    unsigned key;
    unsigned value;
    uint64_t writes;
} cache;

/* ---- Reading ---- */

struct load {
    const cache *from;
    unsigned key;
    unsigned value;
};

/* Runs on a thread that may block, or in a test loop in place of that thread. */
static void load(void *argument)
{
    struct load *self = argument;
    self->value = self->from->store[self->key];
}

struct get {
    bide_task task;
    cache *cache;
    unsigned key;
    unsigned value; /* the result */
    bool hit;
    uint64_t writes;
    struct load load;
    bide_mutex_waiter lock;
    bide_blocking_call call;
};

bide_coroutine(get_body)
{
    bide_begin(get_body, struct get * self);
    bide_try(bide_mutex_lock(&self->lock, &self->cache->mutex));
    self->hit = self->cache->has_entry && self->cache->key == self->key;
    self->value = self->cache->value;
    self->writes = self->cache->writes;
    bide_mutex_unlock(&self->lock);
    if (self->hit)
        bide_return(0);

    self->load.from = self->cache;
    self->load.key = self->key;
    bide_try(bide_blocking_run(&self->call, NULL, load, &self->load));
    self->value = self->load.value;

    bide_try(bide_mutex_lock(&self->lock, &self->cache->mutex));
    if (!self->cache->is_fixed || self->cache->writes == self->writes) {
        self->cache->has_entry = true;
        self->cache->key = self->key;
        self->cache->value = self->value;
    }
    bide_mutex_unlock(&self->lock);
    bide_end();
}

/* ---- Writing ---- */

struct put {
    bide_task task;
    cache *cache;
    unsigned key;
    unsigned value;
    bide_mutex_waiter lock;
};

bide_coroutine(put_body)
{
    bide_begin(put_body, struct put * self);
    self->cache->store[self->key] = self->value;
    bide_try(bide_mutex_lock(&self->lock, &self->cache->mutex));
    self->cache->writes++;
    if (self->cache->key == self->key)
        self->cache->has_entry = false;
    bide_mutex_unlock(&self->lock);
    bide_end();
}

/* ---- The test ---- */

/* Reads some keys at random times. */
struct reader {
    bide_task task;
    bide_sim_loop *loop;
    cache *cache;
    unsigned i;
    struct get get;
    bide_sleep sleep;
};

bide_coroutine(reader_body)
{
    bide_begin(reader_body, struct reader * self);
    self->get.cache = self->cache;
    for (self->i = 0; self->i < READS; self->i++) {
        self->get.key = bide_sim_loop_draw(self->loop, KEYS);
        bide_try(bide_task_init(&self->get.task, &get_body));
        bide_try(bide_sleep_for(&self->sleep, bide_sim_loop_draw(self->loop, 10) * 1000000));
    }
    bide_end();
}

/* Writes one key after a while. */
struct writer {
    bide_task task;
    bide_sim_loop *loop;
    cache *cache;
    struct put put;
    bide_sleep sleep;
};

bide_coroutine(writer_body)
{
    bide_begin(writer_body, struct writer * self);
    self->put.cache = self->cache;
    self->put.key = bide_sim_loop_draw(self->loop, KEYS);
    self->put.value = 1;
    bide_try(bide_sleep_for(&self->sleep, bide_sim_loop_draw(self->loop, 10) * 1000000));
    bide_try(bide_task_init(&self->put.task, &put_body));
    bide_end();
}

struct everybody {
    bide_task task;
    struct reader readers[READERS];
    struct writer writer;
    bide_branch branches[READERS + 1];
    bide_when when;
};

/* One run: a cache, readers, a writer. In the end, the cache must agree with the store. */
static int run(bide_sim_loop *loop, void *argument)
{
    cache cache = {.is_fixed = argument != NULL};
    struct everybody all;
    bide_mutex_init(&cache.mutex);
    for (unsigned i = 0; i < READERS; i++) {
        all.readers[i].loop = loop;
        all.readers[i].cache = &cache;
        bide_branch_init(&all.branches[i], bide_task_init(&all.readers[i].task, &reader_body));
    }
    all.writer.loop = loop;
    all.writer.cache = &cache;
    bide_branch_init(&all.branches[READERS], bide_task_init(&all.writer.task, &writer_body));
    int status = bide_sim_loop_wait(loop, bide_when_all(&all.when, all.branches, READERS + 1));
    bide_mutex_destroy(&cache.mutex);
    if (status < 0)
        return status;
    return cache.has_entry && cache.value != cache.store[cache.key] ? -EINVAL : 0;
}

/* Counts the failing runs among many. */
static int count(void)
{
    enum { RUNS = 200000 };
    unsigned failed = 0;
    uint64_t seed = 1;
    FILE *nowhere = fopen("/dev/null", "w");
    if (nowhere == NULL)
        return 1;
    while (seed <= RUNS) {
        bide_sim_result result;
        bide_sim_options options = {
            .first_seed = seed, .retries = 1, .out = nowhere, .result = &result};
        if (bide_sim_loop_explore_with(run, RUNS + 1 - seed, &options) == 0)
            break;
        failed++;
        seed = result.seed + 1;
    }
    fclose(nowhere);
    printf("%u of %u runs fail\n", failed, RUNS);
    return 0;
}

int main(int argc, char **argv)
{
    static int fixed_argument;
    bide_sim_options broken = {.out = stdout};
    bide_sim_options right = {.argument = &fixed_argument, .out = stdout};
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 2 && strcmp(argv[1], "by-chance") == 0)
        return count();
    int status = bide_sim_loop_explore_with(run, 200000, &broken);
    printf("the broken one: %s\n", status == 0 ? "nothing found" : strerror(-status));
    if (argc == 2)
        return 0;
    status = bide_sim_loop_explore_with(run, 200000, &right);
    printf("the fixed one: %s\n", status == 0 ? "nothing found" : strerror(-status));
    return status != 0;
}
