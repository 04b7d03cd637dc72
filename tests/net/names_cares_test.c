/*
 * Name resolution by c-ares: how each answer of a name server is handled, how a lookup is cancelled, and
 * connecting while the answer for one address family is pending. The name server is part of the test and
 * runs on the same loop.
 */
#define _GNU_SOURCE
#include "../io/runner.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

/* ---- System calls that fail on request ---- */

static struct {
    int socket, add, create; /* an errno; 0: it does not fail */
    bool calloc;
} fail;

int __real_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol)
{
    errno = fail.socket;
    return fail.socket != 0 ? -1 : __real_socket(family, type, protocol);
}

int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags);
int __wrap_epoll_create1(int flags)
{
    errno = fail.create;
    return fail.create != 0 ? -1 : __real_epoll_create1(flags);
}

int __real_epoll_ctl(int epoll, int what, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int what, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int what, int fd, struct epoll_event *event)
{
    int type = 0;
    socklen_t size = sizeof type;
    if (fail.add != 0 && what == EPOLL_CTL_ADD &&
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_DGRAM) {
        errno = fail.add;
        return -1;
    }
    return __real_epoll_ctl(epoll, what, fd, event);
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    return fail.calloc ? NULL : __real_calloc(count, size);
}

/* ---- A stopped clock ---- */

static struct {
    bool stands;
    struct timespec at;
} now;

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    if (!now.stands || clock != CLOCK_MONOTONIC)
        return __real_clock_gettime(clock, time);
    *time = now.at;
    return 0;
}

static void stand_still(bool stands)
{
    __real_clock_gettime(CLOCK_MONOTONIC, &now.at);
    now.stands = stands;
}

/* ---- The name server ---- */

enum { MESSAGE = 1024, A = 1, AAAA = 28, SEARCHED = 3 };

typedef struct query {
    uint8_t bytes[MESSAGE];
    size_t size;
    uint16_t type;
    char label[64];   /* the first label of the name */
    bool is_searched; /* it is in the domain of the search list */
    bide_address from;
} query;

typedef struct server {
    world *world;
    struct serving {
        bide_task task;
        struct server *server;
    } by_udp, by_tcp;
    struct runner udp_runner, tcp_runner;
    bide_descriptor udp, listener, tcp;
    bide_address address;
    char text[BIDE_ADDRESS_TEXT];
    bide_datagram datagram;
    bide_io_operation accept, receive;
    query query, over_tcp;
    uint8_t header[2];
    unsigned queries, tcp_queries, noises, searched;
    query held; /* the last query that is not answered at once */
    unsigned holds;
    bide_auto_event news;
} server;

static void parse(query *it)
{
    size_t length = it->bytes[12], rest = 12;
    assert_in_range(it->size, 17, MESSAGE);
    assert_in_range(length, 1, sizeof it->label - 1);
    memcpy(it->label, it->bytes + 13, length);
    it->label[length] = '\0';
    it->is_searched = false;
    for (; it->bytes[rest] != 0; rest += it->bytes[rest] + 1u)
        it->is_searched |= it->bytes[rest] == 6 && memcmp(it->bytes + rest + 1, "search", 6) == 0;
    it->type = (uint16_t)(it->bytes[rest + 1] << 8 | it->bytes[rest + 2]);
    it->size = rest + 5;
}

static size_t put_record(const query *it, uint8_t *at, uint8_t last)
{
    size_t size = it->type == A ? 4 : 16;
    const uint8_t begin[] = {0xc0, 12, 0, (uint8_t)it->type, 0, 1, 0, 0, 0, 60, 0, (uint8_t)size};
    memcpy(at, begin, sizeof begin);
    memset(at + sizeof begin, 0, size);
    if (it->type == A)
        at[sizeof begin] = 127;
    at[sizeof begin + size - 1] = last;
    return sizeof begin + size;
}

/* `code`: the server's response code; `count` addresses, which end with 1, 2 and so on. */
static size_t make_reply(const query *it, uint8_t *reply, int code, bool truncated, unsigned count)
{
    size_t size = it->size;
    memcpy(reply, it->bytes, size);
    reply[2] = truncated ? 0x83 : 0x81;
    reply[3] = (uint8_t)(0x80 | code);
    memset(reply + 4, 0, 8);
    reply[5] = 1;
    reply[7] = (uint8_t)count;
    for (unsigned i = 1; i <= count; i++)
        size += put_record(it, reply + size, (uint8_t)i);
    return size;
}

