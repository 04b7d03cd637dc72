/* Descriptors of a client's requests. Runs on the program's loop. */
#include "turns.h"

bool turns_try(struct forward *self)
{
    bide_mutex *turn = &http_of(self->exchange.connection)->turn;
    if (self->exchange.request.major == 1)
        return true;
    self->has_turn = bide_mutex_try_lock(&self->turn, turn);
    if (!self->has_turn)
        self->has_spare = descriptors_take(&self->session->program->descriptors, 1);
    return self->has_turn || self->has_spare;
}

bide_awaiter *turns_wait(struct forward *self)
{
    uint64_t deadline = forward_now(self) + self->backend->connect_timeout;
    return bide_with_deadline(
        &self->scratch->limited, deadline,
        bide_mutex_lock(&self->turn, &http_of(self->exchange.connection)->turn));
}

void turns_take(struct forward *self)
{
    self->has_turn = true;
}

void turns_end(struct forward *self)
{
    if (self->has_turn)
        bide_mutex_unlock(&self->turn);
    if (self->has_spare)
        descriptors_give(&self->session->program->descriptors, 1);
    self->has_turn = self->has_spare = false;
}
