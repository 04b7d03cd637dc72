/*
 * Both ends of a websocket: over memory, a pair of sockets and TCP, in each world. Each message says who sent it and as
 * which, so whatever happens to the waits, each sender's messages come whole, once and in order.
 */
#include "runner.h"

enum { SENDERS = 3, MEMORY = 200, LARGE = 140000, SMALL = 600 };

typedef struct fixture fixture;

/* One end of it. */
typedef struct end_point {
    bide_websocket websocket;
    bide_stream stream;
    char in[1024], out[BIDE_WEBSOCKET_LEAST_BUFFER + 100];
    char *memory; /* for a message */
} end_point;

struct fixture {
    world *world;
    uint64_t random;
    bide_descriptor sockets[2], listener;
    bide_memory_pipe pipes[2];
    char memory[2][MEMORY];
    bide_memory_end ends[2];
    end_point points[2]; /* a server, and a client */
};

static fixture *open_fixture(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->world = world_of(state);
    for (int i = 0; i < 2; i++) {
        bide_descriptor_init_closed(&f->sockets[i]);
        f->points[i].memory = malloc(LARGE);
        assert_non_null(f->points[i].memory);
    }
    return f;
}

static void open_memory(fixture *f)
{
    for (int i = 0; i < 2; i++) {
        bide_memory_pipe_init(&f->pipes[i], f->memory[i], MEMORY);
        f->ends[i] = (bide_memory_end){&f->pipes[i], &f->pipes[1 - i]};
    }
    for (int i = 0; i < 2; i++)
        f->points[i].stream = bide_stream_of_memory(&f->ends[i]);
}

static void of_sockets(fixture *f)
{
    for (int i = 0; i < 2; i++) {
        assert_int_equal(bide_set_socket_option(&f->sockets[i], BIDE_OPTION_SEND_BUFFER, 4096), 0);
        f->points[i].stream = bide_stream_of_socket(&f->sockets[i]);
    }
}

static void open_pair(fixture *f)
{
    bide_io_operation operation;
    assert_int_equal(
        world_wait(f->world, bide_socket_pair(&operation, &f->sockets[0], &f->sockets[1])), 0);
    of_sockets(f);
}

static void open_tcp(fixture *f)
{
    bide_io_operation operation;
    bide_address address;
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 0), 0);
    assert_int_equal(world_wait(f->world, bide_listen(&operation, &f->listener, &address, 4)), 0);
    assert_int_equal(bide_local_address(&f->listener, &address), 0);
    assert_int_equal(world_wait(f->world, bide_connect(&operation, &f->sockets[1], &address)), 0);
    assert_int_equal(
        world_wait(f->world, bide_accept(&operation, &f->listener, &f->sockets[0], NULL)), 0);
    bide_close(&f->listener);
    of_sockets(f);
}

static void (*const kinds[])(fixture *) = {open_memory, open_pair, open_tcp};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void open_end(end_point *point, bide_websocket_role role,
                     const bide_websocket_options *options)
{
    bide_websocket_options own = {0};
    if (options != NULL)
        own = *options;
    own.role = role;
    own.in = point->in;
    own.in_size = sizeof point->in;
    own.out = point->out;
    own.out_size = sizeof point->out;
    assert_int_equal(bide_websocket_init(&point->websocket, point->stream, &own), 0);
}

static void close_streams(fixture *f)
{
    for (int i = 0; i < 2; i++)
        bide_stream_close(f->points[i].stream);
}

static void close_inside(void *fixture)
{
    close_streams(fixture);
}

static void drop_fixture(fixture *f)
{
    call_inside(f->world, close_inside, f);
    for (int i = 0; i < 2; i++)
        free(f->points[i].memory);
    free(f);
}

static size_t drawn(fixture *f, size_t from, size_t to)
{
    return from + (size_t)(testing_random(&f->random) % (to - from + 1));
}

/* ---- Messages that say what they are ---- */

/* Sender, number, and then what follows from both; it is ASCII, with other characters in between. */
static void write_message(char *data, size_t size, unsigned sender, unsigned number)
{
    for (size_t i = 0; i < size; i++)
        data[i] = (char)('a' + (i * 7 + number * 13 + sender) % 26);
    for (size_t i = 20; i + 3 < size; i += 50)
        memcpy(data + i, "\xe2\x82\xac", 3);
    if (size >= 8) {
        char head[9];
        snprintf(head, sizeof head, "%02u%06u", sender, number % 1000000);
        memcpy(data, head, 8);
    }
}

