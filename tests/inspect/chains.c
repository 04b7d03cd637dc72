/*
 * Six tasks for gdb_test.sh: one waits behind two others, three wait for different operations, one has not started, and
 * the last runs and calls breakpoint().
 */
#include "bide/channel.h"
#include "bide/counted_queue.h"
#include "bide/create.h"
#include "bide/event.h"
#include "bide/linked_queue.h"
#include "bide/mpmc_ring.h"
#include "bide/mutex.h"
#include "bide/run_loop.h"
#include "bide/segment_queue.h"
#include "bide/semaphore.h"
#include "bide/spawn.h"
#include "bide/spsc_ring.h"
#include "bide/sync_wait.h"
#include "bide/task.h"

#include <stdlib.h>

__attribute__((noinline)) void breakpoint(void)
{
    __asm__ volatile("" ::: "memory");
}

struct leaf {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
};

bide_coroutine(leaf_body)
{
    bide_begin(leaf_body, struct leaf * self);
    bide_await(bide_event_wait(&self->wait, self->event)); /* line: leaf */
    bide_end();
}

struct branch {
    bide_task task;
    bide_event *event;
    struct leaf *leaf;
};

bide_coroutine(branch_body)
{
    bide_begin(branch_body, struct branch * self);
    self->leaf = bide_create(sizeof *self->leaf, &leaf_body, &bide_heap);
    self->leaf->event = self->event;
    bide_await(bide_owned(self->leaf, &leaf_body)); /* line: branch */
    bide_end();
}

struct trunk {
    bide_task task;
    struct branch branch;
};

bide_coroutine(trunk_body)
{
    bide_begin(trunk_body, struct trunk * self);
    bide_await(bide_task_init(&self->branch.task, &branch_body)); /* line: trunk */
    bide_end();
}

struct running {
    bide_task task;
    int result;
};

bide_coroutine(running_body)
{
    bide_begin(running_body, struct running * self);
    self->result = 1;
    breakpoint(); /* line: running */
    self->result = 2;
    bide_end();
}

struct runner {
    bide_task task;
    struct running running;
};

bide_coroutine(runner_body)
{
    bide_begin(runner_body, struct runner * self);
    bide_await(bide_task_init(&self->running.task, &running_body)); /* line: runner */
    bide_end();
}

/* Printed by gdb. (Not static, so that the optimiser keeps them.) */
struct trunk trunk;
bide_event event, finished;
bide_run_loop loop;
bide_mutex mutex, idle_mutex;
bide_semaphore semaphore;
typedef bide_channel(int) int_channel;
int_channel channel, half_full;
typedef bide_spsc_ring(int) int_spsc_ring;
typedef bide_mpmc_ring(int) int_mpmc_ring;
typedef bide_segment_queue(int) int_segment_queue;
typedef bide_counted_queue(int) int_counted_queue;
typedef bide_linked_queue(int) int_linked_queue;
int_spsc_ring spsc;
int_mpmc_ring mpmc;
int_segment_queue segments, no_segments;
int_counted_queue counted;
int_linked_queue linked;

struct locker {
    bide_task task;
    bide_mutex_waiter wait;
};

bide_coroutine(locker_body)
{
    bide_begin(locker_body, struct locker * self);
    bide_try(bide_mutex_lock(&self->wait, &mutex)); /* line: locker */
    bide_mutex_unlock(&self->wait);
    bide_end();
}

struct taker {
    bide_task task;
    bide_semaphore_waiter wait;
};

bide_coroutine(taker_body)
{
    bide_begin(taker_body, struct taker * self);
    bide_try(bide_semaphore_acquire_many(&self->wait, &semaphore, 2)); /* line: taker */
    bide_end();
}

struct receiver {
    bide_task task;
    bide_channel_waiter wait;
    int value;
};

bide_coroutine(receiver_body)
{
    bide_begin(receiver_body, struct receiver * self);
    bide_try(bide_channel_recv(&self->wait, &channel, &self->value)); /* line: receiver */
    bide_end();
}

