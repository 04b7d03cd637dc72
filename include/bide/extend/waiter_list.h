/*
 * A list of waiting operations: one word, pushed onto by any thread, and taken as a whole. For
 * authors of primitives that announce something to all waiters at once. Floor: sync.
 *
 *     bide_waiter_list_push_unless(&event->waiters, &own->listed, release, refused);    // suspend
 *     bide_wake_reversed(bide_waiter_list_shut(&event->waiters));                       // set
 *     bide_waiter_list_reopen(&event->waiters);                                         // reset
 *     bide_waiter_list_cancel(&event->waiters, &own->listed);                           // cancel
 *
 * Any thread may do any of this. Everything is lock-free, except shutting for good and withdrawing,
 * which wait for another thread that sweeps. A push is one exchange. Removing one waiter takes a
 * constant number of steps, for each call and each waiter that has arrived since the last one.
 *
 * A sweep takes the whole chain, ends some waiters, and puts the others back; identifiers call it a
 * sift. There is one sweeper at a time. Other threads leave their requests in the list's word.
 *
 * Some primitives announce a number without touching the list. Their waiters look at the number
 * again after they have enlisted: bide_biased_list and bide_waiter_list_suspend. Primitives that
 * hand something from one waiter to the next use a waiter_queue.h instead.
 *
 * The list may be freed when no wait is under way and nothing is being announced. The states of the
 * word, and why it is correct: docs/internals/waiter_list.md. Numbers and letters below refer to
 * that.
 */
#ifndef BIDE_EXTEND_WAITER_LIST_H
#define BIDE_EXTEND_WAITER_LIST_H

#include "bide/extend/fence.h"
#include "bide/extend/handshake.h"

BIDE_EXTERN_C_BEGIN

#define BIDE_LIST_EMPTY          ((uintptr_t)0)
#define BIDE_LIST_SHUT           ((uintptr_t)1)
#define BIDE_LIST_AGAIN_         ((uintptr_t)1)
#define BIDE_LIST_SWEEPING_      ((uintptr_t)2)
#define BIDE_LIST_LINKED_        ((uintptr_t)4)
#define BIDE_LIST_LEAVES_        ((uintptr_t)4)
#define BIDE_LIST_TAGS_          ((uintptr_t)7)
#define BIDE_LIST_REOPENED_      ((uintptr_t)8)
#define BIDE_LIST_SWEEPING_SHUT_ ((uintptr_t)16 | BIDE_LIST_SWEEPING_)
#define BIDE_LIST_WATCHED_       ((uintptr_t)24)
#define BIDE_LIST_CLOSED         ((uintptr_t)8 | BIDE_LIST_SHUT)
#define BIDE_LIST_SHUT_FOR_GOOD  ((uintptr_t)16 | BIDE_LIST_SHUT)

typedef struct bide_waiter_list {
    bide_atomic(uintptr_t) word;
} bide_waiter_list;

/*
 * Makes a list, shut or not. Its words are for the functions below.
 * Threads: before it is shared. Progress: wait-free.
 */
#define bide_waiter_list_init(list, shut) \
    bide_atomic_init(&(list)->word, (shut) ? BIDE_LIST_SHUT : BIDE_LIST_EMPTY)

/* The head of a waiter. Its address leaves room for the tags. */
typedef struct bide_listed {
    BIDE_ALIGNAS(8) bide_awaiter awaiter;
    bide_awaiter *newer; /* of the sifter: the next newer, or the oldest; NULL: not linked. 0 */
} bide_listed;

/* A list whose waiters look again: 8 to 14. Any number of announcers. */
typedef struct bide_biased_list {
    bide_waiter_list list;
    bide_atomic(uint32_t) unneeded; /* how often in a row it was watched for nothing; a hint */
} bide_biased_list;

/*
 * Makes such a list, not shut.
 * Threads: before it is shared. Progress: wait-free.
 */
#define bide_biased_list_init(biased)                       \
    do {                                                    \
        bide_waiter_list_init(&(biased)->list, false);      \
        bide_atomic_init(&(biased)->unneeded, (uint32_t)0); \
    } while (0)

