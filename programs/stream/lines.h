/*
 * Messages as lines of text, for `stdio:`. A line is fields with a tab between them, and a line feed:
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
 * no key.
 */
#ifndef STREAM_LINES_H
#define STREAM_LINES_H

#include <bide/message_log.h>

#include <stddef.h>

/* Text that grows. All zero: empty. `bytes` is freed by its owner. */
struct text {
    char *bytes;
    size_t size;
    size_t capacity;
};

/* -ENOMEM: the text is as it was. */
int text_append(struct text *text, const void *bytes, size_t size);

/* Appends the line of a message, with its line feed. -ENOMEM: the text is as it was. */
int line_append(struct text *text, const bide_log_message *message);

/* The fields of a line before its data: the most headers that it can have. */
size_t line_fields(const char *line, size_t size);

/*
 * Parses a line, without its line feed, in place: the message points into it. `headers` has room for
 * line_fields(line, size). -EINVAL: it is none, and *why says why; the line has changed.
 */
int line_parse(char *line, size_t size, bide_log_header *headers, bide_log_message *message,
               const char **why);

#endif
