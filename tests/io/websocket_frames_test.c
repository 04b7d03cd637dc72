/*
 * Frames from the other side, as a table: what they are, and what comes of them. Each row is received as a server and as
 * a client, in whole and in pieces, cut in two at every byte, and byte by byte. The rows go by the RFC, and their numbers
 * are those of the Autobahn test suite's cases that ask the same.
 */
#define _GNU_SOURCE
#include "testing.h"

#include <bide/bide.h>

#include <errno.h>

enum { MOST_FRAMES = 10, PIPE = 1 << 18, LOG = 4096, MESSAGE = 70000 };

/* ---- Rows ---- */

typedef struct frame {
    unsigned first; /* byte */
    const char *data;
    size_t size;
    size_t repeated; /* so many times; 0: once */
} frame;

typedef struct row {
    const char *name;
    const char *expected; /* what is logged */
    frame frames[MOST_FRAMES];
} row;

#define F(first, text)                   \
    {                                    \
        first, text, sizeof(text) - 1, 0 \
    }
#define MANY(first, text, times)             \
    {                                        \
        first, text, sizeof(text) - 1, times \
    }
#define TEXT(text)  F(0x81, text)
#define BYTES(text) F(0x82, text)
#define BEGIN(text) F(0x01, text)
#define MORE(text)  F(0x00, text)
#define LAST(text)  F(0x80, text)
#define PING(text)  F(0x89, text)
#define PONG(text)  F(0x8a, text)
#define CLOSE(text) F(0x88, text)
#define TEN         "0123456789"
#define HUNDRED     TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define OF_125      HUNDRED TEN TEN "01234"
#define OF_123      HUNDRED TEN TEN "012"
#define NORMAL      CLOSE("\x03\xe8")

