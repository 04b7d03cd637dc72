/*
 * bide: async/await for C. All of it but the model checker (bide/check.h), which is for tests, TLS
 * (bide/tls.h), which is a library of its own, and what authors of primitives need (bide/extend/);
 * each header may also be included by itself.
 * Floor: io.
 */
#ifndef BIDE_BIDE_H
#define BIDE_BIDE_H

/* Most of the library: the part that needs no operating system, grouped by purpose */
#include "bide/core.h"

/* Schedulers: one thread, several, one at a time on either, and threads for calls that block */
#include "bide/blocking.h"
#include "bide/run_loop.h"
#include "bide/strand.h"
#include "bide/thread_pool.h"

/* Plain functions side by side, on a pool's threads */
#include "bide/join.h"
#include "bide/parallel.h"

/* Coroutines side by side, on a pool's threads */
#include "bide/fork.h"

/* Beginning coroutines beside others; waiting in somebody else's event loop */
#include "bide/pollable.h"
#include "bide/spawn.h"

/* A bound on how often something is done */
#include "bide/token_bucket.h"

/* Input and output: a scheduler that sleeps in the kernel, and what its coroutines wait for */
#include "bide/acceptor.h" /* connections as a stream */
#include "bide/address.h"
#include "bide/connection_pool.h" /* connections that are used again */
#include "bide/buffer_pool.h" /* receiving into memory that is lent */
#include "bide/descriptor.h"
#include "bide/directory.h" /* and files mapped into memory */
#include "bide/file.h"
#include "bide/file_copy.h"
#include "bide/file_lock.h" /* that programs agree on */
#include "bide/file_watch.h"
#include "bide/tree_watch.h"
#include "bide/io_pool.h" /* a loop for each worker of a thread pool */
#include "bide/pool_server.h"
#include "bide/loop.h"
#include "bide/names.h"     /* look-ups, and connecting by name */
#include "bide/path.h" /* files by their names, under a directory */
#include "bide/fd_passing.h"      /* descriptors to and from other processes */
#include "bide/process.h" /* child processes */
#include "bide/receiver.h" /* what arrives as a stream of chunks */
#include "bide/run.h" /* a program in one call */
#include "bide/send_file.h" /* a file to a socket */
#include "bide/server.h"    /* a coroutine for each connection */
#include "bide/signal.h"
#include "bide/socket.h"
#include "bide/stream.h" /* lines, buffers, copies: of sockets, files, pipes and memory */

/* Dumps of tasks and what they wait for; tests that can be repeated exactly */
#include "bide/dump.h"
#include "bide/splice.h"
#include "bide/memory_io.h" /* sockets and files of a test */
#include "bide/monitor.h"   /* for bide-top, and other programs of the owner */
#include "bide/terminal.h"
#include "bide/sim_loop.h"
#include "bide/trace.h"      /* what ran when, as a file that Perfetto opens */
#include "bide/stall_detector.h" /* turns that hold a thread for too long */

#endif
