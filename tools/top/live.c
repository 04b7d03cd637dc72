/*
 * The live screen: coroutines of one scope, on one loop.
 *
 *     poller    takes a look, replaces the old picture by the new one, and sleeps for an interval
 *     painter   draws after each change
 *     reader    reads keys, and changes the view
 *     catchers  one for each signal
 *
 * They share the view and the pictures without a lock, because none of them awaits between reading and
 * changing them.
 */
#include "live.h"

#include "keys.h"
#include "screen.h"
#include "view.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MILLISECOND UINT64_C(1000000)
#define SECOND      UINT64_C(1000000000)

enum { GROUPS = 1024, TASKS_SHOWN = 100, INTERVALS = 7, SIGNALS = 7 };

typedef struct live live;

struct poller {
    bide_task task;
    bide_branch branch;
    live *live;
    wire_request request;
    bide_auto_event_waiter wait;
    bide_with_deadline_operation limited;
};

struct painter {
    bide_task task;
    bide_branch branch;
    live *live;
    bide_auto_event_waiter wait;
    bide_file_operation write;
};

struct reader {
    bide_task task;
    bide_branch branch;
    live *live;
    bide_file_operation read;
    char bytes[64];
};

struct catcher {
    bide_task task;
    bide_branch branch;
    live *live;
    int number;
    bool listens;
    bide_signal signal;
    bide_signal_waiter wait;
};

struct live {
    bide_task task;
    const live_options *options;
    wire wire;
    picture pictures[2];
    picture *shown;
    picture *next;
    view view;
    canvas canvas;
    screen screen;
    bide_descriptor input, output;
    bide_auto_event is_changed;   /* draw */
    bide_auto_event is_impatient; /* look */
    bide_scope scope;
    struct poller poller;
    struct painter painter;
    struct reader reader;
    struct catcher catchers[SIGNALS];
    bool is_over; /* the program has ended */
    int ended_by; /* a signal, or 0 */
};

static void request_redraw(live *live)
{
    bide_auto_event_set(&live->is_changed);
}

static void live_quit(live *live, int number)
{
    live->ended_by = number;
    bide_scope_stop(&live->scope);
}

/* ---- Looking ---- */

static void swap_pictures(live *live)
{
    picture *before = live->shown;
    live->shown = live->next;
    live->next = before;
}

/* While the view is paused, the poller takes a look only after a key that needs one. */
bide_coroutine(poller_body)
{
    bide_begin(poller_body, struct poller * self);
    int status;
    for (;;) {
        self->request = (wire_request){
            .group = self->live->view.expanded,
            .tasks = self->live->view.expanded != 0 ? TASKS_SHOWN : 0,
            .groups = GROUPS,
            .wants_turns = self->live->options->wants_turns,
        };
        picture_clear(self->live->next);
        bide_await_status(status, wire_look(&self->live->wire, &self->request, self->live->next));
        if (status == -ECANCELED)
            bide_return(status);
        if (status < 0)
            break;
        swap_pictures(self->live);
        request_redraw(self->live);
        if (self->live->view.is_paused)
            bide_await_status(status, bide_auto_event_wait(&self->wait, &self->live->is_impatient));
        else
            bide_await_status(
                status,
                bide_with_deadline(&self->limited,
                                   bide_now(bide_this_context()) + self->live->view.interval,
                                   bide_auto_event_wait(&self->wait, &self->live->is_impatient)));
        if (status == -ECANCELED)
            bide_return(status);
    }
    (void)snprintf(self->live->view.message, sizeof self->live->view.message, "%s.",
                   self->live->wire.problem);
    self->live->is_over = true;
    request_redraw(self->live);
    bide_end();
}

/* ---- Drawing ---- */

static void draw_screen(live *live)
{
    bide_terminal_size size;
    if (bide_terminal_get_size(&live->output, &size) != 0 || size.columns == 0 || size.rows == 0)
        size = (bide_terminal_size){80, 24};
    view_draw(&live->view, live->shown, &live->canvas, size.columns, size.rows);
}

bide_coroutine(painter_body)
{
    bide_begin(painter_body, struct painter * self);
    for (;;) {
        bide_try(bide_auto_event_wait(&self->wait, &self->live->is_changed));
        if (!self->live->screen.is_ours)
            continue;
        draw_screen(self->live);
        bide_try(bide_write(&self->write, &self->live->output, self->live->canvas.bytes,
                            self->live->canvas.length));
    }
    bide_end();
}

/* ---- Keys ---- */

static void change_interval(view *view, int by)
{
    static const uint64_t intervals[INTERVALS] = {250 * MILLISECOND, 500 * MILLISECOND, SECOND,
                                                  2 * SECOND,        5 * SECOND,        10 * SECOND,
                                                  60 * SECOND};
    int at = 0;
    while (at + 1 < INTERVALS && intervals[at] < view->interval)
        at++;
    at += by;
    view->interval = intervals[at < 0 ? 0 : at >= INTERVALS ? INTERVALS - 1 : at];
}

