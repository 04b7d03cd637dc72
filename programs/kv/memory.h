/*
 * The memory of keys, values, subscriptions, watches and tables of waiters, which is counted as the allocator has rounded it. The buffers of clients
 * and of files do not count. One thread.
 */
#ifndef KV_MEMORY_H
#define KV_MEMORY_H

#include <stddef.h>

extern size_t memory_used; /* bytes */

/* As malloc, realloc and free. */
void *memory_allocate(size_t size);
void *memory_allocate_zeroed(size_t count, size_t size);
void *memory_reallocate(void *memory, size_t size);
void memory_free(void *memory);

#endif