static void reply_to(server *s, const query *it, int code, bool truncated, unsigned count)
{
    uint8_t reply[MESSAGE];
    size_t size = make_reply(it, reply, code, truncated, count);
    (void)!sendto(bide_descriptor_fd(&s->udp), reply, size, 0, &it->from.any.generic,
                  it->from.length);
}

/* Sends invalid answers: to another question, and truncated. */
static void send_noise(server *s, const query *it)
{
    uint8_t reply[MESSAGE];
    size_t size = make_reply(it, reply, 0, false, 1);
    s->noises++;
    (void)!sendto(bide_descriptor_fd(&s->udp), reply, 5, 0, &it->from.any.generic, it->from.length);
    reply[0] ^= 0xff;
    (void)!sendto(bide_descriptor_fd(&s->udp), reply, size, 0, &it->from.any.generic,
                  it->from.length);
    reply[0] ^= 0xff;
    reply[14] ^= 1;
    (void)!sendto(bide_descriptor_fd(&s->udp), reply, size, 0, &it->from.any.generic,
                  it->from.length);
}

static void hold(server *s, const query *it)
{
    s->held = *it;
    s->holds++;
}

/* Nothing runs between the two answers. */
static void answer_4_before_6(server *s, const query *it)
{
    if (s->holds == 0) {
        hold(s, it);
        return;
    }
    reply_to(s, it->type == A ? it : &s->held, 0, false, 1);
    reply_to(s, it->type == A ? &s->held : it, 0, false, 1);
}

static void answer(server *s, const query *it)
{
    const char *name = it->label;
    if (it->is_searched) {
        s->searched++;
        reply_to(s, it, 0, false, SEARCHED);
    } else if (strcmp(name, "both") == 0) {
        reply_to(s, it, 0, false, 1);
    } else if (strcmp(name, "many") == 0) {
        reply_to(s, it, 0, false, 12);
    } else if (strcmp(name, "four") == 0) {
        reply_to(s, it, 0, false, it->type == A);
    } else if (strcmp(name, "empty") == 0) {
        reply_to(s, it, 0, false, 0);
    } else if (strcmp(name, "none") == 0 || strcmp(name, "short") == 0) {
        reply_to(s, it, 3, false, 0);
    } else if (strcmp(name, "fails") == 0) {
        reply_to(s, it, 2, false, 0);
    } else if (strcmp(name, "refuses") == 0) {
        reply_to(s, it, 5, false, 0);
    } else if (strcmp(name, "confused") == 0) {
        reply_to(s, it, 1, false, 0);
    } else if (strcmp(name, "partly") == 0) {
        reply_to(s, it, it->type == A ? 0 : 2, false, it->type == A);
    } else if (strcmp(name, "large") == 0) {
        reply_to(s, it, 0, true, 0);
    } else if (strcmp(name, "noise") == 0) {
        send_noise(s, it);
        reply_to(s, it, 0, false, 1);
    } else if (strcmp(name, "late-six") == 0 || strcmp(name, "late-four") == 0) {
        if (it->type == (strcmp(name, "late-six") == 0 ? AAAA : A))
            hold(s, it);
        else
            reply_to(s, it, 0, false, 1);
    } else if (strcmp(name, "late-four-only") == 0) {
        if (it->type == A && s->holds != 0)
            reply_to(s, it, 2, false, 0); /* (the query is repeated after an error) */
        else if (it->type == A)
            hold(s, it);
        else
            reply_to(s, it, 0, false, 0);
    } else if (strcmp(name, "soon-six") == 0) {
        answer_4_before_6(s, it);
    } else {
        assert_string_equal(name, "silent");
    }
}

