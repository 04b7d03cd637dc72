/*
 * Inspecting coroutines: their chain of awaits, each one's line, and the operation that the innermost
 * waits for. Floor: coroutine.
 *
 *     bide_backtrace_here(entries, 16);                            // in a body: its own chain
 *     bide_backtrace(frame, entries, 16);                          // that of a suspended coroutine
 *     bide_backtrace_print(bide_innermost(frame), write, file);    // as text, from there outwards
 *
 *     #0 read_body at conn.c:42 waiting for bide_event_wait
 *     #1 fetch_body at conn.c:80
 *     #2 bide_root at root.c:15
 *
 * A chain leads from a frame to the frame that awaits it, and so on, to its end. That is a root, a
 * coroutine without an awaiting one, or the frame of an operation that runs another elsewhere
 * (bide_schedule_on). Frames that are written by hand appear under their code's name. All data is in
 * the frames anyway, so it costs nothing until it is read.
 *
 * The calling thread must be one that may resume the coroutine, while no thread does: the thread that
 * runs a coroutine of the chain, or one that keeps its operation from ending. bide_dump (dump.h) is
 * for any thread at any time. The functions do not suspend, do not allocate, do not recurse, cannot
 * fail, and are linear in the chain.
 */
#ifndef BIDE_INSPECT_H
#define BIDE_INSPECT_H

#include "bide/coroutine.h"

BIDE_EXTERN_C_BEGIN

/* One coroutine of a chain. The texts are constants of the program. */
typedef struct bide_backtrace_entry {
    const bide_frame *frame;
    const char *name;
    const char *file;
    unsigned line;    /* where it stands: its start, an await, a yield, its end; or where it runs */
    bide_state state; /* of what it was suspended at last */
    bool running;     /* it asks itself: `state` is not what it does */
    const char *kind; /* its type's name: "task", ...; NULL if it is written by hand */
    const char
        *waiting_for; /* of the first only: the operation's name, or the coroutine's; or NULL */
} bide_backtrace_entry;

/*
 * Writes up to `max` entries from `frame` outwards, and returns how many coroutines the chain has,
 * which may be more. `frame` has not started, is suspended or has ended. If it is not suspended the
 * chain is that one alone, as it is when it is suspended at a yield, because then nobody awaits it.
 * `entries` may be NULL if `max` is 0.
 * Threads: the resumer's, as said above. Progress: wait-free, linear in the chain.
 */
size_t bide_backtrace(const bide_frame *frame, bide_backtrace_entry *entries, size_t max);

/*
 * In a body: the same from the coroutine itself, which runs; the first line is that of this call.
 * Threads: the coroutine's. Progress: wait-free, linear in the chain.
 */
#define bide_backtrace_here(entries, max) \
    bide_backtrace_from_(bide_this_frame(), __LINE__, (entries), (max))

/*
 * From a suspended coroutine, or a root's frame, to the innermost that it awaits, which awaits no
 * coroutine. The frame itself, if it awaits none.
 * Threads: the resumer's, as said above. Progress: wait-free, linear in the chain.
 */
bide_frame *bide_innermost(bide_frame *frame);

/* Takes `length` bytes of text, which do not end in a zero; lines come in pieces. */
typedef void bide_backtrace_write(void *argument, const char *text, size_t length);

/*
 * Writes a line for each coroutine of a chain, however long it is, to `write`; see above. `frame`
 * as in bide_backtrace.
 * Threads: the resumer's, as said above. Progress: wait-free, except for `write`; linear in the
 * chain.
 */
void bide_backtrace_print(const bide_frame *frame, bide_backtrace_write *write, void *argument);

/*
 * In a body: the same from the coroutine itself.
 * Threads: the coroutine's. Progress: wait-free, except for `write`; linear in the chain.
 */
#define bide_backtrace_print_here(write, argument) \
    bide_backtrace_print_from_(bide_this_frame(), __LINE__, (write), (argument))

/* `line` is where the frame runs, or 0 if it does not run. */
size_t bide_backtrace_from_(const bide_frame *frame, unsigned line, bide_backtrace_entry *entries,
                            size_t max);
void bide_backtrace_print_from_(const bide_frame *frame, unsigned line, bide_backtrace_write *write,
                                void *argument);

BIDE_EXTERN_C_END

#endif
