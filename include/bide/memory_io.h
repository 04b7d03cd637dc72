/*
 * Input and output in memory, under a test loop: sockets, pipes and files that never touch the
 * system. So code that uses them is tested without a network, in virtual time, and with rare
 * network and disk behaviour: short reads, slow peers, broken connections. Floor: simulation.
 *
 *     static int run(bide_sim_loop *loop, void *argument)            // one run of a test
 *     {
 *         bide_memory_io *io;
 *         bide_memory_io_options options = bide_memory_io_rough();
 *         int status = bide_memory_io_create(&io, loop, &options);
 *         if (status == 0) {
 *             status = bide_sim_loop_wait(loop, clients_and_server(&test));
 *             bide_memory_io_destroy(io);
 *         }
 *         return status;
 *     }
 *
 *     bide_sim_loop_explore(run, 10000);
 *
 * It is a third back end of the operations, beside io_uring and epoll. Coroutines of the loop use
 * the ordinary operations (socket.h, file.h, directory.h, fd_passing.h), and everything built on them
 * (stream.h, server.h, connection_pool.h). Errors and results are those of Linux. "What is
 * simulated" and "Faults" below have the details.
 *
 * Only the loop's thread may use it.
 */
#ifndef BIDE_MEMORY_IO_H
#define BIDE_MEMORY_IO_H

#include "bide/extend/io.h"
#include "bide/loop.h"
#include "bide/sim_loop.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_memory_io bide_memory_io;

/* In place of a rate: it is drawn, for each fault by itself, once in a run: never, or one in 2, 8 or
 * 64 times. */
#define BIDE_MEMORY_IO_DRAWN UINT32_MAX

/* How it is to be. All zero: nothing is drawn, and all happens as soon as it can. */
typedef struct bide_memory_io_options {
    /* Nanoseconds at most, of which is drawn: none, or a part, or all. */
    uint64_t delay;      /* until what is sent over a network arrives, and a connection is made */
    uint64_t disk_delay; /* until an operation on a file is done */

    /* Rates: one in so many times; 0: never; BIDE_MEMORY_IO_DRAWN. */
    uint32_t short_transfers; /* short receives, sends, reads and writes */
    uint32_t broken;          /* resets, refused and aborted connections */
    uint32_t lost;            /* datagrams lost, and datagrams that come twice */
    uint32_t no_descriptor;
    uint32_t disk_full;
    uint32_t disk_error;

    size_t window;        /* bytes that a direction of a stream, or a pipe, holds. 0: 65536 */
    size_t disk;          /* bytes of all files. 0: 64 MiB; more is -ENOSPC */
    unsigned descriptors; /* that may be open at a time. 0: 1024; more is -EMFILE */
} bide_memory_io_options;

/*
 * Options of a rough world: all that can be drawn is, with delays of up to 50 ms in the network
 * and 5 ms of the disk, except for the faults of the disk and the lack of descriptors.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bide_memory_io_options bide_memory_io_rough(void)
{
    enum { NETWORK_DELAY = 50000000, DISK_DELAY = 5000000 };
    bide_memory_io_options options = {NETWORK_DELAY,
                                      DISK_DELAY,
                                      BIDE_MEMORY_IO_DRAWN,
                                      BIDE_MEMORY_IO_DRAWN,
                                      BIDE_MEMORY_IO_DRAWN,
                                      0,
                                      0,
                                      0,
                                      0,
                                      0,
                                      0};
    return options;
}

/*
 * Makes one, and attaches it to `loop`, which has none yet: its coroutines have input and output from
 * now on. `options` is copied; NULL: all zero.
 * Threads: the loop's. Errors: -ENOMEM, -EBUSY (the loop has one). Progress: that of malloc.
 */
int bide_memory_io_create(bide_memory_io **io, bide_sim_loop *loop,
                          const bide_memory_io_options *options);

/*
 * Frees it with all that is in it, before the loop is destroyed; NULL is left as it is. No
 * operation waits; descriptors that are open are closed, and belong to no loop. A number that is open
 * and belongs to no descriptor of this io is a leak, and misuse: it is reported at the await that
 * opened it. "Numbers without a descriptor" are below.
 * Threads: the loop's. Progress: that of free, linear in what there is.
 */
void bide_memory_io_destroy(bide_memory_io *io);

/*
 * Other options from now on: to heal the world, or to fill its disk. Operations under way stay as
 * they were drawn. Windows apply to connections that are made later.
 * Threads: the loop's. Progress: wait-free.
 */
void bide_memory_io_change(bide_memory_io *io, const bide_memory_io_options *options);

/*
 * Opens a pipe: what is written to *output is read from *input.
 * Threads: the loop's. Errors: -EMFILE, -ENOMEM. Progress: that of malloc.
 */
