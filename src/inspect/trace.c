/*
 * A trace. Each thread fills blocks of marks of its own, under its record's lock; the stop sorts all
 * marks by time and writes them.
 *
 * 1. A block belongs to the thread that took it, until the stop. By then no thread records
 *    (observer.c, 2), so the stop reads all blocks as they are.
 * 2. What a task waited for is known when it goes on, and since when is known from the end of its
 *    turn before, which may be another thread's. So waits are found at the stop, by task.
 * 3. The marks hold addresses of tasks as numbers, and texts that are constants of the program. A
 *    task's address may be another's after its end: the end is a mark too.
 * 4. A child of fork forgets the trace, and what it holds.
 */
#define _GNU_SOURCE
#include "bide/trace.h"

#include "observer.h"

#include "../coroutine/internal.h"

#include "bide/create.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK_MARKS = 1000, MAX_BLOCKS = 4000 };

typedef enum mark_kind {
    MARK_TURN,
    MARK_TURN_ENDS,
    MARK_TASK,
    MARK_TASK_ENDS,
    MARK_OPERATION,
    MARK_OPERATION_ENDS,
    MARK_STEAL,
    MARK_SLEEP,
    MARK_WAKE,
} mark_kind;

typedef struct mark {
    uint64_t time;
    const void *of;          /* a task, or an operation */
    const bide_point *point; /* of a turn, and of a task that begins with a coroutine */
    const char *text;        /* a turn: what it waited for; else a name; or NULL */
    int64_t count;           /* of bytes */
    int32_t number;          /* a descriptor, or a status */
    uint32_t thread;
    uint32_t order; /* among its thread's: marks of one time keep it */
    mark_kind kind;
} mark;

struct trace_block {
    trace_block *next;
    unsigned filled;
    uint32_t thread;
    char name[OBSERVED_NAME];
    mark marks[BLOCK_MARKS];
};

static struct {
    FILE *file;
    uint64_t began;
    bide_atomic(trace_block *) blocks; /* newest first */
    bide_atomic(unsigned) count;       /* of blocks */
    bide_atomic(uint64_t) lost;        /* marks */
} trace;

/* ---- Recording: on the thread, under its record's lock ---- */

static trace_block *take_block(observed_thread *thread)
{
    trace_block *block = NULL;
    if (bide_atomic_fetch_add(&trace.count, 1, relaxed) < MAX_BLOCKS)
        block = malloc(sizeof *block);
    if (block == NULL) {
        bide_atomic_fetch_sub(&trace.count, 1, relaxed);
        return NULL;
    }
    block->filled = 0;
    block->thread = (uint32_t)thread->id;
    memcpy(block->name, thread->name, sizeof block->name);
    trace_block *first = bide_atomic_load(&trace.blocks, relaxed);
    do {
        block->next = first;
        /* release: the stop reads `next` of blocks whose threads it has met under their locks; the
         * threads before have none in common with it but this list. */
    } while (!bide_atomic_compare_exchange_weak(&trace.blocks, &first, block, release, relaxed));
    return block;
}

/* One more mark, of now; NULL: it is lost. */
static mark *add(observed_thread *thread, mark_kind kind, const void *of)
{
    if (thread->block == NULL || thread->block->filled == BLOCK_MARKS) {
        thread->block = take_block(thread);
        if (thread->block == NULL) {
            bide_atomic_fetch_add(&trace.lost, 1, relaxed);
            return NULL;
        }
    }
    trace_block *block = thread->block;
    mark *added = &block->marks[block->filled];
    memset(added, 0, sizeof *added);
    added->time = bide_platform.now();
    added->of = of;
    added->thread = block->thread;
    added->order = thread->marks++;
    block->filled++;
    added->kind = kind;
    return added;
}

void bide_trace_turn_(observed_thread *thread, const observed_turn *turn)
{
    mark *added = add(thread, MARK_TURN, turn->task);
    if (added == NULL)
        return;
    added->point = turn->point;
    added->text = turn->waited_for;
}

void bide_trace_turn_ends_(observed_thread *thread, const observed_turn *turn)
{
    add(thread, MARK_TURN_ENDS, turn->task);
}

void bide_trace_task_(observed_thread *thread, const bide_root *root, bool ends)
{
    mark *added = add(thread, ends ? MARK_TASK_ENDS : MARK_TASK, &root->frame);
    if (added == NULL || ends)
        return;
    const bide_frame *begun = bide_awaited_frame(root->awaited);
    if (begun != NULL)
        added->point = bide_frame_point(begun);
    else
        added->text = root->awaited->ops->name;
}

void bide_trace_operation_(observed_thread *thread, const bide_awaiter *operation, int fd)
{
    mark *added = add(thread, MARK_OPERATION, operation);
    if (added == NULL)
        return;
    added->text = operation->ops->name;
    added->number = fd;
}

