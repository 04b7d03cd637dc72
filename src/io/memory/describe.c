/*
 * What a dump says of a descriptor in memory. The dump is another thread's, so all is read by the kernel
 * and not believed (inspect/peek.h).
 */
#define _GNU_SOURCE
#include "memory.h"

#include "../../inspect/peek.h"

#include <stdio.h>

/* An address at `from`, printed; false: there is none. */
static bool read_address(const bide_address *from, char *text, size_t size)
{
    bide_address address;
    if (!bide_peek_(from, &address, sizeof address) || address.length > sizeof address.any)
        return false;
    return bide_address_print(&address, text, size) != 0;
}

static bool is_there(const void *address)
{
    const void *found;
    return bide_peek_(address, &found, sizeof found) && found != NULL;
}

void io_memory_describe(const bide_io *io, int fd, char *text, size_t size)
{
    const memory_world *world = (const memory_world *)bide_container_of(io, memory_world, io);
    memory_slot *slots;
    memory_slot slot;
    const memory_kind *kind;
    char name[BIDE_ADDRESS_TEXT + 16];
    int used = snprintf(text, size, " on descriptor %d in memory", fd - MEMORY_FIRST);
    if (used < 0 || (size_t)used >= size || fd < MEMORY_FIRST ||
        !bide_peek_(&world->slots, &slots, sizeof slots) ||
        !bide_peek_(slots + (fd - MEMORY_FIRST), &slot, sizeof slot) || slot.node == NULL ||
        !bide_peek_(&slot.node->kind, &kind, sizeof kind))
        return;
    const memory_stream *stream = memory_stream_of(slot.node);
    if (kind == &memory_stream_kind && is_there(&stream->link) &&
        read_address(&stream->peer, name, sizeof name))
        snprintf(text + used, size - (size_t)used, ", peer %s", name);
    else if (kind == &memory_listener_kind &&
             read_address(memory_listener_address(slot.node), name, sizeof name))
        snprintf(text + used, size - (size_t)used, ", at %s", name);
    else if (kind == &memory_datagram_kind &&
             read_address(memory_datagram_address(slot.node), name, sizeof name))
        snprintf(text + used, size - (size_t)used, ", at %s", name);
    else if (kind == &memory_file_kind || kind == &memory_pipe_kind)
        snprintf(text + used, size - (size_t)used, ", %s", kind->name);
}
