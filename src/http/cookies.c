/*
 * Cookies of clients.
 *
 *     list    all cookies, those with longer paths first, and among them the older ones
 *
 * 1. Two cookies of one name, domain, path and host_only are never in the list. A new one takes the place of the old
 *    one, so its age is that of the first.
 * 2. There are at most max_count cookies, and at most max_per_domain of one domain. Before one is added, those that
 *    have expired are removed, and then the one that was sent the longest time ago.
 * 3. A cookie is one block of memory, with its texts. Each text is bounded before it is allocated.
 */
#define _GNU_SOURCE
#include "bide/http_cookies.h"

#include "characters.h"

#include "bide/compiler.h"
#include "bide/handle.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    COOKIE_COUNT = 1000,
    COOKIE_PER_DOMAIN = 50,
    COOKIE_MAX_PAIR = 4096,
    COOKIE_MAX_ATTRIBUTE = 1024
};

#define COOKIE_MAX_LIFE (INT64_C(400) * 24 * 3600) /* seconds */

typedef struct http_cookie {
    bide_http_cookie public;
    struct http_cookie *next;
    uint64_t used; /* the number of the last use */
    size_t path_size;
    char texts[];
} http_cookie;

struct bide_http_cookies {
    bide_http_cookies_options options;
    http_cookie *first;
    size_t count;
    uint64_t uses;
};

/* A line of Set-Cookie, taken apart. Its texts are the line's, except those of defaults. */
typedef struct cookie_line {
    bide_slice name, value, domain, path; /* a domain of no bytes: there is none */
    int64_t expires;
    bool has_max_age, is_secure, is_http_only;
} cookie_line;

/* ---- Texts ---- */

