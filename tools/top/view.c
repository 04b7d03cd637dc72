/*
 * Sorts, filters and scrolls the groups, and draws the screen around the tables.
 */
#include "view.h"

#include "tables.h"

#include "bide/platform.h"

#include <stdlib.h>
#include <string.h>

void view_free(view *view)
{
    free(view->order);
    view->order = NULL;
    view->order_room = 0;
}

/* ---- Sorting and filtering ---- */

static int compare_numbers(uint64_t one, uint64_t other)
{
    return (one > other) - (one < other);
}

static int compare_places(const picture_group *one, const picture_group *other)
{
    int order = strcmp(one->file, other->file);
    return order != 0 ? order : compare_numbers(one->line, other->line);
}

static int by_view(const void *one, const void *other, void *argument)
{
    const picture_group *a = *(const picture_group *const *)one;
    const picture_group *b = *(const picture_group *const *)other;
    const view *view = argument;
    int order = 0;
    switch (view->sort) {
    case SORT_STANDS:
        order = compare_numbers(b->longest_ms, a->longest_ms);
        break;
    case SORT_NAME:
        order = strcmp(a->name, b->name);
        break;
    case SORT_PLACE:
        order = compare_places(a, b);
        break;
    case SORT_BUSY:
        order = compare_numbers(b->turns.busy_ns, a->turns.busy_ns);
        break;
    case SORT_RUNS:
        order = compare_numbers(b->turns.runs, a->turns.runs);
        break;
    case SORT_WAKES:
        order = compare_numbers(b->turns.wakes, a->turns.wakes);
        break;
    case SORT_TASKS:
    case SORTS:
    default:
        order = compare_numbers(b->tasks, a->tasks);
        break;
    }
    if (order == 0)
        order = compare_numbers(a->id, b->id);
    return view->is_reversed ? -order : order;
}

static bool is_wanted(const view *view, const picture_group *group)
{
    const char *const texts[] = {group->name, group->at,          group->context,
                                 group->file, group->waiting_for, group->state};
    if (view->filter[0] == '\0')
        return true;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strcasestr(texts[i], view->filter) != NULL)
            return true;
    }
    return false;
}

void view_arrange(view *view, const picture *picture)
{
    view->count = 0;
    if (view->order_room < picture->groups.count) {
        const picture_group **larger = realloc(view->order, picture->groups.count * sizeof *larger);
        if (larger == NULL)
            return;
        view->order = larger;
        view->order_room = picture->groups.count;
    }
    for (size_t i = 0; i < picture->groups.count; i++) {
        const picture_group *group = picture_group_of(picture, i);
        if (is_wanted(view, group))
            view->order[view->count++] = group;
    }
    bide_assert(view->count <= view->order_room);
    if (view->count != 0)
        qsort_r(view->order, view->count, sizeof(const picture_group *), by_view, view);
}

/* Returns the index of the selected group; 0 if it is not shown. */
static size_t selected_place(const view *view)
{
    for (size_t i = 0; i < view->count; i++) {
        if (view->order[i]->id == view->selected)
            return i;
    }
    return 0;
}

void view_move(view *view, long by)
{
    if (view->count == 0)
        return;
    size_t at = selected_place(view);
    size_t last = view->count - 1;
    if (by < 0)
        at = at < (size_t)-by ? 0 : at - (size_t)-by;
    else
        at = last - at < (size_t)by ? last : at + (size_t)by;
    view->selected = view->order[at]->id;
}

/* ---- The screen ---- */

static void draw_title(const view *view, const picture *picture, canvas *canvas)
{
    char text[SHORT_SIZE];
    canvas_style_is(canvas, STYLE_TITLE);
    canvas_format(canvas, "bide-top  %s  pid %llu  bide %s", picture->program,
                  (unsigned long long)picture->pid, picture->library);
    canvas_format(canvas, "  every %s", short_time(text, view->interval));
    if (view->is_paused)
        canvas_text(canvas, "  PAUSED");
    canvas_line(canvas);
}

