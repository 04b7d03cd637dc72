/*
 * Messages as lines of text, for the engine `stdio`. A line is fields with a tab between them, and a
 * line feed:
 *
 *     [key:KEY] [NAME=VALUE]... DATA
 *
 * The data is the last field, so a message without key and headers is its data alone. Other fields
 * are the key, which is the first of them, and headers. In each of them:
 *
 *     \\ \n \r \t   these bytes
 *     \xHH          the byte with that number in hexadecimal
 *
 * Writing escapes bytes below 0x20, 0x7f and \, and = and : in the names of headers. So each message
 * has one text. Control characters of 128 to 159 are written as they are. Reading takes any byte as it
 * is, but for tab, line feed and \, so a text file without tabs and \ is messages. A key of no bytes is
 * no key. Floor: log.
 */
#ifndef BIDE_SRC_LOG_LINES_H
#define BIDE_SRC_LOG_LINES_H

#include "bide/message_log.h"

/* Text that grows. All zero: empty. `bytes` is freed by its owner. */
struct log_text {
    uint8_t *bytes;
    size_t size;
    size_t capacity;
};

/* Appends the line of a message, with its line feed. -ENOMEM: the text is as it was. */
int bide_log_line_append_(struct log_text *text, const bide_log_message *message);

/* The most bytes of the line, without its line feed, of a message of that size. */
size_t bide_log_line_max_(uint32_t size);

/* The fields of a line before its data: the most headers that it can have. */
size_t bide_log_line_fields_(const char *line, size_t size);

/*
 * Parses a line, without its line feed, in place: the message points into it. `headers` has room for
 * the line's fields. NULL; or why it is none, and the line has changed.
 */
const char *bide_log_line_parse_(char *line, size_t size, bide_log_header *headers,
                                 bide_log_message *message);

#endif
