/*
 * Registered sets of waits: each member is returned once, in turn, whatever its operation; what is not returned is not
 * taken; a set that is left at any moment leaves nothing behind.
 */
#include "testing.h"

#include "bide/auto_event.h"
#include "bide/channel.h"
#include "bide/deadline.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/rendezvous.h"
#include "bide/run_loop.h"
#include "bide/select_set.h"
#include "bide/sleep.h"
#include "bide/spawn.h"
#include "bide/sync_wait.h"
#include "bide/task.h"
#include "bide/thread_pool.h"
#include "bide/with_stop.h"

#include <errno.h>
#include <pthread.h>

typedef bide_channel(uint32_t) numbers;
typedef bide_channel_slot(uint32_t) number_slot;

enum { CHANNELS = 8, CAPACITY = 4, MAX_TAKES = 64 };

static struct {
    number_slot memory[CHANNELS][CAPACITY];
    numbers channels[CHANNELS];
    bide_rendezvous(uint32_t) meeting;
    bide_event event;
    bide_run_loop loop;
} the;

typedef struct source {
    bide_select_member member;
    bide_channel_waiter receive;
    bide_rendezvous_receiver meet;
    bide_event_waiter wait;
    uint32_t got;
} source;

/* A coroutine that takes from a set as long as it is told to, and ends it or is destroyed. */
typedef struct taker {
    bide_task task;
    bide_context context;
    bide_stop_source stop;
    bide_select_set set;
    bide_select_member *which;
    bide_with_stop_operation with_stop;
    source sources[CHANNELS];
    size_t count;
    bool meets, waits_for_event; /* source 0 is the rendezvous; the last is the event */
    bool again;                  /* a member that was had is added again */
    bool polls;
    unsigned to_take; /* then it ends the set */
    int remove;       /* the source to remove first, or -1 */
    unsigned taken;
    struct {
        size_t source;
        uint32_t number;
        int status;
    } takes[MAX_TAKES];
    int status; /* of the last wait */
    bool ended, finally;
} taker;

static bide_awaiter *operation_of(taker *t, size_t i)
{
    source *s = &t->sources[i];
    if (t->meets && i == 0)
        return bide_rendezvous_recv(&s->meet, &the.meeting, &s->got);
    if (t->waits_for_event && i == t->count - 1)
        return bide_event_wait(&s->wait, &the.event);
    return bide_channel_recv(&s->receive, &the.channels[i], &s->got);
}

static void add(taker *t, size_t i)
{
    t->sources[i].got = 0;
    bide_select_set_add(&t->set, &t->sources[i].member, operation_of(t, i));
}

static void note(taker *t)
{
    source *s = bide_container_of(t->which, source, member);
    assert_true(t->taken < MAX_TAKES);
    t->takes[t->taken].source = (size_t)(s - t->sources);
    t->takes[t->taken].number = s->got;
    t->takes[t->taken++].status = s->member.status;
    if (t->again)
        add(t, (size_t)(s - t->sources));
}

bide_coroutine(taker_body)
{
    bide_begin(taker_body, taker * self);
    bide_select_set_init(&self->set);
    for (size_t i = 0; i < self->count; i++)
        add(self, i);
    while (self->taken < self->to_take) {
        self->status = 1;
        bide_await_status(self->status, self->polls
                                            ? bide_select_set_poll(&self->set, &self->which)
                                            : bide_select_set_next(&self->set, &self->which));
        if (self->status != 0)
            break;
        note(self);
    }
    if (self->remove >= 0)
        bide_await(bide_select_set_remove(&self->set, &self->sources[self->remove].member));
    bide_await(bide_select_set_end(&self->set));
    self->ended = true;
    bide_finally();
    self->finally = true;
    bide_select_set_destroy(&self->set);
    bide_end();
}

static int setup(void **state)
{
    (void)state;
    for (size_t i = 0; i < CHANNELS; i++)
        bide_channel_init(&the.channels[i], the.memory[i], CAPACITY);
    bide_rendezvous_init(&the.meeting);
    bide_event_init(&the.event, false);
    bide_run_loop_init(&the.loop);
    return 0;
}

