/*
 * The wheel of timers: levels of slots, each slot a list of trees (timer_tree.h).
 *
 *     a time   ...0110 | 101100 | 000111 | 110101 | the finest bits, which choose no slot
 *                        digit 2  digit 1  digit 0
 *
 *     level 0   times that differ from `base` in digit 0 at most: a slot for each digit 0
 *     level k   the highest digit in which they differ from `base` is k: a slot for each digit k
 *
 * A time before `base` counts as `base`. Times of one slot may differ below its digit.
 * A timer that is added to a slot is a tree of its own. The trees are melded into one, which has the
 * timers in their exact order, when the slot's earliest timer is needed and not known.
 *
 *     a slot --> 3 --link--> 9 --link--> 4 --link--> 5        the front is the earliest
 *     a slot --> 9 --link--> 4 --link--> 5                    mixed: the front was removed
 *     a slot --> 4 --child--> 5 --link--> 9                   melded, when it was the first slot
 *
 * 1. A slot comes before another of its level if its digit is less, and before all of higher
 *    levels: up to digit k - 1 those of level k agree with nothing, but in digit k they are greater
 *    than `base`, with which all lower levels agree there. So the earliest timer is in the lowest
 *    slot of the lowest level that has any. `first` is that timer.
 * 2. The base moves forward only, to a time T before which no timer is left. The timers that change
 *    their slot because of that are in one slot: the slot of T, at the level of T. Lower levels are
 *    empty, because their timers were before T. Slots of higher levels, and the others of this level,
 *    are the same for T as for `base`. So that slot is spread: each of its timers is inserted anew
 *    with base T, at a lower level, because all agree with T in the digit of the slot.
 * 3. So a timer moves once per level at most, and only when its level's turn comes. A timer that is
 *    removed before that was moved rarely or never. One that is alone in its slot when it is due is taken from there:
 *    no timer would be left to move.
 * 4. A timer that is before `base` when it is inserted is in the slot of `base` at level 0, and first
 *    there, so the next look takes it. The base does not move while it is there, by 2.
 *
 * 5. The front of a slot is the earliest in it, unless the slot is mixed. A timer that is added goes
 *    before a front that is later, and otherwise behind it; so that stays true. Removing the front
 *    makes the slot mixed. Only the first slot is searched, when `first` was removed; it is melded if
 *    it is mixed, which makes its root the front.
 * 6. Each timer is melded as a tree of its own once per slot at most, so melding costs what adding to
 *    a heap would have cost.
 *
 * 7. A finest slot that is due as a whole is not taken timer by timer: its timers are distributed by the
 *    next bits of their times, and again if many share these, and each list of a few is sorted. So each is
 *    touched some times for that, where a heap would touch as many as the logarithm of their number. Those
 *    before the slot, which are in it by 4, go before all others.
 *
 * 8. A timer without children keeps a hint in `child`, with TIMER_HINT set: the address of the timer that a walk of its
 *    slot meets HINTS_AHEAD timers later. A walk fetches the memory there meanwhile, since the timers of a long list are
 *    far apart in memory. Hints are set when a slot of many is spread, and those of a timer that is added are NULL. A
 *    hint is never read through, and changes nothing else: the timer may have been moved, or removed and freed. While
 *    they are set, the last timers of each digit are on the stack, in some 4 KB. So freestanding builds set none.
 *
 * So a timer that is added and removed before its slot's turn comes is linked into a list and unlinked
 * again, in constant time: each changes the timer and its two neighbours. When it is added those are
 * the front and the timer added before it, which are in the processor's cache. With a million timers
 * nothing else counts.
 *
 * Source: Varghese and Lauck, "Hashed and hierarchical timing wheels", 1987; with the pairing heap
 * in place of their lists, whose times are rounded.
 */
#include "timer_tree.h"
#include "timers_some.h"

enum { DIGIT = BIDE_TIMERS_DIGIT_, SLOTS = BIDE_TIMERS_SLOTS_, FINEST = BIDE_TIMERS_FINEST_ };

BIDE_STATIC_ASSERT(SLOTS <= 64 && BIDE_TIMERS_LEVELS_ <= 32, "their bits are in one word each");

/* For `bits` other than 0. In halves on 32-bit processors: without the compiler's helper functions. */
static unsigned lowest_bit(uint64_t bits)
{
#if UINTPTR_MAX > UINT32_MAX
    return (unsigned)__builtin_ctzll(bits);
#else
    uint32_t low = (uint32_t)bits;
    return low != 0 ? (unsigned)__builtin_ctzl(low)
                    : 32u + (unsigned)__builtin_ctzl((uint32_t)(bits >> 32));
#endif
}

