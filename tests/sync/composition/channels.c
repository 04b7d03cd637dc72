/* Channels without a row in primitives.h: without a slot, one to one, and unbounded. */
#include "channels.h"

#include "bide/errors.h"
#include "bide/handle.h"
#include "bide/rendezvous.h"
#include "bide/spsc_channel.h"
#include "bide/task.h"
#include "bide/unbounded_channel.h"

#include <stdlib.h>

static const uint64_t a_word = 7;

/* ---- A rendezvous: a token is a partner that waits ---- */

typedef bide_rendezvous(uint64_t) met;

enum { OTHERS = 6 };

struct other {
    bide_task task;
    met *met;
    bide_rendezvous_sender send;
    bide_rendezvous_receiver receive;
    uint64_t word;
    bide_atomic(uint32_t) ended;
};

typedef struct meeting_place {
    met met;
    struct other others[OTHERS];
    unsigned begun;
} meeting_place;

bide_coroutine(sender_body)
{
    bide_begin(sender_body, struct other * self);
    bide_await(bide_rendezvous_send(&self->send, self->met, &a_word));
    bide_atomic_store(&self->ended, 1, release);
    bide_end();
}

bide_coroutine(receiver_body)
{
    bide_begin(receiver_body, struct other * self);
    bide_await(bide_rendezvous_recv(&self->receive, self->met, &self->word));
    bide_atomic_store(&self->ended, 1, release);
    bide_end();
}

static void met_init(void *object)
{
    PRIMITIVE_OBJECT(meeting_place, place);
    bide_rendezvous_init(&place->met);
    place->begun = 0;
}

static void met_begin_other(void *object, const bide_point *body)
{
    PRIMITIVE_OBJECT(meeting_place, place);
    if (place->begun == OTHERS)
        abort();
    struct other *other = &place->others[place->begun++];
    other->met = &place->met;
    bide_atomic_init(&other->ended, 0);
    bide_start(&other->task.frame, body, &bide_default_context);
    bide_resume(&other->task.frame);
}

static unsigned met_tokens(void *object)
{
    PRIMITIVE_OBJECT(meeting_place, place);
    unsigned waiting = 0;
    for (unsigned i = 0; i < place->begun; i++)
        waiting += bide_atomic_load(&place->others[i].ended, acquire) == 0;
    return waiting;
}

static void met_close(void *object)
{
    bide_rendezvous_close(&((meeting_place *)object)->met);
}

static void met_destroy(void *object)
{
    PRIMITIVE_OBJECT(meeting_place, place);
    met_close(object);
    bide_rendezvous_destroy(&place->met);
}

struct met_receive {
    bide_rendezvous_receiver receive;
    uint64_t word;
};

static bide_awaiter *met_receive_begin(void *waiter, void *object)
{
    PRIMITIVE_OBJECT(meeting_place, place);
    PRIMITIVE_WAITER(struct met_receive, self);
    return bide_rendezvous_recv(&self->receive, &place->met, &self->word);
}

static void met_receive_wake(void *object)
{
    met_begin_other(object, &sender_body);
}

static void met_receive_hand_on(void *object, void *waiter)
{
    (void)waiter;
    met_begin_other(object, &sender_body);
}

static bool met_receive_is_idle(void *object)
{
    return bide_event_count_is_idle(&((meeting_place *)object)->met.rendezvous.offered);
}

const primitive rendezvous_receive_row = {
    .name = "rendezvous, receive",
    .object_size = sizeof(meeting_place),
    .waiter_size = sizeof(struct met_receive),
    .traits = IN_ORDER | HANDED | KEEPS_WHAT_IT_HAD,
    .tokens = 1,
    .init = met_init,
    .begin = met_receive_begin,
    .wake = met_receive_wake,
    .hand_on = met_receive_hand_on,
    .close = met_close,
    .is_idle = met_receive_is_idle,
    .free_tokens = met_tokens,
    .destroy = met_destroy,
};

