/*
 * The status of a server's certificate, stapled to its handshake: which a server sends, and which a client accepts. And
 * the log of secrets.
 */
#include "tls_pair.h"

#include "../../src/tls/internal.h"

#include <openssl/ocsp.h>

#include <sys/stat.h>

static pair p;
static maker other_proof;

/* ---- Responses ---- */

typedef struct status_wish {
    const maker *of, *issuer, *signer; /* NULL: the server's, the authority */
    long begins, ends;                 /* seconds from now; both 0: from yesterday until tomorrow */
    int status;                        /* V_OCSP_CERTSTATUS_GOOD and so on */
    bool is_endless;
    bool is_sha256;
    bool is_refusal; /* it has no answer */
} status_wish;

static unsigned char *make_status(const status_wish *wish, int *size)
{
    const maker *of = wish->of != NULL ? wish->of : &server_proof;
    const maker *issuer = wish->issuer != NULL ? wish->issuer : &authority;
    const maker *signer = wish->signer != NULL ? wish->signer : issuer;
    bool is_usual = wish->begins == 0 && wish->ends == 0;
    unsigned char *data = NULL;
    OCSP_BASICRESP *basic = OCSP_BASICRESP_new();
    OCSP_CERTID *id = OCSP_cert_to_id(wish->is_sha256 ? EVP_sha256() : EVP_sha1(), of->certificate,
                                      issuer->certificate);
    ASN1_TIME *from = X509_gmtime_adj(NULL, is_usual ? -DAY : wish->begins);
    ASN1_TIME *until = wish->is_endless ? NULL : X509_gmtime_adj(NULL, is_usual ? DAY : wish->ends);
    ASN1_TIME *revoked = wish->status == V_OCSP_CERTSTATUS_REVOKED ? from : NULL;
    ASN1_GENERALIZEDTIME *times[3] = {
        ASN1_TIME_to_generalizedtime(from, NULL),
        until != NULL ? ASN1_TIME_to_generalizedtime(until, NULL) : NULL,
        revoked != NULL ? ASN1_TIME_to_generalizedtime(revoked, NULL) : NULL};
    assert_non_null(
        OCSP_basic_add1_status(basic, id, wish->status, 0, times[2], times[0], times[1]));
    assert_int_equal(
        OCSP_basic_sign(basic, signer->certificate, signer->key, EVP_sha256(), NULL, 0), 1);
    OCSP_RESPONSE *response = wish->is_refusal
                                  ? OCSP_response_create(OCSP_RESPONSE_STATUS_TRYLATER, NULL)
                                  : OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic);
    *size = i2d_OCSP_RESPONSE(response, &data);
    assert_true(*size > 0);
    OCSP_RESPONSE_free(response);
    OCSP_BASICRESP_free(basic);
    OCSP_CERTID_free(id);
    ASN1_TIME_free(from);
    ASN1_TIME_free(until);
    for (int i = 0; i < 3; i++)
        ASN1_GENERALIZEDTIME_free(times[i]);
    return data;
}

static int make_all(void **state)
{
    make_everyone(state);
    make_certificate(&other_proof, &(certificate_wish){.subject = "other", .by = &authority});
    return 0;
}

static int free_all(void **state)
{
    free_certificate(&other_proof);
    return free_everyone(state);
}

/* ---- Stapling ---- */

/* A server that sends whatever it is given. */
static bide_tls_config *forcing_server_of(const status_wish *wish)
{
    bide_tls_config *config = usual_server();
    int size;
    config->proofs.all[0].status = make_status(wish, &size);
    config->proofs.all[0].status_size = (size_t)size;
    return config;
}

/* NULL: the server has no response. */
static bide_tls_config *server_of(const status_wish *wish)
{
    bide_tls_certificate room;
    bide_tls_options options = options_of(&server_proof, &room);
    int size = 0;
    unsigned char *data = wish != NULL ? make_status(wish, &size) : NULL;
    room.ocsp = data;
    room.ocsp_size = (size_t)size;
    bide_tls_config *config = server_with(&options);
    OPENSSL_free(data);
    return config;
}

