/* Message logs without memory: each allocation fails in turn; the error is reported, and nothing is left behind. */
#define _GNU_SOURCE
#include "faults.h"
#include "log_directory.h"
#include "log_object.h"

#include <bide/bide.h>
#include <bide/message_log.h>

#include <errno.h>
#include <string.h>

/* Opens, publishes, reads by two groups, and closes: 0, or the error of the first that fails. */
static int use(void *argument)
{
    (void)argument;
    bide_log_operation operation;
    bide_log_consumer named, own;
    bide_log *log;
    bide_log_message message = {.data = "x", .size = 1}, read;
    int status = bide_sync_wait(bide_log_open(&operation, &log, "ring:faults?window=4"));
    if (status < 0) {
        assert_null(log);
        assert_non_null(strstr(operation.problem, "no memory"));
        return status;
    }
    assert_int_equal(bide_sync_wait(bide_log_publish(&operation, log, &message, 1)), 0);
    status = bide_sync_wait(
        bide_log_subscribe(&operation, &named, log, &(bide_log_consumer_options){.group = "g"}));
    if (status == 0) {
        status = bide_sync_wait(bide_log_subscribe(&operation, &own, log, NULL));
        if (status == 0) {
            assert_int_equal(bide_sync_wait(bide_log_read(&operation, &own, &read, 1)), 0);
            bide_log_unsubscribe(&own);
        } else {
            assert_null(own.group);
        }
        assert_int_equal(bide_sync_wait(bide_log_read(&operation, &named, &read, 1)), 0);
        bide_log_unsubscribe(&named);
    } else {
        assert_null(named.group);
    }
    bide_log_destroy(log);
    return status;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    /* the ring */
    assert_int_equal(faults_for_each_n(FAULT_MALLOC, ENOMEM, use, NULL), 1);
    /* the handle, and two groups */
    assert_int_equal(faults_for_each_n(FAULT_CALLOC, ENOMEM, use, NULL), 3);
}

/* The same of a directory, in virtual time; nothing that was published is lost. */
struct directory_use {
    bide_sim_loop loop;
    char url[128];
    uint32_t published;
};

static int use_directory(struct directory_use *self)
{
    bide_sim_loop *loop = &self->loop;
    bide_log_operation operation;
    bide_log_consumer consumer, own;
    bide_log *log;
    bide_log_message message = {.data = "x", .size = 1}, read;
    int status = bide_sim_loop_wait(loop, bide_log_open(&operation, &log, self->url));
    if (status < 0) {
        assert_null(log);
        assert_true(operation.problem[0] != '\0');
        return status;
    }
    status = bide_sim_loop_wait(loop, bide_log_publish(&operation, log, &message, 1));
    assert_false(operation.uncertain);
    self->published += status == 0;
    if (status == 0)
        status = bide_sim_loop_wait(
            loop, bide_log_subscribe(&operation, &consumer, log,
                                     &(bide_log_consumer_options){
                                         .group = "g", .from = BIDE_LOG_FROM_TIME, .time = 1}));
    if (status == 0) {
        status = bide_sim_loop_wait(loop, bide_log_read(&operation, &consumer, &read, 1));
        if (status == 0)
            status =
                bide_sim_loop_wait(loop, bide_log_acknowledge(&operation, &consumer, &read, 1));
        bide_log_unsubscribe(&consumer);
    }
    if (status == 0) { /* a new group looks for its time each time */
        status = bide_sim_loop_wait(
            loop, bide_log_subscribe(
                      &operation, &own, log,
                      &(bide_log_consumer_options){.from = BIDE_LOG_FROM_TIME, .time = 1}));
        bide_log_unsubscribe(&own);
    }
    bide_log_destroy(log);
    return status;
}

/* The loop allocates too, and does without if it must: so a run may end with 0. */
static void use_directory_with_fault(struct directory_use *use, fault function)
{
    unsigned hits = 1;
    for (unsigned n = 1; hits != 0; n++) {
        long blocks = faults_blocks(), descriptors = faults_descriptors();
        faults_clear();
        faults_fail(function, n, 1, ENOMEM);
        bide_sim_loop_init(&use->loop, 1);
        int status = use_directory(use);
        bide_sim_loop_destroy(&use->loop);
        hits = faults_hits(function);
        faults_clear();
        if (status != 0 && (status != -ENOMEM || hits == 0))
            fail_msg("function %d, call %u: %d", (int)function, n, status);
        assert_int_equal(faults_blocks(), blocks);
        assert_int_equal(faults_descriptors(), descriptors);
        assert_true(hits == 0 || n < 1000);
    }
}

