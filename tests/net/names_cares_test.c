/*
 * Name resolution by c-ares: how each answer of a name server is handled, how a lookup is cancelled, and
 * connecting while the answer for one address family is pending. The name server is part of the test and
 * runs on the same loop.
 */
#define _GNU_SOURCE
#include "../io/runner.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

/* ---- Another /etc/resolv.conf ---- */

static struct {
    bool is_replaced;
    bide_atomic(unsigned) looks; /* by several threads */
} configuration;

static unsigned looks(void)
{
    return bide_atomic_load(&configuration.looks, relaxed);
}

int __real_stat64(const char *path, struct stat *found);
int __wrap_stat64(const char *path, struct stat *found);
int __wrap_stat64(const char *path, struct stat *found)
{
    memset(found, 0, sizeof *found);
    int status = __real_stat64(path, found);
    bide_atomic_fetch_add(&configuration.looks, 1, relaxed);
    if (configuration.is_replaced)
        found->st_ino++;
    return configuration.is_replaced ? 0 : status;
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

enum { MESSAGE = 1024, A = 1, CNAME = 5, PTR = 12, TXT = 16, AAAA = 28, SRV = 33, SEARCHED = 3 };

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
    uint32_t soa_life, soa_minimum;
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

static uint8_t lives[2] = {60, 60}; /* of records of version 4 and 6, in seconds */

static size_t put_record(const query *it, uint8_t *at, uint8_t last)
{
    size_t size = it->type == A ? 4 : 16;
    uint8_t life = lives[it->type != A];
    const uint8_t begin[] = {0xc0, 12, 0, (uint8_t)it->type, 0, 1, 0, 0, 0, life, 0, (uint8_t)size};
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

static void put_32(uint8_t *at, uint32_t number)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(number >> (24 - 8 * i));
}

/* An answer without a record, and with the SOA record of the zone. */
static void reply_absent(server *s, const query *it, int code)
{
    uint8_t reply[MESSAGE];
    const uint8_t begin[] = {0xc0, 12, 0, 6, 0, 1}, names[] = {0xc0, 12, 1, 'r', 0xc0, 12};
    size_t size = make_reply(it, reply, code, false, 0);
    reply[9] = 1; /* records of the authority section */
    memcpy(reply + size, begin, sizeof begin);
    put_32(reply + size + 6, s->soa_life);
    reply[size + 10] = 0;
    reply[size + 11] = sizeof names + 20;
    memcpy(reply + size + 12, names, sizeof names);
    size += 12 + sizeof names;
    for (int i = 0; i < 5; i++) /* serial, refresh, retry, expire, minimum */
        put_32(reply + size + 4 * i, i < 4 ? 86400 : s->soa_minimum);
    size += 20;
    (void)!sendto(bide_descriptor_fd(&s->udp), reply, size, 0, &it->from.any.generic,
                  it->from.length);
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

/* ---- Records other than addresses ---- */

typedef struct reply {
    uint8_t bytes[MESSAGE];
    size_t size;
} reply;

static void put_bytes(reply *to, const void *bytes, size_t size)
{
    assert_in_range(size, 0, MESSAGE - to->size);
    memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
}

static void put_answer(reply *to, uint16_t type, const void *data, size_t size)
{
    const uint8_t begin[] = {0xc0, 12, 0, (uint8_t)type, 0, 1, 0, 0, 0, 60, 0, (uint8_t)size};
    put_bytes(to, begin, sizeof begin);
    put_bytes(to, data, size);
    to->bytes[7]++;
}

/* A record whose data is the bytes of an array. */
#define put_data(to, type, ...) \
    put_answer(to, type, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void put_servers(reply *to)
{
    put_data(to, SRV, 0, 10, 0, 5, 0x1f, 0x90, 1, 'b', 4, 't', 'e', 's', 't', 0);
    put_data(to, A, 192, 0, 2, 1); /* is not asked for */
    put_data(to, SRV, 0, 5, 1, 0, 0, 80, 2, 'a', '-', 0xc0, 12);
    put_data(to, SRV, 0, 5, 0, 0, 0, 81, 0);
}

static void put_many_texts(reply *to)
{
    for (int i = 0; i < BIDE_RECORDS_MAX + 2; i++) /* in 512 bytes */
        put_data(to, TXT, 0);
}

static void put_records(reply *to, const char *name)
{
    if (strcmp(name, "servers") == 0) {
        put_servers(to);
    } else if (strcmp(name, "alias") == 0) {
        put_data(to, CNAME, 5, 'o', 't', 'h', 'e', 'r', 0);
        put_data(to, SRV, 0, 0, 0, 0, 0, 1, 1, 'x', 0);
    } else if (strcmp(name, "texts") == 0) {
        put_data(to, TXT, 3, 'o', 'n', 'e', 3, 't', 'w', 'o');
        put_data(to, TXT, 0);
        put_data(to, TXT, 3, 'a', 0, 0xff);
    } else if (strcmp(name, "many") == 0) {
        put_many_texts(to);
    } else if (strcmp(name, "1") == 0 || strcmp(name, "7") == 0) {
        put_data(to, PTR, 4, 'h', 'o', 's', 't', 4, 't', 'e', 's', 't', 0);
        put_data(to, PTR, 3, 'w', 'w', 'w', 0);
    } else if (strcmp(name, "space") == 0) {
        put_data(to, SRV, 0, 0, 0, 0, 0, 1, 3, 'a', ' ', 'b', 0);
    } else if (strcmp(name, "loops") == 0) { /* the pointer leads to itself */
        put_data(to, SRV, 0, 0, 0, 0, 0, 1, 1, 'a', 0xc0, (uint8_t)(to->size + 20));
    } else if (strcmp(name, "cut") == 0) {
        put_data(to, SRV, 0, 0, 0, 0, 0);
    } else if (strcmp(name, "beyond") == 0) {
        put_data(to, TXT, 9, 'a');
    }
}

static void answer_with_records(server *s, const query *it)
{
    reply made;
    bool is_none = strcmp(it->label, "none") == 0;
    if (strcmp(it->label, "absent") == 0) {
        reply_absent(s, it, 3);
    } else if (strcmp(it->label, "fails") == 0 || is_none) {
        reply_to(s, it, is_none ? 3 : 2, false, 0);
    } else if (strcmp(it->label, "silent") != 0) {
        made.size = make_reply(it, made.bytes, 0, false, 0);
        put_records(&made, it->label);
        (void)!sendto(bide_descriptor_fd(&s->udp), made.bytes, made.size, 0, &it->from.any.generic,
                      it->from.length);
    }
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
    if (it->type != A && it->type != AAAA) {
        answer_with_records(s, it);
    } else if (it->is_searched) {
        s->searched++;
        reply_to(s, it, 0, false, SEARCHED);
    } else if (strcmp(name, "both") == 0 || strncmp(name, "any-", 4) == 0) {
        reply_to(s, it, 0, false, 1);
    } else if (strcmp(name, "many") == 0) {
        reply_to(s, it, 0, false, 12);
    } else if (strcmp(name, "four") == 0) {
        reply_to(s, it, 0, false, it->type == A);
    } else if (strcmp(name, "empty") == 0) {
        reply_to(s, it, 0, false, 0);
    } else if (strcmp(name, "none") == 0 || strcmp(name, "short") == 0) {
        reply_to(s, it, 3, false, 0);
    } else if (strcmp(name, "absent") == 0) {
        reply_absent(s, it, 3);
    } else if (strcmp(name, "no-data") == 0) {
        reply_absent(s, it, 0);
    } else if (strcmp(name, "no-six") == 0 && it->type == AAAA) {
        reply_absent(s, it, 0);
    } else if (strcmp(name, "no-six") == 0) {
        reply_to(s, it, 0, false, 1);
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

/* Without a cache. */
static bide_names *make_names(const server *s, unsigned timeout, unsigned tries)
{
    bide_names *names;
    bide_names_options options = {.kind = BIDE_NAMES_CARES,
                                  .servers = s->text,
                                  .timeout = timeout,
                                  .tries = tries,
                                  .is_uncached = true};
    assert_int_equal(bide_names_create(&names, &options), 0);
    return names;
}

/* (No query is repeated because the machine is slow: queries are counted.) */
static bide_names *make_keeping_names(const server *s, unsigned cached)
{
    bide_names *names;
    bide_names_options options = {
        .kind = BIDE_NAMES_CARES, .servers = s->text, .cached = cached, .timeout = 600000};
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
    bide_names *fresh = make_names(s, 0, 0); /* that has no idle channel */
    fail.calloc = true;
    int status = world_wait(w, bide_resolve(&it, fresh, "both.test", 80));
    int created = bide_names_create(&none, &options);
    fail.calloc = false;
    assert_int_equal(status, -ENOMEM);
    assert_int_equal(created, -ENOMEM);
    bide_names_destroy(fresh);
    assert_int_equal(count_descriptors(), before);
    assert_int_equal(world_wait(w, bide_resolve(&it, names, "both.test", 80)), 0);
    bide_names_destroy(names);
    end_server(s);
}

static void a_channel_is_used_again(void **state)
{
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_names *names = make_names(s, 0, 0);
    bide_resolve_operation it;
    int before = count_descriptors();
    assert_int_equal(world_wait(w, bide_resolve(&it, names, "both.test", 80)), 0);
    assert_int_equal(count_descriptors(), before);
    fail.calloc = true;
    int status = world_wait(w, bide_resolve(&it, names, "both.test", 80));
    fail.calloc = false;
    assert_int_equal(status, 0);
    assert_int_equal(it.count, 2);
    assert_int_equal(s->queries, 4);
    assert_int_equal(count_descriptors(), before);
    bide_names_destroy(names);
    end_server(s);
}

/* A channel whose look-up ended early answers the next one, and its late answers go nowhere. */
static void a_channel_of_a_cancelled_look_up_is_used_again(void **state)
{
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_names *names = make_names(s, 0, 0);
    for (int how = 0; how < CLOSE; how++) {
        struct runner runner;
        bide_resolve_operation it;
        unsigned holds = s->holds;
        begin_by(w, &runner, bide_resolve(&it, names, "late-six.test", 80), how);
        if (how != TIME_OUT)
            wait_for(s, &s->holds, holds + 1);
        end_by(w, &runner, NULL, how);
        if (s->holds != holds)
            reply_to(s, &s->held, 0, false, 3);
        assert_int_equal(world_wait(w, bide_resolve(&it, names, "four.test", 80)), 0);
        assert_int_equal(it.count, 1);
        check(&it.addresses[0], "127.0.0.1");
    }
    bide_names_destroy(names);
    end_server(s);
}

/* ---- Answers that are kept ---- */

/* A look-up and the queries that the server had for it. */
static unsigned queries_of(server *s, bide_resolve_operation *it, bide_names *names,
                           const char *host, int status)
{
    unsigned before = s->queries;
    assert_int_equal(world_wait(s->world, bide_resolve(it, names, host, 80)), status);
    return s->queries - before;
}

static void an_answer_is_kept_for_its_time_to_live(void **state)
{
    static const uint8_t all[3][2] = {{60, 60}, {200, 60}, {60, 200}};
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_resolve_operation it;
    for (int i = 0; i < 3; i++) {
        bide_names *names = make_keeping_names(s, 0);
        memcpy(lives, all[i], sizeof lives);
        stand_still(true);
        unsigned counts[4];
        counts[0] = queries_of(s, &it, names, "both.test", 0);
        now.at.tv_sec += 59;
        counts[1] = queries_of(s, &it, names, "BOTH.test", 0);
        check(&it.addresses[0], "::1");
        check(&it.addresses[1], "127.0.0.1");
        assert_int_equal(it.count, 2);
        counts[2] = queries_of(s, &it, names, "both.test.", 0); /* another name */
        now.at.tv_sec += 1;
        counts[3] = queries_of(s, &it, names, "both.test", 0);
        stand_still(false);
        assert_int_equal(counts[0], 2);
        assert_int_equal(counts[1], 0);
        assert_int_equal(counts[2], 2);
        assert_int_equal(counts[3], 2);
        bide_names_destroy(names);
    }
    lives[0] = lives[1] = 0;
    bide_names *names = make_keeping_names(s, 0);
    assert_int_equal(queries_of(s, &it, names, "both.test", 0), 2);
    assert_int_equal(queries_of(s, &it, names, "both.test", 0), 2);
    lives[0] = lives[1] = 60;
    bide_names_destroy(names);
    end_server(s);
}

/*
 * By the smaller number of the SOA record; without one it is not kept. The names are absolute, so the
 * system's search list does not add queries.
 */
static void that_there_is_no_address_is_kept(void **state)
{
    static const struct {
        const char *host;
        uint32_t life, minimum;
        unsigned kept;
    } cases[] = {
        {"absent.test.", 30, 100, 30},
        {"absent.test.", 100, 30, 30},
        {"no-data.test.", 30, 30, 30},
        {"no-six.test.", 30, 100, 30},
        {"no-six.test.", 100, 100, 60},
        {"absent.test.", 0, 100, 0},
        {"absent.test.", 100, 0x80000001, 0},
        {"absent.test.", 200000, 200000, 3 * 3600},
        {"none.test.", 0, 0, 0},
        {"empty.test.", 0, 0, 0},
    };
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_resolve_operation it;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        bide_names *names = make_keeping_names(s, 0);
        int status = strcmp(cases[i].host, "no-six.test.") == 0 ? 0 : -ENOENT;
        s->soa_life = cases[i].life;
        s->soa_minimum = cases[i].minimum;
        stand_still(true);
        unsigned first = queries_of(s, &it, names, cases[i].host, status), again = 0;
        if (cases[i].kept != 0) {
            now.at.tv_sec += cases[i].kept - 1;
            again = queries_of(s, &it, names, cases[i].host, status);
            now.at.tv_sec += 1;
        }
        unsigned last = queries_of(s, &it, names, cases[i].host, status);
        stand_still(false);
        assert_int_equal(first, 2);
        assert_int_equal(again, 0);
        assert_int_equal(last, 2);
        bide_names_destroy(names);
    }
    end_server(s);
}

static void failures_are_not_kept(void **state)
{
    static const char *const hosts[] = {"fails.test", "refuses.test", "partly.test"};
    static const int statuses[] = {-EREMOTEIO, -EACCES, 0};
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_names *names = make_keeping_names(s, 0);
    bide_resolve_operation it;
    for (int i = 0; i < 3; i++) {
        assert_true(queries_of(s, &it, names, hosts[i], statuses[i]) >= 2);
        assert_true(queries_of(s, &it, names, hosts[i], statuses[i]) >= 2);
    }
    bide_names_destroy(names);
    end_server(s);
}

/* The name that was used the longest time ago is forgotten. */
static void a_limited_number_of_names_is_kept(void **state)
{
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_names *names = make_keeping_names(s, 2);
    bide_resolve_operation it;
    assert_int_equal(queries_of(s, &it, names, "any-1.test", 0), 2);
    assert_int_equal(queries_of(s, &it, names, "any-2.test", 0), 2);
    assert_int_equal(queries_of(s, &it, names, "any-1.test", 0), 0);
    assert_int_equal(queries_of(s, &it, names, "any-3.test", 0), 2);
    assert_int_equal(queries_of(s, &it, names, "any-1.test", 0), 0);
    assert_int_equal(queries_of(s, &it, names, "any-3.test", 0), 0);
    assert_int_equal(queries_of(s, &it, names, "any-2.test", 0), 2);
    bide_names_forget(names);
    assert_int_equal(queries_of(s, &it, names, "any-2.test", 0), 2);
    bide_names_destroy(names);
    end_server(s);
}

static void each_name_of_many_has_its_own_answer(void **state)
{
    enum { MANY = 300, KEPT = 200 };
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_names *names = make_keeping_names(s, KEPT);
    bide_resolve_operation it;
    char host[32];
    for (int round = 0; round < 2; round++) {
        for (int i = MANY; i-- > 0;) {
            snprintf(host, sizeof host, "%s-%d.test", i % 3 == 0 ? "any" : "any-longer", i);
            unsigned queries = queries_of(s, &it, names, host, 0);
            assert_int_equal(it.count, 2);
            assert_int_equal(queries, 2); /* each was forgotten before its turn came again */
        }
    }
    for (int i = 0; i < KEPT; i++) { /* the last ones, in the other order */
        snprintf(host, sizeof host, "%s-%d.test", i % 3 == 0 ? "any" : "any-longer", i);
        assert_int_equal(queries_of(s, &it, names, host, 0), 0);
    }
    bide_names_destroy(names);
    end_server(s);
}

/* Awaits a look-up after another coroutine got ready, which runs if the look-up suspends. */
struct at_once {
    bide_task task;
    world *world;
    struct runner other;
    bide_sleep none;
    bide_resolve_operation resolve;
    bide_awaiter *awaiter;
    bool has_suspended;
};

bide_coroutine(at_once_body)
{
    bide_begin(at_once_body, struct at_once * self);
    begin(self->world, &self->other, bide_sleep_until(&self->none, 0));
    bide_try(self->awaiter);
    self->has_suspended = self->other.has_ended;
    bide_end();
}

static bool look_up_suspends(world *w, bide_names *names, const char *host)
{
    struct at_once it = {.world = w};
    it.awaiter = bide_resolve(&it.resolve, names, host, 80);
    assert_int_equal(world_wait(w, bide_task_init(&it.task, &at_once_body)), 0);
    (void)end(w, &it.other);
    return it.has_suspended;
}

static void a_kept_answer_does_not_suspend(void **state)
{
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_names *names = make_keeping_names(s, 0);
    stand_still(true);
    bool first = look_up_suspends(w, names, "both.test");
    fail.socket = fail.create = EMFILE;
    fail.calloc = true;
    unsigned before = looks();
    bool second = look_up_suspends(w, names, "both.test");
    unsigned between = looks() - before;
    fail.socket = fail.create = 0;
    fail.calloc = false;
    stand_still(false);
    assert_true(first);
    assert_false(second);
    assert_int_equal(between, 0);
    bide_names_destroy(names);
    end_server(s);
}

static void a_replaced_configuration_is_read(void **state)
{
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_names *names = make_keeping_names(s, 0);
    bide_resolve_operation it;
    assert_int_equal(queries_of(s, &it, names, "both.test", 0), 2);
    if (looks() != 0) { /* (not every C library has it by this name) */
        configuration.is_replaced = true;
        fail.calloc = true; /* for a channel */
        int status = world_wait(w, bide_resolve(&it, names, "four.test.", 80));
        fail.calloc = false;
        unsigned others = queries_of(s, &it, names, "four.test.", 0);
        unsigned queries = queries_of(s, &it, names, "both.test", 0);
        configuration.is_replaced = false;
        assert_int_equal(status, -ENOMEM);
        assert_int_equal(others, 2);
        assert_int_equal(queries, 2); /* the answers of the older configuration are forgotten */
    }
    bide_names_destroy(names);
    end_server(s);
}

/* In a child, with a loop of its own. */
static int child_resolves(bide_names *names)
{
    bide_loop *loop;
    bide_resolve_operation it;
    bide_loop_options options = {.kind = BY_READINESS};
    if (bide_loop_create(&loop, &options) != 0)
        return 2;
    if (bide_loop_wait(loop, bide_resolve(&it, names, "both.test", 80)) != 0)
        return 3;
    return it.count == 2 ? 0 : 4;
}

static void an_answer_is_not_kept_in_a_child(void **state)
{
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_names *names = make_keeping_names(s, 0);
    bide_resolve_operation it;
    int status = 0;
    lives[0] = lives[1] = 200; /* longer than the test may run */
    unsigned first = queries_of(s, &it, names, "both.test", 0);
    unsigned before = s->queries;
    pid_t child = fork();
    if (child == 0)
        _exit(child_resolves(names));
    while (child > 0 && waitpid(child, &status, WNOHANG) == 0)
        turn(w);
    unsigned of_child = s->queries - before;
    unsigned again = queries_of(s, &it, names, "both.test", 0);
    lives[0] = lives[1] = 60;
    assert_true(child > 0);
    assert_int_equal(status, 0);
    assert_int_equal(first, 2);
    assert_true(of_child >= 2);
    assert_int_equal(again, 0);
    bide_names_destroy(names);
    end_server(s);
}

static void a_cancelled_look_up_is_not_kept(void **state)
{
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_names *names = make_keeping_names(s, 0);
    struct runner runner;
    bide_resolve_operation it;
    begin(w, &runner, bide_resolve(&it, names, "late-six.test", 80));
    wait_for(s, &s->holds, 1);
    call_inside(w, stop, &runner);
    assert_int_equal(end(w, &runner), -ECANCELED);
    begin(w, &runner, bide_resolve(&it, names, "late-six.test", 80));
    wait_for(s, &s->holds, 2);
    reply_to(s, &s->held, 0, false, 1);
    assert_int_equal(end(w, &runner), 0);
    assert_int_equal(queries_of(s, &it, names, "late-six.test", 0), 0);
    bide_names_destroy(names);
    end_server(s);
}

static void an_answer_in_flight_is_not_kept_when_all_are_forgotten(void **state)
{
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_names *names = make_keeping_names(s, 0);
    struct runner runner;
    bide_resolve_operation it;
    for (unsigned i = 1; i <= 2; i++) { /* with a new channel, and with one that was idle */
        begin(w, &runner, bide_resolve(&it, names, "late-six.test", 80));
        wait_for(s, &s->holds, i);
        bide_names_forget(names);
        reply_to(s, &s->held, 0, false, 1);
        assert_int_equal(end(w, &runner), 0);
        assert_int_equal(it.count, 2);
    }
    begin(w, &runner, bide_resolve(&it, names, "late-six.test", 80));
    wait_for(s, &s->holds, 3);
    reply_to(s, &s->held, 0, false, 1);
    assert_int_equal(end(w, &runner), 0);
    assert_int_equal(queries_of(s, &it, names, "late-six.test", 0), 0);
    bide_names_destroy(names);
    end_server(s);
}

/* ---- Records ---- */

static int look_up_records(server *s, bide_resolve_records_operation *it, bide_names *names,
                           const char *name, bide_record_kind kind)
{
    return world_wait(s->world, bide_resolve_records(it, names, name, kind));
}

static void servers_are_sorted_by_priority(void **state)
{
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_names *names = make_names(s, 0, 0);
    bide_resolve_records_operation it;
    assert_int_equal(look_up_records(s, &it, names, "servers.test", BIDE_RECORD_SRV), 0);
    assert_int_equal(it.count, 3);
    assert_int_equal(it.omitted, 0);
    assert_string_equal(it.records[0].text, "a-.servers.test");
    assert_int_equal(it.records[0].size, strlen("a-.servers.test"));
    assert_int_equal(it.records[0].priority, 5);
    assert_int_equal(it.records[0].weight, 256);
    assert_int_equal(it.records[0].port, 80);
    assert_string_equal(it.records[1].text, ".");
    assert_int_equal(it.records[1].port, 81);
    assert_string_equal(it.records[2].text, "b.test");
    assert_int_equal(it.records[2].priority, 10);
    assert_int_equal(it.records[2].weight, 5);
    assert_int_equal(it.records[2].port, 8080);
    assert_int_equal(look_up_records(s, &it, names, "alias.test", BIDE_RECORD_SRV), 0);
    assert_int_equal(it.count, 1);
    assert_string_equal(it.records[0].text, "x");
    bide_names_destroy(names);
    end_server(s);
}

static void texts_may_have_any_bytes(void **state)
{
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_names *names = make_names(s, 0, 0);
    bide_resolve_records_operation it;
    assert_int_equal(look_up_records(s, &it, names, "texts.test", BIDE_RECORD_TXT), 0);
    assert_int_equal(it.count, 3);
    assert_string_equal(it.records[0].text, "onetwo");
    assert_int_equal(it.records[0].size, 6);
    assert_string_equal(it.records[1].text, "");
    assert_int_equal(it.records[1].size, 0);
    assert_int_equal(it.records[2].size, 3);
    assert_memory_equal(it.records[2].text, "a\0\xff", 4);
    assert_int_equal(look_up_records(s, &it, names, "many.test", BIDE_RECORD_TXT), 0);
    assert_int_equal(it.count, BIDE_RECORDS_MAX);
    assert_int_equal(it.omitted, 2);
    bide_names_destroy(names);
    end_server(s);
}

static void an_address_has_names(void **state)
{
    static const char *const addresses[] = {"192.0.2.1", "::ffff:192.0.2.1", "2001:db8::7"};
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_names *names = make_names(s, 0, 0);
    bide_resolve_records_operation it;
    bide_address address;
    for (int i = 0; i < 3; i++) {
        bide_address_ip(&address, addresses[i], 80);
        assert_int_equal(world_wait(w, bide_resolve_reverse(&it, names, &address)), 0);
        assert_int_equal(it.count, 2);
        assert_string_equal(it.records[0].text, "host.test");
        assert_string_equal(it.records[1].text, "www");
        assert_string_equal(
            it.name, i < 2 ? "1.2.0.192.in-addr.arpa"
                           : "7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2."
                             "ip6.arpa");
    }
    bide_address_unix(&address, "/x");
    assert_int_equal(world_wait(w, bide_resolve_reverse(&it, names, &address)), -EINVAL);
    bide_names_destroy(names);
    end_server(s);
}

static void each_failure_of_records_has_its_error(void **state)
{
    static const struct {
        const char *name;
        bide_record_kind kind;
        int status;
    } cases[] = {
        {"none.test", BIDE_RECORD_SRV, -ENOENT},
        {"empty.test", BIDE_RECORD_SRV, -ENOENT},
        {"fails.test", BIDE_RECORD_SRV, -EREMOTEIO},
        {"space.test", BIDE_RECORD_SRV, -EREMOTEIO},
        {"loops.test", BIDE_RECORD_SRV, -EREMOTEIO},
        {"cut.test", BIDE_RECORD_SRV, -EREMOTEIO},
        {"beyond.test", BIDE_RECORD_TXT, -EREMOTEIO},
        {"texts.test", BIDE_RECORD_SRV, -ENOENT},
        {"", BIDE_RECORD_SRV, -EINVAL},
        {NULL, BIDE_RECORD_SRV, -EINVAL},
        {"a.test", (bide_record_kind)0, -EINVAL},
        {"a.test", BIDE_RECORD_PTR_, -EINVAL},
        {"a..test", BIDE_RECORD_SRV, -ENOENT},
    };
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_names *names = make_names(s, 0, 0), *hasty = make_names(s, 1, 1);
    bide_resolve_records_operation it;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(look_up_records(s, &it, names, cases[i].name, cases[i].kind),
                         cases[i].status);
        assert_int_equal(it.count, 0);
    }
    assert_int_equal(look_up_records(s, &it, hasty, "silent.test", BIDE_RECORD_SRV), -EAGAIN);
    assert_int_equal(
        bide_sync_wait(bide_resolve_records(&it, names, "servers.test", BIDE_RECORD_SRV)),
        -ENOTSUP);
    bide_names_destroy(names);
    bide_names_destroy(hasty);
    end_server(s);
}

static void records_are_kept(void **state)
{
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_names *names = make_keeping_names(s, 0);
    bide_resolve_records_operation it;
    unsigned queries[4];
    s->soa_life = s->soa_minimum = 60;
    stand_still(true);
    for (int i = 0; i < 4; i++) {
        unsigned before = s->queries;
        int first = look_up_records(s, &it, names, "servers.test", BIDE_RECORD_SRV);
        unsigned count = it.count;
        int second = look_up_records(s, &it, names, "servers.test", BIDE_RECORD_TXT);
        int third = look_up_records(s, &it, names, "absent.test", BIDE_RECORD_TXT);
        queries[i] = s->queries - before;
        assert_int_equal(first, 0);
        assert_int_equal(count, 3);
        assert_int_equal(second, -ENOENT); /* (without an SOA record: it is not kept) */
        assert_int_equal(third, -ENOENT);
        now.at.tv_sec += i == 1 ? 60 : 0;
    }
    stand_still(false);
    assert_int_equal(queries[0], 3);
    assert_int_equal(queries[1], 1);
    assert_int_equal(queries[2], 3);
    assert_int_equal(queries[3], 1);
    bide_names_destroy(names);
    end_server(s);
}

static void a_look_up_of_records_ends_early(void **state)
{
    world *w = world_of(state);
    server *s = begin_server(w);
    bide_names *names = make_names(s, 0, 0);
    for (int how = 0; how < CLOSE; how++) {
        struct runner runner;
        bide_resolve_records_operation it;
        int before = count_descriptors();
        begin_by(w, &runner, bide_resolve_records(&it, names, "silent.test", BIDE_RECORD_SRV), how);
        if (how != TIME_OUT)
            wait_for(s, &s->queries, s->queries + 1);
        end_by(w, &runner, NULL, how);
        assert_int_equal(count_descriptors(), before);
    }
    bide_names_destroy(names);
    end_server(s);
}

/* ---- Loops on several threads ---- */

enum { LOOPS = 3, LOOK_UPS = 60 };

struct asking {
    bide_task task;
    bide_names *names;
    unsigned first, number;
    char host[32];
    bide_resolve_operation resolve;
    int status;
    unsigned failures;
};

bide_coroutine(asking_body)
{
    bide_begin(asking_body, struct asking * self);
    for (self->number = 0; self->number < LOOK_UPS; self->number++) {
        snprintf(self->host, sizeof self->host, "any-%u.test", (self->first + self->number) % 7);
        bide_await_status(self->status, bide_resolve(&self->resolve, self->names, self->host, 80));
        if (self->status != 0 || self->resolve.count != 2)
            self->failures++;
        if (self->number % 16 == 15)
            bide_names_forget(self->names);
    }
    bide_end();
}

static void *ask_on_a_loop(void *asking)
{
    struct asking *it = asking;
    bide_loop_options options = {.kind = world_is_by_readiness() ? world_kind() : BIDE_LOOP_ANY};
    bide_loop *loop;
    it->failures = LOOK_UPS;
    if (bide_loop_create(&loop, &options) != 0)
        return NULL;
    it->failures = 0;
    int status = bide_loop_wait(loop, bide_task_init(&it->task, &asking_body));
    it->failures += status != 0;
    bide_loop_destroy(loop);
    return NULL;
}

/* A name server on a thread of its own. A message of one byte ends it. */
static void *serve_names(void *socket)
{
    const int *fd = socket;
    uint8_t reply[MESSAGE];
    for (;;) {
        query it;
        it.from.length = sizeof it.from.any;
        ssize_t size =
            recvfrom(*fd, it.bytes, sizeof it.bytes, 0, &it.from.any.generic, &it.from.length);
        if (size == 1)
            return NULL;
        if (size < 17)
            continue;
        it.size = (size_t)size;
        parse(&it);
        size_t length = make_reply(&it, reply, 0, false, 1);
        (void)!sendto(*fd, reply, length, 0, &it.from.any.generic, it.from.length);
    }
}

static void loops_on_several_threads_share_one(void **state)
{
    static struct asking asking[LOOPS];
    server s = {.world = NULL};
    pthread_t serving, threads[LOOPS];
    (void)state;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bide_address_ip(&s.address, "127.0.0.1", 0), 0);
    assert_int_equal(bind(fd, &s.address.any.generic, s.address.length), 0);
    assert_int_equal(getsockname(fd, &s.address.any.generic, &s.address.length), 0);
    bide_address_print(&s.address, s.text, sizeof s.text);
    bide_names *names = make_keeping_names(&s, 4);
    assert_int_equal(pthread_create(&serving, NULL, serve_names, &fd), 0);
    for (unsigned i = 0; i < LOOPS; i++) {
        asking[i] = (struct asking){.names = names, .first = i};
        assert_int_equal(pthread_create(&threads[i], NULL, ask_on_a_loop, &asking[i]), 0);
    }
    for (unsigned i = 0; i < LOOPS; i++)
        pthread_join(threads[i], NULL);
    sendto(fd, "x", 1, 0, &s.address.any.generic, s.address.length);
    pthread_join(serving, NULL);
    for (unsigned i = 0; i < LOOPS; i++)
        assert_int_equal(asking[i].failures, 0);
    bide_names_destroy(names);
    close(fd);
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

/* A kept answer has both families, and version 6 is tried first. */
static void a_kept_answer_is_connected_to(void **state)
{
    fixture *f = begin_fixture(world_of(state), true, true);
    bide_names *names = f->names;
    f->names = make_keeping_names(f->server, 0);
    bide_names_destroy(names);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(queries_of(f->server, &f->connect.resolve, f->names, "both.test", 0),
                         i == 0 ? 2 : 0);
        assert_int_equal(world_wait(f->world, connect_to(f, "both.test")), 0);
        check_connection(f, 1);
        bide_close(&f->connection);
        bide_close(&f->accepted);
    }
    assert_int_equal(f->server->queries, 2);
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
        world_test(a_channel_is_used_again),
        world_test(a_channel_of_a_cancelled_look_up_is_used_again),
        world_test(an_answer_is_kept_for_its_time_to_live),
        world_test(that_there_is_no_address_is_kept),
        world_test(failures_are_not_kept),
        world_test(a_limited_number_of_names_is_kept),
        world_test(each_name_of_many_has_its_own_answer),
        world_test(a_kept_answer_does_not_suspend),
        world_test(a_replaced_configuration_is_read),
        world_test(an_answer_is_not_kept_in_a_child),
        world_test(a_cancelled_look_up_is_not_kept),
        world_test(an_answer_in_flight_is_not_kept_when_all_are_forgotten),
        world_test(a_kept_answer_is_connected_to),
        world_test(servers_are_sorted_by_priority),
        world_test(texts_may_have_any_bytes),
        world_test(an_address_has_names),
        world_test(each_failure_of_records_has_its_error),
        world_test(records_are_kept),
        world_test(a_look_up_of_records_ends_early),
        cmocka_unit_test(loops_on_several_threads_share_one),
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
