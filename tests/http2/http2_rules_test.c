/*
 * The rules of RFC 9113 and RFC 7541 for what a server does with frames: the connection's errors and the streams', what
 * is ignored, and what is answered. A row is a section, what the client sends behind the preface and its settings, and
 * what the server has to do. Each row is also sent in pieces.
 *
 * The frames of the server are taken apart here, without nghttp2.
 */
#include "../http/http_peer.h"
#include "bide/http2.h"

static peer one;
static bide_http2 http2;

enum { DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION };
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4, PADDED = 8, WITH_PRIORITY = 32 };
enum {
    NO_ERROR,
    PROTOCOL_ERROR,
    INTERNAL_ERROR,
    FLOW_CONTROL_ERROR,
    SETTINGS_TIMEOUT,
    STREAM_CLOSED,
    FRAME_SIZE_ERROR,
    REFUSED_STREAM,
    CANCEL,
    COMPRESSION_ERROR
};

struct frame {
    int type, flags;
    uint32_t id;
    const char *data;
    size_t size;
    size_t zeros; /* that follow */
};

/* What the server has to do. */
enum verdict {
    END = 1, /* ends the connection with this code */
    RESET,   /* ends stream 1 with this code, or the connection */
    ANSWER,  /* responds on stream 1, and the connection goes on */
    GO_ON    /* the connection goes on */
};

struct row {
    const char *section, *what;
    enum verdict verdict;
    int code, other; /* which is also allowed; 0: none */
    struct frame frames[5];
};

#define BYTES(string)        string, sizeof string - 1
#define GET_HEAD             "\x82\x86\x84\x41\x01" "a"
#define POST_HEAD            "\x83\x86\x84\x41\x01" "a"
#define FRAME(type, flags, id, string) {type, flags, id, BYTES(string), 0}
#define ZEROS(type, flags, id, count)  {type, flags, id, "", 0, count}
#define GET(id)              FRAME(HEADERS, END_STREAM | END_HEADERS, id, GET_HEAD)
#define POST(id)             FRAME(HEADERS, END_HEADERS, id, POST_HEAD)
#define GET_WITH(fields)     FRAME(HEADERS, END_STREAM | END_HEADERS, 1, GET_HEAD fields)
#define POST_WITH(fields)    FRAME(HEADERS, END_HEADERS, 1, POST_HEAD fields)
#define LITERAL(n, name, v, value) "\x00" n name v value

