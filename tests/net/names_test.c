/*
 * Name resolution: the results of the system, how a lookup ends early while its call continues, and
 * connecting to the first of several addresses that answers. The test replaces the system's getaddrinfo.
 */
#define _GNU_SOURCE
#include "../../src/net/dns_message.h"
#include "../io/runner.h"

#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- The system's look-up ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_held; /* calls block until it is false */
    unsigned begun, ended;
    int error; /* the result of calls, and errno if it is EAI_SYSTEM */
    const char *addresses[20];
} resolver = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static struct addrinfo *make(const char *text)
{
    struct addrinfo *it = calloc(1, sizeof *it);
    bide_address address;
    assert_non_null(it);
    assert_int_equal(bide_address_ip(&address, text, 0), 0);
    it->ai_family = address.any.generic.sa_family;
    it->ai_addrlen = address.length;
    it->ai_addr = malloc(address.length);
    assert_non_null(it->ai_addr);
    memcpy(it->ai_addr, &address.any, address.length);
    return it;
}

int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *wanted,
                       struct addrinfo **found);
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *wanted,
                       struct addrinfo **found)
{
    struct addrinfo **link = found;
    (void)service;
    (void)wanted;
    pthread_mutex_lock(&resolver.lock);
    resolver.begun++;
    pthread_cond_broadcast(&resolver.changed);
    while (resolver.is_held)
        pthread_cond_wait(&resolver.changed, &resolver.lock);
    int error = strcmp(host, "nowhere.test") == 0 ? EAI_NONAME : resolver.error;
    if (error == 0) {
        for (int i = 0; resolver.addresses[i] != NULL; i++, link = &(*link)->ai_next)
            *link = make(resolver.addresses[i]);
    }
    resolver.ended++;
    pthread_cond_broadcast(&resolver.changed);
    pthread_mutex_unlock(&resolver.lock);
    errno = ENFILE;
    return error;
}

void __wrap_freeaddrinfo(struct addrinfo *found);
void __wrap_freeaddrinfo(struct addrinfo *found)
{
    while (found != NULL) {
        struct addrinfo *next = found->ai_next;
        free(found->ai_addr);
        free(found);
        found = next;
    }
}

int __wrap_getnameinfo(const struct sockaddr *address, socklen_t length, char *host,
                       socklen_t host_size, char *service, socklen_t service_size, int flags);
int __wrap_getnameinfo(const struct sockaddr *address, socklen_t length, char *host,
                       socklen_t host_size, char *service, socklen_t service_size, int flags)
{
    (void)service;
    (void)service_size;
    pthread_mutex_lock(&resolver.lock);
    resolver.begun++;
    pthread_cond_broadcast(&resolver.changed);
    while (resolver.is_held)
        pthread_cond_wait(&resolver.changed, &resolver.lock);
    int error = (flags & NI_NAMEREQD) == 0 ? EAI_BADFLAGS : resolver.error;
    if (error == 0)
        snprintf(host, host_size, "%s.%u.test", address->sa_family == AF_INET ? "four" : "six",
                 (unsigned)length);
    resolver.ended++;
    pthread_cond_broadcast(&resolver.changed);
    pthread_mutex_unlock(&resolver.lock);
    errno = ENFILE;
    return error;
}

static void hold(bool held)
{
    pthread_mutex_lock(&resolver.lock);
    resolver.is_held = held;
    pthread_cond_broadcast(&resolver.changed);
    pthread_mutex_unlock(&resolver.lock);
}

static void wait_for_calls(const unsigned *count, unsigned number)
{
    pthread_mutex_lock(&resolver.lock);
    while (*count < number)
        pthread_cond_wait(&resolver.changed, &resolver.lock);
    pthread_mutex_unlock(&resolver.lock);
}

static void answer(int error, const char *const *addresses)
{
    int count = 0;
    resolver.begun = resolver.ended = 0;
    resolver.is_held = false;
    resolver.error = error;
    for (; addresses != NULL && addresses[count] != NULL; count++)
        resolver.addresses[count] = addresses[count];
    resolver.addresses[count] = NULL;
}

static const char *const both[] = {"::1", "127.0.0.1", NULL};

static bide_names *make_names(unsigned threads)
{
    bide_names *names;
    bide_names_options options = {.threads = threads};
    assert_int_equal(bide_names_create(&names, &options), 0);
    return names;
}

