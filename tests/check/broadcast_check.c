/*
 * A broadcast that keeps one element, or two: subscribers that are overtaken, that wait, and that
 * subscribe during a send.
 */
#include "bide/broadcast.h"
#include "bide/check.h"
#include "bide/stop.h"

#include "given_back.h"
#include "watched.h"

typedef struct element {
    uint64_t low, high; /* equal values: its number, from 1 on */
} element;

enum { MOST = 4 };

typedef struct state {
    bide_broadcast_slot(element) memory[2];
    bide_broadcast(element) broadcast;
    bide_broadcast_subscriber(element) subscriber;
    bide_stop_source stop;
    bide_context context;
    int data[MOST + 1]; /* of each element: written before the send */
    int closed;         /* written before the send */
    uint64_t last;      /* received by the subscriber */
    bool sent[3];       /* by several senders: the result */
    bool heard[3];
} state;

static void setup_of(state *s, size_t capacity)
{
    bide_broadcast_init(&s->broadcast, s->memory, capacity);
    bide_broadcast_subscribe(&s->subscriber, &s->broadcast);
    bide_stop_source_init(&s->stop);
    s->context = bide_default_context;
    s->context.stop = &s->stop;
}

static void setup(void *p)
{
    setup_of(p, 1);
}

/*
 * There will be a waiter. Not for subscribers that only poll: a publisher passes a full fence if
 * the list is watched.
 */
static void setup_waited_for(void *p)
{
    state *s = p;
    setup_of(s, 1);
    WATCH(&s->broadcast.broadcast.barrier.waiters);
}

static void setup_of_two(void *p)
{
    setup_of(p, 2);
}

static void send(state *s, uint64_t number)
{
    element own = {number, number};
    s->data[number] = 1;
    bide_check_assert(bide_broadcast_send(&s->broadcast, &own) == 0);
}

static void send_one(void *p)
{
    send(p, 1);
}

static void send_two(void *p)
{
    send(p, 1);
    send(p, 2);
}

static void send_three(void *p)
{
    send_two(p);
    send(p, 3);
}

static void send_four(void *p)
{
    send_three(p);
    send(p, 4);
}

static void close_it(void *p)
{
    state *s = p;
    element more = {MOST, MOST};
    s->closed = 1;
    bide_broadcast_close(&s->broadcast);
    bide_check_assert(bide_broadcast_send(&s->broadcast, &more) == -EPIPE);
}

static void send_and_close(void *p)
{
    send_two(p);
    close_it(p);
}

/* The element is complete, and data that was written before its send is visible. */
static uint64_t check_element(const state *s, const element *e)
{
    bide_check_assert(e->low == e->high && e->low >= 1 && e->low <= MOST);
    bide_check_assert(s->data[e->low] == 1);
    return e->low;
}

static void had(state *s, const element *e, size_t missed)
{
    uint64_t number = check_element(s, e);
    bide_check_assert(number == s->last + missed + 1);
    s->last = number;
}

static void try_some(state *s, int times)
{
    element e;
    for (int i = 0; i < times; i++) {
        int status = bide_broadcast_try_recv(&s->subscriber, &e);
        if (status == 0)
            had(s, &e, s->subscriber.missed);
        else
            bide_check_assert(status == -EAGAIN || (status == -EPIPE && s->closed == 1));
        if (status == -EPIPE)
            bide_check_assert(s->last == 2);
    }
}

static void try_once(void *p)
{
    try_some(p, 1);
}

static void try_twice(void *p)
{
    try_some(p, 2);
}

static void try_three_times(void *p)
{
    try_some(p, 3);
}

static void take_two(void *p)
{
    state *s = p;
    element e[2];
    ptrdiff_t taken = bide_broadcast_try_recv_many(&s->subscriber, e, 2);
    bide_check_assert(taken == -EAGAIN || taken == 1 || taken == 2);
    for (ptrdiff_t i = 0; i < taken; i++)
        had(s, &e[i], i == 0 ? s->subscriber.missed : 0);
}

static void wait_for_one(void *p)
{
    state *s = p;
    bide_broadcast_waiter wait;
    element e;
    bide_check_assert(bide_check_await(bide_broadcast_recv(&wait, &s->subscriber, &e)) == 0);
    had(s, &e, s->subscriber.missed);
}

static void wait_until_closed(void *p)
{
    state *s = p;
    bide_broadcast_waiter wait;
    element e;
    int status;
    while ((status = bide_check_await(bide_broadcast_recv(&wait, &s->subscriber, &e))) == 0)
        had(s, &e, s->subscriber.missed);
    bide_check_assert(status == -EPIPE && s->last == 2 && s->closed == 1);
}

/* Another subscriber, which begins at any position. */
static void subscribe_and_try(void *p)
{
    state *s = p;
    bide_broadcast_subscriber(element) own;
    element e;
    bide_broadcast_subscribe(&own, &s->broadcast);
    uint64_t next = own.cursor.position + 1;
    for (int i = 0; i < 2; i++) {
        int status = bide_broadcast_try_recv(&own, &e);
        bide_check_assert(status == 0 || status == -EAGAIN);
        if (status == 0) {
            bide_check_assert(check_element(s, &e) == next + own.missed);
            next = e.low + 1;
        }
    }
}

