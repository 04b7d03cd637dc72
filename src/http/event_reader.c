/*
 * A reader of server-sent events.
 *
 *     START --a byte of a name--> NAME --":"--> COLON --a byte--> VALUE
 *       +--":"--> IGNORED            (each: --end of the line--> START)
 *
 * Why it is correct:
 * 1. The reader keeps the name of a field, up to the longest known one, and the value of a known field: of "data" behind
 *    the data of the event, of "event" and "id" in `value`, of "retry" as a number. So full memory holds back only data.
 *    Everything else is dropped, so its length does not matter.
 * 2. A line ends with "\r\n", "\n" or "\r". A "\r" ends it at once, and a "\n" that follows is skipped, also if it comes
 *    with the next bytes.
 * 3. An id counts when its event ends, with or without data. So a client that asks again after an event that was cut
 *    names the one before it.
 */
#include "bide/http_event_reader.h"

#include <errno.h>
#include <string.h>

enum {
    EVENT_READER_START,
    EVENT_READER_NAME,
    EVENT_READER_COLON,
    EVENT_READER_VALUE,
    EVENT_READER_IGNORED
};

enum {
    EVENT_READER_DATA,
    EVENT_READER_TYPE,
    EVENT_READER_ID,
    EVENT_READER_RETRY,
    EVENT_READER_UNKNOWN
};

void bide_http_event_reader_init(bide_http_event_reader *reader, void *memory, size_t size)
{
    memset(reader, 0, sizeof *reader);
    reader->memory = memory;
    reader->size = size;
    reader->id = (bide_slice){reader->ids, 0};
    bide_http_event_reader_restart(reader);
}

void bide_http_event_reader_restart(bide_http_event_reader *reader)
{
    reader->data = reader->type = (bide_slice){"", 0};
    reader->data_size = reader->value_size = reader->type_size = 0;
    reader->pending_size = reader->id.size;
    if (reader->id.size != 0)
        memcpy(reader->pending, reader->ids, reader->id.size);
    reader->state = EVENT_READER_START;
    reader->name_size = 0;
    reader->number = 0;
    reader->is_ignored = false;
    reader->mark = 0;
    reader->was_return = false;
    reader->has_event = false;
    reader->error = 0;
}

/* ---- Fields ---- */

static uint8_t event_reader_field(const bide_http_event_reader *reader)
{
    static const char names[][8] = {"data", "event", "id", "retry"};
    for (uint8_t i = 0; i < EVENT_READER_UNKNOWN; i++)
        if (strlen(names[i]) == reader->name_size &&
            memcmp(names[i], reader->name, reader->name_size) == 0)
            return i;
    return EVENT_READER_UNKNOWN;
}

/* Keeps a text of at most `max` bytes. Returns 0 or -EMSGSIZE. */
static int event_reader_keep(char *to, size_t *size, size_t max, bide_slice value)
{
    if (value.size > max)
        return -EMSGSIZE;
    if (value.size != 0)
        memcpy(to, value.data, value.size);
    *size = value.size;
    return 0;
}

/* A field's line has ended. Returns 0 or -EMSGSIZE. */
static int event_reader_end_field(bide_http_event_reader *reader)
{
    bide_slice value = {reader->value, reader->value_size};
    switch (reader->field) {
    case EVENT_READER_DATA:
        if (value.size == reader->size - reader->data_size)
            return -EMSGSIZE;
        reader->data_size += value.size;
        reader->memory[reader->data_size++] = '\n';
        return 0;
    case EVENT_READER_TYPE:
        return event_reader_keep(reader->types, &reader->type_size, BIDE_HTTP_EVENT_TYPE, value);
    case EVENT_READER_ID: /* (one with a NUL is ignored) */
        return reader->is_ignored ? 0
                                  : event_reader_keep(reader->pending, &reader->pending_size,
                                                      BIDE_HTTP_EVENT_ID, value);
    default:
        if (value.size != 0 && !reader->is_ignored) {
            reader->has_retry = true;
            reader->retry = reader->number;
        }
        return 0;
    }
}

/* The event has ended: 3. Returns 1, or 0 if it has no data. */
static int event_reader_end_event(bide_http_event_reader *reader)
{
    static const char message[] = "message";
    size_t type_size = reader->type_size;
    if (reader->pending_size != 0)
        memcpy(reader->ids, reader->pending, reader->pending_size);
    reader->id.size = reader->pending_size;
    reader->type_size = 0;
    if (reader->data_size == 0)
        return 0;
    reader->data = (bide_slice){reader->memory, reader->data_size - 1};
    reader->type = type_size != 0 ? (bide_slice){reader->types, type_size}
                                  : (bide_slice){message, sizeof message - 1};
    reader->has_event = true;
    return 1;
}

