/*
 * Code as it is: the locks, threads and memory of POSIX and C11 by their own names. Each scenario has one finding, which
 * is expected with its words, or none, with the outcomes of all executions.
 */
#define _GNU_SOURCE
#include "testing.h"

#include "bide/check.h"

#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#else
#define malloc_usable_size(block) ((void)(block), (size_t)5) /* (its row is left out) */
#endif
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>

typedef struct state {
    pthread_mutex_t mutex, second;
    pthread_rwlock_t rw;
    pthread_spinlock_t spin;
    sem_t semaphore;
    pthread_barrier_t barrier;
    pthread_once_t once;
    pthread_key_t key;
    mtx_t c11;
    cnd_t condition;
    pthread_cond_t posix_condition;
    int value, other, count;
    atomic_int word;
    int *block;
} state;

#define STATE state *s = p

/* In the past, whatever the clock. */
static const struct timespec long_ago = {1, 0};

/* ---- Read-write locks ---- */

static void write_locked(void *p)
{
    STATE;
    pthread_rwlock_wrlock(&s->rw);
    s->value++;
    pthread_rwlock_unlock(&s->rw);
}

static void read_locked(void *p)
{
    STATE;
    pthread_rwlock_rdlock(&s->rw);
    bide_check_note("read %d", s->value);
    pthread_rwlock_unlock(&s->rw);
}

static void write_read_locked(void *p)
{
    STATE;
    pthread_rwlock_rdlock(&s->rw);
    s->value++;
    pthread_rwlock_unlock(&s->rw);
}

static void try_to_write(void *p)
{
    STATE;
    int error = pthread_rwlock_trywrlock(&s->rw);
    bide_check_note("%s", error == 0 ? "written" : error == EBUSY ? "busy" : "wrong");
    if (error == 0) {
        s->value++;
        pthread_rwlock_unlock(&s->rw);
    }
}

static void read_twice(void *p)
{
    STATE;
    pthread_rwlock_rdlock(&s->rw);
    pthread_rwlock_rdlock(&s->rw);
    bide_check_note("to write: %d", pthread_rwlock_wrlock(&s->rw) == EDEADLK);
    pthread_rwlock_unlock(&s->rw);
    bide_check_note("read %d", s->value);
    pthread_rwlock_unlock(&s->rw);
}

/* Two readers have it at once: each sees that the other has come. */
static void meet_reading(void *p)
{
    STATE;
    pthread_rwlock_rdlock(&s->rw);
    atomic_fetch_add(&s->word, 1);
    while (atomic_load(&s->word) != 2)
        bide_cpu_relax();
    pthread_rwlock_unlock(&s->rw);
}

static void meet_writing(void *p)
{
    STATE;
    pthread_rwlock_wrlock(&s->rw);
    atomic_fetch_add(&s->word, 1);
    while (atomic_load(&s->word) != 2)
        bide_cpu_relax();
    pthread_rwlock_unlock(&s->rw);
}

/* ---- Mutexes ---- */

