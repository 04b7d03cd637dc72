/* Character classes, independent of the locale, and helpers for texts. Internal to HTTP. */
#ifndef BIDE_SRC_HTTP_CHARACTERS_H
#define BIDE_SRC_HTTP_CHARACTERS_H

#include "bide/http_message.h"

#include <stdbool.h>
#include <string.h>

enum {
    HTTP_TOKEN = 1,  /* tchar of RFC 9110 */
    HTTP_VALUE = 2,  /* valid in a field's value: visible, space, tab, and 128 to 255 */
    HTTP_TARGET = 4, /* valid in a target: visible ASCII except "#" */
    HTTP_HOST = 8,   /* unreserved, sub-delims, "%", ":", "[", "]" */
    HTTP_DIGIT = 16,
    HTTP_HEX = 32,
};

extern const unsigned char bide_http_classes_[256];

static inline bool http_is_of(char character, int class)
{
    return (bide_http_classes_[(unsigned char)character] & class) != 0;
}

static inline char http_lower(char character)
{
    return character >= 'A' && character <= 'Z' ? (char)(character - 'A' + 'a') : character;
}

static inline bide_slice http_text_of(const char *string)
{
    return (bide_slice){string, strlen(string)};
}

/* Ignores case. */
static inline bool http_text_starts_with(bide_slice text, const char *prefix)
{
    size_t size = strlen(prefix);
    return text.size >= size && bide_http_is((bide_slice){text.data, size}, prefix);
}

#endif
