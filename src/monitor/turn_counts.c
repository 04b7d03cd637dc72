/*
 * Counts of turns, in bounded hash tables with open addressing.
 *
 * A thread's table has room for TURN_COUNTS_MAX tasks. Turns of further tasks go to `rest`, so that the sum of
 * a look is right. If there is no memory for a table, all of the thread's turns go there.
 */
#include "turn_counts.h"

#include "bide/platform.h"

#include <stdlib.h>
#include <string.h>

enum { TURN_COUNTS_ROOM = 2048, TURN_COUNTS_MAX = TURN_COUNTS_ROOM / 4 * 3 };

struct turn_table {
    size_t count;
    turn_count rest;
    turn_count counts[TURN_COUNTS_ROOM];
};

static uint64_t turn_counts_since; /* under bide_observer_lock_ */

/* The task's entry, or a free one. `room` is a power of two, and there is a free entry. */
static turn_count *turn_count_at(turn_count *counts, size_t room, const void *task)
{
    uint64_t hash = (uint64_t)(uintptr_t)task * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(hash >> 32) & (room - 1);
    while (counts[at].task != NULL && counts[at].task != task)
        at = (at + 1) & (room - 1);
    return &counts[at];
}

/* ---- Counting: the thread's record is locked ---- */

static turn_count *turn_table_count_of(turn_table *table, const void *task)
{
    turn_count *count = turn_count_at(table->counts, TURN_COUNTS_ROOM, task);
    if (count->task == NULL) {
        if (table->count == TURN_COUNTS_MAX)
            return &table->rest;
        table->count++;
        count->task = task;
    }
    return count;
}

/* NULL: there is no memory. */
static turn_count *turn_count_of_thread(observed_thread *thread, const void *task)
{
    if (thread->counted == NULL)
        thread->counted = calloc(1, sizeof *thread->counted);
    return thread->counted != NULL ? turn_table_count_of(thread->counted, task) : NULL;
}

void bide_turn_counts_begin_(observed_thread *thread, const observed_turn *turn)
{
    turn_count *count = turn_count_of_thread(thread, turn->task);
    thread->counted_until = turn->began;
    if (count != NULL) {
        count->runs++;
        count->wakes += turn->waited_for != NULL;
    }
}

void bide_turn_counts_end_(observed_thread *thread, const observed_turn *turn, uint64_t now)
{
    turn_count *count = turn_count_of_thread(thread, turn->task);
    if (count != NULL && now > thread->counted_until)
        count->busy += now - thread->counted_until;
    thread->counted_until = now;
}

/* ---- Taking ---- */

void bide_turn_counts_clear_(void)
{
    for (observed_thread *thread = bide_observer_threads_(); thread != NULL;
         thread = thread->next) {
        pthread_mutex_lock(&thread->lock);
        free(thread->counted);
        thread->counted = NULL;
        thread->counted_until = bide_platform.now();
        pthread_mutex_unlock(&thread->lock);
    }
    turn_counts_since = bide_platform.now();
}

/* Doubles the table until it has room for `more` tasks. False: there is no memory. */
static bool turn_sums_reserve(turn_sums *sums, size_t used, size_t more)
{
    size_t room = sums->room != 0 ? sums->room : TURN_COUNTS_ROOM;
    while (room / 4 * 3 < used + more)
        room *= 2;
    if (room == sums->room)
        return true;
    turn_count *counts = calloc(room, sizeof *counts);
    if (counts == NULL)
        return false;
    for (size_t i = 0; i < sums->room; i++) {
        if (sums->counts[i].task != NULL)
            *turn_count_at(counts, room, sums->counts[i].task) = sums->counts[i];
    }
    free(sums->counts);
    sums->counts = counts;
    sums->room = room;
    return true;
}

void bide_turn_counts_add_(turn_count *to, const turn_count *more)
{
    to->runs += more->runs;
    to->wakes += more->wakes;
    to->busy += more->busy;
}

/* Returns how many tasks are new. Without room, only all runs are counted. */
static size_t turn_sums_add(turn_sums *sums, const turn_table *table, bool has_room)
{
    size_t added = 0;
    sums->runs += table->rest.runs;
    for (size_t i = 0; i < TURN_COUNTS_ROOM; i++) {
        const turn_count *more = &table->counts[i];
        if (more->task == NULL)
            continue;
        sums->runs += more->runs;
        if (!has_room)
            continue;
        turn_count *to = turn_count_at(sums->counts, sums->room, more->task);
        added += to->task == NULL;
        to->task = more->task;
        bide_turn_counts_add_(to, more);
    }
    return added;
}

/* The thread's table, which is then the caller's; NULL: it has counted nothing. */
static turn_table *turn_table_take(observed_thread *thread)
{
    pthread_mutex_lock(&thread->lock);
    if (thread->depth != 0)
        bide_turn_counts_end_(thread, &thread->turns[0], bide_platform.now());
    turn_table *table = thread->counted;
    thread->counted = NULL;
    pthread_mutex_unlock(&thread->lock);
    return table;
}

void bide_turn_counts_take_(turn_sums *sums)
{
    size_t used = 0;
    pthread_mutex_lock(&bide_observer_lock_);
    observed_thread *thread = bide_observer_threads_();
    uint64_t now = bide_platform.now();
    sums->period = now > turn_counts_since ? now - turn_counts_since : 1;
    turn_counts_since = now;
    pthread_mutex_unlock(&bide_observer_lock_);
    for (; thread != NULL; thread = thread->next) { /* records are never freed */
        turn_table *table = turn_table_take(thread);
        if (table == NULL)
            continue;
        used += turn_sums_add(sums, table, turn_sums_reserve(sums, used, table->count));
        free(table);
    }
}

const turn_count *bide_turn_counts_of_(const turn_sums *sums, const void *task)
{
    if (sums->room == 0)
        return NULL;
    const turn_count *count = turn_count_at(sums->counts, sums->room, task);
    return count->task != NULL ? count : NULL;
}

void bide_turn_counts_free_(turn_sums *sums)
{
    free(sums->counts);
    memset(sums, 0, sizeof *sums);
}
