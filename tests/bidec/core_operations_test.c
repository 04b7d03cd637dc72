/*
 * The operations of locks, channels, sequences and the rest of the core in async functions: each is awaited before a
 * large await that takes over the memory of awaits, without its struct if it may go without, and with a struct of its
 * own in a function whose result takes over the memory of its variables. A partner lets each wait end later than it
 * begins. Translated by bidec.
 */
#include "operations.h"

#include "bide/bide.h"

enum { LATER = 2000 }; /* nanoseconds */

static bide_loop *loop;

static struct {
    bide_single_consumer_auto_event single;
    bide_mutex mutex;
    bide_barging_mutex barging;
    bide_rw_lock lock;
    bide_condition condition;
    bide_once once;
    bide_cyclic_barrier barrier;
    bide_channel(int) channel, narrow;
    bide_channel_slot(int) slots[4], narrow_slot[1];
    bide_spsc_channel(int) spsc;
    int spsc_slots[4];
    bide_unbounded_channel(int) unbounded;
    bide_rendezvous(int) rendezvous;
    bide_broadcast(int) broadcast;
    bide_broadcast_slot(int) broadcast_slots[5];
    bide_oneshot(int) oneshots[2];
    bide_watch(int) watch;
    bide_token_bucket bucket;
    bide_sequence_barrier cursor, consumed;
    bide_sequence_group gate;
    bide_sequence_group_member member;
    bide_single_producer_sequencer single_producer;
    bide_multi_producer_sequencer multi_producer;
    bide_sequence_slot sequence_slots[4];
    bide_stop_source stop;
    bide_stop_callback callbacks[2];
    bool ends; /* the partner */
} objects;

/* ---- Locks ---- */

/* Holds each lock for a while, again and again. */
async int holder(void)
{
    while (!objects.ends) {
        bide_mutex_waiter key;
        bide_barging_mutex_waiter barging;
        bide_rw_lock_waiter lock;
        assert_int_equal(await bide_mutex_lock(&key, &objects.mutex), 0);
        assert_int_equal(await bide_barging_mutex_lock(&barging, &objects.barging), 0);
        assert_int_equal(await bide_rw_lock_read(&lock, &objects.lock), 0);
        await bide_sleep_for(LATER);
        bide_condition_notify_all(&objects.condition);
        bide_rw_lock_unlock(&lock);
        bide_barging_mutex_unlock(&barging);
        bide_mutex_unlock(&key);
        bide_single_consumer_auto_event_set(&objects.single);
        await bide_sleep_for(LATER);
    }
    return 0;
}

async struct big locks(void)
{
    bide_mutex_waiter key;
    bide_barging_mutex_waiter barging;
    bide_rw_lock_waiter reader, writer, upgradable;
    bide_once_waiter once;
    for (int i = 0; i < 3; i++) {
        OWN(bide_mutex_lock, &key, &objects.mutex);
        BOTH(bide_condition_waiter, bide_condition_wait, &objects.condition, &key);
        bide_mutex_unlock(&key);
        OWN(bide_barging_mutex_lock, &barging, &objects.barging);
        bide_barging_mutex_unlock(&barging);
        OWN(bide_rw_lock_write, &writer, &objects.lock);
        bide_rw_lock_unlock(&writer);
        OWN(bide_rw_lock_read, &reader, &objects.lock);
        bide_rw_lock_unlock(&reader);
        OWN(bide_rw_lock_upgradable_read, &upgradable, &objects.lock);
        OWN(bide_rw_lock_upgrade, &upgradable);
        bide_rw_lock_unlock(&upgradable);
        BOTH(bide_single_consumer_auto_event_waiter, bide_single_consumer_auto_event_wait,
             &objects.single);
        bide_once_init(&objects.once);
        OWN(bide_once_start, &once, &objects.once);
        assert_true(once.runs);
        bide_once_finish(&once, true);
        OWN(bide_once_start, &once, &objects.once);
        assert_false(once.runs);
        bide_cyclic_barrier_token token = bide_cyclic_barrier_arrive(&objects.barrier);
        BOTH(bide_cyclic_barrier_waiter, bide_cyclic_barrier_wait, &objects.barrier, token);
    }
    objects.ends = true;
    return filled(0);
}

/* ---- Channels ---- */