static const struct row rows[] = {
    {"3.4", "a request", ANSWER, 0, 0, {GET(1)}},
    {"4.1", "a frame of an unknown type", GO_ON, 0, 0, {FRAME(0x16, 0xff, 0, "12345678")}},
    {"4.1", "a frame of an unknown type on a stream", ANSWER, 0, 0, {GET(1), FRAME(0x16, 0, 1, "12345678")}},
    {"4.1", "undefined flags", ANSWER, 0, 0, {FRAME(HEADERS, END_STREAM | END_HEADERS | 0x52, 1, GET_HEAD)}},
    {"4.1", "the reserved bit", ANSWER, 0, 0, {FRAME(HEADERS, END_STREAM | END_HEADERS, 0x80000001, GET_HEAD)}},
    {"4.2", "data of the largest size", ANSWER, 0, 0, {POST(1), ZEROS(DATA, END_STREAM, 1, 16384)}},
    {"4.2", "data that is too large", END, FRAME_SIZE_ERROR, 0, {POST(1), ZEROS(DATA, END_STREAM, 1, 16385)}},
    {"4.2", "a head that is too large", END, FRAME_SIZE_ERROR, 0, {ZEROS(HEADERS, END_STREAM | END_HEADERS, 1, 16385)}},
    {"4.3", "a head that cannot be decompressed", END, COMPRESSION_ERROR, 0, {FRAME(HEADERS, END_STREAM | END_HEADERS, 1, "\x00\x08x")}},
    {"4.3", "another frame inside a head", END, PROTOCOL_ERROR, 0, {FRAME(HEADERS, END_STREAM, 1, GET_HEAD), FRAME(PRIORITY, 0, 1, "\0\0\0\0\0")}},
    {"4.3", "another stream's head inside a head", END, PROTOCOL_ERROR, 0, {FRAME(HEADERS, END_STREAM, 1, GET_HEAD), GET(3)}},
    {"5.1", "data of an idle stream", END, PROTOCOL_ERROR, STREAM_CLOSED, {FRAME(DATA, END_STREAM, 1, "x")}},
    {"5.1", "a reset of an idle stream", END, PROTOCOL_ERROR, 0, {FRAME(RST_STREAM, 0, 1, "\0\0\0\x08")}},
    {"5.1", "a window of an idle stream", END, PROTOCOL_ERROR, 0, {FRAME(WINDOW_UPDATE, 0, 1, "\0\0\0\1")}},
    {"5.1", "a priority of an idle stream", GO_ON, 0, 0, {FRAME(PRIORITY, 0, 1, "\0\0\0\0\xff")}},
    {"5.1", "a continuation of an idle stream", END, PROTOCOL_ERROR, 0, {FRAME(CONTINUATION, END_HEADERS, 1, GET_HEAD)}},
    {"5.1", "data behind the end", RESET, STREAM_CLOSED, 0, {GET(1), FRAME(DATA, END_STREAM, 1, "x")}},
    {"5.1", "a head behind the end", RESET, STREAM_CLOSED, 0, {GET(1), GET(1)}},
    {"5.1", "a continuation behind the end", END, PROTOCOL_ERROR, STREAM_CLOSED, {GET(1), FRAME(CONTINUATION, END_HEADERS, 1, "\x82")}},
    {"5.1", "a window behind the end", ANSWER, 0, 0, {GET(1), FRAME(WINDOW_UPDATE, 0, 1, "\0\0\0\1")}},
    {"5.1", "data behind a reset", END, STREAM_CLOSED, 0, {POST(1), FRAME(RST_STREAM, 0, 1, "\0\0\0\x08"), FRAME(DATA, END_STREAM, 1, "x")}},
    {"5.1", "a head behind a reset", END, STREAM_CLOSED, 0, {POST(1), FRAME(RST_STREAM, 0, 1, "\0\0\0\x08"), GET(1)}},
    {"5.1.1", "an even number", END, PROTOCOL_ERROR, 0, {GET(2)}},
    {"5.1.1", "a number that is smaller than another", END, PROTOCOL_ERROR, 0, {GET(5), GET(3)}},
    {"5.1.1", "a number that is much smaller", END, PROTOCOL_ERROR, 0, {GET(1), GET(129), GET(3)}},
    {"5.1.1", "numbers that are left out", ANSWER, 0, 0, {GET(1), GET(5), GET(4001)}},
    {"5.1.1", "the largest number", GO_ON, 0, 0, {GET(0x7fffffff)}},
    {"5.1.1", "a number behind the largest", END, PROTOCOL_ERROR, 0, {GET(0x7fffffff), GET(0x7ffffffd)}},
    {"5.1.1", "trailers of an earlier stream", ANSWER, 0, 0,
     {POST(1), GET(7), FRAME(HEADERS, END_STREAM | END_HEADERS, 1, LITERAL("\1", "t", "\1", "1"))}},
    {"6.1", "data of stream 0", END, PROTOCOL_ERROR, 0, {FRAME(DATA, END_STREAM, 0, "x")}},
    {"6.1", "padding of data", ANSWER, 0, 0, {POST(1), FRAME(DATA, END_STREAM | PADDED, 1, "\2x\0\0")}},
    {"6.1", "padding as long as the data", END, PROTOCOL_ERROR, 0, {POST(1), FRAME(DATA, END_STREAM | PADDED, 1, "\2x")}},
    {"6.1", "data without the length of its padding", END, FRAME_SIZE_ERROR, PROTOCOL_ERROR, {POST(1), FRAME(DATA, END_STREAM | PADDED, 1, "")}},
    {"6.2", "a head of stream 0", END, PROTOCOL_ERROR, 0, {GET(0)}},
    {"6.2", "padding of a head", ANSWER, 0, 0, {FRAME(HEADERS, END_STREAM | END_HEADERS | PADDED, 1, "\1" GET_HEAD "\0")}},
    {"6.2", "padding longer than the head", END, PROTOCOL_ERROR, 0, {FRAME(HEADERS, END_STREAM | END_HEADERS | PADDED, 1, "\x0a" GET_HEAD)}},
    {"6.2", "a head with a priority", ANSWER, 0, 0, {FRAME(HEADERS, END_STREAM | END_HEADERS | WITH_PRIORITY, 1, "\0\0\0\0\xff" GET_HEAD)}},
    {"6.2", "a head that is shorter than its priority", END, FRAME_SIZE_ERROR, PROTOCOL_ERROR, {FRAME(HEADERS, END_STREAM | END_HEADERS | WITH_PRIORITY, 1, "\0\0")}},
    {"6.3", "a priority of stream 0", END, PROTOCOL_ERROR, 0, {FRAME(PRIORITY, 0, 0, "\0\0\0\0\0")}},
    {"6.3", "a priority of 4 bytes", RESET, FRAME_SIZE_ERROR, 0, {POST(1), FRAME(PRIORITY, 0, 1, "\0\0\0\0")}},
    {"6.4", "a reset of stream 0", END, PROTOCOL_ERROR, 0, {FRAME(RST_STREAM, 0, 0, "\0\0\0\x08")}},
    {"6.4", "a reset of 3 bytes", END, FRAME_SIZE_ERROR, 0, {POST(1), FRAME(RST_STREAM, 0, 1, "\0\0\x08")}},
    {"6.5", "settings of a stream", END, PROTOCOL_ERROR, 0, {FRAME(SETTINGS, 0, 1, "\0\3\0\0\0\1")}},
    {"6.5", "an acknowledgement with a payload", END, FRAME_SIZE_ERROR, 0, {FRAME(SETTINGS, ACK, 0, "\0\3\0\0\0\1")}},
    {"6.5", "settings of 7 bytes", END, FRAME_SIZE_ERROR, 0, {FRAME(SETTINGS, 0, 0, "\0\3\0\0\0\1\0")}},
    {"6.5.2", "a push that is neither 0 nor 1", END, PROTOCOL_ERROR, 0, {FRAME(SETTINGS, 0, 0, "\0\2\0\0\0\2")}},
    {"6.5.2", "a window that is too large", END, FLOW_CONTROL_ERROR, 0, {FRAME(SETTINGS, 0, 0, "\0\4\x80\0\0\0")}},
    {"6.5.2", "frames that are too small", END, PROTOCOL_ERROR, 0, {FRAME(SETTINGS, 0, 0, "\0\5\0\0\x3f\xff")}},
    {"6.5.2", "frames that are too large", END, PROTOCOL_ERROR, 0, {FRAME(SETTINGS, 0, 0, "\0\5\1\0\0\0")}},
    {"6.5.2", "an unknown setting", ANSWER, 0, 0, {FRAME(SETTINGS, 0, 0, "\0\xff\0\0\0\1"), GET(1)}},
    {"6.5.3", "one setting twice", ANSWER, 0, 0, {FRAME(SETTINGS, 0, 0, "\0\4\0\0\0\1\0\4\0\0\xff\xff"), GET(1)}},
    {"6.6", "a push", END, PROTOCOL_ERROR, 0, {FRAME(PUSH_PROMISE, END_HEADERS, 1, "\0\0\0\2" GET_HEAD)}},
    {"6.7", "an answer to no ping", GO_ON, 0, 0, {FRAME(PING, ACK, 0, "invalid!")}},
    {"6.7", "a ping of a stream", END, PROTOCOL_ERROR, 0, {FRAME(PING, 0, 1, "12345678")}},
    {"6.7", "a ping of 7 bytes", END, FRAME_SIZE_ERROR, 0, {FRAME(PING, 0, 0, "1234567")}},
    {"6.7", "a ping of 9 bytes", END, FRAME_SIZE_ERROR, 0, {FRAME(PING, 0, 0, "123456789")}},
    {"6.8", "a goodbye of a stream", END, PROTOCOL_ERROR, 0, {FRAME(GOAWAY, 0, 1, "\0\0\0\0\0\0\0\0")}},
    {"6.8", "a goodbye of 7 bytes", END, FRAME_SIZE_ERROR, 0, {FRAME(GOAWAY, 0, 0, "\0\0\0\0\0\0\0")}},
    {"6.9", "a window of 0 for the connection", END, PROTOCOL_ERROR, 0, {FRAME(WINDOW_UPDATE, 0, 0, "\0\0\0\0")}},
    {"6.9", "a window of 0 for a stream", RESET, PROTOCOL_ERROR, 0, {POST(1), FRAME(WINDOW_UPDATE, 0, 1, "\0\0\0\0")}},
    {"6.9", "a window of 3 bytes", END, FRAME_SIZE_ERROR, 0, {FRAME(WINDOW_UPDATE, 0, 0, "\0\0\1")}},
    {"6.9.1", "a connection's window that overflows", END, FLOW_CONTROL_ERROR, 0, {FRAME(WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff")}},
    {"6.9.1", "a stream's window that overflows", RESET, FLOW_CONTROL_ERROR, 0, {POST(1), FRAME(WINDOW_UPDATE, 0, 1, "\x7f\xff\xff\xff")}},
    /* (the RFC ends the connection for this one; nghttp2 ends the stream) */
    {"6.9.2", "settings that make a window overflow", RESET, FLOW_CONTROL_ERROR, 0,
     {POST(1), FRAME(WINDOW_UPDATE, 0, 1, "\0\0\1\0"), FRAME(SETTINGS, 0, 0, "\0\4\x7f\xff\xff\xff")}},
    {"6.10", "a head in three frames", ANSWER, 0, 0,
     {FRAME(HEADERS, END_STREAM, 1, "\x82\x86"), FRAME(CONTINUATION, 0, 1, "\x84\x41"), FRAME(CONTINUATION, END_HEADERS, 1, "\1a")}},
    {"6.10", "a continuation behind the end of a head", END, PROTOCOL_ERROR, 0, {POST(1), FRAME(CONTINUATION, END_HEADERS, 1, "\x82")}},
    {"6.10", "a continuation of another stream", END, PROTOCOL_ERROR, 0, {FRAME(HEADERS, END_STREAM, 1, "\x82\x86"), FRAME(CONTINUATION, END_HEADERS, 3, "\x84")}},
    {"6.10", "a continuation of stream 0", END, PROTOCOL_ERROR, 0, {FRAME(HEADERS, END_STREAM, 1, "\x82\x86"), FRAME(CONTINUATION, END_HEADERS, 0, "\x84")}},
    {"6.10", "a continuation behind data", END, PROTOCOL_ERROR, 0, {POST(1), FRAME(DATA, 0, 1, "x"), FRAME(CONTINUATION, END_HEADERS, 1, "\x84")}},
    {"8.1", "a second head that does not end the stream", RESET, PROTOCOL_ERROR, 0, {POST(1), FRAME(HEADERS, END_HEADERS, 1, LITERAL("\1", "t", "\1", "1"))}},
    {"8.1", "a pseudo-field in trailers", RESET, PROTOCOL_ERROR, 0, {POST(1), FRAME(HEADERS, END_STREAM | END_HEADERS, 1, "\x82")}},
    {"8.1.1", "a body that is longer than its length", RESET, PROTOCOL_ERROR, 0, {POST_WITH(LITERAL("\x0e", "content-length", "\1", "1")), FRAME(DATA, END_STREAM, 1, "xy")}},
    {"8.1.1", "a body that is shorter than its length", RESET, PROTOCOL_ERROR, 0, {POST_WITH(LITERAL("\x0e", "content-length", "\1", "3")), FRAME(DATA, 0, 1, "x"), FRAME(DATA, END_STREAM, 1, "y")}},
    {"8.2.1", "a name in upper case", RESET, PROTOCOL_ERROR, 0, {GET_WITH(LITERAL("\1", "X", "\1", "1"))}},
    {"8.2.1", "a value with a line feed", RESET, PROTOCOL_ERROR, 0, {GET_WITH(LITERAL("\1", "x", "\1", "\n"))}},
    {"8.2.2", "Connection", RESET, PROTOCOL_ERROR, 0, {GET_WITH(LITERAL("\x0a", "connection", "\5", "close"))}},
    {"8.2.2", "TE with more than trailers", RESET, PROTOCOL_ERROR, 0, {GET_WITH(LITERAL("\2", "te", "\x0d", "trailers,gzip"))}},
    {"8.2.2", "TE with trailers", ANSWER, 0, 0, {GET_WITH(LITERAL("\2", "te", "\x08", "trailers"))}},
    {"8.3", "an unknown pseudo-field", RESET, PROTOCOL_ERROR, 0, {GET_WITH(LITERAL("\2", ":x", "\1", "1"))}},
    {"8.3", "a pseudo-field of responses", RESET, PROTOCOL_ERROR, 0, {GET_WITH("\x88")}},
    {"8.3", "a pseudo-field behind a field", RESET, PROTOCOL_ERROR, 0, {FRAME(HEADERS, END_STREAM | END_HEADERS, 1, LITERAL("\1", "x", "\1", "1") GET_HEAD)}},
    {"8.3.1", "no method", RESET, PROTOCOL_ERROR, 0, {FRAME(HEADERS, END_STREAM | END_HEADERS, 1, "\x86\x84\x41\1a")}},
    {"8.3.1", "no scheme", RESET, PROTOCOL_ERROR, 0, {FRAME(HEADERS, END_STREAM | END_HEADERS, 1, "\x82\x84\x41\1a")}},
    {"8.3.1", "no path", RESET, PROTOCOL_ERROR, 0, {FRAME(HEADERS, END_STREAM | END_HEADERS, 1, "\x82\x86\x41\1a")}},
    {"8.3.1", "an empty path", RESET, PROTOCOL_ERROR, 0, {FRAME(HEADERS, END_STREAM | END_HEADERS, 1, "\x82\x86\x04\0\x41\1a")}},
    {"8.3.1", "two methods", RESET, PROTOCOL_ERROR, 0, {GET_WITH("\x82")}},
    {"8.3.1", "two schemes", RESET, PROTOCOL_ERROR, 0, {GET_WITH("\x86")}},
    {"8.3.1", "two paths", RESET, PROTOCOL_ERROR, 0, {GET_WITH("\x84")}},
    {"HPACK 2.3.3", "an index that is too large", END, COMPRESSION_ERROR, 0, {GET_WITH("\xff\x05")}},
    {"HPACK 2.3.3", "a name's index that is too large", END, COMPRESSION_ERROR, 0, {GET_WITH("\x7f\x1f\1x")}},
    {"HPACK 4.2", "a table size at the end of a head", END, COMPRESSION_ERROR, 0, {GET_WITH("\x20")}},
    {"HPACK 4.2", "a table size at its beginning", ANSWER, 0, 0, {FRAME(HEADERS, END_STREAM | END_HEADERS, 1, "\x20" GET_HEAD)}},
    {"HPACK 5.1", "an integer that is too large", END, COMPRESSION_ERROR, 0, {GET_WITH("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")}},
    {"HPACK 5.2", "padding longer than 7 bits", END, COMPRESSION_ERROR, 0, {GET_WITH("\0\x85\xf2\xb2\x4a\x84\xff\x84\x49\x50\x9f\xff")}},
    {"HPACK 5.2", "padding of zeros", END, COMPRESSION_ERROR, 0, {GET_WITH("\0\x85\xf2\xb2\x4a\x84\xff\x83\x49\x50\x90")}},
    {"HPACK 5.2", "the symbol for the end", END, COMPRESSION_ERROR, 0, {GET_WITH("\0\x85\xf2\xb2\x4a\x84\xff\x87\xff\xff\xff\xfa\x8d\x7f\xff")}},
    {"HPACK 6.1", "the index 0", END, COMPRESSION_ERROR, 0, {GET_WITH("\x80")}},
    {"HPACK 6.3", "a table size above the settings", END, COMPRESSION_ERROR, 0, {FRAME(HEADERS, END_STREAM | END_HEADERS, 1, "\x3f\xe2\x1f" GET_HEAD)}},
};

/* ---- What the client sends ---- */

static char input[80000];
static size_t input_size;

static void put_frame(const struct frame *frame)
{
    size_t size = frame->size + frame->zeros;
    char head[9] = {(char)(size >> 16),       (char)(size >> 8),        (char)size,
                    (char)frame->type,        (char)frame->flags,       (char)(frame->id >> 24),
                    (char)(frame->id >> 16),  (char)(frame->id >> 8),   (char)frame->id};
    assert_true(input_size + sizeof head + size < sizeof input);
    memcpy(input + input_size, head, sizeof head);
    memcpy(input + input_size + sizeof head, frame->data, frame->size);
    memset(input + input_size + sizeof head + frame->size, 0, frame->zeros);
    input_size += sizeof head + size;
}

static void start_input(void)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    memcpy(input, preface, sizeof preface - 1);
    input_size = sizeof preface - 1;
    put_frame(&(struct frame)FRAME(SETTINGS, 0, 0, ""));
}

/* ---- What the server sends ---- */

static struct {
    bool is_ended; /* by a code */
    uint32_t code;
    bool is_reset; /* stream 1 */
    uint32_t reset_code;
    bool is_answered; /* stream 1 */
    bool has_pong;
    bool has_settings_ack;
    size_t first_data; /* of stream 1 */
} server;

static uint32_t number_at(const char *at)
{
    const unsigned char *bytes = (const unsigned char *)at;
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void take_output_apart(void)
{
    memset(&server, 0, sizeof server);
    for (size_t at = 0; at < one.output_size;) {
        const char *frame = one.output + at;
        assert_true(one.output_size - at >= 9);
        size_t size = number_at(frame) >> 8;
        uint32_t id = number_at(frame + 5);
        int type = frame[3], flags = frame[4];
        assert_true(one.output_size - at >= 9 + size);
        if (type == GOAWAY && number_at(frame + 13) != NO_ERROR) {
            server.is_ended = true;
            server.code = number_at(frame + 13);
        } else if (type == RST_STREAM && id == 1 && number_at(frame + 9) != NO_ERROR) {
            server.is_reset = true;
            server.reset_code = number_at(frame + 9);
        } else if (type == HEADERS && id == 1) {
            server.is_answered = true;
        } else if (type == DATA && id == 1 && server.first_data == 0) {
            server.first_data = size;
        } else if (type == PING && (flags & ACK) != 0) {
            server.has_pong = memcmp(frame + 9, "the last", 8) == 0;
        } else if (type == SETTINGS && (flags & ACK) != 0) {
            server.has_settings_ack = true;
        }
        at += 9 + size;
    }
}

static bool is_code(const struct row *row, uint32_t code)
{
    return code == (uint32_t)row->code || (row->other != 0 && code == (uint32_t)row->other);
}

static bool is_as_expected(const struct row *row)
{
    switch (row->verdict) {
    case END:
        return server.is_ended && is_code(row, server.code);
    case RESET:
        return (server.is_reset && is_code(row, server.reset_code)) ||
               (server.is_ended && is_code(row, server.code));
    case ANSWER:
        return server.is_answered && server.has_pong && !server.is_ended && !server.is_reset;
    default:
        return server.has_pong && !server.is_ended;
    }
}

static void say_rows_in_pieces(size_t piece)
{
    unsigned wrong = 0;
    one.piece = piece;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        start_input();
        for (size_t k = 0; k < sizeof row->frames / sizeof *row->frames && row->frames[k].data != NULL; k++)
            put_frame(&row->frames[k]);
        put_frame(&(struct frame)FRAME(PING, 0, 0, "the last"));
        (void)peer_say_bytes(&one, input, input_size);
        take_output_apart();
        if (!is_as_expected(row)) {
            printf("# %s: %s: ended %d (%u), reset %d (%u), answered %d, pong %d\n", row->section, row->what,
                   server.is_ended, server.code, server.is_reset, server.reset_code, server.is_answered, server.has_pong);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

static int set_up(void **state)
{
    (void)state;
    peer_init(&one, NULL);
    assert_int_equal(bide_http2_init(&http2, &one.server, &(bide_http2_options){.is_plain = true}), 0);
    one.ends = false;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    peer_end(&one);
    return 0;
}

/* ---- Tests ---- */

static void frames_have_their_effect(void **state)
{
    (void)state;
    say_rows_in_pieces(0);
    printf("# %zu rows\n", sizeof rows / sizeof *rows);
}

static void frames_in_pieces_have_the_same_effect(void **state)
{
    (void)state;
    say_rows_in_pieces(7);
    say_rows_in_pieces(64);
}

static void settings_are_acknowledged(void **state)
{
    (void)state;
    start_input();
    (void)peer_say_bytes(&one, input, input_size);
    take_output_apart();
    assert_true(server.has_settings_ack && !server.is_ended);
    assert_int_equal(one.output[3], SETTINGS); /* the server's come first */
}

static void a_window_of_one_byte_is_kept(void **state)
{
    (void)state;
    start_input();
    put_frame(&(struct frame)FRAME(SETTINGS, 0, 0, "\0\4\0\0\0\1"));
    put_frame(&(struct frame)GET(1));
    (void)peer_say_bytes(&one, input, input_size);
    take_output_apart();
    assert_true(server.is_answered);
    assert_int_equal(server.first_data, 1);
}

/* Heads of streams that were opened, and of those that were not, for all distances. */
static void only_streams_that_were_left_out_may_not_be_opened_later(void **state)
{
    (void)state;
    for (uint32_t distance = 2; distance < 300; distance += 2) {
        for (int was_opened = 0; was_opened < 2; was_opened++) {
            start_input();
            if (was_opened)
                put_frame(&(struct frame)POST(1001 - distance));
            put_frame(&(struct frame)GET(1001));
            put_frame(&(struct frame)FRAME(HEADERS, END_STREAM | END_HEADERS, 1001 - distance, LITERAL("\1", "t", "\1", "1")));
            put_frame(&(struct frame)FRAME(PING, 0, 0, "the last"));
            (void)peer_say_bytes(&one, input, input_size);
            take_output_apart();
            if (was_opened || distance / 2 >= 64)
                assert_true(server.has_pong && !server.is_ended);
            else
                assert_true(server.is_ended && server.code == PROTOCOL_ERROR);
        }
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(frames_have_their_effect),
        TEST(frames_in_pieces_have_the_same_effect),
        TEST(settings_are_acknowledged),
        TEST(a_window_of_one_byte_is_kept),
        TEST(only_streams_that_were_left_out_may_not_be_opened_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
