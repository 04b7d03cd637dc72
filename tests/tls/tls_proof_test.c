/*
 * Authentication over TLS: certificates and names, protocols, resumed sessions, and configs that are
 * replaced. Each case runs over pipes in memory and over sockets, with TLS 1.2 and 1.3.
 */
#include "tls_pair.h"

#include "../../src/tls/internal.h"

static pair p;

/* The environment of a case. */
typedef struct way {
    below below;
    int version;
} way;

static const way ways[] = {{PIPES, TLS1_3_VERSION},
                           {PIPES, TLS1_2_VERSION},
                           {SMALL_PIPES, TLS1_3_VERSION},
                           {SOCKETS, TLS1_3_VERSION},
                           {SOCKETS, TLS1_2_VERSION}};

#define for_each_way(way) \
    for (const way *way = ways; way != ways + sizeof ways / sizeof *ways; way++)

static void limit(bide_tls_config *config, int version)
{
    assert_int_equal(SSL_CTX_set_max_proto_version(config->context, version), 1);
}

/*
 * Both handshakes end with these statuses, and the client's or the server's reason contains the
 * text.
 */
static void expect(world *world, const way *way, bide_tls_config *client, bide_tls_config *server,
                   const char *name, int client_expected, int server_expected, const char *reason)
{
    int client_status, server_status;
    limit(client, way->version);
    pair_open(&p, world, way->below);
    pair_greet(&p, client, server, name, &client_status, &server_status);
    if (client_status == 0 && client_expected == -EREMOTEIO && way->version == TLS1_3_VERSION) {
        /* the client has finished its handshake by then, and is rejected later */
        char byte;
        client_status =
            world_wait(world, bide_stream_read(&p.client.read, p.client.stream, &byte, 1));
    }
    assert_int_equal(client_status, client_expected);
    assert_int_equal(server_status, server_expected);
    bool is_told = strstr(bide_tls_reason(&p.client.tls), reason) != NULL ||
                   strstr(bide_tls_reason(&p.server.tls), reason) != NULL;
    if (!is_told)
        print_error("%s; %s\n", bide_tls_reason(&p.client.tls), bide_tls_reason(&p.server.tls));
    assert_true(is_told);
    assert_int_equal(ERR_peek_error(), 0);
    pair_close(&p);
}

/* ---- Servers ---- */

static void a_proven_name_is_accepted(void **state)
{
    static const char *const names[] = {"server.test", "SERVER.test", "server.test.", "a.wild.test",
                                        "127.0.0.1"};
    world *world = world_of(state);
    bide_tls_config *client = usual_client();
    bide_tls_config *server = usual_server();
    for_each_way(way)
    {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            expect(world, way, client, server, names[i], 0, 0, "");
    }
    bide_tls_config_release(client);
    bide_tls_config_release(server);
}

static void other_names_are_rejected(void **state)
{
    static const char *const names[] = {"other.test", "a.b.wild.test", "wild.test", "server.tes",
                                        "127.0.0.2",  "::1",           "."};
    world *world = world_of(state);
    bide_tls_config *client = usual_client();
    bide_tls_config *server = usual_server();
    for_each_way(way)
    {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            expect(world, way, client, server, names[i], -EKEYREJECTED, -EREMOTEIO, "mismatch");
    }
    bide_tls_config_release(client);
    bide_tls_config_release(server);
}

static void no_name_is_no_way_around(void **state)
{
    world *world = world_of(state);
    bide_tls_config *client = usual_client();
    bide_tls_config *server = usual_server();
    expect(world, ways, client, server, NULL, -EINVAL, -ECONNABORTED, "no name");
    expect(world, ways, client, server, "", -EINVAL, -ECONNABORTED, "no name");
    expect(world, ways, server, server, "server.test", -EINVAL, -ECONNABORTED, "config");
    bide_tls_config_release(client);
    bide_tls_config_release(server);
}

static const struct bad_server {
    const char *what;
    certificate_wish wish;
    bool by_itself, by_a_stranger;
    int status;
    const char *reason;
} bad_servers[] = {
    {"expired", {.begins = -2 * DAY, .ends = -DAY}, false, false, -EKEYEXPIRED, "expired"},
    {"not valid yet",
     {.begins = DAY, .ends = 2 * DAY},
     false,
     false,
     -EKEYREJECTED,
     "not yet valid"},
    {"its own maker", {.names = "DNS:server.test"}, true, false, -EKEYREJECTED, "self-signed"},
    {"by a stranger", {.names = "DNS:server.test"}, false, true, -EKEYREJECTED, "issuer"},
};

