/*
 * Multipart bodies of requests to a server in memory. They arrive in whole, byte by byte, and in pieces whose sizes are the
 * input's first bytes. The parts, their data, and the status of the response are those of a second parser, which has the
 * whole body before it and is written from RFC 2046 and RFC 7578.
 */
#include "../http/http_peer.h"
#include "fuzz.h"

#include <bide/http_multipart.h>

const unsigned fuzz_executions = 3000;
const char *const fuzz_words[] = {
    "--b\r\n", "\r\n--b\r\n", "\r\n--b--", "--b--\r\n", "\r\n--b  \r\n", "\r\n--b", "\r\n\r\n", "Content-Disposition: form-data; name=\"a\"\r\n",
    "Content-Disposition: form-data; name=a; filename=\"x\\\"y\"\r\n", "Content-Disposition: attachment\r\n", "Content-Type: text/plain\r\n",
    "; name=\"b\"", "; filename=c", "X-A: 1\r\n", "\r\n--", "\r", "\n", "\"", "\\", ";", NULL};

enum { SIZES = 4, INPUT = 2048, PARTS = 5 };

/* What a reader finds, as text. */
struct found {
    int status;
    size_t size;
    char text[16384];
};

static void note(struct found *found, const char *data, size_t size)
{
    FUZZ_REQUIRE(size <= sizeof found->text - found->size);
    if (size != 0)
        memcpy(found->text + found->size, data, size);
    found->size += size;
}

/* A text that may be missing, and may contain any bytes. */
static void note_text(struct found *found, const char *data, size_t size)
{
    char length[32];
    note(found, length, (size_t)sprintf(length, data != NULL ? "<%zu:" : "<none", size));
    note(found, data, size);
    note(found, ">", 1);
}

/* ---- The library's ---- */

struct reader {
    bide_http_exchange exchange;
    bide_http_multipart parts;
    char memory[4096];
    char data[7];
};

static struct found first;
static bool skips; /* each second part is not read */

static void note_part(const bide_http_multipart *parts)
{
    note_text(&first, parts->name.data, parts->name.size);
    note_text(&first, parts->filename.data, parts->filename.size);
    note_text(&first, parts->type.data, parts->type.size);
    for (size_t i = 0; i < parts->field_count; i++)
        note_text(&first, parts->fields[i].name.data, parts->fields[i].name.size);
}

bide_coroutine(reader_body)
{
    bide_begin(reader_body, struct reader * self);
    handled.begun++;
    first.size = 0;
    first.status = bide_http_multipart_init(&self->parts, &self->exchange, self->memory, sizeof self->memory,
                                            &(bide_http_multipart_options){.max_parts = PARTS});
    FUZZ_REQUIRE(first.status == 0);
    for (;;) {
        bide_await_status(first.status, bide_http_next_part(&self->parts));
        if (first.status < 0 || !self->parts.has_part)
            break;
        note_part(&self->parts);
        while (!skips || self->parts.parts % 2 != 0) {
            bide_await_status(first.status, bide_http_read_part(&self->parts, self->data, sizeof self->data));
            note(&first, self->data, self->parts.count);
            if (first.status < 0 || self->parts.count == 0)
                break;
        }
        if (first.status < 0)
            break;
    }
    if (first.status < 0)
        bide_return(first.status);
    bide_try(bide_http_respond(&self->exchange, "ok", 2));
    bide_finally();
    handled.ended++;
    bide_end();
}

/* ---- The second parser ---- */

struct text {
    const char *data; /* NULL: none */
    size_t size;
};

static bool is_token(const char *data, size_t size)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < size; i++) {
        int c = (unsigned char)data[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c != 0 && strchr(others, c) != NULL)))
            return false;
    }
    return size != 0;
}

