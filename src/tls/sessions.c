/*
 * Sessions that a client keeps, the newest first. If there are too many, the oldest is dropped.
 *
 * Connections of several threads share the list, under a lock. Sessions are freed outside of it. A
 * name may have several sessions: a ticket of TLS 1.3 is used for one connection only, so that an
 * observer cannot link two connections to one client. So servers send more than one ticket.
 */
#include "internal.h"

#include "../coroutine/lock.h"

#include <string.h>

struct tls_session {
    tls_session *older;
    SSL_SESSION *session;
    char name[];
};

static void tls_session_free(tls_session *session)
{
    SSL_SESSION_free(session->session);
    OPENSSL_free(session);
}

/* Frees a list of sessions. */
static void tls_session_free_list(tls_session *session)
{
    while (session != NULL) {
        tls_session *older = session->older;
        tls_session_free(session);
        session = older;
    }
}

void bide_tls_sessions_free_(tls_sessions *sessions)
{
    tls_session_free_list(sessions->newest);
    sessions->newest = NULL;
}

/* Removes the sessions over the maximum, and returns their list. Under the lock. */
static tls_session *tls_sessions_cut(tls_sessions *sessions)
{
    tls_session **place = &sessions->newest;
    for (size_t i = 0; i < sessions->max && *place != NULL; i++)
        place = &(*place)->older;
    tls_session *rest = *place;
    *place = NULL;
    bide_assert((rest != NULL) == (sessions->count > sessions->max));
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
        rest = tls_sessions_cut(sessions);
    lock_free(&sessions->lock);
    tls_session_free_list(rest);
    return true;
}

/* The link to the newest session of that name, or to NULL. Under the lock. */
static tls_session **tls_sessions_find(tls_sessions *sessions, const char *name)
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
    tls_session **place = tls_sessions_find(sessions, name);
    if (*place != NULL) {
        session = (*place)->session;
        SSL_SESSION_up_ref(session);
        if (SSL_SESSION_get_protocol_version(session) == TLS1_3_VERSION) {
            taken = *place;
            *place = taken->older;
            bide_assert(sessions->count != 0);
            sessions->count--;
        }
    }
    lock_free(&sessions->lock);
    if (taken != NULL)
        tls_session_free(taken);
    return session;
}

void bide_tls_sessions_drop_(tls_sessions *sessions, const char *name)
{
    tls_session *dropped = NULL;
    lock_take(&sessions->lock);
    for (tls_session **place = tls_sessions_find(sessions, name); *place != NULL;
         place = tls_sessions_find(sessions, name)) {
        tls_session *one = *place;
        *place = one->older;
        one->older = dropped;
        dropped = one;
        bide_assert(sessions->count != 0);
        sessions->count--;
    }
    lock_free(&sessions->lock);
    tls_session_free_list(dropped);
}
