/* Parses keys from the bytes that a terminal sends. */
#ifndef TOP_KEYS_H
#define TOP_KEYS_H

#include <stddef.h>

/* Characters are themselves. */
enum {
    KEY_CONTROL_C = 3,
    KEY_BACKSPACE = 8,
    KEY_CONTROL_L = 12,
    KEY_ENTER = 13,
    KEY_CONTROL_Z = 26,
    KEY_ESCAPE = 27,
    KEY_DELETE = 127,
    KEY_UP = 256,
    KEY_DOWN,
    KEY_LEFT,
    KEY_RIGHT,
    KEY_PAGE_UP,
    KEY_PAGE_DOWN,
    KEY_HOME,
    KEY_END,
    KEY_OTHER
};

/* Returns the first key of some bytes, and sets *taken to its length. A lone escape at the end is a key. */
int key_of(const char *bytes, size_t count, size_t *taken);

#endif
