/*
 * The observer finds the calling thread's record, and passes on what the thread reports.
 *
 *     off --first user registers--> on: every place reports --last user is removed--> off
 *
 * 1. Each record has a lock, and a thread takes its own for each report. It is contended only while
 *    a user is removed, and when the turn watch or the monitor copies from the record.
 * 2. To remove a user, its slot is cleared, and then the lock of each record is acquired and
 *    released once. A thread that held the lock before has returned from the user's function. A
 *    thread that acquires it later finds the slot empty. A record that is made later is made under
 *    `bide_observer_lock_`, which bide_observer_stop_ holds.
 * 3. A slot is filled by a release store, and read by an acquire load under a record's lock. So a
 *    user's function sees what was written before its registration.
 * 4. Records are never freed, because a thread may call the observer's table late, after the
 *    observer was switched off. A thread that exits leaves its record to the next new thread.
 * 5. A turn that started before the observer was switched on ends with `depth` 0, and is ignored.
 *    A turn that ends while the observer is off leaves its start in `depth`. So the first user sets
 *    all depths to 0, and the ends of turns that run at that moment are ignored.
 * 6. The child of a fork observes nothing, and makes new records.
 */
#define _GNU_SOURCE
#include "observer.h"

#include "../coroutine/internal.h"
#include "../coroutine/roots.h"
#include "../system/fork.h"
#include "../system/portable.h"

#include "bide/create.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEVELS_MAX = 4096, OBSERVER_SLOTS = 4 };

pthread_mutex_t bide_observer_lock_ = PTHREAD_MUTEX_INITIALIZER;

/* These are written under `bide_observer_lock_`. */
static bide_atomic(const observer_user *) slots[OBSERVER_SLOTS]; /* NULL: free */
static bide_atomic(unsigned) users;                              /* slots in use: a hint */
static bide_atomic(uint32_t) observer_generation;                /* of the process: 6 */
static observed_thread *records;

static pthread_key_t record_key;
static pthread_once_t record_key_made = PTHREAD_ONCE_INIT;
static BIDE_THREAD_LOCAL observed_thread *own_record;
static BIDE_THREAD_LOCAL uint32_t own_record_generation;

/* ---- Records ---- */

static void record_leave(void *record)
{
    observed_thread *thread = record;
    own_record = NULL;
    pthread_mutex_lock(&thread->lock);
    bide_assert(thread->in_use);
    thread->in_use = false;
    thread->depth = 0;
    thread->block = NULL; /* the next thread starts a block with its own name */
    pthread_mutex_unlock(&thread->lock);
}

static void make_record_key(void)
{
    pthread_key_create(&record_key, record_leave);
}

static observed_thread *reuse_record(void)
{
    for (observed_thread *thread = records; thread != NULL; thread = thread->next) {
        pthread_mutex_lock(&thread->lock);
        bool is_free = !thread->in_use;
        thread->in_use = true;
        pthread_mutex_unlock(&thread->lock);
        if (is_free)
            return thread;
    }
    return NULL;
}

static observed_thread *make_record(void)
{
    observed_thread *thread = calloc(1, sizeof *thread);
    if (thread == NULL)
        return NULL;
    pthread_mutex_init(&thread->lock, NULL);
    thread->in_use = true;
    thread->next = records;
    records = thread;
    return thread;
}

static void register_thread(void)
{
    pthread_once(&record_key_made, make_record_key);
    pthread_mutex_lock(&bide_observer_lock_);
    observed_thread *thread = reuse_record();
    if (thread == NULL)
        thread = make_record();
    if (thread != NULL) {
        pthread_mutex_lock(&thread->lock);
        thread->id = portable_thread_number();
        if (pthread_getname_np(pthread_self(), thread->name, sizeof thread->name) != 0)
            thread->name[0] = '\0';
        pthread_mutex_unlock(&thread->lock);
        pthread_setspecific(record_key, thread);
    }
    pthread_mutex_unlock(&bide_observer_lock_);
    own_record = thread;
    own_record_generation = bide_generation_;
}

/* The calling thread's record, locked. NULL: the observer is off, or there is no memory. */
static observed_thread *record_lock(void)
{
    if (bide_atomic_load(&users, relaxed) == 0 ||
        bide_atomic_load(&observer_generation, relaxed) != bide_generation_)
        return NULL;
    if (own_record == NULL || own_record_generation != bide_generation_)
        register_thread();
    if (own_record == NULL)
        return NULL;
    pthread_mutex_lock(&own_record->lock);
    return own_record;
}

