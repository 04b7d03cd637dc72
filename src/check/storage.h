/* The checker's own memory. The program aborts if there is none left. */
#ifndef BIDE_CHECK_STORAGE_H
#define BIDE_CHECK_STORAGE_H

#include <stddef.h>

/*
 * Returns the array with room for at least `needed` elements. New elements are zeroed.
 */
void *grown(void *array, unsigned *capacity, unsigned needed, size_t size);

/* Zeroed memory for one computation. scratch_begin() releases all of it. */
void scratch_begin(void);
void *scratch(size_t size);

#endif
