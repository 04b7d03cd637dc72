/*
 * Multipart bodies. The memory has the head of the part at hand, and behind it a window of the body:
 *
 *     | head of the part | taken | begin ... what has come ... end | room |
 *     0                  base
 *
 *     DATA --the delimiter, "\r\n"--> HEAD --the lines of the head--> EMPTY_LINE --> DATA
 *       +----the delimiter, "--"----> EPILOGUE --the end of the body--> ENDED
 *
 * Threads: all functions run on the loop's thread.
 *
 * Why it is correct:
 * 1. A delimiter begins with a line end, also the first: the window begins with one that nobody has sent. So the
 *    preamble is the data of a part without a head, which is skipped.
 * 2. Bytes are data only if no delimiter can begin at them: the delimiter is searched in all that has come, and of
 *    the rest the last bytes that a delimiter could begin with are kept. So the pieces in which the body arrives make
 *    no difference.
 * 3. Whatever begins with a delimiter is one, as RFC 2046 says, and not data. If neither a line end nor "--" follows,
 *    the body is rejected: other parsers could see a part there, or none.
 * 4. Each read goes behind what has come. There is room: the window has 256 bytes at least, and what is kept is less
 *    than a delimiter and its padding; a head that fills the window is too long.
 * 5. Only a read waits. All state changes between reads, so a cancelled call continues later.
 */
#define _GNU_SOURCE
#include "bide/http_multipart.h"

#include "characters.h"
#include "parse.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <string.h>

enum {
    MULTIPART_WINDOW = 256,
    MULTIPART_PADDING = 64, /* spaces behind a boundary */
    MULTIPART_PARTS = 1000
};

enum { MULTIPART_DATA, MULTIPART_HEAD, MULTIPART_EMPTY_LINE, MULTIPART_EPILOGUE, MULTIPART_ENDED };

_Static_assert(MULTIPART_WINDOW > 4 + BIDE_HTTP_BOUNDARY + MULTIPART_PADDING + 2, "4");

/* ---- Texts ---- */

static bool multipart_is_space(char byte)
{
    return byte == ' ' || byte == '\t';
}

static bide_slice multipart_trim(bide_slice text)
{
    while (text.size != 0 && multipart_is_space(*text.data)) {
        text.data++;
        text.size--;
    }
    while (text.size != 0 && multipart_is_space(text.data[text.size - 1]))
        text.size--;
    return text;
}

/*
 * Takes the next parameter, "; name=value", from *rest. The value may be quoted; escapes stay. Returns 1, 0 at the
 * end, or -EBADMSG.
 */
static int multipart_next_parameter(bide_slice *rest, bide_slice *name, bide_slice *value)
{
    *rest = multipart_trim(*rest);
    while (rest->size != 0 && *rest->data == ';') {
        rest->data++;
        rest->size--;
        *rest = multipart_trim(*rest);
    }
    if (rest->size == 0)
        return 0;
    const char *equals = memchr(rest->data, '=', rest->size);
    if (equals == NULL)
        return -EBADMSG;
    *name = (bide_slice){rest->data, (size_t)(equals - rest->data)};
    rest->data = equals + 1;
    rest->size -= name->size + 1;
    if (!bide_http_is_token_(name->data, name->size))
        return -EBADMSG;
    size_t size = 0;
    if (rest->size != 0 && *rest->data == '"') {
        for (size = 1; size < rest->size && rest->data[size] != '"'; size++)
            if (rest->data[size] == '\\' && size + 1 < rest->size)
                size++;
        if (size >= rest->size)
            return -EBADMSG;
        *value = (bide_slice){rest->data + 1, size - 1};
        size++;
    } else {
        while (size < rest->size && http_is_of(rest->data[size], HTTP_TOKEN))
            size++;
        *value = (bide_slice){rest->data, size};
        if (size == 0)
            return -EBADMSG;
    }
    rest->data += size;
    rest->size -= size;
    *rest = multipart_trim(*rest);
    return rest->size == 0 || *rest->data == ';' ? 1 : -EBADMSG;
}

/* Splits "type; parameters". */
static bide_slice multipart_split_type(bide_slice *text)
{
    const char *at = text->size != 0 ? memchr(text->data, ';', text->size) : NULL;
    bide_slice type = {text->data, at != NULL ? (size_t)(at - text->data) : text->size};
    text->data += type.size;
    text->size -= type.size;
    return multipart_trim(type);
}

static bool multipart_is_boundary(bide_slice text)
{
    static const char others[] = "'()+_,-./:=? ";
    if (text.size == 0 || text.size > BIDE_HTTP_BOUNDARY || text.data[text.size - 1] == ' ')
        return false;
    for (size_t i = 0; i < text.size; i++) {
        char byte = text.data[i];
        if (!http_is_of(byte, HTTP_DIGIT) &&
            !(http_lower(byte) >= 'a' && http_lower(byte) <= 'z') &&
            (byte == '\0' || strchr(others, byte) == NULL))
            return false;
    }
    return true;
}

