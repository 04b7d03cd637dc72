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
    bide_channel_permit permit;
    uint32_t value;
    int status;
    bool sends;
    bool reserves; /* and sends by the permit then */
};

typedef struct state {
    channel channel;
    slot memory[MOST];
    bide_channel_waiter waiters[MOST];
    uint32_t sent[VALUES];     /* by value, plain: written by its sender */
    uint32_t received[VALUES]; /* the same: written by its receiver */
    int statuses[MOST];        /* of threads: the status of their last operation */
    bide_channel_permit permit; /* held since the setup */
    uint32_t undelivered[VALUES];             /* by value: what was told of */
    uint32_t written[BIDE_CHECK_THREADS + 1]; /* plain: by a thread before it drops its end */
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
    if (self->reserves) {
        bide_await_status(self->status, bide_channel_reserve(&self->waiter, &self->state->channel,
                                                             &self->permit));
        if (self->status == 0) {
            bide_channel_permit_send(&self->state->channel, &self->permit, &self->value);
            self->state->sent[self->value]++;
        }
    } else if (self->sends) {
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

static void begin(state *s, bool sends, bool reserves, uint32_t value)
{
    struct early *early = &s->early[s->earlies++];
    early->state = s;
    early->sends = sends;
    early->reserves = reserves;
    early->value = value;
    early->status = WAITS;
    bide_stop_source_init(&early->stop);
    early->context = (bide_context){&bide_inline_scheduler, &early->stop, NULL, NULL, NULL};
    bide_start(&early->task.frame, &early_body, &early->context);
    bide_resume(&early->task.frame);
    bide_check_assert(early->status == WAITS);
}

static void begin_early(state *s, bool sends, uint32_t value)
{
    begin(s, sends, false, value);
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

/* One that is not there: nothing happens. */
static void stop_second(void *p)
{
    bide_stop_request(&((state *)p)->early[1].stop);
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
         .threads = {send_1_and_2, receive_two}, .finish = finish_empty);
SCENARIO(two_send, "two_send_to_two_waiting_receivers", .setup = setup_receivers,
         .threads = {send_5_now, send_6_now}, .finish = finish_served, .preemptions = 2);
SCENARIO(two_receive, "two_receive_from_two_waiting_senders", .setup = setup_senders,
         .threads = {receive_one_now, receive_one_now}, .finish = finish_served, .preemptions = 2);
SCENARIO(snatch, "a_receiver_takes_while_another_waits", .setup = setup_receiver,
         .threads = {send_5_now, receive_one_now}, .finish = finish_snatched);
SCENARIO(joins, "a_receiver_comes_behind_another_while_two_are_sent", .setup = setup_receiver,
         .threads = {send_5_and_6_now, receive_one}, .finish = finish_served);

/* Two elements are sent, and one or none is received at once: the waiter has the other. */
SCENARIO(hidden, "a_push_under_way_hides_another", .setup = setup_receiver,
         .threads = {send_5_now, send_6_now, receive_one_now}, .finish = finish_served);

SCENARIO(hidden_room, "a_pop_under_way_hides_another", .setup = setup_full_and_sender,
         .threads = {receive_one_now, receive_one_now, send_5_now}, .finish = finish_served);

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
         .threads = {send_5_and_close, receive_until_closed}, .finish = finish_drained);

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

/* ---- Permits ---- */

/* The only slot is reserved, and a sender and one that reserves wait for it. */
static void setup_held(void *p)
{
    state *s = p;
    make(s, 1);
    bide_check_assert(bide_channel_try_reserve(&s->channel, &s->permit) == 0);
}

static void setup_held_and_sender(void *p)
{
    setup_held(p);
    begin(p, true, false, 2);
}

static void setup_held_and_reserver(void *p)
{
    setup_held(p);
    begin(p, true, true, 2);
}

static void setup_held_and_two(void *p)
{
    setup_held_and_reserver(p);
    begin(p, true, false, 3);
}

static void setup_held_and_receivers(void *p)
{
    setup_held(p);
    begin(p, false, false, 0);
    begin(p, false, false, 0);
}

static void release_it(void *p)
{
    bide_channel_permit_release(&((state *)p)->permit);
}

static void use_it(void *p)
{
    state *s = p;
    uint32_t value = 1;
    bide_channel_permit_send(&s->channel, &s->permit, &value);
    s->sent[1]++;
}

static void reserve_and_use(void *p)
{
    state *s = p;
    unsigned i = bide_check_thread() - 1;
    bide_channel_permit permit;
    uint32_t value = 5;
    s->statuses[i] = bide_check_await(bide_channel_reserve(&s->waiters[i], &s->channel, &permit));
    if (s->statuses[i] != 0)
        return;
    bide_channel_permit_send(&s->channel, &permit, &value);
    s->sent[value]++;
}

static void receive_two_at_once(void *p)
{
    state *s = p;
    uint32_t values[2];
    size_t count;
    bide_channel_many_waiter waiter;
    int status = bide_check_await(bide_channel_recv_many(&waiter, &s->channel, values, 2, &count));
    bide_check_assert(status == 0 && count != 0 && count <= 2);
    for (size_t i = 0; i < count; i++)
        note_received(s, 0, values[i]);
}

/* All that waited for room have it, once what is in the channel was received. */
static void finish_room(void *p)
{
    state *s = p;
    while (receive_now(s) == 0)
        ;
    finish_served(p);
}

SCENARIO(released, "a_permit_is_released_as_another_waits_for_one", .setup = setup_held,
         .threads = {release_it, reserve_and_use, receive_one_now}, .finish = finish_room);
SCENARIO(released_to_sender, "a_permit_is_released_beside_a_sender_that_waits",
         .setup = setup_held_and_sender, .threads = {release_it, receive_one_now},
         .finish = finish_room);
SCENARIO(released_to_two, "a_permit_is_released_to_one_that_reserves_and_a_sender",
         .setup = setup_held_and_two, .threads = {release_it, receive_one_now},
         .finish = finish_room);
SCENARIO(used, "a_permit_is_used_while_a_receiver_comes", .setup = setup_held_and_sender,
         .threads = {use_it, receive_one}, .finish = finish_room);

/* The first of two that wait is cancelled: the room is the second's if it is not the first's. */
static void finish_released_and_stopped(void *p)
{
    state *s = p;
    bide_check_assert(s->early[0].status == 0 || s->early[0].status == -ECANCELED);
    while (receive_now(s) == 0)
        ;
    bide_check_assert(s->early[1].status == 0);
    nothing_is_lost(s);
}

SCENARIO(released_stopped, "the_first_is_asked_to_stop_as_a_permit_is_released",
         .setup = setup_held_and_two, .threads = {release_it, stop_first},
         .finish = finish_released_and_stopped);

/* Receivers end once the channel is closed and the permit is not held; one may have the element. */
static void finish_held_and_closed(void *p)
{
    state *s = p;
    uint32_t with_it = 0;
    for (uint32_t i = 0; i < s->earlies; i++) {
        bide_check_assert(s->early[i].status == 0 || s->early[i].status == -EPIPE);
        with_it += s->early[i].status == 0;
    }
    bide_check_assert(with_it == s->sent[1]);
    bide_check_assert(receive_now(s) == -EPIPE);
    nothing_is_lost(s);
}

SCENARIO(closed_used, "it_is_closed_as_a_permit_is_used_and_two_receivers_wait",
         .setup = setup_held_and_receivers, .threads = {use_it, close_it},
         .finish = finish_held_and_closed, .preemptions = 2);
SCENARIO(closed_released, "it_is_closed_as_a_permit_is_released_and_two_receivers_wait",
         .setup = setup_held_and_receivers, .threads = {release_it, close_it},
         .finish = finish_held_and_closed, .preemptions = 2);

/* A pop lets a sender in beside the slot that a permit holds. */
static void setup_held_full_and_sender(void *p)
{
    state *s = p;
    make(s, 2);
    bide_check_assert(bide_channel_try_reserve(&s->channel, &s->permit) == 0);
    bide_check_assert(send_now(s, 1) == 0);
    begin(s, true, false, 2);
}

static void finish_beside(void *p)
{
    state *s = p;
    bide_check_assert(receive_now(s) == 0);
    finish_room(s);
}

SCENARIO(beside, "a_sender_is_let_in_beside_a_permit", .setup = setup_held_full_and_sender,
         .threads = {receive_one_now, stop_second}, .finish = finish_beside);

/* ---- Receiving many ---- */

SCENARIO(many, "two_senders_wait_for_what_one_receives", .setup = setup_senders,
         .threads = {receive_two_at_once, send_5_now}, .finish = finish_room);

/* Only the closing ends the sender. */
static void finish_closed_full(void *p)
{
    state *s = p;
    bide_check_assert(s->early[0].status == -EPIPE);
    nothing_is_lost(s);
}

SCENARIO(closed_waits, "it_is_closed_while_it_is_full_and_a_sender_waits", .setup = setup_sender,
         .threads = {close_it, send_5_now}, .finish = finish_closed_full);

/* ---- Ends that are counted, and elements that are dropped ---- */

static void note_undelivered(void *argument, void *element)
{
    state *s = argument;
    uint32_t value = bide_plain_load((const uint32_t *)element);
    bide_check_assert(value > 0 && value < VALUES);
    s->undelivered[value]++;
}

static void make_with(state *s, size_t capacity, bide_channel_overflow overflow)
{
    bide_channel_options options = {overflow, note_undelivered, s};
    bide_channel_init_with(&s->channel, s->memory, capacity, &options);
    for (int i = 0; i < 2; i++) {
        bide_channel_sender_add(&s->channel);
        bide_channel_receiver_add(&s->channel);
    }
}

static void setup_counted(void *p)
{
    make_with(p, 2, BIDE_CHANNEL_WAIT);
}

static void setup_counted_and_receiver(void *p)
{
    setup_counted(p);
    begin_early(p, false, 0);
}

static void setup_counted_and_sender(void *p)
{
    make_with(p, 1, BIDE_CHANNEL_WAIT);
    bide_channel_receiver_drop(&((state *)p)->channel);
    bide_check_assert(send_now(p, 1) == 0);
    begin_early(p, true, 2);
}

static void write_own(state *s)
{
    bide_plain_store(&s->written[bide_check_thread()], 1);
}

static void both_were_written(state *s)
{
    bide_check_assert(bide_plain_load(&s->written[1]) == 1);
    bide_check_assert(bide_plain_load(&s->written[2]) == 1);
}

static void send_5_and_go(void *p)
{
    state *s = p;
    bide_check_assert(send_now(s, 5) == 0);
    write_own(s);
    bide_channel_sender_drop(&s->channel);
}

static void sender_goes(void *p)
{
    write_own(p);
    bide_channel_sender_drop(&((state *)p)->channel);
}

static void receiver_goes(void *p)
{
    write_own(p);
    bide_channel_receiver_drop(&((state *)p)->channel);
}

static void receive_until_all_have_gone(void *p)
{
    receive_until_closed(p);
    both_were_written(p);
}

static void send_6_until_all_have_gone(void *p)
{
    state *s = p;
    if (send_now(s, 6) == -EPIPE)
        both_were_written(s);
}

/* Each element that was sent was received or told of, once. */
static void finish_told(void *p)
{
    state *s = p;
    bide_channel_destroy(&s->channel);
    for (uint32_t value = 0; value < VALUES; value++)
        bide_check_assert(s->received[value] + s->undelivered[value] == s->sent[value]);
    bide_check_assert(bide_channel_is_idle_(&s->channel.channel));
}

static void finish_senders_gone(void *p)
{
    state *s = p;
    bide_check_assert(receive_now(s) == -EPIPE);
    for (uint32_t i = 0; i < s->earlies; i++)
        bide_check_assert(s->early[i].status != WAITS);
    finish_told(s);
}

static void finish_receivers_gone(void *p)
{
    state *s = p;
    bide_check_assert(send_now(s, 7) == -EPIPE);
    for (uint32_t i = 0; i < s->earlies; i++)
        bide_check_assert(s->early[i].status == -EPIPE);
    finish_told(s);
}

SCENARIO(senders_gone, "two_senders_go_while_a_receiver_waits", .setup = setup_counted_and_receiver,
         .threads = {send_5_and_go, sender_goes}, .finish = finish_senders_gone);
SCENARIO(senders_gone_early, "two_senders_go_as_a_receiver_comes", .setup = setup_counted,
         .threads = {send_5_and_go, sender_goes, receive_until_all_have_gone},
         .finish = finish_senders_gone);
SCENARIO(receivers_gone, "two_receivers_go_while_one_sends", .setup = setup_counted,
         .threads = {receiver_goes, receiver_goes, send_6_until_all_have_gone},
         .finish = finish_receivers_gone);
SCENARIO(receivers_gone_full, "the_last_receiver_goes_while_a_sender_waits",
         .setup = setup_counted_and_sender, .threads = {receiver_goes, send_5_now},
         .finish = finish_receivers_gone);

/* The holder of a permit sends when nobody will receive: the element is told of, at the latest at the end. */
static void setup_last_receiver_and_permit(void *p)
{
    state *s = p;
    make_with(s, 2, BIDE_CHANNEL_WAIT);
    bide_channel_receiver_drop(&s->channel);
    bide_check_assert(bide_channel_try_reserve(&s->channel, &s->permit) == 0);
}

static void go_and_use_it(void *p)
{
    state *s = p;
    receiver_goes(s);
    use_it(s);
    bide_check_assert(s->undelivered[1] == 1);
}

SCENARIO(permit_left, "a_permit_is_used_as_the_last_receiver_goes",
         .setup = setup_last_receiver_and_permit, .threads = {receiver_goes, use_it},
         .finish = finish_receivers_gone);
SCENARIO(permit_late, "a_permit_is_used_after_the_last_receiver_has_gone",
         .setup = setup_last_receiver_and_permit, .threads = {go_and_use_it, stop_second},
         .finish = finish_receivers_gone);

static void setup_drops(state *s, size_t capacity, bide_channel_overflow overflow)
{
    make_with(s, capacity, overflow);
    for (uint32_t value = 1; value <= capacity; value++)
        bide_check_assert(send_now(s, value) == 0);
}

static void setup_drops_oldest(void *p)
{
    setup_drops(p, 2, BIDE_CHANNEL_DROP_OLDEST);
}

static void setup_drops_oldest_of_one(void *p)
{
    setup_drops(p, 1, BIDE_CHANNEL_DROP_OLDEST);
}

static void setup_drops_newest(void *p)
{
    setup_drops(p, 2, BIDE_CHANNEL_DROP_NEWEST);
}

static void send_5_for_sure(void *p)
{
    bide_check_assert(send_now(p, 5) == 0);
}

static void send_6_for_sure(void *p)
{
    bide_check_assert(send_now(p, 6) == 0);
}

/* One send and one receive: at most one element was dropped, and none if the receive came first. */
static void finish_one_dropped(void *p)
{
    state *s = p;
    uint32_t dropped = 0;
    for (uint32_t value = 0; value < VALUES; value++)
        dropped += s->undelivered[value];
    bide_check_assert(dropped <= 1);
    bide_check_assert(bide_channel_count(&s->channel) + dropped == 2);
    finish_told(s);
}

SCENARIO(drop_oldest, "the_oldest_is_dropped_as_one_is_received", .setup = setup_drops_oldest,
         .threads = {send_5_for_sure, receive_one_now}, .finish = finish_one_dropped);
SCENARIO(drop_oldest_twice, "two_drop_the_oldest", .setup = setup_drops_oldest,
         .threads = {send_5_for_sure, send_6_for_sure}, .finish = finish_told);
SCENARIO(drop_only, "two_drop_the_only_element", .setup = setup_drops_oldest_of_one,
         .threads = {send_5_for_sure, send_6_for_sure, receive_one_now}, .finish = finish_told);
SCENARIO(drop_newest, "the_newest_is_dropped_as_one_is_received", .setup = setup_drops_newest,
         .threads = {send_5_for_sure, receive_one_now}, .finish = finish_one_dropped);

/* ---- Reserving many ---- */

static void reserve_two_and_use(void *p)
{
    state *s = p;
    bide_channel_permit permits[2];
    bide_channel_many_waiter waiter;
    size_t count;
    int status =
        bide_check_await(bide_channel_reserve_many(&waiter, &s->channel, permits, 2, &count));
    bide_check_assert(status == 0 && count != 0 && count <= 2);
    for (size_t i = 0; i < count; i++) {
        uint32_t value = (uint32_t)(5 + i);
        if (i == 0) {
            bide_channel_permit_send(&s->channel, &permits[i], &value);
            s->sent[value]++;
        } else {
            bide_channel_permit_release(&permits[i]);
        }
    }
}

SCENARIO(reserve_many, "two_are_reserved_beside_a_sender_that_waits",
         .setup = setup_full_and_sender, .threads = {reserve_two_and_use, receive_two_at_once},
         .finish = finish_room, .preemptions = 2);

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&meet,
                                                     &full,
                                                     &two_send,
                                                     &two_receive,
                                                     &snatch,
                                                     &joins,
                                                     &hidden,
                                                     &hidden_room,
                                                     &exchange,
                                                     &closed,
                                                     &closed_early,
                                                     &closed_behind,
                                                     &closed_full,
                                                     &stopped,
                                                     &stopped_full,
                                                     &released,
                                                     &released_to_sender,
                                                     &released_to_two,
                                                     &used,
                                                     &released_stopped,
                                                     &closed_used,
                                                     &closed_released,
                                                     &many,
                                                     &beside,
                                                     &closed_waits,
                                                     &senders_gone,
                                                     &senders_gone_early,
                                                     &receivers_gone,
                                                     &receivers_gone_full,
                                                     &permit_left,
                                                     &permit_late,
                                                     &drop_oldest,
                                                     &drop_oldest_twice,
                                                     &drop_only,
                                                     &drop_newest,
                                                     &reserve_many,
                                                     NULL};
    static const char *const files[] = {"channel.h", "channel.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
