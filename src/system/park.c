/*
 * A table of lists of sleepers. The address of a word chooses its list, which words share. A sleeper's record is on its
 * own stack, with a condition variable of its own.
 *
 *     a sleeper    LISTED --a waker takes it out of the list, and signals--> WOKEN
 *                  LISTED --its deadline has come: it takes itself out--> gone
 *
 * The list, and `is_listed` of its sleepers, are guarded by the list's lock.
 *
 * 1. No wake is lost. A waker has changed the word before it locks the list; a sleeper reads the word while it holds the
 *    lock, and enters the list before it releases it. Either the sleeper has the lock first: then the waker finds it in
 *    the list. Or the waker has it first: then its store happens before the sleeper's load by the lock, and the sleeper
 *    finds the new number. So the load is relaxed, and the waker's store may be. (The condition variable's wait
 *    releases the lock in the same step in which it begins to wait.)
 * 2. A waker touches no word: only its address is compared. It touches a sleeper's record under the lock alone. The
 *    sleeper cannot return before it has the lock, so the record stays while a waker holds it, and the signal is sent
 *    before the lock is released.
 * 3. A sleeper whose deadline has come looks once more, under the lock. If it was woken meanwhile, the wake is its own:
 *    it returns 0, because it was counted among those that the waker has woken.
 * 4. A deadline is on the clock of bide_platform.now. Longer spans than a day are slept in days, each of which may end
 *    for no reason: the platform's wait may do so, and no number leaves the range of a time_t of 32 bits.
 * 5. A child of a fork has one thread, which does not sleep. Lists and locks are as the other threads left them, and
 *    are made anew.
 * 6. The wait of a condition variable is a point of cancellation, and a wait by futex is none. A thread that was
 *    cancelled there would leave the lock taken and its record in the list. So cancellation is off meanwhile.
 */
#define _GNU_SOURCE
#include "park.h"

#include "monotonic_condition.h"

#include "bide/errors.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

typedef struct park_sleeper {
    struct park_sleeper *next;
    const void *address;
    pthread_cond_t condition;
    bool is_listed;
} park_sleeper;

typedef struct park_list {
    _Alignas(64) pthread_mutex_t lock; /* lists are used by different threads */
    park_sleeper *first;               /* in the order in which they came */
} park_list;

#define PARK_LIST_                                       \
    {                                                    \
        .lock = PTHREAD_MUTEX_INITIALIZER, .first = NULL \
    }
#define PARK_4_LISTS_  PARK_LIST_, PARK_LIST_, PARK_LIST_, PARK_LIST_
#define PARK_16_LISTS_ PARK_4_LISTS_, PARK_4_LISTS_, PARK_4_LISTS_, PARK_4_LISTS_

#if BIDE_CHECK
static park_list park_lists[] = {PARK_LIST_}; /* words share it in scenarios */
#else
static park_list park_lists[] = {PARK_16_LISTS_, PARK_16_LISTS_, PARK_16_LISTS_, PARK_16_LISTS_};
#endif

enum { PARK_LISTS = sizeof park_lists / sizeof park_lists[0] };

static park_list *park_list_of(const void *address)
{
    uintptr_t number = (uintptr_t)address / sizeof(uint32_t);
    return &park_lists[(number ^ number / PARK_LISTS ^ number / PARK_LISTS / PARK_LISTS) %
                       PARK_LISTS];
}

static void park_enlist(park_list *list, park_sleeper *sleeper)
{
    park_sleeper **at = &list->first;
    while (*at != NULL)
        at = &(*at)->next;
    sleeper->next = NULL;
    sleeper->is_listed = true;
    *at = sleeper;
}

static void park_delist(park_list *list, park_sleeper *sleeper)
{
    park_sleeper **at = &list->first;
    while (*at != sleeper)
        at = &(*at)->next;
    *at = sleeper->next;
    sleeper->is_listed = false;
}

/* Sleeps under the list's lock, a day at most: 4. Whether the time has come. */
static bool park_sleep(park_list *list, park_sleeper *sleeper, uint64_t deadline)
{
    static const uint64_t second = 1000000000, day = 86400 * second;
    if (deadline == BIDE_FOREVER)
        return pthread_cond_wait(&sleeper->condition, &list->lock) == ETIMEDOUT;
    uint64_t now = bide_platform.now();
    uint64_t end = deadline > now && deadline - now > day ? now + day : deadline;
    struct timespec until = {(time_t)(end / second), (long)(end % second)};
    return wait_monotonic_condition(&sleeper->condition, &list->lock, &until) == ETIMEDOUT;
}

int bide_park_wait_(bide_atomic(uint32_t) * word, uint32_t expected, uint64_t deadline)
{
    park_list *list = park_list_of(word);
    park_sleeper sleeper = {.address = word};
    int status = 0;
#if !BIDE_CHECK
    int cancellation; /* a thread that is cancelled here would leave the lock taken: 6 */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation);
#endif
    init_monotonic_condition(&sleeper.condition);
    pthread_mutex_lock(&list->lock);
    /* relaxed: 1. */
    if (bide_atomic_load(word, relaxed) == expected) {
        park_enlist(list, &sleeper);
        bool is_late = park_sleep(list, &sleeper, deadline);
        if (sleeper.is_listed) { /* 3; or for no reason */
            park_delist(list, &sleeper);
            status = is_late && bide_platform.now() >= deadline ? -ETIMEDOUT : 0;
        }
    }
    pthread_mutex_unlock(&list->lock);
    pthread_cond_destroy(&sleeper.condition);
#if !BIDE_CHECK
    pthread_setcancelstate(cancellation, NULL);
#endif
    return status;
}

void bide_park_wake_(bide_atomic(uint32_t) * word, uint32_t count)
{
    park_list *list = park_list_of(word);
    pthread_mutex_lock(&list->lock);
    for (park_sleeper **at = &list->first; *at != NULL && count != 0;) {
        park_sleeper *sleeper = *at;
        if (sleeper->address != word) {
            at = &sleeper->next;
            continue;
        }
        *at = sleeper->next;
        sleeper->is_listed = false;
        pthread_cond_signal(&sleeper->condition); /* under the lock: 2 */
        count--;
    }
    pthread_mutex_unlock(&list->lock);
}

void bide_park_in_child_(void)
{
    static const park_list fresh = PARK_LIST_;
    for (size_t i = 0; i < PARK_LISTS; i++)
        park_lists[i] = fresh;
}
