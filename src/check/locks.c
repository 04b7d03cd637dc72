/*
 * The words of the locks:
 *
 *     mutex      1 while it is locked. Locking is a read-modify-write that waits for 0
 *     rw lock    the number of readers, or WRITER
 *     semaphore  its value
 *     barrier    the number of arrivals since it was made; it is passed by a multiple of its count
 *     once       0: not begun; 1: begun; 2: done
 *
 * Each word is released by each unlock, give and arrival, and acquired by each lock, take and pass.
 * Readers of an rw lock so order each other too, as with glibc's.
 */
#define _GNU_SOURCE
#include "locks.h"

#include "accesses.h"
#include "machine.h"
#include "memory.h"
#include "source_location.h"
#include "storage.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { WRITER = 0x80, LOCK_SIZE = 1, COUNT_SIZE = 4 };

/* ---- What a thread holds ---- */

typedef enum held_kind { HELD_MUTEX, HELD_TO_READ, HELD_TO_WRITE } held_kind;

typedef struct held_lock {
    uintptr_t lock;
    unsigned times; /* a recursive mutex; a lock that is held to read */
    held_kind kind;
} held_lock;

static struct held_locks {
    held_lock *locks;
    unsigned count, capacity;
} all_held[THREADS];

void locks_begin(unsigned thread)
{
    all_held[thread].count = 0;
}

static held_lock *find_held(uintptr_t lock)
{
    struct held_locks *h = &all_held[the_execution.running];
    for (unsigned i = 0; i < h->count; i++) {
        if (h->locks[i].lock == lock)
            return &h->locks[i];
    }
    return NULL;
}

static int now_held(uintptr_t lock, held_kind kind)
{
    struct held_locks *h = &all_held[the_execution.running];
    h->locks = grown(h->locks, &h->capacity, h->count + 1, sizeof *h->locks);
    h->locks[h->count++] = (held_lock){lock, 1, kind};
    return 0;
}

static void no_longer_held(held_lock *l)
{
    struct held_locks *h = &all_held[the_execution.running];
    *l = h->locks[--h->count];
}

static void describe_lock(uintptr_t lock, const bide_check_site_ *site, char *text, size_t size)
{
    const char *name = site != NULL ? site->object : "";
    if (*name != '\0')
        snprintf(text, size, "%s", *name == '&' ? name + 1 : name);
    else
        memory_describe(lock, text, size);
}

static _Noreturn void found_misuse(uintptr_t lock, const bide_check_site_ *site, const char *verb,
                                   const char *which)
{
    char what[128], where[256];
    describe_lock(lock, site, what, sizeof what);
    source_location_describe(site, where, sizeof where);
    execution_found(BIDE_CHECK_MISUSE, "thread %u %s %s, which %s, at %s", the_execution.running,
                    verb, what, which, where);
    abort(); /* not reached */
}

void locks_end(void)
{
    const struct held_locks *h = &all_held[the_execution.running];
    char what[128];
    if (h->count == 0)
        return;
    describe_lock(h->locks[h->count - 1].lock, NULL, what, sizeof what);
    execution_found(BIDE_CHECK_MISUSE, "thread %u ends while it holds the lock at %s",
                    the_execution.running, what);
}

/* ---- Steps ---- */

static uint64_t read_word(const operation *op, uintptr_t word, size_t size, reference *load)
{
    return machine_load(op, word, size, HIDDEN_LOCK, NULL, load);
}

static void write_word(const operation *op, uintptr_t word, size_t size, uint64_t value,
                       const reference *load)
{
    machine_store(op, word, size, HIDDEN_LOCK, value, load);
}

/*
 * Looks whether the deadline of a wait comes first: each of both is explored. Where it does, the wait
 * is a try, which must not succeed: the wait would have. A sampled execution is not given up for that.
 */
static bool deadline_comes_first(lock_try how, bide_check_site_ *site)
{
    operation choice = {.site = site, .step = STEP_CHOICE};
    return how == LOCK_DEADLINE && machine_choose(&choice, 2) == 1;
}

/*
 * Begins a read-modify-write that waits as `op` says, or tries. False: the try has failed. Otherwise
 * sets the value that was read.
 */
static bool begin_change(operation *op, uintptr_t word, size_t size, lock_try how, uint64_t *old,
                         reference *load)
{
    bool is_tried = how == LOCK_TRY || deadline_comes_first(how, op->site);
    op->is_rmw = true;
    op->order = bide_check_acquire_;
    op->order_if_failed = bide_check_relaxed_;
    op->operand = how == LOCK_DEADLINE;
    op->is_tried = is_tried;
    *old = read_word(op, word, size, load);
    if (!execution_event(*load)->is_rmw)
        return false;
    if (is_tried && how == LOCK_DEADLINE && !the_checker.samples)
        execution_halt();
    return true;
}

