/* Certificates: a config's own, with an index of their names, and those of trusted authorities. */
#include "internal.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- PEM ---- */

int bide_tls_open_text_(BIO **text, const char *file, const void *data, size_t size,
                        const char **reason)
{
    if (file == NULL && size > INT32_MAX) {
        *reason = "too large";
        return -EINVAL;
    }
    errno = 0;
    *text = file != NULL ? BIO_new_file(file, "r") : BIO_new_mem_buf(data, (int)size);
    if (*text != NULL)
        return 0;
    int status = file != NULL && errno != 0 ? -errno : -ENOMEM;
    *reason = status == -ENOMEM ? "out of memory" : "a file cannot be opened";
    ERR_clear_error();
    return status;
}

/* Keeps OpenSSL from reading a password from the terminal. */
static int tls_no_password(char *buffer, int size, int writes, void *argument)
{
    (void)buffer;
    (void)size;
    (void)writes;
    (void)argument;
    return -1;
}

/* The status of a failure to read PEM. The reason is `what`, unless memory was exhausted. */
static int tls_pem_status(const char *what, const char **reason)
{
    int code = ERR_GET_REASON(ERR_peek_last_error());
    ERR_clear_error();
    *reason = code == ERR_R_MALLOC_FAILURE ? "out of memory" : what;
    return code == ERR_R_MALLOC_FAILURE ? -ENOMEM : -EINVAL;
}

/* True if the text has no further PEM. */
static bool tls_pem_is_at_end(void)
{
    unsigned long error = ERR_peek_last_error();
    bool is = ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
    if (is)
        ERR_clear_error();
    return is;
}

static int tls_proof_read_chain(tls_proof *proof, BIO *text, const char **reason)
{
    proof->leaf = PEM_read_bio_X509(text, NULL, tls_no_password, NULL);
    proof->chain = sk_X509_new_null();
    if (proof->leaf == NULL || proof->chain == NULL)
        return tls_pem_status("no certificate in PEM", reason);
    for (;;) {
        X509 *next = PEM_read_bio_X509(text, NULL, tls_no_password, NULL);
        if (next == NULL)
            return tls_pem_is_at_end() ? 0 : tls_pem_status("the chain is not PEM", reason);
        if (sk_X509_push(proof->chain, next) == 0) {
            X509_free(next);
            return tls_pem_status("out of memory", reason);
        }
    }
}

static int tls_proof_read(tls_proof *proof, const bide_tls_certificate *from, const char **reason)
{
    bool same = from->key_file == NULL && from->key == NULL;
    BIO *text = NULL;
    int status =
        bide_tls_open_text_(&text, from->chain_file, from->chain, from->chain_size, reason);
    if (status == 0)
        status = tls_proof_read_chain(proof, text, reason);
    BIO_free(text);
    text = NULL;
    if (status == 0)
        status =
            same ? bide_tls_open_text_(&text, from->chain_file, from->chain, from->chain_size,
                                       reason)
                 : bide_tls_open_text_(&text, from->key_file, from->key, from->key_size, reason);
    if (status == 0) {
        proof->key = PEM_read_bio_PrivateKey(text, NULL, tls_no_password, NULL);
        if (proof->key == NULL)
            status = tls_pem_status("no key in PEM, or the key is encrypted", reason);
        else if (X509_check_private_key(proof->leaf, proof->key) != 1)
            status = tls_pem_status("the key does not match the certificate", reason);
    }
    BIO_free(text);
    return status;
}

/* ---- Names ---- */

static int tls_proofs_add_name(tls_proofs *proofs, const char *name, size_t size, size_t proof)
{
    tls_proof_name *names =
        OPENSSL_realloc(proofs->names, (proofs->name_count + 1) * sizeof *names);
    if (names == NULL)
        return -ENOMEM;
    proofs->names = names;
    char *copy = OPENSSL_strndup(name, size);
    if (copy == NULL)
        return -ENOMEM;
    names[proofs->name_count++] = (tls_proof_name){copy, proof};
    return 0;
}

/* Adds the subject's common name, for a certificate without other names. */
static int tls_proofs_add_common_name(tls_proofs *proofs, size_t proof)
{
    const X509_NAME *subject = X509_get_subject_name(proofs->all[proof].leaf);
    int place = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (place < 0)
        return 0;
    const ASN1_STRING *text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, place));
    return tls_proofs_add_name(proofs, (const char *)ASN1_STRING_get0_data(text),
                               (size_t)ASN1_STRING_length(text), proof);
}

static int tls_proofs_add_names(tls_proofs *proofs, size_t proof)
{
    size_t before = proofs->name_count;
    int status = 0;
    GENERAL_NAMES *names =
        X509_get_ext_d2i(proofs->all[proof].leaf, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; status == 0 && i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type == GEN_DNS)
            status =
                tls_proofs_add_name(proofs, (const char *)ASN1_STRING_get0_data(name->d.dNSName),
                                    (size_t)ASN1_STRING_length(name->d.dNSName), proof);
    }
    GENERAL_NAMES_free(names);
    if (status == 0 && proofs->name_count == before)
        status = tls_proofs_add_common_name(proofs, proof);
    return status;
}

static int tls_proofs_compare_names(const void *one, const void *other)
{
    const tls_proof_name *a = one;
    const tls_proof_name *b = other;
    int order = strcasecmp(a->name, b->name);
    return order != 0 ? order : (a->proof > b->proof) - (a->proof < b->proof);
}