struct sender {
    bide_task task;
    fixture *fixture;
    end_point *point;
    unsigned number, sent, most;
    size_t size, at, piece;
    bool has_begun;
    char *data;
    int status;
    bide_websocket_send_operation send, ping;
    bide_spawned spawned;
};

static size_t draw_size(fixture *f)
{
    return drawn(f, 0, 20) == 0 ? drawn(f, 8, LARGE) : drawn(f, 8, SMALL);
}

static bide_websocket_kind kind_of(unsigned sent)
{
    return sent % 3 == 0 ? BIDE_WEBSOCKET_BINARY : BIDE_WEBSOCKET_TEXT;
}

/* Sends its messages: in whole, in fragments, or into the buffer; and a ping now and then. */
bide_coroutine(sender_body)
{
    bide_begin(sender_body, struct sender * self);
    for (self->sent = 0; self->sent < self->most; self->sent++) {
        self->size = draw_size(self->fixture);
        write_message(self->data, self->size, self->number, self->sent);
        switch (drawn(self->fixture, 0, 3)) {
        case 0:
            self->has_begun = false;
            for (self->at = 0; self->at < self->size || !self->has_begun; self->at += self->piece) {
                self->piece = drawn(self->fixture, 0, self->size - self->at);
                if (drawn(self->fixture, 0, 3) == 0)
                    self->piece = self->size - self->at;
                bide_try(bide_websocket_send_fragment(
                    &self->send, &self->point->websocket,
                    self->has_begun ? BIDE_WEBSOCKET_CONTINUATION : kind_of(self->sent),
                    self->data + self->at, self->piece, self->at + self->piece == self->size));
                self->has_begun = true;
                if (drawn(self->fixture, 0, 3) == 0)
                    bide_try(bide_websocket_send_ping(&self->ping, &self->point->websocket,
                                                      "between", 7));
            }
            break;
        case 1:
            bide_try(bide_websocket_put(&self->send, &self->point->websocket, kind_of(self->sent),
                                        self->data, self->size));
            break;
        default:
            bide_try(bide_websocket_send(&self->send, &self->point->websocket, kind_of(self->sent),
                                         self->data, self->size));
            assert_int_equal(self->send.count, self->size);
        }
    }
    bide_try(bide_websocket_flush(&self->send, &self->point->websocket));
    bide_end();
}

/* ---- A receiver whose waits are cut short ---- */

typedef struct receiver {
    fixture *fixture;
    end_point *point;
    struct runner runner;
    bide_websocket_receive_operation receive;
    size_t count;
    unsigned next[SENDERS]; /* message of each */
    unsigned received, expected;
    bool in_pieces, is_under_way;
    int how;
} receiver;

static void check_message(receiver *r)
{
    char *expected = malloc(LARGE);
    unsigned sender =
        (unsigned)(r->point->memory[0] - '0') * 10 + (unsigned)(r->point->memory[1] - '0');
    assert_non_null(expected);
    assert_in_range(sender, 0, SENDERS - 1);
    write_message(expected, r->count, sender, r->next[sender]);
    assert_memory_equal(r->point->memory, expected, r->count);
    assert_int_equal(r->receive.kind, kind_of(r->next[sender]));
    r->next[sender]++;
    r->received++;
    r->count = 0;
    free(expected);
}

static void note(receiver *r)
{
    r->is_under_way = false;
    if (r->runner.status == -ECANCELED || r->runner.status == -ETIMEDOUT)
        return;
    assert_int_equal(r->runner.status, 0);
    if (r->in_pieces) {
        assert_true(r->count + r->receive.count <= LARGE);
        memcpy(r->point->memory + r->count, r->receive.data, r->receive.count);
        r->count += r->receive.count;
    } else {
        r->count = r->receive.count;
    }
    if (r->receive.is_last) {
        r->in_pieces = drawn(r->fixture, 0, 1);
        check_message(r);
    }
}

