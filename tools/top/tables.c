#include "tables.h"

#include <stdio.h>
#include <string.h>

/* ---- How much there is ---- */

unsigned tables_draw_summary(const picture *picture, canvas *canvas)
{
    char text[MAX_SHORT];
    canvas_format(canvas, "Tasks %llu: %llu waiting, %llu running, %llu not started; %llu group%s",
                  (unsigned long long)picture->tasks, (unsigned long long)picture->waiting,
                  (unsigned long long)picture->running, (unsigned long long)picture->not_started,
                  (unsigned long long)picture->group_count, picture->group_count == 1 ? "" : "s");
    if (picture->ungrouped != 0)
        canvas_format(canvas, ", and %llu tasks in none", (unsigned long long)picture->ungrouped);
    canvas_format(canvas, "; look took %s", short_time(text, 1000 * picture->took_us));
    if (picture->left_out)
        canvas_text(canvas, "  some is left out");
    canvas_line(canvas);
    return 1;
}

/* ---- Loops and pools ---- */

enum { RUNNER_NAME = 13, BACK_END = 6, THREAD = 16, STATE = 10, NUMBER = 7 };

static void draw_runners_head(canvas *canvas)
{
    canvas_style_is(canvas, STYLE_HEAD);
    canvas_left(canvas, RUNNER_NAME, "LOOP, POOL");
    canvas_left(canvas, BACK_END, "BY");
    canvas_left(canvas, THREAD, "THREAD");
    canvas_left(canvas, STATE, "STATE");
    canvas_right(canvas, NUMBER, "FLIGHT");
    canvas_right(canvas, NUMBER, "TURNS/s");
    canvas_right(canvas, NUMBER, "SLEEP/s");
    canvas_right(canvas, NUMBER, "LONGEST");
    canvas_right(canvas, NUMBER, "STEAL/s");
    canvas_line(canvas);
}

static void draw_rate(canvas *canvas, const picture *picture, uint64_t count)
{
    char text[MAX_SHORT];
    if (picture->since_ms == 0)
        canvas_right(canvas, NUMBER, "-");
    else
        canvas_right(canvas, NUMBER, short_number(text, count * 1000 / picture->since_ms));
}

static void draw_state(canvas *canvas, const picture_runner *runner)
{
    char time[MAX_SHORT];
    char text[64];
    if (runner->kind == RUNNER_POOL) {
        (void)snprintf(text, sizeof text, "%llu asleep", (unsigned long long)runner->asleep);
        canvas_left(canvas, STATE, text);
    } else if (runner->busy_ms != 0) {
        (void)snprintf(text, sizeof text, "busy %s", short_time(time, 1000000 * runner->busy_ms));
        canvas_style_is(canvas, STYLE_BUSY);
        canvas_left(canvas, STATE, text);
        canvas_style_is(canvas, STYLE_PLAIN);
    } else {
        canvas_left(canvas, STATE, runner->state);
    }
}

static void draw_thread(canvas *canvas, const picture_runner *runner)
{
    char text[MAX_NAME + 32];
    if (runner->kind == RUNNER_POOL)
        (void)snprintf(text, sizeof text, "%llu threads", (unsigned long long)runner->workers);
    else if (runner->thread == 0)
        (void)snprintf(text, sizeof text, "none yet");
    else
        (void)snprintf(text, sizeof text, "%llu %s", (unsigned long long)runner->thread,
                       runner->thread_name);
    canvas_left(canvas, THREAD, text);
}

static void draw_name(canvas *canvas, const picture_runner *runner)
{
    char text[MAX_NAME + 32];
    if (runner->kind == RUNNER_WORKER)
        (void)snprintf(text, sizeof text, "  worker %llu", (unsigned long long)runner->worker);
    else if (runner->name[0] != '\0')
        (void)snprintf(text, sizeof text, "%s", runner->name);
    else
        (void)snprintf(text, sizeof text, "%s %llu", runner->kind == RUNNER_LOOP ? "loop" : "pool",
                       (unsigned long long)runner->number);
    canvas_left(canvas, RUNNER_NAME, text);
}

