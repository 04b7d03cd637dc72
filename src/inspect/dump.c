/*
 * Every task, while it runs. The list of roots gives addresses (roots.h). From there on everything
 * is read by the kernel (peek.h), since it changes and goes away under the reader's eyes, and
 * nothing that was read is believed:
 *
 *   1. A frame is what begins with a pointer to a point. Points are constants of the program or of
 *      a library that is loaded (objects.h), aligned, with the mark that awaiters that are frames
 *      have (bide_awaiter_is_frame), a state that there is, and a step function that is code. Texts
 *      are such constants too, are printable, and have an end.
 *   2. What a frame waits for is read between two readings of the frame, which must be alike; they
 *      are tried a few times. It could still have changed twice in between: what is printed is
 *      likely, not certain.
 *   3. A chain has an end, because its length is bounded and a cycle is seen.
 *   4. A root that is no longer in the list at the end ended meanwhile, and its memory may have
 *      been anything: what was read of it is not shown.
 *
 * One dump at a time has what is static here.
 */
#define _GNU_SOURCE
#include "bide/dump.h"

#include "objects.h"
#include "peek.h"

#include "../coroutine/inside.h"
#include "../coroutine/observe.h"
#include "../coroutine/roots.h"

#include "bide/coroutine.h"
#include "bide/create.h"
#include "bide/extend/root.h"
#include "bide/extend/wrapper.h"

#include <errno.h>
#include <string.h>

enum { BATCH = 64, SHOWN = 64, TEXT = 160, TRIES = 4, DEPTH_MOST = 1000000, PAGE = 4096 };

typedef struct text {
    char bytes[TEXT];
} text;

/* A coroutine of a chain, as it was read. */
typedef struct seen_level {
    text name;
    text file;
    unsigned line;
} seen_level;

typedef enum task_state { NOT_STARTED, WAITING, RUNNING } task_state;

/* A root and what it awaits, as they were read. */
typedef struct seen_task {
    const bide_root *root;
    text name;
    text context; /* or empty */
    task_state doing;
    text waiting_for;
    size_t depth; /* coroutines in the chain; the last SHOWN of them are in `levels` */
    seen_level levels[SHOWN];
} seen_task;

static bool is_aligned(const void *address, size_t alignment)
{
    return (uintptr_t)address % alignment == 0;
}

static bool is_constant(const void *address, size_t size)
{
    return is_aligned(address, sizeof(void *)) && bide_objects_hold_(address, size);
}

/* ---- Texts ---- */

/* Is it printable up to its end, which is there? What is too long is cut. */
static bool is_text(text *read, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsigned char c = (unsigned char)read->bytes[i];
        if (c == '\0')
            return i != 0;
        if (c < ' ' || c == 0x7f)
            return false;
    }
    if (count < TEXT)
        return false;
    memcpy(read->bytes + TEXT - 4, "...", 4);
    return true;
}

static bool read_text(const char *address, text *to)
{
    size_t count = 0;
    while (count < TEXT) {
        size_t size = PAGE - (uintptr_t)(address + count) % PAGE;
        if (size > TEXT - count)
            size = TEXT - count;
        if (!bide_peek_(address + count, to->bytes + count, size))
            break;
        count += size;
    }
    return is_text(to, count);
}

static bool read_constant_text(const char *address, text *to)
{
    return bide_objects_hold_(address, 1) && read_text(address, to);
}

/* ---- Frames ---- */

/* A frame, and where it stood: 1. */
typedef struct snapshot {
    bide_frame frame;
    bide_point point;
    bide_coroutine_code code;
} snapshot;

static bool read_frame(const bide_frame *address, snapshot *read)
{
    const bide_point *point;
    if (!is_aligned(address, sizeof(void *)) ||
        !bide_peek_(address, &read->frame, sizeof read->frame))
        return false;
    point = bide_frame_point(&read->frame);
    if (!is_constant(point, sizeof *point) || !bide_peek_(point, &read->point, sizeof read->point))
        return false;
    return read->point.ops.withdraw == bide_frame_withdraw_ &&
           (unsigned)read->point.state <= BIDE_AT_END &&
           is_constant(read->point.code, sizeof read->code) &&
           bide_peek_(read->point.code, &read->code, sizeof read->code) &&
           bide_objects_hold_code_((const void *)(uintptr_t)read->code.step);
}

/* Does the frame still stand where it stood, with the same operation? */
static bool is_unchanged(const bide_frame *address, const snapshot *read)
{
    bide_frame now;
    return bide_peek_(address, &now, sizeof now) && now.awaiter.ops == read->frame.awaiter.ops &&
           now.awaiter.link == read->frame.awaiter.link;
}

