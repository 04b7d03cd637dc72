/*
 * Files by their names: relative to a directory, and, if the program wishes, never outside of it.
 * Floor: io.
 *
 *     bide_path_root site = {.directory = &self->directory, .resolve = BIDE_PATH_BENEATH};
 *     bide_try(bide_open_at(&self->open, &self->file, &site, request->path, O_RDONLY, 0));
 *     bide_try(bide_rename_at(&self->file, &site, "new", &site, "index.html", 0));
 *
 * A root is where relative paths begin, and what their names may lead to. NULL stands for the working
 * directory, without a restriction. `resolve` holds for each path of every operation. The kernel has a
 * restricted call for opening alone. So operations such as unlink and rename open the directory of the
 * last name, restricted, and then use that name in it. Another process that replaces a directory by a
 * symbolic link meanwhile cannot lead the operation out of the root.
 *
 * A path under a restricted root is opened by openat2(2), Linux 5.6. Without it, or if a filter of system
 * calls refuses it (-ENOSYS, -EPERM), the path is opened name by name, and no name is followed that is a
 * symbolic link: its text is read, and resolved under the root. The results are the same, with these
 * exceptions. BIDE_PATH_NO_XDEV ends with -ENOSYS, or with the -EPERM of the filter. The kernel's protection
 * of links in directories such as /tmp does not apply. A path ends with -ENAMETOOLONG if the text of a link
 * and the rest of the path exceed 8,191 bytes, or the names from the root 4,095. It ends with -ELOOP after
 * 100,000 names; each ".." counts the names above it, and so does each attempt after names were changed.
 *
 * An empty path, "", names the directory of the root itself, which may be any open file then:
 *
 *     bide_path_root self = {.directory = &file};
 *     bide_try(bide_chmod_at(&operation, &self, "", 0600, 0)); // as fchmod(2)
 *
 * That holds for the operations on what a path names: bide_statx_at, bide_statfs_at, bide_chmod_at,
 * bide_chown_at, bide_utimes_at, bide_realpath_at, and for the first path of bide_link_at. If the
 * root has no directory, an empty path is -ENOENT.
 *
 * Roots, paths, and memory that an operation fills in stay until it has ended, and the directory of a
 * root stays open until then. The operation's struct is a bide_file_operation (file.h).
 *
 * In memory (memory_io.h) there are no symbolic links, owners, file systems, or times that can be set:
 * bide_symlink_at, bide_realpath_at, bide_chown_at, bide_statfs_at and bide_utimes_at end with
 * -EOPNOTSUPP there.
 *
 * Why it is correct: src/io/path_open.c, path_place.c and path_walk.c.
 */
#ifndef BIDE_PATH_H
#define BIDE_PATH_H

#include "bide/extend/io.h"

#include <fcntl.h>
#include <time.h>

BIDE_EXTERN_C_BEGIN

struct statfs;
struct statx;

/* Restrictions of paths: flags of openat2(2), whose values they have. */
enum {
    BIDE_PATH_NO_XDEV = 0x01,       /* to no other file system */
    BIDE_PATH_NO_MAGICLINKS = 0x02, /* through no link such as those of /proc/self/fd */
    BIDE_PATH_NO_SYMLINKS = 0x04,   /* through no symbolic link */
    BIDE_PATH_BENEATH = 0x08,       /* -EXDEV for a path that leads out of the directory */
    BIDE_PATH_IN_ROOT = 0x10,       /* "/" and ".." end at the directory, as after chroot(2) */
};

/* A place for paths. One may serve any number of operations at once, on any threads. */
typedef struct bide_path_root {
    const bide_descriptor *directory; /* NULL: the working directory. O_PATH is enough. */
    unsigned resolve;                 /* of those; 0: paths are not restricted */
} bide_path_root;

