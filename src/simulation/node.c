/*
 * Numbers of descriptors, what they stand for, and what happens at a time.
 *
 *     number --slot--> node <--slot-- number       (one was passed: two numbers of one node)
 *                slot --> the descriptor that waits
 *
 * 1. A node has a reference for each of its numbers, for each message that carries it, and for the
 *    listener in whose line it stands. With the last it is left (memory_kind.left), and freed.
 * 2. What changes a node says so (bide_simulated_changed_), and touches nothing that waits. bide_simulated_settle_ goes
 *    through what has changed, in that order, and tries again what waits there, which may change
 *    others. It is called last by whatever comes from outside: an operation that begins or ends
 *    early, a call on a descriptor, an event. A node that has changed is freed there, if nobody has it
 *    any more.
 * 3. Settling comes to an end, because an operation that is tried again either ends, or moves bytes of
 *    which there are so many, or changes nothing.
 * 4. Numbers are given from the lowest on, as the system gives them: so the run says which, and one
 *    that is used after it was closed is another's soon.
 */
#define _GNU_SOURCE
#include "memory.h"

#include "../net/vectors.h"

#include <stdlib.h>

/* ---- Events ---- */

bide_next bide_simulated_event_step_(bide_frame *frame, unsigned depth)
{
    memory_event *event = bide_container_of(frame, memory_event, frame);
    memory_world *world = event->world;
    (void)depth;
    event->is_set = false;
    event->happens(event); /* (which may free it) */
    bide_simulated_settle_(world);
    return bide_next_none();
}

void bide_simulated_event_init_(memory_event *event, memory_world *world, const bide_point *point,
                       void (*happens)(memory_event *event))
{
    event->world = world;
    event->point = point;
    event->happens = happens;
    event->is_set = false;
}

void bide_simulated_event_set_(memory_event *event, uint64_t time)
{
    bide_scheduler *scheduler = event->world->io.scheduler;
    bide_frame_init_in(&event->frame, event->point, &event->world->io.context);
    event->timer.awaiter.ops = &event->point->ops;
    event->timer.awaiter.frame = &event->frame;
    bide_timer_init(&event->timer, time);
    event->is_set = true;
    scheduler->set_timer(scheduler, &event->timer);
}

void bide_simulated_event_clear_(memory_event *event)
{
    bide_scheduler *scheduler = event->world->io.scheduler;
    if (!event->is_set)
        return;
    event->is_set = false;
    if (!scheduler->clear_timer(scheduler, &event->timer))
        scheduler->take_back(scheduler, &event->timer.awaiter); /* its time has come */
}

/* ---- Bytes ---- */

void bide_simulated_bytes_init_(memory_bytes *bytes, const struct iovec *vectors, size_t count, size_t skip)
{
    bytes->vectors = vectors;
    bytes->offset = 0;
    bytes->left = 0;
    for (size_t i = 0; i < count; i++)
        bytes->left += vectors[i].iov_len;
    vectors_pass(&bytes->vectors, &bytes->offset, &bytes->left, skip);
}

/* The next piece of memory, of `size` bytes or less; there is some. */
static char *next_piece(memory_bytes *bytes, size_t *size)
{
    char *piece = (char *)bytes->vectors->iov_base + bytes->offset;
    size_t rest = bytes->vectors->iov_len - bytes->offset;
    if (*size > rest)
        *size = rest;
    vectors_pass(&bytes->vectors, &bytes->offset, &bytes->left, *size);
    return piece;
}

void bide_simulated_bytes_take_(memory_bytes *bytes, void *to, size_t size)
{
    for (char *at = to; size != 0;) {
        size_t count = size;
        const char *piece = next_piece(bytes, &count);
        memcpy(at, piece, count);
        at += count;
        size -= count;
    }
}

void bide_simulated_bytes_put_(memory_bytes *bytes, const void *from, size_t size)
{
    for (const char *at = from; size != 0;) {
        size_t count = size;
        char *piece = next_piece(bytes, &count);
        memcpy(piece, at, count);
        at += count;
        size -= count;
    }
}

size_t bide_simulated_part_(memory_world *world, const char *fault, size_t size)
{
    enum { MOST = 65536 }; /* (of what one draws from) */
    if (size < 2 || !memory_fault(world, fault, world->options.short_transfers))
        return size;
    return 1 + bide_sim_loop_draw(world->loop, (uint32_t)(size - 1 < MOST ? size - 1 : MOST));
}

