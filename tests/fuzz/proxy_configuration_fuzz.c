/*
 * Configuration files of the proxy: a second reader, with a table of what each directive takes, accepts the same files. The
 * message of a rejected file names a line of it; and comments and empty lines change nothing but the numbers of lines.
 * (The proxy is built without TLS here: no file is opened.)
 */
#define _GNU_SOURCE
#include "../../programs/proxy/configuration.h"
#include "uri.h"

#include <bide/http_client.h>

const unsigned fuzz_executions = 8000;
const char *const fuzz_words[] = {
    "listen 127.0.0.1:80\n", "listen [::1]:80\n", "backend b\n", "to b\n", "server 10.0.0.1:80", " weight 3", " max 5", "mode http\n",
    "mode tcp\n", "route a.org/x b\n", "route /x b\n", "accept-proxy 10.0.0.0/8 ::1\n", "idle-timeout 5s\n", "rate 5 6\n",
    "forwarded standard\n", "max-body 100\n", "balance least-connections\n", "retries 2\n", "send-proxy v2\n", "fail 2 5s\n",
    "keep 3 1m\n", "check http /h every 5s rise 3\n", "check tcp fall 2 host a\n", "set-host a\n", "log off\n", "splice off\n",
    "max-connections 4\n", "shutdown-timeout 2h\n", "certificate a b\n", "tls verify off name x\n", "\"", "#", "\n", " ",
    "connect-timeout 1ms\n", "response-timeout 3\n", "header-timeout 10s\n", "status 127.0.0.1:80\n", "status [::1]:9\n", "client-rate 7 9\n",
    "sticky address\n", "sticky cookie S\n", NULL};

enum { WORDS = 34, LINES = 600, GLOBAL_LINES = 1, LISTEN_LINES = 2, BACKEND_LINES = 4 };

/* ---- The second reader ---- */

struct line {
    char *words[WORDS];
    int count;
    unsigned section;
    int number; /* of the section */
};

static char *texts[LINES];
static struct line lines[LINES];
static int line_count;

/* False: the words of a line cannot be told apart. */
static bool split_line(struct line *line, char *text)
{
    line->count = 0;
    while (*text != '\0' && *text != '#') {
        if (strchr(" \t\r", *text) != NULL) {
            text++;
            continue;
        }
        bool is_quoted = *text == '"';
        char *word = text + is_quoted;
        text = word;
        while (*text != '\0' && strchr(is_quoted ? "\"" : " \t\r", *text) == NULL)
            text++;
        if ((is_quoted && *text == '\0') || line->count == MAX_WORDS)
            return false;
        if (*text != '\0')
            *text++ = '\0';
        line->words[line->count++] = word;
    }
    return true;
}

static bool is_number(const char *text, unsigned long long least, unsigned long long most)
{
    unsigned long long value = 0;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (!uri_is_digit(*text) || value > (UINT64_MAX - 9) / 10)
            return false;
        value = value * 10 + (unsigned)(*text - '0');
    }
    return value >= least && value <= most;
}

static bool is_time(const char *text)
{
    unsigned long long value = 0, second = 1000000000, unit;
    if (!uri_is_digit(*text))
        return false;
    for (; uri_is_digit(*text); text++)
        if ((value = value * 10 + (unsigned)(*text - '0')) >= 1000000000)
            return false;
    unit = *text == '\0' || strcmp(text, "s") == 0 ? second
           : strcmp(text, "ms") == 0               ? 1000000
           : strcmp(text, "m") == 0                ? 60 * second
           : strcmp(text, "h") == 0                ? 3600 * second
                                                   : 0;
    return value != 0 && unit != 0 && value <= UINT64_MAX / 4 / unit;
}

static bool is_one_of(const char *text, const char *const *names)
{
    for (; *names != NULL; names++)
        if (strcmp(text, *names) == 0)
            return true;
    return false;
}

static bool is_address(const char *text)
{
    bide_address address;
    return bide_address_parse(&address, text) == 0; /* (the target "address" compares it) */
}

static bool is_network(const char *text)
{
    size_t length = strcspn(text, "/");
    uint8_t bytes[16];
    const char *ip = text;
    size_t size = length;
    bool is_v4 = uri_v4(text, length, bytes);
    if (!is_v4 && length > 2 && text[0] == '[' && text[length - 1] == ']')
        ip++, size -= 2;
    if (length >= 64 || (!is_v4 && !uri_v6(ip, size, bytes)))
        return false;
    return text[length] == '\0' || is_number(text + length + 1, 0, is_v4 ? 32 : 128);
}

