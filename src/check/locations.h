/*
 * The map from addresses to locations of the graph, in the running execution. The location of an
 * address changes: memory that is initialised again, by bide_atomic_init or by a plain write, is a
 * new object. The compiler reports plain writes (-fsanitize=thread). Other plain writes are detected
 * if they change the value in memory, because the steps of scenarios never change it.
 */
#ifndef BIDE_CHECK_LOCATIONS_H
#define BIDE_CHECK_LOCATIONS_H

#include "graph.h"

/*
 * The objects at an address: the atomic object itself, and the hidden ones that belong to it, which
 * only the checker uses.
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
 * Returns the location for an access of `size` bytes; adds one if there is none. `again` is the event
 * that the graph has for this access, or NULL.
 */
unsigned location_for(graph *g, const event *again, uintptr_t address, size_t size, hidden which);

/*
 * Adds a location at an address, for an initialising store, or returns the location of the event that
 * the graph has for this store.
 */
unsigned location_anew(graph *g, const event *again, uintptr_t address, size_t size);

/* The address of the object, or of the one that a hidden object belongs to. */
uintptr_t location_address(const graph *g, unsigned location);
bool location_is_at(const graph *g, unsigned location, uintptr_t address, hidden which);

/*
 * Finds the object that contains `size` bytes at an address: returns its address and sets its size.
 * If no object is known there, the object is the bytes themselves.
 */
uintptr_t location_around(const graph *g, const event *again, uintptr_t address, size_t *size);

/*
 * Before plain memory is read or written: writes the values of the objects there, from their stores
 * that were run, to memory.
 */
void locations_write_back(uintptr_t address, size_t size);

/* After plain memory was written: forgets the objects that were there. */
void locations_discard(uintptr_t address, size_t size);

#endif
