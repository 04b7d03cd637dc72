/*
 * The live roots of the process: each is in a list from its begin to just before `ended` is called;
 * and the live branches of scopes, in lists of their own, from the spawn to just before they are
 * counted down. For bide_dump, the monitor, and for the debugger (scripts/gdb/bide.py), which knows these structs by their
 * names.
 *
 * There are several lists of each, chosen by the address, so that threads that begin and end them
 * seldom meet. Under its lock a list is whole; nothing is done under it but to link, to unlink, and
 * to copy a few addresses.
 *
 * Each costs two locked instructions more for it, some 15 ns; with BIDE_ROOTS defined as 0 when
 * the library is built there are no lists. So it is where the model checker runs the library,
 * because each would multiply what it explores; a scenario of its own has the lists.
 */
#ifndef BIDE_ROOTS_H
#define BIDE_ROOTS_H

#include "short_lock.h"

#include "bide/extend/branch.h"
#include "bide/extend/root.h"

#ifndef BIDE_ROOTS
#define BIDE_ROOTS (!BIDE_CHECK)
#endif

/* One where there is one thread. */
enum { BIDE_ROOT_LISTS_ = __STDC_HOSTED__ && !BIDE_CHECK ? 16 : 1 };

typedef struct bide_root_list_ {
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_short_lock_ lock;
    bide_root_links_ *first;

    /* Where a reader of the list stands, between two roots. What is added meanwhile goes to the
     * front, behind the reader, so it meets each that lives all the time once, and others at most
     * once. */
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
 * Is a root at this address among the live ones? Nothing of it is read. Where there are very many,
 * those that began last are looked at.
 */
bool bide_roots_have_(const bide_root *root);

/* One reader at a time looks at the lists: between these two. Blocks. */
void bide_roots_look_(void);
void bide_roots_looked_(void);

/* Goes before the list's first. */
void bide_roots_enter_(bide_root_list_ *list);

/*
 * Copies the addresses of the next links, at most `max`, and moves behind them. Returns how many;
 * 0: there are no more. When it returns what they are in may have ended already.
 */
size_t bide_roots_next_(bide_root_list_ *list, const bide_root_links_ **links, size_t max);

void bide_roots_leave_(bide_root_list_ *list);

/* Keeps the list that a root at this address is in as it is, for some instructions. */
bide_root_list_ *bide_roots_hold_(const bide_root *root);
void bide_roots_let_go_(bide_root_list_ *list);

/*
 * A root that was begun on `scheduler` and has not ended; NULL if there is none, or there are no
 * lists.
 */
const bide_root *bide_roots_find_(const bide_scheduler *scheduler);

/*
 * Around a fork, where the system has forks: before it, and after it in the parent and in the
 * child. The lists are whole in the child, and nobody holds them. If the parent `was_alone`, with
 * one thread, the child has its roots. Otherwise it forgets them all: those of other threads never
 * end there, and what they stood in, a thread's stack, may become another's. What of them goes on
 * in the child does so, and bide_dump shows it no more.
 */
void bide_roots_before_fork_(void);
void bide_roots_after_fork_(void);
void bide_roots_in_child_(bool was_alone);

/* The code of every root, and of every branch. */
extern const bide_coroutine_code bide_root_code_;
extern const bide_coroutine_code bide_branch_code_;

#endif