static void draw_runner(canvas *canvas, const picture *picture, const picture_runner *runner)
{
    char text[MAX_SHORT];
    draw_name(canvas, runner);
    canvas_left(canvas, BACK_END,
                runner->kind == RUNNER_LOOP   ? runner->back_end
                : runner->kind == RUNNER_POOL ? "pool"
                                              : "");
    draw_thread(canvas, runner);
    draw_state(canvas, runner);
    canvas_right(canvas, NUMBER,
                 runner->kind == RUNNER_LOOP ? short_number(text, runner->in_flight) : "");
    draw_rate(canvas, picture, runner->runs);
    draw_rate(canvas, picture, runner->sleeps);
    canvas_right(canvas, NUMBER,
                 runner->longest_ns != 0 ? short_time(text, runner->longest_ns) : "-");
    if (runner->kind != RUNNER_LOOP)
        draw_rate(canvas, picture, runner->steals);
    canvas_line(canvas);
}

static const char *base_of(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash != NULL ? slash + 1 : file;
}

/* What it runs, or what ran longest: one line, or none. */
static unsigned draw_turn(canvas *canvas, const picture *picture, const picture_runner *runner)
{
    char text[MAX_SHORT];
    const picture_thread *thread =
        runner->kind == RUNNER_POOL ? NULL : picture_find_thread(picture, runner->thread);
    if (thread == NULL)
        return 0;
    if (thread->runs[0] != '\0' && runner->busy_ms != 0) {
        canvas_style_is(canvas, STYLE_BUSY);
        canvas_format(canvas, "  runs %s for %s, since %s:%llu", thread->runs,
                      short_time(text, thread->runs_ns), base_of(thread->runs_file),
                      (unsigned long long)thread->runs_line);
    } else if (thread->longest[0] != '\0' && thread->longest_ns >= 1000000) {
        canvas_style_is(canvas, STYLE_FAINT);
        canvas_format(canvas, "  longest turn: %s took %s, since %s:%llu", thread->longest,
                      short_time(text, thread->longest_ns), base_of(thread->longest_file),
                      (unsigned long long)thread->longest_line);
    } else {
        return 0;
    }
    canvas_line(canvas);
    return 1;
}

/* Workers are shown where they are wanted, and where one is held up. */
static bool is_shown(const view *view, const picture_runner *runner)
{
    return runner->kind != RUNNER_WORKER || view->shows_workers || runner->busy_ms >= 1000;
}

unsigned tables_draw_runners(const view *view, const picture *picture, canvas *canvas,
                             unsigned most)
{
    unsigned used = 1;
    size_t left = 0;
    if (picture->runners.count == 0 || most < 3)
        return 0;
    draw_runners_head(canvas);
    for (size_t i = 0; i < 2 * picture->runners.count; i++) { /* loops, and then pools */
        const picture_runner *runner = picture_runner_of(picture, i % picture->runners.count);
        bool is_turn = (runner->kind == RUNNER_LOOP) == (i < picture->runners.count);
        if (!is_turn || !is_shown(view, runner))
            continue;
        if (used + 3 > most) { /* (with a line for the turn, and one for what is left) */
            left++;
            continue;
        }
        draw_runner(canvas, picture, runner);
        used += 1 + draw_turn(canvas, picture, runner);
    }
    if (left != 0) {
        canvas_style_is(canvas, STYLE_FAINT);
        canvas_format(canvas, "  and %zu more", left);
        canvas_line(canvas);
        used++;
    }
    return used;
}

/* ---- Groups ---- */

enum { TASKS = 7, DOING = 7, STANDS = 6, FIXED = TASKS + DOING + STANDS + 3 };

typedef struct widths {
    unsigned name, place, wait;
} widths;

static unsigned larger(unsigned one, unsigned other)
{
    return one > other ? one : other;
}