static unsigned highest_bit(uint64_t bits)
{
#if UINTPTR_MAX > UINT32_MAX
    return 63u - (unsigned)__builtin_clzll(bits);
#else
    uint32_t high = (uint32_t)(bits >> 32);
    return high != 0 ? 63u - (unsigned)__builtin_clzl(high)
                     : 31u - (unsigned)__builtin_clzl((uint32_t)bits);
#endif
}

static unsigned level_of(uint64_t base, uint64_t time)
{
    uint64_t differ = (base ^ time) >> FINEST;
    return differ != 0 ? highest_bit(differ) / DIGIT : 0;
}

static unsigned digit_of(uint64_t time, unsigned level)
{
    return (unsigned)(time >> (FINEST + level * DIGIT)) % SLOTS;
}

/* Adds a timer that has no children to its slot: 5. Returns its digit. */
static unsigned timers_add(bide_timers *timers, bide_timer *timer)
{
    uint64_t time = timer->time > timers->base ? timer->time : timers->base;
    unsigned level = level_of(timers->base, time);
    unsigned digit = digit_of(time, level);
    uint64_t bit = UINT64_C(1) << digit;
    bide_awaiter **place = &timers->slots[level][digit];
    if (BIDE_UNLIKELY((timers->slots_used[level] & bit) == 0)) {
        timers->levels |= UINT32_C(1) << level;
        timers->slots_used[level] |= bit;
        timers->slots_mixed[level] &= ~bit;
        *place = NULL;
    } else if (BIDE_LIKELY(comes_before(timer_of(*place), timer)))
        place = &(*place)->link;
    timer_tree_put(&timer->awaiter.link, *place);
    timer_tree_put(place, &timer->awaiter);
    return digit;
}

static void mark_empty(bide_timers *timers, unsigned level, unsigned digit)
{
    timers->slots_used[level] &= ~(UINT64_C(1) << digit);
    if (timers->slots_used[level] == 0)
        timers->levels &= ~(UINT32_C(1) << level);
}

/* The front of the first slot, which is melded if it is mixed: 1, 5. */
static bide_awaiter *find_first(bide_timers *timers)
{
    if (timers->levels == 0)
        return NULL;
    unsigned level = lowest_bit(timers->levels);
    unsigned digit = lowest_bit(timers->slots_used[level]);
    uint64_t bit = UINT64_C(1) << digit;
    bide_awaiter **slot = &timers->slots[level][digit];
    if ((timers->slots_mixed[level] & bit) != 0) {
        timers->slots_mixed[level] &= ~bit;
        bide_timer *root = meld_all(*slot);
        root->awaiter.link = NULL;
        timer_tree_put(slot, &root->awaiter);
    }
    return *slot;
}

bool bide_timers_insert(bide_timers *timers, bide_timer *timer)
{
    timer->number = timers->inserted++;
    timer->child = NULL;
    timers_add(timers, timer);
    bool is_first = timers->first == NULL || timer->time < bide_timer_time_(timers->first);
    if (is_first)
        timers->first = &timer->awaiter;
    return is_first;
}

static void front_removed(bide_timers *timers, unsigned level, unsigned digit)
{
    if (timers->slots[level][digit] == NULL)
        mark_empty(timers, level, digit);
    else
        timers->slots_mixed[level] |= UINT64_C(1) << digit;
}

static void remove_set(bide_timers *timers, bide_timer *timer)
{
    bide_awaiter **place = timer->place;
    tree_remove(timer);
    size_t slot = ((uintptr_t)place - (uintptr_t)timers->slots) / sizeof *place;
    if (slot < sizeof timers->slots / sizeof *place)
        front_removed(timers, (unsigned)slot / SLOTS, (unsigned)slot % SLOTS);
    if (timers->first == &timer->awaiter)
        timers->first = find_first(timers);
}

bool bide_timers_remove(bide_timers *timers, bide_timer *timer)
{
    if (timer->place == NULL)
        return false;
    remove_set(timers, timer);
    return true;
}

/* ---- Hints, which timers to fetch from memory: 8 ---- */

enum { HAS_HINTS = __STDC_HOSTED__, HINTS_AHEAD = 8, HINTS_FEW = 64 };

/* The timers that were added last, of each digit. */
typedef struct timer_hints {
    bide_awaiter *added[SLOTS][HINTS_AHEAD];
    uint8_t next[SLOTS];
} timer_hints;

static void hints_init(timer_hints *hints)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        hints->next[i] = 0;
        for (unsigned k = 0; k < HINTS_AHEAD; k++)
            hints->added[i][k] = NULL;
    }
}

