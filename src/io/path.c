/* Operations on files by their names. Any thread initialises one. Their calls: path_calls.c. */
#define _GNU_SOURCE
#include "bide/path.h"

#include "bide/file.h"

#include "const_cast.h"
#include "operation.h"
#include "statx.h"

#include <limits.h>
#ifdef __linux__
#include <sys/vfs.h>
#else
#include <sys/mount.h>
#endif

/* ---- Opening ---- */

static bide_awaiter *path_open_init(bide_file_operation *file, const bide_awaiter_ops *ops,
                                    bide_io_code code, bide_descriptor *opened,
                                    const bide_path_root *root, const char *path, int flags,
                                    unsigned mode)
{
    bide_io_operation *operation = io_file_init(file, ops, code, NULL);
    bide_descriptor_init_closed(opened);
    operation->arguments.open.opened = opened;
    operation->arguments.open.path = path;
    operation->arguments.open.root = root;
    operation->arguments.open.flags = flags;
    operation->arguments.open.mode = mode;
    return &operation->awaiter;
}

bide_awaiter *bide_open(bide_file_operation *file, bide_descriptor *opened, const char *path,
                        int flags, unsigned mode)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_open");
    return path_open_init(file, &ops, BIDE_IO_OPEN, opened, NULL, path, flags, mode);
}

bide_awaiter *bide_open_at(bide_file_operation *file, bide_descriptor *opened,
                           const bide_path_root *root, const char *path, int flags, unsigned mode)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_open_at");
    return path_open_init(file, &ops, BIDE_IO_OPEN, opened, root, path, flags, mode);
}

bide_awaiter *bide_open_temporary(bide_file_operation *file, bide_descriptor *opened,
                                  const bide_path_root *root, const char *path, int flags,
                                  unsigned mode)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_open_temporary");
    return path_open_init(file, &ops, BIDE_IO_OPEN_TEMPORARY, opened, root, path,
                          (flags & ~O_ACCMODE) | O_RDWR, mode);
}

/* ---- On what a path names ---- */

static bide_awaiter *path_init(bide_file_operation *file, const bide_awaiter_ops *ops,
                               bide_io_code code, const bide_path_root *root, const char *path,
                               const void *about, unsigned mode, int flags)
{
    bide_io_operation *operation = io_file_init(file, ops, code, NULL);
    operation->flags = flags;
    operation->arguments.path.path = path;
    operation->arguments.path.root = root;
    operation->arguments.path.about = io_as_data(about);
    operation->arguments.path.mode = mode;
    operation->arguments.path.group = 0;
    return &operation->awaiter;
}

static int path_statx_resume(bide_awaiter *awaiter)
{
    bide_io_operation *operation = bide_container_of(awaiter, bide_io_operation, awaiter);
    if (operation->status == 0)
        io_written(operation->arguments.path.about, sizeof(struct statx));
    return operation->status;
}

bide_awaiter *bide_statx_at(bide_file_operation *file, const bide_path_root *root, const char *path,
                            int flags, unsigned mask, struct statx *about)
{
    static const bide_awaiter_ops ops = {
        .suspend = bide_io_suspend,
        .resume = path_statx_resume,
        .cancel = bide_io_cancel,
        .withdraw = bide_io_withdraw,
        .name = "bide_statx_at",
    };
    return path_init(file, &ops, BIDE_IO_STATX, root, path, about, mask, flags);
}

bide_awaiter *bide_statfs_at(bide_file_operation *file, const bide_path_root *root,
                             const char *path, struct statfs *about)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_statfs_at");
    return path_init(file, &ops, BIDE_IO_STATFS, root, path, about, 0, 0);
}

bide_awaiter *bide_chmod_at(bide_file_operation *file, const bide_path_root *root, const char *path,
                            unsigned mode, int flags)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_chmod_at");
    return path_init(file, &ops, BIDE_IO_CHMOD, root, path, NULL, mode, flags);
}