static unsigned smaller(unsigned one, unsigned other)
{
    return one < other ? one : other;
}

/* "body file.c:12" takes so much. */
static unsigned width_of_place(const picture_group *group)
{
    char line[MAX_SHORT];
    int digits = snprintf(line, sizeof line, "%llu", (unsigned long long)group->line);
    bool is_same = strcmp(group->at, group->name) == 0;
    return canvas_width(base_of(group->file)) + 1 + (unsigned)digits +
           (is_same ? 0 : 1 + canvas_width(group->at));
}

/*
 * What the rest of the line is shared out to: as much as each needs, if that goes; otherwise the name
 * has a third at most, what is waited for two fifths, and the place what is left.
 */
static widths widths_of(const view *view, const canvas *canvas)
{
    widths need = {4, 2, 11};
    for (size_t i = 0; i < view->count; i++) {
        const picture_group *group = view->order[i];
        need.name = larger(need.name, canvas_width(group->name));
        need.place = larger(need.place, width_of_place(group));
        need.wait = larger(need.wait, canvas_width(group->waiting_for));
    }
    unsigned left = canvas->columns > FIXED + 30 ? canvas->columns - FIXED - 2 : 30;
    if (canvas->columns == 0 || need.name + need.place + need.wait <= left)
        return need;
    need.name = smaller(need.name, left / 3);
    need.wait = smaller(need.wait, left * 2 / 5);
    need.place = smaller(need.place, left - need.name - need.wait);
    need.wait = left - need.name - need.place;
    return need;
}

void tables_draw_head(const view *view, canvas *canvas)
{
    widths widths = widths_of(view, canvas);
    canvas_style_is(canvas, STYLE_HEAD);
    canvas_right(canvas, TASKS, "TASKS");
    canvas_left(canvas, DOING, "STATE");
    canvas_right(canvas, STANDS, "STANDS");
    canvas_left(canvas, widths.name, "TASK");
    canvas_left(canvas, widths.place, "AT");
    canvas_left(canvas, widths.wait, "WAITING FOR");
    canvas_line(canvas);
}

/* "body file.c:12"; the file and the line stay if it does not fit. */
static void draw_place(canvas *canvas, const picture_group *group, unsigned width)
{
    char place[MAX_FILE + 32] = "";
    char text[MAX_FILE + MAX_NAME + 64] = "";
    bool is_same = strcmp(group->at, group->name) == 0;
    if (group->at[0] != '\0')
        (void)snprintf(place, sizeof place, "%s:%llu", base_of(group->file),
                       (unsigned long long)group->line);
    unsigned taken = canvas_width(place);
    if (taken > width) /* the line stays, whatever else goes */
        memmove(place, place + (taken - width), strlen(place + (taken - width)) + 1);
    if (is_same || taken + 2 > width || group->at[0] == '\0')
        (void)snprintf(text, sizeof text, "%s", place);
    else
        (void)snprintf(text, sizeof text, "%s %.*s", place, (int)(width - taken - 1), group->at);
    canvas_left(canvas, width, text);
}

static void draw_group(canvas *canvas, widths widths, const picture_group *group, bool is_selected)
{
    char text[MAX_SHORT];
    bool runs = strcmp(group->state, "running") == 0;
    canvas_style_is(canvas, is_selected ? STYLE_SELECTED : runs ? STYLE_BUSY : STYLE_PLAIN);
    canvas_right(canvas, TASKS, short_number(text, group->tasks));
    canvas_left(canvas, DOING, strcmp(group->state, "not started") == 0 ? "new" : group->state);
    canvas_right(canvas, STANDS,
                 group->longest_ms != 0 ? short_time(text, 1000000 * group->longest_ms) : "-");
    canvas_left(canvas, widths.name, group->name);
    draw_place(canvas, group, widths.place);
    canvas_left(canvas, widths.wait, group->waiting_for);
    canvas_line(canvas);
}

/* ---- One by one ---- */