static bide_slice cookie_trim(bide_slice text)
{
    while (text.size != 0 && (*text.data == ' ' || *text.data == '\t')) {
        text.data++;
        text.size--;
    }
    while (text.size != 0 && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t'))
        text.size--;
    return text;
}

/* The text before the first `end`, trimmed; *rest becomes the text behind it, and *has whether there was one. */
static bide_slice cookie_split(bide_slice *rest, char end, bool *has)
{
    const char *at = rest->size != 0 ? memchr(rest->data, end, rest->size) : NULL;
    bide_slice part = {rest->data, at != NULL ? (size_t)(at - rest->data) : rest->size};
    size_t gone = part.size + (at != NULL);
    *has = at != NULL;
    if (gone != 0)
        rest->data += gone;
    rest->size -= gone;
    return cookie_trim(part);
}

static bool cookie_is_same(bide_slice text, const char *other)
{
    return strlen(other) == text.size &&
           (text.size == 0 || memcmp(text.data, other, text.size) == 0);
}

/* ---- Dates: RFC 6265, 5.1.1 ---- */

typedef struct cookie_date {
    int day, month, year, hour, minute, second; /* -1: not found */
} cookie_date;

/* Reads `min` to `max` digits that no digit follows. Returns the number, or -1; *text becomes the rest. */
static int cookie_number(bide_slice *text, size_t min, size_t max)
{
    size_t count = 0;
    int number = 0;
    while (count < text->size && count <= max && http_is_of(text->data[count], HTTP_DIGIT))
        number = number * 10 + (text->data[count++] - '0');
    if (count < min || count > max)
        return -1;
    text->data += count;
    text->size -= count;
    return number;
}

static bool cookie_read_time(bide_slice word, cookie_date *date)
{
    int parts[3];
    for (int i = 0; i < 3; i++) {
        parts[i] = cookie_number(&word, 1, 2);
        if (parts[i] < 0 || (i < 2 && (word.size == 0 || *word.data != ':')))
            return false;
        if (i < 2) {
            word.data++;
            word.size--;
        }
    }
    date->hour = parts[0];
    date->minute = parts[1];
    date->second = parts[2];
    return true;
}

static int cookie_month(bide_slice word)
{
    static const char names[] = "janfebmaraprmayjunjulaugsepoctnovdec";
    for (int i = 0; word.size >= 3 && i < 12; i++) {
        char name[4] = {names[3 * i], names[3 * i + 1], names[3 * i + 2]};
        if (bide_http_is((bide_slice){word.data, 3}, name))
            return i;
    }
    return -1;
}

static void cookie_read_word(bide_slice word, cookie_date *date)
{
    bide_slice rest = word;
    int number;
    if (date->hour < 0 && cookie_read_time(word, date))
        return;
    if (date->day < 0 && (number = cookie_number(&rest, 1, 2)) >= 0) {
        date->day = number;
        return;
    }
    rest = word;
    if (date->month < 0 && (number = cookie_month(word)) >= 0)
        date->month = number;
    else if (date->year < 0 && (number = cookie_number(&rest, 2, 4)) >= 0)
        date->year = number + (number < 70 ? 2000 : number < 100 ? 1900 : 0);
}

static bool cookie_is_delimiter(char c)
{
    return !http_is_of(c, HTTP_DIGIT) && c != ':' &&
           !(http_lower(c) >= 'a' && http_lower(c) <= 'z') && (unsigned char)c < 128;
}

/* The days from 1970 to a date, of the Gregorian calendar. Months begin at 0. */
static int64_t cookie_days(int year, int month, int day)
{
    int64_t y = month < 2 ? year - 1 : year; /* years that begin in March */
    int64_t of_year = (153 * ((month + 10) % 12) + 2) / 5 + day - 1;
    return y * 365 + y / 4 - y / 100 + y / 400 + of_year - 719468;
}

/* False: it is no date. */
static bool cookie_read_date(bide_slice text, int64_t *seconds)
{
    static const char days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    cookie_date date = {-1, -1, -1, -1, -1, -1};
    for (size_t at = 0; at < text.size;) {
        size_t begin = at;
        while (at < text.size && !cookie_is_delimiter(text.data[at]))
            at++;
        if (at != begin)
            cookie_read_word((bide_slice){text.data + begin, at - begin}, &date);
        else
            at++;
    }
    if (date.hour < 0 || date.hour > 23 || date.minute > 59 || date.second > 59 || date.month < 0 ||
        date.day < 1 || date.day > days[date.month] || date.year < 1601)
        return false;
    bool leaps = date.year % 4 == 0 && (date.year % 100 != 0 || date.year % 400 == 0);
    if (date.month == 1 && date.day == 29 && !leaps)
        return false;
    *seconds = cookie_days(date.year, date.month, date.day) * 86400 + date.hour * 3600 +
               date.minute * 60 + date.second;
    return true;
}

/* ---- Lines ---- */

static void cookie_read_max_age(bide_slice text, int64_t now, cookie_line *line)
{
    bool is_negative = text.size != 0 && *text.data == '-';
    int64_t seconds = 0;
    if (text.size == (size_t)is_negative)
        return;
    for (size_t i = is_negative; i < text.size; i++) {
        if (!http_is_of(text.data[i], HTTP_DIGIT))
            return;
        if (seconds < COOKIE_MAX_LIFE)
            seconds = seconds * 10 + (text.data[i] - '0');
    }
    line->has_max_age = true;
    line->expires = is_negative || seconds == 0 ? INT64_MIN : now + seconds;
}

static void cookie_read_attribute(bide_slice name, bide_slice value, int64_t now, cookie_line *line)
{
    int64_t date;
    if (value.size > COOKIE_MAX_ATTRIBUTE)
        return;
    if (bide_http_is(name, "secure"))
        line->is_secure = true;
    else if (bide_http_is(name, "httponly"))
        line->is_http_only = true;
    else if (bide_http_is(name, "max-age"))
        cookie_read_max_age(value, now, line);
    else if (bide_http_is(name, "expires") && !line->has_max_age && cookie_read_date(value, &date))
        line->expires = date;
    else if (bide_http_is(name, "path"))
        line->path = value.size != 0 && *value.data == '/' ? value : (bide_slice){NULL, 0};
    else if (bide_http_is(name, "domain"))
        line->domain = value.size != 0 && *value.data == '.'
                           ? (bide_slice){value.data + 1, value.size - 1}
                           : value;
}

static int cookie_read_line(bide_slice text, int64_t now, cookie_line *line)
{
    bool has;
    memset(line, 0, sizeof *line);
    line->expires = INT64_MAX;
    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        if ((byte < ' ' && byte != '\t') || byte == 127)
            return -EINVAL;
    }
    bide_slice pair = cookie_split(&text, ';', &has);
    line->name = cookie_split(&pair, '=', &has);
    line->value = cookie_trim(pair);
    if (!has || line->name.size == 0)
        return -EINVAL;
    if (line->name.size + line->value.size > COOKIE_MAX_PAIR)
        return -EMSGSIZE;
    while (text.size != 0) {
        bide_slice value = cookie_split(&text, ';', &has);
        bide_slice name = cookie_split(&value, '=', &has);
        cookie_read_attribute(name, cookie_trim(value), now, line);
    }
    if (line->expires != INT64_MAX && line->expires > now + COOKIE_MAX_LIFE)
        line->expires = now + COOKIE_MAX_LIFE;
    return 0;
}

