/*
 * The multi-producer sequencer, 8 bits wide, around the wrap: several producers that claim and
 * publish, a reader, and a closer. A slot of a ring is plain memory, so a write while the slot may
 * still be read, or a read before it is written, is a race.
 */
#include "bide/check.h"
#include "bide/coroutine.h"
#include "bide/handle.h"
#include "bide/sequence8.h"
#include "bide/stop.h"
#include "bide/task.h"
#include "bide/extend/choice.h"
#include "bide/extend/wrapper.h"

#include "watched.h"

#include <errno.h>

enum { FIRST = 255, SIZE = 4 };

typedef struct state {
    bide_sequence_barrier8 consumed;
    bide_sequence_barrier8 *members[1];
    bide_sequence_group8 gate;
    bide_sequence_slot8 words[SIZE];
    bide_multi_producer_sequencer8 sequencer;
    int slots[SIZE];
    int claimed; /* did the claim succeed? checked at its end */
    int reason;  /* the reason of the close: written before it */
    bide_stop_source stop;
    bide_context context; /* with it */
    struct early *early[2];
    struct chooser *chooser;
    struct early_reader *reader;
    bide_atomic(uint32_t) ended_in; /* the thread in which the reader has ended */
} state;

static void setup_size(state *s, uint8_t size)
{
    bide_sequence_barrier8_init(&s->consumed, FIRST - 1);
    WATCH(&s->consumed.waiters);
    s->members[0] = &s->consumed;
    bide_sequence_group8_init(&s->gate, s->members, 1);
    bide_check_assert(bide_multi_producer_sequencer8_init(&s->sequencer, s->words, size, &s->gate,
                                                          FIRST - 1) == 0);
    WATCH(&s->sequencer.readers);
}

static void setup_two(void *p)
{
    setup_size(p, 2);
}

static void setup_one(void *p)
{
    setup_size(p, 1);
}

static int *slot_of(state *s, uint8_t sequence)
{
    return &s->slots[sequence & (uint8_t)(s->sequencer.size - 1)];
}

/* Claims one without waiting, fills it and publishes it; false if there was none. */
static bool try_to_produce(state *s)
{
    uint8_t sequence;
    if (bide_multi_producer_sequencer8_try_claim(&s->sequencer, 1, &sequence) == 0)
        return false;
    *slot_of(s, sequence) = sequence + 1000;
    bide_multi_producer_sequencer8_publish(&s->sequencer, sequence);
    return true;
}

static void produce_at_once(void *p)
{
    bide_check_assert(try_to_produce(p));
}

/* The same, waiting. */
static int produce(state *s)
{
    bide_multi_producer_claim8 claim;
    int status = bide_check_await(bide_multi_producer_sequencer8_claim_one(&claim, &s->sequencer));
    bide_check_assert((claim.count == 1) == (status == 0));
    if (status == 0) {
        *slot_of(s, claim.first) = claim.first + 1000;
        bide_multi_producer_sequencer8_publish(&s->sequencer, claim.first);
    }
    return status;
}

static void produce_waiting(void *p)
{
    bide_check_assert(produce(p) == 0);
}

/* Claims, fills and publishes two at once. */
static void produce_range(void *p)
{
    state *s = p;
    uint8_t first;
    bide_check_assert(bide_multi_producer_sequencer8_try_claim(&s->sequencer, 2, &first) == 2);
    for (uint8_t i = 0; i < 2; i++)
        *slot_of(s, (uint8_t)(first + i)) = (uint8_t)(first + i) + 1000;
    bide_multi_producer_sequencer8_publish_range(&s->sequencer, first, 2);
}

/* Waits for `target`, and reads everything that is published. */
static int read_until(state *s, uint8_t target, uint8_t known, uint8_t *published)
{
    bide_multi_producer_waiter8 wait;
    int status = bide_check_await(
        bide_multi_producer_sequencer8_wait_until_published(&wait, &s->sequencer, target, known));
    bide_check_assert(status == -EPIPE ||
                      (status == 0 && !bide_sequence8_precedes(wait.published, target)));
    for (uint8_t next = (uint8_t)(known + 1); next != (uint8_t)(wait.published + 1); next++) {
        if (!bide_multi_producer_sequencer8_is_abandoned(&s->sequencer, next))
            bide_check_assert(*slot_of(s, next) == next + 1000);
    }
    *published = wait.published;
    return status;
}

