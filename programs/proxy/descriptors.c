/* The budget of descriptors. */
#define _GNU_SOURCE
#include "descriptors.h"

#include <bide/platform.h>

#include <poll.h>
#include <sys/resource.h>

enum {
    MAX_LIMIT = 1 << 28,  /* shares are computed without overflow */
    MAX_INHERITED = 1024, /* numbers that may be open at the start */
    OWN =
        20, /* the loop, the signals, the log, the file that a reload reads, the monitor, the handover */
    OF_NAMES = 8, /* sockets for queries */
    OF_LISTENER =
        4 + 2 * 2 /* its socket and that one's directory, its server's reserve, a key log; 3 */
};

static size_t without(size_t from, size_t count)
{
    return from > count ? from - count : 0;
}

/* The open descriptors with numbers below the limit, and below MAX_INHERITED. */
static size_t count_open(size_t limit)
{
    struct pollfd numbers[MAX_INHERITED];
    size_t count = limit < MAX_INHERITED ? limit : MAX_INHERITED, open = 0;
    for (size_t i = 0; i < count; i++)
        numbers[i] = (struct pollfd){.fd = (int)i};
    if (poll(numbers, count, 0) < 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        open += (numbers[i].revents & POLLNVAL) == 0;
    return open;
}

void descriptors_init(struct descriptors *descriptors)
{
    struct rlimit limit = {MAX_LIMIT, MAX_LIMIT};
    *descriptors = (struct descriptors){.limit = 0};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
        (void)getrlimit(RLIMIT_NOFILE, &limit);
    }
    descriptors->limit = limit.rlim_cur < MAX_LIMIT ? (size_t)limit.rlim_cur : MAX_LIMIT;
    descriptors->limit = without(descriptors->limit, count_open(descriptors->limit));
}

size_t descriptors_reload_reserve(size_t listeners, size_t servers)
{
    return OWN + (servers != 0 ? OF_NAMES : 0) + listeners * OF_LISTENER + servers;
}

/* Listeners and checks count twice: during a reload there are those of both configurations. */
size_t descriptors_reserve(size_t listeners, size_t servers)
{
    return descriptors_reload_reserve(2 * listeners, 2 * servers);
}

static size_t live_descriptors(const struct share *shares)
{
    size_t sum = 0;
    for (const struct share *at = shares; at != NULL; at = at->next)
        sum += at->cost * at->live;
    return sum;
}

size_t descriptors_in_use(const struct descriptors *descriptors, const struct share *shares)
{
    return live_descriptors(shares) + descriptors->used_spare;
}

/* Everything that the listeners would use, with the connections that they have already. */
static size_t wanted_descriptors(const struct share *shares)
{
    size_t sum = 0;
    for (const struct share *at = shares; at != NULL; at = at->next)
        sum += at->cost * (at->is_ending || at->live > at->wanted ? at->live : at->wanted);
    return sum;
}

/* The descriptors of listeners that are not fixed, if none has more than `max` connections. */
static size_t descriptors_up_to(const struct share *shares, size_t max)
{
    size_t sum = 0;
    for (const struct share *at = shares; at != NULL; at = at->next)
        sum += at->is_fixed ? 0 : at->cost * (at->wanted < max ? at->wanted : max);
    return sum;
}

/* The greatest number of connections that each listener may have of `left`, and 1 if there are too few. */
static size_t greatest_max(const struct share *shares, size_t left)
{
    size_t low = 1, high = MAX_LIMIT;
    while (low < high) {
        size_t middle = low + (high - low + 1) / 2;
        if (descriptors_up_to(shares, middle) <= left)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Divides `left`, and fixes listeners that have more connections than their share. Returns true if there are such. */
static bool divide_evenly(struct share *shares, size_t *left)
{
    size_t max = greatest_max(shares, *left), fixed = 0;
    for (struct share *at = shares; at != NULL; at = at->next) {
        if (at->is_fixed)
            continue;
        at->max = at->wanted < max ? at->wanted : max;
        at->is_fixed = at->live > at->max;
        fixed += at->is_fixed ? at->cost * at->live : 0;
    }
    *left = without(*left, fixed);
    return fixed != 0;
}

/* 6 */
static void serve_queue(struct descriptors *descriptors)
{
    struct spare_waiter *first;
    while ((first = descriptors->first) != NULL && descriptors_take(descriptors, 1)) {
        descriptors_leave(descriptors, first);
        first->take(first);
    }
}

static void divide_budget(struct descriptors *descriptors, struct share *shares)
{
    size_t budget = without(descriptors->limit, descriptors->reserve);
    size_t wanted = wanted_descriptors(shares), unused = without(budget, live_descriptors(shares));
    size_t quarter = budget / 4, used = descriptors->used_spare;
    descriptors->is_uneven = false;
    for (struct share *at = shares; at != NULL; at = at->next) {
        at->max = at->wanted;
        at->is_fixed = at->is_ending;
        descriptors->is_uneven |= at->is_ending ? at->live != 0 : at->live > at->wanted;
    }
    if (wanted <= without(budget, used > quarter ? used : quarter)) { /* 1 */
        descriptors->spare = budget - wanted;
        return;
    }
    descriptors->is_uneven |= used > quarter;
    descriptors->spare = quarter < unused ? quarter : unused;
    size_t left = without(budget, used > descriptors->spare ? used : descriptors->spare);
    for (const struct share *at = shares; at != NULL; at = at->next)
        left = without(left, at->is_ending ? at->cost * at->live : 0);
    while (divide_evenly(shares, &left)) /* 2 */
        descriptors->is_uneven = true;
}

void descriptors_divide(struct descriptors *descriptors, struct share *shares)
{
    divide_budget(descriptors, shares);
    serve_queue(descriptors);
}

bool descriptors_take(struct descriptors *descriptors, size_t count)
{
    if (descriptors->used_spare + count > descriptors->spare)
        return false;
    descriptors->used_spare += count;
    return true;
}

void descriptors_give(struct descriptors *descriptors, size_t count)
{
    bide_assert(descriptors->used_spare >= count);
    descriptors->used_spare -= count;
    if (descriptors->is_uneven && descriptors->divide != NULL)
        descriptors->divide(descriptors); /* 5 */
    serve_queue(descriptors);
}

void descriptors_wait(struct descriptors *descriptors, struct spare_waiter *waiter)
{
    bide_assert(!waiter->is_queued);
    waiter->is_queued = true;
    waiter->next = NULL;
    waiter->previous = descriptors->last;
    *(waiter->previous != NULL ? &waiter->previous->next : &descriptors->first) = waiter;
    descriptors->last = waiter;
    serve_queue(descriptors);
}

void descriptors_leave(struct descriptors *descriptors, struct spare_waiter *waiter)
{
    if (!waiter->is_queued)
        return;
    waiter->is_queued = false;
    *(waiter->previous != NULL ? &waiter->previous->next : &descriptors->first) = waiter->next;
    *(waiter->next != NULL ? &waiter->next->previous : &descriptors->last) = waiter->previous;
}
