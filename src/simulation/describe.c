/*
 * For dumps: the description of a descriptor in memory. A dump runs on another thread, so the
 * kernel reads everything (inspect/safe_read.h), and nothing is trusted.
 */
#define _GNU_SOURCE
#include "memory.h"

#include "../coroutine/observe.h"
#include "../inspect/safe_read.h"

#include <stdio.h>

/* Prints the address at `from`; false: there is none. */
static bool sim_describe_address(const bide_address *from, const char *relation,
                                 bide_described_ *described)
{
    bide_address address;
    if (!bide_peek_(from, &address, sizeof address) || address.length > sizeof address.any ||
        bide_address_print(&address, described->other, sizeof described->other) == 0)
        return false;
    described->relation = relation;
    return true;
}

static bool sim_has_pointer_at(const void *address)
{
    const void *found;
    return bide_peek_(address, &found, sizeof found) && found != NULL;
}

void bide_sim_describe_(const bide_io *io, int fd, bide_described_ *described)
{
    const sim_environment *environment = (const sim_environment *)bide_container_of(io, sim_environment, io);
    memory_slot *slots;
    memory_slot slot;
    const memory_kind *kind;
    described->descriptor = fd - MEMORY_FIRST;
    described->is_in_memory = true;
    if (fd < MEMORY_FIRST || !bide_peek_(&environment->slots, &slots, sizeof slots) ||
        !bide_peek_(slots + (fd - MEMORY_FIRST), &slot, sizeof slot) || slot.node == NULL ||
        !bide_peek_(&slot.node->kind, &kind, sizeof kind))
        return;
    const memory_stream *stream = memory_stream_of(slot.node);
    if (kind == &bide_sim_stream_kind_ && sim_has_pointer_at(&stream->link))
        sim_describe_address(&stream->peer, "peer", described);
    else if (kind == &bide_sim_listener_kind_)
        sim_describe_address(bide_sim_listener_address_(slot.node), "at", described);
    else if (kind == &bide_sim_datagram_kind_)
        sim_describe_address(bide_sim_datagram_address_(slot.node), "at", described);
    else if (kind == &bide_sim_file_kind_ || kind == &bide_sim_pipe_kind_)
        snprintf(described->other, sizeof described->other, "%s", kind->name);
}
