/*
 * Files, pipes and terminals, and waiting for any other descriptor. Floor: io.
 *
 *     bide_try(bide_open(&self->file_operation, &self->file, "log", O_RDWR | O_CREAT, 0644));
 *     bide_try(bide_write_at(&self->file_operation, &self->file, line, length, 0));
 *     bide_try(bide_sync(&self->file_operation, &self->file, BIDE_SYNC_DATA));
 *
 *     bide_try(bide_read(&self->file_operation, &self->input, buffer, size)); // a pipe, a terminal
 *
 * Each operation's struct is a bide_file_operation, the caller's memory until it has ended; then
 * operation.count is the number of bytes that were moved, whatever the status.
 *
 * A call on a file may block. On an io_uring the kernel handles that; on epoll the call is made on a
 * thread for blocking calls (bide_loop_options.files). If the coroutine is cancelled or destroyed, or the
 * descriptor closed, a call that waits there is interrupted. So deadlines hold for a FIFO that nobody
 * opens, a network file system and a device. A call that the kernel cannot interrupt, such as a read from
 * a disk, runs to completion; then the operation ends with its result, and a coroutine that is destroyed
 * waits for it.
 *
 * Reads and writes at an offset run side by side; other operations on a descriptor run one after the
 * other, in each direction. The descriptor's loop uses it, on that loop's thread.
 *
 * Why it is correct: src/io/operation.c.
 */
#ifndef BIDE_FILE_H
#define BIDE_FILE_H

#include "bide/extend/io.h"

#include <fcntl.h>
#include <sys/stat.h>

BIDE_EXTERN_C_BEGIN

/*
 * Opens a file, in *file, which was closed or was nothing: flags and mode are those of open(2). It is
 * closed on exec.
 * Threads: the loop's. Errors: those of open(2); -ECANCELED, -ETIMEDOUT, -ENOTSUP (no loop).
 * Suspends: always. Cancel-safe: yes, it is not opened. Progress: that of the system call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_open(bide_file_operation *operation, bide_descriptor *file, const char *path,
                        int flags, unsigned mode);

/*
 * Reads up to `size` bytes, 1 or more, from where the file's offset is, or from a pipe, a terminal,
 * or what else reads; waits for at least one. A count of 0 is the end.
 * Threads: the loop's. Errors: those of read(2); -EPIPE (closed meanwhile), -ECANCELED, -ETIMEDOUT.
 * Suspends: if there is nothing yet; always on an io_uring and of a file. Cancel-safe: yes, nothing
 * was read. Progress: that of the system call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_read(bide_file_operation *operation, bide_descriptor *file, void *buffer,
                        size_t size);

/*
 * Writes all of `size` bytes, where the file's offset is, or to a pipe, a terminal, or what else
 * takes them. A write to a pipe without readers ends with -EPIPE and raises a signal, unless that
 * is ignored.
 * Threads: the loop's. Errors: those of write(2); -EPIPE (also: closed meanwhile), -ECANCELED,
 * -ETIMEDOUT. Suspends: if there is no room; always on an io_uring and of a file. Cancel-safe: yes,
 * `count` says how many bytes were written. Progress: that of the system call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_write(bide_file_operation *operation, bide_descriptor *file, const void *data,
                         size_t size);

/*
 * Reads up to `size` bytes at an offset, which is 0 or more; the file's own is not used. A count of
 * less is not always the end, a count of 0 is.
 * Threads: the loop's. Errors: those of pread(2); -EPIPE (closed meanwhile), -ECANCELED, -ETIMEDOUT.
 * Suspends: always. Cancel-safe: yes. Progress: that of the system call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_read_at(bide_file_operation *operation, bide_descriptor *file, void *buffer,
                           size_t size, int64_t offset);

/*
 * Writes all of `size` bytes at an offset, which is 0 or more.
 * Threads: the loop's. Errors: those of pwrite(2); -EPIPE (closed meanwhile), -ECANCELED,
 * -ETIMEDOUT. Suspends: always. Cancel-safe: yes, `count` says how many bytes were written.
 * Progress: that of the system call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_write_at(bide_file_operation *operation, bide_descriptor *file, const void *data,
                            size_t size, int64_t offset);

/*
 * The same into several buffers, and from them. `vectors` stay until it has ended. An offset of -1 is
 * where the file's own is, as bide_read and bide_write have it.
 * Threads: the loop's. Errors: as bide_read_at, and as bide_write_at. Suspends: always. Cancel-safe:
 * yes. Progress: that of the system call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_readv(bide_file_operation *operation, bide_descriptor *file,
                         const struct iovec *vectors, int count, int64_t offset);
BIDE_MUST_AWAIT
bide_awaiter *bide_writev(bide_file_operation *operation, bide_descriptor *file,
                          const struct iovec *vectors, int count, int64_t offset);

/* The part of a file that is to be safe on the disk. */
typedef enum bide_sync_what {
    BIDE_SYNC_ALL,  /* fsync(2) */
    BIDE_SYNC_DATA, /* fdatasync(2): the bytes, and what is needed to find them */
} bide_sync_what;

