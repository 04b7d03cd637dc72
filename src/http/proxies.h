/* Proxies of a client's requests, by an option or by the environment. Internal to HTTP. */
#ifndef BIDE_SRC_HTTP_PROXIES_H
#define BIDE_SRC_HTTP_PROXIES_H

#include "bide/http_url.h"

enum { HTTP_PROXY_HOST = 256, HTTP_PROXY_AUTHORIZATION = 520 };

typedef struct http_proxy {
    char host[HTTP_PROXY_HOST]; /* empty: there is none, unless it has a problem */
    uint16_t port;
    char authorization
        [HTTP_PROXY_AUTHORIZATION]; /* the value of "Proxy-Authorization"; may be empty */
    int status;                     /* of parsing the variable */
    const char *
        problem; /* in words that stay, if that failed: requests that would use this proxy fail. Or NULL */
} http_proxy;

typedef struct http_proxies {
    http_proxy plain, secure; /* for "http" and "https" */
    char *except;             /* the list of hosts without a proxy; NULL: none */
} http_proxies;

/*
 * Parses "http://user:password@host:port/", of which only the host is required. Errors: -EINVAL,
 * -EPROTONOSUPPORT (another scheme), -EMSGSIZE.
 */
int bide_http_proxy_parse_(http_proxy *proxy, const char *text);

/*
 * Reads http_proxy, https_proxy and no_proxy from the environment, or their names in capitals. HTTP_PROXY is
 * not read in a CGI program (REQUEST_METHOD is set), where it is a field of the request. A value that names no
 * proxy is the proxy's problem. Errors: -ENOMEM.
 */
int bide_http_proxies_read_(http_proxies *proxies);

void bide_http_proxies_free_(http_proxies *proxies);

/*
 * The list has the URL's host. Its entries are separated by commas or spaces: "*", an IP address, or a domain, which
 * includes those below it. Each may have a port.
 */
bool bide_http_is_excepted_(const char *list, const bide_http_url *url);

/* The proxy for a URL, which may have a problem; or NULL. */
const http_proxy *bide_http_proxy_for_(const http_proxies *proxies, const bide_http_url *url);

#endif