/* ---- Look-ups ---- */

static void a_name_has_its_addresses(void **state)
{
    world *w = world_of(state);
    bide_names *names = make_names(0);
    bide_resolve_operation it;
    bide_address expected;
    static const char *const twice[] = {"::1", "127.0.0.1", "::1", "127.0.0.1", NULL};
    answer(0, twice);
    assert_int_equal(world_wait(w, bide_resolve(&it, names, "host.test", 80)), 0);
    assert_int_equal(it.count, 2);
    for (unsigned i = 0; i < 2; i++) {
        bide_address_ip(&expected, twice[i], 80);
        assert_int_equal(it.addresses[i].length, expected.length);
        assert_memory_equal(&it.addresses[i].any, &expected.any, expected.length);
    }
    bide_names_destroy(names);
}

static void digits_need_no_look_up(void **state)
{
    world *w = world_of(state);
    bide_names *names = make_names(1);
    bide_resolve_operation it;
    answer(EAI_FAIL, NULL);
    assert_int_equal(world_wait(w, bide_resolve(&it, names, "127.0.0.1", 80)), 0);
    assert_int_equal(it.count, 1);
    assert_int_equal(world_wait(w, bide_resolve(&it, names, "[::1]", 80)), 0);
    assert_int_equal(it.addresses[0].any.generic.sa_family, AF_INET6);
    assert_int_equal(resolver.begun, 0);
    bide_names_destroy(names);
}

static void each_failure_has_its_error(void **state)
{
    static const struct {
        int error, status;
    } cases[] = {{EAI_NONAME, -ENOENT}, {EAI_AGAIN, -EAGAIN},   {EAI_FAIL, -EREMOTEIO},
                 {EAI_MEMORY, -ENOMEM}, {EAI_SYSTEM, -ENFILE}, {EAI_FAMILY, -EINVAL},
                 {0, -ENOENT /* no address */}};
    world *w = world_of(state);
    bide_names *names = make_names(1);
    bide_resolve_operation it;
    char longest[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        answer(cases[i].error, NULL);
        assert_int_equal(world_wait(w, bide_resolve(&it, names, "host.test", 80)),
                         cases[i].status);
        assert_int_equal(it.count, 0);
    }
    memset(longest, 'a', 254);
    longest[254] = '\0';
    assert_int_equal(world_wait(w, bide_resolve(&it, names, longest, 80)), -EINVAL);
    assert_int_equal(world_wait(w, bide_resolve(&it, names, "", 80)), -EINVAL);
    assert_int_equal(world_wait(w, bide_resolve(&it, names, NULL, 80)), -EINVAL);
    longest[253] = '\0';
    answer(0, both);
    assert_int_equal(world_wait(w, bide_resolve(&it, names, longest, 80)), 0);
    bide_names_destroy(names);
}

static void no_more_addresses_than_there_is_room_for(void **state)
{
    static const char *const many[] = {
        "10.0.0.1",  "10.0.0.2",  "10.0.0.3",  "10.0.0.4",  "10.0.0.5",  "10.0.0.6", "10.0.0.7",
        "10.0.0.8",  "10.0.0.9",  "10.0.0.10", "10.0.0.11", "10.0.0.12", "10.0.0.13",
        "10.0.0.14", "10.0.0.15", "10.0.0.16", "10.0.0.17", "10.0.0.18", NULL};
    world *w = world_of(state);
    bide_names *names = make_names(1);
    bide_resolve_operation it;
    answer(0, many);
    assert_int_equal(world_wait(w, bide_resolve(&it, names, "host.test", 80)), 0);
    assert_int_equal(it.count, BIDE_RESOLVE_MAX);
    bide_names_destroy(names);
}

/*
 * A lookup ends while its call is in progress, or while the call waits for a thread. The call completes
 * without a waiter.
 */
