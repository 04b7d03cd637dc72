/*
 * The walk over all tasks while they run. The lists of roots and branches give addresses (roots.h). From
 * there on everything is read by the kernel (safe_read.h), because it changes or is freed meanwhile. No
 * value that was read is trusted:
 *
 *   1. A frame starts with a pointer to a point. Points are constants of the program or of a loaded
 *      library (objects.h): aligned, with the mark of awaiters that are frames
 *      (bide_awaiter_is_frame), with a valid state, and with a step function that is code. Texts are
 *      such constants too, are printable, and end.
 *   2. The operation of a frame is read between two readings of the frame, which have to be equal;
 *      there are a few attempts. The frame could still have changed twice in between: the result is
 *      likely, not certain.
 *   3. A chain ends, because its length is bounded and a cycle is detected.
 *   4. A task that is not in the list at the end has ended meanwhile, and its memory may have been
 *      anything: it is not shown.
 *   5. Points and tables of operations are constants, so each is read once in a walk, if there is room
 *      to remember it. Nearly all tasks of a crowd are at the same few points.
 *   6. A batch of tasks is read twice, each time from copies of pages (page_cache.h). The second copies are
 *      made after the first reading. If the second reading finds the same addresses, then what was
 *      read lies between two readings, as in 2, and the task was in the list after it, as in 4.
 *      Otherwise the task moves, and is read once more, each word by the kernel. System calls
 *      dominate the cost, and so there is less than one for each task.
 *
 * One walk at a time uses the static state of this file.
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

enum { WALK_BATCH = 32, WALK_TRIES = 4, DEPTH_MAX = 1000000, WALK_PAGE = 4096, WALK_KNOWN = 64 };

/* ---- Reading: 6 ---- */

static bool from_pages; /* walk_read reads the copies */

/* A hash of the addresses that were found. */
static uint64_t walk_mark;

static bool walk_read(const void *address, void *to, size_t size)
{
    return from_pages ? bide_page_cache_read_(address, to, size) : bide_peek_(address, to, size);
}

static void walk_note(const volatile void *address)
{
    walk_mark = (walk_mark ^ (uintptr_t)address) * UINT64_C(0x9e3779b97f4a7c15);
    walk_mark ^= walk_mark >> 29;
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

/* Whether the bytes are a printable text that ends; one that is too long is cut. */
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
        size_t size = WALK_PAGE - (uintptr_t)(address + count) % WALK_PAGE;
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

/* A point and its coroutine's code; or an address that is no point. */
typedef struct known_point {
    const bide_point *address;
    bool is_good;
    bool has_texts;
    bide_point point;
    size_t frame_size;
    walk_text name;
    walk_text file;
} known_point;

/* A table of operations, possibly of a wrapper. */
typedef struct known_ops {
    const bide_awaiter_ops *address;
    bool is_good;
    bool has_name; /* false: its name is no text */
    bide_wrapper_ops wrapper;
    walk_text name; /* empty: it has no name */
    const bide_lock_layout_ *lock;
} known_ops;

static known_point points[WALK_KNOWN];
static known_ops tables[WALK_KNOWN];

/* The last name of a context that was read: many tasks have the same. */
static const char *context_address;
static walk_text context_name;

static size_t known_place(const void *address)
{
    return (uint32_t)((uintptr_t)address >> 3) * UINT32_C(0x9e3779b1) >> 16 & (WALK_KNOWN - 1);
}

static void clear_known_constants(void)
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
    bide_point end;
    known->frame_size = known->is_good && is_constant(code.finished, sizeof end) &&
                                bide_peek_(code.finished, &end, sizeof end)
                            ? (size_t)end.number
                            : 0;
    known->has_texts = known->is_good && read_constant_text(code.name, &known->name) &&
                       read_constant_text(code.file, &known->file);
}

/* NULL: not a point. Valid until the next call. */
static const known_point *known_point_at(const bide_point *address)
{
    known_point *known = &points[known_place(address)];
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
    known->lock = known->has_name ? bide_lock_layout_of_(known->name.bytes) : NULL;
}

/* NULL: not a table of operations. Valid until the next call. */
static const known_ops *known_ops_at(const bide_awaiter_ops *address)
{
    known_ops *known = &tables[known_place(address)];
    if (known->address != address || address == NULL)
        read_ops(address, known);
    return known->is_good ? known : NULL;
}

/* ---- Frames ---- */

/* A frame and its point: 1. */
typedef struct snapshot {
    bide_frame frame;
    const known_point *at; /* until the next snapshot is read */
} snapshot;

static bool find_point(snapshot *read)
{
    walk_note(read->frame.awaiter.ops);
    walk_note(read->frame.awaiter.link);
    read->at = known_point_at(bide_frame_point(&read->frame));
    return read->at != NULL;
}

static bool read_frame(const bide_frame *address, snapshot *read)
{
    walk_note(address);
    return is_aligned(address, sizeof(void *)) &&
           walk_read(address, &read->frame, sizeof read->frame) && find_point(read);
}

