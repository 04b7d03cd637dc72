/*
 * Every task, while it runs. The lists of roots and branches give addresses (roots.h). From there on
 * everything is read by the kernel (peek.h), since it changes and goes away under the reader's eyes,
 * and nothing that was read is believed:
 *
 *   1. A frame is what begins with a pointer to a point. Points are constants of the program or of
 *      a library that is loaded (objects.h), aligned, with the mark that awaiters that are frames
 *      have (bide_awaiter_is_frame), a state that there is, and a step function that is code. Texts
 *      are such constants too, are printable, and have an end.
 *   2. What a frame waits for is read between two readings of the frame, which must be alike; they
 *      are tried a few times. It could still have changed twice in between: what is shown is
 *      likely, not certain.
 *   3. A chain has an end, because its length is bounded and a cycle is seen.
 *   4. A task that is no longer in the list at the end ended meanwhile, and its memory may have
 *      been anything: what was read of it is not shown.
 *   5. Points and tables of operations are constants, so each is read once a walk, as far as there is
 *      room to remember them. Of a crowd nearly all stand at the same few.
 *   6. So many tasks are read twice, each time from copies of pages (pages.h). Those of the second
 *      time are copied when the first has ended. If it finds the same addresses, then what was read
 *      of the task lies between two readings, as in 2, and the task was in the list after it, as in 4.
 *      If not, it moves, and is read once more by itself, each word by the kernel. A call of the
 *      system costs more than all else, and so there is less than one for a task.
 *
 * One walk at a time has what is static here.
 */
#define _GNU_SOURCE
#include "walk.h"

#include "objects.h"
#include "page_cache.h"
#include "safe_read.h"

#include "../coroutine/internal.h"
#include "../coroutine/roots.h"

#include "bide/create.h"
#include "bide/extend/wrapper.h"

#include <stdio.h>
#include <string.h>

enum { BATCH = 32, TRIES = 4, MAX_DEPTH = 1000000, PAGE = 4096, KNOWN = 64 };

/* ---- Reading: 6 ---- */

static bool from_pages;

/* Of the addresses that were found. */
static uint64_t mark;

static bool peek(const void *address, void *to, size_t size)
{
    return from_pages ? bide_page_cache_read_(address, to, size) : bide_peek_(address, to, size);
}

static void note(const volatile void *address)
{
    mark = (mark ^ (uintptr_t)address) * UINT64_C(0x9e3779b97f4a7c15);
    mark ^= mark >> 29;
}

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
static bool is_text(walk_text *read, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsigned char c = (unsigned char)read->bytes[i];
        if (c == '\0')
            return i != 0;
        if (c < ' ' || c == 0x7f)
            return false;
    }
    if (count < WALK_TEXT)
        return false;
    memcpy(read->bytes + WALK_TEXT - 4, "...", 4);
    return true;
}

static bool read_text(const char *address, walk_text *to)
{
    size_t count = 0;
    while (count < WALK_TEXT) {
        size_t size = PAGE - (uintptr_t)(address + count) % PAGE;
        if (size > WALK_TEXT - count)
            size = WALK_TEXT - count;
        if (!bide_peek_(address + count, to->bytes + count, size))
            break;
        count += size;
    }
    return is_text(to, count);
}

static bool read_constant_text(const char *address, walk_text *to)
{
    return bide_objects_hold_(address, 1) && read_text(address, to);
}

/* ---- Constants: 5 ---- */

/* A point, and its coroutine's code; or an address where there is none. */
typedef struct known_point {
    const bide_point *address;
    bool is_good;
    bool has_texts;
    bide_point point;
    walk_text name;
    walk_text file;
} known_point;

/* A table of operations, and of a wrapper's. */
typedef struct known_ops {
    const bide_awaiter_ops *address;
    bool is_good;
    bool has_name; /* false: it has one that is no text */
    bide_wrapper_ops wrapper;
    walk_text name; /* empty: it has none */
} known_ops;

static known_point points[KNOWN];
static known_ops tables[KNOWN];

/* The name of a context that was read last: many tasks have the same. */
static const char *context_address;
static walk_text context_name;

static size_t place_of(const void *address)
{
    return (uint32_t)((uintptr_t)address >> 3) * UINT32_C(0x9e3779b1) >> 16 & (KNOWN - 1);
}

static void forget_constants(void)
{
    memset(points, 0, sizeof points);
    memset(tables, 0, sizeof tables);
    context_address = NULL;
    context_name.bytes[0] = '\0';
}