/* What an awaiter is: a coroutine that is awaited, or an operation with a name. */
typedef struct seen_operation {
    const bide_frame *child; /* or NULL */
    text name;
    unsigned depth; /* how many wrappers it is inside of */
} seen_operation;

/* What is looked into at most: a wrapper's struct, and wrappers in each other. */
enum { WRAPPER_MOST = 65536, WRAPPERS_MOST = 8 };

/* Adds to the name what the operation is on, if that is known. */
static void describe(const bide_awaiter_ops *ops, const bide_awaiter *address, text *name)
{
    /* relaxed: a function is there from the begin. */
    bide_describe_operation_ *describe = bide_atomic_load(&bide_describe_operation, relaxed);
    size_t length = strlen(name->bytes);
    if (describe != NULL)
        describe(ops, address, name->bytes + length, TEXT - length);
}

static bool read_operation(const bide_awaiter *address, seen_operation *read);

/* Of a wrapper: adds what it waits for; or that is a coroutine, which is looked into in its place. */
static void read_inner(const bide_awaiter_ops *ops, const bide_awaiter *address,
                       seen_operation *read)
{
    bide_wrapper_ops wrapper;
    const bide_awaiter *inner;
    seen_operation inside;
    if (!is_constant(ops, sizeof wrapper) || !bide_peek_(ops, &wrapper, sizeof wrapper) ||
        wrapper.inner_at == 0 || wrapper.inner_at > WRAPPER_MOST ||
        !bide_peek_((const char *)address + wrapper.inner_at, &inner, sizeof inner) ||
        read->depth == WRAPPERS_MOST)
        return;
    inside.depth = read->depth + 1;
    if (!read_operation(inner, &inside))
        return;
    read->child = inside.child;
    size_t length = strlen(read->name.bytes);
    if (inside.child == NULL)
        snprintf(read->name.bytes + length, TEXT - length, " of %.*s", (int)(TEXT - length),
                 inside.name.bytes);
}

/* `read->depth` is there. */
static bool read_operation(const bide_awaiter *address, seen_operation *read)
{
    bide_awaiter awaiter;
    bide_awaiter_ops ops;
    read->child = NULL;
    strcpy(read->name.bytes, "an operation");
    if (!is_aligned(address, sizeof(void *)) || !bide_peek_(address, &awaiter, sizeof awaiter) ||
        !is_constant(awaiter.ops, sizeof ops) || !bide_peek_(awaiter.ops, &ops, sizeof ops))
        return false;
    if (ops.withdraw == bide_frame_withdraw_) {
        read->child = (const bide_frame *)(const void *)address;
    } else if (awaiter.ops == &bide_owned_ops_.ops) {
        read->child = (const bide_frame *)((uintptr_t)address + sizeof(bide_owner));
    } else if (ops.name != NULL) {
        if (!read_constant_text(ops.name, &read->name))
            return false;
        if (ops.withdraw == bide_wrapper_withdraw_)
            read_inner(awaiter.ops, address, read);
        else
            describe(&ops, address, &read->name);
    }
    return true;
}

/* Reads a frame and what it waits for, if it does: 2. */
static bool read_waiting(const bide_frame *address, snapshot *frame, seen_operation *operation)
{
    for (int i = 0; i < TRIES; i++) {
        if (!read_frame(address, frame))
            return false;
        operation->depth = 0;
        bool waits =
            frame->point.state == BIDE_AT_AWAIT && frame->frame.awaiter.link != &bide_running_;
        if (waits && !read_operation(frame->frame.awaiter.link, operation))
            continue;
        if (is_unchanged(address, frame))
            return true;
    }
    return false;
}

/* ---- Tasks ---- */

static bool add_level(seen_task *task, const snapshot *frame)
{
    seen_level *level = &task->levels[task->depth % SHOWN];
    level->line = frame->point.line;
    if (!read_constant_text(frame->code.name, &level->name) ||
        !read_constant_text(frame->code.file, &level->file))
        return false;
    task->depth++;
    return true;
}

/*
 * Follows a chain inwards from the coroutine that the root awaits. What is not as it must be, and a
 * coroutine that is awaited but does not wait, is one that runs.
 */
static void follow(seen_task *task, const bide_frame *address)
{
    const bide_frame *seen_before = NULL;
    static snapshot frame;
    static seen_operation operation;
    task->doing = RUNNING;
    for (size_t i = 1; i <= DEPTH_MOST && address != seen_before; i++) {
        if (!read_waiting(address, &frame, &operation))
            return;
        if (frame.point.state == BIDE_AT_END || !add_level(task, &frame))
            return;
        if (frame.point.state != BIDE_AT_AWAIT || frame.frame.awaiter.link == &bide_running_)
            return;
        if (operation.child == NULL) {
            task->waiting_for = operation.name;
            task->doing = WAITING;
            return;
        }
        if ((i & (i - 1)) ==
            0) /* 3: a walk that goes round in a circle meets the last of these again */
            seen_before = address;
        address = operation.child;
    }
}

