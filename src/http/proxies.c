/* Proxies: their URLs, the environment's variables, and the hosts that need none. Pure but for the environment. */
#define _GNU_SOURCE
#include "proxies.h"

#include "characters.h"

#include "../base/base64.h"
#include "../system/portable.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- One proxy ---- */

static int proxy_hex(char digit)
{
    return digit <= '9' ? digit - '0' : http_lower(digit) - 'a' + 10;
}

/* Decodes "%41" and the like, which are whole. Returns the size. */
static size_t proxy_decode(bide_slice text, unsigned char *out)
{
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        char byte = text.data[i];
        if (byte == '%') {
            byte = (char)(proxy_hex(text.data[i + 1]) * 16 + proxy_hex(text.data[i + 2]));
            i += 2;
        }
        out[size++] = (unsigned char)byte;
    }
    return size;
}

static int proxy_set_user(http_proxy *proxy, bide_slice user)
{
    static const char scheme[] = "Basic ";
    unsigned char plain[(HTTP_PROXY_AUTHORIZATION - sizeof scheme) / 4 * 3];
    proxy->authorization[0] = '\0';
    if (user.data == NULL)
        return 0;
    if (user.size >= sizeof plain)
        return -EMSGSIZE;
    size_t size = proxy_decode(user, plain);
    if (memchr(plain, ':', size) == NULL)
        plain[size++] = ':';
    memcpy(proxy->authorization, scheme, sizeof scheme - 1);
    bide_base64_write_(proxy->authorization + sizeof scheme - 1, plain, size);
    return 0;
}

int bide_http_proxy_parse_(http_proxy *proxy, const char *text)
{
    char whole[1024];
    bide_http_url url;
    const char *scheme = strstr(text, "://") != NULL ? "" : "http://";
    if (strlen(scheme) + strlen(text) >= sizeof whole)
        return -EMSGSIZE;
    strcpy(whole, scheme);
    strcat(whole, text);
    if (bide_http_url_parse(&url, whole, strlen(whole)) < 0)
        return http_text_starts_with(http_text_of(whole), "http") ? -EINVAL : -EPROTONOSUPPORT;
    if (url.is_secure)
        return -EPROTONOSUPPORT;
    if (url.path.size > 1 || url.query.data != NULL || url.fragment.data != NULL)
        return -EINVAL;
    if (url.host.size >= sizeof proxy->host)
        return -EMSGSIZE;
    memcpy(proxy->host, url.host.data, url.host.size);
    proxy->host[url.host.size] = '\0';
    proxy->port = url.port;
    return proxy_set_user(proxy, url.user);
}

/* ---- Hosts without a proxy ---- */

static bool proxy_is_separator(char byte)
{
    return byte == ',' || byte == ' ' || byte == '\t';
}

/* Removes the port from the end of an entry and stores it. An IPv6 address has one only behind its bracket. */
static bool proxy_split_port(bide_slice *entry, unsigned *port)
{
    const char *colon = portable_find_last(entry->data, ':', entry->size);
    *port = 0;
    if (colon == NULL ||
        (entry->data[0] != '[' && memchr(entry->data, ':', entry->size) != colon) ||
        (entry->data[0] == '[' && entry->data[entry->size - 1] == ']'))
        return true;
    const char *end = entry->data + entry->size;
    if (end - colon < 2 || end - colon > 6)
        return false;
    for (const char *at = colon + 1; at != end; at++) {
        if (!http_is_of(*at, HTTP_DIGIT))
            return false;
        *port = *port * 10 + (unsigned)(*at - '0');
    }
    entry->size = (size_t)(colon - entry->data);
    return *port != 0;
}

/* An address in binary. Returns its size, or 0 if the text is a name. */
static size_t proxy_address_of(bide_slice text, unsigned char address[16])
{
    char terminated[INET6_ADDRSTRLEN];
    if (text.size >= sizeof terminated || text.size == 0)
        return 0;
    memcpy(terminated, text.data, text.size);
    terminated[text.size] = '\0';
    return inet_pton(AF_INET, terminated, address) == 1    ? 4
           : inet_pton(AF_INET6, terminated, address) == 1 ? 16
                                                           : 0;
}

