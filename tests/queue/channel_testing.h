/*
 * For the tests of channels: coroutines that send or receive once, each with its own stop source; and threads that
 * send and receive until short deadlines, so that many waits are cancelled while another thread is about to end them.
 * The test defines the channel: TEST_CHANNEL and TEST_WAITER; TEST_RECEIVE(waiter, channel, to, seat) and the same
 * with a deadline and without a waiter, TEST_RECEIVE_BLOCKING; TEST_SEND and TEST_SEND_BLOCKING. If no send waits
 * there is no TEST_SEND.
 */
#ifndef BIDE_TESTS_CHANNEL_TESTING_H
#define BIDE_TESTS_CHANNEL_TESTING_H

#include "sync/by_hand.h"
#include "sync/meeting.h"

#include "bide/handle.h"
#include "bide/hazard.h"
#include "bide/stop.h"

typedef struct user {
    bide_task task;
    by_hand *by_hand;
    TEST_CHANNEL *channel;
    TEST_WAITER wait;
    bide_context context;
    bide_stop_source stop;
    bide_hazard_seat *seat;
    uint64_t value;
    char name;
    int status;
} user;

#ifdef TEST_SEND
bide_coroutine(send_body)
{
    bide_begin(send_body, user * self);
    bide_await_status(self->status,
                      TEST_SEND(&self->wait, self->channel, &self->value, self->seat));
    by_hand_note(self->by_hand, self->name);
    bide_end();
}
#endif

bide_coroutine(receive_body)
{
    bide_begin(receive_body, user * self);
    bide_await_status(self->status,
                      TEST_RECEIVE(&self->wait, self->channel, &self->value, self->seat));
    by_hand_note(self->by_hand, self->name);
    bide_end();
}

static void begin_user(user *self, by_hand *by_hand, TEST_CHANNEL *channel, bide_hazard_seat *seat,
                       char name, const bide_point *body)
{
    self->by_hand = by_hand;
    self->channel = channel;
    self->seat = seat;
    self->name = name;
    self->status = 1;
    bide_stop_source_init(&self->stop);
    self->context = by_hand->context;
    self->context.stop = &self->stop;
    bide_start(&self->task.frame, body, &self->context);
    bide_resume(&self->task.frame);
}

static void begin_receive(user *self, by_hand *by_hand, TEST_CHANNEL *channel,
                          bide_hazard_seat *seat, char name)
{
    self->value = 0;
    begin_user(self, by_hand, channel, seat, name, &receive_body);
}

#ifdef TEST_SEND
static void begin_send(user *self, by_hand *by_hand, TEST_CHANNEL *channel, bide_hazard_seat *seat,
                       char name, uint64_t value)
{
    self->value = value;
    begin_user(self, by_hand, channel, seat, name, &send_body);
}
#endif

#if TESTING_HOSTED

enum { MAX_STRESS_THREADS = 3, STRESS_EACH = 20000 };

typedef struct stress {
    TEST_CHANNEL *channel;
    bide_hazard_domain *domain; /* or NULL */
    uint32_t each;
    uint64_t seed;
    bide_atomic(uint32_t) * times; /* how often each element was received */
    bide_atomic(uint32_t) wrong;
    bide_atomic(uint32_t) cut; /* the number of cancelled waits */
} stress;

typedef struct stress_thread {
    stress *stress;
    pthread_t id;
    uint32_t index;
} stress_thread;

/* The deadline of the next wait: mostly near, sometimes none. */
static uint64_t stress_deadline(uint64_t *random)
{
    uint64_t number = testing_random(random);
    if (number % 8 == 0)
        return BIDE_FOREVER;
    return number % 8 == 1 ? 0 : bide_platform.now() + (number >> 8) % 20000;
}

static bide_hazard_seat *stress_join(stress *stress)
{
    return stress->domain != NULL ? bide_hazard_join(stress->domain) : NULL;
}

static void stress_leave(stress *stress, bide_hazard_seat *seat)
{
    if (seat != NULL)
        bide_hazard_leave(stress->domain, seat);
}

