/*
 * A canvas is a growing buffer. Columns are counted in the terminal's columns, not in bytes.
 */
#include "canvas.h"

#include "bide/platform.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

void canvas_begin(canvas *canvas, unsigned columns)
{
    canvas->length = 0;
    canvas->columns = columns;
    canvas->column = 0;
    canvas->style = STYLE_PLAIN;
    canvas->is_lost = false;
}

void canvas_free(canvas *canvas)
{
    free(canvas->bytes);
    canvas->bytes = NULL;
    canvas->room = 0;
}

static void canvas_add(canvas *canvas, const char *bytes, size_t length)
{
    if (canvas->room - canvas->length < length) {
        size_t room = canvas->room != 0 ? 2 * canvas->room : 4096;
        while (room - canvas->length < length)
            room *= 2;
        char *larger = realloc(canvas->bytes, room);
        if (larger == NULL) {
            canvas->is_lost = true;
            return;
        }
        canvas->bytes = larger;
        canvas->room = room;
    }
    memcpy(canvas->bytes + canvas->length, bytes, length);
    canvas->length += length;
}

void canvas_raw(canvas *canvas, const char *text)
{
    canvas_add(canvas, text, strlen(text));
}

/* Without colours, styles are bold or reverse. */
void canvas_style_is(canvas *canvas, canvas_style style)
{
    static const char *const plain[STYLES] = {"\033[0m",   "\033[0;7m", "\033[0;1m",
                                              "\033[0;7m", "\033[0;1m", "\033[0m"};
    static const char *const coloured[STYLES] = {"\033[0m",       "\033[0;1;37;44m", "\033[0;1;36m",
                                                 "\033[0;30;47m", "\033[0;1;31m",    "\033[0;90m"};
    if (style == canvas->style)
        return;
    canvas->style = style;
    if (canvas->is_screen || canvas->has_colours)
        canvas_raw(canvas, (canvas->has_colours ? coloured : plain)[style]);
}

/* ---- Characters ---- */

typedef struct character {
    const char *bytes;
    size_t length;
    unsigned width;
} character;

/* Returns the next character of a text that is not at its end. */
static character next_character(const char *text, mbstate_t *state)
{
    static const char dot[] = ".";
    wchar_t wide;
    size_t length = mbrtowc(&wide, text, strlen(text), state);
    if (length == (size_t)-1 || length == (size_t)-2 || length == 0) {
        memset(state, 0, sizeof *state);
        return (character){dot, 1, 1};
    }
    int width = wcwidth(wide);
    if (width < 1 || (wide >= 0x80 && wide < 0xa0))
        return (character){dot, length, 1};
    return (character){text, length, (unsigned)width};
}

unsigned canvas_width(const char *text)
{
    mbstate_t state = {0};
    unsigned width = 0;
    while (*text != '\0') {
        character next = next_character(text, &state);
        width += next.width;
        text += next.length;
    }
    return width;
}

/* Adds up to `max` columns; returns how many it has added. */
static unsigned canvas_put(canvas *canvas, const char *text, unsigned max)
{
    mbstate_t state = {0};
    unsigned width = 0;
    if (canvas->columns != 0 && canvas->columns - canvas->column < max)
        max = canvas->columns - canvas->column;
    while (*text != '\0') {
        character next = next_character(text, &state);
        if (next.width > max - width)
            break;
        canvas_add(canvas, next.bytes, next.bytes == text ? next.length : 1);
        width += next.width;
        text += next.length;
    }
    canvas->column += width;
    bide_assert(canvas->columns == 0 || canvas->column <= canvas->columns);
    return width;
}

static void canvas_fill(canvas *canvas, unsigned count)
{
    while (count-- != 0 && canvas_put(canvas, " ", 1) != 0) {
    }
}

void canvas_text(canvas *canvas, const char *text)
{
    canvas_put(canvas, text, UINT32_MAX);
}

void canvas_format(canvas *canvas, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    canvas_text(canvas, text);
}

void canvas_left(canvas *canvas, unsigned width, const char *text)
{
    canvas_fill(canvas, width - canvas_put(canvas, text, width));
    canvas_fill(canvas, 1);
}

void canvas_right(canvas *canvas, unsigned width, const char *text)
{
    unsigned taken = canvas_width(text);
    canvas_fill(canvas, taken < width ? width - taken : 0);
    canvas_put(canvas, text, width);
    canvas_fill(canvas, 1);
}

void canvas_line(canvas *canvas)
{
    if (canvas->is_screen) {
        if (canvas->style == STYLE_TITLE || canvas->style == STYLE_SELECTED)
            canvas_fill(canvas, canvas->columns - canvas->column);
        canvas_style_is(canvas, STYLE_PLAIN);
        canvas_raw(canvas, "\033[K\r\n");
    } else {
        canvas_style_is(canvas, STYLE_PLAIN);
        while (canvas->length != 0 && canvas->bytes[canvas->length - 1] == ' ')
            canvas->length--;
        canvas_raw(canvas, "\n");
    }
    canvas->column = 0;
}

/* ---- Numbers ---- */

const char *short_number(char text[SHORT_SIZE], uint64_t number)
{
    static const char units[] = "kMGTPE";
    if (number < 100000) {
        (void)snprintf(text, SHORT_SIZE, "%u", (unsigned)number);
        return text;
    }
    int unit = 0;
    while (number >= 1000000) {
        number /= 1000;
        unit++;
    }
    unsigned whole = (unsigned)(number / 1000);
    unsigned tenth = (unsigned)(number / 100 % 10);
    if (whole < 100)
        (void)snprintf(text, SHORT_SIZE, "%u.%u%c", whole, tenth, units[unit]);
    else
        (void)snprintf(text, SHORT_SIZE, "%u%c", whole, units[unit]);
    return text;
}

const char *short_time(char text[SHORT_SIZE], uint64_t nanoseconds)
{
    uint64_t micro = nanoseconds / 1000;
    uint64_t seconds = micro / 1000000;
    if (micro < 1000)
        (void)snprintf(text, SHORT_SIZE, "%uus", (unsigned)micro);
    else if (micro < 10000)
        (void)snprintf(text, SHORT_SIZE, "%u.%ums", (unsigned)(micro / 1000),
                       (unsigned)(micro / 100 % 10));
    else if (micro < 1000000)
        (void)snprintf(text, SHORT_SIZE, "%ums", (unsigned)(micro / 1000));
    else if (seconds < 60)
        (void)snprintf(text, SHORT_SIZE, "%u.%us", (unsigned)seconds,
                       (unsigned)(micro / 100000 % 10));
    else if (seconds < 3600)
        (void)snprintf(text, SHORT_SIZE, "%um%02us", (unsigned)(seconds / 60),
                       (unsigned)(seconds % 60));
    else if (seconds < 86400)
        (void)snprintf(text, SHORT_SIZE, "%uh%02um", (unsigned)(seconds / 3600),
                       (unsigned)(seconds / 60 % 60));
    else
        (void)snprintf(text, SHORT_SIZE, "%ud%02uh", (unsigned)(seconds / 86400 % 100000),
                       (unsigned)(seconds / 3600 % 24));
    return text;
}
