/*
 * Sifting a list of waiters, and the waits that look again. States, orders and their numbers:
 * waiter_list.h.
 */
#include "bide/extend/waiter_list.h"

#include "list.h"

#include "bide/stop.h"

static bide_listed *listed_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_listed, awaiter);
}

/* The waiter that a link, or a word, leads to; NULL at the end of its chain. */
static bide_awaiter *leads_to(uintptr_t link)
{
    return link > BIDE_LIST_WATCHED_ ? (bide_awaiter *)(link & ~BIDE_LIST_TAGS_) : NULL;
}

/* ---- What has come while one sifts ---- */

typedef struct since {
    bide_awaiter_chain pushed; /* newest first */
    bide_awaiter *named;       /* those to be removed, by next_leaving */
    bool reopened;             /* the list was shut before, and opened again */
} since;

static since since_of(uintptr_t word)
{
    since s = {{NULL, NULL}, NULL, false};
    uintptr_t link = word & ~(BIDE_LIST_SWEEPING_ | BIDE_LIST_AGAIN_);
    for (bide_awaiter *a; (a = leads_to(link)) != NULL;) {
        if ((link & BIDE_LIST_LEAVES_) != 0) {
            bide_awaiter **next = bide_awaiter_next_leaving_(a);
            link = (uintptr_t)*next;
            *next = s.named;
            s.named = a;
        } else {
            link = (uintptr_t)a->link;
            a->link = NULL;
            bide_awaiter_chain_append(&s.pushed, a, a);
        }
    }
    s.reopened = link == BIDE_LIST_REOPENED_;
    return s;
}

bide_awaiter *bide_waiter_list_cut_(uintptr_t word)
{
    since s = since_of(word);
    bide_awaiter *woken = NULL;
    for (bide_awaiter *a = s.named, *next; a != NULL; a = next) {
        next = *bide_awaiter_next_leaving_(a);
        say_has_left(a, &woken);
    }
    bide_wake(woken);
    return s.pushed.first;
}

/* ---- Sifting ---- */

/* One sifting, of one thread. */
typedef struct sifting {
    bide_waiter_list *list;
    const bide_sweep_ops *rules;
    void *context;
    bool makes_plain;          /* puts back what is not linked */
    bide_awaiter *kept;        /* what is held; newest first */
    bide_awaiter_chain let_go; /* the list was shut while they were kept; newest first */
    bide_awaiter_chain ended;  /* oldest first */
    bide_awaiter *woken;       /* were named, but had ended: to be woken as they stand */
    uintptr_t left;            /* the list's word, as it was put back */
} sifting;

static sifting sifting_of(bide_waiter_list *list, const bide_sweep_ops *rules, void *context)
{
    return (sifting){.list = list, .rules = rules, .context = context};
}

static void look(const sifting *s)
{
    if (s->rules->look != NULL)
        s->rules->look(s->context);
}

static bool is_due(const sifting *s, const bide_awaiter *awaiter)
{
    return s->rules->is_due != NULL && s->rules->is_due(s->context, awaiter);
}

static void take_result(const sifting *s, bide_awaiter *awaiter)
{
    if (s->rules->end != NULL)
        s->rules->end(s->context, awaiter);
}

static void forget(const sifting *s)
{
    if (s->rules->forget != NULL)
        s->rules->forget(s->context);
}

static void keep(const sifting *s, const bide_awaiter *awaiter)
{
    if (s->rules->keep != NULL)
        s->rules->keep(s->context, awaiter);
}

static bool is_reached(const sifting *s)
{
    return s->rules->reaches == NULL || s->rules->reaches(s->context);
}

/* What is held is a line (line.h), newest first, once it is linked. */
static bide_awaiter **newer_of(bide_awaiter *awaiter)
{
    return &listed_of(awaiter)->newer;
}