/* The frames are followed by the stream's end. "EPIPE" is a clean close, "ENODATA" an end without one. */
static const row rows[] = {
    /* 1: sizes */
    {"1.1.1", "t() EPIPE 1000 >close(1000)", {TEXT(""), NORMAL}},
    {"1.1.2", "t[125] EPIPE 1000 >close(1000)", {TEXT(OF_125), NORMAL}},
    {"1.1.3", "t[126] EPIPE 1000 >close(1000)", {MANY(0x81, "*", 126), NORMAL}},
    {"1.1.4", "t[127] EPIPE 1000 >close(1000)", {MANY(0x81, "*", 127), NORMAL}},
    {"1.1.5", "t[128] EPIPE 1000 >close(1000)", {MANY(0x81, "*", 128), NORMAL}},
    {"1.1.6", "t[65535] EPIPE 1000 >close(1000)", {MANY(0x81, "*", 65535), NORMAL}},
    {"1.1.7", "t[65536] EPIPE 1000 >close(1000)", {MANY(0x81, "*", 65536), NORMAL}},
    {"1.2.1", "b() EPIPE 1000 >close(1000)", {BYTES(""), NORMAL}},
    {"1.2.2", "b[125] EPIPE 1000 >close(1000)", {MANY(0x82, "\xfe", 125), NORMAL}},
    {"1.2.7", "b[65536] EPIPE 1000 >close(1000)", {MANY(0x82, "\xfe", 65536), NORMAL}},
    /* 2: pings */
    {"2.1", "EPIPE 1000 >pong() >close(1000)", {PING(""), NORMAL}},
    {"2.2", "EPIPE 1000 >pong(hello) >close(1000)", {PING("hello"), NORMAL}},
    {"2.3", "EPIPE 1000 >pong(\\00\\ff\\fe) >close(1000)", {F(0x89, "\0\xff\xfe"), NORMAL}},
    {"2.4", "EPIPE 1000 >pong[125] >close(1000)", {PING(OF_125), NORMAL}},
    {"2.5", "EPROTO 1006 >close(1002)", {PING(OF_125 "5"), NORMAL}},
    {"2.7", "EPIPE 1000 >close(1000)", {PONG(""), NORMAL}},
    {"2.8", "EPIPE 1000 >close(1000)", {PONG("nobody asked"), NORMAL}},
    {"2.10, of many the last",
     "EPIPE 1000 >pong(3) >close(1000)",
     {PING("1"), PING("2"), PING("3"), NORMAL}},
    /* 3: reserved bits */
    {"3.1", "EPROTO 1006 >close(1002)", {F(0xc1, "hello")}},
    {"3.2", "t(first) EPROTO 1006 >close(1002)", {TEXT("first"), F(0xa1, "hello"), PING("")}},
    {"3.3", "t(first) EPROTO 1006 >close(1002)", {TEXT("first"), F(0x91, "hello")}},
    {"3.5, binary", "EPROTO 1006 >close(1002)", {F(0xd2, "hello")}},
    {"3.6, ping", "EPROTO 1006 >close(1002)", {F(0xe9, "hello")}},
    {"3.7, close", "EPROTO 1006 >close(1002)", {F(0xf8, "")}},
    /* 4: opcodes that nobody has */
    {"4.1.1", "EPROTO 1006 >close(1002)", {F(0x83, "")}},
    {"4.1.2", "EPROTO 1006 >close(1002)", {F(0x84, "reserved")}},
    {"4.1.3", "t(first) EPROTO 1006 >close(1002)", {TEXT("first"), F(0x85, ""), PING("")}},
    {"4.1.4", "t(first) EPROTO 1006 >close(1002)", {TEXT("first"), F(0x86, "x")}},
    {"4.1.5", "t(first) EPROTO 1006 >close(1002)", {TEXT("first"), F(0x87, "x")}},
    {"4.2.1", "EPROTO 1006 >close(1002)", {F(0x8b, "")}},
    {"4.2.2", "EPROTO 1006 >close(1002)", {F(0x8c, "x")}},
    {"4.2.3", "EPROTO 1006 >close(1002)", {F(0x8d, "")}},
    {"4.2.4", "EPROTO 1006 >close(1002)", {F(0x8e, "x")}},
    {"4.2.5", "EPROTO 1006 >close(1002)", {F(0x8f, "")}},
    /* 5: fragments */
    {"5.1", "EPROTO 1006 >close(1002)", {F(0x09, "frag"), F(0x80, "ment")}},
    {"5.2", "EPROTO 1006 >close(1002)", {F(0x0a, "frag"), F(0x80, "ment")}},
    {"5.3", "t(fragment) EPIPE 1000 >close(1000)", {BEGIN("frag"), LAST("ment"), NORMAL}},
    {"5.5, empty ones",
     "t(fragment) EPIPE 1000 >close(1000)",
     {BEGIN(""), MORE("frag"), MORE(""), MORE("ment"), LAST(""), NORMAL}},
    {"5.5, all empty", "t() EPIPE 1000 >close(1000)", {BEGIN(""), MORE(""), LAST(""), NORMAL}},
    {"5.6",
     "t(fragment) EPIPE 1000 >pong(!) >close(1000)",
     {BEGIN("frag"), PING("!"), LAST("ment"), NORMAL}},
    {"5.9", "EPROTO 1006 >close(1002)", {MORE("nothing goes on"), TEXT("x")}},
    {"5.10", "EPROTO 1006 >close(1002)", {LAST("nothing goes on"), TEXT("x")}},
    {"5.12", "EPROTO 1006 >close(1002)", {MORE(""), TEXT("x")}},
    {"5.15",
     "t(fragment) EPROTO 1006 >close(1002)",
     {BEGIN("frag"), LAST("ment"), MORE("x"), TEXT("y")}},
    {"5.16, binary too", "b(ab) EPROTO 1006 >close(1002)", {F(0x02, "a"), LAST("b"), LAST("c")}},
    {"5.18", "EPROTO 1006 >close(1002)", {BEGIN("frag"), TEXT("another")}},
    {"5.19",
     "t(fragments) t(x) EPIPE 1000 >pong(2) >close(1000)",
     {BEGIN("frag"), PING("1"), MORE("ment"), PING("2"), LAST("s"), TEXT("x"), NORMAL}},
    {"5, a close between", "EPIPE 1000 >close(1000)", {BEGIN("frag"), NORMAL, LAST("ment")}},
    {"5, the end between", "ENODATA 1006", {BEGIN("frag")}},
    /* 6: UTF-8 */
    {"6.1.1", "t() EPIPE 1000 >close(1000)", {TEXT(""), NORMAL}},
    {"6.2.1",
     "t(h\\c3\\a9llo\\e2\\82\\ac\\f0\\9f\\98\\80) EPIPE 1000 >close(1000)",
     {TEXT("h\xc3\xa9llo\xe2\x82\xac\xf0\x9f\x98\x80"), NORMAL}},
    {"6.2.2, cut in characters",
     "t(h\\c3\\a9llo\\e2\\82\\ac\\f0\\9f\\98\\80) EPIPE 1000 >close(1000)",
     {BEGIN("h\xc3"), MORE("\xa9llo\xe2"), MORE("\x82"), MORE("\xac\xf0"), MORE("\x9f"),
      MORE("\x98"), LAST("\x80"), NORMAL}},
    {"6.3.1",
     "EILSEQ 1006 >close(1007)",
     {TEXT("\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80"
           "edited")}},
    {"6.3.2, another frame",
     "EILSEQ 1006 >close(1007)",
     {BEGIN("\xce\xba\xed"), MORE("\xa0"), LAST("\x80")}},
    {"6.4.1, before the end", "EILSEQ 1006 >close(1007)", {BEGIN("ok\xf4"), MORE("\x90")}},
    {"6.4, not finished", "EILSEQ 1006 >close(1007)", {TEXT("\xe2\x82")}},
    {"6.4, not finished by the last",
     "EILSEQ 1006 >close(1007)",
     {BEGIN("\xf0\x9f"), LAST("\x98")}},
    {"6.4, not finished by an empty last", "EILSEQ 1006 >close(1007)", {BEGIN("\xc3"), LAST("")}},
    {"6.5, bounds of 2",
     "t(\\c2\\80) t(\\df\\bf) EPIPE 1000 >close(1000)",
     {TEXT("\xc2\x80"), TEXT("\xdf\xbf"), NORMAL}},
    {"6.6, bounds of 3",
     "t(\\e0\\a0\\80) t(\\ed\\9f\\bf) t(\\ee\\80\\80) t(\\ef\\bf\\bf) EPIPE 1000 >close(1000)",
     {TEXT("\xe0\xa0\x80"), TEXT("\xed\x9f\xbf"), TEXT("\xee\x80\x80"), TEXT("\xef\xbf\xbf"),
      NORMAL}},
    {"6.7, bounds of 4",
     "t(\\f0\\90\\80\\80) t(\\f4\\8f\\bf\\bf) EPIPE 1000 >close(1000)",
     {TEXT("\xf0\x90\x80\x80"), TEXT("\xf4\x8f\xbf\xbf"), NORMAL}},
    {"6.8, too high", "EILSEQ 1006 >close(1007)", {TEXT("\xf4\x90\x80\x80")}},
    {"6.9, five", "EILSEQ 1006 >close(1007)", {TEXT("\xf8\x88\x80\x80\x80")}},
    {"6.10, six", "EILSEQ 1006 >close(1007)", {TEXT("\xfc\x84\x80\x80\x80\x80")}},
    {"6.12, alone", "EILSEQ 1006 >close(1007)", {TEXT("\x80")}},
    {"6.13, two of them", "EILSEQ 1006 >close(1007)", {TEXT("01234567\x80\xbf")}},
    {"6.14, none behind", "EILSEQ 1006 >close(1007)", {TEXT("\xc3 ")}},
    {"6.15, none behind", "EILSEQ 1006 >close(1007)", {TEXT("\xe2\x82 x")}},
    {"6.16, FE and FF", "EILSEQ 1006 >close(1007)", {TEXT("\xfe\xff")}},
    {"6.17, longer than it has to be", "EILSEQ 1006 >close(1007)", {TEXT("\xc0\xaf")}},
    {"6.18, the same in 3", "EILSEQ 1006 >close(1007)", {TEXT("\xe0\x9f\xbf")}},
    {"6.19, the same in 4", "EILSEQ 1006 >close(1007)", {TEXT("\xf0\x8f\xbf\xbf")}},
    {"6.20, surrogates", "EILSEQ 1006 >close(1007)", {TEXT("\xed\xa0\x80")}},
    {"6.21, pairs of them", "EILSEQ 1006 >close(1007)", {TEXT("\xed\xaf\xbf\xed\xbf\xbf")}},
    {"6.23, not of text", "b(\\ff\\c0) EPIPE 1000 >close(1000)", {BYTES("\xff\xc0"), NORMAL}},
    {"6, far behind ASCII",
     "t(" HUNDRED "\\c3\\bc" TEN ") EILSEQ 1006 >close(1007)",
     {TEXT(HUNDRED "\xc3\xbc" TEN), TEXT(HUNDRED "\xc3" TEN)}},
    /* 7: closing */
    {"7.1.1", "t(hello) EPIPE 1000 >close(1000)", {TEXT("hello"), NORMAL}},
    {"7.1.2", "EPIPE 1000 >close(1000)", {NORMAL, NORMAL}},
    {"7.1.3", "EPIPE 1000 >close(1000)", {NORMAL, PING("!")}},
    {"7.1.4", "EPIPE 1000 >close(1000)", {NORMAL, TEXT("late")}},
    {"7.3.1", "EPIPE 1005 >close()", {CLOSE("")}},
    {"7.3.2", "EPROTO 1006 >close(1002)", {CLOSE("x")}},
    {"7.3.4",
     "EPIPE 1000 'bye' >close(1000)",
     {CLOSE("\x03\xe8"
            "bye")}},
    {"7.3.5", "EPIPE 1000 '" OF_123 "' >close(1000)", {CLOSE("\x03\xe8" OF_123)}},
    {"7.3.6", "EPROTO 1006 >close(1002)", {CLOSE("\x03\xe8" OF_123 "x")}},
    {"7.5.1", "EILSEQ 1006 >close(1007)", {CLOSE("\x03\xe8\xce\xba\xed\xa0\x80")}},
    {"7.5, not finished",
     "EILSEQ 1006 >close(1007)",
     {CLOSE("\x03\xe8"
            "ok\xe2\x82")}},
    {"7.7.2", "EPIPE 1001 >close(1001)", {CLOSE("\x03\xe9")}},
    {"7.7.3", "EPIPE 1002 >close(1002)", {CLOSE("\x03\xea")}},
    {"7.7.4", "EPIPE 1003 >close(1003)", {CLOSE("\x03\xeb")}},
    {"7.7.5", "EPIPE 1007 >close(1007)", {CLOSE("\x03\xef")}},
    {"7.7.9", "EPIPE 1011 >close(1011)", {CLOSE("\x03\xf3")}},
    {"7.7, registered later", "EPIPE 1014 >close(1014)", {CLOSE("\x03\xf6")}},
    {"7.7.10", "EPIPE 3000 >close(3000)", {CLOSE("\x0b\xb8")}},
    {"7.7.13", "EPIPE 4999 >close(4999)", {CLOSE("\x13\x87")}},
    {"7.9.1", "EPROTO 1006 >close(1002)", {CLOSE("\0\0")}},
    {"7.9.2", "EPROTO 1006 >close(1002)", {CLOSE("\x03\xe7")}},
    {"7.9.3", "EPROTO 1006 >close(1002)", {CLOSE("\x03\xec")}},
    {"7.9.4", "EPROTO 1006 >close(1002)", {CLOSE("\x03\xed")}},
    {"7.9.5", "EPROTO 1006 >close(1002)", {CLOSE("\x03\xee")}},
    {"7.9, for TLS", "EPROTO 1006 >close(1002)", {CLOSE("\x03\xf7")}},
    {"7.9.6", "EPROTO 1006 >close(1002)", {CLOSE("\x03\xf8")}},
    {"7.9.9", "EPROTO 1006 >close(1002)", {CLOSE("\x0b\xb7")}},
    {"7.13.1", "EPROTO 1006 >close(1002)", {CLOSE("\x13\x88")}},
    {"7.13.2", "EPROTO 1006 >close(1002)", {CLOSE("\xff\xff")}},
    /* the stream's end */
    {"nothing", "ENODATA 1006", {{0, NULL, 0, 0}}},
    {"after a message", "t(hello) ENODATA 1006", {TEXT("hello")}},
    /* 9: bounds (70,000 bytes) */
    {"9, as large as it may be",
     "b[70000] EPIPE 1000 >close(1000)",
     {MANY(0x82, TEN, 7000), NORMAL}},
    {"9, larger", "EMSGSIZE 1006 >close(1009)", {MANY(0x82, TEN, 7001)}},
    {"9, larger together",
     "EMSGSIZE 1006 >close(1009)",
     {MANY(0x02, TEN, 6999), MORE(TEN), LAST("x")}},
    {"9, in 8 fragments",
     "b(12345) EMSGSIZE 1006 >close(1009)",
     {F(0x02, "1"), MORE("2"), MORE("3"), MORE("4"), LAST("5"), F(0x02, ""), MANY(0x00, "", 8),
      LAST("")}},
};

