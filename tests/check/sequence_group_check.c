/*
 * The barrier group, 8 bits wide, around the wrap: members that join and leave while others read it
 * and wait for it. A slot is plain memory, so a write while a joiner may still read it is a race.
 */
#include "bide/check.h"
#include "bide/handle.h"
#include "bide/sequence8.h"
#include "bide/stop.h"
#include "bide/task.h"

#include "watched.h"

#include <errno.h>

enum { BEGINNING = 253, FIRST = 254 };

/* A joiner; allocated, so that an access after it has left is detected. */
typedef struct visitor {
    bide_sequence_group_member8 member;
    bide_sequence_barrier8 barrier;
} visitor;

typedef struct state {
    bide_sequence_barrier8 cursor;
    bide_sequence_barrier8 fixed;
    bide_sequence_barrier8 other; /* fixed too, if there are two */
    bide_sequence_barrier8 *members[2];
    bide_sequence_group8 group;
    visitor *visitors[2]; /* joined in the setup */
    int slot;             /* of FIRST, and of the number a lap later */
    int note;             /* written once, before FIRST is published */
    struct early *early;  /* waits since the setup */
    bide_stop_source stop;
    bide_context context;                         /* with it */
    bide_atomic(bide_sequence8_counter_) counter; /* to be followed */
} state;

static void setup_for(state *s, unsigned fixed, unsigned joined)
{
    bide_sequence_barrier8_init(&s->cursor, BEGINNING);
    bide_sequence_barrier8_init(&s->fixed, BEGINNING);
    bide_sequence_barrier8_init(&s->other, BEGINNING);
    s->members[0] = &s->fixed;
    s->members[1] = &s->other;
    bide_sequence_group8_init(&s->group, s->members, fixed);
    for (unsigned i = 0; i < joined; i++) {
        s->visitors[i] = bide_check_alloc(sizeof *s->visitors[i]);
        bide_sequence_group8_join(&s->group, &s->visitors[i]->member, &s->visitors[i]->barrier,
                                  &s->cursor);
        WATCH(&s->visitors[i]->barrier.waiters);
    }
}

static void setup_fixed(void *p)
{
    setup_for(p, 1, 0);
}

/* A publication on a watched list has a full fence. */
static void setup_fixed_watched(void *p)
{
    state *s = p;
    setup_fixed(s);
    WATCH(&s->fixed.waiters);
}

static void setup_one(void *p)
{
    setup_for(p, 0, 1);
}

static void setup_fixed_and_one(void *p)
{
    state *s = p;
    setup_for(s, 1, 1);
    WATCH(&s->fixed.waiters);
}

static void setup_two(void *p)
{
    setup_for(p, 0, 2);
}

/* ---- A member joins while the ring runs ---- */

static void publish_first(state *s)
{
    s->slot = s->note = 1;
    bide_sequence_barrier8_publish(&s->cursor, FIRST);
}

/* Writes the slot again, which a waiter for the group may do. */
static void write_next_lap(state *s)
{
    s->slot = 2;
}

static bool look_for_first(state *s)
{
    uint8_t published;
    bool all = bide_sequence_group8_is_published(&s->group, FIRST, &published);
    bide_check_assert(!all || !bide_sequence8_precedes(published, FIRST));
    return all;
}

static int wait_for_first(state *s)
{
    bide_sequence_group_waiter8 wait;
    int status =
        bide_check_await(bide_sequence_group8_wait_until_published(&wait, &s->group, FIRST));
    bide_check_assert((status == 0) == !bide_sequence8_precedes(wait.published, FIRST));
    return status;
}

/* The fixed member reads on the producer's thread. */
static void produce_and_look(void *p)
{
    state *s = p;
    publish_first(s);
    bide_sequence_barrier8_publish(&s->fixed, FIRST);
    if (look_for_first(s))
        write_next_lap(s);
}

static void look_only(void *p)
{
    if (look_for_first(p))
        write_next_lap(p);
}

static void publish_both(void *p)
{
    state *s = p;
    publish_first(s);
    bide_sequence_barrier8_publish(&s->fixed, FIRST);
}