static bide_awaiter *met_send_begin(void *waiter, void *object)
{
    PRIMITIVE_OBJECT(meeting_place, place);
    return bide_rendezvous_send((bide_rendezvous_sender *)waiter, &place->met, &a_word);
}

static void met_send_wake(void *object)
{
    met_begin_other(object, &receiver_body);
}

static void met_send_hand_on(void *object, void *waiter)
{
    (void)waiter;
    met_begin_other(object, &receiver_body);
}

static bool met_send_is_idle(void *object)
{
    PRIMITIVE_OBJECT(meeting_place, place);
    return bide_rendezvous_is_idle_(&place->met.rendezvous) ||
           (bide_atomic_load(&place->met.rendezvous.offer, relaxed) == NULL &&
            bide_event_count_is_idle(&place->met.rendezvous.free));
}

const primitive rendezvous_send_row = {
    .name = "rendezvous, send",
    .object_size = sizeof(meeting_place),
    .waiter_size = sizeof(bide_rendezvous_sender),
    .traits = IN_ORDER | HANDED | KEEPS_WHAT_IT_HAD,
    .tokens = 1,
    .init = met_init,
    .begin = met_send_begin,
    .wake = met_send_wake,
    .hand_on = met_send_hand_on,
    .close = met_close,
    .is_idle = met_send_is_idle,
    .free_tokens = met_tokens,
    .destroy = met_destroy,
};

/* ---- One to one ---- */

enum { CAPACITY = 4 };

typedef bide_spsc_channel(uint64_t) pipe_of_words;

typedef struct words_pipe {
    pipe_of_words channel;
    uint64_t memory[CAPACITY];
} words_pipe;

struct pipe_wait {
    bide_spsc_channel_waiter waiter;
    uint64_t word;
};

static void pipe_init(void *object)
{
    PRIMITIVE_OBJECT(words_pipe, pipe);
    bide_spsc_channel_init(&pipe->channel, pipe->memory, CAPACITY);
}

static void pipe_put(void *object)
{
    if (bide_spsc_channel_try_send(&((words_pipe *)object)->channel, &a_word) != 0)
        abort();
}

static void pipe_take(void *object)
{
    uint64_t word;
    if (bide_spsc_channel_try_recv(&((words_pipe *)object)->channel, &word) != 0)
        abort();
}

static void pipe_close(void *object)
{
    bide_spsc_channel_close(&((words_pipe *)object)->channel);
}

static bool pipe_is_idle(void *object)
{
    return bide_spsc_channel_is_idle_(&((words_pipe *)object)->channel.channel);
}

static unsigned pipe_count(void *object)
{
    return (unsigned)bide_spsc_channel_count(&((words_pipe *)object)->channel);
}

static void pipe_destroy(void *object)
{
    PRIMITIVE_OBJECT(words_pipe, pipe);
    bide_spsc_channel_destroy(&pipe->channel);
}

static bide_awaiter *pipe_receive_begin(void *waiter, void *object)
{
    PRIMITIVE_OBJECT(words_pipe, pipe);
    PRIMITIVE_WAITER(struct pipe_wait, self);
    return bide_spsc_channel_recv(&self->waiter, &pipe->channel, &self->word);
}

static void pipe_receive_hand_on(void *object, void *waiter)
{
    (void)waiter;
    pipe_put(object);
}

const primitive spsc_receive_row = {
    .name = "channel between one and one, receive",
    .object_size = sizeof(words_pipe),
    .waiter_size = sizeof(struct pipe_wait),
    .traits = IN_ORDER | HANDED | STAYS_HAD | KEEPS_WHAT_IT_HAD,
    .tokens = CAPACITY,
    .max_waiting = 1,
    .init = pipe_init,
    .begin = pipe_receive_begin,
    .wake = pipe_put,
    .hand_on = pipe_receive_hand_on,
    .close = pipe_close,
    .is_idle = pipe_is_idle,
    .free_tokens = pipe_count,
    .destroy = pipe_destroy,
};