/* ---- Receiving a row ---- */

typedef struct fixture {
    bide_memory_pipe there, back;
    bide_memory_end ours, theirs;
    char *there_memory, *back_memory;
    bide_websocket websocket;
    char in[BIDE_WEBSOCKET_LEAST_BUFFER], out[BIDE_WEBSOCKET_LEAST_BUFFER];
    char log[LOG];
    size_t logged;
    char *sent; /* by the row */
    size_t size;
} fixture;

static void say(fixture *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(fixture *f, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    f->logged += (size_t)vsnprintf(f->log + f->logged, LOG - f->logged, format, arguments);
    va_end(arguments);
    assert_true(f->logged < LOG);
}

/* "name(bytes)", or of long ones "name[size]". */
static void say_bytes(fixture *f, const char *name, const char *data, size_t size)
{
    if (size > 124) {
        say(f, "%s[%zu]", name, size);
        return;
    }
    say(f, "%s(", name);
    for (size_t i = 0; i < size; i++)
        say(f, data[i] >= ' ' && data[i] <= '~' ? "%c" : "\\%02x", (unsigned char)data[i]);
    say(f, ")");
}

static const char *error_name(int status)
{
    switch (-status) {
    case EPIPE:
        return "EPIPE";
    case ENODATA:
        return "ENODATA";
    case EPROTO:
        return "EPROTO";
    case EILSEQ:
        return "EILSEQ";
    case EMSGSIZE:
        return "EMSGSIZE";
    default:
        return "another";
    }
}

struct receiver {
    bide_task task;
    fixture *fixture;
    bool in_pieces;
    bide_websocket_receive_operation receive;
    bide_spawned spawned;
    size_t count;
    int status;
    bool has_stopped;
    char *message;
};

bide_coroutine(receiver_body)
{
    bide_begin(receiver_body, struct receiver * self);
    for (;;) {
        bide_websocket *websocket = &self->fixture->websocket;
        bide_await_status(self->status,
                          self->in_pieces ? bide_websocket_receive_piece(&self->receive, websocket)
                                          : bide_websocket_receive(&self->receive, websocket,
                                                                   self->message, MESSAGE));
        if (self->status != 0)
            break;
        if (self->in_pieces) {
            assert_int_equal(self->receive.is_first, self->count == 0);
            assert_true(self->receive.count != 0 || self->receive.is_last);
            memcpy(self->message + self->count, self->receive.data, self->receive.count);
        }
        self->count += self->receive.count;
        if (!self->receive.is_last) {
            self->count += self->count == 0;
            continue;
        }
        say_bytes(self->fixture, self->receive.kind == BIDE_WEBSOCKET_TEXT ? "t" : "b",
                  self->message, self->count);
        say(self->fixture, " ");
        self->count = 0;
    }
    const bide_websocket_end *end = &self->fixture->websocket.end;
    self->has_stopped = true;
    if (self->status == -ECANCELED)
        bide_return(0);
    say(self->fixture, "%s %u", error_name(self->status), end->code);
    assert_int_equal(end->is_clean, self->status == -EPIPE);
    if (end->size != 0)
        say(self->fixture, " '%s'", end->reason);
    bide_end();
}

/* The row's bytes, masked or not. */
static void lay_out(fixture *f, const row *row, bool is_masked)
{
    uint8_t key[4] = {0x37, 0xfa, 0x21, 0x3d};
    uint8_t *at = (uint8_t *)f->sent;
    for (const frame *frame = row->frames; frame->data != NULL; frame++) {
        bool is_empty_often = frame->size == 0 && frame->repeated != 0;
        for (size_t times = is_empty_often ? frame->repeated : 1; times != 0; times--) {
            size_t size = frame->size * (frame->repeated != 0 ? frame->repeated : 1);
            *at++ = (uint8_t)frame->first;
            *at++ = (uint8_t)((is_masked ? 0x80 : 0) | (size < 126     ? size
                                                        : size < 65536 ? 126
                                                                       : 127));
            for (int byte = size < 126 ? 0 : size < 65536 ? 2 : 8; byte-- > 0;)
                *at++ = (uint8_t)(size >> (8 * byte));
            if (is_masked) {
                memcpy(at, key, 4);
                at += 4;
            }
            for (size_t i = 0; i < size; i++)
                *at++ = (uint8_t)frame->data[i % frame->size] ^ (is_masked ? key[i % 4] : 0);
        }
    }
    f->size = (size_t)((char *)at - f->sent);
}

/* What has been sent to the other side, frame by frame. */
static void say_answers(fixture *f, bool is_masked)
{
    static char answers[PIPE];
    bide_stream_operation operation;
    bide_stream stream = bide_stream_of_memory(&f->theirs);
    size_t size = 0;
    bide_stream_close(bide_stream_of_memory(&f->ours));
    for (;;) {
        bide_sync_wait(bide_stream_read(&operation, stream, answers + size, PIPE - size));
        if (bide_stream_count(&operation, stream) == 0)
            break;
        size += bide_stream_count(&operation, stream);
    }
    for (size_t at = 0; at < size;) {
        uint8_t *frame = (uint8_t *)answers + at;
        size_t length = frame[1] & 0x7f, header = is_masked ? 6 : 2;
        assert_int_equal(frame[1] >> 7, is_masked);
        assert_true(length <= 125 && at + header + length <= size);
        for (size_t i = 0; is_masked && i < length; i++)
            frame[header + i] ^= frame[2 + i % 4];
        if (frame[0] == 0x88 && length != 0)
            say(f, " >close(%u)", (unsigned)frame[header] << 8 | frame[header + 1]);
        else
            say_bytes(f,
                      frame[0] == 0x88   ? " >close"
                      : frame[0] == 0x8a ? " >pong"
                                         : " >unknown",
                      (char *)frame + header, length);
        at += header + length;
    }
}

static int make_fixture(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->there_memory = malloc(PIPE);
    f->back_memory = malloc(PIPE);
    f->sent = malloc(PIPE);
    *state = f;
    return 0;
}

static int drop_fixture(void **state)
{
    fixture *f = *state;
    free(f->there_memory);
    free(f->back_memory);
    free(f->sent);
    free(f);
    return 0;
}

static void write_some(fixture *f, size_t from, size_t to)
{
    bide_stream_operation operation;
    if (to > from)
        assert_int_equal(
            bide_sync_wait(bide_stream_write(&operation, bide_stream_of_memory(&f->theirs),
                                             f->sent + from, to - from)),
            0);
}

static const bide_websocket_options plain = {.most_message = MESSAGE, .most_fragments = 8};

static void open_websocket(fixture *f, const bide_websocket_options *options,
                           bide_websocket_role role)
{
    bide_websocket_options own = *options;
    bide_memory_pipe_init(&f->there, f->there_memory, PIPE);
    bide_memory_pipe_init(&f->back, f->back_memory, PIPE);
    f->ours = (bide_memory_end){&f->there, &f->back};
    f->theirs = (bide_memory_end){&f->back, &f->there};
    own.role = role;
    own.in = f->in;
    own.in_size = sizeof f->in;
    own.out = f->out;
    own.out_size = sizeof f->out;
    assert_int_equal(bide_websocket_init(&f->websocket, bide_stream_of_memory(&f->ours), &own), 0);
    f->logged = 0;
    f->log[0] = '\0';
}

/* The first `cut` bytes, then the others, by `step`; then the end. */
static void receive_row(fixture *f, const row *row, bide_websocket_role role, bool in_pieces,
                        size_t cut, size_t step)
{
    struct receiver receiver = {
        .fixture = f, .in_pieces = in_pieces, .message = malloc(MESSAGE + 1)};
    bide_event_waiter wait;
    open_websocket(f, &plain, role);
    write_some(f, 0, cut);
    bide_spawn(&receiver.spawned, &bide_default_context,
               bide_task_init(&receiver.task, &receiver_body));
    for (size_t at = cut; at < f->size; at += step)
        write_some(f, at, at + step < f->size ? at + step : f->size);
    bide_memory_pipe_end(&f->there);
    assert_int_equal(bide_sync_wait(bide_event_wait(&wait, &receiver.spawned.ended)), 0);
    free(receiver.message);
    say_answers(f, role == BIDE_WEBSOCKET_CLIENT);
    if (strcmp(f->log, row->expected) != 0)
        fail_msg("%s, as a %s, %s, cut at %zu by %zu: %s", row->name,
                 role == BIDE_WEBSOCKET_SERVER ? "server" : "client",
                 in_pieces ? "in pieces" : "in whole", cut, step, f->log);
}

/* After each byte the receive is asked to stop, or destroyed; and then begun again, with the same memory. */
static void receive_again_and_again(fixture *f, const row *row, bide_websocket_role role,
                                    bool in_pieces, bool is_destroyed)
{
    struct receiver receiver = {
        .fixture = f, .in_pieces = in_pieces, .message = malloc(MESSAGE + 1)};
    bide_websocket *websocket = &f->websocket;
    open_websocket(f, &plain, role);
    for (size_t at = 0; at <= f->size; at++) {
        bide_stop_source stop;
        bide_context context = bide_default_context;
        bide_stop_source_init(&stop);
        context.stop = &stop;
        receiver.has_stopped = false;
        if (is_destroyed) {
            bide_start(&receiver.task.frame, &receiver_body, &context);
            bide_resume(&receiver.task.frame);
        } else {
            bide_spawn(&receiver.spawned, &context, bide_task_init(&receiver.task, &receiver_body));
        }
        write_some(f, at, at < f->size ? at + 1 : at);
        if (at == f->size)
            bide_memory_pipe_end(&f->there);
        if (receiver.has_stopped)
            break;
        if (is_destroyed)
            bide_destroy(&receiver.task.frame);
        else
            bide_stop_request(&stop);
        assert_int_equal(receiver.has_stopped, !is_destroyed);
        assert_int_equal(websocket->status, 0);
    }
    free(receiver.message);
    say_answers(f, role == BIDE_WEBSOCKET_CLIENT);
    if (strcmp(f->log, row->expected) != 0)
        fail_msg("%s, as a %s, %s, %s: %s", row->name,
                 role == BIDE_WEBSOCKET_SERVER ? "server" : "client",
                 in_pieces ? "in pieces" : "in whole", is_destroyed ? "destroyed" : "stopped",
                 f->log);
}

static void a_receive_that_is_cut_short_or_destroyed_loses_nothing(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strstr(rows[i].name, "many") != NULL || strstr(rows[i].name, "5.19") != NULL)
            continue;
        for (int way = 0; way < 8; way++) {
            bide_websocket_role role = way & 1 ? BIDE_WEBSOCKET_CLIENT : BIDE_WEBSOCKET_SERVER;
            lay_out(f, &rows[i], role == BIDE_WEBSOCKET_SERVER);
            if (f->size < 1000)
                receive_again_and_again(f, &rows[i], role, way & 2, way & 4);
        }
    }
}

