/*
 * Conditions, ranges and encodings of requests for files: RFC 9110, sections 12.5.3, 13 and 14. Pure
 * functions of the request's fields; any thread may call them.
 */
#define _GNU_SOURCE
#include "conditions.h"

#include "characters.h"

#include <string.h>

/* ---- Fields ---- */

/*
 * Finds the next line of a field, from *at on: several lines of a list are one list (RFC 9110, 5.3).
 * Returns false if there is none.
 */
static bool conditions_next_line(const bide_http_exchange *exchange, const char *name, size_t *at,
                                 bide_slice *value)
{
    const bide_http_request *request = &exchange->request;
    while (*at < request->field_count) {
        const bide_http_field *field = &request->fields[(*at)++];
        if (bide_http_is(field->name, name)) {
            *value = field->value;
            return true;
        }
    }
    return false;
}

/* ---- Encodings ---- */

static bool conditions_is_space(char byte)
{
    return byte == ' ' || byte == '\t';
}

static bide_slice conditions_trim(bide_slice text)
{
    while (text.size != 0 && conditions_is_space(*text.data)) {
        text.data++;
        text.size--;
    }
    while (text.size != 0 && conditions_is_space(text.data[text.size - 1]))
        text.size--;
    return text;
}

/* Returns the trimmed text before the first `end`. *text becomes the text after it. */
static bide_slice conditions_split(bide_slice *text, char end)
{
    const char *at = text->size != 0 ? memchr(text->data, end, text->size) : NULL;
    bide_slice part = {text->data, at != NULL ? (size_t)(at - text->data) : text->size};
    size_t gone = at != NULL ? part.size + 1 : part.size;
    text->data += gone;
    text->size -= gone;
    return conditions_trim(part);
}

/* The weight of "q=0.5", in thousandths; 0 if it is malformed. */
static int conditions_parse_weight(bide_slice text)
{
    int weight = 0, digit = 1000;
    if (text.size == 0 || (*text.data != '0' && *text.data != '1') ||
        (text.size > 1 && text.data[1] != '.') || text.size > 5)
        return 0;
    for (size_t i = 0; i < text.size; i++)
        if (i != 1) {
            if (!http_is_of(text.data[i], HTTP_DIGIT))
                return 0;
            weight += (text.data[i] - '0') * digit;
            digit /= 10;
        }
    return weight <= 1000 ? weight : 0;
}

/* The weight among the parameters, in thousandths. A missing weight counts as 1. */
static int conditions_weight(bide_slice parameters)
{
    while (parameters.size != 0) {
        bide_slice one = conditions_split(&parameters, ';');
        if (one.size >= 2 && http_lower(one.data[0]) == 'q' && one.data[1] == '=')
            return conditions_parse_weight((bide_slice){one.data + 2, one.size - 2});
    }
    return 1000;
}

int bide_http_accepts_(const bide_http_exchange *exchange)
{
    enum { GZIP, BROTLI, PLAIN, OTHERS, NAMES };
    int weights[NAMES] = {-1, -1, -1, -1}; /* -1: it is not named */
    bide_slice list;
    for (size_t at = 0; conditions_next_line(exchange, "accept-encoding", &at, &list);)
        while (list.size != 0) {
            bide_slice parameters = conditions_split(&list, ',');
            bide_slice name = conditions_split(&parameters, ';');
            int weight = conditions_weight(parameters);
            int named = bide_http_is(name, "br")                                     ? BROTLI
                        : bide_http_is(name, "gzip") || bide_http_is(name, "x-gzip") ? GZIP
                        : bide_http_is(name, "identity")                             ? PLAIN
                        : bide_http_is(name, "*")                                    ? OTHERS
                                                                                     : NAMES;
            if (named != NAMES && weights[named] != 0) /* (a refusal stays) */
                weights[named] = weight;
        }
    for (int i = 0; i < PLAIN; i++)
        if (weights[i] < 0)
            weights[i] = weights[OTHERS] > 0 ? weights[OTHERS] : 0;
    int accepted = 0;
    if (weights[GZIP] > 0 && weights[GZIP] >= weights[PLAIN])
        accepted |= HTTP_GZIP;
    if (weights[BROTLI] > 0 && weights[BROTLI] >= weights[PLAIN])
        accepted |= HTTP_BROTLI;
    return weights[GZIP] > weights[BROTLI] ? accepted | HTTP_GZIP_FIRST : accepted;
}

/* ---- Tags ---- */

/* The list contains the tag. With `is_weak`, a weak tag of the list matches too. */
static bool conditions_has_tag(bide_slice list, const char *tag, bool is_weak)
{
    size_t size = strlen(tag);
    for (;;) {
        while (list.size != 0 && (conditions_is_space(*list.data) || *list.data == ',')) {
            list.data++;
            list.size--;
        }
        if (list.size == 0)
            return false;
        if (*list.data == '*')
            return true;
        bool weak = list.size > 2 && memcmp(list.data, "W/", 2) == 0;
        if (weak) {
            list.data += 2;
            list.size -= 2;
        }
        const char *end =
            *list.data == '"' && list.size > 1 ? memchr(list.data + 1, '"', list.size - 1) : NULL;
        if (end == NULL)
            return false;
        size_t length = (size_t)(end - list.data) + 1;
        if ((is_weak || !weak) && length == size && memcmp(list.data, tag, size) == 0)
            return true;
        list.data += length;
        list.size -= length;
    }
}