static const char *const help[] = {
    "",
    "  up down PgUp PgDn Home End   choose a group of tasks (also k and j)",
    "  Enter, Space   show or hide its tasks, with the coroutines they await",
    "  right, left    the next tasks, the previous tasks",
    "  s  sort by tasks, time in place, name, place, busy, runs, wakes;  r  reverse",
    "  B  sort by busy time;  R  by runs;  W  by wakes",
    "  /  show only the groups that contain a text;  Esc  show all groups",
    "  w  show each worker of the pools;  l  hide loops and pools",
    "  p  pause;  +  look more often;  -  less often;  Ctrl-L  redraw;  q  quit",
    "",
    "  STANDS   how long every look has found a task at this place (it may have",
    "           continued and come back between two looks); of a group, the longest",
    "  BUSY     time in turns since the previous look; 100% is one processor",
    "  RUNS/s   turns that have started; WAKE/s  of these, after a wait",
    "  FLIGHT   operations on descriptors that have not completed",
    "  LONGEST  the longest turn so far, if the program times its turns; the line",
    "           below a loop shows the longest turn since the previous look",
    "  busy 5s  the time in the current turn, during which all other tasks wait",
};

static void draw_help(canvas *canvas, unsigned rows)
{
    size_t lines = sizeof help / sizeof help[0];
    for (unsigned i = 0; i < rows; i++) {
        if (i < lines)
            canvas_text(canvas, help[i]);
        canvas_line(canvas);
    }
}

static void draw_bottom(const view *view, canvas *canvas)
{
    static const char *const sorts[SORTS] = {"tasks", "stands", "name", "place",
                                             "busy",  "runs",   "wakes"};
    if (view->is_typing) {
        canvas_format(canvas, "filter: %s_", view->filter);
    } else if (view->message[0] != '\0') {
        canvas_style_is(canvas, STYLE_BUSY);
        canvas_text(canvas, view->message);
    } else if (view->filter[0] != '\0') {
        canvas_format(canvas, "only with \"%s\" (Esc: all)  ", view->filter);
    }
    if (!view->is_typing && view->shows_help) {
        canvas_style_is(canvas, STYLE_FAINT);
        canvas_text(canvas, "any key: back");
    } else if (!view->is_typing) {
        canvas_style_is(canvas, STYLE_FAINT);
        canvas_format(canvas, "%sq quit  h help  Enter tasks  / filter  s sort: %s%s  p pause",
                      view->message[0] != '\0' ? "  " : "", sorts[view->sort],
                      view->is_reversed ? ", reversed" : "");
    }
    canvas_style_is(canvas, STYLE_PLAIN);
    canvas_raw(canvas, "\033[K");
}

/* Scrolls so that the selected group is among the `lines` visible lines. */
static void scroll_to_selection(view *view, const table_lines *table, size_t lines)
{
    if (table->selected < view->first)
        view->first = table->selected;
    if (table->selected >= view->first + lines)
        view->first = table->selected - lines + 1;
    /* the tasks of an expanded group are shown as far as there is room */
    if (table->selected_end > view->first + lines)
        view->first = table->selected_end - lines < table->selected ? table->selected_end - lines
                                                                    : table->selected;
    if (table->count < view->first + lines)
        view->first = table->count > lines ? table->count - lines : 0;
}

void view_draw(view *view, const picture *picture, canvas *canvas, unsigned columns, unsigned rows)
{
    canvas_begin(canvas, columns);
    canvas_raw(canvas, "\033[H");
    if (rows < 4 || columns < 20) {
        canvas_text(canvas, "too small");
        canvas_raw(canvas, "\033[J");
        return;
    }
    draw_title(view, picture, canvas);
    unsigned used = 2; /* with the bottom */
    if (view->shows_help) {
        draw_help(canvas, rows > used ? rows - used : 0);
    } else {
        used += tables_draw_summary(picture, canvas);
        if (!view->hides_executors)
            used +=
                tables_draw_executors(view, picture, canvas, rows > used + 8 ? rows - used - 8 : 0);
        view_arrange(view, picture);
        if (rows > used + 1) {
            tables_draw_head(view, picture, canvas);
            size_t lines = rows - used - 1;
            table_lines table = tables_measure(view, picture);
            scroll_to_selection(view, &table, lines);
            tables_draw_groups(view, picture, canvas, view->first, lines);
        }
    }
    draw_bottom(view, canvas);
    canvas_raw(canvas, "\033[J");
}

void view_print(view *view, const picture *picture, canvas *canvas, unsigned columns)
{
    canvas_begin(canvas, columns);
    canvas_format(canvas, "%s  pid %llu  bide %s", picture->program,
                  (unsigned long long)picture->pid, picture->library);
    canvas_line(canvas);
    tables_draw_summary(picture, canvas);
    tables_draw_executors(view, picture, canvas, UINT32_MAX);
    view_arrange(view, picture);
    tables_draw_head(view, picture, canvas);
    tables_draw_groups(view, picture, canvas, 0, SIZE_MAX);
}

void view_print_tasks(const picture *picture, canvas *canvas)
{
    tables_draw_tasks(picture, canvas);
}
