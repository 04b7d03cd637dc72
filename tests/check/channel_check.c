/*
 * The bounded channel: each element is received once, and no thread waits for an element or for
 * available room. A push in progress may hide others, waiters may be cancelled, and the channel
 * may be closed.
 */
#include "bide/channel.h"
#include "bide/check.h"
#include "bide/coroutine.h"
#include "bide/handle.h"
#include "bide/stop.h"
#include "bide/task.h"

enum { MOST = 3, VALUES = 8, WAITS = 1 /* the status of a wait that has not ended */ };

typedef bide_channel_slot(uint32_t) slot;
typedef bide_channel(uint32_t) channel;

struct state;

/* A coroutine that has been waiting since the setup: it sends `value`, or receives it. */
struct early {
    bide_task task;
    bide_context context;
    bide_stop_source stop;
    struct state *state;
    bide_channel_waiter waiter;
    uint32_t value;
    int status;
    bool sends;
};

typedef struct state {
    channel channel;
    slot memory[MOST];
    bide_channel_waiter waiters[MOST];
    uint32_t sent[VALUES];     /* by value, plain: written by its sender */
    uint32_t received[VALUES]; /* the same: written by its receiver */
    int statuses[MOST];        /* of threads: the status of their last operation */
    uint32_t earlies;
    struct early early[MOST];
} state;

/* ---- The operations of the threads, and their counts ---- */

static void note_received(state *s, int status, uint32_t value)
{
    if (status != 0)
        return;
    bide_check_assert(value > 0 && value < VALUES);
    s->received[value]++;
}

static int send_now(state *s, uint32_t value)
{
    int status = bide_channel_try_send(&s->channel, &value);
    s->sent[value] += status == 0;
    return status;
}

static int receive_now(state *s)
{
    uint32_t value = 0;
    int status = bide_channel_try_recv(&s->channel, &value);
    note_received(s, status, value);
    return status;
}

static int send(state *s, uint32_t value)
{
    unsigned i = bide_check_thread() - 1;
    s->statuses[i] = bide_check_await(bide_channel_send(&s->waiters[i], &s->channel, &value));
    s->sent[value] += s->statuses[i] == 0;
    return s->statuses[i];
}

static int receive(state *s)
{
    unsigned i = bide_check_thread() - 1;
    uint32_t value = 0;
    s->statuses[i] = bide_check_await(bide_channel_recv(&s->waiters[i], &s->channel, &value));
    note_received(s, s->statuses[i], value);
    return s->statuses[i];
}

/* Each element was received or is in the channel, once. Receives the rest. */
static void nothing_is_lost(state *s)
{
    while (receive_now(s) == 0)
        ;
    for (uint32_t value = 0; value < VALUES; value++) {
        bide_check_assert(s->sent[value] <= 1);
        bide_check_assert(s->received[value] == s->sent[value]);
    }
    bide_check_assert(bide_channel_is_idle_(&s->channel.channel));
}

/* ---- With waiters ---- */

bide_coroutine(early_body)
{
    bide_begin(early_body, struct early * self);
    if (self->sends) {
        bide_await_status(self->status,
                          bide_channel_send(&self->waiter, &self->state->channel, &self->value));
        self->state->sent[self->value] += self->status == 0;
    } else {
        bide_await_status(self->status,
                          bide_channel_recv(&self->waiter, &self->state->channel, &self->value));
        note_received(self->state, self->status, self->value);
    }
    bide_end();
}

static void begin_early(state *s, bool sends, uint32_t value)
{
    struct early *early = &s->early[s->earlies++];
    early->state = s;
    early->sends = sends;
    early->value = value;
    early->status = WAITS;
    bide_stop_source_init(&early->stop);
    early->context = (bide_context){&bide_inline_scheduler, &early->stop, NULL, NULL};
    bide_start(&early->task.frame, &early_body, &early->context);
    bide_resume(&early->task.frame);
    bide_check_assert(early->status == WAITS);
}

static void make(state *s, size_t capacity)
{
    bide_channel_init(&s->channel, s->memory, capacity);
}

static void setup_one(void *p)
{
    make(p, 1);
}

static void setup_two(void *p)
{
    make(p, 2);
}

static void setup_receiver(void *p)
{
    make(p, 2);
    begin_early(p, false, 0);
}

