/*
 * The reports of a test loop: the text of a failure, and the lines of a trace. One thread does all of
 * it.
 */
#include "sim_loop.h"

#include "../coroutine/internal.h"
#include "../coroutine/roots.h"
#include "../inspect/lock_holder.h"

#include "bide/create.h"
#include "bide/extend/branch.h"
#include "bide/extend/wrapper.h"
#include "bide/inspect.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Tasks ---- */

/* The number of `what` in a list of `max`, to which it is added if there is room; from 1 on. */
static uint32_t number_in(const void **list, uint32_t *count, uint32_t max, const void *what)
{
    uint32_t i = 0;
    while (i < *count && list[i] != what)
        i++;
    if (i == *count && i < max)
        list[(*count)++] = what;
    return i + 1;
}

/* Tasks are identified by their outermost frame, and numbered in the order of their first turn. */
static uint32_t task_number(bide_sim_record_ *record, const bide_frame *frame)
{
    const bide_frame *outer = frame;
    for (const bide_frame *f = frame; f != NULL; f = bide_continuation_(f))
        outer = f;
    return number_in(record->tasks, &record->tasks_count, TASKS, outer);
}

/* The number of a task that has had a turn; 0: it has none. */
static uint32_t number_of_task(const bide_sim_record_ *record, const bide_frame *outermost)
{
    if (record == NULL || record->lines == NULL)
        return 0;
    for (uint32_t i = 0; i < record->tasks_count; i++) {
        if (record->tasks[i] == outermost)
            return i + 1;
    }
    return 0;
}

/* What a root or a branch awaits; NULL: it is neither. */
static bide_awaiter *report_awaited_by(const bide_frame *frame)
{
    const bide_coroutine_code *code = bide_frame_point(frame)->code;
    if (code == &bide_root_code_)
        return bide_container_of(frame, const bide_root, frame)->awaited;
    if (code == &bide_branch_code_)
        return bide_container_of(frame, const bide_branch, frame)->awaited;
    return NULL;
}

/* The live tasks of a loop. The lists are in an order of addresses; this one is in that of the tasks' numbers. */
typedef struct live_task {
    const bide_frame *frame; /* a root's, or that of a scope's branch */
    bool in_scope;
    uint32_t number; /* 0: it has none */
} live_task;

typedef struct live_tasks {
    bide_sim_loop *loop;
    live_task *tasks;
    size_t count;
    size_t capacity;
    bool is_short; /* there was no memory for more */
} live_tasks;

static void live_tasks_add(live_tasks *all, const bide_frame *frame, bool in_scope)
{
    if (all->count == all->capacity) {
        size_t capacity = all->capacity != 0 ? 2 * all->capacity : 64;
        live_task *tasks = realloc(all->tasks, capacity * sizeof *tasks);
        if (tasks == NULL) {
            all->is_short = true;
            return;
        }
        all->tasks = tasks;
        all->capacity = capacity;
    }
    all->tasks[all->count++] =
        (live_task){frame, in_scope, number_of_task(all->loop->record, frame)};
}

static void live_tasks_add_list(live_tasks *all, bide_root_list_ *list, bool are_branches)
{
    enum { AT_ONCE = 16 };
    const bide_root_links_ *links[AT_ONCE];
    size_t count;
    bide_roots_enter_(list);
    while ((count = bide_roots_next_(list, links, AT_ONCE)) != 0) {
        for (size_t i = 0; i < count; i++) {
            const bide_root *root = bide_container_of(links[i], bide_root, links);
            const bide_branch *branch = bide_container_of(links[i], bide_branch, links);
            const bide_context *context = are_branches ? &branch->context : &root->context;
            if (context->scheduler == &all->loop->scheduler)
                live_tasks_add(all, are_branches ? &branch->frame : &root->frame, are_branches);
        }
    }
    bide_roots_leave_(list);
}

static int compare_live_tasks(const void *a, const void *b)
{
    const live_task *first = a;
    const live_task *second = b;
    uint32_t before = first->number - 1; /* those without a number are last */
    uint32_t after = second->number - 1;
    return (before > after) - (before < after);
}

static live_tasks live_tasks_of(bide_sim_loop *loop)
{
    live_tasks all = {.loop = loop};
    bide_roots_look_();
    for (unsigned i = 0; i < BIDE_ROOT_LISTS_; i++)
        live_tasks_add_list(&all, &bide_roots_[i], false);
    for (unsigned i = 0; i < BIDE_ROOT_LISTS_; i++)
        live_tasks_add_list(&all, &bide_branches_[i], true);
    bide_roots_looked_();
    if (all.count != 0)
        qsort(all.tasks, all.count, sizeof *all.tasks, compare_live_tasks);
    return all;
}