static void read_point(const bide_point *address, known_point *known)
{
    bide_coroutine_code code;
    known->address = address;
    known->is_good = is_constant(address, sizeof known->point) &&
                     bide_peek_(address, &known->point, sizeof known->point) &&
                     known->point.ops.withdraw == bide_frame_withdraw_ &&
                     (unsigned)known->point.state <= BIDE_AT_END &&
                     is_constant(known->point.code, sizeof code) &&
                     bide_peek_(known->point.code, &code, sizeof code) &&
                     bide_objects_hold_code_((const void *)(uintptr_t)code.step);
    known->has_texts = known->is_good && read_constant_text(code.name, &known->name) &&
                       read_constant_text(code.file, &known->file);
}

/* NULL: there is none at this address. Until the next is asked for. */
static const known_point *point_at(const bide_point *address)
{
    known_point *known = &points[place_of(address)];
    if (known->address != address || address == NULL)
        read_point(address, known);
    return known->is_good ? known : NULL;
}

static void read_ops(const bide_awaiter_ops *address, known_ops *known)
{
    bide_awaiter_ops *ops = &known->wrapper.ops;
    known->address = address;
    known->is_good = is_constant(address, sizeof *ops) && bide_peek_(address, ops, sizeof *ops);
    known->wrapper.inner_at = 0;
    if (known->is_good && ops->withdraw == bide_wrapper_withdraw_) {
        bide_wrapper_ops wrapper;
        if (is_constant(address, sizeof wrapper) && bide_peek_(address, &wrapper, sizeof wrapper))
            known->wrapper = wrapper;
    }
    known->name.bytes[0] = '\0';
    known->has_name =
        known->is_good && (ops->name == NULL || read_constant_text(ops->name, &known->name));
}

/* As point_at. */
static const known_ops *ops_at(const bide_awaiter_ops *address)
{
    known_ops *known = &tables[place_of(address)];
    if (known->address != address || address == NULL)
        read_ops(address, known);
    return known->is_good ? known : NULL;
}

/* ---- Frames ---- */

/* A frame, and where it stood: 1. */
typedef struct snapshot {
    bide_frame frame;
    const known_point *at; /* until the next is read */
} snapshot;

static bool find_point(snapshot *read)
{
    note(read->frame.awaiter.ops);
    note(read->frame.awaiter.link);
    read->at = point_at(bide_frame_point(&read->frame));
    return read->at != NULL;
}

static bool read_frame(const bide_frame *address, snapshot *read)
{
    note(address);
    return is_aligned(address, sizeof(void *)) &&
           peek(address, &read->frame, sizeof read->frame) && find_point(read);
}

/* Does the frame still stand where it stood, with the same operation? */
static bool is_unchanged(const bide_frame *address, const snapshot *read)
{
    bide_frame now;
    return from_pages || (peek(address, &now, sizeof now) && now.awaiter.ops == read->frame.awaiter.ops &&
           now.awaiter.link == read->frame.awaiter.link);
}

/* What an awaiter is: a coroutine that is awaited, or an operation with a name. */
typedef struct seen_operation {
    const bide_frame *child; /* or NULL */
    walk_text name;
    unsigned depth;                 /* how many wrappers it is inside of */
    const bide_awaiter *operation; /* inside of all wrappers */
    bide_awaiter_ops ops;
} seen_operation;

/* What is looked into at most: a wrapper's struct, and wrappers in each other. */
enum { MAX_WRAPPER = 65536, MAX_WRAPPERS = 8 };

static bool read_operation(const bide_awaiter *address, seen_operation *read);

/* Of a wrapper: adds what it waits for; or that is a coroutine, which is looked into in its place. */
static void read_inner(size_t inner_at, const bide_awaiter *address, seen_operation *read)
{
    const bide_awaiter *inner;
    seen_operation inside;
    if (inner_at == 0 || inner_at > MAX_WRAPPER ||
        !peek((const char *)address + inner_at, &inner, sizeof inner) ||
        read->depth == MAX_WRAPPERS)
        return;
    inside.depth = read->depth + 1;
    if (!read_operation(inner, &inside))
        return;
    read->child = inside.child;
    read->operation = inside.operation;
    read->ops = inside.ops;
    size_t length = strlen(read->name.bytes);
    if (inside.child == NULL)
        snprintf(read->name.bytes + length, WALK_TEXT - length, " of %.*s",
                 (int)(WALK_TEXT - length), inside.name.bytes);
}

/* `read->depth` is there. */
static bool read_operation(const bide_awaiter *address, seen_operation *read)
{
    bide_awaiter awaiter;
    const known_ops *known;
    read->child = NULL;
    read->operation = address;
    note(address);
    strcpy(read->name.bytes, "an operation");
    if (!is_aligned(address, sizeof(void *)) || !peek(address, &awaiter, sizeof awaiter) ||
        (known = ops_at(awaiter.ops)) == NULL)
        return false;
    note(awaiter.ops);
    read->ops = known->wrapper.ops;
    if (read->ops.withdraw == bide_frame_withdraw_) {
        read->child = (const bide_frame *)(const void *)address;
    } else if (awaiter.ops == &bide_owned_ops_.ops) {
        read->child = (const bide_frame *)((uintptr_t)address + sizeof(bide_owner));
    } else if (!known->has_name) {
        return false;
    } else if (known->name.bytes[0] != '\0') {
        read->name = known->name;
        if (read->ops.withdraw == bide_wrapper_withdraw_)
            read_inner(known->wrapper.inner_at, address, read);
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
        bool waits = frame->at->point.state == BIDE_AT_AWAIT &&
                     frame->frame.awaiter.link != &bide_running_;
        if (waits && !read_operation(frame->frame.awaiter.link, operation))
            continue;
        if (is_unchanged(address, frame))
            return true;
    }
    return false;
}

