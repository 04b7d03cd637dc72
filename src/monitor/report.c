#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(report *report, const char *bytes, size_t length)
{
    if (report->is_full)
        return;
    if (report->room - report->length < length) {
        size_t room = report->room != 0 ? 2 * report->room : 4096;
        while (room - report->length < length)
            room *= 2;
        char *larger = room <= MAX_REPORT ? realloc(report->bytes, room) : NULL;
        if (larger == NULL) {
            report->is_full = true;
            return;
        }
        report->bytes = larger;
        report->room = room;
    }
    memcpy(report->bytes + report->length, bytes, length);
    report->length += length;
}

static void add_text(report *report, const char *text)
{
    add(report, text, strlen(text));
}

/* How many bytes a character has that begins here, in UTF-8; 0: it is none. */
static size_t length_of_character(const unsigned char *at)
{
    static const struct {
        unsigned char mask, mark;
        uint32_t min;
    } kinds[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    for (size_t kind = 0; kind < 4; kind++) {
        if ((at[0] & kinds[kind].mask) != kinds[kind].mark)
            continue;
        uint32_t value = at[0] & (unsigned char)~kinds[kind].mask;
        for (size_t i = 1; i <= kind; i++) {
            if ((at[i] & 0xc0) != 0x80)
                return 0;
            value = value << 6 | (at[i] & 0x3fu);
        }
        bool is_surrogate = value >= 0xd800 && value < 0xe000;
        return value < kinds[kind].min || value > 0x10ffff || is_surrogate ? 0 : kind + 1;
    }
    return 0;
}

static void add_quoted(report *report, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    add_text(report, "\"");
    while (*at != '\0') {
        char escape[8];
        size_t length = length_of_character(at);
        if (length == 0 || *at < ' ' || *at == 0x7f || *at == '"' || *at == '\\') {
            unsigned code = length == 0 ? 0xfffdu : *at; /* the replacement character */
            add(report, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", code));
            length = 1;
        } else {
            add(report, (const char *)at, length);
        }
        at += length;
    }
    add_text(report, "\"");
}

static void add_name(report *report, const char *name)
{
    add_text(report, ",\"");
    add_text(report, name);
    add_text(report, "\":");
}

void bide_report_begin_(report *report, const char *is)
{
    report->begin = report->length;
    report->is_full = false;
    add_text(report, "{\"is\":");
    add_quoted(report, is);
}

void bide_report_text_(report *report, const char *name, const char *text)
{
    add_name(report, name);
    add_quoted(report, text);
}

void bide_report_number_(report *report, const char *name, uint64_t number)
{
    char digits[24];
    add_name(report, name);
    add(report, digits, (size_t)snprintf(digits, sizeof digits, "%" PRIu64, number));
}

void bide_report_address_(report *report, const char *name, uint64_t number)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%" PRIx64, number);
    bide_report_text_(report, name, digits);
}

bool bide_report_end_(report *report)
{
    add_text(report, "}\n");
    if (report->is_full) {
        report->length = report->begin;
        report->left_out = true;
    }
    return !report->is_full;
}

void bide_report_append_(report *report, const struct report *other)
{
    size_t at = 0;
    report->left_out |= other->left_out;
    while (at < other->length) {
        const char *end = memchr(other->bytes + at, '\n', other->length - at);
        size_t length = (size_t)(end - (other->bytes + at)) + 1;
        report->begin = report->length;
        report->is_full = false;
        add(report, other->bytes + at, length);
        if (report->is_full) {
            report->left_out = true;
            return;
        }
        at += length;
    }
}

void bide_report_free_(report *report)
{
    free(report->bytes);
    *report = (struct report){0};
}
