/*
 * Looking up names, with getaddrinfo on a pool of blocking threads.
 *
 *     operation ---> request <--- call, a coroutine on one of the pool's threads
 *                    result, `done`, `holders`
 *
 * The operation belongs to its scheduler's thread. The call runs on a thread of the pool. They share
 * the request and nothing else, and each of the two holds a reference to it.
 *
 * 1. Nobody awaits the call's coroutine: the operation waits for the request's event only. So the
 *    operation may end or be destroyed at any time, and the call finishes later.
 * 2. The call sets the event (release) after it has written the result, and before it releases its
 *    reference. The operation's wait acquires the event, so the operation sees the result.
 * 3. Releasing a reference is an acq_rel decrement. So the holder that releases the last one sees all
 *    uses of the request before it frees the request.
 * 4. The call resumes inline, on the pool's own thread, so no loop is delayed by calls that have lost
 *    their operation.
 * 5. In a test loop nothing of the system is asked: the loop's world answers (memory_io.h), after a
 *    delay of the loop's time.
 */
#define _GNU_SOURCE
#include "names.h"

#include "bide/coroutine.h"
#include "bide/create.h"
#include "bide/handle.h"

#include "../system/portable.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_THREADS = 4, NAMES_CACHED = 256 };

typedef struct bide_resolve_request_ names_request;

static int names_use_cares(bide_names *names, const bide_names_options *options)
{
    const char *servers = options->servers != NULL ? options->servers : "";
    if (options->kind != BIDE_NAMES_CARES ||
        strnlen(servers, NAMES_SERVERS_MAX) == NAMES_SERVERS_MAX || options->timeout > INT_MAX ||
        options->tries > INT_MAX)
        return -EINVAL;
    memcpy(names->servers, servers, strlen(servers) + 1);
    names->timeout = options->timeout;
    names->tries = options->tries;
    int error = bide_names_cares_check_(names);
    if (error != 0 || options->is_uncached)
        return error;
    names->cache = bide_names_cache_create_(options->cached != 0 ? options->cached : NAMES_CACHED);
    return names->cache != NULL ? 0 : -ENOMEM;
}

int bide_names_create(bide_names **created, const bide_names_options *options)
{
    unsigned threads = options != NULL && options->threads != 0 ? options->threads : NAMES_THREADS;
    bide_blocking_options with = {.name = "names", .max_threads = threads};
    bide_names *names = calloc(1, sizeof *names);
    if (names == NULL)
        return -ENOMEM;
    bide_names_idle_init_(&names->idle);
    int error = options == NULL || options->kind == BIDE_NAMES_SYSTEM
                    ? bide_blocking_create_with(&names->blocking, &with)
                    : names_use_cares(names, options);
    if (error != 0) {
        free(names);
        return error;
    }
    *created = names;
    return 0;
}

void bide_names_destroy(bide_names *names)
{
    if (names == NULL)
        return;
    if (names->blocking != NULL)
        bide_blocking_destroy(names->blocking);
    else
        bide_names_cares_end_(names);
    bide_names_cache_destroy_(names->cache);
    free(names);
}

void bide_names_forget(bide_names *names)
{
    bide_names_cache_clear_(names->cache);
}

void bide_names_request_release_(names_request *it)
{
    uint32_t before = bide_atomic_fetch_sub(&it->holders, 1, acq_rel); /* 3 */
    bide_assert(before == 1 || before == 2);
    if (before == 1)
        free(it);
}

/* ---- The call ---- */

static int names_error_of_getaddrinfo(int error)
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
#ifdef EAI_OVERFLOW
    case EAI_OVERFLOW: /* a name of more bytes than any host's */
        return -EREMOTEIO;
#endif
    case EAI_SYSTEM:
        return errno != 0 ? -errno : -EREMOTEIO;
    default:
        return -EINVAL;
    }
}

static bool names_request_has(const names_request *it, const struct addrinfo *found)
{
    for (unsigned i = 0; i < it->count; i++) {
        if (it->addresses[i].length == found->ai_addrlen &&
            memcmp(&it->addresses[i].any, found->ai_addr, found->ai_addrlen) == 0)
            return true;
    }
    return false;
}

