/*
 * The budget of descriptors: how many clients each listener may have, so that no descriptor runs out.
 *
 *     limit = open at the start + reserve + clients + spare
 *
 *     reserve   listeners, health checks, names, the log, reloads: always available
 *     clients   two for each, its own and the one to a server; of the status page, one
 *     spare     for connections that are kept idle, pipes of relays, and further requests of a client of HTTP/2
 *               (turns.h); without it there are none
 *
 * Clients beyond their listener's share wait in the queue of its socket, as they do beyond max-connections.
 *
 * Why the limit is kept:
 *  1. A listener's share is at most its max-connections. If all of these fit into three quarters of the budget, each
 *     listener has its own; the rest is spare. Otherwise a quarter is spare, and the others are divided evenly: the
 *     listeners that want less than an even share have what they want, and the others the same number.
 *  2. Connections of before a reload continue, more than the new share, or of a listener that is gone. They are
 *     subtracted before the rest is divided, and it is divided again whenever one of them has ended.
 *  3. A listener has a share of 1 or more. Together with an accept that waits while the share becomes smaller, that is two
 *     connections beyond 1 and 2 for each listener. The reserve has them.
 *  4. Spare descriptors are counted before they are opened, and until they are closed or a client has the connection.
 *  5. More of them may be in use than a reload leaves. They are subtracted like connections of before (2).
 *  6. Each change that may leave a spare one free serves the queue of waiters: one is given back, the budget is divided, or a
 *     waiter joins. So no spare one is free while there is a queue.
 *  7. A reload needs listeners and checks of both configurations at once. It is refused if the connections do not leave
 *     as much (descriptors_reload_reserve). Connections that come later, while its listeners are opened, are not looked
 *     at again: if they leave too few descriptors to listen, the reload fails then.
 *
 * All of it belongs to the program's loop.
 */
#ifndef PROXY_DESCRIPTORS_H
#define PROXY_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>

/* The part of one listener. */
struct share {
    struct share *next;
    size_t wanted;  /* its max-connections */
    unsigned cost;  /* descriptors of a connection */
    size_t live;    /* connections that there are: accepted, and not closed */
    bool is_ending; /* it accepts no more */
    size_t max;     /* the result: connections that it may have */

    /* of descriptors_divide */
    bool is_fixed; /* it has more connections than its share */
};

/* Waits for one spare descriptor. */
struct spare_waiter {
    struct spare_waiter *next, *previous;
    bool is_queued;
    void (*take)(
        struct spare_waiter *waiter); /* it has left the queue, and a spare one is taken for it */
};

struct descriptors {
    size_t limit; /* less those open at the start */
    size_t reserve;
    size_t spare, used_spare;
    bool
        is_uneven; /* 2, 5: to be divided again when a connection ends, or a spare one is given back */
    void (*divide)(struct descriptors *descriptors); /* does that; NULL: nobody */
    struct spare_waiter *first, *last;               /* the queue; NULL: nobody waits */
};

/* Raises the limit of the process as far as it may, and counts the descriptors that are open. */
void descriptors_init(struct descriptors *descriptors);

/* The reserve for this many listeners, and servers that are checked or whose names are looked up. */
size_t descriptors_reserve(size_t listeners, size_t servers);

/* The part of the reserve that a reload needs, for the listeners and servers of both configurations. */
size_t descriptors_reload_reserve(size_t listeners, size_t servers);

/* The descriptors of all connections that there are, and the spare ones in use. */
size_t descriptors_in_use(const struct descriptors *descriptors, const struct share *shares);

/* Divides the budget among the listeners of the list. */
void descriptors_divide(struct descriptors *descriptors, struct share *shares);

/* Takes `count` spare descriptors, if there are so many. They must be given back. */
bool descriptors_take(struct descriptors *descriptors, size_t count);
void descriptors_give(struct descriptors *descriptors, size_t count);

/* Joins the end of the queue, or takes a spare one at once. A waiter must be in no queue, and leaves it before its memory ends. */
void descriptors_wait(struct descriptors *descriptors, struct spare_waiter *waiter);

/* Leaves the queue; nothing happens if the waiter is in none. */
void descriptors_leave(struct descriptors *descriptors, struct spare_waiter *waiter);

#endif
