/*
 * The test loop: a scheduler whose order, time and faults come from a seed. One thread does all of it,
 * so nothing needs an order. sim_draw.c has the draws, sim_report.c the reports.
 *
 * Why a seed gives the same run everywhere:
 * 1. Every choice is made by bide_test_draw_, from 64-bit numbers that depend on the seed alone, or
 *    from a list.
 * 2. The candidates are in an order that the run itself made: coroutines in the order in which they
 *    were posted, timers by time and then by insertion, faults by their first use. Addresses are
 *    compared for equality only, and only of operations that the loop holds, so an operation in reused
 *    memory is not mistaken for an earlier one.
 * 3. The moment of a draw depends on the run so far, and on `style`, which the seed determines. So a
 *    list of draws is read as it was written, as long as the run is the same.
 *
 * How it draws. An order that fails is seldom far from first come, first served: a coroutine or two
 * are late. So a seed has a style: to pick any ready coroutine; to do so once in 2 to 64 turns; to
 * hold one back for some turns, once in so many; or both.
 *
 *     ready  --turn--> runs        posted, the oldest first
 *     held   --its turns have passed, or nothing else is ready--> runs
 *     timers --nothing is ready, or drawn to be late--> ready
 */
#include "sim_loop.h"

#include "../schedule/leak_check.h"
#include "../schedule/loop_waiter.h"
#include "../coroutine/blocked_thread.h"
#include "../coroutine/chain_cursor.h"
#include "../coroutine/internal.h"
#include "../coroutine/roots.h"
#include "../system/pthreads.h"

#include "bide/create.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

BIDE_THREAD_LOCAL bide_sim_loop *bide_sim_loop_running_;

/* ---- The scheduler ---- */

static bide_sim_loop *sim_loop_of(bide_scheduler *scheduler)
{
    return bide_container_of(scheduler, bide_sim_loop, scheduler);
}

static void sim_loop_append(bide_sim_loop *loop, bide_awaiter *first, bide_awaiter *last)
{
    for (const bide_awaiter *awaiter = first; awaiter != NULL; awaiter = awaiter->link)
        loop->ready_count++;
    if (loop->record != NULL)
        bide_test_priorities_post_(&loop->record->priorities, first);
    bide_awaiter_chain_append(&loop->ready, first, last);
}

static void sim_loop_post(bide_scheduler *scheduler, bide_awaiter *first, bide_awaiter *last)
{
    bide_sim_loop *loop = sim_loop_of(scheduler);
    if (BIDE_UNLIKELY(!pthread_equal(loop->thread, pthread_self()))) {
        bide_platform.misuse("a coroutine of a test loop is woken by another thread",
                             first->ops->name != NULL ? first->ops->name : "a coroutine", __FILE__,
                             __LINE__);
        return;
    }
    if (((uintptr_t)first->frame & BIDE_YIELDS_READY_) != 0)
        loop->has_yielded = true;
    sim_loop_append(loop, first, last);
}

static bool sim_loop_take_back(bide_scheduler *scheduler, bide_awaiter *awaiter)
{
    bide_sim_loop *loop = sim_loop_of(scheduler);
    if (loop->held == awaiter) {
        loop->held = NULL;
        return true;
    }
    if (!bide_chain_remove_(&loop->ready, &loop->passed, awaiter))
        return false;
    loop->ready_count--;
    return true;
}

static int sim_loop_set_timer(bide_scheduler *scheduler, bide_timer *timer)
{
    bide_timers_insert(&sim_loop_of(scheduler)->timers, timer);
    return 0;
}

static bool sim_loop_clear_timer(bide_scheduler *scheduler, bide_timer *timer)
{
    return bide_timers_remove(&sim_loop_of(scheduler)->timers, timer);
}

static bool sim_loop_runs_here_only(bide_scheduler *scheduler)
{
    bide_sim_loop *loop = bide_sim_loop_running_;
    while (loop != NULL && &loop->scheduler != scheduler)
        loop = loop->outer;
    return loop != NULL;
}

