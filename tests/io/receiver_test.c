/*
 * Receivers: each chunk is given once, in order, however waits end and however few buffers there are. On an io_uring
 * the kernel receives ahead, and what it has received is kept.
 */
#define _GNU_SOURCE
#include "chunk_testing.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX = 2 };

static void chunks_begin(fixture *f, int i)
{
    bide_receiver_init(&f->receivers[i], &f->sockets[i], &f->pool, MAX);
}

static void destroy_receiver(void *receiver)
{
    bide_receiver_destroy(receiver);
}

static void chunks_end(fixture *f, int i)
{
    call_inside(f->world, destroy_receiver, &f->receivers[i]);
}

static bide_awaiter *receive(fixture *f, int i)
{
    return bide_receiver_next(&f->receivers[i]);
}

static char *data_of(fixture *f, int i)
{
    return bide_receiver_data(&f->receivers[i]);
}

static size_t size_of(const fixture *f, int i)
{
    return bide_receiver_size(&f->receivers[i]);
}

static void release_chunk(void *receiver)
{
    bide_receiver *it = receiver;
    bide_buffer_release(it->pool, bide_receiver_data(it));
}

static void give_back(fixture *f, int i)
{
    call_inside(f->world, release_chunk, &f->receivers[i]);
}

static unsigned kept_of(const fixture *f, int i)
{
    return bide_receiver_pending(&f->receivers[i]);
}

static fixture *begin_receivers(world *world, unsigned buffers, int count)
{
    fixture *f = begin_fixture(world, buffers);
    open_pairs(f, count);
    return f;
}

/* Whether the kernel receives ahead. */
static bool has_stream(const fixture *f, int i)
{
    return f->receivers[i].stream.io != NULL && f->pool.ring != NULL;
}