/* ---- Frames of a task ---- */

/* Called with each frame of a task, from the outermost on; `is_innermost`: it awaits no coroutine. */
typedef void visit_frame(void *argument, bide_frame *frame, bool is_innermost);

static void visit_frames(bide_frame *frame, visit_frame *visit, void *argument);

/* Visits all branches of the bide_when_all, or the like, of which this is one. */
static void visit_when(bide_branch *one, visit_frame *visit, void *argument)
{
    bide_awaiter *when = one->group->joined;
    bide_branch *branch = one - (one->number - 1);
    for (size_t i = 0; bide_wrapper_of(when)->inner(when, i) != NULL; i++, branch++) {
        if (!bide_done(&branch->frame))
            visit_frames(&branch->frame, visit, argument);
    }
}

/* Several are innermost if one awaits a bide_when_all. A scope's branches are tasks of their own. */
static void visit_frames(bide_frame *frame, visit_frame *visit, void *argument)
{
    for (;;) {
        bide_frame *child = bide_awaited_coroutine_(frame);
        bide_branch *branch = child != NULL && bide_frame_point(child)->code == &bide_branch_code_
                                  ? bide_container_of(child, bide_branch, frame)
                                  : NULL;
        bool is_innermost = child == NULL || (branch != NULL && branch->number == 0);
        visit(argument, frame, is_innermost);
        if (is_innermost)
            return;
        if (branch != NULL) {
            visit_when(branch, visit, argument);
            return;
        }
        frame = child;
    }
}

/* ---- Locks ---- */

/* A lock that a coroutine waits for. */
typedef struct waited_lock {
    const void *lock;
    const void *holder; /* the waiter that has locked it, or had */
    bool is_locked;
} waited_lock;

/* The lock that an operation waits for, if it is one of lock_holder.h. */
static bool lock_of_operation(const bide_awaiter *awaiter, waited_lock *waited)
{
    const bide_lock_layout_ *layout = bide_lock_layout_of_(awaiter->ops->name);
    uintptr_t state;
    if (layout == NULL)
        return false;
    memcpy(&waited->lock, (const char *)awaiter + layout->lock_at, sizeof waited->lock);
    memcpy(&waited->holder, (const char *)waited->lock + layout->holder_at, sizeof waited->holder);
    memcpy(&state, (const char *)waited->lock + layout->state_at, sizeof state);
    waited->is_locked = (state & layout->locked) != 0;
    return true;
}

/* The lock that a suspended coroutine waits for, also inside of operations that wait for one other. */
static bool lock_of_frame(const bide_frame *frame, waited_lock *waited)
{
    const bide_awaiter *awaiter = frame->awaiter.link;
    const bide_wrapper_ops *wrapper;
    if (bide_frame_point(frame)->state != BIDE_AT_AWAIT || awaiter == NULL)
        return false;
    while ((wrapper = bide_wrapper_of(awaiter)) != NULL && wrapper->inner_at != 0)
        memcpy(&awaiter, (const char *)awaiter + wrapper->inner_at, sizeof awaiter);
    return lock_of_operation(awaiter, waited);
}

/* The coroutine in whose struct an address lies: the smallest one, if one is a member of another. */
typedef struct frame_search {
    const void *address;
    const live_task *task; /* that is visited */
    const bide_frame *found;
    const live_task *found_in;
    size_t size;
} frame_search;

static void search_frame(void *argument, bide_frame *frame, bool is_innermost)
{
    frame_search *search = argument;
    size_t size = bide_frame_size_(bide_frame_point(frame)->code);
    (void)is_innermost;
    if (!bide_frame_has_(frame, size, search->address) ||
        (search->found != NULL && search->size <= size))
        return;
    search->found = frame;
    search->found_in = search->task;
    search->size = size;
}

static frame_search find_holder(const live_tasks *all, const void *address)
{
    frame_search search = {.address = address};
    for (size_t i = 0; i < all->count; i++) {
        search.task = &all->tasks[i];
        visit_frames((bide_frame *)(uintptr_t)all->tasks[i].frame, search_frame, &search);
    }
    return search;
}

/* ---- A failure ---- */

/* Appends to the record's text, or writes to stderr. */
static void report_test_piece(void *argument, const char *text, size_t length)
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

static void report_test_text(bide_sim_loop *loop, const char *text)
{
    report_test_piece(loop, text, strlen(text));
}

