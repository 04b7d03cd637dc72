/*
 * Status of certificates, by OCSP stapling (RFC 6066, section 8): a server sends a response of its authority with its
 * certificate, and a client verifies it.
 *
 * 1. A server's response is read when its config is created, and does not change. It is not sent once its time is
 *    over: a client that receives none may continue, and one that receives an old one may not.
 * 2. The client verifies a response once, in the handshake that verifies the chain. A session is established only
 *    after that, so a resumed one needs no response.
 * 3. The response's signer is the certificate's issuer, or is authorized by it: OpenSSL verifies that by the same
 *    authorities. The response that counts is the one for the serial number and the issuer of the server's certificate.
 * 4. A certificate with the TLS feature status_request demands a response (RFC 7633, "must-staple"): without one, a
 *    thief of its key could withhold that it was revoked. A client that asks for the status refuses such a certificate
 *    without a response. An extension that cannot be read counts as that demand.
 */
#include "internal.h"

#include "bide/errors.h"

#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <openssl/x509v3.h>

#include <errno.h>

enum { STATUS_CLOCK_DIFFERENCE = 300 }; /* seconds */

/* ---- Servers ---- */

/* The response for the certificate's serial number, or NULL. */
static OCSP_SINGLERESP *tls_status_of_serial(OCSP_BASICRESP *basic, const X509 *leaf)
{
    for (int i = 0; i < OCSP_resp_count(basic); i++) {
        OCSP_SINGLERESP *single = OCSP_resp_get0(basic, i);
        ASN1_INTEGER *serial = NULL;
        OCSP_CERTID *id = (OCSP_CERTID *)(uintptr_t)OCSP_SINGLERESP_get0_id(single);
        if (OCSP_id_get0_info(NULL, NULL, NULL, &serial, id) == 1 &&
            ASN1_INTEGER_cmp(serial, X509_get0_serialNumber(leaf)) == 0)
            return single;
    }
    return NULL;
}

static int tls_status_take(tls_proof *proof, OCSP_RESPONSE *response, const char **reason)
{
    ASN1_GENERALIZEDTIME *until = NULL;
    OCSP_BASICRESP *basic = OCSP_response_status(response) == OCSP_RESPONSE_STATUS_SUCCESSFUL
                                ? OCSP_response_get1_basic(response)
                                : NULL;
    OCSP_SINGLERESP *single = basic != NULL ? tls_status_of_serial(basic, proof->leaf) : NULL;
    int size = -1;
    *reason = "the OCSP response is not for the certificate";
    if (single != NULL) {
        (void)OCSP_single_get0_status(single, NULL, NULL, NULL, &until);
        *reason = "out of memory";
        size = i2d_OCSP_RESPONSE(response, &proof->status);
        if (until != NULL && (proof->status_until = ASN1_STRING_dup(until)) == NULL)
            size = -1;
    }
    proof->status_size = size > 0 ? (size_t)size : 0;
    OCSP_BASICRESP_free(basic);
    ERR_clear_error();
    return size > 0 ? 0 : single != NULL ? -ENOMEM : -EINVAL;
}

int bide_tls_status_read_(tls_proof *proof, const bide_tls_certificate *from, const char **reason)
{
    BIO *text = NULL;
    if (from->ocsp_file == NULL && from->ocsp == NULL)
        return 0;
    int status = bide_tls_open_text_(&text, from->ocsp_file, from->ocsp, from->ocsp_size, reason);
    OCSP_RESPONSE *response = status == 0 ? d2i_OCSP_RESPONSE_bio(text, NULL) : NULL;
    BIO_free(text);
    if (response != NULL) {
        status = tls_status_take(proof, response, reason);
    } else if (status == 0) {
        *reason = "no OCSP response in DER";
        status = -EINVAL;
    }
    OCSP_RESPONSE_free(response);
    ERR_clear_error();
    return status;
}

/* A client asks for the status: 1 */
static int tls_status_send(SSL *ssl, void *argument)
{
    const bide_tls_config *config = argument;
    const X509 *leaf = SSL_get_certificate(ssl);
    for (size_t i = 0; i < config->proofs.count; i++) {
        const tls_proof *proof = &config->proofs.all[i];
        if (proof->leaf != leaf || proof->status == NULL ||
            (proof->status_until != NULL && X509_cmp_current_time(proof->status_until) <= 0))
            continue;
        void *copy = OPENSSL_memdup(proof->status, proof->status_size);
        if (copy == NULL)
            return SSL_TLSEXT_ERR_ALERT_FATAL;
        SSL_set_tlsext_status_ocsp_resp(ssl, copy, (long)proof->status_size);
        return SSL_TLSEXT_ERR_OK;
    }
    return SSL_TLSEXT_ERR_NOACK;
}

void bide_tls_status_serve_(bide_tls_config *config)
{
    SSL_CTX_set_tlsext_status_cb(config->context, tls_status_send);
    SSL_CTX_set_tlsext_status_arg(config->context, config);
}

/* ---- Clients ---- */