static void begin(taker *t)
{
    bide_stop_source_init(&t->stop);
    t->context = the.loop.context;
    t->context.stop = &t->stop;
    bide_start(&t->task.frame, &taker_body, &t->context);
    bide_resume(&t->task.frame);
    bide_run_loop_run_ready(&the.loop);
}

static taker of(size_t count, unsigned to_take)
{
    taker t;
    memset(&t, 0, sizeof t);
    t.count = count;
    t.to_take = to_take;
    t.remove = -1;
    return t;
}

static void fill(size_t channel, uint32_t number)
{
    assert_int_equal(bide_channel_try_send(&the.channels[channel], &number), 0);
}

static void send(size_t channel, uint32_t number)
{
    fill(channel, number);
    bide_run_loop_run_ready(&the.loop);
}

static void run(void)
{
    bide_run_loop_run_ready(&the.loop);
}

static void assert_took(const taker *t, unsigned turn, size_t source, uint32_t number)
{
    assert_true(turn < t->taken);
    assert_int_equal(t->takes[turn].status, 0);
    assert_int_equal(t->takes[turn].source, source);
    assert_int_equal(t->takes[turn].number, number);
}

static void assert_left(size_t channel, uint32_t number)
{
    uint32_t left = 0;
    assert_int_equal(bide_channel_try_recv(&the.channels[channel], &left), 0);
    assert_int_equal(left, number);
}

static void assert_nobody_waits(void)
{
    for (size_t i = 0; i < CHANNELS; i++)
        bide_channel_destroy(&the.channels[i]);
    bide_event_destroy(&the.event);
    bide_rendezvous_destroy(&the.meeting);
}

static void what_is_there_is_had_at_once_and_the_rest_stays(void **state)
{
    (void)state;
    taker t = of(3, 2);
    fill(1, 11);
    fill(2, 22);
    fill(2, 23);
    begin(&t);
    assert_true(t.ended);
    assert_int_equal(t.taken, 2);
    assert_took(&t, 0, 1, 11);
    assert_took(&t, 1, 2, 22);
    assert_left(2, 23);
    assert_nobody_waits();
}

static void members_are_had_in_the_order_in_which_they_were_notified(void **state)
{
    (void)state;
    taker t = of(3, 3);
    begin(&t);
    assert_int_equal(t.taken, 0);
    fill(2, 1);
    fill(0, 2);
    fill(1, 3);
    run();
    assert_int_equal(t.taken, 3);
    assert_took(&t, 0, 2, 1);
    assert_took(&t, 1, 0, 2);
    assert_took(&t, 2, 1, 3);
    assert_nobody_waits();
}

/* One channel that always has something does not keep the others from their turn. */
static void a_member_that_is_always_ready_takes_its_turn(void **state)
{
    (void)state;
    taker t = of(3, 6);
    t.again = true;
    for (uint32_t i = 0; i < CAPACITY; i++) {
        fill(0, 10 + i);
        fill(2, 20 + i);
    }
    begin(&t);
    for (unsigned i = 0; i < 6; i++)
        assert_took(&t, i, i % 2 * 2, 10 + i % 2 * 10 + i / 2);
    assert_left(0, 13);
    assert_left(2, 23);
    assert_nobody_waits();
}

static void an_empty_set_says_so(void **state)
{
    (void)state;
    taker t = of(0, 1);
    begin(&t);
    assert_int_equal(t.status, -ENOENT);
    t = of(1, 2);
    fill(0, 5);
    begin(&t);
    assert_took(&t, 0, 0, 5);
    assert_int_equal(t.status, -ENOENT);
    assert_true(t.ended);
}

static void polling_does_not_wait(void **state)
{
    (void)state;
    taker t = of(2, 2);
    t.polls = true;
    fill(1, 4);
    begin(&t);
    assert_took(&t, 0, 1, 4);
    assert_int_equal(t.status, -EAGAIN);
    assert_true(t.ended);
    assert_nobody_waits();
}