static void read_second(void *p)
{
    uint8_t published;
    bide_check_assert(read_until(p, (uint8_t)(FIRST + 1), FIRST - 1, &published) == 0);
}

/*
 * A reader since the setup, which continues in the thread that ends its wait: up to a number, or to
 * the end.
 */
struct early_reader {
    bide_task task;
    state *state;
    bide_multi_producer_waiter8 wait;
    uint8_t target;
    bool to_the_end;
    int status;
    int seen; /* and not abandoned */
};

bide_coroutine(early_reader_body)
{
    bide_begin(early_reader_body, struct early_reader * self);
    self->wait.published = FIRST - 1;
    do {
        bide_await_status(self->status, bide_multi_producer_sequencer8_wait_until_published(
                                            &self->wait, &self->state->sequencer, self->target,
                                            self->wait.published));
        for (uint8_t next = (uint8_t)(self->wait.known + 1);
             next != (uint8_t)(self->wait.published + 1); next++) {
            if (!bide_multi_producer_sequencer8_is_abandoned(&self->state->sequencer, next)) {
                bide_check_assert(*slot_of(self->state, next) == next + 1000);
                self->seen++;
            }
        }
        bide_sequence_barrier8_publish(&self->state->consumed, self->wait.published);
        self->target = (uint8_t)(self->wait.published + 1);
    } while (self->to_the_end && self->status == 0);
    bide_end();
}

static void begin_reader(state *s, uint8_t target, bool to_the_end)
{
    struct early_reader *reader = s->reader = bide_check_alloc(sizeof *reader);
    reader->state = s;
    reader->target = target;
    reader->to_the_end = to_the_end;
    reader->seen = 0;
    bide_start(&reader->task.frame, &early_reader_body, &bide_default_context);
    bide_resume(&reader->task.frame);
}

static void setup_reader_of_second(void *p)
{
    setup_two(p);
    begin_reader(p, (uint8_t)(FIRST + 1), false);
}

static void setup_reader_of_first(void *p)
{
    setup_two(p);
    begin_reader(p, FIRST, false);
}

static void reader_has_read(void *p)
{
    state *s = p;
    bide_check_assert(bide_done(&s->reader->task.frame) && s->reader->status == 0);
    bide_check_free(s->reader);
}

/* ---- Publishing in any order ---- */

static const bide_check_scenario any_order = {
    .name = "two_publish_and_a_reader_waits_for_both",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_reader_of_second,
    .threads = {produce_at_once, produce_at_once},
    .finish = reader_has_read,
    .never_spurious = true,
};

static const bide_check_scenario any_order_and_come = {
    .name = "two_publish_while_a_reader_comes_to_wait_for_both",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two,
    .threads = {produce_at_once, produce_at_once, read_second},
    .never_spurious = true,
};

static const bide_check_scenario range = {
    .name = "two_are_published_at_once_and_a_reader_waits_for_the_second",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two,
    .threads = {produce_range, read_second},
};

static const bide_check_scenario two_readers = {
    .name = "two_wait_on_both_sides_of_what_is_published",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_reader_of_first,
    .threads = {produce_range, read_second},
    .finish = reader_has_read,
    .never_spurious = true,
};

static void look_at_second(void *p)
{
    state *s = p;
    uint8_t second = (uint8_t)(FIRST + 1);
    if (bide_multi_producer_sequencer8_is_published(&s->sequencer, second))
        bide_check_assert(*slot_of(s, second) == second + 1000);
}

static const bide_check_scenario inside_range = {
    .name = "a_wait_for_a_number_inside_a_range_lets_it_be_read",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two,
    .threads = {produce_range, look_at_second},
};

/* ---- Claiming ---- */

/*
 * Both slots are read while two threads claim: one reads the gate, the other may use the first
 * one's result.
 */
static void setup_full(void *p)
{
    setup_two(p);
    produce_range(p);
}

static void read_both(void *p)
{
    state *s = p;
    uint8_t published;
    bide_check_assert(read_until(s, (uint8_t)(FIRST + 1), FIRST - 1, &published) == 0);
    bide_sequence_barrier8_publish(&s->consumed, published);
}

