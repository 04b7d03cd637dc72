/*
 * Pairs of names and values, and whole bodies of requests.
 *
 * Threads: functions of pairs use only their arguments, so any thread may call them. Bodies are read on the loop's
 * thread.
 *
 * Why it is correct:
 * 1. A decoded text is never longer than its encoded form, and each byte that is written is checked against the room.
 * 2. A body that is as long as the memory is told apart from a longer one by a read of one more byte.
 * 3. The error of a body that is too long is that of its input, so the response blames the client (exchange.c).
 */
#include "bide/http_form.h"

#include "characters.h"

#include "bide/coroutine.h"
#include "bide/http_router.h"

#include <errno.h>
#include <string.h>

/* ---- Pairs: 1 ---- */

/* Returns the text before the first `end`. *rest becomes the text after it. */
static bide_slice form_split(bide_slice *rest, char end)
{
    const char *at = rest->size != 0 ? memchr(rest->data, end, rest->size) : NULL;
    bide_slice part = {rest->data, at != NULL ? (size_t)(at - rest->data) : rest->size};
    size_t gone = part.size + (at != NULL);
    if (gone != 0)
        rest->data += gone;
    rest->size -= gone;
    return part;
}

/* Decodes "+" and "%41". Returns the size or an error. */
static ptrdiff_t form_decode(bide_slice text, char *out, size_t size)
{
    ptrdiff_t count = 0;
    while (text.size != 0) {
        const char *plus = memchr(text.data, '+', text.size);
        bide_slice part = {text.data, plus != NULL ? (size_t)(plus - text.data) : text.size};
        ptrdiff_t decoded = bide_http_decode(part, out + count, size - (size_t)count);
        if (decoded < 0)
            return decoded;
        count += decoded;
        text.data += part.size + (plus != NULL);
        text.size -= part.size + (plus != NULL);
        if (plus == NULL)
            break;
        if ((size_t)count == size)
            return -EMSGSIZE;
        out[count++] = ' ';
    }
    return count;
}

/* Takes the next pair that is not empty, encoded. Returns false at the end. */
static bool form_take(bide_http_pairs *pairs, bide_http_pair *pair)
{
    while (pairs->rest.size != 0) {
        bide_slice one = form_split(&pairs->rest, '&');
        if (one.size == 0)
            continue;
        const char *equals = memchr(one.data, '=', one.size);
        size_t name = equals != NULL ? (size_t)(equals - one.data) : one.size;
        pair->name = (bide_slice){one.data, name};
        pair->value =
            equals != NULL ? (bide_slice){equals + 1, one.size - name - 1} : (bide_slice){NULL, 0};
        return true;
    }
    return false;
}

int bide_http_next_pair(bide_http_pairs *pairs, void *memory, size_t size, bide_http_pair *pair)
{
    char *out = memory;
    bide_http_pair encoded;
    if (!form_take(pairs, &encoded))
        return 0;
    ptrdiff_t name = form_decode(encoded.name, out, size);
    if (name < 0)
        return (int)name;
    pair->name = (bide_slice){out, (size_t)name};
    pair->value = (bide_slice){NULL, 0};
    if (encoded.value.data == NULL)
        return 1;
    ptrdiff_t value = form_decode(encoded.value, out + name, size - (size_t)name);
    if (value < 0)
        return (int)value;
    pair->value = (bide_slice){out + name, (size_t)value};
    return 1;
}

/* The encoded text is this name. */
static bool form_is_name(bide_slice encoded, const char *name, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < encoded.size; i++, at++) {
        char byte = encoded.data[i] == '+' ? ' ' : encoded.data[i];
        if (byte == '%') {
            if (bide_http_decode(
                    (bide_slice){encoded.data + i, encoded.size - i < 3 ? encoded.size - i : 3},
                    &byte, 1) != 1)
                return false;
            i += 2;
        }
        if (at == size || byte != name[at])
            return false;
    }
    return at == size;
}

ptrdiff_t bide_http_find_pair(bide_slice text, const char *name, char *out, size_t size)
{
    bide_http_pairs pairs = {text};
    bide_http_pair pair;
    size_t length = strlen(name);
    while (form_take(&pairs, &pair))
        if (form_is_name(pair.name, name, length))
            return form_decode(pair.value, out, size);
    return -ENOENT;
}

/* Appends the encoded text. Returns the size, or `size` + 1 if it does not fit. */
static size_t form_append(char *out, size_t size, size_t used, bide_slice text)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        bool is_plain = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
                        (byte >= 'a' && byte <= 'z') || byte == '*' || byte == '-' || byte == '.' ||
                        byte == '_';
        if (size - used < (is_plain || byte == ' ' ? 1U : 3U))
            return size + 1;
        if (is_plain || byte == ' ') {
            out[used++] = byte == ' ' ? '+' : (char)byte;
        } else {
            out[used++] = '%';
            out[used++] = digits[byte >> 4];
            out[used++] = digits[byte & 15];
        }
    }
    return used;
}

ptrdiff_t bide_http_append_pair(char *out, size_t size, size_t used, bide_slice name,
                                bide_slice value)
{
    if (used > size || (used != 0 && used == size))
        return -EMSGSIZE;
    if (used != 0)
        out[used++] = '&';
    used = form_append(out, size, used, name);
    if (used <= size && value.data != NULL) {
        if (used == size)
            return -EMSGSIZE;
        out[used++] = '=';
        used = form_append(out, size, used, value);
    }
    return used <= size ? (ptrdiff_t)used : -EMSGSIZE;
}

/* ---- Bodies ---- */

bool bide_http_is_form(const bide_http_exchange *exchange)
{
    bide_slice type = bide_http_request_field(exchange, "content-type");
    size_t size = 0;
    while (size < type.size && type.data[size] != ';' && type.data[size] != ' ' &&
           type.data[size] != '\t')
        size++;
    return size != 0 &&
           bide_http_is((bide_slice){type.data, size}, "application/x-www-form-urlencoded");
}

static bide_awaiter *form_read_more(bide_http_body_operation *self)
{
    if (self->count < self->size)
        return bide_http_read(self->exchange, self->data + self->count, self->size - self->count);
    return bide_http_read(self->exchange, &self->more, 1); /* 2 */
}

bide_coroutine(http_read_body)
{
    bide_begin(http_read_body, bide_http_body_operation * self);
    for (;;) {
        bide_try(form_read_more(self));
        if (self->exchange->count == 0)
            break;
        if (self->count == self->size) {
            self->exchange->connection->input.status = -EFBIG; /* 3 */
            bide_return(-EFBIG);
        }
        self->count += self->exchange->count;
    }
    bide_end();
}

bide_awaiter *bide_http_read_body(bide_http_body_operation *operation, bide_http_exchange *exchange,
                                  void *data, size_t size)
{
    operation->exchange = exchange;
    operation->data = data;
    operation->size = size;
    operation->count = 0;
    return bide_task_init(&operation->task, &http_read_body);
}
