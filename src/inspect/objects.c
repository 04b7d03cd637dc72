/* The segments of loaded objects, by dl_iterate_phdr. One thread at a time. */
#define _GNU_SOURCE
#include "objects.h"

#include "../system/fork.h"

#if !defined __APPLE__
#include <link.h>
#endif
#include <stdint.h>

/* More than programs have; further segments are unknown. */
enum { SEGMENTS_MAX = 2048 };

typedef struct segment {
    uintptr_t begin, size;
    bool code;
} segment;

static segment loaded_segments[SEGMENTS_MAX];
static size_t loaded_count;

#if defined __APPLE__

/* (unknown: so no address is taken for one of an object) */
void bide_objects_note_(void)
{
    loaded_count = 0;
}

#else

static int objects_note_segment(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    for (unsigned i = 0; i < object->dlpi_phnum && loaded_count < SEGMENTS_MAX; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_LOAD)
            loaded_segments[loaded_count++] = (segment){object->dlpi_addr + part->p_vaddr,
                                                        part->p_memsz, (part->p_flags & PF_X) != 0};
    }
    return 0;
}

void bide_objects_note_(void)
{
    loaded_count = 0;
    /* The child of a fork would inherit glibc's lock as it is. */
    bide_delay_forks_();
    dl_iterate_phdr(objects_note_segment, NULL);
    bide_allow_forks_();
}

#endif

static bool objects_hold(uintptr_t address, size_t size, bool as_code)
{
    for (size_t i = 0; i < loaded_count; i++) {
        const segment *s = &loaded_segments[i];
        if (address - s->begin < s->size && s->size - (address - s->begin) >= size &&
            (s->code || !as_code))
            return true;
    }
    return false;
}

bool bide_objects_hold_(const void *address, size_t size)
{
    return objects_hold((uintptr_t)address, size, false);
}

bool bide_objects_hold_code_(const void *address)
{
    return objects_hold((uintptr_t)address, 1, true);
}