static void produce_if_there_is_one(void *p)
{
    try_to_produce(p);
}

static const bide_check_scenario hint = {
    .name = "two_claim_what_a_reader_gives_back",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_full,
    .threads = {read_both, produce_if_there_is_one, produce_if_there_is_one},
    .never_spurious = true,
};

/* ---- Closing ---- */

static void close_it(void *p)
{
    state *s = p;
    s->reason = 1;
    bide_multi_producer_sequencer8_close(&s->sequencer);
}

static void produce_or_find_it_closed(void *p)
{
    state *s = p;
    int status = produce(s);
    bide_check_assert(status == 0 || status == -EPIPE);
    s->claimed = status == 0;
}

/* Reads everything until the close. Everything that was published before the close was read. */
static void setup_reader_of_all(void *p)
{
    setup_two(p);
    begin_reader(p, FIRST, true);
}

static void all_was_read(void *p)
{
    state *s = p;
    bide_check_assert(bide_done(&s->reader->task.frame) && s->reader->status == -EPIPE);
    bide_check_assert(s->reader->seen == s->claimed);
    bide_check_free(s->reader);
}

static const bide_check_scenario closed = {
    .name = "it_is_closed_while_a_producer_claims_and_publishes",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_reader_of_all,
    .threads = {produce_or_find_it_closed, close_it},
    .finish = all_was_read,
    .never_spurious = true,
};

/* The waiter meets the close, and another thread that publishes an earlier claim. */
static void setup_claimed(void *p)
{
    state *s = p;
    uint8_t first;
    setup_two(p);
    bide_check_assert(bide_multi_producer_sequencer8_try_claim(&s->sequencer, 1, &first) == 1);
}

static void publish_and_close(void *p)
{
    state *s = p;
    *slot_of(s, FIRST) = FIRST + 1000;
    bide_multi_producer_sequencer8_publish(&s->sequencer, FIRST);
    close_it(p);
}

static void close_and_publish(void *p)
{
    state *s = p;
    close_it(p);
    *slot_of(s, FIRST) = FIRST + 1000;
    bide_multi_producer_sequencer8_publish(&s->sequencer, FIRST);
}

static void read_second_in_vain(void *p)
{
    state *s = p;
    uint8_t published;
    bide_check_assert(read_until(s, (uint8_t)(FIRST + 1), FIRST - 1, &published) == -EPIPE);
    bide_check_assert(published == FIRST && s->reason == 1);
}

static const bide_check_scenario closed_after = {
    .name = "a_producer_publishes_and_closes_while_a_reader_waits",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_claimed,
    .threads = {publish_and_close, read_second_in_vain},
    .never_spurious = true,
};

static const bide_check_scenario closed_before = {
    .name = "a_producer_closes_and_publishes_while_a_reader_waits",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_claimed,
    .threads = {close_and_publish, read_second_in_vain},
    .never_spurious = true,
};

static void setup_full_one(void *p)
{
    setup_one(p);
    produce_at_once(p);
}

static void produce_in_vain(void *p)
{
    bide_check_assert(produce(p) == -EPIPE);
    bide_check_assert(((state *)p)->reason == 1);
}

static const bide_check_scenario closed_at_gate = {
    .name = "it_is_closed_while_two_wait_for_a_slot",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_full_one,
    .threads = {produce_in_vain, produce_in_vain, close_it},
    .never_spurious = true,
};

/* The claim at the gate finds its slot free, or is cancelled by the closer, or both. */
static void read_the_one(void *p)
{
    state *s = p;
    uint8_t published;
    bide_check_assert(read_until(s, FIRST, FIRST - 1, &published) == 0);
    bide_sequence_barrier8_publish(&s->consumed, FIRST);
}

static void produce_or_know_why_not(void *p)
{
    state *s = p;
    int status = produce(s);
    bide_check_assert(status == 0 || (status == -EPIPE && s->reason == 1));
}

static const bide_check_scenario closed_while_freed = {
    .name = "it_is_closed_while_a_slot_becomes_free",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_full_one,
    .threads = {produce_or_know_why_not, close_it, read_the_one},
    .never_spurious = true,
};

