/*
 * A list of waiting operations: one word, pushed onto by any thread, and taken as a whole. For
 * authors of primitives that tell something to all waiters at once. Floor: sync.
 *
 *     bide_waiter_list_push_unless(&event->waiters, &own->listed, release, refused);    // suspend
 *     bide_wake_reversed(bide_waiter_list_shut(&event->waiters));                       // set
 *     bide_waiter_list_reopen(&event->waiters);                                         // reset
 *     bide_waiter_list_cancel(&event->waiters, &own->listed);                           // cancel
 *
 * Any thread may do any of this. All is lock-free, but for shutting for good and withdrawing, which
 * wait for another thread that is sifting. A push is one exchange. One waiter is removed in a
 * constant number of steps, for each call and each waiter that has come since the last one.
 *
 * Where things come without the list, as numbers that are announced do, waiters look again: see
 * "Waiters that look again" below, and bide_waiter_list_suspend. What is handed from one to the
 * next has a waiter_queue.h instead.
 *
 * The list may be freed when no wait is under way and nothing is being announced. A sifter uses the
 * list until it has put back. It is the canceller of a wait that is under way until that canceller
 * has returned, or it is announcing or shutting. Shutting touches nothing after the list can be
 * seen to be shut by it: what it does to linked waiters comes before.
 *
 * Why it is right: these are the states of the word.
 *
 *     word   EMPTY       no waiter
 *            SHUT        no more waiters are admitted: the event is set, the barrier is closed
 *            pointer     the newest waiter; `link` leads to older ones
 *
 *            push: EMPTY, pointer -> pointer      (refused when SHUT)
 *            shut: EMPTY, pointer -> SHUT         reopen: SHUT -> EMPTY
 *
 * A primitive that can be closed, and for which "shut" says something else, has two states for
 * good. Nothing changes the word again:
 *
 *            CLOSED           no more waiters are admitted; it was not shut
 *            SHUT_FOR_GOOD    it was shut, and stays so
 *
 *            close: EMPTY, pointer -> CLOSED      SHUT -> SHUT_FOR_GOOD
 *
 * To remove some waiters and keep the others is to sift. The sifter takes the chain, and the word
 * says so until the sifter has put back what stays, behind what has come since. There is one sifter
 * at a time. Another thread that has a reason to sift meanwhile leaves it in the word: as a request
 * to look at all again, or as the name of the one waiter that is to be removed.
 *
 *     word   SIFTING (bit 1) beside a pointer or nothing: what was pushed since the chain was taken
 *            AGAIN (bit 0)   beside SIFTING: the sifter is to look at all of them again
 *            LEAVES (bit 2)  beside SIFTING and a pointer: that leads not to a pushed waiter but to
 *                            one that is to be removed. What was pushed or named before is in its
 *                            bide_awaiter_next_leaving_. The same bit says so in each `link` or
 *                            next_leaving of this chain
 *            SIFTING_SHUT    the sifter is to let go what it holds: the list was shut
 *            REOPENED        in the place of the pointer, or as the last `link` of what was pushed
 *                            since: the same, but then the list was opened again
 *
 *            sift: pointer -> SIFTING             SIFTING, pointer -> SIFTING, AGAIN, pointer
 *            remove: pointer -> SIFTING           SIFTING, pointer -> SIFTING, LEAVES, waiter
 *            put back: SIFTING -> EMPTY, pointer; SIFTING, pointer -> SIFTING; SIFTING_SHUT -> SHUT
 *            push: SIFTING, pointer -> SIFTING, pointer
 *            shut: SIFTING, pointer -> SIFTING_SHUT     reopen: SIFTING_SHUT -> SIFTING, REOPENED
 *
 * A sifter links what it holds in the other direction too. `newer` leads from each waiter to the
 * next newer one, and from the newest to the oldest. So one waiter is removed by changing its
 * neighbours. Linking costs each waiter one step in all: what was pushed since the last sifter
 * stands in front of what that one had linked. A waiter's `newer` is NULL while no sifter has
 * linked it.
 *
 *     word   LINKED (bit 2)  beside a pointer, without SIFTING: some of the chain are linked
 *
 *            put back: SIFTING -> LINKED, pointer
 *            shut: LINKED, pointer -> SIFTING -> pointer (none is linked any more) -> SHUT
 *
 * Is a waiter in the chain that a sifter holds? It is if its `newer` is not NULL, and after linking
 * all of the chain only then.
 *
 * 0. `newer` is changed by sifters only, and is NULL in all that leave a sifter's hands but by
 *    being put back. Shutting takes the chain without looking at it, so it takes none that is
 *    linked: it sifts first, which makes them plain. So the holder of the chain holds all waiters
 *    of the list that are linked. When a waiter begins to wait its `newer` is NULL, for no other
 *    thread has it.
 *
 * Why ABA does no harm here. A compare-exchange that finds an old pointer again, after it was taken
 * and pushed anew, draws no conclusion from what the pointer leads to.
 *
 * 1. push writes the head that it found into its own node, and asserts no more than "this is the
 *    head now". That is true at the moment of the exchange, whatever happened since the head was
 *    read.
 * 2. shut and sift remove everything. They read the links only after the exchange, when the chain
 *    is their own. And SIFTING stays until its sifter takes it off, shut or not, so it is always
 *    the same sifter's.
 *
 * Where single nodes are popped, the popper would have read head->link before the exchange, and the
 * link could be stale. That is the case that needs counts or hazard pointers, and it is not here.
 *
 * Memory orders. The caller passes the order that its own argument needs; at least these.
 *
 * 3. push releases on success, so that the taker sees the nodes and the frames behind them
 *    (partner: the acquire of shut and sift). It acquires on failure because it may find SHUT: what
 *    was written before the shutting, such as the value that an event announces, is about to be
 *    used.
 * 4. shut and sift acquire (partner: the release of push). All modifications after a push are
 *    exchanges, so they continue its release sequence. So a taker synchronises with every push
 *    whose node it takes, not only with the newest.
 * 5. shut releases too. Its partners are the thread that finds SHUT by an acquiring load or a
 *    failed push, the one that opens the list again, and the sifter that finds SIFTING_SHUT or
 *    REOPENED and lets go of what it holds.
 * 6. Putting back releases the links of what stays, and each `newer` that was made NULL;
 *    SIFTING_SHUT -> SHUT does so too (partners: as 3, and the acquire of the next sifter).
 * 7. AGAIN is released, and the sifter acquires it. So the sifter sees the reason: the source that
 *    was asked to stop, the number that was published. No reason to remove a waiter is missed. The
 *    thread that has one modifies the word afterwards, and finds the waiter there, or SIFTING, or
 *    that the waiter has been taken to be ended.
 * 7a. A name is released by the exchange that puts it there. It is acquired by the thread that
 *     takes the chain that it is in: the sifter, which removes the waiter if it is in the chain, or
 *     another thread that shuts. In any case that thread says bide_awaiter_has_left_. Until then
 *     the gate of the waiter's source keeps it (stop.h, 5a), though it may end meanwhile. Naming is
 *     one exchange, after which the canceller touches the list no more.
 *
 * Waiters that look again. Some things come without the list: an announcer stores a number, and
 * looks whether there are waiters. Its waiters look at the number when they have enlisted
 * (bide_waiter_list_suspend). Neither must miss the other:
 *
 *     announcer:  N  store the number, release       waiter:  A  enlist, seq_cst
 *                 L  light fence                              H  heavy fence, if it came onto EMPTY
 *                 D  load the word                            B  look at the number, seq_cst
 *                 F  full fence, and again,                   M  if it came onto EMPTY: modify the
 *                    unless it was EMPTY or SHUT                 word
 *
 * Announcing is frequent and waiting seldom, so while there are no waiters the announcer has no
 * full fence (fence.h). Where waits are frequent too the heavy fence would cost more than that
 * saves. So such a list is biased one way or the other:
 *
 *     word   EMPTY     no waiter; announcers do not look closely, so a waiter that enlists needs
 *                      the heavy fence
 *            WATCHED   no waiter; announcers look with a full fence, as they do while one waits
 *
 *            enlist: EMPTY, WATCHED, pointer -> pointer; beside SIFTING as above
 *            put back: SIFTING -> WATCHED where other lists have EMPTY
 *            announcer: WATCHED -> EMPTY, when it was watched for nothing some times in a row
 *
 * 8. A waiter that enlists onto anything but EMPTY (A, B), and an announcer that gets to F: these
 *    are two full fences, one on each side, A and B being one. If B does not see N then F comes
 *    after A, and the look behind F finds the waiter, or something later: a thread that holds it
 *    (SIFTING), or that has ended it.
 * 9. A waiter that enlists onto EMPTY, and an announcer that looks at D only: if D does not see A
 *    then L comes before H, and B sees N. If the announcer gets to F: as 8, for H is a full fence
 *    too.
 * 10. A waiter that enlists onto anything but EMPTY, and an announcer whose D finds an EMPTY from
 *     before that, so that its F is not there. Of the waiters that came since that EMPTY, the first
 *     came onto it, and its heavy fence H covers all of them. L comes before that H, as in 9. So
 *     each look at the number after H sees N. The first waiter modifies the word after H, always
 *     (M). A waiter that enlisted before M is in the chain that M takes, or with a sifter, which M
 *     tells to look again, or has ended. In the first two cases it is looked at by a thread that
 *     comes after M. A waiter that enlisted after M has acquired M: A acquires, and between the two
 *     are only read-modify-writes. So its own look B comes after H. This is why M takes the chain
 *     even if only the first waiter is there, and was not due. Another announcer, one without a
 *     heavy fence, may have looked at that waiter before M, and have missed what a third had
 *     announced with a light fence. M needs no order of its own to release H: H is in front of it,
 *     and a fence.
 * 11. Only an announcer that saw WATCHED makes EMPTY of it, by a compare-exchange. So no waiter has
 *     enlisted in between, and none stays behind that relies on F. It publishes nothing: relaxed.
 *     The count of how often the list was watched for nothing is a hint, no more.
 * 12. After A the waiter may be taken and ended by another thread, and yet suspend goes on to look
 *     at the object. So between the two there is a handshake (handshake.h). Suspend may also end
 *     its own waiter, as it sifts.
 * 13. A taker of waiters looks at the number after it has taken them, and judges by what it then
 *     sees. Among them may be a waiter that enlisted having seen a later number than the taker had.
 *     The take has acquired its push, so a look that follows cannot be older than what the waiter
 *     saw. A waiter that is due (B) while another thread sifts leaves its end to that sifter, which
 *     is asked to look again (7).
 * 14. A sifter that was asked by AGAIN, and M, look at all. A sifter that was sent by an announcer
 *     need not, where the rules know what is nearest. Each waiter was kept when it was linked, by
 *     what was announced then or later. And each announcer either finds the list and is that
 *     sifter, or asks for another look. So none was passed over in between.
 * 15. A biased list is not opened again once it is shut.
 *
 * Source: 1 is Treiber's stack, taken whole. A list that a thread owns behind an inbox that any
 * thread pushes onto is the server of Drepper's and of Dmitry Vyukov's queues. That a wait is
 * removed from a list in both directions is Tokio's and libunifex's, under a lock there.
 */