static void a_look_up_ends_early(void **state)
{
    world *w = world_of(state);
    for (int how = 0; how < CLOSE; how++) {
        for (int is_queued = 0; is_queued < 2; is_queued++) {
            bide_names *names = make_names(1);
            struct runner first, second;
            bide_resolve_operation one, other;
            answer(0, both);
            hold(true);
            begin_by(w, &first, bide_resolve(&one, names, "host.test", 80), how);
            turn(w);
            wait_for_calls(&resolver.begun, 1);
            if (is_queued) {
                begin_by(w, &second, bide_resolve(&other, names, "other.test", 80), how);
                turn(w);
                end_by(w, &second, NULL, how);
            }
            turn(w);
            end_by(w, &first, NULL, how);
            hold(false);
            bide_names_destroy(names);
            assert_int_equal(resolver.ended, resolver.begun);
        }
    }
}

static void files_do_not_wait_for_names(void **state)
{
    world *w = world_of(state);
    bide_names *names = make_names(2);
    struct runner runners[2];
    bide_resolve_operation look_ups[2];
    bide_file_operation open;
    bide_descriptor file;
    answer(0, both);
    hold(true);
    for (int i = 0; i < 2; i++)
        begin(w, &runners[i], bide_resolve(&look_ups[i], names, "host.test", 80));
    assert_int_equal(world_wait(w, bide_open(&open, &file, "/dev/null", 0, 0)), 0);
    bide_close(&file);
    hold(false);
    for (int i = 0; i < 2; i++)
        assert_int_equal(end(w, &runners[i]), 0);
    bide_names_destroy(names);
}

/* ---- Connecting ---- */

typedef struct fixture {
    world *world;
    bide_descriptor listeners[2]; /* of both families */
    bide_descriptor full;         /* does not answer: its backlog is full */
    int fillers[8];
    bide_address answers[2], refuses, silent;
    bide_descriptor connection, accepted;
    bide_io_operation operation;
    bide_connect_any_operation connect;
} fixture;

static void listen_on(fixture *f, bide_descriptor *listener, const char *ip, int backlog,
                      bide_address *address)
{
    assert_int_equal(bide_address_ip(address, ip, 0), 0);
    assert_int_equal(
        world_wait(f->world, bide_listen(&f->operation, listener, address, backlog)), 0);
    assert_int_equal(bide_local_address(listener, address), 0);
}

static fixture *begin_fixture(world *world)
{
    fixture *f = calloc(1, sizeof *f);
    bide_descriptor gone;
    assert_non_null(f);
    f->world = world;
    listen_on(f, &f->listeners[0], "127.0.0.1", 16, &f->answers[0]);
    bide_descriptor_init_closed(&f->listeners[1]);
    bide_address_ip(&f->answers[1], "::1", 0);
    if (world_wait(world, bide_listen(&f->operation, &f->listeners[1], &f->answers[1], 16)) == 0)
        assert_int_equal(bide_local_address(&f->listeners[1], &f->answers[1]), 0);
    listen_on(f, &gone, "127.0.0.1", 1, &f->refuses);
    bide_close(&gone);
    listen_on(f, &f->full, "127.0.0.1", 0, &f->silent);
    for (int i = 0; i < 8; i++) {
        f->fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)!connect(f->fillers[i], &f->silent.any.generic, f->silent.length);
    }
    bide_descriptor_init_closed(&f->accepted);
    return f;
}

static void end_fixture(fixture *f)
{
    for (int i = 0; i < 2; i++)
        bide_close(&f->listeners[i]);
    bide_close(&f->full);
    bide_close(&f->connection);
    bide_close(&f->accepted);
    for (int i = 0; i < 8; i++)
        close(f->fillers[i]);
    free(f);
}

/* It is connected, and works at its new place. */
static void check_connection(fixture *f, int listener)
{
    char byte = 0;
    assert_int_equal(
        world_wait(f->world, bide_accept(&f->operation, &f->listeners[listener], &f->accepted, NULL)),
        0);
    assert_int_equal(world_wait(f->world, bide_send(&f->operation, &f->connection, "x", 1)), 0);
    assert_int_equal(world_wait(f->world, bide_recv(&f->operation, &f->accepted, &byte, 1)), 0);
    assert_int_equal(byte, 'x');
    assert_int_equal(world_wait(f->world, bide_send(&f->operation, &f->accepted, "y", 1)), 0);
    assert_int_equal(world_wait(f->world, bide_recv(&f->operation, &f->connection, &byte, 1)), 0);
    assert_int_equal(byte, 'y');
}

enum { SHORT = 2000000 }; /* the timeout of an attempt, in nanoseconds */

