/*
 * says: bide_stream_read is called with its bide_stream_operation here: bide_stream_count needs it afterwards
 */
#include <bide/async.h>
#include <bide/bide.h>

async long f(bide_stream stream, char *buffer, size_t size)
{
    return await bide_stream_read(stream, buffer, size); /* HERE */
}
