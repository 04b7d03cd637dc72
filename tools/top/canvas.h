/*
 * Text for a terminal, or a file: put together line by line, in columns, and cut at the width. What
 * is put there may be another process's: what is not printable is shown as a dot.
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
    STYLE_BUSY,     /* what holds a loop */
    STYLE_FAINT,
    STYLES
} canvas_style;

typedef struct canvas {
    char *bytes;
    size_t length, room;
    unsigned columns; /* a line's width; 0: any */
    unsigned column;  /* where the line stands */
    bool is_screen;   /* a terminal's: lines are cleared to their end */
    bool has_colours;
    bool is_lost; /* there was no memory */
    canvas_style style;
} canvas;

/* Empties it, and keeps the memory. */
void canvas_begin(canvas *canvas, unsigned columns);
void canvas_free(canvas *canvas);

/* As they are, without looking: sequences of ours. */
void canvas_raw(canvas *canvas, const char *text);

void canvas_style_is(canvas *canvas, canvas_style style);

/* Text, up to the line's width. */
void canvas_text(canvas *canvas, const char *text);
void canvas_format(canvas *canvas, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Text in a column of so many characters, and a space behind it; what does not fit is cut. */
void canvas_left(canvas *canvas, unsigned width, const char *text);
void canvas_right(canvas *canvas, unsigned width, const char *text);

/* Goes on to the next line. The style ends there. */
void canvas_line(canvas *canvas);

/* How many columns a text takes. */
unsigned canvas_width(const char *text);

/* Numbers in few characters: 1234, 56.7k, 8.9M; and times: 12ms, 3.4s, 5m06s, 7h08m, 9d10h. */
enum { MAX_SHORT = 24 };
const char *short_number(char text[MAX_SHORT], uint64_t number);
const char *short_time(char text[MAX_SHORT], uint64_t nanoseconds);

#endif
