/*
 * A second parser of heads, written from the grammar of RFC 9110 and 9112, for the targets http_request, http_response
 * and http_client. It is strict where the standard leaves a choice: no folded lines, no bare line feeds, no spaces before a
 * colon, one Content-Length of up to 18 digits and no tab behind them, no other transfer coding of a request than
 * "chunked".
 */
#ifndef BIDE_TESTS_FUZZ_HTTP_HEAD_H
#define BIDE_TESTS_FUZZ_HTTP_HEAD_H

#include "../../src/http/parse.h"
#include "uri.h"

#include <strings.h>

enum { HEAD_FIELDS = 8, HEAD_TARGET = 200 };

/* A piece of the input: where it begins, and its size. */
struct piece {
    const char *at;
    size_t size;
};

struct second_head {
    struct piece names[HEAD_FIELDS], values[HEAD_FIELDS];
    size_t count;
    struct piece method, target, path, query, host, upgrade;
    int status, minor;
    uint64_t length;
    unsigned lengths, codings, hosts;
    bool is_chunked, has_other_coding, closes, keeps, upgrades, expects;
    bool is_wrong;
};

static inline bool head_is_token(struct piece text)
{
    for (size_t i = 0; i < text.size; i++) {
        int c = (unsigned char)text.at[i];
        if (c == 0 || (!uri_is_digit(c) && !uri_is_letter(c) && strchr("!#$%&'*+-.^_`|~", c) == NULL))
            return false;
    }
    return text.size != 0;
}

