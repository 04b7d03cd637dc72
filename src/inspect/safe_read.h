/* Safe reads of memory of this process that may change or be freed meanwhile. */
#ifndef BIDE_INSPECT_PEEK_H
#define BIDE_INSPECT_PEEK_H

#include <stdbool.h>
#include <stddef.h>

/* Prepares for reads: 0, or a negative errno if they are impossible. One thread at a time. */
int bide_peek_begin_(void);
void bide_peek_end_(void);

/* Copies `size` bytes, at most 4096; false: not all can be read. Never faults. */
bool bide_peek_(const void *address, void *to, size_t size);

#endif