/* Whether the frame is still at the same point, with the same operation. */
static bool is_unchanged(const bide_frame *address, const snapshot *read)
{
    bide_frame now;
    return from_pages ||
           (walk_read(address, &now, sizeof now) && now.awaiter.ops == read->frame.awaiter.ops &&
            now.awaiter.link == read->frame.awaiter.link);
}

/* An awaiter as it was read: an awaited coroutine, or an operation with a name. */
typedef struct seen_operation {
    const bide_frame *child; /* or NULL */
    walk_text name;
    unsigned depth;                /* wrappers around it */
    const bide_awaiter *operation; /* inside of all wrappers */
    bide_awaiter_ops ops;
    const bide_lock_layout_ *lock;
} seen_operation;

/* Limits: the size of a wrapper's struct, and nested wrappers. */
enum { WRAPPER_MAX = 65536, WRAPPERS_MAX = 8 };

static bool read_operation(const bide_awaiter *address, seen_operation *read);

/* Of a wrapper: adds the name of the inner operation, or takes the inner coroutine in its place. */
static void read_inner(size_t inner_at, const bide_awaiter *address, seen_operation *read)
{
    const bide_awaiter *inner;
    seen_operation inside;
    if (inner_at == 0 || inner_at > WRAPPER_MAX ||
        !walk_read((const char *)address + inner_at, &inner, sizeof inner) ||
        read->depth == WRAPPERS_MAX)
        return;
    inside.depth = read->depth + 1;
    if (!read_operation(inner, &inside))
        return;
    read->child = inside.child;
    read->operation = inside.operation;
    read->ops = inside.ops;
    read->lock = inside.lock;
    size_t length = strlen(read->name.bytes);
    if (inside.child == NULL)
        snprintf(read->name.bytes + length, WALK_TEXT - length, " of %.*s",
                 (int)(WALK_TEXT - length), inside.name.bytes);
}

/* `read->depth` is set. */
static bool read_operation(const bide_awaiter *address, seen_operation *read)
{
    bide_awaiter awaiter;
    const known_ops *known;
    read->child = NULL;
    read->operation = address;
    read->lock = NULL;
    walk_note(address);
    strcpy(read->name.bytes, "an operation");
    if (!is_aligned(address, sizeof(void *)) || !walk_read(address, &awaiter, sizeof awaiter) ||
        (known = known_ops_at(awaiter.ops)) == NULL)
        return false;
    walk_note(awaiter.ops);
    read->ops = known->wrapper.ops;
    read->lock = known->lock;
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

/* Reads a frame, and its operation if it waits: 2. */
static bool read_waiting(const bide_frame *address, snapshot *frame, seen_operation *operation)
{
    for (int i = 0; i < WALK_TRIES; i++) {
        if (!read_frame(address, frame))
            return false;
        operation->depth = 0;
        bool waits =
            frame->at->point.state == BIDE_AT_AWAIT && frame->frame.awaiter.link != &bide_running_;
        if (waits && !read_operation(frame->frame.awaiter.link, operation))
            continue;
        if (is_unchanged(address, frame))
            return true;
    }
    return false;
}

/* ---- Tasks ---- */

static bool add_level(walk_task *task, const bide_frame *frame, const known_point *at)
{
    walk_level *level = &task->levels[task->depth % WALK_SHOWN];
    if (!at->has_texts)
        return false;
    level->frame = frame;
    level->size = at->frame_size;
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
    task->lock = operation->lock;
}

/*
 * Follows a chain inwards from the coroutine that the task awaits. The task counts as running if the
 * chain is inconsistent, or if its innermost coroutine does not wait.
 */
static void walk_follow_chain(walk_task *task, const bide_frame *address)
{
    const bide_frame *seen_before = NULL;
    snapshot frame;
    seen_operation operation;
    task->doing = WALK_RUNNING;
    for (size_t i = 1; i <= DEPTH_MAX && address != seen_before; i++) {
        if (!read_waiting(address, &frame, &operation))
            return;
        bide_state state = frame.at->point.state;
        if (state == BIDE_AT_END || !add_level(task, address, frame.at))
            return;
        task->innermost = address;
        if (state != BIDE_AT_AWAIT || frame.frame.awaiter.link == &bide_running_)
            return;
        if (operation.child == NULL) {
            note_wait(task, &operation);
            return;
        }
        if ((i & (i - 1)) == 0) /* 3: a walk in a cycle meets the last of these again */
            seen_before = address;
        address = operation.child;
    }
}

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
    return walk_read(address, &links, sizeof links) &&
           walk_read((const void *)links.place, (void *)&there, sizeof(void *)) && there == address;
}

/*
 * 4. `place` of a link in the list points at a pointer to the link. That may seem false while its
 *    neighbours change; then it is checked again under the list's lock.
 */
static bool is_task_listed(bide_root_list_ *list, const bide_root_links_ *links)
{
    bool listed = seems_listed(links);
    if (listed || from_pages)
        return listed;
    bide_short_lock_take_(&list->lock);
    listed = seems_listed(links);
    bide_short_lock_free_(&list->lock);
    return listed;
}

