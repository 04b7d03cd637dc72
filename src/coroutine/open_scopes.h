/*
 * The open scopes, in debug builds: a coroutine that ends with an open scope of its own is misuse.
 *
 * A coroutine that ends does not know whether it has opened a scope, so it looks itself up among
 * their owners. They are in digital search trees, one of several by the owner's address: a scope's
 * place is on the path that the bits of its owner's key describe, and the key is the address times a
 * number that mixes it. So a look-up takes a step for each bit in which the keys of a tree differ:
 * logarithmic in the scopes of other coroutines. Scopes of one coroutine are below one another.
 *
 * A tree is consistent whenever its lock is free; the lock is held only to link, to unlink and to
 * look up. While no scope is open, `count` saves ending coroutines the lock.
 *
 * Source: Edward G. Coffman and James Eve, File Structures Using Hashing Functions.
 */
#ifndef BIDE_OPEN_SCOPES_H
#define BIDE_OPEN_SCOPES_H

#include "bide/scope.h"

/* Any thread; each blocks for some instructions of another. scope->owner is set. */
void bide_open_scopes_add_(bide_scope *scope);
void bide_open_scopes_remove_(bide_scope *scope);

/* Whether `owner` has an open scope. On the owner's thread, which has added and removed them. */
bool bide_open_scopes_has_(const bide_frame *owner);

/*
 * Around a fork, where the system has forks: before it, and after it in the parent and in the
 * child, as for the live roots (roots.h). A child that drops the scopes misses a misuse of scopes that
 * were open.
 */
void bide_open_scopes_before_fork_(void);
void bide_open_scopes_after_fork_(void);
void bide_open_scopes_in_child_(bool was_alone);

#endif
