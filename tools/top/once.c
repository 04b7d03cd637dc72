/*
 * One look, which is printed as text or as JSON, and the list of programs with a monitor. JSON is
 * printed from the records as the monitor sent them, but for characters that a terminal may act upon,
 * which are escaped.
 */
#include "once.h"

#include "places.h"
#include "view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- A look ---- */

struct looking {
    bide_task task;
    wire *wire;
    picture *picture;
    const wire_request *request;
};

bide_coroutine(looking_body)
{
    bide_begin(looking_body, struct looking * self);
    bide_try(wire_open(self->wire, self->picture));
    bide_try(wire_look(self->wire, self->request, self->picture));
    bide_finally();
    wire_close(self->wire);
    bide_end();
}

/* Returns 0, or a negative errno after an error message. */
static int look_once(bide_loop *loop, wire *wire, picture *picture, const wire_request *request)
{
    struct looking looking = {.wire = wire, .picture = picture, .request = request};
    int status = bide_loop_wait(loop, bide_task_init(&looking.task, &looking_body));
    if (status < 0)
        fprintf(stderr, "bide-top: %s: %s\n", wire->path, wire->problem);
    return status;
}

static int end_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EXIT_SUCCESS;
    perror("bide-top");
    return EXIT_FAILURE;
}

static unsigned output_columns(void)
{
    struct winsize size;
    return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

int once_print(bide_loop *loop, const char *path, const wire_request *request, bool has_colours)
{
    static wire wire;
    picture picture = {0};
    view view = {.shows_workers = true, .expanded = request->group};
    canvas canvas = {.has_colours = has_colours};
    wire_init(&wire, path);
    int status = look_once(loop, &wire, &picture, request);
    if (status == 0) {
        view_print(&view, &picture, &canvas, output_columns());
        if (request->tasks != 0 && request->group == 0)
            view_print_tasks(&picture, &canvas);
        fwrite(canvas.bytes, 1, canvas.length, stdout);
    }
    canvas_free(&canvas);
    view_free(&view);
    picture_free(&picture);
    return status == 0 ? end_output() : EXIT_FAILURE;
}

/* ---- As JSON ---- */

/* The valid records, as they were received. */
typedef struct kept {
    char *lines;
    size_t length, room;
    bool is_lost;
} kept;

enum { MAX_KEPT = 16 << 20 };

static void keep_record(void *argument, const char *line, size_t length)
{
    kept *kept = argument;
    if (kept->room - kept->length < length + 1) {
        size_t room = kept->room != 0 ? 2 * kept->room : 65536;
        while (room - kept->length < length + 1)
            room *= 2;
        char *larger = room <= MAX_KEPT ? realloc(kept->lines, room) : NULL;
        if (larger == NULL) {
            kept->is_lost = true;
            return;
        }
        kept->lines = larger;
        kept->room = room;
    }
    memcpy(kept->lines + kept->length, line, length);
    kept->length += length;
    kept->lines[kept->length++] = '\n';
}

static bool is_of_kind(const char *line, size_t length, const char *kind)
{
    static char copy[WIRE_LINE_SIZE];
    static record record;
    if (length >= sizeof copy)
        return false;
    memcpy(copy, line, length);
    return record_read(&record, copy, length) && record_is(&record, kind);
}

/* Prints a valid record. What a terminal may act upon is escaped: it can only be part of a text. */
static void print_record(const char *line, size_t length)
{
    for (size_t at = 0, size; at < length; at += size) {
        uint32_t code;
        size = record_character(line + at, length - at, &code);
        if (code == RECORD_INVALID)
            printf("\\ufffd");
        else if (record_is_control(code) && code >= 0x7f)
            printf("\\u%04x", (unsigned)code);
        else
            fwrite(line + at, 1, size, stdout);
    }
}

/* Prints the records of a kind, separated by commas. */
static void print_kind(const kept *kept, const char *kind, const char *indent)
{
    const char *separator = "";
    for (size_t at = 0; at < kept->length;) {
        const char *line = kept->lines + at;
        size_t length = (size_t)((const char *)memchr(line, '\n', kept->length - at) - line);
        if (is_of_kind(line, length, kind)) {
            printf("%s%s", separator, indent);
            print_record(line, length);
            separator = ",";
        }
        at += length + 1;
    }
}

int once_print_json(bide_loop *loop, const char *path, const wire_request *request)
{
    static const char *const kinds[][2] = {
        {"loop", "loops"},   {"pool", "pools"}, {"worker", "workers"}, {"thread", "threads"},
        {"group", "groups"}, {"task", "tasks"}, {"frame", "frames"}};
    static wire wire;
    picture picture = {0};
    kept kept = {0};
    wire_init(&wire, path);
    wire.raw = keep_record;
    wire.argument = &kept;
    int status = look_once(loop, &wire, &picture, request);
    if (status == 0 && kept.is_lost) {
        fprintf(stderr, "bide-top: out of memory for the answer\n");
        status = -ENOMEM;
    }
    if (status == 0) {
        printf("{\"program\":");
        print_kind(&kept, "hello", "");
        printf(",\n\"look\":");
        print_kind(&kept, "look", "");
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
            printf(",\n\"%s\":[", kinds[i][1]);
            print_kind(&kept, kinds[i][0], "\n");
            printf("]");
        }
        printf("}\n");
    }
    free(kept.lines);
    picture_free(&picture);
    return status == 0 ? end_output() : EXIT_FAILURE;
}

/* ---- The list of programs ---- */

static void list_one(bide_loop *loop, int process, bool as_json, size_t *count)
{
    static wire wire;
    static canvas canvas;
    char path[PATH_SIZE], number[SHORT_SIZE];
    picture picture = {0};
    kept kept = {0};
    if (!places_find(process, path))
        return;
    wire_init(&wire, path);
    wire.raw = keep_record;
    wire.argument = &kept;
    int status = bide_loop_wait(loop, wire_open(&wire, &picture));
    wire_close(&wire);
    if (status == -ECONNREFUSED) {
        places_remove_left_over(process);
        free(kept.lines);
        return;
    }
    canvas_begin(&canvas, 0);
    if (as_json && status == 0) {
        printf("%s\n", *count != 0 ? "," : "");
        print_record(kept.lines, kept.length - 1);
    } else if (!as_json) {
        if (*count == 0)
            printf("    PID  BIDE    PROGRAM\n");
        (void)snprintf(number, sizeof number, "%d", process);
        canvas_right(&canvas, 7, number);
        canvas_text(&canvas, " ");
        canvas_left(&canvas, 7, status == 0 ? picture.library : "-");
        canvas_text(&canvas, status == 0 ? picture.program : wire.problem);
        canvas_line(&canvas);
        fwrite(canvas.bytes, 1, canvas.length, stdout);
    }
    *count += status == 0 || !as_json;
    free(kept.lines);
}

int once_list(bide_loop *loop, bool as_json)
{
    static int processes[MAX_PLACES];
    size_t found = places_list(processes);
    size_t count = 0;
    if (as_json)
        printf("[");
    for (size_t i = 0; i < found; i++)
        list_one(loop, processes[i], as_json, &count);
    if (as_json)
        printf("]\n");
    else if (count == 0)
        printf("No program of yours has a monitor (bide_monitor_start) at its usual place.\n");
    return end_output();
}
