/*
 * What an operation on a descriptor is on, for a dump: its descriptor and the peer. The operation
 * belongs to another thread, so it is read by the kernel and not believed (inspect/peek.h). A
 * descriptor that was closed meanwhile may be another file's: what is said is likely, not certain.
 */
#define _GNU_SOURCE
#include "operation.h"

#include "bide/address.h"
#include "bide/socket.h"

#include "../coroutine/observe.h"
#include "../inspect/peek.h"

#include <stdio.h>
#include <unistd.h>

/* `get` is one of bide_peer_address and bide_local_address. */
static bool has_name(int (*get)(const bide_descriptor *, bide_address *),
                     const bide_descriptor *socket, char *text, size_t size)
{
    bide_address address;
    return get(socket, &address) == 0 && bide_address_print(&address, text, size) != 0 &&
           text[0] != '\0';
}

static void describe(const bide_awaiter_ops *ops, const bide_awaiter *address, char *text,
                     size_t size)
{
    bide_io_operation operation;
    bide_descriptor descriptor;
    bide_io io;
    bide_io_table table;
    char name[100];
    text[0] = '\0';
    if (ops->withdraw != bide_io_withdraw ||
        !bide_peek_(bide_container_of(address, bide_io_operation, awaiter), &operation,
                    sizeof operation) ||
        operation.descriptor == NULL ||
        !bide_peek_(operation.descriptor, &descriptor, sizeof descriptor) || descriptor.fd < 0 ||
        !bide_peek_(operation.io, &io, sizeof io) || !bide_peek_(io.table, &table, sizeof table))
        return;
    if (io.table == &io_memory_table) {
        io_memory_describe(operation.io, descriptor.fd, text, size);
    } else if (table.calls != NULL) { /* its numbers mean something there alone */
        snprintf(text, size, " on descriptor %d", descriptor.fd);
    } else if (has_name(bide_peer_address, &descriptor, name, sizeof name)) {
        snprintf(text, size, " on descriptor %d, peer %s", descriptor.fd, name);
    } else if (has_name(bide_local_address, &descriptor, name, sizeof name)) {
        snprintf(text, size, " on descriptor %d, at %s", descriptor.fd, name);
    } else {
        char link[32];
        snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor.fd);
        ssize_t length = readlink(link, name, sizeof name - 1);
        name[length > 0 ? length : 0] = '\0';
        snprintf(text, size, length > 0 ? " on descriptor %d, %s" : " on descriptor %d",
                 descriptor.fd, name);
    }
}

void io_describe_operations(void)
{
    bide_atomic_store(&bide_describe_operation, describe, relaxed);
}
