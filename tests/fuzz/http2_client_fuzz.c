/*
 * A hostile server's bytes at the client of HTTP/2, over memory: three requests are under way, one without a body, one with a
 * body in memory, and one that writes its body in pieces. The first three bytes of the input say how they do that, in what
 * pieces the bytes arrive, and how many of them come before the others. Each request ends once, and the client releases
 * everything (http2_client_peer.h). A second reader of frames, which knows nothing but their heads, has the body of each
 * response that is complete. A response that is complete is the same however its bytes arrived.
 */
#include "../http2/http2_client_peer.h"
#include "fuzz.h"

const unsigned fuzz_executions = 2000;
const char *const fuzz_words[] = {"\x88", "\x08\x03" "103", "\x0f\x0d\x01" "3", "\x01\x04", "\x01\x05", "\x09\x04", "\x04\x01", "\x03", "\x06",
                                  "\x07", "\x08", "\x04", "\x05", "content-length", "\x3f\xe1\x1f", ":status", NULL};

enum { OPTIONS = 3, INPUT = 4096, REQUESTS = 3, HEAD = 9, BODY = 3000, DEADLINE = 1, LATE = 2, SHUT_DOWN = 4, CLOSES = 8, SLOW = 16 };

/* ---- The second reader ---- */

static struct body {
    bool has_ended;
    size_t size;
    char data[INPUT];
} bodies[REQUESTS];

/* Notes the DATA of the streams 1, 3 and 5, each up to its end. */
static void second_read(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < REQUESTS; i++) {
        bodies[i].has_ended = false;
        bodies[i].size = 0;
    }
    for (size_t at = 0; size - at >= HEAD;) {
        size_t length = (size_t)data[at] << 16 | (size_t)data[at + 1] << 8 | data[at + 2];
        uint8_t type = data[at + 3], flags = data[at + 4];
        uint32_t id = talk3_number(data + at + 5) & INT32_MAX;
        const uint8_t *payload = data + at + HEAD;
        if (length > size - at - HEAD)
            return;
        at += HEAD + length;
        struct body *body = id % 2 != 0 && id / 2 < REQUESTS ? &bodies[id / 2] : NULL;
        if (type > 1 || body == NULL || body->has_ended)
            continue;
        body->has_ended = flags & 1;
        size_t padding = flags & 8 && length != 0 ? 1 + (size_t)payload[0] : 0;
        if (type != 0 || padding > length)
            continue;
        memcpy(body->data + body->size, payload + (padding != 0), length - padding);
        body->size += length - padding;
    }
}

/* ---- The client ---- */

static talk3 one;

/* The ends of the requests on the streams 1, 3 and 5. */
static struct outcome {
    int status, code;
    size_t size;
} others[REQUESTS];

static void converse(const uint8_t *data, size_t size, uint8_t flags, size_t cut, size_t pipe, uint64_t seed)
{
    static char body[BODY];
    one.job_count = one.step_count = 0;
    job *get = talk3_job(&one, "/"), *whole = talk3_post(&one, "/", body, 64), *pieces = talk3_post(&one, "/", body, BODY);
    pieces->piece = 700;
    pieces->is_unknown = true;
    pieces->trailer = "1";
    get->deadline = flags & DEADLINE ? 3 * SECOND : 0;
    get->reads = flags & SLOW ? 1 : 0;
    whole->deadline = flags & DEADLINE ? 60 * SECOND : 0;
    pieces->begins_at = flags & LATE ? SECOND : 0;
    one.shut_down_at = flags & SHUT_DOWN ? 2 * SECOND : 0;
    one.closes = flags & CLOSES;
    one.seed = seed;
    one.pipe = pipe;
    fuzz_parses++;
    talk3_step(&one, 0, (const char *)data, cut);
    talk3_step(&one, 0, (const char *)data + cut, size - cut);
    one.steps[1].pause = 2 * SECOND;
    (void)talk3_run(&one);
    for (size_t i = 0; i < REQUESTS; i++) {
        const job *job = &one.jobs[i];
        FUZZ_REQUIRE(job->status <= 0);
        if (job->status != 0)
            continue;
        FUZZ_REQUIRE(job->code >= 200 && job->code <= 999 && job->request.id >= 1 && job->request.id / 2 < REQUESTS);
        const struct body *second = &bodies[job->request.id / 2];
        FUZZ_REQUIRE(second->has_ended && job->size == second->size);
        FUZZ_REQUIRE(memcmp(job->answer, second->data, job->size < ANSWER - 1 ? job->size : ANSWER - 1) == 0);
    }
}

/* The streams of the requests depend on the order in which they begin. */
static void keep_outcomes(void)
{
    for (size_t i = 0; i < REQUESTS; i++)
        others[i].status = -EINPROGRESS;
    for (const job *job = one.jobs; job != one.jobs + REQUESTS; job++)
        if (job->status == 0)
            others[job->request.id / 2] = (struct outcome){0, job->code, job->size};
}

static void require_same(void)
{
    for (const job *job = one.jobs; job != one.jobs + REQUESTS; job++) {
        const struct outcome *other = job->status == 0 ? &others[job->request.id / 2] : NULL;
        if (other != NULL && other->status == 0)
            FUZZ_REQUIRE(other->code == job->code && other->size == job->size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    static bool has_begun;
    if (size < OPTIONS || size > INPUT)
        return 0;
    if (!has_begun)
        talk3_init(&one); /* (for all inputs) */
    has_begun = true;
    uint8_t *data = fuzz_copy(input + OPTIONS, size - OPTIONS);
    size -= OPTIONS;
    size_t cut = input[2] == 255 || input[2] > size ? size : input[2];
    second_read(data, size);
    converse(data, size, input[0], cut, 0, 0);
    keep_outcomes();
    converse(data, size, input[0], cut, 1 + input[1] % 64u, 0);
    require_same();
    converse(data, size, input[0], cut, input[1] < 128 ? 0 : input[1] % 128u + 9, 1 + input[1]);
    require_same();
    free(data);
    return 0;
}
