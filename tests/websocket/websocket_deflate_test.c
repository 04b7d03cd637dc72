/*
 * permessage-deflate: the examples of RFC 7692 in pieces of every size, negotiation, malformed and expanding messages,
 * messages in both directions between a server and a client of HTTP, cancelled sends, and missing memory.
 */
#include "../http/http_peer.h"
#include "bide/http_websocket.h"
#include "bide/websocket_deflate.h"

#include "../../src/simulation/sim_loop.h"

enum { BUFFER = 512, PIPE = 4096, LARGE = 200000 };

static bide_websocket_value value(const char *text)
{
    return (bide_websocket_value){text, strlen(text)};
}

/* ---- Negotiation ---- */

static void a_server_accepts_the_first_offer_that_it_can(void **state)
{
    static const struct {
        bide_websocket_deflate_options options;
        const char *offers, *answer; /* NULL: none */
    } rows[] = {
        {{0}, "", NULL},
        {{0}, "permessage-bzip2", NULL},
        {{0}, "Permessage-deflate", NULL},
        {{0}, "permessage-deflate", "permessage-deflate"},
        {{0}, "x-webkit-deflate-frame, permessage-deflate", "permessage-deflate"},
        {{0}, " permessage-deflate ; client_max_window_bits ", "permessage-deflate"},
        {{0}, "permessage-deflate; server_no_context_takeover", "permessage-deflate; server_no_context_takeover"},
        {{0}, "permessage-deflate; client_no_context_takeover", "permessage-deflate; client_no_context_takeover"},
        {{0}, "permessage-deflate; server_max_window_bits=10", "permessage-deflate; server_max_window_bits=10"},
        {{0}, "permessage-deflate; server_max_window_bits=\"12\"", "permessage-deflate; server_max_window_bits=12"},
        {{0}, "permessage-deflate; server_max_window_bits=15", "permessage-deflate"},
        {{0}, "permessage-deflate; server_max_window_bits=8", NULL}, /* zlib cannot */
        {{0}, "permessage-deflate; server_max_window_bits=8, permessage-deflate", "permessage-deflate"},
        {{0}, "permessage-deflate; server_max_window_bits", NULL},
        {{0}, "permessage-deflate; server_max_window_bits=", NULL},
        {{0}, "permessage-deflate; server_max_window_bits=16", NULL},
        {{0}, "permessage-deflate; server_max_window_bits=7", NULL},
        {{0}, "permessage-deflate; server_max_window_bits=09", NULL},
        {{0}, "permessage-deflate; server_max_window_bits=10; server_max_window_bits=10", NULL},
        {{0}, "permessage-deflate; client_max_window_bits=16", NULL},
        {{0}, "permessage-deflate; client_max_window_bits; client_max_window_bits", NULL},
        {{0}, "permessage-deflate; client_no_context_takeover=1", NULL},
        {{0}, "permessage-deflate; unknown", NULL},
        {{0}, "permessage-deflate; unknown, permessage-deflate; client_max_window_bits=8", "permessage-deflate"},
        {{.max_peer_window_bits = 10}, "permessage-deflate; client_max_window_bits", "permessage-deflate; client_max_window_bits=10"},
        {{.max_peer_window_bits = 10}, "permessage-deflate; client_max_window_bits=9", "permessage-deflate; client_max_window_bits=9"},
        {{.max_peer_window_bits = 10}, "permessage-deflate", "permessage-deflate"}, /* it was not offered */
        {{.window_bits = 11, .no_context = true, .no_peer_context = true},
         "permessage-deflate; server_max_window_bits=13; client_max_window_bits",
         "permessage-deflate; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=11"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bide_websocket_deflate deflate;
        char answer[BIDE_WEBSOCKET_EXTENSION] = "";
        assert_int_equal(bide_websocket_deflate_init(&deflate, &rows[i].options), 0);
        int accepted = bide_websocket_deflate_accept(&deflate, value(rows[i].offers), answer);
        if (accepted != (rows[i].answer != NULL) || deflate.is_agreed != (accepted == 1) ||
            (accepted == 1 && strcmp(answer, rows[i].answer) != 0))
            fail_msg("%s: %d, %s", rows[i].offers, accepted, answer);
    }
}

static void a_client_follows_the_answer_or_refuses_it(void **state)
{
    static const struct {
        bide_websocket_deflate_options options;
        const char *offer, *answer;
        int status; /* 1: agreed */
    } rows[] = {
        {{0}, "permessage-deflate", "", 0},
        {{0}, "permessage-deflate", "permessage-deflate", 1},
        {{0}, "permessage-deflate", "permessage-deflate; server_no_context_takeover; server_max_window_bits=8", 1},
        {{0}, "permessage-deflate", "permessage-deflate; client_no_context_takeover", 1},
        {{0}, "permessage-deflate", "permessage-deflate; client_max_window_bits=10", -EPROTO}, /* it was not offered */
        {{0}, "permessage-deflate", "permessage-deflate; client_max_window_bits", -EPROTO},
        {{0}, "permessage-deflate", "permessage-deflate, permessage-deflate", -EPROTO},
        {{0}, "permessage-deflate", "permessage-deflate; x", -EPROTO},
        {{0}, "permessage-deflate", "x", -EPROTO},
        {{.window_bits = 12}, "permessage-deflate; client_max_window_bits=12", "permessage-deflate; client_max_window_bits=10", 1},
        {{.window_bits = 12}, "permessage-deflate; client_max_window_bits=12", "permessage-deflate; client_max_window_bits=8", -EPROTO},
        {{.max_peer_window_bits = 9}, "permessage-deflate; server_max_window_bits=9", "permessage-deflate", -EPROTO},
        {{.max_peer_window_bits = 9}, "permessage-deflate; server_max_window_bits=9", "permessage-deflate; server_max_window_bits=10", -EPROTO},
        {{.max_peer_window_bits = 9}, "permessage-deflate; server_max_window_bits=9", "permessage-deflate; server_max_window_bits=9", 1},
        {{.no_peer_context = true}, "permessage-deflate; server_no_context_takeover", "permessage-deflate", -EPROTO},
        {{.no_peer_context = true, .no_context = true}, "permessage-deflate; client_no_context_takeover; server_no_context_takeover",
         "permessage-deflate; server_no_context_takeover", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bide_websocket_deflate deflate;
        char offer[BIDE_WEBSOCKET_EXTENSION];
        assert_int_equal(bide_websocket_deflate_init(&deflate, &rows[i].options), 0);
        bide_websocket_deflate_offer(&deflate, offer);
        assert_string_equal(offer, rows[i].offer);
        int status = bide_websocket_deflate_check(&deflate, value(rows[i].answer));
        if (status != (rows[i].status < 0 ? rows[i].status : 0) || deflate.is_agreed != (rows[i].status == 1))
            fail_msg("%s: %d", rows[i].answer, status);
    }
}

static void options_out_of_range_are_refused(void **state)
{
    static const bide_websocket_deflate_options rows[] = {
        {.level = 10}, {.level = -1}, {.window_bits = 8}, {.window_bits = 16}, {.max_peer_window_bits = 7}, {.max_peer_window_bits = 16}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bide_websocket_deflate deflate;
        assert_int_equal(bide_websocket_deflate_init(&deflate, &rows[i]), -EINVAL);
    }
}

/* ---- Frames of a peer that is written here ---- */

static struct {
    bide_sim_loop loop;
    bide_sim_record_ record;
    bide_memory_pipe to, from;
    bide_memory_end end, peer;
    char to_memory[PIPE], from_memory[PIPE];
    bide_websocket websocket;
    bide_websocket_deflate deflate;
    char in[BUFFER], out[BUFFER];

    const char *input;
    size_t size, piece;
    char message[LARGE];
    size_t room;

    /* what was received: messages with a bar behind each, and the last status */
    char log[1024];
    int status;
    char answer[64]; /* of the websocket's own */
    size_t answer_size;

    struct task {
        bide_task task;
        bide_branch branch;
        bide_stream_operation operation;
        bide_websocket_deflate_recv_operation receive;
        size_t at;
        int status;
    } feeding, receiving, main;
    bide_scope scope;
} raw;

bide_coroutine(raw_feed)
{
    bide_begin(raw_feed, struct task * self);
    for (self->at = 0; self->at < raw.size;) {
        size_t size = raw.piece != 0 && raw.piece < raw.size - self->at ? raw.piece : raw.size - self->at;
        bide_await_status(self->status, bide_stream_write(&self->operation, bide_memory_stream(&raw.peer),
                                                          raw.input + self->at, size));
        if (self->status < 0)
            break;
        self->at += bide_stream_count(&self->operation, bide_memory_stream(&raw.peer));
    }
    bide_memory_pipe_destroy(&raw.to);
    bide_end();
}

bide_coroutine(raw_receive)
{
    bide_begin(raw_receive, struct task * self);
    for (;;) {
        bide_await_status(raw.status, bide_websocket_deflate_recv(&self->receive, &raw.deflate, raw.message, raw.room));
        if (raw.status < 0)
            break;
        snprintf(raw.log + strlen(raw.log), sizeof raw.log - strlen(raw.log), "%.*s|",
                 self->receive.count < 100 ? (int)self->receive.count : 100, raw.message);
    }
    bide_memory_pipe_destroy(&raw.from);
    bide_end();
}

bide_coroutine(raw_main)
{
    bide_begin(raw_main, struct task * self);
    bide_scope_init(&raw.scope, bide_this_frame());
    bide_scope_spawn(&raw.scope, &raw.feeding.branch, bide_task_init(&raw.feeding.task, &raw_feed));
    bide_scope_spawn(&raw.scope, &raw.receiving.branch, bide_task_init(&raw.receiving.task, &raw_receive));
    bide_try(bide_scope_join(&raw.scope));
    bide_await_status(self->status, bide_stream_read(&self->operation, bide_memory_stream(&raw.peer), raw.answer,
                                                     sizeof raw.answer));
    raw.answer_size = bide_stream_count(&self->operation, bide_memory_stream(&raw.peer));
    bide_finally();
    bide_scope_destroy(&raw.scope);
    bide_end();
}

/* A client receives these frames of a server. `answer` is what was agreed on; NULL: nothing. */
static void receive_frames(const char *input, size_t size, const char *answer)
{
    static const uint16_t plain = 0;
    raw.input = input;
    raw.size = size;
    memset(raw.log, 0, sizeof raw.log);
    raw.answer_size = 0;
    bide_sim_loop_init(&raw.loop, 0);
    raw.record = (bide_sim_record_){.given = &plain};
    raw.loop.record = &raw.record;
    bide_memory_pipe_init(&raw.to, raw.to_memory, PIPE);
    bide_memory_pipe_init(&raw.from, raw.from_memory, PIPE);
    raw.end = (bide_memory_end){&raw.to, &raw.from};
    raw.peer = (bide_memory_end){&raw.from, &raw.to};
    assert_int_equal(bide_websocket_init(&raw.websocket, bide_memory_stream(&raw.end),
                                         &(bide_websocket_options){.role = BIDE_WEBSOCKET_CLIENT, .read_buffer = raw.in,
                                                                   .read_buffer_size = BUFFER, .write_buffer = raw.out,
                                                                   .write_buffer_size = BUFFER}),
                     0);
    assert_int_equal(bide_websocket_deflate_init(&raw.deflate, NULL), 0);
    if (answer != NULL)
        assert_int_equal(bide_websocket_deflate_check(&raw.deflate, value(answer)), 0);
    assert_int_equal(bide_websocket_deflate_start(&raw.deflate, &raw.websocket), 0);
    assert_int_equal(bide_sim_loop_wait(&raw.loop, bide_task_init(&raw.main.task, &raw_main)), 0);
    bide_websocket_deflate_destroy(&raw.deflate);
}

/* The code of the close that the client has sent; 0: none. */
static unsigned sent_code(void)
{
    const unsigned char *frame = (const unsigned char *)raw.answer;
    if (raw.answer_size < 8 || frame[0] != 0x88 || (frame[1] & 0x7f) < 2)
        return 0;
    return (unsigned)(frame[6] ^ frame[2]) << 8 | (unsigned)(frame[7] ^ frame[3]);
}

#define AGREED "permessage-deflate"
#define HELLO  "\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00"
#define AGAIN  "\xc1\x05\xf2\x00\x11\x00\x00" /* "Hello" of the context */
#define CLOSE  "\x88\x02\x03\xe8"

static void the_examples_of_the_rfc_are_received_in_pieces(void **state)
{
    static const struct {
        const char *input;
        size_t size;
        const char *log;
    } rows[] = {
#define ROW(input, log) {input CLOSE, sizeof(input CLOSE) - 1, log}
        ROW(HELLO, "Hello|"),
        ROW(HELLO AGAIN AGAIN, "Hello|Hello|Hello|"),
        ROW(HELLO "\x81\x03" "abc" AGAIN, "Hello|abc|Hello|"),                       /* another is not compressed */
        ROW("\x41\x03\xf2\x48\xcd\x80\x04\xc9\xc9\x07\x00" AGAIN, "Hello|Hello|"),   /* in fragments */
        ROW("\x41\x03\xf2\x48\xcd\x89\x01x\x00\x00\x80\x04\xc9\xc9\x07\x00", "Hello|"), /* a ping between, and an empty one */
        ROW("\x41\x07\xf2\x48\xcd\xc9\xc9\x07\x00\x80\x00", "Hello|"),               /* an empty last fragment */
        ROW("\xc1\x0b\x00\x05\x00\xfa\xff" "Hello\x00", "Hello|"),                   /* a stored block */
        ROW("\xc1\x08\xf3\x48\xcd\xc9\xc9\x07\x00\x00", "Hello|"),                   /* a last block */
        ROW("\xc1\x08\xf3\x48\xcd\xc9\xc9\x07\x00\x00" AGAIN, "Hello|Hello|"),       /* after which the context goes on */
        ROW("\xc1\x0d\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00", "Hello|"), /* two blocks */
        ROW("\xc1\x01\x00", "|"),                                                    /* nothing */
    };
    (void)state;
    raw.room = 100;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (raw.piece = 0; raw.piece < 16; raw.piece++) {
            receive_frames(rows[i].input, rows[i].size, AGREED);
            if (strcmp(raw.log, rows[i].log) != 0 || raw.status != -EPIPE)
                fail_msg("row %zu, piece %zu: %s, %d", i, raw.piece, raw.log, raw.status);
        }
    /* without a context each message stands alone */
    receive_frames(HELLO HELLO CLOSE, sizeof(HELLO HELLO CLOSE) - 1, "permessage-deflate; server_no_context_takeover");
    assert_string_equal(raw.log, "Hello|Hello|");
    receive_frames(HELLO AGAIN, sizeof(HELLO AGAIN) - 1, "permessage-deflate; server_no_context_takeover");
    assert_string_equal(raw.log, "Hello|");
    assert_int_equal(raw.status, -EPROTO);
}

static void malformed_messages_end_it(void **state)
{
    static const struct {
        const char *input;
        size_t size;
        const char *answer;
        int status;
        unsigned code;
    } rows[] = {
#define BAD(input, answer, status, code) {input, sizeof input - 1, answer, status, code}
        BAD(HELLO, NULL, -EPROTO, 1002),                          /* nothing was agreed on */
        BAD("\x41\x01\xf2\xc0\x01\xf2", AGREED, -EPROTO, 1002),   /* the bit in a continuation */
        BAD("\xc9\x01x", AGREED, -EPROTO, 1002),                  /* and in a ping */
        BAD("\xa1\x01x", AGREED, -EPROTO, 1002),                  /* another bit */
        BAD("\xe1\x01x", AGREED, -EPROTO, 1002),
        BAD("\xc1\x01\x07", AGREED, -EPROTO, 1002),               /* an invalid block */
        BAD("\xc1\x05\xf2\x00\x11\x00\x00", AGREED, -EPROTO, 1002), /* it refers to nothing */
        BAD("\xc1\x07\x00\x01\x00\xfe\xff\xff\x00", AGREED, -EILSEQ, 1007), /* not UTF-8 */
        BAD("\xc1\x07\x00\x01\x00\xfe\xff\xc3\x00", AGREED, -EILSEQ, 1007), /* it ends in a character */
    };
    (void)state;
    raw.room = 100;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (raw.piece = 0; raw.piece < 4; raw.piece++) {
            receive_frames(rows[i].input, rows[i].size, rows[i].answer);
            if (raw.status != rows[i].status || sent_code() != rows[i].code || *raw.log != '\0')
                fail_msg("row %zu: %d, %u, %s", i, raw.status, sent_code(), raw.log);
        }
    raw.piece = 0;
    receive_frames("\xc2\x07\x00\x01\x00\xfe\xff\xff\x00" CLOSE, 13, AGREED); /* it may be, in binary */
    assert_int_equal(raw.status, -EPIPE);
}

static void a_message_expands_to_its_bound_and_no_further(void **state)
{
    /* 60,000 zeros */
    static const char bomb[] =
        "\xc2\x4b\xec\xc1\x31\x01\x00\x00\x00\xc2\xa0\xf5\x4f\x6d\x0d\x0f\xa0\x00\x00\x00\x00\x00\x00\x00"
        "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
        "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
        "\x00\x00\x00\xbe\x0c" CLOSE;
    (void)state;
    raw.piece = 0;
    raw.room = LARGE;
    receive_frames(bomb, sizeof bomb - 1, AGREED);
    assert_int_equal(raw.status, -EPIPE);
    size_t size = 60000;
    assert_int_equal(raw.deflate.kept, size);
    for (raw.room = size - 2; raw.room <= size + 1; raw.room++) {
        receive_frames(bomb, sizeof bomb - 1, AGREED);
        assert_int_equal(raw.status, raw.room < size ? -EMSGSIZE : -EPIPE);
        assert_int_equal(sent_code(), raw.room < size ? 1009 : 1000);
    }
}

/* ---- A server and a client ---- */

static struct {
    bide_sim_loop loop;
    bide_sim_record_ record;
    bide_http_server server;
    bide_http_connection connection;
    bide_memory_pipe to_server, from_server;
    bide_memory_end server_end, client_end;
    char to_memory[PIPE], from_memory[PIPE];
    char *memory;
    char client_memory[BIDE_HTTP_CLIENT_MEMORY];
    bide_http_client client;
    bide_websocket websocket;
    bide_websocket_deflate deflate;
    bide_websocket_deflate_options client_options, server_options;
    bool server_deflates, client_deflates;

    /* of the server's */
    bool was_agreed;
    uint64_t server_sent, server_received;
    int session_status;

    char sent[LARGE], received[LARGE];
    unsigned messages;
    bool cancels; /* a send that was compressed, and waits for its turn */
    bide_websocket_send_operation other;
    char other_text[LARGE];
    uint64_t random;
    bide_scope scope;
    struct side {
        bide_task task;
        bide_branch branch;
        bide_http_websocket_operation opening;
        bide_websocket_deflate_send_operation send;
        bide_websocket_deflate_recv_operation receive;
        bide_websocket_close_operation closing;
        bide_with_deadline_operation limited;
        bide_sleep sleep;
        unsigned i;
        size_t size;
        int status;
    } main, serving, talking, sending;
} two;

struct session {
    bide_http_exchange exchange;
    bide_http_websocket_operation upgrade;
    bide_websocket websocket;
    bide_websocket_deflate deflate;
    bide_websocket_deflate_recv_operation receive;
    bide_websocket_deflate_send_operation send;
    bide_websocket_close_operation closing;
    int status;
    char text[LARGE];
};

/* Sends each message back. */
bide_coroutine(session_body)
{
    bide_begin(session_body, struct session * self);
    assert_int_equal(bide_websocket_deflate_init(&self->deflate, &two.server_options), 0);
    bide_try(bide_http_accept_websocket(&self->upgrade, &self->exchange, &self->websocket,
                                        &(bide_websocket_options){.deflate = two.server_deflates ? &self->deflate : NULL}, NULL));
    if (!two.server_deflates)
        assert_int_equal(bide_websocket_deflate_start(&self->deflate, &self->websocket), 0);
    for (;;) {
        bide_await_status(self->status, bide_websocket_deflate_recv(&self->receive, &self->deflate, self->text, sizeof self->text));
        if (self->status < 0)
            break;
        bide_await_status(self->status, bide_websocket_deflate_send(&self->send, &self->deflate, self->receive.kind,
                                                                    self->text, self->receive.count));
        if (self->status < 0)
            break;
    }
    two.session_status = self->status;
    bide_await_status(self->status, bide_websocket_close(&self->closing, &self->websocket, 1000, ""));
    bide_return(0);
    bide_finally();
    two.was_agreed = self->deflate.is_agreed;
    two.server_sent = self->deflate.sent;
    two.server_received = self->deflate.received;
    bide_websocket_deflate_destroy(&self->deflate);
    bide_end();
}

bide_coroutine(two_serve)
{
    bide_begin(two_serve, struct side * self);
    bide_await_status(self->status, bide_http_serve(&two.connection, &two.server, bide_memory_stream(&two.server_end), two.memory));
    bide_memory_pipe_destroy(&two.from_server);
    bide_memory_pipe_reject(&two.to_server);
    bide_end();
}

/* A text or bytes, of which some repeat what was sent before. */
static void fill(char *data, size_t size, unsigned kind)
{
    for (size_t i = 0; i < size; i++)
        data[i] = kind == 0 ? (char)('a' + i % 7) : kind == 1 ? "the same words "[testing_random(&two.random) % 15]
                                                               : (char)(testing_random(&two.random) % 128);
}

/* Sends a large message that is not compressed. */
bide_coroutine(two_send_other)
{
    bide_begin(two_send_other, struct side * self);
    memset(two.other_text, 'o', sizeof two.other_text);
    bide_await_status(self->status, bide_websocket_send(&two.other, &two.websocket, BIDE_WEBSOCKET_TEXT, two.other_text,
                                                        sizeof two.other_text));
    assert_int_equal(self->status, 0);
    bide_end();
}

bide_coroutine(two_talk)
{
    bide_begin(two_talk, struct side * self);
    bide_await_status(self->status,
                      bide_http_open_websocket(&self->opening, &two.client, &two.websocket,
                                               &(bide_websocket_options){.deflate = two.client_deflates ? &two.deflate : NULL},
                                               "/", "localhost", NULL));
    assert_int_equal(self->status, 0);
    if (!two.client_deflates)
        assert_int_equal(bide_websocket_deflate_start(&two.deflate, &two.websocket), 0);
    if (two.cancels) {
        bide_scope_spawn(&two.scope, &two.sending.branch, bide_task_init(&two.sending.task, &two_send_other));
        while (two.other.done == 0) /* until it has its turn */
            bide_await(bide_sleep_for(&self->sleep, 0));
        fill(two.sent, 1000, 1);
        bide_await_status(self->status,
                          bide_with_deadline(&self->limited, bide_now(bide_this_context()),
                                             bide_websocket_deflate_send(&self->send, &two.deflate, BIDE_WEBSOCKET_TEXT,
                                                                         two.sent, 1000)));
        assert_int_equal(self->status, -ETIMEDOUT);
        bide_await_status(self->status, bide_websocket_deflate_recv(&self->receive, &two.deflate, two.received, LARGE));
        assert_int_equal(self->status, 0);
        assert_int_equal(self->receive.count, LARGE);
        assert_memory_equal(two.received, two.other_text, LARGE);
    }
    for (self->i = 0; self->i < two.messages; self->i++) {
        self->size = testing_random(&two.random) % (self->i % 5 == 4 ? LARGE : 300);
        fill(two.sent, self->size, self->i % 3);
        bide_await_status(self->status, bide_websocket_deflate_send(&self->send, &two.deflate,
                                                                    self->i % 2 != 0 ? BIDE_WEBSOCKET_TEXT : BIDE_WEBSOCKET_BINARY,
                                                                    two.sent, self->size));
        assert_int_equal(self->status, 0);
        bide_await_status(self->status, bide_websocket_deflate_recv(&self->receive, &two.deflate, two.received, LARGE));
        assert_int_equal(self->status, 0);
        assert_int_equal(self->receive.count, self->size);
        assert_int_equal(self->receive.kind, self->i % 2 != 0 ? BIDE_WEBSOCKET_TEXT : BIDE_WEBSOCKET_BINARY);
        assert_memory_equal(two.received, two.sent, self->size);
    }
    bide_await_status(self->status, bide_websocket_close(&self->closing, &two.websocket, 1000, ""));
    assert_int_equal(self->status, 0);
    bide_memory_pipe_destroy(&two.to_server);
    bide_memory_pipe_reject(&two.from_server);
    bide_end();
}

bide_coroutine(two_main)
{
    bide_begin(two_main, struct side * self);
    (void)self;
    bide_scope_init(&two.scope, bide_this_frame());
    bide_scope_spawn(&two.scope, &two.serving.branch, bide_task_init(&two.serving.task, &two_serve));
    bide_scope_spawn(&two.scope, &two.talking.branch, bide_task_init(&two.talking.task, &two_talk));
    bide_try(bide_scope_join(&two.scope));
    bide_finally();
    bide_scope_destroy(&two.scope);
    bide_end();
}

static void talk(uint64_t seed)
{
    static const uint16_t plain = 0;
    bide_http_options options = {.handler = {&session_body, sizeof(struct session)}};
    assert_int_equal(bide_http_server_init(&two.server, &options), 0);
    two.memory = malloc(bide_http_memory_size(&two.server));
    assert_non_null(two.memory);
    bide_sim_loop_init(&two.loop, seed);
    two.record = (bide_sim_record_){.given = &plain};
    if (seed == 0) /* no random choices */
        two.loop.record = &two.record;
    bide_memory_pipe_init(&two.to_server, two.to_memory, PIPE);
    bide_memory_pipe_init(&two.from_server, two.from_memory, PIPE);
    two.server_end = (bide_memory_end){&two.to_server, &two.from_server};
    two.client_end = (bide_memory_end){&two.from_server, &two.to_server};
    assert_int_equal(bide_http_client_init(&two.client, bide_memory_stream(&two.client_end), two.client_memory,
                                           sizeof two.client_memory, NULL),
                     0);
    assert_int_equal(bide_websocket_deflate_init(&two.deflate, &two.client_options), 0);
    assert_int_equal(bide_sim_loop_wait(&two.loop, bide_task_init(&two.main.task, &two_main)), 0);
    bide_websocket_deflate_destroy(&two.deflate);
    free(two.memory);
}

static void messages_go_both_ways_whatever_was_agreed_on(void **state)
{
    unsigned executions = 0;
    (void)state;
    two.random = testing_seed();
    two.messages = 10;
    for (int who = 0; who < 4; who++)
        for (int context = 0; context < 4; context++)
            for (int bits = 9; bits <= 15; bits += 3) {
                two.server_deflates = (who & 1) != 0;
                two.client_deflates = (who & 2) != 0;
                two.server_options = (bide_websocket_deflate_options){.no_context = (context & 1) != 0, .window_bits = bits,
                                                                      .max_peer_window_bits = bits == 9 ? 10 : 0};
                two.client_options = (bide_websocket_deflate_options){.no_context = (context & 2) != 0, .min_size = 1,
                                                                      .window_bits = bits == 12 ? 15 : 13, .level = 9};
                talk(testing_random(&two.random));
                executions++;
                assert_int_equal(two.was_agreed, who == 3);
                assert_int_equal(two.server_sent != 0, who == 3);
                assert_int_equal(two.deflate.received, two.server_sent);
                assert_int_equal(two.server_received, two.deflate.sent);
            }
    printf("# %u executions\n", executions);
}

/* The peer's context lacks a message that was compressed and not sent: later ones are not compressed. */
static void after_a_cancelled_send_messages_are_not_compressed(void **state)
{
    (void)state;
    two.random = 1;
    two.messages = 10;
    two.cancels = true;
    two.server_deflates = two.client_deflates = true;
    two.server_options = two.client_options = (bide_websocket_deflate_options){.level = 0};
    memset(&two.other, 0, sizeof two.other);
    talk(0);
    two.cancels = false;
    assert_true(two.deflate.is_spoilt && two.deflate.sent == 0 && two.server_sent != 0);
}

/* ---- Missing memory ---- */

static struct {
    bide_allocator allocator;
    unsigned left;
    size_t used;
} scarce;

static void *allocate_scarce(bide_allocator *allocator, size_t size)
{
    (void)allocator;
    if (scarce.left == 0)
        return NULL;
    scarce.left--;
    scarce.used += size;
    return malloc(size);
}

static void deallocate_scarce(bide_allocator *allocator, void *memory, size_t size)
{
    (void)allocator;
    scarce.used -= size;
    free(memory);
}

static void a_start_without_memory_fails_and_frees_all(void **state)
{
    (void)state;
    scarce.allocator = (bide_allocator){allocate_scarce, deallocate_scarce};
    int status = -ENOMEM;
    for (unsigned count = 0; status == -ENOMEM; count++) {
        bide_websocket_deflate deflate;
        bide_websocket websocket;
        memset(&websocket, 0, sizeof websocket);
        assert_true(count < 20);
        scarce.left = count;
        assert_int_equal(bide_websocket_deflate_init(&deflate, &(bide_websocket_deflate_options){.allocator = &scarce.allocator}), 0);
        assert_int_equal(bide_websocket_deflate_check(&deflate, value(AGREED)), 0);
        status = bide_websocket_deflate_start(&deflate, &websocket);
        assert_int_equal(websocket.takes_compressed, status == 0);
        bide_websocket_deflate_destroy(&deflate);
        assert_int_equal(scarce.used, 0);
    }
    assert_int_equal(status, 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_accepts_the_first_offer_that_it_can),
        cmocka_unit_test(a_client_follows_the_answer_or_refuses_it),
        cmocka_unit_test(options_out_of_range_are_refused),
        cmocka_unit_test(the_examples_of_the_rfc_are_received_in_pieces),
        cmocka_unit_test(malformed_messages_end_it),
        cmocka_unit_test(a_message_expands_to_its_bound_and_no_further),
        cmocka_unit_test(messages_go_both_ways_whatever_was_agreed_on),
        cmocka_unit_test(after_a_cancelled_send_messages_are_not_compressed),
        cmocka_unit_test(a_start_without_memory_fails_and_frees_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
