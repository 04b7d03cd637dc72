/*
 * The escape sequences of the keys that bide-top knows.
 */
#include "keys.h"

#include <string.h>

/* The sequences after "ESC [" or "ESC O". */
static const struct {
    const char *text;
    int key;
} sequences[] = {
    {"A", KEY_UP},   {"B", KEY_DOWN}, {"C", KEY_RIGHT},    {"D", KEY_LEFT},
    {"H", KEY_HOME}, {"F", KEY_END},  {"1~", KEY_HOME},    {"7~", KEY_HOME},
    {"4~", KEY_END}, {"8~", KEY_END}, {"5~", KEY_PAGE_UP}, {"6~", KEY_PAGE_DOWN},
};

/* A sequence ends with a character from '@' to '~'. */
static int sequence_of(const char *bytes, size_t count, size_t *taken)
{
    size_t end = 2;
    while (end < count && (bytes[end] < '@' || bytes[end] > '~'))
        end++;
    *taken = end < count ? end + 1 : count;
    for (size_t i = 0; i < sizeof sequences / sizeof sequences[0]; i++) {
        size_t length = strlen(sequences[i].text);
        if (*taken == 2 + length && memcmp(bytes + 2, sequences[i].text, length) == 0)
            return sequences[i].key;
    }
    return KEY_OTHER;
}

int key_of(const char *bytes, size_t count, size_t *taken)
{
    unsigned char first = (unsigned char)bytes[0];
    *taken = 1;
    if (first == KEY_ESCAPE && count > 1 && (bytes[1] == '[' || bytes[1] == 'O'))
        return sequence_of(bytes, count, taken);
    if (first == '\n')
        return KEY_ENTER;
    return first;
}