int bide_memory_io_pipe(bide_memory_io *io, bide_descriptor *input, bide_descriptor *output);

/*
 * Makes `host` the name of `count` addresses, which bide_resolve finds from now on; it replaces those
 * that it had. 0 addresses: there is no such name. Their ports do not count. All is copied. At first
 * there is "localhost" alone.
 * Threads: the loop's. Errors: -EINVAL (`host` is empty or longer than 253 bytes, or there are more than
 * BIDE_RESOLVE_MAX addresses), -ENOMEM. Progress: that of malloc, linear in the hosts.
 */
int bide_memory_io_set_host(bide_memory_io *io, const char *host,
                            const struct bide_address *addresses, unsigned count);

/*
 * Gives `name` `count` records of a kind, which bide_resolve_records finds from now on; they replace
 * those of that kind that it had. 0 records: it has none. All is copied.
 * Threads: the loop's. Errors: -EINVAL (`name` is empty or longer than 253 bytes, `kind` is neither
 * BIDE_RECORD_SRV nor BIDE_RECORD_TXT, or there are more than BIDE_RECORDS_MAX records, or texts of more
 * than BIDE_RECORDS_TEXT bytes), -ENOMEM. Progress: that of malloc, linear in the names.
 */
int bide_memory_io_set_records(bide_memory_io *io, const char *name, unsigned kind,
                               const struct bide_name_record *records, unsigned count);

/* Counters of a simulated world. */
typedef struct bide_memory_io_stats {
    uint64_t started;       /* operations, ever */
    uint64_t in_flight;   /* of those, that have not ended */
    unsigned descriptors; /* that are open */
    size_t disk;          /* bytes of all files */
} bide_memory_io_stats;

/*
 * Counts: after a test no descriptor is open.
 * Threads: the loop's. Progress: wait-free.
 */
void bide_memory_io_get_stats(const bide_memory_io *io, bide_memory_io_stats *counts);

/*
 * As bide_loop_backend says of a loop: its name is "memory".
 * Threads: any. Progress: wait-free.
 */
bide_loop_back_end bide_memory_io_back_end(const bide_memory_io *io);

/*
 * Why it is correct: src/simulation/table.c.
 *
 * Source: the simulated worlds of FoundationDB, TigerBeetle and madsim.
 */

/*
 * The simulated world:
 *
 *     network   TCP and UDP of both versions. There is one machine, and it has every address, so a test
 *               may give each of its servers an address of its own. A connection holds `window` bytes in
 *               each direction; then its sender waits.
 *     Unix      streams and datagrams, by path and without a file, with descriptors and credentials
 *     files     one tree, kept until the end. At first it has "/tmp" and "/dev/null". Paths that do not
 *               begin with "/" begin at its root. There are no permissions.
 *     pipes     bide_memory_io_pipe
 *     names     bide_resolve finds those of bide_memory_io_set_host, whatever its bide_names is, and
 *               bide_resolve_reverse the first host that has the address; records are those of
 *               bide_memory_io_set_records
 *
 * Not simulated: maps of files (-ENOTSUP), symbolic links, and options that only a kernel can
 * implement: they are stored and have no effect. A write to a pipe without a reader is -EPIPE
 * without a signal. The system does not know the descriptors' numbers: system calls on them fail
 * with EBADF.
 *
 * Numbers without a descriptor. A number that was released (bide_descriptor_release), or came in a
 * message, belongs to this io again after bide_descriptor_init and the first operation, or
 * bide_io_adopt. Before that bide_close closes it in the io of the test loop that runs on this thread,
 * or, while none runs, in the only io in memory of this thread. If there are several, it fails with
 * -EBADF. close(2) always does. In both cases the number stays open, until bide_memory_io_destroy
 * reports it.
 *
 * Faults. If the options ask for them, they are drawn from the loop's seed. Each has a name, for
 * bide_sim_options.faults and bide_sim_result:
 *
 *     "io: short receive", "io: short send"   a part is moved; the rest of a send has to wait
 *     "io: reset"             a TCP connection breaks while it is used
 *     "io: refused"           a connection cannot be made: refused, no route, no answer
 *     "io: aborted"           a connection is gone before it is accepted
 *     "io: no descriptor"     -EMFILE, from an operation that opens one
 *     "io: lost", "io: twice" a UDP datagram
 *     "io: no answer"         a look-up of a name ends with -EAGAIN; with "io: refused" and the like
 *     "io: short read", "io: short write"     of a file
 *     "io: disk full", "io: disk error"       -ENOSPC from a write, -EIO
 */

BIDE_EXTERN_C_END

#endif
