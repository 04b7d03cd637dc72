/*
 * The lists of live roots and branches: doubly linked, each under a lock of its own. A link leads to
 * the next, and to the pointer that leads to it. Any thread adds and removes; one reader at a time
 * walks. roots.h has the argument.
 */
#include "roots.h"

#include "flights.h"
#include "lock.h"

bide_root_list_ bide_roots_[BIDE_ROOT_LISTS_];
bide_root_list_ bide_branches_[BIDE_ROOT_LISTS_];

/* By the topmost bits of the address times a number that mixes it (2^32 over the golden ratio). */
static bide_root_list_ *roots_list_of(bide_root_list_ *lists, const void *address)
{
    uint32_t mixed = (uint32_t)((uintptr_t)address >> 4) * UINT32_C(0x9e3779b1);
    return &lists[(uint64_t)mixed * BIDE_ROOT_LISTS_ >> 32];
}

static void link_at(bide_root_links_ **place, bide_root_links_ *links)
{
    links->next = *place;
    links->place = place;
    if (links->next != NULL)
        links->next->place = &links->next;
    *place = links;
}

static void roots_remove(bide_root_links_ *links)
{
    *links->place = links->next;
    if (links->next != NULL)
        links->next->place = links->place;
}

static void roots_add(bide_root_list_ *list, bide_root_links_ *links)
{
    bide_short_lock_take_(&list->lock);
    link_at(&list->first, links);
    bide_short_lock_free_(&list->lock);
}

static void remove_from(bide_root_list_ *list, bide_root_links_ *links)
{
    bide_short_lock_take_(&list->lock);
    roots_remove(links);
    bide_short_lock_free_(&list->lock);
}

/* So that its struct is not used again while it lives. */
static void add_to_flights(const bide_frame *frame)
{
#if BIDE_FLIGHTS_
    bide_flight_ other;
    bide_flights_add_(&(bide_flight_){.address = frame, .owner = frame}, NULL, &other);
#else
    (void)frame;
#endif
}

void bide_roots_add_(bide_root *root)
{
    add_to_flights(&root->frame);
    roots_add(roots_list_of(bide_roots_, root), &root->links);
}

void bide_roots_remove_(bide_root *root)
{
    bide_flight_ends_(&root->frame.awaiter);
    remove_from(roots_list_of(bide_roots_, root), &root->links);
}

void bide_branches_add_(bide_branch *branch)
{
    add_to_flights(&branch->frame);
    roots_add(roots_list_of(bide_branches_, branch), &branch->links);
}

void bide_branches_remove_(bide_branch *branch)
{
    bide_flight_ends_(&branch->frame.awaiter);
    remove_from(roots_list_of(bide_branches_, branch), &branch->links);
}

/* ---- Reading the lists ---- */

static bide_atomic(uint32_t) looked_at; /* LOCK_FREE */

void bide_roots_look_(void)
{
    lock_take(&looked_at);
}

void bide_roots_looked_(void)
{
    lock_free(&looked_at);
}

#if BIDE_FLIGHTS_

bool bide_roots_have_(const bide_root *root)
{
    return bide_flights_have_(&root->frame);
}

#else

bool bide_roots_have_(const bide_root *root)
{
    enum { MAX = 1000 };
    bide_root_list_ *list = roots_list_of(bide_roots_, root);
    bide_short_lock_take_(&list->lock);
    const bide_root_links_ *links = list->first;
    for (unsigned i = 0; i < MAX && links != NULL && links != &root->links; i++)
        links = links->next;
    bide_short_lock_free_(&list->lock);
    return links == &root->links;
}

#endif

void bide_roots_enter_(bide_root_list_ *list)
{
    bide_short_lock_take_(&list->lock);
    link_at(&list->first, &list->cursor);
    bide_short_lock_free_(&list->lock);
}

size_t bide_roots_next_(bide_root_list_ *list, const bide_root_links_ **links, size_t max)
{
    size_t count = 0;
    bide_short_lock_take_(&list->lock);
    bide_root_links_ **place = &list->cursor.next;
    for (; *place != NULL && count < max; place = &(*place)->next)
        links[count++] = *place;
    if (count != 0) {
        roots_remove(&list->cursor);
        link_at(place, &list->cursor);
    }
    bide_short_lock_free_(&list->lock);
    return count;
}

void bide_roots_leave_(bide_root_list_ *list)
{
    bide_short_lock_take_(&list->lock);
    roots_remove(&list->cursor);
    bide_short_lock_free_(&list->lock);
}