/* ---- An open sequencer is not mistaken for a closed one ----
 *
 * A producer that is its own consumer claims, and claims the slots again that it has freed, so that `consumed` passes
 * the initial `next`. */

static void setup_moving(void *p)
{
    state *s = p;
    setup_full(p);
    bide_sequence_barrier8_publish(&s->consumed, FIRST + 1 - 256);
}

static void produce_and_consume(void *p)
{
    state *s = p;
    uint8_t sequence;
    if (!try_to_produce(s))
        return;
    bide_sequence_barrier8_publish(&s->consumed, FIRST + 2 - 256);
    try_to_produce(s);
    /* Reads the gate, which has passed the first `next`. */
    bide_multi_producer_sequencer8_try_claim(&s->sequencer, 1, &sequence);
}

static void find_it_open(void *p)
{
    state *s = p;
    bide_check_assert(!bide_multi_producer_sequencer8_is_closed(&s->sequencer));
}

static void close_and_find_it_closed(void *p)
{
    state *s = p;
    close_it(p);
    bide_check_assert(bide_multi_producer_sequencer8_is_closed(&s->sequencer));
}

static void wait_for_third(void *p)
{
    state *s = p;
    bide_multi_producer_waiter8 wait;
    bide_check_assert(bide_check_await(bide_multi_producer_sequencer8_wait_until_published(
                          &wait, &s->sequencer, FIRST + 2 - 256, FIRST + 1 - 256)) == 0);
}

static const bide_check_scenario open_while_moving = {
    .name = "a_look_beside_a_claim_finds_it_open",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_moving,
    .threads = {produce_and_consume, find_it_open},
};

static const bide_check_scenario closed_while_moving = {
    .name = "the_closer_finds_it_closed_beside_a_claim",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_moving,
    .threads = {produce_and_consume, close_and_find_it_closed},
};

/*
 * One thread publishes, another has read that already and claims more, a third still waits for it.
 */
static void consume_third_and_claim(void *p)
{
    state *s = p;
    uint8_t sequence;
    if (!bide_multi_producer_sequencer8_is_published(&s->sequencer, FIRST + 2 - 256))
        return;
    bide_sequence_barrier8_publish(&s->consumed, FIRST + 2 - 256);
    for (int i = 0; i < 2; i++)
        bide_check_assert(bide_multi_producer_sequencer8_try_claim(&s->sequencer, 1, &sequence) ==
                          1);
}

static const bide_check_scenario waiting_while_moving = {
    .name = "a_wait_beside_a_claim_does_not_find_it_closed",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_moving,
    .threads = {produce_at_once, consume_third_and_claim, wait_for_third},
    .never_spurious = true,
};

/* ---- Claims that are cancelled ----
 *
 * Two claims wait since the setup: one at the gate, with a source of its own, and one behind it. */

struct early {
    bide_task task;
    state *state;
    bide_multi_producer_claim8 claim;
    int status;
};

bide_coroutine(early_body)
{
    bide_begin(early_body, struct early * self);
    bide_await_status(self->status, bide_multi_producer_sequencer8_claim_one(
                                        &self->claim, &self->state->sequencer));
    if (self->status == 0)
        *slot_of(self->state, self->claim.first) = 0;
    bide_end();
}

static void setup_early(void *p)
{
    state *s = p;
    setup_full_one(p);
    bide_stop_source_init(&s->stop);
    s->context = (bide_context){&bide_inline_scheduler, &s->stop, NULL, NULL, NULL};
    for (int i = 0; i < 2; i++) {
        struct early *early = s->early[i] = bide_check_alloc(sizeof *early);
        early->state = s;
        bide_start(&early->task.frame, &early_body, i == 0 ? &s->context : &bide_default_context);
        bide_resume(&early->task.frame);
        bide_check_assert(!bide_done(&early->task.frame));
    }
}

/*
 * One slot: one waiter is at the gate since the setup; another lines up behind it, or comes when
 * the first has the slot.
 */
bide_coroutine(early_producer_body)
{
    bide_begin(early_producer_body, struct early * self);
    bide_await_status(self->status, bide_multi_producer_sequencer8_claim_one(
                                        &self->claim, &self->state->sequencer));
    bide_check_assert(self->status == 0);
    *slot_of(self->state, self->claim.first) = self->claim.first + 1000;
    bide_multi_producer_sequencer8_publish(&self->state->sequencer, self->claim.first);
    bide_end();
}