/* Sends, and receives, until everything is closed. */
async int sender(void)
{
    int number = 7, other;
    while (!objects.ends) {
        await bide_sleep_for(LATER);
        (void)bide_channel_try_send(&objects.channel, &number);
        (void)bide_channel_try_send(&objects.channel, &number);
        (void)bide_channel_try_recv(&objects.narrow, &other);
        (void)bide_spsc_channel_try_send(&objects.spsc, &number);
        (void)bide_unbounded_channel_send(&objects.unbounded, NULL, &number);
        (void)bide_rendezvous_try_recv(&objects.rendezvous, &other);
        bide_broadcast_send(&objects.broadcast, &number);
        bide_watch_send(&objects.watch, &number);
        for (int i = 0; i < 2; i++)
            (void)bide_oneshot_send(&objects.oneshots[i], &number);
    }
    return 0;
}

static bool is_seven(const void *value, void *argument)
{
    return *(const int *)value == *(const int *)argument;
}

async struct big channels(void)
{
    int number = 0, numbers[2], expected = 7;
    size_t count = 0;
    bide_channel_permit permit, permits[2];
    bide_broadcast_subscriber(int) subscriber;
    bide_watch_receiver(int) receiver;
    bide_broadcast_subscribe(&subscriber, &objects.broadcast);
    bide_watch_receiver_init(&receiver, &objects.watch);
    BOTH(bide_channel_waiter, bide_channel_recv, &objects.channel, &number);
    assert_int_equal(number, 7);
    BOTH(bide_channel_many_waiter, bide_channel_recv_many, &objects.channel, numbers, 2, &count);
    assert_in_range(count, 1, 2);
    BOTH(bide_channel_waiter, bide_channel_send, &objects.narrow, &number);
    for (int i = 0; i < 2; i++) {
        OWN(bide_channel_reserve, &objects.narrow, &permit);
        bide_channel_permit_send(&objects.narrow, &permit, &number);
        OWN(bide_channel_reserve_many, &objects.narrow, permits, 2, &count);
        assert_int_equal(count, 1);
        bide_channel_permit_release(&permits[0]);
    }
    NAMED(bide_channel_waiter, bide_channel_reserve, permit.channel != NULL, true, &objects.narrow,
          &permit);
    bide_channel_permit_send(&objects.narrow, &permit, &number);
    NAMED(bide_channel_many_waiter, bide_channel_reserve_many, count, 1, &objects.narrow, permits,
          2, &count);
    bide_channel_permit_release(&permits[0]);
    BOTH(bide_spsc_channel_waiter, bide_spsc_channel_recv, &objects.spsc, &number);
    BOTH(bide_spsc_channel_many_waiter, bide_spsc_channel_recv_many, &objects.spsc, numbers, 2,
         &count);
    BOTH(bide_unbounded_channel_waiter, bide_unbounded_channel_recv, &objects.unbounded, NULL,
         &number);
    BOTH(bide_unbounded_channel_many_waiter, bide_unbounded_channel_recv_many, &objects.unbounded,
         NULL, numbers, 2, &count);
    BOTH(bide_rendezvous_sender, bide_rendezvous_send, &objects.rendezvous, &number);
    BOTH(bide_broadcast_waiter, bide_broadcast_recv, &subscriber, &number);
    VALUE(bide_oneshot_recv, 0, &objects.oneshots[0], &number);
    NAMED(bide_oneshot_waiter, bide_oneshot_recv, number, 7, &objects.oneshots[1], &number);
    BOTH(bide_watch_waiter, bide_watch_recv, &receiver, &number);
    BOTH(bide_watch_predicate_waiter, bide_watch_wait_for, &receiver, is_seven, &expected, &number);
    assert_int_equal(number, 7);
    objects.ends = true;
    return filled(0);
}

/* The partner receives from a full channel. */
async int spsc_receiver(void)
{
    int number;
    while (!objects.ends) {
        await bide_sleep_for(LATER);
        (void)bide_spsc_channel_try_recv(&objects.spsc, &number);
    }
    return 0;
}

async struct big spsc_sender(void)
{
    int number = 7;
    for (int i = 0; i < 4; i++)
        BOTH(bide_spsc_channel_waiter, bide_spsc_channel_send, &objects.spsc, &number);
    objects.ends = true;
    return filled(0);
}

/* ---- Sequences ---- */

/* Consumes what was published. */
async int consumer(void)
{
    bide_sequence last = bide_sequence_initial();
    bide_sequence_barrier *cursor = &objects.cursor;
    while (!objects.ends) {
        await bide_sleep_for(LATER);
        if (last != bide_sequence_barrier_last_published(cursor))
            bide_sequence_barrier_publish(&objects.consumed, ++last);
    }
    return 0;
}

