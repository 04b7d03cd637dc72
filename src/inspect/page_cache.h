/*
 * Reading memory of this process that may change meanwhile, or be gone, a page at a time: what was
 * copied is read again and again until it is forgotten. One call of the system then serves many
 * reads of what stands close together.
 */
#ifndef BIDE_INSPECT_PAGES_H
#define BIDE_INSPECT_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* As bide_peek_, but what it finds may have been copied at any time since bide_page_cache_discard_. */
bool bide_page_cache_read_(const void *address, void *to, size_t size);

void bide_page_cache_discard_(void);

#endif
