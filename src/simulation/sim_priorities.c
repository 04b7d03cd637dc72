/*
 * Probabilistic concurrency testing (PCT), a strategy of exploration. One thread does all of it.
 *
 * Each task has a random priority, and of those that are ready the one with the highest runs. At
 * depth - 1 random turns the task whose turn it would be gets a priority below those of all that had no such
 * change; which of two changes gives the lower one is random too. A failure of
 * depth d is one that happens whenever d - 1 certain turns are in a certain order, together with the order
 * of the tasks' beginnings. In a run of n tasks and k turns a seed finds it with a probability of at least
 * 1 / (n * k^(d - 1)): the late task is lowest with 1 / n, and each of the d - 1 changes is at the right turn
 * with 1 / k. Here k is `length`, if that is at least the number of turns; a length that is drawn, of 11,
 * costs a factor of up to 11 * 2^(d - 1).
 *
 * What limits that: only the oldest OLDEST of the ready ones compete; and a task that has had FAIR turns in a
 * row while others were ready is lowered, because otherwise one that waits by yielding never lets another run.
 *
 * Why a seed gives the same run everywhere, although tasks are found by their addresses:
 * 1. A task is a root, or a branch of a scope, with the number that it gets when it is posted for its
 *    first turn; so a later task at the same address has a number of its own. A branch of a when_all has its
 *    number in that, below the number of its owner.
 * 2. All other frames, such as those of blocking calls, are told by their code, which is a constant. Each code
 *    has a number from when it is first seen.
 * 3. Addresses are compared for equality only. A priority is a hash of the seed and those numbers.
 *
 * Source: Burckhardt and others, "A randomized scheduler with probabilistic guarantees of finding bugs", 2010.
 */
#include "sim_loop.h"

#include "../coroutine/internal.h"
#include "../coroutine/roots.h"

#include <stdlib.h>
#include <string.h>

enum { FAIR = 500, LENGTHS = 11, SHORTEST = 16, DEPTHS = 3 };

#define LOWERED (UINT64_C(1) << 32)

static uint64_t priority_mix(uint64_t a, uint64_t b)
{
    uint64_t state = a ^ (b * UINT64_C(0xd1342543de82ef95));
    return bide_test_next_number_(&state);
}

/* ---- Numbers of tasks: 1, 2 ---- */

/* The slot of an address, or the free one where it belongs. */
static test_numbered *numbered_slot(test_numbered *slots, size_t capacity, const void *address)
{
    size_t at = (size_t)((uintptr_t)address / sizeof(void *)) & (capacity - 1);
    while (slots[at].address != NULL && slots[at].address != address)
        at = (at + 1) & (capacity - 1);
    return &slots[at];
}

/* False: there is no memory. */
static bool numbered_grow(test_priorities *self)
{
    size_t capacity = self->capacity != 0 ? 2 * self->capacity : 256;
    test_numbered *slots = calloc(capacity, sizeof *slots);
    if (slots == NULL)
        return false;
    for (size_t i = 0; i < self->capacity; i++) {
        if (self->slots[i].address != NULL)
            *numbered_slot(slots, capacity, self->slots[i].address) = self->slots[i];
    }
    free(self->slots);
    self->slots = slots;
    self->capacity = capacity;
    return true;
}

/* The number of an address; a new one if it has none, or if it `begins`. */
static uint64_t number_of(test_priorities *self, const void *address, bool begins)
{
    if (2 * self->count >= self->capacity && !numbered_grow(self))
        return 0; /* it competes with others that have none */
    test_numbered *slot = numbered_slot(self->slots, self->capacity, address);
    if (slot->address == NULL) {
        slot->address = address;
        self->count++;
        begins = true;
    }
    if (begins)
        slot->number = ++self->last_number;
    return slot->number;
}

/* ---- Tasks ---- */

static const bide_frame *posted_frame_of(const bide_awaiter *awaiter)
{
    const char *frame = (const char *)awaiter->frame;
    return (const bide_frame *)(const void *)(frame - ((uintptr_t)frame & BIDE_YIELDS_TOLD_));
}

static const bide_branch *when_branch_of(const bide_frame *frame)
{
    if (bide_frame_point(frame)->code != &bide_branch_code_)
        return NULL;
    const bide_branch *branch = bide_container_of(frame, const bide_branch, frame);
    return branch->number != 0 ? branch : NULL;
}

/* The task that a posted operation belongs to, as a number. */
static uint64_t task_of(test_priorities *self, const bide_awaiter *awaiter)
{
    const bide_frame *frame = posted_frame_of(awaiter);
    const bide_branch *branch = NULL;
    uint64_t path = 0;
    if (bide_test_turn_name_(frame) != NULL)
        return number_of(self, bide_frame_point(frame)->code, false);
    for (;;) {
        for (const bide_frame *outer; (outer = bide_continuation_(frame)) != NULL;)
            frame = outer;
        branch = when_branch_of(frame);
        if (branch == NULL)
            break;
        path = priority_mix(path, branch->number);
        frame = posted_frame_of(branch->group->joined);
    }
    const bide_coroutine_code *code = bide_frame_point(frame)->code;
    bool is_task = code == &bide_root_code_ || code == &bide_branch_code_;
    if (code == NULL)
        return number_of(self, bide_frame_point(frame), false);
    uint64_t number = number_of(self, is_task ? (const void *)frame : (const void *)code, false);
    return path != 0 ? priority_mix(number, path) : number;
}

