/*
 * The biased waiter list: its announcers store a number and check for waiters without a full fence,
 * and its waiters check the number again after they have enlisted.
 *
 *     EMPTY      no waiter; announcers pass a light fence, so a waiter that enlists passes a heavy one
 *     WATCHED    no waiter; announcers pass a full fence, as they do while a waiter waits
 *
 * Any thread may announce. The awaiting coroutine's thread suspends. Neither misses the other: 8 to
 * 14 of docs/internals/waiter_list.md, where the letters A to N are defined too.
 */
#include "list_sweep.h"

/*
 * Begins a sweep for `own`, which has enlisted onto EMPTY, passed the heavy fence, and looked: M of
 * 10. Modifies the word whatever it is. A waiter that enlisted before that is taken, or its sweeper
 * judges it again. A waiter that enlists later comes after the fence.
 */
static bool biased_list_begin_after_fence(bide_list_sweep *s, const bide_awaiter *own)
{
    bide_waiter_list *list = s->list;
    uintptr_t word = (uintptr_t)own;
    for (bool again = false; !bide_waiter_list_word_is_shut(word); again = true) {
        if (bide_waiter_list_word_has_waiters(word) && (word & BIDE_LIST_SWEEPING_) == 0) {
            if (bide_atomic_compare_exchange(&list->word, &word, BIDE_LIST_SWEEPING_, acquire,
                                             relaxed)) { /* 4 */
                bide_list_sweep_hold_(s, word);
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

/* Enlists a waiter; *onto is the word that it replaced. Returns false if the list is shut. */
static bool biased_list_enlist(bide_waiter_list *list, bide_listed *waiter, uintptr_t *onto)
{
    bide_assert(((uintptr_t)waiter & BIDE_LIST_TAGS_) == 0);
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
 * Counts an announcement that found the list watched and without a waiter. After enough of them in a
 * row the list is no longer watched. Returns false if a waiter has enlisted; *word is then the new word.
 */
static bool biased_list_watch_unneeded(bide_biased_list *biased, uintptr_t *word)
{
    uint32_t unneeded = bide_atomic_load(&biased->unneeded, relaxed) + 1;
    bide_assert(unneeded <= BIDE_LIST_UNNEEDED_MAX_);
    /* relaxed: 11. */
    if (unneeded >= BIDE_LIST_UNNEEDED_MAX_ &&
        !bide_atomic_compare_exchange(&biased->list.word, word, BIDE_LIST_EMPTY, relaxed, relaxed))
        return false;
    bide_atomic_store(&biased->unneeded, unneeded < BIDE_LIST_UNNEEDED_MAX_ ? unneeded : 0,
                      relaxed);
    return true;
}

static void biased_list_sweep(bide_waiter_list *list, uintptr_t word, const bide_sweep_ops *rules,
                              void *context)
{
    bide_list_sweep s = bide_list_sweep_of_(list, rules, context);
    if (!bide_list_sweep_begin_(&s, word))
        return;
    bide_list_sweep_look_(&s);
    if (rules->reaches == NULL || rules->reaches(context))
        bide_list_sweep_partition_(&s);
    bide_list_sweep_finish_(&s);
    bide_list_sweep_wake_(&s);
}

void bide_waiter_list_announce(bide_biased_list *biased, uintptr_t word,
                               const bide_sweep_ops *rules, void *context)
{
    bide_atomic_fence(seq_cst); /* F: 8; partners: A and B, H */
    if (word == BIDE_LIST_WATCHED_) {
        word = bide_atomic_load(&biased->list.word, relaxed);
        if (word == BIDE_LIST_WATCHED_ && biased_list_watch_unneeded(biased, &word))
            return;
    }
    bide_atomic_store(&biased->unneeded, 0, relaxed);
    biased_list_sweep(&biased->list, word, rules, context);
}

bide_frame *bide_waiter_list_suspend(bide_biased_list *biased, bide_list_waiter *own,
                                     bide_frame *frame, const bide_sweep_ops *rules, void *context)
{
    bide_waiter_list *list = &biased->list;
    bide_awaiter *awaiter = &own->listed.awaiter;
    bide_assert(rules->looks_again && rules->is_due != NULL);
    own->listed.newer = NULL; /* also if it ends here: it may be withdrawn after that */
    if (bide_spin_until_ready(awaiter, frame))
        return frame;
    bide_list_sweep s = bide_list_sweep_of_(list, rules, context);
    bide_handshake_init(&own->handshake);
    uintptr_t onto;
    if (!biased_list_enlist(list, &own->listed, &onto)) {
        bide_list_sweep_look_(&s);
        /* Announcements from before the shutting were acquired: 3. */
        bide_list_sweep_end_shut_(&s, awaiter);
        return frame;
    }
    if (onto == BIDE_LIST_EMPTY)
        bide_atomic_fence_heavy(); /* H; partner: L */
    bide_list_sweep_look_(&s);     /* B */
    if (onto == BIDE_LIST_EMPTY ? biased_list_begin_after_fence(&s, awaiter)
                                : bide_list_sweep_is_due_(&s, awaiter) &&
                                      bide_list_sweep_begin_(&s, (uintptr_t)awaiter)) {
        bide_list_sweep_partition_(&s);
        bide_list_sweep_finish_(&s);
        bide_list_sweep_wake_(&s);
    }
    return bide_handshake_arm(&own->handshake) ? frame : NULL;
}
