#define _GNU_SOURCE
#include "objects.h"

#include "../system/fork.h"

#include <link.h>
#include <stdint.h>

/* More than programs have; what is beyond is not known. */
enum { MAX_SEGMENTS = 2048 };

typedef struct segment {
    uintptr_t begin, size;
    bool code;
} segment;

static segment segments[MAX_SEGMENTS];
static size_t count;

static int note(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    for (unsigned i = 0; i < object->dlpi_phnum && count < MAX_SEGMENTS; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_LOAD)
            segments[count++] = (segment){object->dlpi_addr + part->p_vaddr, part->p_memsz,
                                          (part->p_flags & PF_X) != 0};
    }
    return 0;
}

void bide_objects_note_(void)
{
    count = 0;
    /* (glibc leaves the lock of this as it is in a child) */
    bide_delay_forks_();
    dl_iterate_phdr(note, NULL);
    bide_allow_forks_();
}

static bool hold(uintptr_t address, size_t size, bool as_code)
{
    for (size_t i = 0; i < count; i++) {
        const segment *s = &segments[i];
        if (address - s->begin < s->size && s->size - (address - s->begin) >= size &&
            (s->code || !as_code))
            return true;
    }
    return false;
}

bool bide_objects_hold_(const void *address, size_t size)
{
    return hold((uintptr_t)address, size, false);
}

bool bide_objects_hold_code_(const void *address)
{
    return hold((uintptr_t)address, 1, true);
}
