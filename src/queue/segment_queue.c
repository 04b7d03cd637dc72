/*
 * The segment queue's slow half: new segments, cells that collide, waiting for a cell to be filled, and
 * moving head and tail. Any thread may push, pop and close, with a seat of its own. The model, the
 * argument and its numbers: docs/internals/segment_queue.md.
 */
#include "bide/segment_queue.h"

#include "bide/detail/back_off.h"

/* Marks the end of a closed queue, instead of the next segment. */
static bide_segment_ closed;

/* ---- Segments ---- */

/* The claim is beside the state. */
static bide_atomic(uint32_t) * claim_of(bide_atomic(uint32_t) * state)
{
    return state + 1;
}

static bide_segment_ *segment_create(bide_segment_queue_ *queue)
{
    bide_allocator *allocator = queue->allocator;
    size_t size = sizeof(bide_segment_) + queue->cells * queue->stride + BIDE_CACHE_LINE;
    unsigned char *memory = (unsigned char *)allocator->allocate(allocator, size);
    if (memory == NULL)
        return NULL;
    size_t over = (uintptr_t)memory % BIDE_CACHE_LINE;
    bide_segment_ *segment =
        (bide_segment_ *)(void *)(memory + (over == 0 ? 0 : BIDE_CACHE_LINE - over));
    bide_atomic_init(&segment->pushed, 0);
    bide_atomic_init(&segment->popped, 0);
    bide_atomic_init(&segment->seen, 0);
    bide_atomic_init(&segment->patience, BIDE_SEGMENT_PATIENCE_);
    bide_atomic_init(&segment->next, NULL);
    bide_atomic_init(&segment->early, BIDE_SEGMENT_NOT_EARLY_);
    segment->allocator = allocator;
    segment->memory = memory;
    segment->size = size;
    for (size_t i = 0; i < queue->cells; i++) {
        bide_atomic(uint32_t) *state =
            bide_segment_state_(bide_segment_cell_(segment, i, queue->stride), queue->size);
        bide_atomic_init(state, BIDE_CELL_EMPTY_);
        bide_atomic_init(claim_of(state), BIDE_CELL_NOBODYS_);
    }
    return segment;
}

static void segment_free(bide_segment_ *segment)
{
    segment->allocator->deallocate(segment->allocator, segment->memory, segment->size);
}

static void segment_reclaim(bide_hazard_retired *retired)
{
    segment_free(bide_container_of(retired, bide_segment_, retired));
}

/* Moves tail from `last`, which the caller protects, to the next segment, unless that was done. */
static void move_tail(bide_segment_queue_ *queue, bide_segment_ *last, bide_segment_ *next)
{
    void *expected = last;
    /* release: 1. */
    bide_atomic_compare_exchange(&queue->tail, &expected, next, release, relaxed);
}

/* ---- Collisions ---- */

void bide_segment_lost_(unsigned *pauses)
{
    bide_atomic_retry();
    bide_back_off_(pauses, BIDE_SEGMENT_MAX_PAUSES_);
}

/* ---- Pushing ---- */

size_t bide_segment_give_(bide_segment_queue_ *queue, bide_hazard_seat *seat,
                          bide_segment_ *segment, size_t wanted)
{
    unsigned pauses = BIDE_SEGMENT_PAUSES_;
    seat->crowded--;
    for (;;) {
        size_t given = bide_atomic_load(&segment->pushed, relaxed);
        if (given >= queue->cells)
            return bide_atomic_fetch_add(&segment->pushed, wanted, relaxed);
        if (bide_atomic_compare_exchange(&segment->pushed, &given, given + wanted, relaxed,
                                         relaxed))
            return given;
        seat->crowded = BIDE_SEGMENT_CROWDED_;
        bide_segment_lost_(&pauses);
    }
}

bide_segment_ *bide_segment_prepare_(bide_segment_queue_ *queue, bide_segment_ *last, size_t given,
                                     size_t taken, int *status)
{
    bide_segment_ *next = &closed, *fresh = NULL;
    *status = 0;
    if ((given & BIDE_SEGMENT_CLOSED_) == 0)
        /* acquire: 1, for move_tail. */
        next = (bide_segment_ *)bide_atomic_load(&last->next, acquire);
    if (next == NULL) {
        fresh = segment_create(queue);
        *status = fresh != NULL ? 0 : -ENOMEM;
    } else if (next == &closed) {
        *status = -EPIPE;
    } else {
        move_tail(queue, last, next);
    }
    /*
     * Subtracted, so that a producer that retries forever does not make it overflow. A count past the
     * end stays.
     */
    if (*status != 0)
        bide_atomic_fetch_sub(&last->pushed, taken, relaxed);
    return fresh;
}

