/* TLS over pipes in memory and over sockets: what goes through, and how it ends. */
#include "tls_pair.h"

static void fill(char *data, size_t size, uint64_t seed)
{
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = testing_random(&seed);
        memcpy(data + i, &word, size - i < 8 ? size - i : 8);
    }
}

static void for_each_below(void **state,
                           void (*run)(pair *p, bide_tls_config *client, bide_tls_config *server))
{
    static pair p;
    world *world = world_of(state);
    bide_tls_config *client = usual_client();
    bide_tls_config *server = usual_server();
    for (below kind = 0; kind < BELOWS; kind++) {
        pair_open(&p, world, kind);
        pair_greet_well(&p, client, server, "server.test");
        run(&p, client, server);
        pair_close(&p);
    }
    bide_tls_config_release(client);
    bide_tls_config_release(server);
}

static void talk(pair *p, bide_tls_config *client, bide_tls_config *server)
{
    static char data[300000];
    (void)client;
    (void)server;
    fill(data, sizeof data, 1);
    pair_send(p, &p->client, &p->server, "hello", 5);
    pair_send(p, &p->server, &p->client, "good day", 8);
    for (size_t size = 1; size < sizeof data; size = size * 3 + 1) {
        pair_send(p, &p->client, &p->server, data, size);
        pair_send(p, &p->server, &p->client, data, size);
    }
    assert_string_equal(bide_tls_version(&p->client.tls), "TLSv1.3");
    assert_string_equal(bide_tls_server_name(&p->server.tls), "server.test");
    pair_end(p, &p->client, &p->server);
    pair_end(p, &p->server, &p->client);
}

static void what_is_written_is_read(void **state)
{
    for_each_below(state, talk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(what_is_written_is_read),
    };
    return cmocka_run_group_tests(tests, make_everyone, free_everyone);
}
