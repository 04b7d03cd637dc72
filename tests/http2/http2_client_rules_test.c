/*
 * The HTTP/2 client against peers that send frames of a script: each way in which they can end a request or break the
 * rules has its error, and all requests end once.
 */
#include "http2_client_peer.h"

static talk3 one;

static int begin_talk(void **state)
{
    (void)state;
    talk3_init(&one);
    return 0;
}

static int end_talk(void **state)
{
    (void)state;
    talk3_end(&one);
    return 0;
}

/* Frames: size (below 256), type, flags, stream (below 256). */
#define HEAD(size, type, flags, id) "\0\0" size type flags "\0\0\0" id
#define BYTES(text)                 text, sizeof(text) - 1
#define SETTINGS                    HEAD("\0", "\4", "\0", "\0")
#define ACK                         HEAD("\0", "\4", "\1", "\0")
#define OK(flags, id)               HEAD("\1", "\1", flags, id) "\x88" /* ":status: 200" */
#define DATA(size, flags, id)       HEAD(size, "\0", flags, id)
#define RESET(id, code)             HEAD("\4", "\3", "\0", id) "\0\0\0" code
#define PONG                        HEAD("\10", "\6", "\1", "\0") "\0\0\0\0\0\0\0\0"
#define GOAWAY(id, code)            HEAD("\10", "\7", "\0", "\0") "\0\0\0" id "\0\0\0" code

enum { NOTHING = 0x7fff };

