/*
 * The unbounded channel, with segments of one or two cells: no thread waits for an element or a
 * close that is there. The memory orders are those of the queue and the event count; this checks
 * the attempt before a wait.
 */
#include "checked_allocator.h"

#include "bide/unbounded_channel.h"

typedef bide_unbounded_channel(uint64_t) numbers;

enum { SEATS = 2 + 1 };

typedef struct state {
    bide_allocator allocator;
    bide_hazard_domain domain;
    bide_hazard_seat seats[SEATS];
    bide_hazard_seat *mine[SEATS]; /* by bide_check_thread() */
    numbers numbers;
    bide_unbounded_channel_waiter waits[SEATS];
    uint64_t received[SEATS]; /* the sum of the elements that each thread has received */
    int status[SEATS];
} state;

static void send(state *s, uint64_t number)
{
    int status = bide_unbounded_channel_send(&s->numbers, s->mine[bide_check_thread()], &number);
    bide_check_assert(status == 0);
}

static void setup_cells(state *s, size_t cells)
{
    checked_allocator_init(&s->allocator);
    bide_hazard_init(&s->domain, s->seats, SEATS);
    for (unsigned i = 0; i < SEATS; i++) {
        s->mine[i] = bide_hazard_join(&s->domain);
        s->received[i] = 0;
        s->status[i] = 0;
    }
    bide_check_assert(bide_unbounded_channel_init(&s->numbers, &s->domain, &s->allocator, cells) ==
                      0);
}

static void setup(void *p)
{
    setup_cells(p, 2);
}

/* As if there had been a waiter lately: without the system's barrier. */
static void setup_watched(void *p)
{
    state *s = p;
    setup_cells(s, 2);
    bide_atomic_init(&s->numbers.channel.not_empty.watch, 2);
}

/* The first segment has been used up. */
static void setup_at_an_end(void *p)
{
    state *s = p;
    uint64_t number;
    setup_cells(s, 1);
    send(s, 1);
    bide_check_assert(bide_unbounded_channel_try_recv(&s->numbers, s->mine[0], &number) == 0);
}

static void receive(void *p)
{
    state *s = p;
    unsigned me = bide_check_thread();
    uint64_t number = 0;
    s->status[me] = bide_check_await(
        bide_unbounded_channel_recv(&s->waits[me], &s->numbers, s->mine[me], &number));
    if (s->status[me] == 0)
        s->received[me] += number;
}

static void send_one(void *p)
{
    send(p, 1);
}

static void close_it(void *p)
{
    state *s = p;
    bide_unbounded_channel_close(&s->numbers, s->mine[bide_check_thread()]);
}

static void end(state *s)
{
    bide_check_assert(bide_event_count_is_idle(&s->numbers.channel.not_empty));
    for (unsigned i = 0; i < SEATS; i++)
        bide_hazard_leave(&s->domain, s->mine[i]);
    bide_segment_queue_destroy_(&s->numbers.channel.queue);
    bide_hazard_destroy(&s->domain);
}

static void finish_one(void *p)
{
    state *s = p;
    bide_check_assert(s->received[1] == 1);
    end(s);
}

static void finish_closed(void *p)
{
    state *s = p;
    bide_check_assert(s->status[1] == -EPIPE);
    end(s);
}

#define SCENARIO(id, text, ...)             \
    static const bide_check_scenario id = { \
        .name = text, .size = sizeof(state), .cxx20_release_sequences = true, __VA_ARGS__}

SCENARIO(one, "a_receiver_waits_for_what_a_sender_sends", .setup = setup,
         .threads = {receive, send_one}, .finish = finish_one);
SCENARIO(watched, "a_thread_waits_where_another_has_waited", .setup = setup_watched,
         .threads = {receive, send_one}, .finish = finish_one);
SCENARIO(at_an_end, "a_receiver_waits_where_a_segment_ends", .setup = setup_at_an_end,
         .threads = {receive, send_one}, .finish = finish_one);
SCENARIO(closed, "a_receiver_waits_while_it_is_closed", .setup = setup,
         .threads = {receive, close_it}, .finish = finish_closed);