static struct text trimmed(const char *data, const char *end)
{
    while (data != end && (*data == ' ' || *data == '\t'))
        data++;
    while (end != data && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    return (struct text){data, (size_t)(end - data)};
}

static bool is_word(struct text text, const char *word)
{
    return text.size == strlen(word) && strncasecmp(text.data, word, text.size) == 0;
}

/* Parses `name="value"; ...` behind the type. The values are unescaped into `*room`. */
static bool parse_disposition(struct text text, char **room, struct text *name, struct text *filename, bool *is_form)
{
    const char *at = text.data, *end = at + text.size;
    const char *semicolon = memchr(at, ';', text.size);
    *is_form = is_word(trimmed(at, semicolon != NULL ? semicolon : end), "form-data");
    at = semicolon != NULL ? semicolon : end;
    for (;;) {
        while (at != end && (*at == ';' || *at == ' ' || *at == '\t'))
            at++;
        if (at == end)
            return true;
        const char *equals = memchr(at, '=', (size_t)(end - at));
        if (equals == NULL || !is_token(at, (size_t)(equals - at)))
            return false;
        struct text key = {at, (size_t)(equals - at)}, value = {*room, 0};
        at = equals + 1;
        if (at != end && *at == '"') {
            for (at++; at != end && *at != '"'; at++) {
                bool is_escape = *at == '\\' && end - at > 1;
                if (is_escape && (at[1] == '"' || at[1] == '\\')) {
                    (*room)[value.size++] = *++at;
                } else if (is_escape) { /* (browsers do not escape a backslash, so it stays) */
                    (*room)[value.size++] = *at++;
                    (*room)[value.size++] = *at;
                } else {
                    (*room)[value.size++] = *at;
                }
            }
            if (at == end)
                return false;
            at++;
        } else {
            while (at != end && is_token(at, 1))
                (*room)[value.size++] = *at++;
            if (value.size == 0)
                return false;
        }
        *room += value.size;
        while (at != end && (*at == ' ' || *at == '\t'))
            at++;
        if (at != end && *at != ';')
            return false;
        struct text *to = is_word(key, "name") ? name : is_word(key, "filename") ? filename : NULL;
        if (to != NULL && to->data != NULL)
            return false;
        if (to != NULL)
            *to = value;
    }
}

static bool is_value(struct text text)
{
    for (size_t i = 0; i < text.size; i++)
        if (((unsigned char)text.data[i] < ' ' && text.data[i] != '\t') || text.data[i] == 127)
            return false;
    return true;
}

/* Parses the lines of a head. Returns 0 or an error. */
static int second_head(struct found *found, const char *at, const char *end)
{
    static char memory[2 * INPUT];
    char *room = memory;
    struct text name = {NULL, 0}, filename = {NULL, 0}, type = {NULL, 0}, disposition = {NULL, 0}, names[BIDE_HTTP_PART_FIELDS];
    size_t count = 0;
    bool is_form = false;
    for (const char *next; at != end; at = next + 2) {
        next = memmem(at, (size_t)(end - at), "\r\n", 2);
        const char *colon = memchr(at, ':', (size_t)(next - at));
        if (colon == NULL || !is_token(at, (size_t)(colon - at)))
            return -EBADMSG;
        struct text key = {at, (size_t)(colon - at)}, value = trimmed(colon + 1, next);
        if (!is_value(value))
            return -EBADMSG;
        if (count == BIDE_HTTP_PART_FIELDS)
            return -EMSGSIZE;
        names[count++] = key;
        struct text *to = is_word(key, "content-type") ? &type : is_word(key, "content-disposition") ? &disposition : NULL;
        if (to != NULL && to->data != NULL)
            return -EBADMSG;
        if (to != NULL)
            *to = value;
    }
    if (disposition.data == NULL || !parse_disposition(disposition, &room, &name, &filename, &is_form) || !is_form || name.data == NULL)
        return -EBADMSG;
    note_text(found, name.data, name.size);
    note_text(found, filename.data, filename.size);
    note_text(found, type.data, type.size);
    for (size_t i = 0; i < count; i++)
        note_text(found, names[i].data, names[i].size);
    return 0;
}

/* How many of these bytes, which no delimiter ends, cannot be the beginning of one. */
static size_t data_before(const char *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        size_t rest = size - i < 5 ? size - i : 5;
        if (size - i < 5 && memcmp(data + i, "\r\n--b", rest) == 0)
            return i;
    }
    return size;
}