/* The name of what the root awaits. */
static void name_task(seen_task *task, const seen_operation *awaited)
{
    snapshot frame;
    task->name = awaited->name;
    if (awaited->child != NULL &&
        (!read_frame(awaited->child, &frame) || !read_constant_text(frame.code.name, &task->name)))
        strcpy(task->name.bytes, "a coroutine");
}

static void name_context(seen_task *task, const bide_context *address)
{
    bide_context context;
    if (!bide_peek_(address, &context, sizeof context) || context.name == NULL ||
        !read_text(context.name, &task->context))
        task->context.bytes[0] = '\0';
}

static bool seems_listed(const bide_root *root)
{
    bide_root_links_ links;
    const bide_root_links_ *there;
    return bide_peek_(&root->links, &links, sizeof links) &&
           bide_peek_((const void *)links.place, (void *)&there, sizeof(void *)) &&
           there == &root->links;
}

/*
 * 4. What leads to a link in the list leads to it. While its neighbours come and go it may not seem
 *    so; then the list is held for a second look.
 */
static bool is_listed(const bide_root *root)
{
    if (seems_listed(root))
        return true;
    bide_root_list_ *list = bide_roots_hold_(root);
    bool listed = seems_listed(root);
    bide_roots_let_go_(list);
    return listed;
}

/* False: it has ended. */
static bool read_task(const bide_root *address, seen_task *task)
{
    bide_root root;
    snapshot frame;
    seen_operation awaited;
    if (!is_listed(address) || !read_frame(&address->frame, &frame) ||
        frame.point.code != &bide_root_code_ || !bide_peek_(address, &root, sizeof root))
        return false;
    awaited.depth = 0;
    if (!read_operation(root.awaited, &awaited))
        return false;
    task->root = address;
    task->depth = 0;
    name_task(task, &awaited);
    name_context(task, root.frame.context);
    if (frame.point.state == BIDE_AT_START) {
        task->doing = NOT_STARTED;
    } else if (awaited.child != NULL) {
        follow(task, awaited.child);
    } else {
        task->waiting_for = awaited.name;
        task->doing = WAITING;
    }
    return is_listed(address);
}

/* ---- As text ---- */

static void print_doing(FILE *file, const seen_task *task, const char *running)
{
    if (task->doing == WAITING)
        fprintf(file, "waiting for %s\n", task->waiting_for.bytes);
    else
        fprintf(file, "%s\n", task->doing == RUNNING ? running : "not started");
}

static void print_task(FILE *file, const seen_task *task)
{
    size_t shown = task->depth < SHOWN ? task->depth : SHOWN;
    bool named = task->context.bytes[0] != '\0';
    fprintf(file, "task %p %s%s%s: ", (const void *)task->root, task->name.bytes,
            named ? " in " : "", named ? task->context.bytes : "");
    print_doing(file, task, "running");
    for (size_t i = 0; i < shown; i++) {
        const seen_level *level = &task->levels[(task->depth - 1 - i) % SHOWN];
        fprintf(file, "  #%zu %s at %s:%u", i, level->name.bytes, level->file.bytes, level->line);
        if (i == 0) {
            fputc(' ', file);
            print_doing(file, task, "(running)");
        } else {
            fputc('\n', file);
        }
    }
    if (task->depth > shown)
        fprintf(file, "  ... and %zu more\n", task->depth - shown);
}

static size_t dump_list(FILE *file, bide_root_list_ *list)
{
    static seen_task task;
    const bide_root *roots[BATCH];
    size_t tasks = 0;
    size_t count;
    bide_roots_enter_(list);
    while ((count = bide_roots_next_(list, roots, BATCH)) != 0) {
        for (size_t i = 0; i < count; i++) {
            if (!read_task(roots[i], &task))
                continue;
            print_task(file, &task);
            tasks++;
        }
    }
    bide_roots_leave_(list);
    return tasks;
}

int bide_dump(FILE *file)
{
    bide_roots_look_();
    int error = bide_peek_begin_();
    if (error == 0) {
        size_t tasks = 0;
        bide_objects_note_();
        for (unsigned i = 0; i < BIDE_ROOT_LISTS_; i++)
            tasks += dump_list(file, &bide_roots_[i]);
        fprintf(file, "%zu task%s\n", tasks, tasks == 1 ? "" : "s");
        bide_peek_end_();
        error = fflush(file) != 0 || ferror(file) ? -EIO : 0;
    }
    bide_roots_looked_();
    return error;
}