static void setup_early_producer(void *p)
{
    state *s = p;
    setup_full_one(p);
    struct early *early = s->early[0] = bide_check_alloc(sizeof *early);
    early->state = s;
    bide_start(&early->task.frame, &early_producer_body, &bide_default_context);
    bide_resume(&early->task.frame);
    bide_check_assert(!bide_done(&early->task.frame));
}

/* One after the other, with the slot released in between. */
static void read_two(void *p)
{
    state *s = p;
    uint8_t published = FIRST - 1;
    for (int i = 0; i < 2; i++) {
        bide_check_assert(read_until(s, (uint8_t)(published + 1), published, &published) == 0);
        bide_sequence_barrier8_publish(&s->consumed, published);
    }
}

static void early_has_produced(void *p)
{
    state *s = p;
    bide_check_assert(bide_done(&s->early[0]->task.frame));
    bide_check_free(s->early[0]);
}

static const bide_check_scenario one_slot = {
    .name = "two_claim_the_only_slot_and_its_reader_gives_it_back",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_early_producer,
    .threads = {produce_waiting, read_two},
    .finish = early_has_produced,
    .never_spurious = true,
};

/* ---- A claim as a case of a select: it waits for room, and then takes a slot, or does not ---- */

struct chooser {
    bide_task task;
    state *state;
    bide_multi_producer_claim8 claim;
    const bide_awaiter_ops *ops;
    bide_choice choice;
    bool takes; /* otherwise another case is chosen when there is room */
    int status;
};

static int attempt_claim(struct chooser *self)
{
    bide_choice_init(&self->choice);
    self->choice.number = 1;
    return self->ops->attempt(&self->claim.frame.awaiter, &self->choice);
}

bide_coroutine(chooser_body)
{
    bide_begin(chooser_body, struct chooser * self);
    bide_await_later(
        bide_multi_producer_sequencer8_claim_one(&self->claim, &self->state->sequencer));
    self->ops = self->claim.frame.awaiter.ops;
    while ((self->status = attempt_claim(self)) == -EAGAIN) {
        bide_await_status(self->status, self->choice.wait);
        if (self->status == 0 && !self->takes) {
            bide_wrapper_release(&self->choice.wait);
            break;
        }
    }
    if (self->status == 0 && self->takes) {
        *slot_of(self->state, self->claim.first) = self->claim.first + 1000;
        bide_multi_producer_sequencer8_publish(&self->state->sequencer, self->claim.first);
    }
    bide_end();
}

static void begin_chooser(state *s, bool takes)
{
    setup_full_one(s);
    struct chooser *chooser = s->chooser = bide_check_alloc(sizeof *chooser);
    chooser->state = s;
    chooser->takes = takes;
    bide_start(&chooser->task.frame, &chooser_body, &bide_default_context);
    bide_resume(&chooser->task.frame);
    bide_check_assert(!bide_done(&chooser->task.frame));
}

static void setup_chooser(void *p)
{
    begin_chooser(p, true);
}

static void setup_loser(void *p)
{
    begin_chooser(p, false);
}

static void chooser_has_ended(void *p)
{
    state *s = p;
    bide_check_assert(bide_done(&s->chooser->task.frame));
    bide_check_assert(s->chooser->status == 0 || s->chooser->status == -EPIPE);
    bide_check_free(s->chooser);
    bide_check_assert(bide_atomic_load(&s->sequencer.turn.lined, relaxed) == 0);
    bide_check_assert(!bide_mutex_is_locked(&s->sequencer.turn.mutex));
}

static const bide_check_scenario chosen = {
    .name = "a_select_chooses_a_claim_of_the_only_slot_beside_another_claim",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_chooser,
    .threads = {produce_waiting, read_two},
    .finish = chooser_has_ended,
    .never_spurious = true,
};

static const bide_check_scenario not_chosen = {
    .name = "a_select_does_not_choose_a_claim_and_another_has_the_only_slot",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_loser,
    .threads = {produce_waiting, read_the_one},
    .finish = chooser_has_ended,
    .never_spurious = true,
};