static void each_chunk_is_given_once_and_then_the_end(void **state)
{
    fixture *f = begin_receivers(world_of(state), 4, 1);
    char large[3 * SIZE / 2];
    for (int i = 0; i < 20; i++) {
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
    if (world_is("uring") && !has_stream(f, 0))
        printf("# the kernel receives no streams\n");
    memset(large, 'x', sizeof large);
    world_send(f->world, &f->others[0], large, sizeof large);
    assert_int_equal(next(f, 0), 0);
    assert_int_equal(size_of(f, 0), SIZE);
    give_back(f, 0);
    assert_int_equal(next(f, 0), 0);
    assert_int_equal(size_of(f, 0), sizeof large - SIZE);
    give_back(f, 0);
    send_text(f, 0, "last");
    assert_int_equal(bide_shutdown(&f->others[0], BIDE_HALF_OUTPUT), 0);
    turn(f->world);
    assert_int_equal(next(f, 0), 0);
    check_text(f, 0, "last");
    give_back(f, 0);
    for (int i = 0; i < 8; i++) { /* the end holds no buffer */
        assert_int_equal(next(f, 0), 0);
        assert_int_equal(size_of(f, 0), 0);
        assert_null(bide_receiver_data(&f->receivers[0]));
    }
    end_fixture(f);
}

/* Nobody awaits a chunk, and the peer sends more than may be kept: the rest stays in the socket. */
static void chunks_that_nobody_awaits_are_kept_up_to_a_bound(void **state)
{
    enum { BUFFERS = 64, CHUNKS = 100 };
    fixture *f = begin_receivers(world_of(state), BUFFERS, 2);
    unsigned char chunk[SIZE];
    unsigned char sent = 0, got = 0;
    send_text(f, 0, "first");
    assert_int_equal(next(f, 0), 0);
    give_back(f, 0);
    for (int i = 0; i < CHUNKS; i++) {
        for (size_t at = 0; at < SIZE; at++)
            chunk[at] = sent++;
        world_send(f->world, &f->others[0], chunk, SIZE);
        if (i % 7 == 0)
            turn(f->world);
    }
    turn(f->world);
    assert_int_equal(f->pool.in_use, kept_of(f, 0));
    assert_in_range(kept_of(f, 0), 0, BUFFERS - 1);
    printf("# %u are kept\n", kept_of(f, 0));
    send_text(f, 1, "other"); /* (another receiver has buffers yet) */
    assert_int_equal(next(f, 1), 0);
    check_text(f, 1, "other");
    give_back(f, 1);
    for (size_t total = 0; total < (size_t)CHUNKS * SIZE;) {
        assert_int_equal(next(f, 0), 0);
        size_t size = size_of(f, 0);
        assert_in_range(size, 1, SIZE);
        for (size_t at = 0; at < size; at++)
            assert_int_equal((unsigned char)data_of(f, 0)[at], got++);
        give_back(f, 0);
        total += size;
    }
    end_fixture(f);
}

static void a_wait_that_ends_early_loses_nothing(void **state)
{
    world *w = world_of(state);
    for (int how = 0; how < WAYS; how++) {
        fixture *f = begin_receivers(w, 4, 1);
        begin_by(w, &f->runners[0], receive(f, 0), how);
        if (how != TIME_OUT)
            turn(w);
        end_by(w, &f->runners[0], &f->sockets[0], how);
        if (how == CLOSE) {
            assert_int_equal(next(f, 0), -EBADF);
        } else {
            send_text(f, 0, "after");
            turn(w);
            assert_int_equal(next(f, 0), 0);
            check_text(f, 0, "after");
            give_back(f, 0);
        }
        end_fixture(f);
    }
}

/* The only buffer is lent, or kept: the others wait for it in turn, and lose nothing if they end early. */
static void receivers_that_have_no_buffer_wait_in_turn(void **state)
{
    enum { COUNT = 8 };
    world *w = world_of(state);
    fixture *f = begin_receivers(w, 1, COUNT);
    send_text(f, 0, "first");
    assert_int_equal(next(f, 0), 0);
    for (int i = 1; i < COUNT; i++) {
        send_text(f, i, "data");
        begin(w, &f->runners[i], receive(f, i));
        turn(w);
        assert_false(f->runners[i].has_ended);
    }
    stop(&f->runners[1]);
    assert_int_equal(end(w, &f->runners[1]), -ECANCELED);
    for (int i = 2; i < COUNT; i++) {
        give_back(f, i == 2 ? 0 : i - 1);
        assert_int_equal(end(w, &f->runners[i]), 0);
        check_text(f, i, "data");
        for (int later = i + 1; later < COUNT; later++)
            assert_false(f->runners[later].has_ended);
    }
    give_back(f, COUNT - 1);
    assert_int_equal(next(f, 1), 0);
    check_text(f, 1, "data");
    give_back(f, 1);
    end_fixture(f);
}

/* What is kept is discarded; what arrives later is for others. */
static void one_that_is_destroyed_while_it_receives_leaves_the_socket(void **state)
{
    world *w = world_of(state);
    for (int waits = 0; waits < 2; waits++) {
        fixture *f = begin_receivers(w, 8, 1);
        bide_io_operation plain;
        char text[16] = "";
        send_text(f, 0, "first");
        assert_int_equal(next(f, 0), 0);
        give_back(f, 0);
        if (waits) {
            start(w, &f->runners[0], receive(f, 0));
            turn(w);
            destroy(w, &f->runners[0]);
        } else {
            send_text(f, 0, "kept");
            turn(w);
            turn(w);
        }
        unsigned kept = kept_of(f, 0);
        call_inside(w, destroy_receiver, &f->receivers[0]);
        call_inside(w, destroy_receiver, &f->receivers[0]);
        assert_int_equal(f->pool.in_use, 0);
        if (!waits && kept == 0) { /* it was received by nobody */
            assert_int_equal(world_wait(w, bide_recv(&plain, &f->sockets[0], text, sizeof text)),
                             0);
            assert_string_equal(text, "kept");
        }
        send_text(f, 0, "later");
        assert_int_equal(world_wait(w, bide_recv(&plain, &f->sockets[0], text, sizeof text)), 0);
        assert_memory_equal(text, "later", 5);
        end_fixture(f);
    }
}

/* The data has arrived, and the coroutine is destroyed before it resumes: the buffer is released. */
static void one_whose_coroutine_is_destroyed_after_it_was_done_gives_back(void **state)
{
    fixture *f = begin_receivers(world_of(state), 2, 1);
    for (int i = 0; i < 20; i++) {
        start(f->world, &f->runners[0], receive(f, 0));
        turn(f->world);
        send_text(f, 0, "x");
        if (i % 2 != 0)
            turn(f->world);
        destroy(f->world, &f->runners[0]);
        if (f->runners[0].has_ended)
            give_back(f, 0);
        assert_int_equal(f->pool.in_use, kept_of(f, 0));
        assert_in_range(f->pool.in_use, 0, 1);
        send_text(f, 0, "y"); /* (perhaps the first is there yet) */
        assert_int_equal(next(f, 0), 0);
        give_back(f, 0);
        while (kept_of(f, 0) != 0) {
            assert_int_equal(next(f, 0), 0);
            give_back(f, 0);
        }
    }
    end_fixture(f);
}

/* A reset is reported once, behind what arrived before it. */
static void a_reset_is_reported_behind_the_data(void **state)
{
    world *w = world_of_the_system(state, "it is reported by the kernel");
    const struct linger at_once = {.l_onoff = 1};
    bide_io_operation operation;
    bide_descriptor listener;
    bide_address address;
    fixture *f = begin_receivers(w, 4, 0);
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 0), 0);
    assert_int_equal(world_wait(w, bide_listen(&operation, &listener, &address, 1)), 0);
    assert_int_equal(bide_local_address(&listener, &address), 0);
    world_connect(w, &f->others[0], &address);
    assert_int_equal(world_wait(w, bide_accept(&operation, &listener, &f->sockets[0], NULL)), 0);
    bide_receiver_init(&f->receivers[0], &f->sockets[0], &f->pool, MAX);
    f->opened = 1;
    begin(w, &f->runners[0], receive(f, 0));
    turn(w);
    send_text(f, 0, "before");
    assert_int_equal(end(w, &f->runners[0]), 0);
    check_text(f, 0, "before");
    give_back(f, 0);
    turn(w);
    assert_int_equal(setsockopt(bide_descriptor_fd(&f->others[0]), SOL_SOCKET, SO_LINGER, &at_once,
                                sizeof at_once),
                     0);
    assert_int_equal(bide_close(&f->others[0]), 0);
    assert_int_equal(next(f, 0), -ECONNRESET);
    assert_int_equal(next(f, 0), 0);
    assert_int_equal(size_of(f, 0), 0);
    assert_int_equal(bide_close(&listener), 0);
    end_fixture(f);
}

static void none_is_lost_in_a_storm(void **state)
{
    storm_of_chunks(world_of(state), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(each_chunk_is_given_once_and_then_the_end),
        world_test(idle_receivers_hold_no_buffer),
        world_test(chunks_that_nobody_awaits_are_kept_up_to_a_bound),
        world_test(a_wait_that_ends_early_loses_nothing),
        world_test(receivers_that_have_no_buffer_wait_in_turn),
        world_test(one_that_is_destroyed_while_it_receives_leaves_the_socket),
        world_test(one_whose_coroutine_is_destroyed_after_it_was_done_gives_back),
        world_test(a_reset_is_reported_behind_the_data),
        world_test(none_is_lost_in_a_storm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
