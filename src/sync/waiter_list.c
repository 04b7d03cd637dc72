/*
 * Sifting a list of waiters, and the waits that look again. States, orders and their numbers: waiter_list.h.
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

/* One sifting, of one thread. All chains newest first, but those that have ended. */
typedef struct sifting {
    bide_waiter_list *list;
    const bide_sift_rules *rules;
    void *context;
    bide_awaiter *taken;       /* to be looked at */
    bide_awaiter_chain kept;   /* those that stay */
    bide_awaiter_chain let_go; /* the list was shut while they were kept */
    bide_awaiter_chain ended;  /* oldest first */
} sifting;

/*
 * Takes the waiters to be looked at; true if there are any. False: there is nobody, or another sifts and has been
 * asked to look again. `word` is what the caller has last seen the list's to be. Lock-free.
 */
static bool begin(sifting *s, uintptr_t word)
{
    bide_waiter_list *list = s->list;
    for (bool again = false; bide_waiter_list_word_has_waiters(word); again = true) {
        if ((word & BIDE_LIST_SIFTING_) != 0) {
            /* release: 7. Also where AGAIN is there already, for the sifter must see our reason too. */
            if (bide_atomic_compare_exchange(&list->word, &word, word | BIDE_LIST_AGAIN_, release,
                                             relaxed))
                return false;
        } else if (bide_atomic_compare_exchange(&list->word, &word, BIDE_LIST_SIFTING_, acquire,
                                                relaxed)) { /* 4 */
            s->taken = (bide_awaiter *)word;
            return true;
        }
        if (again)
            bide_atomic_retry();
    }
    return false;
}

/* Begins in order to remove one that must be there or have been taken to be ended: false. Blocks while another
 * sifts. */
