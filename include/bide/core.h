/*
 * The core of bide: the part that needs a C compiler and nothing else. It is freestanding, does not
 * allocate, and needs only `bide_platform` of the system (bide/platform.h). With an operating system
 * there is more: bide/bide.h. Each header may also be included by itself.
 * Floor: queue.
 *
 * bide/extend/ is for authors of kinds of coroutines, of primitives and of wrappers. Programs do not
 * include bide/detail/.
 */
#ifndef BIDE_CORE_H
#define BIDE_CORE_H

/* Coroutines: frames and contexts, bodies, handles, and how long a frame lives */
#include "bide/context_value.h" /* a trace id that all below inherits */
#include "bide/coroutine.h"
#include "bide/frame.h"
#include "bide/handle.h"
#include "bide/task.h"

#include "bide/allocator.h" /* frames from an arena, a pool or the heap */
#include "bide/create.h"

/* Values one after the other */
#include "bide/async_generator.h"
#include "bide/generator.h"
#include "bide/recursive_generator.h"

/* Several at once, and stopping them */
#include "bide/deadline.h"
#include "bide/scope.h"
#include "bide/shared_task.h" /* one result for many */
#include "bide/stop.h"
#include "bide/stop_callback.h"
#include "bide/when.h" /* all, all ready, any */
#include "bide/with_stop.h"

/* Where and when: other schedulers, time, plain threads */
#include "bide/interval.h" /* regular times */
#include "bide/schedule.h"
#include "bide/sleep.h"
#include "bide/sync_wait.h"
#include "bide/then.h" /* a function of a result */

/* Events: that something has happened */
#include "bide/auto_event.h"
#include "bide/event.h"
#include "bide/notify.h"
#include "bide/single_consumer_event.h"

/* Locks: that one, or so many, at a time do something */
#include "bide/barging_mutex.h"
#include "bide/condition.h"
#include "bide/mutex.h"
#include "bide/once.h"
#include "bide/rw_lock.h"
#include "bide/semaphore.h"

/* Counts: that so many have come or gone */
#include "bide/cyclic_barrier.h"
#include "bide/latch.h"
#include "bide/wait_group.h"

/* Channels, whose senders and receivers wait; and waiting for several */
#include "bide/broadcast.h"
#include "bide/channel.h"
#include "bide/oneshot.h"
#include "bide/rendezvous.h"
#include "bide/select.h"
#include "bide/select_set.h"
#include "bide/spsc_channel.h"
#include "bide/unbounded_channel.h"
#include "bide/watch.h"

/* The ring whose sequences consumers follow */
#include "bide/adaptive_spin.h"
#include "bide/multi_producer_sequencer.h"
#include "bide/ring.h"
#include "bide/sequence.h"
#include "bide/sequence_barrier.h"
#include "bide/sequence_group.h"
#include "bide/single_producer_sequencer.h"

/* Lock-free queues, without waiting, and what they are made of */
#include "bide/counted_queue.h"
#include "bide/hazard.h" /* memory that goes when nobody reads it any more */
#include "bide/linked_queue.h"
#include "bide/mpmc_ring.h"
#include "bide/node_pool.h"
#include "bide/segment_queue.h"
#include "bide/spsc_ring.h"

/* Underneath */
#include "bide/atomic.h"
#include "bide/compiler.h"
#include "bide/errors.h"
#include "bide/inspect.h" /* backtraces */
#include "bide/platform.h"
#include "bide/version.h"

#endif
