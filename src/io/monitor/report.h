/*
 * The records of an answer: one JSON object a line, of texts and numbers alone.
 *
 *     report_begin(report, "loop");
 *     report_number(report, "in_flight", 3);
 *     report_end(report);                             // {"is":"loop","in_flight":3}
 */
#ifndef BIDE_IO_MONITOR_REPORT_H
#define BIDE_IO_MONITOR_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero is an empty one. A record that has no room, in memory or under the bound, is left out. */
typedef struct report {
    char *bytes;
    size_t length;
    size_t room;
    size_t begin;  /* of the record that is being written */
    bool is_full;  /* the record is to be left out */
    bool left_out; /* one was */
} report;

/* An answer has at most so many bytes. */
enum { REPORT_MOST = 4 << 20 };

void report_begin(report *report, const char *is);
void report_text(report *report, const char *name, const char *text);
void report_number(report *report, const char *name, uint64_t number);
void report_address(report *report, const char *name, uint64_t number); /* as a text, in hexadecimal */

/* False: it was left out. */
bool report_end(report *report);

/* Adds the records of another, as far as there is room. */
void report_append(report *report, const struct report *other);

void report_free(report *report);

#endif
