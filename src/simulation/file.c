/*
 * Open files: their bytes, and operations on them.
 *
 * 1. The bytes of a file are one piece of memory, up to the last byte that was written or reserved.
 *    All other bytes up to its size are zero, and take no memory. `used` of the tree is the number
 *    of bytes that all files store; it is never greater than the disk.
 * 2. Bytes that are stored behind the size are zero. So a file that is extended has zeros there.
 * 3. All numbers of one open file share its position, as numbers of a passed descriptor do.
 */
#define _GNU_SOURCE
#include "tree.h"

#include "../io/statx.h"
#include "../system/portable.h"

/* (by Linux's numbers, which a program uses that calls bide_allocate) */
#ifdef __linux__
#include <linux/falloc.h>
#else
#define FALLOC_FL_KEEP_SIZE  1
#define FALLOC_FL_PUNCH_HOLE 2
#define FALLOC_FL_ZERO_RANGE 16
#endif
#ifndef O_TMPFILE
#define O_TMPFILE (020000000 | O_DIRECTORY)
#endif

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>

typedef struct memory_file {
    memory_node node;
    memory_inode *inode;
    int flags;        /* of open(2) */
    int64_t position; /* of a directory: the number of the last entry that was read */
} memory_file;

static memory_file *memory_file_of(const memory_node *node)
{
    return (memory_file *)bide_container_of(node, memory_file, node);
}

static bool may_read(const memory_file *file)
{
    return (file->flags & O_ACCMODE) != O_WRONLY;
}

static bool may_write(const memory_file *file)
{
    return (file->flags & O_ACCMODE) != O_RDONLY;
}

static unsigned file_ready(const memory_node *node)
{
    (void)node;
    return POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM;
}

static void file_left(memory_node *node)
{
    bide_sim_inode_drop_(node->environment, memory_file_of(node)->inode);
}

const memory_kind bide_sim_file_kind_ = {
    .name = "a file",
    .is_file = true,
    .ready = file_ready,
    .left = file_left,
};

/* ---- The disk ---- */

static int disk_error(sim_environment *environment)
{
    return memory_fault(environment, "io: disk error", environment->options.disk_error) ? -EIO : 0;
}

/* Whether the disk is drawn to be full. */
static bool disk_is_full(sim_environment *environment)
{
    return memory_fault(environment, "io: disk full", environment->options.disk_full);
}

static size_t room_of(const sim_environment *environment)
{
    size_t disk = environment->options.disk != 0 ? environment->options.disk : (size_t)64 << 20;
    return environment->tree->used < disk ? disk - environment->tree->used : 0;
}

/* Stores zeros up to `end`, as far as there is room: 1. -ENOSPC: there is not enough. */
static int store_up_to(sim_environment *environment, memory_inode *inode, int64_t end)
{
    int error = 0;
    if (end <= (int64_t)inode->stored)
        return 0;
    size_t room = room_of(environment);
    size_t more = room;
    if ((uint64_t)end - inode->stored <= room)
        more = (size_t)end - inode->stored;
    else
        error = -ENOSPC;
    size_t wanted = inode->stored + more;
    if (wanted > inode->capacity) {
        size_t capacity = wanted + wanted / 2 + 64;
        char *bytes = realloc(inode->bytes, capacity);
        if (bytes == NULL)
            return -ENOSPC;
        inode->bytes = bytes;
        inode->capacity = capacity;
    }
    if (more != 0)
        memset(inode->bytes + inode->stored, 0, more);
    inode->stored = wanted;
    environment->tree->used += more;
    bide_assert(inode->stored <= inode->capacity);
    return error;
}

/* Frees the stored bytes from `end` on. */
static void store_only_up_to(sim_environment *environment, memory_inode *inode, int64_t end)
{
    if (end >= (int64_t)inode->stored)
        return;
    environment->tree->used -= inode->stored - (size_t)end;
    inode->stored = (size_t)end;
}

static void set_size(sim_environment *environment, memory_inode *inode, int64_t size)
{
    if (size < inode->size)
        store_only_up_to(environment, inode, size);
    inode->size = size;
    inode->changed = environment->loop->now;
}

/* ---- Reading and writing ---- */

static void file_copy_out(const memory_inode *inode, memory_bytes *bytes, int64_t from, size_t size)
{
    static const char zeros[256];
    size_t stored = 0;
    if (from < (int64_t)inode->stored)
        stored = inode->stored - (size_t)from < size ? inode->stored - (size_t)from : size;
    if (stored != 0)
        bide_sim_bytes_put_(bytes, inode->bytes + from, stored);
    for (size -= stored; size != 0;) {
        size_t piece = size < sizeof zeros ? size : sizeof zeros;
        bide_sim_bytes_put_(bytes, zeros, piece);
        size -= piece;
    }
}