void bide_trace_operation_ends_(observed_thread *thread, const bide_awaiter *operation, size_t count,
                          int status)
{
    mark *added = add(thread, MARK_OPERATION_ENDS, operation);
    if (added == NULL)
        return;
    added->count = (int64_t)count;
    added->number = status;
}

void bide_trace_thread_(observed_thread *thread, bide_observed_ what)
{
    static const mark_kind kinds[] = {
        [BIDE_OBSERVED_STEAL] = MARK_STEAL,
        [BIDE_OBSERVED_SLEEP] = MARK_SLEEP,
        [BIDE_OBSERVED_WAKE] = MARK_WAKE,
    };
    if (what == BIDE_OBSERVED_WAKE && !thread->is_asleep)
        return;
    thread->is_asleep = what == BIDE_OBSERVED_SLEEP;
    add(thread, kinds[what], NULL);
}

/* ---- Writing ---- */

/* The marks of all blocks. */
typedef struct marks {
    const mark **all;
    size_t count;
} marks;

static int by_number(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_time(const void *a, const void *b)
{
    const mark *one = *(const mark *const *)a;
    const mark *other = *(const mark *const *)b;
    int order = by_number(one->time, other->time);
    if (order == 0)
        order = by_number(one->thread, other->thread);
    return order != 0 ? order : by_number(one->order, other->order);
}

static int by_task(const void *a, const void *b)
{
    const mark *one = *(const mark *const *)a;
    const mark *other = *(const mark *const *)b;
    int order = by_number((uintptr_t)one->of, (uintptr_t)other->of);
    return order != 0 ? order : by_time(a, b);
}

static bool collect(marks *to)
{
    const trace_block *blocks = bide_atomic_load(&trace.blocks, acquire); /* partner: take_block */
    size_t count = 0;
    for (const trace_block *block = blocks; block != NULL; block = block->next)
        count += block->filled;
    to->count = 0;
    to->all = malloc((count + 1) * sizeof(const mark *));
    if (to->all == NULL)
        return false;
    for (const trace_block *block = blocks; block != NULL; block = block->next) {
        for (unsigned i = 0; i < block->filled; i++)
            to->all[to->count++] = &block->marks[i];
    }
    return true;
}

/* A text in quotes. What is no ASCII is left out: names may be anything. */
static void put_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', file);
        if (*text >= ' ' && *text <= '~')
            fputc(*text, file);
    }
    fputc('"', file);
}

static const char *name_of(const mark *of)
{
    if (of->point != NULL)
        return bide_point_name_(of->point);
    return of->text != NULL ? of->text : "an operation";
}

/* The begin of an event, up to its name; the caller writes the rest, and ends it. */
static void put_event(FILE *file, char phase, const mark *at, uint64_t time)
{
    uint64_t since = time > trace.began ? time - trace.began : 0;
    fprintf(file, ",\n{\"ph\":\"%c\",\"pid\":%d,\"tid\":%" PRIu32 ",\"ts\":%" PRIu64 ".%03u", phase,
            (int)getpid(), at->thread, since / 1000, (unsigned)(since % 1000));
}

static void put_name(FILE *file, const char *before, const char *name)
{
    fputs(",\"name\":", file);
    if (before[0] == '\0') {
        put_text(file, name);
        return;
    }
    char whole[200];
    snprintf(whole, sizeof whole, "%s%s", before, name);
    put_text(file, whole);
}

/* Of what has a line of its own: a task, an operation. */
static void put_line_event(FILE *file, char phase, const char *category, const mark *at,
                           uint64_t time, const char *before, const char *name)
{
    put_event(file, phase, at, time);
    fprintf(file, ",\"cat\":\"%s\",\"id\":\"0x%" PRIxPTR "\"", category, (uintptr_t)at->of);
    put_name(file, before, name);
}

static void put_turn(FILE *file, const mark *at)
{
    put_event(file, 'B', at, at->time);
    put_name(file, "", name_of(at));
    fprintf(file, ",\"args\":{\"task\":\"0x%" PRIxPTR "\"", (uintptr_t)at->of);
    if (at->point->code != NULL) {
        char where[300];
        snprintf(where, sizeof where, "%s:%u", at->point->code->file, at->point->line);
        fputs(",\"at\":", file);
        put_text(file, where);
    }
    if (at->text != NULL) {
        fputs(",\"after\":", file);
        put_text(file, at->text);
    }
    fputs("}}", file);
}

static void put_operation(FILE *file, const mark *at, const char *name, bool ends)
{
    put_line_event(file, ends ? 'e' : 'b', "io", at, at->time, "", name);
    if (ends)
        fprintf(file, ",\"args\":{\"bytes\":%" PRId64 ",\"status\":%" PRId32 "}}", at->count,
                at->number);
    else
        fprintf(file, ",\"args\":{\"fd\":%" PRId32 "}}", at->number);
}

