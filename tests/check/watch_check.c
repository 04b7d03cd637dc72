/*
 * A watch: values of two words that are read while they are overwritten, and receivers that wait.
 * The checker uses two buffers (watch.h), so the second value that is sent overwrites the first.
 */
#include "bide/check.h"
#include "bide/stop.h"
#include "bide/watch.h"

#include "given_back.h"
#include "watched.h"

typedef struct value {
    uint64_t low, high; /* equal values: its version */
} value;

enum { MOST = 3 };

typedef struct state {
    bide_watch(value) watch;
    bide_watch_receiver(value) receiver;
    bide_stop_source stop;
    bide_context context;
    int data[MOST + 1]; /* of each version: written before the send */
    int closed;         /* written before the send */
    uint64_t last;      /* received by the receiver */
    bool sent[3];       /* by several senders: the result */
} state;

static void setup(void *p)
{
    state *s = p;
    value first = {0, 0};
    bide_watch_init(&s->watch, &first);
    bide_watch_receiver_init(&s->receiver, &s->watch);
    s->data[0] = 1;
}

/*
 * The receiver has had version 0. Not for receivers that only read: a publisher passes a full fence
 * if the list is watched.
 */
static void setup_seen(void *p)
{
    state *s = p;
    setup(p);
    WATCH(&s->watch.watch.barrier.waiters);
    bide_watch_mark_seen(&s->receiver);
    bide_stop_source_init(&s->stop);
    s->context = bide_default_context;
    s->context.stop = &s->stop;
}