/* A request ends the wait; the members stay, and can be had afterwards. */
typedef struct patient {
    taker taker; /* first */
    bide_stop_source token;
    int first;
} patient;

bide_coroutine(patient_body)
{
    bide_begin(patient_body, taker * self);
    bide_select_set_init(&self->set);
    for (size_t i = 0; i < self->count; i++)
        add(self, i);
    bide_await_status(((patient *)(void *)self)->first,
                      bide_with_stop(&self->with_stop, &((patient *)(void *)self)->token,
                                     bide_select_set_next(&self->set, &self->which)));
    bide_await_status(self->status, bide_select_set_next(&self->set, &self->which));
    note(self);
    bide_await(bide_select_set_end(&self->set));
    self->ended = true;
    bide_end();
}

static void a_wait_that_is_cancelled_takes_nothing_and_the_members_stay(void **state)
{
    (void)state;
    patient p = {.taker = of(3, 1)};
    taker *t = &p.taker;
    bide_stop_source_init(&p.token);
    t->context = the.loop.context;
    bide_start(&t->task.frame, &patient_body, &t->context);
    bide_resume(&t->task.frame);
    bide_stop_request(&p.token);
    run();
    assert_int_equal(p.first, -ECANCELED);
    assert_int_equal(t->taken, 0);
    send(1, 8);
    assert_int_equal(t->status, 0);
    assert_took(t, 0, 1, 8);
    assert_true(t->ended);
    assert_nobody_waits();
}

/* `end` waits for its members also in a coroutine that was asked to stop. */
static void a_coroutine_that_is_asked_to_stop_ends_its_set(void **state)
{
    (void)state;
    taker t = of(CHANNELS, 5);
    begin(&t);
    bide_stop_request(&t.stop);
    run();
    assert_int_equal(t.status, -ECANCELED);
    assert_true(t.ended);
    for (size_t i = 0; i < CHANNELS; i++)
        assert_int_equal(t.sources[i].member.status, -ECANCELED);
    assert_nobody_waits();
}

/* A plain receive that waits behind a member. */
typedef struct receiver {
    bide_spawned spawned;
    bide_channel_waiter receive;
    size_t channel;
    uint32_t got;
} receiver;

static void receive_beside(receiver *r, size_t channel)
{
    r->got = 0;
    bide_spawn(&r->spawned, &the.loop.context,
               bide_channel_recv(&r->receive, &the.channels[channel], &r->got));
    run();
}

/* Both members are notified, and one is had: the other's notification goes to the plain receiver behind it. */
static void a_notification_that_is_not_used_goes_to_the_next_waiter(void **state)
{
    (void)state;
    taker t = of(2, 1);
    receiver r;
    begin(&t);
    receive_beside(&r, 1);
    fill(0, 1);
    fill(1, 2);
    run();
    assert_took(&t, 0, 0, 1);
    assert_true(t.ended);
    assert_int_equal(r.got, 2);
    assert_true(bide_event_is_set(&r.spawned.ended));
    assert_nobody_waits();
}

/* The same while the set goes on: it is passed on as `next` returns, not when the set is ended. */
static void a_notification_is_passed_on_when_another_member_is_returned(void **state)
{
    (void)state;
    taker t = of(2, 2);
    receiver r;
    begin(&t);
    receive_beside(&r, 1);
    fill(0, 1);
    fill(1, 2);
    run();
    assert_took(&t, 0, 0, 1);
    assert_int_equal(t.taken, 1);
    assert_int_equal(r.got, 2);
    send(1, 3);
    assert_took(&t, 1, 1, 3);
    assert_true(t.ended);
    assert_nobody_waits();
}

static void waits_that_take_nothing_are_members_too(void **state)
{
    (void)state;
    taker t = of(3, 2);
    t.waits_for_event = true;
    begin(&t);
    bide_event_set(&the.event);
    run();
    assert_took(&t, 0, 2, 0);
    send(0, 6);
    assert_took(&t, 1, 0, 6);
    assert_true(t.ended);
    assert_nobody_waits();
}

