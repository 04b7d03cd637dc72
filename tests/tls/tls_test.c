/*
 * TLS over pipes in memory and over sockets: data in both directions at once, and how connections
 * end.
 */
#include "tls_pair.h"

#include "../../src/tls/internal.h"

static pair p;

static void fill(char *data, size_t size, uint64_t seed)
{
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = testing_random(&seed);
        memcpy(data + i, &word, size - i < 8 ? size - i : 8);
    }
}

/* Runs it over each kind of stream, in both versions. */
static void for_each_below(void **state, void (*run)(void))
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    world *world = world_of(state);
    for (below kind = 0; kind < BELOWS; kind++) {
        for (size_t i = 0; i < 2; i++) {
            bide_tls_config *client = usual_client();
            bide_tls_config *server = usual_server();
            assert_int_equal(SSL_CTX_set_max_proto_version(client->context, versions[i]), 1);
            pair_open(&p, world, kind);
            pair_greet_well(&p, client, server, "server.test");
            bide_tls_config_release(client);
            bide_tls_config_release(server);
            run();
            assert_int_equal(ERR_peek_error(), 0);
            pair_close(&p);
        }
    }
}

/* The next read of one side finds nothing. */
static int read_byte(side *side)
{
    char byte;
    return world_wait(p.world, bide_stream_read(&side->read, side->stream, &byte, 1));
}

/* ---- Data ---- */

static void talk(void)
{
    static char data[300000];
    fill(data, sizeof data, 1);
    pair_send(&p, &p.client, &p.server, "hello", 5);
    pair_send(&p, &p.server, &p.client, "good day", 8);
    for (size_t size = 1; size < sizeof data; size = size * 3 + 1) {
        pair_send(&p, &p.client, &p.server, data, size);
        pair_send(&p, &p.server, &p.client, data, size);
    }
    assert_string_equal(bide_tls_server_name(&p.server.tls), "server.test");
    assert_string_equal(bide_tls_version(&p.server.tls),
                        SSL_get_version(bide_tls_native(&p.client.tls)));
}

static void written_data_is_read(void **state)
{
    for_each_below(state, talk);
}

