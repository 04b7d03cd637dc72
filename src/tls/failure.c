/* Failures as an errno and a text: from OpenSSL's queue of errors, which is emptied. */
#include "internal.h"

#include "bide/errors.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

static int tls_error_of_verification(long code)
{
    switch (code) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return -EKEYEXPIRED;
    case X509_V_ERR_CERT_REVOKED:
        return -EKEYREVOKED;
    case X509_V_ERR_OUT_OF_MEM:
        return -ENOMEM;
    default:
        return -EKEYREJECTED;
    }
}

static int tls_error_of_reason(int reason)
{
    if (reason >= SSL_AD_REASON_OFFSET)
        return -EREMOTEIO;
    switch (reason) {
    case ERR_R_MALLOC_FAILURE:
        return -ENOMEM;
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
        return -ENOKEY;
    case SSL_R_NO_APPLICATION_PROTOCOL:
        return -ENOPROTOOPT;
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_NO_PROTOCOLS_AVAILABLE:
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_VERSION_TOO_LOW:
    case SSL_R_VERSION_TOO_HIGH:
        return -EPROTONOSUPPORT;
    case SSL_R_PROTOCOL_IS_SHUTDOWN:
        return -EPIPE;
    default:
        return -EPROTO;
    }
}

/*
 * Lower layers report first, then TLS reports what that means: the first error of TLS is the cause.
 * But an allocation failure is the cause wherever it is in the queue.
 */
static unsigned long tls_failure_cause(void)
{
    unsigned long found = ERR_get_error();
    for (unsigned long next = found; next != 0; next = ERR_get_error()) {
        bool is_memory = ERR_GET_REASON(next) == ERR_R_MALLOC_FAILURE;
        if (is_memory || (ERR_GET_LIB(found) != ERR_LIB_SSL && ERR_GET_LIB(next) == ERR_LIB_SSL &&
                          ERR_GET_REASON(found) != ERR_R_MALLOC_FAILURE))
            found = next;
    }
    return found;
}

/* OpenSSL has failed: sets the reason, and returns a negative errno. */
static int tls_failure_status(bide_tls *tls)
{
    unsigned long error = tls_failure_cause();
    if (tls->failure != 0) /* flow.c has failed without memory */
        return tls->failure;
    if (error == 0) {
        tls->reason = "out of memory";
        return -ENOMEM;
    }
    if (ERR_GET_LIB(error) == ERR_LIB_SSL &&
        ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED) {
        long code = SSL_get_verify_result(tls->ssl);
        tls->reason = X509_verify_cert_error_string(code);
        return tls_error_of_verification(code);
    }
    tls->reason = ERR_reason_error_string(error);
    return ERR_GET_LIB(error) == ERR_LIB_SSL || ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE
               ? tls_error_of_reason(ERR_GET_REASON(error))
               : -EPROTO;
}

int bide_tls_status_(bide_tls *tls, int result)
{
    switch (SSL_get_error(tls->ssl, result)) {
    case SSL_ERROR_NONE:
        return 0;
    case SSL_ERROR_ZERO_RETURN:
        return 1;
    case SSL_ERROR_WANT_READ:
        ERR_clear_error();
        if (!tls->has_ended)
            return -EAGAIN;
        tls->reason = "the stream below has ended without close_notify";
        return -ECONNABORTED;
    default:
        tls->failure = tls_failure_status(tls);
        return tls->failure;
    }
}