/* Of long rows not every byte: those around headers, and some. */
static size_t next_cut(const fixture *f, size_t cut)
{
    return cut < 300 || cut + 60 > f->size ? cut + 1 : cut + (f->size - cut > 4000 ? 3989 : 59);
}

static void each_row_comes_to_the_same_however_it_is_cut(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        /* (with more at once only the last ping is answered) */
        bool has_pings =
            strstr(rows[i].name, "many") != NULL || strstr(rows[i].name, "5.19") != NULL;
        for (int way = 0; way < 4; way++) {
            bide_websocket_role role = way & 1 ? BIDE_WEBSOCKET_CLIENT : BIDE_WEBSOCKET_SERVER;
            lay_out(f, &rows[i], role == BIDE_WEBSOCKET_SERVER);
            receive_row(f, &rows[i], role, way & 2, f->size, 1);
            if (has_pings)
                continue;
            for (size_t cut = 0; cut < f->size; cut = next_cut(f, cut))
                receive_row(f, &rows[i], role, way & 2, cut, f->size);
            if (f->size < 1000)
                receive_row(f, &rows[i], role, way & 2, 0, 1);
            receive_row(f, &rows[i], role, way & 2, 0, 1009);
        }
    }
}

/* ---- What no row can say ---- */

static void expect(fixture *f, const char *name, const char *bytes, size_t size,
                   bide_websocket_role role, const char *expected)
{
    row row = {name, expected, {{0}}};
    memcpy(f->sent, bytes, size);
    f->size = size;
    receive_row(f, &row, role, false, size, 1);
    receive_row(f, &row, role, true, 0, 1);
}

