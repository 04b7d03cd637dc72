/* Both ends of a WebSocket: closing, cancelled sends, and peers that vanish. */
#include "websocket_ends.h"
#include "bide/http.h"

/* ---- Closing ---- */

static void each_side_hears_why_the_other_closes(void **state)
{
    for (int kind = 0; kind < KINDS; kind++) {
        for (int who = 0; who < 2; who++) {
            fixture *f = open_fixture(state);
            open_both(f, kind, NULL);
            struct listening listening[2];
            listen_to(f->world, &listening[0], &f->points[0]);
            listen_to(f->world, &listening[1], &f->points[1]);
            turn(f->world);
            struct closer closer = {
                .point = &f->points[who], .code = 4321, .reason = "la fin \xc3\xa0 tous"};
            spawn(f->world, &closer.spawned, bide_task_init(&closer.task, &closer_body));
            assert_int_equal(join(f->world, &closer.spawned), 0);
            for (int i = 0; i < 2; i++) {
                assert_int_equal(join(f->world, &listening[i].spawned), 0);
                assert_int_equal(listening[i].status, -EPIPE);
                assert_int_equal(f->points[i].websocket.end.code, 4321);
                assert_int_equal(f->points[i].websocket.end.sent, 4321);
                assert_true(f->points[i].websocket.end.is_clean);
                assert_string_equal(f->points[i].websocket.end.reason,
                                    i == who ? "" : closer.reason);
            }
            bide_websocket_send_operation send;
            assert_int_equal(
                world_wait(f->world, bide_websocket_send(&send, &f->points[who].websocket,
                                                         BIDE_WEBSOCKET_TEXT, "late", 4)),
                -EPIPE);
            drop_fixture(f);
        }
    }
}

