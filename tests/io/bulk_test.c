/*
 * Many bytes or datagrams in few calls: batches of datagrams, and sends without a copy. Each operation
 * reports how much it moved, however it ends.
 */
#define _GNU_SOURCE
#include "runner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

enum { MANY = 40, LARGE = 8 << 20 };

typedef struct fixture {
    world *world;
    bide_descriptor one, other;
    bide_message messages[MANY];
    struct iovec bytes[MANY];
    char texts[MANY][16];
    bide_address senders[MANY];
    bide_io_operation operation, helper;
    struct runner runner;
    bide_address address;
    bide_address *to; /* the destination of datagrams; NULL: the sockets are connected */
} fixture;

static fixture *begin_fixture(world *world)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->world = world;
    bide_descriptor_init_closed(&f->one);
    bide_descriptor_init_closed(&f->other);
    return f;
}

static void end_fixture(fixture *f)
{
    bide_close(&f->one);
    bide_close(&f->other);
    free(f);
}

/* ---- Datagrams ---- */

static void open_local(fixture *f)
{
    int fds[2];
    int room = 4096; /* (for a few datagrams) */
    if (f->world->memory != NULL) {
        static bide_address other;
        assert_int_equal(bide_address_unix(&other, "@bulk-other"), 0);
        assert_int_equal(bide_address_unix(&f->address, "@bulk-one"), 0);
        assert_int_equal(world_wait(f->world, bide_bind(&f->helper, &f->one, &f->address, 0)), 0);
        assert_int_equal(world_wait(f->world, bide_bind(&f->helper, &f->other, &other, 0)), 0);
        f->to = &other;
        return;
    }
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
    bide_descriptor_init(&f->one, fds[0]);
    bide_descriptor_init(&f->other, fds[1]);
}

static void open_udp(fixture *f)
{
    assert_int_equal(bide_address_ip(&f->address, "127.0.0.1", 0), 0);
    assert_int_equal(world_wait(f->world, bide_bind(&f->helper, &f->one, &f->address, 0)), 0);
    assert_int_equal(world_wait(f->world, bide_bind(&f->helper, &f->other, &f->address, 0)), 0);
    assert_int_equal(bide_local_address(&f->one, &f->address), 0);
    f->to = &f->address;
}

/* Sends from `other` to `one` of a pair. */
static void send_one(fixture *f, const char *text)
{
    bide_datagram datagram;
    if (f->world->memory == NULL)
        assert_int_equal(send(bide_descriptor_fd(&f->other), text, strlen(text), 0), strlen(text));
    else
        assert_int_equal(world_wait(f->world, bide_send_to(&datagram, &f->other, text, strlen(text),
                                                           &f->address)),
                         0);
}

static bide_awaiter *receive(fixture *f, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        f->bytes[i] = (struct iovec){f->texts[i], sizeof f->texts[i]};
        f->senders[i].length = sizeof f->senders[i].any;
        bide_message_init(&f->messages[i], &f->bytes[i], &f->senders[i]);
    }
    return bide_recv_batch(&f->operation, &f->one, f->messages, count);
}

static bide_awaiter *send_from(fixture *f, bide_descriptor *socket, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        int length = snprintf(f->texts[i], sizeof f->texts[i], "datagram %u", i);
        f->bytes[i] = (struct iovec){f->texts[i], (size_t)length};
        bide_message_init(&f->messages[i], &f->bytes[i], f->to);
    }
    return bide_send_batch(&f->operation, socket, f->messages, count);
}

static void check_text(fixture *f, unsigned i, unsigned number)
{
    char text[16];
    int length = snprintf(text, sizeof text, "datagram %u", number);
    assert_int_equal(f->messages[i].size, length);
    assert_memory_equal(f->texts[i], text, (size_t)length);
}

static void a_batch_has_all_that_is_there(void **state)
{
    fixture *f = begin_fixture(world_of(state));
    bide_address address;
    open_udp(f);
    assert_int_equal(world_wait(f->world, send_from(f, &f->other, MANY)), 0);
    assert_int_equal(f->operation.count, MANY);
    assert_int_equal(world_wait(f->world, receive(f, 15)), 0);
    assert_int_equal(f->operation.count, 15);
    for (unsigned i = 0; i < 15; i++)
        check_text(f, i, i);
    assert_int_equal(bide_local_address(&f->other, &address), 0);
    assert_int_equal(f->messages[3].header.msg_namelen, address.length);
    assert_int_equal(bide_address_port(&f->senders[3]), bide_address_port(&address));
    assert_int_equal(world_wait(f->world, receive(f, MANY)), 0);
    assert_int_equal(f->operation.count, MANY - 15);
    for (unsigned i = 0; i < MANY - 15; i++)
        check_text(f, i, i + 15);
    end_fixture(f);
}

static void cut_short(fixture *f, int how)
{
    if (how != TIME_OUT) {
        turn(f->world);
        assert_false(f->runner.has_ended);
    }
    end_by(f->world, &f->runner, &f->one, how);
}

