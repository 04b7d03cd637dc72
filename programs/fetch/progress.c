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

enum { NAME_WIDTH = 24, MIN_WIDTH = 40, MAX_LINES = 16 };

static unsigned drawn_lines; /* lines on the screen that the next drawing replaces */

bool progress_is_shown(const struct options *options)
{
    return !options->is_quiet && isatty(STDERR_FILENO);
}

static unsigned terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < MIN_WIDTH)
        return MIN_WIDTH;
    return size.ws_col;
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

static void draw_transfer(const struct transfer *transfer, uint64_t now, unsigned columns)
{
    char name[NAME_WIDTH + 1], present[16], rate[16], left[32] = "", bar[256];
    double seconds = elapsed_seconds(transfer, now);
    double speed = (double)(transfer->present - transfer->resumed) / seconds;
    print_name(name, sizeof name, transfer->name);
    if (transfer->state != RECEIVING) {
        fprintf(stderr, "%-*s %.*s\033[K\n", NAME_WIDTH, name, (int)columns - NAME_WIDTH - 2,
                transfer->state == PAUSED ? transfer->problem : "connecting");
        return;
    }
    print_bytes(present, sizeof present, (double)transfer->present);
    print_bytes(rate, sizeof rate, speed);
    if (transfer->size == BIDE_HTTP_UNKNOWN || transfer->size == 0) {
        fprintf(stderr, "%-*s %8s %8s/s\033[K\n", NAME_WIDTH, name, present, rate);
        return;
    }
    double part = (double)transfer->present / (double)transfer->size;
    if (speed > 0 && transfer->size >= transfer->present) {
        unsigned long wait = (unsigned long)((double)(transfer->size - transfer->present) / speed);
        if (wait < 360000)
            snprintf(left, sizeof left, "%lu:%02lu", wait / 60, wait % 60);
    }
    size_t fixed = NAME_WIDTH + 36; /* the width of everything else in the line */
    size_t cells = columns > fixed + 8 ? columns - fixed : 0;
    print_bar(bar, cells < sizeof bar ? cells : sizeof bar - 1, part < 1 ? part : 1);
    fprintf(stderr, "%-*s %3.0f%% %s%s%s %8s %8s/s %6s\033[K\n", NAME_WIDTH, name, part * 100,
            cells != 0 ? "[" : "", cells != 0 ? bar : "", cells != 0 ? "]" : "", present, rate,
            left);
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
    char all[16];
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
    fprintf(stderr, "%zu of %zu%s", finished_at, fetch->count, failed != 0 ? ", " : "");
    if (failed != 0)
        fprintf(stderr, "%zu failed", failed);
    fprintf(stderr, ", %s\033[K\n\033[J", all);
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