struct pipe_many_wait {
    bide_spsc_channel_many_waiter waiter;
    uint64_t word;
    size_t count;
};

static bide_awaiter *pipe_receive_many_begin(void *waiter, void *object)
{
    PRIMITIVE_OBJECT(words_pipe, pipe);
    PRIMITIVE_WAITER(struct pipe_many_wait, self);
    return bide_spsc_channel_recv_many(&self->waiter, &pipe->channel, &self->word, 1, &self->count);
}

const primitive spsc_receive_many_row = {
    .name = "channel between one and one, receive many",
    .object_size = sizeof(words_pipe),
    .waiter_size = sizeof(struct pipe_many_wait),
    .traits = IN_ORDER | HANDED | STAYS_HAD | KEEPS_WHAT_IT_HAD,
    .tokens = CAPACITY,
    .max_waiting = 1,
    .init = pipe_init,
    .begin = pipe_receive_many_begin,
    .wake = pipe_put,
    .hand_on = pipe_receive_hand_on,
    .close = pipe_close,
    .is_idle = pipe_is_idle,
    .free_tokens = pipe_count,
    .destroy = pipe_destroy,
};

static void full_pipe_init(void *object)
{
    pipe_init(object);
    for (int i = 0; i < CAPACITY; i++)
        pipe_put(object);
}

static bide_awaiter *pipe_send_begin(void *waiter, void *object)
{
    PRIMITIVE_OBJECT(words_pipe, pipe);
    PRIMITIVE_WAITER(struct pipe_wait, self);
    return bide_spsc_channel_send(&self->waiter, &pipe->channel, &a_word);
}

static void pipe_send_hand_on(void *object, void *waiter)
{
    (void)waiter;
    pipe_take(object);
}

static unsigned pipe_room(void *object)
{
    return CAPACITY - pipe_count(object);
}

/* (its sender closes it, and does not wait then) */
const primitive spsc_send_row = {
    .name = "channel between one and one, send",
    .object_size = sizeof(words_pipe),
    .waiter_size = sizeof(struct pipe_wait),
    .traits = IN_ORDER | HANDED | KEEPS_WHAT_IT_HAD,
    .tokens = CAPACITY,
    .max_waiting = 1,
    .init = full_pipe_init,
    .begin = pipe_send_begin,
    .wake = pipe_take,
    .hand_on = pipe_send_hand_on,
    .is_idle = pipe_is_idle,
    .free_tokens = pipe_room,
    .destroy = pipe_destroy,
};

/* ---- Unbounded: each user has a seat ---- */

enum { SEATS = 4 };

typedef bide_unbounded_channel(uint64_t) endless;

typedef struct endless_words {
    endless channel;
    bide_hazard_domain domain;
    bide_hazard_seat seats[SEATS];
    bide_hazard_seat *taken[SEATS]; /* the first sends */
    unsigned used;
    unsigned sent;
} endless_words;

struct endless_wait {
    bide_unbounded_channel_waiter waiter;
    uint64_t word;
};

static void endless_init(void *object)
{
    PRIMITIVE_OBJECT(endless_words, words);
    bide_hazard_init(&words->domain, words->seats, SEATS);
    for (int i = 0; i < SEATS; i++)
        words->taken[i] = bide_hazard_join(&words->domain);
    words->used = 1;
    if (bide_unbounded_channel_init(&words->channel, &words->domain, &bide_heap, 2) != 0)
        abort();
}

static bide_awaiter *endless_begin(void *waiter, void *object)
{
    PRIMITIVE_OBJECT(endless_words, words);
    PRIMITIVE_WAITER(struct endless_wait, self);
    if (words->used == SEATS)
        abort();
    return bide_unbounded_channel_recv(&self->waiter, &words->channel,
                                          words->taken[words->used++], &self->word);
}

