/*
 * One direction of a connection, or of a pipe: bytes in order, and their end.
 *
 *     reader <-- | arrived       | travelling         | <-- writer
 *                pieces: bytes, each with the time of its arrival; the end, or a reset
 *
 * 1. `arrived` and `travelling` together are at most `window`. A writer that has put that many
 *    waits.
 * 2. A piece arrives no earlier than the one before it. So the times of pieces never decrease, one
 *    event is enough, and a piece arrives at once only if nothing travels.
 * 3. Pieces that have arrived are taken together, except pieces with which something was passed.
 *    Such a piece is taken alone, so the reader that takes the first of its bytes gets what was
 *    passed.
 * 4. Bytes that arrive without a reader bounce: the writer is notified when they have arrived.
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

static void flow_arrive(memory_event *event);

static void pause_ends(memory_event *event)
{
    const memory_flow *flow = bide_container_of(event, memory_flow, pause);
    if (flow->writer != NULL)
        bide_sim_changed_(flow->writer);
}

void bide_sim_flow_init_(memory_flow *flow, sim_environment *environment, bool is_local)
{
    MEMORY_EVENT(arrival, "bytes arrive");
    MEMORY_EVENT(pause, "a sender continues");
    memset(flow, 0, sizeof *flow);
    flow->environment = environment;
    flow->window = environment->options.window != 0 ? environment->options.window : 65536;
    flow->is_local = is_local;
    bide_sim_event_init_(&flow->arrival, environment, &arrival, flow_arrive);
    bide_sim_event_init_(&flow->pause, environment, &pause, pause_ends);
}

static void take_piece_off(memory_flow *flow)
{
    memory_piece *piece = flow->first;
    bide_assert(piece != NULL);
    flow->first = piece->next;
    if (flow->next == piece)
        flow->next = piece->next;
    bide_sim_passed_free_(piece->passed);
    free(piece);
}

void bide_sim_flow_drop_(memory_flow *flow)
{
    while (flow->first != NULL)
        take_piece_off(flow);
    flow->last = NULL;
    flow->arrived = 0;
    flow->travelling = 0;
    bide_sim_event_clear_(&flow->arrival);
}

void bide_sim_flow_cut_(memory_flow *flow)
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
        bide_sim_passed_free_(flow->next->passed);
        free(flow->next);
        flow->next = *place;
    }
    flow->travelling = 0;
    bide_sim_event_clear_(&flow->arrival);
}

void bide_sim_flow_free_(memory_flow *flow)
{
    bide_sim_flow_drop_(flow);
    bide_sim_event_clear_(&flow->pause);
    free(flow->bytes);
}

size_t bide_sim_flow_room_(const memory_flow *flow)
{
    size_t used = flow->arrived + flow->travelling;
    return used < flow->window && !flow->pause.is_set ? flow->window - used : 0;
}

/* ---- Arriving ---- */

static void bytes_have_arrived(memory_flow *flow, const memory_piece *piece)
{
    bide_assert(flow->travelling >= piece->size);
    flow->travelling -= piece->size;
    flow->arrived += piece->size;
    if (flow->reader != NULL) {
        bide_sim_changed_(flow->reader);
        return;
    }
    bide_sim_flow_drop_(flow); /* 4 */
    if (flow->writer != NULL)
        bide_sim_stream_bounces_(flow->writer);
}

/* Moves the pieces that are due from travelling to arrived. */
static void flow_take_in(memory_flow *flow)
{
    uint64_t now = flow->environment->loop->now;
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
            bide_sim_stream_is_reset_(flow->reader, had_ended);
        if (flow->reader != NULL)
            bide_sim_changed_(flow->reader);
    }
    if (flow->next != NULL && !flow->arrival.is_set)
        bide_sim_event_set_(&flow->arrival, flow->next->time);
}

static void flow_arrive(memory_event *event)
{
    flow_take_in(bide_container_of(event, memory_flow, arrival));
}

/* ---- Putting ---- */

