/*
 * Sweeping a list of waiters: one thread takes the whole chain, ends some of its waiters, and puts
 * the others back.
 *
 *     idle       EMPTY, SHUT or closed: no thread holds a waiter that has not ended
 *     pointer    the newest waiter of the chain; LINKED beside it: some are linked in both directions
 *     SIFTING    a sweep is under way: its thread, the sweeper, alone holds the chain
 *
 * Any thread may begin a sweep. A thread that finds a sweeper leaves its request in the list's word:
 * AGAIN to have all waiters judged again, or the waiter that is to be removed. Withdrawing waits for
 * the sweeper instead. The argument, with the numbers that the comments below refer to:
 * docs/internals/waiter_list.md.
 */
#include "list_sweep.h"

#include "list.h"

#include "bide/stop.h"

static bide_listed *listed_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_listed, awaiter);
}

/* The waiter of a link, or of a word; NULL at the end of its chain. */
static bide_awaiter *awaiter_of_word(uintptr_t link)
{
    return link > BIDE_LIST_WATCHED_ ? (bide_awaiter *)(link & ~BIDE_LIST_TAGS_) : NULL;
}

/* ---- Arrivals during a sweep ---- */

typedef struct list_arrivals {
    bide_awaiter_chain pushed;      /* newest first */
    bide_awaiter *remove_requested; /* linked by bide_awaiter_next_leaving_ */
    bool reopened;                  /* the list was shut before, and opened again */
} list_arrivals;

static list_arrivals arrivals_of(uintptr_t word)
{
    list_arrivals s = {{NULL, NULL}, NULL, false};
    uintptr_t link = word & ~(BIDE_LIST_SWEEPING_ | BIDE_LIST_AGAIN_);
    for (bide_awaiter *a; (a = awaiter_of_word(link)) != NULL;) {
        if ((link & BIDE_LIST_LEAVES_) != 0) {
            bide_awaiter **next = bide_awaiter_next_leaving_(a);
            link = (uintptr_t)*next;
            *next = s.remove_requested;
            s.remove_requested = a;
        } else {
            bide_assert(listed_of(a)->newer == NULL); /* 0 */
            link = (uintptr_t)a->link;
            a->link = NULL;
            bide_awaiter_chain_append(&s.pushed, a, a);
        }
    }
    bide_assert(link == 0 || link == BIDE_LIST_REOPENED_ || word == BIDE_LIST_SWEEPING_SHUT_);
    s.reopened = link == BIDE_LIST_REOPENED_;
    return s;
}

bide_awaiter *bide_waiter_list_cut_(uintptr_t word)
{
    list_arrivals s = arrivals_of(word);
    bide_awaiter *woken = NULL;
    for (bide_awaiter *a = s.remove_requested, *next; a != NULL; a = next) {
        next = *bide_awaiter_next_leaving_(a);
        complete_removal(a, &woken);
    }
    bide_wake(woken);
    return s.pushed.first;
}

/* ---- The chain of a sweep ---- */

static void list_sweep_reset_nearest(const bide_list_sweep *s)
{
    if (s->rules->discard != NULL)
        s->rules->discard(s->context);
}

static void list_sweep_note_nearest(const bide_list_sweep *s, const bide_awaiter *awaiter)
{
    if (s->rules->keep != NULL)
        s->rules->keep(s->context, awaiter);
}

/* The chain that is held is a line (list.h), newest first, once it is linked. */
static bide_awaiter **newer_of(bide_awaiter *awaiter)
{
    return &listed_of(awaiter)->newer;
}

/* Links the waiters in front of the first linked one; 0. They are kept: 14. */
static void list_sweep_link(bide_list_sweep *s)
{
    bide_awaiter *newest = s->kept;
    bide_awaiter *oldest = NULL;
    if (newest == NULL || *newer_of(newest) != NULL)
        return;
    bide_list_sweep_look_(s);
    list_sweep_note_nearest(s, newest);
    for (bide_awaiter *newer = newest, *a; oldest == NULL; newer = a) {
        a = awaiter_of_word((uintptr_t)newer->link);
        newer->link = a;
        if (a == NULL) {
            oldest = newer;
        } else {
            oldest = *newer_of(a); /* not NULL in the newest of the waiters linked before */
            *newer_of(a) = newer;
            if (oldest == NULL)
                list_sweep_note_nearest(s, a);
        }
    }
    bide_assert(oldest->link == NULL);
    *newer_of(newest) = oldest;
}

