/*
 * Reads suspended frames: the chain of awaiting coroutines, and the operation that a frame waits for.
 * The caller makes sure that nothing runs there (inspect.h). A frame's continuation is valid only
 * while the frame waits, or runs: before it is awaited it has not been written, and after its end the
 * continuation may be freed.
 */
#include "bide/inspect.h"

#include "internal.h"

#include "bide/create.h"

/* The frame that awaits `frame`, which is suspended, or runs. */
static const bide_frame *outer_of(const bide_frame *frame, bool running)
{
    if (!running && bide_frame_point(frame)->state != BIDE_AT_AWAIT)
        return NULL;
    return bide_continuation_(frame);
}

static const char *waiting_for(const bide_frame *frame)
{
    bide_awaiter *awaiter = frame->awaiter.link;
    if (bide_frame_point(frame)->state != BIDE_AT_AWAIT || awaiter == NULL)
        return NULL;
    bide_frame *child = bide_awaited_frame(awaiter);
    return child != NULL ? bide_point_name_(bide_frame_point(child)) : awaiter->ops->name;
}

/* `line` is the line at which it runs, or 0. */
static bide_backtrace_entry inspect_entry_of(const bide_frame *frame, unsigned line)
{
    const bide_point *point = bide_frame_point(frame);
    const bide_coroutine_code *code = point->code;
    bide_backtrace_entry entry;
    entry.frame = frame;
    entry.name = bide_point_name_(point);
    entry.file = code != NULL ? code->file : "";
    entry.line = line != 0 ? line : point->line;
    entry.state = point->state;
    entry.running = line != 0;
    entry.kind = code != NULL && code->type != NULL ? (*code->type)->name : NULL;
    entry.waiting_for = NULL;
    return entry;
}

static bide_backtrace_entry first_entry_of(const bide_frame *frame, unsigned line)
{
    bide_backtrace_entry entry = inspect_entry_of(frame, line);
    if (line == 0)
        entry.waiting_for = waiting_for(frame);
    return entry;
}

size_t bide_backtrace_from_(const bide_frame *frame, unsigned line, bide_backtrace_entry *entries,
                            size_t max)
{
    size_t count = 0;
    if (max != 0)
        entries[0] = first_entry_of(frame, line);
    while (++count, (frame = outer_of(frame, count == 1 && line != 0)) != NULL) {
        if (count < max)
            entries[count] = inspect_entry_of(frame, 0);
    }
    return count;
}

size_t bide_backtrace(const bide_frame *frame, bide_backtrace_entry *entries, size_t max)
{
    return bide_backtrace_from_(frame, 0, entries, max);
}

bide_frame *bide_innermost(bide_frame *frame)
{
    for (bide_frame *child; (child = bide_awaited_coroutine_(frame)) != NULL;)
        frame = child;
    return frame;
}

/* ---- As text ---- */

typedef struct output {
    bide_backtrace_write *write;
    void *argument;
} output;

static void print_text(const output *to, const char *text)
{
    size_t length = 0;
    while (text[length] != '\0')
        length++;
    to->write(to->argument, text, length);
}

static void print_number(const output *to, size_t number)
{
    char digits[3 * sizeof number];
    size_t begin = sizeof digits;
    do {
        digits[--begin] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    to->write(to->argument, digits + begin, sizeof digits - begin);
}

static void print_state(const output *to, const bide_backtrace_entry *entry)
{
    if (entry->running)
        print_text(to, " (running)");
    else if (entry->state == BIDE_AT_START)
        print_text(to, " not started");
    else if (entry->state == BIDE_AT_YIELD)
        print_text(to, " yielded");
    else if (entry->state == BIDE_AT_END)
        print_text(to, " ended");
    else if (entry->waiting_for != NULL) {
        print_text(to, " waiting for ");
        print_text(to, entry->waiting_for);
    }
}

static void inspect_print_entry(const output *to, size_t number, const bide_backtrace_entry *entry)
{
    print_text(to, "#");
    print_number(to, number);
    print_text(to, " ");
    print_text(to, entry->name);
    if (entry->file[0] != '\0') {
        print_text(to, " at ");
        print_text(to, entry->file);
        print_text(to, ":");
        print_number(to, entry->line);
    }
    print_state(to, entry);
    print_text(to, "\n");
}

void bide_backtrace_print_from_(const bide_frame *frame, unsigned line, bide_backtrace_write *write,
                                void *argument)
{
    const output to = {write, argument};
    bide_backtrace_entry entry = first_entry_of(frame, line);
    inspect_print_entry(&to, 0, &entry);
    frame = outer_of(frame, line != 0);
    for (size_t number = 1; frame != NULL; number++, frame = outer_of(frame, false)) {
        entry = inspect_entry_of(frame, 0);
        inspect_print_entry(&to, number, &entry);
    }
}

void bide_backtrace_print(const bide_frame *frame, bide_backtrace_write *write, void *argument)
{
    bide_backtrace_print_from_(frame, 0, write, argument);
}