static void send(state *s, uint64_t version)
{
    value own = {version, version};
    s->data[version] = 1;
    bide_check_assert(bide_watch_send(&s->watch, &own) == 0);
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

static void close_it(void *p)
{
    state *s = p;
    value more = {MOST, MOST};
    s->closed = 1;
    bide_watch_close(&s->watch);
    bide_check_assert(bide_watch_send(&s->watch, &more) == -EPIPE);
}

static void send_and_close(void *p)
{
    send(p, 1);
    close_it(p);
}

/* The value is complete, and data that was written before its send is visible. */
static uint64_t check_value(const state *s, const value *v)
{
    bide_check_assert(v->low == v->high && v->low <= MOST);
    bide_check_assert(s->data[v->low] == 1);
    return v->low;
}

static void read_once(void *p)
{
    state *s = p;
    value v;
    bide_check_assert(bide_watch_read(&s->watch, &v) == 0);
    check_value(s, &v);
}

static void read_twice(void *p)
{
    state *s = p;
    value v;
    bide_watch_read(&s->watch, &v);
    uint64_t first = check_value(s, &v);
    bide_watch_read(&s->watch, &v);
    bide_check_assert(check_value(s, &v) >= first);
}

static void had(state *s, const value *v)
{
    uint64_t version = check_value(s, v);
    bide_check_assert(version > s->last);
    s->last = version;
}

static void wait_for_change(void *p)
{
    state *s = p;
    bide_watch_waiter wait;
    value v;
    bide_check_assert(bide_check_await(bide_watch_recv(&wait, &s->receiver, &v)) == 0);
    had(s, &v);
}

/* Another receiver, which begins at any version. */
static void try_from_anywhere(void *p)
{
    state *s = p;
    bide_watch_receiver(value) own;
    value v;
    bide_watch_receiver_init(&own, &s->watch);
    bide_check_assert(bide_watch_try_recv(&own, &v) == 0);
    uint64_t first = check_value(s, &v);
    int status = bide_watch_try_recv(&own, &v);
    bide_check_assert(status == 0 || status == -EAGAIN);
    if (status == 0)
        bide_check_assert(check_value(s, &v) > first);
}

static void wait_until_closed(void *p)
{
    state *s = p;
    bide_watch_waiter wait;
    value v;
    bide_check_assert(bide_check_await(bide_watch_recv(&wait, &s->receiver, &v)) == 0);
    had(s, &v);
    bide_check_assert(bide_check_await(bide_watch_recv(&wait, &s->receiver, &v)) == -EPIPE);
    bide_check_assert(s->closed == 1);
}

/* -EPIPE comes after the last. */
static void try_three_times(void *p)
{
    state *s = p;
    value v;
    for (int i = 0; i < 3; i++) {
        int status = bide_watch_try_recv(&s->receiver, &v);
        if (status == 0)
            had(s, &v);
        else if (status == -EPIPE)
            bide_check_assert(s->last == 1 && s->closed == 1);
        else
            bide_check_assert(status == -EAGAIN);
    }
}

static void request(void *p)
{
    bide_stop_request(&((state *)p)->stop);
}

static void wait_until_stopped(void *p)
{
    state *s = p;
    bide_watch_waiter wait;
    value v;
    int status = bide_sync_wait_in(&s->context, bide_watch_recv(&wait, &s->receiver, &v));
    bide_check_assert(status == 0 || status == -ECANCELED);
    if (status == 0)
        had(s, &v);
}

/* The receive has no user in the end: a loser of a select, or its coroutine is destroyed. */
static void wait_and_give_back(void *p)
{
    state *s = p;
    bide_watch_waiter wait;
    value v;
    bide_awaiter *awaiter = bide_watch_recv(&wait, &s->receiver, &v);
    bide_check_assert(bide_check_await(awaiter) == 0);
    check_value(s, &v);
    give_back(awaiter);
    bide_check_assert(s->receiver.receiver.seen == 0);
}

static void select_one(void *p)
{
    state *s = p;
    bide_watch_waiter wait;
    value v;
    int status = select_by_hand(bide_watch_recv(&wait, &s->receiver, &v), NULL);
    bide_check_assert(status == 0 || status == -EAGAIN);
    if (status == 0)
        had(s, &v);
}

static void select_until_closed(void *p)
{
    state *s = p;
    bide_watch_waiter wait;
    value v;
    int status;
    while ((status = select_by_hand(bide_watch_recv(&wait, &s->receiver, &v), NULL)) != -EPIPE)
        if (status == 0)
            had(s, &v);
        else
            return;
    bide_check_assert(s->last == 1 && s->closed == 1);
}

/* The value that the wait did not take is available. */
static void finish_had_one(void *p)
{
    state *s = p;
    value v;
    bide_check_assert(bide_watch_try_recv(&s->receiver, &v) == (s->last == 0 ? 0 : -EAGAIN));
    bide_check_assert(bide_watch_read(&s->watch, &v) == 0);
    bide_check_assert(check_value(s, &v) == 1);
    bide_watch_destroy(&s->watch);
}

#define SCENARIO(name_of, setup_with, finish_with, ...)                          \
    static const bide_check_scenario name_of = {.name = #name_of,                \
                                                .size = sizeof(state),           \
                                                .cxx20_release_sequences = true, \
                                                .setup = setup_with,             \
                                                .finish = finish_with,           \
                                                .never_spurious = true,          \
                                                .threads = {__VA_ARGS__}}

SCENARIO(a_receiver_reads_while_two_are_sent, setup, NULL, send_two, read_once);
SCENARIO(a_receiver_reads_twice_while_three_are_sent, setup, NULL, send_three, read_twice);
SCENARIO(two_read_while_two_are_sent, setup, NULL, send_two, read_once, read_once);
SCENARIO(a_receiver_waits_for_a_change, setup_seen, NULL, send_two, wait_for_change);
SCENARIO(a_receiver_begins, setup, NULL, send_two, try_from_anywhere);
SCENARIO(it_is_closed, setup_seen, NULL, send_and_close, wait_until_closed);
SCENARIO(a_receiver_looks_while_it_is_closed, setup_seen, NULL, send_and_close, try_three_times);

/* The cancellation of the barrier has its own scenarios. */
static const bide_check_scenario a_wait_is_cut_short = {
    .name = "a_wait_is_cut_short",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_seen,
    .finish = finish_had_one,
    .never_spurious = true,
    .preemptions = 1,
    .threads = {send_one, request, wait_until_stopped}};

/* One thread polls for new values while others are sent: it sees the last one, then or later. */
static void look_once(void *p)
{
    state *s = p;
    value v;
    int status = bide_watch_try_recv(&s->receiver, &v);
    bide_check_assert(status == 0 || status == -EAGAIN);
    if (status == 0)
        s->last = check_value(s, &v);
}

static void finish_told(void *p)
{
    state *s = p;
    look_once(p);
    bide_check_assert(s->last == 2);
}

static const bide_check_scenario a_receiver_looks_while_two_are_sent = {
    .name = "a_receiver_looks_while_two_are_sent",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_seen,
    .threads = {send_two, look_once},
    .finish = finish_told,
};

/* A wait is made, one more value is seen, and the wait begins: it is for the values after that. */
static void see_one_and_wait(void *p)
{
    state *s = p;
    bide_watch_waiter wait;
    value v;
    bide_awaiter *changed = bide_watch_recv(&wait, &s->receiver, &v);
    value seen;
    if (bide_watch_try_recv(&s->receiver, &seen) == 0)
        had(s, &seen);
    if (s->last == 2)
        return;
    bide_check_assert(bide_check_await(changed) == 0);
    had(s, &v);
}

SCENARIO(a_receiver_sees_more_before_it_waits, setup_seen, NULL, send_two, see_one_and_wait);

/* ---- Several senders ---- */

static void setup_shared(void *p)
{
    state *s = p;
    value first = {0, 0};
    bide_watch_init_shared(&s->watch, &first);
    bide_watch_receiver_init(&s->receiver, &s->watch);
    bide_watch_mark_seen(&s->receiver);
    s->data[0] = 1;
    WATCH(&s->watch.watch.barrier.waiters);
}

static void send_in_turn(state *s, uint64_t number)
{
    value own = {number, number};
    s->data[number] = 1;
    int status = bide_watch_send(&s->watch, &own);
    bide_check_assert(status == 0 || status == -EPIPE);
    s->sent[number] = status == 0;
}

static void send_first(void *p)
{
    send_in_turn(p, 1);
}

static void send_second(void *p)
{
    send_in_turn(p, 2);
}

static void close_shared(void *p)
{
    state *s = p;
    value own = {MOST, MOST};
    bide_watch_close(&s->watch);
    bide_check_assert(bide_watch_send(&s->watch, &own) == -EPIPE);
}

static void see_one_shared(void *p)
{
    state *s = p;
    bide_watch_waiter wait;
    value v;
    bide_check_assert(bide_check_await(bide_watch_recv(&wait, &s->receiver, &v)) == 0);
    bide_check_assert(check_value(s, &v) != 0);
    s->last = s->receiver.receiver.seen;
}

static void see_until_closed(void *p)
{
    state *s = p;
    int status;
    do {
        bide_watch_waiter wait;
        value v;
        status = bide_check_await(bide_watch_recv(&wait, &s->receiver, &v));
        if (status == 0)
            s->last = check_value(s, &v);
    } while (status == 0);
    bide_check_assert(status == -EPIPE);
}

/* Both were sent, as two versions; the receiver can have the later one if it has not. */
static void finish_both(void *p)
{
    state *s = p;
    value v;
    bide_check_assert(s->sent[1] && s->sent[2]);
    int status = bide_watch_try_recv(&s->receiver, &v);
    bide_check_assert(status == (s->last == 2 ? -EAGAIN : 0));
    bide_check_assert(s->receiver.receiver.seen == 2);
    bide_check_assert(bide_watch_read(&s->watch, &v) == 0);
    check_value(s, &v);
    bide_watch_destroy(&s->watch);
}

static void finish_first(void *p)
{
    state *s = p;
    bide_check_assert(s->sent[1] && s->last == 1);
    bide_watch_destroy(&s->watch);
}

static void finish_closed(void *p)
{
    state *s = p;
    bide_check_assert(s->last == (s->sent[1] ? 1 : 0));
    bide_watch_destroy(&s->watch);
}

static bool add_one(void *v, void *argument)
{
    value *own = v;
    (void)argument;
    bide_check_assert(own->low == own->high);
    own->low++;
    own->high++;
    return true;
}

static bool is_even(void *v, void *argument)
{
    (void)argument;
    ((value *)v)->high = MOST + 1; /* nobody sees it */
    return ((value *)v)->low == MOST + 1;
}

/* Sends nothing, in its turn. */
static void look_in_turn(void *p)
{
    state *s = p;
    value v;
    bide_check_assert(bide_watch_send_if_modified(&s->watch, &v, is_even, NULL) == 0);
}

static void setup_counted(void *p)
{
    state *s = p;
    setup_shared(p);
    s->data[1] = s->data[2] = 1;
}

static void change_once(void *p)
{
    state *s = p;
    value v;
    bide_check_assert(bide_watch_send_if_modified(&s->watch, &v, add_one, NULL) == 1);
}

/* No change is lost. */
static void finish_changed(void *p)
{
    state *s = p;
    value v;
    bide_check_assert(bide_watch_read(&s->watch, &v) == 0);
    bide_check_assert(v.low == 2 && v.high == 2);
}

static void finish_changed_once(void *p)
{
    state *s = p;
    value v;
    bide_check_assert(bide_watch_try_recv(&s->receiver, &v) == 0);
    bide_check_assert(v.low == 1 && v.high == 1);
    bide_check_assert(bide_watch_try_recv(&s->receiver, &v) == -EAGAIN);
}

SCENARIO(two_send, setup_shared, finish_both, send_first, send_second);
SCENARIO(a_receiver_waits_for_one_of_several, setup_shared, finish_first, send_first,
         see_one_shared);

/* Too many executions without a bound. */
static const bide_check_scenario two_send_while_a_receiver_waits = {
    .name = "two_send_while_a_receiver_waits",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_shared,
    .finish = finish_both,
    .never_spurious = true,
    .preemptions = 1,
    .threads = {send_first, send_second, see_one_shared}};

SCENARIO(one_sends_while_another_closes, setup_shared, finish_closed, send_first, close_shared,
         see_until_closed);
SCENARIO(two_change_the_value, setup_counted, finish_changed, change_once, change_once);
SCENARIO(one_changes_the_value_and_another_does_not, setup_counted, finish_changed_once,
         change_once, look_in_turn);

/* ---- Waiting for a value of some kind ---- */

static bool is_at_least(const void *v, void *argument)
{
    const value *own = v;
    bide_check_assert(own->low == own->high);
    return own->low >= *(uint64_t *)argument;
}

static int wait_for(state *s, uint64_t at_least, const bide_context *context)
{
    bide_watch_predicate_waiter wait;
    value v = {0, 0};
    size_t before = s->receiver.receiver.seen;
    bide_awaiter *awaiter = bide_watch_wait_for(&wait, &s->receiver, is_at_least, &at_least, &v);
    int status = context != NULL ? bide_sync_wait_in(context, awaiter) : bide_check_await(awaiter);
    if (status == 0)
        bide_check_assert(check_value(s, &v) >= at_least && s->receiver.receiver.seen == v.low);
    else
        bide_check_assert(s->receiver.receiver.seen == before);
    return status;
}

static void wait_for_two(void *p)
{
    bide_check_assert(wait_for(p, 2, NULL) == 0);
}

/* The first version ends it, or is missed and the close ends it: both have seen all. */
static void wait_for_one_until_closed(void *p)
{
    bide_check_assert(wait_for(p, 1, NULL) == 0);
}

static void wait_for_two_until_closed(void *p)
{
    state *s = p;
    bide_check_assert(wait_for(s, 2, NULL) == -EPIPE);
    bide_check_assert(s->closed == 1);
}

static void wait_for_one_until_stopped(void *p)
{
    state *s = p;
    int status = wait_for(s, 1, &s->context);
    bide_check_assert(status == 0 || status == -ECANCELED);
    s->last = status == 0;
}

static void wait_for_one_and_give_back(void *p)
{
    state *s = p;
    bide_watch_predicate_waiter wait;
    value v;
    uint64_t one = 1;
    bide_awaiter *awaiter = bide_watch_wait_for(&wait, &s->receiver, is_at_least, &one, &v);
    bide_check_assert(bide_check_await(awaiter) == 0);
    give_back(awaiter);
}

SCENARIO(a_receiver_waits_for_the_second, setup_seen, NULL, send_two, wait_for_two);
SCENARIO(a_receiver_waits_for_one_while_it_is_closed, setup_seen, NULL, send_and_close,
         wait_for_one_until_closed);
SCENARIO(a_receiver_waits_in_vain_while_it_is_closed, setup_seen, NULL, send_and_close,
         wait_for_two_until_closed);
SCENARIO(what_was_waited_for_is_given_back, setup_seen, finish_had_one, send_one,
         wait_for_one_and_give_back);

static const bide_check_scenario a_wait_for_one_is_cut_short = {
    .name = "a_wait_for_one_is_cut_short",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_seen,
    .finish = finish_had_one,
    .never_spurious = true,
    .preemptions = 1,
    .threads = {send_one, request, wait_for_one_until_stopped}};

SCENARIO(a_receive_is_given_back, setup_seen, finish_had_one, send_one, wait_and_give_back);
SCENARIO(a_select_receives, setup_seen, finish_had_one, send_one, select_one);
SCENARIO(a_select_receives_while_it_is_closed, setup_seen, NULL, send_and_close,
         select_until_closed);

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {&a_receiver_reads_while_two_are_sent,
                                                     &a_receiver_reads_twice_while_three_are_sent,
                                                     &two_read_while_two_are_sent,
                                                     &a_receiver_waits_for_a_change,
                                                     &a_receiver_begins,
                                                     &it_is_closed,
                                                     &a_receiver_looks_while_it_is_closed,
                                                     &a_receiver_looks_while_two_are_sent,
                                                     &a_receiver_sees_more_before_it_waits,
                                                     &a_receive_is_given_back,
                                                     &a_select_receives,
                                                     &a_select_receives_while_it_is_closed,
                                                     &two_send,
                                                     &a_receiver_waits_for_one_of_several,
                                                     &one_sends_while_another_closes,
                                                     &two_change_the_value,
                                                     &one_changes_the_value_and_another_does_not,
                                                     &a_receiver_waits_for_the_second,
                                                     &a_receiver_waits_for_one_while_it_is_closed,
                                                     &a_receiver_waits_in_vain_while_it_is_closed,
                                                     &what_was_waited_for_is_given_back,
                                                     &a_wait_is_cut_short,
                                                     &two_send_while_a_receiver_waits,
                                                     &a_wait_for_one_is_cut_short,
                                                     NULL};
    static const char *const files[] = {"/watch.h", "/watch.c", "shared_words.h", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
