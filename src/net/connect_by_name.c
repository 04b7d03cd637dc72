/*
 * Connecting to whichever of several addresses answers first (RFC 8305, "Happy Eyeballs").
 *
 *     operation ---> scope:  pacer, starts the attempts
 *                            attempts, each connects to one address
 *                            feeder, awaits the look-up (bide_connect_by_name only)
 *
 * 1. All coroutines of the scope run on the operation's own scheduler, which has one thread. So they
 *    share the winner, the number of failures and the rest without locks.
 * 2. The first attempt that connects is the winner. Then the scope is stopped and joined, so no
 *    attempt continues. Every other connection is closed.
 * 3. The operation itself only joins the scope. So nothing refers to the operation after it has
 *    ended. If its coroutine is destroyed while it joins, the pacer, the attempts and the feeder are
 *    destroyed before `finally` closes the open sockets.
 * 4. The look-up may add addresses while attempts are running. It appends them, and none moves. So an
 *    attempt's address stays in place, and the next address is selected when its attempt starts.
 * 5. The look-up runs in the scope too, and sets the pacer's event whenever it has added addresses.
 *    So the operation ends after the look-up has ended.
 */
#define _GNU_SOURCE
#include "bide/names.h"

#include "bide/coroutine.h"
#include "bide/handle.h"
#include "bide/stop.h"
#include "bide/sleep.h"

#include "../io/operation.h"

#include <errno.h>

bide_coroutine(connect_attempt_body)
{
    bide_begin(connect_attempt_body, bide_connect_attempt_ * self);
    bide_await_status(self->status, bide_connect(&self->connect, &self->socket, self->address));
    if (self->status < 0)
        self->all->failed++;
    else if (self->all->winner == NULL)
        self->all->winner = self;
    bide_auto_event_set(&self->all->news);
    bide_end();
}

/* ---- Selecting the next address: 4 ---- */

static unsigned connect_any_count_known(const bide_connect_any_operation *all)
{
    return all->resolve != NULL ? all->resolve->count : all->count;
}

static bool connect_any_may_get_more(const bide_connect_any_operation *all)
{
    return all->resolve != NULL && !all->feeder.has_ended;
}

static int connect_any_family_of(const bide_connect_any_operation *all, unsigned which)
{
    return all->addresses[which].any.generic.sa_family;
}

/*
 * The family of the first address. If the families' answers arrive separately, IPv6, provided that
 * one of its addresses is known.
 */
static int connect_any_first_family(const bide_connect_any_operation *all)
{
    bool by_family = all->resolve != NULL && all->resolve->answered != 0;
    for (unsigned i = 0; by_family && i < connect_any_count_known(all); i++) {
        if (connect_any_family_of(all, i) == AF_INET6)
            return AF_INET6;
    }
    return connect_any_family_of(all, 0);
}

/* The next address of the first family (turn 0) or of the others (turn 1); the count if none is left. */
static unsigned connect_any_find_next(const bide_connect_any_operation *all, unsigned turn)
{
    unsigned count = connect_any_count_known(all), at = all->next[turn];
    while (at < count && (connect_any_family_of(all, at) == all->first_family) != (turn == 0))
        at++;
    return at;
}

static bool connect_any_has_next(const bide_connect_any_operation *all)
{
    unsigned count = connect_any_count_known(all);
    if (all->begun == 0)
        return count != 0;
    return all->begun < BIDE_CONNECT_MAX &&
           (connect_any_find_next(all, 0) < count || connect_any_find_next(all, 1) < count);
}

static void connect_any_start_attempt(bide_connect_any_operation *all, uint64_t now)
{
    bide_assert(all->begun < BIDE_CONNECT_MAX && all->winner == NULL);
    bide_connect_attempt_ *attempt = &all->attempts[all->begun];
    if (all->begun == 0)
        all->first_family = connect_any_first_family(all);
    unsigned turn = connect_any_find_next(all, all->turn) < connect_any_count_known(all)
                        ? all->turn
                        : 1 - all->turn;
    unsigned which = connect_any_find_next(all, turn);
    bide_assert(which < connect_any_count_known(all));
    all->next[turn] = which + 1;
    all->turn = 1 - turn;
    attempt->all = all;
    attempt->address = &all->addresses[which];
    all->begun++;
    all->begun_at = now;
    all->failed_before = all->failed;
    bide_scope_spawn(&all->scope, &attempt->branch,
                     bide_task_init(&attempt->task, &connect_attempt_body));
}

/* ---- Timing ---- */

static uint64_t connect_any_add_time(uint64_t time, uint64_t by)
{
    return by < BIDE_FOREVER - time ? time + by : BIDE_FOREVER;
}

/* The time at which the next attempt may start; 0: now. */
static uint64_t connect_any_next_time(const bide_connect_any_operation *all)
{
    bide_assert(all->failed <= all->begun);
    if (all->begun != 0)
        return all->failed != all->failed_before || all->failed == all->begun
                   ? 0
                   : connect_any_add_time(all->begun_at, all->stagger);
    if (!connect_any_may_get_more(all) || (all->resolve->answered & BIDE_ANSWERED_V6_) != 0)
        return 0;
    return (all->resolve->answered & BIDE_ANSWERED_V4_) != 0
               ? connect_any_add_time(all->resolve->answered_at, BIDE_CONNECT_RESOLUTION_DELAY)
               : BIDE_FOREVER;
}