static void each_allocation_of_a_directory_may_fail(void **state)
{
    (void)state;
    static const fault functions[] = {FAULT_MALLOC, FAULT_CALLOC, FAULT_REALLOC};
    struct directory_use use = {.published = 0};
    struct log_directory directory;
    bide_log_operation operation;
    bide_log_consumer consumer;
    bide_log_message messages[4];
    bide_log *log;
    uint64_t lag;
    log_directory_make(&directory);
    snprintf(use.url, sizeof use.url, "file://%s?level=stored", directory.path);
    bide_sim_loop_init(&use.loop, 1);
    assert_int_equal(use_directory(&use), 0); /* and the library has its threads */
    bide_sim_loop_destroy(&use.loop);
    for (int i = 0; i < 3; i++)
        use_directory_with_fault(&use, functions[i]);
    bide_sim_loop_init(&use.loop, 1);
    assert_int_equal(bide_sim_loop_wait(&use.loop, bide_log_open(&operation, &log, use.url)), 0);
    assert_int_equal(
        bide_sim_loop_wait(&use.loop, bide_log_subscribe(&operation, &consumer, log, NULL)), 0);
    uint32_t found = 0;
    while (found < use.published) {
        assert_int_equal(
            bide_sim_loop_wait(&use.loop, bide_log_read(&operation, &consumer, messages, 4)), 0);
        found += operation.count;
        assert_int_equal(
            bide_sim_loop_wait(
                &use.loop, bide_log_acknowledge(&operation, &consumer, messages, operation.count)),
            0);
    }
    assert_int_equal(found, use.published);
    bide_log_unsubscribe(&consumer);
    assert_int_equal(bide_log_lag(log, "g", &lag), 0);
    assert_true(lag < use.published);
    bide_log_destroy(log);
    bide_sim_loop_destroy(&use.loop);
    log_directory_remove(&directory);
}

#if BIDE_LOG_HAS_SHM
/* An object in shared memory is made, used and removed; it is whole, or not there. */
static int use_object(void *argument)
{
    const struct log_object *object = argument;
    char url[128];
    bide_log_operation operation;
    bide_log_consumer consumer;
    bide_log *log;
    bide_log_message message = {.data = "x", .size = 1}, read;
    snprintf(url, sizeof url, "shm://%s?window=4", object->name);
    int status = bide_sync_wait(bide_log_open(&operation, &log, url));
    if (status < 0) {
        assert_null(log);
        assert_true(operation.problem[0] != '\0');
    } else {
        assert_int_equal(bide_sync_wait(bide_log_publish(&operation, log, &message, 1)), 0);
        assert_int_equal(bide_sync_wait(bide_log_subscribe(&operation, &consumer, log, NULL)), 0);
        assert_int_equal(bide_sync_wait(bide_log_read(&operation, &consumer, &read, 1)), 0);
        bide_log_unsubscribe(&consumer);
        bide_log_destroy(log);
    }
    (void)shm_unlink(object->name);
    return status;
}

static void each_call_for_an_object_may_fail(void **state)
{
    (void)state;
    static const struct {
        fault function;
        int error;
    } rows[] = {{FAULT_CALLOC, ENOMEM},
                {FAULT_MMAP, ENOMEM},
                {FAULT_EVENTFD, EMFILE},
                {FAULT_PTHREAD_CREATE, EAGAIN}};
    struct log_object object;
    log_object_name(&object);
    assert_int_equal(use_object(&object), 0);
    for (int i = 0; i < 4; i++) {
        unsigned hits = 1;
        for (unsigned n = 1; hits != 0; n++) {
            /* (the library may start another thread for its calls, which is kept) */
            long descriptors = faults_descriptors();
            faults_clear();
            faults_fail(rows[i].function, n, 1, rows[i].error);
            int status = use_object(&object);
            hits = faults_hits(rows[i].function);
            faults_clear();
            assert_true(status == 0 || (status == -rows[i].error && hits != 0));
            assert_true(status != 0 || hits == 0 || rows[i].function == FAULT_PTHREAD_CREATE);
            assert_int_equal(faults_descriptors(), descriptors);
            assert_true(n < 10);
        }
    }
}
#endif

static void a_ring_that_is_too_large_is_refused(void **state)
{
    (void)state;
    bide_log_operation operation;
    bide_log *log;
    if (sizeof(size_t) > 4) {
        print_message(
            "# skipped: 2^54 bytes are a size here, which sanitizers refuse to allocate\n");
        skip();
    }
    assert_int_equal(
        bide_sync_wait(bide_log_open(&operation, &log, "ring:?window=16777216&size=1073741824")),
        -ENOMEM);
    assert_null(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_allocation_may_fail),
        cmocka_unit_test(each_allocation_of_a_directory_may_fail),
#if BIDE_LOG_HAS_SHM
        cmocka_unit_test(each_call_for_an_object_may_fail),
#endif
        cmocka_unit_test(a_ring_that_is_too_large_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