static void bad_certificates_are_rejected(void **state)
{
    world *world = world_of(state);
    for (size_t i = 0; i < sizeof bad_servers / sizeof *bad_servers; i++) {
        const struct bad_server *bad = &bad_servers[i];
        certificate_wish wish = bad->wish;
        bide_tls_certificate room;
        maker made;
        wish.subject = bad->what;
        wish.names = "DNS:server.test";
        wish.by = bad->by_itself ? NULL : bad->by_a_stranger ? &stranger : &authority;
        make_certificate(&made, &wish);
        bide_tls_options options = options_of(&made, &room);
        bide_tls_config *server = server_with(&options);
        bide_tls_config *client = usual_client();
        for_each_way(way)
            expect(world, way, client, server, "server.test", bad->status, -EREMOTEIO, bad->reason);
        bide_tls_dangerously_verify_nothing(client);
        for_each_way(way)
        {
            expect(world, way, client, server, "server.test", 0, 0, "");
            expect(world, way, client, server, NULL, 0, 0, "");
        }
        bide_tls_config_release(client);
        bide_tls_config_release(server);
        free_certificate(&made);
    }
}

static void a_chain_is_followed_to_its_authority(void **state)
{
    world *world = world_of(state);
    bide_tls_config *client = usual_client();
    bide_tls_certificate room;
    maker between, made;
    make_certificate(&between, &(certificate_wish){
                                   .subject = "between", .by = &authority, .is_authority = true});
    make_certificate(
        &made, &(certificate_wish){.subject = "far", .names = "DNS:far.test", .by = &between});
    bide_tls_options options = options_of(&made, &room);
    bide_tls_config *server = server_with(&options);
    for_each_way(way) expect(world, way, client, server, "far.test", 0, 0, "");
    bide_tls_config_release(server);
    room.chain_size =
        (size_t)(strstr(made.chain, "-----END") - made.chain) +
        strlen("-----END CERTIFICATE-----\n"); /* without the intermediate authority */
    server = server_with(&options);
    for_each_way(way)
        expect(world, way, client, server, "far.test", -EKEYREJECTED, -EREMOTEIO, "issuer");
    bide_tls_config_release(server);
    bide_tls_config_release(client);
    free_certificate(&between);
    free_certificate(&made);
}

/* Checks which certificate the server has presented. */
static void expect_subject(world *world, const way *way, bide_tls_config *client,
                           bide_tls_config *server, const char *name, const char *subject)
{
    char text[64];
    limit(client, way->version);
    pair_open(&p, world, way->below);
    pair_greet_well(&p, client, server, name);
    assert_true(bide_tls_peer(&p.client.tls, text, sizeof text));
    assert_string_equal(text, subject);
    assert_false(bide_tls_peer(&p.server.tls, text, sizeof text));
    assert_string_equal(text, "");
    pair_close(&p);
}

static void a_server_chooses_its_certificate_by_name(void **state)
{
    world *world = world_of(state);
    maker one, other, same, plain;
    make_certificate(&one, &(certificate_wish){.subject = "one",
                                               .names = "DNS:one.test,DNS:*.one.test",
                                               .by = &authority});
    make_certificate(&other, &(certificate_wish){
                                 .subject = "other", .names = "DNS:x.one.test", .by = &authority});
    make_certificate(
        &same, &(certificate_wish){
                   .subject = "same", .names = "DNS:one.test", .by = &authority, .is_rsa = true});
    make_certificate(&plain, &(certificate_wish){.subject = "plain.test", .by = &authority});
    const bide_tls_certificate all[] = {proof_of(&server_proof), proof_of(&one), proof_of(&other),
                                        proof_of(&same), proof_of(&plain)};
    bide_tls_options options = {.certificates = all, .certificate_count = 5};
    bide_tls_config *server = server_with(&options);
    bide_tls_config *client = usual_client();
    for_each_way(way)
    {
        expect_subject(world, way, client, server, "server.test", "CN=server");
        expect_subject(world, way, client, server, "ONE.test", "CN=one");
        expect_subject(world, way, client, server, "y.one.test", "CN=one");
        expect_subject(world, way, client, server, "x.one.test", "CN=other");
        expect_subject(world, way, client, server, "plain.test", "CN=plain.test");
        expect_subject(world, way, client, server, "127.0.0.1", "CN=server");
        expect(world, way, client, server, "none.test", -EKEYREJECTED, -EREMOTEIO, "mismatch");
    }
    /* a client that supports only the other kind of key gets the certificate with that key */
    bide_tls_config *rsa = usual_client();
    assert_int_equal(SSL_CTX_set1_sigalgs_list(rsa->context, "RSA-PSS+SHA256:RSA+SHA256"), 1);
    SSL_CTX_set_security_level(rsa->context, 1);
    bide_tls_dangerously_verify_nothing(rsa);
    for_each_way(way) expect_subject(world, way, rsa, server, "one.test", "CN=same");
    bide_tls_config_release(rsa);
    bide_tls_config_release(client);
    bide_tls_config_release(server);
    free_certificate(&one);
    free_certificate(&other);
    free_certificate(&same);
    free_certificate(&plain);
}

