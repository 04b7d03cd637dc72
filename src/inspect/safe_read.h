/* Reading memory of this process that may change meanwhile, or be gone. */
#ifndef BIDE_INSPECT_PEEK_H
#define BIDE_INSPECT_PEEK_H

#include <stdbool.h>
#include <stddef.h>

/* Can it be done here? 0 or a negative errno. */
int bide_peek_begin_(void);
void bide_peek_end_(void);

/*
 * Copies `size` bytes (at most 4096) from `address`; false if they cannot all be read. Never faults.
 */
bool bide_peek_(const void *address, void *to, size_t size);

#endif
