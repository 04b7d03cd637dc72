/*
 * When the look-ups and checks of a server are due: each has its own interval, and waits for no other.
 * All times are in the time of bide_now().
 */
#ifndef PROXY_DUE_H
#define PROXY_DUE_H

#include <stdbool.h>
#include <stdint.h>

#define LOOKUP_INTERVAL UINT64_C(30000000000)
#define FIRST_INTERVAL  UINT64_C(5000000000) /* while the server has no address */

/* A look-up or a check that the server does not have is at UINT64_MAX. */
struct due {
    uint64_t lookup_at, check_at;
};

static inline bool due_is_lookup(const struct due *due, uint64_t now)
{
    return due->lookup_at <= now;
}

/* Without an address there is nothing to check. */
static inline bool due_is_check(const struct due *due, bool has_address, uint64_t now)
{
    return has_address && due->check_at <= now;
}

static inline void due_looked_up(struct due *due, bool has_address, uint64_t now)
{
    due->lookup_at = now + (has_address ? LOOKUP_INTERVAL : FIRST_INTERVAL);
}

static inline void due_checked(struct due *due, uint64_t every, uint64_t now)
{
    due->check_at = now + every;
}

/* When the next of both is due. */
static inline uint64_t due_next(const struct due *due, bool has_address)
{
    return has_address && due->check_at < due->lookup_at ? due->check_at : due->lookup_at;
}

#endif