/* The index of the first entry with that name, or the number of entries. */
static size_t tls_proofs_find_exact(const tls_proofs *proofs, const char *name)
{
    size_t low = 0;
    size_t high = proofs->name_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcasecmp(proofs->names[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool is = low < proofs->name_count && strcasecmp(proofs->names[low].name, name) == 0;
    return is ? low : proofs->name_count;
}

/* The same, and otherwise that of the name with a star in place of its first label. */
static size_t tls_proofs_find_name(const tls_proofs *proofs, const char *name)
{
    char starred[256] = "*";
    size_t found = tls_proofs_find_exact(proofs, name);
    const char *rest = strchr(name, '.');
    if (found != proofs->name_count || rest == NULL || strlen(rest) + 2 > sizeof starred)
        return found;
    memcpy(starred + 1, rest, strlen(rest) + 1);
    return tls_proofs_find_exact(proofs, starred);
}

bool bide_tls_identities_have_(const tls_proofs *proofs, const char *name)
{
    return tls_proofs_find_name(proofs, name) != proofs->name_count;
}

int bide_tls_identities_use_(const tls_proofs *proofs, SSL *ssl, const char *name)
{
    size_t found = tls_proofs_find_name(proofs, name);
    if (found == proofs->name_count)
        return 0;
    SSL_certs_clear(ssl);
    const char *its_name = proofs->names[found].name;
    for (; found < proofs->name_count; found++) { /* one for each type of key */
        if (strcasecmp(proofs->names[found].name, its_name) != 0)
            break;
        const tls_proof *proof = &proofs->all[proofs->names[found].proof];
        if (SSL_use_cert_and_key(ssl, proof->leaf, proof->key, proof->chain, 1) != 1)
            return -1;
    }
    return 1;
}

int bide_tls_identities_read_(tls_proofs *proofs, const bide_tls_options *options,
                              const char **reason)
{
    int status = 0;
    if (options->certificate_count == 0)
        return 0;
    proofs->all = OPENSSL_zalloc(options->certificate_count * sizeof *proofs->all);
    if (proofs->all == NULL) {
        *reason = "out of memory";
        return -ENOMEM;
    }
    while (status == 0 && proofs->count < options->certificate_count) {
        size_t next = proofs->count++;
        status = tls_proof_read(&proofs->all[next], &options->certificates[next], reason);
        if (status == 0)
            status =
                bide_tls_status_read_(&proofs->all[next], &options->certificates[next], reason);
        if (status == 0 && (status = tls_proofs_add_names(proofs, next)) != 0)
            *reason = "out of memory";
    }
    if (proofs->name_count != 0)
        qsort(proofs->names, proofs->name_count, sizeof *proofs->names, tls_proofs_compare_names);
    return status;
}

void bide_tls_identities_free_(tls_proofs *proofs)
{
    for (size_t i = 0; i < proofs->count; i++) {
        OPENSSL_free(proofs->all[i].status);
        ASN1_STRING_free(proofs->all[i].status_until);
        X509_free(proofs->all[i].leaf);
        EVP_PKEY_free(proofs->all[i].key);
        sk_X509_pop_free(proofs->all[i].chain, X509_free);
    }
    for (size_t i = 0; i < proofs->name_count; i++)
        OPENSSL_free(proofs->names[i].name);
    OPENSSL_free(proofs->all);
    OPENSSL_free(proofs->names);
}

/* ---- Trusted authorities ---- */

/* Trusts each certificate of the text as an authority. A server may `announce` them to clients. */
static int tls_trust_text(SSL_CTX *context, BIO *text, bool announce, const char **reason)
{
    X509_STORE *store = SSL_CTX_get_cert_store(context);
    for (int count = 0;; count++) {
        X509 *authority = PEM_read_bio_X509(text, NULL, tls_no_password, NULL);
        if (authority == NULL)
            return count != 0 && tls_pem_is_at_end()
                       ? 0
                       : tls_pem_status("no authority's certificate in PEM", reason);
        bool done = X509_STORE_add_cert(store, authority) == 1 &&
                    (!announce || SSL_CTX_add_client_CA(context, authority) == 1);
        X509_free(authority);
        if (!done)
            return tls_pem_status("an authority's certificate cannot be used", reason);
    }
}

static int tls_trust_from(SSL_CTX *context, const char *file, const void *data, size_t size,
                          bool announce, const char **reason)
{
    BIO *text = NULL;
    int status = bide_tls_open_text_(&text, file, data, size, reason);
    if (status == 0)
        status = tls_trust_text(context, text, announce, reason);
    BIO_free(text);
    return status;
}

int bide_tls_trust_(SSL_CTX *context, const bide_tls_options *options, const char **reason)
{
    bool announce = options->clients != BIDE_TLS_CLIENTS_ANONYMOUS;
    int status = 0;
    if (options->authorities_file != NULL)
        status = tls_trust_from(context, options->authorities_file, NULL, 0, announce, reason);
    if (status == 0 && options->authorities != NULL)
        status = tls_trust_from(context, NULL, options->authorities, options->authorities_size,
                                announce, reason);
    if (status == 0 && options->authorities_directory != NULL &&
        SSL_CTX_load_verify_dir(context, options->authorities_directory) != 1)
        status = tls_pem_status("the authorities' directory cannot be used", reason);
    return status;
}
