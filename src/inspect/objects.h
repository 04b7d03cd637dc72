/* What the program and its libraries were loaded with: where constants and code can be. */
#ifndef BIDE_INSPECT_OBJECTS_H
#define BIDE_INSPECT_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>

/* Notes where everything is loaded, now. One thread at a time. */
void bide_objects_note_(void);

/* Are these bytes part of one loaded object? (A pointer that comes from nowhere is seldom that.) */
bool bide_objects_hold_(const void *address, size_t size);

/* ... in a part that is code? */
bool bide_objects_hold_code_(const void *address);

#endif