async struct big single_producer(void)
{
    for (int i = 0; i < 4; i++) {
        bide_claim one, many;
        OWN(bide_single_producer_sequencer_claim_one, &one, &objects.single_producer);
        bide_single_producer_sequencer_publish(&objects.single_producer, one.first);
        OWN(bide_single_producer_sequencer_claim_up_to, &many, &objects.single_producer, 2);
        bide_single_producer_sequencer_publish_range(&objects.single_producer, many.first,
                                                     many.count);
        bide_sequence last = many.first + many.count - 1;
        BOTH(bide_sequence_waiter, bide_single_producer_sequencer_wait_until_published,
             &objects.single_producer, last, one.first);
        BOTH(bide_sequence_waiter, bide_sequence_barrier_wait_until_published, &objects.consumed,
             last);
        BOTH(bide_sequence_group_waiter, bide_sequence_group_wait_until_published, &objects.gate,
             last);
    }
    bide_single_producer_sequencer_close(&objects.single_producer);
    BOTH(bide_sequence_group_waiter, bide_single_producer_sequencer_drain,
         &objects.single_producer);
    objects.ends = true;
    return filled(0);
}

/* Consumes as many as the gate has let be claimed. */
async int multi_consumer(void)
{
    bide_sequence next = bide_sequence_initial() + 1;
    while (!objects.ends) {
        await bide_sleep_for(LATER);
        if (bide_multi_producer_sequencer_is_published(&objects.multi_producer, next))
            bide_sequence_barrier_publish(&objects.consumed, next++);
    }
    return 0;
}

async struct big multi_producer(void)
{
    for (int i = 0; i < 4; i++) {
        bide_multi_producer_claim one, many;
        OWN(bide_multi_producer_sequencer_claim_one, &one, &objects.multi_producer);
        bide_multi_producer_sequencer_publish(&objects.multi_producer, one.first);
        OWN(bide_multi_producer_sequencer_claim_up_to, &many, &objects.multi_producer, 2);
        bide_multi_producer_sequencer_publish_range(&objects.multi_producer, many.first,
                                                    many.count);
        bide_sequence last = many.first + many.count - 1;
        BOTH(bide_multi_producer_waiter, bide_multi_producer_sequencer_wait_until_published,
             &objects.multi_producer, last, one.first);
        BOTH(bide_sequence_group_waiter, bide_sequence_group_wait_until_published, &objects.gate,
             last);
    }
    bide_multi_producer_sequencer_close(&objects.multi_producer);
    BOTH(bide_sequence_group_waiter, bide_multi_producer_sequencer_drain, &objects.multi_producer);
    objects.ends = true;
    return filled(0);
}

async struct big leaves(void)
{
    bide_sequence_group group;
    bide_sequence_barrier of_group;
    bide_sequence_group_member own_member;
    bide_sequence_barrier_init(&of_group, bide_sequence_initial());
    bide_sequence_group_init(&group, NULL, 0);
    for (int i = 0; i < 2; i++) {
        bide_sequence_group_add(&group, &own_member, &of_group);
        VALUE(bide_sequence_group_leave, 0, &group, &own_member);
        bide_sequence_group_add(&group, &own_member, &of_group);
        NAMED(bide_sequence_group_leaver, bide_sequence_group_leave, i < 2, true, &group,
              &own_member);
    }
    objects.ends = true;
    return filled(0);
}

async int nobody(void)
{
    return 0;
}

/* ---- Time, and requests to stop ---- */

static void requested(void *argument)
{
    *(int *)argument += 1;
}

async int requester(void)
{
    await bide_sleep_for(LATER);
    bide_stop_request(&objects.stop);
    return 0;
}

