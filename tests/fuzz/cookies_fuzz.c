/*
 * A jar of cookies. Each line of the input is a step: "SURL<TAB>TEXT" sets a cookie, "WURL" writes the Cookie field of a
 * request, "Tn" adds n seconds to the clock. The first three bytes say how many cookies there may be, how many bytes a field
 * may have, and who says what a public suffix is and when the clock begins. After each step the result and the jar are
 * compared with those of a second implementation, which takes the steps of RFC 6265, 5, and of rfc6265bis one by one.
 */
#include <bide/http_cookies.h>

#include "uri.h"

#include <errno.h>
#include <strings.h>

enum { INPUT = 4096, OPTIONS = 3, COOKIES = INPUT / 4, ATTRIBUTE = 1024, MAX_LIFE = 400 * 24 * 3600 };

const unsigned fuzz_executions = 8000;
const char *const fuzz_words[] = {"\nShttp://a.test/\t", "\nShttps://b.a.test/x/y\t", "\nWhttp://a.test/x", "\nWhttps://b.a.test/x/y/z", "\nT100",
                                  "a=1", "b=2", "; Path=/x", "; Path=/", "; Domain=a.test", "; Domain=.A.test", "; Secure", "; HttpOnly",
                                  "; Max-Age=10", "; Max-Age=-1", "; Max-Age=99999999999", "; Expires=Wed, 09 Jun 2021 10:18:14 GMT",
                                  "; Expires=1-1-70 0:0:0", "29 Feb 2024 23:59:59", "__Host-", "__Secure-", "; Domain=test", "1.2.3.4",
                                  "[::1]", "co.uk", "; Expires=", ";", "=", NULL};

static int64_t now;

static int64_t clock_of_test(void)
{
    return now;
}

static bool is_listed(void *argument, const char *domain)
{
    FUZZ_REQUIRE(argument == &now);
    for (const char *at = domain; *at != '\0'; at++)
        FUZZ_REQUIRE(*at < 'A' || *at > 'Z');
    return strcmp(domain, "test") == 0 || strcmp(domain, "co.uk") == 0;
}

/* ---- The second implementation ---- */

struct text {
    const char *at;
    size_t size;
};

struct cookie {
    struct text name, value, domain, path; /* of `memory` or constants */
    char *memory;
    int64_t expires;
    bool is_host_only, is_secure, is_http_only;
    unsigned created, used;
};

static struct second {
    struct cookie cookies[COOKIES];
    size_t count, max_count, max_per_domain;
    unsigned time; /* counts steps */
    bool has_list;
} second;

static bool is_same(struct text a, struct text b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.at, b.at, a.size) == 0);
}

static bool is_same_word(struct text a, const char *b)
{
    return a.size == strlen(b) && (a.size == 0 || strncasecmp(a.at, b, a.size) == 0);
}

