/*
 * The progress. On a terminal: a line for each transfer in progress, redrawn regularly, and a line
 * with the total. Elsewhere: a line for each finished transfer. Names come from servers, so control
 * characters are not printed.
 */
#include "fetch.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { NAME_WIDTH = 24, MIN_NAME_WIDTH = 12, MIN_WIDTH = 16, USUAL_WIDTH = 80, MAX_LINES = 16 };

static unsigned drawn_lines; /* lines on the screen that the next drawing replaces */

bool progress_is_shown(const struct options *options)
{
    return !options->is_quiet && isatty(STDERR_FILENO);
}

static unsigned terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return USUAL_WIDTH;
    return size.ws_col < MIN_WIDTH ? MIN_WIDTH : size.ws_col;
}

static void print_bytes(char *to, size_t size, double bytes)
{
    static const char units[] = " KMGTP";
    unsigned unit = 0;
    while (bytes >= 1000 && units[unit + 1] != 0) {
        bytes /= 1024;
        unit++;
    }
    snprintf(to, size,
             unit == 0    ? "%.0f B"
             : bytes < 10 ? "%.1f %cB"
                          : "%.0f %cB",
             bytes, units[unit]);
}

static void print_name(char *to, size_t size, const char *name)
{
    size_t length = strlen(name), i = 0;
    if (length >= size) { /* its end is more distinctive */
        *to++ = '~';
        name += length - size + 2;
        size--;
    }
    for (; name[i] != 0 && i + 1 < size; i++)
        to[i] = isprint((unsigned char)name[i]) ? name[i] : '?';
    to[i] = 0;
}

static double elapsed_seconds(const struct transfer *transfer, uint64_t now)
{
    uint64_t end = transfer->finished_at != 0 ? transfer->finished_at : now;
    return end > transfer->started_at ? (double)(end - transfer->started_at) / 1e9 : 1e-9;
}

static void print_bar(char *to, size_t cells, double part)
{
    size_t full = (size_t)(part * (double)cells);
    for (size_t i = 0; i < cells; i++)
        to[i] = i < full ? '=' : i == full ? '>' : ' ';
    to[cells] = 0;
}

/* A line that is redrawn must not be wrapped by the terminal, so it is cut. */
static void draw_line(const char *text, unsigned columns)
{
    for (unsigned i = 0; i < columns && text[i] != 0; i++)
        fputc(isprint((unsigned char)text[i]) ? text[i] : '?', stderr);
    fputs("\033[K\n", stderr);
}

/* Appends a part of the line if a name still fits beside it. */
static void append_part(char *line, size_t size, unsigned columns, const char *part)
{
    size_t length = strlen(line);
    if (length + strlen(part) + MIN_NAME_WIDTH <= columns && length + strlen(part) < size)
        strcpy(line + length, part);
}

/* The bar and the numbers behind the name, those first that matter most. */
static void print_numbers(char *to, size_t size, const struct transfer *transfer, double speed,
                          unsigned columns)
{
    char present[16], rate[16], text[32];
    print_bytes(present, sizeof present, (double)transfer->present);
    print_bytes(rate, sizeof rate, speed);
    snprintf(text, sizeof text, " %8s", present);
    append_part(to, size, columns, text);
    snprintf(text, sizeof text, " %8s/s", rate);
    append_part(to, size, columns, text);
    text[0] = 0;
    if (transfer->size != BIDE_HTTP_UNKNOWN && transfer->size >= transfer->present && speed > 0) {
        unsigned long wait = (unsigned long)((double)(transfer->size - transfer->present) / speed);
        if (wait < 360000)
            snprintf(text, sizeof text, " %3lu:%02lu", wait / 60, wait % 60);
    }
    append_part(to, size, columns, text);
}

