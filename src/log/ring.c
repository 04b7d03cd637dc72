/*
 * The engine "ring": messages in this process's memory, in the slots of a ring (ring.h), each of
 * a fixed size.
 *
 *     slot of number n:  time, sizes | key, headers, data      n & mask
 *
 * 1. Slots are written by publishes and read by consumers. A publish writes the slot of tail + 1
 *    under the lock, before it advances the tail. A consumer reads a slot by a delivery under the
 *    same lock.
 * 2. A slot that a consumer reads is not overwritten: its message is delivered and not done, so
 *    it is after `acknowledged` of a group. Room for a publish is counted from the least such
 *    number (state.c), and a new group begins within the messages that claims leave in place.
 * 3. Rings are in a list, under a lock of its own, while they have handles.
 */
#include "state.h"

#include "bide/ring.h"

#include "../coroutine/lock.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct log_ring {
    struct log_state state;
    struct log_ring *following;
    char name[LOG_GROUP_NAME]; /* empty: not in the list */
    uint32_t handles;
    uint32_t size;
    bide_ring(struct log_slot) slots;
    uint8_t *bytes; /* `size` for each slot */
    struct log_slot memory[];
};

struct log_ring_handle {
    bide_log log;
    struct log_ring *ring;
};

static bide_atomic(uint32_t) log_rings_lock;
static struct log_ring *log_rings;

/* Across a fork this thread has the lock, so the child finds it free. */
static void log_rings_take(void)
{
    lock_take(&log_rings_lock);
}

static void log_rings_release(void)
{
    lock_free(&log_rings_lock);
}

__attribute__((constructor)) static void log_rings_at_fork(void)
{
    (void)pthread_atfork(log_rings_take, log_rings_release, log_rings_release);
}

static struct log_ring *log_ring_of(bide_log *log)
{
    return bide_container_of(log, struct log_ring_handle, log)->ring;
}

static uint8_t *log_ring_bytes(struct log_ring *ring, uint64_t number)
{
    return ring->bytes + (size_t)(number & ring->slots.mask) * ring->size;
}

static struct log_ring *log_ring_create(const bide_log *log, const char *name)
{
    struct log_ring *ring;
    if (log->size > (SIZE_MAX - sizeof *ring) / log->window - sizeof(struct log_slot))
        return NULL;
    size_t slots = log->window * sizeof(struct log_slot);
    ring = malloc(sizeof *ring + slots + (size_t)log->window * log->size);
    if (ring == NULL)
        return NULL;
    bide_log_state_init_(&ring->state, log->window, true);
    ring->handles = 0;
    ring->size = log->size;
    ring->bytes = (uint8_t *)ring->memory + slots;
    memcpy(ring->name, name, strlen(name) + 1);
    (void)bide_ring_init(&ring->slots, ring->memory, log->window);
    if (*name != '\0') {
        ring->following = log_rings;
        log_rings = ring;
    }
    return ring;
}

/* The ring of that name, or a new one; under the list's lock. */
static int log_ring_find(const bide_log *log, const char *name, struct log_ring **found)
{
    struct log_ring *ring = *name != '\0' ? log_rings : NULL;
    while (ring != NULL && strcmp(ring->name, name) != 0)
        ring = ring->following;
    if (ring == NULL && log->must_exist)
        return -ENOENT;
    if (ring == NULL)
        ring = log_ring_create(log, name);
    else if ((log->has_window && log->window != ring->state.window) ||
             (log->has_size && log->size != ring->size))
        return -EEXIST;
    *found = ring;
    return ring != NULL ? 0 : -ENOMEM;
}

static int log_ring_open(bide_log *log, const char *name, char *problem)
{
    struct log_ring *ring = NULL;
    if (strlen(name) >= LOG_GROUP_NAME || log->window < 2 || !bide_ring_fits(log->window)) {
        snprintf(
            problem, BIDE_LOG_PROBLEM_TEXT,
            "ring:%.63s: the name is longer than 63 bytes, or the window is not a power of two",
            name);
        return -EINVAL;
    }
    lock_take(&log_rings_lock);
    int status = log_ring_find(log, name, &ring);
    if (status == 0)
        ring->handles++;
    lock_free(&log_rings_lock);
    if (status < 0) {
        snprintf(problem, BIDE_LOG_PROBLEM_TEXT, "ring:%.63s: %s", name,
                 status == -EEXIST   ? "it is open with another window or size"
                 : status == -ENOENT ? "there is no log"
                                     : "no memory");
        return status;
    }
    bide_container_of(log, struct log_ring_handle, log)->ring = ring;
    log->state = &ring->state;
    log->window = ring->state.window;
    log->size = ring->size;
    return 0;
}

static void log_ring_detach(bide_log *log)
{
    struct log_ring *ring = log_ring_of(log), **at = &log_rings;
    lock_take(&log_rings_lock);
    bool is_last = --ring->handles == 0;
    if (is_last && ring->name[0] != '\0') {
        while (*at != ring)
            at = &(*at)->following;
        *at = ring->following;
    }
    lock_free(&log_rings_lock);
    if (!is_last)
        return;
    bide_log_state_destroy_(&ring->state);
    free(ring);
}

static void log_ring_append(bide_log *log, bide_log_message *messages, uint32_t count)
{
    struct log_ring *ring = log_ring_of(log);
    struct log_state *state = &ring->state;
    uint64_t now = bide_log_time_(&state->last_time);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t number = state->tail + 1 + i;
        bide_log_slot_fill_(bide_ring_at(&ring->slots, number), log_ring_bytes(ring, number),
                            &messages[i], now);
        messages[i].published = (bide_log_position){.low_ = number};
    }
    state->tail += count;
}

static int log_ring_load(bide_log *log, bide_log_message *message, char *problem)
{
    (void)problem;
    struct log_ring *ring = log_ring_of(log);
    uint64_t number = message->position.low_;
    bide_log_slot_read_(bide_ring_at(&ring->slots, number), log_ring_bytes(ring, number),
                        ring->size, message);
    return 0;
}

static uint64_t log_ring_time_of(bide_log *log, uint64_t number)
{
    return bide_ring_at(&log_ring_of(log)->slots, number)->time;
}

const struct log_engine bide_log_ring_engine_ = {
    .scheme = "ring",
    .levels = 1u << BIDE_LOG_SENT,
    .best = BIDE_LOG_SENT,
    .handle_size = sizeof(struct log_ring_handle),
    .has_create = true,
    .open = log_ring_open,
    .detach = log_ring_detach,
    .append = log_ring_append,
    .load = log_ring_load,
    .time_of = log_ring_time_of,
};
