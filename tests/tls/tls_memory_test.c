/*
 * The memory of TLS: the size of an idle connection, that nothing leaks, and what happens without memory.
 * All of it comes from OpenSSL's allocator, which the test replaces.
 */
#include "tls_pair.h"

#include "../../src/tls/internal.h"

#include <malloc.h>

static pair p;

/* ---- The allocator ---- */

/* Bytes and blocks in use; the number of the library's own allocations until one fails. */
static size_t bytes, blocks; /* (each block includes the word before it) */
static unsigned own, failing;
static bool next_fails; /* whichever file allocates */

/* Only allocations by the library's own files fail; OpenSSL's own robustness is not tested. */
static bool has_to_fail(const char *file)
{
    if (next_fails) {
        next_fails = false;
        return true;
    }
    if (file == NULL || strstr(file, "src/tls/") == NULL)
        return false;
    return ++own == failing;
}

static void *counting_malloc(size_t size, const char *file, int line)
{
    (void)line;
    void *block = has_to_fail(file) ? NULL : malloc(size);
    if (block != NULL) {
        __atomic_add_fetch(&bytes, malloc_usable_size(block) + sizeof(size_t), __ATOMIC_RELAXED);
        __atomic_add_fetch(&blocks, 1, __ATOMIC_RELAXED);
    }
    return block;
}

static void counting_free(void *block, const char *file, int line)
{
    (void)file;
    (void)line;
    if (block == NULL)
        return;
    __atomic_sub_fetch(&bytes, malloc_usable_size(block) + sizeof(size_t), __ATOMIC_RELAXED);
    __atomic_sub_fetch(&blocks, 1, __ATOMIC_RELAXED);
    free(block);
}

static void *counting_realloc(void *block, size_t size, const char *file, int line)
{
    void *other = counting_malloc(size, file, line);
    if (other != NULL && block != NULL) {
        size_t before = malloc_usable_size(block);
        memcpy(other, block, before < size ? before : size);
        counting_free(block, file, line);
    }
    return other;
}

/* ---- Sizes ---- */

enum { CROWD = 50, MOST = 16 * 1024 };

/* The memory of a server's connection that waits for its next request: it is freed on close. */
static size_t measure(pair *one, world *world)
{
    static char byte;
    begin(world, &one->server.reading,
          bide_stream_read(&one->server.read, one->server.stream, &byte, 1));
    turn(world);
    size_t before = __atomic_load_n(&bytes, __ATOMIC_RELAXED);
    call_inside(world, close_side, &one->server);
    assert_int_equal(end(world, &one->server.reading), -EPIPE);
    return before - __atomic_load_n(&bytes, __ATOMIC_RELAXED) + sizeof one->server.tls;
}

static void an_idle_connection_of_a_server_has_less_than_16_kilobytes(void **state)
{
    static const char *const protocols[] = {"http/1.1", NULL};
    static pair crowd[CROWD];
    static char data[20000];
    world *world = world_of(state);
    bide_tls_certificate room;
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        size_t sum = 0, max = 0;
        bide_tls_options options = options_of(NULL, &room);
        options.protocols = protocols;
        options.keeps_no_sessions = true; /* full handshakes */
        bide_tls_config *client = client_with(&options);
        options = options_of(&server_proof, &room);
        options.protocols = protocols;
        bide_tls_config *server = server_with(&options);
        assert_int_equal(SSL_CTX_set_max_proto_version(client->context, version), 1);
        for (int i = 0; i < CROWD; i++) {
            pair_open(&crowd[i], world, PIPES);
            pair_greet_well(&crowd[i], client, server, "server.test");
            if (i % 3 == 0)
                continue; /* no request yet */
            pair_send(&crowd[i], &crowd[i].client, &crowd[i].server, "GET", 3);
            pair_send(&crowd[i], &crowd[i].server, &crowd[i].client, data, sizeof data);
            pair_send(&crowd[i], &crowd[i].client, &crowd[i].server, data, sizeof data);
        }
        for (int i = 0; i < CROWD; i++) {
            size_t its = measure(&crowd[i], world);
            sum += its;
            max = its > max ? its : max;
        }
        printf("# %s: %zu bytes for an idle connection, at most %zu\n",
               version == TLS1_2_VERSION ? "TLS 1.2" : "TLS 1.3", sum / CROWD, max);
        assert_in_range(max, 1000, MOST);
        for (int i = 0; i < CROWD; i++)
            pair_close(&crowd[i]);
        bide_tls_config_release(client);
        bide_tls_config_release(server);
    }
}

