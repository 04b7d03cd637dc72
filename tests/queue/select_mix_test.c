/*
 * Selects among each other and among plain sends and receives, drawn by a seed: over a channel, two rendezvous and an
 * event, bare or under a stop source of their own or in a when_any, cancelled and destroyed at any moment. Whenever
 * nothing is left to run, no operation waits although it could complete; and each element goes to one receiver, or to
 * none, according to its sender's status.
 */
#include "sync/by_hand.h"

#include "bide/channel.h"
#include "bide/event.h"
#include "bide/handle.h"
#include "bide/rendezvous.h"
#include "bide/select.h"
#include "bide/when.h"
#include "bide/with_stop.h"

typedef bide_channel(uint32_t) numbers;
typedef bide_rendezvous(uint32_t) meetings;

enum { ACTORS = 6, CASES = 5, STEPS = 4000, PLACES = 4 };

/* The objects of cases: the channel, the rendezvous, the event. */
enum { CHANNEL, FIRST_MEETING, SECOND_MEETING, EVENT };

typedef struct way {
    unsigned place;
    bool sends;
} way;

typedef struct actor {
    bide_task task;
    bide_context context;
    bide_stop_source stop, token;
    bide_select select;
    bide_select_case cases[CASES];
    bide_with_stop_operation with_stop;
    bide_when when;
    bide_branch branch;
    union {
        bide_channel_waiter channel;
        bide_rendezvous_sender sender;
        bide_rendezvous_receiver receiver;
        bide_event_waiter event;
    } waits[CASES];
    way ways[CASES];
    size_t count;
    bool selects;
    unsigned wrapper;
    uint64_t random;
    uint32_t sent, received;
    int status;
    bool waits_now;
} actor;

enum told { NOT_SENT, MAYBE_SENT, SENT };

static struct {
    bide_channel_slot(uint32_t) slots[1];
    numbers channel;
    meetings meetings[2];
    bide_event event;
    by_hand by_hand;
    actor actors[ACTORS];
    enum told told[STEPS];
    uint8_t received[STEPS];
    uint32_t next, lost; /* receivers that were destroyed */
    uint32_t ended;
} the;

static void has_received(uint32_t number)
{
    assert_in_range(number, 1, the.next - 1);
    the.received[number]++;
}

static bide_awaiter *operation(actor *self, size_t i)
{
    way way = self->ways[i];
    switch (way.place) {
    case CHANNEL:
        return way.sends
                   ? bide_channel_send(&self->waits[i].channel, &the.channel, &self->sent)
                   : bide_channel_recv(&self->waits[i].channel, &the.channel, &self->received);
    case EVENT:
        return bide_event_wait(&self->waits[i].event, &the.event);
    default:
        return way.sends ? bide_rendezvous_send(&self->waits[i].sender,
                                                &the.meetings[way.place - 1], &self->sent)
                         : bide_rendezvous_recv(&self->waits[i].receiver,
                                                   &the.meetings[way.place - 1], &self->received);
    }
}

static bide_awaiter *chosen(actor *self)
{
    if (!self->selects)
        return operation(self, 0);
    for (size_t i = 0; i < self->count; i++)
        bide_select_case_init(&self->cases[i], operation(self, i));
    return bide_select_any(&self->select, self->cases, self->count, &self->random);
}

static bide_awaiter *wrapped(actor *self)
{
    bide_awaiter *inner = chosen(self);
    if (self->wrapper == 1)
        return bide_with_stop(&self->with_stop, &self->token, inner);
    if (self->wrapper == 2) {
        bide_branch_init(&self->branch, inner);
        return bide_when_any(&self->when, &self->branch, 1);
    }
    return inner;
}

