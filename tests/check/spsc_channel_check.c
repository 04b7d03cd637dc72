/*
 * The channel of one sender and one receiver: elements are received once and in order, and neither
 * side waits for an available element or for available room. The memory orders are those of the ring and
 * the event count.
 */
#include "bide/check.h"
#include "bide/coroutine.h"
#include "bide/handle.h"
#include "bide/spsc_channel.h"
#include "bide/stop.h"
#include "bide/task.h"

enum { CAPACITY = 1, WAITS = 1 /* the status of a wait that has not ended */ };

typedef bide_spsc_channel(uint64_t) channel;

struct state;

/* One end: a coroutine, with a source of its own if it has one. */
struct end {
    bide_task task;
    bide_context context;
    bide_stop_source stop;
    struct state *state;
    bide_spsc_channel_waiter waiter;
    uint64_t number; /* to be sent, or received */
    uint64_t count;  /* the number to be sent, or received */
    int status;
};

typedef struct state {
    channel channel;
    uint64_t memory[CAPACITY];
    struct end sender, receiver;
} state;

/* Sends 1 to `count`, then closes. */
bide_coroutine(sender_body)
{
    bide_begin(sender_body, struct end * self);
    for (self->number = 1; self->number <= self->count; self->number++)
        bide_try(bide_spsc_channel_send(&self->waiter, &self->state->channel, &self->number));
    self->status = 0;
    bide_spsc_channel_close(&self->state->channel);
    bide_end();
}

/* Receives until there is a status instead of an element. */
bide_coroutine(receiver_body)
{
    bide_begin(receiver_body, struct end * self);
    do {
        bide_await_status(self->status, bide_spsc_channel_recv(
                                            &self->waiter, &self->state->channel, &self->number));
        if (self->status == 0)
            bide_check_assert(self->number == ++self->count);
    } while (self->status == 0);
    bide_end();
}

static void begin(state *s, struct end *end, const bide_point *body, bool has_source)
{
    end->state = s;
    end->status = WAITS;
    bide_stop_source_init(&end->stop);
    end->context =
        (bide_context){&bide_inline_scheduler, has_source ? &end->stop : NULL, NULL, NULL, NULL};
    bide_start(&end->task.frame, body, &end->context);
    bide_resume(&end->task.frame);
}

static void setup(void *p)
{
    state *s = p;
    bide_spsc_channel_init(&s->channel, s->memory, CAPACITY);
    s->sender.count = 2;
    s->receiver.count = 0;
}

/* As if both had waited lately: without the system's barrier. */
static void setup_watched(void *p)
{
    state *s = p;
    setup(p);
    bide_atomic_init(&s->channel.channel.not_empty.watch, (uintptr_t)2);
    bide_atomic_init(&s->channel.channel.not_full.watch, (uintptr_t)2);
}

static void setup_receiver(void *p)
{
    state *s = p;
    setup_watched(p);
    s->sender.count = 1;
    begin(s, &s->receiver, &receiver_body, true);
}

static void setup_sender(void *p)
{
    state *s = p;
    setup_watched(p);
    begin(s, &s->sender, &sender_body, true);
}

static void begin_sender(void *p)
{
    state *s = p;
    begin(s, &s->sender, &sender_body, false);
}

static void begin_receiver(void *p)
{
    state *s = p;
    begin(s, &s->receiver, &receiver_body, false);
}

static void begin_sender_in_source(void *p)
{
    state *s = p;
    begin(s, &s->sender, &sender_body, true);
}

static void begin_receiver_in_source(void *p)
{
    state *s = p;
    begin(s, &s->receiver, &receiver_body, true);
}

static void stop_sender(void *p)
{
    bide_stop_request(&((state *)p)->sender.stop);
}

static void stop_receiver(void *p)
{
    bide_stop_request(&((state *)p)->receiver.stop);
}

static void finish(void *p)
{
    state *s = p;
    bide_check_assert(s->sender.status == 0 && s->receiver.status == -EPIPE);
    bide_check_assert(s->receiver.count == s->sender.count);
    bide_check_assert(bide_spsc_channel_is_idle_(&s->channel.channel));
}

/* Elements that were not received are still there. */
static void finish_receiver_stopped(void *p)
{
    state *s = p;
    uint64_t number;
    bide_check_assert(s->sender.status == 0);
    bide_check_assert(s->receiver.status == -ECANCELED || s->receiver.status == -EPIPE);
    while (bide_spsc_channel_try_recv(&s->channel, &number) == 0)
        bide_check_assert(number == ++s->receiver.count);
    bide_check_assert(s->receiver.count == s->sender.count);
    bide_check_assert(bide_spsc_channel_is_idle_(&s->channel.channel));
}

/* The received elements are the ones sent. */
static void finish_sender_stopped(void *p)
{
    state *s = p;
    bide_check_assert(s->sender.status == 0 || bide_done(&s->sender.task.frame));
    bide_spsc_channel_close(&s->channel);
    bide_check_assert(s->receiver.status == -EPIPE);
    bide_check_assert(s->receiver.count == s->sender.number - 1);
    bide_check_assert(bide_spsc_channel_is_idle_(&s->channel.channel));
}

#define SCENARIO(id, text, ...)             \
    static const bide_check_scenario id = { \
        .name = text, .size = sizeof(state), .cxx20_release_sequences = true, __VA_ARGS__}

SCENARIO(meet, "a_sender_and_a_receiver", .setup = setup, .threads = {begin_sender, begin_receiver},
         .finish = finish, .preemptions = 2);
SCENARIO(meet_watched, "a_sender_and_a_receiver_that_have_waited", .setup = setup_watched,
         .threads = {begin_sender, begin_receiver}, .finish = finish, .preemptions = 2);
SCENARIO(held, "a_sender_and_a_receiver_in_sources", .setup = setup_watched,
         .threads = {begin_sender_in_source, begin_receiver_in_source}, .finish = finish,
         .preemptions = 2);
SCENARIO(receiver_stopped, "the_receiver_is_asked_to_stop", .setup = setup_receiver,
         .threads = {begin_sender, stop_receiver}, .finish = finish_receiver_stopped);
SCENARIO(sender_stopped, "the_sender_is_asked_to_stop", .setup = setup_sender,
         .threads = {begin_receiver, stop_sender}, .finish = finish_sender_stopped);

/* The last of two senders that goes closes it, whichever has sent. */
static void setup_counted(void *p)
{
    state *s = p;
    setup(p);
    bide_spsc_channel_sender_add(&s->channel);
    bide_spsc_channel_sender_add(&s->channel);
}

static void send_and_go(void *p)
{
    state *s = p;
    uint64_t number = 1;
    bide_check_assert(bide_spsc_channel_try_send(&s->channel, &number) == 0);
    bide_spsc_channel_sender_drop(&s->channel);
}

static void go(void *p)
{
    bide_spsc_channel_sender_drop(&((state *)p)->channel);
}

static void finish_gone(void *p)
{
    state *s = p;
    uint64_t number = 0;
    bide_check_assert(bide_spsc_channel_try_recv(&s->channel, &number) == 0 && number == 1);
    bide_check_assert(bide_spsc_channel_try_recv(&s->channel, &number) == -EPIPE);
    bide_check_assert(bide_spsc_channel_is_idle_(&s->channel.channel));
}

SCENARIO(gone, "one_of_two_senders_sends_and_the_last_closes", .setup = setup_counted,
         .threads = {send_and_go, go}, .finish = finish_gone);

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &meet, &meet_watched, &held, &sender_stopped, &receiver_stopped, &gone, NULL};
    static const char *const files[] = {"spsc_channel.h", "spsc_channel.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