/* "10.0.0.1:80", "[::1]:80", "unix:/x" or "name:80" */
static bool is_target(const char *text)
{
    const char *colon = strrchr(text, ':');
    if (colon == NULL || (colon == text && strpbrk(text, "0123456789") != NULL && strcspn(text, "0123456789") != 0))
        return false;
    if (is_address(text))
        return true;
    return colon != text && strpbrk(text, "[]/@") == NULL && is_number(colon + 1, 1, 65535);
}

/* Options after the first `from` words: pairs of a name and a value. */
static bool are_pairs(const struct line *line, int from, bool (*is_pair)(const char *name, const char *value))
{
    for (int i = from; i < line->count; i += 2)
        if (i + 1 == line->count || !is_pair(line->words[i], line->words[i + 1]))
            return false;
    return true;
}

static bool is_server_pair(const char *name, const char *value)
{
    return strcmp(name, "weight") == 0 ? is_number(value, 1, 1000)
                                       : strcmp(name, "max") == 0 && is_number(value, 1, 1 << 20);
}

static bool is_check_pair(const char *name, const char *value)
{
    if (strcmp(name, "every") == 0 || strcmp(name, "timeout") == 0)
        return is_time(value);
    return strcmp(name, "host") == 0 ||
           ((strcmp(name, "rise") == 0 || strcmp(name, "fall") == 0) && is_number(value, 1, 1000));
}

static bool is_check(const struct line *line)
{
    if (strcmp(line->words[1], "tcp") == 0)
        return are_pairs(line, 2, is_check_pair);
    return strcmp(line->words[1], "http") == 0 && line->count > 2 && line->words[2][0] == '/' &&
           are_pairs(line, 3, is_check_pair);
}