/* Links those in front of what is linked already; 0. They are kept: 14. */
static void link_kept(sifting *s)
{
    bide_awaiter *newest = s->kept;
    bide_awaiter *oldest = NULL;
    if (newest == NULL || *newer_of(newest) != NULL)
        return;
    look(s);
    keep(s, newest);
    for (bide_awaiter *newer = newest, *a; oldest == NULL; newer = a) {
        a = leads_to((uintptr_t)newer->link);
        newer->link = a;
        if (a == NULL) {
            oldest = newer;
        } else {
            oldest = *newer_of(a); /* as the newest of those that were linked */
            *newer_of(a) = newer;
            if (oldest == NULL)
                keep(s, a);
        }
    }
    *newer_of(newest) = oldest;
}

static void unlink_kept(sifting *s)
{
    for (bide_awaiter *a = s->kept; a != NULL; a = a->link)
        listed_of(a)->newer = NULL;
}

/* The chain with this word is the caller's. */
static void hold(sifting *s, uintptr_t word)
{
    s->kept = leads_to(word);
    if ((word & BIDE_LIST_LINKED_) == 0)
        forget(s);
    link_kept(s);
}

/* Is it held? */
static bool is_kept(bide_awaiter *awaiter)
{
    return listed_of(awaiter)->newer != NULL;
}

/* Takes one out of those that are kept. */
static void take_out(sifting *s, bide_awaiter *awaiter)
{
    line_take_out(&s->kept, awaiter, newer_of);
}

/*
 * Takes the waiters; true if there are any. False: there is none, or another thread sifts and has
 * been asked to look again. `word` is what the caller has last seen the list's to be. Lock-free.
 */
static bool begin(sifting *s, uintptr_t word)
{
    bide_waiter_list *list = s->list;
    for (bool again = false; bide_waiter_list_word_has_waiters(word); again = true) {
        if ((word & BIDE_LIST_SWEEPING_) != 0) {
            /*
             * release: 7. Also where AGAIN is there already, for the sifter must see this reason
             * too.
             */
            if (bide_atomic_compare_exchange(&list->word, &word, word | BIDE_LIST_AGAIN_, release,
                                             relaxed))
                return false;
        } else if (bide_atomic_compare_exchange(&list->word, &word, BIDE_LIST_SWEEPING_, acquire,
                                                relaxed)) { /* 4 and 6 */
            hold(s, word);
            return true;
        }
        if (again)
            bide_atomic_retry();
    }
    return false;
}

/*
 * Takes the waiters, `awaiter` perhaps among them. False: it is not there, or another thread sifts
 * and has been told to remove it. Lock-free.
 */
static bool begin_for(sifting *s, bide_awaiter *awaiter)
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
                hold(s, word);
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
 * Begins in order to remove one that must be there. False: it has been taken to be ended. Blocks
 * while another thread sifts.
 */
static bool begin_alone(sifting *s)
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
            hold(s, word);
            return true;
        }
    }
}

static void let_go_of_kept(sifting *s)
{
    bide_awaiter_chain kept = {s->kept, s->kept};
    if (kept.first == NULL)
        return;
    unlink_kept(s);
    while (kept.last->link != NULL)
        kept.last = kept.last->link;
    /* They are newer than those that were let go before. */
    if (s->let_go.first != NULL)
        bide_awaiter_chain_append(&kept, s->let_go.first, s->let_go.last);
    s->let_go = kept;
    s->kept = NULL;
}

static uintptr_t what_stays(const sifting *s)
{
    if (s->kept != NULL)
        return (uintptr_t)s->kept | (s->makes_plain ? 0 : BIDE_LIST_LINKED_);
    return s->rules->looks_again ? BIDE_LIST_WATCHED_ : BIDE_LIST_EMPTY;
}

/* Ends one because the list was shut. */
static void end_shut(const sifting *s, bide_awaiter *awaiter)
{
    take_result(s, awaiter);
    if (s->rules->is_due != NULL && !s->rules->is_due(s->context, awaiter))
        bide_awaiter_finish_closed(awaiter);
}