static bide_tls_config *client_of(bide_tls_stapling stapling)
{
    bide_tls_certificate room;
    bide_tls_options options = options_of(NULL, &room);
    options.stapling = stapling;
    return client_with(&options);
}

/* Both handshakes end with these statuses. */
static void greet(world *world, below below, int version, bide_tls_config *client,
                  bide_tls_config *server, int client_expected, const char *reason)
{
    int client_status, server_status;
    assert_int_equal(SSL_CTX_set_max_proto_version(client->context, version), 1);
    pair_open(&p, world, below);
    pair_greet(&p, client, server, "server.test", &client_status, &server_status);
    assert_int_equal(client_status, client_expected);
    assert_int_equal(server_status, client_expected == 0 ? 0 : -EREMOTEIO);
    assert_string_equal(bide_tls_reason(&p.client.tls), reason);
    if (client_expected == 0) /* and the ticket */
        pair_send(&p, &p.server, &p.client, "hello", 5);
    assert_int_equal(ERR_peek_error(), 0);
    pair_close(&p);
}

static void a_client_accepts_what_is_good(void **state)
{
    static const char none[] = "the server has sent no status of its certificate";
    static const char malformed[] =
        "the status of the certificate is malformed, or its signer is not trusted";
    static const struct row {
        const char *reason; /* if one is required */
        status_wish wish;
        int optional, required; /* how the handshake ends */
        enum { PLAIN, NONE, FORCED } how;
    } rows[] = {
        {none, {0}, 0, -EKEYREJECTED, NONE},
        {"", {.status = V_OCSP_CERTSTATUS_GOOD}, 0, 0, PLAIN},
        {"", {.is_sha256 = true}, 0, 0, PLAIN},
        {"", {.is_endless = true}, 0, 0, PLAIN},
        {"the certificate was revoked",
         {.status = V_OCSP_CERTSTATUS_REVOKED},
         -EKEYREVOKED,
         -EKEYREVOKED,
         PLAIN},
        {"the status of the certificate is unknown",
         {.status = V_OCSP_CERTSTATUS_UNKNOWN},
         -EKEYREJECTED,
         -EKEYREJECTED,
         PLAIN},
        {none, {.begins = -3 * DAY, .ends = -DAY}, 0, -EKEYREJECTED, PLAIN}, /* it is not sent */
        {"the status of the certificate is not of this time",
         {.begins = DAY, .ends = 3 * DAY},
         -EKEYREJECTED,
         -EKEYREJECTED,
         PLAIN},
        {malformed, {.signer = &stranger}, -EKEYREJECTED, -EKEYREJECTED, PLAIN},
        {malformed, {.signer = &other_proof}, -EKEYREJECTED, -EKEYREJECTED, PLAIN},
        {malformed,
         {.issuer = &stranger, .signer = &authority},
         -EKEYREJECTED,
         -EKEYREJECTED,
         PLAIN},
        {malformed, {.is_refusal = true}, -EKEYREJECTED, -EKEYREJECTED, FORCED},
        {"the status is that of another certificate",
         {.of = &other_proof},
         -EKEYREJECTED,
         -EKEYREJECTED,
         FORCED},
        {"the status of the certificate is not of this time",
         {.begins = -3 * DAY, .ends = -DAY},
         -EKEYREJECTED,
         -EKEYREJECTED,
         FORCED},
    };
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        for (size_t j = 0; j < 2; j++) {
            bide_tls_config *server = row->how == FORCED
                                          ? forcing_server_of(&row->wish)
                                          : server_of(row->how == NONE ? NULL : &row->wish);
            bide_tls_config *clients[3] = {client_of(BIDE_TLS_STAPLING_NONE),
                                           client_of(BIDE_TLS_STAPLING_OPTIONAL),
                                           client_of(BIDE_TLS_STAPLING_REQUIRED)};
            below below = (enum below)((i + j) % BELOWS);
            greet(world_of(state), below, versions[j], clients[0], server, 0, "");
            greet(world_of(state), below, versions[j], clients[1], server, row->optional,
                  row->optional != 0 ? row->reason : "");
            greet(world_of(state), below, versions[j], clients[2], server, row->required,
                  row->reason);
            for (int k = 0; k < 3; k++)
                bide_tls_config_release(clients[k]);
            bide_tls_config_release(server);
        }
    }
}