static void the_first_address_that_answers_is_used(void **state)
{
    enum { ANSWERS, REFUSES, SILENT, KINDS };
    for (int number = 0; number < KINDS * KINDS * KINDS; number++) {
        fixture *f = begin_fixture(world_of(state));
        bide_address addresses[3];
        int kinds[3] = {number % KINDS, number / KINDS % KINDS, number / KINDS / KINDS};
        int answers = -1;
        for (int i = 0; i < 3; i++) {
            addresses[i] = kinds[i] == ANSWERS   ? f->answers[0]
                           : kinds[i] == REFUSES ? f->refuses
                                                 : f->silent;
            if (kinds[i] == ANSWERS && answers < 0)
                answers = i;
        }
        struct runner runner;
        bool is_silent = kinds[0] == SILENT || kinds[1] == SILENT || kinds[2] == SILENT;
        begin(f->world, &runner,
              bide_connect_any(&f->connect, &f->connection, addresses, 3, is_silent ? SHORT : 0));
        if (answers < 0 && is_silent) { /* only a stop request ends it */
            turn(f->world);
            call_inside(f->world, stop, &runner);
            assert_int_equal(end(f->world, &runner), -ECANCELED);
            assert_false(bide_descriptor_is_open(&f->connection));
        } else if (answers < 0) {
            assert_int_equal(end(f->world, &runner), -ECONNREFUSED);
            assert_false(bide_descriptor_is_open(&f->connection));
        } else {
            assert_int_equal(end(f->world, &runner), 0);
            assert_int_equal(kinds[f->connect.connected], ANSWERS);
            if (!is_silent) /* (next to a silent one, the others start soon after each other) */
                assert_int_equal(f->connect.connected, answers);
            check_connection(f, 0);
        }
        end_fixture(f);
    }
}

static void families_are_tried_in_turn(void **state)
{
    fixture *f = begin_fixture(world_of(state));
    if (!bide_descriptor_is_open(&f->listeners[1])) {
        end_fixture(f);
        skip();
    }
    /* three refusing addresses of one family precede one of the other */
    bide_address addresses[4] = {f->refuses, f->refuses, f->refuses, f->answers[1]};
    assert_int_equal(world_wait(f->world, bide_connect_any(&f->connect, &f->connection, addresses,
                                                           4, 0)),
                     0);
    assert_int_equal(f->connect.connected, 3);
    assert_int_equal(f->connect.begun, 2);
    check_connection(f, 1);
    end_fixture(f);
}

static void connecting_ends_early(void **state)
{
    for (int how = 0; how < CLOSE; how++) {
        for (unsigned count = 1; count <= 3; count++) {
            fixture *f = begin_fixture(world_of(state));
            bide_address addresses[3] = {f->silent, f->silent, f->silent};
            struct runner runner;
            int before = count_descriptors();
            begin_by(f->world, &runner,
                     bide_connect_any(&f->connect, &f->connection, addresses, count, 1), how);
            turn(f->world);
            end_by(f->world, &runner, NULL, how);
            turn(f->world);
            assert_int_equal(count_descriptors(), before);
            assert_false(bide_descriptor_is_open(&f->connection));
            end_fixture(f);
        }
    }
}

static void no_address_is_an_error(void **state)
{
    fixture *f = begin_fixture(world_of(state));
    assert_int_equal(
        world_wait(f->world, bide_connect_any(&f->connect, &f->connection, f->answers, 0, 0)),
        -EINVAL);
    end_fixture(f);
}

static void a_name_is_connected_to(void **state)
{
    fixture *f = begin_fixture(world_of(state));
    bide_names *names = make_names(1);
    bide_connect_by_name_operation it;
    uint16_t port = bide_address_port(&f->answers[0]);
    answer(0, both); /* almost certainly nobody listens there over IPv6 */
    assert_int_equal(
        world_wait(f->world, bide_connect_by_name(&it, &f->connection, names, "host.test", port)),
        0);
    bide_close(&f->connection);
    assert_int_equal(world_wait(f->world, bide_connect_by_name(&it, &f->connection, names,
                                                               "127.0.0.1", port)),
                     0);
    assert_int_equal(world_wait(f->world, bide_accept(&f->operation, &f->listeners[0],
                                                      &f->accepted, NULL)),
                     0);
    bide_close(&f->accepted);
    check_connection(f, 0);
    bide_close(&f->connection);
    assert_int_equal(world_wait(f->world, bide_connect_by_name(&it, &f->connection, names,
                                                               "nowhere.test", port)),
                     -ENOENT);
    assert_false(bide_descriptor_is_open(&f->connection));
    bide_names_destroy(names);
    end_fixture(f);
}