bide_coroutine(udp_body)
{
    bide_begin(udp_body, struct serving * self);
    for (;;) {
        query *query = &self->server->query;
        bide_try(bide_recv_from(&self->server->datagram, &self->server->udp, query->bytes, MESSAGE,
                                &query->from));
        self->server->query.size = self->server->datagram.operation.count;
        parse(&self->server->query);
        answer(self->server, &self->server->query);
        self->server->queries++;
        bide_auto_event_set(&self->server->news);
    }
    bide_end();
}

static void reply_by_tcp(server *s)
{
    uint8_t reply[MESSAGE + 2];
    parse(&s->over_tcp);
    size_t size = make_reply(&s->over_tcp, reply + 2, 0, false, 2);
    reply[0] = (uint8_t)(size >> 8);
    reply[1] = (uint8_t)size;
    s->tcp_queries++;
    (void)!send(bide_descriptor_fd(&s->tcp), reply, size + 2, MSG_NOSIGNAL);
}

/* Serves one connection after another. */
bide_coroutine(tcp_body)
{
    bide_begin(tcp_body, struct serving * self);
    for (;;) {
        bide_try(
            bide_accept(&self->server->accept, &self->server->listener, &self->server->tcp, NULL));
        for (;;) {
            server *s = self->server;
            bide_try(bide_recv(&s->receive, &s->tcp, s->header, 1));
            if (self->server->receive.count == 0)
                break;
            s = self->server;
            bide_try(bide_recv(&s->receive, &s->tcp, s->header + 1, 1));
            s = self->server;
            s->over_tcp.size = (size_t)(s->header[0] << 8 | s->header[1]);
            assert_in_range(s->over_tcp.size, 17, MESSAGE);
            bide_try(bide_recv(&s->receive, &s->tcp, s->over_tcp.bytes, s->over_tcp.size));
            assert_int_equal(self->server->receive.count, self->server->over_tcp.size);
            reply_by_tcp(self->server);
        }
        bide_close(&self->server->tcp);
    }
    bide_finally();
    bide_close(&self->server->tcp);
    bide_end();
}

static server *begin_server(world *w)
{
    server *s = calloc(1, sizeof *s);
    bide_io_operation operation;
    assert_non_null(s);
    s->world = w;
    s->by_udp.server = s->by_tcp.server = s;
    bide_auto_event_init(&s->news, false);
    bide_descriptor_init_closed(&s->tcp);
    int status;
    do { /* until one port is free in both */
        assert_int_equal(bide_address_ip(&s->address, "127.0.0.1", 0), 0);
        assert_int_equal(world_wait(w, bide_listen(&operation, &s->listener, &s->address, 4)), 0);
        assert_int_equal(bide_local_address(&s->listener, &s->address), 0);
        status = world_wait(w, bide_bind(&operation, &s->udp, &s->address, 0));
        if (status == -EADDRINUSE)
            bide_close(&s->listener);
    } while (status == -EADDRINUSE);
    assert_int_equal(status, 0);
    bide_address_print(&s->address, s->text, sizeof s->text);
    begin(w, &s->udp_runner, bide_task_init(&s->by_udp.task, &udp_body));
    begin(w, &s->tcp_runner, bide_task_init(&s->by_tcp.task, &tcp_body));
    return s;
}

static void end_server(server *s)
{
    call_inside(s->world, stop, &s->udp_runner);
    call_inside(s->world, stop, &s->tcp_runner);
    assert_int_equal(end(s->world, &s->udp_runner), -ECANCELED);
    assert_int_equal(end(s->world, &s->tcp_runner), -ECANCELED);
    bide_close(&s->udp);
    bide_close(&s->listener);
    free(s);
}

static void wait_for(server *s, const unsigned *count, unsigned number)
{
    bide_auto_event_waiter wait;
    while (*count < number)
        assert_int_equal(world_wait(s->world, bide_auto_event_wait(&wait, &s->news)), 0);
}

static bide_names *make_names(const server *s, unsigned timeout, unsigned tries)
{
    bide_names *names;
    bide_names_options options = {
        .kind = BIDE_NAMES_CARES, .servers = s->text, .timeout = timeout, .tries = tries};
    assert_int_equal(bide_names_create(&names, &options), 0);
    return names;
}

/* ---- Look-ups ---- */