static void a_member_that_was_closed_is_returned_with_that(void **state)
{
    (void)state;
    taker t = of(2, 1);
    begin(&t);
    bide_channel_close(&the.channels[1]);
    run();
    assert_int_equal(t.taken, 1);
    assert_int_equal(t.takes[0].source, 1);
    assert_int_equal(t.takes[0].status, -EPIPE);
    assert_nobody_waits();
}

static void a_member_is_removed_in_each_state(void **state)
{
    (void)state;
    /* it waits */
    taker t = of(3, 1);
    t.remove = 1;
    begin(&t);
    send(0, 1);
    assert_true(t.ended);
    assert_int_equal(t.sources[1].member.status, -ECANCELED);
    /* it was had */
    t = of(3, 1);
    t.remove = 1;
    fill(1, 7);
    begin(&t);
    assert_took(&t, 0, 1, 7);
    assert_true(t.ended);
    assert_int_equal(t.sources[1].member.status, 0);
    /* it has not been tried */
    t = of(3, 1);
    t.remove = 2;
    fill(0, 1);
    fill(2, 9);
    begin(&t);
    assert_took(&t, 0, 0, 1);
    assert_int_equal(t.sources[2].member.status, -ECANCELED);
    assert_left(2, 9);
    /* an event that was set, but another came first */
    t = of(2, 1);
    t.waits_for_event = true;
    t.remove = 1;
    begin(&t);
    fill(0, 3);
    bide_event_set(&the.event);
    run();
    assert_took(&t, 0, 0, 3);
    assert_true(t.ended);
    assert_int_equal(t.sources[1].member.status, -ECANCELED);
    assert_nobody_waits();
}

/* The owner is destroyed while it waits, and when a member was notified before it ran. */
static void an_owner_that_is_destroyed_leaves_nothing_behind(void **state)
{
    (void)state;
    for (unsigned notified = 0; notified <= CHANNELS; notified++) {
        setup(NULL);
        taker t = of(CHANNELS, 1);
        receiver rest[CHANNELS];
        t.waits_for_event = true;
        begin(&t);
        for (size_t i = 0; i + 1 < CHANNELS; i++)
            receive_beside(&rest[i], i);
        for (unsigned i = 0; i < notified; i++) {
            if (i + 1 < CHANNELS)
                fill(i, i + 100);
            else
                bide_event_set(&the.event);
        }
        bide_destroy(&t.task.frame);
        assert_true(t.finally && !t.ended);
        run();
        assert_int_equal(t.taken, 0);
        for (size_t i = 0; i + 1 < CHANNELS; i++) {
            if (i >= notified)
                send(i, (uint32_t)i + 100);
            assert_int_equal(rest[i].got, i + 100);
        }
        assert_nobody_waits();
    }
}

/* A partner was told that a member has received its element: the member says so, whatever becomes of the set. */
static void an_element_that_a_partner_has_handed_over_is_not_lost(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        setup(NULL);
        taker t = of(2, how == 0 ? 1 : 9);
        uint32_t number = 77;
        t.meets = true;
        begin(&t);
        assert_int_equal(bide_rendezvous_try_send(&the.meeting, &number), 0);
        if (how == 1)
            bide_destroy(&t.task.frame);
        else if (how == 2)
            bide_stop_request(&t.stop);
        run();
        if (how == 0)
            assert_took(&t, 0, 0, 77);
        assert_true(t.finally);
        assert_int_equal(t.sources[0].member.status, 0);
        assert_int_equal(t.sources[0].got, 77);
    }
}

/* ---- Whatever is done in any order ---- */

enum { STORM_ROUNDS = 4000, MIXED = 7 };

/* The operations of a member, by number. */
enum { PLAIN, WITHIN_A_DEADLINE, UNDER_A_TOKEN, IN_A_SELECT, KINDS };

typedef struct mixed {
    bide_select_member member;
    bide_channel_waiter receives[2];
    bide_with_deadline_operation limited;
    bide_with_stop_operation sheltered;
    bide_select_of(2) either;
    uint32_t got[2];
} mixed;