/* The common members of roots and branches, as they were read. */
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
        return walk_read(task->address, &branch, sizeof branch) &&
               fill_head(head, &branch.frame, branch.awaited, &branch.context, &bide_branch_code_);
    }
    task->address = bide_container_of(links, bide_root, links);
    return walk_read(task->address, &root, sizeof root) &&
           fill_head(head, &root.frame, root.awaited, &root.context, &bide_root_code_);
}

/* False: the task has ended. `task->is_branch` is set. */
static bool read_task(bide_root_list_ *list, const bide_root_links_ *links, walk_task *task)
{
    seen_head head;
    seen_operation awaited;
    if (!is_task_listed(list, links) || !read_head(task, links, &head))
        return false;
    bool has_begun = head.frame.at->point.state != BIDE_AT_START;
    awaited.depth = 0;
    if (!read_operation(head.awaited, &awaited))
        return false;
    task->scheduler = head.scheduler;
    task->depth = 0;
    task->operation = NULL;
    task->lock = NULL;
    task->innermost = NULL;
    name_task(task, &awaited);
    name_context(task, head.context);
    if (!has_begun)
        task->doing = WALK_NOT_STARTED;
    else if (awaited.child != NULL)
        walk_follow_chain(task, awaited.child);
    else
        note_wait(task, &awaited);
    return is_task_listed(list, links);
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
    /* relaxed: it points at a function. */
    bide_describe_operation_ *describe = bide_atomic_load(&bide_describe_operation, relaxed);
    described->descriptor = -1;
    if (describe != NULL && task->doing == WALK_WAITING)
        describe(&task->ops, task->operation, described);
}

bool bide_walk_lock_of_(const walk_task *task, walk_lock *lock)
{
    const bide_lock_layout_ *layout = task->lock;
    uintptr_t state;
    if (layout == NULL ||
        !bide_peek_((const char *)task->operation + layout->lock_at, &lock->lock,
                    sizeof lock->lock) ||
        !bide_peek_((const char *)lock->lock + layout->state_at, &state, sizeof state) ||
        !bide_peek_((const char *)lock->lock + layout->holder_at, &lock->holder,
                    sizeof lock->holder))
        return false;
    if ((state & layout->locked) == 0)
        lock->holder = NULL;
    return true;
}

/* ---- The lists ---- */

typedef struct walk {
    bool (*visit)(void *argument, const walk_task *task);
    void *argument;
    walk_task task;
} walk;

/* Some tasks of each list at a time: tasks that were started together are close in memory. */
typedef struct batch {
    size_t count;
    struct {
        bide_root_list_ *list;
        const bide_root_links_ *links;
        uint64_t mark;
    } tasks[WALK_BATCH * BIDE_ROOT_LISTS_];
} batch;

static void take_batch(bide_root_list_ *lists, batch *batch)
{
    const bide_root_links_ *links[WALK_BATCH];
    batch->count = 0;
    for (unsigned i = 0; i < BIDE_ROOT_LISTS_; i++) {
        size_t count = bide_roots_next_(&lists[i], links, WALK_BATCH);
        for (size_t j = 0; j < count; j++) {
            batch->tasks[batch->count].list = &lists[i];
            batch->tasks[batch->count++].links = links[j];
        }
    }
}

/* Reads a task from copies of pages, and returns its mark; 0: it cannot be read from these. */
static uint64_t read_from_pages(bide_root_list_ *list, const bide_root_links_ *links,
                                walk_task *task)
{
    walk_mark = 1;
    from_pages = true;
    bool was_read = read_task(list, links, task);
    from_pages = false;
    return was_read ? walk_mark : 0;
}

/* 6. False: the visitor wants no more. */
static bool walk_batch(walk *walk, batch *batch)
{
    walk_task *task = &walk->task;
    bide_page_cache_clear_();
    for (size_t i = 0; i < batch->count; i++)
        batch->tasks[i].mark = read_from_pages(batch->tasks[i].list, batch->tasks[i].links, task);
    bide_page_cache_clear_();
    for (size_t i = 0; i < batch->count; i++) {
        bide_root_list_ *list = batch->tasks[i].list;
        const bide_root_links_ *links = batch->tasks[i].links;
        bool is_stable =
            batch->tasks[i].mark != 0 && read_from_pages(list, links, task) == batch->tasks[i].mark;
        if ((is_stable || read_task(list, links, task)) && !walk->visit(walk->argument, task))
            return false;
    }
    return true;
}

static bool walk_lists(walk *walk, bide_root_list_ *lists)
{
    static batch batch;
    bool continues = true;
    for (unsigned i = 0; i < BIDE_ROOT_LISTS_; i++)
        bide_roots_enter_(&lists[i]);
    while (continues && (take_batch(lists, &batch), batch.count != 0))
        continues = walk_batch(walk, &batch);
    for (unsigned i = 0; i < BIDE_ROOT_LISTS_; i++)
        bide_roots_leave_(&lists[i]);
    return continues;
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
        clear_known_constants();
        walk.visit = visit;
        walk.argument = argument;
        walk_all(&walk);
        bide_peek_end_();
    }
    bide_roots_looked_();
    return error;
}
