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

static void hold_turn(struct forward *self)
{
    self->has_turn = true;
    client_of(self)->holder = self;
}

static void pass_turn(struct forward *self)
{
    self->has_turn = false;
    client_of(self)->holder = NULL;
    bide_mutex_unlock(&self->turn);
}

/* If requests wait, the one that has the turn takes a spare descriptor in its place, so that the first of them has the turn. */
static void use_spare(struct http *client)
{
    struct forward *holder = client->holder;
    if (holder == NULL || client->waiting == 0 || !descriptors_take(descriptors_of(holder), 1))
        return;
    holder->has_spare = true;
    pass_turn(holder);
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
    uint64_t deadline = forward_now(self) + self->backend->connect_timeout;
    client_of(self)->waiting++;
    return bide_with_deadline(&self->limited, deadline,
                              bide_mutex_lock(&self->turn, &client_of(self)->turn));
}

void turns_waited(struct forward *self)
{
    client_of(self)->waiting--;
    if (self->status < 0)
        return;
    hold_turn(self);
    use_spare(client_of(self)); /* (one may have been given back since the turn was passed) */
}

void turns_end(struct forward *self)
{
    if (self->has_turn)
        pass_turn(self);
    if (self->has_spare) {
        self->has_spare = false;
        descriptors_give(descriptors_of(self), 1);
        use_spare(client_of(self));
    }
}
