/*
 * A oneshot: concurrent send, close, and a cancelled receive.
 */
#include "bide/check.h"
#include "bide/oneshot.h"

#include "given_back.h"

typedef struct answer {
    uint64_t low, high; /* equal values */
} answer;

typedef bide_oneshot(answer) answers;

enum { CLOSER = 3 }; /* senders are 1 and 2 */

typedef struct state {
    answers oneshot;
    answers *allocated;
    bide_stop_source stop;
    bide_context context;
    int data[CLOSER + 1]; /* of each sender or closer: written before */
    int sent[CLOSER];     /* the result of each send */
    int status;           /* the result of the receive */
    uint64_t received;    /* or 0 */
} state;

static void setup(void *p)
{
    state *s = p;
    bide_oneshot_init(&s->oneshot);
    bide_stop_source_init(&s->stop);
    s->context = bide_default_context;
    s->context.stop = &s->stop;
    s->sent[1] = s->sent[2] = 1;
    s->status = 1;
}

static void send(state *s, int sender)
{
    answer own = {(uint64_t)sender, (uint64_t)sender};
    s->data[sender] = 1;
    s->sent[sender] = bide_oneshot_send(&s->oneshot, &own);
    bide_check_assert(s->sent[sender] == 0 || s->sent[sender] == -EPIPE);
    bide_check_assert(own.low == (uint64_t)sender && own.high == (uint64_t)sender);
}

static void send_first(void *p)
{
    send(p, 1);
}

static void send_second(void *p)
{
    send(p, 2);
}

/* There is no other sender, so it was closed, and the reason is visible. */
static void send_and_see_why_not(void *p)
{
    state *s = p;
    send(s, 1);
    if (s->sent[1] == -EPIPE)
        bide_check_assert(s->data[CLOSER] == 1);
}

static void send_unless_decided(void *p)
{
    state *s = p;
    if (!bide_oneshot_is_decided(&s->oneshot))
        send(s, 1);
    else
        bide_check_assert(s->data[CLOSER] == 1);
}

/* There is no other decider, whoever waits. */
static void look_and_send(void *p)
{
    state *s = p;
    bide_check_assert(!bide_oneshot_is_decided(&s->oneshot));
    send(s, 1);
    bide_check_assert(bide_oneshot_is_decided(&s->oneshot));
}

static void close_it(void *p)
{
    state *s = p;
    s->data[CLOSER] = 1;
    bide_oneshot_close(&s->oneshot);
}

static void request(void *p)
{
    bide_stop_request(&((state *)p)->stop);
}

static void ended(state *s, int status, const answer *got)
{
    s->status = status;
    if (status == 0) {
        bide_check_assert(got->low == got->high && (got->low == 1 || got->low == 2));
        bide_check_assert(s->data[got->low] == 1);
        s->received = got->low;
    } else if (status == -EPIPE) {
        bide_check_assert(s->data[CLOSER] == 1);
    }
}

static void receive(void *p)
{
    state *s = p;
    bide_oneshot_waiter wait;
    answer got;
    ended(s, bide_check_await(bide_oneshot_recv(&wait, &s->oneshot, &got)), &got);
}

static void receive_until_stopped(void *p)
{
    state *s = p;
    bide_oneshot_waiter wait;
    answer got;
    ended(s, bide_sync_wait_in(&s->context, bide_oneshot_recv(&wait, &s->oneshot, &got)), &got);
}

/* The receive has no user in the end: a loser of a select, or its coroutine is destroyed. */
static void receive_and_give_back(void *p)
{
    state *s = p;
    bide_oneshot_waiter wait;
    answer got;
    bide_awaiter *awaiter = bide_oneshot_recv(&wait, &s->oneshot, &got);
    bide_check_assert(bide_check_await(awaiter) == 0);
    give_back(awaiter);
}

static void receive_by_select(void *p)
{
    state *s = p;
    bide_oneshot_waiter wait;
    answer got;
    ended(s, select_by_hand(bide_oneshot_recv(&wait, &s->oneshot, &got), NULL), &got);
}

static void receive_by_select_until_stopped(void *p)
{
    state *s = p;
    bide_oneshot_waiter wait;
    answer got;
    ended(s, select_by_hand(bide_oneshot_recv(&wait, &s->oneshot, &got), &s->context), &got);
}

static void try_twice(void *p)
{
    state *s = p;
    answer got;
    for (int i = 0; i < 2 && s->status != 0; i++)
        ended(s, bide_oneshot_try_recv(&s->oneshot, &got), &got);
}

