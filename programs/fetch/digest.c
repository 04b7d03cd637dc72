/* SHA-256, with OpenSSL if it is available. */
#include "fetch.h"

#include <errno.h>
#include <stdio.h>

#if FETCH_HAS_TLS
#include <openssl/evp.h>

bool digest_is_available(void)
{
    return true;
}

int digest_start(struct digest *digest)
{
    if (digest->context == NULL)
        digest->context = EVP_MD_CTX_new();
    if (digest->context == NULL || !EVP_DigestInit_ex(digest->context, EVP_sha256(), NULL))
        return -ENOMEM;
    return 0;
}

void digest_add(struct digest *digest, const void *data, size_t size)
{
    if (digest->context != NULL)
        EVP_DigestUpdate(digest->context, data, size);
}

void digest_finish(struct digest *digest, char sum[MAX_SUM + 1])
{
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    EVP_DigestFinal_ex(digest->context, bytes, &size);
    for (unsigned i = 0; i < MAX_SUM / 2 && i < size; i++)
        snprintf(sum + 2 * i, 3, "%02x", bytes[i]);
}

void digest_free(struct digest *digest)
{
    EVP_MD_CTX_free(digest->context);
    digest->context = NULL;
}

#else

bool digest_is_available(void)
{
    return false;
}

int digest_start(struct digest *digest)
{
    (void)digest;
    return -ENOTSUP;
}

void digest_add(struct digest *digest, const void *data, size_t size)
{
    (void)digest, (void)data, (void)size;
}

void digest_finish(struct digest *digest, char sum[MAX_SUM + 1])
{
    (void)digest;
    sum[0] = 0;
}

void digest_free(struct digest *digest)
{
    (void)digest;
}

#endif