/* ---- The simulated environment ---- */

static uint64_t sim_loop_now(bide_scheduler *scheduler)
{
    return sim_loop_of(scheduler)->now;
}

static bide_io *sim_loop_io(bide_scheduler *scheduler)
{
    return sim_loop_of(scheduler)->io;
}

/*
 * A blocking call. Its timer expires twice: when the call is made, and when its coroutine is woken.
 * In between it cannot be taken back.
 */
struct bide_sim_call_ {
    bide_sim_call_ *next;
    bide_sim_call_ **place;
    bide_sim_loop *loop;
    bide_timer timer;
    bide_frame frame; /* runs when the timer expires */
    bide_awaiter *awaiter;
    void (*function)(void *argument);
    void *argument;
    bool is_made;
};

static void sim_call_free(bide_sim_call_ *call)
{
    bide_assert(*call->place == call);
    *call->place = call->next;
    if (call->next != NULL)
        call->next->place = call->place;
    free(call);
}

/* Draws the delay of its next step. */
static void sim_call_set_timer(bide_sim_call_ *call)
{
    enum { DELAYS = 5 };
    static const uint32_t microseconds[DELAYS] = {1, 20, 1000, 50000, 5000000};
    bide_sim_loop *loop = call->loop;
    uint32_t number =
        bide_test_draw_(loop, DRAW_CALL, bide_test_number_below_(loop, DELAYS), DELAYS);
    uint32_t delay = microseconds[number];
    if (number != 0)
        bide_test_note_line_(loop, (test_line){.kind = DRAW_CALL,
                                               .what = call->is_made ? "ends" : "begins",
                                               .value = delay});
    bide_timer_init(&call->timer, loop->now + delay * UINT64_C(1000));
    bide_timers_insert(&loop->timers, &call->timer);
}

static bide_next sim_call_step(bide_frame *frame, unsigned depth)
{
    bide_sim_call_ *call = bide_container_of(frame, bide_sim_call_, frame);
    (void)depth;
    if (!call->is_made) {
        call->is_made = true;
        call->function(call->argument);
        sim_call_set_timer(call);
        return bide_next_none();
    }
    bide_awaiter *awaiter = call->awaiter;
    sim_call_free(call);
    bide_wake_one(awaiter);
    return bide_next_none();
}

static const bide_coroutine_code sim_call_code = {sim_call_step, "(blocking call)", __FILE__, NULL,
                                                  NULL};
static const bide_point sim_call_point = BIDE_POINT_START(&sim_call_code);

const char *bide_test_turn_name_(const bide_frame *frame)
{
    const bide_point *point = bide_frame_point(frame);
    if (point == &sim_call_point)
        return bide_container_of(frame, const bide_sim_call_, frame)->is_made
                   ? "a blocking call has ended"
                   : "a blocking call is made";
    if (point->code != NULL && point->code->type != NULL &&
        *point->code->type == &bide_asks_to_stop_)
        return "a deadline passes";
    return point->code != NULL && point->code->file == NULL ? point->code->name : NULL;
}

static void test_begin_call(bide_scheduler *scheduler, bide_awaiter *awaiter,
                            void (*function)(void *argument), void *argument)
{
    bide_sim_loop *loop = sim_loop_of(scheduler);
    bide_sim_call_ *call = malloc(sizeof *call);
    if (call == NULL) { /* then it is made at once */
        function(argument);
        bide_wake_one(awaiter);
        return;
    }
    call->loop = loop;
    call->awaiter = awaiter;
    call->function = function;
    call->argument = argument;
    call->is_made = false;
    bide_frame_init_in(&call->frame, &sim_call_point, &loop->context);
    call->timer.awaiter.ops = &sim_call_point.ops;
    call->timer.awaiter.frame = &call->frame;
    call->next = loop->calls;
    call->place = &loop->calls;
    if (call->next != NULL)
        call->next->place = &call->next;
    loop->calls = call;
    sim_call_set_timer(call);
}

