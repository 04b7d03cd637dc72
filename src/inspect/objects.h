/* The memory that the program and its libraries were loaded to: where constants and code are. */
#ifndef BIDE_INSPECT_OBJECTS_H
#define BIDE_INSPECT_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>

/* Notes where everything is loaded now. One thread at a time. */
void bide_objects_note_(void);

/* Whether the bytes are in a loaded object. */
bool bide_objects_hold_(const void *address, size_t size);

/* Whether the address is in the code of a loaded object. */
bool bide_objects_hold_code_(const void *address);

#endif