/* ---- Domains and paths: RFC 6265, 5.1.3 and 5.1.4 ---- */

static bool cookie_is_ip(bide_slice host)
{
    struct in_addr v4;
    char text[INET_ADDRSTRLEN];
    if (memchr(host.data, ':', host.size) != NULL)
        return true;
    if (host.size >= sizeof text)
        return false;
    memcpy(text, host.data, host.size);
    text[host.size] = '\0';
    return inet_pton(AF_INET, text, &v4) == 1;
}

static bool cookie_host_is_in(bide_slice host, bide_slice domain)
{
    if (domain.size > host.size || domain.size == 0)
        return false;
    size_t before = host.size - domain.size;
    for (size_t i = 0; i < domain.size; i++)
        if (http_lower(host.data[before + i]) != http_lower(domain.data[i]))
            return false;
    return before == 0 || (host.data[before - 1] == '.' && !cookie_is_ip(host));
}

static bool cookie_is_public(const bide_http_cookies *jar, bide_slice domain)
{
    char text[COOKIE_MAX_ATTRIBUTE + 1];
    if (jar->options.is_public_suffix == NULL)
        return memchr(domain.data, '.', domain.size - 1) == NULL; /* ("test." has one label too) */
    for (size_t i = 0; i < domain.size; i++)
        text[i] = http_lower(domain.data[i]);
    text[domain.size] = '\0';
    return jar->options.is_public_suffix(jar->options.argument, text);
}

static bide_slice cookie_default_path(const bide_http_url *url)
{
    size_t size = url->path.size;
    while (size > 1 && url->path.data[size - 1] != '/')
        size--;
    if (size > 1)
        return (bide_slice){url->path.data, size - 1 <= COOKIE_MAX_ATTRIBUTE ? size - 1 : 0};
    return (bide_slice){"/", 1};
}

static bool cookie_path_is_in(bide_slice path, const http_cookie *cookie)
{
    size_t size = cookie->path_size;
    const char *own = cookie->public.path;
    if (path.size == 0)
        path = (bide_slice){"/", 1};
    return path.size >= size && memcmp(path.data, own, size) == 0 &&
           (path.size == size || own[size - 1] == '/' || path.data[size] == '/');
}

/* Completes a line by its URL, and checks it. *is_host_only: it has no domain. */
static int cookie_check(const bide_http_cookies *jar, const bide_http_url *url, cookie_line *line,
                        bool *is_host_only)
{
    bool is_host = http_text_starts_with(line->name, "__host-");
    bool has_root = line->path.size == 1;
    if (line->domain.size != 0 && !cookie_host_is_in(url->host, line->domain))
        return -EPERM;
    if (is_host && (line->domain.size != 0 || !has_root))
        return -EPERM;
    if ((is_host || http_text_starts_with(line->name, "__secure-")) && !line->is_secure)
        return -EPERM;
    if (line->is_secure && !url->is_secure)
        return -EPERM;
    if (line->domain.size != 0 && cookie_is_public(jar, line->domain)) {
        if (line->domain.size != url->host.size)
            return -EPERM;
        line->domain.size = 0; /* the host itself */
    }
    *is_host_only = line->domain.size == 0;
    if (*is_host_only)
        line->domain = url->host;
    if (line->path.size == 0)
        line->path = cookie_default_path(url);
    return line->domain.size > COOKIE_MAX_ATTRIBUTE || line->path.size == 0 ? -EMSGSIZE : 0;
}