/* Begins a receive, or sees to the end of the one that is under way. */
static void go_on(receiver *r)
{
    world *world = r->fixture->world;
    if (r->is_under_way) {
        bool cut = drawn(r->fixture, 0, 2) == 0;
        if (!r->runner.has_ended && cut && r->how == DESTROY) {
            destroy(world, &r->runner);
            if (r->runner.has_ended) /* meanwhile */
                note(r);
            r->is_under_way = false;
            return;
        }
        if (!r->runner.has_ended && cut && r->how == STOP)
            call_inside(world, stop, &r->runner);
        if (!r->runner.has_ended)
            return;
        if (r->how != DESTROY)
            end(world, &r->runner);
        note(r);
        return;
    }
    if (r->received == r->expected)
        return;
    bide_awaiter *awaiter =
        r->in_pieces
            ? bide_websocket_receive_piece(&r->receive, &r->point->websocket)
            : bide_websocket_receive(&r->receive, &r->point->websocket, r->point->memory, LARGE);
    r->how = (int)drawn(r->fixture, 0, 3);
    r->how = r->how == 0 ? DESTROY : r->how == 1 ? TIME_OUT : STOP;
    r->is_under_way = true;
    if (r->how == TIME_OUT) {
        begin(world, &r->runner,
              bide_with_deadline(&r->runner.limited,
                                 world_now(world) + drawn(r->fixture, 0, 100000), awaiter));
    } else {
        begin_by(world, &r->runner, awaiter, r->how);
    }
}

static void short_turn(world *world)
{
    bide_sleep sleep;
    assert_int_equal(world_wait(world, bide_sleep_for(&sleep, 20000)), 0);
}

struct closer {
    bide_task task;
    end_point *point;
    const char *reason;
    int code;
    bide_websocket_close_operation close;
    bide_spawned spawned;
};

bide_coroutine(closer_body)
{
    bide_begin(closer_body, struct closer * self);
    bide_try(bide_websocket_close(&self->close, &self->point->websocket, self->code, self->reason));
    bide_end();
}

static void spawn(world *world, bide_spawned *spawned, bide_awaiter *awaiter)
{
    bide_spawn(spawned, world->context, awaiter);
}

static int join(world *world, bide_spawned *spawned)
{
    bide_event_waiter wait;
    assert_int_equal(world_wait(world, bide_event_wait(&wait, &spawned->ended)), 0);
    return spawned->root.status;
}

static void exchange(fixture *f, unsigned most)
{
    struct sender *senders = calloc(2 * SENDERS, sizeof *senders);
    receiver receivers[2];
    memset(receivers, 0, sizeof receivers);
    for (int i = 0; i < 2; i++) {
        open_end(&f->points[i], i == 0 ? BIDE_WEBSOCKET_SERVER : BIDE_WEBSOCKET_CLIENT, NULL);
        receivers[i].fixture = f;
        receivers[i].point = &f->points[i];
        receivers[i].expected = most * SENDERS;
    }
    for (unsigned i = 0; i < 2 * SENDERS; i++) {
        struct sender *sender = &senders[i];
        sender->fixture = f;
        sender->point = &f->points[i % 2];
        sender->number = i / 2;
        sender->most = most;
        sender->data = malloc(LARGE);
        spawn(f->world, &sender->spawned, bide_task_init(&sender->task, &sender_body));
    }
    while (receivers[0].received + receivers[1].received < 2 * SENDERS * most ||
           receivers[0].is_under_way || receivers[1].is_under_way) {
        go_on(&receivers[0]);
        go_on(&receivers[1]);
        if (drawn(f, 0, 3) == 0)
            short_turn(f->world);
    }
    for (unsigned i = 0; i < 2 * SENDERS; i++) {
        assert_int_equal(join(f->world, &senders[i].spawned), 0);
        free(senders[i].data);
    }
    free(senders);
    /* one of them, or both at once */
    struct closer closers[2] = {
        {.point = &f->points[0], .code = BIDE_WEBSOCKET_NORMAL, .reason = "done"},
        {.point = &f->points[1], .code = BIDE_WEBSOCKET_NORMAL, .reason = "done"}};
    for (int i = 0; i < 2; i++)
        spawn(f->world, &closers[i].spawned, bide_task_init(&closers[i].task, &closer_body));
    for (int i = 0; i < 2; i++) {
        const bide_websocket_end *end = &f->points[i].websocket.end;
        assert_int_equal(join(f->world, &closers[i].spawned), 0);
        assert_int_equal(end->code, BIDE_WEBSOCKET_NORMAL);
        assert_int_equal(end->sent, BIDE_WEBSOCKET_NORMAL);
        assert_true(end->is_clean);
    }
}

