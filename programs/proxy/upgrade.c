/* Upgrades to other protocols. Runs on the program's loop. */
#include "upgrade.h"

#include <stdlib.h>
#include <string.h>

/* Data that was received behind the head is relayed first. */
static bool prime_direction(struct direction *direction, bide_reader *reader)
{
    size_t size = bide_reader_buffered(reader);
    if (size == 0)
        return true;
    char *data = malloc(size);
    if (data == NULL)
        return false;
    memcpy(data, bide_reader_peek(reader), size);
    bide_reader_consume(reader, size);
    relay_prime(direction, data, size);
    return true;
}

bool upgrade_prepare_relay(struct forward *self)
{
    struct session *session = self->session;
    struct relay *relay = &self->scratch->relay;
    struct secure *secure = *pool_secure(self->connection);
    relay_init(relay, &session->program->buffers, &session->program->descriptors,
               session->configuration->splices, session->listen->idle_timeout);
    relay->client = session->endpoint;
    relay->backend.socket = secure == NULL ? &self->connection->socket : NULL;
    relay->backend.stream = pool_stream(self->connection);
    return prime_direction(&relay->upward, bide_http_reader(&self->exchange)) &&
           prime_direction(&relay->downward, bide_http_client_reader(&self->scratch->client));
}

void upgrade_finish_relay(struct forward *self)
{
    self->in += self->scratch->relay.upward.count;
    self->out += self->scratch->relay.downward.count;
    relay_destroy(&self->scratch->relay);
}
