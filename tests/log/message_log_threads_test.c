/*
 * Message logs by threads, of each engine: producers and consumers that block, with consumers that leave, reject and come
 * again. Each message is acknowledged once by each group; the first deliveries of a producer's messages to a consumer
 * are in order.
 */
#define _GNU_SOURCE
#include "log_directory.h"
#include "log_object.h"

#include <bide/bide.h>
#include <bide/message_log.h>

#include <errno.h>
#include <pthread.h>

enum { PRODUCERS = 2, GROUPS = 2, MEMBERS = 2, BATCH = 3, WINDOW = 8 };

struct content {
    uint32_t producer;
    uint32_t number;
};

struct shared {
    bide_log *log;
    uint64_t seed;
    uint32_t count;                               /* of each producer */
    bide_atomic(uint32_t) left[GROUPS];           /* not acknowledged by the group */
    bide_atomic(uint32_t) * acknowledged[GROUPS]; /* by producer and number */
};

struct worker {
    struct shared *shared;
    uint32_t which, group;
    pthread_t thread;
};

static void *produce(void *argument)
{
    struct worker *self = argument;
    struct shared *shared = self->shared;
    uint64_t random = shared->seed + self->which;
    for (uint32_t done = 0; done < shared->count;) {
        struct content content[BATCH];
        bide_log_message messages[BATCH];
        bide_log_operation operation;
        uint32_t size = 1 + (uint32_t)(testing_random(&random) % BATCH);
        if (size > shared->count - done)
            size = shared->count - done;
        for (uint32_t i = 0; i < size; i++) {
            content[i] = (struct content){self->which, done + i};
            messages[i] = (bide_log_message){.data = &content[i], .size = sizeof content[i]};
        }
        if (testing_random(&random) % 4 == 0) {
            bide_log_claim claim;
            assert_int_equal(
                bide_sync_wait(bide_log_reserve(&operation, shared->log, size, &claim)), 0);
            assert_int_equal(
                bide_sync_wait(bide_log_publish_claimed(&operation, &claim, messages, size)), 0);
            assert_int_equal(claim.count, 0);
        } else {
            assert_int_equal(
                bide_sync_wait(bide_log_publish(&operation, shared->log, messages, size)), 0);
        }
        done += size;
    }
    return NULL;
}

/* Acknowledges or rejects what was read; true if the group is done with everything. */
static bool consume(struct worker *self, bide_log_consumer *consumer,
                    const bide_log_message *messages, uint32_t count, uint64_t *random)
{
    struct shared *shared = self->shared;
    bide_log_operation operation;
    for (uint32_t i = 0; i < count; i++) {
        struct content content;
        assert_int_equal(messages[i].size, sizeof content);
        memcpy(&content, messages[i].data, sizeof content);
        assert_true(content.producer < PRODUCERS && content.number < shared->count);
        if (testing_random(random) % 8 == 0) {
            assert_int_equal(
                bide_sync_wait(bide_log_reject(&operation, consumer, &messages[i], 1, 0)), 0);
            continue;
        }
        uint32_t place = content.producer * shared->count + content.number;
        assert_int_equal(
            bide_atomic_fetch_add(&shared->acknowledged[self->group][place], 1, relaxed), 0);
        assert_int_equal(
            bide_sync_wait(bide_log_acknowledge(&operation, consumer, &messages[i], 1)), 0);
        if (bide_atomic_fetch_sub(&shared->left[self->group], 1, acq_rel) == 1)
            return true;
    }
    return false;
}

static void *serve(void *argument)
{
    struct worker *self = argument;
    struct shared *shared = self->shared;
    uint64_t random = shared->seed + 100 + self->group * MEMBERS + self->which;
    const bide_log_consumer_options options = {.group = self->group == 0 ? "a" : "b"};
    bide_log_operation operation;
    bide_log_consumer consumer;
    int64_t last[PRODUCERS] = {-1, -1};
    int status = bide_sync_wait(bide_log_subscribe(&operation, &consumer, shared->log, &options));
    while (status == 0) {
        bide_log_message messages[BATCH];
        status = bide_sync_wait(bide_log_read(&operation, &consumer, messages, BATCH));
        for (uint32_t i = 0; i < operation.count; i++) {
            struct content content;
            memcpy(&content, messages[i].data, sizeof content);
            if (messages[i].deliveries != 1)
                continue;
            assert_true((int64_t)content.number > last[content.producer]);
            last[content.producer] = content.number;
        }
        if (status == 0 && consume(self, &consumer, messages, operation.count, &random)) {
            /* (the other group may need its members: the log is closed by the last) */
            break;
        }
        if (status == 0 && testing_random(&random) % 32 == 0) {
            bide_log_unsubscribe(&consumer);
            status =
                bide_sync_wait(bide_log_subscribe(&operation, &consumer, shared->log, &options));
        }
    }
    assert_true(status == 0 || status == -EPIPE);
    bide_log_unsubscribe(&consumer);
    if (status == 0) { /* it was the last of its group */
        bool all = true;
        for (int g = 0; g < GROUPS; g++)
            all = all && bide_atomic_load(&shared->left[g], acquire) == 0;
        if (all)
            bide_log_close(shared->log);
    }
    return NULL;
}