static inline bool head_is_value(struct piece text)
{
    for (size_t i = 0; i < text.size; i++) {
        int c = (unsigned char)text.at[i];
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

static inline bool head_is(struct piece text, const char *word)
{
    return text.size == strlen(word) && strncasecmp(text.at, word, text.size) == 0;
}

static inline struct piece head_trim(struct piece text)
{
    while (text.size != 0 && (text.at[0] == ' ' || text.at[0] == '\t'))
        text.at++, text.size--;
    while (text.size != 0 && (text.at[text.size - 1] == ' ' || text.at[text.size - 1] == '\t'))
        text.size--;
    return text;
}

/* Takes the next element that is not empty from a list. */
static inline bool head_next(struct piece *list, struct piece *element)
{
    while (list->size != 0) {
        size_t size = 0;
        while (size < list->size && list->at[size] != ',')
            size++;
        *element = head_trim((struct piece){list->at, size});
        size_t step = size < list->size ? size + 1 : size;
        list->at += step;
        list->size -= step;
        if (element->size != 0)
            return true;
    }
    return false;
}

/* Takes a line that ends with CR LF. */
static inline bool head_line(struct piece *rest, struct piece *line)
{
    const char *end = memchr(rest->at, '\n', rest->size);
    if (end == NULL || end == rest->at || end[-1] != '\r')
        return false;
    *line = (struct piece){rest->at, (size_t)(end - rest->at) - 1};
    rest->size -= line->size + 2;
    rest->at = end + 1;
    return memchr(line->at, '\r', line->size) == NULL;
}

static inline void head_note(struct second_head *head, struct piece name, struct piece value, bool is_request)
{
    struct piece list = value, element, last = {NULL, 0};
    if (head_is(name, "host")) {
        size_t host = uri_host(value.at, value.size);
        head->hosts++;
        head->host = value;
        if (is_request && value.size != 0 && (host == 0 || uri_port(value.at, value.size, host) > 65535))
            head->is_wrong = true;
    } else if (head_is(name, "connection")) {
        while (head_next(&list, &element)) {
            head->closes |= head_is(element, "close");
            head->keeps |= head_is(element, "keep-alive");
            head->upgrades |= head_is(element, "upgrade");
        }
    } else if (head_is(name, "content-length")) {
        head->length = 0;
        for (size_t i = 0; i < value.size; i++) {
            if (!uri_is_digit(value.at[i]))
                head->is_wrong = true;
            head->length = head->length * 10 + (uint64_t)(value.at[i] - '0');
        }
        if (value.size == 0 || value.size > 18)
            head->is_wrong = true;
        head->lengths++;
    } else if (head_is(name, "transfer-encoding")) {
        while (head_next(&list, &element))
            last = element;
        head->codings++;
        if (head_is(value, "chunked"))
            head->is_chunked = true;
        else if (is_request || head_is(last, "chunked"))
            head->is_wrong = true;
        else
            head->has_other_coding = true;
    } else if (head_is(name, "upgrade")) {
        head->upgrade = value;
    } else if (head_is(name, "expect")) {
        head->expects = true;
        if (is_request && !head_is(value, "100-continue"))
            head->is_wrong = true;
    }
}

/* The lines of fields, and the empty line. Nothing else follows. */
static inline void head_fields(struct second_head *head, struct piece rest, bool is_request)
{
    struct piece line;
    while (!head->is_wrong && head_line(&rest, &line)) {
        if (line.size == 0) {
            head->is_wrong = rest.size != 0;
            return;
        }
        const char *colon = memchr(line.at, ':', line.size);
        struct piece name = {line.at, colon != NULL ? (size_t)(colon - line.at) : line.size};
        if (colon == NULL || !head_is_token(name) || head->count == HEAD_FIELDS) {
            head->is_wrong = true;
            return;
        }
        struct piece value = head_trim((struct piece){colon + 1, line.size - name.size - 1});
        const char *behind = value.at + value.size;
        bool has_tab = memchr(behind, '\t', (size_t)(line.at + line.size - behind)) != NULL;
        if (!head_is_value(value) || (has_tab && head_is(name, "content-length")))
            head->is_wrong = true;
        head_note(head, name, value, is_request);
        head->names[head->count] = name;
        head->values[head->count++] = value;
    }
    head->is_wrong = true;
}

static inline void head_check_framing(struct second_head *head)
{
    if (head->lengths > 1 || head->codings > 1 || (head->lengths != 0 && head->codings != 0) ||
        (head->codings != 0 && head->minor == 0))
        head->is_wrong = true;
}

/* ---- Heads of responses ---- */

static inline void second_response(struct second_head *head, const char *data, size_t size)
{
    struct piece rest = {data, size}, line;
    memset(head, 0, sizeof *head);
    if (!head_line(&rest, &line) || line.size < 12 || memcmp(line.at, "HTTP/1.", 7) != 0 ||
        (line.at[7] != '0' && line.at[7] != '1') || line.at[8] != ' ' || (line.size > 12 && line.at[12] != ' ') ||
        !head_is_value((struct piece){line.at + 12, line.size - 12})) {
        head->is_wrong = true;
        return;
    }
    head->minor = line.at[7] - '0';
    for (size_t i = 9; i < 12; i++) {
        if (!uri_is_digit(line.at[i]))
            head->is_wrong = true;
        head->status = head->status * 10 + (line.at[i] - '0');
    }
    if (head->is_wrong || head->status < 100) {
        head->is_wrong = true;
        return;
    }
    head_fields(head, rest, false);
    head_check_framing(head);
}

/* ---- Comparing ---- */

static inline bool head_same(struct piece one, bide_slice other)
{
    return one.size == other.size && (one.size == 0 || one.at == other.data);
}

static inline void head_compare(const struct second_head *second, const http_head *head)
{
    FUZZ_REQUIRE(head->field_count == second->count);
    for (size_t i = 0; i < second->count; i++) {
        FUZZ_REQUIRE(head_same(second->names[i], head->fields[i].name));
        FUZZ_REQUIRE(head_same(second->values[i], head->fields[i].value));
    }
    FUZZ_REQUIRE(head->minor == second->minor);
    FUZZ_REQUIRE(head->length == (second->lengths != 0 ? second->length : BIDE_HTTP_UNKNOWN));
    FUZZ_REQUIRE(head->is_chunked == second->is_chunked);
    FUZZ_REQUIRE(head->closes == second->closes);
    FUZZ_REQUIRE(head->keeps == second->keeps);
    FUZZ_REQUIRE(head->upgrades == second->upgrades);
    FUZZ_REQUIRE(head_same(second->upgrade, head->upgrade));
}

/*
 * The size of the head at `data` by its lines: 0, it has not ended; -1, a line is wrong. And the same for each beginning
 * of the data.
 */
static inline ptrdiff_t head_end(const char *data, size_t size)
{
    size_t scanned = 0;
    ptrdiff_t end = bide_http_find_end_(data, size, &scanned);
    size_t begin = 0, step_scanned = 0;
    ptrdiff_t expected = 0;
    for (size_t i = 0; i < size && expected == 0; i++) {
        bool ends_line = data[i] == '\n';
        if (i == begin && i != 0 && (data[i] == ' ' || data[i] == '\t'))
            expected = -1;
        else if (ends_line ? i == begin || data[i - 1] != '\r' : i > begin && data[i - 1] == '\r')
            expected = -1;
        else if (ends_line && i == begin + 1)
            expected = (ptrdiff_t)i + 1;
        if (ends_line)
            begin = i + 1;
    }
    FUZZ_REQUIRE(end == expected);
    fuzz_parses += 2;
    for (size_t i = 1; i <= size; i++) {
        char *copy = i == size || i % 16 == 0 ? fuzz_copy(data, i) : NULL;
        ptrdiff_t step = bide_http_find_end_(copy != NULL ? copy : data, i, &step_scanned);
        free(copy);
        if (step == 0)
            continue;
        FUZZ_REQUIRE(step == end && (end < 0 || (size_t)end == i));
        return end;
    }
    FUZZ_REQUIRE(end == 0);
    return 0;
}

#endif