/* What a peer sends after the request, and what comes of it. */
static const struct row {
    const char *name;
    const char *data;
    size_t size;
    int status; /* of the request */
    int code;   /* of the response */
    int run;    /* of the connection */
    unsigned reset, goaway; /* that the peer gets; NOTHING: none */
    unsigned times; /* the data is sent; 0: once */
    bool stays;     /* the peer does not close after it */
} rows[] = {
    /* responses */
    {"a response", BYTES(OK("\4", "\1") DATA("\3", "\1", "\1") "abc"), 0, 200, 0, NOTHING, 0, 0, true},
    {"a response without a body", BYTES(OK("\5", "\1")), 0, 200, 0, NOTHING, 0, 0, true},
    {"empty data at the end", BYTES(OK("\4", "\1") DATA("\0", "\0", "\1") DATA("\0", "\1", "\1")), 0, 200, 0, NOTHING, 0, 0, true},
    {"padded data", BYTES(OK("\4", "\1") DATA("\7", "\11", "\1") "\3abc\0\0\0"), 0, 200, 0, NOTHING, 0, 0, true},
    {"trailers", BYTES(OK("\4", "\1") HEAD("\12", "\1", "\5", "\1") "\0\5x-sum\2" "15"), 0, 200, 0, NOTHING, 0, 0, true},
    {"an interim response", BYTES(HEAD("\5", "\1", "\4", "\1") "\10\3" "103" OK("\5", "\1")), 0, 200, 0, NOTHING, 0, 0, true},
    {"a response in three frames", BYTES(HEAD("\0", "\1", "\1", "\1") HEAD("\0", "\11", "\0", "\1") HEAD("\1", "\11", "\4", "\1") "\x88"), 0, 200, 0, NOTHING, 0, 0, true},
    {"an unknown frame", BYTES(HEAD("\2", "\x63", "\0", "\1") "ab" OK("\5", "\1")), 0, 200, 0, NOTHING, 0, 0, true},
    {"a reset after the end", BYTES(OK("\5", "\1") RESET("\1", "\0")), 0, 200, 0, NOTHING, 0, 0, true},

    /* ends */
    {"a reset", BYTES(RESET("\1", "\2")), -ECONNRESET, 0, 0, NOTHING, 0, 0, true},
    {"a reset without an error", BYTES(RESET("\1", "\0")), -ECONNRESET, 0, 0, NOTHING, 0, 0, true},
    {"a reset within the body", BYTES(OK("\4", "\1") DATA("\3", "\0", "\1") "abc" RESET("\1", "\10")), -ECONNRESET, 200, 0, NOTHING, 0, 0, true},
    {"a refused stream", BYTES(RESET("\1", "\7")), -ECONNREFUSED, 0, 0, NOTHING, 0, 0, true},
    {"a server that wants HTTP/1.1", BYTES(RESET("\1", "\15")), -EPROTONOSUPPORT, 0, 0, NOTHING, 0, 0, true},
    {"GOAWAY below the request", BYTES(GOAWAY("\0", "\0")), -ECONNREFUSED, 0, 0, NOTHING, NOTHING, 0, true},
    {"GOAWAY, and the response", BYTES(GOAWAY("\1", "\0") OK("\5", "\1")), 0, 200, 0, NOTHING, NOTHING, 0, true},
    {"GOAWAY with an error", BYTES(GOAWAY("\1", "\2")), -ECONNABORTED, 0, -ECONNABORTED, NOTHING, NOTHING, 0, true},
    {"GOAWAY with an error, below the request", BYTES(GOAWAY("\0", "\13")), -ECONNREFUSED, 0, -ECONNABORTED, NOTHING, NOTHING, 0, true},
    {"GOAWAY that wants HTTP/1.1, below the request", BYTES(GOAWAY("\0", "\15")), -EPROTONOSUPPORT, 0, -ECONNABORTED, NOTHING, NOTHING, 0, true},
    {"GOAWAY that wants HTTP/1.1, after the request", BYTES(GOAWAY("\1", "\15")), -ECONNABORTED, 0, -ECONNABORTED, NOTHING, NOTHING, 0, true},
    {"the connection's end", BYTES(""), -EPIPE, 0, -ENODATA, NOTHING, NOTHING, 0, false},
    {"the connection's end within the body", BYTES(OK("\4", "\1") DATA("\3", "\0", "\1") "abc"), -ENODATA, 200, -ENODATA, NOTHING, NOTHING, 0, false},
    {"the connection's end within a frame", BYTES("\0\0"), -EPIPE, 0, -ENODATA, NOTHING, NOTHING, 0, false},

    /* responses against the rules */
    {"a response without a status", BYTES(HEAD("\5", "\1", "\5", "\1") "\0\1a\1b"), -EBADMSG, 0, 0, 1, 0, 0, true},
    {"a status of letters", BYTES(HEAD("\5", "\1", "\5", "\1") "\10\3abc"), -EBADMSG, 0, 0, 1, 0, 0, true},
    {"101", BYTES(HEAD("\5", "\1", "\4", "\1") "\10\3" "101"), -EBADMSG, 0, 0, 1, 0, 0, true},
    {"an interim response that ends", BYTES(HEAD("\5", "\1", "\5", "\1") "\10\3" "103"), -EBADMSG, 0, 0, 1, 0, 0, true},
    {"interim responses without end", BYTES(HEAD("\5", "\1", "\4", "\1") "\10\3" "103"), -EBADMSG, 0, 0, 8, 0, 40, true},
    {"a name with a capital", BYTES(HEAD("\6", "\1", "\5", "\1") "\x88\0\1A\1b"), -EBADMSG, 0, 0, 1, 0, 0, true},
    {"a field of the connection", BYTES(HEAD("\20", "\1", "\5", "\1") "\x88\0\12connection\1a"), -EBADMSG, 0, 0, 1, 0, 0, true},
    {"a body that is too short", BYTES(HEAD("\5", "\1", "\4", "\1") "\x88\x0f\x0d\1" "5" DATA("\3", "\1", "\1") "abc"), -EBADMSG, 200, 0, 1, 0, 0, true},
    {"a body that is too long", BYTES(HEAD("\5", "\1", "\4", "\1") "\x88\x0f\x0d\1" "2" DATA("\3", "\1", "\1") "abc"), -EBADMSG, 200, 0, 1, 0, 0, true},
    {"a body before the head", BYTES(DATA("\3", "\1", "\1") "abc"), -EBADMSG, 0, -EBADMSG, NOTHING, 1, 0, true},
    {"a length that is not allowed", BYTES(HEAD("\10", "\1", "\4", "\1") "\x88\x0f\x0d\4" "9000"), -EFBIG, 0, 0, 8, 0, 0, true},

    /* connections against the rules */
    {"a frame that is too large", BYTES("\0\x40\1\0\0\0\0\0\1"), -EBADMSG, 0, -EBADMSG, NOTHING, 6, 0, true},
    {"a response on a stream that nobody opened", BYTES(OK("\5", "\3")), -EBADMSG, 0, -EBADMSG, NOTHING, 1, 0, true},
    {"a response on stream 0", BYTES(OK("\5", "\0")), -EBADMSG, 0, -EBADMSG, NOTHING, 1, 0, true},
    {"data on stream 0", BYTES(DATA("\0", "\0", "\0")), -EBADMSG, 0, -EBADMSG, NOTHING, 1, 0, true},
    {"a compressed head that is spoilt", BYTES(HEAD("\1", "\1", "\5", "\1") "\xff"), -EBADMSG, 0, -EBADMSG, NOTHING, 9, 0, true},
    {"a window of 2^31", BYTES(HEAD("\4", "\10", "\0", "\0") "\x7f\xff\xff\xff"), -EBADMSG, 0, -EBADMSG, NOTHING, 3, 0, true},
    {"a window of a stream of 2^31", BYTES(HEAD("\4", "\10", "\0", "\1") "\x7f\xff\xff\xff"), -EBADMSG, 0, 0, 3, 0, 0, true},
    {"a window that opens by 0", BYTES(HEAD("\4", "\10", "\0", "\0") "\0\0\0\0"), -EBADMSG, 0, -EBADMSG, NOTHING, 1, 0, true},
    {"a PING of 7 bytes", BYTES(HEAD("\7", "\6", "\0", "\0") "1234567"), -EBADMSG, 0, -EBADMSG, NOTHING, 6, 0, true},
    {"settings of 5 bytes", BYTES(HEAD("\5", "\4", "\0", "\0") "12345"), -EBADMSG, 0, -EBADMSG, NOTHING, 6, 0, true},
    {"a push", BYTES(ACK HEAD("\5", "\5", "\4", "\1") "\0\0\0\2\x88"), -EBADMSG, 0, -EBADMSG, NOTHING, 1, 0, true},
    {"a head that is interrupted", BYTES(HEAD("\1", "\1", "\1", "\1") "\x88" DATA("\0", "\0", "\1")), -EBADMSG, 0, -EBADMSG, NOTHING, 1, 0, true},
    {"a continuation of nothing", BYTES(HEAD("\0", "\11", "\4", "\1")), -EBADMSG, 0, -EBADMSG, NOTHING, 1, 0, true},
    {"a reset of a stream that nobody opened", BYTES(RESET("\5", "\0")), -EBADMSG, 0, -EBADMSG, NOTHING, 1, 0, true},
    {"PINGs without end", BYTES(HEAD("\10", "\6", "\0", "\0") "12345678"), -EBADMSG, 0, -EBADMSG, NOTHING, 11, 5000, true},
    {"settings without end", BYTES(SETTINGS), -EBADMSG, 0, -EBADMSG, NOTHING, 11, 5000, true},
    {"unknown frames without end", BYTES(HEAD("\0", "\x63", "\0", "\0")), -EBADMSG, 0, -EBADMSG, NOTHING, 11, 5000, true},
    {"priorities without end", BYTES(HEAD("\5", "\2", "\0", "\1") "\0\0\0\3\1"), -EBADMSG, 0, -EBADMSG, NOTHING, 11, 5000, true},
};