bide_coroutine(actor_body)
{
    bide_begin(actor_body, actor * self);
    bide_await_status(self->status, wrapped(self));
    self->waits_now = false;
    the.ended++;
    size_t winner = self->selects ? bide_select_winner(&self->select) : 0;
    if (self->wrapper == 2)
        self->status = self->branch.status;
    if (self->status == 0) {
        assert_in_range(winner, 0, self->count - 1);
        if (self->ways[winner].sends)
            the.told[self->sent] = SENT;
        else if (self->ways[winner].place != EVENT)
            has_received(self->received);
    } else {
        assert_int_equal(self->status, -ECANCELED);
    }
    if (self->status != 0 || !self->ways[winner].sends)
        assert_int_equal(the.received[self->sent], 0);
    if (self->status != 0 || self->ways[winner].sends || self->ways[winner].place == EVENT)
        assert_int_equal(self->received, 0);
    bide_end();
}

/* Its ways are known. */
static void start(actor *self)
{
    self->sent = the.next++;
    self->waits_now = true;
    bide_stop_source_init(&self->stop);
    bide_stop_source_init(&self->token);
    self->context = the.by_hand.context;
    self->context.stop = &self->stop;
    bide_start(&self->task.frame, &actor_body, &self->context);
    bide_resume(&self->task.frame);
}

static void begin(actor *self, uint64_t *random)
{
    memset(self, 0, sizeof *self);
    self->random = testing_random(random);
    self->selects = self->random % 4 != 0;
    self->wrapper = (unsigned)(self->random >> 8) % 4;
    self->count = self->selects ? (size_t)(self->random >> 16) % (CASES + 1) : 1;
    for (size_t i = 0; i < self->count; i++) {
        uint64_t number = testing_random(random);
        self->ways[i].place = (unsigned)(number >> 8) % PLACES;
        self->ways[i].sends = self->ways[i].place != EVENT && number % 2 == 0;
    }
    start(self);
}

/* Its received element is lost with it; its sent element may have been received. */
static void destroy(actor *self)
{
    the.told[self->sent] = MAYBE_SENT;
    the.lost += self->received != 0;
    bide_destroy(&self->task.frame);
    self->waits_now = false;
}

static bool waits(const actor *self, unsigned place, bool sends)
{
    for (size_t i = 0; self->waits_now && i < self->count; i++)
        if (self->ways[i].place == place && self->ways[i].sends == sends)
            return true;
    return false;
}

/* Nothing is left to run: no operation waits although it could complete. */
static void assert_at_rest(void)
{
    size_t full = bide_channel_count(&the.channel);
    for (size_t i = 0; i < ACTORS; i++) {
        const actor *one = &the.actors[i];
        assert_false(full != 0 && waits(one, CHANNEL, false));
        assert_false(full == 0 && waits(one, CHANNEL, true));
        for (size_t j = 0; j < ACTORS; j++)
            for (unsigned place = FIRST_MEETING; place <= SECOND_MEETING; place++)
                assert_false(i != j && waits(one, place, true) &&
                             waits(&the.actors[j], place, false));
    }
}

static void step_one(void)
{
    bide_awaiter *awaiter = bide_awaiter_chain_take(&the.by_hand.queue);
    if (awaiter != NULL)
        bide_resume(awaiter->frame);
    else
        assert_at_rest();
}

/* A partner that sends or receives without waiting. */
static void try_one(uint64_t number)
{
    unsigned place = (unsigned)(number >> 8) % EVENT;
    uint32_t value = 0;
    int status;
    if (number % 2 == 0) {
        value = the.next++;
        status = place == CHANNEL ? bide_channel_try_send(&the.channel, &value)
                                  : bide_rendezvous_try_send(&the.meetings[place - 1], &value);
        the.told[value] = status == 0 ? SENT : NOT_SENT;
    } else {
        status = place == CHANNEL ? bide_channel_try_recv(&the.channel, &value)
                                  : bide_rendezvous_try_recv(&the.meetings[place - 1], &value);
        if (status == 0)
            has_received(value);
    }
    assert_true(status == 0 || status == -EAGAIN || status == -ENOBUFS);
}