static void endless_wake(void *object)
{
    PRIMITIVE_OBJECT(endless_words, words);
    if (bide_unbounded_channel_send(&words->channel, words->taken[0], &a_word) != 0)
        abort();
}

static void endless_hand_on(void *object, void *waiter)
{
    (void)waiter;
    endless_wake(object);
}

static void endless_close(void *object)
{
    PRIMITIVE_OBJECT(endless_words, words);
    bide_unbounded_channel_close(&words->channel, words->taken[0]);
}

static bool endless_is_idle(void *object)
{
    return bide_unbounded_channel_is_idle_(&((endless_words *)object)->channel.channel);
}

static unsigned endless_tokens(void *object)
{
    PRIMITIVE_OBJECT(endless_words, words);
    unsigned count = 0;
    uint64_t word;
    while (bide_unbounded_channel_try_recv(&words->channel, words->taken[0], &word) == 0)
        count++;
    return count;
}

static void endless_destroy(void *object)
{
    PRIMITIVE_OBJECT(endless_words, words);
    bide_unbounded_channel_destroy(&words->channel);
    for (int i = 0; i < SEATS; i++)
        bide_hazard_leave(&words->domain, words->taken[i]);
    bide_hazard_destroy(&words->domain);
}

const primitive unbounded_receive_row = {
    .name = "unbounded channel",
    .object_size = sizeof(endless_words),
    .waiter_size = sizeof(struct endless_wait),
    .traits = IN_ORDER | STAYS_HAD,
    .tokens = 1,
    .init = endless_init,
    .begin = endless_begin,
    .wake = endless_wake,
    .hand_on = endless_hand_on,
    .close = endless_close,
    .is_idle = endless_is_idle,
    .free_tokens = endless_tokens,
    .destroy = endless_destroy,
};

struct endless_many_wait {
    bide_unbounded_channel_many_waiter waiter;
    uint64_t word;
    size_t count;
};

static bide_awaiter *endless_many_begin(void *waiter, void *object)
{
    PRIMITIVE_OBJECT(endless_words, words);
    PRIMITIVE_WAITER(struct endless_many_wait, self);
    if (words->used == SEATS)
        abort();
    return bide_unbounded_channel_recv_many(
        &self->waiter, &words->channel, words->taken[words->used++], &self->word, 1, &self->count);
}

const primitive unbounded_receive_many_row = {
    .name = "unbounded channel, receive many",
    .object_size = sizeof(endless_words),
    .waiter_size = sizeof(struct endless_many_wait),
    .traits = IN_ORDER | STAYS_HAD,
    .tokens = 1,
    .init = endless_init,
    .begin = endless_many_begin,
    .wake = endless_wake,
    .hand_on = endless_hand_on,
    .close = endless_close,
    .is_idle = endless_is_idle,
    .free_tokens = endless_tokens,
    .destroy = endless_destroy,
};

/* ---- The same, whose seats manage themselves ---- */

static void seatless_init(void *object)
{
    PRIMITIVE_OBJECT(endless_words, words);
    for (int i = 0; i < SEATS; i++)
        words->taken[i] = NULL;
    words->used = 1;
    if (bide_unbounded_channel_init_own(&words->channel, &bide_heap, 2) != 0)
        abort();
}

static void seatless_destroy(void *object)
{
    PRIMITIVE_OBJECT(endless_words, words);
    bide_unbounded_channel_destroy(&words->channel);
}

const primitive seatless_receive_row = {
    .name = "unbounded channel without seats",
    .object_size = sizeof(endless_words),
    .waiter_size = sizeof(struct endless_wait),
    .traits = IN_ORDER | STAYS_HAD,
    .tokens = 1,
    .init = seatless_init,
    .begin = endless_begin,
    .wake = endless_wake,
    .hand_on = endless_hand_on,
    .close = endless_close,
    .is_idle = endless_is_idle,
    .free_tokens = endless_tokens,
    .destroy = seatless_destroy,
};