static void setup_receivers(void *p)
{
    setup_receiver(p);
    begin_early(p, false, 0);
}

/* The channel is full, and one or two waiters want to send. */
static void setup_sender(void *p)
{
    make(p, 1);
    bide_check_assert(send_now(p, 1) == 0);
    begin_early(p, true, 2);
}

static void setup_full_and_sender(void *p)
{
    make(p, 2);
    bide_check_assert(send_now(p, 1) == 0 && send_now(p, 2) == 0);
    begin_early(p, true, 3);
}

static void setup_senders(void *p)
{
    setup_full_and_sender(p);
    begin_early(p, true, 4);
}

/* ---- Threads ---- */

static void send_1(void *p)
{
    (void)send(p, 1);
}

static void send_1_and_2(void *p)
{
    (void)send(p, 1);
    (void)send(p, 2);
}

static void send_5_now(void *p)
{
    ((state *)p)->statuses[bide_check_thread() - 1] = send_now(p, 5);
}

static void send_6_now(void *p)
{
    ((state *)p)->statuses[bide_check_thread() - 1] = send_now(p, 6);
}

static void send_5_and_6_now(void *p)
{
    bide_check_assert(send_now(p, 5) == 0 && send_now(p, 6) == 0);
}

static void receive_one(void *p)
{
    (void)receive(p);
}

static void receive_two(void *p)
{
    (void)receive(p);
    (void)receive(p);
}

static void receive_one_now(void *p)
{
    ((state *)p)->statuses[bide_check_thread() - 1] = receive_now(p);
}

static void close_it(void *p)
{
    bide_channel_close(&((state *)p)->channel);
}

static void send_5_and_close(void *p)
{
    send_5_now(p);
    close_it(p);
}

static void receive_until_closed(void *p)
{
    while (receive(p) == 0)
        ;
}

static void stop_first(void *p)
{
    bide_stop_request(&((state *)p)->early[0].stop);
}

/* ---- Afterwards ---- */

static void finish_empty(void *p)
{
    state *s = p;
    bide_check_assert(bide_channel_count(&s->channel) == 0);
    nothing_is_lost(s);
}

/* The waiter has ended with 0. */
static void finish_served(void *p)
{
    state *s = p;
    for (uint32_t i = 0; i < s->earlies; i++)
        bide_check_assert(s->early[i].status == 0);
    nothing_is_lost(s);
}

/*
 * Two threads pass an element on, and one of them may have been faster than the waiter, which then
 * still waits.
 */
static void finish_snatched(void *p)
{
    state *s = p;
    bool snatched = s->statuses[1] == 0;
    bide_check_assert(s->statuses[0] == 0);
    bide_check_assert(s->early[0].status == (snatched ? WAITS : 0));
    if (snatched)
        bide_check_assert(send_now(s, 7) == 0);
    finish_served(p);
}

#define SCENARIO(id, text, ...)             \
    static const bide_check_scenario id = { \
        .name = text, .size = sizeof(state), .cxx20_release_sequences = true, __VA_ARGS__}

SCENARIO(meet, "a_sender_and_a_receiver", .setup = setup_two, .threads = {send_1, receive_one},
         .finish = finish_empty);
SCENARIO(full, "both_senders_wait_where_there_is_room_for_one_element", .setup = setup_one,
         .threads = {send_1_and_2, receive_two}, .finish = finish_empty, .preemptions = 2);
SCENARIO(two_send, "two_send_to_two_waiting_receivers", .setup = setup_receivers,
         .threads = {send_5_now, send_6_now}, .finish = finish_served, .preemptions = 2);
SCENARIO(two_receive, "two_receive_from_two_waiting_senders", .setup = setup_senders,
         .threads = {receive_one_now, receive_one_now}, .finish = finish_served, .preemptions = 2);
SCENARIO(snatch, "a_receiver_takes_while_another_waits", .setup = setup_receiver,
         .threads = {send_5_now, receive_one_now}, .finish = finish_snatched);
SCENARIO(joins, "a_receiver_comes_behind_another_while_two_are_sent", .setup = setup_receiver,
         .threads = {send_5_and_6_now, receive_one}, .finish = finish_served, .preemptions = 3);

/* Two elements are sent, and one or none is received at once: the waiter has the other. */
SCENARIO(hidden, "a_push_under_way_hides_another", .setup = setup_receiver,
         .threads = {send_5_now, send_6_now, receive_one_now}, .finish = finish_served,
         .preemptions = 2);