/*
 * Whether a list with this word is shut, or closed.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bool bide_waiter_list_word_is_shut(uintptr_t word)
{
    return (word & BIDE_LIST_TAGS_) == BIDE_LIST_SHUT || word == BIDE_LIST_SWEEPING_SHUT_;
}

/*
 * Whether a list with this word is shut, or was shut when it was closed.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bool bide_waiter_list_word_is_set(uintptr_t word)
{
    return (word & (BIDE_LIST_TAGS_ | BIDE_LIST_CLOSED)) == BIDE_LIST_SHUT ||
           word == BIDE_LIST_SWEEPING_SHUT_;
}

/*
 * Is it empty, shut or closed, and not sifted? Then no thread holds a waiter of it that has not
 * ended.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bool bide_waiter_list_word_is_idle(uintptr_t word)
{
    return word == BIDE_LIST_EMPTY || word == BIDE_LIST_WATCHED_ ||
           (word & BIDE_LIST_TAGS_) == BIDE_LIST_SHUT;
}

/*
 * Whether there are waiters in it, or in the hands of a sifter that may put them back.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bool bide_waiter_list_word_has_waiters(uintptr_t word)
{
    return !bide_waiter_list_word_is_idle(word) && word != BIDE_LIST_SWEEPING_SHUT_;
}

/* The word after `waiter` was pushed onto it. */
BIDE_INLINE uintptr_t bide_waiter_list_pushed_(uintptr_t word, const bide_listed *waiter)
{
    /* LEAVES goes into the link; LINKED stays. */
    uintptr_t leaves = (word & BIDE_LIST_SWEEPING_) << 1;
    return (uintptr_t)waiter | (word & BIDE_LIST_TAGS_ & ~leaves);
}

/* The `link` of that waiter. */
BIDE_INLINE bide_awaiter *bide_waiter_list_link_(uintptr_t word)
{
    return (bide_awaiter *)(word & ~(BIDE_LIST_TAGS_ ^ BIDE_LIST_LEAVES_));
}

/*
 * Pushes a waiter that begins to wait; `refused` is then 0. If the list is shut or closed,
 * `refused` is its word. A macro only because the order is spelled by name: see 3 for what it must
 * hold.
 * Threads: any. Suspends: never. Progress: lock-free.
 */
#define bide_waiter_list_push_unless(list, waiter, order, refused)                         \
    do {                                                                                   \
        bide_listed *bide_pushed_ = (waiter);                                              \
        uintptr_t bide_head_ = bide_atomic_load(&(list)->word, acquire);                   \
        bide_pushed_->newer = NULL;                                                        \
        while (!bide_waiter_list_word_is_shut(bide_head_)) {                               \
            bide_pushed_->awaiter.link = bide_waiter_list_link_(bide_head_);               \
            if (bide_atomic_compare_exchange_weak(                                         \
                    &(list)->word, &bide_head_,                                            \
                    bide_waiter_list_pushed_(bide_head_, bide_pushed_), order, acquire)) { \
                bide_head_ = 0;                                                            \
                break;                                                                     \
            }                                                                              \
            if (!bide_waiter_list_word_is_shut(bide_head_))                                \
                bide_atomic_retry();                                                       \
        }                                                                                  \
        (refused) = bide_head_;                                                            \
    } while (0)

/*
 * The same; `pushed` says whether it was.
 * Threads: any. Suspends: never. Progress: lock-free.
 */
#define bide_waiter_list_push(list, waiter, order, pushed)                 \
    do {                                                                   \
        uintptr_t bide_rejected_;                                          \
        bide_waiter_list_push_unless(list, waiter, order, bide_rejected_); \
        (pushed) = bide_rejected_ == 0;                                    \
    } while (0)

typedef struct bide_sweep_ops bide_sweep_ops;

/* The rules where waiters are judged by nothing: for what is cancelled. */
extern const bide_sweep_ops bide_sweep_cancelled;

/*
 * For a shutting that finds a sifter: what was pushed while that one sifts, cut off from REOPENED.
 * The named waiters have left.
 */
bide_awaiter *bide_waiter_list_cut_(uintptr_t word);

/*
 * Makes a list with this word, which is LINKED, plain, and returns its word.
 * Threads: any. Progress: lock-free, linear in the waiters.
 */
uintptr_t bide_waiter_list_make_plain_(bide_waiter_list *list, uintptr_t word,
                                       const bide_sweep_ops *rules, void *context);

/* Whether a list with this word is to be made plain before the chain is taken. */
BIDE_INLINE bool bide_waiter_list_word_is_linked_(uintptr_t word)
{
    return (word & (BIDE_LIST_SWEEPING_ | BIDE_LIST_LINKED_)) == BIDE_LIST_LINKED_;
}

