/*
 * Memory that is retired before it is freed, when nothing may refer to it any more: a later write to it is
 * detected (and a read, by AddressSanitizer).
 */
#ifndef BIDE_TESTS_COMPOSITION_MEMORY_H
#define BIDE_TESTS_COMPOSITION_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

void *memory_new(size_t size);
void memory_retire(void *memory);
bool memory_is_retired(const void *memory);

/* Retires it, if it is not retired. False: it was written to after it was retired. */
bool memory_free(void *memory);

#endif
