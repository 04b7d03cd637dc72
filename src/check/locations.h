/*
 * Which location of the graph an address stands for, in the running execution. It changes: memory
 * is initialised again, by bide_atomic_init or by a plain write, and is then a new object. Plain
 * writes are told by the compiler (-fsanitize=thread); those that it does not tell are seen if they
 * change what is in memory, for the steps of scenarios never do.
 */
#ifndef BIDE_CHECK_LOCATIONS_H
#define BIDE_CHECK_LOCATIONS_H

#include "graph.h"

/*
 * An address is the atomic object there, or one of those that belong to it and which no program
 * sees.
 */
typedef enum hidden {
    HIDDEN_NONE,
    HIDDEN_SLEEPERS,
    HIDDEN_LOCK,
    HIDDEN_ENDED,
    HIDDEN_THREAD
} hidden;

/* Before each execution. */
void locations_begin_run(void);

/*
 * The location for an access of `size` bytes, a new one if there is none. `again` is the event that
 * the graph has for it, or NULL.
 */
unsigned location_for(graph *g, const event *again, uintptr_t address, size_t size, hidden which);

/*
 * A new location at an address, for an initialising store; or that of the event that the graph has
 * for it.
 */
unsigned location_anew(graph *g, const event *again, uintptr_t address, size_t size);

bool location_is_at(const graph *g, unsigned location, uintptr_t address, hidden which);

/*
 * The object that `size` bytes at an address are a part of: its address, and its size. The bytes
 * themselves if no object is known there.
 */
uintptr_t location_around(const graph *g, const event *again, uintptr_t address, size_t *size);

/*
 * Plain memory is read or written: what the objects there hold is put into memory, as far as they
 * were run.
 */
void locations_settle(uintptr_t address, size_t size);

/* Plain memory was written: what was there is gone. */
void locations_forget(uintptr_t address, size_t size);

#endif