static void check(const bide_address *address, const char *ip)
{
    bide_address expected;
    bide_address_ip(&expected, ip, 80);
    assert_int_equal(address->length, expected.length);
    assert_memory_equal(&address->any, &expected.any, expected.length);
}

static void a_name_has_the_addresses_of_both_families(void **state)
{
    static const char *const hosts[] = {"both.test", "noise.test"};
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_names *names = make_names(s, 0, 0);
    bide_resolve_operation it;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(world_wait(w, bide_resolve(&it, names, hosts[i], 80)), 0);
        assert_int_equal(it.count, 2);
        check(&it.addresses[0], "::1");
        check(&it.addresses[1], "127.0.0.1");
    }
    assert_int_equal(s->noises, 2);
    assert_int_equal(s->queries, 4);
    assert_int_equal(world_wait(w, bide_resolve(&it, names, "four.test", 80)), 0);
    assert_int_equal(it.count, 1);
    check(&it.addresses[0], "127.0.0.1");
    assert_int_equal(world_wait(w, bide_resolve(&it, names, "partly.test", 80)), 0);
    assert_int_equal(it.count, 1);
    bide_names_destroy(names);
    end_server(s);
}

static void each_family_has_half_of_the_room(void **state)
{
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_names *names = make_names(s, 0, 0);
    bide_resolve_operation it;
    assert_int_equal(world_wait(w, bide_resolve(&it, names, "many.test", 80)), 0);
    assert_int_equal(it.count, BIDE_RESOLVE_MAX);
    for (unsigned i = 0; i < it.count; i++)
        assert_int_equal(it.addresses[i].any.generic.sa_family, i < 8 ? AF_INET6 : AF_INET);
    bide_names_destroy(names);
    end_server(s);
}

static void a_large_answer_is_requested_over_tcp(void **state)
{
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_names *names = make_names(s, 0, 0);
    bide_resolve_operation it;
    assert_int_equal(world_wait(w, bide_resolve(&it, names, "large.test", 80)), 0);
    assert_int_equal(it.count, 4);
    assert_int_equal(s->tcp_queries, 2);
    bide_names_destroy(names);
    end_server(s);
}

static void each_failure_has_its_error(void **state)
{
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_names *names = make_names(s, 0, 0), *hasty = make_names(s, 1, 1);
    bide_resolve_operation it;
    char longest[256];
    assert_int_equal(world_wait(w, bide_resolve(&it, names, "none.test", 80)), -ENOENT);
    assert_int_equal(it.count, 0);
    assert_int_equal(world_wait(w, bide_resolve(&it, names, "empty.test", 80)), -ENOENT);
    assert_int_equal(world_wait(w, bide_resolve(&it, names, "fails.test", 80)), -EREMOTEIO);
    assert_int_equal(world_wait(w, bide_resolve(&it, names, "refuses.test", 80)), -EACCES);
    assert_int_equal(world_wait(w, bide_resolve(&it, names, "confused.test", 80)), -EREMOTEIO);
    assert_int_equal(world_wait(w, bide_resolve(&it, hasty, "silent.test", 80)), -EAGAIN);
    assert_int_equal(world_wait(w, bide_resolve(&it, names, "a..test", 80)), -ENOENT);
    assert_int_equal(world_wait(w, bide_resolve(&it, names, "", 80)), -EINVAL);
    assert_int_equal(world_wait(w, bide_resolve(&it, names, NULL, 80)), -EINVAL);
    memset(longest, 'a', 254);
    longest[254] = '\0';
    assert_int_equal(world_wait(w, bide_resolve(&it, names, longest, 80)), -EINVAL);
    assert_int_equal(bide_sync_wait(bide_resolve(&it, names, "both.test", 80)), -ENOTSUP);
    assert_int_equal(world_wait(w, bide_resolve(&it, names, "[::1]", 80)), 0);
    check(&it.addresses[0], "::1");
    bide_names_destroy(names);
    bide_names_destroy(hasty);
    end_server(s);
}

/* Sets the search list of look-ups, whatever the system's is. NULL: the system's. */
static void search_in(const char *domains)
{
    if (domains != NULL) {
        setenv("LOCALDOMAIN", domains, 1);
        setenv("RES_OPTIONS", "ndots:1", 1);
    } else {
        unsetenv("LOCALDOMAIN");
        unsetenv("RES_OPTIONS");
    }
}