/* Takes one element at a time, when it is told to, and changes its set as it is told. */
static struct {
    bide_task task;
    bide_context context;
    bide_select_set set;
    bide_select_member *which;
    mixed members[MIXED];
    bide_auto_event_waiter turn;
    bide_auto_event told;
    bide_with_stop_operation with_stop;
    bide_stop_source token; /* of the order to take */
    enum { TAKE, POLL, REMOVE, ADD, END } order;
    size_t number; /* of the member to remove or add */
    bool outside[MIXED], ended;
    int status;
    uint64_t random;
    uint32_t sum; /* of what was received */
} storm;

static bide_awaiter *mixed_operation(mixed *m, size_t i)
{
    numbers *channel = &the.channels[i % 3];
    bide_awaiter *plain = bide_channel_recv(&m->receives[0], channel, &m->got[0]);
    m->got[0] = m->got[1] = 0;
    switch (i % KINDS) {
    case WITHIN_A_DEADLINE:
        return bide_with_deadline(&m->limited, BIDE_FOREVER, plain);
    case UNDER_A_TOKEN:
        return bide_with_stop(&m->sheltered, NULL, plain);
    case IN_A_SELECT:
        m->either.random = 1;
        return bide_select_any_of(
            &m->either, plain,
            bide_channel_recv(&m->receives[1], &the.channels[(i + 1) % 3], &m->got[1]));
    default:
        return plain;
    }
}

static void storm_add(size_t i)
{
    storm.outside[i] = false;
    bide_select_set_add(&storm.set, &storm.members[i].member,
                        mixed_operation(&storm.members[i], i));
}

static void storm_note(mixed *m)
{
    size_t i = (size_t)(m - storm.members);
    assert_int_equal(m->member.status, 0);
    storm.sum += m->got[0] + m->got[1];
    storm.outside[i] = true;
    if (testing_random(&storm.random) % 4 != 0)
        storm_add(i);
}

bide_coroutine(storm_body)
{
    bide_begin(storm_body, bide_task * self);
    (void)self;
    bide_select_set_init(&storm.set);
    for (size_t i = 0; i < MIXED; i++)
        storm_add(i);
    for (;;) {
        bide_await(bide_auto_event_wait(&storm.turn, &storm.told));
        if (storm.order == END)
            break;
        if (storm.order == REMOVE) {
            bide_await(bide_select_set_remove(&storm.set, &storm.members[storm.number].member));
            storm.outside[storm.number] = true;
        } else if (storm.order == ADD) {
            if (storm.outside[storm.number])
                storm_add(storm.number);
        } else {
            bide_await_status(storm.status,
                              bide_with_stop(&storm.with_stop, &storm.token,
                                             storm.order == POLL
                                                 ? bide_select_set_poll(&storm.set, &storm.which)
                                                 : bide_select_set_next(&storm.set, &storm.which)));
            if (storm.status == 0)
                storm_note(bide_container_of(storm.which, mixed, member));
        }
    }
    bide_await(bide_select_set_end(&storm.set));
    storm.ended = true;
    bide_finally();
    bide_select_set_destroy(&storm.set);
    bide_end();
}

static void storm_order(unsigned order)
{
    bide_stop_request(&storm.token); /* an order that waits ends */
    run();
    bide_stop_source_init(&storm.token);
    storm.order = order;
    storm.number = testing_random(&storm.random) % MIXED;
    bide_auto_event_set(&storm.told);
    if (testing_random(&storm.random) % 2 != 0)
        run();
}

