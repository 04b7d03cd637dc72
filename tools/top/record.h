/*
 * A record of a monitor: a JSON object of texts and whole numbers on one line. It comes from another
 * process, so it may be anything.
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

/* The texts point into the line that was read. */
typedef struct record {
    size_t count;
    record_field fields[MAX_RECORD_FIELDS];
} record;

/*
 * Reads a line of `length` bytes, in place; the buffer has room for a zero after it. False: the line
 * is not a valid record. Characters that a terminal may act upon, and bytes that are no UTF-8, become
 * dots.
 */
bool record_read(record *record, char *line, size_t length);

/*
 * Reads the character of UTF-8 at `text`, which is not at its end, and returns its length. The code is
 * RECORD_INVALID for a byte that begins none.
 */
size_t record_character(const char *text, size_t length, uint32_t *code);
#define RECORD_INVALID UINT32_MAX

/*
 * True for a character that a terminal may act upon: a control character (C0, DEL, C1), or one that
 * changes the direction of text or ends a line.
 */
bool record_is_control(uint32_t code);

/* The text of a field, or ""; the number of a field, or 0. */
const char *record_text(const record *record, const char *name);
uint64_t record_number(const record *record, const char *name);
bool record_has(const record *record, const char *name);

/* True if the record's field "is" has this text. */
bool record_is(const record *record, const char *what);

#endif