/* Parses what follows "\r\n": the body has it before its first byte. */
static int second_parse(struct found *found, const char *body, size_t size)
{
    const char *at = body, *end = body + size;
    for (unsigned parts = 0;; parts++) {
        const char *delimiter = memmem(at, (size_t)(end - at), "\r\n--b", 5);
        bool is_read = parts != 0 && (!skips || parts % 2 != 0);
        if (is_read)
            note(found, at, delimiter != NULL ? (size_t)(delimiter - at) : data_before(at, (size_t)(end - at)));
        if (delimiter == NULL)
            return -EBADMSG;
        at = delimiter + 5;
        bool is_last = end - at >= 2 && memcmp(at, "--", 2) == 0;
        const char *spaces = at;
        while (!is_last && at != end && (*at == ' ' || *at == '\t'))
            at++;
        if (!is_last && (at - spaces > 64 || end - at < 2 || memcmp(at, "\r\n", 2) != 0))
            return -EBADMSG;
        if (is_last)
            return 0;
        at += 2;
        const char *empty = end - at >= 2 && memcmp(at, "\r\n", 2) == 0 ? at : memmem(at, (size_t)(end - at), "\r\n\r\n", 4);
        if (empty == NULL)
            return -EBADMSG;
        if (empty != at)
            empty += 2;
        if (parts == PARTS)
            return -EFBIG;
        int status = second_head(found, at, empty);
        if (status != 0)
            return status;
        /* (a delimiter may begin with the empty line, and the body may end in it) */
        size_t rest = end - empty < 5 ? (size_t)(end - empty) : 5;
        at = memcmp(empty, "\r\n--b", rest) == 0 ? empty : empty + 2;
    }
}

/* ---- The comparison ---- */

static void compare(peer *peer, const struct found *second, const char *request, size_t size, const char *how)
{
    int status = second->status == 0 ? 200 : second->status == -EFBIG ? 413 : second->status == -EMSGSIZE ? 431 : 400;
    fuzz_parses++;
    (void)peer_say_bytes(peer, request, size);
    bool is_same = handled.begun == 1 && first.status == second->status && first.size == second->size &&
                   memcmp(first.text, second->text, first.size) == 0 && atoi(peer->output + 9) == status;
    if (!is_same)
        fprintf(stderr, "%s: %d, response %.12s\n--\n%.*s\n--\nwanted: %d\n--\n%.*s\n--\n", how, first.status, peer->output,
                (int)first.size, first.text, second->status, (int)second->size, second->text);
    FUZZ_REQUIRE(is_same);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    static peer server;
    static bool has_begun;
    static struct found second;
    static const uint8_t one_by_one[] = {0};
    static char request[INPUT + 300];
    if (size <= SIZES || size > INPUT)
        return 0;
    if (!has_begun)
        peer_init(&server, &(bide_http_options){.handler = {&reader_body, sizeof(struct reader)}});
    has_begun = true;
    const char *body = (const char *)input + SIZES;
    size -= SIZES;
    char *whole = malloc(size + 2);
    FUZZ_REQUIRE(whole != NULL);
    memcpy(whole, "\r\n", 2);
    memcpy(whole + 2, body, size);
    size_t head = (size_t)sprintf(request, "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=b\r\n"
                                  "Content-Length: %zu\r\n\r\n", size);
    memcpy(request + head, body, size);
    skips = input[0] % 2 != 0;
    second.size = 0;
    second.status = second_parse(&second, whole, size + 2);
    server.sizes = NULL;
    server.pause = 0;
    compare(&server, &second, request, head + size, "in whole");
    server.pause = 1; /* (so the server has taken a piece before the next one) */
    server.sizes = one_by_one;
    server.size_count = 1;
    compare(&server, &second, request, head + size, "byte by byte");
    server.sizes = input;
    server.size_count = SIZES;
    compare(&server, &second, request, head + size, "in pieces");
    free(whole);
    return 0;
}
