/*
 * Receiving into leased buffers. No buffer is held while no data has arrived, waiters for a buffer are
 * served in order, and neither bytes nor buffers are lost, no matter how a wait ends.
 */
#define _GNU_SOURCE
#include "chunk_testing.h"

#include <errno.h>
#include <unistd.h>

enum { BUFFERS = 3 };

static void chunks_begin(fixture *f, int i)
{
    (void)f;
    (void)i;
}

static void chunks_end(fixture *f, int i)
{
    (void)f;
    (void)i;
}

static bide_awaiter *receive(fixture *f, int i)
{
    return bide_recv_provided(&f->operations[i], &f->sockets[i], &f->pool);
}

static char *data_of(fixture *f, int i)
{
    return bide_provided_buffer(&f->operations[i]);
}

static size_t size_of(const fixture *f, int i)
{
    return f->operations[i].count;
}

static void give_back(fixture *f, int i)
{
    bide_buffer_release(&f->pool, bide_provided_buffer(&f->operations[i]));
}

static unsigned kept_of(const fixture *f, int i)
{
    (void)f;
    (void)i;
    return 0;
}

static void received_data_is_in_leased_buffers(void **state)
{
    fixture *f = begin_fixture(world_of(state), BUFFERS);
    char large[3 * SIZE / 2];
    open_pairs(f, 1);
    for (int i = 0; i < 10; i++) {
        begin(f->world, &f->runners[0], receive(f, 0));
        turn(f->world);
        assert_false(f->runners[0].has_ended);
        assert_int_equal(f->pool.in_use, 0);
        send_text(f, 0, "hello");
        assert_int_equal(end(f->world, &f->runners[0]), 0);
        check_text(f, 0, "hello");
        assert_int_equal(f->pool.in_use, 1);
        give_back(f, 0);
    }
    if (!world_is("uring")) /* (the ring of an older kernel may have no buffers) */
        assert_null(f->pool.ring);
    else if (f->pool.ring == NULL)
        printf("# the kernel picks no buffers\n");
    memset(large, 'x', sizeof large);
    world_send(f->world, &f->others[0], large, sizeof large);
    assert_int_equal(next(f, 0), 0);
    assert_int_equal(f->operations[0].count, SIZE);
    give_back(f, 0);
    assert_int_equal(next(f, 0), 0);
    assert_int_equal(f->operations[0].count, sizeof large - SIZE);
    give_back(f, 0);
    assert_int_equal(bide_shutdown(&f->others[0], BIDE_HALF_OUTPUT), 0);
    for (int i = 0; i < 2 * BUFFERS; i++) { /* the end of the stream holds no buffer */
        assert_int_equal(next(f, 0), 0);
        assert_int_equal(f->operations[0].count, 0);
        assert_null(bide_provided_buffer(&f->operations[0]));
    }
    end_fixture(f);
}

/* The first takes the only buffer, so the others, whose data has arrived, wait for it. */
static void take_the_only_one(fixture *f, int count)
{
    open_pairs(f, count);
    send_text(f, 0, "first");
    assert_int_equal(next(f, 0), 0);
    for (int i = 1; i < count; i++) {
        send_text(f, i, "data");
        begin(f->world, &f->runners[i], receive(f, i));
        turn(f->world);
        assert_false(f->runners[i].has_ended);
    }
}

static void waiters_for_a_buffer_are_served_in_order(void **state)
{
    enum { COUNT = 8 };
    fixture *f = begin_fixture(world_of(state), 1);
    take_the_only_one(f, COUNT);
    for (int i = 1; i < COUNT; i++) {
        give_back(f, i - 1);
        assert_int_equal(end(f->world, &f->runners[i]), 0);
        check_text(f, i, "data");
        for (int later = i + 1; later < COUNT; later++)
            assert_false(f->runners[later].has_ended);
    }
    give_back(f, COUNT - 1);
    end_fixture(f);
}

/* Ends the i-th wait in each way except by its data. */
static void end_early(fixture *f, int i, int how)
{
    end_by(f->world, &f->runners[i], &f->sockets[i], how);
    assert_false(f->runners[i].has_ended && f->runners[i].status == 0);
}

static void a_wait_for_data_that_ends_early_loses_nothing(void **state)
{
    world *w = world_of(state);
    for (int how = 0; how < WAYS; how++) {
        fixture *f = begin_fixture(w, 1);
        open_pairs(f, 2);
        begin_by(f->world, &f->runners[0], receive(f, 0), how);
        if (how != TIME_OUT)
            turn(w);
        end_early(f, 0, how);
        int other = how == CLOSE ? 1 : 0;
        send_text(f, other, "after");
        assert_int_equal(next(f, other), 0);
        check_text(f, other, "after");
        give_back(f, other);
        end_fixture(f);
    }
}

/*
 * The data has arrived already: a plain receive gets it afterwards, and the waiters behind get the
 * buffer.
 */
