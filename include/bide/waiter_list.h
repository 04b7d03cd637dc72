/*
 * The list of waiting operations that every primitive shares: one word, pushed onto by anybody, taken
 * as a whole. Floor: sync.
 *
 *     word   EMPTY (0)   nobody waits
 *            SHUT (1)    nobody may wait any more: the event is set, the barrier is closed
 *            pointer     the newest waiter; `link` leads to older ones
 *
 *            push: EMPTY, pointer -> pointer      (refused when SHUT)
 *            take: pointer -> EMPTY
 *            shut: EMPTY, pointer -> SHUT         reopen: SHUT -> EMPTY
 *
 * Threads: all of it from any thread. push and take are lock-free, shut is wait-free.
 *
 * Why ABA does no harm here. A compare-exchange that finds an old pointer again after it was taken and
 * pushed anew draws no conclusion from what the pointer leads to:
 *   1. push writes the head that it found into its own node and asserts no more than "this is the head
 *      now"; that is true at the moment of the exchange, whatever happened since the head was read.
 *   2. take removes everything; it reads the links only after the exchange, when the chain is its own.
 * Where single nodes are popped, the popper would have read head->link before the exchange, and the
 * link could be stale: that is the case that needs counts or hazard pointers, and it is not here.
 *
 * Memory orders. The caller passes the order that its own argument needs; at least:
 *   3. push releases on success, so that the taker sees the nodes and the frames behind them (partner:
 *      the acquire of take and shut). It acquires on failure because it may find SHUT, and what was
 *      written before the shutting (the value that an event announces) is about to be used.
 *   4. take and shut acquire (partner: the release of push). All modifications after a push are
 *      exchanges, so they continue its release sequence: a taker synchronises with every push whose
 *      node it takes, not only with the newest.
 *   5. shut releases too (partner: whoever finds SHUT by an acquiring load or a failed push). take does not:
 *      who pushes onto its EMPTY learns nothing from it.
 */
#ifndef BIDE_WAITER_LIST_H
#define BIDE_WAITER_LIST_H

#include "bide/frame.h"

BIDE_EXTERN_C_BEGIN

#define BIDE_LIST_EMPTY ((uintptr_t)0)
#define BIDE_LIST_SHUT  ((uintptr_t)1)

typedef struct bide_waiter_list {
    bide_atomic(uintptr_t) word;
} bide_waiter_list;

#define bide_waiter_list_init(list, shut) \
    bide_atomic_init(&(list)->word, (shut) ? BIDE_LIST_SHUT : BIDE_LIST_EMPTY)

/*
 * Pushes the chain from `first` to `last`; false, and nothing is changed but last->link, if the list is
 * shut. A macro only because the order is spelled by name: see 3 for what it must hold.
 */
#define bide_waiter_list_push(list, first, last, order, pushed)                                    \
    do {                                                                                           \
        uintptr_t bide_head_ = bide_atomic_load(&(list)->word, acquire);                           \
        do {                                                                                       \
            (pushed) = bide_head_ != BIDE_LIST_SHUT;                                               \
            (last)->link = (bide_awaiter *)bide_head_;                                             \
        } while ((pushed) && !bide_atomic_compare_exchange_weak(                                   \
                                 &(list)->word, &bide_head_, (uintptr_t)(first), order, acquire)); \
    } while (0)

/* Takes every waiter, newest first; NULL if there is none. */
BIDE_INLINE bide_awaiter *bide_waiter_list_take(bide_waiter_list *list)
{
    uintptr_t head = bide_atomic_load(&list->word, relaxed);
    while (head > BIDE_LIST_SHUT && !bide_atomic_compare_exchange_weak(
                                        &list->word, &head, BIDE_LIST_EMPTY, acquire, relaxed))
        ;
    return head > BIDE_LIST_SHUT ? (bide_awaiter *)head : NULL;
}

/* Shuts the list; takes every waiter, newest first, or NULL. Touches nothing of the list afterwards. */
BIDE_INLINE bide_awaiter *bide_waiter_list_shut(bide_waiter_list *list)
{
    uintptr_t head = bide_atomic_exchange(&list->word, BIDE_LIST_SHUT, acq_rel);
    return head > BIDE_LIST_SHUT ? (bide_awaiter *)head : NULL;
}

/* The chain turned round: oldest first, which is the order in which waiters are woken. */
BIDE_INLINE bide_awaiter *bide_awaiter_reverse(bide_awaiter *first)
{
    bide_awaiter *reversed = NULL;
    while (first != NULL) {
        bide_awaiter *next = first->link;
        first->link = reversed;
        reversed = first;
        first = next;
    }
    return reversed;
}

BIDE_EXTERN_C_END

#endif
