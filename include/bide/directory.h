/*
 * Reading directories, and files mapped into memory. Floor: io.
 *
 *     bide_try(bide_open(&self->open, &self->opened, "/etc", O_RDONLY | O_DIRECTORY, 0));
 *     bide_directory_init(&self->directory, &self->opened, self->buffer, sizeof self->buffer);
 *     for (;;) {
 *         bide_try_or_break(bide_next_entry(&self->next, &self->directory));
 *         puts(self->next.name);
 *     }
 *
 * Entries are read many at a time, into the caller's buffer, on a thread for blocking calls. An entry
 * that is in the buffer costs no suspension. The loop's thread calls all of this.
 *
 *     bide_try(bide_map_file(&self->map, &self->file, 0, size, PROT_READ, MAP_PRIVATE));
 *     bide_try(bide_prefault(&self->advice, self->map.operation.arguments.map.at, size, false));
 *
 * The first access to a page of a mapped file blocks the thread until the disk has read it. So
 * bide_prefault reads the pages on a thread for blocking calls.
 *
 * Why it is correct: src/io/directory.c.
 */
#ifndef BIDE_DIRECTORY_H
#define BIDE_DIRECTORY_H

#include "bide/extend/io.h"

#include <sys/mman.h>

BIDE_EXTERN_C_BEGIN

/* A directory that is being read. */
typedef struct bide_directory {
    bide_descriptor *descriptor;
    char *buffer;
    size_t size;
    size_t begin; /* entries that were read and not given */
    size_t end;
} bide_directory;

/* Gives one entry. The caller's memory until it has ended; then these say what it is. */
typedef struct bide_entry_operation {
    bide_file_operation file;
    bide_directory *directory;
    const char *name; /* in the buffer, until the next is asked for */
    uint64_t inode;
    unsigned char
        type; /* DT_REG and so on, of readdir(3); DT_UNKNOWN: the file system does not say */
} bide_entry_operation;

/*
 * Prepares the reading of `descriptor`, which is open and is at its beginning. `buffer` is for entries: of
 * 280 bytes or more, so that any fits; some KB are a good size.
 * Threads: the loop's. Progress: wait-free.
 */
void bide_directory_init(bide_directory *directory, bide_descriptor *descriptor, void *buffer,
                         size_t size);

/*
 * Gives the next entry, in no order, without "." and "..". After the last it ends with -EPIPE, so
 * that bide_try_or_break ends its loop. One at a time for a directory.
 * Threads: the loop's. Errors: -EPIPE (there are no more; or closed meanwhile), those of
 * getdents64(2); -EBADF, -ECANCELED, -ETIMEDOUT, -ENOTSUP (no loop). Suspends: if none is in the
 * buffer. Cancel-safe: yes, none is lost. Progress: that of the system call.
 */
BIDE_KEY_SCOPED(name);
BIDE_MUST_AWAIT
bide_awaiter *bide_next_entry(bide_entry_operation *operation, bide_directory *directory);

/*
 * Maps `size` bytes of a file from `offset` on, which is a multiple of the page's size, as mmap(2):
 * `protection` and `flags` are those of that call. When it has ended with 0,
 * operation->arguments.map.at is where. It is the caller's, until munmap(2); if its coroutine is
 * destroyed before it knows, it is unmapped.
 * Threads: the loop's. Errors: those of mmap(2); -EBADF, -ECANCELED, -ETIMEDOUT, -ENOTSUP (no loop).
 * Suspends: always. Cancel-safe: yes, nothing is mapped. Progress: that of the system call.
 */
BIDE_KEY_SCOPED(operation);
BIDE_MUST_AWAIT
bide_awaiter *bide_map_file(bide_file_operation *operation, bide_descriptor *file, int64_t offset,
                            size_t size, int protection, int flags);

/*
 * Ends when the pages of that memory are there, so that touching them does not wait for a disk, unless
 * the system takes them away again; `to_write`: so that writing does not, either.
 * Threads: the loop's. Errors: those of madvise(2), -EINVAL (a kernel before 5.14); -ECANCELED,
 * -ETIMEDOUT, -ENOTSUP (no loop). Suspends: always. Cancel-safe: yes. Progress: that of the system
 * call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_prefault(bide_file_operation *operation, void *at, size_t size, bool to_write);

BIDE_EXTERN_C_END

#endif