SCENARIO(closed_at_an_end, "it_is_closed_where_a_segment_ends", .setup = setup_at_an_end,
         .threads = {receive, close_it}, .finish = finish_closed);

/* ---- The last sender that goes closes it ---- */

static void setup_counted(void *p)
{
    state *s = p;
    setup(p);
    bide_unbounded_channel_sender_add(&s->numbers);
    bide_unbounded_channel_sender_add(&s->numbers);
}

static void sender_goes(state *s)
{
    unsigned me = bide_check_thread();
    bide_unbounded_channel_sender_drop(&s->numbers, s->mine[me]);
}

static void send_and_go(void *p)
{
    send_one(p);
    sender_goes(p);
}

static void go_and_receive_all(void *p)
{
    state *s = p;
    unsigned me = bide_check_thread();
    sender_goes(s);
    do
        receive(s);
    while (s->status[me] == 0);
}

static void go_and_send_until_closed(void *p)
{
    state *s = p;
    uint64_t number = 1;
    unsigned me = bide_check_thread();
    sender_goes(s);
    s->status[me] = bide_unbounded_channel_send(&s->numbers, s->mine[me], &number);
}

static void go(void *p)
{
    sender_goes(p);
}

static void finish_gone(void *p)
{
    state *s = p;
    bide_check_assert(s->status[2] == -EPIPE && s->received[2] == 1);
    end(s);
}

static void finish_gone_and_sent(void *p)
{
    state *s = p;
    uint64_t number;
    int first = bide_unbounded_channel_try_recv(&s->numbers, s->mine[0], &number);
    bide_check_assert(first == (s->status[2] == 0 ? 0 : -EPIPE));
    bide_check_assert(bide_unbounded_channel_try_recv(&s->numbers, s->mine[0], &number) == -EPIPE);
    end(s);
}

SCENARIO(gone, "two_senders_go_and_one_of_them_receives", .setup = setup_counted,
         .threads = {send_and_go, go_and_receive_all}, .finish = finish_gone, .preemptions = 2);
SCENARIO(gone_and_sent, "one_sends_after_it_was_dropped", .setup = setup_counted,
         .threads = {go, go_and_send_until_closed}, .finish = finish_gone_and_sent);

/* ---- Without seats: the calls borrow one ---- */

static void setup_seatless(void *p)
{
    state *s = p;
    checked_allocator_init(&s->allocator);
    bide_hazard_init(&s->domain, s->seats, 2); /* hazard_check.c has one seat for all */
    for (unsigned i = 0; i < SEATS; i++) {
        s->mine[i] = NULL;
        s->received[i] = 0;
        s->status[i] = 0;
    }
    bide_check_assert(bide_unbounded_channel_init(&s->numbers, &s->domain, &s->allocator, 1) == 0);
}

static void end_seatless(state *s)
{
    s->mine[0] = bide_hazard_join(&s->domain);
    bide_check_assert(s->mine[0] != NULL);
    bide_hazard_leave(&s->domain, s->mine[0]);
    bide_check_assert(bide_event_count_is_idle(&s->numbers.channel.not_empty));
    bide_segment_queue_destroy_(&s->numbers.channel.queue);
    bide_hazard_destroy(&s->domain);
}

static void finish_seatless(void *p)
{
    state *s = p;
    bide_check_assert(s->received[1] == 1);
    end_seatless(s);
}

static void finish_seatless_closed(void *p)
{
    state *s = p;
    bide_check_assert(s->status[1] == -EPIPE);
    end_seatless(s);
}

SCENARIO(seatless, "a_receiver_waits_for_what_a_sender_sends_without_seats",
         .setup = setup_seatless, .threads = {receive, send_one}, .finish = finish_seatless);
SCENARIO(seatless_closed, "it_is_closed_without_a_seat", .setup = setup_seatless,
         .threads = {receive, close_it}, .finish = finish_seatless_closed);

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &one,      &watched,         &at_an_end, &closed,        &closed_at_an_end,
        &seatless, &seatless_closed, &gone,      &gone_and_sent, NULL};
    static const char *const files[] = {"unbounded_channel.h", "unbounded_channel.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
