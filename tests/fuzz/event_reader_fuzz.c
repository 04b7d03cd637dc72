/*
 * A stream of server-sent events: in whole, byte by byte, and in pieces whose sizes are the input's first bytes; with memory
 * of the size that its next byte says. Compared with a second implementation, which splits the whole text into lines as the
 * HTML Standard, 9.2.6, does: each event with its data, type, id and time to wait, and the error.
 */
#include <bide/http_event_reader.h>

#include "fuzz.h"

#include <errno.h>

enum { SIZES = 4, INPUT = 4096, LOG = 64 * INPUT };

const unsigned fuzz_executions = 30000;
const char *const fuzz_words[] = {"data: a\n\n", "data", "event: x\n", "id: 1\r\n", "id\n", "retry: 10\n", "retry: 0000000000", "4294967296",
                                  ":", ": ", "\r\n\r\n", "\r\r", "\n\n", "\xef\xbb\xbf", "\xef\xbb", "data:\n", "id: ", "event:", NULL};

/* What a reader has found, as text. */
struct found {
    int status; /* of its end */
    size_t size;
    char text[LOG];
};

static void note(struct found *found, const void *data, size_t size)
{
    FUZZ_REQUIRE(found->size + sizeof size + size <= LOG);
    memcpy(found->text + found->size, &size, sizeof size);
    found->size += sizeof size;
    if (size != 0)
        memcpy(found->text + found->size, data, size);
    found->size += size;
}

/* ---- The second implementation ---- */

struct second {
    char data[INPUT + 1];
    size_t data_size;
    const char *type, *id;
    size_t type_size, id_size;
    const char *last_id;
    size_t last_id_size;
    bool has_retry;
    uint32_t retry;
};

static void second_dispatch(struct second *second, struct found *found)
{
    second->last_id = second->id;
    second->last_id_size = second->id_size;
    if (second->data_size != 0) {
        bool has_type = second->type_size != 0;
        note(found, second->data, second->data_size - 1);
        note(found, has_type ? second->type : "message", has_type ? second->type_size : 7);
        note(found, second->last_id, second->last_id_size);
        note(found, second->has_retry ? &second->retry : NULL, second->has_retry ? sizeof second->retry : 0);
    }
    second->data_size = 0;
    second->type_size = 0;
}

static void second_retry(struct second *second, const char *value, size_t size)
{
    double number = 0;
    for (size_t i = 0; i < size; i++)
        if (value[i] < '0' || value[i] > '9')
            return;
    if (size == 0)
        return;
    for (size_t i = 0; i < size; i++)
        number = number * 10 + (value[i] - '0');
    second->has_retry = true;
    second->retry = number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
}

/* One line, without its end. An incomplete one counts only if its data is too long. Returns 0 or -EMSGSIZE. */
static int second_line(struct second *second, struct found *found, const char *line, size_t size, bool is_complete, size_t room)
{
    const char *colon = size != 0 ? memchr(line, ':', size) : NULL;
    size_t name_size = colon != NULL ? (size_t)(colon - line) : size;
    const char *value = colon != NULL ? colon + 1 : line + size, *end = line + size;
    if (value != end && *value == ' ')
        value++;
    size_t value_size = (size_t)(end - value);
#define IS(text) (name_size == sizeof(text) - 1 && memcmp(line, text, name_size) == 0)
    bool is_data = name_size != 0 && IS("data");
    if (is_data && second->data_size + value_size + is_complete > room)
        return -EMSGSIZE;
    if (!is_complete)
        return 0;
    if (size == 0) {
        second_dispatch(second, found);
    } else if (is_data) {
        memcpy(second->data + second->data_size, value, value_size);
        second->data_size += value_size;
        second->data[second->data_size++] = '\n';
    } else if (name_size != 0 && IS("event")) {
        if (value_size > BIDE_HTTP_EVENT_TYPE)
            return -EMSGSIZE;
        second->type = value;
        second->type_size = value_size;
    } else if (name_size != 0 && IS("id") && memchr(value, '\0', value_size) == NULL) {
        if (value_size > BIDE_HTTP_EVENT_ID)
            return -EMSGSIZE;
        second->id = value;
        second->id_size = value_size;
    } else if (name_size != 0 && IS("retry")) {
        second_retry(second, value, value_size);
    }
#undef IS
    return 0;
}

static void second_read(struct found *found, const char *text, size_t size, size_t room)
{
    static struct second second;
    const char *end = text + size;
    memset(&second, 0, sizeof second);
    found->size = 0;
    found->status = 0;
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3;
    for (const char *at = text; at != end && found->status == 0;) {
        const char *line = at;
        while (at != end && *at != '\r' && *at != '\n')
            at++;
        found->status = second_line(&second, found, line, (size_t)(at - line), at != end, room);
        if (end - at >= 2 && at[0] == '\r' && at[1] == '\n')
            at++;
        at += at != end;
    }
    note(found, second.last_id, second.last_id_size);
}

/* ---- The library's ---- */

/* Gives it to a reader in pieces of these sizes, in turn; 0: all that is left. */
static void read_pieces(struct found *found, const char *text, size_t size, size_t room, const uint8_t *sizes, size_t size_count)
{
    bide_http_event_reader reader;
    char *memory = malloc(room != 0 ? room : 1);
    FUZZ_REQUIRE(memory != NULL);
    fuzz_parses++;
    found->size = 0;
    found->status = 0;
    bide_http_event_reader_init(&reader, memory, room);
    for (size_t at = 0, turn = 0; at < size && found->status == 0; turn++) {
        size_t piece = sizes[turn % size_count];
        piece = piece == 0 || piece > size - at ? size - at : piece;
        char *copy = fuzz_copy(text + at, piece);
        bide_slice bytes = {copy, piece};
        while ((found->status = bide_http_next_event(&reader, &bytes)) == 1) {
            note(found, reader.data.data, reader.data.size);
            note(found, reader.type.data, reader.type.size);
            note(found, reader.id.data, reader.id.size);
            note(found, reader.has_retry ? &reader.retry : NULL, reader.has_retry ? sizeof reader.retry : 0);
        }
        if (found->status == 0)
            FUZZ_REQUIRE(bytes.size == 0);
        else
            FUZZ_REQUIRE(bide_http_next_event(&reader, &bytes) == found->status);
        free(copy);
        at += piece;
    }
    note(found, reader.id.data, reader.id.size);
    free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    static const uint8_t whole[] = {0}, one_by_one[] = {1};
    static struct found first, second;
    if (size <= SIZES || size > INPUT)
        return 0;
    const char *text = (const char *)input + SIZES + 1;
    size -= SIZES + 1;
    size_t room = input[SIZES] == 255 ? INPUT : input[SIZES];
    second_read(&second, text, size, room);
    for (int way = 0; way < 3; way++) {
        const uint8_t *sizes = way == 0 ? whole : way == 1 ? one_by_one : input;
        read_pieces(&first, text, size, room, sizes, way == 2 ? SIZES : 1);
        FUZZ_REQUIRE(first.status == second.status);
        FUZZ_REQUIRE(first.size == second.size && memcmp(first.text, second.text, first.size) == 0);
    }
    return 0;
}