/* ---- Tasks ---- */

static bool add_level(walk_task *task, const known_point *at)
{
    walk_level *level = &task->levels[task->depth % WALK_SHOWN];
    if (!at->has_texts)
        return false;
    level->line = at->point.line;
    level->name = at->name;
    level->file = at->file;
    task->depth++;
    return true;
}

static void note_wait(walk_task *task, const seen_operation *operation)
{
    task->doing = WALK_WAITING;
    task->waiting_for = operation->name;
    task->operation = operation->operation;
    task->ops = operation->ops;
}

/*
 * Follows a chain inwards from the coroutine that the task awaits. What is not as it must be, and a
 * coroutine that is awaited but does not wait, is one that runs.
 */
static void follow(walk_task *task, const bide_frame *address)
{
    const bide_frame *seen_before = NULL;
    snapshot frame;
    seen_operation operation;
    task->doing = WALK_RUNNING;
    for (size_t i = 1; i <= MAX_DEPTH && address != seen_before; i++) {
        if (!read_waiting(address, &frame, &operation))
            return;
        bide_state state = frame.at->point.state;
        if (state == BIDE_AT_END || !add_level(task, frame.at))
            return;
        task->innermost = address;
        if (state != BIDE_AT_AWAIT || frame.frame.awaiter.link == &bide_running_)
            return;
        if (operation.child == NULL) {
            note_wait(task, &operation);
            return;
        }
        if ((i & (i - 1)) ==
            0) /* 3: a walk that goes round in a circle meets the last of these again */
            seen_before = address;
        address = operation.child;
    }
}

/* The name of what the task awaits. */
static void name_task(walk_task *task, const seen_operation *awaited)
{
    snapshot frame;
    task->name = awaited->name;
    if (awaited->child == NULL)
        return;
    if (read_frame(awaited->child, &frame) && frame.at->has_texts)
        task->name = frame.at->name;
    else
        strcpy(task->name.bytes, "a coroutine");
}

static void name_context(walk_task *task, const char *address)
{
    if (address != context_address) {
        context_address = address;
        if (address == NULL || !read_text(address, &context_name))
            context_name.bytes[0] = '\0';
    }
    task->context = context_name;
}

static bool seems_listed(const bide_root_links_ *address)
{
    bide_root_links_ links;
    const bide_root_links_ *there;
    return peek(address, &links, sizeof links) &&
           peek((const void *)links.place, (void *)&there, sizeof(void *)) &&
           there == address;
}

/*
 * 4. What leads to a link in the list leads to it. While its neighbours come and go it may not seem
 *    so; then the list is held for a second look.
 */
static bool is_listed(bide_root_list_ *list, const bide_root_links_ *links)
{
    bool listed = seems_listed(links);
    if (listed || from_pages)
        return listed;
    bide_short_lock_take_(&list->lock);
    listed = seems_listed(links);
    bide_short_lock_free_(&list->lock);
    return listed;
}

/* What roots and branches have in common, as it was read. */
typedef struct seen_head {
    snapshot frame;
    const bide_awaiter *awaited;
    const bide_scheduler *scheduler;
    const char *context;
} seen_head;

static bool fill_head(seen_head *head, const bide_frame *frame, bide_awaiter *awaited,
                      const bide_context *context, const bide_coroutine_code *code)
{
    head->frame.frame = *frame;
    head->awaited = awaited;
    head->scheduler = context->scheduler;
    head->context = context->name;
    return find_point(&head->frame) && head->frame.at->point.code == code;
}

static bool read_head(walk_task *task, const bide_root_links_ *links, seen_head *head)
{
    bide_branch branch;
    bide_root root;
    if (task->is_branch) {
        task->address = bide_container_of(links, bide_branch, links);
        return peek(task->address, &branch, sizeof branch) &&
               fill_head(head, &branch.frame, branch.awaited, &branch.context, &bide_branch_code_);
    }
    task->address = bide_container_of(links, bide_root, links);
    return peek(task->address, &root, sizeof root) &&
           fill_head(head, &root.frame, root.awaited, &root.context, &bide_root_code_);
}