/* Elements are drawn, and their sums compared. */
static void one_storm(uint64_t seed)
{
    receiver others[4];
    uint32_t sent = 0, number = 0, left = 0;
    uint32_t others_begun = 0;
    setup(NULL);
    memset(&storm, 0, sizeof storm);
    memset(others, 0, sizeof others);
    storm.random = seed;
    bide_auto_event_init(&storm.told, false);
    bide_stop_source_init(&storm.token);
    storm.context = the.loop.context;
    bide_start(&storm.task.frame, &storm_body, &storm.context);
    bide_resume(&storm.task.frame);
    for (unsigned step = 0; step < 60; step++) {
        unsigned choice = testing_random(&storm.random) % 8;
        if (choice < 4) {
            number = 1 + (uint32_t)testing_random(&storm.random) % 1000000;
            if (bide_channel_try_send(&the.channels[step % 3], &number) == 0)
                sent += number;
        } else if (choice == 4 && others_begun < 4) {
            receiver *r = &others[others_begun++];
            r->channel = step % 3;
            bide_spawn(&r->spawned, &the.loop.context,
                       bide_channel_recv(&r->receive, &the.channels[r->channel], &r->got));
        } else if (choice == 5) {
            storm_order(REMOVE);
        } else if (choice == 6) {
            storm_order(ADD);
        } else {
            storm_order(step % 2 != 0 ? TAKE : POLL);
        }
    }
    if (seed % 2 != 0)
        storm_order(END);
    else
        bide_destroy(&storm.task.frame);
    run();
    assert_int_equal(storm.ended, seed % 2 != 0);
    for (unsigned i = 0; i < others_begun; i++) /* nobody waits for what is there */
        assert_true(bide_event_is_set(&others[i].spawned.ended) ||
                    bide_channel_count(&the.channels[others[i].channel]) == 0);
    for (size_t i = 0; i < 3; i++) {
        while (bide_channel_try_recv(&the.channels[i], &number) == 0)
            left += number;
        /* those that wait are alone, and are told of the end */
        bide_channel_close(&the.channels[i]);
    }
    run();
    for (unsigned i = 0; i < others_begun; i++)
        left += others[i].got;
    assert_int_equal(sent, storm.sum + left);
    assert_nobody_waits();
}

static void nothing_is_lost_whatever_is_done_with_a_set(void **state)
{
    (void)state;
    uint64_t seed = testing_seed();
    for (uint32_t i = 0, rounds = rounds_of(STORM_ROUNDS); i < rounds; i++)
        one_storm(seed + i);
}

/* What a wrapper makes of it: a member whose time is up is returned with that, and the others stay. */
static void a_members_deadline_is_its_own(void **state)
{
    (void)state;
    static mixed m;
    bide_select_set set;
    bide_select_member *which = NULL, other;
    bide_channel_waiter receive;
    uint32_t got;
    bide_select_set_init(&set);
    bide_select_set_add(
        &set, &m.member,
        bide_with_deadline(&m.limited, bide_platform.now(),
                           bide_channel_recv(&m.receives[0], &the.channels[0], &m.got[0])));
    bide_select_set_add(&set, &other, bide_channel_recv(&receive, &the.channels[1], &got));
    assert_int_equal(bide_run_loop_wait(&the.loop, bide_select_set_next(&set, &which)), 0);
    assert_ptr_equal(which, &m.member);
    assert_int_equal(m.member.status, -ETIMEDOUT);
    assert_int_equal(bide_run_loop_wait(&the.loop, bide_select_set_poll(&set, &which)), -EAGAIN);
    assert_int_equal(bide_run_loop_wait(&the.loop, bide_select_set_end(&set)), 0);
    assert_nobody_waits();
}

/* ---- On a pool, with senders on threads ---- */

enum { STREAMS = 40, STREAM_SLOTS = 2, SENDERS = 2, LENGTH = 400 };

static struct {
    number_slot memory[STREAMS][STREAM_SLOTS];
    numbers channels[STREAMS];
    source sources[STREAMS];
    uint32_t expected[STREAMS];
    bide_select_set set;
    bide_select_member *which;
    uint32_t length, wrong;
} much;

struct drain {
    bide_task task;
    uint64_t to_take;
    size_t i;
};

static void add_stream(size_t i)
{
    source *s = &much.sources[i];
    bide_select_set_add(&much.set, &s->member,
                        bide_channel_recv(&s->receive, &much.channels[i], &s->got));
}

static size_t check_and_renew(source *s)
{
    size_t i = (size_t)(s - much.sources);
    much.wrong += s->member.status != 0 || s->got != much.expected[i]++;
    add_stream(i);
    return i;
}