static bool tls_status_is_for(OCSP_SINGLERESP *single, const X509 *leaf, const X509 *issuer)
{
    ASN1_OBJECT *digest = NULL;
    OCSP_CERTID *id = (OCSP_CERTID *)(uintptr_t)OCSP_SINGLERESP_get0_id(single);
    if (OCSP_id_get0_info(NULL, &digest, NULL, NULL, id) != 1)
        return false;
    OCSP_CERTID *own = OCSP_cert_to_id(EVP_get_digestbyobj(digest), leaf, issuer);
    bool is = own != NULL && OCSP_id_cmp(own, id) == 0;
    OCSP_CERTID_free(own);
    return is;
}

static int tls_status_reject(bide_tls *tls, int status, const char *reason)
{
    tls->reason = reason;
    tls->failure = status;
    return 0;
}

/* Verifies the responses for a certificate by an issuer. 1: it is good; 0: the connection has failed. */
static int tls_status_verify_response(bide_tls *tls, OCSP_BASICRESP *basic)
{
    STACK_OF(X509) *chain = SSL_get0_verified_chain(tls->ssl);
    int count = sk_X509_num(chain);
    if (basic == NULL || count < 1 ||
        OCSP_basic_verify(basic, chain, SSL_CTX_get_cert_store(tls->config->context), 0) != 1)
        return tls_status_reject(
            tls, -EKEYREJECTED,
            "the status of the certificate is malformed, or its signer is not trusted");
    const X509 *leaf = sk_X509_value(chain, 0);
    const X509 *issuer = sk_X509_value(chain, count > 1 ? 1 : 0);
    for (int i = 0; i < OCSP_resp_count(basic); i++) {
        ASN1_GENERALIZEDTIME *from = NULL, *until = NULL;
        OCSP_SINGLERESP *single = OCSP_resp_get0(basic, i);
        if (!tls_status_is_for(single, leaf, issuer))
            continue;
        int found = OCSP_single_get0_status(single, NULL, NULL, &from, &until);
        if (OCSP_check_validity(from, until, STATUS_CLOCK_DIFFERENCE, -1) != 1)
            return tls_status_reject(tls, -EKEYREJECTED,
                                     "the status of the certificate is not of this time");
        if (found == V_OCSP_CERTSTATUS_REVOKED)
            return tls_status_reject(tls, -EKEYREVOKED, "the certificate was revoked");
        return found == V_OCSP_CERTSTATUS_GOOD
                   ? 1
                   : tls_status_reject(tls, -EKEYREJECTED,
                                       "the status of the certificate is unknown");
    }
    return tls_status_reject(tls, -EKEYREJECTED, "the status is that of another certificate");
}

/* 4 */
static bool tls_status_is_demanded(const X509 *leaf)
{
    int place = -1;
    TLS_FEATURE *features = X509_get_ext_d2i(leaf, NID_tlsfeature, &place, NULL);
    bool is_unreadable = features == NULL && place != -1;
    bool is = is_unreadable;
    for (int i = 0; i < sk_ASN1_INTEGER_num(features); i++)
        if (ASN1_INTEGER_get(sk_ASN1_INTEGER_value(features, i)) == TLSEXT_TYPE_status_request)
            is = true;
    TLS_FEATURE_free(features);
    ERR_clear_error();
    return is;
}

/* The server has sent no response. 1: that is allowed; 0: the connection has failed. */
static int tls_status_miss(bide_tls *tls)
{
    if (tls->config->requires_status)
        return tls_status_reject(tls, -EKEYREJECTED,
                                 "the server has sent no status of its certificate");
    if (tls_status_is_demanded(SSL_get0_peer_certificate(tls->ssl)))
        return tls_status_reject(tls, -EKEYREJECTED,
                                 "the certificate demands a status, and the server has sent none");
    return 1;
}

/* Called by OpenSSL when the server's certificate is verified: 2 */
static int tls_status_receive(SSL *ssl, void *argument)
{
    const bide_tls_config *config = argument;
    bide_tls *tls = SSL_get_app_data(ssl);
    unsigned char *data = NULL;
    long size = SSL_get_tlsext_status_ocsp_resp(ssl, &data);
    if (!config->verifies || SSL_session_reused(ssl) == 1)
        return 1;
    if (data == NULL || size <= 0)
        return tls_status_miss(tls);
    const unsigned char *at = data;
    OCSP_RESPONSE *response = d2i_OCSP_RESPONSE(NULL, &at, size);
    OCSP_BASICRESP *basic =
        response != NULL && OCSP_response_status(response) == OCSP_RESPONSE_STATUS_SUCCESSFUL
            ? OCSP_response_get1_basic(response)
            : NULL;
    int result = tls_status_verify_response(tls, basic);
    OCSP_BASICRESP_free(basic);
    OCSP_RESPONSE_free(response);
    ERR_clear_error();
    return result;
}

bool bide_tls_status_ask_(bide_tls_config *config, bide_tls_stapling stapling)
{
    if (stapling == BIDE_TLS_STAPLING_NONE)
        return true;
    config->requires_status = stapling == BIDE_TLS_STAPLING_REQUIRED;
    SSL_CTX_set_tlsext_status_cb(config->context, tls_status_receive);
    SSL_CTX_set_tlsext_status_arg(config->context, config);
    return SSL_CTX_set_tlsext_status_type(config->context, TLSEXT_STATUSTYPE_ocsp) == 1;
}