/* A certificate whose TLS feature is a status has to come with one, if the client asks for it (RFC 7633). */
static void a_certificate_can_demand_a_status(void **state)
{
    static const char none[] = "the server has sent no status of its certificate";
    static const char demanded[] = "the certificate demands a status, and the server has sent none";
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    static const struct row {
        const char *features;
        bool has_response;
        int optional;
    } rows[] = {
        {"status_request", false, -EKEYREJECTED},
        {"status_request", true, 0},
        {"status_request_v2, status_request", false, -EKEYREJECTED},
        {"status_request_v2", false, 0},
        {"9", false, 0},
        {"DER:0500", false, -EKEYREJECTED}, /* no list */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        maker proof;
        bide_tls_certificate room;
        int size = 0;
        make_certificate(&proof, &(certificate_wish){.subject = "server",
                                                     .names = "DNS:server.test",
                                                     .by = &authority,
                                                     .features = row->features});
        unsigned char *data =
            row->has_response ? make_status(&(status_wish){.of = &proof}, &size) : NULL;
        bide_tls_options options = options_of(&proof, &room);
        room.ocsp = data;
        room.ocsp_size = (size_t)size;
        for (size_t j = 0; j < 2; j++) {
            bide_tls_config *server = server_with(&options);
            bide_tls_config *clients[3] = {client_of(BIDE_TLS_STAPLING_NONE),
                                           client_of(BIDE_TLS_STAPLING_OPTIONAL),
                                           client_of(BIDE_TLS_STAPLING_REQUIRED)};
            below below = (enum below)((i + j) % BELOWS);
            greet(world_of(state), below, versions[j], clients[0], server, 0, "");
            greet(world_of(state), below, versions[j], clients[1], server, row->optional,
                  row->optional != 0 ? demanded : "");
            greet(world_of(state), below, versions[j], clients[2], server,
                  row->has_response ? 0 : -EKEYREJECTED, row->has_response ? "" : none);
            bide_tls_dangerously_verify_nothing(clients[1]);
            greet(world_of(state), below, versions[j], clients[1], server, 0, "");
            for (int k = 0; k < 3; k++)
                bide_tls_config_release(clients[k]);
            bide_tls_config_release(server);
        }
        OPENSSL_free(data);
        free_certificate(&proof);
    }
}

static void a_server_refuses_what_is_no_response(void **state)
{
    bide_tls_certificate room;
    bide_tls_options options = options_of(&server_proof, &room);
    const status_wish wishes[] = {
        {.of = &other_proof}, {.is_refusal = true}, {.is_refusal = false}};
    (void)state;
    for (int i = 0; i < 4; i++) {
        bide_tls_config *config;
        const char *reason = "";
        int size;
        unsigned char *data = make_status(&wishes[i < 3 ? i : 2], &size);
        room.ocsp = data;
        room.ocsp_size = i < 2 ? (size_t)size : i == 2 ? (size_t)size - 1 : 0;
        assert_int_equal(bide_tls_server_create(&config, &options, &reason), -EINVAL);
        assert_string_equal(reason, i < 2 ? "the OCSP response is not for the certificate"
                                          : "no OCSP response in DER");
        OPENSSL_free(data);
    }
    room.ocsp = NULL;
    room.ocsp_file = "/nothing/there";
    bide_tls_config *config;
    assert_int_equal(bide_tls_server_create(&config, &options, NULL), -ENOENT);
}

static void options_of_the_other_side_are_refused(void **state)
{
    bide_tls_certificate room;
    bide_tls_options options = options_of(&client_proof, &room);
    bide_tls_config *config;
    int size;
    unsigned char *data = make_status(&(status_wish){.of = &client_proof}, &size);
    (void)state;
    options.stapling = BIDE_TLS_STAPLING_OPTIONAL;
    assert_int_equal(bide_tls_server_create(&config, &options, NULL), -EINVAL);
    room.ocsp = data;
    room.ocsp_size = (size_t)size;
    assert_int_equal(bide_tls_client_create(&config, &options, NULL), -EINVAL);
    room.ocsp = NULL;
    options.stapling = (bide_tls_stapling)3;
    assert_int_equal(bide_tls_client_create(&config, &options, NULL), -EINVAL);
    OPENSSL_free(data);
}