static void a_waiting_batch_ends_early(void **state)
{
    for (int how = 0; how < WAYS; how++) {
        fixture *f = begin_fixture(world_of(state));
        open_local(f);
        begin_by(f->world, &f->runner, receive(f, 4), how);
        cut_short(f, how);
        assert_int_equal(f->operation.count, 0);
        if (how != CLOSE) {
            send_one(f, "datagram 7");
            assert_int_equal(world_wait(f->world, receive(f, 4)), 0);
            assert_int_equal(f->operation.count, 1);
            check_text(f, 0, 7);
        }
        end_fixture(f);
    }
}

/*
 * If the receiver's queue is full, the rest is sent as the receiver drains it, or reported as
 * unsent.
 */
static void a_batch_that_does_not_fit_tells_how_many_were_sent(void **state)
{
    for (int how = 0; how < WAYS + 1; how++) {
        fixture *f = begin_fixture(world_of(state));
        char text[16];
        unsigned taken = 0;
        open_local(f);
        begin_by(f->world, &f->runner, send_from(f, &f->one, MANY), how);
        if (how == WAYS) { /* the batch continues */
            turn(f->world);
            assert_false(f->runner.has_ended);
            while (taken < MANY) {
                ptrdiff_t size = world_receive_now(f->world, &f->other, text, sizeof text);
                if (size < 0)
                    turn(f->world);
                else
                    assert_int_equal(size, f->bytes[taken++].iov_len);
            }
            assert_int_equal(end(f->world, &f->runner), 0);
        } else {
            cut_short(f, how);
        }
        turn(f->world);
        while (world_receive_now(f->world, &f->other, text, sizeof text) > 0)
            taken++;
        assert_int_equal(f->operation.count, taken);
        /* (it may time out before it starts) */
        assert_in_range(taken, how == TIME_OUT ? 0 : 1, how == WAYS ? MANY : MANY - 1);
        end_fixture(f);
    }
}

/* ---- Without a copy ---- */

static void open_tcp(fixture *f)
{
    bide_descriptor listener;
    bide_address address;
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 0), 0);
    assert_int_equal(world_wait(f->world, bide_listen(&f->helper, &listener, &address, 4)), 0);
    assert_int_equal(bide_local_address(&listener, &address), 0);
    assert_int_equal(world_wait(f->world, bide_connect(&f->helper, &f->one, &address)), 0);
    assert_int_equal(world_wait(f->world, bide_accept(&f->helper, &listener, &f->other, NULL)), 0);
    bide_close(&listener);
}

static void open_pair(fixture *f)
{
    assert_int_equal(world_wait(f->world, bide_socket_pair(&f->helper, &f->one, &f->other)), 0);
}

static char *large(void)
{
    static char data[LARGE];
    for (size_t i = 0; i < LARGE; i++)
        data[i] = (char)(i % 251);
    return data;
}

/*
 * Receives until it has `max` bytes, or until the end; if everything was sent, until nothing is
 * left.
 */
static size_t drain(fixture *f, size_t max, bool is_sent)
{
    static char got[1 << 20];
    size_t total = 0;
    while (total < max) {
        bide_with_deadline_operation limited;
        bide_awaiter *more = bide_recv(&f->helper, &f->other, got, sizeof got);
        if (is_sent)
            more = bide_with_deadline(&limited, world_now(f->world) + 50000000, more);
        int status = world_wait(f->world, more);
        ptrdiff_t count = status == 0 ? (ptrdiff_t)f->helper.count : status;
        if (status == -ETIMEDOUT) /* our deadline has passed: check once more */
            count = world_receive_now(f->world, &f->other, got, sizeof got);
        if (count <= 0)
            break;
        for (size_t i = 0; i < (size_t)count; i += 997)
            assert_int_equal((unsigned char)got[i], (total + i) % 251);
        total += (size_t)count;
    }
    return total;
}

static void data_sent_without_a_copy_arrives(void **state)
{
    world *w = world_of(state);
    for (int local = 0; local < 2; local++) {
        fixture *f = begin_fixture(w);
        char *data = large();
        if (local)
            open_pair(f);
        else
            open_tcp(f);
        begin(w, &f->runner, bide_send_zero_copy(&f->operation, &f->one, data, LARGE));
        assert_int_equal(drain(f, LARGE, false), LARGE);
        assert_int_equal(end(w, &f->runner), 0);
        assert_int_equal(f->operation.count, LARGE);
        if (local || world_is_by_readiness() || world_is("memory"))
            assert_true(bide_was_copied(&f->operation));
        /* when a small send has completed, its data has arrived and its memory is free */
        char text[] = "hello", got[8] = "";
        assert_int_equal(world_wait(w, bide_send_zero_copy(&f->operation, &f->one, text, 5)), 0);
        memset(text, 'x', 5);
        assert_int_equal(world_wait(w, bide_recv(&f->helper, &f->other, got, sizeof got)), 0);
        assert_int_equal(f->helper.count, 5);
        bide_close(&f->other);
        int status = 0;
        for (int i = 0; i < 3 && status == 0; i++)
            status = world_wait(w, bide_send_zero_copy(&f->operation, &f->one, text, 5));
        assert_true(status == -EPIPE || status == -ECONNRESET);
        end_fixture(f);
    }
}