static void request(void *p)
{
    bide_stop_request(&((state *)p)->stop);
}

static void wait_until_stopped(void *p)
{
    state *s = p;
    bide_broadcast_waiter wait;
    element e;
    int status = bide_sync_wait_in(&s->context, bide_broadcast_recv(&wait, &s->subscriber, &e));
    bide_check_assert(status == 0 || status == -ECANCELED);
    if (status == 0)
        had(s, &e, s->subscriber.missed);
}

/* The receive has no user in the end: a loser of a select, or its coroutine is destroyed. */
static void wait_and_give_back(void *p)
{
    state *s = p;
    bide_broadcast_waiter wait;
    element e;
    size_t position = s->subscriber.cursor.position, place = s->subscriber.cursor.place;
    bide_awaiter *awaiter = bide_broadcast_recv(&wait, &s->subscriber, &e);
    bide_check_assert(bide_check_await(awaiter) == 0);
    check_element(s, &e);
    give_back(awaiter);
    bide_check_assert(s->subscriber.cursor.position == position &&
                      s->subscriber.cursor.place == place);
}

static void select_one(void *p)
{
    state *s = p;
    bide_broadcast_waiter wait;
    element e;
    int status = select_by_hand(bide_broadcast_recv(&wait, &s->subscriber, &e), NULL);
    bide_check_assert(status == 0 || status == -EAGAIN);
    if (status == 0)
        had(s, &e, s->subscriber.missed);
}

static void select_until_closed(void *p)
{
    state *s = p;
    bide_broadcast_waiter wait;
    element e;
    int status;
    while ((status = select_by_hand(bide_broadcast_recv(&wait, &s->subscriber, &e), NULL)) !=
           -EPIPE)
        if (status == 0)
            had(s, &e, s->subscriber.missed);
        else
            return;
    bide_check_assert(s->last == 2 && s->closed == 1);
}

/* ---- Several senders ---- */

static void setup_shared(void *p)
{
    state *s = p;
    bide_broadcast_init_shared(&s->broadcast, s->memory, 2);
    bide_broadcast_subscribe(&s->subscriber, &s->broadcast);
    WATCH(&s->broadcast.broadcast.barrier.waiters);
}

/* Returns whether it was sent. */
static bool send_in_turn(state *s, uint64_t number)
{
    element own = {number, number};
    s->data[number] = 1;
    int status = bide_broadcast_send(&s->broadcast, &own);
    bide_check_assert(status == 0 || status == -EPIPE);
    return status == 0;
}

static void send_first(void *p)
{
    state *s = p;
    s->sent[1] = send_in_turn(s, 1);
}

static void send_second(void *p)
{
    state *s = p;
    s->sent[2] = send_in_turn(s, 2);
}

static void close_shared(void *p)
{
    state *s = p;
    bide_broadcast_close(&s->broadcast);
    element own = {3, 3};
    bide_check_assert(bide_broadcast_send(&s->broadcast, &own) == -EPIPE);
}

static void hear(state *s, const element *e)
{
    check_element(s, e);
    bide_check_assert(s->heard[e->low] == 0 && s->subscriber.missed == 0);
    s->heard[e->low] = 1;
}

static void wait_for_one_shared(void *p)
{
    state *s = p;
    bide_broadcast_waiter wait;
    element e;
    bide_check_assert(bide_check_await(bide_broadcast_recv(&wait, &s->subscriber, &e)) == 0);
    hear(s, &e);
}

static void try_shared(void *p)
{
    state *s = p;
    element e;
    for (int i = 0; i < 2; i++)
        if (bide_broadcast_try_recv(&s->subscriber, &e) == 0)
            hear(s, &e);
}

static void hear_until_closed(void *p)
{
    state *s = p;
    element e;
    int status;
    do {
        bide_broadcast_waiter wait;
        status = bide_check_await(bide_broadcast_recv(&wait, &s->subscriber, &e));
        if (status == 0)
            hear(s, &e);
    } while (status == 0);
    bide_check_assert(status == -EPIPE);
}

/* What was sent was received, or can be; nothing else. */
static void finish_shared(void *p)
{
    state *s = p;
    element e;
    while (bide_broadcast_try_recv(&s->subscriber, &e) == 0)
        hear(s, &e);
    for (int i = 1; i <= 2; i++)
        bide_check_assert(s->heard[i] == s->sent[i]);
    bide_broadcast_destroy(&s->broadcast);
}

/* The kept elements that were not received are available, and nothing else. */
static void drain(state *s, uint64_t sent)
{
    element e;
    while (bide_broadcast_try_recv(&s->subscriber, &e) == 0)
        had(s, &e, s->subscriber.missed);
    bide_check_assert(s->last == sent);
    bide_check_assert(bide_broadcast_try_recv(&s->subscriber, &e) ==
                      (s->closed ? -EPIPE : -EAGAIN));
    bide_broadcast_destroy(&s->broadcast);
}

static void finish_of_one(void *p)
{
    drain(p, 1);
}

static void finish_of_two(void *p)
{
    drain(p, 2);
}