/* The names of the search list are others than the name that is looked up. */
static void both_families_are_of_one_name(void **state)
{
    static const struct {
        const char *host;
        unsigned count;
        int families; /* of what is found: AF_UNSPEC: both */
    } cases[] = {
        {"four.test", 1, AF_INET},
        {"four.test.", 1, AF_INET},
        {"both.test", 2, AF_UNSPEC},
        {"short", 2 * SEARCHED, AF_UNSPEC},
        {"none.test", 2 * SEARCHED, AF_UNSPEC},
        {"empty.test", 2 * SEARCHED, AF_UNSPEC},
    };
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_resolve_operation it;
    search_in("other.test search.test");
    bide_names *names = make_names(s, 0, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = world_wait(w, bide_resolve(&it, names, cases[i].host, 80));
        assert_int_equal(status, 0);
        assert_int_equal(it.count, cases[i].count);
        for (unsigned j = 0; cases[i].families != AF_UNSPEC && j < it.count; j++)
            assert_int_equal(it.addresses[j].any.generic.sa_family, cases[i].families);
    }
    search_in(NULL);
    bide_names_destroy(names);
    end_server(s);
}

/* What a later name of the search list has is not used while an earlier one may have something. */
static void an_answer_of_a_later_name_waits(void **state)
{
    static const int codes[] = {0, 3, 2};
    static const int statuses[] = {0, 0, -EREMOTEIO};
    for (int i = 0; i < 3; i++) {
        world *w = world_of(state);
        server *s = begin_server(w);
        struct runner runner;
        bide_resolve_operation it;
        search_in("search.test");
        bide_names *names = make_names(s, 0, 0);
        begin(w, &runner, bide_resolve(&it, names, "late-four-only.test", 80));
        wait_for(s, &s->searched, 1);
        wait_for(s, &s->holds, 1);
        for (int turns = 0; turns < 3; turns++)
            turn(w);
        assert_int_equal(it.answered, 0);
        reply_to(s, &s->held, codes[i], false, codes[i] == 0);
        assert_int_equal(end(w, &runner), statuses[i]);
        assert_int_equal(it.count, i == 0 ? 1 : i == 1 ? 2 * SEARCHED : 0);
        if (i == 0)
            assert_int_equal(it.addresses[0].any.generic.sa_family, AF_INET);
        search_in(NULL);
        bide_names_destroy(names);
        end_server(s);
    }
}

static void a_look_up_ends_early(void **state)
{
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_names *names = make_names(s, 0, 0);
    for (int how = 0; how < CLOSE; how++) {
        struct runner runner, other_runner;
        bide_resolve_operation it, other;
        int before = count_descriptors();
        begin_by(w, &runner, bide_resolve(&it, names, "silent.test", 80), how);
        if (how != TIME_OUT)
            wait_for(s, &s->queries, s->queries + 2);
        begin(w, &other_runner, bide_resolve(&other, names, "late-six.test", 80));
        wait_for(s, &s->holds, s->holds + 1);
        end_by(w, &runner, NULL, how);
        reply_to(s, &s->held, 0, false, 1);
        assert_int_equal(end(w, &other_runner), 0);
        assert_int_equal(other.count, 2);
        assert_int_equal(count_descriptors(), before);
    }
    bide_names_destroy(names);
    end_server(s);
}

static void an_earlier_stop_request_cancels_it(void **state)
{
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_names *names = make_names(s, 0, 0);
    struct runner runner;
    bide_resolve_operation it;
    begin(w, &runner, bide_resolve(&it, names, "silent.test", 80));
    stop(&runner);
    assert_int_equal(end(w, &runner), -ECANCELED);
    bide_names_destroy(names);
    end_server(s);
}