static const bide_check_scenario chosen_or_closed = {
    .name = "it_is_closed_while_a_select_waits_for_a_slot",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_chooser,
    .threads = {close_it, read_the_one},
    .finish = chooser_has_ended,
    .never_spurious = true,
};

static const bide_check_scenario at_gate = {
    .name = "the_only_slot_is_claimed_while_its_reader_gives_it_back",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_full_one,
    .threads = {produce_waiting, read_the_one},
    .never_spurious = true,
};

static void ask_to_stop(void *p)
{
    bide_stop_request(&((state *)p)->stop);
}

static void nobody_is_in_line(state *s)
{
    bide_check_assert(bide_atomic_load(&s->sequencer.turn.lined, relaxed) == 0);
}

static void both_have_ended(state *s)
{
    nobody_is_in_line(s);
    for (int i = 0; i < 2; i++) {
        bide_check_assert(bide_done(&s->early[i]->task.frame));
        bide_check_assert((s->early[i]->claim.count == 1) == (s->early[i]->status == 0));
        bide_check_free(s->early[i]);
    }
}

static void both_end_in_vain(void *p)
{
    state *s = p;
    bide_check_assert(s->early[0]->status == -EPIPE || s->early[0]->status == -ECANCELED);
    bide_check_assert(s->early[1]->status == -EPIPE);
    both_have_ended(s);
}

static const bide_check_scenario closed_while_asked = {
    .name = "it_is_closed_while_the_first_in_line_is_asked_to_stop",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_early,
    .threads = {ask_to_stop, close_it},
    .finish = both_end_in_vain,
};

/* The first has the slot, or it is cancelled and the second has it. */
static void one_has_the_slot(void *p)
{
    state *s = p;
    if (s->early[0]->status == 0) {
        bide_check_assert(!bide_done(&s->early[1]->task.frame));
        bide_multi_producer_sequencer8_close(&s->sequencer);
        bide_check_assert(s->early[1]->status == -EPIPE);
    } else {
        bide_check_assert(s->early[0]->status == -ECANCELED && s->early[1]->status == 0);
    }
    both_have_ended(s);
}

static const bide_check_scenario freed_while_asked = {
    .name = "a_slot_becomes_free_while_another_asks_the_first_in_line_to_stop",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_early,
    .threads = {ask_to_stop, read_the_one},
    .finish = one_has_the_slot,
};

/* ---- Overtaking the line ----
 *
 * One claim waits, and both slots become free: another claim may take one, and leaves the other. */

static void setup_one_early(void *p)
{
    state *s = p;
    setup_full(p);
    struct early *early = s->early[0] = bide_check_alloc(sizeof *early);
    early->state = s;
    bide_start(&early->task.frame, &early_body, &bide_default_context);
    bide_resume(&early->task.frame);
    bide_check_assert(!bide_done(&early->task.frame));
}

static void produce_past_the_line(void *p)
{
    state *s = p;
    uint8_t first;
    uint8_t count = bide_multi_producer_sequencer8_try_claim(&s->sequencer, 2, &first);
    for (uint8_t i = 0; i < count; i++)
        *slot_of(s, (uint8_t)(first + i)) = 1;
    s->claimed = count;
}

static void the_early_claim_has_its_slot(void *p)
{
    state *s = p;
    nobody_is_in_line(s);
    bide_check_assert(s->claimed <= 1 && bide_done(&s->early[0]->task.frame));
    bide_check_assert(s->early[0]->status == 0 && s->early[0]->claim.count == 1);
    bide_check_free(s->early[0]);
}

static const bide_check_scenario past_the_line = {
    .name = "a_claim_that_does_not_wait_leaves_a_slot_to_the_waiting_one",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one_early,
    .threads = {read_both, produce_past_the_line},
    .finish = the_early_claim_has_its_slot,
};

/* ---- Joining ----
 *
 * The fixed member reads on the producer's thread, and the one slot is claimed again as soon as the gate allows it. */

static void produce_twice_and_consume(void *p)
{
    state *s = p;
    produce_at_once(p);
    bide_sequence_barrier8_publish(&s->consumed, FIRST);
    try_to_produce(p);
}

