/*
 * Looking names up, on threads of their own.
 *
 *     a request    begun by the operation, and held by two: by the operation until it ends, and by
 *                  the call until it has returned; freed by the last
 *
 * 1. The call's coroutine belongs to nobody: nothing waits for it but by the request's event. So the
 *    operation may end, or be destroyed, at any time, and the call goes on.
 * 2. The event is set (release) after the result was written, and the waiter acquires it: so the
 *    operation sees the result. It is set before the call lets go of the request.
 * 3. To let go releases what was done with the request, and the last acquires: it frees what nobody
 *    uses any more.
 * 4. The call goes on inline, on the pool's own thread, so that no loop is held up by calls that
 *    nobody waits for any more. In a world of its own (a test loop) it stays there.
 */
#define _GNU_SOURCE
#include "names.h"

#include "bide/coroutine.h"
#include "bide/create.h"
#include "bide/handle.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, MAX_HOST = 253 };

struct bide_look_up_request_ {
    bide_event done;
    bide_atomic(uint32_t) holders;
    int status;
    unsigned count;
    bide_address addresses[BIDE_RESOLVE_MAX];
    char host[MAX_HOST + 1];
};

typedef struct bide_look_up_request_ request;

static int set_cares(bide_names *names, const bide_names_options *options)
{
    const char *servers = options->servers != NULL ? options->servers : "";
    if (options->kind != BIDE_NAMES_CARES ||
        strnlen(servers, MAX_NAMES_SERVERS) == MAX_NAMES_SERVERS || options->timeout > INT_MAX ||
        options->tries > INT_MAX)
        return -EINVAL;
    memcpy(names->servers, servers, strlen(servers) + 1);
    names->timeout = options->timeout;
    names->tries = options->tries;
    return bide_names_cares_check_(names);
}

int bide_names_create(bide_names **created, const bide_names_options *options)
{
    unsigned threads = options != NULL && options->threads != 0 ? options->threads : THREADS;
    bide_blocking_options with = {.name = "names", .max_threads = threads};
    bide_names *names = calloc(1, sizeof *names);
    if (names == NULL)
        return -ENOMEM;
    int error = options == NULL || options->kind == BIDE_NAMES_SYSTEM
                    ? bide_blocking_create_with(&names->blocking, &with)
                    : set_cares(names, options);
    if (error != 0) {
        free(names);
        return error;
    }
    *created = names;
    return 0;
}

void bide_names_destroy(bide_names *names)
{
    if (names->blocking != NULL)
        bide_blocking_destroy(names->blocking);
    free(names);
}

static void let_go(request *it)
{
    if (bide_atomic_fetch_sub(&it->holders, 1, acq_rel) == 1) /* 3 */
        free(it);
}

/* ---- The call ---- */

static int error_of(int error)
{
    switch (error) {
    case 0:
        return 0;
    case EAI_NONAME:
#ifdef EAI_NODATA
    case EAI_NODATA:
#endif
#ifdef EAI_ADDRFAMILY
    case EAI_ADDRFAMILY:
#endif
        return -ENOENT;
    case EAI_AGAIN:
        return -EAGAIN;
    case EAI_FAIL:
        return -EREMOTEIO;
    case EAI_MEMORY:
        return -ENOMEM;
    case EAI_SYSTEM:
        return errno != 0 ? -errno : -EREMOTEIO;
    default:
        return -EINVAL;
    }
}

static bool has(const request *it, const struct addrinfo *found)
{
    for (unsigned i = 0; i < it->count; i++) {
        if (it->addresses[i].length == found->ai_addrlen &&
            memcmp(&it->addresses[i].any, found->ai_addr, found->ai_addrlen) == 0)
            return true;
    }
    return false;
}

static void look_up(void *argument)
{
    request *it = argument;
    struct addrinfo wanted = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found = NULL;
    errno = 0;
    it->status = error_of(getaddrinfo(it->host, NULL, &wanted, &found));
    if (it->status != 0)
        return;
    for (struct addrinfo *at = found; at != NULL && it->count < BIDE_RESOLVE_MAX;
         at = at->ai_next) {
        if ((at->ai_family != AF_INET && at->ai_family != AF_INET6) ||
            at->ai_addrlen > sizeof it->addresses->any || has(it, at))
            continue;
        bide_address *address = &it->addresses[it->count++];
        memset(address, 0, sizeof *address);
        address->length = at->ai_addrlen;
        memcpy(&address->any, at->ai_addr, at->ai_addrlen);
    }
    freeaddrinfo(found);
    if (it->count == 0)
        it->status = -ENOENT;
}

/* ---- Its coroutine, which nobody awaits: 1 ---- */