/* The timer was added: its hint is the one that a walk of its slot meets HINTS_AHEAD timers later. */
static void hints_set(timer_hints *hints, unsigned digit, bide_timer *timer)
{
    bide_awaiter **added = &hints->added[digit][hints->next[digit]];
    hints->next[digit] = (hints->next[digit] + 1) % HINTS_AHEAD;
    timer->child = (bide_awaiter *)((uintptr_t)*added | TIMER_HINT);
    *added = &timer->awaiter;
}

/* Only its address is used: that timer may have ended, and its memory may be gone. */
BIDE_INLINE void hint_follow(const bide_timer *timer)
{
    uintptr_t hint = (uintptr_t)timer->child & ~(uintptr_t)TIMER_HINT;
    if (hint == 0)
        return;
    BIDE_PREFETCH(hint);
    BIDE_PREFETCH(hint + offsetof(bide_timer, place)); /* it may be in two lines */
}

/*
 * Takes a timer that has no children from the front. A timer that has children stays until all its children, one by one,
 * have been put in front of it and taken.
 */
BIDE_INLINE bide_timer *take_leaf(bide_awaiter **front)
{
    bide_timer *timer = timer_of(*front);
    for (bide_awaiter *child; (child = timer_children(timer)) != NULL; timer = timer_of(child)) {
        timer->child = child->link;
        child->link = *front;
        *front = child;
    }
    *front = timer->awaiter.link;
    return timer;
}

/* timers_spread of many. */
static BIDE_NOINLINE void timers_spread_many(bide_timers *timers, bide_awaiter *front)
{
    timer_hints hints;
    hints_init(&hints);
    while (front != NULL) {
        bide_timer *timer = take_leaf(&front);
        hint_follow(timer);
        timer->child = NULL;
        hints_set(&hints, timers_add(timers, timer), timer);
    }
}

/* Adds each timer of a slot anew. */
static void timers_spread(bide_timers *timers, bide_awaiter *front)
{
    for (unsigned i = 0; front != NULL; i++) {
        if (HAS_HINTS && i == HINTS_FEW) {
            timers_spread_many(timers, front);
            return;
        }
        bide_timer *timer = take_leaf(&front);
        timer->child = NULL;
        timers_add(timers, timer);
    }
}

/* The front of a slot: whether no other timer is in it. */
static bool has_one(const bide_awaiter *front)
{
    return front->link == NULL &&
           timer_children(bide_container_of(front, bide_timer, awaiter)) == NULL;
}

/* Moves the base forward to `time`, before which there is no timer. */
static void move_base(bide_timers *timers, uint64_t time)
{
    unsigned level = level_of(timers->base, time);
    unsigned digit = digit_of(time, level);
    timers->base = time;
    if (level == 0 || (timers->slots_used[level] >> digit & 1) == 0)
        return;
    mark_empty(timers, level, digit);
    timers_spread(timers, timers->slots[level][digit]); /* 2 */
}

/* ---- A slot that is due as a whole: 7 ---- */

enum { BUCKETS = 64, BUCKET_BITS = 6, BUCKET_FEW = 64 };

/* Lists of timers that are set nowhere, by BUCKET_BITS bits of their times. */
typedef struct timer_buckets {
    bide_awaiter *lists[BUCKETS];
    uint32_t counts[BUCKETS];
} timer_buckets;

static void buckets_init(timer_buckets *buckets)
{
    for (unsigned i = 0; i < BUCKETS; i++) {
        buckets->lists[i] = NULL;
        buckets->counts[i] = 0;
    }
}

static void buckets_add(timer_buckets *buckets, unsigned shift, bide_awaiter *awaiter)
{
    unsigned i = (unsigned)(timer_of(awaiter)->time >> shift) % BUCKETS;
    awaiter->link = buckets->lists[i];
    buckets->lists[i] = awaiter;
    buckets->counts[i]++;
}

static bide_awaiter *merge_sorted(bide_awaiter *a, bide_awaiter *b)
{
    bide_awaiter *merged = NULL;
    bide_awaiter **place = &merged;
    while (a != NULL && b != NULL) {
        bide_awaiter **from = comes_before(timer_of(a), timer_of(b)) ? &a : &b;
        *place = *from;
        place = &(*from)->link;
        *from = *place;
    }
    *place = a != NULL ? a : b;
    return merged;
}

