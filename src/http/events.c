/*
 * Server-sent events. An event is written as pieces: the name of a field, a line of its text, a line end. They are
 * gathered in the connection's buffer and flushed together.
 *
 * Threads: all functions run on the loop's thread.
 *
 * Why it is correct: a text with several lines becomes one field for each line, so no text can begin a field or an event
 * of its own. Texts that have one line are checked before anything is written.
 */
#include "bide/http_events.h"

#include "characters.h"
#include "output.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <string.h>

enum { EVENT_COMMENT, EVENT_ID, EVENT_TYPE, EVENT_RETRY, EVENT_DATA, EVENT_END, EVENT_NOTHING };
enum { EVENT_PART_NAME, EVENT_PART_SPACE, EVENT_PART_TEXT, EVENT_PART_LINE_END };

int bide_http_start_events(bide_http_exchange *exchange)
{
    int status = bide_http_add(exchange, "Content-Type", "text/event-stream");
    if (status == 0)
        status = bide_http_add(exchange, "Cache-Control", "no-store");
    if (status == 0)
        status = bide_http_start_response(exchange, BIDE_HTTP_UNKNOWN);
    if (status == 0)
        bide_http_set_deadline(exchange, BIDE_FOREVER);
    return status;
}

static bool event_is_line(bide_slice text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] == '\n' || text.data[i] == '\r')
            return false;
    return true;
}

/* Takes the next line from self->rest. */
static void event_take_line(bide_http_event_operation *self)
{
    size_t size = 0;
    while (size < self->rest.size && self->rest.data[size] != '\n' && self->rest.data[size] != '\r')
        size++;
    self->line = (bide_slice){self->rest.data, size};
    self->has_more = size < self->rest.size;
    size_t end = 0;
    if (self->has_more)
        end = self->rest.size - size > 1 && memcmp(self->rest.data + size, "\r\n", 2) == 0 ? 2 : 1;
    self->rest.data += size + end;
    self->rest.size -= size + end;
}

/* The text of the current field; data is NULL: it is left out. */
static bide_slice event_text(bide_http_event_operation *self)
{
    const bide_http_event *event = &self->event;
    switch (self->field) {
    case EVENT_COMMENT:
        return event->comment;
    case EVENT_ID:
        return event->id;
    case EVENT_TYPE:
        return event->type;
    case EVENT_RETRY:
        return (bide_slice){event->has_retry ? self->digits : NULL,
                            event->has_retry ? bide_http_print_number_(self->digits, event->retry)
                                             : 0};
    default:
        return event->data;
    }
}

/* Returns the next piece; its size is 0 at the end. */
static bide_slice event_next_piece(bide_http_event_operation *self)
{
    static const char *const names[] = {":", "id:", "event:", "retry:", "data:"};
    for (;;) {
        if (self->field >= EVENT_END) {
            bool is_end = self->field++ == EVENT_END;
            return (bide_slice){"\n", is_end ? 1 : 0};
        }
        switch (self->part) {
        case EVENT_PART_NAME:
            if (!self->has_more)
                self->rest = event_text(self);
            if (self->rest.data == NULL) {
                self->field++;
                break;
            }
            event_take_line(self);
            self->part = self->line.size != 0 ? EVENT_PART_SPACE : EVENT_PART_LINE_END;
            return http_text_of(names[self->field]);
        case EVENT_PART_SPACE: /* (it is not part of the text, which may begin with another) */
            self->part = EVENT_PART_TEXT;
            return (bide_slice){" ", 1};
        case EVENT_PART_TEXT:
            self->part = EVENT_PART_LINE_END;
            return self->line;
        default:
            self->part = EVENT_PART_NAME;
            self->field += !self->has_more;
            return (bide_slice){"\n", 1};
        }
    }
}

bide_coroutine(http_send_event)
{
    bide_begin(http_send_event, bide_http_event_operation * self);
    if (self->status < 0)
        bide_return(self->status);
    for (;;) {
        bide_slice piece = event_next_piece(self);
        if (piece.size == 0)
            break;
        bide_try(bide_http_write(self->exchange, piece.data, piece.size));
    }
    bide_try(bide_http_flush(self->exchange));
    bide_end();
}

bide_awaiter *bide_http_send_event(bide_http_event_operation *operation,
                                   bide_http_exchange *exchange, const bide_http_event *event)
{
    bool is_valid = event_is_line(event->id) && event_is_line(event->type) &&
                    (event->id.size == 0 || memchr(event->id.data, '\0', event->id.size) == NULL);
    operation->exchange = exchange;
    operation->event = *event;
    operation->status = is_valid ? 0 : -EINVAL;
    operation->field = 0;
    operation->part = EVENT_PART_NAME;
    operation->has_more = false;
    return bide_task_init(&operation->task, &http_send_event);
}
