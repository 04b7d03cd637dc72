/*
 * Sessions that a client keeps, the newest first; the oldest goes when there are too many. A name may
 * have several: a ticket of TLS 1.3 is for one connection, so that nobody can tell that two are of the
 * same client, and servers give more than one.
 */
#include "internal.h"

#include "../coroutine/lock.h"

#include <string.h>

struct tls_session {
    tls_session *older;
    SSL_SESSION *session;
    char name[];
};

static void free_one(tls_session *session)
{
    SSL_SESSION_free(session->session);
    OPENSSL_free(session);
}

/* Frees what the list has from here on. */
static void free_all(tls_session *session)
{
    while (session != NULL) {
        tls_session *older = session->older;
        free_one(session);
        session = older;
    }
}

void bide_tls_sessions_free_(tls_sessions *sessions)
{
    free_all(sessions->newest);
    sessions->newest = NULL;
}

/* Takes those out of the list that are too many. Under the lock. */
static tls_session *cut_off(tls_sessions *sessions)
{
    tls_session **place = &sessions->newest;
    for (size_t i = 0; i < sessions->max && *place != NULL; i++)
        place = &(*place)->older;
    tls_session *rest = *place;
    *place = NULL;
    if (rest != NULL)
        sessions->count = sessions->max;
    return rest;
}

bool bide_tls_sessions_put_(tls_sessions *sessions, const char *name, SSL_SESSION *session)
{
    size_t size = strlen(name) + 1;
    tls_session *kept = OPENSSL_malloc(sizeof *kept + size);
    tls_session *rest = NULL;
    if (kept == NULL)
        return false;
    kept->session = session;
    memcpy(kept->name, name, size);
    lock_take(&sessions->lock);
    kept->older = sessions->newest;
    sessions->newest = kept;
    if (++sessions->count > sessions->max)
        rest = cut_off(sessions);
    lock_free(&sessions->lock);
    free_all(rest);
    return true;
}

/* Where one of that name is. Under the lock. */
static tls_session **find(tls_sessions *sessions, const char *name)
{
    tls_session **place = &sessions->newest;
    while (*place != NULL && strcmp((*place)->name, name) != 0)
        place = &(*place)->older;
    return place;
}

SSL_SESSION *bide_tls_sessions_take_(tls_sessions *sessions, const char *name)
{
    SSL_SESSION *session = NULL;
    tls_session *taken = NULL;
    lock_take(&sessions->lock);
    tls_session **place = find(sessions, name);
    if (*place != NULL) {
        session = (*place)->session;
        SSL_SESSION_up_ref(session);
        if (SSL_SESSION_get_protocol_version(session) == TLS1_3_VERSION) {
            taken = *place;
            *place = taken->older;
            sessions->count--;
        }
    }
    lock_free(&sessions->lock);
    if (taken != NULL)
        free_one(taken);
    return session;
}

void bide_tls_sessions_drop_(tls_sessions *sessions, const char *name)
{
    tls_session *dropped = NULL;
    lock_take(&sessions->lock);
    for (tls_session **place = find(sessions, name); *place != NULL; place = find(sessions, name)) {
        tls_session *one = *place;
        *place = one->older;
        one->older = dropped;
        dropped = one;
        sessions->count--;
    }
    lock_free(&sessions->lock);
    free_all(dropped);
}