static void draw_task(canvas *canvas, const picture_task *task)
{
    char text[MAX_SHORT];
    canvas_text(canvas, "   ");
    canvas_right(canvas, STANDS,
                 task->stands_ms != 0 ? short_time(text, 1000000 * task->stands_ms) : "-");
    canvas_style_is(canvas, STYLE_HEAD);
    canvas_format(canvas, "%llx", (unsigned long long)task->address);
    canvas_style_is(canvas, STYLE_PLAIN);
    if (task->on[0] != '\0')
        canvas_format(canvas, " on %s", task->on);
    if (task->context[0] != '\0')
        canvas_format(canvas, " in %s", task->context);
    canvas_line(canvas);
}

static void draw_frame(canvas *canvas, const picture_frame *frame, size_t number)
{
    canvas_style_is(canvas, STYLE_FAINT);
    canvas_format(canvas, "          #%zu %s at %s:%llu", number, frame->name, frame->file,
                  (unsigned long long)frame->line);
    canvas_line(canvas);
}

/* Draws a line if it is among those that are to be seen. */
typedef struct window {
    canvas *canvas; /* NULL: they are counted */
    size_t at;
    size_t first;
    size_t end;
} window;

static bool is_seen(window *window)
{
    bool seen = window->canvas != NULL && window->at >= window->first && window->at < window->end;
    window->at++;
    return seen;
}

/* Those of one group, or of all (0), without the first `skipped`. */
static void draw_tasks(const picture *picture, uint64_t group, size_t skipped, window *window)
{
    size_t number = 0;
    for (size_t i = 0; i < picture->shown.count; i++) {
        const picture_task *task = picture_task_of(picture, i);
        if ((group != 0 && task->group != group) || number++ < skipped)
            continue;
        if (is_seen(window))
            draw_task(window->canvas, task);
        /* what all of a group have in common is shown once */
        bool has_news = group == 0 || task->depth > 1 || number == skipped + 1;
        for (size_t j = 0; has_news && j < task->frames; j++) {
            if (is_seen(window))
                draw_frame(window->canvas, picture_frame_of(picture, task->first + j), j);
        }
        if (task->depth > task->frames && is_seen(window)) {
            canvas_format(window->canvas, "          ... and %llu more",
                          (unsigned long long)(task->depth - task->frames));
            canvas_line(window->canvas);
        }
    }
}

static table_lines draw_all(const view *view, const picture *picture, window *window)
{
    table_lines table = {0, 0, 1};
    widths widths = {0, 0, 0};
    bool is_found = false;
    if (window->canvas != NULL)
        widths = widths_of(view, window->canvas);
    for (size_t i = 0; i < view->count && !is_found; i++)
        is_found = view->order[i]->id == view->selected;
    for (size_t i = 0; i < view->count; i++) {
        const picture_group *group = view->order[i];
        bool is_selected = is_found ? group->id == view->selected : i == 0;
        if (is_selected)
            table.selected = window->at;
        if (is_seen(window))
            draw_group(window->canvas, widths, group,
                       is_selected && window->canvas->is_screen);
        if (group->id == view->expanded)
            draw_tasks(picture, group->id, view->skipped, window);
        if (is_selected)
            table.selected_end = window->at;
    }
    table.count = window->at;
    return table;
}

table_lines tables_measure(const view *view, const picture *picture)
{
    window window = {NULL, 0, 0, 0};
    return draw_all(view, picture, &window);
}

void tables_draw_groups(const view *view, const picture *picture, canvas *canvas, size_t first,
                        size_t lines)
{
    window window = {canvas, 0, first, lines > SIZE_MAX - first ? SIZE_MAX : first + lines};
    draw_all(view, picture, &window);
    for (; canvas->is_screen && window.at < first + lines; window.at++)
        canvas_line(canvas);
}

void tables_draw_tasks(const picture *picture, canvas *canvas)
{
    window window = {canvas, 0, 0, SIZE_MAX};
    draw_tasks(picture, 0, 0, &window);
}