static void draw_transfer(const struct transfer *transfer, uint64_t now, unsigned columns)
{
    char name[NAME_WIDTH + 1], percent[16] = "", numbers[80] = "", bar[256] = "", line[512];
    double speed = (double)(transfer->present - transfer->resumed) / elapsed_seconds(transfer, now);
    bool has_size = transfer->size != BIDE_HTTP_UNKNOWN && transfer->size != 0;
    double part = has_size ? (double)transfer->present / (double)transfer->size : 0;
    if (transfer->state != RECEIVING) {
        snprintf(numbers, sizeof numbers, " %.70s",
                 transfer->state == PAUSED ? transfer->problem : "connecting");
    } else {
        if (has_size)
            snprintf(percent, sizeof percent, " %3.0f%%", part * 100);
        print_numbers(numbers, sizeof numbers, transfer, speed,
                      columns - (unsigned)strlen(percent));
    }
    size_t taken =
        strlen(percent) + (transfer->state == RECEIVING ? strlen(numbers) : MIN_NAME_WIDTH);
    size_t width = columns > taken ? columns - taken : 0;
    size_t name_width = width < NAME_WIDTH ? width : NAME_WIDTH;
    print_name(name, name_width + 1, transfer->name);
    if (has_size && transfer->state == RECEIVING && width >= NAME_WIDTH + 8) {
        size_t cells = width - NAME_WIDTH - 3;
        bar[0] = ' ', bar[1] = '[';
        print_bar(bar + 2, cells < sizeof bar - 4 ? cells : sizeof bar - 4, part < 1 ? part : 1);
        strcat(bar, "]");
    }
    snprintf(line, sizeof line, "%-*s%s%s%s", (int)name_width, name, percent, bar, numbers);
    draw_line(line, columns);
}

static void move_up(void)
{
    if (drawn_lines != 0)
        fprintf(stderr, "\033[%uA\r", drawn_lines);
}

void progress_draw(const struct fetch *fetch)
{
    uint64_t now = bide_platform.now(), present = 0;
    unsigned columns = terminal_width(), lines = 0;
    size_t finished_at = 0, failed = 0;
    char all[16], line[128], failures[32] = "";
    move_up();
    for (size_t i = 0; i < fetch->count; i++) {
        const struct transfer *transfer = &fetch->transfers[i];
        present += transfer->present;
        finished_at += transfer->state == DONE;
        failed += transfer->state == FAILED;
        bool is_live = transfer->state == CONNECTING || transfer->state == RECEIVING ||
                       transfer->state == PAUSED;
        if (is_live && lines < MAX_LINES) {
            draw_transfer(transfer, now, columns - 1);
            lines++;
        }
    }
    print_bytes(all, sizeof all, (double)present);
    if (failed != 0)
        snprintf(failures, sizeof failures, ", %zu failed", failed);
    snprintf(line, sizeof line, "%zu of %zu%s, %s", finished_at, fetch->count, failures, all);
    draw_line(line, columns - 1);
    fputs("\033[J", stderr);
    drawn_lines = lines + 1;
}

void progress_clear(const struct fetch *fetch)
{
    (void)fetch;
    move_up();
    if (drawn_lines != 0)
        fputs("\033[J", stderr);
    drawn_lines = 0;
}

void progress_report(const struct fetch *fetch, const struct transfer *transfer)
{
    char name[MAX_NAME], bytes[16], rate[16];
    bool is_shown = progress_is_shown(&fetch->options);
    print_name(name, sizeof name, transfer->state == FAILED ? transfer->url : transfer->name);
    if (transfer->state != FAILED && fetch->options.is_quiet)
        return;
    if (is_shown)
        progress_clear(fetch);
    if (transfer->state == FAILED) {
        fprintf(stderr, "fetch: %s: %s\n", name, transfer->problem);
    } else if (transfer->is_skipped) {
        fprintf(stderr, "%s: there already\n", name);
    } else {
        double seconds = elapsed_seconds(transfer, 0);
        print_bytes(bytes, sizeof bytes, (double)transfer->present);
        print_bytes(rate, sizeof rate, (double)(transfer->present - transfer->resumed) / seconds);
        fprintf(stderr, "%s: %s in %.1f s, %s/s%s\n", name, bytes, seconds, rate,
                transfer->resumed != 0 ? ", resumed" : "");
    }
    if (is_shown)
        progress_draw(fetch);
}
