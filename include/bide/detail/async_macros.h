/*
 * In an async function an operation may be called without its waiter, which is then a member of the
 * frame (async.h). Operations that are macros take as many arguments as they are called with here;
 * the translator knows `bide_here_` for a waiter that it brings. Floor: tools.
 */
#ifndef BIDE_DETAIL_ASYNC_MACROS_H
#define BIDE_DETAIL_ASYNC_MACROS_H

#include "bide/detail/arguments.h"

#include "bide/barging_mutex.h"
#include "bide/blocking.h"
#include "bide/broadcast.h"
#include "bide/channel.h"
#include "bide/condition.h"
#include "bide/context_value.h"
#include "bide/deadline.h"
#include "bide/latch.h"
#include "bide/mutex.h"
#include "bide/oneshot.h"
#include "bide/rendezvous.h"
#include "bide/rw_lock.h"
#include "bide/sequence_group.h"
#include "bide/sleep.h"
#include "bide/spsc_channel.h"
#include "bide/then.h"
#include "bide/unbounded_channel.h"
#include "bide/watch.h"

/* macro(__VA_ARGS__), which takes `count` arguments; if one is missing, with bide_here_ first. */
#define BIDE_BRING_(count, macro, ...) \
    BIDE_COUNTED_(BIDE_BRING_##count##_, BIDE_COUNT_(__VA_ARGS__))(macro, __VA_ARGS__)
#define BIDE_BRING_2_1_(macro, ...) macro(bide_here_, __VA_ARGS__)
#define BIDE_BRING_2_2_(macro, ...) macro(__VA_ARGS__)
#define BIDE_BRING_3_2_(macro, ...) macro(bide_here_, __VA_ARGS__)
#define BIDE_BRING_3_3_(macro, ...) macro(__VA_ARGS__)
#define BIDE_BRING_4_3_(macro, ...) macro(bide_here_, __VA_ARGS__)
#define BIDE_BRING_4_4_(macro, ...) macro(__VA_ARGS__)
#define BIDE_BRING_5_4_(macro, ...) macro(bide_here_, __VA_ARGS__)
#define BIDE_BRING_5_5_(macro, ...) macro(__VA_ARGS__)
#define BIDE_BRING_6_5_(macro, ...) macro(bide_here_, __VA_ARGS__)
#define BIDE_BRING_6_6_(macro, ...) macro(__VA_ARGS__)

#undef bide_channel_send
#define bide_channel_send(...) BIDE_BRING_(3, BIDE_CHANNEL_SEND_, __VA_ARGS__)
#undef bide_channel_recv
#define bide_channel_recv(...) BIDE_BRING_(3, BIDE_CHANNEL_RECV_, __VA_ARGS__)
#undef bide_channel_recv_many
#define bide_channel_recv_many(...) BIDE_BRING_(5, BIDE_CHANNEL_RECV_MANY_, __VA_ARGS__)
#undef bide_channel_reserve
#define bide_channel_reserve(...) BIDE_BRING_(3, BIDE_CHANNEL_RESERVE_, __VA_ARGS__)
#undef bide_channel_reserve_many
#define bide_channel_reserve_many(...) BIDE_BRING_(5, BIDE_CHANNEL_RESERVE_MANY_, __VA_ARGS__)
#undef bide_spsc_channel_recv_many
#define bide_spsc_channel_recv_many(...) BIDE_BRING_(5, BIDE_SPSC_CHANNEL_RECV_MANY_, __VA_ARGS__)
#undef bide_unbounded_channel_recv_many
#define bide_unbounded_channel_recv_many(...) \
    BIDE_BRING_(6, BIDE_UNBOUNDED_CHANNEL_RECV_MANY_, __VA_ARGS__)
#undef bide_spsc_channel_send
#define bide_spsc_channel_send(...) BIDE_BRING_(3, BIDE_SPSC_CHANNEL_SEND_, __VA_ARGS__)
#undef bide_spsc_channel_recv
#define bide_spsc_channel_recv(...) BIDE_BRING_(3, BIDE_SPSC_CHANNEL_RECV_, __VA_ARGS__)
#undef bide_unbounded_channel_recv
#define bide_unbounded_channel_recv(...) BIDE_BRING_(4, BIDE_UNBOUNDED_CHANNEL_RECV_, __VA_ARGS__)
#undef bide_rendezvous_send
#define bide_rendezvous_send(...) BIDE_BRING_(3, BIDE_RENDEZVOUS_SEND_, __VA_ARGS__)
#undef bide_rendezvous_recv
#define bide_rendezvous_recv(...) BIDE_BRING_(3, BIDE_RENDEZVOUS_RECV_, __VA_ARGS__)
#undef bide_broadcast_recv
#define bide_broadcast_recv(...) BIDE_BRING_(3, BIDE_BROADCAST_RECV_, __VA_ARGS__)
#undef bide_oneshot_recv
#define bide_oneshot_recv(...) BIDE_BRING_(3, BIDE_ONESHOT_RECV_, __VA_ARGS__)
#undef bide_watch_recv
#define bide_watch_recv(...) BIDE_BRING_(3, BIDE_WATCH_RECV_, __VA_ARGS__)
#undef bide_watch_wait_for
#define bide_watch_wait_for(...) BIDE_BRING_(5, BIDE_WATCH_WAIT_FOR_, __VA_ARGS__)
#undef bide_latch_arrive_and_wait
#define bide_latch_arrive_and_wait(...) BIDE_BRING_(2, BIDE_LATCH_ARRIVE_AND_WAIT_, __VA_ARGS__)
#undef bide_with_value
#define bide_with_value(...) BIDE_BRING_(4, BIDE_WITH_VALUE_, __VA_ARGS__)
#undef bide_condition_wait
#define bide_condition_wait(...) BIDE_BRING_(3, BIDE_CONDITION_WAIT_, __VA_ARGS__)
#undef bide_sequence_group_leave
#define bide_sequence_group_leave(...) BIDE_BRING_(3, BIDE_SEQUENCE_GROUP_LEAVE_, __VA_ARGS__)

/* Macros in debug builds alone. */
#if BIDE_DEBUG
#undef bide_sleep_for
#define bide_sleep_for(...) BIDE_BRING_(2, BIDE_SLEEP_FOR_, __VA_ARGS__)
#undef bide_with_timeout
#define bide_with_timeout(...) BIDE_BRING_(3, BIDE_WITH_TIMEOUT_, __VA_ARGS__)
#undef bide_then
#define bide_then(...) BIDE_BRING_(4, BIDE_THEN_, __VA_ARGS__)
#undef bide_blocking_run
#define bide_blocking_run(...) BIDE_BRING_(4, BIDE_BLOCKING_RUN_, __VA_ARGS__)
#undef bide_blocking_run_interruptible
#define bide_blocking_run_interruptible(...) \
    BIDE_BRING_(4, BIDE_BLOCKING_RUN_INTERRUPTIBLE_, __VA_ARGS__)
#endif

#endif
