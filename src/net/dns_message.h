/*
 * Reading the messages of name servers (RFC 1035, 4). The bytes are untrusted: nothing outside of the
 * message is read, and every loop is bounded by its size.
 */
#ifndef BIDE_SRC_NET_DNS_MESSAGE_H
#define BIDE_SRC_NET_DNS_MESSAGE_H

#include "bide/names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BIDE_DNS_HEADER_ = 12 }; /* bytes; functions of the header need as many */

/* The response code. */
BIDE_INLINE unsigned bide_dns_code_(const uint8_t *message)
{
    return message[3] & 15u;
}

BIDE_INLINE bool bide_dns_is_truncated_(const uint8_t *message)
{
    return (message[2] & 2u) != 0;
}

BIDE_INLINE bool bide_dns_has_answer_(const uint8_t *message)
{
    return (message[6] | message[7]) != 0;
}

/*
 * For how many seconds the message says that something is absent: by the SOA record of its authority
 * section (RFC 2308, 5). False: it has none, or is invalid.
 */
bool bide_dns_absence_(const uint8_t *message, size_t size, uint32_t *seconds);

/*
 * Adds the records of the operation's kind to it. Returns their number, or -EREMOTEIO: the message is
 * invalid, or one is that has a name which is no host name. `life`: the shortest time to live of the
 * answers, in seconds.
 */
int bide_dns_records_(bide_resolve_records_operation *operation, const uint8_t *message,
                      size_t size, uint32_t *life);

#endif
