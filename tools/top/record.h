/*
 * One record of a monitor: a JSON object of texts and whole numbers, in one line. What comes is
 * another process's, and may be anything.
 */
#ifndef TOP_RECORD_H
#define TOP_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_RECORD_FIELDS = 64 };

typedef struct record_field {
    const char *name;
    const char *text; /* NULL: it is a number */
    uint64_t number;
} record_field;

/* The texts are in the line that it was read from. */
typedef struct record {
    size_t count;
    record_field fields[MAX_RECORD_FIELDS];
} record;

/*
 * Reads a line of `length` bytes, and changes it; behind it there is room for a zero. False: it is no
 * such object. Control characters become dots.
 */
bool record_read(record *record, char *line, size_t length);

/* Of the field of that name: its text, or ""; its number, or 0. */
const char *record_text(const record *record, const char *name);
uint64_t record_number(const record *record, const char *name);
bool record_has(const record *record, const char *name);

/* What it is: the text of its field "is". */
bool record_is(const record *record, const char *what);

#endif