/*
 * The same for a chain, newest first. What it is judged by is what was there when the list was
 * shut, or later.
 */
static void end_all_shut(sifting *s, bide_awaiter *newest)
{
    if (newest == NULL)
        return;
    look(s);
    for (bide_awaiter *a = newest; a != NULL; a = a->link)
        end_shut(s, a);
    bide_awaiter_chain_append(&s->ended, bide_awaiter_reverse(newest), newest);
}

/* Takes out one that was asked to stop, and ends it. `look` has looked. */
static void end_cancelled(sifting *s, bide_awaiter *awaiter)
{
    bool due = is_due(s, awaiter);
    take_out(s, awaiter);
    take_result(s, awaiter);
    if (!due)
        bide_awaiter_finish_cancelled(awaiter);
    awaiter->link = NULL;
    bide_awaiter_chain_append(&s->ended, awaiter, awaiter);
}

/* Looks at all that are kept, and ends those that are to end. */
static void look_through(sifting *s)
{
    bide_awaiter_chain these = {NULL, NULL};
    look(s);
    forget(s);
    for (bide_awaiter *a = s->kept, *next; a != NULL; a = next) {
        next = a->link;
        bool due = is_due(s, a);
        if (!due && !bide_awaiter_is_cancelled(a)) {
            keep(s, a);
            continue;
        }
        take_out(s, a);
        take_result(s, a);
        if (!due)
            bide_awaiter_finish_cancelled(a);
        bide_awaiter_chain_prepend(&these, a);
    }
    if (these.first != NULL)
        bide_awaiter_chain_append(&s->ended, these.first, these.last);
}

/* Takes in what has come since, with the word that it stood in. */
static void take_in(sifting *s, uintptr_t word)
{
    since what = since_of(word);
    if (what.reopened)
        let_go_of_kept(s);
    if (what.pushed.first != NULL) {
        what.pushed.last->link = s->kept;
        s->kept = what.pushed.first;
    }
    link_kept(s);
    if (what.named != NULL)
        look(s);
    for (bide_awaiter *a = what.named, *next; a != NULL; a = next) {
        next = *bide_awaiter_next_leaving_(a);
        if (is_kept(a))
            end_cancelled(s, a);
        say_has_left(a, &s->woken);
    }
}

/*
 * Puts back what is kept. True: done, and the list is not touched any more. False: all are to be
 * looked at again. Lock-free, but linear in what has come since.
 */
static bool put_back(sifting *s)
{
    bide_waiter_list *list = s->list;
    uintptr_t word = BIDE_LIST_SWEEPING_;
    if (s->makes_plain)
        unlink_kept(s);
    for (bool again = false;;) {
        if (word == BIDE_LIST_SWEEPING_) {
            s->left = what_stays(s);
            /* release: 6. */
            if (bide_atomic_compare_exchange(&list->word, &word, s->left, release, relaxed))
                return true;
        } else if (word == BIDE_LIST_SWEEPING_SHUT_) {
            let_go_of_kept(s);
            s->left = BIDE_LIST_SHUT;
            /* acquire: 5. release: 6. */
            if (bide_atomic_compare_exchange(&list->word, &word, s->left, acq_rel, relaxed))
                return true;
        } else if (bide_atomic_compare_exchange(&list->word, &word, BIDE_LIST_SWEEPING_, acquire,
                                                relaxed)) { /* 4, 5, 7 and 7a */
            take_in(s, word);
            if ((word & BIDE_LIST_AGAIN_) != 0)
                return false;
            if (s->makes_plain)
                unlink_kept(s);
            word = BIDE_LIST_SWEEPING_;
            again = false;
            continue;
        }
        if (again)
            bide_atomic_retry();
        again = true;
    }
}