/* A key while the filter is typed. */
static void type_filter(view *view, int key)
{
    size_t length = strlen(view->filter);
    if (key == KEY_ENTER) {
        view->is_typing = false;
    } else if (key == KEY_ESCAPE) {
        view->is_typing = false;
        view->filter[0] = '\0';
    } else if (key == KEY_BACKSPACE || key == KEY_DELETE) {
        while (length != 0 && ((unsigned char)view->filter[length - 1] & 0xc0) == 0x80)
            length--; /* a whole character */
        view->filter[length != 0 ? length - 1 : 0] = '\0';
    } else if (key >= ' ' && key < KEY_UP && length + 1 < FILTER_SIZE) {
        view->filter[length] = (char)key;
        view->filter[length + 1] = '\0';
    }
}

/* Selects another group. False: the key has another meaning. */
static bool move_by_key(view *view, const picture *picture, int key)
{
    long by;
    switch (key) {
    case KEY_UP:
    case 'k':
        by = -1;
        break;
    case KEY_DOWN:
    case 'j':
        by = 1;
        break;
    case KEY_PAGE_UP:
        by = -10;
        break;
    case KEY_PAGE_DOWN:
        by = 10;
        break;
    case KEY_HOME:
        by = -GROUPS;
        break;
    case KEY_END:
        by = GROUPS;
        break;
    default:
        return false;
    }
    view_arrange(view, picture);
    view_move(view, by);
    return true;
}

static void expand_selected(live *live)
{
    view *view = &live->view;
    view_arrange(view, live->shown);
    view_move(view, 0);
    view->expanded = view->expanded == view->selected ? 0 : view->selected;
    view->skipped = 0;
    bide_auto_event_set(&live->is_impatient);
}

/* Scrolls through the tasks of the expanded group. */
static void skip_tasks(live *live, int key)
{
    enum { STEP = 5 };
    view *view = &live->view;
    if (key == KEY_LEFT)
        view->skipped -= view->skipped < STEP ? view->skipped : STEP;
    else if (view->skipped + STEP < live->shown->shown.count)
        view->skipped += STEP;
}

static void toggle_pause(live *live)
{
    live->view.is_paused = !live->view.is_paused;
    bide_auto_event_set(&live->is_impatient);
}

/* Keys that only change the view. */
static void change_view(view *view, int key)
{
    switch (key) {
    case 's':
        view->sort = (view->sort + 1) % SORTS;
        break;
    case 'B':
        view->sort = SORT_BUSY;
        break;
    case 'R':
        view->sort = SORT_RUNS;
        break;
    case 'W':
        view->sort = SORT_WAKES;
        break;
    case 'r':
        view->is_reversed = !view->is_reversed;
        break;
    case 'w':
        view->shows_workers = !view->shows_workers;
        break;
    case 'l':
        view->hides_executors = !view->hides_executors;
        break;
    case '/':
        view->is_typing = true;
        break;
    case KEY_ESCAPE:
        view->filter[0] = '\0';
        view->expanded = 0;
        break;
    case 'h':
    case '?':
        view->shows_help = true;
        break;
    default:
        break;
    }
}

static void do_key(live *live, int key)
{
    view *view = &live->view;
    if (key == KEY_CONTROL_C || (key == 'q' && !view->is_typing)) {
        live_quit(live, 0);
    } else if (key == KEY_CONTROL_Z) {
        screen_suspend(&live->screen);
    } else if (view->is_typing) {
        type_filter(view, key);
    } else if (view->shows_help) {
        view->shows_help = false;
    } else if (key == KEY_ENTER || key == ' ') {
        expand_selected(live);
    } else if (key == KEY_LEFT || key == KEY_RIGHT) {
        skip_tasks(live, key);
    } else if (key == 'p') {
        toggle_pause(live);
    } else if (key == '+' || key == '-') {
        change_interval(view, key == '+' ? -1 : 1);
        bide_auto_event_set(&live->is_impatient);
    } else if (!move_by_key(view, live->shown, key)) {
        change_view(view, key);
    }
    request_redraw(live);
}

static void do_keys(live *live, const char *bytes, size_t count)
{
    while (count != 0) {
        size_t taken;
        do_key(live, key_of(bytes, count, &taken));
        bytes += taken;
        count -= taken;
    }
}

/* The program quits at the end of the input. */
bide_coroutine(reader_body)
{
    bide_begin(reader_body, struct reader * self);
    for (;;) {
        bide_try(bide_read(&self->read, &self->live->input, self->bytes, sizeof self->bytes));
        if (self->read.operation.count == 0)
            break;
        do_keys(self->live, self->bytes, self->read.operation.count);
    }
    live_quit(self->live, SIGHUP);
    bide_end();
}