/* bide_waiter_list_shut for waiters that are judged. */
BIDE_INLINE bide_awaiter *bide_waiter_list_shut_judged_(bide_waiter_list *list,
                                                        const bide_sweep_ops *rules, void *context)
{
    /*
     * The first guess is that there is no waiter. A look would fetch the line twice, to read and to
     * write.
     */
    uintptr_t head = BIDE_LIST_EMPTY;
    uintptr_t shut = BIDE_LIST_SHUT;
    bool again = false;
    while (!bide_atomic_compare_exchange(&list->word, &head, shut, acq_rel, relaxed)) {
        if (again)
            bide_atomic_retry();
        again = true;
        if (BIDE_UNLIKELY(bide_waiter_list_word_is_linked_(head))) {
            head = bide_waiter_list_make_plain_(list, head, rules, context);
            again = false;
        }
        if (head == BIDE_LIST_CLOSED || head == BIDE_LIST_SHUT_FOR_GOOD)
            return NULL;
        shut = (head & BIDE_LIST_SWEEPING_) != 0 ? BIDE_LIST_SWEEPING_SHUT_ : BIDE_LIST_SHUT;
    }
    if (BIDE_UNLIKELY((head & BIDE_LIST_SWEEPING_) != 0))
        return bide_waiter_list_cut_(head);
    return head > BIDE_LIST_WATCHED_ ? (bide_awaiter *)head : NULL;
}

/*
 * Opens a list that is shut, but not for good; does nothing otherwise. The caller then sees what
 * was written before each shutting that it undoes.
 * Threads: any. Suspends: never. Progress: lock-free.
 */
BIDE_INLINE void bide_waiter_list_reopen(bide_waiter_list *list)
{
    uintptr_t word = BIDE_LIST_SHUT;
    uintptr_t open = BIDE_LIST_EMPTY;
    /*
     * acquire: 5, also of a shutting that found the list shut already and shut it again. If it
     * fails, nothing was undone.
     */
    while (!bide_atomic_compare_exchange(&list->word, &word, open, acquire, relaxed) &&
           (word == BIDE_LIST_SHUT || word == BIDE_LIST_SWEEPING_SHUT_))
        open = word == BIDE_LIST_SHUT ? BIDE_LIST_EMPTY : BIDE_LIST_SWEEPING_ | BIDE_LIST_REOPENED_;
}

/*
 * The rules of a primitive for its waiters, for the sifters of its list. The functions share
 * `context`, a few words on the sifter's stack.
 */
struct bide_sweep_ops {
    /*
     * Before waiters are looked at, each time: loads what they are judged by into `context`,
     * seq_cst (B, and 13). NULL: they are judged by nothing, and end when the list is shut, with
     * what their `resume` says.
     */
    void (*look)(void *context);

    /*
     * Has what `awaiter` waits for come, as far as `look` saw? It may be another thread's by now:
     * reads nothing of it that changes while it waits. NULL: with `look`.
     */
    bool (*is_due)(const void *context, const bide_awaiter *awaiter);

    /*
     * `awaiter` ends: writes its results. If it was not due, it ends as one that is asked to stop,
     * or with -EPIPE, whatever this does. NULL: there are none.
     */
    void (*end)(void *context, bide_awaiter *awaiter);

    /*
     * Track the nearest target. A sifter that finds that none is reached looks only at the waiters
     * that have come since the last one. `forget`: none is kept. `keep`: `awaiter` is kept, as far
     * as `look` saw when it was linked. `reaches`: whether a waiter that was kept since `forget`
     * may have become due, as far as `look` saw. True if in doubt: one of them may not be there any
     * more. The memory that they write belongs to `context`'s object, and to the sifter. All NULL:
     * true.
     */
    void (*discard)(void *context);
    void (*keep)(void *context, const bide_awaiter *awaiter);
    bool (*reaches)(const void *context);

    /* They are bide_list_waiters, suspended by bide_waiter_list_suspend. */
    bool looks_again;
};

/*
 * Shuts the list; takes every waiter, newest first, or NULL. Touches nothing of the list
 * afterwards.
 * Threads: any. Suspends: never. Progress: lock-free; linear in the waiters, if some are linked.
 */
BIDE_INLINE bide_awaiter *bide_waiter_list_shut(bide_waiter_list *list)
{
    return bide_waiter_list_shut_judged_(list, &bide_sweep_cancelled, NULL);
}

/*
 * Shuts the list for good; takes every waiter, newest first, or NULL; they end with -EPIPE. Touches
 * nothing of the list afterwards. It waits for a sifter: what that one holds is to be ended by what
 * came before the close.
 * Threads: any. Suspends: never. Progress: blocks while another thread sifts.
 */