/* Puts back, and looks as often as it is asked to. The list is not touched afterwards. */
static void finish(sifting *s)
{
    while (!put_back(s))
        look_through(s);
    end_all_shut(s, s->let_go.first);
}

static bide_handshake *handshake_of(bide_awaiter *awaiter)
{
    return &bide_container_of(awaiter, bide_list_waiter, listed.awaiter)->handshake;
}

/*
 * Wakes those that have ended. If they look again, wakes only those that their suspend is done
 * with: 12.
 */
static void wake_ended(const sifting *s)
{
    bide_wake(s->woken);
    bide_wake(s->rules->looks_again ? bide_handshake_finish_all(s->ended.first, handshake_of).first
                                    : s->ended.first);
}

static void sift_for(bide_waiter_list *list, uintptr_t word, const bide_sweep_ops *rules,
                     void *context)
{
    sifting s = sifting_of(list, rules, context);
    if (!begin(&s, word))
        return;
    look(&s);
    if (is_reached(&s))
        look_through(&s);
    finish(&s);
    wake_ended(&s);
}

void bide_waiter_list_sweep_cancelled(bide_waiter_list *list, bide_listed *waiter,
                                     const bide_sweep_ops *rules, void *context)
{
    sifting s = sifting_of(list, rules, context);
    if (!begin_for(&s, &waiter->awaiter))
        return;
    if (is_kept(&waiter->awaiter)) {
        look(&s);
        end_cancelled(&s, &waiter->awaiter);
    }
    finish(&s);
    wake_ended(&s);
}

bool bide_waiter_list_sweep(bide_waiter_list *list, bide_listed *waiter,
                               const bide_sweep_ops *rules, void *context)
{
    sifting s = sifting_of(list, rules, context);
    if (!bide_awaiter_suspended(&waiter->awaiter) || !begin_alone(&s))
        return false;
    bool found = is_kept(&waiter->awaiter);
    if (found)
        take_out(&s, &waiter->awaiter);
    finish(&s);
    wake_ended(&s);
    return found;
}

uintptr_t bide_waiter_list_make_plain_(bide_waiter_list *list, uintptr_t word,
                                       const bide_sweep_ops *rules, void *context)
{
    sifting s = sifting_of(list, rules, context);
    s.makes_plain = true;
    while (bide_waiter_list_word_is_linked_(word)) {
        if (bide_atomic_compare_exchange(&list->word, &word, BIDE_LIST_SWEEPING_, acquire,
                                         relaxed)) { /* 4 and 6 */
            hold(&s, word);
            finish(&s);
            wake_ended(&s);
            return s.left;
        }
    }
    return word;
}

void bide_waiter_list_close(bide_waiter_list *list, const bide_sweep_ops *rules, void *context)
{
    bide_awaiter *taken = bide_waiter_list_shut_judged_(list, rules, context);
    if (taken == NULL)
        return; /* the list may be gone by now: it was found shut */
    sifting s = sifting_of(list, rules, context);
    end_all_shut(&s, taken);
    wake_ended(&s);
}

/* ---- Biased lists ---- */

/*
 * As begin, by `own`, which has enlisted onto EMPTY, passed the heavy fence, and looked: M of 10.
 * Whatever the word is, it is modified. A waiter that enlisted before that is taken, or the sifter
 * looks at it again. A later one comes after the fence.
 */
static bool begin_after_fence(sifting *s, const bide_awaiter *own)
{
    bide_waiter_list *list = s->list;
    uintptr_t word = (uintptr_t)own;
    for (bool again = false; !bide_waiter_list_word_is_shut(word); again = true) {
        if (bide_waiter_list_word_has_waiters(word) && (word & BIDE_LIST_SWEEPING_) == 0) {
            if (bide_atomic_compare_exchange(&list->word, &word, BIDE_LIST_SWEEPING_, acquire,
                                             relaxed)) { /* 4 */
                hold(s, word);
                return true;
            }
        } else {
            uintptr_t same = (word & BIDE_LIST_SWEEPING_) != 0 ? word | BIDE_LIST_AGAIN_ : word;
            /* relaxed: the fence in front of it releases, 7 and 10. */
            if (bide_atomic_compare_exchange(&list->word, &word, same, relaxed, relaxed))
                return false;
        }
        if (again)
            bide_atomic_retry();
    }
    return false;
}

