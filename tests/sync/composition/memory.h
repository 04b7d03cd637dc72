/* Memory of which it is known when nothing may refer to it any more: until it is freed it is retired, and whoever
 * writes to it then is found (or reads it, where AddressSanitizer looks). */
#ifndef BIDE_TESTS_COMPOSITION_MEMORY_H
#define BIDE_TESTS_COMPOSITION_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

void *memory_new(size_t size);
void memory_retire(void *memory);
bool memory_is_retired(const void *memory);

/* Retires it, if it is not. False: it was written to since then. */
bool memory_free(void *memory);

#endif