ptrdiff_t bide_sim_file_read_(memory_node *node, memory_bytes *bytes, int64_t offset)
{
    memory_file *file = memory_file_of(node);
    const memory_inode *inode = file->inode;
    int64_t from = offset >= 0 ? offset : file->position;
    if (!may_read(file))
        return -EBADF;
    if (S_ISDIR(inode->mode))
        return -EISDIR;
    int error = disk_error(node->environment);
    if (error != 0)
        return error;
    if (from >= inode->size || bytes->left == 0)
        return 0;
    size_t size = bytes->left;
    if ((uint64_t)(inode->size - from) < size)
        size = (size_t)(inode->size - from);
    size = bide_sim_part_(node->environment, "io: short read", size);
    file_copy_out(inode, bytes, from, size);
    if (offset < 0)
        file->position += (int64_t)size;
    return (ptrdiff_t)size;
}

/* Writes up to `size` bytes at `from`: as many as there is room for. */
static ptrdiff_t write_some(sim_environment *environment, memory_inode *inode, memory_bytes *bytes,
                            int64_t from, size_t size)
{
    size = bide_sim_part_(environment, "io: short write", size);
    int error = store_up_to(environment, inode, from + (int64_t)size);
    if (error != 0) {
        if ((int64_t)inode->stored <= from) {
            store_only_up_to(environment, inode, inode->size);
            return error;
        }
        size = inode->stored - (size_t)from;
    }
    bide_sim_bytes_take_(bytes, inode->bytes + from, size);
    if (from + (int64_t)size > inode->size)
        inode->size = from + (int64_t)size;
    inode->changed = environment->loop->now;
    return (ptrdiff_t)size;
}

ptrdiff_t bide_sim_file_write_(memory_node *node, memory_bytes *bytes, int64_t offset)
{
    memory_file *file = memory_file_of(node);
    memory_inode *inode = file->inode;
    sim_environment *environment = node->environment;
    if (!may_write(file))
        return -EBADF;
    if (S_ISCHR(inode->mode) || bytes->left == 0)
        return (ptrdiff_t)bytes->left;
    int error = disk_error(environment);
    if (error != 0)
        return error;
    if (disk_is_full(environment))
        return -ENOSPC;
    int64_t from = (file->flags & O_APPEND) != 0 ? inode->size
                   : offset >= 0                 ? offset
                                                 : file->position;
    size_t size = bytes->left;
    if (from == INT64_MAX)
        return -EFBIG;
    if (size > (uint64_t)(INT64_MAX - from))
        size = (size_t)(INT64_MAX - from);
    ptrdiff_t result = write_some(environment, inode, bytes, from, size);
    if (result > 0 && offset < 0)
        file->position = from + result;
    return result;
}

int bide_sim_file_check_copy_(const memory_node *from, int64_t from_offset, const memory_node *to,
                              int64_t to_offset, size_t size)
{
    const memory_file *source = memory_file_of(from);
    const memory_file *target = memory_file_of(to);
    if (!may_read(source) || !may_write(target) || (target->flags & O_APPEND) != 0)
        return -EBADF;
    if (source->inode != target->inode || from_offset >= source->inode->size)
        return 0;
    /* no more than what the file has */
    uint64_t left = (uint64_t)(source->inode->size - from_offset);
    uint64_t distance = to_offset > from_offset ? (uint64_t)(to_offset - from_offset)
                                                : (uint64_t)(from_offset - to_offset);
    return distance < (size < left ? size : left) ? -EINVAL : 0;
}

int bide_sim_seek_(memory_node *node, int64_t offset)
{
    memory_file_of(node)->position = offset;
    return 0;
}

/* ---- Opening ---- */