static void *stress_send(void *argument)
{
    stress_thread *thread = argument;
    stress *stress = thread->stress;
    bide_hazard_seat *seat = stress_join(stress);
    uint64_t random = stress->seed + thread->index;
    for (uint64_t i = 0; i < stress->each;) {
        uint64_t value = thread->index * (uint64_t)stress->each + i;
        int status = TEST_SEND_BLOCKING(stress->channel, &value, seat, stress_deadline(&random));
        i += status == 0;
        bide_atomic_fetch_add(&stress->cut, status == -ETIMEDOUT, relaxed);
        bide_atomic_fetch_add(&stress->wrong, status != 0 && status != -ETIMEDOUT, relaxed);
        if (testing_random(&random) % 1024 == 0)
            bide_platform.yield();
    }
    stress_leave(stress, seat);
    return NULL;
}

static void *stress_receive(void *argument)
{
    stress_thread *thread = argument;
    stress *stress = thread->stress;
    bide_hazard_seat *seat = stress_join(stress);
    uint64_t random = stress->seed + 100 + thread->index;
    uint64_t next[MAX_STRESS_THREADS] = {0}; /* the lowest number that each may send next */
    for (int status = 0; status != -EPIPE;) {
        uint64_t value = UINT64_MAX;
        status = TEST_RECEIVE_BLOCKING(stress->channel, &value, seat, stress_deadline(&random));
        if (status == 0 && value / stress->each < MAX_STRESS_THREADS) {
            uint64_t *min = &next[value / stress->each];
            bide_atomic_fetch_add(&stress->wrong, value % stress->each < *min, relaxed);
            *min = value % stress->each + 1;
            bide_atomic_fetch_add(&stress->times[value], 1, relaxed);
        } else {
            bide_atomic_fetch_add(&stress->cut, status == -ETIMEDOUT, relaxed);
            bide_atomic_fetch_add(&stress->wrong, status != -EPIPE && status != -ETIMEDOUT,
                                  relaxed);
        }
        if (testing_random(&random) % 1024 == 0)
            bide_platform.yield();
    }
    stress_leave(stress, seat);
    return NULL;
}

/* Each element is received once, in its sender's order; `close` ends the receivers. */
static void stress_run(TEST_CHANNEL *channel, bide_hazard_domain *domain, uint32_t senders,
                       uint32_t receivers, void (*close)(stress *stress))
{
    stress stress = {.channel = channel,
                     .domain = domain,
                     .each = rounds_of(STRESS_EACH),
                     .seed = testing_seed()};
    stress_thread send[MAX_STRESS_THREADS], receive[MAX_STRESS_THREADS];
    size_t count = (size_t)senders * stress.each;
    stress.times = malloc(count * sizeof *stress.times);
    assert_non_null(stress.times);
    for (size_t i = 0; i < count; i++)
        bide_atomic_init(&stress.times[i], 0);
    bide_atomic_init(&stress.wrong, 0);
    bide_atomic_init(&stress.cut, 0);
    for (uint32_t i = 0; i < receivers; i++) {
        receive[i] = (stress_thread){.stress = &stress, .index = i};
        start_thread(&receive[i].id, stress_receive, &receive[i]);
    }
    for (uint32_t i = 0; i < senders; i++) {
        send[i] = (stress_thread){.stress = &stress, .index = i};
        start_thread(&send[i].id, stress_send, &send[i]);
    }
    for (uint32_t i = 0; i < senders; i++)
        join_thread(send[i].id);
    close(&stress);
    for (uint32_t i = 0; i < receivers; i++)
        join_thread(receive[i].id);
    uint32_t wrong = bide_atomic_load(&stress.wrong, relaxed);
    for (size_t i = 0; i < count; i++)
        wrong += bide_atomic_load(&stress.times[i], relaxed) != 1;
    free(stress.times);
    printf("# of %zu elements all came; %u waits were cut short\n", count,
           bide_atomic_load(&stress.cut, relaxed));
    assert_int_equal(wrong, 0);
}

#endif

#endif
