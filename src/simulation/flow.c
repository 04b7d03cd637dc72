/*
 * One direction of a connection, or of a pipe: bytes in order, and its end.
 *
 *     reader <-- | arrived       | travelling         | <-- writer
 *                pieces: bytes, each with the time of its arrival; the end, or a reset
 *
 * 1. `arrived` and `travelling` together are at most `window`; who has put so much waits.
 * 2. A piece arrives no earlier than the one before it. So the times of pieces only grow, one event is
 *    enough, and what is put arrives at once only if nothing travels.
 * 3. Pieces that have arrived are taken together, but for those with which something was passed: they
 *    are taken by themselves, so the reader that takes the first of their bytes has what was passed.
 * 4. Bytes that arrive where nobody reads bounce: the writer is told, once they have.
 */
#define _GNU_SOURCE
#include "memory.h"

#include <stdlib.h>

struct memory_piece {
    memory_piece *next;
    uint64_t time;
    size_t size;
    memory_mark mark;
    memory_passed *passed; /* or NULL */
};

static void arrive(memory_event *event);

static void pause_ends(memory_event *event)
{
    const memory_flow *flow = bide_container_of(event, memory_flow, pause);
    if (flow->writer != NULL)
        bide_simulated_changed_(flow->writer);
}

void bide_simulated_flow_init_(memory_flow *flow, memory_world *world, bool is_local)
{
    MEMORY_EVENT(arrival, "bytes arrive");
    MEMORY_EVENT(pause, "a sender may go on");
    memset(flow, 0, sizeof *flow);
    flow->world = world;
    flow->window = world->options.window != 0 ? world->options.window : 65536;
    flow->is_local = is_local;
    bide_simulated_event_init_(&flow->arrival, world, &arrival, arrive);
    bide_simulated_event_init_(&flow->pause, world, &pause, pause_ends);
}

static void take_piece_off(memory_flow *flow)
{
    memory_piece *piece = flow->first;
    flow->first = piece->next;
    if (flow->next == piece)
        flow->next = piece->next;
    bide_simulated_passed_free_(piece->passed);
    free(piece);
}

void bide_simulated_flow_drop_(memory_flow *flow)
{
    while (flow->first != NULL)
        take_piece_off(flow);
    flow->last = NULL;
    flow->arrived = 0;
    flow->travelling = 0;
    bide_simulated_event_clear_(&flow->arrival);
}

void bide_simulated_flow_cut_(memory_flow *flow)
{
    memory_piece **place = &flow->first;
    flow->is_cut = true;
    flow->last = NULL;
    while (*place != flow->next) {
        flow->last = *place;
        place = &(*place)->next;
    }
    while (flow->next != NULL) {
        *place = flow->next->next;
        bide_simulated_passed_free_(flow->next->passed);
        free(flow->next);
        flow->next = *place;
    }
    flow->travelling = 0;
    bide_simulated_event_clear_(&flow->arrival);
}

void bide_simulated_flow_free_(memory_flow *flow)
{
    bide_simulated_flow_drop_(flow);
    bide_simulated_event_clear_(&flow->pause);
    free(flow->bytes);
}

size_t bide_simulated_flow_room_(const memory_flow *flow)
{
    size_t used = flow->arrived + flow->travelling;
    return used < flow->window && !flow->pause.is_set ? flow->window - used : 0;
}

/* ---- Arriving ---- */

static void bytes_have_arrived(memory_flow *flow, const memory_piece *piece)
{
    flow->travelling -= piece->size;
    flow->arrived += piece->size;
    if (flow->reader != NULL) {
        bide_simulated_changed_(flow->reader);
        return;
    }
    bide_simulated_flow_drop_(flow); /* 4 */
    if (flow->writer != NULL)
        bide_simulated_stream_bounces_(flow->writer);
}

/* All that has come by now. */
static void take_in(memory_flow *flow)
{
    uint64_t now = flow->world->loop->now;
    while (flow->next != NULL && flow->next->time <= now) {
        const memory_piece *piece = flow->next;
        flow->next = piece->next;
        if (piece->mark == MEMORY_BYTES) {
            bytes_have_arrived(flow, piece);
            continue;
        }
        bool had_ended = flow->has_ended;
        flow->has_ended = true;
        if (flow->reader != NULL && piece->mark == MEMORY_RESET)
            bide_simulated_stream_is_reset_(flow->reader, had_ended);
        if (flow->reader != NULL)
            bide_simulated_changed_(flow->reader);
    }
    if (flow->next != NULL && !flow->arrival.is_set)
        bide_simulated_event_set_(&flow->arrival, flow->next->time);
}

static void arrive(memory_event *event)
{
    take_in(bide_container_of(event, memory_flow, arrival));
}

/* ---- Putting ---- */