/* It may read the elements after its start, if they are published. */
static void join_and_read(void *p)
{
    state *s = p;
    bide_sequence_group_member8 member;
    bide_sequence_barrier8 own;
    uint8_t start;
    bide_check_assert(bide_multi_producer_sequencer8_join(&s->sequencer, &member, &own, &start) ==
                      0);
    uint8_t next = (uint8_t)(start + 1);
    bide_check_assert((uint8_t)(start - (FIRST - 1)) <= 2);
    if (bide_multi_producer_sequencer8_is_published(&s->sequencer, next)) {
        bide_check_assert(*slot_of(s, next) == next + 1000);
        bide_sequence_barrier8_publish(&own, next);
    }
    bide_sequence_group_leaver8 leaver;
    bide_check_assert(bide_check_await(bide_sequence_group8_leave(&leaver, &s->gate, &member)) ==
                      0);
}

static const bide_check_scenario joins = {
    .name = "what_comes_after_a_joiners_start_is_not_written_over",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one,
    .threads = {produce_twice_and_consume, join_and_read},
};

/* No slot becomes free: the second is at the gate by then. */
static void first_was_cut_short(void *p)
{
    state *s = p;
    bide_check_assert(s->early[0]->status == -ECANCELED);
    bide_check_assert(!bide_done(&s->early[1]->task.frame));
    bide_multi_producer_sequencer8_close(&s->sequencer);
    bide_check_assert(s->early[1]->status == -EPIPE);
    both_have_ended(s);
}

static const bide_check_scenario asked = {
    .name = "the_first_in_line_is_asked_to_stop",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_early,
    .threads = {ask_to_stop},
    .finish = first_was_cut_short,
};

/* ---- Closed twice ---- */

static void only_close_it(void *p)
{
    bide_multi_producer_sequencer8_close(&((state *)p)->sequencer);
}

static void it_is_closed(void *p)
{
    bide_check_assert(bide_multi_producer_sequencer8_is_closed(&((state *)p)->sequencer));
}

static const bide_check_scenario closed_twice = {
    .name = "two_close_it",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two,
    .threads = {only_close_it, only_close_it},
    .finish = it_is_closed,
};

/* ---- A slot of a range is claimed again as early as allowed ---- */

static void consume_first_and_produce(void *p)
{
    state *s = p;
    if (!bide_multi_producer_sequencer8_is_published(&s->sequencer, FIRST))
        return;
    bide_sequence_barrier8_publish(&s->consumed, FIRST);
    s->claimed = try_to_produce(s);
}

static void third_is_published(void *p)
{
    state *s = p;
    bide_check_assert(s->claimed == 0 ||
                      bide_multi_producer_sequencer8_is_published(&s->sequencer, FIRST + 2 - 256));
}

static const bide_check_scenario range_used_again = {
    .name = "two_are_published_at_once_and_the_first_slot_is_used_again",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two,
    .threads = {produce_range, consume_first_and_produce},
    .finish = third_is_published,
};

/* ---- One slot is always free ----
 *
 * Two of four slots have been read. One thread claims and consumes its own claims, so that the gate, and then
 * `consumed`, passes the initial `next`. Another thread claims meanwhile. */

static void setup_moving_of_four(void *p)
{
    state *s = p;
    setup_size(s, 4);
    produce_range(p);
    bide_sequence_barrier8_publish(&s->consumed, FIRST + 1 - 256);
}

static void produce_and_consume_three(void *p)
{
    state *s = p;
    for (int i = 0; i < 3; i++) {
        uint8_t sequence;
        uint8_t expected = (uint8_t)(FIRST + 2 + i);
        if (bide_multi_producer_sequencer8_try_claim(&s->sequencer, 1, &sequence) == 0)
            return;
        bide_multi_producer_sequencer8_publish(&s->sequencer, sequence);
        if (sequence != expected) /* the other has one slot */
            return;
        if (i < 2)
            bide_sequence_barrier8_publish(&s->consumed, sequence);
    }
}

static void claim_some(void *p)
{
    state *s = p;
    uint8_t sequence;
    bide_check_assert(bide_multi_producer_sequencer8_try_claim(&s->sequencer, 4, &sequence) != 0);
}

static const bide_check_scenario always_free = {
    .name = "a_claim_beside_a_claim_and_a_consumer_has_what_is_free",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_moving_of_four,
    .threads = {produce_and_consume_three, claim_some},
    .never_spurious = true,
};

