/*
 * 64-bit numbers through a channel from one coroutine to another: nanoseconds each. On one thread,
 * and on two.
 *
 *   bide             bide_channel, for any number of senders and receivers, with several capacities
 *   bide-spsc        bide_spsc_channel, for one sender and one receiver
 *   bide-rendezvous  without a buffer
 *   bide-pool        bide_channel or, with capacity 0, bide_rendezvous, on a thread pool; the others
 *                    are on a run loop, or with each party on a run loop of its own
 *
 * (peers/channel.sh adds those of Go, buffered and unbuffered, and of tokio.) The sums are checked.
 */
#include "bench.h"
#include "pools.h"

#include "bide/channel.h"
#include "bide/coroutine.h"
#include "bide/rendezvous.h"
#include "bide/spsc_channel.h"
#include "bide/task.h"

#include <stdlib.h>

enum { ROUNDS = 11, MOST = 1024 };

struct setting {
    uint64_t items;
    size_t capacity;
    unsigned threads;
    bool is_pool;
};

/* NOLINTBEGIN(bugprone-macro-parentheses): types take none */

/* A sender and a receiver over one kind of channel, and a benchmark of them. */
#define KIND(name, channel_type, send_type, receive_type, send, receive, close, make)      \
    struct name##_party {                                                                  \
        bide_task task;                                                                    \
        channel_type *channel;                                                             \
        union {                                                                            \
            send_type send;                                                                \
            receive_type receive;                                                          \
        } wait;                                                                            \
        uint64_t number, items, sum;                                                       \
        int status;                                                                        \
    };                                                                                     \
                                                                                           \
    bide_coroutine(name##_sender_body)                                                     \
    {                                                                                      \
        bide_begin(name##_sender_body, struct name##_party *self);                         \
        for (self->number = 0; self->number < self->items; self->number++)                 \
            bide_try(send(&self->wait.send, self->channel, &self->number));                \
        close(self->channel);                                                              \
        bide_end();                                                                        \
    }                                                                                      \
                                                                                           \
    bide_coroutine(name##_receiver_body)                                                   \
    {                                                                                      \
        bide_begin(name##_receiver_body, struct name##_party *self);                       \
        for (;;) {                                                                         \
            bide_await_status(self->status,                                                \
                              receive(&self->wait.receive, self->channel, &self->number)); \
            if (self->status != 0)                                                         \
                break;                                                                     \
            self->sum += self->number;                                                     \
        }                                                                                  \
        bide_end();                                                                        \
    }                                                                                      \
                                                                                           \
    static uint64_t name##_run(const void *argument)                                       \
    {                                                                                      \
        const struct setting *setting = argument;                                          \
        static channel_type channel;                                                       \
        make;                                                                              \
        struct name##_party sender = {.channel = &channel, .items = setting->items};       \
        struct name##_party receiver = {.channel = &channel};                              \
        bench_party parties[] = {                                                          \
            {.awaiter = bide_task_init(&sender.task, &name##_sender_body), .loop = 0},     \
            {.awaiter = bide_task_init(&receiver.task, &name##_receiver_body),             \
             .loop = setting->threads - 1},                                                \
        };                                                                                 \
        if (setting->is_pool)                                                              \
            bench_pool_run(parties, 2, setting->threads);                                  \
        else                                                                               \
            bench_loops_run(parties, 2, BENCH_LOOKS);                                      \
        if (receiver.sum != setting->items * (setting->items - 1) / 2)                     \
            bench_fail("channel", "the receiver's sum is wrong");                          \
        return setting->items;                                                             \
    }

/* NOLINTEND(bugprone-macro-parentheses) */

typedef bide_channel_slot(uint64_t) number_slot;
typedef bide_channel(uint64_t) number_channel;
typedef bide_spsc_channel(uint64_t) number_spsc_channel;
typedef bide_rendezvous(uint64_t) number_rendezvous;

static number_slot slots[MOST];
static uint64_t numbers[MOST];

KIND(many, number_channel, bide_channel_waiter, bide_channel_waiter, bide_channel_send,
     bide_channel_recv, bide_channel_close,
     bide_channel_init(&channel, slots, setting->capacity))
KIND(one, number_spsc_channel, bide_spsc_channel_waiter, bide_spsc_channel_waiter,
     bide_spsc_channel_send, bide_spsc_channel_recv, bide_spsc_channel_close,
     bide_spsc_channel_init(&channel, numbers, setting->capacity))
KIND(none, number_rendezvous, bide_rendezvous_sender, bide_rendezvous_receiver,
     bide_rendezvous_send, bide_rendezvous_recv, bide_rendezvous_close,
     bide_rendezvous_init(&channel))

#define SUBJECT_ON(name, run, threads, capacity, items, is_pool)                         \
    {                                                                                    \
        name, run, &(const struct setting){(items)*1000ULL, capacity, threads, is_pool}, \
            "{\"threads\": " #threads ", \"capacity\": " #capacity "}"                   \
    }
#define SUBJECT(name, run, threads, capacity, items) \
    SUBJECT_ON(name, run, threads, capacity, items, false)
#define SUBJECTS_OF_POOL(threads)                                    \
    SUBJECT_ON("bide-pool", none_run, threads, 0, 300, true),        \
        SUBJECT_ON("bide-pool", many_run, threads, 1, 300, true),    \
        SUBJECT_ON("bide-pool", many_run, threads, 16, 1000, true),  \
        SUBJECT_ON("bide-pool", many_run, threads, 128, 1000, true), \
        SUBJECT_ON("bide-pool", many_run, threads, 1024, 1000, true)
#define SUBJECTS(threads, few, many)                                                              \
    SUBJECT("bide-rendezvous", none_run, threads, 0, few),                                        \
        SUBJECT("bide", many_run, threads, 1, few), SUBJECT("bide", many_run, threads, 16, many), \
        SUBJECT("bide", many_run, threads, 128, many),                                            \
        SUBJECT("bide", many_run, threads, 1024, many),                                           \
        SUBJECT("bide-spsc", one_run, threads, 1, few),                                           \
        SUBJECT("bide-spsc", one_run, threads, 16, many),                                         \
        SUBJECT("bide-spsc", one_run, threads, 128, many),                                        \
        SUBJECT("bide-spsc", one_run, threads, 1024, many)

static const bench_subject subjects[] = {SUBJECTS_OF_POOL(1), SUBJECTS_OF_POOL(2),
                                         SUBJECTS(1, 300, 2000), SUBJECTS(2, 50, 1000)};

int main(void)
{
    bench_run("channel", BENCH_NANOSECONDS_EACH, subjects, sizeof subjects / sizeof subjects[0],
              ROUNDS);
    return 0;
}