static void a_wait_for_a_buffer_that_ends_early_loses_nothing(void **state)
{
    world *w = world_of(state);
    for (int how = 0; how < WAYS; how++) {
        fixture *f = begin_fixture(w, 1);
        char buffer[8] = "";
        take_the_only_one(f, 2);
        open_pairs(f, 4);
        for (int i = 2; i < 4; i++)
            send_text(f, i, "data");
        begin_by(f->world, &f->runners[2], receive(f, 2), how);
        begin(w, &f->runners[3], receive(f, 3));
        if (how != TIME_OUT)
            turn(w);
        end_early(f, 2, how);
        if (how != CLOSE) {
            assert_int_equal(world_wait(w, bide_recv(&f->operations[2], &f->sockets[2], buffer, 8)),
                             0);
            assert_string_equal(buffer, "data");
        }
        give_back(f, 0);
        assert_int_equal(end(w, &f->runners[1]), 0);
        turn(w);
        assert_false(f->runners[3].has_ended);
        give_back(f, 1);
        assert_int_equal(end(w, &f->runners[3]), 0);
        check_text(f, 3, "data");
        give_back(f, 3);
        end_fixture(f);
    }
}

/* The first of a line waits for a buffer, and the one behind it leaves the line. */
static void one_behind_a_wait_for_a_buffer_ends_early(void **state)
{
    world *w = world_of(state);
    for (int how = 0; how < WAYS; how++) {
        bide_io_operation behind;
        struct runner runner;
        if (how == CLOSE || how == TIME_OUT) /* (which ends both; which may be early) */
            continue;
        fixture *f = begin_fixture(w, 1);
        take_the_only_one(f, 2);
        begin_by(w, &runner, bide_recv_provided(&behind, &f->sockets[1], &f->pool), how);
        turn(w);
        end_by(w, &runner, NULL, how);
        give_back(f, 0);
        assert_int_equal(end(w, &f->runners[1]), 0);
        check_text(f, 1, "data");
        give_back(f, 1);
        end_fixture(f);
    }
}

/* It waits for a buffer first, and then for data; and so does one behind it. */
static void one_that_has_waited_for_a_buffer_waits_for_data(void **state)
{
    world *w = world_of(state);
    for (int has_another = 0; has_another < 2; has_another++) {
        fixture *f = begin_fixture(w, 1);
        bide_io_operation behind;
        struct runner runner;
        open_pairs(f, 2);
        send_text(f, 0, "first");
        assert_int_equal(next(f, 0), 0);
        begin(w, &f->runners[1], receive(f, 1));
        if (has_another)
            begin(w, &runner, bide_recv_provided(&behind, &f->sockets[1], &f->pool));
        turn(w);
        give_back(f, 0);
        turn(w);
        turn(w);
        assert_false(f->runners[1].has_ended);
        send_text(f, 1, "late");
        assert_int_equal(end(w, &f->runners[1]), 0);
        check_text(f, 1, "late");
        turn(w);
        give_back(f, 1);
        if (has_another) {
            turn(w);
            turn(w);
            assert_false(runner.has_ended);
            send_text(f, 1, "later");
            assert_int_equal(end(w, &runner), 0);
            assert_int_equal(behind.count, 5);
            assert_memory_equal(bide_provided_buffer(&behind), "later", 5);
            bide_buffer_release(&f->pool, bide_provided_buffer(&behind));
        }
        end_fixture(f);
    }
}

/*
 * The data has arrived, and the coroutine is destroyed before it resumes: the buffer is released.
 */
static void one_that_is_destroyed_after_it_was_done_gives_back(void **state)
{
    fixture *f = begin_fixture(world_of(state), 1);
    open_pairs(f, 1);
    for (int i = 0; i < 20; i++) {
        start(f->world, &f->runners[0], receive(f, 0));
        turn(f->world);
        send_text(f, 0, "x");
        if (i % 2 != 0)
            turn(f->world);
        destroy(f->world, &f->runners[0]);
        if (f->runners[0].has_ended)
            give_back(f, 0);
        assert_int_equal(f->pool.in_use, 0);
        char byte;
        (void)world_receive_now(f->world, &f->sockets[0], &byte, 1);
    }
    end_fixture(f);
}

static void none_is_lost_in_a_storm(void **state)
{
    storm_of_chunks(world_of(state), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(received_data_is_in_leased_buffers),
        world_test(idle_receivers_hold_no_buffer),
        world_test(waiters_for_a_buffer_are_served_in_order),
        world_test(a_wait_for_data_that_ends_early_loses_nothing),
        world_test(a_wait_for_a_buffer_that_ends_early_loses_nothing),
        world_test(one_behind_a_wait_for_a_buffer_ends_early),
        world_test(one_that_has_waited_for_a_buffer_waits_for_data),
        world_test(one_that_is_destroyed_after_it_was_done_gives_back),
        world_test(none_is_lost_in_a_storm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