/* When what is put now arrives: 2. */
static uint64_t time_of_arrival(memory_flow *flow, const char *what)
{
    uint64_t time = flow->world->loop->now;
    if (!flow->is_local)
        time += bide_sim_loop_delay_(flow->world->loop, what, flow->world->options.delay);
    return flow->next != NULL && flow->last->time > time ? flow->last->time : time;
}

static void append(memory_flow *flow, memory_piece *piece)
{
    piece->next = NULL;
    if (flow->first == NULL)
        flow->first = piece;
    else
        flow->last->next = piece;
    flow->last = piece;
    if (flow->next == NULL)
        flow->next = piece;
    take_in(flow);
}

/* Room in the ring for `size` more. */
static int make_room(memory_flow *flow, size_t size)
{
    size_t used = flow->arrived + flow->travelling;
    size_t capacity = flow->capacity != 0 ? flow->capacity : 256;
    if (used + size <= flow->capacity)
        return 0;
    while (capacity < used + size)
        capacity *= 2;
    char *bytes = malloc(capacity);
    if (bytes == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < used; i++)
        bytes[i] = flow->bytes[(flow->begin + i) % flow->capacity];
    free(flow->bytes);
    flow->bytes = bytes;
    flow->capacity = capacity;
    flow->begin = 0;
    return 0;
}

/* Bytes into the ring, behind those that are there. */
static void store(memory_flow *flow, memory_bytes *bytes, size_t size)
{
    size_t at = (flow->begin + flow->arrived + flow->travelling) % flow->capacity;
    size_t first = flow->capacity - at < size ? flow->capacity - at : size;
    bide_simulated_bytes_take_(bytes, flow->bytes + at, first);
    bide_simulated_bytes_take_(bytes, flow->bytes, size - first);
}

int bide_simulated_flow_put_(memory_flow *flow, memory_bytes *bytes, size_t size, memory_passed *passed)
{
    if (flow->is_cut) {
        bide_simulated_passed_free_(passed);
        return 0;
    }
    memory_piece *piece = malloc(sizeof *piece);
    if (piece == NULL || make_room(flow, size) != 0) {
        free(piece);
        return -ENOMEM;
    }
    store(flow, bytes, size);
    flow->travelling += size;
    piece->mark = MEMORY_BYTES;
    piece->size = size;
    piece->passed = passed;
    piece->time = time_of_arrival(flow, "bytes arrive");
    append(flow, piece);
    return 0;
}

void bide_simulated_flow_mark_(memory_flow *flow, memory_mark mark)
{
    if (flow->is_cut)
        return;
    memory_piece *piece = malloc(sizeof *piece);
    if (piece == NULL) { /* at once, then: what travels is gone */
        if (flow->reader != NULL)
            bide_simulated_stream_is_reset_(flow->reader, false);
        return;
    }
    piece->mark = mark;
    piece->size = 0;
    piece->passed = NULL;
    piece->time = time_of_arrival(flow, mark == MEMORY_END ? "the end arrives" : "a reset arrives");
    append(flow, piece);
}

/* ---- Taking ---- */

/* How much of what has arrived is taken at once: 3. */
static size_t max_at_once(const memory_flow *flow, size_t size)
{
    size_t max = 0;
    for (const memory_piece *at = flow->first; at != flow->next && max < size; at = at->next) {
        if (at->passed != NULL && at != flow->first)
            break;
        max += at->size;
        if (at->passed != NULL)
            break;
    }
    return max < size ? max : size;
}

static void copy_out(const memory_flow *flow, memory_bytes *bytes, size_t size)
{
    size_t first = flow->capacity - flow->begin < size ? flow->capacity - flow->begin : size;
    bide_simulated_bytes_put_(bytes, flow->bytes + flow->begin, first);
    bide_simulated_bytes_put_(bytes, flow->bytes, size - first);
}

size_t bide_simulated_flow_take_(memory_flow *flow, memory_bytes *bytes, bool peeks, memory_passed **passed)
{
    size_t size = max_at_once(flow, bytes->left);
    *passed = NULL;
    if (size == 0)
        return 0;
    size = bide_simulated_part_(flow->world, "io: short receive", size);
    copy_out(flow, bytes, size);
    if (peeks)
        return size;
    flow->begin = (flow->begin + size) % flow->capacity;
    flow->arrived -= size;
    *passed = flow->first->passed;
    flow->first->passed = NULL;
    for (size_t left = size; left != 0;) {
        size_t count = flow->first->size < left ? flow->first->size : left;
        flow->first->size -= count;
        left -= count;
        if (flow->first->size == 0)
            take_piece_off(flow);
    }
    if (flow->writer != NULL)
        bide_simulated_changed_(flow->writer);
    return size;
}