bool bide_segment_link_(bide_segment_queue_ *queue, bide_segment_ *last, bide_segment_ *fresh)
{
    void *next = NULL;
    bide_atomic_init(&fresh->pushed, 1);
    bide_atomic_init(bide_segment_state_(bide_segment_cell_(fresh, 0, queue->stride), queue->size),
                     BIDE_CELL_FULL_);
    /* release: 1; acquire if failed: 1, for move_tail. */
    bool linked = bide_atomic_compare_exchange(&last->next, &next, fresh, release, acquire);
    if (linked)
        move_tail(queue, last, fresh);
    else
        segment_free(fresh);
    if (!linked && next != &closed)
        move_tail(queue, last, (bide_segment_ *)next);
    return linked;
}

void bide_segment_queue_close_(bide_segment_queue_ *queue, bide_hazard_seat *seat)
{
    for (;;) {
        bide_segment_ *last = bide_segment_protect_(seat, 0, &queue->tail);
        void *next = NULL;
        /* acquire if failed: 1, for move_tail. */
        if (bide_atomic_compare_exchange(&last->next, &next, &closed, acquire, acquire) ||
            next == &closed) {
            /* release: 7, partner is bide_segment_look_. */
            bide_atomic_fetch_or(&last->pushed, BIDE_SEGMENT_CLOSED_, release);
            return;
        }
        move_tail(queue, last, (bide_segment_ *)next);
    }
}

/* ---- Popping ---- */

/*
 * Announces that consumers come early in the segment. A producer that fills a cell from now on claims
 * it; a cell that was filled before is visible.
 */
static void come_early(bide_segment_ *segment)
{
    /* acquire: 2, partner is the store after X. */
    uint32_t early = bide_atomic_load(&segment->early, acquire);
    if (early == BIDE_SEGMENT_EARLY_)
        return;
    if (early == BIDE_SEGMENT_NOT_EARLY_)
        /* relaxed: Y; an exchange, so that it does not go back. */
        bide_atomic_compare_exchange(&segment->early, &early, BIDE_SEGMENT_ARMING_, relaxed,
                                     relaxed);
    bide_atomic_fence_heavy(); /* X; partner: L */
    /* relaxed: X, in front of it, is a fence, so it releases. */
    bide_atomic_store(&segment->early, BIDE_SEGMENT_EARLY_, relaxed);
}

bool bide_segment_wait_(bide_segment_ *segment, bide_atomic(uint32_t) * state)
{
    for (int looks = 1; looks < BIDE_SEGMENT_SPINS_; looks++) {
        bide_cpu_relax();
        if (bide_atomic_load(state, acquire) == BIDE_CELL_FULL_) /* 2 */
            return true;
    }
    come_early(segment);
    if (bide_atomic_load(state, acquire) == BIDE_CELL_FULL_) /* F; partner: S */
        return true;
    /* acquire: 2, partner is bide_segment_claim_. */
    return bide_atomic_exchange(claim_of(state), BIDE_CELL_CONSUMERS_, acquire) ==
           BIDE_CELL_PRODUCERS_;
}

bool bide_segment_claim_(bide_atomic(uint32_t) * state)
{
    /* release: 2, partner is bide_segment_wait_. */
    return bide_atomic_exchange(claim_of(state), BIDE_CELL_PRODUCERS_, release) !=
           BIDE_CELL_CONSUMERS_;
}

/*
 * The weight of a retired segment: it grows with the number of cells. With few seats it is less, so
 * that a scan is for some ten segments at least: each scan interrupts all threads (fence.h).
 */
static size_t weight_of(const bide_segment_queue_ *queue)
{
    size_t weight = 1 + queue->cells / BIDE_SEGMENT_WEIGHS_;
    size_t max = (queue->domain->count + 3) / 4;
    return weight < max ? weight : max;
}

/*
 * Moves head from `segment`, whose cells were all popped, to the next. Returns 1, or -EAGAIN or -EPIPE
 * if there is none.
 */
static int move_head(bide_segment_queue_ *queue, bide_hazard_seat *seat, bide_segment_ *segment)
{
    /* acquire: 1. */
    bide_segment_ *next = (bide_segment_ *)bide_atomic_load(&segment->next, acquire);
    if (next == NULL)
        return -EAGAIN;
    if (next == &closed)
        return -EPIPE;
    /* 5 */
    if (bide_atomic_load(&queue->tail, relaxed) == segment)
        move_tail(queue, segment, next);
    void *expected = segment;
    /* release: 1. */
    if (bide_atomic_compare_exchange(&queue->head, &expected, next, release, relaxed))
        bide_hazard_retire_weighing(queue->domain, seat, &segment->retired, segment,
                                    segment_reclaim, weight_of(queue));
    return 1;
}