/*
 * A cancelled send reports how many bytes arrive. (The peer of the connection keeps receiving.)
 * in_progress: it is cancelled after its first bytes have arrived. Otherwise it is cancelled at
 * once, and may end before its first byte. A turn in between would not exclude this: its time may
 * pass before the loop submits the send.
 */
static void end_send_without_a_copy(fixture *f, int how, bool in_progress)
{
    world *w = f->world;
    begin_by(w, &f->runner, bide_send_zero_copy(&f->operation, &f->one, large(), LARGE), how);
    if (in_progress)
        assert_int_equal(world_wait(w, bide_poll(&f->helper, &f->other, POLLIN)), 0);
    for (int turns = how == TIME_OUT ? 4 : 0; turns > 0; turns--)
        turn(w); /* the last one ends after the deadline */
    if (how == STOP)
        call_inside(w, stop, &f->runner);
    else if (how == STOP_OUTSIDE)
        stop(&f->runner);
    else if (how == CLOSE)
        bide_shutdown(&f->one, BIDE_HALF_OUTPUT);
    size_t came = drain(f, LARGE, true);
    int status = end(w, &f->runner);
    if (how == CLOSE)
        assert_int_equal(status, -EPIPE);
    else
        assert_int_equal(status, how == TIME_OUT ? -ETIMEDOUT : -ECANCELED);
    assert_in_range(came, in_progress ? 1 : 0, LARGE - 1);
    assert_int_equal(f->operation.count, came);
}

static void a_send_without_a_copy_ends_early(void **state)
{
    static const struct {
        int how;
        bool in_progress;
    } ends[] = {
        {STOP, false},  {STOP, true},  {STOP_OUTSIDE, false}, {STOP_OUTSIDE, true},
        {CLOSE, false}, {CLOSE, true}, {TIME_OUT, false},
    };
    for (int local = 0; local < 2; local++) {
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
            fixture *f = begin_fixture(world_of(state));
            if (local)
                open_pair(f);
            else
                open_tcp(f);
            end_send_without_a_copy(f, ends[i].how, ends[i].in_progress);
            end_fixture(f);
        }
    }
}

/*
 * A send that cannot avoid the copy, and was cancelled before the kernel reports this, ends early.
 */
static void a_send_that_falls_back_to_a_copy_ends_early(void **state)
{
    world *w = world_of(state);
    for (int closes = 0; closes < 2; closes++) {
        fixture *f = begin_fixture(w);
        open_pair(f);
        begin(w, &f->runner, bide_send_zero_copy(&f->operation, &f->one, large(), LARGE));
        if (closes)
            call_inside(w, close_it, &f->one);
        else
            call_inside(w, stop, &f->runner);
        assert_int_equal(end(w, &f->runner), closes ? -EPIPE : -ECANCELED);
        bide_close(&f->one);
        size_t came = drain(f, LARGE, false);
        assert_in_range(came, 0, LARGE - 1);
        if (!closes)
            assert_int_equal(f->operation.count, came);
        end_fixture(f);
    }
}

/* The peer receives nothing, so the kernel would need the bytes forever. */
static void a_send_without_a_copy_is_aborted_at_once(void **state)
{
    world *w = world_of(state);
    for (int large_one = 0; large_one < 2; large_one++) {
        for (int closes = 0; closes < 2; closes++) {
            fixture *f = begin_fixture(w);
            size_t size = large_one ? LARGE : 65536;
            char *data = large();
            open_tcp(f);
            bide_awaiter *send = bide_send_zero_copy(&f->operation, &f->one, data, size);
            if (closes)
                begin(w, &f->runner, send);
            else
                start(w, &f->runner, send);
            turn(w);
            if (closes)
                call_inside(w, close_it, &f->one);
            else
                destroy(w, &f->runner);
            memset(data, 'x', size); /* (drain checks that none of these bytes are sent) */
            size_t came = drain(f, size, true);
            if (large_one)
                assert_in_range(came, 1, size - 1);
            if (closes)
                assert_int_equal(end(w, &f->runner), large_one ? -EPIPE : 0);
            end_fixture(f);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(a_batch_has_all_that_is_there),
        world_test(a_waiting_batch_ends_early),
        world_test(a_batch_that_does_not_fit_tells_how_many_were_sent),
        world_test(data_sent_without_a_copy_arrives),
        world_test(a_send_without_a_copy_ends_early),
        world_test(a_send_that_falls_back_to_a_copy_ends_early),
        world_test(a_send_without_a_copy_is_aborted_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