#ifndef BIDE_EXTEND_WAITER_LIST_H
#define BIDE_EXTEND_WAITER_LIST_H

#include "bide/extend/fence.h"
#include "bide/extend/handshake.h"

BIDE_EXTERN_C_BEGIN

#define BIDE_LIST_EMPTY         ((uintptr_t)0)
#define BIDE_LIST_SHUT          ((uintptr_t)1)
#define BIDE_LIST_AGAIN_        ((uintptr_t)1)
#define BIDE_LIST_SWEEPING_      ((uintptr_t)2)
#define BIDE_LIST_LINKED_       ((uintptr_t)4)
#define BIDE_LIST_LEAVES_       ((uintptr_t)4)
#define BIDE_LIST_TAGS_         ((uintptr_t)7)
#define BIDE_LIST_REOPENED_     ((uintptr_t)8)
#define BIDE_LIST_SWEEPING_SHUT_ ((uintptr_t)16 | BIDE_LIST_SWEEPING_)
#define BIDE_LIST_WATCHED_      ((uintptr_t)24)
#define BIDE_LIST_CLOSED        ((uintptr_t)8 | BIDE_LIST_SHUT)
#define BIDE_LIST_SHUT_FOR_GOOD ((uintptr_t)16 | BIDE_LIST_SHUT)

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
 * Is a list with this word shut, or closed?
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bool bide_waiter_list_word_is_shut(uintptr_t word)
{
    return (word & BIDE_LIST_TAGS_) == BIDE_LIST_SHUT || word == BIDE_LIST_SWEEPING_SHUT_;
}