/* ---- Lines ---- */

/* Returns 0, 1 (an event has ended) or -EMSGSIZE. */
static int event_reader_end_line(bide_http_event_reader *reader)
{
    int status = 0;
    if (reader->state == EVENT_READER_START) {
        status = event_reader_end_event(reader);
    } else if (reader->state != EVENT_READER_IGNORED) {
        if (reader->state == EVENT_READER_NAME) /* its value is empty */
            reader->field = event_reader_field(reader);
        if (reader->field != EVENT_READER_UNKNOWN)
            status = event_reader_end_field(reader);
    }
    reader->state = EVENT_READER_START;
    reader->name_size = 0;
    reader->value_size = 0;
    reader->number = 0;
    reader->is_ignored = false;
    return status;
}

/* Takes a byte of a value: 1. Returns 0 or -EMSGSIZE. */
static int event_reader_take_value(bide_http_event_reader *reader, char byte)
{
    size_t room = reader->size - reader->data_size;
    uint64_t number = (uint64_t)reader->number * 10 + (uint64_t)(byte - '0');
    switch (reader->field) {
    case EVENT_READER_DATA:
        if (reader->value_size == room)
            return -EMSGSIZE;
        reader->memory[reader->data_size + reader->value_size++] = byte;
        return 0;
    case EVENT_READER_RETRY:
        reader->value_size = 1;
        if (byte < '0' || byte > '9')
            reader->is_ignored = true;
        else
            reader->number = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
        return 0;
    default: /* (one that is too long counts one byte more) */
        reader->is_ignored |= reader->field == EVENT_READER_ID && byte == '\0';
        if (reader->value_size < sizeof reader->value)
            reader->value[reader->value_size] = byte;
        reader->value_size += reader->value_size <= sizeof reader->value;
        return 0;
    }
}

/* Takes a byte that ends no line. Returns 0 or -EMSGSIZE. */
static int event_reader_take(bide_http_event_reader *reader, char byte)
{
    switch (reader->state) {
    case EVENT_READER_START:
    case EVENT_READER_NAME:
        if (byte != ':' && reader->name_size < sizeof reader->name) {
            reader->name[reader->name_size++] = byte;
            reader->state = EVENT_READER_NAME;
            return 0;
        }
        reader->field = byte == ':' ? event_reader_field(reader) : EVENT_READER_UNKNOWN;
        reader->state =
            reader->field == EVENT_READER_UNKNOWN ? EVENT_READER_IGNORED : EVENT_READER_COLON;
        return 0;
    case EVENT_READER_COLON:
        reader->state = EVENT_READER_VALUE;
        if (byte == ' ')
            return 0;
        break;
    case EVENT_READER_VALUE:
        break;
    default:
        return 0;
    }
    return event_reader_take_value(reader, byte);
}

/* Skips a byte order mark at the beginning. Returns true if the byte belongs to it. */
static bool event_reader_skips(bide_http_event_reader *reader, char byte)
{
    enum { NO_MARK = 4 };
    static const char mark[] = "\xef\xbb\xbf";
    if (reader->mark < sizeof mark - 1 && byte == mark[reader->mark]) {
        reader->mark++;
        return true;
    }
    /* (the part of a mark is the begin of an unknown name) */
    if (reader->mark != 0 && reader->mark < sizeof mark - 1)
        reader->state = EVENT_READER_IGNORED;
    reader->mark = NO_MARK;
    return false;
}

int bide_http_next_event(bide_http_event_reader *reader, bide_slice *bytes)
{
    if (reader->has_event) {
        reader->has_event = false;
        reader->data_size = 0;
        reader->data = reader->type = (bide_slice){"", 0};
    }
    while (reader->error == 0 && bytes->size != 0) {
        char byte = *bytes->data;
        bool was_return = reader->was_return;
        bytes->data++;
        bytes->size--;
        reader->was_return = byte == '\r';
        if (event_reader_skips(reader, byte) || (byte == '\n' && was_return)) /* 2 */
            continue;
        int status = byte == '\n' || byte == '\r' ? event_reader_end_line(reader)
                                                  : event_reader_take(reader, byte);
        if (status > 0)
            return status;
        reader->error = status;
    }
    return reader->error;
}