static void act(uint64_t *random)
{
    uint64_t number = testing_random(random);
    actor *one = &the.actors[(number >> 32) % ACTORS];
    unsigned what = (unsigned)(number % 16);
    if (what < 6) {
        step_one();
    } else if (what < 11) {
        if (!one->waits_now)
            begin(one, random);
    } else if (what == 11 && one->waits_now) {
        bide_stop_request(one->wrapper == 1 ? &one->token : &one->stop);
    } else if (what == 12 && one->waits_now) {
        destroy(one);
    } else if (what == 13) {
        bide_event_set(&the.event);
        bide_event_reset(&the.event);
    } else if (what > 13) {
        try_one(number >> 8);
    }
}

static void set_up(void)
{
    memset(&the, 0, sizeof the);
    by_hand_init(&the.by_hand);
    bide_channel_init(&the.channel, the.slots, 1);
    bide_rendezvous_init(&the.meetings[0]);
    bide_rendezvous_init(&the.meetings[1]);
    bide_event_init(&the.event, false);
    the.next = 1;
}

static void tear_down(void)
{
    bide_channel_destroy(&the.channel);
    bide_rendezvous_destroy(&the.meetings[0]);
    bide_rendezvous_destroy(&the.meetings[1]);
    bide_event_destroy(&the.event);
}

static void play(uint64_t seed)
{
    uint64_t random = seed;
    uint32_t value, missing = 0;
    set_up();
    while (the.next < STEPS / 2)
        act(&random);
    by_hand_run(&the.by_hand);
    assert_at_rest();
    for (size_t i = 0; i < ACTORS; i++)
        if (the.actors[i].waits_now)
            destroy(&the.actors[i]);
    by_hand_run(&the.by_hand);
    while (bide_channel_try_recv(&the.channel, &value) == 0)
        has_received(value);
    for (uint32_t i = 1; i < the.next; i++) {
        assert_in_range(the.received[i], 0, the.told[i] == NOT_SENT ? 0 : 1);
        missing += the.told[i] == SENT && the.received[i] == 0;
    }
    assert_in_range(missing, 0, the.lost);
    assert_in_range(the.ended, STEPS / 20, STEPS);
    tear_down();
}

/*
 * Both offer in the second rendezvous, in which both receive. Each wakes the other, takes back its own offer, and finds
 * nothing: if the two did this in step, they would do it forever.
 */
static void two_that_face_each_other_meet(void **state)
{
    static const way first[] = {
        {EVENT, false}, {FIRST_MEETING, true}, {SECOND_MEETING, true}, {SECOND_MEETING, false}};
    static const way second[] = {{EVENT, false},
                                 {FIRST_MEETING, true},
                                 {FIRST_MEETING, true},
                                 {SECOND_MEETING, true},
                                 {SECOND_MEETING, false}};
    (void)state;
    for (uint64_t seed = 0; seed < 256; seed++) {
        set_up();
        for (size_t i = 0; i < 2; i++) {
            actor *self = &the.actors[i];
            self->random = seed * 2 + i;
            self->selects = true;
            self->count =
                i == 0 ? sizeof first / sizeof first[0] : sizeof second / sizeof second[0];
            memcpy(self->ways, i == 0 ? first : second, self->count * sizeof(way));
            start(self);
        }
        bide_awaiter *awaiter;
        for (int turns = 0;
             turns < 10000 && (awaiter = bide_awaiter_chain_take(&the.by_hand.queue)) != NULL;
             turns++)
            bide_resume(awaiter->frame);
        assert_null(the.by_hand.queue.first);
        assert_int_equal(the.ended, 2);
        tear_down();
    }
}

static void no_wait_remains_for_what_can_be_had_and_nothing_is_lost(void **state)
{
    (void)state;
    uint64_t seed = testing_seed();
    for (int round = 0; round < 100; round++)
        play(seed + (uint64_t)round);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_that_face_each_other_meet),
        cmocka_unit_test(no_wait_remains_for_what_can_be_had_and_nothing_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