/*
 * Is a list with this word shut, or was it shut when it was closed?
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
 * Are there waiters in it, or in the hands of a sifter that may put them back?
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bool bide_waiter_list_word_has_waiters(uintptr_t word)
{
    return !bide_waiter_list_word_is_idle(word) && word != BIDE_LIST_SWEEPING_SHUT_;
}

/* What the word becomes when `waiter` is pushed onto it. */
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
#define bide_waiter_list_push(list, waiter, order, pushed)                \
    do {                                                                  \
        uintptr_t bide_refused_;                                          \
        bide_waiter_list_push_unless(list, waiter, order, bide_refused_); \
        (pushed) = bide_refused_ == 0;                                    \
    } while (0)

typedef struct bide_sweep_ops bide_sweep_ops;

/* The rules where waiters are judged by nothing: for what is cancelled. */
extern const bide_sweep_ops bide_sweep_cancelled;

/*
 * For a shutting that finds a sifter: what was pushed while that one sifts, cut off from REOPENED.
 * Those that were named have left.
 */
bide_awaiter *bide_waiter_list_cut_(uintptr_t word);

/*
 * Makes a list with this word, which is LINKED, plain, and returns its word.
 * Threads: any. Progress: lock-free, linear in the waiters.
 */
uintptr_t bide_waiter_list_make_plain_(bide_waiter_list *list, uintptr_t word,
                                       const bide_sweep_ops *rules, void *context);

/* Is a list with this word to be made plain before the chain is taken? */
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
 * What a primitive knows of its waiters, for the sifters of its list. The functions share
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
     * What is nearest. A sifter that finds that none is reached looks only at the waiters that have
     * come since the last one. `forget`: none is kept. `keep`: `awaiter` is kept, as far as `look`
     * saw when it was linked. `reaches`: may one of those that were kept since `forget` have become
     * due, as far as `look` saw? True if in doubt: one of them may not be there any more. What they
     * write belongs to `context`'s object, and to the sifter. All NULL: true.
     */
    void (*forget)(void *context);
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
                                     bide_frame *frame, const bide_sweep_ops *rules,
                                     void *context);

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
 * none of them is reached, linear in those that have come since the last time.
 */
void bide_waiter_list_announce(bide_biased_list *biased, uintptr_t word,
                               const bide_sweep_ops *rules, void *context);

/*
 * For `cancel`: removes `waiter`, ends it and wakes it, or has another sifter do so; nothing if it
 * is not there. A constant number of steps for each call and each waiter that has come since the
 * last one, but for those that another thread sifts meanwhile.
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
 * Shuts the list, and ends and wakes all waiters: those that are due with 0, the others with
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