void bide_test_priorities_post_(test_priorities *self, const bide_awaiter *first)
{
    if (self->depth == 0)
        return;
    for (; first != NULL; first = first->link) {
        const bide_frame *frame = posted_frame_of(first);
        const bide_point *point = bide_frame_point(frame);
        if (point->state == BIDE_AT_START &&
            (point->code == &bide_root_code_ ||
             (point->code == &bide_branch_code_ && when_branch_of(frame) == NULL)))
            (void)number_of(self, frame, true);
    }
}

/* ---- Priorities ---- */

/* Lowered by a change: from LOWERED on. Lowered for fairness: below that. All others: from 2^63 on. */
static uint64_t priority_of(const test_priorities *self, uint64_t task)
{
    for (size_t i = 0; i < self->lowered_count; i++) {
        if (self->lowered[i].task == task)
            return self->lowered[i].priority;
    }
    return priority_mix(self->seed, task) | UINT64_C(1) << 63;
}

static void priority_lower(test_priorities *self, uint64_t task, uint64_t priority)
{
    size_t kept = 0;
    for (size_t i = 0; i < self->lowered_count; i++) {
        if (self->lowered[i].task != task)
            self->lowered[kept++] = self->lowered[i];
    }
    if (kept == TEST_LOWERED) { /* the one that was lowered first has its own priority again */
        memmove(self->lowered, self->lowered + 1, (TEST_LOWERED - 1) * sizeof *self->lowered);
        kept--;
    }
    self->lowered[kept++] = (test_lowered){task, priority};
    self->lowered_count = kept;
}

/* The ready task with the highest priority; *at is how many are before it. */
static uint64_t highest_ready(test_priorities *self, const bide_sim_loop *loop, uint32_t *at)
{
    const bide_awaiter *awaiter = loop->ready.first;
    uint64_t best = 0, best_task = 0;
    *at = 0;
    for (uint32_t i = 0; i < OLDEST && awaiter != NULL; i++, awaiter = awaiter->link) {
        uint64_t task = task_of(self, awaiter);
        uint64_t priority = priority_of(self, task);
        if (i == 0 || priority > best) {
            best = priority;
            best_task = task;
            *at = i;
        }
    }
    return best_task;
}

uint32_t bide_test_priorities_choose_(bide_sim_loop *loop)
{
    test_priorities *self = &loop->record->priorities;
    uint32_t at;
    uint64_t task = highest_ready(self, loop, &at);
    bool has_others = loop->ready_count > 1;
    while (self->changes_count != 0 && loop->turns >= self->changes[self->changes_count - 1].turn) {
        priority_lower(self, task, self->changes[--self->changes_count].priority);
        task = highest_ready(self, loop, &at);
    }
    self->in_a_row = task == self->last && has_others ? self->in_a_row + 1 : 0;
    if (self->in_a_row == FAIR) {
        self->in_a_row = 0;
        priority_lower(self, task, --self->lowest);
        task = highest_ready(self, loop, &at);
    }
    self->last = task;
    return at;
}

/* ---- Begin and end ---- */

void bide_test_priorities_begin_(bide_sim_loop *loop, unsigned depth, uint64_t length)
{
    test_priorities *self = &loop->record->priorities;
    *self = (test_priorities){.seed = bide_test_next_number_(&loop->random), .lowest = LOWERED};
    if (loop->record->given != NULL)
        return; /* the draws are in the list */
    uint32_t drawn_depth = 2 + bide_test_number_below_(loop, DEPTHS);
    uint32_t drawn_length = SHORTEST << bide_test_number_below_(loop, LENGTHS);
    self->depth = depth != 0 ? depth : drawn_depth;
    if (self->depth > TEST_DEPTH_MAX)
        self->depth = TEST_DEPTH_MAX;
    if (length == 0)
        length = drawn_length;
    /* in descending order: the last is the next */
    for (unsigned i = 0; i + 1 < self->depth; i++) {
        test_change change = {bide_test_next_number_(&loop->random) % length, LOWERED + i};
        size_t at = self->changes_count++;
        for (; at != 0 && self->changes[at - 1].turn < change.turn; at--)
            self->changes[at] = self->changes[at - 1];
        self->changes[at] = change;
    }
}

void bide_test_priorities_end_(bide_sim_record_ *record)
{
    free(record->priorities.slots);
    record->priorities = (test_priorities){.depth = 0};
}
