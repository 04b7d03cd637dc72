/*
 * The test loop. One thread does all of it, so there is nothing to order.
 *
 * Why a seed gives the same run everywhere:
 * 1. Whatever is chosen is chosen by `draw`, from numbers of 64 bits that the seed alone gives, or
 *    from a list.
 * 2. What is chosen among stands in an order that the run itself made: coroutines in the order in
 *    which they were posted, timers by time and then by insertion, faults by the order in which
 *    they were first asked for. Addresses are compared for being equal, and only of operations that
 *    are in the loop's hands, so memory that is used again is not taken for what it was.
 * 3. When something is drawn depends on the run so far, and on `style`, which is the seed's. So a
 *    list of draws is read as it was written, as long as the run is the same.
 *
 * How it draws. An order that is wrong is seldom far from first come, first served: a coroutine or
 * two are late. So a seed has a style: to take any that is ready; to do that once in 2 to 64 turns;
 * to hold one back for some turns, once in so many; or both.
 *
 *     ready  --turn--> runs        what was posted, the oldest first
 *     held   --its turns are over, or nothing else is ready--> runs
 *     timers --nothing is ready, or drawn to be late--> ready
 */
#include "sim_loop.h"

#include "../schedule/leak_check.h"
#include "../schedule/loop_waiter.h"
#include "../coroutine/internal.h"
#include "../coroutine/roots.h"

#include "bide/create.h"
#include "bide/inspect.h"
#include "bide/stop.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

BIDE_THREAD_LOCAL bide_sim_loop *bide_sim_loop_running_;

enum { SECOND = 1000000000 };

/* ---- Drawing ---- */

