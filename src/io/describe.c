/*
 * For dumps: the descriptor and the peer that an operation is on.
 *
 * 1. The operation belongs to another thread. So the kernel reads it (inspect/safe_read.h), and nothing
 *    in it is trusted. A descriptor that was closed meanwhile may be another file's: the
 *    description is likely, not certain.
 * 2. A function pointer is never taken from memory that was read so. An io's own description is
 *    called only if its table is registered: tables are constant and live as long as the process.
 */
#define _GNU_SOURCE
#include "operation.h"

#include "bide/address.h"
#include "bide/socket.h"

#include "../coroutine/observe.h"
#include "../inspect/safe_read.h"

#include <stdio.h>
#include <unistd.h>

/* Tables that have a describe. A place is written once. */
enum { MAX_DESCRIBING_TABLES = 4 };
static bide_atomic(const bide_io_table *) describing_tables[MAX_DESCRIBING_TABLES];

/* `get` is one of bide_peer_address and bide_local_address. */
static bool describe_address(int (*get)(const bide_descriptor *, bide_address *),
                             const bide_descriptor *socket, const char *relation,
                             bide_described_ *described)
{
    bide_address address;
    described->relation = relation;
    return get(socket, &address) == 0 &&
           bide_address_print(&address, described->other, sizeof described->other) != 0 &&
           described->other[0] != '\0';
}

/* A descriptor that is no socket is described by the target of its link. */
static void describe_file(int fd, bide_described_ *described)
{
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, described->other, sizeof described->other - 1);
    described->relation = "";
    described->other[length > 0 ? length : 0] = '\0';
}

/* 2 */
static const bide_io_table *find_describing_table(const bide_io_table *read)
{
    for (int i = 0; i < MAX_DESCRIBING_TABLES; i++) {
        /* relaxed: what it points at is constant */
        const bide_io_table *table = bide_atomic_load(&describing_tables[i], relaxed);
        if (table == read)
            return table;
    }
    return NULL;
}

static void describe_operation(const bide_awaiter_ops *ops, const bide_awaiter *address,
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
        !bide_peek_(operation.descriptor, &descriptor, sizeof descriptor) ||
        !bide_descriptor_is_open(&descriptor) || !bide_peek_(operation.io, &io, sizeof io) ||
        !bide_peek_(io.table, &table, sizeof table))
        return;
    int fd = bide_descriptor_fd(&descriptor);
    described->descriptor = fd;
    described->is_in_memory = false;
    described->relation = "";
    described->other[0] = '\0';
    const bide_io_table *describing = find_describing_table(io.table);
    if (describing != NULL)
        describing->describe(operation.io, fd, described);
    else if (table.calls == NULL && /* otherwise its numbers mean something there alone */
             !describe_address(bide_peer_address, &descriptor, "peer", described) &&
             !describe_address(bide_local_address, &descriptor, "at", described))
        describe_file(fd, described);
}

void bide_io_describe_with_(const bide_io_table *table)
{
    bool is_registered = table->describe == NULL;
    for (int i = 0; i < MAX_DESCRIBING_TABLES && !is_registered; i++) {
        const bide_io_table *found = NULL;
        is_registered =
            bide_atomic_compare_exchange(&describing_tables[i], &found, table, relaxed, relaxed) ||
            found == table;
    }
    bide_atomic_store(&bide_describe_operation, describe_operation, relaxed);
}