/* ---- The window ---- */

static bide_slice multipart_window(const bide_http_multipart *self)
{
    return (bide_slice){self->memory + self->begin, self->end - self->begin};
}

/* Moves what has come to the beginning of the window. */
static void multipart_compact(bide_http_multipart *self)
{
    if (self->begin == self->base)
        return;
    memmove(self->memory + self->base, self->memory + self->begin, self->end - self->begin);
    self->end -= self->begin - self->base;
    self->begin = self->base;
}

static bide_awaiter *multipart_fill(bide_http_multipart *self)
{
    multipart_compact(self);
    bide_assert(self->end < self->size); /* 4 */
    return bide_http_read(self->exchange, self->memory + self->end, self->size - self->end);
}

/* Adds what was read. Returns -EBADMSG if the body has ended too early. */
static int multipart_on_filled(bide_http_multipart *self)
{
    self->end += self->exchange->count;
    if (self->exchange->count != 0)
        return 0;
    self->input_ended = true;
    return -EBADMSG;
}

/* ---- Data: 2 ---- */

/* How many bytes at the front of the window are data. 0: a delimiter is there, or more is needed. */
static size_t multipart_data_size(const bide_http_multipart *self)
{
    bide_slice window = multipart_window(self);
    const char *found = memmem(window.data, window.size, self->delimiter, self->delimiter_size);
    if (found != NULL)
        return (size_t)(found - window.data);
    size_t kept = window.size < self->delimiter_size - 1U ? window.size : self->delimiter_size - 1U;
    while (kept != 0 && memcmp(window.data + window.size - kept, self->delimiter, kept) != 0)
        kept--;
    return window.size - kept;
}

/* The delimiter stands at the front. Returns 0, -EAGAIN, or -EBADMSG: 3 */
static int multipart_take_delimiter(bide_http_multipart *self)
{
    bide_slice window = multipart_window(self);
    size_t at = self->delimiter_size;
    if (window.size < at)
        return -EAGAIN;
    bide_assert(memcmp(window.data, self->delimiter, at) == 0);
    if (window.size >= at + 2 && memcmp(window.data + at, "--", 2) == 0) {
        self->begin += at + 2;
        self->state = MULTIPART_EPILOGUE;
        return 0;
    }
    if (window.size == at + 1 && window.data[at] == '-')
        return -EAGAIN;
    while (at < window.size && multipart_is_space(window.data[at]))
        at++;
    if (at - self->delimiter_size > MULTIPART_PADDING)
        return -EBADMSG;
    if (at < window.size && window.data[at] != '\r')
        return -EBADMSG;
    if (window.size < at + 2)
        return -EAGAIN;
    if (window.data[at + 1] != '\n')
        return -EBADMSG;
    self->begin += at + 2;
    self->state = MULTIPART_HEAD;
    return 0;
}

static int multipart_count_data(bide_http_multipart *self, size_t count)
{
    self->taken += count;
    return self->parts != 0 && self->taken > self->options.max_part ? -EFBIG : 0;
}

/* Skips data, up to the delimiter and past it. Returns 0, -EAGAIN or an error. */
static int multipart_skip(bide_http_multipart *self)
{
    size_t count = multipart_data_size(self);
    int status = multipart_count_data(self, count);
    self->begin += count;
    return status < 0 ? status : multipart_take_delimiter(self);
}

/* ---- Heads ---- */

/* Replaces escapes of a quoted text, in place: of quotes and backslashes. */
static bide_slice multipart_unescape(bide_http_multipart *self, bide_slice text)
{
    char *out = self->memory + (text.data - self->memory);
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '\\' && i + 1 < text.size &&
            (text.data[i + 1] == '"' || text.data[i + 1] == '\\'))
            i++;
        out[size++] = text.data[i];
    }
    return (bide_slice){out, size};
}

/* Parses "form-data; name="a"; filename="b"". Returns 0 or -EBADMSG. */
static int multipart_parse_disposition(bide_http_multipart *self, bide_slice text)
{
    bide_slice name, value;
    int status;
    bool is_form = bide_http_is(multipart_split_type(&text), "form-data");
    if (self->is_form && !is_form)
        return -EBADMSG;
    while ((status = multipart_next_parameter(&text, &name, &value)) == 1) {
        bide_slice *to = bide_http_is(name, "name")       ? &self->name
                         : bide_http_is(name, "filename") ? &self->filename
                                                          : NULL;
        if (to == NULL)
            continue;
        if (to->data != NULL)
            return -EBADMSG;
        *to = multipart_unescape(self, value);
    }
    return status;
}

