/*
 * Certificates for tests of TLS, made at run time: authorities, and the certificates that they
 * sign.
 */
#ifndef BIDE_TESTS_IO_TLS_CERTIFICATES_H
#define BIDE_TESTS_IO_TLS_CERTIFICATES_H

#include "testing.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

#include <bide/tls.h>

typedef struct maker {
    X509 *certificate;
    EVP_PKEY *key;
    char chain[4096]; /* PEM: its own, and its issuer's unless it is self-signed */
    char secret[2048];
} maker;

typedef struct certificate_wish {
    const char *subject;
    const char *names; /* such as "DNS:a.test,IP:127.0.0.1"; NULL: none */
    const maker *by;   /* NULL: itself */
    long begins, ends; /* seconds from now; both 0: from yesterday until tomorrow */
    bool is_authority;
    bool is_rsa;
    const char *features; /* of TLS, such as "status_request"; NULL: none */
} certificate_wish;

enum { DAY = 24 * 60 * 60 };

static inline void add_extension(X509 *certificate, const X509 *by, int kind, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, (X509 *)(uintptr_t)by, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    assert_non_null(extension);
    assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

static inline size_t take_text(BIO *memory, char *text, size_t size)
{
    int count = BIO_read(memory, text, (int)size - 1);
    assert_true(count > 0);
    text[count] = '\0';
    BIO_free(memory);
    return (size_t)count;
}

static inline void make_certificate(maker *made, const certificate_wish *wish)
{
    static long number = 1;
    const maker *by = wish->by != NULL ? wish->by : made;
    X509 *certificate = X509_new();
    X509_NAME *subject = X509_NAME_new();
    long begins = wish->begins != 0 || wish->ends != 0 ? wish->begins : -DAY;
    long ends = wish->begins != 0 || wish->ends != 0 ? wish->ends : DAY;
    made->certificate = certificate;
    made->key = wish->is_rsa ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256");
    assert_non_null(made->key);
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), number++);
    X509_gmtime_adj(X509_getm_notBefore(certificate), begins);
    X509_gmtime_adj(X509_getm_notAfter(certificate), ends);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)wish->subject,
                               -1, -1, 0);
    X509_set_subject_name(certificate, subject);
    X509_set_issuer_name(certificate,
                         by == made ? subject : X509_get_subject_name(by->certificate));
    X509_NAME_free(subject);
    X509_set_pubkey(certificate, made->key);
    add_extension(certificate, by->certificate, NID_basic_constraints,
                  wish->is_authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
    add_extension(certificate, by->certificate, NID_subject_key_identifier, "hash");
    if (wish->names != NULL)
        add_extension(certificate, by->certificate, NID_subject_alt_name, wish->names);
    if (wish->features != NULL)
        add_extension(certificate, by->certificate, NID_tlsfeature, wish->features);
    assert_true(X509_sign(certificate, by->key, EVP_sha256()) > 0);

    BIO *memory = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_X509(memory, certificate), 1);
    if (by != made && X509_check_issued(by->certificate, by->certificate) != X509_V_OK)
        BIO_puts(memory, by->chain); /* its issuer is an intermediate authority */
    take_text(memory, made->chain, sizeof made->chain);
    memory = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_PrivateKey(memory, made->key, NULL, NULL, 0, NULL, NULL), 1);
    take_text(memory, made->secret, sizeof made->secret);
}

static inline void free_certificate(maker *made)
{
    X509_free(made->certificate);
    EVP_PKEY_free(made->key);
    made->certificate = NULL;
    made->key = NULL;
}

static inline bide_tls_certificate proof_of(const maker *made)
{
    return (bide_tls_certificate){.chain = made->chain,
                                  .chain_size = strlen(made->chain),
                                  .key = made->secret,
                                  .key_size = strlen(made->secret)};
}

static inline void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

#endif
