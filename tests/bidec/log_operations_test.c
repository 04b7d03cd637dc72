/*
 * The operations of message logs, on a ring: each is awaited without its struct before a large await, and with it in a
 * function whose result takes over the memory of its variables. Translated by bidec.
 */
#include "operations.h"

#include "bide/bide.h"
#include "bide/message_log.h"

static struct {
    bide_log *log, *other;
    bide_log_consumer consumer, second;
    bide_log_claim claim;
    bide_log_message out[2], in[2];
} o;

/* Without structs: the values are the numbers of messages. */
async int hidden(void)
{
    VALUE(bide_log_open, 0, &o.other, "ring:bidec");
    bide_log_destroy(o.other);
    VALUE(bide_log_subscribe, 0, &o.second, o.log, NULL);
    bide_log_unsubscribe(&o.second);
    VALUE(bide_log_publish, 2, o.log, o.out, 2);
    VALUE(bide_log_read, 2, &o.consumer, o.in, 2);
    VALUE(bide_log_reject, 1, &o.consumer, o.in, 1, 0);
    VALUE(bide_log_acknowledge, 1, &o.consumer, &o.in[1], 1);
    VALUE(bide_log_read, 1, &o.consumer, o.in, 2);
    VALUE(bide_log_acknowledge_up_to, 1, &o.consumer, o.in[0].position);
    VALUE(bide_log_reserve, 0, o.log, 1, &o.claim);
    VALUE(bide_log_publish_claimed, 1, &o.claim, o.out, 1);
    VALUE(bide_log_read, 1, &o.consumer, o.in, 2);
    VALUE(bide_log_acknowledge, 1, &o.consumer, o.in, 1);
    return 12;
}

/* With structs. */
async struct big named(void)
{
    bide_log_operation operation;
    assert_int_equal(await bide_log_open(&operation, &o.other, "ring:bidec"), 0);
    bide_log_destroy(o.other);
    assert_int_equal(await bide_log_publish(&operation, o.log, o.out, 2), 0);
    assert_int_equal(operation.count, 2);
    assert_int_equal(await bide_log_read(&operation, &o.consumer, o.in, 2), 0);
    assert_int_equal(operation.count, 2);
    assert_int_equal(await bide_log_reject(&operation, &o.consumer, o.in, 2, 0), 0);
    assert_int_equal(operation.count, 2);
    assert_int_equal(await bide_log_read(&operation, &o.consumer, o.in, 2), 0);
    assert_int_equal(o.in[0].deliveries, 2);
    return filled(await bide_log_acknowledge(&operation, &o.consumer, o.in, operation.count));
}

async int both(void)
{
    assert_int_equal(await bide_log_open(&o.log, "ring:bidec?window=2"), 0);
    assert_int_equal(await bide_log_subscribe(&o.consumer, o.log, NULL), 0);
    int done = await hidden();
    struct big big = await named();
    check_filled(&big, 0);
    bide_log_unsubscribe(&o.consumer);
    bide_log_destroy(o.log);
    return done;
}

static void operations_of_message_logs(void **state)
{
    (void)state;
    async_frame(both) frame;
    o.out[0] = (bide_log_message){.data = "a", .size = 1};
    o.out[1] = (bide_log_message){.data = "b", .size = 1};
    assert_int_equal(bide_sync_wait(async_both(&frame)), 0);
    assert_int_equal(frame.result, 12);
    assert_int_equal(rows, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(operations_of_message_logs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
