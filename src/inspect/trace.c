/*
 * A trace. Each thread fills its own blocks of marks, under its record's lock. bide_trace_stop sorts all
 * marks by time, and writes them.
 *
 * 1. A block belongs to the thread that allocated it until the stop. After bide_observer_stop_ no thread
 *    records (observer.c, 2), so the stop reads all blocks without locks.
 * 2. The operation of a wait is known when the task resumes, and the start of the wait from the end of
 *    the task's previous turn, possibly on another thread. So waits are found at the stop, by task.
 * 3. Marks hold addresses of tasks as numbers, and texts that are constants of the program. A task's
 *    address may be reused after its end; the end is a mark too.
 * 4. The child of a fork forgets the trace and its blocks.
 */
#define _GNU_SOURCE
#include "bide/trace.h"

#include "observer.h"

#include "../coroutine/internal.h"
#include "../system/portable.h"

#include "bide/create.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK_MARKS = 1000, BLOCKS_MAX = 4000 };

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
    const void *of;          /* the task, or the operation */
    const bide_point *point; /* of a turn, and of a task that starts with a coroutine */
    const char *text;        /* of a turn: the operation before it; else a name; or NULL */
    int64_t count;           /* of bytes */
    int32_t number;          /* a descriptor, or a status */
    uint32_t thread;
    uint32_t order; /* among the marks of its thread */
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

static trace_block *trace_new_block(observed_thread *thread)
{
    trace_block *block = NULL;
    if (bide_atomic_fetch_add(&trace.count, 1, relaxed) < BLOCKS_MAX)
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
        /* release: partner is the load in trace_collect, which follows `next` to blocks of threads that
         * this thread never synchronised with. */
    } while (!bide_atomic_compare_exchange_weak(&trace.blocks, &first, block, release, relaxed));
    return block;
}

