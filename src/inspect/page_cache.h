/*
 * A cache of pages of this process, for memory that may change or be freed meanwhile: each page is
 * copied by the kernel once, and read from the copy until the cache is cleared. So one system call
 * serves many reads that are close together. One thread at a time.
 */
#ifndef BIDE_INSPECT_PAGE_CACHE_H
#define BIDE_INSPECT_PAGE_CACHE_H

#include <stdbool.h>
#include <stddef.h>

/* As bide_peek_, but the bytes may have been copied at any time since the cache was cleared. */
bool bide_page_cache_read_(const void *address, void *to, size_t size);

void bide_page_cache_clear_(void);

#endif