/* ---- Nodes ---- */

void bide_simulated_node_init_(memory_node *node, memory_world *world, const memory_kind *kind)
{
    memset(node, 0, sizeof *node);
    node->kind = kind;
    node->world = world;
    node->references = 1;
    node->slot = -1;
}

void bide_simulated_node_hold_(memory_node *node)
{
    node->references++;
}

void bide_simulated_node_drop_(memory_node *node)
{
    if (--node->references != 0)
        return;
    node->kind->left(node);
    if (!node->has_changed) /* 2 */
        free(node);
}

void bide_simulated_changed_(memory_node *node)
{
    memory_world *world = node->world;
    if (node->has_changed)
        return;
    node->has_changed = true;
    node->next_changed = NULL;
    if (world->first_changed == NULL)
        world->first_changed = node;
    else
        world->last_changed->next_changed = node;
    world->last_changed = node;
}

static void settle_node(memory_world *world, memory_node *node)
{
    int next;
    node->has_changed = false;
    if (node->references == 0) {
        free(node);
        return;
    }
    bide_simulated_node_hold_(node);
    for (int at = node->slot; at >= 0; at = next) {
        next = world->slots[at].next;
        if (world->slots[at].descriptor != NULL)
            bide_simulated_continue_(world, world->slots[at].descriptor);
    }
    bide_simulated_node_drop_(node);
}

void bide_simulated_settle_(memory_world *world)
{
    if (world->is_settling)
        return;
    world->is_settling = true;
    while (world->first_changed != NULL) {
        memory_node *node = world->first_changed;
        world->first_changed = node->next_changed;
        settle_node(world, node);
    }
    world->is_settling = false;
}

int bide_simulated_take_error_(memory_node *node)
{
    int error = node->error;
    node->error = 0;
    return error;
}

/* ---- Numbers ---- */

memory_slot *bide_simulated_slot_of_(const memory_world *world, int fd)
{
    if (fd < MEMORY_FIRST || fd - MEMORY_FIRST >= world->slots_count ||
        world->slots[fd - MEMORY_FIRST].node == NULL)
        return NULL;
    return &world->slots[fd - MEMORY_FIRST];
}

memory_node *bide_simulated_node_of_(const memory_world *world, int fd)
{
    const memory_slot *slot = bide_simulated_slot_of_(world, fd);
    return slot != NULL ? slot->node : NULL;
}

static bool is_full(const memory_world *world)
{
    unsigned max = world->options.descriptors != 0 ? world->options.descriptors : 1024;
    return (unsigned)world->slots_open >= max;
}

int bide_simulated_has_number_(memory_world *world)
{
    if (is_full(world) ||
        memory_fault(world, "io: no descriptor", world->options.no_descriptor))
        return -EMFILE;
    return 0;
}

static int make_slots(memory_world *world)
{
    int count = world->slots_count != 0 ? 2 * world->slots_count : 16;
    memory_slot *slots = realloc(world->slots, (size_t)count * sizeof *slots);
    if (slots == NULL)
        return -ENOMEM;
    memset(slots + world->slots_count, 0, (size_t)(count - world->slots_count) * sizeof *slots);
    world->slots = slots;
    world->slots_count = count;
    return 0;
}

int bide_simulated_install_(memory_world *world, memory_node *node)
{
    if (is_full(world))
        return -EMFILE;
    while (world->lowest < world->slots_count && world->slots[world->lowest].node != NULL)
        world->lowest++;
    if (world->lowest == world->slots_count && make_slots(world) != 0)
        return -ENOMEM;
    memory_slot *slot = &world->slots[world->lowest];
    slot->node = node;
    slot->descriptor = NULL;
    slot->next = node->slot;
    node->slot = world->lowest;
    world->slots_open++;
    return MEMORY_FIRST + world->lowest;
}

int bide_simulated_close_(memory_world *world, int fd)
{
    memory_slot *slot = bide_simulated_slot_of_(world, fd);
    if (slot == NULL)
        return -EBADF;
    memory_node *node = slot->node;
    int number = fd - MEMORY_FIRST;
    int *place = &node->slot;
    while (*place != number)
        place = &world->slots[*place].next;
    *place = slot->next;
    slot->node = NULL;
    slot->descriptor = NULL;
    world->slots_open--;
    if (number < world->lowest)
        world->lowest = number;
    bide_simulated_node_drop_(node);
    return 0;
}