static bool test_take_call_back(bide_scheduler *scheduler, bide_awaiter *awaiter)
{
    bide_sim_loop *loop = sim_loop_of(scheduler);
    bide_sim_call_ *call = loop->calls;
    while (call != NULL && call->awaiter != awaiter)
        call = call->next;
    if (call == NULL || call->is_made)
        return false;
    if (!bide_timers_remove(&loop->timers, &call->timer))
        sim_loop_take_back(scheduler, &call->timer.awaiter); /* its turn was next */
    sim_call_free(call);
    return true;
}

/* In some seeds a parent always waits; in others it does not once in 2, 4 or 8 forks. */
static unsigned test_fork(bide_scheduler *scheduler)
{
    enum { FORKS = 3 };
    bide_sim_loop *loop = bide_container_of(scheduler, bide_sim_loop, scheduler);
    unsigned rate = (unsigned)(loop->style >> 40) % 4;
    uint32_t how = 0;
    if (rate != 0 && bide_test_chance_(loop, rate))
        how = 1 + bide_test_number_below_(loop, 2);
    how = bide_test_draw_(loop, DRAW_FORK, how, FORKS);
    if (how != 0)
        bide_test_note_line_(loop, (test_line){.kind = DRAW_FORK, .value = how, .of = FORKS});
    return how;
}

static const bide_environment sim_loop_environment = {
    .now = sim_loop_now,
    .begin_call = test_begin_call,
    .take_call_back = test_take_call_back,
    .fork = test_fork,
};

/* ---- Turns ---- */

static void sim_loop_take_due(bide_sim_loop *loop)
{
    bide_awaiter_chain due = {NULL, NULL};
    bide_timers_take_due(&loop->timers, loop->now, &due);
    if (due.first != NULL)
        sim_loop_append(loop, due.first, due.last);
}

/* Advances the time to that of the next timer, if this is `max` or earlier. */
static bool sim_loop_jump(bide_sim_loop *loop, uint64_t max)
{
    uint64_t time = bide_timers_next(&loop->timers);
    if (time == BIDE_FOREVER || time > max)
        return false;
    if (time > loop->now)
        loop->now = time;
    loop->busy = 0;
    sim_loop_take_due(loop);
    return true;
}

/* While something is ready, a timer may be drawn to come first; after so many turns it does. */
enum { MAX_BUSY = 500000 };

static void sim_loop_jump_early(bide_sim_loop *loop, uint64_t max)
{
    if (loop->busy >= MAX_BUSY && sim_loop_jump(loop, max))
        return;
    uint64_t next = bide_timers_next(&loop->timers);
    if (!test_may_be_late(loop) || loop->max_late == BIDE_SIM_NOT_LATE || loop->ready_count == 0 ||
        next > max)
        return;
    if (loop->turns >= loop->late_until)
        loop->late = 0;
    uint64_t late = next > loop->now ? next - loop->now : 0;
    if (late > loop->max_late || loop->late > loop->max_late - late)
        return;
    if (bide_test_draw_(loop, DRAW_LATE, bide_test_chance_(loop, 5), 2) == 0)
        return;
    if (loop->late == 0)
        loop->late_until = loop->turns + loop->ready_count;
    loop->late += late;
    bide_test_note_line_(loop, (test_line){.kind = DRAW_LATE, .value = 1, .of = 2});
    sim_loop_jump(loop, max);
}

static uint32_t test_turn_number(bide_sim_loop *loop, uint32_t choices)
{
    unsigned style = test_turn_style(loop);
    if (style == 0)
        return bide_test_number_below_(loop, choices);
    if (!bide_test_chance_(loop, test_turn_exponent(loop)))
        return 0;
    if (style == 1 || (style == 3 && bide_test_chance_(loop, 1)))
        return bide_test_number_below_(loop, choices);
    return HOLD + bide_test_number_below_(loop, HOLDS);
}

/*
 * Of how many ready coroutines one is drawn: mostly of the oldest, since to take one costs as many steps
 * as are before it.
 */