/* ---- The list ---- */

static int64_t cookie_now(const bide_http_cookies *jar)
{
    return jar->options.clock != NULL ? jar->options.clock() : (int64_t)time(NULL);
}

static void cookie_remove(bide_http_cookies *jar, http_cookie **place)
{
    http_cookie *cookie = *place;
    bide_assert(jar->count != 0);
    *place = cookie->next;
    jar->count--;
    free(cookie);
}

static void cookie_remove_expired(bide_http_cookies *jar, int64_t now)
{
    for (http_cookie **at = &jar->first; *at != NULL;) {
        if ((*at)->public.expires <= now)
            cookie_remove(jar, at);
        else
            at = &(*at)->next;
    }
}

/* Removes the one that was used the longest time ago, of a domain or, if that is NULL, of all: 2 */
static void cookie_make_room(bide_http_cookies *jar, const bide_slice *domain)
{
    size_t max = domain != NULL ? jar->options.max_per_domain : jar->options.max_count;
    http_cookie **oldest = NULL;
    size_t count = 0;
    for (http_cookie **at = &jar->first; *at != NULL; at = &(*at)->next) {
        if (domain != NULL && !bide_http_is(*domain, (*at)->public.domain))
            continue;
        count++;
        if (oldest == NULL || (*at)->used < (*oldest)->used)
            oldest = at;
    }
    if (count >= max)
        cookie_remove(jar, oldest);
}

static const char *cookie_put_text(char **at, bide_slice text, bool is_lower)
{
    char *begin = *at;
    for (size_t i = 0; i < text.size; i++)
        begin[i] = is_lower ? http_lower(text.data[i]) : text.data[i];
    begin[text.size] = '\0';
    *at = begin + text.size + 1;
    return begin;
}

static http_cookie *cookie_make(const cookie_line *line, bool is_host_only)
{
    http_cookie *cookie = malloc(sizeof *cookie + line->name.size + line->value.size +
                                 line->domain.size + line->path.size + 4);
    if (cookie == NULL)
        return NULL;
    char *at = cookie->texts;
    cookie->public.name = cookie_put_text(&at, line->name, false);
    cookie->public.value = cookie_put_text(&at, line->value, false);
    cookie->public.domain = cookie_put_text(&at, line->domain, true);
    cookie->public.path = cookie_put_text(&at, line->path, false);
    cookie->path_size = line->path.size;
    cookie->public.expires = line->expires;
    cookie->public.is_host_only = is_host_only;
    cookie->public.is_secure = line->is_secure;
    cookie->public.is_http_only = line->is_http_only;
    return cookie;
}

/* The place of the cookie that the line replaces: NULL stands there if there is none. */
static http_cookie **cookie_find(bide_http_cookies *jar, const cookie_line *line, bool is_host_only)
{
    http_cookie **at = &jar->first;
    while (*at != NULL && !(cookie_is_same(line->name, (*at)->public.name) &&
                            bide_http_is(line->domain, (*at)->public.domain) &&
                            cookie_is_same(line->path, (*at)->public.path) &&
                            (*at)->public.is_host_only == is_host_only))
        at = &(*at)->next;
    return at;
}

/* A Secure cookie of that name, which requests for the URL could get too, is not hidden by one of "http". */
static bool cookie_hides_secure(const bide_http_cookies *jar, const cookie_line *line)
{
    for (const http_cookie *at = jar->first; at != NULL; at = at->next) {
        bide_slice domain = http_text_of(at->public.domain);
        if (at->public.is_secure && cookie_is_same(line->name, at->public.name) &&
            (cookie_host_is_in(domain, line->domain) || cookie_host_is_in(line->domain, domain)) &&
            cookie_path_is_in(line->path, at))
            return true;
    }
    return false;
}

