/* Reports: building JSON records in memory. Used by the thread of their owner only. */
#include "report.h"

#include "bide/platform.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void report_add(monitor_report *report, const char *bytes, size_t length)
{
    if (report->is_full)
        return;
    if (report->room - report->length < length) {
        size_t room = report->room != 0 ? 2 * report->room : 4096;
        while (room - report->length < length)
            room *= 2;
        char *larger = room <= REPORT_MAX ? realloc(report->bytes, room) : NULL;
        if (larger == NULL) {
            report->is_full = true;
            return;
        }
        report->bytes = larger;
        report->room = room;
    }
    bide_assert(report->begin <= report->length && length <= report->room - report->length);
    memcpy(report->bytes + report->length, bytes, length);
    report->length += length;
}

static void report_add_text(monitor_report *report, const char *text)
{
    report_add(report, text, strlen(text));
}

/* The length in bytes of the UTF-8 character that begins here; 0: it is not UTF-8. */
static size_t report_character_length(const unsigned char *at)
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

static void report_add_quoted(monitor_report *report, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    report_add_text(report, "\"");
    while (*at != '\0') {
        char escape[8];
        size_t length = report_character_length(at);
        if (length == 0 || *at < ' ' || *at == 0x7f || *at == '"' || *at == '\\') {
            unsigned code = length == 0 ? 0xfffdu : *at; /* the replacement character */
            report_add(report, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", code));
            length = 1;
        } else {
            report_add(report, (const char *)at, length);
        }
        at += length;
    }
    report_add_text(report, "\"");
}

static void report_add_name(monitor_report *report, const char *name)
{
    report_add_text(report, ",\"");
    report_add_text(report, name);
    report_add_text(report, "\":");
}

void bide_report_start_(monitor_report *report, const char *is)
{
    report->begin = report->length;
    report->is_full = false;
    report_add_text(report, "{\"is\":");
    report_add_quoted(report, is);
}

void bide_report_text_(monitor_report *report, const char *name, const char *text)
{
    report_add_name(report, name);
    report_add_quoted(report, text);
}

void bide_report_number_(monitor_report *report, const char *name, uint64_t number)
{
    char digits[24];
    report_add_name(report, name);
    report_add(report, digits, (size_t)snprintf(digits, sizeof digits, "%" PRIu64, number));
}

void bide_report_address_(monitor_report *report, const char *name, uint64_t number)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%" PRIx64, number);
    bide_report_text_(report, name, digits);
}

bool bide_report_end_(monitor_report *report)
{
    report_add_text(report, "}\n");
    if (report->is_full) {
        report->length = report->begin;
        report->left_out = true;
    }
    return !report->is_full;
}

void bide_report_append_(monitor_report *report, const monitor_report *other)
{
    size_t at = 0;
    report->left_out |= other->left_out;
    while (at < other->length) {
        const char *end = memchr(other->bytes + at, '\n', other->length - at);
        size_t length = (size_t)(end - (other->bytes + at)) + 1;
        report->begin = report->length;
        report->is_full = false;
        report_add(report, other->bytes + at, length);
        if (report->is_full) {
            report->left_out = true;
            return;
        }
        at += length;
    }
}

void bide_report_free_(monitor_report *report)
{
    free(report->bytes);
    *report = (monitor_report){0};
}
