/*
 * Connecting to whichever of several addresses answers first.
 *
 * 1. Attempts are coroutines of a scope, on the operation's own scheduler, which has one thread. So
 *    what they tell of, the winner and how many have failed, needs no order.
 * 2. The first attempt that connects is the winner. Then the scope is stopped and joined, so that no
 *    attempt goes on, and what else has connected by then is closed.
 * 3. The operation does nothing but join the scope, in which a pacer begins the attempts. So nothing
 *    refers to it when it has ended; and where its coroutine is destroyed, which may be while it
 *    joins, so are pacer and attempts, before `finally` closes what is open.
 */
#define _GNU_SOURCE
#include "bide/names.h"

#include "bide/coroutine.h"
#include "bide/handle.h"
#include "bide/stop.h"
#include "bide/sleep.h"

#include "operation.h"

#include <errno.h>

bide_coroutine(attempt_body)
{
    bide_begin(attempt_body, bide_connect_attempt_ * self);
    bide_await_status(self->status, bide_connect(&self->connect, &self->socket, self->address));
    if (self->status < 0)
        self->all->failed++;
    else if (self->all->winner == NULL)
        self->all->winner = self;
    bide_auto_event_set(&self->all->news);
    bide_end();
}

static void begin_attempt(bide_connect_any_operation *all)
{
    bide_connect_attempt_ *attempt = &all->attempts[all->begun];
    attempt->all = all;
    attempt->address = &all->addresses[all->order[all->begun]];
    all->begun++;
    bide_scope_spawn(&all->scope, &attempt->branch,
                     bide_task_init(&attempt->task, &attempt_body));
}

/* In which order: the families in turn, as long as there are both. */
static void put_in_order(bide_connect_any_operation *all)
{
    unsigned next[2] = {0, 0}; /* of the first address's family, and of others */
    int first = all->addresses[0].any.generic.sa_family;
    all->most = 0;
    for (unsigned turn = 0; all->most < BIDE_CONNECT_MOST; turn++) {
        unsigned *at = &next[turn % 2];
        while (*at < all->count &&
               (all->addresses[*at].any.generic.sa_family == first) != (turn % 2 == 0))
            ++*at;
        if (*at < all->count)
            all->order[all->most++] = (*at)++;
        else if (next[0] >= all->count && next[1] >= all->count)
            break;
    }
}

/* Until there is news, or the next may begin beside those that have. */
static bide_awaiter *wait_for_news(bide_connect_pacer_ *self, const bide_context *context)
{
    bide_connect_any_operation *all = self->all;
    uint64_t now = bide_now(context);
    bool are_more = all->begun < all->most;
    return bide_with_deadline(
        &self->limited,
        are_more && all->stagger < BIDE_FOREVER - now ? now + all->stagger : BIDE_FOREVER,
        bide_auto_event_wait(&self->wait, &all->news));
}

static void close_all(bide_connect_any_operation *self)
{
    for (unsigned i = 0; i < self->begun; i++)
        bide_close(&self->attempts[i].socket);
}

/* The descriptor leaves the attempt's struct, and is the user's: its loop has known it by its place. */
static void hand_over(bide_connect_any_operation *self)
{
    bide_descriptor *socket = &self->winner->socket;
    bide_io *io = io_of(socket);
    uint32_t bits = socket->bits & (IO_BITS_OWN - 1);
    bide_descriptor_init(self->connection, bide_descriptor_release(socket));
    self->connection->bits = bits;
    if (io_calls(io) != NULL) /* its number means something there alone */
        bide_io_adopt(io, self->connection);
    self->connected = (unsigned)(self->winner->address - self->addresses);
}

/* Begins one after the other, until one has connected or none is left that could. */
bide_coroutine(pacer_body)
{
    bide_begin(pacer_body, bide_connect_pacer_ * self);
    while (self->all->winner == NULL && self->all->failed < self->all->most) {
        if (self->all->begun < self->all->most)
            begin_attempt(self->all);
        bide_await(wait_for_news(self, bide_this_context()));
        if (bide_stop_requested(bide_this_context()->stop))
            break;
    }
    bide_scope_stop(&self->all->scope);
    bide_end();
}

static void prepare(bide_connect_any_operation *self)
{
    put_in_order(self);
    for (unsigned i = 0; i < self->most; i++)
        bide_descriptor_init_closed(&self->attempts[i].socket);
    bide_auto_event_init(&self->news, false);
    self->pacer.all = self;
}

bide_coroutine(connect_any_body)
{
    bide_begin(connect_any_body, bide_connect_any_operation * self);
    self->begun = self->failed = 0;
    self->winner = NULL;
    bide_descriptor_init_closed(self->connection);
    if (self->count == 0)
        bide_return(-EINVAL);
    prepare(self);
    bide_scope_init(&self->scope, bide_this_frame());
    bide_scope_spawn(&self->scope, &self->pacer.branch,
                     bide_task_init(&self->pacer.task, &pacer_body));
    bide_await(bide_scope_join(&self->scope));
    if (self->winner == NULL) {
        int status = bide_stop_reason(bide_this_context()->stop);
        bide_return(status < 0 ? status : self->attempts[0].status);
    }
    hand_over(self);
    bide_finally();
    close_all(self);
    bide_end();
}

bide_awaiter *bide_connect_any(bide_connect_any_operation *operation, bide_descriptor *connection,
                               const bide_address *addresses, unsigned count, uint64_t stagger)
{
    operation->connection = connection;
    operation->addresses = addresses;
    operation->count = count;
    operation->stagger = stagger != 0 ? stagger : BIDE_CONNECT_STAGGER;
    return bide_task_init(&operation->task, &connect_any_body);
}

bide_coroutine(connect_by_name_body)
{
    bide_begin(connect_by_name_body, bide_connect_by_name_operation * self);
    bide_descriptor_init_closed(self->connection);
    bide_try(bide_look_up(&self->look_up, self->names, self->host, self->port));
    bide_try(bide_connect_any(&self->connect, self->connection, self->look_up.addresses,
                              self->look_up.count, 0));
    bide_end();
}

bide_awaiter *bide_connect_by_name(bide_connect_by_name_operation *operation,
                                   bide_descriptor *connection, bide_names *names, const char *host,
                                   uint16_t port)
{
    operation->connection = connection;
    operation->names = names;
    operation->host = host;
    operation->port = port;
    return bide_task_init(&operation->task, &connect_by_name_body);
}