static void lose_nothing(const char *url, uint32_t count)
{
    struct shared shared = {.seed = testing_seed(), .count = count};
    struct worker producers[PRODUCERS], members[GROUPS * MEMBERS];
    bide_log_operation operation;
    uint32_t all = PRODUCERS * shared.count;
    assert_int_equal(bide_sync_wait(bide_log_open(&operation, &shared.log, url)), 0);
    assert_int_equal(bide_log_window(shared.log), WINDOW);
    for (int g = 0; g < GROUPS; g++) {
        /* (a group is there before the first message) */
        bide_log_consumer first;
        const bide_log_consumer_options options = {.group = g == 0 ? "a" : "b"};
        assert_int_equal(
            bide_sync_wait(bide_log_subscribe(&operation, &first, shared.log, &options)), 0);
        bide_log_unsubscribe(&first);
        bide_atomic_init(&shared.left[g], all);
        shared.acknowledged[g] = calloc(all, sizeof *shared.acknowledged[g]);
        assert_non_null(shared.acknowledged[g]);
    }
    for (uint32_t i = 0; i < GROUPS * MEMBERS; i++) {
        members[i] = (struct worker){.shared = &shared, .which = i % MEMBERS, .group = i / MEMBERS};
        assert_int_equal(pthread_create(&members[i].thread, NULL, serve, &members[i]), 0);
    }
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        producers[i] = (struct worker){.shared = &shared, .which = i};
        assert_int_equal(pthread_create(&producers[i].thread, NULL, produce, &producers[i]), 0);
    }
    for (int i = 0; i < PRODUCERS; i++)
        assert_int_equal(pthread_join(producers[i].thread, NULL), 0);
    for (int i = 0; i < GROUPS * MEMBERS; i++)
        assert_int_equal(pthread_join(members[i].thread, NULL), 0);
    for (int g = 0; g < GROUPS; g++) {
        uint64_t lag;
        assert_int_equal(bide_log_lag(shared.log, g == 0 ? "a" : "b", &lag), 0);
        assert_int_equal(lag, 0);
        for (uint32_t i = 0; i < all; i++)
            assert_int_equal(bide_atomic_load(&shared.acknowledged[g][i], relaxed), 1);
        free(shared.acknowledged[g]);
    }
    bide_log_destroy(shared.log);
}

static void threads_lose_nothing_of_a_ring(void **state)
{
    (void)state;
    uint32_t count = rounds_of(4000);
    lose_nothing("ring:?window=8&size=8", count < 100 ? 100 : count);
}

static void threads_lose_nothing_of_a_directory(void **state)
{
    (void)state;
    struct log_directory directory;
    char url[160];
    uint32_t count = rounds_of(400);
    log_directory_make(&directory);
    snprintf(url, sizeof url, "file://%s?window=8&size=8&segment=4096&level=stored",
             directory.path);
    lose_nothing(url, count < 50 ? 50 : count);
    log_directory_remove(&directory);
}

#if BIDE_LOG_HAS_SHM
static void threads_lose_nothing_of_an_object(void **state)
{
    (void)state;
    struct log_object object;
    char url[160];
    uint32_t count = rounds_of(2000);
    log_object_name(&object);
    snprintf(url, sizeof url, "shm://%s?window=8&size=8", object.name);
    lose_nothing(url, count < 50 ? 50 : count);
    log_object_remove(&object);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_lose_nothing_of_a_ring),
        cmocka_unit_test(threads_lose_nothing_of_a_directory),
#if BIDE_LOG_HAS_SHM
        cmocka_unit_test(threads_lose_nothing_of_an_object),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