/* All attempts have failed, and no other will be made. */
static bool connect_any_has_failed(const bide_connect_any_operation *all)
{
    return all->failed == all->begun && !connect_any_has_next(all) &&
           (all->begun == BIDE_CONNECT_MAX || !connect_any_may_get_more(all));
}

/* Waits for a change, or until the next attempt may start. */
static bide_awaiter *connect_any_wait(bide_connect_pacer_ *self)
{
    bide_connect_any_operation *all = self->all;
    return bide_with_deadline(&self->limited,
                              connect_any_has_next(all) ? connect_any_next_time(all) : BIDE_FOREVER,
                              bide_auto_event_wait(&self->wait, &all->news));
}

/* Awaits the look-up. The pacer uses its addresses as they arrive. */
bide_coroutine(connect_feeder_body)
{
    bide_begin(connect_feeder_body, bide_connect_feeder_ * self);
    bide_await_status(self->status, self->awaiter);
    self->has_ended = true;
    bide_auto_event_set(&self->all->news);
    bide_end();
}

static void connect_any_close_attempts(bide_connect_any_operation *self)
{
    for (unsigned i = 0; i < self->begun; i++)
        bide_close(&self->attempts[i].socket);
}

/* Moves the winner's descriptor to the caller's struct, and registers it there with a simulated loop. */
static void connect_any_return_winner(bide_connect_any_operation *self)
{
    bide_descriptor *socket = &self->winner->socket;
    bide_io *io = io_of(socket);
    uint32_t bits = socket->bits & IO_SYSTEM_BITS;
    bide_descriptor_init(self->connection, bide_descriptor_release(socket));
    self->connection->bits = bits;
    if (io_calls(io) != NULL)
        bide_io_adopt(io, self->connection);
    self->connected = (unsigned)(self->winner->address - self->addresses);
}

/* Starts attempts until one has connected or all have failed. */
bide_coroutine(connect_pacer_body)
{
    bide_begin(connect_pacer_body, bide_connect_pacer_ * self);
    while (self->all->winner == NULL && !connect_any_has_failed(self->all)) {
        uint64_t now = bide_now(bide_this_context());
        if (connect_any_has_next(self->all) && connect_any_next_time(self->all) <= now)
            connect_any_start_attempt(self->all, now);
        bide_await(connect_any_wait(self));
        if (bide_stop_requested(bide_this_context()->stop))
            break;
    }
    bide_scope_stop(&self->all->scope);
    bide_end();
}

static void connect_any_init_state(bide_connect_any_operation *self)
{
    self->next[0] = self->next[1] = self->turn = 0;
    for (unsigned i = 0; i < BIDE_CONNECT_MAX; i++)
        bide_descriptor_init_closed(&self->attempts[i].socket);
    bide_auto_event_init(&self->news, false);
    self->pacer.all = self->feeder.all = self;
}

bide_coroutine(connect_any_body)
{
    bide_begin(connect_any_body, bide_connect_any_operation * self);
    self->begun = self->failed = 0;
    self->winner = NULL;
    bide_descriptor_init_closed(self->connection);
    if (self->count == 0 && self->resolve == NULL)
        bide_return(-EINVAL);
    connect_any_init_state(self);
    bide_scope_init(&self->scope, bide_this_frame());
    bide_scope_spawn(&self->scope, &self->pacer.branch,
                     bide_task_init(&self->pacer.task, &connect_pacer_body));
    if (self->resolve != NULL)
        bide_scope_spawn(&self->scope, &self->feeder.branch,
                         bide_task_init(&self->feeder.task, &connect_feeder_body));
    bide_await(bide_scope_join(&self->scope));
    if (self->winner == NULL) {
        int status = bide_stop_reason(bide_this_context()->stop);
        bide_return(status < 0         ? status
                    : self->begun != 0 ? self->attempts[0].status
                                       : self->feeder.status);
    }
    connect_any_return_winner(self);
    bide_finally();
    connect_any_close_attempts(self);
    bide_end();
}

bide_awaiter *bide_connect_any(bide_connect_any_operation *operation, bide_descriptor *connection,
                               const bide_address *addresses, unsigned count, uint64_t stagger)
{
    operation->connection = connection;
    operation->addresses = addresses;
    operation->count = count;
    operation->stagger = stagger != 0 ? stagger : BIDE_CONNECT_STAGGER;
    operation->resolve = NULL;
    return bide_task_init(&operation->task, &connect_any_body);
}

static bide_awaiter *connect_by_resolve(bide_connect_by_name_operation *self)
{
    bide_awaiter *awaiter =
        bide_connect_any(&self->connect, self->connection, self->resolve.addresses, 0, 0);
    self->connect.resolve = &self->resolve;
    self->connect.feeder.has_ended = false;
    self->connect.feeder.awaiter =
        bide_resolve(&self->resolve, self->names, self->host, self->port);
    self->resolve.count = 0;
    self->resolve.news = &self->connect.news;
    return awaiter;
}

bide_coroutine(connect_by_name_body)
{
    bide_begin(connect_by_name_body, bide_connect_by_name_operation * self);
    bide_descriptor_init_closed(self->connection);
    bide_try(connect_by_resolve(self));
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
