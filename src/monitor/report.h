/*
 * The records of an answer: one JSON object per line, with texts and numbers as values.
 *
 *     bide_report_start_(report, "loop");
 *     bide_report_number_(report, "in_flight", 3);
 *     bide_report_end_(report);                             // {"is":"loop","in_flight":3}
 */
#ifndef BIDE_IO_MONITOR_REPORT_H
#define BIDE_IO_MONITOR_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero: empty. A record for which there is no room, in memory or below REPORT_MAX, is left out. */
typedef struct monitor_report {
    char *bytes;
    size_t length;
    size_t room;
    size_t begin;  /* of the record that is being written */
    bool is_full;  /* the current record has no room */
    bool left_out; /* a record was left out */
} monitor_report;

/* The maximum size of an answer, in bytes. */
enum { REPORT_MAX = 4 << 20 };

void bide_report_start_(monitor_report *report, const char *is);
void bide_report_text_(monitor_report *report, const char *name, const char *text);
void bide_report_number_(monitor_report *report, const char *name, uint64_t number);

/* Adds the number as a hexadecimal text. */
void bide_report_address_(monitor_report *report, const char *name, uint64_t number);

/* Ends the record. False: it was left out. */
bool bide_report_end_(monitor_report *report);

/* Adds the records of another report, as many as there is room for. */
void bide_report_append_(monitor_report *report, const monitor_report *other);

void bide_report_free_(monitor_report *report);

#endif
