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
#include "../inspect/safe_read.h"

#include <stdio.h>
#include <unistd.h>

static bide_atomic(const bide_io_describer_ *) table_describer; /* of a constant; NULL: none */

/* `get` is one of bide_peer_address and bide_local_address. */
static bool has_name(int (*get)(const bide_descriptor *, bide_address *),
                     const bide_descriptor *socket, const char *relation,
                     bide_described_ *described)
{
    bide_address address;
    described->relation = relation;
    return get(socket, &address) == 0 &&
           bide_address_print(&address, described->other, sizeof described->other) != 0 &&
           described->other[0] != '\0';
}

/* What is no socket is known by what it is linked to. */
static void name_file(int fd, bide_described_ *described)
{
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, described->other, sizeof described->other - 1);
    described->relation = "";
    described->other[length > 0 ? length : 0] = '\0';
}

static void describe(const bide_awaiter_ops *ops, const bide_awaiter *address,
                     bide_described_ *described)
{
    bide_io_operation operation;
    bide_descriptor descriptor;
    bide_io io;
    bide_io_table table;
    described->descriptor = -1;
    if (ops->withdraw != bide_io_withdraw ||
        !bide_peek_(bide_container_of(address, bide_io_operation, awaiter), &operation,
                    sizeof operation) ||
        operation.descriptor == NULL ||
        !bide_peek_(operation.descriptor, &descriptor, sizeof descriptor) || descriptor.fd < 0 ||
        !bide_peek_(operation.io, &io, sizeof io) || !bide_peek_(io.table, &table, sizeof table))
        return;
    described->descriptor = descriptor.fd;
    described->is_in_memory = false;
    described->relation = "";
    described->other[0] = '\0';
    const bide_io_describer_ *describer = bide_atomic_load(&table_describer, relaxed);
    if (describer != NULL && io.table == describer->table)
        describer->describe(operation.io, descriptor.fd, described);
    else if (table.calls == NULL && /* otherwise its numbers mean something there alone */
             !has_name(bide_peer_address, &descriptor, "peer", described) &&
             !has_name(bide_local_address, &descriptor, "at", described))
        name_file(descriptor.fd, described);
}

void bide_io_describe_operations_(const bide_io_describer_ *describer)
{
    if (describer != NULL)
        bide_atomic_store(&table_describer, describer, relaxed);
    bide_atomic_store(&bide_describe_operation, describe, relaxed);
}
