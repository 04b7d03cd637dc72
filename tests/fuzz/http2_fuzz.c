/*
 * Frames of HTTP/2 arrive behind the preface at a server in memory: in pieces of a size that the first byte of the input says,
 * in whole, and in pieces whose sizes are drawn from the input. All that the server sends is read by a second reader of
 * frames, with nghttp2's decoder of heads: its frames are well-formed, each response begins with a head, and nothing follows
 * the end of a stream. A response that is complete is the same however its request arrived. (Whether it is complete, and which
 * error ends the connection, may depend on the time: a frame may find its stream open or closed.) The server ends, and holds
 * no memory (http2_peer.h).
 */
#include "../http2/http2_talk.h"
#include "fuzz.h"

const unsigned fuzz_executions = 4000;
const char *const fuzz_words[] = {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x82\x84\x86", "/hello", "/echo", "/chunks", "\x01\x05", "\x01\x04",
                                  "\x08", "\x03", "\x07", "\x09\x04", "\x04\x01", "\x06", NULL};

enum { PREFACE = 24, HEAD = 9, MAX_STREAMS = 400, SIZES = 8 };

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/* ---- Reading the output ---- */

static char output[1 << 18];

static struct stream_state {
    uint32_t id;
    bool has_head, has_ended, is_complete;
    int status;
    size_t body; /* bytes of it */
    uint64_t sum;
} streams[MAX_STREAMS], others[MAX_STREAMS];
static size_t stream_count, other_count;

static struct stream_state *stream_of(uint32_t id)
{
    for (size_t i = 0; i < stream_count; i++)
        if (streams[i].id == id)
            return &streams[i];
    FUZZ_REQUIRE(stream_count < MAX_STREAMS);
    streams[stream_count] = (struct stream_state){.id = id};
    return &streams[stream_count++];
}

/* Decodes a block of fields. Returns the status, or 0 of trailers. */
static int decode_head(nghttp2_hd_inflater *inflater, const uint8_t *data, size_t size, bool is_last)
{
    int status = 0;
    for (;;) {
        nghttp2_nv field;
        int flags = 0;
        ssize_t used = nghttp2_hd_inflate_hd2(inflater, &field, &flags, data, size, is_last);
        FUZZ_REQUIRE(used >= 0);
        data += used;
        size -= (size_t)used;
        if (flags & NGHTTP2_HD_INFLATE_EMIT) {
            FUZZ_REQUIRE(field.namelen != 0);
            for (size_t i = 0; i < field.namelen; i++)
                FUZZ_REQUIRE(field.name[i] > ' ' && field.name[i] < 0x7f && !(field.name[i] >= 'A' && field.name[i] <= 'Z'));
            for (size_t i = 0; i < field.valuelen; i++)
                FUZZ_REQUIRE(field.value[i] >= ' ' || field.value[i] == '\t');
            if (field.namelen == 7 && memcmp(field.name, ":status", 7) == 0)
                status = (field.value[0] - '0') * 100 + (field.value[1] - '0') * 10 + field.value[2] - '0';
        }
        if (flags & NGHTTP2_HD_INFLATE_FINAL) {
            nghttp2_hd_inflate_end_headers(inflater);
            return status;
        }
        if (size == 0)
            return status;
    }
}