static void set_recursive(void *p)
{
    STATE;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&s->mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

static void set_error_check(void *p)
{
    STATE;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&s->mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

static void lock_twice(void *p)
{
    STATE;
    pthread_mutex_lock(&s->mutex);
    pthread_mutex_lock(&s->mutex);
    s->value++;
    pthread_mutex_unlock(&s->mutex);
    s->value++;
    pthread_mutex_unlock(&s->mutex);
}

static void lock_checked(void *p)
{
    STATE;
    bide_check_assert(pthread_mutex_unlock(&s->mutex) == EPERM);
    bide_check_assert(pthread_mutex_lock(&s->mutex) == 0);
    bide_check_assert(pthread_mutex_lock(&s->mutex) == EDEADLK);
    s->value++;
    bide_check_assert(pthread_mutex_unlock(&s->mutex) == 0);
}

static void lock_in_time(void *p)
{
    STATE;
    int error = pthread_mutex_timedlock(&s->mutex, &long_ago);
    bide_check_note("%s", error == 0 ? "locked" : error == ETIMEDOUT ? "late" : "wrong");
    if (error == 0) {
        s->value++;
        pthread_mutex_unlock(&s->mutex);
    }
}

static void lock_and_wait_for_ever(void *p)
{
    STATE;
    pthread_mutex_lock(&s->mutex);
    while (atomic_load(&s->word) == 0)
        bide_cpu_relax();
    pthread_mutex_unlock(&s->mutex);
}

static void lock_in_time_and_tell(void *p)
{
    STATE;
    if (pthread_mutex_timedlock(&s->mutex, &long_ago) == 0)
        pthread_mutex_unlock(&s->mutex);
    atomic_store(&s->word, 1);
}

static void unlock_only(void *p)
{
    STATE;
    pthread_mutex_unlock(&s->mutex);
}

static void unlock_anothers(void *p)
{
    STATE;
    if (atomic_load(&s->word) == 1)
        pthread_mutex_unlock(&s->mutex);
}

static void lock_for_another(void *p)
{
    STATE;
    pthread_mutex_lock(&s->mutex);
    atomic_store(&s->word, 1);
    while (atomic_load(&s->word) == 1)
        bide_cpu_relax();
    pthread_mutex_unlock(&s->mutex);
}

static void wait_without_the_mutex(void *p)
{
    STATE;
    pthread_cond_wait(&s->posix_condition, &s->mutex);
}

static void be_told_that_it_is_not_held(void *p)
{
    STATE;
    bide_check_assert(pthread_cond_wait(&s->posix_condition, &s->mutex) == EPERM);
    bide_check_assert(pthread_cond_timedwait(&s->posix_condition, &s->mutex, &long_ago) == EPERM);
    pthread_mutex_lock(&s->mutex); /* it is free */
    pthread_mutex_unlock(&s->mutex);
}

static void lock_only(void *p)
{
    STATE;
    pthread_mutex_lock(&s->mutex);
}

static void lock_and_destroy(void *p)
{
    STATE;
    pthread_mutex_lock(&s->mutex);
    pthread_mutex_destroy(&s->mutex);
    pthread_mutex_unlock(&s->mutex);
}

static void count_locked(void *p)
{
    STATE;
    pthread_mutex_lock(&s->mutex);
    s->value++;
    pthread_mutex_unlock(&s->mutex);
}

/* ---- Spin locks, C11 ---- */

static void set_spin(void *p)
{
    STATE;
    pthread_spin_init(&s->spin, PTHREAD_PROCESS_PRIVATE);
}

static void count_spinning(void *p)
{
    STATE;
    pthread_spin_lock(&s->spin);
    s->value++;
    pthread_spin_unlock(&s->spin);
}

static void set_c11(void *p)
{
    STATE;
    mtx_init(&s->c11, mtx_plain | mtx_recursive);
    cnd_init(&s->condition);
}

static void count_c11(void *p)
{
    STATE;
    mtx_lock(&s->c11);
    bide_check_assert(mtx_trylock(&s->c11) == thrd_success); /* it is recursive */
    s->value++;
    mtx_unlock(&s->c11);
    mtx_unlock(&s->c11);
}

static void wait_c11(void *p)
{
    STATE;
    mtx_lock(&s->c11);
    while (s->value == 0)
        cnd_wait(&s->condition, &s->c11);
    mtx_unlock(&s->c11);
}

static void signal_c11(void *p)
{
    STATE;
    mtx_lock(&s->c11);
    s->value = 1;
    cnd_signal(&s->condition);
    mtx_unlock(&s->c11);
}

static void signal_too_early(void *p)
{
    STATE;
    cnd_signal(&s->condition);
    mtx_lock(&s->c11);
    s->value = 1;
    mtx_unlock(&s->c11);
}

static int add_one(void *p)
{
    STATE;
    mtx_lock(&s->c11);
    s->value++;
    mtx_unlock(&s->c11);
    return -7;
}

static void start_c11(void *p)
{
    thrd_t one, two;
    int results[2] = {0};
    bide_check_assert(thrd_create(&one, add_one, p) == thrd_success);
    bide_check_assert(thrd_create(&two, add_one, p) == thrd_success);
    thrd_join(one, &results[0]);
    thrd_join(two, &results[1]);
    bide_check_assert(results[0] == -7 && results[1] == -7);
}

/* ---- Semaphores ---- */

static void set_semaphore(void *p)
{
    STATE;
    sem_init(&s->semaphore, 0, 1);
}

static void set_semaphore_of_2(void *p)
{
    STATE;
    sem_init(&s->semaphore, 0, 2);
}

static void count_with_semaphore(void *p)
{
    STATE;
    sem_wait(&s->semaphore);
    s->value++;
    sem_post(&s->semaphore);
}

static void give(void *p)
{
    STATE;
    s->value = 5;
    sem_post(&s->semaphore);
}

static void try_to_take(void *p)
{
    STATE;
    int result = sem_trywait(&s->semaphore);
    if (result == 0)
        bide_check_note("took %d", s->value);
    else
        bide_check_note("%s", errno == EAGAIN ? "none" : "wrong");
}

static void take_in_time(void *p)
{
    STATE;
    int result = sem_timedwait(&s->semaphore, &long_ago);
    bide_check_note("%s", result == 0 ? "took" : errno == ETIMEDOUT ? "late" : "wrong");
}

static void take_only(void *p)
{
    STATE;
    sem_wait(&s->semaphore);
}

/* ---- Barriers, once ---- */

static void set_barrier(void *p)
{
    STATE;
    pthread_barrier_init(&s->barrier, NULL, 2);
}

static int *own_part(state *s)
{
    return bide_check_thread() == 1 ? &s->value : &s->other;
}

/* Each writes its part, and reads the other's in the next phase. */
static void two_phases(void *p)
{
    STATE;
    *own_part(s) = 1;
    int last = pthread_barrier_wait(&s->barrier) == PTHREAD_BARRIER_SERIAL_THREAD;
    bide_check_assert(s->value == 1 && s->other == 1);
    last += 2 * (pthread_barrier_wait(&s->barrier) == PTHREAD_BARRIER_SERIAL_THREAD);
    *own_part(s) = 10 + last;
}

static void each_phase_has_one_last(void *p)
{
    STATE;
    bide_check_assert(s->value - 10 + s->other - 10 == 3);
}

static void arrive_once(void *p)
{
    STATE;
    pthread_barrier_wait(&s->barrier);
}

static void pass_without_the_barrier(void *p)
{
    STATE;
    *own_part(s) = 1;
    bide_check_note("%d", s->value + s->other);
}

static state *initialised;

static void initialise(void)
{
    initialised->value++;
}

static void set_initialised(void *p)
{
    initialised = p;
}

static void use_once(void *p)
{
    STATE;
    pthread_once(&s->once, initialise);
    bide_check_assert(s->value == 1);
}

static void *once_again(void *p)
{
    use_once(p);
    return NULL;
}

static void initialise_within(void)
{
    pthread_once(&initialised->once, initialise);
}

static void use_once_within(void *p)
{
    STATE;
    pthread_once(&s->once, initialise_within);
}

/* ---- Threads ---- */

static void *exit_early(void *p)
{
    pthread_exit((char *)p + 1);
}

static void join_who_exited(void *p)
{
    pthread_t thread;
    void *result = NULL;
    pthread_create(&thread, NULL, exit_early, p);
    pthread_join(thread, &result);
    bide_check_assert(result == (char *)p + 1);
}

static void exit_itself(void *p)
{
    STATE;
    s->value = 1;
    pthread_exit(NULL);
}

static void know_oneself(void *p)
{
    pthread_t thread;
    pthread_create(&thread, NULL, once_again, p);
    bide_check_assert(!pthread_equal(thread, pthread_self()));
    pthread_join(thread, NULL);
}

static _Thread_local int own_number = 7;

static void change_own_number(void *p)
{
    STATE;
    bide_check_assert(own_number == 7);
    own_number += (int)bide_check_thread();
    atomic_fetch_add(&s->word, 1);
    bide_check_assert(own_number == 7 + (int)bide_check_thread());
}

static void destroy_value(void *value)
{
    state *s = (state *)((uintptr_t)value & ~(uintptr_t)1);
    atomic_fetch_add(&s->word, 1);
}

static void set_key(void *p)
{
    STATE;
    bide_check_assert(pthread_key_create(&s->key, destroy_value) == 0);
}

static void delete_no_key(void *p)
{
    (void)p;
    bide_check_assert(pthread_key_delete(1000) == EINVAL);
}

static void keep_specific_value(void *p)
{
    STATE;
    bide_check_assert(pthread_getspecific(s->key) == NULL);
    pthread_setspecific(s->key, p);
    bide_check_assert(pthread_getspecific(s->key) == p);
}

static void both_values_ended(void *p)
{
    STATE;
    bide_check_assert(atomic_load(&s->word) == 2);
}

static void sleep_until_told(void *p)
{
    STATE;
    while (atomic_load(&s->word) == 0)
        usleep(1000);
}

static void tell(void *p)
{
    STATE;
    atomic_store(&s->word, 1);
}

static void try_to_join(void *p)
{
    void *result;
    (void)p;
    pthread_tryjoin_np(pthread_self(), &result);
}

static void kill_itself(void *p)
{
    (void)p;
    pthread_kill(pthread_self(), SIGUSR1);
}

/* ---- Memory ---- */

/* A copy that the compiler cannot follow. */
static void *copy_of(void *pointer)
{
    __asm__ volatile("" : "+r"(pointer));
    return pointer;
}

static void use_freed(void *p)
{
    STATE;
    int *block = malloc(sizeof *block), *copy = copy_of(block);
    *block = 1;
    free(block);
    s->value = *copy;
}

static void free_twice(void *p)
{
    void *block = malloc(8), *copy = copy_of(block);
    (void)p;
    free(block);
    free(copy);
}

static void never_free(void *p)
{
    STATE;
    s->block = calloc(3, 5);
}

static void read_beyond(void *p)
{
    STATE;
    char *block = malloc(5), *copy = copy_of(block);
    s->value = copy[5];
    free(block);
}

static void write_before(void *p)
{
    char *block = malloc(64), *copy = copy_of(block);
    (void)p;
    copy[-1] = 1;
    free(block);
}

static void use_what_has_moved(void *p)
{
    STATE;
    int *block = malloc(8), *copy = copy_of(block);
    *block = 3;
    int *larger = realloc(block, 16);
    bide_check_assert(larger != NULL && *larger == 3);
    s->value = *copy;
    free(larger);
}

static void use_all_of_it(void *p)
{
    STATE;
    char *text = strdup("five");
    int *zeros = calloc(4, sizeof *zeros);
    void *aligned = NULL, *more = aligned_alloc(128, 256);
    bide_check_assert(zeros[0] == 0 && zeros[3] == 0);
    bide_check_assert(posix_memalign(&aligned, 256, 10) == 0 && (uintptr_t)aligned % 256 == 0);
    bide_check_assert((uintptr_t)more % 128 == 0 && strlen(text) == 4);
    zeros[3] = 4;
    zeros = realloc(zeros, 8 * sizeof *zeros);
    *own_part(s) = zeros[3];
    zeros = realloc(zeros, sizeof *zeros);
    free(text);
    free(zeros);
    free(aligned);
    free(more);
    free(NULL);
}

/* ---- Memory that was never written ---- */

static void read_unwritten(void *p)
{
    STATE;
    int *block = malloc(3 * sizeof *block), *copy = copy_of(block);
    block[0] = block[2] = 1;
    s->value = copy[1];
    free(block);
}

static void read_unwritten_byte(void *p)
{
    STATE;
    char *block = malloc(4), *copy = copy_of(block);
    block[0] = block[1] = block[2] = 0;
    s->value = copy[3];
    free(block);
}

static void load_unwritten(void *p)
{
    STATE;
    atomic_int *block = malloc(sizeof *block);
    s->value = atomic_load(block);
    free(block);
}

static void add_to_unwritten(void *p)
{
    _Atomic(uint8_t) *block = malloc(2);
    (void)p;
    atomic_fetch_add(&block[1], 1);
    free(block);
}

/* The store of the other thread is not seen, or it is. */
static _Atomic(atomic_int *) shared_block;

static void share_unwritten(void *p)
{
    (void)p;
    atomic_init(&shared_block, malloc(sizeof(atomic_int)));
}

static void store_in_shared(void *p)
{
    (void)p;
    atomic_store_explicit(atomic_load(&shared_block), 1, memory_order_relaxed);
}

static void load_from_shared(void *p)
{
    STATE;
    s->value = atomic_load_explicit(atomic_load(&shared_block), memory_order_relaxed);
}

static void free_shared(void *p)
{
    (void)p;
    free(atomic_load(&shared_block));
}

static void read_after_growing(void *p)
{
    STATE;
    int *block = malloc(8);
    block[0] = 1;
    block = realloc(block, 64);
    int *copy = copy_of(block);
    bide_check_assert(copy[0] == 1);
    s->value = copy[1];
    free(block);
}

typedef struct padded {
    char letter;
    int number;
} padded;

/* Written by functions that the checker does not see, in part, or copied as a whole. */
static void read_written(void *p)
{
    STATE;
    unsigned char *text = malloc(32), *bytes = copy_of(text);
    memset(text, 0xa5, 16);
    memcpy(text + 16, "0123456789abcde", 16);
    unsigned sum = 0;
    for (unsigned i = 0; i < 32; i++)
        sum += bytes[i];
    *own_part(s) = (int)sum;
    padded *all = malloc(2 * sizeof *all), *others = copy_of(all);
    all[0].letter = 'a';
    all[0].number = 1;
    all[1] = others[0];
    bide_check_assert(others[1].letter == 'a' && others[1].number == 1);
    atomic_int *number = malloc(sizeof *number);
    atomic_store(number, 3);
    bide_check_assert(atomic_load(number) == 3 && *(int *)copy_of(number) == 3);
    uint16_t *halves = malloc(sizeof *halves * 2);
    halves[0] = halves[1] = 7;
    bide_check_assert(*(uint32_t *)copy_of(halves) == 0x70007);
    free(halves);
    free(number);
    free(all);
    free(text);
}

/* A block has no slack. */
static void write_in_slack(void *p)
{
    char *block = malloc(5), *copy = copy_of(block);
    (void)p;
    size_t size = malloc_usable_size(block);
    bide_check_assert(size == 5);
    copy[size] = 1;
    free(block);
}

typedef struct node {
    struct node *next;
} node;

static _Atomic(node *) top;

static void empty_stack(void *p)
{
    (void)p;
    atomic_init(&top, NULL);
}

static void push_node(void *p)
{
    node *n = malloc(sizeof *n);
    (void)p;
    n->next = atomic_load(&top);
    while (!atomic_compare_exchange_weak(&top, &n->next, n))
        ;
}

static void free_stack(void *p)
{
    STATE;
    for (node *n = atomic_load(&top), *next; n != NULL; n = next) {
        next = n->next;
        free(n);
        s->count++;
    }
    bide_check_assert(s->count == 2);
}

/* ---- The table ---- */

typedef struct row {
    const char *name;
    bide_check_scenario scenario;
    bide_check_finding finding;
    const char *words;    /* of the finding */
    const char *outcomes; /* of bide_check_note(), each once, sorted */
    bool needs_heap;
} row;

static const row rows[] = {
    {.name = "writers exclude each other", .scenario = {.threads = {write_locked, write_locked}}},
    {.name = "a reader sees all of a write",
     .scenario = {.threads = {write_locked, read_locked}},
     .outcomes = "read 0|read 1"},
    {.name = "readers do not exclude each other",
     .scenario = {.threads = {write_read_locked, write_read_locked}},
     .finding = BIDE_CHECK_RACE,
     .words = "while thread"},
    {.name = "readers meet", .scenario = {.threads = {meet_reading, meet_reading}}},
    {.name = "writers do not",
     .scenario = {.threads = {meet_writing, meet_writing}},
     .finding = BIDE_CHECK_LIVELOCK,
     .words = "spins for ever"},
    {.name = "a try finds a reader, or none",
     .scenario = {.threads = {try_to_write, read_locked}},
     .outcomes = "read 0 busy|read 0 written|written read 1"},
    {.name = "a lock that is read twice",
     .scenario = {.threads = {read_twice, write_locked}},
     .outcomes = "to write: 1 read 0|to write: 1 read 1"},
    {.name = "a recursive mutex",
     .scenario = {.setup = set_recursive, .threads = {lock_twice, lock_twice}}},
    {.name = "a mutex is not recursive",
     .scenario = {.threads = {lock_twice}},
     .finding = BIDE_CHECK_DEADLOCK,
     .words = "waits"},
    {.name = "a mutex that checks",
     .scenario = {.setup = set_error_check, .threads = {lock_checked, lock_checked}}},
    {.name = "a lock with a deadline",
     .scenario = {.threads = {lock_in_time, count_locked}},
     .outcomes = "late|locked"},
    {.name = "a deadline ends a wait",
     .scenario = {.threads = {lock_and_wait_for_ever, lock_in_time_and_tell}}},
    {.name = "an unlock of what is free",
     .scenario = {.threads = {unlock_only}},
     .finding = BIDE_CHECK_MISUSE,
     .words = "thread 1 unlocks byte 0 of the state, which it does not hold, at "},
    {.name = "an unlock of what another holds",
     .scenario = {.threads = {lock_for_another, unlock_anothers}},
     .finding = BIDE_CHECK_MISUSE,
     .words = "thread 2 unlocks byte 0 of the state, which it does not hold"},
    {.name = "a thread ends with a lock",
     .scenario = {.threads = {lock_only}},
     .finding = BIDE_CHECK_MISUSE,
     .words = "thread 1 ends while it holds the lock at byte 0 of the state"},
    {.name = "a wait with a mutex that is not held",
     .scenario = {.threads = {wait_without_the_mutex}},
     .finding = BIDE_CHECK_MISUSE,
     .words = "thread 1 waits with byte 0 of the state, which it does not hold, at "},
    {.name = "the same, of a mutex that checks",
     .scenario = {.setup = set_error_check, .threads = {be_told_that_it_is_not_held}}},
    {.name = "the same, of a recursive mutex",
     .scenario = {.setup = set_recursive, .threads = {be_told_that_it_is_not_held}}},
    {.name = "a mutex that is locked is destroyed",
     .scenario = {.threads = {lock_and_destroy}},
     .finding = BIDE_CHECK_MISUSE,
     .words = "destroys byte 0 of the state, which is locked"},
    {.name = "spin locks",
     .scenario = {.setup = set_spin, .threads = {count_spinning, count_spinning, count_spinning}}},
    {.name = "a mutex of C11", .scenario = {.setup = set_c11, .threads = {count_c11, count_c11}}},
    {.name = "a condition of C11",
     .scenario = {.setup = set_c11, .threads = {wait_c11, signal_c11}}},
    {.name = "a signal that comes too early",
     .scenario = {.setup = set_c11, .threads = {wait_c11, signal_too_early}},
     .finding = BIDE_CHECK_DEADLOCK,
     .words = "wait"},
    {.name = "threads of C11", .scenario = {.setup = set_c11, .threads = {start_c11}}},
    {.name = "a semaphore of 1 is a lock",
     .scenario = {.setup = set_semaphore, .threads = {count_with_semaphore, count_with_semaphore}}},
    {.name = "a semaphore of 2 is none",
     .scenario = {.setup = set_semaphore_of_2,
                  .threads = {count_with_semaphore, count_with_semaphore}},
     .finding = BIDE_CHECK_RACE,
     .words = "while thread"},
    {.name = "who takes sees what was before the giving",
     .scenario = {.threads = {give, try_to_take}},
     .outcomes = "none|took 5"},
    {.name = "a take with a deadline",
     .scenario = {.threads = {give, take_in_time}},
     .outcomes = "late|took"},
    {.name = "no one gives",
     .scenario = {.threads = {take_only}},
     .finding = BIDE_CHECK_DEADLOCK,
     .words = "waits"},
    {.name = "two phases",
     .scenario = {.setup = set_barrier,
                  .threads = {two_phases, two_phases},
                  .finish = each_phase_has_one_last}},
    {.name = "phases without a barrier",
     .scenario = {.threads = {pass_without_the_barrier, pass_without_the_barrier}},
     .finding = BIDE_CHECK_RACE,
     .words = "while thread"},
    {.name = "one does not arrive",
     .scenario = {.setup = set_barrier, .threads = {arrive_once}},
     .finding = BIDE_CHECK_DEADLOCK,
     .words = "waits"},
    {.name = "once",
     .scenario = {.setup = set_initialised, .threads = {use_once, use_once, use_once}}},
    {.name = "once within itself",
     .scenario = {.setup = set_initialised, .threads = {use_once_within}},
     .finding = BIDE_CHECK_DEADLOCK,
     .words = "waits"},
    {.name = "a thread exits", .scenario = {.threads = {join_who_exited}}},
    {.name = "a thread of the scenario exits", .scenario = {.threads = {exit_itself, NULL}}},
    {.name = "a thread knows itself",
     .scenario = {.setup = set_initialised, .threads = {know_oneself}}},
    {.name = "thread-local variables",
     .scenario = {.threads = {change_own_number, change_own_number}}},
    {.name = "thread-specific values",
     .scenario = {.setup = set_key,
                  .threads = {keep_specific_value, keep_specific_value},
                  .finish = both_values_ended}},
    {.name = "a key that is none", .scenario = {.threads = {delete_no_key}}},
    {.name = "a sleep is a pause", .scenario = {.threads = {sleep_until_told, tell}}},
    {.name = "what has no model",
     .scenario = {.threads = {kill_itself}},
     .finding = BIDE_CHECK_BAD_SCENARIO,
     .words = "the checker has no model of pthread_kill, called at "},
    {.name = "nor has this",
     .scenario = {.threads = {try_to_join}},
     .finding = BIDE_CHECK_BAD_SCENARIO,
     .words = "the checker has no model of pthread_tryjoin_np, called at "},
    {.name = "use after free",
     .scenario = {.threads = {use_freed}},
     .finding = BIDE_CHECK_USE_AFTER_FREE,
     .words = "byte 0 of a block of 4",
     .needs_heap = true},
    {.name = "double free",
     .scenario = {.threads = {free_twice}},
     .finding = BIDE_CHECK_DOUBLE_FREE,
     .words = "frees byte 0 of a block of 8",
     .needs_heap = true},
    {.name = "leak",
     .scenario = {.threads = {never_free}},
     .finding = BIDE_CHECK_LEAK,
     .words = "15 bytes in 1 blocks",
     .needs_heap = true},
    {.name = "a read beyond a block",
     .scenario = {.threads = {read_beyond}},
     .finding = BIDE_CHECK_OUT_OF_BOUNDS,
     .words = "reads byte 5 of a block of 5 bytes",
     .needs_heap = true},
    {.name = "a write before the first block",
     .scenario = {.threads = {write_before}},
     .finding = BIDE_CHECK_OUT_OF_BOUNDS,
     .words = "writes ",
     .needs_heap = true},
    {.name = "use after realloc",
     .scenario = {.threads = {use_what_has_moved}},
     .finding = BIDE_CHECK_USE_AFTER_FREE,
     .words = "byte 0 of a block of 8",
     .needs_heap = true},
    {.name = "all of it used well",
     .scenario = {.threads = {use_all_of_it, use_all_of_it}},
     .needs_heap = true},
    {.name = "a read of what was never written",
     .scenario = {.threads = {read_unwritten}},
     .finding = BIDE_CHECK_UNINITIALISED,
     .words = "thread 1 reads byte 4 of a block of 12, to which nothing was written, at ",
     .needs_heap = true},
    {.name = "unless that is allowed",
     .scenario = {.threads = {read_unwritten}, .may_read_uninitialised = true},
     .needs_heap = true},
    {.name = "a read of one byte",
     .scenario = {.threads = {read_unwritten_byte}},
     .finding = BIDE_CHECK_UNINITIALISED,
     .words = "thread 1 reads byte 3 of a block of 4, to which nothing was written, at ",
     .needs_heap = true},
    {.name = "an atomic load",
     .scenario = {.threads = {load_unwritten}},
     .finding = BIDE_CHECK_UNINITIALISED,
     .words = "thread 1 atomically reads byte 0 of a block of 4, to which nothing was written, at ",
     .needs_heap = true},
    {.name = "a read-modify-write",
     .scenario = {.threads = {add_to_unwritten}},
     .finding = BIDE_CHECK_UNINITIALISED,
     .words = "thread 1 atomically reads byte 1 of a block of 2, to which nothing was written, at ",
     .needs_heap = true},
    {.name = "a load that need not see the store",
     .scenario = {.setup = share_unwritten,
                  .threads = {store_in_shared, load_from_shared},
                  .finish = free_shared},
     .finding = BIDE_CHECK_UNINITIALISED,
     .words = "thread 2 atomically reads byte 0 of a block of 4, to which nothing was written, at ",
     .needs_heap = true},
    {.name = "one that sees it",
     .scenario = {.setup = share_unwritten, .threads = {store_in_shared}, .finish = free_shared},
     .needs_heap = true},
    {.name = "a block that has grown",
     .scenario = {.threads = {read_after_growing}},
     .finding = BIDE_CHECK_UNINITIALISED,
     .words = "reads byte 4 of a block of 64, to which nothing was written",
     .needs_heap = true},
    {.name = "reads of what was written",
     .scenario = {.threads = {read_written, read_written}},
     .needs_heap = true},
    {.name = "a block has no slack",
     .scenario = {.threads = {write_in_slack}},
     .finding = BIDE_CHECK_OUT_OF_BOUNDS,
     .words = "writes byte 5 of a block of 5 bytes",
     .needs_heap = true},
    {.name = "a stack of nodes",
     .scenario = {.setup = empty_stack, .threads = {push_node, push_node}, .finish = free_stack},
     .needs_heap = true},
};

extern void __asan_init(void) __attribute__((weak));

static bool malloc_is_checked(void)
{
#ifdef __GLIBC__
    return true;
#else
    return false;
#endif
}

static void expect_outcomes(const row *r, const bide_check_result *result)
{
    char all[256] = "";
    for (size_t i = 0; i < result->outcomes_count; i++) {
        if (i != 0)
            strcat(all, "|");
        strcat(all, result->outcomes[i]);
    }
    if (strcmp(all, r->outcomes != NULL ? r->outcomes : "") != 0)
        fail_msg("%s: the outcomes are \"%s\"", r->name, all);
}

/* AddressSanitizer's runtime calls the functions that the checker would replace. */
static void each_row_has_its_finding(void **unused)
{
    (void)unused;
    if (__asan_init != NULL)
        skip();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        bide_check_scenario scenario = r->scenario;
        bide_check_result result;
        if (r->needs_heap && !malloc_is_checked())
            continue;
        scenario.name = r->name;
        scenario.size = sizeof(state);
        if (bide_check_explore(&scenario, &result) != r->finding)
            fail_msg("%s: found %s: %s\n%s", r->name, bide_check_finding_name(result.finding),
                     result.message != NULL ? result.message : "",
                     result.trace != NULL ? result.trace : "");
        if (r->words != NULL && strstr(result.message, r->words) == NULL)
            fail_msg("%s: the message is \"%s\"", r->name, result.message);
        if (r->finding == BIDE_CHECK_NOTHING) {
            assert_true(result.executions != 0 && !result.is_unfinished);
            expect_outcomes(r, &result);
        }
        bide_check_result_free(&result);
    }
}

/* Outside of a scenario the functions are libc's. */

static void *lock_outside(void *p)
{
    STATE;
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&s->mutex);
        s->value++;
        pthread_mutex_unlock(&s->mutex);
    }
    return NULL;
}

static void outside_of_a_scenario_they_are_libcs(void **unused)
{
    (void)unused;
    state *s = calloc(1, sizeof *s);
    pthread_t threads[2];
    pthread_mutex_init(&s->mutex, NULL);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, lock_outside, s), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(s->value, 2000);
    assert_int_equal(pthread_mutex_destroy(&s->mutex), 0);
    s = realloc(s, 2 * sizeof *s);
    assert_non_null(s);
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_has_its_finding),
        cmocka_unit_test(outside_of_a_scenario_they_are_libcs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