static void record_unlock(observed_thread *thread)
{
    pthread_mutex_unlock(&thread->lock);
}

/* Calls `member` of each user that has it; the thread's record is locked. */
#define PASS_ON(member, ...)                                                               \
    do {                                                                                   \
        for (unsigned i_ = 0; i_ < OBSERVER_SLOTS; i_++) {                                 \
            const observer_user *user_ = bide_atomic_load(&slots[i_], acquire); /* 2, 3 */ \
            if (user_ != NULL && user_->member != NULL)                                    \
                user_->member(__VA_ARGS__);                                                \
        }                                                                                  \
    } while (0)

/* ---- Turns ---- */

/* The parent of a forked coroutine may run beside it. */
static bool is_forked_point(const bide_point *point)
{
    return point->code != NULL && point->code->type != NULL &&
           (*point->code->type)->destroyed != NULL;
}

/* The operation that the coroutine waited for. It has ended, and its result was not taken yet. */
static const char *operation_waited_for(const bide_frame *frame)
{
    const bide_awaiter *awaiter = frame->awaiter.link;
    if (bide_frame_point(frame)->state != BIDE_AT_AWAIT || awaiter == NULL)
        return NULL;
    bide_frame *child = bide_awaited_frame((bide_awaiter *)(uintptr_t)awaiter);
    return child != NULL ? "a coroutine" : awaiter->ops->name;
}

/* A root that starts is named after its first coroutine. */
static void name_starting_root(observed_turn *turn)
{
    if (turn->point->code != &bide_root_code_ || turn->point->state != BIDE_AT_START)
        return;
    const bide_frame *frame = turn->task;
    const bide_root *root = bide_container_of(frame, bide_root, frame);
    const bide_frame *begun = bide_awaited_frame(root->awaited);
    if (begun != NULL)
        turn->point = bide_frame_point(begun);
}

/*
 * A turn is named after the innermost coroutine that a user wrote: the resumed frame may be the
 * library's own, such as the gate of a cancellable operation. The calling thread owns the frame, and
 * the frames that wait for it.
 */
static void describe_turn(const bide_frame *frame, observed_turn *turn)
{
    bool found = false;
    turn->point = bide_frame_point(frame);
    turn->waited_for = NULL;
    turn->task = frame;
    for (unsigned level = 0; frame != NULL && level < LEVELS_MAX; level++) {
        const bide_point *point = bide_frame_point(frame);
        if (!found && bide_point_is_users_(point)) {
            found = true;
            turn->point = point;
            turn->waited_for = operation_waited_for(frame);
        }
        turn->task = frame;
        frame = point->state == BIDE_AT_AWAIT && !is_forked_point(point) ? bide_continuation_(frame)
                                                                         : NULL;
    }
    if (!found)
        name_starting_root(turn);
    turn->began = bide_platform.now();
}

static void on_turn(const bide_frame *frame)
{
    observed_turn turn;
    describe_turn(frame, &turn);
    observed_thread *thread = record_lock();
    if (thread == NULL)
        return;
    if (thread->depth < OBSERVED_DEPTH)
        thread->turns[thread->depth] = turn;
    if (thread->depth++ == 0)
        thread->is_reported = false;
    if (thread->depth <= OBSERVED_DEPTH)
        PASS_ON(turn, thread, &turn);
    record_unlock(thread);
}

static void on_turn_ends(void)
{
    observed_thread *thread = record_lock();
    if (thread == NULL)
        return;
    if (thread->depth != 0 && --thread->depth < OBSERVED_DEPTH) { /* 5 */
        const observed_turn *turn = &thread->turns[thread->depth];
        PASS_ON(turn_ends, thread, turn);
    }
    record_unlock(thread);
}

/* ---- The other reports ---- */

static void on_task(const bide_root *root)
{
    observed_thread *thread = record_lock();
    if (thread == NULL)
        return;
    PASS_ON(task, thread, root);
    record_unlock(thread);
}