static void an_invalid_close_code_is_rejected(void **state)
{
    fixture *f = open_fixture(state);
    open_both(f, 0, NULL);
    char long_reason[BIDE_WEBSOCKET_REASON + 2] = {0};
    memset(long_reason, 'x', BIDE_WEBSOCKET_REASON + 1);
    const struct {
        int code;
        const char *reason;
    } cases[] = {{999, ""},           {1004, ""},     {1006, ""},        {1015, ""},
                 {2000, ""},          {5000, ""},     {-1, ""},          {1005, "why"},
                 {1000, long_reason}, {1000, "\xff"}, {1000, "\xe2\x82"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bide_websocket_close_operation close;
        assert_int_equal(world_wait(f->world, bide_websocket_close(&close, &f->points[0].websocket,
                                                                   cases[i].code, cases[i].reason)),
                         -EINVAL);
    }
    drop_fixture(f);
}

static void an_unanswered_close_can_end_early_and_resume(void **state)
{
    fixture *f = open_fixture(state);
    open_both(f, 1, NULL);
    bide_websocket_close_operation close;
    bide_with_deadline_operation limited;
    bide_websocket *server = &f->points[0].websocket;
    assert_int_equal(world_wait(f->world, bide_with_deadline(
                                              &limited, world_now(f->world) + 3000000,
                                              bide_websocket_close(&close, server, 1001, "down"))),
                     -ETIMEDOUT);
    struct listening listening;
    listen_to(f->world, &listening, &f->points[1]);
    assert_int_equal(world_wait(f->world, bide_websocket_close(&close, server, 1001, "down")), 0);
    assert_int_equal(join(f->world, &listening.spawned), 0);
    assert_int_equal(listening.status, -EPIPE);
    assert_string_equal(f->points[1].websocket.end.reason, "down");
    assert_true(server->end.is_clean);
    drop_fixture(f);
}

/*
 * The other side receives nothing: one send is blocked, others are queued. A close ends the queued
 * ones.
 */
static void a_close_ends_queued_sends(void **state)
{
    fixture *f = open_fixture(state);
    open_both(f, 0, NULL);
    bide_websocket *websocket = &f->points[0].websocket;
    struct runner runners[3], closing;
    bide_websocket_send_operation sends[3];
    bide_websocket_close_operation close;
    for (int i = 0; i < 3; i++) {
        begin(f->world, &runners[i],
              bide_websocket_send(&sends[i], websocket, BIDE_WEBSOCKET_BINARY, f->points[0].memory,
                                  LARGE));
        turn(f->world);
    }
    begin(f->world, &closing, bide_websocket_close(&close, websocket, 1001, ""));
    assert_int_equal(end(f->world, &runners[1]), -EPIPE);
    assert_int_equal(end(f->world, &runners[2]), -EPIPE);
    assert_int_equal(sends[1].count, 0);
    assert_false(runners[0].has_ended);
    struct listening listening; /* now it receives */
    listen_to(f->world, &listening, &f->points[1]);
    assert_int_equal(end(f->world, &runners[0]), 0);
    assert_int_equal(end(f->world, &closing), 0);
    assert_int_equal(join(f->world, &listening.spawned), 0);
    assert_int_equal(listening.messages, 1);
    assert_int_equal(f->points[1].websocket.end.code, 1001);
    drop_fixture(f);
}

/* ---- Cancelled sends ---- */

static void a_buffered_message_is_sent_later(void **state)
{
    fixture *f = open_fixture(state);
    open_both(f, 0, NULL);
    bide_websocket *client = &f->points[1].websocket;
    bide_websocket_send_operation send;
    struct runner runner;
    memset(f->points[1].memory, 'x', 250);
    for (int how = STOP; how <= DESTROY; how++) { /* the pipe has 200 bytes. */
        begin_by(f->world, &runner,
                 bide_websocket_send(&send, client, BIDE_WEBSOCKET_TEXT, f->points[1].memory, 250),
                 how);
        turn(f->world);
        end_by(f->world, &runner, NULL, how);
        /* two fit into pipe and buffer, and the others wait for room */
        assert_int_equal(send.count, how <= STOP_OUTSIDE ? 250 : 0);
    }
    struct listening listening, other;
    listen_to(f->world, &other, &f->points[1]); /* it flushes */
    listen_to(f->world, &listening, &f->points[0]);
    while (listening.messages < 2)
        turn(f->world);
    struct closer closer = {.point = &f->points[0], .code = 1000, .reason = ""};
    spawn(f->world, &closer.spawned, bide_task_init(&closer.task, &closer_body));
    assert_int_equal(join(f->world, &closer.spawned), 0);
    assert_int_equal(join(f->world, &listening.spawned), 0);
    assert_int_equal(join(f->world, &other.spawned), 0);
    assert_int_equal(listening.messages, 2);
    drop_fixture(f);
}

static void nothing_follows_a_frame_that_was_cut_off(void **state)
{
    for (int how = STOP; how <= DESTROY; how++) {
        for (int role = 0; role < 2; role++) {
            fixture *f = open_fixture(state);
            open_both(f, 0, NULL);
            bide_websocket_send_operation send, other;
            struct runner runner, waiting;
            bide_websocket *websocket = &f->points[role].websocket;
            begin_by(f->world, &runner,
                     bide_websocket_send(&send, websocket, BIDE_WEBSOCKET_BINARY,
                                         f->points[role].memory, LARGE),
                     how);
            turn(f->world);
            begin(f->world, &waiting,
                  bide_websocket_send(&other, websocket, BIDE_WEBSOCKET_BINARY, "x", 1));
            end_by(f->world, &runner, NULL, how);
            assert_in_range(send.count, 1, LARGE - 1);
            assert_int_equal(end(f->world, &waiting), -ECONNABORTED);
            assert_int_equal(world_wait(f->world, bide_websocket_flush(&other, websocket)),
                             -ECONNABORTED);
            drop_fixture(f);
        }
    }
}

/* Every waiter ends at once, wherever it is cancelled, and nothing of it is left. */
static bide_awaiter *begin_one(fixture *f, int which, bide_websocket_send_operation *send,
                               bide_websocket_close_operation *close,
                               bide_websocket_recv_operation *receive)
{
    end_point *point = &f->points[which % 2];
    switch (which / 2) {
    case 0:
        return bide_websocket_send(send, &point->websocket, BIDE_WEBSOCKET_TEXT, point->memory,
                                   2000);
    case 1:
        return bide_websocket_send_fragment(send, &point->websocket, BIDE_WEBSOCKET_TEXT,
                                            point->memory, 300, false);
    case 2:
        return bide_websocket_flush(send, &point->websocket);
    case 3:
        return bide_websocket_send_ping(send, &point->websocket, point->memory, 125);
    case 4:
        return bide_websocket_recv(receive, &point->websocket, point->memory, LARGE);
    default:
        return bide_websocket_close(close, &point->websocket, 1000, "done");
    }
}

static void each_wait_can_end_early_at_each_point(void **state)
{
    for (int which = 0; which < 12; which++) {
        for (size_t taken = 0; taken < 2000; taken += 111) {
            for (int how = STOP; how <= DESTROY; how += 3) {
                fixture *f = open_fixture(state);
                bide_websocket_options options = {.max_message = LARGE};
                struct runner runner, filler;
                bide_websocket_send_operation send, filling;
                bide_websocket_close_operation close;
                bide_websocket_recv_operation receive;
                bide_stream_operation read;
                char got[2000];
                open_both(f, 0, &options);
                bide_websocket *websocket = &f->points[which % 2].websocket;
                memset(f->points[which % 2].memory, 'x', 2000);
                /* the pipe and the buffer are nearly full */
                begin(f->world, &filler,
                      bide_websocket_send(&filling, websocket, BIDE_WEBSOCKET_BINARY,
                                          f->points[which % 2].memory, 250));
                turn(f->world);
                begin_by(f->world, &runner, begin_one(f, which, &send, &close, &receive), how);
                for (size_t at = 0; at < taken;) {
                    struct runner reading;
                    begin(
                        f->world, &reading,
                        bide_stream_read(&read, f->points[1 - which % 2].stream, got, taken - at));
                    turn(f->world);
                    if (!reading.has_ended)
                        call_inside(f->world, stop, &reading);
                    int status = end(f->world, &reading);
                    if (status != 0)
                        break;
                    at += bide_stream_count(&read, f->points[1 - which % 2].stream);
                }
                if (how == DESTROY)
                    destroy(f->world, &runner);
                else if (!runner.has_ended)
                    call_inside(f->world, stop, &runner);
                if (how == STOP)
                    assert_true(end(f->world, &runner) == 0 || runner.status == -ECANCELED);
                call_inside(f->world, stop, &filler);
                int status = end(f->world, &filler);
                assert_true(status == 0 || (status == -ECANCELED && filling.count == 250));
                drop_fixture(f);
            }
        }
    }
}

/*
 * Receives messages of one byte each, all of which have arrived. It yields after a number of them.
 */
struct eater {
    bide_task task;
    bide_websocket *websocket;
    bool in_pieces;
    char byte;
    unsigned told;
    bide_websocket_recv_operation receive;
    bide_with_deadline_operation limited;
};

bide_coroutine(eater_body)
{
    bide_begin(eater_body, struct eater * self);
    for (;;) {
        bide_awaiter *awaiter =
            self->in_pieces
                ? bide_websocket_recv_piece(&self->receive, self->websocket)
                : bide_websocket_recv(&self->receive, self->websocket, &self->byte, 1);
        bide_try(self->told % 2 == 0 ? awaiter
                                     : bide_with_deadline(&self->limited, UINT64_MAX - 1, awaiter));
        assert_int_equal(self->receive.count, 1);
        assert_int_equal((uint8_t)*self->receive.data, self->told % 256);
        self->told++;
    }
    bide_end();
}

static void start_eater(void *eater)
{
    struct eater *it = eater;
    bide_start(&it->task.frame, &eater_body, world_only()->context);
    bide_resume(&it->task.frame);
}

static void destroy_eater(void *eater)
{
    bide_destroy(&((struct eater *)eater)->task.frame);
}

static void start_and_destroy_eater(void *eater)
{
    start_eater(eater);
    destroy_eater(eater);
}

static void an_undelivered_message_is_received_again(void **state)
{
    enum {
        MESSAGES = 70000
    }; /* four times the budget of a thread, and more */
    for (int in_pieces = 0; in_pieces < 2; in_pieces++) {
        fixture *f = open_fixture(state);
        static char in[3 * MESSAGES + 1];
        struct eater eater = {.websocket = &f->points[1].websocket, .in_pieces = in_pieces};
        open_memory(f);
        for (int i = 0; i < MESSAGES; i++)
            memcpy(in + (size_t)(3 * i), (char[]){(char)0x82, 1, (char)i}, 3);
        bide_websocket_options options = {.role = BIDE_WEBSOCKET_CLIENT,
                                          .read_buffer = in,
                                          .read_buffer_size = sizeof in,
                                          .write_buffer = f->points[1].out,
                                          .write_buffer_size = sizeof f->points[1].out,
                                          .initial = in,
                                          .initial_size = 3 * MESSAGES};
        assert_int_equal(bide_websocket_init(eater.websocket, f->points[1].stream, &options), 0);
        unsigned times = 0;
        for (; eater.told < MESSAGES; times++)
            call_inside(f->world, start_and_destroy_eater, &eater);
        assert_true(times > 3); /* it was destroyed in the middle */
        drop_fixture(f);
    }
}

static int no_random(void *data, size_t size)
{
    (void)data;
    (void)size;
    return -EIO;
}

static void without_random_bytes_a_client_sends_nothing(void **state)
{
    fixture *f = open_fixture(state);
    bide_websocket_options options = {.random = no_random};
    bide_websocket_send_operation send;
    open_both(f, 0, &options);
    assert_int_equal(world_wait(f->world, bide_websocket_send(&send, &f->points[1].websocket,
                                                              BIDE_WEBSOCKET_TEXT, "hello", 5)),
                     -EIO);
    assert_int_equal(send.count, 0);
    assert_int_equal(world_wait(f->world, bide_websocket_send(&send, &f->points[0].websocket,
                                                              BIDE_WEBSOCKET_TEXT, "hello", 5)),
                     0);
    drop_fixture(f);
}

static void fragments_are_one_senders(void **state)
{
    fixture *f = open_fixture(state);
    open_both(f, 1, NULL);
    bide_websocket *websocket = &f->points[0].websocket;
    bide_websocket_send_operation fragments, other;
    struct runner runner;
    assert_int_equal(world_wait(f->world, bide_websocket_send_fragment(&other, websocket,
                                                                       BIDE_WEBSOCKET_CONTINUATION,
                                                                       "x", 1, true)),
                     -EINVAL);
    assert_int_equal(
        world_wait(f->world, bide_websocket_send_fragment(&fragments, websocket,
                                                          BIDE_WEBSOCKET_TEXT, "a", 1, false)),
        0);
    assert_int_equal(
        world_wait(f->world, bide_websocket_send_fragment(&fragments, websocket,
                                                          BIDE_WEBSOCKET_TEXT, "a", 1, false)),
        -EINVAL);
    begin(f->world, &runner, bide_websocket_send(&other, websocket, BIDE_WEBSOCKET_TEXT, "c", 1));
    turn(f->world);
    assert_false(runner.has_ended);
    assert_int_equal(world_wait(f->world, bide_websocket_send_fragment(&fragments, websocket,
                                                                       BIDE_WEBSOCKET_CONTINUATION,
                                                                       "b", 1, true)),
                     0);
    assert_int_equal(end(f->world, &runner), 0);
    bide_websocket_recv_operation receive;
    bide_websocket *client = &f->points[1].websocket;
    assert_int_equal(
        world_wait(f->world, bide_websocket_recv(&receive, client, f->points[1].memory, LARGE)),
        0);
    assert_int_equal(receive.count, 2);
    assert_memory_equal(f->points[1].memory, "ab", 2);
    assert_int_equal(
        world_wait(f->world, bide_websocket_recv(&receive, client, f->points[1].memory, LARGE)),
        0);
    assert_memory_equal(f->points[1].memory, "c", 1);
    bide_websocket_send_operation ping;
    assert_int_equal(
        world_wait(f->world, bide_websocket_send_ping(&ping, client, f->points[1].memory, 126)),
        -EMSGSIZE);
    drop_fixture(f);
}

/* ---- The other side vanishes ---- */

static void a_silent_peer_is_pinged_and_then_dropped(void **state)
{
    for (int kind = 0; kind < KINDS; kind++) {
        fixture *f = open_fixture(state);
        bide_websocket_options options = {.ping_interval = 2000000, .silence = 9000000};
        open_both(f, kind, &options);
        struct listening listening;
        char got[200];
        bide_stream_operation read;
        listen_to(f->world, &listening, &f->points[0]);
        assert_int_equal(join(f->world, &listening.spawned), 0);
        assert_int_equal(listening.status, -EHOSTDOWN);
        assert_int_equal(f->points[0].websocket.end.code, BIDE_WEBSOCKET_ABNORMAL);
        assert_false(f->points[0].websocket.end.is_clean);
        assert_int_equal(
            world_wait(f->world, bide_stream_read(&read, f->points[1].stream, got, sizeof got)), 0);
        assert_true(bide_stream_count(&read, f->points[1].stream) >= 2);
        assert_memory_equal(got, "\x89\0", 2);
        drop_fixture(f);
    }
}

static void an_answering_peer_is_not_dropped(void **state)
{
    fixture *f = open_fixture(state);
    bide_websocket_options options = {.ping_interval = 1000000, .silence = 1000000000};
    open_both(f, 1, &options);
    struct listening listening[2];
    for (int i = 0; i < 2; i++)
        listen_to(f->world, &listening[i], &f->points[i]);
    while (f->points[0].websocket.pongs < 5)
        turn(f->world);
    struct closer closer = {.point = &f->points[0], .code = 1000, .reason = ""};
    spawn(f->world, &closer.spawned, bide_task_init(&closer.task, &closer_body));
    assert_int_equal(join(f->world, &closer.spawned), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(join(f->world, &listening[i].spawned), 0);
    drop_fixture(f);
}

static void one_that_goes_without_a_close_has_gone_abnormally(void **state)
{
    for (int kind = 0; kind < KINDS; kind++) {
        fixture *f = open_fixture(state);
        open_both(f, kind, NULL);
        struct listening listening;
        bide_websocket_send_operation send;
        listen_to(f->world, &listening, &f->points[1]);
        turn(f->world);
        bide_stream_close(f->points[0].stream);
        assert_int_equal(join(f->world, &listening.spawned), 0);
        assert_int_equal(listening.status, -ENODATA);
        assert_int_equal(f->points[1].websocket.end.code, BIDE_WEBSOCKET_ABNORMAL);
        assert_int_equal(world_wait(f->world, bide_websocket_send(&send, &f->points[1].websocket,
                                                                  BIDE_WEBSOCKET_TEXT, "x", 1)),
                         -EPIPE);
        drop_fixture(f);
    }
}
int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(each_side_hears_why_the_other_closes),
        world_test(an_invalid_close_code_is_rejected),
        world_test(an_unanswered_close_can_end_early_and_resume),
        world_test(a_close_ends_queued_sends),
        world_test(a_buffered_message_is_sent_later),
        world_test(nothing_follows_a_frame_that_was_cut_off),
        world_test(each_wait_can_end_early_at_each_point),
        world_test(an_undelivered_message_is_received_again),
        world_test(without_random_bytes_a_client_sends_nothing),
        world_test(fragments_are_one_senders),
        world_test(a_silent_peer_is_pinged_and_then_dropped),
        world_test(an_answering_peer_is_not_dropped),
        world_test(one_that_goes_without_a_close_has_gone_abnormally),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