/*
 * Opens a file as bide_open does.
 * Threads: the loop's. Errors: those of openat2(2), -EXDEV (it would leave the root), -ELOOP (a
 * symbolic link), -EAGAIN (names were changed too often meanwhile), -ENOSYS (no openat2, and
 * BIDE_PATH_NO_XDEV);
 * -ECANCELED, -ETIMEDOUT, -ENOTSUP (no loop). Suspends: always. Cancel-safe: yes, it is not opened.
 * Progress: that of the system call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_open_at(bide_file_operation *operation, bide_descriptor *file,
                           const bide_path_root *root, const char *path, int flags, unsigned mode);

/*
 * Opens a new file without a name in the directory `path`, for reading and writing. It is gone when it
 * is closed, unless bide_link_at gives it a name before. `flags` are more flags of open(2), such as
 * O_APPEND; with O_EXCL it can get no name. On a file system without O_TMPFILE a file with a random
 * name is made and unlinked at once, and can get no name either.
 * Threads: the loop's. Errors: as bide_open_at. Suspends: always. Cancel-safe: yes, nothing is made.
 * Progress: that of the system calls.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_open_temporary(bide_file_operation *operation, bide_descriptor *file,
                                  const bide_path_root *root, const char *path, int flags,
                                  unsigned mode);

/*
 * Reports on a file: `flags` and `mask` are those of statx(2). *about is written when it has ended.
 * Threads: the loop's. Errors: those of statx(2), and for a restricted root as bide_open_at;
 * -ECANCELED, -ETIMEDOUT, -ENOTSUP (no loop). Suspends: always. Cancel-safe: yes. Progress: that of
 * the system call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_statx_at(bide_file_operation *operation, const bide_path_root *root,
                            const char *path, int flags, unsigned mask, struct statx *about);

/*
 * Reports on the file system that has `path`, as statfs(2). *about is written when it has ended.
 * Threads: the loop's. Errors: those of statfs(2), and for a restricted root as bide_open_at;
 * -ECANCELED, -ETIMEDOUT, -ENOTSUP (no loop). Suspends: always. Cancel-safe: yes. Progress: that of
 * the system call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_statfs_at(bide_file_operation *operation, const bide_path_root *root,
                             const char *path, struct statfs *about);

/*
 * Changes the permissions of a file. `flags`: 0 or AT_SYMLINK_NOFOLLOW.
 * Threads: the loop's. Errors: those of fchmodat(2), -EOPNOTSUPP (of a symbolic link), and for a
 * restricted root as bide_open_at; -ECANCELED, -ETIMEDOUT, -ENOTSUP (no loop). Suspends: always.
 * Cancel-safe: yes. Progress: that of the system call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_chmod_at(bide_file_operation *operation, const bide_path_root *root,
                            const char *path, unsigned mode, int flags);

/*
 * Changes the owner and the group of a file; an id of -1 stays. `flags`: 0 or AT_SYMLINK_NOFOLLOW.
 * Threads: the loop's. Errors: those of fchownat(2), and for a restricted root as bide_open_at;
 * -ECANCELED, -ETIMEDOUT, -ENOTSUP (no loop). Suspends: always. Cancel-safe: yes. Progress: that of
 * the system call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_chown_at(bide_file_operation *operation, const bide_path_root *root,
                            const char *path, uid_t owner, gid_t group, int flags);

/*
 * Sets the times of the last access and of the last change, times[0] and times[1], as utimensat(2);
 * NULL: to now. `flags`: 0 or AT_SYMLINK_NOFOLLOW.
 * Threads: the loop's. Errors: those of utimensat(2), and for a restricted root as bide_open_at;
 * -ECANCELED, -ETIMEDOUT, -ENOTSUP (no loop). Suspends: always. Cancel-safe: yes. Progress: that of
 * the system call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_utimes_at(bide_file_operation *operation, const bide_path_root *root,
                             const char *path, const struct timespec *times, int flags);

/*
 * Gives the path without symbolic links, "." and "..", as realpath(3), from the root of the process
 * on. It ends with a zero; operation.count is its length.
 * Threads: the loop's. Errors: those of realpath(3), -ERANGE (it does not fit into `size` bytes), for
 * a restricted root as bide_open_at; -ECANCELED, -ETIMEDOUT, -ENOTSUP (no loop). Suspends: always.
 * Cancel-safe: yes. Progress: that of the system calls; /proc is needed if `root` is not NULL.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_realpath_at(bide_file_operation *operation, const bide_path_root *root,
                               const char *path, char *buffer, size_t size);

/*
 * Gives what a symbolic link contains. It ends with a zero; operation.count is its length.
 * Threads: the loop's. Errors: those of readlinkat(2), -ERANGE (it does not fit into `size` bytes),
 * and for a restricted root as bide_open_at; -ECANCELED, -ETIMEDOUT, -ENOTSUP (no loop). Suspends:
 * always. Cancel-safe: yes. Progress: that of the system call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_readlink_at(bide_file_operation *operation, const bide_path_root *root,
                               const char *path, char *buffer, size_t size);

/*
 * Makes a symbolic link that contains `target`, which is not looked at: a link may lead out of a root,
 * but no operation under that root follows it then.
 * Threads: the loop's. Errors: those of symlinkat(2), and for a restricted root as bide_open_at;
 * -ECANCELED, -ETIMEDOUT, -ENOTSUP (no loop). Suspends: always. Cancel-safe: yes. Progress: that of
 * the system call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_symlink_at(bide_file_operation *operation, const char *target,
                              const bide_path_root *root, const char *path);

/*
 * Gives a file another name. `flags`: 0, or AT_SYMLINK_FOLLOW for what a symbolic link leads to. If
 * `from` is empty, the file is the open one of `from_root`, such as that of bide_open_temporary.
 * Threads: the loop's. Errors: those of linkat(2), and for a restricted root as bide_open_at;
 * -ECANCELED, -ETIMEDOUT, -ENOTSUP (no loop). Suspends: always. Cancel-safe: yes. Progress: that of
 * the system call; /proc is needed if `from` is empty, or `from_root` restricted.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_link_at(bide_file_operation *operation, const bide_path_root *from_root,
                           const char *from, const bide_path_root *to_root, const char *to,
                           int flags);

/*
 * Renames a file. `flags` are those of renameat2(2): RENAME_NOREPLACE and the like; 0 replaces one
 * that has the new name.
 * Threads: the loop's. Errors: those of renameat2(2), and for a restricted root as bide_open_at;
 * -ECANCELED, -ETIMEDOUT, -ENOTSUP (no loop). Suspends: always. Cancel-safe: yes. Progress: that of
 * the system call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_rename_at(bide_file_operation *operation, const bide_path_root *from_root,
                             const char *from, const bide_path_root *to_root, const char *to,
                             unsigned flags);

/*
 * Removes a file, or, with AT_REMOVEDIR in `flags`, a directory that is empty.
 * Threads: the loop's. Errors: those of unlinkat(2), and for a restricted root as bide_open_at;
 * -ECANCELED, -ETIMEDOUT, -ENOTSUP (no loop). Suspends: always. Cancel-safe: yes. Progress: that of
 * the system call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_unlink_at(bide_file_operation *operation, const bide_path_root *root,
                             const char *path, int flags);

/*
 * Makes a directory.
 * Threads: the loop's. Errors: those of mkdirat(2), and for a restricted root as bide_open_at;
 * -ECANCELED, -ETIMEDOUT, -ENOTSUP (no loop). Suspends: always. Cancel-safe: yes. Progress: that of
 * the system call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_make_directory_at(bide_file_operation *operation, const bide_path_root *root,
                                     const char *path, unsigned mode);

/*
 * Of the library: opens under a root at once, on any thread. `directory` is a descriptor or AT_FDCWD. Returns a
 * descriptor, close-on-exec, or a negative errno. bide_path_open_ may block. bide_path_open_cached_ opens only what
 * the kernel can look up in its cache; else it returns -EAGAIN.
 */
int bide_path_open_(int directory, const char *path, int flags, unsigned mode, unsigned resolve);
int bide_path_open_cached_(int directory, const char *path, int flags, unsigned resolve);

BIDE_EXTERN_C_END

#endif