/* A new config has a new response, and a session that was checked is resumed without one. */
static void a_response_is_replaced_with_the_config(void **state)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    char path[] = "/tmp/bide-status-XXXXXX";
    int size, fd = mkstemp(path);
    unsigned char *data = make_status(&(status_wish){.is_sha256 = true}, &size);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, (size_t)size), size);
    close(fd);
    OPENSSL_free(data);
    for (size_t i = 0; i < 2; i++) {
        bide_tls_certificate room;
        bide_tls_options options = options_of(&server_proof, &room);
        bide_tls_config *client = client_of(BIDE_TLS_STAPLING_REQUIRED);
        bide_tls_config *old = server_with(&options);
        greet(world_of(state), PIPES, versions[i], client, old, -EKEYREJECTED,
              "the server has sent no status of its certificate");
        room.ocsp_file = path;
        options.resumes = old;
        bide_tls_config *server = server_with(&options);
        greet(world_of(state), PIPES, versions[i], client, server, 0, "");
        greet(world_of(state), PIPES, versions[i], client, old, 0, ""); /* resumed */
        bide_tls_config_release(client);
        bide_tls_config_release(server);
        bide_tls_config_release(old);
    }
    unlink(path);
}

/* ---- The log of secrets ---- */

static size_t lines_of(const char *path, const char *label)
{
    char line[512];
    size_t count = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        assert_non_null(strchr(line, '\n'));
        count += strncmp(line, label, strlen(label)) == 0;
    }
    fclose(file);
    return count;
}

static void secrets_are_logged_if_a_file_is_named(void **state)
{
    char directory[] = "/tmp/bide-secrets-XXXXXX", path[64], other[64];
    struct stat found;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/log", directory);
    snprintf(other, sizeof other, "%s/environment", directory);
    setenv("SSLKEYLOGFILE", other, 1);
    bide_tls_certificate room;
    bide_tls_options options = options_of(NULL, &room);
    options.key_log_file = path;
    options.keeps_no_sessions = true;
    bide_tls_config *server = usual_server(), *client = client_with(&options);
    greet(world_of(state), PIPES, TLS1_2_VERSION, client, server, 0, "");
    assert_int_equal(lines_of(path, "CLIENT_RANDOM "), 1);
    greet(world_of(state), PIPES, TLS1_3_VERSION, client, server, 0, "");
    assert_int_equal(lines_of(path, "CLIENT_RANDOM "), 1);
    assert_int_equal(lines_of(path, "CLIENT_TRAFFIC_SECRET_0 "), 1);
    assert_int_equal(stat(path, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0600);
    bide_tls_config_release(client);
    bide_tls_config_release(server);

    options = options_of(&server_proof, &room); /* a server appends to the same file */
    options.key_log_file = path;
    server = server_with(&options);
    client = usual_client();
    greet(world_of(state), PIPES, TLS1_3_VERSION, client, server, 0, "");
    assert_int_equal(lines_of(path, "CLIENT_TRAFFIC_SECRET_0 "), 2);
    bide_tls_config_release(client);
    bide_tls_config_release(server);

    assert_int_equal(stat(other, &found), -1);
    options.key_log_file = directory;
    assert_int_equal(bide_tls_server_create(&server, &options, NULL), -EISDIR);
    unsetenv("SSLKEYLOGFILE");
    unlink(path);
    rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(a_client_accepts_what_is_good),
        world_test(a_certificate_can_demand_a_status),
        world_test(a_server_refuses_what_is_no_response),
        world_test(options_of_the_other_side_are_refused),
        world_test(a_response_is_replaced_with_the_config),
        world_test(secrets_are_logged_if_a_file_is_named),
    };
    return cmocka_run_group_tests(tests, make_all, free_all);
}
