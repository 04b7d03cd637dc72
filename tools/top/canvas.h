/*
 * Text for a terminal or a file, which is built line by line, in columns, and cut at the width. The
 * text may come from another process, so unprintable characters become dots.
 */
#ifndef TOP_CANVAS_H
#define TOP_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum canvas_style {
    STYLE_PLAIN,
    STYLE_TITLE,    /* of the screen */
    STYLE_HEAD,     /* of a table */
    STYLE_SELECTED, /* a row */
    STYLE_BUSY,     /* a task that holds up a loop */
    STYLE_FAINT,
    STYLES
} canvas_style;

typedef struct canvas {
    char *bytes;
    size_t length, room;
    unsigned columns; /* the width of a line; 0: unlimited */
    unsigned column;  /* the current column */
    bool is_screen;   /* a terminal: lines are cleared to their end */
    bool has_colours;
    bool is_lost; /* memory ran out */
    canvas_style style;
} canvas;

/* Empties it, and keeps the memory. */
void canvas_begin(canvas *canvas, unsigned columns);
void canvas_free(canvas *canvas);

/* Adds the program's own control sequences, unchanged. */
void canvas_raw(canvas *canvas, const char *text);

void canvas_style_is(canvas *canvas, canvas_style style);

/* Adds text, up to the line's width. */
void canvas_text(canvas *canvas, const char *text);
void canvas_format(canvas *canvas, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds text in a column of `width` characters, and a space. Longer text is cut. */
void canvas_left(canvas *canvas, unsigned width, const char *text);
void canvas_right(canvas *canvas, unsigned width, const char *text);

/* Ends the line, and the style. */
void canvas_line(canvas *canvas);

/* The number of columns of a text. */
unsigned canvas_width(const char *text);

/* Numbers in few characters: 1234, 56.7k, 8.9M; and times: 12ms, 3.4s, 5m06s, 7h08m, 9d10h. */
enum { SHORT_SIZE = 24 };
const char *short_number(char text[SHORT_SIZE], uint64_t number);
const char *short_time(char text[SHORT_SIZE], uint64_t nanoseconds);

#endif
