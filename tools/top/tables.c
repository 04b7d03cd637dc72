/*
 * Draws the tables. The width of a line is shared out among the columns of groups by their contents.
 */
#include "tables.h"

#include <stdio.h>
#include <string.h>

/* ---- Summary ---- */

unsigned tables_draw_summary(const picture *picture, canvas *canvas)
{
    char text[SHORT_SIZE];
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

enum { EXECUTOR_NAME = 13, BACK_END = 6, THREAD = 16, STATE = 10, NUMBER = 7 };

/* Too narrow for all columns. */
static bool is_narrow(const canvas *canvas)
{
    enum { NARROW = 60 };
    return canvas->columns != 0 && canvas->columns < NARROW;
}

static void draw_executors_head(canvas *canvas)
{
    canvas_style_is(canvas, STYLE_HEAD);
    canvas_left(canvas, EXECUTOR_NAME, "LOOP, POOL");
    if (!is_narrow(canvas)) {
        canvas_left(canvas, BACK_END, "BY");
        canvas_left(canvas, THREAD, "THREAD");
    }
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
    char text[SHORT_SIZE];
    if (picture->since_ms == 0)
        canvas_right(canvas, NUMBER, "-");
    else
        canvas_right(canvas, NUMBER, short_number(text, count * 1000 / picture->since_ms));
}

static void draw_state(canvas *canvas, const picture_executor *executor)
{
    char time[SHORT_SIZE];
    char text[64];
    if (executor->kind == EXECUTOR_POOL) {
        (void)snprintf(text, sizeof text, "%llu asleep", (unsigned long long)executor->asleep);
        canvas_left(canvas, STATE, text);
    } else if (executor->busy_ms != 0) {
        (void)snprintf(text, sizeof text, "busy %s", short_time(time, 1000000 * executor->busy_ms));
        canvas_style_is(canvas, STYLE_BUSY);
        canvas_left(canvas, STATE, text);
        canvas_style_is(canvas, STYLE_PLAIN);
    } else {
        canvas_left(canvas, STATE, executor->state);
    }
}

static void draw_thread(canvas *canvas, const picture_executor *executor)
{
    char text[NAME_SIZE + 32];
    if (executor->kind == EXECUTOR_POOL)
        (void)snprintf(text, sizeof text, "%llu threads", (unsigned long long)executor->workers);
    else if (executor->thread == 0)
        (void)snprintf(text, sizeof text, "none yet");
    else
        (void)snprintf(text, sizeof text, "%llu %s", (unsigned long long)executor->thread,
                       executor->thread_name);
    canvas_left(canvas, THREAD, text);
}

static void draw_name(canvas *canvas, const picture_executor *executor)
{
    char text[NAME_SIZE + 32];
    if (executor->kind == EXECUTOR_WORKER)
        (void)snprintf(text, sizeof text, "  worker %llu", (unsigned long long)executor->worker);
    else if (executor->name[0] != '\0')
        (void)snprintf(text, sizeof text, "%s", executor->name);
    else
        (void)snprintf(text, sizeof text, "%s %llu",
                       executor->kind == EXECUTOR_LOOP ? "loop" : "pool",
                       (unsigned long long)executor->number);
    canvas_left(canvas, EXECUTOR_NAME, text);
}

static void draw_executor(canvas *canvas, const picture *picture, const picture_executor *executor)
{
    char text[SHORT_SIZE];
    draw_name(canvas, executor);
    if (!is_narrow(canvas)) {
        canvas_left(canvas, BACK_END,
                    executor->kind == EXECUTOR_LOOP   ? executor->back_end
                    : executor->kind == EXECUTOR_POOL ? "pool"
                                                      : "");
        draw_thread(canvas, executor);
    }
    draw_state(canvas, executor);
    canvas_right(canvas, NUMBER,
                 executor->kind == EXECUTOR_LOOP ? short_number(text, executor->in_flight) : "");
    draw_rate(canvas, picture, executor->runs);
    draw_rate(canvas, picture, executor->sleeps);
    canvas_right(canvas, NUMBER,
                 executor->longest_ns != 0 ? short_time(text, executor->longest_ns) : "-");
    if (executor->kind != EXECUTOR_LOOP)
        draw_rate(canvas, picture, executor->steals);
    canvas_line(canvas);
}

static const char *base_of(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash != NULL ? slash + 1 : file;
}

/* Draws the running coroutine of a busy thread, or the longest turn. Returns the number of lines. */
static unsigned draw_turn(canvas *canvas, const picture *picture, const picture_executor *executor)
{
    char text[SHORT_SIZE];
    const picture_thread *thread =
        executor->kind == EXECUTOR_POOL ? NULL : picture_find_thread(picture, executor->thread);
    if (thread == NULL)
        return 0;
    if (thread->runs[0] != '\0' && executor->busy_ms != 0) {
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

/* A worker is shown if workers are wanted, or if it has been busy for a second. */
static bool is_shown(const view *view, const picture_executor *executor)
{
    return executor->kind != EXECUTOR_WORKER || view->shows_workers || executor->busy_ms >= 1000;
}

unsigned tables_draw_executors(const view *view, const picture *picture, canvas *canvas,
                               unsigned max)
{
    unsigned used = 1;
    size_t left = 0;
    if (picture->executors.count == 0 || max < 3)
        return 0;
    draw_executors_head(canvas);
    for (size_t i = 0; i < 2 * picture->executors.count; i++) { /* loops, and then pools */
        const picture_executor *executor =
            picture_executor_of(picture, i % picture->executors.count);
        bool is_turn = (executor->kind == EXECUTOR_LOOP) == (i < picture->executors.count);
        if (!is_turn || !is_shown(view, executor))
            continue;
        if (used + 3 > max) { /* with a line for its turn, and one for the rest */
            left++;
            continue;
        }
        draw_executor(canvas, picture, executor);
        used += 1 + draw_turn(canvas, picture, executor);
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

enum { TASKS = 7, DOING = 7, STANDS = 6, BUSY = 5, RATE = 6 };

/* Widths in columns; 0: the column is left out. */
typedef struct widths {
    unsigned doing, stands, busy, runs, wakes;
    unsigned name, place, wait;
} widths;

/* From narrow terminals, some columns are left out. Text for a file has no rates. */
static widths fixed_widths_of(const canvas *canvas, bool has_turns)
{
    enum { NARROW = 50, MEDIUM = 80, WIDE = 100 };
    unsigned columns = canvas->columns != 0 ? canvas->columns : UINT32_MAX;
    widths widths = {.doing = columns >= NARROW ? DOING : 0,
                     .stands = columns >= MEDIUM ? STANDS : 0};
    if (has_turns && canvas->is_screen) {
        widths.busy = BUSY;
        widths.runs = RATE;
        widths.wakes = columns >= WIDE ? RATE : 0;
    }
    return widths;
}

/* With a space behind each column. */
static unsigned sum_of_fixed(const widths *widths)
{
    const unsigned all[] = {TASKS,        widths->doing, widths->stands,
                            widths->busy, widths->runs,  widths->wakes};
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        sum += all[i] != 0 ? all[i] + 1 : 0;
    return sum;
}

static unsigned larger_of(unsigned one, unsigned other)
{
    return one > other ? one : other;
}

static unsigned smaller_of(unsigned one, unsigned other)
{
    return one < other ? one : other;
}

/* Returns the width of "body file.c:12". */
static unsigned width_of_place(const picture_group *group)
{
    char line[SHORT_SIZE];
    int digits = snprintf(line, sizeof line, "%llu", (unsigned long long)group->line);
    bool is_same = strcmp(group->at, group->name) == 0;
    return canvas_width(base_of(group->file)) + 1 + (unsigned)digits +
           (is_same ? 0 : 1 + canvas_width(group->at));
}

/* On a narrow terminal the name comes first; the place is shown if there is room for some of it. */
static widths share_of_narrow(widths need, unsigned left)
{
    enum { PLACE_MIN = 10 };
    need.wait = 0;
    need.name = smaller_of(need.name, left);
    left -= need.name;
    need.place = left > PLACE_MIN ? smaller_of(need.place, left - 1) : 0;
    return need;
}

/*
 * Shares out the rest of the line. If the columns do not fit, the name gets a third at most, the
 * awaited operation two fifths at most, and the place the rest.
 */
static widths widths_of(const view *view, const picture *picture, const canvas *canvas)
{
    widths need = fixed_widths_of(canvas, picture->turns_us != 0);
    const unsigned fixed = sum_of_fixed(&need);
    need.name = 4;
    need.place = 2;
    need.wait = 11;
    for (size_t i = 0; i < view->count; i++) {
        const picture_group *group = view->order[i];
        need.name = larger_of(need.name, canvas_width(group->name));
        need.place = larger_of(need.place, width_of_place(group));
        need.wait = larger_of(need.wait, canvas_width(group->waiting_for));
    }
    unsigned left = canvas->columns > fixed ? canvas->columns - fixed : 0;
    if (canvas->columns != 0 && left < 32)
        return share_of_narrow(need, left);
    left -= 2;
    if (canvas->columns == 0 || need.name + need.place + need.wait <= left)
        return need;
    need.name = smaller_of(need.name, left / 3);
    need.wait = smaller_of(need.wait, left * 2 / 5);
    need.place = smaller_of(need.place, left - need.name - need.wait);
    need.wait = left - need.name - need.place;
    return need;
}

/* A column that may be left out. */
static void draw_left(canvas *canvas, unsigned width, const char *text)
{
    if (width != 0)
        canvas_left(canvas, width, text);
}

static void draw_right(canvas *canvas, unsigned width, const char *text)
{
    if (width != 0)
        canvas_right(canvas, width, text);
}

void tables_draw_head(const view *view, const picture *picture, canvas *canvas)
{
    widths widths = widths_of(view, picture, canvas);
    canvas_style_is(canvas, STYLE_HEAD);
    canvas_right(canvas, TASKS, "TASKS");
    draw_left(canvas, widths.doing, "STATE");
    draw_right(canvas, widths.stands, "STANDS");
    draw_right(canvas, widths.busy, "BUSY");
    draw_right(canvas, widths.runs, "RUNS/s");
    draw_right(canvas, widths.wakes, "WAKE/s");
    canvas_left(canvas, widths.name, "TASK");
    draw_left(canvas, widths.place, "AT");
    draw_left(canvas, widths.wait, "WAITING FOR");
    canvas_line(canvas);
}

/* Draws "body file.c:12", or only the end of that if it does not fit. */
static void draw_place(canvas *canvas, const picture_group *group, unsigned width)
{
    char place[FILE_SIZE + 32] = "";
    char text[FILE_SIZE + NAME_SIZE + 64] = "";
    bool is_same = strcmp(group->at, group->name) == 0;
    if (group->at[0] != '\0')
        (void)snprintf(place, sizeof place, "%s:%llu", base_of(group->file),
                       (unsigned long long)group->line);
    unsigned taken = canvas_width(place);
    if (taken > width) /* the number of the line is kept */
        memmove(place, place + (taken - width), strlen(place + (taken - width)) + 1);
    if (is_same || taken + 2 > width || group->at[0] == '\0')
        (void)snprintf(text, sizeof text, "%s", place);
    else
        (void)snprintf(text, sizeof text, "%s %.*s", place, (int)(width - taken - 1), group->at);
    canvas_left(canvas, width, text);
}

/* Counts per second. */
static const char *short_rate(char text[SHORT_SIZE], const picture *picture, uint64_t count)
{
    double rate = (double)count * 1e6 / (double)picture->turns_us;
    if (rate > 0 && rate < 10)
        (void)snprintf(text, SHORT_SIZE, "%.1f", rate);
    else
        (void)short_number(text, rate < 1e18 ? (uint64_t)rate : UINT64_C(1000000000000000000));
    return text;
}

/* In percent of one processor. */
static const char *short_busy(char text[SHORT_SIZE], const picture *picture, uint64_t busy_ns)
{
    double percent = (double)busy_ns / 10 / (double)picture->turns_us;
    (void)snprintf(text, SHORT_SIZE, percent < 9.95 ? "%.1f%%" : "%.0f%%",
                   percent < 9999 ? percent : 9999);
    return text;
}

static void draw_turns(canvas *canvas, const picture *picture, const widths *widths,
                       const picture_turns *turns)
{
    char text[SHORT_SIZE];
    if (widths->busy != 0)
        canvas_right(canvas, widths->busy, short_busy(text, picture, turns->busy_ns));
    if (widths->runs != 0)
        canvas_right(canvas, widths->runs, short_rate(text, picture, turns->runs));
    if (widths->wakes != 0)
        canvas_right(canvas, widths->wakes, short_rate(text, picture, turns->wakes));
}

static void draw_group(canvas *canvas, const picture *picture, widths widths,
                       const picture_group *group, bool is_selected)
{
    char text[SHORT_SIZE];
    bool runs = strcmp(group->state, "running") == 0;
    canvas_style_is(canvas, is_selected ? STYLE_SELECTED : runs ? STYLE_BUSY : STYLE_PLAIN);
    canvas_right(canvas, TASKS, short_number(text, group->tasks));
    draw_left(canvas, widths.doing,
              strcmp(group->state, "not started") == 0 ? "new" : group->state);
    draw_right(canvas, widths.stands,
               group->longest_ms != 0 ? short_time(text, 1000000 * group->longest_ms) : "-");
    draw_turns(canvas, picture, &widths, &group->turns);
    canvas_left(canvas, widths.name, group->name);
    if (widths.place != 0)
        draw_place(canvas, group, widths.place);
    draw_left(canvas, widths.wait, group->waiting_for);
    canvas_line(canvas);
}

/* ---- Tasks ---- */

static void draw_task(canvas *canvas, const picture *picture, const picture_task *task)
{
    char text[SHORT_SIZE], other[SHORT_SIZE], third[SHORT_SIZE];
    canvas_text(canvas, "   ");
    canvas_right(canvas, STANDS,
                 task->stands_ms != 0 ? short_time(text, 1000000 * task->stands_ms) : "-");
    canvas_style_is(canvas, STYLE_HEAD);
    canvas_format(canvas, "%llx", (unsigned long long)task->address);
    canvas_style_is(canvas, STYLE_PLAIN);
    if (picture->turns_us != 0 && canvas->is_screen)
        canvas_format(canvas, " busy %s, %s runs/s, %s wakes/s",
                      short_busy(text, picture, task->turns.busy_ns),
                      short_rate(other, picture, task->turns.runs),
                      short_rate(third, picture, task->turns.wakes));
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

/* The range of lines that is visible. */
typedef struct window {
    canvas *canvas; /* NULL: lines are only counted */
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

/* Draws the tasks of one group, or of all (0), without the first `skipped`. */
static void draw_tasks(const picture *picture, uint64_t group, size_t skipped, window *window)
{
    size_t number = 0;
    for (size_t i = 0; i < picture->shown.count; i++) {
        const picture_task *task = picture_task_of(picture, i);
        if ((group != 0 && task->group != group) || number++ < skipped)
            continue;
        if (is_seen(window))
            draw_task(window->canvas, picture, task);
        /* the frames that all tasks of a group have in common are shown once */
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
    widths widths = {0};
    bool is_found = false;
    if (window->canvas != NULL)
        widths = widths_of(view, picture, window->canvas);
    for (size_t i = 0; i < view->count && !is_found; i++)
        is_found = view->order[i]->id == view->selected;
    for (size_t i = 0; i < view->count; i++) {
        const picture_group *group = view->order[i];
        bool is_selected = is_found ? group->id == view->selected : i == 0;
        if (is_selected)
            table.selected = window->at;
        if (is_seen(window))
            draw_group(window->canvas, picture, widths, group,
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
