/*
 * Sifting a list of waiters. States, orders and their numbers: waiter_list.h.
 */
#include "bide/waiter_list.h"

#include "bide/stop.h"

/* What was pushed since a chain was taken. */
typedef struct since {
    bide_awaiter_chain chain;
    bool reopened; /* and the list was shut before */
} since;

static since since_of(uintptr_t word)
{
    since s = {{NULL, NULL}, false};
    bide_awaiter *a = (bide_awaiter *)(word & ~BIDE_LIST_TAGS_);
    if ((uintptr_t)a > BIDE_LIST_SIFTING_SHUT_) {
        s.chain.first = a;
        do {
            s.chain.last = a;
            a = a->link;
        } while ((uintptr_t)a > BIDE_LIST_SIFTING_SHUT_);
        s.chain.last->link = NULL;
    }
    s.reopened = (uintptr_t)a == BIDE_LIST_REOPENED_;
    return s;
}

bide_awaiter *bide_waiter_list_cut_(uintptr_t word)
{
    return since_of(word).chain.first;
}

bool bide_sift_begin(bide_sift *sift, bide_waiter_list *list, uintptr_t word)
{
    *sift = (bide_sift){NULL, {NULL, NULL}, {NULL, NULL}};
    for (bool again = false; word > BIDE_LIST_SHUT && word != BIDE_LIST_SIFTING_SHUT_;
         again = true) {
        if ((word & BIDE_LIST_SIFTING_) != 0) {
            /* release: 7. Also where AGAIN is there already, for the sifter must see our reason too. */
            if (bide_atomic_compare_exchange(&list->word, &word, word | BIDE_LIST_AGAIN_, release,
                                             relaxed))
                return false;
        } else if (bide_atomic_compare_exchange(&list->word, &word, BIDE_LIST_SIFTING_, acquire,
                                                relaxed)) { /* 4 */
            sift->taken = (bide_awaiter *)word;
            return true;
        }
        if (again)
            bide_atomic_retry();
    }
    return false;
}

bool bide_sift_begin_alone(bide_sift *sift, bide_waiter_list *list)
{
    while ((bide_atomic_load(&list->word, relaxed) & BIDE_LIST_SIFTING_) != 0 ||
           !bide_sift_begin(sift, list, bide_atomic_load(&list->word, relaxed))) {
        if (bide_atomic_load(&list->word, relaxed) <= BIDE_LIST_SHUT)
            return false;
        bide_platform.yield();
    }
    return true;
}

/* `before` is newer than `after`. */
static void put_before(bide_awaiter_chain *after, bide_awaiter_chain before)
{
    if (before.first == NULL)
        return;
    if (after->first != NULL) {
        before.last->link = after->first;
        before.last = after->last;
    }
    *after = before;
}

static void let_go(bide_sift *sift)
{
    if (sift->kept.first != NULL)
        put_before(&sift->let_go, sift->kept);
    sift->kept.first = NULL;
}

bool bide_sift_end(bide_sift *sift, bide_waiter_list *list)
{
    if (sift->kept.first != NULL)
        sift->kept.last->link = NULL;
    uintptr_t word = BIDE_LIST_SIFTING_;
    for (bool again = false;;) {
        if (word == BIDE_LIST_SIFTING_) {
            /* release: 6. */
            if (bide_atomic_compare_exchange(&list->word, &word, (uintptr_t)sift->kept.first,
                                             release, relaxed))
                return true;
        } else if (word == BIDE_LIST_SIFTING_SHUT_) {
            /* acquire: 5. */
            if (bide_atomic_compare_exchange(&list->word, &word, BIDE_LIST_SHUT, acquire,
                                             relaxed)) {
                let_go(sift);
                return true;
            }
        } else if (bide_atomic_compare_exchange(&list->word, &word, BIDE_LIST_SIFTING_, acquire,
                                                relaxed)) { /* 4, 5 and 7 */
            since s = since_of(word);
            if (s.reopened)
                let_go(sift);
            put_before(&sift->kept, s.chain);
            if ((word & BIDE_LIST_AGAIN_) != 0) {
                sift->taken = sift->kept.first;
                sift->kept.first = NULL;
                return false;
            }
            word = BIDE_LIST_SIFTING_;
            again = false;
            continue;
        }
        if (again)
            bide_atomic_retry();
        again = true;
    }
}

/* Sifts for those that were asked to stop, and for `withdrawn`; true if that was there. */
static bool sift_all(bide_sift *sift, bide_waiter_list *list, const bide_awaiter *withdrawn)
{
    bide_awaiter_chain ended = {NULL, NULL}; /* oldest first */
    bool found = false;
    do {
        bide_awaiter_chain these = {NULL, NULL};
        for (bide_awaiter *a = sift->taken, *next; a != NULL; a = next) {
            next = a->link;
            if (a == withdrawn) {
                found = true;
            } else if (bide_awaiter_is_canceled(a)) {
                bide_awaiter_end_canceled(a);
                bide_awaiter_chain_prepend(&these, a);
            } else {
                bide_awaiter_chain_append(&sift->kept, a, a);
            }
        }
        if (these.first != NULL)
            bide_awaiter_chain_append(&ended, these.first, these.last);
    } while (!bide_sift_end(sift, list));
    /* The list is not touched from here on. */
    bide_awaiter *newest = sift->let_go.first;
    if (newest != NULL)
        bide_awaiter_chain_append(&ended, bide_awaiter_reverse(newest), newest);
    bide_wake(ended.first);
    return found;
}

void bide_waiter_list_cancel(bide_waiter_list *list)
{
    bide_sift sift;
    /* relaxed: whoever comes for a waiter sees its push, or something later. */
    if (bide_sift_begin(&sift, list, bide_atomic_load(&list->word, relaxed)))
        sift_all(&sift, list, NULL);
}

bool bide_waiter_list_withdraw(bide_waiter_list *list, bide_awaiter *awaiter)
{
    bide_sift sift;
    return bide_sift_begin_alone(&sift, list) && sift_all(&sift, list, awaiter);
}