/* The number of cells given to producers, by `pushed`. */
static size_t cells_of(const bide_segment_queue_ *queue, size_t pushed)
{
    size_t cells = pushed & ~BIDE_SEGMENT_CLOSED_;
    return cells < queue->cells ? cells : queue->cells;
}

/* Few cells were found, up to `limit`: 8. Pauses, and returns the present limit. */
static size_t look_for_more(bide_segment_queue_ *queue, bide_segment_ *segment, size_t limit)
{
#if BIDE_CHECK
    (void)queue, (void)segment;
    return limit;
#else
    uint32_t patience = bide_atomic_load(&segment->patience, relaxed);
    if (patience != 0) {
        bide_atomic_store(&segment->patience, patience - 1, relaxed);
        return limit;
    }
    bide_pause_(BIDE_SEGMENT_FEW_PAUSES_);
    size_t now = cells_of(queue, bide_atomic_load(&segment->pushed, relaxed));
    if (now - limit < BIDE_SEGMENT_PAYS_)
        bide_atomic_store(&segment->patience, BIDE_SEGMENT_LONG_PATIENCE_, relaxed);
    return now;
#endif
}

int bide_segment_look_(bide_segment_queue_ *queue, bide_hazard_seat *seat, bide_segment_ *segment,
                       size_t popped, size_t *limit)
{
    if (popped >= queue->cells)
        return move_head(queue, seat, segment);
    size_t pushed = bide_atomic_load(&segment->pushed, acquire); /* 7 */
    *limit = cells_of(queue, pushed);
    if (popped < *limit) {
        if (*limit - popped < BIDE_SEGMENT_FEW_ && *limit < queue->cells)
            *limit = look_for_more(queue, segment, *limit);
        bide_atomic_store(&segment->seen, *limit, relaxed);
        return 0;
    }
    if (bide_atomic_load(&segment->patience, relaxed) <
        BIDE_SEGMENT_PATIENCE_) /* 8: none was found */
        bide_atomic_store(&segment->patience, BIDE_SEGMENT_PATIENCE_, relaxed);
    return (pushed & BIDE_SEGMENT_CLOSED_) != 0 ? -EPIPE : -EAGAIN;
}

bool bide_segment_queue_may_pop_(bide_segment_queue_ *queue, bide_hazard_seat *seat)
{
    bide_segment_ *segment = bide_segment_protect_(seat, 1, &queue->head);
    /* relaxed, all: the only conclusion is that an element, or CLOSED, that a fence orders before would
     * be seen. */
    size_t popped = bide_atomic_load(&segment->popped, relaxed);
    if (popped >= queue->cells)
        return bide_atomic_load(&segment->next, relaxed) != NULL;
    return bide_atomic_load(&segment->pushed, relaxed) > popped; /* (CLOSED is the top bit) */
}

/* ---- The queue ---- */

int bide_segment_queue_init_(bide_segment_queue_ *queue, bide_hazard_domain *domain,
                             bide_allocator *allocator, size_t cells, size_t stride, size_t size)
{
    queue->domain = domain;
    queue->allocator = allocator;
    queue->cells = cells;
    queue->stride = stride;
    queue->size = size;
    if (cells == 0 || cells > SIZE_MAX / 4 / stride)
        return -EINVAL;
    bide_segment_ *first = segment_create(queue);
    bide_atomic_init(&queue->head, first);
    bide_atomic_init(&queue->tail, first);
    return first != NULL ? 0 : -ENOMEM;
}

void bide_segment_queue_visit_(bide_segment_queue_ *queue,
                               void (*function)(void *argument, void *element), void *argument)
{
    /* relaxed, all: no thread uses the queue any more, so all uses happened before. */
    bide_segment_ *segment = (bide_segment_ *)bide_atomic_load(&queue->head, relaxed);
    while (segment != NULL && segment != &closed) {
        size_t end = cells_of(queue, bide_atomic_load(&segment->pushed, relaxed));
        for (size_t i = bide_atomic_load(&segment->popped, relaxed); i < end; i++) {
            unsigned char *cell = bide_segment_cell_(segment, i, queue->stride);
            if (bide_atomic_load(bide_segment_state_(cell, queue->size), relaxed) ==
                BIDE_CELL_FULL_)
                function(argument, cell);
        }
        segment = (bide_segment_ *)bide_atomic_load(&segment->next, relaxed);
    }
}

void bide_segment_queue_destroy_(bide_segment_queue_ *queue)
{
    /* relaxed: no thread uses the queue any more, so all uses happened before. */
    bide_segment_ *segment = (bide_segment_ *)bide_atomic_load(&queue->head, relaxed);
    while (segment != NULL && segment != &closed) {
        bide_segment_ *next = (bide_segment_ *)bide_atomic_load(&segment->next, relaxed);
        segment_free(segment);
        segment = next;
    }
}
