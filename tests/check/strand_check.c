/*
 * Strands: posted coroutines run once, one at a time and in order, whichever threads post; and the
 * memory may be freed as soon as the strand is idle. Strands on the inline scheduler, where the
 * thread that finds one idle runs it; and on a scheduler whose queue is run by one thread of the
 * scenario.
 */
#include "bide/check.h"
#include "bide/event.h"
#include "bide/strand.h"

enum { FRAMES = 4 };

typedef struct state state;

/* A coroutine of one step. */
typedef struct step_frame {
    bide_frame frame;
    state *state;
    bide_awaiter then; /* posted to the strand by the step, if it has a frame */
} step_frame;

struct state {
    bide_strand strand;
    step_frame frames[FRAMES];
    unsigned order[FRAMES]; /* of the strand's coroutines, in the order in which they ran */
    unsigned ran;
    unsigned expected;
    bide_atomic(uint32_t) told; /* that the third was posted */
    bool knew;                  /* before the first posted the second */
    bide_event ended;
};

static bide_next step(bide_frame *frame, unsigned depth)
{
    step_frame *self = bide_container_of(frame, step_frame, frame);
    state *s = self->state;
    (void)depth;
    s->order[s->ran++] = (unsigned)(self - s->frames);
    if (self->then.frame != NULL)
        s->knew = bide_atomic_load(&s->told, acquire) != 0;
    if (self->then.frame != NULL)
        s->strand.scheduler.post(&s->strand.scheduler, &self->then, &self->then);
    if (s->ran == s->expected)
        bide_event_set(&s->ended);
    return bide_next_none();
}

static const bide_coroutine_code code = {step, "step", __FILE__, NULL, NULL};
static const bide_point point = BIDE_POINT_START(&code);

static void setup_on(state *s, bide_scheduler *under, unsigned expected)
{
    bide_strand_init(&s->strand, under);
    for (int i = 0; i < FRAMES; i++) {
        bide_frame *frame = &s->frames[i].frame;
        frame->awaiter.ops = &point.ops;
        frame->awaiter.frame = frame;
        frame->awaiter.link = NULL;
        frame->context = &s->strand.context;
        s->frames[i].state = s;
        s->frames[i].then.ops = &point.ops;
        s->frames[i].then.frame = NULL;
        s->frames[i].then.link = NULL;
    }
    s->expected = expected;
    bide_event_init(&s->ended, false);
}

/* Posts several in a row. */
static void post(state *s, unsigned first, unsigned last)
{
    for (unsigned i = first; i < last; i++)
        s->frames[i].frame.awaiter.link = &s->frames[i + 1].frame.awaiter;
    s->strand.scheduler.post(&s->strand.scheduler, &s->frames[first].frame.awaiter,
                             &s->frames[last].frame.awaiter);
}

/* All have run, one before the other. */
static void check_order(state *s, unsigned before, unsigned after)
{
    unsigned places[FRAMES] = {0, 0, 0, 0};
    bide_check_assert(s->ran == s->expected);
    for (unsigned i = 0; i < s->ran; i++)
        places[s->order[i]] = i + 1;
    for (unsigned i = 0; i < s->expected; i++)
        bide_check_assert(places[i] != 0);
    bide_check_assert(places[before] < places[after]);
}

/* ---- Posting ---- */

static void setup_two(void *p)
{
    setup_on(p, &bide_inline_scheduler, 2);
}

static void setup_three(void *p)
{
    setup_on(p, &bide_inline_scheduler, 3);
}

static void setup_four(void *p)
{
    setup_on(p, &bide_inline_scheduler, 4);
}

static void post_first(void *p)
{
    post(p, 0, 0);
}

static void post_second(void *p)
{
    post(p, 1, 1);
}

static void post_third(void *p)
{
    post(p, 2, 2);
}

static void post_two_by_two(void *p)
{
    post(p, 0, 0);
    post(p, 1, 1);
}

static void post_pair(void *p)
{
    post(p, 2, 3);
}

static void all_ran(void *p)
{
    check_order(p, ((state *)p)->order[0], ((state *)p)->order[1]);
}

static void in_order(void *p)
{
    check_order(p, 0, 1);
}

static void both_in_order(void *p)
{
    check_order(p, 0, 1);
    check_order(p, 2, 3);
}

static const bide_check_scenario two_post = {
    .name = "two_that_are_posted_at_once_run_one_after_the_other",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two,
    .threads = {post_first, post_second},
    .finish = all_ran,
};

static const bide_check_scenario three_post = {
    .name = "three_that_are_posted_at_once_run_one_after_the_other",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_three,
    .threads = {post_first, post_second, post_third},
    .finish = all_ran,
    .never_spurious = true,
};

static const bide_check_scenario order = {
    .name = "what_one_thread_posts_runs_in_order",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_four,
    .threads = {post_two_by_two, post_pair},
    .finish = both_in_order,
};

/* ---- Posting from inside: after the earlier posts ---- */

static void setup_inside(void *p)
{
    state *s = p;
    setup_on(s, &bide_inline_scheduler, 3);
    s->frames[0].then.frame = &s->frames[1].frame;
}

static const bide_check_scenario inside = {
    .name = "what_is_posted_inside_runs_too",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_inside,
    .threads = {post_first, post_third},
    .finish = in_order,
};

/* Comes after the posts that the strand's coroutine knows of. */
static void post_third_and_tell(void *p)
{
    post(p, 2, 2);
    bide_atomic_store(&((state *)p)->told, 1, release);
}

static void known_before_second(void *p)
{
    state *s = p;
    check_order(s, s->knew ? 2 : 0, 1);
}

static const bide_check_scenario inside_behind = {
    .name = "what_is_posted_inside_runs_behind_what_was_posted_before",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_inside,
    .threads = {post_first, post_third_and_tell},
    .finish = known_before_second,
};

/* ---- The end: reported by the last of its coroutines, then the strand's memory is freed ---- */

static void destroy_when_told(void *p)
{
    state *s = p;
    bide_event_waiter wait;
    bide_check_await(bide_event_wait(&wait, &s->ended));
    bide_strand_destroy(&s->strand);
    bide_strand_init(&s->strand, &bide_inline_scheduler); /* in the same memory */
}

static void setup_one(void *p)
{
    setup_on(p, &bide_inline_scheduler, 1);
}

static const bide_check_scenario ends = {
    .name = "a_strand_may_go_when_what_it_ran_has_ended",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_one,
    .threads = {post_first, destroy_when_told},
};

static const bide_check_scenario ends_of_two = {
    .name = "a_strand_of_two_posters_may_go",
    .size = sizeof(state),
    .cxx20_release_sequences = true,
    .setup = setup_two,
    .threads = {post_first, post_second, destroy_when_told},
    .never_spurious = true,
};

int main(int argc, char **argv)
{
    static const bide_check_scenario *const all[] = {
        &two_post, &three_post, &order, &inside, &inside_behind, &ends, &ends_of_two, NULL};
    static const char *const files[] = {"strand.c", NULL};
    return bide_check_main(argc, argv, &(bide_check_suite){all, files, NULL});
}