static uint32_t test_turn_choices(bide_sim_loop *loop)
{
    if (loop->ready_count <= OLDEST || !bide_test_chance_(loop, 3))
        return loop->ready_count < OLDEST ? (uint32_t)loop->ready_count : OLDEST;
    return loop->ready_count < HOLD ? (uint32_t)loop->ready_count : HOLD;
}

/* Takes the ready coroutine that is behind `before` others. */
static bide_awaiter *sim_loop_take_at(bide_sim_loop *loop, uint32_t before)
{
    bide_assert(before < loop->ready_count);
    loop->ready_count--;
    if (before == 0)
        return bide_awaiter_chain_take(&loop->ready);
    bide_awaiter *at = loop->ready.first;
    while (--before != 0)
        at = at->link;
    bide_awaiter *taken = at->link;
    at->link = taken->link;
    if (loop->ready.last == taken)
        loop->ready.last = at;
    return taken;
}

/* Draws the next coroutine to run; there is one. *value is the number drawn, *of the limit. */
static bide_awaiter *sim_loop_choose(bide_sim_loop *loop, uint32_t *value, uint32_t *of)
{
    bide_awaiter *held = loop->held;
    *value = 0;
    *of = 1;
    if (held != NULL && (loop->ready_count == 0 || loop->held_for-- == 0)) {
        loop->held = NULL;
        return held;
    }
    uint32_t number = test_has_priorities(loop) ? bide_test_priorities_choose_(loop) : 0;
    if (loop->ready_count > 1) {
        if (!test_has_priorities(loop))
            number = test_turn_number(loop, test_turn_choices(loop));
        *of = loop->ready_count < HOLD ? (uint32_t)loop->ready_count : HOLD;
        *value = bide_test_draw_(loop, DRAW_TURN, number, HOLD + HOLDS);
        if (*value >= HOLD && held == NULL) {
            loop->held = sim_loop_take_at(loop, 0);
            loop->held_for = 2u << (*value - HOLD);
            return sim_loop_take_at(loop, 0);
        }
        if (*value >= *of)
            *value = 0;
    }
    return sim_loop_take_at(loop, *value);
}

/* Draws the budget of ready operations for the next turn: in most turns the usual one. */
static void test_draw_budget(bide_sim_loop *loop)
{
    enum { SMALL = 5 };
    bide_budget_ = bide_budget_full_;
    if (bide_budget_full_ > 15) /* as refill_budget in frame.c, but the same in each run */
        bide_budget_ -= (int32_t)(loop->turns & 15);
    if (!test_may_yield_early(loop))
        return;
    uint32_t number = bide_test_chance_(loop, 2) ? bide_test_number_below_(loop, SMALL) : 0;
    if (test_has_priorities(loop))
        number = 1; /* at each operation the one with the highest priority goes on */
    uint32_t budget = bide_test_draw_(loop, DRAW_BUDGET, number, SMALL);
    if (budget == 0)
        return;
    bide_budget_ = (int32_t)budget - 1;
    bide_test_note_line_(loop, (test_line){.kind = DRAW_BUDGET, .value = budget, .of = SMALL});
}

bool bide_sim_loop_step(bide_sim_loop *loop)
{
    uint32_t value;
    uint32_t of;
    if (bide_timers_next(&loop->timers) <= loop->now)
        sim_loop_take_due(loop);
    if (loop->ready_count == 0 && loop->held == NULL)
        return false;
    loop->outer = bide_sim_loop_running_;
    bide_sim_loop_running_ = loop;
    bide_loops_here_change_(1);
    bide_chain_rewind_(&loop->ready, &loop->passed);
    bide_awaiter *awaiter = sim_loop_choose(loop, &value, &of);
    bide_assert((loop->ready_count == 0) == (loop->ready.first == NULL));
    bide_test_note_turn_(loop, awaiter, value, of);
    test_draw_budget(loop);
    loop->turns++;
    loop->busy++;
    uint64_t budget = (uint64_t)bide_budget_ + 1;
    loop->has_yielded = false;
    bide_resume_with_what_is_left_(awaiter->frame); /* drawn */
    bide_budget_ = bide_budget_full_;
    if (loop->has_yielded) /* ten of whole budgets are enough */
        loop->busy += MAX_BUSY / 10 * budget / ((uint64_t)bide_budget_full_ + 1);
    bide_assert(bide_sim_loop_running_ == loop);
    bide_loops_here_change_(-1);
    bide_sim_loop_running_ = loop->outer;
    return true;
}

