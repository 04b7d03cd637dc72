/*
 * Entries of directories, and maps.
 *
 *     buffer |.....|====|====|......|     each entry: inode, offset, length, type, name
 *                begin     end     size
 *
 * 1. The buffer is filled only when it is empty, so no entry is overwritten that was not given. The
 *    call fills it, and `resume` says so: between the two nobody else reads of the directory.
 *    A call that brought nothing but "." and ".." is made again, so that it brings an entry or the end.
 * 2. An entry leaves the buffer in `resume`, which is called once, when its coroutine goes on. If that
 *    is destroyed before, what the call has read is lost, as with any read; so it is put back
 *    (give_back), by seeking to where the first of them stood.
 */
#define _GNU_SOURCE
#include "bide/directory.h"

#include "operation.h"

#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

void bide_directory_init(bide_directory *directory, bide_descriptor *folder, void *buffer,
                         size_t size)
{
    directory->folder = folder;
    directory->buffer = buffer;
    directory->size = size;
    directory->begin = 0;
    directory->end = 0;
}

/* Where the fields of a record of getdents64 are: it is not aligned in the caller's buffer. */
enum { LENGTH = 16, TYPE = 18, NAME = 19 };

static bool is_dots(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* Takes the next that is not one of the two. False: there is none. */
static bool take_entry(bide_entry_operation *entry)
{
    bide_directory *directory = entry->directory;
    while (directory->begin < directory->end) {
        const char *record = directory->buffer + directory->begin;
        unsigned short length;
        memcpy(&length, record + LENGTH, sizeof length);
        memcpy(&entry->inode, record, sizeof entry->inode);
        entry->type = (unsigned char)record[TYPE];
        entry->name = record + NAME;
        directory->begin += length;
        if (!is_dots(entry->name))
            return true;
    }
    return false;
}

bool bide_io_has_entry_(const char *records, size_t size)
{
    for (size_t at = 0; at < size;) {
        unsigned short length;
        if (!is_dots(records + at + NAME))
            return true;
        memcpy(&length, records + at + LENGTH, sizeof length);
        at += length;
    }
    return false;
}

/* Is there one that take_entry would give? */
static bool has_entry(const bide_directory *directory)
{
    return bide_io_has_entry_(directory->buffer + directory->begin, directory->end - directory->begin);
}

static bide_entry_operation *entry_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_entry_operation, file.operation.awaiter);
}

static bide_frame *suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    return has_entry(entry_of(awaiter)->directory) ? frame : bide_io_suspend(awaiter, frame);
}

static int resume(bide_awaiter *awaiter)
{
    bide_entry_operation *entry = entry_of(awaiter);
    bide_io_operation *operation = &entry->file.operation;
    if (operation->status < 0)
        return operation->status;
    if (operation->count != 0) {
        entry->directory->begin = 0;
        entry->directory->end = operation->count;
    }
    return take_entry(entry) ? 0 : -EPIPE;
}

bide_awaiter *bide_next_entry(bide_entry_operation *entry, bide_directory *directory)
{
    static const bide_awaiter_ops ops = {
        .suspend = suspend,
        .resume = resume,
        .cancel = bide_io_cancel,
        .withdraw = bide_io_withdraw,
        .name = "bide_next_entry",
    };
    bide_io_operation *operation =
        io_file_init(&entry->file, &ops, BIDE_IO_READ_DIRECTORY, directory->folder);
    operation->arguments.bytes.data = directory->buffer;
    operation->arguments.bytes.size = directory->size;
    operation->arguments.bytes.offset = -1;
    entry->directory = directory;
    entry->name = NULL;
    return &operation->awaiter;
}

bide_awaiter *bide_map_file(bide_file_operation *file, bide_descriptor *descriptor, int64_t offset,
                            size_t size, int protection, int flags)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_map_file");
    bide_io_operation *operation = io_file_init(file, &ops, BIDE_IO_MAP, descriptor);
    operation->flags = flags;
    operation->arguments.map.at = NULL;
    operation->arguments.map.size = size;
    operation->arguments.map.offset = offset;
    operation->arguments.map.protection = protection;
    return &operation->awaiter;
}

bide_awaiter *bide_prefault(bide_file_operation *file, void *at, size_t size, bool to_write)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_prefault");
    bide_io_operation *operation = io_file_init(file, &ops, BIDE_IO_PREFAULT, NULL);
    operation->flags = to_write;
    operation->arguments.map.at = at;
    operation->arguments.map.size = size;
    return &operation->awaiter;
}