static int failed(lock_try how, int busy)
{
    return how == LOCK_DEADLINE ? ETIMEDOUT : busy;
}

/* ---- Mutexes ---- */

/* A mutex of that type knows its owner. */
static bool knows_owner(int type)
{
    return type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK;
}

int lock_mutex(uintptr_t mutex, int type, lock_try how, bide_check_site_ *site)
{
    operation op = {.site = site, .step = STEP_LOCK, .wait = WAIT_UNTIL_EQUAL, .expected = 0};
    reference load;
    uint64_t old;
    held_lock *l = find_held(mutex);
    if (l != NULL && type == PTHREAD_MUTEX_RECURSIVE) {
        l->times++;
        return 0;
    }
    if (l != NULL && type == PTHREAD_MUTEX_ERRORCHECK)
        return how == LOCK_TRY ? EBUSY : EDEADLK;
    if (!begin_change(&op, mutex, LOCK_SIZE, how, &old, &load))
        return failed(how, EBUSY);
    write_word(&op, mutex, LOCK_SIZE, 1, &load);
    return now_held(mutex, HELD_MUTEX);
}

int lock_release_mutex(uintptr_t mutex, int type, bide_check_site_ *site)
{
    operation op = {.site = site, .step = STEP_UNLOCK, .order = bide_check_release_};
    held_lock *l = find_held(mutex);
    if (l == NULL) {
        if (knows_owner(type))
            return EPERM;
        found_misuse(mutex, site, "unlocks", "it does not hold");
    }
    if (--l->times != 0)
        return 0;
    no_longer_held(l);
    write_word(&op, mutex, LOCK_SIZE, 0, NULL);
    return 0;
}

/* A waiter enlists before it unlocks the mutex, so it misses no signal that is sent under the mutex. */
int lock_wait(uintptr_t condition, uintptr_t mutex, int type, bool has_deadline,
              bide_check_site_ *site)
{
    if (find_held(mutex) == NULL) {
        if (knows_owner(type))
            return EPERM;
        found_misuse(mutex, site, "waits with", "it does not hold");
    }
    sleepers_enlist(condition, site);
    lock_release_mutex(mutex, type, site);
    int status = sleepers_wait(condition, site, has_deadline);
    lock_mutex(mutex, type, LOCK_WAIT, site);
    return -status;
}

void lock_create(uintptr_t lock, bide_check_site_ *site)
{
    accesses_add(lock, LOCK_SIZE, ACCESS_WRITE, site, NULL);
}

void lock_destroy(uintptr_t lock, bide_check_site_ *site)
{
    operation op = {.site = site, .step = STEP_LOAD, .order = bide_check_acquire_};
    if (read_word(&op, lock, LOCK_SIZE, NULL) != 0)
        found_misuse(lock, site, "destroys", "is locked");
    accesses_add(lock, LOCK_SIZE, ACCESS_WRITE, site, NULL);
}

/* ---- Read-write locks ---- */

int lock_read(uintptr_t rw_lock, lock_try how, bide_check_site_ *site)
{
    operation op = {
        .site = site, .step = STEP_READ_LOCK, .wait = WAIT_UNTIL_CLEAR, .expected = WRITER};
    reference load;
    uint64_t old;
    held_lock *l = find_held(rw_lock);
    if (l != NULL && l->kind == HELD_TO_WRITE)
        return how == LOCK_TRY ? EBUSY : EDEADLK;
    if (!begin_change(&op, rw_lock, LOCK_SIZE, how, &old, &load))
        return failed(how, EBUSY);
    write_word(&op, rw_lock, LOCK_SIZE, old + 1, &load);
    l = find_held(rw_lock);
    if (l == NULL)
        return now_held(rw_lock, HELD_TO_READ);
    l->times++;
    return 0;
}

int lock_write(uintptr_t rw_lock, lock_try how, bide_check_site_ *site)
{
    operation op = {.site = site, .step = STEP_LOCK, .wait = WAIT_UNTIL_EQUAL, .expected = 0};
    reference load;
    uint64_t old;
    if (find_held(rw_lock) != NULL)
        return how == LOCK_TRY ? EBUSY : EDEADLK;
    if (!begin_change(&op, rw_lock, LOCK_SIZE, how, &old, &load))
        return failed(how, EBUSY);
    write_word(&op, rw_lock, LOCK_SIZE, WRITER, &load);
    return now_held(rw_lock, HELD_TO_WRITE);
}