int bide_http_cookies_set(bide_http_cookies *jar, const bide_http_url *url, bide_slice text)
{
    cookie_line line;
    bool is_host_only;
    int64_t now = cookie_now(jar);
    int status = cookie_read_line(text, now, &line);
    if (status == 0)
        status = cookie_check(jar, url, &line, &is_host_only);
    if (status < 0)
        return status;
    cookie_remove_expired(jar, now);
    if (!url->is_secure && cookie_hides_secure(jar, &line))
        return -EPERM;
    http_cookie **place = cookie_find(jar, &line, is_host_only);
    if (line.expires <= now) {
        if (*place != NULL)
            cookie_remove(jar, place);
        return 0;
    }
    http_cookie *cookie = cookie_make(&line, is_host_only);
    if (cookie == NULL)
        return -ENOMEM;
    if (*place != NULL) { /* 1 */
        cookie->next = *place;
        *place = cookie;
        jar->count++;
        cookie_remove(jar, &cookie->next);
    } else {
        cookie_make_room(jar, &line.domain);
        cookie_make_room(jar, NULL);
        for (place = &jar->first; *place != NULL && (*place)->path_size >= cookie->path_size;)
            place = &(*place)->next;
        cookie->next = *place;
        *place = cookie;
        jar->count++;
    }
    cookie->used = ++jar->uses;
    bide_assert(jar->count <= jar->options.max_count);
    return 0;
}

/* ---- Requests ---- */

static bool cookie_is_for(const http_cookie *cookie, const bide_http_url *url, int64_t now)
{
    bide_slice domain = http_text_of(cookie->public.domain);
    return cookie->public.expires > now && (url->is_secure || !cookie->public.is_secure) &&
           cookie_host_is_in(url->host, domain) &&
           (!cookie->public.is_host_only || domain.size == url->host.size) &&
           cookie_path_is_in(url->path, cookie);
}

size_t bide_http_cookies_write(bide_http_cookies *jar, const bide_http_url *url, char *text,
                               size_t size)
{
    int64_t now = cookie_now(jar);
    size_t used = 0;
    for (http_cookie *at = jar->first; at != NULL; at = at->next) {
        if (!cookie_is_for(at, url, now))
            continue;
        size_t name = strlen(at->public.name), value = strlen(at->public.value);
        size_t more = (used != 0 ? 2 : 0) + name + 1 + value;
        if (more >= size - used)
            continue;
        char *end = stpcpy(text + used, used != 0 ? "; " : "");
        stpcpy(stpcpy(stpcpy(end, at->public.name), "="), at->public.value);
        used += more;
        at->used = ++jar->uses;
    }
    text[used] = '\0';
    return used;
}

/* ---- Jars ---- */

int bide_http_cookies_create(bide_http_cookies **cookies, const bide_http_cookies_options *options)
{
    bide_http_cookies *jar = calloc(1, sizeof *jar);
    *cookies = jar;
    if (jar == NULL)
        return -ENOMEM;
    if (options != NULL)
        jar->options = *options;
    if (jar->options.max_count == 0)
        jar->options.max_count = COOKIE_COUNT;
    if (jar->options.max_per_domain == 0)
        jar->options.max_per_domain = COOKIE_PER_DOMAIN;
    return 0;
}

void bide_http_cookies_clear(bide_http_cookies *jar)
{
    while (jar->first != NULL)
        cookie_remove(jar, &jar->first);
}

void bide_http_cookies_destroy(bide_http_cookies *jar)
{
    if (jar != NULL)
        bide_http_cookies_clear(jar);
    free(jar);
}

const bide_http_cookie *bide_http_cookies_next(const bide_http_cookies *jar,
                                               const bide_http_cookie *previous)
{
    const http_cookie *next =
        previous == NULL ? jar->first : bide_container_of(previous, http_cookie, public)->next;
    return next != NULL ? &next->public : NULL;
}