static void messages_come_whole_and_in_each_senders_order_whatever_is_cut_short(void **state)
{
    uint64_t random = testing_seed();
    for (uint32_t round = 0; round < rounds_of(6); round++) {
        fixture *f = open_fixture(state);
        f->random = testing_random(&random);
        if (round % 2 == 1)
            world_roughen(f->world, f->random);
        kinds[round % KINDS](f);
        exchange(f, 40);
        drop_fixture(f);
    }
}

/* ---- Closing ---- */

struct listening {
    bide_task task;
    end_point *point;
    bide_websocket_receive_operation receive;
    int status;
    unsigned messages;
    bide_spawned spawned;
};

bide_coroutine(listening_body)
{
    bide_begin(listening_body, struct listening * self);
    for (;;) {
        bide_await_status(self->status,
                          bide_websocket_receive(&self->receive, &self->point->websocket,
                                                 self->point->memory, LARGE));
        if (self->status != 0)
            bide_return(0);
        self->messages++;
    }
    bide_end();
}

static void listen_to(world *world, struct listening *listening, end_point *point)
{
    listening->point = point;
    listening->messages = 0;
    spawn(world, &listening->spawned, bide_task_init(&listening->task, &listening_body));
}

static void open_both(fixture *f, int kind, const bide_websocket_options *options)
{
    kinds[kind](f);
    open_end(&f->points[0], BIDE_WEBSOCKET_SERVER, options);
    open_end(&f->points[1], BIDE_WEBSOCKET_CLIENT, options);
}

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

static void a_close_that_may_not_be_sent_is_refused(void **state)
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

static void a_close_that_nobody_answers_is_cut_short_and_goes_on(void **state)
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

/* The other side takes nothing: one send is stuck, others are in line; a close ends those. */
static void a_close_ends_those_in_line(void **state)
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
    struct listening listening; /* now it takes */
    listen_to(f->world, &listening, &f->points[1]);
    assert_int_equal(end(f->world, &runners[0]), 0);
    assert_int_equal(end(f->world, &closing), 0);
    assert_int_equal(join(f->world, &listening.spawned), 0);
    assert_int_equal(listening.messages, 1);
    assert_int_equal(f->points[1].websocket.end.code, 1001);
    drop_fixture(f);
}

/* ---- Sends that are cut short ---- */

static void a_message_that_was_taken_goes_out_later(void **state)
{
    fixture *f = open_fixture(state);
    open_both(f, 0, NULL);
    bide_websocket *client = &f->points[1].websocket;
    bide_websocket_send_operation send;
    struct runner runner;
    write_message(f->points[1].memory, 250, 0, 0);
    for (int how = STOP; how <= DESTROY; how++) { /* the pipe has 200 bytes */
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
    bide_websocket_receive_operation receive;
    bide_websocket *client = &f->points[1].websocket;
    assert_int_equal(
        world_wait(f->world, bide_websocket_receive(&receive, client, f->points[1].memory, LARGE)),
        0);
    assert_int_equal(receive.count, 2);
    assert_memory_equal(f->points[1].memory, "ab", 2);
    assert_int_equal(
        world_wait(f->world, bide_websocket_receive(&receive, client, f->points[1].memory, LARGE)),
        0);
    assert_memory_equal(f->points[1].memory, "c", 1);
    bide_websocket_send_operation ping;
    assert_int_equal(
        world_wait(f->world, bide_websocket_send_ping(&ping, client, f->points[1].memory, 126)),
        -EMSGSIZE);
    drop_fixture(f);
}

/* ---- The other side vanishes ---- */

static void one_that_is_silent_is_asked_and_then_given_up(void **state)
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

static void one_that_answers_is_not_given_up(void **state)
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
        world_test(messages_come_whole_and_in_each_senders_order_whatever_is_cut_short),
        world_test(each_side_hears_why_the_other_closes),
        world_test(a_close_that_may_not_be_sent_is_refused),
        world_test(a_close_that_nobody_answers_is_cut_short_and_goes_on),
        world_test(a_close_ends_those_in_line),
        world_test(a_message_that_was_taken_goes_out_later),
        world_test(nothing_follows_a_frame_that_was_cut_off),
        world_test(fragments_are_one_senders),
        world_test(one_that_is_silent_is_asked_and_then_given_up),
        world_test(one_that_answers_is_not_given_up),
        world_test(one_that_goes_without_a_close_has_gone_abnormally),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
