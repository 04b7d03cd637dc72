/*
 * The scopes that are open, where misuse is looked for: so that a coroutine that ends is asked
 * about its own.
 *
 * A coroutine that ends does not know whether it has opened one, so it looks for itself among their
 * owners. They are in digital search trees, one of several by the owner's address: a scope's place
 * is on the path that the bits of its owner's key describe, and the key is the address times a
 * number that mixes it. So finding one takes a step for each bit in which the keys of a tree
 * differ: logarithmic in the scopes of other coroutines. Those of one coroutine stand one below the
 * other.
 *
 * Under its lock a tree is whole; nothing is done under it but to link, to unlink and to look.
 * `count` spares those that end while no scope is open the lock.
 *
 * Source: Edward G. Coffman and James Eve, File Structures Using Hashing Functions.
 */
#ifndef BIDE_OPEN_SCOPES_H
#define BIDE_OPEN_SCOPES_H

#include "bide/scope.h"

/* Any thread; each blocks for some instructions of another. `scope` has its owner. */
void bide_open_scopes_add_(bide_scope *scope);
void bide_open_scopes_remove_(bide_scope *scope);

/* Has `owner` one? By the owner, on whose thread they were added and removed. */
bool bide_open_scopes_has_(const bide_frame *owner);

/*
 * Around a fork, where the system has forks: before it, and after it in the parent and in the
 * child, as for the live roots (roots.h). A child that forgets the scopes misses a misuse of those
 * that were open.
 */
void bide_open_scopes_before_fork_(void);
void bide_open_scopes_after_fork_(void);
void bide_open_scopes_in_child_(bool was_alone);

#endif