static void many_look_ups_run_at_once(void **state)
{
    enum { MANY = 24 };
    static struct runner runners[MANY];
    static bide_resolve_operation look_ups[MANY];
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_names *names = make_names(s, 0, 0);
    for (int i = 0; i < MANY; i++)
        begin(w, &runners[i], bide_resolve(&look_ups[i], names, "late-four.test", 80));
    wait_for(s, &s->holds, MANY); /* none has ended when the last one is requested */
    for (int i = 0; i < MANY; i++)
        assert_false(runners[i].has_ended);
    for (int i = 0; i < MANY; i++)
        call_inside(w, stop, &runners[i]);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(end(w, &runners[i]), -ECANCELED);
    for (int i = 0; i < MANY; i++)
        begin(w, &runners[i], bide_resolve(&look_ups[i], names, "both.test", 80));
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(end(w, &runners[i]), 0);
        assert_int_equal(look_ups[i].count, 2);
    }
    bide_names_destroy(names);
    end_server(s);
}

static void a_lack_of_resources_is_reported(void **state)
{
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_names *names = make_names(s, 0, 0), *none;
    bide_names_options options = {.kind = BIDE_NAMES_CARES};
    bide_resolve_operation it;
    int before = count_descriptors();
    static const int errors[] = {EMFILE, ENFILE, ENOMEM, ENOBUFS};
    for (int i = 0; i < 4; i++) {
        fail.socket = errors[i];
        assert_int_equal(world_wait(w, bide_resolve(&it, names, "both.test", 80)), -errors[i]);
        fail.socket = 0;
        fail.create = errors[i];
        assert_int_equal(world_wait(w, bide_resolve(&it, names, "both.test", 80)), -errors[i]);
        fail.create = 0;
    }
    fail.add = ENOSPC;
    assert_int_equal(world_wait(w, bide_resolve(&it, names, "both.test", 80)), -ENOSPC);
    fail.add = 0;
    fail.calloc = true;
    int status = world_wait(w, bide_resolve(&it, names, "both.test", 80));
    int created = bide_names_create(&none, &options);
    fail.calloc = false;
    assert_int_equal(status, -ENOMEM);
    assert_int_equal(created, -ENOMEM);
    assert_int_equal(count_descriptors(), before);
    assert_int_equal(world_wait(w, bide_resolve(&it, names, "both.test", 80)), 0);
    bide_names_destroy(names);
    end_server(s);
}

static void options_are_checked(void **state)
{
    world *w = world_of(state);
    bide_names *names;
    char text[600];
    (void)w;
    memset(text, '1', sizeof text);
    text[sizeof text - 1] = '\0';
    bide_names_options options = {.kind = BIDE_NAMES_CARES, .servers = text};
    assert_int_equal(bide_names_create(&names, &options), -EINVAL);
    options.servers = "not an address";
    assert_int_equal(bide_names_create(&names, &options), -EINVAL);
    options.servers = NULL;
    options.timeout = UINT32_MAX;
    assert_int_equal(bide_names_create(&names, &options), -EINVAL);
    options.timeout = 0;
    options.kind = (bide_names_kind)7;
    assert_int_equal(bide_names_create(&names, &options), -EINVAL);
}

/* ---- Connecting by name: one of 127.0.0.1 and ::1 refuses, or neither ---- */

typedef struct fixture {
    world *world;
    server *server;
    bide_names *names;
    bide_descriptor listeners[2]; /* IPv4 and IPv6, with the same port */
    uint16_t port;
    bide_descriptor connection, accepted;
    bide_io_operation operation;
    bide_connect_by_name_operation connect;
} fixture;

static int listen_on(fixture *f, int which, const char *ip)
{
    bide_address address;
    bide_address_ip(&address, ip, f->port);
    int status =
        world_wait(f->world, bide_listen_with(&f->operation, &f->listeners[which], &address, 4,
                                              which ? BIDE_LISTEN_V6_ONLY : 0));
    if (status == 0) {
        assert_int_equal(bide_local_address(&f->listeners[which], &address), 0);
        f->port = bide_address_port(&address);
    }
    return status;
}

/*
 * Binds the port without listening: connections to it are refused, and no other program can use
 * it.
 */