static bide_frame *call_initial_suspend(bide_frame *frame)
{
    return frame;
}

static bide_frame *call_final_suspend(bide_frame *frame, const bide_context *context)
{
    (void)context;
    bide_free(frame);
    return NULL;
}

static const bide_coroutine_type call_type = {
    .name = "look-up",
    .initial_suspend = call_initial_suspend,
    .final_suspend = call_final_suspend,
};

struct call {
    bide_frame frame;
    request *request;
    bide_names *names;
    bide_blocking_call call;
    bide_context context;
};

bide_coroutine_of(call_type, call_body)
{
    bide_begin(call_body, struct call * self);
    int status;
    bide_await_status(
        status, bide_blocking_run(&self->call, self->names->blocking, look_up, self->request));
    if (status < 0)
        self->request->status = status;
    bide_event_set(&self->request->done); /* 2 */
    bide_finally();
    let_go(self->request);
    bide_end();
}

/* Begins a look-up: 0, or a negative errno, and then there is none. */
static int begin_request(bide_resolve_operation *operation, const bide_context *context)
{
    request *it = calloc(1, sizeof *it);
    struct call *call = it != NULL ? bide_create(sizeof *call, &call_body, &bide_heap) : NULL;
    if (call == NULL) {
        free(it);
        return -ENOMEM;
    }
    bide_event_init(&it->done, false);
    bide_atomic_init(&it->holders, 2);
    memcpy(it->host, operation->host, strlen(operation->host) + 1);
    operation->request = it;
    call->request = it;
    call->names = operation->names;
    call->context = bide_default_context;
    if (context->scheduler->environment != NULL) /* 4 */
        call->context.scheduler = context->scheduler;
    bide_start(&call->frame, &call_body, &call->context);
    return 0;
}

/* ---- The operation ---- */

static int begin(bide_resolve_operation *operation, const bide_context *context)
{
    const char *host = operation->host;
    size_t length = host != NULL ? strnlen(host, MAX_HOST + 1) : 0;
    operation->count = 0;
    if (length == 0 || length > MAX_HOST)
        return -EINVAL;
    if (bide_address_ip(&operation->addresses[0], host, operation->port) == 0) {
        operation->count = 1;
        return 0;
    }
    return operation->names->blocking != NULL ? begin_request(operation, context)
                                              : bide_names_cares_create_(operation, context);
}

static void take_result(bide_resolve_operation *operation)
{
    const request *it = operation->request;
    operation->status = it->status;
    operation->count = it->count;
    memcpy(operation->addresses, it->addresses, it->count * sizeof *it->addresses);
    for (unsigned i = 0; i < it->count; i++) {
        struct sockaddr_in *v4 = &operation->addresses[i].any.v4;
        struct sockaddr_in6 *v6 = &operation->addresses[i].any.v6;
        if (v4->sin_family == AF_INET)
            v4->sin_port = htons(operation->port);
        else
            v6->sin6_port = htons(operation->port);
    }
}

/* One family's addresses stand together, in the order in which the families were answered. */
static void put_version_6_first(bide_resolve_operation *operation)
{
    bide_address v4[BIDE_RESOLVE_MAX];
    unsigned count = 0, kept = 0;
    for (unsigned i = 0; i < operation->count; i++) {
        if (operation->addresses[i].any.generic.sa_family == AF_INET)
            v4[count++] = operation->addresses[i];
        else
            operation->addresses[kept++] = operation->addresses[i];
    }
    memcpy(&operation->addresses[kept], v4, count * sizeof *v4);
}

bide_coroutine(look_up_body)
{
    bide_begin(look_up_body, bide_resolve_operation * self);
    self->request = NULL;
    self->cares = NULL;
    self->status = begin(self, bide_this_context());
    if (self->request != NULL) {
        bide_await_status(self->status, bide_event_wait(&self->wait, &self->request->done));
        if (self->status == 0)
            take_result(self);
    } else if (self->cares != NULL) {
        bide_await_status(self->status, bide_names_cares_run_(self->cares));
        if (self->status != 0)
            self->count = 0;
        else if (self->news == NULL)
            put_version_6_first(self);
    }
    bide_return(self->status);
    bide_finally();
    if (self->request != NULL)
        let_go(self->request);
    if (self->cares != NULL)
        bide_names_cares_destroy_(self->cares);
    bide_end();
}

bide_awaiter *bide_resolve(bide_resolve_operation *operation, bide_names *names, const char *host,
                           uint16_t port)
{
    operation->names = names;
    operation->host = host;
    operation->port = port;
    operation->news = NULL;
    operation->answered = 0;
    return bide_task_init(&operation->task, &look_up_body);
}
