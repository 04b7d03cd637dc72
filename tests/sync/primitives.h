/*
 * All awaitable objects, as rows of one table: the facts that the tests of the contract of all waits
 * (contract_test.c, contract_stress_test.c) need for each. A new primitive is a new row, in the file of its family
 * in primitives/, and a line in primitives/all.c.
 *
 * A primitive lets waits end in one of two ways:
 *
 *     one by one   there are so many tokens. A wait that ends with 0 has one, and hands it on, to the next. So no
 *                  wake-up is ever in vain, and tokens can be counted: a mutex has one token, a semaphore many
 *     all          once it is woken, all waits end, and all that come: an event, a number that is published
 */
#ifndef BIDE_TESTS_PRIMITIVES_H
#define BIDE_TESTS_PRIMITIVES_H

#include "testing.h"

#include "bide/errors.h"
#include "bide/frame.h"

enum {
    IN_ORDER = 1,            /* waits end in order of arrival */
    HANDED = 2,              /* it has ended when it is woken or closed, not when it runs */
    HAS_KEY = 4,             /* the waiter of a wait that ended with 0 stays until hand_on */
    STAYS_HAD = 8,           /* tokens from before the close can still be taken */
    COUNTS_WHEN_CLOSED = 16, /* tokens that are handed on after the close are in free_tokens */
    WAKE_BLOCKS = 64,        /* `wake` is for a thread: it may block until a coroutine releases */
    LEAVES_A_GAP = 128, /* what is given back is a gap: hand_on goes past it */
    KEEPS_WHAT_IT_HAD = 32,  /* a waiter destroyed after it was woken: nobody else has its token then */
    AWAITS_NOTHING = 256,    /* its `begin` is a coroutine that awaits nothing if it is ready */
};

typedef struct primitive {
    const char *name;
    size_t object_size; /* aligned to a cache line */
    size_t waiter_size; /* aligned as malloc aligns */
    unsigned traits;
    unsigned tokens;      /* how often `wake` may be called; 0: it wakes all, once */
    unsigned max_waiting; /* at a time; 0: any number */
    size_t max_counted;   /* as many as it can count may wait at a time; 0: any number */

    /* Initializes the object so that a wait suspends. */
    void (*init)(void *object);

    bide_awaiter *(*begin)(void *waiter, void *object);

    /* The primitive's own wait for threads; NULL: bide_sync_wait_until of `begin`. */
    int (*wait_blocking)(void *waiter, void *object, uint64_t deadline);

    /* Ends one wait, or all. One thread at a time. */
    void (*wake)(void *object);

    /* The wait has ended with 0, and gives up its token. NULL if all are woken. */
    void (*hand_on)(void *object, void *waiter);

    /* Present and later waits end with -EPIPE. Any thread, more than once. NULL: the primitive has no close. */
    void (*close)(void *object);

    /* Whether all lists are empty. */
    bool (*is_idle)(void *object);

    /* The number of tokens of an unused object; after a close only if it COUNTS_WHEN_CLOSED. */
    unsigned (*free_tokens)(void *object);

    /* Destroys the object. */
    void (*destroy)(void *object);
} primitive;

extern const primitive *const primitives[];
extern const size_t primitives_count;

/* A row's functions get void pointers; this names them. */
#define PRIMITIVE_OBJECT(type, name) type *name = object
#define PRIMITIVE_WAITER(type, name) type *name = waiter

/* Waits as a thread does. */
int primitive_wait_blocking(const primitive *p, void *waiter, void *object, uint64_t deadline);

void *primitive_new_object(const primitive *p);
void primitive_free_object(const primitive *p, void *object);

/*
 * The memory of a waiter. Once its wait has ended nothing refers to it: it is retired, and whoever writes to it
 * afterwards is found when it is freed (or at once, as whoever reads it, by AddressSanitizer; and if that is another
 * thread by ThreadSanitizer).
 */
void *primitive_new_waiter(const primitive *p);
void primitive_retire_waiter(const primitive *p, void *waiter);

/* Makes retired memory usable again; false: it was written to. */
bool primitive_reuse_waiter(const primitive *p, void *waiter);
bool primitive_free_waiter(const primitive *p, void *waiter);

#endif
