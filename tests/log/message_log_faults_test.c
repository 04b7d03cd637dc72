/* Message logs without memory: each allocation fails in turn; the error is reported, and nothing is left behind. */
#include "faults.h"

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
        cmocka_unit_test(a_ring_that_is_too_large_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