#define EXPECT(role, bytes, expected) \
    expect(f, #bytes, bytes, sizeof(bytes) - 1, BIDE_WEBSOCKET_##role, expected)

static void a_server_wants_masks_and_a_client_none(void **state)
{
    fixture *f = *state;
    EXPECT(SERVER, "\x81\x05hello", "EPROTO 1006 >close(1002)");
    EXPECT(CLIENT, "\x81\x85\0\0\0\0hello", "EPROTO 1006 >close(1002)");
    EXPECT(SERVER, "\x88\0", "EPROTO 1006 >close(1002)");
    EXPECT(SERVER, "\x81\x85\0\0\0\0hello", "t(hello) ENODATA 1006");
    EXPECT(CLIENT, "\x81\x05hello", "t(hello) ENODATA 1006");
}

static void a_size_is_written_in_as_few_bytes_as_it_can_be(void **state)
{
    fixture *f = *state;
    EXPECT(CLIENT, "\x81\x7e\0\x05hello", "EPROTO 1006 >close(1002)");
    EXPECT(CLIENT, "\x81\x7e\0\x7d", "EPROTO 1006 >close(1002)");
    EXPECT(CLIENT, "\x82\x7f\0\0\0\0\0\0\xff\xff", "EPROTO 1006 >close(1002)");
    EXPECT(CLIENT, "\x82\x7f\x80\0\0\0\0\1\0\0", "EPROTO 1006 >close(1002)");
    EXPECT(CLIENT, "\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff", "EMSGSIZE 1006 >close(1009)");
    EXPECT(CLIENT, "\x82\x7f\0\0\0\1\0\0\0\0", "EMSGSIZE 1006 >close(1009)");
}

static void the_end_within_a_frame_is_no_close(void **state)
{
    fixture *f = *state;
    EXPECT(CLIENT, "\x81", "ENODATA 1006");
    EXPECT(CLIENT, "\x81\x05hell", "ENODATA 1006");
    EXPECT(CLIENT, "\x88\x02\x03", "ENODATA 1006");
    EXPECT(SERVER, "\x81\x85\0\0\0", "ENODATA 1006");
}

/* Any bytes come to an end, which is one of those that there are. */
static void whatever_comes_it_ends(void **state)
{
    fixture *f = *state;
    uint64_t random = testing_seed();
    static const char firsts[] = "\x81\x82\x01\x02\x00\x80\x89\x8a\x88\x81\x01\x00";
    for (uint32_t round = 0; round < rounds_of(20000); round++) {
        struct receiver receiver = {.fixture = f, .message = malloc(MESSAGE + 1)};
        bide_event_waiter wait;
        uint64_t drawn = testing_random(&random);
        bide_websocket_role role = drawn & 1 ? BIDE_WEBSOCKET_CLIENT : BIDE_WEBSOCKET_SERVER;
        receiver.in_pieces = drawn & 2;
        f->size = 1 + (drawn >> 8) % 600;
        for (size_t i = 0; i < f->size; i++)
            f->sent[i] = (char)testing_random(&random);
        /* mostly frames, with something wrong here and there */
        for (size_t i = 0; drawn % 8 != 4 && i + 2 < f->size;) {
            size_t size = testing_random(&random) % 40;
            bool is_wrong = testing_random(&random) % 50 == 0;
            if (!is_wrong) {
                f->sent[i] = firsts[testing_random(&random) % (sizeof firsts - 1)];
                f->sent[i + 1] = (char)(size | (role == BIDE_WEBSOCKET_SERVER ? 0x80 : 0));
            }
            for (size_t j = i + 2; j < f->size && j < i + 6 + size; j++)
                f->sent[j] &= 0x7f;
            i += 2 + size + (role == BIDE_WEBSOCKET_SERVER ? 4 : 0);
        }
        open_websocket(f, &plain, role);
        bide_spawn(&receiver.spawned, &bide_default_context,
                   bide_task_init(&receiver.task, &receiver_body));
        for (size_t at = 0; at < f->size;) {
            size_t step = 1 + testing_random(&random) % 60;
            step = step < f->size - at ? step : f->size - at;
            write_some(f, at, at + step);
            at += step;
        }
        bide_memory_pipe_end(&f->there);
        assert_int_equal(bide_sync_wait(bide_event_wait(&wait, &receiver.spawned.ended)), 0);
        assert_string_not_equal(error_name(receiver.status), "another");
        assert_int_equal(receiver.status, f->websocket.status);
        f->logged = 0;
        say_answers(f, role == BIDE_WEBSOCKET_CLIENT);
        assert_null(strstr(f->log, ">unknown"));
        assert_true((strstr(f->log, ">close") != NULL) == (receiver.status != -ENODATA));
        free(receiver.message);
    }
}

static void what_came_with_the_handshake_is_received_first(void **state)
{
    fixture *f = *state;
    struct receiver receiver = {.fixture = f, .message = malloc(MESSAGE)};
    bide_event_waiter wait;
    open_websocket(f, &plain, BIDE_WEBSOCKET_CLIENT);
    bide_websocket_options options = plain;
    options.role = BIDE_WEBSOCKET_CLIENT;
    options.in = f->in;
    options.in_size = sizeof f->in;
    options.out = f->out;
    options.out_size = sizeof f->out;
    memcpy(f->in + 100, "\x81\x05hello\x81\x03yo", 11);
    options.initial = f->in + 100;
    options.initial_size = sizeof f->in + 1;
    assert_int_equal(bide_websocket_init(&f->websocket, bide_stream_of_memory(&f->ours), &options),
                     -EMSGSIZE);
    options.initial_size = 11;
    assert_int_equal(bide_websocket_init(&f->websocket, bide_stream_of_memory(&f->ours), &options),
                     0);
    bide_spawn(&receiver.spawned, &bide_default_context,
               bide_task_init(&receiver.task, &receiver_body));
    assert_string_equal(f->log, "t(hello) ");
    memcpy(f->sent, "u", 1);
    write_some(f, 0, 1);
    bide_memory_pipe_end(&f->there);
    assert_int_equal(bide_sync_wait(bide_event_wait(&wait, &receiver.spawned.ended)), 0);
    assert_string_equal(f->log, "t(hello) t(you) ENODATA 1006");
    options.in_size = BIDE_WEBSOCKET_LEAST_BUFFER - 1;
    assert_int_equal(bide_websocket_init(&f->websocket, bide_stream_of_memory(&f->ours), &options),
                     -EINVAL);
    free(receiver.message);
}

/* ---- The handshake ---- */

static bide_websocket_value value(const char *text)
{
    bide_websocket_value value = {text, text != NULL ? strlen(text) : 0};
    return value;
}

static void a_request_is_checked_and_answered(void **state)
{
    (void)state;
    char accept[BIDE_WEBSOCKET_ACCEPT + 1];
    bide_websocket_headers good = {.upgrade = value("websocket"),
                                   .connection = value("Upgrade"),
                                   .version = value("13"),
                                   .key = value("dGhlIHNhbXBsZSBub25jZQ==")};
    bide_websocket_headers it = good;
    assert_int_equal(bide_websocket_check_request(&it, accept), 0);
    assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    it.upgrade = value("h2c, WebSocket");
    it.connection = value("keep-alive,\tUPGRADE ");
    assert_int_equal(bide_websocket_check_request(&it, accept), 0);
    it.connection = value("keep-alive, upgraded");
    assert_int_equal(bide_websocket_check_request(&it, accept), -EINVAL);
    it = good;
    it.upgrade = value(NULL);
    assert_int_equal(bide_websocket_check_request(&it, accept), -EINVAL);
    it = good;
    it.version = value("8");
    assert_int_equal(bide_websocket_check_request(&it, accept), -EPROTONOSUPPORT);
    it.version = value(NULL);
    assert_int_equal(bide_websocket_check_request(&it, accept), -EINVAL);
    it = good;
    static const char *const keys[] = {NULL,
                                       "",
                                       "dGhlIHNhbXBsZSBub25jZQ=",
                                       "dGhlIHNhbXBsZSBub25jZR==",
                                       "dGhlIHNhbXBsZSBub25jZQ===",
                                       "dGhlIHNhbXBsZSBub25jZQ=a",
                                       "dGhlIHNhbXBsZSBub25j*Q=="};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        it.key = value(keys[i]);
        assert_int_equal(bide_websocket_check_request(&it, accept), -EINVAL);
    }
}