/* A new mark with the current time; NULL: it is lost. */
static mark *trace_add_mark(observed_thread *thread, mark_kind kind, const void *of)
{
    if (thread->block == NULL || thread->block->filled == BLOCK_MARKS) {
        thread->block = trace_new_block(thread);
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
    bide_assert(block->filled < BLOCK_MARKS);
    added->order = thread->marks++;
    block->filled++;
    added->kind = kind;
    return added;
}

static void bide_trace_turn_(observed_thread *thread, const observed_turn *turn)
{
    mark *added = trace_add_mark(thread, MARK_TURN, turn->task);
    if (added == NULL)
        return;
    added->point = turn->point;
    added->text = turn->waited_for;
}

static void bide_trace_turn_ends_(observed_thread *thread, const observed_turn *turn)
{
    trace_add_mark(thread, MARK_TURN_ENDS, turn->task);
}

static void bide_trace_task_(observed_thread *thread, const bide_root *root)
{
    mark *added = trace_add_mark(thread, MARK_TASK, &root->frame);
    if (added == NULL)
        return;
    const bide_frame *begun = bide_awaited_frame(root->awaited);
    if (begun != NULL)
        added->point = bide_frame_point(begun);
    else
        added->text = root->awaited->ops->name;
}

static void trace_task_ends(observed_thread *thread, const bide_root *root)
{
    trace_add_mark(thread, MARK_TASK_ENDS, &root->frame);
}

static void bide_trace_operation_(observed_thread *thread, const bide_awaiter *operation, int fd)
{
    mark *added = trace_add_mark(thread, MARK_OPERATION, operation);
    if (added == NULL)
        return;
    added->text = operation->ops->name;
    added->number = fd;
}

static void bide_trace_operation_ends_(observed_thread *thread, const bide_awaiter *operation,
                                       size_t count, int status)
{
    mark *added = trace_add_mark(thread, MARK_OPERATION_ENDS, operation);
    if (added == NULL)
        return;
    added->count = (int64_t)count;
    added->number = status;
}

static void bide_trace_thread_(observed_thread *thread, bide_observed_ what)
{
    static const mark_kind kinds[] = {
        [BIDE_OBSERVED_STEAL] = MARK_STEAL,
        [BIDE_OBSERVED_SLEEP] = MARK_SLEEP,
        [BIDE_OBSERVED_WAKE] = MARK_WAKE,
    };
    if (what == BIDE_OBSERVED_WAKE && !thread->is_asleep)
        return;
    thread->is_asleep = what == BIDE_OBSERVED_SLEEP;
    trace_add_mark(thread, kinds[what], NULL);
}

static const observer_user trace_user = {
    .turn = bide_trace_turn_,
    .turn_ends = bide_trace_turn_ends_,
    .task = bide_trace_task_,
    .task_ends = trace_task_ends,
    .operation = bide_trace_operation_,
    .operation_ends = bide_trace_operation_ends_,
    .thread = bide_trace_thread_,
};

/* ---- Writing ---- */

/* The marks of all blocks. */
typedef struct marks {
    const mark **all;
    size_t count;
} marks;

static int compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int marks_by_time(const void *a, const void *b)
{
    const mark *one = *(const mark *const *)a;
    const mark *other = *(const mark *const *)b;
    int order = compare_numbers(one->time, other->time);
    if (order == 0)
        order = compare_numbers(one->thread, other->thread);
    return order != 0 ? order : compare_numbers(one->order, other->order);
}

static int marks_by_task(const void *a, const void *b)
{
    const mark *one = *(const mark *const *)a;
    const mark *other = *(const mark *const *)b;
    int order = compare_numbers((uintptr_t)one->of, (uintptr_t)other->of);
    return order != 0 ? order : marks_by_time(a, b);
}

static bool trace_collect(marks *to)
{
    const trace_block *blocks =
        bide_atomic_load(&trace.blocks, acquire); /* partner: trace_new_block */
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

/* A text in quotes, without characters that are not ASCII. */
static void trace_put_text(FILE *file, const char *text)
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

static const char *trace_name(const mark *of)
{
    if (of->point != NULL)
        return bide_point_name_(of->point);
    return of->text != NULL ? of->text : "an operation";
}

/* The start of an event, up to its name; the caller writes the rest. */
static void trace_put_event(FILE *file, char phase, const mark *at, uint64_t time)
{
    uint64_t since = time > trace.began ? time - trace.began : 0;
    fprintf(file, ",\n{\"ph\":\"%c\",\"pid\":%d,\"tid\":%" PRIu32 ",\"ts\":%" PRIu64 ".%03u", phase,
            (int)getpid(), at->thread, since / 1000, (unsigned)(since % 1000));
}

static void trace_put_name(FILE *file, const char *before, const char *name)
{
    fputs(",\"name\":", file);
    if (before[0] == '\0') {
        trace_put_text(file, name);
        return;
    }
    char whole[200];
    snprintf(whole, sizeof whole, "%s%s", before, name);
    trace_put_text(file, whole);
}

/* An event of a task or an operation, which have lines of their own. */
static void trace_put_async_event(FILE *file, char phase, const char *category, const mark *at,
                                  uint64_t time, const char *before, const char *name)
{
    trace_put_event(file, phase, at, time);
    fprintf(file, ",\"cat\":\"%s\",\"id\":\"0x%" PRIxPTR "\"", category, (uintptr_t)at->of);
    trace_put_name(file, before, name);
}

static void trace_put_turn(FILE *file, const mark *at)
{
    trace_put_event(file, 'B', at, at->time);
    trace_put_name(file, "", trace_name(at));
    fprintf(file, ",\"args\":{\"task\":\"0x%" PRIxPTR "\"", (uintptr_t)at->of);
    if (at->point->code != NULL) {
        char where[300];
        snprintf(where, sizeof where, "%s:%u", at->point->code->file, at->point->line);
        fputs(",\"at\":", file);
        trace_put_text(file, where);
    }
    if (at->text != NULL) {
        fputs(",\"after\":", file);
        trace_put_text(file, at->text);
    }
    fputs("}}", file);
}

static void trace_put_operation(FILE *file, const mark *at, const char *name, bool ends)
{
    trace_put_async_event(file, ends ? 'e' : 'b', "io", at, at->time, "", name);
    if (ends)
        fprintf(file, ",\"args\":{\"bytes\":%" PRId64 ",\"status\":%" PRId32 "}}", at->count,
                at->number);
    else
        fprintf(file, ",\"args\":{\"fd\":%" PRId32 "}}", at->number);
}

/* The events on the lines of threads. */
static void trace_put_on_thread(FILE *file, const mark *at)
{
    switch (at->kind) {
    case MARK_TURN:
        trace_put_turn(file, at);
        break;
    case MARK_STEAL:
        trace_put_event(file, 'i', at, at->time);
        fputs(",\"s\":\"t\",\"name\":\"steal\"}", file);
        break;
    case MARK_SLEEP:
        trace_put_event(file, 'B', at, at->time);
        fputs(",\"name\":\"sleep\"}", file);
        break;
    case MARK_TURN_ENDS:
    case MARK_WAKE:
        trace_put_event(file, 'E', at, at->time);
        fputc('}', file);
        break;
    default:
        break;
    }
}

/*
 * The events of tasks and operations, from marks that are sorted by these: 2. An end whose start was not
 * recorded is left out.
 */
static void trace_put_async(FILE *file, const marks *sorted)
{
    const mark *begun = NULL;     /* the task, or the operation */
    const mark *suspended = NULL; /* the end of the task's previous turn */
    for (size_t i = 0; i < sorted->count; i++) {
        const mark *at = sorted->all[i];
        if (i == 0 || sorted->all[i - 1]->of != at->of)
            begun = suspended = NULL;
        switch (at->kind) {
        case MARK_TASK:
            begun = at;
            suspended = NULL;
            trace_put_async_event(file, 'b', "task", at, at->time, "", trace_name(at));
            fputc('}', file);
            break;
        case MARK_TURN:
            if (suspended != NULL && at->text != NULL) {
                trace_put_async_event(file, 'b', "task", at, suspended->time, "wait: ", at->text);
                fputc('}', file);
                trace_put_async_event(file, 'e', "task", at, at->time, "wait: ", at->text);
                fputc('}', file);
            }
            suspended = NULL;
            break;
        case MARK_TURN_ENDS:
            suspended = at;
            break;
        case MARK_TASK_ENDS:
            if (begun != NULL) {
                trace_put_async_event(file, 'e', "task", at, at->time, "", trace_name(begun));
                fputc('}', file);
            }
            begun = suspended = NULL;
            break;
        case MARK_OPERATION:
            begun = at;
            trace_put_operation(file, at, trace_name(at), false);
            break;
        case MARK_OPERATION_ENDS:
            if (begun != NULL)
                trace_put_operation(file, at, trace_name(begun), true);
            begun = NULL;
            break;
        default:
            break;
        }
    }
}

static void trace_put_thread_names(FILE *file)
{
    const trace_block *block = bide_atomic_load(&trace.blocks, acquire); /* as above */
    for (; block != NULL; block = block->next) {
        fprintf(file,
                ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%" PRIu32
                ",\"name\":\"thread_name\",\"args\":{\"name\":",
                (int)getpid(), block->thread);
        trace_put_text(file, block->name);
        fputs("}}", file);
    }
}

static int trace_write(FILE *file)
{
    marks all;
    if (!trace_collect(&all))
        return -ENOMEM;
    fprintf(file,
            "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"marks\":%zu,\"lost\":%" PRIu64
            "},\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\","
            "\"args\":{\"name\":",
            all.count, bide_atomic_load(&trace.lost, relaxed), (int)getpid());
    trace_put_text(file, portable_program_name());
    fputs("}}", file);
    trace_put_thread_names(file);
    qsort(all.all, all.count, sizeof *all.all, marks_by_time);
    for (size_t i = 0; i < all.count; i++)
        trace_put_on_thread(file, all.all[i]);
    qsort(all.all, all.count, sizeof *all.all, marks_by_task);
    trace_put_async(file, &all);
    fputs("\n]}\n", file);
    free(all.all);
    return fflush(file) != 0 || ferror(file) ? -EIO : 0;
}

static void trace_free_blocks(void)
{
    trace_block *block = bide_atomic_load(&trace.blocks, acquire); /* as above */
    while (block != NULL) {
        trace_block *next = block->next;
        free(block);
        block = next;
    }
    bide_atomic_store(&trace.blocks, NULL, relaxed);
    bide_atomic_store(&trace.count, 0, relaxed);
    for (observed_thread *thread = bide_observer_threads_(); thread != NULL;
         thread = thread->next) {
        pthread_mutex_lock(&thread->lock);
        thread->block = NULL;
        pthread_mutex_unlock(&thread->lock);
    }
}

int bide_trace_start(FILE *file)
{
    int status = -EALREADY;
    pthread_mutex_lock(&bide_observer_lock_);
    if (!bide_observer_is_active_(&trace_user)) {
        trace_free_blocks(); /* the child of a fork has the parent's */
        bide_atomic_store(&trace.lost, 0, relaxed);
        trace.file = file;
        trace.began = bide_platform.now();
        bide_observer_start_(&trace_user);
        status = 0;
    }
    pthread_mutex_unlock(&bide_observer_lock_);
    return status;
}

int bide_trace_stop(void)
{
    int status = -EALREADY;
    pthread_mutex_lock(&bide_observer_lock_);
    if (bide_observer_is_active_(&trace_user)) {
        bide_observer_stop_(&trace_user);
        status = trace_write(trace.file);
        trace_free_blocks();
    }
    pthread_mutex_unlock(&bide_observer_lock_);
    return status;
}
