/* Upgrades to other protocols. Runs on the program's loop. */
#include "upgrade.h"

#include <stdlib.h>
#include <string.h>

int upgrade_make_key(struct forward *self)
{
    const bide_http_request *request = &self->exchange.request;
    self->key[0] = '\0';
    return request->major == 2 && self->protocol[0] != '\0' ? bide_websocket_make_key(self->key)
                                                            : 0;
}

bool upgrade_is_unknown(const struct forward *self)
{
    const bide_http_request *request = &self->exchange.request;
    return request->major == 2 && request->upgrade.size != 0 &&
           !bide_http_is(request->upgrade, "websocket");
}

static bide_websocket_value value_of(const struct forward *self, const char *name)
{
    bide_slice value = bide_http_client_field(&self->scratch->client, name);
    return (bide_websocket_value){value.data, value.size};
}

bool upgrade_is_valid(const struct forward *self)
{
    bide_websocket_headers headers = {.upgrade = value_of(self, "Upgrade"),
                                      .connection = value_of(self, "Connection"),
                                      .accept = value_of(self, "Sec-WebSocket-Accept")};
    return self->key[0] == '\0' || bide_websocket_check_answer(101, &headers, self->key, NULL) == 0;
}

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
    relay->ends_with_backend = self->exchange.request.major == 2;
    if (self->exchange.request.major == 2) {
        relay->client.socket = NULL;
        relay->client.stream = bide_http_stream(&self->exchange);
    }
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