BIDE_INLINE bide_awaiter *bide_waiter_list_shut_for_good(bide_waiter_list *list)
{
    uintptr_t word = bide_atomic_load(&list->word, relaxed);
    for (;;) {
        if (BIDE_UNLIKELY((word & BIDE_LIST_SWEEPING_) != 0)) {
            bide_platform.yield();
            word = bide_atomic_load(&list->word, relaxed);
        } else if (BIDE_UNLIKELY(bide_waiter_list_word_is_linked_(word))) {
            word = bide_waiter_list_make_plain_(list, word, &bide_sweep_cancelled, NULL);
        } else if (word == BIDE_LIST_CLOSED || word == BIDE_LIST_SHUT_FOR_GOOD) {
            return NULL;
        } else {
            uintptr_t closed = word == BIDE_LIST_SHUT ? BIDE_LIST_SHUT_FOR_GOOD : BIDE_LIST_CLOSED;
            /* acquire: 4; release: 5. */
            if (bide_atomic_compare_exchange(&list->word, &word, closed, acq_rel, relaxed))
                return closed == BIDE_LIST_CLOSED ? (bide_awaiter *)word : NULL;
        }
    }
}

/* The head of a waiter whose suspend looks again when it has enlisted. */
typedef struct bide_list_waiter {
    bide_listed listed;
    bide_handshake handshake; /* 12 */
} bide_list_waiter;

/*
 * The `suspend` of such a waiter: looks for a while (bide_spin_until_ready), enlists `own`, and looks again.
 * Returns `frame` if the wait has ended, or NULL. `rules` look again; `context` is for look.
 * Threads: the awaiting coroutine's. Progress: lock-free, linear in the waiters.
 */
bide_frame *bide_waiter_list_suspend(bide_biased_list *biased, bide_list_waiter *own,
                                     bide_frame *frame, const bide_sweep_ops *rules, void *context);

/*
 * For an announcer, which has just stored (release) what waiters look at: the word of the list. If
 * it is more than BIDE_LIST_SHUT, bide_waiter_list_announce is to be called with it. It has no full
 * fence.
 * Threads: any. Suspends: never. Progress: wait-free.
 */
BIDE_INLINE uintptr_t bide_biased_list_peek(bide_biased_list *biased)
{
    bide_atomic_fence_light();                            /* L */
    return bide_atomic_load(&biased->list.word, relaxed); /* D */
}

/*
 * Ends and wakes the waiters that are due; or asks another sifter to look again.
 * Threads: any. Suspends: never. Progress: lock-free, linear in the waiters; if the rules know that
 * none of them is reached, linear in the waiters that have come since the last time.
 */
void bide_waiter_list_announce(bide_biased_list *biased, uintptr_t word,
                               const bide_sweep_ops *rules, void *context);

/*
 * For `cancel`: removes `waiter`, ends it and wakes it, or has another sifter do so; nothing if it
 * is not there. A constant number of steps for each call and each waiter that has come since the
 * last one, except waiters that another thread sifts meanwhile.
 * Threads: any. Suspends: never. Progress: lock-free.
 */
void bide_waiter_list_sweep_cancelled(bide_waiter_list *list, bide_listed *waiter,
                                      const bide_sweep_ops *rules, void *context);

/*
 * For `withdraw`: removes `waiter`; false if it is not there: it has been taken to be ended. Costs
 * what bide_waiter_list_sweep_cancelled does.
 * Threads: any. Suspends: never. Progress: blocks while another thread sifts.
 */
bool bide_waiter_list_sweep(bide_waiter_list *list, bide_listed *waiter,
                            const bide_sweep_ops *rules, void *context);

/*
 * Shuts the list, and ends and wakes all waiters: due ones with 0, the others with
 * -EPIPE. Touches nothing of the list afterwards, nor of what is beside it if there was no waiter.
 * Threads: any. Suspends: never. Progress: lock-free, linear in the waiters.
 */
void bide_waiter_list_close(bide_waiter_list *list, const bide_sweep_ops *rules, void *context);

/*
 * `cancel` and `withdraw` where waiters are judged by nothing.
 * Threads: any. Suspends: never. Progress: as bide_waiter_list_sweep_cancelled and
 * bide_waiter_list_sweep.
 */
BIDE_INLINE void bide_waiter_list_cancel(bide_waiter_list *list, bide_listed *waiter)
{
    bide_waiter_list_sweep_cancelled(list, waiter, &bide_sweep_cancelled, NULL);
}

BIDE_INLINE bool bide_waiter_list_withdraw(bide_waiter_list *list, bide_listed *waiter)
{
    return bide_waiter_list_sweep(list, waiter, &bide_sweep_cancelled, NULL);
}

/*
 * The chain turned round: oldest first, which is the order in which waiters are woken.
 * Threads: the chain's owner's. Progress: wait-free, linear in the waiters.
 */
BIDE_INLINE bide_awaiter *bide_awaiter_reverse(bide_awaiter *first)
{
    bide_awaiter *reversed = NULL;
    while (first != NULL) {
        bide_awaiter *next = first->link;
        bide_awaiter_prefetch(next);
        first->link = reversed;
        reversed = first;
        first = next;
    }
    return reversed;
}

BIDE_EXTERN_C_END

#endif