/*
 * Ends when what was written to the file before is on the disk.
 * Threads: the loop's. Errors: those of fsync(2); -ECANCELED, -ETIMEDOUT. Suspends: always.
 * Cancel-safe: yes. Progress: that of the system call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_sync(bide_file_operation *operation, bide_descriptor *file, bide_sync_what what);

/*
 * fallocate(2): room for a range of the file; `mode` is that call's.
 * Threads: the loop's. Errors: those of fallocate(2); -ECANCELED, -ETIMEDOUT. Suspends: always.
 * Cancel-safe: yes. Progress: that of the system call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_allocate(bide_file_operation *operation, bide_descriptor *file, int mode,
                            int64_t offset, int64_t size);

/*
 * Cuts the file to that size, or makes it longer.
 * Threads: the loop's. Errors: those of ftruncate(2); -ECANCELED, -ETIMEDOUT. Suspends: always.
 * Cancel-safe: yes. Progress: that of the system call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_truncate(bide_file_operation *operation, bide_descriptor *file, int64_t size);

/*
 * Gets the system's information about an open file, or about one by its path; `flags` are those of
 * fstatat(2). *about is written when it has ended.
 * Threads: the loop's. Errors: those of fstatat(2); -ECANCELED, -ETIMEDOUT. Suspends: always.
 * Cancel-safe: yes. Progress: that of the system call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_stat(bide_file_operation *operation, bide_descriptor *file, struct stat *about);
BIDE_MUST_AWAIT
bide_awaiter *bide_stat_path(bide_file_operation *operation, const char *path, struct stat *about,
                             int flags);

/*
 * Renames a file; replaces one that has the new name.
 * Threads: the loop's. Errors: those of rename(2); -ECANCELED, -ETIMEDOUT. Suspends: always.
 * Cancel-safe: yes. Progress: that of the system call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_rename(bide_file_operation *operation, const char *from, const char *to);

/*
 * Removes a file, or, with AT_REMOVEDIR in `flags`, a directory that is empty.
 * Threads: the loop's. Errors: those of unlinkat(2); -ECANCELED, -ETIMEDOUT. Suspends: always.
 * Cancel-safe: yes. Progress: that of the system call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_unlink(bide_file_operation *operation, const char *path, int flags);

/*
 * Makes a directory.
 * Threads: the loop's. Errors: those of mkdir(2); -ECANCELED, -ETIMEDOUT. Suspends: always.
 * Cancel-safe: yes. Progress: that of the system call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_make_directory(bide_file_operation *operation, const char *path, unsigned mode);

/*
 * Waits until any descriptor is ready for `events` (POLLIN, POLLOUT, POLLPRI), or has failed, as
 * poll(2) has it: for libraries that bring descriptors of their own. The events that it is ready
 * for are in operation->arguments.poll.found. It is ready again at once if nothing was done about
 * it. It takes nothing, so it can be a case of a select, and a read or accept that does not wait
 * follows it.
 * Threads: the loop's. Errors: those of poll(2), -EPERM (it does not poll); -EPIPE (closed
 * meanwhile), -ECANCELED, -ETIMEDOUT. Suspends: if it is not ready; always on an io_uring.
 * Cancel-safe: yes. Progress: that of the system call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_poll(bide_io_operation *operation, bide_descriptor *descriptor, uint32_t events);

BIDE_EXTERN_C_END

#endif