/* ---- Clients ---- */

static void clients_prove_themselves(void **state)
{
    world *world = world_of(state);
    maker unknown;
    make_certificate(&unknown, &(certificate_wish){.subject = "client", .by = &stranger});
    bide_tls_certificate room, client_room;
    bide_tls_options options = options_of(&server_proof, &room);
    const maker *const proofs[] = {NULL, &client_proof, &unknown};
    static const struct {
        bide_tls_clients demand;
        int client[3], server[3];
    } cases[] = {
        {BIDE_TLS_CLIENTS_ANONYMOUS, {0, 0, 0}, {0, 0, 0}},
        {BIDE_TLS_CLIENTS_OPTIONAL, {0, 0, -EREMOTEIO}, {0, 0, -EKEYREJECTED}},
        {BIDE_TLS_CLIENTS_REQUIRED, {-EREMOTEIO, 0, -EREMOTEIO}, {-ENOKEY, 0, -EKEYREJECTED}},
    };
    for (size_t i = 0; i < 3; i++) {
        options.clients = cases[i].demand;
        bide_tls_config *server = server_with(&options);
        for (size_t j = 0; j < 3; j++) {
            bide_tls_options client_options = options_of(proofs[j], &client_room);
            bide_tls_config *client = client_with(&client_options);
            for_each_way(way) expect(world, way, client, server, "server.test", cases[i].client[j],
                                     cases[i].server[j], "");
            bide_tls_config_release(client);
        }
        bide_tls_config_release(server);
    }
    free_certificate(&unknown);
}

static void a_server_learns_the_name_of_the_client(void **state)
{
    char text[64];
    world *world = world_of(state);
    bide_tls_certificate room, client_room;
    bide_tls_options options = options_of(&server_proof, &room);
    bide_tls_options client_options = options_of(&client_proof, &client_room);
    options.clients = BIDE_TLS_CLIENTS_REQUIRED;
    bide_tls_config *server = server_with(&options);
    bide_tls_config *client = client_with(&client_options);
    for (int i = 0; i < 2; i++) { /* the second time with a resumed session */
        pair_open(&p, world, PIPES);
        pair_greet_well(&p, client, server, "server.test");
        assert_int_equal(bide_tls_was_resumed(&p.server.tls), i);
        assert_true(bide_tls_peer(&p.server.tls, text, sizeof text));
        assert_string_equal(text, "CN=client");
        assert_true(bide_tls_peer(&p.server.tls, text, 5));
        assert_string_equal(text, "CN=c");
        pair_send(&p, &p.server, &p.client, "x", 1);
        pair_close(&p);
    }
    bide_tls_config_release(client);
    bide_tls_config_release(server);
}

/* ---- Protocols ---- */

