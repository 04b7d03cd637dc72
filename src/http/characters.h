/* Classes of characters, whatever the locale. Internal to HTTP. */
#ifndef BIDE_SRC_HTTP_CHARACTERS_H
#define BIDE_SRC_HTTP_CHARACTERS_H

#include <stdbool.h>

enum {
    HTTP_TOKEN = 1,  /* tchar of RFC 9110 */
    HTTP_VALUE = 2,  /* what may stand in a value: visible, space, tab, and 128 to 255 */
    HTTP_TARGET = 4, /* what may stand in a target: visible ASCII but for "#" */
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

#endif
