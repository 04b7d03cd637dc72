/*
 * Cookies of HTTP clients: a jar keeps what servers set, and says what goes with a request (RFC 6265). Floor: http.
 *
 *     bide_http_cookies_create(&jar, NULL);
 *     bide_http_agent_create(&agent, &(bide_http_agent_options){.cookies = jar});
 *     ...
 *     bide_http_agent_destroy(agent);
 *     bide_http_cookies_destroy(jar);
 *
 * An agent with a jar does the rest, also on redirects. Other clients call bide_http_cookies_set for each Set-Cookie of a
 * response, and bide_http_cookies_write for each request.
 *
 *     Domain             the host, or a domain above it; without it the cookie is for that host alone
 *     Path               such paths and those below; without it the directory of the URL
 *     Max-Age, Expires   at most 400 days. Without them the cookie stays as long as the jar
 *     Secure             set and sent by "https" alone; "http" does not replace such a cookie
 *     HttpOnly           is kept, for whoever shows the cookies to others
 *     __Secure-, __Host- names that begin so keep their promise, or are refused
 *
 * SameSite is ignored: all requests are the program's own.
 *
 * A Domain of one label, such as "com", is refused, or means the host itself. Longer public suffixes, such as "co.uk", are
 * known only to lists that change: options.is_public_suffix may ask one (libpsl). Without it a host can set cookies
 * for all hosts of such a suffix. So share no jar between servers that distrust each other there.
 *
 * Bounds: a cookie has at most 4096 bytes of name and value, and 1024 of its domain and path each. When the jar, or a
 * domain's part of it, is full, the cookie that was sent the longest time ago makes room.
 *
 * Why it is correct: src/http/cookies.c.
 */
#ifndef BIDE_HTTP_COOKIES_H
#define BIDE_HTTP_COOKIES_H

#include "bide/http_url.h"

BIDE_EXTERN_C_BEGIN

/* Keeps cookies. On the heap. */
typedef struct bide_http_cookies bide_http_cookies;

/* Options of a jar. Zeros are the defaults. */
typedef struct bide_http_cookies_options {
    size_t max_count;      /* 0: 1000 */
    size_t max_per_domain; /* 0: 50 */

    /* Whether a domain, in lower case, is one under which anybody can have a name. NULL: domains of one label are. */
    bool (*is_public_suffix)(void *argument, const char *domain);
    void *argument;

    /* The time, in seconds since 1970. NULL: the system's clock. */
    int64_t (*clock)(void);
} bide_http_cookies_options;

/* One cookie of a jar. */
typedef struct bide_http_cookie {
    const char *name, *value;
    const char *domain; /* in lower case */
    const char *path;
    int64_t expires;    /* in seconds since 1970; INT64_MAX: never */
    bool is_host_only;  /* not for hosts below the domain */
    bool is_secure;
    bool is_http_only;
} bide_http_cookie;

/*
 * Makes a jar and puts it in *cookies. `options` is copied; NULL: all 0.
 * Threads: any. Errors: -ENOMEM. Progress: that of malloc.
 */
int bide_http_cookies_create(bide_http_cookies **cookies, const bide_http_cookies_options *options);

/*
 * Frees it; NULL: nothing. No agent has it any more.
 * Threads: one at a time. Progress: that of free, linear in the cookies.
 */
void bide_http_cookies_destroy(bide_http_cookies *cookies);

/*
 * Keeps the cookie of a Set-Cookie field, `text`, of the response to a URL. One that has expired removes its predecessor.
 * Threads: one at a time. Errors: -EINVAL (it has no name, or control characters), -EPERM (it is for another host,
 * or its name or Secure forbids it), -EMSGSIZE (it is too long), -ENOMEM. Progress: that of malloc, linear in the cookies.
 * Source: RFC 6265, 5.2 and 5.3; draft-ietf-httpbis-rfc6265bis, 5.7.
 */
int bide_http_cookies_set(bide_http_cookies *cookies, const bide_http_url *url, bide_slice text);

/*
 * Writes the Cookie field of a request for a URL, "a=1; b=2", with its zero, into `text` of `size` bytes, at least 1.
 * Longer paths come first, and then older cookies. A cookie for which there is no room is left out. Returns the
 * number of bytes; 0: there are none.
 * Threads: one at a time. Progress: wait-free, linear in the cookies. Source: RFC 6265, 5.4.
 */
size_t bide_http_cookies_write(bide_http_cookies *cookies, const bide_http_url *url, char *text, size_t size);

/*
 * The cookie behind `previous`, in any order; NULL: the first. NULL: there are no more. It is the jar's, until a cookie is
 * set. Cookies that have expired may be among them.
 * Threads: one at a time. Progress: wait-free.
 */
const bide_http_cookie *bide_http_cookies_next(const bide_http_cookies *cookies, const bide_http_cookie *previous);

/*
 * Removes all cookies.
 * Threads: one at a time. Progress: that of free, linear in the cookies.
 */
void bide_http_cookies_clear(bide_http_cookies *cookies);

BIDE_EXTERN_C_END

#endif