/* ---- A wait for a number that is not claimed yet, and does not see the end ---- */

/* The list is not watched: the first publisher looks through it. */
static void setup_unwatched(void *p)
{
    setup_moving_of_four(p);
    bide_biased_list_init(&((state *)p)->sequencer.readers);
}

bide_coroutine(reader_of_later_body)
{
    bide_begin(reader_of_later_body, struct early_reader * self);
    bide_await_status(self->status,
                      bide_multi_producer_sequencer8_wait_until_published(
                          &self->wait, &self->state->sequencer, FIRST + 3 - 256, FIRST + 1 - 256));
    bide_end();
}

static void wait_for_later(void *p)
{
    state *s = p;
    s->reader = bide_check_alloc(sizeof *s->reader);
    s->reader->state = s;
    bide_start(&s->reader->task.frame, &reader_of_later_body, &bide_default_context);
    bide_resume(&s->reader->task.frame);
}

/*
 * Reads the gate, which has passed the first `next`, and claims the number that the reader waits
 * for.
 */
static void produce_consume_and_claim(void *p)
{
    state *s = p;
    uint8_t sequence;
    produce_at_once(p);
    bide_sequence_barrier8_publish(&s->consumed, FIRST + 2 - 256);
    bide_check_assert(bide_multi_producer_sequencer8_try_claim(&s->sequencer, 3, &sequence) == 3);
}

static void publish_later(void *p)
{
    state *s = p;
    bide_check_assert(!bide_done(&s->reader->task.frame));
    bide_multi_producer_sequencer8_publish(&s->sequencer, FIRST + 3 - 256);
    reader_has_read(p);
}

static const bide_check_scenario waiting_for_later = {
    .name = "a_wait_for_the_number_after_next_does_not_find_it_closed",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_unwatched,
    .threads = {produce_consume_and_claim, wait_for_later},
    .finish = publish_later,
};

/* ---- A reader is freed as soon as it has ended ---- */

bide_coroutine(reader_that_goes_body)
{
    bide_begin(reader_that_goes_body, struct early_reader * self);
    bide_await_status(self->status, bide_multi_producer_sequencer8_wait_until_published(
                                        &self->wait, &self->state->sequencer, FIRST, FIRST - 1));
    bide_check_assert(self->status == 0);
    bide_atomic_store(&self->state->ended_in, bide_check_thread(), relaxed);
    bide_end();
}

static void free_reader_if_ended_here(state *s, struct early_reader *reader)
{
    if (bide_atomic_load(&s->ended_in, relaxed) == bide_check_thread())
        bide_check_free(reader);
}

static void prepare_reader_that_goes(void *p)
{
    state *s = p;
    setup_two(p);
    bide_atomic_init(&s->ended_in, 0);
    s->reader = bide_check_alloc(sizeof *s->reader);
    s->reader->state = s;
    bide_start(&s->reader->task.frame, &reader_that_goes_body, &bide_default_context);
}

static void run_reader_that_goes(void *p)
{
    state *s = p;
    bide_resume(&s->reader->task.frame);
    free_reader_if_ended_here(s, s->reader);
}

static void produce_for_reader_that_goes(void *p)
{
    state *s = p;
    produce_at_once(p);
    free_reader_if_ended_here(s, s->reader);
}

static const bide_check_scenario reader_goes = {
    .name = "a_reader_is_freed_once_its_wait_has_ended",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = prepare_reader_that_goes,
    .threads = {produce_for_reader_that_goes, run_reader_that_goes},
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &inside_range,
        &range,
        &any_order,
        &two_readers,
        &hint,
        &past_the_line,
        &joins,
        &closed_at_gate,
        &closed_while_asked,
        &freed_while_asked,
        &closed_while_freed,
        &open_while_moving,
        &closed_while_moving,
        &waiting_while_moving,
        &any_order_and_come,
        &closed_after,
        &closed_before,
        &chosen,
        &not_chosen,
        &chosen_or_closed,
        &at_gate,
        &closed,
        &one_slot,
        &asked,
        &closed_twice,
        &range_used_again,
        &always_free,
        &waiting_for_later,
        &reader_goes,
        NULL,
    };
    static const char *const files[] = {"multi_producer_sequencer.h", "multi_producer_sequencer.c",
                                        NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