/* It can read the elements after its start, if they are published, until it reports that it has. */
static void visit(state *s, bool says_so)
{
    visitor own;
    uint8_t start = bide_sequence_group8_join(&s->group, &own.member, &own.barrier, &s->cursor);
    bide_check_assert(start == BEGINNING || start == FIRST);
    if (start == FIRST)
        bide_check_assert(s->note == 1);
    if (start == BEGINNING && bide_sequence_barrier8_last_published(&s->cursor) == FIRST) {
        bide_check_assert(s->slot == 1);
        if (says_so)
            bide_sequence_barrier8_publish(&own.barrier, FIRST);
    }
    bide_sequence_group_leaver8 leaver;
    bide_check_assert(
        bide_check_await(bide_sequence_group8_leave(&leaver, &s->group, &own.member)) == 0);
}

static void visit_and_say(void *p)
{
    visit(p, true);
}

static void visit_and_leave(void *p)
{
    visit(p, false);
}

static const bide_check_scenario joins_beside_fixed = {
    .name = "a_joiner_is_seen_or_begins_after_what_the_look_saw",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_fixed,
    .threads = {produce_and_look, visit_and_say},
};

/* Its reads come before the writes of a thread that no longer finds it in the group. */
static const bide_check_scenario leaves_beside_fixed = {
    .name = "a_member_that_has_left_has_done_with_what_it_read",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_fixed,
    .threads = {produce_and_look, visit_and_leave},
};

/* A third thread, which has not published, looks. */
static const bide_check_scenario third_looks = {
    .name = "a_third_looks_while_a_member_joins",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_fixed,
    .threads = {publish_both, look_only, visit_and_leave},
    .never_spurious = true,
};

/* A waiter since the setup, which continues in the thread that ends its wait. */
struct early {
    bide_task task;
    state *state;
    bide_sequence_group_waiter8 wait;
    int status;
};

bide_coroutine(early_body)
{
    bide_begin(early_body, struct early * self);
    bide_await_status(self->status, bide_sequence_group8_wait_until_published(
                                        &self->wait, &self->state->group, FIRST));
    if (self->status == 0)
        write_next_lap(self->state);
    bide_end();
}

static void begin_early_in(state *s, const bide_context *context)
{
    s->early = bide_check_alloc(sizeof *s->early);
    s->early->state = s;
    bide_start(&s->early->task.frame, &early_body, context);
    bide_resume(&s->early->task.frame);
}

static void begin_early(state *s)
{
    begin_early_in(s, &bide_default_context);
}

static void finish_early(void *p)
{
    state *s = p;
    bide_check_assert(bide_done(&s->early->task.frame) && s->early->status == 0);
    bide_check_free(s->early);
}

static void setup_fixed_and_early(void *p)
{
    setup_fixed_watched(p);
    begin_early(p);
}

static const bide_check_scenario early_waits = {
    .name = "a_wait_under_way_looks_again_while_a_member_joins",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_fixed_and_early,
    .threads = {publish_both, visit_and_leave},
    .finish = finish_early,
    .never_spurious = true,
};

/*
 * A publisher passes a fence before it reads anything else. So the group's own fence is needed only
 * if one thread publishes, another sees that and announces it, and a third sees the announcement
 * before the first gets to its fence.
 */
static void publish_cursor(void *p)
{
    publish_first(p);
}

static void follow(state *s, bide_sequence_barrier8 *consumed)
{
    if (bide_sequence_barrier8_last_published(&s->cursor) == FIRST)
        bide_sequence_barrier8_publish(consumed, FIRST);
}

static void follow_fixed(void *p)
{
    state *s = p;
    follow(s, &s->fixed);
}

static const bide_check_scenario fourth_looks = {
    .name = "a_joiner_is_seen_by_a_look_at_its_followers",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_fixed,
    .threads = {publish_cursor, follow_fixed, look_only, visit_and_leave},
    .never_spurious = true,
};

/*
 * One waits for the first of two, which another thread publishes, so that it then checks the
 * second.
 */
static void setup_two_fixed_and_early(void *p)
{
    state *s = p;
    setup_for(s, 2, 0);
    WATCH(&s->fixed.waiters);
    s->visitors[0] = bide_check_alloc(sizeof *s->visitors[0]);
    begin_early(s);
}

static void publish_fixed_only(void *p)
{
    bide_sequence_barrier8_publish(&((state *)p)->fixed, FIRST);
}