static void connecting_by_name_ends_early(void **state)
{
    for (int how = 0; how < CLOSE; how++) {
        fixture *f = begin_fixture(world_of(state));
        bide_names *names = make_names(1);
        bide_connect_by_name_operation it;
        struct runner runner;
        answer(0, both);
        hold(true);
        begin_by(f->world, &runner,
                 bide_connect_by_name(&it, &f->connection, names, "host.test", 80), how);
        turn(f->world);
        end_by(f->world, &runner, NULL, how);
        hold(false);
        bide_names_destroy(names);
        end_fixture(f);
    }
}

/* ---- Names of addresses, and records ---- */

static void an_address_has_a_name(void **state)
{
    static const int errors[] = {EAI_NONAME, EAI_AGAIN,  EAI_FAIL,
                                 EAI_MEMORY, EAI_SYSTEM, EAI_OVERFLOW};
    static const int statuses[] = {-ENOENT, -EAGAIN, -EREMOTEIO, -ENOMEM, -ENFILE, -EREMOTEIO};
    static const char *const names_of[] = {"four.16.test", "six.28.test"};
    world *w = world_of(state);
    bide_names *names = make_names(1);
    bide_resolve_records_operation it;
    bide_address address;
    for (int i = 0; i < 2; i++) {
        bide_address_ip(&address, both[1 - i], 80);
        answer(0, NULL);
        assert_int_equal(world_wait(w, bide_resolve_reverse(&it, names, &address)), 0);
        assert_int_equal(it.count, 1);
        assert_string_equal(it.records[0].text, names_of[i]);
        assert_int_equal(it.records[0].size, strlen(names_of[i]));
    }
    for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++) {
        answer(errors[i], NULL);
        assert_int_equal(world_wait(w, bide_resolve_reverse(&it, names, &address)), statuses[i]);
        assert_int_equal(it.count, 0);
    }
    bide_address_unix(&address, "/x");
    assert_int_equal(world_wait(w, bide_resolve_reverse(&it, names, &address)), -EINVAL);
    assert_int_equal(world_wait(w, bide_resolve_records(&it, names, "a.test", BIDE_RECORD_SRV)),
                     -ENOTSUP);
    bide_names_destroy(names);
}

static void a_look_up_of_a_name_ends_early(void **state)
{
    world *w = world_of(state);
    bide_address address;
    bide_address_ip(&address, "::1", 80);
    for (int how = 0; how < CLOSE; how++) {
        bide_names *names = make_names(1);
        bide_resolve_records_operation it;
        struct runner runner;
        answer(0, NULL);
        hold(true);
        begin_by(w, &runner, bide_resolve_reverse(&it, names, &address), how);
        turn(w);
        end_by(w, &runner, NULL, how);
        hold(false);
        bide_names_destroy(names);
    }
}

/* ---- Messages of name servers ---- */

/* A message with a question, an SRV record, a TXT record, a PTR record and an SOA record. */
static const uint8_t
    whole_message[] = {0x12, 0x34, 0x81, 0x80, 0,   1,   0, 3,   0,   1,    0,  0, /* the header */
                       4,    't',  'e',  's',  't', 0,   0, 33,  0,   1, /* the question, at 12 */
                       0xc0, 12,   0,    33,   0,   1,   0, 0,   0,   60,   0,  11,
                       0,    1,    0,    2,    0,   3,   2, 'a', 'b', 0xc0, 12, /* SRV */
                       0xc0, 12,   0,    16,   0,   1,   0, 0,   0,   50,   0,  6,
                       2,    'x',  'y',  2,    'z', '!', /* TXT */
                       0xc0, 12,   0,    12,   0,   1,   0, 0,   0,   40,   0,  4,
                       1,    'p',  0xc0, 40, /* PTR; at 40 is "ab.test" */
                       0xc0, 12,   0,    6,    0,   1,   0, 0,   0,   30,   0,  24,
                       0xc0, 12,   0xc0, 12, /* SOA */
                       0,    0,    0,    1,    0,   0,   0, 2,   0,   0,    0,  3,
                       0,    0,    0,    4,    0,   0,   0, 20};

