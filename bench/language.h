/*
 * The subjects of the benchmark `language`, each as an async function and as a body written by hand.
 */
#ifndef LANGUAGE_H
#define LANGUAGE_H

#include <stddef.h>
#include <stdint.h>

#include "bide/allocator.h"
#include "bide/auto_event.h"
#include "bide/event.h"

/* Returns the number of operations. */
typedef uint64_t language_run(void);

struct language_subject {
    const char *name;
    language_run *run;
    size_t frame; /* bytes, of the outermost function */
};

enum {
    LANGUAGE_CHILD, /* await of a child that completes at once */
    LANGUAGE_NESTED, /* await of a function that awaits one that awaits one, which complete at once */
    LANGUAGE_READY,     /* await of a set event */
    LANGUAGE_WAITS,     /* await of an event that another coroutine sets each time */
    LANGUAGE_BETWEEN,   /* sixteen additions between two awaits of a child */
    LANGUAGE_GENERATOR, /* a value of an asynchronous generator */
    LANGUAGE_TREE,      /* a call of a function with an allocated frame: a walk over a tree */
    LANGUAGE_SUBJECTS
};

extern const struct language_subject language_translated[LANGUAGE_SUBJECTS];
extern const struct language_subject language_by_hand[LANGUAGE_SUBJECTS];

/* The number of awaits of a subject in one run; the tree has a level for each bit of it. */
extern long language_turns;
extern unsigned language_nodes;

struct language_tree {
    struct language_tree *left, *right;
    long value;
};

extern struct language_tree *language_tree;
extern bide_event language_set;
extern bide_auto_event language_ping;

/* Allocates blocks of one size in constant time. */
extern bide_allocator *language_allocator;

#endif