static void follow_other(void *p)
{
    state *s = p;
    follow(s, &s->other);
}

/* Joins, reads, and leaves in the end. */
static void join_and_read(void *p)
{
    state *s = p;
    visitor *v = s->visitors[0];
    uint8_t start = bide_sequence_group8_join(&s->group, &v->member, &v->barrier, &s->cursor);
    if (start == BEGINNING && bide_sequence_barrier8_last_published(&s->cursor) == FIRST)
        bide_check_assert(s->slot == 1);
}

/* a follower may have seen nothing */
static void finish_two_fixed(void *p)
{
    state *s = p;
    bide_sequence_barrier8_publish(&s->other, FIRST);
    bide_check_assert(bide_sequence_group8_try_leave(&s->group, &s->visitors[0]->member));
    bide_check_free(s->visitors[0]);
    finish_early(s);
}

static const bide_check_scenario early_turns = {
    .name = "a_joiner_is_seen_by_a_wait_for_its_followers",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two_fixed_and_early,
    .threads = {publish_cursor, follow_other, publish_fixed_only, join_and_read},
    .finish = finish_two_fixed,
    .never_spurious = true,
};

/* ---- A member leaves while it is waited for ---- */

static void leave_and_free(state *s, unsigned which)
{
    visitor *v = s->visitors[which];
    bide_sequence_group_leaver8 leaver;
    bide_check_assert(
        bide_check_await(bide_sequence_group8_leave(&leaver, &s->group, &v->member)) == 0);
    bide_check_free(v);
}

static void leave_first(void *p)
{
    leave_and_free(p, 0);
}

static void leave_second(void *p)
{
    leave_and_free(p, 1);
}

static void publish_and_leave(void *p)
{
    state *s = p;
    bide_sequence_barrier8_publish(&s->visitors[0]->barrier, FIRST);
    leave_and_free(s, 0);
}

static void wait_to_the_end(void *p)
{
    bide_check_assert(wait_for_first(p) == 0);
}

static void setup_one_and_early(void *p)
{
    setup_one(p);
    begin_early(p);
}

static void setup_two_and_early(void *p)
{
    setup_two(p);
    begin_early(p);
}

static void setup_fixed_one_and_early(void *p)
{
    setup_fixed_and_one(p);
    begin_early(p);
}

static void publish_fixed(void *p)
{
    bide_sequence_barrier8_publish(&((state *)p)->fixed, FIRST);
}

static const bide_check_scenario leaves_while_waited_for = {
    .name = "a_wait_ends_when_the_only_member_leaves_and_is_freed",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one,
    .threads = {wait_to_the_end, leave_first},
};

static const bide_check_scenario publishes_and_leaves = {
    .name = "a_member_publishes_and_leaves_and_is_freed",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one,
    .threads = {wait_to_the_end, publish_and_leave},
    .never_spurious = true,
};

static const bide_check_scenario two_wait = {
    .name = "two_wait_for_the_leaving_member",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one_and_early,
    .threads = {wait_to_the_end, leave_first},
    .finish = finish_early,
    .never_spurious = true,
};

static const bide_check_scenario both_leave = {
    .name = "both_members_leave_under_a_wait",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two_and_early,
    .threads = {leave_first, leave_second},
    .finish = finish_early,
    .never_spurious = true,
};

static const bide_check_scenario turns = {
    .name = "a_wait_turns_from_the_leaving_member_to_the_publishing_one",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_fixed_one_and_early,
    .threads = {leave_first, publish_fixed},
    .finish = finish_early,
    .never_spurious = true,
};

/* ---- A member closes and stays ---- */

static void publish_fixed_and_close(void *p)
{
    publish_fixed(p);
    bide_sequence_barrier8_close(&((state *)p)->fixed);
}

static void close_fixed(void *p)
{
    bide_sequence_barrier8_close(&((state *)p)->fixed);
}

static void wait_in_vain(void *p)
{
    bide_check_assert(wait_for_first(p) == -EPIPE);
}

static const bide_check_scenario publishes_and_closes = {
    .name = "what_was_published_before_the_closing_counts",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_fixed_watched,
    .threads = {wait_to_the_end, publish_fixed_and_close},
};

