/*
 * URLs of message logs: "ENGINE:NAME?OPTION=VALUE&...". Texts are copied, and "%41" decoded. An
 * option that is given twice, unknown, or out of its range is an error, and `problem` says so.
 */
#include "state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct log_engine *const log_engines[] = {
    &bide_log_ring_engine_,
    &bide_log_file_engine_,
    &bide_log_stdio_engine_,
#if BIDE_LOG_HAS_SHM
    &bide_log_shm_engine_,
#endif
#if BIDE_LOG_HAS_REDIS
    &bide_log_redis_engine_,
#endif
};
static const char *const log_level_names[] = {"sent", "stored", "majority", "synced"};

#define LOG_SEGMENT_MIN     UINT64_C(4096)
#define LOG_SEGMENT_DEFAULT (UINT64_C(64) << 20)
#define LOG_BYTES_MAX       (UINT64_C(1) << 62)
#define LOG_SECONDS_MAX     (UINT64_C(1) << 32)
#define LOG_KEEP_MAX        (UINT64_C(1) << 62)

enum { LOG_REDELIVER_MAX = 86400, LOG_TIMEOUT_MAX = 3600, LOG_REPLICAS_MAX = 100 };

#define LOG_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static int log_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Copies what is before any of `ends`, decoded, and moves *text there. No zero byte is allowed. */
static int log_url_decode(const char **text, const char *ends, char *out, size_t size)
{
    size_t length = 0;
    const char *at = *text;
    for (; *at != '\0' && strchr(ends, *at) == NULL; at++) {
        char c = *at;
        if (c == '%') {
            int high = log_digit(at[1]), low = high < 0 ? -1 : log_digit(at[2]);
            if (low < 0 || high * 16 + low == 0)
                return -EINVAL;
            c = (char)(high * 16 + low);
            at += 2;
        }
        if (length + 1 >= size)
            return -EINVAL;
        out[length++] = c;
    }
    out[length] = '\0';
    *text = at;
    return 0;
}

static int log_url_number(const char *value, uint64_t min, uint64_t max, uint64_t *number)
{
    uint64_t read = 0;
    if (*value == '\0')
        return -EINVAL;
    for (; *value != '\0'; value++) {
        if (*value < '0' || *value > '9' || read > (max - (uint64_t)(*value - '0')) / 10)
            return -EINVAL;
        read = read * 10 + (uint64_t)(*value - '0');
    }
    if (read < min)
        return -EINVAL;
    *number = read;
    return 0;
}

static int log_url_level(struct log_url *url, const char *value)
{
    for (unsigned level = 0; level < LOG_COUNT_OF(log_level_names); level++) {
        if (strcmp(log_level_names[level], value) == 0) {
            url->level = (bide_log_level)level;
            return (url->engine->levels & 1u << level) != 0 ? 0 : -ENOTSUP;
        }
    }
    return -EINVAL;
}

static int log_url_create(struct log_url *url, const char *value)
{
    url->must_exist = strcmp(value, "no") == 0;
    return url->must_exist || strcmp(value, "yes") == 0 ? 0 : -EINVAL;
}

enum log_option {
    LOG_OPTION_WINDOW,
    LOG_OPTION_SIZE,
    LOG_OPTION_SEGMENT,
    LOG_OPTION_RETAIN,
    LOG_OPTION_KEEP_FOR,
    LOG_OPTION_KEEP,
    LOG_OPTION_REDELIVER,
    LOG_OPTION_TIMEOUT,
    LOG_OPTION_REPLICAS,
    LOG_OPTION_LEVEL, /* which has no number, like the next */
    LOG_OPTION_CREATE
};

/* Which engines have it. */
enum { LOG_OF_ALL = 1, LOG_OF_FILES = 2, LOG_OF_SERVERS = 4, LOG_OF_CREATED = 8 };

static const struct {
    const char *name;
    unsigned engines;
    uint64_t min, max;
} log_options[] = {
    [LOG_OPTION_WINDOW] = {"window", LOG_OF_ALL, 1, BIDE_LOG_WINDOW_MAX},
    [LOG_OPTION_SIZE] = {"size", LOG_OF_ALL, 1, BIDE_LOG_SIZE_MAX},
    [LOG_OPTION_SEGMENT] = {"segment", LOG_OF_FILES, LOG_SEGMENT_MIN, LOG_BYTES_MAX},
    [LOG_OPTION_RETAIN] = {"retain", LOG_OF_FILES, LOG_SEGMENT_MIN, LOG_BYTES_MAX},
    [LOG_OPTION_KEEP_FOR] = {"keep_for", LOG_OF_FILES | LOG_OF_SERVERS, 1, LOG_SECONDS_MAX},
    [LOG_OPTION_KEEP] = {"keep", LOG_OF_SERVERS, 1, LOG_KEEP_MAX},
    [LOG_OPTION_REDELIVER] = {"redeliver", LOG_OF_SERVERS, 1, LOG_REDELIVER_MAX},
    [LOG_OPTION_TIMEOUT] = {"timeout", LOG_OF_SERVERS, 1, LOG_TIMEOUT_MAX},
    [LOG_OPTION_REPLICAS] = {"replicas", LOG_OF_SERVERS, 1, LOG_REPLICAS_MAX},
    [LOG_OPTION_LEVEL] = {"level", LOG_OF_ALL, 0, 0},
    [LOG_OPTION_CREATE] = {"create", LOG_OF_CREATED, 0, 0},
};