static void read_output(const uint8_t *data, size_t size)
{
    static const uint8_t sizes[] = {0, 0, 5, 4, 0, 4, 8, 0, 4};
    nghttp2_hd_inflater *inflater;
    size_t at = 0;
    fuzz_parses++;
    bool is_first = true, in_head = false;
    struct stream_state *head_of = NULL;
    int status = 0;
    stream_count = 0;
    FUZZ_REQUIRE(nghttp2_hd_inflate_new(&inflater) == 0);
    while (size - at >= HEAD) {
        size_t length = (size_t)data[at] << 16 | (size_t)data[at + 1] << 8 | data[at + 2];
        uint8_t type = data[at + 3], flags = data[at + 4];
        uint32_t id = (uint32_t)data[at + 5] << 24 | (uint32_t)data[at + 6] << 16 | (uint32_t)data[at + 7] << 8 | data[at + 8];
        const uint8_t *payload = data + at + HEAD;
        FUZZ_REQUIRE(type <= NGHTTP2_CONTINUATION && length <= 16384 && id >> 31 == 0);
        FUZZ_REQUIRE(!is_first || type == NGHTTP2_SETTINGS);
        FUZZ_REQUIRE(in_head == (type == NGHTTP2_CONTINUATION));
        is_first = false;
        if (size - at - HEAD < length)
            break;
        if (type < sizeof sizes && sizes[type] != 0)
            FUZZ_REQUIRE(type == NGHTTP2_PRIORITY || length == sizes[type]);
        bool is_of_connection = type == NGHTTP2_SETTINGS || type == NGHTTP2_PING || type == NGHTTP2_GOAWAY;
        FUZZ_REQUIRE(type == NGHTTP2_WINDOW_UPDATE || is_of_connection == (id == 0));
        struct stream_state *stream = type == NGHTTP2_DATA || type == NGHTTP2_HEADERS ? stream_of(id) : head_of;
        FUZZ_REQUIRE(type != NGHTTP2_PUSH_PROMISE);
        if (type == NGHTTP2_DATA) {
            FUZZ_REQUIRE(stream->has_head && !stream->has_ended && (flags & NGHTTP2_FLAG_PADDED) == 0);
            stream->body += length;
            for (size_t i = 0; i < length; i++)
                stream->sum = (stream->sum ^ payload[i]) * UINT64_C(0x100000001b3);
        }
        if (type == NGHTTP2_HEADERS || type == NGHTTP2_CONTINUATION) {
            FUZZ_REQUIRE(!stream->has_ended && (flags & (NGHTTP2_FLAG_PADDED | NGHTTP2_FLAG_PRIORITY)) == 0);
            in_head = (flags & NGHTTP2_FLAG_END_HEADERS) == 0;
            int found = decode_head(inflater, payload, length, !in_head);
            status = type == NGHTTP2_HEADERS || found != 0 ? found : status;
            head_of = stream;
            if (!in_head) {
                FUZZ_REQUIRE(stream->has_head ? status == 0 : status >= 100 && status <= 599);
                stream->has_head |= status >= 200;
                stream->status = status != 0 ? status : stream->status;
            }
        }
        if (stream != NULL && (type == NGHTTP2_DATA || type == NGHTTP2_HEADERS) && (flags & NGHTTP2_FLAG_END_STREAM) != 0)
            stream->has_ended = stream->is_complete = true;
        if (type == NGHTTP2_RST_STREAM)
            stream_of(id)->has_ended = true;
        at += HEAD + length;
    }
    nghttp2_hd_inflate_del(inflater);
}

/* Compares with another conversation, which had the same input. */
static void require_same(void)
{
    for (size_t i = 0; i < other_count; i++) {
        if (!others[i].is_complete)
            continue;
        const struct stream_state *stream = stream_of(others[i].id);
        if (stream->is_complete)
            FUZZ_REQUIRE(stream->status == others[i].status && stream->body == others[i].body && stream->sum == others[i].sum);
    }
}

static void converse(void)
{
    one.client.copy_size = 0;
    FUZZ_REQUIRE(talk2_run(&one) <= 0);
    read_output((const uint8_t *)output, one.client.copy_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    static char bytes[PREFACE + 4096];
    static bool has_begun;
    if (size == 0 || size > 4096)
        return 0;
    if (!has_begun)
        talk2_init(&one); /* (for all inputs) */
    has_begun = true;
    memcpy(bytes, preface, PREFACE);
    memcpy(bytes + PREFACE, input + 1, size - 1);
    one.client.piece = input[0] & 127;
    one.client.keeps = input[0] & 128;
    one.client.is_raw = true;
    one.client.raw = bytes;
    one.client.raw_size = PREFACE + size - 1;
    one.client.ask_count = 0;
    one.client.copy = output;
    one.client.copy_max = sizeof output;
    one.client.sizes = NULL;
    converse();
    memcpy(others, streams, sizeof others);
    other_count = stream_count;
    one.client.piece = 0;
    converse();
    require_same();
    one.client.sizes = input;
    one.client.size_count = size < SIZES ? size : SIZES;
    converse();
    require_same();
    return 0;
}
