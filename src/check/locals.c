/*
 * A return is an access to the whole frame, like the free of a block. Frames without an accessed
 * variable, nearly all, are skipped: the compiler reports the accesses only to variables whose address
 * is taken.
 *
 * 1. `frames` are the beginnings of the frames of functions that have begun, the outermost first; each
 *    begins below the one before it. A function has returned, or was left by a jump, when the stack
 *    pointer is above its frame. The compiler reports returns too, but not each, and also those of
 *    functions that it has inlined, whose frames live on.
 * 2. When another function begins, the stack pointer may be below a frame that is gone. So it is looked
 *    up among the callers.
 * 3. [used, end of the stack) has all variables of the stack that were accessed, except those of frames
 *    that are gone.
 * 4. [returned_from, returned_to) has all frames whose return was recorded. A function that begins
 *    there has the memory anew.
 */
#include "locals.h"

#include "accesses.h"
#include "memory.h"
#include "storage.h"

#include <unwind.h>

typedef struct thread_frames {
    struct function_frame {
        uintptr_t begin;
        const void *code; /* in the function */
    } * frames;
    unsigned count, capacity;
    uintptr_t used;
    uintptr_t returned_from, returned_to;
} thread_frames;

static thread_frames all_frames[THREADS];
uintptr_t locals_newest_[NOBODY + 1] = {[NOBODY] = UINTPTR_MAX};

static void note_newest(const thread_frames *t)
{
    locals_newest_[t - all_frames] = t->count != 0 ? t->frames[t->count - 1].begin : UINTPTR_MAX;
}

void locals_begin(unsigned thread)
{
    thread_frames *t = &all_frames[thread];
    t->count = 0;
    note_newest(t);
    t->used = memory_stack_end(thread);
    t->returned_from = t->returned_to = 0;
}

/* Steps on trial, or of a rehearsal, are no part of the execution. */
static bool counts(void)
{
    return execution_is_running() && !execution_running()->on_trial &&
           !execution_running()->rehearses;
}

/* Adds an interval to that of the frames whose return was recorded. */
static void widen_returned(thread_frames *t, uintptr_t begin, uintptr_t end)
{
    bool is_empty = t->returned_from == t->returned_to;
    if (is_empty || begin < t->returned_from)
        t->returned_from = begin;
    if (is_empty || end > t->returned_to)
        t->returned_to = end;
}

/* The running thread has the memory of a new frame anew. */
static void forget_returned(const thread_frames *t, uintptr_t begin, uintptr_t end)
{
    if (begin < t->returned_from)
        begin = t->returned_from;
    if (end > t->returned_to)
        end = t->returned_to;
    if (begin < end)
        accesses_forget(begin, end - begin);
}

/*
 * The frames that begin below `end` are gone. `where`: the code that shows it.
 */
static void end_frames(thread_frames *t, uintptr_t end, const void *where)
{
    unsigned before = t->count;
    while (t->count != 0 && t->frames[t->count - 1].begin < end)
        t->count--;
    if (t->count == before)
        return;
    note_newest(t);
    uintptr_t begin = t->used;
    if (begin >= end)
        return;
    t->used = end;
    widen_returned(t, begin, end);
    accesses_add(begin, end - begin, ACCESS_RETURN, NULL, where);
}

/* Looks for the frame, of those that call the running code, that a place is in. */
typedef struct frame_search {
    uintptr_t place;
    uintptr_t begin;  /* of the frame that was seen last */
    const void *code; /* in its function */
    uintptr_t end;    /* of the frame that was looked for; 0: not found */
} frame_search;

static _Unwind_Reason_Code look_for_frame(struct _Unwind_Context *context, void *p)
{
    frame_search *search = p;
    uintptr_t begin = (uintptr_t)_Unwind_GetCFA(context);
    if (search->begin != 0 && search->begin <= search->place && search->place < begin) {
        search->end = begin;
        return _URC_NORMAL_STOP;
    }
    search->begin = begin;
    search->code = (const void *)_Unwind_GetIP(context);
    return begin > search->place ? _URC_NORMAL_STOP : _URC_NO_REASON;
}

static uintptr_t begin_of(const thread_frames *t, unsigned count)
{
    return count != 0 ? t->frames[count - 1].begin : memory_stack_end(the_execution.running);
}

/* Returns the function that a place in the code belongs to; NULL if that is unknown. */
static const void *function_of(const void *code)
{
    static struct {
        const void *code, *function;
    } known[1024];
    size_t i = ((uintptr_t)code ^ (uintptr_t)code >> 10) % (sizeof known / sizeof *known);
    if (known[i].code != code) {
        known[i].code = code;
        execution_enter_checker();
        known[i].function = _Unwind_FindEnclosingFunction((void *)(uintptr_t)code);
        execution_leave_checker();
    }
    return known[i].function;
}

/*
 * Returns the end of the newest frame if it is gone although the stack pointer is not above it; or 0.
 * It is gone if its place is in the frame of another function. (While a function calls another one,
 * its frame may begin lower than it did at first.)
 */
static uintptr_t end_if_gone(const thread_frames *t, const void *caller)
{
    uintptr_t above = begin_of(t, t->count - 1);
    const void *function = function_of(t->frames[t->count - 1].code);
    if (function == NULL || function_of(caller) == function)
        return 0;
    frame_search search = {.place = begin_of(t, t->count)};
    execution_enter_checker();
    _Unwind_Backtrace(look_for_frame, &search);
    execution_leave_checker();
    if (search.end == 0)
        return 0;
    const void *other = function_of(search.code);
    if (other == NULL || other == function)
        return 0;
    return search.end < above ? search.end : above;
}

void locals_enter(uintptr_t frame, const void *code, const void *caller)
{
    if (!counts())
        return;
    thread_frames *t = &all_frames[the_execution.running];
    uintptr_t end;
    while (t->count != 0 && t->used < begin_of(t, t->count - 1) &&
           (end = end_if_gone(t, caller)) != 0)
        end_frames(t, end, code);
    end_frames(t, frame, code);
    uintptr_t above = begin_of(t, t->count);
    forget_returned(t, frame, above);
    if (frame == above)
        return;
    t->frames = grown(t->frames, &t->capacity, t->count + 1, sizeof *t->frames);
    t->frames[t->count++] = (struct function_frame){frame, code};
    note_newest(t);
}

void locals_look_(uintptr_t stack_pointer, const void *code)
{
    if (counts())
        end_frames(&all_frames[the_execution.running], stack_pointer, code);
}

void locals_end(void)
{
    locals_look(memory_stack_end(the_execution.running), NULL);
}

void locals_accessed(uintptr_t address)
{
    unsigned t = memory_stack_of(address);
    if (t != THREADS && address < all_frames[t].used)
        all_frames[t].used = address;
}