static int hold_port(fixture *f, int which)
{
    bide_address address;
    bide_address_ip(&address, which ? "::1" : "127.0.0.1", f->port);
    int fd = socket(address.any.generic.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return which ? 0 : -errno;
    if (bind(fd, &address.any.generic, address.length) != 0) {
        int status = errno == EADDRNOTAVAIL ? 0 : -errno;
        close(fd);
        return status;
    }
    bide_descriptor_init(&f->listeners[which], fd);
    return 0;
}

/* Listens on one port in the requested families, and reserves it in the other. */
static int open_port(fixture *f, bool has_v4, bool has_v6)
{
    f->port = 0;
    int status = has_v6 ? listen_on(f, 1, "::1") : 0;
    if (status != 0)
        return status;
    status = has_v4 ? listen_on(f, 0, "127.0.0.1") : hold_port(f, 0);
    if (status == 0 && !has_v6)
        status = hold_port(f, 1);
    if (status == -EADDRINUSE) {
        bide_close(&f->listeners[0]);
        bide_close(&f->listeners[1]);
        return open_port(f, has_v4, has_v6);
    }
    assert_int_equal(status, 0);
    return 0;
}

static void end_fixture(fixture *f)
{
    for (int i = 0; i < 2; i++)
        bide_close(&f->listeners[i]);
    bide_close(&f->connection);
    bide_close(&f->accepted);
    if (f->names != NULL)
        bide_names_destroy(f->names);
    if (f->server != NULL)
        end_server(f->server);
    free(f);
}

static fixture *begin_fixture(world *w, bool has_v4, bool has_v6)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->world = w;
    bide_descriptor_init_closed(&f->listeners[0]);
    bide_descriptor_init_closed(&f->listeners[1]);
    bide_descriptor_init_closed(&f->connection);
    bide_descriptor_init_closed(&f->accepted);
    if (open_port(f, has_v4, has_v6) != 0) {
        end_fixture(f);
        printf("# no IPv6\n");
        skip();
        return NULL;
    }
    f->server = begin_server(w);
    f->names = make_names(f->server, 0, 0);
    return f;
}

static bide_awaiter *connect_to(fixture *f, const char *host)
{
    return bide_connect_by_name(&f->connect, &f->connection, f->names, host, f->port);
}

static void check_connection(fixture *f, int which)
{
    char byte = 0;
    bide_address *address = &f->connect.resolve.addresses[f->connect.connect.connected];
    assert_int_equal(address->any.generic.sa_family, which ? AF_INET6 : AF_INET);
    assert_int_equal(
        world_wait(f->world, bide_accept(&f->operation, &f->listeners[which], &f->accepted, NULL)),
        0);
    assert_int_equal(world_wait(f->world, bide_send(&f->operation, &f->connection, "x", 1)), 0);
    assert_int_equal(world_wait(f->world, bide_recv(&f->operation, &f->accepted, &byte, 1)), 0);
    assert_int_equal(byte, 'x');
}

static void version_6_is_waited_for_no_longer_than_its_delay(void **state)
{
    fixture *f = begin_fixture(world_of(state), true, false);
    assert_int_equal(world_wait(f->world, connect_to(f, "late-six.test")), 0);
    assert_int_equal(f->connect.resolve.answered, BIDE_ANSWERED_V4_);
    check_connection(f, 0);
    end_fixture(f);
}

static void version_6_is_first_if_it_comes_within_its_delay(void **state)
{
    fixture *f = begin_fixture(world_of(state), true, true);
    assert_int_equal(world_wait(f->world, connect_to(f, "soon-six.test")), 0);
    assert_int_equal(f->connect.resolve.addresses[0].any.generic.sa_family, AF_INET);
    assert_int_equal(f->connect.connect.begun, 1);
    check_connection(f, 1);
    end_fixture(f);
}

static void do_nothing(void *nothing)
{
    (void)nothing;
}

/* The IPv6 answer arrives after the IPv4 answer, and no time has passed. */
static void version_4_waits_for_version_6(void **state)
{
    fixture *f = begin_fixture(world_of(state), true, true);
    struct runner runner;
    unsigned turns = 0;
    stand_still(true);
    begin(f->world, &runner, connect_to(f, "late-six.test"));
    wait_for(f->server, &f->server->holds, 1);
    while (f->connect.resolve.answered == 0 || turns++ < 16) /* lets everything that is ready run */
        call_inside(f->world, do_nothing, NULL);
    unsigned begun = f->connect.connect.begun;
    reply_to(f->server, &f->server->held, 0, false, 1);
    int status = end(f->world, &runner);
    stand_still(false);
    assert_int_equal(begun, 0);
    assert_int_equal(status, 0);
    assert_int_equal(f->connect.resolve.addresses[0].any.generic.sa_family, AF_INET);
    assert_int_equal(f->connect.connect.begun, 1);
    check_connection(f, 1);
    end_fixture(f);
}