/* ---- Signals ---- */

static const int signals[SIGNALS] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT};

/* A signal that cannot be listened for keeps its default action. */
static void listen_for_signals(live *live)
{
    for (int i = 0; i < SIGNALS; i++) {
        struct catcher *catcher = &live->catchers[i];
        catcher->live = live;
        catcher->number = signals[i];
        catcher->listens = bide_signal_listen(&catcher->signal, signals[i]) == 0;
    }
}

static void stop_listening(live *live)
{
    for (int i = 0; i < SIGNALS; i++) {
        if (live->catchers[i].listens)
            bide_signal_destroy(&live->catchers[i].signal);
    }
}

static void do_signal(live *live, int number)
{
    switch (number) {
    case SIGTSTP:
        screen_suspend(&live->screen);
        break;
    case SIGCONT: /* SIGSTOP may have stopped it, and the terminal may have changed */
        screen_leave(&live->screen);
        (void)screen_enter(&live->screen, &live->input);
        break;
    case SIGWINCH:
        break;
    default:
        live_quit(live, number);
        break;
    }
    request_redraw(live);
}

bide_coroutine(catcher_body)
{
    bide_begin(catcher_body, struct catcher * self);
    for (;;) {
        bide_try(bide_signal_wait(&self->wait, &self->signal));
        do_signal(self->live, self->number);
    }
    bide_end();
}

/* ---- The whole screen ---- */

static void start_coroutines(live *live)
{
    live->poller.live = live;
    live->painter.live = live;
    live->reader.live = live;
    bide_scope_spawn(&live->scope, &live->poller.branch,
                     bide_task_init(&live->poller.task, &poller_body));
    bide_scope_spawn(&live->scope, &live->painter.branch,
                     bide_task_init(&live->painter.task, &painter_body));
    bide_scope_spawn(&live->scope, &live->reader.branch,
                     bide_task_init(&live->reader.task, &reader_body));
    for (int i = 0; i < SIGNALS; i++) {
        if (live->catchers[i].listens)
            bide_scope_spawn(&live->scope, &live->catchers[i].branch,
                             bide_task_init(&live->catchers[i].task, &catcher_body));
    }
}

bide_coroutine(live_body)
{
    bide_begin(live_body, live * self);
    bide_try(wire_open(&self->wire, &self->pictures[0]));
    self->pictures[1] = self->pictures[0];
    int error = screen_enter(&self->screen, &self->input);
    if (error < 0)
        bide_return(error);
    bide_scope_init(&self->scope, bide_this_frame());
    start_coroutines(self);
    bide_await(bide_scope_join(&self->scope));
    bide_finally();
    screen_leave(&self->screen);
    wire_close(&self->wire);
    bide_end();
}

static int open_terminal(live *live)
{
    int error = bide_standard_input(&live->input);
    if (error == 0)
        error = bide_standard_output(&live->output);
    if (error == 0 && (!bide_is_terminal(&live->input) || !bide_is_terminal(&live->output)))
        error = -ENOTTY;
    return error;
}

static void live_init(live *live, const live_options *options)
{
    live->options = options;
    wire_init(&live->wire, options->path);
    live->shown = &live->pictures[0];
    live->next = &live->pictures[1];
    live->view.interval = options->interval;
    live->canvas.is_screen = true;
    live->canvas.has_colours = options->has_colours;
    bide_descriptor_init_closed(&live->input);
    bide_descriptor_init_closed(&live->output);
    bide_auto_event_init(&live->is_changed, true);
    bide_auto_event_init(&live->is_impatient, false);
}

static void report_failure(const live *live, int status)
{
    if (live->wire.problem[0] != '\0')
        fprintf(stderr, "bide-top: %s: %s\n", live->options->path, live->wire.problem);
    else
        fprintf(stderr, "bide-top: the terminal: %s\n", strerror(-status));
}

int live_show(bide_loop *loop, const live_options *options)
{
    static live live;
    live_init(&live, options);
    int status = open_terminal(&live);
    if (status == -ENOTTY) {
        fprintf(stderr, "bide-top: the input and the output are not a terminal; see --once\n");
    } else if (status == 0) {
        listen_for_signals(&live);
        status = bide_loop_wait(loop, bide_task_init(&live.task, &live_body));
        stop_listening(&live);
        if (status < 0)
            report_failure(&live, status);
    }
    bide_close(&live.input);
    bide_close(&live.output);
    canvas_free(&live.canvas);
    view_free(&live.view);
    picture_free(&live.pictures[0]);
    picture_free(&live.pictures[1]);
    if (live.ended_by != 0)
        raise(live.ended_by); /* as it would have ended without us */
    return status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