int lock_release_rw(uintptr_t rw_lock, bide_check_site_ *site)
{
    operation op = {.site = site, .step = STEP_UNLOCK, .order = bide_check_release_};
    reference load;
    held_lock *l = find_held(rw_lock);
    if (l == NULL)
        found_misuse(rw_lock, site, "unlocks", "it does not hold");
    bool was_written = l->kind == HELD_TO_WRITE;
    if (--l->times == 0)
        no_longer_held(l);
    if (was_written) {
        write_word(&op, rw_lock, LOCK_SIZE, 0, NULL);
        return 0;
    }
    op.is_rmw = true;
    uint64_t readers = read_word(&op, rw_lock, LOCK_SIZE, &load);
    write_word(&op, rw_lock, LOCK_SIZE, readers - 1, &load);
    return 0;
}

/* ---- Semaphores ---- */

void semaphore_create(uintptr_t semaphore, unsigned value, bide_check_site_ *site)
{
    operation op = {.site = site, .step = STEP_GIVE, .order = bide_check_relaxed_};
    accesses_add(semaphore, COUNT_SIZE, ACCESS_WRITE, site, NULL);
    write_word(&op, semaphore, COUNT_SIZE, value, NULL);
}

int semaphore_take(uintptr_t semaphore, lock_try how, bide_check_site_ *site)
{
    operation op = {.site = site, .step = STEP_TAKE, .wait = WAIT_UNTIL_DIFFERENT, .expected = 0};
    reference load;
    uint64_t old;
    if (!begin_change(&op, semaphore, COUNT_SIZE, how, &old, &load))
        return failed(how, EAGAIN);
    write_word(&op, semaphore, COUNT_SIZE, old - 1, &load);
    return 0;
}

void semaphore_give(uintptr_t semaphore, bide_check_site_ *site)
{
    operation op = {.site = site, .step = STEP_GIVE, .is_rmw = true, .order = bide_check_acq_rel_};
    reference load;
    uint64_t old = read_word(&op, semaphore, COUNT_SIZE, &load);
    write_word(&op, semaphore, COUNT_SIZE, old + 1, &load);
}

unsigned semaphore_value(uintptr_t semaphore, bide_check_site_ *site)
{
    operation op = {.site = site, .step = STEP_LOAD, .order = bide_check_relaxed_};
    return (unsigned)read_word(&op, semaphore, COUNT_SIZE, NULL);
}

/* ---- Barriers ---- */

void barrier_create(uintptr_t barrier, bide_check_site_ *site)
{
    operation op = {.site = site, .step = STEP_ARRIVE, .order = bide_check_relaxed_};
    accesses_add(barrier, COUNT_SIZE, ACCESS_WRITE, site, NULL);
    write_word(&op, barrier, COUNT_SIZE, 0, NULL);
}

bool barrier_wait(uintptr_t barrier, unsigned count, bide_check_site_ *site)
{
    operation op = {
        .site = site, .step = STEP_ARRIVE, .is_rmw = true, .order = bide_check_acq_rel_};
    reference load;
    uint64_t before = read_word(&op, barrier, COUNT_SIZE, &load);
    write_word(&op, barrier, COUNT_SIZE, before + 1, &load);
    if (before % count == count - 1)
        return true;
    op = (operation){.site = site,
                     .step = STEP_PASS,
                     .order = bide_check_acquire_,
                     .wait = WAIT_UNTIL_LEAST,
                     .expected = before - before % count + count};
    read_word(&op, barrier, COUNT_SIZE, NULL);
    return false;
}

/* ---- Once ---- */

enum { ONCE_BEGUN = 1, ONCE_DONE };

bool once_begin(uintptr_t once, bide_check_site_ *site)
{
    operation op = {.site = site, .step = STEP_ENTER, .wait = WAIT_UNTIL_EQUAL, .expected = 0};
    reference load;
    uint64_t old;
    if (begin_change(&op, once, LOCK_SIZE, LOCK_TRY, &old, &load)) {
        write_word(&op, once, LOCK_SIZE, ONCE_BEGUN, &load);
        return true;
    }
    op = (operation){.site = site,
                     .step = STEP_PASS,
                     .order = bide_check_acquire_,
                     .wait = WAIT_UNTIL_EQUAL,
                     .expected = ONCE_DONE};
    read_word(&op, once, LOCK_SIZE, NULL);
    return false;
}

void once_finish(uintptr_t once, bide_check_site_ *site)
{
    operation op = {.site = site, .step = STEP_FINISH, .order = bide_check_release_};
    write_word(&op, once, LOCK_SIZE, ONCE_DONE, NULL);
}