/* What stands on the lines of threads. */
static void put_on_thread(FILE *file, const mark *at)
{
    switch (at->kind) {
    case MARK_TURN:
        put_turn(file, at);
        break;
    case MARK_STEAL:
        put_event(file, 'i', at, at->time);
        fputs(",\"s\":\"t\",\"name\":\"steal\"}", file);
        break;
    case MARK_SLEEP:
        put_event(file, 'B', at, at->time);
        fputs(",\"name\":\"sleep\"}", file);
        break;
    case MARK_TURN_ENDS:
    case MARK_WAKE:
        put_event(file, 'E', at, at->time);
        fputc('}', file);
        break;
    default:
        break;
    }
}

/*
 * What stands on lines of its own; the marks are sorted by what they are of: 2. A begin that was not
 * seen leaves out the end, and the other way round.
 */
static void put_lines(FILE *file, const marks *sorted)
{
    const mark *begun = NULL;     /* the task, or the operation */
    const mark *suspended = NULL; /* the end of the task's turn before */
    for (size_t i = 0; i < sorted->count; i++) {
        const mark *at = sorted->all[i];
        if (i == 0 || sorted->all[i - 1]->of != at->of)
            begun = suspended = NULL;
        switch (at->kind) {
        case MARK_TASK:
            begun = at;
            suspended = NULL;
            put_line_event(file, 'b', "task", at, at->time, "", name_of(at));
            fputc('}', file);
            break;
        case MARK_TURN:
            if (suspended != NULL && at->text != NULL) {
                put_line_event(file, 'b', "task", at, suspended->time, "wait: ", at->text);
                fputc('}', file);
                put_line_event(file, 'e', "task", at, at->time, "wait: ", at->text);
                fputc('}', file);
            }
            suspended = NULL;
            break;
        case MARK_TURN_ENDS:
            suspended = at;
            break;
        case MARK_TASK_ENDS:
            if (begun != NULL) {
                put_line_event(file, 'e', "task", at, at->time, "", name_of(begun));
                fputc('}', file);
            }
            begun = suspended = NULL;
            break;
        case MARK_OPERATION:
            begun = at;
            put_operation(file, at, name_of(at), false);
            break;
        case MARK_OPERATION_ENDS:
            if (begun != NULL)
                put_operation(file, at, name_of(begun), true);
            begun = NULL;
            break;
        default:
            break;
        }
    }
}

static void put_thread_names(FILE *file)
{
    const trace_block *block = bide_atomic_load(&trace.blocks, acquire); /* as above */
    for (; block != NULL; block = block->next) {
        fprintf(file,
                ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%" PRIu32
                ",\"name\":\"thread_name\",\"args\":{\"name\":",
                (int)getpid(), block->thread);
        put_text(file, block->name);
        fputs("}}", file);
    }
}

static int write_all(FILE *file)
{
    marks all;
    if (!collect(&all))
        return -ENOMEM;
    fprintf(file,
            "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"marks\":%zu,\"lost\":%" PRIu64
            "},\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\","
            "\"args\":{\"name\":",
            all.count, bide_atomic_load(&trace.lost, relaxed), (int)getpid());
    put_text(file, program_invocation_short_name);
    fputs("}}", file);
    put_thread_names(file);
    qsort(all.all, all.count, sizeof *all.all, by_time);
    for (size_t i = 0; i < all.count; i++)
        put_on_thread(file, all.all[i]);
    qsort(all.all, all.count, sizeof *all.all, by_task);
    put_lines(file, &all);
    fputs("\n]}\n", file);
    free(all.all);
    return fflush(file) != 0 || ferror(file) ? -EIO : 0;
}

static void free_blocks(void)
{
    trace_block *block = bide_atomic_load(&trace.blocks, acquire); /* as above */
    while (block != NULL) {
        trace_block *next = block->next;
        free(block);
        block = next;
    }
    bide_atomic_store(&trace.blocks, NULL, relaxed);
    bide_atomic_store(&trace.count, 0, relaxed);
    for (observed_thread *thread = bide_observer_threads_(); thread != NULL; thread = thread->next) {
        pthread_mutex_lock(&thread->lock);
        thread->block = NULL;
        pthread_mutex_unlock(&thread->lock);
    }
}

int bide_trace_start(FILE *file)
{
    int status = -EALREADY;
    pthread_mutex_lock(&bide_observer_lock_);
    if (!bide_observer_is_active_(OBSERVE_TRACE)) {
        free_blocks(); /* (in a child of fork there are the parent's) */
        bide_atomic_store(&trace.lost, 0, relaxed);
        trace.file = file;
        trace.began = bide_platform.now();
        bide_observer_start_(OBSERVE_TRACE);
        status = 0;
    }
    pthread_mutex_unlock(&bide_observer_lock_);
    return status;
}

int bide_trace_stop(void)
{
    int status = -EALREADY;
    pthread_mutex_lock(&bide_observer_lock_);
    if (bide_observer_is_active_(OBSERVE_TRACE)) {
        bide_observer_stop_(OBSERVE_TRACE);
        status = write_all(trace.file);
        free_blocks();
    }
    pthread_mutex_unlock(&bide_observer_lock_);
    return status;
}