static void each_end_has_its_error(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        for (one.seed = 0; one.seed < 4; one.seed++) {
            one.job_count = one.step_count = 0;
            one.options.max_body = 8999;
            job *job = talk3_job(&one, "/");
            talk3_step(&one, 0, BYTES(SETTINGS));
            talk3_step(&one, 1, row->data, row->size);
            one.steps[1].times = row->times;
            one.closes = !row->stays;
            int run = talk3_run(&one);
            unsigned reset = one.resets == 0 ? NOTHING : one.reset_code;
            unsigned goaway = one.goaways == 0 ? NOTHING : one.goaway_code;
            bool is_expected = run == row->run && reset == row->reset &&
                               (goaway == row->goaway || (row->run != 0 && goaway == NOTHING));
            /* an error of the stream may also end the connection (RFC 9113, 5.4.1), with the same code */
            bool is_ended = row->status == -EBADMSG && row->run == 0 && run == -EBADMSG && goaway == row->reset;
            if (job->status != row->status || job->code != row->code || (!is_expected && !is_ended))
                fail_msg("%s: status %d, code %d, connection %d, RST_STREAM %u, GOAWAY %u", row->name, job->status, job->code,
                         run, reset, goaway);
        }
    }
}

/* What it receives on the first bytes of the connection. */
static void a_peer_that_speaks_otherwise_is_left(void **state)
{
    (void)state;
    static const char http1[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    talk3_step(&one, 0, BYTES(http1));
    job *job = talk3_job(&one, "/");
    int run = talk3_run(&one);
    assert_int_equal(run, -EBADMSG);
    assert_true(job->status == -EBADMSG || job->status == -ECONNREFUSED || job->status == -EPIPE);
}

static void heads_are_limited(void **state)
{
    (void)state;
    /* a field of 100 bytes, many times in one head: indexed, and so one byte each */
    static char field[9 + 3 + 6 + 100], head[9 + 256];
    static const char pattern[] = "\0\0\x6d\1\5\0\0\0\1\x88\x40\4long\x64";
    memset(field, 'x', sizeof field);
    memcpy(field, pattern, 9 + 1 + 1 + 1 + 4 + 1);
    field[2] = 1 + 1 + 1 + 4 + 1 + 100;
    size_t size = 9 + (unsigned char)field[2];
    talk3_step(&one, 0, BYTES(SETTINGS));
    talk3_step(&one, 1, field, size);
    one.options.max_head = 256;
    job *job = talk3_job(&one, "/"), *next = talk3_job(&one, "/");
    memcpy(head, "\0\0\x15\1\4\0\0\0\3\x88", 10);
    memset(head + 10, '\xbe', 254);
    talk3_step(&one, 2, head, 9 + 21);
    assert_int_equal(talk3_run(&one), 0);
    assert_int_equal(job->status, 0);
    assert_int_equal(next->status, -EMSGSIZE); /* its texts are too long */
    assert_int_equal(one.reset_code, 8);
    one.options.max_head = 100000;
    one.options.max_fields = 8;
    assert_int_equal(talk3_run(&one), 0);
    assert_int_equal(next->status, -EMSGSIZE); /* it has too many fields */
    /* a head without end: continuations of indexed fields */
    one.options.max_fields = 64;
    one.options.max_head = 256;
    head[2] = '\xff';
    head[4] = 0;
    one.steps[2].size = 9 + 255;
    static char more[9 + 255];
    memcpy(more, "\0\0\xff\11\0\0\0\0\3", 9);
    memset(more + 9, '\xbe', 255);
    talk3_step(&one, 2, more, sizeof more);
    one.steps[3].times = 100000;
    assert_int_equal(talk3_run(&one), -EBADMSG);
    assert_int_equal(next->status, -EMSGSIZE);

    /* and empty ones */
    talk3_end(&one);
    talk3_init(&one);
    talk3_step(&one, 0, BYTES(SETTINGS));
    talk3_step(&one, 1, BYTES(HEAD("\1", "\1", "\0", "\1") "\x88"));
    static const char empty[] = "\0\0\0\11\0\0\0\0\1";
    talk3_step(&one, 1, BYTES(empty));
    one.steps[2].times = 100000;
    job = talk3_job(&one, "/");
    assert_int_equal(talk3_run(&one), -EBADMSG);
    assert_int_equal(job->status, -EBADMSG);
}

/* Requests above the last stream of a GOAWAY, those that wait, and later ones may be sent again. */
static void a_goaway_says_what_was_processed(void **state)
{
    (void)state;
    one.options.max_streams = 3;
    for (int i = 0; i < 5; i++)
        talk3_job(&one, "/");
    job *late = talk3_job(&one, "/");
    late->begins_at = SECOND;
    talk3_step(&one, 0, BYTES(SETTINGS));
    talk3_step(&one, 3, BYTES(GOAWAY("\3", "\0")));
    talk3_step(&one, 3, BYTES(OK("\5", "\1") OK("\5", "\3")));
    one.steps[2].pause = 2 * SECOND;
    for (one.seed = 0; one.seed < 10; one.seed++) {
        assert_int_equal(talk3_run(&one), 0);
        for (int i = 0; i < 5; i++) {
            const job *job = &one.jobs[i]; /* (one may begin after the GOAWAY) */
            assert_true(job->code == 200 ? job->status == 0 : job->status == -ECONNREFUSED || job->status == -EPIPE);
        }
        assert_int_equal(one.answered, 2);
        assert_int_equal(late->status, -EPIPE);
        assert_int_equal(one.heads, 3);
    }
}

/* SETTINGS_MAX_CONCURRENT_STREAMS: 2, then 0, then 1. */
static void streams_are_as_many_as_the_server_allows(void **state)
{
    (void)state;
#define MAX_STREAMS(n) HEAD("\6", "\4", "\0", "\0") "\0\3\0\0\0" n
    for (int i = 0; i < 4; i++)
        talk3_job(&one, "/")->begins_at = SECOND;
    talk3_step(&one, 0, BYTES(MAX_STREAMS("\2")));
    talk3_step(&one, 2, BYTES(MAX_STREAMS("\0") OK("\5", "\1") OK("\5", "\3")));
    one.steps[1].pause = SECOND;
    talk3_step(&one, 2, BYTES(MAX_STREAMS("\1")));
    one.steps[2].pause = 5 * SECOND;
    talk3_step(&one, 3, BYTES(OK("\5", "\5")));
    talk3_step(&one, 4, BYTES(OK("\5", "\7")));
    for (one.seed = 0; one.seed < 10; one.seed++) {
        assert_int_equal(talk3_run(&one), 0);
        for (int i = 0; i < 4; i++)
            assert_int_equal(one.jobs[i].code, 200);
        assert_in_range(one.took, 7 * SECOND, 8 * SECOND);
    }
}

/* A window of 0: the body does not go, the response comes, and the others are not held back. */
static void a_window_of_0_stops_one_body(void **state)
{
    (void)state;
    static char body[100];
    job *pieces = talk3_post(&one, "/", body, sizeof body), *set = talk3_post(&one, "/", body, sizeof body);
    pieces->piece = 10;
    pieces->begins_at = set->begins_at = SECOND;
    pieces->deadline = 3 * SECOND;
    talk3_step(&one, 0, BYTES(HEAD("\6", "\4", "\0", "\0") "\0\4\0\0\0\0"));
    talk3_step(&one, 2, BYTES(OK("\5", "\3")));
    assert_int_equal(talk3_run(&one), 0);
    assert_int_equal(pieces->status, -ETIMEDOUT);
    assert_int_equal(set->code, 200);
    assert_int_equal(set->status, 0);
    assert_int_equal(one.data, 0);
    /* it opens: */
    one.step_count = 0;
    talk3_step(&one, 0, BYTES(HEAD("\6", "\4", "\0", "\0") "\0\4\0\0\0\0"));
    talk3_step(&one, 2, BYTES(HEAD("\4", "\10", "\0", "\1") "\0\0\0\x64" HEAD("\4", "\10", "\0", "\3") "\0\0\0\x32"));
    talk3_step(&one, 2, BYTES(OK("\5", "\1") OK("\5", "\3")));
    one.steps[2].pause = SECOND;
    assert_int_equal(talk3_run(&one), 0);
    assert_int_equal(pieces->status, 0);
    assert_int_equal(pieces->sent, 100);
    assert_int_equal(one.data, 150);
}

/* A response is kept up to its window; the connection's window opens as it comes. */
static void windows_are_given_back(void **state)
{
    (void)state;
    static char data[9 + 16384];
    memcpy(data, "\0\x40\0\0\0\0\0\0\1", 9);
    one.options.window = 16384;
    one.options.connection_window = 65535;
    job *job = talk3_job(&one, "/");
    job->reads_not = true;
    talk3_step(&one, 0, BYTES(SETTINGS ACK));
    talk3_step(&one, 1, BYTES(OK("\4", "\1")));
    talk3_step(&one, 1, data, sizeof data);
    assert_int_equal(talk3_run(&one), 0);
    assert_int_equal(job->status, 0);
    assert_int_equal(one.resets, 1);
    assert_int_equal(one.reset_code, 8);
    /* one byte more than the window: against the rules */
    talk3_step(&one, 1, BYTES(DATA("\1", "\0", "\1") "a"));
    int run = talk3_run(&one); /* (of the stream, or of the connection) */
    assert_true(run == 0 || run == -EBADMSG);
    assert_int_equal(run == 0 ? one.reset_code : one.goaway_code, 3);
    /* bytes of a request that is closed return to the connection's window, too */
    one.step_count = 2;
    job->deadline = SECOND;
    job->reads_not = false;
    talk3_step(&one, 1, data, sizeof data);
    one.steps[2].pause = 2 * SECOND;
    one.steps[2].times = 3; /* (the window of 65535 bytes) */
    struct job *other = talk3_job(&one, "/");
    other->begins_at = SECOND / 2;
    talk3_step(&one, 2, BYTES(OK("\5", "\3")));
    assert_int_equal(talk3_run(&one), 0);
    assert_int_equal(job->status, -ETIMEDOUT);
    assert_int_equal(other->status, 0);
    assert_true(one.given >= 16384);
}

/* Pushed streams that the server has sent before it knew the settings are reset. */
static void an_early_push_is_refused(void **state)
{
    (void)state;
    talk3_step(&one, 0, BYTES(SETTINGS));
    talk3_step(&one, 1, BYTES(HEAD("\10", "\5", "\4", "\1") "\0\0\0\2\x82\x86\x84\x01" "\0" ));
    job *job = talk3_job(&one, "/");
    one.steps[1].size = 9 + 7;
    static const char push[] = "\0\0\7\5\4\0\0\0\1\0\0\0\2\x82\x86\x84";
    one.steps[1].data = push;
    talk3_step(&one, 1, BYTES(OK("\5", "\2") OK("\5", "\1")));
    one.steps[2].pause = SECOND;
    int run = talk3_run(&one);
    if (run == 0) {
        assert_int_equal(job->status, 0);
        assert_true(one.resets >= 1);
    } else {
        assert_int_equal(run, -EBADMSG);
    }
}

static void a_silent_connection_is_pinged(void **state)
{
    (void)state;
    static const char pong[] = HEAD("\10", "\6", "\1", "\0") "\0\0\0\0\0\0\0\0";
    one.options.ping_after = 10 * SECOND;
    one.options.ping_timeout = 5 * SECOND;
    job *job = talk3_job(&one, "/");
    talk3_step(&one, 0, BYTES(SETTINGS));
    talk3_step(&one, 1, BYTES(pong));
    one.steps[1].pause = 11 * SECOND;
    talk3_step(&one, 1, BYTES(""));
    assert_int_equal(talk3_run(&one), -ETIMEDOUT);
    assert_int_equal(job->status, -ETIMEDOUT);
    assert_int_equal(one.pings, 2);
    assert_in_range(one.took, 26 * SECOND, 27 * SECOND);
    /* without PINGs it waits for its own deadline */
    one.options.ping_after = BIDE_FOREVER;
    job->deadline = 1000 * SECOND;
    assert_int_equal(talk3_run(&one), 0);
    assert_int_equal(job->status, -ETIMEDOUT);
    assert_int_equal(one.pings, 0);
    /* without a limit to wait for the answer, one PING is sent, and another one after the server's next bytes */
    one.options.ping_after = 10 * SECOND;
    one.options.ping_timeout = BIDE_FOREVER;
    assert_int_equal(talk3_run(&one), 0);
    assert_int_equal(job->status, -ETIMEDOUT);
    assert_int_equal(one.pings, 2);
}

/* Answers to the client's PINGs do not count as idle frames. */
static void answers_to_its_pings_are_free(void **state)
{
    (void)state;
    static const char pong[] = HEAD("\10", "\6", "\1", "\0") "\0\0\0\0\0\0\0\0";
    one.options.ping_after = 10 * SECOND;
    one.options.ping_timeout = 5 * SECOND;
    one.options.max_idle_frames = 4;
    job *job = talk3_job(&one, "/");
    talk3_step(&one, 0, BYTES(SETTINGS));
    for (int i = 1; i < PEER_STEPS - 1; i++) {
        talk3_step(&one, 1, BYTES(pong));
        one.steps[i].pause = 11 * SECOND;
    }
    talk3_step(&one, 1, BYTES(OK("\5", "\1")));
    assert_int_equal(talk3_run(&one), 0);
    assert_int_equal(job->status, 0);
    assert_int_equal(one.pings, PEER_STEPS - 2);
}

/* Several may be under way: one that was answered with other bytes is answered late. */
static void late_answers_to_its_pings_are_free(void **state)
{
    (void)state;
    enum { PINGS = PEER_STEPS - 3 };
    one.options.ping_after = 10 * SECOND;
    one.options.max_idle_frames = 2;
    job *job = talk3_job(&one, "/");
    talk3_step(&one, 0, BYTES(SETTINGS));
    talk3_step(&one, 1, BYTES(OK("\4", "\1")));
    for (int i = 0; i < PINGS; i++) {
        talk3_step(&one, 1, BYTES(DATA("\1", "\0", "\1") "a"));
        one.steps[one.step_count - 1].pause = 11 * SECOND;
    }
    talk3_step(&one, 1, BYTES(PONG PONG PONG PONG PONG DATA("\0", "\1", "\1")));
    assert_int_equal(PINGS, 5);
    assert_int_equal(talk3_run(&one), 0);
    assert_int_equal(job->status, 0);
    assert_int_equal(one.pings, PINGS);
}

/* Input that arrives when a PING's deadline passes counts, whichever the client notices first. */
static void an_answer_at_the_deadline_counts(void **state)
{
    (void)state;
    one.options.ping_after = 10 * SECOND;
    one.options.ping_timeout = 5 * SECOND;
    job *job = talk3_job(&one, "/");
    talk3_step(&one, 0, BYTES(SETTINGS));
    talk3_step(&one, 1, BYTES(PONG));
    one.steps[1].pause = 15 * SECOND;
    talk3_step(&one, 1, BYTES(OK("\5", "\1")));
    one.steps[2].pause = SECOND;
    unsigned rounds = rounds_of(200);
    for (one.seed = 0; one.seed < rounds; one.seed++) {
        if (talk3_run(&one) != 0 || job->status != 0)
            fail_msg("seed %llu: the connection ended with %d", (unsigned long long)one.seed, one.run_status);
        assert_int_equal(one.pings, 1);
    }
}

/* Also if the process is halted again, while the client looks for input. */
static void an_answer_after_two_halts_counts(void **state)
{
    (void)state;
    one.options.ping_after = 10 * SECOND;
    one.options.ping_timeout = 5 * SECOND;
    one.halt_at = 15 * SECOND + SECOND / 20; /* the deadline has passed */
    one.halt = 2 * SECOND;
    job *job = talk3_job(&one, "/");
    talk3_step(&one, 0, BYTES(SETTINGS));
    talk3_step(&one, 1, BYTES(PONG));
    one.steps[1].pause = 16 * SECOND;
    talk3_step(&one, 1, BYTES(OK("\5", "\1")));
    one.steps[2].pause = SECOND;
    unsigned rounds = rounds_of(200);
    for (one.seed = 0; one.seed < rounds; one.seed++) {
        if (talk3_run(&one) != 0 || job->status != 0)
            fail_msg("seed %llu: the connection ended with %d", (unsigned long long)one.seed, one.run_status);
        assert_int_equal(one.pings, 1);
    }
}

static unsigned answers;

static void note_answer(void *client)
{
    answers++;
    assert_false(bide_http_agent_http2_is_doubted_(client));
    assert_int_equal(((bide_http2_client *)client)->awaited_pongs, 0); /* (the bytes are taken) */
    assert_true(bide_http2_client_is_usable(client));
}

/* The end of a doubt is reported when the bytes that end it are taken, if requests may use the connection then. */
static void an_answer_is_reported_if_the_connection_is_usable(void **state)
{
    (void)state;
    static const struct {
        const char *data;
        size_t size;
        unsigned answers;
        int run;
    } rows[] = {
        {BYTES(PONG), 1, 0},
        {BYTES(PONG GOAWAY("\1", "\0")), 0, 0},
        {BYTES(GOAWAY("\1", "\0") PONG), 0, 0},
        {BYTES(PONG GOAWAY("\1", "\2")), 0, -ECONNABORTED},
    };
    one.on_answer = &note_answer;
    one.doubt_at = SECOND;
    talk3_job(&one, "/");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        answers = 0;
        one.step_count = 0;
        talk3_step(&one, 0, BYTES(SETTINGS));
        talk3_step(&one, 1, rows[i].data, rows[i].size);
        one.steps[1].pause = 2 * SECOND;
        talk3_step(&one, 1, BYTES(OK("\5", "\1")));
        one.steps[2].pause = SECOND;
        assert_int_equal(talk3_run(&one), rows[i].run);
        assert_int_equal(one.jobs[0].status, rows[i].run);
        assert_int_equal(one.pings, 1);
        assert_int_equal(answers, rows[i].answers);
    }
}

