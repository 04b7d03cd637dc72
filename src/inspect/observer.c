/*
 * Whoever observes is told through one table, which finds the calling thread's own record.
 *
 *     off --first user begins--> on: every place tells --last user ends--> off
 *
 * 1. A thread's record has a lock. The thread takes it for each thing that it tells, so nobody else
 *    waits for it but who ends a user, and the watch, which looks now and then.
 * 2. A user's end: its bit is cleared, and then each thread's lock is taken and freed once. A thread
 *    that had the lock before has returned from the user's function by then. One that takes it later
 *    sees the cleared bit, since it took the lock after it was freed. A record that is made later is
 *    made under `bide_observer_lock_`, which the end holds.
 * 3. Records are never freed: a thread that is about to call the table when it was switched off may
 *    come late. A thread that ends gives its record to the next that begins.
 * 4. A turn that began before anybody observed ends without having begun: `depth` is 0 then. One
 *    that began, and ends when nobody observes, is left in `depth`; the record's first turn after a
 *    pause cannot tell, so the users' begin sets all depths to 0, and with it ends of turns that
 *    run meanwhile are left out.
 * 5. A child of fork observes nothing, and has records of its own.
 */
#define _GNU_SOURCE
#include "observer.h"

#include "../coroutine/internal.h"
#include "../coroutine/roots.h"
#include "../system/fork.h"

#include "bide/create.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_LEVELS = 4096 };

pthread_mutex_t bide_observer_lock_ = PTHREAD_MUTEX_INITIALIZER;

static bide_atomic(unsigned) users; /* a look without a lock is a hint */
static observed_thread *threads;
static bide_atomic(uint32_t) generation; /* written under `bide_observer_lock_` */
static pthread_key_t key;
static pthread_once_t key_made = PTHREAD_ONCE_INIT;
static BIDE_THREAD_LOCAL observed_thread *mine;
static BIDE_THREAD_LOCAL uint32_t mine_is_of; /* the generation */

/* ---- Records ---- */

static void leave(void *record)
{
    observed_thread *thread = record;
    mine = NULL;
    pthread_mutex_lock(&thread->lock);
    thread->in_use = false;
    thread->depth = 0;
    thread->block = NULL; /* the next one begins another, with its own name */
    pthread_mutex_unlock(&thread->lock);
}

static void make_key(void)
{
    pthread_key_create(&key, leave);
}

static observed_thread *take_free(void)
{
    for (observed_thread *thread = threads; thread != NULL; thread = thread->next) {
        pthread_mutex_lock(&thread->lock);
        bool is_free = !thread->in_use;
        thread->in_use = true;
        pthread_mutex_unlock(&thread->lock);
        if (is_free)
            return thread;
    }
    return NULL;
}

static observed_thread *make(void)
{
    observed_thread *thread = calloc(1, sizeof *thread);
    if (thread == NULL)
        return NULL;
    pthread_mutex_init(&thread->lock, NULL);
    thread->in_use = true;
    thread->next = threads;
    threads = thread;
    return thread;
}

static void register_this(void)
{
    pthread_once(&key_made, make_key);
    pthread_mutex_lock(&bide_observer_lock_);
    observed_thread *thread = take_free();
    if (thread == NULL)
        thread = make();
    if (thread != NULL) {
        pthread_mutex_lock(&thread->lock);
        thread->id = (pid_t)syscall(SYS_gettid);
        if (pthread_getname_np(pthread_self(), thread->name, sizeof thread->name) != 0)
            thread->name[0] = '\0';
        pthread_mutex_unlock(&thread->lock);
        pthread_setspecific(key, thread);
    }
    pthread_mutex_unlock(&bide_observer_lock_);
    mine = thread;
    mine_is_of = bide_generation_;
}

/* This thread's record, locked; NULL: nobody wants to know, or there is no memory. */
static observed_thread *enter(unsigned *wanted)
{
    if (bide_atomic_load(&users, relaxed) == 0 ||
        bide_atomic_load(&generation, relaxed) != bide_generation_)
        return NULL;
    if (mine == NULL || mine_is_of != bide_generation_)
        register_this();
    if (mine == NULL)
        return NULL;
    pthread_mutex_lock(&mine->lock);
    *wanted = bide_atomic_load(&users, relaxed); /* 2: the lock orders it */
    return mine;
}

static void leave_it(observed_thread *thread)
{
    pthread_mutex_unlock(&thread->lock);
}

/* ---- Turns ---- */

/* The parent of what was forked may run beside it. */
static bool is_forked(const bide_point *point)
{
    return point->code != NULL && point->code->type != NULL &&
           (*point->code->type)->destroyed != NULL;
}

/* What the coroutine has waited for, which has ended and has not been taken yet. */
static const char *waited_for(const bide_frame *frame)
{
    const bide_awaiter *awaiter = frame->awaiter.link;
    if (bide_frame_point(frame)->state != BIDE_AT_AWAIT || awaiter == NULL)
        return NULL;
    bide_frame *child = bide_awaited_frame((bide_awaiter *)(uintptr_t)awaiter);
    return child != NULL ? "a coroutine" : awaiter->ops->name;
}

/* A root that begins is named by what it begins with. */
static void name_beginning(observed_turn *turn)
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
 * A turn is named by the first coroutine outwards that a user has written: what was resumed may be
 * the gate of an operation that can be cut short. The frame is this thread's, and so are those that
 * wait for it.
 */