/* ---- Failing allocations ---- */

struct result {
    int client_config, server_config, client, server, sent, received;
};

/* It makes what all connections share. (So this is the first test.) */
static void the_first_connection_may_lack_memory_and_the_next_one_has_it(void **state)
{
    world *world = world_of(state);
    if (world_is("pool")) /* there another thread's allocation may be the next one */
        skip();
    bide_tls_certificate room;
    bide_tls_options options = options_of(NULL, &room);
    bide_tls_config *client = client_with(&options);
    options = options_of(&server_proof, &room);
    bide_tls_config *server = server_with(&options);
    int status = 0, other = 0;
    pair_open(&p, world, PIPES);
    next_fails = true;
    pair_greet(&p, client, server, "server.test", &status, &other);
    assert_false(next_fails);
    assert_true(status == -ENOMEM || other == -ENOMEM);
    pair_close(&p);
    pair_open(&p, world, PIPES);
    pair_greet_well(&p, client, server, "server.test");
    pair_close(&p);
    bide_tls_config_release(client);
    bide_tls_config_release(server);
}

/* Runs everything, as far as it gets. */
static struct result do_everything(world *world)
{
    static const char *const protocols[] = {"h2", "http/1.1", NULL};
    static char data[200000], got[200000];
    struct result result = {0};
    bide_tls_certificate room, client_room;
    bide_tls_config *client = NULL, *server = NULL;
    bide_tls_options client_options = options_of(&client_proof, &client_room);
    bide_tls_options options = options_of(&server_proof, &room);
    client_options.protocols = protocols;
    options.protocols = protocols;
    options.clients = BIDE_TLS_CLIENTS_OPTIONAL;
    result.client_config = bide_tls_client_create(&client, &client_options, NULL);
    result.server_config = bide_tls_server_create(&server, &options, NULL);
    if (result.client_config == 0 && result.server_config == 0) {
        pair_open(&p, world, PIPES);
        pair_greet(&p, client, server, "server.test", &result.client, &result.server);
        if (result.client == 0 && result.server == 0) {
            begin(world, &p.server.writing,
                  bide_stream_write(&p.server.write, p.server.stream, data, sizeof data));
            for (size_t count = 0; result.received == 0 && count != sizeof data;) {
                result.received =
                    world_wait(world, bide_stream_read(&p.client.read, p.client.stream, got + count,
                                                       sizeof got - count));
                count += bide_stream_count(&p.client.read, p.client.stream);
            }
            call_inside(world, close_side, &p.client);
            result.sent = end(world, &p.server.writing);
        }
        pair_close(&p);
    }
    bide_tls_config_release(client);
    bide_tls_config_release(server);
    assert_int_equal(ERR_peek_error(), 0);
    return result;
}

/* The failure is reported, or worked around. */
static bool is_out_of_memory(const struct result *result)
{
    return result->client_config == -ENOMEM || result->server_config == -ENOMEM ||
           result->client == -ENOMEM || result->server == -ENOMEM || result->sent == -ENOMEM ||
           result->received == -ENOMEM;
}

static void each_allocation_may_fail_and_nothing_is_left(void **state)
{
    static const struct result good;
    unsigned told = 0;
    world *world = world_of(state);
    do_everything(world); /* (allocations that are made only once) */
    do_everything(world);
    size_t blocks_before = blocks;
    for (unsigned nth = 1;; nth++) {
        own = 0;
        failing = nth;
        struct result result = do_everything(world);
        bool has_failed = own >= failing;
        failing = 0;
        told += is_out_of_memory(&result);
        if (!is_out_of_memory(&result))
            assert_memory_equal(&result, &good, sizeof good);
        assert_int_equal(blocks, blocks_before);
        if (!has_failed) {
            printf("# %u allocations, %u of which must be reported\n", nth - 1, told);
            assert_in_range(told, 15, nth - 1);
            break;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(the_first_connection_may_lack_memory_and_the_next_one_has_it),
        world_test(an_idle_connection_of_a_server_has_less_than_16_kilobytes),
        world_test(each_allocation_may_fail_and_nothing_is_left),
    };
    if (CRYPTO_set_mem_functions(counting_malloc, counting_realloc, counting_free) != 1)
        return 1;
    return cmocka_run_group_tests(tests, make_everyone, free_everyone);
}