static void protocols_are_agreed_on(void **state)
{
    static const char *const both[] = {"h2", "http/1.1", NULL};
    static const char *const old[] = {"http/1.1", NULL};
    static const char *const odd[] = {"odd", NULL};
    static const char *const none[] = {NULL};
    static const struct {
        const char *const *client, *const *server;
        const char *agreed;
        bool is_refused;
        const char *only; /* is offered */
    } cases[] = {{both, both, "h2", false, NULL},      {old, both, "http/1.1", false, NULL},
                 {both, old, "http/1.1", false, NULL}, {NULL, both, NULL, false, NULL},
                 {both, NULL, NULL, false, NULL},      {none, both, NULL, false, NULL},
                 {odd, both, NULL, true, NULL},        {both, both, "http/1.1", false, "http/1.1"},
                 {both, both, "h2", false, "h2"},      {both, old, NULL, true, "h2"}};
    world *world = world_of(state);
    bide_tls_certificate room;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bide_tls_options client_options = options_of(NULL, &room);
        client_options.protocols = cases[i].client;
        bide_tls_config *client = client_with(&client_options);
        bide_tls_options options = options_of(&server_proof, &room);
        options.protocols = cases[i].server;
        bide_tls_config *server = server_with(&options);
        p.protocol = cases[i].only;
        for_each_way(way)
        {
            if (cases[i].is_refused) {
                expect(world, way, client, server, "server.test", -EREMOTEIO, -ENOPROTOOPT,
                       "no application protocol");
                continue;
            }
            limit(client, way->version);
            pair_open(&p, world, way->below);
            pair_greet_well(&p, client, server, "server.test");
            for (const side *side = &p.client;; side = &p.server) {
                if (cases[i].agreed == NULL)
                    assert_null(bide_tls_protocol(&side->tls));
                else
                    assert_string_equal(bide_tls_protocol(&side->tls), cases[i].agreed);
                if (side == &p.server)
                    break;
            }
            pair_close(&p);
        }
        bide_tls_config_release(client);
        bide_tls_config_release(server);
    }
    p.protocol = NULL;
}

/* It is one of the config's, so a caller gets no protocol that it has not allowed. */
static void a_protocol_that_cannot_be_offered_is_rejected(void **state)
{
    static const char *const only_new[] = {"h2", NULL}, *const none[] = {NULL};
    static const char *const *const own[] = {only_new, none, NULL};
    static const char *const names[] = {"http/1.1", "", "h", "h22"};
    world *world = world_of(state);
    bide_tls_certificate room;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        bide_tls_options options = options_of(NULL, &room);
        options.protocols = own[i];
        bide_tls_config *client = client_with(&options);
        for (size_t j = 0; j < sizeof names / sizeof *names; j++) {
            bide_tls_handshake *handshake = &p.client.handshake;
            pair_open(&p, world, PIPES);
            bide_awaiter *connect =
                bide_tls_connect(handshake, &p.client.tls, client, p.client.below, "server.test");
            handshake->protocol = names[j];
            assert_int_equal(world_wait(world, connect), -EPROTONOSUPPORT);
            assert_string_equal(bide_tls_reason(&p.client.tls),
                                "the protocol to be offered is not one of the config's");
            pair_close(&p);
        }
        bide_tls_config_release(client);
    }
}

static void different_versions_are_rejected(void **state)
{
    world *world = world_of(state);
    bide_tls_certificate room;
    bide_tls_options options = options_of(&server_proof, &room);
    options.min_version = BIDE_TLS_MIN_1_3;
    bide_tls_config *server = server_with(&options);
    bide_tls_config *client = usual_client();
    for_each_way(way)
    {
        if (way->version == TLS1_2_VERSION)
            expect(world, way, client, server, "server.test", -EREMOTEIO, -EPROTONOSUPPORT,
                   "version");
        else
            expect(world, way, client, server, "server.test", 0, 0, "");
    }
    bide_tls_config_release(client);
    bide_tls_config_release(server);
}

/* ---- Sessions ---- */

/*
 * A connection on which the server sends data, and with it its tickets. Returns whether it was
 * resumed.
 */
static bool visit(world *world, const way *way, bide_tls_config *client, bide_tls_config *server,
                  const char *name)
{
    limit(client, way->version);
    pair_open(&p, world, way->below);
    pair_greet_well(&p, client, server, name);
    bool was = bide_tls_was_resumed(&p.client.tls);
    assert_int_equal(bide_tls_was_resumed(&p.server.tls), was);
    pair_send(&p, &p.server, &p.client, "hello", 5);
    pair_end(&p, &p.client, &p.server);
    pair_end(&p, &p.server, &p.client);
    pair_close(&p);
    return was;
}

static void sessions_are_resumed(void **state)
{
    world *world = world_of(state);
    bide_tls_config *server = usual_server();
    for_each_way(way)
    {
        bide_tls_config *client = usual_client();
        assert_false(visit(world, way, client, server, "server.test"));
        for (int i = 0; i < 5; i++)
            assert_true(visit(world, way, client, server, "server.test"));
        assert_false(visit(world, way, client, server, "a.wild.test"));
        assert_true(visit(world, way, client, server, "a.wild.test"));
        assert_false(visit(world, way, client, server, "127.0.0.1"));
        assert_true(visit(world, way, client, server, "127.0.0.1"));
        bide_tls_config_release(client);
    }
    bide_tls_config_release(server);
}