static void look_at(const bide_frame *frame, observed_turn *turn)
{
    bool found = false;
    turn->point = bide_frame_point(frame);
    turn->waited_for = NULL;
    turn->task = frame;
    for (unsigned level = 0; frame != NULL && level < MAX_LEVELS; level++) {
        const bide_point *point = bide_frame_point(frame);
        if (!found && bide_point_is_users_(point)) {
            found = true;
            turn->point = point;
            turn->waited_for = waited_for(frame);
        }
        turn->task = frame;
        frame =
            point->state == BIDE_AT_AWAIT && !is_forked(point) ? bide_continuation_(frame) : NULL;
    }
    if (!found)
        name_beginning(turn);
    turn->began = bide_platform.now();
}

static void on_turn(const bide_frame *frame)
{
    unsigned wanted;
    observed_turn turn;
    look_at(frame, &turn);
    observed_thread *thread = enter(&wanted);
    if (thread == NULL)
        return;
    if (thread->depth < OBSERVED_DEPTH)
        thread->turns[thread->depth] = turn;
    if (thread->depth++ == 0)
        thread->is_reported = false;
    if ((wanted & OBSERVE_TRACE) != 0 && thread->depth <= OBSERVED_DEPTH)
        bide_trace_turn_(thread, &turn);
    leave_it(thread);
}

static void note_longest(observed_thread *thread, const observed_turn *turn)
{
    uint64_t time = bide_platform.now() - turn->began;
    if (time > thread->longest_time) {
        thread->longest_time = time;
        thread->longest = *turn;
    }
}

static void on_turn_ends(void)
{
    unsigned wanted;
    observed_thread *thread = enter(&wanted);
    if (thread == NULL)
        return;
    if (thread->depth != 0 && --thread->depth < OBSERVED_DEPTH) { /* 4 */
        const observed_turn *turn = &thread->turns[thread->depth];
        if ((wanted & OBSERVE_TRACE) != 0)
            bide_trace_turn_ends_(thread, turn);
        if ((wanted & OBSERVE_TURNS) != 0 && thread->depth == 0)
            bide_stall_detector_run_ended_(thread, turn);
        if ((wanted & OBSERVE_LONGEST) != 0 && thread->depth == 0)
            note_longest(thread, turn);
    }
    leave_it(thread);
}

/* ---- What only a trace wants ---- */

static observed_thread *enter_for_trace(void)
{
    unsigned wanted;
    observed_thread *thread = enter(&wanted);
    if (thread != NULL && (wanted & OBSERVE_TRACE) == 0) {
        leave_it(thread);
        return NULL;
    }
    return thread;
}

static void on_task(const bide_root *root)
{
    observed_thread *thread = enter_for_trace();
    if (thread == NULL)
        return;
    bide_trace_task_(thread, root, false);
    leave_it(thread);
}

static void on_task_ends(const bide_root *root)
{
    observed_thread *thread = enter_for_trace();
    if (thread == NULL)
        return;
    bide_trace_task_(thread, root, true);
    leave_it(thread);
}

static void on_operation(const bide_awaiter *operation, int fd)
{
    observed_thread *thread = enter_for_trace();
    if (thread == NULL)
        return;
    bide_trace_operation_(thread, operation, fd);
    leave_it(thread);
}

static void on_operation_ends(const bide_awaiter *operation, size_t count, int status)
{
    observed_thread *thread = enter_for_trace();
    if (thread == NULL)
        return;
    bide_trace_operation_ends_(thread, operation, count, status);
    leave_it(thread);
}

static void on_thread(bide_observed_ what)
{
    observed_thread *thread = enter_for_trace();
    if (thread == NULL)
        return;
    bide_trace_thread_(thread, what);
    leave_it(thread);
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
    return bide_atomic_load(&generation, relaxed) == bide_generation_ ? threads : NULL;
}

bool bide_observer_is_active_(unsigned user)
{
    return bide_atomic_load(&generation, relaxed) == bide_generation_ &&
           (bide_atomic_load(&users, relaxed) & user) != 0;
}

void bide_observer_start_(unsigned user)
{
    if (bide_atomic_load(&generation, relaxed) != bide_generation_) { /* 5 */
        threads = NULL;
        bide_atomic_store(&users, 0, relaxed);
        bide_atomic_store(&generation, bide_generation_, relaxed);
    }
    if (bide_atomic_load(&users, relaxed) == 0) {
        for (observed_thread *thread = threads; thread != NULL; thread = thread->next) {
            pthread_mutex_lock(&thread->lock);
            thread->depth = 0; /* 4 */
            thread->is_asleep = false;
            pthread_mutex_unlock(&thread->lock);
        }
    }
    bide_atomic_store(&users, bide_atomic_load(&users, relaxed) | user, relaxed);
    bide_atomic_store(&bide_observing_, &observer, relaxed);
}

void bide_observer_in_child_(void)
{
    bide_atomic_store(&bide_observing_, NULL, relaxed);
    pthread_mutex_init(&bide_observer_lock_, NULL); /* another thread may have had it */
}

void bide_observer_stop_(unsigned user)
{
    unsigned left = bide_atomic_load(&users, relaxed) & ~user;
    bide_atomic_store(&users, left, relaxed);
    if (left == 0)
        bide_atomic_store(&bide_observing_, NULL, relaxed);
    for (observed_thread *thread = threads; thread != NULL; thread = thread->next) { /* 2 */
        pthread_mutex_lock(&thread->lock);
        pthread_mutex_unlock(&thread->lock);
    }
}
