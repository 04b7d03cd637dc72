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
 * 4. Addresses may be added while attempts go on, behind those that are there, and none moves. So an
 *    attempt's address stays where it is, and which is next is decided when it begins.
 * 5. The look-up is a coroutine of the scope too, and the pacer's event is set whenever it has found
 *    something. So the end of the operation is the end of the look-up.
 */
#define _GNU_SOURCE
#include "bide/names.h"

#include "bide/coroutine.h"
#include "bide/handle.h"
#include "bide/stop.h"
#include "bide/sleep.h"

#include "../io/operation.h"

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

/* ---- Which is next: 4 ---- */

static unsigned count_known(const bide_connect_any_operation *all)
{
    return all->look_up != NULL ? all->look_up->count : all->count;
}

static bool may_more_come(const bide_connect_any_operation *all)
{
    return all->look_up != NULL && !all->feeder.has_ended;
}

static int family_of(const bide_connect_any_operation *all, unsigned which)
{
    return all->addresses[which].any.generic.sa_family;
}

/* That of the first address; where the families are answered one by one, version 6 if it is there. */
static int choose_first_family(const bide_connect_any_operation *all)
{
    bool by_family = all->look_up != NULL && all->look_up->answered != 0;
    for (unsigned i = 0; by_family && i < count_known(all); i++) {
        if (family_of(all, i) == AF_INET6)
            return AF_INET6;
    }
    return family_of(all, 0);
}

/* The next of the first family (0), or of others (1); as many as are known: there is none. */
static unsigned find_next(const bide_connect_any_operation *all, unsigned turn)
{
    unsigned count = count_known(all), at = all->next[turn];
    while (at < count && (family_of(all, at) == all->first_family) != (turn == 0))
        at++;
    return at;
}

static bool has_next(const bide_connect_any_operation *all)
{
    unsigned count = count_known(all);
    if (all->begun == 0)
        return count != 0;
    return all->begun < BIDE_CONNECT_MAX &&
           (find_next(all, 0) < count || find_next(all, 1) < count);
}

static void begin_attempt(bide_connect_any_operation *all, uint64_t now)
{
    bide_connect_attempt_ *attempt = &all->attempts[all->begun];
    if (all->begun == 0)
        all->first_family = choose_first_family(all);
    unsigned turn = find_next(all, all->turn) < count_known(all) ? all->turn : 1 - all->turn;
    unsigned which = find_next(all, turn);
    all->next[turn] = which + 1;
    all->turn = 1 - turn;
    attempt->all = all;
    attempt->address = &all->addresses[which];
    all->begun++;
    all->begun_at = now;
    all->failed_before = all->failed;
    bide_scope_spawn(&all->scope, &attempt->branch, bide_task_init(&attempt->task, &attempt_body));
}

/* ---- When ---- */

static uint64_t later(uint64_t time, uint64_t by)
{
    return by < BIDE_FOREVER - time ? time + by : BIDE_FOREVER;
}

/* When the next may begin; 0: now. */
static uint64_t next_time(const bide_connect_any_operation *all)
{
    if (all->begun != 0)
        return all->failed != all->failed_before || all->failed == all->begun
                   ? 0
                   : later(all->begun_at, all->stagger);
    if (!may_more_come(all) || (all->look_up->answered & BIDE_ANSWERED_V6_) != 0)
        return 0;
    return (all->look_up->answered & BIDE_ANSWERED_V4_) != 0
               ? later(all->look_up->answered_at, BIDE_CONNECT_RESOLUTION_DELAY)
               : BIDE_FOREVER;
}

/* Has all failed that there is, and that there will be? */
static bool is_over(const bide_connect_any_operation *all)
{
    return all->failed == all->begun && !has_next(all) &&
           (all->begun == BIDE_CONNECT_MAX || !may_more_come(all));
}

/* Until there is news, or the next may begin beside those that have. */
static bide_awaiter *wait_for_news(bide_connect_pacer_ *self)
{
    bide_connect_any_operation *all = self->all;
    return bide_with_deadline(&self->limited, has_next(all) ? next_time(all) : BIDE_FOREVER,
                              bide_auto_event_wait(&self->wait, &all->news));
}

/* Awaits the look-up, whose addresses the pacer takes as they come. */
bide_coroutine(feeder_body)
{
    bide_begin(feeder_body, bide_connect_feeder_ * self);
    bide_await_status(self->status, self->awaiter);
    self->has_ended = true;
    bide_auto_event_set(&self->all->news);
    bide_end();
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
    while (self->all->winner == NULL && !is_over(self->all)) {
        uint64_t now = bide_now(bide_this_context());
        if (has_next(self->all) && next_time(self->all) <= now)
            begin_attempt(self->all, now);
        bide_await(wait_for_news(self));
        if (bide_stop_requested(bide_this_context()->stop))
            break;
    }
    bide_scope_stop(&self->all->scope);
    bide_end();
}

static void prepare(bide_connect_any_operation *self)
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
    if (self->count == 0 && self->look_up == NULL)
        bide_return(-EINVAL);
    prepare(self);
    bide_scope_init(&self->scope, bide_this_frame());
    bide_scope_spawn(&self->scope, &self->pacer.branch,
                     bide_task_init(&self->pacer.task, &pacer_body));
    if (self->look_up != NULL)
        bide_scope_spawn(&self->scope, &self->feeder.branch,
                         bide_task_init(&self->feeder.task, &feeder_body));
    bide_await(bide_scope_join(&self->scope));
    if (self->winner == NULL) {
        int status = bide_stop_reason(bide_this_context()->stop);
        bide_return(status < 0         ? status
                    : self->begun != 0 ? self->attempts[0].status
                                       : self->feeder.status);
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
    operation->look_up = NULL;
    return bide_task_init(&operation->task, &connect_any_body);
}

static bide_awaiter *connect_by_look_up(bide_connect_by_name_operation *self)
{
    bide_awaiter *awaiter =
        bide_connect_any(&self->connect, self->connection, self->look_up.addresses, 0, 0);
    self->connect.look_up = &self->look_up;
    self->connect.feeder.has_ended = false;
    self->connect.feeder.awaiter =
        bide_resolve(&self->look_up, self->names, self->host, self->port);
    self->look_up.count = 0;
    self->look_up.news = &self->connect.news;
    return awaiter;
}

bide_coroutine(connect_by_name_body)
{
    bide_begin(connect_by_name_body, bide_connect_by_name_operation * self);
    bide_descriptor_init_closed(self->connection);
    bide_try(connect_by_look_up(self));
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