SCENARIO(hidden_room, "a_pop_under_way_hides_another", .setup = setup_full_and_sender,
         .threads = {receive_one_now, receive_one_now, send_5_now}, .finish = finish_served,
         .preemptions = 2);

/* ---- Capacity 1 ---- */

static void finish_exchanged(void *p)
{
    state *s = p;
    bide_check_assert(s->statuses[0] == 0);
    if (s->statuses[1] == 0) { /* the other thread was faster: the channel is full again */
        bide_check_assert(s->early[0].status == WAITS);
        bide_check_assert(receive_now(s) == 0);
    }
    finish_served(p);
}

SCENARIO(exchange, "a_second_sender_comes_where_there_is_room_for_one_element",
         .setup = setup_sender, .threads = {receive_one_now, send_5_now},
         .finish = finish_exchanged);

/* ---- Closed ---- */

/* One of them has the element that was sent; the others end with -EPIPE. */
static void finish_closed(void *p)
{
    state *s = p;
    bool sent = s->statuses[0] == 0;
    int with_it = 0;
    bide_check_assert(sent || s->statuses[0] == -EPIPE);
    for (uint32_t i = 0; i < s->earlies; i++) {
        bide_check_assert(s->early[i].status == 0 || s->early[i].status == -EPIPE);
        with_it += s->early[i].status == 0;
    }
    bide_check_assert(with_it == sent);
    bide_check_assert(receive_now(s) == -EPIPE && send_now(s, 7) == -EPIPE);
    nothing_is_lost(s);
}

SCENARIO(closed, "it_is_closed_while_a_sender_sends_and_two_receivers_wait",
         .setup = setup_receivers, .threads = {send_5_now, close_it}, .finish = finish_closed,
         .preemptions = 2);

static void finish_drained(void *p)
{
    state *s = p;
    bide_check_assert(s->statuses[1] == -EPIPE);
    nothing_is_lost(s);
}

SCENARIO(closed_early, "it_is_closed_as_a_receiver_comes", .setup = setup_two,
         .threads = {close_it, receive_one}, .finish = finish_drained);
SCENARIO(closed_behind, "it_is_closed_behind_an_element", .setup = setup_two,
         .threads = {send_5_and_close, receive_until_closed}, .finish = finish_drained,
         .preemptions = 2);

/* The waiter gets the room, or ends because the channel is closed. */
static void finish_closed_to_sender(void *p)
{
    state *s = p;
    bide_check_assert(s->statuses[0] == 0);
    bide_check_assert(s->early[0].status == 0 || s->early[0].status == -EPIPE);
    nothing_is_lost(s);
}

SCENARIO(closed_full, "it_is_closed_while_a_receiver_takes_and_a_sender_waits",
         .setup = setup_sender, .threads = {receive_one_now, close_it},
         .finish = finish_closed_to_sender);

/* ---- Cancellation ---- */

/* The first or the second has the element. */
static void finish_stopped(void *p)
{
    state *s = p;
    bide_check_assert(s->early[0].status == 0 || s->early[0].status == -ECANCELED);
    bide_check_assert(s->early[1].status == (s->early[0].status == 0 ? WAITS : 0));
    if (s->early[1].status == WAITS && s->early[1].sends)
        bide_check_assert(receive_now(s) == 0);
    else if (s->early[1].status == WAITS)
        bide_check_assert(send_now(s, 7) == 0);
    bide_check_assert(s->early[1].status == 0);
    nothing_is_lost(s);
}

SCENARIO(stopped, "the_first_receiver_is_asked_to_stop_as_an_element_is_sent",
         .setup = setup_receivers, .threads = {send_5_now, stop_first}, .finish = finish_stopped);
SCENARIO(stopped_full, "the_first_sender_is_asked_to_stop_as_an_element_is_received",
         .setup = setup_senders, .threads = {receive_one_now, stop_first},
         .finish = finish_stopped);

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &meet,        &full,        &two_send,     &two_receive, &snatch,       &joins,
        &hidden,      &hidden_room, &exchange,     &closed,      &closed_early, &closed_behind,
        &closed_full, &stopped,     &stopped_full, NULL};
    static const char *const files[] = {"channel.h", "channel.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