/* Appends a list of one timer at least, sorted. */
static void append_list_sorted(bide_awaiter_chain *due, bide_awaiter *list)
{
    enum { PARTS = 32 };
    bide_awaiter *parts[PARTS]; /* part i: NULL, or a sorted list of 2^i; the last may be longer */
    unsigned used = 0;
    while (list != NULL) {
        bide_awaiter *part = list;
        unsigned i = 0;
        list = list->link;
        part->link = NULL;
        for (; i < used && parts[i] != NULL; i++) {
            part = merge_sorted(parts[i], part);
            parts[i] = NULL;
        }
        if (i == used && used < PARTS)
            used++;
        parts[i < PARTS ? i : PARTS - 1] = part;
    }
    bide_awaiter *sorted = NULL;
    for (unsigned i = 0; i < used; i++)
        sorted = merge_sorted(parts[i], sorted);
    bide_awaiter *last = sorted;
    while (last->link != NULL)
        last = last->link;
    bide_awaiter_chain_append(due, sorted, last);
}

/*
 * Appends the timers of all buckets, sorted; they were distributed by the bits from `shift` on, and agree in
 * the higher ones. It calls itself for fewer bits: FINEST / BUCKET_BITS deep at most.
 */
/* NOLINTNEXTLINE(misc-no-recursion) */
static void append_buckets(bide_awaiter_chain *due, const timer_buckets *buckets, unsigned shift)
{
    for (unsigned i = 0; i < BUCKETS; i++) {
        bide_awaiter *list = buckets->lists[i];
        if (list == NULL)
            continue;
        if (buckets->counts[i] <= BUCKET_FEW || shift < BUCKET_BITS) {
            append_list_sorted(due, list);
            continue;
        }
        timer_buckets finer;
        buckets_init(&finer);
        for (bide_awaiter *next; list != NULL; list = next) {
            next = list->link;
            buckets_add(&finer, shift - BUCKET_BITS, list);
        }
        append_buckets(due, &finer, shift - BUCKET_BITS);
    }
}

/* The timers of a slot, taken from it: a list of a few, or in buckets. */
typedef struct taken_slot {
    bide_awaiter *few;
    size_t count;
    timer_buckets buckets; /* set up if there are more than BUCKET_FEW */
} taken_slot;

enum { SLOT_SHIFT = FINEST - BUCKET_BITS };

static void taken_slot_add(taken_slot *slot, bide_awaiter *awaiter)
{
    if (slot->count++ < BUCKET_FEW) {
        awaiter->link = slot->few;
        slot->few = awaiter;
        return;
    }
    if (slot->count == BUCKET_FEW + 1) {
        buckets_init(&slot->buckets);
        for (bide_awaiter *next, *one = slot->few; one != NULL; one = next) {
            next = one->link;
            buckets_add(&slot->buckets, SLOT_SHIFT, one);
        }
    }
    buckets_add(&slot->buckets, SLOT_SHIFT, awaiter);
}

/* Takes the whole slot of the base, which has a timer, at level 0. Returns how many those are. */
static size_t take_slot(bide_timers *timers, bide_awaiter_chain *due)
{
    uint64_t begin = timers->base >> FINEST << FINEST;
    unsigned digit = digit_of(timers->base, 0);
    bide_awaiter *front = timers->slots[0][digit];
    bide_awaiter *before = NULL; /* the slot: 4 */
    size_t count = 0;
    taken_slot slot;
    slot.few = NULL;
    slot.count = 0;
    while (front != NULL) {
        bide_timer *timer = take_leaf(&front);
        hint_follow(timer);
        timer->place = NULL;
        count++;
        if (timer->time >= begin) {
            taken_slot_add(&slot, &timer->awaiter);
        } else {
            timer->awaiter.link = before;
            before = &timer->awaiter;
        }
    }
    mark_empty(timers, 0, digit);
    timers->first = find_first(timers);
    if (before != NULL)
        append_list_sorted(due, before);
    if (slot.count > BUCKET_FEW)
        append_buckets(due, &slot.buckets, SLOT_SHIFT);
    else if (slot.count != 0)
        append_list_sorted(due, slot.few);
    return count;
}

size_t bide_timers_take_some_(bide_timers *timers, uint64_t now, bide_awaiter_chain *due,
                              size_t few)
{
    const uint64_t within = (UINT64_C(1) << FINEST) - 1;
    bide_awaiter *first;
    uint64_t time;
    size_t count = 0;
    while ((time = bide_timer_time_(first = timers->first)) <= now && time != BIDE_FOREVER) {
        if (count >= few)
            return count;
        if (!has_one(first)) {
            if (time > timers->base)
                move_base(timers, time);
            if ((timers->base | within) < now) {
                count += take_slot(timers, due);
                continue;
            }
        }
        remove_set(timers, timer_of(first));
        first->link = NULL;
        bide_awaiter_chain_append(due, first, first);
        count++;
    }
    if (now > timers->base)
        move_base(timers, now);
    return count;
}

void bide_timers_take_due(bide_timers *timers, uint64_t now, bide_awaiter_chain *due)
{
    bide_timers_take_some_(timers, now, due, SIZE_MAX);
}