/* False: it has ended. `task->is_branch` is there. */
static bool read_task(bide_root_list_ *list, const bide_root_links_ *links, walk_task *task)
{
    seen_head head;
    seen_operation awaited;
    if (!is_listed(list, links) || !read_head(task, links, &head))
        return false;
    bool has_begun = head.frame.at->point.state != BIDE_AT_START;
    awaited.depth = 0;
    if (!read_operation(head.awaited, &awaited))
        return false;
    task->scheduler = head.scheduler;
    task->depth = 0;
    task->operation = NULL;
    task->innermost = NULL;
    name_task(task, &awaited);
    name_context(task, head.context);
    if (!has_begun)
        task->doing = WALK_NOT_STARTED;
    else if (awaited.child != NULL)
        follow(task, awaited.child);
    else
        note_wait(task, &awaited);
    return is_listed(list, links);
}

size_t bide_walk_levels_(const walk_task *task)
{
    return task->depth < WALK_SHOWN ? task->depth : WALK_SHOWN;
}

const walk_level *bide_walk_level_of_(const walk_task *task, size_t number)
{
    return &task->levels[(task->depth - 1 - number) % WALK_SHOWN];
}

void bide_walk_describe_(const walk_task *task, bide_described_ *described)
{
    /* relaxed: a function is there from the begin. */
    bide_describe_operation_ *describe = bide_atomic_load(&bide_describe_operation, relaxed);
    described->descriptor = -1;
    if (describe != NULL && task->doing == WALK_WAITING)
        describe(&task->ops, task->operation, described);
}

/* ---- The lists ---- */

typedef struct walk {
    bool (*visit)(void *argument, const walk_task *task);
    void *argument;
    walk_task task;
} walk;

/* So many at a time: some of each list. What was begun together stands close together, and is in all. */
typedef struct batch {
    size_t count;
    struct {
        bide_root_list_ *list;
        const bide_root_links_ *links;
        uint64_t mark;
    } tasks[BATCH * BIDE_ROOT_LISTS_];
} batch;

static void take_batch(bide_root_list_ *lists, batch *batch)
{
    const bide_root_links_ *links[BATCH];
    batch->count = 0;
    for (unsigned i = 0; i < BIDE_ROOT_LISTS_; i++) {
        size_t count = bide_roots_next_(&lists[i], links, BATCH);
        for (size_t j = 0; j < count; j++) {
            batch->tasks[batch->count].list = &lists[i];
            batch->tasks[batch->count++].links = links[j];
        }
    }
}

/* The mark of a task, and what is read of it, from copies; 0: it cannot be had from those. */
static uint64_t read_from_pages(bide_root_list_ *list, const bide_root_links_ *links,
                                walk_task *task)
{
    mark = 1;
    from_pages = true;
    bool was_read = read_task(list, links, task);
    from_pages = false;
    return was_read ? mark : 0;
}

/* 6. False: no more are wanted. */
static bool walk_batch(walk *walk, batch *batch)
{
    walk_task *task = &walk->task;
    bide_page_cache_discard_();
    for (size_t i = 0; i < batch->count; i++)
        batch->tasks[i].mark = read_from_pages(batch->tasks[i].list, batch->tasks[i].links, task);
    bide_page_cache_discard_();
    for (size_t i = 0; i < batch->count; i++) {
        bide_root_list_ *list = batch->tasks[i].list;
        const bide_root_links_ *links = batch->tasks[i].links;
        bool stands = batch->tasks[i].mark != 0 &&
                      read_from_pages(list, links, task) == batch->tasks[i].mark;
        if ((stands || read_task(list, links, task)) && !walk->visit(walk->argument, task))
            return false;
    }
    return true;
}

static bool walk_lists(walk *walk, bide_root_list_ *lists)
{
    static batch batch;
    bool goes_on = true;
    for (unsigned i = 0; i < BIDE_ROOT_LISTS_; i++)
        bide_roots_enter_(&lists[i]);
    while (goes_on && (take_batch(lists, &batch), batch.count != 0))
        goes_on = walk_batch(walk, &batch);
    for (unsigned i = 0; i < BIDE_ROOT_LISTS_; i++)
        bide_roots_leave_(&lists[i]);
    return goes_on;
}

static void walk_all(walk *walk)
{
    walk->task.is_branch = false;
    if (!walk_lists(walk, bide_roots_))
        return;
    walk->task.is_branch = true;
    walk_lists(walk, bide_branches_);
}

int bide_walk_tasks_(bool (*visit)(void *argument, const walk_task *task), void *argument)
{
    static walk walk;
    bide_roots_look_();
    int error = bide_peek_begin_();
    if (error == 0) {
        bide_objects_note_();
        forget_constants();
        walk.visit = visit;
        walk.argument = argument;
        walk_all(&walk);
        bide_peek_end_();
    }
    bide_roots_looked_();
    return error;
}