static void list_sweep_unlink(bide_list_sweep *s)
{
    for (bide_awaiter *a = s->kept; a != NULL; a = a->link)
        listed_of(a)->newer = NULL;
}

void bide_list_sweep_hold_(bide_list_sweep *s, uintptr_t word)
{
    s->kept = awaiter_of_word(word);
    bide_assert(s->kept != NULL);
    if ((word & BIDE_LIST_LINKED_) == 0) {
        bide_assert(*newer_of(s->kept) == NULL); /* 0 */
        list_sweep_reset_nearest(s);
    }
    list_sweep_link(s);
}

/* Whether a waiter is in the chain that is held. */
static bool is_held(bide_awaiter *awaiter)
{
    return listed_of(awaiter)->newer != NULL;
}

static void list_sweep_remove(bide_list_sweep *s, bide_awaiter *awaiter)
{
    line_remove(&s->kept, awaiter, newer_of);
}

/* ---- Beginning a sweep ---- */

bool bide_list_sweep_begin_(bide_list_sweep *s, uintptr_t word)
{
    bide_waiter_list *list = s->list;
    for (bool again = false; bide_waiter_list_word_has_waiters(word); again = true) {
        if ((word & BIDE_LIST_SWEEPING_) != 0) {
            /*
             * release: 7. Also if AGAIN is set already, because the sweeper must see this reason
             * too.
             */
            if (bide_atomic_compare_exchange(&list->word, &word, word | BIDE_LIST_AGAIN_, release,
                                             relaxed))
                return false;
        } else if (bide_atomic_compare_exchange(&list->word, &word, BIDE_LIST_SWEEPING_, acquire,
                                                relaxed)) { /* 4 and 6 */
            bide_list_sweep_hold_(s, word);
            return true;
        }
        if (again)
            bide_atomic_retry();
    }
    return false;
}

/*
 * Takes the waiters, perhaps `awaiter` among them. Returns false if it is not there, or if another
 * thread sweeps, which has then been asked to remove it. Lock-free.
 */
static bool list_sweep_begin_for(bide_list_sweep *s, bide_awaiter *awaiter)
{
    bide_waiter_list *list = s->list;
    bool leaves = false;
    bool again = false;
    /* relaxed: a canceller of a waiter sees its push, or something later. */
    uintptr_t word = bide_atomic_load(&list->word, relaxed);
    while (bide_waiter_list_word_has_waiters(word)) {
        if ((word & BIDE_LIST_SWEEPING_) == 0) {
            if (bide_atomic_compare_exchange(&list->word, &word, BIDE_LIST_SWEEPING_, acquire,
                                             relaxed)) { /* 4 and 6 */
                bide_list_sweep_hold_(s, word);
                if (leaves)
                    bide_awaiter_has_left_(awaiter); /* it stays: cancel has not returned */
                return true;
            }
        } else {
            if (!leaves) {
                leaves = bide_awaiter_leaves_(awaiter);
                if (!leaves)
                    return false;
                again = false;
            }
            *bide_awaiter_next_leaving_(awaiter) = bide_waiter_list_link_(word);
            uintptr_t named = (uintptr_t)awaiter | BIDE_LIST_SWEEPING_ | BIDE_LIST_LEAVES_ |
                              (word & BIDE_LIST_AGAIN_);
            /* release: 7a. */
            if (bide_atomic_compare_exchange(&list->word, &word, named, release, relaxed))
                return false;
        }
        if (again)
            bide_atomic_retry();
        again = true;
    }
    if (leaves)
        bide_awaiter_has_left_(awaiter);
    return false;
}

/*
 * Takes the waiters in order to remove one that must be there. Returns false if another thread has
 * taken it to end it. Blocks while another thread sweeps.
 */
static bool list_sweep_begin_alone(bide_list_sweep *s)
{
    bide_waiter_list *list = s->list;
    uintptr_t word = bide_atomic_load(&list->word, relaxed);
    for (;;) {
        if ((word & BIDE_LIST_SWEEPING_) != 0) {
            bide_platform.yield();
            word = bide_atomic_load(&list->word, relaxed);
        } else if (bide_waiter_list_word_is_idle(word)) {
            return false;
        } else if (bide_atomic_compare_exchange(&list->word, &word, BIDE_LIST_SWEEPING_, acquire,
                                                relaxed)) { /* 4 and 6 */
            bide_list_sweep_hold_(s, word);
            return true;
        }
    }
}