static struct text trimmed(const char *begin, const char *end)
{
    while (begin != end && (*begin == ' ' || *begin == '\t'))
        begin++;
    while (begin != end && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    return (struct text){begin, (size_t)(end - begin)};
}

/* 5.1.1: the numbers at the front of a token, each of at most two digits. False: it is none of this kind. */
static bool is_time(struct text token, int64_t parts[3])
{
    char copy[9] = "";
    int used = 0;
    unsigned h, m, s;
    size_t size = 0, digits = 0, colons = 0;
    for (; size < token.size && (uri_is_digit(token.at[size]) || (token.at[size] == ':' && colons < 2)); size++) {
        digits = token.at[size] == ':' ? 0 : digits + 1;
        colons += token.at[size] == ':';
        if (digits > 2 || (token.at[size] == ':' && (size == 0 || token.at[size - 1] == ':')))
            return false;
    }
    if (colons != 2 || digits == 0)
        return false;
    memcpy(copy, token.at, size);
    FUZZ_REQUIRE(sscanf(copy, "%u:%u:%u%n", &h, &m, &s, &used) == 3 && (size_t)used == size);
    parts[0] = h;
    parts[1] = m;
    parts[2] = s;
    return true;
}

static bool is_number(struct text token, size_t min, size_t max, int64_t *number)
{
    size_t digits = 0;
    int64_t value = 0;
    for (; digits < token.size && uri_is_digit(token.at[digits]); digits++)
        value = digits < 9 ? value * 10 + (token.at[digits] - '0') : value;
    if (digits < min || digits > max)
        return false;
    *number = value;
    return true;
}

static bool is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static bool parse_date(struct text text, int64_t *seconds)
{
    static const char *const months[] = {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"};
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t time[3] = {0, 0, 0}, day = -1, month = -1, year = -1, days = 0;
    bool has_time = false;
    for (size_t begin = 0, end; begin < text.size; begin = end + 1) {
        for (end = begin; end < text.size; end++) {
            unsigned char c = (unsigned char)text.at[end];
            if (c == 9 || (c >= 0x20 && c <= 0x2f) || (c >= 0x3b && c <= 0x40) || (c >= 0x5b && c <= 0x60) || (c >= 0x7b && c <= 0x7e))
                break;
        }
        struct text token = {text.at + begin, end - begin};
        if (token.size == 0)
            continue;
        if (!has_time && is_time(token, time)) {
            has_time = true;
            continue;
        }
        if (day < 0 && is_number(token, 1, 2, &day))
            continue;
        bool is_month = false;
        for (int i = 0; month < 0 && !is_month && token.size >= 3 && i < 12; i++)
            if (strncasecmp(token.at, months[i], 3) == 0) {
                month = i;
                is_month = true;
            }
        if (!is_month && year < 0)
            (void)is_number(token, 2, 4, &year);
    }
    if (year >= 70 && year <= 99)
        year += 1900;
    if (year >= 0 && year <= 69)
        year += 2000;
    if (!has_time || day < 1 || month < 0 || year < 1601 || time[0] > 23 || time[1] > 59 || time[2] > 59)
        return false;
    if (day > lengths[month] + (month == 1 && is_leap(year)))
        return false;
    for (int64_t y = 1970; y < year; y++)
        days += is_leap(y) ? 366 : 365;
    for (int64_t y = 1970; y > year; y--)
        days -= is_leap(y - 1) ? 366 : 365;
    for (int64_t m = 0; m < month; m++)
        days += lengths[m] + (m == 1 && is_leap(year));
    *seconds = (days + day - 1) * 86400 + time[0] * 3600 + time[1] * 60 + time[2];
    return true;
}

/* 5.2.2 */
static bool parse_max_age(struct text text, int64_t *expires)
{
    size_t first = text.size != 0 && text.at[0] == '-';
    if (text.size == first)
        return false;
    for (size_t i = first; i < text.size; i++)
        if (!uri_is_digit(text.at[i]))
            return false;
    double seconds = 0;
    for (size_t i = first; i < text.size; i++)
        seconds = seconds * 10 + (text.at[i] - '0');
    *expires = first != 0 || seconds == 0 ? INT64_MIN : now + (seconds > MAX_LIFE ? MAX_LIFE : (int64_t)seconds);
    return true;
}

/* 5.1.3 */
static bool domain_matches(struct text host, struct text domain)
{
    uint8_t bytes[4];
    if (host.size == domain.size)
        return strncasecmp(host.at, domain.at, host.size) == 0;
    if (domain.size == 0 || domain.size > host.size || memchr(host.at, ':', host.size) != NULL || uri_v4(host.at, host.size, bytes))
        return false;
    const char *suffix = host.at + host.size - domain.size;
    return suffix[-1] == '.' && strncasecmp(suffix, domain.at, domain.size) == 0;
}

/* 5.1.4 */
static bool path_matches(struct text path, struct text cookie)
{
    if (path.size == 0)
        path = (struct text){"/", 1};
    if (path.size < cookie.size || memcmp(path.at, cookie.at, cookie.size) != 0)
        return false;
    return path.size == cookie.size || cookie.at[cookie.size - 1] == '/' || path.at[cookie.size] == '/';
}

static struct text default_path(struct text path)
{
    size_t last = path.size;
    while (last != 0 && path.at[last - 1] != '/')
        last--;
    return last <= 1 ? (struct text){"/", 1} : (struct text){path.at, last - 1};
}

static bool is_public(struct text domain)
{
    char lower[ATTRIBUTE + 1];
    for (size_t i = 0; i < domain.size; i++)
        lower[i] = domain.at[i] >= 'A' && domain.at[i] <= 'Z' ? (char)(domain.at[i] + 32) : domain.at[i];
    lower[domain.size] = '\0';
    if (second.has_list)
        return is_listed(&now, lower);
    char *dot = strchr(lower, '.');
    return dot == NULL || dot[1] == '\0';
}

static void second_remove(size_t i)
{
    free(second.cookies[i].memory);
    second.cookies[i] = second.cookies[--second.count];
}

static void second_make_room(const struct text *domain, size_t max)
{
    size_t count = 0, oldest = 0;
    for (size_t i = 0; i < second.count; i++) {
        if (domain != NULL && !domain_matches(second.cookies[i].domain, *domain))
            continue;
        if (domain != NULL && second.cookies[i].domain.size != domain->size)
            continue;
        if (count++ == 0 || second.cookies[i].used < second.cookies[oldest].used)
            oldest = i;
    }
    if (count >= max)
        second_remove(oldest);
}

static void second_expire(void)
{
    for (size_t i = second.count; i-- != 0;)
        if (second.cookies[i].expires <= now)
            second_remove(i);
}

/* Gives the cookie texts of its own. */
static void own(struct cookie *cookie)
{
    struct text *texts[] = {&cookie->name, &cookie->value, &cookie->domain, &cookie->path};
    size_t size = 0;
    for (int i = 0; i < 4; i++)
        size += texts[i]->size;
    char *at = cookie->memory = malloc(size + 1);
    FUZZ_REQUIRE(at != NULL);
    for (int i = 0; i < 4; at += texts[i]->size, i++) {
        if (texts[i]->size != 0)
            memcpy(at, texts[i]->at, texts[i]->size);
        texts[i]->at = at;
    }
}

/* 5.2 and 5.3 */
static int second_set(const bide_http_url *url, struct text line)
{
    const struct text host = {url->host.data, url->host.size}, url_path = {url->path.data, url->path.size};
    const char *at = line.at, *end = line.at + line.size;
    struct cookie cookie = {.expires = INT64_MAX};
    struct text path = {NULL, 0}, domain = {NULL, 0};
    int64_t date, age;
    bool has_date = false, has_age = false;
    for (size_t i = 0; i < line.size; i++)
        if (((unsigned char)line.at[i] < ' ' && line.at[i] != '\t') || line.at[i] == 127)
            return -EINVAL;
    for (bool is_first = true; is_first || at < end; is_first = false) {
        const char *stop = at, *equals = at;
        while (stop != end && *stop != ';')
            stop++;
        while (equals != stop && *equals != '=')
            equals++;
        struct text name = trimmed(at, equals), value = equals == stop ? (struct text){stop, 0} : trimmed(equals + 1, stop);
        at = stop == end ? end : stop + 1;
        if (is_first && (equals == stop || name.size == 0))
            return -EINVAL;
        if (is_first) {
            cookie.name = name;
            cookie.value = value;
        } else if (value.size > ATTRIBUTE) {
            continue;
        } else if (is_same_word(name, "expires")) {
            has_date |= parse_date(value, &date);
        } else if (is_same_word(name, "max-age")) {
            has_age |= parse_max_age(value, &age);
        } else if (is_same_word(name, "domain")) {
            domain = value.size != 0 && value.at[0] == '.' ? (struct text){value.at + 1, value.size - 1} : value;
        } else if (is_same_word(name, "path")) {
            path = value.size != 0 && value.at[0] == '/' ? value : (struct text){NULL, 0};
        } else if (is_same_word(name, "secure")) {
            cookie.is_secure = true;
        } else if (is_same_word(name, "httponly")) {
            cookie.is_http_only = true;
        }
    }
    if (has_age || has_date)
        cookie.expires = has_age ? age : date;
    if (cookie.expires != INT64_MAX && cookie.expires > now + MAX_LIFE)
        cookie.expires = now + MAX_LIFE;
    bool has_host_prefix = cookie.name.size >= 7 && strncasecmp(cookie.name.at, "__Host-", 7) == 0;
    bool has_secure_prefix = cookie.name.size >= 9 && strncasecmp(cookie.name.at, "__Secure-", 9) == 0;
    if ((has_host_prefix || has_secure_prefix) && !cookie.is_secure)
        return -EPERM;
    if (has_host_prefix && (domain.size != 0 || !is_same(path, (struct text){"/", 1})))
        return -EPERM;
    if (cookie.is_secure && !url->is_secure)
        return -EPERM;
    if (domain.size != 0 && !domain_matches(host, domain))
        return -EPERM;
    if (domain.size != 0 && is_public(domain)) {
        if (domain.size != host.size)
            return -EPERM;
        domain.size = 0;
    }
    cookie.is_host_only = domain.size == 0;
    cookie.domain = domain.size == 0 ? host : domain;
    cookie.path = path.size != 0 ? path : default_path(url_path);
    if (cookie.domain.size > ATTRIBUTE || cookie.path.size > ATTRIBUTE)
        return -EMSGSIZE;
    second_expire();
    size_t old = second.count;
    for (size_t i = 0; i < second.count; i++) {
        const struct cookie *other = &second.cookies[i];
        if (!is_same(other->name, cookie.name))
            continue;
        if (!url->is_secure && other->is_secure && path_matches(cookie.path, other->path) &&
            (domain_matches(cookie.domain, other->domain) || domain_matches(other->domain, cookie.domain)))
            return -EPERM;
        if (is_same(other->path, cookie.path) && other->is_host_only == cookie.is_host_only &&
            other->domain.size == cookie.domain.size && domain_matches(other->domain, cookie.domain))
            old = i;
    }
    cookie.created = old != second.count ? second.cookies[old].created : ++second.time;
    if (old != second.count)
        second_remove(old);
    else if (cookie.expires > now) {
        second_make_room(&cookie.domain, second.max_per_domain);
        second_make_room(NULL, second.max_count);
    }
    if (cookie.expires <= now)
        return 0;
    own(&cookie);
    cookie.used = ++second.time;
    FUZZ_REQUIRE(second.count < COOKIES);
    second.cookies[second.count++] = cookie;
    return 0;
}

/* 5.4 */
static size_t second_write(const bide_http_url *url, char *out, size_t room)
{
    const struct text host = {url->host.data, url->host.size}, path = {url->path.data, url->path.size};
    bool is_done[COOKIES] = {false};
    size_t size = 0;
    for (;;) {
        struct cookie *best = NULL;
        for (size_t i = 0; i < second.count; i++) {
            struct cookie *cookie = &second.cookies[i];
            bool is_host = cookie->is_host_only ? cookie->domain.size == host.size : true;
            if (is_done[i] || cookie->expires <= now || (cookie->is_secure && !url->is_secure) || !is_host ||
                !domain_matches(host, cookie->domain) || !path_matches(path, cookie->path))
                continue;
            if (best == NULL || cookie->path.size > best->path.size ||
                (cookie->path.size == best->path.size && cookie->created < best->created))
                best = cookie;
        }
        if (best == NULL)
            break;
        is_done[best - second.cookies] = true;
        char pair[INPUT + 8];
        int more = snprintf(pair, sizeof pair, "%s%.*s=%.*s", size != 0 ? "; " : "", (int)best->name.size, best->name.at,
                            (int)best->value.size, best->value.at);
        if (size + (size_t)more + 1 > room)
            continue;
        memcpy(out + size, pair, (size_t)more);
        size += (size_t)more;
        best->used = ++second.time;
    }
    out[size] = '\0';
    return size;
}

/* ---- The comparison ---- */

static bool is_text(struct text text, const char *other)
{
    return is_same(text, (struct text){other, strlen(other)});
}

static bool is_the_cookie(const struct cookie *own, const bide_http_cookie *other)
{
    for (const char *at = other->domain; *at != '\0'; at++)
        FUZZ_REQUIRE(*at < 'A' || *at > 'Z');
    return is_text(own->name, other->name) && is_text(own->value, other->value) && is_same_word(own->domain, other->domain) &&
           is_text(own->path, other->path) && own->expires == other->expires && own->is_host_only == other->is_host_only &&
           own->is_secure == other->is_secure && own->is_http_only == other->is_http_only;
}

static void compare_jars(const bide_http_cookies *jar)
{
    size_t live = 0, found = 0;
    for (const bide_http_cookie *at = bide_http_cookies_next(jar, NULL); at != NULL; at = bide_http_cookies_next(jar, at)) {
        size_t same = 0;
        if (at->expires <= now)
            continue;
        live++;
        for (size_t i = 0; i < second.count; i++)
            same += is_the_cookie(&second.cookies[i], at);
        FUZZ_REQUIRE(same == 1);
    }
    for (size_t i = 0; i < second.count; i++)
        found += second.cookies[i].expires > now;
    FUZZ_REQUIRE(live == found);
}

/* Executes a step, which is `size` bytes of a copy. */
static void step(bide_http_cookies *jar, const char *text, size_t size, size_t room)
{
    static char out[INPUT];
    bide_http_url url;
    if (size == 0)
        return;
    if (text[0] == 'T') {
        int64_t seconds = 0;
        (void)is_number((struct text){text + 1, size - 1}, 1, 9, &seconds);
        now += seconds;
        return;
    }
    const char *tab = memchr(text + 1, '\t', size - 1), *end = text + size;
    size_t url_size = (size_t)((tab != NULL ? tab : end) - text) - 1;
    if (bide_http_url_parse(&url, text + 1, url_size) < 0)
        return;
    fuzz_parses++;
    if (text[0] == 'S' && tab != NULL) {
        struct text line = {tab + 1, (size_t)(end - tab - 1)};
        FUZZ_REQUIRE(bide_http_cookies_set(jar, &url, (bide_slice){line.at, line.size}) == second_set(&url, line));
    } else if (text[0] == 'W') {
        char *field = malloc(room);
        FUZZ_REQUIRE(field != NULL);
        size_t count = second_write(&url, out, room);
        FUZZ_REQUIRE(bide_http_cookies_write(jar, &url, field, room) == count && memcmp(field, out, count + 1) == 0);
        free(field);
    }
    compare_jars(jar);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    static const int64_t begins[] = {1600000000, 951700000, 3124000000, 4107500000}; /* 2020; the ends of 2/2000, 2068, 2/2100 */
    bide_http_cookies *jar;
    if (size < OPTIONS || size > INPUT)
        return 0;
    bide_http_cookies_options options = {.max_count = input[0] % 16, .max_per_domain = input[0] / 16, .clock = clock_of_test};
    if (input[2] % 2 != 0) {
        options.is_public_suffix = is_listed;
        options.argument = &now;
    }
    now = begins[input[2] / 2 % 4];
    second.count = 0;
    second.max_count = options.max_count != 0 ? options.max_count : 1000;
    second.max_per_domain = options.max_per_domain != 0 ? options.max_per_domain : 50;
    second.has_list = options.is_public_suffix != NULL;
    second.time = 0;
    FUZZ_REQUIRE(bide_http_cookies_create(&jar, &options) == 0);
    for (size_t begin = OPTIONS, end; begin < size; begin = end + 1) {
        for (end = begin; end < size && input[end] != '\n';)
            end++;
        char *copy = fuzz_copy(input + begin, end - begin);
        step(jar, copy, end - begin, input[1] == 255 ? INPUT : (size_t)input[1] + 1);
        free(copy);
    }
    bide_http_cookies_destroy(jar);
    while (second.count != 0)
        second_remove(0);
    return 0;
}