static void version_6_does_not_wait_for_version_4(void **state)
{
    fixture *f = begin_fixture(world_of(state), true, true);
    assert_int_equal(world_wait(f->world, connect_to(f, "late-four.test")), 0);
    assert_int_equal(f->connect.resolve.answered, BIDE_ANSWERED_V6_);
    check_connection(f, 1);
    end_fixture(f);
}

/* The first addresses have been tried, and refuse, when more are found. */
static void addresses_found_later_are_tried(void **state)
{
    static const char *const hosts[2] = {"late-four.test", "late-six.test"};
    for (int late = 0; late < 2; late++) {
        fixture *f = begin_fixture(world_of(state), late == 0, late == 1);
        struct runner runner;
        begin(f->world, &runner, connect_to(f, hosts[late]));
        wait_for(f->server, &f->server->holds, 1);
        while (f->connect.connect.begun == 0 || f->connect.connect.failed == 0)
            turn(f->world);
        assert_false(runner.has_ended);
        reply_to(f->server, &f->server->held, 0, false, 1);
        assert_int_equal(end(f->world, &runner), 0);
        assert_int_equal(f->connect.connect.begun, 2);
        check_connection(f, late);
        end_fixture(f);
    }
}

static void that_nothing_more_comes_is_the_first_error(void **state)
{
    fixture *f = begin_fixture(world_of(state), true, false);
    assert_int_equal(shutdown(bide_descriptor_fd(&f->listeners[0]), SHUT_RDWR),
                     0); /* its port refuses connections from now on */
    assert_int_equal(world_wait(f->world, connect_to(f, "four.test")), -ECONNREFUSED);
    assert_int_equal(world_wait(f->world, connect_to(f, "none.test")), -ENOENT);
    assert_int_equal(world_wait(f->world, connect_to(f, "empty.test")), -ENOENT);
    assert_false(bide_descriptor_is_open(&f->connection));
    end_fixture(f);
}

/* While nothing is found, and while an attempt has failed and more may follow. */
static void connecting_by_name_ends_early(void **state)
{
    for (int how = 0; how < CLOSE; how++) {
        for (int is_late = 0; is_late < 2; is_late++) {
            fixture *f = begin_fixture(world_of(state), true, false);
            struct runner runner;
            int before = count_descriptors();
            begin_by(f->world, &runner, connect_to(f, is_late ? "late-four.test" : "silent.test"),
                     how);
            if (how != TIME_OUT)
                wait_for(f->server, &f->server->queries, 2);
            while (how != TIME_OUT && is_late && f->connect.connect.failed == 0)
                turn(f->world);
            end_by(f->world, &runner, NULL, how);
            assert_int_equal(count_descriptors(), before);
            assert_false(bide_descriptor_is_open(&f->connection));
            end_fixture(f);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(a_name_has_the_addresses_of_both_families),
        world_test(each_family_has_half_of_the_room),
        world_test(a_large_answer_is_requested_over_tcp),
        world_test(each_failure_has_its_error),
        world_test(both_families_are_of_one_name),
        world_test(an_answer_of_a_later_name_waits),
        world_test(a_look_up_ends_early),
        world_test(an_earlier_stop_request_cancels_it),
        world_test(many_look_ups_run_at_once),
        world_test(a_lack_of_resources_is_reported),
        world_test(options_are_checked),
        world_test(version_6_is_waited_for_no_longer_than_its_delay),
        world_test(version_6_is_first_if_it_comes_within_its_delay),
        world_test(version_4_waits_for_version_6),
        world_test(version_6_does_not_wait_for_version_4),
        world_test(addresses_found_later_are_tried),
        world_test(that_nothing_more_comes_is_the_first_error),
        world_test(connecting_by_name_ends_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