/* ---- Ending waiters ---- */

/* The list was shut: moves all kept waiters to `detached`; they end because of it. */
static void list_sweep_detach(bide_list_sweep *s)
{
    bide_awaiter_chain kept = {s->kept, s->kept};
    if (kept.first == NULL)
        return;
    list_sweep_unlink(s);
    while (kept.last->link != NULL)
        kept.last = kept.last->link;
    /* They are newer than the waiters that were detached before. */
    if (s->detached.first != NULL)
        bide_awaiter_chain_append(&kept, s->detached.first, s->detached.last);
    s->detached = kept;
    s->kept = NULL;
}

/* Ends a chain, newest first, because the list was shut. Judges the waiters by what was announced
 * before the shutting, or later. */
static void list_sweep_end_all_shut(bide_list_sweep *s, bide_awaiter *newest)
{
    if (newest == NULL)
        return;
    bide_list_sweep_look_(s);
    for (bide_awaiter *a = newest; a != NULL; a = a->link) {
        bide_assert(!is_held(a)); /* 0 */
        bide_list_sweep_end_shut_(s, a);
    }
    bide_awaiter_chain_append(&s->ended, bide_awaiter_reverse(newest), newest);
}

/* Removes a waiter that was cancelled, and ends it. `look` has been called. */
static void list_sweep_end_cancelled(bide_list_sweep *s, bide_awaiter *awaiter)
{
    bool due = bide_list_sweep_is_due_(s, awaiter);
    list_sweep_remove(s, awaiter);
    bide_list_sweep_take_result_(s, awaiter);
    if (!due)
        bide_awaiter_finish_cancelled(awaiter);
    awaiter->link = NULL;
    bide_awaiter_chain_append(&s->ended, awaiter, awaiter);
}

void bide_list_sweep_partition_(bide_list_sweep *s)
{
    bide_awaiter_chain ended = {NULL, NULL};
    bide_list_sweep_look_(s);
    list_sweep_reset_nearest(s);
    for (bide_awaiter *a = s->kept, *next; a != NULL; a = next) {
        next = a->link;
        bool due = bide_list_sweep_is_due_(s, a);
        if (!due && !bide_awaiter_is_cancelled(a)) {
            list_sweep_note_nearest(s, a);
            continue;
        }
        list_sweep_remove(s, a);
        bide_list_sweep_take_result_(s, a);
        if (!due)
            bide_awaiter_finish_cancelled(a);
        bide_awaiter_chain_prepend(&ended, a);
    }
    if (ended.first != NULL)
        bide_awaiter_chain_append(&s->ended, ended.first, ended.last);
}

/* Adds the waiters that arrived during the sweep, and removes those whose removal was requested.
 * `word` is the list's word that led to them. */
static void list_sweep_take_arrivals(bide_list_sweep *s, uintptr_t word)
{
    list_arrivals arrivals = arrivals_of(word);
    if (arrivals.reopened)
        list_sweep_detach(s);
    if (arrivals.pushed.first != NULL) {
        arrivals.pushed.last->link = s->kept;
        s->kept = arrivals.pushed.first;
    }
    list_sweep_link(s);
    if (arrivals.remove_requested != NULL)
        bide_list_sweep_look_(s);
    for (bide_awaiter *a = arrivals.remove_requested, *next; a != NULL; a = next) {
        next = *bide_awaiter_next_leaving_(a);
        if (is_held(a))
            list_sweep_end_cancelled(s, a);
        complete_removal(a, &s->woken);
    }
}

/* ---- Ending a sweep ---- */

static uintptr_t list_sweep_remaining_word(const bide_list_sweep *s)
{
    if (s->kept != NULL)
        return (uintptr_t)s->kept | (s->makes_plain ? 0 : BIDE_LIST_LINKED_);
    return s->rules->looks_again ? BIDE_LIST_WATCHED_ : BIDE_LIST_EMPTY;
}

/*
 * Puts back the waiters that are kept. Returns true when that is done; the list is not touched any
 * more. Returns false if all waiters are to be judged again. Lock-free, but linear in the arrivals.
 */
