/* Memory of the checker's own. Running out of it ends the program: there is nobody to tell. */
#ifndef BIDE_CHECK_STORAGE_H
#define BIDE_CHECK_STORAGE_H

#include <stddef.h>

/*
 * An array with room for `needed` elements at least; its contents are kept, what is new is zeroed.
 */
void *grown(void *array, unsigned *capacity, unsigned needed, size_t size);

/* Zeroed memory for one computation: what was taken before scratch_begin is gone after it. */
void scratch_begin(void);
void *scratch(size_t size);

#endif