/* Reads it as records of a kind, from memory of exactly its size. */
static int read_message(bide_resolve_records_operation *it, const uint8_t *message, size_t size,
                        bide_record_kind kind, uint32_t *life)
{
    uint8_t *exact = malloc(size != 0 ? size : 1);
    uint32_t absence;
    assert_non_null(exact);
    memcpy(exact, message, size);
    it->kind = kind;
    it->count = it->omitted = 0;
    it->used = 0;
    int count = bide_dns_records_(it, exact, size, life);
    if (bide_dns_absence_(exact, size, &absence))
        assert_in_range(absence, 0, INT32_MAX);
    free(exact);
    return count;
}

static void a_message_has_records(void **state)
{
    static bide_resolve_records_operation it;
    uint32_t life, absence;
    (void)state;
    assert_int_equal(read_message(&it, whole_message, sizeof whole_message, BIDE_RECORD_SRV, &life),
                     1);
    assert_string_equal(it.records[0].text, "ab.test");
    assert_int_equal(it.records[0].priority, 1);
    assert_int_equal(life, 40);
    assert_int_equal(read_message(&it, whole_message, sizeof whole_message, BIDE_RECORD_TXT, &life),
                     1);
    assert_string_equal(it.records[0].text, "xyz!");
    assert_int_equal(
        read_message(&it, whole_message, sizeof whole_message, BIDE_RECORD_PTR_, &life), 1);
    assert_string_equal(it.records[0].text, "p.ab.test");
    assert_true(bide_dns_absence_(whole_message, sizeof whole_message, &absence));
    assert_int_equal(absence, 20);
}

/* Whatever the bytes are, nothing outside of the message is read, and each text is within its memory. */
static void a_message_may_have_any_bytes(void **state)
{
    static bide_resolve_records_operation it;
    uint64_t random = testing_seed() | 1;
    (void)state;
    for (uint32_t round = 0; round < rounds_of(20000); round++) {
        uint8_t message[sizeof whole_message];
        uint32_t life;
        memcpy(message, whole_message, sizeof message);
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        size_t size = (random & 7) != 0 ? sizeof message : (size_t)(random >> 8) % sizeof message;
        for (unsigned i = 0; i < (random >> 32 & 3); i++)
            message[(random >> (8 * i)) % sizeof message] = (uint8_t)(random >> (40 + 4 * i));
        bide_record_kind kind = (bide_record_kind)(BIDE_RECORD_SRV + round % 3);
        int count = read_message(&it, message, size, kind, &life);
        assert_true(count == -EREMOTEIO || count >= 0);
        assert_in_range(it.count, 0, BIDE_RECORDS_MAX);
        for (unsigned i = 0; i < it.count; i++) {
            assert_in_range(it.records[i].text - it.text, 0, BIDE_RECORDS_TEXT - 1);
            assert_int_equal(it.records[i].text[it.records[i].size], '\0');
        }
    }
}

#if !HAS_CARES
static void c_ares_is_said_to_be_missing(void **state)
{
    bide_names *names;
    bide_names_options options = {.kind = BIDE_NAMES_CARES};
    (void)state;
    assert_int_equal(bide_names_create(&names, &options), -ENOTSUP);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(a_name_has_its_addresses),
        world_test(digits_need_no_look_up),
        world_test(each_failure_has_its_error),
        world_test(no_more_addresses_than_there_is_room_for),
        world_test(a_look_up_ends_early),
        world_test(files_do_not_wait_for_names),
        world_test(the_first_address_that_answers_is_used),
        world_test(families_are_tried_in_turn),
        world_test(connecting_ends_early),
        world_test(no_address_is_an_error),
        world_test(a_name_is_connected_to),
        world_test(connecting_by_name_ends_early),
        world_test(an_address_has_a_name),
        world_test(a_look_up_of_a_name_ends_early),
        cmocka_unit_test(a_message_has_records),
        cmocka_unit_test(a_message_may_have_any_bytes),
#if !HAS_CARES
        cmocka_unit_test(c_ares_is_said_to_be_missing),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
