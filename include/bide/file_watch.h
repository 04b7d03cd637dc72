/*
 * Changes of files and directories, as a stream of events. Floor: io.
 *
 *     error = bide_file_watcher_init(&watcher, buffer, sizeof buffer);
 *     error = bide_file_watch_add(&watcher, &watch, "/etc", BIDE_FILE_CREATED | BIDE_FILE_WRITTEN);
 *     ...
 *     for (;;) {
 *         bide_try(bide_file_watch_next(&self->next, self->watcher));
 *         if (self->next.watch == NULL)
 *             ... events were lost: look at everything again
 *         else
 *             printf("%s: %x\n", self->next.name, self->next.changes);
 *     }
 *     ...
 *     bide_file_watcher_destroy(&watcher);
 *
 * A watcher has any number of watches, one for each path. A watch is of the file that the path
 * leads to when it is added, whatever its name is later. A directory's watch reports changes of its
 * entries, and of the directory itself, and nothing further down. A watcher belongs to one loop, and
 * that loop's thread uses it.
 *
 * Several watches may be of one file, also by different paths. The kernel has one watch for all of
 * them, so the watcher filters the events for each. A watch that is added while another of the same
 * file has events pending may get these too.
 *
 * Events are read many at a time, into the caller's buffer; buffered events cost no system call.
 * The kernel keeps fs.inotify.max_queued_events of them, and merges an event with an equal one
 * right before it. If there are more, it drops them, and an event reports that.
 *
 * It uses inotify(7). So it sees changes through this system alone: not another machine's on a
 * network file system, nor writes to mapped memory. On a loop in memory (memory_io.h) a wait is
 * -EOPNOTSUPP.
 */
#ifndef BIDE_FILE_WATCH_H
#define BIDE_FILE_WATCH_H

#include "bide/extend/io.h"
#include "bide/task.h"

BIDE_EXTERN_C_BEGIN

/* The changes that a watch asks for, and that an event reports. */
typedef enum bide_file_change {
    /* of a directory that is watched: `name` is what is in it */
    BIDE_FILE_CREATED = 1 << 0,    /* a file, directory, or link to one, is new there */
    BIDE_FILE_REMOVED = 1 << 1,    /* it is not there any more */
    BIDE_FILE_MOVED_FROM = 1 << 2, /* it was there; `cookie` is that of where it went */
    BIDE_FILE_MOVED_TO = 1 << 3,   /* it is there; `cookie` is that of where it was */

    /* of the file that is watched, and `name` is ""; or of one in the directory */
    BIDE_FILE_MODIFIED = 1 << 4,   /* was written to, or its size was set */
    BIDE_FILE_WRITTEN = 1 << 5,    /* was closed, by somebody who could write */
    BIDE_FILE_ATTRIBUTES = 1 << 6, /* mode, owner, times, extended attributes, number of links */

    /* of what is watched itself */
    BIDE_FILE_MOVED = 1 << 7, /* it has another name; the watch continues */

    /* reported without being asked for */
    BIDE_FILE_GONE = 1 << 8,       /* it is removed, or unmounted: the last event of its watch */
    BIDE_FILE_OVERFLOWED = 1 << 9, /* events were lost, of any of the watches */

    BIDE_FILE_CHANGES = (1 << 8) - 1, /* all that may be wanted */

    /* how a watch is added */
    BIDE_FILE_IF_DIRECTORY = 1 << 16, /* -ENOTDIR if it is none */
    BIDE_FILE_NO_FOLLOW = 1 << 17     /* of a symbolic link: the link, not what it leads to */
} bide_file_change;

typedef struct bide_file_watch bide_file_watch;
typedef struct bide_file_watcher bide_file_watcher;

/* One watch. The caller's memory until it is removed, or its watcher has ended. */
struct bide_file_watch {
    bide_file_watcher *watcher; /* NULL: it is in none */
    int number;                 /* of the kernel's watch */
    uint32_t wanted;
    bide_file_watch *same;        /* the next of the same file */
    bide_file_watch *children[2]; /* of the first of them, in the watcher's tree */
};

/* The caller's memory until it has ended. */
struct bide_file_watcher {
    bide_descriptor inotify;
    bide_file_watch *tree; /* of watches, by number */
    char *buffer;
    size_t size;
    size_t begin; /* the first event that was not told to all, and where they end */
    size_t end;
    bool is_inside;            /* the first event was reported to some: */
    bide_file_watch *reported; /* to this one last; NULL: it is removed */
    bide_file_watch *at;       /* this one is the next; NULL: none is left */
};