static bool list_sweep_put_back(bide_list_sweep *s)
{
    bide_waiter_list *list = s->list;
    uintptr_t word = BIDE_LIST_SWEEPING_;
    if (s->makes_plain)
        list_sweep_unlink(s);
    for (bool again = false;;) {
        bide_assert((word & BIDE_LIST_SWEEPING_) != 0); /* 2 */
        if (word == BIDE_LIST_SWEEPING_) {
            s->left = list_sweep_remaining_word(s);
            /* release: 6. */
            if (bide_atomic_compare_exchange(&list->word, &word, s->left, release, relaxed))
                return true;
        } else if (word == BIDE_LIST_SWEEPING_SHUT_) {
            list_sweep_detach(s);
            s->left = BIDE_LIST_SHUT;
            /* acquire: 5. release: 6. */
            if (bide_atomic_compare_exchange(&list->word, &word, s->left, acq_rel, relaxed))
                return true;
        } else if (bide_atomic_compare_exchange(&list->word, &word, BIDE_LIST_SWEEPING_, acquire,
                                                relaxed)) { /* 4, 5, 7 and 7a */
            list_sweep_take_arrivals(s, word);
            if ((word & BIDE_LIST_AGAIN_) != 0)
                return false;
            if (s->makes_plain)
                list_sweep_unlink(s);
            word = BIDE_LIST_SWEEPING_;
            again = false;
            continue;
        }
        if (again)
            bide_atomic_retry();
        again = true;
    }
}

void bide_list_sweep_finish_(bide_list_sweep *s)
{
    while (!list_sweep_put_back(s))
        bide_list_sweep_partition_(s);
    list_sweep_end_all_shut(s, s->detached.first);
}

static bide_handshake *handshake_of_listed(bide_awaiter *awaiter)
{
    return &bide_container_of(awaiter, bide_list_waiter, listed.awaiter)->handshake;
}

void bide_list_sweep_wake_(const bide_list_sweep *s)
{
    bide_wake(s->woken);
    bide_wake(s->rules->looks_again
                  ? bide_handshake_finish_all(s->ended.first, handshake_of_listed).first
                  : s->ended.first);
}

/* ---- Operations ---- */

void bide_waiter_list_sweep_cancelled(bide_waiter_list *list, bide_listed *waiter,
                                      const bide_sweep_ops *rules, void *context)
{
    bide_list_sweep s = bide_list_sweep_of_(list, rules, context);
    if (!list_sweep_begin_for(&s, &waiter->awaiter))
        return;
    if (is_held(&waiter->awaiter)) {
        bide_list_sweep_look_(&s);
        list_sweep_end_cancelled(&s, &waiter->awaiter);
    }
    bide_list_sweep_finish_(&s);
    bide_list_sweep_wake_(&s);
}

bool bide_waiter_list_sweep(bide_waiter_list *list, bide_listed *waiter,
                            const bide_sweep_ops *rules, void *context)
{
    bide_list_sweep s = bide_list_sweep_of_(list, rules, context);
    if (!bide_awaiter_suspended(&waiter->awaiter) || !list_sweep_begin_alone(&s))
        return false;
    bool found = is_held(&waiter->awaiter);
    if (found)
        list_sweep_remove(&s, &waiter->awaiter);
    bide_list_sweep_finish_(&s);
    bide_list_sweep_wake_(&s);
    return found;
}

uintptr_t bide_waiter_list_make_plain_(bide_waiter_list *list, uintptr_t word,
                                       const bide_sweep_ops *rules, void *context)
{
    bide_list_sweep s = bide_list_sweep_of_(list, rules, context);
    s.makes_plain = true;
    while (bide_waiter_list_word_is_linked_(word)) {
        if (bide_atomic_compare_exchange(&list->word, &word, BIDE_LIST_SWEEPING_, acquire,
                                         relaxed)) { /* 4 and 6 */
            bide_list_sweep_hold_(&s, word);
            bide_list_sweep_finish_(&s);
            bide_list_sweep_wake_(&s);
            return s.left;
        }
    }
    return word;
}

void bide_waiter_list_close(bide_waiter_list *list, const bide_sweep_ops *rules, void *context)
{
    bide_awaiter *taken = bide_waiter_list_shut_judged_(list, rules, context);
    if (taken == NULL)
        return; /* the list was found shut, so its memory may be gone by now */
    bide_list_sweep s = bide_list_sweep_of_(list, rules, context);
    list_sweep_end_all_shut(&s, taken);
    bide_list_sweep_wake_(&s);
}

const bide_sweep_ops bide_sweep_cancelled = {.looks_again = false};
