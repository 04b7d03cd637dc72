/*
 * Requests to a server of HTTP/1.1 in memory. They arrive in whole, byte by byte, and in pieces whose sizes are drawn from
 * the input's first bytes. The responses, the ends of the connections, and all that the handlers have received are the
 * same, also if a connection ends with an error. Only an interim 100 may be missing, if the body has arrived with the head.
 */
#include "../http/http_peer.h"
#include "fuzz.h"

const unsigned fuzz_executions = 4000;
const char *const fuzz_words[] = {
    "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n", "POST /echo HTTP/1.1\r\nHost: a\r\n", "POST /count HTTP/1.1\r\nHost: a\r\n",
    "Content-Length: 5\r\n\r\nabcde", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "Expect: 100-continue\r\n",
    "Connection: close\r\n", "Connection: keep-alive\r\n", "HTTP/1.0", "\r\n\r\n", "0\r\n\r\n", "A;x=\"y\"\r\n", "X-Trailer: t\r\n",
    "HEAD ", "OPTIONS * ", "/chunks", "/fails", "/fails-late", "/short", "/nothing", "/last", "/reads-slowly", "/upgrade", NULL};

/* An echoed body has room in the server's buffer, so its response does not show in what pieces it was written. */
enum { SIZES = 4, INPUT = 2048, OUTPUT = 16384 };

/* What a conversation has come to. */
struct result {
    int status;
    unsigned begun;
    size_t read, body_size, output_size;
    char body[sizeof handled.body], trailer[sizeof handled.trailer], output[65536];
};

static peer server;

/* Copies the output without interim responses. */
static size_t copy_without_interim(char *to, const char *from, size_t size)
{
    static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
    size_t copied = 0;
    for (size_t at = 0; at < size;) {
        if (size - at >= sizeof interim - 1 && memcmp(from + at, interim, sizeof interim - 1) == 0)
            at += sizeof interim - 1;
        else
            to[copied++] = from[at++];
    }
    return copied;
}

/* Returns false if there is too much output to be compared. */
static bool converse(struct result *result, const char *input, size_t size)
{
    fuzz_parses++;
    result->status = peer_say_bytes(&server, input, size);
    FUZZ_REQUIRE(server.server.stats.live == 0);
    if (server.output_size > sizeof result->output)
        return false;
    result->begun = handled.begun;
    result->read = handled.read;
    result->body_size = handled.body_size;
    memcpy(result->body, handled.body, sizeof result->body);
    memcpy(result->trailer, handled.trailer, sizeof result->trailer);
    result->output_size = copy_without_interim(result->output, server.output, server.output_size);
    return true;
}

static void require_same(const struct result *one, const struct result *other, const char *how)
{
    bool is_same = one->status == other->status && one->begun == other->begun && one->read == other->read &&
                   one->body_size == other->body_size && memcmp(one->body, other->body, one->body_size) == 0 &&
                   memcmp(one->trailer, other->trailer, sizeof one->trailer) == 0 && one->output_size == other->output_size &&
                   memcmp(one->output, other->output, one->output_size) == 0;
    if (!is_same)
        fprintf(stderr, "in whole: %d, %u requests, %zu bytes read; %s: %d, %u, %zu\n--\n%.*s\n--\n%.*s\n--\n", one->status, one->begun,
                one->read, how, other->status, other->begun, other->read, (int)one->output_size, one->output,
                (int)other->output_size, other->output);
    FUZZ_REQUIRE(is_same);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    static struct result whole, pieces;
    static bool has_begun;
    if (size <= SIZES || size > INPUT)
        return 0;
    if (!has_begun)
        peer_init(&server, &(bide_http_options){.read_buffer_size = 2048, .write_buffer_size = OUTPUT});
    has_begun = true;
    char *text = fuzz_copy(input + SIZES, size - SIZES);
    static const uint8_t one_by_one[] = {0};
    server.sizes = NULL;
    server.pause = 0;
    bool is_small = converse(&whole, text, size - SIZES);
    server.pause = 1; /* (so the server has taken a piece before the next one) */
    server.sizes = one_by_one;
    server.size_count = 1;
    FUZZ_REQUIRE(converse(&pieces, text, size - SIZES) == is_small);
    if (is_small)
        require_same(&whole, &pieces, "byte by byte");
    server.sizes = input;
    server.size_count = SIZES;
    FUZZ_REQUIRE(converse(&pieces, text, size - SIZES) == is_small);
    if (is_small)
        require_same(&whole, &pieces, "in pieces");
    free(text);
    return 0;
}
