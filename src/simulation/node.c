/*
 * Numbers of descriptors, the nodes that they refer to, and events.
 *
 *     number --slot--> node <--slot-- number       (one was passed: two numbers of one node)
 *                slot --> the descriptor that waits
 *
 * 1. A node has a reference for each of its numbers, for each message that carries it, and for the
 *    listener in whose line it is. When the last one is dropped, the node is left
 *    (memory_kind.left), and freed.
 * 2. Code that changes a node marks it (bide_sim_changed_), and touches no waiting operation.
 *    bide_sim_settle_ goes through the changed nodes, in the order of their changes, and retries the
 *    operations that wait on them, which may change other nodes. Everything that enters the io from
 *    outside calls it last: an operation that begins or ends early, a call on a descriptor, an
 *    event. A changed node that has no reference any more is freed there.
 * 3. Settling terminates, because a retried operation either ends, or moves some of a finite number
 *    of bytes, or changes nothing.
 * 4. Numbers are given from the lowest free one on, as by the system. So the run determines them,
 *    and a number that is used after it was closed soon refers to another node.
 */
#define _GNU_SOURCE
#include "memory.h"

#include "../coroutine/blocked_thread.h"
#include "../coroutine/internal.h"
#include "../net/vectors.h"

#include <stdlib.h>

/* ---- Events ---- */

bide_next bide_sim_event_step_(bide_frame *frame, unsigned depth)
{
    memory_event *event = bide_container_of(frame, memory_event, frame);
    sim_environment *environment = event->environment;
    (void)depth;
    event->is_set = false;
    event->happens(event); /* (which may free it) */
    bide_sim_settle_(environment);
    return bide_next_none();
}

void bide_sim_event_init_(memory_event *event, sim_environment *environment, const bide_point *point,
                       void (*happens)(memory_event *event))
{
    event->environment = environment;
    event->point = point;
    event->happens = happens;
    event->is_set = false;
}

void bide_sim_event_set_(memory_event *event, uint64_t time)
{
    bide_scheduler *scheduler = event->environment->io.scheduler;
    bide_frame_init_in(&event->frame, event->point, &event->environment->io.context);
    event->timer.awaiter.ops = &event->point->ops;
    event->timer.awaiter.frame = &event->frame;
    bide_timer_init(&event->timer, time);
    event->is_set = true;
    scheduler->set_timer(scheduler, &event->timer);
}

void bide_sim_event_clear_(memory_event *event)
{
    bide_scheduler *scheduler = event->environment->io.scheduler;
    if (!event->is_set)
        return;
    event->is_set = false;
    if (!scheduler->clear_timer(scheduler, &event->timer))
        scheduler->take_back(scheduler, &event->timer.awaiter); /* it was due */
}

/* ---- Bytes ---- */

void bide_sim_bytes_init_(memory_bytes *bytes, const struct iovec *vectors, size_t count, size_t skip)
{
    bytes->vectors = vectors;
    bytes->offset = 0;
    bytes->left = 0;
    for (size_t i = 0; i < count; i++)
        bytes->left += vectors[i].iov_len;
    vectors_pass(&bytes->vectors, &bytes->offset, &bytes->left, skip);
}

/* The next piece of memory, of `size` bytes or less. There is at least one byte. */
static char *next_piece_of_bytes(memory_bytes *bytes, size_t *size)
{
    char *piece = (char *)bytes->vectors->iov_base + bytes->offset;
    size_t rest = bytes->vectors->iov_len - bytes->offset;
    if (*size > rest)
        *size = rest;
    vectors_pass(&bytes->vectors, &bytes->offset, &bytes->left, *size);
    return piece;
}

void bide_sim_bytes_take_(memory_bytes *bytes, void *to, size_t size)
{
    for (char *at = to; size != 0;) {
        size_t count = size;
        const char *piece = next_piece_of_bytes(bytes, &count);
        memcpy(at, piece, count);
        at += count;
        size -= count;
    }
}

void bide_sim_bytes_put_(memory_bytes *bytes, const void *from, size_t size)
{
    for (const char *at = from; size != 0;) {
        size_t count = size;
        char *piece = next_piece_of_bytes(bytes, &count);
        memcpy(piece, at, count);
        at += count;
        size -= count;
    }
}

size_t bide_sim_part_(sim_environment *environment, const char *fault, size_t size)
{
    enum { MAX_DRAW = 65536 }; /* (of the numbers that one draws from) */
    if (size < 2 || !memory_fault(environment, fault, environment->options.short_transfers))
        return size;
    return 1 +
           bide_sim_loop_draw(environment->loop, (uint32_t)(size - 1 < MAX_DRAW ? size - 1 : MAX_DRAW));
}

/* ---- Nodes ---- */

void bide_sim_node_init_(memory_node *node, sim_environment *environment, const memory_kind *kind)
{
    memset(node, 0, sizeof *node);
    node->kind = kind;
    node->environment = environment;
    node->references = 1;
    node->slot = -1;
}

