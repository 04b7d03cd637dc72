/*
 * Entries of directories, and mappings of files.
 *
 *     buffer |.....|====|====|......|     each entry: inode, offset, length, type, name
 *                begin     end     size
 *
 * One bide_next_entry of a directory is in progress at a time.
 *
 * 1. The buffer is filled only when it has no entry left but "." and "..". So no entry is overwritten
 *    before it was returned. The call fills the buffer, and `resume` sets `begin` and `end`. No other
 *    operation reads the directory in between. A call that returned only "." and ".." is repeated, so
 *    it ends with another entry or at the end.
 * 2. An entry leaves the buffer in `resume`, which runs once, when its coroutine resumes. If the
 *    coroutine is destroyed before, the entries that the call has read would be lost. So the back end
 *    puts them back, by seeking to the position of the first.
 */
#define _GNU_SOURCE
#include "bide/directory.h"

#include "operation.h"

#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

void bide_directory_init(bide_directory *directory, bide_descriptor *descriptor, void *buffer,
                         size_t size)
{
    directory->descriptor = descriptor;
    directory->buffer = buffer;
    directory->size = size;
    directory->begin = 0;
    directory->end = 0;
}

/* Offsets in a record of getdents64, which is not aligned in the caller's buffer. */
enum { ENTRY_LENGTH = 16, ENTRY_TYPE = 18, ENTRY_NAME = 19 };

static bool directory_is_dots(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* Takes the next entry other than "." and "..". False: there is none. */
static bool directory_parse_entry(bide_entry_operation *entry)
{
    bide_directory *directory = entry->directory;
    while (directory->begin < directory->end) {
        const char *record = directory->buffer + directory->begin;
        unsigned short length;
        memcpy(&length, record + ENTRY_LENGTH, sizeof length);
        bide_assert(length > ENTRY_NAME && length <= directory->end - directory->begin);
        memcpy(&entry->inode, record, sizeof entry->inode);
        entry->type = (unsigned char)record[ENTRY_TYPE];
        entry->name = record + ENTRY_NAME;
        directory->begin += length;
        if (!directory_is_dots(entry->name))
            return true;
    }
    return false;
}

bool bide_io_has_entry_(const char *records, size_t size)
{
    for (size_t at = 0; at < size;) {
        unsigned short length;
        if (!directory_is_dots(records + at + ENTRY_NAME))
            return true;
        memcpy(&length, records + at + ENTRY_LENGTH, sizeof length);
        at += length;
    }
    return false;
}

/* True if directory_parse_entry has an entry to return. */
static bool directory_has_entry(const bide_directory *directory)
{
    return bide_io_has_entry_(directory->buffer + directory->begin,
                              directory->end - directory->begin);
}

static bide_entry_operation *directory_entry_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_entry_operation, file.operation.awaiter);
}

static bide_frame *directory_entry_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    return directory_has_entry(directory_entry_of(awaiter)->directory)
               ? frame
               : bide_io_suspend(awaiter, frame);
}

static int directory_entry_resume(bide_awaiter *awaiter)
{
    bide_entry_operation *entry = directory_entry_of(awaiter);
    bide_io_operation *operation = &entry->file.operation;
    if (operation->status < 0)
        return operation->status;
    bide_assert(operation->count <= entry->directory->size);
    if (operation->count != 0) {
        entry->directory->begin = 0;
        entry->directory->end = operation->count;
    }
    return directory_parse_entry(entry) ? 0 : -EPIPE;
}

bide_awaiter *bide_next_entry(bide_entry_operation *entry, bide_directory *directory)
{
    static const bide_awaiter_ops ops = {
        .suspend = directory_entry_suspend,
        .resume = directory_entry_resume,
        .cancel = bide_io_cancel,
        .withdraw = bide_io_withdraw,
        .name = "bide_next_entry",
    };
    bide_io_operation *operation =
        io_file_init(&entry->file, &ops, BIDE_IO_READ_DIRECTORY, directory->descriptor);
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