static void an_answer_is_checked(void **state)
{
    (void)state;
    const char key[] = "dGhlIHNhbXBsZSBub25jZQ==";
    bide_websocket_headers good = {.upgrade = value("WebSocket"),
                                   .connection = value("upgrade"),
                                   .accept = value("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")};
    bide_websocket_headers it = good;
    assert_int_equal(bide_websocket_check_answer(101, &it, key, NULL), 0);
    assert_int_equal(bide_websocket_check_answer(200, &it, key, NULL), -ECONNREFUSED);
    it.accept = value("s3pPLMBiTxaQ9kYGzzhZRbK+xOO=");
    assert_int_equal(bide_websocket_check_answer(101, &it, key, NULL), -EPROTO);
    it = good;
    it.connection = value("close");
    assert_int_equal(bide_websocket_check_answer(101, &it, key, NULL), -EPROTO);
    it = good;
    it.extensions = value("permessage-deflate"); /* that nobody asked for */
    assert_int_equal(bide_websocket_check_answer(101, &it, key, NULL), -EPROTO);
    it = good;
    it.protocol = value("chat");
    assert_int_equal(bide_websocket_check_answer(101, &it, key, NULL), -EPROTO);
    assert_int_equal(bide_websocket_check_answer(101, &it, key, "superchat"), -EPROTO);
    assert_int_equal(bide_websocket_check_answer(101, &it, key, "superchat, chat"), 0);
}