/* The next number of the sequence that *state stands at. */
static uint64_t next_number(uint64_t *state)
{
    uint64_t number = *state += UINT64_C(0x9e3779b97f4a7c15);
    number = (number ^ (number >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ (number >> 27)) * UINT64_C(0x94d049bb133111eb);
    return number ^ (number >> 31);
}

static uint32_t number_below(bide_sim_loop *loop, uint32_t below)
{
    return (uint32_t)(((next_number(&loop->random) >> 32) * below) >> 32);
}

/* True once in 2^exponent. */
static bool chance(bide_sim_loop *loop, unsigned exponent)
{
    return (next_number(&loop->random) >> (64 - exponent)) == 0;
}

/* The styles of a seed: of turns, and whether timers may come early and budgets be small. */
static unsigned turn_style(const bide_sim_loop *loop)
{
    return loop->style & 3;
}

static unsigned turn_exponent(const bide_sim_loop *loop)
{
    return 1 + (loop->style >> 2 & 0xff) % 6;
}

static bool may_be_late(const bide_sim_loop *loop)
{
    return (loop->style >> 10 & 1) != 0;
}

static bool may_give_way_early(const bide_sim_loop *loop)
{
    return (loop->style >> 11 & 1) != 0;
}

static test_line *next_line(bide_sim_record_ *record)
{
    if (record == NULL || record->lines == NULL || record->lines_count++ >= record->lines_capacity)
        return NULL;
    return &record->lines[record->lines_count - 1];
}

static void note_line(bide_sim_loop *loop, test_line line)
{
    test_line *to = next_line(loop->record);
    if (to == NULL)
        return;
    line.time = loop->now;
    line.draw = loop->record->count;
    *to = line;
    if (loop->record->is_live)
        bide_sim_line_print_(stderr, to);
}

/* What is drawn by the seed is `number`; returns what is drawn. */
static uint32_t draw(bide_sim_loop *loop, test_draw kind, uint32_t number, uint32_t below)
{
    bide_sim_record_ *record = loop->record;
    if (record == NULL)
        return number;
    if (record->given != NULL) {
        number = record->count < record->given_count ? record->given[record->count] : 0;
        if (number >= below)
            number = 0;
    }
    if (record->count < record->capacity) {
        record->draws[record->count] = (uint16_t)number;
        record->kinds[record->count] = (uint8_t)kind;
    }
    record->count++;
    return number;
}

uint32_t bide_sim_loop_draw(bide_sim_loop *loop, uint32_t below)
{
    uint32_t number = draw(loop, DRAW_OWN, number_below(loop, below), below);
    if (number != 0)
        note_line(loop, (test_line){.kind = DRAW_OWN, .value = number, .of = below});
    return number;
}

/* ---- What is said ---- */

/* To the text of the record, or to stderr. */
static void say_piece(void *argument, const char *text, size_t length)
{
    bide_sim_record_ *record = ((bide_sim_loop *)argument)->record;
    if (record == NULL || record->text == NULL) {
        fwrite(text, 1, length, stderr);
        return;
    }
    size_t used = strlen(record->text);
    size_t room = record->text_size - 1 - used;
    if (length > room)
        length = room;
    memcpy(record->text + used, text, length);
    record->text[used + length] = '\0';
}

static void say(bide_sim_loop *loop, const char *text)
{
    say_piece(loop, text, strlen(text));
}

static bool is_of(const bide_sim_loop *loop, const bide_root *root)
{
    return root->context.scheduler == &loop->scheduler;
}

/* Calls `visit` with each root that was begun on the loop and has not ended; returns how many. */
static size_t each_root(bide_sim_loop *loop,
                        void (*visit)(bide_sim_loop *loop, const bide_root *root))
{
    enum { AT_ONCE = 16 };
    const bide_root_links_ *links[AT_ONCE];
    size_t all = 0;
    bide_roots_look_();
    for (unsigned i = 0; i < BIDE_ROOT_LISTS_; i++) {
        size_t count;
        bide_roots_enter_(&bide_roots_[i]);
        while ((count = bide_roots_next_(&bide_roots_[i], links, AT_ONCE)) != 0) {
            for (size_t j = 0; j < count; j++) {
                const bide_root *root = bide_container_of(links[j], bide_root, links);
                if (!is_of(loop, root))
                    continue;
                all++;
                if (visit != NULL)
                    visit(loop, root);
            }
        }
        bide_roots_leave_(&bide_roots_[i]);
    }
    bide_roots_looked_();
    return all;
}

static void say_where(bide_sim_loop *loop, const bide_root *root)
{
    const bide_frame *frame = bide_awaited_frame(root->awaited);
    const bide_coroutine_code *code = frame != NULL ? bide_frame_point(frame)->code : NULL;
    say(loop, "  task ");
    say(loop, code != NULL && code->name != NULL ? code->name : root->awaited->ops->name);
    say(loop, ":\n");
    bide_backtrace_print(bide_innermost((bide_frame *)(uintptr_t)&root->frame), say_piece, loop);
}

/* The run has failed, while coroutines wait that have not ended. */
static int fail(bide_sim_loop *loop, bide_sim_failure failure, int error, const char *what)
{
    char line[200];
    snprintf(line, sizeof line, "%s after %" PRIu64 " turns, at %" PRIu64 ".%09u s; these wait:\n",
             what, loop->turns, loop->now / SECOND, (unsigned)(loop->now % SECOND));
    say(loop, line);
    if (each_root(loop, say_where) == 0)
        say(loop, "  (nothing that was begun on the loop)\n");
    if (loop->record != NULL && loop->record->fails != NULL)
        loop->record->fails(loop, failure, error);
    return error;
}

/* ---- What is noted of a turn ---- */

static bool is_body(const bide_frame *frame)
{
    const bide_coroutine_code *code = bide_frame_point(frame)->code;
    return code != NULL && code->type != NULL && (*code->type)->name != NULL;
}

/* Tasks are told apart by their outermost frame, and numbered as they come. */
static uint32_t task_of(bide_sim_record_ *record, const bide_frame *frame)
{
    const bide_frame *outer = frame;
    for (const bide_frame *f = frame; f != NULL; f = bide_continuation_(f))
        outer = f;
    uint32_t i = 0;
    while (i < record->tasks_count && record->tasks[i] != outer)
        i++;
    if (i == record->tasks_count && i < TASKS)
        record->tasks[record->tasks_count++] = outer;
    return i + 1;
}

static const char *turn_name(const bide_frame *frame);

static void note_turn(bide_sim_loop *loop, const bide_awaiter *awaiter, uint32_t value,
                      uint32_t of)
{
    if (loop->record == NULL || loop->record->lines == NULL)
        return;
    bool gave_way = ((uintptr_t)awaiter->frame & 1) != 0;
    const bide_frame *frame =
        (const bide_frame *)(const void *)((const char *)awaiter->frame - gave_way);
    const bide_frame *body = frame;
    const bide_point *point = bide_frame_point(frame);
    const char *other = turn_name(frame);
    if (other != NULL) {
        note_line(loop, (test_line){.kind = DRAW_TURN, .what = other, .value = value, .of = of});
        return;
    }
    const char *what = bide_awaiter_is_frame(awaiter) ? NULL : awaiter->ops->name;
    while (body != NULL && !is_body(body))
        body = bide_continuation_(body);
    if (body != NULL)
        point = bide_frame_point(body);
    if (point->code == &bide_root_code_) {
        const bide_root *root = bide_container_of(frame, bide_root, frame);
        const bide_frame *first = bide_awaited_frame(root->awaited);
        if (first != NULL)
            point = bide_frame_point(first);
    }
    note_line(loop, (test_line){.kind = DRAW_TURN,
                                .point = point,
                                .what = what,
                                .task = task_of(loop->record, frame),
                                .value = value,
                                .of = of});
}

static void print_point(FILE *file, const bide_point *point)
{
    if (point == NULL || point->code == NULL)
        return;
    const char *path = point->code->file != NULL ? point->code->file : "?";
    const char *slash = strrchr(path, '/');
    fprintf(file, "%s at %s:%u", point->code->name, slash != NULL ? slash + 1 : path, point->line);
}

static void print_turn(FILE *file, const test_line *line)
{
    if (line->task != 0)
        fprintf(file, "task %u: ", line->task);
    print_point(file, line->point);
    if (line->point == NULL)
        fputs(line->what, file);
    else if (line->point->state == BIDE_AT_START)
        fputs(" begins", file);
    else if (line->what != NULL)
        fprintf(file, " goes on after %s", line->what);
    if (line->value == 0)
        return;
    if (line->value < CHOICES)
        fprintf(file, "   <- before %u that were first", line->value);
    else
        fprintf(file, "   <- the first is held back for %u turns", 2u << (line->value - CHOICES));
}

void bide_sim_line_print_(FILE *file, const test_line *line)
{
    fprintf(file, "  %4" PRIu64 ".%09u  ", line->time / SECOND, (unsigned)(line->time % SECOND));
    switch (line->kind) {
    case DRAW_TURN:
        print_turn(file, line);
        break;
    case DRAW_LATE:
        fputs("   <- the next timer comes before what is ready", file);
        break;
    case DRAW_BUDGET:
        fprintf(file, "   <- yields after %u that are ready", line->value);
        break;
    case DRAW_POINT:
        fputs("   <- yields at a test point", file);
        break;
    case DRAW_RATE:
        break;
    case DRAW_FAULT:
        fprintf(file, "   <- fault \"%s\"", line->what);
        break;
    case DRAW_CALL:
        fprintf(file, "   <- a blocking call %s in %u us", line->what, line->value);
        break;
    case DRAW_DELAY:
        fprintf(file, "   <- %s after %u us", line->what, line->value);
        break;
    case DRAW_OWN:
    default:
        fprintf(file, "   draws %u of %u", line->value, line->of);
        break;
    }
    fputc('\n', file);
}

/* ---- The scheduler ---- */

static bide_sim_loop *loop_of(bide_scheduler *scheduler)
{
    return bide_container_of(scheduler, bide_sim_loop, scheduler);
}

static void append(bide_sim_loop *loop, bide_awaiter *first, bide_awaiter *last)
{
    for (const bide_awaiter *awaiter = first; awaiter != NULL; awaiter = awaiter->link)
        loop->ready_count++;
    bide_awaiter_chain_append(&loop->ready, first, last);
}

static void post(bide_scheduler *scheduler, bide_awaiter *first, bide_awaiter *last)
{
    bide_sim_loop *loop = loop_of(scheduler);
    if (BIDE_UNLIKELY(!pthread_equal(loop->thread, pthread_self()))) {
        bide_platform.misuse("a coroutine of a test loop is woken by another thread",
                             first->ops->name != NULL ? first->ops->name : "a coroutine", __FILE__,
                             __LINE__);
        return;
    }
    append(loop, first, last);
}

static bool take_back(bide_scheduler *scheduler, bide_awaiter *awaiter)
{
    bide_sim_loop *loop = loop_of(scheduler);
    if (loop->held == awaiter) {
        loop->held = NULL;
        return true;
    }
    if (!bide_awaiter_chain_remove(&loop->ready, awaiter))
        return false;
    loop->ready_count--;
    return true;
}

static int set_timer(bide_scheduler *scheduler, bide_timer *timer)
{
    bide_timers_insert(&loop_of(scheduler)->timers, timer);
    return 0;
}

static bool clear_timer(bide_scheduler *scheduler, bide_timer *timer)
{
    return bide_timers_remove(&loop_of(scheduler)->timers, timer);
}

static bool runs_here_only(bide_scheduler *scheduler)
{
    bide_sim_loop *loop = bide_sim_loop_running_;
    while (loop != NULL && &loop->scheduler != scheduler)
        loop = loop->outer;
    return loop != NULL;
}

/* ---- The world ---- */

static uint64_t now(bide_scheduler *scheduler)
{
    return loop_of(scheduler)->now;
}

static bide_io *io_of(bide_scheduler *scheduler)
{
    return loop_of(scheduler)->io;
}

/*
 * A blocking call. Its timer comes twice: when it is made, and when its coroutine is to know. In
 * between it cannot be taken back.
 */
struct bide_sim_call_ {
    bide_sim_call_ *next;
    bide_sim_call_ **place;
    bide_sim_loop *loop;
    bide_timer timer;
    bide_frame frame; /* runs when the timer has come */
    bide_awaiter *awaiter;
    void (*function)(void *argument);
    void *argument;
    bool is_made;
};

static void call_free(bide_sim_call_ *call)
{
    *call->place = call->next;
    if (call->next != NULL)
        call->next->place = call->place;
    free(call);
}

/* Draws how long it takes to come next. */
static void call_set_timer(bide_sim_call_ *call)
{
    enum { DELAYS = 5 };
    static const uint32_t microseconds[DELAYS] = {1, 20, 1000, 50000, 5000000};
    bide_sim_loop *loop = call->loop;
    uint32_t number = draw(loop, DRAW_CALL, number_below(loop, DELAYS), DELAYS);
    uint32_t delay = microseconds[number];
    if (number != 0)
        note_line(loop, (test_line){.kind = DRAW_CALL,
                                    .what = call->is_made ? "ends" : "begins",
                                    .value = delay});
    bide_timer_init(&call->timer, loop->now + delay * UINT64_C(1000));
    bide_timers_insert(&loop->timers, &call->timer);
}

static bide_next call_step(bide_frame *frame, unsigned depth)
{
    bide_sim_call_ *call = bide_container_of(frame, bide_sim_call_, frame);
    (void)depth;
    if (!call->is_made) {
        call->is_made = true;
        call->function(call->argument);
        call_set_timer(call);
        return bide_next_none();
    }
    bide_awaiter *awaiter = call->awaiter;
    call_free(call);
    bide_wake_one(awaiter);
    return bide_next_none();
}

static const bide_coroutine_code call_code = {call_step, "(blocking call)", __FILE__, NULL, NULL};
static const bide_point call_point = BIDE_POINT_START(&call_code);

/* What is done in a turn of what is no coroutine, and has no file; NULL: it is one. */
static const char *turn_name(const bide_frame *frame)
{
    const bide_point *point = bide_frame_point(frame);
    if (point == &call_point)
        return bide_container_of(frame, const bide_sim_call_, frame)->is_made
                   ? "a blocking call has ended"
                   : "a blocking call is made";
    return point->code != NULL && point->code->file == NULL ? point->code->name : NULL;
}

static void begin_call(bide_scheduler *scheduler, bide_awaiter *awaiter,
                       void (*function)(void *argument), void *argument)
{
    bide_sim_loop *loop = loop_of(scheduler);
    bide_sim_call_ *call = malloc(sizeof *call);
    if (call == NULL) { /* at once, then */
        function(argument);
        bide_wake_one(awaiter);
        return;
    }
    call->loop = loop;
    call->awaiter = awaiter;
    call->function = function;
    call->argument = argument;
    call->is_made = false;
    bide_frame_init_in(&call->frame, &call_point, &loop->context);
    call->timer.awaiter.ops = &call_point.ops;
    call->timer.awaiter.frame = &call->frame;
    call->next = loop->calls;
    call->place = &loop->calls;
    if (call->next != NULL)
        call->next->place = &call->next;
    loop->calls = call;
    call_set_timer(call);
}

static bool take_call_back(bide_scheduler *scheduler, bide_awaiter *awaiter)
{
    bide_sim_loop *loop = loop_of(scheduler);
    bide_sim_call_ *call = loop->calls;
    while (call != NULL && call->awaiter != awaiter)
        call = call->next;
    if (call == NULL || call->is_made)
        return false;
    if (!bide_timers_remove(&loop->timers, &call->timer))
        take_back(scheduler, &call->timer.awaiter); /* it was about to be made */
    call_free(call);
    return true;
}

static const bide_environment world = {
    .now = now,
    .begin_call = begin_call,
    .take_call_back = take_call_back,
};

/* ---- Turns ---- */

static void take_due(bide_sim_loop *loop)
{
    bide_awaiter_chain due = {NULL, NULL};
    bide_timers_take_due(&loop->timers, loop->now, &due);
    if (due.first != NULL)
        append(loop, due.first, due.last);
}

/* Lets the time of the next timer come, if it is `max` at most. */
static bool jump(bide_sim_loop *loop, uint64_t max)
{
    uint64_t time = bide_timers_next(&loop->timers);
    if (time == BIDE_FOREVER || time > max)
        return false;
    if (time > loop->now)
        loop->now = time;
    take_due(loop);
    return true;
}

/* While something is ready: may a timer come first? */
static void jump_early(bide_sim_loop *loop, uint64_t max)
{
    if (!may_be_late(loop) || loop->ready_count == 0 || bide_timers_next(&loop->timers) > max)
        return;
    if (draw(loop, DRAW_LATE, chance(loop, 5), 2) == 0)
        return;
    note_line(loop, (test_line){.kind = DRAW_LATE, .value = 1, .of = 2});
    jump(loop, max);
}

static uint32_t number_of_turn(bide_sim_loop *loop, uint32_t choices)
{
    unsigned style = turn_style(loop);
    if (style == 0)
        return number_below(loop, choices);
    if (!chance(loop, turn_exponent(loop)))
        return 0;
    if (style == 1 || (style == 3 && chance(loop, 1)))
        return number_below(loop, choices);
    return CHOICES + number_below(loop, HOLDS);
}

/* Takes the one behind `before` others that are ready. */
static bide_awaiter *take_at(bide_sim_loop *loop, uint32_t before)
{
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

/* Draws the next to run; there is one. Puts into *value what was drawn, and into *of from how many. */
static bide_awaiter *choose(bide_sim_loop *loop, uint32_t *value, uint32_t *of)
{
    bide_awaiter *held = loop->held;
    *value = 0;
    *of = 1;
    if (held != NULL && (loop->ready_count == 0 || loop->held_for-- == 0)) {
        loop->held = NULL;
        return held;
    }
    if (loop->ready_count > 1) {
        uint32_t choices = loop->ready_count < CHOICES ? (uint32_t)loop->ready_count : CHOICES;
        *of = choices;
        *value = draw(loop, DRAW_TURN, number_of_turn(loop, choices), CHOICES + HOLDS);
        if (*value >= CHOICES && held == NULL) {
            loop->held = take_at(loop, 0);
            loop->held_for = 2u << (*value - CHOICES);
            return take_at(loop, 0);
        }
        if (*value >= choices)
            *value = 0;
    }
    return take_at(loop, *value);
}

/* How many operations that are ready may the next to run pass? In most turns as many as usual. */
static void draw_budget(bide_sim_loop *loop)
{
    enum { SMALL = 5 };
    bide_budget_ = bide_budget_full_;
    if (!may_give_way_early(loop))
        return;
    uint32_t number = chance(loop, 2) ? number_below(loop, SMALL) : 0;
    uint32_t budget = draw(loop, DRAW_BUDGET, number, SMALL);
    if (budget == 0)
        return;
    bide_budget_ = (int32_t)budget - 1;
    note_line(loop, (test_line){.kind = DRAW_BUDGET, .value = budget, .of = SMALL});
}

bool bide_sim_loop_step(bide_sim_loop *loop)
{
    uint32_t value;
    uint32_t of;
    if (bide_timers_next(&loop->timers) <= loop->now)
        take_due(loop);
    if (loop->ready_count == 0 && loop->held == NULL)
        return false;
    loop->outer = bide_sim_loop_running_;
    bide_sim_loop_running_ = loop;
    bide_awaiter *awaiter = choose(loop, &value, &of);
    note_turn(loop, awaiter, value, of);
    draw_budget(loop);
    loop->turns++;
    bide_resume_with_what_is_left_(awaiter->frame); /* drawn */
    bide_budget_ = bide_budget_full_;
    bide_sim_loop_running_ = loop->outer;
    return true;
}

/* One turn, by `max` at the latest; false: nothing is left until then. */
static bool turn(bide_sim_loop *loop, uint64_t max)
{
    jump_early(loop, max);
    return bide_sim_loop_step(loop) || jump(loop, max);
}

uint64_t bide_sim_loop_run_until(bide_sim_loop *loop, uint64_t time)
{
    uint64_t before = loop->turns;
    while (turn(loop, time)) {
        if (loop->turns >= loop->max_turns) {
            fail(loop, BIDE_SIM_LIVELOCK, -ELOOP, "no end");
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
            error = fail(loop, BIDE_SIM_LIVELOCK, -ELOOP, "no end");
        else if (!turn(loop, BIDE_FOREVER - 1))
            error = fail(loop, BIDE_SIM_DEADLOCK, -EDEADLK, "deadlock");
        if (error != 0) {
            bide_destroy(&waiter.root.frame);
            return error;
        }
    }
    return waiter.root.status;
}

/* ---- Beginning and end ---- */

void bide_sim_loop_init(bide_sim_loop *loop, uint64_t seed)
{
    memset(loop, 0, sizeof *loop);
    loop->scheduler.post = post;
    loop->scheduler.one_thread = true;
    loop->scheduler.take_back = take_back;
    loop->scheduler.set_timer = set_timer;
    loop->scheduler.clear_timer = clear_timer;
    loop->scheduler.runs_here_only = runs_here_only;
    loop->scheduler.environment = &world;
    loop->scheduler.io = io_of;
    bide_atomic_init(&loop->scheduler.patience, BIDE_PATIENCE_MIN);
    loop->context.scheduler = &loop->scheduler;
    loop->seed = seed;
    loop->random = seed;
    loop->style = next_number(&loop->random);
    loop->now = SECOND;
    loop->max_turns = 1000000;
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
    bide_tell_what_is_left_(&loop->scheduler, &loop->timers,
                            "a test loop is destroyed while a timer of it is set",
                            "a test loop is destroyed while a task of it waits");
    if (loop->io != NULL || !bide_sim_loop_is_empty(loop))
        bide_platform.misuse(what, function, file, line);
}

/* ---- In the code under test ---- */

static bide_sim_fault *fault_named(bide_sim_loop *loop, const char *name)
{
    for (size_t i = 0; i < loop->faults_count; i++) {
        if (loop->faults[i].name == name || strcmp(loop->faults[i].name, name) == 0)
            return &loop->faults[i];
    }
    if (loop->faults_count == BIDE_SIM_FAULTS_MAX)
        return NULL;
    bide_sim_fault *fault = &loop->faults[loop->faults_count++];
    *fault = (bide_sim_fault){.name = name, .rate_ = UINT64_MAX};
    return fault;
}

bool bide_sim_loop_fault_(bide_sim_loop *loop, const char *name, uint32_t rate)
{
    static const uint32_t rates[] = {0, 2, 8, 64};
    enum { RATES = sizeof rates / sizeof rates[0] };
    bide_sim_fault *fault = rate != 0 ? fault_named(loop, name) : NULL;
    if (fault == NULL)
        return false;
    fault->asked++;
    if (rate == TEST_RATE_DRAWN) {
        if (fault->rate_ == UINT64_MAX)
            fault->rate_ = rates[draw(loop, DRAW_RATE, number_below(loop, RATES), RATES)];
        rate = (uint32_t)fault->rate_;
    }
    if (rate == 0 || draw(loop, DRAW_FAULT, number_below(loop, rate) == 0, 2) == 0)
        return false;
    fault->fired++;
    note_line(loop, (test_line){.kind = DRAW_FAULT, .what = fault->name, .value = 1, .of = rate});
    return true;
}

bool bide_maybe_(const char *name)
{
    return bide_sim_loop_fault_(bide_sim_loop_running_, name, TEST_RATE_DRAWN);
}

uint64_t bide_sim_loop_delay_(bide_sim_loop *loop, const char *what, uint64_t max)
{
    enum { DELAYS = 5 }; /* none, and each eight times the one before */
    if (max == 0)
        return 0;
    uint32_t number = draw(loop, DRAW_DELAY, number_below(loop, DELAYS), DELAYS);
    if (number == 0)
        return 0;
    uint64_t delay = max >> (3 * (DELAYS - 1 - number));
    uint64_t microseconds = delay / 1000 < UINT32_MAX ? delay / 1000 : UINT32_MAX;
    note_line(loop, (test_line){
                        .kind = DRAW_DELAY, .what = what, .value = (uint32_t)microseconds});
    return delay;
}

static bool point_ready(bide_awaiter *awaiter)
{
    (void)awaiter;
    return bide_sim_loop_running_ == NULL;
}

static bide_frame *point_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_sim_loop *loop = bide_sim_loop_running_;
    if (loop == NULL || frame->context->scheduler != &loop->scheduler ||
        draw(loop, DRAW_POINT, chance(loop, 1 + turn_exponent(loop) / 2), 2) == 0)
        return frame;
    note_line(loop, (test_line){.kind = DRAW_POINT, .value = 1, .of = 2});
    bide_wake_one(awaiter);
    return NULL;
}

static int point_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

/* It has been posted, or was ready. */
static bool point_withdraw(bide_awaiter *awaiter)
{
    (void)awaiter;
    return false;
}

bide_awaiter *bide_sim_point(bide_sim_point_operation *point)
{
    static const bide_awaiter_ops ops = {
        .ready = point_ready,
        .suspend = point_suspend,
        .resume = point_resume,
        .withdraw = point_withdraw,
        .name = "bide_sim_point",
    };
    point->awaiter.ops = &ops;
    return &point->awaiter;
}