static int open_inode(sim_environment *environment, memory_path path, int flags, mode_t mode,
                      memory_inode **inode)
{
    memory_walk walk;
    int error = bide_sim_walk_(environment, path.root, path.path, &walk);
    if (error != 0)
        return error;
    *inode = walk.inode;
    if (walk.inode == NULL) {
        if ((flags & O_CREAT) == 0)
            return -ENOENT;
        if (walk.is_directory)
            return -EISDIR;
        *inode = bide_sim_inode_new_(environment, &walk, S_IFREG | (mode & 07777 & ~(mode_t)022));
        return *inode != NULL ? 0 : -ENOSPC;
    }
    if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
        return -EEXIST;
    if (S_ISDIR(walk.inode->mode) && ((flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0))
        return -EISDIR;
    if ((flags & O_DIRECTORY) != 0 && !S_ISDIR(walk.inode->mode))
        return -ENOTDIR;
    if (S_ISSOCK(walk.inode->mode))
        return -ENXIO;
    if ((flags & O_TRUNC) != 0 && S_ISREG(walk.inode->mode))
        set_size(environment, walk.inode, 0);
    return 0;
}

/* A file without a name, in a directory. */
static int open_unnamed(sim_environment *environment, memory_path path, int flags, mode_t mode,
                        memory_inode **inode)
{
    static const memory_walk nowhere = {NULL, NULL, 0, NULL, false};
    memory_walk walk;
    int error = bide_sim_walk_(environment, path.root, path.path, &walk);
    if (error != 0)
        return error;
    if (walk.inode == NULL)
        return -ENOENT;
    if (!S_ISDIR(walk.inode->mode))
        return -ENOTDIR;
    if ((flags & O_ACCMODE) == O_RDONLY)
        return -EINVAL;
    *inode = bide_sim_inode_new_(environment, &nowhere, S_IFREG | (mode & 07777 & ~(mode_t)022));
    return *inode != NULL ? 0 : -ENOSPC;
}

static int open_in_memory(sim_environment *environment, memory_path path, int flags, unsigned mode)
{
    memory_inode *inode = NULL;
    int error = bide_sim_has_number_(environment);
    if (error != 0)
        return error;
    memory_file *file = calloc(1, sizeof *file);
    if (file == NULL)
        return -ENOMEM;
    error = (flags & O_TMPFILE) == O_TMPFILE
                ? open_unnamed(environment, path, flags, (mode_t)mode, &inode)
                : open_inode(environment, path, flags, (mode_t)mode, &inode);
    if (error != 0) {
        free(file);
        return error;
    }
    bide_sim_node_init_(&file->node, environment, &bide_sim_file_kind_);
    file->inode = inode;
    file->flags = flags;
    bide_sim_inode_hold_(inode);
    int fd = bide_sim_install_(environment, &file->node);
    if (fd < 0)
        bide_sim_node_drop_(&file->node);
    return fd;
}

int bide_sim_open_(sim_environment *environment, const char *path, int flags, unsigned mode)
{
    return open_in_memory(environment, (memory_path){NULL, path}, flags, mode);
}

memory_inode *bide_sim_inode_of_(const sim_environment *environment, int fd)
{
    const memory_node *node = bide_sim_node_of_(environment, fd);
    return node != NULL && node->kind->is_file ? memory_file_of(node)->inode : NULL;
}

/* ---- Operations that move no bytes ---- */

/* What a path names; an empty one: what its root has open. */
static int find_inode(sim_environment *environment, memory_path path, memory_inode **inode)
{
    memory_walk walk;
    if (path.path[0] == '\0' && path.root != NULL && path.root->directory != NULL) {
        *inode = bide_sim_inode_of_(environment, bide_descriptor_fd(path.root->directory));
        return *inode != NULL ? 0 : -EBADF;
    }
    int error = bide_sim_walk_(environment, path.root, path.path, &walk);
    *inode = error == 0 ? walk.inode : NULL;
    return error == 0 && walk.inode == NULL ? -ENOENT : error;
}

static void stat_inode(const memory_inode *inode, struct stat *about)
{
    memset(about, 0, sizeof *about);
    about->st_dev = 1;
    about->st_ino = (ino_t)inode->number;
    about->st_mode = inode->mode;
    about->st_nlink = S_ISDIR(inode->mode) && inode->links != 0 ? 2 : inode->links;
    about->st_size = (off_t)inode->size;
    about->st_blksize = 4096;
    about->st_blocks = (blkcnt_t)((inode->stored + 511) / 512);
    PORTABLE_MTIME(about).tv_sec = (time_t)(inode->changed / 1000000000);
    PORTABLE_MTIME(about).tv_nsec = (long)(inode->changed % 1000000000);
    PORTABLE_CTIME(about) = PORTABLE_MTIME(about);
    PORTABLE_ATIME(about) = PORTABLE_MTIME(about);
}

static int stat_path(sim_environment *environment, memory_path path, struct stat *about)
{
    memory_inode *inode;
    int error = find_inode(environment, path, &inode);
    if (error == 0)
        stat_inode(inode, about);
    return error;
}

static int stat_node(const memory_node *node, struct stat *about)
{
    if (node->kind->is_file) {
        stat_inode(memory_file_of(node)->inode, about);
        return 0;
    }
    memset(about, 0, sizeof *about);
    about->st_mode = (node->kind->is_socket ? S_IFSOCK | 0777 : S_IFIFO | 0600);
    about->st_nlink = 1;
    about->st_blksize = 4096;
    return 0;
}

static int file_truncate(memory_file *file, int64_t size)
{
    if (size < 0 || !may_write(file) || !S_ISREG(file->inode->mode))
        return -EINVAL;
    set_size(file->node.environment, file->inode, size);
    return 0;
}

static void file_zero(memory_inode *inode, int64_t from, int64_t to)
{
    if (to > (int64_t)inode->stored)
        to = (int64_t)inode->stored;
    if (from < to)
        memset(inode->bytes + from, 0, (size_t)(to - from));
}

static int file_allocate(memory_file *file, int mode, int64_t offset, int64_t size)
{
    sim_environment *environment = file->node.environment;
    memory_inode *inode = file->inode;
    bool keeps_size = (mode & FALLOC_FL_KEEP_SIZE) != 0;
    int what = mode & ~FALLOC_FL_KEEP_SIZE;
    if (offset < 0 || size <= 0)
        return -EINVAL;
    if ((what != 0 && what != FALLOC_FL_PUNCH_HOLE && what != FALLOC_FL_ZERO_RANGE) ||
        (what == FALLOC_FL_PUNCH_HOLE && !keeps_size))
        return -EOPNOTSUPP;
    if (!may_write(file))
        return -EBADF;
    if (!S_ISREG(inode->mode))
        return S_ISDIR(inode->mode) ? -EISDIR : -ENODEV;
    if (size > INT64_MAX - offset)
        return -EFBIG;
    if (what != 0)
        file_zero(inode, offset, offset + size);
    if (what == FALLOC_FL_PUNCH_HOLE)
        return 0;
    size_t before = inode->stored;
    if (disk_is_full(environment) || store_up_to(environment, inode, offset + size) != 0) {
        store_only_up_to(environment, inode, (int64_t)before);
        return -ENOSPC;
    }
    if (!keeps_size && offset + size > inode->size)
        set_size(environment, inode, offset + size);
    return 0;
}

/* As getdents64. Stores the position before it in `offset`, so that the read can be undone. */
static ptrdiff_t read_directory_in_memory(memory_file *file, bide_io_operation *operation)
{
    enum { LENGTH = 16, TYPE = 18, NAME = 19 };
    char *data = operation->arguments.bytes.data;
    size_t size = operation->arguments.bytes.size, used = 0;
    if (!S_ISDIR(file->inode->mode))
        return -ENOTDIR;
    operation->arguments.bytes.offset = file->position;
    for (const memory_entry *at = file->inode->first; at != NULL; at = at->next) {
        if ((int64_t)at->number <= file->position)
            continue;
        unsigned short length = (unsigned short)((NAME + at->length + 8) / 8 * 8);
        if (used + length > size)
            return used != 0 ? (ptrdiff_t)used : -EINVAL;
        char *record = data + used;
        memset(record, 0, length);
        memcpy(record, &at->inode->number, sizeof at->inode->number);
        memcpy(record + 8, &at->number, sizeof at->number);
        memcpy(record + LENGTH, &length, sizeof length);
        record[TYPE] = (char)(at->inode->mode >> 12 & 15); /* (IFTODT) */
        memcpy(record + NAME, at->name, at->length);
        used += length;
        file->position = (int64_t)at->number;
    }
    return (ptrdiff_t)used;
}

ptrdiff_t bide_sim_call_read_directory_(sim_environment *environment, memory_node *node,
                                        bide_io_operation *operation)
{
    (void)environment;
    return read_directory_in_memory(memory_file_of(node), operation);
}

ptrdiff_t bide_sim_call_open_(sim_environment *environment, memory_node *node,
                              bide_io_operation *operation)
{
    const memory_path path = {operation->arguments.open.root, operation->arguments.open.path};
    (void)node;
    return open_in_memory(environment, path, operation->arguments.open.flags,
                          operation->arguments.open.mode);
}

ptrdiff_t bide_sim_call_open_temporary_(sim_environment *environment, memory_node *node,
                                        bide_io_operation *operation)
{
    const memory_path path = {operation->arguments.open.root, operation->arguments.open.path};
    (void)node;
    return open_in_memory(environment, path, operation->arguments.open.flags | O_TMPFILE,
                          operation->arguments.open.mode);
}

ptrdiff_t bide_sim_call_sync_(sim_environment *environment, memory_node *node,
                              bide_io_operation *operation)
{
    (void)operation;
    return S_ISCHR(memory_file_of(node)->inode->mode) ? -EINVAL : disk_error(environment);
}

ptrdiff_t bide_sim_call_allocate_(sim_environment *environment, memory_node *node,
                                  bide_io_operation *operation)
{
    (void)environment;
    if (!node->kind->is_file &&
        (operation->arguments.range.offset < 0 || operation->arguments.range.size <= 0))
        return -EINVAL;
    if (node->kind == &bide_sim_pipe_kind_)
        return memory_stream_of(node)->side == 0 ? -ESPIPE : -EBADF;
    if (!node->kind->is_file)
        return -ENODEV;
    return file_allocate(memory_file_of(node), operation->flags, operation->arguments.range.offset,
                         operation->arguments.range.size);
}

ptrdiff_t bide_sim_call_truncate_(sim_environment *environment, memory_node *node,
                                  bide_io_operation *operation)
{
    (void)environment;
    return file_truncate(memory_file_of(node), operation->arguments.range.size);
}

/* The path of an operation that has one, and of the first of two. */
static memory_path path_of(const bide_io_operation *operation)
{
    return (memory_path){operation->arguments.path.root, operation->arguments.path.path};
}

static memory_path path_from(const bide_io_operation *operation)
{
    return (memory_path){operation->arguments.names.root, operation->arguments.names.path};
}

static memory_path path_to(const bide_io_operation *operation)
{
    return (memory_path){operation->arguments.names.other_root, operation->arguments.names.other};
}

ptrdiff_t bide_sim_call_stat_(sim_environment *environment, memory_node *node,
                              bide_io_operation *operation)
{
    struct stat *about = operation->arguments.path.about;
    return operation->arguments.path.path != NULL
               ? stat_path(environment, path_of(operation), about)
               : stat_node(node, about);
}

ptrdiff_t bide_sim_call_statx_(sim_environment *environment, memory_node *node,
                               bide_io_operation *operation)
{
    struct statx *about = operation->arguments.path.about;
    struct stat found;
    int error = stat_path(environment, path_of(operation), &found);
    (void)node;
    if (error != 0)
        return error;
    memset(about, 0, sizeof *about);
    about->stx_mask = STATX_BASIC_STATS;
    about->stx_blksize = (uint32_t)found.st_blksize;
    about->stx_nlink = (uint32_t)found.st_nlink;
    about->stx_mode = (uint16_t)found.st_mode;
    about->stx_ino = (uint64_t)found.st_ino;
    about->stx_size = (uint64_t)found.st_size;
    about->stx_blocks = (uint64_t)found.st_blocks;
    about->stx_mtime.tv_sec = PORTABLE_MTIME(&found).tv_sec;
    about->stx_mtime.tv_nsec = (uint32_t)PORTABLE_MTIME(&found).tv_nsec;
    about->stx_ctime = about->stx_mtime;
    about->stx_atime = about->stx_mtime;
    return 0;
}

ptrdiff_t bide_sim_call_chmod_(sim_environment *environment, memory_node *node,
                               bide_io_operation *operation)
{
    memory_inode *inode;
    int error = find_inode(environment, path_of(operation), &inode);
    (void)node;
    if (error == 0)
        inode->mode = (inode->mode & S_IFMT) | (operation->arguments.path.mode & 07777);
    return error;
}

/* (there are no symbolic links) */
ptrdiff_t bide_sim_call_readlink_(sim_environment *environment, memory_node *node,
                                  bide_io_operation *operation)
{
    memory_inode *inode;
    int error = find_inode(environment, path_of(operation), &inode);
    (void)node;
    return error == 0 ? -EINVAL : error;
}

ptrdiff_t bide_sim_call_link_(sim_environment *environment, memory_node *node,
                              bide_io_operation *operation)
{
    memory_inode *inode;
    int error = find_inode(environment, path_from(operation), &inode);
    (void)node;
    return error == 0 ? bide_sim_link_(environment, inode, path_to(operation)) : error;
}

ptrdiff_t bide_sim_call_rename_(sim_environment *environment, memory_node *node,
                                bide_io_operation *operation)
{
    (void)node;
    return bide_sim_rename_(environment, path_from(operation), path_to(operation),
                            (unsigned)operation->flags);
}

ptrdiff_t bide_sim_call_unlink_(sim_environment *environment, memory_node *node,
                                bide_io_operation *operation)
{
    (void)node;
    return bide_sim_unlink_(environment, path_of(operation),
                            (operation->flags & AT_REMOVEDIR) != 0);
}

ptrdiff_t bide_sim_call_make_directory_(sim_environment *environment, memory_node *node,
                                        bide_io_operation *operation)
{
    (void)node;
    return bide_sim_make_directory_(environment, path_of(operation),
                                    (mode_t)operation->arguments.path.mode);
}