static void finish_of_three(void *p)
{
    drain(p, 3);
}

static void finish_of_four(void *p)
{
    drain(p, 4);
}

/*
 * Nearly half of all positions have been sent, and the origin is the first of them: it is older
 * than the oldest kept element, but leads to the same place. The next element goes to place 0, and
 * becomes the origin.
 */
static void setup_after_half_of_all(void *p)
{
    state *s = p;
    const size_t half = SIZE_MAX / 2;
    setup_of(s, 2);
    bide_atomic_init(&s->broadcast.broadcast.origin, (size_t)0);
    bide_atomic_init(&s->broadcast.broadcast.barrier.published, half - half % 3 - 1);
    bide_broadcast_subscribe(&s->subscriber, &s->broadcast);
}

/* A subscription after more than half of all positions were sent. */
static void finish_subscribed(void *p)
{
    state *s = p;
    bide_broadcast_subscriber(element) own;
    element e;
    bide_broadcast_subscribe(&own, &s->broadcast);
    send(s, 3);
    bide_check_assert(bide_broadcast_try_recv(&own, &e) == 0);
    bide_check_assert(check_element(s, &e) == 3 && own.missed == 0);
    drain(s, 3);
}

#define SCENARIO(name_of, setup_with, finish_with, ...)                          \
    static const bide_check_scenario name_of = {.name = #name_of,                \
                                                .size = sizeof(state),           \
                                                .cxx20_release_sequences = true, \
                                                .setup = setup_with,             \
                                                .finish = finish_with,           \
                                                .never_spurious = true,          \
                                                .threads = {__VA_ARGS__}}

SCENARIO(a_subscriber_takes_while_three_are_sent, setup, finish_of_three, send_three, try_once);
SCENARIO(a_subscriber_takes_twice_while_three_are_sent, setup, finish_of_three, send_three,
         try_twice);
SCENARIO(a_subscriber_takes_both_of_two_kept, setup_of_two, finish_of_four, send_four, try_twice);
SCENARIO(a_subscriber_takes_two_at_once, setup_of_two, finish_of_four, send_four, take_two);
SCENARIO(a_subscriber_waits_for_the_next, setup_waited_for, finish_of_two, send_two, wait_for_one);
SCENARIO(a_subscriber_comes_while_four_are_sent, setup_of_two, NULL, send_four, subscribe_and_try);
SCENARIO(it_is_closed, setup_waited_for, finish_of_two, send_and_close, wait_until_closed);
SCENARIO(a_receiver_looks_while_it_is_closed, setup, finish_of_two, send_and_close,
         try_three_times);

SCENARIO(two_send, setup_shared, finish_shared, send_first, send_second);
SCENARIO(a_subscriber_waits_for_one_of_several, setup_shared, finish_shared, send_first,
         wait_for_one_shared);
SCENARIO(a_subscriber_takes_while_two_send, setup_shared, finish_shared, send_first, send_second,
         try_shared);

/* Too many executions without a bound. */
static const bide_check_scenario two_send_while_a_subscriber_waits = {
    .name = "two_send_while_a_subscriber_waits",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_shared,
    .finish = finish_shared,
    .never_spurious = true,
    .preemptions = 1,
    .threads = {send_first, send_second, wait_for_one_shared}};

SCENARIO(one_sends_while_another_closes, setup_shared, finish_shared, send_first, close_shared,
         hear_until_closed);

SCENARIO(a_receive_is_given_back, setup_waited_for, finish_of_two, send_two, wait_and_give_back);
SCENARIO(a_select_receives, setup_waited_for, finish_of_two, send_two, select_one);
SCENARIO(a_select_receives_while_it_is_closed, setup_waited_for, finish_of_two, send_and_close,
         select_until_closed);

SCENARIO(a_subscriber_comes_after_half_of_all_positions, setup_after_half_of_all, finish_subscribed,
         send_two, try_twice);

/* The cancellation of the barrier has its own scenarios. */
static const bide_check_scenario a_wait_is_cut_short = {
    .name = "a_wait_is_cut_short",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_waited_for,
    .finish = finish_of_one,
    .never_spurious = true,
    .preemptions = 1,
    .threads = {send_one, request, wait_until_stopped}};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &a_subscriber_takes_while_three_are_sent,
        &a_subscriber_takes_twice_while_three_are_sent,
        &a_subscriber_takes_both_of_two_kept,
        &a_subscriber_takes_two_at_once,
        &a_subscriber_waits_for_the_next,
        &a_subscriber_comes_while_four_are_sent,
        &a_receiver_looks_while_it_is_closed,
        &a_subscriber_comes_after_half_of_all_positions,
        &a_receive_is_given_back,
        &a_select_receives,
        &two_send,
        &a_subscriber_waits_for_one_of_several,
        &a_subscriber_takes_while_two_send,
        &one_sends_while_another_closes,
        &it_is_closed,
        &a_select_receives_while_it_is_closed,
        &a_wait_is_cut_short,
        &two_send_while_a_subscriber_waits,
        NULL};
    static const char *const files[] = {"broadcast.h", "broadcast.c", "shared_words.h", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