/* Waits for one event. The caller's memory until it has ended with 0; then these say what it is. */
typedef struct bide_file_event_operation {
    bide_task task;
    bide_file_watcher *watcher;
    bide_io_operation read;
    int status;
    bool is_reading;

    bide_file_watch *watch; /* whose event it is; NULL: of BIDE_FILE_OVERFLOWED */
    const char *name;       /* in the watcher's buffer, until the next event is asked for; or "" */
    uint32_t changes;       /* of bide_file_change: one or more */
    uint32_t cookie;        /* of the two events of a move; otherwise 0 */
    bool is_directory;      /* what has changed is one */
} bide_file_event_operation;

/*
 * Makes a watcher without watches. `buffer` is for events: of 272 bytes or more, so that any fits;
 * some KB are a good size. It stays until bide_file_watcher_destroy.
 * Threads: any. Errors: -EINVAL (the buffer is too small), -EMFILE (no more descriptors; or as many
 * watchers as a user may have, fs.inotify.max_user_instances), -ENFILE, -ENOMEM; it is ended then.
 * Progress: that of the system call.
 */
int bide_file_watcher_init(bide_file_watcher *watcher, void *buffer, size_t size);

/*
 * Ends it, and its watches. An operation that waits for an event ends with -EPIPE. A watcher that
 * has ended is left as it is.
 * Threads: the loop's. Progress: blocks until the kernel has let go of it.
 */
void bide_file_watcher_destroy(bide_file_watcher *watcher);

/*
 * Begins to watch what `path` leads to, for `wanted`, of bide_file_change. The path is looked up by
 * this call, which may wait for a disk: where that matters, open the file first, with O_PATH, and
 * use bide_file_watch_add_opened. Nothing is missed that is done after it has returned.
 * Threads: the loop's. Errors: those of inotify_add_watch(2): -ENOENT, -EACCES (it may not be read),
 * -ENOTDIR, -ENOSPC (as many watches as a user may have: fs.inotify.max_user_watches), -ENOMEM;
 * -EINVAL (nothing is wanted), -EBADF (the watcher has ended). Progress: that of the system call;
 * logarithmic in the watches, linear in those of the same file.
 */
int bide_file_watch_add(bide_file_watcher *watcher, bide_file_watch *watch, const char *path,
                        uint32_t wanted);

/*
 * The same for a file that is open, which may be closed afterwards. It needs /proc. Of a descriptor
 * opened with O_PATH and O_NOFOLLOW it is the link.
 * Threads: the loop's. Errors: as bide_file_watch_add; -EOPNOTSUPP (of a loop in memory).
 * Progress: as bide_file_watch_add; it waits for no disk.
 */
int bide_file_watch_add_opened(bide_file_watcher *watcher, bide_file_watch *watch,
                               const bide_descriptor *opened, uint32_t wanted);

/*
 * Ends a watch: no event of it is reported from now on, pending ones included. Call it after
 * BIDE_FILE_GONE too, before its memory has another use. A watch that is in no watcher, because it
 * could not be added or its watcher has ended, is left as it is.
 * Threads: the loop's. Progress: that of the system call; logarithmic in the watches, linear in those
 * of the same file.
 */
void bide_file_watch_remove(bide_file_watch *watch);

/*
 * Waits for the next event. Events come in the order in which things were done. One wait at a time
 * for a watcher. Its loop is the one on which it is first waited for.
 * Threads: the loop's. Errors: those of read(2); -EPIPE (the watcher has ended meanwhile), -EBADF
 * (before), -EOPNOTSUPP (a loop in memory), -ECANCELED, -ETIMEDOUT, -ENOTSUP (no loop). Suspends: if
 * none is in the buffer. Cancel-safe: yes, no event is lost, also if its coroutine is destroyed.
 * Progress: that of the system call.
 */
BIDE_KEY_SCOPED(changes);
BIDE_MUST_AWAIT
bide_awaiter *bide_file_watch_next(bide_file_event_operation *operation,
                                   bide_file_watcher *watcher);

/*
 * Why it is correct: src/io/file_watch.c.
 */

BIDE_EXTERN_C_END

#endif