static bool begin_alone(sifting *s)
{
    bide_waiter_list *list = s->list;
    while ((bide_atomic_load(&list->word, relaxed) & BIDE_LIST_SIFTING_) != 0 ||
           !begin(s, bide_atomic_load(&list->word, relaxed))) {
        if (bide_waiter_list_word_is_idle(bide_atomic_load(&list->word, relaxed)))
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

static void let_go_of_kept(sifting *s)
{
    if (s->kept.first != NULL)
        put_before(&s->let_go, s->kept);
    s->kept.first = NULL;
}

static uintptr_t what_stays(const sifting *s)
{
    if (s->kept.first != NULL)
        return (uintptr_t)s->kept.first;
    return s->rules->looks_again ? BIDE_LIST_WATCHED_ : BIDE_LIST_EMPTY;
}

/*
 * Puts back what is kept. True: done. False: look at `taken` again, which has what was kept, and what has come since.
 * Lock-free, but linear in what has come since.
 */
static bool put_back(sifting *s)
{
    bide_waiter_list *list = s->list;
    if (s->kept.first != NULL)
        s->kept.last->link = NULL;
    uintptr_t word = BIDE_LIST_SIFTING_;
    for (bool again = false;;) {
        if (word == BIDE_LIST_SIFTING_) {
            /* release: 6. */
            if (bide_atomic_compare_exchange(&list->word, &word, what_stays(s), release, relaxed))
                return true;
        } else if (word == BIDE_LIST_SIFTING_SHUT_) {
            /* acquire: 5. */
            if (bide_atomic_compare_exchange(&list->word, &word, BIDE_LIST_SHUT, acquire,
                                             relaxed)) {
                let_go_of_kept(s);
                return true;
            }
        } else if (bide_atomic_compare_exchange(&list->word, &word, BIDE_LIST_SIFTING_, acquire,
                                                relaxed)) { /* 4, 5 and 7 */
            since what = since_of(word);
            if (what.reopened)
                let_go_of_kept(s);
            put_before(&s->kept, what.chain);
            if ((word & BIDE_LIST_AGAIN_) != 0) {
                s->taken = s->kept.first;
                s->kept.first = NULL;
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

/* Ends one because the list was shut. */
static void end_shut(const sifting *s, bide_awaiter *awaiter)
{
    take_result(s, awaiter);
    if (s->rules->is_due != NULL && !s->rules->is_due(s->context, awaiter))
        bide_awaiter_end_closed(awaiter);
}

/* The same for a chain, newest first. What it is judged by is what was there when the list was shut, or later. */
static void end_all_shut(sifting *s, bide_awaiter *newest)
{
    if (newest == NULL)
        return;
    look(s);
    for (bide_awaiter *a = newest; a != NULL; a = a->link)
        end_shut(s, a);
    bide_awaiter_chain_append(&s->ended, bide_awaiter_reverse(newest), newest);
}

/* Looks at those that were taken, and ends who is to end; the others are kept. True if `withdrawn` was there. */
static bool look_through(sifting *s, const bide_awaiter *withdrawn)
{
    bide_awaiter_chain these = {NULL, NULL};
    bool found = false;
    look(s);
    for (bide_awaiter *a = s->taken, *next; a != NULL; a = next) {
        next = a->link;
        if (a == withdrawn) {
            found = true;
            continue;
        }
        bool due = is_due(s, a);
        if (due || bide_awaiter_is_canceled(a)) {
            take_result(s, a);
            if (!due)
                bide_awaiter_end_canceled(a);
            bide_awaiter_chain_prepend(&these, a);
        } else {
            bide_awaiter_chain_append(&s->kept, a, a);
        }
    }
    if (these.first != NULL)
        bide_awaiter_chain_append(&s->ended, these.first, these.last);
    return found;
}

/* Sifts what was taken, and what comes meanwhile. The list is not touched afterwards. */
static bool sift(sifting *s, const bide_awaiter *withdrawn)
{
    bool found = false;
    do {
        found = look_through(s, withdrawn) || found;
    } while (!put_back(s));
    end_all_shut(s, s->let_go.first);
    return found;
}

/*
 * Finishes the handshake (12) of each of those that have ended but `own`, and keeps only those that are to be woken:
 * whose suspend has armed them. The others' suspends will go on by themselves. Returns whether `own` was among them.
 */
static bool shake_hands(bide_awaiter_chain *ended, const bide_awaiter *own)
{
    bide_awaiter_chain armed = {NULL, NULL};
    bool own_ended = false;
    for (bide_awaiter *a = ended->first, *next; a != NULL; a = next) {
        next = a->link;
        if (a == own) {
            own_ended = true;
            continue;
        }
        bide_list_waiter *waiter = bide_container_of(a, bide_list_waiter, awaiter);
        /* release: the results, to suspend's exchange; acquire: that suspend is done with the object. Not armed:
         * it is resumed there from now on, and not touched here. */
        if (bide_atomic_exchange(&waiter->handshake, BIDE_WAIT_ENDED_, acq_rel) ==
            BIDE_WAIT_ARMED_) {
            a->link = NULL;
            bide_awaiter_chain_append(&armed, a, a);
        }
    }
    *ended = armed;
    return own_ended;
}

/* Wakes those that have ended. Returns whether `own` was among them; it is left to its suspend. */
static bool wake_ended(sifting *s, const bide_awaiter *own)
{
    bool own_ended = s->rules->looks_again && shake_hands(&s->ended, own);
    bide_wake(s->ended.first);
    return own_ended;
}

static sifting sifting_of(bide_waiter_list *list, const bide_sift_rules *rules, void *context)
{
    return (sifting){list, rules, context, NULL, {NULL, NULL}, {NULL, NULL}, {NULL, NULL}};
}

static bool sift_for(bide_waiter_list *list, uintptr_t word, const bide_sift_rules *rules,
                     void *context, const bide_awaiter *own)
{
    sifting s = sifting_of(list, rules, context);
    if (!begin(&s, word))
        return false;
    sift(&s, NULL);
    return wake_ended(&s, own);
}

void bide_waiter_list_sift_canceled(bide_waiter_list *list, const bide_sift_rules *rules,
                                    void *context)
{
    /* relaxed: whoever comes for a waiter sees its push, or something later. */
    sift_for(list, bide_atomic_load(&list->word, relaxed), rules, context, NULL);
}

bool bide_waiter_list_sift_out(bide_waiter_list *list, const bide_awaiter *awaiter,
                               const bide_sift_rules *rules, void *context)
{
    sifting s = sifting_of(list, rules, context);
    if (!begin_alone(&s))
        return false;
    bool found = sift(&s, awaiter);
    wake_ended(&s, NULL);
    return found;
}

void bide_waiter_list_close(bide_waiter_list *list, const bide_sift_rules *rules, void *context)
{
    bide_awaiter *taken = bide_waiter_list_shut(list);
    if (taken == NULL)
        return; /* the list may be gone by now: see whoever found it shut */
    sifting s = sifting_of(list, rules, context);
    end_all_shut(&s, taken);
    wake_ended(&s, NULL);
}

/* ---- Biased lists ---- */

/* How often in a row announcers watch for nothing before they stop: about what a heavy fence costs. */
#if BIDE_CHECK
enum { UNNEEDED_MOST = 2 };
#else
enum { UNNEEDED_MOST = 64 };
#endif

/*
 * As begin, by `own`, who has enlisted onto EMPTY, passed the heavy fence, and looked: M of 10. Whatever the word is,
 * it is modified: who enlisted before that is taken, or the one sifting looks at him again; who comes later comes after
 * the fence.
 */
static bool begin_after_fence(sifting *s, const bide_awaiter *own)
{
    bide_waiter_list *list = s->list;
    uintptr_t word = (uintptr_t)own;
    for (bool again = false; !bide_waiter_list_word_is_shut(word); again = true) {
        if (bide_waiter_list_word_has_waiters(word) && (word & BIDE_LIST_SIFTING_) == 0) {
            if (bide_atomic_compare_exchange(&list->word, &word, BIDE_LIST_SIFTING_, acquire,
                                             relaxed)) { /* 4 */
                s->taken = (bide_awaiter *)word;
                return true;
            }
        } else {
            uintptr_t same = (word & BIDE_LIST_SIFTING_) != 0 ? word | BIDE_LIST_AGAIN_ : word;
            /* relaxed: the fence in front of it releases, 7 and 10. */
            if (bide_atomic_compare_exchange(&list->word, &word, same, relaxed, relaxed))
                return false;
        }
        if (again)
            bide_atomic_retry();
    }
    return false;
}

/* Enlists a waiter; *onto is the word that he came onto. False: the list is shut. */
static bool enlist(bide_waiter_list *list, bide_awaiter *awaiter, uintptr_t *onto)
{
    uintptr_t word = bide_atomic_load(&list->word, acquire);
    for (bool again = false; !bide_waiter_list_word_is_shut(word); again = true) {
        uintptr_t older = word == BIDE_LIST_WATCHED_ ? 0 : word & ~BIDE_LIST_TAGS_;
        awaiter->link = (bide_awaiter *)older;
        /* A; partner: F. Acquire if it fails: 3. */
        if (bide_atomic_compare_exchange(&list->word, &word,
                                         (uintptr_t)awaiter | (word & BIDE_LIST_TAGS_), seq_cst,
                                         acquire)) {
            *onto = word;
            return true;
        }
        if (again)
            bide_atomic_retry();
    }
    return false;
}

/* The list is watched and nobody is there. After long enough it is no longer watched: true, unless somebody has
 * come. */
static bool watch_for_nothing(bide_biased_list *biased, uintptr_t *word)
{
    uint32_t unneeded = bide_atomic_load(&biased->unneeded, relaxed) + 1;
    /* relaxed: 11. */
    if (unneeded >= UNNEEDED_MOST &&
        !bide_atomic_compare_exchange(&biased->list.word, word, BIDE_LIST_EMPTY, relaxed, relaxed))
        return false;
    bide_atomic_store(&biased->unneeded, unneeded < UNNEEDED_MOST ? unneeded : 0, relaxed);
    return true;
}

void bide_waiter_list_announce(bide_biased_list *biased, uintptr_t word,
                               const bide_sift_rules *rules, void *context)
{
    bide_atomic_fence(seq_cst); /* F: 8; partners: A and B, H */
    if (word == BIDE_LIST_WATCHED_) {
        word = bide_atomic_load(&biased->list.word, relaxed);
        if (word == BIDE_LIST_WATCHED_ && watch_for_nothing(biased, &word))
            return;
    }
    bide_atomic_store(&biased->unneeded, 0, relaxed);
    sift_for(&biased->list, word, rules, context, NULL);
}

bide_frame *bide_waiter_list_suspend(bide_biased_list *biased, bide_list_waiter *own,
                                     bide_frame *frame, const bide_sift_rules *rules, void *context)
{
    bide_waiter_list *list = &biased->list;
    bide_awaiter *awaiter = &own->awaiter;
    if (bide_look(awaiter, frame))
        return frame;
    sifting s = sifting_of(list, rules, context);
    bide_atomic_init(&own->handshake, BIDE_WAIT_BEGUN_);
    uintptr_t onto;
    if (!enlist(list, awaiter, &onto)) {
        look(&s);
        end_shut(&s, awaiter); /* what came before the shutting was acquired: 3 */
        return frame;
    }
    if (onto == BIDE_LIST_EMPTY)
        bide_atomic_fence_heavy(); /* H; partner: L */
    look(&s);                      /* B */
    if (onto == BIDE_LIST_EMPTY ? begin_after_fence(&s, awaiter)
                                : is_due(&s, awaiter) && begin(&s, (uintptr_t)awaiter)) {
        sift(&s, NULL);
        if (wake_ended(&s, awaiter))
            return frame;
    }
    /* From here on neither the list nor what is beside it is touched (12). */
    if (bide_atomic_exchange(&own->handshake, BIDE_WAIT_ARMED_, acq_rel) == BIDE_WAIT_ENDED_)
        return frame;
    return NULL;
}

const bide_sift_rules bide_sift_canceled = {NULL, NULL, NULL, false};