/* Bytes at random, behind a start that is right, end every request, and leave nothing behind. */
static void random_frames_end_every_request(void **state)
{
    (void)state;
    const char *given = getenv("BIDE_SEED");
    uint64_t first = given != NULL ? strtoull(given, NULL, 0) : 1;
    unsigned rounds = rounds_of(given != NULL ? 1 : 1000);
    for (uint64_t seed = first; seed < first + rounds; seed++) {
        static char script[4000];
        uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15);
        size_t size = 0;
        memset(script, 0, sizeof script); /* (the same for each seed, whatever ran before) */
        while (size < 2000) {
            unsigned char draws[16];
            for (size_t i = 0; i < sizeof draws; i++) {
                random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
                draws[i] = (unsigned char)(random >> 40);
            }
            static const char known[] = "\x88\x0f\x0d\1" "5\0\5x-sum\2" "15abcdefghijkl";
            size_t length = draws[0] % 4 == 0 ? draws[1] % 60 : draws[1] % sizeof known;
            char head[9] = {0, 0, (char)length, (char)(draws[2] % 11), (char)(draws[3] % 3 ? draws[4] & 0x2d : draws[4]), 0, 0, 0,
                            (char)(draws[5] % 4 * 2 + (draws[6] % 8 != 0))};
            if (draws[7] % 4 == 0) {
                head[3] = 1;
                head[4] |= 4;
            }
            memcpy(script + size, head, 9);
            memcpy(script + size + 9, known, length < sizeof known ? length : sizeof known);
            if (draws[8] % 16 == 0)
                script[size + 9 + length / 2] = (char)draws[9];
            size += 9 + length;
        }
        talk3_end(&one);
        talk3_init(&one);
        one.seed = seed;
        one.pipe = 64 + seed % 1000;
        for (int i = 0; i < 3; i++)
            talk3_job(&one, "/")->deadline = 10 * SECOND;
        talk3_step(&one, 0, BYTES(SETTINGS));
        talk3_step(&one, 1 + seed % 3, script, size);
        one.closes = seed % 2;
        int run = talk3_run(&one);
        if (run != 0 && run != -EBADMSG && run != -ENODATA && run != -ECONNABORTED && run != -EPIPE && run != -ECONNRESET)
            fail_msg("seed %llu: the connection ended with %d", (unsigned long long)seed, run);
    }
    printf("# seeds %llu to %llu\n", (unsigned long long)first, (unsigned long long)(first + rounds - 1));
}

int main(void)
{
#define talk_test(name) cmocka_unit_test_setup_teardown(name, begin_talk, end_talk)
    const struct CMUnitTest tests[] = {
        talk_test(each_end_has_its_error),
        talk_test(a_peer_that_speaks_otherwise_is_left),
        talk_test(heads_are_limited),
        talk_test(a_goaway_says_what_was_processed),
        talk_test(streams_are_as_many_as_the_server_allows),
        talk_test(a_window_of_0_stops_one_body),
        talk_test(windows_are_given_back),
        talk_test(an_early_push_is_refused),
        talk_test(a_silent_connection_is_pinged),
        talk_test(answers_to_its_pings_are_free),
        talk_test(late_answers_to_its_pings_are_free),
        talk_test(an_answer_at_the_deadline_counts),
        talk_test(an_answer_after_two_halts_counts),
        talk_test(an_answer_is_reported_if_the_connection_is_usable),
        talk_test(random_frames_end_every_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