void bide_sim_node_hold_(memory_node *node)
{
    node->references++;
}

void bide_sim_node_drop_(memory_node *node)
{
    bide_assert(node->references != 0);
    if (--node->references != 0)
        return;
    node->kind->left(node);
    if (!node->has_changed) /* 2 */
        free(node);
}

void bide_sim_changed_(memory_node *node)
{
    sim_environment *environment = node->environment;
    if (node->has_changed)
        return;
    node->has_changed = true;
    node->next_changed = NULL;
    if (environment->first_changed == NULL)
        environment->first_changed = node;
    else
        environment->last_changed->next_changed = node;
    environment->last_changed = node;
}

static void settle_node(sim_environment *environment, memory_node *node)
{
    int next;
    node->has_changed = false;
    if (node->references == 0) {
        free(node);
        return;
    }
    bide_sim_node_hold_(node);
    for (int at = node->slot; at >= 0; at = next) {
        next = environment->slots[at].next;
        if (environment->slots[at].descriptor != NULL)
            bide_sim_retry_(environment, environment->slots[at].descriptor);
    }
    bide_sim_node_drop_(node);
}

void bide_sim_settle_(sim_environment *environment)
{
    if (environment->is_settling)
        return;
    environment->is_settling = true;
    while (environment->first_changed != NULL) {
        memory_node *node = environment->first_changed;
        environment->first_changed = node->next_changed;
        settle_node(environment, node);
    }
    environment->is_settling = false;
}

int bide_sim_take_error_(memory_node *node)
{
    int error = node->error;
    node->error = 0;
    return error;
}

/* ---- Numbers ---- */

memory_slot *bide_sim_slot_of_(const sim_environment *environment, int fd)
{
    if (fd < MEMORY_FIRST || fd - MEMORY_FIRST >= environment->slots_count ||
        environment->slots[fd - MEMORY_FIRST].node == NULL)
        return NULL;
    return &environment->slots[fd - MEMORY_FIRST];
}

memory_node *bide_sim_node_of_(const sim_environment *environment, int fd)
{
    const memory_slot *slot = bide_sim_slot_of_(environment, fd);
    return slot != NULL ? slot->node : NULL;
}

static bool numbers_are_used_up(const sim_environment *environment)
{
    unsigned max = environment->options.descriptors != 0 ? environment->options.descriptors : 1024;
    return (unsigned)environment->slots_open >= max;
}

int bide_sim_has_number_(sim_environment *environment)
{
    if (numbers_are_used_up(environment) ||
        memory_fault(environment, "io: no descriptor", environment->options.no_descriptor))
        return -EMFILE;
    return 0;
}

static int make_slots(sim_environment *environment)
{
    int count = environment->slots_count != 0 ? 2 * environment->slots_count : 16;
    memory_slot *slots = realloc(environment->slots, (size_t)count * sizeof *slots);
    if (slots == NULL)
        return -ENOMEM;
    memset(slots + environment->slots_count, 0, (size_t)(count - environment->slots_count) * sizeof *slots);
    environment->slots = slots;
    environment->slots_count = count;
    return 0;
}

/* A function, or a case of a select, is carried out by the coroutine that runs: debug builds know it. */
static void slot_note_opener(const sim_environment *environment, memory_slot *slot)
{
    slot->opened_at = NULL;
    slot->opened_by = "an io in memory";
    if (environment->carried != NULL) {
        slot->opened_at = bide_body_of_(environment->carried_for);
        slot->opened_by = bide_io_row_of_(environment->carried)->name;
    } else {
#if BIDE_REPORTS_BLOCKED_
        slot->opened_at = bide_running_body_();
#endif
    }
}

int bide_sim_install_(sim_environment *environment, memory_node *node)
{
    if (numbers_are_used_up(environment))
        return -EMFILE;
    while (environment->lowest < environment->slots_count && environment->slots[environment->lowest].node != NULL)
        environment->lowest++;
    if (environment->lowest == environment->slots_count && make_slots(environment) != 0)
        return -ENOMEM;
    memory_slot *slot = &environment->slots[environment->lowest];
    slot->node = node;
    slot->descriptor = NULL;
    slot_note_opener(environment, slot);
    slot->next = node->slot;
    node->slot = environment->lowest;
    environment->slots_open++;
    return MEMORY_FIRST + environment->lowest;
}

int bide_sim_close_(sim_environment *environment, int fd)
{
    memory_slot *slot = bide_sim_slot_of_(environment, fd);
    if (slot == NULL)
        return -EBADF;
    memory_node *node = slot->node;
    int number = fd - MEMORY_FIRST;
    int *place = &node->slot;
    while (*place != number) {
        bide_assert(*place >= 0);
        place = &environment->slots[*place].next;
    }
    *place = slot->next;
    slot->node = NULL;
    slot->descriptor = NULL;
    bide_assert(environment->slots_open > 0);
    environment->slots_open--;
    if (number < environment->lowest)
        environment->lowest = number;
    bide_sim_node_drop_(node);
    return 0;
}