/* Enlists a waiter; *onto is the word that it came onto. False: the list is shut. */
static bool enlist(bide_waiter_list *list, bide_listed *waiter, uintptr_t *onto)
{
    uintptr_t word = bide_atomic_load(&list->word, acquire);
    for (bool again = false; !bide_waiter_list_word_is_shut(word); again = true) {
        uintptr_t before = word == BIDE_LIST_WATCHED_ ? BIDE_LIST_EMPTY : word;
        waiter->awaiter.link = bide_waiter_list_link_(before);
        /* A; partner: F. Acquire if it fails: 3. */
        if (bide_atomic_compare_exchange(
                &list->word, &word, bide_waiter_list_pushed_(before, waiter), seq_cst, acquire)) {
            *onto = word;
            return true;
        }
        if (again)
            bide_atomic_retry();
    }
    return false;
}

/*
 * The list is watched and has no waiter. After long enough it is no longer watched: true, unless a
 * waiter has come.
 */
static bool watch_for_nothing(bide_biased_list *biased, uintptr_t *word)
{
    uint32_t unneeded = bide_atomic_load(&biased->unneeded, relaxed) + 1;
    /* relaxed: 11. */
    if (unneeded >= BIDE_LIST_UNNEEDED_MAX_ &&
        !bide_atomic_compare_exchange(&biased->list.word, word, BIDE_LIST_EMPTY, relaxed, relaxed))
        return false;
    bide_atomic_store(&biased->unneeded, unneeded < BIDE_LIST_UNNEEDED_MAX_ ? unneeded : 0,
                      relaxed);
    return true;
}

void bide_waiter_list_announce(bide_biased_list *biased, uintptr_t word,
                               const bide_sweep_ops *rules, void *context)
{
    bide_atomic_fence(seq_cst); /* F: 8; partners: A and B, H */
    if (word == BIDE_LIST_WATCHED_) {
        word = bide_atomic_load(&biased->list.word, relaxed);
        if (word == BIDE_LIST_WATCHED_ && watch_for_nothing(biased, &word))
            return;
    }
    bide_atomic_store(&biased->unneeded, 0, relaxed);
    sift_for(&biased->list, word, rules, context);
}

bide_frame *bide_waiter_list_suspend(bide_biased_list *biased, bide_list_waiter *own,
                                     bide_frame *frame, const bide_sweep_ops *rules, void *context)
{
    bide_waiter_list *list = &biased->list;
    bide_awaiter *awaiter = &own->listed.awaiter;
    if (bide_spin_until_ready(awaiter, frame))
        return frame;
    sifting s = sifting_of(list, rules, context);
    bide_handshake_init(&own->handshake);
    own->listed.newer = NULL;
    uintptr_t onto;
    if (!enlist(list, &own->listed, &onto)) {
        look(&s);
        end_shut(&s, awaiter); /* what came before the shutting was acquired: 3 */
        return frame;
    }
    if (onto == BIDE_LIST_EMPTY)
        bide_atomic_fence_heavy(); /* H; partner: L */
    look(&s);                      /* B */
    if (onto == BIDE_LIST_EMPTY ? begin_after_fence(&s, awaiter)
                                : is_due(&s, awaiter) && begin(&s, (uintptr_t)awaiter)) {
        look_through(&s);
        finish(&s);
        wake_ended(&s);
    }
    return bide_handshake_arm(&own->handshake) ? frame : NULL;
}

const bide_sweep_ops bide_sweep_cancelled = {.looks_again = false};