bide_awaiter *bide_chown_at(bide_file_operation *file, const bide_path_root *root, const char *path,
                            uid_t owner, gid_t group, int flags)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_chown_at");
    bide_awaiter *awaiter = path_init(file, &ops, BIDE_IO_CHOWN, root, path, NULL, owner, flags);
    file->operation.arguments.path.group = group;
    return awaiter;
}

bide_awaiter *bide_utimes_at(bide_file_operation *file, const bide_path_root *root,
                             const char *path, const struct timespec *times, int flags)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_utimes_at");
    return path_init(file, &ops, BIDE_IO_UTIMES, root, path, times, 0, flags);
}

/* (no text is longer than a page) */
static unsigned path_text_size(size_t size)
{
    return size < INT_MAX ? (unsigned)size : INT_MAX;
}

bide_awaiter *bide_realpath_at(bide_file_operation *file, const bide_path_root *root,
                               const char *path, char *buffer, size_t size)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_realpath_at");
    return path_init(file, &ops, BIDE_IO_REALPATH, root, path, buffer, path_text_size(size), 0);
}

bide_awaiter *bide_readlink_at(bide_file_operation *file, const bide_path_root *root,
                               const char *path, char *buffer, size_t size)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_readlink_at");
    return path_init(file, &ops, BIDE_IO_READLINK, root, path, buffer, path_text_size(size), 0);
}

/* ---- On names ---- */

bide_awaiter *bide_symlink_at(bide_file_operation *file, const char *target,
                              const bide_path_root *root, const char *path)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_symlink_at");
    return path_init(file, &ops, BIDE_IO_SYMLINK, root, path, target, 0, 0);
}

bide_awaiter *bide_unlink(bide_file_operation *file, const char *path, int flags)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_unlink");
    return path_init(file, &ops, BIDE_IO_UNLINK, NULL, path, NULL, 0, flags);
}

bide_awaiter *bide_unlink_at(bide_file_operation *file, const bide_path_root *root,
                             const char *path, int flags)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_unlink_at");
    return path_init(file, &ops, BIDE_IO_UNLINK, root, path, NULL, 0, flags);
}

bide_awaiter *bide_make_directory(bide_file_operation *file, const char *path, unsigned mode)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_make_directory");
    return path_init(file, &ops, BIDE_IO_MAKE_DIRECTORY, NULL, path, NULL, mode, 0);
}

bide_awaiter *bide_make_directory_at(bide_file_operation *file, const bide_path_root *root,
                                     const char *path, unsigned mode)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_make_directory_at");
    return path_init(file, &ops, BIDE_IO_MAKE_DIRECTORY, root, path, NULL, mode, 0);
}

static bide_awaiter *path_names_init(bide_file_operation *file, const bide_awaiter_ops *ops,
                                     bide_io_code code, const bide_path_root *from_root,
                                     const char *from, const bide_path_root *to_root,
                                     const char *to, int flags)
{
    bide_io_operation *operation = io_file_init(file, ops, code, NULL);
    operation->flags = flags;
    operation->arguments.names.path = from;
    operation->arguments.names.root = from_root;
    operation->arguments.names.other = to;
    operation->arguments.names.other_root = to_root;
    return &operation->awaiter;
}

bide_awaiter *bide_rename(bide_file_operation *file, const char *from, const char *to)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_rename");
    return path_names_init(file, &ops, BIDE_IO_RENAME, NULL, from, NULL, to, 0);
}

bide_awaiter *bide_rename_at(bide_file_operation *file, const bide_path_root *from_root,
                             const char *from, const bide_path_root *to_root, const char *to,
                             unsigned flags)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_rename_at");
    return path_names_init(file, &ops, BIDE_IO_RENAME, from_root, from, to_root, to, (int)flags);
}

bide_awaiter *bide_link_at(bide_file_operation *file, const bide_path_root *from_root,
                           const char *from, const bide_path_root *to_root, const char *to,
                           int flags)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_link_at");
    return path_names_init(file, &ops, BIDE_IO_LINK, from_root, from, to_root, to, flags);
}