/* One turn, at `max` at the latest; false: nothing is left until then. */
static bool sim_loop_turn(bide_sim_loop *loop, uint64_t max)
{
    sim_loop_jump_early(loop, max);
    return bide_sim_loop_step(loop) || sim_loop_jump(loop, max);
}

uint64_t bide_sim_loop_run_until(bide_sim_loop *loop, uint64_t time)
{
    uint64_t before = loop->turns;
    while (sim_loop_turn(loop, time)) {
        if (loop->turns >= loop->max_turns) {
            bide_test_fail_(loop, BIDE_SIM_LIVELOCK, -ELOOP, "no end");
            break;
        }
    }
    if (time != BIDE_FOREVER && time > loop->now)
        loop->now = time;
    return loop->turns - before;
}

int bide_sim_loop_wait(bide_sim_loop *loop, bide_awaiter *awaiter)
{
    loop_waiter waiter;
    loop_waiter_begin(&waiter, &loop->context, awaiter);
    while (!waiter.ended) {
        int error = 0;
        if (loop->turns >= loop->max_turns)
            error = bide_test_fail_(loop, BIDE_SIM_LIVELOCK, -ELOOP, "no end");
        else if (!sim_loop_turn(loop, BIDE_FOREVER - 1))
            error = bide_test_fail_(loop, BIDE_SIM_DEADLOCK, -EDEADLK, "deadlock");
        if (error != 0) {
            bide_destroy(&waiter.root.frame);
            return error;
        }
    }
    return waiter.root.status;
}

/* ---- Init and destroy ---- */

void bide_sim_loop_init(bide_sim_loop *loop, uint64_t seed)
{
    memset(loop, 0, sizeof *loop);
    loop->scheduler.post = sim_loop_post;
    loop->scheduler.one_thread = true;
    loop->scheduler.take_back = sim_loop_take_back;
    loop->scheduler.set_timer = sim_loop_set_timer;
    loop->scheduler.clear_timer = sim_loop_clear_timer;
    loop->scheduler.runs_here_only = sim_loop_runs_here_only;
    loop->scheduler.environment = &sim_loop_environment;
    loop->scheduler.io = sim_loop_io;
    bide_atomic_init(&loop->scheduler.patience, BIDE_PATIENCE_MIN);
    loop->context.scheduler = &loop->scheduler;
    loop->seed = seed;
    loop->random = seed;
    loop->style = bide_test_next_number_(&loop->random);
    loop->user_random = ~loop->style; /* a sequence apart from that of the draws */
    loop->now = TEST_SECOND;
    loop->max_turns = 1000000;
    loop->max_late = BIDE_SIM_LATE;
    loop->busy = 0;
    loop->has_yielded = false;
    loop->thread = pthread_self();
    bide_timers_init(&loop->timers);
}

bool bide_sim_loop_is_empty(const bide_sim_loop *loop)
{
    return loop->ready.first == NULL && loop->held == NULL && loop->timers.first == NULL &&
           loop->calls == NULL && bide_roots_find_(&loop->scheduler) == NULL;
}

void bide_sim_loop_destroy_checked_(bide_sim_loop *loop, const char *what, const char *function,
                                    const char *file, unsigned line)
{
    bide_report_leaked_waiters_(&loop->scheduler, &loop->timers,
                                "a test loop is destroyed while a timer of it is set",
                                "a test loop is destroyed while a task of it waits", file, line);
    if (loop->io != NULL || !bide_sim_loop_is_empty(loop))
        bide_platform.misuse(what, function, file, line);
}