static void report_task_number(bide_sim_loop *loop, uint32_t task)
{
    char number[16];
    if (task == 0)
        return;
    snprintf(number, sizeof number, "%u: ", task);
    report_test_text(loop, number);
}

/* What is reported of a task: the report, and the locks that have been named in it. */
typedef struct sim_task_report {
    const live_tasks *all;
    const void *locks[LOCKS];
    uint32_t locks_count;
} sim_task_report;

static uint32_t report_lock_number(sim_task_report *report, const void *lock)
{
    bide_sim_record_ *record = report->all->loop->record;
    return record != NULL ? number_in(record->locks, &record->locks_count, LOCKS, lock)
                          : number_in(report->locks, &report->locks_count, LOCKS, lock);
}

/* The lock that a coroutine waits for, and its holder. */
static void report_lock(sim_task_report *report, const waited_lock *waited)
{
    bide_sim_loop *loop = report->all->loop;
    char line[48];
    snprintf(line, sizeof line, "    lock %u is ", report_lock_number(report, waited->lock));
    report_test_text(loop, line);
    if (!waited->is_locked) {
        report_test_text(loop, "free\n");
        return;
    }
    frame_search holder = find_holder(report->all, waited->holder);
    if (holder.found == NULL) {
        report_test_text(loop, "held, by no task that waits here\n");
        return;
    }
    const bide_point *point = bide_frame_point(holder.found);
    report_test_text(loop, "held by task ");
    report_task_number(loop, holder.found_in->number);
    report_test_text(loop, point->code->name);
    report_test_text(loop, " at ");
    report_test_text(loop, point->code->file);
    snprintf(line, sizeof line, ":%u\n", point->line);
    report_test_text(loop, line);
}

static void report_test_innermost(void *argument, bide_frame *frame, bool is_innermost)
{
    sim_task_report *report = argument;
    waited_lock waited;
    if (!is_innermost)
        return;
    bide_backtrace_print(frame, report_test_piece, report->all->loop);
    if (lock_of_frame(frame, &waited))
        report_lock(report, &waited);
}

static void report_test_task(sim_task_report *report, const live_task *task)
{
    bide_sim_loop *loop = report->all->loop;
    const bide_awaiter *awaited = report_awaited_by(task->frame);
    const bide_frame *frame = bide_awaited_frame((bide_awaiter *)(uintptr_t)awaited);
    const bide_coroutine_code *code = frame != NULL ? bide_frame_point(frame)->code : NULL;
    report_test_text(loop, "  task ");
    report_task_number(loop, task->number);
    report_test_text(loop, code != NULL && code->name != NULL ? code->name : awaited->ops->name);
    report_test_text(loop, task->in_scope ? " in a scope:\n" : ":\n");
    visit_frames((bide_frame *)(uintptr_t)task->frame, report_test_innermost, report);
}

static void report_test_tasks(bide_sim_loop *loop)
{
    live_tasks all = live_tasks_of(loop);
    sim_task_report report = {.all = &all};
    for (size_t i = 0; i < all.count; i++)
        report_test_task(&report, &all.tasks[i]);
    if (all.is_short)
        report_test_text(loop, "  (there is no memory to list all)\n");
    else if (all.count == 0)
        report_test_text(loop, "  (nothing that was begun on the loop)\n");
    free(all.tasks);
}

int bide_test_fail_(bide_sim_loop *loop, bide_sim_failure failure, int error, const char *what)
{
    char line[200];
    snprintf(line, sizeof line, "%s after %" PRIu64 " turns, at %" PRIu64 ".%09u s; these wait:\n",
             what, loop->turns, loop->now / TEST_SECOND, (unsigned)(loop->now % TEST_SECOND));
    report_test_text(loop, line);
    report_test_tasks(loop);
    if (loop->record != NULL && loop->record->fails != NULL)
        loop->record->fails(loop, failure, error);
    return error;
}

/* ---- The trace ---- */

static bool is_user_body(const bide_frame *frame)
{
    const bide_coroutine_code *code = bide_frame_point(frame)->code;
    return code != NULL && code->type != NULL && (*code->type)->name != NULL;
}

/* What a root or a branch awaits, at its first turn; otherwise NULL. */
static bide_awaiter *report_first_awaited(const bide_frame *frame)
{
    return bide_frame_point(frame)->state == BIDE_AT_START ? report_awaited_by(frame) : NULL;
}

/*
 * The operation that a posted one is a part of: a wait for a barging mutex runs on a frame of its own, by an
 * operation of the same name.
 */
