/*
 * The live roots of the process: each is in a list from its start until just before `ended` is
 * called; and the live branches of scopes, in lists of their own, from the spawn until just before
 * they are counted down. For bide_dump, the monitor, and for the debugger (scripts/gdb/bide.py),
 * which knows these structs by their names.
 *
 * There are several lists of each, chosen by the address, so that threads that begin and end roots
 * seldom collide. A list is consistent whenever its lock is free; the lock is held only to link, to
 * unlink, and to copy a few addresses.
 *
 * A root costs two locked instructions more because of that, some 15 ns. With BIDE_ROOTS defined as 0
 * when the library is built there are no lists. The model checker runs the library so, because each
 * list would multiply the executions; a scenario of its own has the lists.
 */
#ifndef BIDE_ROOTS_H
#define BIDE_ROOTS_H

#include "short_lock.h"

#include "bide/extend/branch.h"
#include "bide/extend/root.h"

#ifndef BIDE_ROOTS
#define BIDE_ROOTS (!BIDE_CHECK)
#endif

/* One if there is one thread. */
enum { BIDE_ROOT_LISTS_ = __STDC_HOSTED__ && !BIDE_CHECK ? 16 : 1 };

typedef struct bide_root_list_ {
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_short_lock_ lock;
    bide_root_links_ *first;

    /* The position of the list's reader, between two roots. New roots are added to the front, behind
     * the reader, so it meets each root that lives all the time once, and others at most once. */
    bide_root_links_ cursor;
} bide_root_list_;

extern bide_root_list_ bide_roots_[BIDE_ROOT_LISTS_];
extern bide_root_list_ bide_branches_[BIDE_ROOT_LISTS_];

/* Any thread; blocks for some instructions of another. */
void bide_roots_add_(bide_root *root);
void bide_roots_remove_(bide_root *root);
void bide_branches_add_(bide_branch *branch);
void bide_branches_remove_(bide_branch *branch);

/*
 * Whether a root at this address is among the live ones. The root is not read. A debug build of the
 * library looks it up among the operations in flight (flights.h), in a few steps; another one compares
 * the youngest of its list.
 */
bool bide_roots_have_(const bide_root *root);

/* One reader at a time walks the lists: between these two calls. Blocks. */
void bide_roots_look_(void);
void bide_roots_looked_(void);

/* Moves the reader before the list's first root. */
void bide_roots_enter_(bide_root_list_ *list);

/*
 * Copies the addresses of at most `max` next links, and moves behind them. Returns their number; 0:
 * there are no more. When it returns, those roots may have ended already.
 */
size_t bide_roots_next_(bide_root_list_ *list, const bide_root_links_ **links, size_t max);

void bide_roots_leave_(bide_root_list_ *list);

/* Locks the list of a root at this address, for some instructions. */
bide_root_list_ *bide_roots_hold_(const bide_root *root);
void bide_roots_release_(bide_root_list_ *list);

/*
 * A root that was begun on `scheduler` and has not ended; NULL if there is none, or there are no
 * lists.
 */
const bide_root *bide_roots_find_(const bide_scheduler *scheduler);

/*
 * How many roots and branches were begun on `scheduler` and have not ended, up to `max`; 0 if there are
 * no lists. Holds each list's lock while it walks that list.
 */
size_t bide_roots_count_(const bide_scheduler *scheduler, size_t max);

/*
 * Around a fork, where the system has forks: before it, and after it in the parent and in the
 * child. The lists are consistent in the child, and their locks free. If the parent `was_alone`, with
 * one thread, the child has its roots. Otherwise it drops them all: roots of other threads never end
 * there, and their memory, a thread's stack, may be reused. A root that does continue in the child is
 * no longer shown by bide_dump.
 */
void bide_roots_before_fork_(void);
void bide_roots_after_fork_(void);
void bide_roots_in_child_(bool was_alone);

/* The code of every root, and of every branch. */
extern const bide_coroutine_code bide_root_code_;
extern const bide_coroutine_code bide_branch_code_;

#endif