/* The receiver has given up. It can still receive an element that was sent. */
static void close_and_drain(void *p)
{
    state *s = p;
    answer got;
    close_it(s);
    ended(s, bide_oneshot_try_recv(&s->oneshot, &got), &got);
    bide_check_assert(s->status != -EAGAIN);
}

/* Exactly one has won; an element that was sent is received, once. */
static void finish(void *p)
{
    state *s = p;
    answer got;
    bool closed = s->data[CLOSER] == 1;
    if (s->status != 0) {
        int status = bide_oneshot_try_recv(&s->oneshot, &got);
        bide_check_assert(s->status != -EPIPE || status == -EPIPE);
        bide_check_assert(status == 0 || (status == -EPIPE && closed));
        ended(s, status, &got);
    }
    for (int i = 1; i <= 2; i++)
        bide_check_assert((s->sent[i] == 0) == (s->received == (uint64_t)i));
    if (s->received != 0)
        bide_check_assert(bide_oneshot_try_recv(&s->oneshot, &got) == -EPIPE);
    bide_check_assert(bide_oneshot_recv_blocking(&s->oneshot, &got, BIDE_FOREVER) == -EPIPE);
    bide_oneshot_destroy(&s->oneshot);
}

/* ---- Its memory is freed ---- */

static void setup_allocated(void *p)
{
    state *s = p;
    s->allocated = bide_check_alloc(sizeof *s->allocated);
    bide_oneshot_init(s->allocated);
}

static void send_or_close_allocated(void *p)
{
    state *s = p;
    answer own = {1, 1};
    if (bide_check_choose(2) == 0)
        bide_oneshot_send(s->allocated, &own);
    else
        bide_oneshot_close(s->allocated);
}

static void receive_and_free(void *p)
{
    state *s = p;
    bide_oneshot_waiter wait;
    answer got;
    bide_check_await(bide_oneshot_recv(&wait, s->allocated, &got));
    bide_check_free(s->allocated);
}

#define SCENARIO(name_of, setup_with, finish_with, ...)                          \
    static const bide_check_scenario name_of = {.name = #name_of,                \
                                                .size = sizeof(state),           \
                                                .cxx20_release_sequences = true, \
                                                .setup = setup_with,             \
                                                .finish = finish_with,           \
                                                .never_spurious = true,          \
                                                .threads = {__VA_ARGS__}}

SCENARIO(it_is_sent, setup, finish, send_first, receive);
SCENARIO(two_race_to_send, setup, finish, send_first, send_second, receive);
SCENARIO(another_closes_it, setup, finish, send_and_see_why_not, close_it, receive);
SCENARIO(the_receiver_closes_it, setup, finish, send_and_see_why_not, close_and_drain);
SCENARIO(the_receiver_closes_it_while_two_send, setup, finish, send_first, send_second,
         close_and_drain);
SCENARIO(the_sender_looks_first, setup, NULL, send_unless_decided, close_and_drain);
SCENARIO(the_sender_looks_while_the_receiver_waits, setup, finish, look_and_send, receive);
SCENARIO(the_receiver_looks, setup, finish, send_first, close_it, try_twice);
SCENARIO(the_receive_is_cut_short, setup, finish, send_first, request, receive_until_stopped);
SCENARIO(it_is_closed_while_the_receive_is_cut_short, setup, NULL, close_it, request,
         receive_until_stopped);
SCENARIO(a_receive_is_given_back, setup, finish, send_first, receive_and_give_back);
SCENARIO(a_select_receives, setup, finish, send_first, send_second, receive_by_select);
SCENARIO(a_select_receives_while_it_is_closed, setup, finish, send_and_see_why_not, close_it,
         receive_by_select);
SCENARIO(a_select_is_cut_short, setup, finish, send_first, request,
         receive_by_select_until_stopped);
SCENARIO(it_is_freed_once_the_receive_has_ended, setup_allocated, NULL, send_or_close_allocated,
         receive_and_free);

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&it_is_sent,
                                                     &two_race_to_send,
                                                     &another_closes_it,
                                                     &the_receiver_closes_it,
                                                     &the_receiver_closes_it_while_two_send,
                                                     &the_sender_looks_first,
                                                     &the_receiver_looks,
                                                     &the_receive_is_cut_short,
                                                     &it_is_closed_while_the_receive_is_cut_short,
                                                     &it_is_freed_once_the_receive_has_ended,
                                                     &the_sender_looks_while_the_receiver_waits,
                                                     &a_receive_is_given_back,
                                                     &a_select_receives,
                                                     &a_select_receives_while_it_is_closed,
                                                     &a_select_is_cut_short,
                                                     NULL};
    static const char *const files[] = {"oneshot.h", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