bide_coroutine(drain_body)
{
    bide_begin(drain_body, struct drain * self);
    bide_select_set_init(&much.set);
    for (size_t i = 0; i < STREAMS; i++)
        add_stream(i);
    for (; self->to_take != 0; self->to_take--) {
        bide_await(bide_select_set_next(&much.set, &much.which));
        self->i = check_and_renew(bide_container_of(much.which, source, member));
        if (self->to_take % 97 == 0) { /* leaves another, and comes back to it */
            bide_await(bide_select_set_remove(&much.set, &much.sources[self->i / 2].member));
            much.wrong += much.sources[self->i / 2].member.status != -ECANCELED;
            add_stream(self->i / 2);
        }
    }
    bide_await(bide_select_set_end(&much.set));
    bide_end();
}

static void *send_to_streams(void *argument)
{
    size_t first = *(size_t *)argument;
    for (uint32_t number = 0; number < much.length; number++) {
        for (size_t i = first; i < STREAMS; i += SENDERS)
            bide_channel_send_blocking(&much.channels[i], &number, BIDE_FOREVER);
    }
    return NULL;
}

static void each_element_is_had_once_and_in_order_whatever_thread_sends(void **state)
{
    (void)state;
    bide_thread_pool *pool;
    pthread_t threads[SENDERS];
    size_t firsts[SENDERS];
    static struct drain drain;
    memset(&much, 0, sizeof much);
    much.length = rounds_of(LENGTH);
    drain.to_take = (uint64_t)much.length * STREAMS;
    for (size_t i = 0; i < STREAMS; i++)
        bide_channel_init(&much.channels[i], much.memory[i], STREAM_SLOTS);
    assert_int_equal(bide_thread_pool_create(&pool, 2), 0);
    bide_spawned spawned;
    bide_context context = bide_default_context;
    context.scheduler = bide_thread_pool_scheduler(pool);
    bide_spawn(&spawned, &context, bide_task_init(&drain.task, &drain_body));
    for (size_t i = 0; i < SENDERS; i++) {
        firsts[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, send_to_streams, &firsts[i]), 0);
    }
    for (size_t i = 0; i < SENDERS; i++)
        pthread_join(threads[i], NULL);
    bide_event_wait_blocking(&spawned.ended, BIDE_FOREVER);
    assert_int_equal(much.wrong, 0);
    for (size_t i = 0; i < STREAMS; i++) {
        assert_int_equal(much.expected[i], much.length);
        bide_channel_destroy(&much.channels[i]);
    }
    bide_thread_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_there_is_had_at_once_and_the_rest_stays, setup),
        cmocka_unit_test_setup(members_are_had_in_the_order_in_which_they_were_notified, setup),
        cmocka_unit_test_setup(a_member_that_is_always_ready_takes_its_turn, setup),
        cmocka_unit_test_setup(an_empty_set_says_so, setup),
        cmocka_unit_test_setup(polling_does_not_wait, setup),
        cmocka_unit_test_setup(a_wait_that_is_cancelled_takes_nothing_and_the_members_stay, setup),
        cmocka_unit_test_setup(a_coroutine_that_is_asked_to_stop_ends_its_set, setup),
        cmocka_unit_test_setup(a_notification_that_is_not_used_goes_to_the_next_waiter, setup),
        cmocka_unit_test_setup(a_notification_is_passed_on_when_another_member_is_returned, setup),
        cmocka_unit_test_setup(waits_that_take_nothing_are_members_too, setup),
        cmocka_unit_test_setup(a_member_that_was_closed_is_returned_with_that, setup),
        cmocka_unit_test_setup(a_member_is_removed_in_each_state, setup),
        cmocka_unit_test(an_owner_that_is_destroyed_leaves_nothing_behind),
        cmocka_unit_test(an_element_that_a_partner_has_handed_over_is_not_lost),
        cmocka_unit_test(nothing_is_lost_whatever_is_done_with_a_set),
        cmocka_unit_test_setup(a_members_deadline_is_its_own, setup),
        cmocka_unit_test(each_element_is_had_once_and_in_order_whatever_thread_sends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
