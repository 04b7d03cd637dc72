/* Operations on files, which may block, and polls. Any thread initialises one. */
#define _GNU_SOURCE
#include "bide/file.h"

#include "const_cast.h"
#include "operation.h"

static bide_awaiter *file_bytes_init(bide_file_operation *file, const bide_awaiter_ops *ops,
                                     bide_io_code code, bide_descriptor *descriptor, void *data,
                                     size_t size, int64_t offset)
{
    bide_io_operation *operation = io_file_init(file, ops, code, descriptor);
    operation->arguments.bytes.data = data;
    operation->arguments.bytes.size = size;
    operation->arguments.bytes.offset = offset;
    operation->is_whole = code == BIDE_IO_WRITE && size != 0;
    return &operation->awaiter;
}

static bide_awaiter *file_vectors_init(bide_file_operation *file, const bide_awaiter_ops *ops,
                                       bide_io_code code, bide_descriptor *descriptor,
                                       const struct iovec *vectors, int count, int64_t offset)
{
    bide_io_operation *operation = io_file_init(file, ops, code, descriptor);
    operation->arguments.vector.vectors = vectors;
    operation->arguments.vector.count = count;
    operation->arguments.vector.offset = offset;
    operation->is_whole = code == BIDE_IO_WRITE_VECTOR;
    return &operation->awaiter;
}

bide_awaiter *bide_read(bide_file_operation *file, bide_descriptor *descriptor, void *buffer,
                        size_t size)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS_IN_CHOICE("bide_read");
    return file_bytes_init(file, &ops, BIDE_IO_READ, descriptor, buffer, size, -1);
}

bide_awaiter *bide_write(bide_file_operation *file, bide_descriptor *descriptor, const void *data,
                         size_t size)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_write");
    return file_bytes_init(file, &ops, BIDE_IO_WRITE, descriptor, io_as_data(data), size, -1);
}

bide_awaiter *bide_read_at(bide_file_operation *file, bide_descriptor *descriptor, void *buffer,
                           size_t size, int64_t offset)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_read_at");
    return file_bytes_init(file, &ops, BIDE_IO_READ, descriptor, buffer, size, offset);
}

bide_awaiter *bide_write_at(bide_file_operation *file, bide_descriptor *descriptor,
                            const void *data, size_t size, int64_t offset)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_write_at");
    return file_bytes_init(file, &ops, BIDE_IO_WRITE, descriptor, io_as_data(data), size, offset);
}

bide_awaiter *bide_readv(bide_file_operation *file, bide_descriptor *descriptor,
                         const struct iovec *vectors, int count, int64_t offset)
{
    static const bide_awaiter_ops at_offset = BIDE_IO_OPS("bide_readv");
    static const bide_awaiter_ops ops = BIDE_IO_OPS_IN_CHOICE("bide_readv");
    return file_vectors_init(file, offset < 0 ? &ops : &at_offset, BIDE_IO_READ_VECTOR, descriptor,
                             vectors, count, offset);
}

bide_awaiter *bide_writev(bide_file_operation *file, bide_descriptor *descriptor,
                          const struct iovec *vectors, int count, int64_t offset)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_writev");
    return file_vectors_init(file, &ops, BIDE_IO_WRITE_VECTOR, descriptor, vectors, count, offset);
}

bide_awaiter *bide_sync(bide_file_operation *file, bide_descriptor *descriptor, bide_sync_what what)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_sync");
    bide_io_operation *operation = io_file_init(file, &ops, BIDE_IO_SYNC, descriptor);
    operation->flags = what == BIDE_SYNC_DATA;
    return &operation->awaiter;
}

bide_awaiter *bide_allocate(bide_file_operation *file, bide_descriptor *descriptor, int mode,
                            int64_t offset, int64_t size)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_allocate");
    bide_io_operation *operation = io_file_init(file, &ops, BIDE_IO_ALLOCATE, descriptor);
    operation->flags = mode;
    operation->arguments.range.offset = offset;
    operation->arguments.range.size = size;
    return &operation->awaiter;
}

bide_awaiter *bide_truncate(bide_file_operation *file, bide_descriptor *descriptor, int64_t size)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_truncate");
    bide_io_operation *operation = io_file_init(file, &ops, BIDE_IO_TRUNCATE, descriptor);
    operation->arguments.range.size = size;
    return &operation->awaiter;
}

bide_awaiter *bide_stat(bide_file_operation *file, bide_descriptor *descriptor, struct stat *about)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_stat");
    bide_io_operation *operation = io_file_init(file, &ops, BIDE_IO_STAT, descriptor);
    operation->arguments.path.path = NULL;
    operation->arguments.path.root = NULL;
    operation->arguments.path.about = about;
    return &operation->awaiter;
}

bide_awaiter *bide_stat_path(bide_file_operation *file, const char *path, struct stat *about,
                             int flags)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_stat_path");
    bide_io_operation *operation = io_file_init(file, &ops, BIDE_IO_STAT, NULL);
    operation->flags = flags;
    operation->arguments.path.path = path;
    operation->arguments.path.root = NULL;
    operation->arguments.path.about = about;
    return &operation->awaiter;
}

bide_awaiter *bide_poll(bide_io_operation *operation, bide_descriptor *descriptor, uint32_t events)
{
    static const bide_awaiter_ops ops = {
        .suspend = bide_io_suspend,
        .resume = bide_io_resume,
        .cancel = bide_io_cancel,
        .withdraw = bide_io_withdraw,
        .name = "bide_poll",
        .undo = BIDE_UNDO_WITHDRAW, /* it takes nothing */
    };
    bide_io_operation_init(operation, &ops, BIDE_IO_POLL, descriptor);
    operation->arguments.poll.wanted = events;
    operation->arguments.poll.found = 0;
    return &operation->awaiter;
}
