/*
 * The reports of a test loop: the text of a failure, and the lines of a trace. One thread does all of
 * it.
 */
#include "sim_loop.h"

#include "../coroutine/internal.h"
#include "../coroutine/roots.h"

#include "bide/create.h"
#include "bide/extend/branch.h"
#include "bide/extend/wrapper.h"
#include "bide/inspect.h"

#include <inttypes.h>
#include <string.h>

/* ---- Tasks ---- */

/* Tasks are identified by their outermost frame, and numbered in the order of their first turn. */
static uint32_t task_number(bide_sim_record_ *record, const bide_frame *frame)
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

/* Calls `visit` with each link of these lists; returns how often that was true. */
static size_t each_link(bide_sim_loop *loop, bide_root_list_ lists[BIDE_ROOT_LISTS_],
                        bool (*visit)(bide_sim_loop *loop, const bide_root_links_ *links))
{
    enum { AT_ONCE = 16 };
    const bide_root_links_ *links[AT_ONCE];
    size_t all = 0;
    for (unsigned i = 0; i < BIDE_ROOT_LISTS_; i++) {
        size_t count;
        bide_roots_enter_(&lists[i]);
        while ((count = bide_roots_next_(&lists[i], links, AT_ONCE)) != 0) {
            for (size_t j = 0; j < count; j++)
                all += visit(loop, links[j]);
        }
        bide_roots_leave_(&lists[i]);
    }
    return all;
}

/* The branch that a frame is; NULL: it is none. */
static bide_branch *report_branch_of(bide_frame *frame)
{
    return bide_frame_point(frame)->code == &bide_branch_code_
               ? bide_container_of(frame, bide_branch, frame)
               : NULL;
}

static void report_test_innermost(bide_sim_loop *loop, bide_frame *frame);

/* All branches of the bide_when_all, or the like, of which this is one. */
static void report_test_when(bide_sim_loop *loop, bide_branch *one)
{
    bide_awaiter *when = one->group->joined;
    bide_branch *branch = one - (one->number - 1);
    for (size_t i = 0; bide_wrapper_of(when)->inner(when, i) != NULL; i++, branch++) {
        if (!bide_done(&branch->frame))
            report_test_innermost(loop, &branch->frame);
    }
}

/*
 * The innermost coroutines under a frame that waits: several, if one of them awaits a bide_when_all. A
 * scope's branches are tasks of their own.
 */
static void report_test_innermost(bide_sim_loop *loop, bide_frame *frame)
{
    bide_frame *child;
    while ((child = bide_awaited_coroutine_(frame)) != NULL) {
        bide_branch *branch = report_branch_of(child);
        if (branch != NULL && branch->number != 0) {
            report_test_when(loop, branch);
            return;
        }
        if (branch != NULL)
            break;
        frame = child;
    }
    bide_backtrace_print(frame, report_test_piece, loop);
}

static void report_test_task(bide_sim_loop *loop, const bide_frame *outermost,
                             bide_awaiter *awaited, const char *where)
{
    const bide_frame *frame = bide_awaited_frame(awaited);
    const bide_coroutine_code *code = frame != NULL ? bide_frame_point(frame)->code : NULL;
    report_test_text(loop, "  task ");
    if (loop->record != NULL && loop->record->lines != NULL) {
        char number[16];
        snprintf(number, sizeof number, "%u: ", task_number(loop->record, outermost));
        report_test_text(loop, number);
    }
    report_test_text(loop, code != NULL && code->name != NULL ? code->name : awaited->ops->name);
    report_test_text(loop, where);
    report_test_text(loop, ":\n");
    report_test_innermost(loop, (bide_frame *)(uintptr_t)outermost);
}

static bool report_test_root(bide_sim_loop *loop, const bide_root_links_ *links)
{
    const bide_root *root = bide_container_of(links, bide_root, links);
    if (root->context.scheduler != &loop->scheduler)
        return false;
    report_test_task(loop, &root->frame, root->awaited, "");
    return true;
}

static bool report_test_branch(bide_sim_loop *loop, const bide_root_links_ *links)
{
    const bide_branch *branch = bide_container_of(links, bide_branch, links);
    if (branch->context.scheduler != &loop->scheduler)
        return false;
    report_test_task(loop, &branch->frame, branch->awaited, " in a scope");
    return true;
}

static size_t report_test_tasks(bide_sim_loop *loop)
{
    bide_roots_look_();
    size_t count = each_link(loop, bide_roots_, report_test_root);
    count += each_link(loop, bide_branches_, report_test_branch);
    bide_roots_looked_();
    return count;
}

int bide_test_fail_(bide_sim_loop *loop, bide_sim_failure failure, int error, const char *what)
{
    char line[200];
    snprintf(line, sizeof line, "%s after %" PRIu64 " turns, at %" PRIu64 ".%09u s; these wait:\n",
             what, loop->turns, loop->now / TEST_SECOND, (unsigned)(loop->now % TEST_SECOND));
    report_test_text(loop, line);
    if (report_test_tasks(loop) == 0)
        report_test_text(loop, "  (nothing that was begun on the loop)\n");
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
static bide_awaiter *first_of(const bide_frame *frame)
{
    const bide_point *point = bide_frame_point(frame);
    if (point->state != BIDE_AT_START)
        return NULL;
    if (point->code == &bide_root_code_)
        return bide_container_of(frame, const bide_root, frame)->awaited;
    if (point->code == &bide_branch_code_)
        return bide_container_of(frame, const bide_branch, frame)->awaited;
    return NULL;
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
    bide_awaiter *first = first_of(frame);
    if (first != NULL) {
        const bide_frame *child = bide_awaited_frame(first);
        point = child != NULL ? bide_frame_point(child) : NULL;
        what = first->ops->name;
    }
    bide_test_note_line_(loop, (test_line){.kind = DRAW_TURN,
                                           .point = point,
                                           .what = what,
                                           .task = task_number(loop->record, frame),
                                           .value = value,
                                           .of = of});
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
    case DRAW_OWN:
    default:
        fprintf(file, "   draws %u of %u", line->value, line->of);
        break;
    }
    fputc('\n', file);
}