/* Both send, and neither reads until both are blocked, if they block. */
static void talk_at_once(void)
{
    static char data[2][400000], got[2][400000];
    side *sides[2] = {&p.client, &p.server};
    for (int i = 0; i < 2; i++) {
        fill(data[i], sizeof data[i], (uint64_t)i);
        begin(p.world, &sides[i]->writing,
              bide_stream_write(&sides[i]->write, sides[i]->stream, data[i], sizeof data[i]));
    }
    turn(p.world);
    for (int i = 0; i < 2; i++) {
        for (size_t count = 0; count != sizeof got[i];) {
            side *reader = sides[1 - i];
            assert_int_equal(
                world_wait(p.world, bide_stream_read(&reader->read, reader->stream, got[i] + count,
                                                     sizeof got[i] - count)),
                0);
            count += bide_stream_count(&reader->read, reader->stream);
        }
        assert_memory_equal(got[i], data[i], sizeof got[i]);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(end(p.world, &sides[i]->writing), 0);
}

static void two_senders_continue_when_one_reads(void **state)
{
    for_each_below(state, talk_at_once);
}

/* A coroutine that writes much data, and one that reads it. */
struct flow {
    bide_task task;
    side *side;
    uint64_t seed;
    size_t left, asked, count;
    bide_stream_operation operation;
    struct runner runner;
    char data[50000], expected[50000];
};

static size_t next_size(struct flow *flow)
{
    size_t size = 1 + testing_random(&flow->seed) % sizeof flow->data;
    return size < flow->left ? size : flow->left;
}

bide_coroutine(writer_body)
{
    bide_begin(writer_body, struct flow * self);
    while (self->left != 0) {
        self->asked = next_size(self);
        fill(self->data, self->asked, self->left);
        bide_try(bide_stream_write(&self->operation, self->side->stream, self->data, self->asked));
        self->left -= self->asked;
    }
    bide_try(bide_stream_shutdown_output(&self->operation, self->side->stream));
    bide_end();
}

/* Draws the same sizes as its writer, so it knows the expected bytes. */
bide_coroutine(reader_body)
{
    bide_begin(reader_body, struct flow * self);
    while (self->left != 0) {
        self->asked = next_size(self);
        fill(self->expected, self->asked, self->left);
        for (self->count = 0; self->count != self->asked;) {
            bide_try(bide_stream_read(&self->operation, self->side->stream,
                                      self->data + self->count, self->asked - self->count));
            size_t count = bide_stream_count(&self->operation, self->side->stream);
            if (count == 0)
                bide_return(-EIO);
            self->count += count;
        }
        if (memcmp(self->data, self->expected, self->asked) != 0)
            bide_return(-EILSEQ);
        self->left -= self->asked;
    }
    bide_try(bide_stream_read(&self->operation, self->side->stream, self->data, 1));
    if (bide_stream_count(&self->operation, self->side->stream) != 0)
        bide_return(-EIO);
    bide_end();
}

static void flow_both_ways(void)
{
    static struct flow flows[4];
    size_t size = rounds_of(16) * ((size_t)1 << 20);
    for (int i = 0; i < 4; i++) {
        struct flow *flow = &flows[i];
        flow->side = i % 2 == 0 ? &p.client : &p.server;
        flow->seed = i == 0 || i == 3 ? 1 : 2; /* 0 writes to 3, and 1 to 2 */
        flow->left = size;
        begin(p.world, &flow->runner,
              bide_task_init(&flow->task, i < 2 ? &writer_body : &reader_body));
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(end(p.world, &flows[i].runner), 0);
}

static void both_directions_flow_at_once(void **state)
{
    for_each_below(state, flow_both_ways);
}

/* Each runs on threads that change from turn to turn. */
static void readers_and_writers_may_be_on_different_threads(void **state)
{
    static struct flow flows[4];
    static bide_spawned spawned[4];
    world *world = world_of(state);
    bide_tls_config *client = usual_client();
    bide_tls_config *server = usual_server();
    bide_thread_pool *pool;
    size_t size = rounds_of(4) * ((size_t)1 << 20);
    pair_open(&p, world, PIPES);
    pair_greet_well(&p, client, server, "server.test");
    assert_int_equal(bide_thread_pool_create(&pool, 4), 0);
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    for (int i = 0; i < 4; i++) {
        flows[i].side = i % 2 == 0 ? &p.client : &p.server;
        flows[i].seed = i == 0 || i == 3 ? 1 : 2;
        flows[i].left = size;
        bide_spawn(&spawned[i], &context,
                   bide_task_init(&flows[i].task, i < 2 ? &writer_body : &reader_body));
    }
    for (int i = 0; i < 4; i++) {
        bide_event_wait_blocking(&spawned[i].ended, BIDE_FOREVER);
        assert_int_equal(bide_task_error(&flows[i].task), 0);
    }
    bide_thread_pool_destroy(pool);
    bide_tls_config_release(client);
    bide_tls_config_release(server);
    pair_close(&p);
}

/* ---- Readers and writers ---- */

static void read_lines(void)
{
    static char in[100], out[5000];
    bide_reader reader;
    bide_writer writer;
    bide_reader_operation read;
    bide_writer_operation write;
    bide_reader_init(&reader, p.server.stream, in, sizeof in);
    bide_writer_init(&writer, p.client.stream, out, sizeof out);
    for (int i = 0; i < 1000; i++) {
        char line[40];
        int size = snprintf(line, sizeof line, "line %d\r\n", i);
        assert_int_equal(
            world_wait(p.world, bide_writer_write(&write, &writer, line, (size_t)size)), 0);
        if (i % 20 != 19)
            continue;
        begin(p.world, &p.client.writing, bide_writer_flush(&write, &writer));
        for (int j = i - 19; j <= i; j++) {
            size = snprintf(line, sizeof line, "line %d", j);
            assert_int_equal(world_wait(p.world, bide_reader_read_line(&read, &reader)), 0);
            assert_int_equal(read.count, size);
            assert_memory_equal(read.data, line, size);
        }
        assert_int_equal(end(p.world, &p.client.writing), 0);
    }
    begin(p.world, &p.client.writing, bide_writer_finish(&write, &writer));
    assert_int_equal(world_wait(p.world, bide_reader_read_line(&read, &reader)), -EPIPE);
    assert_int_equal(end(p.world, &p.client.writing), 0);
}

static void it_is_a_stream_for_readers_and_writers(void **state)
{
    for_each_below(state, read_lines);
}

static void write_pieces(void)
{
    enum { PIECES = 9 };
    static char data[60000], got[60000];
    static const size_t sizes[PIECES] = {0, 1, 10, 4095, 5000, 0, 3, 40000, 1};
    struct iovec vectors[PIECES];
    size_t size = 0;
    fill(data, sizeof data, 3);
    for (int i = 0; i < PIECES; i++) {
        vectors[i] = (struct iovec){data + size, sizes[i]};
        size += sizes[i];
    }
    begin(p.world, &p.client.writing,
          p.client.stream.table->write_vectors(p.client.stream, &p.client.write, vectors, PIECES));
    for (size_t count = 0; count != size;) {
        assert_int_equal(world_wait(p.world, bide_stream_read(&p.server.read, p.server.stream,
                                                              got + count, size - count)),
                         0);
        count += bide_stream_count(&p.server.read, p.server.stream);
    }
    assert_int_equal(end(p.world, &p.client.writing), 0);
    assert_int_equal(bide_stream_count(&p.client.write, p.client.stream), size);
    assert_memory_equal(got, data, size);
}

static void pieces_come_in_order(void **state)
{
    for_each_below(state, write_pieces);
}

/* ---- Ends ---- */

static void end_one_half(void)
{
    static char data[100000];
    char byte = 0;
    pair_end(&p, &p.client, &p.server);
    pair_send(&p, &p.server, &p.client, data, sizeof data);
    assert_int_equal(
        world_wait(p.world, bide_stream_write(&p.client.write, p.client.stream, &byte, 1)), -EPIPE);
    assert_int_equal(bide_stream_count(&p.client.write, p.client.stream), 0);
    for (int i = 0; i < 2; i++) { /* the end is permanent */
        assert_int_equal(read_byte(&p.server), 0);
        assert_int_equal(bide_stream_count(&p.server.read, p.server.stream), 0);
    }
    pair_end(&p, &p.server, &p.client);
    assert_int_equal(world_wait(p.world, bide_stream_shutdown_output(&p.client.write, p.client.stream)),
                     0);
}

static void one_half_ends_while_the_other_continues(void **state)
{
    for_each_below(state, end_one_half);
}

static void be_cut_off(void)
{
    bide_stream_operation operation;
    pair_send(&p, &p.client, &p.server, "some", 4);
    assert_int_equal(world_wait(p.world, bide_stream_shutdown_output(&operation, p.client.below)), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(read_byte(&p.server), -ECONNABORTED);
        assert_int_equal(bide_stream_count(&p.server.read, p.server.stream), 0);
    }
    assert_non_null(strstr(bide_tls_reason(&p.server.tls), "without close_notify"));
    pair_send(&p, &p.server, &p.client, "the other half", 14);
}

static void an_end_without_close_notify_is_distinguished(void **state)
{
    for_each_below(state, be_cut_off);
}

static void close_while_reading(void)
{
    char byte;
    begin(p.world, &p.client.reading, bide_stream_read(&p.client.read, p.client.stream, &byte, 1));
    turn(p.world);
    call_inside(p.world, close_side, &p.client);
    assert_int_equal(end(p.world, &p.client.reading), -EPIPE);
    assert_null(p.client.tls.ssl);
    assert_int_equal(bide_tls_close(&p.client.tls), -EBADF);
    assert_int_equal(read_byte(&p.client), -EPIPE);
    assert_int_equal(read_byte(&p.server), -ECONNABORTED);
}

static void a_close_ends_waits(void **state)
{
    for_each_below(state, close_while_reading);
}

static void tamper(void)
{
    static const char record[] = "\x17\x03\x03\x00\x20................................";
    bide_stream_operation operation;
    assert_int_equal(world_wait(p.world, bide_stream_write(&operation, p.client.below, record, 37)),
                     0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(read_byte(&p.server), -EPROTO);
        assert_int_equal(
            world_wait(p.world, bide_stream_write(&p.server.write, p.server.stream, "x", 1)),
            -EPROTO);
        assert_int_equal(read_byte(&p.client), -EREMOTEIO);
        assert_non_null(strstr(bide_tls_reason(&p.server.tls), "bad record mac"));
        assert_non_null(strstr(bide_tls_reason(&p.client.tls), "bad record mac"));
    }
}

static void tampered_data_is_rejected_with_an_alert(void **state)
{
    for_each_below(state, tamper);
}

static void plain_text_is_rejected(void **state)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: server.test\r\n\r\n";
    world *world = world_of(state);
    for (below kind = 0; kind < BELOWS; kind++) {
        bide_stream_operation operation;
        bide_tls_config *server = usual_server();
        pair_open(&p, world, kind);
        assert_int_equal(world_wait(world, bide_stream_write(&operation, p.client.below, request,
                                                             sizeof request - 1)),
                         0);
        assert_int_equal(world_wait(world, bide_tls_accept(&p.server.handshake, &p.server.tls,
                                                           server, p.server.below)),
                         -EPROTO);
        assert_string_equal(bide_tls_reason(&p.server.tls), "http request");
        bide_tls_config_release(server);
        pair_close(&p);
    }
}

/* ---- Key updates ---- */

/* A side that only reads is asked to update its keys, and answers when it writes. */
static void update_keys(void)
{
    if (strcmp(bide_tls_version(&p.client.tls), "TLSv1.3") != 0)
        return;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(SSL_key_update(p.client.tls.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        pair_send(&p, &p.client, &p.server, "with new keys", 13);
        if (i % 3 == 0)
            pair_send(&p, &p.server, &p.client, "me too", 6);
    }
    pair_end(&p, &p.server, &p.client);
}

static void keys_are_renewed(void **state)
{
    for_each_below(state, update_keys);
}

static void update_keys_for_ever(void)
{
    int status = 0;
    if (strcmp(bide_tls_version(&p.client.tls), "TLSv1.3") != 0)
        return;
    pair_send(&p, &p.server, &p.client, "x", 1);
    for (int i = 0; i < 10000 && status == 0; i++) {
        assert_int_equal(SSL_key_update(p.client.tls.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        assert_int_equal(
            world_wait(p.world, bide_stream_write(&p.client.write, p.client.stream, "x", 1)), 0);
        status = read_byte(&p.server);
        assert_in_range(p.server.tls.pending, 0, TLS_UNASKED + 1000);
    }
    assert_int_equal(status, -EPROTO);
}

static void endless_key_update_requests_are_bounded(void **state)
{
    for_each_below(state, update_keys_for_ever);
}

/* ---- Options ---- */

static void close_socket(void *of)
{
    bide_close(of);
}

/* A client's last message of the handshake does not delay its first data, and neither does its socket. */
static void a_client_sends_small_pieces_at_once(void **state)
{
    bide_tls_config *client = usual_client();
    bide_descriptor listener, socket, accepted;
    bide_io_operation operation;
    bide_address address;
    int value = -1;
    p.world = world_of(state);
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 0), 0);
    assert_int_equal(world_wait(p.world, bide_listen(&operation, &listener, &address, 1)), 0);
    assert_int_equal(bide_local_address(&listener, &address), 0);
    assert_int_equal(world_wait(p.world, bide_connect(&operation, &socket, &address)), 0);
    assert_int_equal(world_wait(p.world, bide_accept(&operation, &listener, &accepted, NULL)), 0);
    call_inside(p.world, close_socket, &accepted);
    assert_int_equal(bide_socket_option(&socket, BIDE_OPTION_NO_DELAY, &value), 0);
    assert_int_equal(value, 0);
    bide_tls_init_closed(&p.client.tls);
    assert_true(world_wait(p.world, bide_tls_connect(&p.client.handshake, &p.client.tls, client,
                                                     bide_socket_stream(&socket), "server.test")) <
                0);
    assert_int_equal(bide_socket_option(&socket, BIDE_OPTION_NO_DELAY, &value), 0);
    assert_true(value != 0);
    assert_int_equal(bide_set_no_delay(&socket, false), 0);
    bide_stream_set_no_delay(bide_tls_stream(&p.client.tls));
    assert_int_equal(bide_socket_option(&socket, BIDE_OPTION_NO_DELAY, &value), 0);
    assert_true(value != 0);
    call_inside(p.world, close_side, &p.client);
    call_inside(p.world, close_socket, &listener);
    bide_tls_config_release(client);
}

/* ---- Configs ---- */

static void invalid_configs_are_rejected(void **state)
{
    static const char *const empty[] = {"", NULL};
    bide_tls_certificate other_key = proof_of(&server_proof), good = proof_of(&server_proof);
    bide_tls_certificate no_file = {.chain_file = "/nothing/is/here"},
                         no_pem = {.chain = "x", .chain_size = 1};
    other_key.key = client_proof.secret;
    other_key.key_size = strlen(client_proof.secret);
    const struct {
        bide_tls_options options;
        bool is_server;
        int status;
        const char *reason;
    } cases[] = {
        {{0}, true, -EINVAL, "without a certificate"},
        {{.certificates = &other_key, .certificate_count = 1},
         true,
         -EINVAL,
         "not match the certificate"},
        {{.certificates = &no_file, .certificate_count = 1}, true, -ENOENT, "opened"},
        {{.certificates = &no_pem, .certificate_count = 1}, true, -EINVAL, "no certificate in PEM"},
        {{.certificates = &good, .certificate_count = 1, .protocols = empty},
         true,
         -EINVAL,
         "protocol"},
        {{.certificates = &good, .certificate_count = 1, .clients = BIDE_TLS_CLIENTS_REQUIRED},
         true,
         -EINVAL,
         "no authority"},
        {{.authorities_file = "/nothing/is/here"}, false, -ENOENT, "opened"},
        {{.authorities = "x", .authorities_size = 1}, false, -EINVAL, "authority"},
        {{.clients = BIDE_TLS_CLIENTS_REQUIRED}, false, -EINVAL, "server"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bide_tls_config *config = NULL;
        const char *reason = "";
        int status = cases[i].is_server
                         ? bide_tls_server_create(&config, &cases[i].options, &reason)
                         : bide_tls_client_create(&config, &cases[i].options, &reason);
        assert_int_equal(status, cases[i].status);
        assert_non_null(strstr(reason, cases[i].reason));
        assert_null(config);
        assert_int_equal(ERR_peek_error(), 0);
    }
}

/* ---- Input that has come and was not read ---- */

static size_t read_some(side *from, char *got, size_t size)
{
    assert_int_equal(world_wait(p.world, bide_stream_read(&from->read, from->stream, got, size)),
                     0);
    return bide_stream_count(&from->read, from->stream);
}

static void write_all(side *to, const char *text)
{
    assert_int_equal(
        world_wait(p.world, bide_stream_write(&to->write, to->stream, text, strlen(text))), 0);
}

static void has_input(void)
{
    char got[8] = "";
    pair_send(&p, &p.client, &p.server, "hello", 5);
    pair_send(&p, &p.server, &p.client, "good day", 8); /* behind a ticket */
    assert_false(bide_tls_has_input(&p.client.tls));
    write_all(&p.server, "one");
    write_all(&p.server, "two");
    assert_false(bide_tls_has_input(&p.client.tls)); /* it has not come from below */
    assert_int_equal(read_some(&p.client, got, 1), 1);
    assert_true(bide_tls_has_input(&p.client.tls)); /* of the same record */
    assert_int_equal(read_some(&p.client, got + 1, 2), 2);
    assert_true(bide_tls_has_input(&p.client.tls)); /* of the next record */
    assert_int_equal(read_some(&p.client, got + 3, 3), 3);
    assert_string_equal(got, "onetwo");
    assert_false(bide_tls_has_input(&p.client.tls));
    assert_false(bide_tls_has_input(&p.server.tls));

    write_all(&p.server, "end");
    assert_int_equal(
        world_wait(p.world, bide_stream_shutdown_output(&p.server.write, p.server.stream)), 0);
    assert_int_equal(read_some(&p.client, got, 3), 3);
    assert_true(bide_tls_has_input(&p.client.tls)); /* the end */
    assert_int_equal(read_some(&p.client, got, 3), 0);
    assert_true(bide_tls_has_input(&p.client.tls));
    call_inside(p.world, close_side, &p.client);
    assert_false(bide_tls_has_input(&p.client.tls));
}

static void input_is_known_before_it_is_read(void **state)
{
    for_each_below(state, has_input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(written_data_is_read),
        world_test(input_is_known_before_it_is_read),
        world_test(two_senders_continue_when_one_reads),
        world_test(both_directions_flow_at_once),
        world_test(readers_and_writers_may_be_on_different_threads),
        world_test(it_is_a_stream_for_readers_and_writers),
        world_test(pieces_come_in_order),
        world_test(one_half_ends_while_the_other_continues),
        world_test(an_end_without_close_notify_is_distinguished),
        world_test(a_close_ends_waits),
        world_test(tampered_data_is_rejected_with_an_alert),
        world_test(plain_text_is_rejected),
        world_test(keys_are_renewed),
        world_test(endless_key_update_requests_are_bounded),
        world_test(a_client_sends_small_pieces_at_once),
        world_test(invalid_configs_are_rejected),
    };
    return cmocka_run_group_tests(tests, make_everyone, free_everyone);
}