/* "sticky address", or "sticky cookie NAME" with a token of at most 64 characters. */
static bool is_sticky(const struct line *line)
{
    if (strcmp(line->words[1], "address") == 0)
        return line->count == 2;
    if (strcmp(line->words[1], "cookie") != 0 || line->count != 3)
        return false;
    const char *at = line->words[2];
    while (uri_is_digit(*at) || (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
           (*at != '\0' && strchr("!#$%&'*+-.^_`|~", *at) != NULL))
        at++;
    return *at == '\0' && at != line->words[2] && at - line->words[2] <= 64;
}

static bool are_networks(const struct line *line)
{
    for (int i = 1; i < line->count; i++)
        if (!is_network(line->words[i]))
            return false;
    return true;
}

/*
 * What a directive takes: a letter for each word, those in brackets may be missing. w: any word, t: a time, a: an address,
 * s: a target; n: a number between `least` and `most`; o: one of `names`.
 */
static const struct directive {
    const char *name;
    unsigned sections;
    const char *words;
    unsigned long long least, most;
    const char *names[4];
} directives[] = {
    {"listen", 7, "a", 0, 0, {NULL}},
    {"backend", 7, "w", 0, 0, {NULL}},
    {"log", GLOBAL_LINES, "w", 0, 0, {NULL}},
    {"max-connections", GLOBAL_LINES | LISTEN_LINES, "n", 1, 1 << 20, {NULL}},
    {"shutdown-timeout", GLOBAL_LINES, "t", 0, 0, {NULL}},
    {"splice", GLOBAL_LINES, "o", 0, 0, {"on", "off"}},
    {"status", GLOBAL_LINES, "a", 0, 0, {NULL}},
    {"mode", LISTEN_LINES, "o", 0, 0, {"tcp", "http"}},
    {"to", LISTEN_LINES, "w", 0, 0, {NULL}},
    {"route", LISTEN_LINES, "ww", 0, 0, {NULL}},
    {"accept-proxy", LISTEN_LINES, "*", 0, 0, {NULL}},
    {"idle-timeout", LISTEN_LINES, "t", 0, 0, {NULL}},
    {"header-timeout", LISTEN_LINES, "t", 0, 0, {NULL}},
    {"rate", LISTEN_LINES, "n(n", 1, 1000000000, {NULL}},
    {"client-rate", LISTEN_LINES, "n(n", 1, 1000000, {NULL}},
    {"forwarded", LISTEN_LINES, "o", 0, 0, {"x-forwarded", "standard", "off"}},
    {"max-body", LISTEN_LINES, "n", 1, 1ull << 50, {NULL}},
    {"balance", BACKEND_LINES, "o", 0, 0, {"round-robin", "least-connections"}},
    {"server", BACKEND_LINES, "s*", 0, 0, {NULL}},
    {"connect-timeout", BACKEND_LINES, "t", 0, 0, {NULL}},
    {"response-timeout", BACKEND_LINES, "t", 0, 0, {NULL}},
    {"retries", BACKEND_LINES, "n", 0, MAX_SERVERS, {NULL}},
    {"send-proxy", BACKEND_LINES, "o", 0, 0, {"v1", "v2"}},
    {"fail", BACKEND_LINES, "n(t", 0, 1000000, {NULL}},
    {"keep", BACKEND_LINES, "n(t", 0, 65536, {NULL}},
    {"check", BACKEND_LINES, "w*", 0, 0, {NULL}},
    {"sticky", BACKEND_LINES, "w*", 0, 0, {NULL}},
    {"set-host", BACKEND_LINES, "w", 0, 0, {NULL}},
};

static bool is_word(const struct directive *directive, char kind, const char *word)
{
    switch (kind) {
    case 'n':
        return is_number(word, directive->least, directive->most);
    case 't':
        return is_time(word);
    case 'a':
        return is_address(word);
    case 's':
        return is_target(word);
    case 'o':
        return is_one_of(word, directive->names);
    default:
        return true;
    }
}

static bool is_directive(const struct line *line)
{
    for (size_t i = 0; i < sizeof directives / sizeof *directives; i++) {
        const struct directive *directive = &directives[i];
        int word = 1;
        bool may_end = false;
        const char *kind = directive->words;
        if (strcmp(directive->name, line->words[0]) != 0)
            continue;
        if ((directive->sections & line->section) == 0)
            return false;
        for (; *kind != '\0' && *kind != '*'; kind++) {
            if (*kind == '(') {
                may_end = true;
                continue;
            }
            if (word == line->count)
                return may_end;
            if (!is_word(directive, *kind, line->words[word++]))
                return false;
        }
        if (*kind == '\0')
            return word == line->count;
        if (strcmp(directive->name, "server") == 0)
            return line->count <= 6 && are_pairs(line, 2, is_server_pair);
        if (strcmp(directive->name, "sticky") == 0)
            return is_sticky(line);
        return strcmp(directive->name, "check") == 0 ? is_check(line) : are_networks(line);
    }
    return false; /* (certificates and TLS are not there) */
}

static bool is_named(const struct line *line, const char *name)
{
    return line->count != 0 && strcmp(line->words[0], name) == 0;
}

/* How many lines of a section have this directive. */
static int count_in_section(int section, const char *name)
{
    int count = 0;
    for (int i = 0; i < line_count; i++)
        count += lines[i].number == section && is_named(&lines[i], name);
    return count;
}

static bool has_backend(const char *name)
{
    for (int i = 0; i < line_count; i++)
        if (is_named(&lines[i], "backend") && strcmp(lines[i].words[1], name) == 0)
            return true;
    return false;
}

/* The last line about it counts. */
static bool has_cookie(const char *backend)
{
    bool is_inside = false, has = false;
    for (int i = 0; i < line_count; i++) {
        if (is_named(&lines[i], "listen") || is_named(&lines[i], "backend"))
            is_inside = is_named(&lines[i], "backend") && strcmp(lines[i].words[1], backend) == 0;
        if (is_inside && is_named(&lines[i], "sticky"))
            has = strcmp(lines[i].words[1], "cookie") == 0;
    }
    return has;
}

static bool is_good_listen(int section)
{
    bool is_http = false, has_rules = false, has_cookies = false;
    int routes = count_in_section(section, "to") + count_in_section(section, "route");
    for (int i = 0; i < line_count; i++) {
        if (lines[i].number != section)
            continue;
        if (is_named(&lines[i], "mode"))
            is_http = strcmp(lines[i].words[1], "http") == 0;
        if (is_named(&lines[i], "to")) {
            has_cookies |= has_cookie(lines[i].words[1]);
            if (!has_backend(lines[i].words[1]))
                return false;
        }
        if (is_named(&lines[i], "route")) {
            has_rules |= lines[i].words[1][0] != '\0';
            has_cookies |= has_cookie(lines[i].words[2]);
            if (!has_backend(lines[i].words[2]))
                return false;
        }
    }
    return routes != 0 && (is_http || (routes == 1 && !has_rules && !has_cookies));
}

/* (the library's client knows what a request may have) */
static bool can_be_requested(const char *path, const char *host)
{
    _Alignas(16) char memory[BIDE_HTTP_CLIENT_MEMORY];
    const bide_http_client_options options = {.keeps_delay = true};
    bide_http_client client;
    return bide_http_client_init(&client, (bide_stream){0}, memory, sizeof memory, &options) == 0 &&
           bide_http_client_start_request(&client, "GET", path, host) == 0;
}

/* Each server has a good request for the last check, if that is of HTTP. */
static bool is_good_check(int section)
{
    const struct line *check = NULL;
    const char *host = NULL;
    for (int i = 0; i < line_count; i++)
        if (lines[i].number == section && is_named(&lines[i], "check"))
            check = &lines[i];
    if (check == NULL || strcmp(check->words[1], "http") != 0)
        return true;
    for (int i = 3; i < check->count; i += 2)
        if (strcmp(check->words[i], "host") == 0)
            host = check->words[i + 1];
    for (int i = 0; i < line_count; i++) {
        if (lines[i].number != section || !is_named(&lines[i], "server"))
            continue;
        bide_address address;
        const char *name = lines[i].words[1];
        if (bide_address_parse(&address, name) == 0 && address.any.generic.sa_family == AF_UNIX)
            name = "localhost";
        if (!can_be_requested(check->words[2], host != NULL ? host : name))
            return false;
    }
    return true;
}

/* Of the lines before `i`, another has the address of the status page, or is about it, too. */
static bool is_status_again(int i)
{
    bool is_status = is_named(&lines[i], "status");
    for (int before = 0; before < i; before++) {
        bool was_status = is_named(&lines[before], "status");
        if (was_status && (is_status || (is_named(&lines[i], "listen") &&
                                         strcmp(lines[before].words[1], lines[i].words[1]) == 0)))
            return true;
    }
    return false;
}

/* Each line is right, names are unique, and each section has what it needs. */
static bool second_read(void)
{
    unsigned section = GLOBAL_LINES;
    int number = 0, listens = 0;
    for (int i = 0; i < line_count; i++) {
        lines[i].section = section;
        lines[i].number = number;
        if (!split_line(&lines[i], texts[i]) || (lines[i].count != 0 && !is_directive(&lines[i])))
            return false;
        if (is_status_again(i))
            return false;
        bool is_listen = is_named(&lines[i], "listen");
        if (!is_listen && !is_named(&lines[i], "backend"))
            continue;
        for (int before = 0; before < i; before++)
            if (is_named(&lines[before], lines[i].words[0]) && strcmp(lines[before].words[1], lines[i].words[1]) == 0)
                return false;
        section = is_listen ? LISTEN_LINES : BACKEND_LINES;
        listens += is_listen;
        number++;
    }
    if (listens == 0)
        return false;
    for (int i = 0, at = 0; i < line_count; i++) {
        if (is_named(&lines[i], "listen") && !is_good_listen(++at))
            return false;
        if (is_named(&lines[i], "backend")) {
            int servers = count_in_section(++at, "server");
            if (servers == 0 || servers > MAX_SERVERS || !is_good_check(at))
                return false;
        }
    }
    return true;
}

/* ---- The proxy's ---- */

/* Returns the line of the error, or 0. */
static unsigned first_read(const char *text, size_t size)
{
    static const struct configuration *const none = NULL;
    char error[400] = "";
    unsigned line = 0;
    char *copy = fuzz_copy(text, size);
    FILE *file = size != 0 ? fmemopen(copy, size, "r") : fopen("/dev/null", "r");
    FUZZ_REQUIRE(file != NULL);
    struct configuration *configuration = configuration_read(file, "file", none, error, sizeof error);
    fclose(file);
    free(copy);
    if (configuration == NULL) {
        FUZZ_REQUIRE(sscanf(error, "file:%u: ", &line) == 1);
        FUZZ_REQUIRE(strlen(error) > strlen("file:1: ") && strlen(error) < sizeof error);
        return line + 1; /* (an empty file is wrong at line 0) */
    }
    FUZZ_REQUIRE(error[0] == '\0');
    configuration_release(configuration);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* (a NUL or a long line ends a file early; a zone is an interface of this machine) */
    if (size > 3000 || memchr(data, '\0', size) != NULL || memchr(data, '%', size) != NULL)
        return 0;
    char *copy = malloc(size + 1), *more = malloc(2 * size + 100);
    FUZZ_REQUIRE(copy != NULL && more != NULL);
    memcpy(copy, data, size);
    copy[size] = '\0';
    line_count = 0;
    for (char *at = copy; at != NULL && line_count < LINES;)
        texts[line_count++] = strsep(&at, "\n");
    if (line_count < LINES) {
        size_t used = (size_t)sprintf(more, "# a comment\n\n \t\n");
        memcpy(more + used, data, size);
        used += size;
        unsigned line = first_read((const char *)data, size);
        bool is_good = second_read();
        FUZZ_REQUIRE((line == 0) == is_good);
        FUZZ_REQUIRE(line <= (unsigned)line_count + 1);
        FUZZ_REQUIRE(first_read(more, used) == (line != 0 ? line + 3 : 0));
    }
    free(copy);
    free(more);
    return 0;
}
