/*
 * bide: async/await for C. All of it but the model checker (bide/check.h), which is for tests; each header may
 * also be included by itself.
 */
#ifndef BIDE_BIDE_H
#define BIDE_BIDE_H

#include "bide/allocator.h"
#include "bide/async_generator.h"
#include "bide/atomic.h"
#include "bide/blocking.h"
#include "bide/branch.h"
#include "bide/compiler.h"
#include "bide/coroutine.h"
#include "bide/coroutine_type.h"
#include "bide/create.h"
#include "bide/deadline.h"
#include "bide/dump.h"
#include "bide/errors.h"
#include "bide/event.h"
#include "bide/frame.h"
#include "bide/generator.h"
#include "bide/handle.h"
#include "bide/inspect.h"
#include "bide/platform.h"
#include "bide/recursive_generator.h"
#include "bide/ring.h"
#include "bide/root.h"
#include "bide/run_loop.h"
#include "bide/schedule.h"
#include "bide/scope.h"
#include "bide/sequence.h"
#include "bide/sequence_barrier.h"
#include "bide/sequence_group.h"
#include "bide/shared_task.h"
#include "bide/single_producer_sequencer.h"
#include "bide/sleep.h"
#include "bide/spawn.h"
#include "bide/stop.h"
#include "bide/stop_callback.h"
#include "bide/sync_wait.h"
#include "bide/task.h"
#include "bide/then.h"
#include "bide/thread_pool.h"
#include "bide/timer.h"
#include "bide/waiter_list.h"
#include "bide/when.h"

#endif
