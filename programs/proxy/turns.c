/* Descriptors of a client's requests. Runs on the program's loop. */
#include "turns.h"

static struct http *client_of(const struct forward *self)
{
    return http_of(self->exchange.connection);
}

static struct descriptors *descriptors_of(const struct forward *self)
{
    return &self->session->program->descriptors;
}

/* A request of the client has the turn, and others wait: the client is in the queue for a spare descriptor. */
static void queue_client(struct http *client)
{
    if (client->holder != NULL && client->waiting != 0 && !client->spare.is_queued)
        descriptors_wait(descriptors_of(client->holder), &client->spare);
}

static void hold_turn(struct forward *self)
{
    struct http *client = client_of(self);
    self->has_turn = true;
    client->holder = self;
    queue_client(client);
}

static void pass_turn(struct forward *self)
{
    struct http *client = client_of(self);
    self->has_turn = false;
    client->holder = NULL;
    descriptors_leave(descriptors_of(self), &client->spare);
    bide_mutex_unlock(&self->turn);
}

void turns_use_spare(struct spare_waiter *waiter)
{
    struct http *client = bide_container_of(waiter, struct http, spare);
    client->holder->has_spare = true;
    pass_turn(client->holder);
}

bool turns_try(struct forward *self)
{
    if (self->exchange.request.major == 1)
        return true;
    if (bide_mutex_try_lock(&self->turn, &client_of(self)->turn))
        hold_turn(self);
    else
        self->has_spare = descriptors_take(descriptors_of(self), 1);
    return self->has_turn || self->has_spare;
}

bide_awaiter *turns_wait(struct forward *self)
{
    struct http *client = client_of(self);
    uint64_t deadline = forward_now(self) + self->backend->connect_timeout;
    client->waiting++;
    queue_client(client);
    return bide_with_deadline(&self->limited, deadline,
                              bide_mutex_lock(&self->turn, &client->turn));
}

void turns_waited(struct forward *self)
{
    struct http *client = client_of(self);
    client->waiting--;
    if (self->status >= 0)
        hold_turn(self);
    else if (client->waiting == 0)
        descriptors_leave(descriptors_of(self), &client->spare);
}

void turns_end(struct forward *self)
{
    if (self->has_turn)
        pass_turn(self);
    if (self->has_spare)
        descriptors_give(descriptors_of(self), 1);
    self->has_spare = false;
}