static const bide_check_scenario closes = {
    .name = "a_member_that_closes_ends_the_wait",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_fixed_watched,
    .threads = {wait_in_vain, close_fixed},
};

/* The closed one is the first that is waited for; the other is not published. */
static void setup_two_fixed(void *p)
{
    setup_for(p, 2, 0);
}

static const bide_check_scenario closes_beside_another = {
    .name = "a_member_that_closes_ends_the_wait_though_another_is_behind",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two_fixed,
    .threads = {wait_in_vain, close_fixed},
};

/* ---- A member leaves twice, and joins in between ---- */

static void leave_twice(void *p)
{
    state *s = p;
    visitor *v = s->visitors[0];
    if (!bide_sequence_group8_try_leave(&s->group, &v->member)) {
        visitor own;
        bide_sequence_group_leaver8 leaver;
        bide_sequence_group8_join(&s->group, &own.member, &own.barrier, &s->cursor);
        (void)bide_sequence_group8_try_leave(&s->group, &v->member);
        bide_check_assert(!look_for_first(s));
        bide_check_assert(
            bide_check_await(bide_sequence_group8_leave(&leaver, &s->group, &own.member)) == 0);
    }
    leave_and_free(s, 0);
}

static const bide_check_scenario leaves_twice = {
    .name = "a_member_joins_between_two_tries_of_another_to_leave",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one,
    .threads = {wait_to_the_end, leave_twice},
    .never_spurious = true,
    .preemptions = 1,
};

/* ---- Cancellation ---- */

static void setup_one_and_early_stopped(void *p)
{
    state *s = p;
    setup_one(s);
    bide_stop_source_init(&s->stop);
    s->context = (bide_context){&bide_inline_scheduler, &s->stop, NULL, NULL, NULL};
    begin_early_in(s, &s->context);
}

static void stop_early(void *p)
{
    bide_stop_request(&((state *)p)->stop);
}

static void finish_stopped(void *p)
{
    state *s = p;
    bide_check_assert(bide_done(&s->early->task.frame));
    bide_check_assert(s->early->status == 0 || s->early->status == -ECANCELED);
    bide_check_free(s->early);
}

static const bide_check_scenario leaves_as_stopped = {
    .name = "a_wait_is_cut_short_as_its_member_leaves_and_is_freed",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one_and_early_stopped,
    .threads = {stop_early, leave_first},
    .finish = finish_stopped,
    .never_spurious = true,
};

/* ---- Following ---- */

enum { BEHIND = 4 };

static void setup_followed(void *p)
{
    state *s = p;
    bide_sequence_barrier8_init(&s->fixed, 0);
    s->members[0] = &s->fixed;
    bide_sequence_group8_init(&s->group, s->members, 1);
    bide_atomic_init(&s->counter, BEHIND + 1);
}

/* More than half the range, in two steps; there is room after the first. */
static void go_on_and_close(void *p)
{
    state *s = p;
    bide_sequence_barrier8_publish(&s->fixed, 100);
    bide_atomic_store(&s->counter, 100 + BEHIND, relaxed);
    bide_sequence_barrier8_publish(&s->fixed, 200);
    bide_atomic_store(&s->counter, 200 + BEHIND, relaxed);
    bide_sequence_barrier8_close(&s->fixed);
}

static void follow_counter(void *p)
{
    state *s = p;
    bide_sequence_group_waiter8 wait;
    bide_check_assert(
        bide_check_await(bide_sequence_group8_follow_(&wait, &s->group, &s->counter, BEHIND)) == 0);
}

static const bide_check_scenario follows = {
    .name = "a_follower_does_not_find_it_closed_by_a_number_of_another_lap",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_followed,
    .threads = {follow_counter, go_on_and_close},
    .never_spurious = true,
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &joins_beside_fixed,
        &closes_beside_another,
        &leaves_twice,
        &leaves_as_stopped,
        &follows,
        &leaves_beside_fixed,
        &leaves_while_waited_for,
        &publishes_and_leaves,
        &publishes_and_closes,
        &closes,
        &third_looks,
        &early_waits,
        &fourth_looks,
        &early_turns,
        &turns,
        &both_leave,
        &two_wait,
        NULL,
    };
    static const char *const files[] = {"sequence_group.h", "sequence_group.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
