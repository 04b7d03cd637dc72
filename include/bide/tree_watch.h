/*
 * A directory tree that is kept in step with the disk: what is in it, and each change, however deep.
 * Floor: io.
 *
 *     error = bide_tree_watcher_create(&tree, "/srv/site", NULL);
 *     ...
 *     for (;;) {
 *         bide_try(bide_tree_watch_next(&self->next, tree));
 *         if (self->next.change == BIDE_TREE_MOVED)
 *             printf("%s is now %s\n", self->next.from, self->next.path);
 *         else
 *             printf("%s: %d\n", self->next.path, self->next.change);
 *     }
 *     ...
 *     bide_tree_watcher_destroy(tree);
 *
 * The first events are of all that is there, BIDE_TREE_FOUND. Applying the events in their order to
 * an empty set of paths gives the tree: a directory comes before what is in it, a path that is
 * created or moved to was free, one that is removed or moved from was there. Removing or moving a
 * directory is one event for all that is in it. When the disk has come to rest and its last change
 * was reported, the set equals the disk.
 *
 * That holds through all races: a directory is watched before it is read, so nothing that is made in it
 * meanwhile is lost; and when the kernel has dropped events (fs.inotify.max_queued_events), the tree is
 * read anew, and the differences are the events. So an overflow is no event, and costs a walk over the
 * tree. Changes that follow each other closely may be reported as one: a file that is made and
 * removed before the watcher has looked is not reported at all, and a move that was not seen as a
 * whole is a removal and a creation. So is one that makes a path longer than PATH_MAX.
 *
 * A watcher keeps a record of each entry, some 200 bytes, and one watch of the kernel for each directory
 * (fs.inotify.max_user_watches). Symbolic links are entries, and are not followed. A directory that may
 * not be read, or not be searched, is an entry without anything in it, until its mode is changed. A
 * directory that is mounted twice in the tree is watched at one of its places.
 *
 * It uses inotify(7), and /proc: see file_watch.h, which is for single files and directories.
 */
#ifndef BIDE_TREE_WATCH_H
#define BIDE_TREE_WATCH_H

#include "bide/blocking.h"
#include "bide/file_watch.h"

BIDE_EXTERN_C_BEGIN

/* The change of an entry. */
typedef enum bide_tree_change {
    BIDE_TREE_FOUND,    /* it was there when the tree was first read */
    BIDE_TREE_CREATED,  /* it is new */
    BIDE_TREE_REMOVED,  /* it is gone, with all that was in it; "" is the tree itself */
    BIDE_TREE_MODIFIED, /* it was written to and closed, or its mode, owner or times have changed */
    BIDE_TREE_MOVED,    /* it was at `from`, with all that is in it */
} bide_tree_change;

/* How a tree is watched. All zero is a good beginning. */
typedef struct bide_tree_watcher_options {
    size_t max_entries;      /* 0: 1,000,000 */
    bide_blocking *blocking; /* reads directories on its threads; NULL: the loop's thread does */
} bide_tree_watcher_options;

/* How it does. */
typedef struct bide_tree_watcher_stats {
    size_t entries;
    size_t directories; /* that are watched, the root too */
    uint64_t overflows; /* of the kernel's queue: each led to a walk over the tree */
} bide_tree_watcher_stats;

typedef struct bide_tree_watcher bide_tree_watcher;

/* Waits for one event. The caller's memory until it has ended with 0; then these say what it is. */
typedef struct bide_tree_event_operation {
    bide_task task;
    bide_tree_watcher *tree;
    bide_file_event_operation next;
    bide_blocking_call call;
    int status;

    bide_tree_change change;
    bool is_directory;
    const char *path; /* below the root; the tree's, until the next event is asked for */
    const char *from; /* of BIDE_TREE_MOVED, the same; otherwise NULL */
} bide_tree_event_operation;

/*
 * Makes a watcher of the tree below the directory `path`; `options` may be NULL. The tree is read when
 * the first event is asked for. If that directory is removed, or is at its path no longer, BIDE_TREE_REMOVED
 * of "" is the last event. (If a directory above it is moved, that is seen at the next change.)
 * Threads: any. Errors: those of stat(2) and access(2), such as -ENOENT, -ENOTDIR and -EACCES; those of
 * bide_file_watcher_init; -ENOMEM. Progress: that of the system calls.
 */
int bide_tree_watcher_create(bide_tree_watcher **tree, const char *path,
                             const bide_tree_watcher_options *options);

/*
 * Ends it, and frees it; NULL is left as it is. No coroutine waits for its events.
 * Threads: the loop's. Progress: that of the system calls; linear in the entries.
 */
void bide_tree_watcher_destroy(bide_tree_watcher *tree);

/*
 * Its state.
 * Threads: the loop's. Progress: wait-free.
 */
void bide_tree_watcher_get_stats(const bide_tree_watcher *tree, bide_tree_watcher_stats *stats);

/*
 * Waits for the next event. One wait at a time for a watcher.
 *
 * After an error the next wait continues; if that could not watch or read a directory, it reads the
 * whole tree again, and the events are the differences. After -ENOMEM it is to be destroyed.
 * Threads: the loop's. Errors: -ENOSPC (as many watches as a user may have: raise
 * fs.inotify.max_user_watches), -EOVERFLOW (the tree has more than max_entries), -ENAMETOOLONG (a path
 * in it is longer than PATH_MAX), -EMFILE, -ENFILE, -EIO (a directory cannot be read), -ENOMEM, -EPIPE
 * (the root is gone, which was reported), those of bide_blocking_run, -EOPNOTSUPP (a loop in
 * memory), -ECANCELED, -ETIMEDOUT, -ENOTSUP (no loop). Suspends: if nothing has happened; always to
 * read directories on other threads, and then its coroutine cannot be destroyed meanwhile.
 * Cancel-safe: yes, no event is lost, also if its coroutine is destroyed. Progress: that of the
 * system calls; linear in the entries of the directories that are read.
 */
BIDE_KEY_SCOPED(path);
BIDE_MUST_AWAIT
bide_awaiter *bide_tree_watch_next(bide_tree_event_operation *operation, bide_tree_watcher *tree);

/*
 * Why it is correct: src/io/tree_watch.c.
 */

BIDE_EXTERN_C_END

#endif