async struct big times(void)
{
    int calls = 0;
    bide_interval interval;
    bide_interval_init(&interval, 1, LATER, BIDE_MISSED_DELAY);
    OWN(bide_interval_tick, &interval);
    OWN(bide_interval_tick, &interval);
    BOTH(bide_token_take_operation, bide_token_bucket_take, &objects.bucket, 1);
    bide_deadline deadlines[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(bide_deadline_init(&deadlines[i], bide_this_context(),
                                            bide_now(bide_this_context()) +
                                                (i == 0 ? LATER : 3600 * BIDE_SECONDS(1))),
                         0);
    VALUE(bide_deadline_stop, 0, &deadlines[0]);
    NAMED(bide_deadline_waiter, bide_deadline_stop, bide_deadline_passed(&deadlines[1]), false,
          &deadlines[1]);
    for (int i = 0; i < 2; i++)
        bide_stop_callback_init(&objects.callbacks[i], &objects.stop, bide_this_context(),
                                requested, &calls);
    while (calls < 2)
        await bide_sleep_for(LATER);
    for (int i = 0; i < 2; i++)
        assert_false(bide_stop_callback_remove(&objects.callbacks[i]));
    VALUE(bide_stop_callback_wait, 0, &objects.callbacks[0]);
    NAMED(bide_stop_callback_waiter, bide_stop_callback_wait, calls, 2, &objects.callbacks[1]);
    bide_sim_point_operation point;
    OWN(bide_sim_point, &point);
    return filled(0);
}

/* ---- Several at once ---- */

async int twelve(void)
{
    await bide_sleep_for(LATER);
    return 0;
}

struct shared {
    bide_shared_task task;
    bide_sleep sleep;
};

bide_shared_coroutine(shared_body)
{
    bide_begin(shared_body, struct shared * self);
    bide_try(bide_sleep_for(&self->sleep, LATER));
    bide_end();
}

async_generator(int) int two_numbers(void)
{
    yield 11;
    await bide_sleep_for(LATER);
    yield 12;
    return 0;
}

async struct big several(void)
{
    async_frame(twelve) work[3];
    bide_branch branches[3], *branch = NULL;
    bide_when when;
    bide_awaiter *started[3];
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < 3; i++) {
            started[i] = async_twelve(&work[i]);
            bide_branch_init(&branches[i], started[i]);
        }
        if (round == 0)
            VALUE(bide_when_all, 0, branches, 3);
        else if (round == 1)
            OWN(bide_when_all, &when, branches, 3);
        else if (round == 2)
            VALUE(bide_when_any, 0, branches, 3);
        else if (round == 3)
            OWN(bide_when_any, &when, branches, 3);
        else if (round == 4)
            VALUE(bide_when_all_ready, 0, branches, 3);
        else
            OWN(bide_when_all_ready, &when, branches, 3);
    }
    bide_scope scope;
    bide_scope_next_operation next;
    bide_scope_init_with(&scope, bide_this_frame(), &(bide_scope_options){.collects = true});
    for (int i = 0; i < 2; i++)
        bide_scope_spawn(&scope, &branches[i], async_twelve(&work[i]));
    VALUE(bide_scope_next, 0, &scope, &branch);
    assert_non_null(branch);
    OWN(bide_scope_next, &next, &scope, &branch);
    assert_non_null(branch);
    OWN(bide_scope_join, &scope);
    bide_scope_destroy(&scope);
    struct shared shared[2];
    for (int i = 0; i < 2; i++)
        bide_shared_task_init(&shared[i].task, &shared_body, bide_loop_context(loop));
    VALUE(bide_shared_task_wait, 0, &shared[0].task);
    NAMED(bide_shared_task_waiter, bide_shared_task_wait, bide_shared_task_error(&shared[1].task),
          0, &shared[1].task);
    async_frame(two_numbers) numbers;
    async_two_numbers(&numbers);
    for (int i = 0; i < 2; i++)
        NAMED(bide_async_generator_next_operation, bide_async_generator_next, *(int *)own.value,
              11 + i, &numbers.generator);
    NAMED(bide_async_generator_next_operation, bide_async_generator_next, own.value == NULL, true,
          &numbers.generator);
    return filled(0);
}

/* Sets of waits, and a select of cases. */
async struct big selects(void)
{
    int number = 0;
    uint64_t random = 1;
    bide_select select;
    bide_select_case cases[2];
    bide_channel_waiter receive[2];
    bide_sleep sleep;
    for (int i = 0; i < 4; i++) {
        bide_select_case_init(&cases[0], bide_channel_recv(&receive[0], &objects.channel, &number));
        bide_select_case_init(&cases[1], bide_sleep_for(&sleep, 3600 * BIDE_SECONDS(1)));
        if (i == 0)
            VALUE(bide_select_any, 0, cases, 2, &random);
        else if (i == 1)
            OWN(bide_select_any, &select, cases, 2, &random);
        else if (i == 2)
            VALUE(bide_select_any_in_order, 0, cases, 2);
        else
            OWN(bide_select_any_in_order, &select, cases, 2);
    }
    assert_int_equal(number, 7);
    bide_select_set set;
    bide_select_member members[2], *member = NULL;
    bide_select_set_init(&set);
    bide_select_set_add(&set, &members[0],
                        bide_channel_recv(&receive[0], &objects.channel, &number));
    bide_select_set_add(&set, &members[1], bide_sleep_for(&sleep, 3600 * BIDE_SECONDS(1)));
    OWN(bide_select_set_next, &set, &member);
    assert_ptr_equal(member, &members[0]);
    assert_int_equal(await bide_select_set_poll(&set, &member), -EAGAIN);
    await large();
    OWN(bide_select_set_remove, &set, &members[1]);
    OWN(bide_select_set_end, &set);
    bide_select_set_destroy(&set);
    objects.ends = true;
    return filled(0);
}

