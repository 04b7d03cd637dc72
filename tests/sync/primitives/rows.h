/* The rows, by family. */
#ifndef BIDE_TESTS_PRIMITIVES_ROWS_H
#define BIDE_TESTS_PRIMITIVES_ROWS_H

#include "sync/primitives.h"

extern const primitive primitive_event, primitive_single_consumer_event,
    primitive_single_consumer_auto_reset_event;
extern const primitive primitive_mutex, primitive_semaphore, primitive_semaphore_of_two;
extern const primitive primitive_sequence_barrier8, primitive_sequence_barrier,
    primitive_sequence_group, primitive_claim, primitive_multi_claim, primitive_multi_reader;
extern const primitive primitive_shared_task;
extern const primitive primitive_rw_lock_write, primitive_rw_lock_read, primitive_rw_lock_upgradable,
    primitive_barging_mutex,
    primitive_once, primitive_once_in_vain, primitive_condition;
extern const primitive primitive_auto_event, primitive_notify_one, primitive_notify_all,
    primitive_latch, primitive_wait_group, primitive_cyclic_barrier;
extern const primitive primitive_oneshot, primitive_watch, primitive_watch_shared,
    primitive_watch_predicate, primitive_broadcast, primitive_broadcast_shared;
extern const primitive primitive_event_count, primitive_channel_receive, primitive_channel_send,
    primitive_channel_receive_many, primitive_channel_reserve, primitive_channel_reserve_many;

#endif