static int multipart_parse_line(bide_http_multipart *self, bide_slice line, bool *has_disposition)
{
    const char *colon = memchr(line.data, ':', line.size);
    if (colon == NULL)
        return -EBADMSG;
    bide_http_field field = {.name = {line.data, (size_t)(colon - line.data)}};
    field.value = multipart_trim((bide_slice){colon + 1, line.size - field.name.size - 1});
    if (!bide_http_is_token_(field.name.data, field.name.size) ||
        !bide_http_is_value_(field.value.data, field.value.size))
        return -EBADMSG;
    if (self->field_count == BIDE_HTTP_PART_FIELDS)
        return -EMSGSIZE;
    self->fields[self->field_count++] = field;
    if (bide_http_is(field.name, "content-type")) {
        if (self->type.data != NULL)
            return -EBADMSG;
        self->type = field.value;
    } else if (bide_http_is(field.name, "content-disposition")) {
        if (*has_disposition)
            return -EBADMSG;
        *has_disposition = true;
    }
    return 0;
}

/* Parses the lines of a head of `size` bytes at the front of the window, without the empty line. */
static int multipart_parse_head(bide_http_multipart *self, size_t size)
{
    const char *at = self->memory + self->begin;
    const char *end = at + size;
    bool has_disposition = false;
    self->field_count = 0;
    self->name = self->filename = self->type = (bide_slice){NULL, 0};
    while (at != end) {
        const char *line_end = memmem(at, (size_t)(end - at), "\r\n", 2);
        bide_assert(line_end != NULL);
        int status =
            multipart_parse_line(self, (bide_slice){at, (size_t)(line_end - at)}, &has_disposition);
        if (status < 0)
            return status;
        at = line_end + 2;
    }
    for (size_t i = 0; i < self->field_count; i++)
        if (bide_http_is(self->fields[i].name, "content-disposition")) {
            int status = multipart_parse_disposition(self, self->fields[i].value);
            if (status < 0)
                return status;
        }
    return self->is_form && self->name.data == NULL ? -EBADMSG : 0;
}

/*
 * The empty line behind a head stands at the front of the window. Its line end may be that of a delimiter: then the part
 * is empty. Returns 0 or -EAGAIN.
 */
static int multipart_take_empty_line(bide_http_multipart *self)
{
    bide_slice window = multipart_window(self);
    size_t size = window.size < self->delimiter_size ? window.size : self->delimiter_size;
    bool may_be = memcmp(window.data, self->delimiter, size) == 0;
    bide_assert(size >= 2);
    if (may_be && size < self->delimiter_size)
        return -EAGAIN;
    if (!may_be)
        self->begin += 2;
    self->state = MULTIPART_DATA;
    return 0;
}

/* Takes the head that begins at the front of the window. Returns 0, -EAGAIN or an error. */
static int multipart_take_head(bide_http_multipart *self)
{
    multipart_compact(self);
    bide_slice window = multipart_window(self);
    const char *found = window.size >= 2 && memcmp(window.data, "\r\n", 2) == 0
                            ? window.data
                            : memmem(window.data, window.size, "\r\n\r\n", 4);
    size_t size = found == NULL || found == window.data ? 0 : (size_t)(found - window.data) + 2;
    if (found == NULL)
        return window.size < self->options.max_head + 2 ? -EAGAIN : -EMSGSIZE;
    if (size > self->options.max_head)
        return -EMSGSIZE;
    if (++self->parts > self->options.max_parts)
        return -EFBIG;
    int status = multipart_parse_head(self, size);
    if (status < 0)
        return status;
    self->begin += size;
    self->base = self->begin;
    self->taken = 0;
    self->has_part = true;
    self->state = MULTIPART_EMPTY_LINE;
    return 0;
}

/* ---- Operations ---- */

/* The window begins at the front of the memory: the head of the part is not needed any more. */
static void multipart_forget_head(bide_http_multipart *self)
{
    self->has_part = false;
    self->field_count = 0;
    self->name = self->filename = self->type = (bide_slice){NULL, 0};
    self->base = 0;
    multipart_compact(self);
}

/* Advances as far as possible without a read. Returns 0 (there is a part, or the end), -EAGAIN or an error. */
static int multipart_advance(bide_http_multipart *self)
{
    int status = 0;
    while (status == 0)
        switch (self->state) {
        case MULTIPART_DATA:
            status = multipart_skip(self);
            break;
        case MULTIPART_HEAD:
            status = multipart_take_head(self);
            if (status == 0)
                return 0;
            break;
        case MULTIPART_EMPTY_LINE:
            status = multipart_take_empty_line(self);
            break;
        case MULTIPART_EPILOGUE:
            self->begin = self->end = self->base;
            if (!self->input_ended)
                return -EAGAIN;
            self->state = MULTIPART_ENDED;
            return 0;
        default:
            return 0;
        }
    return status;
}