static void a_key_is_new_and_is_taken(void **state)
{
    (void)state;
    char keys[2][BIDE_WEBSOCKET_KEY + 1], accept[BIDE_WEBSOCKET_ACCEPT + 1];
    assert_int_equal(bide_websocket_make_key(keys[0]), 0);
    assert_int_equal(bide_websocket_make_key(keys[1]), 0);
    assert_string_not_equal(keys[0], keys[1]);
    bide_websocket_headers request = {.upgrade = value("websocket"),
                                      .connection = value("Upgrade"),
                                      .version = value("13"),
                                      .key = value(keys[0])};
    assert_int_equal(bide_websocket_check_request(&request, accept), 0);
    bide_websocket_headers answer = {
        .upgrade = value("websocket"), .connection = value("Upgrade"), .accept = value(accept)};
    assert_int_equal(bide_websocket_check_answer(101, &answer, keys[0], NULL), 0);
    assert_int_equal(bide_websocket_check_answer(101, &answer, keys[1], NULL), -EPROTO);
}

static void the_first_protocol_of_ours_that_is_offered_is_chosen(void **state)
{
    (void)state;
    bide_websocket_value chosen =
        bide_websocket_choose_protocol(value("a, chat ,b"), "log, b, chat");
    assert_int_equal(chosen.size, 1);
    assert_memory_equal(chosen.data, "b", 1);
    assert_null(bide_websocket_choose_protocol(value("Chat"), "chat").data);
    assert_null(bide_websocket_choose_protocol(value(NULL), "chat").data);
    assert_null(bide_websocket_choose_protocol(value(""), "").data);
}

#define test(function) cmocka_unit_test_setup_teardown(function, make_fixture, drop_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(each_row_comes_to_the_same_however_it_is_cut),
        test(a_receive_that_is_cut_short_or_destroyed_loses_nothing),
        test(a_server_wants_masks_and_a_client_none),
        test(a_size_is_written_in_as_few_bytes_as_it_can_be),
        test(the_end_within_a_frame_is_no_close),
        test(whatever_comes_it_ends),
        test(what_came_with_the_handshake_is_received_first),
        cmocka_unit_test(a_request_is_checked_and_answered),
        cmocka_unit_test(an_answer_is_checked),
        cmocka_unit_test(a_key_is_new_and_is_taken),
        cmocka_unit_test(the_first_protocol_of_ours_that_is_offered_is_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