static void no_more_sessions_are_kept_than_requested(void **state)
{
    world *world = world_of(state);
    bide_tls_certificate room;
    bide_tls_config *server = usual_server();
    for_each_way(way)
    {
        bide_tls_options options = options_of(NULL, &room);
        options.max_sessions = 1;
        bide_tls_config *client = client_with(&options);
        assert_false(visit(world, way, client, server, "server.test"));
        assert_int_equal(client->sessions.count, 1);
        assert_true(visit(world, way, client, server, "server.test"));
        assert_false(visit(world, way, client, server, "a.wild.test"));
        assert_int_equal(client->sessions.count, 1);
        assert_false(visit(world, way, client, server, "server.test"));
        bide_tls_config_release(client);
        options.keeps_no_sessions = true;
        client = client_with(&options);
        assert_false(visit(world, way, client, server, "server.test"));
        assert_false(visit(world, way, client, server, "server.test"));
        assert_int_equal(client->sessions.count, 0);
        bide_tls_config_release(client);
    }
    bide_tls_config_release(server);
}

static void a_new_config_leaves_connections_alone(void **state)
{
    world *world = world_of(state);
    maker renewed;
    make_certificate(
        &renewed,
        &(certificate_wish){.subject = "renewed", .names = "DNS:server.test", .by = &authority});
    bide_tls_certificate room;
    static pair old;
    for_each_way(way)
    {
        char text[64];
        bide_tls_options options = options_of(&renewed, &room);
        bide_tls_config *client = usual_client();
        bide_tls_config *server = usual_server();
        limit(client, way->version);
        pair_open(&old, world, way->below);
        pair_greet_well(&old, client, server, "server.test");
        pair_send(&old, &old.server, &old.client, "x", 1);

        options.resumes = server;
        bide_tls_config *resuming = server_with(&options);
        options.resumes = NULL;
        bide_tls_config *fresh = server_with(&options);
        bide_tls_config_release(server);
        assert_true(visit(world, way, client, resuming, "server.test"));
        bide_tls_config_release(resuming);
        assert_false(visit(world, way, client, fresh, "server.test"));
        pair_open(&p, world, way->below);
        bide_tls_config *another = usual_client();
        pair_greet_well(&p, another, fresh, "server.test");
        bide_tls_config_release(fresh);
        assert_true(bide_tls_peer(&p.client.tls, text, sizeof text));
        assert_string_equal(text, "CN=renewed");
        pair_close(&p);

        assert_true(bide_tls_peer(&old.client.tls, text, sizeof text));
        assert_string_equal(text, "CN=server");
        pair_send(&old, &old.server, &old.client, "still here", 10);
        pair_send(&old, &old.client, &old.server, "so am I", 7);
        pair_close(&old);
        bide_tls_config_release(client);
        bide_tls_config_release(another);
    }
    free_certificate(&renewed);
}

static void a_client_without_a_certificate_cannot_resume_where_one_is_required(void **state)
{
    world *world = world_of(state);
    bide_tls_certificate room;
    for_each_way(way)
    {
        bide_tls_config *client = usual_client();
        bide_tls_config *server = usual_server();
        bide_tls_options options = options_of(&server_proof, &room);
        assert_false(visit(world, way, client, server, "server.test"));
        options.clients = BIDE_TLS_CLIENTS_REQUIRED;
        options.resumes = server;
        bide_tls_config *strict = server_with(&options);
        expect(world, way, client, strict, "server.test", -EREMOTEIO, -ENOKEY, "");
        bide_tls_config_release(strict);
        bide_tls_config_release(server);
        bide_tls_config_release(client);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(a_proven_name_is_accepted),
        world_test(other_names_are_rejected),
        world_test(no_name_is_no_way_around),
        world_test(bad_certificates_are_rejected),
        world_test(a_chain_is_followed_to_its_authority),
        world_test(a_server_chooses_its_certificate_by_name),
        world_test(clients_prove_themselves),
        world_test(a_server_learns_the_name_of_the_client),
        world_test(protocols_are_agreed_on),
        world_test(a_protocol_that_cannot_be_offered_is_rejected),
        world_test(different_versions_are_rejected),
        world_test(sessions_are_resumed),
        world_test(no_more_sessions_are_kept_than_requested),
        world_test(a_new_config_leaves_connections_alone),
        world_test(a_client_without_a_certificate_cannot_resume_where_one_is_required),
    };
    return cmocka_run_group_tests(tests, make_everyone, free_everyone);
}