static bool proxy_is_within(bide_slice host, bide_slice domain)
{
    if (domain.size == 0 || host.size < domain.size)
        return false;
    size_t below = host.size - domain.size;
    for (size_t i = 0; i < domain.size; i++)
        if (http_lower(host.data[below + i]) != http_lower(domain.data[i]))
            return false;
    return below == 0 || host.data[below - 1] == '.';
}

static bool proxy_entry_has(bide_slice entry, const bide_http_url *url)
{
    unsigned port;
    unsigned char one[16], other[16];
    bide_slice host = url->host;
    if (!proxy_split_port(&entry, &port) || (port != 0 && port != url->port))
        return false;
    if (entry.size == 1 && entry.data[0] == '*')
        return true;
    if (entry.size > 2 && entry.data[0] == '[' && entry.data[entry.size - 1] == ']')
        entry = (bide_slice){entry.data + 1, entry.size - 2};
    size_t size = proxy_address_of(host, one);
    if (size != 0)
        return proxy_address_of(entry, other) == size && memcmp(one, other, size) == 0;
    if (entry.size > 1 && entry.data[0] == '*' && entry.data[1] == '.')
        entry = (bide_slice){entry.data + 1, entry.size - 1};
    if (entry.size != 0 && entry.data[0] == '.')
        entry = (bide_slice){entry.data + 1, entry.size - 1};
    if (host.size > 1 && host.data[host.size - 1] == '.')
        host.size--;
    return proxy_is_within(host, entry);
}

bool bide_http_is_excepted_(const char *list, const bide_http_url *url)
{
    while (*list != '\0') {
        bide_slice entry = {list, 0};
        while (list[0] != '\0' && !proxy_is_separator(list[0]))
            list++;
        entry.size = (size_t)(list - entry.data);
        if (entry.size != 0 && proxy_entry_has(entry, url))
            return true;
        if (*list != '\0')
            list++;
    }
    return false;
}

/* ---- The environment ---- */

#define PROXY_PROBLEM(name) \
    "the environment variable " name " is not the URL of a proxy, such as http://proxy:3128"

/* A variable that is not empty, or NULL. */
static const char *proxy_variable(const char *name)
{
    const char *value = portable_getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Reads the proxy from a variable, if that is set. `problem`: if it names none. */
static bool proxy_read(http_proxy *proxy, const char *name, const char *problem)
{
    const char *value = proxy_variable(name);
    if (value == NULL)
        return false;
    proxy->status = bide_http_proxy_parse_(proxy, value);
    proxy->problem = proxy->status < 0 ? problem : NULL;
    return true;
}

int bide_http_proxies_read_(http_proxies *proxies)
{
    const char *except = proxy_variable("no_proxy");
    if (except == NULL)
        except = proxy_variable("NO_PROXY");
    memset(proxies, 0, sizeof *proxies);
    if (!proxy_read(&proxies->plain, "http_proxy", PROXY_PROBLEM("http_proxy")) &&
        getenv("REQUEST_METHOD") == NULL)
        (void)proxy_read(&proxies->plain, "HTTP_PROXY", PROXY_PROBLEM("HTTP_PROXY"));
    if (!proxy_read(&proxies->secure, "https_proxy", PROXY_PROBLEM("https_proxy")))
        (void)proxy_read(&proxies->secure, "HTTPS_PROXY", PROXY_PROBLEM("HTTPS_PROXY"));
    return except != NULL && (proxies->except = strdup(except)) == NULL ? -ENOMEM : 0;
}

void bide_http_proxies_free_(http_proxies *proxies)
{
    free(proxies->except);
    proxies->except = NULL;
}

const http_proxy *bide_http_proxy_for_(const http_proxies *proxies, const bide_http_url *url)
{
    const http_proxy *proxy = url->is_secure ? &proxies->secure : &proxies->plain;
    if ((proxy->host[0] == '\0' && proxy->problem == NULL) ||
        (proxies->except != NULL && bide_http_is_excepted_(proxies->except, url)))
        return NULL;
    return proxy;
}