/* The arrival time of a piece that is put now: 2. */
static uint64_t time_of_arrival(memory_flow *flow, const char *what)
{
    uint64_t time = flow->environment->loop->now;
    if (!flow->is_local)
        time +=
            bide_sim_loop_delay_(flow->environment->loop, what, flow->environment->options.delay);
    return flow->next != NULL && flow->last->time > time ? flow->last->time : time;
}

static void flow_append(memory_flow *flow, memory_piece *piece)
{
    piece->next = NULL;
    if (flow->first == NULL)
        flow->first = piece;
    else
        flow->last->next = piece;
    flow->last = piece;
    if (flow->next == NULL)
        flow->next = piece;
    bide_assert(flow->next == piece || flow->next->time <= piece->time); /* 2 */
    flow_take_in(flow);
}

/* Makes room in the ring for `size` more bytes. */
static int flow_make_room(memory_flow *flow, size_t size)
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

/* Appends bytes to the ring. */
static void flow_store(memory_flow *flow, memory_bytes *bytes, size_t size)
{
    bide_assert(size != 0 && flow->arrived + flow->travelling + size <= flow->capacity);
    size_t at = (flow->begin + flow->arrived + flow->travelling) % flow->capacity;
    size_t first = flow->capacity - at < size ? flow->capacity - at : size;
    bide_sim_bytes_take_(bytes, flow->bytes + at, first);
    bide_sim_bytes_take_(bytes, flow->bytes, size - first);
}

int bide_sim_flow_put_(memory_flow *flow, memory_bytes *bytes, size_t size, memory_passed *passed)
{
    if (flow->is_cut) {
        bide_sim_passed_free_(passed);
        return 0;
    }
    memory_piece *piece = malloc(sizeof *piece);
    if (piece == NULL || flow_make_room(flow, size) != 0) {
        free(piece);
        return -ENOMEM;
    }
    flow_store(flow, bytes, size);
    flow->travelling += size;
    piece->mark = MEMORY_BYTES;
    piece->size = size;
    piece->passed = passed;
    piece->time = time_of_arrival(flow, "bytes arrive");
    flow_append(flow, piece);
    return 0;
}

void bide_sim_flow_mark_(memory_flow *flow, memory_mark mark)
{
    if (flow->is_cut)
        return;
    memory_piece *piece = malloc(sizeof *piece);
    if (piece == NULL) { /* at once, then: travelling bytes are lost */
        if (flow->reader != NULL)
            bide_sim_stream_is_reset_(flow->reader, false);
        return;
    }
    piece->mark = mark;
    piece->size = 0;
    piece->passed = NULL;
    piece->time = time_of_arrival(flow, mark == MEMORY_END ? "the end arrives" : "a reset arrives");
    flow_append(flow, piece);
}

/* ---- Taking ---- */

/* The number of arrived bytes that can be taken at once: 3. */
static size_t takeable_size(const memory_flow *flow, size_t size)
{
    size_t count = 0;
    for (const memory_piece *at = flow->first; at != flow->next && count < size; at = at->next) {
        if (at->passed != NULL && at != flow->first)
            break;
        count += at->size;
        if (at->passed != NULL)
            break;
    }
    return count < size ? count : size;
}

static void flow_copy_out(const memory_flow *flow, memory_bytes *bytes, size_t size)
{
    size_t first = flow->capacity - flow->begin < size ? flow->capacity - flow->begin : size;
    bide_sim_bytes_put_(bytes, flow->bytes + flow->begin, first);
    bide_sim_bytes_put_(bytes, flow->bytes, size - first);
}

size_t bide_sim_flow_take_(memory_flow *flow, memory_bytes *bytes, bool peeks,
                           memory_passed **passed)
{
    size_t size = takeable_size(flow, bytes->left);
    *passed = NULL;
    if (size == 0)
        return 0;
    size = bide_sim_part_(flow->environment, "io: short receive", size);
    flow_copy_out(flow, bytes, size);
    if (peeks)
        return size;
    bide_assert(size <= flow->arrived);
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
        bide_sim_changed_(flow->writer);
    return size;
}