bide_root_list_ *bide_roots_hold_(const bide_root *root)
{
    bide_root_list_ *list = roots_list_of(bide_roots_, root);
    bide_short_lock_take_(&list->lock);
    return list;
}

void bide_roots_release_(bide_root_list_ *list)
{
    bide_short_lock_free_(&list->lock);
}

/* ---- The roots of a scheduler ---- */

static bool root_is_of(const bide_root_list_ *list, bide_root_links_ *links,
                       const bide_scheduler *scheduler)
{
    return links != &list->cursor &&
           bide_container_of(links, bide_root, links)->context.scheduler == scheduler;
}

static const bide_root *find_in(bide_root_list_ *list, const bide_scheduler *scheduler)
{
    bide_short_lock_take_(&list->lock);
    bide_root_links_ *links = list->first;
    while (links != NULL && !root_is_of(list, links, scheduler))
        links = links->next;
    bide_short_lock_free_(&list->lock);
    return links != NULL ? bide_container_of(links, bide_root, links) : NULL;
}

const bide_root *bide_roots_find_(const bide_scheduler *scheduler)
{
    const bide_root *root = NULL;
#if BIDE_ROOTS
    for (unsigned i = 0; i < BIDE_ROOT_LISTS_ && root == NULL; i++)
        root = find_in(&bide_roots_[i], scheduler);
#else
    (void)scheduler;
    (void)find_in;
#endif
    return root;
}

static const bide_scheduler *scheduler_of_root(const bide_root_links_ *links)
{
    return bide_container_of(links, bide_root, links)->context.scheduler;
}

static const bide_scheduler *scheduler_of_branch(const bide_root_links_ *links)
{
    return bide_container_of(links, bide_branch, links)->context.scheduler;
}

static size_t count_in(bide_root_list_ *list,
                       const bide_scheduler *(*scheduler_of)(const bide_root_links_ *links),
                       const bide_scheduler *scheduler, size_t max)
{
    size_t count = 0;
    bide_short_lock_take_(&list->lock);
    for (const bide_root_links_ *links = list->first; links != NULL && count < max;
         links = links->next)
        count += links != &list->cursor && scheduler_of(links) == scheduler;
    bide_short_lock_free_(&list->lock);
    return count;
}

size_t bide_roots_count_(const bide_scheduler *scheduler, size_t max)
{
    size_t count = 0;
#if BIDE_ROOTS
    for (unsigned i = 0; i < BIDE_ROOT_LISTS_ && count < max; i++) {
        count += count_in(&bide_roots_[i], scheduler_of_root, scheduler, max - count);
        count += count_in(&bide_branches_[i], scheduler_of_branch, scheduler, max - count);
    }
#else
    (void)scheduler;
    (void)max;
    (void)count_in;
    (void)scheduler_of_root;
    (void)scheduler_of_branch;
#endif
    return count;
}

/* ---- Forks ---- */

void bide_roots_before_fork_(void)
{
    for (unsigned i = 0; i < BIDE_ROOT_LISTS_; i++) {
        bide_short_lock_take_(&bide_roots_[i].lock);
        bide_short_lock_take_(&bide_branches_[i].lock);
    }
}

void bide_roots_after_fork_(void)
{
    for (unsigned i = 0; i < BIDE_ROOT_LISTS_; i++) {
        bide_short_lock_free_(&bide_branches_[i].lock);
        bide_short_lock_free_(&bide_roots_[i].lock);
    }
}

/*
 * Removes all links. Each leads to itself then, so that removing it again, or continuing from it, does
 * no harm.
 */
static void roots_unregister(bide_root_list_ *list)
{
    for (bide_root_links_ *next, *links = list->first; links != NULL; links = next) {
        next = links->next;
        links->next = NULL;
        links->place = &links->next;
    }
    list->first = NULL;
}

void bide_roots_in_child_(bool was_alone)
{
    for (unsigned i = 0; i < BIDE_ROOT_LISTS_; i++) {
        if (!was_alone) {
            roots_unregister(&bide_roots_[i]);
            roots_unregister(&bide_branches_[i]);
        }
        bide_short_lock_init_(&bide_roots_[i].lock);
        bide_short_lock_init_(&bide_branches_[i].lock);
    }
    if (!was_alone)
        bide_atomic_init(&looked_at, LOCK_FREE);
}