/* One of the lines of the field contains the tag. */
static bool conditions_names_tag(const bide_http_exchange *exchange, const char *name,
                                 const char *tag, bool is_weak)
{
    bide_slice list;
    for (size_t at = 0; conditions_next_line(exchange, name, &at, &list);)
        if (conditions_has_tag(list, tag, is_weak))
            return true;
    return false;
}

int bide_http_conditions_(const bide_http_exchange *exchange, const char *tag, int64_t modified)
{
    int64_t time;
    if (bide_http_request_field(exchange, "if-match").data != NULL) {
        if (!conditions_names_tag(exchange, "if-match", tag, false))
            return 412;
    } else {
        bide_slice since = bide_http_request_field(exchange, "if-unmodified-since");
        if (since.data != NULL && bide_http_parse_date(since, &time) == 0 && modified > time)
            return 412;
    }
    if (bide_http_request_field(exchange, "if-none-match").data != NULL)
        return conditions_names_tag(exchange, "if-none-match", tag, true) ? 304 : 0;
    bide_slice since = bide_http_request_field(exchange, "if-modified-since");
    return since.data != NULL && bide_http_parse_date(since, &time) == 0 && modified <= time ? 304
                                                                                             : 0;
}

/* ---- Ranges ---- */

/* Parses a number at the front of *text. Returns false if there is none, or if it is too long. */
static bool conditions_parse_number(bide_slice *text, uint64_t *number)
{
    size_t digits = 0;
    *number = 0;
    while (digits < text->size && http_is_of(text->data[digits], HTTP_DIGIT))
        *number = *number * 10 + (uint64_t)(text->data[digits++] - '0');
    if (digits == 0 || digits > 18)
        return false;
    text->data += digits;
    text->size -= digits;
    return true;
}

/* Parses "0-9", "5-" or "-3". Returns false for other texts. A range past the end has size 0. */
static bool conditions_parse_range(bide_slice text, uint64_t size, bide_http_range *range)
{
    uint64_t last = 0;
    range->begin = 0;
    range->size = 0;
    if (text.size != 0 && *text.data == '-') {
        text.data++;
        text.size--;
        if (!conditions_parse_number(&text, &last) || text.size != 0)
            return false;
        range->size = last < size ? last : size;
        range->begin = size - range->size;
        return true;
    }
    if (!conditions_parse_number(&text, &range->begin) || text.size == 0 || *text.data != '-')
        return false;
    text.data++;
    text.size--;
    if (text.size == 0)
        last = UINT64_MAX - 1;
    else if (!conditions_parse_number(&text, &last) || text.size != 0 || last < range->begin)
        return false;
    if (range->begin < size)
        range->size = (last < size ? last + 1 : size) - range->begin;
    return true;
}

/* "If-Range" allows a part: the file is unchanged. */
static bool conditions_is_unchanged(const bide_http_exchange *exchange, const char *tag,
                                    int64_t modified)
{
    bide_slice condition = bide_http_request_field(exchange, "if-range");
    int64_t time;
    if (condition.data == NULL)
        return true;
    if (condition.size != 0 && (*condition.data == '"' || *condition.data == 'W'))
        return condition.size == strlen(tag) && memcmp(condition.data, tag, condition.size) == 0;
    return bide_http_parse_date(condition, &time) == 0 && time == modified;
}

int bide_http_ranges_(const bide_http_exchange *exchange, const char *tag, int64_t modified,
                      uint64_t size, bide_http_range ranges[BIDE_HTTP_RANGES])
{
    static const char unit[] = "bytes=";
    bide_slice list = bide_http_request_field(exchange, "range");
    int count = 0;
    bool has_any = false;
    uint64_t sum = 0;
    if (list.size < sizeof unit - 1 || exchange->request.method != BIDE_HTTP_GET ||
        !bide_http_is((bide_slice){list.data, sizeof unit - 1}, unit) ||
        !conditions_is_unchanged(exchange, tag, modified))
        return 0;
    list.data += sizeof unit - 1;
    list.size -= sizeof unit - 1;
    while (list.size != 0) {
        bide_http_range range;
        bide_slice one = conditions_split(&list, ',');
        if (one.size == 0)
            continue;
        if (!conditions_parse_range(one, size, &range))
            return 0;
        has_any = true;
        if (range.size == 0)
            continue;
        if (count == BIDE_HTTP_RANGES || range.size > size - (sum < size ? sum : size))
            return 0; /* the parts would exceed the file: send the whole file */
        bide_assert(range.begin <= size && range.size <= size - range.begin);
        sum += range.size;
        ranges[count++] = range;
    }
    return has_any && count == 0 ? -1 : count;
}