/* The body is rejected. The response blames the client: exchange.c. */
static int multipart_fail(bide_http_multipart *self, int status)
{
    self->error = status;
    self->has_part = false;
    self->exchange->connection->input.status = status;
    return status;
}

bide_coroutine(http_next_part)
{
    bide_begin(http_next_part, bide_http_multipart * self);
    int status = self->error;
    if (status < 0)
        bide_return(multipart_fail(self, status));
    multipart_forget_head(self);
    while ((status = multipart_advance(self)) == -EAGAIN) {
        bide_try(multipart_fill(self));
        status = multipart_on_filled(self);
        if (status < 0 && self->state != MULTIPART_EPILOGUE)
            break;
    }
    if (status < 0)
        bide_return(multipart_fail(self, status));
    bide_end();
}

bide_awaiter *bide_http_next_part(bide_http_multipart *multipart)
{
    return bide_task_init(&multipart->task, &http_next_part);
}

/* Copies data of the part. Returns 0, with a count of 0 at its end; -EAGAIN; or an error. */
static int multipart_take_data(bide_http_multipart *self)
{
    if (!self->has_part)
        return 0;
    if (self->state == MULTIPART_EMPTY_LINE && multipart_take_empty_line(self) != 0)
        return -EAGAIN;
    if (self->state != MULTIPART_DATA)
        return 0;
    size_t count = multipart_data_size(self);
    if (count == 0)
        return multipart_take_delimiter(self);
    if (count > self->data_size)
        count = self->data_size;
    int status = multipart_count_data(self, count);
    if (status < 0)
        return status;
    memcpy(self->data, self->memory + self->begin, count);
    self->begin += count;
    self->count = count;
    return 0;
}

bide_coroutine(http_read_part)
{
    bide_begin(http_read_part, bide_http_multipart * self);
    int status = self->error;
    if (status < 0)
        bide_return(multipart_fail(self, status));
    while ((status = multipart_take_data(self)) == -EAGAIN) {
        bide_try(multipart_fill(self));
        status = multipart_on_filled(self);
        if (status < 0)
            break;
    }
    if (status < 0)
        bide_return(multipart_fail(self, status));
    bide_end();
}

bide_awaiter *bide_http_read_part(bide_http_multipart *multipart, void *data, size_t size)
{
    multipart->data = data;
    multipart->data_size = size;
    multipart->count = 0;
    return bide_task_init(&multipart->task, &http_read_part);
}

/* ---- The start ---- */

/* Finds the boundary of the request. Returns false if it is not multipart. */
static bool multipart_find_boundary(bide_http_multipart *self)
{
    bide_slice text = bide_http_request_field(self->exchange, "content-type");
    bide_slice name, value, boundary = {NULL, 0};
    int status;
    if (text.data == NULL)
        return false;
    bide_slice type = multipart_split_type(&text);
    if (!http_text_starts_with(type, "multipart/"))
        return false;
    while ((status = multipart_next_parameter(&text, &name, &value)) == 1)
        if (bide_http_is(name, "boundary")) {
            if (boundary.data != NULL)
                return false;
            boundary = value;
        }
    if (status != 0 || boundary.data == NULL || !multipart_is_boundary(boundary))
        return false;
    self->is_form = bide_http_is(type, "multipart/form-data");
    memcpy(self->delimiter, "\r\n--", 4);
    memcpy(self->delimiter + 4, boundary.data, boundary.size);
    self->delimiter_size = (uint8_t)(4 + boundary.size);
    return true;
}

int bide_http_multipart_init(bide_http_multipart *multipart, bide_http_exchange *exchange,
                             void *memory, size_t size, const bide_http_multipart_options *options)
{
    memset(multipart, 0, sizeof *multipart);
    multipart->exchange = exchange;
    multipart->memory = memory;
    multipart->size = size;
    if (options != NULL)
        multipart->options = *options;
    if (size < BIDE_HTTP_MULTIPART_MEMORY || !multipart_find_boundary(multipart))
        return -EINVAL;
    bide_http_multipart_options *own = &multipart->options;
    if (own->max_parts == 0)
        own->max_parts = MULTIPART_PARTS;
    if (own->max_head == 0 || own->max_head > size - MULTIPART_WINDOW)
        own->max_head = size - MULTIPART_WINDOW;
    if (own->max_part == 0)
        own->max_part = UINT64_MAX;
    memcpy(multipart->memory, "\r\n", 2); /* 1 */
    multipart->end = 2;
    return 0;
}