/* ---- */

static int set_up(void **state)
{
    (void)state;
    memset(&objects, 0, sizeof objects);
    bide_single_consumer_auto_event_init(&objects.single, false);
    bide_mutex_init(&objects.mutex);
    bide_barging_mutex_init(&objects.barging);
    bide_rw_lock_init(&objects.lock);
    bide_condition_init(&objects.condition);
    bide_cyclic_barrier_init(&objects.barrier, 1);
    bide_channel_init(&objects.channel, objects.slots, 4);
    bide_channel_init(&objects.narrow, objects.narrow_slot, 1);
    bide_spsc_channel_init(&objects.spsc, objects.spsc_slots, 4);
    assert_int_equal(bide_unbounded_channel_init_own(&objects.unbounded, &bide_heap, 4), 0);
    bide_rendezvous_init(&objects.rendezvous);
    bide_broadcast_init(&objects.broadcast, objects.broadcast_slots, 4);
    for (int i = 0; i < 2; i++)
        bide_oneshot_init(&objects.oneshots[i]);
    bide_watch_init(&objects.watch, &(int){0});
    assert_int_equal(bide_token_bucket_init(&objects.bucket, 1, LATER, 1), 0);
    bide_sequence_barrier_init(&objects.cursor, bide_sequence_initial());
    bide_sequence_barrier_init(&objects.consumed, bide_sequence_initial());
    bide_sequence_group_init(&objects.gate, NULL, 0);
    bide_sequence_group_add(&objects.gate, &objects.member, &objects.consumed);
    assert_int_equal(bide_single_producer_sequencer_init(&objects.single_producer, &objects.cursor,
                                                         &objects.gate, 4),
                     0);
    assert_int_equal(bide_multi_producer_sequencer_init(&objects.multi_producer,
                                                        objects.sequence_slots, 4, &objects.gate,
                                                        bide_sequence_initial()),
                     0);
    bide_stop_source_init(&objects.stop);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    bide_unbounded_channel_destroy(&objects.unbounded);
    return 0;
}

/* Runs a function beside its partner. */
#define TEST(name, partner)                                                              \
    async int name##_and_##partner(void)                                                 \
    {                                                                                    \
        async_frame(name) own;                                                           \
        memset(&own, 0xd5, sizeof own);                                                  \
        assert_int_equal(await all(async_##name(&own), partner()), 0);                   \
        check_filled(&own.result, 0);                                                    \
        return 1;                                                                        \
    }                                                                                    \
                                                                                         \
    static void test_##name(void **state)                                                \
    {                                                                                    \
        static async_frame(name##_and_##partner) frame;                                  \
        (void)state;                                                                     \
        rows = 0;                                                                        \
        memset(&frame, 0xd5, sizeof frame);                                              \
        assert_int_equal(bide_loop_wait(loop, async_##name##_and_##partner(&frame)), 0); \
        assert_int_equal(frame.result, 1);                                               \
        assert_true(rows > 3);                                                           \
    }
TEST(locks, holder)
TEST(channels, sender)
TEST(spsc_sender, spsc_receiver)
TEST(single_producer, consumer)
TEST(multi_producer, multi_consumer)
TEST(leaves, nobody)
TEST(times, requester)
TEST(several, nobody)
TEST(selects, sender)

static int create_loop(void **state)
{
    (void)state;
    return bide_loop_create(&loop, NULL);
}

static int destroy_loop(void **state)
{
    (void)state;
    bide_loop_destroy(loop);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_locks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_channels, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_spsc_sender, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_single_producer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_multi_producer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_leaves, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_times, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_several, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_selects, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, create_loop, destroy_loop);
}