static const bide_awaiter *whole_operation(const bide_awaiter *posted, const bide_frame *frame)
{
    const bide_coroutine_code *code = bide_frame_point(frame)->code;
    return code != NULL && code->name != NULL && strcmp(code->name, "bide_barging_mutex_lock") == 0
               ? &bide_container_of(frame, const bide_barging_mutex_waiter, frame)->awaiter
               : posted;
}

/* Of a turn that goes on after a wait for a lock: which, and who had it. */
static void note_lock(bide_sim_loop *loop, const bide_awaiter *posted, const bide_frame *frame,
                      test_line *line)
{
    bide_sim_record_ *record = loop->record;
    waited_lock waited;
    if (!lock_of_operation(whole_operation(posted, frame), &waited))
        return;
    line->lock = (uint16_t)number_in(record->locks, &record->locks_count, LOCKS, waited.lock);
    if (record->looks >= LOOKS)
        return;
    live_tasks all = live_tasks_of(loop);
    frame_search holder = find_holder(&all, waited.holder);
    if (holder.found != NULL)
        line->its_holder = (uint16_t)holder.found_in->number;
    record->looks += all.count;
    free(all.tasks);
}

void bide_test_note_turn_(bide_sim_loop *loop, const bide_awaiter *awaiter, uint32_t value,
                          uint32_t of)
{
    if (loop->record == NULL || loop->record->lines == NULL)
        return;
    uintptr_t has_yielded = (uintptr_t)awaiter->frame & BIDE_YIELDS_TOLD_;
    const bide_frame *frame =
        (const bide_frame *)(const void *)((const char *)awaiter->frame - has_yielded);
    const bide_frame *body = frame;
    const bide_point *point = bide_frame_point(frame);
    const char *other = bide_test_turn_name_(frame);
    if (other != NULL) {
        bide_test_note_line_(
            loop, (test_line){.kind = DRAW_TURN, .what = other, .value = value, .of = of});
        return;
    }
    const char *what = bide_awaiter_is_frame(awaiter) ? NULL : awaiter->ops->name;
    while (body != NULL && !is_user_body(body))
        body = bide_continuation_(body);
    if (body != NULL)
        point = bide_frame_point(body);
    bide_awaiter *first = report_first_awaited(frame);
    if (first != NULL) {
        const bide_frame *child = bide_awaited_frame(first);
        point = child != NULL ? bide_frame_point(child) : NULL;
        what = first->ops->name;
    }
    test_line line = {.kind = DRAW_TURN,
                      .point = point,
                      .what = what,
                      .task = task_number(loop->record, frame),
                      .value = value,
                      .of = of};
    if (what != NULL && first == NULL)
        note_lock(loop, awaiter, frame, &line);
    bide_test_note_line_(loop, line);
}

static void print_test_point(FILE *file, const bide_point *point)
{
    if (point == NULL || point->code == NULL)
        return;
    const char *path = point->code->file != NULL ? point->code->file : "?";
    const char *slash = strrchr(path, '/');
    fprintf(file, "%s at %s:%u", point->code->name, slash != NULL ? slash + 1 : path, point->line);
}

static void print_test_turn(FILE *file, const test_line *line)
{
    if (line->task != 0)
        fprintf(file, "task %u: ", line->task);
    print_test_point(file, line->point);
    if (line->point == NULL)
        fprintf(file, line->task != 0 ? "%s begins" : "%s", line->what);
    else if (line->point->state == BIDE_AT_START)
        fputs(" begins", file);
    else if (line->what != NULL)
        fprintf(file, " goes on after %s", line->what);
    if (line->lock != 0)
        fprintf(file, " of lock %u", line->lock);
    if (line->its_holder != 0)
        fprintf(file, ", which task %u had", line->its_holder);
    if (line->value == 0)
        return;
    if (line->value < HOLD)
        fprintf(file, "   <- before %u that were first", line->value);
    else
        fprintf(file, "   <- the first is held back for %u turns", 2u << (line->value - HOLD));
}

void bide_sim_line_print_(FILE *file, const test_line *line)
{
    fprintf(file, "  %4" PRIu64 ".%09u  ", line->time / TEST_SECOND,
            (unsigned)(line->time % TEST_SECOND));
    switch (line->kind) {
    case DRAW_TURN:
        print_test_turn(file, line);
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
    case DRAW_FORK:
        fprintf(file, "   <- the parent runs %s the child that it forks",
                line->value == 1 ? "beside" : "before");
        break;
    case DRAW_OWN:
    default:
        if (line->what != NULL)
            fprintf(file, "   draws \"%s\" %u of %u", line->what, line->value, line->of);
        else
            fprintf(file, "   draws %u of %u", line->value, line->of);
        break;
    }
    fputc('\n', file);
}
