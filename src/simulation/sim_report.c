/*
 * The reports of a test loop: the text of a failure, and the lines of a trace. One thread does all of
 * it.
 */
#include "sim_loop.h"

#include "../coroutine/internal.h"
#include "../coroutine/roots.h"

#include "bide/create.h"
#include "bide/inspect.h"

#include <inttypes.h>
#include <string.h>

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

static bool is_root_of(const bide_sim_loop *loop, const bide_root *root)
{
    return root->context.scheduler == &loop->scheduler;
}

/* Calls `visit` with each live root of the loop; returns how many there are. */
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
                if (!is_root_of(loop, root))
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

static void report_test_root(bide_sim_loop *loop, const bide_root *root)
{
    const bide_frame *frame = bide_awaited_frame(root->awaited);
    const bide_coroutine_code *code = frame != NULL ? bide_frame_point(frame)->code : NULL;
    report_test_text(loop, "  task ");
    report_test_text(loop,
                     code != NULL && code->name != NULL ? code->name : root->awaited->ops->name);
    report_test_text(loop, ":\n");
    bide_backtrace_print(bide_innermost((bide_frame *)(uintptr_t)&root->frame), report_test_piece,
                         loop);
}

int bide_test_fail_(bide_sim_loop *loop, bide_sim_failure failure, int error, const char *what)
{
    char line[200];
    snprintf(line, sizeof line, "%s after %" PRIu64 " turns, at %" PRIu64 ".%09u s; these wait:\n",
             what, loop->turns, loop->now / TEST_SECOND, (unsigned)(loop->now % TEST_SECOND));
    report_test_text(loop, line);
    if (each_root(loop, report_test_root) == 0)
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
    if (point->code == &bide_root_code_) {
        const bide_root *root = bide_container_of(frame, bide_root, frame);
        const bide_frame *first = bide_awaited_frame(root->awaited);
        if (first != NULL)
            point = bide_frame_point(first);
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