/* Six elements go through each queue, of which five stay; some are closed. */
static bool fill_queues(void)
{
    static bide_hazard_domain domain;
    static bide_hazard_seat seats[1];
    static bide_node_pool pool;
    static bide_node_cache cache;
    static int spsc_slots[8], taken;
    static bide_mpmc_ring_slot(int) mpmc_slots[6];
    bide_hazard_init(&domain, seats, 1);
    bide_hazard_seat *seat = bide_hazard_join(&domain);
    bide_spsc_ring_init(&spsc, spsc_slots, 8);
    bide_mpmc_ring_init(&mpmc, mpmc_slots, 6);
    if (bide_segment_queue_init(&segments, &domain, &bide_heap, 4) != 0 ||
        bide_segment_queue_init(&no_segments, &domain, &bide_heap, 4) != 0 ||
        bide_node_pool_init(&pool, &bide_heap, bide_counted_queue_node_size(int), 64, 1000) != 0)
        return false;
    bide_node_cache_init(&cache, &pool);
    if (bide_counted_queue_init(&counted, &cache) != 0 ||
        bide_linked_queue_init(&linked, &cache) != 0)
        return false;
    for (int i = 11; i <= 16; i++)
        if (bide_spsc_ring_push(&spsc, &i) != 0 || bide_mpmc_ring_push(&mpmc, &i) != 0 ||
            bide_segment_queue_push(&segments, seat, &i) != 0 ||
            bide_counted_queue_push(&counted, &cache, &i) != 0 ||
            bide_linked_queue_push(&linked, &cache, &i) != 0)
            return false;
    if (bide_spsc_ring_pop(&spsc, &taken) != 0 || bide_mpmc_ring_pop(&mpmc, &taken) != 0 ||
        bide_segment_queue_pop(&segments, seat, &taken) != 0 ||
        bide_counted_queue_pop(&counted, &cache, &taken) != 0 ||
        bide_linked_queue_pop(&linked, &cache, &taken) != 0)
        return false;
    bide_spsc_ring_close(&spsc);
    bide_segment_queue_close(&segments, seat);
    bide_counted_queue_close(&counted, &cache);
    return true;
}

int main(void)
{
    static bide_spawned waiting, not_started, locking, taking, receiving;
    static struct runner runner;
    static struct leaf unstarted;
    static struct locker locker;
    static struct taker taker;
    static struct receiver receiver;
    static bide_channel_slot(int) slots[4], other_slots[2];
    bide_mutex_waiter key;
    int value = 7;
    const bide_context context = {.scheduler = &bide_inline_scheduler, .name = "the garden"};
    bide_event_init(&event, false);
    bide_event_init(&finished, true);
    bide_mutex_init(&mutex);
    bide_mutex_init(&idle_mutex);
    bide_semaphore_init(&semaphore, 1);
    bide_channel_init(&channel, slots, 4);
    bide_channel_init(&half_full, other_slots, 2);
    if (!bide_mutex_try_lock(&key, &mutex) || bide_channel_try_send(&half_full, &value) != 0 ||
        !fill_queues())
        return EXIT_FAILURE;
    bide_channel_close(&half_full);
    bide_run_loop_init(&loop);
    trunk.branch.event = &event;
    unstarted.event = &event;
    bide_spawn(&waiting, &context, bide_task_init(&trunk.task, &trunk_body));
    bide_spawn(&not_started, &loop.context, bide_task_init(&unstarted.task, &leaf_body));
    bide_spawn(&locking, &context, bide_task_init(&locker.task, &locker_body));
    bide_spawn(&taking, &context, bide_task_init(&taker.task, &taker_body));
    bide_spawn(&receiving, &context, bide_task_init(&receiver.task, &receiver_body));
    int status = bide_sync_wait(bide_task_init(&runner.task, &runner_body));
    bide_event_set(&event);
    bide_mutex_unlock(&key);
    bide_semaphore_release(&semaphore, 1);
    bide_channel_close(&channel);
    bide_run_loop_run_ready(&loop);
    return status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
