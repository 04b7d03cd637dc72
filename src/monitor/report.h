/*
 * The records of an answer: one JSON object a line, of texts and numbers alone.
 *
 *     bide_report_begin_(report, "loop");
 *     bide_report_number_(report, "in_flight", 3);
 *     bide_report_end_(report);                             // {"is":"loop","in_flight":3}
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
enum { MAX_REPORT = 4 << 20 };

void bide_report_begin_(report *report, const char *is);
void bide_report_text_(report *report, const char *name, const char *text);
void bide_report_number_(report *report, const char *name, uint64_t number);
void bide_report_address_(report *report, const char *name, uint64_t number); /* as a text, in hexadecimal */

/* False: it was left out. */
bool bide_report_end_(report *report);

/* Adds the records of another, as far as there is room. */
void bide_report_append_(report *report, const struct report *other);

void bide_report_free_(report *report);

#endif