static void names_call_getaddrinfo(void *argument)
{
    names_request *it = argument;
    struct addrinfo wanted = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found = NULL;
    errno = 0;
    it->status = names_error_of_getaddrinfo(getaddrinfo(it->host, NULL, &wanted, &found));
    if (it->status != 0)
        return;
    for (struct addrinfo *at = found; at != NULL && it->count < BIDE_RESOLVE_MAX;
         at = at->ai_next) {
        if ((at->ai_family != AF_INET && at->ai_family != AF_INET6) ||
            at->ai_addrlen > sizeof it->addresses->any || names_request_has(it, at))
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

static void names_call_getnameinfo(void *argument)
{
    names_request *it = argument;
    errno = 0;
    it->status = names_error_of_getaddrinfo(getnameinfo(&it->addresses[0].any.generic,
                                                        it->addresses[0].length, it->host,
                                                        sizeof it->host, NULL, 0, NI_NAMEREQD));
}

/* ---- The call's coroutine: 1 ---- */

static bide_frame *names_call_initial_suspend(bide_frame *frame)
{
    return frame;
}

static bide_frame *names_call_final_suspend(bide_frame *frame, const bide_context *context)
{
    (void)context;
    bide_free(frame);
    return NULL;
}

static const bide_coroutine_type names_call_type = {
    .name = "look-up",
    .initial_suspend = names_call_initial_suspend,
    .final_suspend = names_call_final_suspend,
};

struct names_call {
    bide_frame frame;
    names_request *request;
    bide_names *names;
    bide_blocking_call call;
    bide_context context;
};

bide_coroutine_of(names_call_type, names_call_body)
{
    bide_begin(names_call_body, struct names_call * self);
    int status;
    bide_await_status(status, bide_blocking_run(&self->call, self->names->blocking,
                                                self->request->is_reverse ? names_call_getnameinfo
                                                                          : names_call_getaddrinfo,
                                                self->request));
    if (status < 0)
        self->request->status = status;
    bide_event_set(&self->request->done); /* 2 */
    bide_finally();
    bide_names_request_release_(self->request);
    bide_end();
}

int bide_names_request_start_(bide_names *names, const char *host, const bide_address *address,
                              names_request **request)
{
    names_request *it = calloc(1, sizeof *it);
    struct names_call *call =
        it != NULL ? bide_create(sizeof *call, &names_call_body, &bide_heap) : NULL;
    if (call == NULL) {
        free(it);
        return -ENOMEM;
    }
    bide_event_init(&it->done, false);
    bide_atomic_init(&it->holders, 2);
    it->is_reverse = host == NULL;
    if (host != NULL)
        memcpy(it->host, host, strlen(host) + 1);
    else
        it->addresses[0] = *address;
    *request = it;
    call->request = it;
    call->names = names;
    call->context = bide_default_context;
    bide_start(&call->frame, &names_call_body, &call->context);
    return 0;
}

/* ---- What all look-ups share ---- */

void bide_names_resolving_init_(bide_resolving_ *it, bide_names *names)
{
    it->names = names;
    it->request = NULL;
    it->cares = NULL;
    it->delay = 0;
    it->status = 0;
}

bool bide_names_has_to_wait_(const bide_resolving_ *it)
{
    return it->request != NULL || it->cares != NULL || it->delay != 0;
}

bide_awaiter *bide_names_wait_(bide_resolving_ *it)
{
    if (it->request != NULL)
        return bide_event_wait(&it->waits.answer, &it->request->done);
    if (it->cares != NULL)
        return bide_names_cares_run_(it->cares);
    return bide_sleep_for(&it->waits.sleep, it->delay);
}

void bide_names_end_wait_(bide_resolving_ *it, int status)
{
    if (status == 0 && it->request != NULL)
        status = it->request->status;
    if (status != 0)
        it->status = status;
}

void bide_names_resolving_end_(bide_resolving_ *it)
{
    if (it->request != NULL)
        bide_names_request_release_(it->request);
    if (it->cares != NULL)
        bide_names_cares_destroy_(it->cares);
}

/* ---- The operation ---- */

static void names_set_port(bide_resolve_operation *operation)
{
    for (unsigned i = 0; i < operation->count; i++) {
        struct sockaddr_in *v4 = &operation->addresses[i].any.v4;
        struct sockaddr_in6 *v6 = &operation->addresses[i].any.v6;
        if (v4->sin_family == AF_INET)
            v4->sin_port = htons(operation->port);
        else
            v6->sin6_port = htons(operation->port);
    }
}

/* A test loop's world answers, or nobody. */
static int names_ask_world(bide_resolve_operation *operation, const bide_context *context)
{
    bide_scheduler *scheduler = context->scheduler;
    bide_io *io = scheduler->io != NULL ? scheduler->io(scheduler) : NULL;
    if (io == NULL || io->table->calls == NULL)
        return -ENOTSUP;
    int count = io->table->calls->resolve(io, operation->host, operation->addresses,
                                          BIDE_RESOLVE_MAX, &operation->resolving.delay);
    if (count < 0)
        return count;
    operation->count = (unsigned)count;
    names_set_port(operation);
    return 0;
}

static int names_resolve_start(bide_resolve_operation *operation, const bide_context *context)
{
    const char *host = operation->host;
    size_t length = host != NULL ? strnlen(host, NAMES_HOST_MAX + 1) : 0;
    operation->count = 0;
    if (length == 0 || length > NAMES_HOST_MAX)
        return -EINVAL;
    if (bide_address_ip(&operation->addresses[0], host, operation->port) == 0) {
        operation->count = 1;
        return 0;
    }
    if (context->scheduler->environment != NULL)
        return names_ask_world(operation, context); /* 5 */
    if (operation->resolving.names->blocking == NULL)
        return bide_names_cares_create_(operation, context);
    return bide_names_request_start_(operation->resolving.names, host, NULL,
                                     &operation->resolving.request);
}

static void names_take_request(bide_resolve_operation *operation)
{
    const names_request *it = operation->resolving.request;
    bide_assert(it->count <= BIDE_RESOLVE_MAX);
    operation->count = it->count;
    memcpy(operation->addresses, it->addresses, it->count * sizeof *it->addresses);
    names_set_port(operation);
}

/* The addresses are grouped by family, in the order in which the answers arrived. */
static void names_sort_v6_first(bide_resolve_operation *operation)
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

/* Takes the answer, if there is one. Addresses that were announced keep their places. */
static void names_take_answer(bide_resolve_operation *operation)
{
    const bide_resolving_ *it = &operation->resolving;
    bool is_announced = it->cares != NULL && operation->news != NULL;
    if (it->status == 0 && it->request != NULL) {
        names_take_request(operation);
    } else if (it->status == 0 && operation->answered != 0 && !is_announced) {
        names_sort_v6_first(operation);
        names_set_port(operation); /* those of the cache have none */
    }
    if (it->status != 0)
        operation->count = 0;
}

bide_coroutine(resolve_body)
{
    bide_begin(resolve_body, bide_resolve_operation * self);
    self->resolving.status = names_resolve_start(self, bide_this_context());
    if (bide_names_has_to_wait_(&self->resolving)) {
        int status;
        bide_await_status(status, bide_names_wait_(&self->resolving));
        bide_names_end_wait_(&self->resolving, status);
    }
    names_take_answer(self);
    bide_return(self->resolving.status);
    bide_finally();
    bide_names_resolving_end_(&self->resolving);
    bide_end();
}

bide_awaiter *bide_resolve(bide_resolve_operation *operation, bide_names *names, const char *host,
                           uint16_t port)
{
    bide_names_resolving_init_(&operation->resolving, names);
    operation->host = host;
    operation->port = port;
    operation->news = NULL;
    operation->answered = 0;
    return bide_task_init(&operation->task, &resolve_body);
}
