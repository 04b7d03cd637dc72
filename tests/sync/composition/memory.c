/* Retired memory; see memory.h. */
#include "memory.h"

#include "bide/compiler.h"

#include <stdlib.h>
#include <string.h>

#if defined __SANITIZE_ADDRESS__
#define ASAN 1
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define ASAN 1
#endif
#endif
#ifdef ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(memory, size)   ((void)(memory), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(memory, size) ((void)(memory), (void)(size))
#endif

enum { RETIRED = 0xA5 };

typedef struct header {
    BIDE_ALIGNAS(BIDE_CACHE_LINE) size_t size;
    bool retired;
} header;

void *memory_new(size_t size)
{
    size_t all = (sizeof(header) + size + BIDE_CACHE_LINE - 1) / BIDE_CACHE_LINE * BIDE_CACHE_LINE;
    header *self = aligned_alloc(BIDE_CACHE_LINE, all);
    if (self == NULL)
        abort();
    memset(self, 0, all);
    self->size = size;
    return self + 1;
}

static header *header_of(const void *memory)
{
    return (header *)(uintptr_t)memory - 1;
}

bool memory_is_retired(const void *memory)
{
    return header_of(memory)->retired;
}

void memory_retire(void *memory)
{
    header *self = header_of(memory);
    if (self->retired)
        return;
    self->retired = true;
    memset(memory, RETIRED, self->size);
    ASAN_POISON_MEMORY_REGION(memory, self->size);
}

bool memory_free(void *memory)
{
    header *self = header_of(memory);
    const unsigned char *bytes = memory;
    bool intact = true;
    memory_retire(memory);
    ASAN_UNPOISON_MEMORY_REGION(memory, self->size);
    for (size_t i = 0; i < self->size && intact; i++)
        intact = bytes[i] == RETIRED;
    free(self);
    return intact;
}