static void log_url_set(struct log_url *url, enum log_option option, uint64_t number)
{
    switch (option) {
    case LOG_OPTION_WINDOW:
        url->has_window = true;
        url->window = (uint32_t)number;
        break;
    case LOG_OPTION_SIZE:
        url->has_size = true;
        url->size = (uint32_t)number;
        break;
    case LOG_OPTION_SEGMENT:
        url->has_segment = true;
        url->segment = number;
        break;
    case LOG_OPTION_RETAIN:
        url->has_retain = true;
        url->retain = number;
        break;
    case LOG_OPTION_KEEP_FOR:
        url->has_keep_for = true;
        url->keep_for = number * 1000000000u;
        break;
    case LOG_OPTION_KEEP:
        url->has_keep = true;
        url->keep = number;
        break;
    case LOG_OPTION_REDELIVER:
        url->redeliver = (uint32_t)number;
        break;
    case LOG_OPTION_TIMEOUT:
        url->timeout = (uint32_t)number;
        break;
    case LOG_OPTION_REPLICAS:
        url->replicas = (uint32_t)number;
        break;
    case LOG_OPTION_LEVEL:
    case LOG_OPTION_CREATE:
        break;
    }
}

/* Applies one option. `seen` has a bit for each option. */
static int log_url_option(struct log_url *url, const char *name, const char *value, unsigned *seen)
{
    unsigned which = 0, engines = LOG_OF_ALL;
    uint64_t number = 0;
    if (url->engine->has_segments)
        engines |= LOG_OF_FILES;
    if (url->engine->is_server)
        engines |= LOG_OF_SERVERS;
    if (url->engine->has_create)
        engines |= LOG_OF_CREATED;
    while (which < LOG_COUNT_OF(log_options) && strcmp(log_options[which].name, name) != 0)
        which++;
    if (which == LOG_COUNT_OF(log_options) || (*seen & 1u << which) != 0 ||
        (log_options[which].engines & engines) == 0)
        return -EINVAL;
    *seen |= 1u << which;
    if (which == LOG_OPTION_LEVEL)
        return log_url_level(url, value);
    if (which == LOG_OPTION_CREATE)
        return log_url_create(url, value);
    int status = log_url_number(value, log_options[which].min, log_options[which].max, &number);
    if (status == 0)
        log_url_set(url, (enum log_option)which, number);
    return status;
}

/* The name without a password, which is before the last "@" of a server's name. */
static const char *log_url_public_name(const struct log_url *url)
{
    const char *slash = url->engine->is_server && strncmp(url->name, "//", 2) == 0
                            ? strchr(url->name + 2, '/')
                            : NULL;
    for (const char *at = slash; at != NULL && at != url->name; at--) {
        if (*at == '@')
            return at + 1;
    }
    return slash != NULL || !url->engine->is_server ? url->name : "";
}

static int log_url_options(struct log_url *url, const char *text, char *problem)
{
    unsigned seen = 0;
    while (*text != '\0') {
        char name[16] = "", value[24] = "";
        text++; /* "?" or "&" */
        const char *option = text;
        int status = log_url_decode(&text, "=&", name, sizeof name);
        if (status == 0 && *text == '=') {
            text++;
            status = log_url_decode(&text, "&", value, sizeof value);
        }
        if (status == 0)
            status = log_url_option(url, name, value, &seen);
        if (status < 0) {
            snprintf(problem, BIDE_LOG_PROBLEM_TEXT, "%s:%.60s: %s: %.40s", url->engine->scheme,
                     log_url_public_name(url),
                     status == -ENOTSUP ? "the engine does not give this level"
                                        : "an option that is unknown or repeated, or its value",
                     option);
            return status;
        }
    }
    return 0;
}

int bide_log_url_parse_(struct log_url *url, const char *text, char *problem)
{
    const char *name = strchr(text, ':');
    size_t length = name != NULL ? (size_t)(name - text) : 0;
    *url = (struct log_url){.window = 1024,
                            .size = 4096,
                            .segment = LOG_SEGMENT_DEFAULT,
                            .redeliver = 30,
                            .timeout = 5};
    for (unsigned i = 0; name != NULL && i < LOG_COUNT_OF(log_engines); i++) {
        if (strlen(log_engines[i]->scheme) == length &&
            memcmp(log_engines[i]->scheme, text, length) == 0)
            url->engine = log_engines[i];
    }
    if (url->engine == NULL) {
        snprintf(problem, BIDE_LOG_PROBLEM_TEXT, "%.100s: no such engine", text);
        return -EPROTONOSUPPORT;
    }
    url->level = url->engine->best;
    name++;
    int status = log_url_decode(&name, "?", url->name, sizeof url->name);
    if (status < 0) {
        snprintf(problem, BIDE_LOG_PROBLEM_TEXT, "%.100s: the name is not valid",
                 url->engine->is_server ? url->engine->scheme : text);
        return status;
    }
    return log_url_options(url, name, problem);
}