static void on_task_ends(const bide_root *root)
{
    observed_thread *thread = record_lock();
    if (thread == NULL)
        return;
    PASS_ON(task_ends, thread, root);
    record_unlock(thread);
}

static void on_operation(const bide_awaiter *operation, int fd)
{
    observed_thread *thread = record_lock();
    if (thread == NULL)
        return;
    PASS_ON(operation, thread, operation, fd);
    record_unlock(thread);
}

static void on_operation_ends(const bide_awaiter *operation, size_t count, int status)
{
    observed_thread *thread = record_lock();
    if (thread == NULL)
        return;
    PASS_ON(operation_ends, thread, operation, count, status);
    record_unlock(thread);
}

static void on_thread(bide_observed_ what)
{
    observed_thread *thread = record_lock();
    if (thread == NULL)
        return;
    PASS_ON(thread, thread, what);
    record_unlock(thread);
}

static const bide_observer_ observer = {
    .turn = on_turn,
    .turn_ends = on_turn_ends,
    .task = on_task,
    .task_ends = on_task_ends,
    .operation = on_operation,
    .operation_ends = on_operation_ends,
    .thread = on_thread,
};

/* ---- Users ---- */

observed_thread *bide_observer_threads_(void)
{
    return bide_atomic_load(&observer_generation, relaxed) == bide_generation_ ? records : NULL;
}

/* The slot that holds `user`; NULL: a free slot. */
static bide_atomic(const observer_user *) * find_slot(const observer_user *user)
{
    for (unsigned i = 0; i < OBSERVER_SLOTS; i++) {
        if (bide_atomic_load(&slots[i], relaxed) == user)
            return &slots[i];
    }
    return NULL;
}

bool bide_observer_is_active_(const observer_user *user)
{
    return bide_atomic_load(&observer_generation, relaxed) == bide_generation_ &&
           find_slot(user) != NULL;
}

/* 6 */
static void discard_parent(void)
{
    records = NULL;
    for (unsigned i = 0; i < OBSERVER_SLOTS; i++)
        bide_atomic_store(&slots[i], NULL, relaxed);
    bide_atomic_store(&users, 0, relaxed);
    bide_atomic_store(&observer_generation, bide_generation_, relaxed);
}

void bide_observer_start_(const observer_user *user)
{
    if (bide_atomic_load(&observer_generation, relaxed) != bide_generation_)
        discard_parent();
    unsigned before = bide_atomic_load(&users, relaxed);
    if (before == 0) {
        for (observed_thread *thread = records; thread != NULL; thread = thread->next) {
            pthread_mutex_lock(&thread->lock);
            thread->depth = 0; /* 5 */
            thread->is_asleep = false;
            pthread_mutex_unlock(&thread->lock);
        }
    }
    bide_atomic(const observer_user *) *slot = find_slot(NULL);
    bide_assert(slot != NULL && find_slot(user) == NULL);
    bide_atomic_store(slot, user, release); /* 3 */
    bide_atomic_store(&users, before + 1, relaxed);
    bide_atomic_store(&bide_observing_, &observer, relaxed);
}

void bide_observer_stop_(const observer_user *user)
{
    bide_atomic(const observer_user *) *slot = find_slot(user);
    unsigned left = bide_atomic_load(&users, relaxed) - 1;
    bide_assert(slot != NULL && left < OBSERVER_SLOTS);
    bide_atomic_store(slot, NULL, relaxed);
    bide_atomic_store(&users, left, relaxed);
    if (left == 0)
        bide_atomic_store(&bide_observing_, NULL, relaxed);
    for (observed_thread *thread = records; thread != NULL; thread = thread->next) { /* 2 */
        pthread_mutex_lock(&thread->lock);
        pthread_mutex_unlock(&thread->lock);
    }
}

/* ---- Forks ---- */

static void observer_in_child(bool was_alone)
{
    (void)was_alone;
    bide_atomic_store(&bide_observing_, NULL, relaxed);
    pthread_mutex_init(&bide_observer_lock_, NULL); /* another thread may have held it */
}

static const bide_fork_handlers_ observer_fork_handlers = {BIDE_FORK_INSPECT_, NULL, NULL,
                                                           observer_in_child};

__attribute__((constructor)) static void observer_register(void)
{
    static bide_fork_registration_ registration = {&observer_fork_handlers, NULL};
    bide_fork_register_(&registration);
}
